"""What is done to a control plane, each scene in a namespace of its own. A scene is a generator: after each yield, whatever
it has yielded must become true on the server."""
import base64
import subprocess

MERGE = "application/merge-patch+json"
APPS, BATCH, CORE = "/apis/apps/v1", "/apis/batch/v1", "/api/v1"

# The kinds that make up the state of a namespace.
NAMESPACED = [
    f"{CORE}/%s/pods", f"{CORE}/%s/services", f"{CORE}/%s/endpoints", f"{CORE}/%s/configmaps", f"{CORE}/%s/serviceaccounts",
    f"{CORE}/%s/persistentvolumeclaims", f"{CORE}/%s/resourcequotas", f"{CORE}/%s/replicationcontrollers", f"{CORE}/%s/secrets",
    f"{APPS}/%s/deployments", f"{APPS}/%s/replicasets", f"{APPS}/%s/statefulsets", f"{APPS}/%s/daemonsets",
    f"{APPS}/%s/controllerrevisions", f"{BATCH}/%s/jobs", f"{BATCH}/%s/cronjobs",
    "/apis/autoscaling/v2/%s/horizontalpodautoscalers", "/apis/policy/v1/%s/poddisruptionbudgets",
    "/apis/discovery.k8s.io/v1/%s/endpointslices"]


def template(app="web", image="web:1", **metadata):
    return {"metadata": dict({"labels": {"app": app}}, **metadata),
            "spec": {"terminationGracePeriodSeconds": 1, "containers": [{"name": "c", "image": image}]}}


def workload(name, replicas=None, app=None, image="web:1", **spec):
    app = app or name
    body = {"metadata": {"name": name}, "spec": dict({
        "selector": {"matchLabels": {"app": app}}, "template": template(app, image)}, **spec)}
    if replicas is not None:
        body["spec"]["replicas"] = replicas
    return body


def job(name, exit_code=0, **spec):
    made = template(name, annotations={"example.com/exit": str(exit_code)})
    del made["metadata"]["labels"]
    made["spec"]["restartPolicy"] = "Never"
    return {"metadata": {"name": name}, "spec": dict({"template": made}, **spec)}


class Stage:
    """A namespace of one control plane."""

    def __init__(self, client, name):
        self.client, self.name = client, name
        self.namespace = f"namespaces/{name}"

    def send(self, method, path, body=None, content="application/json"):
        code, answer = self.client.send(method, path, body, content)
        assert code < 300, (self.name, method, path, code, answer)
        return answer

    def path(self, group, resource, name=""):
        return f"{group}/{self.namespace}/{resource}" + (f"/{name}" if name else "")

    def make(self, group, resource, body):
        return self.send("POST", self.path(group, resource), body)

    def patch(self, group, resource, name, body):
        return self.send("PATCH", self.path(group, resource, name), body, MERGE)

    def get(self, group, resource, name):
        return self.send("GET", self.path(group, resource, name))

    def list(self, group, resource):
        return self.send("GET", self.path(group, resource))["items"]

    def delete(self, group, resource, name, **options):
        return self.send("DELETE", self.path(group, resource, name), options)

    def objects(self):
        """All objects of the namespace, with their kinds."""
        for path in NAMESPACED:
            listed = self.send("GET", path % self.namespace)
            for item in listed["items"]:
                yield dict(item, kind=listed["kind"].removesuffix("List"))

    # -- Conditions that a scene waits for --

    def running(self, count, app=None):
        def check():
            pods = [p for p in self.list(CORE, "pods") if app is None or p["metadata"].get("labels", {}).get("app") == app]
            return len(pods) == count and all(p["status"]["phase"] == "Running" for p in pods)
        return check

    def status(self, group, resource, name, **fields):
        def check():
            found = self.get(group, resource, name)
            status = found.get("status", {})
            return status.get("observedGeneration", found["metadata"].get("generation")) == found["metadata"].get("generation") \
                and all(status.get(k) == v for k, v in fields.items())
        return check

    def condition(self, group, resource, name, kind, status="True"):
        return lambda: any(c["type"] == kind and c["status"] == status for c in
                           self.get(group, resource, name).get("status", {}).get("conditions", []))

    def gone(self, group, resource, name):
        return lambda: self.client.send("GET", self.path(group, resource, name))[0] == 404

    def count(self, group, resource, number):
        return lambda: len(self.list(group, resource)) == number


