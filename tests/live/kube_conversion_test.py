#!/usr/bin/python3
"""Conversion of custom resources by a webhook: every kind of request in every version, and converters that misbehave.
tests/kube/same_conversion_test.py compares the answers with those of a real kube-apiserver."""
import http.client
import json
import os
import pathlib
import select
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import conversions  # noqa: E402
import webhooks  # noqa: E402
from conversions import CRDS, definition, gate, path  # noqa: E402
from kube import KubeServer  # noqa: E402

WAIT_SECONDS = 60
CONVERSION_SECONDS = 30  # what a conversion may take
PROMPT_SECONDS = 10  # what waits for no converter takes a fraction of a second
MIB = 1 << 20
LATE_WRITE = "Timeout: request did not complete within requested timeout - context deadline exceeded"
LATE_READ = "Timeout: request did not complete within the allotted timeout"
MERGE, JSON, APPLY = "application/merge-patch+json", "application/json-patch+json", "application/apply-patch+yaml"


def threads():
    """I/O threads, each of which converts for its own watches."""
    return len(os.sched_getaffinity(0))


class ConversionTest(unittest.TestCase):
    options = ()

    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.server = KubeServer(self.directory.name + "/data", self.options).start()
        self.hooks = webhooks.Webhooks(self.directory.name)
        self.define()

    def tearDown(self):
        self.hooks.stop()
        self.server.close()
        self.server.stop()
        self.directory.cleanup()

    def define(self, behaviour=conversions.good, **more):
        self.send("POST", CRDS, definition(self.hooks.on("/convert", behaviour), **more), 201)

    def behave(self, behaviour):
        self.hooks.on("/convert", behaviour)

    def send(self, method, where, body=None, code=None, content_type="application/json"):
        connection = http.client.HTTPConnection("127.0.0.1", self.server.kube_port, timeout=WAIT_SECONDS)
        connection.request(method, where, body if body is None or isinstance(body, str) else json.dumps(body),
                           {"Content-Type": content_type})
        response = connection.getresponse()
        self.warning = response.getheader("Warning")
        answer = json.loads(response.read())
        connection.close()
        if code:
            self.assertEqual(response.status, code, answer)
        return answer

    def patch(self, where, body, code=200, content_type=MERGE):
        return self.send("PATCH", where, body, code, content_type)

    def stored(self, name, namespace="default"):
        key = f"/registry/example.com/gates/{namespace}/{name}"
        kvs = self.server.call("/v3/kv/range", key=webhooks.base64.b64encode(key.encode()).decode()).get("kvs")
        return json.loads(webhooks.base64.b64decode(kvs[0]["value"])) if kvs else None

    def put_many(self, count, **fields):
        """Stores objects of v1 without the API."""
        things = {f"g{i:04}": {"kind": "Gate", "api": "example.com/v1", "spec": {"hostPort": f"h{i}:1"}, **fields} for i in range(count)}
        self.server.put_many("example.com/gates", things)

    def until(self, done):
        end = time.monotonic() + WAIT_SECONDS
        while not done():
            self.assertLess(time.monotonic(), end, self.server.log)
            time.sleep(0.02)

    def leave(self, method, where, body=None, content_type="application/json"):
        """Sends a request whose conversion hangs, and leaves. The webhook is not called any longer, long before its time is over."""
        begun = time.monotonic()
        connection = http.client.HTTPConnection("127.0.0.1", self.server.kube_port, timeout=WAIT_SECONDS)
        connection.request(method, where, body, {"Content-Type": content_type})
        self.hooks.wait_until(lambda: self.hooks.waiting == 1)
        connection.close()
        self.hooks.wait_until(lambda: self.hooks.waiting == 0)
        self.assertLess(time.monotonic() - begun, CONVERSION_SECONDS / 2)

    def calls(self):
        return len(self.hooks.of("/convert"))

    def begin(self, method, where, body=None, content_type="application/json"):
        """Sends a request, and returns its connection."""
        connection = http.client.HTTPConnection("127.0.0.1", self.server.kube_port, timeout=WAIT_SECONDS)
        self.addCleanup(connection.close)
        connection.request(method, where, json.dumps(body) if body is not None else None, {"Content-Type": content_type})
        return connection

    def answer(self, connection):
        response = connection.getresponse()
        return response.status, json.loads(response.read())


