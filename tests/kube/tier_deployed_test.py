#!/usr/bin/python3
"""The watch tier as examples/tier/tier.yaml deploys it: the manifest is applied to a real kube-apiserver, and what it describes
is run with its arguments, as its account, in the files of the container image, with the files of a pod. Needs root."""
import json
import os
import pathlib
import subprocess
import sys
import time
import unittest
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/live"))
sys.path.insert(0, str(ROOT / "tests/kube"))
from server import SUBJECT, Server, free_port  # noqa: E402
from tier_world import INITIAL, RBAC, Caller, TierWorld, config_map, eventually, named, version  # noqa: E402

MANIFEST = ROOT / "examples/tier/tier.yaml"
SPACE = "/api/v1/namespaces/vigil-system"
ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
# The files of the container, as a container engine and a kubelet would mount them, in a mount namespace of their own.
POD = """
set -e
root=$1 account=$2 tls=$3; shift 3
mkdir -p "$root/proc" "$root/dev" "$root/data" "$root/tls" "$root%(account)s"
mount -t proc proc "$root/proc"
mount --bind /dev "$root/dev"
mount -t tmpfs -o mode=777 vigil "$root/data"
mount --bind "$account" "$root%(account)s"
mount --bind "$tls" "$root/tls"
exec chroot --userspec=65532:65532 "$root" /usr/bin/vigil "$@"
""" % {"account": ACCOUNT}


class Pod(Server):
    """Its container."""

    def __init__(self, root, image, account, tls, args, service):
        super().__init__(str(root), env={"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": str(service)})
        self.image, self.account, self.tls = image, account, tls
        self.port, self.metrics_port = free_port(), free_port()
        addresses = {"0.0.0.0:6443": f"127.0.0.1:{self.port}", "0.0.0.0:8080": f"127.0.0.1:{self.metrics_port}"}
        self.args = args
        for there, here in addresses.items():
            assert sum(there in arg for arg in self.args) == 1, (there, args)
            self.args = [arg.replace(there, here) for arg in self.args]

    def command(self):
        return ["unshare", "--mount", "--propagation", "private", "sh", "-c", POD, "sh", str(self.image), str(self.account), str(self.tls),
                *self.args]