# -- Workloads --

def deployment(s):
    s.make(APPS, "deployments", workload("web", 3))
    yield s.status(APPS, "deployments", "web", availableReplicas=3)
    yield s.running(3)


def rolling_update(s):
    s.make(APPS, "deployments", workload("web", 4, revisionHistoryLimit=1))
    yield s.status(APPS, "deployments", "web", availableReplicas=4)
    for image in ("web:2", "web:3", "web:4"):
        s.patch(APPS, "deployments", "web", {"spec": {"template": template("web", image)}})
        yield s.status(APPS, "deployments", "web", availableReplicas=4, updatedReplicas=4, replicas=4)
        yield s.running(4)
    s.patch(APPS, "deployments", "web", {"spec": {"template": template("web", "web:3")}})  # back
    yield s.status(APPS, "deployments", "web", availableReplicas=4, updatedReplicas=4, replicas=4)
    yield s.running(4)
    yield s.count(APPS, "replicasets", 2)


def recreate(s):
    s.make(APPS, "deployments", workload("web", 2, strategy={"type": "Recreate"}))
    yield s.status(APPS, "deployments", "web", availableReplicas=2)
    s.patch(APPS, "deployments", "web", {"spec": {"template": template("web", "web:2")}})
    yield s.status(APPS, "deployments", "web", availableReplicas=2, updatedReplicas=2, replicas=2)
    yield s.running(2)


def scale(s):
    s.make(APPS, "deployments", workload("web", 1))
    s.make(APPS, "statefulsets", workload("db", 1, serviceName="db"))
    yield s.status(APPS, "deployments", "web", availableReplicas=1)
    yield s.status(APPS, "statefulsets", "db", availableReplicas=1)
    for count in (6, 2, 0, 3):
        for resource, name in (("deployments", "web"), ("statefulsets", "db")):
            s.patch(APPS, resource, f"{name}/scale", {"spec": {"replicas": count}})
        yield s.status(APPS, "deployments", "web", **({"availableReplicas": count} if count else {"replicas": None}))
        yield s.status(APPS, "statefulsets", "db", replicas=count)
        yield s.running(2 * count)


def stateful_set(s):
    s.make(CORE, "services", {"metadata": {"name": "db"}, "spec": {
        "clusterIP": "None", "selector": {"app": "db"}, "ports": [{"port": 5432}]}})
    s.make(APPS, "statefulsets", workload("db", 3, serviceName="db"))
    yield s.status(APPS, "statefulsets", "db", availableReplicas=3)
    s.patch(APPS, "statefulsets", "db", {"spec": {"template": template("db", "web:2"),
                                                  "updateStrategy": {"rollingUpdate": {"partition": 1}}}})
    yield s.status(APPS, "statefulsets", "db", updatedReplicas=2, availableReplicas=3)
    s.patch(APPS, "statefulsets", "db", {"spec": {"updateStrategy": {"rollingUpdate": {"partition": 0}}}})
    yield s.status(APPS, "statefulsets", "db", updatedReplicas=3, availableReplicas=3)
    yield s.running(3)


def parallel_stateful_set(s):
    s.make(APPS, "statefulsets", workload("db", 4, serviceName="db", podManagementPolicy="Parallel"))
    yield s.status(APPS, "statefulsets", "db", availableReplicas=4)


def daemon_set(s):
    s.make(APPS, "daemonsets", workload("agent"))
    yield s.status(APPS, "daemonsets", "agent", numberAvailable=3, updatedNumberScheduled=3)
    s.patch(APPS, "daemonsets", "agent", {"spec": {"template": template("agent", "web:2")}})
    yield s.status(APPS, "daemonsets", "agent", numberAvailable=3, updatedNumberScheduled=3)
    yield s.running(3)


