#!/usr/bin/python3
"""migrate of etcdctl 3.4: the original and the link work on copies of the same data directory of a real etcd, and everything is
compared: output, exit code, errors, the hash of the resulting database, and what an etcd that starts with it has."""
import os
import pathlib
import re
import shutil
import stat
import subprocess
import tempfile
import time
import unittest
import urllib.error
import urllib.parse
import urllib.request

from compare import ORIGINALS, SUBJECT, original_exists
from server import Server, is_etcd

HERE = pathlib.Path(__file__).resolve().parent
SECONDS_MAX = 60
TRANSFORMER = str(HERE / "transformer.py")
ETCD = "/usr/bin/etcd"
PLAIN = {k: v for k, v in os.environ.items() if not k.startswith(("ETCDCTL_", "VIGIL_"))}
CTL = {**PLAIN, "ETCDCTL_API": "3"}
QUESTIONS = ("get / --prefix -w fields", "get k --prefix -w fields", "get /new --prefix -w json", "lease list", "get / --prefix --rev 12",
             "lease timetolive 3e8")


def v2(server, method, path, query="", **form):
    """A request of the v2 API. What is refused is in the log as well."""
    body = urllib.parse.urlencode(form, encoding="latin-1").encode() if form else None
    request = urllib.request.Request(f"{server.url}/v2/keys{path}{query}", body, method=method)
    try:
        urllib.request.urlopen(request, timeout=SECONDS_MAX).read()
    except urllib.error.HTTPError as error:
        error.read()


def ctl(server, *words):
    subprocess.run([ORIGINALS["3.4"], "--endpoints", server.url, *words], env=CTL, check=True, stdout=subprocess.DEVNULL,
                   timeout=SECONDS_MAX)


def member_id(server):
    done = subprocess.run([ORIGINALS["3.4"], "--endpoints", server.url, "member", "list"], env=CTL, check=True, capture_output=True,
                          timeout=SECONDS_MAX)
    return done.stdout.decode().partition(",")[0]


def write_keys(server):
    """Every kind of request, those that are refused too."""
    v2(server, "PUT", "/a", value="1")
    v2(server, "PUT", "/a", value="2")
    v2(server, "PUT", "/d/e/f", value="<x>&\"\xc3\xa9\n\x01\xe2\x80\xa8")
    v2(server, "PUT", "/dir", dir="true")
    v2(server, "PUT", "/ttl", value="t", ttl="10000")
    v2(server, "PUT", "/gone", value="t", ttl="1")
    v2(server, "POST", "/queue", value="one")
    v2(server, "POST", "/queue", value="two", ttl="5000")
    v2(server, "PUT", "/a", "?prevValue=2", value="3")
    v2(server, "PUT", "/a", "?prevValue=9", value="4")
    v2(server, "PUT", "/a", "?prevIndex=3", value="4")
    v2(server, "PUT", "/b", "?prevExist=true", value="4")
    v2(server, "PUT", "/b", "?prevExist=false", value="4")
    v2(server, "PUT", "/b", "?prevExist=true", value="5")
    v2(server, "PUT", "/ttl", "?prevExist=true", refresh="true", ttl="20000")
    v2(server, "DELETE", "/queue")
    v2(server, "DELETE", "/d", "?recursive=true")
    v2(server, "PUT", "/d/g", value="")
    v2(server, "PUT", "/d!", value="sorts before /d/g")
    v2(server, "PUT", "/expiring", dir="true", ttl="3000")
    v2(server, "PUT", "/expiring/inside", value="zz")
    v2(server, "PUT", "/_hidden/x", value="h")
    v2(server, "PUT", "/d/g/file", value="in the way")
    v2(server, "DELETE", "/b", "?prevValue=5")
    v2(server, "PUT", "/bytes", value="\xff\xfe not UTF-8")
    v2(server, "DELETE", "/dir", "?dir=true")
    v2(server, "GET", "/a", "?quorum=true")
    v2(server, "PUT", "/_hidden", value="x")


def await_expiry(server):
    end = time.monotonic() + SECONDS_MAX
    while time.monotonic() < end:
        try:
            urllib.request.urlopen(f"{server.url}/v2/keys/gone", timeout=SECONDS_MAX).read()
        except urllib.error.HTTPError:
            return
        time.sleep(0.05)
    raise AssertionError("the key does not expire")


