#!/usr/bin/python3
"""The largest requests of every kind. None takes more than a few milliseconds of an I/O thread's processor time; the
worker does what takes longer."""
import http.client
import json
import os
import re
import socket
import struct
import unittest
import urllib.request

import hpack

import h2raw as h2
import protobuf as pb
from kube import WAIT_SECONDS, KubeServer
from kube_depth_test import (APPLY, CMS, DEFINITIONS, JSON, MERGE, PATCH, PROTOBUF, STRATEGIC, THINGS, YAML,
                             definition)
from server import SUBJECT, LiveTest, only_vigil

TURNS_MS = 10  # of an I/O thread, for all turns of one request
WORK_MS = 200  # of the worker
SLACK = 30 if "build-tsan" in SUBJECT else 10  # for sanitizers
TABLE = JSON + ";as=Table;v=v1;g=meta.k8s.io"
KEYS = 50_000
OPERATIONS = 10_000


def thing(name, spec):
    return f'{{"apiVersion":"deep.example/v1","kind":"Thing","metadata":{{"name":"{name}"}},"spec":{spec}}}'


def members(count, value="1"):
    return "{" + ",".join(f'"k{i}":{value}' for i in range(count)) + "}"


def config_map(name, count):
    return json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name},
                       "data": {f"k{i}": "v" for i in range(count)}})


def config_map_protobuf(name, count):
    data = [pb.message(f1=f"k{i}".encode(), f2=b"v") for i in range(count)]
    raw = pb.message(f1=pb.message(f1=name.encode()), f2=data)
    return b"k8s\0" + pb.message(f1=pb.message(f1=b"v1", f2=b"ConfigMap"), f2=raw)


def wide_definition(count, pattern=None):
    one = {"type": "string", **({"pattern": pattern} if pattern else {})}
    schema = {"type": "object", "properties": {"spec": {"type": "object",
              "properties": {f"p{i}": one for i in range(count)}}}}
    return json.dumps(definition("wides", schema))


