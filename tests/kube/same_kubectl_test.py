#!/usr/bin/python3
"""Runs the same kubectl commands on a real kube-apiserver and on Vigil's own Kubernetes API. Output and exit code must be
the same. tools/build-kube builds the real kube-apiserver. VIGIL_KUBECTL names another kubectl."""
import difflib
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/live"))
sys.path.insert(0, str(ROOT / "tests/kube"))
from apiserver_test import Apiserver, KUBE  # noqa: E402
from server import Server, free_port  # noqa: E402

KUBECTL = os.environ.get("VIGIL_KUBECTL", str(KUBE / "kubectl"))

WEB = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: c, image: "nginx:1", ports: [{containerPort: 80}]}
"""
HATS = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: hats.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: hats, kind: Hat, shortNames: [ht], categories: [clothes]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources:
      status: {}
      scale: {specReplicasPath: .spec.copies, statusReplicasPath: .status.copies}
    additionalPrinterColumns:
    - {name: Size, type: integer, jsonPath: .spec.size}
    - {name: Color, type: string, jsonPath: .spec.color, priority: 1}
    selectableFields: [{jsonPath: .spec.color}]
    schema:
      openAPIV3Schema:
        type: object
        description: what is worn on a head
        properties:
          spec:
            type: object
            required: [size]
            properties:
              size: {type: integer, minimum: 1, description: of the head}
              color: {type: string, enum: [red, blue], default: red}
              copies: {type: integer}
          status: {type: object, properties: {copies: {type: integer}, phase: {type: string}}}
"""


def hat(name, size="3", more=""):
    return (f"apiVersion: example.com/v1\nkind: Hat\nmetadata: {{name: {name}, labels: {{x: worn}}}}\n"
            f"spec: {{size: {size}{more}}}\n")


def config(name, value="1", more=""):
    return (f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, labels: {{set: all}}}}\n"
            f"data: {{k: '{value}'}}\n{more}")


CLAIM = ("apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: claim}\n"
         "spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n")
EVENT = ("apiVersion: v1\nkind: Event\nmetadata: {name: happened}\nreason: Test\ntype: Normal\nmessage: it did\n"
         "involvedObject: {kind: Pod, namespace: default, name: idle, apiVersion: v1}\n"
         "lastTimestamp: 2026-01-01T00:00:00Z\nfirstTimestamp: 2026-01-01T00:00:00Z\ncount: 3\n"
         "source: {component: tester}\n")

