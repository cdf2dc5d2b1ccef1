#!/usr/bin/python3
"""Authentication over the network: passwords, tokens, users of certificates, secrets in logs, and restarts."""
import base64
import contextlib
import http.client
import json
import re
import ssl
import subprocess
import threading
import time
import unittest
import urllib.error
import urllib.request

from certs import Authority, openssl
from server import LiveTest, free_port, only_vigil

EASY = ["--bcrypt-cost", "4"]


class AuthTest(LiveTest):
    def call(self, server, path, body, token=None):
        """Sends a request to the JSON gateway; returns the status and the answer."""
        headers = {"Authorization": token} if token else {}
        request = urllib.request.Request(f"{server.url}/v3/{path}", json.dumps(body).encode(), headers)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.load(error)

    def must(self, server, path, body, token=None):
        status, answer = self.call(server, path, body, token)
        self.assertEqual(status, 200, answer)
        return answer

    def login(self, server, name, password):
        return self.must(server, "auth/authenticate", {"name": name, "password": password})["token"]

    def enable(self, server, **users):
        """Adds root, and users with a role each that permits all keys below the user's name; then enables authentication."""
        self.must(server, "auth/user/add", {"name": "root", "password": "root's secret"})
        self.must(server, "auth/user/grant", {"user": "root", "role": "root"})
        for name, options in users.items():
            self.must(server, "auth/role/add", {"name": name})
            self.must(server, "auth/role/grant", {"name": name, "perm": {
                "permType": "READWRITE", "key": b64(name + "/"), "range_end": b64(name + "0")}})
            self.must(server, "auth/user/add", {"name": name, **options})
            self.must(server, "auth/user/grant", {"user": name, "role": name})
        self.must(server, "auth/enable", {})

    def put(self, server, key, token=None):
        return self.call(server, "kv/put", {"key": b64(key), "value": b64("v")}, token)


def b64(text):
    return base64.b64encode(text.encode()).decode()


class Passwords(AuthTest):
    def test_cve_2020_15115_short_passwords_are_checked_and_empty_ones_refused(self):
        server = self.serving(args=EASY)
        self.enable(server, anna={"password": "p"}, nora={"options": {"no_password": True}})
        self.login(server, "anna", "p")
        for name, password in (("anna", ""), ("anna", "pp"), ("nora", ""), ("nora", "p"), ("", "")):
            with self.subTest(name=name, password=password):
                status, answer = self.call(server, "auth/authenticate", {"name": name, "password": password})
                self.assertEqual(status, 400, answer)


@only_vigil
class Flood(AuthTest):
    FLOOD = 160  # more than the queue holds

    def log_in_from(self, server, address, answers):
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60,
                                                source_address=(address, 0))
        try:
            connection.request("POST", "/v3/auth/authenticate",
                               json.dumps({"name": "anna", "password": "pw"}))
            answer = connection.getresponse()
            answers.append((answer.status, answer.read()))
        finally:
            connection.close()

    def logins(self, server):
        """The number of logins that have succeeded by now."""
        with urllib.request.urlopen(f"{server.url}/metrics", timeout=60) as page:
            return int(re.search(r'^grpc_server_handled_total{grpc_code="OK",grpc_method="Authenticate".* (\d+)$',
                                 page.read().decode(), re.M)[1])

    def test_logins_from_one_address_do_not_delay_others(self):
        server = self.serving(args=["--bcrypt-cost", "7"])
        self.enable(server, anna={"password": "pw"})
        flood, bystander = [], []
        threads = [threading.Thread(target=self.log_in_from, args=(server, "127.0.0.1", flood))
                   for _ in range(self.FLOOD)]
        for thread in threads:
            thread.start()
        while not flood:  # by then the queue is full or nearly full
            time.sleep(0.001)
        before = self.logins(server)
        self.log_in_from(server, "127.0.0.2", bystander)
        hashed = self.logins(server) - before
        for thread in threads:
            thread.join()
        self.assertEqual(bystander[0][0], 200, bystander)
        self.assertLess(hashed, 64)  # it would be at least 100 if the login waited behind all others
        self.assertEqual(len(flood), self.FLOOD)
        refused = [body for status, body in flood if status != 200]
        self.assertTrue(all(b"too many requests" in body for body in refused), refused)


