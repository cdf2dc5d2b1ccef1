#!/usr/bin/python3
"""kubectl on built-in and on custom resources. VIGIL_KUBECTL names the program: `make test` uses Debian's (1.20), `make
conformance` a current one (tools/build-clients). tests/kube/same_kubectl_test.py compares its output with that on a real
kube-apiserver."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from kube import KubeServer, certificate_request  # noqa: E402
from server import only_vigil  # noqa: E402

KUBECTL = os.environ.get("VIGIL_KUBECTL", "kubectl")
SECONDS = 60  # for a command
WEB = """
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
REQUEST = f"""
apiVersion: certificates.k8s.io/v1
kind: CertificateSigningRequest
metadata: {{name: jane}}
spec: {{request: {certificate_request("jane")}, signerName: example.com/s, usages: [client auth]}}
"""
HATS = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: hats.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: hats, kind: Hat, shortNames: [ht], categories: [clothes]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources:
      status: {}
      scale: {specReplicasPath: .spec.copies, statusReplicasPath: .status.copies}
    additionalPrinterColumns:
    - {name: Color, type: string, jsonPath: .spec.color}
    - {name: Size, type: integer, jsonPath: .spec.size}
    - {name: Copies, type: integer, jsonPath: .spec.copies, priority: 1}
    selectableFields: [{jsonPath: .spec.color}]
    schema:
      openAPIV3Schema:
        type: object
        description: what is worn on a head
        properties:
          spec:
            type: object
            required: [color]
            properties:
              size: {type: integer, default: 3, maximum: 9, description: of the head}
              color: {type: string, enum: [red, blue]}
              copies: {type: integer}
          status:
            type: object
            properties:
              copies: {type: integer}
              conditions:
                type: array
                items: {type: object, properties: {type: {type: string}, status: {type: string}}}
