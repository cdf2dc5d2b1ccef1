#!/usr/bin/python3
"""Server-side apply over HTTP: managed fields in answers and in requests, conflicts, and invalid applies.
tests/kube/same_applies_test.py compares the answers with those of a real kube-apiserver."""
import http.client
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from kube_write_test import CMS, MERGE, KubeTest  # noqa: E402
from kube import KubeServer  # noqa: E402
from server import only_vigil  # noqa: E402

APPLY = "application/apply-patch+yaml"
KUBECTL = os.environ.get("VIGIL_KUBECTL", "kubectl")


def config(data, **metadata):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", **metadata}, "data": data}


@only_vigil
class Apply(KubeTest):
    def apply(self, body, manager="one", query="", path=CMS + "/a"):
        return self.send("PATCH", f"{path}?fieldManager={manager}{query}", body, APPLY)

    def owners(self, object_):
        return {(e["manager"], e["operation"]): e["fieldsV1"] for e in object_["metadata"].get("managedFields", [])}

    def test_apply_creates_updates_and_skips_unchanged_objects(self):
        code, made = self.apply(config({"k": "1"}))
        self.assertEqual(code, 201)
        self.assertEqual(self.owners(made), {("one", "Apply"): {"f:data": {"f:k": {}}}})
        self.assertEqual(self.apply(config({"k": "1"})), (200, made))
        code, changed = self.apply("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {l: '2'}\n".encode())
        self.assertEqual((code, changed["data"]), (200, {"l": "2"}))
        self.assertNotEqual(changed["metadata"]["resourceVersion"], made["metadata"]["resourceVersion"])

    def test_conflicts_name_manager_and_field(self):
        self.apply(config({"k": "1"}))
        code, status = self.apply(config({"k": "2"}), "two")
        self.assertEqual((code, status["reason"], status["message"], status["details"]["causes"]), (
            409, "Conflict", 'Apply failed with 1 conflict: conflict with "one": .data.k',
            [{"reason": "FieldManagerConflict", "message": 'conflict with "one"', "field": ".data.k"}]))
        self.assertEqual(self.apply(config({"k": "2"}), "two", "&force=true")[0], 200)

    def test_no_owners_are_recorded_before_the_first_apply(self):
        code, made = self.send("POST", CMS, config({"k": "1"}, managedFields=[{
            "manager": "x", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {}}]))
        self.assertEqual((code, self.owners(made)), (201, {}))
        code, put = self.send("PUT", CMS + "/a", config({"k": "2"}))
        self.assertEqual((code, self.owners(put)), (200, {}))
        code, applied = self.apply(config({"l": "1"}))
        self.assertEqual((code, self.owners(applied)), (200, {
            ("one", "Apply"): {"f:data": {"f:l": {}}},
            ("before-first-apply", "Update"): {"f:data": {".": {}, "f:k": {}}}}))

    def test_lists_watches_and_other_shapes_include_managed_fields(self):
        _, made = self.apply(config({"k": "1"}))
        fields = made["metadata"]["managedFields"]
        _, found = self.send("GET", CMS)
        self.assertEqual([i["metadata"]["managedFields"] for i in found["items"]
                          if i["metadata"]["name"] == "a"], [fields])
        for accept, get in (
                ("application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io", lambda o: o["metadata"]),
                ("application/json;as=Table;v=v1;g=meta.k8s.io", lambda o: o["rows"][0]["object"]["metadata"])):
            self.assertEqual(get(json.loads(self.get(CMS + "/a", accept)))["managedFields"], fields)
        self.assertIn(b'{"f:data":{"f:k":{}}}', self.get(CMS + "/a", "application/vnd.kubernetes.protobuf"))
        watch = self.get(CMS + "?watch=true&resourceVersion=0&timeoutSeconds=1&fieldSelector=metadata.name%3Da",
                         "application/json")
        self.assertEqual(json.loads(watch.splitlines()[0])["object"]["metadata"]["managedFields"], fields)

    def get(self, path, accept):
        connection = http.client.HTTPConnection("127.0.0.1", self.kube_port, timeout=60)
        try:
            connection.request("GET", path, headers={"Accept": accept})
            return connection.getresponse().read()
        finally:
            connection.close()

    def test_invalid_managed_fields_of_clients_are_ignored_or_refused(self):
        self.apply(config({"k": "1"}))
        deep = fields = {}
        for _ in range(300):
            fields["f:x"] = fields = {}
        sent = {"manager": "x", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1"}
        for wrong in ({"f:a": 1}, {"k:{": {}}, {"v:[1]": {}}, {"i:-1": {}}, {"nothing": {}},
                      {f"f:{i}": {} for i in range(100001)}):
            code, body = self.send("PATCH", CMS + "/a", {"metadata": {"managedFields": [dict(sent, fieldsV1=wrong)]}}, MERGE)
            self.assertIn(code, (200, 413), str(body)[:300])
        self.assertEqual(self.send("PATCH", CMS + "/a", {"metadata": {"managedFields": [dict(sent, fieldsV1=deep)]}},
                                   MERGE)[0], 400)
        _, kept = self.send("GET", CMS + "/a")
        self.assertEqual(self.owners(kept), {("one", "Apply"): {"f:data": {"f:k": {}}}})
        for reset in ([], [{}]):
            self.apply(config({"k": "1"}), query="&force=true")
            code, bare = self.send("PATCH", CMS + "/a", {"metadata": {"managedFields": reset}}, MERGE)
            self.assertEqual((code, self.owners(bare)), (200, {}))

    def test_fields_removed_with_those_of_a_manager(self):
        """Clients set the owners; the results are those of a real kube-apiserver."""
        texts = {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"}
        parts = {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
                 "items": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}}}
        schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": {
            "size": {"type": "integer"}, "tags": texts, "parts": parts}}}}
        names = {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"}
        code, made = self.send("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", {
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "things.e.com"}, "spec": {"group": "e.com", "scope": "Namespaced", "names": names, "versions": [
                {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}]}})
        self.assertEqual(code, 201, made)
        item = {"parts": [{"name": "x"}]}
        for name, first, two, three, then, last in (
                # The size has no owner: it is removed, because only an empty list would be left.
                ("a", {"size": 1, "tags": []}, {}, None, {}, None),
                # A manager owns the fields of an item but not the item; and an item whose fields have no owner.
                ("b", item, {"f:parts": {'k:{"name":"x"}': {"f:name": {}}}}, None, {"size": 1}, {"size": 1}),
                ("c", dict(item, size=1), {"f:size": {}}, {"f:parts": {'k:{"name":"x"}': {}}}, {}, item)):
            path = f"/apis/e.com/v1/namespaces/default/things/{name}"
            body = {"apiVersion": "e.com/v1", "kind": "Thing", "metadata": {"name": name}}
            self.assertEqual(self.apply(dict(body, spec=first), path=path)[0], 201)
            self.assertEqual(self.send("PATCH", path, {"metadata": {"managedFields": [{
                "manager": manager, "operation": "Apply", "apiVersion": "e.com/v1", "fieldsType": "FieldsV1",
                "fieldsV1": {"f:spec": fields}} for manager, fields in (("two", two), ("three", three))
                if fields is not None]}}, MERGE)[0], 200)
            code, left = self.apply(dict(body, spec=then), "two", path=path)
            self.assertEqual((code, left.get("spec")), (200, last), left)
            # For a custom resource, an empty list of owners means no change.
            code, kept = self.send("PATCH", path, {"metadata": {"managedFields": []}}, MERGE)
            self.assertEqual((code, self.owners(kept)), (200, self.owners(left)))

    def test_invalid_applies_are_refused(self):
        for code, message, body, query in (
                (422, 'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required for apply patch',
                 config({}), ""),
                (400, "metadata.managedFields must be nil", config({}, managedFields=[]), "one"),
                (400, "invalid object type: /v1, Kind=Secret", dict(config({}), kind="Secret"), "one"),
                (500, "failed to create typed patch object (/a; /v1, Kind=ConfigMap): .x: field not declared in schema",
                 dict(config({}), x=1), "one")):
            got, status = self.apply(body, query)
            self.assertEqual((got, status["message"]), (code, message))

    def test_duplicate_keys_cause_a_warning_or_are_refused(self):
        twice = b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"k":"1","k":"2"}}'
        code, status = self.apply(twice, query="&fieldValidation=Strict")
        why = "yaml: unmarshal errors:\n  line 1: key \"k\" already set in map"
        self.assertEqual((code, status["message"]), (400, "error strict decoding YAML: error converting YAML to JSON: " + why))
        self.assertEqual(self.apply(twice)[0], 201)
        self.assertEqual(self.headers["Warning"], '299 - "line 1: key \\"k\\" already set in map"')

    def test_very_many_fields_are_refused_quickly(self):
        many = config({f"k{i}": "" for i in range(40000)})
        code, _ = self.apply(many)
        self.assertIn(code, (201, 413))
        code, status = self.apply(config({f"k{i}": "" for i in range(60000)}), "two")
        self.assertEqual(code, 413, str(status)[:300])
        self.assertEqual(self.send("GET", "/api/v1/namespaces/default")[0], 200)


