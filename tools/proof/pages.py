"""The report as one HTML page that needs nothing else, and as Markdown: a summary, and a page for each part with its plots."""
import re
from html import escape

from proof import chart, data
from sidebyside import plot as bench_plot

INTRO = ("This report shows how Vigil was tested and measured. `make report` generates it from data that the test programs "
         "wrote themselves: `bench/results/` and `docs/report/data/`. A row that was not measured says so.")
LIMITS = ("What the report does not show: each part names the commit at which it ran, and later changes of the code were not measured "
          "again. The fuzzers ran before their commits were put in order; the commit that is named has the same code. "
          "`make test`, `make conformance`, `make e2e`, `make kube` and `make cluster` only pass or fail, so they have no numbers here. "
          "All runs were on virtual machines with two x86-64 cores, power failures were simulated, "
          "and no run was longer than an hour and a half.")
BENCH = ("Side by side on one machine", "`bench/README.md` explains the measurements. Each number is the median of its rounds; ± is the "
         "round farthest from it. Numbers without ± come from a single round. The fourth column is the third divided by the second.")
GROWTH = ("Large sizes and growth", "Measured by `make bench-growth`. A slope is that of a line fitted to the points on "
          "logarithmic scales: 1 is linear growth, and n log n is about 1.1 over these sizes.")
FOUND = ("Faults that were found", "Faults that these and our other tests found in Vigil, and the commits that fixed them.")

STYLE = """
 body { font: 15px/1.5 system-ui, sans-serif; max-width: 980px; margin: 24px auto; padding: 0 16px; color: #24292f; background: #fff }
 h1 { font-size: 26px } h2 { margin-top: 40px; border-bottom: 1px solid #d0d7de; padding-bottom: 4px } h3 { margin-top: 28px }
 table { border-collapse: collapse; margin: 12px 0; font-size: 13px }
 th, td { border-bottom: 1px solid #d0d7de; padding: 4px 10px; text-align: left; vertical-align: top }
 table.numbers td:not(:first-child):not(:last-child) { text-align: right; white-space: nowrap }
 .reached { color: #1a7f37 } .missed { color: #cf222e; font-weight: 600 } .unknown { color: #9a6700 }
 .cards { display: flex; gap: 12px; flex-wrap: wrap }
 .card { border: 1px solid #d0d7de; border-radius: 6px; padding: 8px 18px; text-align: center }
 .card b { display: block; font-size: 26px } code { font-size: 13px; background: #f0f2f4; padding: 1px 4px; border-radius: 3px }
 svg { max-width: 100%; height: auto; margin: 8px 0 } a { color: #0969da }
 @media (prefers-color-scheme: dark) { body { color: #e6edf3; background: #0d1117 } th, td, h2, .card { border-color: #3d444d }
  code { background: #262c36 } a { color: #4493f8 } .reached { color: #3fb950 } .missed { color: #f85149 } .unknown { color: #d29922 } }
"""


def counts_of(report):
    verdicts = [row.verdict for row in report.rows()]
    return [(verdicts.count(data.REACHED), "goals reached"), (verdicts.count(data.MISSED), "goals missed"),
            (verdicts.count(data.NOT_MEASURED), "rows not measured"), (sum(bool(part.about) for part in report.parts), "parts run"),
            (sum(not part.about for part in report.parts), "parts not run")]


def plots_of(report):
    """All plots by their file names."""
    found = {"goals": chart.goals(report.rows())}
    if any(report.latency.values()):
        found["latency"] = bench_plot.latency({"latency_us": report.latency})
    found |= {f"growth-{index + 1}": chart.lines(plot) for index, plot in enumerate(report.plots)}
    for part in report.parts:
        found |= {f"{part.name}-{index + 1}": chart.lines(plot) for index, plot in enumerate(part.plots)}
    return found


def warnings_of(report):
    """Of measurements that are not to be trusted."""
    return [f"{heading[0]}: other work on the machine took {value}." for heading, (machine, _) in zip((BENCH, GROWTH), report.bench)
            for name, value in machine if name == data.OTHER_WORK and "not a quiet machine" in value]


def missed_rows(report):
    return [row for row in report.rows() if row.verdict == data.MISSED]


