#!/usr/bin/python3
"""Completion of the command line: in bash, zsh and fish as a user types, and what `vigil __complete` asks the server."""
import base64
import json
import os
import pathlib
import pty
import re
import select
import signal
import subprocess
import time
import unittest
import urllib.request

from server import SUBJECT, WAIT_SECONDS, LiveTest, only_vigil

CANDIDATES_MAX = 100  # COMPLETE_MAX
TAB, TO_BEGIN = "\t", "\x01"
KEYS = ["/registry/pods/default/a", "/registry/pods/default/b", "/registry/services/s", "plain", "with space/x", "with:colon/y",
        "it's", "bad\x1b[31m", "tab\tbed"]


class Shell:
    """An interactive shell at a terminal. A completed line is shown by making it the arguments of a function."""

    def __init__(self, command, setup, env):
        pid, self.terminal = pty.fork()
        if pid == 0:
            os.execvpe(command[0], command, env)
        self.pid, self.seen = pid, b""
        self.type(f"stty -echo; PS1=; PS2=\n{setup}\nfunction shown {{ printf '<%s>' \"$@\"; printf 'end\\n'; }}\nprintf 'rea%s\\n' dy\n")
        self.wait_for(rb"ready\r?\n")

    def type(self, text):
        os.write(self.terminal, text.encode())

    def wait_for(self, pattern):
        deadline = time.monotonic() + WAIT_SECONDS
        while not (found := re.search(pattern, self.seen)):
            if not select.select([self.terminal], [], [], max(0, deadline - time.monotonic()))[0]:
                raise AssertionError(f"no {pattern} in {self.seen}")
            self.seen += os.read(self.terminal, 65536)
        self.seen = self.seen[found.end():]
        return found

    def complete(self, line):
        """The words of the line after a tab at its end. The x shows whether a space was added."""
        self.type(line + TAB + "x" + TO_BEGIN + "shown " + "\n")
        return re.findall(r"<([^>]*)>", self.wait_for(rb"((?:<[^>\r\n]*>)+)end\r?\n")[1].decode())

    def close(self):
        os.close(self.terminal)
        os.waitpid(self.pid, 0)


