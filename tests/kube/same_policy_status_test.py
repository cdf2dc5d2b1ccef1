#!/usr/bin/python3
"""What is wrong with the types of ValidatingAdmissionPolicies, by their status: filled in by Vigil itself, and by a real
kube-controller-manager on a real kube-apiserver. tools/build-kube builds both."""
import json
import pathlib
import re
import sys
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/live"))
sys.path.insert(0, str(ROOT / "tests/kube"))
from same_policies_test import POLICIES  # noqa: E402
from same_writes_test import MERGE, Client  # noqa: E402
from side_by_side import Manager, SideBySide  # noqa: E402

WAIT_SECONDS = 120
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
BULBS = {"metadata": {"name": "bulbs.example.com"}, "spec": {
    "group": "example.com", "scope": "Namespaced", "names": {"plural": "bulbs", "kind": "Bulb"},
    "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {
        "type": "object", "properties": {
            "spec": {"type": "object", "required": ["watts"], "properties": {
                "watts": {"type": "integer"}, "price": {"type": "number"}, "on": {"type": "boolean"}, "color": {"type": "string"},
                "since": {"type": "string", "format": "date-time"}, "day": {"type": "string", "format": "date"},
                "lasts": {"type": "string", "format": "duration"}, "raw": {"type": "string", "format": "byte"},
                "port": {"x-kubernetes-int-or-string": True}, "tags": {"type": "array", "items": {"type": "string"}},
                "labels": {"type": "object", "additionalProperties": {"type": "string"}},
                "parts": {"type": "array", "items": {"type": "object", "properties": {"size": {"type": "integer"}}}},
                "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                "free": {"x-kubernetes-preserve-unknown-fields": True},
                "frees": {"type": "array", "items": {"x-kubernetes-preserve-unknown-fields": True}},
                "within": {"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True},
                "a-b": {"type": "string"}, "namespace": {"type": "string"}, "c.d/e__f": {"type": "string"}, "9x": {"type": "string"},
                "nullable": {"type": "string", "nullable": True}}},
            "metadata": {"type": "object", "properties": {"name": {"type": "string"}}}}}}},
        {"name": "v2", "served": True, "storage": False, "schema": {"openAPIV3Schema": {
            "type": "object", "x-kubernetes-preserve-unknown-fields": True}}},
        {"name": "v3", "served": False, "storage": False, "schema": {"openAPIV3Schema": {"type": "object"}}}]}}


def rule(resources, group="", version="v1", operations="*"):
    return {"apiGroups": group.split(","), "apiVersions": version.split(","), "resources": resources.split(","), "operations": [operations]}


PODS, BULB, APPS = rule("pods"), rule("bulbs", "example.com"), rule("deployments", "apps")

