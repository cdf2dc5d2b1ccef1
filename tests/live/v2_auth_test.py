#!/usr/bin/python3
"""Users and roles of the v2 API: every answer compared with a real etcd 3.4, and behaviour that only Vigil has."""
import base64
import concurrent.futures
import json
import os
import re
import socket
import subprocess
import unittest
import urllib.error
import urllib.request

from certs import Authority
from server import SUBJECT, LiveTest, is_etcd, only_vigil

ETCD = "/usr/bin/etcd"  # Debian's etcd 3.4, the last version with the v2 API


def send(url, method, path, body=None, user=None, fields=None):
    """Sends a request; returns status, content type and body."""
    data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
    request = urllib.request.Request(url + path, data, fields or {}, method=method)
    if user:
        request.add_header("Authorization", "Basic " + base64.b64encode(user.encode()).decode())
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, answer.headers.get("Content-Type"), answer.read().decode()
    except urllib.error.HTTPError as e:
        with e:
            return e.code, e.headers.get("Content-Type"), e.read().decode()


def user(name, **more):
    return ("PUT", f"/v2/auth/users/{name}", {"user": name, **more})


def role(name, **more):
    return ("PUT", f"/v2/auth/roles/{name}", {"role": name, **more})


def kv(read=None, write=None):
    return {"kv": {"read": read, "write": write}}


ROOT, ANNA = "root:r:pw", "anna:a"

OPEN = (
    ("GET", "/v2/auth/enable"), ("PUT", "/v2/auth/enable"), ("DELETE", "/v2/auth/enable"), ("POST", "/v2/auth/enable"),
    ("GET", "/v2/auth/users"), ("GET", "/v2/auth/users/"), ("GET", "/v2/auth/users/nobody"), ("PUT", "/v2/auth/users"),
    ("GET", "/v2/auth/roles"), ("GET", "/v2/auth/roles/"), ("GET", "/v2/auth/roles/none"), ("GET", "/v2/auth/roles/root"),
    ("GET", "/v2/auth/users/a/b"), ("GET", "/v2/auth/roles/a/b/"), ("POST", "/v2/auth/roles/a"), ("GET", "/v2/auth"),
    # Bodies.
    ("PUT", "/v2/auth/users/a"), ("PUT", "/v2/auth/users/a", b"{"), ("PUT", "/v2/auth/users/a", b"[]"),
    ("PUT", "/v2/auth/users/a", b"null"), ("PUT", "/v2/auth/users/a", b'{"user":"b"}'),
    ("PUT", "/v2/auth/users/a", b'{"user":1}'), ("PUT", "/v2/auth/users/a", b'{"user":"a","roles":"x"}'),
    ("PUT", "/v2/auth/roles/a", b"{"), ("PUT", "/v2/auth/roles/a", b'{"role":"b"}'),
    ("PUT", "/v2/auth/roles/a", b'{"role":"a","permissions":[]}'),
    # Users.
    user("a"), user("anna", password="a"), user("anna", password="b", roles=["x"]), user("anna"), user("anna"),
    user("anna", grant=["reader"]), user("anna", grant=["reader"]), user("anna", revoke=["other"]),
    ("GET", "/v2/auth/users/anna"), ("GET", "/v2/auth/users"), user("anna", grant=["x", "w", "x"]),
    user("anna", grant=["w"], roles=["x"]), user("nobody", grant=["x"]), user("bert", password="b", roles=["z", "y"]),
    user("bert", grant=["a"], revoke=["z", "a"]), user("bert", grant=[], revoke=[]), user("bert", password="c"),
    ("PUT", "/v2/auth/users/%20%C3%A9", {"user": " é", "password": "x"}), ("DELETE", "/v2/auth/users/%20%C3%A9"),
    ("DELETE", "/v2/auth/users/nobody"), ("PUT", "/v2/auth/users/anna", b'{"user":"anna","other":[1],"grant":null}'),
    # Roles.
    role("reader", permissions=kv(["/a/*", "/b"])), role("reader"), role("root"), role("root", grant=kv(["/x"])),
    role("reader", grant=kv(["/c"], ["/w"])), role("reader", grant=kv(["/c"])), role("reader", grant=kv(None, ["/w"])),
    role("reader", revoke=kv(["/none"])), role("reader", grant=kv(["/d"]), revoke=kv(["/d", "/c"])),
    role("none", grant=kv(["/d"])), role("reader", permissions=kv(["/q"]), grant=kv(["/d"])),
    role("empty"), ("GET", "/v2/auth/roles/empty"), role("empty", grant=kv([])), role("empty", grant=kv(["/z", "/y"])),
    role("zoe", permissions=kv([], [])), ("GET", "/v2/auth/roles/zoe"), role("zoe", revoke=kv(["/x"])),
    ("GET", "/v2/auth/roles"), ("DELETE", "/v2/auth/roles/root"), ("DELETE", "/v2/auth/roles/zoe"),
    ("DELETE", "/v2/auth/roles/zoe"), ("GET", "/v2/auth/users/anna"), ("GET", "/v2/auth/users"),
    # The user root, which is required.
    user("root", password="r:pw"), user("root", revoke=["root"]), user("root"), ("GET", "/v2/auth/users/root"),
    ("PUT", "/v2/auth/enable"),
)

