#!/usr/bin/python3
"""Custom resources with a conversion webhook in a real kube-apiserver and in Vigil: definitions that are refused, requests in
every version, converters that misbehave, and what a converter receives. tools/build-kube builds the real kube-apiserver."""
import base64
import copy
import json
import pathlib
import re
import sys
import threading
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/live"))
sys.path.insert(0, str(ROOT / "tests/kube"))
import conversions  # noqa: E402
import webhooks  # noqa: E402
from certs import Authority  # noqa: E402
from conversions import CRDS, definition, gate, path  # noqa: E402
import same_custom_test  # noqa: E402
from same_writes_test import JSON_PATCH, MERGE, TABLE, Client, normal  # noqa: E402
from side_by_side import SideBySide  # noqa: E402

APPLY = "application/apply-patch+yaml"
PARTIAL = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
PORT = re.compile(r"127\.0\.0\.1:\d+")
MISSING = re.compile(r"(Object 'Kind' is missing in) .*?'\"")
SCHEME = re.compile(r'in scheme \\?"pkg/[^" ]*\\?"')
KIND = "doors"
HUGE = 9 << 20  # more than Vigil reads of an answer


def hook(**config):
    return {"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": config}}


def with_conversion(conversion):
    made = definition({}, "bads", "Bad")
    made["spec"]["conversion"] = conversion
    return made


