#!/usr/bin/python3
"""The tables of reads (tests/live/kube_versions.txt and kube_options.txt) through a watch tier in front of a real
kube-apiserver: its answers are those of the kube-apiserver, except for those listed here with the reason."""
import contextlib
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/live"))
sys.path.insert(0, str(ROOT / "tests/kube"))
from same_reads_test import SameReads, unittest  # noqa: E402
from tier import Caller, Tier  # noqa: E402


class TierReads(SameReads):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.tier = Tier(cls.directory.name, f"https://127.0.0.1:{cls.apiserver.port}", args=["--upstream-resources=configmaps"])
        cls.tier.start()
        cls.addClassCleanup(cls.tier.stop)

    # The tier answers for its own health, and reads no options there.
    different = {"/healthz?timeout=x"}

    def assertEqual(self, first, second, msg=None):
        if isinstance(second, dict):
            differ = {case for case in second if first.get(case) != second[case]}
            first = {case: first[case] for case in first if case not in differ & self.different}
            second = {case: second[case] for case in second if case not in differ & self.different}
        super().assertEqual(first, second, msg)

    def connect(self):
        return Caller(self.tier.port).connect()


del SameReads  # it is a test of its own file

if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        unittest.main()
