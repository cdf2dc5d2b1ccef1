package main

import (
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiservercel "k8s.io/apiserver/pkg/cel"
)

// A variable of an expression, or something that it leads to. Without a schema it is a string.
type place struct {
	text     string
	schema   *schema
	resource bool // it has metadata
}

// Makes the expressions of one rule.
type writer struct {
	maker
	places []place
	loops  int
}

// What kind of values expressions see; "" if they see none.
func kindOf(s *schema) string {
	switch {
	case s == nil:
		return "string"
	case s.XIntOrString:
		return "dyn"
	case s.Type == "string":
		kind, is := map[string]string{"byte": "bytes", "date": "timestamp", "date-time": "timestamp", "duration": "duration"}[s.Format]
		if is {
			return kind
		}
		return "string"
	case s.Type == "object" && s.AdditionalProperties != nil:
		if kindOf(s.AdditionalProperties.Schema) == "" {
			return ""
		}
		return "map"
	case s.Type == "array" && kindOf(s.Items.Schema) == "":
		return ""
	}
	return map[string]string{"integer": "int", "number": "double", "boolean": "bool", "array": "list", "object": "object"}[s.Type]
}

// The next step of a path from here; false if it ends here.
func (w *writer) step(from place) (place, bool) {
	switch kindOf(from.schema) {
	case "object":
		if (from.resource || from.schema.XEmbeddedResource) && w.in(4) {
			return place{text: from.text + w.one(".metadata.name", ".kind", ".apiVersion", ".metadata.generateName")}, true
		}
		all := sorted(from.schema.Properties)
		if len(all) == 0 {
			return place{}, false
		}
		name := w.one(all...)
		property := from.schema.Properties[name]
		escaped, can := apiservercel.Escape(name)
		if !can || kindOf(&property) == "" {
			return place{}, false
		}
		if w.in(3) && name != "in" {
			escaped = w.one(escaped, strings.NewReplacer(".", "__dot__", "-", "__dash__", "/", "__slash__", "__", "__underscores__").Replace(name))
		}
		return place{text: from.text + "." + escaped, schema: &property}, true
	case "list":
		return place{text: from.text + w.one("[0]", "[0]", "[1]"), schema: from.schema.Items.Schema}, true
	case "map":
		return place{text: from.text + w.one("['a']", ".k", "['x-y']"), schema: from.schema.AdditionalProperties.Schema}, true
	}
	return place{}, false
}

// A path to a value of this kind, and whether there is one.
func (w *writer) reach(kind string) (place, bool) {
	for tries := 0; tries < 12; tries++ {
		at, more := w.places[w.Intn(len(w.places))], true
		for steps := 0; steps < 6 && more; steps++ {
			if kindOf(at.schema) == kind && !w.in(4) {
				return at, true
			}
			at, more = w.step(at)
		}
	}
	return place{}, false
}

// The path, or the other expression if there is no such value.
func (w *writer) guarded(at place, otherwise string) string {
	end := strings.LastIndexAny(at.text, ".[")
	if end < 0 || strings.HasSuffix(at.text, ")") {
		return at.text
	}
	switch w.Intn(4) {
	case 0:
		if at.text[end] == '.' {
			return fmt.Sprintf("(has(%s) ? %s : %s)", at.text, at.text, otherwise)
		}
	case 1:
		if strings.HasSuffix(at.text, "]") {
			return fmt.Sprintf("%s[?%s.orValue(%s)", at.text[:end], at.text[end+1:], otherwise)
		}
		return fmt.Sprintf("%s.?%s.orValue(%s)", at.text[:end], at.text[end+1:], otherwise)
	}
	return at.text
}

var literals = map[string][]string{
	"string": {"'a'", "''", "'web-1'", "'ab'", "'é'"}, "int": {"0", "1", "2", "-1", "100"}, "double": {"0.0", "1.5", "-2.25", "1.0"},
	"bool": {"true", "false"}, "bytes": {"b'hello'", "b''"}, "timestamp": {"timestamp('2020-01-02T00:00:00Z')"},
	"duration": {"duration('1h')", "duration('90s')"}, "dyn": {"dyn(1)", "dyn('a')"},
}

