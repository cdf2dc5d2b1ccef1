"""Broken objects of built-in kinds, as a table: a valid object of each kind, and changes of it.

A change is a dict from a path ("spec.ports.0.port") to a value; NONE removes the member, and a path that ends in "+" appends to
a list. Changes of UPDATES are made to an object that exists."""
import copy

NONE = object()
LONG = "x" * 64
CORE = "/api/v1/namespaces/default/"


def changed(base, change):
    """The object with a change."""
    result = copy.deepcopy(base)
    for path, value in change.items():
        *parents, last = path.split(".")
        at = result
        for step in parents:
            step = int(step) if isinstance(at, list) else step.replace("|", ".")
            if isinstance(at, dict) and step not in at:
                at[step] = {}
            at = at[step]
        last = last.replace("|", ".")
        if value is NONE:
            del at[int(last) if isinstance(at, list) else last]
        elif last == "+":
            at.append(value)
        else:
            at[int(last) if isinstance(at, list) else last] = value
    return result


def of(key, values):
    return [{key: value} for value in values]


CONFIG_MAP = {"metadata": {"name": "base"}, "data": {"a": "b"}, "binaryData": {"c": "AA=="}}
SECRET = {"metadata": {"name": "base"}, "data": {"a": "AA=="}}
NAMESPACE = {"metadata": {"name": "base-ns"}}
SERVICE = {"metadata": {"name": "base"}, "spec": {"selector": {"a": "b"}, "ports": [
    {"name": "a", "port": 80, "targetPort": 8080}, {"name": "b", "port": 81, "protocol": "UDP"}]}}
ENDPOINTS = {"metadata": {"name": "base"}, "subsets": [{"addresses": [{"ip": "1.2.3.4"}], "ports": [{"port": 80}]}]}
SLICE = {"metadata": {"name": "base"}, "addressType": "IPv4", "endpoints": [{"addresses": ["1.2.3.4"]}], "ports": [{"port": 80}]}
QUOTA = {"metadata": {"name": "base"}, "spec": {"hard": {"pods": "5", "requests.cpu": "2"}}}
LIMITS = {"metadata": {"name": "base"}, "spec": {"limits": [{"type": "Container", "max": {"cpu": "2"}, "min": {"cpu": "1"}}]}}
ROLE = {"metadata": {"name": "base"}, "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]}
BINDING = {"metadata": {"name": "base"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "r"},
           "subjects": [{"kind": "User", "name": "u", "apiGroup": "rbac.authorization.k8s.io"}]}
BUDGET = {"metadata": {"name": "base"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"a": "b"}}}}
LEASE = {"metadata": {"name": "base"}, "spec": {"holderIdentity": "x", "leaseDurationSeconds": 15}}
PRIORITY = {"metadata": {"name": "base"}, "value": 1000}
STORAGE = {"metadata": {"name": "base"}, "provisioner": "example.com/p", "parameters": {"a": "b"}}
ATTRIBUTES = {"metadata": {"name": "base"}, "driverName": "example.com/p", "parameters": {"a": "b"}}

RBAC = "/apis/rbac.authorization.k8s.io/v1/"
RULES = [{"rules.0.verbs": []}, {"rules.0.apiGroups": []}, {"rules.0.resources": NONE}, {"rules.0.verbs": NONE, "rules.0.resources": []},
         {"rules.0.nonResourceURLs": ["/a"]}, {"rules": [{"nonResourceURLs": ["/a"], "verbs": ["get"]}]}, {"rules": [{}]}]
REFS = [{"roleRef.apiGroup": "x"}, {"roleRef.kind": "Nothing"}, {"roleRef.name": ""}, {"roleRef.name": "a/b%c"}, {"roleRef.name": ".."},
        {"roleRef": {}}, {"subjects.0.kind": "x"}, {"subjects.0.name": ""}, {"subjects.0.apiGroup": "x"},
        {"subjects.0.kind": "Group", "subjects.0.apiGroup": "x"},
        {"subjects": [{"kind": "ServiceAccount", "name": "A_"}]}, {"subjects": [{"kind": "ServiceAccount", "name": ""}]},
        {"subjects": [{"kind": "ServiceAccount", "name": "a", "apiGroup": "x", "namespace": "n"}]}, {"subjects": [{}]}]
