"""Definitions with wrong schemas and rules, and writes to objects of definitions with lists and defaults, for
same_definitions_test.py. Schemas have one property at each level where it matters, because Go visits properties in any order."""

TEXT, WHOLE, FLAG = {"type": "string"}, {"type": "integer"}, {"type": "boolean"}
SHORT = {"type": "string", "maxLength": 5}


def rules(*texts, **more):
    return {"x-kubernetes-validations": [{"rule": text, **more} if isinstance(text, str) else text for text in texts]}


def of(fields=None, *texts, **more):
    """An object with these fields and rules."""
    return {"type": "object", "properties": fields or {"a": SHORT}, **(rules(*texts) if texts else {}), **more}


def array(items, **more):
    return {"type": "array", "items": items, **more}


def values(schema, **more):
    return {"type": "object", "additionalProperties": schema, **more}


def keyed(items, *keys, **more):
    return array(items, **{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(keys) or ["k"]}, **more)


def unique(items, **more):
    return array(items, **{"x-kubernetes-list-type": "set"}, **more)


def definition(schema, name="cases", **version):
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": f"{name}.example.com"},
            "spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": name, "kind": name.title()},
                     "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}, **version}]}}


ITEM = {"type": "object", "required": ["k"], "properties": {"k": TEXT, "v": SHORT}}
EVERY = "self.all(x, self.all(y, x == y))"
BIG = "self.l.all(x, self.l.all(y, x + y == y + x))"

