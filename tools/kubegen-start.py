#!/usr/bin/python3
"""Makes src/kube/jobs/start_rows.inc: the objects that a kube-apiserver has created when it is ready, as JSON.
Observed on the real one of tools/build-kube beside the real etcd of tools/build-peer; what depends on its flags or on
the time (addresses, certificates, dates) is made by code and left out here.

    tools/kubegen-start.py
"""
import json
import pathlib
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests/live"), str(ROOT / "tests/kube")]
from apiserver_test import Apiserver  # noqa: E402
from server import Server  # noqa: E402

TARGET = ROOT / "src/kube/jobs/start_rows.inc"
# The group, version and resource of the kinds whose objects are facts.
KINDS = [
    ("scheduling.k8s.io", "v1", "priorityclasses"),
    ("rbac.authorization.k8s.io", "v1", "clusterroles"),
    ("rbac.authorization.k8s.io", "v1", "clusterrolebindings"),
    ("rbac.authorization.k8s.io", "v1", "roles"),
    ("rbac.authorization.k8s.io", "v1", "rolebindings"),
    ("flowcontrol.apiserver.k8s.io", "v1", "prioritylevelconfigurations"),
    ("flowcontrol.apiserver.k8s.io", "v1", "flowschemas"),
]
# The server sets these for each object that is created.
METADATA = ("creationTimestamp", "generation", "managedFields", "resourceVersion", "uid")


def bare(item):
    metadata = {k: v for k, v in item["metadata"].items() if k not in METADATA}
    rest = {k: v for k, v in item.items() if k not in ("apiVersion", "kind", "metadata")}
    for condition in rest.get("status", {}).get("conditions", []):
        condition["lastTransitionTime"] = None
    return {"metadata": metadata, **rest}


def row(kind, item):
    group, version, resource = kind
    text = json.dumps(bare(item), separators=(",", ":"), sort_keys=False)
    quoted = text.replace("\\", "\\\\").replace('"', '\\"')
    lines = [quoted[i:i + 110] for i in range(0, len(quoted), 110)]
    # A break inside an escape would change its meaning.
    for i in range(len(lines) - 1):
        while (len(lines[i]) - len(lines[i].rstrip("\\"))) % 2:
            lines[i], lines[i + 1] = lines[i] + lines[i + 1][0], lines[i + 1][1:]
    body = "\n".join(f'     "{line}"' for line in lines if line)
    names = f'"{item["metadata"].get("namespace", "")}", "{item["metadata"]["name"]}"'
    return f'    {{"{group}", "{version}", "{resource}", {names},\n{body}}},\n'


def observe(root):
    backend = Server(str(root / "backend"), binary=str(ROOT / "build/peer/etcd"))
    backend.start()
    apiserver = Apiserver(root, backend.url)
    try:
        apiserver.wait_ready()
        for kind in KINDS:
            path = f"/apis/{kind[0]}/{kind[1]}/{kind[2]}"
            for item in json.loads(apiserver.kubectl("get", "--raw", path))["items"]:
                yield kind, item
    finally:
        apiserver.stop()
        backend.stop()


def main():
    with tempfile.TemporaryDirectory() as directory:
        rows = [row(kind, item) for kind, item in observe(pathlib.Path(directory))]
    TARGET.write_text("/* What kube-apiserver 1.36 creates by itself; tools/kubegen-start.py observed it. */\n" + "".join(rows))


main()
