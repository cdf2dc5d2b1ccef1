"""The two servers: found or built, started fresh, stopped by their own process id."""
import dataclasses
import json
import os
import pathlib
import resource
import shutil
import signal
import socket
import subprocess
import time

from sidebyside import compaction, identity

NAMES = ["vigil", "etcd"]
STOP_SECONDS = 120  # a clean stop writes the checkpoint of everything
TICKS_SECONDS = 0.06  # the system counts six kinds of CPU time in ticks of 10 ms
KTHREADD = 2  # the parent of all threads of the kernel
CALL_SECONDS = 900  # an etcd takes 10,000,000 puts in about eight minutes


class Failed(Exception):
    """A sentence for the person who runs the benchmark."""


@dataclasses.dataclass
class Programs:
    command: dict    # name -> the words that start the server
    generator: str  # vigil-bench
    client: dict     # "vigil": a program that uses libvigil, "etcd": the same with clientv3
    kube_client: dict  # the same with libvigil-kube and client-go
    libraries: list  # libvigil.so and libvigil-kube.so
    embedded: str = ""  # bench/embedded; None: it could not be built
    apiserver: str = ""  # a real kube-apiserver; "": there is none
    expressions: dict = dataclasses.field(default_factory=dict)  # "vigil": cel_bench, "etcd": the same with cel-go
    rules: dict = dataclasses.field(default_factory=dict)  # "vigil": rules_bench, "etcd": the same with Kubernetes' library
    webhook: str = ""  # bench/clients/webhook; None: it could not be built
    root: pathlib.Path = pathlib.Path()  # the source


def find(root, args):
    vigil = args.vigil or str(root / "build/vigil")
    if not args.vigil and not args.peer_as_vigil and not os.access(vigil, os.X_OK):
        run_tool(["make", "-C", str(root), "build"])
    peer = args.peer or build_peer(root)
    command = {"vigil": [peer] if args.peer_as_vigil else [vigil, "serve"], "etcd": [peer]}
    generator = args.generator or str(root / "build/vigil-bench")
    for words in [*command.values(), [generator]]:
        if not os.access(words[0], os.X_OK):
            raise Failed(f"{words[0]} does not exist or cannot be run")
    client = {"vigil": build_client(root, "libvigil_bench"),
              "etcd": build_client_of_peer(root, "clientv3")}
    kube_client = {"vigil": build_client(root, "libvigil_kube_bench"),
                   "etcd": build_client_of_peer(root, "client-go")}
    return Programs(command, generator, client, kube_client,
                    [root / f"build/{name}.so.1" for name in ("libvigil", "libvigil-kube")],
                    build_client(root, "embedded_bench"), find_apiserver(root),
                    {"vigil": build_client(root, "cel_bench", "build/unit"), "etcd": build_client_of_peer(root, "celgo")},
                    {"vigil": build_client(root, "rules_bench", "build/unit"), "etcd": build_client_of_peer(root, "kuberules")},
                    build_client_of_peer(root, "webhook"), root)


def find_apiserver(root):
    """Building it takes a quarter of an hour, so it is only used where tools/build-kube has made it."""
    path = str(root / "build/kube/kube-apiserver")
    return path if os.access(path, os.X_OK) else ""


