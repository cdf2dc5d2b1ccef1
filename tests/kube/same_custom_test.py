#!/usr/bin/python3
"""Sends CustomResourceDefinitions and their objects to a real kube-apiserver and to Vigil's own Kubernetes API. Every code,
Status, object and table must be the same. tools/build-kube builds the real kube-apiserver."""
import copy
import json
import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/live"))
sys.path.insert(0, str(ROOT / "tests/kube"))
from side_by_side import SideBySide  # noqa: E402
from same_writes_test import JSON_PATCH, MERGE, STRATEGIC, TABLE, Client, normal  # noqa: E402

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
LAMPS = "/apis/example.com/v1/namespaces/default/lamps"
OLD_LAMPS = "/apis/example.com/v1beta1/namespaces/default/lamps"
BOXES = "/apis/example.com/v1/boxes"
SETS = "/apis/example.com/v1/namespaces/default/sets"
PARTIAL = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"

TEXT, NUMBER, WHOLE, FLAG = {"type": "string"}, {"type": "number"}, {"type": "integer"}, {"type": "boolean"}

LAMP_SPEC = {
    "type": "object",
    "required": ["color"],
    "properties": {
        "color": {"type": "string", "enum": ["red", "green", "blue"]},
        "watts": {"type": "integer", "minimum": 1, "maximum": 100, "default": 40},
        "ratio": {"type": "number", "minimum": 0, "exclusiveMinimum": True, "maximum": 1.5},
        "steps": {"type": "integer", "multipleOf": 5},
        "name": {"type": "string", "minLength": 2, "maxLength": 5, "pattern": "^[a-z]+$"},
        "port": {"x-kubernetes-int-or-string": True},
        "replicas": {"type": "integer", "default": 1},
        "on": {"type": "boolean", "default": True},
        "maybe": {"type": "string", "nullable": True},
        "when": {"type": "string", "format": "date-time"},
        "day": {"type": "string", "format": "date"},
        "id": {"type": "string", "format": "uuid"},
        "ip": {"type": "string", "format": "ipv4"},
        "small": {"type": "integer", "format": "int32"},
        "odd": {"type": "string", "format": "nothing"},
        "list": {"type": "array", "minItems": 1, "maxItems": 3, "items": {"type": "string"}},
        "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        "map": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
                "items": {"type": "object", "required": ["k"],
                          "properties": {"k": TEXT, "v": {"type": "string", "default": "none"}}}},
        "labels": {"type": "object", "additionalProperties": TEXT, "minProperties": 1, "maxProperties": 2},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True,
                 "properties": {"known": {"type": "object", "properties": {"a": TEXT}}}},
        "template": {"type": "object", "x-kubernetes-embedded-resource": True,
                     "x-kubernetes-preserve-unknown-fields": True},
        "nested": {"type": "object", "default": {}, "properties": {"deep": {"type": "string", "default": "d"}}},
        "either": {"type": "object", "properties": {"a": TEXT, "b": TEXT},
                   "oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
        "any": {"type": "object", "properties": {"a": WHOLE, "b": WHOLE},
                "anyOf": [{"properties": {"a": {"minimum": 5}}, "required": ["a"]}, {"required": ["b"]}]},
        "all": {"type": "object", "properties": {"a": WHOLE},
                "allOf": [{"properties": {"a": {"minimum": 5}}}, {"properties": {"a": {"maximum": 7}}}]},
        "none": {"type": "object", "properties": {"a": WHOLE}, "not": {"required": ["a"]}},
    },
}
LAMP_SCHEMA = {"type": "object", "properties": {
    "spec": LAMP_SPEC,
    "status": {"type": "object", "properties": {
        "lit": FLAG, "replicas": {"type": "integer", "minimum": 0}, "selector": TEXT}},
}}
COLUMNS = [
    {"name": "Color", "type": "string", "jsonPath": ".spec.color", "description": "what it looks like"},
    {"name": "Watts", "type": "integer", "jsonPath": ".spec.watts"},
    {"name": "Ratio", "type": "number", "jsonPath": ".spec.ratio", "priority": 1},
    {"name": "On", "type": "boolean", "jsonPath": ".spec.on"},
    {"name": "First", "type": "string", "jsonPath": ".spec.list[0]"},
    {"name": "All", "type": "string", "jsonPath": ".spec.list"},
    {"name": "V", "type": "string", "jsonPath": ".spec.map[?(@.k==\"b\")].v"},
    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
]


