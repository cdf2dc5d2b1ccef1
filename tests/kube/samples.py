"""Objects of the built-in kinds that a real kube-apiserver accepts: for each kind one with the required fields alone, and some
that have every structure in which Kubernetes fills something in. tools/kubegen-defaults.py observes the defaults with them, and
same_defaults_test.py compares Vigil with them."""
import base64

# What admission changes is not a default.
WITHOUT_ADMISSION = "--disable-admission-plugins=ServiceAccount,DefaultTolerationSeconds,Priority,DefaultStorageClass," \
    "StorageObjectInUseProtection,TaintNodesByCondition,RuntimeClass,DefaultIngressClass"

CORE = "/api/v1"
NAMESPACED = "/namespaces/default"
CERTIFICATE_REQUEST = """-----BEGIN CERTIFICATE REQUEST-----
MIHOMHYCAQAwFDESMBAGA1UEAwwJc29tZS11c2VyMFkwEwYHKoZIzj0CAQYIKoZI
zj0DAQcDQgAEX6a5OT03DqT6b6ibdzN9g3E/P0ecXwj2vVMCVJaPtNoHwPj23sMD
gRnt+5LrNLFAiZppof7ldw219CMNoR78MqAAMAoGCCqGSM49BAMCA0gAMEUCIFcU
WD0al/Ai+D9YV35tAnIn9zbsOpk+Hw/apJxfDZLpAiEAjbOeUArx9Jg+uKF6BhyB
iY5ORsWe3EgMVcm+ohIh2s0=
-----END CERTIFICATE REQUEST-----
"""
LABELS = {"app": "a"}
SELECTOR = {"matchLabels": LABELS}
NODES = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "k", "operator": "Exists"}]}]}


def encode(text):
    return base64.b64encode(text.encode()).decode()


def group(name, version="v1"):
    return f"/apis/{name}/{version}"


APPS, BATCH, NET, STORAGE = group("apps"), group("batch"), group("networking.k8s.io"), group("storage.k8s.io")
RBAC, ADMISSION = group("rbac.authorization.k8s.io"), group("admissionregistration.k8s.io")
FLOW, DEVICES = group("flowcontrol.apiserver.k8s.io"), group("resource.k8s.io")


def container(name="c", **more):
    return {"name": name, "image": "registry.example/app:1.0", **more}


def probes():
    """Each way to probe, in each probe."""
    return {
        "livenessProbe": {"httpGet": {"port": 80}},
        "readinessProbe": {"grpc": {"port": 90}},
        "startupProbe": {"tcpSocket": {"port": "http"}, "periodSeconds": 0, "failureThreshold": 7},
        "lifecycle": {"postStart": {"httpGet": {"port": 8, "path": "/x"}},
                      "preStop": {"exec": {"command": ["true"]}}},
    }


