#!/usr/bin/python3
"""Sends the requests of kubelets to a real kube-apiserver and to Vigil, both with --authorization-mode=Node,RBAC and NodeRestriction,
and with the same objects: every code and every refusal must be the same. tools/build-kube builds the real kube-apiserver."""
import base64
import itertools
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/live"))
sys.path.insert(0, str(ROOT / "tests/kube"))
from apiserver_test import Apiserver  # noqa: E402
import same_access_test as access  # noqa: E402
from same_access_test import RBAC, Client, binding, rule, token_of, user, without_times  # noqa: E402
from server import Server, free_port  # noqa: E402

NODES_GROUP = "system:nodes"
USERS = {
    "admin": ["system:masters"], "system:node:one": [NODES_GROUP], "system:node:two": [NODES_GROUP], "system:node:none": [NODES_GROUP],
    "system:node:": [NODES_GROUP], "system:node:outside": [], "jane": [NODES_GROUP], "system:node:more": [NODES_GROUP],
}
KUBELETS = [name for name in USERS if name != "admin"]
ONE, TWO = "system:node:one", "system:node:two"
CORE = "/api/v1"
SHOP = f"{CORE}/namespaces/shop"
LEASES = "/apis/coordination.k8s.io/v1/namespaces"
CSI = "/apis/storage.k8s.io/v1"
RESOURCE = "/apis/resource.k8s.io/v1"
CERTIFICATES = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
AUTHORIZATION = "/apis/authorization.k8s.io/v1"
MIRROR = "kubernetes.io/config.mirror"
ACCOUNT = "the-account"
NODE_USERS = ("clusterrolebindings", "more", [rule(["create", "get", "list", "deletecollection"], [""],
                                                   ["secrets", "pods/binding", "pods"]),
                                              rule(["update", "patch", "create"], [""], ["pods", "persistentvolumeclaims", "pods/resize",
                                                                                         "pods/ephemeralcontainers"]),
                                              rule(["create", "patch"], ["coordination.k8s.io"], ["leases"]),
                                              rule(["delete", "deletecollection"], [""], ["nodes"]),
                                              rule(["deletecollection"], [""], ["persistentvolumeclaims"]),
                                              rule(["deletecollection"], ["coordination.k8s.io", "storage.k8s.io"], ["leases", "csinodes"]),
                                              rule(["request-serviceaccounts-token-audience"], [""], ["extra"], [ACCOUNT])])


def named(name, namespace=None, **fields):
    return {"metadata": {"name": name, **({"namespace": namespace} if namespace else {})}, **fields}


def pod(name, node=None, volumes=(), **spec):
    container = {"name": "c", "image": "none", **spec.pop("container", {})}
    return named(name, spec={"containers": [container], "volumes": list(volumes), "terminationGracePeriodSeconds": 0,
                             **({"nodeName": node} if node else {}), **spec})


def mirror(name, node, uid="", **changes):
    made = pod(name, node, **changes.pop("spec", {}))
    owner = {"apiVersion": "v1", "kind": "Node", "name": node, "uid": uid or f"@uid {CORE}/nodes/{node}@", "controller": True,
             **changes.pop("owner", {})}
    made["metadata"].update({"annotations": {MIRROR: "x"}, "ownerReferences": [owner], **changes.pop("metadata", {})})
    return made


def claim(name, volume=None, **spec):
    return named(name, spec={"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}},
                             **({"volumeName": volume} if volume else {}), **spec})


def volume(name, of, **source):
    return named(name, spec={"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"],
                             "claimRef": {"namespace": "shop", "name": of}, **source})


def secret_ref(name, **more):
    return {"name": name, "namespace": "bank", **more}


