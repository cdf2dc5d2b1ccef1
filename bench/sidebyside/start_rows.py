"""What a start takes: of one server with both APIs, and of the pair that controller-runtime's envtest starts, Vigil under the
names etcd and kube-apiserver. Vigil alone."""
import http.client
import pathlib
import shutil
import ssl
import subprocess
import time

from sidebyside import servers

READY_SECONDS = 60
POLL_SECONDS = 0.001
IDLE_SECONDS = 1


def cpu_ms(pid):
    """The processor time of all threads. /proc/PID/stat has it in units of 10 ms only."""
    tasks = pathlib.Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(task.read_text().split()[0]) for task in tasks) / 1e6


def resident_mb(pid):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024 / 1e6
    raise servers.Failed("this kernel does not tell resident memory")


def answers(endpoint, path, context):
    """Whether it answers with 200. context: None, or that of TLS."""
    host, port = endpoint.split(":")
    connection = http.client.HTTPSConnection(host, int(port), context=context, timeout=READY_SECONDS) if context else \
        http.client.HTTPConnection(host, int(port), timeout=READY_SECONDS)
    try:
        connection.request("GET", path)
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()


def await_ready(process, endpoint, path, context=None):
    end = time.monotonic() + READY_SECONDS
    while not answers(endpoint, path, context):
        if process.poll() is not None or time.monotonic() > end:
            raise servers.Failed(f"{endpoint} does not become ready")
        time.sleep(POLL_SECONDS)


def begin(server, words, name):
    with open(server.directory / name, "ab") as log:
        return subprocess.Popen([str(word) for word in words], stdout=log, stderr=log, env=servers.environment())


def one(server):
    """From the start of the process to the first answer of /readyz, from an empty directory."""
    if server.name != "vigil":
        return {}
    began = time.monotonic()
    server.process = begin(server, server.words(), "log")
    await_ready(server.process, server.kube_endpoint, "/readyz")
    found = {"start.readyz_ms": (time.monotonic() - began) * 1e3, "start.cpu_ms": cpu_ms(server.process.pid)}
    time.sleep(IDLE_SECONDS)
    return {**found, "start.resident_mb": resident_mb(server.process.pid)}


def make_identity(directory):
    """The files that envtest makes; one key for all of them is enough here."""
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-keyout", directory / "apiserver.key",
                    "-out", directory / "apiserver.crt", "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"],
                   check=True, stderr=subprocess.DEVNULL)
    for name in ("client-cert-auth-ca.crt", "sa-signer.crt", "sa-signer.key"):
        shutil.copy(directory / f"apiserver{pathlib.Path(name).suffix}", directory / name)


def pair(server):
    """From the start of etcd to the first answer of kube-apiserver's /healthz, which is started when the first is healthy."""
    if server.name != "vigil":
        return {}
    assets, certificates = server.directory / "assets", server.directory / "certificates"
    certificates.mkdir()
    make_identity(certificates)
    servers.run_tool([server.programs.command["vigil"][0], "assets", str(assets)])
    host, port = server.kube_endpoint.split(":")
    began = time.monotonic()
    server.process = begin(server, [
        assets / "etcd", f"--advertise-client-urls=http://{server.endpoint}", f"--data-dir={server.directory / 'data'}",
        f"--listen-client-urls=http://{server.endpoint}", f"--listen-peer-urls={server.peer_url}", "--unsafe-no-fsync=true"], "log")
    await_ready(server.process, server.endpoint, "/health")
    apiserver = begin(server, [
        assets / "kube-apiserver", "--allow-privileged=true", "--authorization-mode=RBAC", f"--bind-address={host}",
        f"--cert-dir={certificates}", f"--client-ca-file={certificates}/client-cert-auth-ca.crt",
        "--disable-admission-plugins=ServiceAccount", f"--etcd-servers=http://{server.endpoint}", f"--secure-port={port}",
        f"--service-account-issuer=https://{server.kube_endpoint}/", f"--service-account-key-file={certificates}/sa-signer.crt",
        f"--service-account-signing-key-file={certificates}/sa-signer.key", "--service-cluster-ip-range=10.0.0.0/24"], "apiserver.log")
    try:
        await_ready(apiserver, server.kube_endpoint, "/healthz", ssl.create_default_context(cafile=certificates / "apiserver.crt"))
        found = {"pair.ready_ms": (time.monotonic() - began) * 1e3,
                 "pair.cpu_ms": cpu_ms(server.process.pid) + cpu_ms(apiserver.pid)}
        time.sleep(IDLE_SECONDS)
        return {**found, "pair.resident_mb": resident_mb(server.process.pid) + resident_mb(apiserver.pid)}
    finally:
        apiserver.terminate()
        apiserver.wait()
