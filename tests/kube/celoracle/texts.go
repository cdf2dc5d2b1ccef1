package main

import (
	"fmt"
	"math/rand"
	"strings"
)

// Expressions with functions on texts.
var evaluatedTexts = []string{
	`'tacocat'.charAt(3)`, `'tacocat'.charAt(7)`, `'tacocat'.charAt(8)`, `'tacocat'.charAt(-1)`, `y.charAt(1)`, `''.charAt(0)`, `'tacocat'.indexOf('ac')`, `'tacocat'.indexOf('')`, `'tacocat'.indexOf('', 99)`, `'tacocat'.indexOf('a', 2)`,
	`'tacocat'.indexOf('a', -1)`, `'tacocat'.indexOf('', -1)`, `'tacocat'.indexOf('a', 7)`, `y.indexOf('llo')`, `y.indexOf('llo', 3)`, `'tacocat'.lastIndexOf('at')`, `'tacocat'.lastIndexOf('')`, `''.lastIndexOf('a')`, `'tacocat'.lastIndexOf('a', 6)`, `'tacocat'.lastIndexOf('a', 7)`,
	`'tacocat'.lastIndexOf('at', -1)`, `'tacocat'.lastIndexOf('', 99)`, `'éaé'.lastIndexOf('é')`, `'éaé'.lastIndexOf('é', 1)`, `'a'.lastIndexOf('é')`, `'TacoCÆt'.lowerAscii()`, `'TacoCÆt'.upperAscii()`, `y.upperAscii()`, `'hello hello'.replace('el', 'we')`, `'hello hello'.replace('el', 'we', 1)`,
	`'hello'.replace('', '-')`, `'hello'.replace('', '-', 2)`, `'héé'.replace('', '-', 3)`, `'hello'.replace('l', '', -1)`, `'hello'.replace('l', 'l')`, `'hello'.replace('z', 'y')`, `'hello'.replace('l', 'x', 0)`, `'a,b,c'.split(',')`, `'a,b,c'.split(',', 2)`, `'a,b,c'.split(',', 0)`, `'a,b,c'.split(',', -1)`,
	`''.split(',')`, `''.split('')`, `'héllo'.split('')`, `'héllo'.split('', 2)`, `'a,b'.split(',', 99)`, `'tacocat'.substring(4)`, `'tacocat'.substring(7)`, `'tacocat'.substring(8)`, `'tacocat'.substring(0, 4)`, `'tacocat'.substring(4, 2)`, `'tacocat'.substring(-1, 2)`, `'tacocat'.substring(2, 9)`, `'tacocat'.substring(9, 10)`, `y.substring(1, 3)`,
	`'  trim\u00a0\u2003\u3000 '.trim()`, `'\u0085a\u200b'.trim()`, `''.trim()`, `' '.trim()`, `['a', 'b'].join()`, `['a', 'b'].join('-é-')`, `[].join()`, `[].join(',')`, `d.l.join()`, `b.l.join(',')`, `l[0].join(y)`, `[dyn('a'), dyn(1)].join()`, `[dyn('a'), dyn(null), dyn(2)].join('x')`, `[dyn('a'), dyn(1.5e10)].join('x')`, `[dyn('a'), dyn(b'xy')].join('x')`,
	`strings.quote('a"b\n\t\\ é\u0007\u0000')`, `strings.quote(y)`, `'a%sb'.format(['x'])`, `'%s'.format([[1, 2.5, 'x"', b'q', true, null, duration('1h'), timestamp('2020-01-01T00:00:00Z'), type(1)]])`, `'%s'.format([{'b': 1, 'a': [2u], 'c': {}}])`, `'%s'.format([{1: 'x', 10: 'y', 2: 'z'}])`, `'%s'.format([1.0 / 0.0])`, `'%s'.format([[1.0 / 0.0, -1.0 / 0.0, 0.0 / 0.0]])`,
	`'%d'.format([x])`, `'%d %d'.format([-5, 7u])`, `'%f'.format([1234567.891])`, `'%.3f'.format([f])`, `'%.0f'.format([-2.5])`, `'%.300f'.format([0.1])`, `'%.40000f'.format([0.1])`, `'%.10000010f'.format([0.1])`, `'%f'.format(['NaN'])`, `'%f %f'.format(['Infinity', '-Infinity'])`, `'%f'.format([dyn('nan')])`, `'%e'.format([3.14])`, `'%.20e'.format([-3.14e-100])`, `'%.9e'.format(['NaN'])`,
	`'%b %b %b'.format([5, -5, true])`, `'%x %X %x %X'.format([255, -255, 'é', b'\xff\x00'])`, `'%o'.format([-64])`, `'%%'.format([])`, `'%'.format(dyn([]))`, `y.format([])`, `(y + '%').format([1])`, `(y + '%s').format([])`, `(y + '%z').format([1])`, `(y + '%é').format([1])`, `(y + '%.').format([1])`, `(y + '%.5').format([1])`, `(y + '%.f').format([1.5])`, `(y + '%.99999999999999999999f').format([1.5])`,
	`'%d'.format([dyn('a')])`, `'%s'.format([dyn(quantity('1'))])`, `'%s'.format([[dyn(quantity('1'))]])`, `'%s'.format([dyn(optional.of(1))])`, `'%s'.format([dyn([optional.none()])])`, `'%s'.format([bytes('a')])`, `'%s'.format([b'\xff'])`, `'%s'.format([[b'\xff']])`, `'%d %d'.format(d.l)`, `y.format(d)`, `(y + '%s').format([x / 0 == 1])`, `(x / 0 == 1 ? y : y).format([x])`,
	`y.matches('^h')`, `y.matches('z')`, `y.matches(y)`, `y.matches('(' + y)`, `matches(y, 'l+')`, `matches(y, '(' + y)`, `dyn(x).matches('a')`, `dyn(x).matches(y)`, `y.matches(dyn(x))`, `d.z.matches(y)`, `y.find('l+')`, `y.find('z')`, `y.find('(' + y)`, `dyn(x).find('a')`, `dyn(x).find(y)`, `y.findAll('l')`, `y.findAll('l', 1)`, `y.findAll('', 3)`, `y.findAll('o*', -1)`, `'abab'.findAll('a?')`, `y.findAll('l', dyn('x'))`, `y.findAll(y, dyn('x'))`, `y.findAll('(' + y)`,
	`dyn(duration('1s')).matches(y)`, `(x / 0 == 1 ? y : y).matches('a')`, `(x / 0 == 1 ? y : y).matches(y)`, `l.all(i, i.all(j, j.matches('^' + j + '$')))`,
	`'é\u0000x'.find('.$')`, `d.indexOf('a')`, `d.s.indexOf('t')`, `a.indexOf(3)`, `a.lastIndexOf(9)`, `[1, 2, 1].lastIndexOf(1)`, `d.l.indexOf(dyn('a'))`, `d.l.indexOf(dyn(2.0))`, `d.lastIndexOf('a', 1)`, `dyn([1, 2]).join()`, `d.join(',')`, `d.s.join(',')`, `d.s.split(d)`, `d.charAt(d)`, `d.i.substring(1)`, `d.trim()`, `d.replace(d, d)`, `d.replace(d, d, d)`, `strings.quote(d)`,
	`url('https://user:pa%20ss@example.com:80/a%20b/c?q=1&q=2&r=%41+b#frag')`, `url('https://example.com:80/a b')`, `url('')`, `url('x')`, `url('/abs/path?x=y')`, `url('http://[::1]:8080/').getHost()`, `url('http://[::1%25eth0]/').getHostname()`, `url('http://[1.2.3.4]/')`, `url('http://a b/')`, `url('http://a%zz/')`, `url('http://a:b/')`, `url('mailto:x@y').getScheme()`, `url('a:b#%zz').getHost()`,
	`url('HTTPS://EXAMPLE.com:443/x/%2f/%41?a=b').getEscapedPath()`, `url('https://example.com:80/').getPort()`, `url('https://example.com').getPort()`, `url('https://example.com/?a=1;b=2&c=%zz&d&=e&d=é').getQuery()`, `url('https://e/?a=%ff').getQuery()['a'][0].size()`, `url('https://e/a?') == url('https://e/a')`, `url('https://e/a%41') == url('https://e/aA')`, `isURL('https://e/')`, `isURL('::')`, `isURL(':a')`, `url(':a')`, `url(y)`, `isURL(y)`,
	`url('https://e/?a=%80%80é').getQuery()['a'][0].size()`, `type(url('https://e/'))`, `dyn(url('https://e/')) == 1`, `dyn(url('https://e/')).getScheme()`, `dyn(1).getScheme()`, `dyn(url('https://e/')).matches('a')`, `url('https://e/\u0001')`, `url('*')`, `url('http://x/*').getEscapedPath()`, `string(dyn(url('https://e/')))`,
}

