"""Clients of a watch tier that do what client-go does and record what they have seen, writers, and the recorder of what has
happened (tier_checker.py)."""
import base64
import collections
import contextlib
import http.client
import json
import os
import random
import threading
import time

from tier_checker import (Grants, Shown, Violation, Watched, check_changes, check_object, check_promptness, check_right, check_state,
                          found_of, version_of)
from tier_formats import FORMATS, JSON

PACE = float(os.environ.get("VIGIL_TIER_PACE", "1"))  # by this much longer are the pauses of readers
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
            self.history.add(int(kv["mod_revision"]), key, stored, time.monotonic())
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
        self.connection.close()
        self.answer.close()


class Limits:
    """How long a right that was revoked may live on in reads and in watches. Without faults the times are those of the tier,
    with some for a machine that is busy; with faults a watch may live until its review was not answered for two minutes."""

    def __init__(self, calm, ttl_s):
        self.read_s, self.watch_s = (ttl_s + 6, 10) if calm else (ttl_s + 13, 135)
        if not ttl_s:  # a kube-apiserver lets watches continue
            self.watch_s = float("inf")


class Run:
    """What the threads of a run share. calm: there are no faults, so nothing may fail or be late. ttl_s: how long the tier
    uses answers about rights; 0: there is none."""

    def __init__(self, history, calm=False, ttl_s=10):
        self.history, self.calm, self.is_tier, self.limits = history, calm, ttl_s > 0, Limits(calm, ttl_s)
        self.shown = collections.defaultdict(Shown)  # by the name of an encoding
        self.incarnation = 0  # of the tier; changes before it ends and after it has begun
        self.diary, self.began = [], time.monotonic()  # faults and when they began and ended
        self.cached = []  # lists of what the mirror has: when they began and ended, of which tier, encoding, version
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

    def count_more(self, what, count):
        with self.lock:
            self.counts[what] += count

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
                deleted[change.key, change.before.thing["metadata"]["uid"]] = change.revision
            elif operation := change.after.thing.get("data", {}).get("operation"):
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

    def note(self, text):
        self.diary.append((time.monotonic(), text))

    def check_prompt(self, watched):
        """With what has happened at the time."""
        try:
            check_promptness(self.history, self.prompt[watched.form.name], watched)
        except Violation as violation:
            since, until = watched.begun - self.began, watched.ended - self.began
            diary = [f"{now - self.began:.1f} {text}" for now, text in self.diary if since - 30 < now - self.began < until + 5]
            got = [f"{event[4] - self.began:.1f} {event[0]} {event[2]}" for event in watched.events]
            raise Violation(f"{violation}; watched from {since:.1f} to {until:.1f} s, {watched.end}; {got}; {diary}") from None

    def saw(self, form, version, now):
        with self.lock:
            self.shown[form.name].add(version, now)

    def shown_to(self, form):
        """What readers of this encoding could have seen, and when. Without faults everything that has happened."""
        if not self.calm:
            return self.shown[form.name]
        shown = Shown()
        for revision, now in zip(self.history.revisions, self.history.times):
            shown.add(revision, now)
        return shown

    def check_cached(self):
        """What the mirror has shown never goes back, as long as the tier runs."""
        newest = {}
        events = [(begun, 0, one) for one in self.cached for begun in one[:1]] + [(one[1], 1, one) for one in self.cached]
        floors = {}
        for _, is_end, one in sorted(events, key=lambda event: event[:2]):
            of = one[2:4]
            if not is_end:
                floors[id(one)] = newest.get(of, 0)
                continue
            if one[4] < floors[id(one)]:
                raise Violation(f"{one[5]}: a list of {one[4]} after one of {floors[id(one)]}")
            newest[of] = max(newest.get(of, 0), one[4])

    def check(self):
        self.settle()
        self.prompt = {name: self.shown_to(form) for name, form in FORMATS.items()}
        found = []
        for one in [*self.checks, self.check_cached]:
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
        if status not in tuple(more) + (() if self.shared.calm else EXCUSED):
            raise Violation(f"{self.doing}: {status} {body}")
        self.shared.count(f"answers {status}")
        self.shared.stop.wait(0.2 * PACE)

    def broke(self, what, error):
        """After a connection was refused or has broken."""
        if self.shared.calm:
            raise Violation(f"{self.doing}: {error!r}")
        self.shared.count(f"broken {what}")
        self.shared.stop.wait(0.2 * PACE)


