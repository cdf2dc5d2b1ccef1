#!/usr/bin/python3
"""HTTP/1.1 and HTTP/2 on one port and on Unix sockets, with curl, nghttp and h2load."""
import gzip
import json
import os
import re
import socket
import subprocess
import unittest

import hpack

import h2raw
import protobuf as pb
from server import LiveTest, only_vigil


def run(*command, code=0, **options):
    done = subprocess.run(command, capture_output=True, timeout=60, **options)
    if done.returncode != code:
        raise AssertionError(f"{command} gave {done.returncode}: {done.stdout}{done.stderr}")
    return done.stdout.decode(errors="replace")


class Http1(LiveTest):
    def setUp(self):
        super().setUp()
        self.vigil = self.serving()

    def curl(self, path, *args):
        return run("curl", "-sS", "--http1.1", *args, self.vigil.url + path)

    def test_health(self):
        self.assertEqual(json.loads(self.curl("/health")), {"health": "true", "reason": ""})

    def test_version(self):
        version = json.loads(self.curl("/version"))
        self.assertRegex(version["etcdserver"], r"^3\.7\.\d+$")
        self.assertEqual(version["etcdcluster"], "3.7.0")

    def test_metrics_are_compressed_on_request(self):
        plain = self.curl("/metrics")
        head = self.curl("/metrics", "-H", "Accept-Encoding: gzip", "-o", str(self.scratch / "z"),
                         "-D", "-")
        self.assertIn("Content-Encoding: gzip", head)
        packed = (self.scratch / "z").read_bytes()
        self.assertLess(len(packed), len(plain) / 3)
        self.assertIn(b"\ngrpc_server_handled_total", gzip.decompress(packed))
        self.assertIn("\ngrpc_server_handled_total", self.curl("/metrics", "--compressed"))

    def test_status_codes(self):
        code = ("-o", "/dev/null", "-w", "%{http_code}")
        self.assertEqual(self.curl("/health", *code), "200")
        self.assertEqual(self.curl("/nothing", *code), "404")
        self.assertEqual(self.curl("/health", "-d", "x", *code), "405")

    def test_many_requests_on_one_connection(self):
        urls = [self.vigil.url + "/health"] * 50
        out = run("curl", "-sS", "--http1.1", "-w", "%{num_connects}\n", *urls)
        self.assertEqual(sum(int(n) for n in re.findall(r"}\s*(\d)$", out, re.M)), 1)

    def test_pipelined_and_split_requests(self):
        request = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
        with socket.create_connection(("127.0.0.1", self.vigil.port), 10) as s:
            s.sendall(request * 3)
            answers = b""
            while answers.count(b'"health"') < 3:
                answers += s.recv(65536)
            for byte in request:
                s.sendall(bytes([byte]))
            self.assertTrue(s.recv(65536).startswith(b"HTTP/1.1 200"))

    def test_connection_close_is_honoured(self):
        with socket.create_connection(("127.0.0.1", self.vigil.port), 10) as s:
            s.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            while s.recv(65536):
                pass

    def test_http_1_0(self):
        with socket.create_connection(("127.0.0.1", self.vigil.port), 10) as s:
            s.sendall(b"GET /health HTTP/1.0\r\n\r\n")
            answer = b""
            while part := s.recv(65536):
                answer += part
            self.assertIn(b"200 OK", answer)


class Http2(LiveTest):
    def setUp(self):
        super().setUp()
        self.vigil = self.serving()
        self.body = self.scratch / "request"
        self.body.write_bytes(pb.grpc_frame(pb.range_of(b"a")))
        self.headers = ("-H", "content-type: application/grpc", "-H", "te: trailers")

    def test_nghttp_sees_trailers(self):
        out = run("nghttp", "-nv", "-d", str(self.body), *self.headers,
                  self.vigil.url + "/etcdserverpb.KV/Range")
        self.assertIn(":status: 200", out)
        self.assertIn("content-type: application/grpc", out)
        self.assertIn("grpc-status: 0", out)

    def test_h2load_gets_all_answers(self):
        out = run("h2load", "-n", "5000", "-c", "20", "-m", "50", "-d", str(self.body), *self.headers,
                  self.vigil.url + "/etcdserverpb.KV/Range")
        self.assertIn("5000 succeeded, 0 failed, 0 errored", out)


