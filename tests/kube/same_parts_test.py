#!/usr/bin/python3
"""The same requests to subresources of a real kube-apiserver and of Vigil's own Kubernetes API: evictions with disruption
budgets, ephemeral containers, resizes and approvals. tools/build-kube builds the real kube-apiserver."""
import base64
import itertools
import pathlib
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/live"))
sys.path.insert(0, str(ROOT / "tests/kube"))
from samples import samples  # noqa: E402
from side_by_side import SideBySide  # noqa: E402
from same_sequences_test import Peer  # noqa: E402
from same_writes_test import JSON_PATCH, MERGE, PODS, STRATEGIC, pod  # noqa: E402

BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
OLD = {"labels": {"old": "1"}, "annotations": {"old": "1"}, "finalizers": ["example.com/old"]}
NEW = {"labels": {"new": "1"}, "annotations": {"new": "1"}, "finalizers": ["example.com/new"],
       "ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": "u-1"}]}
REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"


def answer(sent):
    """The code; of a Status what a client sees of it; of an object nothing that the server chooses."""
    code, body = sent
    if not isinstance(body, dict):
        return code, body
    if body.get("kind") == "Status":
        details = body.get("details") or {}
        return code, body.get("status"), body.get("reason"), body.get("message"), details.get("causes"), \
            details.get("retryAfterSeconds")
    return code, body.get("kind")


def spec_of(sent):
    if sent[0] != 200:
        return answer(sent)
    return sent[0], sent[1].get("spec", {}).get("ephemeralContainers"), [
        (c["name"], c.get("resources")) for c in sent[1].get("spec", {}).get("containers", [])]


def debug(name, image="i"):
    return {"name": name, "image": image, "imagePullPolicy": "Always", "terminationMessagePath": "/dev/termination-log",
            "terminationMessagePolicy": "File", "resources": {}}


def eviction(name, **options):
    made = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": "default"}}
    return dict(made, deleteOptions=options) if options else made