class Writer(Actor):
    """reader: lists at once after each write, which it must see."""

    def __init__(self, run, name, seed, caller, names, pause_s, reader=None):
        super().__init__(run, name, seed)
        self.caller, self.names, self.pause_s, self.reader = caller, names, pause_s, reader

    def act(self):
        while not self.shared.stop_writers.wait(self.random.random() * 2 * self.pause_s):
            done = self.write(self.random.choice(self.names), self.random.choice(("POST", "PUT", "PUT", "DELETE")),
                              self.random.choice("abc"))
            if done and self.reader:
                self.reader.list()

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
        except BROKEN as error:
            self.broke("writes", error)
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
    """more: what it may be answered besides, such as 403. grants: a right that comes and goes, without which nothing may be
    seen."""

    def __init__(self, run, name, seed, caller, scope, more=(), form=JSON, grants=None):
        super().__init__(run, name, seed)
        self.caller, self.scope, self.form, self.grants = caller, scope, form, grants
        self.more = tuple(more) + ((403,) if grants else ())

    def headers(self, is_list=False):
        return {"Accept": self.form.accept(is_list)}

    def read(self, thing, kind):
        """The object of an answer."""
        try:
            thing = self.form.read(thing)
            if (thing["apiVersion"], thing["kind"]) != kind:
                raise ValueError(thing["apiVersion"] + thing["kind"])
            return thing
        except (ValueError, KeyError, TypeError, IndexError, AssertionError) as error:
            raise Violation(f"{self.name}: {self.doing}: not {kind}: {error!r}: {thing[:500]}") from None

    def newest(self):
        """The version of what has just happened, of which a client may know from elsewhere before the tier does."""
        return str(self.shared.history.revisions[-1]) if self.shared.history.revisions else "0"

    def check_right(self, since, bound):
        if self.grants:
            who, until, grants = f"{self.name}: {self.doing}", time.monotonic(), self.grants
            self.shared.checks.append(lambda: check_right(who, grants, since - bound, until))

    def get(self, path, *query, more=(), is_list=True):
        """The object, or the status."""
        self.doing = f"GET {path}?{'&'.join(self.scope.query() + list(query))}"
        since = time.monotonic()
        try:
            status, _, body = self.caller.fetch("GET", self.doing.split(" ", 1)[1], headers=self.headers(is_list))
        except BROKEN as error:
            self.broke("reads", error)
            return None
        if status == 200:
            self.check_right(since, self.shared.limits.read_s)
            version, kind = self.form.kinds()
            return self.read(body, (version, kind + ("List" if is_list else "")))
        if status in more:
            return status
        self.excuse(status, body, self.more)
        return None

    def list(self, version=None, limit=None, exact=False):
        """The list's version and items, or None. None as the version: the current state."""
        query = [f"resourceVersion={version}"] if version is not None else []
        query += ["resourceVersionMatch=Exact"] if exact else []
        begun, items, token, versions = self.shared.begin() if version is None else 0, [], "", set()
        since, incarnation = time.monotonic(), self.shared.incarnation
        while True:
            body = self.get(self.scope.path(), *([f"limit={limit}"] if limit else []),
                            *([f"continue={token}"] if token else query), more=(410,) if exact else ())
            if not isinstance(body, dict):
                return None
            items += [found_of(item) for item in body["items"]]
            versions.add(version_of(body))
            token = body["metadata"].get("continue", "")
            if not token:
                break
        self.shared.count("exact lists" if exact else "current lists" if version is None else "lists")
        who = f"{self.name}: {self.doing}"
        if len(versions) != 1:
            raise Violation(f"{who}: pages of {versions}")
        found = versions.pop()
        if found < int(version or 0) or (exact and found != int(version)):
            raise Violation(f"{who}: another list, of {found}")
        if version == "0" and incarnation == self.shared.incarnation:
            self.shared.cached.append((since, time.monotonic(), incarnation, self.form.name, found, who))
        self.shared.count_more("objects of lists", len(items))
        self.shared.checks.append(lambda: check_state(
            self.shared.history, who, self.scope, self.form, found, items, self.shared.floor(begun)))
        return found, items

    def frames(self, answer):
        """The complete events of the body. It ends when the answer ends or breaks."""
        rest, kind = b"", "ended"
        while True:
            try:
                piece = answer.read1(65536)
            except BROKEN as error:
                if self.shared.calm:
                    raise Violation(f"{self.name}: {self.doing}, after {time.monotonic() - self.opened:.1f} s: {error!r}") from None
                kind = "broke"
                break
            if not piece:
                break
            whole, rest = self.form.split(rest + piece)
            yield from whole
        if rest and kind == "ended":
            raise Violation(f"{self.name}: {self.doing} ended properly in the middle of an event: {rest[-200:]}")
        self.properly = kind == "ended"
        self.shared.count(f"watches that {kind}")

    def event(self, frame):
        """Type and object; there is no type after an error that says to list again."""
        try:
            kind, thing = self.form.event(frame)
        except (ValueError, KeyError, TypeError, IndexError, AssertionError) as error:
            raise Violation(f"{self.name}: {self.doing}: not an event: {error!r}: {frame[:500]}") from None
        if kind == "ERROR":
            self.properly = False
            # A request may be refused by a kube-apiserver that starts, but that ends no watch.
            self.excuse(thing["code"], thing, [code for code in self.more if code != 403 or self.grants])
            self.shared.count("ERROR events")
            return None, None
        if (thing["apiVersion"], thing["kind"]) != self.form.kinds():
            raise Violation(f"{self.name}: {self.doing}: {thing['apiVersion']} {thing['kind']} in an event")
        self.shared.count("bookmarks" if kind == "BOOKMARK" else "events")
        if not self.passed_on:
            self.check_right(time.monotonic(), self.shared.limits.watch_s)
        return kind, thing

    @contextlib.contextmanager
    def watching(self, *query, seconds=None):
        """The events of a watch, as bytes, or None; and the seconds after which it is to end."""
        short, longest = self.random.randrange(4, 20), 200 if self.grants and not self.shared.calm else 40
        # Of a right that is revoked something is only seen by watches that would live on.
        seconds = seconds or self.random.choice((short, longest, longest) if self.grants else (short, short, longest))
        query = ["watch=1", "allowWatchBookmarks=true", f"timeoutSeconds={seconds}", *query]
        self.doing = f"GET {self.scope.path()}?{'&'.join(self.scope.query() + query)}"
        since = self.asked = time.monotonic()
        self.properly = False
        try:
            connection = self.caller.connect()
        except BROKEN as error:
            self.broke("reads", error)
            yield None, seconds
            return
        with contextlib.closing(connection):
            try:
                answer = self.caller.request(connection, "GET", self.doing.split(" ", 1)[1], headers=self.headers())
                body = answer.read() if answer.status != 200 else None
            except BROKEN as error:
                self.broke("reads", error)
                yield None, seconds
                return
            if answer.status != 200:
                self.excuse(answer.status, body, self.more)
                yield None, seconds
                return
            self.check_right(since, self.shared.limits.read_s)
            self.opened = time.monotonic()
            # The kube-apiserver itself answers: neither the mirror's times nor the tier's reviews are for this watch.
            self.passed_on = self.shared.is_tier and "Audit-Id" in answer.headers
            if self.passed_on:
                self.shared.count("watches passed on")
            yield self.frames(answer), seconds

    def follow(self, watched, frames, until=lambda: False):
        """Records what arrives until the watch ends, or until(). True: there was no error."""
        run = self.shared
        watched.ended = time.monotonic()
        for frame in frames or ():
            kind, thing = self.event(frame)
            watched.ended = time.monotonic()
            if kind is None:
                watched.end = "an error"
                break
            watched.add(kind, thing, watched.ended)
            if not self.passed_on:
                run.saw(self.form, version_of(thing), watched.ended)
            if kind != "BOOKMARK":
                self.seen = max(self.seen, version_of(thing))
            if until():
                watched.seconds = float("inf")  # it is the client that ends it
                break
        else:
            kind = "none"
            watched.ended = time.monotonic()
            watched.properly = self.properly
            watched.end = "a proper end" if self.properly else "broken off"
        if frames is not None:
            run.count("watches")
            run.checks.append(lambda: check_changes(run.history, watched))
            if not self.passed_on:
                run.checks.append(lambda: run.check_prompt(watched))
            if run.calm and run.is_tier and watched.properly and not self.passed_on:
                self.check_end(watched)
        return kind is not None

    def check_end(self, watched):
        """Without faults a watch lasts as long as it is to, and has a bookmark two seconds before its end if something has
        happened: what was listed at the kube-apiserver may be newer than all that the mirror knows. On a busy machine the
        bookmark may come too late for one of many."""
        lasted = watched.ended - self.asked
        if lasted < watched.seconds:
            raise Violation(f"{watched.who}: it ended after {lasted:.1f} s")
        early = [number for number, event in enumerate(watched.events) if event[0] != "BOOKMARK" and event[4] < watched.ended - 4]
        if early:
            marked = any(event[0] == "BOOKMARK" for event in watched.events[early[-1] + 1:])
            self.shared.count("ends with a bookmark" if marked else "ends without a bookmark")

    seen = 0  # the highest version of an object
    passed_on = False  # the last watch
    asked = opened = 0.0  # when the last watch was requested, and when the answer began