func (w *writer) value(kind string, depth int) string {
	if w.in(40) {
		kind = w.one("string", "int", "double", "bool", "dyn")
	}
	if kind == "bool" && depth > 0 {
		return w.condition(depth - 1)
	}
	if at, found := w.reach(kind); found && !w.in(6) {
		return w.guarded(at, w.one(literals[kind]...))
	}
	if depth <= 0 {
		return w.one(literals[kind]...)
	}
	sub := func(kind string) string { return w.value(kind, depth-1) }
	switch kind {
	case "string":
		switch w.Intn(8) {
		case 0:
			return "(" + sub("string") + " + " + sub("string") + ")"
		case 1:
			return "string(" + sub(w.one("int", "double", "bool", "dyn", "bytes", "timestamp", "duration")) + ")"
		case 2:
			return sub("string") + w.one(".lowerAscii()", ".upperAscii()", ".trim()", ".substring(0, 1)", ".charAt(0)", ".replace('a', 'bb')", ".split(',')[0]", ".find('[a-z]+')")
		case 3:
			return "'%s %d'.format([" + sub("string") + ", " + sub("int") + "])"
		case 4:
			return w.listOf("string", depth-1) + w.one("[0]", ".join('-')", ".join()")
		}
	case "int":
		switch w.Intn(9) {
		case 6:
			return sub("timestamp") + w.one(".getFullYear()", ".getMonth()", ".getDayOfYear()", ".getHours()", ".getDayOfWeek('Europe/Berlin')", ".getMinutes('+01:30')")
		case 7:
			return sub("duration") + w.one(".getHours()", ".getMinutes()", ".getSeconds()", ".getMilliseconds()")
		case 8:
			kind := w.one("string", "int", "double", "bool", "timestamp", "bytes")
			return w.listOf(kind, depth-1) + w.one(".indexOf(", ".lastIndexOf(") + sub(kind) + ")"
		case 0:
			return "(" + sub("int") + w.one(" + ", " - ", " * ", " / ", " % ") + sub("int") + ")"
		case 1:
			return "size(" + sub("string") + ")"
		case 2:
			return "int(" + sub(w.one("double", "string", "dyn", "duration", "timestamp")) + ")"
		case 3:
			if at, found := w.reach(w.one("list", "map")); found {
				return at.text + ".size()"
			}
		case 4:
			return sub("string") + w.one(".size()", ".indexOf('a')", ".lastIndexOf('b')")
		case 5:
			return w.listOf("int", depth-1) + w.one(".sum()", ".max()", ".min()", "[0]")
		}
	case "double":
		return w.one("double("+sub(w.one("int", "dyn", "string"))+")", "("+sub("double")+w.one(" + ", " - ", " * ", " / ")+sub("double")+")",
			w.listOf("double", depth-1)+w.one(".sum()", ".max()", "[0]"), "quantity("+sub("string")+").asApproximateFloat()")
	case "duration":
		return w.one("("+sub("timestamp")+" - "+sub("timestamp")+")", "("+sub("duration")+w.one(" + ", " - ")+sub("duration")+")",
			w.listOf("duration", depth-1)+w.one(".sum()", ".max()", "[0]"), "duration("+sub(w.one("string", "dyn"))+")")
	case "timestamp":
		return w.one("("+sub("timestamp")+w.one(" + ", " - ")+sub("duration")+")", "timestamp("+sub(w.one("string", "int", "dyn"))+")",
			w.listOf("timestamp", depth-1)+w.one(".max()", ".min()", "[0]"))
	case "bytes":
		return w.one("bytes("+sub(w.one("string", "dyn"))+")", "("+sub("bytes")+" + "+sub("bytes")+")")
	case "dyn":
		return "dyn(" + sub(w.one("int", "string", "double", "bool", "bytes", "timestamp", "duration")) + ")"
	}
	return w.one(literals[kind]...)
}

// A list of such values.
func (w *writer) listOf(kind string, depth int) string {
	for tries := 0; tries < 5; tries++ {
		at, found := w.reach("list")
		if found && kindOf(at.schema.Items.Schema) == kind {
			return at.text + w.one("", "", "", ".filter(i, i == i)", ".reverse()", ".distinct()", ".sort()", ".slice(0, 1)")
		}
		if found && w.in(3) {
			return w.mapped(at, kind, depth)
		}
	}
	return "[" + w.value(kind, depth-1) + ", " + w.value(kind, depth-1) + "]"
}

