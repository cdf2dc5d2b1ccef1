#!/usr/bin/python3
"""Memory that clients can make the server hold: every method gets its largest requests on sockets that are not read, with and
without credentials, plain and compressed. Memory stays within the budget, and other clients are served meanwhile."""
import base64
import contextlib
import gzip
import json
import os
import pathlib
import re
import socket
import threading
import time
import unittest
import urllib.error
import urllib.request

import grpc
import hpack

import h2raw as h2
import protobuf as pb
from server import ROOT, WAIT_SECONDS, LiveTest, free_port

MIB = 1 << 20
BUDGET = 32 * MIB
MESSAGE_BYTES = 2 * MIB  # the largest message that is accepted
# In addition to the budget: temporary memory of one turn of a thread, and what the allocator keeps. The address sanitizer
# adds red zones, a quarantine and a shadow of all memory.
SANITIZED = b"__asan_init" in pathlib.Path(os.environ.get("VIGIL_BIN", ROOT / "build-test/vigil")).read_bytes()
BESIDE_KB = (256 if SANITIZED else 8) << 10
REFUSAL = "see --max-client-bytes"


def methods():
    """The paths of all methods of all services."""
    found = []
    for file in sorted((ROOT / "proto").glob("*.proto")):
        text = file.read_text()
        package = re.search(r"^package ([\w.]+);", text, re.M)[1]
        for service, body in re.findall(r"^service (\w+) \{(.*?)^\}", text, re.M | re.S):
            found += [f"/{package}.{service}/{name}" for name in re.findall(r"rpc (\w+)\(", body)]
    return found


def gateway_paths():
    return ["/v3/" + path for path in re.findall(r'"([a-z]+/[\w/-]+)"', (ROOT / "src/etcd/gateway/routes.c").read_text())]


def largest_messages():
    """Messages of two megabytes each: three with as many fields as possible, and one with a long field."""
    count = (MESSAGE_BYTES - 16) // 2
    fields = [bytes([number << 3 | 2, 0]) * count for number in (1, 2, 3)]
    return fields + [b"\x0a" + pb.varint(MESSAGE_BYTES - 16) + bytes(MESSAGE_BYTES - 16)]


class Hoard:
    """Connections that send and never read."""

    def __init__(self, port):
        self.port = port
        self.sockets = []

    def grpc(self, path, bodies, extra=(), compressed=True, whole=True):
        """Sends calls on one connection that gives no window for the answers. Uncompressed messages are sent only up to the
        server's initial window, because the connection does not read window updates."""
        c = h2.Connection(self.port, h2.PREFACE + h2.settings(window=0), timeout=2, receive_buffer=4096)
        self.sockets.append(c.socket)
        for i, body in enumerate(bodies):
            fields = [*extra, *([("grpc-encoding", "gzip")] if compressed else [])]
            sent = h2.frame(h2.HEADERS, h2.END_HEADERS, 2 * i + 1, h2.request_headers(path, fields))
            framed = pb.grpc_frame(body, int(compressed))[:len(body) + 5 if compressed else 60_000]
            for at in range(0, len(framed), 16_000):
                last = whole and compressed and at + 16_000 >= len(framed)
                sent += h2.frame(h2.DATA, h2.END_STREAM if last else 0, 2 * i + 1, framed[at:at + 16_000])
            if not c.send(sent):
                return

    def http(self, request, port=None, receive_buffer=None):
        s = socket.socket()
        if receive_buffer:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        s.settimeout(5)
        s.connect(("127.0.0.1", port or self.port))
        s.settimeout(2)
        self.sockets.append(s)
        with contextlib.suppress(OSError):
            s.sendall(request)

    def close(self):
        for s in self.sockets:
            s.close()
        self.sockets = []


def http_request(method, path, body, token=None, kind="application/json"):
    fields = f"Authorization: {token}\r\n" if token else ""
    return (f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: {kind}\r\n{fields}"
            f"Content-Length: {len(body)}\r\n\r\n").encode() + body


def http_head(s):
    """The lines of an answer's head. The connection may stay open after it, but must not end before."""
    lines = []
    with s.makefile("rb") as answer:
        while (line := answer.readline()) != b"\r\n":
            assert line.endswith(b"\r\n"), f"the connection ended after {lines + [line]}"
            lines.append(line)
    return lines