class Follower(Reader):
    """An informer: a list, or a watch that begins with the state, and then watches until it has seen the last change."""

    def __init__(self, *args, start="list", **options):
        super().__init__(*args, **options)
        self.start_with = start
        self.wanted = None  # the version after which it may end

    def is_done(self):
        return self.wanted is not None and self.seen >= self.wanted

    def act(self):
        version = None
        while not self.shared.stop.is_set() and not self.is_done():
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
        self.seen = max([self.seen] + [item[1] for item in items])

    def watch(self, version):
        """The version from which the next one continues; None: it must list again."""
        with self.watching(f"resourceVersion={version}") as (frames, seconds):
            watched = Watched(f"{self.name} {self.doing}", self.scope, self.form, version, self.opened, seconds)
            if not self.follow(watched, frames, self.is_done):
                return None
        return watched.events[-1][2] if watched.events else version

    def stream(self, seconds=None):
        """A watch that begins with the current state, or with one that is not older than what was seen."""
        floor = self.random.choice((None, None, "0", str(self.seen), self.newest()))
        begun, initial = self.shared.begin() if floor is None else 0, []
        with self.watching("sendInitialEvents=true", "resourceVersionMatch=NotOlderThan",
                           *([f"resourceVersion={floor}"] if floor else []), seconds=seconds) as (frames, seconds):
            for frame in frames or ():
                kind, thing = self.event(frame)
                if kind is None:
                    return None
                if kind == "ADDED":
                    initial.append(found_of(thing))
                    continue
                if kind != "BOOKMARK" or "k8s.io/initial-events-end" not in thing["metadata"].get("annotations", {}):
                    raise Violation(f"{self.name}: {self.doing}: {frame} among the initial events")
                version, who = version_of(thing), f"{self.name}: {self.doing}"
                if version < int(floor or 0):
                    raise Violation(f"{who}: an older state of {version}")
                self.shared.count("current streams" if floor is None else "streams")
                self.shared.checks.append(lambda: check_state(
                    self.shared.history, who, self.scope, self.form, version, sorted(initial, key=lambda item: "/".join(item[0])),
                    self.shared.floor(begun)))
                self.saw(initial)
                watched = Watched(who, self.scope, self.form, version, self.opened, seconds)
                watched.add(kind, thing, self.opened)
                if self.is_done():
                    return version
                return watched.events[-1][2] if self.follow(watched, frames, self.is_done) else None
        return None


