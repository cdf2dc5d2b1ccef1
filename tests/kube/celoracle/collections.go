package main

import (
	"fmt"
	"math/rand"
	"strings"
)

// Expressions with functions of lists and sets.
var evaluatedCollections = []string{
	`a.isSorted()`, `[2, 1].isSorted()`, `d.l.isSorted()`, `[].isSorted()`, `dyn(l).isSorted()`, `[dyn(1), dyn('a'), dyn(0)].isSorted()`, `[dyn(1), dyn(2.5), dyn(2u)].isSorted()`, `[0.0/0.0, 1.0].isSorted()`,
	`a.sum()`, `[].sum()`, `[1u].filter(x, x > 1u).sum()`, `[duration('1s')].filter(x, false).sum()`, `[dyn(duration('1s')), dyn(timestamp('2020-01-01T00:00:00Z'))].sum()`, `[9223372036854775807, 1].sum()`, `[dyn(1), dyn('a')].sum()`, `dyn(['a']).sum()`, `[dyn(1), dyn(null)].sum()`,
	`a.max()`, `a.min()`, `[].max()`, `d.l.min()`, `['b', 'a'].min()`, `[dyn(1), dyn('a'), dyn(2)].max()`, `dyn([null]).max()`, `[dyn(1), dyn(null)].max()`, `dyn(1).max()`, `a.indexOf(3)`, `a.lastIndexOf(9)`, `[1, 2, 1].lastIndexOf(1)`, `l.indexOf(['ccc'])`, `dyn(a).indexOf(2.0)`, `[dyn(ip('1.1.1.1')), dyn(1)].indexOf(1)`,
	`a.slice(1, 3)`, `a.slice(3, 1)`, `a.slice(-1, 2)`, `a.slice(0, 9)`, `a.slice(0, 0)`, `dyn(1).slice(0, 1)`, `a.reverse()`, `lists.range(4)`, `lists.range(-1)`, `lists.range(999979)`, `lists.range(1000000)`, `[].reverse()`,
	`l.flatten()`, `[dyn(1), dyn([dyn(2), dyn([dyn(3), dyn([4])])])].flatten()`, `[dyn(1), dyn([dyn(2), dyn([dyn(3), dyn([4])])])].flatten(2)`, `[dyn(1), dyn([dyn(2), dyn([dyn(3), dyn([4])])])].flatten(99)`, `[1].flatten(0)`, `dyn(1).flatten()`, `dyn(b).flatten(1)`, `dyn([1]).flatten(dyn('a'))`, `[].flatten(-1)`,
	`[3, 1, 2].sort()`, `['b', 'a'].sort()`, `[dyn(1), dyn('a')].sort()`, `[dyn(null), dyn(null)].sort()`, `dyn(x).sort()`, `dyn(y).sort()`, `l.sortBy(i, i.size())`, `d.l.sortBy(i, -i)`, `[0.0/0.0, 1.0, 0.5].sort()`, `[1 / (x - 3)].sort()`, `[1 / (x - 3)].distinct()`, `dyn(b).distinct()`, `dyn(y).distinct()`, `dyn(null).distinct() == [] || true`,
	`[1, 2, 1, 3].distinct()`, `[dyn(1), dyn(1.0), dyn(1u), dyn('a'), dyn('a'), dyn(null), dyn(null)].distinct()`, `[[1], [1], [2]].distinct()`, `[].distinct()`, `a.first()`, `a.last()`, `[].first()`, `[].last()`, `dyn(x).first()`, `d.l.first()`,
	`[optional.of(1), optional.none()].unwrapOpt()`, `optional.unwrap([optional.of(1), optional.none()])`, `optional.unwrap([])`, `dyn([1]).unwrapOpt()`, `[dyn(optional.none()), dyn(1)].unwrapOpt()`, `optional.unwrap([dyn(optional.none()), dyn('a')])`,
	`sets.contains(a, [1, 2])`, `sets.contains(a, [1, 9])`, `sets.contains([], [])`, `sets.equivalent([1, 1, 2], [2, 1])`, `sets.intersects(a, [8, 9])`, `sets.intersects([], [])`, `sets.contains(dyn(a), [dyn(1.0), dyn(2u)])`, `sets.contains(dyn(x), dyn(a))`, `sets.equivalent(dyn(y), dyn(b))`,
}

// Items of one kind, or of several.
func (m maker) item(kind string) string {
	switch kind {
	case "int":
		return m.pick("1", "2", "3", "-1", "0", "x", "a[0]", "9223372036854775807", fmt.Sprint(m.Intn(100)))
	case "uint":
		return m.pick("1u", "2u", "0u", "18446744073709551615u", fmt.Sprintf("%du", m.Intn(100)))
	case "double":
		return m.pick("1.5", "0.0", "-0.0", "f", "1e300", "0.0/0.0", "1.0/0.0", fmt.Sprintf("%d.25", m.Intn(10)))
	case "string":
		return m.pick("'a'", "'b'", "''", "y", "'a'", "'é'", "'long text of more than ten bytes'", fmt.Sprintf("'%d'", m.Intn(10)))
	case "bytes":
		return m.pick("b'a'", "b''", "b'\\xff'", "bytes(y)")
	case "bool":
		return m.pick("true", "false", "b1")
	case "duration":
		return m.pick("duration('1s')", "duration('-1h')", "duration('2562047h')", "duration('0s')")
	case "timestamp":
		return m.pick("timestamp('2020-01-01T00:00:00Z')", "timestamp('0001-01-01T00:00:00Z')", "timestamp(1000)")
	case "list":
		return m.pick("[1]", "[]", "['a', 'b']", "a", "l", "[[1], [2]]", "l[0]", m.list(m.pick("int", "string", "mixed"), 0))
	case "map":
		return m.pick("{}", "{'a': 1}", "n", "{'a': 'some text here'}")
	case "optional":
		return m.pick("optional.of(1)", "optional.none()", "optional.of('a')", "optional.of(optional.none())", "optional.of(null)")
	case "opaque":
		return m.pick("ip('1.2.3.4')", "quantity('1')", "quantity('1000m')", "semver('1.2.3')", "cidr('1.2.3.0/24')")
	case "null":
		return "null"
	default:
		return "dyn(" + m.item(m.pick("int", "int", "uint", "double", "string", "bytes", "bool", "duration", "timestamp", "list", "map", "optional", "opaque", "null")) + ")"
	}
}

