#!/usr/bin/python3
"""The watch tier's questions to a real kube-apiserver: who a client is, and what it may read. For the same users and requests
the verdicts and refusals must be those that the kube-apiserver gives itself. tools/build-kube builds the real kube-apiserver."""
import json
import os
import pathlib
import sys
import tempfile
import time
import unittest
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
sys.path.insert(0, str(ROOT / "tests/live"))
sys.path.insert(0, str(ROOT / "tests/kube"))
from apiserver_test import Apiserver, READY_SECONDS  # noqa: E402
from certs import Authority, openssl  # noqa: E402
from oracle import Program  # noqa: E402
from same_access_test import Client, RBAC, binding, rule, subject, user  # noqa: E402
from server import Server  # noqa: E402

PROGRAM = pathlib.Path(os.environ.get("VIGIL_BIN", ROOT / "build-test/vigil")).parent / "unit/tier_rights"
WAIT_SECONDS = 30
ACCOUNTS = "/api/v1/namespaces/shop/serviceaccounts"
NODE = "system:node:one"
USERS = {  # name: groups
    "admin": ["system:masters"], "tier": [], "weak": [], "jane": [], "dev": ["developers"], "reader": [], "lister": [], "namer": [],
    "suber": [], "wild": [], "broken": [], NODE: ["system:nodes"], "<html>&\u00fc": [],
}
SETUP = [
    ("/api/v1/namespaces", {"metadata": {"name": "shop"}}),
    (ACCOUNTS, {"metadata": {"name": "clerk"}}),
    ("/api/v1/namespaces/shop/configmaps", {"metadata": {"name": "a"}}),
    (f"{RBAC}/clusterrolebindings", binding("tier", "system:auth-delegator", user("tier"))),
    (f"{RBAC}/clusterroles", {"metadata": {"name": "reads"}, "rules": [
        rule(["get", "list", "watch"], [""], ["configmaps", "pods", "namespaces"])]}),
    (f"{RBAC}/clusterroles", {"metadata": {"name": "names"}, "rules": [
        rule(["get", "list", "watch"], [""], ["configmaps", "namespaces"], ["a", "shop"])]}),
    (f"{RBAC}/clusterroles", {"metadata": {"name": "subs"}, "rules": [
        rule(["get"], ["*"], ["*/scale"]), rule(["get"], [""], ["pods/log"])]}),
    (f"{RBAC}/clusterroles", {"metadata": {"name": "all"}, "rules": [rule(["*"], ["*"], ["*"])]}),
    (f"{RBAC}/clusterrolebindings", binding("readers", "reads", user("reader"))),
    (f"{RBAC}/clusterrolebindings", binding("wilds", "all", user("wild"))),
    (f"{RBAC}/clusterrolebindings", binding("broken", "missing", user("broken"))),
    (f"{RBAC}/namespaces/shop/roles", {"metadata": {"name": "lists"}, "rules": [rule(["list"], [""], ["configmaps"])]}),
    (f"{RBAC}/namespaces/shop/rolebindings", binding("listers", "lists", user("lister"), kind="Role")),
    (f"{RBAC}/namespaces/shop/rolebindings", binding("namers", "names", user("namer"))),
    (f"{RBAC}/namespaces/shop/rolebindings", binding("subers", "subs", user("suber"))),
    (f"{RBAC}/namespaces/shop/rolebindings", binding("developers", "reads", subject("Group", "developers"))),
    (f"{RBAC}/namespaces/shop/rolebindings", binding("clerks", "reads", subject("ServiceAccount", "clerk", "shop"))),
    (f"{RBAC}/namespaces/shop/rolebindings", binding("broken", "missing", user("broken"), kind="Role")),
]
SELECTORS = [
    "", "fieldSelector=metadata.name%3Da", "fieldSelector=metadata.name%3D%3Da,metadata.namespace%3Dshop",
    "fieldSelector=metadata.name!%3Da",
    "fieldSelector=metadata.name%3Da%2Fb", "fieldSelector=metadata.name%3Da&labelSelector=x+in+(a,b),!y", "labelSelector=x%3E1,y%3C2",
    "labelSelector=!!", "fieldSelector=metadata.name", "fieldSelector=%3D", "fieldSelector=!%3Db", "labelSelector=x+notin+(),y",
    "fieldSelector=metadata.name%3Da&fieldSelector=metadata.name%3Db",
    "fieldSelector=spec.nodeName%3Done", "fieldSelector=spec.nodeName%3Dtwo", "fieldSelector=spec.nodeName%3Done,status.phase!%3DFailed",
    "fieldSelector=spec.nodeName!%3Done",
]
READS = ["/api/v1/namespaces/shop/configmaps", "/api/v1/configmaps", "/api/v1/namespaces", "/api/v1/nodes", "/apis/apps/v1/deployments",
         "/apis/nothing.example.com/v1/namespaces/shop/things"]
