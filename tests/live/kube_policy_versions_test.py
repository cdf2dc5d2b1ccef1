#!/usr/bin/python3
"""Admission policies whose parameters are custom resources that a webhook converts to the version of their paramKind. Beside a real
kube-apiserver: tests/kube/same_policy_versions_test.py."""
import pathlib
import sys
import threading
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import conversions  # noqa: E402
import webhooks  # noqa: E402
from conversions import CRDS, gate, path  # noqa: E402
from kube_conversion_test import ConversionTest  # noqa: E402

GROUP = "/apis/admissionregistration.k8s.io/v1"
MAPS = "/api/v1/namespaces/default/configmaps"
PARAMS_MAX, PAGE = 100, 500
CALL_SECONDS = 30  # that a converter may take
OPERATIONS = ["CREATE", "UPDATE"]


def labelled(name, **labels):
    made = gate(name, hostPort=f"{name}:1")
    made["metadata"]["labels"] = labels
    return made


class PolicyTest(ConversionTest):
    def policy(self, name, *expressions, version="v2", param=None, selector=None, fails="Fail", absent="Deny", **more):
        """Concerns config maps, and has parameters."""
        ref = {"name": param} if param else {"selector": selector or {}}
        self.send("POST", f"{GROUP}/validatingadmissionpolicies", {"metadata": {"name": name}, "spec": {
            "failurePolicy": fails, "paramKind": {"apiVersion": f"example.com/{version}", "kind": "Gate"},
            "matchConstraints": {"resourceRules": [
                {"apiGroups": [""], "apiVersions": ["v1"], "operations": OPERATIONS, "resources": ["configmaps"]}], **more},
            "validations": [{"expression": one, "message": f"{name}: {one}"} for one in expressions]}}, 201)
        self.send("POST", f"{GROUP}/validatingadmissionpolicybindings", {"metadata": {"name": name}, "spec": {
            "policyName": name, "validationActions": ["Deny"],
            "paramRef": {**ref, "namespace": "default", "parameterNotFoundAction": absent}}}, 201)

    def config(self, name, code=201, query=""):
        return self.send("POST", MAPS + query, {"metadata": {"name": name}}, code).get("message")


class Parameters(PolicyTest):
    def test_they_have_the_version_of_the_param_kind_and_are_current(self):
        self.send("POST", path(), gate("p", hostPort="a:1"), 201)
        self.policy("p", "params.apiVersion == 'example.com/v2'", "params.spec.host != 'b'", "!has(params.spec.hostPort)",
                    "int(params.metadata.resourceVersion) > 1", param="p")
        self.config("one")
        self.patch(path("v1", "p"), {"spec": {"hostPort": "b:1"}})
        self.assertIn("params.spec.host != 'b'", self.config("two", 422))
        self.send("DELETE", path("v1", "p"), None, 200)
        self.assertIn("no params found", self.config("two", 422))

    def test_those_that_are_stored_in_the_version_are_not_sent(self):
        self.send("POST", path(), gate("p"), 201)
        self.policy("p", "params.spec.hostPort == 'a:1'", version="v1", param="p")
        self.policy("all", "params.spec.hostPort == 'a:1'", "int(params.metadata.resourceVersion) > 1", version="v1")
        self.config("one")
        self.assertEqual(self.calls(), 0)

    def test_policies_that_share_one_share_its_conversion(self):
        self.send("POST", path(), gate("p"), 201)
        for number in range(20):
            self.policy(f"p{number:02}", "params.spec.host == 'a'", param="p")
        self.config("one")
        self.assertEqual(self.calls(), 1)

    def test_clients_that_leave_end_their_conversion(self):
        self.send("POST", path(), gate("p"), 201)
        self.policy("p", "params.spec.host == 'a'", param="p")
        self.behave(webhooks.hang)
        self.leave("POST", MAPS, '{"metadata": {"name": "one"}}')
        self.policy("all", "params.spec.host == 'a'")
        self.send("DELETE", f"{GROUP}/validatingadmissionpolicybindings/p", None, 200)
        self.leave("POST", MAPS, '{"metadata": {"name": "one"}}')
        self.behave(conversions.good)
        self.config("one")

    def test_selectors_count_for_what_the_webhook_has_made(self):
        def relabel(thing):
            labels = thing["metadata"].setdefault("labels", {})
            labels["chosen"] = {"yes": "no", "no": "yes"}[labels["chosen"]]
        self.behave(conversions.changed(relabel))
        self.send("POST", path(), labelled("a", chosen="yes"), 201)
        self.send("POST", path(), labelled("b", chosen="no"), 201)
        chosen = {"matchLabels": {"chosen": "yes"}}
        self.policy("p", "params.spec.host == 'none'", selector=chosen)
        self.policy("q", "params.metadata.name == 'b'", "int(params.metadata.resourceVersion) > 1", selector=chosen)
        refused = self.config("one", 422)
        self.assertIn("params.spec.host == 'none'", refused)
        self.send("DELETE", f"{GROUP}/validatingadmissionpolicybindings/p", None, 200)
        self.config("one")

    def test_objects_of_several_stored_versions_are_found(self):
        self.send("POST", path(), labelled("old"), 201)
        self.patch(f"{CRDS}/gates.example.com", {"spec": {"versions": conversions.versions("v2")}})
        self.send("POST", path("v2"), gate("new", "v2", host="new"), 201)
        self.policy("p", "params.spec.host != 'old'")
        self.policy("q", "params.spec.host != 'new'")
        self.assertIn("p: params.spec.host != 'old'", self.config("one", 422))
        self.send("DELETE", path("v2", "old"), None, 200)
        self.assertIn("q: params.spec.host != 'new'", self.config("one", 422))

    def test_many_are_converted_together(self):
        self.put_many(2 * PAGE + 1)
        self.patch(path("v1", f"g{PAGE:04}"), {"metadata": {"labels": {"set": "one"}}})
        self.policy("p", f"params.spec.host == 'h{PAGE}'", selector={"matchLabels": {"set": "one"}})
        self.config("one")
        self.assertEqual([len(call.request["objects"]) for call in self.hooks.of("/convert")], [PAGE, PAGE, 1])

    def test_no_more_than_100_are_considered(self):
        self.put_many(PARAMS_MAX)
        self.policy("p", "true", fails="Ignore")
        self.config("one")
        self.send("POST", path(), gate("more"), 201)
        self.assertIn("at most 100 parameters", self.config("two", 422))


