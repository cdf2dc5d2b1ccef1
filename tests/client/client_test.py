#!/usr/bin/python3
"""Runs the tests of libvigil in tests/client/*.c, each with a server of its own. A test asks for what it needs of the
server on standard output ("ask restart") and reads "done" when it has happened."""
import base64
import functools
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import threading
import unittest
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "live"))
from certs import Authority  # noqa: E402
from faulty_proxy import FaultyProxy  # noqa: E402
from misbehaving_server import MisbehavingServer  # noqa: E402
from server import SUBJECT, LiveTest, free_port  # noqa: E402

SUITE = os.environ.get("VIGIL_CLIENT_SUITE", str(pathlib.Path(SUBJECT).parent / "client_suite"))
ETCDCTL = os.environ.get("ETCDCTL", "etcdctl")
TEST_SECONDS = 300
SNAPSHOT_KEYS = 2500  # KEYS in parts.c
PROTECTED = ["wrong_password_is_an_error", "forbidden_watch_ends_with_the_reason",
             "untrusted_server_is_refused_with_the_reason"]
CLUSTER = ["watches_survive_the_loss_of_members", "watch_that_requires_a_leader_ends_without_one"]  # cluster_test.py
FAULTS = ["watches_lose_nothing_when_connections_break", "reads_succeed_and_writes_tell_their_outcome"]
# What is repeated over TLS and with a user; the calls and the queue also in a thread of the program's.
CALLS = ["put_get_and_delete", "large_values", "reads_are_repeated_after_a_restart", "unreachable_server_is_named",
         "range_comes_as_a_stream", "pages_survive_a_restart", "paused_calls_leave_the_connection_to_others",
         "paused_calls_may_end", "broken_stream_is_not_repeated", "leaders_are_observed"]
QUEUE = ["queue_delivers_completed_calls", "queue_wakes_the_program_once", "queue_take_has_a_timeout",
         "queue_delivers_a_lost_lease", "queue_may_be_used_inside_a_callback",
         "shutdown_is_delivered_through_the_queue", "freed_client_ends_its_queue", "freed_queue_drops_its_items",
         "everything_may_be_freed_in_every_order"]
BASIC = ["put_get_and_delete", "large_values", "watch_resumes_after_a_restart", "reads_are_repeated_after_a_restart"]


def check_snapshot(path):
    """The digest of the file is checked by restoring it, and its keys are counted."""
    directory = f"{path}.restored"
    run = functools.partial(subprocess.run, check=True, capture_output=True, text=True,
                            env=dict(os.environ, ETCDCTL_API="3"))
    status = json.loads(run([ETCDCTL, "snapshot", "status", path, "-w", "json"]).stdout)
    assert status["totalKey"] >= SNAPSHOT_KEYS, status
    run([ETCDCTL, "snapshot", "restore", path, "--data-dir", directory])
    shutil.rmtree(directory)
    os.remove(path)


class Driver:
    """One run of one test of the suite."""

    def __init__(self, server, name, env):
        self.server = server
        self.snapshot = f"{server.directory}.snapshot"
        env = dict(env, VIGIL_SNAPSHOT_FILE=self.snapshot)
        self.process = subprocess.Popen([SUITE, name], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True, env=dict(os.environ, **env))

    def obey(self, what):
        if what in ("stop", "restart"):
            self.server.stop()
        if what in ("start", "restart"):
            self.server.start()
        if what == "pause":
            os.kill(self.server.pid, signal.SIGSTOP)
        if what == "continue":
            os.kill(self.server.pid, signal.SIGCONT)
        if what == "check-snapshot":
            check_snapshot(self.snapshot)

    def run(self):
        timer = threading.Timer(TEST_SECONDS, self.process.kill)
        timer.start()
        with self.process:
            for line in self.process.stdout:
                verb, _, what = line.strip().partition(" ")
                assert verb == "ask", line
                self.obey(what)
                self.process.stdin.write("done\n")
                self.process.stdin.flush()
            errors = self.process.stderr.read()
        timer.cancel()
        return self.process.returncode, errors


class ClientTest(LiveTest):
    def serving_tls(self, directory):
        """Returns an authority, and a server whose certificate it has signed."""
        authority = Authority(self.scratch / "certs")
        identity = authority.sign("server")
        port = free_port()
        server = self.server(directory, port=port, listen=f"https://127.0.0.1:{port}",
                             args=["--cert-file", identity.cert, "--key-file", identity.key])
        server.url = f"https://127.0.0.1:{port}"
        self.addCleanup(server.stop)
        return authority, server.start()

    def check(self, name, server, **env):
        def wake():
            if server.alive():
                os.kill(server.pid, signal.SIGCONT)
        self.addCleanup(wake)
        code, errors = Driver(server, name, dict(env, VIGIL_ENDPOINTS=server.url)).run()
        self.assertEqual((code, errors), (0, ""), name)


