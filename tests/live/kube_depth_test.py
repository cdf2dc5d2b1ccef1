#!/usr/bin/python3
"""Nested values: at the limit they are accepted, past it they are refused in every kind of request, and none of them
crashes the server."""
import http.client
import json
import unittest

import protobuf as pb
from kube import WAIT_SECONDS, KubeServer
from server import LiveTest, only_vigil

LEVELS = 256  # of nested arrays and objects
BRACKETS = 100_000  # enough to overflow the stack of a recursive parser
CMS = "/api/v1/namespaces/default/configmaps"
THINGS = "/apis/deep.example/v1/namespaces/default/things"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
JSON, YAML, PROTOBUF = "application/json", "application/yaml", "application/vnd.kubernetes.protobuf"
MERGE, STRATEGIC, PATCH, APPLY = ("application/merge-patch+json", "application/strategic-merge-patch+json",
                                  "application/json-patch+json", "application/apply-patch+yaml")
FREE = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def definition(name="things", schema=None):
    versions = [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema or FREE}}]
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{name}.deep.example"},
            "spec": {"group": "deep.example", "scope": "Namespaced", "versions": versions,
                     "names": {"plural": name, "singular": name[:-1], "kind": name[:-1].capitalize(),
                               "listKind": name[:-1].capitalize() + "List"}}}


def nested(levels, inner="1"):
    return '{"a":' * levels + inner + "}" * levels


def thing(name, levels):
    """An object with this many levels, as text, because Python's JSON writer cannot nest as deep."""
    return (f'{{"apiVersion":"deep.example/v1","kind":"Thing","metadata":{{"name":"{name}"}},'
            f'"spec":{nested(levels - 1)}}}')


