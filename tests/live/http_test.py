#!/usr/bin/python3
"""HTTP/1.1 and HTTP/2 on one port and on Unix sockets, by curl, nghttp and h2load."""
import json
import os
import re
import socket
import subprocess
import unittest

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
        request = b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n"
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
            s.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
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

    def test_beside_tcp(self):
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
