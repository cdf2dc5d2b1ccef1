package harness

import (
	"context"
	"io"
	"net"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
)

// Changer passes gRPC calls on to a server and may change its answers.
type Changer struct {
	Addr   string
	server *grpc.Server
	conn   *grpc.ClientConn
	lock   sync.Mutex
	change Change
}

// Change returns what a client gets instead of one message of a server's answer. The request is the
// first message of the client. It is called by several goroutines.
type Change func(method string, request, answer []byte) []byte

type rawMessage struct{ bytes []byte }

type rawCodec struct{}

func (rawCodec) Name() string                        { return "proto" }
func (rawCodec) Marshal(message any) ([]byte, error) { return message.(*rawMessage).bytes, nil }
func (rawCodec) Unmarshal(bytes []byte, message any) error {
	message.(*rawMessage).bytes = append([]byte{}, bytes...)
	return nil
}

const rawBytesMax = 1 << 30

// StartChanger listens on a free port, and ends with the test.
func StartChanger(t testing.TB, to string) *Changer {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &Changer{Addr: listener.Addr().String()}
	c.conn, err = grpc.NewClient("passthrough:///"+to, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodec(rawCodec{}), grpc.MaxCallRecvMsgSize(rawBytesMax)))
	if err != nil {
		t.Fatal(err)
	}
	c.server = grpc.NewServer(grpc.ForceServerCodec(rawCodec{}), grpc.UnknownServiceHandler(c.carry),
		grpc.MaxRecvMsgSize(rawBytesMax), grpc.MaxSendMsgSize(rawBytesMax))
	go c.server.Serve(listener)
	t.Cleanup(func() {
		c.server.Stop()
		c.conn.Close()
	})
	return c
}

// Set replaces the change; nil: everything passes as it is.
func (c *Changer) Set(change Change) {
	c.lock.Lock()
	defer c.lock.Unlock()
	c.change = change
}

func (c *Changer) changed(method string, request, answer []byte) []byte {
	c.lock.Lock()
	change := c.change
	c.lock.Unlock()
	if change == nil {
		return answer
	}
	return change(method, request, answer)
}

func (c *Changer) carry(_ any, client grpc.ServerStream) error {
	method, _ := grpc.MethodFromServerStream(client)
	sent, _ := metadata.FromIncomingContext(client.Context())
	ctx, cancel := context.WithCancel(metadata.NewOutgoingContext(client.Context(), sent.Copy()))
	defer cancel()
	server, err := c.conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, method)
	if err != nil {
		return err
	}
	var lock sync.Mutex
	var first []byte
	go func() {
		for {
			var message rawMessage
			if client.RecvMsg(&message) != nil {
				server.CloseSend()
				return
			}
			lock.Lock()
			if first == nil {
				first = message.bytes
			}
			lock.Unlock()
			if server.SendMsg(&message) != nil {
				return
			}
		}
	}()
	for {
		var message rawMessage
		if err := server.RecvMsg(&message); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		lock.Lock()
		request := first
		lock.Unlock()
		message.bytes = c.changed(method, request, message.bytes)
		if err := client.SendMsg(&message); err != nil {
			return err
		}
	}
}
