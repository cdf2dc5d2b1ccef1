#!/usr/bin/python3
"""Data directories that are in use, foreign, torn or damaged."""
import collections
import json
import os
import pathlib
import re
import shutil
import stat
import subprocess
import unittest
import urllib.request


from client import Client
from server import PEER, SUBJECT, LiveTest, Server, only_vigil

SEGMENT_RECORDS_OFFSET = 512  # after the head and the seal
RECORD_HEAD_BYTES = 32
KEYS = 40


@only_vigil
class Refusals(LiveTest):
    def assert_refuses(self, server, *words):
        code, text = server.refuse()
        self.assertGreater(code, 0, text)
        self.assertNotIn("Sanitizer", text)
        for word in words:
            self.assertRegex(text, word)

    def test_in_use(self):
        first = self.serving()
        self.assert_refuses(self.server(first.directory), re.escape(first.directory), "in use")
        client = Client(first.port)
        self.addCleanup(client.close)
        client.put(b"still", b"served")

    def test_in_use_without_a_lock_file(self):
        first = self.serving()
        pathlib.Path(first.directory, "LOCK").unlink()
        self.assert_refuses(self.server(first.directory), re.escape(first.directory), "in use")
        done = subprocess.run([SUBJECT, "repair", "--data-dir", first.directory], capture_output=True, text=True)
        self.assertIn("in use", done.stderr)
        client = Client(first.port)
        self.addCleanup(client.close)
        client.put(b"still", b"served")
        first.stop()
        self.serving(first.directory)  # a removed file is not missed later

    def test_directory_of_a_real_etcd(self):
        if not pathlib.Path(PEER).exists():
            self.skipTest("no real etcd was built (tools/build-peer)")
        directory = self.scratch / "etcd"
        etcd = Server(directory, binary=PEER)
        etcd.start()
        etcd.stop()
        before = sorted(p.relative_to(directory) for p in directory.rglob("*"))
        self.assert_refuses(self.server(directory), str(directory), "etcd")
        self.assertEqual(before, sorted(p.relative_to(directory) for p in directory.rglob("*")))

    def test_directory_that_looks_like_etcds(self):
        (self.scratch / "data/member/wal").mkdir(parents=True)
        (self.scratch / "data/member/snap").mkdir()
        (self.scratch / "data/member/snap/db").write_bytes(bytes(4096))
        self.assert_refuses(self.server(), "etcd")

    def test_directory_of_another_format(self):
        directory = self.scratch / "data"
        self.serving().stop()
        marks = [p for p in directory.iterdir() if p.is_file() and "format" in p.name.lower()]
        self.assertEqual(len(marks), 1, list(directory.iterdir()))
        marks[0].write_text("vigil 999\n")
        self.assert_refuses(self.server(), "format")

    def test_foreign_files_in_the_directory_are_not_touched(self):
        directory = self.scratch / "data"
        directory.mkdir()
        (directory / "thesis.txt").write_text("years of work")
        server = self.server()
        server.begin()
        # The server may refuse the directory or use it, but it must not touch the file.
        server.becomes_ready()
        server.kill()
        self.assertEqual((directory / "thesis.txt").read_text(), "years of work")

    def test_file_instead_of_the_directory(self):
        (self.scratch / "data").write_text("not a directory")
        self.assert_refuses(self.server(), re.escape(str(self.scratch / "data")))

    def test_port_in_use(self):
        first = self.serving()
        self.assert_refuses(self.server(self.scratch / "other", port=first.port), str(first.port))

    def test_directory_is_private(self):
        self.serving()
        mode = stat.S_IMODE(os.stat(self.scratch / "data").st_mode)
        self.assertEqual(oct(mode), oct(0o700))

    def test_cve_2020_15113_directory_with_access_for_others_is_logged(self):
        directory = self.scratch / "data"
        for mode, logged in ((0o700, False), (0o750, True), (0o777, True)):
            with self.subTest(mode=oct(mode)):
                directory.mkdir(exist_ok=True)
                directory.chmod(mode)
                server = self.serving()
                server.stop()
                self.assertEqual("chmod 700" in server.log, logged, server.log)


