#!/usr/bin/python3
"""The suites of controller-runtime's own packages, unchanged, on a real kube-apiserver, and on one behind a watch tier that all
their clients use (tier_apiserver.py): the same specs must run, pass and fail."""
import json
import os
import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/live"))
sys.path.insert(0, str(ROOT / "tests/kube"))
import envtest_test  # noqa: E402


class TierEnvtest(envtest_test.Envtest):
    test_own_tests = None  # of `vigil assets`
    test_suite_of_manager = None  # it watches nothing

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        (cls.root / "tier").mkdir()
        (cls.root / "tier/kube-apiserver").symlink_to(ROOT / "tests/kube/tier_apiserver.py")
        for name in ("kubectl", "etcd"):
            (cls.root / "tier" / name).symlink_to(cls.root / "real" / name)

    def compare(self, package):
        program, folder = self.compile(package)
        log = self.root / f"{package}-tiers.json"
        os.environ["VIGIL_TIER_REPORT"] = str(log)
        self.addCleanup(os.environ.pop, "VIGIL_TIER_REPORT")
        passed, failed, output = self.run_suite(package, "tier", program, folder)
        tiers = [json.loads(line) for line in log.read_text().splitlines()]
        self.assertTrue(tiers)
        self.assertEqual({tier["end"] for tier in tiers}, {"clean"})
        # Their watches were served from mirrors.
        watches = sum(tier["counts"]["vigil_tier_watches_total"] for tier in tiers)
        print(f"{package}: {watches:.0f} watches from mirrors", file=sys.stderr)
        self.assertGreater(watches, 0)
        there, failed_there, _ = self.run_suite(package, "real", program, folder)
        self.assertEqual(passed | failed, there | failed_there)
        # What fails without the tier as well says nothing about it.
        races = {text for text in failed if text.endswith(envtest_test.RACE)}
        self.assertEqual(failed - failed_there - races, set(), output[-20000:])

    def test_suite_of_builder(self):
        self.compare("builder")

    def test_suite_of_controller(self):
        self.compare("controller")

    def test_suite_of_source(self):
        self.compare("source")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "TierEnvtest", *sys.argv[1:]])
