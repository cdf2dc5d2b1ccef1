#!/usr/bin/python3
"""What is particular to the Kubernetes API in front of an etcd cluster: users, several servers, failures. Everything else
is tested by the same tests as with a store of its own: tools/run-tests live@cluster."""
import contextlib
import http.client
import json
import os
import pathlib
import shutil
import signal
import sys
import tempfile
import threading
import time
import unittest
import urllib.request

from kube import KubeServer, text64
from server import IN_FRONT, PEER, ROOT, LiveTest, Server, only_vigil

CMS = "/api/v1/namespaces/default/configmaps"


@only_vigil
@unittest.skipUnless(pathlib.Path(PEER).exists(), "no real etcd was built (tools/build-peer)")
class InFront(LiveTest):
    def setUp(self):
        super().setUp()
        self.etcd = Server(self.scratch / "etcd", ["--unsafe-no-fsync"], binary=PEER)
        self.addCleanup(self.etcd.kill)
        self.etcd.start()

    def vigil(self, name, *args):
        server = KubeServer(self.scratch / name, ["--upstream-endpoints", self.etcd.url, *args])
        self.addCleanup(server.kill)
        self.addCleanup(server.close)
        server.begin()
        self.eventually(server.is_ready, lambda: server.log)
        self.eventually(lambda: server.get("/apis")[0] != 429, lambda: server.log)
        return server

    def store(self, path, token=None, **fields):
        """A call of etcd itself."""
        request = urllib.request.Request(f"{self.etcd.url}/v3/{path}", json.dumps(fields).encode(),
                                         {"Authorization": token} if token else {})
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.loads(answer.read())

    def send(self, server, method, path, body=None, token=None):
        connection = http.client.HTTPConnection("127.0.0.1", server.kube_port, timeout=60)
        headers = {"Content-Type": "application/json"}
        if token:
            headers["Authorization"] = f"Bearer {token}"
        try:
            connection.request(method, path, json.dumps(body) if body else None, headers)
            answer = connection.getresponse()
            self.headers = answer.headers
            return answer.status, json.loads(answer.read())
        finally:
            connection.close()

    def make(self, server, name, token=None):
        code, made = self.send(server, "POST", CMS, {"metadata": {"name": name}}, token)
        self.assertEqual(code, 201, made)
        return int(made["metadata"]["resourceVersion"])

    # -- several servers --

    def test_client_moves_between_servers(self):
        first, second = self.vigil("first"), self.vigil("second", "--upstream-prefix", "/registry/")
        for i in range(20):
            revision = self.make(first, f"a{i}")
            # Not older than the write, however far the other server has come.
            code, listed = self.send(second, "GET", f"{CMS}?resourceVersion={revision}")
            self.assertEqual((code, len(listed["items"])), (200, i + 1), listed)
            self.assertEqual(self.send(second, "GET", f"{CMS}/a{i}")[0], 200)
        # A revision of a key that the second does not mirror.
        self.store("kv/put", key=text64("elsewhere"), value=text64("1"))
        newest = int(first.list(CMS)["metadata"]["resourceVersion"])
        self.assertGreater(newest, revision)
        code, listed = self.send(second, "GET", f"{CMS}?resourceVersion={newest}")
        self.assertEqual(code, 200, listed)
        watch = second.watch(CMS, resourceVersion=newest)
        self.make(first, "z")
        self.assertEqual(watch.next()["object"]["metadata"]["name"], "z")

    def test_only_one_of_several_servers_compacts(self):
        servers = [self.vigil(f"v{i}", "--kube-history", "1s") for i in range(2)]
        for server in servers:
            self.make(server, f"by-{server.kube_port}")

        def compacted():
            return [json.loads(line)["revision"] for server in servers for line in server.lines
                    if "compacted the cluster" in line]

        self.eventually(lambda: len(compacted()) >= 2, lambda: servers[0].log)
        self.assertEqual(len(compacted()), len(set(compacted())))
        for server in servers:
            # The other server notices within seconds, and has the history until then.
            self.eventually(lambda: server.watch(CMS, resourceVersion=2).next()["object"].get("code") == 410,
                            lambda: server.log)

    # -- users --

    def enable_auth(self):
        self.store("auth/user/add", name="root", password="secret")
        self.store("auth/role/add", name="root")
        self.store("auth/user/grant", user="root", role="root")
        self.store("auth/enable")
        return self.store("auth/authenticate", name="root", password="secret")["token"]

    def test_cluster_with_users_needs_a_token_of_the_server(self):
        tokens = self.scratch / "tokens"
        tokens.write_text("t0ken,admin,1\n")
        server = self.vigil("v", "--kube-token-file", str(tokens), "--upstream-user", "root:secret")
        self.make(server, "before", "t0ken")
        self.enable_auth()
        self.assertEqual(self.send(server, "GET", CMS)[0], 401)
        self.eventually(lambda: "before" in str(self.send(server, "GET", CMS, token="t0ken")[1]), lambda: server.log)
        self.make(server, "after", "t0ken")
        event = {"metadata": {"name": "e"}, "involvedObject": {"namespace": "default"}}  # has a lease
        self.assertEqual(self.send(server, "POST", "/api/v1/namespaces/default/events", event, "t0ken")[0], 201)

    def test_clients_without_a_token_are_shut_out_when_users_are_enabled(self):
        server = self.vigil("v", "--upstream-user", "root:secret")
        self.make(server, "a")
        watch = server.watch(CMS)
        self.assertEqual(watch.next()["object"]["metadata"]["name"], "a")
        root = self.enable_auth()
        last = watch.next()
        self.assertEqual((last["type"], last["object"]["code"]), ("ERROR", 401), last)
        self.assertIn("--kube-token-file", last["object"]["message"])
        self.assertIsNone(watch.next())
        # Each thread keeps for up to a second what clients without a token may do. The cluster itself refuses to read objects, so
        # only paths that it is not asked for show whether the thread knows.
        self.eventually(lambda: all(self.send(server, "GET", path)[0] == 401 for path in (CMS, "/api") for _ in range(20)),
                        lambda: server.log)
        for method, path in (("GET", f"{CMS}/a"), ("GET", "/api"), ("DELETE", f"{CMS}/a"), ("GET", "/openapi/v3")):
            self.assertEqual(self.send(server, method, path)[0], 401, path)
        self.store("auth/disable", root)
        self.eventually(lambda: self.send(server, "GET", f"{CMS}/a")[0] == 200, lambda: server.log)

    # -- failures --

    def test_cluster_with_another_past_expires_all_versions(self):
        server = self.vigil("v")
        for i in range(30):
            newest = self.make(server, f"a{i}")
        watch = server.watch(CMS, resourceVersion=newest)
        self.etcd.kill()
        self.etcd.wait()
        shutil.rmtree(self.etcd.directory)
        self.etcd.start()
        self.assert_expired(watch.next())
        server.close()
        self.eventually(lambda: self.listed(server) == [], lambda: server.log)
        self.assertLess(self.make(server, "b"), newest)
        self.assert_expired(server.watch(CMS, resourceVersion=newest).next())
        self.assertEqual(self.listed(server), ["b"])

    def assert_expired(self, event):
        found = event["type"], event["object"].get("code"), event["object"].get("reason")
        self.assertEqual(found, ("ERROR", 410, "Expired"), event)

    def listed(self, server):
        """The names of all objects; None: it is not served now."""
        with contextlib.suppress(OSError, http.client.HTTPException):
            code, answer = self.send(server, "GET", CMS)
            return [item["metadata"]["name"] for item in answer["items"]] if code == 200 else None

    @unittest.skipUnless(IN_FRONT, "it takes half a minute, so it runs with the other tests of clusters")
    def test_paused_cluster_leaves_lists_of_any_version_and_the_outcome_of_writes_open(self):
        server = self.vigil("v")
        self.make(server, "a")
        server.list(CMS)  # the mirror has it
        os.kill(self.etcd.pid, signal.SIGSTOP)
        try:
            code, listed = self.send(server, "GET", f"{CMS}?resourceVersion=0")
            self.assertEqual((code, len(listed["items"])), (200, 1), listed)
            started = time.monotonic()
            code, answer = self.send(server, "POST", CMS, {"metadata": {"name": "b"}})
            self.assertEqual((code, answer["reason"]), (504, "Timeout"), answer)
            self.assertIsNone(self.headers["Retry-After"])  # it may have been made
            self.assertLess(time.monotonic() - started, 50)
        finally:
            os.kill(self.etcd.pid, signal.SIGCONT)
        # Whatever has become of it, it can be read, and everything works again.
        self.eventually(lambda: self.send(server, "GET", CMS)[0] == 200, lambda: server.log)
        self.make(server, "c")


