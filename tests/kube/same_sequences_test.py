#!/usr/bin/python3
"""Sequences of requests to a real kube-apiserver and to Vigil's own Kubernetes API: many clients that write one object,
deletions in pages, watches, and a namespace that is emptied. tools/build-kube builds the real kube-apiserver."""
import contextlib
import http.client
import json
import os
import pathlib
import subprocess
import sys
import time
import unittest
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/live"))
sys.path.insert(0, str(ROOT / "tests/kube"))
from apiserver_test import WAIT_SECONDS  # noqa: E402
from side_by_side import SideBySide  # noqa: E402
from kube_contention_test import APPLY, Crowd  # noqa: E402
from same_custom_test import CRDS, definition, version  # noqa: E402
from same_writes_test import (  # noqa: E402
    CMS, JSON_PATCH, LEASES, MERGE, ROLES, STRATEGIC, TABLE, Client, pod)

CLIENTS, ROUNDS = 12, 4  # with more clients, some requests exceed Kubernetes' request timeout
JSON = "application/json"
PARTIAL = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
HATS = "/apis/example.com/v1/namespaces/{}/hats"
INITIAL = "?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&timeoutSeconds=20"
PAGES_MAX = 20


class Peer(Client):
    def connect(self):
        url = urllib.parse.urlsplit(self.url)
        if self.context:
            return http.client.HTTPSConnection(url.netloc, context=self.context, timeout=WAIT_SECONDS)
        return http.client.HTTPConnection(url.netloc, timeout=WAIT_SECONDS)

    def crowd(self, count=CLIENTS):
        return contextlib.closing(Crowd(self.connect, count, {"Authorization": f"Bearer {self.token}"} if self.token else {}))

    def want(self, code, *case):
        got, body = self.send(*case)
        assert got == code, body
        return body


def codes(answers):
    return sorted(code for code, _ in answers)


def names(listed):
    return [item["metadata"]["name"] for item in listed["items"]]


