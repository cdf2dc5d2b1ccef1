#!/usr/bin/python3
"""The watch tier in front of two replicas of a kube-apiserver, while what is between them and behind it fails. Every
answer that a client gets is compared with what has happened. VIGIL_TIER_SECONDS: how long there are faults;
VIGIL_TIER_KILLS: how many programs are killed; VIGIL_TIER_PACE: by how much clients are slower; VIGIL_TIER_SEED: which
faults; VIGIL_TIER_STORE: what stores the data, etcd or vigil; VIGIL_TIER_RESULT: the file for the numbers of the kills,
in the form that all parts of the report have; VIGIL_TIER=none: the kube-apiserver in the place of the tier, without
faults."""
import contextlib
import datetime
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
from tier import Caller, Tier  # noqa: E402
from tier_checker import LATE_S, History, Scope  # noqa: E402
from tier_clients import (PACE, Follower, Granter, Lister, Outsider, Reader, Recorder, Resumer, Run, Starter, Writer,  # noqa: E402
                          b64)
from tier_formats import FORMATS  # noqa: E402
from tier_h2 import H2Caller  # noqa: E402
from tier_proxy import Proxy, SplittingProxy  # noqa: E402
from tier_world import STORE, Relay, start_store  # noqa: E402

DIRECT = os.environ.get("VIGIL_TIER") == "none"
SECONDS = float(os.environ.get("VIGIL_TIER_SECONDS", "60"))
KILLS = int(os.environ.get("VIGIL_TIER_KILLS", "6"))
WANTED_KILLS = 100  # what the project aims at
CALM_SECONDS = 30  # a right is granted, revoked and granted again
ON_VIGIL = ("test_without_faults",)  # the others have a real etcd, so that no fault is common to the store and the tier
RIGHTS_S = 2  # how long the tier uses an answer about rights
SEED = os.environ.get("VIGIL_TIER_SEED") or str(random.SystemRandom().randrange(1_000_000))
SETTLE_SECONDS = float(os.environ.get("VIGIL_TIER_SETTLE", "240"))
NAMESPACES = ("red", "green", "blue")
NAMES = [(namespace, f"map-{i}") for namespace in NAMESPACES for i in range(6)]
SELDOM = ("grey", "map-0")  # in a namespace that is often empty
RBAC = "/apis/rbac.authorization.k8s.io/v1"
PROTOBUF, METADATA, BOTH = FORMATS["protobuf"], FORMATS["metadata"], FORMATS["metadata-protobuf"]


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
    violations = None  # when everything was compared

    def setUp(self):
        print(f"{self.id()}: seed {SEED}", flush=True)
        scratch = tempfile.TemporaryDirectory(prefix="vigil-tier-faults-")
        self.addCleanup(scratch.cleanup)
        self.scratch = pathlib.Path(scratch.name)
        self.random = random.Random(f"{SEED}/faults")
        name = self.id().rsplit(".", 1)[-1]
        self.store = STORE or ("vigil" if name in ON_VIGIL else "etcd")
        self.began = time.monotonic()
        self.backend = start_store(self.scratch / "backend", self.store)
        self.addCleanup(self.backend.stop)
        calm = name == "test_without_faults"
        ages = name == "test_replicas_of_different_age"
        self.run_of_it = Run(History(), calm=calm, ttl_s=0 if DIRECT else RIGHTS_S)
        self.recorder = Recorder(self.backend.port, self.run_of_it.history)
        self.addCleanup(self.recorder.close)
        self.tokens = self.scratch / "users.csv"
        self.tokens.write_text("the-token,admin,admin,system:masters\nweak-token,jane,jane\nbobs-token,bob,bob\n")
        # Through these the replicas reach their etcd. One that is paused makes a replica older than the other.
        self.relays = [Relay(self.backend.port) for _ in range(2)] if ages else []
        for relay in self.relays:
            self.addCleanup(relay.stop)
        self.replicas = [self.replica(f"replica-{i}", self.relays[i].port if ages else self.backend.port) for i in range(2)]
        identity = Authority(self.scratch / "proxy").sign("proxy")
        self.proxy = (SplittingProxy if ages else Proxy)([replica.port for replica in self.replicas], identity, SEED)
        self.addCleanup(self.proxy.stop)
        for replica in self.replicas:
            replica.wait_ready()
        self.tier = None
        if not DIRECT:
            self.tier = Tier(self.scratch, f"https://127.0.0.1:{self.proxy.port}", args=[f"--upstream-rights-ttl={RIGHTS_S}s"])
            self.addCleanup(self.tier.close)
            self.tier.start()
        self.direct = [Caller(replica.port, "the-token") for replica in self.replicas]
        self.admin = self.caller("the-token")
        self.make_namespaces()

    def replica(self, name, etcd_port):
        (self.scratch / name).mkdir()
        replica = Replica(self.scratch / name, f"http://127.0.0.1:{etcd_port}", (
            "--storage-media-type=application/json", f"--token-auth-file={self.tokens}"))
        self.addCleanup(replica.stop)
        return replica

    def caller(self, token=None, cn=None, kind=Caller):
        """One with a token, or with a certificate, which only the tier takes."""
        identity = self.tier.authority.sign(f"{cn}-{kind.__name__}", cn=cn) if cn else None
        made = kind(self.tier.port if self.tier else self.replicas[0].port, token, identity)
        if kind is H2Caller:
            self.addCleanup(made.close)
        return made

    def make(self, path, body):
        status, answer = self.direct[0].send("POST", path, body)
        self.assertEqual(status, 201, answer)

    def make_binding(self, where, kind, name):
        self.make(f"{RBAC}{where}/{kind.lower()}bindings", {
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": f"{kind}Binding", "metadata": {"name": name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": "reader"},
            "subjects": [{"kind": "User", "name": name, "apiGroup": "rbac.authorization.k8s.io"}]})

    def make_namespaces(self):
        """Jane may read the config maps of red, and carol all; bob and dave may read those of green now and then."""
        for name in (*NAMESPACES, SELDOM[0]):
            self.make("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        for where, kind in (("/namespaces/red", "Role"), ("/namespaces/green", "Role"), ("", "ClusterRole")):
            self.make(f"{RBAC}{where}/{kind.lower()}s", {
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": {"name": "reader"},
                "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "watch"]}]})
        self.make_binding("/namespaces/red", "Role", "jane")
        self.make_binding("", "ClusterRole", "carol")
        jane = [Caller(replica.port, "weak-token") for replica in self.replicas]
        eventually(lambda: all(caller.get("/api/v1/namespaces/red/configmaps")[0] == 200 for caller in jane))

    # -- Who is there --

    def start(self):
        run, admin, jane, bob = self.run_of_it, self.admin, self.caller("weak-token"), self.caller("bobs-token")
        shared, janes = self.caller("the-token", kind=H2Caller), self.caller("weak-token", kind=H2Caller)
        everything, of_a, red, green = Scope(), Scope(label=("group", "a")), Scope(namespace="red"), Scope(namespace="green")
        refused = () if run.calm else (403,)  # a kube-apiserver that starts does not know its roles yet; running watches continue
        readers = [None, Reader(run, "reader-json", SEED, admin, everything), None,
                   Reader(run, "reader-protobuf", SEED, shared, everything, form=PROTOBUF)]
        self.writers = [Writer(run, f"writer-{i}", SEED, caller, NAMES, 0.15 * PACE, readers[i])
                        for i, caller in enumerate((admin, self.direct[0], self.direct[1], shared))]
        self.writers.append(Writer(run, "writer-seldom", SEED, self.direct[0], [SELDOM], 2 * PACE))
        self.granter = Granter(run, "granter", SEED, self.direct, f"{RBAC}/namespaces/green/rolebindings", "reader", ("bob", "dave"))
        bobs, daves = self.granter.grants.values()
        self.followers = [
            Follower(run, "all", SEED, admin, everything),
            Follower(run, "all-stream", SEED, admin, everything, start="stream"),
            Follower(run, "all-protobuf", SEED, admin, everything, form=PROTOBUF),
            Follower(run, "all-metadata", SEED, admin, everything, start="stream", form=METADATA),
            Follower(run, "group-a", SEED, admin, of_a),
            Follower(run, "group-a-stream", SEED, admin, of_a, start="stream", form=PROTOBUF),
            Follower(run, "green", SEED, admin, green),
            Follower(run, "green-a", SEED, admin, Scope(namespace="green", label=("group", "a"))),
            Follower(run, "one", SEED, admin, Scope(namespace="blue", name="map-1")),
            Follower(run, "jane", SEED, jane, red, more=refused),
            Follower(run, "bob", SEED, bob, green, grants=bobs),
            Follower(run, "seldom", SEED, admin, Scope(namespace=SELDOM[0])),
            Follower(run, "seldom-stream", SEED, admin, Scope(namespace=SELDOM[0]), start="stream", form=PROTOBUF),
            # These share two connections.
            Follower(run, "h2-all", SEED, shared, everything),
            Follower(run, "h2-protobuf", SEED, shared, everything, start="stream", form=PROTOBUF),
            Follower(run, "h2-both-a", SEED, shared, of_a, form=BOTH),
            Follower(run, "h2-green", SEED, shared, green, start="stream", form=METADATA),
            Follower(run, "h2-one", SEED, shared, Scope(name="map-2"), form=PROTOBUF),
            Follower(run, "h2-seldom", SEED, shared, Scope(namespace=SELDOM[0]), start="stream"),
            Follower(run, "h2-jane", SEED, janes, red, form=PROTOBUF, more=refused),
        ]
        self.others = [
            Lister(run, "lister", SEED, admin, everything), Lister(run, "lister-a", SEED, admin, of_a),
            Lister(run, "lister-green", SEED, shared, green), Lister(run, "lister-protobuf", SEED, admin, everything, form=PROTOBUF),
            Lister(run, "lister-both", SEED, admin, everything, form=BOTH),
            Lister(run, "lister-bob", SEED, bob, green, grants=bobs),
            Resumer(run, "resumer", SEED, admin, everything, more=(410,)),
            Resumer(run, "resumer-a", SEED, shared, of_a, more=(410,), form=PROTOBUF),
            Resumer(run, "resumer-green", SEED, admin, green, more=(410,), form=METADATA),
            Starter(run, "starter", SEED, shared, everything),
            Starter(run, "starter-green", SEED, admin, Scope(namespace="green", label=("group", "b")), form=PROTOBUF),
            Outsider(run, "outsider-green", SEED, jane, green, more=(403,)),
            Outsider(run, "outsider-all", SEED, janes, everything, more=(403,), form=PROTOBUF),
        ]
        if self.tier:
            self.start_with_certificates(run, everything, green, refused, daves)
        self.actors = [*self.writers, *self.followers, *self.others, self.granter]
        for actor in self.actors:
            actor.start()

    def start_with_certificates(self, run, everything, green, refused, daves):
        carol, dave, mallory = self.caller(cn="carol", kind=H2Caller), self.caller(cn="dave"), self.caller(cn="mallory")
        self.followers += [
            Follower(run, "carol", SEED, carol, everything, more=refused),
            Follower(run, "carol-metadata", SEED, carol, everything, start="stream", form=BOTH, more=refused),
            Follower(run, "dave", SEED, dave, green, start="stream", grants=daves),
        ]
        self.others += [
            Lister(run, "lister-dave", SEED, dave, green, form=PROTOBUF, grants=daves),
            Outsider(run, "outsider-mallory", SEED, mallory, everything, more=(403,)),
            Outsider(run, "outsider-mallory-green", SEED, mallory, green, more=(403,)),
        ]

    def failed(self):
        return "\n".join(self.run_of_it.fatal)

    def finish(self):
        """One last change of every object, which all followers must see; then everything is compared."""
        run = self.run_of_it
        run.stop_writers.set()
        for actor in [*self.writers, *self.others, self.granter]:
            actor.join(SETTLE_SECONDS)
            self.assertFalse(actor.is_alive(), f"{actor.name}: {actor.doing}\n{self.failed()}")
        last = Writer(run, "last", SEED, self.direct[0], NAMES, 0)
        revisions = [eventually(lambda key=key: last.write(key, "PUT", "a") or last.write(key, "POST", "a"))
                     for key in (*NAMES, SELDOM)]
        self.recorder.wait(max(revisions), SETTLE_SECONDS)
        for follower in self.followers:
            follower.wanted = run.history.last(follower.scope)
        for follower in self.followers:
            follower.join(SETTLE_SECONDS)
            self.assertFalse(follower.is_alive(), f"{follower.name} has seen {follower.seen} of {follower.wanted}: "
                                                  f"{follower.doing}\n{self.failed()}")
        run.stop.set()
        found = run.check()
        self.violations = run.fatal + found
        print(f"{len(run.history.changes)} changes; {len(self.actors)} clients; {dict(sorted(run.counts.items()))}; "
              f"{len(run.checks)} checks; proxy: {dict(self.proxy.counts)}; {len(run.fatal + found)} violations", flush=True)
        self.assertFalse(run.fatal + found, f"seed {SEED}: {len(found)} violations:\n" + "\n".join((run.fatal + found)[:20]))
        self.assertGreater(run.counts["writes"], len(NAMES))
        if run.calm and self.tier:
            self.assertGreater(run.counts["ends with a bookmark"], run.counts["ends without a bookmark"])
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
        self.run_of_it.incarnation += 1
        self.assertTrue(self.tier.alive(), self.tier.log)
        self.tier.kill()
        for report in ("Sanitizer", "runtime error:"):
            self.assertNotIn(report, self.tier.log)
        self.tier.start()
        self.run_of_it.incarnation += 1

    def restart_replica(self):
        for replica in self.replicas:
            replica.wait_ready()  # from the last time
        replica = self.random.choice(self.replicas)
        replica.kill()
        replica.restart()

    def kill_in_turn(self, number):
        """The tier, or the replicas in turn. One that is still starting is killed later; the other may be starting, too."""
        if number % 2 == 0:
            self.restart_tier()
            return
        replica = self.replicas[number // 2 % 2]
        replica.wait_ready()
        self.pass_time(2 * self.random.random())
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
        # A watch that has not noticed is one that others leave behind.
        self.pass_time(LATE_S + 5)

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
                self.run_of_it.note(fault.__name__)
                fault()
                self.run_of_it.note(f"after {fault.__name__}")
            rounds += 1
        self.proxy.calm()
        for replica in self.replicas:
            replica.wait_ready()

    def let_one_become_old(self):
        """For a shorter time than connections with the etcd live without an answer."""
        relay = self.relays[self.proxy.watching if self.random.random() < 0.7 else 1 - self.proxy.watching]
        relay.pause()
        self.pass_time(1 + 5 * self.random.random())
        relay.resume()

    def write_result(self, path):
        """Also of a run that has failed."""
        counts = self.run_of_it.counts
        commit = subprocess.run(["git", "rev-parse", "--short=8", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False)
        kills = {what: counts[f"kills of {what}"] for what in ("the tier", "a kube-apiserver")}
        rows = [("kills of the tier and of the kube-apiservers", sum(kills.values()), WANTED_KILLS, sum(kills.values()) >= WANTED_KILLS),
                ("events and answers lost, repeated, out of order, or shown without the right", len(self.violations), 0,
                 not self.violations)]
        store = {"etcd": "a real etcd", "vigil": "Vigil"}[self.store]
        facts = [["seed", SEED, ""], ["what stored the data of the kube-apiservers", store, ""],
                 *([f"kills of {what}", count, ""] for what, count in kills.items()),
                 ["clients", len(self.actors), ""], ["changes of objects", len(self.run_of_it.history.changes), ""],
                 ["answers and watches that were compared with the changes", len(self.run_of_it.checks), ""],
                 *([f"… {what}", count, ""] for what, count in sorted(counts.items()) if not what.startswith("kills of"))]
        pathlib.Path(path).write_text(json.dumps({
            "part": "tier", "command": "make tier-kills", "commit": commit.stdout.strip(),
            "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "seconds": round(time.monotonic() - self.began, 1), "facts": facts, "tables": [], "plots": [],
            "rows": [dict(zip(("row", "value", "goal", "met"), row)) for row in rows]}, indent=1, ensure_ascii=False) + "\n", "utf-8")

    # -- The tests --

    def test_without_faults(self):
        # What was listed at the kube-apiserver before the mirror began cannot be watched.
        for form in FORMATS.values():
            eventually(lambda form=form: self.admin.fetch("GET", "/api/v1/configmaps?resourceVersion=0",
                                                          headers={"Accept": form.accept(True)})[0] == 200)
        self.start()
        self.pass_time(CALM_SECONDS)
        self.finish()

    @unittest.skipIf(DIRECT, "the tier's")
    def test_with_faults(self):
        self.start()
        self.disturb(SECONDS)
        self.finish()

    @unittest.skipIf(DIRECT, "the tier's")
    def test_replicas_of_different_age(self):
        """The tier watches at one replica and lists at the other, of which now and then one learns of nothing for a while."""
        self.start()
        end = time.monotonic() + SECONDS
        rounds = 0
        while (time.monotonic() < end or rounds < 3) and not self.run_of_it.fatal:
            self.run_of_it.note("one becomes old")
            self.let_one_become_old()
            self.run_of_it.note("both are new")
            self.pass_time(3 * self.random.random())
            rounds += 1
            if rounds % 3 == 0:
                self.run_of_it.note("the replicas are swapped")
                self.proxy.swap()
        self.finish()
        for what in ("watches", "other requests", "swaps"):
            self.assertGreater(self.proxy.counts[what], 0, what)

    @unittest.skipIf(DIRECT, "the tier's")
    def test_kills(self):
        """The tier and the kube-apiservers are killed in turn, at random moments."""
        if path := os.environ.get("VIGIL_TIER_RESULT"):
            self.addCleanup(lambda: self.violations is not None and self.write_result(path))
        self.start()
        for number in range(KILLS):
            self.pass_time(4 * self.random.random())
            if self.run_of_it.fatal:
                break
            self.run_of_it.count("kills of the tier" if number % 2 == 0 else "kills of a kube-apiserver")
            self.run_of_it.note(f"kill {number}")
            self.kill_in_turn(number)
            self.run_of_it.note(f"after kill {number}")
        for replica in self.replicas:
            replica.wait_ready()
        self.finish()


if __name__ == "__main__":
    unittest.main()
