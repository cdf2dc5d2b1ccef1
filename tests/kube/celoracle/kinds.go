package main

import (
	"fmt"
	"math/rand"
	"regexp"
	"strings"
)

// Expressions with times, and values of the types that Kubernetes' libraries bring.
var evaluatedKinds = []string{
	`duration('1h30m') + duration('1s')`, `duration('-0.5s')`, `string(duration('1h'))`, `string(duration('0.000000001s'))`, `string(duration('-2562047h47m16.854775807s'))`, `duration('2562047h47m16.854775807s') + duration('1ns')`,
	`duration('2562047h').getHours()`, `duration('2562046h59m59.999999999s').getHours()`, `duration('-1.5h').getMinutes()`, `duration('9223372036s').getSeconds()`, `duration('1500ms').getMilliseconds()`, `int(duration('1s'))`, `duration(y)`, `duration(dyn(x))`,
	`timestamp('2020-02-29T12:30:45.123456789Z')`, `timestamp('2020-02-29T12:30:45+05:30')`, `string(timestamp('2020-02-29T12:30:45+05:30'))`, `timestamp('2020-02-29T12:30:45-24:60') + duration('1s')`, `timestamp('2020-01-01T1:00:00Z')`, `timestamp('2020-01-01T00:00:00,5Z')`,
	`timestamp('0001-01-01T00:00:00Z')`, `optional.ofNonZeroValue(timestamp('0001-01-01T00:00:00Z'))`, `timestamp(string(y + 'Z'))`, `timestamp(b1 ? '0000-12-31T23:59:59Z' : y)`, `timestamp(253402300799)`, `timestamp(x * 253402300800)`, `timestamp('9999-12-31T23:59:59Z') + duration('1ns')`, `timestamp('9999-12-31T23:59:59Z') + duration('1s')`,
	`timestamp('9999-12-31T23:59:59Z') - timestamp('0001-01-01T00:00:00Z')`, `timestamp('2020-01-01T00:00:00Z') - timestamp('2019-01-01T00:00:00Z')`, `timestamp('2020-01-01T00:00:00Z') - duration('1h')`, `int(timestamp('2020-01-01T00:00:00Z'))`, `timestamp('9999-12-31T23:30:00+01:00') + duration('1h')`,
	`timestamp('2020-02-29T12:30:45.5Z').getFullYear()`, `timestamp('2020-02-29T12:30:45.5Z').getMonth()`, `timestamp('2020-02-29T12:30:45.5Z').getDate()`, `timestamp('2020-02-29T12:30:45.5Z').getDayOfMonth()`, `timestamp('2020-12-31T12:30:45.5Z').getDayOfYear()`, `timestamp('2020-02-29T12:30:45.5Z').getDayOfWeek()`,
	`timestamp('2020-02-29T12:30:45.5+03:00').getHours()`, `timestamp('2020-02-29T12:30:45.5Z').getMinutes('+05:45')`, `timestamp('2020-02-29T12:30:45.5Z').getHours('-08:00')`, `timestamp('2020-02-29T12:30:45.5Z').getHours('America/New_York')`, `timestamp('2020-07-29T12:30:45.5Z').getHours('Europe/Berlin')`, `timestamp('2120-07-29T12:30:45.5Z').getHours('Australia/Sydney')`,
	`timestamp('1800-07-29T12:30:45.5Z').getMinutes('Europe/Berlin')`, `timestamp('2020-02-29T12:30:45.5Z').getHours('Nowhere/City')`, `timestamp('2020-02-29T12:30:45.5Z').getHours('')`, `timestamp('2020-02-29T12:30:45.5Z').getHours('../x')`, `timestamp('2020-02-29T12:30:45.5Z').getHours('/x')`, `timestamp('2020-02-29T12:30:45.5Z').getHours('a:00')`,
	`timestamp('2020-02-29T12:30:45.5Z').getHours(':00')`, `timestamp('2020-02-29T12:30:45.5Z').getHours('99999999999999999999:00')`, `timestamp('2020-02-29T12:30:45.5Z').getHours('999999:99')`, `timestamp('2020-02-29T12:30:45.5Z').getMilliseconds('UTC')`, `dyn(x).getHours()`, `dyn(timestamp('2020-02-29T12:30:45.5Z')).getHours(dyn(x))`, `-dyn(duration('1s'))`,
	`timestamp('2020-01-01T00:00:00Z') < timestamp('2020-01-01T01:00:00+01:00')`, `timestamp('2020-01-01T00:00:00Z') == timestamp('2020-01-01T01:00:00+01:00')`, `duration('1s') < duration('2s')`, `type(duration('1s'))`, `type(timestamp('2020-01-01T00:00:00Z'))`, `dyn(duration('1s')) == 1`, `dyn(duration('1s')) + dyn(x)`, `dyn(duration('1s')) - timestamp('2020-01-01T00:00:00Z')`, `dyn(timestamp('2020-01-01T00:00:00Z')) + dyn(timestamp('2020-01-01T00:00:00Z'))`,
}

