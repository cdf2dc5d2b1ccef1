#!/usr/bin/python3
"""Endpoints of the Kubernetes API besides objects: apply to scale, requests for certificates, what needs a kubelet,
componentstatuses, OpenAPI v2. tests/kube/same_endpoints_test.py compares the answers with those of a real kube-apiserver."""
import contextlib
import http.client
import json
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from kube import certificate_request  # noqa: E402
from kube_write_test import MERGE, KubeTest, deployment  # noqa: E402
from server import only_vigil  # noqa: E402

APPLY = "application/apply-patch+yaml"
CORE = "/api/v1/namespaces/default"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
CONDITIONS_MAX = 1000


def scale(replicas, kind="Scale"):
    return {"apiVersion": "autoscaling/v1", "kind": kind, "metadata": {"name": "web"}, "spec": {"replicas": replicas}}


def condition(type_, status="True"):
    return {"type": type_, "status": status, "reason": "r", "message": "m"}


def define(test):
    number = {"type": "object", "properties": {"copies": {"type": "integer"}}}
    test.want(201, "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", {
        "metadata": {"name": "hats.example.com"}, "spec": {
            "group": "example.com", "scope": "Namespaced", "names": {"plural": "hats", "kind": "Hat"}, "versions": [
                {"name": "v1", "served": True, "storage": True,
                 "subresources": {"scale": {"specReplicasPath": ".spec.copies", "statusReplicasPath": ".status.copies"}},
                 "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": number, "status": number}}}}]}})


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        at, shift = at + 1, shift + 7
        if data[at - 1] < 128:
            return value, at


def fields_of(data):
    """The fields of a protobuf message, all of which have a length or are numbers."""
    at, found = 0, []
    while at < len(data):
        tag, at = varint(data, at)
        value, at = varint(data, at)
        if tag & 7:
            value, at = data[at:at + value], at + value
        found.append((tag >> 3, value))
    return found


class EndpointTest(KubeTest):
    def want(self, code, *case):
        got, body = self.send(*case)
        self.assertEqual(got, code, body)
        return body

    def refuse(self, code, message, *case):
        self.assertEqual(self.want(code, *case)["message"], message)


@only_vigil
class Scale(EndpointTest):
    def apply(self, code, body, manager, more=""):
        return self.want(code, "PATCH", f"{DEPLOYMENTS}/web/scale?fieldManager={manager}{more}", body, APPLY)

    def owners(self):
        entries = self.want(200, "GET", f"{DEPLOYMENTS}/web")["metadata"].get("managedFields", [])
        return {(e["manager"], e["operation"], e.get("subresource"), e["apiVersion"]):
                "f:replicas" in e["fieldsV1"].get("f:spec", {}) for e in entries}

    def test_apply_owns_the_replicas_of_the_object(self):
        self.want(201, "POST", DEPLOYMENTS, deployment("web", replicas=1))
        self.assertIn("before-first-apply", self.apply(409, scale(2), "one")["message"])
        made = self.apply(200, scale(2), "one", "&force=true")
        self.assertEqual((made["kind"], made["spec"], "managedFields" in made["metadata"]), ("Scale", {"replicas": 2}, False))
        self.assertEqual(self.owners(), {("one", "Apply", "scale", "apps/v1"): True})
        status = self.apply(409, scale(3), "two")
        self.assertEqual(status["details"]["causes"][0]["field"], ".spec.replicas")
        self.apply(200, scale(2), "two")
        self.apply(200, scale(5), "two", "&force=true")
        self.assertEqual(self.owners(), {("two", "Apply", "scale", "apps/v1"): True})
        self.assertEqual(self.want(200, "GET", f"{DEPLOYMENTS}/web")["spec"]["replicas"], 5)

    def test_what_is_applied_is_a_scale(self):
        self.want(201, "POST", DEPLOYMENTS, deployment("web", replicas=1))
        self.refuse(400, "invalid object type: autoscaling/v1, Kind=Deployment", "PATCH",
                    f"{DEPLOYMENTS}/web/scale?fieldManager=one", scale(2, "Deployment"), APPLY)
        self.assertIn("field not declared in schema", self.apply(500, dict(scale(2), extra=1), "one")["message"])
        self.want(404, "PATCH", f"{DEPLOYMENTS}/none/scale?fieldManager=one", dict(scale(2), metadata={"name": "none"}), APPLY)

    def test_custom_resources(self):
        define(self)
        hats = "/apis/example.com/v1/namespaces/default/hats"
        self.want(201, "POST", hats, {"apiVersion": "example.com/v1", "kind": "Hat", "metadata": {"name": "web"}, "spec": {}})
        self.refuse(400, 'the spec replicas field ".spec.copies" cannot be empty', "PATCH", hats + "/web/scale?fieldManager=one",
                    dict(scale(1), spec={}), APPLY)
        self.want(200, "PATCH", hats + "/web/scale?fieldManager=one", scale(3), APPLY)
        self.want(409, "PATCH", hats + "/web/scale?fieldManager=two", scale(4), APPLY)
        self.want(200, "PATCH", hats + "/web/scale?fieldManager=two&force=true", scale(4), APPLY)
        hat = self.want(200, "GET", hats + "/web")
        self.assertEqual(hat["spec"], {"copies": 4})
        self.assertEqual([(e["manager"], e["subresource"], e["apiVersion"], e["fieldsV1"]) for e in hat["metadata"]["managedFields"]],
                         [("two", "scale", "example.com/v1", {"f:spec": {"f:copies": {}}})])