// Expressions with constants that are checked.
var typedTexts = []string{
	`duration('1x')`, `duration('1h')`, `duration(1)`, `duration(null)`, `duration(dyn('x'))`, `[duration('x'), duration('y')]`, `timestamp('x')`, `timestamp('2020-01-01T00:00:00Z')`, `timestamp(253402300800)`, `timestamp(1)`, `timestamp(null)`, `timestamp('x').getHours('y')`, `y.matches('[')`, `y.matches('a')`, `y.matches(y + '[')`, `matches('[', y)`, `matches(y, '[')`,
	`dyn('x').matches('(')`, `y.find('[')`, `t < timestamp('2020-13-01T00:00:00Z') && u > duration('') && y.matches('a{2,1}')`, `a.map(i, duration('x'))`, `o.optMap(i, duration('x'))`, `optional.of(duration('x')).optMap(i, i)`, `has(self.t) && self.t > timestamp('')`, `y.matches('(a{1000}){1000}')`, `duration('9223372037s')`,
	`'%s'.format([1])`, `'%s %d'.format([1])`, `'%s'.format([1, 2])`, `'%d'.format(['a'])`, `'%'.format([])`, `'%'.format([1])`, `'%z'.format([1])`, `'%.5'.format([1])`, `'%.f'.format([1.5])`, `'%.99999999999999999999f'.format([1.5])`, `'%f'.format([1])`, `'%f'.format(['a'])`, `'%e'.format([y])`, `'%e'.format([true])`, `'%b'.format([1.5])`, `'%x'.format([1.5])`, `'%X'.format([b'a'])`,
	`'%o'.format(['a'])`, `'%s'.format([self])`, `'%s'.format([o])`, `'%s'.format([quantity('1')])`, `'%s'.format([ip('1.1.1.1')])`, `'%s'.format([[1, o]])`, `'%s'.format([{'a': self}])`, `'%s'.format([{'a': [1, {'b': o}]}])`, `'%s'.format([?o])`, `'%s'.format([d, l, m, t, u, null, type(1)])`, `'%s %s'.format([dyn(1), [dyn(self)]])`, `'%s'.format(a)`, `y.format([1])`, `(y + '').format([self])`, `'%d'.format([d])`, `'%s'.format([k])`,
	`'%s'.format(['%d'.format(['a'])])`, `'%d'.format(['%d'.format(['a'])])`, `'%d'.format(['%d'.format([])])`, `[1, '%d'.format([])]`, `[1, '%d'.format(['a', 'b'])]`, `'%s'.format([[1, 'a'], {1: 2, 'a': 'b'}, duration('x')])`, `[1, 'a'].map(i, '%s'.format([i, [1, 'b']]))`, `'a'.format([[1, 'a']]) + [1, 'a'][0]`, `"%s".format([1]) == '%%' ? [1, 2.0] : []`, `{1: [1, 'a'], 'b': {2: 'c', 3: 4}}`, `[[1], ['a'], [1, 'a']]`,
	`[?optional.of(1), 'a']`, `[?optional.of(1), 2]`, `{?'a': optional.of(1), 'b': 'c'}`, `[1, dyn(2)]`, `[[], [1]]`, `[1, 2.0, 'a', true]`, "'%d'.format([\n'a'])", `'é%d'.format(['é'])`,
}