VOLUMES = [
    {"name": "v1", "secret": {"secretName": "by-volume"}}, {"name": "v2", "configMap": {"name": "by-volume"}},
    {"name": "v3", "projected": {"sources": [{"secret": {"name": "by-projection"}}, {"configMap": {"name": "by-projection"}},
                                             {"serviceAccountToken": {"path": "t", "audience": "projected"}}]}},
    {"name": "v4", "persistentVolumeClaim": {"claimName": "claim"}},
    {"name": "v5", "ephemeral": {"volumeClaimTemplate": {"spec": claim("x")["spec"]}}},
    {"name": "v6", "csi": {"driver": "inline.example.com", "nodePublishSecretRef": {"name": "by-csi"}}},
    {"name": "v7", "rbd": {"monitors": ["m"], "image": "i", "secretRef": {"name": "by-rbd"}}},
    {"name": "v8", "azureFile": {"secretName": "by-azure", "shareName": "s"}},
    {"name": "v9", "iscsi": {"targetPortal": "p", "iqn": "iqn.2001-04.com.example:a", "lun": 0, "secretRef": {"name": "by-iscsi"}}},
    {"name": "v10", "cephfs": {"monitors": ["m"], "secretRef": {"name": "by-cephfs"}}},
    {"name": "v11", "flexVolume": {"driver": "a/b", "secretRef": {"name": "by-flex"}}},
    {"name": "v12", "scaleIO": {"gateway": "g", "system": "s", "volumeName": "v", "secretRef": {"name": "by-scaleio"}}},
    {"name": "v13", "storageos": {"volumeName": "v", "secretRef": {"name": "by-storageos"}}},
    {"name": "v14", "cinder": {"volumeID": "v", "secretRef": {"name": "by-cinder"}}},
    {"name": "v15", "persistentVolumeClaim": {"claimName": "azure"}},
]
ENVIRONMENT = {
    "env": [{"name": "a", "valueFrom": {"secretKeyRef": {"name": "by-env", "key": "k"}}},
            {"name": "b", "valueFrom": {"configMapKeyRef": {"name": "by-env", "key": "k"}}}],
    "envFrom": [{"secretRef": {"name": "by-env-from"}}, {"configMapRef": {"name": "by-env-from"}}],
    "resources": {"requests": {"example.com/x": "1"}, "limits": {"example.com/x": "1"}},
}
SETUP = [
    (f"{CORE}/namespaces", named("shop")), (f"{CORE}/namespaces", named("bank")), (f"{CORE}/namespaces", named("kube-node-lease")),
    *[(f"{CORE}/nodes", named(name)) for name in ("one", "two", "more")],
    *[(f"{SHOP}/serviceaccounts", named(name)) for name in (ACCOUNT, "other")],
    (f"{CSI}/csidrivers", named("csi.example.com", spec={"tokenRequests": [{"audience": "by-driver"}]})),
    (f"{CSI}/csidrivers", named("inline.example.com", spec={"tokenRequests": [{"audience": "inline"}],
                                                            "volumeLifecycleModes": ["Ephemeral"]})),
    (f"{CORE}/persistentvolumes", volume("disk", "claim", csi={
        "driver": "csi.example.com", "volumeHandle": "h", "nodePublishSecretRef": secret_ref("publish"),
        "nodeStageSecretRef": secret_ref("stage"), "nodeExpandSecretRef": secret_ref("expand"),
        "controllerPublishSecretRef": secret_ref("controller"), "controllerExpandSecretRef": secret_ref("controller-expand")})),
    (f"{CORE}/persistentvolumes", volume("azure", "azure", azureFile={"secretName": "azure", "shareName": "s"})),
    (f"{CORE}/persistentvolumes", volume("other", "other", rbd={"monitors": ["m"], "image": "i", "secretRef": secret_ref("rbd")})),
    (f"{SHOP}/persistentvolumeclaims", claim("claim", "disk")), (f"{SHOP}/persistentvolumeclaims", claim("other", "other")),
    (f"{SHOP}/persistentvolumeclaims", claim("busy-v5")), (f"{SHOP}/persistentvolumeclaims", claim("azure", "azure")),
    *[(f"{SHOP}/secrets", named(name)) for name in ("by-volume", "unused", "by-env", "azure")],
    (f"{CORE}/namespaces/bank/secrets", named("stage")),
    *[(f"{SHOP}/configmaps", named(name)) for name in ("by-volume", "unused")],
    (f"{SHOP}/pods", pod("busy", "one", VOLUMES, serviceAccountName=ACCOUNT, imagePullSecrets=[{"name": "by-pull"}],
                         initContainers=[{"name": "i", "image": "none", "env": [
                             {"name": "a", "valueFrom": {"secretKeyRef": {"name": "by-init", "key": "k"}}}]}],
                         container=ENVIRONMENT, resourceClaims=[{"name": "r", "resourceClaimName": "device"},
                                                                {"name": "t", "resourceClaimTemplateName": "template"}])),
    (f"{SHOP}/pods", pod("calm", "two", serviceAccountName="other")), (f"{SHOP}/pods", pod("free")),
    (f"{SHOP}/pods", pod("doomed-one", "one")), (f"{SHOP}/pods", pod("doomed-two", "two")),
    (f"{SHOP}/pods", mirror("mirrored", "one")),
    (f"{SHOP}/pods", pod("extra", "more", serviceAccountName=ACCOUNT)),
    (f"{CSI}/volumeattachments", named("attached", spec={"attacher": "a", "nodeName": "one", "source": {"persistentVolumeName": "disk"}})),
    *[(f"{CSI}/csinodes", named(name, spec={"drivers": []})) for name in ("one", "two")],
    *[(f"{RESOURCE}/resourceslices", named(f"slice-{node}", spec={
        "driver": "d.example.com", "nodeName": node, "pool": {"name": node, "generation": 1, "resourceSliceCount": 1}}))
      for node in ("one", "two")],
    (f"{RESOURCE}/namespaces/shop/resourceclaims", named("device", spec={})),
    (f"{RESOURCE}/namespaces/shop/resourceclaims", named("made", spec={})),
    *[(f"{LEASES}/{space}/leases", named(name, spec={})) for space in ("kube-node-lease", "shop") for name in ("one", "two")],
    (f"{RBAC}/clusterroles", named(NODE_USERS[1], rules=NODE_USERS[2])),
    (f"{RBAC}/clusterrolebindings", binding("more", "more", user("system:node:more"))),
    (f"{RBAC}/clusterrolebindings", binding("dangling", "missing", user(TWO))),
]
STATUS = [(f"{SHOP}/pods/busy/status", {"status": {"resourceClaimStatuses": [{"name": "t", "resourceClaimName": "made"}],
                                                   "extendedResourceClaimStatus": {"resourceClaimName": "extended", "requestMappings": [
                                                       {"containerName": "c", "resourceName": "example.com/x", "requestName": "r"}]}}})]
SECRETS = ["by-volume", "by-projection", "by-csi", "by-rbd", "by-azure", "by-iscsi", "by-cephfs", "by-flex", "by-scaleio", "by-storageos",
           "by-cinder", "by-env", "by-env-from", "by-pull", "by-init", "unused", "azure"]
