#!/usr/bin/python3
"""Kinds that are served in two group versions: an object written in one version can be read in the other."""
import http.client
import json
import unittest

from kube import KubeServer
from server import LiveTest, only_vigil

CORE = "/api/v1/namespaces/default/events"
NEW = "/apis/events.k8s.io/v1/namespaces/default/events"
SCALERS = "/apis/autoscaling/%s/namespaces/default/horizontalpodautoscalers"
TABLE = {"Accept": "application/json;as=Table;g=meta.k8s.io;v=v1"}
OLD = {"metadata": {"name": "old"}, "involvedObject": {"kind": "Pod", "name": "p", "namespace": "default"},
       "reason": "Old", "message": "by core", "source": {"component": "me"}, "count": 2, "type": "Normal"}
FRESH = {"metadata": {"name": "fresh"}, "regarding": {"kind": "Pod", "name": "q", "namespace": "default"},
         "reason": "New", "note": "by the new one", "action": "Doing", "type": "Normal",
         "eventTime": "2026-11-15T06:00:00.000000Z", "reportingController": "me", "reportingInstance": "me-1"}
SAME = {"involvedObject": "regarding", "message": "note", "source": "deprecatedSource", "count": "deprecatedCount",
        "firstTimestamp": "deprecatedFirstTimestamp", "lastTimestamp": "deprecatedLastTimestamp",
        "reportingComponent": "reportingController"}
# Written always in the core group, and only if they have a value in the other one.
OPTIONAL = ("reportingController", "reportingInstance")


@only_vigil
class ConvertedKinds(LiveTest):
    def setUp(self):
        super().setUp()
        self.server = KubeServer(self.scratch / "data")
        self.addCleanup(self.server.kill)
        self.addCleanup(self.server.close)
        self.server.start()

    def send(self, method, path, body=None, content_type="application/json", headers=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.server.kube_port, timeout=60)
        try:
            connection.request(method, path, json.dumps(body) if body else None,
                               {"Content-Type": content_type, **(headers or {})})
            answer = connection.getresponse()
            got = json.loads(answer.read())
            self.assertIn(answer.status, (200, 201), got)
            return got
        finally:
            connection.close()

    def assert_same_event(self, old, new):
        self.assertEqual((old["apiVersion"], new["apiVersion"]), ("v1", "events.k8s.io/v1"))
        drop = ("apiVersion",)
        renamed = {SAME.get(key, key): value for key, value in old.items() if key not in drop}
        renamed = {key: value for key, value in renamed.items() if value or key not in OPTIONAL}
        self.assertEqual(renamed, {key: value for key, value in new.items() if key not in drop})

    def test_events_are_readable_through_both_groups(self):
        self.assertEqual(self.send("POST", CORE, OLD)["message"], "by core")
        self.assertEqual(self.send("POST", NEW, FRESH)["note"], "by the new one")
        for name in ("old", "fresh"):
            self.assert_same_event(self.send("GET", f"{CORE}/{name}"), self.send("GET", f"{NEW}/{name}"))
        old, new = self.send("GET", CORE)["items"], self.send("GET", NEW)["items"]
        self.assertEqual([item["message"] for item in old], [item["note"] for item in new])
        found = self.send("GET", f"{NEW}?fieldSelector=regarding.name=p")["items"]
        self.assertEqual([item["metadata"]["name"] for item in found], ["old"])
        found = self.send("GET", f"{CORE}?fieldSelector=involvedObject.name=q")["items"]
        self.assertEqual([item["metadata"]["name"] for item in found], ["fresh"])
        rows = [[row["cells"] for row in self.send("GET", path, headers=TABLE)["rows"]] for path in (CORE, NEW)]
        self.assertEqual([cells[1:] for cells in rows[0]], [cells[1:] for cells in rows[1]])

    def test_each_watch_gets_events_in_its_own_version(self):
        watches = [self.server.watch(path) for path in (CORE, NEW)]
        self.send("POST", NEW, FRESH)
        self.send("PATCH", f"{CORE}/fresh", {"message": "changed"}, "application/merge-patch+json")
        self.send("DELETE", f"{CORE}/fresh")
        events = [watch.take(3) for watch in watches]
        for old, new in zip(*events):
            self.assertEqual(old["type"], new["type"])
            self.assert_same_event(old["object"], new["object"])
        self.assertEqual([event["type"] for event in events[0]], ["ADDED", "MODIFIED", "DELETED"])
        self.assertEqual(events[0][1]["object"]["message"], "changed")

    def test_autoscalers_are_readable_in_both_versions(self):
        spec = {"minReplicas": 1, "maxReplicas": 5, "scaleTargetRef": {
            "apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}}
        given = {key: value for key, value in spec.items() if key != "minReplicas"}
        self.send("POST", SCALERS % "v1", {"metadata": {"name": "h"},
                                           "spec": {**given, "targetCPUUtilizationPercentage": 70}})
        path = SCALERS % "v2" + "/h"
        seen = self.send("GET", path)
        cpu = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization",
                                                                          "averageUtilization": 70}}}
        self.assertEqual((seen["apiVersion"], seen["spec"]), ("autoscaling/v2", {**spec, "metrics": [cpu]}))
        pods = {"type": "Pods", "pods": {"metric": {"name": "m"}, "target": {
            "type": "AverageValue", "averageValue": "1"}}}
        self.send("PUT", path, {"metadata": {"name": "h"}, "spec": {**spec, "metrics": [pods, cpu]}})
        # A client of version 1 writes back the object that it read, with one change: nothing else is lost.
        old = self.send("GET", SCALERS % "v1" + "/h")
        self.assertEqual(old["spec"], {**spec, "targetCPUUtilizationPercentage": 70})
        old["spec"]["targetCPUUtilizationPercentage"] = 80
        self.send("PUT", SCALERS % "v1" + "/h", old)
        cpu["resource"]["target"]["averageUtilization"] = 80
        seen = self.send("GET", path)
        self.assertEqual(seen["spec"], {**spec, "metrics": [pods, cpu]})
        self.assertNotIn("annotations", seen["metadata"])


if __name__ == "__main__":
    unittest.main()
