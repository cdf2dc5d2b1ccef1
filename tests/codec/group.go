package main

import (
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Within a group that a message does not know, Go accepts fields up to number 2^31-1. Everywhere else, and in all other implementations, numbers
// end at 2^29-1. These functions find such fields in what Go has accepted.

// One group, from behind its first tag to its end.
func groupExceeds(group []byte) bool {
	for {
		number, kind, size := protowire.ConsumeTag(group)
		group = group[size:]
		switch {
		case kind == protowire.EndGroupType:
			return false // its number is that of the beginning
		case number > protowire.MaxValidNumber, kind == protowire.StartGroupType && groupExceeds(group):
			return true
		}
		group = group[protowire.ConsumeFieldValue(number, kind, group):]
	}
}

// The groups of a message and of the messages in it. Etcd's messages have no fields that are groups.
func groupsExceed(message protoreflect.MessageDescriptor, encoded []byte) bool {
	for len(encoded) > 0 {
		number, kind, size := protowire.ConsumeTag(encoded)
		encoded = encoded[size:]
		field := message.Fields().ByNumber(number)
		if kind == protowire.StartGroupType && groupExceeds(encoded) {
			return true
		}
		if content, _ := protowire.ConsumeBytes(encoded); kind == protowire.BytesType && field != nil && field.Message() != nil &&
			groupsExceed(field.Message(), content) {
			return true
		}
		encoded = encoded[protowire.ConsumeFieldValue(number, kind, encoded):]
	}
	return false
}

// Groups with fields around the limits: in the message, in another group, and as the content of each of its fields.
func groups(message protoreflect.MessageDescriptor) [][]byte {
	made := [][]byte{}
	for _, number := range []uint64{1<<29 - 1, 1 << 29, 1<<31 - 1, 1 << 31, 1 << 32} {
		field := append(protowire.AppendVarint(nil, number<<3), 1)
		group := append(append([]byte("\x0b"), field...), '\x0c')
		made = append(made, field, group, append(append([]byte("\x13\x08\x01"), group...), '\x14'))
		around := protowire.AppendVarint([]byte("\x0b"), number<<3|3)
		made = append(made, append(protowire.AppendVarint(around, number<<3|4), '\x0c'))
		for i := range message.Fields().Len() {
			tag := protowire.AppendTag(nil, message.Fields().Get(i).Number(), protowire.BytesType)
			made = append(made, protowire.AppendBytes(tag, group))
		}
	}
	return made
}
