"""Runs the same commands with an original etcdctl and with Vigil under that name, each on a server of its own, and
compares output, exit code and errors.

A case is one line of a table: see `case`. The cases of a table run in order on two servers of the same kind, which
are therefore in the same state, with the same ids, before every case: the original uses one, the link the other.

What is not compared, because scripts do not see it or it cannot be equal:
    log lines on standard error        the original writes what its library logs
    help, and help after a wrong flag  the words are ours; the first line of the error is compared, and all lines with
                                       suggestions after an unknown command
    ids of leases, times to live       they become L1, L2, …, and TTL
"""
import concurrent.futures
import contextlib
import itertools
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/live"))
from server import PEER, SUBJECT, Server, free_port, is_etcd  # noqa: E402

ORIGINALS = {"3.7": str(ROOT / "build/peer/etcdctl"), "3.4": "/usr/bin/etcdctl"}
SECONDS_MAX = 120
# all: everything; part: every fifth case, each version on one kind of server; short: every eighth case
HOW = os.environ.get("VIGIL_CTL", "all")
STEP = {"all": 1, "part": 5, "short": 8}[HOW]
SHORT = HOW == "short"
FORMATS = ("simple", "fields", "json", "protobuf", "table")
NOT_ON_ITS_OWN = re.compile(rb'^(\{"level":|\d{4}-\d\d-\d\d |WARNING: \d{4}/)')
USAGE_ERROR = re.compile(rb"^Error: (unknown flag|unknown shorthand|flag needs|invalid argument|bad flag|unknown command|"
                         rb"accepts )")
CHANGES = re.compile(r"(put|del|lease grant|lease revoke|compaction|user|role|auth|member|snapshot) ")
GRANTED = re.compile(rb"^lease ([0-9a-f]{16}) granted", re.M)
REMAINING = re.compile(rb'(remaining\(|"ttl":|"TTL" : )-?\d+')


def varint(number):
    """As protobuf encodes it."""
    out = bytearray()
    while number > 0x7f:
        out.append(number & 0x7f | 0x80)
        number >>= 7
    return bytes([*out, number])


class Case:
    def __init__(self, line, **options):
        self.line = line
        self.stdin = options.pop("stdin", b"")
        self.env = options.pop("env", {})
        self.only = options.pop("only", None)  # "3.7" or "3.4"
        self.lines = options.pop("lines", None)  # of output, after which it is interrupted
        self.signal = options.pop("signal", signal.SIGINT)
        self.typed = options.pop("typed", None)  # (lines to wait for, text to type next) …
        self.code_only = options.pop("code_only", False)
        self.fails_only = options.pop("fails_only", False)  # the original panics
        self.replace = options.pop("replace", ())  # (pattern, text) …
        self.sorted = options.pop("sorted", False)  # lines in any order
        assert not options, options
        if isinstance(self.stdin, str):
            self.stdin = self.stdin.encode()


def case(line, formats=(), **options):
    """One case, or one for each format. In the line $L is the newest lease and $S a directory of this side."""
    if not formats:
        return [Case(line, **options)]
    return [Case(f"{line} -w {form}{flag}", **options) for form in formats for flag in ("", " --hex")]


class Side:
    """One program and its server."""

    def __init__(self, program, server, env, scratch):
        self.program, self.server, self.scratch = program, server, scratch
        self.env, self.leases = env, []

    def command(self, line):
        words = [w.replace("$L", self.leases[-1] if self.leases else "0").replace("$S", self.scratch)
                 .replace("$E", self.server.url) for w in shlex.split(line)]
        return [self.program, *words]

    def environment(self, case):
        return {**self.env, "ETCDCTL_ENDPOINTS": self.server.url, **case.env}

    def run(self, case):
        env = {k: v for k, v in self.environment(case).items() if v is not None}
        process = subprocess.Popen(self.command(case.line), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, env=env, cwd=self.scratch, start_new_session=True)
        watchdog = threading.Timer(SECONDS_MAX, process.kill)
        watchdog.start()
        try:
            if case.lines is None and case.typed is None:
                out, err = process.communicate(case.stdin)
            else:
                out, err = self.follow(process, case)
        finally:
            watchdog.cancel()
        return process.returncode, self.normal(out, case), self.errors(err, case)

    @staticmethod
    def follow(process, case):
        """Waits for lines, types, and interrupts at the end."""
        out = b""
        errors = []
        reader = threading.Thread(target=lambda: errors.append(process.stderr.read()))
        reader.start()
        for count, text in case.typed or ():
            for _ in range(count):
                out += process.stdout.readline()
            with contextlib.suppress(BrokenPipeError):
                process.stdin.write(text.encode())
                process.stdin.flush()
        for _ in range(case.lines or 0):
            out += process.stdout.readline()
        if case.lines is not None:
            process.send_signal(case.signal)
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()
        out += process.stdout.read()
        process.stdout.close()
        process.wait()
        reader.join()
        process.stderr.close()
        return out, errors[0]

    def normal(self, out, case):
        for found in GRANTED.findall(out):
            self.leases.append(found.decode())
        for number, lease in enumerate(self.leases):
            mark = b"L%d" % number
            out = out.replace(lease.encode(), mark).replace(b"%d" % int(lease, 16), mark)
            out = out.replace(lease.lstrip("0").encode(), mark).replace(varint(int(lease, 16)), mark)
        out = REMAINING.sub(rb"\1TTL", out)
        out = out.replace(self.server.url.encode(), b"URL").replace(self.scratch.encode(), b"DIR")
        out = re.sub(rb"(?<!\d)%d(?!\d)" % self.server.port, b"PORT", out)  # not in the middle of an id
        for pattern, text in case.replace:
            out = re.sub(pattern.encode(), text.encode(), out)
        return b"\n".join(sorted(out.split(b"\n"))) if case.sorted else out

    def errors(self, err, case):
        lines = [line for line in err.split(b"\n") if not NOT_ON_ITS_OWN.match(line)]
        if lines and USAGE_ERROR.match(lines[0]) and b"unknown command" not in lines[0]:
            return lines[0]
        return self.normal(b"\n".join(lines), case)


