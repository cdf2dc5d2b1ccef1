#!/usr/bin/python3
"""Stopping the server: which requests are answered, how watches end, how long it takes, and what is logged."""
import json
import os
import signal
import socket
import threading
import time
import unittest

import grpc
import hpack

import h2raw
import protobuf as pb
from client import Client
from server import LiveTest, only_vigil

WATCH = "/etcdserverpb.Watch/Watch"
PATIENT = ["--shutdown-timeout=60s"]  # so long that waiting for a client would be noticed on any machine


@only_vigil
class Shutdown(LiveTest):
    def stopped(self, server):
        begin = time.monotonic()
        os.kill(server.pid, signal.SIGTERM)
        code = server.wait()
        return code, time.monotonic() - begin

    def test_idle_clients_do_not_delay_a_stop(self):
        server = self.server(args=PATIENT).start()
        clients = [Client(server.port) for _ in range(5)]
        for client in clients:
            self.addCleanup(client.close)
            client.put(b"a", b"1")
        with socket.create_connection(("127.0.0.1", server.port)) as silent:  # sends nothing
            code, seconds = self.stopped(server)
            silent.settimeout(30)
            self.assertEqual(silent.recv(10), b"")
        self.assertEqual(code, 0)
        self.assertLess(seconds, 20)

    def test_watches_end_with_unavailable(self):
        server = self.server().start()
        client = Client(server.port)
        self.addCleanup(client.close)
        create = pb.field(1, pb.field(1, b"a"))
        release = threading.Event()

        def requests():
            yield create
            release.wait(20)

        call = client.channel.stream_stream(WATCH)(requests(), timeout=20)
        next(call)  # created
        os.kill(server.pid, signal.SIGTERM)
        with self.assertRaises(grpc.RpcError) as failed:
            next(call)
        release.set()
        self.assertEqual(failed.exception.code(), grpc.StatusCode.UNAVAILABLE)
        self.assertIn("etcdserver: server stopped", failed.exception.details())
        self.assertEqual(server.wait(), 0)

    def test_http_watches_end_properly(self):
        server = self.server(args=PATIENT).start()
        body = b'{"create_request": {"key": "YQ=="}}'
        with socket.create_connection(("127.0.0.1", server.port), 10) as old, \
                h2raw.Connection(server.port) as new:
            old.sendall(b"POST /v3/watch HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            encoder = hpack.Encoder()
            encoder.header_table_size = 0
            block = encoder.encode([(":method", "POST"), (":scheme", "http"), (":path", "/v3/watch"),
                                    (":authority", "localhost")])
            new.send(h2raw.frame(h2raw.HEADERS, h2raw.END_HEADERS, 1, block) +
                     h2raw.frame(h2raw.DATA, h2raw.END_STREAM, 1, body))
            text = b""
            while b"created" not in text:
                text += old.recv(4096)
            for kind, _, stream, payload in new.frames():
                if kind == h2raw.DATA and b"created" in payload:
                    break
            code, seconds = self.stopped(server)
            while part := old.recv(4096):
                text += part
            self.assertTrue(text.endswith(b"\r\n0\r\n\r\n"), text)  # complete, so that clients do not report an error
            frames = list(new.frames())
        self.assertTrue(any(kind == h2raw.GOAWAY for kind, *_ in frames))
        self.assertTrue(any(stream == 1 and flags & h2raw.END_STREAM for _, flags, stream, _ in frames))
        self.assertEqual(code, 0)
        self.assertLess(seconds, 20)

    def test_stop_is_logged_in_etcds_words(self):
        server = self.server().start()
        self.stopped(server)
        lines = [json.loads(line) for line in server.lines]
        messages = [line["msg"] for line in lines]
        signalled = lines[messages.index("received signal; shutting down")]
        self.assertEqual(signalled["signal"], "terminated")
        self.assertLess(messages.index("received signal; shutting down"), messages.index("closing etcd server"))
        closed = lines[messages.index("closed etcd server")]
        self.assertEqual((closed["name"], closed["data-dir"]), ("default", server.directory))

    def test_signals_end_a_server_whose_parent_ignored_them(self):
        """A shell without job control ignores SIGINT in what it starts in the background; etcd ends nevertheless."""
        for number in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(signal=number):
                server = self.server(self.scratch / f"data-{number}",
                                     limits=lambda number=number: signal.signal(number, signal.SIG_IGN)).start()
                os.kill(server.pid, number)
                self.assertEqual(server.wait(30), 0)

    def test_second_signal_ends_the_server_at_once(self):
        server = self.server(args=["--shutdown-timeout=60s"]).start()
        with socket.create_connection(("127.0.0.1", server.port)) as held:
            # An incomplete request delays the stop.
            held.sendall(b"POST /v3/kv/range HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{")
            time.sleep(0.2)
            os.kill(server.pid, signal.SIGTERM)
            time.sleep(0.3)
            if server.alive():
                os.kill(server.pid, signal.SIGINT)
            self.assertIn(server.wait(30), (-signal.SIGINT, 0))


if __name__ == "__main__":
    unittest.main()
