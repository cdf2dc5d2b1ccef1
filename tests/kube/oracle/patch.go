package main

import (
	"bytes"
	"encoding/json"
	"maps"
	"math/rand"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/kubernetes/scheme"
)

// How often Kubernetes is called, because its answer to a bad patch may depend on the random order of Go's maps.
const judgements = 8

// The answer of Kubernetes to a strategic merge patch, if it is always the same; error texts may vary.
func judge(gvk schema.GroupVersionKind, object, patch []byte) (c request, ok bool) {
	c, ok = judgeOnce(gvk, object, patch)
	for i := 1; ok && i < judgements; i++ {
		var again request
		again, ok = judgeOnce(gvk, object, patch)
		ok = ok && (again.Error == "") == (c.Error == "") && bytes.Equal(again.Want, c.Want)
	}
	return c, ok
}

func judgeOnce(gvk schema.GroupVersionKind, object, patch []byte) (c request, ok bool) {
	c = request{Op: "p", Version: gvk.GroupVersion().String(), Kind: gvk.Kind, Object: object, Patch: patch}
	defer func() {
		if recover() != nil { // Kubernetes panics on some patches of wrong types, where Vigil returns an error
			ok = false
		}
	}()
	kind, err := scheme.Scheme.New(gvk)
	must(err)
	merged, err := strategicpatch.StrategicMergePatch(object, patch, kind)
	if err != nil {
		c.Error = err.Error()
		return c, true
	}
	c.Want = toJSON(normal(parse(merged)))
	return c, true
}

var patchKinds = []schema.GroupVersionKind{
	{Version: "v1", Kind: "Pod"}, {Version: "v1", Kind: "Service"}, {Group: "apps", Version: "v1", Kind: "Deployment"},
	{Version: "v1", Kind: "ServiceAccount"}, {Version: "v1", Kind: "ConfigMap"},
}

func patchCase(r *rand.Rand) request {
	for {
		gvk := patchKinds[r.Intn(len(patchKinds))]
		original, modified := podLike(r, gvk), podLike(r, gvk)
		patch, kind := modified, r.Intn(4)
		if kind > 0 { // a patch as kubectl apply makes it; otherwise a whole object, with directives at random places
			dataStruct, err := scheme.Scheme.New(gvk)
			must(err)
			meta, err := strategicpatch.NewPatchMetaFromStruct(dataStruct)
			must(err)
			last := podLike(r, gvk)
			patch, err = strategicpatch.CreateThreeWayMergePatch(last, modified, original, meta, true)
			if err != nil {
				continue
			}
		}
		if kind < 2 {
			patch = disturb(r, patch)
		}
		if c, ok := judge(gvk, toJSON(normal(parse(original))), patch); ok {
			return c
		}
	}
}

// An object whose lists use few different keys, so that patches often address existing items.
func podLike(r *rand.Rand, gvk schema.GroupVersionKind) []byte {
	container := func() any {
		c := map[string]any{"name": pick(r, "c1", "c2", "c3", "c4"), "image": pick(r, "a", "b")}
		if r.Intn(2) == 0 {
			c["ports"] = list(r, func() any {
				return map[string]any{"containerPort": r.Intn(3) + 80, "name": pick(r, "x", "y")}
			}, "containerPort")
		}
		if r.Intn(2) == 0 {
			c["env"] = list(r, func() any {
				return map[string]any{"name": pick(r, "A", "B", "C"), "value": pick(r, "1", "2")}
			}, "name")
		}
		if r.Intn(3) == 0 {
			c["args"] = []any{pick(r, "1", "2"), pick(r, "1", "2")}
		}
		return c
	}
	volume := func() any {
		v := map[string]any{"name": pick(r, "v1", "v2", "v3")}
		v[pick(r, "emptyDir", "configMap", "secret")] = map[string]any{"name": pick(r, "a", "b")}
		return v
	}
	meta := map[string]any{"name": "p", "labels": map[string]any{pick(r, "a", "b", "c"): pick(r, "1", "2")},
		"finalizers": list(r, func() any { return pick(r, "f1", "f2", "f3", "f4") }, "")}
	pod := map[string]any{"containers": list(r, container, "name"), "volumes": list(r, volume, "name"),
		"tolerations": []any{map[string]any{"key": pick(r, "a", "b")}}}
	object := map[string]any{"metadata": meta}
	switch gvk.Kind {
	case "Pod":
		object["spec"] = pod
	case "Deployment":
		object["spec"] = map[string]any{"replicas": r.Intn(3), "template": map[string]any{"spec": pod},
			"strategy": map[string]any{"type": pick(r, "Recreate", "RollingUpdate"), pick(r, "rollingUpdate", "x"): map[string]any{"maxSurge": 1}}}
	case "Service":
		object["spec"] = map[string]any{"ports": list(r, func() any {
			return map[string]any{"port": r.Intn(3) + 80, "name": pick(r, "x", "y")}
		}, "port"), "selector": map[string]any{pick(r, "a", "b"): "1"}}
	case "ServiceAccount":
		object["secrets"] = list(r, func() any { return map[string]any{"name": pick(r, "s1", "s2", "s3")} }, "name")
	case "ConfigMap":
		object["data"] = map[string]any{pick(r, "a", "b", "c"): pick(r, "1", "2")}
	}
	return toJSON(object)
}

func pick(r *rand.Rand, words ...string) string { return words[r.Intn(len(words))] }