def missed_text(row):
    return f"{row.text}: {row.result}; goal: {row.goal}"


# -- Markdown --

def cell(text):
    return text.replace("|", "\\|")


def markdown_table(columns, rows):
    lines = ["| " + " | ".join(map(cell, columns)) + " |", "| --- |" + " ---: |" * (len(columns) - 2) + " --- |"]
    for row in rows:
        verdict = f"**{row.verdict}**" if row.verdict == data.MISSED else row.verdict
        lines.append("| " + " | ".join(cell(text) for text in [row.label or row.text, *row.cells, verdict]) + " |")
    return "\n".join(lines)


def markdown_pairs(pairs):
    return "\n".join(["| | |", "| --- | --- |", *(f"| {cell(name)} | {cell(value)} |" for name, value in pairs)])


def markdown_image(name):
    return f"![{name}](plots/{name}.svg)"


def markdown_bench(heading, machine, tables, images):
    yield f"# {heading[0]}\n\n{heading[1]}"
    yield markdown_pairs(machine) if machine else "Not measured."
    for table in tables:
        yield f"## {table.title}\n\n{markdown_table(table.columns, table.rows)}"
    yield from map(markdown_image, images)


def markdown_part(part):
    yield f"# {part.title}"
    if not part.about:
        yield f"Not run: `{part.command}`."
        return
    yield markdown_pairs([*part.about, *part.facts])
    if part.table:
        yield markdown_table(part.table.columns, part.table.rows)
    for table in part.details:
        yield f"## {table.title}\n\n{markdown_table(table.columns, table.rows)}"
    yield from (markdown_image(f"{part.name}-{index + 1}") for index in range(len(part.plots)))


def verdicts_text(rows):
    """How many rows of a page have reached and missed their goals."""
    counts = [(sum(row.verdict == verdict for row in rows), verdict) for verdict in (data.REACHED, data.MISSED, data.NOT_MEASURED)]
    return ", ".join(f"{number} {verdict}" for number, verdict in counts if number) or "–"


def contents_of(report):
    """The pages: their names, titles, and the rows on them."""
    for name, heading, (_, tables) in zip(("bench", "growth"), (BENCH, GROWTH), report.bench):
        yield name, heading[0], [row for table in tables for row in table.rows]
    for part in report.parts:
        yield part.name, part.title, part.table.rows if part.table else []


def markdown_summary(report):
    rows = [f"| [{title}]({name}.md) | {verdicts_text(rows)} |" for name, title, rows in contents_of(report)]
    rows.append(f"| [{FOUND[0]}](faults.md) | {sum(line.startswith('- ') for line in report.found.splitlines())} faults |")
    yield "# Test and benchmark report"
    yield (INTRO.replace("`bench/results/`", "[bench/results](../../bench/results/README.md)")
           + " The whole report on one page: `docs/report/report.html`.")
    yield LIMITS
    yield markdown_pairs([(name, str(number)) for number, name in counts_of(report)])
    yield from warnings_of(report)
    if missed_rows(report):
        yield "Missed:\n\n" + "\n".join(f"- {missed_text(row)}" for row in missed_rows(report))
    yield "\n".join(["| part | result |", "| --- | --- |", *rows])
    yield markdown_image("goals")


def markdown(report):
    """The pages by their file names."""
    plots = plots_of(report)
    pages = {"README.md": markdown_summary(report),
             "bench.md": markdown_bench(BENCH, *report.bench[0], [name for name in plots if name == "latency"]),
             "growth.md": markdown_bench(GROWTH, *report.bench[1], [name for name in plots if name.startswith("growth-")]),
             **{f"{part.name}.md": markdown_part(part) for part in report.parts},
             "faults.md": [f"# {FOUND[0]}\n\n{FOUND[1]}", report.found.strip() or "Nothing is recorded yet."]}
    return {name: "\n\n".join(blocks) + "\n" for name, blocks in pages.items()}


# -- HTML --

def inline(text):
    """Code and links of Markdown."""
    text = re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text, quote=False))
    text = re.sub(r"\*\*([^*]+)\*\*", r"<b>\1</b>", text)
    return re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", text)