// Texts with what a text can have.
func (m maker) anyText() string {
	text := ""
	for i := 0; i < m.Intn(6); i++ {
		text += m.pick("a", "b", "ab", "aa", "é", "世", "😀", " ", "\\t", "\\n", "%", ",", ".", "-", "A", "Z", "Ä", "\\u00a0", "\\u3000", "\\u0085", "\\ufffd", "\\u0000", "\\\"", "1", "0", "lo", "l")
	}
	return text
}

func (m maker) index() string {
	return m.pick("0", "1", "2", "3", "-1", "5", "x", "9223372036854775807", "-9223372036854775808", "dyn(1)", "dyn(y)", "size(y)")
}

func (m maker) subject() string {
	return m.pick(m.text(m.anyText()), m.text(m.anyText()), m.text(m.anyText()+m.anyText()), "y", "d.s", "d", "l[0][1]", "dyn(l[0])")
}

func (m maker) stringExpression(depth int) string {
	s := m.subject
	if depth > 0 && m.Intn(3) == 0 {
		s = func() string { return "(" + m.stringExpression(depth-1) + ")" }
	}
	switch m.Intn(15) {
	case 0:
		return s() + ".charAt(" + m.index() + ")"
	case 1:
		return s() + m.pick(".indexOf(", ".lastIndexOf(") + m.subject() + ")"
	case 2:
		return s() + m.pick(".indexOf(", ".lastIndexOf(") + m.subject() + ", " + m.index() + ")"
	case 3:
		return s() + m.pick(".lowerAscii()", ".upperAscii()", ".trim()", ".trim()")
	case 4:
		return s() + ".replace(" + m.subject() + ", " + m.subject() + ")"
	case 5:
		return s() + ".replace(" + m.subject() + ", " + m.subject() + ", " + m.index() + ")"
	case 6:
		return s() + ".split(" + m.subject() + ")"
	case 7:
		return s() + ".split(" + m.subject() + ", " + m.index() + ")"
	case 8:
		return s() + ".substring(" + m.index() + ")"
	case 9:
		return s() + ".substring(" + m.index() + ", " + m.index() + ")"
	case 10:
		if s = func() string { return m.text(m.anyText()) }; m.Intn(2) == 0 { // no map, whose text has no order in Go
			s = func() string { return m.stringExpression(0) }
		}
		return m.pick("["+s()+", "+s()+"]", "[dyn("+s()+"), dyn("+m.opaqueFreeValue()+")]", "l[0]", "d.l", "b.l", s()+".split("+s()+")", "[]", "d", "[dyn("+s()+")] + [dyn("+m.opaqueFreeValue()+")]") + m.pick(".join()", ".join("+s()+")")
	case 11:
		return "strings.quote(" + s() + ")"
	case 12:
		return "size(" + s() + ")"
	case 13:
		return s() + m.pick(" == ", " + ", " < ") + s()
	default:
		return s() + m.pick(".startsWith(", ".contains(", ".endsWith(") + s() + ")"
	}
}

