package main

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log"
	"math"
	"math/rand"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"k8s.io/apiserver/pkg/cel/library"
)

// The variables of expressions that are evaluated, and their values.
const valueTypes = "a list(int)\nb map(string,dyn)\nx int\ny string\nf double\nd dyn\nb1 bool\nl list(list(string))\nn map(string,int)\nauthorizer kubernetes.authorization.Authorizer\nauthorizer.requestResource kubernetes.authorization.ResourceCheck"
const values = `{"a": [1, 2, 3, 5, 8], "b": {"k": "v", "n": 7, "l": [1, "two", null], "m": {"q": 2.5}}, "x": 3, "y": "héllo world", "f": 2.5,` +
	` "d": {"s": "text", "l": [3, 1, 2], "i": 4, "o": {"p": true}, "z": null}, "b1": true, "l": [["a", "bb"], [], ["ccc"]], "n": {"one": 1, "two": 2}}`

var valueEnv = func() *cel.Env {
	extended, err := env.Extend(cel.Variable("a", cel.ListType(cel.IntType)), cel.Variable("b", cel.MapType(cel.StringType, cel.DynType)),
		cel.Variable("x", cel.IntType), cel.Variable("y", cel.StringType), cel.Variable("f", cel.DoubleType), cel.Variable("d", cel.DynType),
		cel.Variable("b1", cel.BoolType), cel.Variable("l", cel.ListType(cel.ListType(cel.StringType))),
		cel.Variable("n", cel.MapType(cel.StringType, cel.IntType)), cel.Variable("authorizer", library.AuthorizerType), cel.Variable("authorizer.requestResource", library.ResourceCheckType))
	must(err)
	return extended
}()

