#!/usr/bin/python3
"""What MutatingAdmissionPolicies do to objects in a real kube-apiserver and in Vigil: a table of policies, each with the requests
that it concerns, and policies and bindings that are refused themselves. Answers and warnings are compared as a whole.
tools/build-kube builds the real kube-apiserver."""
import pathlib
import sys
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/live"))
sys.path.insert(0, str(ROOT / "tests/kube"))
import same_policies_test as policies  # noqa: E402
from same_policies_test import (CMS, CRD, DEPLOYMENTS, GROUP, LAMPS, NAMESPACES, PODS, READY_SECONDS, SCALERS, config, create,  # noqa: E402
                                params, rule)
from same_writes_test import MERGE, Client, deployment  # noqa: E402
from side_by_side import SideBySide  # noqa: E402

POLICIES, BINDINGS = f"{GROUP}/mutatingadmissionpolicies", f"{GROUP}/mutatingadmissionpolicybindings"
SERVICES = "/api/v1/namespaces/default/services"
APPLY = "application/apply-patch+yaml"
TYPED = {"metadata": {"name": "bulbs.example.com"}, "spec": {
    "group": "example.com", "scope": "Namespaced", "names": {"plural": "bulbs", "kind": "Bulb"},
    "versions": [{"name": "v1", "served": True, "storage": True, "subresources": {"status": {}}, "schema": {"openAPIV3Schema": {
        "type": "object", "properties": {
            "spec": {"type": "object", "properties": {
                "watts": {"type": "integer", "maximum": 100}, "color": {"type": "string", "default": "white"},
                "tags": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
                "parts": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"], "items": {
                    "type": "object", "required": ["name"], "properties": {"name": {"type": "string"}, "size": {"type": "integer"}}}},
                "plain": {"type": "array", "items": {"type": "string"}},
                "whole": {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {"a": {"type": "string"}}}}},
            "status": {"type": "object", "properties": {"on": {"type": "boolean"}}}}}}}]}}
BULBS = "/apis/example.com/v1/namespaces/default/bulbs"


