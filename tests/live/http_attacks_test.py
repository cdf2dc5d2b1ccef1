#!/usr/bin/python3
"""Malicious HTTP clients: smuggled requests, slow requests, floods and injected headers. They get a clear answer or a closed
connection, and other clients are served meanwhile."""
import socket
import time
import unittest

import hpack

import h2raw as h2
from attacks_test import Attack
from server import only_vigil

HIDDEN = b"GET /version HTTP/1.1\r\nHost: localhost\r\n\r\n"
SECRET = b"etcdserver"  # only in the answer to /version

# Another parser might read each of these in a way that makes HIDDEN a request.
AMBIGUOUS = (
    b"Content-Length: 5\r\nContent-Length: 0\r\n\r\n",
    b"Content-Length: 0\r\nContent-Length: 0\r\n\r\n",
    b"Content-Length: 5, 5\r\n\r\nhello",
    b"Content-Length: +5\r\n\r\nhello",
    b"Content-Length: 0x5\r\n\r\nhello",
    b"Content-Length: 5 \t5\r\n\r\nhello",
    b"Content-Length : 5\r\n\r\nhello",
    b"Content-Length:\r\n 5\r\n\r\nhello",
    b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
    b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n",
    b"Transfer-Encoding: identity\r\n\r\n",
    b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
    b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
    b"Transfer-Encoding:\x0bchunked\r\n\r\n0\r\n\r\n",
    b"Transfer-Encoding: chunked\r\n\r\n+0\r\n\r\n",
    b"Transfer-Encoding: chunked\r\n\r\n0x0\r\n\r\n",
    b"Transfer-Encoding: chunked\r\n\r\n0;\nx=y\r\n\r\n",
    b"Transfer-Encoding: chunked\r\n\r\n5\r\nhelloX0\r\n\r\n",
    b"Transfer-Encoding: chunked\r\n\r\n100000000\r\n\r\n",
    b"X: y\n\r\n",
    b"X: y\rZ: z\r\n\r\n",
    b"X\0: y\r\n\r\n",
    b"X: y\0\r\n\r\n",
    b" X: y\r\n\r\n",
    b": y\r\n\r\n",
    b"Host: y\r\n\r\n",
    b"X y\r\n\r\n",
)


def until_closed(s):
    answer = b""
    try:
        while part := s.recv(65536):
            answer += part
    except ConnectionError:
        pass
    return answer


class HttpAttack(Attack):
    def exchange(self, *parts):
        with socket.create_connection(("127.0.0.1", self.port), 10) as s:
            for part in parts:
                s.sendall(part)
            return until_closed(s)

    def block(self, path="/health", method="GET", extra=()):
        encoder = hpack.Encoder()
        encoder.header_table_size = 0
        return encoder.encode([(":method", method), (":scheme", "http"), (":path", path),
                               (":authority", "localhost"), *extra])

    def get(self, stream, path="/health", **options):
        return h2.frame(h2.HEADERS, h2.END_HEADERS | h2.END_STREAM, stream,
                        self.block(path, **options))


