"""The watch tier in front of a kube-apiserver, for tests: vigil serve --upstream-kubeconfig."""
import contextlib
import http.client
import json
import pathlib
import ssl
import threading

from certs import Authority
from server import WAIT_SECONDS, Server, free_port


def write_kubeconfig(path, server, **user):
    """A kubeconfig of one user for the server, whose certificate is not checked."""
    cluster = {"server": server, **({"insecure-skip-tls-verify": True} if server.startswith("https") else {})}
    path.write_text(json.dumps({
        "apiVersion": "v1", "kind": "Config", "current-context": "c", "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": user}], "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}]}))
    return path


class Tier(Server):
    """A tier with its own kubeconfig, on https, and with authorities for the certificates of clients."""

    def __init__(self, root, upstream, token="the-token", args=(), name="tier"):
        root = pathlib.Path(root, name)
        root.mkdir(exist_ok=True)
        super().__init__(str(root / "data"), args=args)
        self.url = f"https://127.0.0.1:{self.port}"
        self.metrics_port = free_port()
        self.kubeconfig = write_kubeconfig(root / "kubeconfig", upstream, token=token)
        self.authority = Authority(root / "authority")
        self.served = self.authority.sign("server")

    def command(self):
        return self.wrap + [
            self.binary, "serve", "--data-dir", self.directory, f"--upstream-kubeconfig={self.kubeconfig}",
            f"--listen-kube-urls={self.url}", f"--listen-metrics-urls=http://127.0.0.1:{self.metrics_port}",
            f"--cert-file={self.served.cert}", f"--key-file={self.served.key}", f"--kube-client-ca-file={self.authority.cert}",
            *self.args]

    def own_page(self, path):
        """A page of the metrics URL: its status and its text."""
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.metrics_port, timeout=WAIT_SECONDS)) as connection:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()

    def metric(self, name):
        """The sum of the rows of a metric."""
        rows = [line.rsplit(" ", 1) for line in self.own_page("/metrics")[1].splitlines()
                if line.startswith((f"{name} ", f"{name}{{"))]
        assert rows, f"no metric {name}"
        return sum(float(value) for _, value in rows)


class Caller:
    """A user of a kube-apiserver, or of a tier in front of it."""

    def __init__(self, port, token=None, identity=None):
        self.port, self.token, self.identity = port, token, identity

    def connect(self):
        context = ssl._create_unverified_context()
        if self.identity:
            context.load_cert_chain(self.identity.cert, self.identity.key)
        return http.client.HTTPSConnection("127.0.0.1", self.port, timeout=WAIT_SECONDS, context=context)

    def request(self, connection, method, path, body=None, headers=()):
        headers = dict(headers)
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        if body is not None:
            headers.setdefault("Content-Type", "application/json")
            body = body if isinstance(body, (str, bytes)) else json.dumps(body)
        return self.send_request(connection, method, path, body, headers)

    def send_request(self, connection, method, path, body, headers):
        connection.request(method, path, body, headers)
        return connection.getresponse()

    def fetch(self, method, path, body=None, headers=()):
        """The status of the answer, the type of its body, and the body."""
        with contextlib.closing(self.connect()) as connection:
            answer = self.request(connection, method, path, body, headers)
            return answer.status, answer.headers["Content-Type"] or "", answer.read()

    def send(self, method, path, body=None, headers=()):
        """The status of the answer and its body, as an object if it is JSON."""
        status, kind, text = self.fetch(method, path, body, headers)
        return status, json.loads(text) if kind.startswith("application/json") else text.decode()

    def get(self, path, **options):
        return self.send("GET", path, **options)

    def watch(self, path, headers=()):
        return Events(self, path, headers)


class Events:
    """A running watch, and the events that have come."""

    def __init__(self, caller, path, headers=()):
        self.connection = caller.connect()
        self.answer = caller.request(self.connection, "GET", path, headers=headers)
        self.status = self.answer.status
        self.changed = threading.Condition()
        self.events, self.ended = [], False
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        with contextlib.suppress(OSError, ValueError, http.client.HTTPException, AttributeError):
            while line := self.answer.readline():
                with self.changed:
                    self.events.append(json.loads(line))
                    self.changed.notify_all()
        with self.changed:
            self.ended = True
            self.changed.notify_all()

    def names(self, kind=None):
        """Of what has arrived: the type and the name, without bookmarks."""
        return [(e["type"], e["object"]["metadata"]["name"]) for e in self.events
                if e["type"] != "BOOKMARK" and kind in (None, e["type"])]

    def wait(self, condition):
        """Waits until condition(self) is true, and returns its result."""
        with self.changed:
            if not self.changed.wait_for(lambda: condition(self) or self.ended, WAIT_SECONDS) or not condition(self):
                raise AssertionError(f"{'the watch ended' if self.ended else 'timeout'}; events: {self.events}")
            return condition(self)

    def wait_initial(self):
        """Waits for the bookmark after the initial events."""
        return self.wait(lambda w: any("k8s.io/initial-events-end" in e["object"]["metadata"].get("annotations", {})
                                       for e in w.events if e["type"] == "BOOKMARK"))

    def wait_end(self):
        with self.changed:
            assert self.changed.wait_for(lambda: self.ended, WAIT_SECONDS), self.events

    def close(self):
        with contextlib.suppress(OSError):
            if self.connection.sock:
                self.connection.sock.shutdown(2)
        self.reader.join(WAIT_SECONDS)
        self.connection.close()
