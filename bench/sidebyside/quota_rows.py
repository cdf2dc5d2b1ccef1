"""What it costs a create that quotas are looked up: with and without the plugin ResourceQuota, one after the other. Vigil alone: a
create waits until what is known of quotas is as new as the store, which the creates of other clients change. The namespace has no quota."""
import shutil

PODS = 10_000
CLIENTS = (8, 64)
OFF = "--kube-disable-admission-plugins=ResourceQuota"


def create(server, clients, flags):
    server.flags = flags
    server.start()
    found = server.bench("kube-load", "--connections", clients, "--pipeline", 1, "--key-space", PODS, "--value-size", 2048)
    server.stop()
    shutil.rmtree(server.directory / "data")
    return found


def quotas(server):
    if server.name != "vigil":
        return {}
    result = {}
    for clients in CLIENTS:
        for name, flags in (("with", []), ("without", [OFF])):
            found = create(server, clients, flags)
            result |= {f"quota_{clients}.{name}_cpu_us": found["server_cpu_us_per_operation"],
                       f"quota_{clients}.{name}_p50_us": found["latency_p50_us"],
                       f"quota_{clients}.{name}_p99_us": found["latency_p99_us"], "other_cores": found["other_cores"]}
    return result
