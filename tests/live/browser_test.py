#!/usr/bin/python3
"""Requests that a page in a local browser can send to a server on loopback are refused: requests from another origin, which
a browser sends without asking, and host names of another site that resolve to 127.0.0.1."""
import base64
import http.client
import json
import os
import pathlib
import subprocess
import unittest

import h2raw as h2
import protobuf as pb
from certs import Authority
from server import SUBJECT, LiveTest, Server, free_port, only_vigil

FOREIGN = ("http://evil.example", "https://evil.example", "http://localhost:3000", "null")
KEY = base64.b64encode(b"/registry/secrets/default/s").decode()
VALUE = base64.b64encode(b"precious").decode()


class EtcdNamed(Server):
    """The server under test, started under the name etcd."""

    def __init__(self, directory, **options):
        link = pathlib.Path(directory).with_name("etcd")
        link.symlink_to(SUBJECT)
        super().__init__(directory, binary=str(link), **options)


@only_vigil
class Pages(LiveTest):
    def send(self, port, method, path, body=None, host=None, origin=None, **fields):
        """Sends what a browser would send; returns the status and the headers of the answer."""
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        headers = {"Host": host or f"localhost:{port}", "Content-Type": "text/plain", **fields}
        if origin is not None:
            headers["Origin"] = origin
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        answer.read()
        connection.close()
        return answer.status, answer.headers

    def put(self, server):
        self.assertEqual(self.send(server.port, "POST", "/v3/kv/put", json.dumps({"key": KEY, "value": VALUE}))[0], 200)

    def key_exists(self, server):
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
        connection.request("POST", "/v3/kv/range", json.dumps({"key": KEY}))
        answer = json.loads(connection.getresponse().read())
        connection.close()
        return "kvs" in answer

    def requests(self, server, kube, metrics):
        delete = json.dumps({"key": KEY})
        return [(server.port, "POST", "/v3/kv/deleterange", delete), (server.port, "POST", "/v3/kv/range", delete),
                (server.port, "OPTIONS", "/v3/kv/deleterange", None), (server.port, "GET", "/health", None),
                (server.port, "GET", "/metrics", None), (server.port, "GET", "/version", None),
                (server.port, "GET", "/v2/keys/", None), (server.port, "PUT", "/v2/keys/a", "value=b"),
                (server.port, "DELETE", "/v2/keys/a", None), (server.port, "GET", "/nothing", None),
                (metrics, "GET", "/metrics", None), (metrics, "GET", "/health", None),
                (kube, "GET", "/api/v1/secrets", None), (kube, "DELETE", "/api/v1/namespaces/default/secrets/s", None),
                (kube, "POST", "/api/v1/namespaces/default/configmaps", "{}"), (kube, "GET", "/version", None)]

    def serve_all(self, *args):
        kube, metrics = free_port(), free_port()
        server = self.serving(args=["--enable-v2", f"--listen-kube-urls=http://127.0.0.1:{kube}",
                                    f"--listen-metrics-urls=http://127.0.0.1:{metrics}", *args])
        return server, kube, metrics

    def test_pages_of_other_origins_are_refused(self):
        server, kube, metrics = self.serve_all()
        self.put(server)
        for port, method, path, body in self.requests(server, kube, metrics):
            for origin in FOREIGN:
                with self.subTest(method=method, path=path, origin=origin):
                    status, fields = self.send(port, method, path, body, origin=origin)
                    self.assertEqual(status, 403)
                    self.assertEqual([f for f in fields if f.lower().startswith("access-control")], [])
            for site in ("cross-site", "same-site"):  # an image or a link, for which a browser sends no Origin
                with self.subTest(method=method, path=path, site=site):
                    self.assertEqual(self.send(port, method, path, body, **{"Sec-Fetch-Site": site})[0], 403)
        self.assertTrue(self.key_exists(server))
        self.assert_logged(server, "rejecting HTTP request of a page from another origin")

    def test_host_names_of_other_sites_are_refused(self):
        server, kube, metrics = self.serve_all()
        self.put(server)
        for port, method, path, body in self.requests(server, kube, metrics):
            for host in ("evil.example", f"evil.example:{port}", "127.0.0.1.evil.example", "10.0.0.1"):
                for origin in (None, f"http://{host}"):  # also for a page that was loaded from there
                    with self.subTest(method=method, path=path, host=host):
                        status, fields = self.send(port, method, path, body, host=host, origin=origin)
                        self.assertEqual(status, 403 if port == kube else 421)
                        self.assertEqual([f for f in fields if f.lower().startswith("access-control")], [])
        self.assertTrue(self.key_exists(server))

    def test_programs_and_own_host_names_are_accepted(self):
        kube = free_port()
        server = self.server(args=[f"--listen-kube-urls=http://127.0.0.1:{kube}"])
        server.url = f"http://own.example:{server.port}"  # which the server advertises
        server.start()
        self.addCleanup(server.stop)
        names = [f"localhost:{server.port}", "localhost", f"127.0.0.1:{server.port}", "127.0.0.1", f"[::1]:{server.port}",
                 f"own.example:{server.port}"]
        for host in names:
            with self.subTest(host=host):
                self.assertEqual(self.send(server.port, "GET", "/health", host=host)[0], 200)
                self.assertEqual(self.send(server.port, "GET", "/health", host=host, origin=f"http://{host}")[0], 200)
        status, fields = self.send(server.port, "GET", "/health")
        self.assertEqual((status, fields["Access-Control-Allow-Origin"]), (200, None))
        self.assertEqual(self.send(kube, "GET", "/api/v1/namespaces", host=f"127.0.0.1:{kube}")[0], 200)

    def grpc_status(self, port, *extra):
        """The gRPC status of a Range over HTTP/2 without TLS."""
        with h2.Connection(port) as connection:
            connection.send(h2.frame(h2.HEADERS, h2.END_HEADERS, 1, h2.request_headers(extra=extra)) +
                            h2.frame(h2.DATA, h2.END_STREAM, 1, pb.grpc_frame(pb.range_of(b"a"))))
            decoder = h2.hpack.Decoder()
            for kind, _, stream, payload in connection.frames():
                fields = dict(decoder.decode(payload)) if kind == h2.HEADERS and stream == 1 else {}
                if "grpc-status" in fields:
                    return int(fields["grpc-status"])
        return None

    def test_grpc_calls_with_an_origin_are_refused(self):
        server = self.serving()
        self.assertEqual(self.grpc_status(server.port), 0)
        self.assertEqual(self.grpc_status(server.port, ("origin", "http://evil.example")), 7)
        permissive = self.serving(self.scratch / "permissive", args=["--cors=*"])
        self.assertEqual(self.grpc_status(permissive.port, ("origin", "http://evil.example")), 0)

    def test_other_origins_are_refused_over_http2_without_tls(self):
        server = self.serving()
        for extra, wanted in (((), "200"), ((("origin", "http://evil.example"),), "403")):
            with h2.Connection(server.port) as connection:
                block = h2.request_headers("/health", extra, method="GET")
                connection.send(h2.frame(h2.HEADERS, h2.END_HEADERS | h2.END_STREAM, 1, block))
                fields = next(dict(h2.hpack.Decoder().decode(payload)) for kind, _, stream, payload in connection.frames()
                              if kind == h2.HEADERS and stream == 1)
                self.assertEqual(fields[":status"], wanted)

    def test_cors_and_host_whitelist_flags_disable_the_protection(self):
        server, _, metrics = self.serve_all("--cors=*", "--host-whitelist=*")
        for port, path in ((server.port, "/health"), (server.port, "/metrics"), (metrics, "/metrics")):
            self.assertEqual(self.send(port, "GET", path, host="evil.example", origin="http://evil.example")[0], 200)
        status, fields = self.send(server.port, "OPTIONS", "/v3/kv/range", origin="http://evil.example")
        self.assertEqual((status, fields["Access-Control-Allow-Origin"]), (200, "*"))

    def test_each_flag_permits_only_its_own_kind(self):
        one = self.serving(args=["--cors=http://good.example:80"])
        status, fields = self.send(one.port, "GET", "/health", origin="http://good.example:80")
        self.assertEqual((status, fields["Access-Control-Allow-Origin"]), (200, "http://good.example:80"))
        self.assertEqual(self.send(one.port, "GET", "/health", origin="http://evil.example")[0], 403)
        self.assertEqual(self.send(one.port, "GET", "/health", host="evil.example")[0], 421)
        self.assertEqual(self.send(one.port, "GET", "/health", **{"Sec-Fetch-Site": "cross-site"})[0], 403)
        every = self.serving(self.scratch / "every", args=["--cors=*"])
        self.assertEqual(self.send(every.port, "GET", "/health", **{"Sec-Fetch-Site": "cross-site"})[0], 200)
        other = self.serving(self.scratch / "other", args=["--host-whitelist=good.example"])
        self.assertEqual(self.send(other.port, "GET", "/health", host="good.example")[0], 200)
        self.assertEqual(self.send(other.port, "GET", "/health", host="good.example", origin="http://evil.example")[0], 403)

    def test_under_the_name_etcd_browsers_are_not_refused(self):
        server = EtcdNamed(self.scratch / "data")
        self.addCleanup(server.kill)
        server.start()
        self.addCleanup(server.stop)
        status, fields = self.send(server.port, "GET", "/health", host="evil.example", origin="http://evil.example")
        self.assertEqual((status, fields["Access-Control-Allow-Origin"]), (200, "*"))

    def test_other_addresses_than_loopback_are_not_protected(self):
        """The protection covers loopback without TLS only, as documented."""
        everywhere = self.server(listen=f"http://0.0.0.0:{(port := free_port())}", port=port)
        everywhere.start()
        self.addCleanup(everywhere.stop)
        self.assertEqual(self.send(port, "GET", "/health", host="evil.example", origin="http://evil.example")[0], 200)
        path = self.scratch / "socket"
        local = self.server(self.scratch / "local", listen=f"unix://{path}")
        local.start()
        self.addCleanup(local.stop)
        out = subprocess.run(["curl", "-sS", "-o", os.devnull, "-w", "%{http_code}", "--unix-socket", str(path),
                              "http://any.example/health"], capture_output=True, text=True, timeout=30, check=True)
        self.assertEqual(out.stdout, "200")


