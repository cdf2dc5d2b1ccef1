#!/usr/bin/python3
"""Runs the tests of libvigil in tests/client/*.c, each with servers of its own. A test asks for what it needs of the
server on standard output ("ask restart") and reads "done" when it has happened."""
import os
import pathlib
import signal
import subprocess
import sys
import threading
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "live"))
from server import SUBJECT, LiveTest  # noqa: E402

SUITE = os.environ.get("VIGIL_CLIENT_SUITE", str(pathlib.Path(SUBJECT).parent / "client_suite"))
TEST_SECONDS = 300


class Driver:
    """One run of one test of the suite."""

    def __init__(self, server, name, env):
        self.server = server
        self.process = subprocess.Popen([SUITE, name], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True, env=dict(os.environ, **env))

    def obey(self, what):
        if what in ("stop", "restart"):
            self.server.stop()
        if what in ("start", "restart"):
            self.server.start()
        if what == "pause":
            os.kill(self.server.pid, signal.SIGSTOP)
        if what == "continue":
            os.kill(self.server.pid, signal.SIGCONT)

    def run(self):
        timer = threading.Timer(TEST_SECONDS, self.process.kill)
        timer.start()
        with self.process:
            for line in self.process.stdout:
                verb, _, what = line.strip().partition(" ")
                assert verb == "ask", line
                self.obey(what)
                self.process.stdin.write("done\n")
                self.process.stdin.flush()
            errors = self.process.stderr.read()
        timer.cancel()
        return self.process.returncode, errors


class Client(LiveTest):
    """The methods are added below: one for each test of the suite, and for each way to drive a client."""

    def check(self, name, **env):
        server = self.serving()
        self.addCleanup(lambda: os.kill(server.pid, signal.SIGCONT) if server.alive() else None)
        code, errors = Driver(server, name, dict(env, VIGIL_ENDPOINTS=server.url)).run()
        self.assertEqual((code, errors), (0, ""), name)


def add_tests():
    names = subprocess.run([SUITE], check=True, capture_output=True, text=True).stdout.split()
    for name in names:
        setattr(Client, f"test_{name}", lambda self, name=name: self.check(name))


add_tests()
if __name__ == "__main__":
    unittest.main()
