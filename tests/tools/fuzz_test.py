#!/usr/bin/python3
"""Every fuzzer has a corpus that runs as a test and source files whose coverage is measured, and tools/run-fuzzers adds up its runs."""
import importlib.machinery
import importlib.util
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
LOADER = importlib.machinery.SourceFileLoader("run_fuzzers", str(ROOT / "tools/run-fuzzers"))
run_fuzzers = importlib.util.module_from_spec(importlib.util.spec_from_loader("run_fuzzers", LOADER))
LOADER.exec_module(run_fuzzers)
# A program in place of a fuzzer: it keeps an input, ends at SIGUSR1, and fails at once if a file exists.
FUZZER = """#!/bin/bash
trap 'echo stat::number_of_executed_units: 7; exit 0' USR1
for argument; do
    case $argument in -artifact_prefix=*) failed=${argument#-artifact_prefix=} ;; *state*corpus) corpus=$argument ;; esac
done
[ ! -e %s ] || { echo bad >"$failed"crash-1; echo "it fails"; exit 77; }
echo x >"$corpus/$RANDOM$RANDOM"
while :; do :; done
"""


class Fuzzers(unittest.TestCase):
    def test_every_fuzzer_has_a_corpus_and_subjects(self):
        rows = dict(line.split(maxsplit=1) for line in (ROOT / "fuzz/subjects.txt").read_text().splitlines() if not line.startswith("#"))
        names = sorted(f.stem.removeprefix("fuzz_") for f in (ROOT / "fuzz").glob("fuzz_*.c"))
        layers = "".join(f.read_text() for f in (ROOT / "src").glob("*/layer.cmake"))
        corpora = sorted(f"{layer}_{name}" for layer, name in re.findall(r"vigil_corpus\((\w+) (\w+)\)", layers))
        self.assertEqual(sorted(rows), names)
        self.assertEqual(corpora, names)
        for name, patterns in rows.items():
            self.assertTrue(any((ROOT / "fuzz/corpus" / name).iterdir()), name)
            for pattern in patterns.split():
                self.assertTrue(list(ROOT.glob(pattern)), f"{name}: {pattern}")


class Runs(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.build = pathlib.Path(scratch.name)
        self.fails = self.build / "fails"
        (self.build / "fuzz").mkdir()
        program = self.build / "fuzz/fuzz_some_thing"
        program.write_text(FUZZER % self.fails)
        program.chmod(0o755)

    def run_fuzzers(self, *arguments):
        return subprocess.run([str(ROOT / "tools/run-fuzzers"), str(self.build), "0.2", *arguments], capture_output=True, text=True,
                              check=False, timeout=120)

    def totals(self):
        return json.loads((self.build / "state/some_thing/totals.json").read_text())

    def test_runs_add_up(self):
        for runs in (1, 2):
            done = self.run_fuzzers()
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertIn(f"{7 * runs} inputs, {runs} kept", done.stdout)
            self.assertEqual((self.totals()["runs"], self.totals()["executions"]), (runs, 7 * runs))
            self.assertGreaterEqual(self.totals()["cpu_seconds"], 0.15 * runs)

    def test_failing_input_is_kept_and_its_replay_is_printed(self):
        self.fails.touch()
        done = self.run_fuzzers()
        self.assertEqual(done.returncode, 1)
        self.assertIn("it fails", done.stdout)
        self.assertRegex(done.stdout, r"replay: .*fuzz_some_thing .*state/some_thing/failed/crash-1")
        self.assertIn("0 passed, 1 failed", done.stdout)
        self.assertTrue((self.build / "state/some_thing/failed/crash-1").exists())

    def test_larger_decoders_get_more_time_and_small_ones_half_of_the_mean(self):
        rows = run_fuzzers.subjects()
        fuzzers = [run_fuzzers.Fuzzer(pathlib.Path(f"fuzz_{name}"), self.build / "state", rows) for name in ("wire_h2", "client_srv")]
        run_fuzzers.divide(fuzzers)
        large, small = (f.share for f in fuzzers)
        self.assertAlmostEqual(large + small, 2)
        self.assertGreater(large, 1.2)
        self.assertGreaterEqual(small, 0.5)

    def test_report_has_the_totals(self):
        report = self.build / "fuzz.json"
        self.assertEqual(self.run_fuzzers("--report", str(report)).returncode, 0)
        made = json.loads(report.read_text())
        self.assertEqual(made["part"], "fuzz")
        self.assertIn(["inputs executed", 7, ""], made["facts"])
        [fuzzers] = made["tables"]
        self.assertEqual((fuzzers["rows"][0][0], fuzzers["rows"][0][2:]), ("some_thing", [7, 1]))
        self.assertFalse(made["rows"][0]["met"])


if __name__ == "__main__":
    unittest.main()
