#!/usr/bin/python3
"""TLS with real clients (etcdctl, curl and Python's ssl): client certificates, files that change under load, error messages,
and attacks. A real etcd passes the tests that are not marked only_vigil."""
import contextlib
import json
import os
import resource
import shutil
import signal
import socket
import ssl
import subprocess
import threading
import time
import unittest

from certs import Authority
from server import GENERATOR, LiveTest, free_port, only_vigil

REJECTED = "rejected connection on client endpoint"
BURST, PER_SECOND = 100, 10  # REJECTIONS_BURST, REJECTIONS_PER_S


def eventually(condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


class TlsTest(LiveTest):
    def setUp(self):
        super().setUp()
        self.ca = Authority(self.scratch / "certs")
        self.identity = self.ca.sign("server")

    def flags(self, *more):
        return ["--cert-file", self.identity.cert, "--key-file", self.identity.key, *more]

    def secure(self, *more, listen=None, **options):
        """A server that listens on https, or on the given URLs."""
        port = free_port()
        url = f"https://127.0.0.1:{port}"
        server = self.server(port=port, listen=listen or url, args=self.flags(*more), **options)
        server.url = url
        return server

    def serving_tls(self, *more, **options):
        server = self.secure(*more, **options).start()
        self.addCleanup(server.stop)
        return server

    def ctl_command(self, server, *args, client=None, ca=None, url=None, patience="60s"):
        flags = ["--endpoints", url or server.url, "--dial-timeout", patience, "--command-timeout", patience]
        if ca is not False:
            flags += ["--cacert", (ca or self.ca).cert]
        if client:
            flags += ["--cert", client.cert, "--key", client.key]
        return ["etcdctl", *flags, *args]

    def ctl(self, server, *args, code=0, **options):
        patience = "1s" if code else "60s"  # etcdctl retries until then if it is refused
        done = subprocess.run(self.ctl_command(server, *args, patience=patience, **options), capture_output=True, text=True,
                              timeout=120, env=dict(os.environ, ETCDCTL_API="3"))
        self.assertEqual(done.returncode, code, done.stdout + done.stderr + server.log)
        return done.stdout if code == 0 else done.stderr

    def rejection_of(self, server, **options):
        """The log line about a client that is rejected. etcdctl tries again and again, and is ended when the line is there."""
        before = len(self.rejections(server))
        with subprocess.Popen(self.ctl_command(server, "get", "a", **options), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                              env=dict(os.environ, ETCDCTL_API="3")) as refused:
            self.assertTrue(eventually(lambda: len(self.rejections(server)) > before), server.log)
            refused.kill()
            self.assertEqual(refused.stdout.read(), b"")
        return self.rejections(server)[before]

    def curl(self, server, path, *args, url=None, code=0):
        done = subprocess.run(["curl", "-sS", "--cacert", self.ca.cert, *args,
                               (url or server.url) + path], capture_output=True, text=True,
                              timeout=120)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr + server.log)
        return done.stdout if code == 0 else done.stderr

    def dial(self, server, client=None, alpn=("http/1.1",), version=None, verify=True):
        context = ssl.create_default_context(cafile=self.ca.cert)
        if not verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if client:
            context.load_cert_chain(client.cert, client.key)
        if version:
            context.minimum_version = context.maximum_version = version
        context.set_alpn_protocols(list(alpn))
        raw = socket.create_connection(("127.0.0.1", server.port), 60)
        try:
            return context.wrap_socket(raw, server_hostname="localhost")
        except BaseException:
            raw.close()
            raise

    def get(self, sock, path="/health"):
        """Sends one request on a connection that stays open; returns the body."""
        sock.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        got = b""
        while b"\r\n\r\n" not in got:
            piece = sock.recv(4096)
            if not piece:
                raise AssertionError(f"the connection ended after {got!r}")
            got += piece
        head, body = got.split(b"\r\n\r\n", 1)
        length = int([line for line in head.lower().split(b"\r\n")
                      if line.startswith(b"content-length:")][0].split(b":")[1])
        while len(body) < length:
            body += sock.recv(4096)
        return body

    def rejections(self, server):
        return [json.loads(line) for line in server.lines if REJECTED in line]


