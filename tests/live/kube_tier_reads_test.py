#!/usr/bin/python3
"""A watch tier in front of a Vigil that stores objects: what is answered by the mirror, what after a fence, and what by the server
behind it (--upstream-reads); and the limits of sizes and calls. tests/kube/tier_test.py has a kube-apiserver there."""
import concurrent.futures
import re
import time
import unittest
import urllib.request

from server import WAIT_SECONDS, LiveTest, Server, free_port, only_vigil
from tier import Caller, Tier

MAPS = "/api/v1/configmaps"
DEFAULT = "/api/v1/namespaces/default/configmaps"
STATE = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
TOTALS = ("gets", "lists", "watches", "unmirrored", "fences")
REVIEWS = ("tokenreviews", "subjectaccessreviews")
# What a read costs: the answer by the mirror, fences, and requests to the server behind it.
MIRROR, FENCED, BEHIND = "the mirror", "the mirror after a fence", "the server behind it"


class Store(Server):
    """The server behind the tier."""

    def __init__(self, root):
        self.secure_port = free_port()
        tokens = root / "tokens"
        tokens.write_text("the-token,root,1,system:masters\n")
        super().__init__(root / "store", args=[
            f"--listen-kube-urls=https://127.0.0.1:{self.secure_port}", "--auto-tls", f"--kube-token-file={tokens}"])

    def requests(self, verb, *resources):
        """The requests for these resources that it has answered."""
        with urllib.request.urlopen(f"{self.url}/metrics", timeout=WAIT_SECONDS) as answer:
            page = answer.read().decode()
        found = re.findall(r'^apiserver_request_total\{verb="(\w+)",.*resource="([^"]*)".*\} (\d+)$', page, re.M)
        return sum(int(count) for v, resource, count in found if v == verb and (not resources or resource in resources))


def config_map(name, **data):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


