"""Three members of a real etcd on this machine, and what is in front of them: nothing, etcd's grpc-proxy, or Vigil."""
import contextlib
import dataclasses
import pathlib
import re
import shutil
import subprocess
import urllib.request

from sidebyside import servers

MEMBERS = 3


class Member(servers.Server):
    def __init__(self, programs, directory, index):
        super().__init__("etcd", programs, pathlib.Path(directory) / f"m{index}")
        self.title = f"m{index}"
        self.others = []  # all members, this one included

    def words(self):
        url = f"http://{self.endpoint}"
        cluster = ",".join(f"{member.title}={member.peer_url}" for member in self.others)
        return [*self.programs.command["etcd"], "--name", self.title, "--data-dir", str(self.directory / "data"),
                "--listen-client-urls", url, "--advertise-client-urls", url, "--listen-peer-urls", self.peer_url,
                "--initial-advertise-peer-urls", self.peer_url, "--initial-cluster", cluster, "--log-level", "error",
                "--quota-backend-bytes", str(8 << 30), *self.flags]

    def begin(self):
        """Starts the process; a member alone does not become ready."""
        with open(self.directory / "log", "ab") as log:
            self.process = subprocess.Popen(self.words(), stdout=log, stderr=log, env=servers.environment())


class Proxy(servers.Server):
    """etcd's own proxy."""

    def __init__(self, programs, directory, endpoints):
        super().__init__("etcd", programs, directory)
        self.endpoints = endpoints

    def words(self):
        return [*self.programs.command["etcd"], "grpc-proxy", "start", "--endpoints", ",".join(self.endpoints),
                "--listen-addr", self.endpoint, "--advertise-client-url", self.endpoint, "--data-dir",
                str(self.directory / "data")]


class Front(servers.Server):
    """Vigil in front of the members."""

    def __init__(self, programs, directory, endpoints):
        super().__init__("vigil", programs, directory)
        self.flags = ["--upstream-endpoints", ",".join(endpoints)]


class Cluster:
    """Use as a context. A row uses `vigil` in rounds of Vigil, and `direct` (the first member) and `proxy` in those of
    etcd; `other` is what this round has in front of the members."""

    def __init__(self, name, programs, directory):
        self.name, self.directory = name, pathlib.Path(directory)
        shutil.rmtree(self.directory, ignore_errors=True)
        self.directory.mkdir(parents=True, mode=0o700)
        self.members = [Member(programs, self.directory, i) for i in range(MEMBERS)]
        for member in self.members:
            member.others = self.members
        endpoints = [f"http://{member.endpoint}" for member in self.members]
        self.direct = self.members[0]
        self.vigil = Front(programs, self.directory / "vigil", endpoints)
        self.proxy = Proxy(programs, self.directory / "proxy", [member.endpoint for member in self.members])

    def use(self, etcd):
        """Members of another version than the one that is compared with."""
        for member in self.members:
            member.programs = dataclasses.replace(member.programs, command={**member.programs.command, "etcd": [etcd]})

    def start_members(self):
        for member in self.members:
            member.begin()
        for member in self.members:
            member.bench("ready", "--duration", "60s", "--value-size", 0)

    def start(self):
        """Members, and what this round measures beside the members themselves."""
        self.start_members()
        self.other.start()

    @property
    def other(self):
        return self.vigil if self.name == "vigil" else self.proxy

    def members_cpu(self):
        return sum(servers.used_seconds(member.process.pid) for member in self.members)

    def members_calls(self, method):
        """How many calls of a method the members have handled."""
        total = 0
        pattern = re.compile(rf'^grpc_server_handled_total\{{.*grpc_method="{method}".*\}} (\S+)$', re.M)
        for member in self.members:
            with urllib.request.urlopen(f"http://{member.endpoint}/metrics", timeout=10) as page:
                total += sum(float(value) for value in pattern.findall(page.read().decode()))
        return total

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for server in (self.vigil, self.proxy, *self.members):
            if server.process:
                server.process.kill()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    server.process.wait(servers.STOP_SECONDS)
                server.process = None
        shutil.rmtree(self.directory, ignore_errors=True)
