"""A real kube-apiserver on a real etcd with the watch tier in front of it: the one is used directly under the name "etcd", the other
under the name "vigil". Users show tokens, and the CPU of each process is read while a load runs."""
import contextlib
import functools
import http.client
import json
import signal
import ssl
import subprocess
import threading
import time

from sidebyside import kube_peer, rule_rows, servers

ADMIN, TIER, USER, USERS = "the-token", "tier-token", "user-", 1000
SAMPLE_SECONDS = 0.1
CONFIGS = "/api/v1/namespaces/default/configmaps"
RIGHTS = "/apis/rbac.authorization.k8s.io/v1"


def cpu_seconds(pid):
    """Of all threads of a process, to the nanosecond: its CPU clock (see clock_getcpuclockid)."""
    return time.clock_gettime(~pid << 3 | 2)


class Sampler:
    """Reads numbers that grow now and then, such as the CPU of processes, so that they are known for any time on the way."""

    def __init__(self, sources, every):
        self.sources, self.every, self.rows, self.ended = sources, every, [], threading.Event()
        self.thread = threading.Thread(target=self.sample, daemon=True)

    def sample(self):
        while not self.ended.is_set():
            self.take()
            self.ended.wait(self.every)

    def take(self):
        self.rows.append((time.monotonic(), {name: read() for name, read in self.sources.items()}))

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.thread.join()
        self.take()

    def at(self, name, when):
        """On the line between the two samples around it."""
        for (before, earlier), (after, later) in zip(self.rows, self.rows[1:]):
            if after >= when:
                part = max(0.0, (when - before) / (after - before))
                return earlier[name] + part * (later[name] - earlier[name])
        return self.rows[-1][1][name]

    def between(self, start, end):
        return {name: self.at(name, end) - self.at(name, start) for name in self.sources}


