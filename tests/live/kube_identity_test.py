#!/usr/bin/python3
"""Authentication of the Kubernetes API over TLS: tokens, certificates, and neither."""
import base64
import hashlib
import http.client
import json
import os
import pathlib
import ssl
import stat
import subprocess
import unittest

from certs import Authority
from server import LiveTest, free_port, only_vigil

WAIT_SECONDS = 60
REVIEW = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
KUBECTL = os.environ.get("VIGIL_KUBECTL", "kubectl")


@only_vigil
class Identity(LiveTest):
    def serve(self, *args):
        self.port = free_port()
        self.vigil = self.serving(args=[f"--listen-kube-urls=https://127.0.0.1:{self.port}", *args])
        self.config = pathlib.Path(self.vigil.directory) / "kubeconfig"

    def review(self, token=None, cert=None):
        context = ssl._create_unverified_context()
        if cert:
            context.load_cert_chain(cert.cert, cert.key)
        connection = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=WAIT_SECONDS, context=context)
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        connection.request("POST", REVIEW, "{}", dict(headers, **{"Content-Type": "application/json"}))
        response = connection.getresponse()
        body = json.loads(response.read())
        connection.close()
        return response.status, body.get("status", {}).get("userInfo") if response.status == 201 else body["reason"]

    def kubectl(self, *args):
        done = subprocess.run([KUBECTL, "--kubeconfig", str(self.config), *args], text=True, capture_output=True,
                              timeout=60, check=False, env=dict(os.environ, HOME=str(self.scratch)))
        return done.returncode, done.stdout + done.stderr

    def test_kubeconfig_suffices_with_a_private_certificate_authority(self):
        tokens = self.scratch / "tokens"
        tokens.write_text("secret,jane,7\n")
        served = Authority(self.scratch / "ca").sign("server")
        self.port = free_port()
        self.vigil = self.serving(args=[f"--listen-kube-urls=https://0.0.0.0:{self.port}", f"--kube-token-file={tokens}",
                                        f"--cert-file={served.cert}", f"--key-file={served.key}"])
        self.config = pathlib.Path(self.vigil.directory) / "kubeconfig"
        self.assertIn(f"server: https://127.0.0.1:{self.port}\n", self.config.read_text())
        code, output = self.kubectl("get", "namespaces")
        self.assertEqual(code, 0, output)
        self.assertIn("kube-system", output)

    def test_kubeconfig_says_that_a_certificate_is_needed(self):
        authority = Authority(self.scratch / "ca")
        served, client = authority.sign("server"), authority.sign("client")
        flags = [f"--cert-file={served.cert}", f"--key-file={served.key}", f"--trusted-ca-file={authority.cert}"]
        with_certificate = ("--client-certificate", client.cert, "--client-key", client.key)
        for required in ([], ["--client-cert-auth"]):
            with self.subTest(required=required):
                self.serve(*flags, *required)
                self.assertIn("--client-certificate FILE --client-key FILE", self.config.read_text())
                self.assert_logged(self.vigil, "without a client certificate, which the server requires")
                self.assertNotEqual(self.kubectl("get", "namespaces", "--request-timeout=5s")[0], 0)
                code, output = self.kubectl(*with_certificate, "get", "namespaces")
                self.assertEqual(code, 0, output)
                self.assertIn("kube-system", output)
                self.vigil.stop()
        self.serve("--auto-tls", f"--kube-token-file={self.tokens()}")
        self.assertNotIn("certificate FILE", self.config.read_text())

    def tokens(self):
        file = self.scratch / "tokens"
        file.write_text("secret,jane,7\n")
        return file

    def test_kubeconfig_has_the_first_token_and_mode_0600(self):
        tokens = self.scratch / "tokens"
        tokens.write_text('# who\nit\'s: \\ #long,jane,7,"dev,ops"\nother,joe,8\n')
        self.serve("--auto-tls", f"--kube-token-file={tokens}")
        self.vigil.stop()
        for name in ("kubeconfig", "kubeconfig.new"):  # left behind, and readable for all users
            file = self.config.with_name(name)
            file.write_text("")
            file.chmod(0o644)
        self.vigil.start()
        self.assertEqual(stat.S_IMODE(self.config.stat().st_mode), 0o600)
        code, output = self.kubectl("get", "namespaces")
        self.assertEqual(code, 0, output)
        self.assertIn("kube-system", output)
        self.assertEqual(self.review()[0], 401)
        self.assertEqual(self.review("it's: \\ #long")[1]["username"], "jane")
        self.assertEqual(self.review("other"), (201, {"username": "joe", "uid": "8", "groups": ["system:authenticated"]}))

    def send(self, token, method, path, body, kind="application/json"):
        connection = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=WAIT_SECONDS, context=ssl._create_unverified_context())
        connection.request(method, path, json.dumps(body), {"Authorization": f"Bearer {token}", "Content-Type": kind})
        response = connection.getresponse()
        answer = json.loads(response.read())
        connection.close()
        return response.status, answer.get("message", "")

    def test_a_request_for_a_certificate_is_approved_only_with_the_right_for_its_signer(self):
        tokens = self.scratch / "tokens"
        tokens.write_text('root,root,1,system:masters\njane,jane,2\n')
        self.serve("--auto-tls", f"--kube-token-file={tokens}", "--kube-authorization-mode=RBAC")
        group, rbac = "certificates.k8s.io", "/apis/rbac.authorization.k8s.io/v1"
        requests = f"/apis/{group}/v1/certificatesigningrequests"

        def allow(name, rules):
            role = {"metadata": {"name": name}, "rules": [dict(rule, apiGroups=[group]) for rule in rules]}
            binding = {"metadata": {"name": name}, "subjects": [{"kind": "User", "name": "jane"}],
                       "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}}
            self.assertEqual(self.send("root", "POST", f"{rbac}/clusterroles", role)[0], 201)
            self.assertEqual(self.send("root", "POST", f"{rbac}/clusterrolebindings", binding)[0], 201)

        def ask_for(name, subject, signer):
            made = subprocess.run(["openssl", "req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                                   "-keyout", "/dev/null", "-subj", subject], check=True, capture_output=True)
            return self.send("jane", "POST", requests, {"metadata": {"name": name}, "spec": {
                "request": base64.b64encode(made.stdout).decode(), "signerName": signer, "usages": ["client auth"]}})

        def write(name, part, status):
            return self.send("jane", "PATCH", f"{requests}/{name}/{part}", {"status": status}, "application/merge-patch+json")

        approved = {"conditions": [{"type": "Approved", "status": "True", "reason": "r", "message": "m"}]}
        failed = {"conditions": approved["conditions"] + [{"type": "Failed", "status": "True", "reason": "r", "message": "m"}]}
        allow("requests", [{"verbs": ["create"], "resources": ["certificatesigningrequests"]},
                           {"verbs": ["patch"], "resources": ["certificatesigningrequests/approval", "certificatesigningrequests/status"]}])
        code, text = ask_for("evil", "/O=other/O=system:masters/CN=x", "kubernetes.io/kube-apiserver-client")
        self.assertEqual(code, 403)
        self.assertIn("use of kubernetes.io/kube-apiserver-client signer with system:masters group is not allowed", text)
        self.assertEqual(ask_for("a", "/CN=x", "example.com/one")[0], 201)
        code, text = write("a", "approval", approved)
        self.assertEqual(code, 403)
        self.assertIn('user not permitted to approve requests with signerName "example.com/one"', text)
        allow("approves", [{"verbs": ["approve"], "resources": ["signers"], "resourceNames": ["example.com/*"]}])
        self.assertEqual(write("a", "approval", approved)[0], 200)
        code, text = write("a", "status", failed)
        self.assertEqual(code, 403)
        self.assertIn('user not permitted to sign requests with signerName "example.com/one"', text)
        allow("signs", [{"verbs": ["sign"], "resources": ["signers"], "resourceNames": ["example.com/one"]}])
        self.assertEqual(write("a", "status", failed)[0], 200)

    def test_without_credentials_every_client_is_the_administrator(self):
        self.serve("--auto-tls")
        self.assertEqual(self.kubectl("get", "namespaces")[0], 0)
        self.assertEqual(self.review(), (201, {"username": "system:admin", "groups": ["system:masters", "system:authenticated"]}))

    def sign_in(self, authority):
        server = authority.sign("server")
        self.serve(f"--cert-file={server.cert}", f"--key-file={server.key}", f"--trusted-ca-file={authority.cert}",
                   "--client-cert-auth")

    def test_certificate_gives_the_user_name(self):
        authority = Authority(self.scratch / "ca")
        client = authority.sign("mary")
        self.sign_in(authority)
        user = self.review(cert=client)[1]
        self.assertEqual((user["username"], user["groups"]), ("mary", ["system:authenticated"]))
        [credential] = user["extra"]["authentication.kubernetes.io/credential-id"]
        der = subprocess.run(["openssl", "x509", "-in", client.cert, "-outform", "DER"], capture_output=True, check=True)
        self.assertEqual(credential, "X509SHA256=" + hashlib.sha256(der.stdout).hexdigest())

    def test_organizations_of_a_certificate_are_the_groups(self):
        authority = Authority(self.scratch / "ca")
        review = self.scratch / "review"
        review.write_text("{}")
        self.sign_in(authority)
        for groups in (["system:masters"], ["dev", "ops, and more", "system:authenticated", "zoë"]):
            client = authority.sign("mary", groups=groups)
            expected = groups + [g for g in ["system:authenticated"] if g not in groups]
            self.assertEqual(self.review(cert=client)[1]["groups"], expected)
            code, output = self.kubectl("--token=", f"--server=https://127.0.0.1:{self.port}",
                                        f"--certificate-authority={authority.cert}",
                                        f"--client-certificate={client.cert}", f"--client-key={client.key}",
                                        "create", f"--raw={REVIEW}", "-f", str(review))
            self.assertEqual(code, 0, output)
            self.assertEqual(json.loads(output)["status"]["userInfo"]["groups"], expected)

    def test_all_groups_of_a_certificate_count(self):
        authority = Authority(self.scratch / "ca")
        self.sign_in(authority)
        many = [f"group-{i:04}-{'x' * 50}" for i in range(1000)]
        groups = self.review(cert=authority.sign("mary", groups=many))[1]["groups"]
        self.assertEqual(groups, [*many, "system:authenticated"])

    def request_token(self):
        self.kubectl("create", "serviceaccount", "robot")
        request = self.scratch / "request.json"
        request.write_text('{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{}}')
        return self.kubectl("create", "--raw=/api/v1/namespaces/default/serviceaccounts/robot/token", "-f", str(request))

    def test_tokens_of_service_accounts_are_issued_without_settings(self):
        self.serve("--auto-tls")
        key = pathlib.Path(self.vigil.directory) / "service-account.key"
        self.assertEqual(stat.S_IMODE(key.stat().st_mode), 0o600)
        code, output = self.request_token()
        self.assertEqual(code, 0, output)
        review = self.scratch / "review.json"
        review.write_text(json.dumps({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview",
                                      "spec": {"token": json.loads(output)["status"]["token"]}}))

        def reviewed():
            code, output = self.kubectl("create", "--raw=/apis/authentication.k8s.io/v1/tokenreviews", "-f", str(review))
            self.assertEqual(code, 0, output)
            return json.loads(output)["status"].get("user", {}).get("username")

        self.assertEqual(reviewed(), "system:serviceaccount:default:robot")
        self.vigil.stop()
        self.vigil.start()
        self.assertEqual(reviewed(), "system:serviceaccount:default:robot", "the key is the same after a restart")
        self.vigil.stop()
        key.write_text("")
        self.vigil.start()
        self.assert_logged(self.vigil, "no tokens of service accounts are issued")
        self.assertFalse(reviewed())
        self.assertEqual(self.kubectl("get", "namespaces")[0], 0)

    def test_request_for_a_service_account_token_is_refused_with_a_reason(self):
        served = Authority(self.scratch / "ca").sign("server")
        self.serve("--auto-tls", f"--kube-service-account-key-file={served.cert}",
                   "--kube-service-account-issuer=https://other.example")
        self.assertFalse((pathlib.Path(self.vigil.directory) / "service-account.key").exists())
        code, output = self.request_token()
        self.assertEqual(code, 1)
        self.assertIn("--kube-service-account-signing-key-file", output)


if __name__ == "__main__":
    unittest.main()
