#!/usr/bin/python3
"""The managers of every object from its create on, with --kube-managed-fields=all: the same requests to a real kube-apiserver and
to Vigil, after which metadata.managedFields must be the same, entry by entry, apart from their times. Random sequences follow the
listed cases; SEED= and ROUNDS= choose others. tools/build-kube builds the real kube-apiserver."""
import json
import os
import pathlib
import random
import subprocess
import sys
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/live"))
sys.path.insert(0, str(ROOT / "tests/kube"))
import apiserver_test  # noqa: E402
from samples import WITHOUT_ADMISSION, samples  # noqa: E402
from side_by_side import SideBySide  # noqa: E402
from same_applies_test import (  # noqa: E402
    CASES, CMS, CRD, CRDS, DEPLOYMENTS, FORCE, KINDS, PODS, SERVICES, THINGS, applied, cm, container, deployment, service,
    thing, without_empty)
from same_applies_test import what_counts as answer  # noqa: E402
from same_writes_test import LEASES, MERGE, Client, normal, pod  # noqa: E402

JSON, STRATEGIC, JSON_PATCH = "application/json", "application/strategic-merge-patch+json", "application/json-patch+json"
APPLY = "application/apply-patch+yaml"
SECRETS = "/api/v1/namespaces/default/secrets"
NAMESPACES = "/api/v1/namespaces"
KUBECTL = os.environ.get("VIGIL_KUBECTL", str(apiserver_test.KUBE / "kubectl"))


def managers(sent):
    """The code, and the entries without times; of an error what a client sees of it."""
    code, body = sent
    if not isinstance(body, dict) or body.get("kind") == "Status":
        body = normal(body)
        details = body.get("details") if isinstance(body, dict) else None
        if details and "causes" in details:  # Kubernetes returns them in random order
            details["causes"] = sorted(details["causes"], key=str)
        return code, body
    # Controllers within kube-apiserver write the status of definitions and of flow schemas at any time.
    entries = [{**entry, "time": "T" if "time" in entry else None} for entry in body["metadata"].get("managedFields", [])
               if entry["manager"] not in ("kube-apiserver", "api-priority-and-fairness-config-consumer-v1")]
    return code, sorted(entries, key=lambda entry: json.dumps({**entry, "fieldsV1": 0}, sort_keys=True))


def agent(text):
    return JSON, "application/json", {"User-Agent": text}


def status_of(plural):
    """A status that the kind has, if it has one, with everything that Go writes."""
    condition = {"type": "X", "status": "True", "lastTransitionTime": "2026-01-02T03:04:05Z"}
    more = {"deployments": {"lastUpdateTime": "2026-01-02T03:04:05Z"}, "pods": {"lastProbeTime": None}, "nodes": {
        "lastHeartbeatTime": None}, "persistentvolumeclaims": {"lastProbeTime": None}, "services": {"reason": "R", "message": ""}}
    if plural in ("deployments", "statefulsets", "daemonsets", "replicasets", "replicationcontrollers"):
        return {"observedGeneration": 1, "conditions": [{**condition, **more.get(plural, {})}], **(
            {} if plural == "deployments" else {"numberReady": 0} if plural == "daemonsets" else {"replicas": 1})}
    if plural in more:
        return {"conditions": [{**condition, **more[plural]}]}
    return {"phase": "Available"} if plural == "persistentvolumes" else None


# What Vigil does not own as Kubernetes does: the owners of labels that a job gets from its template, and of an empty list that is
# written always; or cannot compare, because Kubernetes takes raw JSON in an object for changed.
NOT_THE_SAME = ("jobs-1", "persistent-volumes-30", "plain-24", "policies-18", "workloads-19", "devices-3", "devices-5")


ENTRY = {"manager": "old", "operation": "Update", "apiVersion": "v1", "time": "2026-01-02T03:04:05Z", "fieldsType": "FieldsV1",
         "fieldsV1": {"f:data": {"f:a": {}}}}
