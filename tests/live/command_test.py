#!/usr/bin/python3
"""The command line: versions, flags, the environment, and the name under which the program is started."""
import json
import os
import pathlib
import re
import subprocess
import unittest
import urllib.request

import protobuf as pb
from client import Client
from server import GENERATOR, SUBJECT, LiveTest, Server, free_port, is_etcd, only_vigil


def run(*command, env=None):
    done = subprocess.run(command, capture_output=True, text=True, timeout=120,
                          env=dict(os.environ, **(env or {})))
    return done.returncode, done.stdout + done.stderr


def serve():
    return [SUBJECT] if is_etcd(SUBJECT) else [SUBJECT, "serve"]


class Command(LiveTest):
    def test_unknown_flag_is_a_usage_error(self):
        code, text = run(*serve(), "--no-such-flag", "x")
        self.assertEqual(code, 2, text)
        self.assertIn("no-such-flag", text)

    def test_bad_value_is_refused(self):
        code, text = run(*serve(), "--max-txn-ops", "many")
        self.assertNotEqual(code, 0)
        self.assertIn("max-txn-ops", text)

    def test_bad_url_is_refused(self):
        for url in ("localhost:2379", "http://", "ftp://127.0.0.1:1", "http://127.0.0.1:99999"):
            code, _ = run(*serve(), "--data-dir", str(self.scratch / "data"), "--listen-client-urls", url)
            self.assertNotEqual(code, 0, url)

    @only_vigil
    def test_cve_2020_15114_and_15136_there_is_no_gateway_command(self):
        link = self.scratch / "etcd"
        link.symlink_to(SUBJECT)
        for words in ((SUBJECT, "gateway", "start"), (str(link), "gateway", "start"), (str(link), "grpc-proxy", "start")):
            code, text = run(*words, "--endpoints", "127.0.0.1:1")
            self.assertIn(code, (1, 2), text)  # etcd's exit codes for unknown commands
            self.assertIn(words[1], text)

    def test_help_names_flags(self):
        _, text = run(*serve(), "--help")
        for flag in ("--data-dir", "--listen-client-urls", "--max-request-bytes"):
            self.assertIn(flag.lstrip("-"), text)

    @only_vigil
    def test_every_command_has_help(self):
        for command in ("serve", "import", "snapshot", "repair", "salvage", "kube", "version", "man", "completion",
                        "help"):
            for words in ((command, "--help"), ("help", command)):
                with self.subTest(words=words):
                    code, text = run(SUBJECT, *words)
                    self.assertEqual(code, 0, text)
                    self.assertTrue(text)
        self.assertEqual(run(SUBJECT, "man", "nothing")[0], 2)

    @only_vigil
    def test_load_generator_is_another_program(self):
        for words in (("bench",), ("bench", "put", "--total", "1"), ("help", "bench")):
            self.assertEqual(run(SUBJECT, *words), (2, "vigil: the load generator is a program of its own: vigil-bench\n"), words)
        self.assertIn("put keys", run(GENERATOR, "--help")[1])
        self.assertRegex(run(GENERATOR, "version")[1], r"^vigil-bench \d")
        self.assertEqual([run(GENERATOR, *words)[0] for words in ((), ("nothing",), ("put", "--nothing"))], [2, 2, 2])

    @only_vigil
    def test_only_the_load_generator_needs_nghttp2(self):
        files = [SUBJECT, GENERATOR, *(str(path) for path in pathlib.Path(SUBJECT).parent.glob("libvigil*.so"))]
        needed = {file: re.findall(r"\(NEEDED\).*\[(.*)\]", run("readelf", "-dW", file)[1]) for file in files}
        self.assertTrue(all(needed.values()), needed)
        self.assertEqual([file for file in files if any("nghttp2" in name for name in needed[file])], [GENERATOR])

    def test_flags_in_every_form_that_go_accepts(self):
        port = free_port()
        url = f"http://127.0.0.1:{port}"
        server = self.server(port=port, args=["-max-txn-ops=7", "--max-request-bytes=2000000"])
        server.start()
        self.assertEqual(json.load(urllib.request.urlopen(url + "/health"))["health"], "true")

    def test_environment_sets_flags(self):
        server = self.server(env={"ETCD_MAX_REQUEST_BYTES": "5000"}).start()
        client = Client(server.port)
        self.addCleanup(client.close)
        client.put(b"a", b"1" * 4000)
        with self.assertRaisesRegex(Exception, "request is too large"):
            client.put(b"a", b"1" * 6000)