# The texts of rules.
RULES = [
    of(None, " "), of(None, ""), of(None, {"rule": "true", "message": " "}), of(None, {"rule": "true", "message": "a\nb"}),
    of(None, {"rule": "true", "message": "a\rb"}), of(None, {"rule": "true", "message": " a\n"}),
    of(None, "true\n\n&& true"), of(None, {"rule": "true\n&& true", "message": "m"}), of(None, "\ntrue\n"),
    of(None, {"rule": "true", "messageExpression": " ", "reason": "Bad", "fieldPath": " "}),
    of(None, {"rule": "true", "reason": ""}),
    of(None, {"rule": "true", "reason": "FieldValueRequired"}), of(None, {"rule": "true", "fieldPath": ".a\n"}),
    of(None, {"rule": "", "message": " ", "messageExpression": " "}), of(None, {"message": "m"}),
    of(None, "self.a"), of(None, "self.b == 1"), of(None, "self.a =="), of(None, "1"), of(None, "dyn(true)"), of(None, "self"),
    of(None, "self.a == 'x' && self.b"), of(None, "a.b.c"), of(None, "self.a == 1"), of(None, "f(self)"), of(None, "self.a.size() > 'a'"),
    of(None, "self.a\n  == self.b", "true"), of(None, "oldSelf.a == self.b"), of(None, "has(self.b)"), of(None, "has(self)"),
    of(None, "self.a.matches('[')"), of(None, "duration('x') == duration('1s')"), of(None, "timestamp('x') == timestamp('y')"),
    of(None, "self.all(x, true)"), of(None, "[1, 'a'].size() == 2"), of(None, "{1: 2, 'a': 3}.size() == 2"), of(None, "type(self) == 1"),
    of(None, "quantity('1').isGreaterThan(1)"), of(None, "ip('x').family() == 'a'"), of(None, "self.metadata.name == 'a'"),
    of(None, "self.metadata.labels == 'a'"), of(None, "self.kind == 1"), of(None, "authorizer.path('/').check('get').allowed()"),
    of(None, "request.name == 'a'"), of(None, "object.a == 'a'"), of(None, "variables.a"), of(None, "self.?a.orValue(1) == 'a'"),
    of(None, "cel.bind(x, 1, x == 1)"), of(None, "math.greatest(1, 2) == 2"), of(None, "'a'.reverse() == 'a'"),
    of(None, "format.dns1123Label().validate(self.a).hasValue()"), of(None, "format.no().validate(self.a).hasValue()"),
    of(None, {"rule": "true", "messageExpression": "1"}), of(None, {"rule": "true", "messageExpression": "self.b"}),
    of(None, {"rule": "true", "messageExpression": "self.a +"}), of(None, {"rule": "self.b", "messageExpression": "self.c"}),
    of(None, {"rule": "true", "messageExpression": "oldSelf.a", "message": "m"}), of(None, {"rule": "true", "optionalOldSelf": True}),
    of(None, {"rule": "true", "optionalOldSelf": False}), of(None, {"rule": "oldSelf.hasValue()", "optionalOldSelf": True}),
    of(None, {"rule": "oldSelf.a == 'a'", "optionalOldSelf": True}), of(None, {"rule": "oldSelf.hasValue()", "optionalOldSelf": False}),
    of(None, {"rule": "oldSelf.hasValue()"}),
    of(None, {"rule": "self.b", "message": "m", "messageExpression": "'a'", "reason": "FieldValueDuplicate", "fieldPath": ".a",
              "optionalOldSelf": True}),
    of({"l": array({**TEXT, **rules("self == oldSelf")}, maxItems=2)}, {"rule": "true", "optionalOldSelf": True}),
    of({"l": unique({**SHORT, **rules("self == oldSelf")}, maxItems=2)}),
    of({"l": keyed({**ITEM, **rules("self == oldSelf")}, maxItems=2)}),
    of({"l": keyed(of({"k": TEXT, "m": array({**TEXT, **rules("self == oldSelf")}, maxItems=1)}, required=["k"]), maxItems=2)}),
    of({"m": values({**SHORT, **rules("self == oldSelf")}, maxProperties=2)}),
    of({"m": {**of({"a": {**SHORT, **rules("self == oldSelf")}}), "x-kubernetes-map-type": "atomic"}}),
    of({"m": {**values({**SHORT, **rules("self == oldSelf")}), "x-kubernetes-map-type": "atomic"}}),
    of({"p": {"x-kubernetes-preserve-unknown-fields": True, **rules("true")}}, "true"),
    of({"p": {"type": "object", "x-kubernetes-preserve-unknown-fields": True, **rules("self.a == 'a'")}}),
    of({"p": {"x-kubernetes-int-or-string": True, **rules("self == 1 || self == 'a'")}}),
    of({"p": {"type": "object", **rules("self.a == 'a'")}}), of({"p": {"type": "object", **rules("true")}}),
    of({"p": array({"x-kubernetes-preserve-unknown-fields": True}, **rules("true"))}),
    of({"p": values({"x-kubernetes-preserve-unknown-fields": True}, **rules("true"))}),
    of({"metadata": {"type": "object", **rules("self.name == 'a'")}}),
    of({"metadata": of({"name": {**SHORT, **rules("self == 'a'")}})}), of({"metadata": of({"labels": values(TEXT)})}),
    of({"e": {"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True,
              **rules("self.metadata.name == 'a' && self.kind == 'b'")}}),
    of({"e": {"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True,
              **rules("self.metadata.labels == 'a'")}}),
    of({"a": {"type": "string", "allOf": [rules("true")]}}), of({"a": {"type": "string", "anyOf": [rules("true")]}}),
    of({"a": {"type": "string", "not": rules("true")}}), of({"a": {"type": "nothing"}}, "true"),
    of({"a": {"type": "string", "pattern": "["}}, "self.b"), of({"a": {**TEXT, **rules("self.b")}}, "self.b"),
    of({"a-b": TEXT, "c.d": TEXT}, "self.a__dash__b == self.c__dot__d"), of({"for": TEXT}, "self.for == self.__for__"),
    of({"if": TEXT}, "self.if == 1"), of({"1a": TEXT}, "self.1a == 'a'"), of({"true": TEXT}, "self.true == 'a'"),
    of({"a b": TEXT}, "self.a b == 'a'"), of({"$a": TEXT}, "has(self.a)"), of({"a": {**TEXT, "format": "date"}}, "self.a == 'a'"),
    of({"a": {**TEXT, "format": "byte"}}, "self.a == 'a'"), of({"a": {**TEXT, "nullable": True}}, "self.a == null"),
    of({"a": {**WHOLE}}, "self.a == 1.0"), of({"a": {"type": "number"}}, "self.a == 1"), of({"a": {"type": "number"}}, "self.a < 1"),
    of({"l": array(TEXT)}, "self.l.all(x, x == 1)"), of({"l": array(TEXT)}, "'a' in self.l && 1 in self.l"),
    of({"m": values(WHOLE)}, "self.m.all(k, k == 1)"), of({"m": values(WHOLE)}, "self.m.a == 'a'"),
    of({"l": array(of())}, "self.l.map(x, x.b).size() == 1"), of({"l": array(of())}, "self.l[0].b == 'a'"),
    of({"l": array(of())}, "self.l == [{'a': 'b'}]"), of({"m": values(of())}, "self.m['a'].b == 'a'"),
    of({"l": array(array(WHOLE))}, "self.l[0][0] == 'a'"), of({"o": of({"p": of()})}, "self.o.p.q == 'a'"),
    of({"o": of({"p": of()})}, "self.o == 'a'"), of({"o": of({"p": of()})}, "self.o.p == self.o"),
]
PATHS = [
    ".a", "['a']", ".m['x']", ".m.x", "['it\\'s']", ".b", "a", ".a.b", ".", ".a[", ".a[0]", ".m['x'", ".m[x]", "..a", ".m['\\q']",
    ".l", ".l[0]", ".l.a", ".o.p", ".o['p']", "['o'].p", "['o']['p']", ".o.q", ".m['x'].y", ".p.x", ".a ", " .a", ".m[\"x\"]",
    ".metadata", ".metadata.name", ".kind", ".o.", ".m['']", "['']", ".it's", ".a-b", ".a__dash__b", "['a-b']",
]
RULES += [of({"a": TEXT, "it's": TEXT, "a-b": TEXT, "m": values(TEXT), "l": array(of()), "o": of({"p": TEXT}), "p": {
    "type": "object", "x-kubernetes-preserve-unknown-fields": True}}, {"rule": "true", "fieldPath": path}) for path in PATHS]

