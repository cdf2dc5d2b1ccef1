package main

import (
	"fmt"
	"math"
	"math/rand"
	"reflect"
	"sort"
	"strings"
	"unsafe"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	apiservercel "k8s.io/apiserver/pkg/cel/common"
	"k8s.io/apiserver/pkg/cel/library"
	"k8s.io/apiserver/pkg/cel/mutation"
	"k8s.io/apiserver/pkg/cel/mutation/dynamic"
)

// The environment of mutations: that of values, with the types Object, Object.a.b and JSONPatch.
var objectEnv = func() *cel.Env {
	extended, err := valueEnv.Extend(apiservercel.ResolverEnvOption(&mutation.DynamicTypeResolver{}), library.JSONPatch())
	must(err)
	return extended
}()

// The fields of an object or a patch; nothing for other values.
func fields(value ref.Val) (map[string]ref.Val, bool) {
	switch v := value.(type) {
	case *mutation.JSONPatchVal:
		found := map[string]ref.Val{}
		for _, name := range []string{"op", "path", "from", "value"} {
			if of := v.Get(types.String(name)); of != nil {
				found[name] = of
			}
		}
		return found, true
	case *dynamic.ObjectVal:
		// Its fields are not exported.
		found := map[string]ref.Val{}
		of := reflect.ValueOf(v).Elem().FieldByName("fields")
		of = reflect.NewAt(of.Type(), unsafe.Pointer(of.UnsafeAddr())).Elem()
		for it := of.MapRange(); it.Next(); {
			found[it.Key().String()] = it.Value().Interface().(ref.Val)
		}
		return found, true
	}
	return nil, false
}

func showFields(name string, found map[string]ref.Val) string {
	entries := []string{}
	for name, of := range found {
		entries = append(entries, name+": "+show(of))
	}
	sort.Strings(entries)
	return name + "{" + strings.Join(entries, ", ") + "}"
}

// The value and the cost of an expression that may create objects, or why it is refused. Nothing for one that cannot be parsed.
func create(text string) (request, bool) {
	want := request{Op: "o", Expr: text}
	parsed, issues := objectEnv.ParseSource(common.NewTextSource(text))
	if issues.Err() != nil {
		return request{}, false
	}
	checked, issues := objectEnv.Check(parsed)
	if issues.Err() != nil {
		want.Error = issues.String()
		return want, true
	}
	program, err := objectEnv.Program(checked)
	if err != nil {
		want.Error = err.Error()
		return want, true
	}
	value, details, err := program.Eval(bindings)
	shown, cost := "", uint64(0)
	if err != nil {
		shown = "error: " + err.Error()
	} else {
		shown = show(value)
	}
	if details != nil && details.ActualCost() != nil {
		cost = *details.ActualCost()
	}
	if cost == math.MaxUint64 {
		return request{}, false
	}
	want.Want = fmt.Sprintf("%s costs %d", shown, cost)
	return want, true
}

