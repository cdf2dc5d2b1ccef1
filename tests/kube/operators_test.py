#!/usr/bin/python3
"""The envtest suites of a project in kubebuilder's layout (tests/kube/kubebuilder) and of operators that others have written
(tests/kube/operators), unchanged, on Vigil and on a real kube-apiserver and etcd: the same tests must pass, each at its only
attempt. tools/build-kube compiles those of the operators."""
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
from server import PEER, SUBJECT  # noqa: E402

KUBE, FOLDER, PROJECT = ROOT / "build/kube", ROOT / "tests/kube/operators", ROOT / "tests/kube/kubebuilder"
SUITE_SECONDS_MAX = 600
# Ginkgo ends a suite before that, so that there is a report.
GINKGO_SECONDS_MAX = 540
# The suites wait one second for most things, which is not enough beside other tests.
EVENTUALLY = "20s"
# Ginkgo shuffles specs and containers at the top level, with the same seed always in the same way. KEDA's specs need a seed that
# begins with KEDA_FIRST: that spec creates a ScaledObject until the webhook accepts it, hence until the cache of KEDA's manager is
# started. Others create one at the first attempt, or call the functions of the webhook directly, which fails before, on any server.
SEED = "241"
KEDA_FIRST = "should validate the so creation when there isn't any hpa"
ENDED = re.compile(r"^\s*--- (PASS|FAIL|SKIP): (\S+)", re.M)


def rows(file):
    return [line for line in (FOLDER / file).read_text().splitlines() if line and not line.startswith("#")]


def left_out(folder):
    """The specs of a folder's suites that are not run: those of which left_out.txt says why."""
    return [name for owner, name in (line.split(" ", 1) for line in rows("left_out.txt")) if owner == folder]


def run(command, folder, assets=""):
    env = dict(os.environ, PATH=os.environ["PATH"] + ":/usr/local/go/bin", CGO_ENABLED="0", KUBEBUILDER_ASSETS=str(assets),
               KUBEBUILDER_CONTROLPLANE_START_TIMEOUT="200s", GOMEGA_DEFAULT_EVENTUALLY_TIMEOUT=EVENTUALLY)
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

    def run_ginkgo(self, program, folder, assets, skipped):
        """Returns the names of the specs that ran, in their order, of those that did not pass, and of those that were left out."""
        report = self.root / "report.json"
        report.unlink(missing_ok=True)
        flags = [f"-ginkgo.json-report={report}", f"-ginkgo.seed={SEED}", f"-ginkgo.timeout={GINKGO_SECONDS_MAX}s"]
        # What a spec's pattern is compared with is the name of the suite, a space, and the texts of the spec.
        flags += [f"-ginkgo.skip= {re.escape(name.replace(' / ', ' '))}$" for name in skipped]
        done = run([str(program), *flags], folder, assets)
        self.assertTrue(report.exists(), done.stdout[-6000:])
        specs = [spec for suite in json.loads(report.read_text()) for spec in suite["SpecReports"] or [] if spec["LeafNodeType"] == "It"]
        for spec in specs:
            spec["Name"] = " / ".join([*(spec["ContainerHierarchyTexts"] or []), spec["LeafNodeText"]])
        left = {spec["Name"] for spec in specs if spec["State"] in ("pending", "skipped")}
        ran = [spec for spec in specs if spec["State"] not in ("pending", "skipped")]
        failed = [spec["Name"] for spec in ran if spec["State"] != "passed" or spec["NumAttempts"] != 1]
        return [spec["Name"] for spec in ran], failed, left, done

    def run_go(self, program, folder, assets):
        done = run([str(program), "-test.v"], folder, assets)
        ended = ENDED.findall(done.stdout)
        return [name for _, name in ended], [name for how, name in ended if how != "PASS"], set(), done

    def compare(self, program, folder, kind, count, skipped=(), first=None):
        """Runs a suite on both servers: the same tests must run, as many as `count` says, and pass, `first` before all others."""
        names = {}
        for assets in ("real", "vigil"):
            if kind == "ginkgo":
                ran, failed, left, done = self.run_ginkgo(program, folder, self.root / assets, skipped)
            else:
                ran, failed, left, done = self.run_go(program, folder, self.root / assets)
            print(f"{program.name} on {assets}: {len(ran) - len(failed)} of {len(ran)} passed", file=sys.stderr)
            if first:
                self.assertEqual(ran[:1], [first])
            self.assertEqual(failed, [], f"on {assets}: {done.stdout[-20000:]}")
            self.assertEqual(done.returncode, 0, f"on {assets}: {done.stdout[-20000:]}")
            self.assertEqual(left, set(skipped))
            self.assertEqual(len(ran), count, f"on {assets}")
            names[assets] = sorted(ran)
        self.assertEqual(names["vigil"], names["real"])

    def suite(self, folder, change=None, first=None):
        """Runs the suites of a folder; `change` returns where to run a suite instead of the module's own folder, `first` is the spec
        that has to run first."""
        suites = [line.split() for line in rows("suites.txt") if line.startswith(folder + " ")]
        self.assertTrue(suites)
        for _, module, package, kind, count in suites:
            place = folder_of(module, FOLDER / folder)
            place = change(place, package) if change else place / package
            program = KUBE / "suites" / f"{folder}-{package.replace('/', '-')}.test"
            with self.subTest(package):
                self.compare(program, place, kind, int(count), left_out(folder), first)

    def test_cluster_api(self):
        self.suite("cluster-api")

    def test_cluster_api_aws(self):
        self.suite("cluster-api-aws")

    def test_keda(self):
        self.suite("keda", first=KEDA_FIRST)

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
        for package, count in (("internal/webhook/v1", 18), ("internal/controller", 1)):
            program = self.root / f"{package.replace('/', '-')}.test"
            done = run(["go", "test", "-c", "-o", str(program), f"./{package}"], PROJECT)
            self.assertEqual(done.returncode, 0, done.stdout[-6000:])
            with self.subTest(package):
                self.compare(program, PROJECT / package, "ginkgo", count)


if __name__ == "__main__":
    unittest.main()