class Restarts(AuthTest):
    @only_vigil  # etcd restores tokens from its log
    def test_users_and_roles_survive_a_restart_but_tokens_do_not(self):
        server = self.serving(args=EASY)
        self.enable(server, anna={"password": "pw"})
        token = self.login(server, "anna", "pw")
        self.assertEqual(self.put(server, "anna/1", token)[0], 200)
        self.assertEqual(self.put(server, "other", token)[0], 403)
        server.kill()
        server.start()
        self.assertEqual(self.put(server, "anna/1", token)[0], 401)
        self.assertEqual(self.put(server, "anna/1")[0], 400)
        token = self.login(server, "anna", "pw")
        self.assertEqual(self.put(server, "anna/1", token)[0], 200)
        self.assertEqual(self.put(server, "other", token)[0], 403)

    def test_web_tokens_survive_a_restart_but_no_auth_change(self):
        key = self.scratch / "key.pem"
        openssl("genpkey", "-algorithm", "ed25519", "-out", str(key))
        public = self.scratch / "public.pem"
        openssl("pkey", "-in", str(key), "-pubout", "-out", str(public))
        server = self.serving(args=[*EASY, "--auth-token",
                                    f"jwt,priv-key={key},pub-key={public},sign-method=EdDSA,ttl=10m"])
        self.enable(server, anna={"password": "pw"})
        token = self.login(server, "anna", "pw")
        server.kill()
        server.start()
        self.assertEqual(self.put(server, "anna/1", token)[0], 200)
        root = self.login(server, "root", "root's secret")
        self.must(server, "auth/role/add", {"name": "other"}, root)
        status, answer = self.put(server, "anna/1", token)
        self.assertEqual((status, answer["message"]), (400, "etcdserver: revision of auth store is old"))
        self.assertEqual(self.put(server, "anna/1", self.login(server, "anna", "pw"))[0], 200)


class Secrets(AuthTest):
    """CVE-2021-28235 and similar leaks."""

    @only_vigil
    def test_logs_and_pages_contain_no_password_or_token(self):
        server = self.serving(args=[*EASY, "--log-level", "debug", "--warning-apply-duration", "1ns",
                                    "--warning-unary-request-duration", "1ns"])
        self.enable(server, anna={"password": "anna's secret"})
        token = self.login(server, "anna", "anna's secret")
        root = self.login(server, "root", "root's secret")
        self.assertEqual(self.call(server, "auth/authenticate",
                                   {"name": "anna", "password": "wrong secret"})[0], 400)
        self.must(server, "auth/user/changepw", {"name": "anna", "password": "new secret"}, root)
        self.assertEqual(self.put(server, "anna/1", token)[0], 401)
        self.assertEqual(self.put(server, "k", root)[0], 200)
        for path in ("/metrics", "/debug/vars", "/health"):
            with contextlib.suppress(urllib.error.HTTPError), \
                    urllib.request.urlopen(server.url + path, timeout=60) as page:
                self.check_clean(page.read().decode(), token, root)
        server.stop()
        text = "".join(server.lines)
        self.assertIn("invalid authentication was requested", text)
        self.assertIn("/etcdserverpb.Auth/Authenticate", text)  # logged because it is slow
        self.check_clean(text, token, root)

    def check_clean(self, text, *tokens):
        for secret in ("secret", "$2a$", *tokens):
            self.assertNotIn(secret, text)


