#!/usr/bin/python3
"""Sends broken objects of built-in kinds (validation_cases*.py) to a real kube-apiserver and to Vigil's own Kubernetes API. Code,
reason, message and causes of each answer must be the same. tools/build-kube builds the real kube-apiserver."""
import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/live"))
sys.path.insert(0, str(ROOT / "tests/kube"))
from side_by_side import SideBySide  # noqa: E402
from same_writes_test import Client, STRATEGIC, UID  # noqa: E402
import validation_cases as workloads  # noqa: E402
import validation_cases_cluster as cluster  # noqa: E402
from validation_cases import changed  # noqa: E402

# Kubernetes adds the difference of the two objects, as Go prints them.
DIFFERENCE = ("pod updates may not change fields other than", "spec is immutable after creation except",
              "spec.persistentvolumesource is immutable after creation")


def comparable(text):
    """The text without uids and differences."""
    text = UID.sub("UID", text)
    for mark in DIFFERENCE:
        if mark in text:
            return text[:text.index(mark) + len(mark)]
    return text


def what_counts(answer):
    """The code and the errors; objects that are accepted differ in their defaults."""
    code, body = answer
    if code < 300 or not isinstance(body, dict):
        return code, None
    details = body.get("details") or {}
    return (code, body.get("reason"), comparable(body.get("message", "")), details.get("kind"), details.get("group"),
            [(c.get("reason"), comparable(c.get("message", "")), c.get("field")) for c in details.get("causes", [])])


def requests():
    """(setup, method, path, body): most are refused, none of those without a change."""
    for path, base, changes in workloads.CREATES + cluster.CREATES:
        for change in [{}, *changes]:
            yield None, "POST", path + "?dryRun=All", changed(base, change)
    for path, base, changes in workloads.UPDATES + cluster.UPDATES:
        yield (path, base), "PUT", f"{path}/{base['metadata']['name']}?dryRun=All", base
        for change in changes:
            yield None, "PUT", f"{path}/{base['metadata']['name']}?dryRun=All", changed(base, change)
    for path, base, changes in cluster.STATUSES:
        yield (path, base), "PUT", f"{path}/{base['metadata']['name']}/status?dryRun=All", base
        for change in changes:
            yield None, "PUT", f"{path}/{base['metadata']['name']}/status?dryRun=All", changed(base, change)


# Patches of the pod that UPDATES has made: what it was given and what it was not.
POD_PATCHES = [{"priority": 7}, {"priority": None}, {"priorityClassName": "system-node-critical"}, {"preemptionPolicy": "Never"},
               {"serviceAccountName": "other"}, {"serviceAccount": "other"}, {"automountServiceAccountToken": False},
               {"hostNetwork": True}, {"hostNetwork": False}, {"shareProcessNamespace": False}, {"hostUsers": False},
               {"schedulerName": "x"}, {"terminationGracePeriodSeconds": 7}, {"enableServiceLinks": False}]


class SameValidation(SideBySide):
    client = Client
    flags = (*SideBySide.flags, "--kube-allow-privileged=false")  # as in Kubernetes

    def send(self, client, method, path, body):
        if method == "PUT":  # some kinds require the version of the object
            current = client.send("GET", path.partition("?")[0])[1]
            body = changed(body, {"metadata.resourceVersion": current["metadata"]["resourceVersion"]})
        return what_counts(client.send(method, path, body))

    def test_broken_objects_are_refused_alike(self):
        refused = 0
        for setup, *case in requests():
            if setup:
                for client in self.theirs, self.ours:
                    self.assertEqual(client.send("POST", *setup)[0], 201, setup)
            theirs, ours = self.send(self.theirs, *case), self.send(self.ours, *case)
            if "forwards no requests" in str(ours):  # what is valid is refused for that reason alone
                ours = (201, None)
            refused += theirs[0] == 422
            with self.subTest(case=str(case)[:400]):
                self.assertEqual(ours, theirs)
        self.assertGreater(refused, 200)
        path = f"{workloads.CORE}pods/{workloads.POD['metadata']['name']}?dryRun=All"
        for spec in POD_PATCHES:
            self.compare(what_counts, "PATCH", path, {"spec": spec}, STRATEGIC)


if __name__ == "__main__":
    unittest.main()
