#!/usr/bin/python3
"""Informers of client-go (tests/kube/goclients/informers) on a kube-apiserver, and through a watch tier in front of it: typed ones
in JSON and protobuf, metadata, dynamic ones, with selectors, with and without streamed lists. They must tell the same events and
end with the same stores. While the tier restarts and loses its connections, nothing may be lost, repeated or go back. Also lists
in pages, and leader elections. VIGIL_TIER_SEED: which changes."""
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/live"))
sys.path.insert(0, str(ROOT / "tests/kube"))
from apiserver_test import READY_SECONDS, Apiserver  # noqa: E402
from certs import Authority  # noqa: E402
from server import Server  # noqa: E402
from tier import Caller, Tier  # noqa: E402
from tier_proxy import Proxy  # noqa: E402

SEED = os.environ.get("VIGIL_TIER_SEED") or str(random.SystemRandom().randrange(1_000_000))
CHANGES = 250  # in each part of a test
RBAC = "/apis/rbac.authorization.k8s.io/v1/namespaces/one"
MERGE = {"Content-Type": "application/merge-patch+json"}
LAMPS = {
    "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "lamps.example.com"},
    "spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "lamps", "singular": "lamp", "kind": "Lamp"},
             "versions": [{"name": "v1", "served": True, "storage": True, "selectableFields": [{"jsonPath": ".spec.on"}],
                           "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {
                               "type": "object", "properties": {"on": {"type": "boolean"}, "size": {"type": "integer"}}}}}}}]}}
# Version 0 may be older than what was written before; no other read may be.
OLD = " any"


def build(root):
    # With the flags of tools/build-kube, most of it is in Go's cache.
    program = root / "informers"
    subprocess.run(["go", "build", "-trimpath", "-ldflags=-s -w", "-o", str(program), "./informers"], cwd=ROOT / "tests/kube/goclients",
                   check=True, env=dict(os.environ, PATH=os.environ["PATH"] + ":/usr/local/go/bin"))
    return program


