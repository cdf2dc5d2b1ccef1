#!/usr/bin/python3
"""Clients of other languages as their registries ship them, installed by tools/build-clients: Python's and Node's
etcd3, and Python's etcd3gw. Each case is a run of python_client.py, gateway_client.py or node_client.js."""
import os
import pathlib
import subprocess
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "live"))
from server import ROOT, LiveTest  # noqa: E402

CLIENTS = ROOT / "build/clients"
SECONDS_MAX = 60


class Cases:
    command = []

    def begin(self, case):
        server = self.serving()
        process = subprocess.Popen(
            [*self.command, str(server.port), case], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True,
            env=dict(os.environ, CLIENTS=str(CLIENTS), PYTHONWARNINGS="ignore", GRPC_VERBOSITY="NONE"))
        self.addCleanup(process.kill)
        return server, process

    def end(self, process, said=None):
        out, error = process.communicate(said, timeout=SECONDS_MAX)
        self.assertEqual(process.returncode, 0, out + error)

    def test_put_get_delete(self):
        self.end(self.begin("put_get_delete")[1])

    def test_transactions(self):
        self.end(self.begin("transactions")[1])

    def test_watching(self):
        self.end(self.begin("watching")[1])

    def test_leases(self):
        self.end(self.begin("leases")[1])

    def test_locks(self):
        self.end(self.begin("locks")[1])

    def test_maintenance(self):
        self.end(self.begin("maintenance")[1])

    def test_reconnecting(self):
        server, process = self.begin("reconnecting")
        self.assertEqual(process.stdout.readline(), "ready\n", process.stderr.read() if process.poll() else "")
        server.kill()
        server.start()
        self.end(process, "go on\n")


class Python(Cases, LiveTest):
    command = [str(CLIENTS / "python/bin/python"), str(HERE / "python_client.py")]


class Gateway(Cases, LiveTest):
    command = [str(CLIENTS / "python/bin/python"), str(HERE / "gateway_client.py")]


class Node(Cases, LiveTest):
    command = [str(CLIENTS / "python/bin/node"), str(HERE / "node_client.js")]

    def test_elections(self):
        self.end(self.begin("elections")[1])


if __name__ == "__main__":
    unittest.main()
