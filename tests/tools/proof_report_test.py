#!/usr/bin/python3
"""The test and benchmark report: it is what the committed data make, and it hides nothing."""
import importlib.machinery
import importlib.util
import json
import math
import pathlib
import re
import sys
import tempfile
import unittest
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "bench")]
sys.dont_write_bytecode = True

from proof import chart, data, pages  # noqa: E402
from sidebyside import report as bench_report, slope  # noqa: E402

LOADER = importlib.machinery.SourceFileLoader("write_report", str(ROOT / "tools/write-report"))
write_report = importlib.util.module_from_spec(importlib.util.spec_from_loader("write_report", LOADER))
LOADER.exec_module(write_report)

MACHINE = {key: "x" for key in ("date", "cores", "cpu", "architecture", "memory_gb", "kernel", "filesystem", "fdatasync_us", "commit",
                                "vigil", "etcd")}
PART = {"part": "power", "command": "make power", "commit": "abc", "date": "today", "seconds": 12.0,
        "facts": [["images <opened>", 10000, ""]],
        "rows": [{"row": "lost writes", "value": 3, "unit": "", "goal": 0, "met": False},
                 {"row": "images opened", "value": 10000, "unit": "", "goal": 10000, "met": True},
                 {"row": "torn sectors", "value": None, "unit": "", "goal": 5, "met": None}],
        "tables": [{"title": "Each <disk>", "columns": ["disk", "images", "time, s"], "rows": [["one", 4000, 1.5], ["two", 6000, 2.0]]}],
        "plots": [{"title": "cost", "x": "n", "y": "s", "log": True, "series": [{"name": "line", "points": [[1, 2], [10, 20]]}]},
                  {"title": "time", "x": "s", "y": "MB", "log": False, "series": [{"name": "flat", "points": [[0, 0], [9, 0]]}]},
                  {"title": "nothing", "x": "s", "y": "MB", "log": True, "series": []}]}


class Committed(unittest.TestCase):
    def test_pages_are_what_the_data_make(self):
        self.assertEqual(write_report.wrong_files(ROOT), [], "run make report")


