package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"strings"
)

// splitter finds the events in the answer to a watch.
type splitter struct {
	binary bool
	rest   []byte
}

func newSplitter(contentType string) *splitter {
	return &splitter{binary: strings.Contains(contentType, "protobuf")}
}

// next returns the next whole message and its size with its frame, or 0 if there is none.
func (s *splitter) next() ([]byte, int) {
	if !s.binary {
		end := bytes.IndexByte(s.rest, '\n')
		return s.rest[:max(end, 0)], end + 1
	}
	if len(s.rest) < 4 {
		return nil, 0
	}
	size := 4 + int(binary.BigEndian.Uint32(s.rest))
	if len(s.rest) < size {
		return nil, 0
	}
	return s.rest[4:size], size
}

// typeOf returns the type of an event, the first field in both formats.
func (s *splitter) typeOf(message []byte) string {
	if s.binary {
		if len(message) < 2 || message[0] != 1<<3|2 || len(message) < 2+int(message[1]) {
			return "unknown"
		}
		return string(message[2 : 2+int(message[1])])
	}
	var event struct{ Type string }
	if json.Unmarshal(message, &event) != nil || event.Type == "" {
		return "unknown"
	}
	return event.Type
}

func (s *splitter) add(b []byte, found func(name string, size int)) {
	s.rest = append(s.rest, b...)
	for message, size := s.next(); size > 0; message, size = s.next() {
		found(s.typeOf(message), size)
		s.rest = s.rest[size:]
	}
}