// Values that Go's %v shows in a way of their own are left out.
func (m maker) opaqueFreeValue() string {
	return m.pick("x", "1.5", "1e100", "-0.0", "2u", "true", "null", "b'ab'", "[1, 2]", "['a', 'b']", "[1.5]", "{'a': 1}", "d.l", "d.z", "d.o", "b.l", "a", "int", "optional.none()", "optional.of(1)", "[[1], [2]]", "y", "d.i")
}

func (m maker) formatValue() string {
	return m.pick("x", "1", "-255", "7u", "1.5", "1234567.891", "-0.0001", "1e300", "5e-324", "-0.0", "1e-7", "0.0/0.0", "1.0/0.0", "-1.0/0.0", "999999.9999999", "0.5", "2.5", "true", "null", "y", "'NaN'", "'Infinity'", "'-Infinity'", "'-NaN'", m.subject(), "b'ab\\xff'", "b'ab'",
		"duration('1h30m')", "timestamp('2020-02-29T12:30:45.5+05:30')", "type(1)", "type([1])", "[1, 2]", "['a', 'é\"']", "[1.5, 1e300]", "[[1], []]", "{'a': 1, 'b': 2}", "{2: 'x', 10: 'y'}", "{true: null}", "{}", "d", "d.l", "d.z", "d.s", "b", "b.l", "b.m", "a", "n", "dyn(x)", "dyn(1.5)", "quantity('1')", "ip('1.2.3.4')", "optional.of(1)", "url('https://e/')",
		"[optional.of(1)]", "[quantity('1')]", "{'a': quantity('1')}", "x / 0", fmt.Sprint(m.NormFloat64()*1e6), fmt.Sprint(m.NormFloat64()), fmt.Sprint(m.NormFloat64()*1e-5), fmt.Sprint(m.Float64()*1e18), fmt.Sprint(m.Int63()))
}

func (m maker) clause() string {
	return "%" + m.pick("s", "s", "d", "f", "e", "b", "x", "X", "o", "%", ".2f", ".0f", ".10f", ".25e", ".0e", ".3s", ".1d", ".300f", ".40000f", ".65541f", ".32768f", ".f", ".", "z", "é", "", " ", ".9999999f", ".10000010f", ".10000000f", ".99999999999999999999f", ".65560e", ".10000010e", "-5f", fmt.Sprintf(".%df", m.Intn(400)), fmt.Sprintf(".%de", m.Intn(50)))
}

