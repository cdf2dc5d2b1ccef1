"""What is measured of a cluster of three members: alone, behind etcd's grpc-proxy, and behind Vigil.

In a round of Vigil a row measures Vigil. In a round of etcd it measures a member itself, and then the proxy: its
numbers have names with `proxy_`, under which those of Vigil are repeated, so that each pair is compared."""
import os
import statistics
import time

ETCD_34 = "/usr/bin/etcd"  # Debian's
MILLION = 1_000_000
HISTORY = 100_000
LISTS, IDLE_SECONDS = 200, 5
WATCH = ("watch", "--warmup", "1s", "--duration", "3s")
SHORT = ("--connections", 1, "--pipeline", 1, "--warmup", "100ms", "--duration", "400ms")
DELAYS = {"put_ms": ("latency_p50_us", "put", *SHORT), "get_ms": ("latency_p50_us", "get", *SHORT, "--prepare", "--key-space", 100),
          "event_ms": ("event_latency_p50_us", "watch", *SHORT, "--streams", 1, "--watchers", 1, "--rate", 200)}
TURNS = 5


def named(row, found, proxied):
    """The numbers of a row under the names of the comparison with a member, with the proxy, or with both."""
    names = [row] if proxied is None else [f"proxy_{row}"] if proxied else [row, f"proxy_{row}"]
    return {f"{name}.{metric}": value for name in names for metric, value in found.items()}


def each(cluster, row, measure):
    """Measures what this round is for."""
    if cluster.name == "vigil":
        return named(row, measure(cluster.vigil), False)
    return {**named(row, measure(cluster.direct), None), **named(row, measure(cluster.proxy), True)}


def watchers(cluster):
    """10,000 watchers of one prefix on 100 connections; what 50 puts a second cost the members beside them, and
    beside one watcher."""
    cluster.start()
    one = ("--connections", 1, "--streams", 1, "--watchers", 1)
    many = ("--connections", 100, "--streams", 1, "--watchers", 100)

    def measure(server):
        def members_cpu(*flags):
            before = cluster.members_cpu()
            server.bench(*WATCH, "--rate", 50, *flags)
            return cluster.members_cpu() - before

        found = server.bench(*WATCH, "--await-events", "--pipeline", 16, *many)
        alone = members_cpu(*one)
        return {"rate": found["operations_per_second"], "p99_ms": found["event_latency_p99_us"] / 1e3,
                "members_times": members_cpu(*many) / alone}

    return each(cluster, "cluster_watch", measure)


def delay(cluster):
    """What is added to the median of a put, a get and an event. A member and what is in front of it take turns, because the
    members' own time changes from second to second."""
    cluster.start()

    def median(server, name):
        field, *words = DELAYS[name]
        return server.bench(*words)[field] / 1e3

    return {f"cluster_delay.{name}": statistics.median([median(cluster.other, name) - median(cluster.direct, name) for _ in range(TURNS)])
            for name in DELAYS}


def gets(cluster):
    """Linearizable gets of one key, 1,000 in flight."""
    cluster.start()

    def measure(server):
        found = server.bench("get", "--connections", 100, "--pipeline", 10, "--prepare", "--warmup", "1s",
                             "--duration", "3s")
        return {"rate": found["operations_per_second"], "p50_ms": found["latency_p50_us"] / 1e3}

    return each(cluster, "cluster_get", measure)


def lists(cluster):
    """Linearizable lists of 10,000 keys, one after the other: what they cost the members."""
    cluster.start()
    cluster.direct.bench("load", "--key-space", 10_000)

    def used():
        """Calls, seconds of CPU, and the time."""
        return cluster.members_calls("Range"), cluster.members_cpu(), time.monotonic()

    def measure(server):
        before = used()
        time.sleep(IDLE_SECONDS)
        idle = used()
        found = server.bench("list", "--key-space", 10_000, "--connections", 1, "--pipeline", 1, "--warmup", "0s",
                             "--total", LISTS)
        after = used()
        times = (after[2] - idle[2]) / (idle[2] - before[2])
        calls, cpu = (after[i] - idle[i] - (idle[i] - before[i]) * times for i in range(2))
        return {"members_calls": calls / LISTS, "members_cpu_ms": cpu / LISTS * 1e3, "p50_ms": found["latency_p50_us"] / 1e3}

    return each(cluster, "cluster_list", measure)


def catch_up(cluster):
    """1,000 watchers that catch up over 100,000 revisions: what the members do meanwhile."""
    cluster.start()
    cluster.direct.bench("put", "--total", HISTORY, "--connections", 10, "--pipeline", 100)

    def measure(server):
        idle = cluster.members_cpu()
        time.sleep(5)
        idle = (cluster.members_cpu() - idle) / 5
        cpu, began = cluster.members_cpu(), time.monotonic()
        found = server.bench("catchup", "--connections", 10, "--streams", 100, "--from", 2, "--total", HISTORY,
                             "--duration", "10s")
        cores = (cluster.members_cpu() - cpu) / (time.monotonic() - began)
        return {"rate": found["operations_per_second"], "members_cores": max(0.0, cores - idle)}

    return each(cluster, "cluster_catch_up", measure)


def load_million(cluster):
    cluster.start_members()
    cluster.direct.bench("load", "--key-space", MILLION, "--connections", 100, "--pipeline", 10)


def million_keys_of_old(cluster):
    """The same in front of Debian's etcd 3.4, which cannot send a range as a stream: start with nothing."""
    if cluster.name != "vigil" or not os.access(ETCD_34, os.X_OK):
        return {}
    cluster.use(ETCD_34)
    load_million(cluster)
    return {"cluster_million_34.cold_s": cluster.vigil.start(value_size=256)}


def million_keys(cluster):
    """Vigil alone: start with nothing, start again, memory."""
    if cluster.name != "vigil":
        return {}
    load_million(cluster)
    cold = cluster.vigil.start(value_size=256)
    time.sleep(3)
    memory = cluster.vigil.anonymous_mb()
    cluster.vigil.stop()
    warm = cluster.vigil.start(value_size=256)
    return {"cluster_million.cold_s": cold, "cluster_million.warm_s": warm, "cluster_million.anonymous_mb": memory}
