"""Compares what the clients of a watch tier have seen with what has happened.

The history is all changes of config maps in the order of their revisions, as the etcd behind the kube-apiservers has
them. Everything that a client has seen is a record, which is checked when the history is complete:

- A list is exactly the state at its version, and has everything that was acknowledged before it began, if it is a current
  one. An object is one of its states, and not one that had been replaced by then.
- A watch has every change after its version once, in order, with the type that its selector gives it, and no bookmark is
  ahead of a change that comes later. It has each change soon after another client has seen a version as high: a watch
  that falls silent is not only one that continues later.
- No user sees anything without a right to it, after the time that a revoked right may live on."""
import bisect
import dataclasses
import hashlib
import json

from tier_formats import JSON

LATE_S = 10.0  # how much later than another one a client may see a change


class Violation(AssertionError):
    """A client has seen what has not happened, or has not seen what has."""


def digest(thing):
    return hashlib.blake2b(json.dumps(thing, sort_keys=True).encode(), digest_size=12).digest()


class State:
    """An object as it was stored, without a version."""

    def __init__(self, thing):
        self.thing = thing
        self.digests = {partial: digest(bare({"metadata": thing["metadata"]} if partial else thing)) for partial in (False, True)}

    def digest(self, form):
        return self.digests[form.is_partial]


@dataclasses.dataclass(frozen=True)
class Change:
    revision: int
    key: tuple  # namespace, name
    before: State | None  # None: there was none
    after: State | None


@dataclasses.dataclass(frozen=True)
class Scope:
    """What is listed or watched."""
    namespace: str | None = None
    label: tuple | None = None
    name: str | None = None

    def path(self):
        return f"/api/v1/namespaces/{self.namespace}/configmaps" if self.namespace else "/api/v1/configmaps"

    def query(self):
        return ([f"labelSelector={self.label[0]}%3D{self.label[1]}"] if self.label else []) + (
            [f"fieldSelector=metadata.name%3D{self.name}"] if self.name else [])

    def has(self, key, stored):
        return (stored is not None and self.namespace in (None, key[0]) and self.name in (None, key[1]) and
                (not self.label or stored.thing["metadata"].get("labels", {}).get(self.label[0]) == self.label[1]))


def key_of(thing):
    return thing["metadata"]["namespace"], thing["metadata"]["name"]


def version_of(thing):
    return int(thing["metadata"]["resourceVersion"])


def bare(thing):
    """The object without its kind, which items of lists do not have, and without its version."""
    if thing is None:
        return None
    thing = {field: value for field, value in thing.items() if field not in ("kind", "apiVersion")}
    thing["metadata"] = {field: value for field, value in thing["metadata"].items() if field != "resourceVersion"}
    return thing


def found_of(thing):
    """What is kept of an object: its key, its version and a digest of the rest."""
    return key_of(thing), version_of(thing), digest(bare(thing))


class History:
    def __init__(self):
        self.changes, self.revisions, self.times, self.of_key, self.newest = [], [], [], {}, {}

    def add(self, revision, key, stored, now):
        if self.revisions and revision <= self.revisions[-1]:
            raise AssertionError(f"the recorder got {revision} after {self.revisions[-1]}")
        change = Change(revision, key, self.newest.get(key), None if stored is None else State(bare(stored)))
        self.changes.append(change)
        self.revisions.append(revision)
        self.times.append(now)
        of_key = self.of_key.setdefault(key, ([], []))
        of_key[0].append(revision)
        of_key[1].append(change.after)
        self.newest[key] = change.after

    def at(self, version, scope, form=JSON):
        """What a list has at a version: key to revision and digest, in the order of the keys."""
        state = {}
        for key in sorted(self.of_key, key="/".join):
            revisions, things = self.of_key[key]
            i = bisect.bisect_right(revisions, version) - 1
            if i >= 0 and scope.has(key, things[i]):
                state[key] = (revisions[i], things[i].digest(form))
        return state

    def after(self, version, scope, form=JSON):
        """What a watch from a version gets: type, key, revision and digest."""
        for change in self.changes[bisect.bisect_right(self.revisions, version):]:
            before, after = scope.has(change.key, change.before), scope.has(change.key, change.after)
            if before or after:
                kind = "DELETED" if not after else "MODIFIED" if before else "ADDED"
                yield kind, change.key, change.revision, (change.before if kind == "DELETED" else change.after).digest(form)

    def last(self, scope):
        """The version of the last change that concerns it."""
        return max((c.revision for c in self.changes if scope.has(c.key, c.before) or scope.has(c.key, c.after)), default=0)


class Shown:
    """The versions that any client has seen, with the times when each was first reached."""

    def __init__(self):
        self.versions, self.times = [], []

    def add(self, version, now):
        if not self.versions or version > self.versions[-1]:
            self.versions.append(version)
            self.times.append(now)

    def reached(self, version):
        """When; None: never."""
        i = bisect.bisect_left(self.versions, version)
        return self.times[i] if i < len(self.times) else None


