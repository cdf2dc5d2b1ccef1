#!/usr/bin/python3
"""MutatingAdmissionPolicies change objects: at once, on every I/O thread, and as far as the limits of the server go.
tests/kube/same_mutations_test.py compares what they do with a real kube-apiserver."""
import http.client
import json
import threading
import unittest

from kube import KubeServer, key_of, thing
from server import WAIT_SECONDS, LiveTest, only_vigil

GROUP = "/apis/admissionregistration.k8s.io/v1"
POLICIES, BINDINGS = f"{GROUP}/mutatingadmissionpolicies", f"{GROUP}/mutatingadmissionpolicybindings"
CMS = "/api/v1/namespaces/default/configmaps"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
MERGE, APPLY = "application/merge-patch+json", "application/apply-patch+yaml"
LOOP = "[0,1,2,3,4,5,6,7,8,9].all(a, [0,1,2,3,4,5,6,7,8,9].all(b, [0,1,2,3,4,5,6,7,8,9].all(c, a + b + c >= 0)))"
COUNT = "Object{data: {'n': string(int(object.?data.?n.orValue('0')) + 1)}}"


def policy_spec(*expressions, resources="configmaps", operations="CREATE,UPDATE", again="Never", **spec):
    rule = {"apiGroups": ["*"], "apiVersions": ["*"], "resources": resources.split(","), "operations": operations.split(",")}
    return {"failurePolicy": "Fail", "reinvocationPolicy": again, "matchConstraints": {
        "resourceRules": [rule], "matchPolicy": "Equivalent", "namespaceSelector": {}, "objectSelector": {}},
        "mutations": [{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": one}} for one in expressions], **spec}


@only_vigil
class Mutations(LiveTest):
    def setUp(self):
        super().setUp()
        self.serve()

    def serve(self, *args):
        self.kube = KubeServer(self.scratch / f"data{len(args)}", ["--io-threads", "4", *args])
        self.addCleanup(self.kube.kill)
        self.addCleanup(self.kube.close)
        self.kube.start()

    def send(self, method, path, body=None, content_type="application/json", code=None):
        """Each request has its own connection, which any I/O thread may serve."""
        connection = http.client.HTTPConnection("127.0.0.1", self.kube.kube_port, timeout=WAIT_SECONDS)
        connection.request(method, path, json.dumps(body) if body else None, {"Content-Type": content_type})
        answer = connection.getresponse()
        made = json.loads(answer.read())
        warnings = answer.headers.get_all("Warning", [])
        connection.close()
        if code:
            self.assertEqual(answer.status, code, made)
        self.warnings = warnings
        return made

    def policy(self, name, *expressions, code=201, **spec):
        return self.send("POST", POLICIES, {"metadata": {"name": name}, "spec": policy_spec(*expressions, **spec)}, code=code)

    def bind(self, name, code=201, **spec):
        return self.send("POST", BINDINGS, {"metadata": {"name": name}, "spec": {"policyName": name, **spec}}, code=code)

    def config(self, name, code=201, **more):
        return self.send("POST", CMS, {"metadata": {"name": name}, **more}, code=code)

    def put(self, prefix, kind, name, spec):
        self.kube.put_raw(key_of(prefix, name, None), json.dumps(
            thing(name, None, kind, "admissionregistration.k8s.io/v1", spec=spec)))

    def test_a_policy_applies_to_the_next_write_on_every_thread(self):
        for turn in range(10):
            name = f"turn-{turn}"
            self.policy(name, f"Object{{data: {{'turn': '{turn}'}}}}")
            self.assertNotIn("data", self.config(f"unbound-{turn}"))
            self.bind(name)
            for number in range(8):
                made = self.config(f"a-{turn}-{number}")
                self.assertEqual(made["data"], {"turn": str(turn)})
                self.assertEqual(self.send("GET", f"{CMS}/a-{turn}-{number}", code=200), made)
            self.send("DELETE", f"{BINDINGS}/{name}", code=200)
            self.assertNotIn("data", self.config(f"gone-{turn}"))

    def test_policies_run_by_name_and_those_that_say_so_once_more(self):
        text = "Object{{data: {{'order': object.?data.?order.orValue('') + '{0}'}}}}"
        for name, again in (("b", "Never"), ("a", "IfNeeded"), ("c", "IfNeeded")):
            self.policy(name, text.format(name), again=again)
            self.bind(name)
        self.assertEqual(self.config("x")["data"], {"order": "abcac"})

    def test_every_attempt_of_an_update_is_mutated_once(self):
        self.config("x")
        self.policy("p", COUNT, operations="UPDATE")
        self.bind("p")
        writers = [threading.Thread(target=lambda at=at: [
            self.send("PATCH", f"{CMS}/x", {"metadata": {"labels": {f"w{at}": str(n)}}}, MERGE, code=200) for n in range(20)])
            for at in range(4)]
        for writer in writers:
            writer.start()
        for writer in writers:
            writer.join()
        self.assertEqual(self.send("GET", f"{CMS}/x", code=200)["data"], {"n": "80"})

    def test_a_dear_mutation_runs_on_the_worker(self):
        self.policy("p", f"{LOOP} && {LOOP} ? {COUNT} : Object{{}}", again="IfNeeded")
        self.bind("p")
        self.assertEqual(self.config("x")["data"], {"n": "2"})
        self.assertEqual(self.send("PATCH", f"{CMS}/x", {"metadata": {"labels": {"a": "b"}}}, MERGE, code=200)["data"], {"n": "4"})

    def test_what_a_policy_sets_belongs_to_nobody(self):
        self.policy("p", "Object{data: {'set': object.metadata.name}}")
        self.bind("p")
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "data": {"a": "b"}}
        for content in ("b", "c"):
            body["data"]["a"] = content
            made = self.send("PATCH", f"{CMS}/x?fieldManager=m", body, APPLY)
            self.assertEqual(made["data"], {"a": content, "set": "x"})
            self.assertEqual([one["fieldsV1"] for one in made["metadata"]["managedFields"]], [{"f:data": {"f:a": {}}}])
        made = self.send("PATCH", f"{CMS}/x?fieldManager=n", {"data": {"z": "z"}}, MERGE, code=200)
        self.assertEqual({one["manager"]: one["fieldsV1"] for one in made["metadata"]["managedFields"]},
                         {"m": {"f:data": {"f:a": {}}}, "n": {"f:data": {"f:z": {}}}})

    def test_plugins_see_what_a_policy_has_set(self):
        """What they have to know about the object is gathered again."""
        self.send("POST", "/apis/node.k8s.io/v1/runtimeclasses", {
            "metadata": {"name": "heavy"}, "handler": "h", "overhead": {"podFixed": {"cpu": "1"}}}, code=201)
        self.policy("p", "Object{spec: Object.spec{runtimeClassName: 'heavy'}}", resources="pods", operations="CREATE")
        self.bind("p")
        pod = {"metadata": {"name": "x"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
        self.assertEqual(self.send("POST", "/api/v1/namespaces/default/pods", pod, code=201)["spec"]["overhead"], {"cpu": "1"})

    def test_what_policies_have_read_is_in_the_object_when_it_is_gone(self):
        """The object of a new write outlives the parameters, the namespace and the request of its first pass."""
        self.config("param", data={"a": "b" * 50, "c": "d" * 50})
        kind = {"apiVersion": "v1", "kind": "ConfigMap"}
        self.policy("p", "Object{data: params.data}", paramKind=kind, again="IfNeeded")
        self.policy("q", "Object{metadata: Object.metadata{labels: namespaceObject.metadata.labels}}")
        self.bind("p", paramRef={"name": "param", "namespace": "default", "parameterNotFoundAction": "Deny"})
        self.bind("q")
        made = self.config("x")
        self.assertEqual(made["data"], {"a": "b" * 50, "c": "d" * 50})
        self.assertEqual(made["metadata"]["labels"], {"kubernetes.io/metadata.name": "default"})
        self.assertEqual(self.send("GET", f"{CMS}/x", code=200), made)

    def test_a_policy_sees_the_status_in_the_version_of_its_rule(self):
        schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
        self.send("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", {"metadata": {"name": "things.x.y"}, "spec": {
            "group": "x.y", "names": {"plural": "things", "kind": "Thing"}, "scope": "Namespaced", "versions": [
                {"name": name, "served": True, "storage": name == "v1", "subresources": {"status": {}}, "schema": schema}
                for name in ("v1", "v2")]}}, code=201)
        things = "/apis/x.y/v1/namespaces/default/things"
        self.send("POST", things, {"apiVersion": "x.y/v1", "kind": "Thing", "metadata": {"name": "x"}}, code=201)
        patch = "[JSONPatch{op: 'add', path: '/status/seen', value: object.apiVersion + ' ' + request.kind.version}]"
        spec = policy_spec(resources="things/status", operations="UPDATE")
        spec["matchConstraints"]["resourceRules"][0]["apiVersions"] = ["v2"]
        spec["mutations"] = [{"patchType": "JSONPatch", "jsonPatch": {"expression": patch}}]
        self.send("POST", POLICIES, {"metadata": {"name": "p"}, "spec": spec}, code=201)
        self.bind("p")
        made = self.send("PATCH", f"{things}/x/status", {"status": {"a": "b"}}, MERGE, code=200)
        self.assertEqual((made["apiVersion"], made["status"]), ("x.y/v1", {"a": "b", "seen": "x.y/v2 v2"}))

    def test_a_patch_that_leaves_no_object_is_refused(self):
        spec = policy_spec()
        spec["mutations"] = [{"patchType": "JSONPatch", "jsonPatch": {"expression": "[JSONPatch{op: 'replace', path: '', value: [1]}]"}}]
        self.send("POST", POLICIES, {"metadata": {"name": "p"}, "spec": spec}, code=201)
        self.config("x")
        self.bind("p")
        self.assertIn("cannot unmarshal array", self.config("y", code=500)["message"])
        self.send("PATCH", f"{CMS}/x", {"data": {"a": "b"}}, MERGE, code=500)

    def test_scales_are_not_mutated_and_the_writer_of_the_policy_is_warned(self):
        self.policy("p", "Object{spec: Object.spec{replicas: 7}}", resources="deployments/scale", operations="UPDATE")
        self.assertIn("does not mutate scales", str(self.warnings))
        self.bind("p")
        labels = {"app": "x"}
        self.send("POST", DEPLOYMENTS, {"metadata": {"name": "x"}, "spec": {"selector": {"matchLabels": labels}, "template": {
            "metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}}}}, code=201)
        made = self.send("PATCH", f"{DEPLOYMENTS}/x/scale", {"spec": {"replicas": 2}}, MERGE, code=200)
        self.assertEqual(made["spec"]["replicas"], 2)

    def test_policies_that_are_not_held_change_the_same(self):
        self.serve("--max-client-bytes", str(64 << 20))
        large = policy_spec(f"{' && '.join([LOOP] * 20)} ? {COUNT} : Object{{}}", f"{' && '.join([LOOP] * 20)} ? Object{{}} : Object{{}}")
        for number in range(8):
            self.put("mutatingadmissionpolicies", "MutatingAdmissionPolicy", f"p-{number}", large)
            self.put("mutatingadmissionpolicybindings", "MutatingAdmissionPolicyBinding", f"p-{number}", {"policyName": f"p-{number}"})
        self.assertEqual(self.config("a")["data"], {"n": "8"})

    def test_a_disabled_plugin_changes_nothing(self):
        self.serve("--kube-disable-admission-plugins=MutatingAdmissionPolicy")
        self.policy("p", COUNT)
        self.assertIn("MutatingAdmissionPolicy is disabled", str(self.warnings))
        self.bind("p")
        self.assertNotIn("data", self.config("x"))


if __name__ == "__main__":
    unittest.main()
