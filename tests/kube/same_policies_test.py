#!/usr/bin/python3
"""What ValidatingAdmissionPolicies decide in a real kube-apiserver and in Vigil: a table of policies, each with the requests that
it concerns, and policies and bindings that are refused themselves. Answers and warnings are compared as a whole.
tools/build-kube builds the real kube-apiserver."""
import json
import pathlib
import re
import sys
import time
import unittest
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/live"))
sys.path.insert(0, str(ROOT / "tests/kube"))
from same_writes_test import MERGE, Client, deployment  # noqa: E402
from side_by_side import SideBySide  # noqa: E402

TIME = re.compile(r'"2\d{3}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"')
UID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
GROUP = "/apis/admissionregistration.k8s.io/v1"
POLICIES, BINDINGS = f"{GROUP}/validatingadmissionpolicies", f"{GROUP}/validatingadmissionpolicybindings"
CMS, PODS = "/api/v1/namespaces/default/configmaps", "/api/v1/namespaces/default/pods"
NAMESPACES = "/api/v1/namespaces"
OPEN = "namespaces/default/pods/open"  # a pod that does not exist
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
SCALERS = "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers"
LAMPS = "/apis/example.com/v1beta1/namespaces/default/lamps"
OURS = "this server "  # begins warnings of what Vigil does not do
READY_SECONDS = 60
CRD = {"metadata": {"name": "lamps.example.com"}, "spec": {
    "group": "example.com", "scope": "Namespaced", "names": {"plural": "lamps", "kind": "Lamp"},
    "versions": [{"name": name, "served": True, "storage": name == "v1", "schema": {"openAPIV3Schema": {
        "type": "object", "x-kubernetes-preserve-unknown-fields": True}}} for name in ("v1", "v1beta1")]}}


def rule(resources="configmaps", operations="*", group="", version="v1", **more):
    return {"apiGroups": [group], "apiVersions": [version], "resources": resources.split(","),
            "operations": operations.split(","), **more}


def policy(name, *validations, rules=None, match=None, selects=True, **spec):
    """Concerns only objects with the label case=NAME, so that all policies can exist at the same time."""
    constraints = {"resourceRules": rules or [rule()], **(match or {})}
    if selects:
        constraints["objectSelector"] = {"matchLabels": {"case": name}}
    validations = [{"expression": item} if isinstance(item, str) else item for item in validations]
    return {"metadata": {"name": name}, "spec": {"matchConstraints": constraints, "validations": validations, **spec}}


def binding(name, actions="Deny", policy_name=None, **spec):
    return {"metadata": {"name": name}, "spec": {"policyName": policy_name or name, "validationActions": actions.split(","),
                                                 **spec}}


def params(name=None, action="Deny", **more):
    return {"paramRef": {**({"name": name} if name else {}), "parameterNotFoundAction": action, **more}}


def config(case, name=None, **more):
    return {"metadata": {"name": name or case, "labels": {"case": case}}, **more}


def create(case, name=None, path=CMS, **more):
    return ("POST", path, config(case, name, **more))


def deny(case, *validations, requests=None, actions="Deny", bound=None, **more):
    """One policy, its binding, and requests: by default the creation of a ConfigMap."""
    return [policy(case, *validations, **more)], [binding(case, actions, **(bound or {}))], requests or [create(case)]


