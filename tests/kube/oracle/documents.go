package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand"
	"strings"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	kubejson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// -- Patches of any document --

var memberNames = []string{"a", "b", "a/b", "m~n", "", "0", "ä"}

func anyValue(r *rand.Rand, depth int) any {
	switch n := r.Intn(9); {
	case n < 2 && depth > 0:
		object := map[string]any{}
		for i := r.Intn(4); i > 0; i-- {
			object[pick(r, memberNames...)] = anyValue(r, depth-1)
		}
		return object
	case n < 4 && depth > 0:
		list := []any{}
		for i := r.Intn(4); i > 0; i-- {
			list = append(list, anyValue(r, depth-1))
		}
		return list
	case n == 4:
		return nil
	case n == 5:
		return r.Intn(2) == 0
	case n == 6:
		return r.Intn(5)
	}
	return pick(r, "", "x", "y", "<&>", "\u2028\"")
}

func anyObject(r *rand.Rand) map[string]any {
	object := map[string]any{}
	for range 3 {
		object[pick(r, memberNames...)] = anyValue(r, 3)
	}
	return object
}

// A path that often exists in the document.
func anyPath(r *rand.Rand, document any) string {
	escape := strings.NewReplacer("~", "~0", "/", "~1")
	path := ""
	for r.Intn(6) > 0 {
		switch v := document.(type) {
		case map[string]any:
			name := pick(r, memberNames...)
			path += "/" + escape.Replace(name)
			document = v[name]
		case []any:
			at := r.Intn(len(v) + 2)
			path += "/" + pick(r, fmt.Sprint(at), fmt.Sprint(at), fmt.Sprint(at), "-", "-1", "01", "x")
			if at < len(v) {
				document = v[at]
			}
		default:
			if path != "" && r.Intn(4) > 0 {
				return path
			}
			path += "/a"
		}
	}
	return path
}

// ok = false where Kubernetes panics.
func jsonPatchCase(r *rand.Rand) (c request, ok bool) {
	object := anyObject(r)
	operations := []any{}
	for i := r.Intn(4) + 1; i > 0; i-- {
		operation := map[string]any{"op": pick(r, "add", "remove", "replace", "move", "copy", "test"), "path": anyPath(r, object)}
		if r.Intn(20) == 0 {
			operation["op"] = pick(r, "merge", "", "ADD")
		}
		if name := operation["op"]; name == "move" || name == "copy" {
			operation["from"] = anyPath(r, object)
		}
		if name := operation["op"]; (name == "add" || name == "replace" || name == "test") && r.Intn(12) > 0 {
			operation["value"] = anyValue(r, 2)
		}
		operations = append(operations, operation)
	}
	c = request{Op: "j", Object: toJSON(object), Patch: toJSON(operations)}
	defer func() { ok = recover() == nil }()
	patch, err := jsonpatch.DecodePatch(c.Patch)
	if err == nil {
		c.Want, err = patch.Apply(c.Object)
	}
	if err != nil {
		c.Want, c.Error = nil, err.Error()
	}
	return c, true
}

func mergePatchCase(r *rand.Rand) request {
	c := request{Op: "m", Object: toJSON(anyObject(r)), Patch: toJSON(anyObject(r))}
	var err error
	c.Want, err = jsonpatch.MergePatch(c.Object, c.Patch)
	must(err)
	return c
}

// -- Damaged text --

// Changes a few bytes; pieces are inserted as a whole, because single bytes rarely make something that means anything.
func damage(r *rand.Rand, text []byte, pieces []string) []byte {
	text = bytes.Clone(text)
	for i := r.Intn(3) + 1; i > 0; i-- {
		at := r.Intn(len(text) + 1)
		switch r.Intn(5) {
		case 0:
			text = text[:at]
		case 1:
			text = append(text[:at:at], append([]byte(pieces[r.Intn(len(pieces))]), text[at:]...)...)
		case 2:
			if at < len(text) {
				text[at] ^= byte(1 << r.Intn(8))
			}
		case 3:
			to := min(len(text), at+r.Intn(5))
			text = append(text[:at:at], text[to:]...)
		case 4:
			to := min(len(text), at+r.Intn(20))
			text = append(text[:to:to], text[at:]...)
		}
	}
	return text
}

var jsonPieces = []string{"{", "}", "[", "]", ",", ":", "\"", "\\", "\\u12", "\\ud800", "\\ud83d\\ude00", "1e5", "-", "0", "01", "1.", ".5", "1e+",
	"18446744073709551616", "1e400", "null", "nul", "true", " ", "\t", "\x01", "\x7f", "ä", "\xff", "\xed\xa0\x80", "\"a\":1,", "//", "'"}

