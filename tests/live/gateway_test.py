#!/usr/bin/python3
"""The JSON gateway under /v3/: every method compared with a real etcd, streams, and malicious clients."""
import base64
import hashlib
import http.client
import json
import os
import pathlib
import random
import re
import socket
import subprocess
import threading
import time
import unittest
import urllib.request

import grpc

from client import Client
from server import PEER, LiveTest, only_vigil


def b64(text):
    return base64.b64encode(text if isinstance(text, bytes) else text.encode()).decode()


class Gateway:
    """A client of one server's gateway."""

    def __init__(self, server):
        self.server = server
        self.port = server.port

    def request(self, method, path, body=None, headers=None, timeout=60):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            connection.request(method, path, body, headers or {})
            answer = connection.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read()
        finally:
            connection.close()

    def post(self, path, body, headers=None):
        text = body if isinstance(body, (str, bytes)) else json.dumps(body)
        return self.request("POST", "/v3/" + path, text, headers)

    def call(self, path, body, headers=None):
        status, _, answer = self.post(path, body, headers)
        if status != 200:
            raise AssertionError(f"{path}: {status} {answer}")
        return json.loads(answer)

    def stream(self, path, body):
        return Stream(self.port, path, body)


class Stream:
    """The lines of an endless answer."""

    def __init__(self, port, path, body):
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        text = body if isinstance(body, str) else json.dumps(body)
        self.connection.request("POST", "/v3/" + path, text)
        self.answer = None

    def head(self):
        if self.answer is None:
            self.answer = self.connection.getresponse()
        return self.answer

    def line(self):
        text = self.head().readline()
        return json.loads(text) if text else None

    def close(self):
        self.connection.close()


class GatewayTest(LiveTest):
    def setUp(self):
        super().setUp()
        # A small quarantine of the address sanitizer, so that freed memory is soon reused and growth is real.
        asan = os.environ.get("ASAN_OPTIONS", "") + ":quarantine_size_mb=1:malloc_context_size=2"
        self.vigil = self.serving(env={"ASAN_OPTIONS": asan})
        self.gateway = Gateway(self.vigil)

    def opened(self, path, body):
        stream = self.gateway.stream(path, body)
        self.addCleanup(stream.close)
        return stream

    def put(self, key, value=b"v"):
        return self.gateway.call("kv/put", {"key": b64(key), "value": b64(value)})


