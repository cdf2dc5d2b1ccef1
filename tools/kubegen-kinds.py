#!/usr/bin/python3
"""Makes src/kube/types/builtin_rows.inc, the table of built-in kinds, from the discovery documents
that Kubernetes publishes with its module. Bare facts only: names, scopes, verbs.

    tools/kubegen-kinds.py [VERSION]      needs go; downloads the module k8s.io/kubernetes
"""
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
TARGET = ROOT / "src/kube/types/builtin_rows.inc"
VERSION = "v1.36.3"

# Where old kinds are kept, which are not named after their resource.
PREFIXES = {
    ("", "nodes"): "minions", ("", "services"): "services/specs",
    ("", "endpoints"): "services/endpoints", ("", "replicationcontrollers"): "controllers",
    ("networking.k8s.io", "ingresses"): "ingress",
    ("apiregistration.k8s.io", "apiservices"): "apiregistration.k8s.io/apiservices",
    ("apiextensions.k8s.io", "customresourcedefinitions"):
        "apiextensions.k8s.io/customresourcedefinitions",
    ("events.k8s.io", "events"): "events",
}

# Field selectors besides metadata.name and metadata.namespace.
FIELDS = {
    ("", "pods"): "spec.nodeName spec.host spec.restartPolicy spec.schedulerName spec.serviceAccountName "
                  "spec.hostNetwork status.phase status.podIP status.podIPs "
                  "status.nominatedNodeName",
    ("", "events"): "involvedObject.kind involvedObject.namespace involvedObject.name "
                    "involvedObject.uid involvedObject.apiVersion involvedObject.resourceVersion "
                    "involvedObject.fieldPath reason reportingComponent source type",
    ("events.k8s.io", "events"): "regarding.kind regarding.namespace regarding.name regarding.uid "
                                 "regarding.apiVersion regarding.resourceVersion "
                                 "regarding.fieldPath reason reportingController type",
    ("", "secrets"): "type", ("", "namespaces"): "status.phase",
    ("", "nodes"): "spec.unschedulable", ("", "services"): "spec.clusterIP spec.type",
    ("", "replicationcontrollers"): "status.replicas",
    ("batch", "jobs"): "status.successful",
    ("certificates.k8s.io", "certificatesigningrequests"): "spec.signerName",
    ("resource.k8s.io", "resourceslices"): "spec.nodeName spec.driver",
}
INDEXED = {("", "pods"): "spec.nodeName", ("resource.k8s.io", "resourceslices"): "spec.nodeName"}
# Kinds whose changes outside of status are not counted in metadata.generation.
NO_GENERATION = {"events", "configmaps", "secrets", "namespaces", "nodes", "serviceaccounts", "endpoints",
                 "leases", "persistentvolumes", "persistentvolumeclaims", "resourcequotas", "limitranges",
                 "roles", "rolebindings", "clusterroles", "clusterrolebindings", "services", "servicecidrs",
                 "horizontalpodautoscalers", "volumeattachments", "resourceclaims", "controllerrevisions",
                 "ipaddresses", "runtimeclasses", "storageclasses", "csidrivers", "csinodes",
                 "csistoragecapacities", "volumeattributesclasses", "resourceclaimtemplates", "apiservices",
                 "certificatesigningrequests"}


def module_dir(version):
    done = subprocess.run(["go", "mod", "download", "-json", f"k8s.io/kubernetes@{version}"],
                          check=True, capture_output=True, text=True, cwd="/")
    return pathlib.Path(json.loads(done.stdout)["Dir"])


def c_list(names):
    return "NAMES(%s)" % ", ".join(f'"{n}"' for n in names) if names else "NO_NAMES"


def rows(directory):
    for path in sorted(directory.glob("*__v*.json")):
        parts = path.stem.split("__")
        group, version = ("", parts[1]) if parts[0] == "api" else (parts[1], parts[2])
        if "alpha" in version or "beta" in version:
            continue
        document = json.loads(path.read_text())
        names = {r["name"] for r in document["resources"]}
        for resource in document["resources"]:
            if "/" not in resource["name"]:
                yield group, version, resource, names


# Stored in the form of another kind of the same prefix.
TWINS = {("events.k8s.io", "v1", "events"), ("autoscaling", "v1", "horizontalpodautoscalers")}


def flags(group, version, resource, names):
    plural = resource["name"]
    found = []
    if resource["namespaced"]:
        found.append("KUBE_NAMESPACED")
    if f"{plural}/status" in names:
        found.append("KUBE_HAS_STATUS")
    if f"{plural}/scale" in names:
        found.append("KUBE_HAS_SCALE")
    if "get" not in resource["verbs"]:
        found.append("KUBE_CREATE_ONLY")
    elif "create" not in resource["verbs"]:
        found.append("KUBE_COMPUTED")
    elif plural not in NO_GENERATION:
        found.append("KUBE_HAS_GENERATION")
    if (group, version, plural) in TWINS:
        found.append("KUBE_STORED_CONVERTED")
    return " | ".join(found) or "0"


def row(group, version, resource, names):
    plural = resource["name"]
    at = (group, plural)
    prefix = PREFIXES.get(at, plural)
    lines = [
        f'.group = "{group}", .version = "{version}", .kind = "{resource["kind"]}",',
        f'.list_kind = "{resource["kind"]}List", .plural = "{plural}",',
        f'.singular = "{resource["singularName"]}", .storage_prefix = "/registry/{prefix}/",',
        f".flags = {flags(group, version, resource, names)},",
        f".short_names = {c_list(resource.get('shortNames', []))},",
        f".categories = {c_list(resource.get('categories', []))},",
        f".fields = {c_list(FIELDS.get(at, '').split())},",
    ]
    if at in INDEXED:
        lines.append(f'.indexed_field = "{INDEXED[at]}",')
    return "    {\n        " + "\n        ".join(lines) + "\n    },\n"


def main():
    version = sys.argv[1] if len(sys.argv) > 1 else VERSION
    directory = module_dir(version) / "api/discovery"
    made = sorted(rows(directory), key=lambda r: (r[0], r[1], r[2]["name"]))
    text = (f"/* Generated by tools/kubegen-kinds.py from the discovery documents of Kubernetes {version}.\n"
            " * Do not edit. */\n/* clang-format off */\n" + "".join(row(*r) for r in made))
    TARGET.write_text(text)
    print(f"{TARGET.relative_to(ROOT)}: {len(made)} kinds")


if __name__ == "__main__":
    main()
