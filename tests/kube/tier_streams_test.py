#!/usr/bin/python3
"""kubectl with what lasts: exec, attach, cp, port-forward and logs of a stand-in of a kubelet (tests/kube/goclients/kubelet), proxy,
and commands that wait for changes. Each runs on a kube-apiserver and through a watch tier in front of it, with the same result.
tier_kubectl_test.py has the other commands."""
import base64
import contextlib
import hashlib
import http.client
import json
import os
import pathlib
import pty
import re
import select
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/live"))
sys.path.insert(0, str(ROOT / "tests/kube"))
import same_kubectl_test  # noqa: E402
from apiserver_test import KUBE, READY_SECONDS, WAIT_SECONDS, Apiserver  # noqa: E402
from certs import Authority, openssl  # noqa: E402
from server import Server  # noqa: E402
from tier import Caller, Tier  # noqa: E402

MERGE = {"Content-Type": "application/merge-patch+json"}
MEGABYTES = bytes(range(256)) * (5 << 12)  # 5 MB
# The two ways in which kubectl upgrades connections.
PROTOCOLS = {"websocket": {"KUBECTL_REMOTE_COMMAND_WEBSOCKETS": "true", "KUBECTL_PORT_FORWARD_WEBSOCKETS": "true"},
             "spdy": {"KUBECTL_REMOTE_COMMAND_WEBSOCKETS": "false", "KUBECTL_PORT_FORWARD_WEBSOCKETS": "false"}}
# Commands without a server.
OWN = ("completion", "config", "kuberc", "kustomize", "plugin")
VERBS_HERE = ("api-versions", "attach", "certificate", "cluster-info", "cp", "drain", "exec", "get", "logs", "port-forward", "proxy",
              "rollout", "run", "wait")


def build(root):
    program = root / "kubelet"
    subprocess.run(["go", "build", "-trimpath", "-ldflags=-s -w", "-o", str(program), "./kubelet"], cwd=ROOT / "tests/kube/goclients",
                   check=True, env=dict(os.environ, PATH=os.environ["PATH"] + ":/usr/local/go/bin"))
    return program


