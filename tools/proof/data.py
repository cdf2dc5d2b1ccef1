"""What the report is made of: the results of `make bench` and `make bench-growth`, and one file for each other part of the tests.

A part's file, docs/report/data/PART.json, is written by its program:

    {"part": "power", "command": "make power", "commit": "…", "date": "…", "seconds": 1.0,
     "facts": [["crash images opened", 10000, ""]],
     "rows": [{"row": "…", "value": 1.0, "unit": "", "goal": 1.0, "met": true}],
     "tables": [{"title": "", "columns": ["…", "s"], "rows": [["…", 1.0]]}],
     "plots": [{"title": "", "x": "", "y": "", "log": true, "series": [{"name": "", "points": [[1, 2]]}]}]}
"""
import dataclasses
import json
import pathlib
import re
import typing

from sidebyside import report as bench_report

# In the order of the report. A part without a file was not run, which the report says.
PARTS = {"sim": ("Simulation of the whole server", "make sim"), "histories": ("Histories of clients", "make histories"),
         "tier": ("Kills of the watch tier and of what is behind it", "make tier-kills"),
         "nodes": ("Simulated nodes", "make scale"), "power": ("Power loss", "make power"),
         "fuzz": ("Fuzzing", "make fuzz"), "soak": ("Soak", "make soak T=1800"),
         "builds": ("Compilers, sanitizers and hardening", "make clang msan tsan hardening")}
REACHED, MISSED, NOT_MEASURED, SHOWN = "reached", "missed", "not measured", ""
OTHER_WORK = "other work on the machine"


@dataclasses.dataclass
class Row:
    """One line of a table: what is measured, the cells, and whether its goal is reached."""
    text: str
    cells: list
    verdict: str
    result: str = ""  # beside the goal
    goal: str = ""
    label: str = ""  # in the table, where a row continues the one above; empty: the text
    part_of_goal: typing.Optional[float] = None  # 1: exactly the goal; more is better


@dataclasses.dataclass
class Table:
    title: str
    columns: list
    rows: list
    notes: list = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Part:
    name: str
    title: str
    command: str
    about: list = dataclasses.field(default_factory=list)  # pairs of a name and a text; empty: it was not run
    facts: list = dataclasses.field(default_factory=list)  # the same
    table: typing.Optional[Table] = None
    plots: list = dataclasses.field(default_factory=list)
    details: list = dataclasses.field(default_factory=list)  # tables without goals


@dataclasses.dataclass
class Report:
    bench: list   # of pairs: the machine and the tables
    plots: list   # of the benchmarks
    latency: dict
    parts: list
    found: str    # Markdown

    def rows(self):
        tables = [table for _, tables in self.bench for table in tables] + [part.table for part in self.parts if part.table]
        return [row for table in tables for row in table.rows]


def number(value):
    if isinstance(value, str) or value is None:
        return value or "–"
    if isinstance(value, int) or abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.4g}"


def with_unit(value, unit):
    return f"{number(value)} {unit}".rstrip()


# -- Benchmarks --

def metrics_of(samples, metrics):
    """As the bench summarizes them, with those that have a goal and were not measured. The goals of today decide about the samples,
    not those of the day they were taken."""
    measured = bench_report.summarize(samples, {}, 0, metrics)["metrics"]
    found = {(m["key"], m["goal"], m["text"]): m for m in measured}
    empty = {"vigil": None, "etcd": None, "ratio": None, "reached": None}
    for metric in metrics:
        at = (metric.key, metric.goal, metric.text)
        if at in found:
            yield found[at]
        elif metric.goal is not None:
            yield {**dataclasses.asdict(metric), **empty}


def part_of_goal(metric):
    value = metric["vigil"]["median"] if metric["absolute"] and metric["vigil"] else metric["ratio"]
    if metric["goal"] is None or metric["reached"] is None or not metric["goal"] or not value or value < 0:
        return None
    return value / metric["goal"] if metric["more_is_better"] else metric["goal"] / value


def bench_row(metric, head):
    goes_on = metric["text"].startswith("—")
    text = f"{head}: {metric['text'][2:]}" if goes_on else metric["text"]
    verdict = {True: REACHED, False: MISSED, None: SHOWN if metric["goal"] is None else NOT_MEASURED}[metric["reached"]]
    cells = [bench_report.cell(metric, metric["etcd"]), bench_report.cell(metric, metric["vigil"]),
             bench_report.ratio_text(metric), bench_report.goal_text(metric)]
    result = cells[1] if metric["absolute"] else cells[2]
    return Row(text, cells, verdict, result, cells[3], metric["text"] if goes_on else "", part_of_goal(metric))


