#!/usr/bin/python3
"""The most expensive requests of one client do not delay other clients.

A bystander on each I/O thread reads a key in a loop while another client sends the most expensive requests one after
another. They are listed in EXPENSIVE: each line is a name and a function that sends the request with a Sender.
"""
import base64
import contextlib
import json
import os
import subprocess
import sys
import threading
import time
import unittest
import urllib.error
import urllib.request

import grpc

import protobuf as pb
from kube_depth_test import APPLY, CMS, DEFINITIONS, JSON, PATCH, PROTOBUF, THINGS, YAML, definition
from kube_large_test import TABLE, config_map, members, thing, wide_definition
from server import LiveTest, SUBJECT, cpu_seconds_of, free_port, only_vigil

KV, LEASE = "/etcdserverpb.KV/", "/etcdserverpb.Lease/"
SANITIZED = "build-test" in SUBJECT or "build-tsan" in SUBJECT
WORST_SECONDS = 1.0 if SANITIZED else 0.1
THREADS = 2
KEYS = 20_000
LEASES = 5_000
MIB = 1 << 20
REFUSED = (grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.INTERNAL, grpc.StatusCode.RESOURCE_EXHAUSTED)


def channel(server):
    return grpc.insecure_channel(f"127.0.0.1:{server.port}", options=[
        ("grpc.use_local_subchannel_pool", 1), ("grpc.max_receive_message_length", -1),
        ("grpc.max_send_message_length", -1)])


