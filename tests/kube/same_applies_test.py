#!/usr/bin/python3
"""Sends the same server-side applies, by several managers and with other writes between them, to a real kube-apiserver
and to Vigil's own Kubernetes API. Every code, Status, object and owner of a field must be the same. Random sequences
follow the listed cases; SEED= and ROUNDS= choose others. tools/build-kube builds the real kube-apiserver."""
import json
import os
import pathlib
import random
import sys
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/kube"))
import apiserver_test  # noqa: E402
from side_by_side import SideBySide  # noqa: E402
from same_writes_test import LEASES, MERGE, Client, normal  # noqa: E402

APPLY = "application/apply-patch+yaml"
CORE = "/api/v1/namespaces/default"
CMS = CORE + "/configmaps"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
SERVICES = CORE + "/services"
PODS = CORE + "/pods"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
THINGS = "/apis/e.com/v1/namespaces/default/things"
LAST = "kubectl.kubernetes.io/last-applied-configuration"


def cm(name, data=None, **meta):
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default", **meta}}
    return dict(body, data=data) if data is not None else body


def container(name, **more):
    return {"name": name, "image": "i", "terminationMessagePath": "/t", "terminationMessagePolicy": "File",
            "imagePullPolicy": "Always", "resources": {}, **more}


def template(*containers):
    """A pod template with every field to which a real server would give a default."""
    return {"metadata": {"labels": {"a": "b"}}, "spec": {
        "containers": list(containers), "restartPolicy": "Always", "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst", "securityContext": {}, "schedulerName": "s"}}


def deployment(name, *containers, **spec):
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": {
        "selector": {"matchLabels": {"a": "b"}}, "template": template(*containers), **spec}}


def partial(name, **spec):
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}


def service(name, *ports, **spec):
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name},
            "spec": {"ports": list(ports), "clusterIP": "None", "selector": {"a": "b"}, **spec}}


def thing(name, **more):
    return {"apiVersion": "e.com/v1", "kind": "Thing", "metadata": {"name": name}, **more}


SCHEMA = {"type": "object", "properties": {
    "spec": {"type": "object", "properties": {
        "size": {"type": "integer"}, "text": {"type": "string"}, "on": {"type": "boolean"},
        "tags": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
        "plain": {"type": "array", "items": {"type": "string"}},
        "parts": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name", "port"],
                  "items": {"type": "object", "required": ["name"], "properties": {
                      "name": {"type": "string"}, "port": {"type": "integer", "default": 7}, "note": {"type": "string"},
                      "more": {"type": "object", "additionalProperties": {"type": "string"}}}}},
        "whole": {"type": "object", "x-kubernetes-map-type": "atomic",
                  "properties": {"a": {"type": "string"}, "b": {"type": "string"}}},
        "map": {"type": "object", "additionalProperties": {"type": "string"}},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "either": {"x-kubernetes-int-or-string": True}}},
    "status": {"type": "object", "properties": {
        "phase": {"type": "string"},
        "conditions": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"],
                       "items": {"type": "object", "required": ["type"], "properties": {
                           "type": {"type": "string"}, "status": {"type": "string"}}}}}}}}
CRD = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
       "metadata": {"name": "things.e.com"},
       "spec": {"group": "e.com", "scope": "Namespaced",
                "names": {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
                "versions": [{"name": "v1", "served": True, "storage": True, "subresources": {"status": {}},
                              "schema": {"openAPIV3Schema": SCHEMA}}]}}


def gadgets(schema):
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "gadgets.e.com"}, "spec": {
                "group": "e.com", "scope": "Cluster", "conversion": {"strategy": "None"},
                "names": {"plural": "gadgets", "singular": "gadget", "kind": "Gadget", "listKind": "GadgetList"},
                "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {
                    "type": "object", "properties": {"spec": schema}}}}]}}


def applied(path, body, manager, *options):
    return ("PATCH", path + "/" + body["metadata"]["name"] + "?" + "&".join(
        [f"fieldManager={manager}", *options]), body, APPLY)