def replication_controller(s):
    s.make(CORE, "replicationcontrollers", {"metadata": {"name": "old"}, "spec": {"replicas": 2, "template": template("old")}})
    yield s.status(CORE, "replicationcontrollers", "old", availableReplicas=2)


# -- Jobs --

def jobs(s):
    s.make(BATCH, "jobs", job("good", completions=5, parallelism=2))
    s.make(BATCH, "jobs", job("indexed", completions=3, parallelism=3, completionMode="Indexed"))
    s.make(BATCH, "jobs", job("bad", 1, backoffLimit=0))
    s.make(BATCH, "jobs", job("waits", suspend=True))
    s.make(BATCH, "jobs", job("short", ttlSecondsAfterFinished=1))
    yield s.condition(BATCH, "jobs", "good", "Complete")
    yield s.condition(BATCH, "jobs", "indexed", "Complete")
    yield s.condition(BATCH, "jobs", "bad", "Failed")
    yield s.condition(BATCH, "jobs", "waits", "Suspended")
    yield s.gone(BATCH, "jobs", "short")


def cron_job(s):
    s.make(BATCH, "cronjobs", {"metadata": {"name": "tick"}, "spec": {
        "schedule": "* * * * *", "successfulJobsHistoryLimit": 1, "jobTemplate": {"spec": job("x")["spec"]}}})
    yield lambda: any(j.get("status", {}).get("succeeded") for j in s.list(BATCH, "jobs"))
    s.patch(BATCH, "cronjobs", "tick", {"spec": {"suspend": True}})
    yield lambda: not s.get(BATCH, "cronjobs", "tick")["status"].get("active")
    yield s.count(BATCH, "jobs", 1)


# -- Around workloads --

def services(s):
    s.make(CORE, "services", {"metadata": {"name": "web"}, "spec": {"selector": {"app": "web"}, "ports": [
        {"name": "http", "port": 80, "targetPort": 8080}, {"name": "dns", "port": 53, "protocol": "UDP"}]}})
    s.make(CORE, "services", {"metadata": {"name": "outside"}, "spec": {"ports": [{"port": 80}]}})
    s.make(CORE, "endpoints", {"metadata": {"name": "outside"}, "subsets": [
        {"addresses": [{"ip": "192.0.2.7"}], "ports": [{"port": 80}]}]})
    s.make(APPS, "deployments", workload("web", 3))
    yield s.status(APPS, "deployments", "web", availableReplicas=3)
    yield lambda: sum(len(e["endpoints"] or []) for e in s.list("/apis/discovery.k8s.io/v1", "endpointslices")) == 4
    yield lambda: sum(len(e.get("subsets", [{}])[0].get("addresses", [])) for e in s.list(CORE, "endpoints")) == 4


def autoscaler(s):
    s.make(APPS, "deployments", workload("web", 1))
    s.make("/apis/autoscaling/v2", "horizontalpodautoscalers", {"metadata": {"name": "web"}, "spec": {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}, "minReplicas": 3, "maxReplicas": 5}})
    yield s.status(APPS, "deployments", "web", availableReplicas=3)
    yield s.condition("/apis/autoscaling/v2", "horizontalpodautoscalers", "web", "ScalingActive", "False")


def disruption_budget(s):
    budgets = "/apis/policy/v1"
    s.make(budgets, "poddisruptionbudgets", {"metadata": {"name": "web"}, "spec": {
        "minAvailable": 2, "selector": {"matchLabels": {"app": "web"}}}})
    s.make(APPS, "deployments", workload("web", 3))
    yield s.status(budgets, "poddisruptionbudgets", "web", currentHealthy=3, disruptionsAllowed=1)
    first = s.list(CORE, "pods")[0]["metadata"]["name"]
    s.send("POST", s.path(CORE, "pods", f"{first}/eviction"), {
        "apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": first}})
    yield s.gone(CORE, "pods", first)
    yield s.status(budgets, "poddisruptionbudgets", "web", currentHealthy=3, disruptionsAllowed=1)
    s.patch(budgets, "poddisruptionbudgets", "web", {"spec": {"minAvailable": 3}})
    yield s.status(budgets, "poddisruptionbudgets", "web", currentHealthy=3, disruptionsAllowed=0)
    first = s.list(CORE, "pods")[0]["metadata"]["name"]
    code, answer = s.client.send("POST", s.path(CORE, "pods", f"{first}/eviction"), {
        "apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": first}})
    assert code == 429, answer
    yield s.status(budgets, "poddisruptionbudgets", "web", currentHealthy=3, disruptionsAllowed=0)


