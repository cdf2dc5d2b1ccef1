#!/usr/bin/python3
"""Limit ranges and quotas: the same requests get the same answers from Vigil and from a real kube-apiserver, and many creates
at once end in the same state. The status of quotas, which kube-controller-manager fills in a cluster, is set by the test."""
import concurrent.futures
import copy
import itertools
import pathlib
import re
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "live"))
from apiserver_test import READY_SECONDS  # noqa: E402
from same_writes_test import Client  # noqa: E402
from side_by_side import SideBySide  # noqa: E402

MERGE = "application/merge-patch+json"
AT_ONCE = 12
PARTS = re.compile(r", (?=minimum |maximum |\S+ max limit )")
namespaces = itertools.count(1)


def container(name="c", requests=None, limits=None, **fields):
    return {"name": name, "image": "i", "resources": {"requests": requests or {}, "limits": limits or {}}, **fields}


def pod(*containers, init=(), name="p", **spec):
    return {"metadata": {"name": name}, "spec": {"containers": list(containers), "initContainers": list(init), **spec}}


def claim(storage=None, **spec):
    requests = {"storage": storage} if storage else {}
    return {"metadata": {"name": "v"}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": requests}, **spec}}


def service(name, **spec):
    return {"metadata": {"name": name}, "spec": {"ports": [{"port": 80}], **spec}}


def sort_parts(message):
    """Kubernetes names resources in any order."""
    before, bracket, rest = message.partition("[")
    return before + bracket + ", ".join(sorted(PARTS.split(rest.rstrip("]")))) if bracket else message


def shown(answer):
    """The code and the error, or what admission has set in a pod."""
    code, body = answer
    if body.get("kind") == "Status":
        return code, body.get("reason"), sort_parts(body.get("message", "")), body.get("details")
    annotations = body["metadata"].get("annotations")
    spec = body.get("spec", {})
    return code, annotations, [[one.get("resources") for one in spec.get(part) or []] for part in ("containers", "initContainers")]


class SameQuota(SideBySide):
    client = Client

    def setUp(self):
        self.namespace = f"n{next(namespaces)}"
        self.both("POST", "/api/v1/namespaces", {"metadata": {"name": self.namespace}})

    def path(self, resource, name="", query=""):
        return f"/api/v1/namespaces/{self.namespace}/{resource}" + (f"/{name}" if name else "") + query

    def both(self, *case):
        for side in (self.theirs, self.ours):
            code, body = side.send(*case)
            self.assertIn(code, (200, 201), body)

    def same(self, *case):
        self.compare(shown, *copy.deepcopy(case))

    def dry(self, resource, body):
        """The same answer, without a change."""
        self.same("POST", self.path(resource, query="?dryRun=All"), body)

    def wait(self, resource, body, code):
        """Until the real one, whose informers are later, answers with this code."""
        end = time.monotonic() + READY_SECONDS
        while self.theirs.send("POST", self.path(resource, query="?dryRun=All"), copy.deepcopy(body))[0] != code:
            self.assertLess(time.monotonic(), end, "the kube-apiserver does not see what was written")
            time.sleep(0.05)

    # -- Limit ranges --

    def limits(self, *items):
        refused = {"type": "PersistentVolumeClaim", "max": {"storage": "9"}}
        items = items if any(item["type"] == refused["type"] for item in items) else (*items, refused)
        self.both("POST", self.path("limitranges"), {"metadata": {"name": "l"}, "spec": {"limits": list(items)}})
        self.wait("persistentvolumeclaims", claim("100Ti"), 403)

    def test_containers_get_defaults(self):
        self.limits({"type": "Container", "default": {"cpu": "1", "memory": "1Gi"}, "defaultRequest": {"cpu": "500m"}})
        self.dry("pods", pod(container()))
        self.dry("pods", pod(container(requests={"cpu": "100m"}), container("d", limits={"cpu": "3", "memory": "1024Mi"})))
        self.dry("pods", pod(container("a", {"cpu": "1", "memory": "1"}, {"cpu": "2", "memory": "2"})))
        self.dry("pods", pod(container(), init=[container("i"), container("s", restartPolicy="Always")]))
        self.dry("pods", pod(container(limits={"example.com/gpu": "1"}, requests={"example.com/gpu": "1"})))

    def test_containers_are_bounded(self):
        self.limits({"type": "Container", "min": {"cpu": "100m", "memory": "1Mi"}, "max": {"cpu": "2"},
                     "maxLimitRequestRatio": {"cpu": "3"}})
        for requests, limits in (({}, {}), ({"cpu": "50m"}, {}), ({"cpu": "1"}, {"cpu": "2"}), ({"cpu": "1"}, {"cpu": "3"}),
                                 ({"cpu": "100m", "memory": "1Mi"}, {"cpu": "1", "memory": "1k"}),
                                 ({"cpu": "500m", "memory": "2Mi"}, {"cpu": "1600m", "memory": "2Mi"}),
                                 ({"cpu": "0", "memory": "0"}, {"cpu": "0"}), ({"memory": "1Mi", "cpu": "1.5"}, {"cpu": "2"})):
            self.dry("pods", pod(container(requests=requests, limits=limits)))
        self.dry("pods", pod(container(requests={"cpu": "50m"}), container("d", requests={"cpu": "60m"}),
                             init=[container("i", requests={"cpu": "50m"})]))

    def test_pods_are_bounded(self):
        self.limits({"type": "Pod", "min": {"cpu": "1"}, "max": {"cpu": "3", "memory": "1Gi"}, "maxLimitRequestRatio": {"cpu": "2"}})
        one, two = {"cpu": "1", "memory": "512Mi"}, {"cpu": "2", "memory": "600Mi"}
        self.dry("pods", pod(container()))
        self.dry("pods", pod(container(requests=one, limits=one), container("d", one, one)))
        self.dry("pods", pod(container(requests=one, limits=one), container("d", one, two)))
        self.dry("pods", pod(container(requests=one, limits=two), container("d", one, two)))
        self.dry("pods", pod(container(requests={"cpu": "400m"}, limits=one), container("d", {"cpu": "500m"}, {"cpu": "500m"})))
        self.dry("pods", pod(container(requests=one, limits=one), init=[container("i", {"cpu": "4"}, {"cpu": "4"})]))
        sidecar = container("s", one, one, restartPolicy="Always")
        self.dry("pods", pod(container(requests=one, limits=one), init=[sidecar, container("i", two, two)]))
        self.dry("pods", pod(container(requests=one, limits=one),
                             resources={"requests": {"cpu": "2"}, "limits": {"cpu": "4", "memory": "1Gi"}}))

    def test_claims_are_bounded(self):
        self.limits({"type": "PersistentVolumeClaim", "min": {"storage": "1Gi"}, "max": {"storage": "2Gi"}})
        for storage in ("1Gi", "2Gi", "3Gi", "1Mi", "1500Mi", "2.5Gi"):
            self.dry("persistentvolumeclaims", claim(storage))

    # -- Quotas --

    def quota(self, hard, used=None, name="q", **spec):
        """The configmap that a second quota refuses shows when both are known."""
        self.both("POST", self.path("resourcequotas"), {"metadata": {"name": name}, "spec": {"hard": hard, **spec}})
        used = {resource: "0" for resource in hard} if used is None else used
        self.both("PATCH", self.path("resourcequotas", name, "/status"), {"status": {"hard": hard, "used": used}}, MERGE)
        probe = f"probe-{name}"
        self.both("POST", self.path("resourcequotas"), {"metadata": {"name": probe}, "spec": {"hard": {"configmaps": "0"}}})
        self.both("PATCH", self.path("resourcequotas", probe, "/status"),
                  {"status": {"hard": {"configmaps": "0"}, "used": {"configmaps": "0"}}}, MERGE)
        self.wait("configmaps", {"metadata": {"name": "probe"}}, 403)
        self.both("DELETE", self.path("resourcequotas", probe))
        self.wait("configmaps", {"metadata": {"name": "probe"}}, 201)

    def same_usage(self, name="q"):
        theirs, ours = (side.send("GET", self.path("resourcequotas", name))[1]["status"] for side in (self.theirs, self.ours))
        self.assertEqual(ours, theirs)

    def test_quotas_of_pods(self):
        self.quota({"pods": "3", "requests.cpu": "2", "limits.memory": "2Gi", "requests.ephemeral-storage": "1Gi",
                    "requests.example.com/gpu": "1", "count/pods": "10"})
        fine = container(requests={"cpu": "700m"}, limits={"memory": "600Mi"})
        self.dry("pods", pod(container()))
        self.dry("pods", pod(container("a"), container("b", {"cpu": "1"}), init=[container("i")]))
        self.dry("pods", pod(*[container(f"container-{i}-with-a-long-name") for i in range(60)]))
        self.dry("pods", pod(container(requests={"cpu": "3"}, limits={"memory": "3Gi"})))
        self.dry("pods", pod(container(requests={"cpu": "1", "example.com/gpu": "2"}, limits={"memory": "1", "example.com/gpu": "2"})))
        self.dry("pods", pod(container(requests={"cpu": "1", "ephemeral-storage": "2Gi"}, limits={"memory": "1"})))
        self.dry("pods", pod(container(), resources={"requests": {"cpu": "3"}, "limits": {"memory": "1Gi"}}))
        for name in ("a", "b", "c", "d"):
            self.same("POST", self.path("pods"), pod(fine, name=name))
            self.same_usage()

    def test_quotas_with_scopes(self):
        self.quota({"pods": "0"}, name="best", scopes=["BestEffort"])
        self.quota({"pods": "1", "requests.memory": "1Gi"}, name="ending", scopes=["Terminating", "NotBestEffort"])
        self.quota({"pods": "0"}, name="critical", scopeSelector={"matchExpressions": [
            {"scopeName": "PriorityClass", "operator": "In", "values": ["system-node-critical"]}]})
        self.quota({"pods": "0"}, name="crossing", scopeSelector={"matchExpressions": [
            {"scopeName": "CrossNamespacePodAffinity", "operator": "Exists"}]})
        term = {"topologyKey": "k", "labelSelector": {}, "namespaceSelector": {}}
        some = container(requests={"memory": "600Mi"})
        self.dry("pods", pod(container()))
        self.dry("pods", pod(some))
        self.dry("pods", pod(some, priorityClassName="system-node-critical"))
        self.dry("pods", pod(some, affinity={"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}))
        self.dry("pods", pod(container(requests={"cpu": "1"}), activeDeadlineSeconds=5))
        self.same("POST", self.path("pods"), pod(some, name="a", activeDeadlineSeconds=5))
        self.same("POST", self.path("pods"), pod(some, name="b", activeDeadlineSeconds=5))
        self.same("POST", self.path("pods"), pod(some, name="c"))
        self.same("PATCH", self.path("pods", "c"), {"spec": {"activeDeadlineSeconds": 7}}, MERGE)
        self.same("PATCH", self.path("pods", "a"), {"spec": {"activeDeadlineSeconds": 3}}, MERGE)
        for name in ("best", "ending", "critical", "crossing"):
            self.same_usage(name)

    def test_quotas_of_services(self):
        self.quota({"services": "4", "services.nodeports": "3", "services.loadbalancers": "1"})
        ports = [{"name": "a", "port": 1}, {"name": "b", "port": 2}]
        for body in (service("a", type="NodePort", ports=ports), service("b", type="NodePort", ports=ports),
                     service("c", type="LoadBalancer"), service("d", type="LoadBalancer", allocateLoadBalancerNodePorts=False),
                     service("e"), service("f"), service("g")):
            code, messages = [], []
            for side in (self.theirs, self.ours):
                answer = side.send("POST", self.path("services"), copy.deepcopy(body))
                code.append(answer[0])
                messages.append(answer[1].get("message"))
            self.assertEqual((code[1], messages[1]), (code[0], messages[0]), body)
            self.same_usage()
        self.same("PATCH", self.path("services", "e"), {"spec": {"type": "NodePort"}}, MERGE)
        self.same_usage()

    def test_quotas_of_claims(self):
        gold = "gold.storageclass.storage.k8s.io/"
        self.quota({"persistentvolumeclaims": "3", "requests.storage": "10Gi", gold + "requests.storage": "2Gi",
                    gold + "persistentvolumeclaims": "1"})
        self.dry("persistentvolumeclaims", claim("11Gi"))
        self.dry("persistentvolumeclaims", claim("3Gi", storageClassName="gold"))
        for storage, class_name in (("1Gi", "gold"), ("1Gi", "gold"), ("1.5", "other"), ("5Gi", "other"), ("1Gi", "other")):
            body = claim(storage, storageClassName=class_name)
            body["metadata"] = {"name": f"v{storage.lower()}-{class_name}"}
            self.same("POST", self.path("persistentvolumeclaims"), body)
            self.same_usage()

    def test_counts(self):
        self.quota({"secrets": "1", "count/secrets": "5", "count/deployments.apps": "0", "replicationcontrollers": "1"})
        self.same("POST", self.path("secrets"), {"metadata": {"name": "a"}})
        self.same("POST", self.path("secrets"), {"metadata": {"name": "a"}})
        self.same("POST", self.path("secrets"), {"metadata": {"name": "b"}})
        self.same("POST", self.path("serviceaccounts"), {"metadata": {"name": "b"}})
        template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [container()]}}
        self.same("POST", f"/apis/apps/v1/namespaces/{self.namespace}/deployments", {
            "metadata": {"name": "d"}, "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template}})
        self.quota({"count/serviceaccounts": "1"}, {}, "unknown")
        self.same("POST", self.path("serviceaccounts"), {"metadata": {"name": "c"}})

    def test_many_creates_at_once(self):
        self.quota({"count/secrets": "20"})
        for side in (self.theirs, self.ours):
            def create(i, side=side):
                return side.send("POST", self.path("secrets"), {"metadata": {"name": f"s{i}"}})[0]
            with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
                codes = list(pool.map(create, range(50)))
            self.assertEqual(sorted(codes), [201] * 20 + [403] * 30)
            self.assertEqual(len(side.send("GET", self.path("secrets"))[1]["items"]), 20)
        self.same_usage()


if __name__ == "__main__":
    unittest.main()