def owner(manager, fields, operation="Update", version="e.com/v1"):
    return {"manager": manager, "operation": operation, "apiVersion": version, "fieldsType": "FieldsV1",
            "fieldsV1": fields}


FORCE = "force=true"
DEFAULTED = ("Deployment", "Service", "Pod", "Scale", "CustomResourceDefinition", "Namespace")
# Each line is a request: (method, path, body, content type).
CASES = [
    # Options and bodies.
    ("PATCH", CMS + "/x", cm("x", {"a": "1"}), APPLY),
    ("PATCH", CMS + "/x?fieldManager=" + "m" * 129, cm("x", {"a": "1"}), APPLY),
    ("PATCH", CMS + "/x?fieldManager=a%0Ab%00", cm("x", {"a": "1"}), APPLY),
    ("PATCH", CMS + "/x?fieldManager=a%7Fb&fieldValidation=No", cm("x", {"a": "1"}), APPLY),
    ("PATCH", CMS + "/x?force=false&fieldManager=m", {"data": {"a": "1"}}, MERGE),
    ("PATCH", CMS + "/x?force=true&fieldManager=m", {"data": {"a": "1"}}, MERGE),
    ("PATCH", CMS + "/x?fieldManager=m&dryRun=Some", cm("x"), APPLY),
    ("PATCH", CMS + "/x?fieldManager=m", "[]", APPLY),
    ("PATCH", CMS + "/x?fieldManager=m", {"data": {"a": "1"}}, APPLY),
    ("PATCH", CMS + "/x?fieldManager=m", dict(cm("x"), kind="Secret"), APPLY),
    ("PATCH", CMS + "/x?fieldManager=m", dict(cm("x"), apiVersion="v2"), APPLY),
    ("PATCH", CMS + "/x?fieldManager=m", cm("x", managedFields=[]), APPLY),
    ("PATCH", CMS + "/x?fieldManager=m", cm("x", managedFields=[{"manager": "a"}]), APPLY),
    ("PATCH", CMS + "/x?fieldManager=m", cm("x", uid="11111111-2222-3333-4444-555555555555"), APPLY),
    ("PATCH", CMS + "/x?fieldManager=m", cm("y"), APPLY),
    ("PATCH", CMS + "/x?fieldManager=m", dict(cm("x"), metadata={}), APPLY),
    ("PATCH", CMS + "/x?fieldManager=m", dict(cm("x"), metadata={"name": "x", "namespace": "other"}), APPLY),
    ("PATCH", CMS + "/x?fieldManager=m", dict(cm("x"), nothing=1), APPLY),
    ("PATCH", CMS + "/x?fieldManager=m", cm("x", {"a": 1}), APPLY),
    ("PATCH", CMS + "/x?fieldManager=m", cm("x", "text"), APPLY),
    ("PATCH", CMS + "/x?fieldManager=m", cm("x", labels={"a": "-"}), APPLY),
    ("PATCH", CMS + "/x?fieldManager=m", dict(cm("x"), immutable="no"), APPLY),
    ("PATCH", "/api/v1/namespaces/nope/configmaps/x?fieldManager=m",
     dict(cm("x"), metadata={"name": "x"}), APPLY),
    ("PATCH", CMS + "/yaml?fieldManager=m", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: yaml}\ndata: {a: x}\n",
     APPLY),
    # Keys that are set twice are reported after the configuration was applied.
    *[("PATCH", f"{CMS}/yaml?fieldManager={manager}&fieldValidation={mode}", text, APPLY)
      for mode in ("Strict", "Warn", "Ignore") for manager, text in (
          ("m", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: yaml}\ndata:\n  a: x1\n  a: x2\n"),
          ("m", '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"yaml"},"data":{"a":"x1","a":"x3"}}'),
          ("other", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: yaml}\ndata:\n  a: x1\n  a: x4\n"),
          ("m", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: yaml, name: yaml}\nunknown: 1\n"),
          ("m", "apiVersion: v1\nkind: [ConfigMap\n"))],
    ("PATCH", CMS + "/dry?fieldManager=m&dryRun=All", cm("dry", {"a": "1"}), APPLY),
    ("GET", CMS + "/dry"),
    # Values that Go's types cannot parse, and nulls in their maps.
    ("PATCH", CMS + "/x?fieldManager=m", dict(cm("x"), binaryData={"z": "!"}), APPLY),
    ("PATCH", CMS + "/x?fieldManager=m", cm("x", creationTimestamp="bad"), APPLY),
    ("PATCH", LEASES + "/x?fieldManager=m", {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {
        "name": "x"}, "spec": {"renewTime": "2026-11-15T06:00:00Z"}}, APPLY),
    ("PATCH", CMS + "/nulls?fieldManager=m", dict(cm("nulls", {"a": None, "b": ""}, labels={"a": None}),
                                                  binaryData={"z": None}), APPLY),
    # A version without an existing object.
    *[("PATCH", CMS + "/version?fieldManager=m", cm("version", resourceVersion=v), APPLY) for v in ("x", "-1", "5", "5")],
    # Maps: two managers, conflicts, force, removed and shared fields.
    applied(CMS, cm("a", {"k": "1", "l": "1"}, labels={"x": "y"}), "one"),
    applied(CMS, cm("a", {"k": "1", "l": "1"}, labels={"x": "y"}), "one"),
    applied(CMS, cm("a", {"m": "1"}), "two"),
    applied(CMS, cm("a", {"m": "1", "k": "2"}), "two"),
    applied(CMS, cm("a", {"m": "1", "k": "2", "l": "2"}), "two"),
    applied(CMS, cm("a", {"m": "1", "k": "2"}), "two", FORCE),
    applied(CMS, cm("a", {"l": "1"}), "one"),
    applied(CMS, cm("a", {"m": "1"}), "three"),
    applied(CMS, cm("a", {"k": "2"}), "two"),
    applied(CMS, cm("a", {}), "three"),
    applied(CMS, cm("a"), "two"),
    applied(CMS, cm("a", {"l": "1"}, resourceVersion="1"), "one"),
    applied(CMS, cm("a", {"l": "2"}), "one", "dryRun=All"),
    ("GET", CMS + "/a"),
    # Other writes to objects that were applied.
    ("PATCH", CMS + "/a?fieldManager=patcher", {"data": {"l": "3", "p": "1"}}, MERGE),
    ("PATCH", CMS + "/a?fieldManager=patcher", {"data": {"p": None}}, MERGE),
    applied(CMS, cm("a", {"l": "1"}), "one"),
    applied(CMS, cm("a", {"l": "3"}), "one"),
    ("PUT", CMS + "/a?fieldManager=putter", cm("a", {"l": "4", "q": "<&>"}, finalizers=["e.com/x"])),
    ("PATCH", CMS + "/a?fieldManager=patcher",
     {"metadata": {"managedFields": [{"manager": "mine", "operation": "Update", "apiVersion": "v1",
                                      "fieldsType": "FieldsV1", "fieldsV1": {"f:data": {"f:q": {}}}}]}}, MERGE),
    ("PATCH", CMS + "/a?fieldManager=patcher", {"metadata": {"managedFields": [{"manager": "bad"}]}}, MERGE),
    ("PATCH", CMS + "/a?fieldManager=patcher", {"metadata": {"managedFields": [{}]}}, MERGE),
    ("PATCH", CMS + "/a?fieldManager=patcher", {"data": {"r": "1"}}, MERGE),
    # The first apply to fields without an owner.
    applied(CMS, cm("a", {"r": "2", "s": "1"}), "one"),
    applied(CMS, cm("a", {"r": "1", "s": "1"}, finalizers=["e.com/y"]), "one"),
    applied(CMS, cm("a", {"s": "1"}, finalizers=["e.com/y"]), "one"),
    applied(CMS, cm("a", {"s": "1"}), "one"),
    ("PATCH", CMS + "/a?fieldManager=patcher", {"metadata": {"finalizers": None}}, MERGE),
    # Fields that kubectl applied on the client's side before.
    ("PATCH", CMS + "/a", {"metadata": {"managedFields": [{}]}}, MERGE),
    ("PATCH", CMS + "/a?fieldManager=patcher", {"metadata": {"annotations": {LAST: json.dumps(
        cm("a", {"r": "1", "s": "1"}))}}}, MERGE),
    applied(CMS, cm("a", {"r": "5", "s": "6"}), "other"),
    applied(CMS, cm("a", {"r": "5", "l": "6"}), "kubectl"),
    applied(CMS, cm("a", {"r": "5", "s": "a<b"}), "kubectl"),
    # Lists with keys, some of which have defaults; atomic lists and maps.
    applied(DEPLOYMENTS, deployment("d", container("a", env=[{"name": "E", "value": "1"}]), container("b"),
                                    replicas=2), "one"),
    applied(DEPLOYMENTS, partial("d", template={"spec": {"containers": [
        {"name": "b", "env": [{"name": "F", "value": "1"}]}, container("c")]}}), "two"),
    applied(DEPLOYMENTS, partial("d", replicas=3), "two"),
    applied(DEPLOYMENTS, partial("d", replicas=3, template={"spec": {"containers": [
        {"name": "a", "env": [{"name": "E", "value": "2"}], "image": "j"}]}}), "two"),
    applied(DEPLOYMENTS, partial("d", replicas=3), "two", FORCE),
    applied(DEPLOYMENTS, deployment("d", container("b"), container("a")), "one"),
    applied(DEPLOYMENTS, partial("d", template={"spec": {"containers": [
        {"name": "a", "args": ["x", "y"], "ports": [{"containerPort": 80, "protocol": "TCP"}, {"containerPort": 80, "protocol": "UDP"}]}],
        "nodeSelector": {"n": "1"}}}), "two"),
    applied(DEPLOYMENTS, partial("d", template={"spec": {"containers": [
        {"name": "a", "args": ["x"], "ports": [{"containerPort": 80, "name": "h"}]}],
        "nodeSelector": {"m": "1"}}}), "three"),
    applied(DEPLOYMENTS, partial("d", template={"spec": {"containers": [
        {"name": "a", "ports": [{"containerPort": 80}, {"containerPort": 80}]}]}}), "three"),
    applied(DEPLOYMENTS, partial("d", selector={"matchLabels": {"a": "b"}}), "three"),
    applied(DEPLOYMENTS, partial("d", template={"spec": {"containers": [
        {"name": "a", "resources": {"limits": {"cpu": "bad!"}}}]}}), "three"),
    applied(DEPLOYMENTS, partial("d", replicas="3"), "three"),
    applied(DEPLOYMENTS, partial("d", paused=1), "three"),
    applied(DEPLOYMENTS, partial("d", template=[]), "three"),
    applied(DEPLOYMENTS, partial("d", template={"spec": {"containers": {}}}), "three"),
    ("PATCH", DEPLOYMENTS + "/d/scale?fieldManager=scaler", {"spec": {"replicas": 5}}, MERGE),
    applied(DEPLOYMENTS, partial("d", replicas=3), "two"),
    ("PATCH", DEPLOYMENTS + "/d/scale?fieldManager=scaler", {"spec": {"replicas": 6}}, MERGE),
    ("GET", DEPLOYMENTS + "/d"),
    ("PATCH", DEPLOYMENTS + "/d/scale?fieldManager=scaler", {"spec": {"replicas": 7}}, MERGE),
    ("PATCH", DEPLOYMENTS + "/d/scale?fieldManager=other", {"spec": {"replicas": 8}}, MERGE),
    ("GET", DEPLOYMENTS + "/d"),
    applied(DEPLOYMENTS, partial("d", replicas=3), "two"),
    applied(DEPLOYMENTS, partial("d", replicas=3), "two", FORCE),
    ("PATCH", DEPLOYMENTS + "/d/status?fieldManager=st", dict(partial("d"), status={"replicas": 2}), APPLY),
    ("PATCH", DEPLOYMENTS + "/d/status?fieldManager=st", {"status": {"replicas": 1}}, MERGE),
    ("PATCH", DEPLOYMENTS + "/d/status?fieldManager=su", dict(partial("d"), status={"replicas": 2}), APPLY),
    ("PATCH", DEPLOYMENTS + "/nope/status?fieldManager=st", dict(partial("nope"), status={"replicas": 2}), APPLY),
    ("PATCH", DEPLOYMENTS + "/d?fieldManager=main", dict(partial("d"), status={"replicas": 7}), APPLY),
    applied(SERVICES, service("s", {"port": 80, "protocol": "TCP", "targetPort": 80, "name": "h"}), "one"),
    applied(SERVICES, service("s", {"port": 81, "protocol": "TCP", "targetPort": 81, "name": "g"}), "two"),
    applied(SERVICES, service("s", {"port": 81, "targetPort": "x", "name": "g"}), "three"),
    applied(SERVICES, service("s", {"port": 81, "protocol": "TCP", "targetPort": 81, "name": "g"}), "two"),
    applied(PODS, {"apiVersion": "v1", "kind": "Pod", "metadata": {
        "name": "p", "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u"}]},
        "spec": dict(template(container("a"))["spec"], nodeName="n")}, "one"),
    ("PATCH", PODS + "/p/status?fieldManager=st", {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
     "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}, APPLY),
    ("PATCH", PODS + "/p/status?fieldManager=su", {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
     "status": {"conditions": [{"type": "Ready", "status": "False"}, {"type": "e.com/x", "status": "True"}]}}, APPLY),
    # A custom resource.
    applied(THINGS, thing("t", spec={"size": 1, "tags": ["a", "b"], "parts": [{"name": "x"}, {"name": "y", "port": 8}],
                                     "whole": {"a": "1"}, "map": {"m": "1"}, "free": {"f": {"g": [1, {"h": 2}]}}}), "one"),
    applied(THINGS, thing("t", spec={"size": 2, "tags": ["b", "c"], "whole": {"b": "1"}}), "two"),
    applied(THINGS, thing("t", spec={"tags": ["b", "c"], "parts": [{"name": "x", "port": 7, "note": "n"}],
                                     "map": {"n": "1"}, "free": {"f": {"i": 1}}, "either": "5"}), "two"),
    applied(THINGS, thing("t", spec={"tags": ["b"], "parts": [{"name": "y", "port": 8}], "free": {"f": {"g": []}}}), "one"),
    applied(THINGS, thing("t", spec={"either": 5, "plain": ["a"]}), "three"),
    applied(THINGS, thing("t", spec={"either": 5, "plain": ["a"]}), "three", FORCE),
    applied(THINGS, thing("t", spec={"nothing": 5}), "three"),
    applied(THINGS, thing("t", spec={"size": "x"}), "three"),
    applied(THINGS, thing("t", spec={"parts": [{"note": "x"}]}), "three"),
    applied(THINGS, thing("t", spec={"tags": ["a", "a"]}), "three"),
    applied(THINGS, thing("t", spec={"tags": [None]}), "three"),
    applied(THINGS, thing("t", spec={"size": None, "map": {}}), "four"),
    ("PATCH", THINGS + "/t/status?fieldManager=st", thing("t", status={"phase": "p", "conditions": [
        {"type": "A", "status": "True"}]}, spec={"size": 3}), APPLY),
    ("PATCH", THINGS + "/t/status?fieldManager=su", thing("t", status={"phase": "q"}), APPLY),
    ("PATCH", THINGS + "/t?fieldManager=up", {"spec": {"size": 9, "map": {"m": None}}}, MERGE),
    ("GET", THINGS + "/t"),
    # How other writes keep, set and remove owners. An empty list means no change, except for custom resources.
    *[("PATCH", THINGS + "/t?fieldManager=up", {"metadata": {"managedFields": list_}}, MERGE) for list_ in (
        None, [], [owner("y", {"f:spec": {"f:size": {}, "f:nothing": {}}})], [{"manager": "bad"}], [{}])],
    # A field without an owner is removed together with the fields that a manager owned, although the manager still owns
    # their parent, if only an empty list would be left.
    applied(THINGS, thing("w", spec={"size": 1, "tags": [], "plain": ["a"]}), "one"),
    ("PATCH", THINGS + "/w", {"metadata": {"managedFields": [owner("two", {"f:spec": {}}, "Apply")]}}, MERGE),
    applied(THINGS, thing("w", spec={}, metadata={"name": "w", "labels": {"a": "b"}}), "two"),
    # A manager owns all fields of an item but not the item, which has no owner or another one.
    applied(THINGS, thing("u", spec={"parts": [{"name": "x", "port": 8, "note": "n"}]}), "one"),
    ("PATCH", THINGS + "/u", {"metadata": {"managedFields": [owner("one", {"f:spec": {"f:parts": {
        'k:{"name":"x","port":8}': {"f:name": {}, "f:port": {}, "f:note": {}}}}}, "Apply")]}}, MERGE),
    applied(THINGS, thing("u", spec={"size": 1}), "one"),
    applied(THINGS, thing("v", spec={"parts": [{"name": "x", "port": 8}], "size": 1}), "one"),
    ("PATCH", THINGS + "/v", {"metadata": {"managedFields": [
        owner("one", {"f:spec": {"f:size": {}}}, "Apply"),
        owner("two", {"f:spec": {"f:parts": {'k:{"name":"x","port":8}': {}}}}, "Apply")]}}, MERGE),
    applied(THINGS, thing("v", spec={}), "one"),
    *[request for others in ([], [owner("two", {"f:metadata": {"f:ownerReferences": {'k:{"uid":"u"}': {}}}}, version="v1")])
      for request in (
          applied(CMS, cm("u", ownerReferences=[{"apiVersion": "v1", "kind": "Pod", "name": "x", "uid": "u"}]), "one", FORCE),
          ("PATCH", CMS + "/u", {"metadata": {"managedFields": [
              owner("one", {"f:metadata": {"f:ownerReferences": {'k:{"uid":"u"}': {
                  "f:apiVersion": {}, "f:kind": {}, "f:name": {}, "f:uid": {}}}}}, "Apply", "v1"), *others]}}, MERGE),
          applied(CMS, cm("u", {"a": "b"}), "one"), ("GET", CMS + "/u"))],
    # A CustomResourceDefinition, as operators apply their own.
    applied(CRDS, gadgets({"type": "object", "properties": {
        "a": {"type": "object", "default": {"x": {"y": 1}}, "properties": {"x": {
            "type": "object", "properties": {"y": {"type": "integer", "enum": [1, 2]}}}}},
        "b": {"type": "array", "default": [1], "items": {"type": "integer"}},
        "c": {"type": "object", "additionalProperties": {"type": "string"}},
        "d": {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}}}), "one"),
    applied(CRDS, gadgets({"type": "object", "properties": {
        "a": {"type": "object", "default": {"x": {}}, "properties": {"x": {"type": "object"}}},
        "b": {"type": "array", "items": {"type": "string"}}}}), "two"),
    applied(CRDS, gadgets({"type": "object", "properties": {
        "b": {"type": "array", "default": [2], "items": {"type": "integer"}}}}), "one"),
    applied("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {
        "name": "n", "labels": {"x": "y"}}}, "one"),
    applied("/apis/rbac.authorization.k8s.io/v1/clusterroles", {
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "c"},
        "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]}, "one"),
    applied(CORE + "/secrets", {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "type": "Opaque",
                                "data": {"a": "YQ=="}}, "one"),
    applied("/apis/networking.k8s.io/v1/namespaces/default/networkpolicies", {
        "apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": "p"},
        "spec": {"podSelector": {}, "policyTypes": ["Ingress"], "ingress": [{"ports": [
            {"port": 80, "protocol": "TCP"}]}]}}, "one"),
    applied("/apis/coordination.k8s.io/v1/namespaces/default/leases", {
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "l"},
        "spec": {"holderIdentity": "me", "renewTime": "2026-11-15T06:00:00.000000Z"}}, "one"),
    applied(CORE + "/serviceaccounts", {
        "apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "sa"},
        "secrets": [{"name": "s"}], "imagePullSecrets": [{"name": "i"}]}, "one"),
    applied(CORE + "/serviceaccounts", {
        "apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "sa"},
        "secrets": [{"name": "t"}], "imagePullSecrets": [{"name": "j"}]}, "two"),
]


