#!/usr/bin/python3
"""Records what a kubelet and a kube-proxy ask of an API server. Both are real: Kubernetes' own hollow node (cmd/kubemark), the
programs of a node without containers and packet filters. Each reaches the server through a relay that writes down every
request (recorder/). A real kube-controller-manager and kube-scheduler are there, too. Prints the tables of
bench/load/scale/recorded-vigil.md and recorded-real.md.

    tests/kube/controllers/record_node.py [--minutes 12] [--on vigil|real] [--build build-test] [--keep DIR] >FILE
    tests/kube/controllers/record_node.py --again DIR >FILE      the tables of a run that was kept

It takes some minutes more than --minutes. tools/build-kube must have been run; for --on real, tools/build-peer as well. The
hollow kubelet listens on all addresses of the machine, and has no flag against it.
"""
import argparse
import contextlib
import datetime
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

from record_tables import tables

ROOT = pathlib.Path(__file__).resolve().parents[3]
NODE, SPACE = "node-1", "recorded"
PODS = ("pod-1", "pod-2", "pod-3")
CORE = "/api/v1"
IN_SPACE = f"{CORE}/namespaces/{SPACE}"
# How long to look at what a node asks for while nothing happens to it: before it has pods, and after the restart.
QUIET_SECONDS = 60
SETTLE_SECONDS = 15  # after a pod has begun or ended: what the node still asks because of it
KUBEMARK = "k8s.io/kubernetes/cmd/kubemark"


def go(*words):
    return subprocess.run(["nice", "go", *words], cwd=ROOT / "tests/kube", check=True, stdout=subprocess.PIPE, text=True,
                          env=dict(os.environ, PATH=os.environ["PATH"] + ":/usr/local/go/bin")).stdout


def build(package, path):
    """Compiles a program, which Go's cache makes quick from the second time on."""
    go("build", "-trimpath", "-ldflags=-s -w", "-o", str(path), package)
    return path


def version():
    return go("list", "-m", "-f", "{{.Version}}", "k8s.io/kubernetes").strip()


def pod(name):
    """A pod with a config map, a secret and a service account's token, as volumes and as environment."""
    return {"metadata": {"name": name, "labels": {"app": "web"}}, "spec": {
        "terminationGracePeriodSeconds": 1,
        "containers": [{
            "name": "c", "image": "web:1", "ports": [{"containerPort": 8080}],
            "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}},
            "env": [{"name": "COLOUR", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "colour"}}}],
            "volumeMounts": [{"name": "settings", "mountPath": "/settings"}, {"name": "keys", "mountPath": "/keys"}]}],
        "volumes": [{"name": "settings", "configMap": {"name": "settings"}},
                    {"name": "keys", "secret": {"secretName": "keys"}}]}}