ALL = {"key": b64("\0"), "range_end": b64("\0")}
# Sent to both servers in this order.
CALLS = [
    ("kv/put", {"key": b64("a"), "value": b64("1")}),
    ("kv/put", {"key": b64("a"), "value": b64(b"\0\xff"), "prev_kv": True}),
    ("kv/put", {"key": b64("b"), "value": ""}),
    ("kv/put", {"value": b64("x")}),
    ("kv/put", {"key": b64("a"), "ignoreValue": True, "value": b64("x")}),
    ("kv/put", {"key": b64("a"), "lease": 12345}),
    ("kv/range", {"key": b64("a")}),
    ("kv/range", ALL),
    ("kv/range", dict(ALL, limit=1)),
    ("kv/range", dict(ALL, limit="1", sort_order="DESCEND", sort_target="KEY")),
    ("kv/range", dict(ALL, sortOrder=2, sortTarget=3, keysOnly=True)),
    ("kv/range", dict(ALL, count_only=True)),
    ("kv/range", dict(ALL, sort_order="SIDEWAYS")),
    ("kv/range", dict(ALL, sort_order=7)),
    ("kv/range", dict(ALL, revision="2")),
    ("kv/range", dict(ALL, revision="999")),
    ("kv/range", {"key": b64("none")}),
    ("kv/range", dict(ALL, serializable=True, nothing={"a": [1, None, "x"]}, min_mod_revision=3)),
    ("kv/deleterange", {"key": b64("b"), "prev_kv": True}),
    ("kv/deleterange", {"key": b64("none")}),
    ("kv/deleterange", {}),
    ("kv/txn", {}),
    ("kv/txn", {"compare": [{"key": b64("a"), "target": "VERSION", "result": "EQUAL", "version": 2}],
                "success": [{"request_put": {"key": b64("c"), "value": b64("3"), "prev_kv": True}},
                            {"request_range": ALL}, {"requestDeleteRange": {"key": b64("c")}}],
                "failure": [{"request_range": {"key": b64("a")}}]}),
    ("kv/txn", {"compare": [{"key": b64("a"), "target": "VALUE", "value": b64("no")}],
                "failure": [{"request_txn": {"success": [{"request_range": {"key": b64("a")}}]}}]}),
    ("kv/txn", {"compare": [{"key": b64("a"), "target": "CREATE", "create_revision": "0"}]}),
    ("kv/txn", {"success": [{"request_put": {"key": b64("x")}}, {"request_put": {"key": b64("x")}}]}),
    ("kv/txn", {"success": [{}]}),
    ("kv/compaction", {"revision": 3, "physical": True}),
    ("kv/compaction", {"revision": 3}),
    ("kv/compaction", {"revision": 9999}),
    ("kv/range", dict(ALL, revision=2)),
    ("lease/grant", {"TTL": "600", "ID": 77}),
    ("lease/grant", {"TTL": 600, "ID": "77"}),
    ("lease/grant", {"TTL": "10000000000"}),
    ("kv/put", {"key": b64("leased"), "lease": "77"}),
    ("lease/leases", {}),
    ("kv/lease/leases", {}),
    ("lease/timetolive", {"ID": 77, "keys": True}),
    ("kv/lease/timetolive", {"ID": 78}),
    ("lease/revoke", {"ID": "77"}),
    ("kv/lease/revoke", {"ID": "77"}),
    ("cluster/member/list", {}),
    ("cluster/member/list", {"linearizable": True}),
    ("cluster/member/add", {"peerURLs": ["http://bad url:1"]}),
    ("cluster/member/remove", {"ID": 5}),
    ("cluster/member/update", {"ID": 5, "peerURLs": ["http://127.0.0.1:1"]}),
    ("cluster/member/promote", {"ID": 5}),
    ("maintenance/alarm", {}),
    ("maintenance/alarm", {"action": "ACTIVATE", "alarm": "CORRUPT", "memberID": "5"}),
    ("maintenance/alarm", {"action": 2, "alarm": 2, "memberID": 5}),
    ("maintenance/status", {}),
    ("maintenance/defragment", {}),
    ("maintenance/hash", {}),
    ("maintenance/hashkv", {}),
    ("maintenance/hashkv", {"revision": 9999}),
    ("maintenance/transfer-leadership", {"targetID": 5}),
    ("maintenance/downgrade", {"action": "VALIDATE", "version": "1.0"}),
    ("auth/status", {}),
    ("auth/enable", {}),
    ("auth/disable", {}),
    ("auth/authenticate", {"name": "x", "password": "y"}),
    ("auth/user/add", {"name": "u", "password": "p"}),
    ("auth/user/get", {"name": "u"}),
    ("auth/user/list", {}),
    ("auth/user/changepw", {"name": "u", "password": "q"}),
    ("auth/role/add", {"name": "r"}),
    ("auth/role/grant", {"name": "r", "perm": {"permType": "READWRITE", "key": b64("k")}}),
    ("auth/role/get", {"role": "r"}),
    ("auth/role/list", {}),
    ("auth/user/grant", {"user": "u", "role": "r"}),
    ("auth/user/revoke", {"name": "u", "role": "r"}),
    ("auth/role/revoke", {"role": "r", "key": b64("k")}),
    ("auth/role/delete", {"role": "r"}),
    ("auth/user/delete", {"name": "u"}),
    ("lock/unlock", {"key": b64("nothing")}),
    ("lock/lock", {"name": b64("l"), "lease": "99"}),
    ("election/leader", {"name": b64("e")}),
    ("election/proclaim", {"leader": {"name": b64("e"), "key": b64("e/1")}, "value": b64("v")}),
    ("election/resign", {"leader": {"name": b64("e"), "key": b64("e/1")}}),
    ("election/campaign", {"name": b64("e"), "lease": 99}),
    ("rangestream", {}),
]
# Invalid bodies of every kind, and some that only look invalid.
BODIES = [
    "", " \n", "{}", "null", "[]", "5", '"x"', "true", "{", "}", "bad", '{"key"', '{"key":', '{"key":}',
    '{"key":"', '{"key":"YQ=="', '{"key":"YQ=="}}', '{"key":"YQ=="} and more', '{"key":"YQ=="}{"key":"Yg=="}',
    '{"key":5}', '{"key":"*"}', '{"key":"YQ"}', '{"key":"YQ="}', '{"key":"-_-_"}', '{"key":"+/+/"}',
    '{"key":"-_+/"}', '{"key":"YQ==","key":"YQ=="}', '{"key":"YQ==","range_end":"","rangeEnd":""}',
    '{"key":null}', '{"k\\u0065y":"YQ=="}', '{"key":"\\u0059Q=="}', '{"key":["YQ=="]}', '{"key":{}}',
    '{"key":"YQ==","limit":1.5}', '{"key":"YQ==","limit":"1.0"}', '{"key":"YQ==","limit":1e1}',
    '{"key":"YQ==","limit":"x"}', '{"key":"YQ==","limit":" 1"}', '{"key":"YQ==","limit":true}',
    '{"key":"YQ==","limit":99999999999999999999}', '{"key":"YQ==","limit":-1}', '{"key":"YQ==","limit":01}',
    '{"key":"YQ==","limit":+1}', '{"key":"YQ==","limit":1.}', '{"key":"YQ==","limit":1e}', '{"key":"YQ==","limit":-}',
    '{"key":"YQ==","keys_only":"true"}', '{"key":"YQ==","keys_only":1}', '{"key":"YQ==","keys_only":nul}',
    '{"key":"YQ==","sort_order":1e3}', '{"key":"YQ==","sort_order":99999999999}', '{"key":"YQ==",}',
    '{"key":"YQ==" "limit":1}', '{"key" "YQ=="}', "{'key':1}", '{"key":"YQ==","x":"\\ud800"}',
    '{"key":"YQ==","x":"\\x"}', '{"key":"YQ==","x":"\\u12"}', '{"key":"YQ==","x":"\t"}', '{"key":"YQ==","x":[1 2]}',
    '{"key":"YQ==","x":[1,]}', '{"key":"YQ==","@type":"x","[a.b]":{}}', "\ufeff{}", "/* */ {}", "{\"key\":\"YQ==\"}\0",
    '\n{\n  "key":"YQ==",\n  "limit":"no"\n}', '{"key":"YQ==","x":' + "[" * 9000 + "]" * 9000 + "}",
    '{"key":"YQ==","x":' + "[" * 10001 + "]" * 10001 + "}",
]


