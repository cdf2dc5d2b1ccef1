#!/usr/bin/python3
"""ValidatingAdmissionPolicies decide about writes: at once, on every I/O thread, and as far as the limits of the server go.
tests/kube/same_policies_test.py compares what they decide with a real kube-apiserver."""
import http.client
import json
import re
import time
import unittest

from kube import KubeServer, key_of, thing
from server import WAIT_SECONDS, LiveTest, only_vigil

GROUP = "/apis/admissionregistration.k8s.io/v1"
POLICIES, BINDINGS = f"{GROUP}/validatingadmissionpolicies", f"{GROUP}/validatingadmissionpolicybindings"
CMS = "/api/v1/namespaces/default/configmaps"
MERGE = "application/merge-patch+json"
PARAMS_MAX, BINDINGS_MAX, NESTING_MAX, NAMES_MAX = 100, 2000, 16, 10000
LOOP = "[0,1,2,3,4,5,6,7,8,9].all(a, [0,1,2,3,4,5,6,7,8,9].all(b, [0,1,2,3,4,5,6,7,8,9].all(c, a + b + c >= 0)))"


def policy_spec(*validations, resources="configmaps", operations="*", match=None, **spec):
    rule = {"apiGroups": ["*"], "apiVersions": ["*"], "resources": resources.split(","), "operations": operations.split(",")}
    return {"failurePolicy": "Fail", "matchConstraints": {
        "resourceRules": [rule], "matchPolicy": "Equivalent", "namespaceSelector": {}, "objectSelector": {}, **(match or {})},
        "validations": [{"expression": one} if isinstance(one, str) else one for one in validations], **spec}


def binding_spec(policy, actions="Deny", **spec):
    return {"policyName": policy, "validationActions": actions.split(","), **spec}


