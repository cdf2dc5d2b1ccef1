#!/usr/bin/python3
"""The link etcdctl beside the originals in what needs no running server: names from DNS, and the files of an etcd that has
stopped."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

from compare import ORIGINALS, SUBJECT, original_exists
from server import Server

HERE = pathlib.Path(__file__).resolve().parent
SECONDS_MAX = 60
SRV = {"_etcd-client-ssl._tcp.both.test": [["s.both.test", 1]],
       "_etcd-client._tcp.both.test": [["p.both.test", 2]],
       "_etcd-client._tcp.plain.test": [["p.plain.test", 2]],
       "_etcd-client-x._tcp.plain.test": [["x.plain.test", 3]]}
FAST = "--command-timeout 300ms --dial-timeout 200ms"
DISCOVERY = ["-d both.test get a", "-d both.test --insecure-discovery=false get a", "-d plain.test get a",
             "-d plain.test --insecure-discovery=false endpoint status", "-d plain.test --discovery-srv-name x get a",
             "-d none.test get a", "-d broken.test get a",
             "-d plain.test --insecure-discovery=false --discovery-srv-name x endpoint status"]


def run(command, **more):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=SECONDS_MAX, **more)
    errors = b"\n".join(line for line in done.stderr.split(b"\n") if not re.match(rb'\{"level"|\d{4}-\d\d-\d\d |WARNING: ', line))
    return done.returncode, done.stdout, errors


class MachineTest(unittest.TestCase):
    def setUp(self):
        self.scratch = pathlib.Path(tempfile.mkdtemp(prefix="vigil-machine-"))
        self.addCleanup(shutil.rmtree, self.scratch, True)
        self.link = self.scratch / "etcdctl"
        self.link.symlink_to(SUBJECT)
        self.plain = {k: v for k, v in os.environ.items() if not k.startswith(("ETCDCTL_", "VIGIL_"))}

    def both(self, version):
        """The programs with their environments."""
        api = {"ETCDCTL_API": "3"} if version == "3.4" else {}
        return ((ORIGINALS[version], {**self.plain, **api}), (str(self.link), {**self.plain, **api, "ETCDCTL_COMPAT": version}))


class Discovery(MachineTest):
    def in_namespace(self, lines, version):
        """The results of the original and of the link, for each line."""
        (self.scratch / "resolv.conf").write_text("nameserver 127.0.0.1\n")
        (self.scratch / "srv.json").write_text(json.dumps({"srv": SRV}))
        job = {"lines": lines, "both": self.both(version)}
        (self.scratch / "job.json").write_text(json.dumps(job))
        done = subprocess.run(["unshare", "-rmn", "/usr/bin/python3", __file__, "in-namespace", str(self.scratch)],
                              capture_output=True, timeout=SECONDS_MAX)
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        return json.loads(done.stdout)

    def check(self, version):
        if not original_exists(version):
            self.skipTest(f"no {ORIGINALS[version]}")
        if subprocess.run(["unshare", "-rmn", "true"], capture_output=True).returncode:
            self.skipTest("no namespaces")
        lines = [f"{FAST} {line}" for line in DISCOVERY]
        for line, (original, link) in zip(lines, self.in_namespace(lines, version)):
            with self.subTest(line=line):
                self.assertEqual(original, link)

    def test_discovered_endpoints_3_7(self):
        self.check("3.7")

    def test_discovered_endpoints_3_4(self):
        self.check("3.4")


def in_namespace(scratch):
    """Runs in the namespace: the job of Discovery."""
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    subprocess.run(["mount", "--bind", f"{scratch}/resolv.conf", "/etc/resolv.conf"], check=True)
    job = json.load(open(f"{scratch}/job.json"))
    with subprocess.Popen(["/usr/bin/python3", str(HERE / "dns_server.py"), f"{scratch}/srv.json"], stdout=subprocess.PIPE) as server:
        server.stdout.readline()
        results = []
        for line in job["lines"]:
            sides = [run([program, *line.split()], env=env) for program, env in job["both"]]
            results.append([[code, out.decode(), err.decode()] for code, out, err in sides])
        server.kill()
    print(json.dumps(results))


class DefragmentedFile(MachineTest):
    def setUp(self):
        super().setUp()
        if not original_exists("3.4"):
            self.skipTest("no etcd 3.4")
        self.env = {**self.plain, "ETCDCTL_API": "3"}

    def ctl(self, *words, stdin=b""):
        subprocess.run([ORIGINALS["3.4"], "--endpoints", self.server.url, *words], input=stdin, env=self.env, check=True,
                       stdout=subprocess.DEVNULL, timeout=SECONDS_MAX)

    def directory_with_free_pages(self):
        """Of an etcd 3.4 that has stopped."""
        self.server = Server(self.scratch / "data", ["--unsafe-no-fsync"], binary="/usr/bin/etcd")
        self.server.start()
        for i in range(40):
            self.ctl("put", f"key{i}", stdin=b"x" * 100_000)
        self.ctl("put", "small", stdin=b"v")
        self.ctl("del", "key", "--prefix")
        self.ctl("compaction", "--physical", "43")
        self.ctl("user", "add", "alice:secret")
        self.ctl("lease", "grant", "1000")
        self.server.stop()
        return self.scratch / "data"

    def contents(self, directory):
        """What an etcd that starts with it has."""
        server = Server(directory, ["--unsafe-no-fsync"], binary="/usr/bin/etcd")
        server.start()
        try:
            return [run([ORIGINALS["3.4"], "--endpoints", server.url, *line.split()], env=self.env)
                    for line in ("get --prefix k -w fields", "get small", "user list", "lease list", "get small --rev 44")]
        finally:
            server.stop()

    def test_file_has_the_same_contents_and_no_free_pages(self):
        first = self.directory_with_free_pages()
        second = self.scratch / "copy"
        shutil.copytree(first, second)
        before = (first / "member/snap/db").stat().st_size
        sizes = []
        for directory, (program, env) in zip((first, second), self.both("3.4")):
            result = run([program, "defrag", "--data-dir", str(directory)], env=env)
            self.assertEqual(result, (0, b"", b""))
            sizes.append((directory / "member/snap/db").stat().st_size)
        self.assertLess(sizes[1], before // 10)
        self.assertLess(abs(sizes[0] - sizes[1]), 64 * 1024)
        self.assertEqual(os.listdir(second / "member/snap"), ["db"])
        self.assertEqual(self.contents(first)[1:], self.contents(second)[1:])

    def test_missing_and_foreign_files_are_refused(self):
        env = self.both("3.4")[1][1]
        code, out, err = run([str(self.link), "defrag", "--data-dir", "none"], env=env, cwd=self.scratch)
        self.assertEqual((code, out), (1, b""))
        self.assertIn(b"Failed to defragment etcd data[none] (cannot open database at none/member/snap/db", err)
        code, out, err = run([str(self.link), "defrag", "--data-dir", "x/" * 2500], env=env, cwd=self.scratch)
        self.assertEqual((code, out), (1, b""))
        self.assertIn(b"File name too long", err)
        foreign = self.scratch / "foreign/member/snap"
        foreign.mkdir(parents=True)
        (foreign / "db").write_bytes(b"no database" * 10_000)
        code, out, err = run([str(self.link), "defrag", "--data-dir", "foreign"], env=env, cwd=self.scratch)
        self.assertEqual((code, out), (1, b""))
        self.assertEqual(os.listdir(foreign), ["db"])
        self.assertEqual((foreign / "db").read_bytes(), b"no database" * 10_000)


if __name__ == "__main__":
    if sys.argv[1:2] == ["in-namespace"]:
        in_namespace(sys.argv[2])
    else:
        unittest.main()
