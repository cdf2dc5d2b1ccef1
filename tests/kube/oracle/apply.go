package main

import (
	"encoding/json"
	"math/rand"
	"sort"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields/managedfieldstest"
	apply "k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
)

// One write of a sequence of applies and updates by several managers, with the object before it.
type ownership struct {
	How     string          `json:"how"` // apply, force or update
	Manager string          `json:"manager"`
	Managed json.RawMessage `json:"managedFields"`
	Live    json.RawMessage `json:"live"`
}

var typeConverter = apply.NewTypeConverter(scheme.Scheme)

// All owners get this time, also from the program: which of them is older is not compared.
const applied = "2026-11-15T06:00:00Z"

// An object with its owners apart.
func split(object *unstructured.Unstructured) (bare, managed []byte) {
	copied := object.DeepCopy()
	entries := []any{}
	if list, _, _ := unstructured.NestedSlice(copied.Object, "metadata", "managedFields"); list != nil {
		for _, entry := range list {
			if entry.(map[string]any)["time"] != nil {
				entry.(map[string]any)["time"] = applied
			}
			entries = append(entries, entry)
		}
	}
	unstructured.RemoveNestedField(copied.Object, "metadata", "managedFields")
	return toJSON(copied.Object), toJSON(entries)
}

func configuration(r *rand.Rand, gvk schema.GroupVersionKind) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	must(json.Unmarshal(podLike(r, gvk), &object.Object))
	object.SetGroupVersionKind(gvk)
	object.SetName("p")
	if r.Intn(5) == 0 { // an apply may name only a part
		for _, name := range []string{"spec", "data", "secrets"} {
			delete(object.Object, name)
		}
	}
	return object
}

// The cases of one sequence.
func ownershipCases(r *rand.Rand) (found []request) {
	gvk := patchKinds[r.Intn(len(patchKinds))]
	manager := managedfieldstest.NewTestFieldManager(typeConverter, gvk)
	for step := range 6 {
		how, name := pick(r, "apply", "force", "update"), pick(r, "a", "b", "c")
		if step == 0 {
			how = "apply" // until then nothing is owned
		}
		before := manager.Live().(*unstructured.Unstructured)
		live, managed := split(before)
		config := configuration(r, gvk)
		sent := config.DeepCopy()
		var err error
		if how == "update" {
			sent.SetManagedFields(before.GetManagedFields())
			err = manager.Update(sent, name)
		} else {
			err = manager.Apply(sent, name, how == "force")
		}
		c := request{Op: "a", Version: gvk.GroupVersion().String(), Kind: gvk.Kind, Object: toJSON(config.Object),
			Ownership: &ownership{How: how, Manager: name, Managed: managed, Live: live}}
		if err != nil {
			c.Error = err.Error()
		} else {
			object, owners := split(manager.Live().(*unstructured.Unstructured))
			c.Want = toJSON(map[string]json.RawMessage{"object": object, "managedFields": owners})
		}
		found = append(found, c)
	}
	return found
}

// An answer with the owners in one order.
func sorted(value any) any {
	if answer, ok := value.(map[string]any); ok {
		if list, ok := answer["managedFields"].([]any); ok {
			sort.Slice(list, func(i, j int) bool { return string(toJSON(list[i])) < string(toJSON(list[j])) })
		}
	}
	return value
}
