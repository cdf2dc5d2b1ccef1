package watch

import (
	"io"
	"math/rand"
	"net"
	"sync"
)

// proxy forwards connections of clients to a server and cuts each after a random number of bytes from
// the server, at any place in a frame or message.
type proxy struct {
	Addr     string
	to       string
	listener net.Listener
	lock     sync.Mutex
	random   *rand.Rand
	budget   int64 // average bytes of a connection; 0: unlimited
	open     map[net.Conn]bool
	cut      int
}

func newProxy(to string, seed, budget int64) (*proxy, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &proxy{Addr: listener.Addr().String(), to: to, listener: listener, budget: budget,
		random: rand.New(rand.NewSource(seed)), open: map[net.Conn]bool{}}
	go p.serve()
	return p, nil
}

func (p *proxy) Close() {
	p.listener.Close()
	p.CutAll()
}

// CutAll cuts every connection now.
func (p *proxy) CutAll() {
	p.lock.Lock()
	defer p.lock.Unlock()
	for conn := range p.open {
		conn.Close()
	}
}

// cuts returns how many connections have ended.
func (p *proxy) cuts() int {
	p.lock.Lock()
	defer p.lock.Unlock()
	return p.cut
}

// Settle stops cutting connections.
func (p *proxy) Settle() {
	p.lock.Lock()
	p.budget = 0
	p.lock.Unlock()
}

func (p *proxy) serve() {
	for {
		conn, err := p.listener.Accept()
		if err != nil {
			return
		}
		go p.carry(conn)
	}
}

func (p *proxy) left() int64 {
	p.lock.Lock()
	defer p.lock.Unlock()
	if p.budget == 0 {
		return 1 << 62
	}
	return p.random.Int63n(2 * p.budget)
}

func (p *proxy) carry(client net.Conn) {
	server, err := net.Dial("tcp", p.to)
	if err != nil {
		client.Close()
		return
	}
	p.lock.Lock()
	p.open[client], p.open[server] = true, true
	p.lock.Unlock()
	go func() {
		io.Copy(server, client)
		server.Close()
	}()
	io.CopyN(client, server, p.left())
	client.Close()
	server.Close()
	p.lock.Lock()
	defer p.lock.Unlock()
	delete(p.open, client)
	delete(p.open, server)
	p.cut++
}