@only_vigil
class Names(LiveTest):
    def test_version(self):
        code, text = run(SUBJECT, "--version")
        self.assertEqual(code, 0, text)
        self.assertRegex(text.lower(), "vigil")

    def test_started_as_etcd(self):
        etcd = self.scratch / "etcd"
        etcd.symlink_to(SUBJECT)
        code, text = run(str(etcd), "--version")
        self.assertEqual(code, 0, text)
        self.assertRegex(text, r"^etcd Version: 3\.7\.0")
        server = Server(self.scratch / "data", binary=str(etcd))
        server.start()
        self.addCleanup(server.kill)
        client = Client(server.port)
        self.addCleanup(client.close)
        client.put(b"a", b"1")
        server.stop()

    def test_emulated_version(self):
        server = self.serving(args=["--emulate-version", "3.6.4"])
        version = json.load(urllib.request.urlopen(server.url + "/version"))
        self.assertEqual(version["etcdserver"], "3.6.4")

    def test_prerelease_versions(self):
        server = self.serving(args=["--emulate-version", "3.8.0-alpha.0"])
        version = json.load(urllib.request.urlopen(server.url + "/version"))
        self.assertEqual((version["etcdserver"], version["etcdcluster"]), ("3.8.0-alpha.0", "3.8.0"))
        self.assertEqual(run(SUBJECT, "serve", "--version", "--emulate-version", "3.8.0-alpha.0")[0], 0)
        code, text = run(SUBJECT, "serve", "--version", "--emulate-version", "3.8.0-")
        self.assertEqual(code, 1, text)
        self.assertIn("3.8.0-", text)

    def test_defragmenting_at_the_start(self):
        flag = ["--bootstrap-defrag-threshold-megabytes=1"]
        server = self.serving(args=flag)
        self.assert_logged(server, "Skipping defragmentation")
        client = Client(server.port)
        self.addCleanup(client.close)
        for _ in range(4):
            client.put(b"a", b"x" * 1000000)
        client.call("Compact", pb.message(f1=client.put(b"b", b""), f2=True))
        server.stop()
        server = self.serving(args=flag)
        line = next(json.loads(line) for line in server.lines if '"msg":"defragmenting"' in line)
        self.assertEqual(line["bootstrap-defrag-threshold-bytes"], 1 << 20)
        free = line["current-db-size-bytes"] - line["current-db-size-in-use-bytes"]
        self.assertGreater(free, 2 << 20)

        def freed():
            page = urllib.request.urlopen(server.url + "/metrics").read().decode()
            size = float(re.search(r"^etcd_mvcc_db_total_size_in_bytes (\S+)$", page, re.M)[1])
            return size <= line["current-db-size-in-use-bytes"] + (1 << 20)
        self.eventually(freed)

    def test_log_is_json_unless_it_goes_to_a_terminal(self):
        server = self.serving()
        for line in server.lines:
            self.assertLessEqual({"level", "ts", "caller", "msg"}, set(json.loads(line)), line)

    def test_clean_stop_logs_no_error(self):
        server = self.server().start()
        client = Client(server.port)
        client.put(b"a", b"1")
        client.close()
        server.stop()
        self.assertNotIn('"level":"error"', server.log)


if __name__ == "__main__":
    unittest.main()
