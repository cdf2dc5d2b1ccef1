#!/usr/bin/python3
"""Runs the same kubectl commands on a real kube-apiserver, and on a watch tier in front of another one. Output and exit
code must be the same."""
import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/live"))
sys.path.insert(0, str(ROOT / "tests/kube"))
import same_kubectl_test  # noqa: E402
from apiserver_test import Apiserver  # noqa: E402
from server import Server  # noqa: E402
from tier import Tier  # noqa: E402


class TierKubectl(same_kubectl_test.SameKubectl):
    excused = "create token"

    @classmethod
    def start_ours(cls, root):
        folder = root / "ours"
        folder.mkdir()
        cls.store = Server(str(folder / "store")).start()
        cls.addClassCleanup(cls.store.stop)
        cls.behind = Apiserver(folder, cls.store.url, cls.their_flags)
        cls.addClassCleanup(cls.behind.stop)
        cls.behind.wait_ready()
        cls.server = Tier(folder, f"https://127.0.0.1:{cls.behind.port}").start()
        cls.addClassCleanup(cls.server.stop)

    @classmethod
    def our_command(cls):
        return [f"--server={cls.server.url}", "--token=the-token", f"--certificate-authority={cls.server.authority.cert}",
                f"--cache-dir={cls.root}/ours-cache", "--kubeconfig=/dev/null"]


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "TierKubectl", *sys.argv[1:]])
