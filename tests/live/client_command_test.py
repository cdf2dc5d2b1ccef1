#!/usr/bin/python3
"""The client's commands under their own name: errors that say what to do, variables, passwords, TLS, signals. What they have in
common with etcdctl is compared in tests/ctl."""
import os
import pty
import signal
import subprocess
import unittest

from certs import Authority
from server import SUBJECT, LiveTest, free_port, only_vigil

SECONDS_MAX = 60


@only_vigil
class ClientCommand(LiveTest):
    def run_vigil(self, *words, code=0, text="", env=None, stdout=subprocess.PIPE):
        plain = {k: v for k, v in os.environ.items() if not k.startswith(("VIGIL_", "ETCDCTL_"))}
        done = subprocess.run([SUBJECT, *words], input=text, stdout=stdout, stderr=subprocess.PIPE, text=True,
                              env={**plain, **(env or {})}, timeout=SECONDS_MAX, check=False)
        self.assertEqual(done.returncode, code, done)
        return (done.stdout or "") + done.stderr

    def test_error_names_the_endpoint_and_says_what_to_try(self):
        endpoint = f"127.0.0.1:{free_port()}"
        text = self.run_vigil("get", "a", "--endpoints", endpoint, "--command-timeout", "300ms", code=1)
        for part in ("vigil get", endpoint, "refused", "--endpoints"):
            self.assertIn(part, text)
        text = self.run_vigil("get", "a", "--limt", "5", code=1)
        self.assertIn("did you mean --limit?", text)
        self.assertIn("vigil get --help", text)
        self.assertIn("jsonl", self.run_vigil("get", "a", "-w", "xml", code=4))
        self.assertIn("vigil lease grant <ttl>", self.run_vigil("lease", "grant", code=128))

    def test_wrong_words_are_refused_in_plain_words(self):
        for line, code, expected in (
                ("get a --limit x", 1, '"--limit" flag: it is not a number\nSee vigil get --help.'),
                ("get a --limit 99999999999999999999", 1, "it is too large"),
                ("get a --prefix=maybe", 1, "it is neither true nor false"),
                ("get a --command-timeout 5", 1, "such as 500ms, 5s or 1m"),
                ("lease grant 10m", 128, "bad TTL (it is not a number)"),
                ("watch", 128, "watch needs a key"),
                ("lease foo", 1, 'there is no command "lease foo"\nUsage:\n  vigil lease COMMAND'),
                ("gte a", 2, "there is no command 'gte'. Did you mean this: get, grep? See vigil --help."),
                ("servr", 2, "Did you mean this: serve?")):
            with self.subTest(line=line):
                text = self.run_vigil(*line.split(), code=code)
                self.assertIn(expected, text)
                self.assertNotIn("strconv", text)

    def test_flags_win_over_variables_and_vigils_over_etcdctls(self):
        server = self.serving()
        nowhere = f"127.0.0.1:{free_port()}"
        self.run_vigil("put", "a", "1", "--endpoints", server.url, env={"VIGIL_ENDPOINTS": nowhere})
        both = {"VIGIL_ENDPOINTS": server.url, "ETCDCTL_ENDPOINTS": nowhere}
        self.assertEqual(self.run_vigil("get", "a", env=both), "a\n1\n")
        self.assertEqual(self.run_vigil("get", "a", env={"ETCDCTL_ENDPOINTS": server.url}), "a\n1\n")
        text = self.run_vigil("get", "a", env={"VIGIL_COMMAND_TIMEOUT": "soon", "VIGIL_ENDPOINTS": server.url}, code=1)
        self.assertIn("VIGIL_COMMAND_TIMEOUT", text)

    def test_unwritable_output_is_an_error(self):
        server = self.serving()
        self.run_vigil("--endpoints", server.url, "put", "a", "1")
        with open("/dev/full", "w", encoding="utf-8") as full:
            self.run_vigil("--endpoints", server.url, "get", "a", code=6, stdout=full)

    def test_password_is_typed_without_echo(self):
        server = self.serving(args=["--bcrypt-cost", "4"])
        for line in ("user add root:top-secret", "user grant-role root root", "auth enable"):
            self.run_vigil("--endpoints", server.url, *line.split())
        self.assertIn("--user", self.run_vigil("--endpoints", server.url, "--user", "root:wrong", "get", "a", code=2))
        terminal, other = pty.openpty()
        process = subprocess.Popen([SUBJECT, "--endpoints", server.url, "--user", "root", "put", "a", "1"],
                                   stdin=other, stdout=other, stderr=other, start_new_session=True)
        os.close(other)
        shown = b""
        while b"Password: " not in shown:
            shown += os.read(terminal, 4096)
        os.write(terminal, b"top-secret\n")
        self.assertEqual(process.wait(SECONDS_MAX), 0)
        while b"OK" not in shown:
            shown += os.read(terminal, 4096)
        os.close(terminal)
        self.assertNotIn(b"secret", shown)

    def test_signal_releases_a_lock_and_a_leadership(self):
        server = self.serving()
        for words, number in ((("lock", "l"), signal.SIGTERM), (("elect", "e", "me"), signal.SIGINT)):
            process = subprocess.Popen([SUBJECT, "--endpoints", server.url, *words], stdout=subprocess.PIPE, text=True)
            self.assertIn("/", process.stdout.readline())
            self.assertIn(words[1], self.run_vigil("--endpoints", server.url, "get", words[1], "--prefix"))
            process.send_signal(number)
            self.assertEqual(process.wait(SECONDS_MAX), 0)
            process.stdout.close()
            self.assertEqual(self.run_vigil("--endpoints", server.url, "get", words[1], "--prefix"), "")
        self.assertEqual(self.run_vigil("--endpoints", server.url, "lease", "list"), "found 0 leases\n")

    def test_interrupted_waiting_for_a_lock_leaves_nothing(self):
        server = self.serving()
        holder = subprocess.Popen([SUBJECT, "--endpoints", server.url, "lock", "l"], stdout=subprocess.PIPE, text=True)
        holder.stdout.readline()
        waiter = subprocess.Popen([SUBJECT, "--endpoints", server.url, "lock", "l"], stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True)
        while self.run_vigil("--endpoints", server.url, "get", "l", "--prefix", "--keys-only").count("l/") < 2:
            self.assertIsNone(waiter.poll())
        waiter.send_signal(signal.SIGINT)
        self.assertIn("canceled", waiter.communicate(timeout=SECONDS_MAX)[1])
        self.assertEqual(waiter.returncode, 1)
        self.assertEqual(self.run_vigil("--endpoints", server.url, "get", "l", "--prefix", "--keys-only").count("l/"), 1)
        holder.send_signal(signal.SIGTERM)
        holder.communicate(timeout=SECONDS_MAX)

    def test_tls_flags(self):
        authority = Authority(self.scratch / "certs")
        identity, own = authority.sign("server"), authority.sign("me")
        port = free_port()
        address = f"127.0.0.1:{port}"
        self.serving(port=port, listen=f"https://{address}", args=[
            "--cert-file", identity.cert, "--key-file", identity.key, "--client-cert-auth",
            "--trusted-ca-file", authority.cert])
        flags = ("--endpoints", address, "--cacert", authority.cert, "--cert", own.cert, "--key", own.key)
        self.run_vigil(*flags, "put", "a", "1")
        self.assertEqual(self.run_vigil(*flags, "get", "a"), "a\n1\n")
        text = self.run_vigil("--endpoints", f"https://{address}", "--command-timeout", "1s", "get", "a", code=1)
        self.assertIn("--cacert", text)
        self.assertIn("no such file", self.run_vigil("--cacert", "/none", "get", "a", code=128))

    def test_every_command_has_help(self):
        listed = subprocess.run([SUBJECT], capture_output=True, text=True, check=False).stderr
        commands = [line[2:25].strip() for line in listed.split("\nKeys:\n")[1].splitlines() if line.startswith("  ")]
        self.assertGreater(len(commands), 40)
        for command in commands:
            text = self.run_vigil(*command.split(), "--help")
            self.assertIn(f"vigil {command} [flags]", text)
        self.assertIn("Examples:", self.run_vigil("help", "get"))