func jsonCase(r *rand.Rand) request {
	text := toJSON(anyObject(r))
	if r.Intn(4) > 0 {
		text = damage(r, text, jsonPieces)
	}
	c := request{Op: "n", Bytes: text}
	var value any
	if err := kubejson.UnmarshalCaseSensitivePreserveInts(text, &value); err != nil {
		c.Error = err.Error()
	} else {
		c.Want = toJSON(value)
	}
	return c
}

// -- YAML --

var scalars = []string{"a", "yes", "No", "on", "~", "null", "true", "0x1F", "0o17", "017", "1_000", "1e3", ".5", "1.5", "-.inf", ".NaN", "12:30", "0b11",
	"2026-11-15", "2026-11-15T06:00:00Z", "'it''s'", "\"a\\tb\\x41\\u00e4\"", "\"\"", "''", "\"1\"", "'yes'", "a b", "a#b", "a: b", "- a", "<<", "=", "!!str 1",
	"!!int \"3\"", "!!float 1", "!!binary aGk=", "!!bool yes", "!!null ''", "!x y", "18446744073709551615", "18446744073709551616", "-9223372036854775808",
	"+1", "1.", "0.0", "1e400", "ä", "0x", "0b", "--1", "1__0", "_1", "0x_1F", "123456789012345678901234567890", "1e-7", "100000000000000000000000.5"}

func yamlText(r *rand.Rand, indent int) string {
	pad := strings.Repeat("  ", indent)
	switch n := r.Intn(8); {
	case n < 3 && indent < 4:
		text := ""
		for i := range r.Intn(3) + 1 {
			key := fmt.Sprint(pick(r, "a", "b", "\"c\"", "1", "true", "? x", "~", "1.5", "k"), pick(r, "", "", fmt.Sprint(i)))
			text += "\n" + pad + key + ": " + yamlText(r, indent+1)
		}
		return text
	case n < 5 && indent < 4:
		text := ""
		for i := r.Intn(3) + 1; i > 0; i-- {
			text += "\n" + pad + "- " + yamlText(r, indent+1)
		}
		return text
	case n == 5:
		return pick(r, "|", ">", "|-", ">+", "|2") + "\n" + pad + "  line\n" + pad + "  more " + pick(r, "# no", "") + "\n"
	case n == 6:
		return pick(r, "[", "{a: ", "&x ", "*x ", "[a, ", "{") + pick(r, scalars...) + pick(r, "]", "}", "", ", b]")
	}
	return pick(r, scalars...) + pick(r, "", "", " # comment")
}

var yamlPieces = []string{"\n", "  ", "- ", ": ", "? ", "&x ", "*x", "!!str ", "'", "\"", "#", "|", ">", "[", "]", "{", "}", ",", "---\n", "...\n", "%YAML 1.1\n",
	"%TAG ! x\n", "\t", "\xff", "\u0085", "\u2028", "\x00", "<<: *x", "@", "`"}

// The answer of Kubernetes to a document, or ok = false where it panics.
func yamlCase(r *rand.Rand) (c request, ok bool) {
	text := []byte(strings.TrimPrefix(yamlText(r, 0), "\n") + "\n")
	if r.Intn(2) == 0 {
		text = damage(r, text, yamlPieces)
	}
	c = request{Op: "y", Bytes: text}
	defer func() { ok = recover() == nil }()
	made, err := yaml.YAMLToJSON(text)
	if err != nil {
		c.Error = err.Error()
	} else {
		c.Want = json.RawMessage(made)
	}
	return c, true
}

// Our YAML must mean the same to Kubernetes.
func writtenYAMLCase(r *rand.Rand) request {
	value := anyObject(r)
	for range 3 {
		value[pick(r, scalars...)] = pick(r, scalars...)
	}
	text := toJSON(value)
	return request{Op: "w", Object: text, Want: text}
}

// -- Damaged protobuf --

var bytePieces = []string{"\x00", "\x0a\x00", "\x0a\x03abc", "\x80\x01", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
	"\x08\x01", "\x0b", "\x0c", "\x0b\x0c", "\x0d\x01\x02\x03\x04", "\x09\x01\x02\x03\x04\x05\x06\x07\x08", "\xfa\xff\xff\xff\x7f\x00", "\x07", "\x12\x02\x0a\x00"}

func damagedProtobufCase(r *rand.Rand) (c request, ok bool) {
	c = protobufCase(r)
	const magic = 4
	c.Op = "D"
	c.Bytes = append(c.Bytes[:magic:magic], damage(r, c.Bytes[magic:], bytePieces)...)
	defer func() { ok = recover() == nil }()
	read, _, err := codec.Decode(c.Bytes, nil, nil)
	if err == nil { // what cannot be written as JSON counts as refused
		c.Want, err = json.Marshal(read)
	}
	if err != nil {
		c.Want, c.Error = nil, err.Error()
	}
	return c, true
}
