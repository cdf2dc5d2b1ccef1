"""A webhook server for tests, over HTTPS: it records every request, and what it answers is chosen by the path. Behaviours are
functions of a call; most of this file is a table of them, good and bad."""
import base64
import contextlib
import json
import socket
import ssl
import threading
import urllib.parse

from certs import Authority

BACKLOG = 4096
WAIT_SECONDS = 60
CHUNK = 1 << 16
MAX_BODY = 64 << 20
CODES = {200: "OK", 301: "Moved Permanently", 302: "Found", 307: "Temporary Redirect", 400: "Bad Request", 404: "Not Found",
         429: "Too Many Requests", 500: "Internal Server Error", 503: "Service Unavailable"}


class Gone(Exception):
    """The other side has closed the connection, or the server stops."""


class Call:
    """A request that has arrived. A behaviour answers it with one of the methods, or does not answer."""

    def __init__(self, server, connection, head, body):
        self.server, self.connection, self.body = server, connection, body
        first, *lines = head.split("\r\n")
        self.method, self.target, self.protocol = first.split(" ", 2)
        self.fields = [tuple(line.split(": ", 1)) for line in lines]
        self.headers = {name.lower(): value for name, value in self.fields}
        self.path, _, query = self.target.partition("?")
        self.query = dict(urllib.parse.parse_qsl(query, keep_blank_values=True))
        self.certificate = connection.getpeercert() if isinstance(connection, ssl.SSLSocket) else None
        try:
            self.review = json.loads(body)
        except ValueError:
            self.review = {}
        self.request = self.review.get("request", {})
        self.object = self.request.get("object")
        self.name = self.request.get("name")

    # -- answers --

    def raw(self, data):
        try:
            self.connection.sendall(data)
        except OSError:
            raise Gone from None

    def head(self, code, length, content_type="application/json", fields=()):
        rows = [f"HTTP/1.1 {code} {CODES.get(code, 'Code')}", *(f"{name}: {value}" for name, value in fields)]
        if content_type is not None:
            rows.append(f"Content-Type: {content_type}")
        if length is not None:
            rows.append(f"Content-Length: {length}")
        return ("\r\n".join(rows) + "\r\n\r\n").encode()

    def reply(self, body, code=200, content_type="application/json", fields=()):
        data = body if isinstance(body, bytes) else body.encode() if isinstance(body, str) else json.dumps(body).encode()
        self.raw(self.head(code, len(data), content_type, fields) + data)

    def document(self, response=None, **fields):
        """A review of the kind and version that has come."""
        made = {"kind": self.review.get("kind"), "apiVersion": self.review.get("apiVersion"), **fields}
        if response is not None:
            made["response"] = response
        return made

    def respond(self, **response):
        self.reply(self.document({"uid": self.request.get("uid"), **response}))

    def close(self):
        """Ends the connection at once."""
        raise Gone