SELECTORS = [
    {"matchLabels": {"-a": "b"}}, {"matchLabels": {"a": "-"}}, {"matchLabels": {"a": LONG}},
    {"matchExpressions": [{"key": "a", "operator": "In"}]}, {"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["x"]}]},
    {"matchExpressions": [{"key": "a", "operator": "Is"}]}, {"matchExpressions": [{"key": "", "operator": "Exists"}]},
    {"matchExpressions": [{"key": "a/b/c", "operator": "In", "values": ["x", "-"]}]}]
POD = {"metadata": {"name": "base"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
WORKLOAD = {"metadata": {"name": "base"}, "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": TEMPLATE}}
JOB_TEMPLATE = changed(TEMPLATE, {"spec.restartPolicy": "Never"})
JOB = {"metadata": {"name": "base"}, "spec": {"template": JOB_TEMPLATE}}
CRON = {"metadata": {"name": "base"}, "spec": {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": JOB_TEMPLATE}}}}
CLAIM = {"metadata": {"name": "base"}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}
VOLUME = {"metadata": {"name": "base"}, "spec": {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"},
                                                 "hostPath": {"path": "/a"}}}
NETWORK = {"metadata": {"name": "base"}, "spec": {"podSelector": {}}}
INGRESS = {"metadata": {"name": "base"}, "spec": {"rules": [{"host": "a.b", "http": {"paths": [
    {"path": "/", "pathType": "Prefix", "backend": {"service": {"name": "s", "port": {"number": 80}}}}]}}]}}
CLASS = {"metadata": {"name": "base"}, "spec": {"controller": "example.com/c"}}
SCALER = {"metadata": {"name": "base"}, "spec": {"maxReplicas": 3, "scaleTargetRef": {
    "apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}}}
NODE = {"metadata": {"name": "base"}}
FIRST = "spec.containers.0."


def mounted(volume, **mount):
    return {"spec.volumes": [dict(volume, name="v")], FIRST + "volumeMounts": [dict({"name": "v", "mountPath": "/m"}, **mount)]}


def metric(**source):
    return {"spec.metrics": [source]}


USE = {"type": "Utilization", "averageUtilization": 50}
NAME_REF = {"fieldRef": {"fieldPath": "metadata.name"}}
PROBE = {"httpGet": {"port": 80, "path": "/"}}
PODS = [
    {"spec.containers": []}, {FIRST + "name": ""}, {FIRST + "name": "A_"}, {FIRST + "name": LONG}, {FIRST + "image": ""},
    {FIRST + "image": " i"},
    {"spec.containers.+": {"name": "c", "image": "i"}}, {"spec.initContainers": [{"name": "c", "image": "i"}]},
    {"spec.initContainers": [{"name": "d", "image": "i", "livenessProbe": PROBE}]}, {"spec.initContainers": [{"name": "d"}]},
    {FIRST + "terminationMessagePolicy": "X"}, {FIRST + "imagePullPolicy": "X"},
    *of(FIRST + "ports", [[{}], [{"containerPort": 70000}], [{"containerPort": 1, "name": "A"}], [{"containerPort": 1, "hostPort": -1}],
                          [{"containerPort": 1, "protocol": "X"}], [{"containerPort": 1, "name": "a"}, {"containerPort": 2, "name": "a"}],
                          [{"containerPort": 1, "hostPort": 5}, {"containerPort": 2, "hostPort": 5}]]),
    *of(FIRST + "env", [[{"name": ""}], [{"name": "a=b"}], [{"name": "a", "valueFrom": {}}],
                        [{"name": "a", "value": "x", "valueFrom": NAME_REF}],
                        [{"name": "a", "valueFrom": dict(NAME_REF, secretKeyRef={"name": "a", "key": "b"})}],
                        [{"name": "a", "valueFrom": {"fieldRef": {"fieldPath": ""}}}], [{"name": "a", "valueFrom": {"fieldRef": {
                            "fieldPath": "metadata.x"}}}],
                        [{"name": "a", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels"}}}],
                        [{"name": "a", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['-']"}}}],
                        [{"name": "a", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName['a']"}}}],
                        [{"name": "a", "valueFrom": {"resourceFieldRef": {"resource": "x"}}}],
                        [{"name": "a", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "2"}}}],
                        [{"name": "a", "valueFrom": {"resourceFieldRef": {"resource": ""}}}],
                        [{"name": "a", "valueFrom": {"configMapKeyRef": {"name": "A", "key": "a b"}}}],
                        [{"name": "a", "valueFrom": {"secretKeyRef": {"name": "a", "key": ""}}}]]),
    *of(FIRST + "envFrom", [[{}], [{"prefix": "=", "configMapRef": {"name": "a"}}], [{"secretRef": {"name": ""}}],
                            [{"configMapRef": {"name": "A"}}], [{"configMapRef": {"name": "a"}, "secretRef": {"name": "a"}}]]),
    {FIRST + "volumeMounts": [{"name": "no", "mountPath": "/m"}]}, mounted({"emptyDir": {}}, mountPath=""),
    mounted({"emptyDir": {}}, subPath="/a"), mounted({"emptyDir": {}}, subPath="../a"),
    mounted({"emptyDir": {}}, subPath="a", subPathExpr="b"),
    mounted({"emptyDir": {}}, mountPropagation="X"), mounted({"emptyDir": {}}, mountPropagation="Bidirectional"),
    mounted({"emptyDir": {}}, recursiveReadOnly="Enabled"), mounted({"emptyDir": {}}, recursiveReadOnly="X"),
    *[{"spec.volumes": [dict(x, name="v")]} for x in (
        {"emptyDir": {"sizeLimit": "-1"}}, {"hostPath": {"path": ""}}, {"hostPath": {"path": "/a/../b"}}, {"hostPath": {
            "path": "/a", "type": "X"}},
        {"emptyDir": {}, "hostPath": {"path": "/a"}}, {"secret": {"secretName": ""}}, {"secret": {"secretName": "a", "defaultMode": 512}},
        {"secret": {"secretName": "a", "items": [{"key": "", "path": "/a"}]}}, {"configMap": {"name": ""}},
        {"configMap": {"name": "a", "items": [{"key": "k", "path": "..x", "mode": -1}]}}, {"nfs": {"server": "", "path": "a"}},
        {"persistentVolumeClaim": {"claimName": ""}}, {"downwardAPI": {"items": [{"path": "a"}]}},
        {"downwardAPI": {"items": [{"path": "", "fieldRef": {"fieldPath": "status.podIP"}}]}}, {"csi": {"driver": ""}}, {"csi": {
            "driver": "A_"}},
        {"downwardAPI": {"items": [{"path": "a", "resourceFieldRef": {"resource": "limits.cpu"}}]}},
        {"projected": {"sources": [{"secret": {"name": ""}}]}}, {"projected": {"sources": [{"configMap": {"name": "a", "items": [
            {"key": "k", "path": "p"}]}}, {"secret": {"name": "b", "items": [{"key": "k", "path": "p"}]}}]}},
        {"projected": {"sources": [{"configMap": {"name": "a"}, "secret": {"name": "b"}}]}},
        {"projected": {"sources": [{"configMap": {"name": "a"}}, {"serviceAccountToken": {"path": "t"}}]}},
        {"ephemeral": {"volumeClaimTemplate": {"spec": {}}}}, {"gitRepo": {"repository": ""}}, {"iscsi": {
            "targetPortal": "", "iqn": ""}})],
    {"spec.volumes": [{"name": "A", "emptyDir": {}}]}, {"spec.volumes": [{"emptyDir": {}}]},
    {"spec.volumes": [{"name": "v", "emptyDir": {}}, {"name": "v", "emptyDir": {}}]},
    *of(FIRST + "resources", [{"limits": {"x": "1"}}, {"limits": {"cpu": "-1"}}, {"limits": {"cpu": "1"}, "requests": {"cpu": "2"}},
                              {"requests": {"example.com/a": "1"}}, {"limits": {"example.com/a": "1"}, "requests": {"example.com/a": "2"}},
                              {"limits": {"example.com/a": "500m"}}, {"limits": {"hugepages-2Mi": "1Mi", "cpu": "1"}},
                              {"limits": {"hugepages-2Mi": "2Mi"}}, {"claims": [{"name": "x"}]}]),
    *of(FIRST + "livenessProbe", [{}, {"exec": {"command": []}}, {"httpGet": {"port": 0, "path": "/"}},
                                  {"httpGet": {"port": "A", "path": "/"}},
                                  {"httpGet": {"port": 80, "scheme": "X"}}, {"httpGet": {"port": 80, "httpHeaders": [{"name": "a b"}]}},
                                  {"tcpSocket": {"port": 0}}, {"grpc": {"port": 0}}, {"exec": {"command": ["a"]}, "tcpSocket": {"port": 1}},
                                  dict(PROBE, successThreshold=2), dict(PROBE, timeoutSeconds=-1), dict(PROBE, failureThreshold=-1),
                                  dict(PROBE, terminationGracePeriodSeconds=0)]),
    {FIRST + "readinessProbe": dict(PROBE, terminationGracePeriodSeconds=5)}, {FIRST + "startupProbe": dict(PROBE, successThreshold=2)},
    {FIRST + "lifecycle": {"preStop": {}}}, {FIRST + "lifecycle": {"postStart": {"sleep": {"seconds": 31}}}},
    {FIRST + "lifecycle": {"stopSignal": "SIGTERM"}}, {FIRST + "restartPolicy": "X"},
    *of(FIRST + "resizePolicy", [[{"resourceName": "x", "restartPolicy": "NotRequired"}], [{"resourceName": "cpu", "restartPolicy": "X"}]]),
    *of(FIRST + "securityContext", [{"runAsUser": -1}, {"runAsGroup": 1 << 31}, {"procMount": "X"}, {"procMount": "Unmasked"},
                                    {"seccompProfile": {"type": "X"}}, {"seccompProfile": {"type": ""}}, {"seccompProfile": {
                                        "type": "Localhost"}},
                                    {"seccompProfile": {"type": "Localhost", "localhostProfile": "/a"}}, {"appArmorProfile": {"type": "X"}},
                                    {"appArmorProfile": {"type": "Localhost"}}, {"privileged": True}, {"privileged": False},
                                    {"privileged": True, "runAsUser": -1}]),
    {"spec.initContainers": [{"name": "d", "image": "i", "securityContext": {"privileged": True}}]},
    {"spec.restartPolicy": "X"}, {"spec.dnsPolicy": "X"}, {"spec.nodeSelector": {"-": "a"}}, {"spec.dnsPolicy": "None"},
    *of("spec.dnsConfig", [{"nameservers": ["x"]}, {"nameservers": ["1.1.1.1"] * 4}, {"searches": ["A b"]}, {"searches": ["a"] * 33},
                           {"options": [{}]}]),
    *of("spec.securityContext", [{"fsGroup": -1}, {"runAsUser": -1}, {"supplementalGroups": [-1]},
                                 {"sysctls": [{"name": "A", "value": "1"}]},
                                 {"sysctls": [{"name": "a.b", "value": "1"}, {"name": "a.b", "value": "1"}]}, {"fsGroupChangePolicy": "X"},
                                 {"supplementalGroupsPolicy": "X"},
                                 {"seccompProfile": {"type": "RuntimeDefault", "localhostProfile": "a"}}]),
    {"spec.hostPID": True, "spec.shareProcessNamespace": True},
    *[{"spec.affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": x}}}} for x in (
        [], [{"matchExpressions": [{"key": "a", "operator": "In"}]}], [{"matchExpressions": [{"key": "-", "operator": "Exists"}]}],
        [{"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1", "2"]}]}], [{"matchExpressions": [{
            "key": "a", "operator": "X"}]}],
        [{"matchFields": [{"key": "x", "operator": "In", "values": ["a"]}]}], [{"matchFields": [{
            "key": "metadata.name", "operator": "Exists"}]}])],
    {"spec.affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 0, "preference": {}}]}}},
    *[{"spec.affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [x]}}} for kind in ("podAffinity", "podAntiAffinity")
      for x in ({"topologyKey": ""}, {"topologyKey": "a b"}, {"topologyKey": "a", "namespaces": ["A"]},
                {"topologyKey": "a", "labelSelector": {"matchLabels": {"-": "a"}}})],
    {"spec.affinity": {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
        {"weight": 101, "podAffinityTerm": {"topologyKey": "a"}}]}}},
    *of("spec.tolerations", [[{}], [{"key": "-", "operator": "Exists"}], [{"key": "a", "operator": "X"}], [{"key": "a", "effect": "X"}],
                             [{"key": "a", "operator": "Exists", "value": "x"}], [{"key": "a", "value": "a b"}],
                             [{"key": "a", "tolerationSeconds": 5, "effect": "NoSchedule"}]]),
    *of("spec.topologySpreadConstraints", [
        [{"maxSkew": 0, "topologyKey": "a", "whenUnsatisfiable": "DoNotSchedule"}],
        [{"maxSkew": 1, "topologyKey": "", "whenUnsatisfiable": "DoNotSchedule"}],
        [{"maxSkew": 1, "topologyKey": "a", "whenUnsatisfiable": "X"}],
        [{"maxSkew": 1, "topologyKey": "a", "whenUnsatisfiable": "DoNotSchedule"}] * 2,
        [{"maxSkew": 1, "topologyKey": "a", "whenUnsatisfiable": "DoNotSchedule", "minDomains": 0}],
        [{"maxSkew": 1, "topologyKey": "a", "whenUnsatisfiable": "ScheduleAnyway", "minDomains": 1}]]),
    *of("spec.hostAliases", [[{"ip": "x"}], [{"ip": "1.2.3.4", "hostnames": ["A"]}]]),
    *[{f"spec.{name}": "A_"} for name in ("hostname", "subdomain", "nodeName", "serviceAccountName")],
    *of("spec.activeDeadlineSeconds", [0, -1]), {"spec.readinessGates": [{"conditionType": "-"}]},
    {"spec.schedulingGates": [{"name": "-"}]},
    {"spec.schedulingGates": [{"name": "a"}, {"name": "a"}]}, {"spec.schedulingGates": [{"name": "a"}], "spec.nodeName": "n"},
    {"spec.os": {"name": "X"}}, {"spec.os": {"name": ""}},
    {"spec.hostNetwork": True, FIRST + "ports": [{"containerPort": 1, "hostPort": 2}]},
    {"spec.ephemeralContainers": [{"name": "e", "image": "i"}]}, {"metadata.name": "A", FIRST + "name": ""},
]
TEMPLATES = [
    {"spec.selector": NONE}, {"spec.selector": {}}, {"spec.selector": {"matchLabels": {"a": "c"}}},
    *of("spec.selector", SELECTORS), {"spec.template": NONE}, {"spec.template.metadata.labels": NONE},
    {"spec.template.metadata.labels": {"a": "b", "-": "c"}}, {"spec.template.spec.containers": []},
    {"spec.template.spec.containers.0.name": "A_"}, {"spec.template.spec.restartPolicy": "Never"},
    {"spec.template.spec.activeDeadlineSeconds": 5}, {"spec.template.spec.preemptionPolicy": "X"},
    {"spec.template.spec.runtimeClassName": "A_"}, {"spec.minReadySeconds": -1},
    {"spec.template.spec.ephemeralContainers": [{"name": "e", "image": "i"}]}]

# (path of the collection, valid object, changes that make it invalid)
CREATES = [
    (CORE + "pods", POD, PODS), (CORE + "podtemplates", {"metadata": {"name": "base"}, "template": TEMPLATE}, [
        {"template.spec.containers": []}, {"template.metadata.labels": {"-": "a"}}]),
    ("/apis/apps/v1/namespaces/default/deployments", WORKLOAD, [
        *TEMPLATES, {"spec.replicas": -1}, {"spec.revisionHistoryLimit": -1}, {"spec.progressDeadlineSeconds": -1},
        {"spec.template.spec.containers.0.securityContext": {"privileged": True}},
        {"spec.progressDeadlineSeconds": 5, "spec.minReadySeconds": 5}, {"spec.strategy": {"type": "X"}},
        {"spec.strategy": {"type": "Recreate", "rollingUpdate": {"maxSurge": 1}}},
        *[{"spec.strategy": {"rollingUpdate": x}} for x in (
            {"maxSurge": 0, "maxUnavailable": 0}, {"maxSurge": -1}, {"maxSurge": "x"}, {"maxUnavailable": "101%"})]]),
    ("/apis/apps/v1/namespaces/default/replicasets", WORKLOAD, [*TEMPLATES, {"spec.replicas": -1}]),
    ("/apis/apps/v1/namespaces/default/daemonsets", WORKLOAD, [
        *TEMPLATES, {"spec.updateStrategy": {"type": "X"}}, {"spec.revisionHistoryLimit": -1},
        *[{"spec.updateStrategy": {"rollingUpdate": x}} for x in (
            {"maxSurge": 1, "maxUnavailable": 1}, {"maxSurge": 0, "maxUnavailable": 0}, {"maxSurge": "200%"}, {"maxUnavailable": "x"})]]),
    ("/apis/apps/v1/namespaces/default/statefulsets", WORKLOAD, [
        *TEMPLATES, {"spec.replicas": -1}, {"spec.podManagementPolicy": "X"}, {"spec.serviceName": "A_"}, {"spec.updateStrategy": {
            "type": "X"}},
        {"spec.updateStrategy": {"rollingUpdate": {"partition": -1}}}, {"spec.ordinals": {"start": -1}},
        {"spec.persistentVolumeClaimRetentionPolicy": {"whenDeleted": "X", "whenScaled": "Retain"}},
        {"spec.volumeClaimTemplates": [{"metadata": {"name": "v"}, "spec": {}}]},
        {"spec.template.spec.containers.0.volumeMounts": [{"name": "v", "mountPath": "/v"}]},
        {"spec.volumeClaimTemplates": [dict(CLAIM, metadata={"name": "v"})],
         "spec.template.spec.containers.0.volumeMounts": [{"name": "w", "mountPath": "/v"}]}]),
    (CORE + "replicationcontrollers", {"metadata": {"name": "base"}, "spec": {"selector": {"a": "b"}, "template": TEMPLATE}}, [
        {"spec.selector": {"a": "c"}}, {"spec.template": NONE}, {"spec.template.spec.containers": []}, {"spec.replicas": -1},
        {"spec.template.spec.restartPolicy": "Never"}, {"spec.minReadySeconds": -1}]),
    ("/apis/batch/v1/namespaces/default/jobs", JOB, [
        *[{f"spec.{name}": -1} for name in ("parallelism", "completions", "activeDeadlineSeconds", "backoffLimit",
                                            "ttlSecondsAfterFinished", "backoffLimitPerIndex", "maxFailedIndexes")],
        {"spec.completionMode": "X"}, {"spec.completionMode": "Indexed"}, {"spec.managedBy": "x"}, {"spec.podReplacementPolicy": "X"},
        {"spec.completionMode": "Indexed", "spec.completions": 1, "spec.parallelism": 100001},
        {"spec.template.spec.restartPolicy": NONE}, {"spec.template.spec.restartPolicy": "Always"}, {"spec.template.spec.containers": []},
        {"spec.template.spec.restartPolicy": "X"},
        *of("spec.selector", [{}, {"matchLabels": {"a": "b"}}, {"matchLabels": {"job-name": "base"}}, {"matchLabels": {"job-name": "x"}},
                              {"matchLabels": {"controller-uid": "x"}}, {"matchLabels": {"batch.kubernetes.io/controller-uid": "x"}},
                              {"matchExpressions": [{"key": "job-name", "operator": "Exists"}]},
                              {"matchExpressions": [{"key": "job-name", "operator": "DoesNotExist"}]},
                              {"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]},
                              {"matchExpressions": [{"key": "a", "operator": "X"}]}]),
        *of("spec.template.metadata.labels", [{"job-name": "x"}, {"job-name": "base"}, {"controller-uid": "x"}, {"a": "b"},
                                              {"batch.kubernetes.io/job-name": "x", "batch.kubernetes.io/controller-uid": "y"}]),
        {"spec.selector": {"matchLabels": {"a": "b"}}, "spec.template.metadata.labels": {"a": "b"}},
        {"spec.selector": {"matchLabels": {"a": "b"}}, "spec.template.metadata.labels": {"a": "b"}, "spec.manualSelector": True},
        {"spec.selector": {"matchLabels": {"a": "b"}}, "spec.template.metadata.labels": {"job-name": "x"}, "spec.manualSelector": True},
        {"spec.manualSelector": True}]),
    ("/apis/batch/v1/namespaces/default/cronjobs", CRON, [
        {"spec.schedule": ""}, {"spec.schedule": "x"}, {"spec.schedule": "TZ=UTC * * * * *"}, {"spec.concurrencyPolicy": "X"},
        {"spec.startingDeadlineSeconds": -1}, {"spec.timeZone": ""}, {"spec.successfulJobsHistoryLimit": -1},
        {"spec.failedJobsHistoryLimit": -1}, {"spec.jobTemplate.spec.template.spec.containers": []},
        {"spec.jobTemplate.spec.selector": {"matchLabels": {"a": "b"}}}, {"metadata.name": "x" * 53},
        {"spec.jobTemplate.spec.manualSelector": True}]),
    (CORE + "persistentvolumeclaims", CLAIM, [
        {"spec.accessModes": []}, {"spec.accessModes": ["X"]}, {"spec.accessModes": ["ReadWriteOncePod", "ReadWriteOnce"]},
        {"spec.resources": {}}, {"spec.resources.requests.storage": "0"}, {"spec.resources.requests.storage": "-1"},
        {"spec.storageClassName": "A_"}, {"spec.volumeMode": "X"}, {"spec.selector": SELECTORS[0]},
        *of("spec.dataSource", [{"kind": "X", "name": "a"}, {"kind": "PersistentVolumeClaim", "name": ""}])]),
    ("/api/v1/persistentvolumes", VOLUME, [
        {"spec.accessModes": []}, {"spec.accessModes": ["X"]}, {"spec.capacity": NONE}, {"spec.capacity": {"cpu": "1"}},
        {"spec.capacity": {"storage": "0"}}, {"spec.hostPath": NONE}, {"spec.nfs": {"server": "a", "path": "/b"}},
        {"spec.persistentVolumeReclaimPolicy": "X"}, {"spec.storageClassName": "A_"}, {"spec.volumeMode": "X"},
        {"spec.hostPath": NONE, "spec.local": {"path": "/a"}}, {"spec.hostPath": NONE, "spec.csi": {"driver": "", "volumeHandle": ""}},
        {"spec.hostPath.path": "/", "spec.persistentVolumeReclaimPolicy": "Recycle"}, {"spec.nodeAffinity": {}},
        {"spec.nodeAffinity": {"required": {"nodeSelectorTerms": []}}}]),
    ("/apis/networking.k8s.io/v1/namespaces/default/networkpolicies", NETWORK, [
        *of("spec.podSelector", SELECTORS), {"spec.policyTypes": ["X"]}, {"spec.policyTypes": ["Ingress", "Egress", "Ingress"]},
        *[{"spec.ingress": [{"ports": [x]}]} for x in (
            {"protocol": "X"}, {"port": 0}, {"port": "A"}, {"port": 5, "endPort": 4}, {"endPort": 4}, {"port": "a", "endPort": 4},
            {"port": 5, "endPort": 70000})],
        *[{"spec.egress": [{"to": [x]}]} for x in (
            {}, {"ipBlock": {"cidr": ""}}, {"ipBlock": {"cidr": "x"}}, {"ipBlock": {"cidr": "10.0.0.0/8", "except": ["11.0.0.0/16"]}},
            {"ipBlock": {"cidr": "10.0.0.0/8", "except": ["x"]}}, {"ipBlock": {"cidr": "10.0.0.0/8"}, "podSelector": {}},
            {"podSelector": SELECTORS[0]}, {"ipBlock": {"cidr": "10.0.0.0/8", "except": ["10.0.0.0/8"]}})]]),
    ("/apis/networking.k8s.io/v1/namespaces/default/ingresses", INGRESS, [
        {"spec": {}}, {"spec.rules.0.host": "A_"}, {"spec.rules.0.host": "1.2.3.4"}, {"spec.rules.0.host": "*"},
        {"spec.rules.0.host": "*.A"},
        {"spec.rules.0.http.paths": []}, {"spec.ingressClassName": "A_"}, {"spec.tls": [{"hosts": ["A_", "*"]}]},
        {"spec.tls": [{"secretName": "A_"}]}, {"spec.defaultBackend": {}},
        *of("spec.rules.0.http.paths.0.pathType", [NONE, "X"]),
        *of("spec.rules.0.http.paths.0.path", ["x", "//", "/a/../b", "/a/.", "/a%2fb"]),
        *of("spec.rules.0.http.paths.0.backend", [
            {}, {"service": {"name": ""}}, {"service": {"name": "A", "port": {"number": 1}}}, {"service": {"name": "a", "port": {
                "number": 70000}}},
            {"service": {"name": "a", "port": {"name": "A"}}}, {"service": {"name": "a", "port": {"name": "a", "number": 1}}},
            {"resource": {"kind": "", "name": ""}}, {"resource": {"kind": "a", "name": "b"}, "service": {"name": "a"}}])]),
    ("/apis/networking.k8s.io/v1/ingressclasses", CLASS, [
        *of("spec.controller", ["", "x", "A_/x", "example.com/" + "x" * 250]),
        *of("spec.parameters", [{"kind": "", "name": ""}, {"kind": "a", "name": "b", "scope": "X"}, {"kind": "a", "name": "b",
                                                                                                     "scope": "Namespace"},
                                {"kind": "a", "name": "b", "namespace": "x"}])]),
    ("/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers", SCALER, [
        *of("spec.maxReplicas", [0, -1]), {"spec.minReplicas": 0}, {"spec.minReplicas": 5}, {"spec.scaleTargetRef": {}},
        {"spec.scaleTargetRef.name": "a/b"}, metric(), metric(type="X"), metric(type="Resource"),
        metric(type="Resource", resource={"name": "", "target": USE}), metric(type="Resource", resource={"name": "cpu", "target": {
            "type": "X"}}),
        metric(type="Resource", resource={"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 0}}),
        metric(type="Resource", resource={"name": "cpu", "target": dict(USE, averageValue="1")}),
        metric(type="Pods", pods={"metric": {"name": ""}, "target": {"type": "AverageValue"}}),
        metric(type="External", external={"metric": {"name": "a"}, "target": {"type": "Value", "value": "-1"}}),
        metric(type="Object", object={"describedObject": {}, "metric": {"name": "a"}, "target": {"type": "Value"}}),
        metric(type="ContainerResource", containerResource={"name": "x", "container": "A", "target": USE}),
        *[{"spec.behavior": {"scaleUp": x}} for x in (
            {"stabilizationWindowSeconds": -1}, {"stabilizationWindowSeconds": 3601}, {"selectPolicy": "X"},
            {"policies": [{"type": "X", "value": 0, "periodSeconds": 0}]}, {"policies": [{
                "type": "Pods", "value": 1, "periodSeconds": 1801}]})]]),
    ("/api/v1/nodes", NODE, [
        *of("spec", [{"taints": [{"key": "-", "effect": "NoSchedule"}]}, {"taints": [{"key": "a", "effect": "X"}]},
                     {"taints": [{"key": "a"}]},
                     {"taints": [{"key": "a", "effect": "NoSchedule"}] * 2}, {"podCIDRs": ["x"], "podCIDR": "x"}]),
        *of("status", [{"capacity": {"cpu": "-1"}}, {"allocatable": {"pods": "500m"}}])]),
    (CORE + "configmaps", CONFIG_MAP, [
        *of("data", [{"a/b": "c"}, {"": "c"}, {".": "c"}, {"..": "c"}, {"..a": "c"}, {"x" * 254: "c"}, {"c": "d"}]),
        *of("binaryData", [{"a b": "AA=="}]), {"data.a": "x" * (1024 * 1024)}, {"metadata.name": "A", "data": {"a b": "c"}}]),
    (CORE + "secrets", SECRET, [
        *of("data", [{"a/b": "AA=="}, {"..": "AA=="}]),
        *of("type", ["kubernetes.io/dockercfg", "kubernetes.io/dockerconfigjson", "kubernetes.io/basic-auth", "kubernetes.io/ssh-auth",
                     "kubernetes.io/tls", "kubernetes.io/service-account-token"]),
        *[{"type": "kubernetes.io/dockercfg", "data": {".dockercfg": text}} for text in ("eA==", "")],
        {"type": "kubernetes.io/ssh-auth", "data": {"ssh-privatekey": ""}}, {"type": "kubernetes.io/tls", "data": {"tls.crt": ""}},
        {"data.a": "AAAA" * (350 * 1024)}]),
    ("/api/v1/namespaces", NAMESPACE, [*of("spec", [{"finalizers": ["x"]}, {"finalizers": ["-/x"]}, {"finalizers": [""]}])]),
    (CORE + "services", SERVICE, [
        {"spec.ports": []}, {"spec.ports.0.name": ""}, {"spec.ports.0.name": "A"}, {"spec.ports.0.name": LONG}, {"spec.ports.1.name": "a"},
        *of("spec.ports.0.port", [0, -1, 65536]), *of("spec.ports.0.protocol", ["X", "tcp"]),
        *of("spec.ports.0.targetPort", [70000, "a--b", "", "1", LONG, "-a"]), {"spec.ports.0.appProtocol": "-"},
        {"spec.ports.1.port": 80, "spec.ports.1.protocol": "TCP"}, {"spec.ports.0.nodePort": 30001},
        {"spec.selector": {"-": "a"}}, {"spec.sessionAffinity": "X"},
        {"spec.sessionAffinity": "None", "spec.sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 5}}},
        *[{"spec.sessionAffinity": "ClientIP", "spec.sessionAffinityConfig": {"clientIP": {"timeoutSeconds": n}}} for n in (0, 86401)],
        {"spec.type": "X"}, {"spec.type": "ExternalName"}, {"spec.type": "ExternalName", "spec.externalName": "A_"},
        {"spec.type": "ExternalName", "spec.externalName": "a.b."}, {"spec.type": "ExternalName", "spec.externalName": "."},
        {"spec.type": "ExternalName", "spec.externalName": "a.b", "spec.ipFamilyPolicy": "SingleStack"},
        {"spec.type": "ExternalName", "spec.externalName": "a.b", "spec.clusterIP": "10.0.0.9"},
        {"spec.type": "ExternalName", "spec.externalName": "a.b", "spec.ipFamilies": ["IPv4"]},
        {"spec.type": "NodePort", "spec.clusterIP": "None"}, {"spec.type": "LoadBalancer", "spec.clusterIP": "None"},
        *of("spec.clusterIP", ["x", "1.2.3", "010.0.0.1"]), {"spec.clusterIPs": ["10.0.0.9"]},
        {"spec.clusterIP": "10.0.0.9", "spec.clusterIPs": ["10.0.0.8"]},
        {"spec.clusterIP": "10.0.0.9", "spec.clusterIPs": ["10.0.0.9", "10.0.0.8"]},
        {"spec.ipFamilies": ["X"]}, {"spec.ipFamilies": ["IPv4", "IPv4"]}, {"spec.ipFamilyPolicy": "X"},
        *of("spec.externalIPs", [["x"], ["127.0.0.1"], ["0.0.0.0"], ["169.254.1.1"], ["224.0.0.1"], ["::1"], ["fe80::1"], ["01.2.3.4"]]),
        {"spec.loadBalancerSourceRanges": ["10.0.0.0/8"]},
        *[{"spec.type": "LoadBalancer", "spec.loadBalancerSourceRanges": [x]} for x in ("x", "10.0.0.0/33", "10.0.0.1/8", "10.0.0.0/08")],
        {"spec.allocateLoadBalancerNodePorts": True}, {"spec.loadBalancerClass": "a/b"},
        {"spec.type": "LoadBalancer", "spec.loadBalancerClass": "-"}, {"spec.externalTrafficPolicy": "Local"},
        {"spec.type": "NodePort", "spec.externalTrafficPolicy": "X"}, {"spec.healthCheckNodePort": 30000},
        {"spec.internalTrafficPolicy": "X"}, {"spec.trafficDistribution": "X"}]),
    (CORE + "endpoints", ENDPOINTS, [
        {"subsets.0.addresses": []}, *[{"subsets.0.addresses.0": x} for x in (
            {"ip": "x"}, {"ip": "127.0.0.1"}, {"ip": "1.2.3.4", "hostname": "A_"}, {"ip": "1.2.3.4", "nodeName": "A_"}, {})],
        *[{"subsets.0.ports": x} for x in (
            [{"port": 0}], [{"port": 1}, {"port": 2}], [{"port": 1, "name": "A_"}], [{"port": 1, "protocol": "X"}])]]),
    ("/apis/discovery.k8s.io/v1/namespaces/default/endpointslices", SLICE, [
        {"addressType": "X"}, {"addressType": NONE}, {"endpoints.0.addresses": []}, {"endpoints.0.addresses": ["x"]},
        {"endpoints.0.addresses": ["127.0.0.1"]}, {"endpoints.0.hostname": "A_"}, {"endpoints.0.nodeName": "A_"},
        {"ports": [{"name": "A_"}]}, {"ports": [{"port": 1}, {"port": 2}]}, {"ports": [{"protocol": "X"}]},
        {"endpoints": [{"addresses": ["1.2.3.4"]}] * 1001}, {"endpoints.0.addresses": ["1.2.3.4"] * 101}]),
    (CORE + "resourcequotas", QUOTA, [
        *of("spec.hard", [{"x": "1"}, {"a b": "1"}, {"pods": "-1"}, {"pods": "1.5"}, {"example.com/x": "100m"}, {"storage": "1"}]),
        *of("spec.scopes", [["X"], ["BestEffort"], ["BestEffort", "NotBestEffort"], ["Terminating", "NotTerminating"]]),
        *[{"spec.scopeSelector": {"matchExpressions": [x]}} for x in (
            {"scopeName": "X", "operator": "Exists"}, {"scopeName": "PriorityClass", "operator": "In"},
            {"scopeName": "PriorityClass", "operator": "Is"}, {"scopeName": "Terminating", "operator": "In", "values": ["a"]},
            {"scopeName": "PriorityClass", "operator": "Exists", "values": ["a"]})]]),
    (CORE + "limitranges", LIMITS, [
        *of("spec.limits.0.type", ["X", "", "a b"]), {"spec.limits.0.max": {"x": "1"}}, {"spec.limits.0.max": {"pods": "1"}},
        {"spec.limits.0.min": {"cpu": "3"}}, {"spec.limits.0.default": {"cpu": "3"}}, {"spec.limits.0.default": {"cpu": "500m"}},
        {"spec.limits.0.defaultRequest": {"cpu": "3"}}, {"spec.limits.0.defaultRequest": {"cpu": "500m"}},
        {"spec.limits.0.maxLimitRequestRatio": {"cpu": "500m"}}, {"spec.limits.0.maxLimitRequestRatio": {"cpu": "4"}},
        {"spec.limits.+": {"type": "Container"}}, {"spec.limits.0": {"type": "PersistentVolumeClaim"}},
        {"spec.limits.0": {"type": "Pod", "default": {"cpu": "1"}, "defaultRequest": {"cpu": "1"}}}]),
    (RBAC + "namespaces/default/roles", ROLE, RULES), (RBAC + "clusterroles", ROLE, [
        *RULES, {"aggregationRule": {}}, {"aggregationRule": {"clusterRoleSelectors": SELECTORS[:1]}}]),
    (RBAC + "namespaces/default/rolebindings", BINDING, REFS), (RBAC + "clusterrolebindings", BINDING, [
        *REFS, {"roleRef.kind": "Role"}, {"subjects": [{"kind": "ServiceAccount", "name": "a"}]}]),
    ("/apis/policy/v1/namespaces/default/poddisruptionbudgets", BUDGET, [
        *of("spec.minAvailable", [-1, "x", "101%", "-1%", "%"]), {"spec.minAvailable": NONE, "spec.maxUnavailable": "200%"},
        *of("spec.selector", SELECTORS), {"spec.unhealthyPodEvictionPolicy": "X"}]),
    ("/apis/coordination.k8s.io/v1/namespaces/default/leases", LEASE, [
        *of("spec.leaseDurationSeconds", [0, -1]), {"spec.leaseTransitions": -1}, {"spec.strategy": "X"}, {"spec.strategy": "a/b/c"},
        {"spec.preferredHolder": "x"}]),
    ("/apis/scheduling.k8s.io/v1/priorityclasses", PRIORITY, [
        {"value": 1000000001}, {"preemptionPolicy": "X"}, {"preemptionPolicy": ""}, {"metadata.name": "system-x"},
        {"metadata.name": "system-node-critical"}]),
    ("/apis/storage.k8s.io/v1/storageclasses", STORAGE, [
        *of("provisioner", ["", "a b", "/"]), {"parameters": {"": "x"}}, {"parameters": {str(i): "x" for i in range(513)}},
        {"parameters": {"a": "x" * 262145}}, {"reclaimPolicy": "Recycle"}, {"volumeBindingMode": "X"},
        *[{"allowedTopologies": [{"matchLabelExpressions": x}]} for x in (
            [{"key": "a", "values": []}], [{"key": "-", "values": ["a"]}], [{"key": "a", "values": ["b", "b"]}],
            [{"key": "a", "values": ["b"]}, {"key": "a", "values": ["c"]}])]]),
    ("/apis/storage.k8s.io/v1/volumeattributesclasses", ATTRIBUTES, [{"driverName": ""}, {"driverName": "a b"}, {"parameters": {}}]),
]

# (path of the collection, object that is created, changes that are refused)
UPDATES = [
    (CORE + "pods", changed(POD, {"spec.nodeName": "n", "spec.activeDeadlineSeconds": 50, "spec.tolerations": [
        {"key": "a", "operator": "Exists"}]}), [
        {FIRST + "name": "x"}, {FIRST + "image": "i "}, {"spec.containers.+": {"name": "d", "image": "i"}}, {"spec.nodeName": "m"},
        {"spec.volumes": [{"name": "t", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}}]},
        {"spec.hostname": "x"}, {"spec.priority": 7}, {"spec.priority": 0}, {"spec.priorityClassName": "x"},
        {"spec.serviceAccountName": "other"}, {"spec.automountServiceAccountToken": False}, {"spec.activeDeadlineSeconds": 51},
        {"spec.activeDeadlineSeconds": NONE}, {"spec.tolerations": []}, {FIRST + "command": ["a"]},
        {FIRST + "env": [{"name": "a"}]}, {"spec.restartPolicy": "Never"},
        {"spec.initContainers": [{"name": "d", "image": "i"}]}]),
    ("/apis/apps/v1/namespaces/default/deployments", WORKLOAD, [
        {"spec.selector": {"matchLabels": {"a": "c"}}, "spec.template.metadata.labels": {"a": "c"}}, {"spec.template.spec.containers": []},
        {"spec.replicas": -1}, {"spec.template.spec.containers.0.securityContext": {"privileged": True}}]),
    ("/apis/apps/v1/namespaces/default/replicasets", WORKLOAD, [
        {"spec.selector": {"matchLabels": {"a": "c"}}, "spec.template.metadata.labels": {"a": "c"}}]),
    ("/apis/apps/v1/namespaces/default/daemonsets", WORKLOAD, [
        {"spec.selector": {"matchLabels": {"a": "c"}}, "spec.template.metadata.labels": {"a": "c"}}]),
    ("/apis/apps/v1/namespaces/default/statefulsets", changed(WORKLOAD, {"spec.serviceName": "s"}), [
        {"spec.serviceName": "t"}, {"spec.podManagementPolicy": "Parallel"}, {"spec.volumeClaimTemplates": [
            dict(CLAIM, metadata={"name": "v"})]}]),
    ("/apis/batch/v1/namespaces/default/cronjobs", CRON, [{"spec.schedule": "x"}]),
    (CORE + "persistentvolumeclaims", CLAIM, [
        {"spec.accessModes": ["ReadOnlyMany"]}, {"spec.resources.requests.storage": "2Gi"}, {"spec.resources.requests.storage": "1Mi"},
        {"spec.volumeMode": "Block"}]),
    ("/api/v1/persistentvolumes", VOLUME, [{"spec.hostPath.path": "/b"}, {"spec.volumeMode": "Block"}, {"spec.hostPath": NONE, "spec.nfs": {
        "server": "a", "path": "/b"}}]),
    ("/apis/networking.k8s.io/v1/ingressclasses", CLASS, [{"spec.controller": "example.com/d"}]),
    ("/api/v1/nodes", changed(NODE, {"spec.podCIDR": "10.1.0.0/24", "spec.podCIDRs": ["10.1.0.0/24"], "spec.providerID": "p"}), [
        {"spec.podCIDRs": ["10.2.0.0/24"], "spec.podCIDR": "10.2.0.0/24"}, {"spec.providerID": "q"}, {"spec.taints": [{"key": "-"}]}]),
    (CORE + "configmaps", dict(CONFIG_MAP, immutable=True), [
        {"immutable": False}, {"immutable": NONE}, {"data.a": "c"}, {"binaryData": NONE}, {"data": {"a b": "c"}}]),
    (CORE + "secrets", dict(SECRET, immutable=True), [
        {"immutable": NONE}, {"data.a": "AAAA"}, {"type": "x"}, {"type": "kubernetes.io/tls"}]),
    (CORE + "services", changed(SERVICE, {"spec.clusterIP": "10.0.0.77"}), [
        {"spec.clusterIP": "10.0.0.78"}, {"spec.ports.0.port": 0}, {"spec.ports": []}]),
    ("/apis/discovery.k8s.io/v1/namespaces/default/endpointslices", SLICE, [{"addressType": "IPv6"}]),
    (CORE + "resourcequotas", QUOTA, [{"spec.scopes": ["PriorityClass"]}, {"spec.hard": {"x": "1"}}]),
    (RBAC + "namespaces/default/rolebindings", BINDING, [{"roleRef.name": "other"}, {"subjects": [{}]}]),
    (RBAC + "clusterrolebindings", BINDING, [{"roleRef.name": "other"}, {"roleRef.kind": "Role"}]),
    ("/apis/scheduling.k8s.io/v1/priorityclasses", PRIORITY, [{"value": 1001}, {"preemptionPolicy": "Never"}]),
    ("/apis/storage.k8s.io/v1/storageclasses", STORAGE, [
        {"provisioner": "x"}, {"parameters": NONE}, {"reclaimPolicy": "Retain"}, {"volumeBindingMode": "WaitForFirstConsumer"}]),
    ("/apis/storage.k8s.io/v1/volumeattributesclasses", ATTRIBUTES, [{"driverName": "x"}, {"parameters": {"a": "c"}}]),
    ("/apis/coordination.k8s.io/v1/namespaces/default/leases", LEASE, [{"spec.leaseDurationSeconds": 0}]),
]