// Expressions that create objects.
var created = []string{
	`Object{}`, `.Object{}`, `Object{spec: Object.spec{replicas: 1}}`, `Object{a: x, b: y, c: f, d: a, e: b}`, `Object{a: 1, a: 2}`, `Object{a: 1, ?a: optional.none()}`, `Object{?a: optional.of(1)}`, `Object{?a: optional.none()}`,
	`Object{?a: 1}`, `Object{?a: d.s}`, `Object{?a: b.?k}`, `Object{?a: d.?zzz}`, `Object{a: x / 0}`, `Object{a: d.zzz, b: 1 / 0}`, `Object{a: Object.b{}}`, `Object.a.b.c{}`, `Objects{}`, `Object2.a{}`, `JSONPatch.a{}`,
	`Object{a: 1}.a`, `Object{a: 1}.b`, `Object{a: Object.a{b: 'x'}}.a`, `Object{a: Object.a{b: 'x'}}.a.b`, `Object{a: [Object.a{b: 1}]}.a[0]`, `Object{a: [Object.a{b: 1}]}.a[0].b`, `Object{a: {'k': Object.a{b: 1}}}.a.k.b`,
	`has(Object{a: 1}.a)`, `has(Object{a: 1}.b)`, `has(Object{a: Object.a{}}.a.b)`, `Object{a: 1}.?a`, `Object{a: 1}.?b`, `Object{a: 1}.?b.orValue(2)`, `dyn(Object{a: 1}).a`, `dyn(Object{a: 1}).b`, `has(dyn(Object{a: 1}).a)`, `dyn(Object{a: 1}).?a`,
	`dyn(Object{a: 1})['a']`, `Object{a: 1}['a']`, `Object{a: 1}[0]`, `[Object{a: 1}].map(o, o.a)`, `[Object{a: 1}].all(o, o.a == 1)`, `Object{a: 1}.all(q, true)`, `dyn(Object{}).all(q, true)`, `dyn(Object{}).map(i, v, i)`,
	`Object{a: 1} == Object{a: 1}`, `Object{a: 1} == Object{a: 2}`, `Object{a: 1} != Object{a: 2}`, `Object{a: 1} == Object{a: 1.0}`, `Object{} == Object.a{}`, `dyn(Object{}) == Object.a{}`, `Object{a: 'x'} == Object{a: 'x'}`, `Object{a: Object.a{}} == Object{a: Object.a{}}`,
	`Object{a: {'x': 1}} == Object{a: {'x': 1}}`, `Object{a: [1]} == Object{a: [1]}`, `Object{a: a} == Object{a: a}`, `Object{a: d} == Object{a: d}`, `Object{a: b} == Object{a: b}`, `Object{a: null} == Object{a: null}`, `Object{} == null`, `dyn(Object{}) == 1`, `dyn(1) == Object{}`, `dyn(null) == Object{}`,
	`Object{a: 1} == JSONPatch{op: 'a'}`, `dyn(Object{a: 1}) == JSONPatch{op: 'a'}`, `Object{a: 1} in [Object{a: 1}]`, `[Object{}, Object.a{}]`, `[Object{}, Object{}]`, `{'a': Object{}}`, `{'a': Object{}, 'b': Object.c{}}`, `[Object{}, 1]`, `[Object{}] == [Object{}]`, `b1 ? Object{} : Object.a{}`, `b1 ? Object{a: 1} : Object{}`,
	`type(Object{})`, `type(Object{}) == type(Object{a: 1})`, `type(Object{}) == type(Object.a{})`, `type(Object{}) == Object`, `Object`, `Object.a`, `Object.a.b.c`, `JSONPatch`, `type(JSONPatch{})`, `type(JSONPatch{}) == JSONPatch`, `Object + 1`, `size(Object{})`, `string(Object{})`, `dyn(Object{}) + 1`, `size(dyn(Object{}))`, `string(dyn(Object{}))`, `int(dyn(Object{}))`, `dyn(Object{}) < 1`, `-dyn(Object{})`,
	`optional.of(Object{})`, `optional.ofNonZeroValue(Object{})`, `optional.ofNonZeroValue(Object{a: 1})`, `optional.ofNonZeroValue(JSONPatch{})`, `[?optional.of(Object{})]`, `d[Object{}]`, `a[dyn(Object{})]`, `d[dyn(Object{a: 1})]`, `Object{a: null}`, `Object{a: Object.a}`, `Object{a: int}`,
	`JSONPatch{}`, `JSONPatch{op: 'add', path: '/a', value: 1}`, `JSONPatch{op: 'move', from: '/a', path: '/b'}`, `JSONPatch{op: 1}`, `JSONPatch{op: d.s}`, `JSONPatch{op: d.i}`, `JSONPatch{path: d.l}`, `JSONPatch{from: d.z}`, `JSONPatch{value: null}`, `JSONPatch{value: x / 0}`, `JSONPatch{op: 'a', op: 'b'}`, `JSONPatch{?op: optional.none()}`, `JSONPatch{?value: b.?zzz}`,
	`JSONPatch{zzz: 1}`, `JSONPatch{zzz: d}`, `JSONPatch{op: dyn(1.5)}`, `JSONPatch{op: dyn(true)}`, `JSONPatch{op: dyn(1u)}`, `JSONPatch{op: dyn(b'x')}`, `JSONPatch{op: dyn([1])}`, `JSONPatch{op: dyn({'a': 1})}`, `JSONPatch{path: dyn(duration('1s'))}`, `JSONPatch{from: dyn(timestamp(0))}`, `JSONPatch{from: dyn(optional.of(1))}`, `JSONPatch{op: dyn(Object{})}`, `JSONPatch{op: dyn(JSONPatch{})}`, `JSONPatch{op: dyn(int)}`, `JSONPatch{op: dyn(optional.of('a'))}`, `JSONPatch{op: null}`,
	`JSONPatch{op: 'a'}.op`, `JSONPatch{op: 'a'}.path`, `JSONPatch{op: 'a'}.value`, `JSONPatch{value: 1}.value`, `has(JSONPatch{op: 'a'}.op)`, `has(JSONPatch{}.op)`, `has(JSONPatch{}.value)`, `JSONPatch{op: 'a'}.?op`, `dyn(JSONPatch{op: 'a'}).op`, `dyn(JSONPatch{op: 'a'}).zzz`, `has(dyn(JSONPatch{}).op)`, `JSONPatch{}.zzz`, `JSONPatch{op: 'a'}['op']`, `dyn(JSONPatch{op: 'a'})['op']`,
	`JSONPatch{op: 'a'} == JSONPatch{op: 'a'}`, `JSONPatch{value: 1} == JSONPatch{value: 1.0}`, `JSONPatch{value: 1} == JSONPatch{}`, `JSONPatch{value: dyn(1)} == JSONPatch{value: dyn('a')}`, `JSONPatch{path: 'a'} != JSONPatch{path: 'b'}`, `dyn(JSONPatch{}) == 1`, `dyn(JSONPatch{}) == Object{}`, `JSONPatch{value: [1]} == JSONPatch{value: [1]}`,
	`[JSONPatch{op: 'add', path: '/x', value: Object.x{y: [1, 2]}}]`, `[JSONPatch{}, Object{}]`, `[JSONPatch{op: 'add', path: '/metadata/labels/' + jsonpatch.escapeKey('a/b~c'), value: 'v'}]`, `jsonpatch.escapeKey('~/~1')`, `jsonpatch.escapeKey('')`, `jsonpatch.escapeKey(y)`, `jsonpatch.escapeKey(1)`, `jsonpatch.escapeKey(d.i)`, `jsonpatch.escapeKey(d.s)`, `jsonpatch.zzz('a')`, `jsonpatch`, `'a'.escapeKey()`,
	`a.map(i, Object.items{name: string(i), n: i})`, `a.map(i, JSONPatch{op: 'remove', path: '/a/' + string(i)})`, `Object{metadata: Object.metadata{labels: {'a': y}, annotations: b}}`, `Object{a: 1}.a + 1`, `Object{a: 1}.b == null`, `Object{a: Object.a{b: 1}}.a.c`, `Object{a: b1 ? Object.a{x: 1} : Object.a{}}`, `b1 && Object{a: true}.a`, `Object{a: 1}.a()`, `Object{a: quantity('1')}`, `Object{a: 1u}.a`, `Object{a: b'x'}.a`, `Object{a: duration('1s')}.a`, `Object{a: {1: 2}}.a`, `has(Object{a: {1: 2}}.a)`, `Object{a: {'x': {1: 2}}}.a`, `Object{a: optional.of(1)}.a`, `Object{a: int}.a`, `Object{a: 1, b: {1: 2}}.a`,
}

