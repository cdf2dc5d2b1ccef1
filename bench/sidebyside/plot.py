"""SVG by hand: bars for each row, and quantiles of latency. Readable on light and dark pages."""
import math
from xml.sax.saxutils import escape

from sidebyside import report

WIDTH = 860
STYLE = """
  text { font: 13px system-ui, sans-serif; fill: #24292f; }
  .small { font-size: 11px; fill: #57606a; }
  .title { font-size: 15px; font-weight: 600; }
  .etcd { fill: #8c959f; stroke: #8c959f; }
  .vigil { fill: #0969da; stroke: #0969da; }
  .goal { stroke: #bc4c00; stroke-width: 2; }
  .goal-text { font-size: 11px; fill: #bc4c00; }
  .grid { stroke: #d0d7de; stroke-width: 1; }
  .line { fill: none; stroke-width: 2; }
  .dash { stroke-dasharray: 5 4; }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3; } .small { fill: #9198a1; } .grid { stroke: #3d444d; }
    .etcd { fill: #768390; stroke: #768390; } .vigil { fill: #4493f8; stroke: #4493f8; }
    .goal { stroke: #f0883e; } .goal-text { fill: #f0883e; }
  }
"""


def svg(height, title, parts):
    body = "\n".join(parts)
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
            f'width="{WIDTH}" height="{height}" role="img">\n<title>{escape(title)}</title>\n'
            f"<style>{STYLE}</style>\n{body}\n</svg>\n")


def text(x, y, words, kind="", anchor="start"):
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}" text-anchor="{anchor}">{escape(words)}</text>'


def bar(x, y, width, kind):
    return f'<rect x="{x}" y="{y}" width="{max(width, 1):.1f}" height="14" rx="2" class="{kind}"/>'


def goal_value(metric):
    if metric["goal"] is None:
        return None
    if metric["absolute"]:
        return metric["goal"]
    return metric["etcd"]["median"] * metric["goal"] if metric["etcd"] else None


def full_names(metrics):
    """A row that begins with a dash continues the one before it."""
    head = ""
    for metric in metrics:
        if metric["text"].startswith("—"):
            yield f"{head}: {metric['text'][2:]}", metric
        else:
            head = metric["text"].split(", p50")[0].split(", server CPU")[0].split(", anonymous")[0]
            yield metric["text"], metric


def bars(metric, y):
    """Both servers and the goal on a scale of their own."""
    left, room = 70, WIDTH - 70 - 150
    goal = goal_value(metric)
    values = {name: metric[name]["median"] for name in ("etcd", "vigil") if metric[name]}
    scale = room / (max([*values.values(), goal or 0]) or 1)
    parts = []
    for line, (name, label) in enumerate(zip(("etcd", "vigil"), report.subjects(metric))):
        if name not in values:
            continue
        top = y + 8 + line * 18
        width = values[name] * scale
        parts += [text(left - 8, top + 11, label, "small", "end"),
                  bar(left, top, width, name),
                  text(left + max(width, 1) + 6, top + 12,
                       f"{report.number(metric, values[name])} {metric['unit']}")]
    if goal is not None:
        x = left + goal * scale
        parts += [f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{y + 4}" y2="{y + 44}" class="goal"/>']
    return parts


def overview(results):
    shown = [(n, m) for n, m in full_names(results["metrics"]) if m["goal"] is not None]
    parts = [text(12, 26, "Vigil and etcd, same machine, same run", "title"),
             text(12, 44, "each row on a scale of its own; the upright line is the goal", "small")]
    y = 66
    for name, metric in shown:
        better = "more is better" if metric["more_is_better"] else "less is better"
        mark = {True: "reached", False: "missed", None: "not measured"}[metric["reached"]]
        parts += [text(12, y, name), text(WIDTH - 12, y, f"{better}; goal {report.goal_text(metric)}: "
                                          f"{mark}", "small", "end")]
        parts += bars(metric, y)
        y += 70
    return svg(y - 10, "Vigil and etcd side by side", parts)


def latency(results):
    """Median and p99 of each load, as a dot and a line, on a logarithmic scale."""
    rows = [("put, 1 client", "put_one"), ("put, 1000 in flight", "put_many"),
            ("get, 100 in flight", "get")]
    found = results["latency_us"]
    values = [v for by in found.values() for pair in by.values() for v in pair]
    if not values:
        return svg(40, "no latencies were measured", [text(12, 24, "no latencies were measured")])
    low = 10 ** math.floor(math.log10(min(values)))
    high = 10 ** math.ceil(math.log10(max(values)))
    left, room = 220, WIDTH - 220 - 40

    def at(value):
        return left + room * math.log10(value / low) / math.log10(high / low)

    bottom = 70 + 56 * len(rows)
    parts = [text(12, 26, "Latency seen by the client: from the median (dot) to p99", "title")]
    tick = low
    while tick <= high:
        label = f"{tick:g} µs" if tick < 1000 else f"{tick / 1000:g} ms"
        parts += [f'<line x1="{at(tick):.1f}" x2="{at(tick):.1f}" y1="44" y2="{bottom - 16}" '
                  'class="grid"/>', text(at(tick), bottom, label, "small", "middle")]
        tick *= 10
    for line, (name, key) in enumerate(rows):
        y = 64 + 56 * line
        parts.append(text(left - 70, y + 14, name, "", "end"))
        for offset, server in enumerate(("etcd", "vigil")):
            if server not in found.get(key, {}):
                continue
            p50, p99 = found[key][server]
            row_y = y + 4 + 16 * offset
            parts += [text(left - 12, row_y + 4, "Vigil" if server == "vigil" else server, "small",
                           "end"),
                      f'<line x1="{at(p50):.1f}" x2="{at(p99):.1f}" y1="{row_y}" y2="{row_y}" '
                      f'class="line {server}"/>',
                      f'<circle cx="{at(p50):.1f}" cy="{row_y}" r="5" class="{server}"/>']
    return svg(bottom + 14, "latency", parts)


def write(results, directory):
    (directory / "overview.svg").write_text(overview(results))
    (directory / "latency.svg").write_text(latency(results))
