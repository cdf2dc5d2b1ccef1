#!/usr/bin/python3
"""Runs every program for libvigil-kube in examples/ against a server. The programs read their configuration as kubectl
does."""
import unittest

from examples import ExampleTest, example_names
from kube import KubeServer


class KubeExamples(ExampleTest):
    def setUp(self):
        super().setUp()
        self.vigil = KubeServer(self.scratch / "data")
        self.addCleanup(self.vigil.kill)
        self.vigil.start()

    def begin(self, program, *arguments):
        return super().begin(program, *arguments, KUBECONFIG=self.vigil.kubeconfig)

    def test_every_example_has_a_test(self):
        self.assertEqual(self.names_of_tests(), example_names(for_kube=True))


if __name__ == "__main__":
    unittest.main()
