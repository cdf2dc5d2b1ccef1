#!/usr/bin/python3
"""Makes src/kube/types/defaults/defaults_rows.inc, the table of the built-in kinds' defaults, by observation: creates the objects of
tests/kube/samples.py on a real kube-apiserver over a real etcd and records the fields that it adds, by the type that has them.

    tools/kubegen-defaults.py      needs tools/build-kube and tools/build-peer, and src/kube/types/schema/schema_rows.inc

A field that is always added with the same value is a row. One whose value depends on other fields must be named in RULES below,
and a function in src/kube/types/defaults/rules_*.c sets it; the script fails if it finds a field that it does not know, or if a field of
RULES is not observed any more."""
import json
import pathlib
import re
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[1]
TARGET = ROOT / "src/kube/types/defaults/defaults_rows.inc"
SCHEMA = ROOT / "src/kube/types/schema/schema_rows.inc"
sys.path[:0] = [str(ROOT / "tests/live"), str(ROOT / "tests/kube")]
from apiserver_test import Apiserver  # noqa: E402
from samples import WITHOUT_ADMISSION, samples  # noqa: E402
from server import free_port  # noqa: E402

# Set by functions of src/kube/types/defaults.
RULES = {
    "apps.v1.DaemonSetUpdateStrategy": {"type", "rollingUpdate"},
    "apps.v1.RollingUpdateDaemonSet": {"maxUnavailable", "maxSurge"},
    "apps.v1.DeploymentStrategy": {"type", "rollingUpdate"},
    "apps.v1.RollingUpdateDeployment": {"maxUnavailable", "maxSurge"},
    "apps.v1.StatefulSetPersistentVolumeClaimRetentionPolicy": {"whenDeleted", "whenScaled"},
    "apps.v1.StatefulSetSpec": {"persistentVolumeClaimRetentionPolicy"},
    "apps.v1.StatefulSetUpdateStrategy": {"type", "rollingUpdate"},
    "apps.v1.RollingUpdateStatefulSetStrategy": {"partition"},
    "autoscaling.v1.HorizontalPodAutoscalerSpec": {"targetCPUUtilizationPercentage"},
    "autoscaling.v2.HorizontalPodAutoscalerSpec": {"metrics"},
    "autoscaling.v2.HorizontalPodAutoscalerBehavior": {"scaleUp", "scaleDown"},
    "autoscaling.v2.HPAScalingRules": {"stabilizationWindowSeconds", "selectPolicy", "policies"},
    "batch.v1.JobSpec": {"completions", "parallelism", "backoffLimit", "podReplacementPolicy"},
    "core.v1.Container": {"imagePullPolicy"},
    "core.v1.ContainerPort": {"hostPort"},
    "core.v1.ImageVolumeSource": {"pullPolicy"},
    "core.v1.LimitRangeItem": {"default", "defaultRequest"},
    "core.v1.PersistentVolumeClaimSpec": {"dataSource", "dataSourceRef"},
    "core.v1.PodSpec": {"serviceAccount"},
    "core.v1.ReplicationControllerSpec": {"selector"},
    "core.v1.ResourceRequirements": {"requests"},
    "core.v1.ServicePort": {"targetPort"},
    "core.v1.ServiceSpec": {"sessionAffinityConfig", "externalTrafficPolicy", "internalTrafficPolicy",
                            "allocateLoadBalancerNodePorts"},
    "core.v1.VolumeSource": {"emptyDir"},
    "networking.v1.NetworkPolicySpec": {"policyTypes"},
    "rbac.v1.RoleRef": {"apiGroup"},
    "rbac.v1.Subject": {"apiGroup"},
    "resource.v1.DeviceSubRequest": {"count"},
    "resource.v1.ExactDeviceRequest": {"count"},
    "storage.v1.CSIDriverSpec": {"volumeLifecycleModes"},
    "io.k8s.apimachinery.pkg.apis.meta.v1.TypeMeta": {"kind", "apiVersion"},  # of the claims of a StatefulSet
}

# Set by Kubernetes when it stores an object, not when it decodes it.
STORED = {
    "batch.v1.JobSpec": {"selector"},  # made of the uid
    "certificates.v1.CertificateSigningRequestSpec": {"username", "uid", "groups", "extra"},  # of the request
    "core.v1.ServicePort": {"nodePort"},  # allocated, as the next ones
    "core.v1.ServiceSpec": {"clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"},
    "core.v1.NamespaceSpec": {"finalizers"},
    "core.v1.Secret": {"data"},  # from stringData
    "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta": {"labels"},  # of the pods of a job, made of its uid
}