class Plain(ClientTest):
    def run_one(self, name):
        self.check(name, self.serving())


class Faulty(ClientTest):
    """Between client and server there is a proxy that breaks connections."""

    def run_behind(self, server, seed, name, **env):
        scheme = server.url.partition(":")[0]
        proxy = FaultyProxy(server.port, seed, garbage=scheme == "https")
        self.addCleanup(proxy.close)
        code, errors = Driver(server, name, dict(env, VIGIL_ENDPOINTS=f"{scheme}://{proxy.address}",
                                                 VIGIL_DIRECT=server.url)).run()
        self.assertEqual((code, errors), (0, ""), f"{name}, seed {seed}, {scheme}")
        self.assertGreater(proxy.faults, 5)

    def run_one(self, name):
        self.run_behind(self.serving(self.scratch / "plain"), 1, name)
        authority, server = self.serving_tls(self.scratch / "secure")
        self.run_behind(server, 2, name, VIGIL_CA_FILE=authority.cert)


class OwnLoop(ClientTest):
    """The blocking calls drive the client in the program's thread."""

    def run_one(self, name):
        self.check(name, self.serving(), VIGIL_OWN_LOOP="1")


class Secure(ClientTest):
    def setUp(self):
        super().setUp()
        self.authority, self.secure = self.serving_tls(self.scratch / "data")

    def run_one(self, name):
        self.check(name, self.secure, VIGIL_CA_FILE=self.authority.cert)

    def test_untrusted_server_is_refused_with_the_reason(self):
        other = Authority(self.scratch / "other", "other")
        self.check("untrusted_server_is_refused_with_the_reason", self.secure, VIGIL_CA_FILE=other.cert)


class WithUser(ClientTest):
    """Tokens of a server are lost when it restarts, so every restart needs new ones."""

    def setUp(self):
        super().setUp()
        self.protected = self.serving(args=["--bcrypt-cost", "4"])
        self.ask("user/add", name="root", password="secret")
        self.ask("user/grant", user="root", role="root")
        self.ask("role/add", name="anna")
        key, end = (base64.b64encode(text).decode() for text in (b"anna/", b"anna0"))
        self.ask("role/grant", name="anna", perm={"permType": "READWRITE", "key": key, "range_end": end})
        self.ask("user/add", name="anna", password="pass")
        self.ask("user/grant", user="anna", role="anna")
        self.ask("enable")

    def ask(self, path, **body):
        url = f"{self.protected.url}/v3/auth/{path}"
        with urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode()), timeout=30) as answer:
            answer.read()

    def run_one(self, name):
        self.check(name, self.protected, VIGIL_USER="root", VIGIL_PASSWORD="secret")

    def test_wrong_password_is_an_error(self):
        self.check("wrong_password_is_an_error", self.protected, VIGIL_USER="root", VIGIL_PASSWORD="guess")

    def run_after(self, how, name):
        server = MisbehavingServer(self.protected.port, how)
        self.addCleanup(server.close)
        env = {"VIGIL_ENDPOINTS": f"http://{server.address}", "VIGIL_USER": "root", "VIGIL_PASSWORD": "secret"}
        code, errors = Driver(self.protected, name, env).run()
        self.assertEqual((code, errors, server.connections), (0, "", 2), how)

    def test_a_server_that_does_not_authenticate_is_left(self):
        for how in ("reset", "goaway", "http error", "silent"):
            with self.subTest(how):
                self.run_after(how, "put_get_and_delete")

    def test_a_token_is_renewed_when_no_stream_is_free(self):
        self.run_after("full", "concurrent_reads_succeed")

    def test_forbidden_watch_ends_with_the_reason(self):
        self.check("forbidden_watch_ends_with_the_reason", self.protected, VIGIL_USER="anna", VIGIL_PASSWORD="pass")


def add_tests():
    names = subprocess.run([SUITE], check=True, capture_output=True, text=True).stdout.split()
    assert set(BASIC + CALLS + QUEUE + PROTECTED + FAULTS) <= set(names)
    elsewhere = PROTECTED + FAULTS + CLUSTER
    runs = {Plain: [name for name in names if name not in elsewhere], OwnLoop: CALLS + QUEUE, Secure: BASIC, WithUser: BASIC,
            Faulty: FAULTS}
    for case, own in runs.items():
        for name in own:
            setattr(case, f"test_{name}", lambda self, name=name: self.run_one(name))


add_tests()
if __name__ == "__main__":
    unittest.main()
