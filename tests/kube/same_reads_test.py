#!/usr/bin/python3
"""The table of reads (tests/live/kube_versions.txt) is what a real kube-apiserver answers, line by line, in words too.
tools/build-kube builds it. With VIGIL_KUBE_RECORD=1 differences are written into the table instead of told."""
import contextlib
import http.client
import json
import os
import pathlib
import ssl
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/live"))
sys.path.insert(0, str(ROOT / "tests/kube"))
import kube_asks  # noqa: E402
import kube_versions  # noqa: E402
from apiserver_test import Apiserver, READY_SECONDS  # noqa: E402
from kube import KubeServer  # noqa: E402


class SameReads(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.TemporaryDirectory()
        root = pathlib.Path(cls.directory.name)
        cls.behind = KubeServer(str(root / "behind"))
        cls.behind.start()
        cls.apiserver = Apiserver(root, cls.behind.url)

    @classmethod
    def tearDownClass(cls):
        cls.apiserver.stop()
        cls.behind.stop()
        cls.directory.cleanup()

    def connect(self):
        return http.client.HTTPSConnection("127.0.0.1", self.apiserver.port, timeout=kube_versions.WAIT_SECONDS,
                                           context=ssl._create_unverified_context())

    def wait_until_ready(self, headers):
        end = time.monotonic() + READY_SECONDS
        while time.monotonic() < end:
            with contextlib.suppress(OSError), contextlib.closing(self.connect()) as connection:
                connection.request("GET", "/api/v1/namespaces/default", headers=headers)
                if connection.getresponse().status == 200:
                    return
            time.sleep(0.2)
        raise AssertionError("the apiserver does not become ready")

    def test_every_line_of_the_table_is_what_kubernetes_answers(self):
        headers = {"Authorization": "Bearer the-token"}
        self.wait_until_ready(headers)
        world = kube_versions.World(self.connect, self.behind.compact, headers)
        seen = kube_versions.observe(world)
        if os.environ.get("VIGIL_KUBE_RECORD"):
            ours = kube_versions.table(True) if kube_versions.TABLE.exists() else {}
            theirs = kube_versions.table(False) if kube_versions.TABLE.exists() else {}
            differ = {case for case in ours if ours[case] != theirs[case]}
            kube_versions.TABLE.write_text("".join(
                f"{case} -> {answer}" + (f" | Vigil: {ours[case]}" if case in differ else "") + "\n"
                for case, answer in seen.items()))
        self.assertEqual(seen, kube_versions.table(False))

    def test_every_line_of_what_is_asked_is_what_kubernetes_answers(self):
        headers = {"Authorization": "Bearer the-token"}
        self.wait_until_ready(headers)
        connection = self.connect()
        connection.request("POST", kube_asks.CMS, json.dumps({"metadata": {"name": kube_asks.NAME}}),
                           {**headers, "Content-Type": "application/json"})
        self.assertIn(connection.getresponse().status, (201, 409))
        connection.close()
        seen = kube_asks.observe(self.connect, headers)
        if os.environ.get("VIGIL_KUBE_RECORD"):
            ours, theirs = kube_asks.table(True), kube_asks.table(False)
            kube_asks.TABLE.write_text("".join(
                f"{case} -> {answer}" + (f" | Vigil: {ours[case]}" if ours.get(case) != theirs.get(case) else "") + "\n"
                for case, answer in seen.items()))
        self.assertEqual(seen, kube_asks.table(False))


if __name__ == "__main__":
    unittest.main()
