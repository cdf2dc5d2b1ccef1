#!/usr/bin/env python3
"""Writes the list of kube-apiserver's flags (src/cmd/names/apiserver_flags.inc) from its --help.

    tools/kubegen-flags.py build/kube/kube-apiserver src/cmd/names/apiserver_flags.inc
"""
import re
import subprocess
import sys

# "  -v, --v Level      number …": a letter, the name, and the type of the value, which flags without one lack.
FLAG = re.compile(r"^ +(?:-(\w), )?--([a-z0-9-]+)(?: (\S+))?(?:  .*)?$")


def kind(value):
    """How pflag reads the value: BOOL may stand alone, OPTIONAL too but is not a boolean, the others may not; the
    values of a LIST that is given several times are joined."""
    if value is None:
        return "BOOL"
    if value in ("strings", "stringArray"):
        return "LIST"
    return "OPTIONAL" if value.endswith("]") else "VALUE"


def rows(text):
    """(name, kind, letter) of each flag, sorted by name for a binary search."""
    found = [FLAG.match(line) for line in text.splitlines()]
    return sorted((m[2], kind(m[3]), m[1]) for m in found if m)


def main(program, path):
    text = subprocess.run([program, "--help"], capture_output=True, text=True, check=True).stdout
    with open(path, "w") as out:
        out.write("/* The flags of kube-apiserver 1.36, sorted; tools/kubegen-flags.py made them from its --help. */\n")
        for name, how, letter in rows(text):
            out.write('{"%s", APISERVER_%s, %s},\n' % (name, how, "'%s'" % letter if letter else "0"))


if __name__ == "__main__":
    main(*sys.argv[1:])
