#!/usr/bin/python3
"""get, list and watch with every Accept header, field selector and unusual option of kube_options.txt."""
import http.client
import unittest

import kube_options
from kube import WAIT_SECONDS, KubeServer
from server import LiveTest


class ReadOptions(LiveTest):
    def test_every_answer_equals_its_line_of_the_table(self):
        server = KubeServer(self.scratch / "data").start()
        self.addCleanup(server.stop)
        server.put("configmaps", kube_options.NAME, kind="ConfigMap")
        seen = kube_options.observe(lambda: http.client.HTTPConnection("127.0.0.1", server.kube_port, timeout=WAIT_SECONDS))
        wanted = kube_options.table(True)
        self.assertEqual(set(seen), set(wanted))
        for case, answer in wanted.items():
            with self.subTest(case=case):
                self.assertEqual(seen[case], answer)
        server.close()


if __name__ == "__main__":
    unittest.main()
