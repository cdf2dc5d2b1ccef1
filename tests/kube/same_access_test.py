#!/usr/bin/python3
"""Sends the requests of many users to a real kube-apiserver and to Vigil, both with RBAC and the same roles and bindings: every
code and every refusal must be the same. tools/build-kube builds the real kube-apiserver."""
import base64
import http.client
import itertools
import json
import pathlib
import re
import ssl
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/live"))
sys.path.insert(0, str(ROOT / "tests/kube"))
from apiserver_test import Apiserver, READY_SECONDS  # noqa: E402
from certs import Authority  # noqa: E402
from server import Server, free_port  # noqa: E402

RBAC = "/apis/rbac.authorization.k8s.io/v1"
AUTH = "/apis/authorization.k8s.io/v1"
REVIEW = "/apis/authentication.k8s.io/v1"
ISSUER = "https://kubernetes.default.svc"
WAIT_SECONDS = 20
USERS = {  # name: groups
    "admin": ["system:masters"], "jane": [], "dev": ["developers"], "ops": ["developers", "operators"],
    "reader": [], "lister": [], "namer": [], "suber": [], "wild": [], "paths": [], "broken": [], "grower": [],
    "binder": [], "escalator": [], "actor": [], "acts-group": [], "<html>&": [],
    "changer": [], "maker": [], "requester": [], "approver": [], "domain": [], "signer": [],
    "policist": [], "policist-all": ["operators"], "claimer": [], "scheduler": [], "driver": [],
}


def token_of(user):
    return "token-" + "".join(c if c.isalnum() else "-" for c in user)


def rule(verbs, groups=None, resources=None, names=None, urls=None):
    fields = {"apiGroups": groups, "resources": resources, "resourceNames": names, "nonResourceURLs": urls}
    return dict({"verbs": verbs}, **{key: value for key, value in fields.items() if value is not None})


def subject(kind, name, namespace=None):
    group = {"apiGroup": "rbac.authorization.k8s.io"} if kind != "ServiceAccount" else {}
    return dict({"kind": kind, "name": name}, **group, **({"namespace": namespace} if namespace else {}))


def binding(name, role, *subjects, kind="ClusterRole"):
    return {"metadata": {"name": name}, "subjects": list(subjects),
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role}}


def user(name):
    return subject("User", name)


