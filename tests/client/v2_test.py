#!/usr/bin/python3
"""Runs the tests of libvigil's watches over the v2 keys API (v2.c) against Vigil and Debian's etcd 3.4. They ask for
requests of the v2 API ("ask v2 PUT /a value=1")."""
import http.client
import pathlib
import sys
import unittest
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "live"))
from certs import Authority  # noqa: E402
from proxy import FaultyProxy  # noqa: E402
from server import LiveTest, free_port  # noqa: E402
from targets import ETCD_34, Target, VigilMember, etcd, run_test, tests_of  # noqa: E402

HISTORY = 1000  # changes of all keys that etcd keeps
ROOT = "Basic cm9vdDpzZWNyZXQ="  # root:secret
WITH_WRONG_USER = "v2_wrong_user_ends_with_the_reason"
BEHIND_PROXY = "v2_watch_loses_nothing_when_connections_break"
BASIC = ["v2_state_has_nested_directories", "v2_watch_survives_a_killed_server"]


class V2Client:
    """Changes keys as a client of the v2 API does, and leaves everything else to the target."""

    def __init__(self, target):
        self.target = target
        self.member = target.members[-1]
        self.address = f"127.0.0.1:{self.member.port}"
        self.connection = None

    def close(self):
        if self.connection:
            self.connection.close()
        self.connection = None

    def obey(self, what):
        if not what.startswith("v2 "):
            return self.target.obey(what)
        what = what.removeprefix("v2 ")
        if what == "clear history":
            self.clear_history()
        elif what == "long value":
            self.request("PUT /long value=" + 2000 * "x")
        else:
            self.request(what)
        return None

    def request(self, what):
        method, path, *form = what.split(" ")
        body = "&".join(form)
        if method == "DELETE":
            path, body = f"{path}?{body}", ""
        try:
            return self.send(method, path, body)
        except (ConnectionError, http.client.HTTPException):  # the server was restarted
            self.close()
            return self.send(method, path, body)

    def send(self, method, path, body):
        fields = {"Content-Type": "application/x-www-form-urlencoded", "Authorization": ROOT}
        if self.connection is None:
            self.connection = http.client.HTTPConnection(self.address, timeout=60)
        self.connection.request(method, f"/v2/keys{path}", body, fields)
        with self.connection.getresponse() as answer:
            text = answer.read()
            assert answer.status in (200, 201), text
            return answer.headers["X-Etcd-Index"]

    def clear_history(self):
        for _ in range(HISTORY + 10):
            index = self.request("PUT /unrelated value=x")
        if isinstance(self.member, VigilMember):  # which keeps its history until it is compacted
            request = urllib.request.Request(f"http://{self.address}/v3/kv/compaction",
                                             f'{{"revision":"{index}"}}'.encode())
            with urllib.request.urlopen(request, timeout=60) as answer:
                answer.read()


class V2Test(LiveTest):
    def check(self, name, target, **env):
        client = V2Client(target)
        self.addCleanup(client.close)
        env.setdefault("VIGIL_ENDPOINTS", target.endpoints)
        self.assertEqual(run_test(name, client.obey, env), (0, ""), name)

    def run_one(self, name):
        self.check(name, self.serving_v2())

    def check_users(self, target):
        for path, body in (("users/root", '{"user":"root","password":"secret"}'), ("enable", ""),
                           ("roles/guest", '{"role":"guest","revoke":{"kv":{"read":["/*"],"write":["/*"]}}}')):
            request = urllib.request.Request(f"{target.endpoints}/v2/auth/{path}", body.encode(), method="PUT")
            request.add_header("Content-Type", "application/json")
            request.add_header("Authorization", ROOT)
            with urllib.request.urlopen(request, timeout=60) as answer:
                answer.read()
        self.check(WITH_WRONG_USER, target)
        self.check(WITH_WRONG_USER, target, VIGIL_USER="root", VIGIL_PASSWORD="guess")
        self.check("v2_state_has_nested_directories", target, VIGIL_USER="root", VIGIL_PASSWORD="secret")


class OnVigil(V2Test):
    def serving_v2(self, args=(), **options):
        member = VigilMember(self.scratch / "data", args=["--enable-v2", *args], **options)
        self.addCleanup(member.kill)
        target = Target([member])
        self.addCleanup(target.close)
        self.addCleanup(target.stop)
        self.addCleanup(target.recover)
        return target

    def test_users(self):
        self.check_users(self.serving_v2(["--bcrypt-cost", "4"]))

    def test_watch_loses_nothing_when_connections_break(self):
        target = self.serving_v2()
        proxy = FaultyProxy(target.members[0].port, 1, garbage=False)
        self.addCleanup(proxy.close)
        self.check(BEHIND_PROXY, target, VIGIL_ENDPOINTS=f"http://{proxy.address}")
        self.assertGreater(proxy.faults, 5)

    def test_over_tls(self):
        authority = Authority(self.scratch / "certs")
        identity = authority.sign("server")
        secure, port = f"https://127.0.0.1:{free_port()}", free_port()
        target = self.serving_v2(["--cert-file", identity.cert, "--key-file", identity.key], port=port,
                                 listen=f"{secure},http://127.0.0.1:{port}")
        for name in BASIC:
            self.check(name, target, VIGIL_ENDPOINTS=secure, VIGIL_CA_FILE=authority.cert)

    def test_first_endpoint_may_be_down(self):
        target = self.serving_v2()
        self.check(BASIC[0], target, VIGIL_ENDPOINTS=f"http://127.0.0.1:1,{target.endpoints}")


class OnEtcd(V2Test):
    def serving_v2(self, members=1):
        target = etcd(self.scratch, ETCD_34, members, args=["--enable-v2=true"])
        self.addCleanup(target.close)
        return target

    def test_users(self):
        self.check_users(self.serving_v2())

    def test_three_members(self):
        target = self.serving_v2(3)
        for name in BASIC:
            self.check(name, target)


def add_tests():
    names = set(tests_of("v2"))
    assert {WITH_WRONG_USER, BEHIND_PROXY, *BASIC} <= names
    for case in (OnVigil, OnEtcd):
        for name in names - {WITH_WRONG_USER, BEHIND_PROXY}:
            setattr(case, f"test_{name}", lambda self, name=name: self.run_one(name))


add_tests()
if __name__ == "__main__":
    unittest.main()