// Runs make with the variables of a loop.
func (w *writer) within(more []place, make func()) {
	before := w.places
	w.places = append(append([]place{}, before...), more...)
	make()
	w.places = before
}

func (w *writer) loopVariable() string {
	w.loops++
	return fmt.Sprintf("v%d", w.loops)
}

func (w *writer) mapped(list place, kind string, depth int) (text string) {
	v := w.loopVariable()
	w.within([]place{{text: v, schema: list.schema.Items.Schema}}, func() {
		text = fmt.Sprintf("%s.map(%s, %s)", list.text, v, w.value(kind, depth-1))
	})
	return text
}

// all, exists and so on, over a list or a map.
func (w *writer) loop(depth int) string {
	at, found := w.reach(w.one("list", "list", "list", "map"))
	if !found {
		return "true"
	}
	v, text := w.loopVariable(), ""
	item := place{text: v}
	if kindOf(at.schema) == "list" {
		item.schema = at.schema.Items.Schema
	} else if w.in(2) {
		more := []place{item, {text: at.text + "[" + v + "]", schema: at.schema.AdditionalProperties.Schema}}
		w.within(more, func() {
			text = fmt.Sprintf("%s.%s(%s, %s)", at.text, w.one("all", "exists", "exists_one"), v, w.condition(depth-1))
		})
		return text
	}
	if w.in(5) {
		second := w.loopVariable()
		if kindOf(at.schema) == "list" {
			item = place{text: second, schema: at.schema.Items.Schema}
		} else {
			item = place{text: second, schema: at.schema.AdditionalProperties.Schema}
		}
		w.within([]place{item}, func() {
			text = fmt.Sprintf("%s.%s(%s, %s, %s)", at.text, w.one("all", "exists", "exists_one"), v, second, w.condition(depth-1))
		})
		return text
	}
	w.within([]place{item}, func() {
		of := w.condition(depth - 1)
		text = w.one(fmt.Sprintf("%s.%s(%s, %s)", at.text, w.one("all", "exists", "exists_one"), v, of),
			fmt.Sprintf("%s.filter(%s, %s).size() %s %d", at.text, v, of, w.one("<", ">=", "=="), w.Intn(3)))
	})
	return text
}

var checks = []string{".startsWith('a')", ".endsWith('b')", ".contains('a')", ".matches('^[a-z]+$')", ".matches('a|b')", ".size() < 3"}
var wrapped = []string{"quantity(%s) == quantity('500m')", "isQuantity(%s) && quantity(%[1]s).isInteger()", "ip(%s) == ip('10.0.0.1')", "cidr(%s).ip().isLoopback()",
	"ip.isCanonical(%s)", "format.uri().validate(%s).hasValue()", "format.named(%s).hasValue()", "url(%s).getQuery().size() == 1", "bool(%s)", "timestamp(%s) > timestamp(0)",
	"%s.findAll('[a-z]+', 2).size() > 1", "strings.quote(%s) == '\"a\"'", "isIP(%s)", "isCIDR(%s)", "isURL(%s)", "isQuantity(%s)", "isSemver(%s)", "format.dns1123Label().validate(%s).hasValue()",
	"quantity(%s).isGreaterThan(quantity('1'))", "ip(%s).family() == 4", "url(%s).getHost() == 'a.b'", "semver(%s).major() > 0", "cidr(%s).containsIP('10.0.0.1')"}

