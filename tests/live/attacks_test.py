#!/usr/bin/python3
"""Malicious clients: they get a clear error or a closed connection, never cause a crash or growing memory, and other
clients are served meanwhile."""
import os
import random
import socket
import threading
import time
import unittest

import grpc
import hpack

import h2raw as h2
import protobuf as pb
from server import LiveTest, only_vigil

GROWTH_KB_MAX = 48 << 10
KV = "/etcdserverpb.KV/"


class Attack(LiveTest):
    args = ()

    def setUp(self):
        super().setUp()
        self.random = random.Random(7)
        self.begin("data", *self.args)

    def begin(self, directory, *args):
        """Starts the server that the test attacks."""
        # A small quarantine of the address sanitizer, so that freed memory is soon reused and growth is real.
        asan = os.environ.get("ASAN_OPTIONS", "") + ":quarantine_size_mb=1:malloc_context_size=2"
        self.vigil = self.serving(self.scratch / directory, args=args, env={"ASAN_OPTIONS": asan})
        self.port = self.vigil.port
        self.channel = grpc.insecure_channel(f"127.0.0.1:{self.port}")
        self.addCleanup(self.channel.close)
        self.put(b"before", b"1")
        self.memory = self.vigil.anonymous_kb()

    def put(self, key, value):
        self.channel.unary_unary(KV + "Put")(pb.put(key, value), timeout=30)

    def check_unharmed(self, growth_kb=GROWTH_KB_MAX):
        """The server answers old and new connections quickly, and its memory has not grown."""
        self.assertTrue(self.vigil.alive(), self.vigil.log)
        begin = time.monotonic()
        self.put(b"after", b"1")
        with grpc.insecure_channel(f"127.0.0.1:{self.port}",
                                   options=[("grpc.use_local_subchannel_pool", 1)]) as fresh:
            fresh.unary_unary(KV + "Range")(pb.range_of(b"before"), timeout=30)
        self.assertLess(time.monotonic() - begin, 20)
        grown = self.vigil.anonymous_kb() - self.memory
        self.assertLess(grown, growth_kb, "the server's memory has grown by this many KiB")

    def connect(self, *args, **options):
        c = h2.Connection(self.port, *args, **options)
        self.addCleanup(c.close)
        return c

    def repeat(self, c, block, times):
        """Sends a block repeatedly without reading, until the server closes the connection."""
        c.socket.settimeout(1)
        for n in range(times):
            if not c.send(block):
                return n
        return times


class Garbage(Attack):
    def raw(self, data):
        with socket.create_connection(("127.0.0.1", self.port), 10) as s:
            s.settimeout(0.2)
            try:
                s.sendall(data)
                s.recv(4096)
            except OSError:
                pass

    def test_random_bytes(self):
        for _ in range(60):
            self.raw(self.random.randbytes(self.random.randrange(1, 4000)))
        self.check_unharmed()

    def test_random_bytes_after_the_preface(self):
        for _ in range(60):
            self.raw(h2.PREFACE + h2.settings() + self.random.randbytes(self.random.randrange(1, 4000)))
        self.check_unharmed()

    def test_random_frames(self):
        for _ in range(60):
            frames = b"".join(
                h2.frame(self.random.randrange(12), self.random.randrange(256), self.random.randrange(8),
                         self.random.randbytes(self.random.randrange(60)))
                for _ in range(20))
            self.raw(h2.PREFACE + h2.settings() + frames)
        self.check_unharmed()

    def test_changed_bytes_in_a_good_request(self):
        good = bytearray(h2.PREFACE + h2.settings() +
                         h2.request(1, pb.grpc_frame(pb.range_of(b"a")))[:])
        for _ in range(150):
            bad = bytearray(good)
            for _ in range(self.random.randrange(1, 4)):
                bad[self.random.randrange(24, len(bad))] = self.random.randrange(256)
            self.raw(bytes(bad))
        self.check_unharmed()

    def test_connection_closed_in_the_middle_of_a_request(self):
        good = h2.PREFACE + h2.settings() + h2.request(1, pb.grpc_frame(pb.put(b"a", b"1")), KV + "Put")
        for n in range(0, len(good), 3):
            with socket.create_connection(("127.0.0.1", self.port), 10) as s:
                s.sendall(good[:n])
        self.check_unharmed()

    def test_http1_garbage(self):
        for request in (b"GET\r\n\r\n", b"GET /health\r\n\r\n", b"\r\n" * 5000, b"GET / HTTP/9.9\r\n\r\n",
                        b"GET /health HTTP/1.1\r\nHost x\r\n\r\n", b"GET /" + b"a" * 200_000,
                        b"GET /health HTTP/1.1\r\n" + b"a: b\r\n" * 50_000,
                        b"POST /health HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
                        b"POST /health HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n",
                        b"POST /health HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n",
                        b"GET /health HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n"):
            self.raw(request)
        self.check_unharmed()


