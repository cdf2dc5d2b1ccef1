#!/usr/bin/python3
"""CustomResourceDefinitions that projects publish, and the objects that they publish as examples, in a real kube-apiserver and in
Vigil. Both must accept or refuse each, with the same texts. The projects' Go modules are listed in tests/kube/definitions/go.mod and
fetched by `go mod download`; tools/build-kube builds the real kube-apiserver.

All YAML files of a module count; what is a template (of Helm, for example) cannot be read and is left out. Therefore cert-manager,
cluster-api and karpenter, whose examples are templates, have definitions but hardly any examples. No module lacks its definitions.
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/live"))
sys.path.insert(0, str(ROOT / "tests/kube"))
import definition_cases as cases  # noqa: E402
from same_policies_test import shown  # noqa: E402
from same_writes_test import MERGE, Client  # noqa: E402
from side_by_side import SideBySide  # noqa: E402

HERE = ROOT / "tests/kube/definitions"
ORACLE = pathlib.Path(os.environ.get("VIGIL_BIN", ROOT / "build-test/vigil")).parent / "unit/kube_oracle"
ENVIRONMENT = {**os.environ, "PATH": os.environ["PATH"] + ":/usr/local/go/bin"}
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
# A definition that is published several times is installed from a folder with this in its name, if there is one.
INSTALLED = re.compile(
    r"config/crd/experimental/|/crds?/bases/|deploy/crds|manifests/crds|/config/crds|client/crds/|pkg/apis/crds|-crd-full/")
READY_SECONDS = 120
SHOWN = 1500  # characters of a value
DEFINITIONS_LEAST, EXAMPLES_LEAST = 300, 2200


def go(*arguments, **more):
    done = subprocess.run(["go", *arguments], env=ENVIRONMENT, capture_output=True, text=True, check=False, **more)
    if done.returncode:
        raise AssertionError(f"go {arguments}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


def modules():
    """Paths of the modules' folders by name."""
    wanted = re.findall(r"^\t(\S+) (v\S+)$", (HERE / "go.mod").read_text(), re.M)
    text = go("mod", "download", "-json", *(f"{path}@{version}" for path, version in wanted), cwd=HERE)
    found = [json.loads(part + "}") for part in text.split("\n}\n") if part.strip()]
    return {one["Path"]: pathlib.Path(one["Dir"]) for one in found}


def documents(folder):
    """(file, object) of all YAML files."""
    files = sorted(path for kind in ("yaml", "yml") for path in folder.rglob(f"*.{kind}") if path.is_file())
    text = go("run", "./documents", cwd=ROOT / "tests/kube", input="".join(f"{path}\n" for path in files))
    for line in text.splitlines():
        one = json.loads(line)
        if isinstance(one.get("object"), dict) and one["object"].get("kind"):
            yield one["file"].removeprefix(str(folder)), one["object"]


def is_definition(value):
    return value["kind"] == "CustomResourceDefinition" and value.get("apiVersion") == "apiextensions.k8s.io/v1"


def served(definition):
    """(apiVersion, kind) with the path of the objects. A definition with a webhook is served at its stored version only, because
    the webhook does not run."""
    spec = definition["spec"]
    webhook = spec.get("conversion", {}).get("strategy") == "Webhook"
    for version in spec["versions"]:
        if version["served"] and (version["storage"] or not webhook):
            group_version = f"{spec['group']}/{version['name']}"
            middle = "namespaces/default/" if spec["scope"] == "Namespaced" else ""
            yield (group_version, spec["names"]["kind"]), f"/apis/{group_version}/{middle}{spec['names']['plural']}"


def example(value):
    """The object in the namespace that exists."""
    metadata = value.get("metadata")
    if isinstance(metadata, dict):
        metadata.pop("namespace", None)
    return value


