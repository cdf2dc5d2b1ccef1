"""Schemas with rules, and objects, for tests/kube/rules_test.py."""


def rules(*texts):
    return {"x-kubernetes-validations": [text if isinstance(text, dict) else {"rule": text} for text in texts]}


def node(kind, *texts, **more):
    return {"type": kind, **more, **rules(*texts)} if texts else {"type": kind, **more}


def resource(spec):
    return node("object", properties={"spec": spec, "apiVersion": node("string"), "kind": node("string"),
                                      "metadata": node("object")})


def whole(spec, **more):
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a", "labels": {"x": "y"}},
            "spec": spec, **more}


ENTRY = node("object", "self.v <= 5", "self.v >= oldSelf.v", {"rule": "self.v != 3", "fieldPath": ".v",
             "reason": "FieldValueForbidden", "message": "three"}, properties={"n": node("string"), "v": node("integer")},
             required=["n"])
MESSAGES = node("string", {"rule": "self == 'x'", "messageExpression": "'got ' + self", "message": "plain"},
                {"rule": "self == 'x'", "messageExpression": "''", "message": "plain"},
                {"rule": "self == 'x'", "message": "  trimmed "}, " self == 'x' ",
                {"rule": "self == 'x'", "reason": "FieldValueDuplicate"},
                {"rule": "self == 'x'", "reason": "FieldValueRequired", "message": "needed"},
                {"rule": "self == 'x'", "messageExpression": "'a\\nb'"},
                {"rule": "self == oldSelf", "messageExpression": "oldSelf + ' became ' + self"},
                {"rule": "oldSelf.orValue('x') == self", "optionalOldSelf": True, "message": "optional"})
LISTS = node("object", "self.set == ['b', 'a']", "self.set + ['a', 'c'] == ['a', 'b', 'c']", "(self.set + self.set).size() == 2",
             "self.set == oldSelf.set", "self.map == oldSelf.map", "(self.map + oldSelf.map).all(x, x.v > 1)",
             "self.list == oldSelf.list", "'a' in self.set", "self.nums == oldSelf.nums", "self.list[5] == 'x'",
             "self.map.exists(x, x.n == 'p')", "type(self.any) == int || self.any == 'text'", "self.map == self.map + oldSelf.map",
             properties={"set": node("array", items=node("string"), **{"x-kubernetes-list-type": "set"}),
                         "nums": node("array", items=node("number"), **{"x-kubernetes-list-type": "set"}),
                         "list": node("array", items=node("string")),
                         "any": {"x-kubernetes-int-or-string": True},
                         "map": node("array", items=ENTRY, **{"x-kubernetes-list-type": "map",
                                                              "x-kubernetes-list-map-keys": ["n"]})})
SHAPES = node("object", "self.a__dot__b == 1", "has(self.nul)", "self.values['k'] == null", "has(self.values.k)",
              "self.__namespace__ == 'x'", "self.namespace == 'x'", "self.time > timestamp('2020-01-01T00:00:00Z')",
              "self.day == timestamp('2020-01-02T00:00:00Z')", "self.long == duration('1h')", "self.bytes == b'hello'",
              "self.real == 2.0", "self == oldSelf", "self.open == oldSelf.open", "dyn(self).size() == 3", "self.inner.x == 1",
              "self.inner.metadata.name == 'n'", "self.inner.kind == 'K'", "dyn(self.values).all(k, k != 'z')",
              "self.values == {'k': null}", "self.text.size() > 100 ? self.missing == '' : true",
              "has(self.text) && self.text.startsWith('q')", "self.number / 0 == 1",
              **{"x-kubernetes-preserve-unknown-fields": True},
              properties={"a.b": node("integer"), "nul": node("string", nullable=True), "namespace": node("string"),
                          "values": node("object", additionalProperties=node("string", nullable=True)),
                          "time": node("string", format="date-time"), "day": node("string", format="date"),
                          "long": node("string", format="duration"), "bytes": node("string", format="byte"),
                          "real": node("number"), "number": node("integer"), "text": node("string"), "missing": node("string"),
                          "open": node("object", **{"x-kubernetes-preserve-unknown-fields": True}),
                          "inner": node("object", properties={"x": node("integer")},
                                        **{"x-kubernetes-embedded-resource": True})})
MAPS = node("object", "self.all(k, self[k] > 0)", additionalProperties=node("integer", "self < 10", "self > oldSelf"))
COSTLY = node("array", "self.all(x, self.all(y, x == y || x != y))", items=node("integer"))
VALUES = [
    (MESSAGES, ["x", "y", "multi\nline", "\u00e9\u4e16\U0001f600"]),
    (LISTS, [{"set": ["a", "b"], "map": [{"n": "p", "v": 1}, {"n": "q", "v": 3}], "list": ["a", "b"], "nums": [1, 2.5], "any": 1},
             {"set": ["b", "a"], "map": [{"n": "q", "v": 3}, {"n": "p", "v": 7}], "list": ["b", "a"], "nums": [2.5], "any": "z"},
             {"set": ["b", "a", "c"], "map": [{"n": "q", "v": 2}, {"v": 7}], "list": [], "nums": [2.5, 1.5]},
             {"set": [], "map": [], "list": ["a", "b", "c", "d", "e", "x"], "any": "text"}]),
    (SHAPES, [{"a.b": 1, "nul": None, "values": {"k": None}, "namespace": "x", "time": "2021-02-03T04:05:06.5+01:00",
               "day": "2020-01-02", "long": "60 min", "bytes": "aGVsbG8=", "real": 2, "open": {"p": [1]}, "u": 1, "number": 4,
               "text": "qq", "inner": {"apiVersion": "v1", "kind": "K", "metadata": {"name": "n", "labels": {}}, "x": 1}},
              {"a.b": 1, "nul": "", "values": {"k": "v", "z": "w"}, "namespace": "y", "time": "2019-02-03T04:05:06Z",
               "day": "2020-01-03", "long": "1h", "bytes": "", "real": 2.5, "open": {"p": [2]}, "u": 2, "text": "r" * 101},
              {"a.b": 2, "open": {"p": [1]}, "u": 1}, {}]),
    (MAPS, [{"a": 1, "b": 12}, {"a": 0, "b": 13}, {"c": 99}, {}]),
    (COSTLY, [list(range(20)), list(range(400)), list(range(900))]),
]


def cases():
    """Each value alone, and as the change of each other one; also within a list of type map and one without."""
    for schema, values in VALUES:
        inside = node("array", items=node("object", properties={"n": node("string"), "v": schema}),
                      **{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["n"]})
        for value in values:
            for old in [None] + values:
                yield {"schema": resource(schema), "root": True, "object": whole(value),
                       "old": None if old is None else whole(old)}
                if schema is COSTLY:
                    continue
                yield {"schema": resource(inside), "root": True, "object": whole([{"n": "b", "v": value}, {"n": "a", "v": value}]),
                       "old": None if old is None else whole([{"n": "a", "v": old}])}
