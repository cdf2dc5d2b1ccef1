#!/usr/bin/python3
"""vigil salvage: whatever is damaged in a data directory, everything that can be read is in a new one, which a server
serves, and what is lost is listed by key and revision. The damaged directory is not changed."""
import hashlib
import http.client
import json
import os
import pathlib
import re
import shutil
import subprocess
import unittest

from bad_disk import BadDisk
from damage_test import DamagedServer, flip, segments
from kube import text64
from server import LiveTest, SUBJECT, only_vigil

KEYS = 40


def contents(directory, ignored=()):
    return {path: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(pathlib.Path(directory).rglob("*"))
            if path.is_file() and path.name not in ignored}


@only_vigil
class Salvage(LiveTest):
    def server(self, directory):
        server = DamagedServer(directory, [])
        self.addCleanup(server.close)
        self.addCleanup(server.kill)
        return server

    def filled(self, name="data"):
        """A stopped server with KEYS keys, each of which was put twice."""
        server = self.server(self.scratch / name).start()
        self.revisions = {}
        for turn in range(2):
            for i in range(KEYS):
                self.revisions[i] = server.put_raw(f"/k/{i:02}", f"value {turn} of {i:02}, some text")
        server.request("/v3/lease/grant", TTL=1000, ID=123)
        server.close()
        server.stop()
        return pathlib.Path(server.directory)

    def run_it(self, *args):
        done = subprocess.run([SUBJECT, *args], capture_output=True, text=True, timeout=120, check=False)
        self.assertNotIn("Sanitizer", done.stderr)
        return done

    def salvage(self, directory, code, *flags):
        to = self.scratch / "new"
        shutil.rmtree(to, ignore_errors=True)
        before = contents(directory)
        done = self.run_it("salvage", str(directory), "--to", str(to), *flags)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        self.assertEqual(contents(directory), before)
        return to, done.stdout

    def serves(self, directory, missing=()):
        """The new directory has all other keys, and every command works on it."""
        server = self.server(directory).start()
        answer = server.request("/v3/kv/range", key=text64("/k/"), range_end=text64("/k0"))
        wanted = {f"/k/{i:02}": f"value 1 of {i:02}, some text" for i in range(KEYS) if i not in missing}
        self.assertEqual({kv["key"]: kv["value"] for kv in answer["kvs"]},
                         {text64(key): text64(value) for key, value in wanted.items()})
        self.assertEqual({int(kv["mod_revision"]) for kv in answer["kvs"]},
                         {revision for i, revision in self.revisions.items() if i not in missing})
        for command in (("get", "--prefix", "/k/"), ("tree",), ("snapshot", "save", str(self.scratch / "snapshot.db")),
                        ("doctor",)):
            done = self.run_it(*command, "--endpoints", server.url)
            self.assertEqual(done.returncode, 0, (command, done.stdout, done.stderr))
        self.assertEqual(server.request("/v3/lease/timetolive", ID="123")["grantedTTL"], "1000")
        server.request("/v3/kv/put", key=text64("/more"), value=text64("v"))
        server.close()
        server.stop()
        again = self.server(directory)
        again.args = [*again.args, "--experimental-initial-corrupt-check"]
        again.start().stop()

    def spoil_heads(self, directory, twins):
        for path in segments(directory):
            with open(path, "r+b") as f:
                f.seek(20)
                f.write(b"\xff")
                if twins:
                    f.seek(-512, os.SEEK_END)
                    f.write(bytes(512))

    def test_head_is_restored_from_its_twin_at_a_start(self):
        directory = self.filled()
        before = [path.read_bytes()[:64] for path in segments(directory)]
        self.spoil_heads(directory, twins=False)
        server = self.server(directory).start()
        self.assert_logged(server, "the head of a segment of the log was damaged")
        server.close()
        server.stop()
        self.assertEqual([path.read_bytes()[:64] for path in segments(directory)][:1], before[:1])
        self.serves(directory)

    def test_head_without_a_twin_is_made_again_by_a_repair(self):
        directory = self.filled()
        self.spoil_heads(directory, twins=True)
        done = self.run_it("serve", "--data-dir", str(directory), "--listen-kube-urls=")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("vigil repair", done.stderr)
        done = self.run_it("repair", "--data-dir", str(directory), "--accept-loss")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertRegex(done.stdout, "made again: [1-9] damaged heads of segments; nothing is lost")
        self.serves(directory)

    def test_heads_and_format(self):
        directory = self.filled()
        self.spoil_heads(directory, twins=True)
        (directory / "FORMAT").unlink()
        done = self.run_it("serve", "--data-dir", str(directory), "--listen-kube-urls=")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("its FORMAT file is missing: vigil repair", done.stderr)
        to, report = self.salvage(directory, 0)
        self.assertIn("FORMAT       was missing", report)
        self.assertRegex(report, "heads        [1-9] damaged ones of segments were made again")
        self.serves(to)

    def repaired(self, directory):
        """Accepts the loss. Returns the report from before that, which changes nothing."""
        before = contents(directory, {"lock.mdb"})
        report = self.run_it("repair", "--data-dir", str(directory))
        self.assertEqual(report.returncode, 3, report.stdout + report.stderr)
        self.assertEqual(contents(directory, {"lock.mdb"}), before)
        done = self.run_it("repair", "--data-dir", str(directory), "--accept-loss")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("the damaged files are kept in log.lost and meta.lost", done.stdout)
        self.assertEqual(self.run_it("repair", "--data-dir", str(directory)).stdout, "nothing is damaged\n")
        return report.stdout

    def test_repair_removes_a_damaged_value_so_that_everything_works_again(self):
        directory = self.filled()
        flip(directory, b"value 1 of 07", 3)
        report = self.repaired(directory)
        self.assertIn(f'  revision {self.revisions[7]}: put "/k/07"\n', report)
        self.serves(directory, missing={7})

    def test_repair_removes_damage_of_older_segments(self):
        """A start does not read them, so that it does not refuse them either."""
        directory = self.filled()
        server = self.server(directory).start()
        for i in range(3):
            server.put_raw(f"/fill/{i}", "x" * (1 << 19))
        server.close()
        server.stop()
        flip(directory, b"value 0 of 07", 3)
        flip(directory, b"value 1 of 08", 3)
        report = self.repaired(directory)
        self.assertIn('  revision 9: put "/k/07" (an older version; the newest one stays)\n', report)
        self.assertIn(f'  revision {self.revisions[8]}: put "/k/08"\n', report)
        self.serves(directory, missing={8})

    def test_repair_that_damages_no_version_keeps_the_history(self):
        directory = self.filled()
        path, at = flip(directory, b"value 0 of 07", -76 - 6 + 8)  # the index in the head of its record
        self.assertIn("no version of a key is lost", self.repaired(directory))
        server = self.server(directory).start()
        self.assertEqual(server.value("/k/07", revision="20"), text64("value 0 of 07, some text"))
        server.close()
        server.stop()
        self.serves(directory)

    def test_format_is_written_again(self):
        directory = self.filled()
        path = directory / "FORMAT"
        whole = path.read_bytes()
        for damage in (whole[:10] + b"\xff" + whole[11:], b"", bytes(len(whole)), None):
            path.unlink() if damage is None else path.write_bytes(damage)
            done = self.run_it("serve", "--data-dir", str(directory), "--listen-kube-urls=")
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(f"vigil repair --data-dir {directory}", done.stderr)
            done = self.run_it("repair", "--data-dir", str(directory))
            self.assertEqual(done.returncode, 3)
            self.assertRegex(done.stdout, "FORMAT is (damaged|missing)")
            done = self.run_it("repair", "--data-dir", str(directory), "--accept-loss")
            self.assertEqual(done.returncode, 0)
            self.assertEqual(path.read_bytes(), whole)
        self.serves(directory)

    def test_flipped_value_is_listed_and_the_rest_is_kept(self):
        directory = self.filled()
        flip(directory, b"value 1 of 07", 3)
        to, report = self.salvage(directory, 3)
        self.assertIn(f'  revision {self.revisions[7]}: "/k/07"\n', report)
        self.assertIn("1 versions, of these 1 current values", report)
        self.serves(to, missing={7})

    def test_older_version_costs_the_history_alone(self):
        directory = self.filled()
        flip(directory, b"value 0 of 07", 3)
        to, report = self.salvage(directory, 3, "--json")
        found = json.loads(report)
        self.assertEqual(found["lost"], [{"key": text64("/k/07"), "revision": 9, "current": False, "unsure": False}])
        self.assertEqual((found["keys"], found["history"], found["lostCurrent"]), (KEYS, False, 0))
        self.serves(to)

    def test_nothing_is_lost_of_an_intact_directory(self):
        directory = self.filled()
        to, report = self.salvage(directory, 0, "--json")
        found = json.loads(report)
        self.assertEqual((found["lost"], found["history"], found["versions"]), ([], True, 2 * KEYS))
        server = self.server(to).start()
        self.assertEqual(server.value("/k/07", revision="20"), text64("value 0 of 07, some text"))
        server.close()
        server.stop()
        self.serves(to)

    def test_checkpoint_and_log_are_both_damaged(self):
        directory = self.filled()
        flip(directory, b"value 1 of 07", 3)
        os.truncate(directory / "meta/data.mdb", 4096)
        to, report = self.salvage(directory, 3)
        self.assertRegex(report, r"Log index \d+ to \d+ \([0-9a-f]{16}\.seg, offset \d+\)")
        server = self.server(to).start()
        answer = server.request("/v3/kv/range", key=text64("/k/"), range_end=text64("/k0"))
        values = {kv["key"]: kv["value"] for kv in answer["kvs"]}
        self.assertEqual(len([i for i in range(KEYS) if i != 7
                              and values.get(text64(f"/k/{i:02}")) == text64(f"value 1 of {i:02}, some text")]), KEYS - 1)
        server.close()
        server.stop()

    def test_repair_that_is_refused_names_the_salvage(self):
        directory = self.filled()
        for segment in sorted((directory / "log").glob("*.seg"))[:-1]:
            segment.unlink()
        refused = self.run_it("repair", "--data-dir", str(directory))
        self.assertEqual(refused.returncode, 1, refused.stdout)
        self.assertIn(f"\n  vigil salvage {directory} --to NEW\n", refused.stderr)
        self.salvage(directory, 3)

    def test_what_is_refused(self):
        directory = self.filled()
        other = self.scratch / "other"
        other.mkdir()
        for args, code, text in (
                ((str(directory),), 2, "--to"),
                ((str(directory), "--to", str(directory / "new")), 2, "within the damaged directory"),
                ((str(directory), "--to", str(directory)), 2, "within the damaged directory"),
                ((str(other), "--to", str(self.scratch / "n")), 1, "not a data directory of Vigil"),
                ((str(self.scratch / "none"), "--to", str(self.scratch / "n")), 1, "cannot read"),
                ((str(directory), "--to", str(self.filled("full"))), 1, "not empty")):
            done = self.run_it("salvage", *args)
            self.assertEqual(done.returncode, code, done.stderr)
            self.assertIn(text, done.stderr)
        self.assertFalse((self.scratch / "n").exists())
        server = self.server(directory).start()
        done = self.run_it("salvage", str(directory), "--to", str(self.scratch / "n"))
        self.assertEqual(done.returncode, 1)
        self.assertIn("in use", done.stderr)
        server.close()
        server.stop()

    def failing_disk(self):
        try:
            disk = BadDisk(self.scratch)
        except (BadDisk.Unavailable, OSError) as e:
            self.skipTest(f"no disk that fails can be made here: {e}")
        self.addCleanup(disk.close)
        disk.mount()
        return disk

    def failed(self, *needles):
        """A store on a disk that cannot read the sectors with these bytes."""
        disk = self.failing_disk()
        directory = self.filled("mounted/data")
        disk.unmount()
        for needle in needles:
            self.assertGreater(disk.spoil(needle), 0, needle)
        disk.mount()
        return disk, directory

    def salvage_unreadable(self, directory):
        to = self.scratch / "new"
        done = self.run_it("salvage", str(directory), "--to", str(to))
        self.assertEqual(done.returncode, 3, done.stdout + done.stderr)
        return to, done.stdout

    def test_unreadable_sector_of_the_log(self):
        disk, directory = self.failed(b"value 1 of 07")
        to, report = self.salvage_unreadable(directory)
        self.assertRegex(report, r"Parts of files that the disk cannot read:\n  \S+/0000000000000001.seg: 4096 bytes from offset \d+\n")
        lost = {int(i): int(revision) for revision, i in re.findall(r'revision (\d+): "/k/(\d\d)"\n', report)}
        self.assertEqual(lost[7], self.revisions[7])
        self.assertLess(len(lost), KEYS)  # those in one block of 4096 bytes
        self.serves(to, missing=set(lost))
        disk.unmount()

    def test_unreadable_head_and_format(self):
        """A head has a second copy, and FORMAT is always the same: only what is in the same block as the head is lost."""
        disk = self.failing_disk()
        directory = self.filled("mounted/data")
        head = segments(directory)[0].read_bytes()[:64]
        disk.unmount()
        self.assertEqual(disk.spoil(head, 1), 1)
        self.assertEqual(disk.spoil(b"vigil data directory"), 1)
        disk.mount()
        to, report = self.salvage_unreadable(directory)
        self.assertRegex(report, r"\.seg: 4096 bytes from offset 0\n")
        self.assertIn("FORMAT       was damaged", report)
        lost = set(map(int, re.findall(r'revision \d+: "/k/(\d\d)"\n', report)))
        self.assertLess(len(lost), KEYS // 2)
        self.serves(to, missing=lost)
        disk.unmount()

    def test_unreadable_checkpoint(self):
        disk, directory = self.failed(b"\xde\xc0\xef\xbe")  # the magic number of both meta pages of LMDB
        for command in (("serve", "--data-dir", str(directory), "--listen-kube-urls=", "--listen-client-urls", "http://127.0.0.1:0"),
                        ("repair", "--data-dir", str(directory))):
            done = self.run_it(*command)
            self.assertIn(done.returncode, (1, 74), done.stderr)
            self.assertIn(f"{directory}/meta", done.stderr)
            self.assertIn(f"vigil salvage {directory} --to NEW", done.stderr)
        to, report = self.salvage_unreadable(directory)
        self.assertRegex(report, r"data\.mdb: 8192 bytes from offset 0\n")
        self.serves(to)
        disk.unmount()

    def test_server_and_repair_name_what_cannot_be_read(self):
        disk, directory = self.failed(b"value 1 of 07")
        server = self.server(directory)
        server.begin()
        if server.becomes_ready():
            with self.assertRaises((OSError, http.client.HTTPException)):
                server.value("/k/07")
        self.assertEqual(server.wait(), 74, server.log)
        done = self.run_it("repair", "--data-dir", str(directory))
        self.assertEqual(done.returncode, 74, done.stderr)
        for text in (server.log, done.stderr):
            self.assertIn(f"{directory}/log/0000000000000001.seg", text)
            self.assertIn(f"vigil salvage {directory} --to NEW", text)
        disk.unmount()


if __name__ == "__main__":
    unittest.main()
