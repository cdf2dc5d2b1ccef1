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

    def test_objects_without_effect_cause_warnings(self):
        for path, body, why in (
                ("/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas",
                 {"kind": "FlowSchema", "spec": {"priorityLevelConfiguration": {"name": "exempt"}}},
                 "does not limit requests by priority and fairness"),
                ("/apis/networking.k8s.io/v1/servicecidrs", {"kind": "ServiceCIDR", "spec": {"cidrs": ["10.99.0.0/24"]}},
                 "takes addresses from --kube-service-cluster-ip-range")):
            code, made, warnings = self.send("POST", path, {"metadata": {"name": "a"}, **body})
            expected = [f'299 - "this server {why}: this {body["kind"]} is stored and has no effect"']
            self.assertEqual((code, warnings), (201, expected), made)

    def test_the_audit_level_of_pod_security_causes_a_warning_when_it_is_set(self):
        warning = '299 - "this server has no audit log: the label pod-security.kubernetes.io/audit has no effect"'

        def labels(**levels):
            made = {f"pod-security.kubernetes.io/{mode}": level for mode, level in levels.items()}
            return {"metadata": {"name": "secured", "labels": made}}

        path = "/api/v1/namespaces"
        self.assertEqual(self.send("POST", path, labels(enforce="restricted", audit="restricted"))[::2], (201, [warning]))
        path += "/secured"
        self.assertEqual(self.send("PATCH", path, {"metadata": {"annotations": {"a": "b"}}}, Content_Type=MERGE)[::2], (200, []))
        self.assertEqual(self.send("PATCH", path, labels(audit="baseline"), Content_Type=MERGE)[::2], (200, [warning]))
        self.assertEqual(self.send("PATCH", path, labels(audit="privileged", warn="baseline"), Content_Type=MERGE)[::2], (200, []))

    def test_another_api_server_cannot_be_registered(self):
        path, name = "/apis/apiregistration.k8s.io/v1/apiservices", "v1.metrics.example.com"
        spec = {"group": "metrics.example.com", "version": "v1", "groupPriorityMinimum": 100, "versionPriority": 100}
        service = {"service": {"name": "s", "namespace": "n"}}
        wanted = {"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": name}}
        why = f'APIService.apiregistration.k8s.io "{name}" is invalid: spec.service: Forbidden: this server forwards no requests to ' \
            "other API servers"
        code, answer, _ = self.send("POST", path, {**wanted, "spec": {**spec, **service}})
        self.assertEqual((code, answer["reason"], answer["message"]), (422, "Invalid", why))
        code, answer, _ = self.send("PATCH", f"{path}/{name}?fieldManager=m", {**wanted, "spec": {**spec, **service}},
                                    Content_Type="application/apply-patch+yaml")
        self.assertEqual((code, answer["message"]), (422, why))
        self.assertEqual(self.send("POST", path, {**wanted, "spec": spec})[::2], (201, []))
        code, answer, _ = self.send("PATCH", f"{path}/{name}", {"spec": service}, Content_Type=MERGE)
        self.assertEqual((code, answer["message"]), (422, why))
        # One that a kube-apiserver has stored can be changed and deleted.
        self.server.put_raw(f"/registry/apiregistration.k8s.io/apiservices/{name}", json.dumps({**wanted, "spec": {**spec, **service}}))
        code, answer, warnings = self.send("PATCH", f"{path}/{name}", {"metadata": {"labels": {"a": "b"}}}, Content_Type=MERGE)
        self.assertEqual((code, warnings), (200, ['299 - "this server forwards no requests to other API servers: this APIService is '
                                                  'stored and has no effect"']), answer)
        self.assertEqual(self.send("DELETE", f"{path}/{name}")[0], 200)


if __name__ == "__main__":
    unittest.main()