class Bystander(threading.Thread):
    """A small client that runs during the attacks. It records failures and the maximum of held and resident memory."""

    def __init__(self, vigil, token=None):
        super().__init__(daemon=True)
        self.vigil = vigil
        self.metadata = [("token", token)] if token else []
        self.channel = grpc.insecure_channel(f"127.0.0.1:{vigil.port}", options=[("grpc.use_local_subchannel_pool", 1)])
        self.failures, self.calls, self.held, self.resident_kb = [], 0, 0, 0
        self.over = threading.Event()

    def run(self):
        put = self.channel.unary_unary("/etcdserverpb.KV/Put")
        get = self.channel.unary_unary("/etcdserverpb.KV/Range")
        while not self.over.is_set():
            try:
                put(pb.put(b"bystander", b"x" * 1000), timeout=30, metadata=self.metadata)
                get(pb.range_of(b"bystander"), timeout=30, metadata=self.metadata)
                self.calls += 1
            except grpc.RpcError as error:
                self.failures.append(str(error))
            try:
                self.held = max(self.held, int(metric(self.vigil, "vigil_client_held_bytes")))
            except urllib.error.HTTPError as error:
                if error.code != 429:  # as any HTTP request while attackers hold all memory
                    self.failures.append(str(error))
            self.resident_kb = max(self.resident_kb, self.vigil.anonymous_kb())

    def stop(self):
        self.over.set()
        self.join()
        self.channel.close()


def metric(vigil, name):
    with urllib.request.urlopen(f"{vigil.url}/metrics", timeout=30) as answer:
        return float(re.search(rf"^{name} (\S+)$", answer.read().decode(), re.M)[1])


class Attacked(LiveTest):
    """A server, its attackers, and a bystander that must not be affected."""
    budget = BUDGET
    args = ["--max-client-bytes", str(BUDGET), "--bcrypt-cost", "4"]

    def begin(self, *args, limits=None):
        self.kube_port = free_port()
        asan = os.environ.get("ASAN_OPTIONS", "") + ":quarantine_size_mb=1:malloc_context_size=0"
        self.vigil = self.serving(args=[*self.args, f"--listen-kube-urls=http://127.0.0.1:{self.kube_port}", *args],
                                  env={"ASAN_OPTIONS": asan}, limits=limits)
        self.hoard = Hoard(self.vigil.port)
        self.addCleanup(self.hoard.close)

    def watch_over(self, token=None):
        self.before_kb = self.vigil.anonymous_kb()
        self.bystander = Bystander(self.vigil, token)
        self.addCleanup(self.bystander.over.set)
        self.bystander.start()

    def call(self, path, body, token=None):
        headers = {"Authorization": token} if token else {}
        request = urllib.request.Request(f"{self.vigil.url}/v3/{path}", json.dumps(body).encode(), headers)
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)

    def check(self, refused=True):
        """The bystander was not affected, the budget was kept, and all memory is released. If refused, requests must have
        been refused for lack of memory."""
        refusals = metric(self.vigil, "vigil_client_memory_refusals_total")
        calls = self.bystander.calls
        end = time.monotonic() + WAIT_SECONDS
        while self.bystander.calls < calls + 3:  # calls also succeed while the memory is still held
            self.assertLess(time.monotonic(), end, self.bystander.failures)
            time.sleep(0.01)
        self.bystander.stop()
        self.assertEqual(self.bystander.failures, [])
        self.assertLess(self.bystander.held, self.budget + self.budget // 16)
        self.assertTrue(refusals > 0 or not refused, "the budget was never reached, so the test shows nothing")
        self.assertLess(self.bystander.resident_kb - self.before_kb, (self.budget >> 10) + BESIDE_KB)
        self.hoard.close()
        while metric(self.vigil, "vigil_client_held_bytes") > 64 << 10:
            self.assertLess(time.monotonic(), end, "memory was not released")
            time.sleep(0.02)

    def attack_grpc(self, token=None):
        packed = [gzip.compress(body, 1) for body in largest_messages()]
        extra = [("token", token)] if token else []
        for path in methods():
            self.hoard.grpc(path, packed, extra)
        for path in methods():
            self.hoard.grpc(path, largest_messages(), extra, compressed=False)

    def attack_gateway_and_v2(self):
        body = b'{"success":[' + b",".join([b"{}"] * 1_000_000) + b"]}"
        long = b'{"key":"' + base64.b64encode(bytes(2 * MIB)) + b'"}'
        for path in gateway_paths():
            self.hoard.http(http_request("POST", path, body))
            self.hoard.http(http_request("POST", path, long))
        form = b"value=" + b"x" * MIB
        for method in ("PUT", "POST", "GET", "DELETE"):
            for path in ("/v2/keys/a", "/v2/keys/a?wait=true&recursive=true", "/v2/members", "/v2/auth/users/a"):
                self.hoard.http(http_request(method, path, form, kind="application/x-www-form-urlencoded"))

    def attack_kubernetes(self):
        fields = json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"},
                             "data": {f"{i:x}": "" for i in range(200_000)}}).encode()
        long = json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b"},
                           "data": {"a": "x" * (2900 << 10)}}).encode()
        path = "/api/v1/namespaces/default/configmaps"
        kinds = ["json-patch+json", "merge-patch+json", "strategic-merge-patch+json", "apply-patch+yaml"]
        for body in (fields, long, b"[" + b",".join([b"{}"] * 900_000) + b"]"):
            for _ in range(3):
                self.hoard.http(http_request("POST", path, body), self.kube_port)
                self.hoard.http(http_request("POST", path, body, kind="application/yaml"), self.kube_port)
                self.hoard.http(http_request("PUT", path + "/a", body), self.kube_port)
                self.hoard.http(http_request("DELETE", path, body), self.kube_port)
                for kind in kinds:
                    self.hoard.http(http_request("PATCH", path + "/a?fieldManager=m&force=true", body,
                                                 kind="application/" + kind), self.kube_port)

    def store_large_objects(self):
        for i in range(8):
            body = json.dumps({"metadata": {"name": f"c{i}"}, "data": {"a": "x" * (1000 << 10)}}).encode()
            urllib.request.urlopen(urllib.request.Request(
                f"http://127.0.0.1:{self.kube_port}/api/v1/namespaces/default/configmaps", body,
                {"Content-Type": "application/json"}), timeout=30).read()

    def attack_with_lists(self):
        for _ in range(40):
            self.hoard.http(b"GET /api/v1/namespaces/default/configmaps HTTP/1.1\r\nHost: 127.0.0.1\r\n"
                            b"Accept: application/vnd.kubernetes.protobuf\r\n\r\n", self.kube_port)


