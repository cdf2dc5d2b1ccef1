#!/usr/bin/python3
"""The image of the Containerfile: it is small and complete, and its server runs as a user without rights."""
import os
import re
import shlex
import unittest

from containerfile import Image
from debian import ROOT, command_in, environment, run

BYTES_MAX = 16 * 1024 * 1024
# In a network of its own: starts the server, writes, ends it as an engine does, and reads after another start.
TRY = """
ip link set lo up
start() {
    $SERVER 2>>"$LOG" &
    container=$!
    for _ in $(seq 100); do
        if $VIGIL endpoint health >/dev/null 2>&1; then
            server=$(pgrep -x vigil)
            return 0
        fi
        kill -0 $container
        sleep 0.1
    done
    return 1
}
stop() {
    kill -TERM $server
    wait $container
}
start
awk '/^Uid:/ { print "user", $2 } /^CapEff:/ { print "rights", $2 }' /proc/$server/status
$VIGIL put greeting hello
stop
start
$VIGIL get greeting
stop
"""


def words(stage, command):
    return " ".join(shlex.quote(word) for word in command_in(stage.root, command, f"--userspec={stage.user}"))


class Container(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.image = Image(ROOT / "Containerfile")
        cls.addClassCleanup(cls.image.remove)
        cls.last = cls.image.last
        for name in ("proc", "dev"):  # an engine makes them
            (cls.last.root / name).mkdir(exist_ok=True)

    def files(self):
        for folder, _, names in os.walk(self.last.root):
            for name in names:
                if not folder.startswith((f"{self.last.root}/proc", f"{self.last.root}/dev")):
                    yield self.last.root / os.path.relpath(os.path.join(folder, name), self.last.root)

    def test_is_small(self):
        self.assertLess(sum(file.lstat().st_size for file in self.files()), BYTES_MAX)

    def test_has_the_program_and_the_libraries_that_it_needs(self):
        programs = {str(file.relative_to(self.last.root)) for file in self.files() if file.read_bytes().startswith(b"\x7fELF")}
        loader = next(name for name in programs if "/ld-linux" in name)
        listed = run(*command_in(self.last.root, [f"/{loader}", "--list", "/usr/bin/vigil"]), env=environment())
        self.assertNotIn("not found", listed)
        needed = set(re.findall(r"=> /(\S+)", listed)) | {loader, "usr/bin/vigil"}
        self.assertEqual(programs, needed)

    def test_every_library_has_its_copyright_file(self):
        self.assertGreaterEqual(len(list(self.last.root.glob("usr/share/doc/*/copyright"))), 2)
        for file in self.files():
            self.assertTrue(file.name in ("passwd", "group", "copyright") or file.read_bytes().startswith(b"\x7fELF"), file)

    def test_only_the_volume_belongs_to_the_user(self):
        user = int(self.last.user.split(":")[0])
        self.assertNotEqual(user, 0)
        self.assertIn(f"vigil:x:{user}:", (self.last.root / "etc/passwd").read_text())
        status = self.last.inside(self.last.volumes[0]).stat()
        self.assertEqual((status.st_uid, status.st_mode & 0o7777), (user, 0o700))
        for file in self.files():
            if not str(file).startswith(str(self.last.inside(self.last.volumes[0]))):
                self.assertEqual((file.lstat().st_uid, file.lstat().st_mode & 0o022), (0, 0), file)

    def test_server_runs_as_the_user_and_keeps_its_data(self):
        server = words(self.last, self.last.entrypoint + self.last.command)
        client = words(self.last, self.last.entrypoint)
        log = self.last.root / "dev/log"
        script = TRY.replace("$SERVER", server).replace("$VIGIL", client).replace('"$LOG"', shlex.quote(str(log)))
        said = run("unshare", "--net", "--pid", "--fork", "--kill-child", "--mount-proc", "/bin/sh", "-ec", script,
                   env=environment(), timeout=300)
        self.assertEqual(said.splitlines(), [f"user {self.last.user.split(':')[0]}", "rights 0000000000000000", "OK",
                                             "greeting", "hello"])
        self.assertIn("2379", self.last.ports)


if __name__ == "__main__":
    unittest.main()
