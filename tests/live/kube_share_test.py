#!/usr/bin/python3
"""What decisions about access and admission are made from is held in memory, within limits: objects of one namespace do not affect
the decisions in another one, and what is not held is read from the store. Tenants here have all rights in their own namespace only."""
import http.client
import json
import re
import unittest

from server import WAIT_SECONDS, LiveTest, free_port, only_vigil

RBAC = "/apis/rbac.authorization.k8s.io/v1"
GROUP = "rbac.authorization.k8s.io"
TENANT, OTHER = "aaa-tenant", "zzz-other"
POD = {"spec": {"containers": [{"name": "c", "image": "i"}]}}
# Large ones first, then what still fits: with one limit of 100,000 subjects for all namespaces none would be left for others.
SUBJECTS = [3000] * 34 + [1000] * 3 + [300] * 4 + [100] * 4 + [30] * 4 + [10] * 4 + [3] * 4 + [1] * 6
USERS = ("admin", "alice", "bob", "carol", "u0-7", "u60-0")


@only_vigil
class Share(LiveTest):
    def setUp(self):
        super().setUp()
        self.port = free_port()
        tokens = self.scratch / "tokens"
        tokens.write_text("".join(f"token-{user},{user},{user}{',system:masters' if user == 'admin' else ''}\n" for user in USERS))
        # 2 MiB for each kind of objects.
        self.vigil = self.serving(args=[f"--listen-kube-urls=http://127.0.0.1:{self.port}", f"--kube-token-file={tokens}",
                                        "--kube-authorization-mode=RBAC", "--io-threads=4", "--max-client-bytes=67108864"])
        for namespace in (TENANT, OTHER):
            self.create("admin", "/api/v1/namespaces", namespace)
        self.bind("admin", TENANT, "owner", "admin", "alice")
        self.bind("admin", OTHER, "bob", "view", "bob")

    def send(self, user, method, path, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=WAIT_SECONDS)
        connection.request(method, path, None if body is None else json.dumps(body),
                           {"Authorization": f"Bearer token-{user}", "Content-Type": "application/json"})
        response = connection.getresponse()
        text = response.read()
        connection.close()
        return response.status, json.loads(text)

    def create(self, user, path, name, code=201, **fields):
        fields["metadata"] = dict(fields.get("metadata", {}), name=name)
        got, body = self.send(user, "POST", path, fields)
        self.assertEqual(got, code, body)
        return body

    def bind(self, user, namespace, name, role, *users, code=201):
        return self.create(user, f"{RBAC}/namespaces/{namespace}/rolebindings", name, code,
                           subjects=[{"kind": "User", "name": user, "apiGroup": GROUP} for user in users],
                           roleRef={"kind": "ClusterRole", "name": role, "apiGroup": GROUP})

    def views(self, user, namespace):
        """On new connections, so that several threads answer. What is not held takes long to read."""
        times = 2 if namespace == TENANT else 8
        codes = {self.send(user, "GET", f"/api/v1/namespaces/{namespace}/configmaps")[0] for _ in range(times)}
        self.assertEqual(len(codes), 1, codes)
        return codes.pop() == 200

    def metric(self, name):
        connection = http.client.HTTPConnection("127.0.0.1", self.vigil.port, timeout=WAIT_SECONDS)
        connection.request("GET", "/metrics")
        response = connection.getresponse()
        code, page = response.status, response.read().decode()
        connection.close()
        self.assertEqual(code, 200)
        return float(re.search(rf"^{name} (\S+)$", page, re.M)[1])

    def test_bindings_of_one_namespace_take_no_access_away_in_another(self):
        for i, count in enumerate(SUBJECTS):  # the administrator's are not compared with its own rights, which takes long
            self.bind("alice" if count < 3 else "admin", TENANT, f"x{i:02}", "view", *[f"u{i}-{n}" for n in range(count)])
        self.bind("admin", OTHER, "carol", "view", "carol")
        self.assertTrue(self.views("bob", OTHER))
        self.assertTrue(self.views("carol", OTHER))
        self.assertFalse(self.views("alice", OTHER))
        # The tenant's own bindings are read from the store, and are all in effect.
        self.assertGreaterEqual(self.metric("vigil_kube_lookup_namespaces_not_held"), 1)
        self.assertLessEqual(self.metric("vigil_kube_lookup_bytes"), 22 << 20)
        for user in ("alice", "u0-7", "u60-0"):
            self.assertTrue(self.views(user, TENANT), user)
        for user in ("bob", "carol"):
            self.assertFalse(self.views(user, TENANT), user)
        self.bind("alice", TENANT, "more", "view", "carol")
        self.assertTrue(self.views("carol", TENANT))
        self.assertEqual(self.send("alice", "DELETE", f"{RBAC}/namespaces/{TENANT}/rolebindings/more")[0], 200)
        self.assertFalse(self.views("carol", TENANT))
        # Users cannot give away what they do not have, and reviews say the same.
        self.bind("alice", TENANT, "much", "cluster-admin", "alice", code=403)
        for user, allowed in (("alice", True), ("u0-7", False)):
            got = self.send(user, "POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", {
                "spec": {"resourceAttributes": {"namespace": TENANT, "verb": "create", "resource": "pods"}}})
            self.assertEqual((got[0], got[1]["status"]["allowed"]), (201, allowed), got)
        code, rules = self.send("u0-7", "POST", "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", {
            "spec": {"namespace": TENANT}})
        self.assertEqual((code, rules["status"]["incomplete"]), (201, False))
        self.assertTrue(any("configmaps" in rule["resources"] for rule in rules["status"]["resourceRules"]))

    def test_roles_that_are_not_held_are_read(self):
        names = [f"name-{i:04}-{'x' * 100}" for i in range(1000)]
        for i in range(30):
            self.create("alice", f"{RBAC}/namespaces/{TENANT}/roles", f"r{i}", rules=[
                {"verbs": ["get", "list"], "apiGroups": [""], "resources": ["configmaps"], "resourceNames": names}])
        self.create("alice", f"{RBAC}/namespaces/{TENANT}/roles", "list", rules=[
            {"verbs": ["list"], "apiGroups": [""], "resources": ["configmaps"]}])
        self.assertGreaterEqual(self.metric("vigil_kube_lookup_namespaces_not_held"), 1)
        role = {"kind": "Role", "name": "list", "apiGroup": GROUP}
        carol = [{"kind": "User", "name": "carol", "apiGroup": GROUP}]
        path = f"{RBAC}/namespaces/{TENANT}/rolebindings"
        self.create("alice", path, "carol", subjects=carol, roleRef=role)
        self.create("alice", path, "none", 404, subjects=carol, roleRef=dict(role, name="none"))
        self.assertTrue(self.views("carol", TENANT))
        self.assertEqual(self.send("carol", "GET", f"/api/v1/namespaces/{TENANT}/configmaps/other")[0], 403)
        self.assertFalse(self.views("bob", TENANT))

    def test_limit_ranges_and_quotas_of_one_namespace_stop_nothing_in_another(self):
        self.create("admin", f"/api/v1/namespaces/{OTHER}/serviceaccounts", "default")
        self.create("admin", f"/api/v1/namespaces/{TENANT}/serviceaccounts", "default")
        self.create("admin", f"/api/v1/namespaces/{OTHER}/limitranges", "small", spec={"limits": [
            {"type": "Container", "default": {"cpu": "1"}, "defaultRequest": {"cpu": "1"}}]})
        labels = {f"label-{i:05}": "x" * 60 for i in range(1620)}
        for i in range(270):
            self.create("admin", f"/api/v1/namespaces/{TENANT}/limitranges", f"big{i}", metadata={"labels": labels}, spec={"limits": []})
        pod = self.create("admin", f"/api/v1/namespaces/{OTHER}/pods", "after-limits", **POD)
        self.assertEqual(pod["spec"]["containers"][0]["resources"]["limits"], {"cpu": "1"})
        refused = self.create("admin", f"/api/v1/namespaces/{TENANT}/pods", "many-limits", 403, **POD)
        self.assertIn("there are more limit ranges than can be applied", refused["message"])
        for i in range(40):
            self.create("admin", f"/api/v1/namespaces/{TENANT}/resourcequotas", f"big{i}", metadata={"labels": labels},
                        spec={"hard": {"pods": "5"}})
        self.assertGreaterEqual(self.metric("vigil_kube_lookup_namespaces_not_held"), 1)
        self.create("admin", f"/api/v1/namespaces/{OTHER}/resourcequotas", "one", spec={"hard": {"services": "1"}})
        self.create("admin", f"/api/v1/namespaces/{OTHER}/pods", "after-quotas", **POD)
        self.create("admin", f"/api/v1/namespaces/{OTHER}/configmaps", "after-quotas")

    def test_accounts_that_are_not_held_are_found(self):
        secrets = [{"name": f"secret-{i:03}-{'x' * 100}"} for i in range(300)]
        for i in range(60):
            self.create("alice", f"/api/v1/namespaces/{TENANT}/serviceaccounts", f"s{i:02}", secrets=secrets)
        self.create("admin", f"/api/v1/namespaces/{OTHER}/serviceaccounts", "default")
        self.create("admin", f"/api/v1/namespaces/{OTHER}/pods", "p", **POD)
        self.assertGreaterEqual(self.metric("vigil_kube_lookup_namespaces_not_held"), 1)
        self.create("alice", f"/api/v1/namespaces/{TENANT}/serviceaccounts", "default")
        self.create("alice", f"/api/v1/namespaces/{TENANT}/pods", "p", **POD)
        self.create("alice", f"/api/v1/namespaces/{TENANT}/pods", "q", spec=dict(POD["spec"], serviceAccountName="s07"))
        self.create("alice", f"/api/v1/namespaces/{TENANT}/pods", "r", 403, spec=dict(POD["spec"], serviceAccountName="none"))

    def test_objects_are_held_once_and_without_what_is_not_needed(self):
        labels = {f"label-{i:05}": "x" * 60 for i in range(2900)}
        before = self.metric("vigil_kube_lookup_bytes")
        for i in range(20):
            self.create("alice", f"{RBAC}/namespaces/{TENANT}/roles", f"m{i}", metadata={"labels": labels}, rules=[])
            self.create("alice", f"/api/v1/namespaces/{TENANT}/serviceaccounts", f"m{i}", metadata={"labels": labels})
        for _ in range(20):  # on all threads
            self.send("alice", "POST", f"/api/v1/namespaces/{TENANT}/pods?dryRun=All", dict(POD, metadata={"generateName": "p"}))
        self.assertEqual(self.metric("vigil_kube_lookup_namespaces_not_held"), 0)
        self.assertLess(self.metric("vigil_kube_lookup_bytes") - before, 40 * 2048)


if __name__ == "__main__":
    unittest.main()
