"""The cases of same_webhooks_test.py: webhooks with what they answer, and the requests that concern them. All webhooks exist at the
same time: each case selects its objects by the label case=NAME, or has a namespace of its own."""
import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/live"))
from webhooks import (add, allow, answer, busy, cut, cut_body, deny, document, encoded, in_turn, label, once, patch,  # noqa: E402
                      patch_text, raw, status, text, typed, when, without)

GROUP = "/apis/admissionregistration.k8s.io/v1"
PLURALS = {"mutating": "mutatingwebhookconfigurations", "validating": "validatingwebhookconfigurations"}
NAMESPACES, CLASSES = "/api/v1/namespaces", "/apis/scheduling.k8s.io/v1/priorityclasses"
CMS, PODS = "/api/v1/namespaces/default/configmaps", "/api/v1/namespaces/default/pods"
SERVICES = "/api/v1/namespaces/default/services"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
SCALERS = "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers"
BULBS, LAMPS = "/apis/example.com/v1/namespaces/default/bulbs", "/apis/example.com/v1beta1/namespaces/default/lamps"
MERGE, STRATEGIC = "application/merge-patch+json", "application/strategic-merge-patch+json"
JSON_PATCH, APPLY = "application/json-patch+json", "application/apply-patch+yaml"
CRDS = [
    {"metadata": {"name": "lamps.example.com"}, "spec": {
        "group": "example.com", "scope": "Namespaced", "names": {"plural": "lamps", "kind": "Lamp"},
        "versions": [{"name": name, "served": True, "storage": name == "v1", "schema": {"openAPIV3Schema": {
            "type": "object", "x-kubernetes-preserve-unknown-fields": True}}} for name in ("v1", "v1beta1")]}},
    {"metadata": {"name": "bulbs.example.com"}, "spec": {
        "group": "example.com", "scope": "Namespaced", "names": {"plural": "bulbs", "kind": "Bulb"},
        "versions": [{"name": "v1", "served": True, "storage": True, "subresources": {
            "status": {}, "scale": {"specReplicasPath": ".spec.watts", "statusReplicasPath": ".status.watts"}},
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                "spec": {"type": "object", "properties": {
                    "watts": {"type": "integer", "maximum": 100}, "color": {"type": "string", "default": "white"},
                    "tags": {"type": "array", "items": {"type": "string"}},
                    "part": {"type": "object", "properties": {"size": {"type": "integer", "default": 1}}}}},
                "status": {"type": "object", "properties": {"on": {"type": "boolean"}, "watts": {"type": "integer"}}}}}}}]}}]


class Case:
    def __init__(self, name, hooks, requests, own=False, before=()):
        """`before` are the first requests of all, such as those that create policies."""
        self.name, self.hooks, self.requests, self.own, self.before = name, hooks, requests, own, before

    @property
    def namespace(self):
        """Of the requests."""
        return f"w-{self.name}" if self.own else "default"

    def made(self, server):
        """Returns the configurations as (plural, object), and tells the server what to answer."""
        rows = {}
        for hook in self.hooks:
            path = f"/{self.name}/{hook['path']}"
            server.on(path, hook["behaviour"])
            shape = {"name": f"{hook['name']}.{self.name}.test", "sideEffects": "None", "admissionReviewVersions": ["v1"],
                     "rules": hook["rules"], "clientConfig": server.client_config(path), **hook["more"]}
            if callable(shape["clientConfig"]):
                shape["clientConfig"] = shape["clientConfig"](server)
            if self.own and "namespaceSelector" not in shape:
                shape["namespaceSelector"] = {"matchLabels": {"kubernetes.io/metadata.name": self.namespace}}
            if not self.own and "objectSelector" not in shape:
                shape["objectSelector"] = {"matchLabels": {"case": self.name}}
            key = PLURALS[hook["kind"]], hook["configuration"] or f"{self.name}-{hook['name']}"
            rows.setdefault(key, []).append(shape)
        return [(plural, {"metadata": {"name": name}, "webhooks": webhooks}) for (plural, name), webhooks in rows.items()]


def rule(resources="configmaps", operations="*", group="", version="v1", **more):
    return {"apiGroups": group.split(","), "apiVersions": [version], "resources": resources.split(","),
            "operations": operations.split(","), **more}


def hook(name, behaviour=allow, kind="validating", rules=None, configuration=None, path=None, **more):
    """A webhook, in a configuration of its own unless it is named."""
    return {"name": name, "behaviour": behaviour, "kind": kind, "rules": rules or [rule()], "configuration": configuration,
            "path": path or f"{kind[0]}/{name}", "more": more}


def validating(name, behaviour=allow, **more):
    return hook(name, behaviour, "validating", **more)


def mutating(name, behaviour=allow, **more):
    return hook(name, behaviour, "mutating", **more)


def config(case, name=None, **more):
    return {"metadata": {"name": name or case, "labels": {"case": case}}, **more}


def create(case, name=None, path=CMS, **more):
    return ("POST", path, {**typed_as(path), **config(case, name, **more)})


def typed_as(path):
    """The types of custom resources, which have to be in what is sent."""
    group, plural = path.split("/")[2], path.split("/")[-1]
    return {"kind": plural[:-1].capitalize(), "apiVersion": "/".join(path.split("/")[2:4])} if group == "example.com" else {}


def one(case, behaviour, kind="validating", requests=None, **more):
    """One webhook and, by default, the creation of a ConfigMap."""
    return Case(case, [hook("w", behaviour, kind, **more)], requests or [create(case, data={"a": "b"})])


def pod(case, name=None, path=PODS, **spec):
    return create(case, name, path, spec={"containers": [{"name": "c", "image": "i"}], **spec})