class Clients(TlsTest):
    def test_etcdctl_with_the_authority_puts_gets_and_watches(self):
        server = self.serving_tls()
        watch = subprocess.Popen(["etcdctl", "--endpoints", server.url, "--cacert", self.ca.cert,
                                  "watch", "a", "--rev", "1"], stdout=subprocess.PIPE, text=True,
                                 env=dict(os.environ, ETCDCTL_API="3"))
        self.addCleanup(watch.wait)
        self.addCleanup(watch.kill)
        self.addCleanup(watch.stdout.close)
        self.assertEqual(self.ctl(server, "put", "a", "x" * 100000), "OK\n")
        self.assertEqual(self.ctl(server, "get", "a", "--print-value-only"), "x" * 100000 + "\n")
        self.assertEqual([watch.stdout.readline() for _ in range(3)],
                         ["PUT\n", "a\n", "x" * 100000 + "\n"])
        self.assert_logged(server, "serving client traffic securely")
        self.assertEqual(self.rejections(server), [])

    def test_server_that_the_client_does_not_trust(self):
        server = self.serving_tls()
        unknown = Authority(self.scratch / "others", "other")
        self.assertEqual(self.rejection_of(server, ca=unknown)["error"], "remote error: tls: bad certificate")

    def test_curl(self):
        server = self.serving_tls()
        out = self.curl(server, "/health", "--http1.1", "-w", " %{http_version}")
        self.assertEqual(out, '{"health":"true","reason":""} 1.1')
        self.assertEqual(self.curl(server, "/health", "-w", " %{http_version}"),
                         '{"health":"true","reason":""} 2')
        for version in ("1.2", "1.3"):
            self.curl(server, "/health", "--http1.1", "--tlsv" + version, "--tls-max", version)

    def test_protocols(self):
        server = self.serving_tls()
        for offered, chosen in ((["h2"], "h2"), (["http/1.1", "h2"], "h2")):
            with self.dial(server, alpn=offered) as sock:
                self.assertEqual(sock.selected_alpn_protocol(), chosen)
        with self.assertRaises(ssl.SSLError):
            self.dial(server, alpn=["spdy/3"])

    @only_vigil
    def test_alpn_selects_http_1_1(self):
        with self.dial(self.serving_tls(), alpn=["http/1.1"]) as sock:
            self.assertEqual(sock.selected_alpn_protocol(), "http/1.1")

    def test_plain_http_on_a_tls_port(self):
        server = self.serving_tls()
        subprocess.run(["curl", "-s", f"http://127.0.0.1:{server.port}/health"], timeout=20,
                       capture_output=True)
        self.assertTrue(eventually(lambda: self.rejections(server)))
        self.assertEqual(self.rejections(server)[0]["error"],
                         "tls: first record does not look like a TLS handshake")

    @only_vigil
    def test_plain_http_on_a_tls_port_gets_an_explanation(self):
        server = self.serving_tls()
        done = subprocess.run(["curl", "-s", f"http://127.0.0.1:{server.port}/health"], timeout=20,
                              capture_output=True, text=True)
        self.assertEqual(done.stdout, "Client sent an HTTP request to an HTTPS server.\n")

    @only_vigil
    def test_tls_on_a_plain_port_is_closed_at_once(self):
        """etcd waits for a newline in the greeting, which random bytes may lack."""
        server = self.serving()
        context = ssl.create_default_context()
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        with self.assertRaises(ssl.SSLWantReadError):
            context.wrap_bio(incoming, outgoing, server_hostname="localhost").do_handshake()
        greeting = outgoing.read()
        for first in (greeting, greeting.replace(b"\n", b"x"), greeting[:1]):
            with socket.create_connection(("127.0.0.1", server.port), 30) as sock:
                sock.settimeout(5)  # a request may take longer to arrive
                sock.sendall(first)
                with contextlib.suppress(ConnectionResetError):
                    self.assertEqual(sock.recv(1), b"")

    def test_plain_and_tls_side_by_side_and_on_one_port(self):
        both, plain = free_port(), free_port()
        server = self.server(port=both, listen=f"https://127.0.0.1:{both},http://127.0.0.1:{both},"
                             f"http://127.0.0.1:{plain}", args=self.flags())
        server.url = f"https://127.0.0.1:{both}"
        server.start()
        self.addCleanup(server.stop)
        self.ctl(server, "put", "a", "1")
        for url in (f"http://127.0.0.1:{both}", f"http://127.0.0.1:{plain}"):
            self.assertEqual(self.ctl(server, "get", "a", url=url, ca=False), "a\n1\n")
            self.assertIn("true", self.curl(server, "/health", url=url))
        self.assertIn("true", self.curl(server, "/health", "--http1.1"))
        self.assert_logged(server, "scheme is http or unix while key and cert files are present")

    @only_vigil
    def test_unix_socket(self):
        path = self.scratch / "socket"
        port = free_port()
        server = self.server(port=port, listen=f"unixs://{path}", args=self.flags()).start()
        self.addCleanup(server.stop)
        out = self.curl(server, "/health", "--http1.1", "--unix-socket", str(path),
                        url="https://localhost")
        self.assertIn("true", out)


