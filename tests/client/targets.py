"""The servers that the tests of libvigil run against: Vigil, Debian's etcd 3.4 and etcd 3.7, with one member or three.
A Target does what a test asks for ("ask restart" on its standard output)."""
import concurrent.futures
import contextlib
import functools
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "live"))
from proxy import Bridge  # noqa: E402
from server import PEER, START_SECONDS, STOP_SECONDS, SUBJECT, Server, free_port  # noqa: E402

SUITE = os.environ.get("VIGIL_CLIENT_SUITE", str(pathlib.Path(SUBJECT).parent / "client_suite"))
# Groups whose tests need something special around them.
SPECIAL = ("access", "credentials", "faults", "cluster", "null", "ported", "ported-cluster", "v2")
TEST_SECONDS = 300
AT_A_TIME = 4  # classes of tests
ETCD_34 = "/usr/bin/etcd"  # Debian's
ETCD_37 = PEER
ETCDCTL = os.environ.get("ETCDCTL", "etcdctl")
SNAPSHOT_KEYS = 2500  # KEYS in parts.c
PROGRESS = "500ms"  # between notifications of progress


def read(url):
    with contextlib.suppress(OSError), urllib.request.urlopen(url, timeout=5) as answer:
        return answer.read().decode()
    return ""


def await_stop(pid):
    """Until no thread of the process runs any more after SIGSTOP, which does not take effect at once."""
    end = time.monotonic() + STOP_SECONDS
    while True:
        threads = pathlib.Path(f"/proc/{pid}/task").glob("*/stat")
        states = [thread.read_text().rpartition(")")[2].split()[0] for thread in threads]
        if set(states) == {"T"}:
            return
        assert time.monotonic() < end, f"the threads do not stop: {states}"
        time.sleep(0.001)


class VigilMember(Server):
    """Vigil, which has one member only."""

    def __init__(self, directory, args=(), **options):
        super().__init__(directory, args=["--watch-progress-notify-interval", PROGRESS, *args], **options)
        self.name = self.peer = ""

    def begin_if_ended(self, _cluster):
        if self.process is None or not self.alive():
            self.start()

    def await_ready(self):
        pass

    def metrics(self):
        return read(f"{self.url}/metrics")

    def is_leader(self):
        return True


class Front(VigilMember):
    """Vigil in front of the members of another target, which it reaches through their bridges."""

    def __init__(self, directory, target, args=(), **options):
        super().__init__(directory, ["--upstream-endpoints", target.bridged, *args], **options)


class EtcdMember:
    """A member of a real etcd."""

    def __init__(self, directory, binary, index=0, args=(), scheme="http"):
        assert os.path.exists(binary), f"{binary} is missing: see tools/install-deps and tools/build-peer"
        self.binary, self.args = binary, list(args)
        self.name = f"m{index}"
        self.directory = pathlib.Path(directory) / self.name
        self.port = free_port()
        self.url = f"{scheme}://127.0.0.1:{self.port}"
        self.peer, self.status = (f"http://127.0.0.1:{free_port()}" for _ in range(2))
        self.process = None

    def command(self, cluster):
        old = self.binary == ETCD_34
        return [self.binary, "--name", self.name, "--data-dir", str(self.directory), "--listen-client-urls", self.url,
                "--advertise-client-urls", self.url, "--listen-peer-urls", self.peer, "--listen-metrics-urls",
                self.status, "--initial-advertise-peer-urls", self.peer, "--initial-cluster", cluster,
                "--heartbeat-interval", "100", "--election-timeout", "1000", "--log-level", "error",
                f"--{'experimental-' if old else ''}watch-progress-notify-interval", PROGRESS,
                "--unsafe-no-fsync", *self.args]

    def begin_if_ended(self, cluster):
        if self.process is None:
            self.process = subprocess.Popen(self.command(cluster), stdout=subprocess.DEVNULL,
                                            stderr=subprocess.DEVNULL)

    def alive(self):
        return self.process is not None

    @property
    def pid(self):
        return self.process.pid

    def has_leader(self):
        return "\netcd_server_has_leader 1\n" in self.metrics()

    def await_ready(self):
        """Some answers of etcd differ until it knows the version of its cluster."""
        end = time.monotonic() + START_SECONDS
        while not self.has_leader() or '"not_decided"' in read(f"{self.status}/version"):
            assert self.process.poll() is None, f"{self.binary} ended with {self.process.returncode}"
            assert time.monotonic() < end, f"{self.binary} has no leader"
            time.sleep(0.05)

    def terminate(self):
        self.process.terminate()
        self.process.wait(STOP_SECONDS)
        self.process = None

    def stop(self):
        """Kills it: etcd waits for open streams for 7 seconds before it ends."""
        self.kill()

    def kill(self):
        if self.process:
            self.process.kill()
            self.process.wait()
            self.process = None

    def metrics(self):
        return read(f"{self.status}/metrics")

    def is_leader(self):
        return "\netcd_server_is_leader 1\n" in self.metrics()