# Errors with another wording in Go: bad escapes, input that ends in one, and duplicate members of a oneof.
OTHER_WORDING = ("invalid escape code", "proto: unexpected EOF", "is already set")


def normal(status, headers, body):
    """The parts of an answer that must be the same on both servers."""
    text = body.decode(errors="replace").replace("\u00a0", " ")
    try:
        value = json.loads(text)
    except ValueError:
        value = text
    return status, headers.get("Content-Type"), headers.get("Grpc-Metadata-Content-Type"), value


def is_unknown(answer):
    return answer[0] == 501 and "unknown " in answer[3].get("message", "")


def without(value, *names):
    return {k: v for k, v in value.items() if k not in names} if isinstance(value, dict) else value


@only_vigil
@unittest.skipUnless(pathlib.Path(PEER).exists(), "no real etcd was built (tools/build-peer)")
class SameAsEtcd(LiveTest):
    def setUp(self):
        super().setUp()
        self.etcd = self.serving(self.scratch / "etcd", binary=PEER)
        command = self.etcd.process.args
        cluster = command[command.index("--initial-cluster") + 1]
        self.vigil = self.serving(args=["--initial-cluster", cluster])
        self.ours, self.etcds = Gateway(self.vigil), Gateway(self.etcd)

    def both(self, path, body, headers=None):
        return (normal(*g.post(path, body, headers)) for g in (self.ours, self.etcds))

    def test_every_method_answers_like_etcd(self):
        # The servers differ in versions, names of members, sizes of files and log indexes.
        own = {"maintenance/status": ("version", "storageVersion", "dbSize", "dbSizeInUse", "raftIndex", "raftAppliedIndex"),
               "maintenance/hash": ("hash",), "cluster/member/list": ("members",)}
        unknown = set()
        for path, body in CALLS:
            with self.subTest(path=path, body=body):
                ours, etcds = self.both(path, body)
                if is_unknown(ours):
                    unknown.add(path)
                    continue
                names = own.get(path, ())
                self.assertEqual((*ours[:3], without(ours[3], *names)),
                                 (*etcds[:3], without(etcds[3], *names)))
        self.assertFalse([p for p in unknown if p.startswith("kv/") and "lease" not in p])
        # Methods that are missing in the gateway are missing in gRPC, too.
        client = Client(self.vigil.port)
        self.addCleanup(client.close)
        for path in unknown:
            message = self.ours.post(path, {})[2]
            service = re.search(rb"service ([\w.]+)", message)[1].decode()
            with self.assertRaises(grpc.RpcError) as caught:
                client.channel.unary_unary(f"/{service}/Nothing")(b"", timeout=10)
            self.assertEqual(caught.exception.code(), grpc.StatusCode.UNIMPLEMENTED)

    def test_wrong_bodies_are_refused_like_in_etcd(self):
        for body in BODIES:
            with self.subTest(body=body[:200]):
                ours, etcds = self.both("kv/range", body.encode())
                if any(words in str(etcds[3]) for words in OTHER_WORDING):
                    ours, etcds = ours[:3], etcds[:3]
                self.assertEqual(ours, etcds)

    def test_wrong_requests_are_refused_like_in_etcd(self):
        for method, path in (("GET", "/v3/kv/range"), ("DELETE", "/v3/kv/put"), ("PUT", "/v3/watch"),
                             ("POST", "/v3/"), ("POST", "/v3/kv"), ("POST", "/v3/kv/range/"),
                             ("GET", "/v3/nothing"), ("POST", "/v3"), ("POST", "/v3beta/kv/range"),
                             ("POST", "/v3/kv/r%61nge"), ("POST", "/v3/kv%2Frange"), ("HEAD", "/v3/kv/range"),
                             ("POST", "/v3/kv/range?key=x"), ("POST", "/v3/KV/Range")):
            with self.subTest(method=method, path=path):
                ours, etcds = (normal(*g.request(method, path, "{}")) for g in (self.ours, self.etcds))
                self.assertEqual(ours, etcds)
        override = {"Content-Type": "application/x-www-form-urlencoded", "X-HTTP-Method-Override": "PUT"}
        ours, etcds = self.both("kv/range", {}, override)
        self.assertEqual(ours, etcds)

    def test_timeouts_are_refused_like_in_etcd(self):
        for timeout in ("1x", "", "S", "1", "1n", "20S", "-1S", "99999999999999999999S"):
            with self.subTest(timeout=timeout):
                ours, etcds = self.both("kv/range", {"key": b64("a")}, {"Grpc-Timeout": timeout})
                self.assertEqual(ours, etcds)

    def test_values_at_the_limits_are_accepted_like_in_etcd(self):
        for size in (1_500_000, 1_572_000, 1_600_000, 2_200_000):
            ours, etcds = self.both("kv/put", {"key": b64("big"), "value": b64(bytes(size))})
            self.assertEqual(ours, etcds, size)

    def test_watches_send_the_same_events(self):
        for g in (self.ours, self.etcds):
            for i in range(5):
                g.call("kv/put", {"key": b64("w"), "value": b64(str(i))})
            g.call("kv/deleterange", {"key": b64("w")})
        create = {"create_request": {"key": b64("w"), "start_revision": "3", "prev_kv": True}}
        lines = []
        for g in (self.ours, self.etcds):
            stream = g.stream("watch", create)
            self.addCleanup(stream.close)
            answer, events = [stream.line()], []
            while len(events) < 5:
                events += stream.line()["result"]["events"]
            lines.append((stream.head().status, stream.head().getheader("Content-Type"), answer, events))
        self.assertEqual(*lines)

    def test_randomly_changed_bodies_are_answered_alike(self):
        seed = random.randrange(1 << 32)
        rng = random.Random(seed)
        bodies = [json.dumps(body) for path, body in CALLS if path == "kv/txn"] * 4
        marks = list('{}[],:"\\ \n0-.eEtfnu/') + ["null", "\\u00e9", "\u00e9", "1e2", "\\"]
        for body in bodies:
            for _ in range(10):
                text = body
                for _ in range(rng.randint(1, 2)):
                    at = rng.randrange(len(text) + 1)
                    text = text[:at] + rng.choice(marks) + text[at + rng.randint(0, 3):]
                ours, etcds = self.both("kv/txn", text.encode())
                if any(words in str(etcds[3]) for words in OTHER_WORDING):
                    ours, etcds = ours[:3], etcds[:3]
                for answer in (ours, etcds):  # revisions may differ after a txn that was changed into a write
                    if isinstance(answer[-1], dict) and "header" in answer[-1]:
                        answer[-1].pop("header")
                self.assertEqual(ours, etcds, f"seed {seed}: {text}")

    def test_keepalives_and_observers_answer_alike(self):
        for g in (self.ours, self.etcds):
            g.call("lease/grant", {"TTL": 600, "ID": 77})
        for body in ('{"ID":"77"}', '{"ID":77}{"ID":"78"}', "", "x", '{"ID":"77"} x', "{}"):
            with self.subTest(body=body):
                ours, etcds = (g.post("lease/keepalive", body) for g in (self.ours, self.etcds))
                self.assertEqual(ours[0], etcds[0])
                self.assertEqual(ours[1].get("Content-Type"), etcds[1].get("Content-Type"))
                self.assertEqual(ours[2], etcds[2])
        for path in ("maintenance/snapshot", "election/observe"):
            ours, etcds = self.both(path, "{")
            self.assertEqual(ours, etcds)

    def storage_version(self):
        with urllib.request.urlopen(self.etcd.url + "/version") as answer:
            return json.load(answer)["storage"]

    def test_snapshot_is_sent_in_lines_and_ends_with_its_digest(self):
        # At first etcd reports "unknown" or "3.5.0", and its snapshots have no version.
        self.eventually(lambda: self.storage_version() == "3.7.0")
        for g in (self.ours, self.etcds):
            status, fields, body = g.post("maintenance/snapshot", "{}")
            self.assertEqual(status, 200)
            *parts, digest = [json.loads(line)["result"] for line in body.splitlines()]
            blobs = [base64.b64decode(part["blob"]) for part in parts]
            for i, part in enumerate(parts):
                left = sum(map(len, blobs[i + 1:]))
                self.assertEqual(part.get("remaining_bytes"), str(left) if left else None)
                self.assertEqual(part["version"], "3.7.0")
                self.assertEqual(len(blobs[i]) if left else 32768, 32768)
            self.assertEqual(digest, {"version": "3.7.0", "blob": base64.b64encode(
                hashlib.sha256(b"".join(blobs)).digest()).decode()})


