#!/usr/bin/python3
"""The commands of the README, run as they are printed, and the greeting of a server that a person starts."""
import os
import pathlib
import re
import subprocess
import unittest
import urllib.request

from server import SUBJECT, LiveTest, free_port, only_vigil
from terminal import Terminal, needs_tmux

ROOT = pathlib.Path(__file__).resolve().parents[2]


def steps():
    """The indented lines of each numbered step of "Three things to try"."""
    text = (ROOT / "README.md").read_text().split("## Three things to try")[1].split("\n## ")[0]
    return ["\n".join(re.findall(r"^ {7}(\S.*)$", step, re.M)) for step in re.split(r"^\d\. ", text, flags=re.M)[1:]]


@only_vigil
class Readme(LiveTest):
    def setUp(self):
        super().setUp()
        (self.scratch / "build").mkdir()
        (self.scratch / "build/vigil").symlink_to(SUBJECT)
        self.kube = free_port()
        self.vigil = self.serving(self.scratch / "vigil.data",
                                  args=[f"--listen-kube-urls=http://127.0.0.1:{self.kube}"])

    def run_step(self, script, seconds=60):
        env = dict(os.environ, VIGIL_ENDPOINTS=self.vigil.url)
        return subprocess.run(["sh", "-ec", script], cwd=self.scratch, env=env, capture_output=True, text=True,
                              timeout=seconds)

    def test_three_things_to_try(self):
        watch, kubectl, copy = steps()
        begin, put = watch.splitlines()
        self.assertTrue(begin.endswith(" &"))
        seen = self.scratch / "seen"
        with open(seen, "w") as file:
            watching = subprocess.Popen(["sh", "-c", "exec " + begin[:-2]], cwd=self.scratch, stdout=file,
                                        env=dict(os.environ, VIGIL_ENDPOINTS=self.vigil.url))
        self.addCleanup(watching.wait)
        self.addCleanup(watching.kill)
        metrics = self.vigil.url + "/metrics"
        self.eventually(lambda: b"\netcd_debugging_mvcc_watcher_total 1\n" in urllib.request.urlopen(metrics).read())
        self.assertEqual(self.run_step(put).stdout, "OK\n")
        self.eventually(lambda: "+ hello\n" in seen.read_text())

        done = self.run_step(kubectl)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"(?m)^greeting +1 ")

        port = free_port()
        save, restore, serve = copy.replace("12379", str(port)).splitlines()
        done = self.run_step(f"{save}\n{restore}")
        self.assertEqual(done.returncode, 0, done.stderr)
        env = dict(os.environ, VIGIL_ENDPOINTS=f"127.0.0.1:{port}")
        with subprocess.Popen(["sh", "-c", f"exec {serve}"], cwd=self.scratch, stderr=subprocess.DEVNULL) as other:
            self.addCleanup(other.kill)
            self.eventually(lambda: subprocess.run([SUBJECT, "get", "greeting"], env=env, capture_output=True,
                                                   text=True).stdout == "greeting\nhello\n")
            other.terminate()
            self.assertEqual(other.wait(60), 0)
        self.assertRegex(seen.read_text(), r"\A.* PUT +greeting .*\n +\+ hello\n\Z", "nothing of the other steps")

    @needs_tmux
    def test_greeting_names_commands_of_the_program(self):
        terminal = Terminal(self.scratch, columns=120)
        self.addCleanup(terminal.close)
        port = free_port()
        terminal.enter(f"clear; cd {self.scratch}; build/vigil serve --data-dir other.data --listen-kube-urls= "
                       f"--listen-client-urls http://127.0.0.1:{port}")
        screen = terminal.await_screen(lambda text: "Ctrl-C stops" in text)
        commands = re.search(r"In another terminal:\s+(.*?)\s+curl", screen, re.S)[1]
        done = self.run_step(re.sub(r"(?m)^\s*\S+ watch .*$", "", commands))
        self.assertEqual(done.stdout, "OK\ngreeting\nhello\n", done.stderr)
        terminal.press("C-c")

    @needs_tmux
    def test_picture_shows_what_the_program_prints(self):
        done = subprocess.run([ROOT / "tools/record-terminal", "--check", SUBJECT], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_log_says_which_pages_and_hosts_are_accepted(self):
        line = next(line for line in self.vigil.lines if '"msg":"starting an etcd server"' in line)
        self.assertIn('"cors":["on loopback without TLS only the server\'s own origin; elsewhere *"]', line)
        self.assertIn('"host-whitelist":["on loopback without TLS only local names', line)
        given = self.serving(self.scratch / "given", args=["--cors=*", "--host-whitelist=a.example"])
        line = next(line for line in given.lines if '"msg":"starting an etcd server"' in line)
        self.assertIn('"cors":["*"],"host-whitelist":["a.example"]', line)


if __name__ == "__main__":
    unittest.main()
