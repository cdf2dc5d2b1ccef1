#!/usr/bin/python3
"""Every limit on clients is set low by its flag, and then exceeded."""
import json
import os
import signal
import socket
import time
import unittest
import urllib.error
import urllib.request

import grpc

import h2raw as h2
import protobuf as pb
from client import Client
from server import LiveTest, only_vigil

KV = "/etcdserverpb.KV/"
WATCH = "/etcdserverpb.Watch/Watch"
REFUSED_STREAM, ENHANCE_YOUR_CALM = 7, 11


@only_vigil
class Limits(LiveTest):
    def begin(self, *args):
        self.vigil = self.serving(args=args)
        return self.vigil

    def connect(self, *args, **options):
        c = h2.Connection(self.vigil.port, *args, **options)
        self.addCleanup(c.close)
        return c

    def check_serves(self):
        client = Client(self.vigil.port)
        client.put(b"a", b"1")
        client.close()

    def goaway(self, c):
        """The error code of the server's GOAWAY, or "closed" if it only closed the connection."""
        for kind, _, _, payload in c.frames():
            if kind == h2.GOAWAY and int.from_bytes(payload[4:8], "big") != 0:
                return int.from_bytes(payload[4:8], "big")
        return "closed" if c.closed else None

    def reset(self, c, stream):
        """The error code with which a stream was reset, or "answered"."""
        for kind, _, on, payload in c.frames():
            if on == stream and kind == h2.RST_STREAM:
                return int.from_bytes(payload, "big")
            if on == stream and kind == h2.HEADERS:
                return "answered"
        return None

    def until_end(self, c, stream):
        """Yields the frames up to the end of a stream or of the connection."""
        for found in c.frames():
            yield found
            if found[2] == stream and (found[0] == h2.RST_STREAM or (found[0] in (h2.HEADERS, h2.DATA) and found[1] & h2.END_STREAM)):
                return
        self.assertTrue(c.closed, "the stream does not end")

    def seconds_until_closed(self, data, most):
        with socket.create_connection(("127.0.0.1", self.vigil.port), most) as s:
            s.sendall(data)
            begin = time.monotonic()
            try:
                while s.recv(65536):
                    pass
            except ConnectionError:
                pass
            return time.monotonic() - begin

    def test_connections(self):
        self.begin("--max-connections", "5")
        held = [self.connect(timeout=60) for _ in range(5)]
        for c in held:
            next(c.frames())  # the server's SETTINGS: the connection is served
        more = self.connect(timeout=60)
        list(more.frames())
        self.assertTrue(more.closed)
        open_before = self.vigil.descriptors()
        held[0].close()
        self.eventually(lambda: self.vigil.descriptors() < open_before)
        self.check_serves()

    def test_streams_of_a_connection(self):
        self.begin("--max-concurrent-streams", "3")
        c = self.connect(timeout=60)
        for stream in (1, 3, 5, 7):
            c.send(h2.frame(h2.HEADERS, h2.END_HEADERS, stream, h2.request_headers()))
        self.assertEqual(self.reset(c, 7), REFUSED_STREAM)

    def test_header_bytes(self):
        self.begin("--max-header-bytes", "2048")
        c = self.connect(timeout=60)
        block = h2.request_headers(extra=[("x-large", "y" * 4000)])
        c.send(h2.frame(h2.HEADERS, h2.END_HEADERS | h2.END_STREAM, 1, block))
        ok = [f for f in self.until_end(c, 1) if f[0] == h2.HEADERS and b"\x88" == f[3][:1] and len(f[3]) > 60]
        self.assertEqual(ok, [])  # no ordinary 200
        # A request that is not a call gets a response, and its connection stays.
        path = "/health?" + "a" * 5000
        for stream in (3, 5):
            block = h2.request_headers(path, method="GET")
            c.send(h2.frame(h2.HEADERS, h2.END_HEADERS | h2.END_STREAM, stream, block))
            head = next(f[3] for f in c.frames() if f[0] == h2.HEADERS and f[2] == stream)
            self.assertEqual(head[:5], b"\x08\x03431")
        self.check_serves()

    def test_header_fields(self):
        self.begin("--max-header-fields", "16")
        c = self.connect(timeout=60)
        block = h2.request_headers(extra=[(f"x-{i}", "y") for i in range(40)])
        c.send(h2.frame(h2.HEADERS, h2.END_HEADERS, 1, block) +
               h2.frame(h2.DATA, h2.END_STREAM, 1, pb.grpc_frame(pb.range_of(b"a"))))
        self.assertFalse(any(f[0] == h2.DATA and f[2] == 1 and len(f[3]) > 5 for f in self.until_end(c, 1)))
        self.check_serves()

    def test_http1_header_bytes(self):
        self.begin("--max-http1-header-bytes", "2048")
        with socket.create_connection(("127.0.0.1", self.vigil.port), 60) as s:
            s.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\nX: " + b"y" * 5000 + b"\r\n\r\n")
            try:
                self.assertRegex(s.recv(4096), rb"^(HTTP/1.1 4\d\d .*)?", "an error or nothing")
            except ConnectionError:
                pass
        self.check_serves()

    def test_handshake_time(self):
        self.begin("--handshake-timeout", "700ms")
        for data in (b"", b"P", h2.PREFACE[:10], h2.PREFACE):
            self.assertLess(self.seconds_until_closed(data, 30), 8, data)
        self.check_serves()

    def test_http1_header_time(self):
        self.begin("--http1-header-timeout", "700ms")
        self.assertLess(self.seconds_until_closed(b"GET /health HTTP/1.1\r\nHost:", 30), 8)

    def test_http1_idle_time(self):
        self.begin("--http1-idle-timeout", "700ms")
        self.assertLess(self.seconds_until_closed(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n", 30), 8)

    def test_unread_answer_is_dropped_after_the_stall_timeout(self):
        self.begin("--response-stall-timeout", "1s")
        client = Client(self.vigil.port)
        for i in range(20):
            client.put(b"k%d" % i, bytes(100_000))
        client.close()
        c = self.connect(h2.PREFACE + h2.settings(window=0), timeout=30)
        c.send(h2.request(1, pb.grpc_frame(pb.range_of(b"k", b"l"))))
        begin = time.monotonic()
        for kind, flags, stream, _ in c.frames():
            if kind in (h2.RST_STREAM, h2.GOAWAY) or (kind == h2.HEADERS and flags & h2.END_STREAM):
                break
        else:
            self.assertTrue(c.closed, "the stalled answer is kept forever")
        self.assertLess(time.monotonic() - begin, 20)
        self.check_serves()

    def test_resets(self):
        self.begin("--reset-burst", "10", "--reset-rate", "1")
        c = self.connect(timeout=60)
        for stream in range(1, 401, 2):
            c.send(h2.frame(h2.HEADERS, h2.END_HEADERS, stream, h2.request_headers()) +
                   h2.frame(h2.RST_STREAM, 0, stream, b"\0\0\0\x08"))
        self.assertIn(self.goaway(c), (ENHANCE_YOUR_CALM, "closed"))
        self.check_serves()

    def test_settings(self):
        self.begin("--settings-burst", "5")
        c = self.connect(timeout=60)
        c.send(h2.settings(window=65535) * 100)
        self.assertIn(self.goaway(c), (ENHANCE_YOUR_CALM, "closed"))
        self.check_serves()

    def test_pings(self):
        self.begin("--ping-strikes", "1")
        c = self.connect(timeout=60)
        for _ in range(10):
            c.send(h2.frame(h2.PING, payload=b"12345678"))
        self.assertIn(self.goaway(c), (ENHANCE_YOUR_CALM, "closed"))
        self.check_serves()

    def test_unfinished_requests(self):
        self.begin("--max-client-bytes", "1048576", "--stream-window-bytes", "100000",
                   "--connection-window-bytes", "16777216")
        c = self.connect(timeout=60)
        ended = False
        for stream in range(1, 81, 2):
            body = b"\0" + (90_000).to_bytes(4, "big") + bytes(60_000)
            c.send(h2.frame(h2.HEADERS, h2.END_HEADERS, stream, h2.request_headers(KV + "Put")))
            for at in range(0, len(body), 16000):
                c.send(h2.frame(h2.DATA, 0, stream, body[at:at + 16000]))
        for kind, flags, _, _ in c.frames():
            ended = kind in (h2.RST_STREAM, h2.GOAWAY) or (kind == h2.HEADERS and flags & h2.END_STREAM)
            if ended:
                break
        self.assertTrue(ended or c.closed)
        self.check_serves()

    def watch(self, *requests):
        """Returns one response for each request of a Watch call."""
        client = Client(self.vigil.port)
        self.addCleanup(client.close)
        answers = client.channel.stream_stream(WATCH)(iter(requests), timeout=60)
        responses = [pb.parse(next(answers)) for _ in requests]
        answers.cancel()
        return responses

    def test_operations_of_a_transaction_including_nested_ones(self):
        """Exactly the allowed number of operations, and one more, over gRPC and as JSON."""
        total, width = 16_384, 100
        self.begin("--max-txn-ops=300")
        client = Client(self.vigil.port)
        self.addCleanup(client.close)
        lists = [width] * (total // (width + 1))
        lists.append(total - len(lists) * (width + 1) - 1)
        get, json_get = pb.field(2, pb.field(1, pb.message(f1=b"a"))), {"requestRange": {"key": "YQ=="}}
        for more, refused in ((0, False), (1, True)):
            lists[-1] += more
            message = b"".join(pb.field(2, pb.field(4, get * count)) for count in lists)
            body = {"success": [{"requestTxn": {"success": [json_get] * count}} for count in lists]}
            request = urllib.request.Request(self.vigil.url + "/v3/kv/txn", json.dumps(body).encode())
            if not refused:
                client.call("Txn", message)
                self.assertEqual(len(json.load(urllib.request.urlopen(request))["responses"]), len(lists))
                continue
            with self.assertRaises(grpc.RpcError) as caught:
                client.call("Txn", message)
            self.assertEqual(caught.exception.code(), grpc.StatusCode.INVALID_ARGUMENT)
            self.assertEqual(caught.exception.details(), "etcdserver: too many operations in txn request")
            with self.assertRaises(urllib.error.HTTPError) as answer:
                urllib.request.urlopen(request)
            self.assertEqual(answer.exception.code, 400)
            self.assertIn("too many operations in txn request", answer.exception.read().decode())

    def test_watches_of_a_call(self):
        self.begin("--max-watchers-per-stream", "5")
        create = pb.message(f1=pb.message(f1=b"k"))
        cancel = pb.message(f2=pb.message(f1=3))
        responses = self.watch(*[create] * 6, cancel, create, create)
        self.assertEqual([4 in r for r in responses],  # canceled
                         [False] * 5 + [True, True, False, True])
        self.assertEqual(responses[5][6], [b"vigil: too many watches on one stream"])
        self.assertEqual(responses[5][2], [(1 << 64) - 1])
        self.check_serves()

    def test_watches_of_all_clients(self):
        self.begin("--max-watchers", "5")
        create = pb.message(f1=pb.message(f1=b"k"))
        client = Client(self.vigil.port)
        self.addCleanup(client.close)
        others = client.channel.stream_stream(WATCH)(iter([create] * 3), timeout=60)
        self.assertEqual([4 in pb.parse(next(others)) for _ in range(3)], [False] * 3)
        responses = self.watch(*[create] * 4)
        self.assertEqual([4 in r for r in responses], [False, False, True, True])
        self.assertEqual(responses[2][6], [b"vigil: too many watches on this server"])
        others.cancel()
        self.eventually(lambda: 4 not in self.watch(*[create] * 4)[3],
                        message=lambda: "the watches of a call that has ended still count")
        self.check_serves()

    def test_watch_requests_with_unread_answers(self):
        self.begin()
        c = self.connect(h2.PREFACE + h2.settings(window=0), timeout=2)
        c.send(h2.frame(h2.HEADERS, h2.END_HEADERS, 1, h2.request_headers(WATCH)))
        block = h2.frame(h2.DATA, 0, 1, pb.grpc_frame(pb.message(f1=pb.message(f1=b"k"))) * 1000)
        before = self.vigil.anonymous_kb()
        for _ in range(200):
            if not c.send(block):
                break
        windows = sum(int.from_bytes(payload, "big") for kind, _, stream, payload in c.frames()
                      if kind == h2.WINDOW and stream == 1)
        self.assertLess(windows, 200_000)  # of more than two million bytes
        self.assertLess(self.vigil.anonymous_kb() - before, 64 << 10)
        self.check_serves()

    def test_progress_interval_has_a_minimum(self):
        vigil = self.begin("--watch-progress-notify-interval", "1ms")
        self.assert_logged(vigil, "progress notify interval to its minimum")
        client = Client(vigil.port)
        self.addCleanup(client.close)
        begin = time.monotonic()
        answers = client.channel.stream_stream(WATCH)(
            iter([pb.message(f1=pb.message(f1=b"k", f4=1))]), timeout=60)
        next(answers)
        for _ in range(5):
            next(answers)
        self.assertGreater(time.monotonic() - begin, 0.4)
        answers.cancel()

    def test_silent_client_is_pinged_and_then_closed(self):
        self.begin("--grpc-keepalive-interval", "500ms", "--grpc-keepalive-timeout", "500ms")
        c = self.connect(timeout=30)
        c.send(h2.frame(h2.SETTINGS, h2.ACK))
        begin = time.monotonic()
        pinged = any([kind == h2.PING for kind, _, _, _ in c.frames()])
        self.assertTrue(pinged)
        self.assertTrue(c.closed)
        self.assertLess(time.monotonic() - begin, 20)

    def test_client_that_answers_pings_stays_connected(self):
        self.begin("--grpc-keepalive-interval", "300ms", "--grpc-keepalive-timeout", "20s")
        c = self.connect(timeout=30)
        pings = 0
        for kind, flags, _, payload in c.frames():
            if kind == h2.PING and not flags & h2.ACK:
                c.send(h2.frame(h2.PING, h2.ACK, 0, payload))
                pings += 1
                if pings == 5:
                    break
        self.assertEqual(pings, 5)

    def test_shutdown_does_not_wait_forever(self):
        vigil = self.begin("--shutdown-timeout", "1s")
        c = self.connect(h2.PREFACE + h2.settings(window=0))
        client = Client(vigil.port)
        client.put(b"k", bytes(100_000))
        client.close()
        c.send(h2.request(1, pb.grpc_frame(pb.range_of(b"k", b"l"))))
        time.sleep(0.3)
        begin = time.monotonic()
        os.kill(vigil.pid, signal.SIGTERM)
        vigil.wait(30)
        self.assertLess(time.monotonic() - begin, 20)


if __name__ == "__main__":
    unittest.main()