class Failures(PolicyTest):
    def test_a_converter_that_fails_is_an_error_of_the_policy(self):
        self.send("POST", path(), gate("p"), 201)
        self.policy("by-name", "true", param="p")
        self.policy("again", "true", param="p")
        self.behave(conversions.BAD["failure-message"])
        refused = self.config("one", 422)
        self.assertIn("'again' with binding 'again' denied request: failed to configure binding: conversion webhook for "
                      "example.com/v1, Kind=Gate failed: cannot do that", refused)
        self.assertEqual(self.calls(), 1)
        for name in ("by-name", "again"):
            self.patch(f"{GROUP}/validatingadmissionpolicies/{name}", {"spec": {"failurePolicy": "Ignore"}})
        self.config("one")
        self.policy("chosen", "true")
        self.assertIn("'chosen' with binding 'chosen' denied request: failed to configure binding: conversion webhook", self.config(
            "two", 422))
        self.patch(f"{GROUP}/validatingadmissionpolicies/chosen", {"spec": {"failurePolicy": "Ignore"}})
        self.config("two")
        # What cannot be converted is not taken for what is absent.
        self.policy("absent", "true", param="p", absent="Allow")
        self.assertIn("'absent'", self.config("three", 422))

    def test_a_write_that_waits_delays_no_other_one(self):
        released = threading.Event()
        self.addCleanup(released.set)
        self.send("POST", path(), gate("p"), 201)
        self.config("one")
        self.policy("p", "params.spec.host == 'a'", param="p")
        self.behave(webhooks.slow(released, conversions.good))
        answers = []
        waiting = threading.Thread(target=lambda: answers.append(self.patch(f"{MAPS}/one", {"data": {"a": "b"}})))
        waiting.start()
        self.hooks.wait_for("/convert")
        for _ in range(8):  # on every thread; the policy concerns no deletion
            self.send("DELETE", f"{MAPS}/one?dryRun=All", None, 200)
        self.assertTrue(waiting.is_alive())
        released.set()
        waiting.join()
        self.assertEqual(answers[0]["data"], {"a": "b"})

    def test_they_are_converted_within_the_time_of_the_write(self):
        for name in ("p", "q"):
            self.send("POST", path(), gate(name), 201)
            self.policy(name, "true", param=name, fails="Ignore")
        self.behave(webhooks.hang)
        begun = time.monotonic()
        self.assertIn("request did not complete within requested timeout", self.config("one", 504, "?timeout=1s"))
        self.assertLess(time.monotonic() - begun, CALL_SECONDS / 2)
        self.assertEqual(self.calls(), 1)
        self.behave(conversions.good)
        self.config("one")

    def test_a_definition_that_changes_meanwhile_is_converted_as_it_was(self):
        released = threading.Event()
        self.addCleanup(released.set)
        self.send("POST", path(), gate("p"), 201)
        self.policy("p", "params.spec.host == 'a'", param="p")
        self.behave(webhooks.slow(released, conversions.good))
        answers = []
        waiting = threading.Thread(target=lambda: answers.append(self.config("one")))
        waiting.start()
        self.hooks.wait_for("/convert")
        self.send("DELETE", f"{CRDS}/gates.example.com", None, 200)
        released.set()
        waiting.join()
        self.assertEqual(answers, [None])


if __name__ == "__main__":
    unittest.main()