def definition(plural="lamps", kind="Lamp", versions=None, scope="Namespaced", group="example.com", **names):
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{plural}.{group}"},
            "spec": {"group": group, "scope": scope, "names": dict({"plural": plural, "kind": kind}, **names),
                     "versions": versions or [version()]}}


def version(name="v1", schema=None, **more):
    base = {"name": name, "served": True, "storage": True,
            "schema": {"openAPIV3Schema": schema or {"type": "object"}}}
    return dict(base, **more)


def of(spec):
    """A definition in which the objects' spec has this schema."""
    return definition("bads", "Bad", [version(schema={"type": "object", "properties": {"spec": spec}})])


LAMP = definition(
    versions=[version(schema=LAMP_SCHEMA, additionalPrinterColumns=COLUMNS,
                      selectableFields=[{"jsonPath": ".spec.color"}, {"jsonPath": ".spec.watts"}],
                      subresources={"status": {}, "scale": {"specReplicasPath": ".spec.replicas",
                                                            "statusReplicasPath": ".status.replicas",
                                                            "labelSelectorPath": ".status.selector"}}),
              version("v1beta1", schema=dict(LAMP_SCHEMA, description="as it was"), storage=False)],
    shortNames=["lp"], categories=["all", "light"])
BOX = definition("boxes", "Box", [version(schema={"type": "object", "x-kubernetes-preserve-unknown-fields": True})],
                 scope="Cluster")
