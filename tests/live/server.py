"""Starts servers for live tests. VIGIL_BIN names the server under test; a binary named etcd is started with
etcd's own flags, so that the expectations of these tests can be verified on a real etcd. With VIGIL_ENGINE=cluster every
Vigil is started in front of a real etcd of its own."""
import atexit
import contextlib
import fcntl
import http.client
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import threading
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SUBJECT = os.environ.get("VIGIL_BIN", str(ROOT / "build-test/vigil"))
# The load generator, which is built and installed beside the server.
GENERATOR = str(pathlib.Path(SUBJECT).with_name("vigil-bench"))
PEER = os.environ.get("VIGIL_PEER", str(ROOT / "build/peer/etcd"))
READY = "ready to serve client requests"
# etcd may serve before it knows its cluster's version, and its answers differ until then.
DECIDED = "enabled capabilities for version"
# In front of a cluster: the mirror is complete. Before, only forwarded calls are served.
FOLLOWING = "following the cluster"
START_SECONDS = 60
STOP_SECONDS = 60
WAIT_SECONDS = 60  # at least ten times as long as any expected event takes
IN_FRONT = os.environ.get("VIGIL_ENGINE") == "cluster"
# Flags that configure the store, which is the cluster's: the etcd behind Vigil gets them instead of Vigil.
STORE_FLAGS = ("--quota-backend-bytes", "--max-txn-ops", "--auto-compaction-mode", "--auto-compaction-retention",
               "--auth-token", "--auth-token-ttl", "--bcrypt-cost")
SHARED_FLAGS = ("--max-request-bytes",)


def is_etcd(binary):
    return pathlib.Path(binary).name == "etcd"


UPSTREAMS = {}  # the etcds behind servers, by the directory of the server, which another one may use after it


