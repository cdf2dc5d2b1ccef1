#!/usr/bin/python3
"""The watch tier while it reads what it mirrors for the first time, and while it cannot find out what is current. The server behind
it is Vigil with users and roles; a proxy between them answers for it. tests/kube/tier_restart_test.py restarts a kube-apiserver."""
import collections
import concurrent.futures
import json
import time
import unittest

from certs import Authority
from server import WAIT_SECONDS, LiveTest, free_port, only_vigil
from tier import Caller, Tier
from tier_proxy import Proxy

ALL = "/api/v1/secrets"
MINE = "/api/v1/namespaces/default/secrets"
CURRENT = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"  # a watch that begins with the state
CLIENTS = 20  # that list, and as many that watch
PASSED_ON_MAX = 8  # at once
SILENT_SECONDS = 5  # after each of which one more is passed on


def refusal(code, reason):
    """An answer of the server, as the proxy sends it."""
    body = json.dumps({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": "not today",
                       "reason": reason, "code": code}).encode()
    return (f"HTTP/1.1 {code} {reason}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
            "Connection: close\r\n\r\n").encode() + body


class Patient(Caller):
    """Its requests may take long."""

    def connect(self):
        connection = super().connect()
        connection.timeout = 10 * WAIT_SECONDS
        return connection


