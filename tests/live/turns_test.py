#!/usr/bin/python3
"""Turns of the server's threads are measured, and a long turn is logged with the work that was done in it."""
import json
import os
import re
import signal
import threading
import time
import unittest
import urllib.request

from client import Client
from server import LiveTest, only_vigil

LONG = "a turn took long"
SERVING = ("io", "writer")
TRIES = 100


def seconds(text):
    """The seconds of a duration below a minute in Go's format."""
    number, unit = re.fullmatch(r"([\d.]+)(ns|µs|ms|s)", text).groups()
    return float(number) * {"ns": 1e-9, "µs": 1e-6, "ms": 1e-3, "s": 1}[unit]


def long_turns(server):
    return [json.loads(line) for line in list(server.lines) if f'"msg":"{LONG}"' in line]


@only_vigil
class Turns(LiveTest):
    def busy(self, server, done):
        client = Client(server.port)
        self.addCleanup(client.close)
        while not done.is_set():
            client.put(b"key", bytes(1 << 20))

    def test_metrics_have_every_kind_of_thread(self):
        server = self.serving()
        Client(server.port).put(b"key", b"value")
        counts = {}
        # The keeper's first turn may not have ended when the put is answered.
        for _ in range(TRIES):
            page = urllib.request.urlopen(server.url + "/metrics").read().decode()
            counts = dict(re.findall(r'^vigil_turn_duration_seconds_count{thread="(\w+)"} (\d+)$', page, re.M))
            if all(int(counts[thread]) for thread in ("io", "writer", "keeper")):
                break
            time.sleep(0.1)
        for thread in ("io", "writer", "keeper"):
            self.assertGreater(int(counts[thread]), 0, counts)
        self.assertLessEqual({"hasher", "snapshot"}, set(counts))

    def test_a_long_turn_is_logged_with_its_work(self):
        """The process is stopped while it works, so that a turn takes too long."""
        server = self.serving()
        done = threading.Event()
        worker = threading.Thread(target=self.busy, args=(server, done))
        worker.start()
        for _ in range(TRIES):
            time.sleep(0.02)
            os.kill(server.pid, signal.SIGSTOP)
            time.sleep(0.25)
            os.kill(server.pid, signal.SIGCONT)
            if any(line["thread"] in SERVING for line in long_turns(server)):
                break
        done.set()
        worker.join()
        lines = [line for line in long_turns(server) if line["thread"] in SERVING]
        self.assertTrue(lines, server.log)
        for line in lines:
            self.assertEqual(line["level"], "warn")
            self.assertGreaterEqual(seconds(line["took"]), 0.1)
            self.assertLessEqual(seconds(line["cpu"]), seconds(line["took"]))
            self.assertTrue(line["work"])
            self.assertLessEqual(seconds(line["work-took"]), seconds(line["took"]) + 0.02)


if __name__ == "__main__":
    unittest.main()