@only_vigil
class Depth(LiveTest):
    def setUp(self):
        super().setUp()
        self.kube = KubeServer(self.scratch / "data").start()
        self.addCleanup(self.kube.stop)
        self.addCleanup(self.kube.close)
        self.connection = http.client.HTTPConnection("127.0.0.1", self.kube.kube_port, timeout=WAIT_SECONDS)
        self.addCleanup(self.connection.close)

    def call(self, method, path, body=None, kind=JSON, accept=JSON):
        """Returns the code and the body as bytes, because Python cannot parse deep JSON."""
        if not isinstance(body, (str, bytes, type(None))):
            body = json.dumps(body)
        try:
            self.connection.request(method, path, body, {"Content-Type": kind, "Accept": accept})
            response = self.connection.getresponse()
            return response.status, response.read()
        except http.client.IncompleteRead:  # a list ends early at a value that cannot be decoded
            self.connection.close()
            return response.status, b""

    def check(self, codes, *args, **more):
        code, body = self.call(*args, **more)
        self.assertIn(code, codes, (args[:2], body[:300]))
        return body

    def define(self):
        self.check([201], "POST", DEFINITIONS, definition())
        for _ in range(200):
            if self.call("GET", THINGS)[0] == 200:
                return
        self.fail("the definition is not served")

    def test_bodies_at_the_limit_and_past_it(self):
        self.define()
        for levels, codes in ((LEVELS, [201]), (LEVELS + 1, [400]), (BRACKETS, [400])):
            for kind in (JSON, YAML):
                name = f"t{levels}-{kind[-4:]}"
                answer = self.check(codes, "POST", THINGS, thing(name, levels), kind=kind)
                if codes == [201]:
                    revision = answer.split(b'"resourceVersion":"')[1].split(b'"')[0].decode()
                    again = thing(name, levels).replace('"metadata":{', f'"metadata":{{"resourceVersion":"{revision}",')
                    self.check([200], "PUT", f"{THINGS}/{name}", again, kind=kind)
                    for accept in (JSON, YAML, JSON + ";as=Table;v=v1;g=meta.k8s.io"):
                        self.check([200], "GET", f"{THINGS}/{name}", accept=accept)
                    self.check([200], "GET", THINGS)
                    self.check([200], "DELETE", f"{THINGS}/{name}")
        # YAML's own ways to nest: lists in blocks, explicit keys, nested anchors.
        for body in ("- " * BRACKETS, "? " * BRACKETS, "[" * BRACKETS, "{" * BRACKETS, "a: &a [[[[*a]]]]",
                     "".join(f"{' ' * i}a:\n" for i in range(LEVELS + 1)),
                     "a0: &a0 [" + "[" * 200 + "]" * 200 + "]\na1: &a1 " + "[" * 200 + "*a0" + "]" * 200):
            self.check([400], "POST", THINGS, body, kind=YAML)

    def test_definitions_at_the_limit_and_past_it(self):
        """Schemas are the only recursive type in Kubernetes."""
        def body(levels):
            text = '{"type":"object"}'
            for _ in range((levels - 6) // 2):
                text = '{"type":"object","properties":{"a":%s}}' % text
            return json.dumps(definition("deeps", "@")).replace('"@"', text)

        self.check([400], "POST", DEFINITIONS, body(LEVELS + 2))
        self.check([201], "POST", DEFINITIONS, body(LEVELS))
        self.check([200], "GET", f"{DEFINITIONS}/deeps.deep.example", accept=f"{PROTOBUF}, {JSON}")
        self.check([200], "GET", "/openapi/v3/apis/deep.example/v1")
        self.check([200], "GET", "/openapi/v2")

    def test_patches_at_the_limit_and_past_it(self):
        self.define()
        self.check([201], "POST", THINGS, thing("base", 3))
        path = f"{THINGS}/base"
        for levels, codes in ((LEVELS, [200]), (LEVELS + 1, [400]), (BRACKETS, [400])):
            self.check(codes, "PATCH", path, f'{{"spec":{nested(levels - 1)}}}', kind=MERGE)
            # The value is part of an operation in a list, which is one level deeper than in the object.
            value = nested(levels - 2)
            self.check(codes, "PATCH", path, f'[{{"op":"replace","path":"/spec","value":{value}}}]', kind=PATCH)
        # The entry of a field in managedFields is four levels deeper than the field.
        for levels, codes in ((LEVELS - 5, [200, 201]), (LEVELS, [413]), (LEVELS + 1, [400]), (BRACKETS, [400])):
            self.check(codes, "PATCH", f"{THINGS}/applied?fieldManager=m&force=true", thing("applied", levels), kind=APPLY)
        config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}
        self.check([201], "POST", CMS, config)
        for levels in (LEVELS, LEVELS + 1, BRACKETS):
            self.check([400, 422], "PATCH", f"{CMS}/c", f'{{"data":{nested(levels - 1)}}}', kind=STRATEGIC)

    def test_operations_that_nest_deeper_are_limited(self):
        """Each operation doubles the depth or adds to it; a patch of any length stays within the limit."""
        self.define()
        self.check([201], "POST", THINGS, thing("base", 3))
        step = [{"op": "add", "path": "/spec/b", "value": {}}, {"op": "move", "from": "/spec/a", "path": "/spec/b/a"},
                {"op": "move", "from": "/spec/b", "path": "/spec/a"}]
        doubling = [{"op": "add", "path": "/spec/a", "value": {}}]
        for depth in (1, 2, 4, 8, 16, 32, 64, 128, 256):
            doubling.append({"op": "copy", "from": "/spec/a", "path": "/spec" + "/a" * (depth + 1)})
        for operations in (step * 3300, doubling):
            answer = self.check([400, 413, 422], "PATCH", f"{THINGS}/base", operations, kind=PATCH)
            self.assertIn(b"deep", answer)
        self.check([200], "PATCH", f"{THINGS}/base", step * 200, kind=PATCH)
        self.check([200], "PATCH", f"{THINGS}/base?fieldManager=m&force=true", thing("base", 3), kind=APPLY)

    def test_protobuf_at_the_limit_and_past_it(self):
        def body(levels):
            schema = pb.message(f5=b"object")
            for _ in range(levels):  # JSONSchemaProps in a map of properties
                schema = pb.message(f5=b"object", f29=[pb.message(f1=b"a", f2=schema)])
            spec = pb.message(f1=b"deep.example", f3=pb.message(f1=b"deeps", f2=b"deep", f4=b"Deep", f5=b"DeepList"),
                              f4=b"Namespaced",
                              f7=[pb.message(f1=b"v1", f2=1, f3=1, f4=pb.message(f1=schema))])
            raw = pb.message(f1=pb.message(f1=b"deeps.deep.example"), f2=spec)
            kind = pb.message(f1=b"apiextensions.k8s.io/v1", f2=b"CustomResourceDefinition")
            return b"k8s\0" + pb.message(f1=kind, f2=raw)

        for levels, codes in ((1000, [400, 413]), (200, [400, 413]), (20, [201])):
            self.check(codes, "POST", DEFINITIONS, body(levels), kind=PROTOBUF)

    def test_deep_values_stored_through_the_etcd_api(self):
        """Values that no body can have are put through etcd's API, and then every kind of request reads them."""
        self.define()
        head = '"metadata":{"name":"%s","namespace":"default","uid":"u","creationTimestamp":"2026-11-15T06:00:00Z"}'
        shapes = {
            "lists": "[" * BRACKETS + "]" * BRACKETS,
            "objects": '{"a":' * BRACKETS + "1" + "}" * BRACKETS,
            "open": "[" * BRACKETS,
            "over": nested(LEVELS),
            "labels": "{}",
        }
        for name, deep in shapes.items():
            for prefix, kind in (("configmaps", '"kind":"ConfigMap","apiVersion":"v1"'),
                                 ("deep.example/things", '"kind":"Thing","apiVersion":"deep.example/v1"')):
                metadata = head % name
                if name == "labels":
                    metadata = metadata[:-1] + f',"labels":{shapes["objects"]},"managedFields":{shapes["lists"]}}}'
                self.kube.put_raw(f"/registry/{prefix}/default/{name}",
                                  f'{{{kind},{metadata},"data":{deep},"spec":{deep}}}')
                self.kube.put_raw(f"/registry/{prefix}/default/bare-{name}", deep)
        for path, api, kind in ((CMS, "v1", "ConfigMap"), (THINGS, "deep.example/v1", "Thing")):
            for query in ("", "?limit=1", "?labelSelector=a%3Db", "?fieldSelector=metadata.name%3Dlists",
                          "?watch=1&timeoutSeconds=1&resourceVersion=0", "?watch=1&timeoutSeconds=1&resourceVersion=1",
                          "?watch=1&timeoutSeconds=1&labelSelector=a&resourceVersion=1"):
                for accept in (JSON, YAML, f"{PROTOBUF}, {JSON}", JSON + ";as=Table;v=v1;g=meta.k8s.io",
                               JSON + ";as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"):
                    if "watch" in query and accept == YAML:
                        continue
                    self.call("GET", path + query, accept=accept)
            for name in [prefix + name for name in shapes for prefix in ("", "bare-")]:
                one = f"{path}/{name}"
                for accept in (JSON, YAML, PROTOBUF, JSON + ";as=Table;v=v1;g=meta.k8s.io",
                               JSON + ";as=PartialObjectMetadata;v=v1;g=meta.k8s.io"):
                    self.call("GET", one, accept=accept)
                self.call("GET", one + "?pretty=true")
                self.call("PATCH", one, '{"metadata":{"labels":{"x":"y"}}}', kind=MERGE)
                self.call("PATCH", one, '{"metadata":{"labels":{"x":"y"}}}', kind=STRATEGIC)
                self.call("PATCH", one, '[{"op":"add","path":"/x","value":1}]', kind=PATCH)
                self.call("PATCH", f"{one}?fieldManager=m&force=true",
                          {"apiVersion": api, "kind": kind, "metadata": {"name": name}}, kind=APPLY)
                self.call("PUT", one, {"apiVersion": api, "kind": kind, "metadata": {"name": name}})
                self.call("DELETE", one)
            self.call("DELETE", path + "?labelSelector=a")
            self.call("DELETE", path)
        self.check([200, 404], "DELETE", f"{DEFINITIONS}/things.deep.example")
        self.check([200], "GET", "/api/v1/namespaces")


if __name__ == "__main__":
    unittest.main()
