"""Clients of a watch tier that do what client-go does and record what they have seen, writers, and the recorder of what has
happened (tier_checker.py)."""
import base64
import collections
import contextlib
import http.client
import json
import random
import threading

from tier_checker import Violation, check_changes, check_state, key_of, version_of

# What a server may say when what is behind it is away.
EXCUSED = (410, 429, 500, 502, 503, 504)
BROKEN = (OSError, http.client.HTTPException, ValueError, AttributeError)
PREFIX = "/registry/configmaps/"
FOREIGN = ("kube-system", "kube-public", "kube-node-lease", "default")


def b64(text):
    return base64.b64encode(text.encode()).decode()


class Recorder:
    """Follows the config maps in the etcd behind the kube-apiservers, which store them as JSON."""

    def __init__(self, port, history):
        self.history, self.port = history, port
        self.reached, self.failed = 0, None
        self.changed = threading.Condition()
        self.connection = http.client.HTTPConnection("127.0.0.1", port)
        self.connection.request("POST", "/v3/watch", json.dumps({"create_request": {
            "key": b64(PREFIX), "range_end": b64(PREFIX[:-1] + "0"), "start_revision": "1"}}))
        self.answer = self.connection.getresponse()
        assert self.answer.status == 200, self.answer.status
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        try:
            while line := self.answer.readline():
                result = json.loads(line)["result"]
                assert not result.get("canceled"), result
                for event in result.get("events", ()):
                    self.add(event["kv"], event.get("type") == "DELETE")
        except Exception as error:  # tells the test, which waits
            with self.changed:
                self.failed = error
                self.changed.notify_all()

    def add(self, kv, deleted):
        key = tuple(base64.b64decode(kv["key"]).decode().removeprefix(PREFIX).split("/"))
        stored = None if deleted else json.loads(base64.b64decode(kv["value"]))
        with self.changed:
            self.history.add(int(kv["mod_revision"]), key, stored)
            self.reached = int(kv["mod_revision"])
            self.changed.notify_all()

    def wait(self, revision, seconds):
        with self.changed:
            assert self.changed.wait_for(lambda: self.reached >= revision or self.failed, seconds), (self.reached, revision)
            assert not self.failed, self.failed

    def close(self):
        with contextlib.suppress(OSError):
            self.connection.sock.shutdown(2)
        self.thread.join(30)


class Run:
    """What the threads of a run share."""

    def __init__(self, history):
        self.history = history
        self.lock = threading.Lock()
        self.acknowledged = []  # the revision of a write; of a deletion the key and the object's identity
        self.stop_writers, self.stop = threading.Event(), threading.Event()
        self.operations = 0
        self.counts = collections.Counter()
        self.checks = []  # functions that raise when the history is complete
        self.fatal = []

    def count(self, what):
        with self.lock:
            self.counts[what] += 1

    def acknowledge(self, what):
        with self.lock:
            self.acknowledged.append(what)

    def begin(self):
        """What is acknowledged now; floor() makes a revision of it."""
        with self.lock:
            return len(self.acknowledged)

    def operation(self):
        with self.lock:
            self.operations += 1
            return str(self.operations)

    def settle(self):
        """The revisions of what was acknowledged, when the history is complete."""
        deleted, made, floors, done = {}, {}, [0], set()
        for change in self.history.changes:
            if change.after is None:
                deleted[change.key, change.before["metadata"]["uid"]] = change.revision
            elif operation := change.after.get("data", {}).get("operation"):
                made[change.revision] = operation
                if operation in done:
                    raise Violation(f"operation {operation} was carried out twice, again by {change.revision}")
                done.add(operation)
        for what, operation in self.acknowledged:
            if operation is None:
                revision = deleted.get(what)
            else:
                revision = what if made.get(what) == operation else None
            if revision is None:
                raise Violation(f"{what}, operation {operation}, was acknowledged but has not happened")
            floors.append(max(floors[-1], revision))
        self.floors = floors

    def floor(self, begun):
        return self.floors[begun]

    def check(self):
        self.settle()
        found = []
        for one in self.checks:
            try:
                one()
            except Violation as violation:
                found.append(str(violation))
        return found


class Actor(threading.Thread):
    def __init__(self, run, name, seed):
        super().__init__(name=name, daemon=True)
        self.shared, self.random = run, random.Random(f"{seed}/{name}")
        self.doing = "nothing yet"

    def run(self):
        try:
            self.act()
        except Exception as error:
            self.shared.fatal.append(f"{self.name}: {type(error).__name__}: {error}")

    def excuse(self, status, body, more=()):
        """Waits a little after an answer that is not a success."""
        if status not in EXCUSED + tuple(more):
            raise Violation(f"{self.doing}: {status} {body}")
        self.shared.count(f"answers {status}")
        self.shared.stop.wait(0.2)


