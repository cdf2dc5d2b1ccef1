#!/usr/bin/python3
"""A kube-apiserver that is killed and started again behind a watch tier, whose account has the role of examples/tier/tier.yaml. Until it
has loaded its roles and custom resources, it refuses what the tier mirrors."""
import contextlib
import http.client
import pathlib
import subprocess
import sys
import threading
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/kube"))
from apiserver_test import CRD  # noqa: E402
from tier_bad_days_test import Relay  # noqa: E402
from tier_world import Caller, TierWorld, config_map, eventually, named, version  # noqa: E402

RESTARTS = 1
ETCD_DELAY_S = 0.3  # of every piece that it sends or gets
REFUSED_S = 10  # the account is refused for at least this long
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


class Follower:
    """Lists what may be old, watches, and lists again when the watch has ended, as an informer does."""

    def __init__(self, caller, path):
        self.caller, self.path = caller, path
        self.known, self.watches, self.ends = set(), 0, []
        self.stopped = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        while not self.stopped.wait(0.2):
            with contextlib.suppress(OSError, http.client.HTTPException):
                self.follow()

    def follow(self):
        status, body = self.caller.get(f"{self.path}?resourceVersion=0")
        if status != 200:  # without the kube-apiserver it is unknown who this is
            return
        events = self.caller.watch(f"{self.path}?watch=1&allowWatchBookmarks=true&resourceVersion={version(body)}")
        self.watches += events.status == 200
        while not self.stopped.is_set() and not events.ended:
            with events.changed:
                events.changed.wait(0.1)
                self.known = set(named(body)) | {e["object"]["metadata"]["name"] for e in events.events if e["type"] == "ADDED"}
        self.ends += [e["object"]["code"] for e in events.events if e["type"] == "ERROR"]
        events.close()

    def stop(self):
        self.stopped.set()
        self.thread.join()


class Restarts(TierWorld):
    """Its etcd is slow while it starts, so that it takes some seconds to load its roles."""

    @classmethod
    def upstream_of_apiserver(cls):
        cls.relay = Relay(cls.backend.port)
        cls.addClassCleanup(cls.relay.stop)
        return f"http://127.0.0.1:{cls.relay.port}"

    @classmethod
    def start_tiers(cls):
        manifest = ROOT / "examples/tier/tier.yaml"
        cls.apiserver.kubectl("apply", "-f", str(manifest))
        status, made = cls.direct.send("POST", "/api/v1/namespaces/vigil-system/serviceaccounts/vigil-tier/token", {
            "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}})
        if status != 201:
            raise AssertionError(made)
        cls.account = Caller(cls.apiserver.port, made["status"]["token"])
        cls.tier = cls.start_tier(token=made["status"]["token"])
        cls.admin = Caller(cls.tier.port, "the-token")
        cls.jane = Caller(cls.tier.port, "weak-token")

    def restart(self, paths):
        """Returns what the account of the tier was answered until it could read everything."""
        self.relay.delay_s = ETCD_DELAY_S
        self.addCleanup(setattr, self.relay, "delay_s", 0.0)
        process = self.apiserver.process
        process.kill()
        process.wait()
        self.apiserver.process = subprocess.Popen(process.args, stdout=self.apiserver.log, stderr=subprocess.STDOUT, start_new_session=True)
        answers = set()

        def reads_everything():
            with contextlib.suppress(OSError):
                now = {self.account.get(f"{path}?limit=1")[0] for path in paths}
                if 403 in now - answers:  # etcd answers nothing for a while
                    self.relay.delay_s = REFUSED_S
                    time.sleep(REFUSED_S)
                    self.relay.delay_s = 0.0
                answers.update(now)
                return now == {200}

        eventually(reads_everything)
        self.apiserver.wait_ready()
        print(f"its account was answered {sorted(answers)} until it could read everything", flush=True)
        return answers

    def phases(self):
        return [line for line in self.tier.own_page("/metrics")[1].splitlines() if line.startswith("vigil_tier_collections{")]

    def test_no_mirror_is_given_up_and_no_watch_is_passed_on(self):
        self.make(CRDS, CRD)
        lamps = f"/apis/example.com/v1/namespaces/{self.name}/lamps"
        eventually(lambda: self.direct.get(lamps)[0] == 200)
        self.grant("jane", [{"apiGroups": ["", "example.com"], "resources": ["configmaps", "lamps"], "verbs": ["get", "list", "watch"]}])
        paths = (self.maps, lamps)
        made = [[], []]

        def put(name):
            for path, names in zip(paths, made):
                body = config_map(name) if path == self.maps else {
                    "apiVersion": "example.com/v1", "kind": "Lamp", "metadata": {"name": name}}
                eventually(lambda path=path, body=body: self.wrote(path, body))
                names.append(name)

        put("a")
        for path in paths:
            eventually(lambda path=path: self.jane.get(f"{path}?resourceVersion=0")[0] == 200)
        followers = [Follower(caller, path) for caller in (self.admin, self.jane) for path in paths]
        for follower in followers:
            self.addCleanup(follower.stop)
            eventually(lambda follower=follower: follower.watches == 1)
        passed_on = self.tier.metric("vigil_tier_unmirrored_total")
        for number in range(RESTARTS):
            self.assertIn(403, self.restart(paths))
            put(f"b{number}")
            for follower, names in zip(followers, made * 2):
                eventually(lambda follower=follower, names=names: follower.known >= set(names))
            self.assertIn('vigil_tier_collections{phase="refused"} 0', self.phases())
        for follower in followers:
            # Their history may be lost, but neither their right nor the mirror.
            self.assertEqual(set(follower.ends) - {410}, set())
        self.assertEqual(self.tier.metric("vigil_tier_unmirrored_total"), passed_on)
        self.assertNotIn("given up", self.tier.log)

    def wrote(self, path, body):
        try:
            return self.direct.send("POST", path, body)[0] in (201, 409)
        except OSError:
            return False


if __name__ == "__main__":
    unittest.main()