# What rules cost.
COSTS = [
    of({"l": array(TEXT)}, BIG), of({"l": array(TEXT)}, "self.l.all(x, x == 'a')"),
    of({"l": array(TEXT)}, "self.l.all(x, self.l.all(y, true))"), of({"l": array(TEXT, maxItems=10)}, BIG),
    of({"l": array(SHORT, maxItems=100)}, BIG), of({"l": array(SHORT, maxItems=1000)}, BIG), of({"l": array(SHORT, maxItems=2200)}, BIG),
    of({"l": array(SHORT, maxItems=700)}, *[BIG] * 30), of({"l": array(SHORT, maxItems=700)}, BIG, BIG, BIG, "true", *[BIG] * 30),
    of({"l": array({**SHORT, **rules("self.matches('a+b+c+')")})}), of({"l": array({**TEXT, **rules("self.matches('a+b+c+')")})}),
    of({"l": array({**TEXT, **rules("self.contains('a')")}, maxItems=100)}), of({"l": array(array(of(None, "self.a == 'a'")))}),
    of({"m": values(array(of(None, "self.a == 'a'")), maxProperties=10)}), of({"m": values(of(None, "self.a == 'a'"))}),
    of({"m": values(TEXT)}, "self.m.all(k, self.m[k] == 'a')"), of({"m": values(TEXT)}, "self.m.all(k, self.m.all(l, k == l))"),
    of({"l": array(TEXT)}, {"rule": "true", "messageExpression": "self.l.map(x, self.l.map(y, x + y).join()).join()"}),
    of({"l": array(of({"l": array(of(None, {"rule": "true", "messageExpression": "'a' + self.a"}))}))}),
    of({"a": TEXT}, "self.a.matches(self.a)"), of({"a": TEXT}, "self.a.split('a').all(x, x == self.a)"),
    of({"a": {"type": "string", "maxLength": 100}}, "self.a.split('a').all(x, self.a.split('a').all(y, x == y))"),
    of({"l": array(TEXT)}, "self.l.sort() == self.l"), of({"l": array(WHOLE, maxItems=1000)}, "self.l.sort().sum() == 2"),
    of({"l": array(WHOLE, maxItems=1000)}, "sets.contains(self.l, self.l)"), of({"l": array(WHOLE)}, "sets.intersects(self.l, [1])"),
    of({"l": array(TEXT)}, "self.l.isSorted()"), of({"l": array(TEXT)}, "self.l == self.l.distinct()"),
    of({"a": TEXT}, "quantity(self.a).isGreaterThan(quantity('1'))"), of({"a": TEXT}, "ip(self.a).family() == 4"),
    of({"a": TEXT}, "self.a.replace('a', 'b').lowerAscii().contains(self.a)"), of({"l": array(TEXT)}, "self.l.join(',').size() < 10"),
    of({"a": TEXT}, "format.dns1123Label().validate(self.a).hasValue()"), of({"l": array(TEXT)}, "self.l.map(x, x + x) == self.l"),
    of({"l": array(TEXT)}, "self.l.exists_one(x, x.startsWith('aaaaaaaaaaaaaaaa'))"), of({"l": array(of())}, "self.l == self.l"),
    of({"l": array(of({"a": TEXT}))}, "self.l.all(x, self.l.exists(y, y.a == x.a))"),
    of({"l": keyed(ITEM)}, "self.l.all(x, x.v == 'a')"), of({"l": array({"type": "string", "enum": ["aaaaaaa", "b"]})}, BIG),
    of({"l": array({**TEXT, "format": "date-time"})}, "self.l.all(x, self.l.all(y, x == y))"),
    of({"l": array({"x-kubernetes-int-or-string": True})}, "self.l.all(x, x == 'a')"),
    of({"l": array({"x-kubernetes-int-or-string": True, "maxLength": 5})}, "self.l.all(x, string(x).matches('a+'))"),
    of({"l": array(FLAG)}, EVERY.replace("self", "self.l")), of({"l": array({"type": "number"})}, EVERY.replace("self", "self.l")),
    of({"o": of({"l": array(of({"l": array({**SHORT, **rules("self == 'a'")})}))})}),
    of({"e": array({"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True,
                    **rules("self.metadata.name.matches('a+b+')")})}),
]