class SameParts(SideBySide):
    client = Peer

    def both(self, *case):
        for client in (self.theirs, self.ours):
            code, body = client.send(*case)
            self.assertIn(code, (200, 201), (client.url, body))

    def same(self, *case, what=answer):
        self.compare(what, *case)

    def test_ephemeral_containers(self):
        self.both("POST", PODS, pod("eph"))
        path = f"{PODS}/eph/ephemeralcontainers"
        self.same("GET", path)
        add = {"spec": {"ephemeralContainers": [debug("one")]}}
        self.same("PATCH", path, add, STRATEGIC, what=spec_of)
        self.same("PATCH", path, {"spec": {"ephemeralContainers": [debug("two")]}}, STRATEGIC, what=spec_of)
        self.same("PATCH", path, {"spec": {"ephemeralContainers": [debug("two")]}}, MERGE)
        self.same("PATCH", path, [{"op": "remove", "path": "/spec/ephemeralContainers"}], JSON_PATCH)
        self.same("PATCH", path, {"spec": {"nodeName": "other"}}, MERGE, what=spec_of)
        self.same("POST", path, {})
        self.same("DELETE", path)
        self.same("PATCH", f"{PODS}/none/ephemeralcontainers", add, STRATEGIC)

    def test_evictions(self):
        for name, phase, ready in (("ready", "Running", "True"), ("unready", "Running", "False"), ("over", "Failed", "False"),
                                   ("free", "Running", "True"), ("two", "Running", "True")):
            made = pod(name)
            made["metadata"]["labels"] = {"app": name if name in ("free", "two") else "web"}
            self.both("POST", PODS, made)
            self.both("PATCH", f"{PODS}/{name}/status", {"status": {"phase": phase, "conditions": [
                {"type": "Ready", "status": ready}]}}, MERGE)
        for name, app in (("web", "web"), ("first", "two"), ("second", "two")):
            self.both("POST", BUDGETS, {"metadata": {"name": name}, "spec": {
                "minAvailable": 1, "selector": {"matchLabels": {"app": app}}}})

        def evict(name, **options):
            self.same("POST", f"{PODS}/{name}/eviction", eviction(name, **options))

        def status(**fields):
            self.both("PATCH", f"{BUDGETS}/web/status", {"status": dict({
                "observedGeneration": 1, "currentHealthy": 0, "desiredHealthy": 1, "expectedPods": 2}, **fields)}, MERGE)

        evict("ready")  # the controller has not seen the budget
        status(disruptionsAllowed=0)
        evict("ready")
        evict("unready")
        evict("ready", dryRun=["All"])
        status(disruptionsAllowed=0, currentHealthy=2)
        evict("ready")
        status(disruptionsAllowed=0, currentHealthy=2, conditions=[
            {"type": "DisruptionAllowed", "status": "False", "reason": "SyncFailed", "message": "no controllers",
             "lastTransitionTime": "2026-01-01T00:00:00Z"}])
        evict("ready")
        evict("two")
        evict("free")
        evict("over")
        status(disruptionsAllowed=1, conditions=[])
        evict("ready", dryRun=["All"])
        evict("ready")
        self.same("GET", f"{BUDGETS}/web", what=lambda sent: (
            sent[1]["status"]["disruptionsAllowed"], list(sent[1]["status"].get("disruptedPods", {}))))
        self.same("GET", f"{PODS}/ready", what=lambda sent: [
            (c["type"], c["status"], c.get("reason"), c.get("message")) for c in sent[1]["status"]["conditions"]])
        evict("ready")
        evict("none")
        self.same("POST", f"{PODS}/x/eviction", eviction("y"))

    def test_approvals(self):
        made = subprocess.run(["openssl", "req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                               "-keyout", "/dev/null", "-subj", "/CN=jane"], check=True, capture_output=True).stdout
        for name in ("yes", "no"):
            self.both("POST", REQUESTS, {"metadata": {"name": name}, "spec": {
                "request": base64.b64encode(made).decode(), "signerName": "example.com/signer", "usages": ["client auth"]}})

        def conditions(sent):
            if sent[0] != 200:
                return answer(sent)
            status = sent[1].get("status", {})
            return sent[0], [sorted(c) for c in status.get("conditions", [])], status.get("certificate")

        def approve(name, *given, **status):
            self.same("PATCH", f"{REQUESTS}/{name}/approval", {"status": dict(status, conditions=list(given))}, MERGE,
                      what=conditions)

        self.same("GET", f"{REQUESTS}/yes/approval")
        self.same("PATCH", f"{REQUESTS}/yes/approval", {"spec": {"signerName": "example.com/other"}, "status": {
            "conditions": [{"type": "Approved", "status": "True", "reason": "r", "message": "m"}],
            "certificate": "aGVsbG8="}}, MERGE, what=conditions)
        self.same("GET", f"{REQUESTS}/yes", what=lambda sent: (sent[1]["spec"]["signerName"], sent[1]["spec"].get("usages")))
        approve("no", {"type": "Denied", "status": "True"})
        approve("none", {"type": "Approved", "status": "True"})
        self.same("DELETE", f"{REQUESTS}/yes/approval")

    def subresources(self):
        """(collection, subresource, verbs) of the real kube-apiserver, as discovery has them."""
        groups = self.theirs.send("GET", "/apis")[1]["groups"]
        for version in ["/api/v1", *(f"/apis/{group['preferredVersion']['groupVersion']}" for group in groups)]:
            for resource in self.theirs.send("GET", version)[1]["resources"]:
                plural, _, part = resource["name"].partition("/")
                scope = "/namespaces/default" if resource["namespaced"] else ""
                if part:
                    yield f"{version}{scope}/{plural}", part, resource["verbs"]

    def keep_metadata(self, collection, sample, part, method):
        """Sends the metadata of NEW in a write to the subresource, and compares what is stored afterwards."""
        path = f"{collection}/{sample['metadata']['name']}"
        wanted = dict(sample, metadata=dict(sample["metadata"], **OLD))
        for client in (self.theirs, self.ours):
            if client.send("POST", collection, wanted)[0] != 201:
                return False
        answers = []
        for client in (self.theirs, self.ours):
            body = {"metadata": dict(NEW, labels={"old": None, "new": "1"}, annotations={"old": None, "new": "1"})}
            if method == "PUT":
                code, body = client.send("GET", f"{path}/{part}" if part == "scale" else path)
                self.assertEqual(code, 200, body)
                body["metadata"] = {**{key: body["metadata"][key] for key in ("name", "namespace", "uid", "resourceVersion")
                                       if key in body["metadata"]}, **NEW}
            code, answer = client.send(method, f"{path}/{part}", body, *([MERGE] if method == "PATCH" else []))
            stored = client.send("GET", path)[1]["metadata"]
            answers.append((code, [stored.get(key) for key in NEW]))
            client.send("PATCH", path, {"metadata": {"finalizers": None}}, MERGE)
            client.send("DELETE", f"{path}?gracePeriodSeconds=0")
        with self.subTest(path=collection, part=part, method=method):
            self.assertEqual(answers[1], answers[0])
        return answers[0][0] == 200

    def test_every_subresource_changes_the_same_metadata(self):
        known = [*samples(), (CRDS, {"metadata": {"name": "caps.example.com"}, "spec": {
            "group": "example.com", "scope": "Namespaced", "names": {"plural": "caps", "kind": "Cap"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}]}})]
        done = set()
        for (collection, part, verbs), (verb, method) in itertools.product(
                self.subresources(), (("patch", "PATCH"), ("update", "PUT"))):
            for where, sample in known if verb in verbs else ():
                if where == collection and self.keep_metadata(collection, sample, part, method):
                    done.add((collection.rpartition("/")[2], part, method))
                    break
        self.assertGreater(len(done), 50)
        for case in (("certificatesigningrequests", "approval", "PATCH"), ("certificatesigningrequests", "status", "PUT"),
                     ("namespaces", "finalize", "PUT"), ("pods", "ephemeralcontainers", "PATCH"), ("pods", "resize", "PATCH"),
                     ("deployments", "scale", "PATCH"), ("nodes", "status", "PUT"), ("customresourcedefinitions", "status", "PATCH")):
            self.assertIn(case, done)

    def test_resize(self):
        made = pod("big", None)  # with a node, Kubernetes asks whether its kubelet can do it
        made["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "100m", "memory": "64Mi"}}
        self.both("POST", PODS, made)
        path = f"{PODS}/big/resize"
        self.same("GET", path)

        def resized(cpu):
            return {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu, "memory": "64Mi"}}}]}}

        self.same("PATCH", path, resized("200m"), STRATEGIC, what=spec_of)
        self.same("PATCH", path, {"spec": {"nodeName": "other"}}, MERGE, what=spec_of)
        self.same("DELETE", path)


if __name__ == "__main__":
    unittest.main()
