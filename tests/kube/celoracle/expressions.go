package main

import (
	"math/rand"
	"strings"
)

// Expressions with what a random one rarely has.
var examples = []string{
	`self.replicas <= self.max`, `-9223372036854775808`, `--1`, `!!a`, `- 1`, `-1u`, `---x`, `!-x`, `-!x`, `1 - -1`, `1--1`, `a-1`,
	`1.`, `1.e`, `.5`, `1e3`, `1E-3`, `1e`, `0x1F`, `0xu`, `0x`, `0x1Fu`, `007`, `18446744073709551615u`, `18446744073709551616u`,
	`9223372036854775808`, `1e400`, `1e-400`, `123456789012345678901234567890.5`,
	`"a\nb"`, `'it''s'`, `'''a'b'''`, `"""a"b"""`, `r"a\nb"`, `R'''x\'''`, `b"\xff\377"`, `br"\x"`, `rb"x"`, `B'é'`, `"\u00e9\U0001F600"`,
	`"\ud800"`, `"\U00110000"`, `b"\u00e9"`, `"\x41\101"`, `"\8"`, `"\400"`, `"\x4"`, `"abc`, `'abc`, `"""abc`, `"a` + "\n" + `b"`,
	"'''a\r\nb\rc'''", "\"\\`\\?\\\"\"", `""`, `''`, `""""""`, `b''`, `""""`, `'''`,
	`a.b.c`, `.a.b`, `.a()`, `a.?b`, `a.?b.c`, `a[?0]`, `a[0][1].b(1, 2)`, `a.b{}`, `.a.b.C{x: 1, ?y: 2,}`, `A{}`, `(A){}`, `A{}.x`, `A{}{}`,
	`[]`, `[,]`, `[1,]`, `[1, ?a, 2]`, `{}`, `{,}`, `{1: 2,}`, `{?a: b, "c": d}`, `[1 2]`, `[1,,2]`, `{1}`, `{1:}`, `{a: 1 b: 2}`,
	`a ? b : c ? d : e`, `a ? b ? c : d : e`, `(a ? b : c) ? d : e`, `a ? b`, `a ? b :`, `a || b && c || d`, `a || b || c || d || e`,
	`a && b && c`, `a == b == c`, `a < b in c`, `1 + 2 * 3 - 4 / 5 % 6`, `a in [1, 2]`, `__in__`, `a.in`, `a.true`, `a.null`, `a.as`, `as`, `package.x`,
	`while(1)`, `if`, `namespace`, `true()`, `in`, `a in`, `a.`, `a.?`, `a..b`, `.`, `..a`, `a.1`, `a[`, `a[]`, `a[1`, `(a`, `a)`, `()`, `f(`, `f(a`, `f(a,`, `f(a,)`, `f(a b)`,
	`a b`, `a b c`, `a & b`, `a | b`, `a = b`, `*@a | b`, `1 + +`, `1 + + 2`, `1 + $`, `#`, `é`, `'é' + x`, `a // b`, "a // b\n + c", "a\n+ b", `a.` + "`b-c`", "`a`", "a.`b", "A{`b`: 1}",
	`has(a.b)`, `has(a)`, `has(a.b.c)`, `has(a[0])`, `has()`, `has(a.b, c)`, `a.has(b.c)`, `has(a.b()) `, `.has(a.b)`,
	`a.all(x, x > 1)`, `a.exists(x, x)`, `a.exists_one(x, x)`, `a.existsOne(x, x)`, `a.map(x, x + 1)`, `a.map(x, x > 1, x + 1)`, `a.filter(x, x > 1)`,
	`a.all(x.y, true)`, `a.map(1, true)`, `a.filter(x.y, true)`, `a.all(__result__, true)`, `a.map(__result__, true)`, `a.all(.x, true)`, `all(x, true)`,
	`a.all(k, v, k == v)`, `a.exists(k, v, k == v)`, `a.exists_one(k, v, k == v)`, `a.existsOne(k, v, k == v)`, `a.all(k, k, true)`, `a.all(k, 1, true)`,
	`a.transformList(k, v, k)`, `a.transformList(k, v, v > 1, k)`, `a.transformMap(k, v, k)`, `a.transformMap(k, v, v > 1, k)`,
	`a.transformMapEntry(k, v, {k: v})`, `a.transformMapEntry(k, v, v > 1, {k: v})`,
	`a.optMap(x, x + 1)`, `a.optFlatMap(x, x)`, `a.optMap(1, x)`, `a.optFlatMap(x.y, x)`, `a.?b.optMap(x, {x: [1, ?x]}).orValue({})`, `a.optMap(x, x.all(y, y))`,
	`a.sortBy(x, x.y)`, `[3, 1].sortBy(x, -x)`, `1.sortBy(x, x)`, `a.sortBy(1, x)`, `{}.sortBy(x, x)`, `A{}.sortBy(x, x)`,
	`a.map(x, x.map(y, y.filter(z, z > x)))`, `optional.of(1)`, `optional.none().hasValue()`, `"%s".format(["a"])`,
	``, ` `, `//`, strings.Repeat("(", 249) + "a" + strings.Repeat(")", 249), strings.Repeat("(", 250) + "a" + strings.Repeat(")", 250),
	"a" + strings.Repeat(".b", 249), "a" + strings.Repeat(".b", 250), "a" + strings.Repeat(".b", 251), "1" + strings.Repeat("+1", 250), "1" + strings.Repeat("+1", 251),
	strings.Repeat("1+(", 124) + "1" + strings.Repeat(")", 124), strings.Repeat("1+(", 125) + "1" + strings.Repeat(")", 125),
	strings.Repeat("1<(", 124) + "1" + strings.Repeat(")", 124), strings.Repeat("1<(", 126) + "1" + strings.Repeat(")", 126),
	strings.Repeat("1+1*(", 83) + "1" + strings.Repeat(")", 83), strings.Repeat("1+1*(", 84) + "1" + strings.Repeat(")", 84),
	strings.Repeat("[", 249) + strings.Repeat("]", 249), strings.Repeat("[", 250) + strings.Repeat("]", 250), strings.Repeat("[", 251) + strings.Repeat("]", 251), strings.Repeat("!", 300) + "a",
	strings.Repeat("f(", 249) + "a" + strings.Repeat(")", 249), strings.Repeat("f(", 250) + "a" + strings.Repeat(")", 250),
	strings.Repeat("a?b:", 249) + "c", strings.Repeat("a?b:", 250) + "c", strings.Repeat("a&&", 300) + "a", strings.Repeat("a||", 1000) + "a",
	"a" + strings.Repeat(".f()", 250), "a" + strings.Repeat(".f()", 251), "a" + strings.Repeat("[0]", 250), "a" + strings.Repeat("[0]", 251), "1" + strings.Repeat("==1", 251),
	strings.Repeat("a", 100000), strings.Repeat("a", 100001), strings.Repeat("é", 100001),
}