class Program:
    """A running program of informers."""

    def __init__(self, program, port, streams):
        self.process = subprocess.Popen(
            [str(program), f"https://127.0.0.1:{port}", "the-token", "weak-token"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True, env=dict(os.environ, KUBE_FEATURE_WatchListClient="true" if streams else "false"))

    def ask(self, words):
        self.process.stdin.write(words + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def close(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


class Writer:
    """Makes random changes, and remembers all that it wrote as the kube-apiserver answered."""

    def __init__(self, caller, seed):
        self.caller, self.random = caller, random.Random(seed)
        self.there = {}  # resource and key to the last version
        self.written = {}  # the same to all versions

    def send(self, method, path, body=None, headers=()):
        status, answer = self.caller.send(method, path, body, headers)
        assert status in (200, 201), (method, path, status, answer)
        return answer

    def wrote(self, resource, key, version):
        self.there[resource, key] = version
        self.written.setdefault((resource, key), []).append(version)

    def labels(self):
        return {"labels": {"color": color}} if (color := self.random.choice(("red", "green", ""))) else {}

    def change(self):
        resource = self.random.choice(("configmaps", "configmaps", "secrets", "lamps", "pods"))
        namespace, name = self.random.choice(("one", "two")), f"m{self.random.randrange(6)}"
        key = f"{namespace}/{name}"
        base = "/apis/example.com/v1" if resource == "lamps" else "/api/v1"
        path = f"{base}/namespaces/{namespace}/{resource}"
        if (resource, key) not in self.there:
            made = self.send("POST", path, self.fresh(resource, name))
            self.wrote(resource, key, made["metadata"]["resourceVersion"])
        elif self.random.random() < 0.25:
            self.send("DELETE", f"{path}/{name}", {"gracePeriodSeconds": 0} if resource == "pods" else None)
            del self.there[resource, key]
        else:
            part, patch = self.patch(resource)
            made = self.send("PATCH", f"{path}/{name}{part}", patch, MERGE)
            if made["metadata"]["resourceVersion"] != self.there[resource, key]:
                self.wrote(resource, key, made["metadata"]["resourceVersion"])

    def fresh(self, resource, name):
        metadata = {"name": name, **self.labels()}
        if resource == "lamps":
            return {"apiVersion": "example.com/v1", "kind": "Lamp", "metadata": metadata, "spec": {"on": self.random.random() < 0.5}}
        if resource == "pods":
            node = self.random.choice(({"nodeName": "n1"}, {"nodeName": "n2"}, {}))
            return {"metadata": metadata, "spec": {"containers": [{"name": "c", "image": "i"}], **node}}
        return {"metadata": metadata, "data": {"k": "aQ=="}}

    def patch(self, resource):
        """What to patch: the part of the path, and the patch. It changes the selections that an object is in."""
        value = str(self.random.randrange(1 << 30))
        metadata = {"labels": {"color": self.random.choice(("red", "green", None))}, "annotations": {"value": value}}
        if resource == "lamps":
            return "", {"metadata": metadata, "spec": {"on": self.random.random() < 0.5, "size": int(value)}}
        if resource == "pods":
            if self.random.random() < 0.5:
                return "/status", {"status": {"phase": self.random.choice(("Running", "Pending")), "message": value}}
            return "", {"metadata": metadata}
        return "", {"metadata": metadata}

    def run(self, count):
        for _ in range(count):
            self.change()


def flat(dump, part):
    return {name: row[part] for name, row in dump.items()}


class Informers(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        print(f"seed {SEED}", flush=True)
        scratch = tempfile.TemporaryDirectory(prefix="vigil-informers-")
        cls.addClassCleanup(scratch.cleanup)
        root = pathlib.Path(scratch.name)
        cls.program = build(root)
        backend = Server(str(root / "backend"))
        backend.start()
        cls.addClassCleanup(backend.stop)
        cls.apiserver = Apiserver(root, backend.url)
        cls.addClassCleanup(cls.apiserver.stop)
        cls.apiserver.wait_ready()
        cls.proxy = Proxy([cls.apiserver.port], Authority(root / "proxy").sign("proxy"), SEED)
        cls.addClassCleanup(cls.proxy.stop)
        cls.tier = Tier(root, f"https://127.0.0.1:{cls.proxy.port}")
        cls.tier.start()
        cls.addClassCleanup(cls.tier.stop)
        cls.direct = Caller(cls.apiserver.port, "the-token")
        cls.writer = Writer(cls.direct, SEED)
        cls.prepare()

    @classmethod
    def prepare(cls):
        send = cls.writer.send
        for name in ("one", "two"):
            send("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
        rights = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "watch"]}]
        send("POST", f"{RBAC}/roles", {"metadata": {"name": "reader"}, "rules": rights})
        send("POST", f"{RBAC}/rolebindings", {
            "metadata": {"name": "reader"}, "subjects": [{"kind": "User", "name": "jane", "apiGroup": "rbac.authorization.k8s.io"}],
            "roleRef": {"kind": "Role", "name": "reader", "apiGroup": "rbac.authorization.k8s.io"}})
        send("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", LAMPS)
        jane = Caller(cls.apiserver.port, "weak-token")
        cls.eventually(lambda: cls.direct.get("/apis/example.com/v1/lamps")[0] == 200)
        cls.eventually(lambda: jane.get("/api/v1/namespaces/one/configmaps")[0] == 200)
        cls.writer.run(CHANGES // 2)

    @staticmethod
    def eventually(condition, what=lambda: "the condition did not become true"):
        end = time.monotonic() + READY_SECONDS
        while not (found := condition()):
            if time.monotonic() > end:
                raise AssertionError(what())
            time.sleep(0.2)
        return found

    def programs(self):
        """Of each, whether it streams lists, and whether it uses the tier."""
        made = {}
        for streams in (True, False):
            for through in (False, True):
                made[streams, through] = Program(self.program, self.tier.port if through else self.apiserver.port, streams)
                self.addCleanup(made[streams, through].close)
        return made

    # -- Informers --

    def wait_equal(self, programs):
        """Waits until all stores are the same, and those without a selector have what was written last; returns what all tell."""
        written = {}
        for (resource, key), version in self.writer.there.items():
            written.setdefault(resource, {})[key] = version

        def settled():
            dumps = {which: program.ask("dump") for which, program in programs.items()}
            stores = [flat(dump, "store") for dump in dumps.values()]
            if any(store != stores[0] for store in stores):
                return None
            for resource in ("configmaps json", "configmaps protobuf", "secrets json", "pods protobuf", "lamps dynamic"):
                have = {key: e["version"] for key, e in stores[0][resource].items() if key.startswith(("one/", "two/"))}
                if {k: v for k, v in have.items() if "kube-root-ca" not in k} != written[resource.split()[0]]:
                    return None
            return dumps if all(row["synced"] for dump in dumps.values() for row in dump.values()) else None

        def differences():
            dumps = {which: flat(program.ask("dump"), "store") for which, program in programs.items()}
            first = dumps[True, False]
            return str([(which, name, dumps[which][name], first[name]) for which in dumps for name in first
                        if dumps[which][name] != first[name]])[:8000] + f" written {written}"[:4000]
        return self.eventually(settled, differences)

    def check_all_written_were_told(self, dump):
        for resource, informer in (("configmaps", "configmaps json"), ("secrets", "secrets protobuf"), ("lamps", "lamps dynamic")):
            rows = [(key, written) for (kind, key), written in self.writer.written.items() if kind == resource]
            for key, written in rows:
                told = [e["version"] for e in dump[informer]["events"].get(key, []) if e["what"] in ("added", "updated")]
                # The informer began when some versions were there no more, and the object too may have been gone.
                self.assertEqual(told, written[len(written) - len(told):], (informer, key))
            self.assertGreater(sum(len(dump[informer]["events"].get(key, [])) for key, _ in rows), 30, informer)

    def check_order(self, name, rows, direct):
        """No event comes twice, none is older than the one before it, and each is one that came without the tier."""
        for key, events in rows["events"].items():
            there = {(e["version"], e["digest"]) for e in direct["events"][key]}
            last, exists = 0, False
            for e in events:
                version = int(e["version"])
                self.assertEqual(e["what"] == "added", not exists, (name, key, events))
                if e["what"] == "gone":  # with the last state that it had
                    self.assertEqual(version, last, (name, key, events))
                else:
                    self.assertGreater(version, last, (name, key, events))
                    self.assertIn((e["version"], e["digest"]), there, (name, key, events))
                last, exists = version, e["what"] in ("added", "updated")

    def test_informers(self):
        programs = self.programs()
        followed = {which: program.ask("follow") for which, program in programs.items()}
        self.assertGreater(min(followed.values()), 30)
        self.wait_equal(programs)
        # The watches of those that stream their lists are never passed on; of the others a few are, because they begin early.
        self.assertGreaterEqual(self.tier.metric("vigil_tier_watches_total"), followed[True, True])
        self.assertGreater(self.tier.metric("vigil_tier_lists_total"), 0)
        # Nothing fails: the same events.
        self.writer.run(CHANGES)
        dumps = self.wait_equal(programs)
        for streams in (True, False):
            direct, tier = dumps[streams, False], dumps[streams, True]
            self.check_all_written_were_told(direct)
            for name, rows in tier.items():
                with self.subTest(name=name, streams=streams):
                    self.assertEqual(rows["events"], direct[name]["events"])
                    self.assertEqual((rows["errors"], direct[name]["errors"]), ([], []))
                    if " again " in name:
                        self.assertGreater(rows["resyncs"], 0)
        # The tier restarts, and loses its connections.
        self.writer.run(CHANGES // 5)
        self.tier.stop()
        self.writer.run(CHANGES // 5)
        self.tier.start()
        self.writer.run(CHANGES // 5)
        self.wait_equal(programs)
        for _ in range(3):
            self.writer.run(CHANGES // 10)
            self.proxy.cut_all()
            self.writer.run(CHANGES // 10)
        dumps = self.wait_equal(programs)
        for streams in (True, False):
            for name, rows in dumps[streams, True].items():
                with self.subTest(name=name, streams=streams):
                    self.check_order(name, rows, dumps[streams, False][name])

    # -- Lists in pages --

    def test_lists_in_pages(self):
        direct = Program(self.program, self.apiserver.port, True)
        self.addCleanup(direct.close)
        tier = Program(self.program, self.tier.port, True)
        self.addCleanup(tier.close)

        def lists(program):
            answers = program.ask("lists")
            for name, answer in answers.items():
                # A page that ends with the last object of a selection: a kube-apiserver may still announce another, which is empty.
                if " red " in name and isinstance(answer, dict):
                    answer["paged"] = None
            return answers
        for _ in range(5):
            self.writer.run(10)
            theirs, ours = lists(direct), lists(tier)
            self.assertEqual(set(ours), set(theirs))
            for name, there in theirs.items():
                if OLD not in name:
                    with self.subTest(name=name):
                        self.assertEqual(ours[name], there)
            wanted = {name: there for name, there in theirs.items() if OLD in name}

            def same(wanted=wanted):
                now = lists(tier)
                return all(now[name] == there for name, there in wanted.items())
            self.eventually(same, lambda: str([(n, lists(tier)[n], w) for n, w in wanted.items() if lists(tier)[n] != w]))

    # -- Leader elections --

    def test_leader_election(self):
        through, other, direct = [Program(self.program, port, True) for port in (self.tier.port, self.tier.port, self.apiserver.port)]
        for program in (through, other, direct):
            self.addCleanup(program.close)

        def until(program, name, part, wanted):
            self.eventually(lambda: program.ask("leaders")[name][part] == wanted, lambda: str(program.ask("leaders")))
        through.ask("elect a")
        until(through, "a", "happened", ["leads"])
        direct.ask("elect b")
        until(direct, "b", "leaders", ["a"])
        self.tier.stop()
        self.tier.start()
        self.proxy.cut_all()
        other.ask("elect c")
        until(other, "c", "leaders", ["a"])
        self.assertEqual(through.ask("leaders")["a"]["happened"], ["leads"])
        through.ask("leave a")
        until(through, "a", "happened", ["leads", "led"])
        self.eventually(lambda: "leads" in direct.ask("leaders")["b"]["happened"] + other.ask("leaders")["c"]["happened"])
        happened = direct.ask("leaders")["b"]["happened"] + other.ask("leaders")["c"]["happened"]
        self.assertEqual(happened, ["leads"])


if __name__ == "__main__":
    unittest.main()
