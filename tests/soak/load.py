"""The clients of a soak, each a step that is repeated on a thread of its own. A step may fail while the server is restarted;
every other failure ends the run."""
import base64
import collections
import http.client
import itertools
import json
import pathlib
import random
import socket
import ssl
import subprocess
import threading

CALL_SECONDS = 60
KEYS = 2000
PODS, NODES = 200, 10
MAPS = 50  # config maps that exist at a time
LEASES = 40  # that one step grants
PLANTED_CONNECTIONS, PLANTED_VALUES = 50, 60  # that a planted fault adds in a step
PLANTED_MAX = 15_000


def text64(text):
    return base64.b64encode(text.encode()).decode()


class Target:
    """The server as clients see it. It is down from before a restart until it serves again."""

    def __init__(self, server, vigil, tls_port, authority):
        self.server, self.vigil, self.tls_port, self.authority = server, vigil, tls_port, authority
        self.generator = str(pathlib.Path(vigil).with_name("vigil-bench"))
        self.counts = collections.Counter()
        self.lock = threading.Lock()
        self.starts = 0
        self.up = threading.Event()
        self.up.set()

    def count(self, what, number=1):
        with self.lock:
            self.counts[what] += number

    def call(self, path, message):
        """One call of the JSON gateway."""
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=CALL_SECONDS)
        try:
            connection.request("POST", f"/v3/{path}", json.dumps(message))
            answer = connection.getresponse()
            body = answer.read()
        finally:
            connection.close()
        if answer.status != 200:
            raise RuntimeError(f"{path}: {answer.status} {body[:300]}")
        return json.loads(body)

    def kube(self, method, path, body=None, kind="application/json"):
        connection = http.client.HTTPConnection("127.0.0.1", self.server.kube_port, timeout=CALL_SECONDS)
        try:
            connection.request(method, path, body and json.dumps(body), {"Content-Type": kind})
            answer = connection.getresponse()
            text = answer.read()
        finally:
            connection.close()
        if answer.status >= 300:
            raise RuntimeError(f"{method} {path}: {answer.status} {text[:300]}")
        return text

    def bench(self, command, *flags, tls=False):
        """The load generator for a short time: what it found."""
        port = self.server.kube_port if command.startswith("kube-") else self.tls_port if tls else self.server.port
        words = [self.generator, command, "--endpoint", f"https://127.0.0.1:{port}" if tls else f"127.0.0.1:{port}", "--json",
                 *(("--cacert", self.authority.cert) if tls else ()), *map(str, flags)]
        done = subprocess.run(words, capture_output=True, text=True, timeout=CALL_SECONDS)
        if done.returncode:
            raise RuntimeError(f"vigil-bench {command}: {done.stderr.strip()}")
        return json.loads(done.stdout)


class Worker(threading.Thread):
    """Repeats a step until it is stopped."""

    def __init__(self, target, step, failures, pause=0.0):
        super().__init__(daemon=True)
        self.target, self.step, self.failures, self.pause = target, step, failures, pause
        self.over = threading.Event()

    def run(self):
        while not self.over.wait(self.pause):
            if not self.target.up.wait(1):
                continue
            starts = self.target.starts
            try:
                self.step()
            except Exception as error:  # whatever a client may meet
                if self.target.up.is_set() and self.target.starts == starts:
                    self.failures.append(f"{self.step.__qualname__}: {error!r}")
                    return
                self.target.count("steps that a restart interrupted")


