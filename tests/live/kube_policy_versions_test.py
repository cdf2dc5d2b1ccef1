#!/usr/bin/python3
"""Admission policies and custom resources that a webhook converts: parameters in the version of their paramKind, and objects that are
mutated in the version of a rule. Beside a real kube-apiserver: tests/kube/same_policy_versions_test.py."""
import pathlib
import sys
import threading
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import conversions  # noqa: E402
import webhooks  # noqa: E402
from conversions import CRDS, gate, path  # noqa: E402
from kube_conversion_test import MERGE, ConversionTest  # noqa: E402

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


class Mutations(ConversionTest):
    def mutate(self, name, *patches, version="v2", operations=OPERATIONS, **spec):
        self.send("POST", f"{GROUP}/mutatingadmissionpolicies", {"metadata": {"name": name}, "spec": {
            "reinvocationPolicy": "Never", "matchConstraints": {"resourceRules": [
                {"apiGroups": ["example.com"], "apiVersions": [version], "resources": ["gates"], "operations": operations}]},
            "mutations": [{"patchType": "JSONPatch", "jsonPatch": {
                "expression": f"[JSONPatch{{op: 'add', path: '/spec/{field}', value: {value}}}]"}}
                for field, value in patches], **spec}}, 201)
        self.send("POST", f"{GROUP}/mutatingadmissionpolicybindings", {"metadata": {"name": name}, "spec": {"policyName": name}}, 201)

    def wanted(self):
        """The versions to which objects were converted."""
        return [call.request["desiredAPIVersion"].split("/")[1] for call in self.hooks.of("/convert")]

    def test_mutations_of_one_version_take_two_conversions(self):
        self.mutate("one", ("host", "'one'"), ("port", "object.spec.port + '1'"))
        self.mutate("two", ("port", "object.spec.port + '2'"))
        made = self.send("POST", path(), gate("a"), 201)
        self.assertEqual(made["spec"], {"hostPort": "one:112"})
        self.assertEqual(self.stored("a"), {**self.stored("a"), "apiVersion": "example.com/v1", "spec": {"hostPort": "one:112"}})
        self.assertEqual(self.wanted(), ["v2", "v1"])
        self.hooks.clear()
        changed = self.patch(path("v1", "a"), {"spec": {"hostPort": "b:2"}})
        self.assertEqual(changed["spec"], {"hostPort": "one:212"})
        self.assertEqual([len(call.request["objects"]) for call in self.hooks.of("/convert")], [2, 1])  # the first with the old object

    def test_policies_of_several_versions_see_what_the_others_have_made(self):
        self.mutate("one", ("hostPort", "object.spec.hostPort + '1'"), version="v1")
        self.mutate("two", ("port", "object.spec.port + '2'"))
        self.mutate("three", ("port", "object.spec.port + '3'"), version="v3")
        made = self.send("POST", path(), gate("a"), 201)
        self.assertEqual(made["spec"], {"hostPort": "a:1132"})
        self.assertEqual(self.wanted(), ["v3", "v2", "v3", "v2", "v1"])

    def test_a_version_that_returns_is_converted_once_more(self):
        never = [{"name": "never", "expression": "false"}]
        self.mutate("one", ("host", "'one'"))
        self.mutate("two", ("host", "'two'"), version="v3", matchConditions=never)
        self.mutate("way-back", ("host", "'three'"), matchConditions=never)
        self.assertEqual(self.send("POST", path(), gate("a"), 201)["spec"], {"hostPort": "one:1"})
        self.assertEqual(self.wanted(), ["v2", "v3", "v3", "v2", "v1"])

    def test_what_follows_sees_the_mutated_object(self):
        self.mutate("p", ("host", "'new'"))
        rules = [{"apiGroups": ["example.com"], "apiVersions": ["v2"], "resources": ["gates"], "operations": OPERATIONS}]
        self.send("POST", f"{GROUP}/validatingadmissionpolicies", {"metadata": {"name": "p"}, "spec": {
            "matchConstraints": {"resourceRules": rules}, "validations": [{"expression": "object.spec.host == 'new'"}]}}, 201)
        self.send("POST", f"{GROUP}/validatingadmissionpolicybindings", {"metadata": {"name": "p"}, "spec": {
            "policyName": "p", "validationActions": ["Deny"]}}, 201)
        for kind in ("mutating", "validating"):
            self.send("POST", f"{GROUP}/{kind}webhookconfigurations", {"metadata": {"name": "w"}, "webhooks": [{
                "name": "w.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"], "rules": rules,
                "clientConfig": self.hooks.on(f"/{kind}", webhooks.allow)}]}, 201)
        self.send("POST", path(), gate("a"), 201)
        for kind in ("mutating", "validating"):
            self.assertEqual([call.object["spec"] for call in self.hooks.of(f"/{kind}")], [{"host": "new", "port": "1"}])

    def test_a_dear_mutation_that_asks_about_permissions(self):
        """It goes to the worker, and waits for answers as well as for the converter."""
        loop = "[0,1,2,3,4,5,6,7,8,9]" + "".join(f".all(a{n}, [0,1,2,3,4,5,6,7,8,9]" for n in range(3)) + ".all(b, b >= 0)" + ")" * 3
        asks = "authorizer.group('').resource('pods').check('get').allowed()"
        self.mutate("p", ("host", "'new'"), ("port", f"{loop} && {asks} ? 'yes' : 'no'"))
        self.assertEqual(self.send("POST", path(), gate("a"), 201)["spec"], {"hostPort": "new:yes"})
        self.assertEqual(self.wanted(), ["v2", "v1"])

    def test_an_update_that_loses_is_mutated_again(self):
        released = threading.Event()
        self.addCleanup(released.set)
        self.send("POST", path(), gate("a"), 201)
        self.mutate("p", ("port", "object.spec.port + '0'"), operations=["UPDATE"], matchConditions=[
            {"name": "slow", "expression": "object.spec.host == 'slow'"}])
        self.behave(webhooks.slow(released, conversions.good))
        answers = []
        waiting = threading.Thread(target=lambda: answers.append(self.patch(path("v1", "a"), {"spec": {"hostPort": "slow:1"}})))
        waiting.start()
        self.hooks.wait_for("/convert")
        self.send("PATCH", path("v1", "a", "status"), {"status": {"ready": 5}}, 200, MERGE)  # the policy does not concern it
        self.assertTrue(waiting.is_alive())
        released.set()
        waiting.join()
        self.assertEqual((answers[0]["spec"], answers[0]["status"]), ({"hostPort": "slow:10"}, {"ready": 5}))

    def test_failures(self):
        self.mutate("p", ("port", "'2'"), failurePolicy="Ignore")
        self.behave(lambda call: (conversions.BAD["failure-message"] if call.request["desiredAPIVersion"].endswith("v1")
                                  else conversions.good)(call))
        refused = self.send("POST", path(), gate("a"), 500)
        self.assertIn("failed to convert object: conversion webhook for example.com/v2, Kind=Gate failed: cannot do that",
                      refused["message"])
        self.assertIsNone(self.stored("a"))
        self.behave(webhooks.hang)
        begun = time.monotonic()
        self.send("POST", path() + "?timeout=1s", gate("a"), 504)
        self.assertLess(time.monotonic() - begun, CALL_SECONDS / 2)

    def test_what_was_mutated_is_checked_and_pruned_in_the_version_of_the_request(self):
        self.behave(conversions.changed(lambda thing: thing["spec"].update(unknown="x", replicas="text")
                                        if thing["apiVersion"].endswith("v1") else None))
        self.mutate("p", ("port", "'2'"))
        refused = self.send("POST", path(), gate("a"), 422)
        self.assertIn("spec.replicas in body must be of type integer", refused["message"])
        self.behave(conversions.changed(lambda thing: thing["spec"].update(unknown="x")))
        self.assertEqual(self.send("POST", path(), gate("a"), 201)["spec"], {"hostPort": "a:2"})


if __name__ == "__main__":
    unittest.main()
