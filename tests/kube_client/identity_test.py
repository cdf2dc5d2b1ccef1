#!/usr/bin/python3
"""Credentials of kubeconfigs, over TLS against Vigil: tokens, files, certificates, and exec plugins that print them."""
import base64
import datetime
import json
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from kube_suite import run_test  # noqa: E402
from certs import Authority  # noqa: E402
from server import LiveTest, free_port  # noqa: E402


class Identity(LiveTest):
    def setUp(self):
        super().setUp()
        self.authority = Authority(self.scratch / "ca")
        served = self.authority.sign("server")
        self.port = free_port()
        self.serving(args=[f"--listen-kube-urls=https://127.0.0.1:{self.port}", f"--cert-file={served.cert}",
                           f"--key-file={served.key}", *self.flags()])

    def check(self, name, user, **env):
        """Runs a test as this user of a kubeconfig."""
        config = self.scratch / "kubeconfig"
        config.write_text(json.dumps({
            "current-context": "c", "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u", "namespace": "mine"}}],
            "clusters": [{"name": "k", "cluster": {"server": f"https://127.0.0.1:{self.port}",
                                                   "certificate-authority": self.authority.cert}}],
            "users": [{"name": "u", "user": user}]}))
        self.assertEqual(run_test(name, dict(env, VIGIL_KUBECONFIG=str(config))), (0, ""), user)

    def plugin(self, *outputs):
        """A program that prints these statuses one after the other, the last one again and again."""
        script = self.scratch / "plugin"
        (self.scratch / "number").unlink(missing_ok=True)
        for number, status in enumerate(outputs):
            (self.scratch / f"output-{number}").write_text(json.dumps({
                "kind": "ExecCredential", "apiVersion": "client.authentication.k8s.io/v1", "status": status}))
        script.write_text(f"""#!/bin/sh
cd {self.scratch}
number=$(cat number 2>/dev/null || echo 0)
[ $number -ge {len(outputs) - 1} ] || echo $((number + 1)) >number
cat output-$number
""")
        script.chmod(0o755)
        return {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": str(script),
                         "interactiveMode": "Never"}}


class Tokens(Identity):
    def flags(self):
        tokens = self.scratch / "tokens"
        tokens.write_text("secret,jane,7\n")
        return [f"--kube-token-file={tokens}"]

    def test_token_gives_the_user_name(self):
        (self.scratch / "token").write_text("secret\n")
        for user in ({"token": "secret"}, {"tokenFile": "token"}, self.plugin({"token": "secret"})):
            with self.subTest(user):
                self.check("the_server_knows_the_user", user, VIGIL_EXPECTED_USER="jane")

    def test_plugin_is_run_again_when_its_token_is_refused(self):
        self.check("refused_credentials_are_renewed", self.plugin({"token": "wrong"}, {"token": "secret"}),
                   VIGIL_EXPECTED_USER="jane")


class Certificates(Identity):
    def flags(self):
        return [f"--trusted-ca-file={self.authority.cert}", "--client-cert-auth"]

    def printed(self, identity, **more):
        return dict(more, clientCertificateData=pathlib.Path(identity.cert).read_text(),
                    clientKeyData=pathlib.Path(identity.key).read_text())

    def test_certificate_gives_the_user_name(self):
        mary = self.authority.sign("mary")
        data = {f"client-{name}-data": base64.b64encode(pathlib.Path(path).read_bytes()).decode()
                for name, path in (("certificate", mary.cert), ("key", mary.key))}
        files = {"client-certificate": mary.cert, "client-key": mary.key}
        for user in (files, data, self.plugin(self.printed(mary))):
            with self.subTest(user):
                self.check("the_server_knows_the_user", user, VIGIL_EXPECTED_USER="mary")

    def test_plugin_replaces_a_certificate(self):
        soon = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=1)
        first = self.printed(self.authority.sign("mary"), expirationTimestamp=soon.strftime("%Y-%m-%dT%H:%M:%SZ"))
        self.check("a_new_certificate_is_used", self.plugin(first, self.printed(self.authority.sign("ruth"))),
                   VIGIL_FIRST_USER="mary", VIGIL_EXPECTED_USER="ruth")


if __name__ == "__main__":
    unittest.main()