type maker struct {
	*rand.Rand
}

func (m maker) pick(options ...string) string { return options[m.Intn(len(options))] }

// A text with one of its characters changed, sometimes.
func (m maker) damage(text string) string {
	for m.Intn(4) == 0 && len(text) > 0 {
		at := m.Intn(len(text))
		switch m.Intn(4) {
		case 0:
			text = text[:at] + text[at+1:]
		case 1:
			text = text[:at] + m.pick("0", "9", ".", ":", "-", "+", "/", "%", "Z", "e", "é", " ", "\\u0000", "i") + text[at:]
		case 2:
			text = text[:at] + text[at:at+1] + text[at:]
		default:
			text = text[:at] + m.pick("0", "1", ".", "-", "_", "x") + text[at+1:]
		}
	}
	return strings.ToValidUTF8(text, "")
}

// As a literal, or as an expression whose value is not known before.
func (m maker) text(text string) string {
	quoted := "'" + strings.ReplaceAll(text, "'", "\\'") + "'"
	switch m.Intn(8) {
	case 0:
		return "dyn(" + quoted + ")"
	case 1:
		return "(b1 ? " + quoted + " : y)"
	case 2:
		return m.pick("y", "d", "dyn(x)", "d.s", "dyn(null)")
	default:
		return quoted
	}
}

func (m maker) timestamp() string {
	year := m.pick("2020", "1969", "1970", "0001", "9999", "1900", "2037", "2100", fmt.Sprintf("%04d", m.Intn(10001)))
	return fmt.Sprintf("%s-%02d-%02dT%02d:%02d:%02d%s%s", year, m.Intn(14), m.Intn(33), m.Intn(25), m.Intn(61), m.Intn(61),
		m.pick("", "", ".5", ".123456789", ".0000000001", ",25", "."), m.pick("Z", "Z", "Z", "+01:00", "-08:30", "+24:00", "+25:00", "z", "", "-00:00", "+14:45"))
}

func (m maker) validTimestamp() string {
	year := m.pick("2020", "1969", "1970", "0001", "9999", "1900", "2037", "2100", fmt.Sprintf("%04d", 1+m.Intn(9999)))
	return fmt.Sprintf("%s-%02d-%02dT%02d:%02d:%02d%s%s", year, 1+m.Intn(12), 1+m.Intn(28), m.Intn(24), m.Intn(60), m.Intn(60),
		m.pick("", "", ".5", ".123456789"), m.pick("Z", "Z", "Z", "+01:00", "-08:30", "+23:59"))
}

func (m maker) duration() string {
	text := m.pick("", "", "", "-", "+")
	for i := 0; i <= m.Intn(3); i++ {
		text += m.pick("1", "30", "0", "1.5", "0.000000001", "2562047", "9223372036.854775807", ".5", "5.", "99999999999") + m.pick("h", "m", "s", "ms", "us", "µs", "ns", "", "d")
	}
	return text
}

func (m maker) zone() string {
	return m.pick("UTC", "America/New_York", "Europe/Berlin", "Asia/Kathmandu", "Australia/Lord_Howe", "America/Sao_Paulo", "Africa/Casablanca", "Pacific/Apia", "Antarctica/Troll", "Europe/Dublin", "Asia/Gaza",
		"Local", "", "Nowhere", "america/new_york", "+01:00", "-08:00", "05:30", "+5:45", "-0:30", "99:99", "1:2:3", "a:b", ":", "+:", "--1:00", "../UTC", "9223372036854775807:1", "-9223372036854775809:1")
}

