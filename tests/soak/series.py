"""What is sampled of a server over time, and whether it levels off.

A series levels off if its last third does not exceed its middle third by more than a margin. The first third is left
out: caches fill, files are created ahead, and the allocator takes what it will use. Of each third one quantile counts.
Of amounts it is the 0.9 quantile: a restart makes them small for a moment, and a single sample does not count. Of latencies it
is the 0.25 quantile: other work on the machine makes many of them longer, but a server that becomes slower makes even
the shortest longer."""
import dataclasses
import os
import pathlib


@dataclasses.dataclass
class Rule:
    unit: str
    quantile: float
    margin: float  # part of the middle third
    slack: float   # and what may be added in any case, in the unit


# The slack is what one segment, one checkpoint, one cycle of clients or a late timer changes.
RULES = {
    "resident memory": Rule("MB", 0.9, 0.2, 32),
    "anonymous memory": Rule("MB", 0.9, 0.1, 6),
    "disk": Rule("MB", 0.9, 0.2, 16),
    "descriptors": Rule("", 0.9, 0.1, 32),
    "threads": Rule("", 0.9, 0.0, 2),
    "put, p50": Rule("ms", 0.25, 0.5, 1),
    "put, p99": Rule("ms", 0.25, 0.5, 10),
    "event, p50": Rule("ms", 0.25, 0.5, 1),
    "event, p99": Rule("ms", 0.25, 0.5, 10),
    "Kubernetes change, p50": Rule("ms", 0.25, 0.5, 2),
    "Kubernetes change, p99": Rule("ms", 0.25, 0.5, 20),
    "Kubernetes event, p99": Rule("ms", 0.25, 0.5, 20),
}


def quantile(values, part):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))]


def third_of(points, seconds, index):
    begin, end = seconds * index / 3, seconds * (index + 1) / 3
    return [value for at, value in points if begin <= at < end]


@dataclasses.dataclass
class Verdict:
    name: str
    unit: str
    middle: float
    last: float
    bound: float

    @property
    def levels_off(self):
        return self.last <= self.bound


def judge(name, points, seconds):
    """None if a third has no samples: nothing is known then, which is a fault of the run."""
    rule = RULES[name]
    middle, last = third_of(points, seconds, 1), third_of(points, seconds, 2)
    if not middle or not last:
        return None
    before, after = quantile(middle, rule.quantile), quantile(last, rule.quantile)
    return Verdict(name, rule.unit, before, after, before * (1 + rule.margin) + rule.slack)


class Series:
    """Points by name; the time is in seconds since the beginning."""

    def __init__(self):
        self.points = {name: [] for name in RULES}

    def add(self, name, at, value):
        self.points[name].append((at, value))

    def verdicts(self, seconds):
        """Of all series, and the names of those that have too few samples."""
        found = {name: judge(name, points, seconds) for name, points in self.points.items()}
        return [v for v in found.values() if v], [name for name, v in found.items() if not v]


def disk_mb(directory):
    total = 0
    for folder, _, names in os.walk(directory):
        for name in names:
            try:
                total += os.stat(os.path.join(folder, name)).st_blocks * 512
            except FileNotFoundError:
                pass  # the server has just removed it
    return total / 1e6


def process_sample(pid):
    """Raises OSError if the process has ended."""
    fields = {}
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        name, _, rest = line.partition(":")
        fields[name] = rest.split()
    if "VmRSS" not in fields:
        raise ProcessLookupError(pid)
    return {"resident memory": int(fields["VmRSS"][0]) * 1024 / 1e6, "anonymous memory": int(fields["RssAnon"][0]) * 1024 / 1e6,
            "threads": int(fields["Threads"][0]), "descriptors": len(os.listdir(f"/proc/{pid}/fd"))}
