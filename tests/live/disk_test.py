#!/usr/bin/python3
"""Full and failing disks: writes fail with a clear error or the process stops, and no acknowledged write is lost."""
import json
import os
import pathlib
import re
import resource
import shutil
import subprocess
import time
import unittest
import urllib.error
import urllib.request

import grpc

import protobuf as pb
from client import Client
from server import SUBJECT, WAIT_SECONDS, LiveTest, free_port, only_vigil

DISK_MB = 400
CLEAR = (grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.UNAVAILABLE)


def put_until_failure(client, count, size, test):
    """Puts until one fails; returns that error, or None."""
    for i in range(count):
        try:
            client.put(b"k%06d" % i, b"%06d" % i + b"v" * size, timeout=60)
        except grpc.RpcError as e:
            test.assertIn(e.code(), CLEAR, e)
            return e
    return None


class Faulty(LiveTest):
    def check_recovery(self, directory, acked):
        server = self.server(directory).start()
        client = Client(server.port)
        self.addCleanup(client.close)
        client.check_acked(self, acked)
        client.put(b"again", b"1")
        client.close()
        server.stop()

    def settled(self, server, failure):
        """Whether the server still runs after a failed write. If it ended, it must have stopped by itself, with an error."""
        if failure is not None and failure.code() == grpc.StatusCode.UNAVAILABLE:
            try:
                server.wait(5)
            except subprocess.TimeoutExpired:
                pass
        if server.alive():
            return True
        self.check_end(server)
        return False

    def check_end(self, server):
        self.assertNotIn("Sanitizer", server.log)
        self.assertNotIn("runtime error", server.log)
        self.assertGreater(server.wait(), 0, server.log)


@only_vigil
class DiskFull(Faulty):
    def setUp(self):
        super().setUp()
        if os.geteuid() != 0:
            self.skipTest("mounting a small disk needs root")
        image, self.disk = self.scratch / "disk.img", self.scratch / "disk"
        self.disk.mkdir()
        with open(image, "wb") as f:
            f.truncate(DISK_MB << 20)
        subprocess.run(["mkfs.ext4", "-q", "-m", "0", str(image)], check=True)
        mounted = subprocess.run(["mount", "-o", "loop", str(image), str(self.disk)], capture_output=True)
        if mounted.returncode != 0:
            self.skipTest(f"no loop mounts here: {mounted.stderr.decode().strip()}")
        self.addCleanup(subprocess.run, ["umount", "-l", str(self.disk)], check=True)

    def fill_disk(self, leave_mb):
        """Fills the disk with an unrelated file, except for this much."""
        filler = self.disk / "filler"
        with open(filler, "wb") as f:
            size = 0
            for step in (1 << 20, 4096):
                try:
                    while True:
                        os.posix_fallocate(f.fileno(), size, step)
                        size += step
                except OSError:
                    pass
            f.truncate(size - (leave_mb << 20))
        return filler

    def test_disk_fills_up_under_writes(self):
        server = self.server(self.disk / "data").start()
        client = Client(server.port)
        self.addCleanup(client.close)
        client.put(b"first", b"1")
        filler = self.fill_disk(2)
        failure = put_until_failure(client, 8000, 100_000, self)
        self.assertIsNotNone(failure, "the disk never filled up")
        if self.settled(server, failure):
            client.check_acked(self)  # reads still work
            self.assertIn("space", failure.details())
        server.kill()
        filler.unlink()
        self.check_recovery(self.disk / "data", client.acked)

    def test_start_on_a_full_disk(self):
        server = self.server(self.disk / "data").start()
        client = Client(server.port)
        for i in range(100):
            client.put(b"k%d" % i, b"v" * 1000)
        server.kill()
        client.close()
        filler = self.fill_disk(0)
        second = self.server(self.disk / "data")
        second.begin()
        if second.becomes_ready(10):
            reader = Client(second.port)
            self.addCleanup(reader.close)
            reader.check_acked(self, client.acked)
        elif not second.alive():
            self.check_end(second)
        second.kill()
        filler.unlink()
        self.check_recovery(self.disk / "data", client.acked)

    def test_first_start_on_a_full_disk(self):
        filler = self.fill_disk(0)
        server = self.server(self.disk / "data")
        code, text = server.refuse()
        self.assertGreater(code, 0)
        self.assertRegex(text.lower(), "space|full")
        filler.unlink()
        self.check_recovery(self.disk / "data", {})


