#!/usr/bin/python3
"""The watch tier in front of two replicas of a kube-apiserver, while what is between them and behind it fails. Every
answer that a client gets is compared with what has happened. VIGIL_TIER_SECONDS: how long there are faults;
VIGIL_TIER_SEED: which; VIGIL_TIER=none: the kube-apiserver in the place of the tier, without faults."""
import contextlib
import http.client
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
from tier_checker import History, Scope  # noqa: E402
from tier_clients import Follower, Lister, Outsider, Recorder, Run, Writer, b64  # noqa: E402
from tier_proxy import Proxy  # noqa: E402

DIRECT = os.environ.get("VIGIL_TIER") == "none"
SECONDS = float(os.environ.get("VIGIL_TIER_SECONDS", "60"))
SEED = os.environ.get("VIGIL_TIER_SEED") or str(random.SystemRandom().randrange(1_000_000))
SETTLE_SECONDS = float(os.environ.get("VIGIL_TIER_SETTLE", "240"))
NAMESPACES = ("red", "green", "blue")
NAMES = [(namespace, f"map-{i}") for namespace in NAMESPACES for i in range(6)]
RBAC = "/apis/rbac.authorization.k8s.io/v1/namespaces/red"


class Replica(Apiserver):
    def kill(self):
        self.process.kill()
        self.process.wait()

    def restart(self):
        self.process = subprocess.Popen(self.process.args, stdout=self.log, stderr=subprocess.STDOUT, start_new_session=True)


def eventually(condition, seconds=READY_SECONDS):
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, "the condition did not become true"
        time.sleep(0.1)
    return found


