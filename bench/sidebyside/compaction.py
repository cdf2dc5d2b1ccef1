"""A compaction of all history while one client puts: what it takes, and what it leaves the client."""
import json
import statistics
import threading
import time
import urllib.request

BURSTS_MAX = 120  # of a second each
POST_SECONDS = 600


class Memory:
    """Looks at a server's anonymous memory again and again until it is closed."""

    def __init__(self, server):
        self.server, self.over = server, threading.Event()
        self.before_mb = self.most_mb = server.anonymous_mb()
        self.thread = threading.Thread(target=self.look)

    def look(self):
        while not self.over.wait(0.02):
            self.most_mb = max(self.most_mb, self.server.anonymous_mb())

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()


def post(server, path, message):
    request = urllib.request.Request(f"http://{server.endpoint}{path}", json.dumps(message).encode())
    with urllib.request.urlopen(request, timeout=POST_SECONDS) as answer:
        return json.load(answer)


def compact(server):
    """To the newest revision. Returns when the index has been trimmed."""
    newest = post(server, "/v3/kv/range", {"key": "AA=="})["header"]["revision"]
    post(server, "/v3/kv/compaction", {"revision": newest, "physical": True})


def bursts_until_over(burst, cost_us, call):
    """One after the other, until the call has ended and a put costs the server what it did before."""
    found = []
    while len(found) < BURSTS_MAX:
        found.append(burst())
        if not call.is_alive() and found[-1]["server_cpu_us_per_operation"] < 1.3 * cost_us:
            break
    return found[:-1] or found


def measure(server, burst, cost_us):
    """burst() puts for a second; cost_us is what a put costs the server otherwise."""
    call = threading.Thread(target=compact, args=(server,))
    with Memory(server) as memory:
        began = time.monotonic()
        call.start()
        found = bursts_until_over(burst, cost_us, call)
        seconds = time.monotonic() - began
        call.join()
    return {"more_mb": memory.most_mb - memory.before_mb, "seconds": seconds,
            "rate": statistics.mean(b["operations_per_second"] for b in found),
            "p50_us": statistics.median(b["latency_p50_us"] for b in found)}
