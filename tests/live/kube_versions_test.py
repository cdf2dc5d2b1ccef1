#!/usr/bin/python3
"""get, list and watch at every resourceVersion, match, limit and initial-events setting (kube_versions.txt)."""
import unittest

import kube_versions
from kube import KubeServer
from server import LiveTest


class Versions(LiveTest):
    def test_every_answer_equals_its_line_of_the_table(self):
        server = KubeServer(self.scratch / "data").start()
        self.addCleanup(server.stop)
        world = kube_versions.World(kube_versions.plain_connection(server.kube_port), server.compact)
        seen, wanted = kube_versions.observe(world), kube_versions.table(True)
        self.assertEqual(set(seen), set(wanted))
        for case, answer in wanted.items():
            with self.subTest(case=case):
                self.assertEqual(seen[case], answer)
        server.close()


if __name__ == "__main__":
    unittest.main()
