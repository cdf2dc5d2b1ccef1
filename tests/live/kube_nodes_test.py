#!/usr/bin/python3
"""What the credentials of a kubelet may do: the node authorizer and the admission plugin NodeRestriction, on several I/O threads."""
import http.client
import json
import re
import time
import unittest

from server import WAIT_SECONDS, LiveTest, free_port, only_vigil

NODES = ("one", "two")
SHOP = "/api/v1/namespaces/shop"
REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
VERBS = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "approve", "sign", "bind", "escalate",
         "impersonate", "*")
READ = ("get", "list", "watch")
CHANGE = ("update", "patch")
# All that a kubelet without pods may do with resources, in a namespace, with an object of another name than that of the node.
TABLE = {
    ("", "nodes"): ("create", *CHANGE), ("", "nodes/status"): CHANGE, ("", "pods"): ("create", "delete"), ("", "pods/status"): CHANGE,
    ("", "pods/eviction"): ("create",), ("", "services"): READ, ("", "events"): ("create", *CHANGE),
    ("events.k8s.io", "events"): ("create", *CHANGE),
    ("", "endpoints"): ("get",), ("authentication.k8s.io", "tokenreviews"): ("create",),
    ("authorization.k8s.io", "subjectaccessreviews"): ("create",), ("authorization.k8s.io", "localsubjectaccessreviews"): ("create",),
    ("certificates.k8s.io", "certificatesigningrequests"): ("create", *READ), ("storage.k8s.io", "csidrivers"): READ,
    ("storage.k8s.io", "csinodes"): ("create",), ("resource.k8s.io", "resourceslices"): ("create",),
    ("node.k8s.io", "runtimeclasses"): READ,
    # What every user may do who is authenticated.
    ("authorization.k8s.io", "selfsubjectaccessreviews"): ("create",), ("authorization.k8s.io", "selfsubjectrulesreviews"): ("create",),
    ("authentication.k8s.io", "selfsubjectreviews"): ("create",),
}
# The same of objects that have the name of the node.
OWN = {
    ("", "nodes"): ("create", *READ, *CHANGE), ("storage.k8s.io", "csinodes"): ("get", "create", *CHANGE, "delete"),
}
OWN_LEASE = ("get", "create", *CHANGE, "delete")


