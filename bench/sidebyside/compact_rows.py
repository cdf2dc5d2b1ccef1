"""What a compaction costs: memory, and the puts of one client meanwhile."""
import time

KEYS = 50_000
QUOTA = str(32 << 30)  # more than either server needs for the longest history
SETTLE_SECONDS = 6     # until the last checkpoint of what was loaded is over
SMALL = ("--key-space", KEYS, "--value-size", 64)


def burst(server, seconds):
    return server.bench("put", "--connections", 1, "--pipeline", 1, *SMALL, "--warmup", "50ms",
                        "--duration", f"{seconds}s")


def compaction(key, server, revisions):
    server.flags = ["--quota-backend-bytes", QUOTA]
    server.start()
    server.bench("put", "--connections", 10, "--pipeline", 100, *SMALL, "--warmup", "0s",
                 "--total", revisions)
    time.sleep(SETTLE_SECONDS)
    alone = burst(server, 3)
    during = server.compaction(lambda: burst(server, 1), alone["server_cpu_us_per_operation"])
    return {f"{key}.more_mb": during["more_mb"],
            f"{key}.kept": during["rate"] / alone["operations_per_second"],
            f"{key}.p50_times": during["p50_us"] / alone["latency_p50_us"],
            f"{key}.seconds": during["seconds"], "other_cores": alone["other_cores"]}


def one_million(server):
    return compaction("compact_one", server, 1_000_000)


def ten_million(server):
    """Vigil alone: etcd needs five minutes to get there."""
    return compaction("compact_ten", server, 10_000_000) if server.name == "vigil" else {}


def ten_million_of_peer(server):
    return compaction("compact_ten", server, 10_000_000) if server.name != "vigil" else {}