OF_PODS = [
    "object.nothing == 1", "object.spec.nothing == 1", "object.kind == 1", "object.apiVersion == 'v1'", "object.metadata.name == 1",
    "object.metadata.namespace == 1", "object.metadata.__namespace__ == 1", "object.metadata.labels.a == 1",
    "object.metadata.labels['a'] == 1",
    "object.metadata.creationTimestamp == 1", "object.metadata.creationTimestamp < timestamp('2026-01-01T00:00:00Z')",
    "object.metadata.managedFields[0].fieldsV1 == 1", "object.metadata.managedFields[0].fieldsV1.x == 1",
    "object.metadata.ownerReferences.all(r, r.nothing == 1)", "object.metadata.ownerReferences.all(r, r.uid == 1)",
    "object.metadata.generation == 'x'", "object.metadata.deletionGracePeriodSeconds == 1.0", "object.metadata.selfLink == 1",
    "object.spec == 1", "object.spec.containers == 1", "object.spec.containers[0] == 1", "object.spec.containers.all(c, c.image == 1)",
    "object.spec.containers.all(c, c.nothing)", "object.spec.containers.all(c, c.resources.limits.cpu == '1')",
    "object.spec.containers.all(c, c.resources.limits == 1)", "object.spec.containers.all(c, c.resources.claims == 1)",
    "object.spec.containers.all(c, has(c.securityContext) && has(c.securityContext.runAsNonRoot) && c.securityContext.runAsNonRoot)",
    "object.spec.containers.exists(c, c.livenessProbe.httpGet.port == 1)",
    "object.spec.containers.exists(c, c.livenessProbe.httpGet.port.x)",
    "object.spec.containers[0].ports[0].containerPort == 'x'", "object.spec.overhead.cpu == '1'", "object.spec.nodeSelector == 1",
    "object.spec.volumes.all(v, v.emptyDir == 1)", "object.spec.volumes.all(v, v.emptyDir.sizeLimit == '1')",
    "object.spec.volumes.all(v, v.secret.defaultMode == 'x')", "object.status.startTime == 1", "object.status.conditions[0].nothing == 1",
    "object.spec.securityContext.sysctls.map(s, s.name) == 1", "object.spec.terminationGracePeriodSeconds == '1'", "oldObject.spec.x == 1",
    "oldObject == 1", "object == oldObject", "object == params", "object.?spec.?nothing.orValue(1) == 1",
    "object.?spec.?nodeName.orValue('') == ''",
    "has(object.nothing)", "has(object.spec.nothing)", "!has(object.spec.hostNetwork) || !object.spec.hostNetwork",
    "object.spec.priority > 'x'",
    "object['spec'] == 1", "object.spec.containers.map(c, c.name).sum() == 1", "type(object) == type(oldObject)",
    "object.spec.affinity.x.y.z == 1",
    "object.spec.containers[0].image + 1 == 'x'", "string(object.spec.containers[0].image) == 1", "object in [1]",
    "'x' in object.metadata.labels",
    "1 in object.metadata.labels", "size(object.spec) == 1", "size(object.spec.containers) == 'x'", "dyn(object).nothing == 1",
    "object.spec.containers.all(c, c.env.all(e, e.valueFrom.fieldRef.path == 'x'))", "object.spec.hostname.startsWith(1)",
    "a.b == 1 && object.c == 2",
    "request.nothing == 1", "request.kind.kind == 'Pod'", "request.options.x == 1", "namespaceObject.nothing == 1",
    "namespaceObject.metadata.labels['a'] == 'x'", "namespaceObject.metadata.creationTimestamp == 1", "authorizer.nothing == 1",
    "authorizer.requestResource.check('get').allowed()", "authorizer.group('').resource('pods').check('get').allowed()",
    "authorizer.group(object.metadata).resource('pods').check('get').allowed()", "[object, 1] == [1]", "{'a': object, 'b': 1} == {}",
    "object.spec.containers.all(c,\n  c.nothing == 1 ||\n  c.image == 2)", "object.spec.x == 1 && object.spec.y == 2 && object.z",
    "object.spec.ephemeralContainers[0].targetContainerName == 1",
    "object.spec.topologySpreadConstraints[0].labelSelector.matchLabels.x == 1",
    "quantity(object.spec.containers[0].resources.limits['cpu']).isGreaterThan(quantity('1'))", "object.matches('x')",
    "object.spec.nodeName.matches('[')",
    "object.spec.tolerations.exists(t, t.key == 'a' ? t.value : t.effect)", "'%d'.format([object.spec.nodeName])", "object",
    "object.spec.nodeName",
]

