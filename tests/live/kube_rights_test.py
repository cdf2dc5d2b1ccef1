#!/usr/bin/python3
"""Roles and bindings as users write and use them: what is accepted has its effect, and a write that needs more rights than its request
is refused without them. Users have the rights that a test gives them; admin has all."""
import base64
import http.client
import json
import unittest

from server import WAIT_SECONDS, LiveTest, free_port, only_vigil

RBAC = "/apis/rbac.authorization.k8s.io/v1"
GROUP = "rbac.authorization.k8s.io"
USERS = ("admin", "alice", "bob")


def role_of(name, kind="ClusterRole"):
    return {"kind": kind, "name": name, "apiGroup": GROUP}


def user_of(name):
    return {"kind": "User", "name": name, "apiGroup": GROUP}


def rule(verbs, group, resources, **more):
    return dict(verbs=verbs.split(), apiGroups=[group], resources=resources.split(), **more)


@only_vigil
class Rights(LiveTest):
    def setUp(self):
        super().setUp()
        self.port = free_port()
        tokens = self.scratch / "tokens"
        tokens.write_text("".join(f"token-{user},{user},{user}{',system:masters' if user == 'admin' else ''}\n" for user in USERS))
        self.vigil = self.serving(args=[f"--listen-kube-urls=http://127.0.0.1:{self.port}", f"--kube-token-file={tokens}",
                                        "--kube-authorization-mode=RBAC", "--io-threads=4",
                                        "--kube-enable-admission-plugins=OwnerReferencesPermissionEnforcement"])

    def send(self, user, method, path, body=None, kind="application/json"):
        """On a new connection, so that several threads answer. Returns code, body and warnings."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=WAIT_SECONDS)
        connection.request(method, path, body if body is None or isinstance(body, str) else json.dumps(body),
                           {"Authorization": f"Bearer token-{user}", "Content-Type": kind})
        response = connection.getresponse()
        text = response.read()
        connection.close()
        return response.status, json.loads(text) if text else None, response.headers.get_all("Warning", [])

    def write(self, user, method, path, body=None, code=None, **more):
        got, answer, _ = self.send(user, method, path, body, **more)
        self.assertEqual(got, code or (201 if method == "POST" else 200), answer)
        return answer

    def create(self, user, path, name, code=201, **fields):
        fields["metadata"] = dict(fields.get("metadata", {}), name=name)
        return self.write(user, "POST", path, fields, code)

    def bind(self, user, role, *users, namespace=None, name=None, code=201):
        path = f"{RBAC}/namespaces/{namespace}/rolebindings" if namespace else f"{RBAC}/clusterrolebindings"
        return self.create(user, path, name or f"{role}-{users[0]}", code, roleRef=role_of(role),
                           subjects=[user_of(one) for one in users])

    def allow(self, user, name, *rules, namespace=None):
        """Gives the user a cluster role with these rules, everywhere or in one namespace."""
        self.create("admin", f"{RBAC}/clusterroles", name, rules=list(rules))
        self.bind("admin", name, user, namespace=namespace)

    def test_owners_need_permission_to_delete_and_to_set_finalizers(self):
        """What a user was just allowed counts at once, on every thread."""
        maps = "/api/v1/namespaces/default/configmaps"
        self.allow("alice", "maps", rule("create patch", "", "configmaps"))
        uid = self.create("admin", maps, "owner")["metadata"]["uid"]
        self.create("admin", maps, "kept")
        owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid}
        blocking = {"metadata": {"ownerReferences": [dict(owner, blockOwnerDeletion=True)]}}
        self.create("alice", maps, "mine", metadata={"ownerReferences": [owner]})
        refused = self.create("alice", maps, "other", 403, **blocking)["message"]
        self.assertEqual(refused, 'configmaps "other" is forbidden: cannot set blockOwnerDeletion if an ownerReference refers to a '
                                  "resource you can't set finalizers on: , <nil>")
        self.allow("alice", "finalizers", dict(rule("update", "", "configmaps/finalizers"), resourceNames=["owner"]))
        self.create("alice", maps, "other", **blocking)

        def patch(code, body):
            return self.write("alice", "PATCH", f"{maps}/kept", body, code, kind="application/merge-patch+json")

        refused = patch(403, {"metadata": {"ownerReferences": [owner]}})["message"]
        self.assertEqual(refused, 'configmaps "kept" is forbidden: cannot set an ownerRef on a resource you can\'t delete: , <nil>')
        patch(200, {"data": {"a": "b"}})
        self.allow("alice", "deletes", rule("delete", "", "configmaps"))
        patch(200, {"metadata": {"ownerReferences": [owner]}})
        patch(200, blocking)

    def test_policies_need_permission_to_read_their_parameters(self):
        admission = "/apis/admissionregistration.k8s.io/v1"
        self.allow("alice", "policies", rule("*", "admissionregistration.k8s.io", "*"), rule("get", "", "configmaps"))
        rules = {"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}]}
        for user, kind, code in (("alice", "ConfigMap", 201), ("alice", "Secret", 422), ("admin", "Secret", 201)):
            answer = self.create(user, f"{admission}/validatingadmissionpolicies", f"{user}-{kind.lower()}", code, spec={
                "paramKind": {"apiVersion": "v1", "kind": kind}, "matchConstraints": rules, "validations": [{"expression": "true"}]})
            self.assertIn("spec.paramKind: Forbidden" if code == 422 else "spec", str(answer))
        for policy, name, code in (("alice-configmap", "a", 201), ("admin-secret", "a", 422), ("absent", "a", 422)):
            answer = self.create("alice", f"{admission}/validatingadmissionpolicybindings", f"b-{policy}", code, spec={
                "policyName": policy, "validationActions": ["Audit"],
                "paramRef": {"name": name, "namespace": "default", "parameterNotFoundAction": "Allow"}})
            self.assertIn("spec.paramRef: Forbidden" if code == 422 else "spec", str(answer))

    def test_devices_of_a_claim_are_reported_by_their_drivers(self):
        claims = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
        self.allow("alice", "claims", rule("get patch", "resource.k8s.io", "resourceclaims resourceclaims/status"))
        self.create("admin", claims, "a", spec={"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "c"}}]}})
        allocation = {"devices": {"results": [{"request": "r", "driver": "d.example.com", "pool": "p", "device": "0"}]}}

        def patch(user, code, **status):
            return str(self.write(user, "PATCH", f"{claims}/a/status", {"status": status}, code, kind="application/merge-patch+json"))

        def devices(count):
            return [{"driver": "d.example.com", "pool": "p", "device": str(i)} for i in range(count)]

        self.assertIn("resourceclaims/binding", patch("alice", 422, allocation=allocation))
        patch("admin", 200, allocation=allocation)
        self.assertIn("resourceclaims/driver", patch("alice", 422, devices=devices(1)))
        self.allow("alice", "drives", rule("arbitrary-node:patch", "resource.k8s.io", "resourceclaims/driver"), namespace="default")
        patch("alice", 200, devices=devices(1))
        # More than a claim may have are not compared with each other.
        self.assertIn("Too many: 20000", patch("alice", 422, devices=devices(20_000)))

    def put_raw(self, key, value):
        connection = http.client.HTTPConnection("127.0.0.1", self.vigil.port, timeout=WAIT_SECONDS)
        connection.request("POST", "/v3/kv/put", json.dumps({
            "key": base64.b64encode(key.encode()).decode(), "value": base64.b64encode(json.dumps(value).encode()).decode()}))
        self.assertEqual(connection.getresponse().status, 200)
        connection.close()

    # -- What is accepted has its effect --

    def test_a_role_with_many_rules_has_its_effect(self):
        few = [rule("get", "", f"r{i}") for i in range(10000)]
        self.allow("alice", "long", *few, rule("list", "", "configmaps"))
        self.write("alice", "GET", "/api/v1/namespaces/default/configmaps")
        self.write("alice", "GET", "/api/v1/namespaces/default/secrets", code=403)
        # Those of an aggregated role are as many.
        self.write("admin", "PATCH", f"{RBAC}/clusterroles/long", {"metadata": {"labels": {"part": "of-sum"}}},
                   kind="application/merge-patch+json")
        self.create("admin", f"{RBAC}/clusterroles", "sum", aggregationRule={
            "clusterRoleSelectors": [{"matchLabels": {"part": "of-sum"}}]})
        self.bind("admin", "sum", "bob")
        self.write("bob", "GET", "/api/v1/namespaces/default/configmaps")
        # Another user cannot give away so many, and the refusal says why.
        self.allow("alice", "writes-roles", rule("create", GROUP, "roles"))
        answer = self.create("alice", f"{RBAC}/namespaces/default/roles", "long", 403, rules=few)
        self.assertIn("too many rules to compare with those of the user: use several smaller roles", answer["message"])

    def test_a_role_of_the_largest_size_is_written_and_used(self):
        names = [f"{i:x}" for i in range(150000)]
        self.allow("alice", "many", rule("get list", "", "configmaps", resourceNames=names))
        self.create("admin", "/api/v1/namespaces/default/configmaps", names[-1])
        self.write("alice", "GET", f"/api/v1/namespaces/default/configmaps/{names[-1]}")
        self.write("alice", "GET", "/api/v1/namespaces/default/configmaps/none", code=403)
        self.allow("bob", "escalates", rule("* escalate", GROUP, "clusterroles"))
        answer = self.create("bob", f"{RBAC}/clusterroles", "larger", 413, rules=[
            rule("get", "", "configmaps", resourceNames=names * 2)])
        self.assertIn("too large", answer["message"])

    def test_an_aggregation_that_would_have_no_effect_is_refused(self):
        selectors = [{"matchLabels": {"to": f"x{i}"}} for i in range(65)]
        answer = self.create("admin", f"{RBAC}/clusterroles", "sum", 422, aggregationRule={"clusterRoleSelectors": selectors})
        self.assertIn("aggregationRule.clusterRoleSelectors: Forbidden: this server can use at most 64 selectors", answer["message"])
        many = [{"matchExpressions": [{"key": f"k{i}", "operator": "Exists"} for i in range(257)]}]
        self.create("admin", f"{RBAC}/clusterroles", "sum", 422, aggregationRule={"clusterRoleSelectors": many})
        self.create("admin", f"{RBAC}/clusterroles", "sum", aggregationRule={"clusterRoleSelectors": selectors[1:]})
        # One that comes from elsewhere is named in refusals and in warnings, and can be made smaller.
        stored = {"apiVersion": f"{GROUP}/v1", "kind": "ClusterRole", "metadata": {"name": "imported", "uid": "1"}, "rules": [],
                  "aggregationRule": {"clusterRoleSelectors": selectors}}
        self.put_raw("/registry/clusterroles/imported", stored)
        self.bind("admin", "imported", "alice")
        answer = self.write("alice", "GET", "/api/v1/namespaces/default/configmaps", code=403)
        self.assertIn('the role "imported" exceeds the limits of this server', answer["message"])
        code, _, warnings = self.send("admin", "PATCH", f"{RBAC}/clusterroles/imported", {"metadata": {"labels": {"a": "b"}}},
                                      kind="application/merge-patch+json")
        self.assertEqual(code, 200)
        self.assertIn("this ClusterRole has no effect, because this server can use at most 64 selectors", str(warnings))
        self.create("admin", f"{RBAC}/clusterroles", "part", metadata={"labels": {"to": "x1"}},
                    rules=[rule("list", "", "configmaps")])
        self.write("admin", "PATCH", f"{RBAC}/clusterroles/imported", {"aggregationRule": {"clusterRoleSelectors": selectors[:2]}},
                   kind="application/merge-patch+json")
        self.write("alice", "GET", "/api/v1/namespaces/default/configmaps")

    # -- What a request needs besides its verb --

    def test_a_command_by_get_needs_the_right_to_create_it(self):
        self.create("admin", "/api/v1/namespaces/default/serviceaccounts", "default")
        self.create("admin", "/api/v1/namespaces/default/pods", "a", spec={"containers": [{"name": "c", "image": "i"}]})
        self.allow("alice", "gets", rule("get", "", "pods/exec pods/attach pods/portforward pods/log pods/proxy"))
        self.allow("bob", "runs", rule("get create", "", "pods/exec pods/attach pods/portforward"))
        for part in ("exec?command=x", "attach", "portforward"):
            path = f"/api/v1/namespaces/default/pods/a/{part}"
            answer = self.write("alice", "GET", path, code=403)
            self.assertIn(f'cannot create resource "pods/{part.partition("?")[0]}"', answer["message"])
            self.assertNotEqual(self.send("bob", "GET", path)[0], 403)
            self.assertNotEqual(self.send("bob", "POST", path)[0], 403)
        for part in ("log", "proxy"):
            self.assertNotEqual(self.send("alice", "GET", f"/api/v1/namespaces/default/pods/a/{part}")[0], 403)


if __name__ == "__main__":
    unittest.main()
