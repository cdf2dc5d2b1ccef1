"""What is measured of the Kubernetes API beside a real kube-apiserver on etcd, both over TLS: pods created, listed and watched,
and the memory of all that serves them."""
from sidebyside import sizes

PODS, NODES, CHANGED = 10_000, 10, 1000
SIZE = ("--value-size", 2048, "--nodes", NODES)
CHANGE = ("kube-watch", *SIZE, "--rate", 100, "--warmup", "1s")


def side_by_side(server):
    if server.is_missing():
        return {}
    server.start()
    pods = sizes.of(PODS)
    created = server.bench("kube-load", "--key-space", pods, *SIZE)
    listed = server.bench("kube-list", "--key-space", pods, *SIZE, "--warmup", "1s", "--duration", "3s")
    # A change for one watch, then the same changes for 100 each, ten on a connection.
    changed = ("--key-space", min(CHANGED, pods))
    single = server.bench(*CHANGE, *changed, "--connections", 1, "--streams", NODES, "--duration", "3s")
    many = server.bench(*CHANGE, *changed, "--connections", 100, "--streams", 10, "--duration", "4s")
    change, whole = single["server_cpu_us_per_operation"], many["server_cpu_us_per_operation"]
    return {"peer_kube_create.cpu_us": created["server_cpu_us_per_operation"], "peer_kube_create.rate": created["operations_per_second"],
            "peer_kube_list.cpu_ms": listed["server_cpu_us_per_operation"] / 1e3, "peer_kube_list.p50_ms": listed["latency_p50_us"] / 1e3,
            "peer_kube_change.cpu_us": change, "peer_kube_event.cpu_us": whole - change / 100,
            "peer_kube_event.p99_ms": many["event_latency_p99_us"] / 1e3,
            "peer_kube_memory.mb": many["server_resident_kb_after"] * 1024 / 1e6, "other_cores": listed["other_cores"]}
