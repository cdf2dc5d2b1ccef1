"""Compares what the clients of a watch tier have seen with what has happened.

The history is all changes of config maps in the order of their revisions, as the etcd behind the kube-apiservers has
them. Everything that a client has seen is a record, which is checked when the history is complete: a list is exactly the
state at its version, and has everything that was acknowledged before it began, if it is a current one; a watch has every
change after its version once, in order, with the type that its selector gives it, and no bookmark is ahead of a change
that comes later."""
import bisect
import copy
import dataclasses


class Violation(AssertionError):
    """A client has seen what has not happened, or has not seen what has."""


@dataclasses.dataclass(frozen=True)
class Change:
    revision: int
    key: tuple  # namespace, name
    before: dict | None  # the object as it was stored, without a version; None: there was none
    after: dict | None


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
                (not self.label or stored["metadata"].get("labels", {}).get(self.label[0]) == self.label[1]))


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


class History:
    def __init__(self):
        self.changes, self.revisions, self.of_key, self.newest = [], [], {}, {}

    def add(self, revision, key, stored):
        if self.revisions and revision <= self.revisions[-1]:
            raise AssertionError(f"the recorder got {revision} after {self.revisions[-1]}")
        change = Change(revision, key, self.newest.get(key), copy.deepcopy(bare(stored)))
        self.changes.append(change)
        self.revisions.append(revision)
        of_key = self.of_key.setdefault(key, ([], []))
        of_key[0].append(revision)
        of_key[1].append(change.after)
        self.newest[key] = change.after

    def at(self, version, scope):
        """What a list has at a version: key to revision and object, in the order of the keys."""
        state = {}
        for key in sorted(self.of_key, key="/".join):
            revisions, things = self.of_key[key]
            i = bisect.bisect_right(revisions, version) - 1
            if i >= 0 and scope.has(key, things[i]):
                state[key] = (revisions[i], things[i])
        return state

    def after(self, version, scope):
        """What a watch from a version gets: type, key, revision and object."""
        for change in self.changes[bisect.bisect_right(self.revisions, version):]:
            before, after = scope.has(change.key, change.before), scope.has(change.key, change.after)
            if before or after:
                kind = "DELETED" if not after else "MODIFIED" if before else "ADDED"
                yield kind, change.key, change.revision, change.before if kind == "DELETED" else change.after

    def last(self, scope):
        """The version of the last change that concerns it."""
        return max((c.revision for c in self.changes if scope.has(c.key, c.before) or scope.has(c.key, c.after)), default=0)


def differences(wanted, found):
    lines = [f"missing {key} of {wanted[key][0]}" for key in wanted if key not in found]
    lines += [f"unexpected {key} of {found[key][0]}" for key in found if key not in wanted]
    lines += [f"{key}: {found[key][0]} in the place of {wanted[key][0]}"
              f"{'' if found[key][0] != wanted[key][0] else f': {found[key][1]} in the place of {wanted[key][1]}'}"
              for key in wanted if key in found and wanted[key] != found[key]]
    return "; ".join(lines) or "the order differs"


def check_state(history, who, scope, version, items, floor):
    """floor: a revision, up to which everything must be seen; 0: any state will do."""
    found = {key_of(item): (version_of(item), bare(item)) for item in items}
    if len(found) != len(items):
        raise Violation(f"{who}: an object is there twice: {[key_of(item) for item in items]}")
    wanted = history.at(version, scope)
    if list(wanted.items()) != list(found.items()):
        raise Violation(f"{who}: not the state at {version} of {scope}: {differences(wanted, found)}")
    # The version may be older, if nothing that concerns it has changed in between.
    if version < floor:
        later = [floor] + [revision for revision in history.revisions if revision > floor]
        if not any(history.at(revision, scope) == found for revision in later):
            raise Violation(f"{who}: {scope} at {version} lacks what was acknowledged up to {floor}: "
                            f"{differences(history.at(floor, scope), found)}")


def check_changes(history, who, scope, version, seen):
    """seen: the events and bookmarks of a watch from a version, as (type, object)."""
    expected = history.after(version, scope)
    following = next(expected, None)
    told = version  # no older bookmark may come
    for number, (kind, thing) in enumerate(seen):
        where = f"{who}: watch of {scope} from {version}, event {number}"
        if kind == "BOOKMARK":
            mark = version_of(thing)
            if mark < told:
                raise Violation(f"{where}: a bookmark at {mark} after {told}")
            if following and following[2] <= mark:
                raise Violation(f"{where}: a bookmark at {mark} before {following[:3]} was sent")
            told = mark
            continue
        found = (kind, key_of(thing), version_of(thing), bare(thing))
        if found != following:
            raise Violation(f"{where}: {found} in the place of {following}")
        told = found[2]
        following = next(expected, None)