class WithSmallDisk(Faulty):
    """A disk that the server itself fills."""
    SIZE_MB = 24
    VALUE = b"v" * 20_000
    args = ()

    def setUp(self):
        super().setUp()
        if os.geteuid() != 0:
            self.skipTest("mounting a small disk needs root")
        self.disk = self.scratch / "disk"
        self.disk.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={self.SIZE_MB}m", "vigil", str(self.disk)],
                       check=True)
        self.addCleanup(subprocess.run, ["umount", "-l", str(self.disk)], check=True)
        self.vigil = self.serving(self.disk / "data", args=self.args)
        self.client = Client(self.vigil.port)
        self.addCleanup(self.client.close)

    def fill(self):
        """Puts until the disk is full; the error must say exactly that."""
        failure = put_until_failure(self.client, 5000, len(self.VALUE), self)
        self.assertIsNotNone(failure, "the disk never filled up")
        self.assertEqual(failure.code(), grpc.StatusCode.RESOURCE_EXHAUSTED)
        self.assertEqual(failure.details(), "vigil: no space left on the disk of the data directory")
        self.assertTrue(self.vigil.alive())

    def await_put(self, seconds=60):
        end = time.monotonic() + seconds
        while True:
            try:
                return self.client.put(b"again", self.VALUE)
            except grpc.RpcError as error:
                self.assertEqual(error.code(), grpc.StatusCode.RESOURCE_EXHAUSTED, error)
                self.assertLess(time.monotonic(), end, "there is free space, but writes are still refused")
                time.sleep(0.1)


@only_vigil
class SmallDisk(WithSmallDisk):
    """It gets free space again."""

    def written_bytes(self):
        lines = pathlib.Path(f"/proc/{self.vigil.pid}/io").read_text().splitlines()
        return int(dict(line.split(": ") for line in lines)["wchar"])

    def test_refused_writes_cost_little_and_reads_continue(self):
        self.fill()
        before = self.written_bytes()
        for i in range(300):
            with self.assertRaises(grpc.RpcError):
                self.client.put(b"more", self.VALUE)
        self.assertLess(self.written_bytes() - before, 8 << 20)  # no new segment is written for each refusal
        self.client.check_acked(self)

    def test_enlarged_disk_is_used_at_once(self):
        self.fill()
        subprocess.run(["mount", "-o", "remount,size=64m", str(self.disk)], check=True)
        self.await_put()
        self.client.check_acked(self)

    def test_deleting_and_compacting_frees_space(self):
        self.fill()
        acked, self.client.acked = self.client.acked, {}
        keys = sorted(acked)
        # Deletions at the compacted revision itself are kept for watches from there.
        self.client.call("DeleteRange", pb.range_of(keys[0], keys[-2]))
        self.client.call("DeleteRange", pb.range_of(keys[-1]))
        self.client.call("Compact", pb.message(f1=self.client.revision(), f2=1), timeout=60)
        self.await_put()
        last = keys[-2]
        self.assertEqual(self.client.get(last)[0], acked[last][0])
        self.vigil.stop()
        self.check_recovery(self.disk / "data", self.client.acked)

    def test_deleting_everything_at_the_compacted_revision_frees_space(self):
        self.fill()
        acked, self.client.acked = self.client.acked, {}
        keys = sorted(acked)
        self.client.call("DeleteRange", pb.range_of(keys[0], keys[-1] + b"\0"))
        self.client.call("Compact", pb.message(f1=self.client.revision(), f2=1), timeout=60)
        self.await_put()
        self.vigil.stop()
        self.check_recovery(self.disk / "data", self.client.acked)

    def test_acknowledged_writes_survive_a_crash_on_a_full_disk(self):
        self.fill()
        self.vigil.kill()
        subprocess.run(["mount", "-o", "remount,size=64m", str(self.disk)], check=True)
        self.check_recovery(self.disk / "data", self.client.acked)


