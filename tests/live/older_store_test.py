#!/usr/bin/python3
"""A data directory of a program from before heads of segments had a second copy: it opens with everything that is in it, gets
the copies, and can be repaired and salvaged.

    older_store_test.py make PROGRAM: fills a directory with that program and writes testdata/before-second-heads.tar.gz.
    It was made with the program of commit e8615124."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import time
import unittest

from damage_test import DamagedServer, segments
from kube import text64
from server import LiveTest, SUBJECT, only_alone, only_vigil

ARCHIVE = pathlib.Path(__file__).with_name("testdata") / "before-second-heads.tar.gz"
KEYS, LEASE, REVISION = 30, 4711, 3 * 30 + 11
HEAD_BYTES, TWIN_BYTES = 64, 512


def value(key, turn):
    return f"turn {turn} of key {key:02}"


def fill(server):
    """Two segments, a checkpoint, and a few records after it."""
    server.request("/v3/lease/grant", TTL=100000000, ID=LEASE)
    for turn in range(3):
        for key in range(KEYS):
            server.put_raw(f"/old/{key:02}", value(key, turn), lease=LEASE if key == 7 else 0)
    server.request("/v3/kv/deleterange", key=text64("/old/09"))
    for i in range(3):
        server.put_raw("/large", "x" * (1 << 19))
    server.close()
    server.stop()
    server.start()
    for i in range(6):
        server.put_raw(f"/tail/{i}", f"tail {i}")
    time.sleep(2)  # until the mark is written
    server.kill()


def make(program, scratch):
    server = DamagedServer(scratch / "data", [])
    server.binary = program
    fill(server.start())
    ARCHIVE.parent.mkdir(exist_ok=True)
    with tarfile.open(ARCHIVE, "w:gz") as archive:
        archive.add(scratch / "data", "data")


@only_vigil
@only_alone
class OlderStore(LiveTest):
    def setUp(self):
        super().setUp()
        self.directory = self.scratch / "data"
        self.unpack()

    def unpack(self):
        shutil.rmtree(self.directory, ignore_errors=True)
        with tarfile.open(ARCHIVE) as archive:
            archive.extractall(self.scratch)

    def run_it(self, *args):
        done = subprocess.run([SUBJECT, *args], capture_output=True, text=True, timeout=120, check=False)
        self.assertNotIn("Sanitizer", done.stderr)
        return done

    def has_second_head(self, path):
        data = path.read_bytes()
        return data[:HEAD_BYTES] == data[-TWIN_BYTES:HEAD_BYTES - TWIN_BYTES]

    def spoil_head(self, path):
        with open(path, "r+b") as f:
            f.write(bytes(HEAD_BYTES))

    def check(self, directory, history=True):
        """Every key, with its history."""
        server = DamagedServer(directory, [])
        self.addCleanup(server.kill)
        server.start()
        answer = server.request("/v3/kv/range", key=text64("/old/"), range_end=text64("/old0"))
        self.assertEqual({kv["key"]: kv["value"] for kv in answer["kvs"]},
                         {text64(f"/old/{key:02}"): text64(value(key, 2)) for key in range(KEYS) if key != 9})
        self.assertGreaterEqual(int(answer["header"]["revision"]), REVISION)
        self.assertEqual([server.value(f"/tail/{i}") for i in range(6)], [text64(f"tail {i}") for i in range(6)])
        self.assertEqual(server.value("/large"), text64("x" * (1 << 19)))
        lease = server.request("/v3/lease/timetolive", ID=LEASE, keys=True)
        self.assertEqual((lease["grantedTTL"], lease["keys"]), ("100000000", [text64("/old/07")]))
        if history:
            _, events = server.watch_store("/old/", 2, until=REVISION - 9, range_end=text64("/old0"))
            self.assertEqual([(e.get("type", "PUT"), e["kv"]["key"], e["kv"].get("value")) for e in events],
                             [("PUT", text64(f"/old/{key:02}"), text64(value(key, turn))) for turn in range(3) for key in range(KEYS)]
                             + [("DELETE", text64("/old/09"), None)])
        self.assertEqual(self.run_it("doctor", "--endpoints", server.url).returncode, 0)
        server.close()
        server.stop()
        return server.log

    def test_it_opens_and_gets_second_heads_that_help(self):
        old = segments(self.directory)
        self.assertGreaterEqual(len(old), 2)
        self.assertFalse(any(map(self.has_second_head, old)))
        full = {path for path in old if any(path.read_bytes()[-TWIN_BYTES:])}
        self.check(self.directory)
        for path in (path for path in segments(self.directory) if path not in full):
            self.assertTrue(self.has_second_head(path), path)
            self.spoil_head(path)
        self.assertIn("the head of a segment of the log was damaged", self.check(self.directory))

    def test_heads_without_second_ones_are_repaired(self):
        for path in segments(self.directory):
            self.spoil_head(path)
        done = self.run_it("repair", "--data-dir", str(self.directory))
        self.assertEqual(done.returncode, 3, done.stdout + done.stderr)
        done = self.run_it("repair", "--data-dir", str(self.directory), "--accept-loss")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertRegex(done.stdout, r"was made again: \d damaged heads of segments; nothing is lost")
        self.check(self.directory)

    def test_it_is_salvaged(self):
        for spoils in (False, True):
            self.unpack()
            if spoils:
                os.unlink(self.directory / "FORMAT")
                for path in segments(self.directory):
                    self.spoil_head(path)
            to = self.scratch / f"new{spoils}"
            done = self.run_it("salvage", str(self.directory), "--to", str(to))
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertTrue(re.search(r"lost +0 versions", done.stdout), done.stdout)
            self.check(to)


if __name__ == "__main__":
    if sys.argv[1:2] == ["make"]:
        import tempfile
        with tempfile.TemporaryDirectory() as made:
            make(sys.argv[2], pathlib.Path(made))
    else:
        unittest.main()