def differences(ours, theirs, path=""):
    """Where two values differ, as lines; the values themselves are too long to show."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for key in sorted(ours.keys() | theirs.keys()):
            yield from differences(ours.get(key), theirs.get(key), f"{path}.{key}")
    elif isinstance(ours, (list, tuple)) and isinstance(theirs, (list, tuple)) and len(ours) == len(theirs):
        for at, (one, other) in enumerate(zip(ours, theirs)):
            yield from differences(one, other, f"{path}[{at}]")
    elif ours != theirs:
        yield f"{path}\n    ours   {str(ours)[:SHOWN]}\n    theirs {str(theirs)[:SHOWN]}"


def counts(answer, sorts):
    """Without the status of a definition, which a controller of the real server sets a moment later. `sorts`: the causes of a refusal
    are sorted, because Go finds them in any order."""
    code, body, warnings = answer
    if isinstance(body, dict) and body.get("kind") == "CustomResourceDefinition":
        body.pop("status")
    # The type of self has the time in its name.
    body = json.loads(re.sub(r"selfType\d+", "selfType", json.dumps(body)))
    causes = body.get("details", {}).get("causes", []) if isinstance(body, dict) else []
    if sorts and len(causes) > 1:
        body["message"] = body["message"].partition("[")[0]
        causes.sort(key=lambda cause: (cause.get("field", ""), cause.get("reason", ""), cause.get("message", "")))
    return code, body, warnings


class SameDefinitions(SideBySide):
    client = Client

    def same(self, what, *case, sorts=True):
        theirs, ours = (counts(shown(client.send(*case), client.warnings), sorts) for client in (self.theirs, self.ours))
        with self.subTest(what=what):
            self.assertEqual("", "\n".join(list(differences(ours, theirs))[:10]))
        return theirs[0]

    def definitions(self, schemas):
        refused = 0
        for number, schema in enumerate(schemas):
            value = cases.definition(schema)
            refused += self.same(f"{number} {json.dumps(schema)}", "POST", CRDS + "?dryRun=All", value, sorts=False) != 201
        print(len(schemas), "definitions,", refused, "refused", flush=True)

    def test_rules(self):
        self.definitions(cases.RULES)

    def test_costs_of_rules(self):
        self.definitions(cases.COSTS)

    def test_defaults(self):
        self.definitions(cases.DEFAULTS)

    def test_schemas(self):
        self.definitions(cases.SCHEMAS)

    def both(self, *case):
        return [client.send(*case) for client in (self.theirs, self.ours)]

    def install(self, value, path):
        self.assertEqual([code for code, _ in self.both("POST", CRDS, value)], [201, 201])
        self.wait_for(path)

    def test_changes_of_what_would_be_refused(self):
        """Errors are forgiven where nothing has changed, and lists whose keys repeated may do so further on."""
        path = "/apis/example.com/v1/namespaces/default/lists"
        self.install(cases.with_lists(False), path)
        for name, value in cases.OLD.items():
            item = {"apiVersion": "example.com/v1", "kind": "Lists", "metadata": {"name": name}, "spec": value}
            self.assertEqual([code for code, _ in self.both("POST", path, item)], [201, 201], name)
            codes = [code for code, _ in self.both("PATCH", f"{path}/{name}/status", {"status": value}, MERGE)]
            self.assertEqual(codes, [200, 200], name)
        for client in (self.theirs, self.ours):
            self.assertEqual(client.send("PATCH", f"{CRDS}/lists.example.com", {"spec": cases.with_lists(True)["spec"]}, MERGE)[0], 200)
        marker = {"apiVersion": "example.com/v1", "kind": "Lists", "metadata": {"name": "marker"}, "spec": {"w": 1}}
        end = time.monotonic() + READY_SECONDS
        while [code for code, _ in self.both("POST", path + "?dryRun=All", marker)] != [422, 422]:
            self.assertLess(time.monotonic(), end)
            time.sleep(0.2)
        refused = 0
        for name in cases.OLD:
            for part, where in (("spec", f"{path}/{name}"), ("status", f"{path}/{name}/status")):
                for change in cases.CHANGES:
                    refused += self.same(f"{name} {part} {change}", "PATCH", where + "?dryRun=All", {part: change}, MERGE) != 200
        print(2 * len(cases.OLD) * len(cases.CHANGES), "changes,", refused, "refused", flush=True)

    def test_published(self):
        definition_count = example_count = 0
        for name, folder in modules().items():
            definitions, examples = {}, []
            for file, value in documents(folder):
                if is_definition(value):
                    definitions.setdefault(json.dumps(value), (file, value))
                else:
                    examples.append((file, value))
            number = self.project(name, list(definitions.values()), examples)
            definition_count += number["definitions"]
            example_count += number["examples"]
        self.assertGreaterEqual(definition_count, DEFINITIONS_LEAST)
        self.assertGreaterEqual(example_count, EXAMPLES_LEAST)

    def test_published_costs(self):
        """Kubernetes' own code estimates the same cost of each rule."""
        lines = {json.dumps(value) for folder in modules().values() for _, value in documents(folder) if is_definition(value)}
        self.assertGreaterEqual(len(lines), DEFINITIONS_LEAST)
        text = go("run", "./ruleoracle", "published", str(ORACLE), cwd=ROOT / "tests/kube", input="\n".join(sorted(lines)))
        print(text.splitlines()[-1], flush=True)

    def project(self, name, definitions, examples):
        paths, install, number = {}, {}, {"definitions": 0, "examples": 0, "refused": 0}
        start = time.monotonic()
        for file, value in definitions:
            number["definitions"] += 1
            code = self.same(f"{name}{file}", "POST", CRDS + "?dryRun=All", value)
            number["refused"] += code != 201
            key = value["metadata"]["name"]
            if code == 201 and (key not in install or (INSTALLED.search(file) and not INSTALLED.search(install[key][0]))):
                install[key] = file, value
        kinds = {(value.get("apiVersion"), value["kind"]) for _, value in examples}
        for file, value in install.values():
            here = dict(served(value))
            if here.keys() & kinds:
                self.assertEqual([client.send("POST", CRDS, value)[0] for client in (self.theirs, self.ours)], [201, 201], file)
                paths.update(here)
        for path in paths.values():
            self.wait_for(path)
        seen = set()
        for file, value in examples:
            path = paths.get((value.get("apiVersion"), value["kind"]))
            text = json.dumps(value)
            if path and text not in seen:
                seen.add(text)
                number["examples"] += 1
                number["refused"] += self.same(f"{name}{file}", "POST", path + "?dryRun=All", example(value)) != 201
        print(name, number, f"{time.monotonic() - start:.1f} s", flush=True)
        return number


if __name__ == "__main__":
    unittest.main()
