#!/usr/bin/python3
"""PodSecurity in a real kube-apiserver and in Vigil: the pods that Kubernetes publishes for each level and version of its standards
(k8s.io/pod-security-admission, fetched by `go mod download`), workloads, labels of namespaces, and pods that exist when a label is
set. tools/build-kube builds the real kube-apiserver."""
import json
import os
import pathlib
import re
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/live"))
sys.path.insert(0, str(ROOT / "tests/kube"))
from same_definitions_test import documents  # noqa: E402
from same_writes_test import MERGE, Client  # noqa: E402
from side_by_side import SideBySide  # noqa: E402

ENVIRONMENT = {**os.environ, "PATH": os.environ["PATH"] + ":/usr/local/go/bin"}
NAMESPACES = "/api/v1/namespaces"
LABEL = "pod-security.kubernetes.io/"
OURS = "this server has no audit log"  # begins a warning of what Vigil does not do
PUBLISHED_LEAST = 4200
PLACE = re.compile(r"/(baseline|restricted)/(v1\.\d+)/(pass|fail)/")
CONTEXT = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}, "runAsNonRoot": True,
           "seccompProfile": {"type": "RuntimeDefault"}}
GOOD = {"containers": [{"name": "c", "image": "i", "securityContext": CONTEXT}]}
PLAIN = {"containers": [{"name": "c", "image": "i"}]}
BAD = {"hostPID": True, "containers": [{"name": "c", "image": "i", "securityContext": {"privileged": True}},
                                       {"name": "d", "image": "i", "ports": [{"containerPort": 80, "hostPort": 80}]}]}


def labels(**modes):
    return {LABEL + mode.replace("_", "-"): value for mode, value in modes.items()}


def namespace(name, **modes):
    return {"metadata": {"name": name, "labels": labels(**modes)}}


def pod(name, spec, **metadata):
    return {"metadata": {"name": name, **metadata}, "spec": spec}


def template(spec):
    return {"metadata": {"labels": {"a": "b"}}, "spec": spec}