class Target:
    """Members that run. Each has a bridge in front of it, which a test may use instead of the member's own address."""

    def __init__(self, members):
        self.members = members
        self.cluster = ",".join(f"{member.name}={member.peer}" for member in members)
        self.bridges = [Bridge(member.port) for member in members]
        self.disturbed = False  # something has happened to the members or their bridges
        self.start()

    @property
    def endpoints(self):
        return ",".join(member.url for member in self.members)

    @property
    def bridged(self):
        return ",".join(f"{member.url.partition(':')[0]}://{bridge.address}"
                        for member, bridge in zip(self.members, self.bridges))

    def start(self):
        for member in self.members:
            member.begin_if_ended(self.cluster)
        for member in self.members:
            member.await_ready()

    def stop(self):
        for member in self.members:
            member.stop()

    def signal(self, number, members):
        for member in members:
            if member.alive():
                os.kill(member.pid, number)
                if number == signal.SIGSTOP:
                    await_stop(member.pid)

    def isolate(self, kept):
        """All members but this one stop to answer."""
        self.signal(signal.SIGSTOP, [member for member in self.members if member is not kept])

    def await_loss(self, member):
        """Until the member knows that it has no leader."""
        end = time.monotonic() + START_SECONDS
        while member.has_leader():
            assert time.monotonic() < end, "the member still has a leader"
            time.sleep(0.02)

    def leader(self):
        return next(member for member in self.members if member.is_leader())

    def watchers(self):
        found = [re.search(r"^etcd_debugging_mvcc_watcher_total (\d+)", member.metrics(), re.M)
                 for member in self.members]
        return sum(int(match[1]) for match in found)

    def obey(self, what):
        """Returns a number if the test asks for one."""
        verb, _, which = what.partition(" ")
        self.disturbed |= verb not in ("drop", "watchers", "leader")
        if verb in ("drop", "hold", "release", "silence"):
            for bridge in [self.bridges[int(which)]] if which else self.bridges:
                bridge.obey(verb)
        elif verb == "watchers":
            return self.watchers()
        elif verb == "raise":  # raise 7 NOSPACE: an alarm of member 7
            member, alarm = which.split()
            body = json.dumps({"action": "ACTIVATE", "memberID": member, "alarm": alarm}).encode()
            with urllib.request.urlopen(f"{self.members[0].url}/v3/maintenance/alarm", body, timeout=30):
                pass
        elif verb in ("stop", "restart", "start"):
            if verb != "start":
                self.stop()
            if verb != "stop":
                self.start()
        elif verb == "kill":
            (self.leader() if which == "leader" else self.members[int(which)]).kill()
        elif verb == "terminate":
            self.leader().terminate()
        elif verb == "lose":
            self.await_loss(self.members[int(which.removeprefix("leader "))])
        elif verb == "leader":
            return self.members.index(self.leader())
        elif verb == "isolate":
            self.isolate(self.members[int(which)])
        elif verb == "pause":
            self.signal(signal.SIGSTOP, self.members)
        elif verb == "continue":
            self.signal(signal.SIGCONT, self.members)
            for member in self.members:
                member.await_ready()
        else:
            raise AssertionError(f"unknown request: {what}")
        return None

    def recover(self):
        """After a test, however it ended."""
        if not self.disturbed:
            return
        self.disturbed = False
        self.signal(signal.SIGCONT, self.members)
        for bridge in self.bridges:
            bridge.obey("release")
        self.start()

    def close(self):
        self.signal(signal.SIGCONT, self.members)
        for bridge in self.bridges:
            bridge.close()
        for member in self.members:
            member.kill()


def etcd(directory, binary, members=1, **options):
    return Target([EtcdMember(directory, binary, index, **options) for index in range(members)])


def check_snapshot(path, keys=SNAPSHOT_KEYS):
    """The digest of the file is checked by restoring it, and its keys are counted."""
    run = functools.partial(subprocess.run, check=True, capture_output=True, text=True,
                            env=dict(os.environ, ETCDCTL_API="3"))
    status = json.loads(run([ETCDCTL, "snapshot", "status", path, "-w", "json"]).stdout)
    assert status["totalKey"] >= keys, status
    with tempfile.TemporaryDirectory() as directory:
        run([ETCDCTL, "snapshot", "restore", path, "--data-dir", f"{directory}/restored"])
    os.remove(path)


def run_test(name, obey, env):
    """Runs one test of the suite, and obeys what it asks for. Returns its exit code and its errors."""
    with tempfile.TemporaryDirectory() as directory:
        snapshot = f"{directory}/snapshot"

        def obey_all(what):
            return check_snapshot(snapshot) if what == "check-snapshot" else obey(what)
        return drive([SUITE, name], obey_all, dict(env, VIGIL_SNAPSHOT_FILE=snapshot))


def drive(command, obey, env):
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               text=True, env=dict(os.environ, **env))
    timer = threading.Timer(TEST_SECONDS, process.kill)
    timer.start()
    with process:
        for line in process.stdout:
            verb, _, what = line.strip().partition(" ")
            assert verb == "ask", line
            number = obey(what)
            process.stdin.write("done\n" if number is None else f"done {number}\n")
            process.stdin.flush()
        errors = process.stderr.read()
    timer.cancel()
    return process.returncode, errors


def groups():
    """The names of the tests in each group of the suite."""
    found = {}
    for line in subprocess.run([SUITE], check=True, capture_output=True, text=True).stdout.splitlines():
        group, name = line.split()
        found.setdefault(group, []).append(name)
    return found


def tests_of(group):
    return groups()[group]


def common_tests():
    """The tests that any server with any number of members must pass."""
    return [name for group, names in groups().items() if group not in SPECIAL for name in names]


def run_side_by_side(file, classes):
    """Runs the tests of a file; without arguments, every class in a process of its own, because most of the time tests
    wait for servers, elections and leases."""
    names = [case.__name__ for case in classes]
    if any(argument.partition(".")[0] in names for argument in sys.argv[1:]):
        unittest.main()

    def run(name):
        return subprocess.run([sys.executable, file, "-v", name], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True)
    with concurrent.futures.ThreadPoolExecutor(AT_A_TIME) as pool:
        results = sorted(pool.map(run, names), key=lambda result: result.returncode)
    print("".join(result.stdout for result in results))
    sys.exit(any(result.returncode for result in results))