class ClientCertificates(TlsTest):
    """Client certificates and revocation lists, mostly with --client-cert-auth."""

    def setUp(self):
        super().setUp()
        self.good = self.ca.sign("good", cn="alice", names=None)

    def serving_certified(self, *more):
        return self.serving_tls("--trusted-ca-file", self.ca.cert, "--client-cert-auth", *more)

    def check_refused(self, server, client, error):
        line = self.rejection_of(server, client=client)
        self.assertEqual(line["level"], "warn")
        self.assertTrue(line["remote-addr"].startswith("127.0.0.1:"))
        self.assertIn(error, line["error"])
        return line

    def test_only_certificates_of_the_authority_are_accepted(self):
        server = self.serving_certified()
        self.assertEqual(self.ctl(server, "put", "a", "1", client=self.good), "OK\n")
        self.check_refused(server, None, "tls: client didn't provide a certificate")
        unknown = Authority(self.scratch / "others", "other").sign("unknown")
        self.check_refused(server, unknown, "certificate signed by unknown authority")
        expired = self.ca.sign("expired", days=-1)
        self.check_refused(server, expired, "certificate has expired or is not yet valid")
        self.check_refused(server, self.ca.sign("s", usage="serverAuth"), "incompatible key usage")
        self.assertEqual(self.ctl(server, "get", "a", client=self.good), "a\n1\n")

    def test_trusted_ca_file_alone_requires_certificates(self):
        server = self.serving_tls("--trusted-ca-file", self.ca.cert)
        self.assertEqual(self.ctl(server, "put", "a", "1", client=self.good), "OK\n")
        self.check_refused(server, None, "tls: client didn't provide a certificate")

    def test_revoked_certificates_are_refused_also_when_the_list_changes(self):
        first, second = self.ca.sign("first", names=None), self.ca.sign("second", names="DNS:b.example")
        crl = self.ca.revoke(self.scratch / "crl.der", first)
        server = self.serving_certified("--client-crl-file", crl)
        self.check_refused(server, first, f"transport: certificate serial {first.serial().lower()} revoked")
        self.assertEqual(self.ctl(server, "put", "a", "1", client=second), "OK\n")
        self.ca.revoke(self.scratch / "crl.der", second)
        line = self.check_refused(server, second, "revoked")
        self.assertEqual(line["dns-names"], ["b.example"])
        self.assertEqual(self.ctl(server, "get", "a", client=self.good), "a\n1\n")

    @only_vigil
    def test_revoked_certificates_are_refused_on_http_listeners(self):
        """GHSA-3wh4-j44w-pg92: etcd ignored the revocation list on --listen-client-http-urls."""
        gone = self.ca.sign("gone", names=None)
        crl = self.ca.revoke(self.scratch / "crl.der", gone)
        http = f"https://127.0.0.1:{free_port()}"
        server = self.serving_certified("--client-crl-file", crl, "--listen-client-http-urls", http)
        for identity, code in ((self.good, 0), (gone, 56)):
            self.curl(server, "/health", "--cert", identity.cert, "--key", identity.key, url=http, code=code)
        self.check_refused(server, gone, "revoked")

    @only_vigil
    def test_allowed_common_names(self):
        server = self.serving_certified("--client-cert-allowed-cn", "bob,alice")
        self.assertEqual(self.ctl(server, "put", "a", "1", client=self.good), "OK\n")
        self.check_refused(server, self.ca.sign("mallory"), "client certificate authentication failed")

    def test_allowed_host_names(self):
        server = self.serving_certified("--client-cert-allowed-hostname", "c.example")
        named = self.ca.sign("named", names="DNS:c.example")
        self.assertEqual(self.ctl(server, "put", "a", "1", client=named), "OK\n")
        self.check_refused(server, self.good, "client certificate authentication failed")

    def test_versions(self):
        server = self.serving_tls("--tls-min-version", "TLS1.3")
        with self.dial(server, version=ssl.TLSVersion.TLSv1_3):
            pass
        with self.assertRaises(ssl.SSLError):
            self.dial(server, version=ssl.TLSVersion.TLSv1_2)
        self.assertTrue(eventually(lambda: self.rejections(server)))
        self.assertIn("tls: client offered only unsupported versions",
                      self.rejections(server)[0]["error"])

    def test_cipher_suites(self):
        self.identity = self.ca.sign("rsa", rsa=True)
        server = self.serving_tls("--cipher-suites", "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
                                  "--tls-max-version", "TLS1.2")
        with self.dial(server) as sock:
            self.assertEqual(sock.cipher()[0], "ECDHE-RSA-AES128-GCM-SHA256")

    def test_every_listener_requires_valid_certificates(self):
        """Revocation list and certificates are checked also on separate ports for HTTP."""
        revoked = self.ca.sign("revoked", names=None)
        crl = self.ca.revoke(self.scratch / "crl.der", revoked)
        http, metrics = free_port(), free_port()
        server = self.serving_certified(
            "--client-crl-file", crl, "--listen-client-http-urls", f"https://127.0.0.1:{http}",
            "--listen-metrics-urls", f"https://127.0.0.1:{metrics}")
        for port, path in ((http, "/health"), (metrics, "/metrics")):
            for client, code in ((self.good, 0), (revoked, None), (None, None)):
                shown = ["--cert", client.cert, "--key", client.key] if client else []
                done = subprocess.run(["curl", "-sS", "--cacert", self.ca.cert, *shown,
                                       f"https://127.0.0.1:{port}{path}"], capture_output=True,
                                      timeout=20)
                self.assertEqual(done.returncode == 0, code == 0, done.stderr)
        self.assertEqual(self.ctl(server, "put", "a", "1", client=self.good), "OK\n")
        self.ctl(server, "get", "a", client=revoked, code=1)


