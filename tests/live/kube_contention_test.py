#!/usr/bin/python3
"""Every way to write through the Kubernetes API, by many clients on one object at the same time. Every acknowledged write
must be in the final state, and a watch must report it once and in order, with the version and the object of the answer."""
import base64
import contextlib
import http.client
import json
import threading
import unittest

from kube import WAIT_SECONDS, KubeServer, text64
from metrics_test import parse
from server import LiveTest

THREADS = 4
CLIENTS, ROUNDS = 24, 6
CROWD = 200
LARGE_BYTES = 40_000
CMS = "/api/v1/namespaces/default/configmaps"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
DEPLOYMENT = {"metadata": {"name": "one"}, "spec": {"replicas": 0, "selector": {"matchLabels": {"a": "b"}}, "template": {
    "metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}}}
ROLES = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles"
JSON, MERGE = "application/json", "application/merge-patch+json"
JSON_PATCH, STRATEGIC = "application/json-patch+json", "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"


class Crowd:
    """Clients with one connection each. All of them send before any of them reads its answer."""

    def __init__(self, connect, count, fields=None):
        """connect() makes a connection; fields are the headers of every request."""
        self.connections = [connect() for _ in range(count)]
        self.fields = fields or {}
        for connection in self.connections:
            connection.connect()

    def send(self, requests):
        """Each client sends its (method, path, body, type), or nothing for None. Returns (code, object) or None for
        each."""
        pairs = list(zip(self.connections, requests))
        for connection, request in pairs:
            if request:
                method, path, body, kind = request
                connection.request(method, path, json.dumps(body), {**self.fields, "Content-Type": kind})
        return [self.answer(connection) if request else None for connection, request in pairs]

    @staticmethod
    def answer(connection):
        response = connection.getresponse()
        return response.status, json.loads(response.read())

    def close(self):
        for connection in self.connections:
            connection.close()


class Recorder:
    """All events of one kind, read on a separate thread."""

    def __init__(self, server, path):
        revision = server.list(path)["metadata"]["resourceVersion"]
        self.watch = server.watch(path, resourceVersion=revision, timeoutSeconds=600)
        self.events = []
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()

    def read(self):
        with contextlib.suppress(http.client.HTTPException, OSError, ValueError):
            while (event := self.watch.next()) and event["object"]["metadata"]["name"] != "the-end":
                self.events.append(event)

    def finish(self):
        """Waits for the event of the-end, which the test has created, so that all earlier events have been read."""
        self.thread.join(WAIT_SECONDS)
        assert not self.thread.is_alive()
        return self.events


def version(thing):
    return int(thing["metadata"]["resourceVersion"])


class KubeContention(LiveTest):
    def setUp(self):
        super().setUp()
        self.kube = KubeServer(self.scratch / "data", ["--io-threads", str(THREADS)])
        self.addCleanup(self.kube.kill)
        self.addCleanup(self.kube.close)
        self.kube.start()
        self.one = self.crowd(1)

    def crowd(self, count):
        crowd = Crowd(lambda: http.client.HTTPConnection("127.0.0.1", self.kube.kube_port, timeout=WAIT_SECONDS), count)
        self.addCleanup(crowd.close)
        return crowd

    def request(self, method, path, body=None, kind=JSON, code=200):
        (got, answer), = self.one.send([(method, path, body, kind)])
        self.assertEqual(got, code, answer)
        return answer

    def changes(self, recorder, path):
        """All events up to now."""
        more = DEPLOYMENT if path == DEPLOYMENTS else {}
        self.request("POST", path, dict(more, metadata={"name": "the-end"}), code=201)
        events = recorder.finish()
        versions = [version(event["object"]) for event in events]
        self.assertEqual(versions, sorted(set(versions)), "events are out of order or repeated")
        return events

    def check(self, events, acknowledged, shown=lambda thing: thing):
        """Each answer has one event with its version and its object, and there are no other events."""
        reported = {version(event["object"]): event["object"] for event in events}
        self.assertEqual(sorted(map(version, acknowledged)), sorted(reported))
        for answer in acknowledged:
            self.assertEqual(shown(reported[version(answer)]), answer)

    def attempts(self):
        _, _, page = self.kube.get("/metrics")
        family = parse(page.decode())["vigil_kube_change_attempts_total"]
        return sum(family["samples"].values())

    # -- patches --

    def patch_all(self, kind, request, clients=CLIENTS, rounds=ROUNDS, first="0"):
        """Each client sets its own keys; request(client, round) returns the query to append to the path, and the body."""
        self.request("POST", CMS, {"metadata": {"name": "one"}, "data": {"first": first}}, code=201)
        recorder, crowd, acknowledged = Recorder(self.kube, CMS), self.crowd(clients), []
        before = self.attempts()
        for i in range(rounds):
            answers = crowd.send([("PATCH", CMS + "/one" + query, body, kind)
                                  for query, body in (request(client, i) for client in range(clients))])
            self.assertEqual({code for code, _ in answers}, {200}, answers)
            acknowledged += [answer for _, answer in answers]
        attempts = self.attempts() - before
        data = self.request("GET", CMS + "/one")["data"]
        self.assertEqual(sorted(data), sorted(["first"] + [f"c{c}r{i}" for c in range(clients) for i in range(rounds)]))
        self.check(self.changes(recorder, CMS), acknowledged)
        # An attempt fails only because of a write on another I/O thread, at most once per such write.
        self.assertLessEqual(attempts, THREADS * clients * rounds)

    def test_merge_patches(self):
        self.patch_all(MERGE, lambda c, i: ("", {"data": {f"c{c}r{i}": "v"}}))

    def test_json_patches(self):
        self.patch_all(JSON_PATCH, lambda c, i: ("", [{"op": "add", "path": f"/data/c{c}r{i}", "value": "v"}]))

    def test_strategic_patches(self):
        self.patch_all(STRATEGIC, lambda c, i: ("", {"data": {f"c{c}r{i}": "v"}}))

    def test_applies(self):
        def request(client, i):
            return f"?fieldManager=m{client}", {
                "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"},
                "data": {f"c{client}r{n}": "v" for n in range(i + 1)}}
        self.patch_all(APPLY, request)

    def test_two_hundred_clients_patch_one_object(self):
        self.patch_all(STRATEGIC, lambda c, i: ("", {"data": {f"c{c}r{i}": "v"}}), clients=CROWD, rounds=2)

    def test_patches_of_a_large_object(self):
        """The worker thread computes these patches."""
        self.patch_all(STRATEGIC, lambda c, i: ("", {"data": {f"c{c}r{i}": "v"}}), rounds=3, first="x" * LARGE_BYTES)

    def test_patches_concurrent_with_an_etcd_client(self):
        """The etcd client adds keys in transactions that compare the revision. Neither client loses the other's writes."""
        self.request("POST", CMS, {"metadata": {"name": "one"}, "data": {}}, code=201)
        crowd, key, over = self.crowd(CLIENTS), "/registry/configmaps/default/one", threading.Event()
        done = []

        def add():
            while not over.is_set() or len(done) < 5:
                found = self.kube.call("/v3/kv/range", key=text64(key))["kvs"][0]
                thing = json.loads(self.decode(found["value"]))
                thing["data"] = {**thing.get("data", {}), f"e{len(done)}": "v"}
                answer = self.kube.call("/v3/kv/txn", compare=[{
                    "key": text64(key), "target": "MOD", "modRevision": found["mod_revision"]}],
                    success=[{"requestPut": {"key": text64(key), "value": text64(json.dumps(thing))}}])
                if answer.get("succeeded"):
                    done.append(f"e{len(done)}")

        thread = threading.Thread(target=add, daemon=True)
        thread.start()
        try:
            for i in range(ROUNDS):
                answers = crowd.send([("PATCH", CMS + "/one", {"data": {f"c{c}r{i}": "v"}}, STRATEGIC) for c in range(CLIENTS)])
                self.assertEqual({code for code, _ in answers}, {200}, answers)
        finally:
            over.set()
            thread.join(WAIT_SECONDS)
        data = self.request("GET", CMS + "/one")["data"]
        self.assertEqual(sorted(data), sorted(done + [f"c{c}r{i}" for c in range(CLIENTS) for i in range(ROUNDS)]))

    @staticmethod
    def decode(text):
        return base64.b64decode(text)

    # -- updates --

    def test_updates_with_a_version(self):
        """A client with a conflict reads again and retries; every acknowledged update is in the final state."""
        self.request("POST", CMS, {"metadata": {"name": "one"}, "data": {}}, code=201)
        recorder, crowd, acknowledged = Recorder(self.kube, CMS), self.crowd(CLIENTS), []
        waiting, conflicts = set(range(CLIENTS)), 0
        while waiting:
            seen = crowd.send([("GET", CMS + "/one", None, JSON) if c in waiting else None for c in range(CLIENTS)])
            puts = []
            for c in range(CLIENTS):
                if c in waiting:
                    thing = seen[c][1]
                    thing["data"] = {**thing.get("data", {}), f"c{c}": "v"}
                    puts.append(("PUT", CMS + "/one", thing, JSON))
                else:
                    puts.append(None)
            for c, answer in enumerate(crowd.send(puts)):
                if not answer:
                    continue
                self.assertIn(answer[0], (200, 409), answer)
                conflicts += answer[0] == 409
                if answer[0] == 200:
                    acknowledged.append(answer[1])
                    waiting.remove(c)
        self.assertGreater(conflicts, 0)
        self.assertEqual(sorted(self.request("GET", CMS + "/one")["data"]), sorted(f"c{c}" for c in range(CLIENTS)))
        self.check(self.changes(recorder, CMS), acknowledged)

    def test_updates_that_create(self):
        """Of several PUTs of a missing object one creates it and all others update it, whatever version they have."""
        recorder, crowd, acknowledged = Recorder(self.kube, ROLES), self.crowd(CLIENTS), []
        for i in range(ROUNDS):
            answers = crowd.send([("PUT", f"{ROLES}/r{i}", {"metadata": {"name": f"r{i}", "labels": {"by": f"c{c}"}}}, JSON)
                                  for c in range(CLIENTS)])
            self.assertEqual(sorted(code for code, _ in answers), [200] * (CLIENTS - 1) + [201])
            acknowledged += [answer for _, answer in answers]
        stale = self.request("PUT", ROLES + "/late", {"metadata": {"name": "late", "resourceVersion": "1"}}, code=201)
        self.check(self.changes(recorder, ROLES), acknowledged + [stale])

    # -- parts of objects --

    def test_status(self):
        self.request("POST", DEPLOYMENTS, DEPLOYMENT, code=201)
        recorder, crowd, acknowledged = Recorder(self.kube, DEPLOYMENTS), self.crowd(CLIENTS), []
        for i in range(ROUNDS):
            answers = crowd.send([("PATCH", DEPLOYMENTS + "/one/status", {"status": {"conditions": [
                {"type": f"c{c}r{i}", "status": "True"}]}}, STRATEGIC) for c in range(CLIENTS)])
            self.assertEqual({code for code, _ in answers}, {200}, answers)
            acknowledged += [answer for _, answer in answers]
        conditions = self.request("GET", DEPLOYMENTS + "/one")["status"]["conditions"]
        self.assertEqual(sorted(one["type"] for one in conditions),
                         sorted(f"c{c}r{i}" for c in range(CLIENTS) for i in range(ROUNDS)))
        self.check(self.changes(recorder, DEPLOYMENTS), acknowledged)

    def test_scale(self):
        self.request("POST", DEPLOYMENTS, DEPLOYMENT, code=201)
        recorder, crowd, acknowledged = Recorder(self.kube, DEPLOYMENTS), self.crowd(CLIENTS), []
        for i in range(ROUNDS):
            answers = crowd.send([("PATCH", DEPLOYMENTS + "/one/scale", {"spec": {"replicas": 1 + i * CLIENTS + c}}, MERGE)
                                  for c in range(CLIENTS)])
            self.assertEqual({code for code, _ in answers}, {200}, answers)
            acknowledged += [answer for _, answer in answers]
        last = max(acknowledged, key=version)
        self.assertEqual(self.request("GET", DEPLOYMENTS + "/one/scale"), last)
        reported = {version(event["object"]): event["object"] for event in self.changes(recorder, DEPLOYMENTS)}
        self.assertEqual(sorted(map(version, acknowledged)), sorted(reported))
        for scale in acknowledged:
            self.assertEqual(reported[version(scale)]["spec"]["replicas"], scale["spec"]["replicas"])

    # -- creations and deletions --

    def test_creates(self):
        """Each name is created once, and all generated names differ."""
        recorder, crowd, acknowledged = Recorder(self.kube, CMS), self.crowd(CLIENTS), []
        for i in range(ROUNDS):
            answers = crowd.send([("POST", CMS, {"metadata": {"name": f"n{i}"} if c % 2 else {"generateName": "g-"},
                                                 "data": {"by": f"c{c}"}}, JSON) for c in range(CLIENTS)])
            self.assertEqual([code for code, _ in answers[0::2]], [201] * (CLIENTS // 2))
            self.assertEqual(sorted(code for code, _ in answers[1::2]), [201] + [409] * (CLIENTS // 2 - 1))
            acknowledged += [answer for code, answer in answers if code == 201]
        for thing in acknowledged:
            self.assertEqual(self.request("GET", f"{CMS}/{thing['metadata']['name']}"), thing)
        self.check(self.changes(recorder, CMS), acknowledged)

    def test_deletes_with_preconditions(self):
        """Patches compete with deletes of the version that was read: one delete succeeds, for exactly that version."""
        recorder, crowd = Recorder(self.kube, CMS), self.crowd(CLIENTS)
        acknowledged, deleted = [], []
        for i in range(ROUNDS):
            path = f"{CMS}/n{i}"
            thing = self.request("POST", CMS, {"metadata": {"name": f"n{i}"}, "data": {}}, code=201)
            acknowledged.append(thing)
            while thing:
                conditions = {"preconditions": {key: thing["metadata"][key] for key in ("uid", "resourceVersion")}}
                answers = crowd.send([("DELETE", path, conditions, JSON) if c % 2 else
                                      ("PATCH", path, {"data": {f"c{c}v{version(thing)}": "v"}}, MERGE) for c in range(CLIENTS)])
                gone = [c for c in range(1, CLIENTS, 2) if answers[c][0] == 200]
                self.assertLessEqual(len(gone), 1)
                self.assertLessEqual({code for code, _ in answers[1::2]}, {200, 404, 409})
                self.assertLessEqual({code for code, _ in answers[0::2]}, {200, 404})
                patched = [answer for code, answer in answers[0::2] if code == 200]
                acknowledged += patched
                if gone:
                    self.assertEqual(patched, [], "the object was deleted at the version that all clients have read")
                    deleted.append(thing)
                thing = None if gone else max(patched, key=version)
        events = self.changes(recorder, CMS)
        self.check([event for event in events if event["type"] != "DELETED"], acknowledged)
        gone = [event["object"] for event in events if event["type"] == "DELETED"]
        self.assertEqual([thing["metadata"]["uid"] for thing in gone], [thing["metadata"]["uid"] for thing in deleted])
        self.assertEqual([thing.get("data") for thing in gone], [thing.get("data") for thing in deleted])

    def test_custom_resources_while_their_namespace_changes(self):
        """A creation is not refused because of its definition unless the definition has changed."""
        self.request("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", {
            "metadata": {"name": "things.e.com"},
            "spec": {"group": "e.com", "scope": "Namespaced", "names": {"plural": "things", "kind": "Thing"}, "versions": [
                {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}]}}, code=201)
        things, crowd = "/apis/e.com/v1/namespaces/default/things", self.crowd(CLIENTS)
        for i in range(ROUNDS):
            answers = crowd.send([
                ("POST", things, {"apiVersion": "e.com/v1", "kind": "Thing", "metadata": {"name": f"c{c}r{i}"}}, JSON) if c % 2 else
                ("PATCH", "/api/v1/namespaces/default", {"metadata": {"labels": {f"c{c}": f"r{i}"}}}, MERGE) for c in range(CLIENTS)])
            self.assertEqual([code for code, _ in answers], [200, 201] * (CLIENTS // 2), answers)
        self.assertEqual(len(self.kube.list(things)["items"]), CLIENTS // 2 * ROUNDS)


if __name__ == "__main__":
    unittest.main()
