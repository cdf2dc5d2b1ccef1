#!/usr/bin/python3
"""The envtest suites of a project in kubebuilder's layout (tests/kube/kubebuilder) and of operators that others have written
(tests/kube/operators), unchanged, on Vigil and on a real kube-apiserver and etcd: the same tests must pass. tools/build-kube
compiles those of the operators."""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/live"))
sys.path.insert(0, str(ROOT / "tests/kube"))
from envtest_test import specs  # noqa: E402
from server import PEER, SUBJECT  # noqa: E402

KUBE, FOLDER, PROJECT = ROOT / "build/kube", ROOT / "tests/kube/operators", ROOT / "tests/kube/kubebuilder"
SUITE_SECONDS_MAX = 600
ATTEMPTS = 5
ENDED = re.compile(r"^\s*--- (PASS|FAIL): (\S+)", re.M)


def run(command, folder, assets=""):
    env = dict(os.environ, PATH=os.environ["PATH"] + ":/usr/local/go/bin", CGO_ENABLED="0", KUBEBUILDER_ASSETS=str(assets),
               KUBEBUILDER_CONTROLPLANE_START_TIMEOUT="200s")
    return subprocess.run(command, cwd=folder, env=env, text=True, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          timeout=SUITE_SECONDS_MAX)


def folder_of(module, folder):
    """Where the module cache has the version of a module that the module in this folder uses."""
    done = run(["go", "list", "-m", "-f", "{{.Dir}}", module], folder)
    assert done.returncode == 0, done.stdout
    return pathlib.Path(done.stdout.strip().splitlines()[-1])


class Operators(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(scratch.cleanup)
        cls.root = pathlib.Path(scratch.name)
        subprocess.run([SUBJECT, "assets", str(cls.root / "vigil")], check=True, stdout=subprocess.DEVNULL)
        (cls.root / "real").mkdir()
        for program in (KUBE / "kube-apiserver", KUBE / "kubectl", pathlib.Path(PEER)):
            (cls.root / "real" / program.name).symlink_to(program)

    def results(self, assets, program, folder, kind):
        """What passed, what failed, and what was written."""
        report = self.root / "report.json"
        report.unlink(missing_ok=True)
        # Webhooks of the trainer read what a spec has just written from the cache of an informer, which may not have it yet, on any
        # server; then the spec runs again.
        flags = [f"-ginkgo.json-report={report}", f"-ginkgo.flake-attempts={ATTEMPTS}"] if kind == "ginkgo" else ["-test.v"]
        done = run([str(program), *flags], folder, self.root / assets)
        if kind == "ginkgo":
            self.assertTrue(report.exists(), done.stdout[-6000:])
            ran = list(specs(json.loads(report.read_text())))
            # Of those with the same name, all must have passed.
            failed = {name for name, passed in ran if not passed}
            passed = {name for name, _ in ran} - failed
        else:
            ran = ENDED.findall(done.stdout)
            passed, failed = ({name for how, name in ran if how == wanted} for wanted in ("PASS", "FAIL"))
        print(f"{program.name} on {assets}: {len(passed)} of {len(passed | failed)} passed", file=sys.stderr)
        self.assertTrue(ran, done.stdout[-6000:])
        return passed, failed, done.stdout

    def compare(self, program, folder, kind):
        theirs, their_failures, output = self.results("real", program, folder, kind)
        self.assertTrue(theirs, output[-6000:])
        ours, our_failures, output = self.results("vigil", program, folder, kind)
        self.assertEqual(theirs - ours, set(), output[-20000:])
        self.assertEqual(ours | our_failures, theirs | their_failures)

    def suite(self, folder, change=None):
        """Runs the suites of a folder; `change` returns where to run a suite instead of the module's own folder."""
        rows = [line.split() for line in (FOLDER / "suites.txt").read_text().splitlines() if line.startswith(folder + " ")]
        self.assertTrue(rows)
        for _, module, package, kind in rows:
            place = folder_of(module, FOLDER / folder)
            place = change(place, package) if change else place / package
            with self.subTest(package):
                self.compare(KUBE / "suites" / f"{folder}-{package.replace('/', '-')}.test", place, kind)

    def test_cluster_api(self):
        self.suite("cluster-api")

    def test_cluster_api_aws(self):
        self.suite("cluster-api-aws")

    def test_keda(self):
        self.suite("keda")

    def test_trainer(self):
        """Its module lacks the definitions of others that its Makefile copies from their modules."""
        def change(place, package):
            root = self.root / "trainer"
            (root / package).mkdir(parents=True)
            for name in ("jobset-operator", "scheduler-plugins"):
                (root / "manifests/external-crds" / name).mkdir(parents=True)
            (root / "manifests/base").symlink_to(place / "manifests/base")
            jobset, plugins = (folder_of(f"sigs.k8s.io/{name}", FOLDER / "trainer") for name in ("jobset", "scheduler-plugins"))
            (root / "manifests/external-crds/jobset-operator/crd.yaml").symlink_to(
                jobset / "config/components/crd/bases/jobset.x-k8s.io_jobsets.yaml")
            (root / "manifests/external-crds/scheduler-plugins/crd.yaml").symlink_to(
                plugins / "config/crd/bases/scheduling.x-k8s.io_podgroups.yaml")
            return root / package
        self.suite("trainer", change)

    def test_project_in_the_layout_of_kubebuilder(self):
        for package in ("internal/webhook/v1", "internal/controller"):
            program = self.root / f"{package.replace('/', '-')}.test"
            done = run(["go", "test", "-c", "-o", str(program), f"./{package}"], PROJECT)
            self.assertEqual(done.returncode, 0, done.stdout[-6000:])
            with self.subTest(package):
                self.compare(program, PROJECT / package, "ginkgo")


if __name__ == "__main__":
    unittest.main()
