#!/usr/bin/python3
"""Members of a cluster of one server: they are listed and kept over restarts, and writes never wait for them."""
import grpc
import unittest

import protobuf as pb
from client import Client
from server import LiveTest, only_vigil

CLUSTER = "/etcdserverpb.Cluster/"
SELF = 0x8e9e05c52164694d  # the ID of every server with default flags


@only_vigil
class Members(LiveTest):
    def begin(self, *args):
        self.vigil = self.serving(args=args)

    def call(self, method, body=b""):
        client = Client(self.vigil.port)
        try:
            return pb.parse(client.channel.unary_unary(CLUSTER + method)(body, timeout=30))
        finally:
            client.close()

    def refused(self, method, body):
        with self.assertRaises(grpc.RpcError) as caught:
            self.call(method, body)
        return caught.exception.code()

    def members(self):
        """Name, peer URLs and learner flag by ID."""
        found = [pb.parse(m) for m in self.call("MemberList")[2]]
        return {m[1][0]: (m.get(2), m.get(3), m.get(5)) for m in found}

    def add(self, url, **more):
        return pb.parse(self.call("MemberAdd", pb.message(f1=url, **more))[2][0])[1][0]

    def put(self, key):
        client = Client(self.vigil.port)
        client.put(key, b"value", timeout=30)
        client.close()

    def test_server_does_not_wait_for_a_new_member(self):
        self.begin()
        voter = self.add(b"http://127.0.0.1:1")
        learner = self.add(b"http://127.0.0.1:2", f2=1)
        self.put(b"a")
        self.assertEqual(self.members(), {
            SELF: ([b"default"], [b"http://localhost:2380"], None),
            voter: (None, [b"http://127.0.0.1:1"], None),
            learner: (None, [b"http://127.0.0.1:2"], [1])})
        self.call("MemberRemove", pb.message(f1=voter))
        self.call("MemberRemove", pb.message(f1=learner))
        self.put(b"b")
        self.assertEqual(list(self.members()), [SELF])

    def test_members_survive_stops_and_crashes(self):
        self.begin()
        voter = self.add(b"http://127.0.0.1:1")
        learner = self.add(b"http://127.0.0.1:2", f2=1)
        self.call("MemberUpdate", pb.message(f1=SELF, f2=[b"http://127.0.0.1:8", b"http://127.0.0.1:7"]))
        self.call("MemberUpdate", pb.message(f1=learner, f2=b"http://127.0.0.1:9"))
        before = self.members()
        self.assertEqual(before[SELF], ([b"default"], [b"http://127.0.0.1:8", b"http://127.0.0.1:7"], None))
        self.assertEqual(before[learner], (None, [b"http://127.0.0.1:9"], [1]))
        self.vigil.kill()
        self.vigil.start()
        self.assertEqual(self.members(), before)
        # Other flags do not change the member's identity.
        self.vigil.stop()
        self.vigil.args += ["--initial-advertise-peer-urls", "http://127.0.0.1:7", "--name", "default"]
        self.vigil.start()
        self.assertEqual(self.members(), before)
        self.call("MemberRemove", pb.message(f1=voter))
        self.vigil.kill()
        self.vigil.start()
        self.assertEqual(set(self.members()), {SELF, learner})

    def test_members_and_urls_are_limited(self):
        self.begin("--strict-reconfig-check=false", "--max-learners", "3")
        for i in range(31):
            self.add(b"http://127.0.0.1:%d" % (i + 1), f2=int(i < 3))
        for learner in (0, 1):
            self.refused("MemberAdd", pb.message(f1=b"http://127.0.0.1:99", f2=learner))
        urls = [b"http://127.0.0.1:%d" % (1000 + i) for i in range(33)]
        self.refused("MemberUpdate", pb.message(f1=SELF, f2=urls))
        self.refused("MemberUpdate", pb.message(f1=SELF, f2=b"http://" + b"h" * 20000 + b":1"))
        self.call("MemberUpdate", pb.message(f1=SELF, f2=urls[:32]))
        self.assertEqual(len(self.members()), 32)
        self.vigil.kill()
        self.vigil.start()
        self.assertEqual(len(self.members()), 32)
        self.put(b"a")

    def test_invalid_urls_are_refused(self):
        self.begin()
        for url in ([], b"", b"bogus", b"http://h", b"http://h:1/x", b"http://a b:1", b"\xff\xfe://h:1"):
            for method, body in (("MemberAdd", pb.message(f1=url)), ("MemberUpdate", pb.message(f1=SELF, f2=url))):
                with self.subTest(url=url, method=method):
                    code = self.refused(method, body)
                    self.assertIn(code, (grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.INTERNAL))
        self.assertEqual(list(self.members()), [SELF])


if __name__ == "__main__":
    unittest.main()