class Floods(Attack):
    def test_rapid_reset(self):
        c = self.connect()
        headers = h2.request_headers()
        stream = 1
        for _ in range(400):
            block = b""
            for _ in range(250):
                block += h2.frame(h2.HEADERS, h2.END_HEADERS, stream, headers)
                block += h2.frame(h2.RST_STREAM, 0, stream, b"\0\0\0\x08")
                stream += 2
            if not c.send(block):
                break
        self.check_unharmed()

    def test_rapid_reset_of_whole_requests(self):
        c = self.connect()
        headers = h2.request_headers()
        body = pb.grpc_frame(pb.range_of(b"\0", b"\0"))
        stream = 1
        for _ in range(200):
            block = b""
            for _ in range(100):
                block += h2.frame(h2.HEADERS, h2.END_HEADERS, stream, headers)
                block += h2.frame(h2.DATA, h2.END_STREAM, stream, body)
                block += h2.frame(h2.RST_STREAM, 0, stream, b"\0\0\0\x08")
                stream += 2
            if not c.send(block):
                break
        self.check_unharmed()

    def test_ping_flood_that_never_reads(self):
        c = self.connect(receive_buffer=4096)
        self.repeat(c, h2.frame(h2.PING, payload=b"12345678") * 1000, 400)
        self.check_unharmed()

    def test_settings_flood_that_never_reads(self):
        c = self.connect(receive_buffer=4096)
        self.repeat(c, h2.settings(window=65535) * 1000, 400)
        self.check_unharmed()

    def test_empty_data_flood(self):
        c = self.connect()
        c.send(h2.frame(h2.HEADERS, h2.END_HEADERS, 1, h2.request_headers()))
        self.repeat(c, h2.frame(h2.DATA, 0, 1) * 1000, 400)
        self.check_unharmed()

    def test_window_update_flood(self):
        c = self.connect()
        self.repeat(c, h2.frame(h2.WINDOW, 0, 0, b"\0\0\0\1") * 1000, 400)
        self.check_unharmed()

    def test_priority_flood(self):
        c = self.connect()
        for n in range(200):
            block = b"".join(h2.frame(h2.PRIORITY, 0, 2 * (n * 500 + i) + 1, b"\0\0\0\0\x10")
                             for i in range(500))
            if not c.send(block):
                break
        self.check_unharmed()

    def test_continuation_flood(self):
        c = self.connect()
        c.send(h2.frame(h2.HEADERS, 0, 1, h2.request_headers()))
        piece = hpack.Encoder().encode([("x-%d" % i, "y" * 50) for i in range(100)])
        self.repeat(c, h2.frame(h2.CONTINUATION, 0, 1, piece) * 10, 2000)
        self.check_unharmed()

    def test_empty_continuation_flood(self):
        c = self.connect()
        c.send(h2.frame(h2.HEADERS, 0, 1, h2.request_headers()))
        self.repeat(c, h2.frame(h2.CONTINUATION, 0, 1) * 1000, 400)
        self.check_unharmed()

    def test_header_bomb(self):
        # One large entry in the dynamic table, then one byte for each further copy of it.
        encoder = hpack.Encoder()
        bomb = encoder.encode([("x", "y" * 3900)], huffman=False)
        copies = b"\xbe" * 15_000
        for _ in range(20):
            c = self.connect()
            block = h2.request_headers() + bomb
            c.send(h2.frame(h2.HEADERS, 0, 1, block) + h2.frame(h2.CONTINUATION, h2.END_HEADERS, 1, copies))
        time.sleep(0.5)
        self.check_unharmed()

    def test_ten_thousand_open_streams(self):
        c = self.connect()
        headers = h2.request_headers()
        for n in range(0, 20_000, 100):
            block = b"".join(h2.frame(h2.HEADERS, h2.END_HEADERS, 2 * (n + i) + 1, headers)
                             for i in range(100))
            if not c.send(block):
                break
        time.sleep(0.5)
        self.check_unharmed(growth_kb=160 << 10)

    @only_vigil
    def test_dropping_a_connection_with_many_streams_is_cheap(self):
        c = self.connect()
        headers = h2.request_headers()
        for n in range(0, 30_000, 100):
            c.send(b"".join(h2.frame(h2.HEADERS, h2.END_HEADERS, 2 * (n + i) + 1, headers)
                            for i in range(100)))
        c.send(h2.frame(h2.PING, payload=b"all read"))
        self.assertTrue(any(kind == h2.PING for kind, *_ in c.frames()))
        before, open_before = self.vigil.cpu_seconds(), self.vigil.descriptors()
        c.close()
        self.eventually(lambda: self.vigil.descriptors() < open_before)
        self.check_unharmed(growth_kb=256 << 10)  # ten times what it is without a sanitizer
        self.assertLess(self.vigil.cpu_seconds() - before, 0.7, "seconds of CPU")


