#!/usr/bin/python3
"""Admission policies as an attack: expressions, objects and parameters that are as large as the server lets them be, changed
while they are used. The server stays, its other clients are served, and nothing is leaked."""
import http.client
import json
import random
import socket
import threading
import time
import unittest

from kube import KubeServer, key_of, thing
from server import WAIT_SECONDS, LiveTest, only_vigil

GROUP = "/apis/admissionregistration.k8s.io/v1"
VALIDATING, MUTATING = f"{GROUP}/validatingadmissionpolicies", f"{GROUP}/mutatingadmissionpolicies"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
DEFAULT = "/api/v1/namespaces/default"
CMS, SECRETS, ACCOUNTS = f"{DEFAULT}/configmaps", f"{DEFAULT}/secrets", f"{DEFAULT}/serviceaccounts"
THINGS = "/apis/x.y/v1/namespaces/default/things"
MERGE, APPLY = "application/merge-patch+json", "application/apply-patch+yaml"
OTHER = "127.0.0.2"  # the address of another client, which takes turns with the first one on the worker
STALL_SECONDS = 30  # with any sanitizer on a busy machine, where each attack takes up to ten seconds
CONFIG_MAP = {"apiVersion": "v1", "kind": "ConfigMap"}
PARAMS = 1000
ITEMS = 100_000
CHURN_SECONDS = 8


def spec_of(resources="configmaps", **more):
    return {"failurePolicy": "Fail", "matchConstraints": {"resourceRules": [
        {"apiGroups": ["*"], "apiVersions": ["*"], "resources": resources.split(","), "operations": ["CREATE", "UPDATE"]}]}, **more}


def validating(*expressions, **more):
    return spec_of(validations=[{"expression": one} for one in expressions], **more)


def configures(expression):
    return {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}