GUARDED = (
    ("PUT", "/v2/auth/enable"), ("GET", "/v2/auth/enable"), ("GET", "/v2/auth/users"),
    ("PUT", "/v2/auth/enable", None, ROOT), ("GET", "/v2/auth/users", None, ROOT),
    ("GET", "/v2/auth/users", None, ANNA), ("GET", "/v2/auth/roles", None, "root:wrong"),
    ("GET", "/v2/auth/roles", None, "nobody:pw"), ("GET", "/v2/auth/roles", None, ROOT),
    ("DELETE", "/v2/auth/users/root", None, ROOT), ("DELETE", "/v2/auth/roles/zoe", None, ROOT),
    (*role("guest", revoke=kv(["/*"], ["/*"])), ROOT), (*role("guest", grant=kv(["/pub/*"], ["/box"])), ROOT),
    ("POST", "/v2/members", b"{}"), ("DELETE", "/v2/members/1", None, ANNA), ("POST", "/v2/members", b"{}", ANNA),
)

# Method, path and user. Only status and content type are compared, and the body of a refusal.
KEYS = tuple(
    (method, path, who)
    for who in (None, ROOT, ANNA)
    for method, path in (
        ("PUT", "/a"), ("PUT", "/a/x"), ("PUT", "/box"), ("PUT", "/w"), ("GET", "/a"), ("GET", "/a/"), ("GET", "/a/x"),
        ("GET", "/b?recursive=true"), ("GET", "/a/x?recursive=true"), ("GET", "/"), ("GET", ""), ("GET", "?recursive=true"),
        ("GET", "/pub/x"), ("HEAD", "/box"), ("DELETE", "/box?recursive=true"), ("DELETE", "/w"))
    if not (who is None and "recursive" in path)) + (
        ("GET", "/a/x", "anna:wrong"), ("GET", "/a/x", "anna:"), ("GET", "/pub/x", "nobody:a"), ("GET", "/a/x", "anna"),
        ("DELETE", "/none", ROOT))