class Deployed(TierWorld):
    @classmethod
    def start_tiers(cls):
        if os.geteuid() != 0:
            raise unittest.SkipTest("a container's files need root")
        cls.tier, cls.admin = None, cls.direct
        # Applied twice: it is what is stored afterwards.
        for expected in ("created", "unchanged"):
            for line in cls.apiserver.kubectl("apply", "-f", str(MANIFEST)).splitlines():
                if not line.endswith(expected):
                    raise AssertionError(line)
        done = cls.apiserver.kubectl("apply", "--server-side", "--force-conflicts", "--validate=strict", "--dry-run=server",
                                     "-f", str(MANIFEST))
        if "deployment.apps/vigil-tier" not in done:
            raise AssertionError(done)
        template = cls.apiserver.json("-n", "vigil-system", "get", "deployment", "vigil-tier")["spec"]["template"]["spec"]
        cls.container = template["containers"][0]
        cls.image = cls.scratch / "image"
        subprocess.run([str(ROOT / "tools/image-root"), str(pathlib.Path(SUBJECT).parent), str(cls.image)], check=True,
                       capture_output=True)
        cls.image = cls.image / "root"
        cls.tls = cls.scratch / "tls"
        cls.tls.mkdir()
        served = cls.authority.sign("tier")
        for name, file in (("tls.crt", served.cert), ("tls.key", served.key)):
            (cls.tls / name).write_bytes(pathlib.Path(file).read_bytes())
            (cls.tls / name).chmod(0o644)
        # A token that is bound to a secret, to end with it.
        cls.account = cls.scratch / "account"
        cls.account.mkdir()
        (cls.account / "ca.crt").write_bytes(pathlib.Path(cls.authority.cert).read_bytes())
        (cls.account / "namespace").write_text("vigil-system")
        secret = cls.direct.send("POST", f"{SPACE}/secrets", {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "pod"}})[1]
        cls.rotate({"kind": "Secret", "apiVersion": "v1", "name": "pod", "uid": secret["metadata"]["uid"]})
        for file in cls.account.iterdir():
            file.chmod(0o644)
        cls.pod = Pod(cls.scratch / "pod", cls.image, cls.account, cls.tls, cls.container["args"], cls.apiserver.port)
        cls.pod.start()
        cls.addClassCleanup(cls.pod.stop)
        cls.jane = Caller(cls.pod.port, "weak-token")

    @classmethod
    def rotate(cls, bound=None):
        """As kubelets do it: another file takes the place of the token."""
        spec = {"expirationSeconds": 3600, **({"boundObjectRef": bound} if bound else {})}
        status, made = cls.direct.send("POST", f"{SPACE}/serviceaccounts/vigil-tier/token", {
            "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec})
        if status != 201:
            raise AssertionError(made)
        file = cls.account / ".token"
        file.write_text(made["status"]["token"])
        file.chmod(0o644)
        file.rename(cls.account / "token")

    def mirrored(self, path, caller):
        """Waits until the mirror answers, and returns the objects by name."""
        before = self.lists()
        answer = eventually(lambda: (found := caller.get(f"{path}?resourceVersion=0"))[0] == 200 and found[1])
        self.assertGreater(self.lists(), before, path)
        return named(answer)

    def lists(self):
        return sum(float(line.rsplit(" ", 1)[1]) for line in self.metrics() if line.startswith("vigil_tier_lists_total"))

    def metrics(self):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.pod.metrics_port}/metrics", timeout=60) as page:
            return page.read().decode().splitlines()

    def test_1_its_role_suffices(self):
        # The probes of the manifest.
        for probe in ("readinessProbe", "livenessProbe"):
            path = self.container[probe]["httpGet"]["path"]
            eventually(lambda path=path: Caller(self.pod.port).get(path) == (200, "ok"), 60)
        self.grant("jane", [{"apiGroups": ["", "apps", "example.com"], "resources": ["*"], "verbs": ["*"]}])
        self.make("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", {
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "lamps.example.com"},
            "spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "lamps", "kind": "Lamp"}, "versions": [
                {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}]}})
        lamps = f"/apis/example.com/v1/namespaces/{self.name}/lamps"
        eventually(lambda: self.direct.get(lamps)[0] == 200)
        eventually(lambda: self.jane.get(lamps)[0] == 200)
        self.make(lamps, {"apiVersion": "example.com/v1", "kind": "Lamp", "metadata": {"name": "one"}}, self.jane)
        made = self.make(self.maps, config_map("a"), self.jane)
        for path in ("/api/v1/pods", "/api/v1/services", "/api/v1/nodes", self.maps, "/apis/apps/v1/deployments", lamps,
                     f"/api/v1/namespaces/{self.name}/secrets"):
            self.mirrored(path, self.jane)
        self.assertEqual(set(self.mirrored(lamps, self.jane)), {"one"})
        events = self.watch(f"{self.maps}?{INITIAL}", self.jane)
        events.wait_initial()
        self.make(self.maps, config_map("b"), self.jane)
        events.wait(lambda w: w.names() == [("ADDED", "a"), ("ADDED", "b")])
        # Watches end at once with a right, for which it watches the roles.
        self.delete(f"{RBAC}/clusterrolebindings/{self.name}-jane")
        begun = time.monotonic()
        events.wait_end()
        self.assertLess(time.monotonic() - begun, 15)
        self.assertEqual(events.events[-1]["object"]["code"], 403)
        self.assertEqual(version(events.events[0]["object"]), version(made))
        self.assertNotIn("forbidden", self.pod.log)
        self.assertFalse([line for line in self.pod.lines if json.loads(line)["level"] in ("error", "fatal")])

    def test_2_its_token_is_rotated(self):
        self.grant("jane", [{"apiGroups": [""], "resources": ["*"], "verbs": ["*"]}])
        self.make(self.maps, config_map("a"))
        eventually(lambda: self.jane.get(f"{self.maps}?resourceVersion=0")[0] == 200)
        events = self.watch(f"{self.maps}?{INITIAL}", self.jane)
        events.wait_initial()
        self.rotate()
        self.delete(f"{SPACE}/secrets/pod")
        # The kube-apiserver forgets the old token after ten seconds; answers about rights are used as long.
        end = time.monotonic() + 30
        while time.monotonic() < end:
            for path in (f"{self.maps}?resourceVersion=0", f"{self.maps}/a?resourceVersion=0", "/api/v1/configmaps"):
                status, body = self.jane.get(path)
                self.assertEqual(status, 200, body)
        # A mirror that begins now uses the new token.
        self.mirrored("/api/v1/endpoints", self.jane)
        self.make(self.maps, config_map("b"))
        events.wait(lambda w: ("ADDED", "b") in w.names())


if __name__ == "__main__":
    unittest.main()
