#!/usr/bin/python3
"""The soak itself: its rule, and that a run finds a client that takes more and more. The runs are short, so they show that every
part works; whether a server levels off is the question of a long one (make soak)."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/soak"))
sys.dont_write_bytecode = True

import series  # noqa: E402

SECONDS = 24
RUN_SECONDS = 600


def points(function, count=300):
    return [(at, function(at)) for at in range(count)]


class Rules(unittest.TestCase):
    def judge(self, name, function):
        return series.judge(name, points(function), 300).levels_off

    def test_what_stays_the_same_levels_off(self):
        for name in series.RULES:
            self.assertTrue(self.judge(name, lambda at: 100), name)

    def test_what_grows_at_first_levels_off(self):
        self.assertTrue(self.judge("anonymous memory", lambda at: min(at, 100)))

    def test_what_grows_without_end_does_not(self):
        for name in series.RULES:
            self.assertFalse(self.judge(name, lambda at: 100 + 3 * at), name)

    def test_restarts_do_not_hide_growth(self):
        self.assertFalse(self.judge("anonymous memory", lambda at: at % 50 and 20 + at))

    def test_saw_teeth_level_off(self):
        self.assertTrue(self.judge("disk", lambda at: 100 + 10 * (at % 30)))

    def test_single_sample_does_not_count(self):
        self.assertTrue(self.judge("descriptors", lambda at: 10_000 if at == 250 else 100))

    def test_busy_machine_does_not_make_latencies_grow(self):
        self.assertTrue(self.judge("put, p99", lambda at: 5 if at % 3 == 0 else 5 + at))

    def test_slower_server_makes_latencies_grow(self):
        self.assertFalse(self.judge("put, p50", lambda at: 1 if at < 200 else 5))

    def test_third_without_samples_gives_no_verdict(self):
        self.assertIsNone(series.judge("disk", [(at, 1) for at in range(150)], 300))


class Runs(unittest.TestCase):
    def soak(self, *flags):
        environment = {name: value for name, value in os.environ.items() if name != "VIGIL_ENGINE"}
        server = os.environ.get("VIGIL_BIN", str(ROOT / "build-test/vigil"))
        return subprocess.run([str(ROOT / "tests/soak/run"), "--seconds", str(SECONDS), "--vigil", server, *flags],
                              capture_output=True, text=True, timeout=RUN_SECONDS, env=environment)

    def test_every_client_and_every_operator_gets_its_turn(self):
        with tempfile.TemporaryDirectory() as directory:
            file = pathlib.Path(directory, "soak.json")
            done = self.soak("--report", str(file))
            self.assertTrue(file.exists(), done.stdout + done.stderr)
            report = json.loads(file.read_text())
        facts = {name: number for name, number, _ in report["facts"]}
        for name in ("puts", "gets", "lists", "leases", "events over etcd's API", "events over the Kubernetes API",
                     "Kubernetes objects created", "clients that left in the middle", "compactions", "defragmentations", "snapshots",
                     "certificates replaced", "restarts after SIGTERM", "restarts after kill -9"):
            self.assertGreater(facts.get(name, 0), 0, done.stdout)
        self.assertEqual({row["row"].split(" in the last")[0] for row in report["rows"]}, set(series.RULES))
        self.assertTrue(all(plot["series"][0]["points"] for plot in report["plots"]))

    def test_planted_connections_are_found(self):
        done = self.soak("--plant", "connections")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stdout, "descriptors .* GROWS")

    def test_planted_keys_are_found(self):
        done = self.soak("--plant", "keys")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stdout, "disk .* GROWS")


if __name__ == "__main__":
    unittest.main()
