"""What is measured of the watch tier: the same work at a real kube-apiserver directly, and through the tier in front of it."""
import json
import statistics
import time

from sidebyside import servers, sizes, tiered

CREATES, WARM = 1000, 50
CONFIGS = "/api/v1/namespaces/default/configmaps"
INFORMERS, STARTED, NODES = 1000, 10_000, 100
POD_BYTES = 512  # as they are sent; with its defaults and managedFields the kube-apiserver answers 2.1 KB
WATCHED, WATCHES = 1000, 10  # clients, and watches of each
CHANGED = ("--key-space", 1000, "--value-size", POD_BYTES, "--nodes", NODES, "--warmup", "1s", "--token", tiered.USER)
CONFIGS_WATCHED, CONFIG_BYTES = 100, 1800  # 2 KB with what the kube-apiserver adds
CONFIGS_CHANGED = ("--configs", "--key-space", CONFIGS_WATCHED, "--value-size", CONFIG_BYTES, "--warmup", "1s", "--token", tiered.USER)
MIRRORED, MIRRORED_ALL = 20_000, 150_000
MIRRORED_BYTES = 1430  # as they are sent; the kube-apiserver answers 4 KB
RIGHTS_SECONDS = 180


# -- Creates --

def config_map(name):
    return json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name},
                       "data": {f"key-{i}": "value" * 10 for i in range(10)}})


def timed_create(client, name):
    body = config_map(name)
    began = time.perf_counter()
    status, answer = client.send("POST", CONFIGS, body)
    took = time.perf_counter() - began
    if status != 201:
        raise servers.Failed(f"POST: {status} {answer[:500]}")
    return took * 1e3


def creates(server):
    """One client with one request at a time; through the tier, every other one is direct, so that both have the same time."""
    if server.is_missing():
        return {}
    server.start()
    sides = [False, True] if server.through else [False]
    clients = {side: server.caller(side) for side in sides}
    took = {side: [] for side in sides}
    for i in range(WARM + sizes.of(CREATES)):
        for side in sides if i % 2 else sides[::-1]:
            one = timed_create(clients[side], f"{'through' if side else 'direct'}-{i}")
            if i >= WARM:
                took[side].append(one)
    for client in clients.values():
        client.close()
    direct, own = statistics.median(took[False]), statistics.median(took[server.through])
    return {"tier_create.p50_ms": own, **({"tier_create.more_ms": own - direct} if server.through else {})}


# -- Starts --

def starts(server):
    """Informers that ask for all pods as client-go does (a streaming list), each on its own connection."""
    if server.is_missing():
        return {}
    server.start()
    server.prepare(sizes.of(STARTED), POD_BYTES, NODES)
    informers = sizes.of(INFORMERS)
    found = server.load(server.through, "kube-start", "--connections", informers, "--streams", 1, "--users", 10, "--token", tiered.USER)
    if found["operations"] < informers * sizes.of(STARTED):
        raise servers.Failed(f"only {found['operations']} objects came")
    cpu = found["cpu"]
    values = {"tier_start.seconds": found["seconds"], "tier_start.upstream_s": upstream(cpu),
              "tier_start.generator_s": found["generator_cpu_seconds"], "tier_start.retries": found["retries"],
              "other_cores": found["other_cores"]}
    if server.through:
        fences = server.tier_metric("vigil_tier_fences_total")
        values |= {"tier_start.lists": server.requests_of_tier("list") - fences, "tier_start.fences": fences,
                   "tier_start.watches": server.requests_of_tier("watch"), "tier_start.tier_s": cpu["tier"]}
    return values


# -- Watches --

def upstream(cpu):
    return cpu["kube-apiserver"] + cpu["etcd"]


