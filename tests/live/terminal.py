"""A terminal for tests: a session of tmux with a shell in it, whose screen can be read with its colours."""
import os
import pathlib
import re
import shutil
import subprocess
import time
import unittest

SECONDS = 60
needs_tmux = unittest.skipUnless(shutil.which("tmux"), "tmux is not installed (tools/install-deps test)")


class Terminal:
    """directory: for the socket of tmux and other files. env: variables of the shell."""

    def __init__(self, directory, columns=100, rows=30, env=()):
        self.directory = directory
        self.count = 0  # of commands
        self.tmux = ["tmux", "-f", "/dev/null", "-S", str(directory / "tmux")]
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("VIGIL_", "ETCDCTL_", "NO_COLOR", "TMUX"))}
        environment.update(TERM="xterm-256color", TZ="UTC", LC_ALL="C.UTF-8", VIGIL_COMMAND_TIMEOUT="60s", **dict(env))
        self.run("new-session", "-d", "-x", str(columns), "-y", str(rows), "sh", env=environment)
        try:
            self.await_screen(str.strip)  # the prompt
        except BaseException:
            self.close()
            raise

    def run(self, *words, env=None):
        done = subprocess.run([*self.tmux, *words], capture_output=True, text=True, timeout=SECONDS, env=env, check=False)
        if done.returncode != 0:
            raise AssertionError(f"tmux {words}: {done.stderr}")
        return done.stdout

    def close(self):
        subprocess.run([*self.tmux, "kill-server"], capture_output=True, timeout=SECONDS, check=False)

    def type(self, text):
        """Types characters; nothing is added."""
        self.run("send-keys", "-l", text)

    def enter(self, line):
        self.type(line)
        self.run("send-keys", "Enter")

    def output(self, line):
        """The screen with its colours after a command has ended."""
        self.count += 1
        self.enter(f"clear; {line}; echo end''ed-{self.count}")
        return self.await_screen(lambda screen: f"ended-{self.count}" in screen, colours=True)

    def press(self, key):
        """A key with a name, such as C-c."""
        self.run("send-keys", key)

    def screen(self, colours=False):
        return self.run("capture-pane", "-p", *(["-e"] if colours else []))

    def await_screen(self, condition, colours=False):
        """Returns the screen once the condition is true of it."""
        end = time.monotonic() + SECONDS
        while not condition(screen := self.screen(colours)):
            if time.monotonic() > end:
                raise AssertionError(f"the screen did not become as expected:\n{screen}")
            time.sleep(0.02)
        return screen

    def settings(self, name):
        """What stty says of the terminal, without its size."""
        file = self.directory / name
        self.enter(f"stty -a > {file}.part; mv {file}.part {file}")
        end = time.monotonic() + SECONDS
        while not file.exists():
            if time.monotonic() > end:
                raise AssertionError(f"the shell does not answer:\n{self.screen()}")
            time.sleep(0.02)
        return re.sub(r"rows \d+; columns \d+; ", "", file.read_text())

    def alternate(self):
        """Whether the screen is the other one, which programs like top use, and has no cursor."""
        return self.run("display-message", "-p", "#{alternate_on} #{cursor_flag}").strip() == "1 0"

    def child(self):
        """The process of the command that the shell runs."""
        shell = self.run("display-message", "-p", "#{pane_pid}").strip()
        return int(pathlib.Path(f"/proc/{shell}/task/{shell}/children").read_text().split()[0])
