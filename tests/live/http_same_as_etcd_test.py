#!/usr/bin/python3
"""Compares HTTP on every port with a real etcd: status, headers and bodies, byte by byte. Needs the etcd of tools/build-peer."""
import email.utils
import json
import pathlib
import re
import socket
import subprocess
import unittest

from certs import Authority
from server import PEER, LiveTest, free_port, only_vigil

PATHS = ("/", "/health", "/health?serializable=true", "/health?serializable=false", "/health/",
         "/health?exclude=NOSPACE", "/health?exclude=", "/health?a=%zz", "/h%65alth", "/health%20",
         "/livez", "/livez?verbose", "/livez?verbose=0", "/livez?exclude=serializable_read",
         "/livez?exclude=nothing&verbose", "/livez/serializable_read",
         "/livez/serializable_read?exclude=serializable_read&verbose", "/livez/non_learner",
         "/livez/", "/readyz", "/readyz?exclude=non_learner", "/readyz/data_corruption?verbose",
         "/readyz/linearizable_read?verbose", "/readyz/serializable_read", "/readyz/non_learner",
         "/readyz?exclude=non_learner;verbose", "/readyz/nothing", "/nothing", "/debug/pprof/",
         "/debug/pprof", "/debug/requests", "/debug", "/config/local/log", "/v2/keys", "/members",
         "//health", "/livez/../health?x=1", "/livez/./serializable_read", "/..", "/a//b/?x=%41&<y>",
         "/a%2Fb", "/a%2F..%2Fb", "//%3Cb%3E%22")
METHODS = ("GET", "POST", "PUT", "DELETE", "OPTIONS", "HEAD", "PATCH", "TRACE", "NONSENSE")


def exchange(port, raw):
    """Sends raw bytes and returns everything up to the end of the connection."""
    with socket.create_connection(("127.0.0.1", port), 10) as s:
        s.sendall(raw)
        answer = b""
        while part := s.recv(65536):
            answer += part
    return answer


def parse(answer):
    """The status line, the headers by lower-case name, and the body."""
    head, _, body = answer.partition(b"\r\n\r\n")
    status, *lines = head.decode().split("\r\n")
    fields = {}
    for line in lines:
        name, _, value = line.partition(": ")
        fields.setdefault(name.lower(), []).append(value)
    return status, fields, body


def send(port, method, path, *fields, host="x"):
    more = "".join(f"{field}\r\n" for field in fields)
    status, got, body = parse(exchange(
        port, f"{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{more}\r\n".encode()))
    date = got.pop("date", None)
    if date and not email.utils.parsedate_to_datetime(date[0]):
        raise AssertionError(f"not a date: {date}")
    if method == "HEAD":
        got.pop("content-length", None)  # Go omits it if it did not produce the body
    return status, date is not None, got, body