def bench_tables(samples, metrics):
    """One for each pair that is compared."""
    tables, head = {}, ""
    for metric in metrics_of(samples, metrics):
        peer, ours = bench_report.subjects(metric)
        columns = ["work", peer, ours, f"{ours} to {peer}", "goal", ""]
        table = tables.setdefault(metric["compared"], Table(f"{ours} beside {peer}", columns, []))
        if not metric["text"].startswith("—"):
            head = metric["text"].split(", p50")[0].split(", server CPU")[0].split(", anonymous")[0].split(", events")[0].split(": ")[0]
        table.rows.append(bench_row(metric, head))
    return list(tables.values())


def machine_of(results):
    machine = results.get("machine")
    if not machine:
        return []
    warning = bench_report.warning(results).replace("**", "")
    return [("date", machine["date"]), ("machine", f"{machine['cores']} cores, {machine['cpu']} ({machine['architecture']}), "
                                        f"{machine['memory_gb']} GB, Linux {machine['kernel']}"),
            ("disk", f"{machine['filesystem']}, fdatasync of 4 KiB {machine['fdatasync_us']} µs"),
            ("Vigil", f"{machine['vigil']}, commit {machine['commit']}"), ("etcd", machine["etcd"]),
            ("took", f"{results['seconds']:.0f} s"), (OTHER_WORK, warning), *bench_report.earlier_runs(results)]


# -- Other parts --

def part_row(row):
    met = row.get("met")
    verdict = {True: REACHED, False: MISSED}.get(met, SHOWN if row.get("goal") is None else NOT_MEASURED)
    result, goal = (with_unit(row.get(key), row.get("unit", "")) for key in ("value", "goal"))
    return Row(row["row"], [result, goal], verdict, result, goal)


def detail_of(stored):
    rows = [Row(str(first), [number(value) for value in others], SHOWN) for first, *others in stored["rows"]]
    return Table(stored["title"], [*stored["columns"], ""], rows)


def short_commit(name):
    """Eight digits, as everywhere in the report, and -dirty if it is."""
    return re.sub(r"^([0-9a-f]{8})[0-9a-f]+", r"\1", name)


def short_date(date):
    """As the benchmarks write it."""
    return re.sub(r"^([0-9-]{10})T([0-9]{2}:[0-9]{2}).*", r"\1 \2 UTC", date)


def part_of(stored):
    title, command = PARTS.get(stored["part"], (stored["part"].capitalize(), stored["command"]))
    about = [("command", stored["command"]), ("commit", short_commit(stored["commit"])), ("date", short_date(stored["date"])),
             ("took", f"{number(round(stored['seconds']))} s")]
    rows = [part_row(row) for row in stored.get("rows", [])]
    table = Table(title, ["row", "value", "goal", ""], rows) if rows else None
    return Part(stored["part"], title, command, about, [(name, with_unit(value, unit)) for name, value, unit in stored["facts"]],
                table, stored.get("plots", []), [detail_of(table) for table in stored.get("tables", [])])


def parts_of(directory):
    found = {}
    for file in sorted(directory.glob("*.json")):
        stored = json.loads(file.read_text())
        found[stored["part"]] = part_of(stored)
    missing = [Part(name, *PARTS[name]) for name in PARTS if name not in found]
    order = list(PARTS)
    return sorted([*found.values(), *missing], key=lambda part: (order.index(part.name) if part.name in order else len(order), part.name))


def stored_results(file):
    return json.loads(file.read_text()) if file.exists() else {}


def read(root):
    """Everything that is committed under a root."""
    root = pathlib.Path(root)
    usual, growth = (stored_results(root / "bench/results" / name) for name in ("latest.json", "growth.json"))
    usual_metrics = [m for m in bench_report.METRICS if not m.growth]
    growth_metrics = [m for m in bench_report.METRICS if m.growth]
    found = root / "docs/report/data/found.md"
    return Report([(machine_of(usual), bench_tables(bench_report.samples_of(usual), usual_metrics)),
                   (machine_of(growth), bench_tables(bench_report.samples_of(growth), growth_metrics))],
                  growth.get("plots", []), usual.get("latency_us", {}), parts_of(root / "docs/report/data"),
                  found.read_text() if found.exists() else "")
