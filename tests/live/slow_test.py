#!/usr/bin/python3
"""Slow requests are logged like in etcd, without values."""
import json
import re
import time
import unittest
import urllib.request

import protobuf as pb
from client import Client
from server import LiveTest, only_vigil

ALL = ["--warning-apply-duration=1ns", "--warning-unary-request-duration=1ns"]
BURST, PER_SECOND = 20, 10  # SLOW_LOG_BURST, SLOW_LOG_PER_S
APPLY, STATS = "apply request took too long", "request stats"


def lines(server, message):
    return [json.loads(line) for line in list(server.lines) if f'"msg":"{message}"' in line]


class Slow(LiveTest):
    def wait_lines(self, server, message, count):
        self.eventually(lambda: len(lines(server, message)) >= count, message=lambda: server.log)
        return lines(server, message)

    def client(self, server):
        client = Client(server.port)
        self.addCleanup(client.close)
        return client

    def test_slow_call_is_logged_with_sizes_but_without_values(self):
        server = self.serving(args=ALL)
        client = self.client(server)
        client.put(b"a", b"secret-secret")
        client.get(b"a")
        put, get = self.wait_lines(server, STATS, 2)[-2:]
        self.assertEqual(put["response type"], "/etcdserverpb.KV/Put")
        self.assertEqual((put["request count"], put["request size"]), (1, 18))
        self.assertEqual(put["request content"].strip(), 'key:"a" value_size:13')
        self.assertRegex(put["remote"], r"^127\.0\.0\.1:\d+$")
        self.assertRegex(put["start time"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z$")
        self.assertRegex(put["time spent"], r"s$")
        self.assertEqual(get["response type"], "/etcdserverpb.KV/Range")
        self.assertEqual((get["request count"], get["response count"]), (0, 1))
        self.assertEqual(get["request content"], 'key:"a"')
        self.assertEqual({put["level"], get["level"]}, {"warn"})
        self.assertNotIn("secret", server.log)

    def test_slow_apply_is_logged_with_the_expected_duration(self):
        server = self.serving(args=ALL)
        client = self.client(server)
        client.put(b"a", b"12345")
        client.get(b"a")
        compare = pb.field(1, pb.field(3, b"a") + pb.field(4, 1))
        success = pb.field(2, pb.field(2, pb.put(b"a", b"topsecret")))
        client.call("Txn", compare + success)
        logged = self.wait_lines(server, APPLY, 3)[-3:]
        for line in logged:
            self.assertEqual(line["expected-duration"], "1ns")
            self.assertRegex(line["took"], r"s$")
        metrics = urllib.request.urlopen(server.url + "/metrics").read().decode()
        slow = re.search(r"^etcd_server_slow_apply_total (\d+)", metrics, re.M)
        self.assertGreaterEqual(int(slow.group(1)), 3)
        put, get, txn = logged
        self.assertIn('put:<key:"a" value_size:5', put["request"])
        self.assertRegex(put["response"], r"^size:\d+$")
        self.assertEqual((get["prefix"], get["request"]), ("read-only range ", 'key:"a"'))
        self.assertRegex(get["response"], r"^range_response_count:1 size:\d+$")
        self.assertIn('request_put:<key:"a" value_size:9', txn["request"])
        self.assertNotIn("topsecret", server.log)

    def test_fast_requests_are_not_logged(self):
        server = self.serving(args=["--warning-apply-duration=1m", "--warning-unary-request-duration=1m"])
        client = self.client(server)
        for _ in range(20):
            client.put(b"a", b"1")
        self.assertEqual((lines(server, APPLY), lines(server, STATS)), ([], []))

    @only_vigil
    def test_log_lines_of_slow_requests_are_limited(self):
        server = self.serving(args=["--warning-unary-request-duration=1ns", "--io-threads=1"])
        client = self.client(server)
        begin, puts = time.monotonic(), 300
        for _ in range(puts):
            client.put(b"a", b"1")
        took = time.monotonic() - begin
        self.wait_lines(server, STATS, 11)
        time.sleep(0.3)
        client.put(b"a", b"1")

        def counted():
            logged = lines(server, STATS)
            return len(logged) + sum(line.get("suppressed", 0) for line in logged)
        self.eventually(lambda: counted() == puts + 1, message=lambda: server.log)
        self.assertLessEqual(len(lines(server, STATS)), BURST + PER_SECOND * (took + 0.3) + 2)


if __name__ == "__main__":
    unittest.main()