class Certificates(AuthTest):
    def setUp(self):
        super().setUp()
        self.ca = Authority(self.scratch / "certs")
        self.identity = self.ca.sign("server")
        self.people = {name: self.ca.sign(name, names=None) for name in ("root", "anna", "unknown")}

    def secure(self, *more):
        port = free_port()
        url = f"https://127.0.0.1:{port}"
        plain = f"http://127.0.0.1:{free_port()}"
        server = self.server(port=port, listen=f"{url},{plain}", args=[
            *EASY, "--cert-file", self.identity.cert, "--key-file", self.identity.key, *more]).start()
        self.addCleanup(server.stop)
        server.url = plain
        self.enable(server, anna={"options": {"no_password": True}})
        server.url = url
        return server

    def ctl(self, server, client, *args):
        flags = ["--endpoints", server.url, "--cacert", self.ca.cert, "--command-timeout", "20s"]
        if client:
            flags += ["--cert", self.people[client].cert, "--key", self.people[client].key]
        done = subprocess.run(["etcdctl", *flags, *args], capture_output=True, text=True, timeout=60,
                              env={"ETCDCTL_API": "3", "PATH": "/usr/bin:/bin"}, check=False)
        return done.stdout.strip() if done.returncode == 0 else done.stderr.strip().split("Error: ")[-1]

    def test_common_name_of_a_certificate_is_the_user(self):
        server = self.secure("--client-cert-auth", "--trusted-ca-file", self.ca.cert)
        self.assertEqual(self.ctl(server, "anna", "put", "anna/1", "x"), "OK")
        self.assertEqual(self.ctl(server, "anna", "put", "other", "x"), "etcdserver: permission denied")
        self.assertEqual(self.ctl(server, "root", "put", "other", "x"), "OK")
        self.assertEqual(self.ctl(server, "anna", "--user", "root:root's secret", "put", "other", "x"), "OK")
        self.assertIn("authentication failed", self.ctl(server, "root", "--user", "root:x", "get", "a"))

    @only_vigil  # etcd accepts any name for some methods
    def test_certificate_of_an_unknown_user_has_no_permissions(self):
        """CVE-2018-16886, CVE-2026-33413."""
        server = self.secure("--client-cert-auth", "--trusted-ca-file", self.ca.cert)
        for args in (["put", "anna/1", "x"], ["get", "a"], ["member", "list"], ["lease", "grant", "10"],
                     ["alarm", "list"]):
            self.assertIn("etcdserver: permission denied", self.ctl(server, "unknown", *args), args)
        self.assertIn("etcdserver: user name not found", self.ctl(server, "unknown", "user", "list"))

    @only_vigil  # etcd's gateway connects to its own server with a certificate, and refuses more
    def test_certificate_of_a_gateway_request_is_ignored(self):
        server = self.secure("--client-cert-auth", "--trusted-ca-file", self.ca.cert)
        root = self.people["root"]
        for version in ("--http1.1", "--http2"):
            done = subprocess.run(
                ["curl", "-sS", version, "--cacert", self.ca.cert, "--cert", root.cert, "--key", root.key, "-d",
                 json.dumps({"key": b64("k")}), server.url + "/v3/kv/range"],
                capture_output=True, text=True, timeout=60, check=True)
            self.assertEqual(json.loads(done.stdout)["message"], "etcdserver: user name is empty")

    def test_common_name_is_ignored_without_client_cert_auth(self):
        server = self.secure("--trusted-ca-file", self.ca.cert)
        self.assertEqual(self.ctl(server, "root", "get", "a"), "etcdserver: user name is empty")


class Flags(AuthTest):
    @only_vigil
    def test_invalid_auth_token_flags_are_refused_at_start(self):
        key, other = self.scratch / "key.pem", self.scratch / "other.pem"
        openssl("genpkey", "-algorithm", "RSA", "-out", str(key))
        openssl("genpkey", "-algorithm", "ed25519", "-out", str(other))
        large = self.scratch / "large.pem"
        large.write_bytes(key.read_bytes() + b"\n" * (1 << 20))
        for value, message in (
                ("other", "neither simple nor jwt"), ("jwt", "needs a sign-method"),
                ("jwt,sign-method=none", "--auth-token: "), ("jwt,sign-method=RS256", "--auth-token: "),
                (f"jwt,sign-method=RS256,priv-key={self.scratch}/none", "No such file or directory"),
                (f"jwt,sign-method=RS256,priv-key={self.scratch}", "not a file"),
                (f"jwt,sign-method=RS256,priv-key={large}", "longer than 1048576 bytes"),
                (f"jwt,sign-method=RS256,priv-key={other}", "--auth-token: "),
                (f"jwt,sign-method=RS256,priv-key={key},ttl=x", "ttl"),
                (f"jwt,sign-method=RS256,priv-key={key},aud=x", "no option")):
            with self.subTest(value=value):
                code, text = self.server(args=["--auth-token", value]).refuse()
                self.assertEqual(code, 1, text)
                self.assertIn(message, text)

    def test_invalid_bcrypt_cost_is_replaced_by_the_default(self):
        server = self.serving(args=["--bcrypt-cost", "3"])
        self.assert_logged(server, "use default bcrypt cost instead of the invalid given cost")


