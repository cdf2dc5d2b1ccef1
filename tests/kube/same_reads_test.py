#!/usr/bin/python3
"""Compares the tables of reads (tests/live/kube_versions.txt and kube_options.txt) word for word with the answers of a real
kube-apiserver, which tools/build-kube builds. With VIGIL_KUBE_RECORD=1, differences are written into the tables."""
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
import kube_options  # noqa: E402
import kube_versions  # noqa: E402
from apiserver_test import Apiserver, READY_SECONDS  # noqa: E402
from kube import KubeServer  # noqa: E402


class SameReads(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.TemporaryDirectory()
        root = pathlib.Path(cls.directory.name)
        cls.backend = KubeServer(str(root / "backend"))
        cls.backend.start()
        cls.apiserver = Apiserver(root, cls.backend.url)

    @classmethod
    def tearDownClass(cls):
        cls.apiserver.stop()
        cls.backend.stop()
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
        raise AssertionError("the apiserver did not become ready")

    def delete_object(self, headers):
        """The other test sees every object of the namespace."""
        with contextlib.closing(self.connect()) as connection:
            connection.request("DELETE", f"{kube_options.CMS}/{kube_options.NAME}", headers=headers)
            self.assertEqual(connection.getresponse().status, 200)

    def test_table_of_versions_is_what_kubernetes_answers(self):
        headers = {"Authorization": "Bearer the-token"}
        self.wait_until_ready(headers)
        world = kube_versions.World(self.connect, self.backend.compact, headers)
        seen = kube_versions.observe(world)
        if os.environ.get("VIGIL_KUBE_RECORD"):
            ours = kube_versions.table(True) if kube_versions.TABLE.exists() else {}
            theirs = kube_versions.table(False) if kube_versions.TABLE.exists() else {}
            differ = {case for case in ours if ours[case] != theirs[case]}
            kube_versions.TABLE.write_text("".join(
                f"{case} -> {answer}" + (f" | Vigil: {ours[case]}" if case in differ else "") + "\n"
                for case, answer in seen.items()))
        self.assertEqual(seen, kube_versions.table(False))

    def test_table_of_options_is_what_kubernetes_answers(self):
        headers = {"Authorization": "Bearer the-token"}
        self.wait_until_ready(headers)
        connection = self.connect()
        connection.request("POST", kube_options.CMS, json.dumps({"metadata": {"name": kube_options.NAME}}),
                           {**headers, "Content-Type": "application/json"})
        self.assertEqual(connection.getresponse().status, 201)
        connection.close()
        self.addCleanup(self.delete_object, headers)
        seen = kube_options.observe(self.connect, headers)
        if os.environ.get("VIGIL_KUBE_RECORD"):
            ours, theirs = kube_options.table(True), kube_options.table(False)
            kube_options.TABLE.write_text("".join(
                f"{case} -> {answer}" + (f" | Vigil: {ours[case]}" if ours.get(case) != theirs.get(case) else "") + "\n"
                for case, answer in seen.items()))
        self.assertEqual(seen, kube_options.table(False))


if __name__ == "__main__":
    unittest.main()