def workload(spec, **more):
    return {"metadata": {"name": "w"}, "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template(spec), **more}}


def module():
    shown = subprocess.run(["go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/pod-security-admission"], cwd=ROOT / "tests/kube",
                           env=ENVIRONMENT, capture_output=True, text=True, check=True)
    return pathlib.Path(shown.stdout.strip())


class SameSecurity(SideBySide):
    client = Client
    their_flags = (*SideBySide.their_flags, "--disable-admission-plugins=ServiceAccount")

    def ask(self, client, *case):
        code, body = client.send(*case)
        refusal = {key: body.get(key) for key in ("reason", "message", "details")} if code >= 400 else None
        return code, refusal, [one for one in client.warnings if OURS not in one]

    def same(self, *case):
        """Returns the code and the warnings, which are the same."""
        theirs, ours = self.ask(self.theirs, *case), self.ask(self.ours, *case)
        with self.subTest(case=json.dumps(case)[:600]):
            self.assertEqual(ours, theirs)
        return theirs[0], theirs[2]

    def made(self, name, **modes):
        self.assertEqual(self.same("POST", NAMESPACES, namespace(name, **modes))[0], 201)
        return f"{NAMESPACES}/{name}"

    def test_published_pods_pass_and_fail(self):
        """Kubernetes says which of them pass; both servers must agree with that, and with each other in what they answer."""
        counts = {"pass": 0, "fail": 0}
        made = {}
        for file, one in documents(module() / "test/testdata"):
            level, version, outcome = PLACE.search(file).groups()
            if (level, version) not in made:
                made[level, version] = self.made(f"{level}-{version.replace('.', '-')}", enforce=level, enforce_version=version)
            path = f"{made[level, version]}/pods?dryRun=All"
            code, _ = self.same("POST", path, one)
            with self.subTest(file=file):
                self.assertEqual(code, 201 if outcome == "pass" else 403)
            counts[outcome] += 1
        self.assertGreaterEqual(sum(counts.values()), PUBLISHED_LEAST, counts)
        self.assertGreater(min(counts.values()), 1000, counts)

    def test_workloads_and_pods_cause_warnings(self):
        warned = 0
        for name, modes in (("warns", {"warn": "restricted"}), ("enforces", {"enforce": "baseline"}), ("nothing", {}),
                            ("both", {"enforce": "baseline", "warn": "restricted", "warn_version": "v1.24"}),
                            ("audits", {"audit": "restricted"})):
            path = self.made(name, **modes)
            apps, batch = path.replace("/api/v1", "/apis/apps/v1"), path.replace("/api/v1", "/apis/batch/v1")
            never = {"restartPolicy": "Never"}
            for spec in (GOOD, PLAIN, BAD):
                cases = [(f"{path}/pods", pod("p", spec)), (f"{path}/pods", pod("", spec, generateName="p-")),
                         (f"{path}/podtemplates", {"metadata": {"name": "w"}, "template": template(spec)}),
                         (f"{path}/replicationcontrollers", {"metadata": {"name": "w"}, "spec": {
                             "selector": {"a": "b"}, "template": template(spec)}}),
                         (f"{path}/replicationcontrollers", {"metadata": {"name": "w"}, "spec": {"selector": {"a": "b"}}}),
                         (f"{batch}/jobs", {"metadata": {"name": "w"}, "spec": {"template": template({**spec, **never})}}),
                         (f"{batch}/cronjobs", {"metadata": {"name": "w"}, "spec": {"schedule": "* * * * *", "jobTemplate": {
                             "spec": {"template": template({**spec, **never})}}}})]
                cases += [(f"{apps}/{kind}", workload(spec, **({"serviceName": "s"} if kind == "statefulsets" else {})))
                          for kind in ("deployments", "replicasets", "daemonsets", "statefulsets")]
                for where, body in cases:
                    warned += len(self.same("POST", where + "?dryRun=All", body)[1])
        self.assertGreater(warned, 20)

    def test_pods_are_reviewed_again_only_with_other_images(self):
        path = self.made("changes")
        self.assertEqual(self.same("POST", f"{path}/pods", pod("p", BAD))[0], 201)
        self.same("PATCH", path, {"metadata": {"labels": labels(enforce="baseline")}}, MERGE)
        self.assertEqual(self.same("PATCH", f"{path}/pods/p", {"metadata": {"labels": {"x": "y"}}}, MERGE)[0], 200)
        self.assertEqual(self.same("PATCH", f"{path}/pods/p", {"status": {"message": "m"}}, MERGE)[0], 200)
        self.assertEqual(self.same("PATCH", f"{path}/pods/p/status", {"status": {"message": "m"}}, MERGE)[0], 200)
        change = [{"op": "replace", "path": "/spec/containers/1/image", "value": "j"}]
        self.assertEqual(self.same("PATCH", f"{path}/pods/p", change, "application/json-patch+json")[0], 403)
        debug = {"spec": {"ephemeralContainers": [{"name": "e", "image": "i"}]}}
        self.assertEqual(self.same("PATCH", f"{path}/pods/p/ephemeralcontainers", debug, "application/strategic-merge-patch+json")[0],
                         403)

    def test_labels_must_be_valid(self):
        path = self.made("labels")
        for modes in ({"enforce": "x"}, {"enforce_version": "1.2"}, {"warn": "", "audit": "Baseline", "audit_version": "v1.01"},
                      {"enforce": "baseline", "warn_version": "v1"}, {"enforce_version": "v1.99999999999999999999"},
                      {"enforce": "restricted", "enforce_version": "v1.999"}, {"audit": "baseline"}, {"enforce": 'a"b'}):
            self.same("POST", NAMESPACES + "?dryRun=All", namespace("new", **modes))
            self.same("PATCH", path + "?dryRun=All", {"metadata": {"labels": labels(**modes)}}, MERGE)

    def test_existing_pods_cause_warnings(self):
        path = self.made("survey")
        for name, spec in (("a", GOOD), ("b-1", BAD), ("b", BAD), ("c", PLAIN), ("d", PLAIN), ("e", PLAIN)):
            self.assertEqual(self.same("POST", f"{path}/pods", pod(name, spec))[0], 201)
        warned = 0
        for modes in ({"enforce": "restricted"}, {"enforce": "baseline"}, {"enforce": "baseline", "enforce_version": "v1.20"},
                      {"enforce": "privileged"}, {"warn": "restricted"}, {"enforce": "none"},
                      {"enforce_version": "v1.7", "enforce": "restricted"}):
            for query in ("?dryRun=All", ""):
                warned += len(self.same("PATCH", path + query, {"metadata": {"labels": labels(**modes)}}, MERGE)[1])
        self.assertGreater(warned, 10)


if __name__ == "__main__":
    unittest.main()