class Starter(Follower):
    """Begins again and again."""

    def act(self):
        while not self.shared.stop_writers.wait(0.2 * PACE):
            self.stream(seconds=1)


class Lister(Reader):
    """Lists in all ways, and gets."""

    def act(self):
        highest = lowest = None
        while not self.shared.stop_writers.is_set():
            choice = self.random.randrange(8)
            found = None
            if choice == 0:
                found = self.list(limit=self.random.randrange(1, 9))
            elif choice == 1:
                found = self.list(version="0", limit=self.random.choice((None, 3)))
            elif choice == 2 and highest:
                found = self.list(version=self.random.choice((str(highest), self.newest())))
            elif choice == 3 and highest:
                self.list(version=str(self.random.randrange(lowest, highest + 1)), limit=self.random.choice((None, 3)), exact=True)
            elif choice == 4 and highest:
                self.get_one(self.random.choice((None, "0", str(highest), self.newest())))
            else:
                found = self.list()
            if found:
                highest = max(highest or 0, found[0])
                lowest = lowest or found[0]
                self.known = [item[0] for item in found[1]] or self.known
            self.shared.stop_writers.wait(0.02 * PACE)

    known = ()

    def get_one(self, version):
        if not self.known or self.scope.name:
            return
        run, form, key, floor = self.shared, self.form, self.random.choice(self.known), int(version or 0)
        begun = run.begin() if version is None else 0
        scope, self.scope = self.scope, type(self.scope)()  # selectors are for lists
        thing = self.get(f"/api/v1/namespaces/{key[0]}/configmaps/{key[1]}", *([f"resourceVersion={version}"] if version else []),
                         more=(404,), is_list=False)
        self.scope = scope
        if thing is None:
            return
        run.count("gets")
        who, found = f"{self.name}: {self.doing}", None if thing == 404 else found_of(thing)
        run.checks.append(lambda: check_object(run.history, who, key, form, found, max(floor, run.floor(begun))))


