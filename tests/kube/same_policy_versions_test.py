#!/usr/bin/python3
"""Admission policies and custom resources that a webhook converts, in a real kube-apiserver and in Vigil: parameters in the version
of their paramKind, and objects in the version of a rule. tools/build-kube builds the real kube-apiserver."""
import pathlib
import sys
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/live"))
sys.path.insert(0, str(ROOT / "tests/kube"))
import conversions  # noqa: E402
import same_mutations_test as mutations  # noqa: E402
import same_policies_test as policies  # noqa: E402
import webhooks  # noqa: E402
from certs import Authority  # noqa: E402
from conversions import CRDS, definition, gate, path  # noqa: E402
from same_policies_test import CMS, READY_SECONDS, create  # noqa: E402
from same_writes_test import MERGE, Client  # noqa: E402
from side_by_side import SideBySide  # noqa: E402

# The labels of "yes" and "no" are exchanged by the converter.
PARAMS = {"a": {"set": "one"}, "b": {"set": "one"}, "c": {"set": "two"}, "yes": {"chosen": "yes"}, "no": {"chosen": "no"}}


def relabel(thing):
    labels = thing["metadata"].get("labels") or {}
    if "chosen" in labels:
        labels["chosen"] = {"yes": "no", "no": "yes"}[labels["chosen"]]


def validated(case, *expressions, ref, version="v2", fails="Fail", plain=False):
    """A policy for config maps with the label case=CASE, whose parameters are gates."""
    kind = {"apiVersion": f"example.com/{version}", "kind": "Plain" if plain else "Gate"}
    return policies.deny(case, *expressions, paramKind=kind, failurePolicy=fails,
                         bound={"paramRef": {"namespace": "default", "parameterNotFoundAction": "Deny", **ref}})


def mutated(case, *texts, ref):
    return mutations.mutate(case, *texts, paramKind={"apiVersion": "example.com/v2", "kind": "Gate"},
                            bound={"paramRef": {"namespace": "default", "parameterNotFoundAction": "Deny", **ref}})


def validations():
    shown = {"expression": "false", "messageExpression": "params.apiVersion + ' ' + params.metadata.name + ' ' + params.spec.host"}
    yield validated("name", shown, ref={"name": "a"})
    yield validated("name-third", {"expression": "false", "messageExpression": "params.spec.host + params.spec.note"}, version="v3",
                    ref={"name": "b"})
    yield validated("name-stored", {"expression": "false", "messageExpression": "params.spec.hostPort"}, version="v1", ref={"name": "a"})
    yield validated("stored-field", "params.spec.hostPort == 'a:1'", ref={"name": "a"})
    yield validated("stored-field-ignored", "params.spec.hostPort == 'a:1'", ref={"name": "a"}, fails="Ignore")
    yield validated("missing", "true", ref={"name": "none"})
    yield validated("version", "int(params.metadata.resourceVersion) > 0", ref={"name": "a"})
    yield validated("two", shown, ref={"selector": {"matchLabels": {"set": "two"}}})
    yield validated("set", "params.spec.host in ['a', 'b']", ref={"selector": {"matchLabels": {"set": "one"}}})
    every = {"matchExpressions": [{"key": key, "operator": "DoesNotExist"} for key in ("case", "chosen")]}
    yield validated("every", "params.spec.port == '1'", ref={"selector": every})
    yield validated("no-other", "params.spec.host != 'c'", ref={"selector": every})
    yield validated("chosen", shown, ref={"selector": {"matchLabels": {"chosen": "yes"}}})
    yield validated("none-chosen", "true", ref={"selector": {"matchLabels": {"chosen": "maybe"}}})
    yield validated("plain", {"expression": "false", "messageExpression": "params.apiVersion + params.spec.hostPort"}, plain=True,
                    ref={"name": "plain"})
    yield validated("plain-all", {"expression": "false", "messageExpression": "params.apiVersion + params.spec.hostPort"}, plain=True,
                    ref={"selector": {}})


def changes():
    label = mutations.labels(host="params.spec.host", of="params.metadata.name")
    yield mutated("m-name", label, ref={"name": "a"})
    yield mutated("m-chosen", label, ref={"selector": {"matchLabels": {"chosen": "yes"}}})
    yield mutated("m-stored-field", mutations.labels(host="params.spec.hostPort"), ref={"name": "a"})


# -- Objects in the version of a rule --


def gates(version="v2", operations="CREATE,UPDATE", resources="gates"):
    return [policies.rule(resources, operations, "example.com", version)]


def put(field, value):
    return mutations.patch(f"[JSONPatch{{op: 'add', path: '/spec/{field}', value: {value}}}]")


def thing(case, api="v1", **spec):
    return ("POST", path(api), gate(case, api, labels={"case": case}, **spec))


def unstored(case):
    """In Kubernetes an object that cannot be converted blocks the informers of its version."""
    return [("POST", path() + "?dryRun=All", gate(case, labels={"case": case}))]


