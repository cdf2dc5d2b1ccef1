#!/usr/bin/python3
"""Admission of custom resources in another version than that of the request, if a webhook converts them: rules with matchPolicy
Equivalent show webhooks and policies the version that they name, and what a webhook patches is converted back."""
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import conversions  # noqa: E402
import webhooks  # noqa: E402
from conversions import gate, path  # noqa: E402
from kube_conversion_test import MERGE, ConversionTest  # noqa: E402

ADMISSION = "/apis/admissionregistration.k8s.io/v1/"
OPERATIONS = ["CREATE", "UPDATE", "DELETE"]


class AdmissionVersions(ConversionTest):
    def hook(self, plural, name, behaviour, version="v2", **more):
        webhook = {"name": f"{name}.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"],
                   "clientConfig": self.hooks.on(f"/{name}", behaviour), "rules": [
                       {"apiGroups": ["example.com"], "apiVersions": [version], "resources": ["gates"], "operations": OPERATIONS}], **more}
        self.send("POST", ADMISSION + plural, {"metadata": {"name": name}, "webhooks": [webhook]}, 201)

    def test_a_validating_webhook_sees_the_version_of_its_rule(self):
        self.hook("validatingwebhookconfigurations", "see", webhooks.allow)
        self.send("POST", path("v1"), gate("a"), 201)
        self.send("PATCH", path("v1", "a"), {"spec": {"hostPort": "b:2"}}, 200, MERGE)
        self.send("DELETE", path("v1", "a"), None, 200)
        create, update, delete = [call.request for call in self.hooks.of("/see")]
        self.assertEqual(create["kind"]["version"], "v2")
        self.assertEqual((create["requestKind"]["version"], create["requestResource"]["version"]), ("v1", "v1"))
        self.assertEqual((create["object"]["apiVersion"], create["object"]["spec"]), ("example.com/v2", {"host": "a", "port": "1"}))
        self.assertIsNone(create["oldObject"])
        self.assertEqual((update["object"]["spec"], update["oldObject"]["spec"]), (
            {"host": "b", "port": "2"}, {"host": "a", "port": "1"}))
        self.assertEqual((delete["object"], delete["oldObject"]["spec"]), (None, {"host": "b", "port": "2"}))

    def test_what_a_webhook_patches_is_converted_back(self):
        self.hook("mutatingwebhookconfigurations", "one", webhooks.patch({"op": "replace", "path": "/spec/host", "value": "one"}))
        self.hook("mutatingwebhookconfigurations", "two", webhooks.patch({"op": "add", "path": "/spec/port", "value": "22"}), "v3")
        made = self.send("POST", path("v1"), gate("a"), 201)
        self.assertEqual((made["apiVersion"], made["spec"]), ("example.com/v1", {"hostPort": "one:22"}))
        self.assertEqual(self.stored("a")["spec"], {"hostPort": "one:22"})
        self.assertEqual(self.hooks.of("/two")[0].object["spec"], {"host": "one", "port": "1"})
        changed = self.send("PATCH", path("v1", "a"), {"spec": {"hostPort": "b:2"}}, 200, MERGE)
        self.assertEqual(changed["spec"], {"hostPort": "one:22"})

    def test_match_conditions_see_the_version_of_the_rule(self):
        self.hook("validatingwebhookconfigurations", "see", webhooks.allow,
                  matchConditions=[{"name": "host", "expression": "object.spec.host == 'b'"}])
        self.send("POST", path("v1"), gate("a"), 201)
        self.send("POST", path("v1"), gate("b", hostPort="b:1"), 201)
        self.assertEqual([call.name for call in self.hooks.of("/see")], ["b"])

    def test_a_policy_sees_the_version_of_its_rule(self):
        spec = {"matchConstraints": {"resourceRules": [{"apiGroups": ["example.com"], "apiVersions": ["v2"], "resources": ["gates"],
                                                        "operations": ["CREATE", "UPDATE"]}]},
                "validations": [{"expression": "object.spec.host != 'b'", "message": "not b"}]}
        self.send("POST", ADMISSION + "validatingadmissionpolicies", {"metadata": {"name": "p"}, "spec": spec}, 201)
        binding = {"metadata": {"name": "p"}, "spec": {"policyName": "p", "validationActions": ["Deny"]}}
        self.send("POST", ADMISSION + "validatingadmissionpolicybindings", binding, 201)
        self.send("POST", path("v1"), gate("a"), 201)
        self.assertIn("not b", self.send("POST", path("v1"), gate("b", hostPort="b:1"), 422)["message"])
        self.assertIn("not b", self.send("PATCH", path("v1", "a"), {"spec": {"hostPort": "b:2"}}, 422, MERGE)["message"])

    def test_a_converter_that_fails_refuses_the_write(self):
        self.hook("validatingwebhookconfigurations", "see", webhooks.allow)
        self.behave(webhooks.cut)
        answer = self.send("POST", path("v1"), gate("a"), 500)
        self.assertIn("Internal error occurred: conversion webhook for", answer["message"])
        self.assertEqual(self.hooks.of("/see"), [])
        self.behave(conversions.good)
        self.send("POST", path("v1"), gate("a"), 201)


if __name__ == "__main__":
    unittest.main()