CREATES = [
    # The manager's name.
    ("POST", CMS, cm("agent", {"a": "1"}), *agent("kubectl/v1.36 (linux)")),
    ("POST", CMS, cm("agent2", {"a": "1"}), *agent("/v1.36")),
    ("POST", CMS, cm("agent3", {"a": "1"}), *agent("a\tb" + "c" * 200)),
    ("POST", CMS + "?fieldManager=mine", cm("agent4", {"a": "1"}), *agent("kubectl/v1.36")),
    # Nothing is owned, or empty values.
    ("POST", CMS, cm("empty")),
    ("POST", CMS, cm("empty2", {}, labels={}, annotations={}, finalizers=[], ownerReferences=[])),
    ("POST", CMS, cm("empty3", {"a": ""}, labels={"a": ""})),
    ("POST", SECRETS, {"metadata": {"name": "texts"}, "stringData": {"a": "1"}, "data": {"b": "Yg=="}, "immutable": False}),
    ("PUT", SECRETS + "/texts?fieldManager=u", {"metadata": {"name": "texts"}, "type": "Opaque", "stringData": {"c": "1"}}),
    ("PATCH", SECRETS + "/texts?fieldManager=w", {"stringData": {"d": "1"}}, MERGE),
    ("POST", NAMESPACES, {"metadata": {"name": "spaced"}}),
    ("PATCH", NAMESPACES + "/spaced?fieldManager=u", {"metadata": {"labels": {"a": "b"}}}, MERGE),
    ("POST", NAMESPACES, {"metadata": {"name": "spaced2", "labels": {"a": "b"}}, "spec": {"finalizers": ["kubernetes", "e.com/f"]}}),
    # Managers that the client sends.
    ("POST", CMS + "?fieldManager=new", cm("sent", {"a": "1", "b": "2"}, managedFields=[ENTRY])),
    ("POST", CMS + "?fieldManager=new", cm("sent2", {"a": "1", "b": "2"}, managedFields=[])),
    ("POST", CMS + "?fieldManager=new", cm("sent3", {"a": "1", "b": "2"}, managedFields=[{}])),
    ("POST", CMS + "?fieldManager=new", cm("sent4", {"a": "1"}, managedFields=[{**ENTRY, "fieldsType": "X"}])),
    ("POST", CMS + "?fieldManager=new", cm("sent5", {"a": "1"}, managedFields=[{**ENTRY, "manager": "new", "operation": "Apply"}])),
    ("POST", CMS + "?fieldManager=old", cm("sent6", {"a": "1", "c": "2"}, managedFields=[ENTRY])),
    # Updates of what was created, resets, and the same object again.
    ("PUT", CMS + "/sent?fieldManager=put", cm("sent", {"a": "1", "b": "3"})),
    ("PUT", CMS + "/sent?fieldManager=put", cm("sent", {"a": "1", "b": "3"})),
    ("PATCH", CMS + "/sent?fieldManager=put", {"metadata": {"managedFields": []}}, MERGE),
    ("PUT", CMS + "/sent?fieldManager=put", cm("sent", {"a": "2"})),
    applied(CMS, cm("sent", {"a": "3"}), "applier"),
    applied(CMS, cm("sent", {"a": "3"}), "applier", FORCE),
    ("PUT", CMS + "/sent2?fieldManager=put", cm("sent2", {"a": "2"}, managedFields=[ENTRY])),
    ("PUT", CMS + "/sent3?fieldManager=put", cm("sent3", {"a": "2"}, managedFields=[{}])),
    # A PUT and an apply that create.
    ("PUT", LEASES + "/put?fieldManager=put", {"metadata": {"name": "put"}, "spec": {"holderIdentity": "a"}}),
    ("PUT", LEASES + "/put?fieldManager=put2", {"metadata": {"name": "put"}, "spec": {"holderIdentity": "b", "leaseDurationSeconds": 1}}),
    applied(CMS, cm("made", {"a": "1"}), "applier"),
    ("PATCH", CMS + "/made?fieldManager=u", {"data": {"a": "2", "b": "1"}}, MERGE),
    applied(CMS, cm("made", {"a": "1"}), "applier"),
    # What is created conflicts with an apply.
    ("POST", CMS + "?fieldManager=creator", cm("taken", {"a": "1", "b": "1"})),
    applied(CMS, cm("taken", {"a": "2"}), "applier"),
    applied(CMS, cm("taken", {"a": "1", "c": "1"}), "applier"),
    applied(CMS, cm("taken", {"a": "2"}), "applier", FORCE),
    ("PATCH", CMS + "/taken?fieldManager=creator", {"data": {"b": None}}, MERGE),
    # Scales.
    ("POST", DEPLOYMENTS + "?fieldManager=creator", deployment("scaled", container("a"), replicas=1)),
    ("PUT", DEPLOYMENTS + "/scaled/scale?fieldManager=scaler", {
        "apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "scaled", "namespace": "default"}, "spec": {"replicas": 2}}),
    ("GET", DEPLOYMENTS + "/scaled"),
    ("PATCH", DEPLOYMENTS + "/scaled/scale?fieldManager=other", {"spec": {"replicas": 3}}, MERGE),
    ("GET", DEPLOYMENTS + "/scaled"),
    ("PATCH", DEPLOYMENTS + "/scaled?fieldManager=creator", {"spec": {"replicas": 4}}, MERGE),
    ("PATCH", DEPLOYMENTS + "/scaled/scale?fieldManager=other", {"spec": {"replicas": 4}}, MERGE),
    ("GET", DEPLOYMENTS + "/scaled"),
    ("PATCH", DEPLOYMENTS + "/scaled/scale?fieldManager=other", {"spec": {"replicas": 5}}, MERGE),
    ("GET", DEPLOYMENTS + "/scaled"),
    ("PATCH", DEPLOYMENTS + "/scaled/scale?fieldManager=other", {"spec": {"replicas": 0}}, MERGE),
    ("GET", DEPLOYMENTS + "/scaled"),
    ("PATCH", DEPLOYMENTS + "/scaled/scale?fieldManager=other", {"spec": {"replicas": 1}}, MERGE),
    ("GET", DEPLOYMENTS + "/scaled"),
    ("PATCH", DEPLOYMENTS + "/scaled/status?fieldManager=status", {"status": {"observedGeneration": 1}, "spec": {"replicas": 9}}, MERGE),
    # A definition's objects.
    ("POST", THINGS + "?fieldManager=creator", thing("t", spec={
        "size": 1, "tags": ["b", "a"], "plain": ["x"], "parts": [{"name": "b"}, {"name": "a", "port": 8, "more": {"x": "y"}}],
        "whole": {"a": "1"}, "map": {"k": "v"}, "free": {"a": {"b": [1]}, "c": None}, "either": 5}, status={"phase": "x"})),
    ("PATCH", THINGS + "/t?fieldManager=u", {"spec": {"tags": ["b", "c"], "map": {"l": "v"}}}, MERGE),
    ("PATCH", THINGS + "/t/status?fieldManager=s", {"status": {"phase": "y", "conditions": [{"type": "A"}]}, "spec": {"size": 2}}, MERGE),
    ("PUT", THINGS + "/t?fieldManager=u", thing("t", spec={"size": 2})),
    ("POST", THINGS + "?fieldManager=creator", thing("v", spec={}, metadata={"name": "v", "labels": {"a": "b"}})),
    ("POST", THINGS + "?fieldManager=creator", thing("w", metadata={"name": "w", "managedFields": []})),
    # Services get addresses, which have no owner.
    ("POST", SERVICES + "?fieldManager=creator", {"metadata": {"name": "addressed"},
                                                  "spec": {"ports": [{"port": 80}], "type": "NodePort"}}),
    ("PATCH", SERVICES + "/addressed?fieldManager=u", {"spec": {"ports": [{"port": 81, "name": "b"}]}}, STRATEGIC),
    ("PATCH", SERVICES + "/addressed?fieldManager=u", {"spec": {"type": "ClusterIP"}}, MERGE),
    ("POST", SERVICES + "?fieldManager=creator", service("headless", {"port": 80}, type="ClusterIP")),
    # Subresources of pods.
    ("POST", PODS + "?fieldManager=creator", {"metadata": {"name": "parts"}, "spec": {"nodeName": "nowhere", "containers": [
        {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}]}}),
    ("PATCH", PODS + "/parts/ephemeralcontainers?fieldManager=debugger", {"spec": {"ephemeralContainers": [container("d")]}}, STRATEGIC),
    ("PATCH", PODS + "/parts/status?fieldManager=kubelet", {"status": {"phase": "Running", "podIP": "10.0.0.1"}}, STRATEGIC),
    ("GET", PODS + "/parts"),
    ("POST", PODS + "?fieldManager=creator", pod("bound", None)),
    *[(method, PODS + "/bound" + path, *body) for method, path, *body in (
        ("POST", "/binding?fieldManager=scheduler", {"metadata": {"name": "bound"}, "target": {"kind": "Node", "name": "n"}}),
        ("GET", ""))],
    # More updaters than are kept.
    ("POST", CMS + "?fieldManager=u00", cm("many", {"a": "0"})),
    *[("PATCH", f"{CMS}/many?fieldManager=u{i:02}", {"data": {f"k{i}": "1"}}, MERGE) for i in range(1, 14)],
    # A create of what exists, and a dry run.
    ("POST", CMS + "?fieldManager=again", cm("many", {"a": "0"})),
    ("POST", CMS + "?fieldManager=dry&dryRun=All", cm("dry", {"a": "0"})),
]


def random_writes(seed, count):
    """Requests of several managers that create, apply, replace, patch and reset."""
    rng = random.Random(seed)
    path, make = KINDS[seed % len(KINDS)]
    yield "POST", f"{path}?fieldManager=creator", without_empty(make(rng))
    for _ in range(count):
        kind, body = rng.random(), make(rng)
        part = without_empty({k: v for k, v in body.items() if k not in ("apiVersion", "kind", "metadata")})
        if kind < 0.4:
            yield applied(path, body, f"m{rng.randint(0, 3)}", *([FORCE] if rng.random() < 0.5 else []))
        elif kind < 0.65:
            yield "PUT", f"{path}/r?fieldManager=u{rng.randint(0, 2)}", without_empty(body)
        elif kind < 0.95:
            yield "PATCH", f"{path}/r?fieldManager=u{rng.randint(0, 2)}", part, MERGE
        else:
            yield "PATCH", f"{path}/r?fieldManager=u0", {"metadata": {"managedFields": [{}]}}, MERGE
    yield "PATCH", f"{path}/r", {"metadata": {"finalizers": None}}, MERGE
    yield "DELETE", f"{path}/r"


class SameManagers(SideBySide):
    client = Client
    flags = (*SideBySide.flags[:3], WITHOUT_ADMISSION.replace("--disable", "--kube-disable"), "--kube-managed-fields=all")
    their_flags = ("--request-timeout=30s", WITHOUT_ADMISSION)

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        for client in (cls.ours, cls.theirs):
            code, body = client.send("POST", CRDS, CRD)
            assert code == 201, body
            end = time.monotonic() + apiserver_test.READY_SECONDS
            while client.send("GET", THINGS)[0] != 200:
                assert time.monotonic() < end, "the kind is not served"
                time.sleep(0.05)

    def same(self, *case):
        self.compare(managers, *case)

    def test_every_kind(self):
        """Created, replaced, patched, applied with conflicts and by force, its status written, and created again as it was read."""
        for collection, sample in samples():
            plural, name = collection.rpartition("/")[2], sample["metadata"]["name"]
            # Vigil refuses to register other API servers.
            if sample.get("spec", {}).get("service") or name in NOT_THE_SAME:
                continue
            path = f"{collection}/{name}"
            self.same("POST", collection + "?fieldManager=creator", sample)
            made = self.theirs.send("GET", path)[1]
            labels = {"metadata": {"labels": {"x": "y"}, "annotations": {"a": "b"}}}
            self.same("PATCH", path + "?fieldManager=patcher", labels, MERGE)
            status = status_of(plural)
            if status:
                self.same("PATCH", path + "/status?fieldManager=status", {"status": status}, MERGE)
            config = {"apiVersion": made.get("apiVersion"), "kind": made.get("kind"), **sample}
            self.same("PATCH", path + "?fieldManager=applier", {**config, "metadata": {**sample["metadata"], "labels": {"x": "z"}}}, APPLY)
            self.same("PATCH", path + "?fieldManager=applier&force=true", config, APPLY)
            for server in (self.theirs, self.ours):
                server.send("DELETE", path + "?gracePeriodSeconds=0")

    def test_listed_requests(self):
        for case in CREATES:
            self.same(*case)

    def test_applies(self):
        """Those of same_applies_test.py, whose objects now have managers before they are applied to."""
        for case in CASES:
            theirs, ours = answer(self.theirs.send(*case)), answer(self.ours.send(*case))
            with self.subTest(case=str(case)[:400]):
                if theirs[0] < 300 and theirs[1]["kind"] != "Scale":
                    theirs, ours = [(code, body["metadata"].get("managedFields")) for code, body in (theirs, ours)]
                self.assertEqual(ours, theirs)

    def test_random_writes(self):
        first, rounds = int(os.environ.get("SEED", "1")), int(os.environ.get("ROUNDS", "6"))
        for seed in range(first, first + rounds):
            for case in random_writes(seed, 15):
                self.same(*case)

    def kubectl(self, server, config, *args):
        done = subprocess.run(
            [KUBECTL, f"--server={server.url}", "--insecure-skip-tls-verify", f"--token={server.token or ''}", "--cache-dir=/dev/null/x",
             *args], input=json.dumps(config), capture_output=True, text=True, timeout=60, env={"HOME": "/dev/null", "PATH": ""})
        return done.returncode, done.stdout, done.stderr

    def test_kubectl_changes_from_client_side_to_server_side_apply(self):
        """kubectl finds its own entry of client-side applies, and moves its fields to the server-side one."""
        first = deployment("moved", container("a"), replicas=1)
        second = deployment("moved", container("a", image="j"), container("b"), replicas=2)
        for config, args in ((first, ["apply", "-f-"]), (second, ["apply", "-f-"]),
                             (first, ["apply", "--server-side", "-f-"]), (second, ["apply", "--server-side", "-f-"]),
                             (first, ["apply", "--server-side", "--field-manager=other", "-f-"]),
                             (first, ["apply", "--server-side", "--field-manager=other", "--force-conflicts", "-f-"])):
            theirs, ours = (self.kubectl(server, config, *args) for server in (self.theirs, self.ours))
            with self.subTest(args=args):
                self.assertEqual(ours, theirs)
                self.same("GET", DEPLOYMENTS + "/moved")


if __name__ == "__main__":
    unittest.main()