FORMS = {bool: "BOOL", int: "INT", str: "TEXT", dict: "OBJECT"}


# -- The types --


class Field:
    def __init__(self, name, index, value, shape, flags):
        self.name, self.index, self.value, self.shape, self.flags = name, index, value, shape, flags

    def is_struct(self):
        return self.value == "MESSAGE" and self.shape == "ONE" and "POINTER" not in self.flags

    def is_written_always(self):
        scalar = self.value in ("STRING", "BOOL", "INT32", "INT64", "DOUBLE", "BYTES")
        struct = self.shape == "ONE" and not scalar and "POINTER" not in self.flags
        return "OMIT_ZERO" not in self.flags and ("OMIT_EMPTY" not in self.flags or struct)

    def zero(self):
        """What Go writes for the zero value."""
        if "POINTER" in self.flags or self.shape != "ONE":
            return None
        return {"STRING": "", "BOOL": False, "QUANTITY": "0", "INT32": 0, "INT64": 0, "DOUBLE": 0, "INTORSTRING": 0}.get(self.value)

    def loses(self, value):
        """Whether Go's type does not keep the value of a request."""
        plain = self.shape != "ONE" or ("POINTER" not in self.flags and self.value not in ("MESSAGE", "QUANTITY", "INTORSTRING"))
        return value is None or (plain and "OMIT_EMPTY" in self.flags and not value)


class Schema:
    """The table that tools/kubegen-schema.py makes."""

    def __init__(self, text):
        parts = {name: body for name, body in re.findall(r"#ifdef KUBE_SCHEMA_(\w+)\n(.*?)#undef", text, re.S)}
        pool, at = {}, 0
        for quoted in re.findall(r'^\s*"\\\d{3}" "(.*)\\0"$', parts["POOL"], re.M):
            pool[at] = quoted.replace('\\"', '"')
            at += len(pool[at]) + 2
        packages = re.findall(r'"(.*?)"', parts["PACKAGES"])
        fields = []
        for name, index, _, value, shape, flags, _ in self.rows(parts["FIELDS"]):
            fields.append(Field(pool[int(name)], int(index), value, shape, set(flags.split("|"))))
        self.types = []
        for name, first, count, package, _ in self.rows(parts["TYPES"]):
            own = fields[int(first):int(first) + int(count)]
            self.types.append((packages[int(package)], pool[int(name)], own))
        self.kinds = {(pool[int(version)], pool[int(kind)]): int(index) for version, kind, index in self.rows(parts["KINDS"])}

    @staticmethod
    def rows(text):
        return [row.split(",") for row in re.findall(r"\{(.*?)\}", text)]

    def name(self, index):
        return ".".join(self.types[index][:2])

    def fields(self, index):
        """(type, field), also of structs that are inlined."""
        for field in self.types[index][2]:
            if "INLINE" in field.flags:
                yield from self.fields(field.index)
            else:
                yield index, field


# -- Observing --


class Observer:
    """What was added and what stayed absent, by (type, field) and by (kind, path)."""

    def __init__(self, schema):
        self.schema, self.added, self.absent = schema, {}, {}

    def note(self, where, index, field, root, path, value):
        for key in ((index, field.name), (root, ".".join([*path, field.name]))):
            where.setdefault(key, []).append(value)

    def compare(self, index, given, got, root, path):
        for owner, field in self.schema.fields(index):
            had, has = given.get(field.name), got.get(field.name)
            if not path and field.name in ("kind", "apiVersion", "metadata", "status"):
                continue
            if field.is_struct() and has is not None:
                self.compare(field.index, had or {}, has, root, [*path, field.name])
            elif field.loses(had):
                if field.name not in got:
                    self.note(self.absent, owner, field, root, path, None)
                elif not field.is_written_always() or has != field.zero():
                    self.note(self.added, owner, field, root, path, has)
            elif field.value == "MESSAGE" and has is not None:
                self.compare_values(field, had, has, root, [*path, field.name])

    def compare_values(self, field, had, has, root, path):
        if field.shape == "ONE":
            self.compare(field.index, had, has, root, path)
        elif field.shape == "LIST":
            for one, other in zip(had, has):
                self.compare(field.index, one or {}, other, root, [*path, "[]"])
        elif field.shape == "MAP":
            for key, one in had.items():
                self.compare(field.index, one or {}, has[key], root, [*path, "{}"])


def is_plain(values):
    return all(value == values[0] for value in values) and (not isinstance(values[0], (dict, list)) or values[0] == {})