// Numbers of JSON without fraction are integers.
func native(value any) any {
	switch v := value.(type) {
	case json.Number:
		if i, err := strconv.ParseInt(v.String(), 10, 64); err == nil {
			return i
		}
		f, err := v.Float64()
		must(err)
		return f
	case []any:
		for i := range v {
			v[i] = native(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = native(v[k])
		}
	}
	return value
}

var bindings = func() map[string]any {
	decoder := json.NewDecoder(strings.NewReader(values))
	decoder.UseNumber()
	found := map[string]any{}
	must(decoder.Decode(&found))
	native(found)
	for name, value := range permissions {
		found[name] = value
	}
	return found
}()

func show(value ref.Val) string {
	switch v := value.(type) {
	case types.Null:
		return "null"
	case types.Bool:
		return fmt.Sprint(bool(v))
	case types.Int:
		return fmt.Sprint(int64(v))
	case types.Uint:
		return fmt.Sprintf("%du", uint64(v))
	case types.Double:
		if math.IsNaN(float64(v)) {
			return "NaN"
		}
		return fmt.Sprintf("d%016x", math.Float64bits(float64(v)))
	case types.String:
		return "s" + hex.EncodeToString([]byte(v))
	case types.Bytes:
		return "b" + hex.EncodeToString(v)
	case *types.Optional:
		if !v.HasValue() {
			return "optional()"
		}
		return "optional(" + show(v.GetValue()) + ")"
	case traits.Mapper:
		entries := []string{}
		for it := v.Iterator(); it.HasNext() == types.True; {
			key := it.Next()
			entries = append(entries, show(key)+": "+show(v.Get(key)))
		}
		sort.Strings(entries)
		return "{" + strings.Join(entries, ", ") + "}"
	case traits.Lister:
		items := []string{}
		for it := v.Iterator(); it.HasNext() == types.True; {
			items = append(items, show(it.Next()))
		}
		return "[" + strings.Join(items, ", ") + "]"
	case *types.Type:
		return "type " + v.TypeName()
	case types.Duration:
		return fmt.Sprintf("duration %d", int64(v.Duration))
	case types.Timestamp:
		return "timestamp " + v.Format(time.RFC3339Nano)
	}
	if found, is := fields(value); is {
		return showFields(value.Type().TypeName(), found)
	}
	if opaque[value.Type().TypeName()] {
		return "a " + value.Type().TypeName()
	}
	log.Fatalf("a value of type %T", value)
	return ""
}

// Values of these types are known only to functions.
var opaque = map[string]bool{"kubernetes.Quantity": true, "net.IP": true, "net.CIDR": true, "kubernetes.Semver": true, "kubernetes.URL": true,
	"kubernetes.NamedFormat": true, "kubernetes.authorization.Authorizer": true, "kubernetes.authorization.PathCheck": true,
	"kubernetes.authorization.GroupCheck": true, "kubernetes.authorization.ResourceCheck": true, "kubernetes.authorization.Decision": true}

// The value and the cost. Nothing is expected of an expression that is not valid.
func evaluate(text string) (request, bool) {
	parsed, issues := valueEnv.ParseSource(common.NewTextSource(text))
	if issues.Err() != nil {
		return request{}, false
	}
	checked, issues := valueEnv.Check(parsed)
	if issues.Err() != nil {
		return request{}, false
	}
	program, err := valueEnv.Program(checked)
	if err != nil {
		return request{}, false
	}
	value, details, err := program.Eval(bindings)
	shown := ""
	if err != nil {
		shown = "error: " + err.Error()
	} else {
		shown = show(value)
	}
	cost := uint64(0)
	if details != nil && details.ActualCost() != nil {
		cost = *details.ActualCost()
	}
	// A test of a conditional whose condition costs nothing and fails costs less than nothing in cel-go.
	if cost == math.MaxUint64 {
		return request{}, false
	}
	return request{Op: "e", Expr: text, Want: fmt.Sprintf("%s costs %d", shown, cost)}, true
}

// Expressions whose values are interesting.
var evaluated = []string{
	`1 + 2`, `x + 1`, `9223372036854775807 + x`, `-9223372036854775808 - x`, `1u - 2u`, `x * 9223372036854775807`, `x / 0`, `x % 0`, `-7 / 2`, `-7 % 2`, `7 % -2`, `1.0 / 0.0`, `-1.0 / 0.0`, `0.0 / 0.0`,
	`(-9223372036854775807 - 1) / -1`, `-(-9223372036854775807 - 1)`, `f + 1.5`, `x < 2.5`, `2u < 3`, `1 == 1`, `dyn(1) == 1.0`, `dyn(1u) == 1`, `dyn('a') == 1`, `0.0/0.0 == 0.0/0.0`, `0.0/0.0 < 1.0`, `dyn(1.5) < 2u`,
	`y + '!'`, `size(y)`, `y.size()`, `b'abc'.size()`, `a.size()`, `size(n)`, `y.contains('llo')`, `y.startsWith('hé')`, `y.endsWith('ld')`, `y < 'i'`, `b'a' < b'b'`, `true > false`,
	`a[0]`, `a[5]`, `a[-1]`, `a[x]`, `a[a[0]]`, `b['k']`, `b.k`, `b.zzz`, `b['zzz']`, `b.l[1]`, `b.l[2]`, `b.m.q`, `d.s`, `d.o.p`, `d.zzz`, `d.s.t`, `d.i.j`, `d.l[0]`, `d.l['a']`, `d[0]`, `n['one']`, `n.two`, `n['three']`,
	`has(b.k)`, `has(b.zzz)`, `has(d.o.p)`, `has(d.zzz.p)`, `has(d.s.p)`, `has(d.z.p)`, `has(d.z)`, `b.?k`, `b.?zzz`, `b.?zzz.q`, `b.?m.q`, `d.?o.p`, `d.?zzz.p.q`, `a[?0]`, `a[?9]`, `d.?l[0]`, `b.?k.orValue('w')`, `b.?zzz.orValue('w')`,
	`1 in a`, `4 in a`, `x in [1, 2, 3]`, `x in [x, 4]`, `x in []`, `'k' in b`, `'zzz' in b`, `'a' in l[0]`, `3.0 in dyn(a)`, `dyn(1) in [1, 2]`,
	`b1 && x > 1`, `b1 || x / 0 > 1`, `x / 0 > 1 || b1`, `x / 0 > 1 && b1`, `!b1 && x / 0 > 1`, `x / 0 > 1 && !b1`, `d.i && true`, `true && d.i`, `d.zzz || true`, `d.i || d.s`,
	`b1 ? x : x / 0`, `!b1 ? x / 0 : x`, `(b1 ? a : [9])[0]`, `(b1 ? b : d).k`, `(x > 5 ? b : d).s`, `d.i ? 1 : 2`, `b1 ? a : a`, `b1 ? a[0] : a[1]`, `b1 ? 1 : 2`,
	`a.all(i, i > 0)`, `a.all(i, i > 1)`, `a.exists(i, i == 5)`, `a.exists(i, i == 9)`, `a.exists_one(i, i > 7)`, `a.exists_one(i, i > 1)`, `a.map(i, i * 2)`, `a.filter(i, i > 2)`, `a.map(i, i > 2, i + x)`,
	`a.all(i, i / (i - 1) > 0)`, `a.exists(i, i / (i - 1) > 1)`, `a.exists(i, i / (i - 1) > 99)`, `a.all(i, 10 / (i - 3) != 0)`, `n.map(k, n[k]).size()`, `dyn(null) + 1 != 2`, `1 != dyn('a') + 1`, `n.filter(k, k == 'one')`, `a.all(i, v, i < v)`,
	`a.transformList(i, v, i * v)`, `a.transformList(i, v, i > 1, v)`, `n.transformMap(k, v, v + 1)`, `n.transformMap(k, v, v > 1, v)`, `a.map(i, a.map(j, i * j))`, `l.map(i, i.map(j, j + '!'))`, `l.all(i, i.all(j, j.size() < 4))`,
	`[1, 2] + [3]`, `a + a`, `[] + a`, `[x, x + 1]`, `[1, 2] == [1, 2]`, `[1, 2] == [2, 1]`, `{'a': 1} == {'a': 1}`, `{'a': x, 'b': 2}`, `{'a': 1}['a']`, `{1: 'a', 2: 'b'}[2]`, `{true: 1}[true]`, `{'a': 1, ?'b': optional.none()}`, `[1, ?optional.of(x), ?optional.none()]`,
	`type(x)`, `type(x) == int`, `type(y) == string`, `type(a) == list`, `type(b) == map`, `type(null)`, `type(type(1))`, `type(1u)`, `type(optional.of(1))`, `int`,
	`int('12')`, `int('+12')`, `int(y)`, `int(2.9)`, `int(-2.9)`, `int(f * 1e30)`, `int(3u)`, `uint(x)`, `uint(-x)`, `uint('7')`, `uint(2.5)`, `double('1.5')`, `double(x)`, `double('inf')`, `double(y)`, `string(x)`, `string(f)`, `string(1e6)`, `string(1e21)`,
	`string(123456789.0)`, `string(1e-5)`, `string(0.0001)`, `string(100000.0)`, `string(1.0)`, `string(-0.0)`, `string(1.0/0.0)`, `string(true)`, `string(b'ab')`, `string(bytes(y) + b'\xff')`, `bytes('é')`, `bool('true')`, `bool('T')`, `bool(y)`, `dyn(x) + 1`, `dyn(x) + 'a'`, `dyn(y) + y`, `d.s + d.s`, `d.i + d.i`,
	`optional.of(1)`, `optional.none()`, `optional.of(x).value()`, `optional.none().value()`, `optional.of(x).hasValue()`, `optional.none().orValue(x)`, `optional.of(x).orValue(x / 0)`, `optional.none().or(optional.of(x))`, `optional.of(x).or(optional.of(2))`,
	`optional.ofNonZeroValue(0)`, `optional.ofNonZeroValue(x)`, `optional.ofNonZeroValue('')`, `optional.of(x).optMap(v, v + 1)`, `optional.none().optMap(v, v)`, `b.?k.optMap(v, v + '!')`, `b.?zzz.optMap(v, v)`, `b.?k.optFlatMap(v, optional.of(v))`, `optional.of(1) == optional.of(1)`, `optional.none() == optional.of(1)`,
	`a.map(i, a).map(i, a).all(i, i == a)`, `a == a`, `l == l`, `b == b`, `y == y`, `y != 'x'`, `d == d`, `d == b`, `d.z == null`, `d.s == null`, `null == null`, `x != 3`,
	`[1, 2, 3].all(i, [1, 2, 3].all(j, [1, 2, 3].all(k, i + j + k > 2)))`, `a.map(i, string(i)).exists(s, s == '8')`, `a.filter(i, i in [1, 2])`, `a.filter(i, i in a)`, `n.map(k, k).all(k, k in n)`, `a.map(i, {'v': i}).filter(m, m.v > 2).map(m, m.v)`,
}

// Random ones use only functions that Vigil evaluates.
func valueOf(r *rand.Rand, kind string, depth int) string {
	if r.Intn(30) == 0 {
		kinds := []string{"int", "string", "bool", "list", "map", "double", "dyn"}
		kind = kinds[r.Intn(len(kinds))]
	}
	leaves := map[string][]string{
		"int":    {"1", "0", "x", "a[0]", "n['one']", "d.i", "size(y)", "-2", "b.n", "n.zzz"},
		"string": {"'s'", "y", "l[0][0]", "d.s", "b.k", "b.?zzz.orValue('q')", "string(x)"},
		"bool":   {"true", "b1", "has(d.o)", "has(b.zzz)", "d.o.p", "false"},
		"list":   {"a", "[]", "[1, 2]", "d.l", "[x, x]"},
		"map":    {"b", "{}", "{'a': 1}", "n", "d", "{'a': x}"},
		"double": {"1.5", "f", "b.m.q", "double(x)"},
		"dyn":    {"d", "d.l", "d.z", "b.l", "dyn(1u)", "dyn(y)"},
	}
	if depth <= 0 {
		return leaves[kind][r.Intn(len(leaves[kind]))]
	}
	sub := func(kind string) string { return valueOf(r, kind, depth-1) }
	pick := func(options ...string) string { return options[r.Intn(len(options))] }
	switch kind {
	case "int":
		return pick("("+sub("int")+pick(" + ", " - ", " * ", " / ", " % ")+sub("int")+")", sub("list")+"["+sub("int")+"]", "size("+sub("string")+")", "size("+sub("list")+")", sub("dyn")+".i",
			"("+sub("bool")+" ? "+sub("int")+" : "+sub("int")+")", "int("+sub("double")+")", sub("map")+"['a']", "("+sub("dyn")+").?i.orValue("+sub("int")+")", "optional.of("+sub("int")+").value()")
	case "string":
		return pick("("+sub("string")+" + "+sub("string")+")", "string("+sub(pick("int", "double", "bool"))+")", sub("dyn")+".s", "("+sub("bool")+" ? "+sub("string")+" : "+sub("string")+")")
	case "bool":
		return pick("("+sub("int")+pick(" < ", " <= ", " == ", " != ", " > ", " >= ")+sub(pick("int", "double"))+")", "("+sub("bool")+pick(" && ", " || ")+sub("bool")+")",
			"!"+sub("bool"), sub("list")+pick(".all", ".exists", ".exists_one")+"(x, "+sub("bool")+")", "{'a': "+sub("int")+"}.all(q, v, v > 0 && "+sub("bool")+")", "("+sub("int")+" in "+sub("list")+")",
			"("+sub("string")+" in "+sub("map")+")", sub("string")+pick(".startsWith", ".endsWith", ".contains")+"("+sub("string")+")", "has("+sub("map")+".k)", "("+sub("dyn")+pick(" == ", " != ")+sub("dyn")+")", "("+sub("list")+" == "+sub("list")+")", "("+sub("map")+" == "+sub("map")+")")
	case "list":
		return pick("["+sub("int")+", "+sub("int")+"]", sub("list")+".map(x, "+sub("int")+")", sub("list")+".filter(x, "+sub("bool")+")", "("+sub("list")+" + "+sub("list")+")",
			sub("list")+".transformList(i, v, "+sub("int")+")", "["+sub("int")+", ?optional.of("+sub("int")+")]", sub("list")+".map(x, "+sub("bool")+", "+sub("int")+")")
	case "map":
		return pick("{string("+sub("int")+"): "+sub("int")+"}", "{'a': "+sub("int")+", ?'b': optional.of("+sub("int")+")}", "("+sub("bool")+" ? "+sub("map")+" : {})")
	case "double":
		return pick("("+sub("double")+pick(" + ", " - ", " * ", " / ")+sub("double")+")", "double("+sub("int")+")", "-"+sub("double"))
	default:
		return pick("d", "dyn("+sub("int")+")", "dyn("+sub("list")+")", "d.?"+pick("s", "zzz", "o")+pick("", ".p"), "("+sub("bool")+" ? d : dyn("+sub("map")+"))")
	}
}

func randomValue(r *rand.Rand) string {
	kinds := []string{"bool", "bool", "bool", "int", "string", "list", "map", "double"}
	return valueOf(r, kinds[r.Intn(len(kinds))], r.Intn(4))
}