class Clients:
    """All of them. `record(name, value)` takes latencies in milliseconds."""

    def __init__(self, target, record, cycle_seconds):
        self.target, self.record = target, record
        self.time = ("--warmup", "0s", "--duration", f"{cycle_seconds}s")  # of watches that come and go
        self.rounds = itertools.count()
        self.made = collections.deque()
        self.numbers = itertools.count()

    def steps(self):
        """Steps with the pause after each, in seconds."""
        return [(self.watch, 0.2), (self.kube_watch, 0.2), (self.calls, 0.2), (self.leases, 0.5), (self.objects, 0.05),
                (self.leave, 0.2)]

    def watch(self):
        """Watchers come, see puts, and go: 20 connections with 5 streams of 10 watchers, and every second time over TLS."""
        tls = next(self.rounds) % 2 == 1
        found = self.target.bench("watch", "--connections", 20, "--streams", 5, "--watchers", 10, "--watch-keys", "own",
                                  "--key-space", 1000, "--rate", 300, *self.time, tls=tls)
        self.target.count("watchers over etcd's API", 1000)
        self.target.count("events over etcd's API", found["operations"])
        self.target.count("puts", found["puts"])
        if not tls:
            for kind in ("put", "event"):
                self.record(f"{kind}, p50", found[f"{kind}_latency_p50_us"] / 1e3)
                self.record(f"{kind}, p99", found[f"{kind}_latency_p99_us"] / 1e3)

    def kube_watch(self):
        """Watches of the pods of a node, and of clients that stop reading, while pods are changed."""
        found = self.target.bench("kube-watch", "--connections", 10, "--streams", 5, "--nodes", NODES, "--key-space", PODS,
                                  "--value-size", 2048, "--rate", 50, "--stopped", 5, *self.time)
        self.target.count("watches over the Kubernetes API", 55)
        self.target.count("events over the Kubernetes API", found["operations"])
        self.target.count("changes of pods", found["changes"])
        for kind in ("p50", "p99"):
            self.record(f"Kubernetes change, {kind}", found[f"change_latency_{kind}_us"] / 1e3)
        self.record("Kubernetes event, p99", found["event_latency_p99_us"] / 1e3)

    def calls(self):
        """Puts, gets and lists on connections that live shortly, over TLS, too."""
        tls = random.random() < 0.5
        for command, total in (("put", 500), ("get", 500), ("list", 5)):
            found = self.target.bench(command, "--connections", 5, "--pipeline", 2, "--key-space", KEYS, "--prefix", "calls/",
                                      "--warmup", "0s", "--total", total, *(("--prepare",) if command != "put" else ()), tls=tls)
            self.target.count({"put": "puts", "get": "gets", "list": "lists"}[command], found["operations"])

    def leases(self):
        """Of each ten leases one is revoked, two are renewed once, and all others expire with their keys."""
        for number in range(LEASES):
            lease = self.target.call("lease/grant", {"TTL": random.randint(2, 8)})["ID"]
            key = f"leased/{next(self.numbers) % 10_000}"
            self.target.call("kv/put", {"key": text64(key), "value": text64("x" * 100), "lease": lease})
            if number % 10 == 0:
                self.target.call("lease/revoke", {"ID": lease})
            elif number % 10 < 3:
                self.target.call("lease/keepalive", {"ID": lease})
        self.target.count("leases", LEASES)

    def objects(self):
        """Config maps are created, changed, listed and deleted; MAPS of them exist at a time."""
        name = f"soak-{next(self.numbers)}-{self.target.starts}"
        path = "/api/v1/namespaces/default/configmaps"
        self.made.append(name)
        self.target.kube("POST", path, {"metadata": {"name": name}, "data": {"value": "v" * 500}})
        self.target.kube("PATCH", f"{path}/{name}", {"data": {"value": "w" * 500}}, "application/merge-patch+json")
        self.target.kube("GET", f"{path}?limit=20")
        while len(self.made) > MAPS:
            self.delete(path, self.made.popleft())
        self.target.count("Kubernetes objects created")

    def delete(self, path, name):
        """An object whose creation a restart interrupted may not exist."""
        try:
            self.target.kube("DELETE", f"{path}/{name}")
        except RuntimeError as error:
            if ": 404 " not in str(error):
                raise

    def leave(self):
        """A client that leaves in the middle: without reading its watch, without its request, or without the handshake."""
        request = b"GET /api/v1/pods?watch=1 HTTP/1.1\r\nHost: soak\r\n\r\n"
        with socket.create_connection(("127.0.0.1", self.target.server.kube_port), timeout=CALL_SECONDS) as connection:
            connection.sendall(random.choice((request, request[:30])))
        message = b'{"create_request":{"key":"YQ==","range_end":"eg=="}}'
        with socket.create_connection(("127.0.0.1", self.target.server.port), timeout=CALL_SECONDS) as connection:
            connection.sendall(b"POST /v3/watch HTTP/1.1\r\nHost: soak\r\nContent-Length: %d\r\n\r\n" % len(message) + message)
        with socket.create_connection(("127.0.0.1", self.target.tls_port), timeout=CALL_SECONDS) as connection:
            if random.random() < 0.5:
                context = ssl.create_default_context(cafile=self.target.authority.cert)
                context.wrap_socket(connection, server_hostname="localhost").close()
        self.target.count("clients that left in the middle", 3)


class Planted:
    """Faults for the test of the soak itself: clients that take more and more. To what samples the server, they look like a
    server that never gives back."""

    def __init__(self, target):
        self.target, self.held, self.wanted = target, [], 0

    def connections(self):
        """Opens connections without end, and again those that a restart has closed."""
        self.wanted = min(self.wanted + PLANTED_CONNECTIONS, PLANTED_MAX)
        if self.held and self.held[0][0] != self.target.starts:
            for _, connection in self.held:
                connection.close()
            self.held = []
        while len(self.held) < self.wanted:
            connection = socket.create_connection(("127.0.0.1", self.target.server.port), timeout=CALL_SECONDS)
            self.held.append((self.target.starts, connection))

    def keys(self):
        """Puts keys that no client deletes."""
        self.wanted += 1
        self.target.bench("load", "--prefix", f"planted/{self.wanted}/", "--key-space", PLANTED_VALUES, "--value-size", 60_000)
