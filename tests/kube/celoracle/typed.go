package main

import (
	"math/rand"
	"strings"
)

// Expressions whose types are interesting.
var typed = []string{
	`self.i <= x`, `self.o.i + self.m['a']`, `self.zzz`, `self.o.zzz`, `x.y`, `y.size()`, `size(y) == 1`, `1 == 1.0`, `dyn(1) == 1.0`, `1 < 1.0`, `y == null`,
	`self == null`, `o == null`, `t == null`, `[1, 2u]`, `[1, dyn(2u)]`, `{1: 2, 'a': 3}`, `[]`, `{}`, `[[]]`, `[[], [1]]`, `[[1], []]`, `[{}, {'a': 1}]`, `{'a': []}`,
	`[].map(z, z)`, `[].map(z, z + 1)`, `a.map(z, z + 1)`, `a.map(z, [z])`, `a.filter(z, z > 1)`, `a.filter(z, z)`, `a.all(z, z)`, `a.exists(z, z > 'a')`,
	`b.all(z, z == 'a')`, `b.map(z, b[z])`, `m.all(z, m[z].i > 0)`, `k.all(z, z.i > 0 && z.o.s == 'a')`, `k.all(z, z.q)`, `x.all(z, z)`, `d.all(z, z)`, `d.e.f[0].g`, `d + 1`, `d + d`,
	`[1] + [2]`, `[1] + ['a']`, `[1] + []`, `[] + []`, `a + [1u]`, `true ? 1 : 2`, `true ? 1 : 'a'`, `true ? 1 : d`, `x ? 1 : 2`, `b1 ? [] : [1]`,
	`1 in a`, `'a' in a`, `'a' in b`, `1 in d`, `x in 1`, `a[0]`, `a['a']`, `b['a']`, `b[0]`, `y[0]`, `d[0]`, `o.x`, `self.?i`, `self.?o.?i`, `self.?o.i`, `d.?x`, `b.?x`, `a[?0]`, `b[?'x']`, `o[?0]`,
	`optional.of(1)`, `optional.none()`, `optional.of(1).value()`, `o.orValue('a')`, `o.orValue(1)`, `o.or(optional.of('x'))`, `o.optMap(z, z.size())`, `o.optFlatMap(z, optional.of(1))`,
	`o.hasValue()`, `[?o]`, `[?y]`, `{?'a': o}`, `{?'a': y}`, `[?o, 'a']`, `has(self.i)`, `has(b.x)`, `has(d.x)`, `has(x.y)`, `has(self.zzz)`, `has(o.x)`,
	`type(1)`, `type(x) == int`, `type(y) == string`, `type(a)`, `type(self)`, `int`, `list`, `map`, `type`, `google.protobuf.Timestamp`, `type(type(1))`, `bool == int`,
	`int('1')`, `int(d)`, `int(true)`, `string(1)`, `string(self)`, `double(x)`, `uint(x)`, `bytes(y)`, `bool('true')`, `timestamp('2020-01-01T00:00:00Z')`, `duration('1s')`, `timestamp(1)`,
	`t + u`, `u + t`, `t - t`, `t - u`, `u - t`, `u + u`, `t + t`, `t < t`, `t < u`, `t.getFullYear()`, `t.getHours('UTC')`, `u.getHours()`, `y.getHours()`,
	`y.startsWith('a')`, `y.startsWith(1)`, `x.startsWith('a')`, `y.matches('a+')`, `matches(y, 'a')`, `y.contains('b')`, `y + 'a'`, `y + 1`, `-x`, `-y`, `-f`, `-1u`, `!b1`, `!x`,
	`x % 2`, `f % 2.0`, `x / 0`, `x * f`, `b1 && x`, `x && b1`, `x || y`, `b1 && b1 && x`, `b1 < true`, `[1] < [2]`, `a == [1]`, `a == ['a']`, `a == []`, `{} == b`,
	`v.w`, `v.w + 1u`, `v.x`, `.v.w`, `.x`, `.y.size()`, `zzz`, `zzz.a.b`, `f()`, `zzz(1)`, `x.zzz(1)`, `.zzz()`, `optional.zzz(1)`, `sets.contains(a, [1])`, `sets.contains(a, ['a'])`, `sets.zzz(a)`,
	`lists.range(3)`, `a.sum()`, `l.sum()`, `a.max()`, `l.flatten()`, `a.flatten()`, `a.sort()`, `l.sort()`, `k.sortBy(z, z.i)`, `k.sortBy(z, z.o)`, `a.distinct()`, `a.reverse()`, `a.slice(0, 1)`, `a.first()`, `a.last()`,
	`a.indexOf(1)`, `a.isSorted()`, `y.indexOf('a')`, `y.split(',')`, `['a'].join()`, `['a'].join(',')`, `a.join()`, `y.replace('a', 'b')`, `y.format([1])`, `'%s %d'.format([y, x])`,
	`y.find('a')`, `y.findAll('a', 1)`, `url(y).getHost()`, `isURL(y)`, `quantity('1').add(quantity('2'))`, `quantity('1') == quantity('2')`, `quantity('1') < quantity('2')`, `sign(quantity('1'))`, `quantity('1').sign()`,
	`ip('1.1.1.1').family()`, `cidr('1.1.1.0/24').containsIP('1.1.1.1')`, `cidr('1.1.1.0/24').containsIP(ip('1.1.1.1'))`, `ip.isCanonical('a')`, `string(ip('1.1.1.1'))`, `isIP(y)`, `type(ip(y))`,
	`format.named('a')`, `format.dns1123Label().validate(y)`, `semver('1.0.0').major()`, `semver('1.0.0') == semver('1.0.0')`, `isSemver(y)`,
	`T{}`, `T{i: 1}`, `T{i: 'a'}`, `T{zzz: 1}`, `T{?i: optional.of(1)}`, `T{?i: 1}`, `T{o: U{s: 'a'}}`, `U{i: 1}.i`, `V{}`, `int{}`, `.T{i: 1}`, `T{d: 1, l: [], m: {}}`, `T{t: null}`, `T{i: null}`,
	`duration('1x')`, `duration(1)`, `duration('1s') < duration('1')`, `duration(y)`, `timestamp('2020')`, `timestamp(253402300800)`, `timestamp(-62135596800)`, `timestamp('0000-12-31T23:59:59Z')`,
	`timestamp('9999-12-31T23:59:59-00:01')`, `timestamp('9999-12-31T23:59:59Z')`, `y.matches('[')`, `y.matches('a{2}')`, `matches('[', 'a')`, `matches(y, '[')`, `matches('a', y)`, `matches('a', '(')`,
	`l.all(z, z.all(w, w.matches('(') || w == duration('1y')))`, `[duration('1y'), 1]`, `[y.format([1, 'a']), 1]`, `[[y.format([1, [2, 'b']])], ['a', 1]]`, `[1, 'a', 2u].size() + [duration('')].size()`,
	`optional_type`, `net.IP`, `net.CIDR`, `kubernetes.URL`, `type(o) == optional_type`, `[optional_type, int]`, `[optional_type, type(optional.of(1))]`, `type(ip(y)) == net.IP`, `optional_type{}`, `net.IP{}`,
	`a.transformList(i, v, i + v)`, `a.transformList(i, v, v > 1, [i, v])`, `b.transformMap(q, v, v)`, `m.transformMap(q, v, v.i)`, `m.transformMapEntry(q, v, {v.s: q})`, `a.transformMapEntry(i, v, {v: i})`, `a.all(i, v, i < v)`,
	`m.exists(q, v, q == v.s)`, `m.exists_one(q, v, q == v.s)`, `a.all(x, x > 0) && x == 1`, `k.map(x, x.i).all(x, x > 0)`, `a.map(z, z > 1, string(z))`, `a.exists_one(z, z > 1)`,
	`a.map(z, a.map(w, z + w))`, `[1, 2].map(z, {z: z}).map(z, {z: z}).map(z, {z: z})`, `{'a': 1}.map(z, z)`, `[{'a': [1u]}][0].a[0] + 1u`, `{'a': {'b': [1]}}.a.b[0] == 1`,
	"[1]" + strings.Repeat(".map(z, [z])", 100),
}

