#!/usr/bin/python3
"""Sends the same writes to a real kube-apiserver and to Vigil's own Kubernetes API. Every code and every Status must be the
same, as well as metadata and objects of kinds that Kubernetes does not fill in. tools/build-kube builds the real kube-apiserver."""
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
from side_by_side import SideBySide  # noqa: E402

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
ROLES = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles"
ADDRESSES = "/apis/networking.k8s.io/v1/ipaddresses"
REVIEWS = "/apis/authorization.k8s.io/v1"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
SERVICES = "/api/v1/namespaces/default/services"
LONG = "x" * 64
VERSION = "version "


def pod(name, node="nowhere"):
    spec = {"containers": [{"name": "c", "image": "i"}]}
    return {"metadata": {"name": name}, "spec": dict(spec, nodeName=node) if node else spec}


def deployment(name):
    return {"metadata": {"name": name}, "spec": {
        "replicas": 1, "selector": {"matchLabels": {"a": "b"}},
        "template": {"metadata": {"labels": {"a": "b"}}, "spec": pod("x", None)["spec"]}}}


def owner(**fields):
    return dict({"apiVersion": "v1", "kind": "Pod", "name": "x", "uid": "u"}, **fields)


# (method, path, body, content type). A body that is a string is sent unchanged.
# YAML with keys that are set twice, after the metadata of the object.
TWICE = ("data:\n  a: one\ndata:\n  a: two\n", "data:\n  a: one\n  b: two\n  a: three\n  a: four\n",
         "data: {a: one, a: two}\nother: 1\nother: 2\nmore: 3\n", "data:\n  a:\n\n    one\n  a: |\n    two\n  a:\n",
         "data:\n  1: one\n  1: two\n  1.5: three\n  1.50: four\n  true: five\n  yes: six\n",
         "data:\n  \"a\": one\n  a: two\n  'b.c': one\n  b.c: two\n", "data:\n  <<: {a: one}\n  a: two\n",
         "data:\n  a: one\n  <<: {a: two, b: three}\n", "data:\n  <<: [{a: one}, {a: two}]\n", "data:\n  a: 1\n  a: two\n",
         "data:\n" + "".join(f"  a: v{i}\n" for i in range(40)))

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
    # Strings that Go's types parse themselves. A stored one that they cannot parse would break every typed list and watch.
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
    # Kinds with their own rules.
    ("POST", PODS, pod("one")),
    ("PUT", PODS + "/one/status", dict(pod("one"), status={"phase": "Running"})),
    *[("PATCH", PODS + "/one/status", {"status": addresses}, MERGE) for addresses in (
        {"podIP": "10.0.0.1"}, {"podIP": "10.0.0.2"}, {"podIPs": [{"ip": "10.0.0.3"}, {"ip": "fd00::1"}]},
        {"podIP": "10.0.0.3", "podIPs": [{"ip": "10.0.0.3"}, {"ip": "fd00::1"}]})],
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
    ("PATCH", DEPLOYMENTS + "/d/scale", {"spec": {"replicas": 0}}, MERGE),
    ("GET", DEPLOYMENTS + "/d/scale"),
    ("PATCH", DEPLOYMENTS + "/d/scale", {"metadata": {"labels": {"a": "b"}}}, MERGE),
    ("PATCH", DEPLOYMENTS + "/d/scale", {"spec": {"replicas": 4}}, MERGE),
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
    # As the manager does if its copy of the node is older than its first patch.
    *[("PATCH", "/api/v1/nodes/n", {"spec": {"podCIDR": cidr, "podCIDRs": [cidr]}}, STRATEGIC) for cidr in (
        "10.128.2.0/24", "10.128.3.0/24", "10.128.2.0/24")],
    ("PATCH", "/api/v1/nodes/n", {"spec": {"podCIDR": "10.128.4.0/24"}}, MERGE),
    ("DELETE", "/api/v1/nodes/n"),
    ("POST", "/api/v1/nodes", {"metadata": {"name": "n"}, "spec": {"podCIDR": "10.0.2.0/24", "podCIDRs": ["10.0.3.0/24"]}}),
    ("DELETE", "/api/v1/nodes/n"),
    ("POST", "/api/v1/namespaces", {"metadata": {"generateName": "gen-", "name": "given"}}),
    ("PUT", "/api/v1/namespaces/given", {"metadata": {"name": "given"}, "spec": {"finalizers": []}}),
    ("PUT", "/api/v1/namespaces/given/finalize", {"metadata": {"name": "given"}, "spec": {"finalizers": []}}),
    ("DELETE", "/api/v1/namespaces/given"),
    ("POST", CMS, {"metadata": {"name": "m1", "labels": {"m": "1"}}}),
    ("DELETE", CMS + "?labelSelector=m%3D1"),
    # Behaviour of only some kinds, and rarely used options.
    ("POST", CMS, {"metadata": {"name": "being", "finalizers": ["e.com/x"]}}),
    ("DELETE", CMS + "/being"),
    ("POST", CMS, {"metadata": {"name": "being"}}),
    ("PATCH", CMS + "/being", {"metadata": {"finalizers": None}}, MERGE),
    ("POST", CMS, {"metadata": {"name": "opt"}}),
    ("DELETE", CMS + "/opt", {"dryRun": ["Al"]}),
    ("DELETE", CMS + "/opt", {"gracePeriodSeconds": "x"}),
    ("DELETE", CMS + "/opt", {"orphanDependents": True, "propagationPolicy": "Orphan"}),
    ("DELETE", CMS + "/opt", {"orphanDependents": True, "propagationPolicy": "No", "dryRun": ["Al"]}),
    ("DELETE", CMS + "/opt?dryRun=All&fieldManager=" + "m" * 200),
    ("PATCH", CMS + "/opt", {"kind": "Other", "data": {"strategic": "1"}}, STRATEGIC),
    ("PATCH", CMS + "/opt", {"apiVersion": "v2", "kind": None, "data": {"strategic": None}}, STRATEGIC),
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
    # A PUT that creates, with a version or a uid that no object has.
    *[("PUT", f"{path}/put{i}", {"metadata": dict({"name": f"put{i}"}, **metadata)})
      for path in (LEASES, ROLES, CMS) for i, metadata in enumerate((
          {"resourceVersion": "1"}, {"resourceVersion": "999999999"}, {"resourceVersion": "0"}, {"resourceVersion": "x"},
          {"uid": "other"}, {"uid": "other", "resourceVersion": "1"}, {"generation": 7}))],
    ("PUT", LEASES + "/put0", {"metadata": {"name": "put0", "resourceVersion": "1"}}),
    ("PUT", LEASES + "/put9?dryRun=All", {"metadata": {"name": "put9", "resourceVersion": "1"}}),
    ("GET", LEASES + "/put9"),
    # Creations with a version, as a dry run and for real.
    ("POST", CMS + "?dryRun=All", {"metadata": {"name": "versioned", "resourceVersion": "5"}}),
    ("POST", CMS + "?dryRun=All", {"metadata": {"name": "versioned", "resourceVersion": "x"}}),
    ("POST", CMS + "?dryRun=All", {"metadata": {"name": "versioned", "resourceVersion": "0"}}),
    ("POST", CMS + "?dryRun=All", {"metadata": {"name": "versioned", "uid": "u"}}),
    ("POST", CMS, {"metadata": {"name": "versioned", "resourceVersion": "0"}}),
    ("POST", CMS, {"metadata": {"name": "versioned2", "resourceVersion": "x"}}),
    ("POST", CMS + "?dryRun=All", {"metadata": {"name": "versioned", "resourceVersion": "5"}}),
    # A write that removes the last finalizer deletes the object; its answer has the version from before the write.
    *[request for how in (
        ("PATCH", CMS + "/last", {"metadata": {"finalizers": None}}, MERGE),
        ("PATCH", CMS + "/last", [{"op": "remove", "path": "/metadata/finalizers"}], JSON_PATCH),
        ("PATCH", CMS + "/last", {"metadata": {"finalizers": []}}, STRATEGIC),
        ("PATCH", CMS + "/last", {"metadata": {"$deleteFromPrimitiveList/finalizers": ["e.com/x"]}}, STRATEGIC),
        ("PATCH", CMS + "/last", {"metadata": {"finalizers": None}, "data": {"k": "w"}}, MERGE),
        ("PUT", CMS + "/last", {"metadata": {"name": "last"}, "data": {"k": "w"}}))
      for request in (
          ("POST", CMS, {"metadata": {"name": "last", "finalizers": ["e.com/x"]}, "data": {"k": "v"}}),
          ("DELETE", CMS + "/last"),
          (how[0], how[1] + "?dryRun=All", *how[2:]),
          ("GET", CMS + "/last"),
          how,
          ("GET", CMS + "/last"))],
    # JSON strings with escapes are equal to those without.
    ("POST", CMS, '{"metadata":{"name":"\\u0065sc","labels":{"\\u0061":"\\u0062"}},"data":{"\\u006b":"\\u0076"}}'),
    ("POST", PODS, '{"metadata":{"name":"\\u0065sc"},"spec":{"nodeName":"\\u006e1","containers":[{"name":"c","image":"i"}]}}'),
    ("POST", SECRETS, '{"metadata":{"name":"\\u0065sc"},"type":"e.com\\/t"}'),
    ("POST", SECRETS, {"metadata": {"name": "quoted"}, "type": 'a"\\b'}),
    ("GET", SECRETS + "?fieldSelector=type%3Da%22%5C%5Cb"),
    ("GET", SECRETS + "?fieldSelector=type!%3Da%22%5C%5Cb,metadata.name%3Dquoted"),
    ("GET", CMS + "?labelSelector=a%3Db"),
    ("GET", CMS + "?labelSelector=a+notin+(b),a"),
    ("GET", CMS + "?fieldSelector=metadata.name%3Desc"),
    ("GET", PODS + "?fieldSelector=spec.nodeName%3Dn1"),
    ("GET", SECRETS + "?fieldSelector=type%3De.com/t"),
    ("GET", CMS + "/esc"),
    ("DELETE", CMS + "?labelSelector=a%3Db&dryRun=All"),
    ("DELETE", CMS + "?labelSelector=a%3Db"),
    # Names that are addresses.
    *[("POST", ADDRESSES, {"metadata": {"name": name}, "spec": {"parentRef": {"resource": "services", "name": "x", "namespace": "y"}}})
      for name in ("2001:db8::1", "::1", "192.0.2.1", "::ffff:192.0.2.1", "2001:DB8::2", "2001:db8:0::2", "one", "1.2.3",
                   "1:" * 40, "fe80::1%eth0", "01.2.3.4", "::01.2.3.4", "::1.2.3.4", "::102:304", "::", "1::2::3", "12345::")],
    ("GET", ADDRESSES + "/2001:db8::1"),
    ("PATCH", ADDRESSES + "/2001:db8::1", {"metadata": {"labels": {"a": "b"}}}, MERGE),
    ("DELETE", ADDRESSES + "/2001:db8::1"),
    # Kinds that are neither stored nor listed have no table.
    *[("POST", path, body, "application/json", accept)
      for path, body in (
          (REVIEWS + "/selfsubjectaccessreviews", {"spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}}),
          (REVIEWS + "/selfsubjectrulesreviews", {"spec": {"namespace": "default"}}),
          ("/apis/authentication.k8s.io/v1/selfsubjectreviews", {}))
      for accept in (TABLE, f"{TABLE},application/json")],
    # Strict validation reports first the unknown fields, then the duplicate keys.
    *[("POST", CMS + "?fieldValidation=" + how, body, kind) for how in ("Strict", "Warn", "Ignore") for body, kind in (
        ('{"metadata":{"name":"st","name":"st","zz":1},"data":{"a":"1","a":"2"},"b":1,"a":1}', "application/json"),
        ('{"data":{"a":"1","a":"2"},"z":1,"metadata":{"name":"st","finalizer":[]},"z":2}', "application/json"),
        ('{"z":1,"z":2}', "application/json"),
        ("metadata: {name: st}\nzz: 1\nyy: 2\n", "application/yaml"))],
    ("POST", PODS + "?fieldValidation=Strict",
     '{"metadata":{"name":"st"},"spec":{"x":1,"containers":[{"name":"c","name":"c","y":1,"ports":[{"q":1}]}],"x":2},"status":{"w":1}}'),
    # The status of an object for which no client has written one.
    ("POST", DEPLOYMENTS, deployment("zero")),
    ("PATCH", DEPLOYMENTS + "/zero/status", {"status": {"replicas": 2}}, MERGE),
    ("PATCH", DEPLOYMENTS + "/zero/status", {"status": None}, MERGE),
    ("PATCH", DEPLOYMENTS + "/zero/status", {"status": {}}, MERGE),
    ("PUT", DEPLOYMENTS + "/zero", deployment("zero")),
    ("PUT", DEPLOYMENTS + "/zero/status", deployment("zero")),
    ("POST", SERVICES, {"metadata": {"name": "zero"}, "spec": {"ports": [{"port": 1}]}}),
    ("POST", "/apis/policy/v1/namespaces/default/poddisruptionbudgets", {"metadata": {"name": "zero"}, "spec": {}}),
    ("POST", "/api/v1/namespaces/default/resourcequotas", {"metadata": {"name": "zero"}, "spec": {}}),
    ("POST", "/apis/networking.k8s.io/v1/namespaces/default/ingresses", {"metadata": {"name": "zero"}, "spec": {
        "defaultBackend": {"service": {"name": "s", "port": {"number": 1}}}}}),
    ("POST", "/apis/apps/v1/namespaces/default/statefulsets", dict(deployment("zero"), spec=dict(
        deployment("zero")["spec"], serviceName="s"))),
    ("POST", "/apis/storage.k8s.io/v1/volumeattachments", {"metadata": {"name": "zero"}, "spec": {
        "attacher": "e.com", "nodeName": "n", "source": {"persistentVolumeName": "p"}}}),
    # For kinds whose generation the server does not count, the client's generation is stored.
    *[("POST", path, {"metadata": {"name": f"gen{i}", "generation": generation}})
      for path in (CMS, ROLES) for i, generation in enumerate((7, 0, None, -1, "x", 1.5))],
    ("PUT", CMS + "/gen0", {"metadata": {"name": "gen0", "generation": 9}}),
    ("PATCH", CMS + "/gen0", {"metadata": {"generation": 9}}, MERGE),
    ("POST", DEPLOYMENTS, dict(deployment("gen"), metadata={"name": "gen", "generation": 7})),
    # Differences that a comparison of random requests found.
    *[("PUT", LEASES + "/put0", {"metadata": metadata}) for metadata in (
        {"name": "other"}, {}, {"name": "put0", "namespace": "other"})],
    *[("PATCH", LEASES + "/put0", {"metadata": {"resourceVersion": version}}, MERGE) for version in (
        "18446744073709551616", "99999999999999999999x", "x99999999999999999999", "0", "00", None, "")],
    *[("PUT", LEASES + "/put0", {"metadata": {"name": "put0", "resourceVersion": version}}) for version in ("0", "00", "", "x")],
    *[("POST", CMS, {"metadata": {"name": "gen0", "resourceVersion": version}}) for version in (
        "18446744073709551615", "18446744073709551616", "-1", "00")],
    *[("POST", CMS, {"metadata": {"name": "half"}, "zz": 1, **other}) for other in (
        {"apiVersion": "v2"}, {"kind": "Other"}, {"apiVersion": "", "kind": "Other"}, {"apiVersion": "v2", "kind": ""})],
    *[("POST", CMS + "?dryRun=All", {"metadata": {"name": "half"}, "zz": 1, **half}) for half in (
        {"apiVersion": "v1"}, {"kind": "ConfigMap"}, {"apiVersion": "", "kind": "ConfigMap"}, {"apiVersion": "v1", "kind": ""})],
    *[("POST", path + "?dryRun=All", {"metadata": {"name": "empty"}, **content}) for path in (CMS, SECRETS) for content in (
        {"data": None}, {"data": {}}, {"binaryData": None}, {"binaryData": {}}, {"stringData": None}, {"stringData": {}},
        {"data": None, "stringData": {"k": "v"}})],
    *[("DELETE", CMS + "/gen0", {"propagationPolicy": policy, "dryRun": ["All"]}) for policy in ("", None, "background")],
    *[("PATCH", CMS + "/gen0?dryRun=All", patch, JSON_PATCH) for patch in (
        [{"op": "replace", "path": "/metadata/labels", "value": {"a": "b"}}],
        [{"op": "replace", "path": "/nothing/there", "value": {"a": "b"}}],
        [{"op": "replace", "path": "/metadata/labels", "value": {"a": "b"}}, {"op": "replace", "path": "/metadata/labels/c", "value": "d"}],
        [{"op": "copy", "from": "/metadata/labels", "path": "/metadata/annotations"}],
        [{"op": "copy", "from": "/nothing/there", "path": "/metadata/annotations"}],
        [{"op": "move", "from": "/metadata/labels", "path": "/metadata/annotations"}],
        [{"op": "add", "path": "/metadata/finalizers", "value": ["e.com/x"]},
         {"op": "replace", "path": "/metadata/finalizers/1", "value": "e.com/y"}])],
    *[("POST", f"{CMS}?dryRun=All&fieldValidation={mode}", "metadata:\n  name: twice\n" + text, "application/yaml")
      for mode in ("Strict", "Warn", "Ignore", "") for text in TWICE],
    # For patches and YAML, warnings about unknown fields are ordered by name.
    *[("PATCH", CMS + "/gen0?fieldValidation=Warn", patch, kind) for patch, kind in (
        ({"zz": 1, "yy": 2, "metadata": {"zz": 1, "aa": 1}}, MERGE),
        ({"zz": 1, "yy": 2, "metadata": {"zz": 1, "aa": 1}}, STRATEGIC),
        ('{"zz":1,"data":{"k":"1","k":"2"},"yy":2}', MERGE),
        ('{"zz":1,"data":{"k":"1","k":"2"},"yy":2}', STRATEGIC),
        ('{"z":1,"z":2,"data":{"k":"1","k":"2"},"a":{"b":1,"b":2}}', MERGE),
        ('[{"op":"add","path":"/data/q","value":"1","value":"2"}]', JSON_PATCH),
        ('[{"op":"add","op":"add","path":"/zz","value":{"a":1,"a":2}},{"op":"add","path":"/aa","path":"/aa","value":1}]', JSON_PATCH),
        ('[{"op":"add","path":"/data/r","value":"1","zz":1}]', JSON_PATCH),
        ([{"op": "add", "path": "/zz", "value": 1}, {"op": "add", "path": "/yy", "value": 1}], JSON_PATCH))],
    ("POST", PODS + "?fieldValidation=Strict", "metadata: {name: st}\nzz: 1\nspec:\n  zz: 1\n  containers:\n"
     + "  - {name: c, z: 1, b: 2}\n" * 11 + "  aa: 1\n", "application/yaml"),
]


class Versions:
    """Names the versions of each object by the order in which a server returned them, because servers count differently."""

    def __init__(self):
        self.known = {}  # lists of versions by uid

    def name(self, uid, version):
        known = self.known.setdefault(uid, [])
        if version not in known:
            if known and int(version) < int(known[-1]):
                return "a version from before the last one"
            known.append(version)
        return f"{VERSION}{known.index(version) + 1}"

    def named(self, value):
        """The same answer with names in place of versions."""
        if isinstance(value, list):
            return [self.named(item) for item in value]
        if not isinstance(value, dict):
            return value
        out = {key: self.named(item) for key, item in value.items()}
        if isinstance(value.get("uid"), str) and value.get("resourceVersion"):
            out["resourceVersion"] = self.name(value["uid"], value["resourceVersion"])
        return out


def is_any(key, item):
    """Whether two servers can agree only on the presence of the value."""
    return item and (key in ("uid", "creationTimestamp", "deletionTimestamp", "continue")
                     or key == "resourceVersion" and not item.startswith(VERSION))


def normal(value):
    """The value without the parts in which any two servers differ."""
    if isinstance(value, dict):
        out = {}
        for key, item in value.items():
            if key != "managedFields":
                out[key] = "*" if is_any(key, item) else normal(item)
        if "causes" in out:  # Kubernetes repeats those of an update
            out["causes"] = [c for i, c in enumerate(out["causes"]) if c not in out["causes"][:i]]
        return out
    if isinstance(value, str):
        return UID.sub("U", RECORD.sub("record (N)", value))
    return [normal(item) for item in value] if isinstance(value, list) else value


class Client:
    def __init__(self, url, token=None):
        self.url, self.token = url, token
        self.context = ssl._create_unverified_context() if url.startswith("https") else None
        self.versions, self.warnings = Versions(), []

    def open(self, method, path, body=None, content_type="application/json", accept="application/json", fields=None):
        data = body.encode() if isinstance(body, str) else None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data=data, method=method, headers={
            "Content-Type": content_type, "Accept": accept, **(fields or {})})
        if self.token and "Authorization" not in request.headers:
            request.add_header("Authorization", f"Bearer {self.token}")
        return urllib.request.urlopen(request, timeout=60, context=self.context)

    def send(self, *case):
        """Returns the code and the body of the answer; its warnings are kept until the next call."""
        try:
            with self.open(*case) as response:
                self.warnings = response.headers.get_all("Warning", [])
                return response.status, json.loads(response.read())
        except urllib.error.HTTPError as error:
            self.warnings = error.headers.get_all("Warning", [])
            text = error.read()
            try:
                return error.code, json.loads(text)
            except ValueError:
                return error.code, text.decode(errors="replace")


