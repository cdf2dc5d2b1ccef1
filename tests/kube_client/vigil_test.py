#!/usr/bin/python3
"""Runs the tests of libvigil-kube in tests/kube_client/*.c against Vigil."""
import http.server
import pathlib
import sys
import tempfile
import threading
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from kube_suite import common_tests, groups, run_test  # noqa: E402
from kube import KubeServer  # noqa: E402
from proxy import FaultyProxy  # noqa: E402

# What is repeated in the program's loop and over HTTP/2.
BASIC = ["an_object_is_created_read_changed_and_deleted", "conflicts_are_refused", "every_object_is_passed_on",
         "many_calls_run_at_the_same_time", "calls_of_a_freed_client_are_harmless"]


class Shared(unittest.TestCase):
    """The tests of a class share a server, in which each makes a namespace of its own."""

    env = {}

    @classmethod
    def setUpClass(cls):
        directory = tempfile.TemporaryDirectory(prefix="vigil-kube-client-")
        cls.addClassCleanup(directory.cleanup)
        cls.server = KubeServer(pathlib.Path(directory.name) / "data").start()
        cls.addClassCleanup(cls.server.stop)
        cls.addClassCleanup(cls.server.close)

    def restart(self, what):
        self.assertEqual(what, "restart")
        self.server.stop()
        self.server.start()

    def run_one(self, name):
        env = dict(self.env, VIGIL_KUBE_SERVER=self.server.kube_url)
        self.assertEqual(run_test(name, env, self.restart), (0, ""), name)


class Plain(Shared):
    pass


class OwnLoop(Shared):
    """The blocking calls drive the client in the program's thread."""

    env = {"VIGIL_OWN_LOOP": "1"}


class Http2(Shared):
    env = {"VIGIL_HTTP2": "1"}


class NoStreaming(Shared):
    """The informers begin with a list instead of a watch that sends the initial events."""

    env = {"VIGIL_NO_STREAMING": "1"}


class Broken(Shared):
    """Between client and server there is a proxy that breaks connections."""

    def run_one(self, name):
        proxy = FaultyProxy(self.server.kube_port, 1, garbage=False)
        self.addCleanup(proxy.close)
        env = dict(self.env, VIGIL_KUBE_SERVER=f"http://{proxy.address}", VIGIL_DIRECT=self.server.kube_url)
        self.assertEqual(run_test(name, env), (0, ""), name)
        self.assertGreater(proxy.faults, 5)


class BrokenHttp2(Broken):
    env = {"VIGIL_HTTP2": "1"}


class Throttling(http.server.BaseHTTPRequestHandler):
    """Refuses the first request to /throttled with a Retry-After field, and everything else without one."""

    protocol_version = "HTTP/1.1"

    def answer(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.requests += 1
        accepted = self.path == "/throttled" and self.server.requests > 1
        body = b"{}" if accepted else b"try again later"
        self.send_response(200 if accepted else 429)
        if self.path == "/throttled":
            self.send_header("Retry-After", "1")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = answer

    def log_message(self, *_):
        pass


class Scripted(unittest.TestCase):
    def run_one(self, name):
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Throttling)
        server.requests = 0
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        self.addCleanup(server.server_close)
        self.addCleanup(thread.join)
        self.addCleanup(server.shutdown)
        env = {"VIGIL_KUBE_SERVER": f"http://127.0.0.1:{server.server_port}"}
        self.assertEqual(run_test(name, env), (0, ""), name)


def add_tests():
    runs = {Plain: common_tests() + groups()["restart"], OwnLoop: BASIC, Http2: BASIC + groups()["watch"] + groups()["informer"],
            NoStreaming: groups()["informer"], Scripted: groups()["script"], Broken: groups()["broken"], BrokenHttp2: groups()["broken"]}
    for case, names in runs.items():
        for name in names:
            setattr(case, f"test_{name}", lambda self, name=name: self.run_one(name))


add_tests()
if __name__ == "__main__":
    unittest.main()