@only_vigil
class Completion(LiveTest):
    def setUp(self):
        super().setUp()
        self.server = self.serving()
        self.vigil = pathlib.Path(SUBJECT).parent
        self.env = {"PATH": f"{self.vigil}:/usr/bin:/bin", "HOME": str(self.scratch), "ETCDCTL_ENDPOINTS": self.server.url,
                    "TERM": "dumb", "LC_ALL": "C.UTF-8", "ASAN_OPTIONS": "detect_leaks=0"}
        self.put(KEYS)

    def call(self, path, body):
        with urllib.request.urlopen(f"{self.server.url}/v3/{path}", json.dumps(body).encode(), WAIT_SECONDS) as answer:
            return json.load(answer)

    def put(self, keys):
        for start in range(0, len(keys), 100):
            puts = [{"request_put": {"key": base64.b64encode(key.encode()).decode()}} for key in keys[start:start + 100]]
            self.call("kv/txn", {"success": puts})

    def start_vigil(self, *words, **env):
        return subprocess.run([SUBJECT, *words], env=dict(self.env, **env), capture_output=True, text=True, timeout=WAIT_SECONDS,
                              check=False)

    def run_vigil(self, *words, **env):
        return self.checked(self.start_vigil(*words, **env))

    def checked(self, done):
        self.assertEqual(done.stderr, "")
        self.assertEqual(done.returncode, 0)
        return done.stdout

    def candidates(self, *words, **env):
        done = self.start_vigil("__complete", *words, **env)
        if done.returncode == -signal.SIGALRM:
            return []  # it takes too long, and ends without candidates
        *found, last = self.checked(done).splitlines()
        self.assertIn(last, (":", ":f"))
        return [line.partition("\t")[0] for line in found]

    def offers(self, expected, *words, **env):
        """A user waits for a short time only, after which there are no candidates: on a busy machine they appear later."""
        found = []

        def are_right():
            found[:] = self.candidates(*words, **env)
            return found == expected
        self.eventually(are_right, message=lambda: f"{words}: {found} instead of {expected}")

    # -- What the program offers --

    def test_keys_like_paths(self):
        self.offers(["/registry/pods/", "/registry/services/"], "get", "/")
        self.offers(["/registry/pods/default/a", "/registry/pods/default/b"], "get", "--prefix", "/registry/p")
        self.offers(["/registry/pods/default/a"], "del", "/registry/pods/default/a")
        self.assertEqual(self.candidates("watch", "none"), [])
        self.offers(["plain"], "get", "a", "pl")
        self.offers(["plain"], "tree", "pl")

    def test_keys_that_cannot_be_typed_are_left_out(self):
        self.offers(["/", "it's", "plain", "with space/", "with:colon/"], "get", "")

    def test_leases_users_roles_and_members(self):
        lease = re.search(r"lease (\w+) granted", self.run_vigil("lease", "grant", "600"))[1]
        self.run_vigil("role", "add", "reader")
        self.run_vigil("user", "add", "alice", "--no-password")
        self.offers([lease], "lease", "revoke", "")
        self.offers([lease], "put", "--lease", lease[:6])
        self.offers([f"--lease={lease}"], "put", f"--lease={lease[:6]}")
        self.offers(["alice"], "user", "get", "")
        self.offers(["reader"], "user", "grant-role", "alice", "r")
        self.assertEqual(self.candidates("role", "add", ""), [])
        member = re.match(r"\w+", self.run_vigil("member", "list"))[0]
        self.offers([member.rjust(16, "0")], "member", "remove", "")

    def test_profiles(self):
        file = self.scratch / "profiles.yaml"
        file.write_text("prod:\n  endpoints: [http://a.example:2379]\ntest:\n  endpoints: [http://b.example:2379]\n")
        self.offers(["prod"], "get", "--profile", "p", VIGIL_PROFILES=str(file))

    def test_number_of_candidates_is_limited(self):
        self.put([f"many/{i:04}/k" for i in range(500)] + [f"other/{i:04}" for i in range(500)])
        for prefix in ("many/", "other/"):
            found = self.eventually(lambda prefix=prefix: self.candidates("get", prefix))
            self.assertEqual(len(found), CANDIDATES_MAX)
            self.assertEqual(found, sorted(found))
        for _ in range(CANDIDATES_MAX + 5):
            self.call("lease/grant", {"TTL": 600})
        self.assertEqual(len(self.eventually(lambda: self.candidates("lease", "revoke", ""))), CANDIDATES_MAX)

    def test_a_large_directory_is_one_candidate(self):
        """It is passed by, not read: eight pages would not be enough."""
        self.put([f"deep/a/{i:06}" for i in range(2000)] + ["deep/b"])
        self.offers(["deep/a/", "deep/b"], "get", "deep/")

    def test_failures_are_silent_and_quick(self):
        os.kill(self.server.pid, signal.SIGSTOP)
        self.addCleanup(os.kill, self.server.pid, signal.SIGCONT)
        # Longer than run_vigil() waits.
        patient = {"ETCDCTL_COMMAND_TIMEOUT": f"{2 * WAIT_SECONDS}s", "ETCDCTL_DIAL_TIMEOUT": f"{2 * WAIT_SECONDS}s"}
        self.assertEqual(self.candidates("get", "/", **patient), [])
        os.kill(self.server.pid, signal.SIGCONT)
        self.assertEqual(self.candidates("get", "/", ETCDCTL_ENDPOINTS="http://127.0.0.1:1"), [])
        self.assertEqual(self.candidates("get", "/", ETCDCTL_USER="root"), [])
        self.assertEqual(self.candidates("get", "/", ETCDCTL_CACERT="/none"), [])

    def test_without_permission_there_are_no_candidates(self):
        self.run_vigil("user", "add", "root:secret")
        self.run_vigil("user", "grant-role", "root", "root")
        self.run_vigil("auth", "enable")
        self.assertEqual(self.candidates("get", "/"), [])
        self.offers(["plain"], "get", "pl", ETCDCTL_USER="root:secret")

    # -- In the shells --

    def check_shell(self, shell):
        for line, words in (("vigil ge", ["vigil", "get", "x"]),
                            ("vigil lease gr", ["vigil", "lease", "grant", "x"]),
                            ("vigil get --keys", ["vigil", "get", "--keys-only", "x"]),
                            ("vigil serve --log-level=deb", ["vigil", "serve", "--log-level=debug", "x"]),
                            ("vigil get /registry/s", ["vigil", "get", "/registry/services/s", "x"]),
                            ("vigil get /", ["vigil", "get", "/registry/x"]),
                            ("vigil get --prefix pl", ["vigil", "get", "--prefix", "plain", "x"]),
                            ("vigil get wi", ["vigil", "get", "withx"]),
                            ("vigil get with:c", ["vigil", "get", "with:colon/y", "x"]),
                            (r"vigil get with\ s", ["vigil", "get", "with space/x", "x"]),
                            ("vigil get it", ["vigil", "get", "it's", "x"]),
                            ("vigil get --cacert some-f", ["vigil", "get", "--cacert", "some-file", "x"])):
            with self.subTest(line):
                self.await_words(shell, line, words)

    def await_words(self, shell, line, words):
        """Presses tab again as long as the keys do not come in time."""
        found = []

        def are_right():
            found[:] = shell.complete(line)
            return found == words
        self.eventually(are_right, message=lambda: f"{found} instead of {words}")

    def open_shell(self, command, setup):
        (self.scratch / "some-file").write_text("")
        shell = Shell(command, f"cd {self.scratch}\n{setup}", self.env)
        self.addCleanup(shell.close)
        return shell

    def test_bash(self):
        setup = 'source <(vigil completion bash)\nbind "set bell-style none"'
        self.check_shell(self.open_shell(["bash", "--norc", "--noprofile", "-i"], setup))

    def test_zsh(self):
        folder = self.scratch / "functions"
        folder.mkdir()
        (folder / "_vigil").write_text(self.run_vigil("completion", "zsh"))
        self.check_shell(self.open_shell(["zsh", "-f", "-i"], f"fpath=({folder} $fpath); autoload -Uz compinit; compinit -u -D; "
                                         "unsetopt beep prompt_sp prompt_cr; setopt no_list_beep; bindkey -e"))

    def test_fish(self):
        script = self.scratch / "vigil.fish"
        script.write_text(self.run_vigil("completion", "fish"))
        (self.scratch / "some-file").write_text("")
        for line, expected in (("vigil ge", ["get"]), ("vigil lease gr", ["grant"]), ("vigil serve --log-level=deb", ["--log-level=debug"]),
                               ("vigil get /registry/s", ["/registry/services/s"]), ("vigil get with\\ s", ["with space/x"]),
                               ("vigil get --cacert some-f", ["some-file"]), ("vigil get --cacert=some-f", ["--cacert=some-file"])):
            with self.subTest(line):
                self.eventually(lambda line=line, expected=expected: self.in_fish(script, line) == expected)

    def in_fish(self, script, line):
        done = subprocess.run(["fish", "-c", f"source {script}; complete -C {line!r}"], env=self.env, cwd=self.scratch,
                              capture_output=True, text=True, check=False, timeout=WAIT_SECONDS)
        self.assertEqual(done.stderr, "")
        return [text.partition("\t")[0] for text in done.stdout.splitlines()]


if __name__ == "__main__":
    unittest.main()
