"""How cost grows with size, and the largest sizes: Vigil alone. A point of a plot is the cost of all keys, watchers, streams or
connections together, so linear growth has the slope 1."""
import shutil
import statistics
import subprocess
import sys
import time

from sidebyside import servers, sizes, slope, watch_rows

TEN_MILLION, HUNDRED_THOUSAND = 10_000_000, 100_000
MANY_WATCHERS = ("--max-watchers-per-stream", "1000000")
QUOTA = ["--quota-backend-bytes", str(32 << 30)]
TOUCHED_BYTES = 4 << 30  # more than any row needs from here on
EVENTS = ("watch", *watch_rows.ONE_KEY, "--await-events", "--pipeline", 1, "--warmup", "500ms", "--duration", "1500ms")


def fresh(server, *flags):
    """A server without data. Returns its anonymous memory."""
    server.stop()
    shutil.rmtree(server.directory / "data", ignore_errors=True)
    server.flags = [*QUOTA, *flags]
    server.start()
    return server.anonymous_mb()


def touch_memory():
    """A host may give memory to a virtual machine only when it is first used, and take it back when it is free: 1 to 2 ms for
    each MB. Without this, large sizes would be measured with memory that is new, and small ones with what was freed before."""
    subprocess.run([sys.executable, "-c", f"bytearray({sizes.of(TOUCHED_BYTES)})"], check=True)


def grown(key, title, x, series):
    """The plot, and the steepest slope of its lines as a part of that of n log n."""
    slopes = [slope.part_of_n_log_n(points) for points in series.values()]
    plot = {"title": title, "x": x, "y": "cost, in the unit of each line", "log": True,
            "series": [{"name": name, "points": points} for name, points in series.items()]}
    return {f"{key}.growth": max(s for s in slopes if s is not None), "plots": [plot]}


def rest(one):
    """Waits until the server has done what it does after the last request, such as its checkpoint."""
    before = None
    for _ in range(100):
        used = sum(map(servers.used_seconds, one.pids()))
        if before is not None and used - before <= 0.01:
            return
        before = used
        time.sleep(0.3)
    raise servers.Failed("the server does not come to rest")


def put_rates(large, most):
    """Of random keys, 1,000 in flight: with these keys, and with 100,000 in a server of their own. They take turns, so that both find
    the machine in the same state: all puts write to memory and to files that are new. The medians of five."""
    few = sizes.of(HUNDRED_THOUSAND)
    with servers.Server("vigil", large.programs, large.directory.with_name("few_keys")) as small:
        fresh(small)
        small.bench("load", "--key-space", few)
        small.stop()
        small.start(value_size=256)
        touch_memory()
        rates = {most: [], few: []}
        for _ in range(5):
            for one, count in ((large, most), (small, few)):
                rest(large)
                rest(small)
                found = one.bench("put", "--key-space", count, "--warmup", "500ms", "--duration", "2s")
                rates[count].append(found["operations_per_second"])
    return statistics.median(rates[most]), statistics.median(rates[few])


def keys(server):
    """Loaded, weighed, restarted, then put at random."""
    if server.name != "vigil":
        return {}
    lines = {name: [] for name in ("memory, MB", "server CPU to load, s", "restart, s")}
    for count in map(sizes.of, (10_000, HUNDRED_THOUSAND, 1_000_000, TEN_MILLION)):
        before = fresh(server)
        loaded = server.bench("load", "--key-space", count)
        time.sleep(3)  # what is garbage to a server, it may give back
        memory = server.anonymous_mb() - before
        server.stop()
        restart = server.start(value_size=256)
        for name, value in zip(lines, (memory, loaded["server_cpu_us_per_operation"] * count / 1e6, restart)):
            lines[name].append([count, value])
    with_most, with_few = put_rates(server, count)
    return {**grown("growth_keys", "Cost of keys of 16 bytes with values of 256", "keys", lines),
            "many_keys.bytes": memory * 1e6 / count, "many_keys.rate": with_most, "many_keys.kept": with_most / with_few,
            "many_keys.restart_s": restart, "other_cores": loaded["other_cores"]}


def values(server):
    if server.name != "vigil":
        return {}
    fresh(server)
    points = []
    for size in (64, 256, 1024, 4096, 16_384, 60_000):
        found = server.bench("put", "--connections", 10, "--pipeline", 10, "--key-space", 1000, "--value-size", size,
                             "--warmup", "500ms", "--duration", "2s")
        points.append([size, found["server_cpu_us_per_operation"]])
    return {**grown("growth_values", "Cost of a put by the size of its value", "bytes", {"server CPU of a put, µs": points}),
            "other_cores": found["other_cores"]}


def fan_out(server, flags, counts):
    """What a put costs that so many see, and the memory of those."""
    cpu, memory = [], []
    for count in counts:
        before = fresh(server)
        found = server.bench(*EVENTS, *flags(count))
        cpu.append([count, found["server_cpu_us_per_operation"] * count])
        memory.append([count, max(found["server_anonymous_kb_after"] / 1024 * 1.048576 - before, 0)])
    return {"server CPU of a put, µs": cpu, "memory, MB": memory}


def creation_ms(server, count):
    """Of so many watchers on ten streams, each with a key of its own; the median of several where that takes milliseconds."""
    found = []
    for _ in range(5 if count <= HUNDRED_THOUSAND else 1):
        fresh(server, *MANY_WATCHERS)
        touch_memory()
        found.append(server.bench("idle", "--connections", 10, "--streams", 1, "--watchers", max(count // 10, 1), *watch_rows.OWN_KEYS,
                                  *watch_rows.SETTLE)["created_ms"])
    return statistics.median(found)


def watchers(server):
    if server.name != "vigil":
        return {}
    lines = fan_out(server, lambda n: ("--connections", 1, "--streams", 1, "--watchers", n), (100, 1000, 10_000, 100_000))
    created = [[count, creation_ms(server, count)] for count in map(sizes.of, (10_000, HUNDRED_THOUSAND, 1_000_000, TEN_MILLION))]
    return grown("growth_watchers", "Cost of watchers of one key on one stream", "watchers",
                 {**lines, "creation of watchers of different keys, ms": created})


def streams(server):
    if server.name != "vigil":
        return {}
    lines = fan_out(server, lambda n: ("--connections", 10, "--streams", n // 10), (100, 1000, 10_000))
    return grown("growth_streams", "Cost of streams with one watcher each on ten connections", "streams", lines)


def connections(server):
    if server.name != "vigil":
        return {}
    lines = fan_out(server, lambda n: ("--connections", n, "--streams", 1), (100, 1000, 10_000))
    return grown("growth_connections", "Cost of connections with one watcher each", "connections", lines)


def many_watchers(server):
    """10,000,000 on ten streams, each with a key of its own; random ones of these keys are put, 100,000 a second."""
    if server.name != "vigil":
        return {}
    fresh(server, *MANY_WATCHERS)
    touch_memory()
    each = sizes.of(1_000_000)
    found = server.bench("watch", "--connections", 10, "--streams", 1, "--watchers", each, *watch_rows.OWN_KEYS,
                         "--key-space", 10 * each, "--keys", "random", "--rate", 100_000, "--pipeline", 10_000,
                         "--warmup", "2s", "--duration", "5s")
    return {"many_watchers.mb": found["server_anonymous_kb_after"] * 1024 / 1e6, "many_watchers.rate": found["operations_per_second"],
            "many_watchers.p50_ms": found["event_latency_p50_us"] / 1e3, "many_watchers.p99_ms": found["event_latency_p99_us"] / 1e3,
            "other_cores": found["other_cores"]}
