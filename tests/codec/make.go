package main

import (
	"bytes"
	"encoding/binary"
	"math/rand"
	"slices"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Makes random messages and damages them.
type maker struct{ *rand.Rand }

const depthMax = 3

func (m maker) message(kind protoreflect.MessageType) proto.Message {
	made := kind.New()
	m.fill(made, 0)
	return made.Interface()
}

func (m maker) fill(message protoreflect.Message, depth int) {
	fields := message.Descriptor().Fields()
	for _, i := range m.Perm(fields.Len()) { // a oneof keeps the member that was set last
		field := fields.Get(i)
		if m.Intn(3) == 0 || field.Message() != nil && depth == depthMax {
			continue
		}
		if !field.IsList() {
			message.Set(field, m.value(field, func() protoreflect.Value { return message.NewField(field) }, depth))
			continue
		}
		list := message.Mutable(field).List()
		for range m.Intn(4) {
			list.Append(m.value(field, list.NewElement, depth))
		}
	}
}

func (m maker) value(field protoreflect.FieldDescriptor, empty func() protoreflect.Value, depth int) protoreflect.Value {
	number := m.number()
	switch field.Kind() {
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(number&1 == 0)
	case protoreflect.EnumKind:
		return protoreflect.ValueOfEnum(protoreflect.EnumNumber(m.Intn(6) - 1))
	case protoreflect.Int32Kind:
		return protoreflect.ValueOfInt32(int32(number))
	case protoreflect.Int64Kind:
		return protoreflect.ValueOfInt64(int64(number))
	case protoreflect.Uint32Kind:
		return protoreflect.ValueOfUint32(uint32(number))
	case protoreflect.Uint64Kind:
		return protoreflect.ValueOfUint64(number)
	case protoreflect.StringKind:
		return protoreflect.ValueOfString(m.pick("", "a", "key", "ä\u2028", "\x00\x7f\"\\", "\U0001f600", "</>"))
	case protoreflect.BytesKind:
		made := make([]byte, m.Intn(6))
		m.Read(made)
		return protoreflect.ValueOfBytes(made)
	case protoreflect.MessageKind:
		made := empty()
		m.fill(made.Message(), depth+1)
		return made
	}
	panic("a field of an unexpected kind: " + field.Kind().String())
}

func (m maker) pick(from ...string) string { return from[m.Intn(len(from))] }

// Small numbers, those at the edges, and any.
func (m maker) number() uint64 {
	if m.Intn(3) == 0 {
		return m.Uint64() >> m.Intn(64)
	}
	edges := []uint64{0, 1, 127, 128, 1 << 31, 1<<31 - 1, 1<<32 - 1, 1 << 63, 1<<63 - 1, 1<<64 - 1}
	return edges[m.Intn(len(edges))]
}

// Changes a few bytes; pieces are inserted as a whole, because single bytes rarely make something that means anything.
func (m maker) damage(text []byte, pieces []string) []byte {
	text = bytes.Clone(text)
	for range m.Intn(3) + 1 {
		at := m.Intn(len(text) + 1)
		switch m.Intn(5) {
		case 0:
			text = text[:at]
		case 1:
			text = slices.Insert(text, at, []byte(m.pick(pieces...))...)
		case 2:
			if at < len(text) {
				text[at] ^= 1 << m.Intn(8)
			}
		case 3:
			text = slices.Delete(text, at, min(len(text), at+m.Intn(5)))
		case 4:
			to := min(len(text), at+m.Intn(20))
			text = slices.Insert(text, to, bytes.Clone(text[at:to])...)
		}
	}
	return text
}

var wirePieces = []string{"\x00", "\x0a\x00", "\x0a\x03abc", "\x80\x00", "\x80\x80\x80\x80\x80\x00", "\x88\x80\x80\x80\x80\x80\x80\x80\x80\x00\x01",
	"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "\x08\x01",
	"\x0b", "\x0c", "\x0b\x0c", "\x0b\x08\x01\x0c", "\x0b\x14", "\x0d\x01\x02\x03\x04", "\x09\x01\x02\x03\x04\x05\x06\x07\x08", "\xfa\xff\xff\xff\x7f\x00",
	"\xf8\xff\xff\xff\x0f\x01", "\xf8\xff\xff\xff\x1f\x01", "\x07", "\x06", "\x12\x02\x0a\x00", "\x0a\x02\xff\xfe", "\x0a\x03\xed\xa0\x80"}

// Also two messages in a row, which merge, and one inside a field of the other.
func (m maker) damageWire(encoded, other []byte) []byte {
	switch m.Intn(6) {
	case 0:
		return append(bytes.Clone(encoded), other...)
	case 1:
		head := binary.AppendUvarint(nil, uint64(m.Intn(8)<<3|2))
		return append(append(bytes.Clone(encoded), binary.AppendUvarint(head, uint64(len(other)))...), other...)
	}
	return m.damage(encoded, wirePieces)
}

// The message in one of the forms that are allowed.
func (m maker) json(message proto.Message) []byte {
	options := protojson.MarshalOptions{UseProtoNames: m.Intn(2) == 0, UseEnumNumbers: m.Intn(3) == 0, EmitUnpopulated: m.Intn(3) == 0}
	if m.Intn(3) == 0 {
		options.Indent = "  "
	}
	text, err := options.Marshal(message)
	must(err)
	return text
}

var jsonPieces = []string{"{", "}", "[", "]", ",", ":", "\"", "\\", "\\u12", "\\ud800", "\\ud83d\\ude00", "\\u0000", "1e5", "-", "0", "01", "1.", ".5", "1e+", "1.0", "-0",
	"\"1\"", "\"1.0\"", "\"1e2\"", "\" 1\"", "\"-1\"", "\"\"", "18446744073709551616", "9223372036854775808", "4294967296", "1e400", "null", "nul", "true", "\"true\"", " ",
	"\t", "\x01", "\x7f", "ä", "\xff", "\xed\xa0\x80", "\"a\":1,", "\"key\":\"YQ\",", "\"key\":\"YQ==\",", "\"key\":\"-_-_\",", "\"key\":\"Y\",", "\"key\":\"YR\",", "//", "'",
	"\"key\":null,", "{\"a\":[{}]}", "\"type\":\"PUT\",", "\"type\":7,", "\"x\":{\"y\":[1,2]},", "=", "/", "+", "-_"}

func (m maker) damageJSON(text []byte) []byte { return m.damage(text, jsonPieces) }
