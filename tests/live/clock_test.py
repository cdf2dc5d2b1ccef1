#!/usr/bin/python3
"""The wall clock jumps by hours, forward and back, while the server works. Durations use the monotonic clock, so
nothing is early or late; only log lines show the new time. A clock that runs fast shows what happens every few minutes."""
import datetime
import glob
import json
import time
import unittest

import grpc

import protobuf as pb
from client import Client
from server import LiveTest, only_vigil

LEASE = "/etcdserverpb.Lease/"
FAKETIME = (glob.glob("/usr/lib/*/faketime/libfaketimeMT.so.1") or [None])[0]


@only_vigil  # a Go program reads the time from the kernel and not from the C library
class Clock(LiveTest):
    def start(self, args=(), **env):
        self.assertIsNotNone(FAKETIME, "libfaketime is missing (tools/install-deps test)")
        # Sanitizers check that they are loaded first, but they also work after another library.
        base = {"LD_PRELOAD": FAKETIME, "ASAN_OPTIONS": "verify_asan_link_order=0:detect_leaks=0"}
        self.vigil = self.serving(args=args, env={**base, **env})
        self.client = Client(self.vigil.port)
        self.addCleanup(self.client.close)

    def lease(self, method, **fields):
        call = self.client.channel.unary_unary(LEASE + method)
        return pb.parse(call(pb.message(**fields), timeout=60))

    def now(self):
        """The time of the server's last log line."""
        text = json.loads(self.vigil.lines[-1])["ts"]
        return datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))

    def lines(self, text):
        return [json.loads(line) for line in self.vigil.lines if text in line]

    def until(self, condition):
        self.eventually(condition, message=lambda: self.vigil.log)


class Jumps(Clock):
    def setUp(self):
        super().setUp()
        self.offset = self.scratch / "offset"
        self.offset.write_text("+0\n")

    def jump(self, offset):
        self.offset.write_text(offset + "\n")

    def serve(self, args=()):
        self.start(args, FAKETIME_TIMESTAMP_FILE=str(self.offset), FAKETIME_NO_CACHE="1",
                   FAKETIME_DONT_FAKE_MONOTONIC="1")

    def defragment(self):
        """Makes the server log a line."""
        self.client.channel.unary_unary("/etcdserverpb.Maintenance/Defragment")(b"", timeout=60)

    def test_log_lines_follow_the_clock(self):
        self.serve()
        before = self.now()
        self.jump("+10h")
        self.defragment()
        self.until(lambda: self.now() - before > datetime.timedelta(hours=9))
        self.jump("-10h")
        self.defragment()
        self.until(lambda: self.now() - before < datetime.timedelta(hours=-9))

    def test_leases_expire_by_the_monotonic_clock(self):
        self.serve()
        for offset in ("+10h", "-1000h"):
            with self.subTest(offset=offset):
                begin = time.monotonic()
                granted = self.lease("LeaseGrant", f1=3)[2][0]
                self.client.call("Put", pb.message(f1=b"leased", f2=b"v", f3=granted))
                self.jump(offset)
                left = self.lease("LeaseTimeToLive", f1=granted).get(3, [0])[0]
                self.assertTrue(left in (0, 1, 2, 3) or time.monotonic() - begin > 2.9, left)
                time.sleep(1)
                lives = self.client.get(b"leased") is not None
                self.assertTrue(lives or time.monotonic() - begin > 2.9, "the lease expired early")
                self.until(lambda: self.client.get(b"leased") is None)
                self.assertGreater(time.monotonic() - begin, 2.9)

    def test_connections_and_deadlines_survive_clock_jumps(self):
        self.serve()
        self.client.put(b"a", b"1")
        for offset in ("+100h", "-100h"):
            self.jump(offset)
            for _ in range(20):
                self.client.put(b"a", b"2", timeout=30)
                time.sleep(0.01)
        self.assertTrue(self.vigil.alive())
        self.vigil.stop()
        self.jump("-1000h")
        self.serve()
        self.assertEqual(self.client.get(b"a")[0], b"2")

    def test_retention_follows_the_monotonic_clock(self):
        begin = time.monotonic()
        self.serve(["--auto-compaction-retention", "2s"])
        self.client.put(b"a", b"1")
        self.jump("+100h")
        self.client.put(b"a", b"2")
        time.sleep(0.5)
        begun = self.lines("starting auto periodic compaction")
        self.assertTrue(not begun or time.monotonic() - begin > 1.9, begun)
        self.until(lambda: self.lines("completed auto periodic compaction"))
        self.jump("-100h")
        revision = self.client.put(b"a", b"3")
        self.client.put(b"a", b"4")

        def compacted():
            try:
                return self.client.get(b"a", revision) is None
            except grpc.RpcError as error:
                return "compacted" in error.details()
        self.until(compacted)


class Fast(Clock):
    def test_compaction_by_revision_keeps_the_configured_count(self):
        """The server checks every five minutes, which is every 1.5 seconds with this clock."""
        self.start(["--auto-compaction-mode", "revision", "--auto-compaction-retention", "10",
                    "--io-threads", "1"], FAKETIME="+0 x200")
        for i in range(30):
            self.client.put(b"a", b"%d" % i)

        def compacted():
            """To ten revisions before the last put. Earlier compactions are possible if the puts take long."""
            self.client.get(b"a")  # wakes the server: the kernel's timers do not follow the fast clock
            return [line for line in self.lines("completed auto revision compaction") if line["revision"] == 21]
        self.until(compacted)
        for line in self.lines("starting auto revision compaction"):
            self.assertLessEqual(line["revision"], 21)
            self.assertEqual(line["revision-compaction-retention"], 10)
        with self.assertRaises(grpc.RpcError):
            self.client.get(b"a", 20)
        self.assertEqual(self.client.get(b"a", 21)[0], b"19")


if __name__ == "__main__":
    unittest.main()