def differences(wanted, found):
    lines = [f"missing {key} of {wanted[key][0]}" for key in wanted if key not in found]
    lines += [f"unexpected {key} of {found[key][0]}" for key in found if key not in wanted]
    lines += [f"{key}: {found[key][0]} in the place of {wanted[key][0]}"
              f"{'' if found[key][0] != wanted[key][0] else ', with another content'}"
              for key in wanted if key in found and wanted[key] != found[key]]
    return "; ".join(lines) or "the order differs"


def check_state(history, who, scope, form, version, items, floor):
    """items: as of found_of(). floor: a revision, up to which everything must be seen; 0: any state will do."""
    found = {key: (revision, content) for key, revision, content in items}
    if len(found) != len(items):
        raise Violation(f"{who}: an object is there twice: {[item[0] for item in items]}")
    wanted = history.at(version, scope, form)
    if list(wanted.items()) != list(found.items()):
        raise Violation(f"{who}: not the state at {version} of {scope}: {differences(wanted, found)}")
    # The version may be older, if nothing that concerns it has changed in between.
    if version < floor:
        later = [floor] + [revision for revision in history.revisions if revision > floor]
        if not any(history.at(revision, scope, form) == found for revision in later):
            raise Violation(f"{who}: {scope} at {version} lacks what was acknowledged up to {floor}: "
                            f"{differences(history.at(floor, scope, form), found)}")


def check_object(history, who, key, form, found, floor):
    """found: as of found_of(); None: there was no object."""
    revisions, things = history.of_key.get(key, ((), ()))
    if found:
        i = bisect.bisect_left(revisions, found[1])
        if found[0] != key or i == len(revisions) or revisions[i] != found[1] or not things[i] or things[i].digest(form) != found[2]:
            raise Violation(f"{who}: {found[:2]} is not a state of {key}")
        if i + 1 < len(revisions) and revisions[i + 1] <= floor:
            raise Violation(f"{who}: {key} of {found[1]}, which was replaced by {revisions[i + 1]} before {floor}")
        return
    i = bisect.bisect_right(revisions, floor) - 1
    if i >= 0 and all(things[i:]):
        raise Violation(f"{who}: no {key}, which is there since {revisions[i]}, before {floor}")


@dataclasses.dataclass
class Watched:
    """A watch and what has arrived."""
    who: str
    scope: Scope
    form: object
    version: int  # from which
    begun: float
    seconds: float  # after which it is to end
    events: list = dataclasses.field(default_factory=list)  # type, key, version, digest, time; of bookmarks without the two
    ended: float = 0.0  # when the client has stopped to read
    properly: bool = False  # the server has ended it, and said nothing
    end: str = "ended by the client"

    def add(self, kind, thing, now):
        if kind == "BOOKMARK":
            self.events.append((kind, None, version_of(thing), None, now))
        else:
            self.events.append((kind, *found_of(thing), now))


def check_changes(history, watched):
    """That the events are what has happened."""
    expected = history.after(watched.version, watched.scope, watched.form)
    following = next(expected, None)
    told = watched.version  # no older bookmark may come
    for number, event in enumerate(watched.events):
        where = f"{watched.who}: watch of {watched.scope} from {watched.version}, event {number}"
        if event[0] == "BOOKMARK":
            mark = event[2]
            if mark < told:
                raise Violation(f"{where}: a bookmark at {mark} after {told}")
            if following and following[2] <= mark:
                raise Violation(f"{where}: a bookmark at {mark} before {following[:3]} was sent")
            told = mark
            continue
        if event[:4] != following:
            raise Violation(f"{where}: {event[:3]} in the place of {following and following[:3]}"
                            f"{', with another content' if following and event[:3] == following[:3] else ''}")
        told = event[2]
        following = next(expected, None)


def check_promptness(history, shown, watched):
    """That they have come soon after another client has seen them; shown: what others have."""
    expected = history.after(watched.version, watched.scope, watched.form)
    where = f"{watched.who}: watch of {watched.scope} from {watched.version}"
    arrived = [event[4] for event in watched.events if event[0] != "BOOKMARK"]
    for number, following in enumerate(expected):
        if (since := shown.reached(following[2])) is None:
            break
        until = max(since, watched.begun) + LATE_S
        is_there = number < len(arrived)
        if (arrived[number] if is_there else watched.ended) > until:
            raise Violation(f"{where}: {following[:3]} {'came' if is_there else 'had not come'} "
                            f"{(arrived[number] if is_there else watched.ended) - until + LATE_S:.1f} s after others had it")
        if not is_there:
            break
    if watched.ended - watched.begun > watched.seconds + LATE_S:
        raise Violation(f"{where}: it took {watched.ended - watched.begun:.1f} s instead of {watched.seconds}")


class Grants:
    """When a user has had a right that comes and goes."""

    def __init__(self, user):
        self.user, self.times, self.granted = user, [], []

    def note(self, granted, now):
        """Before it is granted, and after it was revoked."""
        self.times.append(now)
        self.granted.append(granted)

    def never(self, since, until):
        """Whether they had it at no time between."""
        first = bisect.bisect_right(self.times, since) - 1
        last = bisect.bisect_right(self.times, until)
        return not any(self.granted[max(first, 0):last]) and first >= 0


def check_right(who, grants, since, until):
    if grants.never(since, until):
        raise Violation(f"{who}: {grants.user} had no right to it since {until - since:.1f} s")