class Streams(GatewayTest):
    def test_watch_sends_events_as_they_happen(self):
        stream = self.opened("watch", {"create_request": {"key": b64("k"), "range_end": b64("l")}})
        self.assertTrue(stream.line()["result"]["created"])
        self.assertEqual(stream.head().getheader("Transfer-Encoding"), "chunked")
        for i in range(20):
            self.put(f"k{i}", str(i))
            event = stream.line()["result"]["events"][0]
            self.assertEqual(event["kv"]["key"], b64(f"k{i}"))
        self.gateway.call("kv/deleterange", {"key": b64("k3")})
        self.assertEqual(stream.line()["result"]["events"][0]["type"], "DELETE")

    def test_watch_accepts_many_requests_in_one_body(self):
        create = json.dumps({"create_request": {"key": b64("k")}})
        stream = self.opened("watch", create * 3 + '{"cancel_request":{"watch_id":"1"}} garbage')
        answers = [stream.line()["result"] for _ in range(4)]
        self.assertEqual(sum(a.get("created", False) for a in answers), 3)
        self.assertEqual([a.get("watch_id") for a in answers if a.get("canceled")], ["1"])
        self.put("k")
        self.assertEqual({stream.line()["result"].get("watch_id", "0") for _ in range(2)}, {"0", "2"})

    @only_vigil  # etcd reads only the part of the body that has arrived when it begins to answer
    def test_more_requests_than_are_answered_at_once(self):
        create = json.dumps({"create_request": {"key": b64("k")}})
        count = 5000
        stream = self.opened("watch", create * count)
        for _ in range(count):
            self.assertTrue(stream.line()["result"]["created"])

    def test_watch_of_a_compacted_revision_is_canceled(self):
        for i in range(5):
            self.put("k", str(i))
        self.gateway.call("kv/compaction", {"revision": 4})
        stream = self.opened("watch", {"create_request": {"key": b64("k"), "start_revision": 2}})
        answers = [stream.line()["result"] for _ in range(2)]
        self.assertTrue(answers[-1]["canceled"])
        self.assertEqual(answers[-1]["compact_revision"], "4")

    def test_curl_watches(self):
        with subprocess.Popen(["curl", "-sSN", self.vigil.url + "/v3/watch", "-d",
                               json.dumps({"create_request": {"key": b64("k")}})],
                              stdout=subprocess.PIPE) as curl:
            self.assertIn(b'"created":true', curl.stdout.readline())
            self.put("k", "seen by curl")
            self.assertIn(b64("seen by curl").encode(), curl.stdout.readline())
            curl.kill()

    @only_vigil
    def test_shutdown_ends_watches_with_a_line(self):
        stream = self.opened("watch", {"create_request": {"key": b64("k")}})
        self.assertTrue(stream.line()["result"]["created"])
        self.vigil.stop()
        self.assertEqual(stream.line()["error"]["code"], 14)
        self.assertIsNone(stream.line())

    def watchers(self):
        _, _, page = self.gateway.request("GET", "/metrics")
        return int(re.search(rb"^etcd_debugging_mvcc_watcher_total (\d+)$", page, re.M)[1])

    def test_watch_ends_with_its_client(self):
        for _ in range(3):
            streams = [self.gateway.stream("watch", {"create_request": {"key": b64("k")}}) for _ in range(20)]
            for stream in streams:
                stream.line()
            self.assertEqual(self.watchers(), 20)
            for stream in streams:
                stream.close()
            self.eventually(lambda: self.watchers() == 0)
        self.put("k")

    def test_waiting_for_a_lock_ends_with_its_client(self):
        for i in (1, 2):
            self.gateway.call("lease/grant", {"TTL": 600, "ID": i})
        keys = {"key": b64("l/"), "range_end": b64("l0"), "count_only": True}
        held = self.gateway.call("lock/lock", {"name": b64("l"), "lease": 1})
        waiting = self.gateway.stream("lock/lock", {"name": b64("l"), "lease": 2})
        self.eventually(lambda: self.gateway.call("kv/range", keys)["count"] == "2")
        waiting.close()
        self.eventually(lambda: self.gateway.call("kv/range", keys)["count"] == "1")
        self.gateway.call("lock/unlock", {"key": held["key"]})
        again = self.gateway.call("lock/lock", {"name": b64("l"), "lease": 2})
        self.assertTrue(again["key"])

    def test_elections_are_held_and_observed(self):
        self.gateway.call("lease/grant", {"TTL": 600, "ID": 1})
        leader = self.gateway.call("election/campaign",
                                   {"name": b64("e"), "lease": 1, "value": b64("first")})["leader"]
        stream = self.opened("election/observe", {"name": b64("e")})
        self.assertEqual(stream.line()["result"]["kv"]["value"], b64("first"))
        self.gateway.call("election/proclaim", {"leader": leader, "value": b64("second")})
        self.assertEqual(stream.line()["result"]["kv"]["value"], b64("second"))
        self.gateway.call("election/resign", {"leader": leader})
        status, _, answer = self.gateway.post("election/leader", {"name": b64("e")})
        self.assertEqual((status, json.loads(answer)["message"]), (500, "election: no leader"))

    @only_vigil
    def test_unread_list_is_not_buffered(self):
        value = bytes(range(256)) * 4000
        for i in range(24):
            self.put(f"big{i}", value)
        self.gateway.call("kv/range", {"key": b64("big0")})
        before = self.vigil.anonymous_kb()
        body = json.dumps({"key": b64("big"), "range_end": b64("bih")})
        with socket.create_connection(("127.0.0.1", self.vigil.port), 20) as s:
            s.sendall(b"POST /v3/kv/range HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body)
                      + body.encode())
            time.sleep(0.5)
            self.put("meanwhile")
            self.assertLess(self.vigil.anonymous_kb() - before, 8 << 10)
            answer = http.client.HTTPResponse(s)
            answer.begin()
            listed = json.loads(answer.read())
        self.assertEqual(len(listed["kvs"]), 24)
        self.assertTrue(all(kv["value"] == b64(value) for kv in listed["kvs"]))

    @only_vigil
    def test_unread_watch_is_not_buffered(self):
        create = json.dumps({"create_request": {"key": b64("w")}})
        with socket.create_connection(("127.0.0.1", self.vigil.port), 20) as s:
            s.sendall(b"POST /v3/watch HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(create)
                      + create.encode())
            answer = http.client.HTTPResponse(s)
            answer.begin()
            self.assertTrue(json.loads(answer.readline())["result"]["created"])
            self.put("w", bytes(1_000_000))
            before = self.vigil.anonymous_kb()
            for _ in range(20):
                self.put("w", bytes(1_000_000))
            self.assertLess(self.vigil.anonymous_kb() - before, 8 << 10)
            seen = 0
            while seen < 21:
                seen += len(json.loads(answer.readline())["result"]["events"])

    @only_vigil
    def test_calls_past_the_number_of_streams_wait(self):
        server = self.serving(self.scratch / "few", args=["--max-concurrent-streams", "3", "--io-threads", "1"])
        gateway = Gateway(server)
        streams = [gateway.stream("watch", {"create_request": {"key": b64("k")}}) for _ in range(3)]
        for stream in streams:
            self.addCleanup(stream.close)
            stream.line()
        waiting = gateway.stream("kv/put", {"key": b64("k")})
        self.addCleanup(waiting.close)
        waiting.connection.sock.settimeout(0.5)
        with self.assertRaises(TimeoutError):
            waiting.head()
        waiting.connection.sock.settimeout(60)
        streams[0].close()
        answer = waiting.connection.getresponse()
        self.assertEqual(answer.status, 200)


