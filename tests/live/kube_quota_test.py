#!/usr/bin/python3
"""Quotas and limit ranges: never exceeded by writes at the same time, charged in the transaction of the object, and in
effect for the next request of any client that created them."""
import concurrent.futures
import http.client
import json
import threading
import unittest

from kube import KubeServer
from server import WAIT_SECONDS, LiveTest, only_vigil

THREADS = 16
JSON = "application/json"
MERGE = "application/merge-patch+json"
APPLY = "application/apply-patch+yaml"
CHARGED_MAX = 16  # quotas that one write can change
RANGES_MAX = 32
AMOUNTS_MAX = 128
ITEMS_MAX = 32


def config_map(name):
    return {"metadata": {"name": name}}


def pod(name, requests=None, limits=None):
    resources = {"requests": requests or {}, "limits": limits or {}}
    return {"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i", "resources": resources}]}}


def service(name, **spec):
    return {"metadata": {"name": name}, "spec": {"ports": [{"port": 80}], **spec}}


@only_vigil
class Quotas(LiveTest):
    def setUp(self):
        super().setUp()
        self.server = KubeServer(self.scratch / "data", ["--io-threads", "4", "--kube-quota-controller=false"])
        self.addCleanup(self.server.kill)
        self.addCleanup(self.server.close)
        self.server.start()
        self.local = threading.local()
        self.send("POST", "/api/v1/namespaces", {"metadata": {"name": "n"}}, code=201)

    def send(self, method, path, body=None, content_type=JSON, code=None):
        """Sends a request over the connection of this thread."""
        if not hasattr(self.local, "connection"):
            self.local.connection = http.client.HTTPConnection("127.0.0.1", self.server.kube_port, timeout=WAIT_SECONDS)
        connection = self.local.connection
        connection.request(method, path, json.dumps(body) if body else None, {"Content-Type": content_type})
        answer = connection.getresponse()
        made = json.loads(answer.read())
        if code:
            self.assertEqual(answer.status, code, made)
        return answer.status, made

    @staticmethod
    def path(resource, name=""):
        return f"/api/v1/namespaces/n/{resource}" + (f"/{name}" if name else "")

    def quota(self, hard, name="q", used=None, **spec):
        """Creates a quota with the status that kube-controller-manager would give it."""
        _, made = self.send("POST", self.path("resourcequotas"), {"metadata": {"name": name}, "spec": {"hard": hard, **spec}}, code=201)
        made["status"] = {"hard": hard, "used": used or {resource: "0" for resource in hard}}
        self.send("PUT", self.path("resourcequotas", name) + "/status", made, code=200)

    def used(self, name="q"):
        return self.send("GET", self.path("resourcequotas", name), code=200)[1]["status"]["used"]

    def names(self, resource):
        return [item["metadata"]["name"] for item in self.send("GET", self.path(resource), code=200)[1]["items"]]

    def at_once(self, tasks):
        """The answers of (method, path, body, content type), sent by many threads."""
        with concurrent.futures.ThreadPoolExecutor(THREADS) as pool:
            return list(pool.map(lambda task: self.send(*task), tasks))

    def test_objects_created_at_once_never_exceed_a_quota(self):
        self.quota({"count/configmaps": "50"})
        answers = self.at_once([("POST", self.path("configmaps"), config_map(f"c{i}")) for i in range(200)])
        self.assertEqual(sorted({code for code, _ in answers}), [201, 403])
        self.assertEqual(sum(code == 201 for code, _ in answers), 50)
        self.assertEqual(len(self.names("configmaps")), 50)
        self.assertEqual(self.used(), {"count/configmaps": "50"})
        why = "exceeded quota: q, requested: count/configmaps=1, used: count/configmaps=50, limited: count/configmaps=50"
        for code, body in answers:
            if code == 403:
                self.assertIn(why, body["message"])
                self.assertEqual((body["reason"], body["details"]["kind"]), ("Forbidden", "configmaps"))

    def test_several_quotas_are_charged_together(self):
        self.quota({"requests.cpu": "2", "pods": "100"}, "cpu")
        self.quota({"limits.memory": "10Gi", "pods": "9"}, "memory")
        self.quota({"pods": "0"}, "scoped", scopes=["BestEffort"])
        answers = self.at_once([("POST", self.path("pods"), pod(f"p{i}", {"cpu": "300m"}, {"memory": "1Gi"})) for i in range(30)])
        self.assertEqual(sum(code == 201 for code, _ in answers), 6)
        self.assertEqual(len(self.names("pods")), 6)
        self.assertEqual(self.used("cpu"), {"requests.cpu": "1800m", "pods": "6"})
        self.assertEqual(self.used("memory"), {"limits.memory": "6Gi", "pods": "6"})
        self.assertEqual(self.used("scoped"), {"pods": "0"})

    def test_writes_of_all_kinds_are_charged_at_once(self):
        self.quota({"services": "40", "services.nodeports": "10", "count/configmaps": "40", "secrets": "40"})
        tasks = []
        for i in range(30):
            tasks += [("POST", self.path("services"), service(f"s{i}", type="NodePort")),
                      ("POST", self.path("configmaps"), config_map(f"c{i}")),
                      ("POST", self.path("secrets"), {"metadata": {"generateName": "s-"}}),
                      ("PATCH", self.path("configmaps", f"a{i}") + "?fieldManager=m",
                       {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"a{i}"}}, APPLY)]
        answers = self.at_once(tasks)
        self.assertEqual(sorted({code for code, _ in answers}), [201, 403])
        counts = {resource: str(len(self.names(resource))) for resource in ("services", "configmaps", "secrets")}
        self.assertEqual(counts, {"services": "10", "configmaps": "40", "secrets": "30"})
        self.assertEqual(self.used(), {"services": "10", "services.nodeports": "10", "count/configmaps": "40", "secrets": "30"})

    def test_updates_are_charged_with_what_they_add(self):
        self.quota({"services": "9", "services.nodeports": "2"})
        for i in range(3):
            self.send("POST", self.path("services"), service(f"s{i}"), code=201)
        answers = self.at_once([("PATCH", self.path("services", f"s{i}"), {"spec": {"type": "NodePort"}}, MERGE) for i in range(3)])
        self.assertEqual(sorted(code for code, _ in answers), [200, 200, 403])
        self.assertEqual(self.used(), {"services": "3", "services.nodeports": "2"})
        refused = next(i for i, (code, _) in enumerate(answers) if code == 403)
        self.send("PATCH", self.path("services", f"s{refused}"), {"metadata": {"labels": {"a": "b"}}}, MERGE, code=200)

    def test_what_is_not_written_is_not_charged(self):
        self.quota({"count/configmaps": "2"})
        self.send("POST", self.path("configmaps") + "?dryRun=All", config_map("dry"), code=201)
        self.send("POST", self.path("configmaps"), config_map("a"), code=201)
        self.send("POST", self.path("configmaps"), config_map("a"), code=409)
        self.send("POST", self.path("configmaps"), config_map("A_"), code=422)
        self.assertEqual(self.used(), {"count/configmaps": "1"})
        self.send("POST", self.path("configmaps"), config_map("b"), code=201)
        self.send("POST", self.path("configmaps") + "?dryRun=All", config_map("dry"), code=403)
        self.send("POST", "/api/v1/namespaces/default/configmaps", config_map("elsewhere"), code=201)

    def test_the_status_of_a_quota_decides(self):
        path = self.path("resourcequotas", "q")
        self.send("POST", self.path("resourcequotas"), {"metadata": {"name": "q"}, "spec": {"hard": {"count/configmaps": "0"}}}, code=201)
        self.send("POST", self.path("configmaps"), config_map("before"), code=201)
        self.send("PATCH", path + "/status", {"status": {"hard": {"count/configmaps": "5"}}}, MERGE, code=200)
        self.assertIn("status unknown for quota: q, resources: count/configmaps",
                      self.send("POST", self.path("configmaps"), config_map("a"), code=403)[1]["message"])
        self.send("PATCH", path + "/status", {"status": {"used": {"count/configmaps": "4"}}}, MERGE, code=200)
        self.send("POST", self.path("configmaps"), config_map("a"), code=201)
        self.send("POST", self.path("configmaps"), config_map("b"), code=403)
        self.send("DELETE", path, code=200)
        self.send("POST", self.path("configmaps"), config_map("b"), code=201)

    def test_custom_resources_are_counted(self):
        schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        self.send("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", {
            "metadata": {"name": "widgets.example.com"},
            "spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
                     "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}]}}, code=201)
        self.quota({"count/widgets.example.com": "3"})
        widgets = "/apis/example.com/v1/namespaces/n/widgets"
        answers = self.at_once([("POST", widgets, {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": f"w{i}"}})
                                for i in range(9)])
        self.assertEqual(sorted(code for code, _ in answers), [201] * 3 + [403] * 6)
        self.assertEqual(self.used(), {"count/widgets.example.com": "3"})

    def test_a_limit_range_is_in_effect_at_once(self):
        """Whichever I/O threads serve the two requests."""
        for i in range(20):
            self.send("POST", self.path("limitranges"), {"metadata": {"name": f"l{i}"}, "spec": {"limits": [
                {"type": "Container", "default": {"cpu": str(i + 1)}, "max": {"cpu": "100"}}]}}, code=201)
            del self.local.connection
            made = self.send("POST", self.path("pods"), pod(f"p{i}"), code=201)[1]
            self.assertEqual(made["spec"]["containers"][0]["resources"],
                             {"limits": {"cpu": str(i + 1)}, "requests": {"cpu": str(i + 1)}})
            self.assertEqual(made["metadata"]["annotations"]["kubernetes.io/limit-ranger"],
                             "LimitRanger plugin set: cpu request for container c; cpu limit for container c")
            self.assertIn("maximum cpu usage per Container is 100, but limit is 101",
                          self.send("POST", self.path("pods"), pod("large", limits={"cpu": "101"}), code=403)[1]["message"])
            self.send("DELETE", self.path("limitranges", f"l{i}"), code=200)

    def test_there_are_limits(self):
        for i in range(CHARGED_MAX):
            self.quota({"secrets": "100"}, f"q{i}")
        self.send("POST", self.path("secrets"), config_map("a"), code=201)
        self.quota({"secrets": "100"}, "one-more")
        self.assertIn(f"at most {CHARGED_MAX} quotas", self.send("POST", self.path("secrets"), config_map("b"), code=403)[1]["message"])
        large = {f"count/things{i}.example.com": "1" for i in range(AMOUNTS_MAX + 1)}
        quota = {"metadata": {"name": "large"}, "spec": {"hard": large}}
        self.assertIn(f"at most {AMOUNTS_MAX} resources", self.send("POST", self.path("resourcequotas"), quota, code=403)[1]["message"])
        limits = [{"type": f"example.com/t{i}", "max": {"cpu": "1"}} for i in range(ITEMS_MAX + 1)]
        many = {"metadata": {"name": "large"}, "spec": {"limits": limits}}
        self.assertIn(f"at most {ITEMS_MAX} limits", self.send("POST", self.path("limitranges"), many, code=403)[1]["message"])
        for i in range(RANGES_MAX + 1):
            self.send("POST", self.path("limitranges"), {"metadata": {"name": f"l{i}"}, "spec": {"limits": [
                {"type": "Container", "max": {"cpu": "1"}}]}}, code=201)
        self.assertIn("more limit ranges than can be applied",
                      self.send("POST", self.path("pods"), pod("p", limits={"cpu": "1"}), code=403)[1]["message"])


if __name__ == "__main__":
    unittest.main()
