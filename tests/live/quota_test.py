#!/usr/bin/python3
"""The space quota: refused requests, alarms, recovery, and defragmentation under load. Most tests also pass on a real etcd."""
import contextlib
import json
import os
import subprocess
import threading
import time
import unittest

import grpc

import protobuf as pb
from client import Client
from server import SUBJECT, LiveTest, is_etcd, only_vigil

MAINTENANCE = "/etcdserverpb.Maintenance/"
LEASE = "/etcdserverpb.Lease/"
NOSPACE, CORRUPT = 1, 2
GET, ACTIVATE, DEACTIVATE = 0, 1, 2
PAGE = 4096
FULL = (grpc.StatusCode.RESOURCE_EXHAUSTED, "etcdserver: mvcc: database space exceeded")
BROKEN = (grpc.StatusCode.DATA_LOSS, "etcdserver: corrupt cluster")


class Space(LiveTest):
    ARGS = ["--quota-backend-bytes", str(16 * PAGE)]

    def setUp(self):
        super().setUp()
        self.start()

    def start(self):
        self.vigil = self.serving(args=self.ARGS)
        self.client = Client(self.vigil.port)
        self.addCleanup(self.client.close)

    def restart(self):
        self.client.close()
        self.vigil.stop()
        self.start()

    def maintenance(self, method, body=b"", timeout=60):
        return pb.parse(self.client.channel.unary_unary(MAINTENANCE + method)(body, timeout=timeout))

    def alarm(self, action=GET, member=0, kind=0):
        """Sends an Alarm request and returns the alarms of its answer as (member, type)."""
        answer = self.maintenance("Alarm", pb.message(f1=action, f2=member, f3=kind))
        rows = [pb.parse(row) for row in answer.get(2, [])]
        return [(row.get(1, [0])[0], row.get(2, [0])[0]) for row in rows]

    def status(self):
        answer = self.maintenance("Status")
        return {"size": answer[3][0], "in use": answer[9][0], "member": answer[4][0],
                "errors": sorted(text.decode() for text in answer.get(8, [])),
                "quota": answer.get(12, [0])[0]}

    def outcome(self, call):
        try:
            call()
            return "ok"
        except grpc.RpcError as error:
            return error.code(), error.details()

    def put(self, key=b"k", value=b"v"):
        return self.outcome(lambda: self.client.call("Put", pb.put(key, value)))

    def fill(self):
        """Puts one key repeatedly until the quota is exceeded; returns the number of puts."""
        for count in range(100):
            result = self.put(b"key", b"x" * PAGE)
            if result != "ok":
                self.assertEqual(result, FULL)
                return count
            if is_etcd(SUBJECT):
                time.sleep(0.12)  # etcd updates its size when it commits
        self.fail("the quota was never exceeded")

    def ctl(self, *args, code=0):
        done = subprocess.run(["etcdctl", "--endpoints", self.vigil.url, *args], capture_output=True,
                              text=True, timeout=60, env=dict(os.environ, ETCDCTL_API="3"))
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout + done.stderr