URL = {"url": "https://127.0.0.1/x"}
SERVICE = {"namespace": "n", "name": "s"}
# Values of spec.conversion; each definition is created as a dry run.
CONVERSIONS = [
    {"strategy": "None"}, {"strategy": "Odd"}, {"strategy": ""}, {}, {"strategy": "Webhook"}, {"strategy": "Webhook", "webhook": {}},
    {"strategy": "None", "webhook": {"conversionReviewVersions": ["v1"]}}, {"strategy": "None", "webhook": hook(**URL)["webhook"]},
    {"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"]}},
    {"strategy": "Webhook", "webhook": {"conversionReviewVersions": [], "clientConfig": URL}},
    *[{"strategy": "Webhook", "webhook": {"conversionReviewVersions": versions, "clientConfig": URL}} for versions in (
        ["v1"], ["v1beta1"], ["v2"], ["v2", "v1"], ["v1", "v1"], ["V1"], ["", "v1"])],
    *[hook(url=url) for url in ("https://a.b", "http://a.b/c", "a.b", "", "https://", "https://a:b@c.d", "https://a.b/c?d=e",
                                "https://a.b/c#d", "https://a b", "https://a.b:99999")],
    hook(**URL, service=SERVICE), hook(),
    *[hook(service={**SERVICE, **more}) for more in (
        {}, {"port": 8443}, {"port": 0}, {"port": 70000}, {"port": -1}, {"path": "/a/b"}, {"path": "a"}, {"path": "/a//b"}, {"path": "//"},
        {"path": "/A"}, {"path": "/"}, {"name": ""}, {"namespace": ""})],
    hook(**URL, caBundle=base64.b64encode(b"nonsense").decode()), hook(**URL, caBundle=base64.b64encode(b" \n").decode()),
    hook(**URL, caBundle=""),
]
DEPENDENT = [{"apiVersion": "v1", "kind": "ConfigMap", "name": "c", "uid": "0e5e9a5c-8f8a-4a8f-8d3f-1d8f0f0f0f0f"}]
CASES = [
    ("POST", path("v2"), gate("a", "v2", host="x", port="80")),
    ("POST", path("v2"), gate("a", "v2", host="x", port="80")),
    ("POST", path("v3"), gate("b", "v3", host="x")),
    ("POST", path("v1"), gate("c", hostPort="y:1", replicas=3, labels={"l": "1"})),
    ("POST", path("v2"), gate("wrong", "v1")),
    ("POST", path("v2"), gate("wrong", "v2", host=5)),
    ("POST", path("v2"), gate("unknown", "v2", host="x", other=1)),
    ("POST", path("v2") + "?fieldValidation=Strict", gate("strict", "v2", host="x", other=1)),
    ("POST", path("v2") + "?dryRun=All", gate("dry", "v2", host="x")),
    ("POST", path("v9"), gate("a", "v9")),
    *[("GET", path(api, name)) for api in ("v1", "v2", "v3") for name in ("a", "b", "c", "none")],
    *[("GET", path(api)) for api in ("v1", "v2", "v3")],
    ("GET", path("v2") + "?limit=2"),
    ("GET", path("v2") + "?labelSelector=l%3D1"),
    ("GET", path("v2"), None, "application/json", TABLE),
    ("GET", path("v2", "a"), None, "application/json", TABLE),
    ("GET", path("v2"), None, "application/json", PARTIAL),
    ("GET", f"/apis/{conversions.GROUP}/v3/gates"),
    ("PUT", path("v2", "a"), gate("a", "v2", host="z", port="81")),
    ("PUT", path("v2", "a"), gate("a", "v1")),
    ("PATCH", path("v2", "a"), {"spec": {"port": "82"}}, MERGE),
    ("PATCH", path("v2", "a"), {"spec": {"port": "82"}}, MERGE),
    ("PATCH", path("v2", "a"), {"spec": {"port": 82}}, MERGE),
    ("PATCH", path("v2", "a"), {"apiVersion": "example.com/v1"}, MERGE),
    ("PATCH", path("v2", "a"), [{"op": "test", "path": "/spec/port", "value": "82"}, {"op": "replace", "path": "/spec/host", "value": "h"}],
     JSON_PATCH),
    ("PATCH", path("v1", "a"), [{"op": "test", "path": "/spec/hostPort", "value": "h:82"}], JSON_PATCH),
    ("PATCH", path("v2", "a") + "?dryRun=All", {"spec": {"port": "83"}}, MERGE),
    ("GET", path("v1", "a")),
    ("PATCH", path("v3", "a"), {"metadata": {"labels": {"new": "label"}, "annotations": {"a": "b"}}}, MERGE),
    ("GET", path("v1", "a")),
    ("PATCH", path("v2", "a", "status"), {"status": {"ready": 2}, "spec": {"host": "no"}}, MERGE),
    ("PUT", path("v2", "a", "status"), {**gate("a", "v2", host="no"), "status": {"ready": 3}}),
    ("GET", path("v1", "a", "status")),
    ("GET", path("v2", "c", "scale")),
    ("GET", path("v1", "c", "scale")),
    ("GET", path("v2", "a", "scale")),
    ("PATCH", path("v2", "c", "scale"), {"spec": {"replicas": 7}}, MERGE),
    ("PUT", path("v2", "c", "scale"), {"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": {"name": "c", "namespace": "default"},
                                       "spec": {"replicas": 8}}),
    ("GET", path("v3", "c")),
    ("PATCH", path("v2", "applied") + "?fieldManager=me", json.dumps(gate("applied", "v2", host="x", port="1")), APPLY),
    ("PATCH", path("v2", "applied") + "?fieldManager=me", json.dumps(gate("applied", "v2", host="y")), APPLY),
    ("PATCH", path("v2", "applied") + "?fieldManager=you", json.dumps(gate("applied", "v2", host="z")), APPLY),
    ("PATCH", path("v2", "applied") + "?fieldManager=you&force=true", json.dumps(gate("applied", "v2", host="z")), APPLY),
    ("GET", path("v1", "applied")),
    ("POST", path("v2"), {**gate("held", "v2"), "metadata": {"name": "held", "finalizers": ["x.com/y"], "ownerReferences": DEPENDENT}}),
    ("DELETE", path("v2", "held")),
    ("DELETE", path("v2", "held")),
    ("PATCH", path("v2", "held"), {"metadata": {"finalizers": None}}, MERGE),
    ("GET", path("v2", "held")),
    ("DELETE", path("v2", "b") + "?dryRun=All"),
    ("DELETE", path("v2", "b")),
    ("DELETE", path("v2", "none")),
    ("DELETE", path("v2") + "?labelSelector=l%3D1"),
    ("GET", path("v1")),
    # The stored version changes.
    ("PATCH", f"{CRDS}/gates.example.com", {"spec": {"versions": conversions.versions("v2")}}, MERGE),
    *[("GET", path(api, "a")) for api in ("v1", "v2", "v3")],
    ("PATCH", path("v1", "a"), {"spec": {"hostPort": "n:1"}}, MERGE),
    *[("GET", path(api)) for api in ("v1", "v2", "v3")],
    ("PATCH", f"{CRDS}/gates.example.com", {"spec": {"versions": conversions.versions("v2")[1:]}}, MERGE),
    ("PATCH", f"{CRDS}/gates.example.com/status", {"status": {"storedVersions": ["v2"]}}, MERGE),
    ("PATCH", f"{CRDS}/gates.example.com", {"spec": {"versions": conversions.versions("v2")[1:]}}, MERGE),
    ("GET", path("v2", "a")),
    ("GET", path("v1", "a")),
    # Two objects are still stored in the version that is gone.
    ("GET", path("v2", "applied")),
    ("PATCH", path("v3", "applied"), {"spec": {"host": "z"}}, MERGE),
    ("DELETE", path("v3", "applied")),
]


