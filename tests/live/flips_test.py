#!/usr/bin/python3
"""One byte of a data directory is changed, anywhere. The server serves everything as before, or names the damage together with
a command, and an operator who runs the commands that are printed gets a store with everything that was not damaged.

VIGIL_FLIPS is the number of bytes to try, and VIGIL_FLIP_SEED chooses them."""
import collections
import os
import pathlib
import random
import re
import shutil
import subprocess
import time
import unittest

from damage_test import DamagedServer, DamageError
from kube import text64
from server import LiveTest, SUBJECT, only_alone, only_vigil

FLIPS = int(os.environ.get("VIGIL_FLIPS", "12"))
STEPS_MAX = 6
NAMELESS = object()
ADVICE = re.compile(r"vigil (repair --data-dir [^\s,;:\"\\]+(?: --accept-loss)?|salvage [^\s,;:\"\\]+ --to [^\s,;:\"\\]+)")


@only_vigil
@only_alone
class Flips(LiveTest):
    def server(self, directory):
        server = DamagedServer(directory, [])
        self.addCleanup(server.kill)
        return server

    def run_it(self, *args):
        done = subprocess.run([SUBJECT, *args], capture_output=True, text=True, timeout=120, check=False)
        self.assertNotIn("Sanitizer", done.stderr)
        self.assertGreaterEqual(done.returncode, 0, done.stderr)
        return done

    def filled(self, cleaned):
        """A store with several segments, a checkpoint and a few records after it, of which old versions were removed or not."""
        server = self.server(self.scratch / "whole").start()
        self.lease = server.request("/v3/lease/grant", TTL=100000, ID=77)["ID"]
        for turn in range(2):
            for i in range(12):
                server.put_raw(f"/k/{i:02}", f"value {turn} of {i:02}")
        server.request("/v3/kv/txn", success=[{"requestPut": {"key": text64(f"/t/{i}"), "value": text64("of one txn")}}
                                              for i in range(5)])
        server.put_raw("/leased", "v", lease=self.lease)
        server.request("/v3/kv/deleterange", key=text64("/k/03"))
        for i in range(3):
            self.first = server.put_raw(f"/fill/{i}", "x" * (1 << 19))
        if cleaned:
            server.request("/v3/kv/compaction", revision=self.first, physical=True)
            server.request("/v3/maintenance/defragment")
            self.first += 1
        else:
            self.first = 2
        server.close()
        server.stop()
        server.start()
        for i in range(4):
            server.put_raw(f"/tail/{i}", f"after the checkpoint {i}")
        self.state = self.everything(server)
        time.sleep(2)  # damage to the last write can be recognized after a second without writes
        server.kill()
        return pathlib.Path(server.directory)

    def everything(self, server):
        """Current values and the history. Values are read by gets, which always verify checksums (docs/decisions/0017-damage.md)."""
        answer = server.request("/v3/kv/range", key=text64("\0"), range_end=text64("\0"), keys_only=True)
        kvs = {}
        for key in (kv["key"] for kv in answer["kvs"]):
            for kv in server.request("/v3/kv/range", key=key)["kvs"]:
                kvs[key] = (kv["key"], kv.get("value"), kv["mod_revision"], kv["version"], kv.get("lease"))
        ttl = server.request("/v3/lease/timetolive", ID=self.lease, keys=True)
        revision = int(answer["header"]["revision"])
        return {"kvs": kvs, "lease": (ttl["grantedTTL"], ttl.get("keys")), "revision": revision,
                "events": self.events(server, revision)}

    def events(self, server, revision):
        """The history; None if it is compacted."""
        if self.first > revision:
            return None
        reason, events = server.watch_store("\0", self.first, until=revision, range_end=text64("\0"))
        if reason:
            raise DamageError(reason)
        return [(e.get("type"), e["kv"]["key"], e["kv"].get("value"), e["kv"]["mod_revision"]) for e in events] or None

    def choose(self, directory, rng):
        files = [p for p in sorted(directory.rglob("*")) if p.is_file() and p.stat().st_size]
        path = rng.choice(files)
        data = path.read_bytes()
        if rng.random() < 0.1:
            return path, rng.randrange(len(data)), 1 << rng.randrange(8)
        written = [i for i in range(len(data)) if data[i]] if len(data) < 1 << 16 else None
        while True:
            at = rng.choice(written) if written else rng.randrange(len(data))
            if data[at] and (data[at] != 0x78 or rng.random() < 0.0002):
                return path, at, 1 << rng.randrange(8)

    def check_equal(self, found, lost):
        """Nothing is missing besides the lost keys, and nothing is wrong. NAMELESS: one key whose name is damaged as well."""
        missing = {key for key in self.state["kvs"] if key not in found["kvs"] and key not in lost}
        self.assertLessEqual(len(missing), NAMELESS in lost)
        for key, value in found["kvs"].items():
            self.assertEqual(self.state["kvs"].get(key), value, key)
        if text64("/leased") not in lost:
            self.assertEqual(found["lease"], self.state["lease"])
        if not lost:
            self.assertEqual(found["revision"], self.state["revision"])
        if found["events"] is not None:
            self.assertEqual(found["events"], self.state["events"][:None if not lost else len(found["events"])])

    def follow(self, text, directory, trace):
        """Runs the commands that are advised, until one has succeeded. Returns the directory to use then, and the lost keys."""
        lost = set()
        for _ in range(STEPS_MAX):
            found = ADVICE.findall(text)
            self.assertTrue(found, f"no command is named: {trace}")
            words = found[-1 if self.prefers_salvage else 0].split()
            if words[0] == "salvage":
                words[3] = directory = str(self.scratch / "salvaged")
                shutil.rmtree(directory, ignore_errors=True)
            done = self.run_it(*words)
            text = done.stdout + done.stderr
            trace += [(" ".join(words), done.returncode, text[:2000])]
            lost.update(text64(key) for key in re.findall(r'revision \d+: (?:put |delete |)"([^"]*)"', text))
            if "not readable as a whole, 0 of its changes" in text or "perhaps another key" in text or "records cannot be read" in text:
                lost.add(NAMELESS)
            if words[0] == "salvage" and done.returncode in (0, 3) or done.returncode == 0:
                return directory, lost
        raise AssertionError(f"the advice does not end: {trace}")

    def examine(self, directory, path, trace):
        """Starts the damaged store. Returns what to do about the damage, or "" if everything is as before."""
        server = self.server(directory)
        server.begin()
        if not server.becomes_ready():
            self.assertEqual(server.wait(), 1, server.log)
            fatal = [line for line in server.lines if "cannot start" in line][-1]
            trace += [("serve", 1, fatal)]
            self.assertIn(path.name, fatal, "the file is not named")
            return fatal
        try:
            self.check_equal(self.everything(server), set())
            text = ""
        except DamageError as e:
            done = self.run_it("doctor", "--endpoints", server.url)
            trace += [("request", 0, str(e)), ("doctor", done.returncode, done.stdout[:600])]
            text = done.stdout.replace(" DIR", f" {directory}")
        server.close()
        server.stop()
        return text

    def check_repaired(self, directory, lost):
        server = self.server(directory).start()
        try:
            self.check_equal(self.everything(server), lost)
            for command in (("get", "--prefix", ""), ("tree",), ("snapshot", "save", str(self.scratch / "snapshot.db")), ("doctor",)):
                done = self.run_it(*command, "--endpoints", server.url)
                self.assertEqual(done.returncode, 0, (command, done.stdout[-2000:], done.stderr))
        finally:
            server.close()
            server.stop()

    def one(self, whole, path, at, bit, trace):
        directory = self.scratch / "data"
        shutil.rmtree(directory, ignore_errors=True)
        subprocess.run(["cp", "-a", str(whole), str(directory)], check=True)
        with open(directory / path, "r+b") as f:
            f.seek(at)
            byte = f.read(1)[0]
            f.seek(at)
            f.write(bytes([byte ^ bit]))
        text = self.examine(directory, path, trace)
        if not text:
            return "as before"
        directory, lost = self.follow(text, directory, trace)
        self.check_repaired(directory, lost)
        return f"{trace[0][0]}, {trace[-1][0].split()[0]}, {len(lost)} lost"

    def test_with_all_versions(self):
        self.check_flips(cleaned=False)

    def test_after_a_compaction(self):
        self.check_flips(cleaned=True)

    def check_flips(self, cleaned):
        whole = self.filled(cleaned)
        rng = random.Random(int(os.environ.get("VIGIL_FLIP_SEED", "1")))
        only = os.environ.get("VIGIL_FLIP_ONLY")
        outcomes = collections.Counter()
        for turn in range(FLIPS):
            path, at, bit = self.choose(whole, rng)
            path = path.relative_to(whole)
            self.prefers_salvage = turn % 3 == 2
            if only and int(only) != turn:
                continue
            trace = []
            with self.subTest(turn=turn, file=str(path), offset=at, bit=bit):
                try:
                    outcomes[f"{path}: {self.one(whole, path, at, bit, trace)}"] += 1
                except BaseException:
                    print(f"turn {turn}: {path}, offset {at}, bit {bit}", *trace, sep="\n  ")
                    raise
                finally:
                    if only:
                        print(*trace, sep="\n")
        for name, count in sorted(outcomes.items()) if "VIGIL_FLIPS" in os.environ else ():
            print(f"{count:4} {name}")


if __name__ == "__main__":
    unittest.main()