"""


def config(name, value="1", **labels):
    return "---\n" + json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": labels},
                                 "data": {"k": value}}) + "\n"


def hat(name, color="red", **spec):
    return "---\n" + json.dumps({"apiVersion": "example.com/v1", "kind": "Hat", "metadata": {"name": name},
                                 "spec": {"color": color, **spec}}) + "\n"


def minor_version():
    """19 for version 1.19. A program that was built without a version is a current one."""
    done = subprocess.run([KUBECTL, "version", "--client", "-o", "json"], capture_output=True, text=True, check=True)
    return int(json.loads(done.stdout)["clientVersion"]["minor"].rstrip("+") or 99)


class Watch:
    """A running kubectl get --watch; its output is read line by line."""

    def __init__(self, test, *words):
        self.process = subprocess.Popen([*test.command(), "get", *words, "--watch"], env=test.environment(),
                                        stdout=subprocess.PIPE, text=True)
        test.addCleanup(self.process.stdout.close)
        test.addCleanup(self.process.wait)
        test.addCleanup(self.process.kill)

    def row(self):
        return self.process.stdout.readline().split()


@only_vigil
class Kubectl(unittest.TestCase):
    """The tests of a class share a server; each test has its own namespace."""

    @classmethod
    def setUpClass(cls):
        directory = tempfile.TemporaryDirectory(prefix="vigil-kubectl-")
        cls.addClassCleanup(directory.cleanup)
        cls.scratch = pathlib.Path(directory.name)
        cls.server = KubeServer(cls.scratch / "data").start()
        cls.addClassCleanup(cls.server.stop)
        cls.minor = minor_version()

    def setUp(self):
        self.namespace = "default"
        name = "t" + self.id().rsplit(".", 1)[-1].removeprefix("test_").replace("_", "-")[:50].rstrip("-")
        self.kubectl("create", "namespace", name)
        self.namespace = name

    def since(self, minor, what):
        if self.minor < minor:
            self.skipTest(f"kubectl 1.{self.minor} has no {what}")

    def command(self):
        return [KUBECTL, f"--kubeconfig={self.server.kubeconfig}", f"--namespace={self.namespace}"]

    def environment(self, **env):
        return {**os.environ, "HOME": str(self.scratch), "KUBECONFIG": "/dev/null", **env}

    def kubectl(self, *words, given=None, code=0, **env):
        done = subprocess.run([*self.command(), *words], input=given, text=True, capture_output=True, check=False,
                              timeout=SECONDS, env=self.environment(**env))
        self.assertEqual(done.returncode, code, f"{words}\n{done.stdout}{done.stderr}")
        return done.stdout + done.stderr

    def rows(self, *words):
        return [row.split() for row in self.kubectl(*words).splitlines()]

    def json(self, *words):
        return json.loads(self.kubectl("get", *words, "-o", "json"))

    def edit(self, script, *words):
        editor = self.scratch / "editor"
        editor.write_text(f"#!/bin/sh\nsed -i '{script}' \"$1\"\n")
        editor.chmod(0o755)
        return self.kubectl("edit", *words, KUBE_EDITOR=str(editor))


class BuiltIn(Kubectl):
    def containers(self):
        spec = self.json("deployment", "web")["spec"]
        return {c["name"]: c["image"] for c in spec["template"]["spec"]["containers"]}

    def test_objects_are_created_changed_and_deleted(self):
        self.kubectl("create", "configmap", "c", "--from-literal=a=b")
        self.kubectl("label", "configmap", "c", "x=y")
        self.assertIn("already has a value", self.kubectl("label", "configmap", "c", "x=z", code=1))
        self.kubectl("annotate", "configmap", "c", "note=1")
        self.kubectl("patch", "configmap", "c", "--type=merge", "-p", '{"data":{"m":"1"}}')
        self.kubectl("patch", "configmap", "c", "--type=json", "-p", '[{"op":"add","path":"/data/j","value":"1"}]')
        self.kubectl("patch", "configmap", "c", "-p", '{"data":{"s":"1"}}')
        self.edit("s/a: b/a: edited/", "configmap", "c")
        got = self.json("configmap", "c")
        self.assertEqual(got["data"], {"a": "edited", "m": "1", "j": "1", "s": "1"})
        self.assertEqual((got["metadata"]["labels"], got["metadata"]["annotations"]["note"]), ({"x": "y"}, "1"))
        self.kubectl("replace", "-f", "-", given=config("c", "2"))
        self.assertEqual(self.json("configmap", "c")["data"], {"k": "2"})
        self.kubectl("replace", "--force", "-f", "-", given=config("c", "3"))
        self.assertIn("already exists", self.kubectl("create", "configmap", "c", code=1))
        self.kubectl("delete", "configmap", "c")
        self.assertIn("NotFound", self.kubectl("get", "configmap", "c", code=1))
        self.assertIn("NotFound", self.kubectl("delete", "configmap", "c", code=1))
        self.kubectl("delete", "configmap", "c", "--ignore-not-found")

    def test_apply_keeps_changes_of_other_writers(self):
        self.kubectl("apply", "-f", "-", given=WEB)
        self.assertIn("unchanged", self.kubectl("apply", "-f", "-", given=WEB))
        self.kubectl("patch", "deployment", "web", "-p",
                     '{"spec":{"template":{"spec":{"containers":[{"name":"theirs","image":"t:1"}]}}}}')
        changed = WEB.replace("nginx:1", "nginx:2").replace('      - {name: side, image: "side:1"}\n', "")
        self.assertIn("configured", self.kubectl("apply", "-f", "-", given=changed))
        self.assertEqual(self.containers(), {"c": "nginx:2", "theirs": "t:1"})
        self.edit("s/nginx:2/nginx:3/", "deployment", "web")
        self.assertEqual(self.containers()["c"], "nginx:3")
        self.assertIn("replicas: 2", self.kubectl("apply", "view-last-applied", "deployment", "web"))

    def test_workloads_are_scaled_restarted_and_waited_for(self):
        self.kubectl("apply", "-f", "-", given=WEB)
        self.kubectl("set", "image", "deployment/web", "c=nginx:2")
        self.kubectl("scale", "deployment", "web", "--replicas=4")
        got = self.json("deployment", "web")
        self.assertEqual((got["spec"]["replicas"], got["metadata"]["generation"]), (4, 3))
        self.assertIn("restarted", self.kubectl("rollout", "restart", "deployment", "web"))
        self.assertIn("paused", self.kubectl("rollout", "pause", "deployment", "web"))
        self.assertIn("resumed", self.kubectl("rollout", "resume", "deployment", "web"))
        self.assertIn("No rollout history found", self.kubectl("rollout", "history", "deployment", "web"))
        self.kubectl("expose", "deployment", "web", "--port=80")
        self.assertEqual(self.json("service", "web")["spec"]["selector"], {"app": "web"})
        status = {"status": {"conditions": [{"type": "Available", "status": "True"}]}}
        self.kubectl("replace", "--raw", f"/apis/apps/v1/namespaces/{self.namespace}/deployments/web/status", "-f", "-",
                     given=json.dumps({**self.json("deployment", "web"), **status}))
        self.kubectl("wait", "deployment", "web", "--for=condition=Available", "--timeout=30s")
        self.assertIn("timed out", self.kubectl("wait", "deployment", "web", "--for=condition=Never", "--timeout=1s",
                                                code=1))

    def test_many_documents_in_one_command(self):
        def both(value):
            return config("a", value, set="all") + config("b", value, set="all")
        self.assertEqual(self.kubectl("create", "-f", "-", given=both("1")).count("created"), 2)
        self.assertEqual(self.kubectl("apply", "-f", "-", given=both("2")).count("configured"), 2)
        kinds = "--prune-allowlist" if self.minor >= 26 else "--prune-whitelist"
        self.assertIn("b pruned", self.kubectl("apply", "--prune", "-l", "set=all", f"{kinds}=core/v1/ConfigMap", "-f", "-",
                                               given=config("a", "2", set="all")))
        self.assertEqual(self.kubectl("get", "configmaps", "-o", "name"), "configmap/a\n")
        folder = self.scratch / "kustomization"
        folder.mkdir()
        (folder / "one.yaml").write_text(config("one"))
        (folder / "kustomization.yaml").write_text(
            "resources: [one.yaml]\nnamePrefix: k-\nconfigMapGenerator: [{name: made, literals: [a=b]}]\n")
        self.kubectl("apply", "-k", str(folder))
        self.assertIn("configmap/k-one", self.kubectl("get", "configmaps", "-o", "name"))
        self.kubectl("delete", "-k", str(folder))
        self.kubectl("delete", "-f", "-", given=config("a"))
        self.kubectl("create", "-f", "-", given=both("1") + config("c"))
        self.kubectl("delete", "configmaps", "-l", "set=all")
        self.assertEqual(self.kubectl("get", "configmaps", "-o", "name"), "configmap/c\n")
        self.kubectl("delete", "configmaps", "--all")
        self.assertIn("No resources found", self.kubectl("get", "configmaps"))

    def test_objects_are_printed_in_every_format(self):
        self.kubectl("create", "-f", "-", given=config("a", "2", x="1") + config("b", "1", x="2"))
        self.kubectl("run", "web", "--image=a:1")
        self.kubectl("patch", "pod", "web", "-p", '{"metadata":{"labels":{"x":"1"}}}')
        self.assertEqual(self.rows("get", "pods")[0], ["NAME", "READY", "STATUS", "RESTARTS", "AGE"])
        self.assertEqual(self.rows("get", "pods")[1][:4], ["web", "0/1", "Pending", "0"])
        self.assertIn("NODE", self.rows("get", "po", "-A", "-o", "wide")[0])
        self.assertEqual(self.json("pod", "web")["kind"], "Pod")
        self.assertIn("\n  k: \"2\"\n", self.kubectl("get", "configmap", "a", "-o", "yaml"))
        self.assertEqual(self.kubectl("get", "configmap", "a", "-o", "jsonpath={.data.k}"), "2")
        self.assertEqual(self.kubectl("get", "configmap", "a", "-o", "go-template={{.data.k}}"), "2")
        self.assertEqual(self.rows("get", "configmaps", "-o", "custom-columns=N:.metadata.name,K:.data.k", "-l", "x"),
                         [["N", "K"], ["a", "2"], ["b", "1"]])
        self.assertEqual(self.rows("get", "configmaps", "--sort-by=.data.k", "-o", "name", "-l", "x in (1,2)"),
                         [["configmap/b"], ["configmap/a"]])
        self.assertEqual(self.kubectl("get", "configmaps", "--field-selector=metadata.name=b", "-o", "name"),
                         "configmap/b\n")
        self.assertEqual(self.kubectl("get", "pods", "--field-selector=status.phase=Pending", "-o", "name"), "pod/web\n")
        self.assertEqual(len(self.rows("get", "configmaps,pods", "-l", "x=1", "-o", "name", "--chunk-size=1")), 2)
        self.assertIn("x=1", self.kubectl("get", "configmap", "a", "--show-labels"))
        self.assertIn("kube-system", self.kubectl("get", "namespaces"))
        self.assertIn('Error from server (NotFound): pods "nope" not found', self.kubectl("get", "pod", "nope", code=1))
        self.assertIn("doesn't have a resource type", self.kubectl("get", "nothing", code=1))
        self.assertIn("(BadRequest)", self.kubectl("get", "pods", "--field-selector=spec.nope=1", code=1))

    def test_describe_shows_objects_and_their_events(self):
        self.kubectl("run", "web", "--image=a:1")
        uid = self.json("pod", "web")["metadata"]["uid"]
        event = {"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e"}, "reason": "Happened", "message": "it did",
                 "type": "Normal", "involvedObject": {"kind": "Pod", "name": "web", "namespace": self.namespace, "uid": uid}}
        self.kubectl("create", "-f", "-", given=json.dumps(event))
        self.assertIn("Happened", self.kubectl("get", "events", "--field-selector=involvedObject.name=web"))
        self.assertIn("it did", self.kubectl("describe", "pod", "web"))
        self.kubectl("create", "-f", "-", given=config("a", "the value"))
        self.assertIn("the value", self.kubectl("describe", "configmap", "a"))
        self.assertIn("Active", self.kubectl("describe", "namespace", "default"))

    def test_watch_follows_changes_and_delete_waits(self):
        self.kubectl("run", "a", "--image=a:1")
        watch = Watch(self, "pods")
        self.assertEqual(watch.row()[0], "NAME")
        self.assertEqual(watch.row()[2], "Pending")
        self.kubectl("patch", "--type=merge", "pod", "a", "-p", '{"metadata":{"finalizers":["example.com/hold"]}}')
        self.assertEqual(watch.row()[2], "Pending")
        deleting = subprocess.Popen([*self.command(), "delete", "pod", "a"], env=self.environment(),
                                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.addCleanup(deleting.kill)
        self.assertEqual(watch.row()[2], "Terminating")
        self.assertIsNone(deleting.poll())
        self.kubectl("patch", "--type=merge", "pod", "a", "-p", '{"metadata":{"finalizers":null}}')
        output, _ = deleting.communicate()
        self.assertEqual(deleting.returncode, 0, output)
        self.assertEqual(watch.row()[0], "a")
        if self.minor >= 23:  # for older ones a missing object is an error
            self.kubectl("wait", "pod/a", "--for=delete", "--timeout=30s")

    def test_deleting_a_namespace_deletes_its_objects(self):
        self.kubectl("create", "namespace", "n")
        self.kubectl("-n", "n", "create", "configmap", "c")
        self.assertIn("already exists", self.kubectl("create", "namespace", "n", code=1))
        self.kubectl("delete", "namespace", "n")
        self.assertIn("NotFound", self.kubectl("get", "namespace", "n", code=1))
        self.assertIn("No resources found", self.kubectl("-n", "n", "get", "configmaps"))

    def test_typed_create_commands(self):
        made = [("configmap", "a", "--from-literal=x=1"), ("secret", "generic", "s", "--from-literal=x=1"),
                ("service", "clusterip", "svc", "--tcp=80:8080"), ("deployment", "d", "--image=a"),
                ("job", "j", "--image=a"), ("serviceaccount", "sa"), ("role", "r", "--verb=get", "--resource=pods"),
                ("rolebinding", "rb", "--role=r", "--user=u"), ("quota", "q", "--hard=cpu=1"),
                ("ingress", "i", "--rule=h/p=s:80")]
        if self.minor >= 25:  # older ones use API versions that were removed
            made += [("cronjob", "cj", "--image=a", "--schedule=* * * * *"),
                     ("pdb", "p", "--min-available=1", "--selector=a=b")]
        for words in made:
            with self.subTest(words=words):
                self.assertIn("created", self.kubectl("create", *words))
        self.assertEqual(self.json("service", "svc")["spec"]["ports"][0]["targetPort"], 8080)
        self.assertEqual(self.json("quota", "q")["spec"]["hard"], {"cpu": "1"})

    def test_invalid_objects_are_refused(self):
        wrong = WEB.replace("replicas: 2", "replicas: 2\n  replica: 3\n  other: 4")
        strict = {"code": 1} if self.minor >= 25 else {}
        self.assertIn('unknown field "spec.replica"', self.kubectl("create", "-f", "-", given=wrong, **strict))
        if strict:
            self.assertIn('unknown field "spec.replica"', self.kubectl("apply", "-f", "-", given=wrong, code=1))
            self.kubectl("get", "deployment", "web", code=1)
            output = self.kubectl("create", "--validate=warn", "-f", "-", given=wrong)
            self.assertIn('Warning: unknown field "spec.replica"\n', output)
            self.assertIn('Warning: unknown field "spec.other"\n', output)
        self.assertIn("cannot unmarshal string", self.kubectl(
            "create", "-f", "-", given=WEB.replace("replicas: 2", "replicas: two"), code=1))
        self.assertIn("Invalid value", self.kubectl("create", "-f", "-", given=config("Wrong"), code=1))

    def test_dry_runs_and_diffs_store_nothing(self):
        self.since(27, "OpenAPI v3")
        self.kubectl("apply", "-f", "-", given=config("a", "1"))
        self.assertIn("(server dry run)", self.kubectl("apply", "--dry-run=server", "-f", "-", given=config("a", "2")))
        self.assertIn("+  k: \"2\"", self.kubectl("diff", "-f", "-", given=config("a", "2"), code=1))
        self.assertEqual(self.kubectl("diff", "-f", "-", given=config("a", "1")), "")
        self.assertEqual(self.json("configmap", "a")["data"], {"k": "1"})

    def test_explain_shows_the_types(self):
        self.since(27, "OpenAPI v3")
        self.assertIn("containers\t<[]Container> -required-", self.kubectl("explain", "pod.spec"))
        self.assertIn("<integer>", self.kubectl("explain", "deployment.spec.replicas"))
        self.assertIn("does not exist", self.kubectl("explain", "pod.spec.nothing", code=1))

    def test_commands_that_need_running_pods_are_refused_with_a_reason(self):
        self.kubectl("run", "idle", "--image=a:1")
        self.assertEqual(self.kubectl("logs", "idle"), "")
        self.assertIn("idle does not have a host assigned", self.kubectl("exec", "idle", "--", "ls", code=1))
        self.assertIn("container other is not valid for pod idle", self.kubectl("logs", "idle", "-c", "other", code=1))

    def test_component_statuses_are_listed(self):
        listed = self.kubectl("get", "componentstatuses")
        self.assertRegex(listed, r"etcd-0 +Healthy +ok")
        self.assertRegex(listed, r"scheduler +Unhealthy +Get ")

    def test_certificates_are_approved(self):
        self.kubectl("create", "-f", "-", given=REQUEST)
        self.assertIn("Pending", self.kubectl("get", "csr", "jane"))
        self.kubectl("certificate", "approve", "jane")
        self.assertIn("Approved", self.kubectl("get", "csr", "jane"))
        self.kubectl("certificate", "deny", "jane", code=1)


class Custom(Kubectl):
    """The same verbs on custom resources."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        test = cls("kubectl")
        test.namespace = "default"
        test.kubectl("create", "-f", "-", given=HATS)
        test.kubectl("wait", "--for=condition=Established", "crd/hats.example.com", "--timeout=30s")

    def test_objects_are_created_changed_and_deleted(self):
        self.kubectl("create", "-f", "-", given=hat("a"))
        self.assertIn("AlreadyExists", self.kubectl("create", "-f", "-", given=hat("a"), code=1))
        self.assertIn("created", self.kubectl("apply", "-f", "-", given=hat("b", "blue")))
        self.assertIn("unchanged", self.kubectl("apply", "-f", "-", given=hat("b", "blue")))
        self.assertIn("configured", self.kubectl("apply", "-f", "-", given=hat("b", "blue", size=7)))
        self.kubectl("label", "hat", "a", "x=y")
        self.kubectl("annotate", "hat", "a", "x=y")
        self.kubectl("patch", "hat", "a", "--type=merge", "-p", '{"spec":{"size":5}}')
        self.kubectl("patch", "hat", "a", "--type=json", "-p", '[{"op":"replace","path":"/spec/color","value":"blue"}]')
        self.assertIn("in an unknown format", self.kubectl("patch", "hat", "a", "-p", "{}", code=1))
        self.edit("s/size: 5/size: 6/", "hat", "a")
        got = self.json("hat", "a")
        self.assertEqual((got["spec"], got["metadata"]["labels"]), ({"color": "blue", "size": 6}, {"x": "y"}))
        self.kubectl("scale", "hat", "a", "--replicas=2")
        self.assertEqual(self.json("hat", "a")["spec"]["copies"], 2)
        self.kubectl("replace", "-f", "-", given=hat("a", size=1))
        self.assertEqual(self.json("hat", "a")["spec"], {"color": "red", "size": 1})
        if self.minor >= 27:
            self.kubectl("delete", "hat", "a", "--dry-run=server")
            self.kubectl("get", "hat", "a")
        self.assertNotIn("Warning", self.kubectl("delete", "hat", "a"))
        self.assertIn("NotFound", self.kubectl("get", "hat", "a", code=1))
        self.kubectl("delete", "hats", "--all")
        self.assertIn("No resources found", self.kubectl("get", "hats"))

    def test_objects_are_printed_in_every_format(self):
        self.assertIn(["hats.example.com"], self.rows("api-resources", "--api-group=example.com", "-o", "name"))
        self.kubectl("create", "-f", "-", given=hat("a") + hat("b", "blue", size=7, copies=4))
        self.assertEqual(self.rows("get", "ht"), [["NAME", "COLOR", "SIZE"], ["a", "red", "3"], ["b", "blue", "7"]])
        self.assertEqual(self.rows("get", "ht", "-o", "wide", "--no-headers")[1], ["b", "blue", "7", "4"])
        self.assertIn("hat.example.com/a", self.kubectl("get", "clothes", "-o", "name"))
        self.assertEqual(self.kubectl("get", "hats", "--field-selector=spec.color=blue", "-o", "name"),
                         "hat.example.com/b\n")
        self.assertEqual(self.rows("get", "hats", "--sort-by=.spec.size", "-o", "custom-columns=S:.spec.size"),
                         [["S"], ["3"], ["7"]])
        self.assertIn("color: blue", self.kubectl("get", "hat", "b", "-o", "yaml"))
        self.assertIn("blue", self.kubectl("describe", "hat", "b"))

    def test_watch_follows_changes_and_wait_returns(self):
        self.kubectl("create", "-f", "-", given=hat("a"))
        watch = Watch(self, "hats")
        self.assertEqual([watch.row(), watch.row()], [["NAME", "COLOR", "SIZE"], ["a", "red", "3"]])
        self.kubectl("patch", "hat", "a", "--type=merge", "-p", '{"spec":{"size":5}}')
        self.assertEqual(watch.row(), ["a", "red", "5"])
        path = f"/apis/example.com/v1/namespaces/{self.namespace}/hats/a/status"
        worn = {**self.json("hat", "a"), "status": {"conditions": [{"type": "Worn", "status": "True"}]}}
        self.kubectl("replace", "--raw", path, "-f", "-", given=json.dumps(worn))
        self.kubectl("wait", "hat/a", "--for=condition=Worn", "--timeout=30s")
        if self.minor >= 23:
            self.kubectl("wait", "hat/a", "--for=jsonpath={.spec.size}=5", "--timeout=30s")
            self.kubectl("delete", "hat", "a", "--wait=false")
            self.kubectl("wait", "hat/a", "--for=delete", "--timeout=30s")

    def test_invalid_objects_are_refused(self):
        self.assertIn("Unsupported value", self.kubectl("create", "-f", "-", given=hat("c", "pink"), code=1))
        self.assertIn("spec.size", self.kubectl("create", "-f", "-", given=hat("c", size=10), code=1))
        self.assertIn("spec.size", self.kubectl("create", "-f", "-", given=hat("c", size="x"), code=1))
        brim = {"code": 1} if self.minor >= 25 else {}
        self.assertIn('unknown field "spec.brim"', self.kubectl("create", "-f", "-", given=hat("c", brim=1), **brim))

    def test_explain_shows_the_schema(self):
        self.since(27, "OpenAPI v3")
        self.assertIn("of the head", self.kubectl("explain", "hat.spec.size"))
        self.assertIn("what is worn on a head", self.kubectl("explain", "hat"))
        self.assertIn("ownerReferences", self.kubectl("explain", "hat", "--recursive"))
        self.kubectl("apply", "-f", "-", given=hat("d"))
        self.assertIn("+  size: 7", self.kubectl("diff", "-f", "-", given=hat("d", size=7), code=1))

    def test_deleting_a_definition_deletes_its_objects(self):
        given = HATS.replace("hats", "caps").replace("Hat", "Cap").replace("ht", "cp").replace("clothes", "more")
        self.kubectl("apply", "-f", "-", given=given)
        self.kubectl("create", "-f", "-", given=hat("a").replace("Hat", "Cap"))
        self.kubectl("delete", "crd", "caps.example.com", "--timeout=30s")
        self.kubectl("get", "caps", code=1)


