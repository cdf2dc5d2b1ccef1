#!/usr/bin/python3
"""Runs etcdctl's commands for authentication, and other commands while it is enabled, on Vigil and on a real etcd. Output and
exit codes must be the same."""
import unittest

from compare_etcdctl import CompareEtcdctl, version
from certs import openssl

READER = ("reader", "read", "/a/", "--prefix")


class AuthSame(CompareEtcdctl):
    flags = ["--bcrypt-cost", "4"]  # the lowest, because the tests hash many passwords

    def users(self):
        """Adds root, and anna, who may read /a/… and write /w."""
        for name in ("root", "anna"):
            self.both("user", "add", f"{name}:{name}pw", code=0)
        self.both("role", "add", "reader", code=0)
        self.both("role", "grant-permission", *READER, code=0)
        self.both("role", "grant-permission", "reader", "readwrite", "/w", code=0)
        self.both("user", "grant-role", "anna", "reader", code=0)
        self.both("user", "grant-role", "root", "root", code=0)
        self.both("auth", "enable", code=0)

    def root(self, *args, **options):
        return self.both("--user", "root:rootpw", *args, **options)

    def anna(self, *args, **options):
        return self.both("--user", "anna:annapw", *args, **options)

    def test_users(self):
        self.both("user", "list", code=0)
        self.both("user", "add", "anna:pw", code=0)
        self.both("user", "add", "anna:pw", fails=True)
        self.both("user", "add", ":pw", fails=True)
        self.both("user", "add", "bert", "--interactive=false", text="first\n", code=0)
        self.both("user", "add", "carl", "--no-password", code=0)
        self.both("user", "add", "x" * 80 + ":" + "y" * 73, fails=True)
        self.both("user", "passwd", "bert", "--interactive=false", text="second\n", code=0)
        self.both("user", "passwd", "nobody", "--interactive=false", text="second\n", fails=True)
        self.both("user", "get", "anna", code=0)
        self.both("user", "get", "nobody", fails=True)
        self.both("user", "get", "", fails=True)
        self.both("user", "list", "-w", "json", code=0)
        self.both("user", "list", "-w", "fields")
        self.both("user", "grant-role", "anna", "none", fails=True)
        self.both("user", "grant-role", "nobody", "root", fails=True)
        self.both("user", "grant-role", "anna", "root", code=0)
        self.both("user", "grant-role", "anna", "root", code=0)
        self.both("user", "get", "anna", "--detail")
        self.both("user", "get", "anna", "-w", "json", code=0)
        self.both("user", "revoke-role", "anna", "root", code=0)
        self.both("user", "revoke-role", "anna", "root", fails=True)
        self.both("user", "revoke-role", "nobody", "root", fails=True)
        self.both("user", "delete", "anna", code=0)
        self.both("user", "delete", "anna", fails=True)
        self.both("user", "list", code=0)

    def test_roles(self):
        self.both("role", "list", code=0)
        self.both("role", "add", "r", code=0)
        self.both("role", "add", "r", fails=True)
        self.both("role", "add", "", fails=True)
        self.both("role", "grant-permission", "r", "read", "k", code=0)
        self.both("role", "grant-permission", "r", "write", "k", code=0)
        self.both("role", "grant-permission", "r", "readwrite", "from", "to", code=0)
        self.both("role", "grant-permission", "r", "read", "p/", "--prefix", code=0)
        self.both("role", "grant-permission", "r", "read", "z", "--from-key", code=0)
        self.both("role", "grant-permission", "r", "read", "", "--prefix", code=0)
        self.both("role", "grant-permission", "r", "read", "z", "a", fails=True)
        self.both("role", "grant-permission", "r", "all", "k")
        self.both("role", "grant-permission", "none", "read", "k", fails=True)
        for shape in ("simple", "json", "fields"):
            self.both("role", "get", "r", "-w", shape)
        self.both("role", "get", "none", fails=True)
        self.both("role", "revoke-permission", "r", "k", code=0)
        self.both("role", "revoke-permission", "r", "k", fails=True)
        self.both("role", "revoke-permission", "r", "from", "to", code=0)
        self.both("role", "revoke-permission", "r", "p/", "--prefix", code=0)
        self.both("role", "revoke-permission", "none", "k", fails=True)
        self.both("role", "get", "r", code=0)
        self.both("user", "add", "anna:pw", code=0)
        self.both("user", "grant-role", "anna", "r", code=0)
        self.both("role", "delete", "r", code=0)
        self.both("role", "delete", "r", fails=True)
        self.both("user", "get", "anna", code=0)
        self.both("role", "list", code=0)

    def test_enabling_and_disabling(self):
        self.both("auth", "enable", fails=True)
        self.both("user", "add", "root:rootpw", code=0)
        self.both("auth", "enable", code=0)  # grants the role itself
        self.both("user", "list", fails=True)
        self.root("user", "list", code=0)
        self.root("role", "list", code=0)
        self.root("role", "get", "root")
        for refused in (["user", "delete", "root"], ["role", "delete", "root"],
                        ["user", "revoke-role", "root", "root"]):
            self.root(*refused, fails=True)
        self.both("--user", "root:wrong", "user", "list", fails=True)
        self.both("--user", "nobody:rootpw", "user", "list", fails=True)
        self.root("user", "passwd", "root", "--interactive=false", text="another\n", code=0)
        self.root("user", "list", fails=True)
        self.both("--user", "root:another", "auth", "disable", code=0)
        self.both("user", "list", code=0)
        self.both("--user", "root:another", "get", "a", code=0)
        if version() >= (3, 5):
            self.both("auth", "status", "-w", "json", code=0)

    def test_permissions_of_a_user(self):
        self.users()
        self.root("put", "/a/1", "one", code=0)
        self.root("put", "/b", "two", code=0)
        for keys in (["/a/1"], ["/a/", "--prefix"], ["/a/", "/a/9"], ["/w"], ["/b"], ["/a/", "--from-key"],
                     ["/a", "--prefix"], ["", "--prefix"], ["/a/1", "/w"]):
            self.anna("get", *keys)
            self.both("get", *keys, fails=True)
        self.anna("put", "/w", "x", code=0)
        self.anna("put", "/w", "y", "--prev-kv", code=0)
        self.anna("put", "/a/1", "x", fails=True)
        self.anna("put", "/a/1", "x", "--prev-kv", fails=True)
        self.anna("del", "/w", "--prev-kv", code=0)
        self.anna("del", "/a/1", fails=True)
        self.anna("del", "/", "--prefix", fails=True)
        for text in ('value("/w") = "x"\n\nput /w 1\n\nget /a/1\n\n', 'value("/b") = "x"\n\nput /w 1\n\n\n',
                     '\n\nput /w 1\n\nput /b 1\n\n', 'mod("/a/1") > "0"\n\nget /a/1\n\nget /b\n\n'):
            self.anna("txn", text=text)
        self.anna("compaction", "2", fails=True)
        self.root("compaction", "2", code=0)
        self.anna("user", "get", "anna", code=0)
        self.anna("user", "get", "root", fails=True)
        self.anna("role", "get", "reader", code=0)
        self.anna("role", "get", "root", fails=True)
        for refused in (["user", "list"], ["role", "list"], ["user", "add", "new:pw"], ["role", "add", "new"],
                        ["auth", "disable"], ["user", "grant-role", "anna", "root"], ["defrag"],
                        ["role", "grant-permission", "reader", "read", "/b"]):
            self.anna(*refused, fails=True)
        self.anna("alarm", "list", code=0)
        self.anna("endpoint", "health")
        self.anna("member", "list")
        for refused in (["member", "list"], ["alarm", "list"], ["lease", "list"], ["lease", "grant", "10"]):
            self.both(*refused, fails=True)

    def test_leases(self):
        self.users()
        for which, server in enumerate(self.servers):
            for user in ("root:rootpw", "anna:annapw"):
                _, out, _ = self.run_on(server, ["--user", user, "lease", "grant", "1000"])
                self.leases[which].append(int(out.split()[1], 16))
        self.root("put", "/b", "on it", "--lease=LEASE0", code=0)
        self.anna("put", "/w", "on it", "--lease=LEASE0", fails=True)
        self.anna("put", "/w", "on it", "--lease=LEASE1", code=0)
        self.anna("lease", "timetolive", "LEASE0", code=0)
        self.anna("lease", "timetolive", "LEASE0", "--keys", fails=True)
        self.anna("lease", "timetolive", "LEASE1", "--keys", code=0)
        self.anna("lease", "keep-alive", "--once", "LEASE0")
        self.anna("lease", "keep-alive", "--once", "LEASE1", code=0)
        self.anna("lease", "list", fails=True)
        self.anna("lease", "revoke", "LEASE0", fails=True)
        self.anna("lease", "revoke", "LEASE1", code=0)
        self.root("lease", "revoke", "LEASE0", code=0)
        self.anna("lease", "list", code=0)

    def test_watches(self):
        self.users()
        for refused in (["/b"], ["/a/", "--from-key"], ["", "--prefix"]):
            self.anna("watch", *refused)
        both = self.follow("--user", "anna:annapw", "watch", "/a/", "--prefix", "--rev", "1")
        for value in ("1", "2"):
            self.root("put", "/a/k", value, code=0)
            self.root("put", "/b", value, code=0)
            self.same_lines(both, 3)


@unittest.skipIf(version() < (3, 5), "the tests run once with web tokens, with the newest etcdctl")
class AuthSameWithWebTokens(AuthSame):
    def start(self, name, **options):
        key, public = self.scratch / "key.pem", self.scratch / "public.pem"
        if not public.exists():
            openssl("genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048", "-out", str(key))
            openssl("pkey", "-in", str(key), "-pubout", "-out", str(public))
        options["args"] = [*options["args"], "--auth-token",
                           f"jwt,pub-key={public},priv-key={key},sign-method=RS256,ttl=5m"]
        return super().start(name, **options)


if __name__ == "__main__":
    unittest.main()