// An expression of type bool.
func (w *writer) condition(depth int) string {
	if depth <= 0 {
		if at, found := w.reach("bool"); found && w.in(2) {
			return at.text
		}
		return w.comparison(0)
	}
	switch w.Intn(16) {
	case 0, 1:
		return "(" + w.condition(depth-1) + w.one(" && ", " || ") + w.condition(depth-1) + ")"
	case 2:
		return "!" + "(" + w.condition(depth-1) + ")"
	case 3:
		return "(" + w.condition(depth-1) + " ? " + w.condition(depth-1) + " : " + w.condition(depth-1) + ")"
	case 4, 5, 6, 7:
		return w.loop(depth)
	case 8:
		if at, found := w.reach(w.one("string", "int", "object", "list", "map", "dyn")); found && strings.Contains(at.text, ".") && !strings.HasSuffix(at.text, "]") && !strings.HasSuffix(at.text, ")") {
			return w.one("", "!") + "has(" + at.text + ")"
		}
	case 9:
		return w.value("string", depth-1) + w.one(checks...)
	case 10:
		return fmt.Sprintf(w.one(wrapped...), w.value("string", depth-1))
	case 13:
		if at, found := w.reach(w.one("string", "list", "object", "map", "timestamp", "bytes")); found {
			return "type(" + at.text + ") == " + w.one("type("+w.value(w.one("string", "dyn", "int"), 0)+")", "list", "map", "string", "type")
		}
	case 14:
		if at, found := w.reach(w.one("list", "map", "object")); found {
			return "dyn(" + at.text + ")" + w.one(" == ", " != ") + w.one("dyn([])", "dyn({})", "dyn(1)", "dyn("+at.text+")", "dyn(null)")
		}
	case 11:
		if at, found := w.reach("dyn"); found {
			return w.one("type("+at.text+") == "+w.one("int", "string"), at.text+" == "+w.value(w.one("int", "string"), 0), "("+at.text+" == '50%' || int("+at.text+") < 3)")
		}
	case 12:
		return w.collection(depth)
	}
	return w.comparison(depth)
}

// Functions and operators of lists and maps.
func (w *writer) collection(depth int) string {
	kind := w.one("string", "string", "int", "int", "double", "bool", "bytes", "timestamp", "duration", "dyn")
	switch w.Intn(9) {
	case 0:
		return "(" + w.value(kind, depth-1) + " in " + w.listOf(kind, depth-1) + ")"
	case 1:
		return "sets." + w.one("contains", "intersects", "equivalent") + "(" + w.listOf(kind, depth-1) + ", " + w.listOf(kind, depth-1) + ")"
	case 2:
		return w.listOf(kind, depth-1) + ".isSorted()"
	case 3:
		if at, found := w.reach("map"); found {
			return "(" + w.value("string", depth-1) + " in " + at.text + ")"
		}
	case 5:
		return w.transformed(depth)
	case 6:
		if at, found := w.reach("list"); found {
			return at.text + w.one(".sort() == ", ".distinct() == ", ".reverse() == ", ".flatten() == ", ".slice(0, 1) == ", ".map(i, i) == ",
				".filter(i, true) == ") + at.text
		}
	case 7:
		if at, found := w.reach(w.one("map", "object", "list", "string", "int", "dyn", "timestamp")); found {
			return w.optional(at, depth)
		}
	case 4:
		if one, other, found := w.twoAlike("list"); found && !w.isSet(one) {
			return fmt.Sprintf("%s + %s == %s", one, other, w.one(one, other, other+" + "+one))
		}
	}
	return w.listOf(kind, depth-1) + ".size() > 0"
}

// Macros that make lists and maps.
func (w *writer) transformed(depth int) (text string) {
	at, found := w.reach(w.one("list", "map"))
	if !found {
		return "{'a': 1}.size() == 1"
	}
	first, second := w.loopVariable(), w.loopVariable()
	item := place{text: second}
	if kindOf(at.schema) == "list" {
		item.schema = at.schema.Items.Schema
	} else {
		item.schema = at.schema.AdditionalProperties.Schema
	}
	w.within([]place{item}, func() {
		kind := w.one("string", "int", "bool", "double")
		value := w.value(kind, depth-1)
		text = at.text + w.one(fmt.Sprintf(".transformList(%s, %s, %s).size() > 1", first, second, value),
			fmt.Sprintf(".transformList(%s, %s, %s, %s) == []", first, second, w.condition(depth-1), value),
			fmt.Sprintf(".transformMap(%s, %s, %s).size() > 1", first, second, value),
			fmt.Sprintf(".transformMap(%s, %s, %s)[%s] == %s", first, second, second, first, value),
			fmt.Sprintf(".transformMapEntry(%s, %s, {string(%s): %s}).size() > 1", first, second, value, second),
			fmt.Sprintf(".transformMap(%s, %s, %s) == %s", first, second, second, at.text))
	})
	return text
}

