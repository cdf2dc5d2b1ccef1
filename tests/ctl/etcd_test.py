#!/usr/bin/python3
"""The link etcdctl beside the original, on a real etcd: see compare.py."""
import unittest

from compare import PEER, CompareTest
from tables import add_tests


class OnEtcd(CompareTest):
    binary = PEER
    part = "3.4"


add_tests(OnEtcd)
if __name__ == "__main__":
    unittest.main()
