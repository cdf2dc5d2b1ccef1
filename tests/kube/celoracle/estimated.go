package main

import (
	"fmt"
	"math/rand"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/checker"
	"github.com/google/cel-go/common"
	"github.com/google/cel-go/common/types"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/library"
)

// The variables of expressions whose cost is estimated; the objects S and R are in cel_oracle.c.
const sizedVariables = "self S\noldSelf optional_type(S)\nother S"

func withSize(of *apiservercel.DeclType, size int64) *apiservercel.DeclType {
	sized := *of
	sized.MaxElements = size
	return &sized
}

// The type S, from which Kubernetes takes the sizes of all variables.
var sizedType, smallType = func() (*apiservercel.DeclType, *apiservercel.DeclType) {
	text := func(size int64) *apiservercel.DeclType { return withSize(apiservercel.StringType, size) }
	fields := func(types map[string]*apiservercel.DeclType) map[string]*apiservercel.DeclField {
		result := map[string]*apiservercel.DeclField{}
		for name, of := range types {
			result[name] = apiservercel.NewDeclField(name, of, false, nil, nil)
		}
		return result
	}
	small := apiservercel.NewObjectType("R", fields(map[string]*apiservercel.DeclType{
		"name": text(10), "ports": apiservercel.NewListType(apiservercel.IntType, 5),
		"labels": apiservercel.NewMapType(apiservercel.StringType, text(63), 8), "any": withSize(apiservercel.DynType, 100),
	}))
	return apiservercel.NewObjectType("S", fields(map[string]*apiservercel.DeclType{
		"name": text(40), "note": text(3145726), "items": apiservercel.NewListType(small, 20), "names": apiservercel.NewListType(text(30), 12),
		"map": apiservercel.NewMapType(apiservercel.StringType, small, 7), "matrix": apiservercel.NewListType(apiservercel.NewListType(text(5), 4), 3),
		"bytes": withSize(apiservercel.BytesType, 50), "i": apiservercel.IntType, "f": apiservercel.DoubleType, "ok": apiservercel.BoolType,
		"d": withSize(apiservercel.DurationType, 32), "t": withSize(apiservercel.TimestampType, 32), "any": withSize(apiservercel.DynType, 77), "o": small,
		"__namespace__": text(20),
	})), small
}()

var sizedEnv = func() *cel.Env {
	provider := apiservercel.NewDeclTypeProvider(sizedType, smallType)
	provider.SetRecognizeKeywordAsFieldName(true)
	options, err := provider.EnvOptions(env.CELTypeProvider())
	must(err)
	extended, err := env.Extend(append(options, cel.Variable("self", sizedType.CelType()),
		cel.Variable("oldSelf", types.NewOptionalType(sizedType.CelType())), cel.Variable("other", sizedType.CelType()))...)
	must(err)
	return extended
}()

// Sizes as Kubernetes takes them from a schema: the first part of a path is not looked at.
type sizes struct{}

func (sizes) EstimateSize(element checker.AstNode) *checker.SizeEstimate {
	if len(element.Path()) == 0 {
		return nil
	}
	at := sizedType
	for _, name := range element.Path()[1:] {
		switch name {
		case "@items", "@values":
			at = at.ElemType
		case "@keys":
			at = at.KeyType
		default:
			if field, found := at.Fields[name]; found {
				at = field.Type
			} else {
				at = nil
			}
		}
		if at == nil {
			return nil
		}
	}
	return &checker.SizeEstimate{Min: 0, Max: uint64(at.MaxElements)}
}

func (sizes) EstimateCallCost(string, string, *checker.AstNode, []checker.AstNode) *checker.CallEstimate {
	return nil
}

// The estimated cost. Nothing is expected of an expression that is not valid.
func estimate(text string) (request, bool) {
	parsed, issues := sizedEnv.ParseSource(common.NewTextSource(text))
	if issues.Err() != nil {
		return request{}, false
	}
	checked, issues := sizedEnv.Check(parsed)
	if issues.Err() != nil {
		return request{}, false
	}
	cost, err := sizedEnv.EstimateCost(checked, &library.CostEstimator{SizeEstimator: sizes{}})
	must(err)
	return request{Op: "s", Expr: text, Want: fmt.Sprintf("%d %d", cost.Min, cost.Max)}, true
}