class Recording:
    """A node that is recorded, on a control plane."""

    def __init__(self, plane, identities, recorder, kubemark):
        self.plane, self.identities, self.recorder, self.kubemark = plane, identities, recorder, kubemark
        self.begins = []  # of the phases: name and time
        self.ports = {}
        (plane.directory / "tmp").mkdir()

    def phase(self, name):
        self.begins.append([name, time.time()])
        print(f"{datetime.datetime.now():%H:%M:%S} {name}", file=sys.stderr, flush=True)

    def send(self, method, path, body=None):
        code, answer = self.plane.client.send(method, path, body)
        assert code < 300, (method, path, code, answer)
        return answer

    def is_there(self, path):
        return self.plane.client.send("GET", path)[0] == 200

    def relay(self, program, identity):
        """Starts a relay for one client, and returns the client's kubeconfig."""
        from server import free_port
        i, plane = self.identities, self.plane
        address = f"127.0.0.1:{free_port()}"
        relay = plane.begin(f"{program}-relay", [
            self.recorder, f"-listen={address}", f"-target={plane.url}", f"-ca={i.authority.cert}",
            f"-serve-cert={i.server.cert}", f"-serve-key={i.server.key}", f"-cert={identity.cert}", f"-key={identity.key}",
            f"-record={plane.directory}/{program}.jsonl"])
        plane.wait_for(f"the relay of the {program}", lambda: "listening" in relay.text())
        path = plane.config(identity, program)
        path.write_text(path.read_text().replace(plane.url, f"https://{address}"))
        return path

    def start_node_part(self, program, config):
        from server import free_port
        self.plane.begin(program, ["env", f"TMPDIR={self.plane.directory}/tmp", self.kubemark, f"--morph={program}", f"--name={NODE}",
                                   f"--kubeconfig={config}", f"--kubelet-port={free_port()}", "--kubelet-read-only-port=0",
                                   "--use-host-image-service=false"])

    def is_ready(self, since=0.0):
        """Whether the node is, and has renewed its lease since then."""
        code, node = self.plane.client.send("GET", f"{CORE}/nodes/{NODE}")
        if code != 200 or not is_true(node, "Ready") or node["spec"].get("taints"):
            return False
        code, lease = self.plane.client.send("GET", f"/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{NODE}")
        return code == 200 and datetime.datetime.fromisoformat(lease["spec"]["renewTime"]).timestamp() > since

    def ready_pods(self):
        return [p for p in self.send("GET", f"{IN_SPACE}/pods")["items"] if is_true(p, "Ready")]

    def prepare(self):
        self.send("POST", f"{CORE}/namespaces", {"metadata": {"name": SPACE}})
        for path in ("serviceaccounts/default", "configmaps/kube-root-ca.crt"):
            self.plane.wait_for(path, lambda path=path: self.is_there(f"{IN_SPACE}/{path}"))
        self.send("POST", f"{IN_SPACE}/configmaps", {"metadata": {"name": "settings"}, "data": {"colour": "blue"}})
        self.send("POST", f"{IN_SPACE}/secrets", {"metadata": {"name": "keys"}, "stringData": {"key": "value"}})
        self.send("POST", f"{IN_SPACE}/services", {"metadata": {"name": "web"}, "spec": {
            "selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": 8080}]}})

    def add(self, names):
        before = len(self.ready_pods())
        for name in names:
            self.send("POST", f"{IN_SPACE}/pods", pod(name))
        self.plane.wait_for("ready pods", lambda: len(self.ready_pods()) == before + len(names))
        time.sleep(SETTLE_SECONDS)

    def remove(self, names):
        for name in names:
            self.send("DELETE", f"{IN_SPACE}/pods/{name}")
        self.plane.wait_for("the end of the pods", lambda: not any(self.is_there(f"{IN_SPACE}/pods/{name}") for name in names))
        time.sleep(SETTLE_SECONDS)

    def run(self, seconds):
        i, plane = self.identities, self.plane
        self.prepare()
        kubelet = self.relay("kubelet", i.authority.sign("kubelet", cn=f"system:node:{NODE}", groups=["system:nodes"]))
        proxy = self.relay("proxy", i.authority.sign("proxy", cn="system:kube-proxy"))
        begin = time.monotonic()
        self.phase("start")
        self.start_node_part("kubelet", kubelet)
        self.start_node_part("proxy", proxy)
        plane.wait_for("the node", self.is_ready)
        self.phase("without pods")
        time.sleep(QUIET_SECONDS)
        for name, pods in (("a pod begins", PODS[:1]), ("two pods begin", PODS[1:])):
            self.phase(name)
            self.add(pods)
        self.phase("with pods")
        time.sleep(max(QUIET_SECONDS, seconds - (time.monotonic() - begin)))
        self.phase("a pod ends")
        self.remove(PODS[:1])
        self.phase("restart with two pods")
        restart = time.time()
        plane.programs.pop("kubelet").stop()
        self.start_node_part("kubelet", kubelet)
        plane.wait_for("the restarted kubelet", lambda: self.is_ready(restart) and len(self.ready_pods()) == 2)
        time.sleep(QUIET_SECONDS)
        self.phase("two pods end")
        self.remove(PODS[1:])
        self.phase("end")

    def save(self, minutes):
        for program in ("kubelet", "proxy"):
            plane_programs = self.plane.programs
            for name in (program, f"{program}-relay"):
                plane_programs.pop(name).stop()
        (self.plane.directory / "phases.json").write_text(json.dumps(
            {"on": self.plane.what, "date": f"{datetime.date.today()}", "version": version(), "minutes": minutes, "node": NODE,
             "namespace": SPACE, "pods": PODS, "phases": self.begins}))


def is_true(thing, condition):
    return any(c["type"] == condition and c["status"] == "True" for c in thing.get("status", {}).get("conditions", []))


def record(root, on, minutes):
    from plane import Identities, Plane
    identities = Identities(root / "identities")
    plane = Plane(on, root / on, identities, None)
    try:
        plane.start_apiserver()
        plane.start_controllers()
        recording = Recording(plane, identities, build("./controllers/recorder", root / "recorder"), build(KUBEMARK, root / "kubemark"))
        recording.run(minutes * 60)
        recording.save(minutes)
    finally:
        plane.stop()
    return plane.directory


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=12, help="how long the node runs before its pods end")
    parser.add_argument("--on", choices=("vigil", "real"), default="vigil")
    parser.add_argument("--build", default=str(ROOT / "build-test"), help="where vigil was built")
    parser.add_argument("--keep", help="a directory for the logs and the recorded requests")
    parser.add_argument("--again", help="a directory with recorded requests")
    args = parser.parse_args()
    os.environ.setdefault("VIGIL_BIN", str(pathlib.Path(args.build, "vigil").resolve()))
    with contextlib.ExitStack() as stack:
        if args.again:
            directory = pathlib.Path(args.again)
        else:
            root = pathlib.Path(args.keep or stack.enter_context(tempfile.TemporaryDirectory(prefix="vigil-node-")))
            root.mkdir(exist_ok=True)
            directory = record(root, args.on, args.minutes)
        print(tables(directory))


if __name__ == "__main__":
    sys.exit(main())