# Defaults that break rules.
PICKY = {**SHORT, **rules("self != 'bad'")}
DEFAULTS = [
    of({"a": {**PICKY, "default": "bad"}}), of({"a": {**PICKY, "default": "good"}}), of({"a": {**PICKY, "default": "toolong"}}),
    of({"a": {**SHORT, "default": "bad", **rules({"rule": "self != 'bad'", "message": "m", "reason": "FieldValueForbidden"})}}),
    of({"a": {**SHORT, "default": "bad", **rules({"rule": "false", "messageExpression": "'is ' + self", "reason": "FieldValueRequired"},
                                                 "self.size() > 5")}}),
    of({"o": of({"a": PICKY}, "self.a != 'worse'", default={"a": "bad"})}), of({"o": of({"a": SHORT}, "self.a != 'worse'", default={
        "a": "worse"})}),
    of({"o": of({"a": SHORT}, {"rule": "self.a != 'worse'", "fieldPath": ".a"}, default={"a": "worse"})}),
    of({"a": {**SHORT, "default": "bad", **rules("self == oldSelf")}}),
    of({"a": {**SHORT, "default": "bad", **rules("self != oldSelf")}}),
    of({"a": {**SHORT, "default": "bad", **rules({"rule": "oldSelf.hasValue()", "optionalOldSelf": True})}}),
    of({"a": {**SHORT, "default": "bad", **rules({"rule": "!oldSelf.hasValue()", "optionalOldSelf": True})}}),
    of({"a": {**SHORT, "default": "bad", **rules({"rule": "oldSelf.orValue('x') == self", "optionalOldSelf": True})}}),
    of({"a": {**SHORT, "default": "bad", **rules("[1][self.size()] == 1")}}), of({"a": {**SHORT, "default": "bad", **rules("self.x")}}),
    of({"l": array(SHORT, default=["a", "a"], **rules("self.size() == 1"))}), of({"l": array({**PICKY}, default=["a", "bad"])}),
    of({"l": unique(SHORT, default=["a", "a"])}), of({"l": keyed(ITEM, default=[{"k": "a"}, {"k": "a"}])}),
    of({"m": values(PICKY, default={"a": "bad", "b": "good"})}), of({"l": array(of({"a": {**PICKY, "default": "bad"}}))}),
    of({"o": of({"a": {**SHORT, "default": "bad"}}, "self.a != 'bad'", default={})}),
    of({"o": of({"a": {**SHORT, "default": "bad"}}, "has(self.a)", default={})}),
    of({"o": of({"a": {**SHORT, "default": "ok"}}, "!has(self.a)", default={})}),
    of({"w": {**WHOLE, "default": 3, **rules("self > 3", "self < 3")}}),
    of({"w": {**WHOLE, "minimum": 5, "default": 3, **rules("self > 3")}}),
    of({"n": {**SHORT, "nullable": True, "default": None, **rules("self == 'a'")}}),
    of({"l": array(SHORT, maxItems=5000, default=["a"] * 1000, **rules("self.all(x, self.all(y, self.all(z, true)))"))}),
    of({"e": {"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True,
              "default": {"kind": "A", "apiVersion": "v1", "metadata": {"name": "b"}}, **rules("self.metadata.name == 'a'")}}),
]

