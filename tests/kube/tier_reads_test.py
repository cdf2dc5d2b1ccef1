#!/usr/bin/python3
"""The tables of reads (tests/live/kube_versions.txt and kube_options.txt) through a watch tier in front of a real
kube-apiserver: its answers are those of the kube-apiserver, except for those listed here with the reason."""
import contextlib
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/live"))
sys.path.insert(0, str(ROOT / "tests/kube"))
import kube_options  # noqa: E402
import kube_versions  # noqa: E402
from same_reads_test import SameReads, unittest  # noqa: E402
from tier import Caller, Tier  # noqa: E402


class TierReads(SameReads):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.tier = Tier(cls.directory.name, f"https://127.0.0.1:{cls.apiserver.port}", args=["--upstream-resources=configmaps"])
        cls.tier.start()
        cls.addClassCleanup(cls.tier.stop)

    # The tier answers for its own health, and reads no options there.
    different = {"/healthz?timeout=x"}

    def assertEqual(self, first, second, msg=None):
        if isinstance(second, dict):
            differ = {case for case in second if first.get(case) != second[case]}
            first = {case: first[case] for case in first if case not in differ & self.different}
            second = {case: second[case] for case in second if case not in differ & self.different}
        super().assertEqual(first, second, msg)

    def connect(self):
        return Caller(self.tier.port).connect()

    def setUp(self):
        self.before = self.counts()

    def counts(self):
        return {name: self.tier.metric(f"vigil_tier_{name}_total") for name in ("gets", "lists", "watches", "unmirrored")}

    def check_answered(self, gets, lists, watches):
        """The mirror itself has answered at least so many: those of the cases that it must be able to answer."""
        grown = {name: count - self.before[name] for name, count in self.counts().items()}
        for name, cases in (("gets", gets), ("lists", lists), ("watches", watches)):
            self.assertGreater(cases, 0)
            self.assertGreaterEqual(grown[name], cases, (name, grown))
        self.assertGreater(grown["unmirrored"], 0)  # those that must be current, for example

    def test_table_of_versions_is_what_kubernetes_answers(self):
        super().test_table_of_versions_is_what_kubernetes_answers()
        cases = kube_versions.table(False)
        known = ("resourceVersion=0", "resourceVersion=current")  # versions that every mirror has

        def count(verb, answers):
            return sum(case.split()[0] == verb and any(case.split("&")[0].endswith(f" {version}") for version in known) and
                       answer.startswith(answers) for case, answer in cases.items())
        self.check_answered(count("get", "200"), count("list", "200"), count("watch", ("ADDED", "BOOKMARK")))

    def test_table_of_options_is_what_kubernetes_answers(self):
        super().test_table_of_options_is_what_kubernetes_answers()
        # Lists of whole resources, each of which begins a mirror. They wait for fences, and some may not get one in time.
        lists = sum(case.startswith("/api") and "/namespaces/" not in case and "fieldSelector" in case and
                    "metadata.name" not in case and answer.startswith("200") for case, answer in kube_options.table(False).items())
        self.assertGreater(lists, 10)
        self.assertGreaterEqual(self.counts()["lists"] - self.before["lists"], lists // 2)


del SameReads  # it is a test of its own file

if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        unittest.main()
