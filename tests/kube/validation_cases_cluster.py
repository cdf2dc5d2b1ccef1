"""Broken objects of the kinds by which a cluster is operated (nodes, storage, certificates, admission, flow control), and of
policies and schedules of jobs: the continuation of validation_cases.py."""
import base64
import subprocess

from validation_cases import CORE, CRON, JOB, LONG, NETWORK, NODE, NONE, SELECTORS, changed, of

STORAGE = "/apis/storage.k8s.io/v1/"
ADMISSION = "/apis/admissionregistration.k8s.io/v1/"
FLOW = "/apis/flowcontrol.apiserver.k8s.io/v1/"
NETWORKING = "/apis/networking.k8s.io/v1/"
BATCH = "/apis/batch/v1/namespaces/default/"
CSRS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"


def text64(text):
    return base64.b64encode(text).decode()


def request_of(algorithm):
    """A new certificate request as PEM."""
    return subprocess.run(["openssl", "req", "-new", "-nodes", "-newkey", *algorithm, "-keyout", "/dev/null", "-subj", "/CN=a"],
                          check=True, capture_output=True).stdout


def damaged(pem):
    """The same with another byte at the end of its signature."""
    lines = pem.decode().strip().split("\n")
    der = bytearray(base64.b64decode("".join(lines[1:-1])))
    der[-1] ^= 1
    return f"{lines[0]}\n{base64.encodebytes(bytes(der)).decode()}{lines[-1]}\n".encode()


EC, RSA, ED = (request_of(x) for x in (["ec", "-pkeyopt", "ec_paramgen_curve:P-256"], ["rsa:2048"], ["ed25519"]))
CSR = {"metadata": {"name": "base"}, "spec": {"request": text64(EC), "signerName": "example.com/signer", "usages": ["client auth"]}}

DRIVER = {"metadata": {"name": "base"}, "spec": {"tokenRequests": [{"audience": "a"}]}}
CSI_NODE = {"metadata": {"name": "base"}, "spec": {"drivers": [{"name": "d.example.com", "nodeID": "n", "topologyKeys": ["zone"]}]}}
CAPACITY = {"metadata": {"name": "base"}, "storageClassName": "s", "nodeTopology": {"matchLabels": {"a": "b"}}, "capacity": "1Gi"}
ATTACHMENT = {"metadata": {"name": "base"}, "spec": {"attacher": "a.example.com", "nodeName": "n", "source": {"persistentVolumeName": "v"}}}
INLINE = {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "csi": {"driver": "d", "volumeHandle": "h"}}

HOOK = {"name": "a.b.c", "sideEffects": "None", "admissionReviewVersions": ["v1"],
        "clientConfig": {"url": "https://example.com/a"},
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["CREATE"]}]}
HOOKS = {"metadata": {"name": "base"}, "webhooks": [HOOK]}
FIRST = "webhooks.0."
RULE = FIRST + "rules.0."
CLIENT = FIRST + "clientConfig"
RULES_OF_HOOKS = [
    *of(FIRST + "name", ["", "a.b", "A_", "a..b", LONG * 4]), *of(RULE + "operations", [[], ["X"], ["*", "CREATE"], ["*"], ["", "X"]]),
    *of(RULE + "apiGroups", [[], ["*", "a"], ["*"]]), *of(RULE + "apiVersions", [[], ["*", "v1"], ["", "v1"]]),
    *of(RULE + "resources", [[], [""], ["*", "pods"], ["*/*", "pods"], ["pods/*", "pods/status"], ["*/status", "pods/status"],
                             ["pods", "*"], ["*", "pods", "pods/status"], ["pods/*", "*/*"], ["*", "pods/status"]]),
    {RULE + "scope": "X"}, {FIRST + "rules": [{}]},
    {FIRST + "failurePolicy": "X"}, {FIRST + "matchPolicy": "X"}, {FIRST + "failurePolicy": ""},
    *of(FIRST + "sideEffects", [NONE, "X", "Some", "Unknown", "", "NoneOnDryRun"]),
    *of(FIRST + "timeoutSeconds", [0, 31, -1]), *[{FIRST + "namespaceSelector": x} for x in SELECTORS],
    *[{FIRST + "objectSelector": x} for x in SELECTORS[:2]],
    *of(CLIENT, [{}, {"url": "https://a", "service": {"name": "a", "namespace": "b"}}, {"service": {}},
                 {"service": {"name": "a", "namespace": ""}}, {"service": {"name": "a", "namespace": "b", "port": 0}},
                 {"service": {"name": "a", "namespace": "b", "port": 70000}}]),
    *[{CLIENT: {"service": {"name": "a", "namespace": "b", "path": x}}} for x in (
        "", "/", "//", "a", "/a//b", "/a/", "/a/b_c", "/A", "x//", "/a/..", "/" + LONG * 4)],
    *of(CLIENT + ".url", ["", "http://a", "https://", "https://a?b", "https://u:p@a", "https://a#f", "a", "/a", "https://u@a/b?c#d",
                          "HTTPS://a", "https:a", "//a", "https://a:1", "https://a?", "https://a#", "ftp://", "https://u@", "?",
                          "https://a/%41", "https://a/b c", "https://user:@a", "https://a?b?c", "https://[::1]:80/a",
                          "https://u@a?b@c", "https://u@a#b@c", "https://a/%zz", "https://a:b", "https://[::1", "https://a b", ":a"]),
    *of(FIRST + "admissionReviewVersions", [[], ["v2"], ["v1", "v1"], ["V1"], ["v1", "-"], ["v2", "v2", "v1beta1"], [""]]),
    *of("webhooks", [[HOOK, HOOK], [{}], [dict(HOOK, name="")] * 2]),
    *of(FIRST + "matchConditions", [[{}], [{"name": "a", "expression": " "}], [{"name": "-", "expression": "true"}],
                                    [{"name": "a", "expression": "true"}] * 2, [{"name": "", "expression": "true"}]]),
    {FIRST + "matchConditions": [{"name": f"a{i}", "expression": "true"} for i in range(65)]},
    *of(FIRST + "matchConditions", [[{"name": "a", "expression": text}] for text in (
        "object.", " 1 ", "object", "'a'", "params == null", "variables.x", "self.a", "request.nothing", "request.name == 'a'",
        "authorizer.requestResource.check('get').allowed()", "authorizer.group('').check('get')", "namespaceObject == null",
        "has(object.a) &&\n oldObject.b == 1 + 'a'", "object.name.matches('(')", "int('x') == 1", "format.uuid().validate(1)")]),
    {FIRST + "matchConditions": [{"name": f"a{i}", "expression": f"1 +{i} +"} for i in range(3)]},
]