def apply(text):
    return {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": text}}


def patch(text):
    return {"patchType": "JSONPatch", "jsonPatch": {"expression": text}}


def labels(**members):
    """An apply configuration that sets labels; values are expressions."""
    return apply("Object{metadata: Object.metadata{labels: {" + ", ".join(f"'{name}': {of}" for name, of in members.items()) + "}}}")


def policy(name, *mutations, rules=None, match=None, case=None, **spec):
    """Concerns only objects with the label case=NAME, so that all policies can exist at the same time."""
    constraints = {"resourceRules": rules or [rule(operations="CREATE,UPDATE")], **(match or {}),
                   "objectSelector": {"matchLabels": {"case": case or name}}}
    return {"metadata": {"name": name}, "spec": {"matchConstraints": constraints, "mutations": list(mutations),
                                                 "reinvocationPolicy": "Never", **spec}}


def binding(name, policy_name=None, **spec):
    return {"metadata": {"name": name}, "spec": {"policyName": policy_name or name, **spec}}


def mutate(case, *mutations, requests=None, bound=None, **more):
    """One policy, its binding, and requests: by default the creation of a ConfigMap."""
    return [policy(case, *mutations, **more)], [binding(case, **(bound or {}))], requests or [create(case)]


def several(case, *made, requests=None):
    """Policies of one case, by their suffixes, each with a binding."""
    named = [(f"{case}-{suffix}", mutations, spec) for suffix, mutations, spec in made]
    return ([policy(name, *mutations, case=case, **spec) for name, mutations, spec in named],
            [binding(name) for name, _, _ in named], requests or [create(case)])


def pod(case, name=None, **spec):
    return create(case, name, path=PODS, spec={"containers": [{"name": "c", "image": "i"}], **spec})


def app(case, **spec):
    made = deployment(case)
    made["metadata"] = {"name": case, "labels": {"case": case}}
    made["spec"].update(spec)
    return "POST", DEPLOYMENTS, made


ALWAYS = [rule(operations="CREATE,UPDATE")]
OF_PODS, OF_APPS = {"rules": [rule("pods", "CREATE,UPDATE")]}, {"rules": [rule("deployments", "CREATE,UPDATE", group="apps")]}
OF_BULBS = {"rules": [rule("bulbs", "CREATE,UPDATE", group="example.com")]}
OF_SERVICES = {"rules": [rule("services", "CREATE,UPDATE")]}

CONFIGS = [  # of ConfigMaps
    "Object{}", "Object{data: {'a': 'b'}}", "Object{data: {'a': object.metadata.name}}", "Object{data: Object.data{a: 'b'}}",
    "Object{data: object.metadata.labels}", "Object{data: {'a': 'b'}, data: {'c': 'd'}}", "Object{?data: optional.none()}",
    "Object{?data: object.?data}", "Object{data: {'a': 1}}", "Object{data: {'a': null}}", "Object{data: 'x'}",
    "Object{data: {1: 'x'}}", "Object{data: [1]}", "Object{nothing: 1}", "Object{data: Object.other{a: 'b'}}", "Object{data: Object{}}",
    "Object{data: Object.data{a: Object.data.b{}}}", "Object{metadata: Object.metadata{labels: Object.metadata.labels{x: 'y'}}}",
    "Object{metadata: Object.metadata{annotations: {'a': string(1 + 1)}}}", "Object{metadata: Object.metadata{name: 'other'}}",
    "Object{metadata: Object.metadata{namespace: 'other'}}", "Object{metadata: Object.metadata{uid: 'x'}}",
    "Object{metadata: Object.metadata{finalizers: ['example.com/a']}}", "Object{metadata: Object.metadata{labels: {'x': 'not valid!'}}}",
    "Object{metadata: Object.metadata{ownerReferences: [Object.metadata.ownerReferences{apiVersion: 'v1', kind: 'Pod', name: 'p', uid: "
    "'u'}]}}",
    "Object{kind: 'Other'}", "Object{apiVersion: 'v2'}", "Object{immutable: true}", "Object{immutable: 'true'}",
    "Object{binaryData: {'a': 'eA=='}}",
    "Object{binaryData: {'a': '!'}}", "Object{data: {'a': 1 / 0 == 1 ? 'x' : 'y'}}", "Object{data: object.missing}",
    "Object{data: {'a': params.x}}",
    "Object{data: {'a': namespaceObject.metadata.name}}", "Object{data: {'a': request.operation, 'b': request.name}}",
    "Object{data: {'op': oldObject == null ? 'new' : 'old'}}", "has(object.data) ? Object{} : Object{data: {'a': 'b'}}",
    "Object{data: object.metadata.labels.transformMap(k, v, k + v)}", "Object{data: {'a': string(object)}}",
    "Object{data: {'a': optional.of('x')}}", "Object{data: {'a': dyn(1.5)}}", " Object{data: {'a': 'b'}} \n",
]

PATCHES = [  # of ConfigMaps with the data {"a": "b"}
    "[]", "[JSONPatch{op: 'add', path: '/data/x', value: 'y'}]", "[JSONPatch{op: 'replace', path: '/data', value: {'c': 'd'}}]",
    "[JSONPatch{op: 'remove', path: '/data/a'}]", "[JSONPatch{op: 'remove', path: '/data/none'}]",
    "[JSONPatch{op: 'remove', path: '/data'}]",
    "[JSONPatch{op: 'copy', from: '/data/a', path: '/data/b'}]", "[JSONPatch{op: 'move', from: '/data/a', path: '/data/b'}]",
    "[JSONPatch{op: 'test', path: '/data/a', value: 'b'}, JSONPatch{op: 'add', path: '/data/x', value: 'y'}]",
    "[JSONPatch{op: 'add', path: '/data/x', value: 'y'}, JSONPatch{op: 'test', path: '/data/a', value: 'z'}]",
    "[JSONPatch{op: 'add', path: '/none/x', value: 'y'}]", "[JSONPatch{op: 'other', path: '/data/x', value: 'y'}]",
    "[JSONPatch{op: 'add', path: '/data/x'}]",
    "[JSONPatch{op: 'add', path: '/data/x', value: 1}]", "[JSONPatch{op: 'add', path: '/data/x', value: null}]",
    "[JSONPatch{op: 'add', path: '/nothing', value: 1}]",
    "[JSONPatch{op: 'add', path: '/data/x', value: object.none}]", "[JSONPatch{op: 'replace', path: '/data', value: Object.data{c: 'd'}}]",
    "[JSONPatch{op: 'replace', path: '/data', value: Object{c: 'd'}}]",
    "[JSONPatch{op: 'replace', path: '/data', value: Object.data{c: Object.x{}}}]",
    "[JSONPatch{op: 'add', path: '/metadata/labels/' + jsonpatch.escapeKey('example.com/a~b'), value: 'x'}]",
    "[JSONPatch{op: 'add', path: '/metadata/labels/' + jsonpatch.escapeKey('example.com/a'), value: 'x'}]",
    "[JSONPatch{op: 'add', path: '/metadata/annotations', value: {'a': 'b'}}]",
    "[JSONPatch{op: 'add', path: '/metadata/annotations/a', value: 'b'}]",
    "[JSONPatch{op: 'replace', path: '/metadata/name', value: 'other'}]",
    "[JSONPatch{op: 'remove', path: '/metadata/labels'}]", "[JSONPatch{op: 'remove', path: '/metadata'}]",
    "[JSONPatch{op: 'replace', path: '', value: {}}]",
    "[JSONPatch{op: 'add', path: '/immutable', value: true}]", "[JSONPatch{op: 'add', path: '/immutable', value: 1.0}]",
    "[JSONPatch{op: 'add', path: '/data/x', value: b'abc'}]",
    "[JSONPatch{op: 'add', path: '/data/x', value: duration('90s')}]",
    "[JSONPatch{op: 'add', path: '/data/x', value: timestamp('2026-01-02T03:04:05Z')}]",
    "[JSONPatch{op: 'add', path: '/data/x', value: 9007199254740993}]",
    "object.data.map(k, JSONPatch{op: 'add', path: '/data/x' + k, value: object.data[k]})",
    "has(object.immutable) ? [] : [JSONPatch{op: 'add', path: '/immutable', value: false}]",
    "[JSONPatch{op: 'add', path: object.data.a, value: 'x'}]",
    "[JSONPatch{op: 'add', path: '/data/x', value: string(1 / 0)}]", "[JSONPatch{path: '/data/x', value: 'y'}]",
    "[JSONPatch{op: 'add', value: 'y'}]",
    "[JSONPatch{}]", "[JSONPatch{op: dyn(1), path: '/data/x'}]", "[JSONPatch{op: 'copy', path: '/data/b'}]",
    "[JSONPatch{op: 'move', from: '/none', path: '/data/b'}]",
    "[?optional.of(JSONPatch{op: 'add', path: '/data/x', value: 'y'})]",
]

OTHERS = [
    ("pod-label", OF_PODS, [labels(x="'y'")], pod), ("pod-env", OF_PODS, [apply(
        "Object{spec: Object.spec{containers: object.spec.containers.map(c, Object.spec.containers{name: c.name, env: "
        "[Object.spec.containers.env{name: 'A', value: 'b'}]})}}")], pod),
    ("pod-init", OF_PODS, [apply("Object{spec: Object.spec{initContainers: [Object.spec.initContainers{name: 'i', image: 'x', "
                                 "restartPolicy: 'Always'}]}}")], pod),
    ("pod-args", OF_PODS, [apply("Object{spec: Object.spec{containers: [Object.spec.containers{name: 'c', args: ['a']}]}}")], pod),
    ("pod-no-key", OF_PODS, [apply("Object{spec: Object.spec{containers: [Object.spec.containers{image: 'x'}]}}")], pod),
    ("pod-undeclared", OF_PODS, [apply("Object{spec: Object.spec{nothing: 1}}")], pod),
    ("pod-type", OF_PODS, [apply("Object{spec: Object.spec{priority: 'x'}}")], pod),
    ("pod-wrong-place", OF_PODS, [apply("Object{spec: Object.spec{securityContext: Object.securityContext{runAsUser: 1}}}")], pod),
    ("pod-security", OF_PODS, [apply("Object{spec: Object.spec{securityContext: Object.spec.securityContext{runAsUser: 1}}}")], pod),
    ("pod-grace", OF_PODS, [apply("Object{spec: Object.spec{terminationGracePeriodSeconds: 5}}")], pod),
    ("pod-resources", OF_PODS, [patch("[JSONPatch{op: 'add', path: '/spec/containers/0/resources/limits', value: {'cpu': '1'}}]")], pod),
    ("pod-limits", OF_PODS, [apply("Object{spec: Object.spec{containers: [Object.spec.containers{name: 'c', resources: "
                                   "Object.spec.containers.resources{limits: {'cpu': '2000m', 'memory': '1Gi'}}}]}}")], pod),
    ("pod-image",
     OF_PODS, [patch("[JSONPatch{op: 'replace', path: '/spec/containers/0/image', value: 'registry/' + object.spec.containers[0].image}]")],
     pod),
    ("pod-append",
     OF_PODS, [patch("[JSONPatch{op: 'add', path: '/spec/containers/-', value: Object.spec.containers{name: 'd', image: 'j'}}]")], pod),
    ("pod-patch-type", OF_PODS, [patch("[JSONPatch{op: 'add', path: '/spec/priority', value: 'x'}]")], pod),
    ("pod-patch-unknown", OF_PODS, [patch("[JSONPatch{op: 'add', path: '/spec/nothing', value: 1}]")], pod),
    ("pod-invalid", OF_PODS, [apply("Object{spec: Object.spec{restartPolicy: 'Sometimes'}}")], pod),
    ("pod-status-field", OF_PODS, [apply("Object{status: Object.status{phase: 'Failed'}}")], pod),
    ("app-replicas", OF_APPS, [apply("Object{spec: Object.spec{replicas: object.spec.replicas + 1}}")], app),
    ("app-revision", OF_APPS, [apply("Object{spec: Object.spec{revisionHistoryLimit: 3, minReadySeconds: 4}}")], app),
    ("app-template", OF_APPS, [apply("Object{spec: Object.spec{template: Object.spec.template{metadata: Object.spec.template.metadata{"
                                     "annotations: {'a': 'b'}}}}}")], app),
    ("app-sidecar", OF_APPS, [apply("Object{spec: Object.spec{template: Object.spec.template{spec: Object.spec.template.spec{containers: "
                                    "[Object.spec.template.spec.containers{name: 'side', image: 'j'}]}}}}")], app),
    ("app-strategy", OF_APPS, [patch("[JSONPatch{op: 'replace', path: '/spec/strategy', value: Object.spec.strategy{type: 'Recreate'}}]")],
     app),
    ("app-selector", OF_APPS, [apply("Object{spec: Object.spec{selector: Object.spec.selector{matchLabels: {'a': 'b'}}}}")], app),
    ("service-port", OF_SERVICES, [apply("Object{spec: Object.spec{ports: [Object.spec.ports{port: 81, name: 'b'}]}}")],
     lambda case: create(case, path=SERVICES, spec={"ports": [{"port": 80, "name": "a"}], "clusterIP": "None", "selector": {"a": "b"}})),
    ("service-selector", OF_SERVICES, [apply("Object{spec: Object.spec{selector: {'a': 'b'}}}")],
     lambda case: create(case, path=SERVICES, spec={"ports": [{"port": 80}], "clusterIP": "None"})),
    ("bulb-color", OF_BULBS, [apply("Object{spec: Object.spec{color: 'red', watts: 5}}")],
     lambda case: create(case, path=BULBS, spec={"watts": 1})),
    ("bulb-default", OF_BULBS, [patch("[JSONPatch{op: 'add', path: '/spec', value: Object.spec{watts: 3}}]")],
     lambda case: create(case, path=BULBS)),
    ("bulb-default-spec", OF_BULBS, [apply("Object{spec: Object.spec{watts: 3}}")], lambda case: create(case, path=BULBS)),
    ("bulb-invalid", OF_BULBS, [apply("Object{spec: Object.spec{watts: 500}}")], lambda case: create(case, path=BULBS, spec={"watts": 1})),
    ("bulb-type", OF_BULBS, [apply("Object{spec: Object.spec{watts: 'x'}}")], lambda case: create(case, path=BULBS, spec={"watts": 1})),
    ("bulb-patch-type", OF_BULBS, [patch("[JSONPatch{op: 'add', path: '/spec/watts', value: 'x'}]")],
     lambda case: create(case, path=BULBS, spec={"watts": 1})),
    ("bulb-undeclared", OF_BULBS, [apply("Object{spec: Object.spec{nothing: 1}}")],
     lambda case: create(case, path=BULBS, spec={"watts": 1})),
    ("bulb-tags", OF_BULBS, [apply("Object{spec: Object.spec{tags: ['b', 'c']}}")],
     lambda case: create(case, path=BULBS, spec={"tags": ["a", "b"]})),
    ("bulb-parts",
     OF_BULBS, [apply("Object{spec: Object.spec{parts: [Object.spec.parts{name: 'a', size: 2}, Object.spec.parts{name: 'b'}]}}")],
     lambda case: create(case, path=BULBS, spec={"parts": [{"name": "a", "size": 1}, {"name": "z"}]})),
    ("bulb-plain", OF_BULBS, [apply("Object{spec: Object.spec{plain: ['x']}}")], lambda case: create(case, path=BULBS, spec={"watts": 1})),
    ("bulb-whole", OF_BULBS, [apply("Object{spec: Object.spec{whole: Object.spec.whole{a: 'x'}}}")],
     lambda case: create(case, path=BULBS, spec={"watts": 1})),
    ("bulb-status-field", OF_BULBS, [apply("Object{status: Object.status{on: true}}")],
     lambda case: create(case, path=BULBS, spec={"watts": 1})),
    ("lamp", {"rules": [rule("lamps", "CREATE,UPDATE", group="example.com")]}, [labels(x="object.apiVersion")],
     lambda case: create(case, path=LAMPS)),
    ("lamp-patch", {"rules": [rule("lamps", "CREATE,UPDATE", group="example.com", version="v1beta1")]},
     [patch("[JSONPatch{op: 'add', path: '/spec', value: {'any': 'thing'}}]")], lambda case: create(case, path=LAMPS)),
    ("scaler", {"rules": [rule("horizontalpodautoscalers", "CREATE,UPDATE", group="autoscaling", version="v2")]},
     [apply("Object{spec: Object.spec{maxReplicas: 7}, metadata: Object.metadata{labels: {'seen': object.apiVersion.replace('/', '-')}}}")],
     lambda case: create(case, path=SCALERS, spec={
         "maxReplicas": 3, "scaleTargetRef": {"kind": "Deployment", "name": "x", "apiVersion": "apps/v1"},
         "targetCPUUtilizationPercentage": 60})),
    ("namespace", {"rules": [rule("namespaces", "CREATE,UPDATE")]}, [labels(x="namespaceObject == null ? 'null' : 'set'")],
     lambda case: create(case, path=NAMESPACES)),
]


def cases():
    for number, text in enumerate(CONFIGS):
        if "params" not in text:
            yield mutate(f"apply-{number}", apply(text))
            yield mutate(f"apply-ignored-{number}", apply(text), failurePolicy="Ignore")
    for number, text in enumerate(PATCHES):
        yield mutate(f"patch-{number}", patch(text), requests=[create(f"patch-{number}", data={"a": "b"})])
    for case, spec, mutations, made in OTHERS:
        yield mutate(case, *mutations, requests=[made(case)], **spec)
    yield mutate("several", labels(x="'1'"), labels(y="object.metadata.labels.x"), patch(
        "[JSONPatch{op: 'add', path: '/metadata/labels/z', value: object.metadata.labels.y + '2'}]"))
    yield mutate("several-errors", apply("Object{nothing: 1}"), labels(y="'1'"), apply("Object{data: object.none}"))
    yield mutate("several-ignored", apply("Object{nothing: 1}"), labels(y="'1'"), apply("Object{data: object.none}"),
                 failurePolicy="Ignore")
    yield mutate("internal-ignored", patch("[JSONPatch{op: 'add', path: '/nothing', value: 1}]"), failurePolicy="Ignore")
    yield mutate("variables", labels(x="variables.b"), variables=[
        {"name": "a", "expression": "object.metadata.name"}, {"name": "b", "expression": "variables.a + '1'"}])
    yield mutate("variable-again", labels(x="string(variables.n)", b="'b'"), labels(y="string(variables.n)"), variables=[
        {"name": "n", "expression": "object.metadata.labels.size()"}])
    yield mutate("variable-fails", labels(x="variables.a"), variables=[{"name": "a", "expression": "string(1 / 0)"}])
    yield mutate("variable-missing", labels(x="'x'"), variables=[{"name": "a", "expression": "string(1 / 0)"}])
    for name, text in (("true", "object.metadata.name != 'x'"), ("false", "object.metadata.name == 'x'"), ("error", "1 / 0 == 1"),
                       ("namespace", "namespaceObject == null")):
        yield mutate(f"condition-{name}", labels(x="'y'"), matchConditions=[{"name": "c", "expression": text}])
    yield mutate("condition-ignored", labels(x="'y'"), failurePolicy="Ignore", matchConditions=[{"name": "c", "expression": "1 / 0 == 1"}])
    yield mutate("condition-errors", labels(x="'y'"), matchConditions=[
        {"name": "c", "expression": "1 / 0 == 1"}, {"name": "d", "expression": "object.none == 1"}])
    yield mutate("update", labels(op="request.operation", old="oldObject == null ? 'none' : oldObject.metadata.labels.?op.orValue('no')"),
                 requests=[
        create("update", data={"a": "b"}), ("PUT", f"{CMS}/update", config("update", data={"a": "c"})),
        ("PATCH", f"{CMS}/update", {"data": {"b": "c"}}, MERGE), ("PATCH", f"{CMS}/update", {"data": {"b": "c"}}, MERGE)])
    yield mutate("update-only", labels(x="'y'"), rules=[rule(operations="UPDATE")], requests=[
        create("update-only"), ("PATCH", f"{CMS}/update-only", {"data": {"b": "c"}}, MERGE)])
    yield mutate("update-name", patch("[JSONPatch{op: 'replace', path: '/metadata/name', value: 'z'}]"), rules=[rule(operations="UPDATE")],
                 requests=[
        create("update-name"), ("PATCH", f"{CMS}/update-name", {"data": {"b": "c"}}, MERGE)])
    yield mutate("update-app", apply("Object{spec: Object.spec{replicas: 4}, status: Object.status{replicas: 9}}"), **OF_APPS, requests=[
        app("update-app"), ("PATCH", f"{DEPLOYMENTS}/update-app", {"spec": {"replicas": 2}}, MERGE)])
    yield mutate("update-immutable", apply("Object{spec: Object.spec{selector: Object.spec.selector{matchLabels: {'z': 'z'}}}}"),
                 rules=[rule("deployments", "UPDATE", group="apps")],
                 requests=[app("update-immutable"), ("PATCH", f"{DEPLOYMENTS}/update-immutable", {"spec": {"replicas": 2}}, MERGE)])
    yield mutate("delete", labels(x="'y'"), requests=[create("delete"), ("DELETE", f"{CMS}/delete")])
    yield mutate("applied", labels(x="'y'"), requests=[
        ("PATCH", f"{CMS}/applied?fieldManager=m", {"apiVersion": "v1", "kind": "ConfigMap", **config("applied", data={"a": "b"})}, APPLY),
        ("PATCH", f"{CMS}/applied?fieldManager=m", {"apiVersion": "v1", "kind": "ConfigMap", **config("applied", data={"a": "c"})}, APPLY),
        ("PATCH", f"{CMS}/applied?fieldManager=n", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "applied"},
                                                    "data": {"b": "c"}}, APPLY),
        ("PATCH", f"{CMS}/applied", {"data": {"z": "z"}}, MERGE)])
    yield mutate("dry", labels(x="'y'", dry="string(request.dryRun)"), requests=[
        ("POST", f"{CMS}?dryRun=All", config("dry")), ("GET", f"{CMS}/dry"), create("dry")])
    yield mutate("generated", labels(x="has(object.metadata.name) ? 'named' : 'unnamed'"), requests=[
        ("POST", CMS, {"metadata": {"generateName": "generated-", "labels": {"case": "generated"}}})])
    yield mutate("status", labels(x="request.subResource"), rules=[rule("pods/status", "UPDATE")], requests=[
        pod("status"), ("PATCH", f"{PODS}/status", {"metadata": {"labels": {"a": "b"}}}, MERGE),
        ("PATCH", f"{PODS}/status/status", {"status": {"message": "x"}}, MERGE)])
    yield mutate("bulb-status", apply("Object{status: Object.status{on: true}, spec: Object.spec{watts: 9}}"), rules=[
        rule("bulbs/status", "UPDATE", group="example.com")], requests=[
            create("bulb-status", path=BULBS, spec={"watts": 1}),
            ("PATCH", f"{BULBS}/bulb-status/status", {"status": {"on": False}}, MERGE)])

    # Scales, and what is posted.
    def scaled(case, *texts, replicas=(2, 0), **more):
        one = policy(case, *texts, rules=[rule("deployments/scale", "UPDATE", group="apps", resourceNames=[case])], **more)
        del one["spec"]["matchConstraints"]["objectSelector"]
        return [one], [binding(case)], [app(case), *(("PATCH", f"{DEPLOYMENTS}/{case}/scale", {"spec": {"replicas": n}}, MERGE)
                                                     for n in replicas), ("GET", f"{DEPLOYMENTS}/{case}/scale")]
    for number, text in enumerate((
            "[JSONPatch{op: 'replace', path: '/spec/replicas', value: 7}]", "[JSONPatch{op: 'remove', path: '/spec/replicas'}]",
            "[JSONPatch{op: 'replace', path: '/spec/replicas', value: -1}]",
            "[JSONPatch{op: 'replace', path: '/spec/replicas', value: 'x'}]",
            "[JSONPatch{op: 'add', path: '/spec/nothing', value: 1}]",
            "[JSONPatch{op: 'add', path: '/metadata/labels', value: {'a': 'b'}}]",
            "[JSONPatch{op: 'add', path: '/spec/replicas', value: object.?spec.?replicas.orValue(0) + "
            "oldObject.spec.?replicas.orValue(0)}]",
            "[JSONPatch{op: 'replace', path: '/metadata/name', value: 'other'}]",
            "[JSONPatch{op: 'remove', path: '/metadata/resourceVersion'}]",
            "[JSONPatch{op: 'replace', path: '/metadata/resourceVersion', value: '1'}]",
            "[JSONPatch{op: 'test', path: '/kind', value: 'x'}]",
            "[JSONPatch{op: 'add', path: '/status/replicas', value: 9}]")):
        yield scaled(f"scale-{number}", patch(text))
    yield scaled("scale-apply", apply("Object{spec: Object.spec{replicas: 7}}"))
    yield scaled("scale-apply-ignored", apply("Object{spec: Object.spec{replicas: 7}}"), failurePolicy="Ignore")
    yield scaled("scale-again", patch("[JSONPatch{op: 'add', path: '/spec/replicas', value: object.?spec.?replicas.orValue(0) + 1}]"),
                 reinvocationPolicy="IfNeeded")

    def posted(case, part, body, *mutations, **more):
        one = policy(case, *mutations, rules=[rule(f"pods/{part}", "CREATE", resourceNames=[case])], **more)
        del one["spec"]["matchConstraints"]["objectSelector"]
        return [one], [binding(case)], [
            ("POST", PODS, {"metadata": {"name": case}, "spec": {"containers": [{"name": "c", "image": "i"}]}}),
            ("POST", f"{PODS}/{case}/{part}", {"metadata": {"name": case}, **body}), ("GET", f"{PODS}/{case}")]
    target = {"target": {"kind": "Node", "name": "n"}}
    for number, one in enumerate((
            apply("Object{target: Object.target{name: 'other'}}"), apply("Object{metadata: Object.metadata{annotations: {'a': 'b'}}}"),
            apply("Object{nothing: 1}"), apply("Object{metadata: Object.metadata{name: 'other'}}"),
            patch("[JSONPatch{op: 'replace', path: '/target/name', value: object.target.name + request.name}]"),
            patch("[JSONPatch{op: 'remove', path: '/target/name'}]"),
            patch("[JSONPatch{op: 'replace', path: '/target/kind', value: 'Pod'}]"),
            patch("[JSONPatch{op: 'replace', path: '/metadata/namespace', value: object.metadata.namespace + 'x'}]"),
            patch("[JSONPatch{op: 'remove', path: '/target'}]"),
            patch("[JSONPatch{op: 'replace', path: '/target', value: {'kind': 'X'}}]"))):
        yield posted(f"bind-{number}", "binding", target, one)
    for number, one in enumerate((
            apply("Object{metadata: Object.metadata{labels: {'a': 'b'}}}"),
            apply("Object{deleteOptions: Object.deleteOptions{dryRun: ['All']}}"),
            patch("[JSONPatch{op: 'add', path: '/deleteOptions', value: Object.deleteOptions{dryRun: ['All']}}]"),
            patch("[JSONPatch{op: 'replace', path: '/metadata/name', value: 'other'}]"),
            patch("[JSONPatch{op: 'add', path: '/deleteOptions', value: {'nothing': 1}}]"),
            patch("[JSONPatch{op: 'add', path: '/deleteOptions', value: {'preconditions': {'uid': 'x'}}}]"))):
        yield posted(f"evict-{number}", "eviction", {}, one)
    yield posted("evict-ignored", "eviction", {}, apply("Object{metadata: Object.metadata{labels: {'a': 'b'}}}"), failurePolicy="Ignore")
    account, path = "/api/v1/namespaces/default/serviceaccounts", "/spec/expirationSeconds"
    for number, one in enumerate((
            patch(f"[JSONPatch{{op: 'replace', path: '{path}', value: object.spec.expirationSeconds / 7}}]"),
            patch("[JSONPatch{op: 'replace', path: '/metadata/name', value: 'other'}]"),
            patch(f"[JSONPatch{{op: 'remove', path: '{path}'}}]"),
            patch("[JSONPatch{op: 'add', path: '/spec/boundObjectRef', value: {'kind': 'Secret', 'apiVersion': 'v1', 'name': 'none'}}]"),
            patch("[JSONPatch{op: 'add', path: '/metadata/uid', value: 'x'}]"),
            apply("Object{spec: Object.spec{expirationSeconds: 900}}"))):
        name = f"token-{number}"
        made = policy(name, one, rules=[rule("serviceaccounts/token", "CREATE", resourceNames=[name])])
        del made["spec"]["matchConstraints"]["objectSelector"]
        # Tokens differ: what would succeed is refused for another reason.
        yield [made], [binding(name)], [("POST", account, {"metadata": {"name": name}}), ("POST", f"{account}/{name}/token", {
            "spec": {"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "none"}, "expirationSeconds": 3605}})]
    for number, (part, one) in enumerate((
            ("exec", patch("[JSONPatch{op: 'add', path: '/container', value: 'none'}]")),
            ("attach", patch("[JSONPatch{op: 'replace', path: '/container', value: 'none'}]")),
            ("attach", patch("[JSONPatch{op: 'add', path: '/nothing', value: 'none'}]")), ("exec", apply("Object{container: 'none'}")),
            ("exec", patch("[JSONPatch{op: 'add', path: '/command', value: ['a']}]")))):
        name = f"connect-{number}"
        made = policy(name, one, rules=[rule(f"pods/{part}", "CONNECT", resourceNames=[name])])
        del made["spec"]["matchConstraints"]["objectSelector"]
        yield [made], [binding(name)], [
            ("POST", PODS, {"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i"}]}}),
            ("POST", f"{PODS}/{name}/{part}?container=c")]
    yield mutate("unbound", labels(x="'y'"), bound={"policy_name": "no-such-policy"})
    yield mutate("narrow", labels(x="'y'"), bound={"matchResources": {"resourceRules": [rule(operations="UPDATE")]}}, requests=[
        create("narrow"), ("PATCH", f"{CMS}/narrow", {"data": {"a": "c"}}, MERGE)])
    kind = {"paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}}
    yield mutate("param", labels(x="params.data.name"), bound=params("param-a"), **kind)
    yield mutate("param-missing", labels(x="params.data.name"), bound=params("none"), **kind)
    yield mutate("param-missing-allowed", labels(x="params.data.name"), bound=params("none", "Allow"), **kind)
    yield mutate("param-missing-ignored", labels(x="params.data.name"), bound=params("none"), failurePolicy="Ignore", **kind)
    yield mutate("param-unused", labels(x="params == null ? 'null' : 'set'"), **kind)
    yield mutate("param-selected", labels(x="params.data.name"), bound=params(selector={"matchLabels": {"set": "one"}}), **kind)
    yield mutate("param-unknown", labels(x="'y'"), bound=params("x"), paramKind={"apiVersion": "example.com/v1", "kind": "Unknown"})
    asks = "authorizer.group('').resource('pods').namespace('default').check('get').allowed() ? 'yes' : 'no'"
    yield mutate("asks", labels(x=asks), labels(y="authorizer.requestResource.check('delete').reason().size() > 100 ? 'x' : 'y'"))
    yield mutate("asks-again", labels(n="string(int(object.metadata.labels.?n.orValue('0')) + 1)", x=asks), reinvocationPolicy="IfNeeded",
                 requests=[create("asks-again"), ("PATCH", f"{CMS}/asks-again", {"data": {"a": "c"}}, MERGE)],
                 matchConditions=[{"name": "c", "expression": "authorizer.path('/healthz').check('get').allowed()"}])
    # A policy that runs once more sees what others have done after it.
    count = "string(int(object.metadata.labels.?n.orValue('0')) + 1)"
    yield mutate("count", labels(n=count))
    yield mutate("count-again", labels(n=count), reinvocationPolicy="IfNeeded")
    yield mutate("again-nothing", apply("Object{}"), labels(n=count), reinvocationPolicy="IfNeeded")
    yield mutate("again-test", patch("[JSONPatch{op: 'test', path: '/kind', value: 'x'}]"), reinvocationPolicy="IfNeeded")
    yield mutate("again-condition", labels(n=count), reinvocationPolicy="IfNeeded", matchConditions=[
        {"name": "c", "expression": "!has(object.metadata.labels.n)"}])
    yield mutate("again-pod", labels(n=count), reinvocationPolicy="IfNeeded", requests=[pod("again-pod")], **OF_PODS)
    yield mutate("again-update", labels(n=count), reinvocationPolicy="IfNeeded", requests=[
        create("again-update"), ("PATCH", f"{CMS}/again-update", {"data": {"a": "c"}}, MERGE)])
    yield mutate("again-priority", apply("Object{spec: Object.spec{priorityClassName: 'system-cluster-critical'}}"), requests=[
        pod("again-priority"), create("again-priority", path="/api/v1/namespaces/kube-system/pods", spec={
            "containers": [{"name": "c", "image": "i"}]})],
        **OF_PODS)
    yield mutate("dear", labels(x="[0,1,2,3,4,5,6,7,8,9].all(a, [0,1,2,3,4,5,6,7,8,9].all(b, [0,1,2,3,4,5,6,7,8,9].all(c, "
                                  "[0,1,2,3,4,5,6,7,8,9].all(d, [0,1,2,3,4,5,6,7,8,9].all(e, [0,1,2,3,4,5,6,7,8,9].all(f, a + b + c + d + "
                                  "e + f >= 0)))))) ? 'x' : 'y'"))
    loop = ("[0,1,2,3,4,5,6,7,8,9].all(a, [0,1,2,3,4,5,6,7,8,9].all(b, [0,1,2,3,4,5,6,7,8,9].all(c, "
            "[0,1,2,3,4,5,6,7,8,9].all(d, a + b + c + d >= 0))))")
    yield mutate("worker", labels(x=f"{loop} ? 'x' : 'y'"), reinvocationPolicy="IfNeeded", requests=[
        create("worker"), ("PATCH", f"{CMS}/worker", {"data": {"a": "c"}}, MERGE)])


# Kubernetes does not say in which order it invokes policies: only what does not depend on it is compared.
ORDERLESS = [
    several("both", ("a", [labels(a="'1'")], {}), ("b", [labels(b="'2'")], {})),
    several("one-fails", ("a", [labels(a="'1'")], {}), ("b", [apply("Object{nothing: 1}")], {"failurePolicy": "Ignore"})),
    several("chain", ("a", [labels(a="object.metadata.labels.?b.orValue('none')")], {"reinvocationPolicy": "IfNeeded"}),
            ("b", [labels(b="'2'")], {"reinvocationPolicy": "IfNeeded"})),
]

REFUSED = [
    (POLICIES, policy(f"r-{number}", *mutations, **spec)) for number, (mutations, spec) in enumerate([
        ([apply("object.")], {}), ([apply("'a'")], {}), ([apply("object")], {}), ([apply("dyn(Object{})")], {}),
        ([apply("Object.spec{}")], {}),
        ([apply("[Object{}]")], {}), ([apply("JSONPatch{}")], {}), ([apply("Object")], {}), ([apply("Object{spec: }")], {}),
        ([apply("Object{a: 1}.a")], {}), ([apply("Objects{}")], {}), ([apply("has(object.x) ? Object{} : object")], {}),
        ([patch("JSONPatch{}")], {}), ([patch("[Object{}]")], {}), ([patch("[1]")], {}),
        ([patch("[]")], {"reinvocationPolicy": "Sometimes"}),
        ([patch("[JSONPatch{op: 1}]")], {}), ([patch("[JSONPatch{none: 1}]")], {}), ([patch("[JSONPatch{op: 'add'}, Object{}]")], {}),
        ([patch("[JSONPatch{path: jsonpatch.escapeKey(1)}]")], {}), ([patch("[dyn(JSONPatch{})]")], {}), ([patch("object.items")], {}),
        ([apply("Object{a: params.x}")], {}), ([apply("Object{a: variables.x}")], {}), ([apply("Object{a: request.none}")], {}),
        ([apply("Object{a: variables.x}")], {"variables": [{"name": "x", "expression": "Object{}"}]}),
        ([apply("Object{a: variables.x}")], {"variables": [{"name": "x", "expression": "jsonpatch.escapeKey('a')"}]}),
        ([apply("Object{}")], {"matchConditions": [{"name": "x", "expression": "Object{} == null"}]}),
        ([apply("Object{}")], {"matchConditions": [{"name": "x", "expression": "variables.x"}],
                               "variables": [{"name": "x", "expression": "true"}]}),
        ([apply("")], {}), ([apply(" ")], {}), ([{"patchType": "ApplyConfiguration"}], {}), ([{"patchType": "JSONPatch"}], {}),
        ([{"patchType": "Other"}], {}), ([{**apply("Object{}"), **patch("[]"), "patchType": "JSONPatch"}], {}),
        ([{**apply("Object{}"), **patch("[]"), "patchType": "ApplyConfiguration"}], {}), ([], {}),
        ([apply("Object{}")], {"failurePolicy": "Other"}), ([apply("Object{}")], {"rules": [rule(operations="DELETE")]}),
        ([apply("Object{a: \n  1 +\n 'x'}")], {}), ([apply("Object{?a: 1}")], {}),
        ([apply("[Object.a{}, Object.b{}] == [] ? Object{} : Object{}")], {}),
    ])]


class SameMutations(SideBySide):
    client = Client
    random = policies.SamePolicies.random
    both, same, create = policies.SamePolicies.both, policies.SamePolicies.same, policies.SamePolicies.create

    def wait_for_policies(self):
        """The real one applies changes within a second or so."""
        self.create(POLICIES, policy("marker", labels(seen="'yes'")))
        self.create(BINDINGS, binding("marker"))
        end = time.monotonic() + READY_SECONDS
        while "seen" not in self.theirs.send("POST", CMS + "?dryRun=All", config("marker"))[1]["metadata"]["labels"]:
            self.assertLess(time.monotonic(), end)
            time.sleep(0.2)
        self.assertIn("seen", self.ours.send("POST", CMS + "?dryRun=All", config("marker"))[1]["metadata"]["labels"])
        # It learns schemas of custom resources later.
        time.sleep(8)

    def test_requests(self):
        for crd in (CRD, TYPED):
            self.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd)
        self.wait_for(LAMPS)
        self.wait_for(BULBS)
        for name, data in (("param-a", "a"), ("param-c", "c")):
            labelled = {"name": name, "labels": {"set": "one" if name == "param-c" else "other"}}
            self.create(CMS, {"metadata": labelled, "data": {"name": data}})
        table = [*cases(), *ORDERLESS]
        for made, bindings, _ in table:
            for one in made:
                self.same("POST", POLICIES, one)
            for one in bindings:
                self.same("POST", BINDINGS, one)
        self.wait_for_policies()
        for _, _, requests in table:
            for request in requests:
                self.same(*request)

    def test_refused(self):
        for case in REFUSED:
            self.same("POST", *case)


if __name__ == "__main__":
    unittest.main()
