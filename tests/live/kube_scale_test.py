#!/usr/bin/python3
"""vigil-bench kube-scale: hundreds of simulated nodes and their pods, against a running server. Counts, not times."""
import json
import resource
import subprocess
import unittest

from kube import KubeServer
from server import GENERATOR, LiveTest, only_vigil

NODES = 500
WATCHES = 18  # of a node
SERVICES = 20
# Every watch must be able to end because its time is over, which takes at least five minutes: here none does.
SECONDS = 20


@only_vigil
class Scale(LiveTest):
    def setUp(self):
        super().setUp()
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))

    def serve(self):
        server = KubeServer(self.scratch / "data")
        self.addCleanup(server.stop)
        self.addCleanup(server.close)
        return server.start()

    def scale(self, server, *flags):
        """Returns the exit code, the report, the seconds of the series, and the last message."""
        series = self.scratch / "series"
        done = subprocess.run([GENERATOR, "kube-scale", "--endpoint", f"127.0.0.1:{server.kube_port}", "--server-pid", str(server.pid),
                               "--series", series, "--json", *map(str, flags)], capture_output=True, text=True, timeout=600)
        seconds = [json.loads(line) for line in series.read_text().splitlines()]
        return done.returncode, json.loads(done.stdout), seconds, done.stderr

    def check_counts(self, report, nodes):
        """Everything was answered, and no watch ended or began again without a cause."""
        self.assertEqual({name: report[name] for name in ("errors", "watches_ended", "watches_timed_out", "relists")},
                         {"errors": 0, "watches_ended": 0, "watches_timed_out": 0, "relists": 0}, report)
        self.assertEqual(report["renewals_answered"], report["renewals_due"] - report["renewals_missed"])
        self.assertEqual((report["nodes_running"], report["pods_ready"]), (nodes, report["pods"]))

    def objects(self, server, path):
        return server.list(path)["items"]

    def test_nodes_renew_watch_and_run_pods(self):
        server = self.serve()
        # Seven writes are the life of a pod: in 20 seconds, half of the pods are replaced.
        churn = NODES // 2 * 7 // SECONDS * 100_000 // NODES
        code, report, seconds, messages = self.scale(server, "--nodes", NODES, "--threads", 2, "--duration", f"{SECONDS}s", "--services",
                                                     SERVICES, "--service-interval", "4s", "--churn", churn)
        self.check_counts(report, NODES)
        # A slow machine may miss the goals for times, but nothing else.
        if code or report["renewals_missed"]:
            self.assertIn("the goal is 1 s", messages)
        self.assertEqual(report["watches"], NODES * WATCHES)
        self.assertGreaterEqual(report["renewals_answered"], NODES)
        # Every node has received its part of the initial state and of each change, twice if it is of a service.
        self.assertEqual(report["register_count"], 2 * NODES)
        total = {name: sum(second.get(name, 0) for second in seconds)
                 for name in ("service_update", "service_delay", "slice_update", "slice_delay", "renew", "events", "pod_ready")}
        self.assertEqual(total["service_delay"], 2 * NODES * total["service_update"])
        self.assertEqual(total["slice_delay"], NODES * total["slice_update"])
        self.assertGreaterEqual(total["slice_update"], SERVICES * (SECONDS // 4 - 1))
        self.assertGreater(report["pods_started"], NODES + NODES // 8)
        # What the server has is what was reported.
        nodes = self.objects(server, "/api/v1/nodes")
        self.assertEqual(len(nodes), NODES)
        leases = self.objects(server, "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases")
        self.assertEqual({lease["metadata"]["name"] for lease in leases}, {node["metadata"]["name"] for node in nodes})
        self.assertEqual({lease["metadata"]["ownerReferences"][0]["uid"] for lease in leases}, {node["metadata"]["uid"] for node in nodes})
        pods = [pod for i in range(3) for pod in self.objects(server, f"/api/v1/namespaces/scale-{i}/pods")]
        self.assertEqual(len(pods), NODES)
        for pod in pods:
            ready = [c["status"] for c in pod["status"]["conditions"] if c["type"] == "Ready"]
            self.assertEqual((pod["status"]["phase"], ready), ("Running", ["True"]), pod)
        # The series has a line for each second, and their sum is the report's.
        self.assertGreaterEqual(len(seconds), SECONDS)
        self.assertEqual({name: total[name] for name in ("renew", "events", "pod_ready")},
                         {"renew": report["renewals_answered"], "events": report["events"], "pod_ready": report["pods_started"]})

    def test_restarted_nodes_come_back(self):
        server = self.serve()
        flags = ("--nodes", 60, "--threads", 2, "--nodes-per-connection", 3, "--pod-count", 120, "--services", 5, "--start-rate", 100)
        code, report, _, messages = self.scale(server, *flags, "--duration", "6s", "--restart", 30, "--restart-at", "2s")
        self.check_counts(report, 60)
        if code:
            self.assertIn("the goal is 1 s", messages)
        self.assertEqual((report["node_sync_count"], report["node_resync_count"]), (60, 30))
        self.assertEqual((report["pods_ready"], report["list_count"]), (120, 30 * WATCHES))
        # Another run on the same server finds its objects there.
        code, report, _, messages = self.scale(server, *flags, "--duration", "1s")
        self.check_counts(report, 60)
        self.assertEqual(len(self.objects(server, "/api/v1/nodes")), 60)

    def test_a_server_that_cannot_be_reached_or_dies_fails_the_run(self):
        server = self.serve()
        failed = subprocess.run([GENERATOR, "kube-scale", "--endpoint", "127.0.0.1:1", "--nodes", "1"], capture_output=True, text=True)
        self.assertEqual(failed.returncode, 1)
        self.assertIn("connection refused", failed.stderr)
        running = subprocess.Popen([GENERATOR, "kube-scale", "--endpoint", f"127.0.0.1:{server.kube_port}", "--nodes", "10", "--start-rate",
                                    "10", "--duration", "20s", "--series", self.scratch / "series", "--json"],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        series = self.scratch / "series"
        self.eventually(lambda: series.exists() and '"phase":2' in series.read_text())
        server.kill()
        out, messages = running.communicate(timeout=300)
        self.assertEqual(running.returncode, 1)
        self.assertGreaterEqual(json.loads(out)["watches_ended"], 10 * WATCHES)
        self.assertIn("connection", json.loads(out)["first_error"])


if __name__ == "__main__":
    unittest.main()