@only_vigil
@unittest.skipUnless(pathlib.Path(PEER).exists(), "no real etcd was built (tools/build-peer)")
class SameHttp(LiveTest):
    def begin(self, *args):
        """Starts both servers with the same flags, in which {port} becomes a free port. Returns, for each server, the port
        for clients and these ports."""
        self.pairs = [[], []]
        self.servers = []
        for flag in ("--cors", "--host-whitelist"):  # etcd's defaults; Vigil has others on loopback
            if flag not in args:
                args += (flag, "*")
        for i, binary in enumerate((None, PEER)):
            flags = []
            for arg in args:
                if "{port}" in arg:
                    self.pairs[i].append(free_port())
                    arg = arg.format(port=self.pairs[i][-1])
                flags.append(arg)
            options = {"binary": binary} if binary else {}
            self.servers.append(self.serving(self.scratch / str(i), args=flags, **options))
        return [[s.port] + ports for s, ports in zip(self.servers, self.pairs)]

    def same(self, ports, *request, **options):
        ours, etcds = (send(port, *request, **options) for port in ports)
        self.assertEqual(ours, etcds)
        return ours

    def test_every_path_and_method(self):
        (ours,), (etcds,) = self.begin()
        for path in PATHS:
            for method in METHODS if path in ("/health", "/nothing", "//health") else ("GET", "POST"):
                with self.subTest(method=method, path=path):
                    self.same((ours, etcds), method, path)
        for path in ("/version", "/livez", "/readyz/non_learner", "/debug/vars"):
            for method in ("POST", "HEAD", "OPTIONS"):
                with self.subTest(method=method, path=path):
                    self.same((ours, etcds), method, path)

    def test_version(self):
        (ours,), (etcds,) = self.begin()
        bodies = []
        for port in (ours, etcds):
            status, dated, fields, body = send(port, "GET", "/version")
            self.assertEqual((status, dated), ("HTTP/1.1 200 OK", True))
            del fields["content-length"]  # etcd does not know its storage version at first
            bodies.append((fields, list(json.loads(body)), json.loads(body)["etcdcluster"]))
        self.assertEqual(*bodies)

    def test_debug_vars(self):
        (ours,), (etcds,) = self.begin()
        shapes = []
        for port in (ours, etcds):
            _, _, fields, body = send(port, "GET", "/debug/vars")
            if "chunked" in fields.get("transfer-encoding", []):
                body = b"".join(re.split(rb"(?:^|\r\n)[0-9a-f]+\r\n", body))
            values = json.loads(body)
            self.assertIsInstance(values["cmdline"], list)
            self.assertIn("Alloc", values["memstats"])
            raft = values["raft.status"]
            raft["progress"] = [sorted(row) for row in raft["progress"].values()]
            shapes.append((list(values), fields["content-type"], list(raft), raft["raftState"],
                           raft["progress"], raft["leadtransferee"], values["file_descriptor_limit"],
                           body[:13]))
        self.assertEqual(*shapes)

    def test_alarms(self):
        (ours,), (etcds,) = self.begin()
        for alarm in ("NOSPACE", "CORRUPT"):
            body = json.dumps({"action": "ACTIVATE", "alarm": alarm}).encode()
            for port in (ours, etcds):
                status, *_ = parse(exchange(port, (
                    "POST /v3/maintenance/alarm HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                    f"Content-Length: {len(body)}\r\n\r\n").encode() + body))
                self.assertEqual(status, "HTTP/1.1 200 OK")
            wanted = "" if alarm == "NOSPACE" else "&exclude=NOSPACE"
            for path in (f"/health?x=y{wanted}", "/health?exclude=NOSPACE&exclude=CORRUPT",
                         "/livez", "/readyz/data_corruption", "/readyz/data_corruption?verbose",
                         "/readyz?exclude=serializable_read&exclude=linearizable_read"
                         "&exclude=non_learner"):
                with self.subTest(alarm=alarm, path=path):
                    status, *_ = self.same((ours, etcds), "GET", path)
                    if path.startswith("/health?x"):
                        self.assertIn("503", status)

    def test_origins(self):
        (ours,), (etcds,) = self.begin("--cors", "http://a.example:80,http://b.example:8080")
        for method in ("GET", "OPTIONS"):
            for origin in ("http://a.example:80", "http://b.example:8080"):
                with self.subTest(method=method, origin=origin):
                    self.same((ours, etcds), method, "/health", f"Origin: {origin}")
            for origin in ("http://a.example", "*", ""):  # etcd answers, and the browser hides the answer
                with self.subTest(method=method, origin=origin):
                    status, _, fields, _ = send(ours, method, "/health", f"Origin: {origin}")
                    self.assertEqual(status, "HTTP/1.1 403 Forbidden")
                    self.assertEqual([name for name in fields if name.startswith("access-control")], [])
                    self.assertEqual(send(etcds, method, "/health", f"Origin: {origin}")[0], "HTTP/1.1 200 OK")
            self.same((ours, etcds), method, "/health")

    def test_hosts(self):
        (ours,), (etcds,) = self.begin("--host-whitelist", "good.example,::1")
        for host in ("good.example", "good.example:2379", "GOOD.example", "evil.example",
                     "evil.example:80", "127.0.0.1:2379", "[::1]:2379", "[::1]", "::1", "a:b:c",
                     "good.example:", ""):
            with self.subTest(host=host):
                self.same((ours, etcds), "GET", "/health", host=host)
        self.same((ours, etcds), "OPTIONS", "/", host="evil.example")

    def test_metrics_urls(self):
        ports = self.begin("--listen-metrics-urls", "http://127.0.0.1:{port}")
        metrics = [pair[1] for pair in ports]
        for method, path in (("GET", "/health"), ("GET", "/livez?verbose"), ("POST", "/readyz"),
                             ("GET", "/version"), ("GET", "/debug/vars"), ("OPTIONS", "/health"),
                             ("GET", "/v3/kv/range"), ("GET", "//health"), ("GET", "/")):
            with self.subTest(method=method, path=path):
                self.same(metrics, method, path)
        for pair in ports:
            for port in pair:
                status, _, fields, body = send(port, "GET", "/metrics")
                self.assertEqual(status, "HTTP/1.1 200 OK")
                self.assertEqual(fields["content-type"],
                                 ["text/plain; version=0.0.4; charset=utf-8; escaping=underscores"])
                self.assertIn(b"\ngrpc_server_handled_total", body)

    def test_http_urls(self):
        ports = self.begin("--listen-client-http-urls", "http://127.0.0.1:{port}")
        self.same([pair[1] for pair in ports], "GET", "/health")
        self.same([pair[1] for pair in ports], "GET", "/nothing")
        for pair in ports:  # the ports for gRPC close the connection
            try:
                answer = exchange(pair[0], b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
            except ConnectionError:
                answer = b""
            self.assertNotIn(b"HTTP/1.1", answer)

    def test_over_tls(self):
        """Over HTTP/1.1 and HTTP/2; with TLS no host name is refused."""
        identity = Authority(self.scratch / "certs").sign("server")
        ports = [free_port(), free_port()]
        for i, options in enumerate(({}, {"binary": PEER})):
            server = self.server(self.scratch / str(i), port=ports[i],
                                 listen=f"https://127.0.0.1:{ports[i]}",
                                 args=["--cert-file", identity.cert, "--key-file", identity.key,
                                       "--host-whitelist", "good.example"], **options)
            server.url = server.listen
            server.start()
            self.addCleanup(server.stop)

        def curl(port, *args):
            out = subprocess.run(["curl", "-sSik", "--path-as-is", *args[:-1],
                                  f"https://127.0.0.1:{port}{args[-1]}"],
                                 capture_output=True, text=True, timeout=20, check=True).stdout
            lines = out.replace("\r", "").split("\n")
            return lines[0], sorted(line for line in lines[1:] if not line.lower().startswith("date:"))

        for version in ("--http1.1", "--http2"):
            for request in (("/health",), ("/livez?verbose",), ("/nothing",), ("//health",),
                            ("-X", "POST", "/version"), ("-X", "OPTIONS", "/x"),
                            ("-H", "Host: evil.example", "/health"),
                            ("-H", "Content-Type: application/json", "-d", "x", "/nothing")):
                with self.subTest(version=version, request=request):
                    ours, etcds = (curl(port, version, *request) for port in ports)
                    self.assertEqual(ours, etcds)


if __name__ == "__main__":
    unittest.main()
