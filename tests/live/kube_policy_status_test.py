#!/usr/bin/python3
"""The server checks the types of a ValidatingAdmissionPolicy against the kinds that it names, once for each generation, and writes
what it finds into the status. tests/kube/same_policies_test.py compares the warnings with those of a real kube-controller-manager."""
import json
import time
import unittest

import kube_policy_test as policies
from kube import key_of, thing
from kube_policy_test import POLICIES, policy_spec
from server import WAIT_SECONDS, LiveTest, only_vigil

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
MERGE = "application/merge-patch+json"


def rule(resource="pods", group="", version="v1"):
    return {"apiGroups": [group], "apiVersions": [version], "resources": [resource], "operations": ["*"]}


def definition(plural, kind):
    return {"metadata": {"name": f"{plural}.example.com"}, "spec": {
        "group": "example.com", "scope": "Namespaced", "names": {"plural": plural, "kind": kind}, "versions": [{
            "name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                "spec": {"type": "object", "properties": {"size": {"type": "integer"}}}}}}}]}}


@only_vigil
class PolicyStatus(LiveTest):
    send, serve = policies.Policies.send, policies.Policies.serve

    def setUp(self):
        super().setUp()
        self.serve()

    def create(self, name, *validations, rules=None, **spec):
        return self.send("POST", POLICIES, {"metadata": {"name": name}, "spec": policy_spec(
            *validations, match={"resourceRules": rules or [rule()]}, **spec)}, code=201)

    def checked(self, name, generation=1):
        end = time.monotonic() + WAIT_SECONDS
        while time.monotonic() < end:
            policy = self.send("GET", f"{POLICIES}/{name}", code=200)
            if policy.get("status", {}).get("observedGeneration") == generation:
                return policy
            time.sleep(0.05)
        raise AssertionError(policy)

    def found(self, name, generation=1):
        checking = self.checked(name, generation)["status"].get("typeChecking", {})
        return [(warning["fieldRef"], warning["warning"]) for warning in checking.get("expressionWarnings", [])]

    def test_each_generation_is_checked_once(self):
        self.create("a", "object.spec.nothing == 1", {"expression": "true", "messageExpression": "string(object.metadata.other)"})
        self.assertEqual(self.found("a"), [
            ("spec.validations[0].expression", "/v1, Kind=Pod: ERROR: <input>:1:12: undefined field 'nothing'\n"
             " | object.spec.nothing == 1\n | ...........^\n"),
            ("spec.validations[1].messageExpression", "/v1, Kind=Pod: ERROR: <input>:1:23: undefined field 'other'\n"
             " | string(object.metadata.other)\n | ......................^\n")])
        [managed] = [row for row in self.checked("a")["metadata"]["managedFields"] if row["manager"] == "validatingadmissionpolicy-status"]
        self.assertEqual((managed["operation"], managed["subresource"], managed["fieldsV1"]), ("Apply", "status", {
            "f:status": {"f:observedGeneration": {}, "f:typeChecking": {"f:expressionWarnings": {}}}}))
        self.send("PATCH", f"{POLICIES}/a", {"spec": {"validations": [{"expression": "object.spec.nodeName == 'n'"}]}}, MERGE, code=200)
        self.assertEqual(self.found("a", 2), [])
        version = self.checked("a", 2)["metadata"]["resourceVersion"]
        self.send("PATCH", f"{POLICIES}/a", {"metadata": {"labels": {"a": "b"}}}, MERGE, code=200)
        self.create("b", "true")
        self.checked("b")  # is looked at after it
        policy = self.send("GET", f"{POLICIES}/a", code=200)
        self.assertEqual(int(policy["metadata"]["resourceVersion"]), int(version) + 1)

    def test_policies_that_are_there_already_are_checked_at_a_start(self):
        policy = thing("old", None, "ValidatingAdmissionPolicy", "admissionregistration.k8s.io/v1", spec=policy_spec(
            "object.nothing == 1", match={"resourceRules": [rule()]}))
        policy["metadata"]["generation"] = 3
        self.send("GET", POLICIES, code=200)
        self.kube.put_raw(key_of("validatingadmissionpolicies", "old", None), json.dumps(policy))
        self.assertEqual(len(self.found("old", 3)), 1)
        policy["metadata"]["generation"], policy["metadata"]["name"] = 4, "older"
        self.kube.put_raw(key_of("validatingadmissionpolicies", "older", None), json.dumps(policy))
        self.kube.close()
        self.kube.stop()
        self.kube.start()
        self.assertEqual(len(self.found("older", 4)), 1)

    def test_definitions_count_as_they_are_when_the_policy_is_written(self):
        rules = [rule("lamps", "example.com")]
        self.create("early", "object.spec.other == 1", rules=rules)
        self.assertEqual(self.found("early"), [])
        self.send("POST", CRDS, definition("lamps", "Lamp"), code=201)
        self.create("late", "object.spec.other == 1", "object.spec.size == 1 && object.metadata.uid == 'x'", rules=rules)
        self.assertEqual(self.found("late"), [(
            "spec.validations[0].expression", "example.com/v1, Kind=Lamp: ERROR: <input>:1:12: undefined field 'other'\n"
            " | object.spec.other == 1\n | ...........^\n")])
        self.assertEqual(self.found("early"), [])
        self.send("PATCH", f"{POLICIES}/early", {"spec": {"failurePolicy": "Ignore"}}, MERGE, code=200)
        self.assertEqual(len(self.found("early", 2)), 1)

    def test_ten_kinds_of_a_rule_are_checked(self):
        names = [f"kind{number}s" for number in range(12)]
        for name in names:
            self.send("POST", CRDS, definition(name, name[:-1].capitalize()), code=201)
        self.create("many", "object.spec.other == 1", rules=[{**rule("", "example.com"), "resources": names}])
        [(_, warning)] = self.found("many")
        # By name, so that kind10s is before kind2s.
        self.assertEqual([line.split(":")[0] for line in warning.splitlines() if "ERROR" in line], [
            f"example.com/v1, Kind=Kind{number}" for number in (0, 1, 10, 11, 2, 3, 4, 5, 6, 7)])

    def test_warnings_are_limited(self):
        kinds = [rule(f"kind{number}s", "example.com") for number in range(30)]
        for number in range(30):
            self.send("POST", CRDS, definition(f"kind{number}s", f"Kind{number}"), code=201)
        # 30 * 20 * 2 * 4 KiB
        self.create("long", *[f"object.spec.other == '{'x' * 4000}'"] * 20, rules=kinds)
        size = sum(len(warning) for _, warning in self.found("long"))
        self.assertGreater(size, 1 << 19)
        self.assertLessEqual(size, 1 << 20)

    def test_the_work_is_left_to_a_kube_controller_manager(self):
        self.create("before", "object.nothing == 1")
        self.assertEqual(len(self.found("before")), 1)
        now = time.strftime("%Y-%m-%dT%H:%M:%S.000000Z", time.gmtime())
        self.send("POST", LEASE, {"metadata": {"name": "kube-controller-manager"}, "spec": {
            "holderIdentity": "m", "leaseDurationSeconds": 3, "renewTime": now, "acquireTime": now}}, code=201)
        self.create("during", "object.nothing == 1")
        time.sleep(1)
        self.assertNotIn("status", {key for key, value in self.send("GET", f"{POLICIES}/during", code=200).items() if value})
        self.assertEqual(len(self.found("during")), 1)  # when the lease has expired


if __name__ == "__main__":
    unittest.main()