// An expression that creates objects, at most this deep.
func objectOf(r *rand.Rand, path string, depth int) string {
	pick := func(options ...string) string { return options[r.Intn(len(options))] }
	names := []string{"a", "b", "spec", "items"}
	parts := []string{}
	for count := r.Intn(4); count > 0; count-- {
		name := names[r.Intn(len(names))]
		inner := path + "." + name
		if r.Intn(15) == 0 {
			inner = path
		}
		value := valueOf(r, pick("int", "string", "bool", "list", "map", "dyn", "double"), min(depth, 2))
		if depth > 0 && r.Intn(3) > 0 {
			value = pick(objectOf(r, inner, depth-1), objectOf(r, inner, depth-1), "["+objectOf(r, inner, depth-1)+", "+objectOf(r, inner, depth-1)+"]",
				"{'k': "+objectOf(r, inner, depth-1)+"}", "a.map(i, "+objectOf(r, inner, depth-1)+")")
		}
		switch r.Intn(12) {
		case 0:
			parts = append(parts, "?"+name+": optional.of("+value+")")
		case 1:
			parts = append(parts, "?"+name+": "+pick("b.?k", "b.?zzz", "optional.none()", "d.s", "d.?o.?p"))
		default:
			parts = append(parts, name+": "+value)
		}
	}
	return path + "{" + strings.Join(parts, ", ") + "}"
}

func randomObject(r *rand.Rand) string {
	pick := func(options ...string) string { return options[r.Intn(len(options))] }
	object := func() string { return objectOf(r, "Object", r.Intn(3)) }
	operation := func() string {
		text := "JSONPatch{op: " + pick("'add'", "'test'", "y", "d.s", "d.i") + ", path: '/' + " + valueOf(r, "string", 1)
		return text + pick("", ", from: y", ", ?from: b.?k", ", value: "+object(), ", value: "+valueOf(r, pick("int", "map", "dyn"), 1)) + "}"
	}
	name := func() string { return pick("a", "b", "spec", "items", "op") }
	switch r.Intn(9) {
	case 0, 1:
		return object()
	case 2:
		return object() + pick(" == ", " != ") + object()
	case 3:
		return object() + pick(".", ".", ".?") + name() + pick("", "."+name(), ".?"+name())
	case 4:
		return pick("has("+pick(object(), "dyn("+object()+")")+"."+name()+")", "has("+pick(operation(), "dyn("+operation()+")")+"."+pick("op", "path", "from", "value")+")")
	case 5:
		return "[" + operation() + ", " + operation() + "]"
	case 6:
		return pick("dyn(", "optional.ofNonZeroValue(", "type(") + pick(object(), operation()) + ")"
	case 7:
		return pick("[", "a.map(i, ") + object() + pick("]", ")")
	default:
		return "jsonpatch.escapeKey(" + valueOf(r, "string", 2) + ")"
	}
}