class Webhooks:
    """The server. Several servers of one test may share an authority."""

    def __init__(self, directory, name="webhook", names="DNS:localhost,IP:127.0.0.1", days=30, port=0, clients=False, authority=None,
                 host="127.0.0.1", trusted=None):
        self.authority = authority or Authority(directory)
        self.trusted = trusted or self.authority  # the authority that clients trust
        self.identity = self.authority.sign(name, names=names, days=days)
        self.host, self.behaviours, self.calls, self.connections = host, {}, [], set()
        self.changed = threading.Condition()
        self.stopped = threading.Event()
        self.waiting = self.waiting_most = 0
        self.handshakes_failed = 0
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(self.identity.cert, self.identity.key)
        if clients:
            self.context.verify_mode = ssl.CERT_OPTIONAL
            self.context.load_verify_locations(self.authority.cert)
        self.listener = socket.create_server((host, port), backlog=BACKLOG)
        self.port = self.listener.getsockname()[1]
        self.accepting = threading.Thread(target=self.accept, daemon=True)
        self.accepting.start()

    def url(self, path="/"):
        return f"https://{self.host}:{self.port}{path}"

    @property
    def bundle(self):
        with open(self.trusted.cert, "rb") as file:
            return base64.b64encode(file.read()).decode()

    def client_config(self, path="/", **more):
        return {"url": self.url(path), "caBundle": self.bundle, **more}

    def on(self, path, behaviour):
        """Chooses what is answered at the path; returns the clientConfig of a webhook there."""
        self.behaviours[path] = behaviour
        return self.client_config(path)

    def of(self, path):
        """The calls at the path so far."""
        with self.changed:
            return [call for call in self.calls if call.path == path]

    def clear(self):
        with self.changed:
            self.calls.clear()

    def wait_until(self, condition, what="the webhook was not called as expected"):
        """Waits until condition() is true, which is looked at whenever a call arrives or ends."""
        with self.changed:
            if not self.changed.wait_for(condition, WAIT_SECONDS):
                raise AssertionError(f"{what}: {len(self.calls)} calls, {self.waiting} wait")

    def wait_for(self, path, count=1):
        self.wait_until(lambda: sum(call.path == path for call in self.calls) >= count, f"{path} was not called {count} times")
        return self.of(path)

    def stop(self):
        self.stopped.set()
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.accepting.join()
        with self.changed:
            connections = list(self.connections)
        for connection in connections:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    # -- connections --

    def accept(self):
        while True:
            try:
                plain, _ = self.listener.accept()
            except OSError:
                return
            with self.changed:
                self.connections.add(plain)
            threading.Thread(target=self.serve, args=(plain,), daemon=True).start()

    def serve(self, plain):
        connection = None
        try:
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection = self.context.wrap_socket(plain, server_side=True)
            with self.changed:
                self.connections.discard(plain)
                self.connections.add(connection)
            stream = connection.makefile("rb")
            while self.one(connection, stream):
                pass
        except (OSError, Gone, ValueError):
            if connection is None:
                with self.changed:
                    self.handshakes_failed += 1
                    self.changed.notify_all()
        finally:
            with self.changed:
                self.connections.discard(connection or plain)
            (connection or plain).close()

    def one(self, connection, stream):
        """Reads and answers a request; returns whether another may follow."""
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            line = stream.readline(CHUNK)
            if not line:
                return False
            head += line
        text = head[:-4].decode("latin-1")
        length = next((int(line.split(":")[1]) for line in text.split("\r\n") if line.lower().startswith("content-length:")), 0)
        if length > MAX_BODY:
            raise ValueError("large body")
        call = Call(self, connection, text, stream.read(length))
        with self.changed:
            self.calls.append(call)
            self.waiting += 1
            self.waiting_most = max(self.waiting, self.waiting_most)
            self.changed.notify_all()
        try:
            self.behaviours.get(call.path, missing)(call)
        finally:
            with self.changed:
                self.waiting -= 1
                self.changed.notify_all()
        return not self.stopped.is_set()


# -- good behaviours --


def missing(call):
    call.reply("404 page not found\n", 404, "text/plain; charset=utf-8")


def allow(call):
    call.respond(allowed=True)


def answer(**response):
    """Members of the response as they stand."""
    return lambda call: call.respond(**response)


def deny(message=None, code=None, reason=None, **more):
    status = {name: value for name, value in (("message", message), ("code", code), ("reason", reason)) if value is not None}
    return answer(allowed=False, **({"status": {**status, **more}} if status or more else {}))


def encoded(operations):
    return base64.b64encode((operations if isinstance(operations, str) else json.dumps(operations)).encode()).decode()


def patch(*operations, **more):
    """Operations of a JSON patch, or functions of the call that return one."""
    def behave(call):
        made = [operation(call) if callable(operation) else operation for operation in operations]
        call.respond(allowed=True, patch=encoded(made), patchType="JSONPatch", **more)
    return behave


def patch_text(text):
    """A patch that need not be JSON."""
    return answer(allowed=True, patch=encoded(text), patchType="JSONPatch")


def add(path, value, op="add"):
    return {"op": op, "path": path, "value": value}


def label(name, value):
    """Adds a label to an object that has some."""
    return patch(add("/metadata/labels/" + name.replace("~", "~0").replace("/", "~1"), value))


def once(first, then=allow):
    """The first call is answered differently from those after it."""
    return in_turn(first, then)


def in_turn(*behaviours):
    """Each call with the next behaviour; the last one stays."""
    rest, lock = list(behaviours), threading.Lock()

    def behave(call):
        with lock:
            current = rest.pop(0) if len(rest) > 1 else rest[0]
        current(call)
    return behave