def run_tool(words):
    done = subprocess.run(words, stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise Failed(f"{' '.join(words)} failed")
    return done.stdout.strip()


def build_peer(root):
    """The pinned release where a Go toolchain and its modules are at hand, else Debian's."""
    try:
        return run_tool([str(root / "tools/build-peer")]).splitlines()[-1]
    except (Failed, OSError, IndexError):
        debian = shutil.which("etcd")
        if not debian:
            raise Failed("no etcd to compare with: tools/build-peer failed, and Debian's "
                         "etcd-server is not installed")
        return debian


def build_client(root, program, folder="build"):
    """None where it cannot be built: then the rows that need it fail, and the others do not."""
    try:
        run_tool(["ninja", "-C", str(root / "build"), program])
    except (Failed, OSError):
        return None
    return str(root / folder / program)


def build_client_of_peer(root, folder):
    """The same without a Go toolchain. Nothing is compiled unless something has changed."""
    program = root / f"build/peer/{folder}_bench"
    program.parent.mkdir(parents=True, exist_ok=True)
    path = os.environ["PATH"] + ":/usr/local/go/bin"
    try:
        subprocess.run(["go", "build", "-ldflags", "-s -w", "-o", str(program), "."], check=True,
                       cwd=root / "bench/clients" / folder,
                       env={**os.environ, "CGO_ENABLED": "0", "PATH": path})
    except (OSError, subprocess.CalledProcessError):
        return None
    return str(program)


def machine_cpu_seconds():
    """Busy time of all cores, time stolen by other guests included."""
    fields = pathlib.Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
    user, nice, system, _idle, _iowait, irq, softirq, steal = map(int, fields[:8])
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


def parent_and_seconds(pid):
    """The process that started this one, and the CPU that this one has used."""
    stat = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return int(stat[1]), (int(stat[11]) + int(stat[12])) / os.sysconf("SC_CLK_TCK")


def used_seconds(pid):
    return parent_and_seconds(pid)[1]


def own_cpu_seconds(pids):
    """This script's, its ended children's (the generator) and the server's."""
    total = sum(used_seconds(pid) for pid in pids)
    for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN):
        usage = resource.getrusage(who)
        total += usage.ru_utime + usage.ru_stime
    return total


def kernel_cpu_seconds():
    """Of the kernel's threads: what they write to the disk is for the server."""
    total = 0.0
    for directory in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            parent, seconds = parent_and_seconds(directory.name)
        except OSError:
            continue  # it has ended
        total += seconds if parent == KTHREADD else 0.0
    return total


def other_cpu_seconds(pids):
    """Of processes that are not part of the measurement."""
    return machine_cpu_seconds() - own_cpu_seconds(pids) - kernel_cpu_seconds()