func (m maker) formatExpression() string {
	format, values := "", []string{}
	for i := 0; i < m.Intn(4); i++ {
		format += m.pick("", "", "a", "é", ": ", "%%") + m.clause()
	}
	for i := strings.Count(format, "%") - 2*strings.Count(format, "%%"); i > 0; i-- {
		values = append(values, m.formatValue())
	}
	if m.Intn(10) == 0 {
		values = append(values, m.formatValue())
	}
	if m.Intn(10) == 0 && len(values) > 0 {
		values = values[1:]
	}
	return m.pick("'"+format+"'", "'"+format+"'", "dyn('"+format+"')", "(b1 ? '"+format+"' : y)") + ".format(" + m.pick("["+strings.Join(values, ", ")+"]", "["+strings.Join(values, ", ")+"]", "dyn(["+strings.Join(values, ", ")+"])", "d.l", "d") + ")"
}

func (m maker) pattern() string {
	text := ""
	for i := 0; i < 1+m.Intn(5); i++ {
		text += m.pick("a", "l", "b*", "[a-z]", "(a|b)", ".", "\\\\w+", "é", "^", "$", "o?", "(", ")", "[", "x{2}", "\\\\b", "(?i)", "l+", "|", "", "\\\\d", "*", "a{2,1}", "\\\\pL")
	}
	return text
}

func (m maker) patternExpression() string {
	pattern := m.pick("'"+m.pattern()+"'", "'"+m.pattern()+"'", "("+m.text(m.pattern())+")", "('' + '"+m.pattern()+"')", "y", "d")
	switch m.Intn(5) {
	case 0:
		return m.subject() + ".matches(" + pattern + ")"
	case 1:
		return "matches(" + m.subject() + ", " + pattern + ")"
	case 2:
		return m.subject() + ".find(" + pattern + ")"
	case 3:
		return m.subject() + ".findAll(" + pattern + ")"
	default:
		return m.subject() + ".findAll(" + pattern + ", " + m.index() + ")"
	}
}

func (m maker) urlText() string {
	if m.Intn(10) == 0 {
		return m.anyText()
	}
	host := m.pick("example.com", "EXAMPLE.com", "1.2.3.4", "[::1]", "[fe80::1%25eth0]", "[fe80::1%25e%20]", "[::ffff:1.2.3.4]", "[1.2.3.4]", "[::1", "a b", "a%20b", "a%C3%A9", "é", "a%zz", "", "a,b", "a<b>", "[::zz]", "a[::1]", "x:1:2", "%ff", "a%2", "[:", "a\\\"b")
	return m.pick("http", "https", "HTTP", "ftp", "a+b-c.1", "1a", "", "é", "file", "x_y") + m.pick(":", ":", ":", ":", "") + m.pick("//", "//", "//", "//", "/", "", "///") +
		m.pick("", "", "", "user@", "user:pass@", "us%20er:p%3Ass@", "a@b@", "us er@", "u%zz@", "é@", ":@", "u:a:b@") + host + m.pick("", "", ":80", ":", ":a", ":8a", ":-1", ":99999") +
		m.pick("", "/", "/a/b", "/a%20b", "/a b", "/%2f/%41", "/é", "/a%zz", "/*", "/a:b;c,d=e+f!'()[]", "/a\\\"<>", "/%", "/..//.", "/\\u0001", "/a|b") +
		m.pick("", "?", "?a=b", "?a=b&a=c", "?a=%41+b&c", "?&=x&", "?a;b", "?a=%zz&b=1", "??", "?é=ü", "?a?b=c", "?a=%ff%fe") + m.pick("", "", "", "#", "#frag", "#a%20b", "#%zz", "#a#b", "#é(!)*'")
}

func (m maker) url() string {
	return "url(" + m.text(m.damage(m.urlText())) + ")"
}

func (m maker) urlExpression() string {
	switch m.Intn(5) {
	case 0:
		return "isURL(" + m.text(m.damage(m.urlText())) + ")"
	case 1:
		return "(" + m.url() + m.pick(" == ", " != ") + m.url() + ")"
	case 2:
		text := m.text(m.urlText())
		return "[url(" + text + ")].map(u, [u.getScheme(), u.getHost(), u.getHostname(), u.getPort(), u.getEscapedPath()])"
	case 3:
		return m.url() + m.pick(".getQuery()", ".getQuery().map(k, k).size()", ".getQuery()['a']")
	default:
		return m.url() + m.pick(".getScheme()", ".getHost()", ".getHostname()", ".getPort()", ".getEscapedPath()")
	}
}

func randomText(r *rand.Rand) string {
	m := maker{r}
	switch r.Intn(5) {
	case 0:
		return m.formatExpression()
	case 1:
		return m.patternExpression()
	case 2:
		return m.urlExpression()
	}
	return m.stringExpression(r.Intn(3))
}
