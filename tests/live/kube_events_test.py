#!/usr/bin/python3
"""Events are one kind in two groups with other names for the same fields: who writes by one is read by the other."""
import http.client
import json
import unittest

from kube import WAIT_SECONDS, KubeServer, names
from server import LiveTest

OLD, NEW = "/api/v1/namespaces/default/events", "/apis/events.k8s.io/v1/namespaces/default/events"
TABLE = {"Accept": "application/json;as=Table;g=meta.k8s.io;v=v1"}
PROTOBUF = {"Accept": "application/vnd.kubernetes.protobuf"}
ABOUT = {"kind": "Widget", "apiVersion": "x.io/v1", "namespace": "default", "name": "w"}
RENAMED = {"involvedObject": "regarding", "message": "note", "source": "deprecatedSource",
           "firstTimestamp": "deprecatedFirstTimestamp", "lastTimestamp": "deprecatedLastTimestamp",
           "count": "deprecatedCount", "reportingComponent": "reportingController"}
BY_OLD = {"metadata": {"name": "old"}, "involvedObject": ABOUT, "message": "hello", "source": {"component": "c"},
          "firstTimestamp": "2026-11-15T06:00:00Z", "lastTimestamp": "2026-11-15T06:00:01Z", "count": 2,
          "reportingComponent": "r", "reason": "Made", "type": "Normal"}
BY_NEW = {"metadata": {"name": "new"}, "regarding": ABOUT, "note": "hello", "reportingController": "r",
          "reportingInstance": "i", "action": "Make", "reason": "Made", "type": "Normal",
          "eventTime": "2026-11-15T06:00:00.000000Z"}


def body_of(event):
    return {key: value for key, value in event.items() if key not in ("metadata", "kind", "apiVersion")}


def renamed(event):
    return {RENAMED.get(key, key): value for key, value in body_of(event).items()}


class Events(LiveTest):
    def setUp(self):
        super().setUp()
        self.kube = KubeServer(self.scratch / "data").start()
        self.addCleanup(self.kube.stop)
        self.addCleanup(self.kube.close)

    def send(self, method, path, body, content_type="application/json"):
        connection = http.client.HTTPConnection("127.0.0.1", self.kube.kube_port, timeout=WAIT_SECONDS)
        connection.request(method, path, json.dumps(body), {"Content-Type": content_type})
        response = connection.getresponse()
        answer = json.loads(response.read())
        connection.close()
        self.assertLess(response.status, 300, answer)
        return answer

    def make_both(self):
        return self.send("POST", OLD, BY_OLD), self.send("POST", NEW, BY_NEW)

    def test_each_group_has_its_own_names_whoever_wrote(self):
        old, new = self.make_both()
        self.assertEqual((body_of(old), body_of(new)), (body_of(BY_OLD), body_of(BY_NEW)))
        for name in ("old", "new"):
            first, second = self.kube.get(f"{OLD}/{name}")[2], self.kube.get(f"{NEW}/{name}")[2]
            self.assertEqual((first["apiVersion"], second["apiVersion"]), ("v1", "events.k8s.io/v1"))
            self.assertEqual(renamed(first), body_of(second))
            self.assertEqual(first["metadata"], second["metadata"])
        first, second = self.kube.list(OLD)["items"], self.kube.list(NEW)["items"]
        self.assertEqual([renamed(event) for event in first], [body_of(event) for event in second])
        self.assertEqual(body_of(second[0])["note"], "hello")

    def test_patches_and_updates_use_the_names_of_their_group(self):
        self.make_both()
        for name in ("old", "new"):
            patch = {"note": "again", "series": {"count": 3, "lastObservedTime": "2026-11-15T06:00:02.000000Z"}}
            told = self.send("PATCH", f"{NEW}/{name}", patch, "application/strategic-merge-patch+json")
            self.assertEqual((told["note"], told["regarding"]), ("again", ABOUT))
            event = self.kube.get(f"{OLD}/{name}")[2]
            self.assertEqual((event["message"], event["series"]["count"]), ("again", 3))
            event["message"] = "once more"
            self.send("PUT", f"{OLD}/{name}", event)
            self.assertEqual(self.kube.get(f"{NEW}/{name}")[2]["note"], "once more")

    def test_selectors_and_tables_see_them_alike(self):
        self.make_both()
        for path, about in ((OLD, "involvedObject"), (NEW, "regarding")):
            self.assertEqual(names(self.kube.list(path, fieldSelector=f"{about}.name=w")), ["new", "old"])
            self.assertEqual(names(self.kube.list(path, fieldSelector=f"{about}.name=v")), [])
        rows = self.kube.get(OLD, headers=TABLE)[2]["rows"]
        self.assertEqual([(row["cells"][3], row["cells"][6]) for row in rows], [("widget/w", "hello")] * 2)

    def test_watches_too_in_json_and_protobuf(self):
        revision = self.kube.list(NEW)["metadata"]["resourceVersion"]
        self.make_both()
        for query in ({"resourceVersion": revision}, {"resourceVersion": 0}):
            told = {e["object"]["metadata"]["name"]: e["object"] for e in self.kube.watch(NEW, **query).take(2)}
            self.assertEqual(body_of(told["old"]), renamed(BY_OLD))
            self.assertEqual(body_of(told["new"]), body_of(BY_NEW))
            told = {e["object"]["metadata"]["name"]: e["object"] for e in self.kube.watch(OLD, **query).take(2)}
            self.assertEqual(renamed(told["new"]), body_of(BY_NEW))
        for path in (OLD, NEW):
            for name in ("old", "new"):
                code, headers, body = self.kube.get(f"{path}/{name}", headers=PROTOBUF)
                self.assertEqual((code, headers["Content-Type"]), (200, "application/vnd.kubernetes.protobuf"))
                self.assertIn(b"hello", body)
            watch, told = self.kube.watch(path, headers=PROTOBUF, resourceVersion=revision), b""
            while told.count(b"hello") < 2:
                more = watch.response.read1()
                self.assertTrue(more, told)
                told += more


if __name__ == "__main__":
    unittest.main()