def environment():
    return {
        "env": [
            {"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            {"name": "B", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}},
            {"name": "C", "valueFrom": {"configMapKeyRef": {"name": "m", "key": "k"}}},
            {"name": "D", "valueFrom": {"secretKeyRef": {"name": "m", "key": "k"}}},
            {"name": "E", "value": ""},
            {"name": "F", "valueFrom": {"fileKeyRef": {"volumeName": "empty", "path": "f", "key": "k"}}},
        ],
        "envFrom": [{"configMapRef": {"name": "m"}}, {"secretRef": {"name": "s"}, "prefix": ""}],
    }


SOURCES = [
    {},
    {"emptyDir": {"sizeLimit": "1024Mi"}},
    {"emptyDir": {"medium": ""}},
    {"hostPath": {"path": "/x"}},
    {"gcePersistentDisk": {"pdName": "x"}},
    {"awsElasticBlockStore": {"volumeID": "x"}},
    {"secret": {"secretName": "s"}},
    {"secret": {"secretName": "s", "items": [{"key": "k", "path": "p"}]}},
    {"nfs": {"server": "s", "path": "/p"}},
    {"iscsi": {"targetPortal": "1.2.3.4:3260", "iqn": "iqn.2001-04.com.example:storage.kube.sys1.xyz", "lun": 0}},
    {"glusterfs": {"endpoints": "e", "path": "p"}},
    {"persistentVolumeClaim": {"claimName": "c"}},
    {"rbd": {"monitors": ["m"], "image": "i"}},
    {"flexVolume": {"driver": "example.com/driver"}},
    {"cinder": {"volumeID": "v"}},
    {"cephfs": {"monitors": ["m"]}},
    {"flocker": {"datasetName": "d"}},
    {"downwardAPI": {"items": [{"path": "p", "fieldRef": {"fieldPath": "metadata.labels"}}]}},
    {"fc": {"targetWWNs": ["w"], "lun": 1}},
    {"azureFile": {"secretName": "s", "shareName": "n"}},
    {"configMap": {"name": "m"}},
    {"vsphereVolume": {"volumePath": "v"}},
    {"quobyte": {"registry": "r:1", "volume": "v"}},
    {"azureDisk": {"diskName": "d", "diskURI": "https://blob/x.vhd"}},
    {"photonPersistentDisk": {"pdID": "p"}},
    {"projected": {"sources": [
        {"secret": {"name": "s"}}, {"configMap": {"name": "m"}}, {"serviceAccountToken": {"path": "t"}},
        {"downwardAPI": {"items": [{"path": "p", "fieldRef": {"fieldPath": "metadata.name"}},
                                   {"path": "q", "resourceFieldRef": {
                                       "containerName": "c", "resource": "limits.cpu", "divisor": "1000m"}}]}},
    ]}},
    {"portworxVolume": {"volumeID": "p"}},
    {"scaleIO": {"gateway": "g", "system": "s", "secretRef": {"name": "n"}, "volumeName": "v"}},
    {"storageos": {"volumeName": "v"}},
    {"csi": {"driver": "d.example.com"}},
    {"ephemeral": {"volumeClaimTemplate": {"spec": {
        "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1024Mi"}}}}}},
    {"image": {"reference": "registry.example/data"}},
    {"image": {"reference": "registry.example/data:v1"}},
]


def volumes():
    """The first one has the name that the environment refers to."""
    return [{"name": "empty", "emptyDir": {}}] + [dict(source, name=f"v{i}") for i, source in enumerate(SOURCES)]


IMAGES = ["nginx", "nginx:latest", "nginx:1", "localhost:5000/a/b", "localhost:5000/a:latest", "quay.io/x/y:v1@sha256:" + "a" * 64,
          "x@sha256:" + "b" * 64, "x:latest@sha256:" + "b" * 64, "UPPER", "a/B", "Host/a", "a//b", "a__b", "a___b", "a.-b", "a--b",
          "x:", "x:-t", "x@sha256:12", "a" * 64, "f" * 64, "x_", "localhost/x", "-a", "host.example:port/x", "h:1/x:latest",
          "a b", "ü", "x:" + "t" * 129, "[::1]:5000/x", "x@sha512:" + "c" * 128, "x@other:" + "d" * 40]

RESOURCES = {"limits": {"cpu": "1000m", "memory": "1024Mi", "ephemeral-storage": "1e3"}, "requests": {"cpu": "0.0001"}}


