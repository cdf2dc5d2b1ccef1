package kubeclient

import (
	"io"
	"math/rand"
	"net"
	"sync"
	"testing"
)

// proxy forwards connections of clients to a server and cuts each after a random number of bytes from the server, at
// any place in an event, a chunk or a head.
type proxy struct {
	addr, to string
	lock     sync.Mutex
	random   *rand.Rand
	budget   int64 // average bytes of a connection; 0: unlimited
	open     map[net.Conn]bool
	shut     bool // new connections are closed
	cuts     int
}

func newProxy(t *testing.T, to string, budget int64) *proxy {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{addr: listener.Addr().String(), to: to, budget: budget, random: rand.New(rand.NewSource(1)), open: map[net.Conn]bool{}}
	t.Cleanup(func() { listener.Close(); p.cutAll() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go p.carry(conn)
		}
	}()
	return p
}

func (p *proxy) cutAll() {
	p.lock.Lock()
	defer p.lock.Unlock()
	for conn := range p.open {
		conn.Close()
	}
}

// shutFor cuts all connections and closes new ones while the function runs.
func (p *proxy) shutFor(run func()) {
	set := func(shut bool) {
		p.lock.Lock()
		p.shut = shut
		p.lock.Unlock()
	}
	set(true)
	p.cutAll()
	run()
	set(false)
}

// settle stops cutting connections.
func (p *proxy) settle() {
	p.lock.Lock()
	p.budget = 0
	p.lock.Unlock()
	p.cutAll()
}

func (p *proxy) cutCount() int {
	p.lock.Lock()
	defer p.lock.Unlock()
	return p.cuts
}

func (p *proxy) left() int64 {
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
	if p.shut {
		p.lock.Unlock()
		client.Close()
		server.Close()
		return
	}
	p.open[client], p.open[server] = true, true
	left := p.left()
	p.lock.Unlock()
	go func() {
		io.Copy(server, client)
		server.Close()
	}()
	io.CopyN(client, server, left)
	client.Close()
	server.Close()
	p.lock.Lock()
	defer p.lock.Unlock()
	delete(p.open, client)
	delete(p.open, server)
	p.cuts++
}