def deployment(case, name=None, path=DEPLOYMENTS, **spec):
    return create(case, name, path, spec={
        "replicas": 1, "selector": {"matchLabels": {"a": "b"}}, "template": {
            "metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}, **spec})


def of(**more):
    return {"rules": [rule(operations="CREATE,UPDATE", **more)]}


OF_PODS, OF_APPS, OF_BULBS = of(resources="pods"), of(resources="deployments", group="apps"), of(resources="bulbs", group="example.com")


def refusals():
    """What a webhook says when it refuses."""
    shapes = {
        "plain": deny(), "message": deny("because"), "code": deny("because", 409), "low": deny("because", 200), "zero": deny("because", 0),
        "high": deny("because", 999), "negative": deny("because", -1), "reason": deny(reason="Forbidden"),
        "reason-message": deny("because", 403, "Forbidden"), "teapot": deny("tea", 418, "Teapot"), "empty": deny("", 400, ""),
        "status": deny("because", status="Success"), "meta": deny("m", metadata={"resourceVersion": "5", "continue": "x"}),
        "details": deny("m", 422, "Invalid", details={
            "name": "n", "group": "g", "kind": "k", "uid": "u", "retryAfterSeconds": 7, "causes": [
                {"reason": "FieldValueInvalid", "message": "bad", "field": "spec.a"}, {"message": "other"}]}),
        "too-many": deny("m", 429, "TooManyRequests", details={"retryAfterSeconds": 3}), "lines": deny("one\ntwo\t\"three\" <&> é \u2028"),
        "long": deny("x" * 5000), "unknown": deny("m", other={"a": 1}), "kind": deny("m", kind="Status", apiVersion="v1"),
        "int-message": answer(allowed=False, status={"message": 5}), "null-status": answer(allowed=False, status=None),
        "text-status": answer(allowed=False, status="no"), "allowed-status": answer(allowed=True, status={"message": "m", "code": 500}),
        "warned": answer(allowed=False, warnings=["w"], status={"message": "m"}), "no-allowed": answer(), "text-allowed": answer(
            allowed="true"), "null-allowed": answer(allowed=None), "401": deny("m", 401, "Unauthorized"), "500": deny("m", 500),
        "timeout": deny("m", 504, "Timeout"), "redirects": deny("m", 302)}
    for name, behaviour in shapes.items():
        for kind in ("validating", "mutating"):
            yield one(f"deny-{name}-{kind[0]}", behaviour, kind)


def warnings():
    shapes = {"one": ["careful"], "two": ["one", "two"], "same": ["one", "one"], "empty": ["", " "], "quotes": ['a "b" \\c'],
              "lines": ["a\nb\rc\td\x00e\x7f"], "unicode": ["é \u4e16\u754c"], "long": ["x" * 300], "longer": ["x" * 4000, "y" * 300],
              "many": [f"warning {i} " + "z" * 60 for i in range(120)], "null": None, "text": "x", "numbers": [1],
              "edges": ["a" * 4096], "edge": ["a" * 4097], "exact": ["b" * 2048, "c" * 2048, "d"]}
    for name, texts in shapes.items():
        yield one(f"warn-{name}", answer(allowed=True, warnings=texts))
    yield Case("warn-several", [mutating("a", answer(allowed=True, warnings=["first", "both"])), validating("b", answer(
        allowed=True, warnings=["both", "last"]))], [create("warn-several")])


def answers():
    """Good and bad ones, under both failure policies."""
    good = {"uid": "x", "allowed": True}
    shapes = {
        "404": text("404 page not found\n", 404, "text/plain"), "400": text("bad", 400, "text/plain"), "500": text(
            "oops", 500, "text/plain"),
        "503": text("", 503, "text/plain"), "401": text("who", 401, "text/plain"), "403": text("no", 403, "text/plain"),
        "405": text("no", 405, "text/plain"), "406": text("no", 406), "409": text("no", 409), "413": text("no", 413),
        "415": text("no", 415),
        "418": text("tea", 418), "422": text("no", 422), "502": text("no", 502), "504": text("no", 504), "204": raw(
            b"HTTP/1.1 204 No Content\r\n\r\n"),
        "201": lambda call: call.reply(call.document({"uid": call.request["uid"], "allowed": True}), 201),
        "206": lambda call: call.reply(call.document({"uid": call.request["uid"], "allowed": True}), 206),
        "207": lambda call: call.reply(call.document({"uid": call.request["uid"], "allowed": True}), 207),
        "status": status(422, "m", "Invalid"), "status-403": status(403, "m", "Forbidden"), "status-none": status(500),
        "status-retry": status(409, "m", "Conflict", details={"retryAfterSeconds": 2}), "status-ok": status(200, "m", "Fine"),
        "status-success": text('{"kind":"Status","apiVersion":"v1","status":"Success"}'),
        "empty": text(""), "space": text("  "), "not-json": text("hello"), "half": text('{"kind":"AdmissionReview"'), "null": text("null"),
        "list": text("[]"), "number": text("5"), "nothing": text("{}"), "yaml": text("kind: AdmissionReview"), "bom": text(
            b"\xef\xbb\xbf{}"),
        "twice": lambda call: call.reply(json.dumps(call.document({"uid": call.request["uid"], "allowed": True})) * 2),
        "trailing": lambda call: call.reply(json.dumps(call.document({"uid": call.request["uid"], "allowed": True})) + " x"),
        "double": lambda call: call.reply(json.dumps(call.document({"uid": call.request["uid"], "allowed": False}))[:-2]
                                          + ',"allowed":true}}'),
        "cases": lambda call: call.reply({"Kind": "AdmissionReview", "APIVersion": "admission.k8s.io/v1", "Response": {
            "UID": call.request["uid"], "Allowed": True}}),
        "type-text": typed("text/plain"), "type-none": typed(None), "type-html": typed("text/html; charset=utf-8"),
        "type-protobuf": typed("application/vnd.kubernetes.protobuf"), "type-yaml": typed("application/yaml"), "type-charset": typed(
            "application/json; charset=utf-8"), "type-cbor": typed("application/cbor"), "type-empty": typed(""),
        "uid": document(response={**good, "uid": "other"}), "uid-none": document(response={"allowed": True}), "uid-number": document(
            response={"uid": 5, "allowed": True}), "version": document(apiVersion="admission.k8s.io/v1beta1"), "version-none": without(
            "apiVersion"), "version-other": document(apiVersion="admission.k8s.io/v2"), "version-group": document(apiVersion="v1"),
        "version-bad": document(apiVersion="a/b/c"), "version-number": document(apiVersion=5), "kind": document(kind="Other"),
        "kind-none": without("kind"), "kind-list": document(kind="AdmissionReviewList"), "kind-status": document(kind="Status"),
        "no-response": without("response"), "null-response": document(response=None), "text-response": document(response="x"),
        "list-response": document(response=[]), "no-types": without("kind", "apiVersion"), "pod": document(kind="Pod", apiVersion="v1"),
        "patch-only": answer(allowed=True, patch=encoded([add("/data/x", "y")])), "type-only": answer(allowed=True, patchType="JSONPatch"),
        "patch-type": answer(allowed=True, patch=encoded([add("/data/x", "y")]), patchType="Other"), "patch-type-empty": answer(
            allowed=True, patch=encoded([]), patchType=""), "patch-empty": answer(allowed=True, patch="", patchType="JSONPatch"),
        "patch-base64": answer(allowed=True, patch="!!", patchType="JSONPatch"), "patch-number": answer(
            allowed=True, patch=5, patchType="JSONPatch"), "patch-list": answer(allowed=True, patch=[1, 2], patchType="JSONPatch"),
        "patched": patch(add("/data/x", "y")), "annotations": answer(allowed=True, auditAnnotations={"a": "b", "c/d": ""}),
        "annotations-bad": answer(allowed=True, auditAnnotations={"a": 1}), "annotations-text": answer(allowed=True, auditAnnotations="x"),
        "cut": cut, "cut-body": cut_body, "no-length": raw(
            b'HTTP/1.1 200 OK\r\n\r\n{"kind":'), "busy": busy(429, None), "busy-date": busy(429, "Wed, 21 Oct 2026 07:28:00 GMT"),
        "busy-once": once(busy(429, "0")), "busy-503": once(busy(503, "1")), "busy-500": once(busy(500, "0")), "busy-404": once(
            busy(404, "0")), "busy-negative": once(busy(429, "-1"))}
    for name, behaviour in shapes.items():
        yield Case(f"answer-{name}", [validating("w", behaviour)], [create(f"answer-{name}", data={"a": "b"})])
        if name not in ("busy-once", "busy-503", "busy-500"):
            yield one(f"ignored-{name}", behaviour, failurePolicy="Ignore")
    for name in ("uid", "version", "no-response", "patch-only", "type-only", "patch-type", "patch-type-empty", "patch-empty",
                 "patch-base64", "patch-number", "patch-list", "annotations", "404", "cut", "null", "kind", "type-text", "status-403"):
        yield one(f"change-{name}", shapes[name], "mutating")
        yield one(f"change-ignored-{name}", shapes[name], "mutating", failurePolicy="Ignore")


def beta_answers():
    """Of a webhook that wants v1beta1."""
    shapes = {"allow": allow, "deny": deny("no"), "v1": document(apiVersion="admission.k8s.io/v1"), "uid": document(response={
        "uid": "x", "allowed": True}), "no-types": without("kind", "apiVersion"), "patch": patch(add("/data/x", "y")), "patch-only": answer(
            allowed=True, patch=encoded([add("/data/x", "y")])), "type": answer(allowed=True, patch=encoded([add("/data/x", "y")]),
                                                                                patchType="Other"),
              "type-only": answer(allowed=True, patchType="JSONPatch"), "warn": answer(allowed=True, warnings=["w"]), "kind": document(
                  kind="Other"), "none": without("response")}
    for name, behaviour in shapes.items():
        for kind in ("validating", "mutating"):
            yield one(f"beta-{name}-{kind[0]}", behaviour, kind, admissionReviewVersions=["v1beta1"])
    yield one("beta-first", allow, admissionReviewVersions=["v9", "v1beta1", "v1"])
    yield one("beta-last", allow, admissionReviewVersions=["v1", "v1beta1"])


PATCHES = [  # of a ConfigMap with the data {"a": "b"} and the label "case"
    [], [add("/data/x", "y")], [add("/data", {"c": "d"}, "replace")], [{"op": "remove", "path": "/data/a"}],
    [{"op": "remove", "path": "/data/none"}], [{"op": "remove", "path": "/data"}], [{"op": "copy", "from": "/data/a", "path": "/data/b"}],
    [{"op": "move", "from": "/data/a", "path": "/data/b"}], [add("/data/a", "b", "test"), add("/data/x", "y")],
    [add("/data/x", "y"), add("/data/a", "z", "test")], [add("/none/x", "y")], [add("/data/x", "y", "other")],
    [{"op": "add", "path": "/data/x"}], [add("/data/x", 1)], [add("/data/x", None)], [add("/nothing", 1)], [add("/data", None)],
    [add("/metadata/labels/a~1b", "c")], [add("/metadata/labels/a~0b", "c")], [add("/metadata/annotations", {"a": "b"})],
    [add("/metadata/annotations/a", "b")], [{"op": "remove", "path": "/metadata/labels"}], [{"op": "remove", "path": "/metadata"}],
    [add("", {}, "replace")], [add("", {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "whole"}}, "replace")],
    [add("/immutable", True)], [add("/immutable", 1.5)], [add("/immutable", "true")], [add("/binaryData", {"a": "eA=="})],
    [add("/binaryData", {"a": "!"})], [add("/data/x", "y" * 70000)], [{}], [{"path": "/data/x", "value": "y"}],
    [{"op": "add", "value": "y"}],
    [{"op": "copy", "path": "/data/b"}], [{"op": "move", "from": "/none", "path": "/data/b"}], [add("data/x", "y")], [add("/data/-", "y")],
    [{"op": "remove", "path": "/kind"}], [{"op": "remove", "path": "/apiVersion"}], [add("/metadata/name", "other")],
    [add("/metadata/name", "")],
    [{"op": "remove", "path": "/metadata/name"}], [add("/metadata/namespace", "other")], [add("/metadata/generateName", "x-")],
    [add("/metadata/uid", "u")], [add("/metadata/resourceVersion", "5")], [add("/metadata/creationTimestamp", "2020-01-01T00:00:00Z")],
    [add("/metadata/creationTimestamp", "bad")],
    [add("/metadata/finalizers", ["example.com/x"])], [add("/metadata/finalizers", ["bad"])], [add("/metadata/generation", 7)],
    [add("/metadata/ownerReferences", [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}])],
    [add("/metadata/labels/x", "not valid!")], [add("/metadata/labels", {})], [add("/metadata/annotations", {"": "x"})],
    [add("/metadata/managedFields", [])], [add("/metadata/selfLink", "x")], [add("/metadata/unknown", "x")], [add("/data", ["a"])],
    [add("/data/not valid", "x")], [add("/data/x", {"y": "z"})], "[", "{}", "null", "5", '"x"', "[1]", "[null]", " [] ",
    '[{"op":"add","path":"/data/x","value":"y","other":1}]', '[{"op":"add","op":"remove","path":"/data/a","value":"y"}]',
    '[{"OP":"add","PATH":"/data/x","VALUE":"y"}]', '[{"op":"add","path":"/data/x","value":"y"}] x', '[{"op":1,"path":"/data/x"}]',
    '[{"op":"add","path":null,"value":"y"}]',
]


def patches():
    for number, operations in enumerate(PATCHES):
        behaviour = patch_text(operations) if isinstance(operations, str) else patch(*operations)
        name = f"patch-{number}"
        yield one(name, when(lambda call: call.request["operation"] == "CREATE", behaviour), "mutating")
        name = f"update-{number}"
        # Kubernetes says twice, in different words, that an update has no name.
        if not isinstance(operations, str) and any(
                change.get("path") in ("", "/metadata") or (change.get("path") == "/metadata/name" and not change.get("value"))
                for change in operations):
            continue
        yield one(name, when(lambda call: call.request["operation"] == "UPDATE", behaviour), "mutating", requests=[
            create(name, data={"a": "b"}), ("PATCH", f"{CMS}/{name}", {"data": {"n": "m"}}, MERGE)])
    yield one("patch-delete", patch(add("/data/x", "y")), "mutating", rules=[rule(operations="DELETE")], requests=[
        create("patch-delete"), ("DELETE", f"{CMS}/patch-delete")])
    yield one("patch-delete-none", patch(), "mutating", rules=[rule(operations="DELETE")], requests=[
        create("patch-delete-none"), ("DELETE", f"{CMS}/patch-delete-none")])
    containers = [add("/spec/containers/0/image", "other"), add("/spec/containers/-", {"name": "side", "image": "car"})]
    yield one("patch-pod", patch(*containers), "mutating", **OF_PODS, requests=[pod("patch-pod")])
    yield one("patch-pod-ports", patch(add("/spec/containers/0/ports", [{"containerPort": 80}])), "mutating", **OF_PODS,
              requests=[pod("patch-pod-ports")])
    for name, operation in (("port", add("/spec/containers/0/ports", [{"containerPort": 70000}])), ("field", add("/spec/unknown", 1)), (
            "containers", add("/spec/containers", [])), ("type", add("/spec/containers", "x")), ("quantity", add(
            "/spec/containers/0/resources", {"limits": {"cpu": "0.5", "memory": "1024Ki"}})), ("no-quantity", add(
            "/spec/containers/0/resources", {"limits": {"cpu": "much"}})), ("priority", add("/spec/priorityClassName", "none")), (
            "host", add("/spec/hostNetwork", True)), ("status", add("/status", {"phase": "Running"})), ("volume", add(
            "/spec/volumes", [{"name": "v", "emptyDir": {}}])), ("node", add("/spec/nodeName", "n")), ("seconds", add(
            "/spec/terminationGracePeriodSeconds", 5))):
        yield one(f"pod-{name}", patch(operation), "mutating", **OF_PODS, requests=[pod(f"pod-{name}")])
    yield one("app-replicas", patch(add("/spec/replicas", 3)), "mutating", **OF_APPS, requests=[
        deployment("app-replicas"), ("PATCH", f"{DEPLOYMENTS}/app-replicas", {"spec": {"replicas": 5}}, MERGE)])
    yield one("app-selector", patch(add("/spec/selector/matchLabels/a", "c")), "mutating", **OF_APPS, requests=[
        deployment("app-selector")])
    yield one("service-port", patch(add("/spec/ports/0/targetPort", 8080), add("/spec/type", "NodePort"), add(
        "/spec/ports/0/nodePort", 30123), add("/spec/clusterIP", "10.0.0.77")), "mutating", **of(resources="services"), requests=[
            create("service-port", path=SERVICES, spec={"ports": [{"port": 80}]})])
    for name, operation in (("color", add("/spec/color", "red")), ("watts", add("/spec/watts", 500)), (
            "type", add("/spec/watts", "many")), (
            "unknown", add("/spec/unknown", 1)), ("part", add("/spec/part", {})), ("null", add("/spec/color", None)), ("status", add(
            "/status", {"on": True})), ("name", add("/metadata/name", "other")), ("drop", {"op": "remove", "path": "/spec"}), (
            "extra", add("/extra", {"a": 1})), ("meta-unknown", add("/metadata/unknown", "x"))):
        yield one(f"bulb-{name}", patch(operation), "mutating", **OF_BULBS, requests=[
            create(f"bulb-{name}", path=BULBS, spec={"watts": 5}),
            ("PATCH", f"{BULBS}/bulb-{name}", {"spec": {"tags": ["x"]}}, MERGE)])


def trail(letter):
    """Appends a letter to the annotation `trail`, so that it shows the order of the calls and what each has seen."""
    def operation(call):
        metadata = call.object["metadata"]
        if "annotations" not in metadata:
            return add("/metadata/annotations", {"trail": letter})
        return add("/metadata/annotations/trail", metadata["annotations"].get("trail", "") + letter)
    return when(lambda call: call.object, patch(operation))


def unless_trail(letter, most):
    """Appends a letter while fewer than `most` are there."""
    return when(lambda call: (call.object["metadata"].get("annotations") or {}).get("trail", "").count(letter) < most, trail(letter))


def constraints(case):
    return {"resourceRules": [rule(operations="CREATE")], "objectSelector": {"matchLabels": {"case": case}}}


def policies(case, again):
    """A policy that appends a P to the trail."""
    text = ("Object{metadata: Object.metadata{annotations: {'trail': object.metadata.?annotations[?'trail'].orValue('') + 'P'}}}")
    return [("POST", f"{GROUP}/mutatingadmissionpolicies", {"metadata": {"name": case}, "spec": {
        "matchConstraints": constraints(case), "reinvocationPolicy": again, "mutations": [
            {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": text}}]}}),
            ("POST", f"{GROUP}/mutatingadmissionpolicybindings", {"metadata": {"name": case}, "spec": {"policyName": case}})]


def chains():
    """Several webhooks: their order, and which are called again."""
    def case(name, *hooks, requests=None, **more):
        return Case(name, list(hooks), requests or [create(name, data={"a": "b"})], **more)

    yield case("order", mutating("b", trail("b"), configuration="order-2"), mutating("a", trail("a"), configuration="order-2"),
               mutating("c", trail("c"), configuration="order-1"), mutating("d", trail("d"), configuration="order-10"))
    yield case("again", mutating("a", trail("a"), reinvocationPolicy="IfNeeded"), mutating("b", trail("b")))
    yield case("again-both", mutating("a", trail("a"), reinvocationPolicy="IfNeeded"),
               mutating("b", trail("b"), reinvocationPolicy="IfNeeded"))
    yield case("again-last", mutating("a", trail("a")), mutating("b", trail("b"), reinvocationPolicy="IfNeeded"))
    yield case("again-quiet", mutating("a", allow, reinvocationPolicy="IfNeeded"), mutating("b", trail("b")))
    yield case("again-none", mutating("a", allow, reinvocationPolicy="IfNeeded"), mutating("b", allow))
    yield case("again-same", mutating("a", trail("a"), reinvocationPolicy="IfNeeded"), mutating("b", patch(add("/data/a", "b"))))
    yield case("again-empty", mutating("a", trail("a"), reinvocationPolicy="IfNeeded"), mutating("b", patch()))
    yield case("again-once", mutating("a", unless_trail("a", 1), reinvocationPolicy="IfNeeded"), mutating("b", trail("b")), mutating(
        "c", trail("c"), reinvocationPolicy="IfNeeded"))
    yield case("again-alone", mutating("a", trail("a"), reinvocationPolicy="IfNeeded"))
    yield case("again-three", *(mutating(letter, trail(letter), reinvocationPolicy="IfNeeded") for letter in "abc"))
    yield case("again-fails", mutating("a", in_turn(trail("a"), cut), reinvocationPolicy="IfNeeded"), mutating("b", trail("b")))
    yield case("again-denies", mutating("a", in_turn(trail("a"), deny("not twice")), reinvocationPolicy="IfNeeded"), mutating(
        "b", trail("b")))
    yield case("again-late", mutating("a", label("late", "yes"), reinvocationPolicy="IfNeeded", objectSelector={"matchLabels": {
        "case": "again-late", "early": "yes"}}), mutating("b", label("early", "yes"), reinvocationPolicy="IfNeeded"))
    yield case("again-leaves", mutating("a", trail("a"), reinvocationPolicy="IfNeeded", objectSelector={"matchExpressions": [
        {"key": "case", "operator": "In", "values": ["again-leaves"]}, {"key": "left", "operator": "DoesNotExist"}]}), mutating(
            "b", label("left", "yes")))
    yield case("again-update", mutating("a", trail("a"), reinvocationPolicy="IfNeeded"), mutating("b", trail("b")), requests=[
        create("again-update"), ("PATCH", f"{CMS}/again-update", {"data": {"x": "y"}}, MERGE)])
    yield case("again-pod", mutating("a", trail("a"), reinvocationPolicy="IfNeeded", **OF_PODS), mutating("b", patch(add(
        "/spec/containers/-", {"name": "side", "image": "car"})), **OF_PODS), requests=[pod("again-pod")])
    yield case("sees", mutating("a", trail("a")), validating("b"), validating("c"))
    yield case("denied-first", mutating("a", deny("a says no")), mutating("b", trail("b")), validating("c"))
    yield case("denied-second", mutating("a", trail("a")), mutating("b", deny("b says no")), validating("c"))
    yield case("denied-all", validating("a", deny("no")), validating("b"), validating("c"), validating(
        "d", trail("d"), failurePolicy="Ignore"))
    yield case("failed-mutating", mutating("a", cut), mutating("b", trail("b")), validating("c"))
    yield case("ignored-mutating", mutating("a", cut, failurePolicy="Ignore"), mutating("b", trail("b")), validating("c"))
    yield case("invalid-after", mutating("a", patch(add("/data", {"not valid": "x"}))), validating("b"))
    yield case("invalid-before", mutating("a", patch(add("/data", {"fine": "x"}))), validating("b"), requests=[
        create("invalid-before", data={"not valid": "x"})])
    yield case("same-names", mutating("w", trail("x"), configuration="same-names-1"), mutating(
        "w", trail("y"), path="m/other", configuration="same-names-2"))
    yield case("after-policy", mutating("a", trail("a")), validating("b"), before=policies("after-policy", "Never"))
    yield case("policy-again", mutating("a", trail("a")), validating("b"), before=policies("policy-again", "IfNeeded"))
    yield case("policy-changes", mutating("a", trail("a"), reinvocationPolicy="IfNeeded"), mutating("b", trail("b")), before=policies(
        "policy-changes", "IfNeeded"))
    yield case("policy-quiet", mutating("a", trail("a"), reinvocationPolicy="IfNeeded"), before=policies("policy-quiet", "Never"))
    yield case("policy-denies", mutating("a", patch(add("/data", {"bad": "x"}))), validating("b", deny("webhook")), before=[
        ("POST", f"{GROUP}/validatingadmissionpolicies", {"metadata": {"name": "policy-denies"}, "spec": {
            "matchConstraints": constraints("policy-denies"), "validations": [{"expression": "!('bad' in object.data)"}]}}),
        ("POST", f"{GROUP}/validatingadmissionpolicybindings", {"metadata": {"name": "policy-denies"}, "spec": {
            "policyName": "policy-denies", "validationActions": ["Deny"]}})])


def conditions():
    """matchConditions, selectors and what concerns a request."""
    shapes = {"true": ["true"], "false": ["false"], "both": ["true", "false"], "error": ["object.missing == 1"], "divided": ["1 / 0 == 1"],
              "error-false": ["object.missing == 1", "false"], "two-errors": ["object.missing == 1", "object.other == 1"],
              "name": ["object.metadata.name.startsWith('condition')"], "user": ["request.userInfo.username == 'admin'"], "operation": [
                  "request.operation == 'CREATE'"], "old": ["oldObject == null"], "dry": ["!request.dryRun"], "groups": [
                      "'system:masters' in request.userInfo.groups"], "lists": ["[1, 2].exists(x, x == 2)"], "namespace": [
                          "request.namespace == 'default'"], "kind": ["request.kind.kind == 'ConfigMap' && "
                                                                      "request.resource.resource == 'configmaps'"],
              "options": ["request.options.kind == 'CreateOptions'"],
              "authorizer": ["authorizer.group('').resource('configmaps').namespace('default').check('create').allowed()"]}
    for name, texts in shapes.items():
        rows = [{"name": f"c{i}", "expression": text} for i, text in enumerate(texts)]
        for policy in ("Fail", "Ignore"):
            for kind in ("validating", "mutating"):
                case = f"condition-{name}-{policy.lower()}-{kind[0]}"
                yield one(case, deny("called"), kind, matchConditions=rows, failurePolicy=policy)
    yield Case("condition-changed", [mutating("a", label("new", "yes")), mutating("b", trail("b"), matchConditions=[
        {"name": "x", "expression": "'new' in object.metadata.labels"}])], [create("condition-changed")])
    yield one("condition-delete", deny("called"), matchConditions=[
        {"name": "x", "expression": "object == null && oldObject.data.a == 'b'"}],
              requests=[create("condition-delete", data={"a": "c"}), ("DELETE", f"{CMS}/condition-delete")])
    for effects in ("None", "NoneOnDryRun"):
        for kind in ("validating", "mutating"):
            case = f"dry-{effects.lower()}-{kind[0]}"
            yield one(case, allow, kind, sideEffects=effects, requests=[
                create(case, path=CMS + "?dryRun=All"), create(case), ("PATCH", f"{CMS}/{case}?dryRun=All", {"data": {"x": "y"}}, MERGE),
                ("DELETE", f"{CMS}/{case}?dryRun=All"), ("DELETE", f"{CMS}/{case}", {"dryRun": ["All"]})])


def requests():
    """What a webhook gets to see of each kind of request."""
    for kind in ("validating", "mutating"):
        def sees(name, *cases, rules=None, kind=kind, **more):
            rows = rules or [rule("*/*", group="*", version="*", scope="Namespaced")]
            return Case(f"sees-{name}-{kind[0]}", [hook("w", allow, kind, rules=rows, **more)], [*cases], own=True)

        def space(name, kind=kind, group="api/v1"):
            return f"/{group}/namespaces/w-sees-{name}-{kind[0]}"
        cms, pods = space("config") + "/configmaps", space("pod") + "/pods"
        yield sees("config", ("POST", cms + "?fieldManager=me&fieldValidation=Strict", config("x", data={"a": "b"})),
                   ("PUT", cms + "/x", config("x", data={"a": "c"})), ("PATCH", cms + "/x", {"data": {"a": "d"}}, MERGE),
                   ("PATCH", cms + "/x", [add("/data/e", "f")], JSON_PATCH), ("PATCH", cms + "/x", {"data": {"g": "h"}}, STRATEGIC),
                   ("PATCH", cms + "/x?fieldManager=applier&force=true", {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {
                       "name": "x"}, "data": {"a": "i"}}, APPLY),
                   ("PATCH", cms + "/new?fieldManager=applier", {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {
                       "name": "new"}, "data": {"a": "i"}}, APPLY),
                   ("PUT", cms + "/none", config("none")), ("PATCH", cms + "/none", {}, MERGE),
                   ("POST", cms, {"metadata": {"generateName": "generated-"}}), ("POST", cms, {"metadata": {}}),
                   ("POST", cms, {"metadata": {"name": "NOT_VALID"}}), ("POST", cms, {"metadata": {"name": "x"}}),
                   ("PATCH", cms + "/x", {"metadata": {"finalizers": ["example.com/f"]}}, MERGE),
                   ("DELETE", cms + "/x", {"gracePeriodSeconds": 3, "propagationPolicy": "Background"}), ("DELETE", cms + "/x"),
                   ("PATCH", cms + "/x", {"metadata": {"finalizers": None}}, MERGE), ("DELETE", cms + "/none"),
                   ("DELETE", cms + "/new", {"preconditions": {"uid": "other"}}), ("GET", cms + "/new"),
                   ("DELETE", cms + "?labelSelector=case%3Dx"), ("DELETE", cms + "?dryRun=All"))
        yield sees("pod", pod("p", path=pods), ("PATCH", pods + "/p/status", {"status": {"phase": "Running"}}, MERGE),
                   ("PATCH", pods + "/p", {"metadata": {"labels": {"a": "b"}}}, STRATEGIC),
                   ("POST", pods + "/p/binding", {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}}),
                   ("POST", space("pod") + "/bindings", {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}}),
                   ("POST", pods + "/p/eviction", {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}}),
                   ("DELETE", pods + "/none"))
        apps = space("app", group="apis/apps/v1") + "/deployments"
        yield sees("app", deployment("d", path=apps), ("PATCH", apps + "/d/scale", {"spec": {"replicas": 4}}, MERGE),
                   ("PATCH", apps + "/d/status", {"status": {"replicas": 1}}, MERGE), ("DELETE", apps + "/d"))
        accounts = space("account") + "/serviceaccounts"
        yield sees("account", ("POST", accounts, {"metadata": {"name": "a"}}), ("POST", accounts + "/a/token", {"spec": {}}))
        bulbs = space("bulb", group="apis/example.com/v1") + "/bulbs"
        yield sees("bulb", create("b", path=bulbs, spec={"watts": 5, "unknown": 1}),
                   ("PATCH", bulbs + "/b", {"spec": {"watts": 6}}, MERGE),
                   ("PATCH", bulbs + "/b/status", {"status": {"on": True}}, MERGE),
                   ("PATCH", bulbs + "/b/scale", {"spec": {"replicas": 7}}, MERGE),
                   ("PATCH", bulbs + "/b?fieldManager=me&force=true", {"kind": "Bulb", "apiVersion": "example.com/v1", "metadata": {
                       "name": "b"}, "spec": {"watts": 8}}, APPLY), ("PATCH", bulbs + "/c?fieldManager=me", {
                           "kind": "Bulb", "apiVersion": "example.com/v1", "metadata": {"name": "c"}, "spec": {"watts": 8}}, APPLY),
                   ("POST", bulbs, {**typed_as(bulbs), "metadata": {"generateName": "generated-"}, "spec": {}}),
                   create("bad", path=bulbs, spec={"watts": 500}),
                   ("DELETE", bulbs + "/b"), ("DELETE", bulbs))
        # A status that a webhook changes more of than it may: only the status is stored.
        lamps = space("lamp", group="apis/example.com/v1beta1") + "/lamps"
        yield sees("lamp", create("l", path=lamps, spec={"on": True}), ("PATCH", lamps + "/l", {"spec": {"on": False}}, MERGE),
                   ("DELETE", lamps + "/l"))
    yield Case("status-change", [mutating("w", patch(add("/data", {"x": "y"}), add("/spec", {"watts": 50}), add("/status/on", False)),
                                          rules=[rule("bulbs/status", group="example.com")])], [
        create("status-change", path=BULBS, spec={"watts": 5}),
        ("PATCH", f"{BULBS}/status-change/status", {"status": {"on": True}}, MERGE)])
    yield Case("scale-change", [mutating("w", patch(add("/spec/replicas", 9)), rules=[
        rule("deployments/scale", group="apps,autoscaling")])], [
            deployment("scale-change", path="/apis/apps/v1/namespaces/w-scale-change/deployments"),
            ("PATCH", "/apis/apps/v1/namespaces/w-scale-change/deployments/scale-change/scale", {"spec": {"replicas": 4}}, MERGE)],
        own=True)
    yield Case("connect", [validating("w", deny("not connected"), rules=[rule("*/*", "CONNECT", "*", "*")])], [
        pod("connect", path="/api/v1/namespaces/w-connect/pods", nodeName="nowhere"),
        *(("POST", f"/api/v1/namespaces/w-connect/pods/connect/{verb}?command=a&command=b&container=c&stdin=true")
          for verb in ("exec", "attach", "portforward"))], own=True)


RULES = {
    "plain": rule(), "everything": rule("*/*", group="*", version="*"), "star": rule("*", group="*", version="*"), "subs": rule(
        "pods/*"), "status": rule("pods/status"), "any-status": rule("*/status", group="*", version="*"), "any-scale": rule(
        "*/scale", group="*", version="*"), "two": rule("configmaps,pods/status"), "create": rule("*", "CREATE", "*", "*"), "delete": rule(
        "*", "DELETE", "*", "*"), "update": rule("*/*", "UPDATE", "*", "*"), "connect": rule("*/*", "CONNECT", "*", "*"), "mixed": rule(
        "*", "CREATE,DELETE", "*", "*"), "namespaced": rule("*/*", group="*", version="*", scope="Namespaced"), "cluster": rule(
        "*/*", group="*", version="*", scope="Cluster"), "any-scope": rule("*", group="*", version="*", scope="*"), "group": rule(
        "*", group="apps"), "version": rule("*", group="*", version="v2"), "apps": rule("deployments", group="apps"), "wrong-group": rule(
        "deployments"), "eviction": rule("pods/eviction"), "token": rule("serviceaccounts/token"), "scale": rule(
        "deployments/scale", group="apps"), "namespaces": rule("namespaces"), "no-match": rule("nothing"), "policy-eviction": rule(
        "pods/eviction", group="policy"), "autoscaling": rule("deployments/scale", group="autoscaling"), "reviews": rule(
        "*", group="authorization.k8s.io,authentication.k8s.io"), "own-kinds": rule("*", group="admissionregistration.k8s.io")}

SELECTORS = {
    "none": {}, "name": {"matchLabels": {"kubernetes.io/metadata.name": "w-selected"}}, "team": {"matchLabels": {"team": "a"}},
    "exists": {"matchExpressions": [{"key": "team", "operator": "Exists"}]},
    "not": {"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]},
    "in": {"matchExpressions": [{"key": "team", "operator": "In", "values": ["a", "b"]}]},
    "not-in": {"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["b"]}]}}


def tables():
    """Many webhooks for the same requests."""
    base = "/api/v1/namespaces/w-rules"
    yield Case("rules", [validating(name, rules=[row]) for name, row in RULES.items()], [
        ("POST", base + "/configmaps", config("x")), ("PATCH", base + "/configmaps/x", {"data": {"a": "b"}}, MERGE),
        pod("p", path=base + "/pods"), ("PATCH", base + "/pods/p/status", {"status": {"phase": "Running"}}, MERGE),
        ("POST", base + "/pods/p/eviction", {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}}),
        deployment("d", path="/apis/apps/v1/namespaces/w-rules/deployments"),
        ("PATCH", "/apis/apps/v1/namespaces/w-rules/deployments/d/scale", {"spec": {"replicas": 4}}, MERGE),
        ("POST", base + "/serviceaccounts", {"metadata": {"name": "a"}}), ("POST", base + "/serviceaccounts/a/token", {"spec": {}}),
        create("s", path="/apis/autoscaling/v1/namespaces/w-rules/horizontalpodautoscalers", spec={
            "maxReplicas": 3, "scaleTargetRef": {"kind": "Deployment", "name": "x", "apiVersion": "apps/v1"}}),
        ("POST", "/apis/coordination.k8s.io/v1/namespaces/w-rules/leases", {"metadata": {"name": "l"}, "spec": {}}),
        ("PATCH", "/api/v1/namespaces/w-rules", {"metadata": {"labels": {"a": "b"}}}, MERGE),
        ("PUT", "/api/v1/namespaces/w-rules/finalize", {"metadata": {"name": "w-rules"}, "spec": {"finalizers": ["kubernetes"]}}),
        ("DELETE", base + "/configmaps/x"), ("POST", base + "/configmaps", config("y")), ("DELETE", base + "/configmaps")], own=True)
    yield Case("cluster-rules", [validating(name, rules=[row], objectSelector={"matchLabels": {"case": "cluster-rules"}})
                                 for name, row in RULES.items()], [
        create("cluster-rules", path=CLASSES, value=1), ("DELETE", f"{CLASSES}/cluster-rules"),
        ("POST", f"{GROUP}/{PLURALS['validating']}", config("cluster-rules", "cluster-rules-w")),
        ("POST", f"{GROUP}/validatingadmissionpolicybindings", config("cluster-rules", spec={
            "policyName": "p", "validationActions": ["Deny"]})),
        ("POST", NAMESPACES, config("cluster-rules")), ("DELETE", f"{NAMESPACES}/cluster-rules")])
    cms = "/configmaps"
    named = {"name": "x", "expression": "(object == null ? oldObject : object).metadata.name.startsWith('selected-')"}
    yield Case("selected", [validating(name, rules=[rule("configmaps,namespaces"), rule("priorityclasses", group="scheduling.k8s.io")],
                                       namespaceSelector=row, matchConditions=[named]) for name, row in SELECTORS.items()], [
        ("POST", NAMESPACES, {"metadata": {"name": "selected-a", "labels": {"team": "a"}}}),
        ("POST", NAMESPACES, {"metadata": {"name": "selected-none"}}),
        ("POST", f"{NAMESPACES}/selected-a{cms}", {"metadata": {"name": "selected-1"}}),
        ("POST", f"{NAMESPACES}/selected-none{cms}", {"metadata": {"name": "selected-1"}}),
        ("POST", f"{NAMESPACES}/w-selected{cms}", {"metadata": {"name": "selected-1"}}),
        ("POST", f"{NAMESPACES}/missing{cms}", {"metadata": {"name": "selected-1"}}),
        ("PATCH", f"{NAMESPACES}/selected-a", {"metadata": {"labels": {"team": "b"}}}, MERGE),
        ("POST", CLASSES, {"metadata": {"name": "selected-class"}, "value": 1}),
        ("DELETE", f"{CLASSES}/selected-class"), ("DELETE", f"{NAMESPACES}/selected-none")], own=True)
    yield Case("objects", [validating(name, objectSelector=row) for name, row in SELECTORS.items()], [
        ("POST", "/api/v1/namespaces/w-objects/configmaps", {"metadata": {"name": "a", "labels": {"team": "a"}}}),
        ("POST", "/api/v1/namespaces/w-objects/configmaps", {"metadata": {"name": "b"}}),
        ("PATCH", "/api/v1/namespaces/w-objects/configmaps/a", {"metadata": {"labels": {"team": None}}}, MERGE),
        ("PATCH", "/api/v1/namespaces/w-objects/configmaps/a", {"metadata": {"labels": {"team": "c"}}}, MERGE),
        ("DELETE", "/api/v1/namespaces/w-objects/configmaps/a"), ("DELETE", "/api/v1/namespaces/w-objects/configmaps/b")], own=True)
    lamps = rule("lamps", group="example.com", version="v1")
    for policy in ("Exact", "Equivalent"):
        name = f"match-{policy.lower()}"
        yield Case(name, [
            *(hook(f"{kind[0]}-{suffix}", trail(kind[0]) if kind == "mutating" else allow, kind, rules=[row], matchPolicy=policy)
              for kind in PLURALS for suffix, row in (
                  ("v2", rule("horizontalpodautoscalers", group="autoscaling", version="v2")), ("v1", rule(
                      "horizontalpodautoscalers", group="autoscaling")), ("lamp", lamps), ("apps", rule("deployments", group="extensions")),
                  ("beta", rule("lamps", group="example.com", version="v1beta1")), ("any", rule("*", group="*", version="*"))))], [
            create(name, path=SCALERS, spec={"maxReplicas": 3, "scaleTargetRef": {
                "kind": "Deployment", "name": "x", "apiVersion": "apps/v1"}, "targetCPUUtilizationPercentage": 60}),
            create(name, path=LAMPS, spec={"on": False}),
            create(name, f"{name}-2", path=LAMPS.replace("v1beta1", "v1"), spec={"on": False}),
            ("PATCH", f"{LAMPS}/{name}", {"spec": {"on": True}}, MERGE), deployment(name), ("DELETE", f"{SCALERS}/{name}")])


def cases():
    for part in (refusals, warnings, answers, beta_answers, patches, chains, conditions, requests, tables):
        yield from part()


def configuration(name, *webhooks, **more):
    return {"metadata": {"name": name}, "webhooks": list(webhooks), **more}


def full(name="w.example.com", **more):
    """A webhook that is valid; None removes a member."""
    made = {"name": name, "clientConfig": {"url": "https://127.0.0.1:1/x"}, "sideEffects": "None", "admissionReviewVersions": ["v1"],
            "rules": [rule(operations="CREATE")], **more}
    return {key: value for key, value in made.items() if value is not None}


def client(**fields):
    return full(clientConfig=fields)


def ruled(**fields):
    return full(rules=[{**rule(operations="CREATE"), **fields}])


REFUSED = [
    [full()], [full(), full()], [full("short")], [full("UPPER.example.com")], [full("")], [full("a.b")], [full(sideEffects=None)],
    [full(sideEffects="Some")], [full(sideEffects="Unknown")], [full(sideEffects="Other")], [full(admissionReviewVersions=None)],
    [full(admissionReviewVersions=[])], [full(admissionReviewVersions=["v2"])], [full(admissionReviewVersions=["v1", "v1"])],
    [full(admissionReviewVersions=["v1beta1"])], [full(admissionReviewVersions=["", "v1"])], [full(admissionReviewVersions=["V_1", "v1"])],
    [full(timeoutSeconds=0)], [full(timeoutSeconds=31)], [full(timeoutSeconds=30)], [full(timeoutSeconds=-1)],
    [full(failurePolicy="Maybe")], [full(matchPolicy="Close")], [full(reinvocationPolicy="Always")],
    [full(reinvocationPolicy="IfNeeded")], [full(clientConfig=None)],
    [full(clientConfig={})], [client(url="http://example.com")], [client(url="https://user@example.com/x")], [client(
        url="https://example.com/x?y=z")], [client(url="https://example.com/x#y")], [client(url="https:///x")], [client(url="x")], [client(
            url="")], [client(url="https://example.com:1:2/")], [client(url="https://a b/")],
    [client(service={"namespace": "n", "name": "s"})],
    [client(service={})], [client(service={"namespace": "n", "name": "s", "port": 0})], [client(service={
        "namespace": "n", "name": "s", "port": 70000})], [client(service={"namespace": "n", "name": "s", "path": "x"})], [client(
            service={"namespace": "n", "name": "s", "path": "/x//y"})], [client(service={"namespace": "n", "name": "s", "path": "/"})],
    [client(service={"namespace": "n", "name": "s", "path": "/a_b/"})], [client(service={"namespace": "n", "name": "s", "path": "//"})], [
        client(service={"namespace": "n", "name": "s", "path": ""})], [client(service={"namespace": "N_", "name": "S_"})],
    [client(service={"namespace": "n", "name": "s"}, url="https://example.com")], [client(url="https://x", caBundle="!!")], [client(
        url="https://x", caBundle="eA==")], [full(rules=None)], [full(rules=[])], [ruled(apiGroups=[])], [ruled(apiGroups=["*", "a"])],
    [ruled(apiVersions=[])], [ruled(apiVersions=["", "v1"])], [ruled(apiVersions=["*", "v1"])], [ruled(resources=[])], [ruled(resources=[
        "*", "pods"])], [ruled(resources=["*", "pods/status"])], [ruled(resources=["*/*", "pods"])],
    [ruled(resources=["pods/*", "pods/x"])],
    [ruled(resources=["*/status", "pods/status"])], [ruled(resources=["", "x"])], [ruled(resources=["a/b/c"])], [ruled(resources=[
        "pods", "pods"])], [ruled(operations=[])], [ruled(operations=["*", "CREATE"])], [ruled(operations=["CREATES"])], [ruled(
            operations=["CREATE", "CREATE"])], [ruled(scope="Some")], [ruled(scope="")], [ruled(resourceNames=["x"])],
    [full(namespaceSelector={"matchExpressions": [{"key": "a", "operator": "Is"}]})], [full(objectSelector={"matchLabels": {"-": "x"}})],
    [full(objectSelector={"matchExpressions": [{"key": "a", "operator": "In"}]})], [full(matchConditions=[{"name": "", "expression": ""}])],
    [full(matchConditions=[{"name": "a", "expression": "1"}])], [full(matchConditions=[{"name": "a", "expression": "object."}])],
    [full(matchConditions=[{"name": "a", "expression": "true"}, {"name": "a", "expression": "true"}])], [full(matchConditions=[
        {"name": "a b", "expression": "true"}])], [full(matchConditions=[{"name": f"c{i}", "expression": "true"} for i in range(65)])],
    [full(matchConditions=[{"name": "a", "expression": "params.x"}])], [full(matchConditions=[{"name": "a", "expression": "variables.x"}])],
    [full(unknown=1)], [full(timeoutSeconds="5")], [full(rules="x")], [], [full(name=None)], [5],
]
