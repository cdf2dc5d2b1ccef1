#!/usr/bin/python3
"""Runs the tests of libvigil in tests/client/*.c against Vigil, each with a server of its own."""
import base64
import json
import pathlib
import re
import sys
import unittest
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "live"))
from certs import Authority  # noqa: E402
from misbehaving_server import ClosesTls, MisbehavingServer  # noqa: E402
from proxy import FaultyProxy  # noqa: E402
from server import LiveTest, free_port  # noqa: E402
from targets import Target, VigilMember, common_tests, run_side_by_side, run_test, tests_of  # noqa: E402

CASES = pathlib.Path(__file__).with_name("clientv3_cases.txt")
# What is repeated over TLS and with a user; the calls and the queue also in a thread of the program's.
CALLS = ["put_get_and_delete", "large_values", "reads_are_repeated_after_a_restart", "unreachable_server_is_named",
         "range_comes_as_a_stream", "pages_survive_a_restart", "paused_calls_leave_the_connection_to_others",
         "paused_calls_may_end", "leaders_are_observed"]
BASIC = ["put_get_and_delete", "large_values", "watch_resumes_after_a_restart", "reads_are_repeated_after_a_restart",
         "pages_survive_a_restart", "leaders_are_observed"]


def in_c(name):
    """TestWatchWithPrevKV is watch_with_prev_kv."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name.removeprefix("Test"))
    return words.lower()


class ClientTest(LiveTest):
    def vigil(self, directory, **options):
        """Starts Vigil for as long as the test takes; at its end the server must exit without a fault."""
        member = VigilMember(directory, **options)
        self.addCleanup(member.kill)
        target = Target([member])
        self.addCleanup(target.close)
        self.addCleanup(target.stop)
        self.addCleanup(target.recover)
        return target

    def serving_tls(self, directory):
        """Returns an authority, and a server whose certificate it has signed."""
        authority = Authority(self.scratch / "certs")
        identity = authority.sign("server")
        port = free_port()
        target = self.vigil(directory, port=port, listen=f"https://127.0.0.1:{port}",
                            args=["--cert-file", identity.cert, "--key-file", identity.key])
        target.members[0].url = f"https://127.0.0.1:{port}"
        return authority, target

    def check(self, name, target, **env):
        env.setdefault("VIGIL_ENDPOINTS", target.endpoints)
        self.assertEqual(run_test(name, target.obey, env), (0, ""), name)


class Plain(ClientTest):
    def run_one(self, name):
        self.check(name, self.vigil(self.scratch / "data"))


class Impatient(ClientTest):
    """The server ends streams of which a client reads nothing."""

    def test_stream_that_is_paused_for_long_is_ended(self):
        target = self.vigil(self.scratch / "data", args=["--response-stall-timeout", "1s"])
        self.check("stream_that_is_paused_for_long_is_ended", target)


class Ported(ClientTest):
    """The cases of clientv3, whose connections can be cut."""

    def run_one(self, name):
        target = self.vigil(self.scratch / "data")
        self.check(name, target, VIGIL_ENDPOINTS=target.bridged, VIGIL_DIRECT=target.endpoints)


class Null(ClientTest):
    """NULL instead of any object. The list of functions is that of the linker."""

    def test_every_function_accepts_null(self):
        symbols = pathlib.Path(__file__).resolve().parents[2] / "src/client/libvigil.map"
        self.assertEqual(run_test("every_function_accepts_null", None, {"VIGIL_SYMBOLS": str(symbols)}), (0, ""))


class Cases(unittest.TestCase):
    """The list of clientv3's cases and the suite have the same names."""

    def test_every_case_is_ported_or_has_a_reason(self):
        ported = []
        for line in CASES.read_text().splitlines():
            if line and not line.startswith("#"):
                name, _, reason = line.partition(" - ")
                self.assertRegex(name, r"^Test\w+$")
                self.assertEqual(bool(reason), " " in line, line)
                if not reason:
                    ported.append(in_c(name))
        self.assertGreater(len(ported), 60)
        self.assertEqual(sorted(ported), sorted(tests_of("ported") + tests_of("ported-cluster")))