class Faults(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        print(f"seed {SEED}", flush=True)
        scratch = tempfile.TemporaryDirectory(prefix="vigil-tier-faults-")
        self.addCleanup(scratch.cleanup)
        self.scratch = pathlib.Path(scratch.name)
        self.random = random.Random(f"{SEED}/faults")
        self.backend = Server(self.scratch / "backend")
        self.backend.start()
        self.addCleanup(self.backend.stop)
        self.run_of_it = Run(History())
        self.recorder = Recorder(self.backend.port, self.run_of_it.history)
        self.addCleanup(self.recorder.close)
        self.replicas = [self.replica(f"replica-{i}") for i in range(2)]
        identity = Authority(self.scratch / "proxy").sign("proxy")
        self.proxy = Proxy([replica.port for replica in self.replicas], identity, SEED)
        self.addCleanup(self.proxy.stop)
        for replica in self.replicas:
            replica.wait_ready()
        self.tier = None
        if not DIRECT:
            self.tier = Tier(self.scratch, f"https://127.0.0.1:{self.proxy.port}")
            self.addCleanup(self.tier.close)
            self.tier.start()
        self.direct = [Caller(replica.port, "the-token") for replica in self.replicas]
        self.admin = self.caller("the-token")
        self.make_namespaces()

    def replica(self, name):
        (self.scratch / name).mkdir()
        replica = Replica(self.scratch / name, self.backend.url, ("--storage-media-type=application/json",))
        self.addCleanup(replica.stop)
        return replica

    def caller(self, token):
        return Caller(self.tier.port if self.tier else self.replicas[0].port, token)

    def make(self, path, body):
        status, answer = self.direct[0].send("POST", path, body)
        self.assertEqual(status, 201, answer)

    def make_namespaces(self):
        """Jane may read the config maps of red, and nothing else."""
        for name in NAMESPACES:
            self.make("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        version = "rbac.authorization.k8s.io/v1"
        self.make(f"{RBAC}/roles", {"apiVersion": version, "kind": "Role", "metadata": {"name": "reader"}, "rules": [
            {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "watch"]}]})
        self.make(f"{RBAC}/rolebindings", {
            "apiVersion": version, "kind": "RoleBinding", "metadata": {"name": "reader"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"},
            "subjects": [{"kind": "User", "name": "jane", "apiGroup": "rbac.authorization.k8s.io"}]})
        jane = [Caller(replica.port, "weak-token") for replica in self.replicas]
        eventually(lambda: all(caller.get("/api/v1/namespaces/red/configmaps")[0] == 200 for caller in jane))

    # -- Who is there --

    def start(self):
        run, admin, jane = self.run_of_it, self.admin, self.caller("weak-token")
        everything, of_a = Scope(), Scope(label=("group", "a"))
        self.writers = [Writer(run, f"writer-{i}", SEED, caller, NAMES, 0.15)
                        for i, caller in enumerate((admin, self.direct[0], self.direct[1]))]
        self.followers = [
            Follower(run, "all", SEED, admin, everything),
            Follower(run, "all-stream", SEED, admin, everything, start="stream"),
            Follower(run, "group-a", SEED, admin, of_a),
            Follower(run, "group-a-stream", SEED, admin, of_a, start="stream"),
            Follower(run, "green", SEED, admin, Scope(namespace="green")),
            Follower(run, "green-a", SEED, admin, Scope(namespace="green", label=("group", "a"))),
            Follower(run, "one", SEED, admin, Scope(namespace="blue", name="map-1")),
            Follower(run, "jane", SEED, jane, Scope(namespace="red"), more=(403,)),
        ]
        self.others = [
            Lister(run, "lister", SEED, admin, everything), Lister(run, "lister-a", SEED, admin, of_a),
            Lister(run, "lister-green", SEED, admin, Scope(namespace="green")),
            Outsider(run, "outsider-green", SEED, jane, Scope(namespace="green"), more=(403,)),
            Outsider(run, "outsider-all", SEED, jane, everything, more=(403,)),
        ]
        for actor in self.writers + self.followers + self.others:
            actor.start()

    def failed(self):
        return "\n".join(self.run_of_it.fatal)

    def finish(self):
        """One last change of every object, which all followers must see; then everything is compared."""
        run = self.run_of_it
        run.stop_writers.set()
        for actor in self.writers + self.others:
            actor.join(SETTLE_SECONDS)
            self.assertFalse(actor.is_alive(), f"{actor.name}: {actor.doing}")
        last = Writer(run, "last", SEED, self.direct[0], NAMES, 0)
        revisions = [eventually(lambda key=key: last.write(key, "PUT", "a") or last.write(key, "POST", "a")) for key in NAMES]
        self.recorder.wait(max(revisions), SETTLE_SECONDS)
        for follower in self.followers:
            follower.wanted = run.history.last(follower.scope)
        for follower in self.followers:
            follower.join(SETTLE_SECONDS)
            self.assertFalse(follower.is_alive(), f"{follower.name} has seen {follower.seen} of {follower.wanted}: "
                                                  f"{follower.doing}\n{self.failed()}")
        run.stop.set()
        print(f"{len(run.history.changes)} changes; {dict(sorted(run.counts.items()))}; proxy: {dict(self.proxy.counts)}",
              flush=True)
        found = run.check()
        self.assertFalse(run.fatal + found, f"seed {SEED}: {len(found)} violations:\n" + "\n".join((run.fatal + found)[:20]))
        self.assertGreater(run.counts["writes"], len(NAMES))
        if self.tier:
            self.tier.stop()

    # -- Faults --

    def pass_time(self, seconds):
        """Faults come by the clock. It ends early if a client has failed."""
        end = time.monotonic() + seconds
        while time.monotonic() < end and not self.run_of_it.fatal:
            time.sleep(0.05)

    def cut_all(self):
        self.proxy.cut_all()

    def pause(self):
        self.proxy.pause()
        self.pass_time(1 + 3 * self.random.random())
        self.proxy.resume()

    def restart_tier(self):
        self.tier.kill()
        for report in ("Sanitizer", "runtime error:"):
            self.assertNotIn(report, self.tier.log)
        self.tier.start()

    def restart_replica(self):
        for replica in self.replicas:
            replica.wait_ready()  # from the last time
        replica = self.random.choice(self.replicas)
        replica.kill()
        replica.restart()

    def lose_history(self):
        """Both replicas start with a history that is younger than what the tier has."""
        for replica in self.replicas:
            replica.wait_ready()
        self.proxy.pause()
        self.proxy.cut_all()
        for replica in self.replicas:
            replica.kill()
        # Changes that the new histories do not have.
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.backend.port, timeout=60)) as etcd:
            def call(path, body):
                etcd.request("POST", path, json.dumps(body))
                answer = etcd.getresponse()
                text = answer.read()
                self.assertEqual(answer.status, 200, text)
                return json.loads(text)
            revision = [call("/v3/kv/put", {"key": b64("/unrelated"), "value": b64(str(i))}) for i in range(3)][-1]["header"]["revision"]
            call("/v3/kv/compaction", {"revision": revision})
        for replica in self.replicas:
            replica.restart()
        for replica in self.replicas:
            replica.wait_ready()
        self.proxy.resume()

    def disturb(self, seconds):
        """Every fault once at least."""
        self.proxy.cut_chance, self.proxy.busy_chance, self.proxy.delay_chance = 0.3, 0.03, 0.2
        end = time.monotonic() + seconds
        rounds = 0
        while (time.monotonic() < end or not rounds) and not self.run_of_it.fatal:
            faults = [self.cut_all, self.pause, self.restart_tier, self.restart_replica, self.cut_all, self.restart_tier,
                      self.lose_history, self.pause]
            self.random.shuffle(faults)
            for fault in faults:
                if self.run_of_it.fatal or (rounds and time.monotonic() >= end):
                    break
                self.pass_time(3 * self.random.random())
                self.run_of_it.count(f"fault {fault.__name__}")
                fault()
            rounds += 1
        self.proxy.calm()
        for replica in self.replicas:
            replica.wait_ready()

    # -- The tests --

    def test_without_faults(self):
        self.start()
        self.pass_time(min(SECONDS / 4, 15))
        self.finish()

    @unittest.skipIf(DIRECT, "the tier's")
    def test_with_faults(self):
        self.start()
        self.disturb(SECONDS)
        self.finish()


if __name__ == "__main__":
    unittest.main()