# Objects of kinds that no command creates, with the fields that their columns show.
OTHERS = """
apiVersion: v1
kind: PersistentVolume
metadata: {name: vol}
spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteMany, ReadWriteOnce], persistentVolumeReclaimPolicy: Retain,
  hostPath: {path: /a}, volumeMode: Filesystem, storageClassName: fast, claimRef: {namespace: a, name: b}}
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: fast, annotations: {storageclass.kubernetes.io/is-default-class: "true"}}
provisioner: example.com/p
---
apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata: {name: front}
spec: {controller: example.com/c}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: hosts}
spec:
  ingressClassName: front
  tls: [{hosts: [a.b]}]
  rules: [{host: a.b}, {host: b.b}, {host: c.b}, {host: d.b}]
  defaultBackend: {service: {name: x, port: {number: 1}}}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: shut}
spec: {podSelector: {matchLabels: {a: b}}}
---
apiVersion: v1
kind: Endpoints
metadata: {name: ends}
subsets: [{addresses: [{ip: 10.1.0.1}, {ip: 10.1.0.2}], ports: [{port: 80, name: a}, {port: 81, name: b}]}]
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: slice}
addressType: IPv4
ports: [{port: 80, name: a, protocol: TCP}, {name: b, protocol: TCP}]
endpoints: [{addresses: [10.1.0.1, 10.1.0.2]}, {addresses: [10.1.0.3]}, {addresses: [10.1.0.4]}]
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: more}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  minReplicas: 2
  maxReplicas: 9
  metrics:
  - {type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}}
  - {type: External, external: {metric: {name: q}, target: {type: AverageValue, averageValue: "30"}}}
  - {type: Pods, pods: {metric: {name: p}, target: {type: AverageValue, averageValue: 1k}}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: many}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: r}
subjects:
- {kind: User, name: u, apiGroup: rbac.authorization.k8s.io}
- {kind: User, name: v, apiGroup: rbac.authorization.k8s.io}
- {kind: ServiceAccount, name: s, namespace: space}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: few}
spec: {maxUnavailable: 10%, selector: {matchLabels: {a: b}}}
---
apiVersion: node.k8s.io/v1
kind: RuntimeClass
metadata: {name: rt}
handler: h
---
apiVersion: v1
kind: LimitRange
metadata: {name: lr}
spec: {limits: [{type: Pod, max: {cpu: "1"}}]}
---
apiVersion: apps/v1
kind: ControllerRevision
metadata: {name: rev, ownerReferences: [{apiVersion: apps/v1, kind: StatefulSet, name: s, uid: u, controller: true}]}
revision: 3
data: {}
---
apiVersion: v1
kind: PodTemplate
metadata: {name: tpl}
template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}
---
apiVersion: storage.k8s.io/v1
kind: CSINode
metadata: {name: csin}
spec: {drivers: []}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: hook}
webhooks: []
---
apiVersion: networking.k8s.io/v1
kind: ServiceCIDR
metadata: {name: cidr}
spec: {cidrs: [10.9.0.0/24]}
---
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata: {name: led}
spec: {holderIdentity: me, leaseDurationSeconds: 5}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: set}
spec:
  replicas: 1
  serviceName: s
  selector: {matchLabels: {a: b}}
  template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: each}
spec:
  selector: {matchLabels: {a: b}}
  template: {metadata: {labels: {a: b}}, spec: {nodeSelector: {x: "1"}, containers: [{name: c, image: i}]}}
"""
OTHER_KINDS = ("pv sc ingressclass ingress netpol endpointslice rolebinding pdb runtimeclass limitrange "
               "controllerrevision podtemplate csinode validatingwebhookconfiguration lease statefulset "
               "daemonset replicaset replicationcontroller role serviceaccount").split()

# Reasons why the output differs (docs/compatibility-kubernetes.md).
SPEC = "Vigil adds no defaults and does not check the rules of single kinds"
WORDING = "Vigil's message has another wording"
OPENAPI = "types of built-in kinds have no descriptions"
OWN = "the output names the server"
MISSING = "Vigil does not serve it"