PATCH = "[JSONPatch{op: 'add', path: '/a', value: 'b'}]"
MATCH = {"resourceRules": [HOOK["rules"][0]]}
POLICY = {"metadata": {"name": "base"}, "spec": {"matchConstraints": MATCH, "validations": [{"expression": "true"}]}}
MUTATING = {"metadata": {"name": "base"}, "spec": {
    "matchConstraints": MATCH, "reinvocationPolicy": "Never",
    "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": PATCH}}]}}
POLICY_BINDING = {"metadata": {"name": "base"}, "spec": {"policyName": "p", "validationActions": ["Deny"]}}
MUTATING_BINDING = {"metadata": {"name": "base"}, "spec": {"policyName": "p"}}
MATCHES = [{"matchPolicy": "X"}, {"namespaceSelector": SELECTORS[0]}, {"objectSelector": SELECTORS[4]}, {"resourceRules": [{}]},
           {"excludeResourceRules": [{"operations": ["X"]}]}, {"resourceRules": [dict(HOOK["rules"][0], resourceNames=["a", "a", "b/c"])]}]
PARAM_KINDS = [{}, {"apiVersion": "v1", "kind": "A_"}, {"apiVersion": "a/b/c", "kind": "A"}, {"apiVersion": "/", "kind": "A"},
               {"apiVersion": "A/v1", "kind": "A"}, {"apiVersion": "a/V1", "kind": "A"}, {"apiVersion": "a/", "kind": "A"}]
CONDITIONS = [[{}], [{"name": "a", "expression": " "}], [{"name": "-", "expression": "true"}], [{"name": "a", "expression": "true"}] * 2]
VARIABLES = [[{"name": "", "expression": "1"}], [{"name": "a-b", "expression": "1"}], [{"name": "for", "expression": "1"}],
             [{"name": "a", "expression": " "}]]
PARAM_REFS = [{}, {"name": "a"}, {"name": "a/b", "parameterNotFoundAction": "Deny"}, {"name": "a", "parameterNotFoundAction": "X"},
              {"name": "a", "selector": {}, "parameterNotFoundAction": "Deny"}, {"selector": SELECTORS[0],
                                                                                 "parameterNotFoundAction": "Allow"},
              {"parameterNotFoundAction": ""}]

SCHEMA = {"metadata": {"name": "base"}, "spec": {
    "matchingPrecedence": 100, "priorityLevelConfiguration": {"name": "p"}, "distinguisherMethod": {"type": "ByUser"},
    "rules": [{"subjects": [{"kind": "User", "user": {"name": "u"}}], "resourceRules": [
        {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "namespaces": ["a"]}],
        "nonResourceRules": [{"verbs": ["get"], "nonResourceURLs": ["/a"]}]}]}}
SUBJECT = "spec.rules.0.subjects"
OF_RESOURCE = "spec.rules.0.resourceRules.0."
OF_URL = "spec.rules.0.nonResourceRules.0."
LEVEL = {"metadata": {"name": "base"}, "spec": {"type": "Limited", "limited": {"nominalConcurrencyShares": 5, "limitResponse": {
    "type": "Queue", "queuing": {"queues": 16, "handSize": 4, "queueLengthLimit": 5}}}}}
QUEUING = "spec.limited.limitResponse.queuing."

