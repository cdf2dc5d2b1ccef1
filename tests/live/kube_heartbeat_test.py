#!/usr/bin/python3
"""Heartbeats: a PUT of a Lease that changes only its time takes a short path, and has the result that it has otherwise."""
import copy
import itertools
import json
import unittest
import urllib.error
import urllib.request

from kube_write_test import KubeTest

LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
TIME = "2026-11-19T20:00:{:02}.123456Z"
LEASE = {"kind": "Lease", "apiVersion": "coordination.k8s.io/v1",
         "metadata": {"name": "a", "labels": {"a": "b"}, "annotations": {"quote": "a \"b\" \\ é"}},
         "spec": {"holderIdentity": "n", "leaseDurationSeconds": 40, "renewTime": TIME.format(0)}}


def compact(value):
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


# What clients may send besides a new time: the change, and whether the short path takes it.
def nothing(lease):
    pass


def reorder(lease):
    for member in ("metadata", "spec"):
        lease[member] = dict(reversed(lease[member].items()))


def without(path):
    def change(lease):
        for name in path[:-1]:
            lease = lease[name]
        del lease[path[-1]]
    return change


def with_value(path, value):
    def change(lease):
        for name in path[:-1]:
            lease = lease.setdefault(name, {})
        lease[path[-1]] = value
    return change


CHANGES = {
    "only the time": (nothing, True),
    "in another order": (reorder, True),
    "the same time": (with_value(["spec", "renewTime"], TIME.format(0)), False),
    "no kind": (without(["kind"]), False),
    "another kind": (with_value(["kind"], "Pod"), False),
    "no uid": (without(["metadata", "uid"]), False),
    "another uid": (with_value(["metadata", "uid"], "1"), False),
    "another name": (with_value(["metadata", "name"], "b"), False),
    "no version": (without(["metadata", "resourceVersion"]), False),
    "an old version": (with_value(["metadata", "resourceVersion"], "1"), False),
    "a version with a zero": (with_value(["metadata", "resourceVersion"], "0"), False),
    "another label": (with_value(["metadata", "labels", "a"], "c"), False),
    "no labels": (without(["metadata", "labels"]), False),
    "a holder": (with_value(["spec", "holderIdentity"], "m"), False),
    "a wrong duration": (with_value(["spec", "leaseDurationSeconds"], -1), False),
    "an unknown field": (with_value(["spec", "more"], 1), False),
    "a time of seconds": (with_value(["spec", "renewTime"], "2026-11-19T20:00:10Z"), False),
    "a time elsewhere": (with_value(["spec", "renewTime"], "2026-11-19T20:00:10.123456+01:00"), False),
    "no day": (with_value(["spec", "renewTime"], "2026-02-30T20:00:10.123456Z"), False),
    "no time": (with_value(["spec", "renewTime"], "tomorrow at the same time.."), False),
    "a number": (with_value(["spec", "renewTime"], 7), False),
    "managers": (with_value(["metadata", "managedFields"], [{"manager": "m", "operation": "Update"}]), False),
}


class Renewals(KubeTest):
    more_args = ()

    def serving(self, args=(), **options):
        """With one thread, because each learns by its first ordinary update that there are no policies."""
        return super().serving(args=[*args, "--io-threads=1", *self.more_args], **options)

    def setUp(self):
        super().setUp()
        self.before = 0
        self.renew(self.lease("first"), nothing, "application/json")
        self.before = self.heartbeats()

    def heartbeats(self):
        """How many there were since the start of the test."""
        with urllib.request.urlopen(self.vigil.url + "/metrics", timeout=60) as page:
            for line in page.read().decode().splitlines():
                if line.startswith("vigil_kube_heartbeats_total "):
                    return int(line.split()[1]) - self.before
        self.fail("no such metric")

    def lease(self, name, **spec):
        code, made = self.send("POST", LEASES, {
            **LEASE, "metadata": {**LEASE["metadata"], "name": name}, "spec": {**LEASE["spec"], **spec}})
        self.assertEqual(code, 201, made)
        return made

    def renew(self, lease, change, content_type):
        """Sends the Lease with a new time and the change; returns the answer and what is stored then, both without what differs between
        any two Leases."""
        sent = copy.deepcopy(lease)
        sent["spec"]["renewTime"] = TIME.format(10)
        change(sent)
        name = lease["metadata"]["name"]
        code, answer = self.send("PUT", f"{LEASES}/{name}", compact(sent), content_type)
        texts = [json.dumps(value) for value in (answer, self.send("GET", f"{LEASES}/{name}")[1])]
        for own in ("uid", "creationTimestamp"):
            texts = [text.replace(lease["metadata"][own], own) for text in texts]
        texts = [text.replace(json.dumps(lease["metadata"]["resourceVersion"]), '"old"') for text in texts]
        version = json.dumps(answer["metadata"].get("resourceVersion"))
        return code, *(json.loads(text.replace(version, '"new"').replace(name, "NAME")) for text in texts)


