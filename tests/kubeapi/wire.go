package kubeapi

import (
	"bytes"
	"context"
	"encoding/binary"
	"net"
	"sync/atomic"
)

const (
	h2Preface  = 24
	h2Head     = 9
	h2Ping     = 6
	h2GoAway   = 7
	h2AckFlag  = 1
	pingLength = 8
)

// wire counts events on the connections of an apiserver: dials, keep-alive pings and their answers, and
// GOAWAY frames of the server.
type wire struct {
	dials, pings, answers, goAways atomic.Int64
}

func (w *wire) dial(ctx context.Context, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	w.dials.Add(1)
	tapped := &tappedConn{Conn: conn}
	tapped.sent.skip = h2Preface
	tapped.sent.frame = func(kind, flags byte, body []byte) {
		if kind == h2Ping && flags&h2AckFlag == 0 && isKeepAlive(body) {
			w.pings.Add(1)
		}
	}
	tapped.got.frame = func(kind, flags byte, body []byte) {
		switch {
		case kind == h2Ping && flags&h2AckFlag != 0 && isKeepAlive(body):
			w.answers.Add(1)
		case kind == h2GoAway:
			w.goAways.Add(1)
		}
	}
	return tapped, nil
}

// isKeepAlive distinguishes grpc-go's keep-alive pings, which are all zeros, from those for measurements.
func isKeepAlive(body []byte) bool {
	return bytes.Equal(body, make([]byte, pingLength))
}

type tappedConn struct {
	net.Conn
	sent, got frames
}

func (c *tappedConn) Write(p []byte) (int, error) {
	c.sent.feed(p)
	return c.Conn.Write(p)
}

func (c *tappedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.got.feed(p[:n])
	return n, err
}

// frames divides one direction of a connection into HTTP/2 frames. It keeps only bodies of pings.
type frames struct {
	skip  int
	head  []byte
	body  []byte
	left  int
	frame func(kind, flags byte, body []byte)
}

func (f *frames) feed(p []byte) {
	for len(p) > 0 {
		if f.skip > 0 {
			n := min(f.skip, len(p))
			f.skip -= n
			p = p[n:]
			continue
		}
		if len(f.head) < h2Head {
			n := min(h2Head-len(f.head), len(p))
			f.head = append(f.head, p[:n]...)
			p = p[n:]
			if len(f.head) < h2Head {
				return
			}
			f.left = int(binary.BigEndian.Uint32(append([]byte{0}, f.head[:3]...)))
		}
		n := min(f.left, len(p))
		if f.head[3] == h2Ping {
			f.body = append(f.body, p[:n]...)
		}
		f.left -= n
		p = p[n:]
		if f.left == 0 {
			f.frame(f.head[3], f.head[4], f.body)
			f.head, f.body = f.head[:0], f.body[:0]
		}
	}
}