def environment():
    """Ours, without what either server would read as its flags."""
    return {name: value for name, value in os.environ.items()
            if not name.startswith(("ETCD_", "VIGIL_"))}


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    """One process on a data directory of its own. Use as a context: it is stopped on the way out."""

    def __init__(self, name, programs, directory, keep=False, client=""):
        self.name, self.programs, self.directory = name, programs, pathlib.Path(directory)
        self.client = client  # whose client uses it, in a row that compares clients
        self.endpoint = f"127.0.0.1:{free_port()}"
        self.peer_url = f"http://127.0.0.1:{free_port()}"
        self.kube_endpoint = f"127.0.0.1:{free_port()}"  # of Vigil
        self.tls_endpoint = f"127.0.0.1:{free_port()}"
        self.tls, self.own = False, None  # served there, with this identity
        self.process = None
        self.beside = []  # ids of processes that it works with, whose cost is not its own
        self.flags = []  # more of them, for the next start
        if not keep:
            shutil.rmtree(self.directory, ignore_errors=True)
            self.directory.mkdir(parents=True, mode=0o700)

    def words(self):
        url = f"http://{self.endpoint}"
        listen = url + (f",https://{self.tls_endpoint}" if self.tls else "")
        words = self.programs.command[self.name] + [
            "--data-dir", str(self.directory / "data"),
            "--listen-client-urls", listen, "--advertise-client-urls", url, *self.flags]
        if words[1] != "serve":
            words += ["--listen-peer-urls", self.peer_url,
                      "--initial-advertise-peer-urls", self.peer_url,
                      "--initial-cluster", f"default={self.peer_url}", "--log-level", "error"]
        else:
            words += ["--listen-kube-urls", f"http://{self.kube_endpoint}"]
        return words

    def secure(self):
        """From the next start on, clients are served over TLS, too."""
        self.tls = True
        self.own = identity.make(self.directory)
        self.flags += ["--cert-file", self.own.cert, "--key-file", self.own.key]

    def pids(self):
        """All processes that serve."""
        return [self.process.pid]

    def start(self, prefix="bench/", value_size=0):
        """Returns the seconds until a get succeeded."""
        with open(self.directory / "log", "ab") as log:
            began = time.monotonic_ns()
            self.process = subprocess.Popen(self.words(), stdout=log, stderr=log, env=environment())
        found = self.bench("ready", "--duration", "60s", "--prefix", prefix,
                           "--value-size", value_size)
        return (found["ready_at_monotonic_ns"] - began) / 1e9

    def stop(self):
        if self.process is None:
            return
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process = None

    def words_of_bench(self, command, *flags):
        endpoint = self.kube_endpoint if command.startswith("kube-") else self.endpoint
        return [self.programs.generator, command, "--endpoint", endpoint, "--server-pid", str(self.process.pid), "--json",
                *map(str, flags)]

    def bench(self, command, *flags):
        """Runs the generator against this server and returns what it found. other_cores is the
        work of other processes meanwhile: with more than a little of it the numbers mean nothing."""
        return self.run(self.words_of_bench(command, *flags))

    def bench_tls(self, command, *flags):
        """The same over TLS."""
        words = self.words_of_bench(command, *flags)
        words[words.index(self.endpoint)] = f"https://{self.tls_endpoint}"
        return self.run([*words, "--cacert", self.own.cert])

    def client_bench(self, work, *counts):
        """Runs the client's program against this server and returns what it found."""
        return self.run([self.client_program(self.programs.client), self.endpoint, work,
                         *map(str, counts)])

    def kube_client_bench(self, work, count):
        """The same for the clients of Kubernetes."""
        return self.run([self.client_program(self.programs.kube_client),
                         f"http://{self.kube_endpoint}", work, str(count)])

    def kube_catch_up(self, count, change):
        """A client of Kubernetes has count objects in its informer and is then stopped (SIGSTOP)
        while change() makes changes and returns their number; what it takes to process them."""
        words = [self.client_program(self.programs.kube_client), f"http://{self.kube_endpoint}",
                 "catchup", str(count)]
        with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              text=True) as client:
            try:
                if client.stdout.readline() != "ready\n":
                    raise Failed(f"{' '.join(words)} failed")
                client.send_signal(signal.SIGSTOP)
                changes = change()
                client.send_signal(signal.SIGCONT)
                output, _ = client.communicate(f"{changes}\n", timeout=CALL_SECONDS)
            except subprocess.TimeoutExpired:
                raise Failed(f"{' '.join(words)} did not end in {CALL_SECONDS} s")
            finally:
                client.kill()
        return json.loads(output)

    def client_program(self, programs):
        if not programs[self.client]:
            raise Failed(f"the program that uses the client of {self.client} could not be built")
        return programs[self.client]

    def run(self, words):
        began = time.monotonic()
        busy = other_cpu_seconds(self.pids() + self.beside)
        try:
            done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                  timeout=CALL_SECONDS)
        except subprocess.TimeoutExpired:
            raise Failed(f"{self.name}: {' '.join(words)} did not end in {CALL_SECONDS} s")
        if done.returncode != 0:
            raise Failed(f"{self.name}: {done.stderr.strip()}\n{self.log_tail()}")
        busy = other_cpu_seconds(self.pids() + self.beside) - busy
        other_cores = max(0.0, (busy - TICKS_SECONDS) / (time.monotonic() - began))
        return {**json.loads(done.stdout), "other_cores": other_cores}

    def stripped_libraries_kb(self):
        """Of libvigil, and of libvigil-kube."""
        sizes, stripped = [], self.directory / "stripped"
        for library in self.programs.libraries:
            run_tool(["strip", "-o", str(stripped), str(library)])
            sizes.append(stripped.stat().st_size / 1024)
        return sizes

    def compaction(self, burst, cost_us):
        """What one takes while burst() is run again and again: see compaction.py."""
        return compaction.measure(self, burst, cost_us)

    def disk_has(self, size):
        return shutil.disk_usage(self.directory).free >= size

    def anonymous_mb(self):
        for line in pathlib.Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("RssAnon:"):
                return int(line.split()[1]) * 1024 / 1e6
        raise Failed("this kernel does not tell anonymous memory")

    def log_tail(self):
        lines = (self.directory / "log").read_text(errors="replace").splitlines()
        return "\n".join(lines[-5:])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
        shutil.rmtree(self.directory, ignore_errors=True)
