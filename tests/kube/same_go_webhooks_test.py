#!/usr/bin/python3
"""Webhooks made with Go's net/http (tests/kube/gowebhook) that misbehave, called by a real kube-apiserver and by Vigil, over HTTP/2
and over HTTP/1.1: the answers, their warnings and how often each webhook is called must be the same. same_webhooks_test.py has far
more cases, with a webhook server in Python. tools/build-kube builds the real kube-apiserver."""
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
from same_writes_test import CMS, Client  # noqa: E402
from side_by_side import SideBySide  # noqa: E402

GROUP = "/apis/admissionregistration.k8s.io/v1"
KINDS, POLICIES, PROTOCOLS = ("mutating", "validating"), ("Fail", "Ignore"), ("HTTP/2.0", "HTTP/1.1")
BEHAVIOURS = ("allow", "deny", "patch", "warn", "wrong-uid", "wrong-type", "no-review", "no-response", "bad-json", "empty", "panic",
              "abort", "short", "busy", "error", "slow", "missing")
# Where the two differ on purpose: Vigil follows no redirect, and a kube-apiserver reads a body without an end until its time is over.
OWN = ("redirect", "huge")
# What belongs to one server, or to the connection that happened to be used.
OWN_TEXTS = ((re.compile(r"(127\.0\.0\.1:)\d+"), r"\1PORT"), (re.compile(r"stream ID \d+"), "stream ID N"), (re.compile(
    r"2\d{3}-\d\d-\d\dT[\d:]+Z"), "TIME"), (re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"), "UID"), (re.compile(
        r'("resourceVersion": )"\d+"'), r'\1"VERSION"'))
READY_SECONDS = 60


class Hooks:
    """The program, which listens for each protocol at a port of its own."""

    def __init__(self, program, identity):
        self.process = subprocess.Popen([program, identity.cert, identity.key], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, text=True)
        self.ports = {protocol: int(self.process.stdout.readline()) for protocol in PROTOCOLS}

    def calls(self, path):
        """Protocols and paths of the calls at the path."""
        url = f"https://127.0.0.1:{self.ports['HTTP/1.1']}/calls"
        with urllib.request.urlopen(url, timeout=60, context=ssl._create_unverified_context()) as answer:
            return [line for line in answer.read().decode().split("\n") if line.endswith(" " + path)]

    def stop(self):
        self.process.communicate()


class Case:
    def __init__(self, behaviour, kind, policy, protocol):
        self.behaviour, self.kind, self.policy, self.protocol = behaviour, kind, policy, protocol
        self.name = f"{behaviour}-{kind}-{policy}-{protocol[5]}".lower()
        self.path = f"/{behaviour}/{self.name}"

    def configuration(self, hooks, bundle):
        return {"metadata": {"name": self.name}, "webhooks": [{
            "name": f"{self.name}.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"], "failurePolicy": self.policy,
            "timeoutSeconds": 1 if self.behaviour == "slow" else 30, "objectSelector": {"matchLabels": {"case": self.name}},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["CREATE"]}],
            "clientConfig": {"url": f"https://127.0.0.1:{hooks.ports[self.protocol]}{self.path}", "caBundle": bundle}}]}

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
        authority = Authority(cls.files.name)
        identity = authority.sign("webhook")
        cls.sides = [(client, Hooks(program, identity)) for client in (cls.theirs, cls.ours)]
        cls.prepare(base64.b64encode(pathlib.Path(authority.cert).read_bytes()).decode())

    @classmethod
    def prepare(cls, bundle):
        """Creates all webhooks. Those that come last refuse, which shows that those before them apply as well."""
        for case in cases([*BEHAVIOURS, *OWN, "deny-last"]):
            for client, hooks in cls.sides:
                code, answer = client.send("POST", f"{GROUP}/{case.kind}webhookconfigurations", case.configuration(hooks, bundle))
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
                if case.behaviour == "short" and case.policy == "Fail" and case.protocol == "HTTP/2.0":
                    # Vigil takes it for what it is, and Go for an end.
                    self.assertTrue(theirs[1]["message"].endswith("Original error: unexpected EOF"), theirs)
                    self.expect_failure(case, ours, "unexpected error when reading response body. Please retry. Original error: the "
                                        "server violated HTTP/2: PROTOCOL_ERROR")
                    continue
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