@only_vigil
class Certificates(EndpointTest):
    def test_the_user_is_written_by_the_server_and_the_spec_never_changes(self):
        made = self.want(201, "POST", REQUESTS, {"metadata": {"name": "a"}, "spec": {
            "request": certificate_request("jane"), "signerName": "example.com/s", "usages": ["client auth"], "username": "me", "uid": "1",
            "groups": ["mine"], "extra": {"k": ["v"]}}})["spec"]
        self.assertEqual((made["username"], made.get("uid"), made.get("extra")), ("system:admin", None, None))
        self.assertEqual(made["groups"], ["system:masters", "system:authenticated"])
        changed = self.want(200, "PATCH", f"{REQUESTS}/a", {"metadata": {"labels": {"l": "1"}}, "spec": {
            "username": "me", "signerName": "example.com/other"}}, MERGE)
        self.assertEqual((changed["spec"], changed["metadata"]["labels"]), (made, {"l": "1"}))

    def test_conditions_belong_to_two_paths(self):
        self.want(201, "POST", REQUESTS, {"metadata": {"name": "a"}, "spec": {
            "request": certificate_request("jane"), "signerName": "example.com/s", "usages": ["client auth"]}})

        def patch(code, sub, *conditions):
            return self.want(code, "PATCH", f"{REQUESTS}/a/{sub}", {"status": {"conditions": list(conditions)}}, MERGE)

        head = 'CertificateSigningRequest.certificates.k8s.io "a" is invalid: status.conditions'
        self.assertEqual(patch(422, "status", condition("Approved"))["message"],
                         f'{head}: Forbidden: updates may not add a condition of type "Approved"')
        self.assertIn("status", patch(422, "approval", condition("Approved", "False"))["message"])
        approved = patch(200, "approval", condition("Approved"))["status"]["conditions"][0]
        self.assertTrue(approved["lastUpdateTime"] and approved["lastTransitionTime"])
        self.assertEqual(patch(422, "approval")["message"],
                         f'{head}: Forbidden: updates may not remove a condition of type "Approved"')
        self.assertIn("mutually exclusive", patch(422, "approval", condition("Approved"), condition("Denied"))["message"])
        kept = patch(200, "status", dict(condition("Approved"), reason="other"), condition("Mine"))["status"]["conditions"]
        self.assertEqual([(c["type"], c["reason"]) for c in kept], [("Approved", "r"), ("Mine", "r")])
        many = [condition("Approved")] + [condition(f"C{i}") for i in range(CONDITIONS_MAX)]
        self.assertIn("limit of conditions", patch(413, "status", *many)["message"])
        patch(200, "status", *many[:-1])


