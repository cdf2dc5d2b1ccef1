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
        self.addCleanup(self.vigil.close)
        self.vigil.start()

    def restart(self):
        self.vigil.close()
        self.vigil.stop()
        self.vigil.start()

    def begin(self, program, *arguments):
        return super().begin(program, *arguments, KUBECONFIG=self.vigil.kubeconfig)

    def test_kube_loop_uv(self):
        self.vigil.put("configmaps", "first", kind="ConfigMap")
        loop = self.begin(self.build("kube_loop_uv", "-luv"))
        self.assertEqual(loop.stdout.readline(), "added default/first\n")
        self.vigil.put("configmaps", "first", kind="ConfigMap", data={"color": "red"})
        self.assertEqual(loop.stdout.readline(), "updated default/first\n")
        self.restart()
        self.vigil.delete("configmaps", "first")
        self.assertEqual(loop.stdout.readline(), "deleted default/first\n")
        self.end(loop)

    def test_every_example_has_a_test(self):
        self.assertEqual(self.names_of_tests(), example_names(for_kube=True))


if __name__ == "__main__":
    unittest.main()