def html_of_markdown(text):
    """Paragraphs, headings and lists, which is all that found.md has."""
    parts, items = [], []
    for line in [*text.strip().splitlines(), ""]:
        if line.startswith("- "):
            items.append(f"<li>{inline(line[2:])}</li>")
            continue
        if items:
            parts.append("<ul>" + "\n".join(items) + "</ul>")
            items = []
        if line.startswith("#"):
            parts.append(f"<h3>{inline(line.lstrip('# '))}</h3>")
        elif line.strip():
            parts.append(f"<p>{inline(line)}</p>")
    return "\n".join(parts)


def html_verdict(verdict):
    kind = {data.REACHED: "reached", data.MISSED: "missed", data.NOT_MEASURED: "unknown"}.get(verdict, "")
    return f'<td class="{kind}">{verdict}</td>'


def html_table(columns, rows):
    head = "".join(f"<th>{escape(column)}</th>" for column in columns)
    texts = [[row.label or row.text, *row.cells] for row in rows]
    lines = ["<tr>" + "".join(f"<td>{escape(text)}</td>" for text in cells) + html_verdict(row.verdict) + "</tr>"
             for row, cells in zip(rows, texts)]
    return f'<table class="numbers"><tr>{head}</tr>\n' + "\n".join(lines) + "</table>"


def html_pairs(pairs):
    return "<table>" + "\n".join(f"<tr><td>{escape(name)}</td><td>{escape(value)}</td></tr>" for name, value in pairs) + "</table>"


def html_heading(name, title):
    return f'<h2 id="{name}">{escape(title)}</h2>'


def html_bench(name, heading, machine, tables, images):
    yield html_heading(name, heading[0])
    yield f"<p>{inline(heading[1])}</p>"
    yield html_pairs(machine) if machine else '<p class="unknown">Not measured.</p>'
    yield from images
    for table in tables:
        yield f"<h3>{escape(table.title)}</h3>\n{html_table(table.columns, table.rows)}"


def html_part(part, plots):
    yield html_heading(part.name, part.title)
    if not part.about:
        yield f'<p class="unknown">Not run: <code>{escape(part.command)}</code>.</p>'
        return
    yield html_pairs([*part.about, *part.facts])
    if part.table:
        yield html_table(part.table.columns, part.table.rows)
    for table in part.details:
        yield f"<h3>{escape(table.title)}</h3>\n{html_table(table.columns, table.rows)}"
    yield from (plots[f"{part.name}-{index + 1}"] for index in range(len(part.plots)))


def html(report):
    plots = plots_of(report)
    links = [("bench", BENCH[0]), ("growth", GROWTH[0]), *((part.name, part.title) for part in report.parts), ("found", FOUND[0])]
    cards = "".join(f'<div class="card"><b>{number}</b>{name}</div>' for number, name in counts_of(report))
    blocks = ["<h1>Test and benchmark report</h1>", f"<p>{inline(INTRO)}</p>", f"<p>{inline(LIMITS)}</p>",
              f'<div class="cards">{cards}</div>',
              *(f'<p class="unknown">{escape(warning)}</p>' for warning in warnings_of(report)),
              "<p>" + " · ".join(f'<a href="#{name}">{escape(title)}</a>' for name, title in links) + "</p>"]
    if missed_rows(report):
        lines = "\n".join(f'<li class="missed">{escape(missed_text(row))}</li>' for row in missed_rows(report))
        blocks.append(f"<p>Missed:</p><ul>{lines}</ul>")
    blocks.append(plots["goals"])
    blocks += html_bench("bench", BENCH, *report.bench[0], [plots[name] for name in plots if name == "latency"])
    blocks += html_bench("growth", GROWTH, *report.bench[1], [plots[name] for name in plots if name.startswith("growth-")])
    for part in report.parts:
        blocks += html_part(part, plots)
    found = html_of_markdown(report.found) or "<p>Nothing is recorded yet.</p>"
    blocks += [html_heading("found", FOUND[0]), f"<p>{FOUND[1]}</p>", found]
    body = "\n".join(blocks)
    return (f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"/><title>Vigil: test and benchmark report</title>\n'
            f'<meta name="viewport" content="width=device-width"/><style>{STYLE}</style></head>\n<body>\n{body}\n</body></html>\n')