# Schemas without rules.
SCHEMAS = [
    {"type": "object", "properties": {"a": {}}}, {"properties": {"a": TEXT}}, {"type": "string"}, {"type": "object", "nullable": True},
    of({"a": {"type": "array"}}), of({"a": {"type": "array", "items": {}}}), of({"a": {"type": "null"}}), of({"a": {"type": "any"}}),
    of({"a": {**TEXT, "uniqueItems": True}}), of({"a": {**TEXT, "$ref": "#/x"}}), of({"a": {**TEXT, "id": "x"}}),
    of({"a": {**of(), "additionalProperties": TEXT}}), of({"a": {**of(), "additionalProperties": False}}),
    of({"a": {**of(), "additionalProperties": True}}), {**of(), "additionalProperties": TEXT},
    of({"a": {**of(), "patternProperties": {"a": TEXT}}}),
    of({"a": {**TEXT, "x-kubernetes-list-type": "set"}}), of({"a": {"x-kubernetes-list-type": "set"}}),
    of({"a": {**array(TEXT), "x-kubernetes-list-type": "bag"}}),
    of({"a": {**array(TEXT), "x-kubernetes-list-type": "map"}}), of({"a": {**array(TEXT), "x-kubernetes-list-map-keys": ["k"]}}),
    of({"a": {**unique(TEXT), "x-kubernetes-list-map-keys": ["k"]}}), of({"a": keyed(of())}), of({"a": keyed(of({"k": TEXT}))}),
    of({"a": keyed(of({"k": {**TEXT, "default": "x"}}))}), of({"a": keyed(of({"k": of()}, required=["k"]))}),
    of({"a": keyed(of({"k": array(TEXT)}, required=["k"]))}), of({"a": keyed(of({"k": {**TEXT, "nullable": True}}, required=["k"]))}),
    of({"a": keyed({**ITEM, "nullable": True})}), of({"a": unique({**TEXT, "nullable": True})}), of({"a": keyed(ITEM, "k", "k")}),
    of({"a": keyed(ITEM, "k", "z")}), of({"a": unique(of())}), of({"a": unique({**of(), "x-kubernetes-map-type": "atomic"})}),
    of({"a": unique({**of(), "x-kubernetes-map-type": "granular"})}), of({"a": unique(array(TEXT))}), of({"a": unique(unique(TEXT))}),
    of({"a": {**TEXT, "x-kubernetes-map-type": "atomic"}}),
    of({"a": {"x-kubernetes-map-type": "atomic", "x-kubernetes-int-or-string": True}}),
    of({"a": {**of(), "x-kubernetes-map-type": "bad"}}), of({"a": {**of(), "x-kubernetes-preserve-unknown-fields": False}}),
    of({"a": {**TEXT, "x-kubernetes-embedded-resource": True}}), of({"a": {"type": "object", "x-kubernetes-embedded-resource": True}}),
    of({"a": {"x-kubernetes-int-or-string": True, "type": "string"}}),
    of({"a": {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]}}),
    of({"a": {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "string"}, {"type": "integer"}]}}),
    of({"a": {**TEXT, "anyOf": [{"type": "string"}, {"minLength": 1}]}}), of({"a": {**TEXT, "anyOf": [{"default": "a"}]}}),
    of({"a": {**of(), "anyOf": [{"properties": {"b": {"minLength": 1}}}]}}), of({"a": {**of(), "anyOf": [{"required": ["b"]}]}}),
    of({"a": {**array(TEXT), "anyOf": [{"items": {"minLength": 1}}]}}),
    of({"a": {**TEXT, "oneOf": [{"title": "a", "description": "b"}]}}),
    of({"a": {**TEXT, "not": {"nullable": True}}}), of({"a": {**TEXT, "allOf": [{"x-kubernetes-preserve-unknown-fields": True}]}}),
    of({"a": {**TEXT, "pattern": "["}}), of({"a": {**TEXT, "pattern": "(?=a)"}}), of({"a": {**TEXT, "pattern": "a{1001}"}}),
    of({"a": {**TEXT, "default": 1}}), of({"a": {**WHOLE, "default": "a"}}), of({"a": {**of(), "default": {"b": 1}}}),
    of({"a": {**TEXT, "enum": ["b"], "default": "a"}}), of({"a": {**TEXT, "default": None}}),
    of({"a": {**TEXT, "default": "a", "pattern": "b"}}),
    of({"kind": {**TEXT, "default": "a"}}), of({"metadata": {"type": "object", "default": {}}}), of({"kind": WHOLE}),
    of({"metadata": TEXT}),
    of({"metadata": of({"name": {**TEXT, "default": "a"}})}), of({"a": values({**TEXT, "default": "a"})}),
    of({"a": {**TEXT, "format": "odd"}}),
    of({"a": {**TEXT, "format": "odd"}, "b": {**WHOLE, "format": "int32"}, "c": {**FLAG, "format": "strange"}}),
    of({"a": {**TEXT, "minLength": -1}}), of({"a": {**TEXT, "maxLength": 0}}), of({"a": {"type": "number", "multipleOf": 0}}),
    of({"a": {**WHOLE, "minimum": 5, "maximum": 1}}), of({"a": {**TEXT, "enum": ["a", "a"]}}),
    of({"a": {**of(), "required": ["z"]}}), of({"a": {**of(), "required": ["a", "a"]}}), of({"": TEXT}), of({"a": None}),
    of({"a": {"type": "array", "items": [TEXT]}}),
]

