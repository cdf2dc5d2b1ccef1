#!/usr/bin/python3
"""The scenes of controllers_test.py with everything behind a watch tier: a real kube-controller-manager, kube-scheduler and
kubelets reach their kube-apiserver through it. They do and log what they do with the kube-apiserver itself."""
import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/live"))
sys.path.insert(0, str(ROOT / "tests/kube"))
import controllers_test  # noqa: E402


class TierControllers(controllers_test.Controllers):
    kinds = ("tier", "real")
    # Watches of two resources are not ordered among each other: a claim may arrive before its class. The manager tries again.
    excused = " not found"


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "TierControllers", *sys.argv[1:]])
