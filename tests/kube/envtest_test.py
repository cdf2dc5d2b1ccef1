#!/usr/bin/python3
"""controller-runtime's envtest with the links of `vigil assets`: our tests in tests/envtest, and the suites of
controller-runtime's own packages, unchanged, beside the same suites on a real kube-apiserver and etcd."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/live"))
from server import PEER, SUBJECT  # noqa: E402

MODULE = ROOT / "tests/envtest"
PACKAGE = "sigs.k8s.io/controller-runtime/pkg/"
SUITE_SECONDS_MAX = 800
START_TIMEOUT = "200s"
# Specs that Vigil does not pass yet, one a line: the package, a tab, and the text of the spec.
EXPECTED = MODULE / "expected_failures.txt"
# Expects that a wait for an informer can be cancelled. There is no wait if the list has arrived before the spec looks, and then
# the spec fails, on any server.
RACE = "should allow for get informer to be cancelled"


def expected(package):
    rows = [line.split("\t", 1) for line in EXPECTED.read_text().splitlines() if line and not line.startswith("#")]
    return {text for name, text in rows if name == package}


def run(assets, command, cwd):
    # A real kube-apiserver takes about 10 s to start and envtest waits 20 s, which is not enough beside other tests.
    env = dict(os.environ, PATH=os.environ["PATH"] + ":/usr/local/go/bin", CGO_ENABLED="0", KUBEBUILDER_ASSETS=str(assets),
               KUBEBUILDER_CONTROLPLANE_START_TIMEOUT=START_TIMEOUT)
    return subprocess.run(command, cwd=cwd, env=env, text=True, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          timeout=SUITE_SECONDS_MAX)


def go(assets, *args):
    return run(assets, ["go", *args], MODULE)


def specs(suites):
    """The specs of a report of ginkgo that ran: their texts and whether they passed."""
    for suite in suites:
        for spec in suite["SpecReports"] or []:
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

    def compile(self, package):
        """Returns the program of the package's tests, and the folder in which it must run."""
        program = self.root / f"{package}.test"
        done = go("", "test", "-c", "-vet=off", "-o", str(program), PACKAGE + package)
        self.assertEqual(done.returncode, 0, done.stdout[-6000:])
        return program, go("", "list", "-f", "{{.Dir}}", PACKAGE + package).stdout.strip()

    def run_suite(self, package, assets, program, folder):
        """Returns which specs ran and passed, and which failed."""
        report = self.root / f"{assets}-{package}.json"
        done = run(self.root / assets, [str(program), f"-ginkgo.json-report={report}"], folder)
        self.assertTrue(report.exists(), done.stdout[-6000:])
        suites = json.loads(report.read_text())
        ran = list(specs(suites))
        failed = {text for text, passed in ran if not passed}
        print(f"{package} on {assets}: {len(ran) - len(failed)} of {len(ran)} passed in "
              f"{sum(suite['RunTime'] for suite in suites) / 1e9:.0f} s", file=sys.stderr)
        self.assertTrue(ran, f"no spec ran on {assets}: {done.stdout[-6000:]}")
        return {text for text, passed in ran if passed}, failed, done.stdout

    def compare(self, package):
        program, folder = self.compile(package)
        passed, failed, output = self.run_suite(package, "vigil", program, folder)
        there, failed_there, _ = self.run_suite(package, "real", program, folder)
        self.assertEqual(passed | failed, there | failed_there)
        # What the real programs do not pass either says nothing about Vigil.
        races = {text for text in failed if text.endswith(RACE)}
        self.assertEqual(failed - expected(package) - failed_there - races, set(), output[-20000:])
        self.assertEqual(expected(package) & passed, set(), f"these pass now; remove them from {EXPECTED}")

    def test_suite_of_client(self):
        self.compare("client")

    def test_suite_of_cache(self):
        self.compare("cache")

    def test_suite_of_manager(self):
        self.compare("manager")

    def test_own_tests(self):
        done = go(self.root / "vigil", "test", "-count=1", "-vet=off", "./...")
        self.assertEqual(done.returncode, 0, done.stdout[-6000:])


if __name__ == "__main__":
    unittest.main()
