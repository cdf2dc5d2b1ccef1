"""A Kubernetes API over TLS with a client certificate: that of Vigil, or a real kube-apiserver (tools/build-kube) on a real etcd."""
import http.client
import signal
import ssl
import subprocess
import time

from sidebyside import identity, servers

READY_SECONDS = 120


def make(name, programs, directory):
    return (Ours if name == "vigil" else Apiserver)(name, programs, directory)


class Secured(servers.Server):
    """A server whose Kubernetes API is used over TLS."""

    def __init__(self, name, programs, directory):
        super().__init__(name, programs, directory)
        self.own = identity.make(self.directory)

    def is_missing(self):
        """Whether there is no program to measure."""
        return False

    def words_of_bench(self, command, *flags):
        words = super().words_of_bench(command, *flags)
        if command.startswith("kube-"):
            words[words.index(self.kube_endpoint)] = f"https://{self.kube_endpoint}"
            words += ["--cacert", self.own.cert, "--cert", self.own.cert, "--key", self.own.key]
        return words


class Ours(Secured):
    def words(self):
        words = super().words()
        words[words.index(f"http://{self.kube_endpoint}")] = f"https://{self.kube_endpoint}"
        return words + ["--cert-file", self.own.cert, "--key-file", self.own.key, "--kube-client-ca-file", self.own.cert]


class Apiserver(Secured):
    """Its cost is that of the kube-apiserver and its etcd."""

    def __init__(self, name, programs, directory):
        super().__init__(name, programs, directory)
        self.apiserver = None

    def is_missing(self):
        return not self.programs.apiserver

    def start(self, *args, **flags):
        took = super().start(*args, **flags)
        host, port = self.kube_endpoint.split(":")
        words = [self.programs.apiserver, f"--etcd-servers=http://{self.endpoint}", f"--bind-address={host}", f"--secure-port={port}",
                 f"--tls-cert-file={self.own.cert}", f"--tls-private-key-file={self.own.key}", f"--client-ca-file={self.own.cert}",
                 "--service-account-issuer=https://kubernetes.default.svc", f"--service-account-key-file={self.own.cert}",
                 f"--service-account-signing-key-file={self.own.key}", "--service-cluster-ip-range=10.0.0.0/24",
                 "--advertise-address=127.0.0.1", "--authorization-mode=RBAC", "--disable-admission-plugins=ServiceAccount",
                 *self.kube_flags()]
        with open(self.directory / "apiserver.log", "ab") as log:
            self.apiserver = subprocess.Popen(words, stdout=log, stderr=log, env=servers.environment())
        self.await_ready(host, int(port))
        return took

    def kube_flags(self):
        """More flags of the kube-apiserver."""
        return []

    def await_ready(self, host, port):
        context = ssl.create_default_context(cafile=self.own.cert)
        context.load_cert_chain(self.own.cert, self.own.key)
        end = time.monotonic() + READY_SECONDS
        while True:
            try:
                connection = http.client.HTTPSConnection(host, port, context=context, timeout=10)
                connection.request("GET", "/readyz")
                if connection.getresponse().status == 200:
                    return
            except OSError:
                pass
            finally:
                connection.close()
            if self.apiserver.poll() is not None or time.monotonic() > end:
                raise servers.Failed("kube-apiserver does not become ready: "
                                     + (self.directory / "apiserver.log").read_text(errors="replace")[-1000:])
            time.sleep(0.2)

    def pids(self):
        return [*super().pids(), *([self.apiserver.pid] if self.apiserver else [])]

    def words_of_bench(self, command, *flags):
        words = super().words_of_bench(command, *flags)
        if command.startswith("kube-"):
            words[words.index("--server-pid") + 1] = str(self.apiserver.pid)
            words += ["--store-pid", str(self.process.pid)]
        return words

    def stop(self):
        if self.apiserver:
            self.apiserver.send_signal(signal.SIGTERM)
            try:
                self.apiserver.wait(servers.STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self.apiserver.kill()
                self.apiserver.wait()
            self.apiserver = None
        super().stop()