def usual(case):
    """A create in each version, and changes of what was created."""
    return [thing(case), ("PATCH", path("v1", case), {"spec": {"hostPort": "z:9"}}, MERGE),
            ("PATCH", path("v2", case), {"spec": {"count": 3}}, MERGE), ("GET", path("v3", case)), ("DELETE", path("v1", case)),
            *[request for api in ("v2", "v3") for request in (thing(case, api), ("DELETE", path(api, case)))]]


def change(case, *texts, requests=None, version="v2", **more):
    return mutations.mutate(case, *texts, rules=more.pop("rules", None) or gates(version), requests=requests or usual(case), **more)


def several(case, *made):
    return mutations.several(case, *[(str(number), texts, {"rules": gates(version), **more})
                                     for number, (version, texts, more) in enumerate(made)], requests=usual(case))


def object_changes():
    host, port = put("host", "'new'"), put("port", "object.spec.port + '0'")
    yield change("patch", host)
    yield change("apply", mutations.apply("Object{spec: Object.spec{port: '22', count: 5}}"))
    yield change("third", put("port", "'3'"), version="v3")
    yield change("two-mutations", host, port)
    yield change("labels", mutations.labels(host="object.spec.host", kind="object.kind"))
    yield change("old", put("port", "oldObject == null ? 'none' : oldObject.spec.port + oldObject.apiVersion"))
    yield change("request", put("port", "request.kind.version + request.requestKind.version + request.resource.version"))
    yield change("conditions", host, matchConditions=[{"name": "x", "expression": "object.spec.host == 'a'"}])
    yield change("condition-fails", host, matchConditions=[{"name": "x", "expression": "object.spec.hostPort == 'a'"}])
    yield change("variables", put("port", "variables.a"), variables=[{"name": "a", "expression": "object.spec.host + 'v'"}])
    yield change("exact", host, match={"matchPolicy": "Exact"})
    yield change("fails", put("host", "object.spec.hostPort"))
    yield change("fails-ignored", put("host", "object.spec.hostPort"), failurePolicy="Ignore")
    yield change("first-fails-ignored", put("host", "object.spec.hostPort"), host, failurePolicy="Ignore")
    yield change("foreign-field", mutations.apply("Object{spec: Object.spec{hostPort: 'x:1'}}"))
    yield change("nothing", mutations.patch("[]"))
    yield change("test-fails", mutations.patch("[JSONPatch{op: 'test', path: '/spec/host', value: 'other'}]"))
    yield change("same", put("host", "object.spec.host"))
    yield change("lossy", put("note", "'kept'"), version="v3")
    yield change("other-name", mutations.patch("[JSONPatch{op: 'replace', path: '/metadata/name', value: 'other'}]"))
    yield change("invalid", put("count", "'five'"))
    yield change("unknown-field", put("other", "'x'"))
    yield several("in-a-row", ("v2", [host], {}), ("v2", [port], {}))
    yield several("again", ("v2", [port], {"reinvocationPolicy": "IfNeeded"}), ("v2", [host], {}))
    scale = {"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": {"name": "scale", "namespace": "default"}}
    yield change("scale", mutations.apply("Object{spec: Object.spec{replicas: object.spec.replicas + 1}}"), requests=[
        thing("scale", replicas=2), ("PUT", path("v1", "scale", "scale"), {**scale, "spec": {"replicas": 5}}),
        ("PATCH", path("v2", "scale", "scale"), {"spec": {"replicas": 7}}, MERGE), ("GET", path("v1", "scale"))],
        rules=gates(resources="gates/scale"))
    yield change("status", mutations.apply("Object{status: Object.status{ready: object.status.ready + 1}}"), requests=[
        thing("status"), ("PATCH", path("v1", "status", "status"), {"status": {"ready": 5}}, MERGE)], rules=gates(resources="gates/status"))


def failing_validations():
    for fails in ("Fail", "Ignore"):
        yield policies.deny(f"forward-validating-{fails.lower()}", "object.spec.host == 'a'", rules=gates(), failurePolicy=fails,
                            requests=unstored(f"forward-validating-{fails.lower()}"))
    yield policies.deny("forward-validating-500", "true", rules=gates(), requests=unstored("forward-validating-500"))
    yield policies.deny("forward-unbound", "true", rules=gates(), requests=unstored("forward-unbound"),
                        bound={"matchResources": {"resourceRules": gates(operations="UPDATE")}})


def failing_changes():
    host = put("host", "'new'")
    for case in ("forward-mutating", "back-mutating", "forward-mutating-500", "back-mutating-500"):
        for fails in ("Fail", "Ignore"):
            name = f"{case}-{fails.lower()}"
            yield change(name, host, failurePolicy=fails, requests=unstored(name))
    yield change("back-unchanged", mutations.patch("[]"), requests=unstored("back-unchanged"))
    yield change("back-condition", host, requests=unstored("back-condition"), matchConditions=[{"name": "x", "expression": "false"}])
    yield change("back-error", put("host", "object.spec.hostPort"), requests=unstored("back-error"))


