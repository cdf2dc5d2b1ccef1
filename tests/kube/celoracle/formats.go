package main

import (
	"math/rand"
	"strings"
)

// Expressions with formats that have names.
var evaluatedFormats = []string{
	`format.named('dns1123Label')`, `format.named('dns1123Label').value() == format.dns1123Label()`, `format.named('DNS1123Label')`, `format.named('')`, `format.named(y)`, `format.named(dyn(x))`, `format.named(d)`, `type(format.uuid())`, `format.uuid() == format.date()`, `format.uuid() != format.uuid()`, `dyn(format.uuid()) == 1`, `dyn(1) == format.uuid()`,
	`dyn(format.uuid()).validate(dyn(1))`, `dyn(1).validate('a')`, `format.uuid().validate(d)`, `format.uuid().validate(y)`, `[format.uuid(), format.byte()].exists(f, f.validate('abcd').hasValue())`, `string(dyn(format.uuid()))`, `format.uri().validate('/' + (x / 0 == 1 ? 'a' : 'b'))`, `format.named(y).orValue(format.date()).validate(y)`, `dyn(format.uuid()).name`,
	`format.dns1123Label().validate('a.b')`, `format.dns1123Label().validate('a.-')`, `format.dns1123LabelPrefix().validate('a-')`, `format.dns1123LabelPrefix().validate('-')`, `format.dns1123LabelPrefix().validate('a_-')`, `format.dns1123LabelPrefix().validate('a-b-')`, `format.qualifiedName().validate('/')`, `format.qualifiedName().validate('')`, `format.qualifiedName().validate('a/b/c')`, `format.qualifiedName().validate('A/_')`,
	`format.date().validate('0000-02-29')`, `format.date().validate('2023-02-29')`, `format.date().validate('+023-02-01')`, `format.datetime().validate('2020-01-01t00:00:00')`, `format.datetime().validate('2020-01-01T00:00:00+1+99:99')`, `format.datetime().validate('2020-01-01T23:59:59zT')`, `format.datetime().validate('2020-01-01T23:59:59\n1z')`, `format.datetime().validate('2020-01-01T23:59:59é1Z')`, `format.datetime().validate('2020-01-01T1é:00:00Z')`,
	`format.byte().validate('')`, `format.byte().validate('====')`, `format.byte().validate('a===')`, `format.byte().validate('ab==')`, `format.byte().validate('abc=\n')`, `format.byte().validate('ab=c')`, `format.uri().validate('')`, `format.uri().validate('a b')`, `format.uri().validate('http://a b/')`, `format.uri().validate('*')`, `format.labelValue().validate('')`,
}

func (m maker) longText() string {
	lengths := []int{59, 60, 61, 62, 63, 64, 65, 126, 249, 250, 251, 252, 253, 254, 255}
	return strings.Repeat(m.pick("a", "a", "a", "1", "a.", "-", "_"), 1+lengths[m.Intn(len(lengths))]/(1+m.Intn(2)))
}

func (m maker) nameText() string {
	text := m.pick("", "", "", "a/", "example.com/", "Example.com/", "/", "a/b/", m.longText()+"/")
	for i := m.Intn(4); i >= 0; i-- {
		text += m.pick("a", "b1", "1", "0x", "A", "-", ".", "_", "a-b", "é", "", "..", m.longText())
	}
	return text + m.pick("", "", "-", "-", "--", ".", "a")
}

func (m maker) uuidText() string {
	text := ""
	for _, length := range []int{8, 4, 4, 4, 12} {
		for i := 0; i < length; i++ {
			text += m.pick("0", "9", "a", "f", "A", "F")
		}
		text += m.pick("-", "-", "-", "-", "")
	}
	return strings.TrimSuffix(text, "-")
}

func (m maker) base64Text() string {
	text := ""
	for i := m.Intn(9); i > 0; i-- {
		text += m.pick("a", "Z", "0", "9", "+", "/", "aaaa")
	}
	return text + m.pick("", "", "=", "==", "===", "-", "_")
}

func (m maker) formatted() string {
	return m.damage(m.pick(m.nameText(), m.nameText(), m.nameText(), m.uuidText(), m.base64Text(), m.timestamp(), m.timestamp()[:10], m.timestamp()+m.pick("T", "t1"), m.urlText()))
}

func (m maker) namedFormat() string {
	names := []string{"dns1123Label", "dns1123Subdomain", "dns1035Label", "qualifiedName", "dns1123LabelPrefix", "dns1123SubdomainPrefix", "dns1035LabelPrefix", "labelValue", "uri", "uuid", "byte", "date", "datetime"}
	name := m.pick(names...)
	return m.pick("format."+name+"()", "format."+name+"()", "format.named('"+name+"').value()", "dyn(format."+name+"())")
}

func randomFormat(r *rand.Rand) string {
	m := maker{r}
	switch r.Intn(12) {
	case 0:
		return m.namedFormat() + m.pick(" == ", " != ") + m.pick("format.uuid()", m.namedFormat())
	case 1:
		return "format.named(" + m.text(m.damage("dns1123Label")) + ")" + m.pick("", ".hasValue()", ".value().validate("+m.text(m.nameText())+")")
	case 2:
		return m.namedFormat() + ".validate(" + m.text(m.formatted()) + ").hasValue()"
	}
	return m.namedFormat() + ".validate(" + m.text(m.formatted()) + ")"
}