@only_vigil
class SmallDiskIsShown(WithSmallDisk):
    """What an operator sees of a full disk."""

    def setUp(self):
        self.kube = f"http://127.0.0.1:{free_port()}"
        self.args = ["--listen-kube-urls", self.kube]
        super().setUp()

    def fetch(self, url):
        """The status and the text of an answer, whatever it is."""
        try:
            with urllib.request.urlopen(url, timeout=WAIT_SECONDS) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as refused:
            return refused.code, refused.read().decode()

    def command(self, *args):
        done = subprocess.run([SUBJECT, *args, "--endpoints", self.vigil.url], capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr

    def metric(self, name):
        line, = [line for line in self.fetch(f"{self.vigil.url}/metrics")[1].splitlines() if line.startswith(f"{name} ")]
        return float(line.split()[1])

    def findings(self):
        report = json.loads(self.command("doctor", "-w", "json")[1])
        return [f for f in report["findings"] if f["level"] == "bad" and f["what"] in ("space", "alarm", "error")]

    def check_shown(self, is_full):
        """Everything that an operator may look at."""
        free = r"\(\d+ bytes are free\).*delete keys and compact" if is_full else ""
        code, health = self.fetch(f"{self.vigil.url}/health")
        self.assertEqual((code, json.loads(health)["health"]), (503, "false") if is_full else (200, "true"))
        self.assertRegex(json.loads(health)["reason"], f"^ALARM NOSPACE: .*{free}" if is_full else "^$")
        self.assertEqual(self.fetch(f"{self.vigil.url}/health?exclude=NOSPACE")[0], 200)
        code, ready = self.fetch(f"{self.vigil.url}/readyz")
        self.assertEqual(code, 503 if is_full else 200)
        self.assertRegex(ready, rf"\[\+\]linearizable_read ok[^$]*\[-\]disk failed: .*{free}" if is_full else "^ok\n$")
        for path, verdict in (("/readyz/disk", code), ("/readyz?exclude=disk", 200), ("/livez", 200)):
            self.assertEqual(self.fetch(self.vigil.url + path)[0], verdict, path)
        for path in "/readyz", "/healthz", "/readyz/etcd":
            code, text = self.fetch(self.kube + path)
            self.assertEqual(code, 500 if is_full else 200, path)
            self.assertRegex(text, free or "ok")
        self.assertEqual(self.fetch(f"{self.kube}/livez")[0], 200)
        alarms = self.command("alarm", "list")
        self.assertRegex(alarms[1], r"^memberID:\d+ alarm:NOSPACE *\n$" if is_full else "^$")
        self.assertEqual(self.command("endpoint", "health")[0], 1 if is_full else 0)
        self.assertEqual(self.metric("vigil_disk_full"), is_full)
        found = self.findings()
        self.assertEqual({f["what"] for f in found}, {"space", "alarm", "error"} if is_full else set())
        for f in found:
            if f["what"] == "space":
                self.assertRegex(f["text"], "is full .* are free")
                self.assertIn("compact", f["advice"])

    def await_space(self):
        end = time.monotonic() + WAIT_SECONDS
        while self.metric("vigil_disk_full"):
            self.assertLess(time.monotonic(), end, "there is space, but the disk is still called full")
            time.sleep(0.1)

    def test_full_disk_is_shown_until_there_is_space(self):
        self.check_shown(False)
        self.fill()
        self.check_shown(True)
        self.assertLess(self.metric("vigil_disk_free_bytes"), 1 << 20)
        # The alarm is not stored, so it cannot be disarmed, and does not outlive the full disk.
        self.assertEqual(self.command("alarm", "disarm")[0], 0)
        self.check_shown(True)
        subprocess.run(["mount", "-o", "remount,size=64m", str(self.disk)], check=True)
        self.await_space()
        self.check_shown(False)
        self.assert_logged(self.vigil, "has space again")
        self.assertGreater(self.metric("vigil_disk_free_bytes"), 1 << 20)
        self.await_put()

    def test_idle_threads_do_not_keep_space_from_being_freed(self):
        self.vigil.stop()
        self.vigil = self.serving(self.disk / "data", args=[*self.args, "--io-threads=4"])
        self.client = Client(self.vigil.port)  # on one thread; the others have nothing to do after the start
        self.addCleanup(self.client.close)
        self.fill()
        keys = sorted(self.client.acked)
        self.client.acked = {}
        self.client.call("DeleteRange", pb.range_of(keys[0], keys[-2]))
        self.client.call("DeleteRange", pb.range_of(keys[-1]))
        self.client.call("Compact", pb.message(f1=self.client.revision(), f2=1), timeout=60)
        self.await_put()

    def test_full_disk_is_shown_after_a_start_without_any_put(self):
        self.fill()
        self.vigil.stop()
        self.vigil.start()
        end = time.monotonic() + WAIT_SECONDS
        while not self.metric("vigil_disk_full"):
            self.assertLess(time.monotonic(), end, "the disk is full, and this is not shown")
            time.sleep(0.1)
        self.check_shown(True)
        subprocess.run(["mount", "-o", "remount,size=64m", str(self.disk)], check=True)
        self.await_space()
        self.check_shown(False)


@only_vigil
class FileSizeLimit(Faulty):
    def test_limit_on_file_size(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))

        server = self.server(limits=limit)
        server.begin()
        if not server.becomes_ready():
            self.assertFalse(server.alive(), server.log)
            self.check_end(server)
            return
        client = Client(server.port)
        self.addCleanup(client.close)
        put_until_failure(client, 200, 100_000, self)
        server.kill()
        self.check_recovery(self.scratch / "data", client.acked)


