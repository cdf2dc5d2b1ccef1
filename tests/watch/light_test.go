package watch

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
)

// lightCall is a Watch call that decodes only the revisions of its events, so that a thousand of them
// cost less than the server's work.
type lightCall struct {
	grpc.ClientStream
	next   int64 // the revision that comes next
	events int64
}

// rawCodec returns messages undecoded.
type rawCodec struct{}

func (rawCodec) Name() string { return "proto" }

func (rawCodec) Marshal(v any) ([]byte, error) { return proto.Marshal(v.(proto.Message)) }

func (rawCodec) Unmarshal(data []byte, v any) error {
	*v.(*[]byte) = append((*v.(*[]byte))[:0], data...)
	return nil
}

// light opens a call with one watch of a prefix from now on, whose first event will have revision
// `first`. It is read when follow is called.
func (f *fixture) light(conn *grpc.ClientConn, prefix string, first int64) *lightCall {
	f.Helper()
	ctx, cancel := context.WithCancel(f.ctx)
	f.Cleanup(cancel)
	desc := &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}
	stream, err := conn.NewStream(ctx, desc, "/etcdserverpb.Watch/Watch", grpc.ForceCodec(rawCodec{}))
	f.must(err)
	f.must(stream.SendMsg(createOf(prefixOf(prefix, 0))))
	var created []byte
	f.must(stream.RecvMsg(&created))
	return &lightCall{ClientStream: stream, next: first}
}

var errMalformed = errors.New("a malformed message")

// fields calls fn for each field of a message: its number, its varint, or its bytes.
func fields(message []byte, fn func(number, varint uint64, bytes []byte) error) error {
	for len(message) > 0 {
		tag, n := binary.Uvarint(message)
		if n <= 0 {
			return errMalformed
		}
		message = message[n:]
		value, n := binary.Uvarint(message)
		if n <= 0 || (tag&7 != 0 && tag&7 != 2) || (tag&7 == 2 && value > uint64(len(message)-n)) {
			return errMalformed
		}
		message = message[n:]
		var bytes []byte
		if tag&7 == 2 {
			bytes, message = message[:value], message[value:]
		}
		if err := fn(tag>>3, value, bytes); err != nil {
			return err
		}
	}
	return nil
}

func (c *lightCall) event(message []byte) error {
	return fields(message, func(number, _ uint64, kv []byte) error {
		if number != 2 {
			return nil
		}
		return fields(kv, func(number, varint uint64, _ []byte) error {
			if number != 3 {
				return nil
			}
			if int64(varint) != c.next {
				return fmt.Errorf("%d came where %d should have", varint, c.next)
			}
			c.next++
			c.events++
			return nil
		})
	})
}

// follow reads up to a revision, each revision once and in order, where each has one event.
func (c *lightCall) follow(last int64) error {
	var message []byte
	for c.next <= last {
		if err := c.RecvMsg(&message); err != nil {
			return err
		}
		err := fields(message, func(number, varint uint64, bytes []byte) error {
			switch number {
			case 4, 5:
				return fmt.Errorf("canceled, compacted at %d", varint)
			case 11:
				return c.event(bytes)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
