#!/usr/bin/python3
"""Webhooks made with Go's net/http (tests/kube/gowebhook) that misbehave, called by a real kube-apiserver and by Vigil, over HTTP/2
and over HTTP/1.1: the answers, their warnings and how often each webhook is called must be the same, of admission webhooks and of
converters. same_webhooks_test.py and same_conversion_test.py have far more cases, with a webhook server in Python. tools/build-kube
builds the real kube-apiserver."""
import base64
import itertools
import json
import os
import pathlib
import re
import ssl
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/live"))
sys.path.insert(0, str(ROOT / "tests/kube"))
from certs import Authority  # noqa: E402
from conversions import CRDS, definition, gate, path  # noqa: E402
from same_writes_test import CMS, MERGE, Client  # noqa: E402
from side_by_side import SideBySide  # noqa: E402

GROUP = "/apis/admissionregistration.k8s.io/v1"
KINDS, POLICIES, PROTOCOLS = ("mutating", "validating"), ("Fail", "Ignore"), ("HTTP/2.0", "HTTP/1.1")
BEHAVIOURS = ("allow", "deny", "patch", "warn", "wrong-uid", "wrong-type", "no-review", "no-response", "bad-json", "empty", "panic",
              "abort", "short", "busy", "error", "slow", "call-back", "missing")
REMOVALS = ("remove-allow", "remove-deny")
# Certificates besides the good one, and how they are made.
CERTIFICATES = {"expired": {"days": -1}, "misnamed": {"names": "DNS:other.test"}, "untrusted": {}}
CONVERTERS = ("bad-json", "empty", "panic", "abort", "short", "error", "missing")
# Where the two differ on purpose: Vigil follows no redirect, and a kube-apiserver reads a body without an end until its time is over.
OWN = ("redirect", "huge")
# What belongs to one server, or to the connection that happened to be used.
OWN_TEXTS = ((re.compile(r"(127\.0\.0\.1:)\d+"), r"\1PORT"), (re.compile(r"stream ID \d+"), "stream ID N"), (re.compile(
    r"2\d{3}-\d\d-\d\dT[\d:]+Z"), "TIME"), (re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"), "UID"), (re.compile(
        r'("resourceVersion": )"\d+"'), r'\1"VERSION"'))
READY_SECONDS = 60


class Hooks:
    """The program, which listens for each protocol, and with each certificate, at a port of its own."""

    def __init__(self, program, client, identities):
        files = [file for identity in identities.values() for file in (identity.cert, identity.key)]
        self.process = subprocess.Popen([program, client.url, "the-token", *files], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, text=True)
        self.ports = {row: int(self.process.stdout.readline()) for row in itertools.product(identities, PROTOCOLS)}

    def client_config(self, path, bundle, protocol, certificate="good"):
        return {"url": f"https://127.0.0.1:{self.ports[certificate, protocol]}{path}", "caBundle": bundle}

    def calls(self, path):
        """Protocols and paths of the calls at the path."""
        url = f"https://127.0.0.1:{self.ports['good', 'HTTP/1.1']}/calls"
        with urllib.request.urlopen(url, timeout=60, context=ssl._create_unverified_context()) as answer:
            return [line for line in answer.read().decode().split("\n") if line.endswith(" " + path)]

    def stop(self):
        self.process.communicate()


class Case:
    def __init__(self, behaviour, kind, policy, protocol):
        self.behaviour, self.kind, self.policy, self.protocol = behaviour, kind, policy, protocol
        self.name = f"{behaviour}-{kind}-{policy}-{protocol[5]}".lower()
        self.certificate = behaviour if behaviour in CERTIFICATES else "good"
        self.path = f"/{behaviour if self.certificate == 'good' else 'allow'}/{self.name}"

    def configuration(self, hooks, bundle):
        return {"metadata": {"name": self.name}, "webhooks": [{
            "name": f"{self.name}.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"], "failurePolicy": self.policy,
            "timeoutSeconds": 1 if self.behaviour == "slow" else 30, "objectSelector": {"matchLabels": {"case": self.name}},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["CREATE"]}],
            "clientConfig": hooks.client_config(self.path, bundle, self.protocol, self.certificate)}]}

    @property
    def request(self):
        return "POST", CMS, {"metadata": {"name": self.name, "labels": {"case": self.name}}, "data": {"a": "b"}}


def cases(behaviours):
    return [Case(*row) for row in itertools.product(behaviours, KINDS, POLICIES, PROTOCOLS)]


def normal(value):
    text = json.dumps(value, sort_keys=True)
    for pattern, to in OWN_TEXTS:
        text = pattern.sub(to, text)
    return json.loads(text)