@only_vigil
class KubeTierStarts(LiveTest):
    def setUp(self):
        super().setUp()
        served = Authority(self.scratch / "upstream").sign("server")
        tokens = self.scratch / "tokens"
        tokens.write_text('the-token,admin,1,"system:masters"\n')
        port = free_port()
        self.serving(args=[f"--listen-kube-urls=https://127.0.0.1:{port}", f"--cert-file={served.cert}", f"--key-file={served.key}",
                           f"--kube-token-file={tokens}", "--kube-authorization-mode=RBAC"])
        self.direct = Caller(port, "the-token")
        self.eventually(lambda: self.direct.get("/api/v1/namespaces/default")[0] == 200)
        self.proxy = Proxy([port], Authority(self.scratch / "proxy").sign("proxy"), 0)
        self.addCleanup(self.proxy.stop)
        self.tier = Tier(self.scratch, f"https://127.0.0.1:{self.proxy.port}")
        self.addCleanup(self.tier.stop)
        self.tier.start()
        self.admin = Patient(self.tier.port, "the-token")

    def make(self, name):
        status, made = self.direct.send("POST", MINE, {"metadata": {"name": name}})
        self.assertEqual(status, 201, made)

    def passed_on(self):
        return self.tier.metric("vigil_tier_unmirrored_total")

    def listed(self):
        """The names in a list that may be old, if the mirror has answered it."""
        before = self.tier.metric("vigil_tier_lists_total")
        status, body = self.admin.get(f"{ALL}?resourceVersion=0")
        if status != 200 or self.tier.metric("vigil_tier_lists_total") == before:
            return None
        return {item["metadata"]["name"] for item in body["items"]}

    def watch(self, query="resourceVersion=0"):
        events = self.admin.watch(f"{ALL}?watch=1&{query}")
        self.addCleanup(events.close)
        return events

    def list_all(self, query="resourceVersion=0"):
        connection = self.admin.connect()
        answer = self.admin.request(connection, "GET", f"{ALL}?{query}")
        body = json.loads(answer.read())
        connection.close()
        return answer.status, answer.headers["Retry-After"], body

    def watch_all(self, query):
        events = self.watch(query)
        events.close()
        return events.status

    def assert_few(self, lists, message):
        """The first ones are answered by the server behind the tier, and the others are put off."""
        self.assertEqual(collections.Counter(status for status, _, _ in lists), {200: PASSED_ON_MAX, 429: CLIENTS - PASSED_ON_MAX})
        for status, again, body in lists:
            if status == 429:
                self.assertEqual(again, "1")
                self.assertIn(message, body["message"])

    def test_few_clients_of_a_late_state_are_passed_on(self):
        self.make("a")
        self.proxy.answers = {f"{ALL}?limit=1".encode(): refusal(500, "InternalError")}
        queries = ("resourceVersion=0", CURRENT)
        begun = time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(3 * CLIENTS) as pool:
            lists = [pool.submit(self.list_all) for _ in range(CLIENTS)]
            watches = [pool.submit(self.watch_all, queries[i % 2]) for i in range(CLIENTS)]
            # A list of a part does not wait for a server that fails.
            status, body = self.admin.get(f"{MINE}?resourceVersion=0")
            self.assertEqual((status, [item["metadata"]["name"] for item in body["items"]]), (200, ["a"]))
            self.assertFalse([done for done in lists + watches if done.done()])
            lists = [done.result() for done in lists]
            listed = time.monotonic() - begun
            watches = collections.Counter(done.result() for done in watches)
        refilled = 1 + int((time.monotonic() - begun - listed) / SILENT_SECONDS)
        self.assertGreater(listed, 25)
        self.assert_few(lists, "storage is (re)initializing: InternalError: not today")
        self.assertEqual(set(watches), {200, 429})
        self.assertLessEqual(watches[200], refilled)
        self.assertEqual(self.passed_on(), 1 + PASSED_ON_MAX + watches[200])
        self.assertGreaterEqual(self.proxy.counts["answered"], 4)
        self.proxy.answers = {}
        self.assertEqual(self.eventually(self.listed), {"a"})
        before = self.passed_on()
        self.watch().wait(lambda w: w.names() == [("ADDED", "a")])
        self.assertEqual(self.passed_on(), before)

    # -- A server that does not say what is current --

    def test_few_clients_are_passed_on_while_fences_fail(self):
        self.make("a")
        self.eventually(self.listed)
        before = self.passed_on()
        self.proxy.answers = {f"{ALL} HTTP".encode(): refusal(500, "InternalError")}  # the list of a fence has no query
        begun = time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(2 * CLIENTS) as pool:
            lists = [pool.submit(self.list_all, "limit=500") for _ in range(CLIENTS)]
            watches = [pool.submit(self.watch_all, CURRENT) for _ in range(CLIENTS)]
            lists = [done.result() for done in lists]
            listed = time.monotonic() - begun
            # What other clients do not want, or what may be old, needs no fence.
            self.assertEqual(self.admin.get(MINE)[0], 200)
            self.assertEqual(self.listed(), {"a"})
            self.assertFalse([done for done in watches if done.done()])
            watches = collections.Counter(done.result() for done in watches)
        refilled = 1 + int((time.monotonic() - begun - listed) / SILENT_SECONDS)
        self.assert_few(lists, "the mirror cannot find out what is current")
        self.assertEqual(set(watches), {200, 429})
        self.assertLessEqual(watches[200], refilled)
        self.assertEqual(self.passed_on() - before, 1 + PASSED_ON_MAX + watches[200])
        self.assertGreaterEqual(self.proxy.counts["answered"], 4)
        self.proxy.answers = {}
        lists = self.tier.metric("vigil_tier_lists_total")
        self.assertEqual(self.admin.get(ALL)[0], 200)
        self.assertEqual(self.tier.metric("vigil_tier_lists_total"), lists + 1)

    # -- A server that has just started --

    def test_a_server_that_starts_takes_no_mirror_away(self):
        """It does not know its roles, and then its custom resources."""
        names = ["a"]
        self.make("a")
        self.eventually(self.listed)
        for code, reason in ((403, "Forbidden"), (404, "NotFound")):
            events = self.watch()
            events.wait(lambda w: w.names() == [("ADDED", name) for name in names])
            before, refused = self.passed_on(), self.proxy.counts["answered"]
            self.proxy.answers = {b"/secrets": refusal(code, reason)}
            self.proxy.expire(f"{ALL}?allowWatchBookmarks=")
            self.make(f"b{code}")
            self.eventually(lambda: self.proxy.counts["answered"] >= refused + 4)
            self.assertEqual(self.listed(), set(names))
            self.assertFalse(events.ended)
            self.proxy.answers = {}
            events.wait_end()
            # Only the history is lost, and the next watch is the mirror's, too.
            self.assertEqual((events.events[-1]["type"], events.events[-1]["object"]["code"]), ("ERROR", 410))
            names.append(f"b{code}")
            self.assertEqual(self.listed(), set(names))
            self.assertEqual(self.passed_on(), before)
            self.assertIn('vigil_tier_collections{phase="refused"} 0\n', self.tier.own_page("/metrics")[1])


if __name__ == "__main__":
    unittest.main()
