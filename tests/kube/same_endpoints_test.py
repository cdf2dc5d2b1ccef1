#!/usr/bin/python3
"""The same requests to endpoints besides objects of a real kube-apiserver and of Vigil's own Kubernetes API: apply to scale,
requests for certificates, what needs a kubelet, componentstatuses. tools/build-kube builds the real kube-apiserver."""
import base64
import json
import pathlib
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/live"))
sys.path.insert(0, str(ROOT / "tests/kube"))
from kube_write_test import deployment  # noqa: E402
from side_by_side import SideBySide  # noqa: E402
from same_parts_test import REQUESTS, answer  # noqa: E402
from same_sequences_test import Peer  # noqa: E402
from same_writes_test import MERGE, PODS  # noqa: E402
from server import free_port  # noqa: E402

APPLY = "application/apply-patch+yaml"
CORE = "/api/v1/namespaces/default"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
HATS = "/apis/example.com/v1/namespaces/default/hats"


def scale(name, replicas=None, **more):
    return {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": name},
            "spec": {} if replicas is None else {"replicas": replicas}, **more}


def scaled(sent):
    """Of a Scale its numbers; of a refusal what a client sees."""
    code, body = sent
    if code != 200:
        return answer(sent)
    return code, body["kind"], body["apiVersion"], body["spec"], body["status"], sorted(body["metadata"])


def owners(sent):
    return sorted((e["manager"], e["operation"], e["apiVersion"], e.get("subresource", ""), "time" in e, json.dumps(e["fieldsV1"]))
                  for e in sent[1]["metadata"].get("managedFields", []))


class Caller(Peer):
    def send(self, *case):
        try:
            return super().send(*case)
        except json.JSONDecodeError:  # an answer without a body
            return 204, ""