SECRETS_OF_VOLUMES = ["publish", "stage", "expand", "controller", "controller-expand", "rbd", "azure"]
READS = [
    *[f"{SHOP}/secrets/{name}" for name in SECRETS], *[f"{CORE}/namespaces/bank/secrets/{name}" for name in SECRETS_OF_VOLUMES],
    *[f"{SHOP}/configmaps/{name}" for name in ("by-volume", "by-projection", "by-env", "by-env-from", "unused", "by-pull")],
    *[f"{SHOP}/persistentvolumeclaims/{name}" for name in ("claim", "busy-v5", "other", "missing", "claim/status")],
    *[f"{CORE}/persistentvolumes/{name}" for name in ("disk", "other", "missing", "azure", "disk/status")],
    *[f"{RESOURCE}/namespaces/shop/resourceclaims/{name}" for name in ("device", "made", "extended", "template", "missing")],
    *[f"{SHOP}/serviceaccounts/{name}" for name in (ACCOUNT, "other", "missing")],
    *[f"{SHOP}/pods/{name}" for name in ("busy", "calm", "free", "mirrored", "missing", "busy/log", "busy/status")],
    f"{SHOP}/secrets", f"{CORE}/secrets", f"{SHOP}/secrets?fieldSelector=metadata.name%3Dby-volume", f"{CORE}/configmaps",
    f"{SHOP}/configmaps",
    f"{SHOP}/configmaps?fieldSelector=metadata.name%3Dby-volume&watch=1&timeoutSeconds=1",
    f"{CORE}/watch/namespaces/shop/secrets/by-volume?timeoutSeconds=1", f"{SHOP}/secrets/by-volume/status",
    f"{CORE}/pods", f"{SHOP}/pods", f"{CORE}/pods?fieldSelector=spec.nodeName%3Done", f"{SHOP}/pods?fieldSelector=spec.nodeName%3Done",
    f"{CORE}/pods?fieldSelector=spec.nodeName%3D%3Dtwo", f"{CORE}/pods?fieldSelector=spec.nodeName%21%3Done",
    f"{CORE}/pods?fieldSelector=spec.nodeName%3Done%2Cstatus.phase%3DPending", f"{CORE}/pods?fieldSelector=spec.nodeName%3D",
    f"{CORE}/pods?fieldSelector=spec.nodeName%3Done%2Cx", f"{CORE}/pods?fieldSelector=spec.nodeName%3Done%2Cunknown%3Dx",
    f"{CORE}/pods?fieldSelector=spec.nodeName%3Do%5Cne", f"{CORE}/pods?fieldSelector=%2Cspec.nodeName%3Done%2C",
    f"{CORE}/pods?fieldSelector=spec.nodeName%3Done&watch=1&timeoutSeconds=1",
    f"{CORE}/watch/pods?fieldSelector=spec.nodeName%3Done&timeoutSeconds=1",
    f"{SHOP}/pods?fieldSelector=metadata.name%3Dbusy", f"{CORE}/pods?labelSelector=a%3Db",
    *[f"{CORE}/nodes{rest}" for rest in ("", "/one", "/two", "/none", "/one/status", "?fieldSelector=metadata.name%3Done",
                                         "?fieldSelector=metadata.name%3Dtwo&watch=1&timeoutSeconds=1", "/one/proxy")],
    f"{CORE}/services", f"{SHOP}/services/x", f"{SHOP}/services/x/status", f"{SHOP}/endpoints", f"{SHOP}/endpoints/x",
    f"{CORE}/namespaces", f"{CORE}/namespaces/shop", f"{SHOP}/events", f"{SHOP}/replicationcontrollers",
    *[f"{CSI}/{rest}" for rest in ("volumeattachments", "volumeattachments/attached", "volumeattachments/missing", "csinodes",
                                   "csinodes/one",
                                   "csinodes/two", "csidrivers", "csidrivers/csi.example.com", "storageclasses")],
    *[f"{RESOURCE}/{rest}" for rest in ("resourceslices", "resourceslices/slice-one", "resourceslices/slice-two", "resourceslices/missing",
                                        "resourceslices?fieldSelector=spec.nodeName%3Done",
                                        "resourceslices?fieldSelector=spec.nodeName%3Dtwo",
                                        "deviceclasses")],
    *[f"{LEASES}/{rest}" for rest in ("kube-node-lease/leases", "kube-node-lease/leases/one", "kube-node-lease/leases/two",
                                      "shop/leases/one")],
    "/apis/coordination.k8s.io/v1/leases", CERTIFICATES, f"{CERTIFICATES}/x", f"{CERTIFICATES}/x/approval",
    "/apis/node.k8s.io/v1/runtimeclasses", "/apis/apps/v1/deployments", f"{RBAC}/clusterroles", "/version", "/metrics", "/api", "/healthz",
    "/x",
    "/apis/certificates.k8s.io/v1beta1/podcertificaterequests", "/apis/certificates.k8s.io/v1beta1/clustertrustbundles",
]
MERGE = "application/merge-patch+json"


def token_request(name="busy", uid=None, audiences=(), **ref):
    bound = {"kind": "Pod", "apiVersion": "v1", "name": name, "uid": f"@uid {SHOP}/pods/{name}@" if uid is None else uid, **ref}
    return {"spec": {"audiences": list(audiences), "boundObjectRef": {key: value for key, value in bound.items() if value != ""}}}


def request_for(subject):
    made = subprocess.run(["openssl", "req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout",
                           "/dev/null",
                           "-subj", subject], check=True, capture_output=True)
    return base64.b64encode(made.stdout).decode()


def cluster_of(answer):
    """The code, and a refusal with its texts, without what differs between two clusters."""
    code, body = without_times(answer)
    return code, None if code < 400 else re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "UID", json.dumps(body, sort_keys=True))


