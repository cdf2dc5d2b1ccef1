#!/usr/bin/python3
"""The server writes nothing without a request; the first request for a Kubernetes resource creates four namespaces
and the other objects of a new cluster."""
import concurrent.futures
import datetime
import http.client
import json
import unittest

from certs import Authority
from kube import KubeServer, names, text64
from server import LiveTest, Server, only_vigil

NAMESPACES = ["default", "kube-node-lease", "kube-public", "kube-system"]
LISTED = "/api/v1/namespaces"
SERVICES = "/api/v1/namespaces/default/services"
ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
# Requests of clients that check the server's health or its discovery documents.
PAGES = ("/healthz", "/livez", "/readyz", "/version", "/metrics", "/", "/api", "/apis", "/api/v1", "/apis/apps/v1",
         "/openapi/v2", "/openapi/v3", "/api/v1/nothing", "/apis/none.example/v1/things")


class Bare(KubeServer):
    """A server whose start() sends no request."""

    def start(self):
        self.store = None
        return Server.start(self)


@only_vigil
class DefaultNamespaces(LiveTest):
    def serve(self, *args):
        server = Bare(self.scratch / "data", ["--io-threads", "4", *args])
        self.addCleanup(server.kill)
        self.addCleanup(server.close)
        return server.start()

    def state(self, server):
        answer = server.call("/v3/maintenance/hash")
        return int(answer["header"]["revision"]), answer["hash"]

    def test_nothing_is_written_without_a_kubernetes_request(self):
        server = self.serve()
        before = self.state(server)
        self.assertEqual(before[0], 1)
        for path in PAGES:
            server.get(path)
        connection = http.client.HTTPConnection("127.0.0.1", server.kube_port, timeout=60)
        connection.request("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
                           '{"spec":{"nonResourceAttributes":{"path":"/","verb":"get"}}}',
                           {"Content-Type": "application/json"})
        self.assertEqual(connection.getresponse().status, 201)
        connection.close()
        self.assertEqual(self.state(server), before)

    def test_health_checks_fail_while_the_first_objects_cannot_be_written(self):
        server = self.serve("--quota-backend-bytes=20000")
        name = "poststarthook/rbac/bootstrap-roles"
        self.assertEqual(server.get(f"/readyz/{name}")[0], 200, "the first request creates them")
        server.get("/api/v1/namespaces")
        code, _, text = server.get("/readyz")
        self.assertEqual(code, 500)
        self.assertIn(f"[-]{name} failed: the objects of a new cluster could not be written".encode(), text)
        answers = {server.get(f"/readyz/{name}")[0] for _ in range(40)}  # each on a connection of its own
        self.assertEqual(answers, {500}, "a thread that was not asked for a resource does not know")
        self.assertEqual(server.get(f"/readyz?exclude={name}")[0], 500, "others fail, too")
        self.assertEqual(server.get("/livez")[0], 200, "a restart would not help")

    def test_first_objects_are_made_when_there_is_space_again(self):
        """Without a request: a server that is not ready gets none."""
        server = self.serve("--quota-backend-bytes=400000")
        big = server.put_raw("big", "x" * 280_000)
        server.get("/api/v1/namespaces")
        self.assertEqual(server.get("/readyz")[0], 500)
        deleted = int(server.call("/v3/kv/deleterange", key=text64("big"))["header"]["revision"])
        self.assertGreater(deleted, big)
        server.call("/v3/kv/compaction", revision=deleted, physical=True)
        server.call("/v3/maintenance/defragment")
        for alarm in server.call("/v3/maintenance/alarm")["alarms"]:
            server.call("/v3/maintenance/alarm", action="DEACTIVATE", **alarm)
        self.eventually(lambda: server.get("/readyz")[0] == 200)
        self.assertIn("system-node-critical", names(server.list("/apis/scheduling.k8s.io/v1/priorityclasses")))

    def test_new_namespaces_get_a_service_account_and_a_root_certificate(self):
        served = Authority(self.scratch / "ca").sign("server")
        server = self.serve("--kube-namespace-objects=true", f"--cert-file={served.cert}", f"--key-file={served.key}")
        server.list(LISTED)

        def furnished():
            return {kind: sorted(item["metadata"]["namespace"] for item in server.list(f"/api/v1/{kind}")["items"]
                                 if item["metadata"]["name"] == name)
                    for kind, name in (("serviceaccounts", "default"), ("configmaps", "kube-root-ca.crt"))}

        self.eventually(lambda: furnished() == {"serviceaccounts": NAMESPACES, "configmaps": NAMESPACES})
        made = sorted([*NAMESPACES, *(f"n{i}" for i in range(20))])
        for name in made:
            if name not in NAMESPACES:
                self.assertEqual(self.send(server, "POST", LISTED, {"metadata": {"name": name}}), 201)
        self.eventually(lambda: furnished() == {"serviceaccounts": made, "configmaps": made})
        self.assertEqual({version for version, _ in self.stored(server).values()}, {"1"}, "each is written once")
        # They are deleted with their namespace, and not made in one that is being deleted.
        self.assertEqual(self.send(server, "DELETE", f"{LISTED}/n0"), 200)
        self.eventually(lambda: server.get(f"{LISTED}/n0")[0] == 404)
        self.assertNotIn("n0", furnished()["configmaps"])

    def test_objects_of_namespaces_are_left_to_a_controller_manager(self):
        server = self.serve("--kube-namespace-objects=true")
        now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        lease = {"metadata": {"name": "kube-controller-manager"},
                 "spec": {"holderIdentity": "m", "leaseDurationSeconds": 600, "renewTime": now}}
        path = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
        self.assertEqual(self.send(server, "POST", path, lease), 201)
        self.assertEqual(self.send(server, "POST", LISTED, {"metadata": {"name": "t"}}), 201)
        for _ in range(100):  # each a turn in which the server could have written them
            self.assertEqual(server.list("/api/v1/namespaces/t/configmaps")["items"], [])
        self.assertEqual(self.send(server, "DELETE", f"{path}/kube-controller-manager"), 200)
        self.eventually(lambda: names(server.list("/api/v1/namespaces/t/configmaps")) == ["kube-root-ca.crt"])
        self.eventually(lambda: names(server.list("/api/v1/namespaces/t/serviceaccounts")) == ["default"])

    def test_objects_of_namespaces_are_made_again(self):
        server = self.serve("--kube-namespace-objects=true")
        self.assertEqual(self.send(server, "POST", LISTED, {"metadata": {"name": "t"}}), 201)
        account, certificate = f"{LISTED}/t/serviceaccounts/default", f"{LISTED}/t/configmaps/kube-root-ca.crt"

        def objects():
            return [(server.get(path)[0], server.get(path)[2].get("data")) for path in (account, certificate)]

        whole = [(200, None), (200, {"ca.crt": ""})]
        self.eventually(lambda: objects() == whole)
        for path in (account, certificate):
            uid = server.get(path)[2]["metadata"]["uid"]
            self.assertEqual(self.send(server, "DELETE", path), 200)
            self.eventually(lambda: objects() == whole)
            self.assertNotEqual(server.get(path)[2]["metadata"]["uid"], uid)
        changed = {"metadata": {"name": "kube-root-ca.crt", "labels": {"a": "b"}}, "data": {"ca.crt": "mine", "more": "x" * 100000}}
        self.assertEqual(self.send(server, "PUT", certificate, changed), 200)
        self.eventually(lambda: objects() == whole)
        self.assertEqual(server.get(certificate)[2]["metadata"]["labels"], {"a": "b"}, "only the data is reset")
        # One that is immutable is reported once, and others are not kept waiting.
        self.assertEqual(self.send(server, "PUT", certificate, dict(changed, immutable=True)), 200)
        self.eventually(lambda: "cannot make an object of a namespace" in server.log)
        self.assertEqual(self.send(server, "POST", LISTED, {"metadata": {"name": "u"}}), 201)
        self.eventually(lambda: names(server.list(f"{LISTED}/u/configmaps")) == ["kube-root-ca.crt"])
        self.assertEqual(server.log.count("cannot make an object of a namespace"), 1)
        self.assertEqual(self.send(server, "DELETE", certificate), 200)
        self.eventually(lambda: objects() == whole)

    def test_a_start_completes_the_namespaces(self):
        server = self.serve()
        self.assertEqual(self.send(server, "POST", LISTED, {"metadata": {"name": "t"}}), 201)
        self.assertEqual(server.list(f"{LISTED}/t/serviceaccounts")["items"], [])
        server.kill()
        server.close()
        server = self.serve("--kube-namespace-objects=true")
        self.eventually(lambda: names(server.list(f"{LISTED}/t/serviceaccounts")) == ["default"])
        self.eventually(lambda: names(server.list(f"{LISTED}/t/configmaps")) == ["kube-root-ca.crt"])

    def send(self, server, method, path, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", server.kube_port, timeout=60)
        connection.request(method, path, json.dumps(body) if body else None, {"Content-Type": "application/json"})
        code = connection.getresponse().status
        connection.close()
        return code

    def test_first_requests_on_every_thread_see_the_namespaces(self):
        server = self.serve("--kube-bootstrap=false")
        with concurrent.futures.ThreadPoolExecutor(32) as pool:
            lists = list(pool.map(lambda _: server.list(LISTED), range(64)))
        for listed in lists:
            self.assertEqual(names(listed), NAMESPACES)
        self.assertEqual(self.state(server)[0], 1 + len(NAMESPACES))

    def stored(self, server):
        """The keys of all objects with their versions and revisions."""
        answer = server.call("/v3/kv/range", key=text64("/registry/"), range_end=text64("/registry0"), keys_only=True)
        return {kv["key"]: (kv["version"], kv["mod_revision"]) for kv in answer["kvs"]}

    def test_objects_of_a_new_cluster_are_created_once_by_all_threads(self):
        server = self.serve()
        with concurrent.futures.ThreadPoolExecutor(32) as pool:
            lists = list(pool.map(lambda path: (path, names(server.list(path))), [SERVICES, ROLES] * 32))
        for path, found in lists:
            self.assertIn("kubernetes" if path == SERVICES else "cluster-admin", found)
        stored = self.stored(server)
        self.assertGreater(len(stored), 100)
        self.assertEqual({version for version, _ in stored.values()}, {"1"})

    def test_start_adds_only_missing_objects(self):
        server = self.serve()
        server.list(SERVICES)
        before = self.stored(server)
        gone = [text64(f"/registry/{key}") for key in ("clusterroles/edit", "services/specs/default/kubernetes")]
        for key in gone:
            server.call("/v3/kv/deleterange", key=key)
        server.kill()
        server.close()
        server = self.serve()
        server.list(SERVICES)
        after = self.stored(server)
        self.assertEqual(after.keys(), before.keys())
        self.assertEqual({key for key in after if after[key] != before[key]}, set(gone))

    def test_start_adds_only_missing_namespaces(self):
        server = self.serve()
        uids = {item["metadata"]["name"]: item["metadata"]["uid"] for item in server.list(LISTED)["items"]}
        server.call("/v3/kv/deleterange", key=text64("/registry/namespaces/kube-public"))
        before = self.state(server)
        server.kill()
        server.close()
        server = self.serve()
        self.assertEqual(self.state(server), before)
        listed = server.list(LISTED)
        self.assertEqual(names(listed), NAMESPACES)
        self.assertEqual(self.state(server)[0], before[0] + 1)
        self.assertEqual({item["metadata"]["name"]: item["metadata"]["uid"] for item in listed["items"]
                          if item["metadata"]["name"] != "kube-public"},
                         {name: uid for name, uid in uids.items() if name != "kube-public"})


if __name__ == "__main__":
    unittest.main()
