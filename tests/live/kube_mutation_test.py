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
PODS = "/api/v1/namespaces/default/pods"
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

    def rows(self, metric):
        connection = http.client.HTTPConnection("127.0.0.1", self.kube.kube_port, timeout=WAIT_SECONDS)
        connection.request("GET", "/metrics")
        page = connection.getresponse().read().decode()
        connection.close()
        return {line.split("{", 1)[1] for line in page.splitlines() if line.startswith(metric + "{")}

    def test_match_conditions_are_counted_by_policy(self):
        self.policy("counted", "Object{}", matchConditions=[
            {"name": "a", "expression": "object.metadata.name != 'not'"},
            {"name": "b", "expression": "1 / int(object.metadata.name.size() - 1) > 9"}])
        self.bind("counted")
        self.policy("without", "Object{}")
        self.bind("without")
        self.config("not")
        self.config("x", code=403)
        labels = 'name="counted",kind="policy",type="validate",operation="CREATE"}'
        self.assertEqual(self.rows("apiserver_admission_match_condition_evaluation_errors_total"), {labels + " 1"})
        self.assertEqual(self.rows("apiserver_admission_match_condition_evaluation_seconds_count"), {labels + " 2"})
        self.assertEqual(self.rows("apiserver_admission_match_condition_exclusions_total"), set())

    def test_mutations_are_counted_by_policy_and_error(self):
        self.policy("counted", "Object{data: {'a': 'b'}}")
        self.bind("counted")
        self.policy("failing", "Object{data: {'a': string(1 / int(object.metadata.name.size() - 1))}}", failurePolicy="Ignore")
        self.bind("failing")
        for name in ("x", "long", "y"):
            self.config(name)
        self.assertEqual(self.rows("apiserver_mutating_admission_policy_check_total"),
                         {'policy="counted",policy_binding="counted",error_type="no_error"} 3',
                          'policy="failing",policy_binding="failing",error_type="no_error"} 1',
                          'policy="failing",policy_binding="failing",error_type="invalid_error"} 2'})

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

    def test_a_policy_may_change_the_managers_but_not_ruin_them(self):
        def run(name, expression, why=None):
            body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "b"}}
            self.send("PATCH", f"{CMS}/{name}?fieldManager=m", body, APPLY, code=201)
            spec = policy_spec()
            spec["mutations"] = [{"patchType": "JSONPatch", "jsonPatch": {
                "expression": f"has(object.metadata.managedFields) ? {expression} : []"}}]
            self.send("POST", POLICIES, {"metadata": {"name": "p"}, "spec": spec}, code=201)
            self.bind("p")
            made, warnings = [], []
            for new in (name, f"{name}-new"):
                made.append(self.send("PATCH", f"{CMS}/{new}?fieldManager=m",
                                      {**body, "metadata": {"name": new}, "data": {"a": "c"}}, APPLY))
                warnings.append(any(why and why in one for one in self.warnings))
            self.assertEqual(warnings, [bool(why)] * 2)
            for path in (f"{BINDINGS}/p", f"{POLICIES}/p"):
                self.send("DELETE", path, code=200)
            return [[one["manager"] for one in each["metadata"].get("managedFields", [])] for each in made]

        entry = "[JSONPatch{op: 'replace', path: '/metadata/managedFields/0/%s', value: '%s'}]"
        self.assertEqual(run("removed", "[JSONPatch{op: 'remove', path: '/metadata/managedFields'}]"), [[], []])
        self.assertEqual(run("renamed", entry % ("manager", "z")), [["z"], ["z"]])
        for name, change, why in (("operation", ("operation", "Write"), "operation must be `Apply` or `Update`"),
                                  ("version", ("apiVersion", ""), "apiVersion must not be empty"),
                                  ("type", ("fieldsType", "V2"), "invalid fieldsType")):
            self.assertEqual(run(name, entry % change, why), [["m"], ["m"]])
        self.assertEqual(run("fields", "[JSONPatch{op: 'replace', path: '/metadata/managedFields/0/fieldsV1', value: {'k:nothing': {}}}]",
                             "in an invalid state after admission"), [["m"], ["m"]])

    def test_plugins_see_what_a_policy_has_set(self):
        """What they have to know about the object is gathered again."""
        self.send("POST", "/apis/node.k8s.io/v1/runtimeclasses", {
            "metadata": {"name": "heavy"}, "handler": "h", "overhead": {"podFixed": {"cpu": "1"}}}, code=201)
        self.policy("p", "Object{spec: Object.spec{runtimeClassName: 'heavy'}}", resources="pods", operations="CREATE")
        self.bind("p")
        pod = {"metadata": {"name": "x"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
        self.assertEqual(self.send("POST", PODS, pod, code=201)["spec"]["overhead"], {"cpu": "1"})

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

    def test_the_managers_of_a_new_object_can_be_patched(self):
        self.kube.kill()
        self.serve("--kube-managed-fields=all")
        spec = policy_spec()
        patch = "[JSONPatch{op: 'remove', path: '/metadata/managedFields/0/fieldsV1/f:data/f:gone'}]"
        spec["mutations"] = [{"patchType": "JSONPatch", "jsonPatch": {"expression": patch}}]
        self.send("POST", POLICIES, {"metadata": {"name": "p"}, "spec": spec}, code=201)
        self.bind("p")
        made = self.config("x", data={"gone": "a", "there": "b"})
        self.assertEqual(made["metadata"]["managedFields"][0]["fieldsV1"], {"f:data": {".": {}, "f:there": {}}})

    def test_a_patch_that_leaves_no_object_is_refused(self):
        spec = policy_spec()
        spec["mutations"] = [{"patchType": "JSONPatch", "jsonPatch": {"expression": "[JSONPatch{op: 'replace', path: '', value: [1]}]"}}]
        self.send("POST", POLICIES, {"metadata": {"name": "p"}, "spec": spec}, code=201)
        self.config("x")
        self.bind("p")
        self.assertIn("cannot unmarshal array", self.config("y", code=500)["message"])
        self.send("PATCH", f"{CMS}/x", {"data": {"a": "b"}}, MERGE, code=500)

    def patch_policy(self, name, text, resources, operations="CREATE", **spec):
        """A policy with one JSON patch, and its binding."""
        made = policy_spec(resources=resources, operations=operations, **spec)
        made["mutations"] = [{"patchType": "JSONPatch", "jsonPatch": {"expression": text}}]
        self.send("POST", POLICIES, {"metadata": {"name": name}, "spec": made}, code=201)
        self.assertEqual(self.warnings, [])
        self.bind(name)

    def pod(self, name, **spec):
        return self.send("POST", PODS, {"metadata": {"name": name}, "spec": {
            "containers": [{"name": "c", "image": "i"}, {"name": "d", "image": "i"}], **spec}}, code=201)

    def deployment(self, name):
        labels = {"app": name}
        return self.send("POST", DEPLOYMENTS, {"metadata": {"name": name}, "spec": {
            "selector": {"matchLabels": labels}, "template": {
                "metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}}}}, code=201)

    def test_scales_are_mutated(self):
        version = self.deployment("x")["metadata"]["resourceVersion"]
        self.patch_policy("p", "[JSONPatch{op: 'replace', path: '/spec/replicas', value: object.spec.replicas + oldObject.spec.replicas}]",
                          "deployments/scale", "UPDATE", reinvocationPolicy="Never")
        for wanted, got in ((2, 3), (4, 7)):
            made = self.send("PATCH", f"{DEPLOYMENTS}/x/scale", {"spec": {"replicas": wanted}}, MERGE, code=200)
            self.assertEqual(made["spec"]["replicas"], got)
        stored = self.send("GET", f"{DEPLOYMENTS}/x", code=200)
        self.assertEqual((stored["spec"]["replicas"], stored["metadata"]["generation"]), (7, 3))
        # The version that the client has seen still counts.
        scale = self.send("GET", f"{DEPLOYMENTS}/x/scale", code=200)
        scale["metadata"]["resourceVersion"] = version
        self.send("PUT", f"{DEPLOYMENTS}/x/scale", scale, code=409)
        # The replicas that a policy sets have to be right, too.
        self.send("DELETE", f"{BINDINGS}/p", code=200)
        self.patch_policy("q", "[JSONPatch{op: 'replace', path: '/spec/replicas', value: -1}]", "*/scale", "UPDATE")
        self.assertIn("must be greater than or equal to 0", self.send(
            "PATCH", f"{DEPLOYMENTS}/x/scale", {"spec": {"replicas": 1}}, MERGE, code=422)["message"])

    def test_the_scale_of_a_custom_resource_is_mutated(self):
        self.send("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", {
            "metadata": {"name": "lamps.example.com"}, "spec": {
                "group": "example.com", "scope": "Namespaced", "names": {"plural": "lamps", "kind": "Lamp"}, "versions": [{
                    "name": "v1", "served": True, "storage": True, "subresources": {"scale": {
                        "specReplicasPath": ".spec.bulbs", "statusReplicasPath": ".status.bulbs"}},
                    "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}}]}}, code=201)
        path = "/apis/example.com/v1/namespaces/default/lamps"
        self.send("POST", path, {"apiVersion": "example.com/v1", "kind": "Lamp", "metadata": {"name": "x"}, "spec": {"bulbs": 1}}, code=201)
        self.patch_policy("p", "[JSONPatch{op: 'add', path: '/spec/replicas', value: object.?spec.?replicas.orValue(0) + 5}]",
                          "lamps/scale",
                          "UPDATE")
        for wanted in (2, 0):
            self.send("PATCH", f"{path}/x/scale", {"spec": {"replicas": wanted}}, MERGE, code=200)
            self.assertEqual(self.send("GET", f"{path}/x", code=200)["spec"]["bulbs"], wanted + 5)

    def test_bindings_and_evictions_are_mutated(self):
        self.pod("bound")
        self.patch_policy("p", "[JSONPatch{op: 'replace', path: '/target/name', value: 'other'}, "
                          "JSONPatch{op: 'add', path: '/metadata/annotations', value: {'by': 'policy'}}]", "pods/binding")
        self.send("POST", f"{PODS}/bound/binding", {"metadata": {"name": "bound"}, "target": {"name": "n"}}, code=201)
        stored = self.send("GET", f"{PODS}/bound", code=200)
        self.assertEqual((stored["spec"]["nodeName"], stored["metadata"]["annotations"]), ("other", {"by": "policy"}))
        self.patch_policy("q", "[JSONPatch{op: 'add', path: '/deleteOptions', value: Object.deleteOptions{dryRun: ['All']}}]",
                          "pods/eviction")
        self.send("POST", f"{PODS}/bound/eviction", {"metadata": {"name": "bound"}}, code=201)
        self.send("GET", f"{PODS}/bound", code=200)
        self.send("DELETE", f"{BINDINGS}/q", code=200)
        self.send("POST", f"{PODS}/bound/eviction", {"metadata": {"name": "bound"}}, code=201)
        # A scheduled pod gets its grace period.
        self.assertIn("deletionTimestamp", self.send("GET", f"{PODS}/bound", code=200)["metadata"])

    def test_what_was_mutated_is_checked(self):
        self.pod("x")
        self.patch_policy("p", "[JSONPatch{op: 'replace', path: '/metadata/name', value: 'y'}]", "pods/binding,pods/eviction")
        for part, body in (("binding", {"target": {"name": "n"}}), ("eviction", {})):
            answer = self.send("POST", f"{PODS}/x/{part}", {"metadata": {"name": "x"}, **body}, code=400)
            self.assertIn("name in URL does not match name in", answer["message"])
        self.patch_policy("q", "[JSONPatch{op: 'add', path: '/nothing', value: 1}]", "pods/eviction")
        self.send("DELETE", f"{BINDINGS}/p", code=200)
        self.assertIn("strict decoding error", self.send("POST", f"{PODS}/x/eviction", {"metadata": {"name": "x"}}, code=500)["message"])

    def test_an_apply_configuration_has_no_type_for_what_is_only_posted(self):
        self.pod("x")
        self.policy("p", "Object{metadata: Object.metadata{labels: {'a': 'b'}}}", resources="pods/eviction,pods/binding",
                    operations="CREATE")
        self.bind("p")
        self.assertIn("no corresponding type for policy/v1, Kind=Eviction", self.send(
            "POST", f"{PODS}/x/eviction", {"metadata": {"name": "x"}}, code=403)["message"])
        self.send("POST", f"{PODS}/x/binding", {"metadata": {"name": "x"}, "target": {"name": "n"}}, code=201)

    def test_tokens_are_mutated(self):
        self.send("POST", "/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "x"}}, code=201)
        self.patch_policy("p", "[JSONPatch{op: 'replace', path: '/spec/expirationSeconds', value: object.spec.expirationSeconds / 2}]",
                          "serviceaccounts/token")
        path = "/api/v1/namespaces/default/serviceaccounts/x/token"
        self.assertEqual(self.send("POST", path, {"spec": {}}, code=201)["spec"]["expirationSeconds"], 1800)
        answer = self.send("POST", path, {"spec": {"expirationSeconds": 700}}, code=422)
        self.assertIn("may not specify a duration less than 10 minutes", answer["message"])

    def test_the_container_of_a_connection_is_mutated(self):
        self.pod("x")
        for subresource in ("exec", "attach"):
            path = f"{PODS}/x/{subresource}?container=c"
            self.assertIn("does not have a host assigned", self.send("POST", path, code=400)["message"])
        self.patch_policy("p", "[JSONPatch{op: 'replace', path: '/container', value: 'none'}]", "pods/exec,pods/attach", "CONNECT")
        for subresource in ("exec", "attach"):
            path = f"{PODS}/x/{subresource}?container=c"
            self.assertIn("container none is not valid for pod x", self.send("POST", path, code=400)["message"])

    def test_a_dear_mutation_of_what_is_posted_runs_on_the_worker(self):
        self.pod("x")
        self.patch_policy("p", f"{LOOP} && {LOOP} ? [JSONPatch{{op: 'replace', path: '/target/name', value: 'other'}}] : []",
                          "pods/binding")
        self.send("POST", f"{PODS}/x/binding", {"metadata": {"name": "x"}, "target": {"name": "n"}}, code=201)
        self.assertEqual(self.send("GET", f"{PODS}/x", code=200)["spec"]["nodeName"], "other")

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