def applied(api, manager, name, force=False, **spec):
    return ("PATCH", path(api, name, plural="owned") + f"?fieldManager={manager}" + ("&force=true" if force else ""),
            json.dumps(gate(name, api, "Own", **spec)), APPLY)


# Managers of the same objects in several versions. What a manager no longer applies has no owners in a third version here: whether
# Kubernetes then removes it differs from run to run, because it visits versions in any order.
APPLIES = [
    applied("v1", "me", "m", hostPort="a:1"), applied("v2", "me", "m", host="b", port="1"), applied("v2", "me", "m", host="b"),
    applied("v1", "you", "m", hostPort="c:1"), applied("v1", "you", "m", True, hostPort="c:1"), applied("v2", "me", "m", host="b"),
    applied("v1", "x", "n", hostPort="a:1", replicas=3), applied("v2", "y", "n", count=3), applied("v2", "y", "n", count=4),
    applied("v2", "y", "n", True, count=4), ("PATCH", path("v2", "n", plural="owned"), {"spec": {"host": "z"}}, MERGE),
    applied("v1", "x", "n", hostPort="a:1"), applied("v1", "x", "n", replicas=4), applied("v3", "z", "n", replicas=4, port="1"),
    ("PATCH", path("v1", "n", plural="owned"), {"spec": {"replicas": 5}}, MERGE), applied("v3", "z", "n", replicas=5, port="1"),
    applied("v3", "z", "n", host="q", replicas=5, port="1"), applied("v3", "z", "n", True, host="q", replicas=5, port="1"),
    applied("v2", "z", "n", host="q", count=5, port="1"),
    ("PATCH", path("v1", "n", "status", plural="owned"), {"status": {"ready": 1}}, MERGE), ("GET", path("v1", "n", plural="owned")),
]


def owners(body):
    """The entries without their times, by which they are ordered."""
    return sorted(((e["manager"], e["operation"], e["apiVersion"], e.get("subresource"), e["fieldsV1"])
                   for e in body.get("metadata", {}).get("managedFields", [])), key=str)


def shown(value):
    # The object is shown as it was sent, and not as this server writes it.
    return json.loads(MISSING.sub(r'\1"', SCHEME.sub("in scheme", PORT.sub("127.0.0.1:PORT", json.dumps(normal(value))))))


def what_counts(answer):
    code, body = answer
    body = copy.deepcopy(body)
    if isinstance(body, dict) and body.get("kind") == "CustomResourceDefinition":
        body = {"conversion": body["spec"]["conversion"], "stored": body["status"].get("storedVersions")}
        body["conversion"].get("webhook", {}).get("clientConfig", {}).pop("caBundle", None)
    else:
        code, body = same_custom_test.what_counts((code, body))
    return shown([code, body])


