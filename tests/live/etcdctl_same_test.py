#!/usr/bin/python3
"""Runs every command of etcdctl that needs no authentication on Vigil and on a real etcd. Output and exit codes must be the
same. auth_same_test.py has the commands for authentication."""
import json
import os
import re
import time
import unittest

from compare_etcdctl import SECONDS_MAX, CompareEtcdctl, Following, version


class SameAsEtcd(CompareEtcdctl):
    def test_put(self):
        self.both("put", "a", "1", code=0)
        self.both("put", "a", "2", "--prev-kv", code=0)
        self.both("put", "a", "3", "--prev-kv", "-w", "json", code=0)
        self.both("put", "a", "4", "--prev-kv", "-w", "fields", code=0)
        self.both("put", "b", code=0, text="from stdin\n")
        self.both("put", "a", "--ignore-value", code=0)
        self.both("put", "none", "--ignore-value", code=1)
        self.both("put", "a", "x", "--lease", "1234", code=1)
        self.both("put", "", "x", code=1)
        self.both("put", "--", "-k", "-v", code=0)
        self.both("put", "a", "x", "--no-such-flag")
        self.both("put")

    def test_get(self):
        for i in range(12):
            self.both("put", f"k{i:02}", f"v{i * 7 % 12:02}", code=0)
        self.both("put", "k03", "again", code=0)
        for options in (["k01"], ["none"], ["k", "--prefix"], ["k02", "k05"], ["k09", "--from-key"],
                        ["", "--from-key", "--keys-only"], ["k", "--prefix", "--limit", "3"],
                        ["k", "--prefix", "--rev", "5"], ["k03", "--rev", "5"],
                        ["k", "--prefix", "--consistency", "s"], ["k", "--prefix", "--keys-only"]):
            for shape in ("simple", "json", "fields"):
                self.both("get", *options, "-w", shape, code=0)
        for by in ("CREATE", "KEY", "MODIFY", "VALUE", "VERSION"):
            for order in ("ASCEND", "DESCEND"):
                self.both("get", "k", "--prefix", "--sort-by", by, "--order", order, "--keys-only", code=0)
        if version() >= (3, 5):
            self.both("get", "k", "--prefix", "--count-only", "-w", "fields", code=0)
        self.both("get", "k03", "--print-value-only", code=0)
        self.both("get", "k01", "--hex", code=0)
        self.both("get", "k", "--prefix", "--rev", "999", code=1)
        self.both("get", "k", "z", "--prefix")
        self.both("get", "k", "-w", "table")
        self.both("get", "k", "--sort-by", "NOTHING")

    def test_del(self):
        for key in ("a", "b", "c", "d/1", "d/2", "z1", "z2"):
            self.both("put", key, key, code=0)
        self.both("del", "a", code=0)
        self.both("del", "a", code=0)
        self.both("del", "b", "--prev-kv", "-w", "json", code=0)
        self.both("del", "d/", "--prefix", "--prev-kv", code=0)
        self.both("del", "c", "d", "-w", "fields", code=0)
        self.both("del", "z", "--from-key", code=0)
        self.both("get", "", "--prefix", code=0)
        self.both("del")

    def test_txn(self):
        self.both("put", "a", "1", code=0)
        script = ('value("a") = "1"\nmod("a") > "0"\nversion("a") = "1"\ncreate("b") = "0"\n\n'
                  'put a 2\nget a\ndel b\n\nput a 3\n\n')
        self.both("txn", text=script, code=0)
        self.both("txn", text=script, code=0)
        self.both("txn", "-w", "json", text=script, code=0)
        self.both("txn", "-w", "fields", text=script, code=0)
        self.both("txn", "-i", text=script, code=0)
        self.both("txn", text='\nput a 6\nput a 7\n\n\n', code=1)
        self.both("txn", text='nonsense("a") = "1"\n\n\n\n')

    def test_compaction(self):
        for i in range(5):
            self.both("put", "a", str(i), code=0)
        self.both("compaction", "3", code=0)
        self.both("compaction", "4", "--physical", code=0)
        self.both("compaction", "3", code=1)
        self.both("compaction", "999", code=1)
        self.both("compaction", "0", code=1)
        self.both("compaction", "x")
        self.both("get", "a", "--rev", "2", code=1)
        self.both("get", "a", "--rev", "4", code=0)
        self.both("watch", "a", "--rev", "2")

    def test_watch(self):
        self.both("put", "w/a", "1", code=0)
        self.both("put", "w/b", "2", code=0)
        self.both("del", "w/b", code=0)
        past = self.follow("watch", "w/", "--prefix", "--rev", "1", "--prev-kv")
        self.same_lines(past, 11)
        one, fields = self.follow("watch", "w/a", "--rev", "1"), self.follow("watch", "w/a", "-w", "json", "--rev", "1")
        everything = self.follow("watch", "", "--from-key", "--rev", "2", "--progress-notify")
        self.same_lines(one, 3)
        self.same_lines(fields, 1)
        self.same_lines(everything, 9)
        self.both("put", "w/a", "3", code=0)
        self.same_lines(past, 5)
        self.same_lines(one, 3)
        self.same_lines(fields, 1)
        self.same_lines(everything, 3)

    def test_watch_that_runs_a_program(self):
        self.both("put", "a", "1", code=0)
        running = self.follow("watch", "a", "--rev", "2", "--", "sh", "-c",
                              "env | grep ^ETCD_WATCH | sort")
        # The event itself, then the program's environment: revision, key, type, value.
        self.same_lines(running, 7)
        self.both("del", "a", code=0)
        self.same_lines(running, 7)

    def test_watch_interactively(self):
        both = self.follow("watch", "-i")
        for one in both:
            one.write("watch a --rev 2\nwatch b --prefix --rev 2\n")  # read by etcdctl at any later time
        self.both("put", "b1", "x", code=0)
        self.same_lines(both, 3)
        self.both("put", "a", "y", code=0)
        self.same_lines(both, 3)
        if version() >= (3, 5):
            for one in both:
                one.write("progress\n")
            self.same_lines(both, 1)

    def test_lease(self):
        self.both("lease", "list", code=0)
        self.grant(100)
        self.grant(200)
        for i in range(3):
            self.both("put", f"leased{i}", "x", "--lease", "LEASE0", code=0)
        self.both("put", "leased0", "y", "--ignore-lease", code=0)
        self.both("put", "leased1", "y", code=0)
        self.both("get", "leased", "--prefix", "-w", "fields", code=0)
        self.both("lease", "timetolive", "LEASE0", "--keys", code=0, rewrite=lambda text: in_order(almost(text)))
        self.both("lease", "timetolive", "LEASE0", "--keys", "-w", "json", code=0,
                  rewrite=lambda text: in_order(almost(text)))
        self.both("lease", "timetolive", "LEASE1", "--keys", code=0, rewrite=lambda text: in_order(almost(text)))
        self.both("lease", "timetolive", "12345", code=0)
        self.both("lease", "keep-alive", "LEASE0", "--once", code=0)
        self.both("lease", "keep-alive", "12345", "--once")
        self.both("lease", "revoke", "LEASE0", code=0)
        self.both("lease", "revoke", "LEASE0", code=1)
        self.both("lease", "timetolive", "LEASE0", code=0)
        self.both("get", "leased", "--prefix", code=0)
        self.both("lease", "list", code=0)
        self.both("lease", "grant", "-5", rewrite=no_id)
        self.both("lease", "grant", "9000000001", code=1)
        self.both("lease", "grant", "x")

    def test_lease_kept_alive(self):
        self.grant(6)
        both = self.follow("lease", "keep-alive", "LEASE0")
        self.same_lines(both, 3)
        self.both("lease", "revoke", "LEASE0", code=0)
        self.same_lines(both, 1)

    def test_alarm_defrag_move_leader(self):
        self.both("alarm", "list", code=0)
        self.both("alarm", "disarm", code=0)
        self.both("put", "a", "1", code=0)
        self.both("defrag", code=0)
        self.both("defrag", "--cluster", code=0)
        self.both("move-leader", "1234", code=1)
        self.both("move-leader", "x")
        if version() >= (3, 6):
            self.both("downgrade", "validate", "3.6")
            self.both("downgrade", "validate", "3.1")
            self.both("downgrade", "enable", "3.9")
            self.both("downgrade", "cancel")

    def test_endpoint(self):
        self.both("put", "a", "1", code=0)
        for shape in ("simple", "json", "fields", "table"):
            for what in ("health", "status", "hashkv"):
                self.both("endpoint", what, "-w", shape, code=0, rewrite=no_sizes)
            self.both("member", "list", "-w", shape, code=0, rewrite=no_sizes)
        self.both("endpoint", "health", "--cluster", code=0)
        self.both("endpoint", "status", "--cluster", code=0, rewrite=no_sizes)
        self.both("endpoint", "hashkv", "--cluster", code=0, rewrite=no_sizes)
        self.both("version", code=0)

    def test_member(self):
        self.both("member", "update", "1234", "--peer-urls=http://127.0.0.1:1", code=1)
        self.both("member", "remove", "1234", code=1)
        self.both("member", "add", "x")
        self.both("member", "add", "x", "--peer-urls=nothing")
        self.both("member", "promote", "1234", code=1)
        if version() >= (3, 4):
            self.both("member", "add", "x", "--learner", "--peer-urls=http://127.0.0.1:1", code=0, rewrite=no_ids)
            self.both("member", "add", "y", "--learner", "--peer-urls=http://127.0.0.1:2", code=1)
            self.both("member", "add", "z", "--peer-urls=http://127.0.0.1:1", code=1, rewrite=same_refusal)
            for shape in ("simple", "json", "fields", "table"):
                self.both("member", "list", "-w", shape, code=0, rewrite=no_ids)
        # This comes last, because etcd has no majority afterwards.
        self.both("member", "add", "z", "--peer-urls=http://127.0.0.1:3", code=0, rewrite=no_ids)

    def test_hashkv_is_equal(self):
        for i in range(20):
            self.both("put", f"k{i % 7}", str(i), code=0)
        self.both("del", "k3", code=0)
        self.both("compaction", "11", "--physical", code=0)
        hashes = []
        for server in self.servers:
            found = json.loads(self.run_on(server, ["endpoint", "hashkv", "-w", "json"])[1])[0]["HashKV"]
            hashes.append((found["hash"], found["compact_revision"], found["header"]["revision"]))
        self.assertEqual(hashes[0], hashes[1])

    def test_lock(self):
        self.both("lock", "l", "--", "sh", "-c", "echo inside $ETCD_LOCK_REV; exit 3", rewrite=no_id)
        self.both("lock", "l", "--ttl", "5", "echo", "inside", code=0)
        first = self.follow("lock", "l")
        held = [one.take(1) for one in first]
        second = self.follow("lock", "l")
        time.sleep(0.5)
        for which, one in enumerate(second):
            self.assertRegex(held[which], r"^l/[0-9a-f]+\n$")
            self.assertTrue(one.lines.empty(), "two clients hold the lock")
        self.assertEqual([one.interrupt() for one in first][0], first[1].process.returncode)
        for one in second:
            self.assertRegex(one.take(1), r"^l/[0-9a-f]+\n$")

    def test_elect(self):
        first = self.follow("elect", "e", "one")
        for one in first:
            self.assertRegex(one.take(2), r"^e/[0-9a-f]+\none\n$")
        listening = self.follow("elect", "-l", "e")
        for one in listening:
            self.assertRegex(one.take(2), r"^e/[0-9a-f]+\none\n$")
        second = self.follow("elect", "e", "two")
        time.sleep(0.5)
        for one in second:
            self.assertTrue(one.lines.empty(), "two clients are leaders")
        for one in first:
            one.interrupt()
        for one in second + listening:
            self.assertRegex(one.take(2), r"^e/[0-9a-f]+\ntwo\n$")

    def test_make_mirror(self):
        for i in range(50):
            self.run_on(self.servers[0], ["put", f"m/{i:02}", str(i)])
        # Vigil and etcd are each the source and the destination of a mirror.
        for source, target, prefix in ((0, 1, "into-etcd/"), (1, 0, "into-vigil/")):
            mirror = Following(self.command(self.servers[source], [
                "make-mirror", "--no-dest-prefix=false", "--prefix", "m/", "--dest-prefix", prefix,
                self.servers[target].url.removeprefix("http://")]), self.env)
            self.addCleanup(mirror.end)
            if source == 1:
                for i in range(50):
                    self.run_on(self.servers[1], ["put", f"m/{i:02}", str(i)])
            self.run_on(self.servers[source], ["put", "m/late", "x"])
            self.wait_for(lambda t=target, p=prefix: self.run_on(
                self.servers[t], ["get", f"{p}late", "--print-value-only"])[1] == "x\n")
            got = self.run_on(self.servers[target], ["get", prefix, "--prefix", "--keys-only"])[1].split()
            self.assertEqual(len(got), 51)

    @unittest.skipUnless("VIGIL_ETCDCTL" in os.environ, "takes a minute, so it runs only with the newest etcdctl")
    def test_check_perf(self):
        _, out, error = self.run_on(self.servers[0], ["check", "perf", "--load", "s", "--prefix", "/perf/"],
                                    seconds=180)
        # The check's limits assume an idle machine, and it makes 150 writes a second at most.
        found = re.search(r"^(?:PASS|FAIL): Throughput (?:is|too low:) (\d+) writes/s$", out, re.M)
        self.assertTrue(found, out + error[-500:])
        self.assertGreaterEqual(int(found[1]), 15)

    def wait_for(self, ready):
        end = time.monotonic() + SECONDS_MAX
        while not ready():
            self.assertLess(time.monotonic(), end, "the condition did not become true")
            time.sleep(0.1)