@only_vigil
class Connect(EndpointTest):
    def test_pods_without_a_kubelet(self):
        for name, count, node in (("one", 1, None), ("two", 2, None), ("placed", 1, "n1"), ("lost", 1, "n2")):
            self.want(201, "POST", f"{CORE}/pods", {"metadata": {"name": name}, "spec": {"nodeName": node, "containers": [
                {"name": f"c{i}", "image": "i"} for i in range(count)]}})
        self.want(201, "POST", "/api/v1/nodes", {"metadata": {"name": "n1"}})
        log = CORE + "/pods/%s/log"
        self.want(204, "GET", log % "one")
        self.refuse(404, 'pods "none" not found', "GET", log % "none")
        self.refuse(400, "a container name must be specified for pod two, choose one of: [c0 c1]", "GET", log % "two")
        self.refuse(400, "container x is not valid for pod one", "GET", log % "one" + "?container=x")
        self.refuse(404, 'nodes "n2" not found', "GET", log % "lost")
        self.refuse(500, "no preferred addresses found; known addresses: []", "GET", log % "placed")
        self.want(200, "PATCH", "/api/v1/nodes/n1/status", {"status": {"addresses": [
            {"type": "InternalIP", "address": "10.1.2.3"}], "daemonEndpoints": {"kubeletEndpoint": {"Port": 9}}}}, MERGE)
        self.refuse(500, 'Get "https://10.1.2.3:9/containerLogs/default/placed/c0": dial tcp 10.1.2.3:9: connect: connection refused',
                    "GET", log % "placed")
        self.want(405, "POST", log % "one")
        for sub in ("exec", "attach", "portforward"):
            self.refuse(400, "pod one does not have a host assigned", "POST", f"{CORE}/pods/one/{sub}")
            self.refuse(400, "Upgrade request required", "GET", f"{CORE}/pods/placed/{sub}")
            self.want(405, "PUT", f"{CORE}/pods/one/{sub}", {})

    def test_proxies(self):
        self.want(201, "POST", f"{CORE}/pods", {"metadata": {"name": "p"}, "spec": {"containers": [
            {"name": "c", "image": "i", "ports": [{"containerPort": 81}]}]}})
        self.refuse(400, "address not allowed", "GET", f"{CORE}/pods/p/proxy/")
        self.want(200, "PATCH", f"{CORE}/pods/p/status", {"status": {"podIP": "10.1.2.4", "podIPs": [{"ip": "10.1.2.4"}]}}, MERGE)
        text = "error trying to reach service: dial tcp 10.1.2.4:%d: connect: connection refused"
        self.refuse(503, text % 81, "GET", f"{CORE}/pods/p/proxy/a/b/c/d/e/f/g/h")
        self.refuse(503, text % 9, "DELETE", f"{CORE}/pods/https:p:9/proxy/")
        self.want(301, "GET", f"{CORE}/pods/p/proxy?x=1")
        self.assertEqual(self.headers["Location"], f"{CORE}/pods/p/proxy/?x=1")
        self.refuse(400, 'invalid pod request "a:b:c:d"', "GET", f"{CORE}/pods/a:b:c:d/proxy/")
        self.refuse(404, 'nodes "n" not found', "GET", "/api/v1/nodes/n/proxy/pods")
        self.refuse(404, 'services "s" not found', "GET", f"{CORE}/services/s/proxy/")
        self.refuse(404, 'services "s" not found', "GET", f"{CORE}/services/s:80/proxy/")
        target = {"ip": "10.1.2.4", "targetRef": {"kind": "Pod", "namespace": "default", "name": "p"}}
        wrong = dict(target, ip="10.1.2.5")
        for name, addresses in (("s", [wrong] * 70), ("t", [wrong, target])):
            self.want(201, "POST", f"{CORE}/services", {"metadata": {"name": name}, "spec": {"ports": [{"port": 80}]}})
            self.want(201, "POST", f"{CORE}/endpoints", {"metadata": {"name": name}, "subsets": [
                {"addresses": addresses, "ports": [{"port": 8080}]}]})
        self.refuse(503, 'no endpoints available for service "s:80"', "GET", f"{CORE}/services/s:80/proxy/")
        self.refuse(503, 'no service port 81 found for service "t"', "GET", f"{CORE}/services/t:81/proxy/")
        self.refuse(503, text % 8080, "GET", f"{CORE}/services/t:80/proxy/")

    def test_discovery_lists_them(self):
        listed = {r["name"]: r for r in self.want(200, "GET", "/api/v1")["resources"]}
        self.assertEqual((listed["pods/exec"]["kind"], listed["pods/exec"]["verbs"]), ("PodExecOptions", ["create", "get"]))
        self.assertEqual((listed["pods/log"]["kind"], listed["pods/log"]["verbs"]), ("Pod", ["get"]))
        self.assertIn("nodes/proxy", listed)
        self.assertIn("services/proxy", listed)
        self.assertEqual((listed["componentstatuses"]["verbs"], listed["componentstatuses"]["shortNames"]), (["get", "list"], ["cs"]))