class BadFrames(Attack):
    def ends(self, frames):
        """Whether the server sends GOAWAY or closes the connection."""
        c = self.connect(timeout=20)
        c.send(frames)
        return any(kind == h2.GOAWAY for kind, _, _, _ in c.frames()) or c.closed

    def test_protocol_errors_end_the_connection(self):
        headers = h2.request_headers()
        for name, frames in {
            "data on stream 0": h2.frame(h2.DATA, 0, 0, b"x"),
            "headers on an even stream": h2.frame(h2.HEADERS, h2.END_HEADERS, 2, headers),
            "settings of a wrong length": h2.frame(h2.SETTINGS, 0, 0, b"12345"),
            "frame beyond the agreed size": h2.frame(h2.DATA, 0, 1, b"x" * 20_000),
            "broken header compression": h2.frame(h2.HEADERS, h2.END_HEADERS, 1, b"\xff\xff\xff\xff\xff\xff"),
            "continuation without headers": h2.frame(h2.CONTINUATION, h2.END_HEADERS, 1, headers),
            "something else within a header block":
                h2.frame(h2.HEADERS, 0, 1, headers) + h2.frame(h2.PING, 0, 0, b"12345678"),
        }.items():
            with self.subTest(name):
                self.assertTrue(self.ends(frames))
        self.check_unharmed()

    @only_vigil
    def test_window_beyond_its_limit_ends_the_connection(self):
        self.assertTrue(self.ends(h2.frame(h2.WINDOW, 0, 0, b"\x7f\xff\xff\xff") * 2))
        self.check_unharmed()