class Memory(Attacked):
    def test_grpc_with_credentials(self):
        self.begin()
        self.call("auth/user/add", {"name": "root", "password": "p"})
        self.call("auth/user/grant", {"user": "root", "role": "root"})
        self.call("auth/enable", {})
        token = self.call("auth/authenticate", {"name": "root", "password": "p"})["token"]
        self.watch_over(token)
        self.attack_grpc(token)
        self.check()

    def test_grpc_without_credentials(self):
        self.begin()
        self.call("auth/user/add", {"name": "root", "password": "p"})
        self.call("auth/user/grant", {"user": "root", "role": "root"})
        self.call("auth/enable", {})
        token = self.call("auth/authenticate", {"name": "root", "password": "p"})["token"]
        self.watch_over(token)
        self.attack_grpc()
        self.check(refused=False)  # they are refused before they hold much memory

    def test_transactions_of_empty_fields(self):
        """Two kilobytes each, which become forty megabytes."""
        self.begin()
        self.watch_over()
        bomb = gzip.compress(b"\x12\x00" * (MESSAGE_BYTES // 2 - 8), 9)
        for _ in range(4):
            self.hoard.grpc("/etcdserverpb.KV/Txn", [bomb] * 40)
        self.check(refused=False)  # too many operations may be refused before they are decoded

    def test_gateway_and_v2(self):
        self.begin("--enable-v2")
        self.watch_over()
        self.attack_gateway_and_v2()
        self.check()

    def test_kubernetes(self):
        self.begin()
        self.watch_over()
        self.attack_kubernetes()
        self.check()

    def begin_with_auth(self):
        """Starts a server that requires credentials on every API. Returns the token of root."""
        tokens = self.scratch / "tokens"
        tokens.write_text("of-the-machine,machine,1\n")
        self.begin(f"--kube-token-file={tokens}", "--enable-v2")
        self.call("auth/user/add", {"name": "root", "password": "p"})
        self.call("auth/user/grant", {"user": "root", "role": "root"})
        self.call("auth/enable", {})
        return self.call("auth/authenticate", {"name": "root", "password": "p"})["token"]

    def bodies(self):
        """Requests with a body for every listener: port, method, path, and the code for an unauthenticated client."""
        kube = "/api/v1/namespaces/default/configmaps"
        return [(self.kube_port, "POST", kube, 401), (self.kube_port, "PATCH", kube + "/a", 401),
                (self.kube_port, "DELETE", kube, 401), (self.kube_port, "POST", "/nowhere", 401),
                (self.vigil.port, "POST", "/v3/kv/txn", 400), (self.vigil.port, "POST", "/v3/maintenance/alarm", 400),
                (self.vigil.port, "POST", "/v3/nowhere", 404), (self.vigil.port, "PUT", "/v2/keys/a", 401),
                (self.vigil.port, "POST", "/v2/members", 401), (self.vigil.port, "PUT", "/v2/auth/users/a", 401)]

    def test_bodies_of_unauthenticated_clients_are_not_kept(self):
        """The server answers after the head of the request: none of these bodies ever ends."""
        root = self.begin_with_auth()
        self.watch_over(root)
        for port, method, path, code in self.bodies():
            for field in (f"Content-Length: {MESSAGE_BYTES}", "Transfer-Encoding: chunked"):
                head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\n{field}\r\n\r\n".encode()
                for _ in range(10):
                    self.hoard.http(head + b"fffff\r\n" + bytes(200_000), port)
                with socket.create_connection(("127.0.0.1", port), WAIT_SECONDS) as s:
                    s.sendall(head)
                    answer = s.makefile("rb").read()  # the connection ends without a byte of the body
                self.assertEqual(answer.split()[1], str(code).encode(), (method, path, answer))
                self.assertIn(b"Connection: close", answer)
        self.check(refused=False)
        self.assertLess(self.bystander.held, 4 * MIB)

    def test_bodies_of_unauthenticated_clients_are_not_kept_over_http2(self):
        root = self.begin_with_auth()
        self.watch_over(root)
        for port, method, path, code in self.bodies():
            c = h2.Connection(port, timeout=WAIT_SECONDS)
            self.hoard.sockets.append(c.socket)
            encoder = hpack.Encoder()
            encoder.header_table_size = 0
            block = encoder.encode([(":method", method), (":scheme", "http"), (":path", path), (":authority", "localhost"),
                                    ("content-type", "application/json")])
            streams = range(1, 65, 2)
            for stream in streams:
                c.send(h2.frame(h2.HEADERS, h2.END_HEADERS, stream, block) +
                       h2.frame(h2.DATA, 0, stream, bytes(16_000)))  # the body does not end
            codes, reset, decoder = {}, set(), hpack.Decoder()
            for kind, _, stream, payload in c.frames():
                if kind == h2.HEADERS:
                    codes[stream] = dict(decoder.decode(payload))[":status"]
                elif kind == h2.RST_STREAM:
                    reset.add((stream, int.from_bytes(payload, "big")))
                if len(reset) == len(streams):
                    break
            self.assertEqual(codes, dict.fromkeys(streams, str(code)), (method, path))
            self.assertEqual(reset, {(stream, 0) for stream in streams})
        self.check(refused=False)
        self.assertLess(self.bystander.held, 4 * MIB)

    def begin_with_users_of_v2(self):
        """Passwords take long enough to be hashed that many requests wait."""
        self.begin("--enable-v2", "--bcrypt-cost=10")
        for path, body in (("users/root", {"user": "root", "password": "p"}), ("roles/guest", {"role": "guest"}), ("enable", {})):
            request = urllib.request.Request(f"{self.vigil.url}/v2/auth/{path}", json.dumps(body).encode(), method="PUT")
            urllib.request.urlopen(request, timeout=30).read()
        self.watch_over()
        wrong = "Basic " + base64.b64encode(b"root:wrong").decode()
        return [("PUT", "/v2/keys/a", wrong, 20), ("PUT", "/v2/auth/users/a", wrong, 2), ("POST", "/v2/members", wrong, 2),
                ("PUT", "/v2/keys/a", None, 20), ("PUT", "/v2/auth/users/a", None, 20), ("POST", "/v2/members", None, 20)]

    def test_bodies_are_not_kept_before_users_of_v2_are_checked(self):
        """The server answers when it has verified the password: none of these bodies ever ends."""
        for method, path, credentials, count in self.begin_with_users_of_v2():
            fields = f"Authorization: {credentials}\r\n" if credentials else ""
            head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\n{fields}Content-Length: {2 * MIB - 1}\r\n\r\n".encode()
            senders = [threading.Thread(target=self.hoard.http, args=(head + bytes(MIB), )) for _ in range(count)]
            for sender in senders:
                sender.start()
            with socket.create_connection(("127.0.0.1", self.vigil.port), WAIT_SECONDS) as s:
                s.sendall(head)
                answer = s.makefile("rb").read()  # the connection ends without a byte of the body
            self.assertEqual(answer.split()[1], b"401", (method, path, answer))
            self.assertIn(b"Connection: close", answer)
            for sender in senders:
                sender.join()
        self.check(refused=False)
        self.assertLess(self.bystander.held, 6 * MIB)

    def test_bodies_are_not_kept_before_users_of_v2_are_checked_over_http2(self):
        for method, path, credentials, count in self.begin_with_users_of_v2():
            streams = range(1, 2 * count + 1, 2)
            c = h2.Connection(self.vigil.port, timeout=WAIT_SECONDS)
            self.hoard.sockets.append(c.socket)
            encoder = hpack.Encoder()
            encoder.header_table_size = 0
            block = encoder.encode([(":method", method), (":scheme", "http"), (":path", path), (":authority", "localhost"),
                                    *([("authorization", credentials)] if credentials else [])])
            for stream in streams:
                c.send(h2.frame(h2.HEADERS, h2.END_HEADERS, stream, block) +
                       b"".join(h2.frame(h2.DATA, 0, stream, bytes(16_000)) for _ in range(4)))  # up to the window
            codes, decoder = {}, hpack.Decoder()
            for kind, _, stream, payload in c.frames():
                if kind == h2.HEADERS:
                    codes[stream] = dict(decoder.decode(payload))[":status"]
                    if len(codes) == len(streams):
                        break
            self.assertEqual(codes, dict.fromkeys(streams, "401"), (method, path))
        self.check(refused=False)
        self.assertLess(self.bystander.held, 1 * MIB)

    def test_callers_with_a_token_are_served(self):
        root = self.begin_with_auth()
        body = json.dumps({"metadata": {"name": "a"}, "data": {"a": "x" * MIB}}).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{self.kube_port}/api/v1/namespaces/default/configmaps", body, {
            "Content-Type": "application/json", "Authorization": "Bearer of-the-machine"})
        with urllib.request.urlopen(request, timeout=30) as answer:
            self.assertEqual(answer.status, 201)
        self.call("kv/put", {"key": "YQ==", "value": base64.b64encode(bytes(MIB)).decode()}, root)

    def test_kubernetes_lists_in_protobuf(self):
        """These lists are held until they are sent: many lists of a few megabytes are not read."""
        self.begin()
        self.store_large_objects()
        self.watch_over()
        self.attack_with_lists()
        self.eventually(lambda: metric(self.vigil, "vigil_client_memory_refusals_total") > 0)
        self.check()

    def test_events_of_the_v2_api(self):
        """Each waiting client holds an event until it is read."""
        self.begin("--enable-v2")
        self.watch_over()
        for _ in range(60):
            self.hoard.http(b"GET /v2/keys/a?wait=true&stream=true HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", receive_buffer=4096)
        self.eventually(lambda: metric(self.vigil, "etcd_debugging_mvcc_watcher_total") >= 60)
        put = http_request("PUT", "/v2/keys/a", b"value=" + b"x" * MIB, kind="application/x-www-form-urlencoded")
        for _ in range(2):  # the second event has the first value as its previous one
            self.hoard.http(put)
        self.eventually(lambda: metric(self.vigil, "vigil_client_memory_refusals_total") > 0)
        self.check()

    def test_refusals_name_the_flag_and_the_next_call_is_served(self):
        self.args = ["--max-client-bytes", "2M"]
        self.begin()
        channel = grpc.insecure_channel(f"127.0.0.1:{self.vigil.port}")
        self.addCleanup(channel.close)
        put = channel.unary_unary("/etcdserverpb.KV/Put")
        with self.assertRaises(grpc.RpcError) as caught:
            put(pb.put(b"k", b"v" * (1400 << 10)), timeout=30)
        self.assertEqual(caught.exception.code(), grpc.StatusCode.RESOURCE_EXHAUSTED)
        self.assertIn(REFUSAL, caught.exception.details())
        put(pb.put(b"k", b"v" * 100_000), timeout=30)

    def test_http_requests_without_memory_get_429(self):
        """While unfinished requests fill the budget, other requests get 429 with a Retry-After header."""
        self.args = ["--max-client-bytes", "4M"]
        self.begin("--enable-v2")
        unfinished = b"GET /health HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 30_000
        pad = "X: " + "x" * 20_000 + "\r\n"
        targets = [(self.vigil.port, "/health"), (self.vigil.port, "/v2/keys"), (self.vigil.port, "/v3/kv/range"),
                   (self.vigil.port, "/h%65alth"), (self.kube_port, "/api/v1/pods"), (self.kube_port, "/version")]
        refusals = 0
        for i in range(60):
            for _ in range(4 if i else 150):  # more than fit, and more than are closed for a request
                self.hoard.http(unfinished)
            port, path = targets[i % len(targets)]
            with socket.create_connection(("127.0.0.1", port), WAIT_SECONDS) as s:
                s.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n{pad if i % 4 else ''}\r\n".encode())
                status, *fields = http_head(s)
            self.assertRegex(status, b"^HTTP/1.1 (200|405|429|501) ", path)
            if b" 429 " in status:
                refusals += 1
                self.assertIn(b"Retry-After: 1\r\n", fields)
        self.assertGreater(refusals, 10)

    def test_largest_holder_is_closed_for_others(self):
        """Connections hold as much memory as they can with calls that never end; a later client still gets a share."""
        self.begin()
        message = gzip.compress(largest_messages()[-1], 1)
        for _ in range(8):
            self.hoard.grpc("/etcdserverpb.KV/RangeStream", [message] * 12, whole=False)
        channel = grpc.insecure_channel(f"127.0.0.1:{self.vigil.port}")
        self.addCleanup(channel.close)
        put = channel.unary_unary("/etcdserverpb.KV/Put")
        end = time.monotonic() + WAIT_SECONDS
        for i in range(20):
            while True:  # a refusal frees memory for the next attempt
                try:
                    put(pb.put(b"large", b"v" * (1400 << 10)), timeout=30)
                    break
                except grpc.RpcError as error:
                    self.assertEqual(error.code(), grpc.StatusCode.RESOURCE_EXHAUSTED)
                    self.assertLess(time.monotonic(), end)
                    time.sleep(0.02)
        self.assertGreater(metric(self.vigil, "vigil_client_memory_reclaims_total"), 0)