class SameNodes(unittest.TestCase):
    maxDiff = None
    wait_for = classmethod(access.SameAccess.wait_for.__func__)
    copy_roles = classmethod(access.SameAccess.copy_roles.__func__)
    await_same = classmethod(access.SameAccess.await_same.__func__)

    @classmethod
    def setUpClass(cls):
        scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(scratch.cleanup)
        root = pathlib.Path(scratch.name)
        tokens = root / "users.csv"
        tokens.write_text("".join(f'{token_of(name)},{name},uid' + (f',"{",".join(groups)}"' if groups else "") + "\n"
                                  for name, groups in USERS.items()))
        cls.backend = Server(str(root / "backend"))
        cls.backend.start()
        cls.addClassCleanup(cls.backend.stop)
        cls.apiserver = Apiserver(root, cls.backend.url, (
            "--request-timeout=30s", f"--token-auth-file={tokens}", "--authorization-mode=Node,RBAC",
            "--enable-admission-plugins=NodeRestriction", "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition"))
        cls.addClassCleanup(cls.apiserver.stop)
        port = free_port()
        cls.server = Server(str(root / "data"), args=[
            f"--listen-kube-urls=https://127.0.0.1:{port}", "--kube-authorization-mode=Node,RBAC", f"--kube-token-file={tokens}",
            "--kube-enable-admission-plugins=NodeRestriction", "--kube-disable-admission-plugins=ServiceAccount,TaintNodesByCondition",
            "--auto-tls", "--kube-service-account-issuer=https://kubernetes.default.svc",
            f"--kube-service-account-key-file={root}/sa.key", f"--kube-service-account-signing-key-file={root}/sa.key",
            "--kube-garbage-collector=false", "--kube-quota-controller=false"])
        cls.server.start()
        cls.addClassCleanup(cls.server.stop)
        cls.ours = Client(f"127.0.0.1:{port}", token_of("admin"))
        cls.addClassCleanup(cls.ours.close)
        cls.theirs = Client(f"127.0.0.1:{cls.apiserver.port}", token_of("admin"))
        cls.addClassCleanup(cls.theirs.close)
        cls.uids = {cls.ours: {}, cls.theirs: {}}
        cls.wait_for("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/system:kube-scheduler")
        cls.copy_roles()
        for path, body in SETUP:
            for client in (cls.theirs, cls.ours):
                code, answer = client.send("POST", path, cls.with_uids(client, body))
                if code not in (201, 409):
                    raise AssertionError(f"{client.host}{path}: {code} {answer}")
        for path, body in STATUS:
            for client in (cls.theirs, cls.ours):
                code, answer = client.send("PATCH", path, body)
                if code != 200:
                    raise AssertionError(f"{client.host}{path}: {code} {answer}")
        for path in (f"{RESOURCE}/namespaces/shop/resourceclaims/made", f"{RESOURCE}/resourceslices/slice-one",
                     f"{CSI}/volumeattachments/attached", f"{CORE}/namespaces/bank/secrets/stage"):
            cls.await_same(lambda client, path=path: client.send("GET", path, token=token_of(ONE))[0], 200)
        cls.await_same(lambda client: client.send("GET", f"{SHOP}/secrets", token=token_of("system:node:more"))[0], 200)

    @classmethod
    def with_uids(cls, client, body):
        """Puts the uid of an object of this cluster in the place of "@uid PATH@"."""
        def uid_of(match):
            path = match.group(1)
            if path not in cls.uids[client]:
                cls.uids[client][path] = client.send("GET", path)[1]["metadata"]["uid"]
            return cls.uids[client][path]
        return None if body is None else json.loads(re.sub(r"@uid ([^@]*)@", uid_of, json.dumps(body)))

    def answer(self, client, method, path, body, **more):
        return cluster_of(client.send(method, path, self.with_uids(client, body), **more))

    def compare(self, method, path, body=None, **more):
        theirs, ours = (self.answer(client, method, path, body, **more) for client in (self.theirs, self.ours))
        with self.subTest(request=str((method, path, body, more))[:400]):
            self.assertEqual(ours, theirs)
        return theirs[0]

    def all_of(self, login, requests):
        return [self.compare(method, path, body, token=token_of(login), **(more[0] if more else {})) for method, path, body,
                *more in requests]

    def test_a_kubelet_reads_what_its_pods_use_and_nothing_else(self):
        codes = [self.compare("GET", path, token=token_of(login)) for login, path in itertools.product(KUBELETS, READS)]
        self.assertGreater(codes.count(200), 60)
        self.assertGreater(codes.count(403), 300)
        self.assertGreater(codes.count(404), 10)

    def test_verbs_that_a_kubelet_does_not_have_are_refused(self):
        paths = [f"{SHOP}/secrets/by-volume", f"{SHOP}/configmaps/by-volume", f"{SHOP}/persistentvolumeclaims/claim", f"{SHOP}/pods/busy",
                 f"{CORE}/persistentvolumes/disk", f"{CSI}/volumeattachments/attached", f"{SHOP}/serviceaccounts/{ACCOUNT}",
                 f"{RESOURCE}/namespaces/shop/resourceclaims/device", f"{SHOP}/services/x", f"{CORE}/nodes/one/proxy",
                 f"{SHOP}/pods/busy/exec",
                 f"{SHOP}/pods/busy/binding", f"{SHOP}/pods/busy/ephemeralcontainers", f"{CSI}/csidrivers/csi.example.com",
                 f"{SHOP}/events/x", f"{RESOURCE}/namespaces/shop/resourceclaims/device/status"]
        for login, path, method in itertools.product((ONE, TWO), paths, ("PUT", "PATCH", "DELETE")):
            self.compare(method, path, {"metadata": {"labels": {"x": "y"}}} if method != "DELETE" else None, token=token_of(login))
        for login, path in itertools.product((ONE, TWO), ("secrets", "configmaps", "persistentvolumeclaims", "serviceaccounts",
                                                          "services")):
            self.compare("DELETE", f"{SHOP}/{path}", token=token_of(login))
            self.compare("POST", f"{SHOP}/{path}", named("new"), token=token_of(login))
        self.compare("DELETE", f"{SHOP}/pods?fieldSelector=spec.nodeName%3Done", token=token_of(ONE))
        self.compare("DELETE", f"{CORE}/nodes/one", token=token_of(ONE))
        self.compare("DELETE", f"{CORE}/nodes/one", token=token_of("system:node:more"))

    def review(self, kind, spec, login):
        body = {"spec": spec, "metadata": {"namespace": "shop"} if kind.startswith("local") else {}}
        space = "/namespaces/shop" if kind.startswith("local") else ""
        answers = [without_times(client.send("POST", f"{AUTHORIZATION}{space}/{kind}", body, token=token_of(login)))
                   for client in (self.theirs, self.ours)]
        for answer in [answer for code, answer in answers if code == 201]:
            for rules in ("resourceRules", "nonResourceRules"):
                answer.get("status", {}).get(rules, []).sort(key=json.dumps)
        with self.subTest(kind=kind, spec=spec, login=login):
            self.assertEqual(answers[1], answers[0])

    def test_reviews_say_the_same(self):
        selected = {"verb": "list", "resource": "pods"}
        resources = [
            {"verb": "get", "resource": "secrets", "namespace": "shop", "name": "by-volume"},
            {"verb": "get", "resource": "secrets", "namespace": "shop", "name": "unused"}, {"verb": "list", "resource": "secrets"},
            {"verb": "get", "resource": "secrets", "name": "by-volume"}, {"verb": "get", "resource": "secrets", "namespace": "shop"},
            {"verb": "create", "resource": "serviceaccounts", "subresource": "token", "namespace": "shop", "name": ACCOUNT},
            {"verb": "create", "resource": "serviceaccounts", "subresource": "x", "namespace": "shop", "name": ACCOUNT},
            {"verb": "x", "resource": "podcertificaterequests", "group": "certificates.k8s.io"},
            {"verb": "get", "resource": "nodes", "name": "one"},
            {"verb": "update", "resource": "nodes", "subresource": "status", "name": "two"}, {"verb": "x", "resource": "nodes"},
            {"verb": "create", "resource": "subjectaccessreviews", "group": "authorization.k8s.io"}, selected,
            {"verb": "create", "resource": "events", "group": "events.k8s.io"}, {"verb": "*", "resource": "*", "group": "*"},
            *[dict(selected, fieldSelector=selector) for selector in (
                {"rawSelector": "spec.nodeName=one"}, {"rawSelector": "spec.nodeName=two"}, {"rawSelector": "spec.nodeName!=one"},
                {"requirements": [{"key": "spec.nodeName", "operator": "In", "values": ["one"]}]},
                {"requirements": [{"key": "spec.nodeName", "operator": "In", "values": ["two"]}]},
                {"requirements": [{"key": "spec.nodeName", "operator": "NotIn", "values": ["one"]}]})],
        ]
        specs = [{"resourceAttributes": item} for item in resources] + [{"nonResourceAttributes": {"verb": "get", "path": "/metrics"}}]
        for login, spec in itertools.product((ONE, TWO, "jane", "system:node:more"), specs):
            self.review("selfsubjectaccessreviews", spec, login)
            self.review("subjectaccessreviews", dict(spec, user=login, groups=USERS[login]), "admin")
        for login in (ONE, TWO, "jane", "system:node:outside", "admin"):
            self.review("selfsubjectrulesreviews", {"namespace": "shop"}, login)

    def test_a_node_changes_its_own_node_within_limits(self):
        labels = ["a", "example.com/a", "kubernetes.io/hostname", "kubernetes.io/os", "kubernetes.io/a", "a.kubernetes.io/a", "k8s.io/a",
                  "kubelet.kubernetes.io/a", "a.kubelet.kubernetes.io/a", "node.kubernetes.io/a", "node-restriction.kubernetes.io/a",
                  "a.node-restriction.kubernetes.io/a", "topology.kubernetes.io/zone", "xkubernetes.io/a", "xkubelet.kubernetes.io/a",
                  "beta.kubernetes.io/os", "node-role.kubernetes.io/control-plane", "topology.kubernetes.io/x"]
        taint = {"key": "a", "effect": "NoSchedule"}
        owner = {"apiVersion": "v1", "kind": "Namespace", "name": "shop", "uid": "x"}
        patches = [{"metadata": {"labels": {label: "x"}}} for label in labels] + [
            {"metadata": {"labels": {label: "x" for label in labels}}}, {"spec": {"taints": [taint]}}, {"spec": {"taints": []}},
            {"spec": {"podCIDR": "10.1.0.0/24"}}, {"metadata": {"ownerReferences": [owner]}}, {"metadata": {"annotations": {"a": "b"}}},
            {"spec": {"configSource": {"configMap": {"namespace": "n", "name": "m", "uid": "u", "kubeletConfigKey": "k"}}}},
            {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}, {"metadata": {"finalizers": ["example.com/x"]}},
        ]
        requests = [("PATCH", f"{CORE}/nodes/{node}{part}", patch) for node in ("one", "two") for part in ("",
                                                                                                           "/status") for patch in patches]
        codes = self.all_of(ONE, requests) + self.all_of("system:node:", requests[:2]) + self.all_of("system:node:outside", requests[:2])
        self.assertGreater(codes.count(403), 60)
        self.assertGreater(codes.count(200), 20)
        made = [named(name, metadata={"name": name, "labels": dict.fromkeys(keys, "x")}, **fields) for name, keys, fields in (
            ("none", ["kubernetes.io/a", "node-restriction.kubernetes.io/a", "b"], {}), ("other", [], {}),
            ("none", [], {"spec": {"configSource": {"configMap": {"namespace": "n", "name": "m", "uid": "u", "kubeletConfigKey": "k"}}}}),
            ("none", ["kubernetes.io/os", "b"], {"spec": {"taints": [taint]}}))]
        self.all_of("system:node:none", [("POST", f"{CORE}/nodes", body) for body in made])
        self.all_of("system:node:none", [("POST", f"{CORE}/nodes", {"metadata": {"generateName": "none"}})])
        for body in ({"metadata": {"name": "one"}}, {"metadata": {"name": "one", "labels": {"kubernetes.io/a": "x"}}}):
            self.all_of(ONE, [("PUT", f"{CORE}/nodes/one", body), ("PUT", f"{CORE}/nodes/one/status", body)])
        self.all_of("system:node:more", [("DELETE", f"{CORE}/nodes/two", None)])

    def test_a_node_creates_its_own_mirror_pods_alone(self):
        changes = [
            {}, {"owner": {"controller": False}}, {"owner": {"controller": None}}, {"owner": {"name": "two"}}, {"owner": {"kind": "Pod"}},
            {"owner": {"apiVersion": "v2"}}, {"owner": {"blockOwnerDeletion": True}}, {"uid": "other"},
            {"metadata": {"ownerReferences": []}},
            {"metadata": {"annotations": {}}}, {"metadata": {"ownerReferences": [dict(apiVersion="v1", kind="Node", name="one",
                                                                                      uid=uid) for uid in "uv"]}},
            {"spec": {"serviceAccountName": ACCOUNT}}, {"spec": {"imagePullSecrets": [{"name": "s"}]}},
            {"spec": {"resourceClaims": [{"name": "r", "resourceClaimName": "c"}]}},
            {"spec": {"container": {"envFrom": [{"configMapRef": {"name": "c"}}]}}},
            {"spec": {"container": {"env": [{"name": "a", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]}}},
            *[{"spec": {"volumes": [volume]}} for volume in VOLUMES],
            *[{"spec": {"volumes": [{"name": "p", "projected": {"sources": [source]}}]}} for source in (
                {"serviceAccountToken": {"path": "t"}}, {"configMap": {"name": "c"}},
                {"clusterTrustBundle": {"name": "b", "path": "p"}},
                {"downwardAPI": {"items": [{"path": "p", "fieldRef": {"fieldPath": "metadata.name"}}]}}, {})],
            {"spec": {"volumes": [{"name": "p", "projected": {"sources": [{}, {"secret": {"name": "s"}}]}}]}},
            {"spec": {"volumes": [{"name": "p", "projected": {}}]}}, {"spec": {"volumes": [{"name": "p"}, {"name": "q", "unknown": {}}]}},
            {"spec": {"volumes": [{"name": "g", "glusterfs": {"endpoints": "e", "path": "p"}}]}},
            {"spec": {"volumes": [{"name": "e", "emptyDir": {}}, {"name": "h", "hostPath": {"path": "/"}}]}},
        ]
        bodies = [mirror(f"m{number}", "one", **change) for number, change in enumerate(changes)]
        bodies += [mirror("m-two", "two", uid="x"), pod("plain", "one"), pod("none")]
        codes = self.all_of(ONE, [("POST", f"{SHOP}/pods", body) for body in bodies])
        self.assertGreater(codes.count(403), 25)
        self.assertGreaterEqual(codes.count(201), 3)
        self.all_of("system:node:none", [("POST", f"{SHOP}/pods", mirror("of-none", "none", uid="x"))])

    def test_a_node_deletes_and_evicts_its_own_pods_alone(self):
        eviction = {"apiVersion": "policy/v1", "kind": "Eviction"}
        self.all_of(ONE, [("POST", f"{SHOP}/pods/{name}/eviction", {**eviction, **named(name)}) for name in ("calm", "missing", "free")])
        self.all_of(ONE, [("DELETE", f"{SHOP}/pods/{name}", None) for name in ("calm", "missing", "free", "doomed-two", "doomed-one")])
        codes = self.all_of(TWO, [("POST", f"{SHOP}/pods/doomed-two/eviction", {**eviction, **named("doomed-two")})])
        self.assertEqual(codes, [201])
        self.all_of(TWO, [("GET", f"{SHOP}/pods/doomed-two", None), ("DELETE", f"{SHOP}/pods/doomed-two", None)])
        self.all_of("system:node:more", [
            ("POST", f"{SHOP}/pods/free/binding", {"target": {"kind": "Node", "name": "more"}, **named("free")}),
            ("PATCH", f"{SHOP}/pods/extra", {"metadata": {"labels": {"a": "b"}}}),
            ("PATCH", f"{SHOP}/pods/extra/resize", {"spec": {}}), ("PATCH", f"{SHOP}/pods/extra/ephemeralcontainers", {"spec": {}})])

    def test_a_node_deletes_no_collections(self):
        more = "system:node:more"
        made = [(f"{SHOP}/pods", pod("many", "more")), (f"{CSI}/csinodes", named("more", spec={"drivers": []})),
                (f"{LEASES}/kube-node-lease/leases", named("more", spec={})), (f"{SHOP}/persistentvolumeclaims", claim("many"))]
        for path, body in made:
            body["metadata"]["labels"] = {"set": "many"}
            self.compare("POST", path, body)
        self.compare("PATCH", f"{CORE}/nodes/more", {"metadata": {"labels": {"set": "many"}}})
        for path in (f"{SHOP}/pods", f"{CORE}/nodes", f"{CSI}/csinodes", f"{LEASES}/kube-node-lease/leases", f"{LEASES}/shop/leases",
                     f"{SHOP}/persistentvolumeclaims"):
            for selector in ("set=many", "set=none"):
                for preconditions in (None, {"dryRun": ["All"]}):
                    self.compare("DELETE", f"{path}?labelSelector={selector}", preconditions, token=token_of(more))
            answers = [sorted(item["metadata"]["name"] for item in client.send("GET", f"{path}?labelSelector=set=many")[1]["items"])
                       for client in (self.theirs, self.ours)]
            with self.subTest(path=path):
                self.assertEqual(answers[1], answers[0])
        for path, body in made:
            self.compare("DELETE", f"{path}/{body['metadata']['name']}", {"gracePeriodSeconds": 0})

    def test_a_node_reports_the_status_of_its_own_pods_alone(self):
        statuses = [
            {"status": {"phase": "Running"}}, {"metadata": {"labels": {"a": "b"}}}, {"metadata": {"annotations": {"a": "b"}}},
            {"status": {"resourceClaimStatuses": [{"name": "t", "resourceClaimName": "stolen"}]}},
            {"status": {"resourceClaimStatuses": []}},
            {"status": {"resourceClaimStatuses": [{"name": "t"}]}},
            {"status": {"resourceClaimStatuses": [{"name": "u", "resourceClaimName": "made"}]}},
            {"status": {"extendedResourceClaimStatus": {"resourceClaimName": "stolen"}}}, {"status": {"extendedResourceClaimStatus": None}},
            {"status": {"extendedResourceClaimStatus": {"requestMappings": []}}}, {"spec": {"nodeName": "two"}},
        ]
        requests = [("PATCH", f"{SHOP}/pods/{name}/status", status) for name in ("busy", "calm", "free", "missing") for status in statuses]
        codes = self.all_of(ONE, requests)
        self.assertGreater(codes.count(403), 20)
        self.assertGreater(codes.count(200), 1)
        self.all_of("system:node:more", [("PATCH", f"{SHOP}/pods/extra/status", {"metadata": {"labels": {"a": "b"}}})])

    def test_a_node_requests_tokens_that_are_bound_to_its_own_pods(self):
        path = f"{SHOP}/serviceaccounts/{ACCOUNT}/token"
        bodies = [
            token_request(), token_request("calm"), token_request("free"), token_request("missing", "u"), token_request(uid=""),
            token_request(uid="other"), token_request(name="", uid="u"), token_request(kind="Secret", uid="u"),
            token_request(apiVersion="v2"),
            {"spec": {"audiences": []}}, {"spec": {"audiences": [], "boundObjectRef": None}},
            *[token_request(audiences=[audience]) for audience in ("projected", "by-driver", "inline", "unknown", "extra")],
            token_request(audiences=["projected", "by-driver"]), token_request(audiences=["unknown", "projected"]),
        ]
        for login in (ONE, TWO, "system:node:none", "system:node:outside"):
            self.all_of(login, [("POST", path, body) for body in bodies])
        codes = self.all_of("system:node:more", [("POST", path, token_request("extra", audiences=audiences)) for audiences in (
            [], ["extra"], ["unknown"], ["extra", "extra"])])
        self.assertEqual(codes[1], 201)
        self.all_of(TWO, [("POST", f"{SHOP}/serviceaccounts/other/token", body) for body in (token_request("calm"), token_request())])
        self.all_of(ONE, [("POST", f"{SHOP}/serviceaccounts/other/token", token_request()),
                          ("POST", f"{SHOP}/serviceaccounts/missing/token", token_request())])

    def test_a_node_changes_nothing_of_a_claim_but_its_size(self):
        def without_difference(answer):
            code, text = answer
            return code, text and re.sub(r"(status.quantity and status.conditions: ).*?\", \"metadata\"", r"\1", text)
        patches = [
            {"status": {"capacity": {"storage": "2Gi"}}}, {"status": {"conditions": [{"type": "Resizing", "status": "True"}]}},
            {"status": {"allocatedResources": {"storage": "2Gi"}}},
            {"status": {"allocatedResourceStatuses": {"storage": "NodeResizePending"}}},
            {"status": {"phase": "Bound"}}, {"status": {"accessModes": ["ReadWriteMany"]}}, {"metadata": {"labels": {"a": "b"}}},
            {"metadata": {"finalizers": ["example.com/x"]}}, {"spec": {"volumeName": "other"}}, {},
        ]
        codes = []
        for name, patch in itertools.product(("claim", "other"), patches):
            theirs, ours = (self.answer(client, "PATCH", f"{SHOP}/persistentvolumeclaims/{name}/status", patch, token=token_of(ONE))
                            for client in (self.theirs, self.ours))
            with self.subTest(name=name, patch=patch):
                self.assertEqual(without_difference(ours), without_difference(theirs))
            codes.append(theirs[0])
        self.assertGreater(codes.count(200), 3)
        self.assertGreater(codes.count(403), 13)
        for change in ({}, {"spec": {"volumeName": "other"}}, {"metadata": {"labels": {"a": "b"}}}, {"status": {"phase": "Lost"}},
                       {"status": {"capacity": {"storage": "3Gi"}}}):
            answers = []
            for client in (self.theirs, self.ours):
                body = client.send("GET", f"{SHOP}/persistentvolumeclaims/claim")[1]
                for part, fields in change.items():
                    body[part].update(fields)
                answers.append(without_difference(self.answer(client, "PUT", f"{SHOP}/persistentvolumeclaims/claim/status", body,
                                                              token=token_of(ONE))))
            with self.subTest(put=change):
                self.assertEqual(answers[1], answers[0])
        self.all_of("system:node:more", [("PATCH", f"{SHOP}/persistentvolumeclaims/claim", {"metadata": {"labels": {"a": "b"}}}),
                                         ("POST", f"{SHOP}/persistentvolumeclaims", claim("new"))])

    def test_a_node_has_one_lease_one_csi_node_and_slices_of_its_own(self):
        lease, other = f"{LEASES}/kube-node-lease/leases", f"{LEASES}/shop/leases"
        spec = {"spec": {"holderIdentity": "x"}}
        self.all_of(ONE, [
            *[("PATCH", f"{lease}/{name}", spec) for name in ("one", "two", "missing")], ("PATCH", f"{other}/one", spec),
            *[("POST", lease, named(name, spec={})) for name in ("new", "one")],
            ("POST", lease, {"metadata": {"generateName": "one"}, "spec": {}}),
            ("DELETE", f"{lease}/two", None), ("DELETE", f"{lease}/one", None), ("POST", lease, named("one", spec={})),
            ("DELETE", lease, None)])
        self.all_of("system:node:more", [("POST", other, named("more", spec={})), ("POST", lease, named("more", spec={})),
                                         ("PATCH", f"{lease}/two", spec)])
        nodes = f"{CSI}/csinodes"
        self.all_of(ONE, [
            *[("PATCH", f"{nodes}/{name}", {"metadata": {"labels": {"a": "b"}}}) for name in ("one", "two")],
            *[("POST", nodes, named(name, spec={"drivers": []})) for name in ("new", "one")],
            ("DELETE", f"{nodes}/two", None), ("DELETE", f"{nodes}/one", None), ("POST", nodes, named("one", spec={"drivers": []}))])
        slices = f"{RESOURCE}/resourceslices"

        def slice_of(name, **fields):
            return named(name, spec={"driver": "d.example.com", "pool": {"name": name, "generation": 1, "resourceSliceCount": 1}, **fields})
        self.all_of(ONE, [
            ("POST", slices, slice_of("new-one", nodeName="one")), ("POST", slices, slice_of("new-two", nodeName="two")),
            ("POST", slices, slice_of("new-all", allNodes=True)),
            *[("PATCH", f"{slices}/slice-{name}", {"metadata": {"labels": {"a": "b"}}}) for name in ("one", "two")],
            ("DELETE", f"{slices}/slice-two", None), ("DELETE", slices, None),
            ("DELETE", f"{slices}?fieldSelector=spec.nodeName%3Dtwo", None),
            ("DELETE", f"{slices}?fieldSelector=spec.nodeName%3Done", None)])

    def test_a_node_requests_certificates_for_itself(self):
        def request(name, subject, signer):
            return named(name, spec={"request": request_for(subject), "signerName": signer, "usages": ["digital signature", "client auth"]})
        signers = ("kubernetes.io/kubelet-serving", "kubernetes.io/kube-apiserver-client-kubelet", "kubernetes.io/kube-apiserver-client",
                   "example.com/any")
        subjects = ("/O=system:nodes/CN=system:node:one", "/O=system:nodes/CN=system:node:two", "/O=system:nodes", "/CN=one",
                    "/CN=system:node:two/CN=system:node:one", "/CN=system:node:one/CN=system:node:two")
        cases = list(itertools.product(signers, subjects))
        codes = self.all_of(ONE, [("POST", CERTIFICATES, request(f"r{number}", subject, signer)) for number,
                                  (signer, subject) in enumerate(cases)])
        self.assertGreater(codes.count(201), 10)
        self.assertGreater(codes.count(403), 5)
        damaged = named("damaged", spec={"request": base64.b64encode(b"x").decode(), "signerName": signers[0], "usages": ["client auth"]})
        self.all_of(ONE, [("POST", CERTIFICATES, damaged)])

    def test_what_a_node_creates_besides(self):
        event = {"involvedObject": {"kind": "Pod", "name": "busy", "namespace": "shop"}, "reason": "r", "message": "m", "type": "Normal"}
        review = {"spec": {"user": "x", "resourceAttributes": {"verb": "get", "resource": "pods"}}}
        self.all_of(ONE, [
            ("POST", f"{SHOP}/events", named("made", "shop", **event)), ("PATCH", f"{SHOP}/events/made", {"message": "n"}),
            ("DELETE", f"{SHOP}/events/made", None), ("POST", f"{AUTHORIZATION}/subjectaccessreviews", review),
            ("POST", "/apis/authentication.k8s.io/v1/tokenreviews", {"spec": {"token": "x"}}),
            ("POST", f"{SHOP}/configmaps", named("made")), ("POST", f"{CORE}/namespaces", named("made")),
            ("POST", f"{SHOP}/serviceaccounts", named("made")),
            ("POST", f"{RBAC}/clusterrolebindings", binding("made", "cluster-admin", user(ONE)))])


if __name__ == "__main__":
    unittest.main(verbosity=2)
