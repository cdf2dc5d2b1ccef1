#!/usr/bin/python3
"""The load generator against a running server: its reports are correct."""
import json
import subprocess
import threading
import time
import unittest
import urllib.request

import protobuf as pb
from client import Client
from kube import KubeServer
from server import GENERATOR, LiveTest, only_vigil


@only_vigil
class Bench(LiveTest):
    def bench(self, server, command, *flags):
        """Returns the exit code, the report and the messages."""
        done = subprocess.run([GENERATOR, command, "--endpoint", f"127.0.0.1:{server.port}",
                               "--server-pid", str(server.pid), "--json", *map(str, flags)],
                              capture_output=True, text=True, timeout=120)
        return done.returncode, json.loads(done.stdout), done.stderr

    def good(self, server, command, *flags):
        code, report, messages = self.bench(server, command, *flags)
        self.assertEqual((code, messages, report["status"]), (0, "", "OK"))
        return report

    def client(self, server):
        client = Client(server.port)
        self.addCleanup(client.close)
        return client

    def test_load_puts_every_key_once(self):
        server = self.serving()
        report = self.good(server, "load", "--key-space", 3000, "--connections", 7,
                           "--pipeline", 9, "--threads", 2, "--value-size", 100)
        self.assertEqual((report["operations"], report["errors"]), (3000, 0))
        client = self.client(server)
        answer = client.call("Range", pb.range_of(b"bench/", b"bench0"))
        self.assertEqual(len(answer[2]), 3000)
        self.assertEqual(client.revision(), 3001)
        self.assertEqual(len(client.get(b"bench/0000002999")[0]), 100)

    def test_every_kv_command_measures_calls_and_the_servers_cpu(self):
        server = self.serving()
        times = ("--warmup", "100ms", "--duration", "400ms")
        for command, flags in (("put", ()), ("get", ("--prepare", "--key-space", 50)),
                               ("list", ("--prepare", "--key-space", 200))):
            report = self.good(server, command, *times, *flags)
            self.assertGreater(report["operations"], 0, command)
            self.assertEqual(report["errors"], 0, command)
            self.assertGreater(report["latency_p50_us"], 0, command)
            self.assertGreater(report["server_cpu_us_per_operation"], 0, command)
            self.assertGreater(report["server_anonymous_kb_after"], 0, command)

    def test_watch_puts_random_keys_that_one_watcher_each_sees(self):
        server = self.serving()
        report = self.good(server, "watch", "--connections", 2, "--streams", 5, "--watchers", 20, "--watch-keys", "own",
                           "--key-space", 200, "--keys", "random", "--warmup", "0s", "--duration", "3s")
        self.assertEqual(report["operations"], report["puts"])
        self.assertGreater(report["puts"], 20)
        answer = self.client(server).call("Range", pb.range_of(b"bench/", b"bench0"))
        self.assertGreater(len(answer[2]), 10)
        code, _, messages = self.bench(server, "watch", "--keys", "shuffled")
        self.assertEqual((code, messages), (1, "vigil-bench watch: --keys: sequential or random\n"))

    def test_store_process_is_counted_with_the_server(self):
        server = self.serving()
        one = self.good(server, "put", "--total", 10)
        both = self.good(server, "put", "--total", 10, "--store-pid", server.pid)
        self.assertEqual(both["server_threads"], 2 * one["server_threads"])

    def test_lease_grants_and_renews(self):
        server = self.serving()
        report = self.good(server, "lease", "--total", 1000, "--connections", 3, "--pipeline", 7,
                           "--duration", "300ms")
        self.assertEqual(report["leases"], 1000)
        self.assertGreater(report["operations"], 0)
        self.assertGreater(report["server_cpu_us_per_operation"], 0)
        channel = self.client(server).channel
        answer = channel.unary_unary("/etcdserverpb.Lease/LeaseLeases")(b"", timeout=60)
        self.assertEqual(len(pb.parse(answer)[2]), 1000)
        # The IDs are now in use: a second run fails and reports why.
        code, _, messages = self.bench(server, "lease", "--total", 1000)
        self.assertNotEqual(code, 0)
        self.assertIn("lease already exists", messages)

    def test_idle_holds_connections(self):
        server = self.serving()
        self.assertEqual(self.good(server, "idle", "--connections", 50, "--duration",
                                   "200ms")["connections"], 50)

    def test_ready_waits_for_the_key(self):
        server = self.serving()
        client = self.client(server)
        later = threading.Timer(0.5, client.put, (b"bench/0000000000", b"v" * 256))
        begin = time.monotonic()
        later.start()
        self.good(server, "ready", "--duration", "20s")
        later.join()
        self.assertGreater(time.monotonic() - begin, 0.4)

    def test_refused_puts_fail_the_run_with_an_error_message(self):
        server = self.serving(args=["--max-request-bytes", "5000"])
        code, report, messages = self.bench(server, "put", "--value-size", 6000, "--total", 200)
        self.assertEqual((code, report["operations"], report["errors"]), (1, 0, 200))
        self.assertIn("grpc-status 3 etcdserver: request is too large", messages)

    def test_get_without_a_value_is_an_error(self):
        code, report, messages = self.bench(self.serving(), "get", "--total", 100)
        self.assertEqual((code, report["errors"]), (1, 100))
        self.assertIn("shorter", messages)

    def test_killed_server_fails_the_run(self):
        server = self.serving()
        unused, connections = server.descriptors(), 100

        def kill():
            self.eventually(lambda: server.descriptors() >= unused + connections)
            server.kill()

        killer = threading.Thread(target=kill)
        killer.start()
        code, report, _ = self.bench(server, "put", "--connections", connections, "--warmup", "100ms", "--duration", "6s")
        killer.join()
        self.assertEqual((code, report["connections_lost"]), (1, connections))
        self.assertGreater(report["errors"], 0)

    def test_refused_connection_is_reported(self):
        server = self.serving()
        server.stop()
        code, _, messages = self.bench(server, "put")
        self.assertEqual(code, 1)
        self.assertIn("cannot open a connection: Connection refused", messages)

    def test_watchers_get_every_event(self):
        server = self.serving()
        report = self.good(server, "watch", "--connections", 2, "--streams", 3, "--watchers", 5,
                           "--rate", 200, "--warmup", "100ms", "--duration", "500ms")
        self.assertEqual(report["watchers"], 30)
        # A put in flight when the measurement begins may have had its events before: at most all of the warmup.
        self.assertGreaterEqual(report["operations"], (report["puts"] - 21) * 30)
        self.assertGreater(report["event_latency_p50_us"], 0)
        report = self.good(server, "catchup", "--connections", 2, "--total", 2000)
        self.assertEqual(report["operations"], 4000)

    def test_watchers_of_one_key_are_waited_for(self):
        server = self.serving()
        report = self.good(server, "watch", "--connections", 2, "--streams", 2, "--watchers", 3,
                           "--watch-keys", "one", "--key-space", 1, "--pipeline", 4,
                           "--await-events", "--warmup", "100ms", "--duration", "500ms")
        self.assertEqual(report["watchers"], 12)
        # The four puts in flight when the measurement begins may have had their events before.
        self.assertGreaterEqual(report["operations"], (report["puts"] - 4) * 12)
        self.assertLessEqual(report["operations"], (report["puts"] + 4) * 12)

    def test_each_watcher_has_its_own_key(self):
        server = self.serving()
        flags = ("--connections", 2, "--streams", 2, "--watchers", 5, "--watch-keys", "own",
                 "--warmup", "0s", "--duration", "200ms", "--rate", 200)
        report = self.good(server, "watch", *flags, "--key-space", 20)
        self.assertGreater(report["operations"], 0)
        self.assertEqual(report["operations"], report["puts"])
        code, _, messages = self.bench(server, "watch", *flags, "--key-space", 21)
        self.assertEqual(code, 1)
        self.assertIn("--key-space", messages)

    def test_idle_watchers_are_created_and_their_memory_measured(self):
        server = self.serving()
        report = self.good(server, "idle", "--connections", 2, "--streams", 5, "--watchers", 1000,
                           "--watch-keys", "own", "--duration", "200ms")
        self.assertEqual((report["watchers"], report["errors"]), (10000, 0))
        self.assertGreater(report["created_ms"], 0)
        self.assertGreater(report["server_anonymous_kb_more"], 1000)

    def test_repeated_catchup(self):
        server = self.serving()
        self.good(server, "put", "--total", 3000)
        report = self.good(server, "catchup", "--connections", 2, "--from", 2, "--total", 3000,
                           "--again", "--duration", "2s")
        self.assertGreater(report["rounds"], 1)
        self.assertGreaterEqual(report["operations"], (report["rounds"] - 1) * 6000)
        self.assertGreater(report["server_anonymous_kb_most"], 0)
        report = self.good(server, "catchup", "--connections", 1, "--from", 2, "--total", 4000,
                           "--duration", "1s")
        self.assertEqual((report["operations"], report["whole"]), (3000, 0))

    def test_pods_are_created_listed_and_watched_by_node(self):
        server = KubeServer(self.scratch / "data")
        self.addCleanup(server.kill)
        self.addCleanup(server.close)
        server.start()
        server.port, store = server.kube_port, server.port  # which the generator uses
        report = self.good(server, "kube-load", "--key-space", 300, "--value-size", 2048, "--nodes", 10)
        self.assertEqual((report["operations"], report["errors"]), (300, 0))
        report = self.good(server, "kube-list", "--key-space", 300, "--value-size", 2048,
                           "--warmup", "0s", "--duration", "300ms")
        self.assertGreater(report["operations"], 0)
        report = self.good(server, "kube-watch", "--connections", 5, "--streams", 4, "--nodes", 10, "--stopped", 3,
                           "--key-space", 300, "--value-size", 2048, "--rate", 200, "--warmup", "0s",
                           "--duration", "500ms")
        self.assertEqual((report["watches"], report["operations"]), (23, 2 * report["changes"]))
        self.assertGreater(report["changes"], 0)
        code, _, messages = self.bench(server, "kube-watch", "--connections", 5, "--streams", 4, "--nodes", 3)
        self.assertEqual(code, 1)
        self.assertIn("--nodes", messages)
        code, _, messages = self.bench(server, "kube-load", "--key-space", 300)
        self.assertEqual(code, 1)
        self.assertIn("HTTP status 409", messages)
        path = "/api/v1/namespaces/default/configmaps"
        objects = ("kube-load", "--key-space", 20, "--path", path, "--object", self.scratch / "object.json")
        code, _, messages = self.bench(server, *objects)
        self.assertEqual(code, 1)
        self.assertIn("cannot open", messages)
        (self.scratch / "object.json").write_text('{"metadata":{"name":"own-0"}}')
        code, _, messages = self.bench(server, *objects)
        self.assertEqual(code, 1)
        self.assertIn("no ten zeros", messages)
        (self.scratch / "object.json").write_text('{"metadata":{"name":"own-0000000000"},"data":{"a":"b"}}')
        report = self.good(server, *objects)
        self.assertEqual((report["operations"], report["objects"]), (20, 20))
        with urllib.request.urlopen(f"http://127.0.0.1:{server.port}{path}/own-0000000019") as answer:
            self.assertEqual(json.loads(answer.read())["data"], {"a": "b"})
        server.port = store


if __name__ == "__main__":
    unittest.main()
