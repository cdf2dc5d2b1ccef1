#!/usr/bin/python3
"""get, list and watch with every Accept, field selector and odd option of kube_asks.txt."""
import http.client
import unittest

import kube_asks
from kube import WAIT_SECONDS, KubeServer
from server import LiveTest


class Asks(LiveTest):
    def test_every_line_of_the_table_is_what_it_says(self):
        server = KubeServer(self.scratch / "data").start()
        self.addCleanup(server.stop)
        server.put("configmaps", kube_asks.NAME, kind="ConfigMap")
        seen = kube_asks.observe(lambda: http.client.HTTPConnection("127.0.0.1", server.kube_port, timeout=WAIT_SECONDS))
        wanted = kube_asks.table(True)
        self.assertEqual(set(seen), set(wanted))
        for case, answer in wanted.items():
            with self.subTest(case=case):
                self.assertEqual(seen[case], answer)
        server.close()


if __name__ == "__main__":
    unittest.main()