func (m maker) timeExpression(kind string, depth int) string {
	leaf := depth <= 0
	switch kind {
	case "timestamp":
		if leaf || m.Intn(3) > 0 {
			if m.Intn(3) == 0 {
				return "timestamp(" + m.pick("dyn(", "string(", "(b1 ? '' : y) + (") + m.text(m.damage(m.timestamp())) + "))"
			}
			return m.pick("timestamp(", "timestamp(", "timestamp(dyn(") + "'" + m.validTimestamp() + "'))"
		}
		return m.pick("("+m.timeExpression("timestamp", depth-1)+m.pick(" + ", " - ")+m.timeExpression("duration", depth-1)+")",
			"("+m.timeExpression("duration", depth-1)+" + "+m.timeExpression("timestamp", depth-1)+")", "timestamp("+m.timeExpression("int", depth-1)+")", "dyn("+m.timeExpression("timestamp", depth-1)+")")
	case "duration":
		if leaf || m.Intn(3) > 0 {
			return "duration(" + m.pick("dyn(", "string(", "(") + m.text(m.damage(m.duration())) + "))"
		}
		return m.pick("("+m.timeExpression("duration", depth-1)+m.pick(" + ", " - ")+m.timeExpression("duration", depth-1)+")",
			"("+m.timeExpression("timestamp", depth-1)+" - "+m.timeExpression("timestamp", depth-1)+")", "-dyn("+m.timeExpression("duration", depth-1)+")")
	case "int":
		if leaf {
			return m.pick("x", "1", "-62135596800", "253402300799", "253402300800", "1600000000")
		}
		return m.pick(m.timeExpression("timestamp", depth-1)+m.pick(".getFullYear()", ".getMonth()", ".getDate()", ".getDayOfMonth()", ".getDayOfWeek()", ".getDayOfYear()", ".getHours()", ".getMinutes()", ".getSeconds()", ".getMilliseconds()"),
			m.timeExpression("timestamp", depth-1)+m.pick(".getFullYear(", ".getMonth(", ".getDate(", ".getDayOfMonth(", ".getDayOfWeek(", ".getDayOfYear(", ".getHours(", ".getMinutes(", ".getSeconds(", ".getMilliseconds(")+m.text(m.zone())+")",
			m.timeExpression("duration", depth-1)+m.pick(".getHours()", ".getMinutes()", ".getSeconds()", ".getMilliseconds()"), "int("+m.timeExpression(m.pick("timestamp", "duration"), depth-1)+")")
	case "string":
		return "string(" + m.timeExpression(m.pick("timestamp", "duration"), depth-1) + ")"
	default:
		kind := m.pick("timestamp", "duration", "int")
		return "(" + m.timeExpression(kind, depth-1) + m.pick(" < ", " <= ", " == ", " != ", " > ", " >= ") + m.timeExpression(kind, depth-1) + ")"
	}
}

func (m maker) quantityText() string {
	digits := func(n int) string {
		text := ""
		for i := 0; i < n; i++ {
			text += m.pick("0", "1", "5", "9", "0", "3")
		}
		return text
	}
	number := m.pick("", "", "-", "+") + m.pick("1", "5", "100", "0", "000", "", digits(m.Intn(6)), digits(12+m.Intn(12)), digits(m.Intn(60)), "9223372036854775807", "9223372036854775808", "1023", "1024")
	if m.Intn(2) == 0 {
		number += "." + digits(m.Intn(12))
	}
	return number + m.pick("", "", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "e3", "E-3", "e-9", "e-20", "e18", "e40", "E+2", "e", "e400", "mi", "KiB", "K")
}

// Go adds zeros for all of an exponent, so that a large one takes very long.
var largeExponent = regexp.MustCompile(`[eE][-+]?[0-9]{4,}`)

func (m maker) damagedQuantity() string {
	return largeExponent.ReplaceAllString(m.damage(m.quantityText()), "e12")
}

func (m maker) quantity(depth int) string {
	if depth <= 0 || m.Intn(3) == 0 {
		return "quantity(" + m.text(m.damagedQuantity()) + ")"
	}
	return m.quantity(depth-1) + m.pick(".add(", ".sub(") + m.pick(m.quantity(depth-1), m.quantity(depth-1), m.pick("x", "0", "-9223372036854775808", "9223372036854775807", "dyn(1)", "dyn(1.5)")) + ")"
}

func (m maker) quantityExpression() string {
	depth := m.Intn(3)
	q := func() string { return m.quantity(depth) }
	accessor := func() string { return m.pick(".isInteger()", ".asInteger()", ".asApproximateFloat()", ".sign()") }
	switch m.Intn(8) {
	case 0:
		return "isQuantity(" + m.text(m.damagedQuantity()) + ")"
	case 1:
		return "sign(" + q() + ")"
	case 2:
		return "(" + q() + m.pick(" == ", " != ") + q() + ")"
	case 3:
		return q() + m.pick(".isLessThan(", ".isGreaterThan(", ".compareTo(") + q() + ")"
	case 4: // what one function does to a value may be visible to the next
		return "[" + q() + "].map(q, [" + m.pick("q", "dyn(q)") + m.pick(".isLessThan(", ".isGreaterThan(", ".compareTo(", ".add(", ".sub(") + q() + ") == dyn(q), q.isInteger(), sign(q) == 1, q.asApproximateFloat() > 0.0, q.add(q).isInteger()])"
	case 5:
		return "[" + q() + "].map(q, " + q() + ").map(q, " + m.pick("q", q()) + ".add(q).asApproximateFloat() + q.asApproximateFloat())"
	default:
		return q() + accessor()
	}
}