def is_usage(result):
    return USAGE_ERROR.match(result[2])


def difference(case, original, link):
    """A sentence, or None if the case is passed."""
    if b"AddressSanitizer" in link[2] or b"runtime error" in link[2]:
        return link[2].decode(errors="replace")[-3000:]
    if case.fails_only:
        return None if original[0] and link[0] else f"exit codes {original[0]} and {link[0]}"
    if is_usage(original):
        original, link = (original[0], b"", original[2]), (link[0], b"", link[2])
    if case.code_only:
        original, link = original[:1], link[:1]
    if original == link:
        return None
    return f"original: {original}\nlink:     {link}"


class World:
    """Two servers of one kind, an original and the link."""

    def __init__(self, version, binary, directory):
        self.version, self.binary = version, binary
        self.directory = pathlib.Path(directory)
        self.sides = []

    def start_server(self, name):
        args = ["--unsafe-no-fsync"] if is_etcd(self.binary) else []
        server = Server(self.directory / f"{name}.data", args, binary=self.binary)
        if is_etcd(self.binary):
            # The ids come from the URL that is advertised to peers, which is the default for both.
            server.command = lambda: [
                self.binary, "--data-dir", server.directory, "--listen-client-urls", server.url,
                "--advertise-client-urls", server.url, "--listen-peer-urls", f"http://127.0.0.1:{free_port()}", *args]
        return server.start()

    def __enter__(self):
        link = self.directory / "etcdctl"
        link.symlink_to(SUBJECT)
        plain = {k: v for k, v in os.environ.items() if not k.startswith(("ETCDCTL_", "VIGIL_"))}
        plain["ETCDCTL_API"] = "3" if self.version == "3.4" else None
        for name, program in (("original", ORIGINALS[self.version]), ("link", str(link))):
            scratch = self.directory / name
            scratch.mkdir()
            env = {**plain, "ETCDCTL_COMPAT": self.version} if name == "link" else plain
            self.sides.append(Side(program, self.start_server(name), env, str(scratch)))
        return self

    def __exit__(self, *_):
        for side in self.sides:
            side.server.kill()

    def check(self, case):
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            original, link = pool.map(lambda side: side.run(case), self.sides)
        return difference(case, original, link)


def original_exists(version):
    return os.access(ORIGINALS[version], os.X_OK)


class CompareTest(unittest.TestCase):
    """A test for each table and version; a subclass names the binary of the servers."""
    binary = SUBJECT
    part = "3.7"  # the version in a run of a part

    @staticmethod
    def choose(version, table):
        """All cases of this version. In a shorter run some of them, others for each version, and those that change what
        others see."""
        cases = [c for c in itertools.chain.from_iterable(table) if c.only in (None, version)]
        mine = list(ORIGINALS).index(version)
        return [c for i, c in enumerate(cases) if i % STEP == mine % STEP or CHANGES.match(c.line)]

    def compare(self, version, table):
        if not original_exists(version):
            self.skipTest(f"no {ORIGINALS[version]}")
        if not os.access(self.binary, os.X_OK):
            self.skipTest(f"no {self.binary}")
        scratch = tempfile.mkdtemp(prefix="vigil-ctl-")
        self.addCleanup(shutil.rmtree, scratch, True)
        failures, count = [], 0
        with World(version, self.binary, scratch) as world:
            for one in self.choose(version, table):
                count += 1
                different = world.check(one)
                if different:
                    failures.append(f"etcdctl {version}: {one.line}\n{different}")
        print(f"{count} cases", file=sys.stderr)
        self.assertFalse(failures, "\n\n" + "\n\n".join(failures[:40]) + f"\n{len(failures)} of {count} differ")


__all__ = ["CompareTest", "FORMATS", "PEER", "case"]
