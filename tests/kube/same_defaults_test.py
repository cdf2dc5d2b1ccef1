#!/usr/bin/python3
"""Writes the same objects of every built-in kind to a real kube-apiserver and to Vigil: with the required fields alone, with
everything in which Kubernetes fills something in, and with all of it given. What is stored must be the same, apart from what the
lists below name. tools/build-kube builds the real kube-apiserver."""
import json
import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/live"))
sys.path.insert(0, str(ROOT / "tests/kube"))
from same_writes_test import Client  # noqa: E402
from samples import WITHOUT_ADMISSION, samples  # noqa: E402
from side_by_side import SideBySide  # noqa: E402

# Different for each object or server.
OWN = ("uid", "resourceVersion", "selfLink")
TIME = re.compile(r'"2\d{3}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"')

# Set by Kubernetes neither when it decodes an object nor from its contents: by plural, the path in the object.
NOT_DEFAULTS = {
    # addresses and ports, which are allocated
    "services": ("spec.clusterIP", "spec.clusterIPs", "spec.ipFamilies", "spec.ipFamilyPolicy", "spec.ports.[].nodePort",
                 "spec.healthCheckNodePort"),
    # counts changes of metadata, too
    "endpointslices": ("metadata.generation",),
    # set by controllers within kube-apiserver
    "apiservices": ("status",), "flowschemas": ("status",),
    # the user who sent the request
    "certificatesigningrequests": ("spec.username", "spec.uid", "spec.groups", "spec.extra", "metadata.managedFields"),
}
MERGE = "application/merge-patch+json"
APPLY = "application/apply-patch+yaml"


def remove(node, path):
    head, _, rest = path.partition(".")
    if head == "[]":
        for item in node or []:
            remove(item, rest)
    elif rest and isinstance(node, dict):
        remove(node.get(head), rest)
    elif isinstance(node, dict):
        node.pop(head, None)


def compared(plural, answer):
    """Without uid, versions, and times, which have the same form."""
    text = TIME.sub('"TIME"', json.dumps(answer))
    metadata = answer.get("metadata", {})
    if metadata.get("uid"):
        text = text.replace(metadata["uid"], "UID")
    answer = json.loads(text)
    for name in OWN:
        answer.get("metadata", {}).pop(name, None)
    for path in NOT_DEFAULTS.get(plural, ()):
        remove(answer, path)
    return answer


def without_owners(answer):
    """Vigil owns nothing before the first apply."""
    answer.get("metadata", {}).pop("managedFields", None)
    return answer


class SameDefaults(SideBySide):
    client = Client
    # Without what kube-controller-manager does to objects, because none runs beside the kube-apiserver.
    flags = ("--kube-garbage-collector=false", "--kube-quota-controller=false", "--kube-policy-status=false",
             WITHOUT_ADMISSION.replace("--disable", "--kube-disable"))
    their_flags = ("--request-timeout=30s", WITHOUT_ADMISSION)

    def send_both(self, *case):
        return [server.send(*case) for server in (self.theirs, self.ours)]

    def assert_same(self, plural, answers, code, shown=without_owners):
        (their_code, theirs), (our_code, ours) = answers
        self.assertEqual(their_code, code, theirs)
        self.assertEqual(our_code, code, ours)
        self.assertEqual(shown(compared(plural, ours)), shown(compared(plural, theirs)))

    def each(self, check):
        """Each test has its own names, because some objects are not removed at once."""
        for collection, sample in samples():
            plural, metadata = collection.rpartition("/")[2], dict(sample["metadata"])
            if sample.get("spec", {}).get("service"):  # Vigil refuses to register other API servers
                continue
            if plural not in ("apiservices", "ipaddresses"):
                metadata["name"] += "-" + check.__name__
            with self.subTest(f"{collection} {metadata['name']}"):
                check(collection, plural, {**sample, "metadata": metadata})

    def create(self, collection, plural, sample):
        answers = self.send_both("POST", collection + "?dryRun=All", sample)
        self.assert_same(plural, answers, 201)
        if plural == "jobs":  # the labels that are made from the uid cannot be given
            return
        given = {**compared(plural, answers[0][1]), "metadata": sample["metadata"]}
        time = '"2026-01-02T03:04:05.000006Z"' if plural in ("leases", "events") else "null"
        again = json.loads(json.dumps(given).replace('"TIME"', time))
        self.assert_same(plural, self.send_both("POST", collection + "?dryRun=All", again), 201)

    def test_objects_that_are_created(self):
        """Both what is omitted and what is given: the answer is sent again as a new object."""
        self.each(self.create)

    def change(self, collection, plural, sample):
        path = f"{collection}/{sample['metadata']['name']}"
        answers = self.send_both("POST", collection, sample)
        self.assert_same(plural, answers, 201)
        made = answers[1][1]
        code, again = self.ours.send("PUT", path, made)
        self.assertEqual(code, 200, again)
        self.assertEqual(again["metadata"]["resourceVersion"], made["metadata"]["resourceVersion"])
        patched = self.send_both("PATCH", path, {"metadata": {"labels": {"x": "y"}}}, MERGE)
        if patched[0][0] == 200:  # Kubernetes takes raw JSON in an object for changed
            self.assert_same(plural, patched, 200)
        self.send_both("DELETE", path + "?gracePeriodSeconds=0")

    def test_objects_that_are_changed(self):
        """An object that is written as it was read stays as it is, and a patch changes nothing but what it says."""
        self.each(self.change)

    def apply(self, collection, plural, sample):
        path = f"{collection}/{sample['metadata']['name']}"
        _, made = self.theirs.send("POST", collection + "?dryRun=All", sample)
        config = {"apiVersion": made["apiVersion"], "kind": made["kind"], **sample}
        answers = self.send_both("PATCH", path + "?fieldManager=tester", config, APPLY)
        self.assert_same(plural, answers, 201, shown=lambda answer: answer)
        if config.keys() - {"apiVersion", "kind", "metadata"}:  # a configuration without fields owns nothing
            again = self.ours.send("PATCH", path + "?fieldManager=tester", config, APPLY)
            self.assertEqual(again, (200, answers[1][1]))
        self.send_both("DELETE", path + "?gracePeriodSeconds=0")

    def test_objects_that_are_applied(self):
        """The manager owns what it applied and no default; the same configuration changes nothing."""
        self.each(self.apply)


if __name__ == "__main__":
    unittest.main()