class Plain(Server):
    """A server without flags for the Kubernetes API."""

    def command(self):
        return [arg for arg in super().command() if arg != "--listen-kube-urls="]


@only_vigil
class KubernetesBesideCertificates(LiveTest):
    def begin(self, *args, **options):
        server = Plain(self.scratch / "data", args=args, **options)
        self.addCleanup(server.kill)
        server.start()
        self.addCleanup(server.stop)
        return server

    def test_kubernetes_api_is_off_by_default_with_client_certificates(self):
        authority = Authority(self.scratch / "ca")
        identity = authority.sign("server")
        certified = ["--cert-file", identity.cert, "--key-file", identity.key, "--trusted-ca-file", authority.cert,
                     "--client-cert-auth"]
        port = free_port()
        server = self.begin(*certified, port=port, listen=f"https://127.0.0.1:{port}")
        self.assert_logged(server, "the Kubernetes API is not served")
        self.assert_logged(server, "clients need a certificate")
        self.assert_logged(server, "--listen-kube-urls")
        self.assertNotIn("serving the Kubernetes API", server.log)
        self.assertFalse((pathlib.Path(server.directory) / "kubeconfig").exists())

    def test_kubernetes_api_without_tokens_is_refused_with_client_certificates(self):
        authority = Authority(self.scratch / "ca")
        identity = authority.sign("server")
        server = self.server(args=["--cert-file", identity.cert, "--key-file", identity.key,
                                   "--trusted-ca-file", authority.cert, "--client-cert-auth",
                                   f"--listen-kube-urls=http://127.0.0.1:{free_port()}"])
        code, log = server.refuse()
        self.assertEqual(code, 1)
        self.assertIn("let every user of this machine in", log)

    def test_kubernetes_api_with_tokens_is_served_with_client_certificates(self):
        authority = Authority(self.scratch / "ca")
        identity = authority.sign("server")
        tokens = self.scratch / "tokens"
        tokens.write_text("secret,jane,7\n")
        kube = free_port()
        self.serving(args=["--cert-file", identity.cert, "--key-file", identity.key, "--trusted-ca-file", authority.cert,
                           "--client-cert-auth", f"--listen-kube-urls=http://127.0.0.1:{kube}",
                           f"--kube-token-file={tokens}"])
        for field, wanted in (({}, 401), ({"Authorization": "Bearer secret"}, 200)):
            connection = http.client.HTTPConnection("127.0.0.1", kube, timeout=30)
            connection.request("GET", "/api/v1/secrets", headers=field)
            self.assertEqual(connection.getresponse().status, wanted)
            connection.close()


if __name__ == "__main__":
    unittest.main()