// A random list with at most one item per key.
func list(r *rand.Rand, item func() any, key string) []any {
	found, seen := []any{}, map[any]bool{}
	for i := r.Intn(5); i > 0; i-- {
		one := item()
		id := one
		if key != "" {
			id = one.(map[string]any)[key]
		}
		if !seen[id] {
			seen[id] = true
			found = append(found, one)
		}
	}
	return found
}

// Puts directives and nulls into a patch at random places.
func disturb(r *rand.Rand, patch []byte) []byte {
	var value any
	must(json.Unmarshal(patch, &value))
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for _, key := range slices.Sorted(maps.Keys(v)) { // in one order, so that a seed always makes the same cases
				walk(v[key])
				if r.Intn(25) == 0 {
					v[key] = nil
				}
			}
			if r.Intn(12) == 0 {
				v["$patch"] = pick(r, "delete", "replace", "merge", "bad")
			}
			if r.Intn(30) == 0 {
				v["$retainKeys"] = []any{"name", "emptyDir", "type"}
			}
			if v["finalizers"] == nil && r.Intn(40) == 0 {
				v["$deleteFromPrimitiveList/finalizers"] = []any{"f1", "f3"}
			}
		case []any:
			for _, item := range v {
				walk(item)
			}
		}
	}
	walk(value)
	return toJSON(value)
}

// Patches that kubectl apply, edit and patch send.
func applyCases() (found []request) {
	pod := schema.GroupVersionKind{Version: "v1", Kind: "Pod"}
	deployment := schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	service := schema.GroupVersionKind{Version: "v1", Kind: "Service"}
	for _, c := range []struct {
		gvk           schema.GroupVersionKind
		object, patch string
	}{
		{deployment, `{"spec":{"template":{"spec":{"containers":[{"name":"a","image":"1"},{"name":"side","image":"s"}]}}}}`,
			`{"spec":{"template":{"spec":{"$setElementOrder/containers":[{"name":"a"}],"containers":[{"image":"2","name":"a"}]}}}}`},
		{deployment, `{"spec":{"strategy":{"type":"RollingUpdate","rollingUpdate":{"maxSurge":1}}}}`,
			`{"spec":{"strategy":{"$retainKeys":["type"],"type":"Recreate"}}}`},
		{pod, `{"metadata":{"finalizers":["a","b","c"]}}`,
			`{"metadata":{"$deleteFromPrimitiveList/finalizers":["b"],"$setElementOrder/finalizers":["c","a"]}}`},
		{pod, `{"spec":{"containers":[{"name":"a","env":[{"name":"X","value":"1"},{"name":"Y","value":"2"}]}]}}`,
			`{"spec":{"containers":[{"name":"a","env":[{"name":"X","$patch":"delete"},{"name":"Z","value":"3"}]}]}}`},
		{pod, `{"spec":{"volumes":[{"name":"v","emptyDir":{}}]}}`,
			`{"spec":{"volumes":[{"name":"v","$retainKeys":["name","configMap"],"configMap":{"name":"c"}}]}}`},
		{pod, `{"spec":{"tolerations":[{"key":"a"}]}}`, `{"spec":{"tolerations":[{"key":"b"}]}}`},
		{pod, `{"metadata":{"labels":{"a":"1","b":"2"}}}`, `{"metadata":{"labels":{"a":null,"c":"3"}}}`},
		{pod, `{"metadata":{"labels":{"a":"1"}}}`, `{"metadata":{"labels":{"$patch":"replace","c":"3"}}}`},
		{pod, `{"spec":{"containers":[{"name":"a"},{"name":"b"}]}}`,
			`{"spec":{"containers":[{"$patch":"replace"},{"name":"c"}]}}`},
		// In a list that is new, a null key is a key, and null is not a directive.
		{pod, `{"spec":{"containers":[{"name":"a"}]}}`,
			`{"spec":{"containers":[{"name":"a","$setElementOrder/env":[{"name":"A"},{"name":null}],"env":[{"name":"A"},{"name":null}]}]}}`},
		{pod, `{"spec":{"containers":[{"name":"a"}]}}`,
			`{"spec":{"containers":[{"name":"a","env":[{"$patch":null,"name":"A"},{"$patch":"delete","name":"B"}]}]}}`},
		// Items of a list that replaces another are not merged, even if they have the same key.
		{service, `{"spec":{"ports":[{"port":81,"name":"y"}]}}`,
			`{"spec":{"ports":[{"name":"y","port":null},{"$patch":"replace"},{"name":"x","port":80},{"name":"z","port":null}]}}`},
		{service, `{"spec":{"ports":[{"port":80,"name":"http"},{"port":443,"name":"https"}]}}`,
			`{"spec":{"$setElementOrder/ports":[{"port":443},{"port":8080}],"ports":[{"name":"alt","port":8080},{"$patch":"delete","port":80}]}}`},
		{pod, `{"spec":{"containers":[{"name":"a"}]}}`, `{"spec":{"containers":[{"image":"x"}]}}`},
		{pod, `{"spec":{"containers":[{"name":"a"}]}}`, `{"spec":{"containers":[{"name":"a","$patch":"bad"}]}}`},
		{pod, `{"spec":{"x":{"y":1}}}`, `{"spec":{"x":{"y":2}}}`},
		{pod, `{"metadata":{"finalizers":["a"]}}`, `{"metadata":{"finalizers":["b",1]}}`},
		{pod, `{"spec":{"a":1}}`, `{"spec":{"$setElementOrder":[]}}`},
	} {
		if one, ok := judge(c.gvk, []byte(c.object), []byte(c.patch)); ok {
			found = append(found, one)
		}
	}
	return found
}