class Quota(Space):
    def test_full_store_refuses_puts_and_nothing_else(self):
        self.assertEqual(self.status()["quota"], 16 * PAGE)
        self.assertIn(self.fill(), range(3, 20))
        member = self.status()["member"]
        self.assertEqual(self.alarm(), [(member, NOSPACE)])
        self.assertEqual(self.alarm(kind=NOSPACE), [(member, NOSPACE)])
        self.assertEqual(self.alarm(kind=CORRUPT), [])
        self.assertEqual(self.status()["errors"], [f"memberID:{member} alarm:NOSPACE"])
        put = pb.message(f2=pb.put(b"a", b"b"))
        self.assertEqual(self.put(b"small", b""), FULL)
        for branch in ({"f2": put}, {"f3": put},
                       {"f2": pb.message(f4=pb.message(f2=put))}):
            self.assertEqual(self.outcome(lambda: self.client.call("Txn", pb.message(**branch))), FULL)
        self.assertIsNotNone(self.client.get(b"key"))
        reads = pb.message(f2=pb.message(f1=pb.range_of(b"key")))
        deletes = pb.message(f2=pb.message(f3=pb.range_of(b"none")))
        for body in (reads, deletes):
            self.assertEqual(self.outcome(lambda: self.client.call("Txn", body)), "ok")
        self.client.call("DeleteRange", pb.range_of(b"key"))
        self.client.call("Compact", pb.message(f1=3))
        self.maintenance("Defragment")
        self.maintenance("HashKV")

    def test_recovery_by_compacting_and_defragmenting(self):
        self.fill()
        member = self.status()["member"]
        full = self.status()
        self.client.call("Compact", pb.message(f1=self.client.revision(), f2=1))
        self.eventually(lambda: self.status()["in use"] < full["in use"])
        self.assertEqual(self.status()["size"], full["size"])
        # Free pages do not help as long as the file has the same size.
        self.assertEqual(self.alarm(DEACTIVATE, member, NOSPACE), [(member, NOSPACE)])
        self.assertEqual(self.put(b"key", b"x" * PAGE), FULL)
        self.maintenance("Defragment")
        shrunk = self.status()
        self.assertLess(shrunk["size"], full["size"])
        self.assertLess(shrunk["size"] - shrunk["in use"], 4 * PAGE)
        # A small file does not help as long as the alarm is active.
        self.assertEqual(self.put(), FULL)
        self.assertEqual(self.alarm(DEACTIVATE, member, NOSPACE), [(member, NOSPACE)])
        self.assertEqual(self.alarm(DEACTIVATE, member, NOSPACE), [])
        self.assertEqual(self.put(b"key", b"x" * PAGE), "ok")
        self.assertEqual(self.status()["errors"], [])

    def test_recovery_by_deleting_everything(self):
        for i in range(100):
            if self.put(b"key%d" % i, b"x" * PAGE) != "ok":
                break
        self.client.call("DeleteRange", pb.range_of(b"\0", b"\0"))
        self.client.call("Compact", pb.message(f1=self.client.revision(), f2=1))
        time.sleep(0.3)
        self.maintenance("Defragment")
        for member, kind in self.alarm():
            self.alarm(DEACTIVATE, member, kind)
        self.assertGreater(self.fill(), 2)

    def test_recovery_with_etcdctl(self):
        self.fill()
        self.assertIn("alarm:NOSPACE", self.ctl("alarm", "list"))
        self.assertIn("database space exceeded", self.ctl("put", "a", "b", code=1))
        revision = json.loads(self.ctl("endpoint", "status", "-w", "json"))[0]["Status"]["header"]["revision"]
        self.assertIn(f"compacted revision {revision}", self.ctl("compaction", str(revision), "--physical"))
        self.assertIn("Finished defragmenting", self.ctl("defrag"))
        self.assertIn("alarm:NOSPACE", self.ctl("alarm", "disarm"))
        self.assertEqual(self.ctl("alarm", "list"), "")
        self.assertIn("OK", self.ctl("put", "a", "b"))

    @only_vigil  # this test starts a real etcd with another peer port each time, which etcd does not accept
    def test_alarms_and_sizes_survive_restarts(self):
        self.fill()
        before = self.status()
        self.restart()
        self.assertEqual(self.status(), before)
        self.assertEqual(self.put(), FULL)
        self.vigil.kill()
        self.start()
        self.assertEqual(self.status(), before)
        self.alarm(DEACTIVATE, before["member"], NOSPACE)
        self.restart()
        self.assertEqual(self.alarm(), [])

    @only_vigil  # such a small file of a real etcd is mostly fragmented
    def test_compacted_history_needs_no_space(self):
        """Ten times the quota can be written if history is compacted meanwhile."""
        for i in range(160):
            self.assertEqual(self.put(b"key", b"x" * PAGE), "ok", i)
            if i % 3 == 2:
                self.client.call("Compact", pb.message(f1=self.client.revision(), f2=1))
        self.assertLess(self.status()["size"], 16 * PAGE)


class NoQuota(Space):
    ARGS = ["--quota-backend-bytes", "-1"]

    def test_negative_quota_disables_it(self):
        for i in range(30):
            self.assertEqual(self.put(b"key", b"x" * 100_000), "ok")
        self.assertEqual(self.alarm(), [])
        self.assert_logged(self.vigil, "disabled backend quota")


class LargeQuota(Space):
    ARGS = ["--quota-backend-bytes", str(16 << 30)]

    def test_large_quota_causes_a_warning(self):
        self.assert_logged(self.vigil, "quota exceeds the maximum value")
        self.assert_logged(self.vigil, "17 GB")
        self.assertEqual(self.status()["quota"], 16 << 30)