class Http2(GatewayTest):
    def curl(self, path, body, *args):
        return subprocess.run(["curl", "-sSN", "--http2-prior-knowledge", *args, self.vigil.url + "/v3/" + path,
                               "-d", json.dumps(body)], capture_output=True, timeout=60).stdout

    @only_vigil
    def test_calls_and_errors(self):
        self.assertIn("header", json.loads(self.curl("kv/put", {"key": b64("k"), "value": b64("v")})))
        self.assertEqual(json.loads(self.curl("kv/range", {"key": b64("k")}))["count"], "1")
        self.assertEqual(self.curl("kv/range", {"key": 5}, "-o", "/dev/null", "-w", "%{http_code}"), b"400")
        self.put("large", bytes(1_000_000))
        self.assertEqual(json.loads(self.curl("kv/range", {"key": b64("large")}))["kvs"][0]["value"],
                         b64(bytes(1_000_000)))

    @only_vigil
    def test_watch_until_its_deadline(self):
        self.put("k", "1")
        for timeout in ("300m", "3S", "30S"):  # longer if a slow machine does not send the event by then
            lines = self.curl("watch", {"create_request": {"key": b64("k"), "start_revision": 1}},
                              "-H", f"Grpc-Timeout: {timeout}").splitlines()
            if len(lines) >= 3:
                break
        self.assertTrue(json.loads(lines[0])["result"]["created"])
        self.assertEqual(json.loads(lines[1])["result"]["events"][0]["kv"]["value"], b64("1"))
        self.assertEqual(json.loads(lines[2]), {"error": {"code": 4, "message": "context deadline exceeded"}})
        self.assertEqual(len(lines), 3)