class SameGoWebhooks(SideBySide):
    client = Client
    flags = (*SideBySide.flags, "--kube-managed-fields=all")

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.files = tempfile.TemporaryDirectory()
        program = pathlib.Path(cls.files.name, "gowebhook")
        subprocess.run(["go", "build", "-trimpath", "-ldflags=-s -w", "-o", str(program), "."], cwd=ROOT / "tests/kube/gowebhook",
                       check=True, env=dict(os.environ, CGO_ENABLED="0", PATH=os.environ["PATH"] + ":/usr/local/go/bin"))
        authority, other = Authority(cls.files.name), Authority(pathlib.Path(cls.files.name, "untrusted"), "other")
        identities = {"good": authority.sign("webhook"), **{
            name: (other if name == "untrusted" else authority).sign(name, **how) for name, how in CERTIFICATES.items()}}
        cls.sides = [(client, Hooks(program, client, identities)) for client in (cls.theirs, cls.ours)]
        cls.bundle = base64.b64encode(pathlib.Path(authority.cert).read_bytes()).decode()
        cls.prepare()

    @classmethod
    def prepare(cls):
        """Creates all webhooks. Those that come last refuse, which shows that those before them apply as well."""
        for case in cases([*BEHAVIOURS, *CERTIFICATES, *REMOVALS, *OWN, "deny-last"]):
            for client, hooks in cls.sides:
                code, answer = client.send("POST", f"{GROUP}/{case.kind}webhookconfigurations", case.configuration(hooks, cls.bundle))
                assert code == 201, answer
        end = time.monotonic() + READY_SECONDS
        for (client, _), kind in itertools.product(cls.sides, KINDS):
            _, path, body = Case("deny-last", kind, "Fail", PROTOCOLS[-1]).request
            while client.send("POST", path + "?dryRun=All", body)[0] == 201:
                assert time.monotonic() < end, "the webhooks do not apply"
                time.sleep(0.05)

    @classmethod
    def tearDownClass(cls):
        for _, hooks in cls.sides:
            hooks.stop()
        super().tearDownClass()
        cls.files.cleanup()

    def sent(self, case, client, hooks):
        code, answer = client.send(*case.request)
        return normal([code, answer, client.warnings, hooks.calls(case.path)])

    def test_answers(self):
        for case in cases(BEHAVIOURS):
            theirs, ours = (self.sent(case, *side) for side in self.sides)
            with self.subTest(case=case.name):
                if case.behaviour != "missing":
                    self.assertEqual(set(theirs[3]), {f"{case.protocol} {case.path}"})
                if case.behaviour == "call-back":
                    self.assertEqual(theirs[2], ['299 - "200 201 201"'])
                if case.behaviour == "short" and case.policy == "Fail" and case.protocol == "HTTP/2.0":
                    # Vigil takes it for what it is, and Go for an end.
                    self.assertTrue(theirs[1]["message"].endswith("Original error: unexpected EOF"), theirs)
                    self.expect_failure(case, ours, "unexpected error when reading response body. Please retry. Original error: the "
                                        "server violated HTTP/2: PROTOCOL_ERROR")
                    continue
                self.assertEqual(ours, theirs)

    def test_certificates(self):
        for case in cases(CERTIFICATES):
            theirs, ours = (self.sent(case, *side) for side in self.sides)
            with self.subTest(case=case.name):
                self.assertEqual(theirs[3], [])
                self.assertEqual(theirs[0], 201 if case.policy == "Ignore" else 500)
                self.assertEqual(ours, theirs)

    def test_webhooks_remove_their_own_configurations(self):
        for case in cases(REMOVALS):
            theirs, ours = (self.sent(case, *side) for side in self.sides)
            with self.subTest(case=case.name):
                self.assertEqual(theirs[2:], [['299 - "removed: 200"'], [f"{case.protocol} {case.path}"]])
                self.assertEqual(ours, theirs)
                for client, _ in self.sides:
                    self.assertEqual(client.send("GET", f"{GROUP}/{case.kind}webhookconfigurations/{case.name}")[0], 404)

    def test_converters(self):
        """Of custom resources, without HTTP/2, which is as with admission webhooks."""
        for number, (behaviour, certificate) in enumerate([*itertools.product(CONVERTERS, ["good"]), *(
                ("empty", name) for name in CERTIFICATES)]):
            plural, kind = f"gates{number}", f"Gate{number}"
            for client, hooks in self.sides:
                config = hooks.client_config(f"/{behaviour}/{plural}", self.bundle, "HTTP/1.1", certificate)
                self.assertEqual(client.send("POST", CRDS, definition(config, plural, kind))[0], 201)
            self.wait_for(f"/apis/example.com/v2/{plural}")
            for case in (("POST", path("v1", plural=plural), gate("a", kind=kind)), ("GET", path("v2", "a", plural=plural)),
                         ("PATCH", path("v2", "a", plural=plural), {"spec": {"host": "x"}}, MERGE),
                         ("POST", path("v2", plural=plural), gate("b", "v2", kind)), ("GET", path("v1", "a", plural=plural))):
                theirs, ours = (normal(client.send(*case)) for client, _ in self.sides)
                with self.subTest(behaviour=behaviour, certificate=certificate, method=case[0], path=case[1]):
                    self.assertEqual(theirs[0], 201 if case[0] == "POST" and "/v1/" in case[1] else 200 if "/v1/" in case[1] else 500)
                    self.assertEqual(ours, theirs)

    def expect_failure(self, case, sent, text):
        """Of Vigil, after one call."""
        code, answer, _, calls = sent
        self.assertEqual(calls, [f"{case.protocol} {case.path}"])
        self.assertEqual(code, 201 if case.policy == "Ignore" else 500, answer)
        if case.policy == "Fail":
            self.assertEqual(answer["message"], f'Internal error occurred: failed calling webhook "{case.name}.example.com": failed to '
                             f"call webhook: {text}")

    def test_redirects(self):
        """A kube-apiserver follows them, and Vigil says where they lead."""
        for case in cases(["redirect"]):
            theirs, ours = (self.sent(case, *side) for side in self.sides)
            with self.subTest(case=case.name):
                self.assertEqual(theirs[0], 201)
                self.expect_failure(case, ours, 'the server answered with the code 307 and a redirect to "/allow/redirected", which is '
                                    "not followed")

    def test_endless_answers(self):
        """Of Vigil alone, which ends them at 8 MiB."""
        for case in cases(["huge"]):
            ours = self.sent(case, *self.sides[1])
            with self.subTest(case=case.name):
                self.expect_failure(case, ours, "unexpected error when reading response body. Please retry. Original error: the answer "
                                    "is longer than 8388608 bytes")


if __name__ == "__main__":
    unittest.main()
