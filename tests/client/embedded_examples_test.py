#!/usr/bin/python3
"""Runs the programs of examples/embedded, which have the store inside them, with the library in the build directory."""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "live"))
from server import ROOT, SUBJECT  # noqa: E402

BUILD = pathlib.Path(SUBJECT).parent
LIBRARY = BUILD / "libvigil-embed.so.1"
SANITIZED = b"__asan_init" in LIBRARY.read_bytes()
EXAMPLES = ROOT / "examples/embedded"


class EmbeddedExamples(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None)
        self.addCleanup(self.scratch.cleanup)

    def run_program(self, *words, **env):
        done = subprocess.run(list(map(str, words)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120,
                              env=dict(os.environ, LD_LIBRARY_PATH=str(BUILD), **env))
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout

    def test_jobs(self):
        program = f"{self.scratch.name}/jobs"
        subprocess.run(["cc", "-std=gnu99", "-Wall", "-Wextra", "-Werror", f"-I{ROOT}/include", "-o", program,
                        str(EXAMPLES / "jobs.c"), *(["-fsanitize=address,undefined"] if SANITIZED else []), f"-L{BUILD}",
                        "-lvigil-embed", "-pthread"], check=True, timeout=120)
        for _ in range(2):
            self.assertEqual(self.run_program(program, f"{self.scratch.name}/data", 40), "40 jobs are done\n")

    def test_store(self):
        """Python is not built with the sanitizers, so that their library must be loaded first; it is the interpreter
        whose memory it would then examine at the end."""
        env = {}
        if SANITIZED:
            asan = subprocess.run(["cc", "-print-file-name=libasan.so"], check=True, stdout=subprocess.PIPE, text=True)
            env = {"LD_PRELOAD": asan.stdout.strip(), "ASAN_OPTIONS": "detect_leaks=0"}
        for start in (1, 2):
            text = self.run_program("/usr/bin/python3", EXAMPLES / "store.py", f"{self.scratch.name}/data", LIBRARY, **env)
            self.assertRegex(text, rf"^start {start}, seen starts={start} at revision {start + 1}\n$")

    def test_every_example_has_a_test(self):
        names = {path.stem for path in EXAMPLES.iterdir() if path.is_file()}
        self.assertEqual({f"test_{name}" for name in names} - set(dir(self)), set())


if __name__ == "__main__":
    unittest.main()