class Migrate(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if not original_exists("3.4") or not os.access(ETCD, os.X_OK):
            raise unittest.SkipTest("no etcd 3.4")
        assert is_etcd(ETCD)
        cls.root = pathlib.Path(tempfile.mkdtemp(prefix="vigil-migrate-"))
        cls.addClassCleanup(shutil.rmtree, cls.root, True)
        cls.made = {}
        (cls.root / "etcdctl").symlink_to(SUBJECT)

    def setUp(self):
        self.scratch = pathlib.Path(tempfile.mkdtemp(prefix="case-", dir=self.root))
        self.addCleanup(shutil.rmtree, self.scratch, True)
        self.sides = [self.scratch / "original", self.scratch / "link"]
        for side in self.sides:
            side.mkdir()

    # -- Directories of a real etcd, each made once --

    @classmethod
    def source(cls, name):
        if name not in cls.made:
            cls.made[name] = getattr(cls, f"make_{name}")(cls.root / f"source-{name}")
        return cls.made[name]

    @staticmethod
    def serve(directory, *args, synced=False):
        """An etcd that will be killed must be synced: without it, etcd keeps the end of its log in a buffer of the process."""
        return Server(directory, [*([] if synced else ["--unsafe-no-fsync"]), *args], binary=ETCD).start()

    @classmethod
    def make_log(cls, directory):
        """Everything is in the log. The keys of the v3 API stay."""
        server = cls.serve(directory, "--enable-v2")
        ctl(server, "put", "key of v3", "v")
        ctl(server, "lease", "grant", "1000")
        write_keys(server)
        await_expiry(server)
        server.stop()
        return directory

    @classmethod
    def make_snapshots(cls, directory):
        """Most is in snapshots, and the end in the log of a killed etcd."""
        server = cls.serve(directory, "--enable-v2", "--snapshot-count", "10", synced=True)
        write_keys(server)
        await_expiry(server)
        for i in range(60):
            v2(server, "PUT", f"/many/{i % 7}", value=str(i))
        server.kill()
        return directory

    @classmethod
    def make_members(cls, directory):
        """The member changes its address; another one joins, never starts, and is removed by force."""
        server = cls.serve(directory, "--enable-v2", "--strict-reconfig-check=false")
        v2(server, "PUT", "/a", value="1")
        ctl(server, "member", "update", member_id(server), "--peer-urls", "http://127.0.0.1:2389")
        ctl(server, "member", "add", "learner", "--learner", "--peer-urls", "http://127.0.0.1:1")
        v2(server, "PUT", "/b", value="2")
        server.stop()
        server = cls.serve(directory, "--enable-v2", "--force-new-cluster", synced=True)
        v2(server, "PUT", "/c", value="3")
        ctl(server, "member", "add", "other", "--peer-urls", "http://127.0.0.1:2")
        server.kill()
        server = cls.serve(directory, "--enable-v2", "--force-new-cluster")
        v2(server, "PUT", "/d", value="4")
        server.stop()
        return directory

    @classmethod
    def make_plain(cls, directory):
        """Nobody has used the v2 API."""
        server = cls.serve(directory)
        ctl(server, "put", "k", "v")
        server.stop()
        return directory

    # -- Comparing --

    def copy(self, name):
        for side in self.sides:
            shutil.copytree(self.source(name), side / "data")

    def each(self, change):
        """The same change of both copies."""
        for side in self.sides:
            change(side / "data")

    def command(self, side, words):
        if side.name == "original":
            return [ORIGINALS["3.4"], *words], CTL
        return [str(self.root / "etcdctl"), *words], {**CTL, "ETCDCTL_COMPAT": "3.4"}

    def run_side(self, side, *words):
        command, env = self.command(side, words)
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=SECONDS_MAX, env=env, cwd=side, check=False)
        self.assertNotIn(b"AddressSanitizer", done.stderr, done.stderr.decode(errors="replace"))
        self.assertNotIn(b"runtime error", done.stderr, done.stderr.decode(errors="replace"))
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    def same(self, *flags, words=("migrate", "--data-dir", "data")):
        """Both end alike; returns how."""
        original, link = [self.run_side(side, *words, *flags) for side in self.sides]
        self.assertEqual(original, link)
        return link

    def database_hash(self, side):
        db = str(side / "data/member/snap/db")
        done = subprocess.run([ORIGINALS["3.4"], "snapshot", "status", db, "-w", "json"], env=CTL, capture_output=True, check=True,
                              timeout=SECONDS_MAX)
        return re.sub(rb'"totalSize":\d+', b"", done.stdout)

    def contents(self, side):
        """What an etcd that starts with the directory has."""
        server = self.serve(side / "data", "--enable-v2")
        try:
            return [subprocess.run([ORIGINALS["3.4"], "--endpoints", server.url, *line.split()], env=CTL, capture_output=True,
                                   timeout=SECONDS_MAX, check=False).stdout for line in QUESTIONS]
        finally:
            server.stop()

    def same_database(self):
        """Both databases are equal; returns what is in the link's."""
        self.assertEqual(*[self.database_hash(side) for side in self.sides])
        return self.same_contents()

    def same_contents(self):
        original, link = [self.contents(side) for side in self.sides]
        changing = re.compile(rb'"?(raft_term|RaftTerm)"? ?: ?\d+|remaining\(\d+s\)')
        self.assertEqual(*[[changing.sub(b"", text) for text in texts] for texts in (original, link)])
        return link

    def finished(self, result):
        self.assertEqual(result[0], 0, result)
        self.assertTrue(result[1].endswith("finished transforming keys\n"), result)

    # -- The command --

    def test_log(self):
        self.copy("log")
        self.finished(self.same())
        found = self.same_database()
        self.assertIn(b'"Key" : "/d!"', found[0])
        self.assertNotIn(b'"/gone"', found[0])
        self.assertNotIn(b"_hidden", found[0])
        self.assertIn(b'"Key" : "key of v3"', found[1])

    def test_snapshots(self):
        self.copy("snapshots")
        self.assertTrue(list((self.sides[0] / "data/member/snap").glob("*.snap")))
        self.finished(self.same())
        self.assertIn(b'"/many/6"', self.same_database()[0])

    def test_keys_can_be_imported_then(self):
        self.copy("log")
        side = self.sides[1]
        self.run_side(side, "migrate", "--data-dir", "data")
        subprocess.run([SUBJECT, "import", "--data-dir", side / "new", side / "data"], check=True, capture_output=True, timeout=SECONDS_MAX)
        server = Server(side / "new").start()
        self.addCleanup(server.stop)
        found = subprocess.run([ORIGINALS["3.4"], "--endpoints", server.url, "get", "/d!", "--print-value-only"], env=CTL,
                               capture_output=True, timeout=SECONDS_MAX, check=True).stdout
        self.assertEqual(found, b"sorts before /d/g\n")

    def test_again_changes_nothing(self):
        self.copy("log")
        self.same()
        before = self.database_hash(self.sides[1])
        self.finished(self.same())
        self.assertEqual(before, self.database_hash(self.sides[1]))
        self.same_database()

    def test_without_keys_that_expire(self):
        self.copy("log")
        self.finished(self.same("--no-ttl"))
        found = self.same_database()
        self.assertNotIn(b'"/ttl"', found[0])
        self.assertIn(b'"/expiring/inside"', found[0])

    def test_members(self):
        self.copy("members")
        result = self.same()
        self.finished(result)
        for text in ("updated member", "added member", "removed member"):
            self.assertIn(text, result[1])
        self.same_database()

    def test_without_database(self):
        self.copy("log")
        self.each(lambda data: (data / "member/snap/db").unlink())
        self.finished(self.same())
        self.assertEqual(stat.S_IMODE((self.sides[1] / "data/member/snap/db").stat().st_mode), 0o600)
        self.same_database()

    def test_no_keys(self):
        self.copy("plain")
        before = self.database_hash(self.sides[1])
        result = self.same()
        self.assertEqual((result[0], result[1].splitlines()[-1]), (0, "no v2 keys to migrate"))
        self.assertEqual(before, self.database_hash(self.sides[1]))

    def test_log_elsewhere(self):
        self.copy("log")
        self.each(lambda data: (data / "member/wal").rename(data.parent / "elsewhere"))
        self.assertEqual(self.same()[0], 1)
        self.finished(self.same("--wal-dir", "elsewhere"))
        self.each(lambda data: (data.parent / "elsewhere").rename(data / "member/wal"))
        self.same_database()

    def test_transformer(self):
        for name in ("log", "snapshots"):
            with self.subTest(name):
                self.copy(name)
                self.finished(self.same("--transformer", TRANSFORMER))
                nodes = [re.sub(rb'"ttl":-?\d+', b'"ttl":0', (side / "nodes").read_bytes()) for side in self.sides]
                self.assertEqual(*nodes)
                self.assertIn(b"\\u003cx\\u003e" if b"\\u003c" in nodes[0] else b'"key":"/"', nodes[1])
                found = self.same_database()
                self.assertIn(b"lease", found[2])
                self.each(shutil.rmtree)

    def test_transformer_fails(self):
        self.copy("log")
        for line in ("cat > got; exit 3", "exit 1", "cat > got; kill -9 $$"):
            self.each(lambda data: self.script(data.parent, line))
            before = self.database_hash(self.sides[1])
            result = self.same("--transformer", "./script")
            self.assertEqual((result[0], result[1].splitlines()[-1]), (1, "failed to transform keys"), line)
            self.assertEqual(before, self.database_hash(self.sides[1]))

    def test_transformer_is_missing(self):
        self.copy("plain")
        self.each(lambda data: (data.parent / "text").write_text("no program"))
        for program in ("./none", "vigil-no-such-program", "./text", "./data"):
            with self.subTest(program):
                self.assertEqual(self.same("--transformer", program)[0], 1)

    def test_transformer_answers_nothing(self):
        self.copy("log")
        self.each(lambda data: self.script(data.parent, "cat > got"))
        self.finished(self.same("--transformer", "./script"))
        self.same_database()

    @staticmethod
    def script(directory, line):
        path = directory / "script"
        path.write_text(f"#!/bin/sh\n{line}\n")
        path.chmod(0o755)

    # -- Where the link refuses what the original loses keys by --

    def test_nonsense_is_refused_and_nothing_is_written(self):
        self.copy("log")
        side = self.sides[1]
        before = (side / "data/member/snap/db").read_bytes()
        for line, reason in (("cat > got; printf '\\005\\000\\000'", "the answer ends within a key"),
                             ("yes", "the limit is"),
                             ("printf '\\001\\000\\000\\000\\000\\000\\000\\000\\377'", "not a key"),
                             ("printf '\\000\\000\\000\\000\\000\\000\\000\\000'", "a key has the revision 0")):
            self.script(side, line)
            code, out, err = self.run_side(side, "migrate", "--data-dir", "data", "--transformer", "./script")
            self.assertEqual((code, out.splitlines()[-1]), (1, "failed to transform keys"), line)
            self.assertIn(reason, err)
            self.assertEqual(before, (side / "data/member/snap/db").read_bytes())
        self.assertEqual(sorted(os.listdir(side / "data/member/snap")), ["db"])

    def test_directory_of_vigil_is_named(self):
        side = self.sides[1]
        server = Server(side / "data")
        server.start()
        server.stop()
        code, out, err = self.run_side(side, "migrate", "--data-dir", "data")
        self.assertEqual((code, out), (1, ""))
        self.assertEqual(err, "Error: data is a data directory of Vigil, which has no v2 store: migrate is for those of etcd\n")

    # -- Damage and other errors --

    def test_missing_directories(self):
        for words in (["migrate"], ["migrate", "--data-dir", "none"], ["migrate", "--data-dir", "./none/"], ["migrate", "--data-dir", "."],
                      ["migrate", "more", "--data-dir", "none"]):
            with self.subTest(words):
                self.assertEqual(self.same(words=words)[0], 1)

    def test_log_without_files(self):
        self.copy("plain")
        self.each(lambda data: [file.unlink() for file in (data / "member/wal").iterdir()])
        self.assertEqual(self.same()[2], "Error: wal: file not found\n")
        self.assertTrue((self.sides[1] / "data/member/snap/db").exists())

    def test_damaged_record(self):
        self.copy("log")

        def damage(data):
            path = next((data / "member/wal").glob("*.wal"))
            text = path.read_bytes()
            at = text.index(b"key of v3")
            path.write_bytes(text[:at] + b"K" + text[at + 1:])
        self.each(damage)
        before = (self.sides[1] / "data/member/snap/db").read_bytes()
        self.assertEqual(self.same()[::2], (1, "Error: walpb: crc mismatch\n"))
        self.assertEqual(before, (self.sides[1] / "data/member/snap/db").read_bytes())

    def test_impossible_length(self):
        self.copy("log")

        def damage(data):
            path = next((data / "member/wal").glob("*.wal"))
            text = path.read_bytes().rstrip(b"\0")
            path.write_bytes(text + bytes(-len(text) % 8) + b"\xff" * 7 + bytes(1000))
        self.each(damage)
        self.assertEqual(self.same()[::2], (1, "Error: wal: max entry size limit exceeded\n"))

    def test_torn_end(self):
        self.copy("log")

        def tear(data):
            path = next((data / "member/wal").glob("*.wal"))
            path.write_bytes(path.read_bytes().rstrip(b"\0")[:-20])
        self.each(tear)
        self.finished(self.same())
        self.same_database()

    def test_log_of_another_snapshot(self):
        self.copy("snapshots")

        def keep_newest(data):
            for path in sorted((data / "member/snap").glob("*.snap"))[:-1]:
                path.unlink()
            newest = next((data / "member/snap").glob("*.snap"))
            text = newest.read_bytes()
            newest.unlink()
            (data / "member/snap/0000000000000009-00000000000000ff.snap").write_bytes(text)
        self.each(keep_newest)
        self.finished(self.same())
        self.each(lambda data: shutil.rmtree(data / "member/wal"))
        self.each(lambda data: shutil.copytree(self.source("plain") / "member/wal", data / "member/wal"))
        self.assertEqual(self.same()[0], 1)

    def test_broken_snapshot_is_set_aside(self):
        self.copy("snapshots")

        def damage(data):
            newest = max((data / "member/snap").glob("*.snap"))
            text = newest.read_bytes()
            newest.write_bytes(text[:-40] + b"????" + text[-36:])
        self.each(damage)
        result = self.same()
        self.finished(result)
        self.assertIn("renamed to a broken snap file", result[1])
        self.assertEqual(*[sorted(os.listdir(side / "data/member/snap")) for side in self.sides])
        self.same_database()

    def test_foreign_files(self):
        self.copy("plain")

        def add(data):
            (data / "member/wal/0.wal.broken").write_text("")
            (data / "member/wal/notes").write_text("")
            (data / "member/snap/notes").write_text("")
            (data / "member/snap/db.tmp.5").write_text("")
        self.each(add)
        self.assertIn("ignored file in WAL directory", self.same()[1])
        self.assertEqual(*[sorted(os.listdir(side / "data/member/snap")) for side in self.sides])

    def test_running_etcd_is_awaited(self):
        self.copy("log")
        servers = [self.serve(side / "data") for side in self.sides]
        processes = []
        for side in self.sides:
            command, env = self.command(side, ["migrate", "--data-dir", "data"])
            processes.append(subprocess.Popen(command, env=env, cwd=side, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                              stderr=subprocess.PIPE))
        texts = [process.stderr.readline() for process in processes]
        for server in servers:
            server.stop()
        outputs = [process.communicate(timeout=SECONDS_MAX) for process in processes]
        self.assertEqual(texts, [b'waiting for etcd to close and release its lock on "data/member/snap/db"\n'] * 2)
        self.assertEqual([process.returncode for process in processes], [0, 0])
        self.assertEqual(*outputs)
        # The original has read the log before the etcd wrote its last entries, and so has another index of raft.
        self.same_contents()

    def test_words(self):
        for words in (["migrate", "--none"], ["migrate", "--no-ttl=x"], ["migrate", "--data-dir"], ["migr"]):
            original, link = [self.run_side(side, *words) for side in self.sides]
            self.assertEqual((original[0], original[2].splitlines()[:1]), (link[0], link[2].splitlines()[:1]), words)


class NotIn37(unittest.TestCase):
    def test_unknown_command(self):
        if not original_exists("3.7"):
            self.skipTest("no etcdctl 3.7")
        with tempfile.TemporaryDirectory() as scratch:
            link = pathlib.Path(scratch, "etcdctl")
            link.symlink_to(SUBJECT)
            results = []
            for program in (ORIGINALS["3.7"], str(link)):
                done = subprocess.run([program, "migrate", "--data-dir", "x"], env=PLAIN, capture_output=True, timeout=SECONDS_MAX,
                                      check=False)
                results.append((done.returncode, done.stdout, done.stderr))
            self.assertEqual(*results)


if __name__ == "__main__":
    unittest.main()
