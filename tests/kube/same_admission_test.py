#!/usr/bin/python3
"""What admission plugins do to the same objects in a real kube-apiserver and in Vigil: once with every plugin that Vigil has, and
once with all of them disabled. Answers are compared as a whole. tools/build-kube builds the real kube-apiserver."""
import json
import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/live"))
sys.path.insert(0, str(ROOT / "tests/kube"))
from same_writes_test import MERGE, STRATEGIC, Client  # noqa: E402
from side_by_side import SideBySide  # noqa: E402

# Others have tests of their own.
PLUGINS = ("NamespaceLifecycle", "ServiceAccount", "TaintNodesByCondition", "Priority", "DefaultTolerationSeconds",
           "DefaultStorageClass", "StorageObjectInUseProtection", "PersistentVolumeClaimResize", "RuntimeClass",
           "DefaultIngressClass")
TIME = re.compile(r'"2\d{3}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"')
UID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
MADE = re.compile(r"kube-api-access-[a-z0-9]{5}\"")
NAMESPACE = "/api/v1/namespaces/default"
PODS, ACCOUNTS, CLAIMS = f"{NAMESPACE}/pods", f"{NAMESPACE}/serviceaccounts", f"{NAMESPACE}/persistentvolumeclaims"
PRIORITIES = "/apis/scheduling.k8s.io/v1/priorityclasses"
STORAGES = "/apis/storage.k8s.io/v1/storageclasses"
INGRESSES = "/apis/networking.k8s.io/v1/namespaces/default/ingresses"
INGRESS_CLASSES = "/apis/networking.k8s.io/v1/ingressclasses"
RUNTIMES = "/apis/node.k8s.io/v1/runtimeclasses"
ANY = {"key": "", "operator": "Exists"}


def shown(sent):
    code, body = sent
    if isinstance(body, dict) and "spec is immutable" in body.get("message", ""):
        return code, body["reason"]  # Kubernetes adds the difference as Go prints it
    text = MADE.sub('kube-api-access-RANDOM"', UID.sub("UID", TIME.sub('"TIME"', json.dumps(body))))
    body = json.loads(text)
    if isinstance(body, dict):
        for name in ("resourceVersion", "managedFields", "generation"):
            body.get("metadata", {}).pop(name, None)
    return code, body


def pod(name, account=None, **spec):
    made = {"containers": [{"name": "c", "image": "i"}], **spec}
    if account:
        made["serviceAccountName"] = account
    return {"metadata": {"name": name}, "spec": made}


def env(name, container="c", **more):
    return {"name": container, "image": "i", "env": [{"name": "V", "valueFrom": {"secretKeyRef": {"name": name, "key": "k"}}}],
            **more}


