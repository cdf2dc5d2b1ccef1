#!/usr/bin/python3
"""Clients in other languages, installed by tools/build-clients: Python's and Node's etcd3, and Python's etcd3gw. Each case is
a run of python_client.py, gateway_client.py or node_client.js."""
import base64
import json
import os
import pathlib
import subprocess
import sys
import unittest
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "live"))
from server import ROOT, LiveTest, free_port  # noqa: E402

CLIENTS = ROOT / "build/clients"
SECONDS_MAX = 60


class Gateway3:
    """The test's own calls, through the JSON gateway."""

    def __init__(self, server):
        self.server, self.token = server, ""

    def call(self, path, **body):
        request = urllib.request.Request(f"{self.server.url}/v3/{path}", json.dumps(body).encode(),
                                         {"Authorization": self.token} if self.token else {})
        with urllib.request.urlopen(request, timeout=SECONDS_MAX) as answer:
            return json.load(answer)


def b64(text):
    return base64.b64encode(text.encode()).decode()


class Cases:
    command = []

    def begin(self, case, server=None, **env):
        server = server or self.serving()
        process = subprocess.Popen(
            [*self.command, str(server.port), case], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True,
            env=dict(os.environ, CLIENTS=str(CLIENTS), PYTHONWARNINGS="ignore", GRPC_VERBOSITY="NONE", **env))
        self.addCleanup(process.kill)
        return server, process

    def end(self, process, text=None):
        out, error = process.communicate(text, timeout=SECONDS_MAX)
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

    def test_login(self):
        """anna may read and write below anna/. Her token is invalidated in the middle by setting her password again."""
        port, secure = free_port(), free_port()
        server = self.serving(port=port, listen=f"http://127.0.0.1:{port},https://127.0.0.1:{secure}",
                              args=["--bcrypt-cost", "4", "--auto-tls"])
        gateway = Gateway3(server)
        gateway.call("auth/user/add", name="root", password="rootpw")
        gateway.call("auth/user/grant", user="root", role="root")
        gateway.call("auth/user/add", name="anna", password="annapw")
        gateway.call("auth/role/add", name="anna")
        gateway.call("auth/role/grant", name="anna", perm={
            "permType": "READWRITE", "key": b64("anna/"), "range_end": b64("anna0")})
        gateway.call("auth/user/grant", user="anna", role="anna")
        gateway.call("auth/enable")
        gateway.token = gateway.call("auth/authenticate", name="root", password="rootpw")["token"]
        process = self.begin("login", server, SECURE_PORT=str(secure),
                             AUTHORITY=f"{server.directory}/fixtures/client/cert.pem")[1]
        self.await_ready(process)
        gateway.call("auth/user/changepw", name="anna", password="annapw")
        self.end(process, "continue\n")

    def await_ready(self, process):
        line = process.stdout.readline()
        if line != "ready\n":
            self.fail(line + "".join(process.communicate(timeout=SECONDS_MAX)))

    def test_reconnecting(self):
        server, process = self.begin("reconnecting")
        self.await_ready(process)
        server.kill()
        server.start()
        self.end(process, "continue\n")


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
