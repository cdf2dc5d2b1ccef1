#!/usr/bin/python3
"""What commands look like on a terminal: colours, safe values, and the screen of top, which is left as it was."""
import os
import signal
import unittest

from client import Client
from server import SUBJECT, LiveTest
from terminal import Terminal, needs_tmux

RED, GREEN = "\033[31m", "\033[32m"


@needs_tmux
class OnTerminal(LiveTest):
    def setUp(self):
        super().setUp()
        self.vigil = self.serving(binary=SUBJECT)
        self.client = Client(self.vigil.port)
        self.addCleanup(self.client.close)

    def terminal(self, **options):
        terminal = Terminal(self.scratch, **options)
        self.addCleanup(terminal.close)
        terminal.enter(f"alias vigil='{SUBJECT} --endpoints 127.0.0.1:{self.vigil.port}'")
        return terminal

    def test_differences_have_colours(self):
        self.client.put(b"/a", b"1")
        self.client.put(b"/a", b"2")
        terminal = self.terminal()
        screen = terminal.output("vigil history /a")
        self.assertIn(f"{RED}- 1", screen)
        self.assertIn(f"{GREEN}+ 2", screen)
        self.assertNotIn("\033[3", terminal.output("NO_COLOR=1 vigil history /a"))
        self.assertIn(RED, terminal.output("NO_COLOR=1 vigil history /a --color always"))
        self.assertNotIn("\033[3", terminal.output("vigil history /a --color never"))
        self.assertNotIn("\033[3", terminal.output("TERM=dumb vigil history /a"))

    def test_watch_ends_with_control_c(self):
        terminal = self.terminal()
        terminal.enter("clear; vigil watch --prefix / --rev 1")
        self.client.put(b"/a", b"1")
        terminal.await_screen(lambda text: "+ 1" in text)
        self.client.put(b"/a", b"2")
        screen = terminal.await_screen(lambda text: "+ 2" in text, colours=True)
        self.assertIn(f"{RED}- 1", screen)
        terminal.press("C-c")
        terminal.enter("echo en''ded")
        terminal.await_screen(lambda text: "ended" in text)

    def test_values_do_not_control_the_terminal(self):
        self.client.put(b"/a\x1b]0;owned\x07", b"\x1b[2J\x1b[31mred\r\x9b31m")
        terminal = self.terminal()
        screen = terminal.output("echo bef''ore; vigil get --prefix /")
        self.assertIn(r"/a\x1b]0;owned\x07", screen)
        self.assertIn(r"\x1b[2J\x1b[31mred\x0d\x9b31m", screen)
        self.assertNotIn(RED, screen)
        self.assertIn("before", screen, "nothing was cleared")
        self.assertNotIn("owned", terminal.run("display-message", "-p", "#{pane_title}"))

    def test_hints_are_for_terminals(self):
        """Scripts, and users of the name etcdctl, see what they saw before."""
        terminal = self.terminal(columns=160)
        self.assertIn('There is no key "none". With --prefix', terminal.output("vigil get none"))
        self.assertIn("There is no such key.", terminal.output("vigil get none --prefix"))
        self.assertIn("There is no such key.", terminal.output("vigil get a b --sort-by KEY"))
        self.assertNotIn("There is no", terminal.output(f"vigil get none 2>{self.scratch}/err"))
        self.assertEqual((self.scratch / "err").read_text(), "")
        self.assertNotIn("There is no", terminal.output("vigil get none -w json"))
        terminal.enter("clear; vigil put a")
        terminal.await_screen(lambda text: "Type the value; Ctrl-D" in text)
        terminal.enter("typed")
        terminal.press("C-d")
        self.assertIn("typed", terminal.output("vigil get a"))
        self.assertNotIn("Type the value", terminal.output("echo piped | vigil put a"))
        self.assertIn("tree, get --prefix --keys-only", terminal.output(f"{SUBJECT} ls"))
        link = self.scratch / "etcdctl"
        link.symlink_to(SUBJECT)
        etcdctl = f"{link} --endpoints 127.0.0.1:{self.vigil.port}"
        self.assertNotIn("There is no", terminal.output(f"{etcdctl} get none"))
        self.assertNotIn("tree", terminal.output(f"{etcdctl} ls"))

    def enter_top(self, terminal):
        terminal.enter("vigil top --interval 200ms")
        terminal.await_screen(lambda text: "CHANGES BELOW" in text and "KV/" in text)
        self.assertTrue(terminal.alternate())

    def assert_left(self, terminal, before, name):
        """The shell is back, and the terminal is as it was."""
        self.eventually(lambda: not terminal.alternate())
        self.assertEqual(terminal.settings(name), before)
        self.assertNotIn("CHANGES BELOW", terminal.screen())
        self.assertEqual(terminal.run("display-message", "-p", "#{cursor_flag}").strip(), "1")

    def test_top_draws_the_screen_and_leaves_it(self):
        self.client.put(b"/registry/pods/a", b"1")
        terminal = self.terminal(columns=90, rows=24)
        before = terminal.settings("before")
        terminal.enter("clear")
        self.enter_top(terminal)
        self.client.put(b"/registry/pods/a", b"2")
        screen = terminal.await_screen(lambda text: "/registry/pods/" in text)
        lines = screen.splitlines()
        self.assertTrue(lines[0].startswith("vigil top  "), lines[0])
        self.assertTrue(all(len(line) <= 90 for line in lines) and len(lines) <= 24)
        terminal.type("s")
        terminal.await_screen(lambda text: "(by bytes)" in text)
        terminal.run("resize-window", "-x", "60", "-y", "16")
        terminal.await_screen(lambda text: max(map(len, text.splitlines())) <= 60 and "CALLS" in text)
        terminal.run("resize-window", "-x", "90", "-y", "24")
        terminal.type("q")
        self.assert_left(terminal, before, "after-q")
        for number in signal.SIGINT, signal.SIGTERM, signal.SIGSEGV, signal.SIGQUIT:
            with self.subTest(number):
                self.enter_top(terminal)
                os.kill(terminal.child(), number)
                self.assert_left(terminal, before, f"after-{number}")
        self.enter_top(terminal)
        terminal.press("C-c")
        self.assert_left(terminal, before, "after-control-c")


if __name__ == "__main__":
    unittest.main()