@only_vigil
class Large(LiveTest):
    def setUp(self):
        super().setUp()
        self.kube = KubeServer(self.scratch / "data", ["--io-threads", "1"]).start()
        self.addCleanup(self.kube.stop)
        self.addCleanup(self.kube.close)
        self.connection = http.client.HTTPConnection("127.0.0.1", self.kube.kube_port, timeout=WAIT_SECONDS)
        self.addCleanup(self.connection.close)

    def cpu_ms(self, thread):
        """A reading of what a thread has computed, for differences. The kernel counts the time that a hypervisor gives
        to other machines as that of the threads it takes it from, so all of that time is subtracted."""
        with open("/proc/stat", encoding="ascii") as stat:
            stolen = int(stat.readline().split()[8]) * 1000 / os.sysconf("SC_CLK_TCK")
        tasks = f"/proc/{self.kube.process.pid}/task"
        for task in os.listdir(tasks):
            with open(f"{tasks}/{task}/comm", encoding="ascii") as comm:
                if comm.read().startswith(thread):
                    with open(f"{tasks}/{task}/schedstat", encoding="ascii") as stat:
                        return int(stat.read().split()[0]) / 1e6 - stolen
        self.fail(f"there is no thread {thread}")

    def worker_turns(self):
        page = urllib.request.urlopen(self.kube.url + "/metrics").read().decode()
        return int(re.search(r'^vigil_turn_duration_seconds_count{thread="worker"} (\d+)$', page, re.M).group(1))

    def check(self, codes, method, path, body=None, kind=JSON, accept=JSON, **fields):
        before = self.cpu_ms("vigil-io")
        self.connection.request(method, path, body, {"Content-Type": kind, "Accept": accept, **fields})
        response = self.connection.getresponse()
        answer = response.read()
        took = self.cpu_ms("vigil-io") - before
        what = f"{method} {path} {kind} {accept}"
        self.assertIn(response.status, codes, (what, answer[:300]))
        self.assertLess(took, TURNS_MS * SLACK, what)
        return answer

    def events(self, path, text, count, accept=JSON):
        """The events of a watch that ends after a second, or after more if a slow machine does not send all by then."""
        for seconds in (1, 5, 25):
            answer = self.check([200], "GET", f"{path}&timeoutSeconds={seconds}", accept=accept)
            if answer.count(text) >= count:
                break
        return answer

    def test_bodies_and_objects(self):
        self.check([201], "POST", DEFINITIONS, json.dumps(definition()))
        self.check([201], "POST", THINGS, thing("nums", '{"a":[' + "1," * 140_000 + "1]}"))
        self.check([201], "POST", THINGS, thing("keys", members(KEYS)))
        self.check([413], "POST", THINGS, thing("many", '{"a":[' + "1," * 1_400_000 + "1]}"))
        self.check([201], "POST", THINGS, thing("yaml", members(KEYS // 2)), kind=YAML)
        self.check([201], "POST", CMS, config_map("big", KEYS))
        self.check([201], "POST", CMS, config_map_protobuf("wire", KEYS // 2), kind=PROTOBUF)
        for path in (f"{THINGS}/keys", f"{CMS}/big"):
            for accept in (JSON, YAML, TABLE, JSON + ";as=PartialObjectMetadata;v=v1;g=meta.k8s.io"):
                self.check([200], "GET", path, accept=accept)
            self.check([200], "GET", path + "?pretty=true")
            self.check([200], "GET", path, **{"Accept-Encoding": "gzip"})
        self.check([200], "GET", f"{CMS}/big", accept=PROTOBUF)
        self.check([200], "PATCH", f"{THINGS}/keys", '{"metadata":{"labels":{"a":"b"}}}', kind=MERGE)
        self.check([200], "PATCH", f"{CMS}/big", '{"data":{"a":"b"}}', kind=STRATEGIC)
        self.check([200], "DELETE", f"{CMS}/big", "{}")

    def test_lists_and_watches_in_other_formats(self):
        for i in range(4):
            self.check([201], "POST", CMS, config_map(f"big{i}", KEYS))
        version = json.loads(self.check([200], "GET", "/api/v1/namespaces"))["metadata"]["resourceVersion"]
        self.check([200], "PATCH", f"{CMS}/big1", '{"data":{"a":"b"}}', kind=MERGE)
        self.check([200], "DELETE", f"{CMS}/big2", "{}")
        for accept, text in ((PROTOBUF, b"k7\x12\x01v"), (TABLE, b'"cells":["big')):
            self.assertEqual(self.check([200], "GET", CMS, accept=accept).count(text), 3)
            watch = f"{CMS}?watch=true"
            stream = accept + (";stream=watch" if accept == PROTOBUF else "")
            self.assertEqual(self.events(watch, text, 3, stream).count(text), 3)
            events = self.events(f"{watch}&resourceVersion={version}", b"DELETED", 1, stream)
            self.assertEqual((events.count(text), events.count(b"MODIFIED"), events.count(b"DELETED")), (2, 1, 1))
        for i in range(4):
            self.check([201], "POST", CMS, json.dumps({"metadata": {"name": f"same{i}"}, "data": {"k": "x" * 1_000_000}}))
        self.check([200], "GET", CMS, **{"Accept-Encoding": "gzip"})

    def test_custom_resources_of_an_older_definition(self):
        """Their answers have the defaults of the new definition."""
        self.check([201], "POST", DEFINITIONS, json.dumps(definition()))
        for i in range(3):
            self.check([201], "POST", THINGS, thing(f"a{i}", members(KEYS)))
        new = definition(schema={"type": "object", "properties": {"spec": {
            "type": "object", "x-kubernetes-preserve-unknown-fields": True,
            "properties": {"made": {"type": "string", "default": "up"}}}}})
        self.check([200], "PATCH", f"{DEFINITIONS}/things.deep.example", json.dumps(new), kind=MERGE)
        made = b'"made":"up"'
        self.assertEqual(self.check([200], "GET", THINGS).count(made), 3)
        self.assertEqual(self.events(f"{THINGS}?watch=true", made, 3).count(made), 3)

    def test_applies(self):
        self.check([201], "POST", DEFINITIONS, json.dumps(definition()))
        for manager, value, code in (("m", "1", 201), ("m", "1", 200), ("n", "2", 200)):
            self.check([code], "PATCH", f"{THINGS}/a?fieldManager={manager}&force=true",
                       thing("a", members(30_000, value)), kind=APPLY)

    def test_patches_of_many_operations(self):
        self.check([201], "POST", DEFINITIONS, json.dumps(definition()))
        self.check([201], "POST", THINGS, thing("list", '{"a":[' + "1," * KEYS + "1]}"))
        by_index = [{"op": "replace", "path": f"/spec/a/{i * 4999 % KEYS}", "value": 2} for i in range(OPERATIONS)]
        self.check([200], "PATCH", f"{THINGS}/list", json.dumps(by_index), kind=PATCH)
        moves = [{"op": "move", "from": f"/spec/a/{i * 4999 % KEYS}", "path": "/spec/a/0"} for i in range(OPERATIONS)]
        self.check([200], "PATCH", f"{THINGS}/list", json.dumps(moves), kind=PATCH)

    def test_closed_connections_and_a_stop_while_the_worker_is_busy(self):
        """When the worker finishes a request, its connection may be closed or the server may be stopping."""
        self.check([201], "POST", DEFINITIONS, json.dumps(definition()))
        body = thing("a", members(5_000)).encode()
        request = (f"PATCH {THINGS}/a?fieldManager=m HTTP/1.1\r\nHost: localhost\r\nContent-Type: {APPLY}\r\n"
                   f"Content-Length: {len(body)}\r\n\r\n").encode() + body
        sockets = [socket.create_connection(("127.0.0.1", self.kube.kube_port)) for _ in range(20)]
        for s in sockets:
            s.sendall(request)
        for s in sockets[::2]:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            s.close()
        self.check([200], "GET", "/api/v1/namespaces")
        self.kube.close()
        self.kube.stop()  # fails if the exit is not clean
        for s in sockets[1::2]:
            s.close()
        self.kube.start()
        self.connection.close()
        self.connection = http.client.HTTPConnection("127.0.0.1", self.kube.kube_port, timeout=WAIT_SECONDS)
        self.addCleanup(self.connection.close)
        self.check([200, 404], "GET", f"{THINGS}/a")

    def test_one_connection_does_not_delay_the_work_of_another(self):
        """One connection sends more requests than the worker's queue holds. A request of another connection is served after
        a few of them and does not wait for the rest."""
        flood, near = 300, 100
        self.check([201], "POST", CMS, config_map("big", KEYS // 10))
        path = f"{CMS}/big?includeObject=None"
        headers = h2.request_headers(path, [("accept", TABLE)], method="GET")
        with h2.Connection(self.kube.kube_port, timeout=WAIT_SECONDS) as raw:
            frames, decoder, counts = raw.frames(), hpack.Decoder(), {"200": 0, "429": 0}

            def read_until(done):
                while not done():
                    kind, _, _, payload = next(frames)
                    if kind == h2.HEADERS:
                        fields = dict(decoder.decode(payload))
                        counts[fields[":status"]] += 1

            raw.send(b"".join(h2.frame(h2.HEADERS, h2.END_HEADERS | h2.END_STREAM, 1 + 2 * i, headers)
                              for i in range(flood)))
            read_until(lambda: counts["200"] > 0)
            before = self.worker_turns()
            self.check([200], "GET", path, accept=TABLE)
            self.assertLess(self.worker_turns() - before, near)
            read_until(lambda: sum(counts.values()) == flood)
            self.assertGreater(counts["200"], flood // 2)

    def test_definitions(self):
        wides = "/apis/deep.example/v1/namespaces/default/wides"
        self.check([201], "POST", DEFINITIONS, wide_definition(25_000))
        self.check([200], "GET", wides)
        document = json.loads(self.check([200], "GET", "/openapi/v3/apis/deep.example/v1"))
        schema = document["components"]["schemas"]["example.deep.v1.Wide"]
        self.assertEqual((len(schema["properties"]["spec"]["properties"]), set(schema["properties"])),
                         (25_000, {"apiVersion", "kind", "metadata", "spec"}))
        body = thing("a", '{"p1":"x"}').replace("Thing", "Wide")
        self.check([201], "POST", wides, body)
        self.check([200], "PATCH", f"{DEFINITIONS}/wides.deep.example", '{"metadata":{"labels":{"a":"b"}}}', kind=MERGE)
        for pattern in ("[" + "[:" * 30_000, "(?" + "i" * 60_000 + ")", "(?i)" * 15_000, "[[:" * 500_000):
            self.check([400, 422], "PUT", f"{DEFINITIONS}/wides.deep.example", wide_definition(1, pattern))

    def test_many_versions_of_many_definitions(self):
        """Documents that list all of them are built once, not for every request."""
        for i in range(60):
            body = definition(f"kinds{i}s")
            body["spec"]["versions"] = [{**body["spec"]["versions"][0], "name": f"v{v}", "storage": v == 1}
                                        for v in range(1, 33)]
            body["spec"]["group"] = f"g{i}.example"
            body["metadata"]["name"] = f"kinds{i}s.g{i}.example"
            self.check([201], "POST", DEFINITIONS, json.dumps(body))
        index = json.loads(self.check([200], "GET", "/openapi/v3"))["paths"]
        self.assertEqual(sum(".example/" in path for path in index), 60 * 32)
        document = self.check([200], "GET", index["apis/g7.example/v7"]["serverRelativeURL"])
        self.assertIn("example.g7.v7.Kinds7", json.loads(document)["components"]["schemas"])

    def test_small_objects_of_costly_schemas(self):
        numbers = [f"v{i}" for i in range(20_000)]
        item = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        for name, schema, value in (
                ("pattern", {"type": "string", "pattern": "^(.*a){500}$"}, "a" * 15_000),
                ("enum", {"type": "array", "items": {"type": "string", "enum": numbers}}, ["v19999"] * 1_500),
                ("required", {"type": "array", "items": {**item, "required": numbers}}, [{}] * 5_000),
                ("alternative", {"type": "array", "items": {"type": "integer", "anyOf": [
                    {"minimum": 100_000 - i} for i in range(1_000)]}}, [1] * 7_000),
                ("default", {"type": "array", "items": {**item, "properties": {"a": {**item, "default": dict.fromkeys(
                    numbers[:1_000], "")}}}}, [{}] * 400),
                ("fault", {"type": "array", "items": {"type": "string"}}, [1] * 7_500)):
            self.check([201], "POST", DEFINITIONS, json.dumps(definition(f"{name}s", {
                "type": "object", "properties": {"spec": {"type": "object", "properties": {"p": schema}}}})))
            path = f"/apis/deep.example/v1/namespaces/default/{name}s"
            kind = definition(f"{name}s", {})["spec"]["names"]["kind"]
            body = thing("a", json.dumps({"p": value}, separators=(",", ":"))).replace("Thing", kind)
            self.assertLess(len(body), 16 << 10)
            self.check([200], "GET", path)
            self.check([413, 422], "POST", path, body)

    def check_work(self, codes, method, path, body):
        before = self.cpu_ms("vigil-worker")
        self.check(codes, method, path, body)
        self.assertLess(self.cpu_ms("vigil-worker") - before, WORK_MS * SLACK, path)

    def test_definitions_that_are_slow_to_check(self):
        """Lists whose items are each looked up in another list."""
        for names in ("shortNames", "categories"):
            body = definition("longs")
            body["spec"]["names"][names] = [f"n{i}" for i in range(KEYS)]
            self.check_work([422], "POST", DEFINITIONS, json.dumps(body))
        for key in ("known", "unknown"):
            item = {"type": "object", "required": ["a"] * KEYS, "properties": {"known": {"type": "string", "default": ""}}}
            schema = {"type": "object", "properties": {"spec": {
                "type": "array", "items": item, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [key] * KEYS}}}
            self.check_work([422], "POST", DEFINITIONS, json.dumps(definition("longs", schema)))

    def test_yaml_that_is_slow_to_read(self):
        tags = "".join(f"%TAG !e{i}! tag:e\n" for i in range(36_000))
        for body in (tags + "--- a\n", tags, "[" * 200 + "a," * 500_000, "- " * 500_000, "a\n " * 300_000,
                     "- &a b\n" + "- *a\n" * 200_000, "%TAG !e! " + "a" * 250_000 + "\n---\n[" + "!e!x a," * 35_000):
            self.check([400, 413], "POST", CMS, body, kind=YAML)


if __name__ == "__main__":
    unittest.main()
