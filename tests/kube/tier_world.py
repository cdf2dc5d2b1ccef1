"""For tests of the watch tier with the real thing: a kube-apiserver, and tiers in front of it."""
import contextlib
import os
import pathlib
import socket
import sys
import tempfile
import threading
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/live"))
from apiserver_test import READY_SECONDS, Apiserver  # noqa: E402
from certs import Authority  # noqa: E402
from server import PEER, SUBJECT, WAIT_SECONDS, Server  # noqa: E402
from tier import Caller, Tier  # noqa: E402

# What stores the data of the kube-apiservers, in the place of what a test chooses.
STORE = os.environ.get("VIGIL_TIER_STORE")
INITIAL = "watch=1&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
RBAC = "/apis/rbac.authorization.k8s.io/v1"


def eventually(condition, seconds=READY_SECONDS, what="the condition did not become true"):
    end = time.monotonic() + seconds
    while not (found := condition()):
        if time.monotonic() > end:
            raise AssertionError(what)
        time.sleep(0.1)
    return found


def version(made):
    return made["metadata"]["resourceVersion"]


def config_map(name, labels=None, **data):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **({"labels": labels} if labels else {})}, "data": data}


def named(body):
    """A list's items by name."""
    return {item["metadata"]["name"]: item for item in body["items"]}


def start_store(directory, kind):
    """The etcd behind kube-apiservers: a real one ("etcd"), or "vigil"."""
    store = Server(directory, binary={"etcd": PEER, "vigil": SUBJECT}[STORE or kind])
    assert os.path.exists(store.binary), f"{store.binary} does not exist; tools/build-peer builds the real etcd"
    return store.start()


class Relay:
    """Passes TCP connections on, every piece after a delay, and nothing while it is paused."""

    def __init__(self, port):
        self.to, self.delay_s = port, 0.0
        self.flowing = threading.Event()
        self.flowing.set()
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=100)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                one, _ = self.listener.accept()
                other = socket.create_connection(("127.0.0.1", self.to))
            except OSError:
                return
            for pair in ((one, other), (other, one)):
                threading.Thread(target=self.copy, args=pair, daemon=True).start()

    def copy(self, source, target):
        with contextlib.suppress(OSError):
            while piece := source.recv(1 << 16):
                if self.delay_s:
                    time.sleep(self.delay_s)
                self.flowing.wait()
                target.sendall(piece)
        for end in (source, target):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        source.close()

    def pause(self):
        self.flowing.clear()

    def resume(self):
        self.flowing.set()

    def stop(self):
        self.resume()
        self.listener.close()


class Both:
    """The same watch at the kube-apiserver and through the tier."""

    def __init__(self, direct, tier, path):
        self.pair = [caller.watch(path) for caller in (direct, tier)]

    def close(self):
        for events in self.pair:
            events.close()

    def wait(self, condition):
        for events in self.pair:
            events.wait(condition)

    def wait_end(self):
        for events in self.pair:
            events.wait_end()

    def seen(self):
        """What both have seen, without bookmarks."""
        return [[event for event in events.events if event["type"] != "BOOKMARK"] for events in self.pair]


