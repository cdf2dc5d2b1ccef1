#!/usr/bin/python3
"""Vigil under the names etcd and kube-apiserver, started with the flags that envtest gives them."""
import http.client
import json
import os
import pathlib
import signal
import ssl
import subprocess
import time
import unittest

from certs import Authority
from server import SUBJECT, WAIT_SECONDS, LiveTest, free_port, only_vigil


@only_vigil
class Names(LiveTest):
    def setUp(self):
        super().setUp()
        self.assets = pathlib.Path(self.run_vigil("assets", str(self.scratch / "assets")).strip())
        self.certs = self.scratch / "certs"
        self.port = free_port()

    def run_vigil(self, *args):
        return subprocess.run([SUBJECT, *args], check=True, text=True, capture_output=True, timeout=WAIT_SECONDS).stdout

    def begin(self, name, *args):
        log = open(self.scratch / f"{name}.log", "ab")
        process = subprocess.Popen([str(self.assets / name), *args], stdout=log, stderr=log, start_new_session=True)
        log.close()
        self.addCleanup(self.end, process)
        return process

    def end(self, process):
        if process.poll() is None:
            process.kill()
        process.wait(WAIT_SECONDS)

    def begin_etcd(self):
        url = f"http://127.0.0.1:{free_port()}"
        self.begin("etcd", f"--advertise-client-urls={url}", f"--data-dir={self.scratch / 'etcd'}", f"--listen-client-urls={url}",
                   "--listen-peer-urls=http://localhost:0", "--unsafe-no-fsync=true")
        return url

    def make_certificates(self):
        served = Authority(self.certs, "serving").sign("apiserver")
        pathlib.Path(served.cert).rename(self.certs / "apiserver.crt")
        self.users = Authority(self.certs, "client-cert-auth-ca")
        return self.users.sign("admin", groups=["system:masters"])

    def begin_apiserver(self, etcd, *more):
        return self.begin(
            "kube-apiserver", "--allow-privileged=true", "--authorization-mode=Node,RBAC", "--bind-address=127.0.0.1",
            f"--cert-dir={self.certs}", f"--client-ca-file={self.users.cert}",
            "--disable-admission-plugins=ServiceAccount", f"--etcd-servers={etcd}", f"--secure-port={self.port}",
            f"--service-account-issuer=https://127.0.0.1:{self.port}/", f"--service-account-key-file={self.users.cert}",
            f"--service-account-signing-key-file={self.users.key}", "--service-cluster-ip-range=10.0.0.0/24", *more)

    def request(self, path, user=None, body=None):
        context = ssl.create_default_context(cafile=str(self.certs / "serving.pem"))
        if user:
            context.load_cert_chain(user.cert, user.key)
        connection = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=WAIT_SECONDS, context=context)
        try:
            connection.request("POST" if body else "GET", path, body and json.dumps(body), {"Content-Type": "application/json"})
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def await_health(self, process):
        """As envtest does, without a client certificate."""
        end = time.monotonic() + WAIT_SECONDS
        while time.monotonic() < end:
            self.assertIsNone(process.poll(), (self.scratch / "kube-apiserver.log").read_text())
            try:
                if self.request("/healthz") == (200, b"ok"):
                    return
            except OSError:
                pass
            time.sleep(0.01)
        self.fail("not healthy: " + (self.scratch / "kube-apiserver.log").read_text())

    def test_pair_serves_the_administrator_and_ends_with_sigterm(self):
        admin = self.make_certificates()
        server = self.begin_apiserver(self.begin_etcd())
        self.await_health(server)
        status, body = self.request("/api/v1/namespaces/default", admin)
        self.assertEqual((status, json.loads(body).get("kind")), (200, "Namespace"), body)
        self.assertEqual(len(list(self.certs.glob("vigil-mirror-*"))), 1)
        server.send_signal(signal.SIGTERM)
        self.assertEqual(server.wait(WAIT_SECONDS), 0)
        self.assertEqual(list(self.certs.glob("vigil-mirror-*")), [])

    def test_certificate_of_another_authority_is_refused(self):
        self.make_certificates()
        server = self.begin_apiserver(self.begin_etcd())
        self.await_health(server)
        stranger = Authority(self.scratch / "other").sign("admin", groups=["system:masters"])
        with self.assertRaises((ssl.SSLError, OSError)):
            self.request("/api/v1/namespaces/default", stranger)

    def test_flags_without_effect_are_named_once_in_the_log(self):
        self.make_certificates()
        server = self.begin_apiserver(self.begin_etcd(), "--profiling=false", "-v", "2")
        self.await_health(server)
        lines = [json.loads(line) for line in (self.scratch / "kube-apiserver.log").read_text().splitlines()]
        flags = [line["flags"] for line in lines if line["msg"] == "flags without effect here"]
        self.assertEqual(len(flags), 1)
        self.assertLessEqual({"profiling", "v"}, set(flags[0]))
        self.assertFalse({"allow-privileged", "secure-port"} & set(flags[0]))

    def test_privileged_containers_are_refused_unless_the_flag_allows_them(self):
        admin = self.make_certificates()
        etcd = self.begin_etcd()
        pod = {"metadata": {"name": "a"}, "spec": {"containers": [
            {"name": "c", "image": "i", "securityContext": {"privileged": True}}]}}
        for flag, code in (("--allow-privileged=false", 422), ("--allow-privileged", 201)):
            server = self.begin_apiserver(etcd, flag)
            self.await_health(server)
            got, answer = self.request("/api/v1/namespaces/default/pods", admin, pod)
            self.assertEqual(got, code, answer)
            if code == 422:
                self.assertIn(b"spec.containers[0].securityContext.privileged: Forbidden: disallowed by cluster policy", answer)
            server.terminate()
            server.wait(WAIT_SECONDS)

    def test_flags_on_which_one_relies_are_refused_unless_that_is_accepted(self):
        self.make_certificates()
        etcd = self.begin_etcd()
        policy = self.scratch / "policy"
        program = [str(self.assets / "kube-apiserver"), f"--etcd-servers={etcd}", f"--cert-dir={self.certs}",
                   f"--secure-port={free_port()}", "--bind-address=127.0.0.1", f"--audit-policy-file={policy}"]
        done = subprocess.run(program, text=True, capture_output=True, timeout=WAIT_SECONDS, check=False)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertRegex(done.stderr, r"^Error: --audit-policy-file has no effect in Vigil: there is no audit log\. .*--accept-ignored")
        server = self.begin_apiserver(etcd, f"--audit-policy-file={policy}", "--accept-ignored-flags",
                                      "--enable-admission-plugins=NodeRestriction,PodNodeSelector")
        self.await_health(server)
        lines = [json.loads(line) for line in (self.scratch / "kube-apiserver.log").read_text().splitlines()]
        flags = [line["flags"] for line in lines if line["level"] == "warn" and "have no effect here" in line["msg"]]
        self.assertEqual(flags, [["audit-policy-file", "enable-admission-plugins=PodNodeSelector"]])

    def test_help_has_no_insecure_port_and_unknown_flags_are_refused(self):
        program = str(self.assets / "kube-apiserver")
        done = subprocess.run([program, "--help"], text=True, capture_output=True, timeout=WAIT_SECONDS, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("--secure-port", done.stdout)
        self.assertNotRegex(done.stdout, r"(?m)^\s*--insecure-port\b")
        done = subprocess.run([program, "--insecure-port=0"], text=True, capture_output=True, timeout=WAIT_SECONDS, check=False)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (1, "", "Error: unknown flag: --insecure-port\n"))