@only_vigil
class Tls(LiveTest):
    """Each mistake is named with the flag that helps."""

    def setUp(self):
        super().setUp()
        self.authority = Authority(self.scratch / "certs")

    def start(self, name, *flags, secure=True, names="DNS:localhost,IP:127.0.0.1"):
        identity = self.authority.sign(name, names=names)
        args = ["--cert-file", identity.cert, "--key-file", identity.key] if secure else []
        port = free_port()
        return self.serving(self.scratch / name, port=port, args=[*args, *flags],
                            listen=f"http{'s' if secure else ''}://127.0.0.1:{port}")

    def advice(self, url, *flags):
        done = subprocess.run([SUBJECT, "--endpoints", url, "--command-timeout", "2s", *flags, "get", "a"],
                              capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 1, done)
        self.assertNotIn("Is the server running there?", done.stderr)
        return done.stderr

    def test_every_mistake_has_its_advice(self):
        ca = self.authority.cert
        plain = self.start("plain", secure=False)
        server = self.start("server")
        strict = self.start("strict", "--client-cert-auth", "--trusted-ca-file", ca)
        other = self.start("other", names="DNS:example.org")
        self.assertIn("may want TLS: write its endpoint as https://",
                      self.advice(f"http://127.0.0.1:{server.port}"))
        self.assertIn("may want TLS", self.advice(f"127.0.0.1:{server.port}"))
        self.assertIn("may not use TLS: write its endpoint as http://",
                      self.advice(f"https://127.0.0.1:{plain.port}"))
        self.assertIn("may not use TLS", self.advice(f"127.0.0.1:{plain.port}", "--cacert", ca))
        self.assertIn("with --cacert.", self.advice(f"https://127.0.0.1:{server.port}"))
        self.assertIn("give --cert and --key.", self.advice(f"https://127.0.0.1:{strict.port}", "--cacert", ca))
        self.assertIn("in --endpoints.", self.advice(f"https://127.0.0.1:{other.port}", "--cacert", ca))
        self.assertIn("in --endpoints.", self.advice(f"https://localhost:{other.port}", "--cacert", ca))


if __name__ == "__main__":
    unittest.main()
