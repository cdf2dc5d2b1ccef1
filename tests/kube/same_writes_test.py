#!/usr/bin/python3
"""The same writes to a real kube-apiserver and to Vigil's own Kubernetes face: every code and every Status
must be the same, and so must metadata and what has no schema. tools/build-kube builds the real one."""
import json
import pathlib
import re
import ssl
import sys
import unittest
import urllib.error
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/live"))
sys.path.insert(0, str(ROOT / "tests/kube"))
from beside import Beside  # noqa: E402

UID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
RECORD = re.compile(r"record \(\d+\)")
CMS = "/api/v1/namespaces/default/configmaps"
MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
PODS = "/api/v1/namespaces/default/pods"
SECRETS = "/api/v1/namespaces/default/secrets"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
LONG = "x" * 64


def pod(name, node="nowhere"):
    spec = {"containers": [{"name": "c", "image": "i"}]}
    return {"metadata": {"name": name}, "spec": dict(spec, nodeName=node) if node else spec}


def deployment(name):
    return {"metadata": {"name": name}, "spec": {
        "replicas": 1, "selector": {"matchLabels": {"a": "b"}},
        "template": {"metadata": {"labels": {"a": "b"}}, "spec": pod("x", None)["spec"]}}}


def owner(**fields):
    return dict({"apiVersion": "v1", "kind": "Pod", "name": "x", "uid": "u"}, **fields)