ADMISSION = "/apis/admissionregistration.k8s.io/v1"
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/shop/resourceclaims"
CERTIFICATES = "certificates.k8s.io"
REQUESTS = f"/apis/{CERTIFICATES}/v1/certificatesigningrequests"
APPLY = "application/apply-patch+yaml"
CORE = [""]
APPS = ["apps"]
SETUP = [
    ("/api/v1/namespaces", {"metadata": {"name": "shop"}}),
    ("/api/v1/namespaces/shop/serviceaccounts", {"metadata": {"name": "clerk"}}),
    ("/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "clerk"}}),
    ("/api/v1/namespaces/shop/configmaps", {"metadata": {"name": "a"}}),
    ("/api/v1/namespaces/shop/configmaps", {"metadata": {"name": "b"}}),
    (f"{RBAC}/clusterroles", {"metadata": {"name": "reads"}, "rules": [
        rule(["get", "list", "watch"], CORE, ["configmaps", "pods", "namespaces"])]}),
    (f"{RBAC}/clusterroles", {"metadata": {"name": "names"}, "rules": [
        rule(["get", "list", "watch", "update", "patch", "delete"], CORE, ["configmaps"], ["a"])]}),
    (f"{RBAC}/clusterroles", {"metadata": {"name": "subs"}, "rules": [
        rule(["get", "update"], ["*"], ["*/scale"]), rule(["update"], CORE, ["pods/status"]),
        rule(["*"], APPS, ["deployments/*"])]}),
    (f"{RBAC}/clusterroles", {"metadata": {"name": "all"}, "rules": [rule(["*"], ["*"], ["*"])]}),
    (f"{RBAC}/clusterroles", {"metadata": {"name": "urls"}, "rules": [
        rule(["get"], urls=["/metrics", "/apis/*", "/openapi/v3"]), rule(["post"], urls=["/version"])]}),
    (f"{RBAC}/clusterroles", {"metadata": {"name": "manages"}, "rules": [
        rule(["*"], ["rbac.authorization.k8s.io"], ["roles", "rolebindings", "clusterroles", "clusterrolebindings"]),
        rule(["get", "list"], CORE, ["configmaps"])]}),
    (f"{RBAC}/clusterroles", {"metadata": {"name": "writes"}, "rules": [
        rule(["create", "update", "patch", "get", "delete"], ["rbac.authorization.k8s.io"],
             ["roles", "rolebindings", "clusterroles", "clusterrolebindings"]),
        rule(["get", "list"], CORE, ["configmaps", "pods"]), rule(["get"], APPS, ["deployments/*", "*/scale"]),
        rule(["get"], CORE, ["secrets"], ["one", "two"]), rule(["get"], urls=["/metrics", "/apis/*"])]}),
    (f"{RBAC}/clusterroles", {"metadata": {"name": "binds"}, "rules": [
        rule(["bind"], ["rbac.authorization.k8s.io"], ["clusterroles"], ["all"]),
        rule(["create", "update", "get"], ["rbac.authorization.k8s.io"], ["rolebindings", "clusterrolebindings"])]}),
    (f"{RBAC}/clusterroles", {"metadata": {"name": "acts"}, "rules": [
        rule(["impersonate"], CORE, ["users", "groups", "serviceaccounts"]),
        rule(["impersonate"], ["authentication.k8s.io"], ["uids", "userextras/scopes"])]}),
    (f"{RBAC}/clusterroles", {"metadata": {"name": "acts-group"}, "rules": [
        rule(["impersonate"], CORE, ["users"], ["reader"]), rule(["impersonate"], CORE, ["groups"], ["developers"])]}),
    (f"{RBAC}/clusterroles", {"metadata": {"name": "changes"}, "rules": [rule(["get", "patch", "update"], ["*"], ["*"])]}),
    (f"{RBAC}/clusterroles", {"metadata": {"name": "makes"}, "rules": [
        rule(["create"], ["*"], ["configmaps", "leases", "services"], ["made"]), rule(["create"], CORE, ["secrets"])]}),
    (f"{RBAC}/clusterroles", {"metadata": {"name": "requests"}, "rules": [
        rule(["create", "get", "delete"], [CERTIFICATES], ["certificatesigningrequests"]),
        rule(["update", "patch"], [CERTIFICATES], ["certificatesigningrequests/approval", "certificatesigningrequests/status"])]}),
    (f"{RBAC}/clusterroles", {"metadata": {"name": "approves"}, "rules": [
        rule(["approve"], [CERTIFICATES], ["signers"], ["example.com/one"])]}),
    (f"{RBAC}/clusterroles", {"metadata": {"name": "approves-domain"}, "rules": [
        rule(["approve"], [CERTIFICATES], ["signers"], ["example.com/*"])]}),
    (f"{RBAC}/clusterroles", {"metadata": {"name": "signs"}, "rules": [rule(["sign"], [CERTIFICATES], ["signers"], ["example.com/one"])]}),
    (f"{RBAC}/clusterroles", {"metadata": {"name": "policies"}, "rules": [
        rule(["*"], ["admissionregistration.k8s.io"], ["*"]), rule(["get"], CORE, ["configmaps"])]}),
    (f"{RBAC}/clusterroles", {"metadata": {"name": "params"}, "rules": [
        rule(["get"], CORE, ["secrets"], ["one"]), rule(["list"], CORE, ["configmaps", "secrets"])]}),
    (f"{RBAC}/clusterroles", {"metadata": {"name": "claims"}, "rules": [
        rule(["get", "update", "patch"], ["resource.k8s.io"], ["resourceclaims", "resourceclaims/status"])]}),
    (f"{RBAC}/clusterroles", {"metadata": {"name": "binds-claims"}, "rules": [
        rule(["update", "patch"], ["resource.k8s.io"], ["resourceclaims/binding"])]}),
    (f"{RBAC}/clusterroles", {"metadata": {"name": "drives"}, "rules": [
        rule(["arbitrary-node:update", "arbitrary-node:patch"], ["resource.k8s.io"], ["resourceclaims/driver"], ["one.example.com"])]}),
    (f"{RBAC}/clusterrolebindings", binding("policists", "policies", user("policist"), user("policist-all"))),
    (f"{RBAC}/clusterrolebindings", binding("params", "params", user("policist-all"))),
    (f"{RBAC}/clusterrolebindings", binding("claimers", "claims", *[user(name) for name in ("claimer", "scheduler", "driver")])),
    (f"{RBAC}/clusterrolebindings", binding("schedulers", "binds-claims", user("scheduler"))),
    (f"{RBAC}/namespaces/shop/rolebindings", binding("claimers", "binds-claims", user("claimer"))),
    (f"{RBAC}/namespaces/shop/rolebindings", binding("drivers", "drives", user("driver"), user("scheduler"))),
    (f"{RBAC}/clusterrolebindings", binding("changers", "changes", user("changer"), user("maker"))),
    (f"{RBAC}/clusterrolebindings", binding("makers", "makes", user("maker"))),
    (f"{RBAC}/clusterrolebindings", binding("requesters", "requests", *[user(name) for name in (
        "requester", "approver", "domain", "signer")])),
    (f"{RBAC}/clusterrolebindings", binding("approvers", "approves", user("approver"))),
    (f"{RBAC}/clusterrolebindings", binding("domains", "approves-domain", user("domain"))),
    (f"{RBAC}/clusterrolebindings", binding("signers", "signs", user("signer"))),
    (f"{RBAC}/clusterrolebindings", binding("readers", "reads", user("reader"))),
    (f"{RBAC}/clusterrolebindings", binding("wilds", "all", user("wild"))),
    (f"{RBAC}/clusterrolebindings", binding("paths", "urls", user("paths"))),
    (f"{RBAC}/clusterrolebindings", binding("broken", "missing", user("broken"))),
    (f"{RBAC}/clusterrolebindings", binding("growers", "writes", user("grower"), user("binder"))),
    (f"{RBAC}/clusterrolebindings", binding("binders", "binds", user("binder"))),
    (f"{RBAC}/clusterrolebindings", binding("escalators", "manages", user("escalator"))),
    (f"{RBAC}/clusterrolebindings", binding("actors", "acts", user("actor"))),
    (f"{RBAC}/clusterrolebindings", binding("acts-group", "acts-group", user("acts-group"))),
    (f"{RBAC}/namespaces/shop/roles", {"metadata": {"name": "lists"}, "rules": [
        rule(["list", "create", "deletecollection"], CORE, ["configmaps"])]}),
    (f"{RBAC}/namespaces/shop/rolebindings", binding("listers", "lists", user("lister"), kind="Role")),
    (f"{RBAC}/namespaces/shop/rolebindings", binding("namers", "names", user("namer"))),
    (f"{RBAC}/namespaces/shop/rolebindings", binding("subers", "subs", user("suber"))),
    (f"{RBAC}/namespaces/shop/rolebindings", binding("developers", "reads", subject("Group", "developers"))),
    (f"{RBAC}/namespaces/shop/rolebindings", binding("operators", "names", subject("Group", "operators"))),
    (f"{RBAC}/namespaces/shop/rolebindings", binding("clerks", "reads", subject("ServiceAccount", "clerk", "shop"))),
    (f"{RBAC}/namespaces/shop/rolebindings", binding("broken", "missing", user("broken"), kind="Role")),
]
PATHS = [
    ("GET", "/api/v1/namespaces/shop/configmaps"), ("GET", "/api/v1/namespaces/shop/configmaps/a"),
    ("GET", "/api/v1/namespaces/shop/configmaps/b"), ("GET", "/api/v1/namespaces/default/configmaps"),
    ("GET", "/api/v1/configmaps"), ("GET", "/api/v1/namespaces"), ("GET", "/api/v1/namespaces/shop"),
    ("GET", "/api/v1/nodes"), ("GET", "/api/v1/nodes/x"),
    ("GET", "/api/v1/namespaces/shop/configmaps?fieldSelector=metadata.name%3Da"),
    ("GET", "/api/v1/namespaces/shop/configmaps?fieldSelector=metadata.name%3Db"),
    ("GET", "/api/v1/namespaces/shop/configmaps?watch=1&timeoutSeconds=1"),
    ("GET", "/api/v1/watch/namespaces/shop/configmaps?timeoutSeconds=1"),
    ("PUT", "/api/v1/namespaces/shop/configmaps/missing"), ("PATCH", "/api/v1/namespaces/shop/configmaps/missing"),
    ("DELETE", "/api/v1/namespaces/shop/configmaps/missing"),
    ("DELETE", "/api/v1/namespaces/shop/configmaps?labelSelector=x%3Dy"),
    ("GET", "/api/v1/namespaces/shop/pods/missing/log"), ("PUT", "/api/v1/namespaces/shop/pods/missing/status"),
    ("GET", "/apis/apps/v1/namespaces/shop/deployments/missing/scale"),
    ("GET", "/apis/apps/v1/namespaces/shop/deployments"), ("GET", "/apis/apps/v1/deployments"),
    ("GET", f"{RBAC}/namespaces/shop/roles"), ("GET", f"{RBAC}/clusterroles/reads"),
    ("GET", "/apis/nothing.example.com/v1/things"), ("GET", "/apis/nothing.example.com/v1/namespaces/shop/things/x"),
    ("GET", "/"), ("GET", "/api"), ("GET", "/apis"), ("GET", "/apis/apps"), ("GET", "/apis/apps/v1"), ("GET", "/api/v1"),
    ("GET", "/healthz"), ("GET", "/livez"), ("GET", "/readyz"), ("GET", "/version"), ("GET", "/metrics"),
    ("GET", "/openapi/v3"), ("GET", "/nothing"), ("POST", "/version"),
]


# What policies ask about permissions, as texts.
ASKED = [
    f"authorizer.{asked}.{part}" for asked in (
        "requestResource.check('create')", "requestResource.check('delete')", "requestResource.subresource('status').check('update')",
        "requestResource.namespace('default').check('create')", "requestResource.namespace('').check('list')",
        "group('').resource('configmaps').check('list')", "group('').resource('configmaps').namespace('shop').check('list')",
        "group('').resource('secrets').namespace('shop').name('one').check('get')", "group('*').resource('*').check('*')",
        "group('apps').resource('deployments').subresource('scale').namespace('shop').check('update')",
        "group('').resource('configmaps').namespace('shop').fieldSelector('a=b').labelSelector('x in (y)').check('list')",
        "group('').resource('configmaps').namespace('shop').fieldSelector('!!').labelSelector('!!').check('list')",
        "path('/metrics').check('get')", "path('/apis/x').check('get')", "path('/version').check('post')", "path('metrics').check('GET')",
        "serviceAccount('shop', 'clerk').group('').resource('pods').namespace('shop').check('list')",
        "serviceAccount('shop', 'clerk').group('').resource('pods').namespace('default').check('list')",
        "serviceAccount('default', 'clerk').group('').resource('pods').namespace('shop').check('list')",
        "serviceAccount('none', 'none').path('/version').check('get')", "serviceAccount('shop', 'clerk').path('/api').check('get')",
        "serviceAccount('kube-system', 'job-controller').group('batch').resource('jobs').namespace('shop').check('update')",
    ) for part in ("allowed()", "reason()", "errored()", "error()")
] + [
    "authorizer.path(' ').check('get').reason()", "authorizer.group('').resource('').check('get').reason()",
    "authorizer.serviceAccount('A', 'b').path('/').check('get').reason()",
    "authorizer.serviceAccount('a', 'B').path('/').check('get').reason()",
    "['get', 'list', 'update'].filter(v, authorizer.requestResource.check(v).allowed())",
    "['get', 'list'].filter(v, authorizer.requestResource.check(v).allowed())",
    "[variables.may, variables.may, authorizer.requestResource.check('get').allowed()]",
]


class Client:
    def __init__(self, host, token=None, cert=None):
        self.host, self.token, self.cert, self.connection = host, token, cert, None

    def connect(self):
        context = ssl._create_unverified_context()
        if self.cert:
            context.load_cert_chain(self.cert.cert, self.cert.key)
        self.connection = http.client.HTTPSConnection(self.host, timeout=60, context=context)

    def close(self):
        if self.connection:
            self.connection.close()
        self.connection = None

    def send(self, method, path, body=None, token=None, headers=(), kind=None):
        if not self.connection:
            self.connect()
        token = self.token if token is None else token
        fields = [("Authorization", f"Bearer {token}")] if token else []
        kind = kind or ("application/merge-patch+json" if method == "PATCH" else "application/json")
        text = b"" if body is None else json.dumps(body).encode()
        try:
            self.connection.putrequest(method, path)
            for name, value in [*fields, ("Content-Type", kind), ("Content-Length", str(len(text))), *headers]:
                self.connection.putheader(name, value)
            self.connection.endheaders(text)
            response = self.connection.getresponse()
            text = response.read()
        except (OSError, http.client.HTTPException):
            self.close()
            raise
        if response.will_close:
            self.close()
        try:
            return response.status, json.loads(text)
        except ValueError:
            return response.status, text.decode(errors="replace")


def refusal(answer):
    """What must be the same: the code, and the whole Status of a refusal."""
    code, body = answer
    if code in (401, 403) or (isinstance(body, dict) and body.get("reason") in ("Forbidden", "Unauthorized")):
        return code, body
    return code, None


class SameAccess(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(scratch.cleanup)
        root = pathlib.Path(scratch.name)
        tokens = root / "users.csv"
        tokens.write_text("".join(f'{token_of(name)},{name},uid-{token_of(name)}' + (f',"{",".join(groups)}"' if groups else "") + "\n"
                                  for name, groups in USERS.items()))
        cls.backend = Server(str(root / "backend"))
        cls.backend.start()
        cls.addClassCleanup(cls.backend.stop)
        authority = cls.authority = Authority(root / "ca")
        cls.apiserver = Apiserver(root, cls.backend.url, ("--request-timeout=30s", f"--token-auth-file={tokens}",
                                                          f"--client-ca-file={authority.cert}",
                                                          "--feature-gates=ConstrainedImpersonation=false"))
        cls.addClassCleanup(cls.apiserver.stop)
        port = free_port()
        cls.server = Server(str(root / "data"), args=[
            f"--listen-kube-urls=https://127.0.0.1:{port}", "--kube-authorization-mode=RBAC", f"--kube-token-file={tokens}",
            "--auto-tls", f"--kube-client-ca-file={authority.cert}", f"--kube-service-account-issuer={ISSUER}",
            f"--kube-service-account-key-file={root}/sa.key", f"--kube-service-account-signing-key-file={root}/sa.key"])
        cls.server.start()
        cls.addClassCleanup(cls.server.stop)
        cls.ours = Client(f"127.0.0.1:{port}", token_of("admin"))
        cls.addClassCleanup(cls.ours.close)
        cls.theirs = Client(f"127.0.0.1:{cls.apiserver.port}", token_of("admin"))
        cls.addClassCleanup(cls.theirs.close)
        cls.wait_for("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/system:kube-scheduler")
        cls.copy_roles()
        for path, body in SETUP:
            for client in (cls.theirs, cls.ours):
                code, answer = client.send("POST", path, body)
                if code not in (201, 409):
                    raise AssertionError(f"{path}: {code} {answer}")
        cls.await_same(lambda client: client.send("GET", "/api/v1/namespaces/shop/configmaps/a", token=token_of("ops"))[0], 200)

    @classmethod
    def wait_for(cls, path):
        end = time.monotonic() + READY_SECONDS
        while True:
            try:
                if cls.theirs.send("GET", path)[0] == 200:
                    return
            except (OSError, http.client.HTTPException):
                pass
            if time.monotonic() > end:
                raise AssertionError(f"the apiserver does not serve {path}")
            time.sleep(0.2)

    @classmethod
    def copy_roles(cls):
        """The roles and bindings that a cluster has from the start."""
        for plural in ("clusterroles", "clusterrolebindings", "namespaces/kube-system/roles", "namespaces/kube-system/rolebindings",
                       "namespaces/kube-public/roles", "namespaces/kube-public/rolebindings"):
            for item in cls.theirs.send("GET", f"{RBAC}/{plural}")[1]["items"]:
                meta = item["metadata"]
                item["metadata"] = {key: meta[key] for key in ("name", "labels", "annotations") if key in meta}
                code, answer = cls.ours.send("POST", f"{RBAC}/{plural}", item)
                if code not in (201, 409):
                    raise AssertionError(f"{meta['name']}: {code} {answer}")

    @classmethod
    def await_same(cls, ask, expected):
        for client in (cls.theirs, cls.ours):
            end = time.monotonic() + WAIT_SECONDS
            while ask(client) != expected:
                if time.monotonic() > end:
                    raise AssertionError(f"{client.host} answers {ask(client)} in place of {expected}")
                time.sleep(0.02)

    def both(self, *args, **more):
        return self.theirs.send(*args, **more), self.ours.send(*args, **more)

    def compare(self, what_counts, *args, **more):
        theirs, ours = self.both(*args, **more)
        with self.subTest(request=str((args, more))[:300]):
            self.assertEqual(what_counts(ours), what_counts(theirs))
        return theirs[0]

    def test_each_user_may_do_the_same(self):
        codes = {}
        for name, (method, path) in itertools.product([*USERS, "", "unknown"], PATHS):
            body = {"metadata": {"name": "missing"}, "data": {}} if method in ("PUT", "PATCH") else None
            token = token_of(name) if name else ""
            code = self.compare(refusal_of(path), method, path, body, token=token)
            codes[code] = codes.get(code, 0) + 1
        self.assertGreater(codes[403], 150)
        self.assertGreater(codes[200], 100)
        self.assertGreater(codes[401], 20)

    def review(self, kind, spec, login="admin", namespace=None, group=AUTH, what_counts=lambda answer: answer):
        scope = f"/namespaces/{namespace}" if namespace else ""
        body = {"spec": spec, **({"metadata": {"namespace": namespace}} if namespace else {})}
        return self.compare(lambda answer: what_counts(without_times(answer)), "POST", f"{group}{scope}/{kind}", body,
                            token=token_of(login))

    def test_access_reviews_answer_the_same(self):
        resources = [
            {"verb": "list", "resource": "configmaps", "namespace": "shop"}, {"verb": "list", "resource": "configmaps"},
            {"verb": "get", "resource": "configmaps", "namespace": "shop", "name": "a"},
            {"verb": "get", "resource": "pods", "subresource": "log", "namespace": "shop"},
            {"verb": "update", "resource": "deployments", "subresource": "scale", "group": "apps", "namespace": "shop"},
            {"verb": "*", "resource": "*", "group": "*"}, {"verb": "impersonate", "resource": "users", "name": "reader"}, {},
        ]
        paths = [{"verb": "get", "path": path} for path in ("/metrics", "/openapi/v3", "/apis/x", "/nothing")]
        specs = [{"resourceAttributes": item} for item in resources] + [{"nonResourceAttributes": item} for item in paths]
        for login, spec in itertools.product(("jane", "dev", "ops", "reader", "lister", "suber", "broken", "admin"), specs):
            counts = without_binding if login == "ops" else lambda answer: answer
            self.review("selfsubjectaccessreviews", spec, login, what_counts=counts)
            self.review("subjectaccessreviews", dict(spec, user=login, **({"groups": USERS[login]} if USERS[login] else {})),
                        what_counts=counts)
            if spec.get("resourceAttributes", {}).get("namespace") == "shop":
                self.review("localsubjectaccessreviews", dict(spec, user=login), namespace="shop")
        account = {"user": "system:serviceaccount:shop:clerk", **specs[0]}
        self.review("subjectaccessreviews", account)
        self.review("subjectaccessreviews", dict(specs[0], groups=["developers"]))
        for spec in ({}, specs[0], {"user": "x"}, {"user": "x", "groups": ["y"], "extra": {"a": ["b"]}, "uid": "u", **specs[0]}):
            self.review("subjectaccessreviews", spec)
        self.review("selfsubjectaccessreviews", {})
        self.review("localsubjectaccessreviews", dict(specs[1], user="x"), namespace="shop")
        self.review("subjectaccessreviews", dict(specs[0], user="x"), "jane")

    def test_rules_reviews_list_the_same_rules(self):
        for login, namespace in itertools.product(("jane", "ops", "reader", "suber", "paths", "broken", "admin"), ("shop", "default", "")):
            self.review("selfsubjectrulesreviews", {"namespace": namespace}, login, what_counts=sorted_rules)

    def test_the_same_user_is_recognized(self):
        for login in ("admin", "jane", "ops"):
            self.review("selfsubjectreviews", {}, login, group=REVIEW)
        for token in (token_of("jane"), token_of("ops"), "unknown", "", "a.b.c"):
            self.review("tokenreviews", {"token": token}, group=REVIEW)
            self.review("tokenreviews", {"token": token, "audiences": [ISSUER, "vault"]}, group=REVIEW)
        self.review("tokenreviews", {"token": token_of("jane")}, "jane", group=REVIEW)

    def test_permissions_cannot_be_given_by_those_who_do_not_have_them(self):
        grants = [
            [rule(["get"], CORE, ["configmaps"])], [rule(["get", "list", "watch"], CORE, ["configmaps", "secrets"])],
            [rule(["*"], ["*"], ["*"])], [rule(["get"], CORE, ["secrets"], ["one"])], [rule(["get"], CORE, ["secrets"], ["one", "three"])],
            [rule(["get"], APPS, ["deployments/scale"])], [rule(["get"], APPS, ["statefulsets/scale", "deployments"])], [],
        ]
        urls = [[rule(["get"], urls=["/metrics"])], [rule(["get", "put"], urls=["/metrics", "/apis/apps", "/healthz"])]]
        codes = set()
        for login in ("grower", "binder", "escalator", "wild", "jane"):
            for number, rules in enumerate(grants + urls):
                name = f"{login}-{number}"
                codes.add(self.compare(refusal, "POST", f"{RBAC}/clusterroles", {"metadata": {"name": name}, "rules": rules},
                                       token=token_of(login)))
                if rules not in urls:
                    self.compare(refusal, "POST", f"{RBAC}/namespaces/shop/roles", {"metadata": {"name": name}, "rules": rules},
                                 token=token_of(login))
                    self.compare(refusal, "POST", f"{RBAC}/namespaces/shop/roles?dryRun=All",
                                 {"metadata": {"name": "dry"}, "rules": rules}, token=token_of(login))
                self.compare(refusal, "PATCH", f"{RBAC}/clusterroles/reads?dryRun=All", {"rules": rules}, token=token_of(login))
            for role in ("all", "reads", "names", "urls", "missing", "manages"):
                name = f"{login}-{role}"
                for path in ("clusterrolebindings", "namespaces/shop/rolebindings"):
                    self.compare(status_of, "POST", f"{RBAC}/{path}", binding(name, role, user("x")), token=token_of(login))
            self.compare(refusal, "POST", f"{RBAC}/namespaces/shop/rolebindings", binding(f"{login}-role", "lists", user("x"), kind="Role"),
                         token=token_of(login))
            selectors = {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}
            self.compare(refusal, "POST", f"{RBAC}/clusterroles",
                         {"metadata": {"name": f"{login}-all"}, "aggregationRule": selectors, "rules": []}, token=token_of(login))
            self.compare(refusal, "PATCH", f"{RBAC}/clusterroles/all", {"metadata": {"finalizers": ["example.com/x"]}},
                         token=token_of(login))
            self.compare(refusal, "PATCH", f"{RBAC}/clusterroles/all", {"metadata": {"labels": {"x": login}}}, token=token_of(login))
        self.assertEqual(codes, {201, 403})
        for client in (self.theirs, self.ours):
            client.send("PATCH", f"{RBAC}/clusterroles/all", {"metadata": {"finalizers": None}})

    def test_a_write_that_creates_needs_the_right_to_create(self):
        ports, spec = {"ports": [{"port": 80}]}, {"serviceAccountName": "clerk", "containers": [{"name": "c", "image": "i"}]}
        lease, service = "/apis/coordination.k8s.io/v1/namespaces/shop/leases", "/api/v1/namespaces/shop/services"
        kinds = [  # path, kind, version, members
            ("/api/v1/namespaces/shop/configmaps", "ConfigMap", "v1", {}), ("/api/v1/namespaces/shop/secrets", "Secret", "v1", {}),
            ("/api/v1/namespaces/shop/endpoints", "Endpoints", "v1", {}), (service, "Service", "v1", {"spec": ports}),
            ("/api/v1/namespaces/shop/limitranges", "LimitRange", "v1", {"spec": {"limits": []}}),
            ("/api/v1/namespaces/shop/pods", "Pod", "v1", {"spec": spec}), ("/api/v1/namespaces", "Namespace", "v1", {}),
            (lease, "Lease", "coordination.k8s.io/v1", {"spec": {}}),
            ("/apis/node.k8s.io/v1/runtimeclasses", "RuntimeClass", "node.k8s.io/v1", {"handler": "h"}),
            ("/apis/apps/v1/namespaces/shop/deployments", "Deployment", "apps/v1", {"spec": {}}),  # which is not valid
            ("/api/v1/namespaces/absent/configmaps", "ConfigMap", "v1", {}),
            ("/api/v1/namespaces/absent/services", "Service", "v1", {"spec": ports}),
            (f"{RBAC}/namespaces/shop/roles", "Role", "rbac.authorization.k8s.io/v1", {"rules": [rule(["get"], CORE, ["configmaps"])]}),
            (f"{RBAC}/clusterroles", "ClusterRole", "rbac.authorization.k8s.io/v1", {"rules": []}),
        ]
        codes = {}
        for login, (path, kind, version, members), name in itertools.product(("changer", "maker", "jane"), kinds, ("made", "other")):
            body = {"apiVersion": version, "kind": kind, "metadata": {"name": name}, **members}
            for method, query, form in (("PUT", "?dryRun=All", None), ("PUT", "", None), ("PATCH", "?dryRun=All&fieldManager=x", APPLY),
                                        ("PATCH", "?fieldManager=x", APPLY), ("PATCH", "", None)):
                code = self.compare(status_of, method, f"{path}/{name}{query}", body, token=token_of(login), kind=form)
                codes[code] = codes.get(code, 0) + 1
            if "absent" not in path and kind != "Service":  # the status of a service creates it in Kubernetes
                self.compare(status_of, "PATCH", f"{path}/{name}/status?fieldManager=x", body, token=token_of(login), kind=APPLY)
            for client in (self.theirs, self.ours):
                if login != "jane" and name == "made" and "absent" not in path:
                    client.send("DELETE", f"{path}/{name}?gracePeriodSeconds=0")
        self.assertGreater(codes[403], 100)
        self.assertGreater(codes[201], 5)
        self.assertGreater(codes[404], 20)

    def test_a_command_by_get_needs_the_right_to_create_it(self):
        """Kubernetes' refusal ends with a colon; ours says what is not allowed."""
        codes = [self.compare(lambda answer: (answer[0], answer[1].get("reason")) if answer[0] == 403 else answer[0] == 403,
                              method, f"/api/v1/namespaces/shop/pods/absent/{part}", token=token_of(login))
                 for login, method, part in itertools.product(("changer", "wild", "jane", "admin"), ("GET", "POST"),
                                                              ("exec?command=x", "attach", "portforward", "log", "proxy"))]
        self.assertIn(403, codes)

    def test_rights_that_were_just_given_create(self):
        bindings, path = f"{RBAC}/namespaces/shop/rolebindings", "/api/v1/namespaces/shop/configmaps"
        role = {"metadata": {"name": "creates"}, "rules": [rule(["create"], CORE, ["configmaps"])]}
        self.assertEqual(self.ours.send("POST", f"{RBAC}/namespaces/shop/roles", role)[0], 201)
        for turn in range(20):
            body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"new-{turn}"}}
            request = ("PATCH", f"{path}/new-{turn}?fieldManager=x", body, token_of("changer"))
            self.assertEqual(self.ours.send(*request, kind=APPLY)[0], 403)
            self.assertEqual(self.ours.send("POST", bindings, binding("creates", "creates", user("changer"), kind="Role"))[0], 201)
            self.assertEqual(self.ours.send(*request, kind=APPLY)[0], 201)
            self.assertEqual(self.ours.send("DELETE", f"{bindings}/creates")[0], 200)
            self.await_code(lambda: self.ours.send("PATCH", f"{path}/absent?fieldManager=x", dict(body, metadata={"name": "absent"}),
                                                   token_of("changer"), kind=APPLY)[0], 403)

    def test_certificates_are_approved_and_signed_only_for_signers_that_one_may_use(self):
        def conditions(*types):
            return {"status": {"conditions": [{"type": name, "status": "True", "reason": "r", "message": "m"} for name in types]}}

        made = []
        for number, (signer, subject_text) in enumerate(itertools.product(
                ("example.com/one", "example.com/two", "kubernetes.io/kube-apiserver-client", "kubernetes.io/kubelet-serving"),
                ("/CN=x", "/O=system:masters/CN=x", "/O=other/O=system:masters/CN=x", "/CN=system:masters"))):
            body = {"metadata": {"name": f"r{number}"}, "spec": {"signerName": signer, "usages": ["client auth"],
                                                                 "request": certificate_request(subject_text)}}
            if self.compare(status_of, "POST", REQUESTS, body, token=token_of("requester")) == 201:
                made.append(f"r{number}")
        self.assertEqual(len(made), 14)
        codes = set()
        for login, name in itertools.product(("requester", "approver", "domain", "signer", "jane"), made):
            for part, body in (("approval", conditions("Approved")), ("approval", {"metadata": {"labels": {"a": "b"}}}),
                               ("approval", {}), ("status", conditions("Other")), ("status", {"metadata": {"labels": {"c": "d"}}}),
                               ("status", {"status": {"certificate": "bm90aGluZw=="}}), ("status", {"status": {"conditions": []}}),
                               ("approval", {"spec": {"signerName": "example.com/one"}})):
                codes.add(self.compare(status_of, "PATCH", f"{REQUESTS}/{name}/{part}?dryRun=All", body, token=token_of(login)))
        self.assertEqual(codes, {200, 403, 422})
        for login, name in itertools.product(("requester", "approver", "domain"), made):
            self.compare(status_of, "PATCH", f"{REQUESTS}/{name}/approval", conditions("Approved"), token=token_of(login))
        self.compare(status_of, "PATCH", f"{REQUESTS}/absent/approval", conditions("Approved"), token=token_of("requester"))

    def test_policies_need_permission_to_read_their_parameters(self):
        kinds = [None, {"apiVersion": "v1", "kind": "ConfigMap"}, {"apiVersion": "v1", "kind": "Secret"},
                 {"apiVersion": "rules.example.com/v1", "kind": "Nothing"}]
        refs = [None, {"name": "one"}, {"name": "one", "namespace": "shop"}, {"name": "two", "namespace": "shop"},
                {"selector": {"matchLabels": {"a": "b"}}, "namespace": "shop"}]
        rules = {"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}]}
        spec = {"matchConstraints": rules, "validations": [{"expression": "true"}], "failurePolicy": "Ignore"}
        codes = {}

        def write(login, method, path, body):
            code = self.compare(status_of, method, path, body, token=token_of(login))
            codes[code] = codes.get(code, 0) + 1

        for login, (number, kind) in itertools.product(("policist", "policist-all", "wild", "jane"), enumerate(kinds)):
            made = dict(spec, paramKind=kind) if kind else spec
            write(login, "POST", f"{ADMISSION}/validatingadmissionpolicies", {"metadata": {"name": f"{login}-{number}"}, "spec": made})
            write(login, "PATCH", f"{ADMISSION}/validatingadmissionpolicies/wild-0", {"metadata": {"labels": {"by": login}}})
            write(login, "PATCH", f"{ADMISSION}/validatingadmissionpolicies/wild-0?dryRun=All", {"spec": {"paramKind": kind}})
            write(login, "PATCH", f"{ADMISSION}/validatingadmissionpolicies/wild-2?dryRun=All", {"spec": {"paramKind": kind}})
        for login, (number, ref), policy in itertools.product(("policist", "policist-all", "wild"), enumerate(refs),
                                                              ("wild-0", "wild-1", "wild-2", "wild-3", "absent")):
            made = {"policyName": policy, "validationActions": ["Audit"]}
            if ref:
                made["paramRef"] = {**ref, "parameterNotFoundAction": "Allow"}
            write(login, "POST", f"{ADMISSION}/validatingadmissionpolicybindings",
                  {"metadata": {"name": f"{login}-{number}-{policy}"}, "spec": made})
        # Kubernetes compares pointers, and checks a reference again that has not changed.
        self.assertEqual(self.ours.send("PATCH", f"{ADMISSION}/validatingadmissionpolicybindings/wild-1-wild-2",
                                        {"metadata": {"labels": {"a": "b"}}}, token=token_of("policist"))[0], 200)
        write("policist", "PATCH", f"{ADMISSION}/validatingadmissionpolicybindings/wild-1-wild-2", {"spec": {"policyName": "wild-3"}})
        self.assertGreater(codes[422], 10)
        self.assertGreater(codes[201], 10)

    def test_policies_ask_for_permissions(self):
        """A policy shows what it was answered in the error of a key that does not exist."""
        seen = set()

        def send(client, login, case):
            return client.send("POST", "/api/v1/namespaces/shop/configmaps?dryRun=All",
                               {"metadata": {"name": "asks", "labels": {"case": case}}}, token_of(login))

        def add(case, spec, actions=("Deny",)):
            match = {"resourceRules": [rule(["*"], CORE, ["configmaps"])], "objectSelector": {"matchLabels": {"case": case}}}
            match["resourceRules"][0].update(apiVersions=["v1"], operations=["*"])
            del match["resourceRules"][0]["verbs"]
            for plural, of in (("validatingadmissionpolicies", {"matchConstraints": match, **spec}),
                               ("validatingadmissionpolicybindings", {"policyName": case, "validationActions": actions})):
                made = {"metadata": {"name": case}, "spec": of}
                self.assertEqual(self.compare(lambda answer: answer[0], "POST", f"{ADMISSION}/{plural}", made), 201)

        variables = [{"name": "may", "expression": "authorizer.requestResource.check('create').allowed()"}]
        for number, text in enumerate(ASKED):
            shown = f"string({text})" if text.startswith("authorizer") else f"{text}.map(i, string(i)).join()"
            add(f"ask-{number}", {"variables": variables, "validations": [{"expression": f"{{'': 1}}[{shown}] == 1"}]})
        add("ask-condition", {"validations": [{"expression": "false"}], "matchConditions": [
            {"name": "x", "expression": "authorizer.requestResource.check('delete').allowed()"}]})
        add("ask-message", {"variables": variables, "validations": [
            {"expression": "false", "message": "fixed", "messageExpression": "string(variables.may)"}]})
        add("ask-annotation", {"validations": [{"expression": "true"}], "auditAnnotations": [
            {"key": "x", "valueExpression": "string(authorizer.path('/').check('get').allowed())"}]})
        add("ask-resource-annotation", {"validations": [{"expression": "true"}], "auditAnnotations": [
            {"key": "x", "valueExpression": "authorizer.requestResource.check('get').reason()"}]})
        add("ask-many", {"validations": [{"expression": f"!authorizer.path('/{i}').check('get').allowed()"} for i in range(25)] + [
            {"expression": "authorizer.requestResource.check('get').allowed()"}]})
        add("ask-budget", {"validations": [{"expression": f"!authorizer.path('/{i}').check('get').allowed()"} for i in range(40)]})
        add("marker", {"validations": [{"expression": "false"}]})
        self.await_same(lambda client: send(client, "admin", "marker")[0], 422)
        time.sleep(2)
        others = ["condition", "message", "annotation", "resource-annotation", "many", "budget"]
        for case, login in itertools.product([f"ask-{case}" for case in [*range(len(ASKED)), *others]], ("admin", "lister", "wild")):
            theirs, ours = send(self.theirs, login, case), send(self.ours, login, case)
            with self.subTest(case=case, login=login):
                self.assertEqual(status_of(ours), status_of(theirs))
            seen.update(re.findall(r"no such key: (true|false|RBAC: allowed by \w+)", str(theirs)))
        self.assertEqual(seen, {"true", "false", "RBAC: allowed by RoleBinding", "RBAC: allowed by ClusterRoleBinding"})

    def test_the_status_of_claims_needs_permission_to_bind_and_to_report(self):
        spec = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "c"}}]}}
        for client in (self.theirs, self.ours):
            self.assertEqual(client.send("POST", CLAIMS, {"metadata": {"name": "a"}, "spec": spec})[0], 201)
        result = {"request": "r", "pool": "p", "device": "d"}
        allocation = {"devices": {"results": [dict(result, driver=f"{name}.example.com") for name in ("one", "two")]}}
        one, two = (dict({"pool": "p", "device": "d"}, driver=f"{name}.example.com", data={"x": 1}) for name in ("one", "two"))
        pod = {"resource": "pods", "name": "p", "uid": "u"}
        steps = [{"allocation": allocation}, {"reservedFor": [pod]}, {"devices": [one]}, {"devices": [two]}, {"devices": [one, two]},
                 {"devices": None, "reservedFor": None}, {"allocation": None, "reservedFor": None, "devices": None}]
        codes = {}
        for step in steps:
            for login in ("jane", "claimer", "driver", "scheduler", "wild"):
                code = self.compare(status_of, "PATCH", f"{CLAIMS}/a/status", {"status": step}, token=token_of(login))
                codes[code] = codes.get(code, 0) + 1
        self.assertGreater(codes[422], 5)
        self.assertGreater(codes[200], 5)

    def test_impersonation_needs_permission_for_each_part(self):
        parts = {"user": ("Impersonate-User", "reader"), "self": ("Impersonate-User", "jane"), "group": ("Impersonate-Group", "developers"),
                 "masters": ("Impersonate-Group", "system:masters"), "uid": ("Impersonate-Uid", "u-1"),
                 "scope": ("Impersonate-Extra-Scopes", "view"), "other": ("Impersonate-Extra-Other", "view"),
                 "account": ("Impersonate-User", "system:serviceaccount:shop:clerk"), "anonymous": ("Impersonate-User", "system:anonymous"),
                 "odd": ("Impersonate-User", "system:serviceaccount:shop")}
        lists = [["user"], ["self"], ["user", "group"], ["user", "masters"], ["user", "uid"], ["user", "scope"], ["user", "other"],
                 ["account"], ["account", "group"], ["anonymous"], ["odd"], ["user", "group", "uid", "scope"]]
        for login, names in itertools.product(("admin", "actor", "acts-group", "jane", "wild"), lists):
            fields = [parts[name] for name in names]
            self.compare(without_times, "POST", f"{REVIEW}/selfsubjectreviews", {}, token=token_of(login), headers=fields)
            self.compare(refusal, "GET", "/api/v1/namespaces/shop/configmaps", token=token_of(login), headers=fields)
        for names in (["group"], ["uid"], ["scope"]):
            answers = self.both("GET", "/api/v1/namespaces/shop/configmaps", headers=[parts[name] for name in names])
            self.assertEqual([code for code, _ in answers], [400, 400])

    def test_changes_of_roles_take_effect(self):
        path = "/api/v1/namespaces/shop/secrets"
        role = {"metadata": {"name": "secrets"}, "rules": [rule(["list"], CORE, ["secrets"])]}

        def ask(client):
            return client.send("GET", path, token=token_of("jane"))[0]

        def change(*args):
            codes = [client.send(*args)[0] for client in (self.theirs, self.ours)]
            self.assertEqual(codes[0], codes[1])
            self.assertLess(codes[0], 300)

        roles, bindings = f"{RBAC}/namespaces/shop/roles", f"{RBAC}/namespaces/shop/rolebindings"
        self.await_same(ask, 403)
        change("POST", bindings, binding("secrets", "secrets", user("jane"), kind="Role"))
        self.compare(refusal, "GET", path, token=token_of("jane"))
        change("POST", roles, role)
        self.await_same(ask, 200)
        change("PATCH", f"{roles}/secrets", {"rules": []})
        self.await_same(ask, 403)
        change("PATCH", f"{roles}/secrets", {"rules": role["rules"]})
        self.await_same(ask, 200)
        change("DELETE", f"{bindings}/secrets")
        self.await_same(ask, 403)
        change("DELETE", f"{roles}/secrets")

    def test_certificates_name_users_and_groups(self):
        for name, groups in (("jane", []), ("mary", ["developers"]), ("root", ["system:masters"]), ("zoë", ["operators", "developers"])):
            cert = self.authority.sign(token_of(name), cn=name, groups=groups)
            clients = [Client(client.host, "", cert) for client in (self.theirs, self.ours)]
            for request in (("POST", f"{REVIEW}/selfsubjectreviews", {}), ("GET", "/api/v1/namespaces/shop/configmaps/a"),
                            ("GET", "/api/v1/nodes")):
                theirs, ours = [client.send(*request) for client in clients]
                with self.subTest(name=name, request=request):
                    self.assertEqual(without_times(refusal(ours) if request[0] == "GET" else ours),
                                     without_times(refusal(theirs) if request[0] == "GET" else theirs))
            for client in clients:
                client.close()

    def test_tokens_of_service_accounts_name_them_and_end_with_them(self):
        accounts = "/api/v1/namespaces/shop/serviceaccounts"
        secret = {"metadata": {"name": "bound"}}
        specs = [{}, {"audiences": ["vault"]}, {"expirationSeconds": 700}, {"expirationSeconds": 10}, {"expirationSeconds": 1 << 33},
                 {"boundObjectRef": {"kind": "Secret", "apiVersion": "v1", "name": "bound"}},
                 {"boundObjectRef": {"kind": "Secret", "apiVersion": "v1", "name": "bound", "uid": "wrong"}},
                 {"boundObjectRef": {"kind": "Secret", "apiVersion": "v1", "name": "missing"}},
                 {"boundObjectRef": {"kind": "ConfigMap", "apiVersion": "v1", "name": "a"}}]
        for client in (self.theirs, self.ours):
            self.assertEqual(client.send("POST", "/api/v1/namespaces/shop/secrets", secret)[0], 201)
        for spec in specs:
            self.compare(token_shape, "POST", f"{accounts}/clerk/token", {"spec": spec})
        self.compare(status_of, "POST", f"{accounts}/missing/token", {})
        self.compare(status_of, "POST", f"{accounts}/clerk/token", {}, token=token_of("jane"))
        self.compare(status_of, "GET", f"{accounts}/clerk/token")
        self.compare(status_of, "POST", f"{accounts}/clerk/token", {"metadata": {"uid": "wrong"}}, token="")
        for client in (self.theirs, self.ours):
            self.tokens_end(client, accounts)

    def tokens_end(self, client, accounts):
        def issue(spec, account="clerk"):
            code, answer = client.send("POST", f"{accounts}/{account}/token", {"spec": spec})
            self.assertEqual(code, 201, answer)
            return answer["status"]["token"]

        def code(token, path="/api/v1/namespaces/shop/configmaps/a"):
            return client.send("GET", path, token=token)[0]

        plain = issue({})
        self.assertEqual(code(plain), 200)
        self.assertEqual(code(plain, "/api/v1/namespaces/default/configmaps/a"), 403)
        self.assertEqual(code(issue({"audiences": ["vault"]})), 401)
        head, claims, signature = plain.split(".")
        self.assertEqual(code(f"{head}.{claims}.{signature[:-4]}AAAA"), 401)
        self.assertEqual(code(f"{head}.{claims}."), 401)
        review = client.send("POST", f"{REVIEW}/selfsubjectreviews", {}, token=plain)[1]["status"]["userInfo"]
        self.assertEqual(review["username"], "system:serviceaccount:shop:clerk")
        self.assertEqual(review["groups"], ["system:serviceaccounts", "system:serviceaccounts:shop", "system:authenticated"])
        self.assertTrue(review["extra"]["authentication.kubernetes.io/credential-id"][0].startswith("JTI="))
        answer = client.send("POST", f"{REVIEW}/tokenreviews", {"spec": {"token": issue({"audiences": ["vault", "x"]}),
                                                                         "audiences": ["vault"]}})[1]
        self.assertEqual((answer["status"]["authenticated"], answer["status"]["audiences"]), (True, ["vault"]))
        bound = issue({"boundObjectRef": {"kind": "Secret", "apiVersion": "v1", "name": "bound"}})
        self.assertEqual(code(bound), 200)
        client.send("DELETE", "/api/v1/namespaces/shop/secrets/bound")
        self.await_code(lambda: code(bound), 401)
        self.assertEqual(code(plain), 200)
        self.assertEqual(client.send("POST", accounts, {"metadata": {"name": "leaver"}})[0], 201)
        leaver = issue({}, "leaver")
        self.await_code(lambda: code(leaver), 403)
        client.send("DELETE", f"{accounts}/leaver")
        self.await_code(lambda: code(leaver), 401)

    def await_code(self, ask, expected):
        end = time.monotonic() + WAIT_SECONDS
        while ask() != expected and time.monotonic() < end:
            time.sleep(0.1)
        self.assertEqual(ask(), expected)