class Smuggling(HttpAttack):
    @only_vigil  # Go accepts some of these and reads them correctly
    def test_ambiguous_framing_smuggles_no_request(self):
        for fields in AMBIGUOUS:
            for line in (b"POST /health HTTP/1.1\r\nHost: localhost\r\n", b"GET /health HTTP/1.1\r\nHost: localhost\r\n"):
                with self.subTest(fields=fields, line=line):
                    answer = self.exchange(line + fields + HIDDEN)
                    self.assertNotIn(SECRET, answer)
                    self.assertRegex(answer, rb"^HTTP/1\.1 (400|413|501) ")
                    self.assertIn(b"Connection: close", answer)

    def test_http_1_0_smuggles_no_request(self):
        answer = self.exchange(b"POST /health HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + HIDDEN)
        self.assertNotIn(SECRET, answer)

    def test_bodies_are_not_read_as_requests(self):
        body = HIDDEN * 3
        for framed in (b"Content-Length: %d\r\n\r\n" % len(body) + body,
                       b"Transfer-Encoding: chunked\r\n\r\n%x\r\n" % len(body) + body + b"\r\n0\r\n\r\n"):
            answer = self.exchange(b"POST /nothing HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" + framed)
            self.assertTrue(answer.startswith(b"HTTP/1.1 404"))
            self.assertNotIn(SECRET, answer)

    @only_vigil
    def test_connection_headers_are_refused_in_http2(self):
        for extra in (("transfer-encoding", "chunked"), ("connection", "close"), ("upgrade", "h2c"),
                      ("keep-alive", "1"), ("te", "gzip"), ("x", "y\r\nz: w"), ("x\n", "y"),
                      ("X", "y"), ("content-length", "5"), ("content-length", "+0"), (":path", "/x"),
                      ("x y", "z"), ("", "z")):
            with self.subTest(extra=extra):
                c = self.connect()
                c.send(self.get(1, "/version", extra=[extra]))
                frames = []
                for kind, _, stream, payload in c.frames():
                    frames.append(kind)
                    if kind in (h2.RST_STREAM, h2.GOAWAY):
                        break
                self.assertNotIn(h2.HEADERS, frames)

    @only_vigil
    def test_paths_cannot_inject_headers_into_an_answer(self):
        for path in ("//a%0d%0aX-Bad:%20y", "//a%0aX-Bad:y", "//a?x=%0d%0aX-Bad:y"):
            answer = self.exchange(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
            self.assertTrue(answer.startswith(b"HTTP/1.1 307"))
            self.assertNotIn(b"\nX-Bad", answer)
        c = self.connect()
        c.send(self.get(1, "//<script>&'\""))
        body = b"".join(p for kind, _, _, p in self.some(c, h2.DATA))
        self.assertNotIn(b"<script>", body)

    def some(self, c, last):
        """Frames up to the first of that kind."""
        for frame in c.frames():
            yield frame
            if frame[0] == last:
                return


class Slow(HttpAttack):
    args = ("--http1-header-timeout", "700ms", "--response-stall-timeout", "700ms",
            "--message-timeout", "700ms")

    @only_vigil
    def test_slow_head_and_slow_body_time_out(self):
        for sent, answered in ((b"GET /health HTTP/1.1\r\nHost: localhost\r\n", b"HTTP/1.1 408"),
                               (b"POST /health HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nx", b""),
                               (b"POST /health HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhe", b"")):
            with self.subTest(sent=sent):
                begin = time.monotonic()
                self.assertTrue(self.exchange(sent).startswith(answered))
                self.assertLess(time.monotonic() - begin, 7)
        self.check_unharmed()

    @only_vigil
    def test_unfinished_body_of_a_stream_times_out(self):
        c = self.connect()
        c.send(h2.frame(h2.HEADERS, h2.END_HEADERS, 1, self.block("/v3/kv/put", method="POST")) +
               h2.frame(h2.DATA, 0, 1, b"{"))
        kinds = []
        for kind, *_ in c.frames():
            kinds.append(kind)
            if kind == h2.RST_STREAM:
                break
        self.assertEqual(kinds[-1], h2.RST_STREAM)

    @only_vigil
    def test_unread_answer_times_out(self):
        c = self.connect(h2.PREFACE + h2.settings(window=10))
        c.send(self.get(1, "/metrics") + self.get(3, "/version"))
        c.socket.settimeout(30)
        left = {1, 3}
        for kind, _, stream, _ in c.frames():
            left -= {stream} if kind == h2.RST_STREAM else set()
            if not left:
                break
        self.assertEqual(left, set())
        self.check_unharmed()


class Floods(HttpAttack):
    @only_vigil
    def test_rapid_reset_of_http_requests(self):
        for path in ("/health", "/metrics", "/v3/watch", "/nothing"):
            with self.subTest(path=path):
                c = self.connect()
                block = self.block(path)
                for n in range(40):
                    sent = b""
                    for i in range(250):
                        stream = 2 * (250 * n + i) + 1
                        sent += h2.frame(h2.HEADERS, h2.END_HEADERS | h2.END_STREAM, stream, block)
                        sent += h2.frame(h2.RST_STREAM, 0, stream, b"\0\0\0\x08")
                    if not c.send(sent):
                        break
                c.socket.settimeout(30)
                last = None
                for kind, _, _, payload in c.frames():
                    last = payload if kind == h2.GOAWAY else last
                self.assertIsNotNone(last)
                self.assertEqual(last[4:8], b"\0\0\0\x0b", "ENHANCE_YOUR_CALM")
        self.check_unharmed()

    @only_vigil
    def test_many_requests_with_unread_answers(self):
        c = self.connect(h2.PREFACE + h2.settings(window=0))
        block = self.block("/metrics")
        for n in range(20):
            c.send(b"".join(h2.frame(h2.HEADERS, h2.END_HEADERS | h2.END_STREAM,
                                     2 * (100 * n + i) + 1, block) for i in range(100)))
        time.sleep(0.5)
        self.check_unharmed()
        with socket.create_connection(("127.0.0.1", self.port), 10) as s:
            s.settimeout(1)
            try:
                s.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n" * 20000)
            except OSError:
                pass
            self.check_unharmed()

    @only_vigil
    def test_many_unfinished_bodies(self):
        self.begin("bounded", "--max-client-bytes", "128M")
        c = self.connect()
        block = self.block("/v3/kv/put", method="POST")
        piece = b" " * 16000
        refused = 0
        for stream in range(1, 12001, 2):
            if stream % 200 == 199:
                c.send(self.get(stream))
            elif not c.send(h2.frame(h2.HEADERS, h2.END_HEADERS, stream, block) +
                            h2.frame(h2.DATA, 0, stream, piece)):
                break
            if stream % 200 == 199:
                for kind, _, answered, _ in c.frames():
                    refused += kind == h2.RST_STREAM
                    if kind in (h2.DATA, h2.RST_STREAM) and answered == stream:
                        break
        self.assertGreater(refused, 500, "a connection may use less than half of the limit")
        self.check_unharmed(growth_kb=160 << 10)

    def test_many_fields(self):
        many = b"".join(b"x-%d: y\r\n" % i for i in range(101))
        answer = self.exchange(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" + many + b"\r\n")
        self.assertRegex(answer, rb"^HTTP/1\.1 (431|200) ")  # etcd counts bytes only
        self.check_unharmed()

    @only_vigil
    def test_many_fields_in_http2(self):
        c = self.connect()
        c.send(self.get(1, extra=[(f"x-{i}", "y") for i in range(130)]) + self.get(3))
        kinds = {}
        for kind, _, stream, _ in c.frames():
            kinds.setdefault(stream, []).append(kind)
            if stream == 3 and kind == h2.DATA:
                break
        self.assertEqual(kinds[1], [h2.HEADERS, h2.RST_STREAM])  # 431
        self.check_unharmed()

    @only_vigil
    def test_long_paths_and_queries(self):
        for target in (b"/" + b"a" * 60_000, b"//" + b"a" * 3000, b"//" + b"%41" * 5000,
                       b"/health?" + b"exclude=x&" * 5000, b"/" + b"../" * 15_000, b"/" + b"%2f" * 15_000):
            answer = self.exchange(b"GET " + target + b" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            self.assertRegex(answer, rb"^HTTP/1\.1 (200|307|404) ")
        self.check_unharmed()


if __name__ == "__main__":
    unittest.main()
