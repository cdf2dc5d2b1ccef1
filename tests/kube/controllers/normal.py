"""What two control planes must agree on: objects without what is random or depends on time, and lines of logs without
names, numbers and times."""
import json
import re

UID = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")
ADDRESS = re.compile(r"\b\d{1,3}(?:\.\d{1,3}){3}\b")
TIME = re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)?")
MINUTE = re.compile(r"-\d{8}\b")  # after the name of a cron job
VOLUME = re.compile(r"\bkube-api-access-\w{5}\b")
NODE = re.compile(r"\bnode-\d{4}\b")
# The suffix of generateName has letters and digits that form no words.
RANDOM = re.compile(r"-[bcdfghjklmnpqrstvwxz2456789]{5}\b")

# Fields that belong to one server or depend on how fast something was noticed.
DROPPED = {"uid", "resourceVersion", "managedFields", "creationTimestamp", "nodePort", "clusterIP", "clusterIPs",
           "podCIDR", "podCIDRs", "podIP", "podIPs", "hostIP", "hostIPs", "finishedAt", "startedAt",
           # Where the scheduler has put a pod, and notes about when.
           "zone", "topology.kubernetes.io/zone", "endpoints.kubernetes.io/last-change-trigger-time"}
# How often they were written depends on how many changes were seen at once.
COUNTED = {"EndpointSlice", "ReplicaSet"}


def is_time(key, value):
    return isinstance(value, str) and TIME.fullmatch(value) is not None or key.endswith("Timestamp")


def text(value):
    for pattern, name in ((UID, "<uid>"), (TIME, "<time>"), (ADDRESS, "<address>"), (NODE, "<node>"), (MINUTE, "-<minute>"),
                          (VOLUME, "kube-api-access-<random>")):
        value = pattern.sub(name, value)
    return value


def order(value):
    return json.dumps(value, sort_keys=True)


def normal(value, key=""):
    if isinstance(value, dict):
        return {text(k): "<time>" if is_time(k, v) else normal(v, k) for k, v in value.items()
                if k not in DROPPED}
    if isinstance(value, list):
        found = [normal(item, key) for item in value]
        return sorted(found, key=order) if key in ("conditions", "addresses", "endpoints", "ownerReferences", "ports") else found
    if key == "message":  # may name an object that was refused, whose name was generated
        return RANDOM.sub("-<random>", text(value))
    return text(value) if isinstance(value, str) else value


def normal_object(found):
    """One object; names that were generated are cut in it and wherever else it has them."""
    metadata = found["metadata"]
    raw = json.dumps(found)
    addresses = [a for subset in found.get("subsets", []) for a in subset.get("addresses", [])]
    names = [metadata["name"]] if metadata.get("generateName") else []
    names += [o["targetRef"]["name"] for o in [*(found.get("endpoints") or []), *addresses] if o.get("targetRef")]
    for name in names:
        raw = raw.replace(f'"{name}"', f'"{RANDOM.sub("-<random>", name)}"')
    made = normal(json.loads(raw))
    if not made["metadata"].get("annotations", True):
        del made["metadata"]["annotations"]
    if found["kind"] in COUNTED:
        made["metadata"].pop("generation", None), made.get("status", {}).pop("observedGeneration", None)
    if found["kind"] == "Secret" and "token" in made.get("data", {}):
        made["data"]["token"] = "<token>"
    return made


# -- Logs --

# Depends on which of several controllers was first, or on whether a controller has seen its own write when it looks again: the
# manager then gives a node a second CIDR, which both servers refuse in the same words (same_writes_test.py).
RACES = ('node updates may not change podCIDR except from \\"\\" to valid',
         "object has been modified", "is not as new as written version", "StorageError: invalid object, Code: 4", "context canceled",
         "because it is being terminated")
# Both servers are started without an authority for the headers of proxies, so that each of these programs says this on both.
ALWAYS = {"manager": "missing content for CA bundle", "scheduler": "missing content for CA bundle"}
HEADER = re.compile(r"^([IWEF])\d{4} [\d:.]+\s+\d+ ([\w.]+):\d+\] (.*)$")


def error_lines(log):
    """The errors and warnings of a program's log in klog's format, each as its file and its text without particulars; with
    each an original line."""
    found = {}
    for line in log.splitlines():
        match = HEADER.match(line)
        if match and match[1] != "I":
            found.setdefault((match[1], match[2], normal_line(match[3])), line)
        elif line.startswith(("panic:", "fatal error:", "goroutine 1 ")):
            found.setdefault(("F", "", line), line)
    return found


def normal_line(line):
    line = text(line)
    line = RANDOM.sub("-<random>", line)
    line = re.sub(r"\b[0-9a-f]{8,10}\b", "<hash>", line)
    line = re.sub(r"(https?://)[^/\s\"]+", r"\1<host>", line)
    line = re.sub(r"\b\d+(?:\.\d+)?(?:ms|µs|s|m)\b", "<duration>", line)
    return re.sub(r"\b\d+\b", "<n>", line)


def new_lines(ours, theirs):
    """The errors and warnings of our log that the other one does not have, except those of races."""
    known = error_lines(theirs)
    return [line for key, line in error_lines(ours).items() if key not in known and not any(text in line for text in RACES)]


def unread(program, log):
    """What is missing in the log of a program that must be there: otherwise its lines were not understood."""
    text = ALWAYS.get(program)
    return [] if text is None or any(text in line for line in error_lines(log).values()) else [text]