class Kubelet:
    def __init__(self, program, identity, folder):
        folder.mkdir()
        self.process = subprocess.Popen([str(program), identity.cert, identity.key, str(folder)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.port = int(self.process.stdout.readline())

    def wait_left(self, pod):
        """Waits until the client of a followed log has left."""
        assert select.select([self.process.stdout], [], [], WAIT_SECONDS)[0], "the client is still there"
        assert self.process.stdout.readline() == f"left {pod}\n"

    def stop(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


class Side:
    """kubectl on one of the two, in a namespace of its own."""

    def __init__(self, name, url, root, identity):
        self.name, self.url, self.root, self.identity = name, url, root, identity

    def command(self, *words, user="admin"):
        users = {"admin": ["--token=the-token"], "jane": ["--token=weak-token"],
                 "chief": [f"--client-certificate={self.identity.cert}", f"--client-key={self.identity.key}"]}
        return [str(KUBE / "kubectl"), f"--server={self.url}", "--insecure-skip-tls-verify", f"--cache-dir={self.root}/cache-{self.name}",
                "-n", self.name, *users[user], *words]

    def env(self, more):
        return {**os.environ, "KUBECONFIG": "/dev/null", "HOME": str(self.root), **more}

    def start(self, *words, env=(), user="admin", **options):
        return subprocess.Popen(self.command(*words, user=user), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                env=self.env(dict(env)), bufsize=0, **options)

    def run(self, *words, given=b"", env=(), user="admin"):
        """Returns the exit code, the output or its length and digest, and the errors."""
        done = subprocess.run(self.command(*words, user=user), input=given, capture_output=True, check=False, timeout=2 * WAIT_SECONDS,
                              env=self.env(dict(env)))
        out = done.stdout
        text = f"{len(out)} {hashlib.sha256(out).hexdigest()}" if len(out) > 20_000 else self.same(out.decode())
        return done.returncode, text, self.same(done.stderr.decode())

    def same(self, text):
        """The text without the name of the side, and what differs between runs."""
        text = re.sub(r"\x1b\[[\d;]*m", "", same_kubectl_test.seen(text.replace(self.name, "SIDE")))
        return re.sub(r"node-debugger-n1-\w+", "DEBUGGER", re.sub(r"eyJ[\w.-]+", "TOKEN", text))


class Streams(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        scratch = tempfile.TemporaryDirectory(prefix="vigil-streams-")
        cls.addClassCleanup(scratch.cleanup)
        cls.root = pathlib.Path(scratch.name)
        backend = Server(str(cls.root / "backend"))
        backend.start()
        cls.addClassCleanup(backend.stop)
        authority = Authority(cls.root / "direct")
        cls.kubelet = Kubelet(build(cls.root), authority.sign("kubelet"), cls.root / "container")
        cls.addClassCleanup(cls.kubelet.stop)
        apiserver = Apiserver(cls.root, backend.url, (f"--client-ca-file={authority.cert}", "--event-ttl=1h"))
        cls.addClassCleanup(apiserver.stop)
        apiserver.wait_ready()
        tier = Tier(cls.root, f"https://127.0.0.1:{apiserver.port}")
        tier.start()
        cls.addClassCleanup(tier.stop)
        cls.admin = Caller(apiserver.port, "the-token")
        cls.sides = [Side(name, url, cls.root, signer.sign("chief", groups=["system:masters"])) for name, url, signer in (
            ("straight", f"https://127.0.0.1:{apiserver.port}", authority), ("bytier", tier.url, tier.authority))]
        cls.prepare()

    @classmethod
    def send(cls, method, path, body, headers=()):
        status, answer = cls.admin.send(method, path, body, headers)
        assert status in (200, 201), (path, answer)
        return answer

    @classmethod
    def prepare(cls):
        cls.send("POST", "/api/v1/nodes", {"metadata": {"name": "n1"}})
        cls.send("PATCH", "/api/v1/nodes/n1/status", {"status": {
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": cls.kubelet.port}}}}, MERGE)
        for side in cls.sides:
            cls.send("POST", "/api/v1/namespaces", {"metadata": {"name": side.name}})
            cls.make_pod(side, "pod", "one", "two", "long")

    @classmethod
    def make_pod(cls, side, name, *containers, **more):
        cls.send("POST", f"/api/v1/namespaces/{side.name}/pods", {"metadata": {"name": name, "labels": {"app": name}}, "spec": {
            "nodeName": "n1", "containers": [{"name": c, "image": "i", "stdin": True, "tty": c == "two"} for c in containers], **more}})
        cls.set_phase(side, name, "Running")

    @classmethod
    def set_phase(cls, side, name, phase):
        path = f"/api/v1/namespaces/{side.name}/pods/{name}"
        names = [c["name"] for c in cls.admin.get(path)[1]["spec"]["containers"]]
        ends = phase == "Succeeded"
        state = {"terminated": {"exitCode": 0}, "running": None} if ends else {"running": {}}
        cls.send("PATCH", f"{path}/status", {"status": {
            "phase": phase, "conditions": [{"type": "Ready", "status": str(not ends)}], "containerStatuses": [
                {"name": c, "image": "i", "imageID": "i", "containerID": f"x://{c}", "ready": not ends, "restartCount": 0, "state": state}
                for c in names]}}, MERGE)

    def eventually(self, condition, what=lambda: "the condition did not become true"):
        end = time.monotonic() + READY_SECONDS
        while not (found := condition()):
            self.assertLess(time.monotonic(), end, what())
            time.sleep(0.05)
        return found

    def both(self, *words, code=0, is_ordered=True, **options):
        """Runs the command on both, which must have the same result; returns the output."""
        theirs, ours = [side.run(*words, **options) for side in self.sides]
        if not is_ordered:
            theirs, ours = [(status, sorted(out.splitlines()), errors) for status, out, errors in (theirs, ours)]
        self.assertEqual(ours, theirs, (words, options))
        self.assertEqual(ours[0], code, (words, ours))
        return ours[1]

    # -- exec, attach, cp --

    def test_exec(self):
        for env in PROTOCOLS.values():
            self.assertEqual(self.both("exec", "pod", "-c", "one", "--", "echo", "hello", env=env), "hello\n")
            self.both("exec", "pod", "--", "sh", "-c", "echo $CONTAINER", env=env)
            self.both("exec", "pod", "-c", "two", "--", "sh", "-c", "echo out; echo err >&2; exit 3", env=env, code=3)
            self.both("exec", "pod", "--", "no-such-command", env=env, code=1)
            self.both("exec", "pod", "-c", "none", "--", "ls", env=env, code=1)
            self.both("exec", "nothing", "--", "ls", env=env, code=1)
            self.both("exec", "-i", "pod", "-c", "one", "--", "sh", "-c", "read line; echo got $line", given=b"first\nsecond\n", env=env)
            self.both("exec", "pod", "-c", "one", "--", "ls", env=env, user="jane", code=1)
            self.assertEqual(self.both("exec", "pod", "-c", "one", "--", "echo", "chief", env=env, user="chief"), "chief\n")

    def test_exec_with_much_data(self):
        for env in PROTOCOLS.values():
            out = self.both("exec", "-i", "pod", "-c", "one", "--", "cat", given=MEGABYTES, env=env)
            self.assertEqual(out, f"{len(MEGABYTES)} {hashlib.sha256(MEGABYTES).hexdigest()}")
            out = self.both("exec", "pod", "-c", "one", "--", "head", "-c", "20000000", "/dev/zero", env=env)
            self.assertEqual(out.split()[0], "20000000")

    def test_exec_with_a_terminal(self):
        for env in PROTOCOLS.values():
            for side in self.sides:
                ours, theirs = pty.openpty()
                subprocess.run(["stty", "rows", "24", "cols", "80"], stdin=theirs, check=True)
                process = subprocess.Popen(side.command("exec", "-it", "pod", "-c", "one", "--", "size"), stdin=theirs, stdout=theirs,
                                           stderr=theirs, env=side.env(env), start_new_session=True)
                os.close(theirs)
                text = b""
                with contextlib.suppress(OSError):
                    while piece := os.read(ours, 1000):
                        text += piece
                os.close(ours)
                self.assertEqual((process.wait(), text.strip()), (0, b"true"), side.name)

    def test_exec_that_lasts(self):
        """Both directions of a connection at the same time, with pauses."""
        for env in PROTOCOLS.values():
            for side in self.sides:
                process = side.start("exec", "-i", "pod", "-c", "one", "--", "cat", env=env)
                with contextlib.closing(process.stdout):
                    for i in range(20):
                        process.stdin.write(b"line %d\n" % i)
                        self.assertEqual(process.stdout.readline(), b"line %d\n" % i)
                    process.stdin.close()
                    self.assertEqual((process.wait(), process.stdout.read()), (0, b""))

    def test_attach(self):
        for env in PROTOCOLS.values():
            self.assertIn("attached to one", self.both("attach", "pod", "-c", "one", env=env))
            self.assertIn("word\n", self.both("attach", "-i", "pod", "-c", "one", given=b"word\n", env=env))
            self.both("attach", "pod", "-c", "none", env=env, code=1)

    def test_cp(self):
        source = self.root / "source"
        source.mkdir(exist_ok=True)
        (source / "large").write_bytes(MEGABYTES)
        (source / "small").write_text("small")
        for env in PROTOCOLS.values():
            for side in self.sides:
                place = f"{side.name}-{len(env['KUBECTL_REMOTE_COMMAND_WEBSOCKETS'])}"
                (self.root / "container" / place).mkdir()
                self.assertEqual(side.run("cp", str(source), f"pod:{place}/there", "-c", "one", env=env)[0], 0)
                self.assertEqual((self.root / "container" / place / "there/large").read_bytes(), MEGABYTES)
                back = self.root / f"back-{place}"
                self.assertEqual(side.run("cp", f"pod:{place}/there", str(back), "-c", "one", env=env)[0], 0)
                self.assertEqual({f.name: f.read_bytes() for f in back.iterdir()}, {"large": MEGABYTES, "small": b"small"})

    # -- port-forward, proxy --

    def forwarded(self, process, pattern):
        """The port that kubectl says it listens at."""
        line = process.stdout.readline().decode()
        found = re.search(pattern, line)
        self.assertTrue(found, line)
        return int(found[1])

    @contextlib.contextmanager
    def running(self, side, *words, **options):
        process = side.start(*words, **options)
        try:
            yield process
        finally:
            process.kill()
            process.wait()
            process.stdin.close()
            process.stdout.close()

    def test_port_forward(self):
        for env in PROTOCOLS.values():
            for side in self.sides:
                with self.running(side, "port-forward", "pod/pod", "--address=127.0.0.1", ":8000", env=env) as process:
                    port = self.forwarded(process, r"127\.0\.0\.1:(\d+) -> 8000")
                    # Several connections at a time share one to the server.
                    connections = [socket.create_connection(("127.0.0.1", port), timeout=WAIT_SECONDS) for _ in range(5)]
                    for i, connection in enumerate(connections):
                        connection.sendall(b"hello %d\n" % i)
                    for i, connection in enumerate(connections):
                        with connection, connection.makefile("rb") as file:
                            self.assertEqual([file.readline(), file.readline()], [b"port 8000\n", b"hello %d\n" % i])
                            sender = threading.Thread(target=connection.sendall, args=(MEGABYTES,))
                            sender.start()
                            self.assertEqual(file.read(len(MEGABYTES)), MEGABYTES)
                            sender.join()

    def test_proxy(self):
        for side in self.sides:
            with self.running(side, "proxy", "--port=0") as process:
                port = self.forwarded(process, r"Starting to serve on 127\.0\.0\.1:(\d+)")
                with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=WAIT_SECONDS)) as connection:
                    path = f"/api/v1/namespaces/{side.name}/pods"
                    connection.request("GET", f"{path}/pod")
                    answer = connection.getresponse()
                    self.assertEqual(json.loads(answer.read())["metadata"]["name"], "pod")
                    connection.request("GET", f"{path}?watch=1&resourceVersion=0&fieldSelector=metadata.name=pod")
                    self.assertEqual(json.loads(connection.getresponse().readline())["type"], "ADDED")

    # -- Logs --

    def test_logs(self):
        self.both("logs", "pod", "-c", "one")
        self.both("logs", "pod", "-c", "two", "--tail=5", "--timestamps", "--since=1h", "--limit-bytes=1000", "--previous")
        self.both("logs", "pod", "--all-containers", "--prefix", "--tail=3", is_ordered=False)
        self.both("logs", "-l", "app=pod", "-c", "one")
        self.both("logs", "pod", "-c", "none", code=1)
        self.both("logs", "nothing", code=1)
        self.both("logs", "pod", "-c", "one", user="jane", code=1)
        self.both("logs", "pod", "-c", "one", user="chief")
        self.assertGreater(int(self.both("logs", "pod", "-c", "long").split()[0]), 5_000_000)

    def test_followed_logs(self):
        for side in self.sides:
            with self.running(side, "logs", "-f", "pod", "-c", "one") as process:
                self.assertIn(b"follow=true", process.stdout.readline())
                for i in range(5):
                    self.assertEqual(process.stdout.readline(), b"line %d\n" % i)
            # The kubelet learns that the client is gone.
            self.kubelet.wait_left("pod")

    # -- Commands that wait for changes --

    def lines_of(self, side, words, *changes):
        """The lines of a command that runs until it has written one for each change, and one before them."""
        with self.running(side, *words) as process:
            lines = [process.stdout.readline().decode()]
            for change in changes:
                change(side)
                lines.append(process.stdout.readline().decode())
        return [side.same(line) for line in lines]

    def test_get_watch(self):
        def step(method, path, body=None):
            headers = MERGE if method == "PATCH" else ()
            return lambda side: self.send(method, f"/api/v1/namespaces/{side.name}/configmaps{path}", body, headers)
        make = step("POST", "", {"metadata": {"name": "watched"}})
        changes = (step("PATCH", "/watched", {"data": {"a": "b"}}), step("DELETE", "/watched"), make, step("DELETE", "/watched"))
        for output in (["-o", "name"], ["-o", "jsonpath={.type} {.object.data}{'\\n'}"], ["-o", "wide", "--no-headers"], ["--no-headers"]):
            found = []
            for side in self.sides:
                make(side)
                found.append(self.lines_of(side, ["get", "configmaps", "--field-selector=metadata.name=watched", "--watch",
                                                  "--output-watch-events", *output], *changes))
            self.assertEqual(found[1], found[0])
            self.assertEqual(len(found[1]), 5)

    def test_wait(self):
        for side in self.sides:
            self.make_pod(side, "waited", "one", terminationGracePeriodSeconds=0)
            self.set_phase(side, "waited", "Succeeded")
        results = []
        for side in self.sides:
            with self.running(side, "wait", "pod/waited", "--for=condition=Ready", "--timeout=60s") as process:
                self.set_phase(side, "waited", "Running")
                result = [(process.wait(WAIT_SECONDS), process.stdout.read())]
            with self.running(side, "wait", "pod/waited", "--for=delete", "--timeout=60s") as process:
                self.send("DELETE", f"/api/v1/namespaces/{side.name}/pods/waited", {"gracePeriodSeconds": 0})
                result += [(process.wait(WAIT_SECONDS), process.stdout.read())]
            results.append(result)
        self.assertEqual(results[1], results[0])
        self.assertEqual([code for code, _ in results[1]], [0, 0])

    def test_rollout_status(self):
        results = []
        for side in self.sides:
            path = f"/apis/apps/v1/namespaces/{side.name}/deployments"
            template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
            self.send("POST", path, {"metadata": {"name": "web"}, "spec": {
                "replicas": 2, "selector": {"matchLabels": {"a": "b"}}, "template": template}})
            lines = []
            with self.running(side, "rollout", "status", "deployment/web", "--timeout=60s") as process:
                for count in range(3):
                    lines.append(process.stdout.readline())
                    self.send("PATCH", f"{path}/web/status", {"status": {
                        "observedGeneration": 1, "replicas": 2, "updatedReplicas": 2, "availableReplicas": count,
                        "readyReplicas": count}}, MERGE)
                results.append((lines, process.stdout.read(), process.wait(WAIT_SECONDS)))
        self.assertEqual(results[1], results[0])
        self.assertEqual(results[1][2], 0)

    def test_run_with_attach(self):
        """kubectl waits until the pod runs, attaches, waits for its end and deletes it."""
        results = []
        for side in self.sides:
            overrides = json.dumps({"spec": {"nodeName": "n1", "terminationGracePeriodSeconds": 0}})
            path = f"/api/v1/namespaces/{side.name}/pods/short"
            process = side.start("run", "short", "--image=i", "-i", "--rm", "--restart=Never", "--overrides", overrides)
            self.eventually(lambda path=path: self.admin.get(path)[0] == 200)
            self.set_phase(side, "short", "Running")
            process.stdin.write(b"to the container\n")
            text = b""
            while b"to the container" not in text:
                text += process.stdout.readline()
            process.stdin.close()
            self.set_phase(side, "short", "Succeeded")
            with contextlib.closing(process.stdout):
                text += process.stdout.read()
            results.append((process.wait(WAIT_SECONDS), side.same(text.decode())))
            self.assertEqual(self.admin.get(path)[0], 404)
        self.assertEqual(results[1], results[0])
        self.assertEqual(results[1][0], 0)

    def test_drain(self):
        for side in self.sides:
            self.send("POST", "/api/v1/nodes", {"metadata": {"name": f"node-of-{side.name}"}})
            for i in range(3):
                self.send("POST", f"/api/v1/namespaces/{side.name}/pods", {"metadata": {"name": f"there-{i}"}, "spec": {
                    "nodeName": f"node-of-{side.name}", "containers": [{"name": "c", "image": "i"}]}})
        results = []
        for side in self.sides:
            code, out, errors = side.run("drain", f"node-of-{side.name}", "--force", "--grace-period=0", "--timeout=60s")
            results.append((code, sorted(out.splitlines()), re.sub(r"there-\d", "POD", errors)))
            self.assertEqual([p for p in self.admin.get(f"/api/v1/namespaces/{side.name}/pods")[1]["items"]
                              if p["metadata"]["name"].startswith("there")], [])
        self.assertEqual(results[1], results[0])
        self.assertEqual(results[1][0], 0)

    # -- What tier_kubectl_test.py cannot compare, since it has two kube-apiservers --

    def test_other_commands(self):
        for words in ("cluster-info", "api-versions", "api-resources -o wide --sort-by=name", "auth can-i --list", "auth whoami",
                      "create serviceaccount account", "create token account", "explain pods --recursive", "get --raw /openapi/v2",
                      "events", "debug node/n1 --image=i --profile=general", "describe pod pod", "get pods -o wide"):
            with self.subTest(words=words):
                self.both(*words.split())

    def test_certificates(self):
        request = openssl("req", "-newkey", "rsa:2048", "-nodes", "-keyout", "/dev/null", "-subj", "/CN=jack").encode()
        for verb in ("approve", "deny"):
            results = []
            for side in self.sides:
                self.send("POST", "/apis/certificates.k8s.io/v1/certificatesigningrequests", {
                    "metadata": {"name": f"{verb}-{side.name}"}, "spec": {
                        "request": base64.b64encode(request).decode(), "signerName": "example.com/signer", "usages": ["client auth"]}})
                results.append([side.run("certificate", verb, f"{verb}-{side.name}"),
                                side.run("get", "csr", f"{verb}-{side.name}", "-o", "jsonpath={.status.conditions[*].type}")])
            self.assertEqual(results[1], results[0])
            self.assertEqual(results[1][0][0], 0)

    def test_every_verb_of_kubectl_is_run_somewhere(self):
        page = subprocess.run([str(KUBE / "kubectl"), "--help"], check=True, capture_output=True, text=True).stdout
        verbs = set(re.findall(r"^  ([a-z-]+) +[A-Z]", page, re.M))
        self.assertGreater(len(verbs), 40)
        run = {row[0].split()[0] for row in same_kubectl_test.COMMANDS}
        self.assertEqual(verbs - run - set(VERBS_HERE) - set(OWN), set())


if __name__ == "__main__":
    unittest.main()
