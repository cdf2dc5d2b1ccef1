// Compares Vigil's codec of etcd's messages with Go's, which etcd uses: random messages and damaged ones as protobuf and as the
// JSON of the gateway, and what etcd writes to its files. Both accept a message with the same meaning and encode it to as many bytes, or both refuse it.
//
//	go run ./codec PROGRAM COUNT [SEED]    COUNT cases of each type; PROGRAM is codec_oracle
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log"
	"math/rand"
	"os"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"

	_ "go.etcd.io/etcd/api/v3/etcdserverpb"
	_ "go.etcd.io/etcd/server/v3/etcdserver/api/v3election/v3electionpb"
	_ "go.etcd.io/etcd/server/v3/etcdserver/api/v3lock/v3lockpb"
	_ "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// A message of ours and the type of Go.
type pair struct {
	name string
	kind protoreflect.MessageType
}

// The types that both have.
func pairs(tables []string) []pair {
	found, missing := []pair{}, 0
	for _, line := range tables {
		name, is := strings.CutPrefix(line, "message ")
		if !is {
			continue
		}
		theirs := name
		if other, is := logNames[name]; is {
			theirs = other
		}
		kind, err := protoregistry.GlobalTypes.FindMessageByName(protoreflect.FullName(theirs))
		if err != nil {
			missing++
			continue
		}
		found = append(found, pair{name, kind})
	}
	fmt.Printf("%d types, %d are not etcd's\n", len(found), missing)
	return found
}

func encode(message proto.Message) []byte {
	encoded, err := proto.MarshalOptions{Deterministic: true}.Marshal(message)
	must(err)
	return encoded
}

// What Go makes of the bytes, without the fields that it does not know; nil if it refuses them.
func decode(kind protoreflect.MessageType, encoded []byte) proto.Message {
	message := kind.New().Interface()
	if (proto.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(encoded, message) != nil {
		return nil
	}
	return message
}

// As etcd's gateway reads a body: one JSON value, then the message in it.
func decodeJSON(kind protoreflect.MessageType, text []byte) proto.Message {
	var value json.RawMessage
	message := kind.New().Interface()
	if json.NewDecoder(bytes.NewReader(text)).Decode(&value) != nil ||
		(protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(value, message) != nil {
		return nil
	}
	return message
}

func parse(text []byte) any {
	var value any
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&value); err != nil {
		return fmt.Sprintf("not JSON: %v: %s", err, text)
	}
	return value
}

// One comparison: what is sent, and what is wrong with the answer, if anything.
type test struct {
	name  string // of our message
	kind  protoreflect.MessageType
	sent  []byte
	judge func(answer) string
}

func refused(a answer, by proto.Message) string {
	if a.ok == (by != nil) {
		return ""
	}
	return fmt.Sprintf("accepted %v, by Go %v", a.ok, by != nil)
}

func wireTest(p pair, sent []byte) test {
	message := decode(p.kind, sent)
	if message != nil && groupsExceed(p.kind.Descriptor(), sent) {
		message = nil // only Go accepts it
	}
	return test{p.name, p.kind, sent, func(a answer) string {
		if wrong := refused(a, message); wrong != "" || message == nil {
			return wrong
		}
		// Go writes the member of a oneof last, whatever its number is; else the bytes are the same.
		want, got := encode(message), decode(p.kind, a.bytes)
		if got == nil || len(a.bytes) != len(want) || !bytes.Equal(encode(got), want) {
			return fmt.Sprintf("encoded to %x, by Go to %x", a.bytes, want)
		}
		return ""
	}}
}

func toJSONTest(p pair, message proto.Message) test {
	want, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(message)
	must(err)
	return test{p.name, p.kind, encode(message), func(a answer) string {
		if !a.ok || !reflect.DeepEqual(parse(a.bytes), parse(want)) {
			return fmt.Sprintf("%v %s, by Go %s", a.ok, a.bytes, want)
		}
		return ""
	}}
}

// Go reads the first number in a string, of which the exponent may lack its digits if a character follows that ends a number.
var noExponent = regexp.MustCompile(`"-?[0-9]+(\.[0-9]+)?[eE][-+]?[^-+.0-9A-Z_a-z"]`)

func fromJSONTest(p pair, text []byte) test {
	message := decodeJSON(p.kind, text)
	return test{p.name, p.kind, text, func(a answer) string {
		if wrong := refused(a, message); wrong != "" || message == nil {
			if !a.ok && noExponent.Match(text) {
				return "" // only Go accepts it
			}
			return wrong
		}
		if got := decode(p.kind, a.bytes); got == nil || !proto.Equal(got, message) {
			return fmt.Sprintf("read as %v, by Go as %v", got, message)
		}
		return ""
	}}
}

// How many wrong answers are printed.
const shown = 20

// Sends the tests to the program, which is started with these arguments.
func run(program, what string, tests []test, arguments ...string) int {
	wrong, accepted := 0, 0
	for i, a := range ask(program, tests, arguments...) {
		if a.ok {
			accepted++
		}
		if found := tests[i].judge(a); found != "" {
			if wrong++; wrong <= shown {
				fmt.Printf("WRONG %s %s: %q (%x)\n  %s\n", what, tests[i].name, tests[i].sent, tests[i].sent, found)
			}
		}
	}
	fmt.Printf("%s: %d cases, %d accepted, %d wrong\n", what, len(tests), accepted, wrong)
	return wrong
}

func main() {
	if len(os.Args) < 3 {
		log.Fatal("PROGRAM COUNT [SEED]")
	}
	program := os.Args[1]
	count, err := strconv.Atoi(os.Args[2])
	must(err)
	seed := time.Now().UnixNano()
	if len(os.Args) > 3 {
		seed, err = strconv.ParseInt(os.Args[3], 10, 64)
		must(err)
	}
	fmt.Printf("seed %d\n", seed)
	m := maker{rand.New(rand.NewSource(seed))}
	var wire, files, toJSON, fromJSON []test
	tables := tablesOf(program)
	numbers := numbersOf(tables)
	for _, p := range pairs(tables) {
		if logNames[p.name] == "" {
			for _, sent := range groups(p.kind.Descriptor()) {
				wire = append(wire, wireTest(p, sent))
			}
		}
		for range count {
			message, other := m.message(p.kind), m.message(p.kind)
			if logNames[p.name] != "" {
				files = append(files, logTest(p.name, p.kind, message, numbers))
				continue
			}
			wire = append(wire, wireTest(p, encode(message)), wireTest(p, m.damageWire(encode(message), encode(other))))
			toJSON = append(toJSON, toJSONTest(p, message))
			text := m.json(message)
			fromJSON = append(fromJSON, fromJSONTest(p, text), fromJSONTest(p, m.damageJSON(text)))
		}
	}
	wrong := run(program, "protobuf", wire) + run(program, "etcd's files", files) + run(program, "to JSON", toJSON, "--to-json") +
		run(program, "from JSON", fromJSON, "--from-json")
	if wrong > 0 {
		os.Exit(1)
	}
}
