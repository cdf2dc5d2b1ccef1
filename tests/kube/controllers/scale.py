#!/usr/bin/python3
"""Many nodes and pods with a real kube-controller-manager and kube-scheduler, first on Vigil, then on a real kube-apiserver
and etcd. Prints the time, the processor time and the memory of each program.

    tests/kube/controllers/scale.py [--nodes 1000] [--pods 30000] [--build build] [--on vigil,real]
"""
import argparse
import contextlib
import json
import os
import pathlib
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]
TICKS = os.sysconf("SC_CLK_TCK")
DEPLOYMENTS = 30
IDLE_SECONDS = 60
PHASE_SECONDS = 3600
FAST = ("--kube-api-qps=5000", "--kube-api-burst=10000")
APPS = "/apis/apps/v1/namespaces/many"


def processor_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def memory_mb(pid, what):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(what):
            return int(line.split()[1]) / 1024
    return 0.0


class Figures:
    """What the programs of a control plane have used, phase by phase."""

    def __init__(self, plane):
        self.plane, self.rows = plane, []
        self.seen = {}
        self.begin = time.monotonic()
        self.phase_begin = self.begin

    def phase(self, name):
        """Ends a phase: notes its time, and the processor time in it and the memory after it of each program."""
        now = time.monotonic()
        row = {"phase": name, "seconds": round(now - self.phase_begin, 1), "programs": {}}
        for program in self.plane.programs.values():
            pid = program.process.pid
            used = processor_seconds(pid)
            row["programs"][program.name] = {
                "cpu": round(used - self.seen.get(program.name, 0), 1), "rss": round(memory_mb(pid, "VmRSS")),
                "peak": round(memory_mb(pid, "VmHWM"))}
            self.seen[program.name] = used
        self.phase_begin = now
        self.rows.append(row)
        print(json.dumps({"on": self.plane.what, **row}), flush=True)


def deployment(i, replicas):
    labels = {"app": f"web-{i}"}
    return {"metadata": {"name": f"web-{i}"}, "spec": {
        "replicas": replicas, "selector": {"matchLabels": labels}, "progressDeadlineSeconds": PHASE_SECONDS,
        "template": {"metadata": {"labels": labels}, "spec": {"terminationGracePeriodSeconds": 1, "containers": [{
            "name": "c", "image": "web:1", "env": [{"name": "COLOUR", "value": "blue"}], "ports": [{"containerPort": 8080}],
            "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}}}]}}}}


def available(plane):
    listed = plane.client.send("GET", f"{APPS}/deployments")[1]
    return sum(d.get("status", {}).get("availableReplicas", 0) for d in listed["items"])


def pods_left(plane):
    listed = plane.client.send("GET", "/api/v1/namespaces/many/pods?limit=1")[1]
    return len(listed["items"]) + listed["metadata"].get("remainingItemCount", 0)


def want(plane, *request):
    code, body = plane.client.send(*request)
    assert code < 300, body


def measure(plane, nodes, pods):
    figures = Figures(plane)
    plane.start_apiserver()
    figures.phase("start")
    plane.start_controllers(("--concurrent-replicaset-syncs=20", "--concurrent-deployment-syncs=10", *FAST), FAST)
    plane.start_kubelets(nodes)
    figures.phase(f"{nodes} nodes")
    want(plane, "POST", "/api/v1/namespaces", {"metadata": {"name": "many"}})
    plane.wait_for("default account", lambda: plane.client.send(
        "GET", "/api/v1/namespaces/many/serviceaccounts/default")[0] == 200)
    for i in range(DEPLOYMENTS):
        want(plane, "POST", f"{APPS}/deployments", deployment(i, pods // DEPLOYMENTS))
    plane.wait_for("pods", lambda: time.sleep(1) or available(plane) == pods // DEPLOYMENTS * DEPLOYMENTS, PHASE_SECONDS)
    figures.phase(f"{pods} pods run")
    time.sleep(IDLE_SECONDS)
    figures.phase("nothing changes")
    for i in range(DEPLOYMENTS):
        want(plane, "DELETE", f"{APPS}/deployments/web-{i}", {"propagationPolicy": "Background"})
    plane.wait_for("end of the pods", lambda: time.sleep(1) or pods_left(plane) == 0, PHASE_SECONDS)
    figures.phase("pods deleted")
    return figures


def table(measured):
    """The figures as rows of Markdown: each phase, with the server's programs added up."""
    print("\n| phase | " + " | ".join(f"{f.plane.what}: time | CPU of the server | its memory, peak | CPU of the clients"
                                      for f in measured) + " |")
    for rows in zip(*(f.rows for f in measured)):
        cells = []
        for row in rows:
            server = [p for name, p in row["programs"].items() if name in ("apiserver", "etcd")]
            clients = [p for name, p in row["programs"].items() if name not in ("apiserver", "etcd")]
            cells.append(f"{row['seconds']} s | {sum(p['cpu'] for p in server):.1f} s | {sum(p['rss'] for p in server)} MB, "
                         f"{sum(p['peak'] for p in server)} MB | {sum(p['cpu'] for p in clients):.1f} s")
        print(f"| {rows[0]['phase']} | " + " | ".join(cells) + " |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--pods", type=int, default=30000)
    parser.add_argument("--build", default=str(ROOT / "build"), help="where vigil was built")
    parser.add_argument("--on", default="vigil,real", help="what to measure: vigil, pair, real")
    parser.add_argument("--keep", help="a directory for the logs")
    args = parser.parse_args()
    os.environ.setdefault("VIGIL_BIN", str(pathlib.Path(args.build, "vigil").resolve()))
    from plane import Identities, Plane, build_kubelet  # reads VIGIL_BIN
    measured = []
    with contextlib.ExitStack() as stack:
        root = pathlib.Path(args.keep or stack.enter_context(tempfile.TemporaryDirectory(prefix="vigil-scale-")))
        root.mkdir(exist_ok=True)
        kubelet, identities = build_kubelet(root), Identities(root / "identities")
        for what in args.on.split(","):
            plane = Plane(what, root / what, identities, kubelet, ("--quota-backend-bytes=8000000000",))
            try:
                measured.append(measure(plane, args.nodes, args.pods))
            finally:
                plane.stop()
    table(measured)


if __name__ == "__main__":
    sys.exit(main())
