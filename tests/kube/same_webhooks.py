#!/usr/bin/python3
"""Admission webhooks of a real kube-apiserver and of Vigil: a table of webhooks, what they answer, and the requests that they
concern (webhook_cases.py). Answers, warnings and all that the webhooks have received are compared as a whole.
tools/build-kube builds the real kube-apiserver."""
import json
import os
import pathlib
import re
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/live"))
sys.path.insert(0, str(ROOT / "tests/kube"))
import webhook_cases as cases  # noqa: E402
import webhooks  # noqa: E402
from apiserver_test import Apiserver  # noqa: E402
from certs import Authority  # noqa: E402
from same_writes_test import MERGE, Client  # noqa: E402
from server import Server, free_port  # noqa: E402
from side_by_side import SideBySide  # noqa: E402
from webhook_cases import CMS, GROUP, NAMESPACES, PLURALS, config, one  # noqa: E402

TIME = re.compile(r'"2\d{3}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"')
UID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
VERSION = re.compile(r'("(?:resourceVersion|resource_version)": )"\d+"')
ADDRESS = re.compile(r"(127\.0\.0\.1|localhost|\.svc):\d+")
RANDOM = re.compile(r"generated-[a-z0-9]{5}")
READY_SECONDS = 60
SETTLE_SECONDS = 1
TOKENS = 'the-token,admin,admin-uid,"system:masters,others"\n'
# Fields of requests whose values belong to the server: what a connection says about itself.
OWN_FIELDS = ("host", "content-length", "traceparent", "accept-encoding")
SKIPPED = set(filter(None, os.environ.get("VIGIL_WEBHOOK_SKIP", "").split(",")))
ONLY = os.environ.get("VIGIL_WEBHOOK_CASES", "")  # begins the names of the cases to run


def normal(value):
    text = json.dumps(value, sort_keys=True)
    for pattern, to in ((TIME, '"TIME"'), (UID, "UID"), (VERSION, r'\1"VERSION"'), (ADDRESS, r"\1:PORT"), (RANDOM, "generated-RANDOM")):
        text = pattern.sub(to, text)
    return json.loads(text)


def received(call):
    """What counts of a call."""
    headers = {name: value for name, value in call.headers.items() if name not in OWN_FIELDS}
    return normal([call.method, call.path, call.query, headers, call.review])


def shown(sent, warnings):
    return normal([*sent, warnings])


class Side:
    """A server, its client, and the webhooks that it calls."""

    def __init__(self, client, hooks, others):
        self.client, self.hooks = client, hooks
        hooks.others = others

    def send(self, *case):
        sent = self.client.send(*case)
        return shown(sent, self.client.warnings)