RUNTIME = {"metadata": {"name": "base"}, "handler": "h"}
RANGES = {"metadata": {"name": "base"}, "spec": {"cidrs": ["10.99.0.0/24"]}}
ADDRESS = {"metadata": {"name": "192.168.7.7"}, "spec": {"parentRef": {"resource": "services", "namespace": "default", "name": "s"}}}
REVISION = {"metadata": {"name": "base"}, "revision": 1, "data": {"a": "b"}}
API = {"metadata": {"name": "v1.base.example.com"}, "spec": {
    "group": "base.example.com", "version": "v1", "groupPriorityMinimum": 100, "versionPriority": 100,
    "service": {"name": "s", "namespace": "n"}}}
LOCAL_API = changed(API, {"spec.service": NONE})
EVENT = {"metadata": {"name": "base"}, "involvedObject": {"namespace": "default"}}
NEW_EVENT = {"metadata": {"name": "base"}, "regarding": {"namespace": "default"}, "eventTime": "2026-11-15T06:00:00.000000Z",
             "type": "Normal", "reason": "r", "action": "a", "reportingController": "c", "reportingInstance": "i"}
EVENTS = [{"eventTime": "2026-11-15T06:00:00.000000Z"},
          {"eventTime": "2026-11-15T06:00:00.000000Z", "reportingComponent": "-", "reportingInstance": "i" * 129, "action": "a" * 129,
           "reason": "r" * 129, "message": "m" * 1025}]

INDEXED = changed(JOB, {"spec.completionMode": "Indexed", "spec.completions": 10, "spec.parallelism": 2})
EXITS = {"operator": "In", "values": [1, 2]}


def failure(**rule):
    return {"spec.podFailurePolicy": {"rules": [dict({"action": "FailJob"}, **rule)]}}


def exits(**fields):
    return failure(onExitCodes=dict(EXITS, **fields))


def success(**rule):
    return {"spec.successPolicy": {"rules": [rule]}}


