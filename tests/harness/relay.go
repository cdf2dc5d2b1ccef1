package harness

import (
	"io"
	"math/rand"
	"net"
	"sync"
	"time"
)

// Relay forwards TCP connections to a server. Its link can be cut and restored, and it can carry
// nothing for a while. With a budget it cuts each connection after a random number of bytes from the
// server, at any place in a frame or message.
type Relay struct {
	Addr     string
	to       string
	listener net.Listener
	lock     sync.Mutex
	change   sync.Cond // of state
	state    linkState
	random   *rand.Rand
	budget   int64 // average bytes of a connection; 0: unlimited
	delay    time.Duration
	open     map[net.Conn]bool // true: to a client
	cut      int
}

type linkState int

const (
	linkUp      linkState = iota
	linkStalled           // connections stay open, and carry nothing
	linkDown              // no connection lives
	linkClosed
)

// NewRelay listens on a free port.
func NewRelay(to string) (*Relay, error) {
	return NewCuttingRelay(to, 0, 0)
}

// NewCuttingRelay returns a relay that cuts connections after `budget` bytes on average.
func NewCuttingRelay(to string, seed, budget int64) (*Relay, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &Relay{Addr: listener.Addr().String(), to: to, listener: listener, budget: budget,
		random: rand.New(rand.NewSource(seed)), open: map[net.Conn]bool{}}
	r.change.L = &r.lock
	go r.serve()
	return r, nil
}

// Close ends the relay and its connections.
func (r *Relay) Close() {
	r.listener.Close()
	r.move(linkClosed)
}

// Cut ends all connections. New ones are closed at once until Restore.
func (r *Relay) Cut() { r.move(linkDown) }

// Stall leaves connections open and carries no bytes until Restore, also on new connections.
func (r *Relay) Stall() { r.move(linkStalled) }

// Restore makes the link carry again, without a delay. Bytes that were held back arrive.
func (r *Relay) Restore() {
	r.Slow(0)
	r.move(linkUp)
}

// Slow delays everything that is carried from now on.
func (r *Relay) Slow(delay time.Duration) {
	r.lock.Lock()
	defer r.lock.Unlock()
	r.delay = delay
}

// HalfClose ends one direction of every connection: either the clients or the server see its end, and can still send.
func (r *Relay) HalfClose(clientsSeeIt bool) {
	r.lock.Lock()
	defer r.lock.Unlock()
	for conn, isClient := range r.open {
		if isClient == clientsSeeIt {
			conn.(*net.TCPConn).CloseWrite()
		}
	}
}

func (r *Relay) move(to linkState) {
	r.lock.Lock()
	defer r.lock.Unlock()
	r.state = to
	r.change.Broadcast()
	if to == linkDown || to == linkClosed {
		r.closeAll()
	}
}

func (r *Relay) closeAll() {
	for conn := range r.open {
		conn.Close()
	}
}

// CutAll cuts every connection now; clients may connect again.
func (r *Relay) CutAll() {
	r.lock.Lock()
	defer r.lock.Unlock()
	r.closeAll()
}

// Redirect cuts every connection; new ones lead to another server.
func (r *Relay) Redirect(to string) {
	r.lock.Lock()
	defer r.lock.Unlock()
	r.to = to
	r.closeAll()
}

func (r *Relay) target() string {
	r.lock.Lock()
	defer r.lock.Unlock()
	return r.to
}

// Cuts returns how many connections have ended.
func (r *Relay) Cuts() int {
	r.lock.Lock()
	defer r.lock.Unlock()
	return r.cut
}

// Settle stops cutting connections after a budget.
func (r *Relay) Settle() {
	r.lock.Lock()
	r.budget = 0
	r.lock.Unlock()
}

func (r *Relay) serve() {
	for {
		conn, err := r.listener.Accept()
		if err != nil {
			return
		}
		go r.carry(conn)
	}
}

// admit registers a new connection and returns its budget; false if it is to be closed.
func (r *Relay) admit(client, server net.Conn) (int64, bool) {
	r.lock.Lock()
	defer r.lock.Unlock()
	if r.state == linkDown || r.state == linkClosed {
		return 0, false
	}
	r.open[client], r.open[server] = true, false
	if r.budget == 0 {
		return 1 << 62, true
	}
	return r.random.Int63n(2 * r.budget), true
}

func (r *Relay) carry(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", r.target())
	if err != nil {
		return
	}
	defer server.Close()
	left, ok := r.admit(client, server)
	if !ok {
		return
	}
	go func() {
		io.Copy(link{server, r}, client)
		server.Close()
	}()
	io.CopyN(link{client, r}, server, left)
	r.lock.Lock()
	defer r.lock.Unlock()
	delete(r.open, client)
	delete(r.open, server)
	r.cut++
}

// link writes to a connection while the link is not stalled.
type link struct {
	to    io.Writer
	relay *Relay
}

func (l link) Write(bytes []byte) (int, error) {
	l.relay.lock.Lock()
	for l.relay.state == linkStalled {
		l.relay.change.Wait()
	}
	delay := l.relay.delay
	l.relay.lock.Unlock()
	time.Sleep(delay)
	return l.to.Write(bytes)
}