class ControlGroup:
    """A control group with a memory limit, below the group of the test. It supports both versions of control groups."""

    def __init__(self, limit):
        self.path = self.place() / f"vigil-test-{os.getpid()}"
        self.path.mkdir()
        self.old = (self.path / "memory.limit_in_bytes").exists()
        (self.path / ("memory.limit_in_bytes" if self.old else "memory.max")).write_text(str(limit))

    @staticmethod
    def place():
        """The directory in which a group with a memory limit can be created; raises OSError if there is none."""
        for line in pathlib.Path("/proc/self/cgroup").read_text().splitlines():
            _, controllers, own = line.split(":", 2)
            if controllers == "memory":
                return pathlib.Path("/sys/fs/cgroup/memory") / own[1:]
            if not controllers:
                path = pathlib.Path("/sys/fs/cgroup") / own[1:]
                for above in (path, *path.parents):
                    enabled = above / "cgroup.subtree_control"
                    if enabled.exists() and "memory" in enabled.read_text().split():
                        return above
        raise OSError("no control group of memory is delegated to the tests")

    def join(self):
        (self.path / "cgroup.procs").write_text(str(os.getpid()))

    def kills(self):
        """The number of processes that were killed because the group had no memory left."""
        text = (self.path / ("memory.oom_control" if self.old else "memory.events")).read_text()
        return int(re.search(r"^oom_kill (\d+)$", text, re.M)[1])

    def remove(self):
        self.path.rmdir()


class InControlGroup(Attacked):
    """64 MB for everything. The sanitizer alone takes several times that."""
    limit = (256 if SANITIZED else 64) * MIB
    budget = limit // 4  # the server's default
    args = ["--bcrypt-cost", "4"]

    def setUp(self):
        super().setUp()
        try:
            self.group = ControlGroup(self.limit)
        except OSError as error:
            self.skipTest(f"control groups cannot be made here: {error}")
        self.addCleanup(self.group.remove)

    def test_server_survives_all_attacks_in_a_small_control_group(self):
        self.begin("--enable-v2", limits=self.group.join)
        self.assertEqual(metric(self.vigil, "vigil_client_held_bytes_max"), self.budget)
        self.store_large_objects()
        self.watch_over()
        for attack in (self.attack_grpc, self.attack_gateway_and_v2, self.attack_kubernetes, self.attack_with_lists):
            attack()
            self.assertTrue(self.vigil.alive(), self.vigil.log)
        self.check()
        self.assertEqual(self.group.kills(), 0)
        self.assertTrue(self.vigil.alive())


if __name__ == "__main__":
    unittest.main()
