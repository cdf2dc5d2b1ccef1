#!/usr/bin/python3
"""`vigil cel` evaluates and checks expressions of the Common Expression Language without a server."""
import json
import os
import subprocess
import unittest

from server import SUBJECT, LiveTest, only_vigil

OBJECT = """
metadata:
  name: web
spec:
  replicas: 3
  ports: [80, 443]
"""

# Each line contains the one before twice: 2^30 values.
MANY_ALIASES = "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 30))

DEFINITION = """
# A comment.
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: lamps.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: lamps, kind: Lamp}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              colors: {type: array, maxItems: 10, items: {type: string, maxLength: 5}}
            x-kubernetes-validations:
            - rule: RULE
              messageExpression: "'not ' + self.colors[0]"
"""
FIELD = "spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[0]"
ADVICE = "(try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)"


def cel(*arguments, text=""):
    done = subprocess.run([SUBJECT, "cel", *arguments], input=text, capture_output=True, text=True, timeout=60, env=dict(os.environ))
    return done.returncode, done.stdout, done.stderr


@only_vigil
class Cel(LiveTest):
    def test_values_are_shown_as_json_or_as_an_expression_writes_them(self):
        for expression, shown in (("1 + 2", "3"), ("[1, 2].map(i, {'k': i})", '[{"k": 1}, {"k": 2}]'), ("2u", "2u"), ("1.0", "1.0"),
                                  ("'a\\n\"' + 'é'", '"a\\n\\"é"'), ("b'a\\xff'", 'b"a\\xff"'), ("duration('90s')", 'duration("90s")'),
                                  ("timestamp(0)", 'timestamp("1970-01-01T00:00:00Z")'), ("type(1)", "int"), ("null", "null"),
                                  ("optional.of([true])", "optional.of([true])"), ("optional.none()", "optional.none()"),
                                  ("double('NaN')", 'double("NaN")'), ("{1: 'a'}", '{1: "a"}'), ("ip('::1')", 'net.IP("::1")')):
            self.assertEqual(cel("eval", expression), (0, shown + "\n", ""), expression)

    def test_json_is_always_json(self):
        parts = ("1u", "b'\\xff'", "duration('1s')", "optional.none()", "{2: type('')}", "1.0 / 0.0", "2.5")
        code, out, errors = cel("eval", "-w", "json", f"[{', '.join(f'dyn({part})' for part in parts)}]")
        self.assertEqual((code, errors), (0, ""))
        self.assertEqual(json.loads(out), {"type": "list(dyn)", "value": [1, "/w==", "1s", None, {"2": "string"}, "+Inf", 2.5], "cost": 14})

    def test_variables_have_types(self):
        given = ("--var", 'x=3,s="a,b"', "--var", 'l=[1, "two", {"k": "]"}]')
        self.assertEqual(cel("eval", *given, "x * 2 + l.size() + l[2].k.size()"), (0, "10\n", ""))
        self.assertEqual(cel("eval", "s + l[1]", *given), (0, '"a,btwo"\n', ""))
        self.assertEqual(cel("check", "x > 1", *given), (0, "bool\n", ""))
        code, out, errors = cel("check", "x + s", *given)
        self.assertEqual((code, out), (1, ""))
        self.assertIn("found no matching overload for '_+_' applied to '(int, string)'", errors)

    def test_a_file_is_self(self):
        path = self.scratch / "object.yaml"
        path.write_text(OBJECT)
        expression = "self.spec.replicas == 3 && self.spec.ports.exists(p, p == 443)"
        self.assertEqual(cel("eval", "-f", str(path), expression), (0, "true\n", ""))
        self.assertEqual(cel("eval", "-f", "-", "self.metadata.name", text=OBJECT), (0, '"web"\n', ""))
        code, out, errors = cel("eval", "-f", str(self.scratch / "missing"), "self")
        self.assertEqual((code, out), (2, ""))
        self.assertIn("missing", errors)

    def test_errors_show_their_place(self):
        self.assertEqual(cel("check", "1 + nothing"), (1, "", "ERROR: <input>:1:5: undeclared reference to 'nothing' (in container '')\n"
                                                              " | 1 + nothing\n | ....^\n"))
        code, out, errors = cel("eval", "-w", "json", "1 +")
        self.assertEqual((code, errors), (1, ""))
        self.assertIn("Syntax error: ", json.loads(out)["error"])

    def test_an_evaluation_that_fails_says_why(self):
        self.assertEqual(cel("eval", "--var", "x=0", "1 / x"), (1, "", "division by zero\n"))
        self.assertEqual(cel("eval", "--var", "m={}", "m.k"), (1, "", "no such key: k\n"))
        code, out, errors = cel("eval", "--var", "x=0", "-w", "json", "1 / x")
        self.assertEqual((code, errors, json.loads(out)), (1, "", {"type": "int", "error": "division by zero", "cost": 2}))

    def test_the_cost_is_that_of_kubernetes_and_limited_as_there(self):
        self.assertEqual(cel("eval", "--cost", "--var", "x=1", "x + 1"), (0, "2\ncost: 2\n", ""))
        items = json.dumps(list(range(200)))
        code, _, errors = cel("eval", "--var", f"l={items}", "l.all(a, l.all(b, l.all(c, a + b + c >= 0)))")
        self.assertEqual((code, errors), (1, "operation cancelled: actual cost limit exceeded\n"))

    def test_wrong_arguments_are_refused_with_the_way_out(self):
        for arguments, why in ((("eval",), "EXPRESSION is missing"), (("try", "1"), "the first argument must be eval or check"),
                               (("eval", "--var", "x", "1"), 'must be NAME=JSON, not "x"'), (("eval", "--var", "x=a", "x"), "needs quotes"),
                               (("eval", "--var", "x=1,x=2", "x"), "the variable x is given twice"),
                               (("eval", "--no", "1"), "not defined: -no")):
            code, out, errors = cel(*arguments)
            self.assertEqual((code, out), (2, ""), arguments)
            self.assertIn(why, errors)

    def test_rules_of_a_definition_are_shown_with_their_costs(self):
        text = DEFINITION.replace("RULE", "self.colors.all(c, c != 'red')")
        code, out, errors = cel("check", "--schema", "-", text=text)
        self.assertEqual((code, errors), (0, ""))
        self.assertEqual(out, f"{FIELD}.rule: cost 53, 0.00 % of the limit\n    self.colors.all(c, c != 'red')\n"
                         f"{FIELD}.messageExpression: cost 6, 0.00 % of the limit\n    'not ' + self.colors[0]\n"
                         "spec.validation.openAPIV3Schema: all rules: cost 59, 0.00 % of the limit\n")
        code, out, _ = cel("check", "--schema", "-", "-w", "json", text=text)
        found = json.loads(out)
        self.assertEqual((code, found["errors"], [rule["cost"] for rule in found["rules"]]), (0, [], [53, 6, 59]))
        self.assertEqual(found["rules"][0], {"field": f"{FIELD}.rule", "expression": "self.colors.all(c, c != 'red')", "cost": 53,
                                             "limit": 10_000_000})

    def test_what_is_wrong_with_a_definition_is_shown_with_its_place(self):
        code, out, _ = cel("check", "--schema", "-", text=DEFINITION.replace("RULE", "self.color == 'red'"))
        self.assertEqual(code, 1)
        self.assertIn(f"{FIELD}.rule: compilation failed: ERROR: <input>:1:5: undefined field 'color'\n | self.color == 'red'\n"
                      " | ....^\n", out)
        self.assertNotIn("Invalid value", out)
        dear = DEFINITION.replace("RULE", "self.colors.all(a, self.colors.all(b, a + b != b + a))").replace("maxItems: 10, ", "")
        code, out, _ = cel("check", "--schema", "-", text=dear)
        self.assertEqual(code, 1)
        self.assertIn(f"{FIELD}.rule: cost more than 100 times the limit\n", out)
        self.assertIn(f"{FIELD}.rule: Forbidden: estimated rule cost exceeds budget by factor of more than 100x {ADVICE}\n", out)
        code, out, _ = cel("check", "--schema", "-", text=DEFINITION.replace("scope: Namespaced", "scope: Galaxy"))
        self.assertEqual(code, 1)
        self.assertIn('spec.scope: Unsupported value: "Galaxy"', out)

    def test_other_files_are_refused(self):
        for arguments, text, why in ((("check", "--schema", "-"), OBJECT, "is not a CustomResourceDefinition"),
                                     (("check", "--schema", "-"), "a: [", "is neither YAML nor JSON"),
                                     (("check", "--schema", "-"), MANY_ALIASES, "it takes too much memory"),
                                     (("eval", "-f", "-", "self"), MANY_ALIASES, "it takes too much memory"),
                                     (("check", "--schema", "/no/such"), "", "/no/such"),
                                     (("check", "--schema", "-", "1"), DEFINITION, "--schema is for check, without an expression"),
                                     (("eval", "--schema", "-"), DEFINITION, "--schema is for check, without an expression"),
                                     (("check",), "", "EXPRESSION is missing")):
            code, out, errors = cel(*arguments, text=text)
            self.assertEqual((code, out), (2, ""), arguments)
            self.assertIn(why, errors)

    def test_help_names_both_commands(self):
        code, out, _ = cel("--help")
        self.assertEqual(code, 0)
        self.assertIn("vigil cel", out)
        self.assertIn("--var", out)


if __name__ == "__main__":
    unittest.main()
