#!/usr/bin/python3
"""Limits of the administrative commands: many endpoints at once, passwords that are too long, and a load on a terminal."""
import json
import subprocess
import time
import unittest

from server import GENERATOR, IN_FRONT, SUBJECT, LiveTest, only_vigil
from terminal import Terminal, needs_tmux

ENDPOINTS = 40  # more than the command uses at the same time
PASSWORD_MAX = 1024  # of a line; a server refuses more than 72 bytes itself


@only_vigil
class Admin(LiveTest):
    def setUp(self):
        super().setUp()
        self.vigil = self.serving(binary=SUBJECT)

    def run_vigil(self, *words, endpoints=None, stdin=""):
        return subprocess.run([SUBJECT, "--endpoints", endpoints or self.vigil.url, *words], input=stdin, capture_output=True,
                              text=True, timeout=60, check=False)

    def test_silent_endpoints_cost_their_timeout_once(self):
        # Nothing accepts on a socket that listens with a full queue, but these refuse at once; the client tries until the timeout.
        silent = [f"127.0.0.{i + 2}:1" for i in range(ENDPOINTS)]
        begun = time.monotonic()
        done = self.run_vigil("endpoint", "health", "-w", "jsonl", "--command-timeout", "1s",
                              endpoints=",".join([*silent, self.vigil.url]))
        passed = time.monotonic() - begun
        found = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual([one["endpoint"] for one in found], [*silent, self.vigil.url], "the order is that of the flag")
        self.assertEqual([one["health"] for one in found], [False] * ENDPOINTS + [True])
        self.assertEqual(done.returncode, 1)
        self.assertLess(passed, ENDPOINTS, "one after the other would take longer")

    def test_member_that_can_never_join_need_not_be_started(self):
        added = self.run_vigil("member", "add", "c", "--peer-urls", "http://127.0.0.1:1")
        self.assertEqual(added.returncode, 0, added.stderr)
        if IN_FRONT:  # of an etcd, which the member can join
            self.assertNotIn("single Vigil", added.stderr)
            return
        self.assertIn('ETCD_INITIAL_CLUSTER_STATE="existing"', added.stdout)
        self.assertRegex(added.stderr, "^warning: .*single Vigil.* can never join.*\n.*vigil member remove.*--upstream-endpoints")
        report = json.loads(self.run_vigil("doctor", "-w", "json").stdout)
        members, = [f for f in report["findings"] if f["what"] == "members"]
        self.assertEqual(members["level"], "warning")
        self.assertRegex(members["text"], "can never join it: 1")
        self.assertRegex(members["advice"], "^Remove")
        for line in self.run_vigil("member", "list").stdout.splitlines():
            if ", unstarted, " in line:
                self.assertEqual(self.run_vigil("member", "remove", line.split(",")[0]).returncode, 0)
        report = json.loads(self.run_vigil("doctor", "-w", "json").stdout)
        self.assertEqual([f["level"] for f in report["findings"] if f["what"] == "members"], ["good"])
        link = self.scratch / "etcdctl"
        link.symlink_to(SUBJECT)
        as_etcdctl = subprocess.run([str(link), "--endpoints", self.vigil.url, "member", "add", "d", "--peer-urls", "http://127.0.0.1:2"],
                                    capture_output=True, text=True, check=True)
        self.assertEqual(as_etcdctl.stderr, "")

    def test_long_password_is_refused(self):
        for size, code in ((72, 0), (PASSWORD_MAX, 1), (PASSWORD_MAX + 1, 128)):
            done = self.run_vigil("user", "add", f"u{size}", "--interactive=false", stdin="x" * size + "\n")
            self.assertEqual(done.returncode, code, done.stderr)
        self.assertIn("more than 1024 bytes", done.stderr)
        self.assertEqual(self.run_vigil("user", "list").stdout.split(), ["u72"])

    def test_snapshot_is_complete_or_absent(self):
        file = self.scratch / "s.db"
        self.assertEqual(self.run_vigil("snapshot", "save", str(file)).returncode, 0)
        self.assertEqual(file.stat().st_mode & 0o777, 0o600)
        shown = subprocess.run([SUBJECT, "snapshot", "status", str(file), "-w", "json"], capture_output=True, timeout=60, check=True)
        self.assertEqual(json.loads(shown.stdout)["totalKey"], 0)
        self.assertIn("need no server", self.run_vigil("snapshot", "status", str(file)).stderr)
        before = file.read_bytes()
        done = self.run_vigil("snapshot", "save", str(file), "--command-timeout", "500ms", endpoints="127.0.0.1:1")
        self.assertEqual(done.returncode, 5, done.stderr)
        self.assertEqual(file.read_bytes(), before, "an older snapshot is kept")
        self.assertEqual([one.name for one in self.scratch.glob("s.db*")], ["s.db"])

    @needs_tmux
    def test_load_has_a_bar(self):
        terminal = Terminal(self.scratch)
        self.addCleanup(terminal.close)
        for words, end in (("put --duration 100s", "left"), ("load --key-space 100000000 --connections 1 --pipeline 1", "/s, ")):
            terminal.enter(f"clear; {GENERATOR} {words} --endpoint 127.0.0.1:{self.vigil.port}")
            terminal.await_screen(lambda text, end=end: "load             [" in text and end in text)
            terminal.press("C-c")


if __name__ == "__main__":
    unittest.main()