class Starting(TlsTest):
    def refused(self, *args, listen=None):
        port = free_port()
        code, log = self.server(port=port, listen=listen or f"https://127.0.0.1:{port}",
                                args=args).refuse()
        self.assertEqual(code, 1, log)
        return log

    def test_https_without_a_certificate(self):
        self.assertIn("TLS key/cert (--cert-file, --key-file) must be provided for client url",
                      self.refused())

    def test_ciphers_with_only_tls_1_3(self):
        self.assertIn("cipher suites cannot be configured when only TLS1.3 is enabled",
                      self.refused(*self.flags("--tls-min-version", "TLS1.3", "--cipher-suites",
                                               "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384")))

    def test_unknown_cipher(self):
        self.assertIn("unexpected TLS cipher suite",
                      self.refused(*self.flags("--cipher-suites", "TLS_X")))

    def test_key_of_another_certificate(self):
        other = self.ca.sign("other")
        self.assertIn("private key does not match public key",
                      self.refused("--cert-file", self.identity.cert, "--key-file", other.key))

    def test_missing_file(self):
        self.assertIn("o such file or directory",
                      self.refused("--cert-file", "/nowhere/c.pem", "--key-file", "/nowhere/k.pem"))

    def test_automatic_certificate_stays_the_same(self):
        port = free_port()
        seen = []
        for _ in range(2):
            server = self.server(port=port, listen=f"https://127.0.0.1:{port}",
                                 args=["--auto-tls", "--self-signed-cert-validity", "2"]).start()
            own = self.scratch / "data/fixtures/client/cert.pem"
            seen.append(own.read_text())
            self.assertEqual(self.ctl(server, "put", "a", "1", url=f"https://127.0.0.1:{port}",
                                      ca=type("Own", (), {"cert": str(own)})), "OK\n")
            server.stop()
        self.assertEqual(seen[0], seen[1])
        self.assertEqual((self.scratch / "data/fixtures/client/key.pem").stat().st_mode & 0o777,
                         0o600)


