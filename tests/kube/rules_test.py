#!/usr/bin/python3
"""Compares the rules of custom resources (x-kubernetes-validations) with Kubernetes' own code.

The tests of the package that evaluates them run in a copy which writes down each schema, object and result. Then our
program (tests/kube_oracle.c) evaluates the same. A test is added that does so for the cases of tests/kube/rule_cases.py.
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
sys.path.insert(0, str(ROOT / "tests/kube"))
import rule_cases  # noqa: E402
from oracle import Program  # noqa: E402

SUBJECT = pathlib.Path(os.environ.get("VIGIL_BIN", ROOT / "build-test/vigil"))
MODULE = "k8s.io/apiextensions-apiserver"
PACKAGE = "pkg/apiserver/schema/cel"
ENVIRONMENT = {**os.environ, "PATH": os.environ["PATH"] + ":/usr/local/go/bin"}
CALL = "return s.validate(ctx, fldPath, obj, oldObj, opt.ratchetingOptions, costBudget)"
RECORDING = "\n".join((
    "start := recording(ctx)",
    "\terrs, remainingBudget = s.validate(start, fldPath, obj, oldObj, opt.ratchetingOptions, costBudget)",
    "\trecord(start, s, fldPath, obj, oldObj, opt.currentCorrelation != nil, costBudget, errs, remainingBudget)",
    "\treturn errs, remainingBudget",
))
RECORDER = (ROOT / "tests/kube/rules_recorder.go.in").read_text()
OURS = (ROOT / "tests/kube/rules_cases.go.in").read_text()
# What is changed in Kubernetes' code, so that it is written down: text, replacement.
CHANGES = {
    "validation.go": [(CALL, RECORDING), ("func ValidFieldPath(", "func walkFieldPath("),
                      ("\tisResourceRoot bool\n\n", "\tisResourceRoot bool\n\tcallMax uint64\n\n"),
                      ("\t\t\tisResourceRoot:       isResourceRoot,\n", "\t\t\tisResourceRoot: isResourceRoot, callMax: perCallLimit,\n")],
    "compilation.go": [("func Compile(", "func compileRules(")],
}
TESTS = "Test(Ours|Valid|Rat|Optional|Message|Reason|FieldPath|CostEstimation|CEL|Cel)"
# A test of Kubernetes that waits for a time limit.
LEFT_OUT = "Cancel"


def go(*arguments, **more):
    return subprocess.run(["go", *arguments], cwd=ROOT / "tests/kube", text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, **{"env": ENVIRONMENT, **more})


def write_module(folder):
    """A copy of the module with a package that records, and a go.mod which refers to it."""
    original = go("list", "-m", "-f", "{{.Dir}}", MODULE).stdout.strip()
    copy = folder / "module"
    shutil.copytree(original, copy)
    subprocess.run(["chmod", "-R", "u+w", copy], check=True)
    package = copy / PACKAGE
    for name, changes in CHANGES.items():
        text = (package / name).read_text()
        for before, after in changes:
            assert text.count(before) == 1, (name, before)
            text = text.replace(before, after)
        (package / name).write_text(text)
    (package / "record.go").write_text(RECORDER)
    (package / "ours_test.go").write_text(OURS)
    for name in "go.mod", "go.sum":
        shutil.copy(ROOT / "tests/kube" / name, folder / name)
    assert go("mod", "edit", f"-replace={MODULE}={copy}", str(folder / "go.mod")).returncode == 0
    return folder / "go.mod"


def record(folder, cases):
    module, out, asked = write_module(folder), folder / "out.jsonl", folder / "cases.jsonl"
    asked.write_text("".join(json.dumps(case) + "\n" for case in cases))
    done = go("test", "-mod=mod", f"-modfile={module}", "-count=1", "-skip", LEFT_OUT, "-run",
              TESTS, f"{MODULE}/{PACKAGE}",
              env={**ENVIRONMENT, "RULES_RECORD": str(out), "RULES_CASES": str(asked)})
    assert out.exists(), done.stdout[-4000:]
    return [json.loads(line) for line in out.read_text().splitlines()], done.stdout


def has_all_of(schema):
    """Rules within allOf are refused in definitions, so Vigil has none; the record lacks them."""
    return '"allOf"' in json.dumps(schema)


def ask(program, case):
    old = b"" if case["old"] is None else json.dumps(case["old"]).encode()
    ok, text = program.ask("v", json.dumps(case["schema"]).encode(), json.dumps(case["object"]).encode(), old,
                           case["path"].encode(), b"root" if case["root"] else b"",
                           str(case["budget"]).encode(), str(case["call"]).encode())
    return json.loads(text) if ok else {"failed": text.decode()}


# What cannot be the same, by a part of the rule.
APART = (
    "self.val.exists(k, v, v == 2)",  # the cost depends on the order of a map in Go
    "dyn(self.values).all(", "self.all(k, self[k] > 0)", "self.val.map(k, self.val[k])",  # likewise
    "340282346638528859811704183484516925440",  # a float32, which JSON writes with fewer digits
    "fakeFunction",  # a library of the test
    ".flatten(-1)",  # Kubernetes counts 3 less for a negative level, which is an error anyway
)


def is_apart(case, got):
    """Whether a difference is known. Functions that are missing are refused when a rule is compiled."""
    text = json.dumps(case["schema"])
    return any(part in text for part in APART) or "is not supported" in json.dumps(got)


def without_number(text):
    """Go puts the time into the name of the type of self."""
    return re.sub(r"selfType\d+", "selfType", text)


def differs(case, got):
    """What is different, or None. Go visits properties in any order."""
    if "failed" in got:
        return got["failed"]
    errors, warnings = sorted(map(without_number, case["errors"])), sorted(case["warnings"] or [])
    ours = sorted(got["errors"] + ([] if case["ratchets"] else got["warnings"]))
    if ours != errors:
        return f"errors {ours} instead of {errors}"
    if case["ratchets"] and sorted(got["warnings"]) != warnings:
        return f"warnings {got['warnings']} instead of {warnings}"
    if case["left"] != got["left"] and (case["left"] >= 0 or got["left"] >= 0):
        return f"cost {case['budget'] - got['left']} instead of {case['budget'] - case['left']}"
    return None


class Rules(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as folder:
            cls.recorded, cls.output = record(pathlib.Path(folder), rule_cases.cases())
        if os.environ.get("RULES_KEEP"):
            pathlib.Path(os.environ["RULES_KEEP"]).write_text("".join(json.dumps(c) + "\n" for c in cls.recorded))

    def test_rules_compile_alike(self):
        """Errors, and estimates of costs."""
        program = Program(str(SUBJECT.parent / "unit/kube_oracle"))
        cases = {json.dumps(case): case for case in self.recorded if "compiled" in case and not is_apart(case, None)}
        wrong = []
        for case in cases.values():
            ok, text = program.ask("r", json.dumps(case["schema"]).encode(), b"root" if case["root"] else b"")
            got, want = (json.loads(without_number(text)) for text in (text.decode() if ok else "[]", json.dumps(case["compiled"])))
            if got != want:
                wrong.append(f"{got} instead of {want}\n  {json.dumps(case)[:1500]}")
        print(f"{len(cases)} schemas with {sum(len(case['compiled']) for case in cases.values())} rules, {len(wrong)} wrong")
        self.assertGreater(len(cases), 800, self.output[-2000:])
        self.assertEqual(wrong, [], "\n".join(wrong[:20]))

    def test_field_paths_lead_to_the_same_fields(self):
        program = Program(str(SUBJECT.parent / "unit/kube_oracle"))
        cases = {json.dumps(case): case for case in self.recorded if "fieldPath" in case}
        wrong = []
        for case in cases.values():
            ok, text = program.ask("f", json.dumps(case["schema"]).encode(), case["fieldPath"].encode())
            if ok == bool(case["error"]) or text.decode() != (case["error"] or case["found"]):
                wrong.append(f"{text} instead of {case['error'] or case['found']}: {json.dumps(case)}")
        print(f"{len(cases)} paths, {len(wrong)} wrong")
        self.assertGreater(len(cases), 25, self.output[-2000:])
        self.assertEqual(wrong, [], "\n".join(wrong))

    def test_kubernetes_own_code_agrees(self):
        cases = [case for case in self.recorded if "errors" in case]
        program = Program(str(SUBJECT.parent / "unit/kube_oracle"))
        wrong, apart = [], 0
        cases = [case for case in cases if not has_all_of(case["schema"])]
        for case in cases:
            got = ask(program, case)
            why = differs(case, got)
            if why and is_apart(case, got):
                apart += 1
            elif why:
                wrong.append(f"{why}\n  {json.dumps(case)[:1500]}")
        print(f"{len(cases)} cases, {len(wrong)} wrong, {apart} known differences")
        self.assertGreater(len(cases) - apart, 500, self.output[-2000:])
        self.assertEqual(wrong, [], "\n".join(wrong[:20]))


if __name__ == "__main__":
    unittest.main()
