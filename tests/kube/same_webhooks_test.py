#!/usr/bin/python3
"""Admission webhooks of a real kube-apiserver and of Vigil: a table of webhooks, what they answer, and the requests that they
concern (webhook_cases.py). Answers, warnings and all that the webhooks have received are compared as a whole.
tools/build-kube builds the real kube-apiserver."""
import json
import os
import pathlib
import re
import socket
import sys
import tempfile
import threading
import time
import unittest
import urllib.request

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

TIME = re.compile(r"2\d{3}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")
UID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
VERSION = re.compile(r'("(?:resourceVersion|resource_version)": )"\d+"')
ADDRESS = re.compile(r"(127\.0\.0\.1:|localhost:|\.svc:|\"port\": )\d+")
RANDOM = re.compile(r"generated-[a-z0-9]{5}")
READY_SECONDS = 60
SETTLE_SECONDS = 1
TOKENS = 'the-token,admin,admin-uid,"system:masters,others"\n'
# Fields of requests whose values belong to the server: what a connection says about itself.
OWN_FIELDS = ("host", "content-length", "traceparent", "accept-encoding")
SKIPPED = set(filter(None, os.environ.get("VIGIL_WEBHOOK_SKIP", "").split(",")))
ONLY = os.environ.get("VIGIL_WEBHOOK_CASES", "")  # begins the names of the cases to run


# What is posted but not stored has no managers here, and neither has the answer.
POSTED = ("Binding", "TokenRequest", "Scale", "Eviction", "SelfSubjectAccessReview", "LocalSubjectAccessReview")


def without_managers(document):
    if isinstance(document, dict) and document.get("metadata"):
        document["metadata"].pop("managedFields", None)
    return document


def comparable(answer):
    """Kubernetes finds the same fault of metadata several times."""
    if isinstance(answer, dict):
        causes = answer.get("details", {}).get("causes", [])
        causes[:] = [cause for i, cause in enumerate(causes) if cause not in causes[:i]]
        if answer.get("kind") in (*POSTED, "Namespace"):
            without_managers(answer)
        if answer.get("kind") == "TokenRequest" or answer.get("kind", "").endswith("Review"):
            answer.pop("status", None)
            answer["spec"].pop("audiences", None)
        if not answer.get("metadata", {}).get("continue", "x"):
            del answer["metadata"]["continue"]
    return answer


def normal(value):
    text = json.dumps(value, sort_keys=True)
    for pattern, to in ((TIME, "TIME"), (UID, "UID"), (VERSION, r'\1"VERSION"'), (ADDRESS, r"\g<1>0"), (RANDOM, "generated-RANDOM")):
        text = pattern.sub(to, text)
    return json.loads(text)


def received(call):
    """What counts of a call."""
    request = call.request
    for name in ("object", "oldObject"):
        if (request.get(name) or {}).get("kind") in POSTED or request.get("subResource") == "finalize":
            without_managers(request.get(name))
    if request["kind"]["kind"] == "Namespace" and request["operation"] == "DELETE":
        request["options"].pop("preconditions", None)  # Kubernetes adds the uid
    if request["kind"]["kind"] == "TokenRequest":
        request["object"] = {"kind": request["object"]["kind"], "metadata": request["object"].get("metadata")}  # audiences differ
    headers = {name: value for name, value in call.headers.items() if name not in OWN_FIELDS}
    return normal([call.method, call.path, call.query, headers, call.certificate and call.certificate["subject"], call.review])


def shown(sent, warnings):
    code, answer = sent
    return normal([code, comparable(answer), warnings])


class Side:
    """A server, its client, and the webhooks that it calls."""

    def __init__(self, client, hooks, others):
        self.client, self.hooks = client, hooks
        hooks.others = others

    def send(self, *case):
        sent = self.client.send(*case)
        return shown(sent, self.client.warnings)


def answer_plainly(listener):
    """Serves HTTP without TLS."""
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        with connection:
            connection.recv(1 << 16)
            connection.sendall(b"HTTP/1.0 400 Bad Request\r\n\r\n")


