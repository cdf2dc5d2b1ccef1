#!/usr/bin/python3
"""What the watch tier passes on to a kube-apiserver, played by a small program: long bodies, upgrades, ends."""
import contextlib
import hashlib
import http.client
import json
import socket
import socketserver
import ssl
import subprocess
import threading
import unittest

from certs import Authority
from server import WAIT_SECONDS, LiveTest, only_vigil
from tier import Caller, Tier, write_kubeconfig

LONG = 64 * 1024 * 1024
PIECE = b"0123456789abcdef" * 4096
HELD_KB = 24 * 1024  # that the tier may hold more while one long body passes


class Upstream(socketserver.ThreadingTCPServer):
    """Speaks HTTP/1.1 over TLS, and does what the path says."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, identity):
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(identity.cert, identity.key)
        super().__init__(("127.0.0.1", 0), Handler)
        self.seen, self.lock = [], threading.Lock()
        self.go = threading.Event()  # handlers that wait may continue
        self.good_tokens, self.allows = {"a-token"}, True  # reviews
        self.own = None  # the token of the tier's account; None: any
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def note(self, *what):
        with self.lock:
            self.seen.append(what)

    def noted(self, what):
        with self.lock:
            return [s for s in self.seen if s[0] == what]

    def handle_error(self, request, client_address):
        pass


class Handler(socketserver.BaseRequestHandler):
    def setup(self):
        self.request.settimeout(WAIT_SECONDS)
        self.socket = self.server.context.wrap_socket(self.request, server_side=True)
        self.file = self.socket.makefile("rb")

    def handle(self):
        while line := self.file.readline():
            method, self.path, _ = line.decode().split()
            headers = http.client.parse_headers(self.file)
            self.server.note("head", method, self.path, headers)
            getattr(self, self.path.split("?")[0].rsplit("/", 1)[-1])(headers)

    def answer(self, status, *headers, body=b""):
        self.socket.sendall("\r\n".join([f"HTTP/1.1 {status}", *headers, "", ""]).encode() + body)

    def chunks(self):
        while size := int(self.file.readline(), 16):
            yield self.file.read(size)
            self.file.readline()
        self.file.readline()

    def upload(self, headers):
        digest, count = hashlib.sha256(), 0
        if headers["Transfer-Encoding"]:
            pieces = self.chunks()
        else:
            left = int(headers["Content-Length"])
            pieces = iter(lambda: self.file.read(min(left - count, len(PIECE))), b"")
        self.server.go.wait(WAIT_SECONDS)
        for piece in pieces:
            digest.update(piece)
            count += len(piece)
        text = f"{count} {digest.hexdigest()}".encode()
        self.answer("200 OK", f"Content-Length: {len(text)}", body=text)

    def download(self, headers):
        self.answer("200 OK", "Transfer-Encoding: chunked")
        for sent in range(0, LONG, len(PIECE)):
            self.socket.sendall(b"%x\r\n" % len(PIECE) + PIECE + b"\r\n")
            self.server.note("sent", sent)
        self.answer("", body=b"")

    def slow(self, headers):
        self.answer("200 OK", "Transfer-Encoding: chunked", body=b"5\r\nfirst\r\n")
        with contextlib.suppress(OSError):
            self.socket.recv(1)
        self.server.note("left")

    def upgrade(self, headers):
        self.server.note("upgrade", headers["Connection"], headers["Upgrade"])
        self.answer("101 Switching Protocols", "Connection: Upgrade", "Upgrade: test/1", body=b"hello ")
        while piece := self.socket.recv(65536):
            self.socket.sendall(piece)
        self.socket.sendall(b" bye")
        self.socket.unwrap()
        self.request.close()

    def pods(self, headers):
        if headers["Upgrade"]:
            self.answer("101 Switching Protocols", "Connection: Upgrade", "Upgrade: websocket", body=b"frames")
            self.socket.unwrap()
            self.request.close()
        else:
            self.answer("401 Unauthorized", "Content-Length: 2", body=b"no")

    def forbidden(self, headers):
        self.answer("403 Forbidden", "Content-Length: 2", body=b"no")

    roles = rolebindings = clusterroles = clusterrolebindings = forbidden

    def endpoints(self, headers):
        """They cannot be listed, and so not be mirrored."""
        if "watch=1" in self.path:
            self.slow(headers)
        else:
            self.forbidden(headers)

    def send(self, status, body):
        text = json.dumps(body).encode()
        self.answer(status, "Content-Type: application/json", f"Content-Length: {len(text)}", body=text)

    def tokenreviews(self, headers):
        given = json.loads(self.file.read(int(headers["Content-Length"])))
        good = given["spec"]["token"] in self.server.good_tokens
        self.send("201 Created", {**given, "status": {"authenticated": good, "user": {"username": "jane"} if good else {}}})

    def subjectaccessreviews(self, headers):
        self.send("201 Created", {**json.loads(self.file.read(int(headers["Content-Length"]))), "status": {"allowed": self.server.allows}})

    def impersonate(self, headers):
        """As a kube-apiserver whose caller may not."""
        if self.server.own and headers["Authorization"] != f"Bearer {self.server.own}":
            self.send("401 Unauthorized", {"kind": "Status", "apiVersion": "v1", "code": 401, "reason": "Unauthorized"})
        else:
            self.send("403 Forbidden", {
                "kind": "Status", "apiVersion": "v1", "code": 403, "reason": "Forbidden",
                "message": 'users "jack" is forbidden: User "tier" cannot impersonate resource "users" in API group ""'})


@only_vigil
class KubeTierForward(LiveTest):
    def setUp(self):
        super().setUp()
        self.upstream = Upstream(Authority(self.scratch / "upstream").sign("server"))
        self.addCleanup(self.upstream.server_close)
        self.addCleanup(self.upstream.shutdown)
        self.tier = Tier(self.scratch, f"https://127.0.0.1:{self.upstream.server_address[1]}")
        self.addCleanup(self.tier.close)
        self.tier.start()
        self.caller = Caller(self.tier.port, token="a-token")

    def connected(self):
        """A socket with TLS to the tier."""
        connection = self.caller.connect()
        connection.connect()
        self.addCleanup(connection.close)
        return connection.sock

    @staticmethod
    def read_head(file):
        status = int(file.readline().split()[1])
        return status, http.client.parse_headers(file)

    def test_long_uploads_are_not_held(self):
        body = PIECE * (LONG // len(PIECE))
        expected = f"{LONG} {hashlib.sha256(body).hexdigest()}"
        for chunked in (False, True):
            self.upstream.go.clear()
            before = self.tier.anonymous_kb()
            pieces = iter([body[at:at + len(PIECE)] for at in range(0, LONG, len(PIECE))])
            headers = {"Authorization": "Bearer a-token"} | ({} if chunked else {"Content-Length": str(LONG)})
            with contextlib.closing(self.caller.connect()) as connection:
                sender = threading.Thread(target=connection.request, args=("POST", "/apis/x/upload", pieces, headers),
                                          kwargs={"encode_chunked": chunked}, daemon=True)
                sender.start()
                self.eventually(lambda: len(self.upstream.noted("head")) == 1 + chunked)
                sender.join(1)
                self.assertTrue(sender.is_alive(), "everything was taken although nothing was read")
                self.assertLess(self.tier.anonymous_kb() - before, HELD_KB)
                self.upstream.go.set()
                sender.join(WAIT_SECONDS)
                answer = connection.getresponse()
                self.assertEqual((answer.status, answer.read().decode()), (200, expected))
        self.assertEqual(self.upstream.noted("head")[0][3]["Authorization"], "Bearer a-token")
        self.assertEqual(self.upstream.noted("head")[0][3]["X-Forwarded-For"], "127.0.0.1")

    def test_long_downloads_are_not_held(self):
        before = self.tier.anonymous_kb()
        sock = self.connected()
        sock.sendall(b"GET /apis/x/download HTTP/1.1\r\nHost: t\r\nAuthorization: Bearer t\r\n\r\n")
        self.eventually(lambda: self.upstream.noted("sent"))
        for _ in range(10):
            count = len(self.upstream.noted("sent"))
            threading.Event().wait(0.2)
            if len(self.upstream.noted("sent")) == count:
                break
        self.assertLess(count, LONG // len(PIECE) // 2, "everything was taken although nothing was read")
        self.assertLess(self.tier.anonymous_kb() - before, HELD_KB)
        with sock.makefile("rb") as file:
            status, headers = self.read_head(file)
            self.assertEqual((status, headers["Transfer-Encoding"]), (200, "chunked"))
            received = 0
            while received < LONG:
                size = int(file.readline(), 16)
                received += len(file.read(size))
                file.readline()
        self.assertEqual(received, LONG)

    def test_client_that_leaves_cancels_its_request(self):
        sock = self.connected()
        sock.sendall(b"GET /apis/x/slow HTTP/1.1\r\nHost: t\r\n\r\n")
        with sock.makefile("rb") as file:
            self.assertEqual(self.read_head(file)[0], 200)
            self.assertEqual(file.read(13), b"0005\r\nfirst\r\n")
        sock.close()
        self.eventually(lambda: self.upstream.noted("left"))

    def upgrade(self, sock):
        sock.sendall(b"POST /api/v1/namespaces/d/pods/p/upgrade?a=b HTTP/1.1\r\nHost: t\r\nContent-Length: 0\r\n"
                     b"Connection: keep-alive, Upgrade\r\nUpgrade: test/1\r\nAuthorization: Bearer t\r\n\r\nearly ")
        file = sock.makefile("rb")
        status, headers = self.read_head(file)
        self.assertEqual((status, headers["Connection"], headers["Upgrade"]), (101, "Upgrade", "test/1"))
        self.assertEqual(file.read(12), b"hello early ")
        return file

    def test_upgraded_connection_is_passed_through(self):
        sock = self.connected()
        with self.upgrade(sock) as file:
            for n in range(100):
                text = b"line %d\n" % n
                sock.sendall(text)
                self.assertEqual(file.readline(), text)
            self.assertEqual(self.upstream.noted("upgrade"), [("upgrade", "Upgrade", "test/1")])

    def test_each_direction_of_an_upgrade_ends_alone(self):
        """A client that has sent its close notification still gets what the kube-apiserver sends."""
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        tls = ssl._create_unverified_context().wrap_bio(incoming, outgoing)
        with socket.create_connection(("127.0.0.1", self.tier.port), WAIT_SECONDS) as sock:

            def run(step):
                while True:
                    try:
                        result = step()
                        sock.sendall(outgoing.read())
                        return result
                    except ssl.SSLWantReadError:
                        sock.sendall(outgoing.read())
                        piece = sock.recv(65536)
                        incoming.write(piece) if piece else incoming.write_eof()

            run(tls.do_handshake)
            tls.write(b"GET /api/v1/upgrade HTTP/1.1\r\nHost: t\r\nConnection: Upgrade\r\nUpgrade: test/1\r\n\r\n")
            received = b""
            while not received.endswith(b"hello "):
                received += run(lambda: tls.read(65536))
            tls.write(b"ping")
            with contextlib.suppress(ssl.SSLWantReadError):
                tls.unwrap()
            sock.sendall(outgoing.read())
            with contextlib.suppress(ssl.SSLZeroReturnError):
                while piece := run(lambda: tls.read(65536)):
                    received += piece
        self.assertTrue(received.endswith(b"\r\n\r\nhello ping bye"), received)

    def test_refused_upgrade_is_an_ordinary_answer(self):
        sock = self.connected()
        sock.sendall(b"GET /api/v1/forbidden HTTP/1.1\r\nHost: t\r\nConnection: Upgrade\r\nUpgrade: test/1\r\n\r\n")
        with sock.makefile("rb") as file:
            status, headers = self.read_head(file)
            self.assertEqual((status, file.read(int(headers["Content-Length"]))), (403, b"no"))

    def of_pods(self):
        """Requests; without those of the tier's own account."""
        return [head for head in self.upstream.noted("head") if head[2].startswith("/api/v1/pods")]

    def test_tokens_of_websockets_are_passed_on_untouched(self):
        """Browsers cannot send Authorization with a WebSocket, so the kube-apiserver takes a token from the subprotocols. Such a
        watch must not be answered from the mirror as that of a user without credentials."""
        protocols = "base64url.bearer.authorization.k8s.io.dGhlLXRva2Vu, base64.binary.k8s.io"
        for fields, status in ((b"Connection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n", 101),
                               (b"Connection: Upgrade\r\nUpgrade: WebSocket\r\n", 101),
                               (b"", 401),  # no WebSocket: such a token does not count
                               (b"Upgrade: websocket\r\n", 401)):
            before = len(self.of_pods())
            sock = self.connected()
            sock.sendall(b"GET /api/v1/pods?watch=1&resourceVersion=0 HTTP/1.1\r\nHost: t\r\n" + fields
                         + b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
                         + b"Sec-WebSocket-Protocol: " + protocols.encode() + b"\r\n\r\n")
            with sock.makefile("rb") as file:
                self.assertEqual(self.read_head(file)[0], status, fields)
                self.assertEqual(file.read(6 if status == 101 else 2), b"frames" if status == 101 else b"no")
            (_, method, path, headers), = self.of_pods()[before:]
            self.assertEqual((method, path), ("GET", "/api/v1/pods?watch=1&resourceVersion=0"))
            self.assertEqual(headers["Sec-WebSocket-Protocol"], protocols)
            self.assertEqual(headers["Sec-WebSocket-Key"], "AAAAAAAAAAAAAAAAAAAAAA==")
            self.assertEqual((headers["Upgrade"] or "").lower(), "websocket" if status == 101 else "")
            self.assertIsNone(headers["Authorization"])
        self.assertEqual(self.tier.metric("vigil_tier_watches_total"), 0)
        self.assertEqual(self.tier.metric("vigil_tier_reviews_total"), 0)

    def test_clients_without_rights_start_no_mirror(self):
        self.upstream.allows = False
        callers = {Caller(self.tier.port): 401, Caller(self.tier.port, token="wrong"): 401, self.caller: 403}
        for caller, status in callers.items():
            for query in ("", "?resourceVersion=0", "?watch=1", "?watch=1&resourceVersion=5"):
                for resource in ("pods", "endpoints") if caller.token else ("pods",):
                    for _ in range(10):
                        got = caller.fetch("GET", f"/api/v1/{resource}{query}")[0]
                        self.assertEqual(got, status, (caller.token, resource, query))
        self.assertEqual(self.tier.metric("vigil_tier_collections"), 0)
        self.assertEqual([path for _, _, path, _ in self.upstream.noted("head") if "rbac" in path or "limit=1" in path], [])

    def test_a_watch_that_is_passed_on_ends_with_its_right(self):
        """It begins while the right is there. The tier may not watch roles here, so that it reviews the right when it knows that. It
        tries to watch them only while there is a watch."""
        self.tier.stop()
        self.tier.args = ["--upstream-idle=1s"]
        self.tier.start()
        self.assertEqual(self.caller.get("/api/v1/endpoints?resourceVersion=0")[0], 403)  # by the kube-apiserver
        self.eventually(lambda: self.tier.metric("vigil_tier_collections") == 1)
        events = self.caller.watch("/api/v1/endpoints?watch=1&resourceVersion=5")
        self.addCleanup(events.close)
        self.assertEqual(events.status, 200)
        self.eventually(lambda: self.tier.metric("vigil_tier_standing_watches") == 1)
        self.eventually(lambda: self.tier.metric("vigil_tier_collections") >= 4)
        self.assertFalse(events.ended)
        self.upstream.allows = False
        events.wait_end()
        self.eventually(lambda: self.upstream.noted("left"))
        self.eventually(lambda: self.tier.metric("vigil_tier_standing_watches") == 0)
        self.eventually(lambda: self.tier.metric("vigil_tier_collections") == 0)
        self.assertEqual(self.caller.get("/api/v1/endpoints?watch=1&resourceVersion=5")[0], 403)

    def impersonate(self, identity):
        return Caller(self.tier.port, identity=identity).send("POST", "/api/v1/impersonate", {})

    def test_certificates_are_passed_on_as_they_are_reviewed(self):
        identity = self.tier.authority.sign("jack", groups=["people", "system:authenticated"], uid="u-7")
        self.impersonate(identity)
        headers = self.upstream.noted("head")[-1][3]
        der = subprocess.run(["openssl", "x509", "-in", identity.cert, "-outform", "DER"], capture_output=True, check=True)
        self.assertEqual(headers["Impersonate-User"], "jack")
        self.assertEqual(headers.get_all("Impersonate-Group"), ["people"])
        self.assertEqual(headers["Impersonate-Uid"], "u-7")
        self.assertEqual(headers["Impersonate-Extra-Authentication.kubernetes.io%2fcredential-id"],
                         "X509SHA256=" + hashlib.sha256(der.stdout).hexdigest())
        before = len(self.upstream.noted("head"))
        for uids in (["a", "b"], [" a"]):
            bad = self.tier.authority.sign("jill", uid=uids)
            self.assertIn(self.impersonate(bad)[0], (401, 403), uids)
        self.assertEqual(len(self.upstream.noted("head")), before)

    def test_an_account_that_may_not_impersonate_is_named(self):
        status, body = self.impersonate(self.tier.authority.sign("jack"))
        self.assertEqual((status, body["reason"]), (403, "Forbidden"))
        for part in ("may not impersonate clients with certificates", "grant its account the verb impersonate", "users", "groups",
                     "uids", "userextras/authentication.kubernetes.io/credential-id"):
            self.assertIn(part, body["message"])
        self.assertEqual(self.tier.metric("vigil_tier_impersonations_refused_total"), 1)
        # The refusal of a client is the client's.
        jill = Caller(self.tier.port, identity=self.tier.authority.sign("jill"))
        self.assertEqual(jill.send("POST", "/api/v1/forbidden", {}), (403, "no"))
        self.assertEqual(self.tier.metric("vigil_tier_impersonations_refused_total"), 1)

    def test_credentials_that_are_refused_are_renewed(self):
        """The program of the account is run again because a call in the name of a certificate was refused."""
        script, status = self.scratch / "plugin", self.scratch / "plugin.json"
        script.write_text(f"#!/bin/sh\necho run >>{script}.log\ncat {status}\n")
        script.chmod(0o755)

        def give(token):
            status.write_text(json.dumps({"kind": "ExecCredential", "apiVersion": "client.authentication.k8s.io/v1",
                                          "status": {"token": token}}))
        give("first")
        self.tier.stop()
        self.tier.args = ["--io-threads=1"]  # each has its own credentials
        write_kubeconfig(self.tier.kubeconfig, f"https://127.0.0.1:{self.upstream.server_address[1]}", exec={
            "apiVersion": "client.authentication.k8s.io/v1", "command": str(script), "interactiveMode": "Never"})
        self.tier.start()
        self.upstream.own = "first"
        jack = self.tier.authority.sign("jack")
        self.assertEqual(self.impersonate(jack)[0], 403)
        give("second")
        self.upstream.own = "second"
        self.assertEqual(self.impersonate(jack)[0], 401)
        self.eventually(lambda: self.impersonate(jack)[0] == 403)
        runs = len((self.scratch / "plugin.log").read_text().splitlines())
        # Something behind the kube-apiserver may answer 401 as often as it likes.
        self.upstream.own = "third"
        for _ in range(20):
            self.assertEqual(self.impersonate(jack)[0], 401)
        self.assertEqual(len((self.scratch / "plugin.log").read_text().splitlines()), runs)

    def test_stop_does_not_wait_for_an_upgraded_connection(self):
        sock = self.connected()
        with self.upgrade(sock) as file:
            self.tier.stop()
            self.assertEqual(file.read(), b"")


if __name__ == "__main__":
    unittest.main()
