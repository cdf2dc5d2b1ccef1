#!/usr/bin/python3
"""Settings from flags, variables and a file, and errors in etcd's wording."""
import json
import os
import re
import subprocess
import unittest

from client import Client
from server import PEER, ROOT, SUBJECT, LiveTest, free_port, is_etcd, only_vigil

CLEAN = {k: v for k, v in os.environ.items() if not k.startswith(("VIGIL_", "ETCD_"))}


def serve(binary=SUBJECT):
    return [binary] if is_etcd(binary) else [binary, "serve"]


def ended(binary, *args, env=None):
    """The exit code and the output of a server that does not start."""
    done = subprocess.run([*serve(binary), *args], capture_output=True, text=True, timeout=20,
                          env=dict(CLEAN, **(env or {})))
    return done.returncode, (done.stdout + done.stderr).splitlines()


def failure(lines):
    """The error from the log line that says why the server does not start."""
    for line in lines:
        if line.startswith("{") and json.loads(line)["msg"] == "failed to verify flags":
            return json.loads(line)["error"]
    raise AssertionError("\n".join(lines))


class Mistakes(LiveTest):
    """Invalid settings on Vigil and on a real etcd: exit codes and the beginnings of messages are the same."""

    def both(self, *args, env=None):
        ours = ended(SUBJECT, *args, env=env)
        if os.path.exists(PEER):
            theirs = ended(PEER, *args, env=env)
            self.assertEqual(ours[0], theirs[0], f"{ours}\n{theirs}")
            return ours, theirs
        return ours, ours

    def test_usage_errors_exit_with_2(self):
        for args, message in ((["--no-such"], "flag provided but not defined: -no-such"),
                              (["--name"], "flag needs an argument: -name"),
                              (["--max-txn-ops", "many"], 'invalid value "many" for flag -max-txn-ops: '),
                              (["--snapshot-count=x"], 'invalid value "x" for flag -snapshot-count: '),
                              (["--initial-cluster-state", "x"],
                               'invalid value "x" for flag -initial-cluster-state: '),
                              (["--feature-gates=Foo=true"],
                               'invalid value "Foo=true" for flag -feature-gates: unrecognized feature gate: Foo'),
                              (["---name", "x"], "bad flag syntax: ---name")):
            with self.subTest(args=args):
                ours, theirs = self.both(*args)
                self.assertEqual(ours[0], 2)
                self.assertTrue(ours[1][0].startswith(message), ours[1][0])
                self.assertTrue(theirs[1][0].startswith(message), theirs[1][0])

    def test_argument_that_is_not_a_flag_exits_with_1(self):
        ours, theirs = self.both("extra")
        self.assertEqual(failure(ours[1]), '"extra" is not a valid flag')
        self.assertEqual(failure(theirs[1]), '"extra" is not a valid flag')

    def test_invalid_variable_exits_with_1(self):
        ours, theirs = self.both(env={"ETCD_MAX_TXN_OPS": "many"})
        for _, lines in (ours, theirs):
            self.assertIn('invalid value "many" for ETCD_MAX_TXN_OPS: ', failure(lines))

    def test_missing_or_invalid_config_file_exits_with_1(self):
        path = self.scratch / "x.yml"
        ours, theirs = self.both("--config-file", str(path))
        for _, lines in (ours, theirs):
            self.assertIn(f"open {path}: no such file or directory", failure(lines).replace("No", "no"))
        path.write_text("name: a\nfoo: [1\nbar: 2\n")
        ours, theirs = self.both("--config-file", str(path))
        if not is_etcd(SUBJECT):  # etcd counts lines from 0
            self.assertIn("yaml: line 3: did not find expected ',' or ']'", failure(ours[1]))
        self.assertIn("did not find expected ',' or ']'", failure(theirs[1]))
        path.write_text("max-txn-ops: many\n")
        ours, theirs = self.both("--config-file", str(path))
        self.assertIn("max-txn-ops", failure(ours[1]))
        self.assertIn("max-txn-ops", failure(theirs[1]))