// Expressions whose costs are interesting.
var estimated = []string{
	`true`, `self.ok`, `self.i > 1`, `self.name == 'abc'`, `self.name == self.note`, `self.note.contains(self.name)`, `self.name.matches('^[a-z]+$')`, `self.names.all(n, n.startsWith(self.name))`,
	`self.items.all(x, x.ports.all(p, p > 0))`, `self.items.exists_one(x, x.name == self.name)`, `self.items.map(x, x.name).filter(n, n != '').size() < 3`, `self.map.all(k, self.map[k].name == k)`,
	`self.map.all(k, v, v.name == k)`, `self.names.transformList(i, v, v + self.name)`, `self.map.transformMap(k, v, v.name)`, `self.matrix.all(row, row.all(cell, cell in self.names))`, `self.matrix[0][1] == self.name`,
	`[1, 2, 3].all(x, x > 0)`, `['a', 'bb'].exists(x, x == self.name)`, `[self.name, self.note].all(x, x.size() < 3)`, `{'a': self.name}.all(k, k == 'a')`, `{'a': self.note}['a'] == 'b'`, `[[self.name]][0][0] == 'a'`,
	`self.namespace == self.name`, `self.__namespace__ == self.name`, `self.any == 1 || self.any == 'a'`, `string(self.any).size() > 3`, `dyn(self.name) == self.any`, `oldSelf.?name.orValue('') != self.name`, `oldSelf.hasValue()`,
	`oldSelf.value().name == self.name`, `oldSelf.optMap(o, o.name == self.name).orValue(true)`, `self.?o.?name.hasValue()`, `self.names[?0].orValue('x')`, `self.items.map(x, x.labels).all(l, l.all(k, l[k] == k))`,
	`self.names.sort() == self.names`, `self.names.sortBy(n, n.size())`, `self.names.distinct().size()`, `self.names.slice(1, 3)`, `self.names.slice(3, 1)`, `self.matrix.flatten()`, `self.matrix.flatten(2)`, `lists.range(5)`, `lists.range(self.i)`, `self.names.reverse()`,
	`sets.contains(self.names, ['a'])`, `sets.equivalent(self.names, self.names)`, `sets.intersects(self.names, self.items.map(x, x.name))`, `self.names.join(',')`, `self.names.join()`, `self.items.map(x, x.name).join(self.name)`,
	`self.name.split(',')`, `self.name.split(',', 3)`, `self.name.split(',', -1)`, `self.name.replace('a', 'bb')`, `self.name.replace('', self.note)`, `self.note.replace('abc', 'd')`, `self.name.replace(self.note, self.name)`, `string(self.any).replace('a', 'bb') + 'x'`,
	`self.name.lowerAscii().upperAscii().trim().substring(1)`, `self.name.charAt(1)`, `self.name.indexOf('a')`, `self.names.indexOf('a')`, `self.names.lastIndexOf(self.name)`, `self.names.max() == self.names.min()`, `self.names.isSorted()`, `[1, 2].sum()`, `self.items.map(x, x.ports[0]).sum()`,
	`self.name.find('[a-z]+')`, `self.name.findAll('[a-z]+').all(s, s == self.name)`, `self.name.findAll(self.note, 3)`, `'%s %d'.format([self.name, self.i])`, `strings.quote(self.name) + 'a'`, `strings.quote(string(self.any)).size()`, `bytes(self.name) == self.bytes`, `string(self.bytes) + self.name`, `bytes(string(self.any)).size()`,
	`quantity(self.name) == quantity('1')`, `quantity(self.name).isLessThan(quantity('1'))`, `ip(self.name) == ip('1.1.1.1')`, `cidr(self.name).containsIP(self.name)`, `cidr(self.name).containsIP(ip(self.name))`, `cidr(self.name).containsCIDR(self.note)`, `cidr(self.name).ip().family()`, `ip.isCanonical(self.name)`, `isIP(self.name)`,
	`url(self.note).getHost() == self.name`, `url(self.note) == url(self.name)`, `isURL(self.name)`, `url(self.name).getQuery()`, `semver(self.name) == semver('1.0.0')`, `semver(self.name).major()`, `format.dns1123Label().validate(self.name)`, `format.named(self.name)`, `format.dns1123Label() == format.uuid()`,
	`self.d == duration('1s')`, `self.t < timestamp('2020-01-01T00:00:00Z')`, `self.t.getFullYear()`, `self.d + self.d`, `int(self.name)`, `self.ok ? self.name : self.note`, `(self.ok ? self.name : self.note) == 'a'`, `(self.ok ? self.names : ['a']).all(n, n == 'b')`, `(self.names + ['a']).all(n, n == 'b')`,
	`self.name in self.names`, `'a' in self.map`, `self.name in ['a', 'b']`, `has(self.o.name) && self.o.name == self.name`, `self == other`, `self.items == other.items`, `self.o == other.o`, `type(self.i) == int`, `size(self.note) < 100 || size(self.names) > 3`,
	`self.items.all(x, x.labels[x.name] == x.labels['a'])`, `self.items.all(x, x.ports[x.ports[0]] == x.ports[1])`, `self.items.all(x, x.labels.all(k, x.labels[k] != x.name))`, `self.items.map(x, [x.name, x.labels['b']]).all(p, p[0] == p[1])`,
	`self.note + self.note + self.note == 'a'`, `[self.note].map(x, x + x).map(x, x + x).all(x, x == 'a')`, `self.items.all(x, self.items.all(y, self.items.all(z, x.name + y.name == z.name)))`, `self.items.filter(x, x.name == 'a').map(x, x.labels).size() == 1`,
	`self.items.all(x, x.any == 1)`, `self.items.exists(x, x.any.y == 2)`, `self.any.all(x, x == 1)`, `self.any.map(x, x).size() > 1`, `S{name: 'a'}.name`, `{self.name: self.note}.exists(k, k == self.note)`, `self.items.all(self, self.name == 'a')`,
}

