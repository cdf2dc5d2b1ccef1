package main

import (
	"encoding/json"
	"maps"
	"math/rand"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	serializer "k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/client-go/kubernetes/scheme"
)

var strict = serializer.NewSerializerWithOptions(serializer.DefaultMetaFactory, scheme.Scheme, scheme.Scheme,
	serializer.SerializerOptions{Strict: true})

// An object that may have an unknown member, or one of the wrong type, at a random place.
func strictCase(r *rand.Rand) request {
	for {
		gvk := kinds[r.Intn(len(kinds))]
		var value any
		must(json.Unmarshal(toJSON(newObject(r, gvk)), &value))
		unknown := 0
		spoil(r, value, r.Intn(3) == 0, &unknown)
		text := toJSON(value)
		_, _, err := strict.Decode(text, nil, nil)
		c := request{Op: "s", Version: gvk.GroupVersion().String(), Kind: gvk.Kind, Object: text}
		switch {
		case err == nil:
			return c
		case runtime.IsStrictDecodingError(err):
			c.Error = strings.TrimPrefix(err.Error(), "strict decoding error: ")
			return c
		case strings.HasPrefix(err.Error(), "json: cannot unmarshal"):
			c.Error = err.Error()
			return c
		}
	}
}

func spoil(r *rand.Rand, value any, types bool, count *int) {
	switch v := value.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if name == "kind" || name == "apiVersion" {
				continue
			}
			if types && *count == 0 && v[name] != nil && r.Intn(12) == 0 {
				v[name] = []any{map[string]any{}, "text", true, 1}[r.Intn(4)]
				*count++
				continue
			}
			spoil(r, v[name], types, count)
		}
		if !types && *count == 0 && r.Intn(6) == 0 {
			v["unknownMember"] = "x"
			*count++
		}
	case []any:
		for _, item := range v {
			spoil(r, item, types, count)
		}
	}
}
