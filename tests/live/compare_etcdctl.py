"""Runs commands of etcdctl on Vigil and on a real etcd and compares their output and exit codes.
VIGIL_ETCDCTL names another etcdctl than Debian's."""
import contextlib
import json
import os
import queue
import re
import signal
import subprocess
import threading
import unittest

from server import PEER, SUBJECT, LiveTest, Server, is_etcd

ETCDCTL = os.environ.get("VIGIL_ETCDCTL", "etcdctl")
SECONDS_MAX = 120
# Numbers that differ between servers or between runs.
OWN_NUMBERS = re.compile(
    r'("?(?:raft_?term|RaftTerm|raft_?index|RaftIndex|raftAppliedIndex|RaftAppliedIndex|dbSize\w*|DBSize\w*|'
    r'DB ?Size|hash|Hash|HashRevision|ID|TTL|ttl|granted|GrantedTTL)"? ?: ?)"?-?\d+"?', re.I)
TIMES = re.compile(r"\d+(?:\.\d+)?(?:µs|ms|s)\b")


def version():
    out = subprocess.check_output([ETCDCTL, "version"], env=dict(os.environ, ETCDCTL_API="3"))
    return tuple(int(n) for n in re.search(rb"version: (\d+)\.(\d+)", out).groups())


class Following:
    """An etcdctl that keeps running; its output is read line by line."""

    def __init__(self, command, env):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, text=True, env=env, bufsize=1)
        self.lines = queue.Queue()
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            self.lines.put(line)
        self.lines.put(None)

    def take(self, count):
        taken = []
        for _ in range(count):
            line = self.lines.get(timeout=SECONDS_MAX)
            if line is None:
                break
            taken.append(line)
        return "".join(taken)

    def write(self, text):
        self.process.stdin.write(text)
        self.process.stdin.flush()

    def interrupt(self):
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(SECONDS_MAX)

    def end(self):
        self.process.kill()
        self.process.wait()
        self.reader.join()
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.stdout.close()


@unittest.skipUnless(os.access(PEER, os.X_OK), "no real etcd to compare with")
@unittest.skipIf(is_etcd(SUBJECT), "one etcd is not compared with another")
class CompareEtcdctl(LiveTest):
    """Runs etcdctl on two servers, Vigil and a real etcd."""
    maxDiff = 4000
    flags = []  # of both servers

    def setUp(self):
        super().setUp()
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("ETCDCTL_")}
        if version() < (3, 5):
            self.env["ETCDCTL_API"] = "3"
        etcd = self.start("etcd", binary=PEER, args=self.flags)
        emulated = json.loads(self.run_on(etcd, ["endpoint", "status", "-w", "json"])[1])[0]["Status"]["version"]
        vigil = self.start("vigil", binary=SUBJECT, args=["--emulate-version", emulated, *self.flags])
        self.servers = [vigil, etcd]
        self.ids = [self.identity(s) for s in self.servers]
        self.leases = [[], []]

    def start(self, name, **options):
        server = Server(self.scratch / name, **options).start()
        self.addCleanup(server.stop)
        return server

    def identity(self, server):
        header = json.loads(self.run_on(server, ["endpoint", "status", "-w", "json"])[1])[0]["Status"]["header"]
        return header["member_id"], header["cluster_id"]

    def command(self, server, args):
        return [ETCDCTL, "--endpoints", server.url, "--command-timeout=60s", *args]

    def run_on(self, server, args, text=None, seconds=SECONDS_MAX):
        done = subprocess.run(self.command(server, args), input=text, capture_output=True, text=True,
                              timeout=seconds, env=self.env, check=False)
        return done.returncode, done.stdout, done.stderr

    def plain(self, which, text):
        """The text with names in place of IDs, addresses and times that belong to one server."""
        member, cluster = self.ids[which]
        for i, lease in enumerate(self.leases[which]):
            text = text.replace(f"{lease:016x}", f"LEASE{i}").replace(f"{lease:x}", f"LEASE{i}")
            text = text.replace(str(lease), f"LEASE{i}")
        for number, name in ((member, "MEMBER"), (cluster, "CLUSTER")):
            text = text.replace(f"{number:016x}", name).replace(f"{number:x}", name)
            text = text.replace(str(number), name)
        url = self.servers[which].url
        text = text.replace(url, "URL").replace(url.removeprefix("http://"), "ADDRESS")
        text = re.sub(r"LocalAddr: '[^']*'", "LOCAL", text)
        # Each server has its own port for peers.
        text = re.sub(r"http://(?:127\.0\.0\.1|localhost):\d+", "PEER", text)
        text = re.sub(r'"ts":"[^"]*"|\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d{4})', "WHEN", text)
        text = re.sub(r"0x[0-9a-f]{8,}|target\":\"[^\"]*", "POINTER", text)
        return TIMES.sub("TIME", OWN_NUMBERS.sub(r"\1N", text))

    def both(self, *args, text=None, code=None, fails=False, rewrite=lambda text: text):
        """Runs a command on both servers, compares the results, and returns Vigil's output. An argument LEASEn stands
        for the nth lease of each server."""
        answers = []
        for which, server in enumerate(self.servers):
            own = [self.own_lease(which, a) for a in args]
            got, out, error = self.run_on(server, own, text)
            answers.append((got, rewrite(self.plain(which, out)), rewrite(self.plain(which, error))))
        with self.subTest(args=args):
            self.assertEqual(answers[0], answers[1])
            if code is not None:
                self.assertEqual(answers[0][0], code, answers[0])
            if fails:
                self.assertNotEqual(answers[0][0], 0, answers[0])
        return answers[0][1]

    def own_lease(self, which, argument):
        return re.sub(r"LEASE(\d)", lambda m: f"{self.leases[which][int(m[1])]:x}", argument)

    def grant(self, ttl):
        for which, server in enumerate(self.servers):
            code, out, error = self.run_on(server, ["lease", "grant", str(ttl)])
            self.assertEqual(code, 0, error)
            self.assertRegex(out, rf"^lease [0-9a-f]{{16}} granted with TTL\({ttl}s\)\n$")
            self.leases[which].append(int(out.split()[1], 16))

    def follow(self, *args):
        """Starts a command that keeps running, on both servers."""
        both = []
        for which, server in enumerate(self.servers):
            own = [self.own_lease(which, a) for a in args]
            both.append(Following(self.command(server, own), self.env))
            self.addCleanup(both[-1].end)
        return both

    def same_lines(self, both, count):
        outputs = [self.plain(which, one.take(count)) for which, one in enumerate(both)]
        self.assertEqual(outputs[0], outputs[1])
        return outputs[0]
