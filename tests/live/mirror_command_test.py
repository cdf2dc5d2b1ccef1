#!/usr/bin/python3
"""vigil make-mirror: copies, follows, survives the destination's absence, and continues where it ended."""
import re
import signal
import subprocess
import unittest

from client import Client
from server import PEER, SUBJECT, LiveTest, is_etcd, only_vigil

KEYS = 1100  # more than a page


class Mirror(LiveTest):
    def setUp(self):
        super().setUp()
        self.source = self.serving(self.scratch / "source", binary=SUBJECT)
        self.dest = self.serving(self.scratch / "dest", binary=SUBJECT)

    def vigil(self, server, *words):
        done = subprocess.run([SUBJECT, "--endpoints", server.url, *words], capture_output=True, text=True, timeout=60,
                              check=True)
        return done.stdout

    def start(self, *flags, server=None):
        process = subprocess.Popen([SUBJECT, "--endpoints", self.source.url, "make-mirror", *flags, (server or self.dest).url],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def end(self, process):
        """The revision with which it can continue."""
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 5, errors)
        return int(re.search(r"--rev (\d+) continues", errors).group(1))

    def content(self, server, prefix):
        lines = self.vigil(server, "get", "--prefix", prefix).splitlines()
        return dict(zip(lines[::2], lines[1::2]))

    def await_content(self, expected, prefix, server=None):
        self.eventually(lambda: self.content(server or self.dest, prefix) == expected)

    @only_vigil
    def test_copies_follows_and_continues(self):
        client = Client(self.source.port)
        self.addCleanup(client.close)
        expected = {f"/copy/{i:05}": "v" for i in range(KEYS)}
        for i in range(KEYS):
            client.put(b"/app/%05d" % i, b"v")
        client.put(b"/other", b"v")
        process = self.start("--prefix", "/app/", "--dest-prefix", "/copy/")
        self.await_content(expected, "/")
        self.vigil(self.source, "del", "/app/00000")
        client.put(b"/app/new", b"1")
        expected["/copy/new"] = "1"
        del expected["/copy/00000"]
        self.await_content(expected, "/")
        revision = self.end(process)
        # What happens meanwhile is not lost, and nothing is copied again.
        client.put(b"/app/new", b"2")
        self.vigil(self.dest, "del", "/copy/00001")
        process = self.start("--prefix", "/app/", "--dest-prefix", "/copy/", "--rev", str(revision))
        del expected["/copy/00001"]
        expected["/copy/new"] = "2"
        self.await_content(expected, "/")
        self.end(process)

    @only_vigil
    def test_waits_for_the_destination(self):
        client = Client(self.source.port)
        self.addCleanup(client.close)
        client.put(b"/a", b"1")
        process = self.start("--no-dest-prefix", "--prefix", "/", "--command-timeout", "1s")
        self.await_content({"a": "1"}, "a")
        self.dest.kill()
        client.put(b"/a", b"2")
        client.put(b"/b", b"2")
        self.assertIn("does not answer", process.stderr.readline())
        self.dest.start()
        self.await_content({"a": "2"}, "a")
        self.await_content({"b": "2"}, "b")
        self.end(process)

    @only_vigil
    def test_one_revision_is_one_transaction(self):
        process = self.start()
        self.vigil(self.source, "put", "first", "1")
        self.await_content({"first": "1"}, "first")
        subprocess.run([SUBJECT, "--endpoints", self.source.url, "txn"], input="\nput a 1\nput b 1\n\n\n", text=True,
                       capture_output=True, timeout=60, check=True)
        self.await_content({"a": "1", "b": "1", "first": "1"}, "")
        self.end(process)
        fields = self.vigil(self.dest, "get", "a", "c", "-w", "fields")
        self.assertEqual(len(set(re.findall(r'"ModRevision" : (\d+)', fields))), 1, fields)

    def test_real_etcd_is_a_destination(self):
        if is_etcd(SUBJECT):
            self.skipTest("the source is an etcd already")
        etcd = self.serving(self.scratch / "etcd", binary=PEER, args=["--unsafe-no-fsync"])
        self.vigil(self.source, "put", "a", "1")
        process = self.start(server=etcd)
        self.await_content({"a": "1"}, "", server=etcd)
        self.end(process)

    @only_vigil
    def test_compacted_revision_is_an_error(self):
        for i in range(5):
            self.vigil(self.source, "put", "a", str(i))
        self.vigil(self.source, "compaction", "5")
        process = self.start("--rev", "3")
        _, errors = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 1)
        self.assertIn("compacted", errors)


if __name__ == "__main__":
    unittest.main()
