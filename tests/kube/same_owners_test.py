#!/usr/bin/python3
"""OwnerReferencesPermissionEnforcement: users with different rights change the owners of the same objects in a real kube-apiserver and
in Vigil. Every code and message must be the same. tools/build-kube builds the real kube-apiserver."""
import pathlib
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/live"))
sys.path.insert(0, str(ROOT / "tests/kube"))
from apiserver_test import READY_SECONDS  # noqa: E402
from side_by_side import SideBySide  # noqa: E402
from same_writes_test import JSON_PATCH, MERGE, Client, normal, pod  # noqa: E402

APPLY, JSON = "application/apply-patch+yaml", "application/json"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
CORE = "/api/v1/namespaces/default"
CMS, PODS = CORE + "/configmaps", CORE + "/pods"
PLUGIN = "OwnerReferencesPermissionEnforcement"
ALL = ["get", "list", "create", "update", "patch"]
# What each may do besides writing config maps and pods.
USERS = {
    "writer": [],
    "deleter": [(["delete"], [""], ["configmaps"])],
    "finalizer": [(["delete"], [""], ["configmaps"]), (["update"], [""], ["configmaps/finalizers"]),
                  (["update"], ["apps"], ["deployments/finalizers"])],
    "named": [(["delete"], [""], ["configmaps"], ["owned"]), (["update"], [""], ["configmaps/finalizers"], ["one"])],
    "nodes": [(["update"], [""], ["nodes/finalizers"])],
    "anything": [(["update"], ["*"], ["*/finalizers"])],
    "everything": [(["*"], ["*"], ["*"])],
    "masters": [],
}


def token(user):
    return f"token-{user}"


def as_user(user):
    return "application/json", {"Authorization": f"Bearer {token(user)}"}


def owner(name, kind="ConfigMap", version="v1", uid=None, **more):
    return {"apiVersion": version, "kind": kind, "name": name, "uid": uid or f"uid-of-{name}", **more}


ONE, TWO = owner("one"), owner("two", controller=True)
BLOCKING = owner("one", blockOwnerDeletion=True)
LISTS = {
    "none": None,
    "empty": [],
    "one": [ONE],
    "false": [owner("one", blockOwnerDeletion=False)],
    "blocking": [BLOCKING],
    "both": [BLOCKING, owner("two", blockOwnerDeletion=True)],
    "other": [TWO],
    "turned": [TWO, ONE],
    "deployment": [owner("d", "Deployment", "apps/v1", blockOwnerDeletion=True)],
    "node": [owner("n", "Node", blockOwnerDeletion=True)],
    "unknown": [owner("n", "Nothing", "e.com/v1", blockOwnerDeletion=True)],
    "version": [owner("n", "ConfigMap", "v9", blockOwnerDeletion=True)],
    "unblocked": [owner("n", "Nothing", "e.com/v1")],
    "renamed": [owner("one", uid="another", blockOwnerDeletion=True)],
}


def body(name, owners):
    metadata = {"name": name} if owners is None else {"name": name, "ownerReferences": owners}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": "b"}}


def refusal(sent):
    code, answer = sent
    return (code, normal(answer)) if code >= 300 else (code, answer["metadata"].get("ownerReferences"))


class SameOwners(SideBySide):
    client = Client

    @classmethod
    def setUpClass(cls):
        scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(scratch.cleanup)
        tokens = pathlib.Path(scratch.name) / "users.csv"
        tokens.write_text("the-token,admin,admin,system:masters\n" + "".join(
            f"{token(user)},{user},{user}" + (",system:masters" if user == "masters" else "") + "\n" for user in USERS))
        cls.flags = ("--kube-garbage-collector=false", "--kube-quota-controller=false", "--kube-authorization-mode=RBAC",
                     f"--kube-token-file={tokens}", f"--kube-enable-admission-plugins={PLUGIN}", "--kube-namespace-objects=false",
                     "--kube-disable-admission-plugins=ServiceAccount")
        cls.their_flags = ("--request-timeout=30s", f"--token-auth-file={tokens}", f"--enable-admission-plugins={PLUGIN}")
        super().setUpClass()
        cls.ours.token = "the-token"
        for client in (cls.theirs, cls.ours):
            for user, rules in USERS.items():
                rights = [(ALL, [""], ["configmaps", "pods", "pods/status"]), *rules]
                made = [{"verbs": verbs, "apiGroups": groups, "resources": resources, **({"resourceNames": names[0]} if names else {})}
                        for verbs, groups, resources, *names in rights]
                code, answer = client.send("POST", f"{RBAC}/clusterroles", {"metadata": {"name": user}, "rules": made})
                assert code == 201, answer
                code, answer = client.send("POST", f"{RBAC}/clusterrolebindings", {
                    "metadata": {"name": user}, "roleRef": {"kind": "ClusterRole", "name": user, "apiGroup": "rbac.authorization.k8s.io"},
                    "subjects": [{"kind": "User", "name": user, "apiGroup": "rbac.authorization.k8s.io"}]})
                assert code == 201, answer
        # The rights of a user are in one role, so that with one of them all are known.
        end = time.monotonic() + READY_SECONDS
        for user in USERS:
            while user != "masters" and cls.theirs.send(
                    "POST", f"{CMS}?dryRun=All", body("x", None), JSON, *as_user(user))[0] != 201:
                assert time.monotonic() < end
                time.sleep(0.1)

    def ask(self, user, method, path, sent=None, kind=JSON):
        self.compare(refusal, method, path, sent, kind, *as_user(user))

    def test_new_objects(self):
        for user in USERS:
            for name, owners in LISTS.items():
                self.ask(user, "POST", f"{CMS}?dryRun=All", body(f"new-{name}", owners))
            self.ask(user, "PATCH", f"{CMS}/applied?dryRun=All&fieldManager=x", body("applied", LISTS["blocking"]), APPLY)

    def test_changes(self):
        for before, owners in LISTS.items():
            if before == "empty":
                continue
            for client in (self.theirs, self.ours):
                code, answer = client.send("POST", CMS, body("owned", owners))
                self.assertEqual(code, 201, answer)
            for user in USERS:
                for after in LISTS.values():
                    self.ask(user, "PUT", f"{CMS}/owned?dryRun=All", body("owned", after))
                self.ask(user, "PATCH", f"{CMS}/owned?dryRun=All", {"metadata": {"ownerReferences": None}}, MERGE)
                self.ask(user, "PATCH", f"{CMS}/owned?dryRun=All", [
                    {"op": "add", "path": "/metadata/ownerReferences", "value": [BLOCKING, TWO]}], JSON_PATCH)
                self.ask(user, "PATCH", f"{CMS}/owned?dryRun=All", {"data": {"c": user}}, MERGE)
            for client in (self.theirs, self.ours):
                client.send("DELETE", f"{CMS}/owned")

    def test_the_status_of_a_pod_is_exempt(self):
        for client in (self.theirs, self.ours):
            code, answer = client.send("POST", PODS, pod("p"))
            self.assertEqual(code, 201, answer)
        for user in USERS:
            self.ask(user, "PATCH", f"{PODS}/p?dryRun=All", {"metadata": {"ownerReferences": [ONE]}}, MERGE)
            self.ask(user, "PATCH", f"{PODS}/p/status?dryRun=All", {"metadata": {"ownerReferences": [ONE]}}, MERGE)


if __name__ == "__main__":
    unittest.main()