// An expression of this type, at most this deep, which may use the variables of comprehensions around it.
func sizedOf(r *rand.Rand, kind string, depth int, scope []string) string {
	pick := func(options ...string) string { return options[r.Intn(len(options))] }
	object := append([]string{"self", "self", "other", "oldSelf.value()"}, scope...)
	any := object[r.Intn(len(object))]
	if depth <= 0 {
		switch kind {
		case "int":
			return pick("1", "self.i", "-2", "size("+any+".name)", any+".ports[0]", any)
		case "string":
			return pick("'s'", "''", "'longer text'", "self.name", "self.note", any+".name", any+".labels['a']", "self.names[0]", "self.matrix[0][1]", "self.namespace", any, "string(self.any)", "oldSelf.?name.orValue('q')")
		case "bool":
			return pick("true", "self.ok", "has("+any+".name)", "has(self.map.k)", "self.i > 1")
		case "strings":
			return pick("self.names", "['a', 'bb']", "self.matrix[0]", "[self.name, "+any+".name]", "self.matrix[1]", "['x']", "[self.note]", any)
		case "objects":
			return pick("self.items", "[self.o]", "self.items", any+".items")
		case "map":
			return pick("self.map", "{'a': self.o}", "{}", any+".map")
		case "bytes":
			return pick("self.bytes", "b'abc'")
		case "dyn":
			return pick("self.any", any+".any", "dyn(self.name)", "dyn(1)")
		default:
			return pick("self.o", "self.items[0]", "self.map['k']", any)
		}
	}
	sub := func(kind string) string { return sizedOf(r, kind, depth-1, scope) }
	name := []string{"x", "y", "z", "w"}[r.Intn(4)]
	in := func(kind string) string {
		return sizedOf(r, kind, depth-1, append(append([]string{}, scope...), name, name))
	}
	lists := func() string { return pick("strings", "strings", "objects") }
	switch kind {
	case "int":
		return pick("("+sub("int")+pick(" + ", " - ", " * ")+sub("int")+")", "size("+sub(pick("string", "strings", "objects", "map", "bytes"))+")", sub("string")+pick(".indexOf(", ".lastIndexOf(")+sub("string")+")",
			sub("strings")+".indexOf("+sub("string")+")", "("+sub("bool")+" ? "+sub("int")+" : "+sub("int")+")", sub("objects")+".map("+name+", "+in("int")+")"+pick(".sum()", ".max()", ".min()"), "lists.range("+sub("int")+").max()",
			"int("+sub("string")+")", "quantity("+sub("string")+").asInteger()", "cidr("+sub("string")+").ip().family()", "semver("+sub("string")+").major()")
	case "string":
		return pick("("+sub("string")+" + "+sub("string")+")", "("+sub("string")+" + "+sub("string")+")", sub("string")+pick(".lowerAscii()", ".trim()", ".substring(1)", ".upperAscii()", ".charAt(0)"), sub("strings")+".join("+pick("", "','", sub("string"))+")",
			"("+sub("bool")+" ? "+sub("string")+" : "+sub("string")+")", sub("string")+".replace("+sub("string")+", "+sub("string")+")", "strings.quote("+sub("string")+")", sub("strings")+"["+sub("int")+"]", "string("+sub(pick("int", "bytes", "dyn"))+")",
			sub("string")+".find("+sub("string")+")", "'%s'.format(["+sub("string")+"])", sub("strings")+pick(".max()", ".min()"), "url("+sub("string")+").getHost()", sub("map")+"["+sub("string")+"].name", "{"+sub("string")+": "+sub("string")+"}["+sub("string")+"]",
			sub("strings")+"[?0].orValue("+sub("string")+")", "oldSelf.optMap("+name+", "+in("string")+").orValue("+sub("string")+")")
	case "bool":
		return pick("("+sub("int")+pick(" < ", " == ", " != ", " >= ")+sub("int")+")", "("+sub("string")+pick(" < ", " == ", " != ", " >= ")+sub("string")+")", "("+sub("bool")+pick(" && ", " || ")+sub("bool")+")", "!"+sub("bool"),
			sub(lists())+pick(".all(", ".exists(", ".exists_one(")+name+", "+in("bool")+")", sub("map")+pick(".all(", ".exists(")+name+", "+in("bool")+")", sub(pick("map", lists()))+".all(q, "+name+", "+in("bool")+")",
			"("+sub("string")+" in "+sub("strings")+")", "("+sub("string")+" in "+sub("map")+")", sub("string")+pick(".startsWith(", ".endsWith(", ".contains(", ".matches(")+sub("string")+")", "("+sub("strings")+" == "+sub("strings")+")", "("+sub("object")+" == "+sub("object")+")",
			pick("sets.contains(", "sets.intersects(", "sets.equivalent(")+sub("strings")+", "+sub("strings")+")", sub("strings")+".isSorted()", "("+sub("dyn")+" == "+sub("dyn")+")", "("+sub("bytes")+" == "+sub("bytes")+")", pick("isIP(", "isURL(", "isQuantity(", "ip.isCanonical(", "isSemver(")+sub("string")+")",
			"cidr("+sub("string")+pick(").containsIP(", ").containsCIDR(")+sub("string")+")", "quantity("+sub("string")+") == quantity("+sub("string")+")", "url("+sub("string")+") == url("+sub("string")+")", "format.dns1123Label().validate("+sub("string")+").hasValue()", "ip("+sub("string")+") != ip("+sub("string")+")")
	case "strings":
		return pick("["+sub("string")+", "+sub("string")+"]", sub(lists())+".map("+name+", "+in("string")+")", sub("strings")+".filter("+name+", "+in("bool")+")", "("+sub("strings")+" + "+sub("strings")+")", sub("string")+".split(','"+pick("", ", 3", ", "+sub("int"))+")",
			sub("string")+".findAll("+sub("string")+")", sub("strings")+pick(".sort()", ".distinct()", ".reverse()", ".slice(0, 2)", ".slice("+sub("int")+", "+sub("int")+")"), sub("strings")+".sortBy("+name+", "+in("int")+")", sub(lists())+".transformList(q, "+name+", "+in("string")+")",
			"["+sub("strings")+", "+sub("strings")+"].flatten()", "("+sub("bool")+" ? "+sub("strings")+" : "+sub("strings")+")", sub("map")+".map("+name+", "+in("string")+")")
	case "objects":
		return pick(sub("objects")+".filter("+name+", "+in("bool")+")", "["+sub("object")+"]", "("+sub("objects")+" + "+sub("objects")+")", "("+sub("bool")+" ? "+sub("objects")+" : "+sub("objects")+")", sub("objects")+".map("+name+", "+in("object")+")")
	case "map":
		return pick("{"+sub("string")+": "+sub("object")+"}", sub("map")+".transformMap(q, "+name+", "+in("object")+")", "("+sub("bool")+" ? "+sub("map")+" : "+sub("map")+")")
	case "bytes":
		return pick("bytes("+sub("string")+")", "("+sub("bytes")+" + "+sub("bytes")+")")
	case "dyn":
		return pick("dyn("+sub("string")+")", "dyn("+sub("strings")+")", "("+sub("bool")+" ? "+sub("dyn")+" : "+sub("dyn")+")", sub("dyn")+".f", sub("dyn")+"["+sub("int")+"]", sub("dyn")+".map("+name+", "+in("string")+")")
	default:
		return pick(sub("objects")+"["+sub("int")+"]", sub("map")+"["+sub("string")+"]", "("+sub("bool")+" ? "+sub("object")+" : "+sub("object")+")")
	}
}

func randomSized(r *rand.Rand) string {
	kinds := []string{"bool", "bool", "bool", "string", "strings", "int", "map"}
	return strings.TrimSpace(sizedOf(r, kinds[r.Intn(len(kinds))], 1+r.Intn(3), nil))
}
