"""The table of results in the project's README.md, which is written between two marks."""
from sidebyside import report as bench_report

BEGIN, END = "<!-- written by make report -->\n", "<!-- end -->\n"
ROWS = (("put, one client, median", "put_one.p50_us"), ("puts, 1,000 in flight", "put_many.rate"),
        ("gets of one key, 100 in flight", "get.rate"), ("list of 10,000 keys, median", "list.p50_ms"),
        ("events to 100 watchers of one key on one stream", "one_stream.rate"), ("memory with 1,000,000 keys", "million.anonymous_mb"),
        ("restart with 1,000,000 keys, until the first get", "million.restart_s"))


def cell(metric, server):
    return f"{bench_report.number(metric, metric[server]['median'])} {metric['unit']}"


def table(results):
    found = {metric["key"]: metric for metric in results["metrics"]}
    lines = [f"| {text} | {cell(found[key], 'etcd')} | {cell(found[key], 'vigil')} |" for text, key in ROWS]
    return "\n".join(["| | etcd | Vigil |", "| --- | ---: | ---: |", *lines]) + "\n"


def updated(text, results):
    """README.md with the present results."""
    before, rest = text.split(BEGIN)
    return before + BEGIN + table(results) + END + rest.split(END, 1)[1]