OF_BULBS = [
    "object.spec.watts == 'x'", "object.spec.price == 'x'", "object.spec.on == 'x'", "object.spec.color == 1", "object.spec.since == 'x'",
    "object.spec.day == 'x'", "object.spec.lasts == 'x'", "object.spec.raw == 'x'", "object.spec.port == 'x' || object.spec.port == 1",
    "object.spec.tags == 'x'", "object.spec.labels == 'x'", "object.spec.labels.x == 1", "object.spec.parts[0].size == 'x'",
    "object.spec.parts[0].x == 1",
    "object.spec.any == 'x'", "object.spec.any.x == 'x'", "object.spec.free == 'x'", "object.spec.frees == 'x'",
    "object.spec.within.x == 'x'",
    "object.spec.within.kind == 1", "object.spec.within.metadata.name == 1", "object.spec.within.metadata.uid == 1",
    "object.spec.within.metadata.nothing == 1",
    "object.spec.a__dash__b == 1", "object.spec.namespace == 1", "object.spec.__namespace__ == 1",
    "object.spec.c__dot__d__slash__e__underscores__f == 1",
    "object.spec.nullable == null", "object.spec.watts == null", "object.metadata.uid == 1", "object.metadata.nothing == 1",
    "object.metadata.labels == 1",
    "object.kind == 1", "object.apiVersion == 1", "object.status.x == 1", "object.spec == oldObject.spec", "object.spec.parts == 1",
    "object.metadata == 1",
]

