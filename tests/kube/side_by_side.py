"""A real kube-apiserver and Vigil's own Kubernetes API side by side, for tests that send the same requests to both."""
import json
import pathlib
import subprocess
import tempfile
import time
import unittest

from apiserver_test import KUBE, Apiserver, READY_SECONDS
from server import Server, free_port


class Manager:
    """A real kube-controller-manager with some of its controllers, for the kube-apiserver at this port."""

    def __init__(self, root, port, controllers, *flags):
        config = root / "manager.kubeconfig"
        config.write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{"name": "c", "cluster": {"server": f"https://127.0.0.1:{port}", "insecure-skip-tls-verify": True}}],
            "users": [{"name": "u", "user": {"token": "the-token"}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}]}))
        self.log = open(root / "manager.log", "wb")
        self.process = subprocess.Popen(
            [str(KUBE / "kube-controller-manager"), f"--kubeconfig={config}", f"--controllers={controllers}", "--leader-elect=false",
             "--bind-address=127.0.0.1", f"--secure-port={free_port()}", f"--cert-dir={root}/manager",
             f"--flex-volume-plugin-dir={root}/flex", *flags],
            stdout=self.log, stderr=subprocess.STDOUT, start_new_session=True)

    def stop(self):
        self.process.terminate()
        self.process.wait()
        self.log.close()


class SideBySide(unittest.TestCase):
    maxDiff = None
    # What kube-controller-manager does: it does not run beside the kube-apiserver.
    flags = ("--kube-garbage-collector=false", "--kube-quota-controller=false", "--kube-policy-status=false",
             "--kube-enable-admission-plugins=StorageObjectInUseProtection")
    their_flags = ("--request-timeout=30s",)
    client = None  # a class: takes a URL and optionally a token; its send() returns a code and a body

    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.TemporaryDirectory()
        root = pathlib.Path(cls.directory.name)
        port = free_port()
        cls.server = Server(str(root / "data"), args=[f"--listen-kube-urls=http://127.0.0.1:{port}", *cls.flags])
        cls.server.start()
        cls.backend = Server(str(root / "backend"))
        cls.backend.start()
        cls.apiserver = Apiserver(root, cls.backend.url, cls.their_flags)
        cls.ours = cls.client(f"http://127.0.0.1:{port}")
        cls.theirs = cls.client(f"https://127.0.0.1:{cls.apiserver.port}", "the-token")
        cls.wait_for("/api/v1/namespaces/default")

    @classmethod
    def tearDownClass(cls):
        cls.apiserver.stop()
        cls.server.stop()
        cls.backend.stop()
        cls.directory.cleanup()

    @classmethod
    def wait_for(cls, path):
        """Waits until the real kube-apiserver serves the path."""
        end = time.monotonic() + READY_SECONDS
        while True:
            try:
                if cls.theirs.send("GET", path)[0] == 200:
                    return
            except OSError:
                pass
            if time.monotonic() > end:
                raise AssertionError(f"the apiserver does not serve {path}")
            time.sleep(0.2)

    def compare(self, what_counts, *case):
        theirs, ours = what_counts(self.theirs.send(*case)), what_counts(self.ours.send(*case))
        with self.subTest(case=str(case)[:400]):
            self.assertEqual(ours, theirs)
