package main

import (
	"bytes"
	"regexp"
	"strings"
	"unicode/utf8"
)

var knownCount int

const notUTF8 = "a string is not valid UTF-8"

// Times that RFC 3339 cannot have, as Kubernetes writes them.
var impossibleTime = regexp.MustCompile(`"(-|0000-|\d{5,}-)[^"]*T\d\d:`)

// What Vigil refuses in protobuf and Kubernetes accepts: entries of maps that no program writes, times that cannot be written, and JSON
// within protobuf that is not UTF-8, which Kubernetes keeps or replaces.
func stricter(c request, text string) bool {
	switch {
	case strings.Contains(text, "an entry of a map is malformed"):
		return true
	case strings.Contains(text, "a time outside of the years"):
		return impossibleTime.Match(c.Want)
	case strings.Contains(text, notUTF8):
		return !utf8.Valid(c.Want) || bytes.Contains(c.Want, []byte(`\ufffd`))
	}
	return false
}

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
	case "j":
		// A test without a value fails for a null that the same patch has written.
		found = ok && strings.HasSuffix(c.Error, "test failed") && bytes.Contains(c.Patch, []byte(`"value":null`))
	case "n":
		found = !ok && contains(text, []string{notUTF8}) || ok && strings.HasSuffix(c.Error, "into Go value of type float64")
	case "D":
		found = !ok && c.Error == "" && stricter(c, string(text))
	case "y":
		// Tags other than !!str have no effect, and what JSON cannot have is refused even if it is replaced later.
		// A question mark within a word of a list or map in one line is a part of the word.
		word := ok && bytes.Contains(c.Bytes, []byte("?")) && strings.Contains(c.Error, "did not find expected ','")
		found = bytes.Contains(c.Bytes, []byte("!")) || word || !ok && contains(text, []string{"unsupported", "unknown anchor", "an alias cannot be a key"})
	}
	if found {
		knownCount++
	}
	return found
}
