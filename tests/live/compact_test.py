#!/usr/bin/python3
"""A compaction of a long history takes little memory and leaves the same history as etcd."""
import json
import os
import re
import subprocess
import threading
import unittest
import urllib.request

from server import GENERATOR, LiveTest, only_vigil

REVISIONS, KEYS = 600_000, 20_000
# It takes 4 MB with the address sanitizer; it took 60 to 97 MB when the keeper pinned one state during all of the trimming.
MORE_KB_MAX = 16 << 10


@only_vigil
class Compact(LiveTest):
    def call(self, path, message):
        request = urllib.request.Request(f"{self.vigil.url}/v3/{path}", json.dumps(message).encode())
        with urllib.request.urlopen(request, timeout=120) as answer:
            return json.load(answer)

    def number(self, name):
        with urllib.request.urlopen(f"{self.vigil.url}/metrics", timeout=30) as answer:
            page = answer.read().decode()
        return float(re.search(rf"^{name} (\S+)$", page, re.M).group(1))

    def load(self):
        done = subprocess.run(
            [GENERATOR, "put", "--endpoint", f"127.0.0.1:{self.vigil.port}", "--connections", "4",
             "--pipeline", "100", "--key-space", str(KEYS), "--value-size", "64", "--warmup", "0s",
             "--total", str(REVISIONS), "--json"], capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_compaction_of_a_long_history_takes_little_memory(self):
        # A small quarantine of the address sanitizer, so that freed memory is soon reused and growth is real.
        asan = os.environ.get("ASAN_OPTIONS", "") + ":quarantine_size_mb=1:malloc_context_size=2"
        self.vigil = self.serving(env={"ASAN_OPTIONS": asan})
        self.load()
        newest = self.call("kv/range", {"key": "AA=="})["header"]["revision"]
        before = most = self.vigil.anonymous_kb()
        compaction = threading.Thread(target=self.call, args=(
            "kv/compaction", {"revision": newest, "physical": True}))
        cleaned = self.number("vigil_cleaner_segments_total")
        compaction.start()
        # Cleaning segments of the log is the last step after a compaction.
        while compaction.is_alive() or self.number("vigil_cleaner_segments_total") < cleaned + 2:
            most = max(most, self.vigil.anonymous_kb())
        compaction.join()
        self.assertLess(most - before, MORE_KB_MAX)
        self.check_history(newest)

    def check_history(self, newest):
        hashed = self.call("maintenance/hashkv", {})
        self.assertEqual(hashed["compact_revision"], newest)
        count = int(self.call("kv/range", {"key": "AA==", "range_end": "AA==", "count_only": True})["count"])
        self.assertEqual(count, self.number("etcd_debugging_mvcc_keys_total"))
        self.vigil.kill()
        self.vigil.start()
        again = self.call("maintenance/hashkv", {})
        self.assertEqual((again["hash"], again["compact_revision"]), (hashed["hash"], newest))


if __name__ == "__main__":
    unittest.main()