@only_vigil
@unittest.skipUnless(os.access(ETCD, os.X_OK), "no etcd 3.4 (Debian's etcd-server)")
class SameUsers(LiveTest):
    maxDiff = None

    def setUp(self):
        super().setUp()
        self.urls = [self.serving(self.scratch / "vigil", args=["--enable-v2", "--bcrypt-cost", "4"]).url,
                     self.serving(self.scratch / "etcd", args=["--enable-v2"], binary=ETCD).url]

    def same(self, *request):
        answers = [send(url, *request) for url in self.urls]
        self.assertEqual(*answers)
        return answers[0]

    def test_every_answer(self):
        for i, request in enumerate(OPEN + GUARDED):
            with self.subTest(i=i, request=request):
                self.same(*request)
        self.assertEqual(self.same("GET", "/v2/auth/enable")[2], '{"enabled":true}\n')
        seen = set()
        for i, (method, path, who) in enumerate(KEYS):
            with self.subTest(i=i, method=method, path=path, who=who):
                body = b"value=1" if method == "PUT" else None
                ours, etcds = (send(url, method, "/v2/keys" + path, body, who) for url in self.urls)
                self.assertEqual(ours[:2], etcds[:2])
                seen.add(ours[0])
                if ours[0] == 401:
                    self.assertEqual(ours, etcds)
        self.assertTrue({200, 201, 401} <= seen, seen)
        self.assertEqual(self.same("DELETE", "/v2/auth/enable", None, ANNA)[0], 401)
        self.assertEqual(self.same("DELETE", "/v2/auth/enable", None, ROOT)[0], 200)
        self.same("DELETE", "/v2/auth/users/root")

    def test_fields_of_authorization(self):
        for request in (user("root", password="p"), ("PUT", "/v2/auth/enable")):
            self.assertIn(self.same(*request)[0], (200, 201))
        good = base64.b64encode(b"root:p").decode()
        for field in (f"Basic {good}", f"basic {good}", f"Basic  {good}", f"Bearer {good}", good, "Basic", "Basic !", "Basic cm9vdA==",
                      "Basic " + "A" * 6000, "", " "):
            for path in ("/v2/auth/users", "/v2/keys/"):
                with self.subTest(field=field[:40], path=path):
                    self.same("GET", path, None, None, {"Authorization": field})

    def test_body_that_asks_for_more_than_the_head(self):
        for request in (user("root", password="p"), user("anna", password="a", roles=["w"]), role("w", permissions=kv([], ["/box"])),
                        role("guest"), ("PUT", "/v2/auth/enable")):
            self.assertIn(self.same(*request)[0], (200, 201))
        for path, body, code in (("/box", b"value=1", 201), ("/box", b"value=1&recursive=true", 401),
                                 ("/box?recursive=true", b"value=1", 401),
                                 ("/box?recursive=true", b"value=1&recursive=false", 200), ("/no", b"value=1", 401)):
            answers = [send(url, "PUT", "/v2/keys" + path, body, ANNA)[0] for url in self.urls]
            self.assertEqual(answers, [code, code], (path, body))


