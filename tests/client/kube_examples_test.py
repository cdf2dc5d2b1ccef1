#!/usr/bin/python3
"""Runs every program for libvigil-kube in examples/ against a server. The programs read their configuration as kubectl
does."""
import http.client
import json
import time
import unittest

from examples import ROOT, ExampleTest, example_names
from kube import KubeServer

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
WEBSITES = "/apis/example.com/v1/namespaces/default/websites"
WAIT_SECONDS = 60


class KubeExamples(ExampleTest):
    def setUp(self):
        super().setUp()
        self.vigil = KubeServer(self.scratch / "data", ["--kube-bootstrap=false"])  # which has config maps, too
        self.addCleanup(self.vigil.kill)
        self.addCleanup(self.vigil.close)
        self.vigil.start()

    def restart(self):
        self.vigil.close()
        self.vigil.stop()
        self.vigil.start()

    def begin(self, program, *arguments):
        return super().begin(program, *arguments, KUBECONFIG=self.vigil.kubeconfig)

    def request(self, method, path, body=None, kind="application/json"):
        connection = http.client.HTTPConnection("127.0.0.1", self.vigil.kube_port, timeout=WAIT_SECONDS)
        self.addCleanup(connection.close)
        connection.request(method, path, json.dumps(body) if body else None, {"Content-Type": kind})
        response = connection.getresponse()
        return response.status, json.loads(response.read())

    def create(self, path, name, **fields):
        code, answer = self.request("POST", path, {"metadata": {"name": name}, **fields})
        self.assertEqual(code, 201, answer)
        return answer

    def merge(self, path, **fields):
        code, answer = self.request("PATCH", path, fields, "application/merge-patch+json")
        self.assertEqual(code, 200, answer)

    def delete(self, path):
        self.assertEqual(self.request("DELETE", path)[0], 200)

    def eventually(self, path, accepts):
        """Reads an object until the function accepts its code and content."""
        end = time.monotonic() + WAIT_SECONDS
        while not accepts(*(found := self.request("GET", path))):
            self.assertLess(time.monotonic(), end, found)
            time.sleep(0.02)
        return found[1]

    def test_kube_elect(self):
        program = self.build("kube_elect")
        first = self.begin(program, "lock", "one")
        self.assertEqual([first.stdout.readline() for _ in range(2)], ["the leader is one\n", "leading\n"])
        second = self.begin(program, "lock", "two")
        self.assertEqual(second.stdout.readline(), "the leader is one\n")
        self.end(first)
        self.assertIn(second.stdout.readline(), ("the leader is \n", "the leader is two\n"))
        line = second.stdout.readline()
        self.assertIn(line, ("the leader is two\n", "leading\n"))
        if line != "leading\n":
            self.assertEqual(second.stdout.readline(), "leading\n")
        self.end(second)

    def test_kube_reload(self):
        self.create(CONFIG_MAPS, "app", data={"color": "red"})
        reload = self.begin(self.build("kube_reload"), "default", "app")
        self.assertEqual(reload.stdout.readline(), "color = red\n")
        self.create(CONFIG_MAPS, "other", data={"color": "green"})
        self.restart()
        self.merge(f"{CONFIG_MAPS}/app", data={"color": "blue"})
        self.assertEqual(reload.stdout.readline(), "color = blue\n")
        self.delete(f"{CONFIG_MAPS}/app")
        self.assertEqual(reload.stdout.readline(), "it is gone\n")

    def test_kube_loop_uv(self):
        self.vigil.put("configmaps", "first", kind="ConfigMap")
        loop = self.begin(self.build("kube_loop_uv", "-luv"))
        self.assertEqual(loop.stdout.readline(), "added default/first\n")
        self.vigil.put("configmaps", "first", kind="ConfigMap", data={"color": "red"})
        self.assertEqual(loop.stdout.readline(), "updated default/first\n")
        self.restart()
        self.vigil.delete("configmaps", "first")
        self.assertEqual(loop.stdout.readline(), "deleted default/first\n")
        self.end(loop)

    def test_kube_controller(self):
        definition = json.loads((ROOT / "examples/kube_controller.json").read_text())
        code, _ = self.request("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)
        self.assertEqual(code, 201)
        website = self.create(WEBSITES, "early", spec={"text": "first"}, kind="Website", apiVersion="example.com/v1")
        controller = self.begin(self.build("kube_controller"))
        self.assertEqual(controller.stdout.readline(), "ready\n")

        def has_text(text):
            return lambda code, found: code == 200 and found["data"]["text"] == text

        copy = self.eventually(f"{CONFIG_MAPS}/early", has_text("first"))
        owner = copy["metadata"]["ownerReferences"][0]
        self.assertEqual((owner["kind"], owner["uid"], owner["controller"]), ("Website", website["metadata"]["uid"], True))
        found = self.eventually(f"{WEBSITES}/early", lambda _, found: found.get("status", {}).get("observedGeneration") == 1)
        self.assertEqual(found["metadata"]["finalizers"], ["example.com/website"])

        self.merge(f"{WEBSITES}/early", spec={"text": "second"})
        self.eventually(f"{CONFIG_MAPS}/early", has_text("second"))
        self.eventually(f"{WEBSITES}/early", lambda _, found: found["status"]["observedGeneration"] == 2)
        self.delete(f"{CONFIG_MAPS}/early")
        self.eventually(f"{CONFIG_MAPS}/early", has_text("second"))
        self.delete(f"{WEBSITES}/early")
        self.eventually(f"{WEBSITES}/early", lambda code, _: code == 404)
        self.assertEqual(self.request("GET", f"{CONFIG_MAPS}/early")[0], 404)
        self.end(controller)

    def test_every_example_has_a_test(self):
        self.assertEqual(self.names_of_tests(), example_names(for_kube=True))


if __name__ == "__main__":
    unittest.main()