def quota(s):
    s.make(CORE, "resourcequotas", {"metadata": {"name": "small"}, "spec": {"hard": {
        "pods": "2", "count/configmaps": "3", "requests.cpu": "1", "services": "1"}}})
    yield lambda: s.get(CORE, "resourcequotas", "small").get("status", {}).get("used")
    # A kube-apiserver enforces a quota only when its own copy has the amounts; until then it admits any number of pods.
    large = {"metadata": {"name": "large"}, "spec": template()["spec"]}
    large["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "2"}}
    yield lambda: s.client.send("POST", s.path(CORE, "pods") + "?dryRun=All", large)[0] == 403
    made = workload("web", 3)
    made["spec"]["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "100m"}}
    s.make(APPS, "deployments", made)
    yield s.status(APPS, "deployments", "web", availableReplicas=2)
    yield s.condition(APPS, "deployments", "web", "ReplicaFailure")
    yield lambda: s.get(CORE, "resourcequotas", "small")["status"]["used"]["pods"] == "2"


def volumes(s):
    """Claims that bind at once, and those of a stateful set that wait for their pods."""
    for i, kind in enumerate(("now", "now", "late", "late")):
        volume = {"metadata": {"name": f"{s.name}-{i}"}, "spec": {
            "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": f"{s.name}-{kind}",
            "hostPath": {"path": "/nowhere"}, "persistentVolumeReclaimPolicy": "Retain"}}
        s.send("POST", f"{CORE}/persistentvolumes", volume)
    s.send("POST", "/apis/storage.k8s.io/v1/storageclasses", {
        "metadata": {"name": f"{s.name}-late"}, "provisioner": "kubernetes.io/no-provisioner",
        "volumeBindingMode": "WaitForFirstConsumer"})
    s.make(CORE, "persistentvolumeclaims", {"metadata": {"name": "now"}, "spec": claim(f"{s.name}-now")})
    yield s.status(CORE, "persistentvolumeclaims", "now", phase="Bound")
    s.make(CORE, "persistentvolumeclaims", {"metadata": {"name": "never"}, "spec": claim("absent")})
    stateful = workload("db", 2, serviceName="db", volumeClaimTemplates=[{
        "metadata": {"name": "data"}, "spec": claim(f"{s.name}-late")}])
    stateful["spec"]["template"]["spec"]["containers"][0]["volumeMounts"] = [{"name": "data", "mountPath": "/data"}]
    s.make(APPS, "statefulsets", stateful)
    yield s.status(APPS, "statefulsets", "db", availableReplicas=2)
    yield lambda: sorted(v["status"]["phase"] for v in s.send("GET", f"{CORE}/persistentvolumes")["items"]
                         if v["metadata"]["name"].startswith(s.name)) == ["Available", "Bound", "Bound", "Bound"]


def claim(storage_class):
    return {"accessModes": ["ReadWriteOnce"], "storageClassName": storage_class, "resources": {"requests": {"storage": "1Gi"}}}


def unschedulable(s):
    body = {"metadata": {"name": "homeless"}, "spec": dict(template()["spec"], nodeSelector={"none": "such"})}
    s.make(CORE, "pods", body)
    large = {"metadata": {"name": "large"}, "spec": template()["spec"]}
    large["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1000"}}
    s.make(CORE, "pods", large)
    for name in ("homeless", "large"):
        yield s.condition(CORE, "pods", name, "PodScheduled", "False")


def preemption(s):
    """A pod that needs most of a node pushes another one out."""
    s.send("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": f"{s.name}-high"}, "value": 1000})

    def large(name, **spec):
        made = dict(template(name)["spec"], nodeSelector={"kubernetes.io/hostname": "node-0000"}, **spec)
        made["containers"][0]["resources"] = {"requests": {"cpu": "20"}}
        return {"metadata": {"name": name}, "spec": made}
    s.make(CORE, "pods", large("low"))
    yield s.status(CORE, "pods", "low", phase="Running")
    s.make(CORE, "pods", large("high", priorityClassName=f"{s.name}-high"))
    yield s.gone(CORE, "pods", "low")
    yield s.status(CORE, "pods", "high", phase="Running")
    s.delete(CORE, "pods", "high")
    yield s.gone(CORE, "pods", "high")