class Server(Kubectl):
    def test_discovery_and_version(self):
        listed = self.kubectl("api-resources")
        for word in ("deployments", "configmaps", "leases"):
            self.assertIn(word, listed)
        self.assertIn("coordination.k8s.io/v1", self.kubectl("api-versions"))
        self.assertIn("is running at", self.kubectl("cluster-info"))
        self.assertIn('"gitVersion": "v1.36.', self.kubectl("version", "-o", "json"))
        self.assertEqual(self.kubectl("get", "--raw", "/readyz"), "ok")

    def test_user_of_the_kubeconfig_may_do_everything(self):
        self.assertIn("yes", self.kubectl("auth", "can-i", "delete", "nodes"))
        self.assertIn("*.*", self.kubectl("auth", "can-i", "--list"))
        if self.minor >= 28:
            self.assertIn("system:masters", self.kubectl("auth", "whoami"))

    def test_kubeconfig_suffices_over_tls(self):
        server = KubeServer(self.scratch / "tls", ["--auto-tls"])
        server.args[1] = "https://127.0.0.1:0"
        super(KubeServer, server).start()
        self.addCleanup(server.kill)
        self.assertIn("certificate-authority", pathlib.Path(server.kubeconfig).read_text())
        self.assertIn("kube-system", self.kubectl(f"--kubeconfig={server.kubeconfig}", "get", "namespaces"))
        server.stop()


if __name__ == "__main__":
    unittest.main()