func (m maker) itemKind() string {
	return m.pick("int", "int", "uint", "double", "string", "string", "bytes", "bool", "duration", "timestamp", "list", "map", "optional", "opaque", "mixed")
}

func (m maker) list(kind string, depth int) string {
	count := m.pick("0", "1", "2", "3", "3", "5", "9")
	if m.Intn(6) == 0 {
		count = "30"
	}
	items := []string{}
	n := 0
	fmt.Sscan(count, &n)
	for i := 0; i < n; i++ {
		item := m.item(kind)
		if m.Intn(60) == 0 {
			item = "dyn(" + m.item("mixed") + ")"
		}
		if m.Intn(150) == 0 {
			item = m.pick("1 / (x - 3)", "b.zzz", "d.l[9]")
		}
		items = append(items, item)
	}
	list := "[" + strings.Join(items, ", ") + "]"
	if m.Intn(5) == 0 {
		list = m.pick("a", "l", "d.l", "b.l", "l[0]", "l[1]", "a.map(i, string(i))", "l.map(i, i.size())", "d", "x", "b", "lists.range(x)")
	}
	if depth > 0 && m.Intn(3) == 0 {
		return m.listOf(kind, depth-1)
	}
	if m.Intn(4) == 0 {
		return "dyn(" + list + ")"
	}
	return list
}

// Keys with many repetitions, so that the order of equal items shows.
func (m maker) sortKey() string {
	return m.pick("i", "-i", "i % 7", "i % 2", "string(i)", "(i * 7919) % 101", "(i * 7919) % 13", "i / 10", "i % 3 == 0", "double(i % 5)", "dyn(i)", "i < 40 ? i : 80 - i", "(i * i) % 17", "[i]", "dyn(i % 9 == 0 ? dyn('a') : dyn(i))", "bytes(string(i % 4))", "duration(string(i % 3) + 's')", "i < 100 ? -i : i", "(i % 50 == 0) ? 0 : i")
}

func (m maker) listOf(kind string, depth int) string {
	in := m.list(kind, depth)
	switch m.Intn(9) {
	case 0:
		return in + ".reverse()"
	case 1:
		return in + ".slice(" + m.pick("0", "1", "2", "-1", "x", "dyn('a')", "1 / (x - 3)") + ", " + m.pick("0", "1", "2", "3", "9", "-1", "x", "dyn(1u)", "d.l[7]") + ")"
	case 2:
		return in + ".distinct()"
	case 3:
		return in + ".sort()"
	case 4:
		return in + m.pick(".flatten()", ".flatten()", ".flatten(1)", ".flatten(2)", ".flatten(0)", ".flatten(x)", ".flatten(dyn(y))", ".flatten(100)")
	case 5:
		return "lists.range(" + m.pick("0", "1", "13", "60", "x", "-3", "200", "dyn('a')", "dyn(2u)") + ")"
	case 6:
		return "lists.range(" + m.pick("5", "12", "13", "20", "49", "50", "51", "100", "300", fmt.Sprint(m.Intn(600))) + ").sortBy(i, " + m.sortKey() + ")"
	case 7:
		return in + ".sortBy(i, " + m.pick("i", "string(i)", "size(i)", "dyn(i)", "1", "type(i) == int", "i.size()", "-i") + ")"
	default:
		return m.pick("optional.unwrap(", "optional.unwrap(dyn(", "((") + m.list(m.pick("optional", "optional", "optional", kind), 0) + m.pick(")", "))", ").unwrapOpt()")
	}
}

func (m maker) collection() string {
	kind := m.itemKind()
	depth := m.Intn(3)
	switch m.Intn(10) {
	case 0, 1:
		return m.listOf(kind, depth)
	case 2:
		return m.pick("sets.contains(", "sets.equivalent(", "sets.intersects(") + m.list(kind, depth) + ", " + m.list(m.pick(kind, kind, kind, "mixed", m.itemKind()), depth) + ")"
	case 3:
		return m.list(kind, depth) + m.pick(".indexOf(", ".lastIndexOf(") + m.pick(m.item(kind), m.item(kind), m.item("mixed"), m.list(kind, 0)) + ")"
	case 4:
		return m.list(kind, depth) + m.pick(".first()", ".last()")
	case 5:
		in := m.listOf(kind, depth)
		return m.pick("size("+in+")", in+" == "+m.listOf(kind, depth), in+"[0]", in+".all(i, i == i)", "("+in+" == [] || true)", in+" + "+in, in+".map(i, [i])")
	default:
		return m.list(m.pick(kind, "int", "uint", "double", "duration"), depth) + m.pick(".isSorted()", ".sum()", ".max()", ".min()", ".sum()")
	}
}

func randomCollection(r *rand.Rand) string { return maker{r}.collection() }