@only_vigil
class KubeTierReads(LiveTest):
    def setUp(self):
        super().setUp()
        self.store = Store(self.scratch)
        self.addCleanup(self.store.close)
        self.store.start()
        self.direct = Caller(self.store.secure_port, "the-token")

    def tier(self, *args):
        tier = Tier(self.scratch, f"https://127.0.0.1:{self.store.secure_port}", args=args, name=f"tier-{free_port()}")
        self.addCleanup(tier.close)
        tier.start()
        return tier, Caller(tier.port, "the-token")

    def write(self, name, namespace="default", resource="configmaps", **data):
        path = f"/api/v1/namespaces/{namespace}/{resource}"
        body = config_map(name, **data)
        if resource == "secrets":
            body = {**body, "kind": "Secret", "data": {}, "stringData": data}
        status, answer = self.direct.send("PUT", f"{path}/{name}", body)
        if status == 404:
            status, answer = self.direct.send("POST", path, body)
        self.assertIn(status, (200, 201), answer)
        return answer["metadata"]["resourceVersion"]

    def counts(self, tier):
        own = {name: tier.metric(f"vigil_tier_{name}_total") for name in TOTALS}
        behind = {verb: self.store.requests(verb, "configmaps") for verb in ("GET", "LIST", "WATCH")}
        return {**own, **behind}

    def streamed(self, caller, path):
        """The names of the initial events of a watch, once their end, or this name, has come."""
        events = caller.watch(path)
        self.addCleanup(events.close)
        self.assertEqual(events.status, 200)
        if "allowWatchBookmarks" in path:
            events.wait_initial()
        else:
            events.wait(lambda w: ("ADDED", "newest") in w.names())
        return {name for _, name in events.names()}

    def follow(self, caller, version):
        """A watch from a version has what is written after it."""
        events = caller.watch(f"{MAPS}?watch=1&resourceVersion={version}")
        self.addCleanup(events.close)
        self.assertEqual(events.status, 200)
        self.write("later", k=version)
        events.wait(lambda w: any(name == "later" for _, name in w.names()))

    def check_mode(self, reads, expected):
        """Each kind of read is answered by what is expected."""
        tier, caller = self.tier("--upstream-resources=configmaps", f"--upstream-reads={reads}")
        self.eventually(lambda: tier.own_page("/readyz")[0] == 200)
        for what, (metric, verb, answers) in expected.items():
            with self.subTest(reads=reads, what=what):
                self.write("newest", k=what)
                version = self.write("newest", k=f"{what} again")
                # What follows sees it in every mode. Its event has come, so that nothing else is requested meanwhile.
                status, _ = caller.get(f"{MAPS}?resourceVersion={version}&resourceVersionMatch=NotOlderThan")
                self.assertEqual(status, 200)
                before = self.counts(tier)
                if what == "list":
                    self.assertIn("newest", self.names(caller.get(MAPS)))
                elif what == "list of a namespace":
                    self.assertIn("newest", self.names(caller.get(DEFAULT)))
                elif what == "list of any version":
                    self.assertIn("newest", self.names(caller.get(f"{MAPS}?resourceVersion=0")))
                elif what == "streaming list":
                    self.assertIn("newest", self.streamed(caller, f"{MAPS}?{STATE}"))
                elif what == "watch":
                    self.assertIn("newest", self.streamed(caller, f"{MAPS}?watch=1"))
                elif what == "watch from a version":
                    self.follow(caller, version)
                else:
                    path = f"{DEFAULT}/newest" + ("?resourceVersion=0" if what == "get of any version" else "")
                    status, body = caller.get(path)
                    self.assertEqual((status, body["data"]), (200, {"k": f"{what} again"}))
                after = self.counts(tier)
                grown = {name: int(after[name] - before[name]) for name in after if after[name] != before[name]}
                self.assertEqual(grown, {
                    MIRROR: {metric: 1},
                    FENCED: {metric: 1, "fences": 1, "LIST": 1},
                    BEHIND: {"unmirrored": 1, verb: 1},
                }[answers])
        tier.stop()

    def names(self, answer):
        status, body = answer
        self.assertEqual(status, 200, body)
        return {item["metadata"]["name"] for item in body["items"]}

    @staticmethod
    def table(**answers):
        verbs = {"list": ("lists", "LIST"), "streaming": ("watches", "WATCH"), "watch": ("watches", "WATCH"), "get": ("gets", "GET")}
        return {what.replace("_", " "): (*verbs[what.split("_")[0]], answer) for what, answer in answers.items()}

    def test_fence(self):
        self.check_mode("fence", self.table(
            list=FENCED, list_of_a_namespace=BEHIND, list_of_any_version=MIRROR, streaming_list=FENCED, watch=FENCED,
            watch_from_a_version=MIRROR, get=BEHIND, get_of_any_version=MIRROR))

    def test_forward(self):
        self.check_mode("forward", self.table(
            list=BEHIND, list_of_a_namespace=BEHIND, list_of_any_version=MIRROR, streaming_list=FENCED, watch=FENCED,
            watch_from_a_version=MIRROR, get=BEHIND, get_of_any_version=MIRROR))

    def test_cached(self):
        self.check_mode("cached", self.table(
            list=MIRROR, list_of_a_namespace=MIRROR, list_of_any_version=MIRROR, streaming_list=MIRROR, watch=MIRROR,
            watch_from_a_version=MIRROR, get=MIRROR, get_of_any_version=MIRROR))

    # -- Resources without namespaces --

    def test_a_path_with_a_namespace_that_the_resource_does_not_have(self):
        api = "/apis/example.com/v1"
        self.make("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", {
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "moons.example.com"},
            "spec": {"group": "example.com", "scope": "Cluster", "names": {"plural": "moons", "singular": "moon", "kind": "Moon"},
                     "versions": [{"name": "v1", "served": True, "storage": True,
                                   "schema": {"openAPIV3Schema": {"type": "object"}}}]}})
        self.eventually(lambda: self.direct.get(f"{api}/moons")[0] == 200)
        self.make(f"{api}/moons", {"apiVersion": "example.com/v1", "kind": "Moon", "metadata": {"name": "io"}})
        tier, caller = self.tier()
        self.assertEqual(self.names(caller.get(f"{api}/moons?resourceVersion=0")), {"io"})
        self.assertEqual(tier.metric("vigil_tier_lists_total"), 1)
        for path in ("moons?resourceVersion=0", "moons/io?resourceVersion=0", f"moons?{STATE}", "moons?watch=1&resourceVersion=0"):
            there = self.direct.get(f"{api}/namespaces/default/{path}")
            self.assertEqual(there[0], 404)
            self.assertEqual(caller.get(f"{api}/namespaces/default/{path}"), there, path)
        tier.stop()

    def make(self, path, body):
        status, answer = self.direct.send("POST", path, body)
        self.assertEqual(status, 201, answer)

    # -- Sizes --

    def check_too_large(self, flag, reason):
        """Config maps do not fit, secrets do."""
        for i in range(40):
            self.write(f"large-{i:02}", k="x" * 5000)
        self.write("small", resource="secrets", k="x")
        tier, caller = self.tier(flag)
        for path in (MAPS, DEFAULT, f"{MAPS}?resourceVersion=0", f"{MAPS}?limit=7"):
            status, body = caller.get(path)
            there = self.direct.get(path)[1]
            self.assertEqual((status, body["items"]), (200, there["items"]), path)
        self.follow(caller, there["metadata"]["resourceVersion"])
        self.assertEqual(tier.metric("vigil_tier_lists_total"), 0)
        self.assertEqual(tier.metric("vigil_tier_watches_total"), 0)
        self.assertEqual(tier.metric("vigil_tier_unmirrored_total"), 5)
        self.assertIn(f'phase="refused",reason="{reason}"', self.row(tier, "vigil_tier_collection_info", "configmaps"))
        self.assertTrue(self.row(tier, "vigil_tier_held_bytes", "configmaps").endswith(" 0"))
        # Others are mirrored.
        self.assertIn("small", self.names(caller.get("/api/v1/secrets?resourceVersion=0")))
        self.assertEqual(tier.metric("vigil_tier_lists_total"), 1)
        self.assertGreater(float(self.row(tier, "vigil_tier_held_bytes", "secrets").split()[-1]), 300)
        tier.stop()

    def row(self, tier, name, resource):
        """The line of the metrics page about a collection."""
        (line,) = [line for line in tier.own_page("/metrics")[1].splitlines()
                   if line.startswith(f"{name}{{") and f'resource="{resource}"' in line]
        return line

    def test_a_resource_that_is_too_large_is_passed_on(self):
        self.check_too_large("--upstream-resource-bytes=100000", "it has become too large")

    def test_a_resource_that_does_not_fit_beside_the_others_is_passed_on(self):
        self.check_too_large("--upstream-mirror-bytes=100000", "all resources together have become too large")

    # -- Calls --

    def test_own_calls_keep_to_their_limit_while_clients_are_served(self):
        qps, namespaces = 5, 20
        for i in range(namespaces):
            self.make("/api/v1/namespaces", {"metadata": {"name": f"n{i}"}})
        calls_before, begin = self.own_calls(), time.monotonic()
        tier, caller = self.tier("--upstream-resources=configmaps", f"--upstream-qps={qps}", "--io-threads=1")
        self.eventually(lambda: tier.own_page("/readyz")[0] == 200)
        known = f"{MAPS}?resourceVersion=0"
        self.assertEqual(caller.get(known)[0], 200)  # its right is remembered from now on

        def check_rate():
            calls = self.own_calls() - calls_before
            self.assertLessEqual(calls, 2 * qps + qps * (time.monotonic() - begin))
            return calls
        # Each needs a review of its own.
        paths = [f"/api/v1/namespaces/n{i}/configmaps?resourceVersion=0" for i in range(namespaces)]
        with concurrent.futures.ThreadPoolExecutor(namespaces) as pool:
            waiting = [pool.submit(caller.get, path) for path in paths]
            served = 0
            while not all(one.done() for one in waiting):
                # What is known, and what is the client's own call, does not wait with them.
                self.assertEqual(caller.get(known)[0], 200)
                self.assertEqual(caller.get(f"{DEFAULT}/none")[0], 404)
                self.write_through(caller, served)
                check_rate()
                served += 1
            self.assertEqual([one.result(WAIT_SECONDS)[0] for one in waiting], [200] * namespaces)
        self.assertGreater(served, 1)
        self.assertGreaterEqual(check_rate(), namespaces)
        self.assertGreater(tier.metric("vigil_tier_upstream_calls_delayed_total"), 0)
        self.assertGreater(tier.metric("vigil_tier_upstream_delay_seconds_total"), 0.5)
        tier.stop()

    def own_calls(self):
        """Calls that only the tier makes here: reviews, and lists and watches of config maps."""
        return (self.store.requests("POST", *REVIEWS) + self.store.requests("LIST", "configmaps") +
                self.store.requests("WATCH", "configmaps"))

    def write_through(self, caller, number):
        status, body = caller.send("POST", DEFAULT, config_map(f"own-{number}"))
        self.assertEqual(status, 201, body)


if __name__ == "__main__":
    unittest.main()