# Objects that a first schema allows and a second one would not, and what may still be changed in them.
PAIR = {"type": "object", "required": ["a", "b"], "properties": {"a": TEXT, "b": {**WHOLE, "default": 1}, "v": SHORT}}
LOOSE_ITEM = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def lists(strict):
    """The fields of spec and status."""
    if not strict:
        return of({"s": array(TEXT), "m": array(LOOSE_ITEM), "p": array(LOOSE_ITEM), "l": array(TEXT), "a": array(LOOSE_ITEM),
                   "o": of({"s": array(TEXT), "m": array(LOOSE_ITEM)}), "n": values(array(TEXT)), "t": TEXT, "w": WHOLE,
                   "u": array(of({"v": TEXT}, **{"x-kubernetes-map-type": "atomic"})), "r": array(LOOSE_ITEM)})
    return of({"s": unique(SHORT), "m": keyed(ITEM), "p": keyed(PAIR, "a", "b"), "l": array(SHORT), "a": array(ITEM),
               "o": of({"s": unique(SHORT), "m": keyed(of({"k": TEXT, "m": keyed(ITEM), "v": SHORT}, required=["k"]))}),
               "n": values(unique(SHORT)), "t": {**SHORT, "enum": ["a", "b"]}, "w": {**WHOLE, "minimum": 5},
               "u": unique(of({"v": SHORT}, **{"x-kubernetes-map-type": "atomic"})),
               "r": keyed({**ITEM, **rules("!has(self.v) || self.v != 'bad'", {"rule": "self.k != 'c'", "message": "no c"})})})


def with_lists(strict):
    return definition(of({"spec": lists(strict), "status": lists(strict)}), "lists", subresources={"status": {}})