class TierWorld(unittest.TestCase):
    """The tests of a class share an etcd, a kube-apiserver and a tier; each has its own namespace."""
    maxDiff = None
    apiserver_flags = ()
    tier_args = ()
    store = "vigil"  # what stores the kube-apiserver's data

    @classmethod
    def setUpClass(cls):
        scratch = tempfile.TemporaryDirectory(prefix="vigil-tier-")
        cls.addClassCleanup(scratch.cleanup)
        cls.scratch = pathlib.Path(scratch.name)
        cls.backend = start_store(str(cls.scratch / "backend"), cls.store)
        cls.addClassCleanup(cls.backend.stop)
        cls.authority = Authority(cls.scratch / "direct")
        served = cls.authority.sign("server")
        cls.apiserver = Apiserver(cls.scratch, cls.upstream_of_apiserver(), (
            f"--client-ca-file={cls.authority.cert}", f"--tls-cert-file={served.cert}", f"--tls-private-key-file={served.key}",
            *cls.apiserver_flags))
        cls.addClassCleanup(cls.apiserver.stop)
        cls.apiserver.wait_ready()
        cls.direct = Caller(cls.apiserver.port, "the-token")
        # The kube-apiserver makes it a little later than it is ready.
        eventually(lambda: cls.direct.get("/api/v1/namespaces/default")[0] == 200)
        cls.start_tiers()

    @classmethod
    def upstream_of_apiserver(cls):
        return cls.backend.url

    @classmethod
    def start_tiers(cls):
        cls.tier = cls.start_tier()
        cls.admin = Caller(cls.tier.port, "the-token")

    @classmethod
    def start_tier(cls, upstream=None, **options):
        tier = Tier(cls.scratch, f"https://127.0.0.1:{(upstream or cls.apiserver).port}",
                    **{"args": cls.tier_args, **options})
        tier.start()
        cls.addClassCleanup(tier.stop)
        return tier

    def setUp(self):
        self.name = self.id().rsplit(".", 1)[-1].removeprefix("test_").replace("_", "-")[:50].strip("-")
        self.make("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.name}})
        self.maps = f"/api/v1/namespaces/{self.name}/configmaps"

    def make(self, path, body, caller=None):
        status, answer = (caller or self.direct).send("POST", path, body)
        self.assertIn(status, (200, 201), answer)
        return answer

    def change(self, path, patch, caller=None):
        status, answer = (caller or self.direct).send("PATCH", path, patch, headers={"Content-Type": "application/merge-patch+json"})
        self.assertEqual(status, 200, answer)
        return answer

    def delete(self, path, caller=None):
        status, answer = (caller or self.direct).send("DELETE", path)
        self.assertEqual(status, 200, answer)
        return answer

    def grant(self, who, rules, name=None):
        """A cluster role with these rules for a user, or for a service account "namespace:name"."""
        name = name or f"{self.name}-{who.replace(':', '-')}"
        api = "rbac.authorization.k8s.io"
        space, _, account = who.rpartition(":")
        subject = {"kind": "ServiceAccount", "name": account, "namespace": space} if space else {
            "kind": "User", "name": who, "apiGroup": api}
        self.make(f"{RBAC}/clusterroles", {"apiVersion": f"{api}/v1", "kind": "ClusterRole", "metadata": {"name": name}, "rules": rules})
        self.make(f"{RBAC}/clusterrolebindings", {
            "apiVersion": f"{api}/v1", "kind": "ClusterRoleBinding", "metadata": {"name": name}, "subjects": [subject],
            "roleRef": {"kind": "ClusterRole", "name": name, "apiGroup": api}})
        return f"{RBAC}/clusterrolebindings/{name}"

    def mirrors(self, path):
        """Waits until the tier has a mirror of it, and returns the list."""
        return eventually(lambda: self.served(path))

    def served(self, path):
        before = self.tier.metric("vigil_tier_lists_total")
        status, body = self.admin.get(f"{path}?resourceVersion=0")
        return body if status == 200 and self.tier.metric("vigil_tier_lists_total") > before else None

    def watch(self, path, caller=None):
        events = (caller or self.admin).watch(path)
        self.addCleanup(events.close)
        self.assertEqual(events.status, 200)
        return events

    def both(self, path):
        pair = Both(self.direct, self.admin, path)
        self.addCleanup(pair.close)
        self.assertEqual([events.status for events in pair.pair], [200, 200])
        return pair

    def phase(self, resource, tier=None):
        """The metrics of the mirrors of a resource."""
        return [line for line in (tier or self.tier).own_page("/metrics")[1].splitlines()
                if line.startswith("vigil_tier_") and f'"{resource}"' in line]


__all__ = ["INITIAL", "RBAC", "READY_SECONDS", "WAIT_SECONDS", "Apiserver", "Authority", "Both", "Caller", "Relay", "Server", "Tier",
           "TierWorld", "config_map", "eventually", "named", "start_store", "version"]