class Sources(LiveTest):
    def settings(self, **more):
        """Writes a configuration file with all settings of a server."""
        port, peer = free_port(), f"http://127.0.0.1:{free_port()}"
        url = f"http://127.0.0.1:{port}"
        lines = {"name": "filed", "data-dir": self.scratch / "filed", "listen-client-urls": url,
                 "advertise-client-urls": url, "listen-peer-urls": peer,
                 "initial-advertise-peer-urls": peer, "initial-cluster": f"filed={peer}", **more}
        path = self.scratch / "conf.yml"
        path.write_text("".join(f"{k}: {v}\n" for k, v in lines.items()))
        return port, path

    def limit_of(self, server, port):
        client = Client(port)
        self.addCleanup(client.close)
        with self.assertRaisesRegex(Exception, "request is too large"):
            client.put(b"a", b"1" * 6000)
        client.put(b"a", b"1" * 4000)

    def test_config_file_replaces_flags_and_variables(self):
        port, path = self.settings(**{"max-request-bytes": 5000, "some-other-key": "[1, 2]"})
        server = self.server(port=port, args=["--config-file", str(path), "--max-request-bytes=1000"],
                             env={"ETCD_MAX_REQUEST_BYTES": "100"})
        server.command = lambda: [*serve(), *server.args]
        server.start()
        self.limit_of(server, port)
        loaded = [json.loads(line) for line in server.lines if "loaded server configuration" in line]
        self.assertEqual(loaded[0]["path"], str(path))
        server.stop()

    def test_variable_names_the_config_file(self):
        port, path = self.settings(**{"max-request-bytes": 5000})
        server = self.server(port=port, env={"ETCD_CONFIG_FILE": str(path)})
        server.command = lambda: serve()
        server.start()
        self.limit_of(server, port)
        server.stop()

    def test_unusable_variables_are_logged(self):
        server = self.server(env={"ETCD_NO_SUCH_THING": "secret", "ETCD_VERSION": "3.5.0",
                                  "ETCD_MAX_REQUEST_BYTES": "5000", "VIGIL_ENDPOINTS": "127.0.0.1:1"}).start()
        lines = [json.loads(line) for line in server.lines]
        by_message = {line["msg"]: line for line in lines}
        used = by_message["recognized and used environment variable"]
        self.assertEqual((used["variable-name"], used["variable-value"]), ("ETCD_MAX_REQUEST_BYTES", "5000"))
        self.assertIn("ETCD_NO_SUCH_THING", by_message["unrecognized environment variable"]["environment-variable"])
        unknown = [line["environment-variable"] for line in lines if line["msg"] == "unrecognized environment variable"]
        self.assertNotIn("VIGIL_ENDPOINTS", unknown, "it is for the commands that use a server")
        self.assertEqual(by_message["cannot set special environment variable"]["key"], "ETCD_VERSION")
        self.limit_of(server, server.port)
        server.stop()

    @only_vigil
    def test_flags_take_precedence_over_variables(self):
        # etcd refuses to start in this case, so a configuration that works with etcd is not affected.
        server = self.serving(args=["--max-request-bytes=5000"], env={"ETCD_MAX_REQUEST_BYTES": "100"})
        self.limit_of(server, server.port)
        self.assert_logged(server, "shadowed by corresponding flag")
        self.assertNotIn("unrecognized", server.log)

    @only_vigil
    def test_each_ignored_flag_is_logged_once(self):
        server = self.serving(args=["--snapshot-count=5", "--experimental-compact-hash-check-enabled",
                                    "--peer-cert-file=/none", "-v", "--experimental-compaction-batch-limit=9"])
        ignored = [json.loads(line) for line in server.lines if "flag is ignored" in line]
        self.assertEqual(sorted(line["flag"] for line in ignored),
                         ["compaction-batch-limit", "experimental-compact-hash-check-enabled",
                          "peer-cert-file", "snapshot-count", "v"])
        self.assertEqual({line["level"] for line in ignored}, {"warn"})

    @only_vigil
    def test_old_flag_name_sets_the_new_flag(self):
        server = self.serving(args=["--experimental-watch-progress-notify-interval=1ms"])
        self.assert_logged(server, "watch progress notify interval")
        self.assertNotIn("flag is ignored", server.log)

    @only_vigil
    def test_discovery_is_refused(self):
        code, lines = ended(SUBJECT, "--discovery-srv", "example.org", "--data-dir", str(self.scratch / "d"))
        self.assertEqual(code, 1)
        self.assertIn("discovers no cluster", failure(lines))


@only_vigil
class EveryFlagOfEtcd(LiveTest):
    def test_every_flag_of_etcd_is_known(self):
        if not os.path.exists(PEER):
            self.skipTest("no real etcd was built (tools/build-peer)")
        theirs = subprocess.run([PEER, "--help"], capture_output=True, text=True, check=True)
        flags = {word.split()[0].lstrip("-") for word in theirs.stdout.splitlines()
                 if word.startswith("  --")}
        self.assertGreater(len(flags), 90)
        ours = subprocess.run([SUBJECT, "serve", "--help"], capture_output=True, text=True, check=True).stdout
        for flag in sorted(flags):
            self.assertRegex(ours, rf"(?m)(^|[ ,])--{flag}[ ,\n]")

    def test_flags_page_is_generated_from_the_table(self):
        page = subprocess.run([SUBJECT, "man", "markdown"], capture_output=True, text=True, check=True).stdout
        self.assertEqual(page, (ROOT / "docs/flags.md").read_text(), "run: make docs")

    def test_defaults_are_those_of_etcd_except_documented_ones(self):
        if not os.path.exists(PEER):
            self.skipTest("no real etcd was built (tools/build-peer)")
        default_of = re.compile(r"^  --([a-z0-9-]+) '([^'\n]*)'", re.M)
        theirs = dict(default_of.findall(subprocess.run([PEER, "--help"], capture_output=True, text=True, check=True).stdout))
        page = (ROOT / "docs/flags.md").read_text()
        ours = dict(re.findall(r"^\| `--([a-z0-9-]+)` \| `?([^`|]*?)`? \|", page, re.M))
        different = {flag for flag, default in theirs.items()
                     if default.replace(" ", "") != re.sub(r"(?<=[hm])0[ms](0s)?$", "", ours[flag]).replace(" ", "")}
        self.assertEqual(different, {"advertise-client-urls", "data-dir", "initial-cluster", "log-format",
                                     "max-concurrent-streams", "backend-batch-interval"})


if __name__ == "__main__":
    unittest.main()
