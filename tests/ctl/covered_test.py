#!/usr/bin/python3
"""Every command and every flag that the help of an original names is in a case of the comparisons. What a newer original adds is
found here."""
import itertools
import os
import pathlib
import re
import subprocess
import unittest

from compare import ORIGINALS, original_exists
from tables import TABLES

HERE = pathlib.Path(__file__).resolve().parent
SECONDS_MAX = 60
# Commands and flags that other files compare, because they need more than one server, or none.
ELSEWHERE = {
    "migrate": "migrate_test.py", "defrag --data-dir": "machine_test.py", "member add --learner": "cluster_test.py",
    "--discovery-srv": "machine_test.py", "--discovery-srv-name": "machine_test.py",
}
# Help and completion scripts have words of their own: compare.py.
NOT_COMPARED = ("help", "options", "completion")


def help_of(version, *words):
    env = {k: v for k, v in os.environ.items() if not k.startswith("ETCDCTL_")}
    env["ETCDCTL_API"] = "3" if version == "3.4" else ""
    done = subprocess.run([ORIGINALS[version], *words, "--help"], capture_output=True, text=True, timeout=SECONDS_MAX, env=env, check=False)
    return done.stdout


def commands_of(version, *words):
    """All that have no commands below them."""
    names = []
    for line in re.split(r"\n *(?:GLOBAL )?(?:OPTIONS|Flags):", help_of(version, *words))[0].splitlines():
        found = re.match(r"^\s+([a-z]+(?:[- ][a-z]+)*)(?:\t|  +| (?=[A-Z]))", line)
        if found and not found[1].startswith("etcdctl"):
            names.append(found[1])
    below = [[*words, *name.split()] for name in names]
    if not below:
        return [" ".join(words)]
    return sorted(set(itertools.chain.from_iterable([" ".join(one)] if version == "3.4" else commands_of(version, *one) for one in below)))


def flags_of(text):
    return re.findall(r"^\s+(?:-(\w), )?--([\w-]+)", text, re.M)


def global_options(version):
    if version == "3.4":
        return help_of(version).split("OPTIONS:")[-1]
    return subprocess.run([ORIGINALS[version], "options"], capture_output=True, text=True, timeout=SECONDS_MAX, check=False).stdout


def uses(line, short, name):
    return re.search(rf"--{name}(?![\w-])", line) or (short and re.search(rf"(?:^| )-{short}", line))


class Covered(unittest.TestCase):
    def lines(self, version):
        cases = itertools.chain.from_iterable(itertools.chain.from_iterable(TABLES.values()))
        return [case.line for case in cases if case.only in (None, version)]

    def is_elsewhere(self, command, flag=""):
        for name in (f"{command} --{flag}", command, f"--{flag}"):
            if name in ELSEWHERE:
                text = (HERE / ELSEWHERE[name]).read_text()
                return f"--{flag}" in text if flag else command in text
        return False

    def missing(self, version):
        lines = self.lines(version)
        for command in commands_of(version):
            if command.split()[0] in NOT_COMPARED:
                continue
            own = [line for line in lines if re.search(rf"(?:^| ){re.escape(command)}(?: |$)", line)]
            if not own and not self.is_elsewhere(command):
                yield command
            text = re.split(r"\n *GLOBAL OPTIONS:", help_of(version, *command.split()))[0]
            for short, name in flags_of(re.split(r"\n *(?:OPTIONS|Flags):", text)[-1]):
                if name != "help" and not any(uses(line, short, name) for line in own) and not self.is_elsewhere(command, name):
                    yield f"{command} --{name}"
        for short, name in flags_of(global_options(version)):
            if name != "help" and not any(uses(line, short, name) for line in lines) and not self.is_elsewhere("", name):
                yield f"--{name}"

    def check(self, version):
        if not original_exists(version):
            self.skipTest(f"no {ORIGINALS[version]}")
        self.assertGreater(len(commands_of(version)), 40)
        self.assertEqual(list(self.missing(version)), [])

    def test_everything_of_3_7(self):
        self.check("3.7")

    def test_everything_of_3_4(self):
        self.check("3.4")


if __name__ == "__main__":
    unittest.main()
