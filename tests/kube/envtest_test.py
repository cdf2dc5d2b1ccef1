#!/usr/bin/python3
"""controller-runtime's envtest with the links of `vigil assets`: our tests in tests/envtest, and the suites of
controller-runtime's own packages, unchanged, beside the same suites on a real kube-apiserver and etcd."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/live"))
from server import PEER, SUBJECT  # noqa: E402

MODULE = ROOT / "tests/envtest"
PACKAGE = "sigs.k8s.io/controller-runtime/pkg/"
SUITE_SECONDS_MAX = 800
# Specs that Vigil does not pass yet, one a line: the package, a tab, and the text of the spec.
EXPECTED = MODULE / "expected_failures.txt"


def expected(package):
    rows = [line.split("\t", 1) for line in EXPECTED.read_text().splitlines() if line and not line.startswith("#")]
    return {text for name, text in rows if name == package}


def go(assets, *args):
    env = dict(os.environ, PATH=os.environ["PATH"] + ":/usr/local/go/bin", CGO_ENABLED="0", KUBEBUILDER_ASSETS=str(assets))
    return subprocess.run(["go", "test", "-count=1", "-vet=off", *args], cwd=MODULE, env=env, text=True, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=SUITE_SECONDS_MAX)


def specs(report):
    """The specs of a report of ginkgo that ran: their texts and whether they passed."""
    for suite in json.loads(report.read_text()):
        for spec in suite["SpecReports"]:
            if spec["State"] not in ("pending", "skipped") and spec["LeafNodeType"] == "It":
                yield " / ".join([*(spec["ContainerHierarchyTexts"] or []), spec["LeafNodeText"]]), spec["State"] == "passed"


class Envtest(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.root = pathlib.Path(cls.folder.name)
        subprocess.run([SUBJECT, "assets", str(cls.root / "vigil")], check=True, stdout=subprocess.DEVNULL)
        (cls.root / "real").mkdir()
        for program in (ROOT / "build/kube/kube-apiserver", ROOT / "build/kube/kubectl", pathlib.Path(PEER)):
            (cls.root / "real" / program.name).symlink_to(program)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def run_suite(self, package, assets):
        """Returns which specs ran and passed, and which failed."""
        report = self.root / f"{assets}-{package}.json"
        begin = time.monotonic()
        done = go(self.root / assets, PACKAGE + package, "-args", f"-ginkgo.json-report={report}")
        self.assertTrue(report.exists(), done.stdout[-6000:])
        ran = list(specs(report))
        failed = {text for text, passed in ran if not passed}
        print(f"{package} on {assets}: {len(ran) - len(failed)} of {len(ran)} passed in {time.monotonic() - begin:.0f} s",
              file=sys.stderr)
        return {text for text, passed in ran if passed}, failed, done.stdout

    def compare(self, package):
        passed, failed, output = self.run_suite(package, "vigil")
        there, failed_there, _ = self.run_suite(package, "real")
        self.assertEqual(passed | failed, there | failed_there)
        # What the real programs do not pass either says nothing about Vigil.
        self.assertEqual(failed - expected(package) - failed_there, set(), output[-20000:])
        self.assertEqual(expected(package) & passed, set(), f"these pass now; remove them from {EXPECTED}")

    def test_suite_of_client(self):
        self.compare("client")

    def test_suite_of_cache(self):
        self.compare("cache")

    def test_suite_of_manager(self):
        self.compare("manager")

    def test_own_tests(self):
        done = go(self.root / "vigil", "./...")
        self.assertEqual(done.returncode, 0, done.stdout[-6000:])


if __name__ == "__main__":
    unittest.main()
