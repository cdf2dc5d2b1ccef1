#!/usr/bin/python3
"""The status of quotas, service accounts and root certificates: filled in by Vigil itself, and by a real
kube-controller-manager on a real kube-apiserver. After the same requests both must be the same."""
import copy
import itertools
import pathlib
import sys
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/live"))
sys.path.insert(0, str(ROOT / "tests/kube"))
from certs import Authority  # noqa: E402
from same_custom_test import CRDS, definition, version  # noqa: E402
from same_quota_test import MERGE, claim, container, pod, service  # noqa: E402
from same_writes_test import Client  # noqa: E402
from side_by_side import Manager, SideBySide  # noqa: E402

WAIT_SECONDS = 120
SAME_POLLS = 3  # at intervals of more than a period of the controller
CONTROLLERS = "resourcequota-controller,serviceaccount-controller,root-ca-certificate-publisher-controller"
namespaces = itertools.count(1)


def named(name, body):
    return {**body, "metadata": {**body["metadata"], "name": name}}


class SameQuotaStatus(SideBySide):
    client = Client

    @classmethod
    def setUpClass(cls):
        cls.flags = (*(flag for flag in SideBySide.flags if "quota" not in flag), "--kube-quota-controller=true",
                     "--kube-namespace-objects=true")
        super().setUpClass()
        root = pathlib.Path(cls.directory.name)
        (root / "ca").mkdir()
        authority = Authority(root / "ca")
        cls.manager = Manager(root, cls.apiserver.port, CONTROLLERS, "--resource-quota-sync-period=1s", f"--root-ca-file={authority.cert}")
        cls.wait_for(CRDS)
        for side in (cls.theirs, cls.ours):
            code, body = side.send("POST", CRDS, definition("caps", "Cap", [version()]))
            assert code == 201, body
        cls.wait_for("/apis/example.com/v1/caps")

    @classmethod
    def tearDownClass(cls):
        cls.manager.stop()
        super().tearDownClass()

    def setUp(self):
        self.namespace = f"n{next(namespaces)}"
        self.both("POST", "/api/v1/namespaces", {"metadata": {"name": self.namespace}})

    def path(self, resource, name="", group="/api/v1"):
        return f"{group}/namespaces/{self.namespace}/{resource}" + (f"/{name}" if name else "")

    def both(self, *case):
        """The same request to both, again as long as quotas have no status."""
        for side in (self.theirs, self.ours):
            end = time.monotonic() + WAIT_SECONDS
            while True:
                code, body = side.send(*copy.deepcopy(case))
                if code in (200, 201):
                    break
                self.assertIn("status unknown for quota", body["message"])
                self.assertLess(time.monotonic(), end, body)
                time.sleep(0.1)

    def make(self, resource, *bodies, group="/api/v1"):
        for body in bodies:
            self.both("POST", self.path(resource, group=group), body)

    def quota(self, name, hard, **spec):
        self.make("resourcequotas", {"metadata": {"name": name}, "spec": {"hard": {k: str(v) for k, v in hard.items()}, **spec}})

    def statuses(self, side):
        code, body = side.send("GET", self.path("resourcequotas"))
        self.assertEqual(code, 200, body)
        return {item["metadata"]["name"]: item["status"] for item in body["items"]}

    def settle(self, least=None):
        """Waits until the statuses are, and stay, the same; `least` is one that both must have."""
        end, same = time.monotonic() + WAIT_SECONDS, 0
        while same < SAME_POLLS:
            theirs, ours = self.statuses(self.theirs), self.statuses(self.ours)
            fits = theirs == ours and all("used" in status for status in theirs.values())
            fits = fits and all(theirs[name]["used"].get(resource) == value for name, used in (least or {}).items()
                                for resource, value in used.items())
            same = same + 1 if fits else 0
            if time.monotonic() > end:
                self.assertEqual(ours, theirs)
                self.fail(f"{theirs} is not {least}")
            time.sleep(1.5 if fits else 0.3)
        return theirs

    def test_pods(self):
        huge = {"memory": "1Mi", "hugepages-2Mi": "4Mi"}
        gib = {"cpu": "1", "memory": "1Gi", "ephemeral-storage": "10M"}
        self.make("pods", named("plain", pod(container())), named("one", pod(container(requests={"cpu": "250m", "memory": "300Mi"}))),
                  named("both", pod(container(requests=gib, limits={"cpu": "2", "memory": "1500M", "ephemeral-storage": "1Gi"}))),
                  named("init", pod(container(requests={"cpu": "100m"}), init=[container("i", {"cpu": "2", "memory": "1G"}),
                                                                               container("s", {"cpu": "30m"}, restartPolicy="Always")])),
                  named("late", pod(container(requests={"cpu": "1500m"}), activeDeadlineSeconds=600)),
                  named("gpu", pod(container(requests={"example.com/gpu": "2"}, limits={"example.com/gpu": "2"}))),
                  named("huge", pod(container(requests=huge, limits=huge))))
        self.quota("all", {"pods": 90, "count/pods": 90, "cpu": 50, "memory": "90Gi", "requests.cpu": 50, "requests.memory": "90Gi",
                           "limits.cpu": 50, "limits.memory": "99Gi", "requests.ephemeral-storage": "9Gi",
                           "limits.ephemeral-storage": "9Gi", "requests.example.com/gpu": 9,
                           "hugepages-2Mi": "1Gi", "requests.hugepages-2Mi": "1Gi"})
        for scope in ("Terminating", "NotTerminating", "BestEffort", "NotBestEffort"):
            self.quota(scope.lower(), {"pods": 50}, scopes=[scope])
        self.quota("mixed", {"pods": 50, "requests.cpu": 50}, scopes=["NotBestEffort", "Terminating"])
        self.settle({"all": {"pods": "7", "count/pods": "7"}, "terminating": {"pods": "1"}, "bestEffort".lower(): {"pods": "2"}})
        # Pods that are being resized: the kubelet reports other amounts than their specs want.
        for name, reason in (("both", "Deferred"), ("late", "Infeasible"), ("init", "")):
            amounts = {"requests": {"cpu": "700m"}, "limits": {"cpu": "4"}}
            reported = [{"name": "c", "allocatedResources": {"cpu": "3"}, "resources": amounts}]
            sidecar = [{"name": "s", "resources": {"requests": {"cpu": "40m", "memory": "9Mi"}}},
                       {"name": "i", "resources": {"requests": {"cpu": "20"}}}]
            for status in reported + sidecar:
                status.update(image="i", imageID="", ready=True, restartCount=0)
            conditions = [{"type": "PodResizePending", "status": "True", "reason": reason}] if reason else []
            self.both("PATCH", self.path("pods", f"{name}/status"), {"status": {
                "containerStatuses": reported, "conditions": conditions,
                **({"initContainerStatuses": sidecar} if name == "init" else {})}}, MERGE)
        self.settle({"all": {"limits.cpu": "12"}})
        # A pod that has ended, a deletion, and an update that changes the scope.
        self.both("PATCH", self.path("pods", "one/status"), {"status": {"phase": "Succeeded"}}, MERGE)
        self.both("PATCH", self.path("pods", "both"), {"spec": {"activeDeadlineSeconds": 60}}, MERGE)
        self.both("DELETE", self.path("pods", "huge") + "?gracePeriodSeconds=0")
        self.settle({"all": {"pods": "5", "count/pods": "6"}, "terminating": {"pods": "2"}})

    def test_priority_classes_and_affinity(self):
        for name in ("high", "low"):
            for side in (self.theirs, self.ours):
                side.send("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": f"{name}-quota"}, "value": 7})
        term = {"topologyKey": "zone", "namespaces": ["x"], "labelSelector": {}}
        affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
        for name, spec in (("none", {}), ("high", {"priorityClassName": "high-quota"}), ("low", {"priorityClassName": "low-quota"}),
                           ("far", {"affinity": affinity})):
            self.eventually_made("pods", named(name, pod(container(requests={"cpu": "100m"}), **spec)))

        def selector(operator, *values):
            one = {"scopeName": "PriorityClass", "operator": operator}
            return {"scopeSelector": {"matchExpressions": [{**one, "values": list(values)} if values else one]}}

        for name, more in (("in", selector("In", "high-quota")), ("notin", selector("NotIn", "high-quota")), ("exists", selector("Exists")),
                           ("without", selector("DoesNotExist")), ("named", {"scopes": ["PriorityClass"]}),
                           ("far", {"scopes": ["CrossNamespacePodAffinity"]})):
            self.quota(name, {"pods": 9, "requests.cpu": 9} if name != "far" else {"pods": 9}, **more)
        self.settle({"in": {"pods": "1", "requests.cpu": "100m"}, "far": {"pods": "1"}})

    def eventually_made(self, resource, body):
        """The real server's admission may not know a new class yet."""
        end = time.monotonic() + WAIT_SECONDS
        for side in (self.theirs, self.ours):
            while side.send("POST", self.path(resource), copy.deepcopy(body))[0] != 201:
                self.assertLess(time.monotonic(), end)
                time.sleep(0.2)

    def test_services_and_claims(self):
        port = [{"port": 80, "name": "a"}, {"port": 81, "name": "b"}]
        self.make("services", service("cluster"), service("node", type="NodePort", ports=port), service("balancer", type="LoadBalancer"),
                  service("lean", type="LoadBalancer", allocateLoadBalancerNodePorts=False, ports=port),
                  service("name", type="ExternalName", externalName="a.b", ports=None), service("bare", clusterIP="None"))
        old = claim("2Gi")
        old["metadata"]["annotations"] = {"volume.beta.kubernetes.io/storage-class": "slow"}
        self.make("persistentvolumeclaims", named("a", claim("1Gi", storageClassName="fast")),
                  named("b", claim("1500M", storageClassName="fast")), named("c", old), named("d", claim("100", storageClassName="")))
        by_class = ".storageclass.storage.k8s.io/"
        self.quota("services", {"services": 9, "services.nodeports": 9, "services.loadbalancers": 9, "count/services": 9})
        self.quota("claims", {"persistentvolumeclaims": 9, "requests.storage": "90Gi", "count/persistentvolumeclaims": 9,
                              f"fast{by_class}requests.storage": "9Gi", f"fast{by_class}persistentvolumeclaims": 9,
                              f"slow{by_class}requests.storage": "9Gi", f"none{by_class}persistentvolumeclaims": 9})
        self.settle({"services": {"services": "6"}, "claims": {"persistentvolumeclaims": "4"}})
        self.both("PATCH", self.path("services", "node"), {"spec": {"type": "ClusterIP"}}, MERGE)
        self.both("DELETE", self.path("services", "balancer"))
        self.settle({"services": {"services": "5"}})

    def test_numbers_of_objects(self):
        for i in range(3):
            self.make("configmaps", {"metadata": {"name": f"c{i}"}})
            self.make("secrets", {"metadata": {"name": f"s{i}"}})
        template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
        self.make("deployments", {"metadata": {"name": "d"}, "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template}},
                  group="/apis/apps/v1")
        self.make("caps", {"apiVersion": "example.com/v1", "kind": "Cap", "metadata": {"name": "cap"}}, group="/apis/example.com/v1")
        self.make("events", {"metadata": {"name": "e"}, "involvedObject": {"namespace": self.namespace}, "reason": "x"})
        hard = ["configmaps", "secrets", "resourcequotas", "replicationcontrollers", "count/configmaps", "count/secrets",
                "count/deployments.apps", "count/replicasets.apps", "count/caps.example.com", "count/hoods.example.com", "count/events",
                "count/leases.coordination.k8s.io", "count/horizontalpodautoscalers.autoscaling", "count/endpointslices.discovery.k8s.io",
                "count/serviceaccounts", "count/jobs.batch", "count/nodes", "count/deployments"]
        self.quota("all", dict.fromkeys(hard, 2000))
        self.quota("scoped", {"pods": 5}, scopes=["Terminating"])
        self.settle({"all": {"count/caps.example.com": "1", "count/deployments.apps": "1", "count/serviceaccounts": "1"}})
        self.both("DELETE", self.path("caps", "cap", "/apis/example.com/v1"))
        self.both("DELETE", self.path("configmaps", "c0"))
        # The limits change, and a resource is no longer limited.
        self.both("PATCH", self.path("resourcequotas", "all"), {"spec": {"hard": {"secrets": "1", "count/secrets": None, "pods": "5"}}},
                  MERGE)
        self.settle({"all": {"count/caps.example.com": "0", "configmaps": "3", "secrets": "3", "pods": "0"}})

    def test_objects_of_namespaces_are_made_again(self):
        def found(side):
            account = side.send("GET", self.path("serviceaccounts", "default"))
            certificate = side.send("GET", self.path("configmaps", "kube-root-ca.crt"))
            return account[0], certificate[0], sorted(certificate[1].get("data") or {})

        def settle():
            end = time.monotonic() + WAIT_SECONDS
            while any(found(side) != (200, 200, ["ca.crt"]) for side in (self.theirs, self.ours)):
                self.assertLess(time.monotonic(), end)
                time.sleep(0.1)

        settle()
        self.both("DELETE", self.path("serviceaccounts", "default"))
        self.both("DELETE", self.path("configmaps", "kube-root-ca.crt"))
        settle()
        self.both("PATCH", self.path("configmaps", "kube-root-ca.crt"), {"data": {"more": "data"}}, MERGE)
        settle()


if __name__ == "__main__":
    unittest.main(verbosity=1)