class Faulty(ClientTest):
    """Between client and server there is a proxy that breaks connections."""

    def run_behind(self, target, seed, name, **env):
        scheme = target.endpoints.partition(":")[0]
        proxy = FaultyProxy(target.members[0].port, seed, garbage=scheme == "https")
        self.addCleanup(proxy.close)
        with self.subTest(seed=seed, scheme=scheme):
            self.check(name, target, VIGIL_ENDPOINTS=f"{scheme}://{proxy.address}", VIGIL_DIRECT=target.endpoints,
                       **env)
            self.assertGreater(proxy.faults, 5)

    def run_one(self, name):
        self.run_behind(self.vigil(self.scratch / "plain"), 1, name)
        authority, target = self.serving_tls(self.scratch / "secure")
        self.run_behind(target, 2, name, VIGIL_CA_FILE=authority.cert)


class OwnLoop(ClientTest):
    """The blocking calls drive the client in the program's thread."""

    def run_one(self, name):
        self.check(name, self.vigil(self.scratch / "data"), VIGIL_OWN_LOOP="1")


class Secure(ClientTest):
    def setUp(self):
        super().setUp()
        self.authority, self.secure = self.serving_tls(self.scratch / "data")

    def run_one(self, name):
        self.check(name, self.secure, VIGIL_CA_FILE=self.authority.cert)

    def test_untrusted_server_is_refused_with_the_reason(self):
        other = Authority(self.scratch / "other", "other")
        self.check("untrusted_server_is_refused_with_the_reason", self.secure, VIGIL_CA_FILE=other.cert)

    def test_server_that_closes_tls_at_once_is_left(self):
        server = ClosesTls(self.secure.members[0].port, self.authority.sign("closing"))
        self.addCleanup(server.close)
        self.check("put_get_and_delete", self.secure, VIGIL_CA_FILE=self.authority.cert,
                   VIGIL_ENDPOINTS=f"https://{server.address}")
        self.assertGreaterEqual(server.connections, 2)


class WithUser(ClientTest):
    """Tokens of a server are lost when it restarts, so every restart needs new ones."""

    def setUp(self):
        super().setUp()
        self.protected = self.vigil(self.scratch / "data", args=["--bcrypt-cost", "4"])
        self.ask("user/add", name="root", password="secret")
        self.ask("user/grant", user="root", role="root")
        self.ask("role/add", name="anna")
        key, end = (base64.b64encode(text).decode() for text in (b"anna/", b"anna0"))
        self.ask("role/grant", name="anna", perm={"permType": "READWRITE", "key": key, "range_end": end})
        self.ask("user/add", name="anna", password="pass")
        self.ask("user/grant", user="anna", role="anna")
        self.ask("enable")

    def ask(self, path, **body):
        url = f"{self.protected.endpoints}/v3/auth/{path}"
        with urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode()), timeout=30) as answer:
            return json.load(answer)

    def run_one(self, name):
        self.check(name, self.protected, VIGIL_USER="root", VIGIL_PASSWORD="secret")

    def test_wrong_password_is_an_error(self):
        self.check("wrong_password_is_an_error", self.protected, VIGIL_USER="root", VIGIL_PASSWORD="guess")

    def run_after(self, how, name):
        server = MisbehavingServer(self.protected.members[0].port, how)
        self.addCleanup(server.close)
        self.check(name, self.protected, VIGIL_ENDPOINTS=f"http://{server.address}", VIGIL_USER="root",
                   VIGIL_PASSWORD="secret")
        self.assertEqual(server.connections, 2, how)

    def test_a_server_that_does_not_authenticate_is_left(self):
        for how in ("reset", "goaway", "http error", "silent"):
            with self.subTest(how):
                self.run_after(how, "put_get_and_delete")

    def test_a_token_is_renewed_when_no_stream_is_free(self):
        self.run_after("full", "concurrent_reads_succeed")

    def test_forbidden_watch_ends_with_the_reason(self):
        self.check("forbidden_watch_ends_with_the_reason", self.protected, VIGIL_USER="anna", VIGIL_PASSWORD="pass")

    def test_metadata_of_a_watch_reaches_the_server(self):
        token = self.ask("authenticate", name="anna", password="pass")["token"]
        self.check("metadata_of_a_watch_reaches_the_server", self.protected, VIGIL_METADATA_TOKEN=token)


def add_tests():
    runs = {Plain: common_tests(), OwnLoop: CALLS + tests_of("queue") + tests_of("objects"), Secure: BASIC,
            WithUser: BASIC, Faulty: tests_of("faults"), Ported: tests_of("ported")}
    for case, names in runs.items():
        for name in names:
            setattr(case, f"test_{name}", lambda self, name=name: self.run_one(name))


add_tests()
if __name__ == "__main__":
    run_side_by_side(__file__, [Faulty, Plain, Ported, OwnLoop, WithUser, Secure, Impatient, Null, Cases])
