#!/usr/bin/python3
"""Leases with etcdctl, with a wall clock that is set, and with busy I/O threads."""
import contextlib
import ctypes
import os
import pathlib
import re
import subprocess
import threading
import time
import unittest

import grpc

import protobuf as pb
from server import LiveTest, only_vigil

ETCDCTL = os.environ.get("VIGIL_ETCDCTL", "etcdctl")
# Debian's etcdctl uses the v2 API without this variable; newer ones warn about it.
ENVIRONMENT = dict(os.environ, **({} if "VIGIL_ETCDCTL" in os.environ else {"ETCDCTL_API": "3"}))
LEASE = "/etcdserverpb.Lease/"
KV = "/etcdserverpb.KV/"

# Shifts the wall clock by ten years while the file exists; the monotonic clock is unchanged.
CLOCK_SHIM = r"""
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
static time_t shift(void)
{
    const char *file = getenv("CLOCK_JUMP_FILE");
    return file && access(file, F_OK) == 0 ? 10 * 365 * 86400 : 0;
}
int clock_gettime(clockid_t id, struct timespec *at)
{
    int result = (int)syscall(SYS_clock_gettime, id, at);
    if (result == 0 && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE))
        at->tv_sec += shift();
    return result;
}
int gettimeofday(struct timeval *at, void *zone)
{
    struct timespec now;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &now);
    at->tv_sec = now.tv_sec;
    at->tv_usec = now.tv_nsec / 1000;
    return 0;
}
time_t time(time_t *to)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (to)
        *to = now.tv_sec;
    return now.tv_sec;
}
"""


class Etcdctl(LiveTest):
    def setUp(self):
        super().setUp()
        self.vigil = self.serving()

    def ctl(self, *args, code=0):
        done = subprocess.run(
            [ETCDCTL, "--endpoints", self.vigil.url, *args], capture_output=True, text=True,
            timeout=120, env=ENVIRONMENT)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout if code == 0 else done.stderr

    def grant(self, ttl):
        output = self.ctl("lease", "grant", str(ttl))
        found = re.fullmatch(rf"lease ([0-9a-f]{{16}}) granted with TTL\({ttl}s\)\n", output)
        self.assertTrue(found, output)
        return found.group(1)

    def test_grant_list_time_to_live_and_revoke(self):
        self.assertEqual(self.ctl("lease", "list"), "found 0 leases\n")
        lease = self.grant(500)
        self.assertEqual(self.ctl("lease", "list"), f"found 1 leases\n{lease}\n")
        self.ctl("put", "a", "1", f"--lease={lease}")
        self.ctl("put", "b", "1", f"--lease={lease}")
        self.assertRegex(
            self.ctl("lease", "timetolive", lease, "--keys"),
            rf"lease {lease} granted with TTL\(500s\), remaining\(4\d\ds\), attached keys\(\[(a b|b a)\]\)")
        self.assertEqual(self.ctl("lease", "revoke", lease), f"lease {lease} revoked\n")
        self.assertEqual(self.ctl("get", "", "--prefix"), "")
        self.assertEqual(self.ctl("lease", "timetolive", lease), f"lease {lease} already expired\n")
        self.assertIn("requested lease not found", self.ctl("lease", "revoke", lease, code=1))
        self.assertIn("requested lease not found", self.ctl("put", "a", "1", "--lease=1234", code=1))
        self.assertIn("too large lease TTL", self.ctl("lease", "grant", "9000000001", code=1))

    def test_keep_alive(self):
        lease = self.grant(500)
        self.assertEqual(self.ctl("lease", "keep-alive", "--once", lease),
                         f"lease {lease} keepalived with TTL(500)\n")
        self.ctl("lease", "revoke", lease)
        gone = subprocess.run(
            [ETCDCTL, "--endpoints", self.vigil.url, "lease", "keep-alive", lease],
            capture_output=True, text=True, timeout=120, env=ENVIRONMENT)
        self.assertIn(f"lease {lease} expired or revoked", gone.stdout)

    def test_lock_runs_a_command_and_releases(self):
        self.assertEqual(self.ctl("lock", "door", "--", "echo", "inside"), "inside\n")
        self.assertEqual(self.ctl("get", "", "--prefix"), "")


class Quota(LiveTest):
    @only_vigil  # etcd's limit depends on the pages of its file
    def test_quota_limits_leases(self):
        vigil = self.serving(args=["--quota-backend-bytes", "100000"])
        channel = grpc.insecure_channel(f"127.0.0.1:{vigil.port}")
        self.addCleanup(channel.close)

        def call(method, body):
            return channel.unary_unary(method)(body, timeout=60)
        granted = 0
        with self.assertRaises(grpc.RpcError) as caught:
            while granted < 5000:
                call(LEASE + "LeaseGrant", pb.message(f1=1000, f2=granted + 1))
                granted += 1
        self.assertEqual((caught.exception.code(), caught.exception.details()),
                         (grpc.StatusCode.RESOURCE_EXHAUSTED,
                          "etcdserver: mvcc: database space exceeded"))
        self.assertTrue(1000 < granted < 1500, granted)
        call(LEASE + "LeaseRevoke", pb.message(f1=1))  # requests that free space are accepted
        answer = pb.parse(call(LEASE + "LeaseLeases", b""))
        self.assertEqual(len(answer[2]), granted - 1)