@unittest.skipUnless(IN_FRONT, "it takes half a minute, so it runs with the other tests of clusters")
class LeadersKilled(unittest.TestCase):
    """Acknowledged writes are kept, unknown outcomes are reported as such, and a watch misses nothing."""
    WRITERS, KILLS = 8, 2

    def test_newest_etcd(self):
        self.kill_leaders(PEER)

    @unittest.skipUnless(pathlib.Path("/usr/bin/etcd").exists(), "no etcd of the distribution")
    def test_etcd_of_the_distribution(self):
        self.kill_leaders("/usr/bin/etcd")

    def kill_leaders(self, binary):
        sys.path.insert(0, str(ROOT / "tests/client"))
        import targets
        scratch = pathlib.Path(tempfile.mkdtemp(prefix="vigil-leaders-"))
        self.addCleanup(shutil.rmtree, scratch, ignore_errors=True)
        cluster = targets.etcd(scratch / "etcd", binary, members=3)
        self.addCleanup(cluster.close)
        self.server = KubeServer(scratch / "vigil", ["--upstream-endpoints", cluster.endpoints])
        self.addCleanup(self.server.kill)
        self.server.start()
        self.made, self.open, self.over = {}, set(), threading.Event()
        watch = self.server.watch(CMS, resourceVersion=self.server.list(CMS)["metadata"]["resourceVersion"])
        writers = [threading.Thread(target=self.write, args=(n,)) for n in range(self.WRITERS)]
        for writer in writers:
            writer.start()
        try:
            for _ in range(self.KILLS):
                self.progress()
                cluster.leader().kill()
                self.progress()
                cluster.start()
        finally:
            self.over.set()
            for writer in writers:
                writer.join()
        self.check(watch)

    def progress(self):
        """Returns when some more writes were acknowledged."""
        goal, end = len(self.made) + 100, time.monotonic() + 60
        while len(self.made) < goal:
            self.assertLess(time.monotonic(), end, self.server.log)
            time.sleep(0.02)

    def write(self, number):
        connection = http.client.HTTPConnection("127.0.0.1", self.server.kube_port, timeout=60)
        for i in range(10**9):
            if self.over.is_set():
                break
            name = f"w{number}-{i}"
            connection.request("POST", CMS, json.dumps({"metadata": {"name": name}}), {"Content-Type": "application/json"})
            answer = connection.getresponse()
            body = json.loads(answer.read())
            if answer.status == 201:
                self.made[name] = body["metadata"]["resourceVersion"]
            else:
                self.open.add((name, answer.status, answer.headers["Retry-After"]))
        connection.close()

    def check(self, watch):
        self.assertEqual({(code, retry) for _, code, retry in self.open} - {(504, None)}, set(), self.open)
        stored = {item["metadata"]["name"]: item["metadata"]["resourceVersion"]
                  for item in self.server.list(CMS)["items"] if item["metadata"]["name"].startswith("w")}
        self.assertEqual({name: stored.get(name) for name in self.made}, self.made)
        self.assertLessEqual(set(stored) - set(self.made), {name for name, _, _ in self.open})
        events = [event["object"]["metadata"] for event in watch.take(len(stored))]
        self.assertEqual([event["name"] for event in events], sorted(stored, key=lambda name: int(stored[name])))


if __name__ == "__main__":
    unittest.main()