def claim(name, size="1Gi", annotations=None, **spec):
    return {"metadata": {"name": name, "annotations": annotations or {}}, "spec": {
        "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}, **spec}}


class Cases:
    """The same cases for both sets of plugins."""
    client = Client

    def same(self, *case):
        self.compare(shown, *case)

    def test_accounts(self):
        self.same("POST", PODS, pod("early", "none"))
        self.same("POST", PODS, {"metadata": {"generateName": "early-"}, "spec": pod("x", "none")["spec"]}) \
            if self.refuses else None
        for account in ({"name": "plain"}, {"name": "quiet"}, {"name": "strict", "annotations": {
                "kubernetes.io/enforce-mountable-secrets": "true"}}, {"name": "default"}):
            self.same("POST", ACCOUNTS, {"metadata": account, "imagePullSecrets": [{"name": "pull"}] if account["name"] != "plain"
                                         else [], "secrets": [{"name": "own"}],
                                         **({"automountServiceAccountToken": False} if account["name"] == "quiet" else {})})
        self.same("POST", PODS, pod("unnamed"))
        self.same("POST", PODS, {"metadata": {"name": "old-name"}, "spec": {
            "serviceAccount": "plain", "containers": [{"name": "c", "image": "i"}]}})
        mount = {"name": "v", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}
        for name, made in (
                ("plain", pod("plain", "plain")), ("quiet", pod("quiet", "quiet")),
                ("loud", pod("loud", "quiet", automountServiceAccountToken=True)),
                ("own-choice", pod("own-choice", "plain", automountServiceAccountToken=False)),
                ("pull", pod("pull", "default", imagePullSecrets=[{"name": "mine"}])),
                ("init", pod("init", "plain", initContainers=[{"name": "i", "image": "i"}])),
                ("mounted", pod("mounted", "plain", volumes=[{"name": "v", "emptyDir": {}}], containers=[
                    {"name": "c", "image": "i", "volumeMounts": [mount]}])),
                ("half", pod("half", "plain", volumes=[{"name": "v", "emptyDir": {}}], containers=[
                    {"name": "c", "image": "i", "volumeMounts": [mount]}, {"name": "d", "image": "i"}])),
                ("has-volume", pod("has-volume", "plain", volumes=[{"name": "kube-api-access-mine", "emptyDir": {}}])),
                ("invalid", pod("invalid", "plain", restartPolicy="Sometimes")),
                ("missing-and-invalid", pod("missing-and-invalid", "none", restartPolicy="Sometimes"))):
            with self.subTest(name):
                self.same("POST", PODS, made)

    def test_secrets_of_an_account(self):
        self.same("POST", ACCOUNTS, {"metadata": {"name": "limits", "annotations": {
            "kubernetes.io/enforce-mountable-secrets": "t"}}, "imagePullSecrets": [{"name": "pull"}], "secrets": [{"name": "own"}]})
        secret = {"name": "v", "secret": {"secretName": "other"}}
        for name, spec in (
                ("own", {"containers": [env("own")]}),
                ("volume", {"volumes": [secret]}),
                ("variable", {"containers": [env("other")]}),
                ("from", {"containers": [{"name": "c", "image": "i", "envFrom": [{"secretRef": {"name": "other"}}]}]}),
                ("init-variable", {"initContainers": [env("other", "ic")]}),
                ("init-from", {"initContainers": [{"name": "ic", "image": "i", "envFrom": [{"secretRef": {"name": "o"}}]}]}),
                ("pulls", {"imagePullSecrets": [{"name": "pull"}, {"name": "other"}]})):
            with self.subTest(name):
                self.same("POST", PODS, pod(f"limit-{name}", "limits", **spec))
        debug = {"spec": {"ephemeralContainers": [env("other", "debug")]}}
        if self.refuses:
            self.same("PATCH", f"{PODS}/limit-own/ephemeralcontainers", debug, STRATEGIC)

    def test_mirror_pods(self):
        def mirror(name, **spec):
            return {"metadata": {"name": name, "annotations": {"kubernetes.io/config.mirror": "x"}},
                    "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "i"}], **spec}}

        self.same("POST", PODS, mirror("mirror"))
        self.same("POST", PODS, mirror("mirror-account", serviceAccountName="default"))
        self.same("POST", PODS, mirror("mirror-pull", imagePullSecrets=[{"name": "p"}]))
        self.same("POST", PODS, mirror("mirror-env", containers=[env("s")]))
        self.same("POST", PODS, mirror("mirror-volume", volumes=[{"name": "v", "projected": {"sources": [{"secret": {"name": "s"}}]}}]))
        if self.refuses:  # otherwise a rule of pods refuses it
            self.same("POST", PODS, mirror("mirror-token", volumes=[{"name": "v", "projected": {"sources": [
                {"serviceAccountToken": {"path": "t"}}]}}]))

    def test_priorities(self):
        self.same("POST", ACCOUNTS, {"metadata": {"name": "runs"}})
        self.same("POST", PRIORITIES, {"metadata": {"name": "high"}, "value": 1000, "preemptionPolicy": "Never"})
        for name, spec in (("none", {}), ("high", {"priorityClassName": "high"}), ("unknown", {"priorityClassName": "unknown"}),
                           ("system", {"priorityClassName": "system-node-critical"}), ("zero", {"priority": 0}),
                           ("own", {"priority": 5}), ("other", {"priorityClassName": "high", "priority": 7}),
                           ("same", {"priorityClassName": "high", "priority": 1000}),
                           ("policy", {"preemptionPolicy": "Never"}),
                           ("other-policy", {"priorityClassName": "high", "preemptionPolicy": "PreemptLowerPriority"})):
            with self.subTest(name):
                self.same("POST", PODS, pod(f"priority-{name}", "runs", **spec))
        self.same("PATCH", f"{PODS}/priority-high", {"spec": {"priority": None, "preemptionPolicy": None}}, MERGE)
        self.same("POST", PRIORITIES, {"metadata": {"name": "usual"}, "value": 10, "globalDefault": True})
        self.same("PATCH", f"{PRIORITIES}/usual", {"description": "d"}, MERGE)
        self.same("POST", PRIORITIES, {"metadata": {"name": "usual-2"}, "value": 20, "globalDefault": True})
        self.same("PATCH", f"{PRIORITIES}/high", {"globalDefault": True}, MERGE)
        if self.refuses:  # without a check there are two now
            self.same("POST", PODS, pod("priority-usual", "runs"))
        for name in ("usual", "usual-2", "high"):
            self.same("DELETE", f"{PRIORITIES}/{name}")
        self.same("POST", PODS, pod("priority-none-again", "runs"))

    def test_tolerations(self):
        self.same("POST", ACCOUNTS, {"metadata": {"name": "tolerates"}})
        not_ready = {"key": "node.kubernetes.io/not-ready", "operator": "Exists"}
        for name, given in (("any", [{"operator": "Exists"}]), ("one", [not_ready]), ("other", [{"key": "x", "operator": "Exists"}]),
                            ("effect", [{**not_ready, "effect": "NoSchedule"}]),
                            ("seconds", [{**not_ready, "effect": "NoExecute", "tolerationSeconds": 5}]),
                            ("any-schedule", [{"operator": "Exists", "effect": "NoSchedule"}])):
            with self.subTest(name):
                self.same("POST", PODS, pod(f"tolerates-{name}", "tolerates", tolerations=given))
        self.same("PATCH", f"{PODS}/tolerates-one", {"metadata": {"labels": {"a": "b"}}}, MERGE)

    def test_storage(self):
        default = "storageclass.kubernetes.io/is-default-class"
        self.same("POST", CLAIMS, claim("before"))
        self.same("POST", STORAGES, {"metadata": {"name": "slow"}, "provisioner": "p"})
        self.same("POST", STORAGES, {"metadata": {"name": "grows", "annotations": {default: "true"}}, "provisioner": "p",
                                     "allowVolumeExpansion": True})
        self.same("POST", CLAIMS, claim("unnamed"))
        self.same("POST", CLAIMS, claim("named", storageClassName="slow"))
        self.same("POST", CLAIMS, claim("empty", storageClassName=""))
        self.same("POST", CLAIMS, claim("old-way", annotations={"volume.beta.kubernetes.io/storage-class": "slow"}))
        self.same("POST", CLAIMS, {**claim("protected"), "metadata": {"name": "protected", "finalizers": [
            "example.com/x", "kubernetes.io/pvc-protection"]}})
        bigger = {"spec": {"resources": {"requests": {"storage": "2Gi"}}}}
        for name in ("unnamed", "named", "empty"):
            path = f"{CLAIMS}/{name}"
            if self.refuses:
                self.same("PATCH", path, bigger, MERGE)
            self.same("PATCH", f"{path}/status", {"status": {"phase": "Bound", "capacity": {"storage": "1Gi"}}}, MERGE)
            self.same("PATCH", path, bigger, MERGE)
            self.same("PATCH", path, {"metadata": {"labels": {"a": "b"}}}, MERGE)
        self.same("POST", "/api/v1/persistentvolumes", {"metadata": {"name": "pv"}, "spec": {
            "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}}})
        self.same("POST", "/apis/storage.k8s.io/v1/volumeattributesclasses", {"metadata": {"name": "vac"}, "driverName": "d.example",
                                                                              "parameters": {"a": "b"}})
        for name in ("slow", "grows"):
            self.same("DELETE", f"{STORAGES}/{name}")
        self.same("POST", CLAIMS, claim("after"))

    def test_nodes(self):
        taint = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
        for name, node in (("bare", {}), ("tainted", {"spec": {"taints": [taint]}}),
                           ("other", {"spec": {"taints": [{**taint, "effect": "NoExecute"}]}})):
            with self.subTest(name):
                self.same("POST", "/api/v1/nodes", {"metadata": {"name": name}, **node})

    def test_ingresses(self):
        backend = {"defaultBackend": {"service": {"name": "s", "port": {"number": 80}}}}
        self.same("POST", INGRESSES, {"metadata": {"name": "before"}, "spec": backend})
        self.same("POST", INGRESS_CLASSES, {"metadata": {"name": "usual", "annotations": {
            "ingressclass.kubernetes.io/is-default-class": "true"}}, "spec": {"controller": "example.com/c"}})
        self.same("POST", INGRESSES, {"metadata": {"name": "unnamed"}, "spec": backend})
        self.same("POST", INGRESSES, {"metadata": {"name": "named"}, "spec": {**backend, "ingressClassName": "other"}})
        self.same("POST", INGRESSES, {"metadata": {"name": "old-way", "annotations": {"kubernetes.io/ingress.class": "x"}},
                                      "spec": backend})
        self.same("DELETE", f"{INGRESS_CLASSES}/usual")

    def test_runtimes(self):
        self.same("POST", ACCOUNTS, {"metadata": {"name": "isolated"}})
        self.same("POST", RUNTIMES, {"metadata": {"name": "plain"}, "handler": "h"})
        self.same("POST", RUNTIMES, {"metadata": {"name": "full"}, "handler": "h", "overhead": {"podFixed": {
            "cpu": "0.5", "memory": "64Mi"}}, "scheduling": {"nodeSelector": {"kind": "vm", "zone": "a"}, "tolerations": [
                {"key": "k", "operator": "Exists"}, {"key": "node.kubernetes.io/not-ready", "operator": "Exists"}]}})
        cpu = {"cpu": "500m", "memory": "64Mi"}
        for name, spec in (
                ("none", {}), ("unknown", {"runtimeClassName": "unknown"}), ("plain", {"runtimeClassName": "plain"}),
                ("full", {"runtimeClassName": "full"}), ("overhead", {"overhead": cpu}),
                ("same", {"runtimeClassName": "full", "overhead": cpu}),
                ("other", {"runtimeClassName": "full", "overhead": {"cpu": "1"}}),
                ("plain-overhead", {"runtimeClassName": "plain", "overhead": {"cpu": "1"}}),
                ("selector", {"runtimeClassName": "full", "nodeSelector": {"zone": "a", "disk": "ssd"}}),
                ("conflict", {"runtimeClassName": "full", "nodeSelector": {"zone": "b"}}),
                ("tolerations", {"runtimeClassName": "full", "tolerations": [
                    {"key": "k", "operator": "Equal", "value": "v", "effect": "NoExecute", "tolerationSeconds": 3}]})):
            with self.subTest(name):
                self.same("POST", PODS, pod(f"runtime-{name}", "isolated", **spec))

    def test_external_addresses(self):
        services, service = f"{NAMESPACE}/services", f"{NAMESPACE}/services/addressed"
        spec = {"clusterIP": "None", "selector": {"a": "b"}}
        made = {"metadata": {"name": "addressed"}, "spec": spec}

        def addresses(*given):
            return {"spec": {"externalIPs": list(given)}}

        self.same("POST", services, {**made, "spec": {**spec, **addresses("192.0.2.1")["spec"]}})
        self.same("POST", services, made)
        for given in (("192.0.2.1",), ("192.0.2.2", "192.0.2.1"), ("192.0.2.1",), ()):
            self.same("PATCH", service, addresses(*given), MERGE)
        self.same("PATCH", service, {"metadata": {"labels": {"a": "b"}}}, MERGE)

    def test_namespaces(self):
        cases = [("POST", "/api/v1/namespaces/nope/configmaps", {"metadata": {"name": "a"}}),
                 ("POST", "/api/v1/namespaces/nope/configmaps", {"metadata": {"name": "A_"}}),
                 ("POST", "/api/v1/namespaces/nope/configmaps", {"metadata": {"name": "a"}, "data": 5})]
        if self.refuses:
            cases += [("DELETE", f"/api/v1/namespaces/{name}") for name in ("default", "kube-system", "kube-public")]
        for case in cases:
            self.same(*case)

    def test_a_namespace_that_is_being_deleted(self):
        path = "/api/v1/namespaces/leaving"
        self.same("POST", "/api/v1/namespaces", {"metadata": {"name": "leaving"}})
        self.same("POST", f"{path}/configmaps", {"metadata": {"name": "held", "finalizers": ["example.com/x"]}})
        for client in (self.theirs, self.ours):
            client.send("DELETE", path)
        if self.refuses:
            for metadata in ({"name": "late"}, {"generateName": "late-"}, {"name": "A_"}):
                self.same("POST", f"{path}/configmaps", {"metadata": metadata})
            self.same("POST", f"{path}/pods", pod("late", "none"))
        for client in (self.theirs, self.ours):
            client.send("PATCH", f"{path}/configmaps/held", {"metadata": {"finalizers": None}}, MERGE)


class SameEnabled(Cases, SideBySide):
    refuses = True
    flags = (*SideBySide.flags,
             "--kube-enable-admission-plugins=ServiceAccount,StorageObjectInUseProtection,DenyServiceExternalIPs")
    # Instead of ServiceAccount, which is disabled in other tests, one that is off in any case.
    their_flags = (*SideBySide.their_flags, "--enable-admission-plugins=DenyServiceExternalIPs",
                   "--disable-admission-plugins=PodNodeSelector")


class SameDisabled(Cases, SideBySide):
    refuses = False
    flags = (*SideBySide.flags, "--kube-disable-admission-plugins=" + ",".join(PLUGINS))
    their_flags = (*SideBySide.their_flags, "--disable-admission-plugins=" + ",".join(PLUGINS))


if __name__ == "__main__":
    unittest.main()