class Writer(Actor):
    def __init__(self, run, name, seed, caller, names, pause_s):
        super().__init__(run, name, seed)
        self.caller, self.names, self.pause_s = caller, names, pause_s

    def act(self):
        while not self.shared.stop_writers.wait(self.random.random() * 2 * self.pause_s):
            self.write(self.random.choice(self.names), self.random.choice(("POST", "PUT", "PUT", "DELETE")),
                       self.random.choice("abc"))

    def write(self, key, method, group):
        """Whether it was acknowledged. The outcome of one that was not is in the history."""
        namespace, name = key
        path = f"/api/v1/namespaces/{namespace}/configmaps"
        operation = body = None
        if method != "DELETE":
            operation = self.shared.operation()
            body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": {"group": group}},
                    "data": {"operation": operation, "more": "x" * self.random.randrange(2000)}}
        self.doing = f"{method} {path} {name}"
        try:
            status, answer = self.caller.send(method, path if method == "POST" else f"{path}/{name}", body)
        except BROKEN:
            self.shared.count("broken writes")
            return False
        if status in (404, 409):
            return False
        if status not in (200, 201):
            self.excuse(status, answer)
            return False
        self.shared.count("writes")
        self.shared.acknowledge((version_of(answer), operation) if operation else ((key, answer["details"]["uid"]), None))
        return version_of(answer) if operation else True


class Reader(Actor):
    """more: what it may be answered besides, such as 403."""

    def __init__(self, run, name, seed, caller, scope, more=()):
        super().__init__(run, name, seed)
        self.caller, self.scope, self.more = caller, scope, tuple(more)

    def get(self, path, *query):
        self.doing = f"GET {path}?{'&'.join(self.scope.query() + list(query))}"
        try:
            status, body = self.caller.send("GET", self.doing.split(" ", 1)[1])
        except BROKEN:
            self.shared.count("broken reads")
            self.shared.stop.wait(0.2)
            return None
        if status == 200:
            if not isinstance(body, dict):
                raise Violation(f"{self.doing}: {body}")
            return body
        self.excuse(status, body, self.more)
        return None

    def list(self, version=None, limit=None):
        """The list's version and items, or None. None as the version: the current state."""
        query = [f"resourceVersion={version}"] if version is not None else []
        begun, items, token, versions = self.shared.begin() if version is None else 0, [], "", set()
        while True:
            body = self.get(self.scope.path(), *([f"limit={limit}"] if limit else []),
                            *([f"continue={token}"] if token else query))
            if body is None:
                return None
            items += body["items"]
            versions.add(version_of(body))
            token = body["metadata"].get("continue", "")
            if not token:
                break
        self.shared.count("current lists" if version is None else "lists")
        who = f"{self.name}: {self.doing}"
        if len(versions) != 1:
            raise Violation(f"{who}: pages of {versions}")
        found = versions.pop()
        if found < int(version or 0):
            raise Violation(f"{who}: an older list of {found}")
        self.shared.checks.append(lambda: check_state(
            self.shared.history, who, self.scope, found, items, self.shared.floor(begun)))
        return found, items

    def lines(self, answer):
        """The complete lines of the body. It ends when the answer ends or breaks."""
        rest, kind = b"", "ended"
        while True:
            try:
                piece = answer.read1(65536)
            except BROKEN:
                kind = "broke"
                break
            if not piece:
                break
            *whole, rest = (rest + piece).split(b"\n")
            yield from whole
        if rest and kind == "ended":
            raise Violation(f"{self.name}: {self.doing} ended properly in the middle of an event: {rest[-200:]}")
        self.shared.count(f"watches that {kind}")

    @contextlib.contextmanager
    def watching(self, *query):
        """The lines of a watch, or None."""
        query = ["watch=1", "allowWatchBookmarks=true", f"timeoutSeconds={self.random.randrange(4, 20)}", *query]
        self.doing = f"GET {self.scope.path()}?{'&'.join(self.scope.query() + query)}"
        with contextlib.closing(self.caller.connect()) as connection:
            try:
                answer = self.caller.request(connection, "GET", self.doing.split(" ", 1)[1])
                body = answer.read() if answer.status != 200 else None
            except BROKEN:
                self.shared.count("broken reads")
                self.shared.stop.wait(0.2)
                yield None
                return
            if answer.status != 200:
                self.excuse(answer.status, body, self.more)
                yield None
                return
            yield self.lines(answer)


