#!/usr/bin/python3
"""Programs that print credentials (exec of a kubeconfig): `vigil kube watch` beside kubectl, which uses client-go."""
import json
import os
import pathlib
import subprocess
import threading
import unittest

from certs import Authority
from server import SUBJECT, LiveTest, free_port, only_vigil

SECONDS = 60
KUBECTL = os.environ.get("VIGIL_KUBECTL", "kubectl")
API_VERSION = "client.authentication.k8s.io/v1"

PLUGIN = """#!/bin/sh
cd {directory}
echo run >> runs
printf '%s' "$KUBERNETES_EXEC_INFO" > info
echo "from the plugin" >&2
cat answer
exit $(cat code)
"""


@only_vigil
class Plugin(LiveTest):
    def serve(self, *args):
        self.port = free_port()
        self.vigil = self.serving(args=[f"--listen-kube-urls=https://127.0.0.1:{self.port}", *args])
        self.plugin = self.scratch / "plugin"
        self.plugin.write_text(PLUGIN.format(directory=self.scratch))
        self.plugin.chmod(0o700)
        (self.scratch / "code").write_text("0")
        return json.loads(self.admin("config", "view", "--raw", "-o", "json"))

    def admin(self, *words):
        return subprocess.run([KUBECTL, "--kubeconfig", str(pathlib.Path(self.vigil.directory) / "kubeconfig"), *words],
                              capture_output=True, check=True, timeout=SECONDS).stdout

    def use(self, cluster, **exec_fields):
        """Writes a kubeconfig for the cluster with the plugin."""
        config = {"apiVersion": "v1", "kind": "Config", "current-context": "c",
                  "clusters": [{"name": "c", "cluster": cluster}],
                  "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
                  "users": [{"name": "u", "user": {"exec": dict(
                      apiVersion=API_VERSION, command="./plugin", interactiveMode="Never", **exec_fields)}}]}
        self.config = self.scratch / "config"
        self.config.write_text(json.dumps(config))

    def answer(self, **status):
        (self.scratch / "answer").write_text(json.dumps({"apiVersion": API_VERSION, "kind": "ExecCredential", "status": status}))

    def runs(self):
        runs = self.scratch / "runs"
        return len(runs.read_text().splitlines()) if runs.exists() else 0

    def run_program(self, *words):
        done = subprocess.run(words, capture_output=True, text=True, timeout=SECONDS, check=False,
                              env=dict(os.environ, KUBECONFIG=str(self.config), HOME=str(self.scratch)))
        return done.returncode, done.stdout, done.stderr

    def watch(self, *words):
        return self.run_program(SUBJECT, "kube", "watch", "namespaces", "--count", "1", *words)

    def with_tokens(self):
        tokens = self.scratch / "tokens"
        tokens.write_text("secret,jane,7\nother,joe,8\n")
        return self.serve("--auto-tls", f"--kube-token-file={tokens}")["clusters"][0]["cluster"]

    def test_token_is_used_and_the_plugin_sees_the_same_as_from_kubectl(self):
        cluster = self.with_tokens()
        cluster["extensions"] = [{"name": "client.authentication.k8s.io/exec", "extension": {"audience": "x", "n": [1, None]}}]
        self.answer(token="secret")
        for fields in ({}, {"provideClusterInfo": True}):
            self.use(cluster, **fields)
            code, output, errors = self.watch()
            self.assertEqual(code, 0, errors)
            self.assertIn("ADDED", output)
            ours = (self.scratch / "info").read_text()
            code, output, errors = self.run_program(KUBECTL, "get", "namespaces")
            self.assertEqual(code, 0, errors)
            self.assertEqual(ours, (self.scratch / "info").read_text().strip())
        self.assertEqual(json.loads(ours)["spec"]["cluster"]["server"], f"https://127.0.0.1:{self.port}")

    def test_one_run_serves_all_requests_of_a_program(self):
        self.use(self.with_tokens())
        self.answer(token="secret", expirationTimestamp="2999-01-01T00:00:00Z")
        self.assertEqual(self.watch("--informer", "--interval", "100ms")[0], 0)
        self.assertEqual(self.runs(), 1)

    def test_failing_plugin_is_shown(self):
        self.use(self.with_tokens())
        self.answer(token="secret")
        (self.scratch / "code").write_text("3")
        code, _, errors = self.watch()
        self.assertEqual(code, 1)
        self.assertIn("plugin failed with exit code 3: from the plugin", errors)
        (self.scratch / "code").write_text("0")
        self.answer(token="wrong")
        code, output, errors = self.watch()
        self.assertEqual(code, 1)
        self.assertRegex(output + errors, "401|Unauthorized")

    def begin(self):
        process = subprocess.Popen([SUBJECT, "kube", "watch", "namespaces"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   text=True, env=dict(os.environ, KUBECONFIG=str(self.config)))
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        watchdog = threading.Timer(SECONDS, process.kill)
        watchdog.start()
        self.addCleanup(watchdog.cancel)
        self.shown = ""
        return process

    def read_until(self, process, word):
        line = ""
        while word not in line:
            line = process.stdout.readline()
            self.shown += line
            self.assertTrue(line, f"{word!r} is missing after {self.runs()} runs of the plugin:\n{self.shown}")

    def test_expired_token_is_replaced_while_a_watch_lasts(self):
        self.use(self.with_tokens())
        self.answer(token="secret", expirationTimestamp="2000-01-01T00:00:00Z")
        watch = self.begin()
        self.read_until(watch, "ADDED")
        self.answer(token="other", expirationTimestamp="2999-01-01T00:00:00Z")
        for name in map("n{}".format, range(20)):  # until the first pause of the plugin, a second, is over
            self.vigil.stop()
            self.vigil.start()
            self.admin("create", "namespace", name)
            self.read_until(watch, f" {name} ")
            if self.runs() == 2:
                break
        self.assertEqual(self.runs(), 2)

    def test_certificate_is_used(self):
        authority = Authority(self.scratch / "ca")
        server, client = authority.sign("server"), authority.sign("mary")
        cluster = self.serve(f"--cert-file={server.cert}", f"--key-file={server.key}", f"--trusted-ca-file={authority.cert}",
                             "--client-cert-auth")["clusters"][0]["cluster"]
        cluster = {"server": cluster["server"], "certificate-authority": authority.cert}
        self.use(cluster, provideClusterInfo=True)
        self.answer(clientCertificateData=pathlib.Path(client.cert).read_text(),
                    clientKeyData=pathlib.Path(client.key).read_text())
        code, output, errors = self.watch()
        self.assertEqual(code, 0, errors)
        self.assertIn("ADDED", output)
        self.answer(clientCertificateData="no certificate", clientKeyData="no key")
        code, _, errors = self.watch()
        self.assertEqual(code, 1)
        self.assertIn("certificate", errors)


if __name__ == "__main__":
    unittest.main()