EXPRESSIONS = [
    "object.data.a == 'b'", "has(object.data) && object.data.a == 'b'", "oldObject == null", "object.kind == 'ConfigMap'",
    "object.apiVersion == 'v1' && object.metadata.namespace == 'default'", "request.operation == 'CREATE'",
    "request.kind.kind == 'ConfigMap' && request.kind.group == '' && request.kind.version == 'v1'",
    "request.resource.resource == 'configmaps' && request.requestResource.version == 'v1'",
    "request.requestKind.kind == 'ConfigMap'", "has(request.subResource)", "request.subResource == ''",
    "has(request.namespace) && request.namespace == 'default'", "request.name == object.metadata.name", "request.dryRun",
    "request.options.kind == 'CreateOptions'", "request.options == {}", "string(request.options.apiVersion) == 'x'",
    "has(request.userInfo.username)", "has(request.options.fieldManager)",
    "namespaceObject.metadata.name == 'default'", "namespaceObject.metadata.labels['kubernetes.io/metadata.name'] == 'x'",
    "namespaceObject.status.phase == 'Active'", "has(namespaceObject.spec.finalizers)", "has(namespaceObject.metadata.annotations)",
    "has(object.metadata.resourceVersion)", "has(object.metadata.uid)", "has(object.metadata.creationTimestamp)",
    "object.metadata.labels.size() == 1", "object.metadata.labels.all(k, k == 'x')", "1 / 0 == 1", "int('a') == 1",
    "[1, 2].exists(i, i == 3) || object.missing == 1", "object.missing == 1 || true", "string(object.metadata) == ''",
    "object.metadata.name.startsWith('x')", "object.metadata.name.matches('^x+$')",
    "dyn(object).metadata.name.size() > 100", "type(object) == map", "false", "true", " false \n",
    "!object.metadata.labels.exists(k, k == 'case')",
    "object.data.?a.orValue('b') == 'c'", "quantity('1Gi').isGreaterThan(quantity('2Gi'))", "object == oldObject",
]