class SameWebhooks(SideBySide):
    client = Client
    flags = (*SideBySide.flags, "--kube-managed-fields=all")

    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.TemporaryDirectory()
        root = cls.root = pathlib.Path(cls.directory.name)
        port = free_port()
        tokens = root / "users.csv"
        tokens.write_text(TOKENS)
        cls.server = Server(str(root / "data"), args=[f"--listen-kube-urls=http://127.0.0.1:{port}", f"--kube-token-file={tokens}",
                                                      *cls.flags, *cls.our_flags(root)])
        cls.server.start()
        cls.backend = Server(str(root / "backend"))
        cls.backend.start()
        cls.apiserver = Apiserver(root, cls.backend.url, (*cls.their_flags, f"--token-auth-file={tokens}", *cls.own_flags(root)))
        authority, untrusted = Authority(root / "authority"), Authority(root / "untrusted")
        cls.sides = []
        for name, url in (("theirs", f"https://127.0.0.1:{cls.apiserver.port}"), ("ours", f"http://127.0.0.1:{port}")):
            more = {"expired": {"days": -1}, "untrusted": {"authority": untrusted, "trusted": authority}, "misnamed": {
                "names": "DNS:other.test"}, "nameless": {"names": ""}}
            others = {key: webhooks.Webhooks(root, f"{name}-{key}", **{"authority": authority, **fields}) for key, fields in more.items()}
            side = Side(cls.client(url, "the-token"), webhooks.Webhooks(root, name, authority=authority, names=(
                "DNS:localhost,IP:127.0.0.1,DNS:hook.default.svc"), clients=True), others)
            setattr(cls, name, side.client)
            cls.sides.append(side)
        cls.wait_for("/api/v1/namespaces/default")

    @classmethod
    def our_flags(cls, root):
        return ()

    @classmethod
    def own_flags(cls, root):
        return ()

    @classmethod
    def tearDownClass(cls):
        for side in cls.sides:
            for server in (side.hooks, *side.hooks.others.values()):
                server.stop()
        super().tearDownClass()

    def both(self, *case):
        return [side.send(*case) for side in self.sides]

    def same(self, *case):
        theirs, ours = self.both(*case)
        with self.subTest(case=str(case)[:300]):
            self.assertEqual(ours, theirs)

    def create(self, *case):
        for answer in self.both("POST", *case):
            self.assertEqual(answer[0], 201, answer)

    def wait_for_webhooks(self, name="zz-marker"):
        """Returns when everything that was created before applies. The real server learns of changes a little later, of each kind
        by itself and in their order."""
        for kind, plural in PLURALS.items():
            case = one(f"{name}-{kind}", webhooks.deny("marked"), kind)
            for side in self.sides:
                for _, document in case.made(side.hooks):
                    self.assertEqual(side.client.send("POST", f"{GROUP}/{plural}", document)[0], 201)
            end = time.monotonic() + READY_SECONDS
            for side in self.sides:
                while "marked" not in str(side.client.send("POST", CMS + "?dryRun=All", config(case.name))[1]):
                    self.assertLess(time.monotonic(), end)
                    time.sleep(0.05)
        time.sleep(SETTLE_SECONDS)  # namespaces, policies and definitions come by other ways

    def prepare(self, make):
        """Creates what the cases need; each server has its own, because behaviours have state."""
        tables = [[case for case in make() if case.name.startswith(ONLY) and case.name not in SKIPPED] for _ in self.sides]
        for pair in zip(*tables):
            documents = []
            for side, case in zip(self.sides, pair):
                if case.own:
                    self.assertEqual(side.client.send("POST", NAMESPACES, {"metadata": {"name": case.namespace}})[0], 201)
                for request in case.before:
                    self.assertEqual(side.client.send(*request)[0], 201)
                documents.append(case.made(side.hooks))
            for (plural, theirs), (_, ours) in zip(*documents):
                answers = [side.send("POST", f"{GROUP}/{plural}", document) for side, document in zip(self.sides, (theirs, ours))]
                for answer in answers:
                    for webhook in answer[1].get("webhooks", []):
                        webhook["clientConfig"].pop("caBundle", None)
                with self.subTest(configuration=theirs["metadata"]["name"]):
                    self.assertEqual(answers[1], answers[0])
        self.wait_for_webhooks("zz-" + self.id().rsplit("_", 1)[-1])
        return tables

    def compare_cases(self, make, order=True):
        for theirs, ours in zip(*self.prepare(make)):
            for number, (their_request, our_request) in enumerate(zip(theirs.requests, ours.requests)):
                answers, calls = [], []
                for side, request in zip(self.sides, (their_request, our_request)):
                    side.hooks.clear()
                    answers.append(side.send(*request))
                    arrived = [received(call) for call in side.hooks.calls if call.path.startswith(f"/{theirs.name}/")]
                    # Validating webhooks are called side by side, after the others.
                    calls.append([call for call in arrived if "/m/" in call[1]] + sorted(
                        [call for call in arrived if "/v/" in call[1]], key=lambda call: call[1]))
                with self.subTest(case=theirs.name, number=number, request=str(their_request)[:300]):
                    self.assertEqual(answers[1], answers[0])
                    self.assertEqual([call[1] for call in calls[1]], [call[1] for call in calls[0]])
                    self.assertEqual(calls[1], calls[0])

    def test_table(self):
        for definition in cases.CRDS:
            self.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)
        for path in (cases.LAMPS, cases.BULBS):
            self.wait_for(path)
        self.compare_cases(cases.cases)

    def test_refused(self):
        for kind, plural in PLURALS.items():
            for number, hooks in enumerate(cases.REFUSED):
                self.same("POST", f"{GROUP}/{plural}?dryRun=All", cases.configuration(f"refused-{number}", *hooks))
        for name in ("", "UPPER", "a/b", "x" * 254, "fine"):
            self.same("POST", f"{GROUP}/{PLURALS['validating']}?dryRun=All", cases.configuration(name, cases.full()))
        path = f"{GROUP}/{PLURALS['mutating']}"
        self.same("POST", path, cases.configuration("changing", cases.full(matchConditions=[{"name": "a", "expression": "true"}])))
        for hooks in ([], [cases.full(sideEffects="Some")], [cases.full("other.example.com")], [cases.full(), cases.full()],
                      [cases.full(matchConditions=[{"name": "a", "expression": "1"}])]):
            self.same("PATCH", f"{path}/changing", {"webhooks": hooks}, MERGE)
        self.same("DELETE", f"{path}/changing")


if __name__ == "__main__":
    unittest.main()
