#!/usr/bin/python3
"""Answers of the Kubernetes API that are not plain JSON: protobuf, YAML, gzip, and 406 for formats that are not available."""
import gzip
import http.client
import json
import random
import socket
import struct
import time
import unittest
import zlib

from kube import WAIT_SECONDS, KubeServer, names
from server import LiveTest

JSON, YAML, PROTOBUF = "application/json", "application/yaml", "application/vnd.kubernetes.protobuf"
PARTIAL = ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
CMS = "/api/v1/namespaces/default/configmaps"
LIST_MAX = 64 << 20


def fields(message):
    """Decodes a protobuf message into [(number, value)]."""
    found, at = [], 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(message):
        tag = varint()
        value = varint()
        if tag & 7 == 2:
            value, at = message[at:at + value], at + value
            assert len(value) or at <= len(message)
        found.append((tag >> 3, value))
    return found


def opened(body):
    """The kind and the fields of an object in Kubernetes' envelope."""
    assert body[:4] == b"k8s\0", body[:40]
    envelope = dict(fields(body[4:]))
    return dict(fields(envelope[1]))[2].decode(), fields(envelope[2])


class Formats(LiveTest):
    def setUp(self):
        super().setUp()
        self.kube = KubeServer(self.scratch / "data").start()
        self.addCleanup(self.kube.stop)
        self.addCleanup(self.kube.close)

    def restart(self, *args):
        self.kube.close()
        self.kube.stop()
        self.kube.args += args
        self.kube.start()

    def get(self, path, accept, **more):
        connection = http.client.HTTPConnection("127.0.0.1", self.kube.kube_port, timeout=WAIT_SECONDS)
        connection.request("GET", path, headers={"Accept": accept, **more})
        response = connection.getresponse()
        body = response.read()
        connection.close()
        return response, body

    def fill(self, count, size=4000):
        self.kube.put_many("configmaps", {f"c{i:04}": {"kind": "ConfigMap", "data": {"k": "x" * size}} for i in range(count)})

    def test_objects_and_lists_in_protobuf(self):
        self.fill(2)
        response, body = self.get(f"{CMS}/c0000", PROTOBUF)
        self.assertEqual((response.status, response.getheader("Content-Type")), (200, PROTOBUF))
        kind, message = opened(body)
        self.assertEqual((kind, [number for number, _ in message]), ("ConfigMap", [1, 2]))
        kind, message = opened(self.get(CMS, PROTOBUF + ",application/json")[1])
        self.assertEqual((kind, [number for number, _ in message]), ("ConfigMapList", [1, 2, 2]))
        kind, message = opened(self.get(CMS, PROTOBUF + PARTIAL)[1])
        self.assertEqual((kind, [number for number, _ in message]), ("PartialObjectMetadataList", [1, 2, 2]))
        response, body = self.get(f"{CMS}/none", PROTOBUF)
        self.assertEqual((response.status, opened(body)[0]), (404, "Status"))

    def test_long_list_is_protobuf_only_if_the_client_accepts_nothing_else(self):
        self.fill(100)
        response, body = self.get(CMS, f"{PROTOBUF},{JSON}")
        self.assertEqual(response.getheader("Content-Type"), JSON)
        self.assertEqual(len(json.loads(body)["items"]), 100)
        response, body = self.get(CMS, PROTOBUF)
        self.assertEqual(response.getheader("Content-Type"), PROTOBUF)
        kind, message = opened(body)
        self.assertEqual((kind, len(message)), ("ConfigMapList", 101))
        response, body = self.get(CMS, YAML)
        self.assertEqual((response.status, json.loads(body)["reason"]), (406, "NotAcceptable"))

    def start_request(self, path, **headers):
        """Sends a request; the caller reads at most the head of its answer."""
        peer = socket.socket()
        self.addCleanup(peer.close)
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        peer.settimeout(WAIT_SECONDS)
        peer.connect(("127.0.0.1", self.kube.kube_port))
        fields_text = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        peer.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{fields_text}\r\n".encode())
        return peer

    def head(self, peer):
        text = b""
        while b"\r\n\r\n" not in text:
            text += peer.recv(1)
        return text.decode()

    def test_memory_for_lists_in_protobuf_is_limited(self):
        self.restart("--io-threads", "1")
        for i in range(LIST_MAX // 1400000 + 1):
            self.kube.put("configmaps", f"c{i:02}", kind="ConfigMap", labels={"few": str(i < 30)}, data={"k": "x" * 1400000})
        response, body = self.get(CMS, PROTOBUF)
        self.assertEqual(response.status, 406)
        self.assertIn(b"ask for application/json", body)
        self.assertEqual(opened(self.get(CMS + "?limit=3", PROTOBUF)[1])[0], "ConfigMapList")
        few = CMS + "?labelSelector=few%3DTrue"
        peers = []
        for code in ("200", "200", "200", "429", "429"):  # one after another, because concurrent lists share the limit
            peers.append(self.start_request(few, Accept=PROTOBUF))
            self.assertEqual(self.head(peers[-1]).split()[1], code)
        for peer in peers:
            peer.close()
        end = time.monotonic() + WAIT_SECONDS
        while self.get(few, PROTOBUF)[0].status == 429:  # until the server has noticed that they are closed
            self.assertLess(time.monotonic(), end)

    def test_lists_over_the_compression_limit_are_sent_uncompressed(self):
        self.restart("--io-threads", "1")
        noise = random.Random(5)
        self.kube.put_many("configmaps", {f"c{i}": {"kind": "ConfigMap", "data": {"k": noise.randbytes(50000).hex()}}
                                          for i in range(40)}, at_once=8)
        peers = [self.start_request(CMS, **{"Accept-Encoding": "gzip"}) for _ in range(260)]
        packed = ["gzip" in self.head(peer) for peer in peers]
        self.assertEqual(sum(packed), 256)
        self.assertEqual(len(self.kube.list(CMS)["items"]), 40)

    def test_watch_in_protobuf_frames(self):
        self.fill(1)
        connection = http.client.HTTPConnection("127.0.0.1", self.kube.kube_port, timeout=WAIT_SECONDS)
        self.addCleanup(connection.close)
        connection.request("GET", CMS + "?watch=1&allowWatchBookmarks=1", headers={"Accept": PROTOBUF + ";stream=watch"})
        response = connection.getresponse()
        self.assertEqual(response.getheader("Content-Type"), PROTOBUF + ";stream=watch")

        def event():
            message = dict(fields(response.read(struct.unpack(">I", response.read(4))[0])))
            return message[1].decode(), opened(dict(fields(message[2]))[1])[0]

        self.assertEqual([event(), event()], [("ADDED", "ConfigMap"), ("BOOKMARK", "ConfigMap")])
        self.kube.put("configmaps", "c0000", kind="ConfigMap")
        self.kube.delete("configmaps", "c0000")
        self.assertEqual([event(), event()], [("MODIFIED", "ConfigMap"), ("DELETED", "ConfigMap")])
        self.kube.put("configmaps", "odd", kind="ConfigMap", data="not a map")
        self.assertEqual(event(), ("ERROR", "Status"))
        self.assertEqual(response.read(), b"")

    def test_many_watches_get_the_same_frames(self):
        start = self.kube.put("configmaps", "first", kind="ConfigMap")
        path = f"{CMS}?watch=1&resourceVersion={start}&timeoutSeconds=30"
        connections = [http.client.HTTPConnection("127.0.0.1", self.kube.kube_port, timeout=WAIT_SECONDS)
                       for _ in range(20)]
        for i, connection in enumerate(connections):
            self.addCleanup(connection.close)
            selector = "&labelSelector=a" if i % 2 else ""  # changes the types of some events
            connection.request("GET", path + selector, headers={"Accept": PROTOBUF})
        responses = [connection.getresponse() for connection in connections]
        for labels in (None, {"a": "b"}, {"a": "c"}, None):
            self.kube.put("configmaps", "c", kind="ConfigMap", labels=labels, data={"k": "x" * 20000})
        wanted = ["ADDED", "MODIFIED", "MODIFIED", "MODIFIED"], ["ADDED", "MODIFIED", "DELETED"]
        received = [[], []]
        for i, response in enumerate(responses):
            frames = [response.read(struct.unpack(">I", response.read(4))[0]) for _ in wanted[i % 2]]
            self.assertEqual([dict(fields(frame))[1].decode() for frame in frames], wanted[i % 2])
            received[i % 2].append(frames)
        for same in received:
            self.assertTrue(all(frames == same[0] for frames in same))

    def test_object_that_does_not_fit_its_type_is_sent_as_json(self):
        self.kube.put("configmaps", "odd", kind="ConfigMap", data="not a map")
        response, body = self.get(f"{CMS}/odd", PROTOBUF)
        self.assertEqual((response.status, response.getheader("Content-Type")), (200, JSON))
        self.assertEqual(json.loads(body)["data"], "not a map")

    def test_objects_in_yaml(self):
        self.kube.put("configmaps", "c", kind="ConfigMap", data={"a": "yes", "b": "x: y\n", "c": "plain"})
        response, body = self.get(f"{CMS}/c", YAML)
        self.assertEqual((response.status, response.getheader("Content-Type")), (200, YAML))
        text = body.decode()
        self.assertTrue(text.startswith('apiVersion: v1\ndata:\n  a: "yes"\n  b: "x: y\\n"\n  c: plain\nkind: ConfigMap\nmetadata:\n'),
                        text)
        response, body = self.get(CMS, YAML)
        self.assertIn("items:\n- data:\n", body.decode())

    def test_long_list_is_compressed_while_it_is_sent(self):
        self.fill(500)
        plain, body = self.get(CMS, JSON)
        self.assertIsNone(plain.getheader("Content-Encoding"))
        response, packed = self.get(CMS, JSON, **{"Accept-Encoding": "gzip"})
        self.assertEqual(response.getheader("Content-Encoding"), "gzip")
        one = zlib.decompressobj(31)
        self.assertEqual(json.loads(one.decompress(packed) + one.flush()), json.loads(body))
        self.assertEqual((one.eof, one.unused_data), (True, b""))  # one gzip member, because not every client reads more
        self.assertLess(len(packed), len(body) // 10)
        self.assertEqual(names(json.loads(gzip.decompress(packed))), [f"c{i:04}" for i in range(500)])
        # A list with a selector, and a connection that is closed in the middle.
        response, packed = self.get(CMS + "?fieldSelector=metadata.name!%3Dc0001", JSON, **{"Accept-Encoding": "gzip"})
        self.assertEqual(len(json.loads(gzip.decompress(packed))["items"]), 499)
        connection = http.client.HTTPConnection("127.0.0.1", self.kube.kube_port, timeout=WAIT_SECONDS)
        connection.request("GET", CMS, headers={"Accept-Encoding": "gzip"})
        connection.getresponse().read(100)
        connection.close()
        self.assertTrue(self.kube.alive())


if __name__ == "__main__":
    unittest.main()
