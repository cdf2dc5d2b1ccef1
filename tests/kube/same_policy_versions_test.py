#!/usr/bin/python3
"""Admission policies and custom resources that a webhook converts, in a real kube-apiserver and in Vigil: parameters in the version
of their paramKind. tools/build-kube builds the real kube-apiserver."""
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
from same_writes_test import Client  # noqa: E402
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
    yield validated("all", "params.spec.port == '1'", ref={"selector": {}})
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


class SamePolicyVersions(SideBySide):
    client = Client
    random = policies.SamePolicies.random
    both, same, create = policies.SamePolicies.both, policies.SamePolicies.same, policies.SamePolicies.create
    wait_for_policies = policies.SamePolicies.wait_for_policies

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

    def define(self, behaviour, **more):
        plural = more.get("plural", "gates")
        for client, hooks in self.hooks.items():
            made = definition(hooks.on(f"/{plural}", behaviour), **more)
            if plural == "plains":
                made["spec"]["conversion"] = {"strategy": "None"}
            code, body = client.send("POST", CRDS, made)
            self.assertEqual(code, 201, body)
        for version in ("v1", "v2", "v3"):
            self.wait_for(path(version, plural=plural))

    def test_parameters(self):
        self.define(conversions.changed(relabel))
        self.define(conversions.good, plural="plains", kind="Plain")
        for name, labels in PARAMS.items():
            self.create(path(), gate(name, hostPort=f"{name}:1", labels=labels))
        self.create(path(plural="plains"), gate("plain", kind="Plain"))
        validating, mutating = list(validations()), list(changes())
        for group, rows in ((policies, validating), (mutations, mutating)):
            for made, bindings, _ in rows:
                for one in made:
                    self.same("POST", group.POLICIES, one)
                for one in bindings:
                    self.same("POST", group.BINDINGS, one)
        self.wait_for_policies()
        for _, _, requests in validating + mutating:
            for request in requests:
                self.same(*request)
        # A parameter that changes: the real one sees it a moment later.
        self.same("PATCH", path("v2", "a"), {"spec": {"host": "changed"}}, "application/merge-patch+json")
        case = ("POST", CMS + "?dryRun=All", create("name", "changed")[2])
        end = time.monotonic() + READY_SECONDS
        while "changed" not in str(self.theirs.send(*case)[1]["message"]):
            self.assertLess(time.monotonic(), end)
            time.sleep(0.1)
        self.same(*case)


if __name__ == "__main__":
    unittest.main()
