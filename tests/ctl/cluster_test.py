#!/usr/bin/python3
"""The link etcdctl beside the originals on a cluster of three real members: each command is run by both, one after the
other, and what a command or a clock changes is replaced before the comparison."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import time
import unittest

from compare import ORIGINALS, PEER, SUBJECT, free_port, original_exists

SECONDS_MAX = 60
RULES = ((rb"\b[0-9a-f]{14,16}\b", b"ID"), (rb"\b\d{16,20}\b", b"ID"), (rb"took( = |\W+)[0-9.]+(ms|\xc2\xb5s|s)", b"took"),
         (rb'"took":"[^"]*"', b"took"), (rb'"raft(Index|AppliedIndex)":\d+', b"RAFT"), (rb"\d+ kB", b"SIZE"), (rb"\d+%", b"PERCENT"),
         (rb'"(dbSize|dbSizeInUse)":\d+', b"SIZE"), (rb"(true|false), (true|false), \d+, \d+, \d+, ", b"RAFT, "),
         (rb'"raft_?[tT]erm":\d+', b"TERM"), (rb"127.0.0.1:\d+", b"ADDRESS"), (rb'"learner":true,', b""))


def normal(text):
    for pattern, replacement in RULES:
        text = re.sub(pattern, replacement, text)
    lines = [re.sub(rb"  +", b" ", line) for line in text.split(b"\n") if not line.startswith((b'{"level"', b"WARNING:"))]
    # Members are in the order of their ids, which differ for one that is added again.
    return sorted(b",".join(sorted(re.split(rb'[,"]', line))) if line.startswith(b"ETCD_INITIAL_CLUSTER=") else line for line in lines)


class ThreeMembers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if not os.access(PEER, os.X_OK):
            raise unittest.SkipTest(f"no {PEER}")
        cls.scratch = pathlib.Path(tempfile.mkdtemp(prefix="vigil-ctl-"))
        cls.addClassCleanup(shutil.rmtree, cls.scratch, True)
        (cls.scratch / "etcdctl").symlink_to(SUBJECT)
        peers = [f"http://127.0.0.1:{free_port()}" for _ in range(3)]
        cls.urls = [f"http://127.0.0.1:{free_port()}" for _ in range(3)]
        together = ",".join(f"m{i}={url}" for i, url in enumerate(peers))
        for i in range(3):
            cls.start(f"m{i}", cls.urls[i], peers[i], together, "new")
        cls.await_health()

    @classmethod
    def start(cls, name, url, peer, together, state):
        process = subprocess.Popen([
            PEER, "--name", name, "--data-dir", cls.scratch / name, "--listen-client-urls", url, "--advertise-client-urls", url,
            "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", together,
            "--initial-cluster-state", state, "--unsafe-no-fsync", "--strict-reconfig-check=false"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        cls.addClassCleanup(process.wait)
        cls.addClassCleanup(process.kill)

    @classmethod
    def await_health(cls):
        end = time.monotonic() + SECONDS_MAX
        while cls.run_link("3.7", "endpoint", "health", "--command-timeout", "2s")[0] != 0:
            if time.monotonic() > end:
                raise AssertionError("the cluster does not become healthy")
            time.sleep(0.1)

    @classmethod
    def run_program(cls, program, version, words, env):
        env = {**{k: v for k, v in os.environ.items() if not k.startswith(("ETCDCTL_", "VIGIL_"))}, **env,
               "ETCDCTL_ENDPOINTS": ",".join(cls.urls)}
        if version == "3.4":
            env["ETCDCTL_API"] = "3"
        done = subprocess.run([program, *words], capture_output=True, timeout=SECONDS_MAX, env=env, check=False)
        return done.returncode, done.stdout, done.stderr

    @classmethod
    def run_link(cls, version, *words):
        return cls.run_program(cls.scratch / "etcdctl", version, words, {"ETCDCTL_COMPAT": version})

    @classmethod
    def run_original(cls, version, *words):
        return cls.run_program(ORIGINALS[version], version, words, {})

    def same(self, version, original, link):
        """Both ended alike. An element is (exit code, output, errors)."""
        self.assertNotIn(b"AddressSanitizer", link[2], link[2].decode(errors="replace"))
        self.assertEqual([original[0], normal(original[1]), normal(original[2])], [link[0], normal(link[1]), normal(link[2])], version)

    @staticmethod
    def versions():
        return [version for version in ORIGINALS if original_exists(version)]

    def test_questions_to_all_members(self):
        self.run_link("3.7", "put", "a", "1")
        for version in self.versions():
            for line in ("member list", "member list -w json", "member list -w fields", "endpoint health", "endpoint health --cluster",
                         "endpoint status", "endpoint status --cluster", "endpoint status --cluster -w json", "endpoint hashkv",
                         "endpoint hashkv --cluster -w json", "defrag --cluster", "snapshot save x.db"):
                with self.subTest(line):
                    words = line.split()
                    self.same(version, self.run_original(version, *words), self.run_link(version, *words))

    def leader(self):
        """(id, others)"""
        found = json.loads(self.run_link("3.7", "endpoint", "status", "-w", "json")[1])
        leader = f"{found[0]['Status']['leader']:x}"
        ids = [f"{one['Status']['header']['member_id']:x}" for one in found]
        return leader, [one for one in ids if one != leader]

    def test_move_leader(self):
        for version in self.versions():
            leader, others = self.leader()
            original = self.run_original(version, "move-leader", others[0])
            self.assertEqual(self.leader()[0], others[0])
            link = self.run_link(version, "move-leader", leader)
            self.assertEqual(self.leader()[0], leader)
            self.same(version, original, link)
            self.same(version, self.run_original(version, "move-leader", "abc"), self.run_link(version, "move-leader", "abc"))

    def test_leader_is_not_among_the_endpoints(self):
        for version in self.versions():
            leader, others = self.leader()
            found = json.loads(self.run_link("3.7", "endpoint", "status", "-w", "json")[1])
            followers = [one["Endpoint"] for one in found if f"{one['Status']['header']['member_id']:x}" != leader]
            words = ["--endpoints", ",".join(followers), "move-leader", others[0]]
            results = []
            for program, env in ((ORIGINALS[version], {}), (self.scratch / "etcdctl", {"ETCDCTL_COMPAT": version})):
                done = subprocess.run([program, *words], capture_output=True, timeout=SECONDS_MAX, check=False,
                                      env={**os.environ, **env, "ETCDCTL_API": "3"})
                results.append((done.returncode, done.stdout, done.stderr))
            self.same(version, *results)
            self.assertEqual(results[1][0], 128)

    def change(self, run, version, peer):
        """A learner is added, updated, promoted, which fails because it was never started, and removed."""
        results = [run(version, "member", "add", "new", "--learner", "--peer-urls", peer)]
        self.assertEqual(results[0][0], 0, results[0])
        listed = json.loads(self.run_link("3.7", "member", "list", "-w", "json")[1])
        member = next(f"{m['ID']:x}" for m in listed["members"] if m.get("isLearner"))
        results.append(run(version, "member", "promote", member))
        results.append(run(version, "member", "update", member, "--peer-urls", peer + ",http://127.0.0.1:1"))
        results.append(run(version, "member", "list"))
        results.append(run(version, "member", "remove", member))
        results.append(run(version, "member", "remove", member))
        return results

    def test_members_come_and_go(self):
        for version in self.versions():
            original = self.change(self.run_original, version, f"http://127.0.0.1:{free_port()}")
            self.await_health()
            link = self.change(self.run_link, version, f"http://127.0.0.1:{free_port()}")
            self.await_health()
            for one, other in zip(original, link):
                self.same(version, one, other)


if __name__ == "__main__":
    unittest.main()