# (method, path, body, content type). A body that is a text is sent as it is.
CASES = [
    ("POST", CMS, {"metadata": {"name": "a", "labels": {"x": "y"}}, "data": {"k": "v"}}),
    ("POST", CMS, {"metadata": {"name": "a"}}),
    ("POST", CMS, {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "fin", "finalizers": ["e.com/x"]}}),
    ("POST", CMS, {"metadata": {"name": "A_"}}),
    ("POST", CMS, {"metadata": {"name": LONG * 4}}),
    ("POST", CMS, {"metadata": {}}),
    ("POST", CMS, {}),
    ("POST", CMS, {"metadata": {"name": "b", "namespace": "other"}}),
    ("POST", CMS, {"metadata": {"name": "b", "labels": {"-a": "y"}}}),
    ("POST", CMS, {"metadata": {"name": "b", "labels": {"a": "y/"}}}),
    ("POST", CMS, {"metadata": {"name": "b", "labels": {"a": 1}}}),
    ("POST", CMS, {"metadata": {"name": 7}}),
    ("POST", CMS, {"metadata": "x"}),
    ("POST", CMS, {"metadata": {"name": "b", "annotations": {"/": "y"}}}),
    ("POST", CMS, {"metadata": {"name": "b", "annotations": {"a": "y" * 262145}}}),
    ("POST", CMS, {"metadata": {"name": "b", "finalizers": ["nodomain"]}}),
    ("POST", CMS, {"metadata": {"name": "b", "finalizers": ["-/x"]}}),
    ("POST", CMS, {"metadata": {"name": "b", "ownerReferences": [{}]}}),
    ("POST", CMS, {"metadata": {"name": "b", "resourceVersion": "5"}}),
    ("POST", CMS, {"metadata": {"generateName": "G_", "name": "b"}}),
    ("POST", CMS, {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "b"}}),
    ("POST", CMS, {"kind": "ConfigMap", "apiVersion": "v2", "metadata": {"name": "b"}}),
    ("POST", CMS, {"kind": "Nothing", "apiVersion": "v1", "metadata": {"name": "b"}}),
    # What Go's types read for themselves; a text that they cannot read would end all typed lists and watches.
    *[("POST", LEASES, {"metadata": {"name": "times"}, "spec": {"renewTime": text}}) for text in (
        "bad", "", "2026-11-15T06:00:00Z", "2026-11-15T06:00:00.1Z", "2026-13-15T06:00:00.000000Z",
        "2026-11-15T06:00:00.000000", "2026-11-15 06:00:00.000000Z", "2026-02-30T06:00:00.000000Z",
        "2026-11-15T06:00:00.000000Zx", "2026-11-15T25:00:00.000000Z", "2026-11-15T06:00:00.000000+99:00", 5)],
    *[("POST", CMS, {"metadata": {"name": "times", field: "bad"}}) for field in (
        "creationTimestamp", "deletionTimestamp")],
    *[("POST", PODS, {"metadata": {"name": "amounts"}, "spec": {"nodeName": "n", "containers": [
        {"name": "c", "image": "i", "resources": {"limits": {"cpu": text}}}]}}) for text in (
            "bad!", "", "1.5.2", "1Q", "1e", "1k5", "--1", "1KiKi", "1e+", "1 2")],
    ("POST", CMS, {"metadata": {"name": "nulls", "labels": {"a": None}, "annotations": {"b": None}}, "data": {"c": None},
                   "binaryData": {"d": None}}),
    ("POST", CMS, "{bad"),
    ("POST", CMS, ""),
    ("POST", CMS, "[]"),
    ("POST", CMS, "{}", "text/plain"),
    ("POST", CMS, "metadata: {name: yam}\ndata: {a: 'yes'}\n", "application/yaml"),
    ("POST", CMS, "{", "application/yaml"),
    ("POST", CMS + "?dryRun=All", {"metadata": {"name": "dry"}}),
    ("POST", CMS + "?dryRun=Some", {"metadata": {"name": "dry"}}),
    ("POST", CMS + "?fieldValidation=Nope", {"metadata": {"name": "dry"}}),
    ("POST", CMS + "?fieldValidation=Strict", '{"metadata":{"name":"dup","name":"dup"},"data":{"a":"1","a":"2"}}'),
    ("POST", "/api/v1/namespaces/nope/configmaps", {"metadata": {"name": "a"}}),
    ("POST", "/api/v1/configmaps", {"metadata": {"name": "a"}}),
    ("POST", "/api/v1/namespaces", {"metadata": {"name": "a.b"}}),
    ("POST", "/api/v1/namespaces", {"metadata": {"name": "gone"}}),
    ("POST", CMS + "/a", {"metadata": {"name": "a"}}),
    ("POST", "/api/v1/namespaces/default/nothings", {"metadata": {"name": "a"}}),
    ("PUT", CMS + "/a", {"metadata": {"name": "a", "resourceVersion": "1"}}),
    ("PUT", CMS + "/a", {"metadata": {"name": "a", "resourceVersion": "x"}}),
    ("PUT", CMS + "/a", {"metadata": {"name": "a", "uid": "other"}}),
    ("PUT", CMS + "/a", {"metadata": {"name": "b"}}),
    ("PUT", CMS + "/a", {"metadata": {}}),
    ("PUT", CMS + "/a", {"metadata": {"name": "a", "namespace": "b"}}),
    ("PUT", CMS + "/a", {"metadata": {"name": "a", "labels": {"z": "z"}}, "data": {"k": "v2"}}),
    ("PUT", CMS + "/a", {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "a"}}),
    ("PUT", CMS + "/zz", {"metadata": {"name": "zz"}}),
    ("PUT", CMS, {"metadata": {"name": "zz"}}),
    ("PUT", "/api/v1/namespaces/default/endpoints/made", {"metadata": {"name": "made"}}),
    ("PUT", "/apis/coordination.k8s.io/v1/namespaces/default/leases/made", {"metadata": {"name": "made"}}),
    ("PUT", "/apis/coordination.k8s.io/v1/namespaces/default/leases/made", {"metadata": {"name": "made"}}),
    ("PATCH", CMS + "/a", {"data": {"k": "w"}}, MERGE),
    ("PATCH", CMS + "/a", {"data": {"k": "w"}}, MERGE),
    ("PATCH", CMS + "/a", {"metadata": {"resourceVersion": "1"}}, MERGE),
    ("PATCH", CMS + "/a", {"metadata": {"name": "q"}}, MERGE),
    ("PATCH", CMS + "/a", {"metadata": {"uid": "q"}}, MERGE),
    ("PATCH", CMS + "/a", {"metadata": {"labels": {"a": "-"}}}, MERGE),
    ("PATCH", CMS + "/a", {"metadata": None}, MERGE),
    ("PATCH", CMS + "/a", "[]", MERGE),
    ("PATCH", CMS + "/a", "{", MERGE),
    ("PATCH", CMS + "/zz", {"data": {"k": "w"}}, MERGE),
    ("PATCH", CMS + "/a", {"data": {"k": "w"}}, "application/json"),
    ("PATCH", CMS + "/a", [{"op": "test", "path": "/data/k", "value": "no"}], JSON_PATCH),
    ("PATCH", CMS + "/a", [{"op": "remove", "path": "/data/none"}], JSON_PATCH),
    ("PATCH", CMS + "/a", [{"op": "add", "path": "/data/n", "value": "1"}], JSON_PATCH),
    ("PATCH", CMS + "/a", {}, JSON_PATCH),
    ("PATCH", CMS + "/a", [{"op": "test", "path": "/data/k", "value": "no"}] * 10001, JSON_PATCH),
    ("PATCH", CMS + "/a?dryRun=All", {"data": {"k": "dry"}}, MERGE),
    ("DELETE", CMS + "/zz"),
    ("DELETE", CMS + "/a", {"preconditions": {"uid": "other"}}),
    ("DELETE", CMS + "/a", {"preconditions": {"resourceVersion": "1"}}),
    ("DELETE", CMS + "/a?propagationPolicy=Some"),
    ("DELETE", CMS + "/a", {"propagationPolicy": "Some"}),
    ("DELETE", CMS + "/a", {"kind": "Pod", "apiVersion": "v1"}),
    ("DELETE", CMS + "/a?dryRun=All"),
    ("DELETE", CMS + "/a", {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0}),
    ("DELETE", CMS + "/a"),
    ("DELETE", CMS + "/fin"),
    ("DELETE", CMS + "/fin"),
    ("PATCH", CMS + "/fin", {"metadata": {"finalizers": ["e.com/x", "e.com/y"]}}, MERGE),
    ("PATCH", CMS + "/fin", {"metadata": {"finalizers": None}}, MERGE),
    ("DELETE", CMS + "/fin"),
    ("POST", CMS, {"metadata": {"name": "fore"}}),
    ("DELETE", CMS + "/fore?propagationPolicy=Foreground"),
    ("POST", CMS, {"metadata": {"name": "orph"}}),
    ("DELETE", CMS + "/orph?propagationPolicy=Orphan"),
    ("DELETE", "/api/v1/configmaps"),
    ("DELETE", "/api/v1/namespaces"),
    ("DELETE", "/api/v1/namespaces/default"),
    ("POST", "/api/v1/namespaces/gone/configmaps", {"metadata": {"name": "stays", "finalizers": ["e.com/x"]}}),
    ("DELETE", "/api/v1/namespaces/gone"),
    ("POST", "/api/v1/namespaces/gone/configmaps", {"metadata": {"name": "a"}}),
    ("POST", "/apis/apps/v1/namespaces/gone/deployments",
     {"metadata": {"name": "a"}, "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": {
         "metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}}}),
    ("DELETE", CMS + "?labelSelector=no%3Done"),
    ("DELETE", CMS + "?labelSelector=!!"),
    ("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
     {"spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}}),
    ("GET", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"),
    ("POST", CMS, {"metadata": {"name": "large"}, "data": {"a": "x" * (3 << 20)}}),
    ("POST", "/api/v1/namespaces/default/services", {"metadata": {"name": "1a"}, "spec": {"ports": [{"port": 1}]}}),
    # Kinds with rules of their own.
    ("POST", PODS, pod("one")),
    ("PUT", PODS + "/one/status", dict(pod("one"), status={"phase": "Running"})),
    ("PATCH", PODS + "/one/status", {"status": {"phase": "Running"}, "metadata": {"labels": {"by": "status"}}}, MERGE),
    ("PATCH", PODS + "/one", {"metadata": {"labels": {"by": "patch"}}}, STRATEGIC),
    ("DELETE", PODS + "/one"),
    ("DELETE", PODS + "/one"),
    ("DELETE", PODS + "/one?gracePeriodSeconds=0"),
    ("POST", PODS, pod("free", node=None)),
    ("DELETE", PODS + "/free"),
    ("POST", DEPLOYMENTS, deployment("d")),
    ("GET", DEPLOYMENTS + "/d/scale"),
    ("PATCH", DEPLOYMENTS + "/d/scale", {"spec": {"replicas": 3}}, MERGE),
    ("PUT", DEPLOYMENTS + "/d/scale", {"kind": "Scale", "apiVersion": "autoscaling/v1",
                                       "metadata": {"name": "d", "namespace": "default"}, "spec": {"replicas": 4}}),
    ("PATCH", DEPLOYMENTS + "/d/scale", {"spec": {"replicas": -1}}, MERGE),
    ("PATCH", DEPLOYMENTS + "/nope/scale", {"spec": {"replicas": 1}}, MERGE),
    ("PATCH", DEPLOYMENTS + "/d/status", {"status": {"replicas": 2}}, MERGE),
    ("PATCH", DEPLOYMENTS + "/d", {"spec": {"paused": True}}, MERGE),
    ("PATCH", DEPLOYMENTS + "/d", {"metadata": {"annotations": {"a": "b"}}}, MERGE),
    ("PUT", DEPLOYMENTS + "/d/nothing", deployment("d")),
    ("DELETE", DEPLOYMENTS + "/d/status"),
    ("DELETE", DEPLOYMENTS + "/d?propagationPolicy=Foreground"),
    ("DELETE", "/api/v1/namespaces/default/services/1a"),
    ("POST", "/apis/rbac.authorization.k8s.io/v1/clusterroles", {"metadata": {"name": "system:odd"}, "rules": []}),
    ("DELETE", "/apis/rbac.authorization.k8s.io/v1/clusterroles/system:odd"),
    ("POST", "/api/v1/nodes", {"metadata": {"name": "n"}, "status": {"capacity": {"cpu": "1"}}}),
    ("DELETE", "/api/v1/nodes/n"),
    ("POST", "/api/v1/namespaces", {"metadata": {"generateName": "gen-", "name": "given"}}),
    ("PUT", "/api/v1/namespaces/given", {"metadata": {"name": "given"}, "spec": {"finalizers": []}}),
    ("PUT", "/api/v1/namespaces/given/finalize", {"metadata": {"name": "given"}, "spec": {"finalizers": []}}),
    ("DELETE", "/api/v1/namespaces/given"),
    ("POST", CMS, {"metadata": {"name": "m1", "labels": {"m": "1"}}}),
    ("DELETE", CMS + "?labelSelector=m%3D1"),
    # What only some kinds do, and what is seldom said.
    ("POST", CMS, {"metadata": {"name": "being", "finalizers": ["e.com/x"]}}),
    ("DELETE", CMS + "/being"),
    ("POST", CMS, {"metadata": {"name": "being"}}),
    ("PATCH", CMS + "/being", {"metadata": {"finalizers": None}}, MERGE),
    ("POST", CMS, {"metadata": {"name": "opt"}}),
    ("DELETE", CMS + "/opt", {"dryRun": ["Al"]}),
    ("DELETE", CMS + "/opt", {"gracePeriodSeconds": "x"}),
    ("DELETE", CMS + "/opt", {"orphanDependents": True, "propagationPolicy": "Orphan"}),
    ("DELETE", CMS + "/opt", {"preconditions": {"uid": ""}}),
    ("DELETE", CMS + "/opt", "notjson"),
    ("DELETE", CMS + "/opt", "[]"),
    ("POST", CMS + "?dryRun=", {"metadata": {"name": "b"}}),
    ("PATCH", CMS + "/opt", {"metadata": {"deletionTimestamp": "2020-01-01T00:00:00Z"}}, MERGE),
    ("PUT", CMS + "/opt", {"metadata": {"name": "opt", "deletionGracePeriodSeconds": 5}}),
    ("PATCH", CMS + "/opt", {"metadata": {"annotations": {"A.B/c": "upper"}}}, MERGE),
    ("PATCH", CMS + "/opt", {"metadata": {"ownerReferences": [owner(kind="Event")]}}, MERGE),
    ("PATCH", CMS + "/opt", {"metadata": {"ownerReferences": [owner(controller=True),
                                                              owner(name="y", uid="v", controller=True)]}}, MERGE),
    ("PATCH", CMS + "/opt", "", MERGE),
    ("PATCH", CMS + "/opt", "", JSON_PATCH),
    ("PUT", CMS + "/nope", {"metadata": {"name": "other"}}),
    ("DELETE", CMS + "/opt?orphanDependents=true"),
    ("DELETE", CMS + "/opt?orphanDependents=false"),
    ("POST", CMS, {"metadata": {"name": "fixed"}, "immutable": True, "data": {"a": "b"}}),
    ("PATCH", CMS + "/fixed", {"data": {"a": "c"}}, MERGE),
    ("PATCH", CMS + "/fixed", {"immutable": False}, MERGE),
    ("PATCH", CMS + "/fixed", {"metadata": {"labels": {"a": "c"}}}, MERGE),
    ("POST", CMS, {"metadata": {"name": "bin"}, "binaryData": {"k": "eA="}}),
    ("POST", CMS, {"metadata": {"name": "bin"}, "binaryData": {"k": "eA=x"}}),
    ("POST", CMS, {"metadata": {"name": "bin"}, "binaryData": {"k": "eA==x"}}),
    ("POST", CMS, {"metadata": {"name": "bin"}, "binaryData": {"k": "e!"}}),
    ("POST", CMS, {"metadata": {"name": "bin"}, "binaryData": {"k": "eAA"}}),
    ("POST", CMS, {"metadata": {"name": "bin"}, "binaryData": {"k": "eA=="}}),
    ("POST", SECRETS, {"metadata": {"name": "s"}, "stringData": {"a": "b"}, "data": {"c": "ZA=="}}),
    ("GET", SECRETS + "/s"),
    ("PATCH", SECRETS + "/s", {"stringData": {"c": "x"}}, MERGE),
    ("PATCH", SECRETS + "/s", {"type": "x"}, MERGE),
    ("POST", DEPLOYMENTS, deployment("meta")),
    ("PATCH", DEPLOYMENTS + "/meta", {"spec": {"selector": {"matchLabels": {"a": "c"}},
                                               "template": {"metadata": {"labels": {"a": "c"}}}}}, MERGE),
    ("PATCH", DEPLOYMENTS + "/meta/status", {"metadata": {"labels": {"l": "x"}, "annotations": {"n": "x"},
                                                          "finalizers": ["e.com/x"]}}, MERGE),
    ("PATCH", DEPLOYMENTS + "/meta/status", {"metadata": {"finalizers": None}}, MERGE),
    ("PUT", DEPLOYMENTS + "/nope/status", deployment("meta")),
    ("POST", PODS, dict(pod("bound", None), metadata={"name": "bound", "labels": {"a": "b"}})),
    ("POST", PODS + "/nope/binding", {"metadata": {"name": "nope"}, "target": {"name": "n"}}),
    ("POST", PODS + "/bound/binding", {"metadata": {"name": "other"}, "target": {"name": "n"}}),
    ("POST", PODS + "/bound/binding", {"metadata": {"name": "bound", "annotations": {"by": "me"}},
                                       "target": {"kind": "Node", "name": "n"}}),
    ("POST", "/api/v1/namespaces/default/bindings", {"metadata": {"name": "bound"}, "target": {"name": "m"}}),
    ("GET", PODS + "/bound"),
    ("PATCH", PODS + "/bound/status", {"metadata": {"finalizers": ["e.com/x"],
                                                    "ownerReferences": [owner()]}}, MERGE),
    ("PATCH", PODS + "/bound", {"metadata": {"finalizers": None}}, MERGE),
    ("POST", PODS + "/nope/eviction", {"metadata": {"name": "nope"}}),
    ("POST", PODS + "/bound/eviction", {"metadata": {"name": "other"}}),
    ("POST", PODS + "/bound/eviction", {"metadata": {"name": "bound"}, "deleteOptions": {"gracePeriodSeconds": 9}}),
    ("GET", PODS + "/bound"),
    ("DELETE", PODS + "/bound?gracePeriodSeconds=3"),
    ("DELETE", PODS + "/bound?gracePeriodSeconds=7"),
    ("DELETE", PODS + "/bound", {"gracePeriodSeconds": 0}),
    ("POST", PODS, pod("less")),
    ("DELETE", PODS + "/less", {"gracePeriodSeconds": -3}),
    ("POST", "/api/v1/namespaces", {"metadata": {"name": "held"}, "spec": {"finalizers": ["e.com/x"]}}),
    ("POST", "/apis/storage.k8s.io/v1/storageclasses", {"metadata": {"name": "c"}, "provisioner": "e.com/p"}),
    ("PATCH", "/apis/storage.k8s.io/v1/storageclasses/c", {"provisioner": "e.com/q"}, MERGE),
    ("POST", "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers", {"metadata": {"name": "h"}, "spec": {
        "maxReplicas": 2, "scaleTargetRef": {"kind": "Deployment", "name": "x", "apiVersion": "apps/v1"}}}),
    ("POST", "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings", {"metadata": {"name": "r"}, "roleRef": {
        "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "x"}}),
    ("PATCH", "/api/v1/namespaces/default/status", {"status": {"phase": "Terminating"}}, MERGE),
    ("PATCH", "/api/v1/namespaces/default/finalize", {}, MERGE),
    ("GET", "/api/v1/namespaces/default/finalize"),
    ("GET", PODS + "/x/eviction"),
    ("DELETE", CMS + "?dryRun=All&labelSelector=page"),
    ("POST", CMS, {"metadata": {"name": "p1", "labels": {"page": "1"}}}),
    ("POST", CMS, {"metadata": {"name": "p2", "labels": {"page": "1"}}}),
    ("DELETE", CMS + "?labelSelector=page&dryRun=All"),
    ("DELETE", CMS + "?continue=x"),
    ("DELETE", CMS + "?labelSelector=page&limit=1"),
    ("DELETE", CMS + "?labelSelector=page", {"propagationPolicy": "Foreground"}),
    ("GET", CMS + "/p2"),
]


def normal(value):
    """Without what no two servers agree on."""
    if isinstance(value, dict):
        out = {}
        for key, item in value.items():
            if key == "managedFields":
                continue
            if key in ("uid", "resourceVersion", "creationTimestamp", "deletionTimestamp", "continue") and item:
                item = "*"
            out[key] = normal(item)
        if "causes" in out:  # it tells those of an update twice
            out["causes"] = [c for i, c in enumerate(out["causes"]) if c not in out["causes"][:i]]
        return out
    if isinstance(value, str):
        return UID.sub("U", RECORD.sub("record (N)", value))
    return [normal(item) for item in value] if isinstance(value, list) else value


class Client:
    def __init__(self, url, token=None):
        self.url, self.token = url, token
        self.context = ssl._create_unverified_context() if url.startswith("https") else None

    def send(self, method, path, body=None, content_type="application/json"):
        data = body.encode() if isinstance(body, str) else None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data=data, method=method,
                                         headers={"Content-Type": content_type, "Accept": "application/json"})
        if self.token:
            request.add_header("Authorization", f"Bearer {self.token}")
        try:
            with urllib.request.urlopen(request, timeout=60, context=self.context) as response:
                return response.status, json.loads(response.read())
        except urllib.error.HTTPError as error:
            text = error.read()
            try:
                return error.code, json.loads(text)
            except ValueError:
                return error.code, text.decode(errors="replace")


def what_counts(answer):
    code, body = answer
    body = normal(body)
    if isinstance(body, dict) and body.get("kind") not in ("Status", "ConfigMap", "ConfigMapList", "Secret", None):
        body = {"kind": body["kind"], "metadata": body.get("metadata")}
    return code, body


class SameWrites(Beside):
    client = Client

    def test_every_answer_is_that_of_a_real_apiserver(self):
        for case in CASES:
            self.compare(what_counts, *case)


if __name__ == "__main__":
    unittest.main()
