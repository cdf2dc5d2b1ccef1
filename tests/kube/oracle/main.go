// Compares Vigil with Kubernetes' own code: random objects of the built-in kinds in protobuf and JSON, also damaged; random
// strategic merge patches, JSON patches and merge patches, and patches like those of kubectl apply; server-side applies and
// updates by several managers; JSON and YAML documents, also damaged.
//
//	go run ./oracle check PROGRAM COUNT SEED    compares the answers of kube_oracle
//	go run ./oracle record COUNT SEED           writes cases and correct answers for tests/kube_oracle.py
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

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	"vigil/tests/kube/subject"
)

var kinds = []schema.GroupVersionKind{
	{Version: "v1", Kind: "Namespace"}, {Version: "v1", Kind: "ConfigMap"}, {Version: "v1", Kind: "Secret"},
	{Version: "v1", Kind: "Event"}, {Version: "v1", Kind: "Pod"}, {Version: "v1", Kind: "Service"},
	{Version: "v1", Kind: "Node"}, {Version: "v1", Kind: "PersistentVolume"}, {Version: "v1", Kind: "ServiceAccount"},
	{Version: "v1", Kind: "Endpoints"}, {Version: "v1", Kind: "PodList"},
	{Group: "apps", Version: "v1", Kind: "Deployment"}, {Group: "apps", Version: "v1", Kind: "StatefulSet"},
	{Group: "apps", Version: "v1", Kind: "DaemonSet"}, {Group: "batch", Version: "v1", Kind: "CronJob"},
	{Group: "batch", Version: "v1", Kind: "Job"}, {Group: "coordination.k8s.io", Version: "v1", Kind: "Lease"},
	{Group: "networking.k8s.io", Version: "v1", Kind: "Ingress"},
	{Group: "networking.k8s.io", Version: "v1", Kind: "NetworkPolicy"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"},
	{Group: "discovery.k8s.io", Version: "v1", Kind: "EndpointSlice"},
	{Group: "policy", Version: "v1", Kind: "PodDisruptionBudget"},
	{Group: "autoscaling", Version: "v2", Kind: "HorizontalPodAutoscaler"},
	{Group: "authorization.k8s.io", Version: "v1", Kind: "SubjectAccessReview"},
	{Group: "storage.k8s.io", Version: "v1", Kind: "StorageClass"},
	{Group: "resource.k8s.io", Version: "v1", Kind: "ResourceSlice"},
	{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"},
}

// A case for the program, and the expected answer.
type request struct {
	Op      string          `json:"op"`
	Version string          `json:"apiVersion,omitempty"`
	Kind    string          `json:"kind,omitempty"`
	Bytes   []byte          `json:"bytes,omitempty"`  // of d, D, n and y
	Object  json.RawMessage `json:"object,omitempty"` // of the others
	Patch   json.RawMessage `json:"patch,omitempty"`
	Want    json.RawMessage `json:"want,omitempty"`
	Error   string          `json:"error,omitempty"`

	Ownership *ownership `json:"ownership,omitempty"` // of a
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func toJSON(object any) []byte {
	text, err := json.Marshal(object)
	must(err)
	return text
}

func newObject(r *rand.Rand, gvk schema.GroupVersionKind) runtime.Object {
	object, err := scheme.Scheme.New(gvk)
	must(err)
	(&filler{r: r}).fill(reflect.ValueOf(object).Elem(), 0)
	object.GetObjectKind().SetGroupVersionKind(gvk)
	return object
}

// JSON as Go reads it: a null pointer counts as missing.
func throughJSON(like runtime.Object, text []byte) []byte {
	object := reflect.New(reflect.TypeOf(like).Elem()).Interface()
	must(json.Unmarshal(text, object))
	return toJSON(object)
}

var codec = protobuf.NewSerializer(scheme.Scheme, scheme.Scheme)

func protobufCase(r *rand.Rand) request {
	object := newObject(r, kinds[r.Intn(len(kinds))])
	var wire bytes.Buffer
	must(codec.Encode(object, &wire))
	// Decoded again as the server would do it, because the encoding itself drops some values.
	read, _, err := codec.Decode(wire.Bytes(), nil, nil)
	must(err)
	return request{Op: "d", Bytes: wire.Bytes(), Want: toJSON(read)}
}

func main() {
	addTypes()
	if len(os.Args) < 2 {
		log.Fatal("check PROGRAM COUNT SEED, or record COUNT SEED")
	}
	number := func(at int) int {
		n, err := strconv.Atoi(os.Args[at])
		must(err)
		return n
	}
	switch os.Args[1] {
	case "check":
		check(os.Args[2], number(3), int64(number(4)))
	case "record":
		out := json.NewEncoder(os.Stdout)
		for _, c := range cases(number(2), int64(number(3))) {
			must(out.Encode(c))
		}
	}
}

func cases(count int, seed int64) []request {
	found := applyCases()
	for i := 0; i < count; i++ {
		found = append(found, recordedCase(seed, i))
	}
	return found
}

// Each case has its own random numbers, so that a patch that is discarded and made again does not change later cases.
func recordedCase(seed int64, i int) request {
	r := rand.New(rand.NewSource(seed<<20 + int64(i)))
	switch i % 5 {
	case 0, 1:
		return protobufCase(r)
	case 2, 3:
		return patchCase(r)
	}
	return strictCase(r)
}

// Cases that are compared, but not recorded.
func moreCases(seed int64, i int) []request {
	r := rand.New(rand.NewSource(seed<<20 + int64(i)))
	found := []request{mergePatchCase(r), jsonCase(r), writtenYAMLCase(r)}
	if c, ok := jsonPatchCase(r); ok {
		found = append(found, c)
	}
	if c, ok := yamlCase(r); ok {
		found = append(found, c)
	}
	if c, ok := damagedProtobufCase(r); ok {
		found = append(found, c)
	}
	if i%4 == 0 {
		found = append(found, ownershipCases(r)...)
	}
	return found
}

// Removes nulls and directives, as happens when a patched object is read into Go's types.
func normal(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for key, member := range v {
			if member == nil || key[:min(1, len(key))] == "$" {
				delete(v, key)
			} else {
				v[key] = normal(member)
			}
		}
	case []any:
		for i := range v {
			v[i] = normal(v[i])
		}
	}
	return value
}

// Removes the name of the Go type, because our table does not have the names of Go's string types, and the names of
// inlined structs.
func before(text string) string {
	head, _, _ := strings.Cut(text, " of type ")
	return inlined.ReplaceAllString(head, "")
}

var inlined = regexp.MustCompile(`(PersistentVolumeSource|VolumeSource|ProbeHandler|EphemeralContainerCommon|` +
	`DeviceConfiguration|IngressRuleValue|LocalObjectReference)\.`)

func parse(text []byte) any {
	var value any
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&value); err != nil {
		return fmt.Sprintf("not JSON: %v: %s", err, text)
	}
	return value
}

// Sends a case to the program. Returns what is wrong, or nothing.
func ask(p *subject.Program, c request) string {
	switch c.Op {
	case "d":
		return askProtobuf(p, c)
	case "D":
		ok, got := p.Ask('d', c.Bytes)
		return differs(c, ok, got, parse(got))
	case "s":
		_, got := p.Ask('s', []byte(c.Version), []byte(c.Kind), c.Object)
		if before(string(got)) != before(c.Error) {
			return string(got)
		}
	case "p":
		ok, got := p.Ask('p', []byte(c.Version), []byte(c.Kind), c.Object, c.Patch)
		return differs(c, ok, got, parse(got))
	case "a":
		ok, got := p.Ask('a', []byte(c.Version), []byte(c.Kind), []byte(c.Ownership.How), []byte(c.Ownership.Manager),
			c.Ownership.Managed, c.Ownership.Live, c.Object)
		c.Want = toJSON(sorted(parse(c.Want)))
		return differs(c, ok, got, sorted(parse(got)))
	case "w":
		ok, got := p.Ask('w', c.Object)
		if !ok {
			return string(got)
		}
		made, err := yaml.YAMLToJSON(got)
		if err != nil {
			return fmt.Sprintf("%v: %s", err, got)
		}
		return differs(c, ok, made, parse(made))
	case "n", "y":
		ok, got := p.Ask(c.Op[0], c.Bytes)
		return differs(c, ok, got, parse(got))
	default:
		ok, got := p.Ask(c.Op[0], c.Object, c.Patch)
		return differs(c, ok, got, parse(got))
	}
	return ""
}

func askProtobuf(p *subject.Program, c request) string {
	ok, got := p.Ask('d', c.Bytes)
	if !ok || !reflect.DeepEqual(parse(got), parse(c.Want)) {
		return string(got)
	}
	ok, wire := p.Ask('e', c.Want)
	if !ok {
		return string(wire)
	}
	back, _, err := codec.Decode(wire, nil, nil)
	if err != nil || !reflect.DeepEqual(parse(toJSON(back)), parse(throughJSON(back, c.Want))) {
		return fmt.Sprintf("encoded: %v %s", err, toJSON(back))
	}
	return ""
}

// Writes each number in one way: 1e3 is 1000, and more than 64 bits are rounded.
func numbers(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for key := range v {
			v[key] = numbers(v[key])
		}
	case []any:
		for i := range v {
			v[i] = numbers(v[i])
		}
	case json.Number:
		_, whole := strconv.ParseInt(v.String(), 10, 64)
		if f, err := v.Float64(); err == nil && whole != nil {
			return json.Number(strconv.FormatFloat(f, 'f', -1, 64))
		}
	}
	return value
}