OTHERS = [  # rules, expressions, and the rest of the spec
    ([APPS], ["object.spec.replicas == 'x'", "object.spec.strategy.rollingUpdate.maxSurge == 'x'",
              "object.spec.template.spec.containers[0].x == 1",
              "object.spec.selector == 1"], {}),
    ([rule("pods,services,configmaps")], ["object.spec.x == 1", "object.data.a == 1", "object.spec.clusterIP == 'x'"], {}),
    ([rule("services,pods"), PODS], ["object.spec.x == 1"], {}),
    ([rule("deployments,statefulsets,pods", "apps,,batch", "v1,v1beta1")], ["object.spec.x == 1"], {}),
    ([rule("events")], ["object.x == 1"], {}), ([rule("events", "events.k8s.io")], ["object.x == 1", "object.eventTime == 1",
                                                                                    "object.regarding.x == 1"], {}),
    ([rule("pod,Pods,podtemplates")], ["object.x == 1"], {}), ([rule("deployments")], ["object.x == 1"], {}),
    ([rule("*")], ["object.x == 1"], {}), ([rule("pods", "*")], ["object.x == 1"], {}), ([rule("pods", "", "*")], ["object.x == 1"], {}),
    ([rule("pods,*/status")], ["object.x == 1"], {}), ([rule("pods/status")], ["object.x == 1"], {}), ([rule("nothings")],
                                                                                                       ["object.x == 1"], {}),
    ([rule("nothings"), rule("*"), PODS], ["object.x == 1"], {}), ([rule("bulbs", "example.com", "v1,v2,v3")], ["object.spec.x == 1"], {}),
    ([rule("bulbs", "", "v1")], ["object.spec.x == 1"], {}), ([BULB, PODS, APPS], ["object.spec.watts == 1"], {}),
    ([rule("pods,services,configmaps,secrets,nodes,namespaces,endpoints,limitranges,resourcequotas,serviceaccounts,"
           "persistentvolumes,events")],
     ["object.x == 1"], {}),
    ([rule("configmaps,configmaps,configmaps,configmaps,configmaps,configmaps,configmaps,configmaps,configmaps,pods,secrets")],
     ["object.x == 1"], {}),
    ([rule("pods,services,configmaps,secrets,nodes,namespaces"),
      rule("endpoints,limitranges,resourcequotas,serviceaccounts,persistentvolumes,events")],
     ["object.x == 1"], {}),
    ([rule("customresourcedefinitions", "apiextensions.k8s.io")], [
        "object.spec.versions[0].schema.openAPIV3Schema.properties['x'].type == 'x'",
        "object.spec.versions[0].schema.openAPIV3Schema.type == 1",
        "object.spec.versions[0].schema.openAPIV3Schema.default == 1", "object.spec.versions[0].schema.openAPIV3Schema.items == 1",
        "object.spec.versions[0].schema.openAPIV3Schema.not.type == 1", "object.spec.versions[0].schema.openAPIV3Schema.enum == 1",
        "object.spec.versions[0].schema.openAPIV3Schema.maximum == 'x'", "object.spec.conversion.webhook.clientConfig.caBundle == 'x'"],
     {}),
    ([rule("apiservices", "apiregistration.k8s.io")], ["object.spec.caBundle == 'x'", "object.spec.x == 1"], {}),
    ([rule("secrets")], ["object.data.a == 'x'", "object.stringData.a == 1", "object.immutable == 1"], {}),
    ([rule("controllerrevisions", "apps")], ["object.data.x == 1", "object.data == 1", "object.revision == 'x'"], {}),
    ([rule("leases", "coordination.k8s.io")], ["object.spec.renewTime == 'x'", "object.spec.leaseDurationSeconds == 'x'"], {}),
    ([rule("subjectaccessreviews", "authorization.k8s.io")], ["object.spec.extra == 1", "object.spec.x == 1"], {}),
    ([rule("networkpolicies", "networking.k8s.io")], ["object.spec.ingress[0].ports[0].port == 'x'", "object.spec.egress.x == 1"], {}),
    ([rule("horizontalpodautoscalers", "autoscaling", "v1,v2")], ["object.spec.metrics[0].resource.target.averageUtilization == 'x'"], {}),
    ([rule("resourceclaims", "resource.k8s.io")], ["object.spec.devices.config[0].opaque.parameters.x == 1", "object.spec.x == 1"], {}),
    ([PODS], ["variables.a == 1", "variables.b == 1", "variables.c.x == 1", "variables.d == 1", "variables.e[0].x == 1", "variables.f == 1",
              "variables.g"],
     {"variables": [{"name": "a", "expression": "object.spec.nodeName"}, {"name": "b", "expression": "object.spec.nothing"},
                    {"name": "c", "expression": "object.spec"}, {"name": "d", "expression": "variables.a + 'x'"},
                    {"name": "e", "expression": "object.spec.containers"}, {"name": "f",
                                                                            "expression": "object.spec.containers.map(c, c.image)"},
                    {"name": "g", "expression": "variables.c.nothing == 1"}]}),
    ([PODS, BULB], ["variables.a == 1"], {"variables": [{"name": "a", "expression": "object.spec.nodeName"}]}),
    ([PODS], ["params.data.a == 1", "params.x == 1", "params == object"], {"paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}}),
    ([rule("configmaps")], ["params == object", "params.x == 1"], {"paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}}),
    ([PODS], ["params.spec.watts == 'x'", "params.spec.x == 1"], {"paramKind": {"apiVersion": "example.com/v1", "kind": "Bulb"}}),
    ([PODS], ["params.spec.watts == 'x'"], {"paramKind": {"apiVersion": "example.com/v1", "kind": "Nothing"}}),
    ([PODS], ["true"], {"matchConditions": [{"name": "a", "expression": "object.nothing == 1"}],
                        "auditAnnotations": [{"key": "k", "valueExpression": "string(object.nothing)"}]}),
    ([PODS], [{"expression": "true", "messageExpression": "string(object.nothing)"},
              {"expression": "object.x == 1", "message": "m", "messageExpression": "'a' + object.spec.priority"},
              {"expression": "object.spec.hostNetwork", "messageExpression": "object.spec.nodeName + string(object.y)"}], {}),
    ([PODS], [], {"auditAnnotations": [{"key": "k", "valueExpression": "string(object.nothing)"}]}),
]


def usable(text):
    """Policies have to be accepted first: their expressions are of booleans."""
    return text if re.search(r"==|<|>|\bhas\(|\ball\(|exists|allowed|matches|startsWith| in |isGreater|&&|\|\||g$",
                             text) else f"string({text}) == 'x'"


def policies():
    for number, text in enumerate(OF_PODS):
        extra = {"paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}} if "params" in text else {}
        yield f"pods-{number}", [PODS], [usable(text)], extra
    for number, text in enumerate(OF_BULBS):
        yield f"bulbs-{number}", [BULB], [usable(text)], {}
    for number, (rules, texts, extra) in enumerate(OTHERS):
        yield f"other-{number}", rules, [usable(text) if isinstance(text, str) else text for text in texts], extra


def body(name, rules, validations, extra):
    return {"metadata": {"name": name}, "spec": {
        "matchConstraints": {"resourceRules": rules}, "validations": [
            {"expression": one} if isinstance(one, str) else one for one in validations], **extra}}


def status_of(policy):
    """Types have numbers behind their names, which Kubernetes takes from the clock."""
    return json.loads(re.sub(r"\b([A-Z][A-Za-z]*?)\d+\b(?=[.),\s'])", r"\1#", json.dumps(policy.get("status", {}))))


class SamePolicyStatus(SideBySide):
    client = Client
    flags = tuple(flag for flag in SideBySide.flags if "policy" not in flag)

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        for side in (cls.theirs, cls.ours):
            code, answer = side.send("POST", CRDS, BULBS)
            assert code == 201, answer
        cls.wait_for("/apis/example.com/v1/bulbs")
        cls.wait_for("/openapi/v3/apis/example.com/v2")
        cls.manager = Manager(pathlib.Path(cls.directory.name), cls.apiserver.port, "validatingadmissionpolicy-status-controller")

    @classmethod
    def tearDownClass(cls):
        cls.manager.stop()
        super().tearDownClass()

    def checked(self, side, name, generation):
        end = time.monotonic() + WAIT_SECONDS
        while time.monotonic() < end:
            code, policy = side.send("GET", f"{POLICIES}/{name}")
            self.assertEqual(code, 200, policy)
            if policy.get("status", {}).get("observedGeneration") == generation:
                return policy
            time.sleep(0.1)
        self.fail(f"{policy} is not checked")

    def same(self, name, generation):
        theirs, ours = (self.checked(side, name, generation) for side in (self.theirs, self.ours))
        with self.subTest(name=name, spec=theirs["spec"]["validations"] if "validations" in theirs["spec"] else None):
            self.assertEqual(status_of(ours), status_of(theirs))
            managed = [[{key: row.get(key) for key in ("manager", "operation", "subresource", "fieldsV1")}
                        for row in policy["metadata"]["managedFields"] if row.get("subresource")] for policy in (ours, theirs)]
            self.assertEqual(managed[0], managed[1])
        return status_of(theirs)

    def test_warnings(self):
        accepted, found = [], 0
        for name, rules, validations, extra in policies():
            answers = [side.send("POST", POLICIES, body(name, rules, validations, extra)) for side in (self.theirs, self.ours)]
            with self.subTest(name=name, validations=validations):
                self.assertEqual(answers[1][0], answers[0][0], answers)
            if answers[0][0] == answers[1][0] == 201:
                accepted.append(name)
        for name in accepted:
            found += bool(self.same(name, 1).get("typeChecking", {}).get("expressionWarnings"))
        self.assertGreater(len(accepted), 120)
        self.assertGreater(found, 100)

    def test_generations(self):
        steps = [("POST", POLICIES, body("g", [PODS], ["object.x == 1", "object.y == 1"], {}))]
        steps += [("PATCH", f"{POLICIES}/g", {"spec": {"validations": [{"expression": one} for one in texts]}}, MERGE) for texts in (
            ["object.x == 1"], ["true"], ["object.x == 1", "true", "object.z == 2"], ["object.kind == 'x'"])]
        for generation, step in enumerate(steps, 1):
            for side in (self.theirs, self.ours):
                code, answer = side.send(*step)
                self.assertIn(code, (200, 201), answer)
            self.same("g", generation)


if __name__ == "__main__":
    unittest.main()
