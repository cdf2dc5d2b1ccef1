"""From samples to medians, ratios, goals; as JSON and as a Markdown table."""
import dataclasses
import json
import statistics
import typing


OTHER_CORES_MAX = 0.1


@dataclasses.dataclass
class Metric:
    key: str
    text: str
    unit: str
    more_is_better: bool = False
    goal: typing.Optional[float] = None
    absolute: bool = False  # the goal is for Vigil's number itself, not for its ratio to etcd's
    digits: int = 0


# The goals are those of the table this run has to answer; a metric without one is told only.
METRICS = [
    Metric("put_one.p50_us", "put, 1 client, p50", "µs", goal=1 / 2),
    Metric("put_one.p99_us", "put, 1 client, p99", "µs"),
    Metric("put_many.rate", "put, 100 connections, 1000 in flight", "/s", True, goal=8),
    Metric("put_many.cpu_us", "— server CPU for each", "µs", goal=1 / 10, digits=2),
    Metric("put_many.p99_us", "— p99", "µs"),
    Metric("get.rate", "get of one key, 10 connections, 100 in flight", "/s", True, goal=10),
    Metric("get.cpu_us", "— server CPU for each", "µs", goal=1 / 10, digits=2),
    Metric("get.p99_us", "— p99", "µs"),
    Metric("list.cpu_ms", "list of 10,000 keys overwritten in random order, server CPU", "ms",
           goal=1 / 8, digits=2),
    Metric("list.p50_ms", "— p50", "ms", digits=2),
    Metric("million.anonymous_mb", "1,000,000 keys loaded, anonymous memory", "MB", goal=160,
           absolute=True),
    Metric("million.anonymous_after_restart_mb", "— after a restart", "MB"),
    Metric("million.restart_s", "— restart to the first get", "s", goal=0.6, absolute=True,
           digits=2),
    Metric("million.load_rate", "— loaded at", "/s", True),
    Metric("idle.anonymous_mb", "idle, anonymous memory", "MB", goal=3, absolute=True, digits=1),
    Metric("put_many.generator_cpu_us", "generator's CPU for each put", "µs", digits=2),
    Metric("get.generator_cpu_us", "generator's CPU for each get", "µs", digits=2),
]


def middle(values):
    return {"median": statistics.median(values), "min": min(values), "max": max(values),
            "samples": values}


def reached(metric, vigil, etcd):
    if metric.goal is None or vigil is None or (etcd is None and not metric.absolute):
        return None
    value = vigil["median"] if metric.absolute else vigil["median"] / etcd["median"]
    return value >= metric.goal if metric.more_is_better else value <= metric.goal


def latencies(samples):
    """Median and p99 by row and server, for the plot."""
    rows = {}
    for row in ("put_one", "put_many", "get"):
        p50, p99 = samples.get(f"{row}.p50_us", {}), samples.get(f"{row}.p99_us", {})
        rows[row] = {name: [statistics.median(p50[name]), statistics.median(p99[name])]
                     for name in p50 if name in p99}
    return rows


def summarize(samples, machine, seconds):
    metrics = []
    for metric in METRICS:
        by_server = {name: middle(values) for name, values in samples.get(metric.key, {}).items()}
        vigil, etcd = by_server.get("vigil"), by_server.get("etcd")
        if not by_server:
            continue
        both = vigil and etcd and etcd["median"]
        metrics.append({**dataclasses.asdict(metric), "vigil": vigil, "etcd": etcd,
                        "ratio": vigil["median"] / etcd["median"] if both else None,
                        "reached": reached(metric, vigil, etcd)})
    return {"machine": machine, "seconds": seconds, "metrics": metrics,
            "latency_us": latencies(samples), "other_cores": other_cores(samples)}


def other_cores(samples):
    """The most that strangers worked during any round."""
    return max((v for values in samples.get("other_cores", {}).values() for v in values), default=0)


def number(metric, value):
    return f"{value:,.{metric['digits']}f}"


def cell(metric, found):
    """The median, and how far the rounds lay from it."""
    if found is None:
        return "–"
    text = f"{number(metric, found['median'])} {metric['unit']}"
    if len(found["samples"]) > 1 and found["median"]:
        spread = max(found["max"] - found["median"], found["median"] - found["min"])
        text += f" ±{100 * spread / found['median']:.0f} %"
    return text


def ratio_text(metric):
    if metric["ratio"] is None:
        return "–"
    if metric["more_is_better"] or metric["ratio"] >= 1:
        return f"{metric['ratio']:.2f} ×"
    return f"1/{1 / metric['ratio']:.1f}"


def goal_text(metric):
    if metric["goal"] is None:
        return ""
    if metric["absolute"]:
        return f"at most {metric['goal']:g} {metric['unit']}"
    if metric["more_is_better"]:
        return f"at least {metric['goal']:g} ×"
    return f"at most 1/{1 / metric['goal']:g}"


def table(results):
    lines = ["| work | etcd | Vigil | Vigil to etcd | goal | |", "| --- | ---: | ---: | ---: | --- | --- |"]
    for metric in results["metrics"]:
        mark = {True: "reached", False: "**missed**", None: ""}[metric["reached"]]
        lines.append(f"| {metric['text']} | {cell(metric, metric['etcd'])} | "
                     f"{cell(metric, metric['vigil'])} | {ratio_text(metric)} | "
                     f"{goal_text(metric)} | {mark} |")
    return "\n".join(lines)


def warning(results):
    """Strangers' work steals cores and caches: past a tenth of a core, measure again."""
    text = f"at most {results['other_cores']:.2f} cores in any round"
    if results["other_cores"] > OTHER_CORES_MAX:
        text += ": **not a quiet machine, do not trust these numbers**"
    return text


def page(results):
    m = results["machine"]
    return f"""# Vigil and etcd on the same machine

Written by `make bench`; how to read it is in [bench/README.md](../README.md). 256-byte values, no TLS, everything
on loopback, a fresh server and data directory for each round. Medians of the rounds; ± is the round farthest from it.

{table(results)}

![Bars for each row of the table](overview.svg)

![Quantiles of latency](latency.svg)

| | |
| --- | --- |
| date | {m['date']} |
| machine | {m['cores']} cores, {m['cpu']} ({m['architecture']}), {m['memory_gb']} GB, Linux {m['kernel']} |
| disk | {m['filesystem']}, fdatasync of 4 KiB {m['fdatasync_us']} µs |
| Vigil | {m['vigil']}, commit {m['commit']} |
| etcd | {m['etcd']} |
| took | {results['seconds']:.0f} s |
| other work on the machine | {warning(results)} |
"""


def write(results, directory):
    (directory / "latest.json").write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n")
    (directory / "README.md").write_text(page(results))
