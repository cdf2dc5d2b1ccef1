#!/usr/bin/python3
"""A second build of the packages, in another directory and at another time, is the same byte for byte."""
import hashlib
import pathlib
import tempfile
import unittest

from debian import DEB, ROOT, run


def digests(folder):
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for pattern in ("*.deb", "*.tar.xz") for file in folder.glob(pattern)}


class Reproducible(unittest.TestCase):
    def test_packages_are_the_same_when_built_elsewhere(self):
        with tempfile.TemporaryDirectory(prefix="vigil-another-longer-name-") as name:
            run("tools/build-deb", name, cwd=ROOT)
            self.assertGreater(len(digests(DEB)), 3)
            self.assertEqual(digests(pathlib.Path(name)), digests(DEB))


if __name__ == "__main__":
    unittest.main()