CREATES = [
    ("/api/v1/nodes", NODE, [
        *of("spec", [{"podCIDRs": ["10.0.0.0/24", "10.1.0.0/24"], "podCIDR": "10.0.0.0/24"},
                     {"podCIDRs": ["10.0.0.0/24", "fd00::/64"], "podCIDR": "10.0.0.0/24"},
                     {"podCIDRs": ["10.0.0.0/24", "fd00::/64", "10.2.0.0/24"], "podCIDR": "10.0.0.0/24"},
                     {"podCIDRs": ["010.0.0.0/24"], "podCIDR": "010.0.0.0/24"}, {"podCIDRs": ["10.0.0.1/24"], "podCIDR": "10.0.0.1/24"},
                     {"podCIDR": "10.0.0.0/33"}, {"podCIDRs": ["10.0.0.0/24"], "podCIDR": "10.1.0.0/24"}, {"configSource": {}},
                     {"taints": [{"key": "a", "value": "-", "effect": "NoSchedule"}]},
                     {"taints": [{"key": "a/b/c", "value": LONG, "effect": "NoSchedule"}]}]),
        *of("status", [{"capacity": {"cpu": "1.5", "pods": "1.5"}}, {"addresses": [{"type": "InternalIP", "address": "1.2.3.4"}] * 2},
                       {"nodeInfo": {"swap": {"capacity": -1}}}])]),
    (STORAGE + "csidrivers", DRIVER, [
        {"spec.fsGroupPolicy": "X"}, *of("spec.tokenRequests", [
            [{"audience": "a"}] * 2, [{"audience": "a", "expirationSeconds": 599}], [{"audience": "a", "expirationSeconds": 4294967297}],
            [{"audience": ""}, {"audience": "", "expirationSeconds": 1}]]),
        *of("spec.volumeLifecycleModes", [["X"], ["Persistent", "X", "Y"]]), {"spec.nodeAllocatableUpdatePeriodSeconds": 9},
        {"spec.tokenRequests": [], "spec.serviceAccountTokenInSecrets": True},
        {"spec.tokenRequests": [], "spec.serviceAccountTokenInSecrets": False},
        {"spec.fsGroupPolicy": ""}, {"metadata.name": "A_"}]),
    (STORAGE + "csinodes", CSI_NODE, [
        *of("spec.drivers.0.name", ["", "A_", LONG, "D.Example"]), *of("spec.drivers.0.nodeID", ["", "n" * 257, "n" * 256]),
        {"spec.drivers.0.allocatable": {"count": -1}}, *of("spec.drivers.0.topologyKeys", [[""], ["a", "a"], ["a b"], ["-", "-"]]),
        {"spec.drivers.+": CSI_NODE["spec"]["drivers"][0]}, {"spec.drivers": [{}]}]),
    (STORAGE + "namespaces/default/csistoragecapacities", CAPACITY, [
        *of("storageClassName", ["", "A_"]), *of("nodeTopology", SELECTORS), *of("capacity", ["-1", "0"])]),
    (STORAGE + "volumeattachments", ATTACHMENT, [
        *of("spec.attacher", ["", "A_", LONG]), *of("spec.nodeName", ["", "A_"]),
        *of("spec.source", [{}, {"persistentVolumeName": ""}, {"persistentVolumeName": "A_"}, {"inlineVolumeSpec": INLINE},
                            {"persistentVolumeName": "a", "inlineVolumeSpec": INLINE}, {"inlineVolumeSpec": {}},
                            {"inlineVolumeSpec": dict(INLINE, accessModes=[])},
                            {"inlineVolumeSpec": dict(INLINE, csi={"driver": "", "volumeHandle": ""})},
                            {"inlineVolumeSpec": {"accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/a"}}}])]),
    (CSRS, CSR, [
        *of("spec.usages", [[], ["X"], ["client auth", "client auth"], ["any", "X", "any"]]),
        *of("spec.signerName", ["", "x", "a/b", "a.b/c/d", "A.b/c", "a.b/C", "a.b/c.-", "a.b/", "/a", "kubernetes.io/legacy-unknown",
                                "a." + LONG + "/c", "a.b/" + "c" * 318, ("a" * 60 + ".") * 5 + "a/b", "a..b/c"]),
        *of("spec.expirationSeconds", [599, 600]),
        *of("spec.request", [text64(x) for x in (b"x", EC, RSA, ED, damaged(RSA), damaged(EC), damaged(ED),
                                                 EC.replace(b"CERTIFICATE REQUEST", b"CERTIFICATE"), EC + b"more", b"before\n" + EC)])]),
    (ADMISSION + "validatingwebhookconfigurations", HOOKS, RULES_OF_HOOKS),
    (ADMISSION + "mutatingwebhookconfigurations", HOOKS, [*RULES_OF_HOOKS, {FIRST + "reinvocationPolicy": "X"}]),
    (ADMISSION + "validatingadmissionpolicies", POLICY, [
        {"spec.failurePolicy": "X"}, {"spec.matchConstraints": NONE}, *of("spec.matchConstraints", [{}, *MATCHES]),
        *of("spec.paramKind", PARAM_KINDS), *of("spec.matchConditions", CONDITIONS), *of("spec.variables", VARIABLES),
        *of("spec.validations", [[], [{"expression": ""}], [{"expression": "true", "message": " "}],
                                 [{"expression": "true", "message": "a\nb"}], [{"expression": "true", "reason": "X"}],
                                 [{"expression": "true", "messageExpression": " "}]]),
        *of("spec.auditAnnotations", [[{"key": "-", "valueExpression": "'a'"}], [{"key": "a", "valueExpression": ""}],
                                      [{"key": "a", "valueExpression": "'a'"}] * 2, [{"key": "a",
                                                                                      "valueExpression": "'" + "a" * 5120 + "'"}]]),
        {"spec": {}}]),
    (ADMISSION + "validatingadmissionpolicybindings", POLICY_BINDING, [
        *of("spec.policyName", ["", "A_"]), *of("spec.paramRef", PARAM_REFS), *of("spec.matchResources", [{}, *MATCHES]),
        *of("spec.validationActions", [[], ["X"], ["Deny", "Deny"], ["Deny", "Warn"], ["Warn", "Audit"]])]),
    (ADMISSION + "mutatingadmissionpolicies", MUTATING, [
        {"spec.failurePolicy": "X"}, {"spec.matchConstraints": NONE}, *of("spec.matchConstraints", [{}, *MATCHES]),
        *of("spec.paramKind", PARAM_KINDS[:2]), *of("spec.matchConditions", CONDITIONS), *of("spec.variables", VARIABLES),
        *of("spec.reinvocationPolicy", ["", "X"]), {"spec.matchConstraints.resourceRules.0.operations": ["DELETE", "CREATE"]},
        *of("spec.mutations", [[], [{}], [{"patchType": "X"}], [{"patchType": "JSONPatch"}], [{"patchType": "ApplyConfiguration"}],
                               [{"patchType": "JSONPatch", "jsonPatch": {"expression": " "}}],
                               [{"patchType": "JSONPatch", "jsonPatch": {"expression": PATCH}, "applyConfiguration": {"expression": ""}}],
                               [{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": ""}, "jsonPatch": {}}]]),
        {"spec": {}}]),
    (ADMISSION + "mutatingadmissionpolicybindings", MUTATING_BINDING, [
        *of("spec.policyName", ["", "A_"]), *of("spec.paramRef", PARAM_REFS), *of("spec.matchResources", [{}, *MATCHES]),
        {"spec.matchResources": {"resourceRules": [dict(HOOK["rules"][0], operations=["DELETE"])]}}]),
    (FLOW + "flowschemas", SCHEMA, [
        *of("spec.matchingPrecedence", [-1, 1, 10001]), {"spec.distinguisherMethod.type": "X"},
        *of("spec.priorityLevelConfiguration.name", ["", "A_"]), *of(SUBJECT, [
            [], [{}], [{"kind": "User"}], [{"kind": "User", "user": {"name": ""}}], [{"kind": "User", "user": {"name": "a"}, "group": {
                "name": "b"}, "serviceAccount": {"name": "a", "namespace": "b"}}],
            [{"kind": "Group"}], [{"kind": "Group", "group": {"name": ""}, "user": {"name": "a"}, "serviceAccount": {"name": "",
                                                                                                                     "namespace": ""}}],
            [{"kind": "ServiceAccount"}], [{"kind": "ServiceAccount", "serviceAccount": {"name": "", "namespace": ""}}],
            [{"kind": "ServiceAccount", "serviceAccount": {"name": "A_", "namespace": "A_"}, "user": {"name": "a"},
              "group": {"name": "b"}}],
            [{"kind": "ServiceAccount", "serviceAccount": {"name": "*", "namespace": "*"}}]]),
        {"spec.rules.0": {"subjects": SCHEMA["spec"]["rules"][0]["subjects"]}},
        *of(OF_RESOURCE + "verbs", [[], ["X"], ["*", "get"], ["get", "X"], ["*"]]), *of(OF_RESOURCE + "apiGroups", [[], ["*", "a"], ["*"]]),
        *of(OF_RESOURCE + "resources", [[], ["*", "a"]]), *of(OF_RESOURCE + "namespaces", [[], ["*", "a"], ["A_"], ["*"], ["a", "A", "-"]]),
        *of(OF_URL + "verbs", [[], ["X"], ["*", "get"]]),
        *of(OF_URL + "nonResourceURLs", [[], ["*", "/a"], [""], ["/"], ["a"], ["/a b"], ["/a//b"], ["/*/a"], ["/a*"], ["/a/*"], ["/*"],
                                         ["/**"]]),
        {"metadata.name": "exempt"}, {"metadata.name": "catch-all"}, {"spec": {}}]),
    (FLOW + "prioritylevelconfigurations", LEVEL, [
        *of("spec.type", ["", "X", "Exempt"]), {"spec.limited": NONE}, {"spec.exempt": {}}, {"spec.limited.nominalConcurrencyShares": -1},
        *of("spec.limited.lendablePercent", [-1, 101]), {"spec.limited.borrowingLimitPercent": -1},
        *of("spec.limited.limitResponse.type", ["", "X", "Reject"]), {"spec.limited.limitResponse.queuing": NONE},
        *of(QUEUING + "queues", [-1, 10000001, 3]), *of(QUEUING + "handSize", [-1, 17, 16]), {QUEUING + "queueLengthLimit": -1},
        {QUEUING + "queues": 10000000, QUEUING + "handSize": 3}, {QUEUING + "queues": 512, QUEUING + "handSize": 7},
        {"spec": {"type": "Exempt", "exempt": {"nominalConcurrencyShares": -1, "lendablePercent": 101}}},
        {"metadata.name": "exempt"}, {"metadata.name": "catch-all"}, {"metadata.name": "exempt", "spec": {"type": "Exempt"}},
        {"metadata.annotations": {"flowcontrol.k8s.io/preserve-zero-concurrency-shares": ""}}]),
    ("/apis/node.k8s.io/v1/runtimeclasses", RUNTIME, [
        *of("handler", ["", "A_", LONG, "a.b"]), *of("overhead", [
            {"podFixed": {"x": "1"}}, {"podFixed": {"cpu": "-1"}}, {"podFixed": {"a b": "1", "cpu": "1"}}, {"podFixed": {"pods": "1"}},
            {"podFixed": {"example.com/x": "1.5"}}, {"podFixed": {"hugepages-2Mi": "4Mi"}}]),
        *[{"scheduling": {"nodeSelector": x}} for x in ({"-": "a"}, {"b": "-"})],
        *[{"scheduling": {"tolerations": x}} for x in (
            [{"key": "-", "operator": "Exists"}], [{"operator": "X", "key": "a"}], [{"key": "a", "operator": "Exists", "value": "b"}],
            [{"key": "a", "operator": "Exists"}] * 2, [{"effect": "X", "operator": "Exists"}],
            [{"key": "a", "value": "b", "operator": "Equal", "effect": "NoExecute", "tolerationSeconds": 5}] * 2,
            [{"key": "a", "tolerationSeconds": 5}], [{"key": "", "operator": "Equal"}])]]),
    (NETWORKING + "servicecidrs", RANGES, [
        *of("spec.cidrs", [[], ["x"], ["10.0.0.0/24"] * 3, ["10.99.0.0/24", "10.98.0.0/24"], ["10.99.0.0/24", "fd00:1::/112"],
                           ["010.99.0.0/24"], ["10.99.0.1/24"], ["x", "y"], ["10.99.0.0/24", "x"], ["fd00::/64", "fd01::/64"],
                           ["::ffff:10.0.0.0/104"], ["fd00:0::/64"], ["10.0.0.0/8x"]]), {"metadata.name": "A_"}]),
    (NETWORKING + "ipaddresses", ADDRESS, [
        {"spec": {}}, *of("spec.parentRef", [{}, {"resource": "a/b", "name": "%", "group": "A_", "namespace": "a/b"},
                                             {"resource": "..", "name": "."}]),
        *of("metadata.name", ["x", "010.0.0.1", "::ffff:1.2.3.4", "FD00::1", "fd00:0::1", "fd00::1"])]),
    ("/apis/apps/v1/namespaces/default/controllerrevisions", REVISION, [
        {"revision": -1}, {"data": NONE}, {"data": "x"}, {"data": []}, {"data": None}]),
    ("/apis/apiregistration.k8s.io/v1/apiservices", API, [
        *of("spec.group", ["", "A_", "other"]), *of("spec.version", ["", "V1", "v2"]), *of("spec.groupPriorityMinimum", [0, -1, 20001]),
        *of("spec.versionPriority", [0, 1001]), *of("spec.service", [NONE, {}, {"name": "a"}]),
        *of("spec.service", [{"name": "a", "namespace": "b", "port": port} for port in (0, 65536)]),
        {"spec.insecureSkipTLSVerify": True}, {"spec.insecureSkipTLSVerify": True, "spec.caBundle": "AA=="},
        {"spec.insecureSkipTLSVerify": True, "spec.caBundle": "AA==", "spec.service": NONE},
        {"spec.service": NONE, "spec.caBundle": "AAAA"}, {"metadata.name": "x"}]),
    (CORE + "events", EVENT, [{"involvedObject.namespace": "other"}, *EVENTS, {"type": "X"}]),
    ("/api/v1/namespaces/kube-system/events", EVENT, [{"involvedObject": {}}, {"involvedObject": {},
                                                                               "eventTime": "2026-11-15T06:00:00.000000Z"}]),
    ("/apis/events.k8s.io/v1/namespaces/default/events", NEW_EVENT, [
        {"eventTime": NONE}, {"type": "X"}, {"type": ""}, {"reason": ""}, {"action": ""}, {"reportingController": ""},
        {"reportingController": "-"}, {"reportingInstance": ""}, {"note": "n" * 1025}, {"series": {"count": 1}},
        {"series": {"count": 2, "lastObservedTime": "2026-11-15T06:00:00.000000Z"}}, {"deprecatedCount": 1},
        {"deprecatedSource": {"component": "a"}}, {"deprecatedFirstTimestamp": "2026-11-15T06:00:00Z"},
        {"deprecatedLastTimestamp": "2026-11-15T06:00:00Z"}, {"regarding": {}}, {"regarding.namespace": "other"}]),
    (BATCH + "jobs", JOB, [
        {"spec.podFailurePolicy": {"rules": []}}, failure(), failure(action=""), failure(action="X", onExitCodes=EXITS),
        failure(action="FailIndex", onExitCodes=EXITS), exits(), exits(operator=""), exits(operator="X"), exits(containerName="d"),
        exits(containerName="c"), exits(values=[]), exits(values=[0, 1]), exits(values=[2, 1]), exits(values=[1, 1]),
        exits(values=list(range(1, 257))), exits(operator="NotIn", values=[0]),
        *[failure(onPodConditions=[x]) for x in ({"type": "a", "status": "True"}, {"type": "-", "status": "True"}, {"type": "a",
                                                                                                                    "status": ""},
                                                 {"type": "a", "status": "X"}, {"type": "", "status": "True"})],
        failure(onPodConditions=[{"type": "a", "status": "True"}] * 21), failure(onExitCodes=EXITS, onPodConditions=[{
            "type": "a", "status": "True"}]),
        {"spec.podFailurePolicy": {"rules": [{"action": "Ignore", "onExitCodes": EXITS}] * 21}},
        exits() | {"spec.template.spec.restartPolicy": "OnFailure"},
        exits() | {"spec.podReplacementPolicy": "TerminatingOrFailed"}, success(succeededCount=1), success(),
        {"spec.backoffLimitPerIndex": 1, "spec.maxFailedIndexes": 1},
        {"spec.selector": SELECTORS[0], "spec.manualSelector": True},
        {"spec.selector": {"matchLabels": {"a": "c"}}, "spec.manualSelector": True}, {"spec.manualSelector": True}]),
    (BATCH + "jobs", INDEXED, [
        success(), success(succeededCount=-1), success(succeededCount=11), {"spec.successPolicy": {"rules": []}},
        {"spec.successPolicy": {"rules": [{"succeededCount": 1}] * 21}}, success(succeededIndexes="0-2", succeededCount=4),
        *[success(succeededIndexes=x) for x in ("", "0", "0-9", "0-10", "10", "x", "1-x", "1-2-3", "2-1", "1,1", "3-4,2", "1-1", "-",
                                                "1,,2",
                                                "0-2,4,6-8", "-1", "+1", " 1", "99999999999999999999")],
        failure(action="FailIndex", onExitCodes=EXITS),
        failure(action="FailIndex", onExitCodes=EXITS) | {"spec.backoffLimitPerIndex": 1},
        {"spec.backoffLimitPerIndex": 1, "spec.maxFailedIndexes": 11}, {"spec.completions": 100001, "spec.backoffLimitPerIndex": 1},
        {"spec.completions": 200000, "spec.parallelism": 10001, "spec.backoffLimitPerIndex": 1, "spec.maxFailedIndexes": 10001},
        {"spec.completions": 200000, "spec.backoffLimitPerIndex": 1, "spec.maxFailedIndexes": 100001}, {"metadata.name": "x" * 62},
        {"metadata.name": "a.b"}]),
    (BATCH + "cronjobs", CRON, [
        *of("spec.schedule", ["60 * * * *", "* 24 * * *", "* * 0 * *", "* * 32 * *", "* * * 13 *", "* * * 0 *", "* * * * 7", "* * * * 8",
                              "*/5 * * * *", "*/0 * * * *", "5-1 * * * *", "1-2-3 * * * *", "1/2/3 * * * *", "a * * * *", "-1 * * * *",
                              "1- * * * *", "* * * jan *", "* * * JAN-feb *", "* * * * mon", "* * * * xyz", "1,2,3 * * * *", ", * * * *",
                              "1,, * * * *", "? * * * *", "*-5 * * * *", "5/15 * * * *", "*/x * * * *", "99999999999999999999 * * * *",
                              "@hourly", "@every 5m", "@every x", "@every", "@nothing", "@Hourly", "* * * *", "* * * * * *", "*  *\t* * *",
                              "@every 1h30m10.5s", "@every -5m", "@every 5", "@every 5x", "@every .s", "@every ", "0-59/61 * * * *",
                              "TZ=UTC * * * * *", "CRON_TZ=x * * * * *", "TZ=0", "* * * * *\n", "@reboot", "*/99999999999999999999 * * * *",
                              "*/-1 * * * *", "+5 * * * *", "0x5 * * * *", "1_0 * * * *", "@annually", "@midnight", " ",
                              "* * 31 2 *", "*x * * * *", "*-1-2 * * * *", "60/5 * * * *", "5-60/5 * * * *"]),
        *of("spec.timeZone", ["Local", "local", "Etc/UTC", "Europe/Berlin", "x", "Not/There", "a//b", "/a", "..", "-a",
                              "Europe/" + "a" * 15,
                              "UTC+1", "A B", "utc", "europe/berlin", "Etc/GMT+5", "UTC"]),
        {"spec.jobTemplate.spec.podFailurePolicy": {"rules": [{"action": "X"}]}}, {"spec.concurrencyPolicy": ""},
        {"spec.jobTemplate.spec.successPolicy": {"rules": []}}]),
    (NETWORKING + "namespaces/default/networkpolicies", NETWORK, [
        *[{"spec.ingress": [{"from": [x]}]} for x in (
            {"ipBlock": {"cidr": "010.0.0.0/8"}}, {"ipBlock": {"cidr": "10.0.0.1/8"}}, {"ipBlock": {"cidr": "::ffff:10.0.0.0/104"}},
            {"ipBlock": {"cidr": "10.0.0.0/08"}}, {"ipBlock": {"cidr": "10.0.0.0/8", "except": ["010.1.0.0/16", "10.1.0.1/16",
                                                                                                "fd00::/64"]}},
            {"ipBlock": {"cidr": "10.1.0.1/8", "except": ["10.1.0.0/16"]}}, {"ipBlock": {"cidr": "fd00::/8", "except": ["fd00::/64"]}})]]),
]

UPDATES = [
    (STORAGE + "csidrivers", DRIVER, [
        {"spec.attachRequired": False}, {"spec.volumeLifecycleModes": ["Ephemeral"]}, {"spec.tokenRequests": [{"audience": ""}] * 2}]),
    (STORAGE + "csinodes", CSI_NODE, [
        {"spec.drivers.0.nodeID": "m"}, {"spec.drivers.0.topologyKeys": ["a"]}, {"spec.drivers": []},
        {"spec.drivers.0.allocatable": {"count": 5}}]),
    (STORAGE + "namespaces/default/csistoragecapacities", CAPACITY, [
        {"nodeTopology": {"matchLabels": {"a": "c"}}}, {"storageClassName": "t"}, {"nodeTopology": NONE}, {"capacity": "-1"}]),
    (STORAGE + "volumeattachments", ATTACHMENT, [{"spec.nodeName": "m"}, {"spec.attacher": "b"},
                                                 {"spec.source.persistentVolumeName": "w"}]),
    (ADMISSION + "validatingwebhookconfigurations", HOOKS, [{FIRST + "name": "x"}, {"webhooks": [HOOK, HOOK]},
                                                            {FIRST + "sideEffects": "Some"}]),
    (ADMISSION + "mutatingwebhookconfigurations", HOOKS, [{FIRST + "timeoutSeconds": 0}, {FIRST + "admissionReviewVersions": ["v2"]}]),
    (ADMISSION + "validatingadmissionpolicies", POLICY, [{"spec.failurePolicy": "X"}, {"spec.validations": []}]),
    (ADMISSION + "validatingadmissionpolicybindings", POLICY_BINDING, [{"spec.policyName": ""}, {"spec.policyName": "q"}]),
    (ADMISSION + "mutatingadmissionpolicies", MUTATING, [{"spec.mutations": []}]),
    (ADMISSION + "mutatingadmissionpolicybindings", MUTATING_BINDING, [{"spec.policyName": "A_"}]),
    (FLOW + "flowschemas", SCHEMA, [{"spec.matchingPrecedence": -1}, {"spec.rules.0.subjects": []}]),
    (FLOW + "prioritylevelconfigurations", LEVEL, [{"spec.type": "Exempt"}, {"spec.limited.nominalConcurrencyShares": -1}]),
    ("/apis/node.k8s.io/v1/runtimeclasses", RUNTIME, [{"handler": "g"}, {"handler": ""}, {"scheduling": {"nodeSelector": {"-": "a"}}}]),
    (NETWORKING + "servicecidrs", RANGES, [
        {"spec.cidrs": ["10.98.0.0/24"]}, {"spec.cidrs": []}, {"spec.cidrs": ["10.99.0.0/24", "10.98.0.0/24"]},
        {"spec.cidrs": ["10.98.0.0/24", "fd00::/64"]}, {"spec.cidrs": ["10.99.0.0/24", "fd00::/64"]},
        {"spec.cidrs": ["10.99.0.0/24"] * 3}]),
    (NETWORKING + "ipaddresses", ADDRESS, [{"spec.parentRef.name": "t"}, {"spec": {}}]),
    ("/apis/apps/v1/namespaces/default/controllerrevisions", REVISION, [{"revision": -1}, {"data": {"a": "c"}}, {"revision": 2}]),
    ("/apis/apiregistration.k8s.io/v1/apiservices", LOCAL_API, [{"spec.versionPriority": 0}, {"spec.group": "other"}]),
    (CORE + "events", EVENT, [{"involvedObject.namespace": "other"}]),
    ("/apis/events.k8s.io/v1/namespaces/default/events", changed(NEW_EVENT, {"metadata.name": "newer"}), [
        {"reason": "s"}, {"action": "b"}, {"note": "n"}, {"regarding.name": "x"}, {"type": "Warning"}, {"series": {"count": 1}},
        {"reportingController": "d"}, {"eventTime": "2026-11-15T07:00:00.000000Z"}, {"reportingInstance": "j"}]),
    (BATCH + "cronjobs", changed(CRON, {"metadata.name": "zoned", "spec.timeZone": "Etc/UTC"}), [
        {"spec.schedule": "60 * * * *"}, {"spec.timeZone": "x"}, {"spec.schedule": "TZ=UTC * * * * *"}]),
    ("/api/v1/nodes", changed(NODE, {"metadata.name": "other", "spec.podCIDR": "10.1.0.0/24", "spec.podCIDRs": ["10.1.0.0/24"]}), [
        {"spec.podCIDRs": ["10.2.0.0/24", "fd00::/64"], "spec.podCIDR": "10.2.0.0/24"}, {"spec.podCIDRs": ["x"], "spec.podCIDR": "x"}]),
]

# As UPDATES; the changes are sent to /status.
STATUSES = [
    ("/api/v1/nodes", changed(NODE, {"metadata.name": "third"}), [
        *of("status", [{"addresses": [{"type": "InternalIP", "address": "1.2.3.4"}] * 2}, {"capacity": {"cpu": "-1"}},
                       {"allocatable": {"pods": "1.5"}}])]),
    (STORAGE + "volumeattachments", changed(ATTACHMENT, {"metadata.name": "other"}), [
        *of("status", [{"attached": True, "attachError": {"message": "m" * 1025}}, {"attached": False, "detachError": {"errorCode": -1}},
                       {"attached": True, "attachmentMetadata": {"a": "b" * 262144}}, {"attached": True}])]),
    (FLOW + "prioritylevelconfigurations", changed(LEVEL, {"metadata.name": "other"}), [
        *of("status", [{"conditions": [{"type": "a"}] * 2}, {"conditions": [{"type": ""}]}])]),
    ("/apis/apiregistration.k8s.io/v1/apiservices", changed(LOCAL_API, {"metadata.name": "v2.base.example.com", "spec.version": "v2"}), [
        {"status": {"conditions": [{"type": "A", "status": "X"}]}}]),
    (CSRS, CSR, [
        *of("status", [{"conditions": [{"type": "Approved", "status": "True"}]}, {"conditions": [{"type": "", "status": ""}]},
                       {"conditions": [{"type": "Failed", "status": "False"}]}, {"conditions": [{"type": "a", "status": "X"}] * 2},
                       {"certificate": text64(b"x")}, {"certificate": text64(EC)}, {"conditions": [{"type": "Failed",
                                                                                                    "status": "True"}]}])]),
]