def free_port():
    """Returns a port that is free now, and that no other test gets while this process lives. It is below the kernel's
    range of ephemeral ports, so that no outgoing connection takes it before the server listens on it."""
    first = int(pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    while True:
        port = random.SystemRandom().randrange(10_000, first) if first > 12_000 else 0
        with socket.socket() as s, contextlib.suppress(OSError):
            s.bind(("127.0.0.1", port))
            port = s.getsockname()[1]
            if reserve(port):
                return port


def reserve(port):
    """Locks the file of a port. tests/harness/server.go does the same."""
    folder = pathlib.Path(tempfile.gettempdir(), "vigil-ports")
    folder.mkdir(exist_ok=True)
    file = os.open(folder / str(port), os.O_RDWR | os.O_CREAT, 0o666)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(file)
        return False
    return True  # it stays locked until the process ends


def split_flags(args):
    """The flags of Vigil and those of the etcd behind it."""
    own, store, args = [], [], list(args)
    while args:
        name = args[0].partition("=")[0]
        known = name in STORE_FLAGS + SHARED_FLAGS
        taken, args = (args[:2], args[2:]) if known and name == args[0] else (args[:1], args[1:])
        store += taken if known else []
        own += [] if name in STORE_FLAGS else taken
    return own, store


class Output:
    """What a process writes. It goes to a file, not through a pipe and a thread: whatever the process wrote before it
    answered a request can be read after the answer."""

    def __init__(self):
        self.file, path = tempfile.mkstemp(prefix="vigil-output-")
        fcntl.fcntl(self.file, fcntl.F_SETFL, fcntl.fcntl(self.file, fcntl.F_GETFL) | os.O_APPEND)
        os.unlink(path)
        self.lock = threading.Lock()
        self.found = []
        self.at = 0  # where the first line begins that was not complete

    def __del__(self):
        os.close(self.file)

    def lines(self):
        with self.lock:
            while part := os.pread(self.file, 1 << 20, self.at):
                whole = part[:part.rfind(b"\n") + 1]
                if not whole:
                    break
                self.found += [f"{line.decode(errors='replace')}\n" for line in whole[:-1].split(b"\n")]
                self.at += len(whole)
            return list(self.found)


class Server:
    """One server process. wrap is a command put in front of it, such as strace; limits is called in the child
    before it becomes the server."""

    def __init__(self, directory, args=(), binary=SUBJECT, port=None, wrap=(), env=None,
                 limits=None, listen=None):
        self.binary = binary
        self.directory = str(directory)
        self.port = port or free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.args = list(args)
        self.wrap = list(wrap)
        # VIGIL_… variables configure the tests; the server would read them as its flags.
        inherited = {k: v for k, v in os.environ.items() if not k.startswith("VIGIL_")}
        self.env = dict(inherited, **(env or {}))
        self.limits = limits
        self.listen = listen or self.url
        self.process = None
        self.output = Output()
        self.upstream = None  # the etcd behind it; it lives longer than the process

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
            # Tests that list config maps or count revisions expect only what they have written; kube_start_test.py
            # tests the objects of namespaces.
            if not any("--kube-namespace-objects" in arg for arg in self.args):
                flags += ["--kube-namespace-objects=false"]
        return self.wrap + [self.binary] + flags + (self.args if is_etcd(self.binary) else self.own_args())

    def own_args(self):
        """Vigil's own flags, after the etcd behind it was started if there is to be one."""
        if not IN_FRONT or any("--upstream-endpoints" in arg for arg in self.args):
            return self.args
        own, store = split_flags(self.args)
        self.upstream = self.upstream or UPSTREAMS.get(self.directory)
        if self.upstream is None:
            self.upstream = Server(f"{self.directory}.upstream", ["--unsafe-no-fsync", *store], binary=PEER)
            UPSTREAMS[self.directory] = self.upstream
            atexit.register(self.upstream.kill)
            self.upstream.start()
        return [*own, "--upstream-endpoints", self.upstream.url]

    def close(self):
        """Ends everything at once."""
        self.kill()
        if self.upstream is not None:
            UPSTREAMS.pop(self.directory, None)
            self.upstream.kill()

    def begin(self):
        self.is_cold = not pathlib.Path(self.directory, "MIRROR").exists()  # if it is in front of a cluster
        self.output = Output()
        self.process = subprocess.Popen(self.command(), stdout=self.output.file, stderr=subprocess.STDOUT,
                                        env=self.env, preexec_fn=self.limits, start_new_session=True)
        return self

    def is_ready(self):
        """Whether it has written everything that it writes before it serves."""
        awaited = [READY, DECIDED] if is_etcd(self.binary) else [READY]
        if self.is_cold and "--upstream-endpoints" in self.process.args:
            awaited.append(FOLLOWING)
        return all(any(message in line for line in self.lines) for message in awaited)

    def becomes_ready(self, seconds=START_SECONDS):
        """Waits until it serves or has ended, and returns whether it serves."""
        end = time.monotonic() + seconds
        while not self.is_ready() and self.alive() and time.monotonic() < end:
            time.sleep(0.01)
        return self.is_ready()

    def start(self):
        self.begin()
        end = time.monotonic() + START_SECONDS
        if not self.becomes_ready():
            if not self.alive():
                raise AssertionError(f"ended with {self.process.returncode}:\n{self.log}")
            self.kill()
            raise AssertionError(f"not ready after {START_SECONDS} s:\n{self.log}")
        if IN_FRONT and not is_etcd(self.binary):
            self.await_kube(end)
        return self

    def await_kube(self, end):
        """In front of a cluster: returns when the Kubernetes API serves. Before, a client may only be sent away for a while."""
        urls = re.findall(r"--listen-kube-urls[= ](https?)://([^: ]+):(\d+)", " ".join(self.args))
        while urls and urls[-1][2] != "0":
            scheme, host, port = urls[-1]
            host = "127.0.0.1" if host == "0.0.0.0" else host
            connection = http.client.HTTPConnection(host, int(port), timeout=START_SECONDS)
            if scheme == "https":
                connection = http.client.HTTPSConnection(host, int(port), timeout=START_SECONDS,
                                                         context=ssl._create_unverified_context())
            try:
                connection.request("GET", "/apis")
                answer = connection.getresponse()
                if answer.status != 429:
                    return
                body = answer.read()
                assert answer.headers["Retry-After"] == "1" and b"storage is (re)initializing" in body, body
            except ssl.SSLError:
                return  # it wants a certificate
            finally:
                connection.close()
            assert time.monotonic() < end, self.log
            time.sleep(0.02)

    def refuse(self, seconds=START_SECONDS):
        """Starts a server that must refuse to serve; returns its exit code and its log."""
        self.begin()
        try:
            code = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"the server did not exit, although it should refuse to serve:\n{self.log}") from None
        return code, self.log

    @property
    def lines(self):
        """All lines that the server has written by now."""
        return self.output.lines()

    @property
    def log(self):
        """The last lines so far; while the server runs, LiveTest.assert_logged waits for what it will write soon."""
        return "".join(self.lines[-400:])

    @property
    def pid(self):
        """The server's own process ID, also when it is the child of a wrapper such as strace."""
        if not self.wrap:
            return self.process.pid
        children = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        return int(children.read_text().split()[0])

    def alive(self):
        return self.process.poll() is None

    def wait(self, seconds=STOP_SECONDS):
        return self.process.wait(seconds)

    def stop(self):
        """Stops the server as an operator would, with SIGTERM. The exit must be clean; a sanitizer's report is not."""
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
                # The wrapper ends after the server, when this no longer uses its data directory.
                with contextlib.suppress(OSError, IndexError, subprocess.TimeoutExpired):
                    os.kill(self.pid, signal.SIGKILL)
                    self.wait(WAIT_SECONDS)
            self.process.kill()
            self.wait()

    def anonymous_kb(self):
        """The server's anonymous memory, without mapped files."""
        if "build-tsan" in SUBJECT:
            return anonymous_kb_of_program(self.pid)
        for line in pathlib.Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith("RssAnon:"):
                return int(line.split()[1])
        raise AssertionError("no RssAnon")

    def cpu_seconds(self):
        return cpu_seconds_of(self.pid)

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.pid}/fd"))