def in_order(text):
    """The text with the keys of a lease sorted, because etcd prints them in the random order of a Go map."""
    text = re.sub(r"attached keys\(\[([^\]]*)\]",
                  lambda m: f"attached keys([{' '.join(sorted(m[1].split(' ')))}]", text)
    return re.sub(r'"keys":\[([^\]]*)\]',
                  lambda m: f'"keys":[{",".join(sorted(m[1].split(",")))}]', text)


def almost(text):
    """The text without remaining times, which may differ by a second."""
    return re.sub(r"remaining\(\w+\)", "remaining(TIME)", re.sub(r'"(ttl|TTL)":\s*\d+', r'"\1":N', text))


def no_id(text):
    return re.sub(r"\b[0-9a-f]{16}\b", "ID", text)


def same_refusal(text):
    """etcd makes the ID of a member from its URLs and the current second, so within the same second it finds the ID
    before the URL."""
    return text.replace("member ID already exist", "Peer URLs already exists")


def no_ids(text):
    """The sorted words of the text: a new member's ID depends on the time, and lists are ordered by ID."""
    text = re.sub(r"\b(?:[0-9a-f]{15,16}|\d{16,20})\b", "ID", text)
    return sorted(re.split(r"[\s,=\"\[\]{}|+│┌┐└┘├┤─┬┴┼-]+", text))


def no_sizes(text):
    """The text without sizes, hashes and raft's numbers."""
    text = re.sub(r"\b\d+(\.\d+)? [kM]?B\b", "SIZE", text)
    text = re.sub(r"\b\d+\b", "N", text)
    return re.sub(r" +|-{2,}|\+|─+", " ", text)


if __name__ == "__main__":
    unittest.main()
