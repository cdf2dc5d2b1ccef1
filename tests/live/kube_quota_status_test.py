#!/usr/bin/python3
"""The status of quotas without kube-controller-manager: counted when a quota or what it limits changes, once for many
changes, and left to kube-controller-manager while that holds its lease."""
import concurrent.futures
import datetime
import http.client
import json
import time
import unittest

from kube import KubeServer, text64
from server import WAIT_SECONDS, LiveTest, only_vigil

LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
MERGE = "application/merge-patch+json"
MANY = 1001
# A count begins a quarter of a second after an event; ten times as many writes are as good as any bound.
WRITES_PER_SECOND_MAX = 40


def pod(name, cpu=None, **spec):
    resources = {"requests": {"cpu": cpu}} if cpu else {}
    return {"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i", "resources": resources}], **spec}}


def definition(plural="hats"):
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
    return {"metadata": {"name": f"{plural}.example.com"},
            "spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": plural, "kind": plural.title()},
                     "versions": [version]}}


@only_vigil
class QuotaStatus(LiveTest):
    def serve(self, *args):
        server = KubeServer(self.scratch / "data", ["--io-threads", "4", "--kube-quota-controller=true", *args])
        self.addCleanup(server.kill)
        self.addCleanup(server.close)
        self.server = server.start()
        return server

    def send(self, method, path, body=None, content_type="application/json", code=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.server.kube_port, timeout=WAIT_SECONDS)
        connection.request(method, path, json.dumps(body) if body else None, {"Content-Type": content_type})
        answer = connection.getresponse()
        made = json.loads(answer.read())
        connection.close()
        if code:
            self.assertEqual(answer.status, code, made)
        return made

    @staticmethod
    def path(resource, name="", namespace="n"):
        return f"/api/v1/namespaces/{namespace}/{resource}" + (f"/{name}" if name else "")

    def make(self, resource, body, namespace="n"):
        return self.send("POST", self.path(resource, namespace=namespace), body, code=201)

    def namespace(self, name="n"):
        self.send("POST", "/api/v1/namespaces", {"metadata": {"name": name}}, code=201)

    def quota(self, hard, name="q", namespace="n", **spec):
        return self.make("resourcequotas", {"metadata": {"name": name}, "spec": {"hard": hard, **spec}}, namespace)

    def status(self, name="q", namespace="n"):
        return self.send("GET", self.path("resourcequotas", name, namespace), code=200)["status"]

    def used(self, name="q", namespace="n"):
        return self.status(name, namespace).get("used")

    def becomes(self, used, name="q", namespace="n"):
        self.eventually(lambda: self.used(name, namespace) == used, lambda: f"{self.used(name, namespace)} is not {used}")

    def version(self, name="q", namespace="n"):
        """How often the quota was written."""
        answer = self.server.call("/v3/kv/range", key=text64(f"/registry/resourcequotas/{namespace}/{name}"))
        return int(answer["kvs"][0]["version"])

    def test_a_new_quota_counts_what_exists(self):
        self.serve()
        self.namespace()
        for i in range(3):
            self.make("pods", pod(f"p{i}", "250m"))
        self.make("pods", pod("slow", "1", activeDeadlineSeconds=60))
        self.make("pods", pod("idle"))
        self.make("services", {"metadata": {"name": "s"}, "spec": {"type": "NodePort", "ports": [{"port": 80}]}})
        self.make("persistentvolumeclaims", {"metadata": {"name": "v"}, "spec": {
            "accessModes": ["ReadWriteOnce"], "storageClassName": "fast", "resources": {"requests": {"storage": "3Gi"}}}})
        hard = {"pods": "10", "requests.cpu": "4", "count/pods": "20", "services": "5", "services.nodeports": "2",
                "secrets": "7", "count/configmaps": "8", "requests.storage": "10Gi", "count/deployments.apps": "1",
                "fast.storageclass.storage.k8s.io/requests.storage": "5Gi",
                "slow.storageclass.storage.k8s.io/persistentvolumeclaims": "5"}
        self.quota(hard)
        self.quota({"pods": "4"}, "deadline", scopes=["Terminating"])
        self.quota({"pods": "4"}, "idle", scopes=["BestEffort"])
        self.becomes({"pods": "5", "requests.cpu": "1750m", "count/pods": "5", "services": "1", "services.nodeports": "1",
                      "secrets": "0", "count/configmaps": "0", "requests.storage": "3Gi", "count/deployments.apps": "0",
                      "fast.storageclass.storage.k8s.io/requests.storage": "3Gi",
                      "slow.storageclass.storage.k8s.io/persistentvolumeclaims": "0"})
        self.assertEqual(self.status()["hard"], hard)
        self.becomes({"pods": "1"}, "deadline")
        self.becomes({"pods": "1"}, "idle")

    def test_the_count_follows_deletions_and_changes(self):
        self.serve()
        self.namespace()
        self.quota({"pods": "9", "requests.cpu": "9"})
        self.becomes({"pods": "0", "requests.cpu": "0"})
        for i in range(4):
            self.make("pods", pod(f"p{i}", "1500m"))
        self.becomes({"pods": "4", "requests.cpu": "6"})
        self.send("DELETE", self.path("pods", "p0"), code=200)
        self.becomes({"pods": "3", "requests.cpu": "4500m"})
        self.send("PATCH", self.path("pods", "p1/status"), {"status": {"phase": "Succeeded"}}, MERGE, 200)
        self.becomes({"pods": "2", "requests.cpu": "3"})
        self.send("PATCH", self.path("resourcequotas", "q"), {"spec": {"hard": {"pods": "5", "secrets": "1", "requests.cpu": None}}},
                  MERGE, 200)
        self.becomes({"pods": "2", "secrets": "0"})
        self.assertEqual(self.status()["hard"], {"pods": "5", "secrets": "1"})
        # A quota of the same name in a namespace of its own, and one that is deleted and made again.
        self.namespace("other")
        self.quota({"pods": "1"}, namespace="other")
        self.becomes({"pods": "0"}, namespace="other")
        self.send("DELETE", self.path("resourcequotas", "q"), code=200)
        self.send("DELETE", self.path("pods", "p2"), code=200)
        self.quota({"count/pods": "5"})
        self.becomes({"count/pods": "2"})

    def test_a_pod_whose_grace_period_is_over_is_only_counted(self):
        self.serve()
        self.namespace()
        self.quota({"pods": "9", "count/pods": "9"})
        self.becomes({"pods": "0", "count/pods": "0"})
        self.make("pods", pod("p", nodeName="nowhere"))
        self.becomes({"pods": "1", "count/pods": "1"})
        self.send("DELETE", self.path("pods", "p") + "?gracePeriodSeconds=1", code=200)
        self.becomes({"pods": "0", "count/pods": "1"})

    def test_a_long_grace_period_does_not_delay_other_counts(self):
        self.serve()
        self.namespace()
        self.quota({"pods": "10", "count/configmaps": "10"})
        self.becomes({"pods": "0", "count/configmaps": "0"})
        self.make("configmaps", {"metadata": {"name": "a"}})
        self.make("pods", pod("a", nodeName="node", terminationGracePeriodSeconds=3600))
        self.becomes({"pods": "1", "count/configmaps": "1"})
        self.send("DELETE", self.path("pods", "a"), code=200)
        time.sleep(1)  # until the end of the pod is on the agenda
        self.send("DELETE", self.path("configmaps", "a"), code=200)
        self.becomes({"pods": "1", "count/configmaps": "0"})

    def test_custom_resources_are_counted_when_they_are_defined(self):
        self.serve()
        self.namespace()
        self.quota({"count/hats.example.com": "3", "pods": "1"})
        self.becomes({"pods": "0"})
        self.send("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition(), code=201)
        self.becomes({"count/hats.example.com": "0", "pods": "0"})
        hats = "/apis/example.com/v1/namespaces/n/hats"
        for i in range(2):
            self.send("POST", hats, {"apiVersion": "example.com/v1", "kind": "Hats", "metadata": {"name": f"h{i}"}}, code=201)
        self.becomes({"count/hats.example.com": "2", "pods": "0"})
        self.send("DELETE", f"{hats}/h0", code=200)
        self.becomes({"count/hats.example.com": "1", "pods": "0"})

    def test_many_changes_cause_few_writes_and_none_without_a_difference(self):
        server = self.serve("--kube-disable-admission-plugins=ResourceQuota")  # which would write with every object
        self.namespace()
        self.quota({"count/configmaps": "1", "pods": "1"})
        self.becomes({"count/configmaps": "0", "pods": "0"})
        began = time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            list(pool.map(lambda i: self.make("configmaps", {"metadata": {"name": f"c{i}"}}), range(MANY)))
        self.becomes({"count/configmaps": str(MANY), "pods": "0"})
        self.send("DELETE", self.path("configmaps"), code=200)
        self.becomes({"count/configmaps": "0", "pods": "0"})
        written = self.version()
        self.assertLess(written, 10 + (time.monotonic() - began) * WRITES_PER_SECOND_MAX)
        self.assertLess(written, MANY / 4)
        # What does not change the numbers causes no write.
        for i in range(20):
            self.make("secrets", {"metadata": {"name": f"s{i}"}})
            self.send("DELETE", self.path("secrets", f"s{i}"), code=200)
        self.send("PATCH", self.path("resourcequotas", "q"), {"metadata": {"labels": {"a": "b"}}}, MERGE, 200)
        # Another namespace is counted after the first one.
        server.put("configmaps", "last", "n", kind="ConfigMap")
        self.becomes({"count/configmaps": "1", "pods": "0"})
        self.assertEqual(self.version(), written + 2)

    def test_objects_created_and_deleted_at_once_are_charged_and_counted(self):
        self.serve()
        self.namespace()
        self.quota({"count/configmaps": "20"})
        self.becomes({"count/configmaps": "0"})

        def round_trip(i):
            made = self.send("POST", self.path("configmaps"), {"metadata": {"name": f"c{i}"}})
            if made["kind"] == "ConfigMap" and i % 4:
                self.send("DELETE", self.path("configmaps", f"c{i}"), code=200)
            return made["kind"] == "ConfigMap"

        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            self.assertIn(True, pool.map(round_trip, range(400)))
        left = len(self.send("GET", self.path("configmaps"), code=200)["items"])
        self.assertLessEqual(left, 20)
        self.becomes({"count/configmaps": str(left)})

    def test_a_start_counts_what_has_changed_meanwhile(self):
        server = self.serve()
        self.namespace()
        self.quota({"count/configmaps": "9"})
        self.becomes({"count/configmaps": "0"})
        server.kill()
        server.close()
        server = self.serve("--kube-quota-controller=false")
        self.make("configmaps", {"metadata": {"name": "a"}})
        self.make("configmaps", {"metadata": {"name": "b"}})
        self.send("DELETE", self.path("configmaps", "a"), code=200)
        self.quota({"pods": "9"}, "later")
        for _ in range(50):  # each a turn in which the server could have counted
            self.assertEqual(self.used(), {"count/configmaps": "2"})
            self.assertNotIn("used", self.status("later"))
        server.kill()
        server.close()
        self.serve()
        self.becomes({"count/configmaps": "1"})
        self.becomes({"pods": "0"}, "later")

    def test_quotas_are_left_to_a_controller_manager(self):
        self.serve()
        self.namespace()
        self.quota({"pods": "9"}, "before")
        self.becomes({"pods": "0"}, "before")
        now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        self.send("POST", LEASES, {"metadata": {"name": "kube-controller-manager"},
                                   "spec": {"holderIdentity": "m", "leaseDurationSeconds": 600, "renewTime": now}}, code=201)
        self.quota({"secrets": "9"})
        self.send("PATCH", self.path("resourcequotas", "before"), {"spec": {"hard": {"pods": "8"}}}, MERGE, 200)
        for _ in range(100):
            self.assertNotIn("used", self.status())
            self.assertEqual(self.status("before")["hard"], {"pods": "9"})
        self.send("DELETE", f"{LEASES}/kube-controller-manager", code=200)
        self.becomes({"secrets": "0"})
        self.eventually(lambda: self.status("before")["hard"] == {"pods": "8"})

    def test_an_object_that_is_not_json_leaves_the_status_alone(self):
        server = self.serve()
        self.namespace()
        server.put_raw("/registry/pods/n/binary", b"k8s\x00\n\x0b\n\x02v1\x12\x03Pod")
        self.quota({"pods": "9"})
        self.quota({"count/pods": "9"}, "number")
        self.eventually(lambda: "the objects that a quota limits cannot be counted" in server.log)
        self.assertNotIn("used", self.status())
        server.call("/v3/kv/deleterange", key=text64("/registry/pods/n/binary"))
        self.becomes({"pods": "0"})
        self.becomes({"count/pods": "0"}, "number")

    def test_large_pods_are_counted(self):
        self.serve()
        self.namespace()
        for i in range(12):
            large = pod(f"p{i}", "1500m")
            large["metadata"]["annotations"] = {"text": "x" * (200_000 if i % 3 else 17_000)}
            self.make("pods", large)
        self.quota({"pods": "90", "requests.cpu": "90"})
        self.becomes({"pods": "12", "requests.cpu": "18"})

    def test_many_quotas_of_a_namespace_are_counted(self):
        self.serve()
        self.namespace()
        for i in range(30):
            self.quota({f"count/{'configmaps' if i % 2 else 'secrets'}": "100"}, f"q{i}")
        self.make_when_counted("configmaps", {"metadata": {"name": "c"}})
        for i in range(30):
            self.becomes({"count/configmaps": "1"} if i % 2 else {"count/secrets": "0"}, f"q{i}")

    def make_when_counted(self, resource, body):
        """Creates an object as soon as its quotas have a status."""
        self.eventually(lambda: self.send("POST", self.path(resource), body).get("kind") == "ConfigMap")


if __name__ == "__main__":
    unittest.main(verbosity=1)