def some(rng, choices, most):
    return rng.sample(choices, rng.randint(0, min(most, len(choices))))


def random_map(rng):
    return {key: rng.choice(["1", "2"]) for key in some(rng, "abcd", 3)}


def random_cm(rng):
    body = cm("r", **({"labels": random_map(rng)} if rng.random() < 0.4 else {}))
    if rng.random() < 0.8:
        body["data"] = random_map(rng)
    if rng.random() < 0.2:
        body["metadata"]["finalizers"] = ["e.com/" + x for x in some(rng, "abc", 2)]
    if rng.random() < 0.2:
        body["metadata"]["annotations"] = random_map(rng)
    return body


def random_thing(rng):
    spec = {}
    options = {
        "size": lambda: rng.randint(1, 2), "text": lambda: rng.choice(["x", "y"]),
        "tags": lambda: some(rng, ["a", "b", "c", "d"], 3), "plain": lambda: some(rng, ["a", "b"], 2),
        "parts": lambda: [{"name": n, **({"port": p} if p else {}),
                           **({"note": rng.choice("mn")} if rng.random() < 0.5 else {}),
                           **({"more": random_map(rng)} if rng.random() < 0.4 else {})}
                          for n, p in some(rng, [("x", 0), ("x", 8), ("y", 7), ("z", 9)], 3)],
        "whole": lambda: {k: "1" for k in some(rng, "ab", 2)}, "map": lambda: random_map(rng),
        "free": lambda: rng.choice([{}, {"f": random_map(rng)}, {"f": [1, {"g": 2}]}, {"f": "x", "h": {"i": 1}}]),
        "either": lambda: rng.choice([5, "5", 6])}
    for name in some(rng, sorted(options), 5):
        spec[name] = options[name]()
    body = thing("r", spec=spec)
    if rng.random() < 0.3:
        body["metadata"]["labels"] = random_map(rng)
    return body


