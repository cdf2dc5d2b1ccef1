#!/usr/bin/python3
"""Runs the tests of libvigil against Debian's etcd 3.4 and etcd 3.7, with one member and with three. The tests of a
class share a cluster, because starting one takes longer than most tests."""
import pathlib
import shutil
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "live"))
from targets import ETCD_34, ETCD_37, common_tests, etcd, run_side_by_side, run_test, tests_of  # noqa: E402


class OnEtcd:
    binary, members = None, 1

    @classmethod
    def setUpClass(cls):
        cls.scratch = pathlib.Path(tempfile.mkdtemp(prefix="vigil-client-"))
        cls.addClassCleanup(shutil.rmtree, cls.scratch, ignore_errors=True)
        cls.target = etcd(cls.scratch, cls.binary, cls.members)
        cls.addClassCleanup(cls.target.close)

    def run_one(self, name, **env):
        self.addCleanup(self.target.recover)
        env.setdefault("VIGIL_ENDPOINTS", self.target.endpoints)
        env["VIGIL_EMPTY_FIRST"] = "1"
        self.assertEqual(run_test(name, self.target.obey, env), (0, ""), name)

    def run_ported(self, name):
        """Connections can be cut, except those of a client that uses VIGIL_DIRECT."""
        self.run_one(name, VIGIL_ENDPOINTS=self.target.bridged, VIGIL_DIRECT=self.target.endpoints)


class OneOf34(OnEtcd, unittest.TestCase):
    binary = ETCD_34


class ThreeOf34(OnEtcd, unittest.TestCase):
    binary, members = ETCD_34, 3


class OneOf37(OnEtcd, unittest.TestCase):
    binary = ETCD_37


class ThreeOf37(OnEtcd, unittest.TestCase):
    binary, members = ETCD_37, 3


def add_tests():
    for case in (OneOf34, ThreeOf34, OneOf37, ThreeOf37):
        for name in common_tests():
            setattr(case, f"test_{name}", lambda self, name=name: self.run_one(name))
        for name in tests_of("ported") + (tests_of("ported-cluster") if case.members > 1 else []):
            setattr(case, f"test_{name}", lambda self, name=name: self.run_ported(name))


add_tests()
if __name__ == "__main__":
    run_side_by_side(__file__, [ThreeOf34, ThreeOf37, OneOf34, OneOf37])
