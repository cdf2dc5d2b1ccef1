#!/usr/bin/python3
"""Custom resources: definitions that are created, changed and deleted, several versions, and malicious schemas.
tests/kube/same_custom_test.py compares the answers with those of a real kube-apiserver."""
import http.client
import json
import pathlib
import re
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from kube import KubeServer, names, summary  # noqa: E402

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WAIT_SECONDS = 60
MERGE = "application/merge-patch+json"
TEXT = {"type": "string"}
SPEC = {"type": "object", "required": ["color"], "properties": {
    "color": {"type": "string", "enum": ["red", "blue"]}, "size": {"type": "integer", "default": 3, "maximum": 9},
    "note": TEXT}}


def version(name="v1", spec=None, **more):
    schema = {"type": "object", "properties": {"spec": spec or SPEC, "status": {
        "type": "object", "properties": {"phase": TEXT}}}}
    base = {"name": name, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema},
            "subresources": {"status": {}},
            "additionalPrinterColumns": [{"name": "Color", "type": "string", "jsonPath": ".spec.color"},
                                         {"name": "Size", "type": "integer", "jsonPath": ".spec.size"}]}
    return {**base, **more}


def definition(plural="hats", kind="Hat", group="example.com", scope="Namespaced", versions=None, **names_too):
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{plural}.{group}"},
            "spec": {"group": group, "scope": scope, "names": {"plural": plural, "kind": kind, **names_too},
                     "versions": versions or [version()]}}


def hat(name, api="v1", **spec):
    return {"apiVersion": f"example.com/{api}", "kind": "Hat", "metadata": {"name": name},
            "spec": {"color": "red", **spec}}


HATS = "/apis/example.com/v1/namespaces/default/hats"