def mixed_changes():
    """With spec.hostPort of what is created with a:1. In Kubernetes every version has an object of its own, on which policies of other
    versions have no effect, and that of the policy that happens to be the last one is stored. Here all of them have an effect."""
    host, port = put("host", "'new'"), put("port", "object.spec.port + '0'")
    mine = put("hostPort", "object.spec.hostPort + '7'")
    yield several("mixed", ("v1", [mine], {}), ("v2", [host], {})), "new:17"
    yield several("mixed-back", ("v2", [host], {}), ("v1", [mine], {})), "new:17"
    yield several("mixed-third", ("v2", [host], {}), ("v3", [port], {})), "new:10"
    yield several("mixed-again", ("v1", [mine], {"reinvocationPolicy": "IfNeeded"}), ("v2", [host], {})), "new:177"


def behave(call):
    """The converter of gates."""
    name, to = call.request["objects"][0]["metadata"]["name"], call.request["desiredAPIVersion"].split("/")[1]
    if (name.startswith("forward-") and to == "v2") or (name.startswith("back-") and to == "v1"):
        conversions.BAD["code-500" if "500" in name else "failure-message"](call)
    else:
        conversions.changed(relabel)(call)


class SamePolicyVersions(SideBySide):
    client = Client
    random = policies.SamePolicies.random
    both, same, create = policies.SamePolicies.both, policies.SamePolicies.same, policies.SamePolicies.create
    wait_for_policies = policies.SamePolicies.wait_for_policies
    is_prepared = False
    tables = {"parameters": [*validations(), *changes()], "objects": list(object_changes()),
              "failures": [*failing_validations(), *failing_changes()], "mixed": [row for row, _ in mixed_changes()],
              "types": [several("types", *[(version, [mutations.patch("[]")], {}) for version in ("v1", "v2", "v3")])]}

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.wait_for(CRDS)
        authority = Authority(cls.directory.name + "/authority")
        cls.hooks = {client: webhooks.Webhooks(cls.directory.name, name, authority=authority)
                     for client, name in ((cls.ours, "ours"), (cls.theirs, "theirs"))}

    @classmethod
    def tearDownClass(cls):
        for hooks in cls.hooks.values():
            hooks.stop()
        super().tearDownClass()

    def setUp(self):
        if not self.is_prepared:
            type(self).is_prepared = True
            self.prepare()

    def prepare(self):
        """All policies, which concern only objects with their label."""
        self.define()
        self.define("plains", "Plain", conversion={"strategy": "None"})
        for name, labels in PARAMS.items():
            self.create(path(), gate(name, hostPort=f"{name}:1", labels=labels))
        self.create(path(plural="plains"), gate("plain", kind="Plain"))
        for made, bindings, _ in (row for table in self.tables.values() for row in table):
            group = mutations if "mutations" in made[0]["spec"] else policies
            for one in made:
                self.same("POST", group.POLICIES, one)
            for one in bindings:
                self.same("POST", group.BINDINGS, one)
        self.wait_for_policies()
        end = time.monotonic() + READY_SECONDS
        while self.theirs.send(*thing("types"))[0] == 503:  # it finds the types of a definition a moment later
            self.assertLess(time.monotonic(), end)
            time.sleep(0.2)

    def define(self, plural="gates", kind="Gate", **spec):
        for client, hooks in self.hooks.items():
            made = definition(hooks.on(f"/{plural}", behave), plural, kind)
            made["spec"].update(spec)
            code, body = client.send("POST", CRDS, made)
            self.assertEqual(code, 201, body)
        for version in ("v1", "v2", "v3"):
            self.wait_for(path(version, plural=plural))

    def compare_requests(self, table):
        for _, _, requests in self.tables[table]:
            for request in requests:
                self.same(*request)

    def test_objects(self):
        self.compare_requests("objects")

    def test_failures(self):
        self.compare_requests("failures")

    def test_policies_of_several_versions(self):
        for (_, _, requests), expected in mixed_changes():
            with self.subTest(case=str(requests[0])):
                theirs, ours = [answer[1]["spec"]["hostPort"] for answer in self.both(*requests[0])]
                self.assertEqual(ours, expected)
                self.assertNotEqual(theirs, expected)

    def test_parameters(self):
        self.compare_requests("parameters")
        # A parameter that changes: the real one sees it a moment later.
        self.same("PATCH", path("v2", "a"), {"spec": {"host": "changed"}}, MERGE)
        case = ("POST", CMS + "?dryRun=All", create("name", "later")[2])
        end = time.monotonic() + READY_SECONDS
        while "changed" not in str(self.theirs.send(*case)[1]["message"]):
            self.assertLess(time.monotonic(), end)
            time.sleep(0.1)
        self.same(*case)


if __name__ == "__main__":
    unittest.main()