@only_vigil
class OtherApis(AuthTest):
    """The Kubernetes API, the v2 API and plain HTTP pages while authentication of etcd's API is enabled."""

    def kube(self, method, path, body=None):
        request = urllib.request.Request(f"http://127.0.0.1:{self.kube_port}{path}", method=method,
                                         data=json.dumps(body).encode() if body else None,
                                         headers={"Content-Type": "application/json", "Authorization": "Bearer kt"})
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status
        except urllib.error.HTTPError as error:
            with error:
                return error.code

    def kube_has(self, path):
        self.eventually(lambda: self.kube("GET", path) == 200, lambda: f"{path} does not exist")

    def test_kubernetes_api_has_its_own_users(self):
        tokens = self.scratch / "tokens"
        tokens.write_text("kt,jane,1\n")
        server = self.serving_kube(f"--kube-token-file={tokens}")
        self.enable(server)
        kind = {"metadata": {"name": "things.example.org"}, "spec": {
            "group": "example.org", "scope": "Namespaced",
            "names": {"plural": "things", "singular": "thing", "kind": "Thing"},
            "versions": [{"name": "v1", "served": True, "storage": True,
                          "schema": {"openAPIV3Schema": {"type": "object"}}}]}}
        self.assertEqual(self.kube("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", kind), 201)
        self.kube_has("/apis/example.org/v1/namespaces/here/things")
        server.stop()
        server.start()  # its own reads and writes at the start are allowed, too
        self.kube_has("/apis/example.org/v1/namespaces/here/things")
        self.kube_has("/api/v1/namespaces/default")
        space = "/api/v1/namespaces/here"
        self.assertEqual(self.kube("POST", "/api/v1/namespaces", {"metadata": {"name": "here"}}), 201)
        self.assertEqual(self.kube("POST", f"{space}/configmaps", {"metadata": {"name": "a"}}), 201)
        event = {"metadata": {"name": "e"}, "involvedObject": {"namespace": "here"}}  # has a lease
        self.assertEqual(self.kube("POST", f"{space}/events", event), 201)
        self.assertEqual(self.kube("GET", f"{space}/configmaps/a"), 200)
        self.assertEqual(self.kube("DELETE", space), 200)
        self.eventually(lambda: self.kube("GET", space) == 404, lambda: "the namespace still exists")
        self.assertEqual(self.call(server, "kv/range", {"key": b64("x")})[0], 400)
        self.assertNotIn("user name is empty", server.log)  # every operation had a user

    def serving_kube(self, *args):
        self.kube_port = free_port()
        return self.serving(args=[*EASY, f"--listen-kube-urls=http://127.0.0.1:{self.kube_port}", *args])

    def test_kubernetes_api_without_users_is_closed(self):
        server = self.serving_kube()
        maps = "/api/v1/namespaces/default/configmaps"
        self.kube_has("/api/v1/namespaces/default")
        url = f"http://127.0.0.1:{self.kube_port}{maps}?watch=true"
        with urllib.request.urlopen(url, timeout=60) as watch:
            self.assertEqual(self.kube("POST", maps, {"metadata": {"name": "before"}}), 201)
            self.assertIn(b'"before"', watch.readline())
            self.enable(server)
            # An open watch ends with the reason, without waiting for the next event.
            last = json.loads(watch.readline())
            self.assertEqual((last["type"], last["object"]["code"], last["object"]["reason"]),
                             ("ERROR", 401, "Unauthorized"))
            self.assertIn("--kube-token-file", last["object"]["message"])
            self.assertEqual(watch.readline(), b"")
            root = self.login(server, "root", "root's secret")
            value = b64('{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"after","namespace":"default"}}')
            self.must(server, "kv/put", {"key": b64("/registry/configmaps/default/after"), "value": value}, root)
        for method, path in (("GET", maps), ("GET", "/api"), ("GET", "/metrics"), ("DELETE", f"{maps}/before")):
            with self.subTest(method=method, path=path):
                self.assertEqual(self.kube(method, path), 401)
        self.assertEqual(self.kube("POST", maps, {"metadata": {"name": "b"}}), 401)
        self.assertEqual(self.kube("GET", "/readyz"), 200)
        self.must(server, "auth/disable", {}, root)
        self.assertEqual(self.kube("GET", f"{maps}/after"), 200)

    def test_open_kubernetes_connection_follows_auth_enable_and_disable(self):
        server = self.serving_kube()
        self.kube_has("/api/v1/namespaces/default")
        connection = http.client.HTTPConnection("127.0.0.1", self.kube_port, timeout=60)

        def get():
            connection.request("GET", "/api/v1/namespaces/default")
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())

        self.assertEqual(get()[0], 200)
        self.enable(server)
        code, status = get()
        self.assertEqual((code, status["kind"], status["reason"]), (401, "Status", "Unauthorized"))
        self.assertIn("--kube-token-file", status["message"])
        self.must(server, "auth/disable", {}, self.login(server, "root", "root's secret"))
        self.assertEqual(get()[0], 200)
        connection.close()

    def test_kubernetes_api_stays_closed_after_a_restart_with_authentication(self):
        server = self.serving_kube()
        self.kube_has("/api/v1/namespaces/default")
        self.assertNotIn("authentication is enabled in this store", server.log)
        self.enable(server)
        server.stop()
        server.start()
        self.assert_logged(server, "authentication is enabled in this store")
        self.assertEqual(self.kube("GET", "/api/v1/namespaces/default"), 401)
        self.must(server, "auth/disable", {}, self.login(server, "root", "root's secret"))
        self.assertEqual(self.kube("GET", "/api/v1/namespaces/default"), 200)

    def test_kubernetes_api_accepts_certificates_of_users_with_all_its_keys(self):
        authority = Authority(self.scratch / "certs")
        identity = authority.sign("server")
        people = {name: authority.sign(name, names=None) for name in ("root", "anna", "kate", "unknown")}
        port = free_port()
        server = self.serving(args=[*EASY, f"--listen-kube-urls=https://127.0.0.1:{port}",
                                    "--cert-file", identity.cert, "--key-file", identity.key,
                                    "--client-cert-auth", "--trusted-ca-file", authority.cert])

        def status(name):
            context = ssl._create_unverified_context()
            context.load_cert_chain(people[name].cert, people[name].key)
            connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=60, context=context)
            with contextlib.closing(connection):
                connection.request("GET", "/api/v1/secrets")
                return connection.getresponse().status

        self.assertEqual({name: status(name) for name in people}, dict.fromkeys(people, 200))
        self.enable(server, anna={"options": {"no_password": True}}, kate={"options": {"no_password": True}})
        root = self.login(server, "root", "root's secret")
        grant = {"key": b64("/registry/"), "range_end": b64("/registry0")}
        self.must(server, "auth/role/grant", {"name": "anna", "perm": {"permType": "READ", **grant}}, root)
        self.must(server, "auth/role/grant", {"name": "kate", "perm": {"permType": "READWRITE", **grant}}, root)
        self.assertEqual({name: status(name) for name in people},
                         {"root": 200, "kate": 200, "anna": 401, "unknown": 401})

    def test_v2_api_is_closed_while_authentication_is_enabled(self):
        server = self.serving(args=EASY + ["--enable-v2"])
        paths = ["keys/a", "keys/?wait=true", "members", "machines", "stats/self"]

        def status(path):
            try:
                with urllib.request.urlopen(f"{server.url}/v2/{path}", timeout=60) as answer:
                    return answer.status, answer.read()
            except urllib.error.HTTPError as error:
                with error:
                    return error.code, error.read()

        self.assertEqual(status("members")[0], 200)
        self.enable(server)
        for path in paths:
            with self.subTest(path=path):
                code, text = status(path)
                self.assertEqual(code, 401, text)
                self.assertIn("Insufficient credentials", text.decode())
        self.assertEqual(json.loads(status("keys/a")[1])["errorCode"], 110)
        self.must(server, "auth/disable", {}, self.login(server, "root", "root's secret"))
        self.assertEqual(status("members")[0], 200)
        self.assertEqual(status("keys/a")[0], 404)

    def test_health_needs_no_credentials(self):
        server = self.serving(args=EASY)
        self.enable(server)
        for path in ("health", "livez", "readyz", "version", "metrics"):
            with urllib.request.urlopen(f"{server.url}/{path}", timeout=60) as answer:
                self.assertEqual(answer.status, 200)


if __name__ == "__main__":
    unittest.main()
