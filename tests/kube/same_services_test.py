#!/usr/bin/python3
"""Addresses and node ports of services: the same requests get the same answers from Vigil and from a real kube-apiserver."""
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "live"))
from same_writes_test import Client  # noqa: E402
from side_by_side import SideBySide  # noqa: E402

SERVICES = "/api/v1/namespaces/default/services"
MERGE = "application/merge-patch+json"


def service(name, **spec):
    return {"kind": "Service", "apiVersion": "v1", "metadata": {"name": name},
            "spec": {"ports": [{"port": 80}], "selector": {"app": "a"}, **spec}}


def shown(answer):
    """The code, and the spec with chosen addresses and ports replaced, or the error."""
    code, body = answer
    if body.get("kind") != "Service":
        return code, body.get("message"), body.get("details")
    spec = body["spec"]
    if spec.get("clusterIP", "").startswith("10.0.0.") and spec["clusterIP"] != "10.0.0.200":
        spec["clusterIP"] = "chosen"
        spec["clusterIPs"] = ["chosen"] * len(spec["clusterIPs"])
    for port in spec.get("ports", []):
        if port.get("nodePort") not in (None, 30555):
            port["nodePort"] = "chosen"
    return code, spec


class SameServices(SideBySide):
    client = Client

    def same(self, *case):
        self.compare(shown, *case)

    def test_services(self):
        self.wait_for(f"{SERVICES}/kubernetes")
        self.same("POST", SERVICES, service("plain"))
        self.same("POST", SERVICES, service("given", clusterIP="10.0.0.200"))
        self.same("POST", SERVICES, service("taken", clusterIP="10.0.0.200"))
        self.same("POST", SERVICES, service("outside", clusterIP="192.168.0.1"))
        self.same("POST", SERVICES, service("headless", clusterIP="None"))
        self.same("POST", SERVICES, service("external", type="ExternalName", externalName="a.example", ports=None, selector=None))
        self.same("POST", SERVICES, service("port", type="NodePort", ports=[{"port": 80, "nodePort": 30555}]))
        self.same("POST", SERVICES, service("port-taken", type="NodePort", ports=[{"port": 80, "nodePort": 30555}]))
        self.same("POST", SERVICES, service("port-outside", type="NodePort", ports=[{"port": 80, "nodePort": 80}]))
        self.same("POST", SERVICES, service("ports", type="NodePort", ports=[{"name": "a", "port": 1}, {"name": "b", "port": 2}]))
        self.same("POST", SERVICES, service("balanced", type="LoadBalancer"))
        self.same("POST", SERVICES, service("balanced-without", type="LoadBalancer", allocateLoadBalancerNodePorts=False))
        self.same("PUT", f"{SERVICES}/plain", service("plain", selector={"app": "b"}))
        self.same("PUT", f"{SERVICES}/ports", service("ports", type="NodePort", ports=[{"name": "b", "port": 2}]))
        self.same("PATCH", f"{SERVICES}/plain", {"spec": {"type": "NodePort"}}, MERGE)
        self.same("PATCH", f"{SERVICES}/plain", {"spec": {"type": "ClusterIP"}}, MERGE)
        self.same("PATCH", f"{SERVICES}/ports", {"spec": {"type": "ExternalName", "externalName": "b.example"}}, MERGE)
        self.same("PATCH", f"{SERVICES}/external", {"spec": {"type": "ClusterIP", "externalName": None, "ports": [{"port": 80}]}}, MERGE)
        self.same("PATCH", f"{SERVICES}/given", {"spec": {"clusterIP": "10.0.0.201", "clusterIPs": ["10.0.0.201"]}}, MERGE)
        self.same("DELETE", f"{SERVICES}/given")
        self.same("POST", SERVICES, service("given-again", clusterIP="10.0.0.200"))


if __name__ == "__main__":
    unittest.main()