# Its objects may lack a spec, so that a write to their scale creates one.
SET = definition("sets", "Set", [version(
    schema={"type": "object", "properties": {
        "spec": {"type": "object", "properties": {
            "size": {"type": "integer", "default": 3}, "replicas": {"type": "integer", "minimum": 0},
            "inner": {"type": "object", "default": {}, "properties": {"deep": {"type": "string", "default": "d"}}}}},
        "status": {"type": "object", "properties": {"replicas": WHOLE}}}},
    subresources={"status": {}, "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}})])


def change(base, path, value):
    """A copy with another value at a path; None removes the path."""
    made = copy.deepcopy(base)
    at = made
    steps = path.split(".")
    for step in steps[:-1]:
        at = at[int(step)] if isinstance(at, list) else at[step]
    last = int(steps[-1]) if isinstance(at, list) else steps[-1]
    if value is None:
        del at[last]
    else:
        at[last] = value
    return made


PLAIN = definition("bads", "Bad")
BAD_DEFINITIONS = [
    change(PLAIN, "metadata.name", "other.example.com"),
    change(PLAIN, "spec.group", ""),
    change(PLAIN, "spec.group", "nodot"),
    change(PLAIN, "spec.scope", "Odd"),
    change(PLAIN, "spec.scope", ""),
    change(PLAIN, "spec.names.kind", ""),
    change(PLAIN, "spec.names.kind", "bad_kind"),
    change(PLAIN, "spec.names.plural", "Bads"),
    change(PLAIN, "spec.names", {"plural": "bads", "kind": "Bad", "listKind": "Bad"}),
    change(PLAIN, "spec.names", {"plural": "bads", "kind": "Bad", "shortNames": ["B_"], "categories": ["-"]}),
    change(PLAIN, "spec.versions", []),
    change(PLAIN, "spec.versions.0.storage", False),
    change(PLAIN, "spec.versions.0.name", "1"),
    change(PLAIN, "spec.versions.0.schema", {}),
    change(PLAIN, "spec.versions", [version(), version()]),
    change(PLAIN, "spec.versions", [version(), version("v2")]),
    change(PLAIN, "spec.versions.0.schema.openAPIV3Schema", {"properties": {"a": TEXT}}),
    change(PLAIN, "spec.versions.0.schema.openAPIV3Schema", {"type": "string"}),
    change(PLAIN, "spec.versions.0.schema.openAPIV3Schema", {"type": "object", "nullable": True}),
    change(PLAIN, "spec.versions.0.additionalPrinterColumns", [{"name": "a", "type": "odd", "jsonPath": "x"}]),
    change(PLAIN, "spec.versions.0.additionalPrinterColumns", [{"name": "", "type": "", "jsonPath": ""}]),
    change(PLAIN, "spec.versions.0.subresources", {"scale": {"specReplicasPath": "", "statusReplicasPath": ".spec.x"}}),
    change(PLAIN, "spec.conversion", {"strategy": "Odd"}),
    change(PLAIN, "spec.preserveUnknownFields", True),
    of({}),
    of({"type": "odd"}),
    of({"type": "array"}),
    of({"type": "object", "properties": {"a": {"type": "array", "items": {}}}}),
    of({"type": "object", "properties": {"a": {}}}),
    of({"type": "string", "pattern": "("}),
    of({"type": "string", "default": 5}),
    of({"type": "object", "properties": {"a": {"type": "integer", "maximum": 5, "default": 7}}}),
    of({"type": "object", "default": {"unknown": 1}, "properties": {"a": TEXT}}),
    of({"type": "array", "items": TEXT, "uniqueItems": True}),
    of({"type": "object", "properties": {"a": TEXT}, "additionalProperties": TEXT}),
    of({"type": "object", "properties": {"a": TEXT}, "allOf": [{"type": "object"}]}),
    of({"type": "object", "properties": {"a": TEXT}, "anyOf": [{"properties": {"a": {"description": "d"}}}]}),
    of({"type": "object", "x-kubernetes-embedded-resource": True}),
    of({"type": "object", "x-kubernetes-preserve-unknown-fields": False}),
    of({"type": "array", "items": {"type": "object"}, "x-kubernetes-list-type": "map"}),
    of({"type": "array", "items": {"type": "object", "properties": {"k": TEXT}}, "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["k"]}),
    of({"type": "array", "items": TEXT, "x-kubernetes-list-type": "odd"}),
    of({"type": "object", "$ref": "#/x"}),
    definition("bads", "Bad", [version(schema={"type": "object", "properties": {"metadata": {
        "type": "object", "properties": {"labels": {"type": "object"}}}}})]),
    definition("bads", "Bad", [version(schema={"type": "object", "properties": {"kind": {"type": "integer"}}})]),
    definition("bads", "Bad", group="bad.k8s.io"),
]


def lamp(called, status=None, api="v1", **spec):
    made = {"apiVersion": f"example.com/{api}", "kind": "Lamp", "metadata": {"name": called},
            "spec": dict({"color": "red"}, **spec)}
    return dict(made, status=status) if status is not None else made


def without(name, key):
    made = lamp(name)
    del made[key]
    return made


CASES = [
    ("POST", LAMPS, lamp("a", watts=60, list=["x", "y"], map=[{"k": "a"}, {"k": "b", "v": "bee"}], status={"lit": True})),
    ("POST", LAMPS, lamp("a")),
    ("POST", LAMPS, lamp("b", color="blue", unknown=1, nested={"deep": "x", "more": 1}, free={"x": {"y": 1}, "known": {"a": "1", "b": 2}})),
    ("POST", LAMPS + "?fieldValidation=Strict", lamp("s", unknown=1, map=[{"k": "a", "z": 1}])),
    ("POST", LAMPS + "?dryRun=All", dict(lamp("f"), metadata={"name": "f", "finalizers": ["tidy", "a.example.com", "e.com/x"]})),
    ("POST", LAMPS + "?dryRun=All", dict(lamp("f"), metadata={"name": "f", "finalizers": ["-/x"]})),
    ("POST", LAMPS + "?fieldValidation=Strict", dict(lamp("s"), extra=1)),
    ("POST", LAMPS + "?fieldValidation=Ignore", lamp("ignored", unknown=1)),
    ("POST", LAMPS, lamp("bad", color="pink")),
    ("POST", LAMPS, lamp("bad", color=None)),
    ("POST", LAMPS, without("bad", "spec")),
    ("POST", LAMPS, {"apiVersion": "example.com/v1", "kind": "Lamp", "metadata": {"name": "bad"}, "spec": {}}),
    ("POST", LAMPS, without("bad", "kind")),
    ("POST", LAMPS, without("bad", "apiVersion")),
    ("POST", LAMPS, dict(lamp("bad"), kind="Other")),
    ("POST", LAMPS, dict(lamp("bad"), apiVersion="example.com/v7")),
    ("POST", LAMPS, dict(lamp("bad"), apiVersion="v1", kind="Pod")),
    ("POST", LAMPS, dict(lamp("bad"), spec="text")),
    ("POST", LAMPS, lamp("Bad_Name")),
    ("POST", LAMPS, lamp("bad", watts=0)),
    ("POST", LAMPS, lamp("bad", watts=101)),
    ("POST", LAMPS, lamp("bad", watts="many")),
    ("POST", LAMPS, lamp("bad", watts=1.5)),
    ("POST", LAMPS, lamp("bad", ratio=0)),
    ("POST", LAMPS, lamp("bad", ratio=1.75)),
    ("POST", LAMPS, lamp("bad", steps=7)),
    ("POST", LAMPS, lamp("bad", name="x")),
    ("POST", LAMPS, lamp("bad", name="xxxxxx")),
    ("POST", LAMPS, lamp("bad", name="ABC")),
    ("POST", LAMPS, lamp("bad", port=True)),
    ("POST", LAMPS, lamp("bad", on="yes")),
    ("POST", LAMPS, lamp("bad", when="yesterday")),
    ("POST", LAMPS, lamp("bad", day="2026-02-30")),
    ("POST", LAMPS, lamp("bad", id="none")),
    ("POST", LAMPS, lamp("bad", ip="1.2.3")),
    ("POST", LAMPS, lamp("bad", small=3000000000)),
    ("POST", LAMPS, lamp("bad", list=[])),
    ("POST", LAMPS, lamp("bad", list=["a", "b", "c", "d"])),
    ("POST", LAMPS, lamp("bad", list=["a", 1])),
    ("POST", LAMPS, lamp("bad", set=["a", "b", "a"])),
    ("POST", LAMPS, lamp("bad", map=[{"k": "a"}, {"k": "a"}])),
    ("POST", LAMPS, lamp("bad", map=[{"v": "a"}])),
    ("POST", LAMPS, lamp("bad", labels={})),
    ("POST", LAMPS, lamp("bad", labels={"a": "1", "b": "2", "c": "3"})),
    ("POST", LAMPS, lamp("bad", labels={"a": 1})),
    ("POST", LAMPS, lamp("bad", template={"a": 1})),
    ("POST", LAMPS, lamp("bad", either={})),
    ("POST", LAMPS, lamp("bad", either={"a": "1", "b": "2"})),
    ("POST", LAMPS, lamp("bad", any={"a": 1})),
    ("POST", LAMPS, lamp("bad", all={"a": 9})),
    ("POST", LAMPS, lamp("bad", all={"a": 1})),
    ("POST", LAMPS, lamp("bad", none={"a": 9})),
    ("POST", LAMPS, lamp("bad", replicas=-1)),
    ("POST", LAMPS, lamp("bad", watts=0, name="x", ratio=9)),
    ("POST", LAMPS, lamp("ok", port="http", maybe=None, when="2026-11-15T08:00:00Z", day="2026-02-28", odd="x", ip="1.2.3.4",
                         id="123e4567-e89b-12d3-a456-426614174000", set=["a", "b"], either={"a": "1"}, any={"b": 1},
                         all={"a": 6}, none={}, labels={"a": "1"}, steps=10, watts=None,
                         template={"apiVersion": "v1", "kind": "Pod", "spec": {"x": 1}})),
    ("POST", OLD_LAMPS, lamp("old", api="v1beta1")),
    ("POST", OLD_LAMPS, lamp("old2")),
    ("GET", LAMPS + "/old"),
    ("GET", OLD_LAMPS + "/a"),
    ("GET", OLD_LAMPS + "/none"),
    ("GET", LAMPS),
    ("GET", OLD_LAMPS),
    ("GET", "/apis/example.com/v1/lamps"),
    ("GET", "/apis/example.com/v7/lamps"),
    ("GET", LAMPS + "?fieldSelector=spec.color%3Dblue"),
    ("GET", LAMPS + "?fieldSelector=spec.watts%3D40,spec.color!%3Dblue"),
    ("GET", LAMPS + "?fieldSelector=spec.name%3Dblue"),
    ("GET", OLD_LAMPS + "?fieldSelector=spec.color%3Dblue"),
    ("GET", LAMPS + "?labelSelector=none"),
    ("GET", LAMPS, None, "application/json", TABLE),
    ("GET", LAMPS + "/a", None, "application/json", TABLE),
    ("GET", OLD_LAMPS, None, "application/json", TABLE),
    ("GET", LAMPS, None, "application/json", PARTIAL),
    ("PUT", LAMPS + "/a", lamp("a")),
    ("PATCH", LAMPS + "/a", {"spec": {"watts": 70}}, MERGE),
    ("PATCH", LAMPS + "/a", {"spec": {"watts": 70}}, MERGE),
    ("PATCH", LAMPS + "/a", {"spec": {"watts": None}}, MERGE),
    ("PATCH", LAMPS + "/a", {"spec": {"watts": 700}}, MERGE),
    ("PATCH", LAMPS + "/a", {"spec": {"unknown": 700}}, MERGE),
    ("PATCH", LAMPS + "/a?fieldValidation=Strict", {"spec": {"unknown": 700}}, MERGE),
    ("PATCH", LAMPS + "/a", {"metadata": {"labels": {"a": "b"}}}, MERGE),
    ("PATCH", LAMPS + "/a", {"status": {"lit": True}}, MERGE),
    ("PATCH", LAMPS + "/a", [{"op": "replace", "path": "/spec/color", "value": "green"}], JSON_PATCH),
    ("PATCH", LAMPS + "/a", {"spec": {"color": "red"}}, STRATEGIC),  # Kubernetes' list of formats is longer: see below
    ("PATCH", OLD_LAMPS + "/a", {"spec": {"color": "red"}}, MERGE),
    ("PATCH", LAMPS + "/a/status", {"status": {"lit": True, "replicas": 2, "selector": "a=b"}, "spec": {"color": "blue"}}, MERGE),
    ("PATCH", LAMPS + "/a/status", {"status": {"replicas": -2}}, MERGE),
    ("PATCH", LAMPS + "/a/status", {"status": {"lit": "no"}}, MERGE),
    ("GET", LAMPS + "/a/status"),
    ("GET", LAMPS + "/a/scale"),
    ("PATCH", LAMPS + "/a/scale", {"spec": {"replicas": 5}}, MERGE),
    ("PUT", LAMPS + "/a/scale", {"kind": "Scale", "apiVersion": "autoscaling/v1",
                                 "metadata": {"name": "a", "namespace": "default"}, "spec": {"replicas": 6}}),
    ("GET", LAMPS + "/a"),
    ("GET", LAMPS + "/a/nothing"),
    ("GET", LAMPS + "/none/status"),
    ("POST", BOXES, {"apiVersion": "example.com/v1", "kind": "Box", "metadata": {"name": "b"}, "any": {"thing": [1, 2.5]}}),
    ("POST", BOXES, {"apiVersion": "example.com/v1", "kind": "Box", "metadata": {"name": "b2", "namespace": "x"}}),
    ("PATCH", BOXES + "/b", {"status": {"x": 1}}, MERGE),
    ("PATCH", BOXES + "/b/status", {"status": {"x": 1}}, MERGE),
    ("GET", BOXES, None, "application/json", TABLE),
    ("DELETE", BOXES + "/b2"),
    ("DELETE", BOXES + "/b2"),
    ("DELETE", LAMPS + "/ok"),
    ("DELETE", LAMPS + "?fieldSelector=spec.color%3Dblue"),
    ("GET", "/apis/example.com"),
    ("GET", "/apis/example.com/v1"),
    ("GET", "/apis/example.com/v1beta1"),
    ("GET", "/apis/example.com/v7"),
    *[request for how in (
        ("PATCH", SETS + "/s/scale", {"spec": {"replicas": 2}}, MERGE),
        ("PUT", SETS + "/s/scale", {"kind": "Scale", "apiVersion": "autoscaling/v1",
                                    "metadata": {"name": "s", "namespace": "default"}, "spec": {"replicas": 2}}),
        ("PATCH", SETS + "/s/scale", {"spec": {"replicas": 0}}, MERGE),
        ("PATCH", SETS + "/s/scale", {"spec": {"replicas": -1}}, MERGE),
        ("PATCH", SETS + "/s", {"spec": {"replicas": 2}}, MERGE))
      for request in (
          ("POST", SETS, {"apiVersion": "example.com/v1", "kind": "Set", "metadata": {"name": "s"}}),
          ("GET", SETS + "/s/scale"),
          how,
          ("GET", SETS + "/s"),
          ("DELETE", SETS + "/s"))],
    ("POST", LAMPS, '{"apiVersion":"example.com/v1","kind":"Lamp","metadata":{"name":"\\u0065sc","labels":{"\\u0061":"\\u0062"}},'
                    '"spec":{"\\u0063olor":"\\u0062lue"}}'),
    ("GET", LAMPS + "?labelSelector=a%3Db"),
    ("GET", LAMPS + "?fieldSelector=spec.color%3Dblue"),
    ("GET", LAMPS + "?fieldSelector=metadata.name%3Desc"),
    ("DELETE", LAMPS + "?fieldSelector=spec.color%3Dblue&labelSelector=a%3Db"),
    ("POST", LAMPS + "?fieldValidation=Strict", '{"apiVersion":"example.com/v1","kind":"Lamp","metadata":{"name":"st","zz":1},'
                                                '"spec":{"color":"red","color":"red","b":1,"a":1},"zz":1,"yy":2}'),
    ("PUT", LAMPS + "/none", dict(lamp("none"), metadata={"name": "none", "resourceVersion": "1"})),
    ("POST", LAMPS + "?dryRun=All", dict(lamp("dry"), metadata={"name": "dry", "resourceVersion": "5"})),
    ("POST", LAMPS, dict(lamp("last"), metadata={"name": "last", "finalizers": ["e.com/x"]})),
    ("DELETE", LAMPS + "/last"),
    ("PATCH", LAMPS + "/last", {"metadata": {"finalizers": None}}, MERGE),
    ("PUT", CRDS + "/boxes.example.com", BOX),
    ("PATCH", CRDS + "/boxes.example.com", {"spec": {"scope": "Namespaced"}}, MERGE),
    ("PATCH", CRDS + "/boxes.example.com", {"spec": {"names": {"kind": "Other"}}}, MERGE),
    ("PATCH", CRDS + "/boxes.example.com", {"spec": {"names": {"plural": "others"}}}, MERGE),
    ("PATCH", CRDS + "/boxes.example.com", {"spec": {"group": "other.com"}}, MERGE),
]


AGES = {"Age"}
PATCHED = re.compile(r'patch: Invalid value: ".*": strict', re.S)  # the object as Go prints it


def what_counts(answer):
    """The answer with its causes sorted, because Go's maps have no order, and without ages."""
    code, body = answer
    body = normal(body)
    if not isinstance(body, dict):
        return code, body
    causes = body.get("details", {}).get("causes", []) if body.get("kind") == "Status" else []
    if len(causes) > 1:
        causes.sort(key=json.dumps)
        body["message"] = body["message"].split(" is invalid: ")[0]
    body["message"] = PATCHED.sub("patch: OBJECT: strict", body.get("message", ""))
    if "patch: OBJECT" in body["message"]:
        body.pop("details", None)  # repeats the message, which was made comparable above
    if isinstance(body.get("metadata"), dict) and body["metadata"].get("continue") == "":
        del body["metadata"]["continue"]
    if body.get("kind") == "Table":
        for column in body["columnDefinitions"]:
            if column["name"] in ("Name", "Age"):
                del column["description"]  # a long text that Vigil does not have
        ages = [i for i, c in enumerate(body["columnDefinitions"]) if c["name"] in AGES]
        for row in body["rows"]:
            for i in ages:
                row["cells"][i] = "*"
    if body.get("kind") == "CustomResourceDefinition":
        body.pop("status", None)
        body = {"kind": body["kind"], "metadata": body["metadata"], "spec": body["spec"]}
    if body.get("kind") == "APIResourceList":
        for resource in body["resources"]:
            resource.pop("storageVersionHash", None)
            resource["verbs"] = sorted(resource["verbs"])
        body["resources"].sort(key=lambda r: r["name"])
    return code, body if code != 415 else body["reason"]


class SameCustom(SideBySide):
    client = Client

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.wait_for(CRDS)
        for made in (LAMP, BOX, SET):
            for client in (cls.ours, cls.theirs):
                code, body = client.send("POST", CRDS, made)
                assert code == 201, body
            cls.wait_for(f"/apis/example.com/v1/{made['spec']['names']['plural']}")

    def test_bad_definitions_are_refused_alike(self):
        for bad in BAD_DEFINITIONS:
            self.compare(what_counts, "POST", CRDS, bad)

    def test_objects_are_answered_alike(self):
        for case in CASES:
            self.compare(what_counts, *case)


if __name__ == "__main__":
    unittest.main()