var words = []string{
	"a", "b", "self", "x", "f", "g", "has", "all", "exists", "map", "filter", "optMap", "sortBy", "A", "in", "true", "false", "null",
	"1", "2u", "-3", "1.5", "0x1F", `"s"`, `'t'`, `r"\"`, `b"y"`, "(", ")", "(", ")", "[", "]", "{", "}", ".", ".", ",", ":", "?", "+", "-", "*", "/", "%",
	"==", "!=", "<", "<=", ">", ">=", "&&", "||", "!", "as", "&", "=", "$", "\n", "// c\n", "é",
}

// A valid expression, at most this deep.
func valid(r *rand.Rand, depth int) string {
	names := []string{"a", "b", "self", "x", "y"}
	name := names[r.Intn(len(names))]
	if depth == 0 || r.Intn(6) == 0 {
		leaves := []string{name, name, "1", "-2", "3u", "2.5", `"s"`, `b'z'`, "true", "null", "[]", "{}", "." + name}
		return leaves[r.Intn(len(leaves))]
	}
	sub := func() string { return valid(r, depth-1) }
	operators := []string{"+", "-", "*", "/", "%", "==", "!=", "<", "<=", ">", ">=", "&&", "||", " in "}
	switch r.Intn(15) {
	case 0, 1, 2, 3:
		return sub() + operators[r.Intn(len(operators))] + sub()
	case 4:
		return "(" + sub() + ")"
	case 5:
		return "!(" + sub() + ")"
	case 6:
		return "(" + sub() + ")." + name
	case 7:
		return "(" + sub() + ")[" + sub() + "]"
	case 8:
		return "[" + sub() + ", ?" + sub() + "]"
	case 9:
		return "{" + sub() + ": " + sub() + ", ?" + sub() + ": " + sub() + "}"
	case 10:
		return "(" + sub() + ") ? (" + sub() + ") : " + sub()
	case 11:
		macros := []string{"all", "exists", "exists_one", "existsOne", "map", "filter", "optMap", "optFlatMap", "sortBy"}
		return name + "." + macros[r.Intn(len(macros))] + "(" + names[r.Intn(len(names))] + ", " + sub() + ")"
	case 12:
		macros := []string{"all", "exists", "transformList", "transformMap", "transformMapEntry"}
		return name + "." + macros[r.Intn(len(macros))] + "(x, y, " + sub() + ")"
	case 13:
		return "has(" + name + "." + name + ") && " + name + ".?" + name + ".f(" + sub() + ", " + sub() + ")"
	default:
		return "A." + name + "{f: " + sub() + ", ?g: " + sub() + "}"
	}
}

// A valid expression, one with a mistake, or any words.
func randomExpression(r *rand.Rand) string {
	if r.Intn(4) == 0 {
		var text strings.Builder
		for n := 1 + r.Intn(8); n > 0; n-- {
			text.WriteString(words[r.Intn(len(words))])
			if r.Intn(3) > 0 {
				text.WriteString(" ")
			}
		}
		return text.String()
	}
	text := valid(r, 1+r.Intn(4))
	if r.Intn(3) == 0 {
		at := r.Intn(len(text) + 1)
		for at < len(text) && at > 0 && text[at]&0xc0 == 0x80 {
			at++
		}
		text = text[:at] + words[r.Intn(len(words))] + text[at:]
	}
	return text
}
