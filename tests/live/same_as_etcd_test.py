#!/usr/bin/python3
"""What clients seldom look at, beside a real etcd: how a range stream is cut, where a write becomes
too large, what HTTP says. Needs the etcd of tools/build-peer."""
import http.client
import pathlib
import random
import unittest

import grpc

import protobuf as pb
from client import KV, Client
from server import PEER, LiveTest, only_vigil

PATHS = ("/", "/health", "/health?serializable=true", "/health/", "/livez", "/livez?verbose",
         "/livez/serializable_read", "/livez/non_learner", "/readyz", "/readyz?exclude=non_learner",
         "/readyz/data_corruption?verbose", "/readyz/nothing", "/nothing")


@only_vigil
@unittest.skipUnless(pathlib.Path(PEER).exists(), "no real etcd was built (tools/build-peer)")
class SameAsEtcd(LiveTest):
    def setUp(self):
        super().setUp()
        self.etcd = self.serving(self.scratch / "etcd", binary=PEER)
        # The same peer URL gives the same ids, which count in the size of a write.
        command = self.etcd.process.args
        cluster = command[command.index("--initial-cluster") + 1]
        self.vigil = self.serving(args=["--initial-cluster", cluster])
        self.clients = [Client(self.vigil.port), Client(self.etcd.port)]
        for client in self.clients:
            self.addCleanup(client.close)

    def both(self, what):
        ours, etcds = (what(client) for client in self.clients)
        self.assertEqual(ours, etcds)
        return ours

    def messages(self, client, body):
        """Of a range stream: how many key-values, header, more, count of each."""
        parts = []
        for message in client.channel.unary_stream(KV + "RangeStream")(body, timeout=30):
            part = pb.parse(pb.parse(message)[1][0])
            header = pb.parse(part[1][0]).get(3) if 1 in part else None
            parts.append((len(part.get(2, [])), header, part.get(3), part.get(4)))
        return parts

    def test_range_streams_are_cut_alike(self):
        seed = random.randrange(1 << 32)
        rng = random.Random(seed)
        everything = {"key": b"\0", "end": b"\0"}
        for count, sizes in ((0, (0,)), (5, (10,)), (11, (200_000,)), (150, (0, 1000, 100_000)),
                             (1200, (0, 3000))):
            self.both(lambda c: c.call("DeleteRange", pb.range_of(b"\0", b"\0")) and None)
            for i in range(count):
                value = bytes(rng.choice(sizes))
                for client in self.clients:
                    client.call("Put", pb.put(b"k%05d" % i, value))
            for limit in (0, 1, 10, 11, 50, -3):
                for more in ({}, {"f8": 1}, {"f9": 1}):
                    body = pb.range_of(**everything, f3=limit, **more)
                    with self.subTest(seed=seed, count=count, limit=limit, more=more):
                        self.both(lambda c: self.messages(c, body))

    def test_writes_become_too_large_at_the_same_byte(self):
        def outcome(client, size):
            try:
                client.call("Put", pb.put(b"k", bytes(size)))
                return "fits"
            except grpc.RpcError as error:
                return error.code(), error.details()

        limit = 1536 * 1024
        seen = {self.both(lambda c: outcome(c, size)) for size in range(limit - 40, limit - 10)}
        self.assertEqual(len(seen), 2, seen)
        self.both(lambda c: outcome(c, limit + 512 * 1024 - 20))

    def test_http_answers_alike(self):
        def answer(server, method, path):
            connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
            connection.request(method, path)
            got = connection.getresponse()
            kept = ("content-type", "allow", "x-content-type-options", "access-control-allow-origin")
            result = got.status, got.read(), {k: got.getheader(k) for k in kept}
            connection.close()
            return result

        for path in PATHS:
            for method in ("GET", "POST"):
                with self.subTest(method=method, path=path):
                    self.assertEqual(answer(self.vigil, method, path),
                                     answer(self.etcd, method, path))


if __name__ == "__main__":
    unittest.main()
