#!/usr/bin/python3
"""Compares rarely used behaviour with a real etcd: how a range stream is divided, the size limit of writes, maintenance and
members. Needs the etcd of tools/build-peer."""
import json
import pathlib
import random
import time
import unittest
import urllib.request

import grpc

import protobuf as pb
from client import KV, Client
from server import PEER, LiveTest, only_vigil


@only_vigil
@unittest.skipUnless(pathlib.Path(PEER).exists(), "no real etcd was built (tools/build-peer)")
class SameAsEtcd(LiveTest):
    def setUp(self):
        super().setUp()
        self.etcd = self.serving(self.scratch / "etcd", binary=PEER)
        # The same peer URL gives the same IDs, which are part of the size of a write.
        command = self.etcd.process.args
        cluster = command[command.index("--initial-cluster") + 1]
        self.vigil = self.serving(args=["--initial-cluster", cluster])
        self.clients = [Client(self.vigil.port), Client(self.etcd.port)]
        for client in self.clients:
            self.addCleanup(client.close)

    def both(self, call):
        ours, etcds = (call(client) for client in self.clients)
        self.assertEqual(ours, etcds)
        return ours

    def messages(self, client, body):
        """For each message of a range stream: the number of key-values, the header, more, and the count."""
        parts = []
        for message in client.channel.unary_stream(KV + "RangeStream")(body, timeout=60):
            part = pb.parse(pb.parse(message)[1][0])
            header = pb.parse(part[1][0]).get(3) if 1 in part else None
            parts.append((len(part.get(2, [])), header, part.get(3), part.get(4)))
        return parts

    def test_range_streams_are_divided_like_in_etcd(self):
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

    def test_size_limit_of_writes_is_the_same_byte(self):
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

    def maintenance(self, client, method, body=b""):
        """The fields of the answer without those that differ between servers, or the error."""
        try:
            call = client.channel.unary_unary("/etcdserverpb.Maintenance/" + method)
            fields = pb.parse(call(body, timeout=60))
        except grpc.RpcError as error:
            return error.code(), error.details()
        if 1 in fields:
            header = pb.parse(fields[1][0])
            fields[1] = [header.get(2), header.get(3)]
        if method == "Status":
            for size in (3, 5, 7, 9):  # sizes and indexes
                self.assertGreater(fields.pop(size)[0], 0)
            fields[2] = fields[2][0].rsplit(b".", 1)[0]
            # Go's text of a message has one space or two, depending on the program's binary.
            fields[8] = sorted(error.replace(b"  ", b" ") for error in fields.get(8, []))
        return fields

    def await_storage_version(self):
        """Waits until the real etcd knows its storage version, shortly after it begins to serve."""
        end = time.monotonic() + 60
        while self.maintenance(self.clients[1], "Status").get(11) != [b"3.7.0"]:
            self.assertLess(time.monotonic(), end)
            time.sleep(0.1)

    def test_maintenance_answers_like_etcd(self):
        self.await_storage_version()
        for client in self.clients:
            for i in range(5):
                client.call("Put", pb.put(b"k", b"%d" % i))
        self.both(lambda c: self.maintenance(c, "Status"))
        member = self.clients[0].call("Put", pb.put(b"k", b"x")) and self.clients[1].call("Put", pb.put(b"k", b"x"))
        member = pb.parse(member[1][0])[2][0]
        for target in (0, 1, member):
            self.both(lambda c: self.maintenance(c, "MoveLeader", pb.message(f1=target)))
        for revision in (0, 2, 5, 100, -1):
            self.both(lambda c: self.maintenance(c, "HashKV", pb.message(f1=revision)))
        for alarm in ((1, 7, 1), (1, 7, 1), (1, 3, 2), (0, 0, 1), (0, 0, 2), (1, 9, 0)):
            body = pb.message(**{f"f{i + 1}": value for i, value in enumerate(alarm)})
            self.both(lambda c: self.maintenance(c, "Alarm", body))
        self.both(lambda c: self.maintenance(c, "Status"))
        for alarm in ((2, 7, 1), (2, 7, 1), (2, 3, 2), (0, 0, 0)):
            body = pb.message(**{f"f{i + 1}": value for i, value in enumerate(alarm)})
            self.both(lambda c: self.maintenance(c, "Alarm", body))
        self.both(lambda c: self.maintenance(c, "Defragment"))
        self.both(lambda c: self.maintenance(c, "HashKV"))

    def index(self, server):
        """The indexes of the log and of the last applied entry, and the term."""
        request = urllib.request.Request(server.url + "/v3/maintenance/status", b"{}")
        with urllib.request.urlopen(request, timeout=60) as answer:
            status = json.load(answer)
        return tuple(int(status[name]) for name in ("raftIndex", "raftAppliedIndex", "raftTerm"))

    def test_log_index_equals_etcds(self):
        self.await_storage_version()
        for puts in range(3):
            ours = self.index(self.vigil)
            # A real etcd writes its name and its version shortly after it begins to serve.
            self.eventually(lambda: self.index(self.etcd) == ours,
                            lambda: f"{ours}, and etcd's is {self.index(self.etcd)}")
            for client in self.clients:
                client.put(b"k", b"%d" % puts)
        self.assertEqual(self.index(self.vigil), self.index(self.etcd))
        for server in (self.vigil, self.etcd):
            server.stop()
            server.start()
        ours = self.index(self.vigil)
        self.eventually(lambda: self.index(self.etcd) == ours,
                        lambda: f"{ours}, and etcd's is {self.index(self.etcd)}")

    def cluster_version(self, server):
        with urllib.request.urlopen(server.url + "/version", timeout=60) as answer:
            return json.load(answer)["etcdcluster"]

    def test_downgrade_answers_like_etcd(self):
        steps = ((2, b""), (1, b"3.5"), (1, b"3.6"), (1, b"3.6"), (0, b"3.6"), (2, b""), (2, b""))
        for _ in range(10):
            self.await_storage_version()
            answers = [[self.maintenance(c, "Downgrade", pb.message(f1=action, f2=version)) for action, version in steps]
                       for c in self.clients]
            if self.cluster_version(self.etcd) == "3.7.0":
                break
            # Every four seconds a real etcd checks whether a downgrade is in progress and changes the cluster's version.
            # That happened now, so the steps are repeated on new servers.
            for client in self.clients:
                client.close()
            self.setUp()
        self.assertEqual(answers[0], answers[1])
        for version in (b"", b"3.6", b"3.6.0", b"3.7", b"3.5", b"x", b"3.6.0-rc", b"v3.6", b"4", b"3.06",
                        b"3.6.1+b", b"3.6-rc", b"3.6.0-r_c", b"3.6.0.0", b"3.", b"-3.6.0", b"3.6.0-"):
            for action in (0, 9):
                with self.subTest(version=version, action=action):
                    self.both(lambda c: self.maintenance(c, "Downgrade", pb.message(f1=action, f2=version)))

    def cluster(self, client, method, body=b""):
        """An answer of the Cluster service without the IDs of added members, which depend on the time."""
        try:
            answer = pb.parse(client.channel.unary_unary("/etcdserverpb.Cluster/" + method)(body, timeout=60))
        except grpc.RpcError as error:
            return error.code(), error.details()
        header = pb.parse(answer.pop(1)[0])
        del header[4]  # the term
        members = {}
        for number, found in answer.items():
            fields = [pb.parse(member) for member in found]
            members[number] = sorted(repr((f.pop(1) == [self.member], len(f.pop(4, [])), f)) for f in fields)
        return header, members

    def added(self, client, body):
        """Adds a member; returns its ID and the answer."""
        before = self.cluster_ids(client)
        answer = self.cluster(client, "MemberAdd", body)
        new = self.cluster_ids(client) - before
        return new.pop() if new else None, answer

    def cluster_ids(self, client):
        list_all = client.channel.unary_unary("/etcdserverpb.Cluster/MemberList")
        return {pb.parse(m)[1][0] for m in pb.parse(list_all(b"", timeout=60))[2]}

    def test_member_changes_answer_like_etcd(self):
        self.member = self.cluster_ids(self.clients[0]).pop()
        own = self.etcd.process.args[self.etcd.process.args.index("--initial-advertise-peer-urls") + 1].encode()
        other = b"http://127.0.0.1:1"
        self.both(lambda c: self.cluster(c, "MemberList"))
        self.both(lambda c: self.cluster(c, "MemberList", pb.message(f1=1)))
        for url in (None, b"", b"x", b"http://h", b"http://h:1/path", b"ftp://h:1", b"http://bad url:1", own):
            with self.subTest(url=url):
                self.both(lambda c: self.cluster(c, "MemberAdd", pb.message(f1=url) if url is not None else b""))
        for id in (0, 1234, self.member):
            with self.subTest(id=id):
                self.both(lambda c: self.cluster(c, "MemberPromote", pb.message(f1=id)))
                self.both(lambda c: self.cluster(c, "MemberRemove", pb.message(f1=id)))
        self.both(lambda c: self.cluster(c, "MemberUpdate", pb.message(f1=1234, f2=other)))
        self.both(lambda c: self.cluster(c, "MemberUpdate", pb.field(1, self.member) + pb.field(2, own) + pb.field(2, other)))
        self.both(lambda c: self.cluster(c, "MemberUpdate", pb.message(f1=self.member, f2=own)))

        learner = pb.field(1, b" http://127.0.0.1:3 ") + pb.field(1, b"http://127.0.0.1:2") + pb.field(2, 1)
        ids = []
        self.both(lambda c: [found := self.added(c, learner), ids.append(found[0])] and found[1])
        self.assertTrue(all(ids), ids)
        second = pb.field(1, b"http://127.0.0.1:4") + pb.field(2, 1)
        self.both(lambda c: self.cluster(c, "MemberAdd", second))  # too many learners
        self.both(lambda c: self.cluster(c, "MemberAdd", pb.message(f1=b"http://127.0.0.1:2")))  # in use
        self.both(lambda c: self.cluster(c, "MemberList"))
        of = dict(zip(self.clients, ids))
        self.both(lambda c: self.cluster(c, "MemberPromote", pb.message(f1=of[c])))
        self.both(lambda c: self.cluster(c, "MemberUpdate", pb.message(f1=of[c], f2=own)))
        self.both(lambda c: self.cluster(c, "MemberUpdate", pb.message(f1=of[c], f2=other)))
        self.both(lambda c: self.cluster(c, "MemberRemove", pb.message(f1=of[c])))
        self.both(lambda c: self.cluster(c, "MemberRemove", pb.message(f1=of[c])))
        # After this, etcd waits for the new member, and Vigil does not.
        self.both(lambda c: self.cluster(c, "MemberAdd", pb.message(f1=b"http://127.0.0.1:9")))
        self.both(lambda c: self.cluster(c, "MemberList"))
        self.both(lambda c: self.cluster(c, "MemberAdd", pb.message(f1=b"http://127.0.0.1:10")))
        self.both(lambda c: self.cluster(c, "MemberRemove", pb.message(f1=self.member)))


if __name__ == "__main__":
    unittest.main()
