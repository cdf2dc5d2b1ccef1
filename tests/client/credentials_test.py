#!/usr/bin/python3
"""libvigil while tokens expire, users and roles are removed, and certificates are replaced: with Vigil, Debian's etcd
3.4 and etcd 3.7."""
import concurrent.futures
import os
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "live"))
from certs import Authority, openssl  # noqa: E402
from server import LiveTest, free_port  # noqa: E402
from targets import ETCD_34, ETCD_37, EtcdMember, Target, VigilMember, run_test  # noqa: E402

KINDS = {"Vigil": None, "etcd 3.4": ETCD_34, "etcd 3.7": ETCD_37}
CHEAP = ["--bcrypt-cost", "4"]
TOKEN_SECONDS = 3  # a token of one second has expired then


class Certificates:
    """The files of a server and a client, and a second authority that replaces the first one."""

    def __init__(self, directory):
        self.directory = directory
        self.old, self.new = (Authority(directory / name, name) for name in ("old", "new"))
        self.install(self.old)
        self.copy(self.file("trusted"), self.old.cert, self.new.cert)

    def file(self, name):
        return str(self.directory / f"{name}.pem")

    def copy(self, to, *sources):
        """Replaces a file at once, so that no reader gets a part of it."""
        pathlib.Path(f"{to}.part").write_text("".join(pathlib.Path(source).read_text() for source in sources))
        os.replace(f"{to}.part", to)

    def install(self, authority):
        for name in ("server", "client"):
            identity = authority.sign(name)
            self.copy(self.file(f"{name}-key"), identity.key)
            self.copy(self.file(name), identity.cert)
        self.copy(self.file("ca"), authority.cert)

    def server_args(self):
        return ["--cert-file", self.file("server"), "--key-file", self.file("server-key"), "--client-cert-auth",
                "--trusted-ca-file", self.file("trusted")]

    def client_env(self):
        return {"VIGIL_CA_FILE": self.file("ca"), "VIGIL_CERT_FILE": self.file("client"),
                "VIGIL_KEY_FILE": self.file("client-key")}

    def obey(self, what, target):
        if what == "replace certificates":
            self.install(self.new)
            return None
        if what == "trust new certificates only":
            self.copy(self.file("trusted"), self.new.cert)
            return target.obey("restart")  # etcd reads this file only when it starts
        return target.obey(what)


class Credentials(LiveTest):
    def target(self, directory, binary, args, scheme="http"):
        directory.mkdir()
        if binary:
            member = EtcdMember(directory, binary, args=args, scheme=scheme)
        else:
            port = free_port()
            member = VigilMember(directory / "data", args, port=port, listen=f"{scheme}://127.0.0.1:{port}")
            member.url = member.listen
        self.addCleanup(member.kill)
        target = Target([member])
        self.addCleanup(target.close)
        return target

    def check(self, name, target, obey=None, **env):
        env.update(VIGIL_ENDPOINTS=target.bridged, VIGIL_DIRECT=target.endpoints)
        self.assertEqual(run_test(name, obey or target.obey, env), (0, ""), name)

    def with_each(self, work):
        """Calls work side by side, because it mostly waits."""
        with concurrent.futures.ThreadPoolExecutor() as pool:
            list(pool.map(work, range(len(KINDS)), KINDS.values()))

    def test_expired_simple_tokens_are_renewed(self):
        def work(index, binary):
            target = self.target(self.scratch / str(index), binary, CHEAP + ["--auth-token-ttl", "1"])
            self.check("expired_tokens_are_renewed", target, VIGIL_TOKEN_SECONDS=str(TOKEN_SECONDS))
        self.with_each(work)

    def test_expired_jwts_are_renewed(self):
        private, public = self.scratch / "private.pem", self.scratch / "public.pem"
        openssl("genrsa", "-out", str(private), "2048")
        openssl("rsa", "-in", str(private), "-pubout", "-out", str(public))
        token = f"jwt,pub-key={public},priv-key={private},sign-method=RS256,ttl=1s"

        def work(index, binary):
            target = self.target(self.scratch / str(index), binary, CHEAP + ["--auth-token", token])
            self.check("expired_tokens_are_renewed", target, VIGIL_TOKEN_SECONDS=str(TOKEN_SECONDS))
        self.with_each(work)

    def test_removed_users_and_roles_end_their_watches(self):
        def work(index, binary):
            self.check("removed_users_and_roles_end_their_watches",
                       self.target(self.scratch / str(index), binary, CHEAP))
        self.with_each(work)

    def test_replaced_certificates_are_used(self):
        def work(index, binary):
            files = Certificates(self.scratch / f"certs-{index}")
            target = self.target(self.scratch / str(index), binary, files.server_args(), scheme="https")
            self.check("replaced_certificates_are_used", target, lambda what: files.obey(what, target),
                       **files.client_env())
        self.with_each(work)


if __name__ == "__main__":
    unittest.main()