def cases():
    for number, text in enumerate(EXPRESSIONS):
        yield deny(f"expression-{number}", text)
    yield deny("message", {"expression": "false", "message": " said "})
    yield deny("message-reason", {"expression": "false", "message": "said", "reason": "Forbidden"})
    yield deny("message-large", {"expression": "false", "reason": "RequestEntityTooLarge"})
    for number, text in enumerate(("'made of ' + object.metadata.name", "''", "' '", "'two\\nlines'", "object.missing.x",
                                   "string(1 / 0)", "'x' + string(object.data.size())")):
        yield deny(f"made-{number}", {"expression": "false", "message": "fixed", "messageExpression": text})
        yield deny(f"made-only-{number}", {"expression": "false", "messageExpression": text})
    yield deny("long-message", {"expression": "false", "messageExpression": "['0123456789'].map(x, x+x+x+x+x+x+x+x)[0]" + " + " +
                                " + ".join(["object.data.long"] * 8)}, requests=[create("long-message", data={"long": "y" * 800})])
    yield deny("several", "true", {"expression": "false", "message": "first"}, {"expression": "false", "message": "second"})
    yield deny("warn", {"expression": "false", "message": "first"}, {"expression": "1/0 == 1"}, actions="Warn")
    yield deny("warn-ignore", {"expression": "1/0 == 1"}, actions="Warn", failurePolicy="Ignore")
    yield deny("ignore", {"expression": "1/0 == 1"}, failurePolicy="Ignore")
    yield deny("ignore-false", {"expression": "1/0 == 1"}, {"expression": "false"}, failurePolicy="Ignore")
    yield deny("variables", "variables.b", variables=[{"name": "a", "expression": "object.metadata.name"},
                                                      {"name": "b", "expression": "variables.a == 'c'"}])
    yield deny("variable-fails", "variables.a == 1 || variables.b", variables=[
        {"name": "a", "expression": "1/0"}, {"name": "b", "expression": "false"}])
    yield deny("variable-fails-too", "variables.a == 1", variables=[{"name": "a", "expression": "object.none.such"}])
    yield deny("variable-unused", "false", variables=[{"name": "a", "expression": "1/0"}])
    yield deny("variable-missing", "has(variables.a)", variables=[{"name": "a", "expression": "1"}])
    yield deny("variable-message", {"expression": "variables.a > 1", "messageExpression": "'a is ' + string(variables.a)"},
               variables=[{"name": "a", "expression": "object.metadata.labels.size()"}])
    yield deny("condition-false", "false", matchConditions=[{"name": "x", "expression": "object.metadata.name == 'other'"}])
    yield deny("condition-true", "false", matchConditions=[{"name": "x", "expression": "object.metadata.name != 'other'"}])
    yield deny("condition-error", "false", matchConditions=[{"name": "x", "expression": "1/0 == 1"}])
    yield deny("condition-errors", "false", matchConditions=[{"name": "x", "expression": "1/0 == 1"},
                                                             {"name": "y", "expression": "object.none == 1"},
                                                             {"name": "z", "expression": "1/0 == 1"}])
    yield deny("condition-error-false", "false", matchConditions=[{"name": "x", "expression": "1/0 == 1"},
                                                                  {"name": "y", "expression": "false"}])
    yield deny("condition-ignored", "false", failurePolicy="Ignore", matchConditions=[{"name": "x", "expression": "1/0 == 1"}])
    yield deny("condition-namespace", "false", matchConditions=[{"name": "x", "expression": "namespaceObject == null"}])
    yield deny("annotation-error", "true", auditAnnotations=[{"key": "k", "valueExpression": "string(1/0)"}])
    yield deny("annotation-ignored", "true", failurePolicy="Ignore", auditAnnotations=[{"key": "k", "valueExpression": "string(1/0)"}])
    yield deny("annotation", "true", auditAnnotations=[{"key": "k", "valueExpression": "null"}, {"key": "l", "valueExpression": "'x'"}])
    yield deny("audit", "false", actions="Audit")
    yield deny("update", "request.operation == 'CREATE' || object.data.a == oldObject.data.a", requests=[
        create("update", data={"a": "b"}), ("PUT", f"{CMS}/update", config("update", data={"a": "c"})),
        ("PATCH", f"{CMS}/update", {"data": {"b": "c"}}, MERGE), ("PATCH", f"{CMS}/update", {"data": {"a": "c"}}, MERGE)])
    yield deny("versions", "oldObject == null || (object.metadata.resourceVersion == oldObject.metadata.resourceVersion"
               " && object.metadata.resourceVersion != '' && object.data.a == 'c')", requests=[
                   create("versions", data={"a": "b"}), ("PATCH", f"{CMS}/versions", {"data": {"a": "d"}}, MERGE),
                   ("PATCH", f"{CMS}/versions", {"data": {"a": "c"}}, MERGE)])
    yield deny("delete", "request.operation != 'DELETE'", requests=[
        create("delete"), ("DELETE", f"{CMS}/delete"), ("DELETE", f"{CMS}/none"),
        ("DELETE", f"{CMS}?labelSelector=case%3Ddelete")])
    yield deny("delete-null", "object == null && oldObject.metadata.name == 'delete-null' && request.options.kind == 'x'",
               rules=[rule(operations="DELETE")], requests=[create("delete-null"), ("DELETE", f"{CMS}/delete-null")])
    yield deny("delete-options", "request.options == {}", rules=[rule(operations="DELETE")], requests=[
        create("delete-options"), ("DELETE", f"{CMS}/delete-options", {"gracePeriodSeconds": 3, "propagationPolicy": "Orphan"})])
    yield deny("unbound", "false", bound={"policy_name": "no-such-policy"})
    yield deny("narrow", "false", bound={"matchResources": {"resourceRules": [rule(operations="UPDATE")]}}, requests=[
        create("narrow"), ("PATCH", f"{CMS}/narrow", {"data": {"a": "c"}}, MERGE)])
    yield deny("narrow-name", "false", bound={"matchResources": {"resourceRules": [rule(resourceNames=["narrow-name"])]}},
               requests=[create("narrow-name", "other"), create("narrow-name")])
    yield deny("names", "false", rules=[rule(resourceNames=["names-a", "names-b"])], requests=[
        create("names", "names-a"), create("names", "names-c")])
    yield deny("excluded", "false", match={"excludeResourceRules": [rule(operations="CREATE")]}, requests=[
        create("excluded"), ("PATCH", f"{CMS}/excluded", {"data": {"a": "c"}}, MERGE)])
    yield deny("generated", "request.name == 'x'", requests=[
        ("POST", CMS, {"metadata": {"generateName": "generated-", "labels": {"case": "generated"}}})])
    for scope in ("Namespaced", "Cluster", "*"):
        name = f"scope-{scope.lower().replace('*', 'all')}"
        yield deny(name, "false", rules=[rule("configmaps,namespaces", scope=scope)], requests=[
            create(name), create(name, path=NAMESPACES)])
    yield deny("wild", "request.resource.resource == 'configmaps'", rules=[rule("*/*", group="*", version="*")], requests=[
        create("wild"), create("wild", path=NAMESPACES), ("POST", DEPLOYMENTS, {**deployment("wild"), "metadata": {
            "name": "wild", "labels": {"case": "wild"}}})])
    yield deny("labelled", "false", match={"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "default"}}})
    yield deny("labelled-not", "false", match={"namespaceSelector": {"matchExpressions": [
        {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["default"]}]}})
    yield deny("labelled-self", "false", rules=[rule("namespaces")],
               match={"namespaceSelector": {"matchLabels": {"case": "labelled-self"}}}, requests=[create("labelled-self", path=NAMESPACES)])
    yield deny("namespaces", "namespaceObject == null && request.namespace == object.metadata.name && request.name == 'x'",
               rules=[rule("namespaces")], requests=[create("namespaces", path=NAMESPACES)])
    yield deny("status", "request.subResource == 'x'", rules=[rule("pods/status,deployments/scale", group="*")], requests=[
        create("status", path=PODS, spec={"containers": [{"name": "c", "image": "i"}]}),
        ("PATCH", f"{PODS}/status", {"metadata": {"labels": {"a": "b"}}}, MERGE),
        ("PATCH", f"{PODS}/status/status", {"status": {"message": "x"}}, MERGE)])
    yield deny("scale", "object.spec.replicas < 5 && oldObject.kind == 'Scale' && request.kind.kind == 'Scale'"
               " && request.requestKind.group == 'autoscaling' && request.resource.resource == 'deployments'",
               rules=[rule("deployments/scale", group="apps")], selects=False, requests=[
                   ("POST", DEPLOYMENTS, deployment("scaled")),
                   ("PATCH", f"{DEPLOYMENTS}/scaled/scale", {"spec": {"replicas": 3}}, MERGE),
                   ("PATCH", f"{DEPLOYMENTS}/scaled/scale", {"spec": {"replicas": 7}}, MERGE)])
    yield deny("binding", "object.target.name == 'n' && request.kind.kind == 'Binding' && request.name == 'x'",
               rules=[rule("pods/binding", operations="CREATE")], selects=False, requests=[
                   ("POST", PODS, {"metadata": {"name": "bound"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}),
                   ("POST", f"{PODS}/bound/binding", {"metadata": {"name": "bound"}, "target": {"name": "n", "kind": "Node"}})])
    yield deny("bindings", "request.resource.resource == 'x' && object.target.name == 'n'", rules=[rule("bindings,pods")],
               selects=False, match={"matchPolicy": "Exact", "namespaceSelector": {"matchLabels": {
                   "kubernetes.io/metadata.name": "kube-public"}}}, requests=[("POST", f"{NAMESPACES}/kube-public/bindings", {
                       "metadata": {"name": "no-pod"}, "target": {"name": "n", "kind": "Node"}})])
    yield deny("eviction", "object.kind == 'Eviction' && request.kind.group == 'policy' && request.subResource == 'eviction'"
               " && request.name != 'evicted' && oldObject == null", rules=[rule("pods/eviction", operations="CREATE")], selects=False,
               requests=[(
                   "POST", PODS, {"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i"}]}})
                   for name in ("evicted", "evictable")] + [
                   ("POST", f"{PODS}/{name}/eviction", {"metadata": {"name": name}}) for name in ("evicted", "evictable")])
    seen = ("request.operation + ' ' + request.kind.kind + ' ' + request.resource.resource + '/' + request.subResource + ' ' + request.name"
            " + (oldObject == null ? '' : ' old') + (request.options == null ? ' -' : ' ' + "
            "string(request.options.?kind.orValue('none'))) + ' '")
    connects = [{"expression": "false", "messageExpression": seen + (
        " + object.kind + ' ' + object.apiVersion + ' ' + object.?container.orValue('-') + ' ' + (has(object.command) && object.command != "
        "null ? object.command.join(',') : '-') + ' ' + object.?path.orValue('-') + ' ' + (has(object.ports) ? object.ports.map(p, "
        "string(p)).join(',') : '-') + ' ' + [object.?stdin, object.?stdout, object.?stderr, object.?tty].map(o, o.hasValue() ? "
        "string(o.value()) : '-').join(',') + ' ' + string(has(object.command)) + string(has(object.path))")}]
    # Kubernetes evaluates policies in no particular order, so each pod has one that denies.
    others = [{"name": "others", "expression": "!(request.name in ['connected', 'none'])"}]
    yield deny("connect", *connects, matchConditions=others, rules=[
        rule("pods/exec,pods/attach,pods/portforward,pods/proxy,services/proxy,nodes/proxy", "CONNECT")], selects=False, requests=[
            (method, f"/api/v1/{path}") for path in (
                f"{OPEN}/exec?container=c&command=a&command=b%20c&stdin=true&stdout=0&tty=false&stderr=False", f"{OPEN}/exec",
                f"{OPEN}/attach?stdout=&stdin=FALSE", f"{OPEN}/attach?tty=1&tty=0", f"{OPEN}/portforward?ports=1,2&ports=65535",
                f"{OPEN}/portforward", f"{OPEN}/portforward?ports=1,x", f"{OPEN}/portforward?ports=", f"{OPEN}/portforward?ports=65536",
                f"{OPEN}:80/proxy", f"{OPEN}/proxy/", f"{OPEN}/proxy/a/b%20c/?x=y", f"{OPEN}/proxy/proxy/x?path=z", "nodes/n/proxy",
                "nodes/n/proxy/pods", "nodes/n:1/proxy/", "namespaces/default/services/https:s:80/proxy/a") for method in ("GET", "POST")])
    yield deny("connect-selector", "false", rules=[rule("pods/attach", "CONNECT")], selects=False, requests=[
        ("POST", PODS, {"metadata": {"name": "connected"}, "spec": {"containers": [{"name": "c", "image": "i"}]}})],
        match={"objectSelector": {"matchExpressions": [{"key": "case", "operator": "DoesNotExist"}]}})
    yield deny("connect-condition", "false", rules=[rule("pods/exec", "CONNECT")], selects=False, matchConditions=[
        {"name": "c", "expression": "request.name in ['connected', 'none'] && 'shell' in object.?command.orValue([])"}], requests=[
            ("POST", f"{PODS}/connected/exec?command=shell"), ("POST", f"{PODS}/none/exec?command=shell")])
    tokens = "/api/v1/namespaces/default/serviceaccounts"
    yield deny("token", {"expression": "object.spec.expirationSeconds == 1", "messageExpression": seen + (
        " + object.kind + ' ' + object.apiVersion + ' ' + object.metadata.name + ' ' + object.metadata.namespace + ' ' + "
        "string(object.metadata.uid == '') + ' ' + string(object.spec.expirationSeconds) + ' ' + "
        "string(size(object.spec.audiences)) + ' ' + "
        "string(object.spec.boundObjectRef == null) + ' ' + object.status.token + ' ' + "
        "string(object.status.expirationTimestamp == null)")},
        rules=[rule("serviceaccounts/token", "CREATE")], selects=False, requests=[
            ("POST", tokens, {"metadata": {"name": "token"}}), *(("POST", f"{tokens}/{name}/token", body) for name, body in (
                ("token", {"spec": {}}), ("token", {"spec": {"expirationSeconds": 700, "audiences": ["a", "b"]}}), ("none", {"spec": {}}),
                ("token", {"metadata": {"name": "token", "namespace": "default"}, "spec": {}, "status": {"token": "x"}}),
                ("token", {"spec": {"expirationSeconds": 10}}), ("token", {"spec": {"boundObjectRef": {"kind": "Other",
                                                                                                       "apiVersion": "v1"}}}),
                ("token", {"spec": {"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "none"}}})))])
    for exact in (False, True):
        name = "scaler-exact" if exact else "scaler"
        yield deny(name, "object.apiVersion == 'autoscaling/v2' && object.spec.metrics[0].resource.target.averageUtilization < 50"
                   " && request.kind.version == 'v2' && request.requestKind.version == 'v1'",
                   rules=[rule("horizontalpodautoscalers", group="autoscaling", version="v2")],
                   match={"matchPolicy": "Exact"} if exact else None, requests=[create(name, path=SCALERS, spec={
                       "maxReplicas": 3, "scaleTargetRef": {"kind": "Deployment", "name": "x", "apiVersion": "apps/v1"},
                       "targetCPUUtilizationPercentage": 60})])
    yield deny("lamp", "object.apiVersion == 'example.com/v1' && request.requestResource.version == 'v1beta1'"
               " && request.resource.version == 'v1' && object.spec.on", rules=[rule("lamps", group="example.com")], requests=[
                   create("lamp", path=LAMPS, spec={"on": False}), create("lamp", path=LAMPS, spec={"on": True}),
                   ("PATCH", f"{LAMPS}/lamp", {"spec": {"on": False}}, MERGE)])
    yield deny("lamp-same", "object.apiVersion == 'x'", rules=[rule("lamps", group="example.com", version="v1beta1")],
               requests=[create("lamp-same", path=LAMPS)])
    kind = {"paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}}
    shows = {"expression": "object.metadata.name == params.data.name", "messageExpression": "'wanted ' + params.data.name"}
    yield deny("param", shows, bound=params("param-a"), **kind)
    yield deny("param-elsewhere", shows, bound=params("param-b", namespace="kube-public"), **kind)
    yield deny("param-fields", "params.kind == 'x' || params.apiVersion == 'x' || params.metadata.name != 'param-a'",
               bound=params("param-a"), **kind)
    yield deny("param-missing", shows, bound=params("none"), **kind)
    yield deny("param-missing-allowed", shows, bound=params("none", "Allow"), **kind)
    yield deny("param-missing-ignored", shows, bound=params("none"), failurePolicy="Ignore", **kind)
    yield deny("param-missing-warn", shows, bound=params("none"), actions="Warn", **kind)
    yield deny("param-unused", "params == null", **kind)
    yield deny("param-selected", shows, bound=params(selector={"matchLabels": {"set": "one"}}), **kind)
    yield deny("param-selected-none", shows, bound=params(selector={"matchLabels": {"set": "none"}}), **kind)
    yield deny("param-cluster", shows, bound=params("param-a"), rules=[rule("namespaces")], **kind,
               requests=[("POST", "/api/v1/persistentvolumes", {"metadata": {"name": "x"}}),
                         create("param-cluster", path="/apis/scheduling.k8s.io/v1/priorityclasses", value=1)])
    yield deny("param-cluster-scoped", shows, bound=params("param-a"), rules=[rule("priorityclasses", group="scheduling.k8s.io")],
               **kind, requests=[create("param-cluster-scoped", path="/apis/scheduling.k8s.io/v1/priorityclasses", value=1)])
    yield deny("param-namespace", "params.metadata.name == 'x'", paramKind={"apiVersion": "v1", "kind": "Namespace"},
               bound=params("default", namespace="default"))
    yield deny("param-unknown", shows, bound=params("x"), paramKind={"apiVersion": "example.com/v1", "kind": "Unknown"})
    yield deny("param-unknown-core", shows, bound=params("x"), paramKind={"apiVersion": "v1", "kind": "Unknown"})
    yield deny("param-unknown-ignored", shows, bound=params("x"), failurePolicy="Ignore",
               paramKind={"apiVersion": "example.com/v1", "kind": "Unknown"})
    yield deny("param-condition", "false", bound=params("param-a"), matchConditions=[
        {"name": "x", "expression": "params.data.name == 'other'"}], **kind)
    yield deny("param-lamp", "params.spec.on", bound=params("parameter"), paramKind={"apiVersion": "example.com/v1beta1", "kind": "Lamp"})
    yield deny("dear", "[0,1,2,3,4,5,6,7,8,9].all(a, [0,1,2,3,4,5,6,7,8,9].all(b, [0,1,2,3,4,5,6,7,8,9].all(c, "
               "[0,1,2,3,4,5,6,7,8,9].all(d, [0,1,2,3,4,5,6,7,8,9].all(e, [0,1,2,3,4,5,6,7,8,9].all(f, a + b + c + d + e + f >= 0))))))")
    loop = ("[0,1,2,3,4,5,6,7,8,9].all(a, [0,1,2,3,4,5,6,7,8,9].all(b, [0,1,2,3,4,5,6,7,8,9].all(c, "
            "[0,1,2,3,4,5,6,7,8,9].all(d, a + b + c + d >= 0))))")
    yield deny("worker", f"{loop} && object.metadata.name == 'x'")
    yield deny("out-of-budget", *[" && ".join([loop] * 9)] * 13)


REFUSED = [
    (POLICIES, policy("r-syntax", "object.")),
    (POLICIES, policy("r-type", "'a'")),
    (POLICIES, policy("r-dyn", "object")),
    (POLICIES, policy("r-request", "request")),
    (POLICIES, policy("r-undeclared", "self.x == 1")),
    (POLICIES, policy("r-field", "request.nothing == 1")),
    (POLICIES, policy("r-uid", "namespaceObject.metadata.uid == ''")),
    (POLICIES, policy("r-params", "params == null")),
    (POLICIES, policy("r-variables", "variables.a == 1")),
    (POLICIES, policy("r-variable", "variables.b == 1", variables=[{"name": "a", "expression": "1"}])),
    (POLICIES, policy("r-variable-type", "variables.a == 1", variables=[{"name": "a", "expression": "'x'"}])),
    (POLICIES, policy("r-variable-bad", "variables.a == 1", variables=[{"name": "a", "expression": "1 +"}])),
    (POLICIES, policy("r-variable-order", "true", variables=[{"name": "a", "expression": "variables.b"},
                                                             {"name": "b", "expression": "1"}])),
    (POLICIES, policy("r-variable-list", "variables.a", variables=[{"name": "a", "expression": "[[1]]"}])),
    (POLICIES, policy("r-variable-object", "variables.a", variables=[{"name": "a", "expression": "request.userInfo"}])),
    (POLICIES, policy("r-message", {"expression": "true", "messageExpression": "1"})),
    (POLICIES, policy("r-message-params", {"expression": "true", "messageExpression": "params.x"})),
    (POLICIES, policy("r-condition", "true", matchConditions=[{"name": "x", "expression": "object.x == 1 &&"}])),
    (POLICIES, policy("r-condition-type", "true", matchConditions=[{"name": "x", "expression": " 1 "}])),
    (POLICIES, policy("r-condition-variables", "true", variables=[{"name": "a", "expression": "true"}],
                      matchConditions=[{"name": "x", "expression": "variables.a"}])),
    (POLICIES, policy("r-annotation", "true", auditAnnotations=[{"key": "k", "valueExpression": " 1 "}])),
    (POLICIES, policy("r-annotation-object", "true", auditAnnotations=[{"key": "k", "valueExpression": "object"}])),
    (POLICIES, policy("r-many", "1", "2 +", {"expression": "x", "messageExpression": "y"})),
    (POLICIES, policy("r-lines", "object.a ==\n  2 +\n  request.b")),
    (POLICIES, policy("r-overload", "1 == 'a'")),
    (POLICIES, policy("r-no-fields", "authorizer.x == 1", "quantity('1').x == 1", "url('https://a').host == ''", "ip('1.1.1.1').x == 1")),
]


def shown(sent, warnings):
    code, body = sent
    body = json.loads(UID.sub("UID", TIME.sub('"TIME"', json.dumps(body))))
    if isinstance(body, dict):
        for name in ("resourceVersion", "managedFields", "generation"):
            body.get("metadata", {}).pop(name, None)
    return code, body, sorted(text for text in warnings if OURS not in text)


class SamePolicies(SideBySide):
    client = Client
    # Names of objects are shown as they are; what is generated differs.
    random = re.compile(r"generated-[a-z0-9]{5}")

    def both(self, *case):
        answers = []
        for client in (self.theirs, self.ours):
            sent = client.send(*case)
            answers.append(shown(json.loads(self.random.sub("generated-RANDOM", json.dumps(sent))), client.warnings))
        return answers

    def same(self, *case):
        theirs, ours = self.both(*case)
        with self.subTest(case=str(case)[:300]):
            self.assertEqual(ours, theirs)

    def create(self, *case):
        for answer in self.both("POST", *case):
            self.assertEqual(answer[0], 201, answer)

    def wait_for_policies(self):
        """The real one applies changes within a second or so."""
        marker = policy("marker", "false")
        self.create(POLICIES, marker)
        self.create(BINDINGS, binding("marker"))
        end = time.monotonic() + READY_SECONDS
        while self.theirs.send("POST", CMS + "?dryRun=All", config("marker"))[0] == 201:
            self.assertLess(time.monotonic(), end)
            time.sleep(0.2)
        self.assertEqual(self.ours.send("POST", CMS + "?dryRun=All", config("marker"))[0], 422)
        time.sleep(2)

    def test_requests(self):
        self.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", CRD)
        self.wait_for(LAMPS)
        time.sleep(2)
        for path, name, data in ((CMS, "param-a", "a"), (CMS, "param-c", "c"),
                                 ("/api/v1/namespaces/kube-public/configmaps", "param-b", "b")):
            self.create(path, {"metadata": {"name": name, "labels": {"set": "one" if name == "param-c" else "other"}},
                               "data": {"name": data}})
        self.create(LAMPS, {"kind": "Lamp", "apiVersion": "example.com/v1beta1", "metadata": {"name": "parameter"},
                            "spec": {"on": False}})
        table = list(cases())
        for policies, bindings, _ in table:
            for one in policies:
                self.same("POST", POLICIES, one)
            for one in bindings:
                self.same("POST", BINDINGS, one)
        self.wait_for_policies()
        for _, _, requests in table:
            for request in requests:
                self.same(*request)
        with self.theirs.open("GET", "/metrics", None, "", "text/plain") as answer:
            theirs = self.counted(answer.read().decode())
        with urllib.request.urlopen(self.server.url + "/metrics") as answer:
            ours = self.counted(answer.read().decode())
        self.assertEqual(ours, theirs)
        self.assertEqual({label for row in theirs for label in row if "error_type" in label or "action" in label}, {
            f'{name}="{value}"' for name, values in (("error_type", "invalid_error out_of_budget"),
                                                     ("enforcement_action", "deny warn audit allow")) for value in values.split()})

    def counted(self, text):
        """What the metrics have counted; not the marker, which is sent until it applies."""
        rows = re.findall(r"^(apiserver_validating_admission_policy_check_(?:total|duration_seconds_count))\{(.*)\} (\S+)$", text, re.M)
        return {(name, *sorted(labels.split(","))): float(value) for name, labels, value in rows if '"marker"' not in labels}

    def test_refused(self):
        for case in REFUSED:
            self.same("POST", *case)


if __name__ == "__main__":
    unittest.main()