@only_vigil
class Assets(LiveTest):
    def assets(self, *args, **env):
        done = subprocess.run([SUBJECT, "assets", *args], text=True, capture_output=True, timeout=WAIT_SECONDS, check=False,
                              cwd=self.scratch, env=dict(os.environ, PATH=str(self.scratch / "bin"), **env))
        return done.returncode, done.stdout.strip() or done.stderr.strip()

    def test_directory_is_made_and_printed_and_can_be_made_again(self):
        for _ in range(2):
            self.assertEqual(self.assets("a/b"), (0, str(self.scratch.resolve() / "a/b")))
        links = {path.name: os.readlink(path) for path in (self.scratch / "a/b").iterdir()}
        program = str(pathlib.Path(SUBJECT).resolve())
        self.assertEqual(links, {"etcd": program, "kube-apiserver": program})

    def test_kubectl_of_the_path_is_linked(self):
        (self.scratch / "bin").mkdir()
        kubectl = self.scratch / "bin/kubectl"
        kubectl.symlink_to("/bin/true")
        self.assertEqual(self.assets("a")[0], 0)
        self.assertEqual(os.readlink(self.scratch / "a/kubectl"), str(kubectl))

    def test_without_a_name_it_is_in_the_data_directory_of_the_user(self):
        self.assertEqual(self.assets(HOME=str(self.scratch), XDG_DATA_HOME=""),
                         (0, str(self.scratch.resolve() / ".local/share/vigil/assets")))
        self.assertEqual(self.assets(XDG_DATA_HOME=str(self.scratch / "data")),
                         (0, str(self.scratch.resolve() / "data/vigil/assets")))

    def test_programs_are_not_replaced(self):
        (self.scratch / "a").mkdir()
        (self.scratch / "a/etcd").write_text("a program")
        code, text = self.assets("a")
        self.assertEqual((code, "is not a link" in text), (1, True), text)
        self.assertEqual((self.scratch / "a/etcd").read_text(), "a program")
        self.assertEqual(self.assets("--force")[0], 2)


if __name__ == "__main__":
    unittest.main()