class WallClock(LiveTest):
    def lease(self, method, **fields):
        return pb.parse(self.channel.unary_unary(LEASE + method)(pb.message(**fields), timeout=60))

    def lives(self):
        return 2 in pb.parse(self.channel.unary_unary(KV + "Range")(pb.range_of(b"k"), timeout=60))

    @only_vigil  # Go does not use libc for the time
    def test_setting_the_wall_clock_does_not_affect_leases(self):
        source, shim = self.scratch / "shim.c", self.scratch / "shim.so"
        source.write_text(CLOCK_SHIM)
        subprocess.run(["cc", "-shared", "-fPIC", "-o", shim, source], check=True)
        jump = self.scratch / "jump"
        vigil = self.serving(env={
            "LD_PRELOAD": str(shim), "CLOCK_JUMP_FILE": str(jump),
            "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"})
        self.channel = grpc.insecure_channel(f"127.0.0.1:{vigil.port}")
        self.addCleanup(self.channel.close)
        granted = time.monotonic()
        self.lease("LeaseGrant", f1=6, f2=7)
        self.channel.unary_unary(KV + "Put")(pb.message(f1=b"k", f2=b"v", f3=7), timeout=60)
        for set_ahead in (True, False):
            jump.touch() if set_ahead else jump.unlink()
            time.sleep(0.7)
            left, lives = self.lease("LeaseTimeToLive", f1=7).get(3, [0])[0], self.lives()
            self.assertTrue((1 <= left <= 6 and lives) or time.monotonic() - granted > 4.9, (left, lives))
        jump.touch()
        while self.lives():
            self.assertLess(time.monotonic() - granted, 60)
            time.sleep(0.1)
        self.assertGreater(time.monotonic() - granted, 5.5)
        vigil.stop()
        # The server's log shows that the clock was set.
        years = {int(year) for year in re.findall(r'"ts":"(\d{4})-', "".join(vigil.lines))}
        self.assertGreaterEqual(max(years) - min(years), 9, vigil.log)


PTRACE_SEIZE, PTRACE_INTERRUPT, PTRACE_DETACH = 0x4206, 0x4207, 17
WALL = 0x40000000


@contextlib.contextmanager
def stopped_threads(pid, name):
    """Stops the threads of a process whose names have this prefix, and no others."""
    libc = ctypes.CDLL(None, use_errno=True)

    def ptrace(request, tid):
        if libc.ptrace(ctypes.c_long(request), ctypes.c_long(tid), None, None) != 0:
            raise OSError(ctypes.get_errno(), "ptrace")

    tasks = pathlib.Path(f"/proc/{pid}/task").iterdir()
    tids = [int(task.name) for task in tasks if (task / "comm").read_text().startswith(name)]
    assert tids, f"no thread of {pid} is named {name}"
    for tid in tids:
        ptrace(PTRACE_SEIZE, tid)
        ptrace(PTRACE_INTERRUPT, tid)
        os.waitpid(tid, WALL)
    try:
        yield
    finally:
        for tid in tids:
            ptrace(PTRACE_DETACH, tid)


@only_vigil
class Unread(LiveTest):
    """A renewal that waits unread in its socket is not late."""
    TTL = 4

    def test_lease_survives_io_threads_that_were_too_busy_to_read(self):
        server = self.serving(args=["--io-threads=2"])
        channel = grpc.insecure_channel(f"127.0.0.1:{server.port}")
        self.addCleanup(channel.close)

        def left(lease):
            answer = pb.parse(channel.unary_unary(LEASE + "LeaseTimeToLive")(pb.message(f1=lease), timeout=60))
            return answer.get(3, [0])[0]

        for lease in (1, 2):
            channel.unary_unary(LEASE + "LeaseGrant")(pb.message(f1=self.TTL, f2=lease), timeout=60)
        sent, over = threading.Event(), threading.Event()
        self.addCleanup(over.set)

        def renewals():
            yield pb.message(f1=1)
            sent.wait()
            yield pb.message(f1=1)
            over.wait()

        answers = channel.stream_stream(LEASE + "LeaseKeepAlive")(renewals(), timeout=60)
        self.assertEqual(pb.parse(next(answers))[3][0], self.TTL)
        with stopped_threads(server.pid, "vigil-io"):
            sent.set()
            time.sleep(self.TTL + 2)
        self.assertEqual(pb.parse(next(answers))[3][0], self.TTL)
        self.assertGreaterEqual(left(1), 0)
        # The other lease was not renewed: it expires as soon as the threads have read their sockets.
        self.eventually(lambda: left(2) > 1 << 63, message=lambda: "a lease that is not renewed does not expire")
        self.eventually(lambda: left(1) > 1 << 63, message=lambda: "the renewed lease does not expire")


if __name__ == "__main__":
    unittest.main()