NAMED = ["/api/v1/namespaces/shop/configmaps/a", "/api/v1/namespaces/shop/configmaps/b", "/api/v1/namespaces/default/configmaps/a",
         "/api/v1/namespaces/shop", "/api/v1/namespaces/other", "/api/v1/nodes/one", "/api/v1/nodes/two",
         "/apis/apps/v1/namespaces/shop/deployments/x/scale", "/api/v1/namespaces/shop/pods/x/log", "/api/v1/namespaces/shop/secrets/x",
         "/api/v1/namespaces/shop/pods/x/%3Cb%3E"]


def token_of(name):
    return "token-" + "".join(c if c.isalnum() and c.isascii() else "-" for c in name)


def access_of(path):
    """What a read wants, as kube-apiserver sees it."""
    path, _, query = path.partition("?")
    fields = urllib.parse.parse_qs(query, encoding="latin-1", keep_blank_values=True)
    parts = [urllib.parse.unquote(part) for part in path.strip("/").split("/")]
    group = parts.pop(0) if parts.pop(0) == "apis" else ""
    version, *parts = parts
    namespace = parts[1] if parts[0] == "namespaces" and len(parts) > 1 else ""
    if len(parts) > 2 and namespace:
        parts = parts[2:]
    resource, name, subresource = (parts + ["", ""])[:3]
    verb = "get" if name else "watch" if fields.get("watch") else "list"
    texts = [verb, group, version, resource, subresource, namespace, name]
    texts += [fields.get(key, [""])[0] for key in ("labelSelector", "fieldSelector")]
    return b"".join(text.encode("latin-1") + b"\0" for text in texts)


