"""A control plane: an API server and its store, a real kube-controller-manager and kube-scheduler, and stubs of kubelets
(kubelet/). The API server is either a real kube-apiserver on a real etcd, or Vigil; the rest is the same."""
import json
import os
import pathlib
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests/live"))
sys.path.insert(0, str(ROOT / "tests/kube"))
from certs import Authority  # noqa: E402
from same_writes_test import Client  # noqa: E402
from server import PEER, SUBJECT, free_port  # noqa: E402
from tier import write_kubeconfig  # noqa: E402

KUBE = pathlib.Path(os.environ.get("VIGIL_KUBE", ROOT / "build/kube"))
START_SECONDS = 180
STOP_SECONDS = 60
TOKEN = "the-token"
# Objects of the start that the controllers need; a kube-apiserver creates them a while after it is ready.
PRESENT = ["/api/v1/namespaces/default", "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication",
           "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/system:kube-scheduler",
           "/apis/rbac.authorization.k8s.io/v1/namespaces/kube-system/rolebindings/system::extension-apiserver-authentication-reader"]


def build_kubelet(directory):
    """Compiles the stub and returns its path."""
    path = pathlib.Path(directory, "kubelet")
    # With the flags of tools/build-kube, most of it is in Go's cache.
    subprocess.run(["go", "build", "-trimpath", "-ldflags=-s -w", "-o", str(path), "./controllers/kubelet"],
                   cwd=ROOT / "tests/kube", check=True,
                   env=dict(os.environ, PATH=os.environ["PATH"] + ":/usr/local/go/bin"))
    return path


class Program:
    """A process whose output goes to a file."""

    def __init__(self, name, log, command):
        self.name, self.log = name, pathlib.Path(log)
        with open(self.log, "wb") as output:
            self.process = subprocess.Popen([str(word) for word in command], stdin=subprocess.PIPE, stdout=output,
                                            stderr=subprocess.STDOUT, start_new_session=True)

    def text(self):
        return self.log.read_text(errors="replace")

    def alive(self):
        return self.process.poll() is None

    def stop(self):
        self.process.stdin.close()
        self.process.terminate()
        try:
            self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class Identities:
    """Keys and certificates that control planes share, so that what depends on them is the same on all."""

    def __init__(self, directory):
        self.directory = pathlib.Path(directory)
        self.authority = Authority(self.directory)
        self.server = self.authority.sign("apiserver")
        self.admin = self.authority.sign("admin", groups=["system:masters"])
        self.manager = self.authority.sign("system:kube-controller-manager")
        self.scheduler = self.authority.sign("system:kube-scheduler")
        self.accounts = self.directory / "accounts.key"
        subprocess.run(["openssl", "genrsa", "-out", str(self.accounts), "2048"], check=True, capture_output=True)
        self.tokens = self.directory / "tokens.csv"
        self.tokens.write_text(f"{TOKEN},admin,admin,system:masters\n")


