#!/usr/bin/python3
"""What the watch tier passes on to a kube-apiserver, played by a small program: long bodies, upgrades, ends."""
import contextlib
import hashlib
import http.client
import socket
import socketserver
import ssl
import threading
import unittest

from certs import Authority
from server import WAIT_SECONDS, LiveTest, only_vigil
from tier import Caller, Tier

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
            method, path, _ = line.decode().split()
            headers = http.client.parse_headers(self.file)
            self.server.note("head", method, path, headers)
            getattr(self, path.split("?")[0].rsplit("/", 1)[-1])(headers)

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
        """Requests; without those with which the tier follows roles."""
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

    def test_stop_does_not_wait_for_an_upgraded_connection(self):
        sock = self.connected()
        with self.upgrade(sock) as file:
            self.tier.stop()
            self.assertEqual(file.read(), b"")


if __name__ == "__main__":
    unittest.main()