class SameEndpoints(SideBySide):
    client = Caller

    def both(self, *case):
        for client in (self.theirs, self.ours):
            code, body = client.send(*case)
            self.assertIn(code, (200, 201), (client.url, body))

    def same(self, *case, what=answer):
        self.compare(what, *case)

    # -- Scale --

    def apply(self, path, body, manager, query=""):
        self.same("PATCH", f"{path}/scale?fieldManager={manager}{query}", body, APPLY, what=scaled)
        self.same("GET", path, what=owners)

    def test_apply_to_scale(self):
        # By an apply, so that both servers know the owners from the beginning.
        made = dict(deployment("web", replicas=1), apiVersion="apps/v1", kind="Deployment")
        path = f"{DEPLOYMENTS}/web"
        self.both("PATCH", f"{path}?fieldManager=creator", made, APPLY)
        self.apply(path, scale("web", 2), "one")
        self.apply(path, scale("web", 1), "one")
        self.apply(path, scale("web", 2), "one", "&force=true")
        self.apply(path, scale("web", 3), "two")
        self.apply(path, scale("web", 3), "two", "&force=true")
        self.apply(path, scale("web", 3), "three")
        self.apply(path, scale("web"), "two")
        self.apply(path, scale("web", 0), "three", "&force=true")
        self.apply(path, scale("web", -1), "three")
        self.apply(path, scale("web", 4, status={"replicas": 4}), "three")
        self.apply(path, scale("web", 4, extra=1), "three")
        self.apply(path, dict(scale("web", 4), kind="Other"), "three")
        self.apply(path, scale("web", "many"), "three")
        self.apply(path, dict(scale("web", 5), metadata={"name": "web", "resourceVersion": "1"}), "three")
        self.same("PATCH", f"{path}/scale", scale("web", 4), APPLY)
        self.same("PATCH", f"{DEPLOYMENTS}/none/scale?fieldManager=one", scale("none", 4), APPLY)
        self.same("PATCH", f"{path}/scale?fieldManager=by-merge", {"spec": {"replicas": 6}}, MERGE, what=scaled)
        self.same("GET", path, what=owners)
        self.apply(path, scale("web", 6), "one")
        self.apply(path, scale("web", 7), "one")

    def test_apply_to_scale_of_custom_resources(self):
        subresources = {"status": {}, "scale": {"specReplicasPath": ".spec.copies", "statusReplicasPath": ".status.copies"}}
        schema = {"type": "object", "properties": {
            "spec": {"type": "object", "properties": {"copies": {"type": "integer"}, "size": {"type": "integer"}}},
            "status": {"type": "object", "properties": {"copies": {"type": "integer"}}}}}
        self.both("POST", CRDS, {"metadata": {"name": "hats.example.com"}, "spec": {
            "group": "example.com", "scope": "Namespaced", "names": {"plural": "hats", "kind": "Hat"}, "versions": [
                {"name": "v1", "served": True, "storage": True, "subresources": subresources,
                 "schema": {"openAPIV3Schema": schema}}]}})
        self.wait_for(HATS)
        hat = {"apiVersion": "example.com/v1", "kind": "Hat", "metadata": {"name": "a"}, "spec": {"copies": 1, "size": 5}}
        self.both("PATCH", f"{HATS}/a?fieldManager=creator", hat, APPLY)
        # An apply that changes the number fails on a kube-apiserver: it cannot convert the Scale of a custom resource.
        self.apply(f"{HATS}/a", scale("a", 2), "one")
        self.apply(f"{HATS}/a", scale("a", 1), "one")
        self.apply(f"{HATS}/a", scale("a"), "two")
        self.same("GET", f"{HATS}/a", what=lambda sent: sent[1].get("spec"))

    # -- Requests for certificates --

    def test_requests_for_certificates(self):
        made = subprocess.run(["openssl", "req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                               "-keyout", "/dev/null", "-subj", "/CN=jane"], check=True, capture_output=True).stdout
        spec = {"request": base64.b64encode(made).decode(), "signerName": "example.com/signer", "usages": ["client auth"]}

        def fields(sent):
            if sent[0] not in (200, 201):
                return answer(sent)
            kept = sent[1]["spec"]
            return sent[0], sorted(set(kept) - {"uid", "extra"}), kept["signerName"], kept["username"] == "me", \
                sent[1]["metadata"].get("labels")

        def conditions(sent):
            if sent[0] != 200:
                return answer(sent)
            status = sent[1].get("status", {})
            return sent[0], [(c["type"], c["status"], c.get("reason"), sorted(c)) for c in status.get("conditions", [])]

        for name in ("a", "b"):
            self.same("POST", REQUESTS, {"metadata": {"name": name}, "spec": dict(spec, username="me", uid="1", groups=["mine"])},
                      what=lambda sent: (sent[0], "me" == sent[1]["spec"]["username"], "mine" in sent[1]["spec"]["groups"]))
        self.same("PATCH", f"{REQUESTS}/a", {"metadata": {"labels": {"l": "1"}}, "spec": {"username": "me", "signerName": "x/y"}},
                  MERGE, what=fields)

        def change(name, sub, *given):
            self.same("PATCH", f"{REQUESTS}/{name}/{sub}", {"status": {"conditions": [
                {"type": type_, "status": status, **({"reason": reason} if reason else {})} for type_, status, reason in given]}},
                MERGE, what=conditions)

        approved, failed, denied = ("Approved", "True", "r"), ("Failed", "True", None), ("Denied", "True", None)
        change("a", "status", approved)
        change("a", "status", ("Mine", "Unknown", None))
        change("a", "status", ("Mine", "Perhaps", None), ("", "True", None))
        change("a", "approval", ("Approved", "False", None))
        change("a", "approval", approved, approved)
        change("a", "approval", approved)
        change("a", "approval", denied)
        change("a", "approval", approved, failed)
        change("a", "status", ("Approved", "True", "other"), failed)
        change("a", "status", ("Approved", "True", "other"))
        change("a", "status", failed, approved)
        change("a", "status")
        change("b", "approval", denied)
        change("b", "status", denied, failed)
        self.same("GET", f"{REQUESTS}/b", what=conditions)

    # -- What needs a kubelet --

    def test_pods_and_proxies(self):
        port = free_port()
        for name, count, node in (("one", 1, None), ("two", 2, None), ("placed", 1, "n1"), ("bare", 1, "n3")):
            self.both("POST", PODS, {"metadata": {"name": name}, "spec": {"nodeName": node, "containers": [
                {"name": f"c{i}", "image": "i", "ports": [{"containerPort": port}]} for i in range(count)]}})
        for node in ("n1", "n3"):
            self.both("POST", "/api/v1/nodes", {"metadata": {"name": node}})
        self.both("PATCH", "/api/v1/nodes/n1/status", {"status": {"addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
                  "daemonEndpoints": {"kubeletEndpoint": {"Port": port}}}}, MERGE)
        for sub in ("log", "exec", "attach", "portforward"):
            for name in ("one", "two", "placed", "bare", "none"):
                for method in ("GET", "POST", "PUT"):
                    self.same(method, f"{PODS}/{name}/{sub}")
                self.same("GET", f"{PODS}/{name}/{sub}?container=c1")
        for path in ("pods/one/proxy", "pods/one/proxy/", "pods/none/proxy/x", "pods/a:b:c:d/proxy/", "pods/ftp:one:80/proxy/",
                     "services/none/proxy/", "services/none:80/proxy/", "services/a:b:c:d/proxy/"):
            self.same("GET", f"{CORE}/{path}")
        for path in ("n1/proxy", "n1/proxy/pods", "n3/proxy/", "none/proxy/", f"n1:{port}/proxy/x/y"):
            self.same("GET", f"/api/v1/nodes/{path}")
        self.both("POST", f"{CORE}/services", {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}})
        self.same("GET", f"{CORE}/services/s/proxy/")
        self.both("POST", f"{CORE}/endpoints", {"metadata": {"name": "s"}})
        for name in ("s", "s:80", "s:81", "s:web"):
            self.same("GET", f"{CORE}/services/{name}/proxy/")
        self.both("PATCH", f"{CORE}/endpoints/s", {"subsets": [{"addresses": [{"ip": "10.1.2.3", "targetRef": {
            "kind": "Pod", "namespace": "default", "name": "one"}}], "ports": [{"port": port}]}]}, MERGE)
        for name in ("s", "s:80", "s:web"):
            self.same("GET", f"{CORE}/services/{name}/proxy/")

    # -- Others --

    def test_discovery(self):
        def subresources(sent):
            return {r["name"]: r for r in sent[1]["resources"] if "/" in r["name"] or r["name"] == "componentstatuses"}
        self.same("GET", "/api/v1", what=lambda sent: {
            n: {k: v for k, v in r.items() if k != "storageVersionHash"} for n, r in subresources(sent).items()
            if n != "serviceaccounts/token"})

    def test_openapi_v2(self):
        (_, theirs), (_, ours) = (client.send("GET", "/openapi/v2") for client in (self.theirs, self.ours))
        self.assertGreater(len(ours["definitions"]), 500)
        for path, operations in ours["paths"].items():
            for method, operation in operations.items():
                if method == "parameters":
                    continue
                with self.subTest(path=path, method=method):
                    peer = theirs["paths"][path][method]
                    for key in ("operationId", "x-kubernetes-action", "x-kubernetes-group-version-kind"):
                        self.assertEqual(operation[key], peer[key])
                    mine = {p["name"] for p in operation.get("parameters", [])}
                    known = peer.get("parameters", []) + theirs["paths"][path]["parameters"]
                    self.assertLessEqual(mine, {p.get("name") or p["$ref"].split("/")[-1].rsplit("-", 1)[0] for p in known})
        for name, definition in theirs["definitions"].items():
            if name not in ours["definitions"] or not name.startswith("io.k8s."):
                continue
            with self.subTest(definition=name):
                mine = ours["definitions"][name]
                # The table of types does not know that a debug container needs a name; the server checks it.
                for key in ("properties",) if name.endswith(".EphemeralContainer") else ("properties", "required"):
                    self.assertEqual(sorted(mine.get(key, [])), sorted(definition.get(key, [])))

    def test_componentstatuses(self):
        path = "/api/v1/componentstatuses"

        def listed(sent):
            return sent[0], sent[1]["kind"], sent[1]["metadata"], sorted(json.dumps(i, sort_keys=True) for i in sent[1]["items"])

        self.same("GET", path, what=listed)
        for name in ("scheduler", "controller-manager", "etcd-0"):
            self.same("GET", f"{path}/{name}", what=lambda sent: sent)
        self.same("GET", f"{path}?fieldSelector=metadata.name%3Dscheduler", what=listed)
        self.same("GET", f"{path}?labelSelector=a", what=listed)
        self.same("GET", f"{path}/none")
        self.same("GET", f"{path}?watch=true")
        self.same("POST", path, {"metadata": {"name": "x"}})
        self.same("DELETE", f"{path}/scheduler")


if __name__ == "__main__":
    unittest.main()
