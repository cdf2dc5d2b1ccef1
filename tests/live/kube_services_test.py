#!/usr/bin/python3
"""Addresses and node ports of services: unique, also when many are created at once, and free again after a deletion."""
import concurrent.futures
import http.client
import ipaddress
import json
import unittest

from kube import KubeServer, text64
from server import WAIT_SECONDS, LiveTest, only_vigil

SERVICES = "/api/v1/namespaces/default/services"
RANGE = "10.7.0.0/28"  # 14 addresses, one of which the service kubernetes has
FREE = 13


def service(name, **spec):
    return {"kind": "Service", "apiVersion": "v1", "metadata": {"name": name},
            "spec": {"ports": [{"port": 80}], "selector": {"app": "a"}, **spec}}


@only_vigil
class Services(LiveTest):
    def setUp(self):
        super().setUp()
        self.begin("31000-31003")

    def begin(self, ports, name="data"):
        self.server = KubeServer(self.scratch / name, ["--io-threads", "4", f"--kube-service-cluster-ip-range={RANGE}",
                                                       f"--kube-service-node-port-range={ports}"])
        self.addCleanup(self.server.kill)
        self.addCleanup(self.server.close)
        self.server.start()

    def send(self, method, path, body=None, content_type="application/json"):
        connection = http.client.HTTPConnection("127.0.0.1", self.server.kube_port, timeout=WAIT_SECONDS)
        try:
            connection.request(method, path, json.dumps(body) if body else None, {"Content-Type": content_type})
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())
        finally:
            connection.close()

    def create(self, name, **spec):
        return self.send("POST", SERVICES, service(name, **spec))

    def names(self, path):
        return sorted(item["metadata"]["name"] for item in self.send("GET", path)[1]["items"])

    def addresses(self):
        return self.names("/apis/networking.k8s.io/v1/ipaddresses")

    def test_a_range_of_which_only_a_part_was_tried_is_not_called_full(self):
        self.begin("31000-31599", "large")
        for first in range(31000, 31600, 60):
            code, body = self.create(f"s{first}", type="NodePort", ports=[
                {"name": f"p{port}", "port": port, "nodePort": port} for port in range(first, first + 60)])
            self.assertEqual(code, 201, body)
        code, body = self.create("last", type="NodePort")
        self.assertEqual(code, 422)
        self.assertIn("512 numbers that were tried are in use: please try again, or name one that is free", body["message"])

    def test_services_created_at_once_have_different_addresses(self):
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            made = list(pool.map(lambda i: self.create(f"s{i}"), range(FREE + 5)))
        found = [body["spec"]["clusterIP"] for code, body in made if code == 201]
        self.assertEqual(len(set(found)), FREE)
        self.assertEqual(len(found), FREE)
        usable = {str(address) for address in ipaddress.ip_network(RANGE).hosts()}
        self.assertEqual(set(found), usable - {"10.7.0.1"})
        refused = [body for code, body in made if code != 201]
        self.assertEqual(len(refused), 5)
        for body in refused:
            self.assertIn("range is full", body["message"])
        self.assertEqual(self.addresses(), sorted(usable))

    def test_deleted_services_give_back_what_they_had(self):
        code, made = self.create("a", type="NodePort", clusterIP="10.7.0.9", ports=[{"port": 80, "nodePort": 31002}])
        self.assertEqual(code, 201, made)
        self.assertIn("10.7.0.9", self.addresses())
        for code, part in ((self.create("b", clusterIP="10.7.0.9"), "provided IP is already allocated"),
                           (self.create("b", type="NodePort", ports=[{"port": 80, "nodePort": 31002}]),
                            "provided port is already allocated")):
            self.assertEqual(code[0], 422)
            self.assertIn(part, code[1]["message"])
        self.assertEqual(self.send("DELETE", f"{SERVICES}/a")[0], 200)
        self.assertNotIn("10.7.0.9", self.addresses())
        code, made = self.create("b", type="NodePort", clusterIP="10.7.0.9", ports=[{"port": 80, "nodePort": 31002}])
        self.assertEqual(code, 201, made)

    def test_what_a_lost_service_had_is_free(self):
        self.assertEqual(self.create("a", clusterIP="10.7.0.9")[0], 201)
        self.server.call("/v3/kv/deleterange", key=text64("/registry/services/specs/default/a"))
        code, made = self.create("b", clusterIP="10.7.0.9")
        self.assertEqual(code, 201, made)
        owner = self.send("GET", "/apis/networking.k8s.io/v1/ipaddresses/10.7.0.9")[1]["spec"]["parentRef"]
        self.assertEqual(owner["name"], "b")

    def test_node_ports_follow_the_type(self):
        made = [self.create(f"n{i}", type="NodePort") for i in range(5)]
        self.assertEqual([code for code, _ in made], [201] * 4 + [422])
        ports = {body["spec"]["ports"][0]["nodePort"] for _, body in made[:4]}
        self.assertEqual(ports, {31000, 31001, 31002, 31003})
        code, changed = self.send("PATCH", f"{SERVICES}/n0", {"spec": {"type": "ClusterIP"}},
                                  content_type="application/merge-patch+json")
        self.assertEqual(code, 200, changed)
        self.assertNotIn("nodePort", changed["spec"]["ports"][0])
        code, made = self.create("again", type="NodePort")
        self.assertEqual(code, 201, made)

    def test_too_many_node_ports_are_refused(self):
        ports = [{"name": f"p{i}", "port": i + 1} for i in range(64)]
        code, refused = self.create("many", type="NodePort", ports=ports)
        self.assertEqual(code, 422)
        self.assertIn("at most 63 node ports can be allocated at a time", refused["message"])
        self.assertEqual(self.addresses(), ["10.7.0.1"])

    def test_update_without_an_address_keeps_it(self):
        _, made = self.create("a", type="NodePort")
        replaced = service("a", type="NodePort", selector={"app": "b"})
        code, after = self.send("PUT", f"{SERVICES}/a", replaced)
        self.assertEqual(code, 200, after)
        for field in ("clusterIP", "clusterIPs", "ports"):
            self.assertEqual(after["spec"][field], made["spec"][field])
        code, external = self.send("PATCH", f"{SERVICES}/a", {"spec": {"type": "ExternalName", "externalName": "a.example"}},
                                   content_type="application/merge-patch+json")
        self.assertEqual(code, 200, external)
        self.assertNotIn("clusterIP", external["spec"])
        self.assertEqual(self.addresses(), ["10.7.0.1"])

    def test_headless_and_outside_addresses(self):
        code, made = self.create("a", clusterIP="None")
        self.assertEqual((code, made["spec"]["clusterIPs"]), (201, ["None"]))
        code, refused = self.create("b", clusterIP="10.8.0.1")
        self.assertEqual(code, 422)
        self.assertIn("the provided network does not match the current range", refused["message"])
        code, dry = self.send("POST", f"{SERVICES}?dryRun=All", service("c"))
        self.assertEqual(code, 201)
        self.assertIn("clusterIP", dry["spec"])
        self.assertEqual(self.addresses(), ["10.7.0.1"])


if __name__ == "__main__":
    unittest.main()