def patches(expression):
    return {"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}


def mutating(*mutations, again="Never", **more):
    return spec_of(mutations=list(mutations), reinvocationPolicy=again, **more)


@only_vigil
class HostilePolicies(LiveTest):
    def setUp(self):
        super().setUp()
        self.kube = KubeServer(self.scratch / "data", ["--io-threads", "2"])
        self.addCleanup(self.kube.kill)
        self.addCleanup(self.kube.close)
        self.kube.start()
        self.send("POST", ACCOUNTS, {"metadata": {"name": "probe"}}, code=201)
        self.longest = 0

    def end(self):
        """A clean stop, in which sanitizers report what is left."""
        self.kube.stop()

    def send(self, method, path, body=None, content_type="application/json", code=None, source=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.kube.kube_port, timeout=2 * WAIT_SECONDS,
                                                source_address=source and (source, 0))
        connection.request(method, path, json.dumps(body) if body is not None else None, {"Content-Type": content_type})
        answer = connection.getresponse()
        made = json.loads(answer.read())
        connection.close()
        if code:
            self.assertEqual(answer.status, code, made)
        return made if code else (answer.status, made)

    def policy(self, kind, name, spec, code=201, **binding):
        self.send("POST", kind, {"metadata": {"name": name}, "spec": spec}, code=code)
        if kind == VALIDATING:
            binding.setdefault("validationActions", ["Deny"])
        self.send("POST", kind.replace("policies", "policybindings"),
                  {"metadata": {"name": name}, "spec": {"policyName": name, **binding}}, code=201)

    def drop(self, kind, name):
        self.send("DELETE", f"{kind.replace('policies', 'policybindings')}/{name}", code=200)
        self.send("DELETE", f"{kind}/{name}", code=200)

    def define_things(self):
        versions = [{"name": name, "served": True, "storage": name == "v1", "subresources": {"status": {}}, "schema": {
            "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}} for name in ("v1", "v2")]
        self.send("POST", CRDS, {"metadata": {"name": "things.x.y"}, "spec": {
            "group": "x.y", "names": {"plural": "things", "kind": "Thing"}, "scope": "Namespaced", "versions": versions}}, code=201)

    def while_others_are_served(self, work):
        """Runs work while another client reads small objects and writes large ones; returns what work returns."""
        over = threading.Event()
        large = {"metadata": {"name": "probe", "annotations": {str(n): "x" * 100 for n in range(1000)}}}

        def others():
            while not over.is_set():
                for request in (("GET", f"{ACCOUNTS}/probe"), ("PUT", f"{ACCOUNTS}/probe", large)):
                    begin = time.monotonic()
                    try:
                        self.send(*request, code=200, source=OTHER)
                    finally:
                        self.longest = max(self.longest, time.monotonic() - begin)

        thread = threading.Thread(target=others)
        thread.start()
        try:
            result = work()
        finally:
            over.set()
            thread.join()
        self.assertLess(self.longest, STALL_SECONDS)
        return result

    def test_a_thousand_parameters_are_read_for_one_write(self):
        self.kube.put_many("configmaps", {f"c-{n}": {"kind": "ConfigMap", "data": {"a": "b" * 8000}} for n in range(PARAMS)})
        self.policy(VALIDATING, "p", validating("params.data.a.startsWith('b')", resources="secrets", paramKind=CONFIG_MAP),
                    paramRef={"name": "c-0", "namespace": "default", "parameterNotFoundAction": "Deny"})
        for n in range(1, PARAMS):
            self.kube.put_raw(key_of("validatingadmissionpolicybindings", f"p-{n}", None), json.dumps(thing(
                f"p-{n}", None, "ValidatingAdmissionPolicyBinding", "admissionregistration.k8s.io/v1", spec={
                    "policyName": "p", "validationActions": ["Deny"],
                    "paramRef": {"name": f"c-{n}", "namespace": "default", "parameterNotFoundAction": "Deny"}})))
        self.send("PATCH", f"{CMS}/c-{PARAMS - 1}", {"data": {"a": "x"}}, MERGE, code=200)
        message = self.while_others_are_served(lambda: self.send("POST", SECRETS, {"metadata": {"name": "x"}}, code=422))["message"]
        self.assertIn(f"binding 'p-{PARAMS - 1}' denied request", message)
        self.send("PATCH", f"{CMS}/c-{PARAMS - 1}", {"data": {"a": "b"}}, MERGE, code=200)
        self.while_others_are_served(lambda: self.send("POST", SECRETS, {"metadata": {"name": "x"}}, code=201))
        self.end()

    def test_each_item_of_a_long_list_is_found(self):
        """Counting items would take the worker a minute and a half."""
        self.define_things()
        self.policy(VALIDATING, "p", validating("lists.range(object.l.size()).all(i, object.l[i] == i)", resources="things"))
        body = {"apiVersion": "x.y/v1", "kind": "Thing", "metadata": {"name": "x"}, "l": list(range(ITEMS))}
        self.while_others_are_served(lambda: self.send("POST", THINGS, body, code=201))
        body = {**body, "metadata": {"name": "y"}, "l": [*range(ITEMS - 1), 0]}
        self.assertIn("failed expression", self.send("POST", THINGS, body, code=422)["message"])
        self.end()

    def test_objects_are_no_larger_than_what_can_be_written(self):
        nested = "[1]" + ".map(a, [a, a])" * 60
        double = "Object{data: {'a': object.?data.?a.orValue('x') + object.?data.?a.orValue('x')}}"
        for number, (mutations, code) in enumerate([
                ([configures(f"Object{{data: {{'a': {nested}}}}}")], 403),
                ([patches(f"[JSONPatch{{op: 'add', path: '/data', value: {nested}}}]")], 403),
                ([patches("[JSONPatch{op: 'add', path: '/data', value: {'a': 'x'}}] + lists.range(9000).map(i, JSONPatch{"
                          "op: 'copy', from: '/data', path: '/data/b'})")], None),
                ([configures(double)] * 30, None),
                ([patches("lists.range(1000000).map(i, JSONPatch{op: 'remove', path: '/x'})")], 403),
                ([patches("[object, object].map(a, JSONPatch{op: 'test', path: '', value: a})")] * 60, 201)]):
            self.policy(MUTATING, "p", mutating(*mutations))
            got, made = self.while_others_are_served(lambda name=f"m-{number}": self.send("POST", CMS, {
                "metadata": {"name": name}, "data": {"k": "v" * 10_000}}))
            self.assertIn(got, [code] if code else [403, 413, 422, 429, 500], made)
            self.drop(MUTATING, "p")
        self.end()

    def test_patches_that_ruin_an_object_are_refused(self):
        self.define_things()
        changes = [("", value) for value in ("[1]", "{'a': 'b'}", "dyn(null)")] + [
            ("/metadata", value) for value in ("[1]", "'x'", "dyn(null)", "{'name': [1]}", "{'a': 'b'}")] + [
            (f"/metadata/{name}", value) for value in ("dyn(1)", "dyn([null])", "dyn({'a': 1})", "'x'", "dyn(null)")
            for name in ("name", "namespace", "labels", "finalizers", "ownerReferences", "managedFields", "uid", "resourceVersion",
                         "generation", "creationTimestamp", "deletionTimestamp", "generateName")] + [
            ("/kind", "dyn(5)"), ("/apiVersion", "'v9'"), ("/data", "dyn([1])"), ("/status", "dyn([1])"), ("/spec", "dyn(null)"),
            ("/metadata/finalizers/99999999999999999999", "'a/b'"), ("/metadata/labels/" + "a~1" * 1500, "'x'")]
        for number, (path, value) in enumerate(changes):
            self.send("POST", THINGS, {"apiVersion": "x.y/v1", "kind": "Thing", "metadata": {"name": f"old-{number}"}}, code=201)
            self.send("POST", CMS, {"metadata": {"name": f"old-{number}"}}, code=201)
            expression = f"[JSONPatch{{op: 'replace', path: '{path}', value: {value}}}]"
            self.policy(MUTATING, "p", mutating(patches(expression), resources="configmaps,things,things/status"))
            for collection, kind in ((CMS, {}), (THINGS, {"apiVersion": "x.y/v1", "kind": "Thing"})):
                for method, name, content_type in (
                        ("POST", "", "application/json"), ("PATCH", f"/old-{number}", MERGE),
                        ("PATCH", f"/new-{number}?fieldManager=m", APPLY), ("PATCH", f"/old-{number}/status", MERGE)):
                    body = {**kind, "metadata": {"name": f"new-{number}" if "new" in name else f"old-{number}" if name else "x",
                                                 "labels": {"a": "b"}}}
                    if collection == CMS and content_type == APPLY:
                        body.update(CONFIG_MAP)
                    code, made = self.send(method, f"{collection}{name}", body, content_type)
                    self.assertIn("kind", made)
                    if code < 300:  # what was taken can be read
                        self.send("GET", f"{collection}/{made['metadata']['name']}", code=200)
            self.drop(MUTATING, "p")
        self.end()

    def test_policies_change_while_they_are_used(self):
        over, codes = time.monotonic() + CHURN_SECONDS, {}
        authorized = "authorizer.group('').resource('pods').namespace('n{}').check('get').allowed()"

        def forever(step):
            def run():
                while time.monotonic() < over:
                    request = step(random.Random())
                    if request:
                        code, made = self.send(*request)
                        codes[code] = made
            return threading.Thread(target=run)

        def change_params(rand):
            name = f"c-{rand.randrange(3)}"
            body = {"metadata": {"name": name, "labels": {"l": "m"}}, "data": {"k": "v" * rand.randrange(2000)}}
            return rand.choice([("POST", CMS, body), ("DELETE", f"{CMS}/{name}")])

        def change_policies(rand):
            name, kind = f"p-{rand.randrange(4)}", rand.choice([VALIDATING, MUTATING])
            spec = validating(f"object.metadata.name != params.data.k && {authorized.format(rand.randrange(5))}",
                              resources="secrets", paramKind=CONFIG_MAP)
            if kind == MUTATING:
                spec = mutating(configures("Object{metadata: Object.metadata{annotations: params.data}}"),
                                patches("[JSONPatch{op: 'add', path: '/data', value: {'x': 'eA=='}}]"), resources="secrets",
                                again=rand.choice(["Never", "IfNeeded"]), paramKind=CONFIG_MAP)
            return rand.choice([("POST", kind, {"metadata": {"name": name}, "spec": spec}), ("DELETE", f"{kind}/{name}"),
                                ("PATCH", f"{kind}/{name}", {"spec": {"failurePolicy": rand.choice(["Fail", "Ignore"])}}, MERGE)])

        def change_bindings(rand):
            name, kind = f"p-{rand.randrange(4)}", rand.choice([VALIDATING, MUTATING])
            path = kind.replace("policies", "policybindings")
            ref = rand.choice([{"name": f"c-{rand.randrange(3)}"}, {"selector": {"matchLabels": {"l": "m"}}}])
            spec = {"policyName": name, "paramRef": {**ref, "parameterNotFoundAction": rand.choice(["Allow", "Deny"])}}
            if kind == VALIDATING:
                spec["validationActions"] = rand.choice([["Deny"], ["Warn", "Audit"]])
            return rand.choice([("POST", path, {"metadata": {"name": name}, "spec": spec}), ("DELETE", f"{path}/{name}")])

        def write(rand):
            name = f"s-{rand.randrange(4)}"
            labels = {"metadata": {"labels": {"l": str(rand.random())}}}
            return rand.choice([
                ("POST", SECRETS, {"metadata": {"name": name}}), ("DELETE", f"{SECRETS}/{name}"),
                ("POST", SECRETS, {"metadata": {"generateName": "g-"}, "stringData": {"z": "y" * rand.randrange(30_000)}}),
                ("PATCH", f"{SECRETS}/{name}", labels, MERGE),
                ("PATCH", f"{SECRETS}/{name}?fieldManager=m&force=true", {
                    "apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, **labels["metadata"]}}, APPLY),
                ("DELETE", SECRETS) if rand.random() < 0.1 else ("GET", f"{SECRETS}/{name}")])

        def disconnect(rand):
            body = json.dumps({"metadata": {"generateName": "cut-"}})
            with socket.create_connection(("127.0.0.1", self.kube.kube_port)) as connection:
                connection.sendall(f"POST {SECRETS} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                                   f"Content-Length: {len(body)}\r\n\r\n{body}".encode())
                time.sleep(rand.random() * 0.004)

        threads = [forever(step) for step in (change_params, change_policies, change_policies, change_bindings, change_bindings,
                                              write, write, write, disconnect, disconnect)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertLessEqual(codes.keys(), {200, 201, 403, 404, 409, 422}, {code: made.get("message") for code, made in codes.items()})
        self.assertLessEqual({200, 201, 403}, codes.keys())
        self.end()


if __name__ == "__main__":
    unittest.main()
