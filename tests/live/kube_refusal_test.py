#!/usr/bin/python3
"""Unsupported features of the Kubernetes API cause an error or a warning instead of being ignored silently."""
import http.client
import json
import unittest

from kube import KubeServer
from server import LiveTest, only_vigil

ADMISSION = "/apis/admissionregistration.k8s.io/v1/"
REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
REVIEW = {"spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}}
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
MERGE = "application/merge-patch+json"


@only_vigil
class Refusals(LiveTest):
    def setUp(self):
        super().setUp()
        self.server = KubeServer(self.scratch / "data")
        self.addCleanup(self.server.kill)
        self.server.start()

    def send(self, method, path, body=None, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.server.kube_port, timeout=60)
        fields = {"Content-Type": "application/json"}
        fields.update({name.replace("_", "-"): value for name, value in headers.items()})
        connection.request(method, path, json.dumps(body) if body is not None else None, fields)
        response = connection.getresponse()
        text = response.read()
        warnings = response.headers.get_all("Warning") or []
        connection.close()
        return response.status, json.loads(text), warnings

    def test_impersonation_is_refused(self):
        maps = "/api/v1/namespaces/default/configmaps"
        for name in ("Impersonate-User", "impersonate-group", "Impersonate-Uid", "Impersonate-Extra-scopes"):
            for method, path, body in (("GET", maps, None), ("POST", maps, {"metadata": {"name": "a"}}),
                                       ("GET", "/api", None), ("GET", "/version", None), ("GET", "/openapi/v3", None)):
                code, status, _ = self.send(method, path, body, **{name: "jane"})
                self.assertEqual((code, status["kind"], status["reason"]), (403, "Status", "Forbidden"), path)
                self.assertEqual(status["message"].lower(), "impersonation is not supported by this server: "
                                 f"send the request without the header {name}".lower())
        self.assertEqual(self.send("GET", maps + "/a")[0], 404)

    def test_review_cannot_be_a_table(self):
        code, status, _ = self.send("POST", REVIEWS, REVIEW, Accept=TABLE)
        self.assertEqual((code, status["reason"]), (406, "NotAcceptable"))
        code, review, _ = self.send("POST", REVIEWS, REVIEW, Accept=TABLE + ",application/json")
        self.assertEqual((code, review["kind"]), (201, "SelfSubjectAccessReview"))

    def test_metadata_of_a_review_is_not_a_list(self):
        """The answers are those of a real kube-apiserver."""
        one = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
        code, review, _ = self.send("POST", REVIEWS, REVIEW, Accept=one)
        self.assertEqual((code, review), (201, {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1",
                                                "metadata": {}}))
        code, status, _ = self.send("POST", REVIEWS, REVIEW, Accept=one.replace("Metadata;", "MetadataList;"))
        self.assertEqual((code, status["reason"], status["message"]), (
            406, "NotAcceptable", "you requested PartialObjectMetadataList, but the requested object is not a list "
            "(*authorization.SelfSubjectAccessReview)"))

    def test_unsupported_admission_causes_warnings(self):
        calls = "calls no admission webhooks"
        evaluates = "evaluates no admission policies"
        match = {"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["CREATE"]}]}
        spec = {"policyName": "p", "validationActions": ["Deny"], "matchConstraints": match, "reinvocationPolicy": "Never",
                "validations": [{"expression": "true"}],
                "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": "[]"}}]}
        members = {"policies": ("matchConstraints", "validations"), "bindings": ("policyName", "validationActions")}
        mutating = {"policies": ("matchConstraints", "reinvocationPolicy", "mutations"), "bindings": ("policyName",)}
        for plural, kind, why in (
                ("validatingwebhookconfigurations", "ValidatingWebhookConfiguration", calls),
                ("mutatingwebhookconfigurations", "MutatingWebhookConfiguration", calls),
                ("validatingadmissionpolicies", "ValidatingAdmissionPolicy", evaluates),
                ("validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding", evaluates),
                ("mutatingadmissionpolicies", "MutatingAdmissionPolicy", evaluates),
                ("mutatingadmissionpolicybindings", "MutatingAdmissionPolicyBinding", evaluates)):
            expected = [f'299 - "this server {why}: this {kind} is stored and has no effect"']
            names = (mutating if plural.startswith("mutating") else members).get(plural[-8:])
            valid = {"spec": {name: spec[name] for name in names}} if names else {}
            code, made, warnings = self.send("POST", ADMISSION + plural, {"metadata": {"name": "a"}, **valid})
            self.assertEqual((code, warnings), (201, expected), made)
            path = f"{ADMISSION}{plural}/a"
            self.assertEqual(self.send("PUT", path, made)[::2], (200, expected))
            label = {"metadata": {"labels": {"a": "b"}}}
            self.assertEqual(self.send("PATCH", path, label, Content_Type=MERGE)[::2], (200, expected))
            self.assertEqual(self.send("GET", path)[::2], (200, []))
            self.assertEqual(self.send("DELETE", path)[::2], (200, []))


if __name__ == "__main__":
    unittest.main()
