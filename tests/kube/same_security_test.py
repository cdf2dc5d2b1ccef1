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
import tempfile
import time
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
# Warnings of what Vigil does not do, and of old fields and annotations in Kubernetes, which do not concern PodSecurity.
OTHERS = re.compile(r'"this server has no audit log|\bdeprecated (since|in) v1')
WAIT_SECONDS = 30
PUBLISHED_LEAST, PASSING_LEAST = 4200, 700
MADE = re.compile(r"\bmade-[a-z0-9]{5}\b")
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


class Compared(SideBySide):
    client = Client
    their_flags = (*SideBySide.their_flags, "--disable-admission-plugins=ServiceAccount", "--allow-privileged=true")

    def ask(self, client, *case):
        code, body = client.send(*case)
        body = json.loads(MADE.sub("made-RANDOM", json.dumps(body)))
        refusal = {key: body.get(key) for key in ("reason", "message", "details")} if code >= 400 else None
        return code, refusal, [one for one in client.warnings if not OTHERS.search(one)]

    def same(self, *case):
        """Returns the code and the warnings, which are the same."""
        theirs, ours = self.ask(self.theirs, *case), self.ask(self.ours, *case)
        with self.subTest(case=json.dumps(case)[:600]):
            self.assertEqual(ours, theirs)
        return theirs[0], theirs[2]

    def made(self, name, **modes):
        self.assertEqual(self.same("POST", NAMESPACES, namespace(name, **modes))[0], 201)
        return f"{NAMESPACES}/{name}"