class SameConversion(SideBySide):
    client = Client
    flags = (*SideBySide.flags, "--kube-managed-fields=all")
    their_flags = ("--request-timeout=60s",)  # longer than a conversion may take

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.wait_for(CRDS)
        authority = Authority(cls.directory.name + "/authority")
        cls.hooks = {client: webhooks.Webhooks(cls.directory.name, name, authority=authority)
                     for client, name in ((cls.ours, "ours"), (cls.theirs, "theirs"))}
        untrusted = Authority(cls.directory.name + "/untrusted", "other")
        certificates = {"expired": {"days": -1}, "misnamed": {"names": "DNS:other.test"},
                        "untrusted": {"authority": untrusted, "trusted": authority}}
        cls.others = {name: {client: webhooks.Webhooks(cls.directory.name, f"{name}-{number}", **{"authority": authority, **how})
                             for number, client in enumerate(cls.hooks)} for name, how in certificates.items()}

    @classmethod
    def tearDownClass(cls):
        for servers in (cls.hooks, *cls.others.values()):
            for hooks in servers.values():
                hooks.stop()
        super().tearDownClass()

    def define(self, behaviour, servers=None, **more):
        for client, hooks in (servers or self.hooks).items():
            plural = more.get("plural", "gates")
            code, body = client.send("POST", CRDS, definition(hooks.on(f"/{plural}", behaviour), **more))
            self.assertEqual(code, 201, body)
        self.wait_for(f"/apis/{conversions.GROUP}/v1/{plural}")
        self.wait_for(f"/apis/{conversions.GROUP}/v2/{plural}")

    def test_definitions_are_refused_alike(self):
        for conversion in CONVERSIONS:
            self.compare(what_counts, "POST", CRDS + "?dryRun=All", with_conversion(conversion))

    def test_authorities_must_be_valid_once_the_definition_is_established(self):
        bad = {"spec": {"conversion": hook(**URL, caBundle=base64.b64encode(b"nonsense").decode())}}
        self.define(conversions.good, plural="walls", kind="Wall")
        self.compare(what_counts, "PATCH", f"{CRDS}/walls.example.com", bad, MERGE)
        self.compare(what_counts, "PATCH", f"{CRDS}/walls.example.com", {"spec": {"conversion": hook(**URL)}}, MERGE)

    def test_requests_in_every_version_are_answered_alike(self):
        self.define(conversions.good)
        for case in CASES:
            self.compare(what_counts, *case)
            if case[1].startswith(CRDS):
                self.wait_for(path("v2", "a"))

    def test_converters_receive_the_same(self):
        self.define(conversions.good, plural="fences", kind="Fence", reviews=["v9", "v1beta1", "v1"])

        def received(client):
            client.send("POST", path("v1", plural="fences"), gate("a", kind="Fence"))
            client.send("GET", path("v2", "a", plural="fences"))
            call = next(c for c in self.hooks[client].of("/fences")
                        if c.request["desiredAPIVersion"].endswith("v2") and c.request["objects"])
            headers = {name: value for name, value in call.headers.items()
                       if name not in ("host", "content-length", "accept-encoding", "traceparent")}
            return shown([call.method, call.query, headers, call.review])
        self.assertEqual(received(self.ours), received(self.theirs))

    def test_fields_are_owned_in_the_version_of_their_manager(self):
        self.define(conversions.good, plural="owned", kind="Own")

        def what_counts_and_owners(answer):
            # The converter drops the default that v3 has: with an apply Kubernetes counts that as no change.
            code, body = what_counts(answer)
            body.get("metadata", {}).pop("generation", None)
            return code, body, owners(answer[1])
        for case in APPLIES:
            self.compare(what_counts_and_owners, *case)
        for hooks in self.hooks.values():
            hooks.on("/owned", conversions.BAD["failure-message"])
        for case in (applied("v1", "x", "n", replicas=8), ("PATCH", path("v1", "n", plural="owned"), {"spec": {"replicas": 9}}, MERGE)):
            self.compare(what_counts_and_owners, *case)

    def test_reads_that_wait_longer_than_their_time_end_alike(self):
        """What a kube-apiserver answers to a write differs from run to run."""
        self.define(conversions.good, plural="gaps", kind="Gap")
        self.compare(what_counts, "POST", path("v1", plural="gaps"), gate("a", kind="Gap"))
        for hooks in self.hooks.values():
            hooks.on("/gaps", webhooks.hang)
        self.compare(lambda answer: (answer[0], answer[1]["reason"], answer[1]["message"]),
                     "GET", path("v2", "a", plural="gaps") + "?timeout=1s")

    def test_what_converters_must_not_answer_is_refused_alike(self):
        self.define(conversions.by_name, plural=KIND, kind="Door")
        for name in conversions.BAD:
            thing = gate(f"bad-{name}", kind="Door")
            where = path("v2", f"bad-{name}", plural=KIND)
            for case in (("POST", path("v1", plural=KIND), thing), ("GET", where), ("PATCH", where, {"spec": {"host": "x"}}, MERGE),
                         ("POST", path("v2", plural=KIND), gate(f"bad-{name}-too", "v2", "Door")),
                         ("DELETE", path("v1", f"bad-{name}", plural=KIND))):
                self.compare(what_counts, *case)

    def requests(self, name, plural, kind):
        """Requests that a converter is needed for, and two that it is not needed for."""
        where = path("v2", name, plural=plural)
        return (("POST", path("v1", plural=plural), gate(name, kind=kind)), ("GET", where),
                ("PATCH", where, {"spec": {"host": "x"}}, MERGE), ("POST", path("v2", plural=plural), gate(name + "-too", "v2", kind)),
                ("GET", path("v1", name, plural=plural)))

    def both(self, name, plural, kind):
        """The answers to these requests, which must fail where the converter is needed."""
        for case in self.requests(name, plural, kind):
            theirs, ours = what_counts(self.theirs.send(*case)), what_counts(self.ours.send(*case))
            with self.subTest(name=name, plural=plural, method=case[0], path=case[1]):
                self.assertEqual(theirs[0] < 300, "/v1/" in case[1], theirs)
                yield theirs, ours

    def define_cuts(self):
        rows = {"whole": webhooks.cut, "head": webhooks.cut_head, "body": webhooks.cut_body, "hang": webhooks.hang,
                "redirect": lambda call: webhooks.redirect(307, self.hooks[self.theirs].url("/elsewhere"))(call),
                "huge": lambda call: call.reply(json.dumps(call.document({"uid": call.request["uid"], "result": {
                    "status": "Success"}, "convertedObjects": conversions.converted(call)})).encode() + b" " * HUGE)}

        def behave(call):
            name = call.request["objects"][0]["metadata"]["name"] if call.request["objects"] else ""
            rows.get(name.removesuffix("-too"), conversions.good)(call)
        self.define(behave, plural="windows", kind="Window")
        for hooks in self.hooks.values():
            hooks.on("/elsewhere", conversions.good)

    def test_converters_that_do_not_answer_fail_alike(self):
        self.define_cuts()
        for name in ("whole", "body"):
            for theirs, ours in self.both(name, "windows", "Window"):
                self.assertEqual(ours, theirs)
        for theirs, ours in self.both("head", "windows", "Window"):  # the text of Go's parser differs
            if theirs[0] >= 300:
                for answer in (theirs, ours):
                    self.assertIn('failed: Post "', answer[1].pop("message"))
                    self.assertNotIn("details", answer[1])
            self.assertEqual(ours, theirs)
        answers = {}

        def ask(client):
            answers[client] = what_counts(client.send("GET", path("v2", "hang", plural="windows")))
        for client in self.hooks:
            self.assertEqual(client.send("POST", path("v1", plural="windows"), gate("hang", kind="Window"))[0], 201)
        threads = [threading.Thread(target=ask, args=(client,)) for client in self.hooks]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        # Two timers of Go's client end such a call, and the one that is later adds its name to the text.
        theirs, ours = (answers[client][1].pop("message") for client in (self.theirs, self.ours))
        self.assertEqual(theirs.removesuffix(" (Client.Timeout exceeded while awaiting headers)"), ours)
        self.assertEqual(ours, 'conversion webhook for example.com/v1, Kind=Window failed: Post '
                         '"https://127.0.0.1:PORT/windows?timeout=30s": context deadline exceeded')
        self.assertEqual(answers[self.theirs][0], 500, answers)
        self.assertEqual(answers[self.ours], answers[self.theirs])
        # A kube-apiserver follows redirects, and reads answers of any length.
        for name, text in (("redirect", "the server answered with the code 307 and a redirect to "), (
                "huge", "the answer is longer than 8388608 bytes")):
            for client in self.hooks:
                self.assertEqual(client.send("POST", path("v1", plural="windows"), gate(name, kind="Window"))[0], 201)
            theirs, ours = (client.send("GET", path("v2", name, plural="windows")) for client in (self.theirs, self.ours))
            with self.subTest(name=name):
                self.assertEqual(theirs[0], 200, theirs)
                self.assertEqual((ours[0], ours[1].get("reason")), (500, None), ours)
                self.assertIn("conversion webhook for example.com/v1, Kind=Window failed: ", ours[1]["message"])
                self.assertIn(text, ours[1]["message"])
        self.assertEqual(self.hooks[self.ours].of("/elsewhere"), [])

    def test_certificates_of_converters_are_refused_alike(self):
        for number, servers in enumerate(self.others.values()):
            plural, kind = f"locks{number}", f"Lock{number}"
            self.define(conversions.good, servers, plural=plural, kind=kind)
            for theirs, ours in self.both("a", plural, kind):
                self.assertEqual(ours, theirs)
            for hooks in servers.values():
                self.assertEqual(hooks.calls, [])


if __name__ == "__main__":
    unittest.main()