@only_vigil
class Policies(LiveTest):
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
        self.warnings = answer.headers.get_all("Warning", [])
        connection.close()
        if code:
            self.assertEqual(answer.status, code, made)
        return made

    def policy(self, name, *validations, code=201, **spec):
        return self.send("POST", POLICIES, {"metadata": {"name": name}, "spec": policy_spec(*validations, **spec)}, code=code)

    def bind(self, name, actions="Deny", code=201, **spec):
        return self.send("POST", BINDINGS, {"metadata": {"name": name}, "spec": binding_spec(name, actions, **spec)}, code=code)

    def config(self, name, code, **more):
        metadata = {"name": name, **more.pop("metadata", {})}
        return self.send("POST", CMS, {"metadata": metadata, **more}, code=code)["message" if code != 201 else "metadata"]

    def params(self, name=None, action="Deny", **more):
        return {"paramRef": {**({"name": name} if name else {}), "parameterNotFoundAction": action, **more}}

    def metric(self, name):
        connection = http.client.HTTPConnection("127.0.0.1", self.kube.port, timeout=WAIT_SECONDS)
        connection.request("GET", "/metrics")
        page = connection.getresponse().read().decode()
        connection.close()
        return float(re.search(rf"^{name} (\S+)$", page, re.M)[1])

    # -- What is posted, and connections --

    def test_connections_are_decided_about(self):
        pods = "/api/v1/namespaces/default/pods"
        self.send("POST", pods, {"metadata": {"name": "x"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}, code=201)
        show = {"expression": "false", "messageExpression":
                "request.operation + ' ' + request.kind.kind + ' ' + request.resource.resource + '/' + request.subResource"
                " + ' ' + request.name + (oldObject == null && request.options == null ? '' : ' old') + ' ' + "
                "object.?container.orValue('-') + ' ' + "
                "(has(object.command) ? object.command.join(',') : '-') + ' ' + object.?path.orValue('-') + ' ' + "
                "(has(object.ports) ? object.ports.map(p, string(p)).join(',') : '-') + ' ' + "
                "[object.?stdin, object.?stdout, object.?tty].map(o, o.orValue(false) ? 't' : 'f').join('')"}
        self.policy("p", show, resources="pods/exec,pods/attach,pods/portforward,pods/proxy,services/proxy,nodes/proxy",
                    operations="CONNECT")
        self.assertEqual(self.warnings, [])
        self.bind("p")
        for path, text in (
                (f"{pods}/x/exec?container=c&command=a&command=b%20c&stdin=true&stdout=0&tty=false",
                 "PodExecOptions pods/exec x c a,b c - - tff"),
                (f"{pods}/x/attach?stdout=&stdin=FALSE", "PodAttachOptions pods/attach x - - - - ftf"),
                (f"{pods}/x/portforward?ports=1,2&ports=65535", "PodPortForwardOptions pods/portforward x - - - 1,2,65535 fff"),
                (f"{pods}/none:80/proxy", "PodProxyOptions pods/proxy none:80 - - - - fff"),
                (f"{pods}/none/proxy/", "PodProxyOptions pods/proxy none - - / - fff"),
                (f"{pods}/none/proxy/a/b%20c/?x=y", "PodProxyOptions pods/proxy none - - /a/b c/ - fff"),
                ("/api/v1/nodes/n/proxy/pods", "NodeProxyOptions nodes/proxy n - - /pods - fff"),
                ("/api/v1/namespaces/default/services/s/proxy/proxy/x", "ServiceProxyOptions services/proxy s - - /proxy/x - fff")):
            message = self.send("POST", path, code=422)["message"]
            self.assertEqual(message.split("denied request: ")[-1], f"CONNECT {text}")
        message = self.send("POST", f"{pods}/x/portforward?ports=1,x", code=400)["message"]
        self.assertEqual(message, 'cannot convert to []int32: strconv.ParseUint: parsing "x": invalid syntax')
        self.send("DELETE", f"{BINDINGS}/p", code=200)
        self.assertIn("does not have a host assigned", self.send("POST", f"{pods}/x/exec?command=a", code=400)["message"])

    def test_a_selector_of_objects_selects_no_connection(self):
        pods = "/api/v1/namespaces/default/pods"
        self.policy("p", "false", resources="pods/exec", operations="CONNECT", match={"objectSelector": {"matchExpressions": [
            {"key": "a", "operator": "DoesNotExist"}]}})
        self.bind("p")
        self.send("POST", f"{pods}/x/exec", code=404)

    def test_tokens_are_decided_about(self):
        path = "/api/v1/namespaces/default/serviceaccounts/x/token"
        account = self.send("POST", path.rsplit("/", 2)[0], {"metadata": {"name": "x"}}, code=201)
        self.policy("p", "object.spec.expirationSeconds < 1000 && object.metadata.name == 'x' && object.metadata.namespace == 'default' && "
                    f"object.metadata.uid == '{account['metadata']['uid']}' && request.kind.kind == 'TokenRequest' && "
                    "request.kind.group == 'authentication.k8s.io' && request.name == 'x' && request.subResource == 'token' && "
                    "object.spec.boundObjectRef == null && object.status.token == '' && size(object.spec.audiences) > 0",
                    resources="serviceaccounts/token", operations="CREATE")
        self.bind("p")
        self.assertIn("denied request", self.send("POST", path, {"spec": {}}, code=422)["message"])
        made = self.send("POST", path, {"spec": {"expirationSeconds": 900}}, code=201)
        self.assertEqual(len(made["status"]["token"].split(".")), 3)
        self.send("POST", path.replace("/x/", "/none/"), {"spec": {}}, code=404)

    # -- What the server does itself --

    def test_the_garbage_collector_is_a_user(self):
        """It has the account of Kubernetes' controller, and tries again what a policy denies."""
        self.policy("p", "request.userInfo.username != 'system:serviceaccount:kube-system:generic-garbage-collector' || "
                    "!('system:serviceaccounts:kube-system' in request.userInfo.groups) || has(oldObject.metadata.labels)",
                    operations="DELETE")
        self.bind("p")
        owner = self.send("POST", "/api/v1/namespaces/default/secrets", {"metadata": {"name": "owner"}}, code=201)
        owners = [{"apiVersion": "v1", "kind": "Secret", "name": "owner", "uid": owner["metadata"]["uid"]}]
        for name, labels in (("kept", {}), ("collected", {"a": "b"})):
            self.config(name, 201, metadata={"ownerReferences": owners, "labels": labels})
        self.send("DELETE", "/api/v1/namespaces/default/secrets/owner", code=200)
        end = time.monotonic() + WAIT_SECONDS
        while self.send("GET", f"{CMS}/collected")["kind"] != "Status":
            self.assertLess(time.monotonic(), end)
            time.sleep(0.05)
        self.send("GET", f"{CMS}/kept", code=200)

    def test_accounts_and_certificates_of_namespaces_are_written_by_their_controllers(self):
        self.serve("--kube-namespace-objects=true", "--kube-bootstrap=true")
        for name, resource, account in (("a", "serviceaccounts", "service-account-controller"), ("b", "configmaps",
                                                                                                 "root-ca-cert-publisher")):
            self.policy(name, f"request.userInfo.username == 'system:serviceaccount:kube-system:{account}' || request.namespace != 'n'",
                        resources=resource, operations="CREATE")
            self.bind(name)
        self.send("POST", "/api/v1/namespaces", {"metadata": {"name": "n"}}, code=201)
        self.send("POST", "/api/v1/namespaces/n/configmaps", {"metadata": {"name": "x"}}, code=422)
        end = time.monotonic() + WAIT_SECONDS
        for path in ("serviceaccounts/default", "configmaps/kube-root-ca.crt"):
            while self.send("GET", f"/api/v1/namespaces/n/{path}")["kind"] == "Status":
                self.assertLess(time.monotonic(), end)
                time.sleep(0.05)

    # -- When they apply --

    def test_a_policy_applies_to_the_next_write_on_every_thread(self):
        for turn in range(10):
            name = f"turn-{turn}"
            self.policy(name, "!object.metadata.name.startsWith('bad')")
            self.config(f"bad-{turn}", 201)  # without a binding a policy does nothing
            self.bind(name)
            for number in range(8):
                message = self.config(f"bad-{turn}-{number}", 422)
                self.assertEqual(message, f'configmaps "bad-{turn}-{number}" is forbidden: ValidatingAdmissionPolicy \'{name}\' with '
                                 f"binding '{name}' denied request: failed expression: !object.metadata.name.startsWith('bad')")
            self.send("DELETE", f"{BINDINGS}/{name}", code=200)
            for number in range(8):
                self.config(f"bad-{turn}-{number}", 201)

    def test_a_binding_may_be_there_before_its_policy(self):
        self.bind("late")
        self.config("a", 201)
        self.policy("late", "false")
        self.config("b", 422)
        self.send("PATCH", f"{POLICIES}/late", {"spec": {"validations": [{"expression": "true"}]}}, MERGE, code=200)
        self.config("b", 201)
        self.send("DELETE", f"{POLICIES}/late", code=200)

    def test_policies_outlive_a_restart_and_those_of_an_etcd_client_apply(self):
        for prefix, kind, spec in (("validatingadmissionpolicies", "ValidatingAdmissionPolicy", policy_spec("false")),
                                   ("validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding", binding_spec("p"))):
            self.put(prefix, kind, "p", spec)
        self.assertIn("denied request", self.eventually_denied("a"))
        self.kube.close()
        self.kube.stop()
        self.kube.start()
        self.config("b", 422)

    def put(self, prefix, kind, name, spec):
        self.kube.put_raw(key_of(prefix, name, None), json.dumps(
            thing(name, None, kind, "admissionregistration.k8s.io/v1", spec=spec)))

    def eventually_denied(self, name):
        """What is written through the etcd API applies a moment later."""
        for number in range(200):
            answer = self.send("POST", CMS + "?dryRun=All", {"metadata": {"name": f"{name}-{number}"}})
            if answer["kind"] == "Status":
                return answer["message"]
        raise AssertionError("the policy does not apply")

    # -- What they decide --

    def test_actions(self):
        self.policy("p", {"expression": "has(object.data)", "message": "no data"})
        self.bind("p", "Warn")
        self.config("a", 201)
        self.assertEqual(self.warnings, ["299 - \"Validation failed for ValidatingAdmissionPolicy 'p' with binding 'p': no data\""])
        self.send("DELETE", f"{BINDINGS}/p", code=200)
        self.bind("p", "Audit")
        self.assertIn("no audit log", str(self.warnings))
        self.config("b", 201)
        self.assertEqual(self.warnings, [])
        self.assertEqual(self.metric("vigil_kube_policy_audited_failures_total"), 1)

    def test_failure_policy(self):
        self.policy("fail", "object.none.such == 1")
        self.bind("fail")
        self.assertIn("expression 'object.none.such == 1' resulted in error: no such key: none", self.config("a", 422))
        self.send("PATCH", f"{POLICIES}/fail", {"spec": {"failurePolicy": "Ignore"}}, MERGE, code=200)
        self.config("a", 201)

    def test_updates_and_deletes(self):
        self.policy("p", "request.operation == 'CREATE' || oldObject.data.lock != 'yes'")
        self.bind("p")
        self.config("a", 201, data={"lock": "yes"})
        self.send("PATCH", f"{CMS}/a", {"data": {"lock": "no"}}, MERGE, code=422)
        self.send("DELETE", f"{CMS}/a", code=422)
        self.send("DELETE", CMS, code=422)
        self.send("GET", f"{CMS}/a", code=200)
        self.send("DELETE", f"{BINDINGS}/p", code=200)
        self.send("DELETE", f"{CMS}/a", code=200)

    def test_what_a_policy_concerns(self):
        self.policy("p", "false", match={"namespaceSelector": {"matchLabels": {"team": "a"}},
                                         "objectSelector": {"matchExpressions": [{"key": "free", "operator": "DoesNotExist"}]}},
                    matchConditions=[{"name": "named", "expression": "object.metadata.name != 'other'"}])
        self.bind("p")
        self.config("a", 201)
        self.send("PATCH", "/api/v1/namespaces/default", {"metadata": {"labels": {"team": "a"}}}, MERGE, code=200)
        self.config("b", 422)
        self.config("other", 201)
        self.config("c", 201, metadata={"labels": {"free": "yes"}})
        self.send("PATCH", "/api/v1/namespaces/default", {"metadata": {"labels": {"team": "b"}}}, MERGE, code=200)
        self.config("b", 201)

    def test_variables_are_evaluated_when_they_are_used(self):
        self.policy("p", {"expression": "variables.size < 3", "messageExpression": "string(variables.size) + ' is too many'"},
                    variables=[{"name": "data", "expression": "object.data"},
                               {"name": "size", "expression": "variables.data.size()"},
                               {"name": "unused", "expression": "object.none.such"}])
        self.bind("p")
        self.config("a", 201, data={"a": "b"})
        self.assertIn("denied request: 3 is too many", self.config("b", 422, data={"a": "", "b": "", "c": ""}))
        self.assertIn('composited variable "size" fails to evaluate: composited variable "data" fails to evaluate: no such key: data',
                      self.config("c", 422))

    def test_parameters(self):
        self.policy("p", "int(params.metadata.resourceVersion) > 1", {
            "expression": "object.metadata.name == params.data.name", "messageExpression": "'not ' + params.data.name"},
            match={"objectSelector": {"matchLabels": {"checked": "yes"}}}, paramKind={"apiVersion": "v1", "kind": "ConfigMap"})
        self.bind("p", **self.params("limits"))
        checked = {"metadata": {"labels": {"checked": "yes"}}}
        self.assertIn("failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction",
                      self.config("a", 422, **checked))
        self.config("limits", 201, data={"name": "a"})
        self.config("a", 201, **checked)
        self.assertIn("denied request: not a", self.config("b", 422, **checked))
        self.send("PATCH", f"{CMS}/limits", {"data": {"name": "b"}}, MERGE, code=200)
        self.config("b", 201, **checked)
        self.send("DELETE", f"{BINDINGS}/p", code=200)
        self.bind("p", **self.params(action="Allow", selector={"matchLabels": {"limits": "yes"}}))
        self.config("c", 201, **checked)
        self.config("set", 201, metadata={"labels": {"limits": "yes"}}, data={"name": "d"})
        self.config("e", 422, **checked)
        self.config("d", 201, **checked)

    def test_dear_expressions_run_on_the_worker(self):
        self.policy("p", *[f"{LOOP} && {LOOP} && {LOOP}"] * 5, "object.metadata.name == 'a'")
        self.bind("p")
        self.config("a", 201)
        self.config("b", 422)

    # -- Limits --

    def test_more_parameters_than_are_considered_refuse_the_write(self):
        self.policy("p", "true", failurePolicy="Ignore", paramKind={"apiVersion": "v1", "kind": "Secret"})
        self.bind("p", **self.params(action="Allow", selector={}))
        secrets = {f"s-{number:03}": {"kind": "Secret"} for number in range(PARAMS_MAX)}
        self.kube.put_many("secrets", secrets)
        self.config("a", 201)
        self.kube.put_many("secrets", {"more": {"kind": "Secret"}})
        self.assertIn("this server considers at most 100 parameters", self.config("b", 422))

    def test_variables_that_use_each_other_too_deeply_are_refused(self):
        chain = [{"name": "v0", "expression": "1"}]
        chain += [{"name": f"v{n}", "expression": f"variables.v{n - 1} + 1"} for n in range(1, NESTING_MAX + 2)]
        self.policy("deepest", f"variables.v{NESTING_MAX - 1} == {NESTING_MAX}", variables=chain[:NESTING_MAX])
        self.bind("deepest")
        self.config("a", 201)
        refused = self.policy("deeper", "true", variables=chain, code=422)
        self.assertIn("this server can use policies that take at most 8 MiB", refused["message"])

    def test_a_policy_that_is_too_large_is_refused(self):
        self.policy("large", *[f"{LOOP} || {' || '.join([LOOP] * 20)}"] * 30, code=422)

    def test_a_stored_policy_that_cannot_be_used_denies(self):
        chain = [{"name": "v0", "expression": "1"}]
        chain += [{"name": f"v{n}", "expression": f"variables.v{n - 1} + 1"} for n in range(1, NESTING_MAX + 3)]
        self.put("validatingadmissionpolicies", "ValidatingAdmissionPolicy", "p",
                 policy_spec("true", failurePolicy="Ignore", variables=chain))
        self.put("validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding", "p", binding_spec("p"))
        self.assertIn("its variables use each other too deeply", self.eventually_denied("a"))

    def test_a_binding_of_too_many_names_is_refused_or_denies(self):
        def match(count):
            return {"matchResources": {"resourceRules": [{
                "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"], "operations": ["*"],
                "resourceNames": [f"name-{n}" for n in range(count)]}]}}
        self.policy("p", "true", failurePolicy="Ignore")
        self.bind("p", **match(NAMES_MAX))
        self.config("a", 201)
        refused = self.send("POST", BINDINGS, {"metadata": {"name": "more"}, "spec": binding_spec("p", **match(NAMES_MAX + 1))}, code=422)
        self.assertIn("this server can use bindings whose rules have at most 10000", refused["message"])
        self.put("validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding", "more", binding_spec("p", **match(NAMES_MAX + 1)))
        self.assertIn("with binding 'more' denied request: failed to configure binding: one of its rules has more than 10000",
                      self.eventually_denied("b"))
        self.send("PATCH", f"{BINDINGS}/more", {"metadata": {"labels": {"a": "b"}}}, MERGE, 200)
        self.assertIn("this ValidatingAdmissionPolicyBinding denies what it concerns, because this server can use", str(self.warnings))
        self.send("DELETE", f"{BINDINGS}/more", code=200)
        self.config("c", 201)

    def test_more_bindings_than_can_be_used_are_refused(self):
        self.kube.namespace = None
        for first in range(0, BINDINGS_MAX, 100):
            self.kube.put_many("validatingadmissionpolicybindings", {
                f"b-{number}": {"kind": "ValidatingAdmissionPolicyBinding", "api": "admissionregistration.k8s.io/v1",
                                "spec": binding_spec("none")} for number in range(first, first + 100)})
        self.config("a", 201)
        self.assertIn("at most 2000 bindings", self.bind("p", code=403)["message"])
        self.send("DELETE", f"{BINDINGS}/b-0", code=200)
        self.bind("p")
        self.policy("p", "false")
        self.config("b", 422)

    def test_policies_that_are_not_held_decide_the_same(self):
        self.serve("--max-client-bytes", str(64 << 20))
        large = policy_spec(*[" || ".join(["object.metadata.name == 'b'"] + [LOOP] * 20)] * 2, "object.metadata.name != 'b'")
        for number in range(8):
            self.put("validatingadmissionpolicies", "ValidatingAdmissionPolicy", f"p-{number}", large)
            self.put("validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding", f"p-{number}", binding_spec(f"p-{number}"))
        self.config("a", 201)
        self.config("b", 422)
        self.assertEqual(self.metric("vigil_kube_lookup_namespaces_not_held"), 1)
        self.assertIn("at most 1000 policies", self.policy("more", "true", code=403)["message"])

    def test_a_disabled_plugin_decides_nothing(self):
        self.serve("--kube-disable-admission-plugins=ValidatingAdmissionPolicy")
        self.policy("p", "false")
        self.assertIn("ValidatingAdmissionPolicy is disabled", str(self.warnings))
        self.bind("p")
        self.config("a", 201)


if __name__ == "__main__":
    unittest.main()
