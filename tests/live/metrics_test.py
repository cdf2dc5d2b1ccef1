#!/usr/bin/python3
"""The metrics page: its counters are correct, and it has the names that etcd's dashboards use."""
import os
import re
import subprocess
import unittest
import urllib.request

from server import PEER, ROOT, LiveTest, only_vigil

SAMPLE = re.compile(r'^([a-zA-Z_:][\w:]*)(?:\{((?:\w+="(?:[^"\\\n]|\\["\\n])*",?)*)\})? (\S+)$')

KINDS = ("counter", "gauge", "histogram", "summary")

# Metrics that the dashboards and alerts of etcd-mixin use, and the usual ones for watches.
DASHBOARD = """grpc_server_handled_total grpc_server_started_total etcd_server_leader_changes_seen_total
etcd_server_has_leader etcd_mvcc_db_total_size_in_bytes etcd_mvcc_db_total_size_in_use_in_bytes
etcd_server_quota_backend_bytes etcd_disk_wal_fsync_duration_seconds
etcd_disk_backend_commit_duration_seconds etcd_disk_backend_defrag_duration_seconds etcd_disk_defrag_inflight
etcd_network_client_grpc_sent_bytes_total
etcd_network_client_grpc_received_bytes_total etcd_server_proposals_failed_total
etcd_server_proposals_pending etcd_server_proposals_committed_total etcd_server_proposals_applied_total
process_resident_memory_bytes process_open_fds process_max_fds process_start_time_seconds
process_cpu_seconds_total etcd_debugging_mvcc_watcher_total etcd_debugging_mvcc_watch_stream_total
etcd_debugging_mvcc_slow_watcher_total etcd_debugging_mvcc_pending_events_total
etcd_debugging_mvcc_events_total etcd_debugging_mvcc_keys_total etcd_debugging_mvcc_current_revision
etcd_debugging_mvcc_compact_revision etcd_mvcc_put_total etcd_mvcc_delete_total etcd_mvcc_range_total
etcd_mvcc_txn_total etcd_server_slow_apply_total etcd_server_version etcd_server_id
etcd_server_is_leader os_fd_used os_fd_limit""".split()


def parse(page):
    """Parses the page into families by name, with type and samples. Every line must be valid."""
    families, current = {}, None
    for line in page.splitlines():
        if line.startswith("# HELP "):
            name, help_text = line[7:].split(" ", 1)
            assert name not in families and help_text, line
            families[name] = current = {"type": None, "samples": {}}
        elif line.startswith("# TYPE "):
            name, kind = line[7:].split(" ")
            assert families[name] is current and kind in KINDS, line
            current["type"] = kind
        else:
            match = SAMPLE.match(line)
            assert match, line
            key = (match[1], match[2] or "")
            assert key not in current["samples"], f"duplicate: {line}"
            current["samples"][key] = float(match[3])
    return families


