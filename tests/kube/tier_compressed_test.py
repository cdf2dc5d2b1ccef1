#!/usr/bin/python3
"""Lists through a watch tier for clients that accept gzip, as client-go does: the same bytes as without, and as few on the wire as
from a real kube-apiserver."""
import contextlib
import json
import pathlib
import sys
import unittest
import zlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/live"))
sys.path.insert(0, str(ROOT / "tests/kube"))
from tier_world import TierWorld, config_map, eventually, named, version  # noqa: E402

JSON, PROTOBUF = "application/json", "application/vnd.kubernetes.protobuf"
MINIMUM = 128 * 1024


class Compressed(TierWorld):
    def read(self, caller, path, accept, encoding=None):
        """The fields of the answer and its bytes as they were sent."""
        with contextlib.closing(caller.connect()) as connection:
            answer = caller.request(connection, "GET", path, headers={
                "Accept": accept, **({"Accept-Encoding": encoding} if encoding else {})})
            body = answer.read()
            self.assertEqual(answer.status, 200, body[:1000])
            return answer.headers, body

    def test_lists(self):
        for i in range(400):
            last = self.make(self.maps, config_map(f"m{i:03}", labels={"half": str(i % 2), "rare": str(i // 10)}, **{
                f"key-{k}": f"value {k * i} of {i}" for k in range(30)}))
        eventually(lambda: len(named(self.admin.get(f"{self.maps}?resourceVersion=0")[1])) >= 400)
        newest = f"resourceVersion={version(last)}&resourceVersionMatch=NotOlderThan"
        for accept in (JSON, PROTOBUF, f"{JSON};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"):
            for path, query in (("/api/v1/configmaps", ""), ("/api/v1/configmaps", newest), (self.maps, newest),
                                (self.maps, f"limit=300&{newest}"), (self.maps, f"labelSelector=half%3D1&{newest}"),
                                (self.maps, f"limit=3&{newest}"), (self.maps, f"labelSelector=half%3D1&limit=150&{newest}")):
                with self.subTest(accept=accept, path=path, query=query):
                    self.compare(f"{path}?{query}", accept)
        self.assertEqual(self.tier.metric("vigil_tier_unmirrored_total"), 0)

    def compare(self, path, accept):
        plain_fields, plain = self.read(self.admin, path, accept)
        fields, packed = self.read(self.admin, path, accept, "gzip")
        their_fields, theirs = self.read(self.direct, path, accept, "gzip")
        self.assertNotIn("Content-Encoding", plain_fields)
        self.assertEqual(their_fields["Content-Encoding"], fields["Content-Encoding"], len(plain))
        self.assertEqual(fields["Content-Encoding"], "gzip" if len(plain) > MINIMUM else None)
        if len(plain) <= MINIMUM:
            self.assertEqual(packed, plain)
            return
        self.assertEqual(fields["Vary"], their_fields["Vary"])
        one = zlib.decompressobj(zlib.MAX_WBITS | 16)  # one member, because not every client reads more
        self.assertEqual(one.decompress(packed), plain)
        self.assertEqual((one.eof, one.unused_data), (True, b""))
        self.assertLess(len(packed), 1.5 * len(theirs))
        for encoding in ("identity", "gzip;q=0", "deflate"):
            fields, body = self.read(self.admin, path, accept, encoding)
            self.assertEqual((fields["Content-Encoding"], body), (None, plain))

    def test_clients_that_leave_or_read_slowly(self):
        text = "".join(f"{k * 7919 % 1000003:x}" for k in range(100_000))
        for i in range(4):
            self.make(self.maps, config_map(f"m{i}", k=f"{i} {text}"))
        path = f"{self.maps}?resourceVersion=0"
        eventually(lambda: len(named(self.admin.get(path)[1])) >= 4)
        connections, answers = [self.admin.connect() for _ in range(40)], []
        for i, connection in enumerate(connections):
            answers.append(self.admin.request(connection, "GET", path, headers={"Accept-Encoding": "gzip"}))
            self.assertEqual(answers[-1].headers["Content-Encoding"], "gzip")
            if i % 2:
                answers[-1].close()
                connection.close()
        self.assertEqual(self.admin.get(f"{self.maps}/m0?resourceVersion=0")[0], 200)
        for connection, answer in zip(connections[::2], answers[::2]):
            body = b""
            while piece := answer.read(50_000):
                body += piece
            self.assertEqual(set(named(json.loads(zlib.decompress(body, zlib.MAX_WBITS | 16)))) & {"m0", "m3"}, {"m0", "m3"})
            connection.close()


if __name__ == "__main__":
    unittest.main()