class Versions(ConversionTest):
    """Requests in a version that is not stored."""

    def test_object_is_stored_in_one_version_and_served_in_all(self):
        made = self.send("POST", path("v2"), gate("a", "v2", host="x", port="80"), 201)
        self.assertEqual((made["apiVersion"], made["spec"]), ("example.com/v2", {"host": "x", "port": "80"}))
        self.assertEqual(self.stored("a")["apiVersion"], "example.com/v1")
        self.assertEqual(self.stored("a")["spec"], {"hostPort": "x:80"})
        self.assertEqual(self.calls(), 2)  # to the stored version, and back for the answer
        for api, spec in (("v1", {"hostPort": "x:80"}), ("v2", {"host": "x", "port": "80"}), ("v3", {"host": "x", "port": "80"})):
            got = self.send("GET", path(api, "a"), code=200)
            self.assertEqual((got["apiVersion"], got["spec"]), (f"example.com/{api}", spec))
            self.assertEqual({**got["metadata"], "managedFields": 0}, {**made["metadata"], "managedFields": 0})
        self.assertEqual(self.calls(), 4)
        call = self.hooks.of("/convert")[0]
        self.assertEqual((call.method, call.query, call.headers["user-agent"]), ("POST", {"timeout": "30s"}, "kube-apiserver-admission"))
        self.assertEqual((call.review["kind"], call.review["apiVersion"]), ("ConversionReview", "apiextensions.k8s.io/v1"))

    def test_stored_version_is_served_without_the_converter(self):
        self.behave(conversions.BAD["failure"])
        self.send("POST", path(), gate("a"), 201)
        self.patch(path("v1", "a"), {"metadata": {"labels": {"a": "b"}}})
        self.patch(path("v1", "a", "scale"), {"spec": {"replicas": 3}})
        self.assertEqual(len(self.send("GET", path(), code=200)["items"]), 1)
        self.send("DELETE", path("v1", "a"), None, 200)
        self.assertEqual(self.calls(), 0)

    def test_updates_and_patches_of_every_kind_see_the_version_of_the_request(self):
        self.send("POST", path(), gate("a", hostPort="x:80"), 201)
        whole = self.send("GET", path("v2", "a"), code=200)
        whole["spec"]["port"] = "81"
        self.assertEqual(self.send("PUT", path("v2", "a"), whole, 200)["spec"], {"host": "x", "port": "81"})
        self.assertEqual(self.stored("a")["spec"], {"hostPort": "x:81"})
        self.assertEqual(self.patch(path("v2", "a"), {"spec": {"host": "y"}})["spec"], {"host": "y", "port": "81"})
        self.patch(path("v2", "a"), [{"op": "test", "path": "/spec/port", "value": "81"},
                                     {"op": "replace", "path": "/spec/port", "value": "82"}], content_type=JSON)
        self.assertEqual(self.stored("a")["spec"], {"hostPort": "y:82"})
        self.patch(path("v1", "a"), [{"op": "test", "path": "/spec/hostPort", "value": "y:82"}], content_type=JSON)
        done = self.patch(path("v2", "a", "status"), {"status": {"ready": 4}, "spec": {"host": "z"}})
        self.assertEqual((done["status"], done["spec"]), ({"ready": 4}, {"host": "y", "port": "82"}))
        self.assertEqual((self.stored("a")["status"], self.stored("a")["spec"]), ({"ready": 4}, {"hostPort": "y:82"}))
        self.assertEqual(self.stored("a")["apiVersion"], "example.com/v1")

    def test_apply_owns_fields_in_its_version(self):
        applied = self.patch(path("v2", "a") + "?fieldManager=me", json.dumps(gate("a", "v2", host="x", port="1")), 201, APPLY)
        self.assertEqual(applied["spec"], {"host": "x", "port": "1"})
        again = self.patch(path("v2", "a") + "?fieldManager=me", json.dumps(gate("a", "v2", host="y", port="1")), 200, APPLY)
        self.assertEqual(again["spec"], {"host": "y", "port": "1"})
        self.assertEqual(self.stored("a")["spec"], {"hostPort": "y:1"})
        entry, = again["metadata"]["managedFields"]
        self.assertEqual((entry["manager"], entry["apiVersion"], entry["fieldsV1"]),
                         ("me", "example.com/v2", {"f:spec": {"f:host": {}, "f:port": {}}}))
        refused = self.patch(path("v2", "a") + "?fieldManager=you", json.dumps(gate("a", "v2", host="z", port="1")), 409, APPLY)
        self.assertIn(".spec.host", refused["message"])

    def test_scale_has_the_paths_of_its_version(self):
        self.send("POST", path(), gate("a", hostPort="x:1", replicas=2), 201)
        self.assertEqual(self.send("GET", path("v2", "a", "scale"), code=200)["spec"], {"replicas": 2})
        self.assertEqual(self.patch(path("v2", "a", "scale"), {"spec": {"replicas": 5}})["spec"], {"replicas": 5})
        self.assertEqual(self.stored("a")["spec"], {"hostPort": "x:1", "replicas": 5})
        self.assertEqual(self.send("GET", path("v2", "a"), code=200)["spec"]["count"], 5)

    def test_dry_runs_write_nothing_and_are_answered_in_their_version(self):
        made = self.send("POST", path("v2") + "?dryRun=All", gate("a", "v2"), 201)
        self.assertEqual((made["apiVersion"], made["spec"]), ("example.com/v2", {"host": "a", "port": "1"}))
        self.assertIsNone(self.stored("a"))
        self.send("POST", path(), gate("a"), 201)
        self.assertEqual(self.patch(path("v2", "a") + "?dryRun=All", {"spec": {"host": "b"}})["spec"], {"host": "b", "port": "1"})
        self.assertEqual(self.stored("a")["spec"], {"hostPort": "a:1"})

    def test_deletes_answer_in_the_version_of_the_request(self):
        self.send("POST", path(), {**gate("a"), "metadata": {"name": "a", "finalizers": ["x.com/y"]}}, 201)
        marked = self.send("DELETE", path("v2", "a"), None, 200)
        self.assertEqual((marked["apiVersion"], marked["spec"]), ("example.com/v2", {"host": "a", "port": "1"}))
        self.assertEqual(self.stored("a")["apiVersion"], "example.com/v1")
        last = self.patch(path("v2", "a"), {"metadata": {"finalizers": None}})
        self.assertEqual(last["spec"], {"host": "a", "port": "1"})
        self.assertIsNone(self.stored("a"))
        self.send("POST", path(), gate("b"), 201)
        self.assertEqual(self.send("DELETE", path("v2", "b"), None, 200)["status"], "Success")

    def test_collections_are_deleted_by_what_the_version_shows(self):
        def relabel(thing):
            if thing["apiVersion"].endswith("v2"):
                thing["metadata"]["labels"] = {"host": thing["spec"]["host"]}
            else:
                thing["metadata"].pop("labels", None)
        self.behave(conversions.changed(relabel))
        for name in ("a", "b", "c"):
            self.send("POST", path(), gate(name, hostPort=f"{name}:1"), 201)
        gone = self.send("DELETE", path("v2") + "?labelSelector=host%20in%20(a,c)", None, 200)
        self.assertEqual([(i["metadata"]["name"], i["apiVersion"]) for i in gone["items"]],
                         [("a", "example.com/v2"), ("c", "example.com/v2")])
        self.assertEqual([i["metadata"]["name"] for i in self.send("GET", path(), code=200)["items"]], ["b"])

    def test_converted_objects_are_pruned_and_their_metadata_is_kept(self):
        def change(thing):
            thing["spec"]["unknown"] = 1
            thing["metadata"].update({"generation": 77, "finalizers": ["no.com/no"], "annotations": {"by": "converter"}})
        self.send("POST", path(), gate("a"), 201)
        self.behave(conversions.changed(change))
        got = self.send("GET", path("v2", "a"), code=200)
        self.assertEqual(got["spec"], {"host": "a", "port": "1"})
        self.assertEqual((got["metadata"]["generation"], got["metadata"]["annotations"]), (1, {"by": "converter"}))
        self.assertNotIn("finalizers", got["metadata"])

    def test_objects_of_an_older_stored_version_are_served_and_rewritten(self):
        self.send("POST", path(), gate("a"), 201)
        crd = self.patch(f"{CRDS}/gates.example.com", {"spec": {"versions": conversions.versions("v2")}})
        self.assertEqual(crd["status"]["storedVersions"], ["v1", "v2"])
        for api, spec in (("v1", {"hostPort": "a:1"}), ("v2", {"host": "a", "port": "1"})):
            self.assertEqual(self.send("GET", path(api, "a"), code=200)["spec"], spec)
        self.assertEqual(self.stored("a")["apiVersion"], "example.com/v1")
        whole = self.send("GET", path("v1", "a"), code=200)
        self.send("PUT", path("v1", "a"), whole, 200)  # changes nothing but the stored version
        self.assertEqual((self.stored("a")["apiVersion"], self.stored("a")["spec"]), ("example.com/v2", {"host": "a", "port": "1"}))
        refused = self.patch(f"{CRDS}/gates.example.com", {"spec": {"versions": conversions.versions("v2")[1:]}}, 422)
        self.assertIn("missing from spec.versions; v1 was previously a storage version, and must remain in spec.versions until a storage "
                      "migration ensures no data remains persisted in v1 and removes v1 from status.storedVersions", refused["message"])
        self.patch(f"{CRDS}/gates.example.com/status", {"status": {"storedVersions": ["v2"]}})
        self.patch(f"{CRDS}/gates.example.com", {"spec": {"versions": conversions.versions("v2")[1:]}})
        self.assertEqual(self.send("GET", path("v3", "a"), code=200)["spec"], {"host": "a", "port": "1"})

    def test_wrong_stored_versions_in_the_status_are_corrected(self):
        self.put_many(2)
        self.patch(f"{CRDS}/gates.example.com", {"spec": {"versions": conversions.versions("v2")}})
        self.patch(f"{CRDS}/gates.example.com/status", {"status": {"storedVersions": ["v2"]}})
        now = self.server.list(f"{CRDS}/gates.example.com")["metadata"]["resourceVersion"]
        self.assertEqual(self.send("GET", path("v2", "g0000"), code=200)["spec"], {"host": "h0", "port": "1"})
        watches = [self.server.watch(path("v2"), resourceVersion=now) for _ in range(4)]
        self.put_many(1)
        for watch in watches:
            self.assertEqual(watch.next()["object"]["spec"], {"host": "h0", "port": "1"})
        codes = set()
        for _ in range(2 * threads() + 2):  # each thread finds out by itself
            codes.add(self.server.get(path("v2"))[0])
        self.assertLessEqual(codes, {200, 429})
        self.until(lambda: all(self.server.get(path("v2"))[0] == 200 for _ in range(8)))
        self.assertEqual([i["spec"]["host"] for i in self.send("GET", path("v2"), code=200)["items"]], ["h0", "h1"])
        self.until(lambda: all(e["type"] == "ADDED" for e in self.server.watch(path("v2")).take(2)))

    def test_a_converter_that_speaks_only_v1beta1_gets_it(self):
        self.define(plural="doors", kind="Door", reviews=["v7", "v1beta1"])
        self.send("POST", path("v2", plural="doors"), gate("a", "v2", "Door"), 201)
        self.assertEqual(self.hooks.of("/convert")[0].review["apiVersion"], "apiextensions.k8s.io/v1beta1")