func (m maker) addressText() string {
	switch m.Intn(3) {
	case 0:
		return fmt.Sprintf("%d.%d.%d.%d", m.Intn(280), m.Intn(256), m.Intn(3), m.Intn(256))
	case 1:
		return m.pick("127.0.0.1", "0.0.0.0", "255.255.255.255", "169.254.1.1", "224.0.0.1", "239.1.1.1", "10.0.0.1", "1.2.3", "1.2.3.4.5", "01.2.3.4", "::", "::1", "fe80::1", "fe80::1%eth0", "ff02::1", "ff05::1", "::ffff:1.2.3.4", "2001:db8::1.2.3.4", "2001:DB8::", "1:2:3:4:5:6:7:8",
			"1:2:3:4:5:6:7::", "::2:3:4:5:6:7:8", "1::2::3", "1:2:3:4:5:6:1.2.3.4", "12345::", ":1", "1:", "::1.2.3.4", "1:2:3:4:5:6:7:1.2.3.4", "fe80::%", "%", "", "0:0:0:0:0:0:0:0", "1:0:0:2:0:0:0:3", "1::0:0:2", "::g", "1:2:3:4:5:6:7:8:9", "1..2.3", "64:ff9b::192.0.2.33")
	default:
		text := ""
		for i := 0; i < 3+m.Intn(7); i++ {
			text += m.pick(":", "::", ":", ":0:", "1", "ab", "ffff", "0", "00ff", ".1.2.3")
		}
		return text
	}
}

func (m maker) address() string {
	return m.pick("ip("+m.text(m.damage(m.addressText()))+")", m.network()+".ip()", "ip("+m.text(m.addressText())+")")
}

func (m maker) networkText() string {
	return m.addressText() + m.pick("/", "/", "/", "/", "", "//") + m.pick("0", "8", "24", "31", "32", "33", "64", "127", "128", "129", "", "-1", "+8", "08", "1x", "99999999999999999999", "9223372036854775807", "7")
}

func (m maker) network() string {
	if m.Intn(4) == 0 {
		return m.network() + ".masked()"
	}
	if m.Intn(2) == 0 {
		return m.pick("cidr('10.0.0.0/8')", "cidr('0.0.0.0/0')", "cidr('2001:db8::/33')", "cidr('::/0')", "cidr('192.168.1.77/25')", "cidr('fe80::1/128')", "dyn(cidr('10.0.0.0/8'))")
	}
	return "cidr(" + m.text(m.damage(m.networkText())) + ")"
}

func (m maker) addressExpression() string {
	inner := m.pick("10.1.2.3", "10.0.0.0", "11.0.0.0", "2001:db8::1", "192.168.1.1", "192.168.1.127", "::1")
	switch m.Intn(8) {
	case 0:
		return m.pick("isIP(", "ip.isCanonical(") + m.text(m.damage(m.addressText())) + ")"
	case 1:
		return "isCIDR(" + m.text(m.damage(m.networkText())) + ")"
	case 2:
		return m.address() + m.pick(".family()", ".isUnspecified()", ".isLoopback()", ".isLinkLocalMulticast()", ".isLinkLocalUnicast()", ".isGlobalUnicast()")
	case 3:
		return "(" + m.address() + m.pick(" == ", " != ") + m.address() + ")"
	case 4:
		return "(" + m.network() + m.pick(" == ", " != ") + m.network() + ")"
	case 5:
		return "string(" + m.pick(m.address(), m.network()) + ")"
	case 6:
		return m.network() + m.pick(".containsIP("+m.text(inner)+")", ".containsIP(ip('"+inner+"'))", ".containsIP("+m.text(m.damage(m.addressText()))+")", ".containsIP("+m.address()+")", ".prefixLength()", ".prefixLength()")
	default:
		return m.network() + ".containsCIDR(" + m.pick(m.network(), m.text(inner+"/"+m.pick("8", "16", "32", "33", "64", "128")), m.text(m.damage(m.networkText()))) + ")"
	}
}