@only_vigil
class Damage(LiveTest):
    """Writes keys one after another, kills the server, and changes bytes of the log."""

    def setUp(self):
        super().setUp()
        server = self.serving()
        client = Client(server.port)
        for i in range(KEYS):
            client.put(b"key-%04d" % i, b"value-%04d-" % i + b"v" * 100)
        server.kill()
        client.close()
        self.acked = client.acked
        self.directory = self.scratch / "data"
        # On a slow machine the store may have become idle before the server was killed.
        (self.directory / "log" / "MARK").unlink(missing_ok=True)

    def segments(self):
        return sorted(self.directory.rglob("*.seg"))

    def segment_of(self, text):
        """The segment with these bytes, its contents, and the offset of the bytes."""
        for path in self.segments():
            data = path.read_bytes()
            at = data.rfind(text)
            if at >= 0:
                return path, data, at
        raise AssertionError(f"{text} is in no segment")

    def end_of_records(self, data):
        return len(data[:-512].rstrip(b"\0"))  # the last 512 bytes have the second copy of the head

    def change(self, path, at, new):
        with open(path, "r+b") as f:
            f.seek(at)
            f.write(new)

    def assert_serves(self, least):
        """Starts the server twice: at least the first keys up to this count exist, and writes continue at the next
        revision. Returns the log of the first start."""
        server = self.serving()
        client = Client(server.port)
        self.addCleanup(client.close)
        keys = sorted(self.acked)[:least]
        client.check_acked(self, {k: self.acked[k] for k in keys})
        self.assertGreaterEqual(client.revision(), least + 1)
        before = client.revision()
        self.assertEqual(client.put(b"after", b"1"), before + 1)
        # After another start, the removed end of the log is still removed, and the write after it exists.
        client.close()
        log = server.log
        server.stop()
        again = Client(server.start().port)
        self.addCleanup(again.close)
        self.assertEqual(again.get(b"after"), (b"1", before + 1))
        return log

    def assert_names_the_place(self, path):
        code, text = self.server().refuse()
        self.assertGreater(code, 0, text)
        self.assertNotIn("Sanitizer", text)
        self.assertIn(path.name, text)
        self.assertRegex(text, r"offset\D{0,4}\d+|\d+\D{0,12}offset|at byte \d+")

    def test_untouched(self):
        self.assert_serves(KEYS)

    def test_last_record_torn_at_its_end(self):
        path, data, _ = self.segment_of(b"value-%04d-" % (KEYS - 1))
        end = self.end_of_records(data)
        self.change(path, end - 20, bytes(20))
        self.assert_serves(KEYS - 1)

    def test_last_record_torn_in_its_head(self):
        path, data, at = self.segment_of(b"value-%04d-" % (KEYS - 1))
        self.change(path, at, bytes(self.end_of_records(data) - at))
        self.assert_serves(KEYS - 1)

    def test_last_record_wrong_inside(self):
        path, _, at = self.segment_of(b"value-%04d-" % (KEYS - 1))
        self.change(path, at + 20, b"?")
        log = self.assert_serves(KEYS - 1)
        cut = [json.loads(line) for line in log.splitlines() if "cut off the end" in line]
        self.assertEqual(len(cut), 1, log)
        self.assertEqual((cut[0]["segment"], cut[0]["reason"]), (path.name, "its checksum is wrong"))
        self.assertLess(cut[0]["offset"], at)
        self.assertGreater(cut[0]["bytes"], 100)
        self.assertGreaterEqual(cut[0]["index"], KEYS)

    def test_garbage_after_the_last_record(self):
        path, data, _ = self.segment_of(b"value-%04d-" % (KEYS - 1))
        at = (self.end_of_records(data) + 7) // 8 * 8
        self.change(path, at, os.urandom(3000))
        self.assert_serves(KEYS)

    def test_part_of_an_old_record_after_the_last(self):
        path, data, at = self.segment_of(b"value-%04d-" % 3)
        copy = data[at - 64:at + 40]
        self.change(path, (self.end_of_records(data) + 7) // 8 * 8, copy)
        self.assert_serves(KEYS)

    def test_wrong_byte_in_the_middle(self):
        path, _, at = self.segment_of(b"value-%04d-" % 5)
        self.change(path, at + 20, b"?")
        self.assert_names_the_place(path)

    def test_zeros_in_the_middle(self):
        path, _, at = self.segment_of(b"value-%04d-" % 5)
        self.change(path, at // 512 * 512, bytes(512))
        self.assert_names_the_place(path)

    def test_wrong_byte_in_the_head_of_a_segment(self):
        path, _, _ = self.segment_of(b"value-%04d-" % 5)
        self.change(path, 20, b"\xff\xff")
        self.change(path, path.stat().st_size - 512, bytes(512))  # and its second copy
        code, text = self.server().refuse()
        self.assertGreater(code, 0, text)
        self.assertIn(path.name, text)

    def test_missing_segment(self):
        # A clean stop leaves a checkpoint, which says which segments must exist.
        server = self.serving()
        server.stop()
        path, _, _ = self.segment_of(b"value-%04d-" % 5)
        path.unlink()
        code, text = self.server().refuse()
        self.assertGreater(code, 0, text)
        self.assertIn(path.name, text)

    def test_cut_off_segment(self):
        path, data, at = self.segment_of(b"value-%04d-" % 5)
        os.truncate(path, at)
        code, text = self.server().refuse()
        self.assertGreater(code, 0, text)
        self.assertIn(path.name, text)


def marked_index(directory):
    """The log index up to which the mark says that the log is durable."""
    path = directory / "log" / "MARK"
    return int.from_bytes(path.read_bytes()[16:24], "little") if path.exists() else 0


@only_vigil
class Idle(LiveTest):
    """A store without writes for a second: damage to acknowledged writes is detected and not cut off silently."""

    def setUp(self):
        super().setUp()
        self.directory = self.scratch / "data"

    def written(self, *keys):
        """Starts a server and puts these keys."""
        server = self.serving()
        client = Client(server.port)
        for key in keys:
            client.put(key, b"value of " + key + b"." * 100)
        client.close()
        return server

    def wait_until_idle(self, server):
        status = self.json_call(server, "/v3/maintenance/status")
        records = int(status["raftIndex"]) - 2 * int(status["raftTerm"])
        self.eventually(lambda: marked_index(self.directory) == records)

    def json_call(self, server, path):
        request = urllib.request.Request(f"http://127.0.0.1:{server.port}{path}", b"{}")
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)

    def hit(self, needle):
        """Changes one byte of the value; returns the segment."""
        for path in sorted((self.directory / "log").glob("*.seg")):
            at = path.read_bytes().rfind(needle)
            if at >= 0:
                with open(path, "r+b") as f:
                    f.seek(at + len(needle) + 5)
                    f.write(b"?")
                return path
        raise AssertionError(f"{needle} is not stored")

    def assert_refuses(self, path):
        code, text = self.server().refuse()
        self.assertGreater(code, 0, text)
        self.assertIn(path.name, text)
        self.assertRegex(text, r"offset \d+")
        self.assertNotIn("Sanitizer", text)

    def test_damaged_last_value_is_refused(self):
        server = self.written(b"first", b"last")
        self.wait_until_idle(server)
        server.kill()
        self.assert_refuses(self.hit(b"value of last"))
        self.assert_refuses(self.hit(b"value of last"))  # the first refusal has changed nothing

    def test_damage_is_refused_after_each_idle_period(self):
        server = self.written(b"first")
        self.wait_until_idle(server)
        client = Client(server.port)
        client.put(b"second", b"value of second" + b"." * 100)
        client.close()
        self.wait_until_idle(server)
        server.kill()
        self.assert_refuses(self.hit(b"value of second"))

    def test_damage_is_refused_after_a_clean_stop(self):
        self.written(b"last").stop()
        self.assert_refuses(self.hit(b"value of last"))

    def repair(self, *flags):
        done = subprocess.run([SUBJECT, "repair", "--data-dir", str(self.directory), *flags],
                              capture_output=True, text=True, timeout=120, check=False)
        self.assertNotIn("Sanitizer", done.stderr)
        return done.returncode, done.stdout + done.stderr

    def test_repair_removes_exactly_what_it_reports(self):
        server = self.written(b"first", b"second", b"last")
        self.wait_until_idle(server)
        server.kill()
        path = self.hit(b"value of second")
        self.assert_refuses(path)
        before = {p: p.read_bytes() for p in (self.directory / "log").iterdir()}
        code, report = self.repair()
        self.assertEqual(code, 3, report)
        for words in (r'revision 3: put "second".*damaged', r'revision 4: put "last"$', path.name,
                      r"offset \d+", r"log index \d+ to \d+, \d+ bytes, revision 3 to 4",
                      "--accept-loss"):
            self.assertRegex(report, re.compile(words, re.M))
        self.assertEqual(before, {p: p.read_bytes() for p in (self.directory / "log").iterdir()})
        code, report = self.repair("--accept-loss")
        self.assertEqual(code, 0, report)
        kept = pathlib.Path(re.search(r"is kept in (\S+)", report)[1])
        self.assertIn(b"value of last", kept.read_bytes())
        client = Client(self.serving().port)
        self.addCleanup(client.close)
        self.assertEqual((client.get(b"first")[1], client.get(b"second"), client.get(b"last")),
                         (2, None, None))
        self.assertEqual(client.put(b"again", b""), 3)

    def test_repair_keeps_what_the_checkpoint_has(self):
        self.written(b"first", b"second", b"last").stop()
        self.hit(b"value of second")
        code, report = self.repair()
        self.assertEqual(code, 3, report)
        self.assertRegex(report, r'revision 3: put "second"\n')
        self.assertRegex(report, r"would be rewritten: the whole store, without what is lost")
        self.assertNotIn('"last"', report)
        self.assertEqual(self.repair("--accept-loss")[0], 0)
        self.assertEqual(self.repair(), (0, "nothing is damaged\n"))
        for _ in range(2):
            server = self.serving()
            client = Client(server.port)
            self.assertEqual((client.get(b"first")[1], client.get(b"second"), client.get(b"last")[1]), (2, None, 4))
            client.put(b"more", b"")
            client.close()
            server.stop()

    def test_repair_of_an_intact_directory(self):
        self.assertRegex(self.repair()[1], "cannot read the data directory .*: not found")
        server = self.written(b"first")
        code, report = self.repair("--accept-loss")
        self.assertEqual(code, 1, report)
        self.assertIn("in use", report)
        server.stop()
        before = {p: p.read_bytes() for p in (self.directory / "log").iterdir()}
        self.assertEqual(self.repair("--accept-loss"), (0, "nothing is damaged\n"))
        self.assertEqual(before, {p: p.read_bytes() for p in (self.directory / "log").iterdir()})

    def test_replayed_records_are_marked_without_a_write(self):
        server = self.written(b"last")
        server.kill()
        (self.directory / "log" / "MARK").unlink(missing_ok=True)  # as an older version leaves it
        server = self.serving()
        self.wait_until_idle(server)
        server.kill()
        self.assert_refuses(self.hit(b"value of last"))


@only_vigil
class UnfinishedImport(LiveTest):
    """strace ends a restore, or makes one of its calls fail, at each call that may change a file in turn. A server must
    refuse what is left, or find everything; and it is never in the way of another try."""
    CALLS = ("mkdir", "openat", "flock", "rename", "unlink", "rmdir", "fsync", "fdatasync", "pwrite64", "pwritev", "writev",
             "ftruncate", "fallocate")

    def setUp(self):
        super().setUp()
        server = self.serving(self.scratch / "source")
        client = Client(server.port)
        for i in range(3):
            self.revision = client.put(b"k%d" % i, b"v")
        client.close()
        self.file = self.scratch / "snapshot"
        subprocess.run([SUBJECT, "snapshot", "save", str(self.file), "--endpoints", server.url], check=True, capture_output=True)
        server.stop()
        self.target, self.trace = self.scratch / "target", self.scratch / "trace"
        self.seen = {}  # the verdict of a server, by what is left in the directory

    def restore(self, command, *injections):
        args = [arg for injection in injections for arg in ("-e", f"inject={injection}")]
        source = [str(self.file), "--data-dir", str(self.target)]
        return subprocess.run(["strace", "-f", "-qq", "-o", str(self.trace), "-e", f"trace={','.join(self.CALLS)}", *args, SUBJECT,
                               *command, *source], capture_output=True, text=True,
                              env=dict(os.environ, ASAN_OPTIONS="detect_leaks=0"))

    def points(self, command):
        """How often each call is made before the data directory is touched for good, and altogether."""
        self.assertEqual(self.restore(command).returncode, 0)
        calls = re.findall(r"^\d+ +(\w+)\((.*)", self.trace.read_text(), re.M)
        begin = max(i for i, (name, rest) in enumerate(calls) if name == "mkdir" and rest.startswith(f'"{self.target}"'))
        before = collections.Counter(name for name, _ in calls[:begin])
        whole = collections.Counter(name for name, _ in calls)
        self.clear()
        return [(name, n) for name in whole for n in range(before[name] + 1, whole[name] + 1)]

    def clear(self):
        shutil.rmtree(self.target, ignore_errors=True)

    def left(self):
        """The names in the directory, which is all that a server sees of an import that was not finished."""
        return tuple(sorted(str(p.relative_to(self.target)) for p in self.target.rglob("*")
                            if len(p.relative_to(self.target).parts) <= 2))

    def check_left(self):
        """What is left is nothing, or is refused, or is everything."""
        names = self.left()
        if names and names not in self.seen:
            copy = self.scratch / "copy"
            shutil.copytree(self.target, copy)
            server = self.server(copy).begin()
            if server.becomes_ready():
                client = Client(server.port)
                self.seen[names] = client.revision()
                client.close()
                server.stop()
            else:
                self.assert_logged(server, "an import that was not finished")
                repair = subprocess.run([SUBJECT, "repair", "--accept-loss", "--data-dir", str(copy)], capture_output=True, text=True)
                self.assertEqual(repair.returncode, 1, repair.stdout)
                self.assertIn("an import that was not finished", repair.stderr)
                self.seen[names] = "refused"
            shutil.rmtree(copy)
        if names:
            self.assertIn(self.seen[names], ("refused", self.revision), names)
        return names

    def check(self, *injections, command=("snapshot", "restore"), kills):
        with self.subTest(injections=injections):
            done = self.restore(command, *injections)
            self.assertNotIn("Sanitizer", done.stderr)
            names = self.check_left()
            if kills and "FORMAT" not in names:
                self.assertEqual(self.restore(command).returncode, 0, "another try must succeed")
                self.assertEqual(self.check_left()[:1], ("FORMAT",))
            elif not kills:  # it has cleaned up, or did not need the call
                self.assertIn(names[:1], ((), ("FORMAT",)), done.stderr)
                self.assertEqual(done.returncode, 0 if names else 1, done.stderr)
            self.clear()

    def test_restore_that_is_killed_anywhere(self):
        for name, n in self.points(("snapshot", "restore")):
            self.check(f"{name}:signal=SIGKILL:when={n}", kills=True)
        self.assertIn("refused", self.seen.values())

    def test_import_that_is_killed_while_the_directory_is_made_or_completed(self):
        for name, n in self.points(("import",)):
            if name in ("mkdir", "rename", "rmdir", "unlink", "flock"):
                self.check(f"{name}:signal=SIGKILL:when={n}", command=("import",), kills=True)

    def test_restore_with_a_failing_call_anywhere(self):
        for name, n in self.points(("snapshot", "restore")):
            if name != "unlink" and name != "rmdir":
                self.check(f"{name}:error=EIO:when={n}", kills=False)

    def test_restore_that_is_killed_while_it_cleans_up(self):
        last = max(n for name, n in self.points(("snapshot", "restore")) if name == "fsync")
        self.restore(("snapshot", "restore"), f"fsync:error=EIO:when={last}")
        calls = re.findall(r"^\d+ +(\w+)\(", self.trace.read_text(), re.M)
        for name in "unlink", "rmdir":
            for n in range(1, calls.count(name) + 1):
                self.check(f"fsync:error=EIO:when={last}", f"{name}:signal=SIGKILL:when={n}", kills=True)


if __name__ == "__main__":
    unittest.main()
