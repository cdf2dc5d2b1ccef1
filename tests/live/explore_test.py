#!/usr/bin/python3
"""Commands that etcdctl does not have, against Vigil and against real etcds: tree, history, diff, grep, restore-key, top,
doctor, profiles; tables, lines of JSON and decoded values of get; watched changes."""
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import unittest

from certs import Authority
from client import Client
from server import IN_FRONT, PEER, SUBJECT, LiveTest, Server, free_port, is_etcd

SECONDS = 60
OLDER = "/usr/bin/etcd"
VIGIL = str(pathlib.Path(SUBJECT))
ENVIRONMENT = {k: v for k, v in os.environ.items() if not k.startswith(("VIGIL_", "ETCDCTL_"))}
# However slow the machine is, a command does not give up early.
ENVIRONMENT.update(TZ="UTC", NO_COLOR="1", VIGIL_COMMAND_TIMEOUT="60s", VIGIL_DIAL_TIMEOUT="60s")


def varint(number):
    return bytes([number]) if number < 128 else bytes([number & 127 | 128]) + varint(number >> 7)


def field(number, content):
    return bytes([number << 3 | 2]) + varint(len(content)) + content


def config_map(name, **data):
    """A ConfigMap as a kube-apiserver stores it: the envelope, its type, and the message."""
    entries = b"".join(field(2, field(1, k.encode()) + field(2, v.encode())) for k, v in data.items())
    message = field(1, field(1, name.encode()) + field(3, b"default")) + entries
    return b"k8s\0" + field(1, field(1, b"v1") + field(2, b"ConfigMap")) + field(2, message) + field(3, b"") + field(4, b"")


class Commands(unittest.TestCase):
    """Runs commands; a class below has a server for all of its tests, whose keys do not overlap."""
    endpoint = None

    def begin(self, *words, stdin=subprocess.DEVNULL, env=()):
        process = subprocess.Popen([VIGIL, "--endpoints", self.endpoint, *words], stdin=stdin, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, env=dict(ENVIRONMENT, **dict(env)))
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def run_command(self, *words, value=None, env=(), flags=None):
        flags = ["--endpoints", self.endpoint] if flags is None else flags
        return subprocess.run([VIGIL, *flags, *words], input=b"" if value is None else value, capture_output=True,
                              timeout=SECONDS, env=dict(ENVIRONMENT, **dict(env)))

    def vigil(self, *words, code=0, **options):
        done = self.run_command(*words, **options)
        self.assertEqual(done.returncode, code, (words, done.stdout, done.stderr))
        return (done.stdout if code == 0 or done.stdout else done.stderr).decode()

    def refused(self, *words, code=1, **options):
        """Returns the text of the error."""
        done = self.run_command(*words, **options)
        self.assertEqual(done.returncode, code, (words, done.stdout, done.stderr))
        return done.stderr.decode()

    def lines(self, *words, **options):
        return [json.loads(line) for line in self.vigil(*words, "-w", "jsonl", **options).splitlines()]