class Bystander:
    """A separate process that reads a key in a loop and reports its longest wait for the server. While the server has no
    processor, because the machine is busy with other things, no client waits for its work: a wait is at most the processor time
    of the server."""

    def __init__(self, server):
        self.process = subprocess.Popen([sys.executable, __file__, "--bystander", str(server.port), str(server.pid)],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.take_worst()

    def take_worst(self):
        """The longest wait since the last call, in seconds. Returns after the key has been read once more."""
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return float(self.process.stdout.readline())

    def end(self):
        self.process.stdin.close()
        self.process.wait(60)
        self.process.stdout.close()


def read_in_a_loop(port, pid):
    """The bystander's process: answers each line on standard input with the longest wait so far."""
    get = grpc.insecure_channel(f"127.0.0.1:{port}").unary_unary(KV + "Range")
    reports, lines = threading.Semaphore(0), threading.Thread(target=lambda: [reports.release() for _ in sys.stdin] + [os._exit(0)])
    lines.start()
    worst = 0
    while True:
        report = reports.acquire(blocking=False)
        begin, used = time.monotonic(), cpu_seconds_of(pid)
        get(pb.range_of(b"key00000007"), timeout=60)
        worst = max(worst, min(time.monotonic() - begin, cpu_seconds_of(pid) - used))
        if report:
            print(worst, flush=True)
            worst = 0
        time.sleep(0.001)


class Sender:
    """Sends expensive requests. They may be refused, too."""

    def __init__(self, server, kube_url):
        self.server = server
        self.kube_url = kube_url
        self.channel = channel(server)

    def call(self, path, body, **more):
        try:
            return self.channel.unary_unary(path)(body, timeout=60, **more)
        except grpc.RpcError as error:
            if error.code() not in REFUSED:
                raise
            return None

    def post(self, path, body, **headers):
        request = urllib.request.Request(self.server.url + path, data=body,
                                         headers={"Content-Type": "application/json", **headers})
        with contextlib.suppress(urllib.error.HTTPError):
            return urllib.request.urlopen(request, timeout=60).read()

    def kube(self, code, method, path, body="", kind=JSON, **headers):
        request = urllib.request.Request(self.kube_url + path, body.encode(), {"Content-Type": kind, **headers}, method=method)
        try:
            answer = urllib.request.urlopen(request, timeout=60)
            answer.read()
            status = answer.status
        except urllib.error.HTTPError as error:
            status = error.code
        assert status == code, (method, path, kind, status)

    def get(self, path):
        with contextlib.suppress(urllib.error.HTTPError):
            return urllib.request.urlopen(self.server.url + path, timeout=60).read()

    def watch_all(self):
        """Watches all keys with their previous values; returns when the watch has been created."""
        over = threading.Event()

        def requests():
            yield pb.field(1, pb.message(f1=b"\0", f2=b"\0", f6=1))
            over.wait()

        answers = self.channel.stream_stream("/etcdserverpb.Watch/Watch")(requests(), timeout=60)
        next(answers)
        return answers, over


ALL = dict(f1=b"key", f2=b"kez")


def txn(compares=(), then=()):
    return b"".join(pb.field(1, c) for c in compares) + b"".join(pb.field(2, t) for t in then)


def nested(depth, width, leaf):
    """A tree of transactions. With three levels, a width of 25 has about the maximum number of operations."""
    if depth == 1:
        return b"".join(pb.field(2, leaf()) for _ in range(width))
    return b"".join(pb.field(2, pb.field(4, nested(depth - 1, width, leaf))) for _ in range(width))


def counted(make):
    number = iter(range(1 << 30))
    return lambda: make(b"n%07d" % next(number))


def compare_all(target, **value):
    return pb.message(f1=3, f2=target, f3=b"key", **value, f64=b"kez")


def get_all(**more):
    return pb.field(1, pb.message(**ALL, **more))


def delete_watched(e):
    """One revision with many events; its answer and its watch have all previous values."""
    answers, over = e.watch_all()
    e.call(KV + "DeleteRange", pb.message(**ALL, f3=1))
    next(answers)
    over.set()
    answers.cancel()
    fill(e)


WATCHES = 1_000


def many_watches(e):
    over = threading.Event()

    def requests():
        for i in range(WATCHES):
            yield pb.field(1, pb.message(f1=b"key%08d" % i, f2=b"kez", f3=1))
        over.wait()

    answers = e.channel.stream_stream("/etcdserverpb.Watch/Watch")(requests(), timeout=60)
    for _ in range(WATCHES):
        next(answers)
    over.set()
    answers.cancel()


def fill(e, lease=0):
    """Puts the keys that the other requests use."""
    put = e.channel.unary_unary(KV + "Txn")
    for first in range(0, KEYS, 4096):
        numbers = range(first, min(first + 4096, KEYS))
        puts = [pb.field(2, pb.put(b"key%08d" % i, b"value-%d" % i) + pb.field(3, lease)) for i in numbers]
        lists = [b"".join(pb.field(2, p) for p in puts[i:i + 64]) for i in range(0, len(puts), 64)]
        put(b"".join(pb.field(2, pb.field(4, one)) for one in lists), timeout=60)


def lease_id(i):
    return i + 1 if i % 2 else (1 << 63) - 1 - i


def all_leases(e):
    """Lists the leases over gRPC and over the gateway, and checks that both lists are complete."""
    answer = pb.parse(e.call(LEASE + "LeaseLeases", b""))
    ids = {pb.parse(one)[1][0] for one in answer[2]}
    same = {int(one["ID"]) for one in json.loads(e.post("/v3/lease/leases", b"{}"))["leases"]}
    assert ids == same == {lease_id(i) for i in range(LEASES)}, (len(answer[2]), len(ids), len(same))


def all_keys_of_a_lease(e):
    """Lists the keys over gRPC and over the gateway, and checks that both lists are complete."""
    answer = pb.parse(e.call(LEASE + "LeaseTimeToLive", pb.message(f1=lease_id(1), f2=1)))
    same = json.loads(e.post("/v3/lease/timetolive", json.dumps({"ID": lease_id(1), "keys": True}).encode()))["keys"]
    assert answer[5] == [b"key%08d" % i for i in range(KEYS)] == [base64.b64decode(key) for key in same], len(answer[5])


def role_of_many(e):
    """Creates, reads and deletes a role with many permissions."""
    auth = "/etcdserverpb.Auth/"
    e.call(auth + "RoleAdd", pb.message(f1=b"many"))
    grant = e.channel.unary_unary(auth + "RoleGrantPermission")
    calls = [grant.future(pb.message(f1=b"many", f2=pb.message(f1=2, f2=b"p%06d" % i)), timeout=60) for i in range(500)]
    for call in calls:
        call.result()
    e.call(auth + "RoleGet", pb.message(f1=b"many"))
    e.call(auth + "RoleDelete", pb.message(f1=b"many"))


def patch_much(e):
    """Creates a list and sends a patch with the maximum number of operations."""
    e.kube(201, "POST", THINGS, thing("list", '{"a":[' + "1," * 50_000 + "1]}"))
    changes = [{"op": "replace", "path": f"/spec/a/{i * 4999 % 50_000}", "value": 2} for i in range(10_000)]
    e.kube(200, "PATCH", f"{THINGS}/list", json.dumps(changes), PATCH)


EXPENSIVE = [
    ("compares of all keys", lambda e: e.call(KV + "Txn", txn([compare_all(0, f4=9)] * 128, [get_all(f9=1)]))),
    ("compares of all values", lambda e: e.call(KV + "Txn", txn([compare_all(3, f7=b"x")] * 128, [get_all(f9=1)]))),
    ("sorted ranges in a transaction", lambda e: e.call(KV + "Txn", txn((), [get_all(f3=1, f5=2, f6=4)] * 64))),
    ("ranges in a transaction", lambda e: e.call(KV + "Txn", txn((), [get_all()] * 16))),
    ("ranges and a put", lambda e: e.call(KV + "Txn", txn((), [get_all()] * 8 + [pb.field(2, pb.put(b"a", b""))]))),
    ("a nested transaction of puts", lambda e: e.call(KV + "Txn", nested(3, 25, counted(lambda k: pb.field(2, pb.message(f1=k)))))),
    ("a nested transaction of deletes",
     lambda e: e.call(KV + "Txn", nested(3, 25, counted(lambda k: pb.field(3, pb.message(f1=k, f2=k + b"0")))))),
    ("a nested transaction of ranges", lambda e: e.call(KV + "Txn", nested(3, 25, lambda: pb.field(1, pb.message(f1=b"v"))))),
    ("a nested transaction that is too long", lambda e: e.call(KV + "Txn", nested(3, 40, lambda: pb.field(1, pb.message(f1=b"v"))))),
    ("a transaction with many unknown fields", lambda e: e.call(KV + "Txn", txn(
        [pb.message(f3=b"k")], [get_all(f3=1)]) + pb.field(7, 0) * MIB)),
    ("a million empty compares after a group", lambda e: e.call(KV + "Txn", b"\x2b\x2c" + pb.field(1, b"") * (MIB - 100))),
    ("an operation that is repeated half a million times", lambda e: e.call(KV + "Txn", pb.field(
        2, (pb.field(1, b"") + pb.field(2, b"")) * (MIB // 2 - 100)))),
    ("a million empty compares", lambda e: e.call(KV + "Txn", pb.field(1, b"") * (2 * MIB // 2 - 100))),
    ("a million empty operations", lambda e: e.call(KV + "Txn", pb.field(2, b"") * (2 * MIB // 2 - 100))),
    ("a million empty compares, compressed", lambda e: e.call(KV + "Txn", pb.field(1, b"") * (2 * MIB // 2 - 100),
                                                              compression=grpc.Compression.Gzip)),
    ("a large value", lambda e: e.call(KV + "Put", pb.put(b"large", bytes(1_500_000)))),
    ("a large value, compressed", lambda e: e.call(KV + "Put", pb.put(b"large", bytes(1_500_000)), compression=grpc.Compression.Gzip)),
    ("all keys", lambda e: e.call(KV + "Range", pb.message(**ALL))),
    ("all keys, sorted by value", lambda e: e.call(KV + "Range", pb.message(**ALL, f5=2, f6=4))),
    ("all keys of an old revision", lambda e: e.call(KV + "Range", pb.message(**ALL, f4=5, f8=1))),
    ("all leases", all_leases),
    ("all keys of a lease", all_keys_of_a_lease),
    ("a delete of all keys, watched", delete_watched),
    ("many watches from the past", many_watches),
    ("a role with many permissions", role_of_many),
    ("a hash of everything", lambda e: e.call("/etcdserverpb.Maintenance/HashKV", b"")),
    ("the members", lambda e: e.call("/etcdserverpb.Cluster/MemberList", b"")),
    ("the metrics", lambda e: e.get("/metrics")),
    ("gateway: a large value", lambda e: e.post("/v3/kv/put", json.dumps(
        {"key": "YQ==", "value": base64.b64encode(bytes(1_400_000)).decode()}).encode())),
    ("gateway: many empty compares", lambda e: e.post("/v3/kv/txn", b'{"compare":[' + b"{}," * 600_000 + b"{}]}")),
    ("gateway: a deep transaction", lambda e: e.post("/v3/kv/txn", b'{"success":[{"requestTxn":' * 50_000 + b"{}" + b"}]}" * 50_000)),
    ("gateway: many unknown fields", lambda e: e.post("/v3/kv/put", b'{"key":"YQ==",' + b",".join(
        b'"f%d":1' % i for i in range(180_000)) + b"}")),
    ("gateway: a long unknown array", lambda e: e.post("/v3/kv/put", b'{"key":"YQ==","x":[' + b"1," * 1_000_000 + b"1]}")),
    ("gateway: escapes", lambda e: e.post("/v3/kv/put", b'{"key":"' + b"\\u0041" * 300_000 + b'"}')),
    ("gateway: all keys", lambda e: e.post("/v3/kv/range", json.dumps(
        {"key": base64.b64encode(b"key").decode(), "range_end": base64.b64encode(b"kez").decode()}).encode())),
    ("gateway: a long list of numbers", lambda e: e.post("/v3/kv/txn", b'{"compare":[' + b'{"lease":"1e18"},' * 240_000 + b"{}]}")),
    ("gateway: a watch with many empty requests", lambda e: e.post("/v3/watch", b"{}" * 2_000_000, **{"Grpc-Timeout": "300m"})),
    ("gateway: many renewals", lambda e: e.post("/v3/lease/keepalive", b'{"ID":2}' * 20_000)),
    ("kube: a definition", lambda e: e.kube(201, "POST", DEFINITIONS, json.dumps(definition()))),
    ("kube: a body of 3 MiB", lambda e: e.kube(413, "POST", THINGS, thing("many", '{"a":[' + "1," * 1_500_000 + "1]}"))),
    ("kube: a config map of many keys", lambda e: e.kube(201, "POST", CMS, config_map("many", 50_000))),
    ("kube: a list in protobuf", lambda e: e.kube(200, "GET", CMS, Accept=PROTOBUF)),
    ("kube: a list as a table", lambda e: e.kube(200, "GET", CMS, Accept=TABLE)),
    ("kube: a list, compressed", lambda e: e.kube(200, "GET", CMS, **{"Accept-Encoding": "gzip"})),
    ("kube: an object in YAML", lambda e: e.kube(200, "GET", f"{CMS}/many", Accept=YAML)),
    ("kube: a watch in protobuf", lambda e: e.kube(200, "GET", f"{CMS}?watch=true&timeoutSeconds=1", Accept=f"{PROTOBUF};stream=watch")),
    ("kube: a watch as a table", lambda e: e.kube(200, "GET", f"{CMS}?watch=true&timeoutSeconds=1", Accept=TABLE)),
    ("kube: YAML", lambda e: e.kube(201, "POST", THINGS, thing("yaml", members(25_000)), YAML)),
    ("kube: an apply of many fields", lambda e: e.kube(201, "PATCH", f"{THINGS}/a?fieldManager=m", thing("a", members(20_000)), APPLY)),
    ("kube: a patch of many operations", patch_much),
    ("kube: a large definition", lambda e: e.kube(201, "POST", DEFINITIONS, wide_definition(25_000))),
    ("kube: resources of a large definition", lambda e: e.kube(200, "GET", "/apis/deep.example/v1/wides")),
    ("kube: the OpenAPI document of a large definition", lambda e: e.kube(200, "GET", "/openapi/v3/apis/deep.example/v1")),
]


@only_vigil
class Bystanders(LiveTest):
    def bystanders(self, server):
        """Starts one on each I/O thread: a new connection is assigned to the thread with the fewest connections."""
        found = [Bystander(server) for _ in range(THREADS)]
        for one in found:
            self.addCleanup(one.end)
        return found

    def test_expensive_requests_do_not_delay_other_clients(self):
        kube_url = f"http://127.0.0.1:{free_port()}"
        server = self.serving(args=[f"--io-threads={THREADS}", "--max-request-bytes=1572864", "--listen-kube-urls", kube_url])
        sender = Sender(server, kube_url)
        grant = sender.channel.unary_unary(LEASE + "LeaseGrant")
        for call in [grant.future(pb.message(f1=36_000, f2=lease_id(i)), timeout=60) for i in range(LEASES)]:
            call.result()
        fill(sender, lease_id(1))
        urllib.request.urlopen(kube_url + "/api/v1/namespaces").close()
        bystanders = self.bystanders(server)
        waits = {}
        for name, send in EXPENSIVE:
            for one in bystanders:
                one.take_worst()
            send(sender)
            waits[name] = max(one.take_worst() for one in bystanders)
        sender.channel.close()
        if os.environ.get("VIGIL_TEST_TALK"):
            print("".join(line for line in server.lines if "a turn took long" in line and '"io"' in line))
            for name, wait in sorted(waits.items(), key=lambda item: -item[1]):
                print(f"{wait * 1000:8.1f} ms  {name}")
        late = {name: round(wait, 3) for name, wait in waits.items() if wait > WORST_SECONDS}
        self.assertFalse(late, f"a bystander waited longer than {WORST_SECONDS} s; {server.log[-3000:]}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--bystander"]:
        read_in_a_loop(int(sys.argv[2]), int(sys.argv[3]))
    unittest.main()