class Plane:
    """One control plane. what: "real", "pair" (Vigil under the names kube-apiserver and etcd), "vigil" (one process) or "tier"
    (a real one behind a watch tier, which everything here uses)."""

    def __init__(self, what, directory, identities, kubelet, store_flags=("--unsafe-no-fsync=true",), flags=()):
        self.what, self.identities, self.kubelet_path = what, identities, kubelet
        self.store_flags, self.flags = store_flags, flags
        self.directory = pathlib.Path(directory)
        self.directory.mkdir(parents=True)
        self.port = free_port()
        self.behind_port = free_port() if what == "tier" else self.port
        self.url = f"https://127.0.0.1:{self.port}"
        self.programs = {}
        self.client = Client(self.url, TOKEN)

    def begin(self, name, command):
        self.programs[name] = Program(name, self.directory / f"{name}.log", command)
        return self.programs[name]

    def config(self, identity, name):
        """Writes a kubeconfig for the identity."""
        path = self.directory / f"{name}.kubeconfig"
        path.write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "here",
            "clusters": [{"name": "here", "cluster": {
                "server": self.url, "certificate-authority": self.identities.authority.cert}}],
            "users": [{"name": "me", "user": {"client-certificate": identity.cert, "client-key": identity.key}}],
            "contexts": [{"name": "here", "context": {"cluster": "here", "user": "me"}}],
        }))
        return path

    # -- The API server --

    def start_etcd(self, program):
        port = free_port()
        url, peer = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{free_port()}"
        self.begin("etcd", [program, "--data-dir", self.directory / "etcd", "--listen-client-urls", url,
                            "--advertise-client-urls", url, "--listen-peer-urls", peer, *self.store_flags,
                            *([] if self.what == "pair" else [
                                "--initial-advertise-peer-urls", peer, "--initial-cluster", f"default={peer}"])])
        return url

    def apiserver_flags(self, etcd):
        i = self.identities
        return [f"--etcd-servers={etcd}", "--bind-address=127.0.0.1", f"--secure-port={self.behind_port}",
                f"--cert-dir={self.directory}", f"--client-ca-file={i.authority.cert}", f"--tls-cert-file={i.server.cert}",
                f"--tls-private-key-file={i.server.key}", f"--token-auth-file={i.tokens}",
                "--service-account-issuer=https://kubernetes.default.svc", f"--service-account-key-file={i.accounts}",
                f"--service-account-signing-key-file={i.accounts}", "--service-cluster-ip-range=10.0.0.0/16",
                "--advertise-address=192.0.2.1", "--authorization-mode=Node,RBAC", "--allow-privileged=true",
                *self.flags]

    def vigil_flags(self):
        i = self.identities
        return ["serve", f"--data-dir={self.directory}/data", "--listen-client-urls=", f"--listen-kube-urls={self.url}",
                f"--kube-client-ca-file={i.authority.cert}", f"--cert-file={i.server.cert}", f"--key-file={i.server.key}",
                f"--kube-token-file={i.tokens}", "--kube-service-account-issuer=https://kubernetes.default.svc",
                f"--kube-service-account-key-file={i.accounts}", f"--kube-service-account-signing-key-file={i.accounts}",
                "--kube-service-cluster-ip-range=10.0.0.0/16", "--kube-advertise-address=192.0.2.1",
                "--kube-authorization-mode=Node,RBAC", *self.store_flags]

    def tier_flags(self):
        """The tier's own account is an administrator, who may also impersonate the clients with certificates."""
        i = self.identities
        config = write_kubeconfig(self.directory / "tier.kubeconfig", f"https://127.0.0.1:{self.behind_port}", token=TOKEN)
        return ["serve", f"--data-dir={self.directory}/tier", f"--upstream-kubeconfig={config}", f"--listen-kube-urls={self.url}",
                f"--kube-client-ca-file={i.authority.cert}", f"--cert-file={i.server.cert}", f"--key-file={i.server.key}"]

    def start_apiserver(self):
        if self.what == "vigil":
            self.begin("apiserver", [SUBJECT, *self.vigil_flags()])
        elif self.what == "pair":
            links = self.directory / "assets"
            subprocess.run([SUBJECT, "assets", str(links)], check=True, stdout=subprocess.DEVNULL)
            self.begin("apiserver", [links / "kube-apiserver", *self.apiserver_flags(self.start_etcd(links / "etcd"))])
        else:
            self.begin("apiserver", [KUBE / "kube-apiserver", *self.apiserver_flags(self.start_etcd(PEER))])
        if self.what == "tier":
            self.begin("tier", [SUBJECT, *self.tier_flags()])
        self.wait_for("the API server", self.is_ready)

    def is_ready(self):
        try:
            return all(self.client.send("GET", path)[0] == 200 for path in PRESENT)
        except (OSError, ValueError):
            return False

    # -- Its clients --

    def start_controllers(self, manager_flags=(), scheduler_flags=()):
        i = self.identities
        config = self.config(i.manager, "manager")
        (self.directory / "flex").mkdir()
        self.begin("manager", [
            KUBE / "kube-controller-manager", f"--kubeconfig={config}", f"--authentication-kubeconfig={config}",
            f"--authorization-kubeconfig={config}", "--bind-address=127.0.0.1", f"--secure-port={free_port()}",
            f"--cert-dir={self.directory}/manager", f"--root-ca-file={i.authority.cert}",
            f"--service-account-private-key-file={i.accounts}", "--use-service-account-credentials=true",
            f"--cluster-signing-cert-file={i.authority.cert}", f"--cluster-signing-key-file={i.authority.key}",
            "--allocate-node-cidrs=true", "--cluster-cidr=10.128.0.0/9", "--service-cluster-ip-range=10.0.0.0/16",
            f"--flex-volume-plugin-dir={self.directory}/flex", *manager_flags])
        config = self.config(i.scheduler, "scheduler")
        self.begin("scheduler", [
            KUBE / "kube-scheduler", f"--kubeconfig={config}", f"--authentication-kubeconfig={config}",
            f"--authorization-kubeconfig={config}", "--bind-address=127.0.0.1", f"--secure-port={free_port()}",
            f"--cert-dir={self.directory}/scheduler", *scheduler_flags])

    def start_kubelets(self, count):
        """Registers nodes; returns when they exist."""
        kubelet = self.begin("kubelet", [self.kubelet_path, f"-kubeconfig={self.config(self.identities.admin, 'admin')}",
                                         f"-nodes={count}"])
        self.wait_for("the nodes", lambda: "registered" in kubelet.text())

    def wait_for(self, what, ready, seconds=START_SECONDS):
        end = time.monotonic() + seconds
        while not ready():
            for program in self.programs.values():
                if not program.alive():
                    raise AssertionError(f"{self.what}: {program.name} ended:\n{program.text()[-6000:]}")
            if time.monotonic() > end:
                raise AssertionError(f"{self.what}: {what} not there after {seconds} s:\n" + "".join(
                    f"-- {p.name}\n{p.text()[-3000:]}\n" for p in self.programs.values()))
            time.sleep(0.1)

    def ended(self):
        """The names of programs that do not run any more."""
        return [name for name, program in self.programs.items() if not program.alive()]

    def stop(self):
        for program in reversed(self.programs.values()):
            program.stop()
