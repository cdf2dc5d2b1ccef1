// Prints the properties of the Go types of Kubernetes' built-in kinds as JSON: names, protobuf numbers, pointers and
// merge keys. tools/kubegen-schema.py makes the table of src/kube/types/schema from them.
package main

import (
	"encoding/json"
	"log"
	"os"
	"reflect"
	"sort"
	"strings"

	discovery "k8s.io/api/apidiscovery/v2"
	extensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/scheme"
	registration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

type field struct {
	Name     string `json:"name"` // of the JSON member; "" if it is inlined
	Inline   bool   `json:"inline,omitempty"`
	Number   string `json:"number,omitempty"` // of protobuf
	Wire     string `json:"wire,omitempty"`
	Kind     string `json:"kind"`
	Type     string `json:"type,omitempty"`  // of messages
	Shape    string `json:"shape,omitempty"` // list, map, wrapped (a list in its own message), map-wrapped
	Pointer  bool   `json:"pointer,omitempty"`
	Empty    string `json:"empty,omitempty"` // omitempty, omitzero
	Strategy string `json:"strategy,omitempty"`
	MergeKey string `json:"mergeKey,omitempty"`
}

type kind struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Type       string `json:"type"`
}

type facts struct {
	Kinds []kind             `json:"kinds"`
	Types map[string][]field `json:"types"`
}

// Types that are not encoded member by member.
var special = map[reflect.Type]string{
	reflect.TypeOf(meta.Time{}):                               "time",
	reflect.TypeOf(meta.MicroTime{}):                          "microtime",
	reflect.TypeOf(meta.Duration{}):                           "duration",
	reflect.TypeOf(resource.Quantity{}):                       "quantity",
	reflect.TypeOf(intstr.IntOrString{}):                      "intorstring",
	reflect.TypeOf(runtime.RawExtension{}):                    "raw",
	reflect.TypeOf(meta.FieldsV1{}):                           "raw",
	reflect.TypeOf(extensions.JSON{}):                         "raw",
	reflect.TypeOf(extensions.JSONSchemaPropsOrBool{}):        "schema_or_bool",
	reflect.TypeOf(extensions.JSONSchemaPropsOrArray{}):       "schema_or_array",
	reflect.TypeOf(extensions.JSONSchemaPropsOrStringArray{}): "schema_or_strings",
}

var found = facts{Types: map[string][]field{}}

func name(t reflect.Type) string { return t.PkgPath() + "." + t.Name() }

type unmarshaler interface{ Unmarshal([]byte) error }

func wrapped(t reflect.Type) bool {
	_, ok := reflect.New(t).Interface().(unmarshaler)
	return ok && t.Kind() == reflect.Slice
}

// Fills in the properties that follow from the type.
func (f *field) is(t reflect.Type) {
	if t.Kind() == reflect.Pointer {
		f.Pointer = true
		t = t.Elem()
	}
	if kind, ok := special[t]; ok {
		f.Kind = kind
		if strings.HasPrefix(kind, "schema_") {
			f.Type = name(reflect.TypeOf(extensions.JSONSchemaProps{}))
		}
		return
	}
	switch t.Kind() {
	case reflect.Struct:
		f.Kind, f.Type = "message", name(t)
		walk(t)
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			f.Kind = "bytes"
			return
		}
		if wrapped(t) {
			f.Shape += "wrapped"
		} else {
			f.Shape += "list"
		}
		f.is(t.Elem())
	case reflect.Map:
		f.Shape += "map"
		f.is(t.Elem())
	case reflect.Float64:
		f.Kind = "double"
	case reflect.String, reflect.Bool, reflect.Int32, reflect.Int64:
		f.Kind = t.Kind().String()
	case reflect.Uint8, reflect.Uint32:
		f.Kind = "int32"
	default:
		log.Fatalf("%v: unknown kind of Go type", t)
	}
}

func walk(t reflect.Type) {
	if _, done := found.Types[name(t)]; done {
		return
	}
	found.Types[name(t)] = []field{}
	fields := []field{}
	for i := 0; i < t.NumField(); i++ {
		member := t.Field(i)
		tag := strings.Split(member.Tag.Get("json"), ",")
		if tag[0] == "-" || !member.IsExported() {
			continue
		}
		f := field{Name: tag[0], Strategy: member.Tag.Get("patchStrategy"),
			MergeKey: member.Tag.Get("patchMergeKey")}
		f.Inline = tag[0] == ""
		for _, option := range tag[1:] {
			if strings.HasPrefix(option, "omit") {
				f.Empty += option
			}
		}
		if pb := strings.Split(member.Tag.Get("protobuf"), ","); len(pb) > 1 {
			f.Wire, f.Number = pb[0], pb[1]
		}
		f.is(member.Type)
		fields = append(fields, f)
	}
	found.Types[name(t)] = fields
}

func stable(version string) bool {
	return !strings.Contains(version, "alpha") && !strings.Contains(version, "beta")
}

func add(version, kindName string, t reflect.Type) {
	walk(t)
	found.Kinds = append(found.Kinds, kind{version, kindName, name(t)})
}

func main() {
	for _, into := range []func(*runtime.Scheme) error{extensions.AddToScheme, registration.AddToScheme} {
		if err := into(scheme.Scheme); err != nil {
			log.Fatal(err)
		}
	}
	for gvk, t := range scheme.Scheme.AllKnownTypes() {
		own := !strings.HasPrefix(t.PkgPath(), "k8s.io/apimachinery/")
		if own && stable(gvk.Version) && gvk.Version != runtime.APIVersionInternal {
			add(gvk.GroupVersion().String(), gvk.Kind, t)
		}
	}
	core := schema.GroupVersion{Version: "v1"}.String()
	for _, object := range []any{meta.Status{}, meta.DeleteOptions{}, meta.WatchEvent{},
		meta.APIGroup{}, meta.APIGroupList{}, meta.APIResourceList{}} {
		add(core, reflect.TypeOf(object).Name(), reflect.TypeOf(object))
	}
	// This kind is older than versions of kinds and is sent without one.
	add("", "APIVersions", reflect.TypeOf(meta.APIVersions{}))
	add(discovery.SchemeGroupVersion.String(), "APIGroupDiscoveryList", reflect.TypeOf(discovery.APIGroupDiscoveryList{}))
	for _, object := range []any{meta.PartialObjectMetadata{}, meta.PartialObjectMetadataList{}} {
		add(meta.SchemeGroupVersion.String(), reflect.TypeOf(object).Name(), reflect.TypeOf(object))
	}
	walk(reflect.TypeOf(extensions.JSONSchemaProps{}))
	sort.Slice(found.Kinds, func(i, j int) bool {
		a, b := found.Kinds[i], found.Kinds[j]
		return a.APIVersion < b.APIVersion || a.APIVersion == b.APIVersion && a.Kind < b.Kind
	})
	if err := json.NewEncoder(os.Stdout).Encode(found); err != nil {
		log.Fatal(err)
	}
}