def full_pod_spec(**more):
    return {
        "containers": [
            container(ports=[{"containerPort": 80, "name": "http"}, {"containerPort": 53, "protocol": "UDP"}],
                      resources=RESOURCES, securityContext={"capabilities": {"add": ["NET_ADMIN"]}},
                      volumeMounts=[{"name": "empty", "mountPath": "/m"},
                                    {"name": "v1", "mountPath": "/n", "readOnly": False}],
                      command=[], args=[], tty=False, workingDir="", **probes(), **environment()),
            container("d", image="nginx", resources={"limits": {"cpu": 2, "example.com/x": "3"}}),
            container("e", resizePolicy=[{"resourceName": "cpu", "restartPolicy": "NotRequired"}],
                      terminationMessagePath="/x", terminationMessagePolicy="FallbackToLogsOnError"),
        ],
        "initContainers": [
            container("i", image="nginx:latest", ports=[{"containerPort": 81}], resources={"limits": {"memory": "1.5Gi"}},
                      **environment()),
            container("s", restartPolicy="Always", startupProbe={"httpGet": {"port": 1, "scheme": "HTTPS"}}),
        ],
        "volumes": volumes(),
        "affinity": {
            "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": NODES},
            "podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 1, "podAffinityTerm": {"topologyKey": "k", "labelSelector": SELECTOR}}]},
        },
        "topologySpreadConstraints": [
            {"maxSkew": 1, "topologyKey": "k", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": SELECTOR}],
        "tolerations": [{"key": "k", "operator": "Exists"}],
        "overhead": {"cpu": "0.5"}, "runtimeClassName": "r",
        "securityContext": {"runAsNonRoot": True},
        "dnsConfig": {"options": [{"name": "n"}], "nameservers": []},
        "hostAliases": [{"ip": "1.2.3.4", "hostnames": ["h"]}],
        "readinessGates": [{"conditionType": "x/y"}],
        "imagePullSecrets": [{"name": "s"}, {}],
        "nodeSelector": {}, "hostNetwork": False, "hostname": "", "serviceAccountName": "default",
        **more,
    }


def template(spec=None, **metadata):
    return {"metadata": {"labels": LABELS, **metadata}, "spec": spec or {"containers": [container()]}}


def without(spec, *names):
    return {key: value for key, value in spec.items() if key not in names}


def full_template(**more):
    return template(full_pod_spec(**more), creationTimestamp=None, annotations={})


def pods():
    at = CORE + NAMESPACED + "/pods"
    # The runtime class does not exist, and only a RuntimeClass may set an overhead.
    full = without(full_pod_spec(), "overhead", "runtimeClassName")
    yield at, {"spec": {"containers": [container()]}}
    yield at, {"metadata": {"labels": {}, "annotations": {}, "finalizers": []}, "spec": full}
    yield at, {"spec": {**full, "hostNetwork": True, "containers": [
        container(ports=[{"containerPort": 80}]), container("d", ports=[{"containerPort": 81, "hostPort": 81}])],
        "initContainers": [container("i", ports=[{"containerPort": 82}])]}}
    yield at, {"spec": {"containers": [container(f"c{i}", image=image) for i, image in enumerate(IMAGES)]}}
    yield at, {"spec": {"containers": [container()], "resources": {"limits": {"cpu": "2", "memory": "1024Mi"}}}}
    yield at, {"spec": {"containers": [container(resources={"requests": {"cpu": "300m"}}),
                                       container("d", resources={"requests": {"cpu": "1", "memory": "1Gi"}})],
                        "resources": {"limits": {"cpu": "2000m", "memory": "4Gi"}}}}
    yield at, {"spec": {"containers": [container()], "nodeName": "", "priority": None, "restartPolicy": "Never",
                        "terminationGracePeriodSeconds": 0, "automountServiceAccountToken": False,
                        "enableServiceLinks": False, "dnsPolicy": "Default", "schedulerName": "mine"}}


def workloads():
    deployments, sets = APPS + NAMESPACED + "/deployments", APPS + NAMESPACED + "/replicasets"
    full = {"selector": SELECTOR, "template": full_template()}
    minimal = {"selector": SELECTOR, "template": template()}
    yield deployments, {"spec": minimal}
    yield deployments, {"spec": {**full, "paused": False, "strategy": {"rollingUpdate": {"maxSurge": 1}}}}
    yield deployments, {"spec": {**minimal, "strategy": {"type": "Recreate"}, "replicas": 0}}
    yield deployments, {"spec": {**minimal, "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 2}}}}
    yield sets, {"spec": {"selector": SELECTOR, "template": template()}}
    yield sets, {"spec": {**full, "replicas": 0, "minReadySeconds": 0}}
    daemons = APPS + NAMESPACED + "/daemonsets"
    yield daemons, {"spec": minimal}
    yield daemons, {"spec": {**full, "updateStrategy": {"type": "OnDelete"}}}
    yield daemons, {"spec": {**minimal, "updateStrategy": {"rollingUpdate": {"maxUnavailable": "10%"}}}}
    yield daemons, {"spec": {**minimal, "updateStrategy": {"rollingUpdate": {}}}}
    stateful = APPS + NAMESPACED + "/statefulsets"
    claim = {"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"],
                                                    "resources": {"requests": {"storage": "1024Mi"}}}}
    yield stateful, {"spec": {**minimal, "serviceName": "s"}}
    yield stateful, {"spec": {**full, "serviceName": "s", "volumeClaimTemplates": [claim],
                              "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Delete"}, "ordinals": {}}}
    yield stateful, {"spec": {**minimal, "updateStrategy": {"type": "RollingUpdate"},
                              "persistentVolumeClaimRetentionPolicy": {"whenScaled": "Delete"}}}
    yield stateful, {"spec": {**minimal, "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {}}}}
    yield stateful, {"spec": {**minimal, "updateStrategy": {"type": "OnDelete"}, "podManagementPolicy": "Parallel"}}
    controllers = CORE + NAMESPACED + "/replicationcontrollers"
    yield controllers, {"spec": {"template": template()}}
    yield controllers, {"metadata": {"labels": {"b": "c"}}, "spec": {"replicas": 0, "selector": LABELS, "template": full_template()}}
    yield CORE + NAMESPACED + "/podtemplates", {"template": template()}
    yield CORE + NAMESPACED + "/podtemplates", {"template": full_template()}
    yield APPS + NAMESPACED + "/controllerrevisions", {"revision": 1, "data": {"a": 1}}


def jobs():
    at, never = BATCH + NAMESPACED + "/jobs", {"containers": [container()], "restartPolicy": "Never"}
    full = {"template": full_template(restartPolicy="OnFailure")}
    yield at, {"spec": {"template": {"spec": never}}}
    yield at, {"spec": {**full, "parallelism": 2}}
    yield at, {"metadata": {"labels": {"x": "y"}}, "spec": {"template": template(never), "completions": 3}}
    yield at, {"spec": {"template": {"spec": never}, "completions": 3, "completionMode": "Indexed", "backoffLimitPerIndex": 1,
                        "podFailurePolicy": {"rules": [
                            {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]},
                            {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [1]}}]}}}
    cron = BATCH + NAMESPACED + "/cronjobs"
    yield cron, {"spec": {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": {"spec": never}}}}}
    yield cron, {"spec": {"schedule": "@daily", "jobTemplate": {"spec": full}, "concurrencyPolicy": "Forbid", "suspend": True}}


def services():
    at = CORE + NAMESPACED + "/services"
    ports = [{"port": 80, "name": "a"}, {"port": 81, "targetPort": "x", "name": "b"}, {"port": 82, "targetPort": 0, "name": "c"}]
    yield at, {"spec": {"ports": [{"port": 80}]}}
    yield at, {"spec": {"type": "NodePort", "ports": ports, "selector": LABELS}}
    yield at, {"spec": {"type": "LoadBalancer", "ports": ports, "sessionAffinity": "ClientIP"}}
    yield at, {"spec": {"type": "ExternalName", "externalName": "example.com"}}
    yield at, {"spec": {"clusterIP": "None", "ports": ports, "publishNotReadyAddresses": False}}
    yield at, {"spec": {"ports": ports, "externalIPs": ["1.2.3.4"], "sessionAffinity": "ClientIP",
                        "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 5}}}}


PERSISTENT = [
    {"hostPath": {"path": "/x"}}, {"nfs": {"server": "s", "path": "/p"}}, {"csi": {"driver": "d.example.com", "volumeHandle": "h"}},
    {"local": {"path": "/x"}}, {"fc": {"targetWWNs": ["w"], "lun": 1}},
    {"iscsi": {"targetPortal": "1.2.3.4:3260", "iqn": "iqn.2001-04.com.example:storage.kube.sys1.xyz", "lun": 0}},
    {"rbd": {"monitors": ["m"], "image": "i"}}, {"azureDisk": {"diskName": "d", "diskURI": "https://blob/x.vhd"}},
    {"scaleIO": {"gateway": "g", "system": "s", "secretRef": {"name": "n"}, "volumeName": "v"}},
    {"cephfs": {"monitors": ["m"]}}, {"cinder": {"volumeID": "v"}}, {"glusterfs": {"endpoints": "e", "path": "p"}},
    {"azureFile": {"secretName": "s", "shareName": "n"}}, {"flexVolume": {"driver": "example.com/driver"}},
    {"gcePersistentDisk": {"pdName": "x"}}, {"awsElasticBlockStore": {"volumeID": "x"}}, {"vsphereVolume": {"volumePath": "v"}},
    {"quobyte": {"registry": "r:1", "volume": "v"}}, {"photonPersistentDisk": {"pdID": "p"}}, {"portworxVolume": {"volumeID": "p"}},
    {"storageos": {"volumeName": "v"}}, {"flocker": {"datasetName": "d"}},
]


def persistent_volumes():
    for source in PERSISTENT:
        affinity = {"nodeAffinity": {"required": NODES}} if "local" in source else {}
        yield CORE + "/persistentvolumes", {"spec": {
            "capacity": {"storage": "1024Mi"}, "accessModes": ["ReadWriteOnce"], **source, **affinity}}
    claims = CORE + NAMESPACED + "/persistentvolumeclaims"
    request = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1024Mi"}}}
    yield claims, {"spec": request}
    yield claims, {"spec": {**request, "volumeMode": "Block", "storageClassName": "",
                            "dataSource": {"kind": "PersistentVolumeClaim", "name": "x"}, "selector": {}}}
    yield claims, {"spec": {**request, "dataSourceRef": {"kind": "PersistentVolumeClaim", "name": "x"}}}
    yield claims, {"spec": {**request, "dataSourceRef": {"apiGroup": "example.com", "kind": "K", "name": "x"}}}
    yield STORAGE + "/storageclasses", {"provisioner": "example.com/p"}
    yield STORAGE + "/storageclasses", {"provisioner": "example.com/p", "reclaimPolicy": "Retain", "parameters": {},
                                        "volumeBindingMode": "WaitForFirstConsumer", "allowVolumeExpansion": False}
    yield STORAGE + "/csidrivers", {"spec": {}}
    yield STORAGE + "/csidrivers", {"spec": {"attachRequired": False, "tokenRequests": [{"audience": ""}], "requiresRepublish": True,
                                             "volumeLifecycleModes": ["Ephemeral"], "fsGroupPolicy": "File"}}
    yield STORAGE + "/csinodes", {"spec": {"drivers": []}}
    yield STORAGE + "/csinodes", {"spec": {"drivers": [{"name": "d.example.com", "nodeID": "n", "topologyKeys": []}]}}
    yield STORAGE + NAMESPACED + "/csistoragecapacities", {"storageClassName": "s", "capacity": "1024Mi"}
    yield STORAGE + "/volumeattachments", {"spec": {
        "attacher": "a.example.com", "nodeName": "n", "source": {"persistentVolumeName": "v"}}}
    yield STORAGE + "/volumeattachments", {"spec": {"attacher": "a.example.com", "nodeName": "n", "source": {"inlineVolumeSpec": {
        "accessModes": ["ReadWriteOnce"], "csi": {"driver": "d.example.com", "volumeHandle": "h"}}}}}
    yield STORAGE + "/volumeattributesclasses", {"driverName": "d.example.com", "parameters": {"a": "b"}}


def plain():
    yield CORE + NAMESPACED + "/configmaps", {}
    yield CORE + NAMESPACED + "/configmaps", {"data": {"a": "b", "c": ""}, "binaryData": {}, "immutable": False}
    yield CORE + NAMESPACED + "/secrets", {}
    yield CORE + NAMESPACED + "/secrets", {"stringData": {"a": "b"}, "type": "example.com/x"}
    yield CORE + NAMESPACED + "/serviceaccounts", {}
    yield CORE + NAMESPACED + "/serviceaccounts", {"automountServiceAccountToken": False, "secrets": [{"name": "x"}],
                                                   "imagePullSecrets": []}
    yield CORE + "/namespaces", {}
    yield CORE + "/nodes", {}
    yield CORE + "/nodes", {"spec": {"taints": [{"key": "k", "effect": "NoSchedule"}], "unschedulable": False, "podCIDR": ""},
                            "status": {"capacity": {"cpu": "1000m"}}}
    yield CORE + "/nodes", {"spec": {"podCIDR": "10.0.0.0/24"}}
    yield CORE + "/nodes", {"spec": {"podCIDRs": ["10.0.1.0/24", "fd00::/64"]}}
    yield CORE + NAMESPACED + "/endpoints", {}
    yield CORE + NAMESPACED + "/endpoints", {"subsets": [{"addresses": [{"ip": "1.2.3.4"}], "notReadyAddresses": [],
                                                          "ports": [{"port": 80}]}]}
    yield CORE + NAMESPACED + "/limitranges", {"spec": {"limits": [{"type": "Pod"}]}}
    yield CORE + NAMESPACED + "/limitranges", {"spec": {"limits": [
        {"type": "Container", "max": {"cpu": "2000m", "memory": "1Gi"}, "min": {"cpu": "0.1", "ephemeral-storage": "1"}},
        {"type": "PersistentVolumeClaim", "max": {"storage": "1024Gi"}, "min": {}}]}}
    yield CORE + NAMESPACED + "/limitranges", {"spec": {"limits": [{"type": "Container", "default": {"cpu": "1"}}]}}
    yield CORE + NAMESPACED + "/limitranges", {"spec": {"limits": [{"type": "Container"}]}}
    yield CORE + NAMESPACED + "/resourcequotas", {}
    yield CORE + NAMESPACED + "/resourcequotas", {"spec": {"hard": {"cpu": "1000m", "pods": 10}, "scopes": []}}
    event = {"involvedObject": {"kind": "Pod", "namespace": "default", "name": "x"}}
    yield CORE + NAMESPACED + "/events", event
    yield CORE + NAMESPACED + "/events", {**event, "reason": "R", "message": "", "count": 0, "type": "Normal", "source": {}}
    yield group("events.k8s.io") + NAMESPACED + "/events", {
        "eventTime": "2026-01-02T03:04:05.000006Z", "reportingController": "example.com/c", "reportingInstance": "i", "action": "A",
        "reason": "R", "type": "Normal", "regarding": event["involvedObject"]}
    yield group("coordination.k8s.io") + NAMESPACED + "/leases", {}
    yield group("coordination.k8s.io") + NAMESPACED + "/leases", {"spec": {
        "holderIdentity": "h", "leaseDurationSeconds": 1, "renewTime": "2026-01-02T03:04:05.000000Z"}}
    slices = group("discovery.k8s.io") + NAMESPACED + "/endpointslices"
    yield slices, {"addressType": "IPv4", "endpoints": [], "ports": []}
    yield slices, {"addressType": "IPv4", "endpoints": [{"addresses": ["1.2.3.4"]}, {"addresses": ["1.2.3.5"], "conditions": {
        "ready": False}}], "ports": [{"port": 80}, {"name": "x", "port": 1, "protocol": "UDP"}]}


def policies():
    yield NET + NAMESPACED + "/networkpolicies", {"spec": {"podSelector": {}}}
    yield NET + NAMESPACED + "/networkpolicies", {"spec": {
        "podSelector": SELECTOR, "ingress": [{"ports": [{"port": 80}, {"port": 1, "endPort": 2, "protocol": "UDP"}],
                                              "from": [{"podSelector": {}}, {"ipBlock": {"cidr": "10.0.0.0/8"}}]}],
        "egress": [{}]}}
    yield NET + NAMESPACED + "/networkpolicies", {"spec": {"podSelector": {}, "policyTypes": ["Egress"]}}
    yield NET + "/ingressclasses", {"spec": {"controller": "example.com/c"}}
    yield NET + "/ingressclasses", {"spec": {"controller": "example.com/c", "parameters": {"kind": "K", "name": "n"}}}
    backend = {"service": {"name": "s", "port": {"number": 80}}}
    yield NET + NAMESPACED + "/ingresses", {"spec": {"defaultBackend": backend}}
    yield NET + NAMESPACED + "/ingresses", {"spec": {"ingressClassName": "c", "tls": [{"hosts": ["h.example"]}], "rules": [
        {"host": "h.example", "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": backend}]}}, {"host": "x.example"}]}}
    yield NET + "/servicecidrs", {"spec": {"cidrs": ["10.9.0.0/16"]}}
    yield NET + "/ipaddresses", {"name": "10.9.0.7", "spec": {"parentRef": {"resource": "services", "namespace": "default", "name": "s"}}}
    yield group("certificates.k8s.io") + "/certificatesigningrequests", {"spec": {
        "request": encode(CERTIFICATE_REQUEST), "signerName": "example.com/s", "usages": ["client auth"]}}
    yield group("policy") + NAMESPACED + "/poddisruptionbudgets", {}
    yield group("policy") + NAMESPACED + "/poddisruptionbudgets", {"spec": {"minAvailable": "50%", "selector": SELECTOR}}
    yield group("scheduling.k8s.io") + "/priorityclasses", {"value": 5}
    yield group("scheduling.k8s.io") + "/priorityclasses", {"value": 5, "preemptionPolicy": "Never", "globalDefault": False,
                                                            "description": ""}
    yield group("node.k8s.io") + "/runtimeclasses", {"handler": "h"}
    yield group("node.k8s.io") + "/runtimeclasses", {"handler": "h", "overhead": {"podFixed": {"cpu": "1000m"}}, "scheduling": {
        "tolerations": [{"key": "k", "operator": "Exists"}]}}
    yield RBAC + NAMESPACED + "/roles", {}
    yield RBAC + NAMESPACED + "/roles", {"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"], "resourceNames": []}]}
    yield RBAC + "/clusterroles", {"rules": []}
    yield RBAC + "/clusterroles", {"aggregationRule": {"clusterRoleSelectors": [SELECTOR]}, "rules": None}
    subjects = [{"kind": "User", "name": "u"}, {"kind": "Group", "name": "g"},
                {"kind": "ServiceAccount", "name": "s", "namespace": "default"}]
    yield RBAC + NAMESPACED + "/rolebindings", {"roleRef": {"kind": "Role", "name": "r"}}
    yield RBAC + NAMESPACED + "/rolebindings", {"roleRef": {"kind": "ClusterRole", "name": "r", "apiGroup": ""}, "subjects": subjects}
    yield RBAC + "/clusterrolebindings", {"roleRef": {"kind": "ClusterRole", "name": "r"}, "subjects": []}
    yield RBAC + "/clusterrolebindings", {"roleRef": {"kind": "ClusterRole", "name": "r"}, "subjects": subjects}


