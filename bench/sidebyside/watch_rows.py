"""What is measured of watches. A put is in flight until all its events have come."""
import os
import subprocess

HISTORY = 100_000
GB = 1_000_000_000
LONG_VALUE = 60_000
ONE_KEY = ("--watch-keys", "one", "--key-space", 1)
OWN_KEYS = ("--watch-keys", "own")
SETTLE = ("--duration", "1s")  # what is garbage to a server, it may give back


def events(key, server, *flags):
    """Puts to one key that all watch, and what comes of it."""
    server.start()
    found = server.bench("watch", *flags, *ONE_KEY, "--await-events", "--warmup", "1s",
                         "--duration", "2s")
    return {f"{key}.rate": found["operations_per_second"],
            f"{key}.cpu_us": found["server_cpu_us_per_operation"],
            f"{key}.p50_ms": found["event_latency_p50_us"] / 1e3,
            f"{key}.p99_ms": found["event_latency_p99_us"] / 1e3,
            "other_cores": found["other_cores"]}


def one_stream(server):
    return events("one_stream", server, "--connections", 1, "--streams", 1, "--watchers", 100,
                  "--pipeline", 16)


def thousand(server):
    return events("thousand", server, "--connections", 1, "--streams", 1, "--watchers", 1000,
                  "--pipeline", 1)


def streams(server):
    return events("streams", server, "--connections", 1, "--streams", 100, "--pipeline", 16)


def grid(server):
    return events("grid", server, "--connections", 100, "--streams", 100, "--pipeline", 1)


def connections(server):
    return events("connections", server, "--connections", 10_000, "--streams", 1, "--pipeline", 16)


def idle(server, *flags):
    """Watchers that nothing happens to. Anonymous bytes they take, and seconds to make them."""
    server.start()
    found = server.bench("idle", *flags, *OWN_KEYS, *SETTLE)
    return found["server_anonymous_kb_more"] * 1024, found["created_ms"] / 1e3, found["other_cores"]


def idle_watchers(server):
    taken, _, other = idle(server, "--connections", 1, "--streams", 1, "--watchers", 100_000)
    return {"idle_watcher.bytes": taken / 100_000, "other_cores": other}


def idle_streams(server):
    taken, _, other = idle(server, "--connections", 10, "--streams", 1000)
    return {"idle_stream.bytes": taken / 10_000, "other_cores": other}


def idle_connections(server):
    taken, _, other = idle(server, "--connections", 1000, "--streams", 1)
    return {"idle_connection.kb": taken / 1000 / 1e3, "other_cores": other}


def million_watchers(server):
    taken, seconds, other = idle(server, "--connections", 10, "--streams", 100, "--watchers", 1000)
    return {"million_watchers.mb": taken / 1e6, "million_watchers.seconds": seconds,
            "other_cores": other}


def catch_up(server, revisions, seconds):
    """One watcher from the first revision on; no longer than so many seconds."""
    found = server.bench("catchup", "--connections", 1, "--from", 2, "--total", revisions,
                         "--duration", f"{seconds}s")
    more_kb = found["server_anonymous_kb_most"] - found["server_anonymous_kb_before"]
    return {"catchup.rate": found["operations_per_second"],
            "catchup.more_mb": max(0.0, more_kb * 1024 / 1e6)}


def beside_readers(server, measured, readers, cores=None):
    """What is measured while others catch up over the history again and again."""
    words = server.words_of_bench("catchup", "--from", 2, "--total", HISTORY, "--again",
                                  "--duration", "60s", *readers)
    hold = (lambda: os.sched_setaffinity(0, cores)) if cores else None
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                               preexec_fn=hold)
    try:
        return server.bench(*measured)
    finally:
        process.terminate()
        process.wait()


def puts_beside(server):
    """One client puts, alone; then beside two watchers that read the same history every second, or,
    where they cannot, over and over; then beside one whose client does nothing else, on one core."""
    server.start()
    server.bench("put", "--total", HISTORY, "--connections", 10, "--pipeline", 100)
    put = ("put", "--connections", 1, "--pipeline", 1, "--warmup", "500ms", "--duration", "2s")
    alone = server.bench(*put)
    paced = beside_readers(server, put, ("--connections", 2, "--rate", 1))
    unpaced = beside_readers(server, put, ("--connections", 1), {min(os.sched_getaffinity(0))})
    return {"beside.alone": alone["operations_per_second"],
            "beside.kept": paced["operations_per_second"] / alone["operations_per_second"],
            "beside.p999_ms": paced["latency_p999_us"] / 1e3,
            "beside.kept_unpaced": unpaced["operations_per_second"] / alone["operations_per_second"]}


def long_catch_up(server):
    """A stream with one watcher that catches up over 10 GB, and 100 on a key that is put meanwhile.
    etcd holds no more than 2 GB unless told, and where there is little room on the disk it is less."""
    gigabytes = 10 if server.name == "vigil" and server.disk_has(30 * GB) else 1
    events = gigabytes * GB // LONG_VALUE
    if gigabytes > 1:
        server.flags = ["--quota-backend-bytes", str(20 * GB)]
    server.start()
    server.bench("put", "--prefix", "long/", "--total", events, "--value-size", LONG_VALUE,
                 "--key-space", 100, "--connections", 10, "--pipeline", 10)
    found = server.bench("watch", "--connections", 1, "--streams", 1, "--watchers", 100, *ONE_KEY,
                         "--rate", 200, "--warmup", "0s", "--duration", "120s",
                         "--behind", "long/", "--from", 2, "--total", events)
    more_kb = found["server_anonymous_kb_most"] - found["server_anonymous_kb_before"]
    return {"long.gb": found["behind_bytes"] / GB,
            "long.mb_s": found["behind_bytes"] / 1e6 / found["behind_seconds"],
            "long.live_p50_ms": found["event_latency_p50_us"] / 1e3,
            "long.live_p99_ms": found["event_latency_p99_us"] / 1e3,
            "long.more_mb": max(0.0, more_kb * 1024 / 1e6), "other_cores": found["other_cores"]}