class Lists(ConversionTest):
    def test_a_list_of_1000_objects_takes_at_most_4_calls(self):
        self.put_many(1000)
        items = self.send("GET", path("v2"), code=200)["items"]
        self.assertEqual([(i["metadata"]["name"], i["apiVersion"], i["spec"]) for i in items],
                         [(f"g{n:04}", "example.com/v2", {"host": f"h{n}", "port": "1"}) for n in range(1000)])
        self.assertEqual(sum(len(call.request["objects"]) for call in self.hooks.of("/convert")), 1000)
        self.assertLessEqual(self.calls(), 4)
        self.assertEqual(len(self.send("GET", path("v1"), code=200)["items"]), 1000)
        self.assertLessEqual(self.calls(), 4)

    def test_only_objects_of_other_versions_are_sent(self):
        self.put_many(3)
        self.patch(f"{CRDS}/gates.example.com", {"spec": {"versions": conversions.versions("v2")}})
        self.patch(path("v2", "g0001"), {"spec": {"host": "other"}})
        self.hooks.clear()
        items = self.send("GET", path("v2"), code=200)["items"]
        self.assertEqual([i["spec"]["host"] for i in items], ["h0", "other", "h2"])
        self.assertEqual([thing["metadata"]["name"] for call in self.hooks.of("/convert") for thing in call.request["objects"]],
                         ["g0000", "g0002"])

    def test_large_objects_are_sent_in_several_calls(self):
        large = "x" * 900_000
        things = {f"g{i}": {"kind": "Gate", "api": "example.com/v1", "spec": {"hostPort": f"{large}:{i}"}} for i in range(10)}
        self.server.put_many("example.com/gates", things, 1)
        items = self.send("GET", path("v2"), code=200)["items"]
        self.assertEqual([i["spec"] for i in items], [{"host": large, "port": str(i)} for i in range(10)])
        self.assertEqual([len(call.request["objects"]) for call in self.hooks.of("/convert")], [5, 5])

    def test_pages_selectors_and_tables(self):
        for name, host in (("a", "x"), ("b", "z"), ("c", "x"), ("d", "x")):
            self.send("POST", path(), gate(name, hostPort=f"{host}:1", labels={"host": host}), 201)
        first = self.send("GET", path("v2") + "?limit=3", code=200)
        self.assertEqual([i["metadata"]["name"] for i in first["items"]], ["a", "b", "c"])
        self.assertEqual(first["metadata"]["remainingItemCount"], 1)
        self.send("DELETE", path("v1", "d"), None, 200)
        rest = self.send("GET", path("v2") + "?limit=3&continue=" + first["metadata"]["continue"], code=200)
        self.assertEqual([(i["metadata"]["name"], i["spec"]["host"]) for i in rest["items"]], [("d", "x")])
        chosen = self.send("GET", path("v2") + "?labelSelector=host%3Dx&limit=1", code=200)
        self.assertEqual([i["metadata"]["name"] for i in chosen["items"]], ["a"])
        self.assertTrue(chosen["metadata"]["continue"])
        self.assertEqual(self.send("GET", path("v2", namespace="none"), code=200)["items"], [])
        code, _, table = self.server.get(path("v2"), {"Accept": "application/json;as=Table;g=meta.k8s.io;v=v1"})
        self.assertEqual((code, [row["cells"][0] for row in table["rows"]]), (200, ["a", "b", "c"]))
        code, _, partial = self.server.get(path("v2"), {"Accept": "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"})
        self.assertEqual((code, partial["kind"], len(partial["items"])), (200, "PartialObjectMetadataList", 3))
        code, headers, text = self.server.get(path("v2"), {"Accept": "application/yaml"})
        self.assertEqual((code, headers["Content-Type"]), (200, "application/yaml"))
        self.assertIn(b"host: z", text)

    def test_a_list_of_which_one_object_fails_fails(self):
        self.put_many(600)

        def change(thing):
            if thing["metadata"]["name"] == "g0555":
                thing["metadata"]["name"] = "other"
        self.behave(conversions.changed(change))
        failed = self.send("GET", path("v2"), code=500)
        self.assertEqual(failed["message"], "conversion webhook for example.com/v1, Kind=Gate returned invalid object: "
                                            "must have the same name: g0555 != other")

    def test_while_the_converter_hangs_nothing_else_waits_and_nothing_is_held(self):
        released = threading.Event()
        self.behave(webhooks.slow(released, conversions.good))
        self.put_many(600)
        answers = []
        waiting = [threading.Thread(target=lambda: answers.append(self.send("GET", path("v2")))) for _ in range(20)]
        for thread in waiting:
            thread.start()
        self.hooks.wait_for("/convert", 20)
        self.assertEqual(len(self.send("GET", path("v1"), code=200)["items"]), 600)
        self.patch(path("v1", "g0001"), {"spec": {"hostPort": "new:1"}})
        self.server.compact(self.server.list(path("v1"))["metadata"]["resourceVersion"])
        released.set()
        for thread in waiting:
            thread.join()
        # The rest of each list was compacted meanwhile.
        self.assertEqual({(a["code"], a["reason"]) for a in answers}, {(410, "Expired")})

    def test_lists_that_clients_give_up_are_dropped(self):
        released = threading.Event()
        self.behave(webhooks.slow(released, conversions.good))
        self.put_many(5)
        for _ in range(20):
            connection = http.client.HTTPConnection("127.0.0.1", self.server.kube_port, timeout=WAIT_SECONDS)
            connection.request("GET", path("v2"))
            self.hooks.wait_for("/convert")
            connection.close()
        released.set()
        self.assertEqual(len(self.send("GET", path("v2"), code=200)["items"]), 5)