class OnServer(Commands):
    binary = None

    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.mkdtemp(prefix="vigil-explore-")
        cls.addClassCleanup(shutil.rmtree, cls.scratch, ignore_errors=True)
        cls.server = Server(pathlib.Path(cls.scratch, "data"), binary=cls.binary)
        cls.addClassCleanup(cls.server.close)
        cls.server.start()
        cls.endpoint = f"127.0.0.1:{cls.server.port}"
        cls.client = Client(cls.server.port)
        cls.addClassCleanup(cls.client.close)

    def put(self, key, value):
        """Returns the revision."""
        return self.client.put(key.encode(), value if isinstance(value, bytes) else value.encode())

    def range_calls(self, method="KV/Range"):
        report = json.loads(self.vigil("top", "--once", "--interval", "100ms", "--no-prefixes", "-w", "json"))
        return next((c["total"] for c in report["calls"] if c["method"] == method), 0)

    def test_tree_reads_in_pages_and_counts_every_directory(self):
        for i in range(294):
            self.client.put(f"/tree/{i % 7}/{i:04}".encode(), b"x" * 100)
        self.client.put(b"/tree/\x1b[2J", b"")
        before = self.range_calls()
        text = self.vigil("tree", "/tree/", "--depth", "1")
        calls = self.range_calls() - before
        self.assertLessEqual(calls, 4, "pages of at least 256 keys")
        self.assertGreaterEqual(calls, 2, "more than one page")
        first, *rows = text.splitlines()
        self.assertEqual(first.split(), ["KEYS", "SIZE", "KEY"])
        self.assertEqual(rows[0].split(), ["295", "32.2", "KiB", "/tree/"])
        self.assertEqual(rows[1].split(), ["1", "10", "B", "├──", r"\x1b[2J"])
        self.assertEqual(rows[-1].split(), ["42", "4.6", "KiB", "└──", "6/"])
        nodes = self.lines("tree", "/tree/", "--depth", "1", "--keys-only")
        self.assertEqual(nodes[0], {"path": "/tree/", "depth": 0, "keys": 295})
        self.assertEqual(sum(node["keys"] for node in nodes[1:]), 295)
        rows = self.vigil("tree", "/tree/", "--sort", "keys", "--limit", "2", "--depth", "1").splitlines()
        self.assertEqual([row.split()[-1] for row in rows[1:]], ["/tree/", "0/", "1/", "more"])
        self.assertEqual(self.vigil("tree", "/tree/none/").splitlines()[1].split(), ["0", "0", "B", "/tree/none/"])

    def test_history_has_all_versions_that_are_left(self):
        self.put("/h/a", "one\ntwo\n")
        second = self.put("/h/a", "one\n2\n")
        deleted = json.loads(self.vigil("del", "/h/a", "-w", "json"))["header"]["revision"]
        last = self.put("/h/a", "back")
        shown = self.lines("history", "/h/a")
        self.assertEqual([(v["type"], v.get("value"), v.get("prev_value")) for v in shown],
                         [("PUT", "one\ntwo\n", None), ("PUT", "one\n2\n", "one\ntwo\n"), ("DELETE", None, None),
                          ("PUT", "back", None)])
        self.assertEqual([v["mod_revision"] for v in shown], [second - 1, second, deleted, last])
        text = self.vigil("history", "/h/a")
        self.assertIn("                      - two\n                      + 2\n", text)
        self.vigil("del", "/h/a")
        self.assertEqual(len(self.lines("history", "/h/a")), 5, "also of a key that does not exist now")
        self.vigil("compaction", str(second))
        text = self.vigil("history", "/h/a", "--no-values")
        self.assertIn(f"(versions before revision {second} are compacted)\n", text)
        self.assertEqual([v["mod_revision"] for v in self.lines("history", "/h/a")][:3], [second, deleted, last])
        self.assertIn("no version", self.refused("history", "/h/none"))
        self.assertIn("compacted", self.refused("diff", "/h/", "--from", str(second - 1), code=2))

    def test_diff_merges_two_states(self):
        begin = self.put("/d/same", "1")
        self.put("/d/changed", "a\nb\nc\n")
        self.put("/d/gone", "x")
        middle = self.put("/d/touched", "1")
        self.put("/d/changed", "a\nB\nc\n")
        self.put("/d/touched", "1")
        self.vigil("del", "/d/gone")
        end = self.put("/d/new", "n")
        flags = ["--from", str(middle), "--to", str(end)]
        text = self.vigil("diff", "/d/", *flags, code=1)
        self.assertEqual(re.sub(r"\d+", "N", text),
                         "~ /d/changed  revision N > N\n      a\n    - b\n    + B\n      c\n- /d/gone  revision N\n    - x\n"
                         "+ /d/new  revision N\n    + n\n~ /d/touched  revision N > N\n    (the same value)\n")
        done = self.run_command("diff", "/d/", *flags, "-w", "jsonl", "--brief")
        self.assertEqual([(d["change"], d["key"]) for d in map(json.loads, done.stdout.splitlines())],
                         [("changed", "/d/changed"), ("removed", "/d/gone"), ("added", "/d/new"), ("changed", "/d/touched")])
        self.assertEqual(self.vigil("diff", "/d/", "--from", str(end)), "")
        self.assertEqual(self.vigil("diff", "/d/same", "--from", str(begin)), "")
        self.assertIn("--from", self.refused("diff", "/d/", code=128))
        self.refused("diff", "/d/", "--from", "99999999", code=2)

    def test_diff_of_many_keys_reads_each_state_once(self):
        for i in range(290):
            self.client.put(f"/many/{i:04}".encode(), b"v")
        begin = self.client.revision()
        self.client.put(b"/many/0200", b"w")
        before = self.range_calls()
        self.vigil("diff", "/many/", "--from", str(begin), code=1)
        self.assertLessEqual(self.range_calls() - before, 8, "two pages of each state, two values, and one for the end")

    def test_diff_reads_values_in_batches(self):
        for i in range(150):
            self.client.put(f"/batch/{i:04}".encode(), b"v" * 1000)
        begin = self.client.revision()
        for i in range(140):
            self.client.put(f"/batch/{i:04}".encode(), b"w" * 1000)
        self.vigil("del", "/batch/0149")
        self.client.put(b"/batch/new", b"n")
        ranges, transactions = self.range_calls(), self.range_calls("KV/Txn")
        whole = self.vigil("diff", "/batch/", "--from", str(begin), code=1)
        self.assertLessEqual(self.range_calls() - ranges, 5, "a page of each state, and one for the end")
        self.assertLessEqual(self.range_calls("KV/Txn") - transactions, 3, "142 changes in batches of 64")
        self.assertEqual((whole.count("~ /batch/"), whole.count("- /batch/"), whole.count("+ /batch/")), (140, 1, 1))
        self.assertEqual((whole.count("    - vvv"), whole.count("    + www")), (141, 140))
        # Answers that are too large make the batches smaller, and change nothing else.
        self.assertEqual(self.vigil("diff", "/batch/", "--from", str(begin), "--max-recv-bytes", "30000", code=1), whole)

    def test_get_of_many_keys_reads_pages_at_one_revision(self):
        for i in range(1010):
            self.client.put(f"/pages/{i:05}".encode(), b"v")
        ranges = self.range_calls()
        text = self.vigil("get", "--prefix", "/pages/", "--keys-only")
        self.assertEqual([line for line in text.splitlines() if line], [f"/pages/{i:05}" for i in range(1010)])
        self.assertEqual(len(self.lines("get", "--prefix", "/pages/")), 1010)
        self.assertLessEqual(self.range_calls() - ranges, 4 + 1, "two pages each")
        self.assertEqual(self.vigil("get", "--prefix", "/pages/", "--print-value-only"), "v\n" * 1010)

    def test_top_shows_several_servers(self):
        flags = ["--endpoints", f"{self.endpoint},127.0.0.1:1,{self.endpoint}", "--command-timeout", "2s"]
        done = self.run_command("top", "--once", "--interval", "100ms", flags=flags)
        lines = done.stdout.decode().splitlines()
        self.assertRegex(lines[0], r"^  SERVER +ROLE +REVISION ")
        self.assertRegex(lines[1], rf"^> {re.escape(self.endpoint)} +leader +\d+ ")
        self.assertRegex(lines[2], r"^  127.0.0.1:1 +cannot connect to .*connection refused")
        self.assertRegex(lines[3], rf"^  {re.escape(self.endpoint)} +leader ")
        self.assertTrue(lines[4].startswith("vigil top  "), lines[4])
        done = self.run_command("top", "--once", "--interval", "100ms", "-w", "json", flags=flags)
        reports = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual([r["endpoint"] for r in reports], [self.endpoint, "127.0.0.1:1", self.endpoint])
        self.assertEqual(["prefixes" in r for r in reports], [True, False, False])
        many = ["--endpoints", ",".join(["127.0.0.1:1"] * 33)]
        self.assertIn("at most 32 endpoints", self.refused("top", "--once", flags=many, code=128))

    def test_grep_answers_like_grep(self):
        self.put("/g/a", "first line\nsecond Line\n")
        self.put("/g/b", '{"image":"nginx:latest"}')
        self.put("/g/c", b"\x00bin\xffary needle\x1b[2J")
        self.put("/g/needle", "other")
        self.assertEqual(self.vigil("grep", "^s.*Line$", "/g/"), "/g/a: second Line\n")
        self.assertEqual(self.vigil("grep", "-i", "line", "/g/"), "/g/a: first line\n/g/a: second Line\n")
        self.assertEqual(self.vigil("grep", '"image": ".*:latest"', "/g/"), '/g/b:   "image": "nginx:latest"\n')
        self.assertEqual(self.vigil("grep", "needle", "/g/"), "/g/c: \\x00bin\\xffary needle\\x1b[2J\n/g/needle\n")
        self.assertEqual(self.vigil("grep", "-l", "needle", "/g/"), "/g/c\n/g/needle\n")
        self.assertEqual(self.vigil("grep", "-c", "needle", "/g/"), "2\n")
        self.assertEqual(self.vigil("grep", "--keys-only", "needle", "/g/"), "/g/needle\n")
        self.assertEqual(self.vigil("grep", "--values-only", "-c", "needle", "/g/"), "1\n")
        self.assertEqual(self.vigil("grep", "-v", "-c", "needle", "/g/"), "2\n")
        self.assertEqual([v["key"] for v in self.lines("grep", "needle", "/g/")], ["/g/c", "/g/needle"])
        self.assertEqual(self.vigil("grep", "absent", "/g/", code=1), "")
        self.assertIn("regular expression", self.refused("grep", "(", "/g/", code=128))

    def test_restore_key_does_not_hide_a_change(self):
        first = self.put("/r/a", "old")
        self.put("/r/a", "marker of the current value")
        self.assertEqual(self.vigil("restore-key", "/r/a", "--rev", str(first), "--dry-run"),
                         f"The value of revision {first} would replace the current one.\n- marker of the current value\n+ old\n")
        with Relay(self.server.port, b"marker of the current value", lambda: self.put("/r/a", "newer")) as relay:
            done = self.run_command("restore-key", "/r/a", "--rev", str(first), flags=["--endpoints", f"127.0.0.1:{relay.port}"])
        self.assertEqual(done.returncode, 1, done)
        self.assertIn(b"changed meanwhile", done.stderr)
        self.assertEqual(self.vigil("get", "/r/a", "--print-value-only"), "newer\n")
        self.assertIn("Restored", self.vigil("restore-key", "/r/a", "--rev", str(first)))
        self.assertEqual(self.vigil("get", "/r/a", "--print-value-only"), "old\n")
        self.assertIn("nothing was written", self.vigil("restore-key", "/r/a", "--rev", str(first)))
        self.vigil("del", "/r/a")
        restored, = self.lines("restore-key", "/r/a", "--rev", str(first))
        self.assertEqual((restored["restored_revision"], restored["replaced_revision"], restored["written"]), (first, 0, True))
        self.assertIn("did not exist", self.refused("restore-key", "/r/none", "--rev", str(first)))
        self.assertIn("--rev", self.refused("restore-key", "/r/a", code=128))

    def test_restore_key_and_leases(self):
        first = self.put("/rl/a", "old")
        lease = re.search("lease (\\w+) granted", self.vigil("lease", "grant", "600"))[1]
        self.vigil("put", "/rl/a", "new", "--lease", lease)
        kept, = self.lines("restore-key", "/rl/a", "--rev", str(first))
        self.assertEqual(kept["lease"], int(lease, 16), "the key has its current lease")
        none, = self.lines("restore-key", "/rl/a", "--rev", str(kept["revision"]), "--lease", "none")
        self.assertEqual((none["lease"], none["written"]), (0, True))
        self.vigil("lease", "revoke", lease)
        refused = self.refused("restore-key", "/rl/a", "--rev", str(kept["revision"]), "--lease", "original")
        self.assertIn("lease not found", refused)

    def test_values_of_kubernetes_are_yaml(self):
        self.put("/k/protobuf", config_map("web", color="blue"))
        self.put("/k/json", json.dumps({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "b"}}))
        yaml = "apiVersion: v1\ndata:\n  color: blue\nkind: ConfigMap\nmetadata:\n  name: web\n  namespace: default\n"
        self.assertEqual(self.vigil("get", "/k/protobuf", "--print-value-only", "--decode", "k8s"), yaml)
        self.assertEqual(self.run_command("get", "/k/protobuf", "--print-value-only").stdout, config_map("web", color="blue") + b"\n")
        found = {v["key"]: v for v in self.lines("get", "/k/", "--prefix", "--decode", "k8s")}
        self.assertEqual(found["/k/protobuf"]["value"]["data"], {"color": "blue"})
        self.assertEqual(found["/k/json"]["value"]["kind"], "ConfigMap")
        self.put("/k/bytes", b"\xff")
        self.assertEqual(self.lines("get", "/k/bytes")[0]["valueBase64"], "/w==")
        table = self.vigil("get", "/k/", "--prefix", "-w", "table")
        self.assertRegex(table, r"/k/protobuf .* ConfigMap default/web ")
        self.put("/k/protobuf", config_map("web", color="red"))
        self.assertIn("-   color: blue\n                      +   color: red\n", self.vigil("history", "/k/protobuf"))
        self.assertEqual(self.vigil("grep", "color: red", "/k/"), "/k/protobuf:   color: red\n")

    def test_watch_shows_times_and_differences(self):
        begin = str(self.put("/w/a", "1\n2\n"))
        watch = self.begin("watch", "--prefix", "/w/", "--rev", begin)
        self.assertRegex(watch.stdout.readline().decode(), r"^[\d:.]{12}  PUT     /w/a  revision \d+, version 1\n")
        self.assertEqual([watch.stdout.readline(), watch.stdout.readline()], [b" " * 14 + b"+ 1\n", b" " * 14 + b"+ 2\n"])
        self.put("/w/a", "1\n3\n")
        self.assertRegex(watch.stdout.readline().decode(), r"PUT     /w/a  revision \d+, version 2\n")
        self.assertEqual([watch.stdout.readline().strip() for _ in range(3)], [b"1", b"- 2", b"+ 3"])
        self.vigil("del", "/w/a")
        self.assertRegex(watch.stdout.readline().decode(), r"DELETE  /w/a  revision \d+\n")
        watch.send_signal(signal.SIGINT)
        watch.wait(SECONDS)
        lines = self.begin("watch", "--prefix", "/w/", "--rev", begin, "-w", "jsonl")
        event = json.loads(lines.stdout.readline())
        self.assertEqual((event["type"], event["key"], event["value"]), ("PUT", "/w/a", "1\n2\n"))
        self.assertRegex(event["time"], r"^\d{4}-\d\d-\d\dT[\d:.]+Z$")

    def test_top_reports_calls_and_prefixes(self):
        top = self.begin("top", "/t/", "-n", "8", "--interval", "100ms", "-w", "json")
        reports = []
        while not reports or not reports[-1]["prefixes"]:
            self.client.put(b"/t/pods/a", b"x")
            reports.append(json.loads(top.stdout.readline()))
        reports += [json.loads(line) for line in top.stdout]
        last = reports[-1]
        self.assertEqual(last["prefixes"][0]["prefix"], "/t/pods/")
        self.assertGreaterEqual(last["prefixes"][0]["changes"], 1)
        self.assertEqual(last["server"], "etcd" if is_etcd(self.binary) else "vigil")
        self.assertEqual(len(reports), 8)
        for name in "revision", "memory_bytes", "watchers", "cpu", "keys":
            self.assertGreaterEqual(last[name], 0, name)
        self.assertGreater(next(c for c in last["calls"] if c["method"] == "KV/Put")["total"], 0)
        text = self.vigil("top", "--once", "--interval", "100ms")
        self.assertRegex(text, r"^vigil top  [\d:]{8}  127\.0\.0\.1:\d+  (Vigil, as )?etcd 3\.")
        self.assertIn("\nKV/Put ", text)
        nowhere = ["--endpoints", "127.0.0.1:1", "--command-timeout", "500ms"]
        self.assertIn("connection refused", self.refused("top", "--once", flags=nowhere, code=2))

    def test_doctor_finds_what_is_wrong(self):
        done = self.run_command("doctor", "-w", "json")
        report = json.loads(done.stdout)
        found = {f["what"]: f for f in report["findings"]}
        self.assertLessEqual({"answer", "leader", "size", "compaction", "watches", "files", "members", "alarm"}, set(found))
        # How fast the disk and the machine are does not concern this test.
        bad = [f for f in report["findings"] if f["level"] == "bad"]
        self.assertEqual([f for f in bad if f["what"] not in ("disk", "answer")], [])
        self.assertEqual((done.returncode, report["bad"]), (1 if bad else 0, len(bad)))
        dead = self.run_command("doctor", "-w", "json", "--command-timeout", "500ms",
                                flags=["--endpoints", f"{self.endpoint},127.0.0.1:1"])
        self.assertEqual(dead.returncode, 1)
        refused, = [f for f in json.loads(dead.stdout)["findings"] if f["where"] == "127.0.0.1:1"]
        self.assertEqual((refused["level"], refused["what"]), ("bad", "answer"))
        self.assertIn("connection refused", refused["text"])
        self.assertRegex(self.run_command("doctor").stdout.decode(), r"\n\d+ bad, \d+ warnings, \d+ good\n$")