def when(condition, then, otherwise=allow):
    return lambda call: (then if condition(call) else otherwise)(call)


# -- bad behaviours --


def slow(event, then=allow):
    """Answers after the event."""
    def behave(call):
        while not event.wait(1):  # a thousand threads wait
            if call.server.stopped.is_set():
                raise Gone
        then(call)
    return behave


def hang(call):
    """Does not answer while the server runs and the other side waits."""
    call.connection.settimeout(1)
    while not call.server.stopped.is_set():
        try:
            if call.connection.recv(1) == b"":
                raise Gone
        except TimeoutError:
            continue
    raise Gone


def cut(call):
    """Closes the connection instead of an answer."""
    call.close()


def cut_head(call):
    call.raw(b"HTTP/1.1 200 OK\r\nContent-Type: appl")
    call.close()


def cut_body(call):
    data = json.dumps(call.document({"uid": call.request.get("uid"), "allowed": True})).encode()
    call.raw(call.head(200, len(data)) + data[:len(data) // 2])
    call.close()


def endless(call):
    """A body without an end, and without a length."""
    call.raw(call.head(200, None, fields=[("Transfer-Encoding", "chunked")]))
    piece = b" " * CHUNK
    while not call.server.stopped.is_set():
        call.raw(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
    raise Gone


def endless_head(call):
    call.raw(b"HTTP/1.1 200 OK\r\n")
    while not call.server.stopped.is_set():
        call.raw(b"X-Field: " + b"x" * 1000 + b"\r\n")
    raise Gone


def drip(call):
    """A byte at a time, each of which is progress, and no end."""
    call.raw(call.head(200, 1 << 20))
    while not call.server.stopped.wait(0.05):
        call.raw(b" ")
    raise Gone


def huge(size):
    """A good answer with this many bytes around it."""
    def behave(call):
        call.reply(json.dumps(call.document({"uid": call.request.get("uid"), "allowed": True})).encode() + b" " * size)
    return behave


def padded(size):
    """A good answer with a message of this many bytes."""
    return lambda call: call.respond(allowed=True, status={"message": "x" * size})


def typed(content_type):
    return lambda call: call.reply(call.document({"uid": call.request.get("uid"), "allowed": True}), content_type=content_type)


def document(**fields):
    """A good response in a review with these fields, such as another kind."""
    return lambda call: call.reply({**call.document({"uid": call.request.get("uid"), "allowed": True}), **fields})


def without(*names):
    """A review without these fields, such as its response."""
    def behave(call):
        made = call.document({"uid": call.request.get("uid"), "allowed": True})
        call.reply({name: value for name, value in made.items() if name not in names})
    return behave


def text(body, code=200, content_type="application/json", fields=()):
    return lambda call: call.reply(body, code, content_type, fields)


def raw(data):
    """These bytes, and the connection ends."""
    def behave(call):
        call.raw(data)
        call.close()
    return behave


def deep(depth):
    """JSON that is nested so deep, in an unknown member."""
    def behave(call):
        good = json.dumps(call.document({"uid": call.request.get("uid"), "allowed": True}))
        call.reply(good[:-1] + ', "deep": ' + "[" * depth + "]" * depth + "}")
    return behave


def status(code, message=None, reason=None, retry_after=None, **details):
    """An error as an API server sends it."""
    body = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": code, **details}
    body.update({name: value for name, value in (("message", message), ("reason", reason)) if value is not None})
    return text(json.dumps(body), code, fields=[("Retry-After", retry_after)] if retry_after is not None else [])


def busy(code=429, retry_after="1"):
    return text("busy", code, "text/plain", [("Retry-After", retry_after)] if retry_after is not None else [])


def redirect(code, where):
    return text("", code, "text/plain", [("Location", where)])


def echo_length(call):
    """Says one length, and sends more: the next answer on the connection begins in the middle of this one."""
    data = json.dumps(call.document({"uid": call.request.get("uid"), "allowed": True})).encode()
    call.raw(call.head(200, len(data)) + data + b'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}')


def calls(function, then=allow):
    """Calls a function before the answer, such as one that calls the API server back."""
    def behave(call):
        function(call)
        then(call)
    return behave