def status_that_counts(body):
    """The status without values that Kubernetes fills in or that belong to one server."""
    if body["kind"] == "Pod":
        return body["status"]["phase"]
    if body["kind"] == "Scale":
        return body["spec"], body["status"]
    return None if body["kind"] == "Node" or body["kind"].endswith("Review") else body.get("status")


def what_counts(answer):
    code, body = answer
    body = normal(body)
    if isinstance(body, dict) and body.get("kind") not in ("Status", "ConfigMap", "ConfigMapList", "Secret", "SecretList", None):
        body = {"kind": body["kind"], "metadata": body.get("metadata"), "status": status_that_counts(body)}
    return code, body


class SameWrites(SideBySide):
    client = Client

    def compare(self, what_counts, *case):
        """Compares warnings as well, except for one that Vigil does not send."""
        theirs, ours = ((*what_counts((code, client.versions.named(body))), client.warnings)
                        for client in (self.theirs, self.ours) for code, body in [client.send(*case)])
        with self.subTest(case=str(case)[:400]):
            self.assertEqual(ours, (*theirs[:2], [warning for warning in theirs[2] if "v1 Endpoints is deprecated" not in warning]))

    def test_every_answer_equals_that_of_a_real_apiserver(self):
        for case in CASES:
            self.compare(what_counts, *case)

    def test_a_new_object_has_the_status_of_its_type(self):
        """Checked also for kinds in which Kubernetes fills in other fields."""
        template = {"metadata": {"labels": {"a": "b"}}, "spec": dict(pod("x", None)["spec"], restartPolicy="Never")}
        for path, body in (
                ("/apis/batch/v1/namespaces/default/jobs", {"spec": {"template": template}}),
                ("/apis/batch/v1/namespaces/default/cronjobs", {"spec": {
                    "schedule": "* * * * *", "jobTemplate": {"spec": {"template": template}}}}),
                ("/apis/apps/v1/namespaces/default/daemonsets", {"spec": {
                    "selector": {"matchLabels": {"a": "b"}}, "template": dict(template, spec=pod("x", None)["spec"])}}),
                ("/api/v1/nodes", {})):
            self.compare(lambda answer: (answer[0], answer[1].get("status")), "POST", path, {"metadata": {"name": "zero"}, **body})


if __name__ == "__main__":
    unittest.main()
