#!/usr/bin/python3
"""Features of the Kubernetes API that use the table of types: protobuf bodies, strategic patches, strict validation, OpenAPI."""
import re
import unittest

from kube_write_test import CMS, KubeTest
from server import only_vigil

PROTOBUF = "application/vnd.kubernetes.protobuf"
STRATEGIC = "application/strategic-merge-patch+json"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"

GVK = "x-kubernetes-group-version-kind"

DEPLOYMENT = {
    "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
    "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "web"}},
             "template": {"metadata": {"labels": {"app": "web"}},
                          "spec": {"containers": [{"name": "a", "image": "a:1"}, {"name": "b", "image": "b:1"}]}}},
}


def varint(n):
    out = b""
    while n > 127:
        out, n = out + bytes([n & 127 | 128]), n >> 7
    return out + bytes([n])


def field(number, value):
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


def envelope(version, kind, message):
    return b"k8s\0" + field(1, field(1, version) + field(2, kind)) + field(2, message) + field(3, "") + field(4, "")


class Schema(KubeTest):
    @only_vigil
    def test_typed_clients_create_in_protobuf(self):
        config = field(1, field(1, "pb")) + field(2, field(1, "k") + field(2, "v"))
        code, made = self.send("POST", CMS, envelope("v1", "ConfigMap", config), PROTOBUF)
        self.assertEqual((code, made["data"], made["kind"]), (201, {"k": "v"}, "ConfigMap"))
        self.assertEqual(self.send("GET", CMS + "/pb")[1]["metadata"]["uid"], made["metadata"]["uid"])
        code, _ = self.send("POST", "/api/v1/namespaces", envelope("v1", "Namespace", field(1, field(1, "team"))),
                            PROTOBUF)
        self.assertEqual(code, 201)

    @only_vigil
    def test_malicious_protobuf_is_refused(self):
        deep = b""
        for _ in range(5000):
            deep = field(17, deep)
        bombs = [b"", b"k8s", b"{}", envelope("v1", "ConfigMap", b"\xff" * 100), envelope("v9", "Nothing", b""),
                 envelope("v1", "ConfigMap", b"\x0a\xff\xff\xff\xff\x0f"),
                 envelope("v1", "Pod", field(2, b"\x12\x00" * 1000000)),
                 envelope("apiextensions.k8s.io/v1", "CustomResourceDefinition", field(2, field(7, field(4, deep))))]
        for bomb in bombs:
            with self.subTest(bomb=bomb[:40]):
                code, answer = self.send("POST", CMS, bomb, PROTOBUF)
                self.assertIn(code, (400, 413, 422), answer)
                self.assertEqual(answer["kind"], "Status")
        self.make()

    @only_vigil
    def test_strategic_patches_merge_lists_by_their_keys(self):
        self.assertEqual(self.send("POST", DEPLOYMENTS, DEPLOYMENT)[0], 201)
        patch = {"spec": {"template": {"spec": {"containers": [{"name": "b", "image": "b:2"},
                                                               {"name": "a", "$patch": "delete"}]}}}}
        code, made = self.send("PATCH", DEPLOYMENTS + "/web", patch, STRATEGIC)
        seen = [(one["name"], one["image"]) for one in made["spec"]["template"]["spec"]["containers"]]
        self.assertEqual((code, seen), (200, [("b", "b:2")]))
        patch["spec"]["template"]["spec"]["containers"] = [{"image": "x"}]
        code, answer = self.send("PATCH", DEPLOYMENTS + "/web", patch, STRATEGIC)
        self.assertEqual((code, answer["message"]),
                         (500, "map: map[image:x] does not contain declared merge key: name"))
        code, answer = self.send("PATCH", DEPLOYMENTS + "/web", {"spec": {"$retainKeys": 1}}, STRATEGIC)
        self.assertEqual((code, answer["message"]), (400, "invalid patch format of retainKeys"))

    @only_vigil
    def test_unknown_members_are_refused_warned_about_or_dropped(self):
        body = {**DEPLOYMENT, "spec": {**DEPLOYMENT["spec"], "bogus": {"a": 1}}}
        code, answer = self.send("POST", DEPLOYMENTS + "?fieldValidation=Strict", body)
        self.assertEqual(code, 400)
        self.assertIn('strict decoding error: unknown field "spec.bogus"', answer["message"])
        code, made = self.send("POST", DEPLOYMENTS, body)
        self.assertEqual((code, self.headers["Warning"]), (201, '299 - "unknown field \\"spec.bogus\\""'))
        self.assertNotIn("bogus", made["spec"])
        for mode, expected in (("Strict", 422), ("Ignore", 200)):
            code, answer = self.send("PATCH", f"{DEPLOYMENTS}/web?fieldValidation={mode}", {"spec": {"bogus": 1}},
                                     STRATEGIC)
            self.assertEqual(code, expected, answer)
        self.assertIsNone(self.headers["Warning"])
        code, answer = self.send("POST", DEPLOYMENTS, {**DEPLOYMENT, "spec": {"replicas": "two"}})
        self.assertEqual(code, 400)
        self.assertIn("json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32",
                      answer["message"])

    @only_vigil
    def test_openapi_documents_are_complete(self):
        _, index = self.send("GET", "/openapi/v3")
        self.assertGreater(len(index["paths"]), 15)
        for path, entry in index["paths"].items():
            with self.subTest(path=path):
                code, document = self.send("GET", entry["serverRelativeURL"])
                self.assertEqual((code, document["openapi"]), (200, "3.0.0"))
                refs = set(re.findall(r"#/components/schemas/([^']+)'", repr(document)))
                self.assertLessEqual(refs, set(document["components"]["schemas"]))
                self.assertTrue(document["paths"])
        self.assertEqual(self.send("GET", "/openapi/v2")[1]["swagger"], "2.0")
        self.assertEqual(self.send("POST", "/openapi/v2", {})[0], 405)
        self.assertEqual(self.send("GET", "/openapi/v3/apis/nothing/v1")[0], 404)
        self.assertEqual(self.send("GET", "/openapi/v3/api/apps/v1")[0], 404)
        self.assertEqual(self.send("POST", "/openapi/v3/api/v1", {})[0], 405)

    def test_fields_of_the_most_used_kinds_are_described(self):
        """So that kubectl explain has something to say; a field that Kubernetes adds needs a sentence, too."""
        for version, kinds in (("api/v1", ("Pod", "Service", "PersistentVolumeClaim", "Namespace", "ConfigMap", "Secret")),
                               ("apis/apps/v1", ("Deployment", "StatefulSet", "DaemonSet")),
                               ("apis/batch/v1", ("Job", "CronJob")), ("apis/networking.k8s.io/v1", ("Ingress",))):
            models = self.send("GET", f"/openapi/v3/{version}")[1]["components"]["schemas"]
            for kind in kinds:
                (model,) = (m for m in models.values() if any(k["kind"] == kind for k in m.get(GVK, ())))
                self.check_described(kind, model)
                if "spec" in model["properties"]:
                    self.check_described(kind, models[model["properties"]["spec"]["allOf"][0]["$ref"].split("/")[-1]])

    def check_described(self, kind, model):
        for name, field in model["properties"].items():
            self.assertRegex(field.get("description", ""), r"\A[A-Z].*\.\Z", f"{kind} {name}")

    def test_custom_resources_have_schemas_in_version_2(self):
        def wearing(kind, **more):
            return {"type": kind, **more}

        text, free = wearing("string"), {"x-kubernetes-preserve-unknown-fields": True}
        given = wearing("object", description="A hat.", required=["spec"], properties={
            "metadata": wearing("object", properties={"name": text}),
            "spec": wearing("object", required=["a", "n"], properties={
                "a": wearing("string", pattern="^a+$", default="aa"),
                "n": wearing("object", nullable=True, properties={"q": text}),
                "ln": wearing("array", nullable=True, items=text),
                "l": wearing("array", items=wearing("string", nullable=True)),
                "i": {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]},
                "p": wearing("object", properties={"z": text}, **free),
                "m": wearing("object", additionalProperties=wearing("integer", minimum=1)),
                "o": wearing("object", oneOf=[{"required": ["u"]}], properties={"u": text}),
                "e": wearing("string", enum=["A", "B"], **{"not": {"enum": ["C"]}})})})
        # As a kube-apiserver publishes it, without descriptions.
        wanted = wearing("object", required=["a"], properties={
            "a": wearing("string", pattern="^a+$"), "n": {}, "ln": {}, "l": wearing("array", items={}),
            "i": {"x-kubernetes-int-or-string": True}, "p": free,
            "m": wearing("object", additionalProperties=wearing("integer", minimum=1)),
            "o": wearing("object", properties={"u": text}), "e": wearing("string", enum=["A", "B"])})
        versions = [("v1", given), ("v2", wearing("object", properties={"spec": text}, **free)), ("v3", wearing("object"))]
        self.assertEqual(self.send("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", {
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "hats.example.com"},
            "spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "hats", "kind": "Hat"},
                     "versions": [{"name": name, "served": True, "storage": name == "v1",
                                   "schema": {"openAPIV3Schema": schema}} for name, schema in versions]}})[0], 201)
        models = self.send("GET", "/openapi/v2")[1]["definitions"]
        hat = models["com.example.v1.Hat"]
        self.assertEqual(hat["properties"].pop("spec"), wanted)
        self.assertEqual(hat, wearing("object", description="A hat.", required=["spec"], properties={
            "apiVersion": text, "kind": text,
            "metadata": {"$ref": "#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"}},
            **{GVK: [{"group": "example.com", "kind": "Hat", "version": "v1"}]}))
        self.assertEqual(set(models["com.example.v2.Hat"]), {"type", GVK}, "any field is allowed")
        self.assertEqual(set(models["com.example.v3.Hat"]["properties"]), {"apiVersion", "kind", "metadata"})
        self.assertEqual(models["com.example.v1.HatList"]["properties"]["items"],
                         wearing("array", items={"$ref": "#/definitions/com.example.v1.Hat"}))
        hashes = {(r["name"], r.get("storageVersionHash")) for v in ("v1", "v3")
                  for r in self.send("GET", f"/apis/example.com/{v}")[1]["resources"]}
        self.assertEqual(hashes, {("hats", "0MeF8eh2/Ro=")}, "all versions are stored as the first")

    def test_discovery_has_the_hash_of_the_stored_version(self):
        def hashes(path):
            return {r["name"]: r.get("storageVersionHash") for r in self.send("GET", path)[1]["resources"]}

        core, events, scalers = map(hashes, ("/api/v1", "/apis/events.k8s.io/v1", "/apis/autoscaling/v1"))
        # Values of a kube-apiserver.
        self.assertEqual((core["pods"], core["secrets"]), ("xPOwRZ+Yhw8=", "S6u1pOWzb84="))
        self.assertEqual((core["events"], events["events"]), ("r2yiGXH7wu8=", "r2yiGXH7wu8="))
        self.assertEqual(scalers["horizontalpodautoscalers"], "qwQve8ut294=")
        self.assertIsNone(core["bindings"])
        self.assertIsNone(core["pods/status"])


if __name__ == "__main__":
    unittest.main()