class Watches(ConversionTest):
    def watch(self, api="v2", **query):
        return self.server.watch(path(api), **query)

    def test_initial_events_are_converted_in_batches(self):
        self.put_many(1000)
        events = self.watch().take(1000)
        self.assertEqual([(e["type"], e["object"]["metadata"]["name"], e["object"]["apiVersion"], e["object"]["spec"]) for e in events],
                         [("ADDED", f"g{n:04}", "example.com/v2", {"host": f"h{n}", "port": "1"}) for n in range(1000)])
        self.assertLessEqual(self.calls(), 4)

    def test_an_event_is_converted_once_for_each_version_however_many_watches_there_are(self):
        now = self.server.list(path())["metadata"]["resourceVersion"]
        self.hooks.clear()
        watches = {api: [self.watch(api, resourceVersion=now) for _ in range(20)] for api in ("v1", "v2", "v3")}
        self.send("POST", path(), gate("a"), 201)
        self.patch(path("v1", "a"), {"spec": {"hostPort": "b:2"}})
        self.send("DELETE", path("v1", "a"), None, 200)
        for api, some in watches.items():
            seen = [[(e["type"], e["object"]["apiVersion"], e["object"]["spec"]) for e in watch.take(3)] for watch in some]
            one = {"hostPort": "a:1"} if api == "v1" else {"host": "a", "port": "1"}
            two = {"hostPort": "b:2"} if api == "v1" else {"host": "b", "port": "2"}
            version = f"example.com/{api}"
            self.assertEqual(seen, [[("ADDED", version, one), ("MODIFIED", version, two), ("DELETED", version, two)]] * 20)
        # The object before the deletion is that of the second event.
        counts = {}
        for call in self.hooks.of("/convert"):
            for thing in call.request["objects"]:
                what = (call.request["desiredAPIVersion"], thing["spec"]["hostPort"])
                counts[what] = counts.get(what, 0) + 1
        self.assertEqual(set(counts), {(f"example.com/{api}", spec) for api in ("v2", "v3") for spec in ("a:1", "b:2")})
        self.assertLessEqual(max(counts.values()), threads())

    def test_selectors_match_what_the_version_shows(self):
        def relabel(thing):
            if thing["apiVersion"].endswith("v2"):
                thing["metadata"]["labels"] = {"host": thing["spec"]["host"]}
        self.behave(conversions.changed(relabel))
        now = self.server.list(path())["metadata"]["resourceVersion"]
        watch = self.watch(resourceVersion=now, labelSelector="host=x")
        self.send("POST", path(), gate("a", hostPort="x:1"), 201)
        self.send("POST", path(), gate("b", hostPort="y:1"), 201)
        self.patch(path("v1", "b"), {"spec": {"hostPort": "x:2"}})
        self.patch(path("v1", "a"), {"spec": {"hostPort": "z:1"}})
        self.assertEqual([(e["type"], e["object"]["metadata"]["name"], e["object"]["spec"]["host"]) for e in watch.take(3)],
                         [("ADDED", "a", "x"), ("ADDED", "b", "x"), ("DELETED", "a", "x")])

    def test_a_watch_whose_converter_fails_ends_with_an_error(self):
        now = self.server.list(path())["metadata"]["resourceVersion"]
        watches = [self.watch(api, resourceVersion=now) for api in ("v1", "v2")]
        self.behave(conversions.BAD["failure-message"])
        self.send("POST", path(), gate("a"), 201)
        self.assertEqual(watches[0].next()["object"]["spec"], {"hostPort": "a:1"})
        error, = watches[1].rest()
        self.assertEqual((error["type"], error["object"]["kind"], error["object"]["code"], error["object"]["message"]),
                         ("ERROR", "Status", 500, "conversion webhook for example.com/v1, Kind=Gate failed: cannot do that"))
        self.assertLessEqual(self.calls(), 2)
        error, = self.watch().rest()  # its initial events fail, too
        self.assertEqual((error["type"], error["object"]["code"]), ("ERROR", 500))
        self.behave(conversions.good)
        self.assertEqual(self.watch().next()["object"]["spec"], {"host": "a", "port": "1"})
        again = self.watch(resourceVersion=now)  # what has failed is not kept
        self.assertEqual(again.next()["object"]["spec"], {"host": "a", "port": "1"})

    def test_an_object_that_cannot_be_converted_fails_no_watch_of_others(self):
        self.behave(conversions.by_name)
        now = self.server.list(path())["metadata"]["resourceVersion"]
        good = [self.watch(resourceVersion=now, fieldSelector="metadata.name=a") for _ in range(5)]
        bad = [self.watch(resourceVersion=now, fieldSelector="metadata.name=bad-name") for _ in range(5)]
        self.server.put_many("example.com/gates", {
            name: {"kind": "Gate", "api": "example.com/v1", "spec": {"hostPort": "a:1"}} for name in ("a", "bad-name")})
        for watch in good:
            self.assertEqual(watch.next()["object"]["spec"], {"host": "a", "port": "1"})
        for watch in bad:
            self.assertEqual([e["type"] for e in watch.rest()], ["ERROR"])

    def test_watches_wait_for_a_converter_that_hangs_and_others_continue(self):
        released = threading.Event()
        now = self.server.list(path())["metadata"]["resourceVersion"]
        watches = {api: [self.watch(api, resourceVersion=now) for _ in range(10)] for api in ("v1", "v2")}
        self.behave(webhooks.slow(released, conversions.good))
        self.send("POST", path(), gate("a"), 201)
        self.hooks.wait_for("/convert")
        for watch in watches["v1"]:
            self.assertEqual(watch.next()["object"]["spec"], {"hostPort": "a:1"})
        for watch in watches["v2"][5:]:
            watch.close()
        for i in range(20):
            self.patch(path("v1", "a"), {"spec": {"hostPort": f"b:{i}"}})
        self.assertLessEqual(self.calls(), threads())  # the watches do not call again meanwhile
        released.set()
        for watch in watches["v2"][:5]:
            self.assertEqual([e["object"]["spec"].get("port") for e in watch.take(21)], ["1", *map(str, range(20))])

    def test_tables_and_metadata_of_events_are_converted(self):
        self.send("POST", path(), gate("a"), 201)
        table = self.watch(headers={"Accept": "application/json;as=Table;g=meta.k8s.io;v=v1"}).next()
        self.assertEqual((table["object"]["kind"], table["object"]["rows"][0]["cells"][0]), ("Table", "a"))
        partial = self.watch(headers={"Accept": "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"}).next()
        self.assertEqual((partial["object"]["kind"], partial["object"]["metadata"]["name"]), ("PartialObjectMetadata", "a"))

    def test_large_events_are_converted(self):
        now = self.server.list(path())["metadata"]["resourceVersion"]
        watch = self.watch(resourceVersion=now)
        large = "x" * 500_000
        self.send("POST", path(), gate("a", hostPort=f"{large}:1"), 201)
        self.assertEqual(watch.next()["object"]["spec"], {"host": large, "port": "1"})