def garbage(s):
    for name, policy in (("fore", "Foreground"), ("back", "Background"), ("orphan", "Orphan")):
        s.make(APPS, "deployments", workload(name, 2))
        yield s.status(APPS, "deployments", name, availableReplicas=2)
        s.delete(APPS, "deployments", name, propagationPolicy=policy)
        yield s.gone(APPS, "deployments", name)
    yield s.count(APPS, "replicasets", 1)
    yield s.running(2)


def namespace_deletion(s):
    inner = Stage(s.client, f"{s.name}-inner")
    s.send("POST", f"{CORE}/namespaces", {"metadata": {"name": inner.name}})
    inner.make(APPS, "deployments", workload("web", 3))
    inner.make(APPS, "statefulsets", workload("db", 2, serviceName="db"))
    inner.make(CORE, "services", {"metadata": {"name": "web"}, "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]}})
    inner.make(CORE, "configmaps", {"metadata": {"name": "held", "finalizers": ["example.com/hold"]}})
    yield inner.running(5)
    s.send("DELETE", f"{CORE}/namespaces/{inner.name}")
    yield lambda: any(c["type"] == "NamespaceFinalizersRemaining" and c["status"] == "True" for c in
                      s.send("GET", f"{CORE}/namespaces/{inner.name}")["status"].get("conditions", []))
    inner.patch(CORE, "configmaps", "held", {"metadata": {"finalizers": None}})
    yield lambda: s.client.send("GET", f"{CORE}/namespaces/{inner.name}")[0] == 404
    assert not list(inner.objects())


# -- Other controllers --

def accounts(s):
    """A namespace gets an account and the certificate of the authority; a secret gets a token."""
    s.make(CORE, "serviceaccounts", {"metadata": {"name": "robot"}})
    s.make(CORE, "secrets", {"metadata": {"name": "robot", "annotations": {"kubernetes.io/service-account.name": "robot"}},
                             "type": "kubernetes.io/service-account-token"})
    yield lambda: "token" in s.get(CORE, "secrets", "robot").get("data", {})
    yield lambda: {a["metadata"]["name"] for a in s.list(CORE, "serviceaccounts")} == {"default", "robot"}


def aggregated_role(s):
    roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
    s.send("POST", roles, {"metadata": {"name": s.name}, "aggregationRule": {
        "clusterRoleSelectors": [{"matchLabels": {"into": s.name}}]}})
    s.send("POST", roles, {"metadata": {"name": f"{s.name}-part", "labels": {"into": s.name}}, "rules": [
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]})
    yield lambda: s.send("GET", f"{roles}/{s.name}").get("rules")


def certificate(s):
    requests = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
    text = subprocess.run(["openssl", "req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout",
                           "/dev/null", "-subj", "/CN=jane"], check=True, capture_output=True).stdout
    made = s.send("POST", requests, {"metadata": {"name": s.name}, "spec": {
        "request": base64.b64encode(text).decode(), "signerName": "kubernetes.io/kube-apiserver-client",
        "usages": ["client auth"]}})
    made["status"] = {"conditions": [{"type": "Approved", "status": "True", "reason": "Test"}]}
    s.send("PUT", f"{requests}/{s.name}/approval", made)
    yield lambda: s.send("GET", f"{requests}/{s.name}").get("status", {}).get("certificate")


SCENES = [deployment, rolling_update, recreate, scale, stateful_set, parallel_stateful_set, daemon_set, replication_controller, jobs,
          cron_job, services, autoscaler, disruption_budget, quota, volumes, unschedulable, preemption, garbage, namespace_deletion,
          accounts, aggregated_role, certificate]