# A command, its input, and the reason why its output differs. {dir} is the directory of the kustomization.
COMMANDS = [
    ("get configmaps -n kube-system", None),
    ("version -o json", None, OWN),
    ("api-versions", None),
    ("api-resources", None),
    ("api-resources --namespaced=false -o name --sort-by=name", None),
    ("api-resources --api-group=apps -o wide", None),
    ("cluster-info", None),
    ("get namespaces", None),
    ("get nothing", None),
    ("get pods", None),
    ("get pods nope", None),
    ("get pods -n nope", None),
    ("get all", None),
    ("get pods,services,configmaps -A", None),
    ("create configmap one --from-literal=k=1", None),
    ("create configmap one --from-literal=k=1", None),
    ("get configmap one -o yaml", None),
    ("get configmap one -o json", None),
    ("get configmap one -o jsonpath={.data.k}", None),
    ("get configmaps -o custom-columns=N:.metadata.name,K:.data.k", None),
    ("get configmap one -o go-template={{.data.k}}", None),
    ("get configmaps -o name", None),
    ("get configmap one -o wide --show-labels", None),
    ("get configmap one --show-kind --no-headers", None),
    ("create -f -", config("two", "2", "---\n" + config("three", "3"))),
    ("get configmaps --sort-by=.metadata.name", None),
    ("get configmaps --sort-by=.data.k -o name", None),
    ("get configmaps --field-selector=metadata.name=two -o name", None),
    ("get configmaps --field-selector=data.k=two", None),
    ("get configmaps -l set=all -o name", None),
    ("get configmaps -l 'set in (', -o name", None),
    ("get configmaps --chunk-size=1 -o name", None),
    ("get configmaps -l set=none", None),
    ("label configmap two a=b", None),
    ("label configmap two a=c", None),
    ("label configmap two a=c --overwrite", None),
    ("label configmap two a-", None),
    ("label configmap two nope-", None),
    ("label configmap two a=/", None),
    ("label configmaps --all z=1", None),
    ("annotate configmap two note=1", None),
    ("annotate configmap two note-", None),
    ("patch configmap two -p '{\"data\":{\"k\":\"9\"}}'", None),
    ("patch configmap two -p '{\"data\":{\"k\":\"9\"}}'", None),
    ("patch configmap two --type=merge -p '{\"data\":{\"m\":\"9\"}}' -o yaml", None),
    ("patch configmap two --type=json -p '[{\"op\":\"remove\",\"path\":\"/data/m\"}]'", None),
    ("patch configmap two --type=json -p '[{\"op\":\"remove\",\"path\":\"/data/m\"}]'", None),
    ("patch configmap two -p '{\"data\":{\"k\":{}}}'", None, WORDING),
    ("patch configmap nope -p '{\"data\":{\"k\":\"9\"}}'", None),
    ("describe configmap two", None),
    ("describe namespace default", None),
    ("describe configmap nope", None),
    ("replace -f -", config("two", "22")),
    ("replace -f -", config("nope", "22")),
    ("replace --force -f -", config("two", "23")),
    ("diff -f -", config("two", "24")),
    ("diff -f -", config("two", "23")),
    ("diff -f -", config("fresh", "1")),
    ("create --dry-run=server -f -", config("dry")),
    ("create --dry-run=client -o yaml -f -", config("dry")),
    ("get configmap dry", None),
    ("apply -f -", config("app", "1", "---\n" + config("bpp", "1"))),
    ("apply -f -", config("app", "1", "---\n" + config("bpp", "2"))),
    ("apply --prune -l set=all --prune-allowlist=core/v1/ConfigMap -f -", config("app", "1")),
    ("get configmaps -o name", None),
    ("apply view-last-applied configmap app", None),
    ("apply set-last-applied configmap/app -f - --create-annotation", config("app", "1")),
    ("apply --dry-run=server -f -", config("app", "5")),
    ("apply -f -", config("app", "1").replace("\ndata:", "\ndota:"), WORDING),
    ("create -f -", config("bad").replace("\ndata:", "\ndota:")),
    ("create --validate=warn -f -", config("bad").replace("\ndata:", "\ndota:")),
    ("create --validate=ignore -f -", config("bad2").replace("\ndata:", "\ndota:")),
    ("create -f -", config("bad").replace("'1'", "1")),
    ("create -f -", config("Bad")),
    ("create -f -", "apiVersion: v1\nkind: Nothing\nmetadata: {name: a}\n"),
    ("create -f -", "apiVersion: v1\nmetadata: {name: a}\n"),
    ("create -f -", "a: [\n"),
    ("create -f -", WEB.replace("replicas: 2", "replicas: 2\n  replica: 3")),
    ("create -f -", WEB.replace("replicas: 2", "replicas: two")),
    ("create -f -", WEB.replace("containerPort", "containersPort")),
    ("create --dry-run=server -f -", WEB.replace("selector: {matchLabels: {app: web}}", "paused: true")),
    ("apply -k {dir}", None),
    ("get configmaps -l from=kustomize", None),
    ("diff -k {dir}", None),
    ("delete -k {dir}", None),
    ("kustomize {dir}", None),
    ("apply -f -", WEB),
    ("apply -f -", WEB.replace("nginx:1", "nginx:2")),
    ("apply -f -", WEB.replace("nginx:1", "nginx:2")),
    ("get deployment web", None),
    ("get deployment web -o wide", None),
    ("get deployment web -o jsonpath={.metadata.generation}", None),
    ("describe deployment web", None),
    ("set image deployment/web c=nginx:3", None),
    ("set env deployment/web A=b", None),
    ("set resources deployment/web --limits=cpu=1", None),
    ("scale deployment web --replicas=4", None),
    ("scale deployment web --replicas=4 --current-replicas=9", None),
    ("autoscale deployment web --max=5", None),
    ("get hpa", None),
    ("rollout restart deployment web", None),
    ("rollout history deployment web", None),
    ("rollout status deployment web --watch=false", None),
    ("rollout pause deployment web", None),
    ("rollout pause deployment web", None),
    ("rollout resume deployment web", None),
    ("rollout undo deployment web", None),
    ("expose deployment web --port=80", None),
    ("get service web -o jsonpath={.spec.ports[0].port}", None),
    ("get service web", None),
    ("describe service web", None),
    ("get endpointslices", None),
    ("wait deployment/web --for=jsonpath={.spec.replicas}=4 --timeout=5s", None),
    ("wait deployment/web --for=condition=Available --timeout=1s", None),
    ("wait deployment/nope --for=condition=Available --timeout=1s", None),
    ("wait configmap/nope --for=delete --timeout=5s", None),
    ("wait configmap/two --for=delete --timeout=1s", None),
    ("wait configmap/two --for=create --timeout=1s", None),
    ("run idle --image=a:1", None),
    ("get pod idle", None),
    ("get pod idle -o wide", None),
    ("get pods --field-selector=status.phase=Pending -o name", None),
    ("get pods --field-selector=spec.nodeName=x -o name", None),
    ("get pods --field-selector=spec.nope=x -o name", None),
    ("describe pod idle", None),
    ("logs idle", None),
    ("exec idle -- ls", None),
    ("attach idle", None),
    ("cp idle:/a /tmp/nowhere", None),
    ("port-forward pod/idle 1:2", None),
    ("top pods", None),
    ("top nodes", None),
    ("debug idle --image=b -c dbg", None),
    ("create -f -", EVENT),
    ("get events", None),
    ("events", None),
    ("get events --field-selector=involvedObject.name=idle -o name", None),
    ("get events.events.k8s.io -o name", None),
    ("describe pod idle", None),
    ("delete pod idle --now", None),
    ("delete pod idle", None),
    ("delete pod idle --ignore-not-found", None),
    ("create namespace team", None),
    ("get namespace team", None),
    ("create quota q --hard=cpu=1 -n team", None),
    ("get quota -n team", None),
    ("describe quota q -n team", None),
    ("create role r --verb=get --resource=pods -n team", None),
    ("get role r -n team -o yaml", None),
    ("describe role r -n team", None),
    ("create rolebinding rb --role=r --user=u -n team", None),
    ("get rolebinding -n team", None),
    ("get rolebinding -n team -o wide", None),
    ("describe rolebinding rb -n team", None),
    ("create clusterrole cr --verb=get --resource=nodes", None),
    ("create clusterrolebinding crb --clusterrole=cr --group=g", None),
    ("get clusterrolebinding crb -o wide", None),
    ("auth reconcile -f - -n team", "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: rr}\n"
                                    "rules: [{apiGroups: [''], resources: [pods], verbs: [get]}]\n"),
    ("create serviceaccount sa -n team", None),
    ("get serviceaccount sa -n team", None),
    ("describe serviceaccount sa -n team", None),
    ("create secret generic s --from-literal=x=1 -n team", None),
    ("get secret s -n team", None),
    ("describe secret s -n team", None),
    ("create secret tls t --cert=/dev/null --key=/dev/null -n team", None),
    ("create secret docker-registry d --docker-username=u --docker-password=p -n team", None),
    ("create service clusterip svc --tcp=80:8080 -n team", None),
    ("create service nodeport np --tcp=80:8080 -n team", None),
    ("create service externalname en --external-name=x.y -n team", None),
    ("get services -n team -o jsonpath={.items[*].spec.type}", None),
    ("create job j --image=a -n team", None),
    ("get jobs -n team", None),
    ("describe job j -n team", None),
    ("create cronjob cj --image=a --schedule='* * * * *' -n team", None),
    ("get cronjob cj -n team", None),
    ("create job jj --from=cronjob/cj -n team", None),
    ("create ingress i --rule=h/p=s:80 -n team", None),
    ("get ingress i -n team", None),
    ("describe ingress i -n team", None),
    ("create pdb p --min-available=1 --selector=a=b -n team", None),
    ("get pdb -n team", None),
    ("create priorityclass pc --value=5", None),
    ("get priorityclass pc", None),
    ("create token sa -n team", None, MISSING),
    ("create -f -", CLAIM),
    ("get pvc", None),
    ("describe pvc claim", None, SPEC),
    ("get nodes", None),
    ("get pv", None),
    ("get storageclass", None),
    ("get csr", None),
    ("get leases -A --field-selector=metadata.namespace=team", None),
    ("get crd", None),
    ("get componentstatuses --sort-by=metadata.name", None),
    ("create -f -", "apiVersion: v1\nkind: Node\nmetadata: {name: n1}\n"),
    ("cordon n1", None),
    ("get node n1", None),
    ("uncordon n1", None),
    ("taint node n1 k=v:NoSchedule", None),
    ("taint node n1 k-", None),
    ("describe node n1", None),
    ("drain n1 --timeout=5s", None),
    ("delete node n1", None),
    ("auth can-i delete nodes", None),
    ("auth can-i --list", None, MISSING),
    ("auth whoami", None, OWN),
    ("explain pod.spec.nodeName", None, OPENAPI),
    ("explain configmap.data", None, OPENAPI),
    ("explain pod.nope", None),
    ("explain nope", None),
    ("create -f -", OTHERS, MISSING),
    *[(f"get {kind} -o wide", None) for kind in OTHER_KINDS],
    ("get endpoints -o wide", None, MISSING),
    ("get hpa -o wide", None),
    ("get servicecidr -o wide", None),
    ("get clusterrole -o wide", None),
    ("apply -f -", HATS),
    ("wait --for=condition=Established crd/hats.example.com --timeout=30s", None),
    ("get crd hats.example.com", None),
    ("api-resources --api-group=example.com", None),
    ("get hats", None),
    ("create -f -", hat("a")),
    ("create -f -", hat("a")),
    ("apply -f -", hat("b", "4", ", color: blue")),
    ("apply -f -", hat("b", "5", ", color: blue")),
    ("apply -f -", hat("b", "5", ", color: blue")),
    ("create -f -", hat("c", "0")),
    ("create -f -", hat("c", "x")),
    ("create -f -", hat("c", "1", ", color: pink")),
    ("create -f -", hat("c", "1", ", brim: 2")),
    ("create --validate=warn -f -", hat("c", "1", ", brim: 2")),
    ("create -f -", hat("d").replace("size: 3", "")),
    ("get hats", None),
    ("get ht -o wide", None),
    ("get clothes -o name", None),
    ("get hat a -o yaml", None),
    ("get hats --field-selector=spec.color=blue -o name", None),
    ("get hats --field-selector=spec.size=5 -o name", None),
    ("get hats -l x=worn --sort-by=.spec.size -o custom-columns=S:.spec.size", None),
    ("label hat a q=r", None),
    ("annotate hat a q=r", None),
    ("patch hat a --type=merge -p '{\"spec\":{\"size\":8}}'", None),
    ("patch hat a -p '{\"spec\":{\"size\":8}}'", None),
    ("patch hat a --type=json -p '[{\"op\":\"replace\",\"path\":\"/spec/size\",\"value\":9}]'", None),
    ("patch hat a --type=merge -p '{\"spec\":{\"size\":0}}'", None),
    ("patch hat a --subresource=status --type=merge -p '{\"status\":{\"phase\":\"On\",\"copies\":2}}'", None),
    ("get hat a --subresource=status", None),
    ("get hat a --subresource=scale", None),
    ("wait hat/a --for=jsonpath={.status.phase}=On --timeout=5s", None),
    ("scale hat a --replicas=3", None),
    ("patch hat a --type=merge -p '{\"spec\":{\"copies\":1}}'", None),
    ("scale hat a --replicas=3", None),
    ("get hat a -o jsonpath={.spec.copies}", None),
    ("replace -f -", hat("a", "2")),
    ("diff -f -", hat("a", "7")),
    ("describe hat a", None),
    ("explain hat", None, OPENAPI),
    ("explain hat.spec.size", None),
    ("explain hat --recursive", None, OPENAPI),
    ("edit hat a", None),
    ("get hat a -o jsonpath={.spec.size}", None),
    ("edit configmap one", None),
    ("edit deployment web", None),
    ("delete hat a", None),
    ("wait hat/a --for=delete --timeout=5s", None),
    ("delete hats -l x=worn", None),
    ("delete hats --all", None),
    ("delete crd hats.example.com", None),
    ("delete configmaps --all", None),
    ("delete configmap one two nope", None),
    ("delete deployment web --cascade=orphan --wait=false", None),
    ("delete deployment,service web --wait=false", None),
    ("delete -f -", config("two")),
    ("delete namespace team --wait=false", None),
    ("get --raw /healthz", None),
    ("get --raw /nope", None),
    ("get --raw /version", None, OWN),
    ("plugin list", None),
    ("certificate approve nope", None),
]