// An expression of this type, at most this deep; sometimes of another type.
func of(r *rand.Rand, kind string, depth int) string {
	if r.Intn(25) == 0 {
		kinds := []string{"int", "string", "bool", "list", "map", "double", "object"}
		kind = kinds[r.Intn(len(kinds))]
	}
	leaves := map[string][]string{
		"int":    {"1", "x", "self.i", "self.o.i", "a[0]", "self.m['k']", "d", "size(y)", "b.x"},
		"string": {"'s'", "y", "self.s", "self.l[0]", "d.s", "o.orValue('q')", "string(x)"},
		"bool":   {"true", "b1", "self.b", "has(self.s)", "has(b.k)", "d"},
		"list":   {"a", "[]", "[1, 2]", "self.m.map(q, 1)", "d.l", "lists.range(3)"},
		"map":    {"b", "{}", "{'a': 1}", "self.m", "d"},
		"double": {"1.5", "f", "self.f", "double(x)"},
		"object": {"self", "m['k']", "k[0]", "T{i: 1}", "d"},
	}
	if depth <= 0 {
		return leaves[kind][r.Intn(len(leaves[kind]))]
	}
	sub := func(kind string) string { return of(r, kind, depth-1) }
	pick := func(options ...string) string { return options[r.Intn(len(options))] }
	switch kind {
	case "int":
		return pick("("+sub("int")+pick(" + ", " - ", " * ", " / ", " % ")+sub("int")+")", sub("list")+"[0]", "size("+sub("string")+")", sub("object")+".i",
			"("+sub("bool")+" ? "+sub("int")+" : "+sub("int")+")", "int("+sub("double")+")", sub("map")+"['a']", sub("list")+".max()", "("+sub("object")+").?i.orValue(1)")
	case "string":
		return pick("("+sub("string")+" + "+sub("string")+")", "string("+sub("int")+")", sub("string")+".lowerAscii()", sub("object")+".s",
			"["+sub("string")+", "+sub("string")+"].join(',')", "("+sub("bool")+" ? "+sub("string")+" : "+sub("string")+")", sub("string")+".trim()")
	case "bool":
		return pick("("+sub("int")+pick(" < ", " <= ", " == ", " != ", " > ", " >= ")+sub(pick("int", "double"))+")", "("+sub("bool")+pick(" && ", " || ")+sub("bool")+")",
			"!"+sub("bool"), sub("list")+pick(".all", ".exists", ".exists_one")+"(z, "+sub("bool")+")", sub("map")+".all(q, v, "+sub("bool")+")", "("+sub("int")+" in "+sub("list")+")",
			"("+sub("string")+" in "+sub("map")+")", sub("string")+pick(".startsWith", ".matches", ".contains")+"("+sub("string")+")", "has("+sub("object")+".o)", "("+sub("object")+" == "+sub("object")+")")
	case "list":
		return pick("["+sub("int")+", "+sub("int")+"]", sub("list")+".map(x, "+sub("int")+")", sub("list")+".filter(x, "+sub("bool")+")", "("+sub("list")+" + "+sub("list")+")",
			sub("list")+".sortBy(z, -z)", sub("list")+".transformList(i, v, i + v)", "["+sub("int")+", ?optional.of("+sub("int")+")]", sub("list")+".distinct()")
	case "map":
		return pick("{"+sub("string")+": "+sub("int")+"}", "{'a': "+sub("int")+", ?'b': optional.of("+sub("int")+")}", sub("map")+".transformMap(q, v, "+sub("int")+")", "("+sub("bool")+" ? "+sub("map")+" : {})")
	case "double":
		return pick("("+sub("double")+pick(" + ", " - ", " * ", " / ")+sub("double")+")", "double("+sub("int")+")", "-"+sub("double"))
	default:
		return pick("T{i: "+sub("int")+", s: "+sub("string")+"}", "("+sub("bool")+" ? "+sub("object")+" : self)", "[self].filter(z, "+sub("bool")+")[0]")
	}
}

func randomTyped(r *rand.Rand, depth int) string {
	kinds := []string{"bool", "bool", "bool", "int", "string", "list", "map", "object"}
	return of(r, kinds[r.Intn(len(kinds))], depth)
}