class Settings(LiveTest):
    def test_gateway_can_be_disabled(self):
        gateway = Gateway(self.serving(args=["--enable-grpc-gateway=false"]))
        status, _, body = gateway.post("kv/range", {"key": b64("a")})
        self.assertEqual((status, body), (404, b"404 page not found\n"))


class Attacks(GatewayTest):
    def raw(self, data, wait=10):
        with socket.create_connection(("127.0.0.1", self.vigil.port), wait) as s:
            try:
                s.sendall(data)
            except OSError:
                pass
            answer = http.client.HTTPResponse(s)
            answer.begin()
            return answer.status, answer.read()

    def tearDown(self):
        self.put("still serving")
        super().tearDown()

    def test_nesting(self):
        for opened, closed in (("[", "]"), ('{"a":', "}")):
            body = '{"key":"YQ==","x":' + opened * 200_000
            status, _, answer = self.gateway.post("kv/range", body)
            self.assertEqual(status, 400)
            self.assertEqual(json.loads(answer)["message"],
                             f"invalid character '{opened[0]}' exceeded max depth")
            body = '{"key":"YQ==","x":' + opened * 5000 + "1" + closed * 5000 + "}"
            self.assertEqual(self.gateway.post("kv/range", body)[0], 200)

    @only_vigil
    def test_nesting_of_messages(self):
        txn = "{}"
        for _ in range(60):
            txn = '{"success":[{"request_txn":' + txn + "}]}"
        self.assertEqual(self.gateway.post("kv/txn", txn)[0], 400)

    @only_vigil
    def test_body_past_the_limit(self):
        before = self.vigil.anonymous_kb()
        status, _ = self.raw(b"POST /v3/kv/put HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000000\r\n\r\n")
        self.assertEqual(status, 413)
        chunk = b"10000\r\n" + b" " * 65536 + b"\r\n"
        status, _ = self.raw(b"POST /v3/kv/put HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
                             + chunk * 100)
        self.assertEqual(status, 413)
        self.assertLess(self.vigil.anonymous_kb() - before, 16 << 10)

    def test_message_past_the_limit(self):
        status, _, answer = self.gateway.post("kv/put", {"key": b64("k"), "value": b64(bytes(2_200_000))})
        self.assertEqual(status, 429)
        self.assertRegex(json.loads(answer)["message"], r"^grpc: received message larger than max \(\d+ vs\. 2097152\)$")

    def test_incomplete_body_is_not_executed(self):
        with socket.create_connection(("127.0.0.1", self.vigil.port), 10) as s:
            s.sendall(b'POST /v3/kv/put HTTP/1.1\r\nHost: localhost\r\nContent-Length: 30\r\n\r\n{"key":"aGFsZg=="')
        time.sleep(0.1)
        self.assertNotIn("kvs", self.gateway.call("kv/range", {"key": b64("half")}))

    def test_slow_body_delays_no_other_request(self):
        body = json.dumps({"key": b64("slow"), "value": b64("v" * 50)}).encode()
        with socket.create_connection(("127.0.0.1", self.vigil.port), 10) as s:
            s.sendall(b"POST /v3/kv/put HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body))
            for byte in body:
                s.sendall(bytes([byte]))
                time.sleep(0.002)
                if byte == ord(":"):
                    self.put("other")
            answer = http.client.HTTPResponse(s)
            answer.begin()
            self.assertEqual(answer.status, 200)

    def test_very_many_small_elements(self):
        many = '{"compare":[' + ",".join(["{}"] * 300_000) + "]}"
        status, _, answer = self.gateway.post("kv/txn", many)
        self.assertEqual(status, 400, answer[:200])
        unknown = '{"key":"YQ=="' + "".join(f',"x{i}":{{}}' for i in range(200_000)) + "}"
        self.assertEqual(self.gateway.post("kv/range", unknown)[0], 200)

    def test_pipelined_calls_answer_in_order(self):
        requests = b""
        for i in range(50):
            body = json.dumps({"key": b64(f"p{i}")}).encode()
            requests += b"POST /v3/kv/put HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body) + body
        with socket.create_connection(("127.0.0.1", self.vigil.port), 10) as s:
            threading.Thread(target=s.sendall, args=(requests,)).start()
            got = b""
            while got.count(b"HTTP/1.1 200") < 50 or not got.endswith(b"}"):
                piece = s.recv(65536)
                self.assertTrue(piece)
                got += piece
        revisions = [int(r) for r in re.findall(rb'"revision":"(\d+)"', got)]
        self.assertEqual(revisions, sorted(revisions))


if __name__ == "__main__":
    unittest.main()
