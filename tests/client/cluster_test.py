#!/usr/bin/python3
"""libvigil with members of a real etcd, which fail while watches run."""
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "live"))
from server import LiveTest  # noqa: E402
from targets import ETCD_37, etcd, run_test, tests_of  # noqa: E402


class ThreeMembers(LiveTest):
    def run_one(self, name):
        target = etcd(self.scratch, ETCD_37, members=3)
        self.addCleanup(target.close)
        self.assertEqual(run_test(name, target.obey, {"VIGIL_ENDPOINTS": target.endpoints}), (0, ""), name)


for test in tests_of("cluster"):
    setattr(ThreeMembers, f"test_{test}", lambda self, name=test: self.run_one(name))

if __name__ == "__main__":
    unittest.main()