class Made(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.root = pathlib.Path(scratch.name)

    def store(self, path, content):
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content if isinstance(content, str) else json.dumps(content))

    def bench(self, samples):
        self.store("bench/results/latest.json", bench_report.summarize(samples, MACHINE, 1.0))

    def pages(self):
        files = write_report.files_of(self.root)
        xml.etree.ElementTree.fromstring(files["report.html"].split("\n", 1)[1])
        for name, text in files.items():
            if name.endswith(".svg"):
                xml.etree.ElementTree.fromstring(text)
        return files

    def line_of(self, text, words):
        return next(line for line in text.splitlines() if words in line and (line.startswith("|") or line.startswith("<tr>")))

    def test_without_any_data_everything_is_not_measured_and_not_run(self):
        files = self.pages()
        goals = sum(metric.goal is not None for metric in bench_report.METRICS)
        self.assertIn(f"| rows not measured | {goals} |", files["README.md"])
        self.assertIn("| goals reached | 0 |", files["README.md"])
        for name, (title, command) in data.PARTS.items():
            self.assertEqual(f"# {title}\n\nNot run: `{command}`.\n", files[f"{name}.md"])
            self.assertIn(f"| [{title}]({name}.md) | – |", files["README.md"])
        self.assertIn(f"| [{pages.BENCH[0]}](bench.md) | {goals - sum(m.goal is not None and m.growth for m in bench_report.METRICS)} "
                      "not measured |", files["README.md"])

    def test_row_below_its_goal_is_missed(self):
        self.bench({"idle.anonymous_mb": {"vigil": [99.0]}, "get.rate": {"vigil": [500.0], "etcd": [10.0]}})
        files = self.pages()
        self.assertIn("| **missed** |", self.line_of(files["bench.md"], "idle, anonymous memory"))
        self.assertIn("| reached |", self.line_of(files["bench.md"], "get of one key, 10 connections"))
        self.assertIn('<td class="missed">missed</td>', self.line_of(files["report.html"], "idle, anonymous memory"))
        self.assertRegex(files["README.md"], "Missed:\n\n- idle, anonymous memory: 99.0 MB; goal: at most 3 MB\n")

    def test_goal_of_today_decides_about_stored_samples(self):
        self.bench({"idle.anonymous_mb": {"vigil": [99.0]}})
        stored = json.loads((self.root / "bench/results/latest.json").read_text())
        stored["metrics"][0] |= {"goal": 1000, "reached": True}
        self.store("bench/results/latest.json", stored)
        self.assertIn("**missed**", self.line_of(self.pages()["bench.md"], "idle, anonymous memory"))

    def test_row_that_was_not_measured_says_so(self):
        self.bench({"get.rate": {"vigil": [500.0], "etcd": [10.0]}})
        self.assertIn("| – | – | – | at most 3 MB | not measured |", self.line_of(self.pages()["bench.md"], "idle, anonymous memory"))

    def test_part_shows_facts_rows_tables_and_plots(self):
        self.store("docs/report/data/power.json", PART)
        files = self.pages()
        for line in ("| images <opened> | 10,000 |", "| lost writes | 3 | 0 | **missed** |", "| torn sectors | – | 5 | not measured |",
                     "| images opened | 10,000 | 10,000 | reached |", "![power-3](plots/power-3.svg)", "## Each <disk>",
                     "| one | 4,000 | 1.5 |  |"):
            self.assertIn(line, files["power.md"])
        self.assertIn("| [Power loss](power.md) | 1 reached, 1 missed, 1 not measured |", files["README.md"])
        self.assertIn("<h3>Each &lt;disk&gt;</h3>", files["report.html"])
        self.assertIn("<td>two</td><td>6,000</td><td>2</td>", files["report.html"])
        self.assertIn("line: slope 1.00", files["plots/power-1.svg"])
        self.assertIn("nothing: no data", files["plots/power-3.svg"])
        self.assertEqual(files["report.html"].count("<svg"), 4)

    def test_part_with_a_new_name_is_shown(self):
        self.store("docs/report/data/other.json", {**PART, "part": "other"})
        files = self.pages()
        self.assertIn("# Other\n", files["other.md"])
        self.assertIn("| [Other](other.md) | 1 reached, 1 missed, 1 not measured |", files["README.md"])

    def test_findings_are_in_both_pages(self):
        self.store("docs/report/data/found.md", "- A lost `write` (a1b2c3d).\n- Another.\n")
        files = self.pages()
        self.assertIn("- A lost `write` (a1b2c3d).", files["faults.md"])
        self.assertIn("<li>A lost <code>write</code> (a1b2c3d).</li>", files["report.html"])

    def test_page_needs_nothing_else(self):
        self.store("docs/report/data/power.json", PART)
        self.assertIsNone(re.search(r"(src|href)=\"(?!#)|url\(|<script|@import", self.pages()["report.html"]))

    def test_pages_that_are_old_or_left_over_are_named(self):
        files = self.pages()
        directory = self.root / "docs/report"
        write_report.write(files, directory)
        self.assertEqual(write_report.differences(files, directory), [])
        (directory / "README.md").write_text("old")
        (directory / "plots/left.svg").write_text("")
        (directory / "left.md").write_text("")
        self.assertEqual(write_report.differences(files, directory), ["README.md", "left.md", "plots/left.svg"])
        write_report.write(files, directory)
        self.assertEqual(write_report.differences(files, directory), [])


class Charts(unittest.TestCase):
    def test_slope_is_the_exponent(self):
        for power in (0, 0.5, 1, 2):
            self.assertAlmostEqual(chart.slope_of([(n, 3 * n ** power) for n in (10, 100, 1000)]), power)
        self.assertIsNone(chart.slope_of([(10, 1), (10, 2)]))

    def test_negative_costs_have_no_part_of_their_goal(self):
        metric = {"goal": 0.3, "reached": True, "absolute": True, "more_is_better": False}
        self.assertAlmostEqual(data.part_of_goal({**metric, "vigil": {"median": 0.1}}), 3)
        self.assertIsNone(data.part_of_goal({**metric, "vigil": {"median": -0.1}}))

    def test_growth_is_compared_with_n_log_n(self):
        sizes = (10, 100, 1000)
        self.assertAlmostEqual(slope.part_of_n_log_n([(n, 3 * n * math.log(n)) for n in sizes]), 1)
        self.assertLess(slope.part_of_n_log_n([(n, n) for n in sizes]), 0.9)
        self.assertGreater(slope.part_of_n_log_n([(n, n ** 1.5) for n in sizes]), 1.1)
        self.assertIsNone(slope.part_of_n_log_n([(10, 1), (10, 2)]))

    def test_rows_far_from_their_goals_stay_on_the_page(self):
        rows = [data.Row("far", [], data.REACHED, 1e6), data.Row("missed", [], data.MISSED, 0.001)]
        places = [float(x) for x in re.findall(r'<rect x="([\d.-]+)"', chart.goals(rows))]
        self.assertTrue(all(0 <= x <= pages.bench_plot.WIDTH for x in places))


if __name__ == "__main__":
    unittest.main()
