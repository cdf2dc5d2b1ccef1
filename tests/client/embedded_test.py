#!/usr/bin/python3
"""Runs the tests of libvigil with the store in their own process (libvigil-embed), except those that are about servers
and connections. The Kubernetes suite and etcd's API are served from inside the program in other tests."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "live"))
import targets  # noqa: E402
from server import LiveTest  # noqa: E402

SUITE = os.environ.get("VIGIL_EMBEDDED_CLIENT_SUITE", str(pathlib.Path(targets.SUBJECT).parent / "embedded_client_suite"))
SOURCES = pathlib.Path(__file__).parent
# Why these cannot be about a store in the program; the others that ask the driver for something need a server, too.
EXCEPT = {
    "unreachable_server_is_named": "there is no server",
    "bad_options_are_refused_with_a_reason": "endpoints and files of TLS have no effect; src/embed/embed_test.c has those that do",
    "members_and_maintenance": "the member has no client URL",
    "token_that_cannot_be_sent_is_an_error": "nothing is sent while authentication is disabled",
    "objects_may_be_freed_while_the_client_is_freed": "it makes hundreds of clients, each of which would open the store",
    **dict.fromkeys(("broken_pipes_do_not_end_the_program", "leaders_are_observed", "leaders_are_observed_under_a_prefix",
                     "parent_goes_on_after_fork"), "it restarts the server"),
}
GROUPS = ("kv", "watch", "lease", "life", "queue", "parts", "objects", "admin")
TESTS_MIN = 80
TEST_SECONDS = 120


def asking_tests():
    """The tests whose functions ask the driver for something: a restart, a pause."""
    found = set()
    for source in SOURCES.glob("*.c"):
        for name, body in re.findall(r"^static void (\w+)\(void\)\n\{\n(.*?)^\}", source.read_text(), re.M | re.S):
            if re.search(r"\bask(_number)?\(|wait_for_watchers\(", body):
                found.add(name)
    return found


class StoreTest(LiveTest):
    def run_one(self, name, **env):
        """A test that asks for something ends at once, because it gets no answer."""
        with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as directory:
            env.update(VIGIL_EMBEDDED_DIR=f"{directory}/data", VIGIL_ENDPOINTS="unused:1",
                       VIGIL_SNAPSHOT_FILE=f"{directory}/snapshot")
            done = subprocess.run([SUITE, name], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True, timeout=TEST_SECONDS, env=dict(os.environ, **env))
        self.assertEqual((done.returncode, done.stdout), (0, ""), name)


class Embedded(StoreTest):
    """The store has a thread."""


class EmbeddedOwnLoop(StoreTest):
    """The blocking calls drive the client in the program's thread."""

    def run_one(self, name, **env):
        super().run_one(name, VIGIL_OWN_LOOP="1", **env)


def add_tests():
    listed = subprocess.run([SUITE], check=True, capture_output=True, text=True).stdout.splitlines()
    asking = asking_tests()
    added = 0
    for group, name in (line.split() for line in listed):
        if group in GROUPS and name not in EXCEPT and name not in asking:
            setattr(Embedded, f"test_{name}", lambda self, name=name: self.run_one(name))
            added += 1
            if group == "kv":
                setattr(EmbeddedOwnLoop, f"test_{name}", lambda self, name=name: self.run_one(name))
    assert added >= TESTS_MIN, added


add_tests()
if __name__ == "__main__":
    targets.run_side_by_side(__file__, (Embedded, EmbeddedOwnLoop))