@only_vigil
class InjectedErrors(Faulty):
    """strace makes the nth system call of a kind fail, for each n in turn."""
    named = 0  # ends of a server that have named the file

    def inject(self, call, error, when):
        directory = self.scratch / f"{call}-{error}-{when}"
        trace = self.scratch / "trace"
        server = self.server(
            directory, wrap=["strace", "-f", "-qq", "-o", str(trace), "-e", f"trace={call}",
                             "-e", f"inject={call}:error={error}:when={when}"],
            env={"ASAN_OPTIONS": "detect_leaks=0:abort_on_error=0"})
        server.begin()
        client = Client(server.port)
        self.addCleanup(client.close)
        if server.becomes_ready():
            if not self.settled(server, put_until_failure(client, 40, 2000, self)) and "the log could not" in server.log:
                self.assert_logged(server, re.compile(r"(writ|sync)ing /\S+/[0-9a-f]{16}\.seg: .*see in the kernel's log .* start again"))
                self.named += 1
        else:
            self.check_end(server)
        injected = "INJECTED" in trace.read_text()
        server.kill()
        self.check_recovery(directory, client.acked)
        shutil.rmtree(directory)
        return injected

    def in_turn(self, call, error, highest):
        for when in range(1, highest + 1):
            with self.subTest(call=call, error=error, when=when):
                if not self.inject(call, error, when):
                    return  # the server makes fewer calls

    def test_sync_of_data_fails(self):
        self.in_turn("fdatasync", "EIO", 12)
        self.assertGreater(self.named, 0)

    def test_sync_of_file_fails(self):
        self.in_turn("fsync", "EIO", 6)

    def test_write_at_offset_fails(self):
        self.in_turn("pwrite64", "EIO", 12)

    def test_write_at_offset_fails_for_lack_of_space(self):
        self.in_turn("pwrite64", "ENOSPC", 8)

    def test_gathered_write_fails(self):
        self.in_turn("pwritev", "EIO", 6)
        self.in_turn("pwritev2", "EIO", 6)

    def test_allocation_fails(self):
        self.in_turn("fallocate", "ENOSPC", 3)

    def test_rename_fails(self):
        self.in_turn("rename,renameat,renameat2", "EIO", 3)


if __name__ == "__main__":
    unittest.main()