@only_vigil
class Nodes(LiveTest):
    def setUp(self):
        super().setUp()
        self.port = free_port()
        tokens = self.scratch / "tokens"
        tokens.write_text("admin,admin,1,system:masters\n" + "".join(f"{node},system:node:{node},2,system:nodes\n" for node in NODES))
        self.vigil = self.serving(args=[f"--listen-kube-urls=http://127.0.0.1:{self.port}", f"--kube-token-file={tokens}", "--io-threads=4",
                                        "--kube-authorization-mode=Node,RBAC", "--kube-enable-admission-plugins=NodeRestriction",
                                        "--kube-disable-admission-plugins=ServiceAccount"])
        self.create("/api/v1/namespaces", "shop")

    def send(self, user, method, path, body=None, kind="application/json"):
        """On a new connection, so that any thread answers."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=WAIT_SECONDS)
        connection.request(method, path, None if body is None else json.dumps(body),
                           {"Authorization": f"Bearer {user}", "Content-Type": kind})
        response = connection.getresponse()
        text = response.read()
        connection.close()
        return response.status, json.loads(text)

    def create(self, path, name, **fields):
        code, body = self.send("admin", "POST", path, {"metadata": {"name": name}, **fields})
        self.assertEqual(code, 201, body)
        return body

    def pod(self, name, node, secret):
        return self.create(f"{SHOP}/pods", name, spec={"nodeName": node, "terminationGracePeriodSeconds": 0, "containers": [
            {"name": "c", "image": "i", "envFrom": [{"secretRef": {"name": secret}}]}]})

    def metric(self, name):
        connection = http.client.HTTPConnection("127.0.0.1", self.vigil.port, timeout=WAIT_SECONDS)
        connection.request("GET", "/metrics")
        page = connection.getresponse().read().decode()
        connection.close()
        found = re.search(rf"^{name} (\S+)$", page, re.M)
        return found and float(found[1])

    def await_code(self, user, path, expected):
        end = time.monotonic() + WAIT_SECONDS
        while self.send(user, "GET", path)[0] != expected:
            self.assertLess(time.monotonic(), end, f"{path} does not become {expected} for {user}")

    def test_a_kubelet_reads_what_its_pods_use_at_once_and_no_longer(self):
        for i in range(20):
            name = f"s{i}"
            self.create(f"{SHOP}/secrets", name)
            self.assertEqual(self.send("one", "GET", f"{SHOP}/secrets/{name}")[0], 403)
            self.pod(f"p{i}", "one", name)
            # Whichever thread has not seen the pod yet waits for it.
            for _ in range(5):
                self.assertEqual(self.send("one", "GET", f"{SHOP}/secrets/{name}")[0], 200)
                self.assertEqual(self.send("two", "GET", f"{SHOP}/secrets/{name}")[0], 403)
                self.assertEqual(self.send("one", "GET", f"{SHOP}/pods/p{i}")[0], 200)
        self.assertEqual(self.metric("vigil_kube_node_graph_pods"), 20)
        for i in range(20):
            self.assertEqual(self.send("admin", "DELETE", f"{SHOP}/pods/p{i}")[0], 200)
            self.await_code("one", f"{SHOP}/secrets/s{i}", 403)
        self.assertEqual(self.metric("vigil_kube_node_graph_pods"), 0)
        self.assertEqual(self.metric("vigil_kube_node_graph_bytes"), 0)

    def test_after_a_restart_the_first_request_is_answered(self):
        self.create(f"{SHOP}/secrets", "s")
        for i in range(100):
            self.pod(f"p{i}", NODES[i % 2], "s" if i % 2 else "other")
        self.vigil.stop()
        self.vigil.start()
        self.assertEqual(self.metric("vigil_kube_node_graph_pods"), 0)
        self.assertEqual(self.send("two", "GET", f"{SHOP}/secrets/s")[0], 200)
        self.assertEqual(self.send("one", "GET", f"{SHOP}/secrets/s")[0], 403)
        self.assertEqual(self.metric("vigil_kube_node_graph_pods"), 100)

    def test_a_node_deletes_no_collection_of_pods_or_of_what_has_its_name(self):
        """As in Kubernetes, even with the right: its rules know an object by the name in the path."""
        roles = "/apis/rbac.authorization.k8s.io/v1/clusterrole"
        self.create(f"{roles}s", "all", rules=[{"verbs": ["deletecollection"], "apiGroups": ["*"], "resources": ["*"]}])
        self.create(f"{roles}bindings", "all", roleRef={"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "all"},
                    subjects=[{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "system:node:one"}])
        self.pod("p", "one", "s")
        self.create("/api/v1/nodes", "one")
        self.create(f"{SHOP}/configmaps", "m")
        for path, code, left in ((f"{SHOP}/pods", 200, 1), ("/api/v1/nodes", 403, 1), (f"{SHOP}/configmaps", 200, 0)):
            self.assertEqual(self.send("one", "DELETE", path)[0], code, path)
            self.assertEqual(len(self.send("admin", "GET", path)[1]["items"]), left, path)

    def resources(self):
        """The group and the name of every resource and subresource."""
        groups = self.send("admin", "GET", "/apis")[1]["groups"]
        paths = [("", "/api/v1")] + [(group["name"],
                                      f"/apis/{version['groupVersion']}") for group in groups for version in group["versions"]]
        return sorted({(group, item["name"]) for group, path in paths for item in self.send("admin", "GET", path)[1]["resources"]})

    def may(self, connection, **attributes):
        connection.request("POST", REVIEWS, json.dumps({"spec": {"resourceAttributes": attributes}}),
                           {"Authorization": "Bearer one", "Content-Type": "application/json"})
        answer = json.loads(connection.getresponse().read())
        return answer["status"]["allowed"]

    def test_a_kubelet_may_do_what_is_in_the_table_and_nothing_else(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=WAIT_SECONDS)
        resources = self.resources() + [("*", "*"), ("", "*"), ("", "users"), ("", "groups"), ("certificates.k8s.io", "signers")]
        self.assertGreater(len(resources), 100)
        for group, resource in resources:
            plain, _, sub = resource.partition("/")
            attributes = {"group": group, "resource": plain, **({"subresource": sub} if sub else {})}
            with self.subTest(resource=resource, group=group):
                for name, namespace, table in (("x", "shop", TABLE), ("x", "", TABLE), ("one", "shop", OWN)):
                    allowed = {verb for verb in VERBS if self.may(connection, verb=verb, name=name, namespace=namespace, **attributes)}
                    self.assertEqual(allowed, set(table.get((group, resource), TABLE.get((group, resource), ()))), (name, namespace))
        lease = {"group": "coordination.k8s.io", "resource": "leases", "namespace": "kube-node-lease"}
        self.assertEqual({verb for verb in VERBS if self.may(connection, verb=verb, name="one", **lease)}, set(OWN_LEASE))
        self.assertEqual({verb for verb in VERBS if self.may(connection, verb=verb, name="two", **lease)}, {"create"})
        connection.close()

    def test_what_the_authorizer_cannot_see_is_refused_by_the_plugin(self):
        for node in NODES:
            self.assertEqual(self.send(node, "POST", "/api/v1/nodes", {"metadata": {"name": node}})[0], 201)
        self.pod("theirs", "two", "s")
        leases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
        merge = "application/merge-patch+json"
        for method, path, body in (
                ("PATCH", "/api/v1/nodes/two", {"metadata": {"labels": {"a": "b"}}}), ("PATCH", "/api/v1/nodes/two/status", {"status": {}}),
                ("PATCH", "/api/v1/nodes/one", {"spec": {"taints": []}}),
                ("PATCH", "/api/v1/nodes/one", {"metadata": {"labels": {"node-restriction.kubernetes.io/a": "b"}}}),
                ("POST", "/api/v1/nodes", {"metadata": {"name": "three"}}), ("POST", leases, {"metadata": {"name": "two"}, "spec": {}}),
                ("DELETE", f"{SHOP}/pods/theirs", None), ("PATCH", f"{SHOP}/pods/theirs/status", {"status": {"phase": "Failed"}}),
                ("POST", f"{SHOP}/pods/theirs/eviction", {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "theirs"}}),
                ("POST", f"{SHOP}/pods", {"metadata": {"name": "own"},
                                          "spec": {"nodeName": "one", "containers": [{"name": "c", "image": "i"}]}})):
            with self.subTest(method=method, path=path, body=body):
                code, answer = self.send("one", method, path, body, merge if method == "PATCH" else "application/json")
                self.assertEqual((code, answer["reason"]), (403, "Forbidden"), answer)
        self.assertEqual(self.send("one", "PATCH", "/api/v1/nodes/one", {"metadata": {"labels": {"a": "b"}}}, merge)[0], 200)
        self.assertEqual(self.send("one", "POST", leases, {"metadata": {"name": "one"}, "spec": {}})[0], 201)

    def test_a_renewed_lease_is_that_of_the_node(self):
        """A change of its time alone takes a short path, with the same decisions."""
        leases = "/apis/coordination.k8s.io/v1/namespaces/{}/leases"
        nodes = leases.format("kube-node-lease")
        for path, name in ((nodes, "one"), (nodes, "two"), (leases.format("shop"), "one")):
            made = self.send("admin", "POST", path, {"metadata": {"name": name}, "spec": {"renewTime": "2026-11-19T20:00:00.000000Z"}})
            self.assertEqual(made[0], 201, made)
        lease = self.send("one", "GET", f"{nodes}/one")[1]
        for second in range(1, 30):
            lease["spec"]["renewTime"] = f"2026-11-19T20:00:{second:02}.000000Z"
            code, lease = self.send("one", "PUT", f"{nodes}/one", lease)
            self.assertEqual(code, 200, lease)
        self.assertGreaterEqual(self.metric("vigil_kube_heartbeats_total"), 29 - 4)  # but the first of each of the four threads
        group = "rbac.authorization.k8s.io"
        rbac = f"/apis/{group}/v1"
        self.create(f"{rbac}/clusterroles", "leases", rules=[
            {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["*"]}])
        self.create(f"{rbac}/clusterrolebindings", "leases", roleRef={"apiGroup": group, "kind": "ClusterRole", "name": "leases"},
                    subjects=[{"apiGroup": group, "kind": "User", "name": "system:node:one"}])
        for path, name, text in ((nodes, "two", "can only access node lease with the same name as the requesting node"),
                                 (leases.format("shop"), "one", 'can only access leases in the "kube-node-lease" system namespace')):
            lease = self.send("admin", "GET", f"{path}/{name}")[1]
            lease["spec"]["renewTime"] = "2026-11-19T20:00:10.000000Z"
            self.eventually(lambda: text in self.send("one", "PUT", f"{path}/{name}", lease)[1].get("message", ""))
            before = self.metric("vigil_kube_heartbeats_total")
            code, answer = self.send("one", "PUT", f"{path}/{name}", lease)
            self.assertEqual((code, answer["reason"]), (403, "Forbidden"), answer)
            self.assertEqual(self.metric("vigil_kube_heartbeats_total"), before)
            self.assertEqual(self.send("admin", "PUT", f"{path}/{name}", lease)[0], 200)


if __name__ == "__main__":
    unittest.main(verbosity=2)
