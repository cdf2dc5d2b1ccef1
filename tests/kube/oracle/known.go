package main

import (
	"bytes"
	"strings"
)

var knownCount int

// What Vigil refuses and Kubernetes' decoders accept: text that is not valid UTF-8, times that JSON cannot have, fields in the
// entries of maps that no program writes, and invalid JSON within protobuf.
var stricter = []string{"a string is not valid UTF-8", "a time outside of the years", "proto: illegal tag", "proto: wiretype end group",
	"invalid character", "unexpected end of JSON", "proto: unexpected EOF", "impossible IntOrString.Type"}

func contains(text []byte, parts []string) bool {
	for _, part := range parts {
		if strings.Contains(string(text), part) {
			return true
		}
	}
	return false
}

// Whether a difference is one of those that docs/compatibility-kubernetes.md lists with their reasons.
func known(c request, ok bool, text []byte) bool {
	found := false
	switch c.Op {
	case "n":
		found = !ok && contains(text, stricter[:1]) || ok && strings.HasSuffix(c.Error, "into Go value of type float64")
	case "D":
		// A message that is repeated replaces the one before instead of being merged with it.
		merged := ok && (c.Error == "" || strings.Contains(c.Error, "wrong wireType"))
		found = !ok && contains(text, stricter) || merged
	case "y":
		// Tags other than !!str have no effect, and what JSON cannot have is refused even if it is replaced later.
		found = bytes.Contains(c.Bytes, []byte("!")) || !ok && contains(text, []string{"unsupported", "unknown anchor", "an alias cannot be a key"})
	}
	if found {
		knownCount++
	}
	return found
}