class Alarms(Space):
    ARGS = []

    def test_alarms_are_raised_and_disarmed_one_by_one(self):
        self.assertEqual(self.status()["quota"], 2 << 30)
        self.assertEqual(self.alarm(ACTIVATE, 5, 0), [])
        self.assertEqual(self.alarm(ACTIVATE, 5, NOSPACE), [(5, NOSPACE)])
        self.assertEqual(self.alarm(ACTIVATE, 5, NOSPACE), [(5, NOSPACE)])
        self.assertEqual(self.alarm(ACTIVATE, 6, NOSPACE), [(6, NOSPACE)])
        self.assertEqual(sorted(self.alarm()), [(5, NOSPACE), (6, NOSPACE)])
        self.assertEqual(self.put(), FULL)
        self.assertEqual(self.alarm(DEACTIVATE, 0, NOSPACE), [])
        self.assertEqual(self.alarm(DEACTIVATE, 5, CORRUPT), [])
        self.assertEqual(self.alarm(DEACTIVATE, 5, NOSPACE), [(5, NOSPACE)])
        self.assertEqual(self.put(), FULL)
        self.assertEqual(self.alarm(DEACTIVATE, 6, NOSPACE), [(6, NOSPACE)])
        self.assertEqual(self.put(), "ok")

    def test_corrupt_refuses_every_change(self):
        self.put(b"a", b"1")
        self.alarm(ACTIVATE, 5, CORRUPT)
        self.alarm(ACTIVATE, 5, NOSPACE)
        self.assertEqual(self.status()["errors"], ["memberID:5 alarm:CORRUPT", "memberID:5 alarm:NOSPACE"])
        call = self.client.call
        self.assertEqual(self.put(), BROKEN)
        self.assertEqual(self.outcome(lambda: call("DeleteRange", pb.range_of(b"a"))), BROKEN)
        self.assertEqual(self.outcome(lambda: call("Compact", pb.message(f1=1))), BROKEN)
        for op in (pb.message(f3=pb.range_of(b"zz")), pb.message(f2=pb.put(b"a", b"b"))):
            self.assertEqual(self.outcome(lambda: call("Txn", pb.message(f2=op))), BROKEN)
        for method in ("LeaseGrant", "LeaseRevoke"):
            lease = self.client.channel.unary_unary(LEASE + method)
            self.assertEqual(self.outcome(lambda: lease(pb.message(f1=10), timeout=60)), BROKEN)
        self.assertEqual(self.client.get(b"a")[0], b"1")  # reads still work, as in etcd
        call("Txn", pb.message(f2=pb.message(f1=pb.range_of(b"a"))))
        self.maintenance("Defragment")
        self.alarm(DEACTIVATE, 5, CORRUPT)
        self.assertEqual(self.put(), FULL)

    @only_vigil  # crashes a real etcd
    def test_unknown_actions_and_types(self):
        self.assertEqual(self.alarm(3, 5, NOSPACE), [])
        self.assertEqual(self.alarm(ACTIVATE, 5, 77), [(5, 77)])
        self.assertEqual(self.status()["errors"], ["memberID:5 alarm:77"])
        self.assertEqual(self.put(), "ok")

    @only_vigil
    def test_alarms_have_a_limit(self):
        for member in range(62):
            self.assertEqual(self.alarm(ACTIVATE, 1000 + member, CORRUPT), [(1000 + member, CORRUPT)])
        more = self.outcome(lambda: self.alarm(ACTIVATE, 5, NOSPACE))
        self.assertEqual(more[0], grpc.StatusCode.RESOURCE_EXHAUSTED)
        self.assertEqual(len(self.alarm()), 62)
        self.assertEqual(len(self.status()["errors"]), 62)


class Defragment(Space):
    ARGS = ["--segment-bytes", "4194304"] if not is_etcd(SUBJECT) else []

    def overwrite(self, rounds=12, keys=200, size=4000):
        for i in range(rounds * keys):
            self.client.call("Put", pb.put(b"k%03d" % (i % keys), b"%08d" % i + b"x" * size))
        self.client.call("Compact", pb.message(f1=self.client.revision(), f2=1))

    @only_vigil  # a real etcd blocks all requests
    def test_puts_and_reads_continue_while_defragmenting(self):
        self.overwrite()
        stop, slowest, failures = threading.Event(), [0.0], []

        def work():
            own = Client(self.vigil.port)
            while not stop.is_set():
                begin = time.monotonic()
                try:
                    own.put(b"while", b"x" * 100)
                    own.get(b"k001")
                except grpc.RpcError as error:
                    failures.append(error)
                slowest[0] = max(slowest[0], time.monotonic() - begin)
            own.close()
        worker = threading.Thread(target=work)
        worker.start()
        calls = [self.client.channel.unary_unary(MAINTENANCE + "Defragment").future(b"", timeout=60)
                 for _ in range(5)]
        for call in calls:
            call.result()
        stop.set()
        worker.join()
        self.assertEqual(failures, [])
        self.assertLess(slowest[0], 10)
        after = self.status()
        self.assertLess(after["size"], 3 << 20)
        self.assertEqual(self.client.get(b"k001")[0][:8], b"00002201")

    def log_bytes(self):
        total = 0
        for file in (self.scratch / "data/log").iterdir():
            with contextlib.suppress(FileNotFoundError):  # it was removed meanwhile
                total += file.stat().st_size
        return total

    @only_vigil
    def test_files_shrink(self):
        self.overwrite()
        before = self.log_bytes()
        self.maintenance("Defragment")
        # The old files are removed when no reader uses them any more.
        self.eventually(lambda: self.log_bytes() < before)
        self.restart()
        for i in range(200):
            self.assertEqual(self.client.get(b"k%03d" % i)[0][:8], b"%08d" % (2200 + i))

    def test_canceled_defragmentation(self):
        self.overwrite(rounds=4)
        for _ in range(10):
            call = self.client.channel.unary_unary(MAINTENANCE + "Defragment").future(b"", timeout=60)
            call.cancel()
        self.maintenance("Defragment", timeout=60)
        self.assertEqual(self.put(), "ok")

    def test_defragmentation_does_not_delay_a_stop(self):
        self.overwrite()
        self.client.channel.unary_unary(MAINTENANCE + "Defragment").future(b"", timeout=60)
        self.vigil.stop()


if __name__ == "__main__":
    unittest.main()
