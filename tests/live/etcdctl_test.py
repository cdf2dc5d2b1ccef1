#!/usr/bin/python3
"""etcdctl as Debian ships it, or as VIGIL_ETCDCTL names it."""
import json
import os
import queue
import subprocess
import threading
import time
import unittest

from server import SUBJECT, LiveTest, is_etcd

ETCDCTL = os.environ.get("VIGIL_ETCDCTL", "etcdctl")
# Debian's etcdctl uses the v2 API without this variable; newer ones warn about it.
ENVIRONMENT = dict(os.environ, **({} if "VIGIL_ETCDCTL" in os.environ else {"ETCDCTL_API": "3"}))


class Etcdctl(LiveTest):
    def setUp(self):
        super().setUp()
        self.vigil = self.serving(args=[] if is_etcd(SUBJECT) else ["--shutdown-timeout=60s"])

    def ctl(self, *args, text=None, code=0):
        done = subprocess.run(
            [ETCDCTL, "--endpoints", self.vigil.url, *args], input=text, capture_output=True,
            text=True, timeout=120, env=ENVIRONMENT)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout if code == 0 else done.stderr

    def json(self, *args):
        return json.loads(self.ctl(*args, "-w", "json"))

    def test_put_get_del(self):
        self.assertEqual(self.ctl("put", "greeting", "hello"), "OK\n")
        self.assertEqual(self.ctl("get", "greeting"), "greeting\nhello\n")
        self.assertEqual(self.ctl("get", "greeting", "--print-value-only"), "hello\n")
        self.assertEqual(self.ctl("put", "greeting", "bye", "--prev-kv"), "OK\ngreeting\nhello\n")
        self.assertEqual(self.ctl("del", "greeting", "--prev-kv"), "1\ngreeting\nbye\n")
        self.assertEqual(self.ctl("del", "greeting"), "0\n")
        self.assertEqual(self.ctl("get", "greeting"), "")

    def test_get_ranges_and_options(self):
        for i in range(5):
            self.ctl("put", f"k{i}", f"v{9 - i}")
        self.assertEqual(self.ctl("get", "k", "--prefix", "--keys-only").split(),
                         ["k0", "k1", "k2", "k3", "k4"])
        self.assertEqual(self.ctl("get", "k1", "k3", "--print-value-only").split(), ["v8", "v7"])
        self.assertEqual(self.ctl("get", "k3", "--from-key", "--keys-only").split(), ["k3", "k4"])
        self.assertEqual(self.ctl("get", "k", "--prefix", "--limit", "2", "--keys-only").split(),
                         ["k0", "k1"])
        self.assertEqual(self.ctl("get", "k", "--prefix", "--sort-by", "VALUE", "--order", "ASCEND",
                                  "--keys-only").split(), ["k4", "k3", "k2", "k1", "k0"])
        self.assertEqual(self.ctl("get", "k", "--prefix", "--consistency", "s", "--keys-only").split()[0],
                         "k0")
        self.assertEqual(self.json("get", "", "--prefix", "--limit", "1")["count"], 5)

    def test_get_at_revision_and_compaction(self):
        self.ctl("put", "a", "1")
        self.ctl("put", "a", "2")
        self.assertEqual(self.ctl("get", "a", "--rev", "2", "--print-value-only"), "1\n")
        self.assertIn("compacted revision 3", self.ctl("compaction", "3", "--physical"))
        self.assertIn("required revision has been compacted", self.ctl("get", "a", "--rev", "2", code=1))
        self.assertIn("future revision", self.ctl("get", "a", "--rev", "9", code=1))
        self.assertIn("future revision", self.ctl("compaction", "9", code=1))

    def test_txn(self):
        self.ctl("put", "a", "1")
        script = 'value("a") = "1"\nmod("a") > "0"\n\nput a 2\nget a\n\nput a 3\n\n'
        self.assertEqual(self.ctl("txn", text=script), "SUCCESS\n\nOK\n\na\n2\n")
        self.assertEqual(self.ctl("txn", text=script), "FAILURE\n\nOK\n")
        self.assertEqual(self.ctl("get", "a", "--print-value-only"), "3\n")

    def watching(self, *args):
        """Starts etcdctl watch; returns it and a function that waits for a number of lines."""
        process = subprocess.Popen(
            [ETCDCTL, "--endpoints", self.vigil.url, "watch", *args], stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, env=ENVIRONMENT)
        lines = queue.Queue()
        reader = threading.Thread(target=lambda: [lines.put(line) for line in process.stdout])
        reader.start()

        def end():
            process.kill()
            process.wait()
            reader.join()
            process.stdout.close()
        self.addCleanup(end)
        return process, lambda count: "".join(lines.get(timeout=120) for _ in range(count))

    def test_watch_of_past_and_new_events(self):
        self.ctl("put", "app/a", "1")
        self.ctl("put", "app/b", "2")
        _, next_lines = self.watching("app/", "--prefix", "--rev", "1", "--prev-kv")
        self.assertEqual(next_lines(6), "PUT\napp/a\n1\nPUT\napp/b\n2\n")
        self.ctl("put", "app/a", "3")
        self.assertEqual(next_lines(5), "PUT\napp/a\n1\napp/a\n3\n")
        self.ctl("put", "other", "1")
        self.ctl("del", "app/b")
        self.assertEqual(next_lines(5), "DELETE\napp/b\n2\napp/b\n\n")

    def test_watch_of_a_compacted_revision(self):
        for i in range(5):
            self.ctl("put", "a", str(i))
        self.ctl("compaction", "4", "--physical")
        process, next_lines = self.watching("a", "--rev", "2")
        self.assertIn("required revision has been compacted", next_lines(1))
        self.assertNotEqual(process.wait(20), 0)

    def test_watch_of_many_keys_interactively(self):
        script = "watch a\nwatch b --prefix --rev 1\n"
        self.ctl("put", "b1", "x")
        process = subprocess.Popen(
            [ETCDCTL, "--endpoints", self.vigil.url, "watch", "-i"], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True, env=ENVIRONMENT)
        self.addCleanup(lambda: (process.kill(), process.wait(), process.stdin.close(),
                                 process.stdout.close()))
        process.stdin.write(script)
        process.stdin.flush()
        self.assertEqual([process.stdout.readline() for _ in range(3)], ["PUT\n", "b1\n", "x\n"])
        self.ctl("put", "a", "y")
        self.assertEqual([process.stdout.readline() for _ in range(3)], ["PUT\n", "a\n", "y\n"])

    def test_open_watch_does_not_delay_a_stop(self):
        _, next_lines = self.watching("a", "--rev", "1")
        self.ctl("put", "a", "1")
        next_lines(3)
        begin = time.monotonic()
        self.vigil.stop()
        if not is_etcd(SUBJECT):
            self.assertLess(time.monotonic() - begin, 20)
        # etcdctl resumes its watch when the server runs again.
        self.vigil.start()
        self.ctl("put", "a", "2")
        self.assertEqual(next_lines(3), "PUT\na\n2\n")

    def test_endpoint_status_and_health(self):
        self.ctl("put", "a", "1")
        status = self.json("endpoint", "status")[0]["Status"]
        self.assertEqual(status["header"]["revision"], 2)
        self.assertEqual(status["leader"], status["header"]["member_id"])
        self.assertRegex(status["version"], r"^3\.7\.\d+$")
        self.assertGreater(status["dbSize"], 0)
        self.assertTrue(self.json("endpoint", "health")[0]["health"])
        self.assertIn(self.vigil.url, self.ctl("endpoint", "status", "-w", "table"))
        self.assertEqual(len(self.json("endpoint", "hashkv")), 1)

    def test_maintenance(self):
        for i in range(20):
            self.ctl("put", f"k{i % 5}", str(i))
        self.assertEqual(self.ctl("alarm", "list"), "")
        self.assertEqual(self.ctl("alarm", "disarm"), "")
        before = self.json("endpoint", "hashkv")[0]["HashKV"]["hash"]
        self.assertIn("Finished defragmenting", self.ctl("defrag"))
        self.assertEqual(self.json("endpoint", "hashkv")[0]["HashKV"]["hash"], before)
        member = self.json("endpoint", "status")[0]["Status"]["leader"]
        self.assertIn("Leadership transferred", self.ctl("move-leader", f"{member:x}"))
        self.assertIn("bad leader transferee", self.ctl("move-leader", "1", code=1))

    def test_check_datascale(self):
        """etcdctl writes, measures and deletes 10,000 keys of a kilobyte."""
        out = self.ctl("check", "datascale", "--load", "s", "--auto-compact", "--auto-defrag", "--prefix", "/scale/")
        self.assertIn("PASS: Approximate system memory used", out)
        self.assertEqual(self.ctl("get", "/scale/", "--prefix", "--keys-only"), "")

    def test_member_list(self):
        member = self.json("member", "list")["members"][0]
        self.assertEqual(member["name"], "default")
        self.assertEqual(member["clientURLs"], [self.vigil.url])
        self.assertIn("started, default", self.ctl("member", "list"))
        # With --cluster, etcdctl takes the endpoints from the member list.
        self.assertEqual(len(self.json("endpoint", "status", "--cluster")), 1)

    def test_large_and_binary_values(self):
        value = "x" * 1_000_000
        self.ctl("put", "big", text=value)
        self.assertEqual(self.ctl("get", "big", "--print-value-only"), value + "\n")

    def test_too_large_value_is_refused(self):
        self.assertIn("request is too large", self.ctl("put", "big", text="x" * 1_600_000, code=1))


if __name__ == "__main__":
    unittest.main()