class Resumer(Reader):
    """Watches from old versions, which may be gone."""

    def act(self):
        while not self.shared.stop_writers.wait(0.3 * PACE):
            known = self.shared.history.revisions
            if not known:
                continue
            version = self.random.randrange(known[0], known[-1] + 1) if self.random.random() < 0.5 else self.random.choice(known[-40:])
            with self.watching(f"resourceVersion={version}", seconds=self.random.choice((1, 1, 2, 15))) as (frames, seconds):
                watched = Watched(f"{self.name} {self.doing}", self.scope, self.form, version, self.opened, seconds)
                self.follow(watched, frames)
                self.shared.count("watches from old versions" if frames else "old versions refused")


class Outsider(Reader):
    """Has no right to its scope: no answer may be a success."""

    def act(self):
        ways = ((), ("resourceVersion=0",), ("limit=1",), ("resourceVersion=1", "resourceVersionMatch=NotOlderThan"),
                ("watch=1", "timeoutSeconds=5"), ("watch=1", "resourceVersion=1", "timeoutSeconds=5"),
                ("watch=1", "sendInitialEvents=true", "resourceVersionMatch=NotOlderThan", "timeoutSeconds=5"))
        while not self.shared.stop_writers.is_set():
            way = self.random.choice(ways)
            if (body := self.get(self.scope.path(), *way, is_list="watch=1" not in way)) is not None:
                raise Violation(f"{self.name}: {self.doing} was answered: {body}")
            self.shared.count("refused outsiders")


class Granter(Actor):
    """Grants and revokes rights to read the config maps of a namespace, at a kube-apiserver."""

    def __init__(self, run, name, seed, callers, path, role, users):
        super().__init__(run, name, seed)
        self.callers, self.path, self.role = callers, path, role
        self.grants = {user: Grants(user) for user in users}
        for grants in self.grants.values():
            grants.note(False, time.monotonic())

    def insist(self, method, path, body, wanted):
        """Until one of the kube-apiservers has done it."""
        while True:
            caller = self.random.choice(self.callers)
            with contextlib.suppress(*BROKEN):
                status, answer = caller.send(method, path, body)
                if status in wanted:
                    return
                if status not in EXCUSED + (403,):  # also one that starts, and does not know its roles yet
                    raise Violation(f"{method} {path}: {status} {answer}")
            time.sleep(0.1)

    def set(self, user, granted):
        self.doing = f"{'granting' if granted else 'revoking'} {user}"
        if granted:
            self.grants[user].note(True, time.monotonic())
            self.insist("POST", self.path, {
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": f"of-{user}"},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": self.role},
                "subjects": [{"kind": "User", "name": user, "apiGroup": "rbac.authorization.k8s.io"}]}, (201, 409))
        else:
            self.insist("DELETE", f"{self.path}/of-{user}", None, (200, 404))
            self.grants[user].note(False, time.monotonic())
        self.shared.count("rights granted" if granted else "rights revoked")

    def act(self):
        limits = self.shared.limits
        while not self.shared.stop_writers.is_set():
            for user in self.grants:
                self.set(user, True)
            self.shared.stop_writers.wait(3 + 4 * self.random.random())
            for user in self.grants:
                self.set(user, False)
            # Longer than what may live on; among faults that of watches is long.
            of_watches = self.shared.is_tier and (self.shared.calm or self.random.random() < 0.2)
            bound = limits.watch_s if of_watches else limits.read_s
            self.shared.stop_writers.wait(bound + 3 + 4 * self.random.random())
        for user in self.grants:
            self.set(user, True)