class Users(LiveTest):
    def setUp(self):
        super().setUp()
        self.vigil = self.serving(args=["--enable-v2"] + ([] if is_etcd(SUBJECT) else ["--bcrypt-cost", "4"]))

    def send(self, *request, **options):
        return send(self.vigil.url, *request, **options)

    def enable(self):
        for request in (user("root", password="p"), user("anna", password="a", roles=["r"]),
                        role("r", permissions=kv(["/a/*"])), role("guest"), ("PUT", "/v2/auth/enable")):
            self.assertIn(self.send(*request)[0], (200, 201))

    def test_rights_survive_a_restart(self):
        self.enable()
        self.vigil.stop()
        self.vigil.start()
        self.assertEqual(self.send("GET", "/v2/auth/enable")[2], '{"enabled":true}\n')
        self.assertEqual(self.send("PUT", "/v2/keys/a/x", b"value=1")[0], 401)
        self.assertEqual(self.send("PUT", "/v2/keys/a/x", b"value=1", "root:p")[0], 201)
        self.assertEqual(self.send("GET", "/v2/keys/a/x", None, "anna:a")[0], 200)
        self.assertEqual(self.send("GET", "/v2/keys/a/x", None, "anna:b")[0], 401)
        self.assertEqual(self.send("PUT", "/v2/keys/a/x", b"value=2", "anna:a")[0], 401)

    def exchange(self, request, more=b"", until=None):
        """Sends a request, waits for some text of the answer if it is given, and sends more. Returns everything received."""
        with socket.create_connection(("127.0.0.1", self.vigil.port), 60) as s:
            s.sendall(request)
            answer = b""
            while until and until not in answer:
                piece = s.recv(4096)
                self.assertTrue(piece, answer)
                answer += piece
            s.sendall(more)
            return answer + s.makefile("rb").read()

    @only_vigil
    def test_password_is_checked_before_the_body(self):
        self.enable()
        kind = "Content-Type: application/x-www-form-urlencoded\r\n"

        def head(who, fields, path="/v2/keys/a/x"):
            basic = base64.b64encode(who.encode()).decode()
            return f"PUT {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Basic {basic}\r\n{kind}{fields}\r\n".encode()

        refused = self.exchange(head("root:wrong", "Content-Length: 1000000\r\n"))
        self.assertTrue(refused.startswith(b"HTTP/1.1 401 "), refused)
        refused = self.exchange(head("root:wrong", "Content-Length: 7\r\nExpect: 100-continue\r\n"))
        self.assertTrue(refused.startswith(b"HTTP/1.1 401 "), refused)
        expected = self.exchange(head("root:p", "Content-Length: 7\r\nExpect: 100-continue\r\nConnection: close\r\n"),
                                 b"value=1", until=b"HTTP/1.1 100 Continue\r\n\r\n")
        self.assertIn(b"\r\n\r\nHTTP/1.1 201 ", expected)
        # Pipelined: a short body of a wrong password, then bodies with a length and in chunks.
        many = self.exchange(
            head("root:wrong", "Content-Length: 7\r\n") + b"value=2" + head("root:p", "Content-Length: 7\r\n") + b"value=3" +
            head("root:p", "Transfer-Encoding: chunked\r\n") + b"5\r\nvalue\r\n2\r\n=4\r\n0\r\n\r\n" +
            head("root:p", "Connection: close\r\nContent-Length: 7\r\n", "/v2/keys/a/y") + b"value=5")
        self.assertEqual(re.findall(rb"HTTP/1.1 (\d+)", many), [b"401", b"200", b"200", b"201"])
        for path, value in (("/v2/keys/a/x", "4"), ("/v2/keys/a/y", "5")):
            self.assertEqual(json.loads(self.send("GET", path, None, "anna:a")[2])["node"]["value"], value)

    @only_vigil
    def test_long_bodies_of_users(self):
        self.enable()
        value = "x" * 1_000_000
        (self.scratch / "body").write_text("value=" + value)
        for version in ("--http1.1", "--http2-prior-knowledge"):
            for more in ([], ["-H", "Transfer-Encoding: chunked"]):
                command = ["curl", "-sS", "-m", "60", version, "-u", "root:p", "-X", "PUT", f"{self.vigil.url}/v2/keys/a/long", *more,
                           "--data-binary", f"@{self.scratch}/body", "-o", "/dev/null", "-w", "%{http_code}"]
                with self.subTest(version=version, more=more):
                    run = subprocess.run(command, capture_output=True, text=True, timeout=90, check=False)
                    self.assertEqual(run.stdout, "201", run.stderr)
                self.assertEqual(json.loads(self.send("GET", "/v2/keys/a/long", None, "anna:a")[2])["node"]["value"], value)
                self.assertEqual(self.send("DELETE", "/v2/keys/a/long", None, "root:p")[0], 200)

    @only_vigil
    def test_empty_user_name_is_refused(self):
        """A real etcd closes the connection."""
        self.enable()
        self.assertEqual(self.send("GET", "/v2/keys/a/x", None, ":")[0], 401)
        self.assertEqual(self.send("GET", "/v2/auth/users", None, ":p")[0], 401)

    def test_concurrent_changes_are_all_kept(self):
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            codes = list(pool.map(lambda i: self.send(*role(f"r{i}"))[0], range(24)))
        self.assertEqual(codes, [201] * 24)
        names = {r["role"] for r in json.loads(self.send("GET", "/v2/auth/roles")[2])["roles"]}
        self.assertEqual(names, {"root"} | {f"r{i}" for i in range(24)})

    @only_vigil
    def test_limits(self):
        self.assertEqual(self.send("PUT", "/v2/auth/users/a", b" " * (64 << 10) + b"{}")[0], 413)
        self.assertEqual(self.send(*user("u" * 501, password="x"))[0], 400)
        self.assertEqual(self.send(*user("u", password="x" * 73))[0], 400)
        self.assertEqual(self.send(*user("u", password="x", roles=[f"{i}" for i in range(257)]))[0], 400)
        self.assertEqual(self.send("PUT", "/v2/auth/users/a", b"[" * 60000)[0], 400)
        patterns = [f"/{i:0498}" for i in range(120)]
        codes = [self.send(*role(f"r{i}", permissions=kv(patterns)))[0] for i in range(3)]
        self.assertEqual(codes, [201, 201, 400])  # 128 KiB in total
        self.assertEqual(self.send("GET", "/v2/auth/roles/r2")[0], 404)
        self.assertEqual(self.send("DELETE", "/v2/auth/roles/r1")[0], 200)

    @only_vigil
    def test_too_long_list_of_users_is_refused(self):
        self.assertEqual(self.send(*role("big", permissions=kv([f"/{i:0498}" for i in range(120)])))[0], 201)
        for i in range(90):
            self.assertEqual(self.send(*user(f"u{i}", password="x", roles=["big"]))[0], 200)
        self.assertEqual(self.send("GET", "/v2/auth/users")[0], 500)
        self.assertEqual(self.send("GET", "/v2/auth/users/u1")[0], 200)

    @only_vigil
    def test_unreadable_rights_permit_nothing(self):
        self.enable()
        for value in ("", "{", '{"enabled":false}'):
            subprocess.run(["etcdctl", "--endpoints", self.vigil.url, "put", "--", "_vigil/v2/security", value],
                           env=dict(os.environ, ETCDCTL_API="3"), check=True, capture_output=True, timeout=60)
            self.assertEqual(self.send("GET", "/v2/keys/a", None, "root:p")[0], 500)
            self.assertEqual(self.send("GET", "/v2/auth/users", None, "root:p")[0], 500)
            self.assertEqual(self.send(*user("root", password="q"))[0], 500)

    @only_vigil
    def test_guest_reads_below_a_key_only_with_a_star(self):
        self.enable()
        self.assertEqual(self.send(*role("guest", grant=kv(["/d"], ["/d"])), "root:p")[0], 200)
        self.assertEqual(self.send("PUT", "/v2/keys/d/x", b"value=1", "root:p")[0], 201)
        self.assertEqual(self.send("GET", "/v2/keys/d")[0], 200)
        self.assertEqual(self.send("GET", "/v2/keys/d?recursive=true")[0], 401)
        self.assertEqual(self.send("DELETE", "/v2/keys/d?recursive=true")[0], 401)

    @only_vigil
    def test_v2_api_is_closed_while_v3_authentication_is_enabled(self):
        self.enable()
        for command in ("user add root:x", "user grant-role root root", "auth enable"):
            subprocess.run(["etcdctl", "--endpoints", self.vigil.url, *command.split()],
                           env=dict(os.environ, ETCDCTL_API="3"), check=True, capture_output=True, timeout=60)
        for path in ("/v2/auth/enable", "/v2/auth/users", "/v2/auth/roles/r", "/v2/keys/a"):
            self.assertEqual(self.send("GET", path, None, "root:p")[0], 401)


