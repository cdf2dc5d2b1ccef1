#!/usr/bin/python3
"""A current kubectl on Vigil's own Kubernetes face, validation and all: it asks for OpenAPI v3, sends protobuf where it is
typed and strategic patches where it applies. tools/build-kube builds it."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/live"))
from server import Server, free_port  # noqa: E402

KUBECTL = os.environ.get("VIGIL_KUBECTL", str(ROOT / "build/kube/kubectl"))
MANIFEST = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: c, image: "nginx:1", ports: [{containerPort: 80}]}
      - {name: side, image: "side:1"}
"""


class Kubectl(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.TemporaryDirectory()
        cls.server = Server(cls.directory.name + "/data",
                            args=[f"--listen-kube-urls=http://127.0.0.1:{free_port()}"]).start()

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()
        cls.directory.cleanup()

    def kubectl(self, *words, text=None, fails=False, **env):
        environment = {**os.environ, "HOME": self.directory.name, "KUBECONFIG": f"{self.server.directory}/kubeconfig",
                       **env}
        done = subprocess.run([KUBECTL, *words], input=text, capture_output=True, text=True, env=environment, timeout=60)
        self.assertEqual(done.returncode != 0, fails, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def containers(self):
        spec = json.loads(self.kubectl("get", "deployment", "web", "-o", "json"))["spec"]
        return {c["name"]: c["image"] for c in spec["template"]["spec"]["containers"]}

    def test_apply_changes_what_changed_and_edit_what_is_edited(self):
        self.kubectl("apply", "-f", "-", text=MANIFEST)
        self.assertIn("unchanged", self.kubectl("apply", "-f", "-", text=MANIFEST))
        self.kubectl("patch", "deployment", "web", "-p",
                     '{"spec":{"template":{"spec":{"containers":[{"name":"theirs","image":"t:1"}]}}}}')
        changed = MANIFEST.replace("nginx:1", "nginx:2").replace('      - {name: side, image: "side:1"}\n', "")
        self.assertIn("configured", self.kubectl("apply", "-f", "-", text=changed))
        self.assertEqual(self.containers(), {"c": "nginx:2", "theirs": "t:1"})
        self.kubectl("edit", "deployment", "web", EDITOR="sed -i s/nginx:2/nginx:3/")
        self.assertEqual(self.containers()["c"], "nginx:3")
        self.kubectl("set", "image", "deployment/web", "theirs=t:2")
        self.kubectl("scale", "deployment", "web", "--replicas=4")
        self.kubectl("rollout", "restart", "deployment", "web")
        self.assertIn("+", self.kubectl("diff", "-f", "-", text=MANIFEST, fails=True))
        self.kubectl("delete", "deployment", "web")

    def test_typed_commands_write_in_protobuf(self):
        for words in (("namespace", "team"), ("configmap", "a", "--from-literal=x=1"),
                      ("secret", "generic", "s", "--from-literal=x=1"), ("service", "clusterip", "svc", "--tcp=80:8080"),
                      ("deployment", "d", "--image=a"), ("job", "j", "--image=a"), ("serviceaccount", "sa"),
                      ("role", "r", "--verb=get", "--resource=pods"), ("quota", "q", "--hard=cpu=1"),
                      ("cronjob", "cj", "--image=a", "--schedule=* * * * *"), ("ingress", "i", "--rule=h/p=s:80")):
            with self.subTest(words=words):
                self.assertIn("created", self.kubectl("create", *words))
        self.assertEqual(self.kubectl("get", "service", "svc", "-o", "jsonpath={.spec.ports[0].targetPort}"), "8080")
        self.assertEqual(self.kubectl("get", "quota", "q", "-o", "jsonpath={.spec.hard.cpu}"), "1")

    def test_mistakes_are_found_before_anything_is_stored(self):
        wrong = MANIFEST.replace("name: web", "name: wrong").replace("replicas: 2", "replicas: 2\n  replica: 3")
        self.assertIn('unknown field "spec.replica"', self.kubectl("create", "-f", "-", text=wrong, fails=True))
        self.assertIn('unknown field "spec.replica"', self.kubectl("apply", "-f", "-", text=wrong, fails=True))
        self.kubectl("get", "deployment", "wrong", fails=True)
        self.assertIn('Warning: unknown field "spec.replica"',
                      self.kubectl("create", "--validate=warn", "-f", "-", text=wrong))
        typed = MANIFEST.replace("replicas: 2", "replicas: two")
        self.assertIn("cannot unmarshal string", self.kubectl("create", "-f", "-", text=typed, fails=True))

    def test_explain_knows_the_types(self):
        self.assertIn("containers\t<[]Container> -required-", self.kubectl("explain", "pod.spec"))
        self.assertIn("<integer>", self.kubectl("explain", "deployment.spec.replicas"))
        self.assertIn("does not exist", self.kubectl("explain", "pod.spec.nothing", fails=True))

    def test_custom_resources_are_applied_validated_and_explained(self):
        definition = {
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "hats.example.com"},
            "spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "hats", "kind": "Hat"},
                     "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {
                         "type": "object", "properties": {"spec": {
                             "type": "object", "description": "what it is like",
                             "properties": {"size": {"type": "integer", "default": 3, "description": "of the head"}}}}}}}]}}
        hat = {"apiVersion": "example.com/v1", "kind": "Hat", "metadata": {"name": "h"}, "spec": {"size": 5}}
        self.kubectl("apply", "-f", "-", text=json.dumps(definition))
        self.kubectl("wait", "--for=condition=Established", "crd/hats.example.com", "--timeout=30s")
        self.kubectl("apply", "-f", "-", text=json.dumps(hat))
        self.assertIn("unchanged", self.kubectl("apply", "-f", "-", text=json.dumps(hat)))
        self.kubectl("apply", "-f", "-", text=json.dumps({**hat, "spec": {}}))
        self.assertEqual(json.loads(self.kubectl("get", "hat", "h", "-o", "json"))["spec"], {"size": 3})
        self.assertIn("unknown field \"spec.brim\"", self.kubectl(
            "apply", "-f", "-", text=json.dumps({**hat, "spec": {"brim": 1}}), fails=True))
        self.assertIn("of the head", self.kubectl("explain", "hat.spec.size"))
        self.assertIn("what it is like", self.kubectl("explain", "hat"))
        self.kubectl("delete", "crd", "hats.example.com", "--timeout=30s")


if __name__ == "__main__":
    unittest.main()
