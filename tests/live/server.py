"""Starts servers for live tests. VIGIL_BIN names the server under test; a binary named etcd gets
etcd's own flags, so that these tests can be proved on a real one."""
import contextlib
import os
import pathlib
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SUBJECT = os.environ.get("VIGIL_BIN", str(ROOT / "build-test/vigil"))
PEER = os.environ.get("VIGIL_PEER", str(ROOT / "build/peer/etcd"))
READY = "ready to serve client requests"
# An etcd may serve before it knows its cluster's version, and answers otherwise until then.
DECIDED = "enabled capabilities for version"
START_SECONDS = 60
STOP_SECONDS = 60
WAIT_SECONDS = 60  # for what must come; nothing takes a tenth of it


def is_etcd(binary):
    return pathlib.Path(binary).name == "etcd"


GIVEN_PORTS = set()


def free_port():
    """A port that is free now, and that no client is given for its own end before a server has it: it is
    below those that the kernel chooses from."""
    first = int(pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    while True:
        port = random.SystemRandom().randrange(10_000, first) if first > 12_000 else 0
        with socket.socket() as s, contextlib.suppress(OSError):
            s.bind(("127.0.0.1", port))
            port = s.getsockname()[1]
            if port not in GIVEN_PORTS:
                GIVEN_PORTS.add(port)
                return port


class Server:
    """One process. wrap is a command put in front of it; limits is called in the child."""

    def __init__(self, directory, args=(), binary=SUBJECT, port=None, wrap=(), env=None,
                 limits=None, listen=None):
        self.binary = binary
        self.directory = str(directory)
        self.port = port or free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.args = list(args)
        self.wrap = list(wrap)
        # Without what speaks to the tests: a server reads VIGIL_… as its flags.
        ours = {k: v for k, v in os.environ.items() if not k.startswith("VIGIL_")}
        self.env = dict(ours, **(env or {}))
        self.limits = limits
        self.listen = listen or self.url
        self.process = None
        self.lines = []

    def command(self):
        flags = ["--data-dir", self.directory, "--listen-client-urls", self.listen,
                 "--advertise-client-urls", self.url]
        if is_etcd(self.binary):
            peer = f"http://127.0.0.1:{free_port()}"
            flags += ["--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
                      "--initial-cluster", f"default={peer}",
                      "--heartbeat-interval", "20", "--election-timeout", "100"]
        else:
            flags = ["serve"] + flags
            if not any("--listen-kube-urls" in arg for arg in self.args):
                flags += ["--listen-kube-urls="]
        return self.wrap + [self.binary] + flags + self.args

    def begin(self):
        self.lines = []
        self.ready = threading.Event()
        self.process = subprocess.Popen(self.command(), stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, env=self.env,
                                        preexec_fn=self.limits, start_new_session=True)
        self.reader = threading.Thread(target=self._read, args=(self.process,), daemon=True)
        self.reader.start()
        return self

    def _read(self, process):
        awaited = {READY, DECIDED} if is_etcd(self.binary) else {READY}
        for line in process.stdout:
            text = line.decode(errors="replace")
            self.lines.append(text)
            awaited -= {sign for sign in awaited if sign in text}
            if not awaited:
                self.ready.set()
        process.stdout.close()

    def start(self):
        self.begin()
        end = time.monotonic() + START_SECONDS
        while not self.ready.wait(0.02):
            if self.process.poll() is not None:
                self.reader.join()
                if not self.ready.is_set():
                    raise AssertionError(f"ended with {self.process.returncode}:\n{self.log}")
            if time.monotonic() > end:
                self.kill()
                raise AssertionError(f"not ready after {START_SECONDS} s:\n{self.log}")
        return self

    def refuse(self, seconds=START_SECONDS):
        """Starts a server that must not come up; returns its exit code and what it said."""
        self.begin()
        try:
            code = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"it serves where it should refuse:\n{self.log}") from None
        self.reader.join()
        return code, self.log

    @property
    def log(self):
        return "".join(self.lines[-400:])

    @property
    def pid(self):
        """The server's own process, also below a wrapper such as strace."""
        if not self.wrap:
            return self.process.pid
        children = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        return int(children.read_text().split()[0])

    def alive(self):
        return self.process.poll() is None

    def wait(self, seconds=STOP_SECONDS):
        code = self.process.wait(seconds)
        self.reader.join()
        return code

    def stop(self):
        """Ends it as an operator would; the exit must be clean (a sanitizer's report is not)."""
        if self.process is None:
            return
        if self.alive():
            os.kill(self.pid, signal.SIGTERM)
        try:
            code = self.wait()
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"did not stop in {STOP_SECONDS} s:\n{self.log}") from None
        if code not in (0, 143, -signal.SIGTERM, -signal.SIGKILL):
            raise AssertionError(f"ended with {code}:\n{self.log}")

    def kill(self):
        if self.process and self.alive():
            if self.wrap:
                try:
                    os.kill(self.pid, signal.SIGKILL)
                except (OSError, IndexError):
                    pass
            self.process.kill()
            self.wait()

    def anonymous_kb(self):
        """Anonymous memory: what the server holds for itself, without mapped files."""
        for line in pathlib.Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith("RssAnon:"):
                return int(line.split()[1])
        raise AssertionError("no RssAnon")

    def cpu_seconds(self):
        user, system = pathlib.Path(f"/proc/{self.pid}/stat").read_text().rsplit(")", 1)[1].split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.pid}/fd"))


class LiveTest(unittest.TestCase):
    """A test with a scratch directory, whose servers end with it."""

    def setUp(self):
        self.scratch = pathlib.Path(tempfile.mkdtemp(prefix="vigil-live-"))
        self.addCleanup(shutil.rmtree, self.scratch, ignore_errors=True)

    def server(self, directory=None, **options):
        s = Server(directory or self.scratch / "data", **options)
        self.addCleanup(s.kill)
        return s

    def serving(self, directory=None, **options):
        s = self.server(directory, **options).start()
        self.addCleanup(s.stop)
        return s

    def eventually(self, holds, told=lambda: "it did not happen"):
        """Waits for what must come to hold, however slow the machine; returns what it gave."""
        end = time.monotonic() + WAIT_SECONDS
        while not (found := holds()):
            self.assertLess(time.monotonic(), end, told())
            time.sleep(0.02)
        return found


def only_vigil(test):
    """For what a real etcd does not do, or does otherwise."""
    skip = is_etcd(SUBJECT) and not os.environ.get("VIGIL_TEST_ALL")
    return unittest.skipIf(skip, "not a property of etcd")(test)
