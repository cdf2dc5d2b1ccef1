// Compares Vigil with Kubernetes' own code: random objects of the built-in kinds in protobuf and JSON, random strategic
// merge patches, and patches like those of kubectl apply.
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
	"sort"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"
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
	Bytes   []byte          `json:"bytes,omitempty"`  // of d
	Object  json.RawMessage `json:"object,omitempty"` // of e and p
	Patch   json.RawMessage `json:"patch,omitempty"`
	Want    json.RawMessage `json:"want,omitempty"`
	Error   string          `json:"error,omitempty"`
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
		// Each case has its own random numbers, so that a patch that is discarded and made again does not change later cases.
		r := rand.New(rand.NewSource(seed<<20 + int64(i)))
		switch i % 5 {
		case 0, 1:
			found = append(found, protobufCase(r))
		case 2, 3:
			found = append(found, patchCase(r))
		case 4:
			found = append(found, strictCase(r))
		}
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

func check(path string, count int, seed int64) {
	p := startProgram(path)
	wrong := 0
	failures := map[string]int{}
	complain := func(c request, got string) {
		wrong++
		if wrong <= 5 {
			text, _ := json.Marshal(c)
			fmt.Printf("WRONG %s\n  got %s\n", text, got)
		}
	}
	for _, c := range cases(count, seed) {
		switch c.Op {
		case "d":
			ok, got := p.ask('d', c.Bytes)
			if !ok || !reflect.DeepEqual(parse(got), parse(c.Want)) {
				complain(c, string(got))
				continue
			}
			ok, wire := p.ask('e', c.Want)
			if !ok {
				complain(c, string(wire))
				continue
			}
			back, _, err := codec.Decode(wire, nil, nil)
			if err != nil || !reflect.DeepEqual(parse(toJSON(back)), parse(throughJSON(back, c.Want))) {
				complain(c, fmt.Sprintf("encoded: %v %s", err, toJSON(back)))
			}
		case "s":
			_, got := p.ask('s', []byte(c.Version), []byte(c.Kind), c.Object)
			if before(string(got)) != before(c.Error) {
				complain(c, string(got))
			}
		case "p":
			ok, got := p.ask('p', []byte(c.Version), []byte(c.Kind), c.Object, c.Patch)
			if c.Error != "" {
				failures[c.Error[:min(30, len(c.Error))]]++
			}
			if ok != (c.Error == "") || ok && !reflect.DeepEqual(parse(got), parse(c.Want)) {
				complain(c, string(got))
			}
		}
	}
	var texts []string
	for text, n := range failures {
		texts = append(texts, fmt.Sprintf("%d %s", n, text))
	}
	sort.Strings(texts)
	fmt.Printf("%d cases, %d wrong; errors: %q\n", count, wrong, texts)
	if wrong > 0 {
		os.Exit(1)
	}
}