class Tiered(kube_peer.Apiserver):
    def __init__(self, name, programs, directory):
        super().__init__("etcd", programs, directory)
        self.through = name == "vigil"
        self.tier = None
        self.tier_endpoint, self.tier_metrics = (f"127.0.0.1:{servers.free_port()}" for _ in range(2))

    def is_missing(self):
        return super().is_missing() or len(self.programs.command["vigil"]) < 2

    def kube_flags(self):
        """Tokens of an administrator, of the tier, and of users who may do to pods what the loads do. What the tier asks about pods and
        rights is written to the audit log: the kube-apiserver's metrics contain its own watches."""
        file = self.directory / "tokens.csv"
        users = "".join(f'{USER}{i:010},user-{i},user-{i},"bench:users"\n' for i in range(USERS))
        file.write_text(f'{ADMIN},admin,admin,"system:masters"\n{TIER},tier,tier,"system:masters"\n{users}')
        policy = self.directory / "audit.json"
        policy.write_text(json.dumps({
            "apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["ResponseStarted", "ResponseComplete", "Panic"],
            "rules": [{"level": "Metadata", "users": ["tier"], "resources": [
                {"group": "", "resources": ["pods"]}, {"group": "authorization.k8s.io"}, {"group": "authentication.k8s.io"}]},
                      {"level": "None"}]}))
        return [f"--token-auth-file={file}", f"--audit-policy-file={policy}", f"--audit-log-path={self.directory}/audit.log"]

    def requests_of_tier(self, verb):
        """About pods, with this verb, of those that the kube-apiserver has received."""
        found = map(json.loads, (self.directory / "audit.log").read_text().splitlines())
        return sum(one["verb"] == verb and one["objectRef"]["resource"] == "pods" for one in found)

    def reviews_of_tier(self):
        text = (self.directory / "audit.log").read_text()
        return sum(text.count(f'"resource":"{resource}"') for resource in ("subjectaccessreviews", "tokenreviews"))

    def start(self, *args, **flags):
        took = super().start(*args, **flags)
        self.grant()
        if self.through:
            self.start_tier()
        return took

    def grant(self):
        group = "rbac.authorization.k8s.io"
        meta = {"metadata": {"name": "bench"}}
        rule_rows.must(self, "POST", f"{RIGHTS}/clusterroles", {
            **meta, "rules": [{"apiGroups": [""], "resources": ["pods", "configmaps"],
                               "verbs": ["get", "list", "watch", "create", "update"]}]})
        rule_rows.must(self, "POST", f"{RIGHTS}/clusterrolebindings", {
            **meta, "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "bench"},
            "subjects": [{"apiGroup": group, "kind": "Group", "name": "bench:users"}]})
        # The kube-apiserver makes it a little later than it is ready.
        end = time.monotonic() + kube_peer.READY_SECONDS
        while rule_rows.call(self, "GET", "/api/v1/namespaces/default")[0] != 200:
            if time.monotonic() > end:
                raise servers.Failed("there is no namespace default")
            time.sleep(0.1)

    # -- The tier --

    def start_tier(self, *flags):
        config = self.directory / "kubeconfig"
        cluster = {"server": f"https://{self.kube_endpoint}", "certificate-authority": self.own.cert}
        config.write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "c", "clusters": [{"name": "c", "cluster": cluster}],
            "users": [{"name": "u", "user": {"token": TIER}}], "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}]}))
        words = [*self.programs.command["vigil"], "--data-dir", str(self.directory / "tier"), f"--upstream-kubeconfig={config}",
                 f"--listen-kube-urls=https://{self.tier_endpoint}", f"--listen-metrics-urls=http://{self.tier_metrics}",
                 f"--cert-file={self.own.cert}", f"--key-file={self.own.key}", f"--kube-client-ca-file={self.own.cert}", *flags]
        with open(self.directory / "log", "ab") as log:
            self.tier = subprocess.Popen(words, stdout=log, stderr=log, env=servers.environment())
        end = time.monotonic() + kube_peer.READY_SECONDS
        while self.tier_status("/readyz") != 200:
            if self.tier.poll() is not None or time.monotonic() > end:
                raise servers.Failed(f"the tier does not become ready: {self.log_tail()}")
            time.sleep(0.05)

    def tier_page(self, path):
        host, port = self.tier_metrics.split(":")
        with contextlib.closing(http.client.HTTPConnection(host, int(port), timeout=60)) as connection:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()

    def tier_status(self, path):
        try:
            return self.tier_page(path)[0]
        except OSError:
            return 0

    def tier_metric(self, name):
        """The sum of its rows."""
        return metric_sum(self.tier_page("/metrics")[1], name)

    def resident_bytes(self):
        with open(f"/proc/{self.tier.pid}/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * 4096

    # -- Processes --

    def by_name(self):
        return {"kube-apiserver": self.apiserver.pid, "etcd": self.process.pid, **({"tier": self.tier.pid} if self.tier else {})}

    def pids(self):
        return [*super().pids(), *([self.tier.pid] if self.tier else [])]

    def stop(self):
        if self.tier:
            self.tier.send_signal(signal.SIGTERM)
            try:
                self.tier.wait(servers.STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self.tier.kill()
                self.tier.wait()
            self.tier = None
        super().stop()

    # -- Loads --

    def prepare(self, pods, bytes_of_each, nodes):
        """Pods, past the tier."""
        return self.bench("kube-load", "--key-space", pods, "--value-size", bytes_of_each, "--nodes", nodes)

    def prepare_configs(self, configs, bytes_of_each):
        """ConfigMaps as the generator changes them, past the tier."""
        file = self.directory / "config.json"
        meta = {"name": "config-" + "0" * 10, "namespace": "default", "annotations": {"bench/sent": "0" * 20}}
        file.write_text(json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"text": "x" * bytes_of_each}}))
        return self.bench("kube-load", "--object", str(file), "--path", CONFIGS, "--key-space", configs)

    def load(self, through, command, *flags, reviews=False):
        """The generator with a user's token; cpu has the seconds of each process in the measured time, and if asked the tier's
        reviews."""
        endpoint = self.tier_endpoint if through else self.kube_endpoint
        words = [self.programs.generator, command, "--endpoint", f"https://{endpoint}", "--cacert", self.own.cert, "--json",
                 *map(str, flags)]
        if through:
            words += ["--server-pid", str(self.tier.pid)]
        sources = {name: functools.partial(cpu_seconds, pid) for name, pid in self.by_name().items()}
        if reviews:
            sources["reviews"] = self.reviews_of_tier
        with Sampler(sources, 1 if reviews else SAMPLE_SECONDS) as sampler:
            found = self.run(words)
        cpu = sampler.between(found["start_at_monotonic_ns"] / 1e9, found["end_at_monotonic_ns"] / 1e9)
        return {**found, "cpu": cpu}

    def caller(self, through):
        return Client(self.tier_endpoint if through else self.kube_endpoint, self.own.cert)


def metric_sum(text, name):
    rows = [line for line in text.splitlines() if line.startswith((f"{name} ", f"{name}{{"))]
    return sum(float(line.rsplit(" ", 1)[1]) for line in rows)


class Client:
    """The administrator on a connection that is kept."""

    def __init__(self, endpoint, authority):
        host, port = endpoint.split(":")
        self.connection = http.client.HTTPSConnection(host, int(port), context=ssl.create_default_context(cafile=authority), timeout=600)

    def send(self, method, path, body=None):
        headers = {"Authorization": f"Bearer {ADMIN}", **({"Content-Type": "application/json"} if body else {})}
        self.connection.request(method, path, body, headers)
        answer = self.connection.getresponse()
        return answer.status, answer.read()

    def get(self, path):
        status, text = self.send("GET", path)
        if status != 200:
            raise servers.Failed(f"GET {path}: {status} {text[:500]}")
        return text.decode()

    def close(self):
        self.connection.close()