class LargeThings(Attack):
    def status(self, body, path=KV + "Put"):
        try:
            self.channel.unary_unary(path)(body, timeout=20)
        except grpc.RpcError as e:
            return e.code()
        return grpc.StatusCode.OK

    def test_message_beyond_two_megabytes(self):
        for _ in range(20):
            self.assertEqual(self.status(pb.put(b"a", bytes(3 << 20))), grpc.StatusCode.RESOURCE_EXHAUSTED)
        self.check_unharmed()

    def test_false_message_length(self):
        for size in (0xFFFFFFFF, 0x7FFFFFFF, 100 << 20):
            c = self.connect(timeout=1)
            c.send(h2.frame(h2.HEADERS, h2.END_HEADERS, 1, h2.request_headers(KV + "Put")))
            c.send(h2.frame(h2.DATA, 0, 1, b"\0" + size.to_bytes(4, "big") + b"x" * 1000))
        self.check_unharmed()

    def test_deeply_nested_transaction(self):
        for depth in (60, 200, 5000, 100_000):
            body = b""
            for _ in range(depth):
                body = pb.field(2, pb.field(4, body))
                if len(body) > 1_900_000:
                    break
            self.assertNotEqual(self.status(body, KV + "Txn"), grpc.StatusCode.UNAVAILABLE, depth)
        self.check_unharmed()

    def test_deeply_nested_unknown_fields(self):
        body = b""
        for _ in range(20_000):
            body = pb.field(77, body)
        self.assertNotEqual(self.status(body), grpc.StatusCode.UNAVAILABLE)
        self.assertEqual(self.status(b"\xfb\x04" * 100_000), grpc.StatusCode.INTERNAL)  # nested groups
        self.check_unharmed()

    def test_many_small_elements(self):
        # Each is two bytes on the wire and a struct in memory.
        self.assertEqual(self.status(b"\x0a\x00" * 900_000, KV + "Txn"), grpc.StatusCode.INVALID_ARGUMENT)
        self.check_unharmed(growth_kb=160 << 10)

    def test_large_headers(self):
        c = self.connect(timeout=2)
        block = h2.request_headers(extra=[("x-%d" % i, "y" * 1000) for i in range(15)])
        c.send(h2.frame(h2.HEADERS, h2.END_HEADERS | h2.END_STREAM, 1, block[:16000]))
        self.check_unharmed()


class SlowClients(Attack):
    def fill(self, count=200, size=100_000):
        for i in range(count):
            self.put(b"k%04d" % i, bytes(size))
        self.memory = self.vigil.anonymous_kb()

    @only_vigil
    def test_readers_without_a_window(self):
        self.fill()
        body = pb.grpc_frame(pb.range_of(b"k", b"l"))
        for _ in range(5):
            c = self.connect(h2.PREFACE + h2.settings(window=0))
            c.send(b"".join(h2.request(2 * i + 1, body) for i in range(100)))
        time.sleep(1)
        self.check_unharmed()

    @only_vigil
    def test_readers_that_do_not_read(self):
        self.fill()
        body = pb.grpc_frame(pb.range_of(b"k", b"l"))
        for _ in range(20):
            c = self.connect(h2.PREFACE + h2.settings(window=0x7FFFFFFF) +
                             h2.frame(h2.WINDOW, 0, 0, b"\x7f\xff\0\0"), receive_buffer=4096)
            c.send(b"".join(h2.request(2 * i + 1, body) for i in range(20)))
        time.sleep(1)
        self.check_unharmed()

    @only_vigil
    def test_window_of_one_byte_at_a_time(self):
        self.fill(20)
        body = pb.grpc_frame(pb.range_of(b"k", b"l"))
        c = self.connect(h2.PREFACE + h2.settings(window=0))
        c.send(b"".join(h2.request(2 * i + 1, body) for i in range(100)))
        for _ in range(200):
            c.send(b"".join(h2.frame(h2.WINDOW, 0, 2 * i + 1, b"\0\0\0\1") for i in range(100)))
        self.check_unharmed()

    def test_slow_headers(self):
        connections = []
        for opening in (b"GET /health HTTP/1.1\r\nHost: localhost\r\n", b"PRI * HTTP/2.0\r\n", h2.PREFACE[:20], b""):
            for _ in range(100):
                connections.append(self.connect(opening))
        for _ in range(5):
            for c in connections:
                c.send(b"X")
            time.sleep(0.1)
        self.check_unharmed()

    def test_many_idle_connections(self):
        before = self.vigil.descriptors()
        connections = [self.connect() for _ in range(800)]
        self.check_unharmed(growth_kb=96 << 10)
        for c in connections:
            c.close()
        self.eventually(lambda: self.vigil.descriptors() <= before + 5)

    def test_connections_opened_and_closed_in_a_loop(self):
        before = self.vigil.descriptors()

        def hammer():
            for n in range(500):
                with socket.create_connection(("127.0.0.1", self.port), 10) as s:
                    if n % 2:
                        s.sendall(h2.PREFACE + h2.settings())

        threads = [threading.Thread(target=hammer) for _ in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.eventually(lambda: self.vigil.descriptors() <= before + 5)
        self.check_unharmed()


if __name__ == "__main__":
    unittest.main()