class Inside(ConversionTest):
    """What this server does by itself needs only metadata, and continues without the converter."""

    def test_namespaces_and_dependents_are_deleted_while_the_converter_is_gone(self):
        """Watches in the stored version and in another one are open meanwhile, and lists are made in both."""
        self.send("POST", "/api/v1/namespaces", {"metadata": {"name": "n"}}, 201)
        self.send("POST", path(namespace="n"), gate("a"), 201)
        owner = self.send("POST", "/api/v1/namespaces/default/configmaps", {"metadata": {"name": "owner"}}, 201)
        owned = gate("owned")
        owned["metadata"]["ownerReferences"] = [{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]}]
        self.send("POST", path(), owned, 201)
        self.patch(f"{CRDS}/gates.example.com", {"spec": {"versions": conversions.versions("v2")}})
        now = self.server.list(path(namespace=None))["metadata"]["resourceVersion"]
        self.hooks.stop()
        watches = {api: [self.server.watch(path(api, namespace=None), resourceVersion=now) for _ in range(2 * threads())]
                   for api in ("v1", "v2")}
        self.send("GET", path("v2", "owned"), code=500)
        self.send("GET", path("v2", namespace=None), code=500)
        self.assertEqual(len(self.send("GET", path("v1", namespace=None), code=200)["items"]), 2)
        self.send("DELETE", "/api/v1/namespaces/default/configmaps/owner", None, 200)
        self.send("DELETE", "/api/v1/namespaces/n", None, 200)
        self.until(lambda: self.server.get("/api/v1/namespaces/n")[0] == 404)
        self.until(lambda: not self.stored("owned"))
        for watch in watches["v1"]:  # the objects are still in this version
            seen = {(e["type"], e["object"]["metadata"]["name"]) for e in watch.take(2)}
            self.assertEqual(seen, {("DELETED", "a"), ("DELETED", "owned")})
        for watch in watches["v2"]:
            self.assertEqual([(e["type"], e["object"]["code"]) for e in watch.rest()], [("ERROR", 500)])
        for api in ("v1", "v2"):
            self.assertEqual(self.send("GET", path(api, namespace=None), code=200)["items"], [])
        self.send("DELETE", f"{CRDS}/gates.example.com", None, 200)
        self.until(lambda: self.server.get(f"{CRDS}/gates.example.com")[0] == 404)


