"""What is measured of the clients of Kubernetes, libvigil-kube and client-go: what they cost the
program that uses them. Both are used with Vigil, over JSON, in the same way: bench/clients/."""
from sidebyside import kube_rows

PODS, POD_BYTES = 150_000, 4096
CHANGED, CHANGED_BYTES, CHANGE_SECONDS = 10_000, 2048, 20
WATCHES, WATCHES_OF_PEER = 1000, 200


def informer(server):
    """Until all pods are in the store and in one handler."""
    server.start()
    server.bench("kube-load", "--key-space", PODS, "--value-size", POD_BYTES)
    found = server.kube_client_bench("informer", PODS)
    return {"kube_informer.memory": found["bytes"] / (PODS * kube_rows.pod_bytes(server)),
            "kube_informer.seconds": found["seconds"], "kube_informer.cpu_us": found["cpu_us"],
            "other_cores": found["other_cores"]}


def catch_up(server):
    """Of an informer whose process was stopped while pods were changed."""
    server.start()
    server.bench("kube-load", "--key-space", CHANGED, "--value-size", CHANGED_BYTES, "--nodes", 1)

    def change():
        made = server.bench("kube-watch", "--connections", 1, "--streams", 1, "--nodes", 1,
                            "--key-space", CHANGED, "--value-size", CHANGED_BYTES, "--rate", 100_000,
                            "--warmup", "0s", "--duration", f"{CHANGE_SECONDS}s")
        return made["changes"]

    found = server.kube_catch_up(CHANGED, change)
    return {"kube_catch_up.rate": found["count"] / found["seconds"],
            "kube_catch_up.cpu_us": found["cpu_us"], "kube_catch_up.count": found["count"]}


def idle_watches(server):
    """client-go has a connection for every watch of a server without TLS."""
    server.start()
    count = WATCHES if server.client == "vigil" else WATCHES_OF_PEER
    found = server.kube_client_bench("watches", count)
    return {"kube_client_idle.bytes": found["bytes"], "kube_client_idle.cpu_us": found["cpu_us"],
            "other_cores": found["other_cores"]}
