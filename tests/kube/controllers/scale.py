#!/usr/bin/python3
"""Many nodes and pods with a real kube-controller-manager and kube-scheduler, first on Vigil, then on a real kube-apiserver
and etcd. Prints the time, the processor time and the memory of each program; --report writes them to a file, too.

    tests/kube/controllers/scale.py [--nodes 1000] [--pods 30000] [--build build] [--on vigil,real] [--report FILE]

A size of its own is given as real:NODES:PODS, for a server that would take too long with the other one.
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
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]
TICKS = os.sysconf("SC_CLK_TCK")
DEPLOYMENTS = 30
IDLE_SECONDS = 60
PHASE_SECONDS = 3600
# No program may give up because the machine is busy: this is about how much is used.
CLIENTS = ("--kube-api-qps=5000", "--kube-api-burst=10000", "--leader-elect-lease-duration=300s", "--leader-elect-renew-deadline=240s",
           "--leader-elect-retry-period=5s")
APPS = "/apis/apps/v1/namespaces/many"
SERVER = ("apiserver", "etcd")
SAMPLE_SECONDS = 2
NAMES = {"vigil": "Vigil", "pair": "Vigil as kube-apiserver and etcd", "real": "kube-apiserver and etcd"}


def processor_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def memory_mb(pid, what):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(what):
            return int(line.split()[1]) / 1024
    return 0.0


class Figures:
    """What the programs of a control plane have used, phase by phase, and the memory of its server over time."""

    def __init__(self, plane, nodes, pods):
        self.plane, self.nodes, self.pods = plane, nodes, pods
        self.rows, self.seen = [], {}
        self.begin = self.phase_begin = time.monotonic()
        self.memory, self.running = [], []  # points: seconds since the begin, and a number
        self.ended = threading.Event()
        self.sampler = threading.Thread(target=self.sample, daemon=True)

    def server(self):
        return [p.process.pid for name, p in list(self.plane.programs.items()) if name in SERVER and p.alive()]

    def sample(self):
        while not self.ended.wait(SAMPLE_SECONDS):
            with contextlib.suppress(OSError):
                self.memory.append([self.since(), sum(memory_mb(pid, "VmRSS") for pid in self.server())])

    def since(self):
        return round(time.monotonic() - self.begin, 1)

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
    figures = Figures(plane, nodes, pods)
    figures.sampler.start()
    try:
        run(plane, figures, nodes, pods // DEPLOYMENTS)
    finally:
        figures.ended.set()
        figures.sampler.join()
    return figures


def all_run(plane, figures, count):
    """A look per second, since it costs the server something, too."""
    time.sleep(1)
    figures.running.append([figures.since(), available(plane)])
    return figures.running[-1][1] == count


def run(plane, figures, nodes, replicas):
    plane.start_apiserver()
    figures.phase("start")
    plane.start_controllers(("--concurrent-replicaset-syncs=20", "--concurrent-deployment-syncs=10", *CLIENTS), CLIENTS)
    plane.start_kubelets(nodes)
    figures.phase("nodes registered")
    want(plane, "POST", "/api/v1/namespaces", {"metadata": {"name": "many"}})
    plane.wait_for("default account", lambda: plane.client.send(
        "GET", "/api/v1/namespaces/many/serviceaccounts/default")[0] == 200)
    for i in range(DEPLOYMENTS):
        want(plane, "POST", f"{APPS}/deployments", deployment(i, replicas))
    plane.wait_for("pods", lambda: all_run(plane, figures, replicas * DEPLOYMENTS), PHASE_SECONDS)
    figures.phase("all pods run")
    time.sleep(IDLE_SECONDS)
    figures.phase("nothing changes")
    for i in range(DEPLOYMENTS):
        want(plane, "DELETE", f"{APPS}/deployments/web-{i}", {"propagationPolicy": "Background"})
    plane.wait_for("end of the pods", lambda: time.sleep(1) or pods_left(plane) == 0, PHASE_SECONDS)
    figures.phase("pods deleted")


def of_server(row, what):
    return sum(used[what] for name, used in row["programs"].items() if name in SERVER)


def of_clients(row, what):
    return sum(used[what] for name, used in row["programs"].items() if name not in SERVER)


def title(figures):
    return f"{NAMES[figures.plane.what]}, {figures.nodes:,} nodes and {figures.pods:,} pods"


def table(measured):
    """The figures as tables of Markdown: each phase, with the server's programs added up."""
    for figures in measured:
        print(f"\n{title(figures)}\n\n| phase | time | CPU of the server | its memory | peak | CPU of the clients |\n"
              "| --- | --- | --- | --- | --- | --- |")
        for row in figures.rows:
            print(f"| {row['phase']} | {row['seconds']} s | {of_server(row, 'cpu'):.1f} s | {of_server(row, 'rss')} MB | "
                  f"{of_server(row, 'peak')} MB | {of_clients(row, 'cpu'):.1f} s |")