func (m maker) versionText() string {
	part := func() string {
		return m.pick("0", "1", "2", "10", "01", "00", "", "18446744073709551615", "18446744073709551616", "9223372036854775808", "x", "1a", "v1")
	}
	text := m.pick("", "", "v", "V", "vv") + m.pick("1", "2", "0") + "." + m.pick("0", "1", "2") + "." + m.pick("0", "3")
	if m.Intn(3) == 0 {
		text = m.pick("", "v") + part() + m.pick(".", ".", "") + part() + m.pick(".", ".", "") + part()
	}
	if m.Intn(2) == 0 {
		text += "-" + m.pick("rc", "alpha", "1", "01", "rc.1", "rc.2", "rc.10", "1.2", "1.x", "", "a..b", "é", "-", "99999999999999999999")
	}
	if m.Intn(3) == 0 {
		text += "+" + m.pick("build", "1", "01", "", "a..b", "a_b", "x.y")
	}
	return text
}

func (m maker) version() string {
	return "semver(" + m.text(m.damage(m.versionText())) + m.pick("", "", ", true", ", true", ", false", ", b1", ", dyn(x)") + ")"
}

func (m maker) versionExpression() string {
	switch m.Intn(4) {
	case 0:
		return "is" + strings.Replace(m.version(), "semver", "Semver", 1)
	case 1:
		return m.version() + m.pick(".major()", ".minor()", ".patch()")
	case 2:
		return "(" + m.version() + m.pick(" == ", " != ") + m.version() + ")"
	default:
		return m.version() + m.pick(".isLessThan(", ".isGreaterThan(", ".compareTo(") + m.version() + ")"
	}
}

// Opaque values where the language expects others.
func (m maker) opaque() string {
	return m.pick(m.quantity(0), "ip('1.2.3.4')", "ip('::1')", "cidr('1.2.3.4/24')", "cidr('::/0')", "semver('1.2.3')", m.version(), m.address(), m.network(), m.timeExpression("timestamp", 0), m.timeExpression("duration", 0), "x", "y", "null", "a", "d")
}

func (m maker) mixed() string {
	a, b := m.opaque(), m.opaque()
	return m.pick("dyn("+a+") == dyn("+b+")", "dyn("+a+") != dyn("+b+")", "type("+a+")", "type("+a+") == type("+b+")", "[dyn("+a+")] == [dyn("+b+")]", "{'a': dyn("+a+")} == {'a': dyn("+b+")}", "optional.of(dyn("+a+")) == optional.of(dyn("+b+"))",
		"dyn("+a+") in [dyn("+b+"), dyn("+b+")]", "string(dyn("+a+"))", "int(dyn("+a+"))", "dyn("+a+") + dyn("+b+")", "dyn("+a+") < dyn("+b+")", "dyn("+a+").k", "has(dyn("+a+").k)", "dyn("+a+").?k", "dyn("+a+")[0]", "n[dyn("+a+")]", "a[dyn("+a+")]",
		"dyn("+a+").all(i, true)", "dyn("+a+").map(i, v, true)", "-dyn("+a+")", "!dyn("+a+")", "size(dyn("+a+"))", "dyn("+a+") ? 1 : 2", "dyn("+a+") && true", "optional.ofNonZeroValue("+a+")", "dyn("+a+").isLessThan(dyn("+b+"))", "dyn("+a+").compareTo(dyn("+b+"))", "dyn("+a+").add(dyn("+b+"))", "sign(dyn("+a+"))", "ip(dyn("+a+"))", "dyn("+a+").ip()", "cidr(dyn("+a+"))", "isIP(dyn("+a+"))", "dyn("+a+").containsIP(dyn("+b+"))", "dyn("+a+").containsCIDR(dyn("+b+"))", "ip.isCanonical(dyn("+a+"))", "dyn("+a+").masked()", "dyn("+a+").major()", "semver(dyn("+a+"), dyn("+b+"))", "isSemver(dyn("+a+"))", "duration(dyn("+a+"))", "timestamp(dyn("+a+"))")
}

func randomKind(r *rand.Rand) string {
	m := maker{r}
	switch r.Intn(10) {
	case 8:
		return randomFormat(r)
	case 9:
		return randomPermission(r)
	case 0:
		return m.quantityExpression()
	case 6, 7:
		return m.collection()
	case 1:
		return m.mixed()
	case 2:
		return m.addressExpression()
	case 3:
		return m.versionExpression()
	}
	return m.timeExpression(m.pick("timestamp", "duration", "int", "int", "string", "bool"), 1+r.Intn(3))
}
