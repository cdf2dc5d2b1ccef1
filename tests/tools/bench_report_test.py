#!/usr/bin/python3
"""The side-by-side report: medians, ratios, goals, and plots that are well formed."""
import collections
import pathlib
import re
import sys
import unittest
import unittest.mock
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))
sys.dont_write_bytecode = True

from sidebyside import plot, report, rows  # noqa: E402

MACHINE = {key: "x" for key in ("date", "cores", "cpu", "architecture", "memory_gb", "kernel",
                                "filesystem", "fdatasync_us", "commit", "vigil", "etcd")}


def results_of(samples):
    return report.summarize(samples, MACHINE, 1.0)


def metric_of(results, key):
    return next(m for m in results["metrics"] if m["key"] == key)


class BenchReport(unittest.TestCase):
    def test_ratio_goals_compare_medians_with_the_peer(self):
        samples = {"put_many.rate": {"vigil": [1, 80, 1000], "etcd": [10, 10, 10]},
                   "put_many.cpu_us": {"vigil": [6.2], "etcd": [61]}}
        results = results_of(samples)
        self.assertTrue(metric_of(results, "put_many.rate")["reached"])
        self.assertFalse(metric_of(results, "put_many.cpu_us")["reached"])

    def test_absolute_goals_need_no_peer(self):
        results = results_of({"idle.anonymous_mb": {"vigil": [2.9]}})
        self.assertTrue(metric_of(results, "idle.anonymous_mb")["reached"])
        self.assertIsNone(metric_of(results, "idle.anonymous_mb")["ratio"])

    def test_absolute_goals_are_minimums_or_maximums(self):
        results = results_of({"thousand.rate": {"vigil": [2.1e6]}, "thousand.p99_ms": {"vigil": [2.1]}})
        self.assertTrue(metric_of(results, "thousand.rate")["reached"])
        self.assertFalse(metric_of(results, "thousand.p99_ms")["reached"])
        text = report.table(results)
        self.assertIn("at least 2,000,000 /s", text)
        self.assertIn("at most 2 ms", text)

    def test_every_measured_number_is_in_the_report(self):
        class Server:
            """Returns ones for every measurement."""
            through, caller = True, unittest.mock.MagicMock()
            resident_bytes = tier_metric = requests_of_tier = staticmethod(lambda *_: 1)

            def __getattr__(self, _):
                return lambda *_, **__: collections.defaultdict(lambda: 1.0)

            def load(self, *_, **__):
                return collections.defaultdict(lambda: 1.0, cpu=collections.defaultdict(lambda: 1.0), operations=1e9)

        class Cluster:
            """Three members that have used more CPU and had more calls whenever they are read."""
            def __init__(self, name):
                self.name, self.read = name, 0.0
                self.direct = self.vigil = self.proxy = self.other = Server()

            def __getattr__(self, _):
                return self.more

            def more(self, *_):
                self.read += 1
                return self.read

        webhook = unittest.mock.MagicMock()
        webhook.return_value.__enter__.return_value.calls.return_value = 0
        known = {m.key for m in report.METRICS} | {"other_cores", "beside.alone"}
        quantiles = re.compile(r".*\.p\d+_(us|ms)$")
        with unittest.mock.patch("subprocess.Popen"), unittest.mock.patch("time.sleep"), \
                unittest.mock.patch("statistics.median"), \
                unittest.mock.patch("sidebyside.kube_rows.pod_bytes", return_value=1), \
                unittest.mock.patch("sidebyside.tier_rows.timed_create", return_value=1.0), \
                unittest.mock.patch.multiple("sidebyside.rule_rows", must=unittest.mock.MagicMock(),
                                             replace=unittest.mock.DEFAULT, await_status=unittest.mock.DEFAULT,
                                             published=unittest.mock.MagicMock(), create_many=lambda *_: (1, 0)), \
                unittest.mock.patch.multiple("sidebyside.webhook_rows", Webhook=webhook,
                                             sizes=unittest.mock.Mock(of=lambda _: 0)):
            Server.caller.return_value.get.return_value = "{}"
            for row in rows.ROWS:
                for server in [Cluster("vigil"), Cluster("etcd")] if row.of_cluster else [Server()]:
                    for key in row.measure(server):
                        self.assertTrue(key in known or quantiles.match(key), key)

    def test_metric_without_goal_or_peer_is_neither_reached_nor_missed(self):
        results = results_of({"get.p99_us": {"vigil": [1], "etcd": [2]},
                              "get.rate": {"vigil": [5]}})
        self.assertIsNone(metric_of(results, "get.p99_us")["reached"])
        self.assertIsNone(metric_of(results, "get.rate")["reached"])

    def test_table_shows_spread_and_verdict(self):
        text = report.table(results_of({"list.cpu_ms": {"vigil": [1, 1.1], "etcd": [12, 12]}}))
        self.assertIn("1.05 ms ±5 %", text)
        self.assertIn("1/11.4", text)
        self.assertIn("| reached |", text)

    def test_nothing_beside_something_has_a_ratio(self):
        text = report.table(results_of({"list.cpu_ms": {"vigil": [0, 0], "etcd": [12, 12]}}))
        self.assertIn("| 0.00 × |", text)

    def test_less_than_nothing_has_no_ratio(self):
        text = report.table(results_of({"cluster_delay.put_ms": {"vigil": [-0.2, -0.1], "etcd": [7.3, 7.3]}}))
        self.assertIn("| -0.15 ms ±33 % | – | at most 0.3 ms | reached |", text)

    def test_rows_can_be_added_to_an_earlier_run(self):
        def run(samples, date, plots):
            return {**report.summarize(samples, {**MACHINE, "date": date}, 1.0), "plots": plots}

        old = {"get.rate": {"vigil": [50], "etcd": [5]}, "get.p50_us": {"vigil": [5]}, "get.p99_us": {"vigil": [9]},
               "idle.anonymous_mb": {"vigil": [9]}, "gets.other_cores": {"vigil": [0.5]}, "idle.other_cores": {"vigil": [0.7]}}
        earlier = run(old, "first", [{"title": "a", "x": 1}, {"title": "b"}])
        new = {"idle.anonymous_mb": {"vigil": [2]}, "idle.other_cores": {"vigil": [0.01], "etcd": [0.02]}}
        results = report.added_to(earlier, run(new, "second", [{"title": "a", "x": 2}]), new)
        self.assertEqual(metric_of(results, "idle.anonymous_mb")["vigil"]["samples"], [2])
        self.assertEqual(metric_of(results, "get.rate")["ratio"], 10)
        self.assertEqual(results["plots"], [{"title": "b"}, {"title": "a", "x": 2}])
        self.assertEqual(results["other_cores"], {"gets": 0.5, "idle": 0.02})
        self.assertEqual(results["latency_us"]["get"], {"vigil": [5, 9]})
        self.assertIn("of the run of first, commit x", report.page(results))
        again = report.added_to(results, run({}, "third", []), {})
        self.assertEqual([e["date"] for e in again["earlier"]], ["first", "second"])

    def test_clients_have_a_table_of_their_own(self):
        results = results_of({"get.rate": {"vigil": [50], "etcd": [5]},
                              "client_put.cpu_us": {"vigil": [2.0], "etcd": [9.0]}})
        servers, clients = report.table(results).split("\n\n")
        self.assertIn("| work | etcd | Vigil | Vigil to etcd |", servers)
        self.assertNotIn("put", servers)
        self.assertIn("| work | clientv3 | libvigil | libvigil to clientv3 |", clients)
        self.assertIn("| at most 1/5 | **missed** |", clients)
        self.assertIn("| at most 3 µs | reached |", clients)

    def test_busy_machine_causes_a_warning(self):
        busy = report.warning(results_of({"list.other_cores": {"vigil": [0.01], "etcd": [0.5]}, "get.other_cores": {"vigil": [0.02]}}))
        self.assertEqual(busy, "at most 0.50 cores in any round: **not a quiet machine, do not trust the numbers of list**")
        self.assertNotIn("do not trust", report.warning(results_of({"get.other_cores": {"etcd": [0.01]}})))
        self.assertEqual(report.warning(results_of({})), "at most 0.00 cores in any round")

    def test_plots_are_well_formed_with_any_part_missing(self):
        for samples in ({}, {"put_one.p50_us": {"vigil": [20]}, "put_one.p99_us": {"vigil": [90]}},
                        {m.key: {"vigil": [1.0], "etcd": [2.0]} for m in report.METRICS},
                        {m.key: {"vigil": [-1.0], "etcd": [2.0]} for m in report.METRICS if "delay" in m.key}):
            results = results_of(samples)
            for text in (plot.overview(results), plot.latency(results)):
                xml.etree.ElementTree.fromstring(text)
                self.assertNotIn('width="-', text)
            self.assertIn("# Vigil", report.page(results))


if __name__ == "__main__":
    unittest.main()