class BadDays(ConversionTest):
    """Converters that are slow, hostile or broken. None of them delays others, and each error names it."""

    def fails(self, behaviour, text, where=None):
        self.behave(behaviour)
        failed = self.send("GET", where or path("v2", "a"), code=500)
        self.assertIn(text, failed["message"])
        self.send("GET", path("v1", "a"), code=200)

    def test_answers_that_are_cut_huge_or_of_another_kind(self):
        self.send("POST", path(), gate("a"), 201)
        for behaviour, text in ((webhooks.cut, "EOF"), (webhooks.cut_head, "EOF"), (webhooks.cut_body, "EOF"),
                                (webhooks.endless, "longer than"), (webhooks.huge(9 << 20), "longer than"),
                                (webhooks.text("<html>", content_type="text/html"), "failed: "),
                                (webhooks.text("", 503, "text/plain"), "failed: "),
                                (webhooks.redirect(302, self.hooks.url("/convert")), "failed: "),
                                (webhooks.redirect(307, "https://127.0.0.1:1/"), "failed: "),
                                (webhooks.deep(100_000), "failed: "), (webhooks.text("[" * 1_000_000), "failed: "),
                                (webhooks.text(json.dumps({"response": [1] * 1_000_000})), "too much memory")):
            with self.subTest(text):
                self.fails(behaviour, text)
        self.behave(conversions.good)
        self.send("GET", path("v2", "a"), code=200)

    def test_an_answer_that_is_too_long_for_one_call_comes_in_several(self):
        """Objects that grow: 100 of them need more than 8 MiB, and half of them do not."""
        def grow(thing):
            thing["spec"]["host"] = "x" * 120_000
        self.put_many(100)
        self.behave(conversions.changed(grow))
        items = self.send("GET", path("v2"), code=200)["items"]
        self.assertEqual({len(i["spec"]["host"]) for i in items}, {120_000})
        self.assertEqual([i["metadata"]["name"] for i in items], [f"g{n:04}" for n in range(100)])
        self.assertLessEqual(self.calls(), 5)

    def test_an_object_that_grows_beyond_the_limit_is_not_stored(self):
        def grow(thing):
            if thing["apiVersion"].endswith("v1"):
                thing["spec"]["hostPort"] = "x" * 1_600_000
        self.behave(conversions.changed(grow))
        self.send("POST", path("v2"), gate("a", "v2"), 413)
        self.assertIsNone(self.stored("a"))

    def test_certificates_must_be_valid(self):
        self.send("POST", path(), gate("a"), 201)
        other = webhooks.Webhooks(self.directory.name, "expired", authority=self.hooks.authority, days=-1)
        misnamed = webhooks.Webhooks(self.directory.name, "misnamed", authority=self.hooks.authority, names="DNS:other.test")
        for hooks, text in ((other, "expired"), (misnamed, "x509")):
            self.patch(f"{CRDS}/gates.example.com", {"spec": {"conversion": {"webhook": {"clientConfig": hooks.on("/convert",
                                                                                                                  conversions.good)}}}})
            self.assertIn(text, self.send("GET", path("v2", "a"), code=500)["message"])
            self.assertEqual(len(hooks.of("/convert")), 0)
            hooks.stop()

    def test_a_converter_may_call_the_server_back(self):
        self.send("POST", path(), gate("a"), 201)

        def call_back(call):
            self.send("GET", path("v1", "a"), code=200)
            self.patch(path("v1", "a"), {"metadata": {"labels": {"seen": "yes"}}})
        self.behave(webhooks.calls(call_back, conversions.good))
        self.assertEqual(self.send("GET", path("v2", "a"), code=200)["spec"], {"host": "a", "port": "1"})

    def test_a_converter_may_change_or_delete_its_own_definition(self):
        self.send("POST", path(), gate("a"), 201)
        self.behave(webhooks.once(webhooks.calls(
            lambda call: self.patch(f"{CRDS}/gates.example.com", {"spec": {"conversion": {"strategy": "None", "webhook": None}}}),
            conversions.good), conversions.good))
        self.assertEqual(self.send("GET", path("v2", "a"), code=200)["spec"], {"host": "a", "port": "1"})
        self.define(plural="doors", kind="Door", behaviour=webhooks.calls(
            lambda call: self.send("DELETE", f"{CRDS}/doors.example.com", None, 200), conversions.good))
        refused = self.send("POST", path("v2", plural="doors"), gate("a", "v2", "Door"))
        self.assertIn(refused["code"], (404, 429), refused)

    def test_any_number_of_writes_that_wait_delay_no_other_of_their_object(self):
        """A write in the stored version needs no converter."""
        waiters = 60
        self.send("POST", path(), gate("a"), 201)
        self.behave(webhooks.hang)
        waiting = [self.begin("PATCH", path("v2", "a"), {"metadata": {"labels": {"waiter": "yes"}}}, MERGE) for _ in range(waiters)]
        self.hooks.wait_for("/convert")
        begun = time.monotonic()
        for i in range(8):  # on every thread
            self.patch(path("v1", "a"), {"metadata": {"labels": {"i": str(i)}}})
        self.assertLess(time.monotonic() - begun, PROMPT_SECONDS)
        self.hooks.wait_until(lambda: self.hooks.waiting == waiters)
        for connection in waiting:
            connection.close()
        self.hooks.wait_until(lambda: self.hooks.waiting == 0)
        self.assertEqual(self.stored("a")["metadata"]["labels"], {"i": "7"})

    def test_writes_in_other_versions_at_the_same_time_lose_nothing(self):
        self.send("POST", path(), gate("a"), 201)
        writes = [self.begin("PATCH", path(f"v{i % 3 + 1}", "a"), {"metadata": {"labels": {f"l{i}": "x"}}}, MERGE) for i in range(12)]
        for connection in writes:
            code, body = self.answer(connection)
            self.assertEqual(code, 200, body)
        self.assertEqual(self.stored("a")["metadata"]["labels"], {f"l{i}": "x" for i in range(12)})

    def test_a_write_that_waits_delays_no_other_of_its_object(self):
        released = threading.Event()
        self.send("POST", path(), gate("a"), 201)
        self.behave(webhooks.slow(released, conversions.good))
        answers = []
        waiting = threading.Thread(target=lambda: answers.append(self.patch(path("v2", "a"), {"spec": {"host": "slow"}})))
        waiting.start()
        self.hooks.wait_for("/convert")
        for i in range(8):  # on every thread
            self.patch(path("v1", "a"), {"metadata": {"labels": {"i": str(i)}}})
        self.assertTrue(waiting.is_alive())
        released.set()
        waiting.join()
        self.assertEqual((answers[0]["spec"]["host"], answers[0]["metadata"]["labels"]), ("slow", {"i": "7"}))

    def test_requests_that_wait_end_when_their_time_is_over(self):
        self.send("POST", path(), gate("a"), 201)
        self.behave(webhooks.hang)
        asked = []
        for _ in range(200):
            connection = http.client.HTTPConnection("127.0.0.1", self.server.kube_port, timeout=WAIT_SECONDS)
            connection.request("GET", path("v2", "a"))
            asked.append(connection)
        self.hooks.wait_until(lambda: self.hooks.waiting >= 200)
        begun = time.monotonic()
        self.send("GET", path("v1", "a"), code=200)
        self.send("POST", path(), gate("b"), 201)
        self.assertLess(time.monotonic() - begun, 10)
        self.patch(f"{CRDS}/gates.example.com", {"spec": {"conversion": {"webhook": {"clientConfig": self.hooks.on("/other",
                                                                                                                   conversions.good)}}}})
        self.assertEqual(self.send("GET", path("v2", "a"), code=200)["spec"], {"host": "a", "port": "1"})
        for connection in asked:
            answer = connection.getresponse()
            body = json.loads(answer.read())
            self.assertEqual(answer.status, 500, body)
            self.assertIn("context deadline exceeded", body["message"])
            connection.close()

    def expect_late(self, method, where, message, body=None, content_type="application/json"):
        begun = time.monotonic()
        late = self.send(method, where, body, 504, content_type)
        self.assertEqual((late["reason"], late["message"]), ("Timeout", message))
        self.assertLess(time.monotonic() - begun, PROMPT_SECONDS)

    def test_a_request_waits_for_the_converter_no_longer_than_its_time(self):
        self.send("POST", path(), gate("a"), 201)
        self.behave(webhooks.hang)
        for method, where, message, *body in (
                ("GET", path("v2", "a"), LATE_READ), ("GET", path("v2", "a", "scale"), LATE_READ), ("GET", path("v2"), LATE_READ),
                ("DELETE", path("v2", "a"), LATE_WRITE), ("DELETE", path("v2"), LATE_WRITE),
                ("POST", path("v2"), LATE_WRITE, gate("b", "v2")),
                ("PUT", path("v2", "a", "status"), LATE_WRITE, {**gate("a", "v2"), "status": {"ready": 1}}),
                ("PATCH", path("v2", "a"), LATE_WRITE, {"spec": {"host": "b"}}, MERGE)):
            with self.subTest(method + " " + where):
                self.expect_late(method, where + "?timeout=1s", message, *body)
                self.hooks.wait_until(lambda: self.hooks.waiting == 0)
        self.assertEqual(self.stored("a")["spec"], {"hostPort": "a:1"})
        self.assertIsNone(self.stored("b"))

    def test_all_conversions_of_a_request_share_its_time(self):
        """Each of them is fast enough by itself."""
        def pause(call):
            time.sleep(0.7)
            conversions.good(call)
        self.put_many(1100)  # three calls
        self.send("POST", path(), gate("a"), 201)
        now = self.server.list(path())["metadata"]["resourceVersion"]
        self.behave(pause)
        self.expect_late("GET", path("v2") + "?timeout=1s", LATE_READ)
        self.expect_late("PATCH", path("v2", "a") + "?timeout=1s", LATE_WRITE, {"spec": {"host": "b"}}, MERGE)
        self.assertEqual(self.stored("a")["spec"], {"hostPort": "a:1"})
        self.expect_late("POST", path("v2") + "?timeout=1s", LATE_WRITE, gate("b", "v2"))
        self.assertEqual(self.stored("b")["spec"], {"hostPort": "a:1"})  # there was no time left for the answer
        self.assertEqual(self.patch(path("v2", "a") + "?timeout=20s", {"spec": {"host": "b"}})["spec"], {"host": "b", "port": "1"})
        # A watch is not answered at once.
        self.assertEqual(self.server.watch(path("v2"), resourceVersion=now, timeout="1s").next()["object"]["metadata"]["name"], "b")
        self.assertEqual(len(self.server.watch(path("v2"), timeout="1s").take(1102)), 1102)

    def test_clients_that_leave_end_the_conversion_of_their_object(self):
        made = self.patch(path("v1", "a") + "?fieldManager=me", json.dumps(gate("a")), 201, APPLY)
        large = json.dumps(gate("c", "v2", host="x" * 500_000))  # is converted on the worker
        self.behave(webhooks.hang)
        for request in (
                ("GET", path("v2", "a")), ("GET", path("v2")), ("GET", path("v2") + "?watch=1"),
                ("GET", path("v2") + "?watch=1&resourceVersion=1"), ("DELETE", path("v2")),
                ("POST", path("v2"), json.dumps(gate("b", "v2"))), ("POST", path("v2"), large),
                ("PATCH", path("v2", "a"), '{"spec": {"host": "b"}}', MERGE), ("PATCH", path("v2", "a", "scale"), "{}", MERGE),
                ("PUT", path("v2", "a", "status"), json.dumps({**gate("a", "v2"), "status": {"ready": 1}})),
                ("PATCH", path("v3", "a") + "?fieldManager=you", json.dumps(gate("a", "v3")), APPLY)):
            with self.subTest(request[:2]):
                self.leave(*request)
        self.assertEqual(self.stored("a")["spec"], made["spec"])

    def test_an_event_is_given_up_with_the_last_watch_that_waits_for_it(self):
        now = self.server.list(path())["metadata"]["resourceVersion"]
        self.behave(webhooks.hang)
        watches = [self.server.watch(path("v2"), resourceVersion=now) for _ in range(20)]
        self.send("POST", path(), gate("a"), 201)
        self.hooks.wait_for("/convert")
        begun = time.monotonic()
        for watch in watches:
            watch.close()
        self.hooks.wait_until(lambda: self.hooks.waiting == 0)
        self.assertLess(time.monotonic() - begun, CONVERSION_SECONDS / 2)
        self.behave(conversions.good)
        self.assertEqual(self.server.watch(path("v2"), resourceVersion=now).next()["object"]["spec"], {"host": "a", "port": "1"})

    def test_the_server_stops_while_requests_wait(self):
        self.send("POST", path(), gate("a"), 201)
        now = self.server.list(path())["metadata"]["resourceVersion"]
        self.behave(webhooks.hang)
        watch = self.server.watch(path("v2"), resourceVersion=now)
        self.server.watch(path("v2"))
        self.patch(path("v1", "a"), {"spec": {"hostPort": "b:1"}})
        for method, where in (("GET", path("v2", "a")), ("GET", path("v2")), ("DELETE", path("v2", "a"))):
            connection = http.client.HTTPConnection("127.0.0.1", self.server.kube_port, timeout=WAIT_SECONDS)
            connection.request(method, where)
            self.addCleanup(connection.close)
        self.hooks.wait_until(lambda: self.hooks.waiting >= 4)
        self.server.stop()
        self.server.start()
        watch.close()

    def test_conversions_are_counted(self):
        self.send("POST", path("v2"), gate("a", "v2"), 201)
        self.behave(conversions.BAD["too-few"])
        self.send("GET", path("v2", "a"), code=500)
        page = self.server.get("/metrics")[2].decode()
        for line in ('apiserver_conversion_webhook_request_total{result="success",failure_type=""} 2',
                     'apiserver_conversion_webhook_request_total{result="failure",'
                     'failure_type="conversion_webhook_partial_response_failure"} 1',
                     'apiserver_crd_conversion_webhook_duration_seconds_count{crd_name="gates.example.com",from_version="v2",'
                     'to_version="v1",succeeded="true"} 1',
                     'apiserver_crd_conversion_webhook_duration_seconds_count{crd_name="gates.example.com",from_version="v1",'
                     'to_version="v2",succeeded="false"} 1'):
            self.assertIn(line, page)

    def test_authorities_that_cannot_be_read_keep_a_definition_from_being_served(self):
        made = definition(self.hooks.client_config("/convert", caBundle="bm9uc2Vuc2U="), "doors", "Door")
        crd = self.send("POST", CRDS, made, 201)
        conditions = {c["type"]: (c["status"], c["reason"], c["message"]) for c in crd["status"]["conditions"]}
        self.assertEqual(conditions["Established"], ("False", "InvalidCABundle", "The conversion webhook CABundle is invalid"))
        self.assertEqual(self.server.get(path("v1", plural="doors"))[0], 404)
        self.patch(f"{CRDS}/doors.example.com", {"spec": {"conversion": {"webhook": {"clientConfig": {"caBundle": self.hooks.bundle}}}}})
        self.send("POST", path("v2", plural="doors"), gate("a", "v2", "Door"), 201)
        refused = self.patch(f"{CRDS}/doors.example.com",
                             {"spec": {"conversion": {"webhook": {"clientConfig": {"caBundle": "bm9uc2Vuc2U="}}}}}, 422)
        self.assertIn("unable to load root certificates: unable to parse bytes as PEM block", refused["message"])