// Both accept it, with the same value, or both refuse it.
func differs(c request, ok bool, text []byte, value any) string {
	if ok != (c.Error == "") || ok && !reflect.DeepEqual(numbers(value), numbers(parse(c.Want))) {
		if known(c, ok, text) {
			return ""
		}
		return fmt.Sprintf("%v %s", ok, text)
	}
	return ""
}

// How many wrong answers are printed.
const shown = 20

func check(path string, count int, seed int64) {
	p := subject.Start(path)
	wrong, tried := 0, 0
	refused := map[string]int{} // by Kubernetes
	try := func(c request) {
		tried++
		if c.Error != "" {
			refused[c.Op]++
		}
		if got := ask(p, c); got != "" {
			wrong++
			if wrong <= shown {
				text, _ := json.Marshal(c)
				fmt.Printf("WRONG %s\n  input %q\n  got %s\n", text, c.Bytes, got)
			}
		}
	}
	for _, c := range applyCases() {
		try(c)
	}
	for i := range count {
		try(recordedCase(seed, i))
		for _, c := range moreCases(seed, i) {
			try(c)
		}
	}
	fmt.Printf("%d cases, %d wrong, %d known differences; refused: %v\n", tried, wrong, knownCount, refused)
	if wrong > 0 {
		os.Exit(1)
	}
}
