#!/usr/bin/python3
"""The link etcdctl beside the original, on Vigil: see compare.py."""
import unittest

from compare import CompareTest
from tables import add_tests


class OnVigil(CompareTest):
    pass


add_tests(OnVigil)
if __name__ == "__main__":
    unittest.main()