class TierRights(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(scratch.cleanup)
        cls.root = pathlib.Path(scratch.name)
        tokens = cls.root / "users.csv"
        tokens.write_text("".join(f'{token_of(name)},{name},uid-{token_of(name)}' + (f',"{",".join(groups)}"' if groups else "") + "\n"
                                  for name, groups in USERS.items()))
        cls.backend = Server(str(cls.root / "backend"))
        cls.backend.start()
        cls.addClassCleanup(cls.backend.stop)
        cls.authority = Authority(cls.root / "ca")
        serving = cls.authority.sign("serving")
        cls.apiserver = Apiserver(cls.root, cls.backend.url, (
            f"--token-auth-file={tokens}", f"--client-ca-file={cls.authority.cert}", "--authorization-mode=Node,RBAC",
            f"--tls-cert-file={serving.cert}", f"--tls-private-key-file={serving.key}"))
        cls.addClassCleanup(cls.apiserver.stop)
        cls.client = Client(f"127.0.0.1:{cls.apiserver.port}", token_of("admin"))
        cls.addClassCleanup(cls.client.close)
        cls.wait_for(lambda: cls.client.send("GET", f"{RBAC}/clusterroles/system:auth-delegator")[0] == 200, READY_SECONDS)
        for path, body in SETUP:
            code, answer = cls.client.send("POST", path, body)
            if code not in (201, 409):
                raise AssertionError(f"{path}: {code} {answer}")
        cls.wait_for(lambda: cls.client.send("GET", "/api/v1/namespaces/shop/configmaps", token=token_of("dev"))[0] == 200)

    @classmethod
    def wait_for(cls, reached, seconds=WAIT_SECONDS):
        end = time.monotonic() + seconds
        while True:
            try:
                if reached():
                    return
            except OSError:
                pass
            if time.monotonic() > end:
                raise AssertionError("it did not happen in time")
            time.sleep(0.05)

    def kubeconfig(self, account):
        config = self.root / f"{self.id()}.kubeconfig"
        config.write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{"name": "c", "cluster": {"server": f"https://127.0.0.1:{self.apiserver.port}",
                                                   "certificate-authority": self.authority.cert}}],
            "users": [{"name": "u", "user": account}], "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}]}))
        return str(config)

    def open(self, account=None):
        program = Program(str(PROGRAM))
        self.addCleanup(self.close, program)
        program.ask("o", self.kubeconfig(account or {"token": token_of("tier")}).encode())
        return program

    @staticmethod
    def close(program):
        program.process.stdin.close()
        code = program.process.wait(30)
        program.process.stdout.close()
        if code:
            raise AssertionError(f"the program ended with {code}")

    def may(self, program, login, path):
        return json.loads(program.ask("m", login, access_of(path))[1])

    def compare(self, program, login, path, **more):
        """True: it is allowed."""
        code, body = self.client.send("GET", path, **more)
        told = self.may(program, login, path)
        with self.subTest(login=login, path=path):
            if code in (401, 403):
                self.assertEqual(told["status"], body)
                self.assertEqual(told["verdict"], "denied" if code == 403 else "unknown")
            else:
                self.assertEqual(told["verdict"], "allowed", (code, body, told))
        return code not in (401, 403)

    def test_verdicts_are_those_of_the_server(self):
        program = self.open()
        paths = NAMED + [f"{path}?{selector}" for path in READS for selector in SELECTORS]
        paths += [f"/api/v1/pods?{selector}" for selector in SELECTORS]
        paths += [f"/api/v1/namespaces/shop/configmaps?watch=1&timeoutSeconds=1&{selector}" for selector in SELECTORS[1:5]]
        allowed = 0
        for name in USERS:
            for path in paths:
                if "watch=1" in path and name not in ("reader", "namer"):
                    continue
                allowed += self.compare(program, f"Bearer {token_of(name)}".encode(), path, token=token_of(name))
        self.assertGreater(allowed, 300)
        # The Node authorizer decides by selectors.
        verdicts = [self.may(program, f"Bearer {token_of(NODE)}".encode(), f"/api/v1/pods?{selector}")["verdict"] for selector in (
            "fieldSelector=spec.nodeName%3Done", "fieldSelector=spec.nodeName%3Dtwo", "")]
        self.assertEqual(verdicts, ["allowed", "denied", "denied"])

    def test_tokens_are_those_of_the_server(self):
        program = self.open()
        path = "/api/v1/namespaces/shop/configmaps"
        self.compare(program, b"Bearer wrong", path, token="wrong")
        self.compare(program, b"Bearer " + b"x" * 5000, path, token="x" * 5000)
        anonymous = Client(f"127.0.0.1:{self.apiserver.port}")
        self.addCleanup(anonymous.close)
        self.assertEqual(self.may(program, b"", path)["status"], anonymous.send("GET", path)[1])
        code, made = self.client.send("POST", f"{ACCOUNTS}/clerk/token", {"spec": {"expirationSeconds": 600}})
        self.assertEqual(code, 201)
        token = made["status"]["token"]
        self.compare(program, f"Bearer {token}".encode(), path, token=token)
        self.compare(program, f"Bearer {token}".encode(), "/api/v1/nodes", token=token)
        mine = self.client.send("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", {}, token=token)[1]["status"]["userInfo"]
        told = self.may(program, f"Bearer {token}".encode(), path)["user"]
        self.assertEqual(told, {"name": mine["username"], "uid": mine["uid"], "groups": mine["groups"], "extra": mine["extra"]})

    def test_certificates_are_those_of_the_server(self):
        program = self.open()
        for name, groups in (("dev", ["developers"]), ("two", ["one", "two"]), ("root", ["system:masters"]), (NODE, ["system:nodes"])):
            identity = self.authority.sign(token_of(name), cn=name, groups=groups)
            client = Client(f"127.0.0.1:{self.apiserver.port}", cert=identity)
            self.addCleanup(client.close)
            fingerprint = openssl("x509", "-in", identity.cert, "-noout", "-fingerprint", "-sha256").strip().split("=")[1]
            digest = fingerprint.replace(":", "").lower()
            login = "\0".join(["certificate", f"X509SHA256={digest}", name, *groups, ""]).encode()
            for path in [*READS, *NAMED]:
                code, body = client.send("GET", path)
                told = self.may(program, login, path)
                with self.subTest(name=name, path=path):
                    self.assertEqual(told["verdict"], "denied" if code == 403 else "allowed")
                    if code == 403:
                        self.assertEqual(told["status"], body)
            mine = client.send("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", {})[1]["status"]["userInfo"]
            self.assertEqual(told["user"], {"name": mine["username"], "uid": "", "groups": mine["groups"], "extra": mine["extra"]})

    def test_the_account_may_have_a_certificate(self):
        identity = self.authority.sign("tier")
        program = self.open({"client-certificate": identity.cert, "client-key": identity.key})
        self.compare(program, f"Bearer {token_of('dev')}".encode(), "/api/v1/namespaces/shop/configmaps", token=token_of("dev"))

    def plugin(self, name, credential):
        """A program that prints what the file beside it contains."""
        script, status = self.root / name, self.root / f"{name}.json"
        script.write_text(f"#!/bin/sh\necho run >> {script}.log\ncat {status}\n")
        script.chmod(0o755)
        status.write_text(json.dumps({"kind": "ExecCredential", "apiVersion": "client.authentication.k8s.io/v1", "status": credential}))
        return {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": str(script), "interactiveMode": "Never"}}

    def test_the_account_may_have_a_plugin(self):
        path = "/api/v1/namespaces/shop/configmaps"
        identity = self.authority.sign("plugin", cn="tier")
        pem = {"clientCertificateData": pathlib.Path(identity.cert).read_text(), "clientKeyData": pathlib.Path(identity.key).read_text()}
        program = self.open(self.plugin("certifies", pem))
        self.compare(program, f"Bearer {token_of('dev')}".encode(), path, token=token_of("dev"))
        program = self.open(self.plugin("identifies", {"token": "old"}))
        told = self.may(program, f"Bearer {token_of('dev')}".encode(), path)
        self.assertEqual((told["verdict"], told["status"]["code"]), ("unknown", 500))
        runs = (self.root / "identifies.log").read_text().count("run")
        # The next 401 makes it run again, and the call is repeated.
        self.plugin("identifies", {"token": token_of("tier")})
        self.compare(program, f"Bearer {token_of('dev')}".encode(), path, token=token_of("dev"))
        self.assertGreater((self.root / "identifies.log").read_text().count("run"), runs)

    def test_an_account_without_rights_learns_what_it_needs(self):
        program = self.open({"token": token_of("weak")})
        told = self.may(program, f"Bearer {token_of('dev')}".encode(), "/api/v1/namespaces/shop/configmaps")
        self.assertEqual((told["verdict"], told["status"]["code"]), ("unknown", 500))
        self.assertIn("bind the ClusterRole system:auth-delegator to its account", told["status"]["message"])
        told = self.may(program, b"certificate\0id\0dev\0developers\0", "/api/v1/namespaces/shop/configmaps")
        self.assertEqual((told["verdict"], told["status"]["code"]), ("unknown", 500))
        self.assertIn("may not create SubjectAccessReviews", told["status"]["message"])
        program = self.open({"token": "wrong"})
        told = self.may(program, f"Bearer {token_of('dev')}".encode(), "/api/v1/namespaces/shop/configmaps")
        self.assertEqual((told["verdict"], told["status"]["code"]), ("unknown", 500))

    def lost(self, program, ms):
        return json.loads(program.ask("r", str(ms).encode())[1])

    def test_watches_end_with_their_rights(self):
        program = self.open()
        path = f"{RBAC}/namespaces/shop/rolebindings"
        watch = access_of("/api/v1/namespaces/shop/secrets?watch=1")
        self.client.send("POST", f"{RBAC}/namespaces/shop/roles", {"metadata": {"name": "temporary"}, "rules": [
            rule(["watch"], [""], ["secrets"])]})
        self.assertEqual(self.client.send("POST", path, binding("temporary", "temporary", user("jane"), kind="Role"))[0], 201)
        login = f"Bearer {token_of('jane')}".encode()
        self.wait_for(lambda: self.may(program, login, "/api/v1/namespaces/shop/secrets?watch=1")["verdict"] == "allowed")
        program.ask("w", login, watch)
        program.ask("w", f"Bearer {token_of('wild')}".encode(), watch)
        self.assertEqual(self.lost(program, 5000), [])
        self.assertEqual(self.client.send("DELETE", f"{path}/temporary")[0], 200)
        program.ask("c")
        lost = []
        self.wait_for(lambda: lost.extend(self.lost(program, 100)) or lost)
        self.assertEqual([(one["watch"], one["verdict"], one["status"]["code"]) for one in lost], [(0, "denied", 403)])
        self.assertIn('User "jane" cannot watch resource "secrets"', lost[0]["status"]["message"])
        self.assertEqual(self.lost(program, 3000), [])

    def test_watches_end_with_their_token(self):
        program = self.open()
        self.assertEqual(self.client.send("POST", ACCOUNTS, {"metadata": {"name": "leaver"}})[0], 201)
        code, made = self.client.send("POST", f"{ACCOUNTS}/leaver/token", {})
        self.assertEqual(code, 201)
        self.client.send("POST", f"{RBAC}/clusterrolebindings", binding("leavers", "all", subject("ServiceAccount", "leaver", "shop")))
        login = f"Bearer {made['status']['token']}".encode()
        self.wait_for(lambda: self.may(program, login, "/api/v1/pods?watch=1")["verdict"] == "allowed")
        program.ask("w", login, access_of("/api/v1/pods?watch=1"))
        self.assertEqual(self.lost(program, 3000), [])
        self.assertEqual(self.client.send("DELETE", f"{ACCOUNTS}/leaver")[0], 200)
        lost = []
        self.wait_for(lambda: lost.extend(self.lost(program, 100)) or lost, 60)  # the server keeps answers about tokens for 10 s
        self.assertEqual([(one["verdict"], one["status"]["code"]) for one in lost], [("denied", 401)])


if __name__ == "__main__":
    unittest.main()