class Metrics(LiveTest):
    def scrape(self, server):
        with urllib.request.urlopen(server.url + "/metrics", timeout=30) as answer:
            self.assertEqual(answer.headers["Content-Type"].split(";")[0], "text/plain")
            return parse(answer.read().decode())

    def ctl(self, server, *args, code=0):
        done = subprocess.run(["etcdctl", "--endpoints", server.url, *args], capture_output=True,
                              timeout=60, env=dict(os.environ, ETCDCTL_API="3"))
        self.assertEqual(done.returncode, code, done.stderr)

    def value(self, families, name, labels=""):
        for family in families.values():
            if (name, labels) in family["samples"]:
                return family["samples"][name, labels]
        self.fail(f"{name}{{{labels}}} is missing on the page")

    def test_requests_are_counted(self):
        vigil = self.serving()
        for i in range(3):
            self.ctl(vigil, "put", f"key{i}", "value")
        self.ctl(vigil, "del", "key0")
        self.ctl(vigil, "get", "key1")
        self.ctl(vigil, "compaction", "2")
        self.ctl(vigil, "compaction", "2", code=1)
        self.ctl(vigil, "defrag")
        page = self.scrape(vigil)
        put = 'grpc_method="Put",grpc_service="etcdserverpb.KV",grpc_type="unary"'
        compact = 'grpc_method="Compact",grpc_service="etcdserverpb.KV",grpc_type="unary"'
        for name, labels, value in (
                ("etcd_mvcc_put_total", "", 3), ("etcd_mvcc_delete_total", "", 1),
                ("etcd_mvcc_range_total", "", 1), ("etcd_debugging_mvcc_keys_total", "", 2),
                ("etcd_debugging_mvcc_current_revision", "", 5),
                ("etcd_debugging_mvcc_compact_revision", "", 2),
                ("grpc_server_started_total", put, 3), ("grpc_server_msg_sent_total", put, 3),
                ("grpc_server_handled_total", f'grpc_code="OK",{put}', 3),
                ("grpc_server_handled_total", f'grpc_code="Internal",{put}', 0),
                ("grpc_server_handled_total", f'grpc_code="OutOfRange",{compact}', 1),
                ("vigil_writer_group_requests_sum", "", 5),
                ("etcd_server_proposals_failed_total", "", 0),
                ("etcd_disk_backend_defrag_duration_seconds_count", "", 1),
                ("etcd_disk_defrag_inflight", "", 0),
                ("etcd_server_proposals_pending", "", 0)):
            self.assertEqual(self.value(page, name, labels), value, name)
        syncs = self.value(page, "etcd_disk_wal_fsync_duration_seconds_count")
        self.assertGreaterEqual(syncs, 5)
        self.assertEqual(
            self.value(page, "etcd_disk_wal_fsync_duration_seconds_bucket", 'le="+Inf"'), syncs)

    @only_vigil
    def test_keys_with_a_lease_are_shown(self):
        vigil = self.serving()
        granted = subprocess.run(["etcdctl", "--endpoints", vigil.url, "lease", "grant", "100"], check=True,
                                 capture_output=True, text=True, env=dict(os.environ, ETCDCTL_API="3"), timeout=60)
        lease = granted.stdout.split()[1]
        for args, keys in ((("put", "a", "x", "--lease", lease), 1), (("put", "b", "x", "--lease", lease), 2),
                           (("put", "a", "x"), 1), (("del", "b"), 0)):
            self.ctl(vigil, *args)
            page = self.scrape(vigil)
            self.assertEqual((self.value(page, "vigil_leases"), self.value(page, "vigil_lease_keys")), (1, keys), args)

    def test_watchers_are_shown_by_state(self):
        vigil = self.serving()
        watch = subprocess.Popen(["etcdctl", "--endpoints", vigil.url, "watch", "--prefix", "k"],
                                 stdout=subprocess.PIPE, env=dict(os.environ, ETCDCTL_API="3"))
        try:
            self.eventually(lambda: self.value(self.scrape(vigil), "vigil_watch_watchers",
                                               'state="live"') == 1)
            self.ctl(vigil, "put", "key", "value")
            self.assertEqual(watch.stdout.readline(), b"PUT\n")
            self.eventually(lambda: self.value(self.scrape(vigil),
                                               "etcd_debugging_mvcc_events_total") == 1)
            page = self.scrape(vigil)
            self.assertGreaterEqual(
                self.value(page, "vigil_watch_fan_out_duration_seconds_count"), 1)
            labels = ('grpc_method="Watch",grpc_service="etcdserverpb.Watch",'
                      'grpc_type="bidi_stream"')
            self.assertEqual(self.value(page, "grpc_server_msg_sent_total", labels), 2)
        finally:
            watch.kill()
            watch.communicate()
        self.eventually(lambda: self.value(self.scrape(vigil),
                                           "etcd_debugging_mvcc_watcher_total") == 0)
        self.assertEqual(self.value(self.scrape(vigil), "vigil_watch_watchers_peak"), 1)

    @only_vigil
    def test_extensive_adds_histograms_of_calls(self):
        self.assertNotIn("grpc_server_handling_seconds", self.scrape(self.serving()))
        vigil = self.serving(self.scratch / "other", args=["--metrics", "extensive"])
        self.ctl(vigil, "put", "key", "value")
        labels = 'grpc_method="Put",grpc_service="etcdserverpb.KV",grpc_type="unary"'
        self.assertEqual(
            self.value(self.scrape(vigil), "grpc_server_handling_seconds_count", labels), 1)

    def test_names_used_by_dashboards_exist(self):
        page = self.scrape(self.serving())
        self.assertEqual([name for name in DASHBOARD if name not in page], [])

    @unittest.skipUnless(os.path.exists(PEER), "no real etcd was built")
    def test_every_metric_of_etcd_exists_or_is_documented_as_missing(self):
        """docs/compatibility-etcd.md lists the missing metrics; the others have etcd's types."""
        rows = (ROOT / "docs/compatibility-etcd.md").read_text().partition("## Metrics")[2].splitlines()
        listed = "".join(row.split(" | ")[0] for row in rows if row.startswith("|"))
        ours = self.scrape(self.serving())
        theirs = self.scrape(self.serving(self.scratch / "peer", binary=PEER))
        for name, family in theirs.items():
            if name.startswith(("go_", "promhttp_")):
                continue  # metrics of Go's runtime
            if name in ours:
                self.assertEqual(ours[name]["type"], family["type"], name)
                self.assertNotIn(f"`{name}`", listed)
            else:
                self.assertIn(f"`{name}`", listed)


if __name__ == "__main__":
    unittest.main()