OLD = {
    "clean": {"s": ["a", "b"], "m": [{"k": "a", "v": "x"}, {"k": "b"}], "t": "a", "w": 5},
    "dups": {"s": ["a", "a"]}, "dupm": {"m": [{"k": "a"}, {"k": "a", "v": "x"}]}, "dupn": {"n": {"x": ["a", "a"]}},
    "longs": {"s": ["toolong", "b"], "l": ["toolong", "b"]},
    "longm": {"m": [{"k": "a", "v": "toolong"}, {"k": "b", "v": "ok"}], "a": [{"k": "a", "v": "toolong"}, {"k": "b", "v": "ok"}]},
    "longp": {"p": [{"a": "x", "b": 1, "v": "toolong"}, {"a": "x", "b": 2}]},
    "deep": {"o": {"m": [{"k": "a", "m": [{"k": "b", "v": "toolong"}, {"k": "c"}], "v": "x"}]}},
    "keyless": {"m": [{"v": "x"}, {"k": "a"}]}, "words": {"t": "toolong", "w": 1}, "rules": {"r": [{"k": "a", "v": "bad"}, {"k": "c"}]},
    "mixed": {"s": ["a", "a"], "m": [{"k": "a", "v": "toolong"}], "t": "c"}, "dupu": {"u": [{"v": "a"}, {"v": "a"}]},
}
CHANGES = [
    {"s": ["a", "a"]}, {"s": ["a", "b", "a", "b", "a"]}, {"s": ["b"]}, {"s": ["toolong", "b", "c"]}, {"s": ["b", "toolong"]},
    {"s": ["a", "toolong"]}, {"m": [{"k": "a"}, {"k": "a"}]}, {"m": [{"k": "b", "v": "ok"}, {"k": "a", "v": "toolong"}]},
    {"m": [{"k": "a", "v": "toolong"}, {"k": "b", "v": "new"}]}, {"m": [{"k": "a", "v": "longer2"}, {"k": "b", "v": "ok"}]},
    {"m": [{"k": "c", "v": "toolong"}]}, {"m": [{"k": "a", "v": "toolong"}, {"k": "a", "v": "toolong"}]}, {"m": [{"v": "x"}]},
    {"m": [{"v": "x"}, {"k": "b"}]}, {"m": [{"v": "x"}, {"v": "y"}]}, {"l": ["toolong", "c"]}, {"l": ["toolong", "b"]}, {"l": ["b"]},
    {"a": [{"k": "a", "v": "toolong"}, {"k": "b", "v": "new"}]}, {"a": [{"k": "b", "v": "ok"}, {"k": "a", "v": "toolong"}]},
    {"p": [{"a": "x", "b": 2}, {"a": "x", "b": 1, "v": "toolong"}]}, {"p": [{"a": "x", "b": 2, "v": "toolong"}]},
    {"p": [{"a": "x", "b": 1}, {"a": "x", "b": 1}]}, {"p": [{"a": "x", "v": "toolong"}]}, {"p": [{"a": "x"}, {"a": "x", "b": 1}]},
    {"o": {"s": ["a", "a"]}}, {"o": {"m": [{"k": "a", "m": [{"k": "c", "v": "y"}, {"k": "b", "v": "toolong"}], "v": "y"}]}},
    {"o": {"m": [{"k": "a", "m": [{"k": "c", "v": "toolong"}]}]}}, {"o": {"m": [{"k": "a"}, {"k": "a"}]}}, {"n": {"x": ["b", "b"]}},
    {"n": {"y": ["a"]}}, {"t": "b"}, {"t": "c"}, {"t": "toolong"}, {"w": 2}, {"w": 1}, {"w": 6},
    {"r": [{"k": "c"}, {"k": "a", "v": "bad"}]},
    {"r": [{"k": "b", "v": "bad"}]}, {"r": [{"k": "a", "v": "bad"}]}, {"r": [{"k": "a", "v": "ok"}, {"k": "c", "v": "x"}]},
    {"u": [{"v": "a"}, {"v": "a"}]}, {"u": [{"v": "a"}, {"v": "b"}, {"v": "a"}]}, {"u": [{"v": "toolong"}]}, {"s": None, "m": None},
    {"m": [{"k": "a", "v": "toolong"}, {"k": "b", "v": "ok"}, {"k": "c"}], "s": ["a", "a"]}, {"zzz": 1},
]