class CustomTest(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.server = KubeServer(self.directory.name + "/data").start()

    def tearDown(self):
        self.server.close()
        self.server.stop()
        self.directory.cleanup()

    def send(self, method, path, body=None, code=None, content_type="application/json"):
        connection = http.client.HTTPConnection("127.0.0.1", self.server.kube_port, timeout=WAIT_SECONDS)
        text = body if body is None or isinstance(body, (str, bytes)) else json.dumps(body)
        connection.request(method, path, text, {"Content-Type": content_type})
        response = connection.getresponse()
        self.warning = response.getheader("Warning")
        answer = json.loads(response.read())
        connection.close()
        if code:
            self.assertEqual(response.status, code, answer)
        return answer

    def patch(self, path, body, code=200):
        return self.send("PATCH", path, body, code, MERGE)

    def until(self, done):
        end = time.monotonic() + WAIT_SECONDS
        while not done():
            self.assertLess(time.monotonic(), end, self.server.log)
            time.sleep(0.02)

    def conditions(self, name):
        crd = self.server.list(f"{CRDS}/{name}")
        return {c["type"]: (c["status"], c["reason"]) for c in crd["status"]["conditions"]}


class Definitions(CustomTest):
    def test_kind_is_served_on_every_connection_once_its_definition_is_acknowledged(self):
        for i in range(20):
            made = definition(f"hats{i}s", f"Hat{i}")
            crd = self.send("POST", CRDS, made, 201)
            self.assertEqual(crd["status"]["storedVersions"], ["v1"])
            self.send("POST", f"/apis/example.com/v1/namespaces/default/hats{i}s",
                      {**hat("a"), "kind": f"Hat{i}"}, 201)
            resources = self.server.list("/apis/example.com/v1")["resources"]
            self.assertIn(f"hats{i}s", [r["name"] for r in resources])

    def test_definitions_with_many_or_long_columns_are_served(self):
        def columns(count, path, text):
            return [{"name": f"c{i}", "type": "string", "jsonPath": path, "description": text} for i in range(count)]

        short = [version(f"v{i}", additionalPrinterColumns=columns(64, ".a" * 60, "x")) for i in range(1, 32)]
        for v in short[1:]:
            v["storage"] = False
        self.send("POST", CRDS, definition(versions=short), 201)
        self.send("POST", CRDS, definition("caps", "Cap", versions=[
            version(additionalPrinterColumns=columns(64, ".spec.a", "x" * 23000))]), 201)
        for plural in ("hats", "caps"):
            self.send("GET", f"/apis/example.com/v1/namespaces/default/{plural}", code=200)

    def test_repeated_changes_of_a_definition_leak_no_schemas(self):
        def held():
            page = self.server.get("/metrics")[2].decode()
            return {key: int(value) for key, value in re.findall(r"^vigil_kube_(schema\w*) (\d+)$", page, re.M)}

        self.send("POST", CRDS, definition(), 201)
        watch = self.server.watch(HATS, resourceVersion=self.server.list(HATS)["metadata"]["resourceVersion"])
        connection = http.client.HTTPConnection("127.0.0.1", self.server.kube_port, timeout=WAIT_SECONDS)
        most = {}
        for i in range(1000):
            spec = {**SPEC, "properties": {**SPEC["properties"], f"only{i}": {"type": "string", "default": "x" * 1000}}}
            for method, path, kind, body in (
                    ("PATCH", f"{CRDS}/hats.example.com", MERGE, {"spec": {"versions": [version(spec=spec)]}}),
                    ("POST", HATS + "?dryRun=All", "application/json", hat("a"))):
                connection.request(method, path, json.dumps(body), {"Content-Type": kind})
                answer = connection.getresponse()
                self.assertIn(answer.status, (200, 201), answer.read())
                answer.read()
            if i % 50 == 49:
                most = {key: max(value, most.get(key, 0)) for key, value in held().items()}
        connection.close()
        self.assertEqual(watch.rest(), [])
        # Each thread keeps at most the set of kinds that it used last, and the newest one.
        self.assertLessEqual(most["schemas"], 4)
        self.assertLessEqual(most["schema_text_bytes"] + most["schema_compiled_bytes"], 4 * 32768)
        self.assertGreater(most["schemas_compiled"], 0)

    def openapi(self, document):
        """Returns the document's URL from the index, and the document."""
        def once(pairs):
            self.assertEqual(len(pairs), len({key for key, _ in pairs}))
            return dict(pairs)

        connection = http.client.HTTPConnection("127.0.0.1", self.server.kube_port, timeout=WAIT_SECONDS)
        connection.request("GET", "/openapi/v3")
        url = json.loads(connection.getresponse().read(), object_pairs_hook=once)["paths"][document]["serverRelativeURL"]
        connection.request("GET", url)
        answer = connection.getresponse()
        self.assertEqual(answer.getheader("Etag"), '"' + url.partition("hash=")[2] + '"')
        made = json.loads(answer.read(), object_pairs_hook=once)
        connection.close()
        return url, made

    def test_openapi_of_a_group_has_newest_versions_and_built_in_kinds(self):
        before, plain = self.openapi("apis/networking.k8s.io/v1")
        other = self.openapi("apis/apps/v1")[0]
        made = definition("hats", "Hat", group="networking.k8s.io", versions=[version()])
        made["metadata"]["annotations"] = {"api-approved.kubernetes.io": "https://github.com/kubernetes/kubernetes/pull/1"}
        self.send("POST", CRDS, made, 201)
        after, both = self.openapi("apis/networking.k8s.io/v1")
        self.assertNotEqual(before, after)
        self.assertLess(set(plain["components"]["schemas"]), set(both["components"]["schemas"]))
        self.assertLess(set(plain["paths"]), set(both["paths"]))
        self.assertIn("color", both["components"]["schemas"]["io.k8s.networking.v1.Hat"]["properties"]["spec"]["properties"])
        self.assertIn("/apis/networking.k8s.io/v1/namespaces/{namespace}/hats/{name}", both["paths"])
        # Another version has its own document; the documents of other groups do not change.
        self.patch(f"{CRDS}/hats.networking.k8s.io", {"spec": {"versions": [version(), version("v7", storage=False)]}})
        newest, only = self.openapi("apis/networking.k8s.io/v7")
        self.assertIn("io.k8s.networking.v7.Hat", only["components"]["schemas"])
        self.assertEqual(self.openapi("apis/apps/v1")[0], other)
        self.send("DELETE", f"{CRDS}/hats.networking.k8s.io", None, 200)
        self.until(lambda: self.server.get(f"{CRDS}/hats.networking.k8s.io")[0] == 404)
        self.assertEqual(self.openapi("apis/networking.k8s.io/v1"), (before, plain))

    def test_definitions_are_served_after_a_restart(self):
        self.send("POST", CRDS, definition(shortNames=["ht"]), 201)
        self.send("POST", HATS, hat("a"), 201)
        self.server.stop()
        self.server.start()
        self.assertEqual(names(self.server.list(HATS)), ["a"])
        self.send("POST", HATS, hat("b", color="green"), 422)

    def test_definition_put_through_the_etcd_api_is_served_after_a_start(self):
        made = definition()
        self.server.put_raw(f"/registry/apiextensions.k8s.io/customresourcedefinitions/{made['metadata']['name']}",
                            json.dumps(made))
        self.server.stop()
        self.server.start()
        self.until(lambda: self.server.get(HATS)[0] == 200)
        self.send("POST", HATS, hat("a"), 201)

    def test_names_become_available_when_their_definition_is_deleted(self):
        self.send("POST", CRDS, definition(shortNames=["h"]), 201)
        self.send("POST", CRDS, definition("caps", "Hat", shortNames=["h"]), 201)
        self.assertEqual(self.conditions("caps.example.com")["NamesAccepted"][0], "False")
        self.assertEqual(self.conditions("caps.example.com")["Established"], ("False", "NotAccepted"))
        self.assertEqual(self.server.get("/apis/example.com/v1/caps")[0], 404)
        self.send("DELETE", f"{CRDS}/hats.example.com", None, 200)
        self.until(lambda: self.server.get("/apis/example.com/v1/caps")[0] == 200)
        self.assertEqual(self.conditions("caps.example.com")["NamesAccepted"], ("True", "NoConflicts"))

    def test_deleting_a_definition_deletes_objects_without_finalizers(self):
        self.send("POST", CRDS, definition(), 201)
        for i in range(120):
            self.send("POST", HATS, hat(f"h{i}"), 201)
        kept = hat("kept")
        kept["metadata"]["finalizers"] = ["example.com/keep"]
        self.send("POST", HATS, kept, 201)
        crd = self.send("DELETE", f"{CRDS}/hats.example.com", None, 200)
        self.assertEqual(crd["metadata"]["finalizers"], ["customresourcecleanup.apiextensions.k8s.io"])
        refused = self.send("POST", HATS, hat("late"), 403)
        self.assertIn("create not allowed while custom resource definition is terminating", refused["message"])
        self.until(lambda: names(self.server.list(HATS)) == ["kept"])
        self.patch(f"{HATS}/kept", {"metadata": {"finalizers": None}})
        self.until(lambda: self.server.get(f"{CRDS}/hats.example.com")[0] == 404)
        self.assertEqual(self.server.get(HATS)[0], 404)

    def test_only_a_delete_empties_a_namespace_or_a_definition(self):
        self.send("POST", CRDS, definition(), 201)
        self.send("POST", HATS, hat("kept"), 201)
        conditions = [{"type": name, "status": "True", "reason": "X", "message": "",
                       "lastTransitionTime": "2026-11-15T06:00:00Z"} for name in ("NamesAccepted", "Established", "Terminating")]
        self.patch(f"{CRDS}/hats.example.com/status", {"status": {"conditions": conditions}})
        refused = self.patch("/api/v1/namespaces/kube-public/status", {"status": {"phase": "Terminating"}}, 422)
        self.assertEqual(refused["details"]["causes"][0]["message"], "Invalid value: \"Terminating\": may only be 'Active' "
                         "if `deletionTimestamp` is empty")
        # A phase that was stored through etcd's API has no effect either.
        self.server.put_raw("/registry/namespaces/odd", json.dumps({
            "kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "odd"}, "status": {"phase": "Terminating"}}))
        inside = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "kept", "namespace": "odd"}}
        self.server.put_raw("/registry/configmaps/odd/kept", json.dumps(inside))
        self.server.stop()
        self.server.start()
        # When a namespace that is later in the order has been emptied, the earlier ones have been examined, too.
        self.send("POST", "/api/v1/namespaces", {"metadata": {"name": "zz"}}, 201)
        self.send("DELETE", "/api/v1/namespaces/zz", None, 200)
        self.until(lambda: self.server.get("/api/v1/namespaces/zz")[0] == 404)
        self.assertEqual(names(self.server.list("/api/v1/namespaces/odd/configmaps")), ["kept"])
        self.assertEqual(names(self.server.list(HATS)), ["kept"])
        self.send("POST", HATS, hat("more"), 201)

    def test_deletion_of_a_definition_continues_after_a_restart(self):
        self.send("POST", CRDS, definition(), 201)
        kept = hat("kept")
        kept["metadata"]["finalizers"] = ["example.com/keep"]
        self.send("POST", HATS, kept, 201)
        self.send("DELETE", f"{CRDS}/hats.example.com", None, 200)
        self.server.stop()
        self.server.start()
        self.patch(f"{HATS}/kept", {"metadata": {"finalizers": None}})
        self.until(lambda: self.server.get(f"{CRDS}/hats.example.com")[0] == 404)

    def test_deleting_a_namespace_deletes_its_custom_objects(self):
        self.send("POST", CRDS, definition(), 201)
        self.send("POST", "/api/v1/namespaces", {"metadata": {"name": "n"}}, 201)
        self.send("POST", "/apis/example.com/v1/namespaces/n/hats", hat("a"), 201)
        self.send("DELETE", "/api/v1/namespaces/n", None, 200)
        self.until(lambda: self.server.get("/api/v1/namespaces/n")[0] == 404)
        self.assertEqual(self.server.list("/apis/example.com/v1/hats")["items"], [])

    def test_unsupported_features_of_definitions_cause_warnings(self):
        odd = {**SPEC, "properties": {**SPEC["properties"], "note": {"type": "string", "format": "odd"}}}
        self.send("POST", CRDS, definition(versions=[version(spec=odd), version("v2", odd, storage=False)]), 201)
        self.assertEqual(self.warning, '299 - "unrecognized format \\"odd\\""')


class Rules(CustomTest):
    """What each rule means is compared with Kubernetes in tests/kube/rules_test.py."""

    def setUp(self):
        super().setUp()
        spec = {**SPEC, "properties": {**SPEC["properties"], "sizes": {"type": "array", "maxItems": 1000, "items": {"type": "integer"}}},
                "x-kubernetes-validations": [
            {"rule": "!has(self.note) || self.note.size() <= self.size", "messageExpression": "'at most ' + (self.size == 3 ? '3' : '?')",
             "fieldPath": ".note", "reason": "FieldValueForbidden"},
            {"rule": "self.size >= oldSelf.size", "message": "must not shrink"},
            {"rule": "!has(self.sizes) || self.sizes.all(x, self.sizes.all(y, x + y >= 0))"}]}
        one = version(spec=spec)
        root = one["schema"]["openAPIV3Schema"]
        root["x-kubernetes-validations"] = [{"rule": "!has(self.status) || self.status.phase != self.metadata.name"}]
        self.send("POST", CRDS, definition(versions=[one]), 201)

    def test_objects_that_break_a_rule_are_refused(self):
        refused = self.send("POST", HATS, hat("a", note="long text"), 422)
        self.assertEqual(refused["message"], 'Hat.example.com "a" is invalid: spec.note: Forbidden: at most 3')
        self.assertEqual(refused["details"]["causes"], [
            {"reason": "FieldValueForbidden", "message": "Forbidden: at most 3", "field": "spec.note"}])
        refused = self.send("POST", HATS, {**hat("a", note="long text"), "spec": {"size": 1}}, 422)
        self.assertEqual(refused["details"]["causes"][-1], {
            "reason": "FieldValueInvalid", "field": "<nil>", "message": "Invalid value: null: some validation rules were not "
            "checked because the object was invalid; correct the existing errors to complete validation"})

    def test_transitions_are_checked(self):
        self.send("POST", HATS, hat("a", size=5), 201)
        refused = self.patch(f"{HATS}/a", {"spec": {"size": 4}}, 422)
        self.assertEqual(refused["details"]["causes"], [
            {"reason": "FieldValueInvalid", "message": "Invalid value: must not shrink", "field": "spec"}])
        self.patch(f"{HATS}/a", {"spec": {"size": 6}})

    def test_unchanged_values_that_break_a_rule_cause_warnings(self):
        key = "/registry/example.com/hats/default/a"
        stored = hat("a", note="long text", size=3)
        stored["metadata"]["namespace"] = "default"
        self.server.put_raw(key, json.dumps(stored))
        self.patch(f"{HATS}/a", {"metadata": {"labels": {"x": "y"}}})
        self.assertEqual(self.warning, '299 - "spec.note: Forbidden: at most 3"')
        self.patch(f"{HATS}/a", {"spec": {"color": "blue"}}, 422)

    def test_writing_the_status_evaluates_the_rules_of_the_object(self):
        self.send("POST", HATS, hat("a"), 201)
        refused = self.patch(f"{HATS}/a/status", {"status": {"phase": "a"}}, 422)
        self.assertIn("failed rule: !has(self.status) || self.status.phase", refused["message"])
        self.patch(f"{HATS}/a/status", {"status": {"phase": "b"}})

    def test_expensive_rules_are_limited(self):
        self.send("POST", HATS, hat("a", sizes=[1] * 200), 201)  # beyond what the thread of the API evaluates
        refused = self.send("POST", HATS, hat("b", sizes=[1] * 1000), 422)
        self.assertIn("call cost exceeds limit for rule", refused["message"])


class Objects(CustomTest):
    def setUp(self):
        super().setUp()
        self.send("POST", CRDS, definition(versions=[
            version(selectableFields=[{"jsonPath": ".spec.color"}]),
            version("v1beta1", storage=False, deprecated=True, selectableFields=[{"jsonPath": ".spec.color"}])]), 201)

    def test_new_default_appears_in_old_objects(self):
        self.send("POST", HATS, hat("a", note="x"), 201)
        later = {**SPEC, "properties": {**SPEC["properties"], "brim": {"type": "string", "default": "wide"}}}
        del later["properties"]["note"]
        crd = self.server.list(f"{CRDS}/hats.example.com")
        for one in crd["spec"]["versions"]:
            one["schema"]["openAPIV3Schema"]["properties"]["spec"] = later
        self.send("PUT", f"{CRDS}/hats.example.com", crd, 200)
        expected = {"color": "red", "size": 3, "brim": "wide"}
        self.assertEqual(self.server.list(f"{HATS}/a")["spec"], expected)
        self.assertEqual(self.server.list(HATS)["items"][0]["spec"], expected)
        self.assertEqual(self.server.watch(HATS).next()["object"]["spec"], expected)

    def test_every_version_serves_all_objects(self):
        old = HATS.replace("v1", "v1beta1")
        watch = self.server.watch(old, resourceVersion=self.server.list(HATS)["metadata"]["resourceVersion"])
        self.send("POST", HATS, hat("a"), 201)
        made = self.send("POST", old, hat("b", api="v1beta1"), 201)
        self.assertEqual(self.warning, '299 - "example.com/v1beta1 Hat is deprecated; use example.com/v1 Hat"')
        self.assertEqual(made["apiVersion"], "example.com/v1beta1")
        self.assertEqual(self.server.list(f"{HATS}/b")["apiVersion"], "example.com/v1")
        self.send("DELETE", f"{HATS}/a", None, 200)
        events = watch.take(3)
        self.assertEqual([summary(e)[:2] for e in events], [("ADDED", "a"), ("ADDED", "b"), ("DELETED", "a")])
        self.assertEqual({e["object"]["apiVersion"] for e in events}, {"example.com/v1beta1"})

    def test_watch_by_a_selectable_field_sees_objects_enter_and_leave(self):
        version_now = self.server.list(HATS)["metadata"]["resourceVersion"]
        for path in (HATS, HATS.replace("v1", "v1beta1")):
            with self.subTest(path=path):
                name = "a" if path == HATS else "b"
                watch = self.server.watch(path, resourceVersion=version_now, fieldSelector="spec.color=blue,metadata.name=" + name)
                self.send("POST", HATS, hat(name), 201)
                self.patch(f"{HATS}/{name}", {"spec": {"color": "blue"}})
                self.patch(f"{HATS}/{name}", {"spec": {"size": 5}})
                self.patch(f"{HATS}/{name}", {"spec": {"color": "red"}})
                self.assertEqual([summary(e)[:2] for e in watch.take(3)],
                                 [("ADDED", name), ("MODIFIED", name), ("DELETED", name)])

    def test_watch_ends_when_the_definition_changes_but_not_its_metadata(self):
        watch = self.server.watch(HATS, resourceVersion=self.server.list(HATS)["metadata"]["resourceVersion"])
        self.patch(f"{CRDS}/hats.example.com", {"metadata": {"labels": {"a": "b"}}})
        self.send("POST", HATS, hat("a"), 201)
        self.assertEqual(summary(watch.next())[:2], ("ADDED", "a"))
        self.patch(f"{CRDS}/hats.example.com", {"spec": {"names": {"shortNames": ["ht"]}}})
        self.assertEqual(watch.rest(), [])
        self.assertEqual(self.server.list("/apis/example.com/v1")["resources"][0]["shortNames"], ["ht"])

    def test_watch_of_a_deleted_definition_gets_the_deletions_and_ends(self):
        made = [f"h{i:03}" for i in range(150)]
        for name in made:
            self.send("POST", HATS, hat(name), 201)
        watch = self.server.watch(HATS, resourceVersion=self.server.list(HATS)["metadata"]["resourceVersion"])
        self.send("DELETE", f"{CRDS}/hats.example.com", None, 200)
        events = [(event["type"], event["object"]["metadata"]["name"]) for event in watch.rest()]
        self.assertEqual(sorted(events), [("DELETED", name) for name in made])

    def test_objects_remain_when_their_version_is_no_longer_served(self):
        self.send("POST", HATS.replace("v1", "v1beta1"), hat("a", api="v1beta1"), 201)
        crd = self.server.list(f"{CRDS}/hats.example.com")
        crd["spec"]["versions"][1]["served"] = False
        self.send("PUT", f"{CRDS}/hats.example.com", crd, 200)
        self.assertEqual(self.server.get(HATS.replace("v1", "v1beta1"))[0], 404)
        self.assertEqual(names(self.server.list(HATS)), ["a"])

    def test_finalizers_without_a_domain_cause_a_warning(self):
        made = hat("a")
        made["metadata"]["finalizers"] = ["orphan", "tidy.example.com"]
        self.send("POST", HATS, made, 201)
        self.assertEqual(self.warning, '299 - "metadata.finalizers: \\"tidy.example.com\\": prefer a domain-qualified '
                         'finalizer name including a path (/) to avoid accidental conflicts with other finalizer writers"')
        self.patch(f"{HATS}/a", {"metadata": {"finalizers": ["orphan", "tidy.example.com"], "labels": {"a": "b"}}})
        self.assertIsNone(self.warning)
        self.patch(f"{HATS}/a", {"metadata": {"finalizers": ["-/x"]}}, 422)

    def test_status_and_spec_are_written_separately(self):
        self.send("POST", HATS, {**hat("a"), "status": {"phase": "made"}}, 201)
        self.assertNotIn("status", self.server.list(f"{HATS}/a"))
        self.patch(f"{HATS}/a/status", {"status": {"phase": "Worn"}, "spec": {"size": 9}})
        worn = self.server.list(f"{HATS}/a")
        self.assertEqual((worn["status"], worn["spec"]["size"], worn["metadata"]["generation"]), ({"phase": "Worn"}, 3, 1))
        self.patch(f"{HATS}/a", {"spec": {"size": 4}, "status": {"phase": "no"}})
        now = self.server.list(f"{HATS}/a")
        self.assertEqual((now["status"], now["metadata"]["generation"]), ({"phase": "Worn"}, 2))

    def test_scale_that_creates_a_spec_adds_its_defaults(self):
        spec = {"type": "object", "properties": {"size": {"type": "integer", "default": 3}, "replicas": {"type": "integer"}}}
        scale = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
        versions = [version(spec=spec, subresources={"status": {}, "scale": scale})]
        self.send("POST", CRDS, definition("sets", "Set", versions=versions), 201)
        sets = "/apis/example.com/v1/namespaces/default/sets"
        self.send("POST", sets, {"apiVersion": "example.com/v1", "kind": "Set", "metadata": {"name": "bare"}}, 201)
        self.patch(sets + "/bare/scale", {"spec": {"replicas": 2}})
        self.assertEqual(self.send("GET", sets + "/bare", code=200)["spec"], {"replicas": 2, "size": 3})

    def test_writing_the_same_definition_again_changes_nothing(self):
        caps = definition("caps", "Cap")  # without defaults, as in the files from which definitions are installed
        caps["spec"]["preserveUnknownFields"] = False
        made = self.send("POST", CRDS, caps, 201)
        self.assertNotIn("preserveUnknownFields", made["spec"])
        self.assertIn("conversion", made["spec"])
        caps["metadata"]["resourceVersion"] = made["metadata"]["resourceVersion"]
        again = self.send("PUT", f"{CRDS}/caps.example.com", caps, 200)
        self.assertEqual(again["metadata"], made["metadata"])
        self.patch(f"{CRDS}/caps.example.com", {"spec": {"preserveUnknownFields": False}})
        self.assertEqual(self.server.list(f"{CRDS}/caps.example.com")["metadata"], made["metadata"])

    def test_unchanged_invalid_fields_are_tolerated_in_updates(self):
        self.send("POST", HATS, hat("a", size=8), 201)
        crd = self.server.list(f"{CRDS}/hats.example.com")
        for one in crd["spec"]["versions"]:
            one["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["size"]["maximum"] = 5
        self.send("PUT", f"{CRDS}/hats.example.com", crd, 200)
        self.patch(f"{HATS}/a", {"spec": {"color": "blue"}})
        self.patch(f"{HATS}/a", {"spec": {"size": 7}}, 422)
        self.send("POST", HATS, hat("b", size=8), 422)


class Attacks(CustomTest):
    """The cost of one schema or object is limited, and the server stays responsive."""

    def alive(self):
        self.server.list("/api/v1/namespaces")

    def test_slow_pattern_is_stopped(self):
        spec = {"type": "object", "properties": {"a": {"type": "string", "pattern": "(x+x+)+y"},
                                                 "b": {"type": "string", "pattern": "(a{1,100}){1,10}c$"}}}
        self.send("POST", CRDS, definition(versions=[version(spec=spec)]), 201)
        self.send("POST", HATS, {**hat("a"), "spec": {"a": "x" * 100000}}, 422)
        slow = self.send("POST", HATS, {**hat("a"), "spec": {"b": "a" * 1000000}}, 422)
        self.assertIn("too long to check", slow["message"])
        self.alive()

    def test_too_large_schema_is_refused(self):
        for i, allowed in ((0, True), (1, False)):
            # Equal patterns are compiled once; different ones are counted separately.
            many = {f"f{k}": {"type": "string", "pattern": "a{1000}" + "b" * (k * i % 300)} for k in range(3000)}
            made = definition(f"hats{i}s", f"Hat{i}", versions=[version(spec={"type": "object", "properties": many})])
            answer = self.send("POST", CRDS, made, 201 if allowed else 422)
            if not allowed:
                self.assertIn("all patterns together are too large", answer["message"])
        self.alive()

    def test_slow_checks_of_defaults_share_one_limit(self):
        slow = {"type": "string", "pattern": "^(a{1,100}){1,10}c$", "default": "a" * 5000}
        many = {f"f{i}": slow for i in range(300)}
        refused = self.send("POST", CRDS, definition(versions=[version(spec={"type": "object", "properties": many})]), 422)
        messages = [c["message"] for c in refused["details"]["causes"]]
        self.assertEqual(len([m for m in messages if "too long to check" in m]), 1)
        self.assertLess(len(messages), 5)
        self.alive()

    def test_deep_and_wide_schemas_are_limited(self):
        deep = {"type": "string"}
        for _ in range(100):
            deep = {"type": "object", "properties": {"a": deep}}
        self.send("POST", CRDS, definition(versions=[version(spec=deep)]), 201)
        for _ in range(200):
            deep = {"type": "object", "properties": {"a": deep}}
        self.send("POST", CRDS, definition("caps", "Cap", versions=[version(spec=deep)]), 400)
        wide = {"type": "object", "properties": {"l": {"type": "array", "items": {
            "type": "integer", "anyOf": [{"minimum": i} for i in range(2000, 0, -1)]}}}}
        self.send("POST", CRDS, definition("capes", "Cape", versions=[version(spec=wide)]), 201)
        slow = self.send("POST", "/apis/example.com/v1/namespaces/default/capes",
                         {**hat("a"), "kind": "Cape", "spec": {"l": [1] * 50000}}, 422)
        self.assertIn("too long to check", slow["message"])
        self.alive()

    def test_too_many_versions_are_refused(self):
        versions = [version(f"v{i}", storage=i == 1) for i in range(1, 40)]
        self.assertIn("there are more than 32", self.send("POST", CRDS, definition(versions=versions), 422)["message"])


if __name__ == "__main__":
    unittest.main()
