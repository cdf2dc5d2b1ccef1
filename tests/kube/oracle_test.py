#!/usr/bin/python3
"""Compares Vigil with Kubernetes' own code (tests/kube/oracle) on random valid, invalid and damaged objects, documents,
patches and applies, with a new seed in each run. VIGIL_ORACLE_SEED= repeats one, VIGIL_ORACLE_COUNT= makes it longer."""
import os
import pathlib
import random
import subprocess
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SUBJECT = pathlib.Path(os.environ.get("VIGIL_BIN", ROOT / "build-test/vigil"))
COUNT = int(os.environ.get("VIGIL_ORACLE_COUNT", "1500"))


class Oracle(unittest.TestCase):
    def test_kubernetes_own_code_agrees(self):
        program = SUBJECT.parent / "unit/kube_oracle"
        seed = os.environ.get("VIGIL_ORACLE_SEED", str(random.randrange(1 << 31)))
        done = subprocess.run(["go", "run", "./oracle", "check", str(program), str(COUNT), seed],
                              cwd=ROOT / "tests/kube", capture_output=True, text=True,
                              env={**os.environ, "PATH": os.environ["PATH"] + ":/usr/local/go/bin"})
        self.assertEqual(done.returncode, 0, f"seed {seed}: {done.stdout[-4000:]}{done.stderr[-2000:]}")


if __name__ == "__main__":
    unittest.main()