class Relay:
    """Forwards one connection, and calls a function before the client receives some bytes for the first time."""

    def __init__(self, port, marker, hook):
        self.target, self.marker, self.hook = port, marker, hook
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]

    def __enter__(self):
        threading.Thread(target=self.serve, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.listener.close()

    def serve(self):
        client, _ = self.listener.accept()
        server = socket.create_connection(("127.0.0.1", self.target))
        threading.Thread(target=self.copy, args=(client, server, None), daemon=True).start()
        self.copy(server, client, self.marker)

    def copy(self, source, to, marker):
        try:
            while data := source.recv(1 << 16):
                if marker and marker in data:
                    marker = None
                    self.hook()
                to.sendall(data)
        except OSError:
            pass
        to.close()
        source.close()


class OnVigil(OnServer):
    binary = SUBJECT

    def test_pages_become_smaller_where_values_are_large(self):
        for i in range(12):
            self.client.put(f"/big/{i:02}".encode(), b"x" * 1_000_000)
        before = self.range_calls()
        limit = ["--endpoints", self.endpoint, "--max-recv-bytes", str(4 << 20)]
        rows = self.vigil("tree", "/big/", flags=limit).splitlines()
        self.assertEqual(rows[1].split(), ["12", "11.4", "MiB", "/big/"])
        self.assertLessEqual(self.range_calls() - before, 20)
        self.assertIn("max-recv-bytes", self.refused("tree", "/big/", flags=[*limit[:3], str(1 << 18)]))


@unittest.skipUnless(pathlib.Path(PEER).exists(), "no real etcd was built (tools/build-peer)")
class OnEtcd(OnServer):
    binary = PEER
    # What does not depend on the server is tested once.
    test_values_of_kubernetes_are_yaml = test_grep_answers_like_grep = test_restore_key_and_leases = None
    test_get_of_many_keys_reads_pages_at_one_revision = None


@unittest.skipUnless(pathlib.Path(OLDER).exists(), "no etcd of the distribution")
@unittest.skipIf(IN_FRONT, "the same without Vigil")
class OnOlderEtcd(OnServer):
    binary = OLDER
    test_grep_answers_like_grep = test_restore_key_and_leases = test_values_of_kubernetes_are_yaml = None
    test_diff_of_many_keys_reads_each_state_once = test_watch_shows_times_and_differences = None
    test_get_of_many_keys_reads_pages_at_one_revision = test_top_shows_several_servers = None
    test_tree_reads_in_pages_and_counts_every_directory = test_restore_key_does_not_hide_a_change = None


class WithUsers(LiveTest, Commands):
    """With TLS and users: each command has the rights of its user."""
    binary = SUBJECT

    def setUp(self):
        super().setUp()
        authority = Authority(self.scratch / "certs")
        identity = authority.sign("server")
        port = free_port()
        url = f"https://127.0.0.1:{port}"
        args = ["--cert-file", identity.cert, "--key-file", identity.key]
        server = self.server(port=port, listen=url, args=args + ["--advertise-client-urls", url], binary=self.binary)
        server.start()
        self.endpoint = url
        self.profiles = self.scratch / "profiles.yaml"
        self.profiles.write_text(f"root:\n  endpoints: [{url}]\n  cacert: certs/ca.pem\n  user: root\n  password: secret\n"
                                 f"reader:\n  endpoints: {url}\n  cacert: {authority.cert}\n  user: reader:word\n")
        self.profiles.chmod(0o600)
        setup = ["--cacert", authority.cert]
        for line in ("user add root:secret", "user grant-role root root", "user add reader:word", "role add reader",
                     "role grant-permission reader read --prefix=true /app/", "user grant-role reader reader",
                     "put /app/a 1", "put /app/a 2", "put /secret s", "auth enable"):
            if line == "user grant-role root root":
                self.run_command(*setup, "role", "add", "root")
            self.vigil(*setup, *line.split())

    def profile(self, name, *words, **options):
        return self.vigil(*words, flags=["--profile", name], env={"VIGIL_PROFILES": str(self.profiles)}, **options)

    def denied(self, *words, code=1):
        done = self.run_command(*words, flags=["--profile", "reader"], env={"VIGIL_PROFILES": str(self.profiles)})
        self.assertEqual(done.returncode, code, done)
        self.assertIn(b"permission denied", done.stderr + done.stdout)

    def test_commands_have_the_rights_of_their_user(self):
        self.assertEqual(self.profile("reader", "get", "/app/a"), "/app/a\n2\n")
        self.assertEqual(self.profile("reader", "tree", "/app/").splitlines()[1].split()[0], "1")
        self.denied("tree")
        self.assertEqual(self.profile("reader", "history", "/app/a", "--no-values").count("PUT"), 2)
        self.denied("history", "/secret")
        first = int(re.search(r"revision (\d+)", self.profile("reader", "history", "/app/a"))[1])
        self.assertIn("~ /app/a", self.profile("reader", "diff", "/app/", "--from", str(first), code=1))
        self.denied("diff", "", "--from", str(first), code=2)
        self.assertEqual(self.profile("reader", "grep", "-c", "2", "/app/"), "1\n")
        self.denied("grep", "s", code=2)
        self.denied("restore-key", "/app/a", "--rev", str(first))
        self.assertEqual(self.profile("root", "restore-key", "/app/a", "--rev", str(first)).split()[0], "Restored:")
        report = json.loads(self.profile("root", "top", "--once", "--interval", "100ms", "-w", "json"))
        self.assertGreater(report["memory_bytes"], 0, "metrics over TLS")
        report = json.loads(self.profile("reader", "top", "--once", "--interval", "100ms", "-w", "json"))
        self.assertIn("permission denied", report["prefixes_error"])
        done = self.run_command("doctor", flags=["--profile", "root"], env={"VIGIL_PROFILES": str(self.profiles)})
        self.assertIn(b"alarm: no alarm", done.stdout)

    def test_profiles_are_listed_without_secrets(self):
        listed = self.profile("root", "profile", "list")
        self.assertEqual([line.split() for line in listed.splitlines()], [["root", self.endpoint], ["reader", self.endpoint]])
        shown = self.profile("root", "profile", "show", "root")
        self.assertIn("password: (not shown)\n", shown)
        self.assertIn("user: (not shown)\n", self.profile("root", "profile", "show", "reader"))
        self.assertNotIn("secret", shown)
        self.profiles.chmod(0o644)
        done = self.run_command("get", "a", flags=["--profile", "root"], env={"VIGIL_PROFILES": str(self.profiles)})
        self.assertNotEqual(done.returncode, 0)
        self.assertIn(b"chmod 600", done.stderr)
        self.profiles.chmod(0o600)
        done = self.run_command("get", "a", flags=["--profile", "none"], env={"VIGIL_PROFILES": str(self.profiles)})
        self.assertIn(b'there is no profile "none"', done.stderr)
        done = self.run_command("get", "/app/a", "--user", "reader:wrong", flags=["--profile", "root"],
                                env={"VIGIL_PROFILES": str(self.profiles)})
        self.assertIn(b"authentication failed", done.stderr)


@unittest.skipUnless(pathlib.Path(PEER).exists(), "no real etcd was built (tools/build-peer)")
class WithUsersOfEtcd(WithUsers):
    binary = PEER
    test_profiles_are_listed_without_secrets = None


del OnServer
if __name__ == "__main__":
    unittest.main()
