#!/usr/bin/python3
"""Compares Vigil's implementation of the Common Expression Language with Kubernetes' environment of cel-go (tests/kube/celoracle):
the tests of the language's specification, the expressions in the tests of Kubernetes' libraries, the inputs of our fuzzers, and random
expressions with a new seed in each run. Then definitions with random schemas and rules, and random objects, with Kubernetes' own
validators (tests/kube/ruleoracle). VIGIL_ORACLE_SEED= repeats one, VIGIL_ORACLE_COUNT= makes it longer."""
import os
import pathlib
import random
import subprocess
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SUBJECT = pathlib.Path(os.environ.get("VIGIL_BIN", ROOT / "build-test/vigil"))
COUNT = int(os.environ.get("VIGIL_ORACLE_COUNT", "1500"))


def go_run(package, what, program, *arguments):
    done = subprocess.run(["go", "run", package, what, str(SUBJECT.parent / "unit" / program), *arguments], cwd=ROOT / "tests/kube",
                          capture_output=True, text=True, env={**os.environ, "PATH": os.environ["PATH"] + ":/usr/local/go/bin"})
    print(done.stdout.strip().rpartition("\n")[2], flush=True)
    return done


def celoracle(what, *arguments):
    return go_run("./celoracle", what, "cel_oracle", *arguments)


class Cel(unittest.TestCase):
    def test_the_specification_is_followed_as_by_kubernetes(self):
        done = celoracle("conformance", "celoracle/conformance.txt")
        self.assertEqual(done.returncode, 0, f"{done.stdout[-4000:]}{done.stderr[-2000:]}")

    def test_the_expressions_of_kubernetes_own_tests_have_the_same_values_and_costs(self):
        done = celoracle("tables")
        self.assertEqual(done.returncode, 0, f"{done.stdout[-4000:]}{done.stderr[-2000:]}")

    def test_inputs_of_fuzzers_have_the_same_types_and_values(self):
        """Those of earlier runs on this machine as well (tools/run-fuzzers)."""
        folders = [*(ROOT / "fuzz/corpus").glob("cel_*"), *(ROOT / "build-fuzz/state").glob("cel_*/corpus")]
        done = celoracle("corpus", *map(str, folders))
        self.assertEqual(done.returncode, 0, f"{done.stdout[-4000:]}{done.stderr[-2000:]}")

    def test_random_expressions_have_the_same_trees_types_values_and_costs(self):
        seed = os.environ.get("VIGIL_ORACLE_SEED", str(random.randrange(1 << 31)))
        done = celoracle("check", str(20 * COUNT), seed)
        self.assertEqual(done.returncode, 0, f"seed {seed}: {done.stdout[-4000:]}{done.stderr[-2000:]}")

    def test_random_rules_decide_alike(self):
        seed = os.environ.get("VIGIL_ORACLE_SEED", str(random.randrange(1 << 31)))
        done = go_run("./ruleoracle", "check", "kube_oracle", str(4 * COUNT), seed)
        self.assertEqual(done.returncode, 0, f"seed {seed}: {done.stdout[-4000:]}{done.stderr[-2000:]}")


if __name__ == "__main__":
    unittest.main()