def autoscalers():
    one, two = group("autoscaling") + NAMESPACED, group("autoscaling", "v2") + NAMESPACED
    target = {"maxReplicas": 3, "scaleTargetRef": {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"}}
    name = "/horizontalpodautoscalers"
    yield one + name, {"spec": target}
    yield one + name, {"spec": {**target, "targetCPUUtilizationPercentage": 50, "minReplicas": 2}}
    yield two + name, {"spec": target}
    yield two + name, {"spec": {**target, "behavior": {}, "metrics": [
        {"type": "Resource", "resource": {"name": "memory", "target": {"type": "AverageValue", "averageValue": "1024Mi"}}},
        {"type": "Pods", "pods": {"metric": {"name": "m"}, "target": {"type": "AverageValue", "averageValue": "1000m"}}}]}}
    yield two + name, {"spec": {**target, "behavior": {
        "scaleDown": {"stabilizationWindowSeconds": 5, "policies": [{"type": "Pods", "value": 1, "periodSeconds": 2}]},
        "scaleUp": {"selectPolicy": "Min"}}}}


def extensions():
    webhook = {"name": "w.example.com", "clientConfig": {"url": "https://example.com"}, "sideEffects": "None",
               "admissionReviewVersions": ["v1"]}
    rules = [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}]
    service = {"service": {"namespace": "n", "name": "s"}}
    for plural in ("mutatingwebhookconfigurations", "validatingwebhookconfigurations"):
        yield f"{ADMISSION}/{plural}", {}
        yield f"{ADMISSION}/{plural}", {"webhooks": [webhook]}
        yield f"{ADMISSION}/{plural}", {"webhooks": [{**webhook, "rules": rules, "clientConfig": service, "failurePolicy": "Ignore",
                                                      "matchConditions": [], "objectSelector": {"matchLabels": {}}}]}
    constraints = {"resourceRules": rules, "excludeResourceRules": [{**rules[0], "scope": "Cluster"}]}
    policy = {"matchConstraints": constraints, "validations": [{"expression": "true"}]}
    yield f"{ADMISSION}/validatingadmissionpolicies", {"spec": policy}
    yield f"{ADMISSION}/validatingadmissionpolicies", {"spec": {
        **policy, "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}, "failurePolicy": "Ignore",
        "auditAnnotations": [{"key": "k", "valueExpression": "'x'"}], "variables": []}}
    yield f"{ADMISSION}/validatingadmissionpolicybindings", {"spec": {"policyName": "p", "validationActions": ["Deny"]}}
    yield f"{ADMISSION}/validatingadmissionpolicybindings", {"spec": {
        "policyName": "p", "validationActions": ["Deny"], "matchResources": {"namespaceSelector": SELECTOR},
        "paramRef": {"name": "x", "parameterNotFoundAction": "Allow"}}}
    mutation = {"patchType": "JSONPatch", "jsonPatch": {"expression": "[JSONPatch{op: 'remove', path: '/x'}]"}}
    yield f"{ADMISSION}/mutatingadmissionpolicies", {"spec": {
        "matchConstraints": constraints, "reinvocationPolicy": "Never", "mutations": [mutation]}}
    yield f"{ADMISSION}/mutatingadmissionpolicybindings", {"spec": {"policyName": "p", "matchResources": {}}}
    yield group("apiregistration.k8s.io") + "/apiservices", {"name": "v1.example.com", "spec": {
        "group": "example.com", "version": "v1", "groupPriorityMinimum": 1, "versionPriority": 1, "insecureSkipTLSVerify": True,
        "service": {"namespace": "n", "name": "s"}}}
    subjects = [{"kind": "User", "user": {"name": "u"}}]
    level = {"priorityLevelConfiguration": {"name": "exempt"}}
    yield f"{FLOW}/flowschemas", {"spec": level}
    yield f"{FLOW}/flowschemas", {"spec": {**level, "distinguisherMethod": {"type": "ByUser"}, "rules": [
        {"subjects": subjects, "nonResourceRules": [{"verbs": ["get"], "nonResourceURLs": ["/x"]}]},
        {"subjects": subjects, "resourceRules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "clusterScope": False,
                                                  "namespaces": ["*"]}]}]}}
    levels = f"{FLOW}/prioritylevelconfigurations"
    yield levels, {"spec": {"type": "Limited", "limited": {"limitResponse": {"type": "Reject"}}}}
    yield levels, {"spec": {"type": "Limited", "limited": {"nominalConcurrencyShares": 0, "limitResponse": {
        "type": "Queue", "queuing": {}}}}}