def random_deployment(rng):
    """A deployment with all required fields, so that both servers accept it."""
    containers = [container(n, **({"env": [{"name": e, "value": rng.choice("12")} for e in some(rng, "EFG", 3)]}
                                  if rng.random() < 0.7 else {}),
                            **({"args": some(rng, ["p", "q"], 2)} if rng.random() < 0.3 else {}),
                            **({"ports": [{"containerPort": p, "protocol": t} for p, t in some(
                                rng, [(80, "TCP"), (80, "UDP"), (81, "TCP")], 3)]} if rng.random() < 0.5 else {}))
                  for n in ["a", *some(rng, "bcd", 2)]]
    rng.shuffle(containers)
    return deployment("r", *containers, replicas=rng.randint(1, 3), progressDeadlineSeconds=600, revisionHistoryLimit=10,
                      strategy={"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 1}})


def without_empty(value):
    """Removes empty lists and maps: in writes other than applies Vigil stores them as sent, while Go's types drop them."""
    if isinstance(value, dict):
        return {k: without_empty(v) for k, v in value.items() if v not in ({}, []) or k in ("resources", "securityContext")}
    return [without_empty(v) for v in value] if isinstance(value, list) else value


KINDS = [(CMS, random_cm), (THINGS, random_thing), (DEPLOYMENTS, random_deployment)]


def random_requests(seed, count):
    """Requests of several managers that apply, and of others that patch and reset."""
    rng = random.Random(seed)
    path, make = KINDS[seed % len(KINDS)]
    yield applied(path, make(rng), "m0")
    for _ in range(count):
        kind = rng.random()
        body = make(rng)
        if kind < 0.75:
            yield applied(path, body, f"m{rng.randint(0, 3)}", *([FORCE] if rng.random() < 0.5 else []))
        elif kind < 0.95:
            part = without_empty({k: v for k, v in body.items() if k not in ("apiVersion", "kind", "metadata")})
            yield ("PATCH", f"{path}/r?fieldManager=u{rng.randint(0, 2)}", part, MERGE)
        else:
            yield ("PATCH", f"{path}/r?fieldManager=u0", {"metadata": {"managedFields": [{}]}}, MERGE)
    yield ("PATCH", f"{path}/r", {"metadata": {"finalizers": None}}, MERGE)
    yield ("DELETE", f"{path}/r")


def without_times(value):
    """Objects with managedFields, without the values in which any two servers differ."""
    if isinstance(value, dict):
        out = {k: without_times(v) for k, v in value.items() if k != "managedFields"}
        if isinstance(value.get("managedFields"), list):
            entries = [{k: ("T" if k == "time" else v) for k, v in entry.items()} for entry in value["managedFields"]
                       if entry.get("manager") != "kube-apiserver"]  # its controllers write at any time
            out["managedFields"] = sorted(entries, key=lambda e: json.dumps({**e, "fieldsV1": 0}, sort_keys=True))
        for key in ("uid", "resourceVersion", "creationTimestamp"):
            if out.get(key) and not isinstance(out[key], dict):
                out[key] = "*"
        return out
    return [without_times(v) for v in value] if isinstance(value, list) else value


def what_counts(answer):
    code, body = answer
    if not isinstance(body, dict) or body.get("kind") == "Status":
        body = normal(body)
        details = body.get("details") if isinstance(body, dict) else None
        if details and "causes" in details:  # Kubernetes returns them in random order
            details["causes"] = sorted(details["causes"], key=str)
        if isinstance(body, dict) and "errors:" in body.get("message", ""):
            body["message"] = sorted(body["message"].split("\n"))
        return code, body
    body = without_times(body)
    if body["kind"] == "CustomResourceDefinition":
        body.pop("status", None)  # written at any time, too
    return code, body


def common_part(theirs, ours):
    """The part of Kubernetes' value that is also in Vigil's: Kubernetes adds defaults, and Vigil does not."""
    if isinstance(theirs, dict) and isinstance(ours, dict):
        return {k: common_part(v, ours[k]) for k, v in theirs.items() if k in ours}
    if isinstance(theirs, list) and isinstance(ours, list) and len(theirs) == len(ours):
        return [common_part(a, b) for a, b in zip(theirs, ours)]
    return theirs


class SameApplies(SideBySide):
    client = Client

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        for client in (cls.ours, cls.theirs):
            code, body = client.send("POST", CRDS, CRD)
            assert code == 201, body
            end = time.monotonic() + apiserver_test.READY_SECONDS
            while client.send("GET", THINGS)[0] != 200:
                assert time.monotonic() < end, "the kind is not served"
                time.sleep(0.05)

    def compare(self, case):
        theirs, ours = what_counts(self.theirs.send(*case)), what_counts(self.ours.send(*case))
        if theirs[0] < 300 and theirs[1]["kind"] in DEFAULTED:
            metadata = theirs[1]["metadata"]
            theirs = theirs[0], dict(common_part(theirs[1], ours[1]), metadata=metadata)
            for side in (ours, theirs):
                side[1]["metadata"].pop("generation", None)
        self.assertEqual(ours, theirs)

    def test_every_answer_to_an_apply_equals_that_of_a_real_apiserver(self):
        for case in CASES:
            with self.subTest(case=str(case)[:200]):
                self.compare(case)

    def test_random_applies_have_the_same_results(self):
        first, rounds = int(os.environ.get("SEED", "1")), int(os.environ.get("ROUNDS", "6"))
        for seed in range(first, first + rounds):
            for at, case in enumerate(random_requests(seed, 15)):
                with self.subTest(seed=seed, at=at, case=str(case)[:600]):
                    self.compare(case)


if __name__ == "__main__":
    unittest.main()