class SameWebhooks(SideBySide):
    client = Client
    flags = (*SideBySide.flags, "--kube-managed-fields=all")
    # Services lead to their endpoints.
    their_flags = (*SideBySide.their_flags, "--enable-aggregator-routing=true")

    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.TemporaryDirectory()
        root = cls.root = pathlib.Path(cls.directory.name)
        port = free_port()
        tokens = root / "users.csv"
        tokens.write_text(TOKENS)
        authority, untrusted = Authority(root / "authority"), Authority(root / "untrusted", "other")
        identity = authority.sign("api-server", cn="the-api-server")
        urls, cls.sides, users = {"theirs": None, "ours": f"http://127.0.0.1:{port}"}, [], []
        for name in urls:
            more = {"expired": {"days": -1}, "untrusted": {"authority": untrusted, "trusted": authority}, "misnamed": {
                "names": "DNS:other.test"}, "elsewhere": {"names": "IP:127.0.0.9,DNS:a.test,DNS:b.test"}, "nameless": {
                    "names": ""}, "plain": {}}
            others = {key: webhooks.Webhooks(root, f"{name}-{key}", **{"authority": authority, **fields}) for key, fields in more.items()}
            hooks = webhooks.Webhooks(root, name, authority=authority, clients=True, names=(
                "DNS:localhost,IP:127.0.0.1,DNS:hook.default.svc,DNS:other.default.svc"))
            cls.sides.append(Side(None, hooks, others))
            users += [{"name": f"127.0.0.1:{hooks.port}", "user": {
                "token": "secret", "client-certificate": identity.cert, "client-key": identity.key}},
                      {"name": f"hook.default.svc:{hooks.port}", "user": {"username": "me", "password": "pass:word"}},
                      {"name": f"*.default.svc:{hooks.port}", "user": {"token": "of-services"}},
                      {"name": f"127.0.0.1:{others['nameless'].port}", "user": {"token": "never seen"}}]
        admission = cls.admission_configuration(root, users)
        cls.server = Server(str(root / "data"), args=[f"--listen-kube-urls=http://127.0.0.1:{port}", f"--kube-token-file={tokens}",
                                                      f"--kube-admission-control-config-file={admission}", *cls.flags])
        cls.server.start()
        cls.backend = Server(str(root / "backend"))
        cls.backend.start()
        cls.apiserver = Apiserver(root, cls.backend.url, (
            *cls.their_flags, f"--token-auth-file={tokens}", f"--admission-control-config-file={admission}"))
        urls["theirs"] = f"https://127.0.0.1:{cls.apiserver.port}"
        for side, (name, url) in zip(cls.sides, urls.items()):
            side.client = cls.client(url, "the-token")
            setattr(cls, name, side.client)
        cls.wait_for("/api/v1/namespaces/default")

    @classmethod
    def admission_configuration(cls, root, users):
        """How the servers sign in at webhooks."""
        kubeconfig, file = root / "webhooks.kubeconfig", root / "admission.json"
        kubeconfig.write_text(json.dumps({"apiVersion": "v1", "kind": "Config", "users": users}))
        file.write_text(json.dumps({"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AdmissionConfiguration", "plugins": [
            {"name": f"{name}AdmissionWebhook", "configuration": {
                "apiVersion": "apiserver.config.k8s.io/v1", "kind": "WebhookAdmissionConfiguration", "kubeConfigFile": str(kubeconfig)}}
            for name in ("Validating", "Mutating")]}))
        return file

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

    def compare_cases(self, make, alone=False):
        """`alone`: only the webhook of a case is called by its requests, at any path."""
        for theirs, ours in zip(*self.prepare(make)):
            for number, (their_request, our_request) in enumerate(zip(theirs.requests, ours.requests)):
                answers, calls = [], []
                for side, request in zip(self.sides, (their_request, our_request)):
                    for server in (side.hooks, *side.hooks.others.values()):
                        server.clear()
                    answers.append(side.send(*request))
                    servers = [side.hooks, *(side.hooks.others.values() if alone else ())]
                    arrived = [received(call) for server in servers for call in server.calls
                               if alone or call.path.startswith(f"/{theirs.name}/")]
                    # Validating webhooks are called side by side, after the others.
                    calls.append([call for call in arrived if "/v/" not in call[1]] + sorted(
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

    def counted(self, text):
        """What the metrics say of webhooks, except those that tell when others apply."""
        names = "webhook_(?:request_total|rejection_count|fail_open_count|admission_duration_seconds_count)|match_condition_\\w+_total"
        rows = re.findall(rf"^(apiserver_admission_(?:{names}))\{{(.*)\}} (\S+)$", text, re.M)
        return {(name, *sorted(labels.split(","))): float(value) for name, labels, value in rows if "zz-" not in labels}

    def compare_metrics(self):
        with self.theirs.open("GET", "/metrics", None, "", "text/plain") as answer:
            theirs = self.counted(answer.read().decode())
        with urllib.request.urlopen(self.server.url + "/metrics") as answer:
            ours = self.counted(answer.read().decode())
        with self.subTest("metrics"):
            self.assertEqual(ours, theirs)

    def by_service(self, name, **more):
        return lambda server: {"service": {"namespace": "default", "name": name, "path": "/by/service", "port": server.port, **more},
                               "caBundle": server.bundle}

    def test_connections(self):
        """Certificates, addresses, services and times. The texts are those of Go's network and TLS."""
        plain = [socket.create_server(("127.0.0.1", 0)) for _ in self.sides]
        for listener in plain:
            self.addCleanup(listener.close)
            threading.Thread(target=answer_plainly, args=(listener,), daemon=True).start()

        def at(name):
            return lambda server: server.others[name].on("/", webhooks.allow)

        def make():
            number = iter(plain)
            places = {name: at(name) for name in ("expired", "untrusted", "misnamed", "elsewhere", "nameless", "plain")}
            places.update({
                "refused": lambda server: {"url": "https://127.0.0.1:1/"}, "default-port": lambda server: {"url": "https://127.0.0.1/"},
                "roots": lambda server: {"url": server.url("/x")}, "localhost": lambda server: {
                    "url": f"https://localhost:{server.port}/localhost/v/w", "caBundle": server.bundle},
                "no-path": lambda server: {"url": f"https://127.0.0.1:{server.port}", "caBundle": server.bundle},
                "escaped": lambda server: {"url": server.url("/a%20b/c%2Fd"), "caBundle": server.bundle},
                "slashes": lambda server: {"url": server.url("//a//b/"), "caBundle": server.bundle},
                "not-tls": lambda server: {"url": f"https://127.0.0.1:{next(number).getsockname()[1]}/"},
                "service-none": self.by_service("none"), "service-no-port": self.by_service("lonely", port=5),
                "service-no-slices": self.by_service("lonely")})
            for name, place in places.items():
                yield one(name, webhooks.allow, clientConfig=place)
                yield one(name + "-ignored", webhooks.allow, clientConfig=place, failurePolicy="Ignore")
            for kind in PLURALS:
                yield one(f"hangs-{kind}", webhooks.hang, kind, timeoutSeconds=1)
                yield one(f"hangs-ignored-{kind}", webhooks.hang, kind, timeoutSeconds=1, failurePolicy="Ignore")
                yield one(f"busy-long-{kind}", webhooks.busy(429, "5"), kind, timeoutSeconds=1)
            yield one("drips", webhooks.drip, timeoutSeconds=1)

        for side in self.sides:
            self.assertEqual(side.client.send("POST", cases.SERVICES, {"metadata": {"name": "lonely"}, "spec": {
                "ports": [{"port": side.hooks.port}]}})[0], 201)
            side.hooks.on("/by/service", webhooks.allow)
            for path in ("", "/", "/a%20b/c%2Fd", "//a//b/", "/localhost/v/w"):
                side.hooks.on(path, webhooks.allow)
        self.compare_cases(make, alone=True)

    def meanwhile(self, side, case, request, then, path=None):
        """Sends a request and, when its webhook has been called, runs `then`; the webhook answers after it. Returns the answer."""
        event, answers = threading.Event(), []
        path = f"/{case}/v/w" if path is None else path
        side.hooks.on(path, webhooks.slow(event))
        side.hooks.clear()
        client = self.client(side.client.url, "the-token")
        thread = threading.Thread(target=lambda: answers.append(shown(client.send(*request), client.warnings)))
        thread.start()
        side.hooks.wait_for(path)
        then(side)
        event.set()
        thread.join(READY_SECONDS)
        return [*answers, [received(call) for call in side.hooks.of(path)]]

    def test_objects_change_while_webhooks_are_called(self):
        """Of ConfigMaps with a finalizer or without one. A change that is not sent to the webhook itself is made meanwhile."""
        asked = {"metadata": {"annotations": {"asked": "yes"}}}
        whole = {"metadata": {"name": "{}", "labels": {"case": "{}"}, "annotations": {"asked": "yes"}}}
        rows = {
            "merge": ("PATCH", asked, MERGE), "strategic": ("PATCH", asked, cases.STRATEGIC), "put": ("PUT", whole), "json": (
                "PATCH", [cases.add("/metadata/annotations", {"asked": "yes"})], cases.JSON_PATCH), "test": ("PATCH", [
                    cases.add("/data/n", "1", "test"), cases.add("/metadata/annotations", {"asked": "yes"})], cases.JSON_PATCH),
            "apply": ("PATCH", {"kind": "ConfigMap", "apiVersion": "v1", **whole}, cases.APPLY), "delete": ("DELETE",),
            "delete-options": ("DELETE", {"gracePeriodSeconds": 0})}

        def update(side, name):
            self.assertEqual(side.client.send("PATCH", f"{CMS}/{name}", {"data": {"n": "2"}}, MERGE)[0], 200)

        def delete(side, name):
            self.assertEqual(side.client.send("DELETE", f"{CMS}/{name}?propagationPolicy=Background")[0], 200)

        def delete_final(side, name):
            self.assertEqual(side.client.send("PATCH", f"{CMS}/{name}", {"metadata": {"finalizers": ["example.com/x"]}}, MERGE)[0], 200)
            delete(side, name)

        def replace(side, name):
            delete(side, name)
            self.assertEqual(side.client.send("POST", CMS, config(name, data={"n": "3"}))[0], 201)

        table = [(f"while-{key}-{then.__name__.replace('_', '-')}", row, then) for key, row in rows.items()
                 for then in (update, delete, delete_final, replace)
                 # Of an object that waits for its finalizers Kubernetes answers with a Status here, and otherwise with the object.
                 if key.split("-")[0] != "delete" or then != delete_final]
        # The first deletion of an object is sent to its webhook, those that happen meanwhile have a propagation policy.
        wanted = [{"name": "x", "expression": "request.operation == 'DELETE' ? (request.options.?propagationPolicy.orValue('') == '') : "
                   "(request.operation == 'UPDATE' && has(object.metadata.annotations))"}]
        self.prepare(lambda: [one(name, webhooks.allow, matchConditions=wanted) for name, _, _ in table])
        for name, (method, *row), then in table:
            body = json.loads(json.dumps(row[0]).replace('"{}"', f'"{name}"')) if row else None
            request = (method, f"{CMS}/{name}" + ("?fieldManager=me&force=true" if cases.APPLY in row else ""), body, *row[1:])
            results = []
            for side in self.sides:
                self.assertEqual(side.client.send("POST", CMS, config(name, data={"n": "1"}))[0], 201)
                results.append(self.meanwhile(side, name, request, lambda side: then(side, name)) + [side.send("GET", f"{CMS}/{name}")])
            with self.subTest(case=name):
                self.assertEqual(results[1], results[0])

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


class SameServices(SameWebhooks):
    """Services with an external name, to which a kube-apiserver does not connect with the flag above."""
    their_flags = SideBySide.their_flags
    test_table = test_connections = test_refused = test_objects_change_while_webhooks_are_called = None

    def test_metrics(self):
        """Of fewer webhooks than Vigil names in its metrics."""
        self.compare_cases(cases.conditions)
        self.compare_metrics()

    def test_external_names(self):
        def make():
            places = {"hook": self.by_service("hook"), "other": self.by_service("other"), "no-port": self.by_service("portless"),
                      "no-path": self.by_service("hook", path=None), "slashes": self.by_service("hook", path="/a/b"),
                      "misnamed": self.by_service("misnamed")}
            for kind in PLURALS:
                for name, place in places.items():
                    yield one(f"{name}-{kind}", webhooks.allow, kind, clientConfig=place)

        for side in self.sides:
            for name in ("hook", "other", "portless", "misnamed"):
                self.assertEqual(side.client.send("POST", cases.SERVICES, {"metadata": {"name": name}, "spec": {
                    "type": "ExternalName", "externalName": "localhost", **(
                        {} if name == "portless" else {"ports": [{"port": side.hooks.port}]})}})[0], 201)
            for path in ("/by/service", "/", "/a/b"):
                side.hooks.on(path, webhooks.allow)
        self.compare_cases(make, alone=True)


if __name__ == "__main__":
    unittest.main()
