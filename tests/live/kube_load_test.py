#!/usr/bin/python3
"""The Kubernetes API under load: a thousand clients that stop reading, bodies with very many values, and the metrics."""
import http.client
import json
import re
import resource
import socket
import time
import unittest

import h2raw as h2
from kube import WAIT_SECONDS, KubeServer, summary
from metrics_test import parse
from server import LiveTest

STOPPED = 1000
ON_ONE_CONNECTION = 3000
CHANGES, CHANGE_BYTES = 30, 10000
# Per connection: the buffered part of an answer and the connection's own memory, with the address sanitizer. Queues of all
# events would be 300 MB.
MEMORY_KB_MAX = STOPPED * (64 + 40)


class Stopped:
    """A watch over HTTP/1.1 that is not read until events() is called."""

    def __init__(self, server, path, revision):
        self.socket = socket.socket()
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.socket.settimeout(60)
        self.socket.connect(("127.0.0.1", server.kube_port))
        self.socket.sendall(f"GET {path}?watch=1&resourceVersion={revision} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        self.raw = bytearray()  # of incomplete chunks
        self.head_over = self.over = False

    def pieces(self):
        """The contents of the complete chunks."""
        while True:
            end = self.raw.find(b"\r\n\r\n" if not self.head_over else b"\r\n")
            if end < 0:
                return
            if not self.head_over:
                assert self.raw.startswith(b"HTTP/1.1 200"), self.raw[:100]
                self.head_over = True
                del self.raw[:end + 4]
                continue
            size = int(self.raw[:end], 16)
            if len(self.raw) < end + 2 + size + 2:
                return
            piece = bytes(self.raw[end + 2:end + 2 + size])
            del self.raw[:end + 2 + size + 2]
            if not size:
                self.over = True
                return
            yield piece

    def events(self, count):
        """The first events up to the count, or all if the server ends the watch: type, and revision or code."""
        text = b""
        while text.count(b"\n") < count and not self.over:
            more = self.socket.recv(1 << 20)
            assert more
            self.raw += more
            text += b"".join(self.pieces())
        found = re.findall(rb'^\{"type":"(\w+)".*?"(?:resourceVersion":"|code":)(\d+)', text, re.MULTILINE)
        return [(kind.decode(), int(number)) for kind, number in found]


class Load(LiveTest):
    def setUp(self):
        super().setUp()
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))

    def serve(self, *args):
        server = KubeServer(self.scratch / "data", args)
        self.addCleanup(server.kill)
        self.addCleanup(server.close)
        server.start()
        return server

    def page(self, server, port=None):
        connection = http.client.HTTPConnection("127.0.0.1", port or server.kube_port, timeout=WAIT_SECONDS)
        self.addCleanup(connection.close)
        connection.request("GET", "/metrics")
        return {name: value for family in parse(connection.getresponse().read().decode()).values()
                for name, value in family["samples"].items()}

    def wait_for(self, what, seen):
        end = time.monotonic() + 60
        while not seen():
            self.assertLess(time.monotonic(), end, what)
            time.sleep(0.05)

    def stopped(self, server, count, revision):
        clients = [Stopped(server, "/api/v1/namespaces/default/configmaps", revision) for _ in range(count)]
        for client in clients:
            self.addCleanup(client.socket.close)
        self.wait_for("watches", lambda: self.page(server)["vigil_kube_watches", 'state="live"'] >= count)
        return clients

    def change(self, server):
        return [("ADDED", server.put("configmaps", f"c{i}", kind="ConfigMap", data={"k": "x" * CHANGE_BYTES}))
                for i in range(CHANGES)]

    def test_thousand_stopped_readers_delay_no_client_and_lose_no_event(self):
        server = self.serve()
        start = server.put("configmaps", "first", kind="ConfigMap")
        clients = self.stopped(server, STOPPED, start)
        before = server.anonymous_kb()
        quick = server.watch("/api/v1/namespaces/default/configmaps", resourceVersion=start)
        expected = self.change(server)
        self.assertEqual([(e["type"], int(e["object"]["metadata"]["resourceVersion"])) for e in quick.take(CHANGES)],
                         expected)
        self.wait_for("the watches are behind", lambda: self.page(server)["vigil_watch_streams_behind", ""] >= STOPPED)
        self.assertLess(server.anonymous_kb() - before, MEMORY_KB_MAX)
        for client in clients:
            self.assertEqual(client.events(CHANGES), expected)
        server.stop()

    def test_only_a_compaction_ends_an_unread_watch(self):
        server = self.serve()
        start = server.put("configmaps", "first", kind="ConfigMap")
        clients = self.stopped(server, 20, start)
        expected = self.change(server)
        self.wait_for("the watches are behind", lambda: self.page(server)["vigil_watch_streams_behind", ""] >= 20)
        server.compact(expected[-1][1])
        for client in clients:
            *seen, last = client.events(CHANGES)
            self.assertEqual(last, ("ERROR", 410))
            self.assertEqual(seen, expected[:len(seen)])
        self.wait_for("the expired watches are counted",
                      lambda: self.page(server)["vigil_kube_watches_expired_total", ""] == 20)
        server.stop()

    def test_thousands_of_watches_close_with_their_connection_while_their_resource_is_written(self):
        server = self.serve()
        path = "/api/v1/namespaces/default/configmaps"
        start = server.put("configmaps", "first", kind="ConfigMap")
        block = h2.request_headers(f"{path}?watch=1&resourceVersion={start}", method="GET")
        streams = range(1, 2 * ON_ONE_CONNECTION, 2)
        for _ in range(3):
            with h2.Connection(server.kube_port, timeout=60) as connection:
                self.assertTrue(connection.send(b"".join(
                    h2.frame(h2.HEADERS, h2.END_HEADERS | h2.END_STREAM, stream, block) for stream in streams)))
                self.wait_for("watches", lambda: self.page(server)["vigil_kube_watches", 'state="live"']
                              == ON_ONE_CONNECTION)
                server.put("configmaps", "second", kind="ConfigMap")
            for i in range(20):
                server.put("configmaps", f"c{i}", kind="ConfigMap")
            self.wait_for("the watches are closed", lambda: self.page(server)["etcd_debugging_mvcc_watcher_total", ""] == 0)
        server.stop()

    def send(self, server, method, path, body, kind="application/json"):
        connection = http.client.HTTPConnection("127.0.0.1", server.kube_port, timeout=60)
        self.addCleanup(connection.close)
        connection.request(method, path, body, {"Content-Type": kind})
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())

    def test_body_with_too_many_values_is_refused_early(self):
        server = self.serve()
        path = "/api/v1/namespaces/default/configmaps"
        start = '{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"big"},'
        many = start + '"x":[' + "1," * 900_000 + "1]}"
        bodies = [("POST", path, many, "application/json"),
                  ("PUT", path + "/big", start + '"x":[' + '{"a":[]},' * 290_000 + "1]}", "application/json"),
                  ("PATCH", path + "/big", many, "application/merge-patch+json"),
                  ("POST", path, "kind: ConfigMap\nx: [" + "1," * 900_000 + "1]", "application/yaml")]
        for method, where, body, kind in bodies:
            self.assertLess(len(body), 3 << 20)
            code, status = self.send(server, method, where, body, kind)
            self.assertEqual((code, status["reason"], status["message"]),
                             (413, "RequestEntityTooLarge",
                              "Request entity too large: it has more values than a request may have"), kind)
        keys = ",".join(f'"key-{i}":"value"' for i in range(40_000))
        code, made = self.send(server, "POST", path, start + '"data":{' + keys + "}}")
        self.assertEqual((code, len(made["data"])), (201, 40_000))
        server.stop()

    def test_requests_are_counted_on_both_metrics_pages(self):
        server = self.serve("--kube-undecodable", "skip")
        path = "/api/v1/namespaces/default/pods"
        pod = {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "a"},
               "spec": {"containers": [{"name": "c", "image": "i"}]}}
        self.assertEqual(self.send(server, "POST", path, json.dumps(pod))[0], 201)
        self.assertEqual(self.send(server, "POST", path, json.dumps(pod))[0], 409)
        self.assertEqual(self.send(server, "GET", path + "/missing", "")[0], 404)
        server.put_raw("/registry/pods/default/zz", "not an object")
        self.assertEqual(len(server.list(path)["items"]), 1)
        watch = server.watch(path, resourceVersion=0)
        self.assertEqual(summary(watch.next())[:2], ("ADDED", "a"))
        server.put("pods", "b")
        self.assertEqual(summary(watch.next())[:2], ("ADDED", "b"))
        kind = 'group="",version="v1",resource="pods"'
        # A request is counted when its call ends, which may be after the client has its answer.
        listed = "apiserver_request_total", f'verb="LIST",{kind},code="200"'
        self.wait_for("the list is counted", lambda: self.page(server).get(listed) == 1)
        for port in (server.kube_port, server.port):
            page = self.page(server, port)
            for verb, code in (("POST", 201), ("POST", 409), ("GET", 404), ("LIST", 200), ("WATCH", 200)):
                self.assertEqual(page["apiserver_request_total", f'verb="{verb}",{kind},code="{code}"'], 1, verb)
            self.assertEqual(page["apiserver_request_duration_seconds_count", 'verb="POST"'], 2)
            self.assertEqual(page["apiserver_longrunning_requests", f'verb="WATCH",{kind}'], 1)
            self.assertEqual(page["apiserver_watch_events_total", kind], 2)
            self.assertEqual(page["apiserver_storage_list_total", kind], 1)
            self.assertEqual(page["apiserver_storage_list_fetched_objects_total", kind], 2)
            self.assertEqual(page["apiserver_storage_list_returned_objects_total", kind], 1)
            self.assertEqual(page["vigil_kube_watches", 'state="live"'], 1)
            self.assertEqual(page["vigil_kube_undecodable_values_total", 'policy="skip"'], 2)
            self.assertGreater(page["vigil_kube_watch_sent_bytes_total", ""], 200)
        watch.close()
        self.wait_for("the watch ends", lambda: self.page(server)["apiserver_longrunning_requests",
                                                                  f'verb="WATCH",{kind}'] == 0)
        server.stop()


if __name__ == "__main__":
    unittest.main()