class OneThread(ConversionTest):
    options = ("--io-threads=1",)

    def test_lists_that_hang_take_the_room_of_no_others(self):
        """Half of each list is there, and the converter hangs with the other half: what they hold is limited for their definition."""
        share, count, size, lists = 64 * MIB, 600, 15_000, 12

        def grow(call):
            objects = conversions.converted(call)
            if objects[0]["metadata"]["name"] != "g0000":
                webhooks.hang(call)
            for thing in objects:
                thing["spec"]["host"] = "x" * size
            conversions.answer(call, objects)
        self.define(plural="doors", kind="Door", behaviour=conversions.good)
        self.server.put_many("example.com/doors", {"d": {"kind": "Door", "api": "example.com/v1", "spec": {"hostPort": "h:1"}}})
        maps = {f"c{i}": {"kind": "ConfigMap", "data": {"a": "x" * 100_000}} for i in range(3)}
        self.server.put_many("configmaps", maps)
        self.put_many(count)
        self.patch(f"{CRDS}/gates.example.com", {"spec": {"conversion": {"webhook": {"clientConfig": self.hooks.on("/grow", grow)}}}})
        half = 500 * size
        waiting = [self.begin("GET", path("v2")) for _ in range(lists)]
        refused = lists - share // half
        self.assertGreater(refused, 0)
        ready = []
        self.until(lambda: self.take_ready(waiting, ready) >= refused)
        self.assertEqual({(code, body["message"]) for code, body in ready},
                         {(429, "too many long lists are being converted by webhooks: ask for pages by limit, or later")})
        self.hooks.wait_until(lambda: self.hooks.waiting == lists - len(ready))
        self.assertEqual(len(self.send("GET", path("v2", plural="doors"), code=200)["items"]), 1)
        code, _, _ = self.server.get("/api/v1/namespaces/default/configmaps", {"Accept": "application/vnd.kubernetes.protobuf"})
        self.assertEqual(code, 200)
        for connection in waiting:
            connection.close()
        self.hooks.wait_until(lambda: self.hooks.waiting == 0)
        self.assertEqual(len(self.send("GET", path("v2") + "?limit=500", code=200)["items"]), 500)

    def take_ready(self, waiting, ready):
        """Moves the answers that have come from the connections to `ready`; returns their number."""
        for connection in select.select([c.sock for c in waiting], [], [], 0)[0]:
            connection = next(c for c in waiting if c.sock is connection)
            waiting.remove(connection)
            ready.append(self.answer(connection))
        return len(ready)