@only_vigil
class FromClientToServer(unittest.TestCase):
    """kubectl changes from client-side to server-side apply."""

    def test_fields_from_client_side_apply_stay_owned_by_kubectl(self):
        with tempfile.TemporaryDirectory(prefix="vigil-apply-") as directory:
            server = KubeServer(pathlib.Path(directory) / "data").start()
            self.addCleanup(server.stop)

            def kubectl(data, *words):
                done = subprocess.run(
                    [KUBECTL, f"--kubeconfig={server.kubeconfig}", "apply", "-f", "-", *words],
                    input=json.dumps(config(data)), text=True, capture_output=True, check=False, timeout=60,
                    env={**os.environ, "HOME": directory, "KUBECONFIG": "/dev/null"})
                return done.returncode, done.stdout + done.stderr

            self.assertEqual(kubectl({"k": "1", "l": "1"})[0], 0)
            code, output = kubectl({"k": "2", "l": "1"}, "--server-side")
            self.assertEqual(code, 0, output)
            self.assertIn("serverside-applied", output)
            code, output = kubectl({"k": "3"}, "--server-side", "--field-manager=other")
            self.assertNotEqual(code, 0, output)
            self.assertIn("conflict", output)
            code, output = kubectl({"k": "3"}, "--server-side", "--field-manager=other", "--force-conflicts")
            self.assertEqual(code, 0, output)
            code, output = kubectl({"l": "1"}, "--server-side")
            self.assertEqual(code, 0, output)
            connection = http.client.HTTPConnection("127.0.0.1", server.kube_port, timeout=60)
            connection.request("GET", CMS + "/a")
            self.assertEqual(json.loads(connection.getresponse().read())["data"], {"k": "3", "l": "1"})
            connection.close()


if __name__ == "__main__":
    unittest.main()