class Certificates(LiveTest):
    """With --client-cert-auth the common name of a certificate is a user."""

    def test_common_names_are_users(self):
        ca = Authority(self.scratch / "certs")
        server = ca.sign("server")
        vigil = self.server(args=["--enable-v2", "--cert-file", server.cert, "--key-file", server.key,
                                  "--client-cert-auth", "--trusted-ca-file", ca.cert])
        vigil.url = vigil.listen = vigil.url.replace("http:", "https:")
        self.addCleanup(vigil.stop)
        vigil.start()

        def curl(who, method, path, body=None, user=None):
            command = ["curl", "-sS", "-m", "60", "--cacert", ca.cert, "--cert", who.cert, "--key", who.key, "-X", method,
                       vigil.url + path, "-o", "/dev/null", "-w", "%{http_code}"]
            command += ["-d", body] if body else []
            command += ["-u", user] if user else []
            return int(subprocess.run(command, capture_output=True, timeout=90, check=True).stdout)

        anna, root, unknown = ca.sign("anna"), ca.sign("root"), ca.sign("unknown")
        for _, path, body in (user("root", password="p"), user("anna", password="a", roles=["r"]),
                              role("r", permissions=kv(None, ["/a"])), role("guest", permissions=kv(["/g"])),
                              ("PUT", "/v2/auth/enable", {})):
            self.assertIn(curl(unknown, "PUT", path, json.dumps(body)), (200, 201))
        self.assertEqual(curl(anna, "PUT", "/v2/keys/a", "value=1"), 201)
        self.assertEqual(curl(anna, "GET", "/v2/keys/a"), 401)
        self.assertEqual(curl(anna, "GET", "/v2/auth/users"), 401)
        self.assertEqual(curl(root, "GET", "/v2/auth/users"), 200)
        self.assertEqual(curl(root, "GET", "/v2/keys/a"), 200)
        self.assertEqual(curl(root, "GET", "/v2/keys/a", user="anna:a"), 401)  # the password takes precedence over the certificate
        self.assertEqual(curl(root, "GET", "/v2/keys/a", user="root:wrong"), 401)
        self.assertEqual(curl(unknown, "GET", "/v2/keys/a"), 401)
        self.assertEqual(curl(unknown, "GET", "/v2/keys/g"), 404)
        self.assertEqual(curl(unknown, "GET", "/v2/auth/users"), 401)


if __name__ == "__main__":
    unittest.main()