def certificate_request(subject_text):
    made = subprocess.run(["openssl", "req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                           "-keyout", "/dev/null", "-subj", subject_text], check=True, capture_output=True)
    return base64.b64encode(made.stdout).decode()


def decode(part):
    return json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))


def token_shape(answer):
    """Everything about an issued token that does not differ from one to the next."""
    code, body = answer
    if code != 201:
        return code, body
    head, claims = [decode(part) for part in body["status"]["token"].split(".")[:2]]
    times = [claims.pop(name) for name in ("exp", "iat", "nbf")]
    claims["jti"] = len(claims["jti"])
    for ref in claims["kubernetes.io"].values():
        if isinstance(ref, dict):
            ref["uid"] = len(ref["uid"])
    for name in ("creationTimestamp", "uid", "managedFields"):
        body["metadata"].pop(name, None)
    body["status"] = sorted(body["status"])
    return code, body, head, claims, times[0] - times[1], times[1] == times[2]


def without_times(answer):
    code, body = answer
    if isinstance(body, dict) and isinstance(body.get("metadata"), dict):
        body["metadata"].pop("creationTimestamp", None)
        body["metadata"].pop("managedFields", None)
    return code, body


def without_binding(answer):
    """Of several bindings that allow something, a kube-apiserver names any one."""
    code, body = answer
    status = body["status"]
    status["reason"] = re.sub(r"^RBAC: allowed by .*", "RBAC: allowed", status.get("reason", ""))
    return code, body


def sorted_rules(answer):
    code, body = answer
    for rules in ("resourceRules", "nonResourceRules"):
        if code == 201:
            body["status"][rules].sort(key=json.dumps)
    return code, body


def status_of(answer):
    code, body = answer
    return (code, body) if code >= 400 else (code, None)


def refusal_of(path):
    """Vigil has fewer paths, and other contents of some: only refusals are compared there."""
    def what(answer):
        code, body = refusal(answer)
        if path in ("/", "/metrics", "/nothing", "/version") or "nothing.example.com" in path or "/log" in path:
            return (code, body) if code in (401, 403) else ("not refused", None)
        return code, body
    return what


if __name__ == "__main__":
    unittest.main()