def seen(text):
    """The output without the values that differ between runs and between servers."""
    text = re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "UID", text)
    text = re.sub(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "TIME", text)
    text = re.sub(r"\w{3}, \d\d \w{3} 20\d\d \d\d:\d\d:\d\d [+-]\d{4}", "TIME", text)
    text = re.sub(r"(resourceVersion\"?: )\"\d+\"", r'\1"RV"', text)
    text = re.sub(r"Resource Version: +\d+", "Resource Version: RV", text)
    text = re.sub(r"^[IWE]\d{4} .*\n", "", text, flags=re.M)  # client-go's log about watches that ended early
    text = re.sub(r"https?://127\.0\.0\.1:\d+", "URL", text)
    text = re.sub(r"/tmp/\S+", "FILE", text)
    text = re.sub(r"10\.0\.0\.\d+", "IP", text)
    text = re.sub(r"(?<=\s)\d+(m|s|ms|h|d)(\d+s)?(?=\s|$)", "AGE", text)
    text = re.sub(r"\s*(---|\+\+\+) FILE.*", "", text)
    return re.sub(r"[ \t]+", " ", re.sub(r"-{3,}", "---", text))


class SameKubectl(unittest.TestCase):
    maxDiff = None
    excused = ""  # the beginnings of commands that may differ: all
    their_flags = ("--event-ttl=1h",)  # longer than the test takes

    @classmethod
    def start_ours(cls, root):
        port = free_port()
        cls.server = Server(str(root / "data"), args=[f"--listen-kube-urls=http://127.0.0.1:{port}",
                                                      "--kube-garbage-collector=false", "--kube-quota-controller=false",
                                                      "--kube-policy-status=false"]).start()
        cls.addClassCleanup(cls.server.stop)

    @classmethod
    def our_command(cls):
        return [f"--kubeconfig={cls.server.directory}/kubeconfig", f"--cache-dir={cls.root}/ours"]

    @classmethod
    def setUpClass(cls):
        scratch = tempfile.TemporaryDirectory(prefix="vigil-kubectl-")
        cls.addClassCleanup(scratch.cleanup)
        cls.root = root = pathlib.Path(scratch.name)
        cls.start_ours(root)
        cls.backend = Server(str(root / "backend")).start()
        cls.addClassCleanup(cls.backend.stop)
        cls.api = Apiserver(root, cls.backend.url, cls.their_flags)
        cls.addClassCleanup(cls.api.stop)
        cls.api.wait_ready()
        folder = root / "kustomization"
        folder.mkdir()
        (folder / "kustomization.yaml").write_text(
            "resources: [one.yaml]\nlabels: [{pairs: {from: kustomize}}]\nnamePrefix: k-\n"
            "configMapGenerator: [{name: made, literals: [a=b]}]\n")
        (folder / "one.yaml").write_text(config("one"))
        editor = root / "editor"
        editor.write_text("#!/bin/sh\nsed -i 's/size: 2/size: 6/; s/k: .1./k: edited/; s/replicas: 4/replicas: 5/' \"$1\"\n")
        editor.chmod(0o755)
        cls.env = {**os.environ, "HOME": str(root), "KUBE_EDITOR": str(editor), "TZ": "UTC"}

    def run_on(self, words, text, ours):
        words = [word.replace("{dir}", str(self.root / "kustomization")) for word in shlex.split(words)]
        where = self.our_command() if ours else self.api.command()[1:]
        if words[0] == "kustomize":
            where = []  # it uses no server and has no flags for one
        done = subprocess.run([KUBECTL, *where, *words], input=text, capture_output=True, text=True, timeout=120,
                              env=self.env, check=False)
        return f"{seen(done.stdout)}{seen(done.stderr)}exit {done.returncode}\n"

    def test_every_command_prints_what_it_prints_on_a_real_apiserver(self):
        for words, text, *why in COMMANDS:
            theirs, ours = self.run_on(words, text, False), self.run_on(words, text, True)
            with self.subTest(command=words, given=text):
                if why and words.startswith(self.excused):
                    self.assertNotEqual(ours, theirs, f"the output is the same now, so this exception can be removed: {why[0]}")
                elif ours != theirs:
                    self.fail("\n" + "\n".join(difflib.unified_diff(
                        theirs.splitlines(), ours.splitlines(), "kubernetes", "vigil", lineterm="", n=1)))


if __name__ == "__main__":
    unittest.main()