class Follower(Reader):
    """An informer: a list, or a watch that begins with the state, and then watches until it has seen the last change."""

    def __init__(self, *args, start="list", **options):
        super().__init__(*args, **options)
        self.start_with = start
        self.wanted = None  # the version after which it may end
        self.seen = 0  # the highest version of an object

    def act(self):
        version = None
        while not self.shared.stop.is_set() and not (self.wanted is not None and self.seen >= self.wanted):
            if version is None:
                version = self.first()
            else:
                version = self.watch(version)

    def first(self):
        if self.start_with == "stream":
            return self.stream()
        found = self.list(version=self.random.choice((None, None, "0")), limit=self.random.choice((None, None, 500)))
        if not found:
            return None
        self.saw(found[1])
        return found[0]

    def saw(self, items):
        self.seen = max([self.seen] + [version_of(item) for item in items])

    def event(self, line):
        """Type and object; there is no type after an error that says to list again."""
        event = json.loads(line)
        if event["type"] == "ERROR":
            self.excuse(event["object"]["code"], event)
            self.shared.count("ERROR events")
            return None, None
        if event["type"] != "BOOKMARK":
            self.saw([event["object"]])
            self.shared.count("events")
        else:
            self.shared.count("bookmarks")
        return event["type"], event["object"]

    def watch(self, version):
        """The version from which the next one continues; None: it must list again."""
        seen = []
        who, scope, begun = f"{self.name} {self.doing}", self.scope, version
        self.shared.checks.append(lambda: check_changes(self.shared.history, who, scope, begun, seen))
        with self.watching(f"resourceVersion={version}") as lines:
            for line in lines or ():
                kind, thing = self.event(line)
                if kind is None:
                    return None
                seen.append((kind, thing))
                version = version_of(thing)
                if self.wanted is not None and self.seen >= self.wanted:
                    break
        return version

    def stream(self):
        """A watch that begins with the current state."""
        begun, initial, seen, version = self.shared.begin(), [], [], None
        with self.watching("sendInitialEvents=true", "resourceVersionMatch=NotOlderThan") as lines:
            for line in lines or ():
                kind, thing = self.event(line)
                if kind is None:
                    return None
                if version is not None:
                    seen.append((kind, thing))
                elif kind == "ADDED":
                    initial.append(thing)
                elif kind != "BOOKMARK" or "k8s.io/initial-events-end" not in thing["metadata"].get("annotations", {}):
                    raise Violation(f"{self.name}: {self.doing}: {line} among the initial events")
                else:
                    version = version_of(thing)
                    who, at = f"{self.name}: {self.doing}", version
                    self.shared.count("current streams")
                    self.shared.checks.append(lambda: check_state(
                        self.shared.history, who, self.scope, at, sorted(initial, key=lambda i: "/".join(key_of(i))),
                        self.shared.floor(begun)))
                    self.shared.checks.append(lambda: check_changes(self.shared.history, who, self.scope, at, seen))
                if version is not None:
                    version = version_of(thing)
                    if self.wanted is not None and self.seen >= self.wanted:
                        break
        return version


class Lister(Reader):
    """Lists in all ways, and gets."""

    def act(self):
        highest = None
        while not self.shared.stop_writers.is_set():
            choice = self.random.randrange(6)
            if choice == 0:
                found = self.list(limit=self.random.randrange(1, 9))
            elif choice == 1:
                found = self.list(version="0", limit=self.random.choice((None, 3)))
            elif choice == 2 and highest:
                found = self.list(version=str(highest))
            else:
                found = self.list()
            if found:
                highest = max(highest or 0, found[0])
            self.shared.stop_writers.wait(0.02)


class Outsider(Reader):
    """Has no right to its scope: no answer may be a success."""

    def act(self):
        ways = ((), ("resourceVersion=0",), ("watch=1", "timeoutSeconds=5"), ("watch=1", "resourceVersion=1", "timeoutSeconds=5"),
                ("watch=1", "sendInitialEvents=true", "resourceVersionMatch=NotOlderThan", "timeoutSeconds=5"))
        while not self.shared.stop_writers.is_set():
            if (body := self.get(self.scope.path(), *self.random.choice(ways))) is not None:
                raise Violation(f"{self.name}: {self.doing} was answered: {body}")
            self.shared.count("refused outsiders")