class SameSequences(SideBySide):
    client = Peer

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.wait_for(CRDS)
        for client in (cls.ours, cls.theirs):
            client.want(201, "POST", CRDS, definition("hats", "Hat", [version()]))
        cls.wait_for(HATS.format("default"))

    def compare_scene(self, scene, *args):
        theirs, ours = scene(self.theirs, *args), scene(self.ours, *args)
        with self.subTest(scene=scene.__name__, args=str(args)[:200]):
            self.assertEqual(ours, theirs)
        return ours

    # -- many clients on one object --

    @staticmethod
    def patches(client, name, kind, request):
        """Returns the codes of each round, and the keys of the object at the end."""
        client.want(201, "POST", CMS, {"metadata": {"name": name}, "data": {"first": "0"}})
        with client.crowd() as crowd:
            seen = [codes(crowd.send([("PATCH", f"{CMS}/{name}{query}", body, kind) for query, body in (
                request(name, c, i) for c in range(CLIENTS))])) for i in range(ROUNDS)]
        return seen, sorted(client.want(200, "GET", f"{CMS}/{name}")["data"])

    def test_patches(self):
        def member(_name, c, i):
            return "", {"data": {f"c{c}r{i}": "v"}}

        def addition(_name, c, i):
            return "", [{"op": "add", "path": f"/data/c{c}r{i}", "value": "v"}]

        def application(name, c, i):
            return f"?fieldManager=m{c}", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name},
                                           "data": {f"c{c}r{n}": "v" for n in range(i + 1)}}

        for name, kind, request in (("merged", MERGE, member), ("strategic", STRATEGIC, member),
                                    ("json", JSON_PATCH, addition), ("applied", APPLY, application)):
            seen, keys = self.compare_scene(self.patches, name, kind, request)
            self.assertEqual((seen, len(keys)), ([[200] * CLIENTS] * ROUNDS, 1 + CLIENTS * ROUNDS))

    def test_updates_that_create(self):
        def scene(client, path, metadata):
            with client.crowd() as crowd:
                seen = [codes(crowd.send([("PUT", f"{path}/race{i}", {
                    "metadata": dict(metadata, name=f"race{i}", labels={"by": f"c{c}"})}, JSON) for c in range(CLIENTS)]))
                    for i in range(ROUNDS)]
            for i in range(ROUNDS):
                client.want(200, "DELETE", f"{path}/race{i}")
            return seen

        for path in (LEASES, ROLES):
            for metadata in ({}, {"resourceVersion": "1"}):
                self.compare_scene(scene, path, metadata)

    def test_custom_resources_while_their_namespace_changes(self):
        def scene(client):
            client.want(201, "POST", "/api/v1/namespaces", {"metadata": {"name": "busy"}})
            seen = []
            with client.crowd() as crowd:
                for i in range(ROUNDS):
                    answers = crowd.send([
                        ("POST", HATS.format("busy"), {
                            "apiVersion": "example.com/v1", "kind": "Hat", "metadata": {"name": f"h{c}r{i}"}}, JSON) if c % 2 else
                        ("PATCH", "/api/v1/namespaces/busy", {"metadata": {"labels": {f"c{c}": f"r{i}"}}}, MERGE)
                        for c in range(CLIENTS)])
                    seen.append((codes(answers[0::2]), codes(answers[1::2])))
            return seen, sorted(names(client.want(200, "GET", HATS.format("busy"))))

        self.compare_scene(scene)

    # -- sequences of one client --

    def test_a_collection_that_finalizers_hold_is_deleted_page_by_page(self):
        def pages(client, query):
            seen, then = [], ""
            while len(seen) < PAGES_MAX:
                listed = client.want(200, "DELETE", f"{CMS}?labelSelector=paged&{query}{then}")
                rest = listed["metadata"]
                seen.append((names(listed), rest.get("remainingItemCount"), "deletionTimestamp" in str(listed["items"])))
                if not rest.get("continue"):
                    break
                then = "&continue=" + urllib.parse.quote(rest["continue"])
            return seen

        def scene(client):
            seen = []
            for i in range(7):
                held = {"finalizers": ["e.com/x"]} if i % 3 != 1 else {}
                client.want(201, "POST", CMS, {"metadata": dict(held, name=f"page{i}", labels={"paged": f"p{i % 2}"})})
            for query in ("limit=2&dryRun=All", "limit=3", "limit=1", "limit=2", ""):
                seen.append((query, pages(client, query)))
            for i in range(7):
                client.send("PATCH", f"{CMS}/page{i}", {"metadata": {"finalizers": None}}, MERGE)
            return seen, names(client.want(200, "GET", CMS + "?labelSelector=paged"))

        self.compare_scene(scene)

    def test_the_end_of_initial_events_is_marked(self):
        def shown(event):
            """The type of an event, the kind of its object, and the names and annotations of the objects in it."""
            thing = event["object"]
            rows = [row["object"] for row in thing["rows"]] if thing["kind"] == "Table" else [thing]
            return (event["type"], thing["kind"], thing["apiVersion"], sorted(thing), bool(thing.get("columnDefinitions")),
                    [(row["kind"], row["metadata"].get("name"), row["metadata"].get("annotations")) for row in rows])

        def scene(client, path, accept, query):
            seen = []
            with client.open("GET", path + INITIAL + query, None, JSON, accept) as response:
                while not seen or seen[-1][0] != "BOOKMARK":
                    line = response.readline()
                    if not line:
                        return seen, "ended"
                    seen.append(shown(json.loads(line)))
            return seen

        for client in (self.theirs, self.ours):
            for i in range(3):
                client.want(201, "POST", CMS, {"metadata": {"name": f"first{i}", "labels": {"first": "1"}}})
                client.want(201, "POST", HATS.format("default"), {
                    "apiVersion": "example.com/v1", "kind": "Hat", "metadata": {"name": f"first{i}", "labels": {"first": "1"}}})
        for path in (CMS, HATS.format("default")):
            for accept in (JSON, TABLE, PARTIAL):
                for query in ("&labelSelector=first", "&labelSelector=nothing"):
                    self.compare_scene(scene, path, accept, query)

    # -- namespaces --

    def empty(self, namespace):
        """Runs one pass of the namespace controller, which is not part of a kube-apiserver."""
        done = subprocess.run(["go", "run", "./namespacecontroller", self.theirs.url, self.theirs.token, namespace],
                              cwd=ROOT / "tests/kube", capture_output=True, text=True, check=False,
                              env={**os.environ, "PATH": os.environ["PATH"] + ":/usr/local/go/bin"})
        self.assertEqual(done.returncode, 0, done.stderr)

    @staticmethod
    def inside(client, namespace):
        """The objects in a namespace, and its conditions."""
        seen = {plural: [(item["metadata"]["name"], "deletionTimestamp" in item["metadata"])
                         for item in client.want(200, "GET", f"/api/v1/namespaces/{namespace}/{plural}")["items"]]
                for plural in ("pods", "configmaps", "secrets")}
        code, found = client.send("GET", f"/api/v1/namespaces/{namespace}")
        status = found["status"] if code == 200 else {}
        conditions = {c["type"]: (c["status"], c["reason"], c["message"]) for c in status.get("conditions", [])}
        return code, status.get("phase"), conditions, seen

    def same_inside(self, namespace, unlike=()):
        """Compares the namespace after one pass of Kubernetes' controller; Vigil empties it without a request. Conditions
        whose types are in unlike are not compared."""
        self.empty(namespace)
        theirs = self.inside(self.theirs, namespace)
        end = time.monotonic() + WAIT_SECONDS
        while True:
            ours = self.inside(self.ours, namespace)
            for side in (ours, theirs):
                for kind in unlike:
                    side[2].pop(kind, None)
            if ours == theirs or time.monotonic() > end:
                break
            time.sleep(0.1)
        self.assertEqual(ours, theirs)

    def test_a_namespace_is_emptied_in_the_same_order_with_the_same_conditions(self):
        def release(kind, name):
            for client in (self.theirs, self.ours):
                client.want(200, "PATCH", f"/api/v1/namespaces/leaving/{kind}/{name}", {"metadata": {"finalizers": None}}, MERGE)

        inside = "/api/v1/namespaces/leaving"
        for client in (self.theirs, self.ours):
            client.want(201, "POST", "/api/v1/namespaces", {"metadata": {"name": "leaving"}})
            held = pod("held", None)
            held["metadata"]["finalizers"] = ["e.com/pod", "e.com/both"]
            client.want(201, "POST", inside + "/pods", held)
            client.want(201, "POST", inside + "/pods", pod("free", None))
            for i in range(2):
                client.want(201, "POST", inside + "/configmaps", {"metadata": {
                    "name": f"held{i}", "finalizers": ["e.com/x", "e.com/both"][i:]}})
            client.want(201, "POST", inside + "/configmaps", {"metadata": {"name": "free"}})
            client.want(201, "POST", inside + "/secrets", {"metadata": {"name": "s", "finalizers": ["e.com/x"]}})
            client.want(200, "DELETE", inside)
        # While pods remain, Kubernetes reports that nothing remains (kubernetes issue 138208), and Vigil reports the pods.
        self.same_inside("leaving", ("NamespaceContentRemaining", "NamespaceFinalizersRemaining"))
        release("pods", "held")
        self.same_inside("leaving")
        release("configmaps", "held0")
        self.same_inside("leaving")
        release("configmaps", "held1")
        release("secrets", "s")
        self.same_inside("leaving")

    # -- identity --

    def test_impersonation_without_permission_is_forbidden(self):
        def scene(client, fields):
            if client.token:
                fields = {**fields, "Authorization": "Bearer weak-token"}
            code, body = client.send("GET", "/api/v1/namespaces/default", None, JSON, JSON, fields)
            return code, body.get("kind"), body.get("status"), body.get("reason")

        for fields in ({"Impersonate-User": "x"}, {"Impersonate-User": "x", "Impersonate-Group": "system:masters"},
                       {"Impersonate-User": "x", "Impersonate-Uid": "1"}, {"Impersonate-User": "x", "Impersonate-Extra-Scopes": "all"},
                       {"Impersonate-User": "jane"}):
            self.compare_scene(scene, fields)


if __name__ == "__main__":
    unittest.main()