@only_vigil
class OpenApi(EndpointTest):
    def fetch(self, **fields):
        connection = http.client.HTTPConnection("127.0.0.1", self.kube_port, timeout=30)
        with contextlib.closing(connection):
            connection.request("GET", "/openapi/v2", headers=fields)
            response = connection.getresponse()
            return response.status, response.headers, response.read()

    def test_version_2_has_all_kinds(self):
        define(self)
        code, headers, text = self.fetch()
        document = json.loads(text)
        definitions = document["definitions"]
        self.assertEqual((code, document["swagger"]), (200, "2.0"))
        for name, definition in definitions.items():
            for key, value in definition.get("properties", {}).items():
                while isinstance(value, dict) and "$ref" not in value and ("items" in value or "additionalProperties" in value):
                    value = value.get("items", value.get("additionalProperties"))
                if "$ref" in value:
                    self.assertIn(value["$ref"].replace("#/definitions/", ""), definitions, (name, key))
        kinds = {(g["group"], g["version"], g["kind"]) for d in definitions.values()
                 for g in d.get("x-kubernetes-group-version-kind", [])}
        self.assertLessEqual({("apps", "v1", "Deployment"), ("", "v1", "Pod"), ("example.com", "v1", "Hat")}, kinds)
        ids = [o["operationId"] for p in document["paths"].values() for method, o in p.items() if method != "parameters"]
        self.assertEqual(len(ids), len(set(ids)))
        self.assertIn("listCoreV1NamespacedPod", ids)
        self.assertEqual(self.fetch(**{"If-None-Match": headers["Etag"]})[0], 304)
        self.want(200, "DELETE", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/hats.example.com")
        self.eventually(404, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/hats.example.com")
        self.assertEqual(self.fetch(**{"If-None-Match": headers["Etag"]})[0], 200)

    def test_version_2_as_protobuf_has_the_same_names(self):
        define(self)
        document = json.loads(self.fetch()[2])
        code, headers, text = self.fetch(Accept="application/com.github.proto-openapi.spec.v2@v1.0+protobuf")
        self.assertEqual((code, headers["Content-Type"]), (200, "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"))
        names = {8: [], 9: []}
        for number, part in fields_of(text):
            if number in names:
                for _, named in fields_of(part):
                    names[number].append(dict(fields_of(named))[1].decode())
        self.assertEqual(names, {8: list(document["paths"]), 9: list(document["definitions"])})


@only_vigil
class Components(EndpointTest):
    def test_only_the_store_is_healthy(self):
        path = "/api/v1/componentstatuses"
        listed = self.want(200, "GET", path)
        self.assertEqual(self.headers["Warning"], '299 - "v1 ComponentStatus is deprecated in v1.19+"')
        self.assertEqual((listed["kind"], listed["metadata"]), ("ComponentStatusList", {}))
        self.assertEqual({i["metadata"]["name"]: i["conditions"][0]["status"] for i in listed["items"]}, {
            "controller-manager": "False", "etcd-0": "True", "scheduler": "False"})
        self.assertEqual(self.want(200, "GET", f"{path}/etcd-0"), {
            "kind": "ComponentStatus", "apiVersion": "v1", "metadata": {"name": "etcd-0"},
            "conditions": [{"type": "Healthy", "status": "True", "message": "ok"}]})
        self.refuse(404, 'componentstatus "x" not found', "GET", f"{path}/x")
        self.assertEqual(len(self.want(200, "GET", f"{path}?fieldSelector=metadata.name%3Detcd-0")["items"]), 1)
        self.assertEqual(self.want(200, "GET", f"{path}?labelSelector=a%3Db")["items"], [])
        for method in ("POST", "PUT", "DELETE"):
            self.want(405, method, path, {})
        self.want(405, "GET", path + "?watch=true")


if __name__ == "__main__":
    unittest.main()