def watches(server):
    """100 changes a second, seen by one client with a watch of each node, directly and through the tier, and then through the tier by 1,000
    clients with ten watches each, 100 of which see a change. The changes take the same way. What the tier uses for the changes beside one
    client does not belong to the delivery of their events."""
    if server.is_missing() or not server.through:
        return {}
    server.start()
    server.prepare(1000, POD_BYTES, NODES)
    one = ("kube-watch", "--connections", 1, "--streams", NODES, "--users", 1, "--rate", 100, "--duration", "5s", *CHANGED)
    alone, one_through = (server.load(through, *one) for through in (False, True))
    many = server.load(True, "kube-watch", "--connections", sizes.of(WATCHED), "--streams", WATCHES, "--users", 10, "--rate", 100,
                       "--duration", "10s", *CHANGED)
    alone_us, many_us = (upstream(found["cpu"]) / found["changes"] * 1e6 for found in (alone, many))
    change_us, changes_us = (found["cpu"]["tier"] / found["changes"] * 1e6 for found in (one_through, many))
    count = sizes.of(WATCHED) * WATCHES
    return {"tier_watch.upstream_times": many_us / alone_us, "tier_watch.upstream_us": many_us, "tier_watch.alone_us": alone_us,
            "tier_watch.later_ms": (many["event_latency_p99_us"] - alone["event_latency_p99_us"]) / 1e3,
            "tier_watch.p50_ms": many["event_latency_p50_us"] / 1e3, "tier_watch.p99_ms": many["event_latency_p99_us"] / 1e3,
            "tier_watch.tier_us": (changes_us - change_us) / (count / NODES), "tier_watch.change_us": change_us,
            "tier_watch.bytes": many["server_anonymous_kb_of_watches"] * 1024 / count,
            "tier_watch.resident_mb": server.resident_bytes() / 1e6, "other_cores": many["other_cores"]}


def most_watches(server):
    """As many watches, each of one ConfigMap by its name, as kubelets have them: such a change costs the kube-apiserver least. Ten changes
    are in flight."""
    if server.is_missing():
        return {}
    server.start()
    server.prepare_configs(CONFIGS_WATCHED, CONFIG_BYTES)
    found = server.load(server.through, "kube-watch", "--connections", sizes.of(WATCHED), "--streams", WATCHES, "--users", 10,
                        "--rate", 0, "--pipeline", 10, "--duration", "5s", *CONFIGS_CHANGED)
    events, changes, cpu = found["operations"], found["changes"], found["cpu"]
    return {"tier_watch_max.rate": found["operations_per_second"], "tier_watch_max.cpu_us": sum(cpu.values()) / events * 1e6,
            "tier_watch_max.upstream_us": upstream(cpu) / changes * 1e6,
            "tier_watch_max.generator_us": found["generator_cpu_us_per_operation"], "other_cores": found["other_cores"]}


# -- Memory --

def mirrored(server, pods):
    if server.is_missing() or not server.through:
        return {}
    server.start()
    server.prepare(pods, MIRRORED_BYTES, NODES)
    server.load(True, "kube-start", "--connections", 1, "--streams", 1, "--token", tiered.ADMIN)
    caller = server.caller(True)
    one = len(caller.get("/api/v1/namespaces/default/pods/pod-0000000000"))
    caller.close()
    return {"tier_memory.times": server.resident_bytes() / (pods * one), "tier_memory.json_mb": pods * one / 1e6}


def memory(server):
    return mirrored(server, sizes.of(MIRRORED))


def memory_of_all(server):
    return mirrored(server, MIRRORED_ALL)


# -- Rights --

def rights(server):
    """Watches of many users with one change a second, when all were reviewed once."""
    if server.is_missing() or not server.through:
        return {}
    server.start()
    server.prepare(1000, POD_BYTES, NODES)
    users, seconds = sizes.of(tiered.USERS), max(5, sizes.of(RIGHTS_SECONDS))
    found = server.load(True, "kube-watch", "--connections", users, "--streams", WATCHES, "--users", users, "--spread", "--rate", 1,
                        "--duration", f"{seconds}s", *CHANGED, reviews=True)
    cpu = found["cpu"]
    return {"tier_rights.rate": cpu["reviews"] / found["seconds"], "tier_rights.upstream_cores": upstream(cpu) / found["seconds"],
            "tier_rights.tier_cores": cpu["tier"] / found["seconds"], "other_cores": found["other_cores"]}
