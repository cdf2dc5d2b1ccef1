"""Calls the Kubernetes API of a server under test over plain HTTP, and puts objects into its store through etcd's API."""
import base64
import http.client
import json
import os
import subprocess
import threading
import urllib.parse

from server import WAIT_SECONDS, Server, free_port

NAMESPACES = 4


class KubeServer(Server):
    def __init__(self, directory, args=(), **more):
        self.kube_port = more.pop("kube_port", None) or free_port()
        self.kube_url = f"http://127.0.0.1:{self.kube_port}"
        self.namespace = "default"  # where put() creates objects
        self.store = None
        self.watches = []
        # A small quarantine, so that freed memory is soon reused and does not count as held.
        asan = os.environ.get("ASAN_OPTIONS", "") + ":quarantine_size_mb=1:malloc_context_size=2"
        super().__init__(directory, ["--listen-kube-urls", self.kube_url, *args],
                         env={"ASAN_OPTIONS": asan}, **more)

    def start(self):
        """Returns when the namespaces that the first request creates exist, after which the server writes nothing by itself."""
        self.store = None
        super().start()
        assert len(self.list("/api/v1/namespaces")["items"]) >= NAMESPACES
        return self

    @property
    def kubeconfig(self):
        return f"{self.directory}/kubeconfig"

    # -- the store --

    def call(self, path, **request):
        if not self.store:
            self.store = http.client.HTTPConnection("127.0.0.1", self.port, timeout=WAIT_SECONDS)
        self.store.request("POST", path, json.dumps(request))
        response = self.store.getresponse()
        answer = json.loads(response.read())
        assert response.status == 200, answer
        return answer

    def put_raw(self, key, value, lease=0):
        answer = self.call("/v3/kv/put", key=text64(key), value=text64(value), lease=lease)
        return int(answer["header"]["revision"])

    def put(self, prefix, name, namespace=None, **fields):
        namespace = namespace or self.namespace
        return self.put_raw(key_of(prefix, name, namespace), json.dumps(thing(name, namespace, **fields)))

    def put_many(self, prefix, things, at_once=100):
        """Puts {name: fields} in transactions, so that many objects share one sync. Returns {name: revision}."""
        todo, revisions = list(things.items()), {}
        while todo:
            some, todo = todo[:at_once], todo[at_once:]
            puts = [{"requestPut": {"key": text64(key_of(prefix, name, self.namespace)),
                                    "value": text64(json.dumps(thing(name, self.namespace, **fields)))}}
                    for name, fields in some]
            revision = int(self.call("/v3/kv/txn", success=puts)["header"]["revision"])
            revisions.update((name, revision) for name, _ in some)
        return revisions

    def delete(self, prefix, name):
        answer = self.call("/v3/kv/deleterange", key=text64(key_of(prefix, name, self.namespace)))
        return int(answer["header"]["revision"])

    def compact(self, revision):
        self.call("/v3/kv/compaction", revision=revision)

    # -- the Kubernetes API --

    def get(self, path, headers=None, host=None, **query):
        """Returns code, headers and body; a JSON body is parsed."""
        connection = http.client.HTTPConnection("127.0.0.1", self.kube_port, timeout=WAIT_SECONDS)
        fields = dict(headers or {})
        if host:
            fields["Host"] = host
        connection.request("GET", path + ("?" + urllib.parse.urlencode(query) if query else ""), headers=fields)
        response = connection.getresponse()
        body = response.read()
        connection.close()
        if "json" in response.getheader("Content-Type", ""):
            body = json.loads(body)
        return response.status, response.headers, body

    def list(self, path, **query):
        code, _, body = self.get(path, **query)
        assert code == 200, body
        return body

    def close(self):
        """Closes all connections that the test opened."""
        for watch in self.watches:
            watch.close()
        self.watches = []
        if self.store:
            self.store.close()
        self.store = None

    def watch(self, path, **query):
        return Watch(self, path, query)


def text64(text):
    return base64.b64encode(text if isinstance(text, bytes) else text.encode()).decode()


def certificate_request(name):
    """The field spec.request of a CertificateSigningRequest."""
    made = subprocess.run(["openssl", "req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                           "-keyout", "/dev/null", "-subj", f"/CN={name}"], check=True, capture_output=True)
    return base64.b64encode(made.stdout).decode()


def key_of(prefix, name, namespace):
    return f"/registry/{prefix}/{namespace}/{name}" if namespace else f"/registry/{prefix}/{name}"


def thing(name, namespace="default", kind="Pod", api="v1", labels=None, **fields):
    metadata = {"name": name, "creationTimestamp": "2026-11-15T06:00:00Z"}
    if namespace:
        metadata["namespace"] = namespace
    if labels:
        metadata["labels"] = labels
    return {"kind": kind, "apiVersion": api, "metadata": metadata, **fields}


class Watch:
    """An open watch: its events in order, until the server ends it."""

    def __init__(self, server, path, query):
        self.connection = http.client.HTTPConnection("127.0.0.1", server.kube_port, timeout=WAIT_SECONDS)
        headers = query.pop("headers", {})
        query.setdefault("timeoutSeconds", 600)  # longer than any test takes on a busy machine
        self.connection.request("GET", f"{path}?" + urllib.parse.urlencode({"watch": 1, **query}), headers=headers)
        self.response = self.connection.getresponse()
        server.watches.append(self)

    def next(self):
        """Returns the next event, or None if the watch has ended. It must not end in the middle of an event."""
        line = self.response.readline()
        return json.loads(line) if line else None

    def take(self, count):
        return [self.next() for _ in range(count)]

    def rest(self):
        return list(iter(self.next, None))

    def close(self):
        self.response.close()
        self.connection.close()


def answers_of(path, for_vigil):
    """Reads a recorded table as {case: answer}. A line has "… | Vigil: …" where Vigil's answer differs from Kubernetes'."""
    rows = {}
    for line in path.read_text().splitlines():
        case, _, answer = line.partition(" -> ")
        theirs, differs, ours = answer.partition(" | Vigil: ")
        rows[case] = ours if differs and for_vigil else theirs
    return rows


def names(answer):
    return [item["metadata"]["name"] for item in answer["items"]]


def summary(event):
    """An event in short: its type, and the name and version of its object."""
    metadata = event["object"]["metadata"]
    return event["type"], metadata.get("name"), int(metadata["resourceVersion"])


def in_background(function):
    thread = threading.Thread(target=function, daemon=True)
    thread.start()
    return thread
