"""What is measured of the Kubernetes API. Vigil alone: kube_peer_rows.py compares
it with a kube-apiserver. 1,000 pods change one after the other, 1,000 changes a second, by
PUT; a watch is of the pods of one node."""
import shutil
import urllib.request

NODES = 100
PODS = ("--key-space", 1000, "--value-size", 2048, "--rate", 1000)
TIME = ("--warmup", "1s", "--duration", "4s")
LISTED = 10_000
MANY, MANY_BYTES = 150_000, 4096
STOPPED = 1000


def cpu_of_a_change(server):
    """With one watch; the cost of the changes themselves does not belong to their delivery. The pods are all on
    one node, which cannot be changed, so they are removed with the server's data."""
    found = server.bench("kube-watch", "--prepare", "--connections", 1, "--streams", 1, "--nodes", 1,
                         *PODS, "--warmup", "1s", "--duration", "2s")
    server.stop()
    shutil.rmtree(server.directory / "data")
    server.start()
    return found["server_cpu_us_per_operation"]


def delivered(server, of_a_change, *flags):
    """10,000 watches on 1,000 connections, each change for 100 of them."""
    found = server.bench("kube-watch", "--connections", 1000, "--streams", 10, "--nodes", NODES, *PODS,
                         *TIME, *flags)
    whole = found["server_cpu_us_per_operation"]
    return whole, whole - of_a_change / 100, found


def watches(server):
    if server.name != "vigil":
        return {}
    server.start()
    change = cpu_of_a_change(server)
    whole, own, found = delivered(server, change, "--prepare")
    _, spread, spread_found = delivered(server, change, "--spread")
    return {"kube_watch.cpu_us": own, "kube_watch.cpu_all_us": whole,
            "kube_watch.p50_ms": found["event_latency_p50_us"] / 1e3,
            "kube_watch.p99_ms": found["event_latency_p99_us"] / 1e3,
            "kube_watch.change_us": change,
            "kube_spread.cpu_us": spread,
            "kube_spread.p99_ms": spread_found["event_latency_p99_us"] / 1e3,
            "other_cores": found["other_cores"]}


def idle_watches(server):
    """Anonymous bytes of a watch, 18 on a connection, as a kubelet and a kube-proxy have together."""
    if server.name != "vigil":
        return {}
    server.start()
    found = server.bench("kube-watch", "--connections", 1000, "--streams", 18, "--nodes", NODES,
                         "--warmup", "0s", "--duration", "1ms", "--rate", 1, "--prepare",
                         "--key-space", 1)
    return {"kube_idle.bytes": found["server_anonymous_kb_of_watches"] * 1024 / 18_000}


def listed(server):
    if server.name != "vigil":
        return {}
    server.start()
    found = server.bench("kube-list", "--prepare", "--key-space", LISTED, "--value-size", 2048,
                         "--warmup", "1s", "--duration", "3s")
    return {"kube_list.cpu_ms": found["server_cpu_us_per_operation"] / 1e3,
            "kube_list.p50_ms": found["latency_p50_us"] / 1e3, "other_cores": found["other_cores"]}


def pod_bytes(server):
    """The JSON of a pod as the server answers it, with the fields that it has filled in."""
    with urllib.request.urlopen(f"http://{server.kube_endpoint}/api/v1/namespaces/default/pods/pod-0000000000") as answer:
        return len(answer.read())


def many_pods(server):
    """All resident memory, the mapped log too, after each object was read once."""
    if server.name != "vigil":
        return {}
    server.start()
    size = ("--key-space", MANY, "--value-size", MANY_BYTES)
    loaded = server.bench("kube-load", *size)
    found = server.bench("kube-list", *size, "--warmup", "0s", "--duration", "1s")
    return {"kube_many.memory": found["server_resident_kb_after"] * 1024 / (MANY * pod_bytes(server)),
            "kube_many.anonymous_mb": found["server_anonymous_kb_after"] * 1024 / 1e6,
            "kube_many.load_rate": loaded["operations_per_second"]}


def stopped_clients(server):
    """1,000 watches on 100 connections, alone and beside 1,000 that have stopped reading."""
    if server.name != "vigil":
        return {}
    server.start()
    watch = ("kube-watch", "--connections", 100, "--streams", 10, "--nodes", NODES, *PODS, *TIME)
    alone = server.bench(*watch, "--prepare")
    beside = server.bench(*watch, "--stopped", STOPPED)
    more_kb = beside["server_anonymous_kb_most"] - beside["server_anonymous_kb_start"]
    return {"kube_stopped.kept": beside["operations_per_second"] / alone["operations_per_second"],
            "kube_stopped.alone_p99_ms": alone["event_latency_p99_us"] / 1e3,
            "kube_stopped.p99_ms": beside["event_latency_p99_us"] / 1e3,
            "kube_stopped.more_mb": more_kb * 1024 / 1e6, "other_cores": beside["other_cores"]}