// What optional values can do.
func (w *writer) optional(at place, depth int) (text string) {
	v := w.loopVariable()
	kind := w.one("string", "int", "bool")
	end := strings.LastIndexByte(at.text, '.')
	from := "optional." + w.one("of(", "ofNonZeroValue(") + at.text + ")"
	if end > 0 && !strings.ContainsAny(at.text[end:], "[(") && w.in(2) {
		from = at.text[:end] + ".?" + at.text[end+1:]
	}
	w.within([]place{{text: v, schema: at.schema}}, func() {
		text = from + w.one(fmt.Sprintf(".optMap(%s, %s).orValue(%s) == %s", v, w.value(kind, depth-1), w.value(kind, 0), w.value(kind, 0)),
			fmt.Sprintf(".optFlatMap(%s, optional.of(%s)).hasValue()", v, w.value(kind, depth-1)), ".hasValue()", ".or(optional.none()).hasValue()",
			fmt.Sprintf(".value() == %s", at.text), fmt.Sprintf(" == optional.of(%s)", at.text), " != optional.none()",
			fmt.Sprintf(".or(optional.of(%s)).value() == %s", at.text, at.text))
	})
	if w.in(5) {
		return "[" + w.one("?", "") + from + "].size() == 1"
	}
	return text
}

// Two values of equal schemas: the same of self and oldSelf, or of the same place.
func (w *writer) twoAlike(kind string) (one, other string, found bool) {
	at, found := w.reach(kind)
	if !found {
		return "", "", false
	}
	if strings.HasPrefix(at.text, "self.") && w.in(2) {
		for _, from := range w.places {
			if strings.HasPrefix(from.text, "oldSelf") {
				return at.text, from.text + strings.TrimPrefix(at.text, "self"), true
			}
		}
	}
	return at.text, at.text, true
}

// Whether a variable itself is a set. Kubernetes' + changes it, so that it is another one in what follows.
func (w *writer) isSet(text string) bool {
	return slices.ContainsFunc(w.places, func(at place) bool {
		return at.text == text && at.schema != nil && at.schema.XListType != nil && *at.schema.XListType == "set"
	})
}

func (w *writer) comparison(depth int) string {
	if w.in(6) {
		if one, other, found := w.twoAlike(w.one("list", "map", "object")); found {
			return one + w.one(" == ", " != ") + other
		}
	}
	kind := w.one("string", "string", "int", "int", "double", "timestamp", "duration", "bytes", "dyn")
	if kind == "dyn" {
		return w.value(kind, depth-1) + w.one(" == ", " != ") + w.value(w.one("int", "string", "dyn"), depth-1)
	}
	other := kind
	if kind == "int" && w.in(4) {
		other = "double"
		return w.value(kind, depth-1) + w.one(" < ", " >= ") + w.value(other, depth-1)
	}
	return w.value(kind, depth-1) + w.one(" == ", " != ", " < ", " <= ", " > ", " >= ") + w.value(other, depth-1)
}

// A path such as fieldPath has it, mostly to a field.
func (m maker) path(s *schema) string {
	path := ""
	for steps := 1 + m.Intn(3); steps > 0 && len(s.Properties) > 0; steps-- {
		name := m.one(sorted(s.Properties)...)
		path += m.one("."+name, "['"+name+"']")
		property := s.Properties[name]
		s = &property
	}
	if m.in(30) {
		path += m.one(".nothing", "[0]", "x")
	}
	return path
}

func (m maker) rule(s *schema, resource, correlatable bool) v1.ValidationRule {
	w := writer{maker: m, places: []place{{"self", s, resource}}}
	rule := v1.ValidationRule{}
	if (correlatable || m.in(30)) && m.in(3) {
		old := place{"oldSelf", s, resource}
		if optional := m.in(3); optional {
			rule.OptionalOldSelf = &optional
			old.text = m.one("oldSelf.value()", "oldSelf.orValue(self)")
		}
		w.places = append(w.places, old)
	}
	rule.Rule = w.condition(1 + m.Intn(3))
	if rule.OptionalOldSelf != nil && m.in(2) {
		rule.Rule = m.one("!oldSelf.hasValue() || ", "oldSelf.hasValue() && ") + rule.Rule
	}
	if m.in(4) {
		rule.Message = m.one("wrong", " it is wrong ", "é is \"wrong\"")
	}
	if m.in(4) {
		rule.MessageExpression = w.value("string", 2)
	}
	if m.in(4) {
		reason := v1.FieldValueErrorReason(m.one("FieldValueRequired", "FieldValueForbidden", "FieldValueInvalid", "FieldValueDuplicate"))
		rule.Reason = &reason
	}
	if m.in(5) {
		rule.FieldPath = m.path(s)
	}
	return rule
}