class HeartbeatTest(Renewals):
    def test_the_result_is_that_of_an_ordinary_update(self):
        for number, (what, (change, short)) in enumerate(CHANGES.items()):
            with self.subTest(what):
                before = self.heartbeats()
                ordinary = self.renew(self.lease(f"x{number}"), change, "application/json; charset=utf-8")
                self.assertEqual(self.heartbeats(), before, "this type is not that of the short path")
                self.assertEqual(self.renew(self.lease(f"y{number}"), change, "application/json"), ordinary)
                self.assertEqual(self.heartbeats() - before, int(short))

    def test_a_watch_sees_the_new_time(self):
        lease = self.lease("a")
        url = f"http://127.0.0.1:{self.kube_port}{LEASES}?watch=1&resourceVersion={lease['metadata']['resourceVersion']}"
        with urllib.request.urlopen(url, timeout=60) as events:
            for second in range(1, 20):
                lease["spec"]["renewTime"] = TIME.format(second)
                code, lease = self.send("PUT", f"{LEASES}/a", compact(lease))
                self.assertEqual(code, 200, lease)
                self.assertEqual(json.loads(events.readline()), {"type": "MODIFIED", "object": lease})
        self.assertEqual(self.heartbeats(), 19)

    def test_a_version_that_was_overtaken_is_a_conflict(self):
        first = self.lease("a")
        sent = copy.deepcopy(first)
        sent["spec"]["renewTime"] = TIME.format(1)
        self.assertEqual(self.send("PUT", f"{LEASES}/a", compact(sent))[0], 200)
        code, status = self.send("PUT", f"{LEASES}/a", compact(sent))
        self.assertEqual((code, status["reason"]), (409, "Conflict"))
        self.assertEqual(self.heartbeats(), 1)

    def test_many_at_once_leave_one_winner_for_each_version(self):
        """All of one version at the same time: one is written, the others are conflicts."""
        import concurrent.futures
        lease = self.lease("a")
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            for turn in range(10):
                bodies = []
                for second in range(16):
                    lease["spec"]["renewTime"] = f"2026-11-19T21:{turn:02}:{second:02}.000000Z"
                    bodies.append(compact(lease))
                answers = list(pool.map(lambda body: self.send("PUT", f"{LEASES}/a", body), bodies))
                self.assertEqual(sorted(code for code, _ in answers), [200] + [409] * 15)
                lease = next(answer for code, answer in answers if code == 200)

    def test_policies_and_managers_decide_as_ever(self):
        rules = [{"apiGroups": ["coordination.k8s.io"], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["leases"]}]
        group = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolic"
        self.send("POST", f"{group}ies", {"metadata": {"name": "p"}, "spec": {
            "matchConstraints": {"resourceRules": rules},
            "validations": [{"expression": "object.spec.renewTime != oldObject.spec.renewTime && false", "message": "no renewals"}]}})
        self.send("POST", f"{group}ybindings", {"metadata": {"name": "p"}, "spec": {"policyName": "p", "validationActions": ["Deny"]}})
        lease = self.lease("a")
        for second in itertools.count(1):
            lease["spec"]["renewTime"] = TIME.format(second)
            code, answer = self.send("PUT", f"{LEASES}/a", compact(lease))
            if code != 200:
                break
            lease = answer
            self.assertLess(second, 50, "the policy is not applied")
        self.assertEqual(code, 422, answer)
        self.assertIn("no renewals", answer["message"])


# -- The same in protobuf, which kubelets send --

PROTOBUF = "application/vnd.kubernetes.protobuf"
MAGIC = b"k8s\0"
METADATA, SPEC, VERSION, HOLDER, RENEWED = (2, 1), (2, 2), (2, 1, 6), (2, 2, 1), (2, 2, 4)
SECONDS = 1_795_000_000


def varint(value):
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def read_varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        shift += 7
        at += 1
        if data[at - 1] < 128:
            return value, at


def parse(message):
    """[number, value] of each field; a value is a number or bytes."""
    found, at = [], 0
    while at < len(message):
        tag, at = read_varint(message, at)
        value, at = read_varint(message, at)
        if tag & 7 == 2:
            value, at = message[at:at + value], at + value
        found.append([tag >> 3, value])
    return found


def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def change_field(message, path, change):
    """The message with another value of the field at that path, which change makes of the one that it has."""
    inner = change if len(path) == 1 else lambda value: change_field(value, path[1:], change)
    return b"".join(field(number, inner(value) if number == path[0] else value) for number, value in parse(message))


def timestamp(seconds, nanos):
    return field(1, seconds) + field(2, nanos)