def cpu_seconds_of(pid):
    user, system = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


# Where the thread sanitizer of x86-64 records accesses; the program's own memory is elsewhere.
THREAD_SANITIZER = (range(0x0100_0000_0000, 0x5500_0000_0000), range(0x6000_0000_0000, 0x7b00_0000_0000))


def anonymous_kb_of_program(pid):
    """Anonymous memory under the thread sanitizer, without its records, which are several times as large."""
    total, counts = 0, True
    for line in pathlib.Path(f"/proc/{pid}/smaps").read_text().splitlines():
        first = line.split(maxsplit=1)[0]
        if "-" in first:
            start = int(first.partition("-")[0], 16)
            counts = not any(start in records for records in THREAD_SANITIZER)
        elif first == "Anonymous:" and counts:
            total += int(line.split()[1])
    return total


class LiveTest(unittest.TestCase):
    """A test with a scratch directory and servers that end with the test."""

    def setUp(self):
        self.scratch = pathlib.Path(tempfile.mkdtemp(prefix="vigil-live-"))
        self.addCleanup(shutil.rmtree, self.scratch, ignore_errors=True)

    def server(self, directory=None, **options):
        s = Server(directory or self.scratch / "data", **options)
        self.addCleanup(s.close)
        return s

    def serving(self, directory=None, **options):
        s = self.server(directory, **options).start()
        self.addCleanup(s.stop)
        return s

    def eventually(self, condition, message=lambda: "the condition did not become true"):
        """Waits until condition() is true, however slow the machine is, and returns its result."""
        end = time.monotonic() + WAIT_SECONDS
        while not (found := condition()):
            self.assertLess(time.monotonic(), end, message())
            time.sleep(0.02)
        return found

    def assert_logged(self, server, expected):
        """Waits until the server's log contains a text or matches a pattern. Its logger writes a little later than it acts."""
        expected = expected if isinstance(expected, re.Pattern) else re.compile(re.escape(expected))
        self.eventually(lambda: expected.search(server.log), lambda: f"{expected.pattern!r} is not in {server.log}")


def only_vigil(test):
    """Marks a test of behaviour that a real etcd does not have."""
    skip = is_etcd(SUBJECT) and not os.environ.get("VIGIL_TEST_ALL")
    return unittest.skipIf(skip, "not a property of etcd")(test)


def only_alone(test):
    """Marks a test of a server that stores the data itself: in front of a cluster its flags are refused."""
    return unittest.skipIf(IN_FRONT, "not a property of a server in front of a cluster")(test)
