#!/usr/bin/python3
"""Progress on a terminal, and passwords that are typed there: the line appears, fits, and is gone afterwards."""
import os
import unittest

from client import Client
from server import SUBJECT, LiveTest, only_vigil
from terminal import Terminal, needs_tmux

COLUMNS = 70
PIPE_BYTES = 64 << 10


@only_vigil
@needs_tmux
class Progress(LiveTest):
    def setUp(self):
        super().setUp()
        self.vigil = self.serving(binary=SUBJECT)
        self.client = Client(self.vigil.port)
        self.addCleanup(self.client.close)
        self.terminal = Terminal(self.scratch, columns=COLUMNS)
        self.addCleanup(self.terminal.close)
        self.terminal.enter(f"cd {self.scratch}; alias vigil='{SUBJECT} --endpoints 127.0.0.1:{self.vigil.port}'")

    def bar(self, name):
        """The screen once the line is drawn."""
        screen = self.terminal.await_screen(lambda text: any(line.startswith(f"{name} ") for line in text.splitlines()))
        self.assertLessEqual(max(map(len, screen.splitlines())), COLUMNS)
        return next(line for line in screen.splitlines() if line.startswith(f"{name} "))

    def assert_gone(self, name, after):
        screen = self.terminal.await_screen(lambda text: after in text)
        self.assertFalse([line for line in screen.splitlines() if line.startswith(f"{name} ")], screen)

    def test_snapshot_has_a_bar_while_it_is_written(self):
        for i in range(8):
            self.client.put(b"/big/%d" % i, os.urandom(PIPE_BYTES))
        # The temporary file is a pipe, so the command waits for its reader.
        os.mkfifo(self.scratch / "s.db.part")
        self.terminal.enter("clear; vigil snapshot save s.db; echo end''ed")
        with open(self.scratch / "s.db.part", "rb") as pipe:
            pipe.read(PIPE_BYTES // 2)
            self.assertRegex(self.bar("snapshot"), r"^snapshot         \[#*\.+\] +\d+ %")
            while pipe.read(PIPE_BYTES):
                pass
        self.assert_gone("snapshot", "ended")  # a pipe cannot be synced, so it has failed
        self.assertFalse((self.scratch / "s.db").exists())
        screen = self.terminal.output("vigil snapshot save s.db 2>errors")
        self.assertIn("Snapshot saved at s.db", screen)
        self.assertEqual((self.scratch / "errors").read_text(), "", "no bar where there is no terminal")

    def test_interrupted_snapshot_leaves_nothing(self):
        self.client.put(b"/big", os.urandom(8 * PIPE_BYTES))
        os.mkfifo(self.scratch / "s.db.part")
        self.terminal.enter("clear; vigil snapshot save s.db; echo end''ed $?")
        with open(self.scratch / "s.db.part", "rb") as pipe:
            pipe.read(PIPE_BYTES // 2)
            self.bar("snapshot")
            self.terminal.press("C-c")
            while pipe.read(PIPE_BYTES):
                pass
        self.assert_gone("snapshot", "ended 5")
        self.assertFalse(list(self.scratch.glob("s.db*")))

    def test_mirror_shows_its_changes_and_how_to_continue(self):
        for i in range(5):
            self.client.put(b"/a/%d" % i, b"v")
        self.terminal.enter(f"clear; vigil make-mirror --prefix /a/ --dest-prefix /b/ 127.0.0.1:{self.vigil.port}; echo end''ed $?")
        self.terminal.await_screen(lambda text: "mirror           5 keys" in text)
        self.client.put(b"/a/new", b"v")
        self.terminal.await_screen(lambda text: "mirror           6 keys" in text)
        self.terminal.press("C-c")
        self.assert_gone("mirror", "ended 5")
        self.assertIn("continues from there", self.terminal.screen())

    def test_check_has_a_bar_and_can_be_interrupted(self):
        self.terminal.enter("clear; vigil check datascale --load m; echo end''ed")
        self.bar("check datascale")
        self.terminal.press("C-c")
        self.assert_gone("check datascale", "ended")
        self.assertIn('"Count" : 0', self.terminal.output("vigil get / --prefix --count-only -w fields"), "its keys are deleted")

    def test_password_is_not_shown(self):
        self.terminal.enter("clear; vigil user add alice")
        self.terminal.await_screen(lambda text: "Password of alice:" in text)
        self.terminal.enter("hunter2")
        self.terminal.await_screen(lambda text: "again for confirmation:" in text)
        self.terminal.enter("hunter2")
        screen = self.terminal.await_screen(lambda text: "User alice created" in text)
        self.assertNotIn("hunter2", screen)
        self.assertIn(" echo", self.terminal.settings("after").replace("-echo ", "off "), "the echo is on again")


if __name__ == "__main__":
    unittest.main()
