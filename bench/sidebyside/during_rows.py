"""What one client's puts take while the server compacts 1,000,000 revisions, sends a snapshot, or is defragmented."""
import threading
import time
import urllib.request

from sidebyside import compaction, sizes

REVISIONS = 1_000_000
SMALL = ("--key-space", 50_000, "--value-size", 64)
PUTS = ("put", "--connections", 1, "--pipeline", 1, *SMALL, "--warmup", "0s")
SETTLE_SECONDS = 6  # until the last checkpoint of what was loaded is over


def snapshot(server):
    request = urllib.request.Request(f"http://{server.endpoint}/v3/maintenance/snapshot", b"{}")
    with urllib.request.urlopen(request, timeout=compaction.POST_SECONDS) as answer:
        while answer.read(1 << 20):
            pass


def defragment(server):
    compaction.post(server, "/v3/maintenance/defragment", {})


def puts_during(server, work, seconds, again):
    """Latencies of all puts from the beginning of the work on; it is repeated until the puts end, unless it can be done only once."""
    over = threading.Event()

    def repeat():
        work(server)
        while again and not over.is_set():
            work(server)

    thread = threading.Thread(target=repeat)
    thread.start()
    found = server.bench(*PUTS, "--duration", f"{seconds}s")
    over.set()
    thread.join()
    return found["latency_p99_us"] / 1e3


def during(server):
    """Vigil alone: etcd needs a minute to make the history. A snapshot and a defragmentation are of the whole history, so they
    come before the compaction."""
    if server.name != "vigil":
        return {}
    server.start()
    server.bench("put", "--connections", 10, "--pipeline", 100, *SMALL, "--warmup", "0s", "--total", sizes.of(REVISIONS))
    time.sleep(SETTLE_SECONDS)
    alone = server.bench(*PUTS, "--duration", "3s")
    return {"during_nothing.p99_ms": alone["latency_p99_us"] / 1e3,
            "during_snapshot.p99_ms": puts_during(server, snapshot, 5, True),
            "during_defragmentation.p99_ms": puts_during(server, defragment, 5, True),
            "during_compaction.p99_ms": puts_during(server, compaction.compact, 5, False), "other_cores": alone["other_cores"]}