def phases(figures):
    """A table for the report."""
    rows = [[row["phase"], row["seconds"], round(of_server(row, "cpu"), 1), of_server(row, "rss")] for row in figures.rows]
    return {"title": title(figures), "rows": rows,
            "columns": ["phase", "time, s", "processor time of the server, s", "memory of the server after it, MB"]}


def facts(figures):
    name = title(figures)
    yield [f"{name}: peak memory of the server", of_server(figures.rows[-1], "peak"), "MB"]
    yield [f"{name}: processor time of the server, in all", round(sum(of_server(row, "cpu") for row in figures.rows), 1), "s"]
    yield [f"{name}: processor time of its clients, in all", round(sum(of_clients(row, "cpu") for row in figures.rows), 1), "s"]


def plot(measured, name, unit, points):
    return {"title": name, "x": "seconds since the start", "y": unit, "log": False,
            "series": [{"name": title(f), "points": points(f)} for f in measured]}


def write_report(path, measured, seconds):
    commit = subprocess.check_output([ROOT / "tools/commit-name"], text=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({
        "part": "scale", "command": "make controllers-scale", "commit": commit.strip(),
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d"), "seconds": round(seconds, 1),
        "facts": [fact for f in measured for fact in facts(f)], "tables": [phases(f) for f in measured],
        "plots": [plot(measured, "Memory of the server", "MB", lambda f: [[x, round(y, 1)] for x, y in f.memory]),
                  plot(measured, "Pods that run", "pods", lambda f: f.running)],
        "rows": []}, indent=1) + "\n")


def sizes(text, nodes, pods):
    """vigil,real:100:3000 as what to measure, with nodes and pods."""
    for part in text.split(","):
        what, *own = part.split(":")
        yield what, *([int(number) for number in own] or [nodes, pods])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--pods", type=int, default=30000)
    parser.add_argument("--build", default=str(ROOT / "build"), help="where vigil was built")
    parser.add_argument("--on", default="vigil,real", help="what to measure: vigil, pair, real, each with a size of its own, if given")
    parser.add_argument("--report", type=pathlib.Path, help="a file for the figures, as JSON")
    parser.add_argument("--keep", help="a directory for the logs")
    args = parser.parse_args()
    os.environ.setdefault("VIGIL_BIN", str(pathlib.Path(args.build, "vigil").resolve()))
    from plane import Identities, Plane, build_kubelet  # reads VIGIL_BIN
    measured, begin = [], time.monotonic()
    with contextlib.ExitStack() as stack:
        root = pathlib.Path(args.keep or stack.enter_context(tempfile.TemporaryDirectory(prefix="vigil-scale-")))
        root.mkdir(exist_ok=True)
        kubelet, identities = build_kubelet(root), Identities(root / "identities")
        for what, nodes, pods in sizes(args.on, args.nodes, args.pods):
            plane = Plane(what, root / f"{what}-{nodes}-{pods}", identities, kubelet, ("--quota-backend-bytes=8000000000",))
            try:
                measured.append(measure(plane, nodes, pods))
            finally:
                plane.stop()
            if args.report:  # after each of them, so that an interrupted run has a result, too
                write_report(args.report, measured, time.monotonic() - begin)
    table(measured)


if __name__ == "__main__":
    sys.exit(main())
