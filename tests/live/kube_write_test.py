#!/usr/bin/python3
"""Writes through the Kubernetes API: exact Statuses, tokens, and malicious clients."""
import base64
import datetime
import http.client
import json
import os
import socket
import subprocess
import time
import unittest
import urllib.request

from server import WAIT_SECONDS, LiveTest, free_port, only_vigil

CMS = "/api/v1/namespaces/default/configmaps"
MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
GROWTH_KB_MAX = 128 << 10


def deployment(name, **spec):
    return {"metadata": {"name": name}, "spec": dict({"selector": {"matchLabels": {"a": "b"}}, "template": {
        "metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}}, **spec)}


class KubeTest(LiveTest):
    def setUp(self):
        super().setUp()
        self.kube_port = free_port()
        asan = os.environ.get("ASAN_OPTIONS", "") + ":quarantine_size_mb=1:malloc_context_size=2"
        self.vigil = self.serving(args=[f"--listen-kube-urls=http://127.0.0.1:{self.kube_port}"],
                                  env={"ASAN_OPTIONS": asan})

    def send(self, method, path, body=None, content_type="application/json"):
        data = body if isinstance(body, (bytes, type(None))) else json.dumps(body).encode()
        connection = http.client.HTTPConnection("127.0.0.1", self.kube_port, timeout=60)
        try:
            connection.request(method, path, body=data, headers={"Content-Type": content_type})
            response = connection.getresponse()
            self.headers = response.headers
            text = response.read()
            try:
                return response.status, json.loads(text)
            except ValueError:
                return response.status, text
        finally:
            connection.close()

    def make(self, name="a", **more):
        code, made = self.send("POST", CMS, {"metadata": {"name": name}, **more})
        self.assertEqual(code, 201, made)
        return made

    def eventually(self, code, path, seconds=WAIT_SECONDS):
        end = time.monotonic() + seconds
        while True:
            got = self.send("GET", path)
            if got[0] == code:
                return got[1]
            self.assertLess(time.monotonic(), end, got)
            time.sleep(0.05)


@only_vigil
class Statuses(KubeTest):
    """tests/kube/same_writes_test.py compares the wording with that of a real kube-apiserver."""

    def refuse(self, code, reason, message, *request):
        got, status = self.send(*request)
        self.assertEqual((got, status.get("reason"), status.get("message")), (code, reason, message))
        self.assertEqual((status["kind"], status["status"], status["code"]), ("Status", "Failure", code))
        return status.get("details")

    def test_errors_have_the_wording_of_kubernetes(self):
        self.make()
        details = self.refuse(409, "AlreadyExists", 'configmaps "a" already exists',
                              "POST", CMS, {"metadata": {"name": "a"}})
        self.assertEqual(details, {"name": "a", "kind": "configmaps"})
        self.refuse(404, "NotFound", 'namespaces "no" not found',
                    "POST", "/api/v1/namespaces/no/configmaps", {"metadata": {"name": "a"}})
        details = self.refuse(422, "Invalid", 'ConfigMap "" is invalid: metadata.name: Required value: '
                              "name or generateName is required", "POST", CMS, {})
        self.assertEqual(details["causes"], [{"reason": "FieldValueRequired", "field": "metadata.name", "message":
                                              "Required value: name or generateName is required"}])
        self.refuse(409, "Conflict", 'Operation cannot be fulfilled on configmaps "a": the object has been modified; '
                    "please apply your changes to the latest version and try again",
                    "PUT", CMS + "/a", {"metadata": {"name": "a", "resourceVersion": "1"}})
        self.refuse(400, "BadRequest", 'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding '
                    'error: duplicate field "metadata.name", duplicate field "data.a"', "POST",
                    CMS + "?fieldValidation=Strict", b'{"metadata":{"name":"d","name":"d"},"data":{"a":"1","a":"2"}}')
        # Errors are in the order of the body.
        self.refuse(400, "BadRequest", 'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding '
                    'error: unknown field "x", duplicate field "data.a", unknown field "metadata.y"', "POST",
                    CMS + "?fieldValidation=Strict", b'{"x":1,"data":{"a":"1","a":"2"},"metadata":{"name":"d","y":1}}')
        self.refuse(405, "MethodNotAllowed", "the server does not allow this method on the requested resource",
                    "DELETE", "/api/v1/namespaces")
        self.refuse(415, "UnsupportedMediaType", "415: Unsupported Media Type", "PATCH", CMS + "/a", {})
        self.refuse(403, "Forbidden", 'namespaces "default" is forbidden: this namespace may not be deleted',
                    "DELETE", "/api/v1/namespaces/default")

    def test_values_that_go_clients_cannot_parse_are_refused(self):
        leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
        wrong = 'parsing time "bad" as "2006-01-02T15:04:05.000000Z07:00": cannot parse "bad" as "2006"'
        self.refuse(400, "BadRequest", 'Lease in version "v1" cannot be handled as a Lease: ' + wrong,
                    "POST", leases, {"metadata": {"name": "l"}, "spec": {"renewTime": "bad"}})
        # The same string with an escape.
        self.refuse(400, "BadRequest", 'Lease in version "v1" cannot be handled as a Lease: ' + wrong,
                    "POST", leases, b'{"metadata":{"name":"l"},"spec":{"renewTime":"\\u0062ad"}}')
        pod = {"metadata": {"name": "p"}, "spec": {"containers": [
            {"name": "c", "image": "i", "resources": {"limits": {"cpu": "1e"}}}]}}
        self.refuse(400, "BadRequest", 'Pod in version "v1" cannot be handled as a Pod: unable to parse quantity\'s '
                    "suffix", "POST", "/api/v1/namespaces/default/pods", pod)
        self.assertEqual(self.send("POST", leases, {"metadata": {"name": "l"}, "spec": {}})[0], 201)
        for patch, kind in (({"spec": {"renewTime": "bad"}}, MERGE),
                            ([{"op": "add", "path": "/spec/renewTime", "value": "bad"}], "application/json-patch+json")):
            self.assertEqual(self.send("PATCH", leases + "/l", patch, kind)[0], 422)
        code, status = self.send("PATCH", leases + "/l?fieldManager=m", {
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "l"},
            "spec": {"renewTime": "bad"}}, "application/apply-patch+yaml")
        self.assertEqual((code, status["message"]), (
            500, "failed to convert new object (/l; coordination.k8s.io/v1, Kind=Lease) to proper version: unable to "
            "convert unstructured object to coordination.k8s.io/v1, Kind=Lease: " + wrong))
        self.assertEqual(self.send("GET", leases + "/l")[1]["spec"], {})

    def test_duplicate_key_causes_a_warning(self):
        code, made = self.send("POST", CMS, b'{"metadata":{"name":"d"},"data":{"a":"1","a":"2"}}')
        self.assertEqual((code, made["data"]), (201, {"a": "2"}))
        self.assertEqual(self.headers["Warning"], '299 - "duplicate field \\"data.a\\""')

    def test_unknown_and_duplicate_fields_of_a_patch_cause_warnings(self):
        self.make()

        def warned(patch, kind):
            self.assertEqual(self.send("PATCH", CMS + "/a", patch, kind)[0], 200)
            return [warning[len('299 - "'):-1].replace("\\", "") for warning in self.headers.get_all("Warning")]
        self.assertEqual(warned(b'{"zz":1,"data":{"k":"1","k":"2"},"aa":{"b":1,"b":2}}', MERGE), [
            'duplicate field "data.k"', 'duplicate field "aa.b"', 'unknown field "aa"', 'unknown field "zz"'])
        self.assertEqual(warned(b'[{"op":"add","op":"add","from":"/a","path":"/zz","value":1,"more":1}]', JSON_PATCH), [
            'json patch duplicate field "[0].op"', 'json patch unknown field "[0].more"', 'unknown field "zz"'])
        code, status = self.send("PATCH", CMS + "/a?fieldValidation=Strict", b'{"data":{"k":"1","k":"2"}}', MERGE)
        self.assertEqual((code, status["message"].split(": strict ")[1]), (422, 'decoding error: duplicate field "data.k"'))

    def test_update_of_a_lease_needs_a_version(self):
        leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
        self.assertEqual(self.send("POST", leases, {"metadata": {"name": "l"}})[0], 201)
        for none in ("", "0", "00", None):
            self.assertEqual(self.send("PUT", leases + "/l", {"metadata": {"name": "l", "resourceVersion": none}})[0], 422)
            self.assertEqual(self.send("PATCH", leases + "/l", {"metadata": {"resourceVersion": none}}, MERGE)[0], 422)
        self.assertEqual(self.send("PATCH", leases + "/l", {"spec": {"holderIdentity": "me"}}, MERGE)[0], 200)

    def test_unknown_fields_in_yaml_are_reported_in_order_of_name(self):
        code, status = self.send("POST", CMS + "?fieldValidation=Strict", b"metadata: {name: yam}\nzz: 1\naa: 1\n", "application/yaml")
        self.assertEqual((code, status["message"].split(": strict ")[1]), (400, 'decoding error: unknown field "aa", unknown field "zz"'))

    def test_clients_generation_is_stored_for_kinds_without_one(self):
        for name, given, kept in (("one", 7, 7), ("two", 0, None), ("three", None, None)):
            made = self.make(metadata={"name": name, "generation": given})
            self.assertEqual(made["metadata"].get("generation"), kept)
        self.refuse(422, "Invalid", 'ConfigMap "four" is invalid: metadata.generation: Invalid value: -1: must be greater than or '
                    "equal to 0", "POST", CMS, {"metadata": {"name": "four", "generation": -1}})

    def test_scale_of_zero_has_no_replicas_in_its_spec(self):
        apps = "/apis/apps/v1/namespaces/default/deployments"
        self.assertEqual(self.send("POST", apps, deployment("d", replicas=3))[0], 201)
        scale = self.send("PATCH", apps + "/d/scale", {"spec": {"replicas": 0}}, MERGE)[1]
        self.assertEqual((scale["spec"], scale["status"]["replicas"]), ({}, 0))
        self.assertEqual(self.send("PATCH", apps + "/d/scale", {"metadata": {}}, MERGE)[1]["spec"], {})
        self.assertEqual(self.send("GET", apps + "/d")[1]["spec"]["replicas"], 0)

    def test_missing_status_is_the_zero_value_of_its_type(self):
        apps = "/apis/apps/v1/namespaces/default/deployments"
        service = {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}}
        for path, sent, zero in ((apps, deployment("d"), {}), (CMS, {"metadata": {"name": "c"}}, None),
                                 ("/api/v1/namespaces/default/services", service, {"loadBalancer": {}})):
            code, made = self.send("POST", path, sent)
            self.assertEqual((code, made.get("status")), (201, zero))
        self.assertEqual(self.send("PATCH", apps + "/d/status", {"status": {"replicas": 2}}, MERGE)[1]["status"], {"replicas": 2})
        self.assertEqual(self.send("PATCH", apps + "/d/status", {"status": None}, MERGE)[1]["status"], {})

    def test_name_of_an_ip_address_must_be_canonical(self):
        addresses = "/apis/networking.k8s.io/v1/ipaddresses"
        spec = {"parentRef": {"resource": "services", "name": "s"}}
        for name in ("192.0.2.1", "2001:db8::1", "::1", "::102:304"):
            self.assertEqual(self.send("POST", addresses, {"metadata": {"name": name}, "spec": spec})[0], 201)
            self.assertEqual(self.send("GET", f"{addresses}/{name}")[1]["metadata"]["name"], name)
        valid = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
        for name, why in (("2001:DB8::2", 'must be in canonical form ("2001:db8::2")'),
                          ("2001:db8:0::2", 'must be in canonical form ("2001:db8::2")'),
                          ("::1.2.3.4", 'must be in canonical form ("::102:304")'),
                          ("::ffff:1.2.3.4", "must not be an IPv4-mapped IPv6 address"),
                          ("01.2.3.4", "must not have leading 0s"), ("::01.2.3.4", "must not have leading 0s"),
                          ("one", valid), ("1.2.3", valid), ("0", valid), ("1:" * 40, valid)):
            self.refuse(422, "Invalid", f'IPAddress.networking.k8s.io "{name}" is invalid: metadata.name: Invalid value: "{name}": '
                        + why, "POST", addresses, {"metadata": {"name": name}, "spec": spec})

    def test_given_name_takes_precedence_over_generate_name(self):
        self.make("given")
        code, status = self.send("POST", CMS, {"metadata": {"name": "given", "generateName": "g-"}})
        self.assertEqual((code, status["details"]["name"]), (409, "given"))

    def test_a_dry_run_changes_nothing(self):
        made = self.make(data={"k": "v"})
        dry = "?dryRun=All"
        self.assertEqual(self.send("POST", CMS + dry, {"metadata": {"name": "b"}})[0], 201)
        for version in ("5", "0", "x"):  # the answer repeats the version
            answer = self.send("POST", CMS + dry, {"metadata": {"name": "b", "resourceVersion": version}})
            self.assertEqual((answer[0], answer[1]["metadata"]["resourceVersion"]), (201, version))
        self.assertEqual(self.send("PATCH", CMS + "/a" + dry, {"data": {"k": "w"}}, MERGE)[1]["data"], {"k": "w"})
        self.assertEqual(self.send("DELETE", CMS + "/a" + dry)[0], 200)
        self.assertEqual(self.send("DELETE", CMS + dry)[0], 200)
        self.assertEqual(self.send("GET", CMS + "/b")[0], 404)
        self.assertEqual(self.send("GET", CMS + "/a")[1], made)

    def test_a_key_that_is_set_twice_in_yaml_is_reported(self):
        text = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: twice}\ndata:\n  a: one\ndata:\n  a: two\n  a: three\n"
        lines = ['line 8: key "a" already set in map', 'line 7: key "data" already set in map']
        for method, path, kind, prefix in (
                ("POST", CMS, "application/yaml", 'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: '),
                ("PATCH", f"{CMS}/twice", "application/apply-patch+yaml", "error strict decoding YAML: error converting YAML to JSON: ")):
            query = "?dryRun=All&fieldManager=m"
            code, answer = self.send(method, f"{path}{query}&fieldValidation=Strict", text, kind)
            self.assertEqual((code, answer["message"]), (400, "\n  ".join([prefix + "yaml: unmarshal errors:", *lines])))
            for mode, warnings in (("", lines), ("&fieldValidation=Warn", lines), ("&fieldValidation=Ignore", [])):
                code, answer = self.send(method, path + query + mode, text, kind)
                self.assertEqual((code, answer["data"]), (201, {"a": "three"}))
                quoted = [f'299 - "{line}"' for line in (line.replace('"', '\\"') for line in warnings)]
                self.assertEqual(self.headers.get_all("Warning") or [], quoted)

    def test_finalize_and_approval_change_metadata_too(self):
        self.assertEqual(self.send("POST", "/api/v1/namespaces", {"metadata": {"name": "n", "labels": {"old": "1"}}})[0], 201)
        code, answer = self.send("GET", "/api/v1/namespaces/n")
        answer["metadata"]["labels"] = {"new": "1"}
        answer["metadata"]["annotations"] = {"new": "1"}
        answer["spec"]["finalizers"] = ["kubernetes", "example.com/x"]
        code, answer = self.send("PUT", "/api/v1/namespaces/n/finalize", answer)
        self.assertEqual(code, 200, answer)
        code, answer = self.send("GET", "/api/v1/namespaces/n")
        self.assertEqual((answer["metadata"]["labels"].get("old"), answer["metadata"]["labels"]["new"]), (None, "1"))
        self.assertEqual(answer["metadata"]["annotations"], {"new": "1"})
        self.assertEqual(answer["spec"]["finalizers"], ["kubernetes", "example.com/x"])
        path = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
        made = subprocess.run(["openssl", "req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                               "-keyout", "/dev/null", "-subj", "/CN=jane"], check=True, capture_output=True).stdout
        code, answer = self.send("POST", path, {"metadata": {"name": "r"}, "spec": {
            "request": base64.b64encode(made).decode(), "signerName": "example.com/s", "usages": ["client auth"]}})
        self.assertEqual(code, 201, answer)
        code, answer = self.send("PATCH", f"{path}/r/approval", {
            "metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}}, "spec": {"signerName": "example.com/other"},
            "status": {"conditions": [{"type": "Approved", "status": "True", "reason": "r", "message": "m"}]}}, MERGE)
        self.assertEqual(code, 200, answer)
        code, answer = self.send("GET", f"{path}/r")
        self.assertEqual((answer["metadata"]["labels"], answer["metadata"]["annotations"]), ({"a": "b"}, {"c": "d"}))
        self.assertEqual((answer["spec"]["signerName"], answer["status"]["conditions"][0]["type"]), ("example.com/s", "Approved"))

    def test_finalizer_keeps_an_object_until_it_is_removed(self):
        self.make(metadata={"name": "a", "finalizers": ["e.com/x"]})
        code, marked = self.send("DELETE", CMS + "/a")
        self.assertEqual((code, marked["metadata"]["deletionGracePeriodSeconds"]), (200, 0))
        self.assertIn("deletionTimestamp", marked["metadata"])
        self.assertEqual(self.send("PATCH", CMS + "/a", {"metadata": {"finalizers": None}}, MERGE)[0], 200)
        self.assertEqual(self.send("GET", CMS + "/a")[0], 404)

    def test_string_data_of_a_secret_becomes_its_data(self):
        path = "/api/v1/namespaces/default/secrets"
        body = {"metadata": {"name": "s"}, "stringData": {"a": "b"}, "data": {"c": "ZA=="}}
        code, made = self.send("POST", path, body)
        self.assertEqual((code, made["data"], made["type"]), (201, {"c": "ZA==", "a": "Yg=="}, "Opaque"))
        self.assertNotIn("stringData", self.send("GET", path + "/s")[1])
        patched = self.send("PATCH", path + "/s", {"stringData": {"c": "x"}}, MERGE)[1]
        self.assertEqual(patched["data"], {"c": "eA==", "a": "Yg=="})
        self.assertEqual(self.send("PATCH", path + "/s", {"type": "x"}, MERGE)[0], 422)
        self.assertEqual(self.send("PATCH", path + "/s", {"data": {"a": "!"}}, MERGE)[0], 422)
        self.refuse(400, "BadRequest", 'Secret in version "v1" cannot be handled as a Secret: illegal base64 data at '
                    "input byte 1", "POST", path, {"metadata": {"name": "t"}, "data": {"a": "Y!=="}})

    def test_immutable_config_map_cannot_be_changed(self):
        self.make(immutable=True, data={"a": "b"})
        self.refuse(422, "Invalid", 'ConfigMap "a" is invalid: data: Forbidden: field is immutable when `immutable` '
                    "is set", "PATCH", CMS + "/a", {"data": {"a": "c"}}, MERGE)
        self.assertEqual(self.send("PATCH", CMS + "/a", {"immutable": None}, MERGE)[0], 422)
        self.assertEqual(self.send("PATCH", CMS + "/a", {"metadata": {"labels": {"x": "y"}}}, MERGE)[0], 200)

    def test_creating_a_name_that_is_being_deleted_is_refused(self):
        self.make(metadata={"name": "a", "finalizers": ["e.com/x"]})
        self.send("DELETE", CMS + "/a")
        self.refuse(409, "AlreadyExists", 'object is being deleted: configmaps "a" already exists',
                    "POST", CMS, {"metadata": {"name": "a"}})

    def test_a_scheduler_binds_pods_and_a_drain_evicts_them(self):
        pods = "/api/v1/namespaces/default/pods"
        pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
        self.assertEqual(self.send("POST", pods, pod)[0], 201)
        nominated = self.send("GET", pods + "/p")[1]
        nominated["status"]["nominatedNodeName"] = "m"
        self.assertEqual(self.send("PUT", pods + "/p/status", nominated)[1]["status"]["nominatedNodeName"], "m")
        binding = {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}}
        self.assertEqual(self.send("POST", pods + "/p/binding", binding)[0], 201)
        bound = self.send("GET", pods + "/p")[1]
        self.assertNotIn("nominatedNodeName", bound["status"])
        self.assertEqual((bound["spec"]["nodeName"], bound["status"]["conditions"][0]["type"]), ("n", "PodScheduled"))
        self.refuse(409, "Conflict", 'Operation cannot be fulfilled on pods/binding "p": pod p is already assigned to '
                    'node "n"', "POST", "/api/v1/namespaces/default/bindings", binding)
        self.assertEqual(self.send("POST", pods + "/p/eviction", {"metadata": {"name": "p"}})[0], 201)
        self.assertEqual(self.send("GET", pods + "/p")[1]["metadata"]["deletionGracePeriodSeconds"], 30)
        self.send("DELETE", pods + "/p?gracePeriodSeconds=3")
        self.assertEqual(self.send("GET", pods + "/p")[1]["metadata"]["deletionGracePeriodSeconds"], 3)

    def test_empty_apply_is_refused(self):
        for body in (b"", b"# nothing\n", b"null", b"{}"):
            self.refuse(400, "BadRequest", "invalid object type: /, Kind=", "PATCH", CMS + "/a?fieldManager=m", body,
                        "application/apply-patch+yaml")

    def test_discovery_agrees_with_the_allowed_methods(self):
        rows = {row["name"]: row for row in self.send("GET", "/api/v1")[1]["resources"]}
        self.assertEqual((rows["pods/eviction"]["kind"], rows["pods/binding"]["verbs"]), ("Eviction", ["create"]))
        self.assertNotIn("deletecollection", rows["namespaces"]["verbs"])
        self.refuse(405, "MethodNotAllowed", "the server does not allow this method on the requested resource",
                    "POST", "/apis/apps/v1")
        self.refuse(400, "BadRequest", 'strconv.ParseInt: parsing "99999999999999999999": value out of range',
                    "GET", CMS + "?limit=99999999999999999999")

    def test_events_are_the_same_in_both_of_their_groups(self):
        core, new = ("/api/v1/namespaces/default/events", "/apis/events.k8s.io/v1/namespaces/default/events")
        pod = {"kind": "Pod", "namespace": "default", "name": "p"}
        watch = urllib.request.urlopen(f"http://127.0.0.1:{self.kube_port}{new}?watch=1&timeoutSeconds=30"
                                       "&fieldSelector=regarding.name%3Dp", timeout=60)
        event = {"metadata": {"name": "e"}, "regarding": pod, "note": "n", "reportingController": "c", "reportingInstance": "i",
                 "eventTime": "2026-11-15T06:00:00.000000Z", "type": "Normal", "reason": "r", "action": "a"}
        code, made = self.send("POST", new, event)
        self.assertEqual((code, made["apiVersion"], made["regarding"], made["note"]),
                         (201, "events.k8s.io/v1", pod, "n"))
        seen = self.send("GET", core + "?fieldSelector=involvedObject.name%3Dp")[1]["items"][0]
        self.assertEqual((seen["involvedObject"], seen["message"], seen["reportingComponent"]), (pod, "n", "c"))
        self.assertNotIn("regarding", seen)
        self.assertEqual(self.send("PATCH", new + "/e", {"note": "m"}, MERGE)[0], 422)
        patched = self.send("PATCH", core + "/e", {"message": "m", "count": 2}, MERGE)[1]
        self.assertEqual((patched["message"], patched["count"]), ("m", 2))
        self.assertEqual(self.send("PATCH", core + "/e", {"message": "l"}, MERGE)[1]["count"], 2)
        self.assertEqual(self.send("GET", new)[1]["items"][0]["note"], "l")
        self.send("DELETE", core + "/e")
        events = [json.loads(watch.readline()) for _ in range(4)]
        watch.close()
        self.assertEqual([(e["type"], e["object"]["apiVersion"], e["object"]["note"]) for e in events],
                         [(kind, "events.k8s.io/v1", note) for kind, note in
                          (("ADDED", "n"), ("MODIFIED", "m"), ("MODIFIED", "l"), ("DELETED", "l"))])

    def test_a_collection_is_deleted_page_by_page(self):
        for name in "abc":
            self.make(metadata={"name": name})
        listed = self.send("DELETE", CMS + "?limit=2")[1]
        self.assertEqual([item["metadata"]["name"] for item in listed["items"]], ["a", "b"])
        self.assertEqual(listed["metadata"]["remainingItemCount"], 1)
        rest = self.send("DELETE", CMS + "?limit=2&continue=" + listed["metadata"]["continue"])[1]
        self.assertEqual([item["metadata"]["name"] for item in rest["items"]], ["c"])
        self.assertNotIn("continue", rest["metadata"])
        self.assertEqual(self.send("GET", CMS)[1]["items"], [])

    def test_emptying_a_namespace_continues_after_a_crash(self):
        uid = self.eventually(200, "/api/v1/namespaces/kube-system")["metadata"]["uid"]
        self.assertEqual(self.send("POST", "/api/v1/namespaces", {"metadata": {"name": "t"}})[0], 201)
        inside = "/api/v1/namespaces/t/configmaps"
        for i in range(150):
            self.assertEqual(self.send("POST", inside, {"metadata": {"name": f"c{i}"}})[0], 201)
        held = {"metadata": {"name": "held", "finalizers": ["e.com/x"]}}
        self.assertEqual(self.send("POST", inside, held)[0], 201)
        self.assertEqual(self.send("DELETE", "/api/v1/namespaces/t")[1]["status"]["phase"], "Terminating")
        self.vigil.kill()
        self.vigil.start()
        self.eventually(404, inside + "/c149")
        self.assertEqual(self.send("GET", "/api/v1/namespaces/t")[0], 200)
        self.assertEqual(self.send("PATCH", inside + "/held", {"metadata": {"finalizers": None}}, MERGE)[0], 200)
        self.eventually(404, "/api/v1/namespaces/t")
        self.assertEqual(self.send("GET", "/api/v1/namespaces/kube-system")[1]["metadata"]["uid"], uid)

    def test_emptying_a_namespace_is_left_to_a_controller_manager(self):
        """As long as it renews its lease."""
        leases, inside = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases", "/api/v1/namespaces/t/configmaps"

        def renewed():
            now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
            return {"metadata": {"name": "kube-controller-manager"},
                    "spec": {"holderIdentity": "m", "leaseDurationSeconds": 30, "renewTime": now}}
        self.assertEqual(self.send("POST", leases, renewed())[0], 201)
        for path, name in (("/api/v1/namespaces", "t"), (inside, "c")):
            self.assertEqual(self.send("POST", path, {"metadata": {"name": name}})[0], 201)
        self.assertEqual(self.send("DELETE", "/api/v1/namespaces/t")[1]["status"]["phase"], "Terminating")
        LiveTest.eventually(self, lambda: "kube-controller-manager empties a namespace" in self.vigil.log)
        self.assertEqual(self.send("GET", inside + "/c")[0], 200)
        # It is renewed for the last time, for a short while; another request lets the server look at once.
        last = {"spec": dict(renewed()["spec"], leaseDurationSeconds=1)}
        self.assertEqual(self.send("PATCH", leases + "/kube-controller-manager", last, MERGE)[0], 200)
        self.assertEqual(self.send("DELETE", "/api/v1/namespaces/t")[0], 200)
        self.eventually(404, "/api/v1/namespaces/t")


@only_vigil
class NamespacesLeftToOthers(KubeTest):
    def setUp(self):
        LiveTest.setUp(self)
        self.kube_port = free_port()
        self.vigil = self.serving(args=[f"--listen-kube-urls=http://127.0.0.1:{self.kube_port}",
                                        "--kube-namespace-controller=false"])

    def test_deleted_namespace_stays_until_others_have_emptied_it(self):
        space, inside = "/api/v1/namespaces/t", "/api/v1/namespaces/t/configmaps"
        for path, name in (("/api/v1/namespaces", "t"), (inside, "c")):
            self.assertEqual(self.send("POST", path, {"metadata": {"name": name}})[0], 201)
        self.assertEqual(self.send("DELETE", space)[1]["status"]["phase"], "Terminating")
        for _ in range(100):  # each a turn in which the server could have deleted it
            self.assertEqual(self.send("GET", f"{inside}/c")[0], 200)
        self.vigil.stop()
        self.vigil.start()
        self.assertEqual(self.send("GET", f"{inside}/c")[0], 200, "nor does a start")
        self.assertEqual(self.send("DELETE", f"{inside}/c")[0], 200)
        left = self.send("GET", space)[1]
        left["spec"]["finalizers"] = []
        self.assertEqual(self.send("PUT", f"{space}/finalize", left)[0], 200)
        self.assertEqual(self.send("GET", space)[0], 404)


@only_vigil
class Tokens(KubeTest):
    def setUp(self):
        LiveTest.setUp(self)
        self.kube_port = free_port()
        self.tokens = self.scratch / "tokens"
        self.tokens.write_text('secret,jane,7,"dev,ops"\n')
        self.vigil = self.serving(args=[f"--listen-kube-urls=http://127.0.0.1:{self.kube_port}",
                                        f"--kube-token-file={self.tokens}"])

    def send_with(self, token, method="GET", path="/api/v1/namespaces", body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.kube_port, timeout=60)
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        connection.request(method, path, headers=headers, body=None if body is None else json.dumps(body))
        response = connection.getresponse()
        text = response.read()
        connection.close()
        return response.status, text

    def test_requests_without_a_valid_token_are_refused(self):
        code, text = self.send_with(None)
        self.assertEqual((code, json.loads(text)["message"]), (401, "Unauthorized"))
        self.assertEqual(self.send_with("wrong")[0], 401)
        self.assertEqual(self.send_with("secret")[0], 200)
        self.assertEqual(self.send_with(None, path="/livez"), (200, b"ok"))
        self.assertEqual(self.send_with(None, path="/metrics")[0], 401)

    def test_reviews_return_the_user_of_a_token(self):
        code, text = self.send_with("secret", "POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", {})
        self.assertEqual((code, json.loads(text)["status"]["userInfo"]), (201, {
            "username": "jane", "uid": "7", "groups": ["dev", "ops", "system:authenticated"]}))
        path = "/apis/authentication.k8s.io/v1/tokenreviews"
        for token, known in (("secret", True), ("wrong", None)):
            code, text = self.send_with("secret", "POST", path, {"spec": {"token": token}})
            self.assertEqual((code, json.loads(text)["status"].get("authenticated")), (201, known))

    def test_invalid_token_file_is_refused_at_start(self):
        bad = self.scratch / "bad"
        bad.write_text("only-a-token\n")
        code, log = self.server(self.scratch / "other", args=[f"--kube-token-file={bad}"]).refuse()
        self.assertNotEqual(code, 0)
        self.assertIn("line 1 is not: token,user,uid", log)


@only_vigil
class Attacks(KubeTest):
    def setUp(self):
        super().setUp()
        self.make("before", data={"k": "v"})
        self.memory = self.vigil.anonymous_kb()

    def tearDown(self):
        self.assertEqual(self.send("GET", CMS + "/before")[0], 200)
        self.assertLess(self.vigil.anonymous_kb(), self.memory + GROWTH_KB_MAX)
        super().tearDown()

    def test_bodies_too_deep_or_too_large_are_refused(self):
        deep = b'{"metadata":{"name":"x"},"data":' + b"[" * 100000 + b"]" * 100000 + b"}"
        self.assertEqual(self.send("POST", CMS, deep)[0], 400)
        self.assertEqual(self.send("PATCH", CMS + "/before", b'{"data":' * 5000 + b"1" + b"}" * 5000, MERGE)[0], 400)
        code, status = self.send("POST", CMS, b'{"a":"' + b"x" * (3 << 20) + b'"}')
        self.assertEqual((code, status["message"]), (413, "Request entity too large: limit is 3145728"))
        # This object may be sent but is too large to be stored.
        large = {"metadata": {"name": "large"}, "spec": {"holderIdentity": "x" * (2 << 20)}}
        self.assertEqual(self.send("POST", "/apis/coordination.k8s.io/v1/namespaces/default/leases", large)[0], 413)
        for _ in range(5):
            many = b'{"metadata":{"name":"x"},"data":[' + b"{}," * 900000 + b"{}]}"
            self.assertIn(self.send("POST", CMS, many)[0], (400, 413))

    def test_expanding_yaml_and_patches_are_refused(self):
        lines = ["a0: &a0 [x,x,x,x,x,x,x,x,x]"]
        lines += [f"a{i}: &a{i} [{','.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 9)]
        yaml = "\n".join(["metadata: {name: yam}"] + lines).encode()
        self.assertEqual(self.send("POST", CMS, yaml, "application/yaml")[0], 413)
        copies = [{"op": "copy", "from": "/data", "path": f"/data/x{i}"} for i in range(60)]
        self.assertEqual(self.send("PATCH", CMS + "/before", copies, JSON_PATCH)[0], 413)
        tests = [{"op": "test", "path": "/data/k", "value": "v"}] * 10001
        self.assertEqual(self.send("PATCH", CMS + "/before", tests, JSON_PATCH)[0], 413)

    def test_incomplete_bodies_and_closed_connections_leave_nothing_behind(self):
        for i in range(200):
            with socket.create_connection(("127.0.0.1", self.kube_port)) as peer:
                body = json.dumps({"metadata": {"generateName": "g"}, "data": {"k": "v" * 1000}})
                sent = body if i % 2 else body[:500]
                peer.sendall((f"POST {CMS} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
                              f"Content-Length: {len(body)}\r\n\r\n{sent}").encode())

    def test_names_in_paths_cannot_escape_their_prefix(self):
        for name in ("..", "%2e%2e", "a%2fb", "%00", "x" * 5000):
            code, _ = self.send("PUT", f"{CMS}/{name}", {"metadata": {"name": name}})
            self.assertIn(code, (301, 400, 404, 405, 414, 431), name)


if __name__ == "__main__":
    unittest.main()