class SameSecurity(Compared):
    def test_published_pods_pass_and_fail(self):
        """Kubernetes says which of them pass; both servers must agree with that, and with each other in what they answer. Some that
        were valid when a version was new are invalid pods today, whatever the standard says."""
        counts = {"pass": 0, "fail": 0, "invalid": 0}
        made = {}
        for file, one in documents(module() / "test/testdata"):
            level, version, outcome = PLACE.search(file).groups()
            if (level, version) not in made:
                made[level, version] = self.made(f"{level}-{version.replace('.', '-')}", enforce=level, enforce_version=version)
            path = f"{made[level, version]}/pods?dryRun=All"
            code, _ = self.same("POST", path, one)
            with self.subTest(file=file):
                self.assertIn(code, (201 if outcome == "pass" else 403, 422))
            counts["invalid" if code == 422 else outcome] += 1
        self.assertGreaterEqual(sum(counts.values()), PUBLISHED_LEAST, counts)
        self.assertLess(counts["invalid"], sum(counts.values()) / 4, counts)
        self.assertGreater(counts["pass"], PASSING_LEAST, counts)

    def test_workloads_and_pods_cause_warnings(self):
        warned = 0
        for name, modes in (("warns", {"warn": "restricted"}), ("enforces", {"enforce": "baseline"}), ("nothing", {}),
                            ("both", {"enforce": "baseline", "warn": "restricted", "warn_version": "v1.24"}),
                            ("audits", {"audit": "restricted"})):
            path = self.made(name, **modes)
            apps, batch = path.replace("/api/v1", "/apis/apps/v1"), path.replace("/api/v1", "/apis/batch/v1")
            never = {"restartPolicy": "Never"}
            for spec in (GOOD, PLAIN, BAD):
                cases = [(f"{path}/pods", pod("p", spec)), (f"{path}/pods", pod("", spec, generateName="made-")),
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

    def test_profiles_of_app_armor_become_fields(self):
        path = self.made("profiles")
        key = "container.apparmor.security.beta.kubernetes.io/"

        def profile(kind, **more):
            return {"appArmorProfile": {"type": kind, **more}}

        def container(name, **context):
            return {"name": name, "image": "i", **({"securityContext": context} if context else {})}

        cases = (
            pod("p", {"containers": [container("a"), container("b")]}, annotations={
                key + "a": "unconfined", key + "b": "localhost/x"}),
            pod("p", {"containers": [container("a"), container("b", privileged=False)], "initContainers": [container("i")],
                      "securityContext": profile("RuntimeDefault")}, annotations={key + "b": "runtime/default"}),
            pod("p", {"containers": [container("a", **profile("Localhost", localhostProfile="y")), container("b"),
                                     container("c", **profile("Unconfined"))]}, annotations={"x": "y"}),
            pod("p", {"containers": [container("a")], "securityContext": profile("Localhost", localhostProfile="z")}),
            pod("p", {"containers": [container("a")]}, annotations={key + "a": "localhost/"}),
            pod("p", {"containers": [container("a")]}, annotations={key + "a": "localhost/ x"}),
            pod("p", {"containers": [container("a")], "os": {"name": "windows"}}, annotations={key + "a": "unconfined"}),
            pod("p", {"containers": [container("a")], "os": {"name": "linux"}}, annotations={key + "a": "unconfined"}))
        for case in cases:
            with self.subTest(case=case):
                made = [client.send("POST", f"{path}/pods?dryRun=All", case) for client in (self.ours, self.theirs)]
                shown = [(code, body.get("message"), body["metadata"].get("annotations"), body.get("spec", {}).get("containers"),
                          body.get("spec", {}).get("initContainers")) for code, body in made]
                self.assertEqual(*shown)

    def test_labels_must_be_valid(self):
        path = self.made("labels")
        for modes in ({"enforce": "x"}, {"enforce_version": "1.2"}, {"warn": "", "audit": "Baseline", "audit_version": "v1.01"},
                      {"enforce": "baseline", "warn_version": "v1"}, {"enforce_version": "v1.99999999999999999999"},
                      {"enforce": "restricted", "enforce_version": "v1.999"}, {"audit": "baseline"}):
            self.same("POST", NAMESPACES + "?dryRun=All", namespace("new", **modes))
            self.same("PATCH", path + "?dryRun=All", {"metadata": {"labels": labels(**modes)}}, MERGE)
        self.same("POST", NAMESPACES + "?dryRun=All", namespace("new", enforce='a"b'))

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


CONFIG = {
    "apiVersion": "apiserver.config.k8s.io/v1", "kind": "AdmissionConfiguration", "plugins": [
        {"name": "PodSecurity", "configuration": {
            "apiVersion": "pod-security.admission.config.k8s.io/v1", "kind": "PodSecurityConfiguration",
            "defaults": {"enforce": "baseline", "warn": "restricted", "warn-version": "v1.25", "audit": "restricted"},
            "exemptions": {"usernames": ["jane"], "namespaces": ["kube-system", "free"], "runtimeClasses": ["sandbox"]}}}]}


class SameConfiguredSecurity(Compared):
    """Both servers read the same file, and know the same users."""

    @classmethod
    def setUpClass(cls):
        cls.files = tempfile.TemporaryDirectory()
        config, tokens = pathlib.Path(cls.files.name, "admission.json"), pathlib.Path(cls.files.name, "tokens.csv")
        config.write_text(json.dumps(CONFIG))
        tokens.write_text("the-token,admin,admin,system:masters\nweak-token,jane,jane\n")
        cls.flags = (*SideBySide.flags, f"--kube-admission-control-config-file={config}", f"--kube-token-file={tokens}",
                     "--kube-authorization-mode=RBAC", "--kube-disable-admission-plugins=ServiceAccount")
        cls.their_flags = (*Compared.their_flags, f"--admission-control-config-file={config}")
        super().setUpClass()
        cls.ours.token = cls.theirs.token
        cls.wait_for("/apis/rbac.authorization.k8s.io/v1/clusterroles/cluster-admin")

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        cls.files.cleanup()

    def as_jane(self, *case):
        tokens = self.theirs.token, self.ours.token
        self.theirs.token = self.ours.token = "weak-token"
        try:
            return self.same(*case)
        finally:
            self.theirs.token, self.ours.token = tokens

    def metrics(self, client):
        """A kube-apiserver that was built without a version considers every version as later than its own."""
        with client.open("GET", "/metrics", accept="*/*") as response:
            text = re.sub(r'policy_version="v1\.\d+"', 'policy_version="future"', response.read().decode())
        return sorted(line for line in text.splitlines() if line.startswith("pod_security_"))

    def test_exemptions_and_defaults(self):
        self.assertEqual(self.same("POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", {
            "metadata": {"name": "jane"}, "subjects": [{"kind": "User", "name": "jane", "apiGroup": "rbac.authorization.k8s.io"}],
            "roleRef": {"kind": "ClusterRole", "name": "cluster-admin", "apiGroup": "rbac.authorization.k8s.io"}})[0], 201)
        self.assertEqual(self.same("POST", "/apis/node.k8s.io/v1/runtimeclasses", {
            "metadata": {"name": "sandbox"}, "handler": "h"})[0], 201)
        sandboxed = "POST", NAMESPACES + "/default/pods?dryRun=All", pod("p", {**GOOD, "runtimeClassName": "sandbox"})
        end = time.monotonic() + WAIT_SECONDS
        while self.theirs.send(*sandboxed)[0] != 201:  # until its RuntimeClass plugin knows the class
            self.assertLess(time.monotonic(), end)
        self.assertEqual(self.ours.send(*sandboxed)[0], 201)
        before = [self.metrics(client) for client in (self.theirs, self.ours)]
        plain = self.made("plain")
        strict = self.made("strict", enforce="restricted")
        future = self.made("future", enforce="baseline", enforce_version="v1.99")
        code, warnings = self.same("POST", NAMESPACES, namespace("free", enforce="restricted", warn_version="v1.9"))
        self.assertEqual((code, len(warnings)), (201, 1))
        for modes in ({"enforce": "baseline"}, {"enforce": "restricted", "audit": "baseline"}, {"warn": "baseline"},
                      {"enforce": "privileged"}, {"enforce": "restricted", "warn": "privileged", "warn_version": "v1.3"}):
            self.same("PATCH", NAMESPACES + "/free", {"metadata": {"labels": labels(**modes)}}, MERGE)
        for path in (plain, strict, future, NAMESPACES + "/free"):
            apps = path.replace("/api/v1", "/apis/apps/v1")
            for spec in (GOOD, PLAIN, BAD, {**BAD, "runtimeClassName": "sandbox"}):
                for ask in (self.same, self.as_jane):
                    ask("POST", f"{path}/pods?dryRun=All", pod("p", spec))
                    ask("POST", f"{apps}/deployments?dryRun=All", workload(spec))
            self.as_jane("POST", f"{path}/pods", pod("q", BAD))
            self.same("PATCH", f"{path}/pods/q", {"metadata": {"labels": {"x": "y"}}}, MERGE)
            self.same("PATCH", f"{path}/pods/q", {"spec": {"containers": [{"name": "c", "image": "j"}]}},
                      "application/strategic-merge-patch+json")
            self.same("PATCH", f"{path}/pods/q/ephemeralcontainers", {"spec": {"ephemeralContainers": [{"name": "e", "image": "i"}]}},
                      "application/strategic-merge-patch+json")
        # Exempt pods are not counted among those of the namespace.
        self.as_jane("POST", f"{plain}/pods", pod("r", {**BAD, "runtimeClassName": "sandbox"}))
        self.assertGreater(len(self.same("PATCH", plain, {"metadata": {"labels": labels(enforce="restricted")}}, MERGE)[1]), 1)
        after = [self.metrics(client) for client in (self.theirs, self.ours)]
        self.assertEqual(before[1], before[0])
        self.assertEqual(after[1], after[0])
        self.assertGreater(len(after[0]), len(before[0]))


if __name__ == "__main__":
    unittest.main()