class Table:
    def __init__(self, observer):
        self.observer, self.schema, self.rows, self.unknown, self.ruled = observer, observer.schema, [], [], set()

    def listed(self, lists, index, name):
        return name in lists.get(self.schema.name(index).removeprefix("io.k8s.api."), ())

    def add_type_field(self, index, name):
        values, absent = self.observer.added[index, name], self.observer.absent.get((index, name))
        if self.listed(STORED, index, name):
            return
        if self.listed(RULES, index, name):
            self.ruled.add((index, name))
        elif not absent and is_plain(values):
            self.rows.append((self.schema.name(index), name, values[0]))
        elif not self.add_paths(index, name):
            self.unknown.append(f"{self.schema.name(index)}.{name}: {json.dumps(values[0])[:80]}, absent: {bool(absent)}")

    def add_paths(self, index, name):
        """One kind sets the field although others that have the type do not: Pod.spec.enableServiceLinks."""
        found = False
        for (root, path), values in self.observer.added.items():
            parts = path.split(".")
            if len(parts) == 2 and parts[1] == name and (root, path) not in self.observer.absent and is_plain(values) \
                    and any(owner == index and field.name == name for owner, field in self.schema.fields(self.child(root, parts[0]))):
                self.rows.append((self.schema.name(root), path, values[0]))
                found = True
        return found

    def child(self, root, name):
        return next(field.index for _, field in self.schema.fields(root) if field.name == name)

    def make(self):
        for index, name in list(self.observer.added):
            if "." not in name:
                self.add_type_field(index, name)
        for short, names in RULES.items():
            for name in names:
                if not any(self.schema.name(index).endswith(short) and name == field for index, field in self.ruled):
                    self.unknown.append(f"{short}.{name} of RULES is not set any more")
        return self.rows

    def text(self, version):
        lines = [f"/* Generated by tools/kubegen-defaults.py from the answers of kube-apiserver {version}. Do not edit. */",
                 "/* clang-format off */"]
        for kind, name, value in sorted(self.rows, key=lambda row: (row[0], row[1])):
            shown = {bool: lambda v: str(v).lower(), dict: lambda v: ""}.get(type(value), str)(value)
            lines.append(f'{{"{kind}", "{name}", {FORMS[type(value)]}, {json.dumps(shown)}}},')
        return "\n".join(lines) + "\n"


# -- The real servers --


class Servers:
    def __enter__(self):
        self.scratch = tempfile.TemporaryDirectory()
        root = pathlib.Path(self.scratch.name)
        client, peer = (f"http://127.0.0.1:{free_port()}" for _ in range(2))
        etcd = subprocess.run([str(ROOT / "tools/build-peer")], check=True, capture_output=True, text=True).stdout.split()[-1]
        self.etcd = subprocess.Popen(
            [etcd, "--data-dir", str(root / "etcd"), f"--listen-client-urls={client}", f"--advertise-client-urls={client}",
             f"--listen-peer-urls={peer}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.api = Apiserver(root, client, (WITHOUT_ADMISSION,))
        self.api.wait_ready()
        return self

    def __exit__(self, *_):
        self.api.stop()
        self.etcd.terminate()
        self.etcd.wait()
        self.scratch.cleanup()

    def send(self, method, path, body=None):
        request = urllib.request.Request(
            f"https://127.0.0.1:{self.api.port}{path}", method=method, data=body and json.dumps(body).encode(),
            headers={"Authorization": "Bearer the-token", "Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, context=ssl._create_unverified_context()) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)


def observe(servers, schema):
    observer = Observer(schema)
    for collection, sample in samples():
        for _ in range(50):  # a new server does not serve every group at once
            code, answer = servers.send("POST", collection + "?dryRun=All", sample)
            if code == 201:
                break
            time.sleep(0.2)
        if code != 201:
            raise SystemExit(f"{collection} {sample['metadata']['name']}: {code} {answer.get('message')}")
        root = schema.kinds[answer["apiVersion"], answer["kind"]]
        observer.compare(root, sample, answer, root, [])
    return observer


def main():
    version = re.search(r"k8s.io/kubernetes (v\S+)", (ROOT / "tests/kube/go.mod").read_text()).group(1)
    schema = Schema(SCHEMA.read_text())
    with Servers() as servers:
        observer = observe(servers, schema)
    table = Table(observer)
    table.make()
    if table.unknown:
        raise SystemExit("\n".join(table.unknown))
    TARGET.write_text(table.text(version))
    print(f"{TARGET.relative_to(ROOT)}: {len(table.rows)} rows")


if __name__ == "__main__":
    main()
