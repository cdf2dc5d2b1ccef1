#!/usr/bin/python3
"""How long history is kept for watches after writes through Kubernetes' API, where no client compacts."""
import http.client
import json
import time
import unittest

from kube import KubeServer
from server import LiveTest, only_alone, only_vigil

CMS = "/api/v1/namespaces/default/configmaps"


@only_vigil
class History(LiveTest):
    def serve(self, *args):
        server = KubeServer(self.scratch / "data", args)
        self.addCleanup(server.kill)
        self.addCleanup(server.close)
        self.server = server.start()
        self.connection = http.client.HTTPConnection("127.0.0.1", server.kube_port, timeout=60)
        self.addCleanup(self.connection.close)

    def send(self, method, path, **fields):
        self.connection.request(method, path, json.dumps({"metadata": {"name": "a"}, **fields}),
                                {"Content-Type": "application/json"})
        answer = self.connection.getresponse()
        body = json.loads(answer.read())
        self.assertIn(answer.status, (200, 201), body)
        return int(body["metadata"]["resourceVersion"])

    def compacted(self):
        """The revisions to which the server has compacted."""
        return [json.loads(line)["revision"] for line in self.server.lines
                if "completed auto periodic compaction" in line or "compacted the cluster" in line]

    def test_compaction_begins_after_the_first_write(self):
        self.serve("--kube-history", "1s")
        self.server.put_raw("a", "1")
        time.sleep(2.5)
        self.assertEqual(self.compacted(), [])  # clients of etcd's API request compactions themselves
        revision = self.send("POST", CMS)
        self.eventually(lambda: max(self.compacted(), default=0) >= revision, message=lambda: self.server.log)

    @only_alone
    def test_history_over_the_size_limit_is_compacted_early(self):
        self.serve("--kube-history", "20s", "--kube-history-bytes", "100000")
        first = self.send("POST", CMS, data={"a": "x" * 1000})
        end = time.monotonic() + 60
        for i in range(10**9):
            self.send("PUT", f"{CMS}/a", data={"a": "x" * 1000 + str(i)})
            if [r for r in self.compacted() if r > first]:
                break
            self.assertLess(time.monotonic(), end, self.server.log)
        event = self.server.watch(CMS, resourceVersion=first).next()
        self.assertEqual((event["type"], event["object"]["code"]), ("ERROR", 410), event)

    @only_alone
    def test_auto_compaction_flag_takes_precedence(self):
        self.serve("--kube-history", "1s", "--auto-compaction-retention", "1h")
        self.send("POST", CMS)
        time.sleep(2.5)
        self.assertEqual(self.compacted(), [])


if __name__ == "__main__":
    unittest.main()
