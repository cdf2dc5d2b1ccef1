"""What is measured of the watch tier: the same work at a real kube-apiserver directly, and through the tier in front of it."""
import contextlib
import json
import statistics
import time

from sidebyside import servers, sizes, tiered

CREATES, WARM = 1000, 50
CONFIGS = "/api/v1/namespaces/default/configmaps"
INFORMERS, STARTED, POD_BYTES, NODES = 1000, 10_000, 2048, 100
ONE_USER = ("--token", tiered.ADMIN)


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

def upstream_counts(server):
    text = server.caller(False).get("/metrics")

    def seen(verb):
        return tiered.metric_sum(text, "apiserver_request_total", 'resource="pods"', f'verb="{verb}"')
    # A watch counts when it ends; those that run are counted beside.
    running = tiered.metric_sum(text, "apiserver_longrunning_requests", 'resource="pods"', 'verb="WATCH"')
    return {"lists": seen("LIST"), "watches": seen("WATCH") + running}


def starts(server):
    """Informers that ask for all pods as client-go does (a streaming list), each on its own connection."""
    if server.is_missing():
        return {}
    server.start()
    server.prepare(sizes.of(STARTED), POD_BYTES, NODES)
    before = upstream_counts(server)
    informers = sizes.of(INFORMERS)
    found = server.load(server.through, "kube-start", "--connections", informers, "--streams", 1, "--users", 10, "--token", tiered.USER)
    if found["operations"] < informers * sizes.of(STARTED):
        raise servers.Failed(f"only {found['operations']} objects came")
    after = upstream_counts(server)
    cpu = found["cpu"]
    values = {"tier_start.seconds": found["seconds"], "tier_start.upstream_s": cpu["kube-apiserver"] + cpu["etcd"],
              "tier_start.generator_s": found["generator_cpu_seconds"], "other_cores": found["other_cores"]}
    if server.through:
        values |= {"tier_start.lists": after["lists"] - before["lists"], "tier_start.watches": after["watches"] - before["watches"],
                   "tier_start.fences": server.tier_metric("vigil_tier_fences_total"), "tier_start.tier_s": cpu["tier"]}
    return values
