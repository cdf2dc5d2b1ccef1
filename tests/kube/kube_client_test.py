#!/usr/bin/python3
"""Runs the tests of libvigil-kube in tests/kube_client/*.c against a real kube-apiserver that stores its data in the
server under test."""
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "kube_client"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from apiserver_test import Stack  # noqa: E402
from kube_suite import common_tests, run_test  # noqa: E402
from server import Server  # noqa: E402


class KubeClient(Stack):
    @classmethod
    def serve(cls):
        server = Server(cls.scratch / "data")
        return server, server.url, ()

    def setUp(self):
        pass  # each test makes its namespace itself

    def run_one(self, name):
        env = {"VIGIL_KUBE_SERVER": f"https://127.0.0.1:{self.api.port}", "VIGIL_KUBE_TOKEN": "the-token",
               "VIGIL_INSECURE": "1"}
        self.assertEqual(run_test(name, env), (0, ""), name)


def add_tests():
    for name in common_tests():
        setattr(KubeClient, f"test_{name}", lambda self, name=name: self.run_one(name))


add_tests()
del Stack  # otherwise it would be run as well
if __name__ == "__main__":
    unittest.main()