class LittleMemory(ConversionTest):
    options = ("--max-client-bytes=8388608",)

    def test_an_answer_for_which_there_is_no_room_is_not_asked_for_again(self):
        """The object is stored, so that the client must not try again."""
        def grow(thing):
            if thing["apiVersion"].endswith("v2"):
                thing["spec"]["host"] = "x" * 6_000_000
        self.behave(conversions.changed(grow))
        failed = self.send("POST", path("v2"), gate("a", "v2"), 500)
        self.assertEqual((failed["reason"], failed["message"]),
                         ("InternalError", "Internal error occurred: the change was made, but it cannot be answered: "
                          "vigil: clients hold too much memory, see --max-client-bytes"))
        self.assertEqual(self.stored("a")["spec"], {"hostPort": "a:1"})


class Services(ConversionTest):
    """The converter is behind a service, whose ready endpoints are called."""

    def service(self, ready=(), unready=()):
        self.server.put("services/specs", "hook", kind="Service", spec={
            "clusterIP": "10.0.0.9", "ports": [{"name": "https", "port": 443, "targetPort": "https"}]})
        self.server.put("endpointslices", "hook-1", kind="EndpointSlice", api="discovery.k8s.io/v1", labels={
            "kubernetes.io/service-name": "hook"}, addressType="IPv4", ports=[{"name": "https", "port": self.behind.port}], endpoints=[
                {"addresses": [address], "conditions": {"ready": address in ready}} for address in (*ready, *unready)])

    def test_a_service_is_called_at_a_ready_endpoint(self):
        self.behind = webhooks.Webhooks(self.directory.name, "service", authority=self.hooks.authority, names="DNS:hook.default.svc")
        self.addCleanup(self.behind.stop)
        self.behind.on("/convert", conversions.good)
        self.send("POST", path(), gate("a"), 201)
        self.patch(f"{CRDS}/gates.example.com", {"spec": {"conversion": {"webhook": {"clientConfig": {
            "url": None, "service": {"namespace": "default", "name": "hook", "path": "/convert"}}}}}})
        begin = 'conversion webhook for example.com/v1, Kind=Gate failed: Post "https://hook.default.svc:443/convert?timeout=30s": '
        self.assertEqual(self.send("GET", path("v2", "a"), code=500)["message"], begin + 'service "hook" not found')
        self.service(unready=["127.0.0.1"])
        self.until(lambda: "no endpoints available for service" in self.send("GET", path("v2", "a"), code=500)["message"])
        self.assertEqual(self.behind.calls, [])
        self.service(ready=["127.0.0.1"], unready=["127.0.0.2"])
        self.until(lambda: self.server.get(path("v2", "a"))[0] == 200)
        self.assertEqual(self.send("GET", path("v2", "a"), code=200)["spec"], {"host": "a", "port": "1"})
        call = self.behind.calls[-1]
        self.assertEqual((call.headers["host"], call.path), ("hook.default.svc:443", "/convert"))
        self.assertEqual(self.calls(), 0)


class Refusals(ConversionTest):
    def test_what_a_converter_must_not_answer_fails_the_request(self):
        for name, behaviour in conversions.BAD.items():
            with self.subTest(name):
                self.behave(conversions.good)
                self.send("POST", path(), gate(f"a{name}"), 201)
                self.behave(behaviour)
                failed = self.send("GET", path("v2", f"a{name}"), code=500)
                self.assertNotIn("reason", failed)
                self.assertTrue(failed["message"], failed)
                before = self.stored(f"a{name}")
                self.patch(path("v2", f"a{name}"), {"spec": {"host": "other"}}, 500)
                self.assertEqual(self.stored(f"a{name}"), before)
                self.send("GET", path("v1", f"a{name}"), code=200)

    def test_a_converter_that_is_gone_is_named(self):
        self.send("POST", path(), gate("a"), 201)
        self.hooks.stop()
        failed = self.send("GET", path("v2", "a"), code=500)
        self.assertEqual(failed["message"], f'conversion webhook for example.com/v1, Kind=Gate failed: Post "{self.hooks.url("/convert")}'
                                            f'?timeout=30s": dial tcp 127.0.0.1:{self.hooks.port}: connect: connection refused')
        self.send("POST", path("v2"), gate("b", "v2"), 500)
        self.assertIsNone(self.stored("b"))
        self.assertEqual(self.send("GET", path("v1", "a"), code=200)["spec"], {"hostPort": "a:1"})


if __name__ == "__main__":
    unittest.main()