def devices():
    yield f"{DEVICES}/deviceclasses", {}
    yield f"{DEVICES}/deviceclasses", {"spec": {"selectors": [{"cel": {"expression": "true"}}]}}
    exact = {"name": "r", "exactly": {"deviceClassName": "c"}}
    claim = {"devices": {"requests": [
        exact, {"name": "a", "exactly": {"deviceClassName": "c", "allocationMode": "All"}},
        {"name": "s", "firstAvailable": [{"name": "x", "deviceClassName": "c"}]}],
        "config": [{"requests": ["r"], "opaque": {"driver": "d.example.com", "parameters": {"k": "v"}}}]}}
    yield f"{DEVICES}{NAMESPACED}/resourceclaims", {"spec": {"devices": {"requests": [exact]}}}
    yield f"{DEVICES}{NAMESPACED}/resourceclaims", {"spec": claim}
    yield f"{DEVICES}{NAMESPACED}/resourceclaims", {"spec": {"devices": {"requests": [
        {"name": "t", "exactly": {"deviceClassName": "c", "tolerations": [{"key": "k", "value": "v"}, {"operator": "Exists"}]}}]}}}
    yield f"{DEVICES}{NAMESPACED}/resourceclaimtemplates", {"spec": {"spec": claim}}
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 1}
    yield f"{DEVICES}/resourceslices", {"spec": {"driver": "d.example.com", "pool": pool, "nodeName": "n"}}
    yield f"{DEVICES}/resourceslices", {"spec": {"driver": "d.example.com", "pool": pool, "allNodes": True, "devices": [
        {"name": "a", "attributes": {"x": {"bool": True}}, "capacity": {"memory": {"value": "1024Mi"}}}]}}


def samples():
    """(collection, object) with a name in each object."""
    parts = (pods, workloads, jobs, services, persistent_volumes, plain, policies, autoscalers, extensions, devices)
    for part in parts:
        for i, (collection, sample) in enumerate(part()):
            sample = dict(sample)
            name = sample.pop("name", f"{part.__name__.replace('_', '-')}-{i}")
            metadata = {"name": name, **sample.pop("metadata", {})}
            if "/namespaces/default/" in collection:
                metadata["namespace"] = "default"
            yield collection, {"metadata": metadata, **sample}
