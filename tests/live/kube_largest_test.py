#!/usr/bin/python3
"""The largest object of the Kubernetes API with a small --max-client-bytes: with 16 MiB every request is served, and with less a
request is refused with 429 before anything has changed; no write is made and then answered with 500."""
import http.client
import json
import unittest

from server import LiveTest, free_port

MIB = 1 << 20
PATH = "/api/v1/namespaces/default/configmaps"
JSON, YAML, PROTOBUF = "application/json", "application/yaml", "application/vnd.kubernetes.protobuf"


def config_map(fill, size=MIB):
    """A ConfigMap whose JSON has this many bytes."""
    item = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "large"}, "data": {"x": ""}}
    item["data"]["x"] = fill * (size - len(json.dumps(item)))
    return json.dumps(item)


def changes():
    """Each changes the object by a body that is nearly as large; what is added to it, as managedFields, must fit, too."""
    fill = MIB - 1000
    yield "PUT", config_map("b", fill), JSON
    yield "PATCH", config_map("c", fill), "application/apply-patch+yaml"
    yield "PATCH", json.dumps({"data": {"x": "d" * fill}}), "application/merge-patch+json"
    yield "PATCH", json.dumps({"data": {"x": "e" * fill}}), "application/strategic-merge-patch+json"
    yield "PATCH", json.dumps([{"op": "replace", "path": "/data/x", "value": "f" * fill}]), "application/json-patch+json"


class Largest(LiveTest):
    def begin(self, budget):
        self.port = free_port()
        vigil = self.serving(args=["--max-client-bytes", str(budget), f"--listen-kube-urls=http://127.0.0.1:{self.port}"])
        self.assertEqual(self.request("GET", "/api/v1/namespaces/default")[0], 200)
        return vigil

    def request(self, method, path, body=None, kind=JSON, accept=JSON):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request(method, path, body, {"Content-Type": kind, "Accept": accept})
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        if answer.status == 429:
            self.assertEqual(answer.headers["Retry-After"], "1")
            self.assertIn(b"--max-client-bytes", text)
        return answer.status, text

    def change(self, method, body, kind, accept):
        force = "&force=true" if "apply" in kind else ""
        return self.request(method, f"{PATH}/large?fieldManager=m{force}", body, kind, accept)

    def events_after(self, version, count):
        """The types of the first events of a watch."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request("GET", f"{PATH}?watch=1&resourceVersion={version}")
        answer = connection.getresponse()
        types = [json.loads(answer.readline())["type"] for _ in range(count)]
        connection.close()
        return types

    def stored(self):
        code, text = self.request("GET", PATH + "/large")
        self.assertEqual(code, 200)
        return json.loads(text)

    def test_every_request_is_served_with_16_mib(self):
        self.begin(16 * MIB)
        for accept in (JSON, YAML, PROTOBUF):
            self.assertEqual(self.request("POST", PATH, config_map("a"), accept=accept)[0], 201, accept)
            version = self.stored()["metadata"]["resourceVersion"]
            for method, body, kind in changes():
                code, text = self.change(method, body, kind, accept)
                self.assertEqual(code, 200, (kind, accept, text[:200]))
            for path in (PATH + "/large", PATH):
                code, text = self.request("GET", path, accept=accept if path != PATH or accept != YAML else JSON)
                self.assertEqual(code, 200, accept)
                self.assertGreater(len(text), MIB - 1000)
            self.assertEqual(self.events_after(version, len(list(changes()))), ["MODIFIED"] * len(list(changes())))
            self.assertEqual(self.request("DELETE", PATH + "/large", accept=accept)[0], 200)

    def test_refused_requests_change_nothing(self):
        seen = set()
        for budget in range(4, 16):
            vigil = self.begin(budget * MIB)
            for accept in (JSON, YAML, PROTOBUF):
                code, text = self.request("POST", PATH, config_map("a"), accept=accept)
                self.assertIn(code, (201, 429), (budget, accept, text[:200]))
                seen.add(code)
                self.assertEqual(self.request("GET", PATH + "/large")[0] == 404, code == 429)
                if code == 429:
                    continue
                for method, body, kind in changes():
                    before = self.stored()
                    code, text = self.change(method, body, kind, accept)
                    self.assertIn(code, (200, 429), (budget, kind, accept, text[:200]))
                    self.assertEqual(self.stored() == before, code == 429, (budget, kind, accept))
                self.assertEqual(self.request("DELETE", PATH + "/large")[0], 200)
            vigil.stop()
        self.assertEqual(seen, {201, 429})


if __name__ == "__main__":
    unittest.main(verbosity=2)