class Changing(TlsTest):
    def replace(self, identity):
        """Replaces the files as certificate managers do: one after the other, each atomically."""
        for new, old in ((identity.cert, self.identity.cert), (identity.key, self.identity.key)):
            shutil.copy(new, old + ".tmp")
            os.rename(old + ".tmp", old)

    def test_certificates_change_under_load(self):
        server = self.serving_tls()
        stop, failures, answered = threading.Event(), [], [0] * 4

        def load(i):
            try:
                with self.dial(server) as sock:
                    while not stop.is_set():
                        self.get(sock)
                        answered[i] += 1
            except Exception as e:  # reported by the main thread
                failures.append(repr(e))

        def shown():
            with self.dial(server) as sock:
                return sock.getpeercert()["serialNumber"]

        workers = [threading.Thread(target=load, args=(i,)) for i in range(4)]
        for worker in workers:
            worker.start()
        for i in range(8):
            identity = self.ca.sign(f"server{i}")
            self.replace(identity)
            self.assertEqual(shown(), identity.serial())
            before = list(answered)
            self.assertTrue(eventually(lambda: failures or
                                       all(n > b for n, b in zip(answered, before))))
        stop.set()
        for worker in workers:
            worker.join()
        self.assertEqual(failures, [])
        self.assertEqual([r for r in self.rejections(server) if r["level"] != "debug"], [])

    @only_vigil
    def test_bad_files_leave_the_old_ones_in_use(self):
        server = self.serving_tls()
        serial = self.identity.serial()
        shutil.copy(self.identity.cert, self.identity.key)  # not a key
        for _ in range(5):
            with self.dial(server) as sock:
                self.assertEqual(sock.getpeercert()["serialNumber"], serial)
        self.assert_logged(server, "cannot be used")
        logged = [line for line in server.lines if "cannot be used" in line]
        self.assertEqual(len(logged), 1, server.log)
        self.assertIn("no private key in it", logged[0])
        self.replace(self.ca.sign("again"))
        with self.dial(server) as sock:
            self.assertNotEqual(sock.getpeercert()["serialNumber"], serial)
        self.assertTrue(eventually(lambda: "new connections use them" in server.log))
        page = self.curl(server, "/metrics")
        for line in ("vigil_tls_reloads_total 1", "vigil_tls_reload_failures_total 1",
                     "vigil_tls_rejections_total 0"):
            self.assertIn(line + "\n", page)
        expiry = int(page.split("\nvigil_tls_certificate_expiry_seconds ")[1].split("\n")[0])
        self.assertAlmostEqual(expiry, time.time() + 30 * 86400, delta=86400)

    @only_vigil
    def test_load_generator_continues_while_certificates_change(self):
        client = self.ca.sign("client", names=None)
        server = self.serving_tls("--trusted-ca-file", self.ca.cert)
        bench = [GENERATOR, "watch", "--endpoint", server.url, "--cacert", self.ca.cert,
                 "--json", "--connections", "4", "--streams", "2", "--duration", "2s", "--warmup",
                 "200ms", "--rate", "500"]
        running = subprocess.Popen([*bench, "--cert", client.cert, "--key", client.key],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        while running.poll() is None:
            self.replace(self.ca.sign("next"))
        out, messages = running.communicate()
        report = json.loads(out)
        self.assertEqual((running.returncode, messages, report["status"]), (0, "", "OK"))
        unknown = Authority(self.scratch / "others", "other")
        for flags in ((), ("--cacert", unknown.cert)):
            done = subprocess.run([*bench, *flags], capture_output=True, text=True, timeout=30)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn("cannot open a connection", done.stderr)


class Endings(TlsTest):
    @only_vigil
    def test_silent_clients_are_disconnected(self):
        """GHSA-6vch-q96h-7gc3."""
        server = self.serving_tls("--handshake-timeout", "500ms")
        with socket.create_connection(("127.0.0.1", server.port), 10) as silent:
            self.assertEqual(silent.recv(1), b"")
        with socket.create_connection(("127.0.0.1", server.port), 10) as half:
            half.sendall(b"\x16\x03\x01\x02\x00\x01")
            self.assertEqual(half.recv(1), b"")
        self.assertTrue(eventually(lambda: len(self.rejections(server)) == 2))
        self.assertIn("i/o timeout", self.rejections(server)[1]["error"])

    @only_vigil
    def test_log_lines_about_rejected_connections_are_limited(self):
        server = self.serving_tls()

        def reject(count):
            held = [socket.create_connection(("127.0.0.1", server.port), 60) for _ in range(count)]
            for sock in held:
                sock.sendall(b"junk")
            for sock in held:
                with sock:
                    sock.recv(1)

        begin = time.monotonic()
        reject(300)
        took = time.monotonic() - begin
        self.assertTrue(eventually(lambda: len(self.rejections(server)) >= 100), server.log)
        self.assertLessEqual(len(self.rejections(server)), BURST + PER_SECOND * took + 1)
        time.sleep(0.5)
        reject(1)

        def counted():
            return sum(1 + line.get("unlogged-rejections", 0) for line in self.rejections(server))
        self.assertTrue(eventually(lambda: counted() == 301), server.log)

    @only_vigil
    def test_handshakes_past_the_limit_wait(self):
        server = self.serving_tls("--max-tls-handshakes", "2", "--io-threads", "1",
                                  "--handshake-timeout", "6s")
        begin = time.monotonic()
        held = [socket.create_connection(("127.0.0.1", server.port), 10) for _ in range(2)]
        for sock in held:
            sock.sendall(b"\x16\x03\x01\x02\x00\x01")
        time.sleep(3)  # so that the third client's timeout is later than theirs
        with self.dial(server) as sock:
            self.get(sock)
        self.assertGreater(time.monotonic() - begin, 5.9)
        for sock in held:
            sock.close()

    def test_stop_sends_close_notify(self):
        server = self.serving_tls()
        with self.dial(server) as sock:
            self.get(sock)
            os.kill(server.pid, signal.SIGTERM)
            self.assertEqual(sock.recv(1), b"")  # an end without close_notify raises an error
        server.wait()

    def test_stop_with_a_watch(self):
        server = self.serving_tls()
        watch = subprocess.Popen(["etcdctl", "--endpoints", server.url, "--cacert", self.ca.cert,
                                  "watch", "a"], stdout=subprocess.DEVNULL,
                                 stderr=subprocess.DEVNULL, env=dict(os.environ, ETCDCTL_API="3"))
        self.addCleanup(watch.wait)
        self.addCleanup(watch.kill)
        time.sleep(0.5)
        begin = time.monotonic()
        server.stop()
        self.assertLess(time.monotonic() - begin, 20)


class Attacks(TlsTest):
    @only_vigil
    def test_stalled_handshakes_cost_little_and_delay_no_client(self):
        server = self.serving_tls("--max-tls-handshakes", "50")
        with self.dial(server) as good:
            self.get(good)
            before = server.anonymous_kb()
            client_hello = self.client_hello()
            held = []
            self.addCleanup(lambda: [sock.close() for sock in held])
            for _ in range(1000):
                sock = socket.create_connection(("127.0.0.1", server.port), 10)
                sock.sendall(client_hello)
                held.append(sock)
            for _ in range(20):
                self.assertIn(b"true", self.get(good))
            self.assertLess(server.anonymous_kb() - before, 30000)

    def client_hello(self):
        """The first message of a handshake."""
        context = ssl.create_default_context()
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        client = context.wrap_bio(incoming, outgoing, server_hostname="localhost")
        with self.assertRaises(ssl.SSLWantReadError):
            client.do_handshake()
        return outgoing.read()

    @only_vigil
    def test_slow_handshakes_time_out(self):
        server = self.serving_tls("--handshake-timeout", "1s")
        begin = time.monotonic()
        with socket.create_connection(("127.0.0.1", server.port), 10) as sock:
            for byte in self.client_hello():
                try:
                    sock.sendall(bytes([byte]))
                except OSError:
                    break
                time.sleep(0.02)
        self.assertLess(time.monotonic() - begin, 8)
        self.assertTrue(eventually(lambda: self.rejections(server)))

    @only_vigil
    def test_many_handshakes_do_not_stop_a_connected_client(self):
        server = self.serving_tls()
        stop, worst = threading.Event(), [0.0]

        def storm():
            while not stop.is_set():
                try:
                    self.dial(server, verify=False).close()
                except (OSError, ssl.SSLError):
                    pass

        with self.dial(server) as good:
            workers = [threading.Thread(target=storm) for _ in range(8)]
            for worker in workers:
                worker.start()
            for _ in range(100):
                begin = time.monotonic()
                self.get(good)
                worst[0] = max(worst[0], time.monotonic() - begin)
            stop.set()
            for worker in workers:
                worker.join()
        self.assertLess(worst[0], 20)


class Many(TlsTest):
    @only_vigil
    def test_ten_thousand_connections_some_of_them_tls(self):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = 10500
        if hard < wanted + 200:
            self.skipTest(f"only {hard} files may be open")
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        port, plain = free_port(), free_port()
        server = self.server(port=port, listen=f"https://127.0.0.1:{port},http://127.0.0.1:{plain}",
                             args=self.flags("--handshake-timeout", "10m")).start()
        self.addCleanup(server.stop)
        server.url = f"https://127.0.0.1:{port}"
        held = []
        self.addCleanup(lambda: [sock.close() for sock in held])
        for i in range(10000):
            sock = socket.create_connection(("127.0.0.1", plain), 30)
            held.append(sock)
            if i % 100 == 0:
                self.assertIn(b"true", self.get(sock))
        for _ in range(300):
            sock = self.dial(server)
            held.append(sock)
        for sock in held[::1000] + held[-300:]:
            self.assertIn(b"true", self.get(sock))
        self.ctl(server, "put", "a", "1")
        self.assertGreaterEqual(server.descriptors(), 10300)


if __name__ == "__main__":
    unittest.main()
