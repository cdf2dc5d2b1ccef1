#!/usr/bin/python3
"""The objects that exist from the start: those of Vigil are the same as those of a real kube-apiserver."""
import json
import pathlib
import ssl
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "live"))
from apiserver_test import READY_SECONDS, Apiserver  # noqa: E402
from server import Server, free_port  # noqa: E402

ADVERTISED = "192.0.2.7"
PATHS = [
    "/api/v1/namespaces", "/api/v1/services", "/api/v1/endpoints", "/api/v1/configmaps",
    "/apis/discovery.k8s.io/v1/endpointslices",
    "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas",
    "/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations",
    "/apis/networking.k8s.io/v1/ipaddresses", "/apis/networking.k8s.io/v1/servicecidrs",
    "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "/apis/rbac.authorization.k8s.io/v1/rolebindings", "/apis/rbac.authorization.k8s.io/v1/roles",
    "/apis/scheduling.k8s.io/v1/priorityclasses",
]
# Different for every object that is created.
OWN = ("creationTimestamp", "resourceVersion", "uid")


def items(text, port):
    """The objects of a list by their names, without what differs between two servers."""
    found = {}
    for item in json.loads(text)["items"]:
        for name in OWN:
            item["metadata"].pop(name, None)
        # Who has created it. The controllers within kube-apiserver write the status of some later.
        item["metadata"]["managedFields"] = [
            {key: value for key, value in entry.items() if key != "time"} for entry in item["metadata"].get("managedFields", [])
            if "subresource" not in entry]
        for entry in item["metadata"]["managedFields"]:  # those that kube-apiserver fills in itself have an owner here
            for field in ("f:clusterIPs", "f:ipFamilies"):
                entry["fieldsV1"].get("f:spec", {}).pop(field, None)
        for condition in item.get("status", {}).get("conditions", []):
            assert condition.pop("lastTransitionTime")
        # The port of each server.
        bare = json.loads(json.dumps(item).replace(f": {port}", ': "the port"'))
        found[item["metadata"].get("namespace", ""), item["metadata"]["name"]] = bare
    return found


class SameStart(unittest.TestCase):
    maxDiff = None

    def test_objects_are_the_same(self):
        with tempfile.TemporaryDirectory() as directory:
            self.root = pathlib.Path(directory)
            ca = self.root / "ca.pem"
            subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout",
                            str(self.root / "ca.key"), "-out", str(ca), "-subj", "/CN=users"], check=True, capture_output=True)
            theirs = self.read_theirs(ca)
            ours = self.read_ours(ca)
        for path in PATHS:
            with self.subTest(path):
                self.assertEqual(ours[path], theirs[path])

    def read_theirs(self, ca):
        backend = Server(str(self.root / "backend"))
        backend.start()
        self.addCleanup(backend.stop)
        apiserver = Apiserver(self.root, backend.url, (f"--advertise-address={ADVERTISED}", f"--client-ca-file={ca}"))
        self.addCleanup(apiserver.stop)
        apiserver.wait_ready()
        # The service, its endpoints and the config map of authorities come a little later.
        end = time.monotonic() + READY_SECONDS
        while time.monotonic() < end:
            slices = items(apiserver.kubectl("get", "--raw", PATHS[4]), apiserver.port)
            maps = items(apiserver.kubectl("get", "--raw", PATHS[3]), apiserver.port)
            if slices and ("kube-system", "extension-apiserver-authentication") in maps:
                break
            time.sleep(0.2)
        return {path: items(apiserver.kubectl("get", "--raw", path), apiserver.port) for path in PATHS}

    def read_ours(self, ca):
        port = free_port()
        server = Server(str(self.root / "data"), args=[
            f"--listen-kube-urls=https://127.0.0.1:{port}", "--auto-tls", f"--kube-client-ca-file={ca}",
            f"--kube-advertise-address={ADVERTISED}", "--kube-managed-fields=all"])
        server.start()
        self.addCleanup(server.stop)
        context = ssl._create_unverified_context()
        found = {}
        for path in PATHS:
            with urllib.request.urlopen(f"https://127.0.0.1:{port}{path}", context=context, timeout=60) as answer:
                found[path] = items(answer.read(), port)
        return found


if __name__ == "__main__":
    unittest.main()