class HttpOverHttp2(LiveTest):
    """Requests other than gRPC get the same answers over HTTP/2 as over HTTP/1.1. (etcd does this with TLS only.)"""

    def setUp(self):
        super().setUp()
        self.vigil = self.serving()

    def curl(self, path, *args):
        return run("curl", "-sS", "--http2-prior-knowledge", *args, self.vigil.url + path)

    @only_vigil
    def test_same_answers_as_http1(self):
        shown = ("-i", "-X")
        for method in ("GET", "POST", "OPTIONS", "DELETE"):
            for path in ("/health", "/livez?verbose", "/readyz/nothing", "/version", "/nothing",
                         "//health", "/h%65alth", "/v3/kv/range", "/v3/nothing"):
                with self.subTest(method=method, path=path):
                    answers = [run("curl", "-sS", "--path-as-is", version, *shown, method,
                                   self.vigil.url + path)
                               for version in ("--http2-prior-knowledge", "--http1.1")]
                    (first, *ours), (_, *theirs) = (a.lower().replace("\r", "").split("\n")
                                                    for a in answers)
                    self.assertTrue(first.startswith("http/2 "), first)
                    dated = [[line for line in lines if not line.startswith("date: ")]
                             for lines in (ours, theirs)]
                    self.assertEqual(len(dated[0]), len(ours) - 1)
                    self.assertEqual(*map(sorted, dated))

    @only_vigil
    def test_head_has_no_body(self):
        out = self.curl("/metrics", "-I")
        self.assertIn("HTTP/2 200", out)
        self.assertNotIn("grpc_server", out)

    @only_vigil
    def test_post_with_a_body(self):
        self.assertIn("header", self.curl("/v3/kv/put", "-d", '{"key": "YQ==", "value": "Yg=="}'))
        self.assertIn('"Yg=="', self.curl("/v3/kv/range", "-d", '{"key": "YQ=="}'))
        body = self.scratch / "body"
        body.write_bytes(b" " * (5 << 20))
        out = run("nghttp", "-nv", "-d", str(body), self.vigil.url + "/v3/kv/put")
        self.assertIn(":status: 413", out)  # long before the last byte was sent
        self.assertIn("error_code=NO_ERROR", out)

    @only_vigil
    def test_nghttp_many_at_once(self):
        out = run("nghttp", "-nvm", "200", self.vigil.url + "/version")
        self.assertEqual(out.count(":status: 200"), 200)
        self.assertEqual(out.count("content-type: application/json"), 200)

    @only_vigil
    def test_h2load_gets_all_answers(self):
        for path in ("/health", "/metrics"):
            out = run("h2load", "-n", "1000", "-c", "10", "-m", "50", self.vigil.url + path)
            self.assertIn("1000 succeeded, 0 failed, 0 errored", out)
        out = run("h2load", "--h1", "-n", "1000", "-c", "10", self.vigil.url + "/health")
        self.assertIn("1000 succeeded, 0 failed, 0 errored", out)

    @only_vigil
    def test_many_watches_and_grpc_on_one_connection(self):
        with h2raw.Connection(self.vigil.port) as c:
            c.send(h2raw.frame(h2raw.WINDOW, payload=(1 << 24).to_bytes(4, "big")))
            encoder = hpack.Encoder()
            encoder.header_table_size = 0
            block = encoder.encode([(":method", "POST"), (":scheme", "http"), (":path", "/v3/watch"),
                                    (":authority", "localhost")])
            body = b'{"create_request": {"key": "YQ=="}}'
            watches = range(1, 401, 2)
            for stream in watches:
                c.send(h2raw.frame(h2raw.HEADERS, h2raw.END_HEADERS, stream, block) +
                       h2raw.frame(h2raw.DATA, h2raw.END_STREAM, stream, body))
            # Streams have no order: a put that is sent now may be executed before a watch begins.
            texts = dict.fromkeys(watches, b"")
            self.read_lines(c, texts, 1)
            c.send(h2raw.request(401, pb.grpc_frame(pb.put(b"a", b"1")), "/etcdserverpb.KV/Put"))
            self.read_lines(c, texts, 2)
            for text in texts.values():
                first, second = map(json.loads, text.strip().split(b"\n"))
                self.assertTrue(first["result"]["created"])
                self.assertEqual(second["result"]["events"][0]["kv"]["value"], "MQ==")
            for stream in watches:
                c.send(h2raw.frame(h2raw.RST_STREAM, 0, stream, b"\0\0\0\x08"))
            c.send(h2raw.frame(h2raw.PING, payload=b"12345678"))
            self.assertTrue(any(kind == h2raw.PING for kind, *_ in c.frames()))
        self.eventually(lambda: "etcd_debugging_mvcc_watcher_total 0\n" in self.curl("/metrics"))

    def read_lines(self, connection, texts, count):
        for kind, _, stream, payload in connection.frames():
            if kind == h2raw.DATA and stream in texts:
                texts[stream] += payload
            if all(text.count(b"\n") == count for text in texts.values()):
                return
        self.fail(f"not {count} lines on each stream")


class UnixSockets(LiveTest):
    def test_etcdctl_and_curl(self):
        path = self.scratch / "vigil.sock"
        vigil = self.serving(listen=f"unix://{path}")
        env = dict(os.environ, ETCDCTL_API="3")
        ctl = ("etcdctl", "--endpoints", f"unix://{path}")
        self.assertEqual(run(*ctl, "put", "a", "1", env=env), "OK\n")
        self.assertEqual(run(*ctl, "get", "a", env=env), "a\n1\n")
        health = run("curl", "-sS", "--unix-socket", str(path), "http://x/health")
        self.assertEqual(json.loads(health)["health"], "true")
        vigil.stop()

    def test_unix_socket_and_tcp_together(self):
        path = self.scratch / "vigil.sock"
        vigil = self.server()
        vigil.listen = f"{vigil.url},unix://{path}"
        vigil.start()
        for where in ([vigil.url + "/health"], ["--unix-socket", str(path), "http://x/health"]):
            self.assertIn("true", run("curl", "-sS", *where))
        vigil.stop()

    @only_vigil
    def test_socket_left_by_a_killed_server_is_replaced(self):
        path = self.scratch / "vigil.sock"
        vigil = self.serving(listen=f"unix://{path}")
        vigil.kill()
        vigil.start()
        self.assertIn("true", run("curl", "-sS", "--unix-socket", str(path), "http://x/health"))


if __name__ == "__main__":
    unittest.main()
