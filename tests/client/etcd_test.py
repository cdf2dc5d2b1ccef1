#!/usr/bin/python3
"""Runs the tests of libvigil against Debian's etcd 3.4 and etcd 3.7, with one member and with three. The tests of a
class share a cluster, because starting one takes longer than most tests."""
import concurrent.futures
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "live"))
from targets import ETCD_34, ETCD_37, common_tests, etcd, run_test, tests_of  # noqa: E402


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


def run_side_by_side(classes):
    """Every class in a process of its own: most of the time the tests wait for elections and leases."""
    def run(name):
        return subprocess.run([sys.executable, __file__, "-v", name], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        results = sorted(pool.map(run, classes), key=lambda result: result.returncode)
    print("".join(result.stdout for result in results))
    sys.exit(any(result.returncode for result in results))


add_tests()
if __name__ == "__main__":
    if any(name in globals() for name in (argument.partition(".")[0] for argument in sys.argv[1:])):
        unittest.main()
    run_side_by_side(["ThreeOf34", "ThreeOf37", "OneOf34", "OneOf37"])
