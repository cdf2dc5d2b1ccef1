#!/usr/bin/python3
"""A real kube-apiserver that stores its data in the server under test, and kubectl as its client. Both are built by
tools/build-kube. VIGIL_BIN=build/peer/etcd verifies the expectations on a real etcd."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/live"))
from certs import Authority  # noqa: E402
from server import Server, free_port  # noqa: E402

KUBE = pathlib.Path(os.environ.get("VIGIL_KUBE", ROOT / "build/kube"))
READY_SECONDS = 120
WAIT_SECONDS = 60
PODS = int(os.environ.get("VIGIL_KUBE_PODS", "1000"))
COMPACT = "3s"

CRD = {
    "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
    "metadata": {"name": "lamps.example.com"},
    "spec": {
        "group": "example.com", "scope": "Namespaced",
        "names": {"plural": "lamps", "singular": "lamp", "kind": "Lamp"},
        "versions": [{
            "name": "v1", "served": True, "storage": True,
            "schema": {"openAPIV3Schema": {
                "type": "object",
                "properties": {"spec": {"type": "object", "properties": {"on": {"type": "boolean"}}}}}},
        }],
    },
}


def pod(name):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"batch": "many"}},
            "spec": {"containers": [{"name": "c", "image": "none"}], "nodeName": "nowhere"}}


class Apiserver:
    """One kube-apiserver process with a token for its administrator, and one for a user without any rights."""

    def __init__(self, directory, etcd, flags=()):
        self.directory = directory
        self.port = free_port()
        self.log = open(directory / "apiserver.log", "wb")
        key = directory / "sa.key"
        subprocess.run(["openssl", "genrsa", "-out", str(key), "2048"], check=True, capture_output=True)
        tokens = directory / "tokens.csv"
        # Flags with a list of values add to each other.
        defaults = [default for default in ("--disable-admission-plugins=ServiceAccount", "--authorization-mode=RBAC")
                    if not any(flag.startswith(default.split("=")[0] + "=") for flag in flags)]
        tokens.write_text("the-token,admin,admin,system:masters\nweak-token,jane,jane\n")
        self.process = subprocess.Popen(
            [str(KUBE / "kube-apiserver"), f"--etcd-servers={etcd}", "--bind-address=127.0.0.1",
             f"--secure-port={self.port}", f"--cert-dir={directory}/certs", f"--token-auth-file={tokens}",
             "--service-account-issuer=https://kubernetes.default.svc", f"--service-account-key-file={key}",
             f"--service-account-signing-key-file={key}", "--service-cluster-ip-range=10.0.0.0/24",
             "--advertise-address=127.0.0.1", *defaults,
             f"--etcd-compaction-interval={COMPACT}",
             "--lease-reuse-duration-seconds=1", "--event-ttl=5s", "--request-timeout=60s",
             *flags],
            stdout=self.log, stderr=subprocess.STDOUT, start_new_session=True)

    def command(self, *args):
        return [str(KUBE / "kubectl"), f"--server=https://127.0.0.1:{self.port}", "--token=the-token",
                "--insecure-skip-tls-verify", f"--cache-dir={self.directory}/cache", *args]

    def kubectl(self, *args, given=None, code=0):
        text = None if given is None else json.dumps(given)
        done = subprocess.run(self.command(*args), input=text, capture_output=True, text=True, check=False,
                              timeout=300, env=dict(os.environ, KUBECONFIG="/dev/null"))
        if code is not None and done.returncode != code:
            raise AssertionError(f"kubectl {args}: {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-4000:]}")
        return done.stdout

    def json(self, *args):
        return json.loads(self.kubectl(*args, "-o", "json"))

    def wait_ready(self):
        end = time.monotonic() + READY_SECONDS
        while self.kubectl("get", "--raw", "/readyz", code=None) != "ok":
            if self.process.poll() is not None or time.monotonic() > end:
                text = (self.directory / "apiserver.log").read_text(errors="replace")
                raise AssertionError("kube-apiserver did not become ready:\n" + text[-6000:])
            time.sleep(0.3)

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()


class Watch:
    """A running kubectl get --watch and the lines that it has printed."""

    def __init__(self, apiserver, *args):
        self.lines = []
        self.process = subprocess.Popen(
            apiserver.command("get", *args, "--watch", "--output-watch-events", "-o",
                              'jsonpath={.type}{" "}{.object.metadata.name}{"\\n"}'),
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.reader = threading.Thread(target=lambda: self.lines.extend(self.process.stdout), daemon=True)
        self.reader.start()

    def end(self):
        self.process.kill()
        self.process.wait()
        self.reader.join()
        self.process.stdout.close()


class Stack(unittest.TestCase):
    """The tests of a class share a server and an apiserver; each test uses its own namespace."""

    @classmethod
    def setUpClass(cls):
        scratch = tempfile.TemporaryDirectory(prefix="vigil-kube-")
        cls.addClassCleanup(scratch.cleanup)
        cls.scratch = pathlib.Path(scratch.name)
        cls.server, etcd, flags = cls.serve()
        cls.server.start()
        cls.addClassCleanup(cls.server.stop)
        cls.api = Apiserver(cls.scratch, etcd, flags)
        cls.addClassCleanup(cls.api.stop)
        begin = time.monotonic()
        cls.api.wait_ready()
        print(f"kube-apiserver ready after {time.monotonic() - begin:.1f} s", flush=True)

    def setUp(self):
        self.name = self.id().rsplit(".", 1)[-1].removeprefix("test_").replace("_", "-")[:40]
        self.api.kubectl("create", "namespace", self.name)

    def ctl(self, *args, **options):
        return self.api.kubectl("-n", self.name, *args, **options)

    def wait_for(self, what, ready):
        end = time.monotonic() + WAIT_SECONDS
        while not ready():
            self.assertLess(time.monotonic(), end, what)
            time.sleep(0.2)

    def make_and_remove_configmaps(self):
        watch = Watch(self.api, "-n", self.name, "configmaps")
        self.addCleanup(watch.end)
        self.ctl("create", "configmap", "a", "--from-literal=k=1")
        first = json.loads(self.ctl("get", "configmap", "a", "-o", "json"))
        self.ctl("patch", "configmap", "a", "-p", '{"data":{"k":"2"}}')
        second = json.loads(self.ctl("get", "configmap", "a", "-o", "json"))
        self.assertEqual(second["data"], {"k": "2"})
        self.assertGreater(int(second["metadata"]["resourceVersion"]), int(first["metadata"]["resourceVersion"]))
        # An update with an old resource version is a conflict.
        first["data"] = {"k": "3"}
        self.ctl("replace", "-f", "-", given=first, code=1)
        self.ctl("apply", "--server-side", "--force-conflicts", "-f", "-", given={
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "4"}})
        self.ctl("delete", "configmap", "a")
        self.assertIn("NotFound", subprocess.run(
            self.api.command("-n", self.name, "get", "configmap", "a"), capture_output=True, text=True,
            check=False).stderr)
        wanted = ["ADDED", "MODIFIED", "MODIFIED", "DELETED"]
        self.wait_for(watch.lines, lambda: [
            line.split()[0] for line in watch.lines if line.endswith(" a\n")] == wanted)


class OverPlainText(Stack):
    @classmethod
    def serve(cls):
        server = Server(cls.scratch / "data")
        return server, server.url, ()

    def test_configmaps_made_changed_and_removed(self):
        self.make_and_remove_configmaps()


class OverTls(Stack):
    """As in a cluster: the apiserver and the server authenticate to each other with certificates."""

    @classmethod
    def serve(cls):
        authority = Authority(cls.scratch / "authority")
        ours, theirs = authority.sign("server"), authority.sign("apiserver")
        port = free_port()
        url = f"https://127.0.0.1:{port}"
        server = Server(cls.scratch / "data", port=port, listen=url, args=[
            "--cert-file", ours.cert, "--key-file", ours.key, "--trusted-ca-file", authority.cert,
            "--client-cert-auth"])
        return server, url, (f"--etcd-cafile={authority.cert}", f"--etcd-certfile={theirs.cert}",
                             f"--etcd-keyfile={theirs.key}")

    def test_configmaps_made_changed_and_removed(self):
        self.make_and_remove_configmaps()

    def test_consistent_reads_come_from_the_cache(self):
        """This needs progress requests: for a list without a resource version, the apiserver reads the newest revision
        and waits until its watch has reached it."""
        for i in range(20):
            self.ctl("create", "configmap", f"c{i}")
            listed = self.ctl("get", "configmaps", "-o", "name").split()
            self.assertEqual(len(listed), i + 1)
        lines = [line for line in self.api.kubectl("get", "--raw", "/metrics").splitlines()
                 if line.startswith("apiserver_watch_cache_consistent_read_total") and 'resource="configmaps"' in line]
        read = {"true": 0.0, "false": 0.0}
        for line in lines:
            read["true" if 'success="true"' in line else "false"] += float(line.split()[-1])
        self.assertGreaterEqual(read["true"], 20, lines)
        self.assertEqual(read["false"], 0, lines)

    def test_leases_are_renewed(self):
        lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "leader"},
                 "spec": {"holderIdentity": "one", "leaseDurationSeconds": 15}}
        self.ctl("create", "-f", "-", given=lease)
        for i in range(5):
            self.ctl("patch", "lease", "leader", "--type=merge", "-p",
                     json.dumps({"spec": {"renewTime": f"2026-01-01T00:00:0{i}.000000Z"}}))
        self.assertEqual(self.ctl("get", "lease", "leader", "-o", "jsonpath={.spec.renewTime}"),
                         "2026-01-01T00:00:04.000000Z")

    def test_events_expire_with_their_lease(self):
        event = {"apiVersion": "v1", "kind": "Event", "metadata": {"name": "short"},
                 "involvedObject": {"kind": "Pod", "namespace": self.name, "name": "x"}, "reason": "Test"}
        self.ctl("create", "-f", "-", given=event)
        self.assertIn("short", self.ctl("get", "events", "-o", "name"))
        self.wait_for("the event has not expired", lambda: "short" not in self.ctl("get", "events", "-o", "name"))

    def test_custom_resources(self):
        self.ctl("create", "-f", "-", given=CRD)
        self.ctl("wait", "--for=condition=Established", "crd/lamps.example.com", "--timeout=60s")
        lamp = {"apiVersion": "example.com/v1", "kind": "Lamp", "metadata": {"name": "one"}, "spec": {"on": False}}
        self.wait_for("no lamps", lambda: self.ctl("get", "lamps", code=None) is not None and
                      "lamp.example.com/one" in self.ctl("create", "-f", "-", "-o", "name", given=lamp, code=None))
        watch = Watch(self.api, "-n", self.name, "lamps")
        self.addCleanup(watch.end)
        self.ctl("patch", "lamp", "one", "--type=merge", "-p", '{"spec":{"on":true}}')
        self.assertEqual(self.ctl("get", "lamp", "one", "-o", "jsonpath={.spec.on}"), "true")
        self.ctl("delete", "crd", "lamps.example.com")
        self.wait_for(watch.lines, lambda: any(line.startswith("DELETED") for line in watch.lines))

    def test_many_pods_come_and_go(self):
        watch = Watch(self.api, "-n", self.name, "pods")
        self.addCleanup(watch.end)
        begin = time.monotonic()
        for start in range(0, PODS, 250):
            self.ctl("create", "--validate=false", "-f", "-", given={
                "apiVersion": "v1", "kind": "List",
                "items": [pod(f"pod-{i:05}") for i in range(start, min(start + 250, PODS))]})
        made = time.monotonic() - begin
        for chunk in ("0", "100"):
            listed = self.ctl("get", "pods", f"--chunk-size={chunk}", "-l", "batch=many", "-o", "name").split()
            self.assertEqual(len(listed), PODS)
        self.wait_for("additions", lambda: sum(line.startswith("ADDED") for line in watch.lines) == PODS)
        begin = time.monotonic()
        self.ctl("delete", "pods", "--all", "--grace-period=0", "--force", "--wait=false")
        self.wait_for("deletions", lambda: sum(line.startswith("DELETED") for line in watch.lines) == PODS)
        print(f"{PODS} pods made in {made:.1f} s, removed in {time.monotonic() - begin:.1f} s", flush=True)
        self.assertEqual(self.ctl("get", "pods", "-o", "name"), "")

    def test_server_killed_under_the_apiserver(self):
        self.ctl("create", "configmap", "kept", "--from-literal=k=1")
        watch = Watch(self.api, "-n", self.name, "configmaps")
        self.addCleanup(watch.end)
        self.wait_for("watching", lambda: any(line.endswith(" kept\n") for line in watch.lines))
        self.server.kill()
        self.server.start()
        self.wait_for("serving again", lambda: self.ctl(
            "create", "configmap", "later", "--from-literal=k=2", code=None) != "")
        self.assertEqual(self.ctl("get", "configmap", "kept", "-o", "jsonpath={.data.k}"), "1")
        self.wait_for("resumed", lambda: any(line.endswith(" later\n") for line in watch.lines))

    def test_apiserver_compacts_and_old_versions_expire(self):
        """The apiserver compacts periodically; a request for an older resource version then gets an Expired error."""
        old = json.loads(self.ctl("get", "configmaps", "-o", "json"))["metadata"]["resourceVersion"] or "1"
        path = f"/api/v1/namespaces/{self.name}/configmaps?resourceVersion={old}&resourceVersionMatch=Exact"

        def expired():
            self.ctl("create", "configmap", f"c{time.monotonic_ns()}")
            done = subprocess.run(self.api.command("get", "--raw", path), capture_output=True, text=True, check=False)
            return "too old" in done.stderr or "Expired" in done.stderr
        self.wait_for("nothing was compacted", expired)


if __name__ == "__main__":
    unittest.main()