def set_to(path, value):
    return lambda body: change_field(body, path, lambda _: value)


def more(path, added):
    return lambda body: change_field(body, path, lambda message: message + added)


# What is sent besides a new time: the change, and whether the short path takes it. Unknown fields are skipped.
IN_PROTOBUF = {
    "only the time": (lambda body: body, True),
    "a time of microseconds": (set_to(RENEWED, timestamp(SECONDS, 123_456_000)), True),
    "a time of nanoseconds": (set_to(RENEWED, timestamp(SECONDS, 123_456_789)), True),
    "no nanoseconds": (set_to(RENEWED, field(1, SECONDS)), True),
    "too many nanoseconds": (set_to(RENEWED, timestamp(SECONDS, 1_000_000_000)), True),
    "a time before the year 1": (set_to(RENEWED, timestamp((1 << 64) - 10 ** 12, 0)), False),
    "an unknown field of the time": (more(RENEWED, field(3, 1)), True),
    "two times": (more(SPEC, field(4, timestamp(SECONDS, 0))), True),
    "the same time": (set_to(RENEWED, timestamp(1_795_118_400, 123_456_000)), False),
    "another holder": (set_to(HOLDER, b"m"), False),
    "a holder that is not text": (set_to(HOLDER, b"\xff"), False),
    "an old version": (set_to(VERSION, b"1"), False),
    "no version": (set_to(VERSION, b""), False),
    "another label": (more(METADATA, field(11, field(1, b"c") + field(2, b"d"))), False),
    "an unknown field": (more(SPEC, field(90, b"x")), True),
    "an unknown field around it": (lambda body: body + field(90, b"x"), True),
    "a length that is too long": (lambda body: body[:-1], False),
    "nothing": (lambda body: b"", False),
}


class ProtobufTest(Renewals):
    def fetch(self, method, name, body=None, content_type=PROTOBUF):
        """The status and the bytes of the answer."""
        request = urllib.request.Request(f"http://127.0.0.1:{self.kube_port}{LEASES}/{name}", body, method=method,
                                         headers={"Accept": PROTOBUF, "Content-Type": content_type})
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as refusal:
            return refusal.code, refusal.read()

    def renew_in_protobuf(self, name, change, content_type):
        lease = self.lease(name)
        code, sent = self.fetch("GET", name)
        self.assertEqual((code, sent[:4]), (200, MAGIC))
        sent = MAGIC + change(change_field(sent[4:], RENEWED, lambda _: timestamp(SECONDS, 0)))
        code, answer = self.fetch("PUT", name, sent, content_type)
        stored, read = self.send("GET", f"{LEASES}/{name}")[1], self.fetch("GET", name)[1]
        if code == 200:
            self.assertEqual(answer, read)
        text = json.dumps(stored)
        for own in ("uid", "creationTimestamp"):
            text = text.replace(lease["metadata"][own], own)
        moved = stored["metadata"]["resourceVersion"] != lease["metadata"]["resourceVersion"]
        text = text.replace(json.dumps(stored["metadata"]["resourceVersion"]), '"version"')
        return code, moved, json.loads(text.replace(json.dumps(name), '"NAME"'))

    def test_the_result_is_that_of_an_ordinary_update(self):
        for number, (what, (change, short)) in enumerate(IN_PROTOBUF.items()):
            with self.subTest(what):
                before = self.heartbeats()
                ordinary = self.renew_in_protobuf(f"x{number}", change, PROTOBUF + "; charset=utf-8")
                self.assertEqual(self.heartbeats(), before, "this type is not that of the short path")
                self.assertEqual(self.renew_in_protobuf(f"y{number}", change, PROTOBUF), ordinary)
                self.assertEqual(self.heartbeats() - before, int(short))

    def test_protobuf_in_a_request_for_json_is_refused(self):
        self.lease("a")
        sent = self.fetch("GET", "a")[1]
        sent = MAGIC + change_field(sent[4:], RENEWED, lambda _: timestamp(SECONDS, 0))
        self.assertEqual(self.fetch("PUT", "a", sent, "application/json")[0], 400)


class ManagedTest(Renewals):
    more_args = ("--kube-managed-fields=all",)

    def test_the_time_of_a_manager_follows(self):
        lease = self.lease("a")
        self.assertTrue(lease["metadata"]["managedFields"])
        lease["spec"]["renewTime"] = TIME.format(1)
        code, answer = self.send("PUT", f"{LEASES}/a?fieldManager=other", compact(lease))
        self.assertEqual(code, 200, answer)
        self.assertIn("other", [entry["manager"] for entry in answer["metadata"]["managedFields"]])
        self.assertEqual(self.heartbeats(), 0)


if __name__ == "__main__":
    unittest.main()
