#!/usr/bin/python3
"""The program and the libraries of a release build are hardened, and the check finds each protection that is missing. The sanitized
build has none of them, so the check of the build is skipped there; VIGIL_RELEASE= names a release build (build)."""
import json
import os
import pathlib
import platform
import re
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
RELEASE = pathlib.Path(os.environ.get("VIGIL_RELEASE", ROOT / "build"))
INSTALLED = ("vigil", "vigil-bench", "libvigil.so.1.0.0", "libvigil-kube.so.1.0.0", "libvigil-embed.so.1.0.0")
X86, ARM = platform.machine() == "x86_64", platform.machine() == "aarch64"
# Instructions with which every function begins that can be called by its address: endbr64; bti c or paciasp.
LANDING = {"x86_64": [b"\xf3\x0f\x1e\xfa"], "aarch64": [b"\x5f\x24\x03\xd5", b"\x3f\x23\x03\xd5"]}.get(platform.machine())
COMPILED = ["-fstack-protector-strong", "-fstack-clash-protection"]
COMPILED += ["-fcf-protection=full"] * X86 + ["-mbranch-protection=standard"] * ARM


def readelf(*arguments):
    return subprocess.run(["readelf", "--wide", *arguments], capture_output=True, text=True, errors="replace", check=True,
                          timeout=120).stdout


def exported(path):
    """The functions that others can call: where each is in the file."""
    loads = [[int(n, 16) for n in row] for row in re.findall(r"LOAD\s+0x(\w+) 0x(\w+) 0x\w+ 0x(\w+)", readelf("--segments", str(path)))]
    for value, size, name in re.findall(r"(\w+)\s+(\d+) FUNC\s+(?:GLOBAL|WEAK)\s+\w+\s+\d+ (\S+)", readelf("--dyn-syms", str(path))):
        address = int(value, 16)
        for offset, start, length in loads:
            if int(size) and not name.startswith("_") and start <= address < start + length:
                yield name, address - start + offset


def missing(path, library):
    """The protections that a file lacks."""
    segments, dynamic = readelf("--segments", str(path)), readelf("--dynamic", str(path))
    symbols, texts = readelf("--dyn-syms", str(path)), readelf("--string-dump=.debug_str", "--string-dump=.debug_line_str", str(path))
    producers = re.findall(r"GNU C\d+ .*", texts)
    content = path.read_bytes()
    found = []
    if not library and "PIE" not in dynamic:
        found.append("PIE")
    if "GNU_RELRO" not in segments or not re.search(r"\(FLAGS(_1)?\).*NOW", dynamic):
        found.append("RELRO")
    if re.search(r"GNU_STACK.* RWE ", segments) or "GNU_STACK" not in segments:
        found.append("executable stack")
    if "__stack_chk_fail" not in symbols:
        found.append("stack protector")
    if not re.search(r"__\w+_chk@", symbols.replace("__stack_chk_fail", "")):
        found.append("FORTIFY_SOURCE")
    # The compiler writes its options into the debug information, once for all files that have the same.
    found += [option for option in COMPILED if not producers or any(option not in producer for producer in producers)]
    if LANDING and any(content[at:at + 4] not in LANDING for _, at in exported(path)):
        found.append("landing")
    return found


def less_fortified(build):
    """Sources under src/ that a build does not compile with the highest level of FORTIFY_SOURCE, which a program does not show."""
    found = []
    for entry in json.loads((build / "compile_commands.json").read_text()):
        levels = re.findall(r" -[DU]_FORTIFY_SOURCE\S*", entry["command"])
        if "/src/" in entry["file"] and levels[-1:] != [" -D_FORTIFY_SOURCE=3"]:
            found.append(entry["file"])
    return found


SOURCE = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
__attribute__((visibility("default"))) int work(int argc, char **argv);
int work(int argc, char **argv)
{
    char text[64];
    char *copy = malloc((size_t)argc);
    strncpy(text, argv[0], (size_t)argc);
    snprintf(text + 8, (size_t)argc, "%s", argv[0]);
    memset(copy, 'x', strlen(text));
    return puts(text) + puts(copy);
}
int main(int argc, char **argv)
{
    return work(argc, argv);
}
"""
LINKED = ["-pie", "-Wl,-z,relro,-z,now", "-Wl,-z,noexecstack"]
PROTECTED = ["-O2", "-g", "-fPIE", "-D_FORTIFY_SOURCE=3", *COMPILED, *LINKED]
# What is missing if one option is replaced by another.
WITHOUT = [("-pie", "-no-pie", "PIE"),
           ("-Wl,-z,relro,-z,now", "-Wl,-z,norelro,-z,lazy", "RELRO"),
           ("-Wl,-z,noexecstack", "-Wl,-z,execstack", "executable stack"),
           ("-fstack-protector-strong", "-fno-stack-protector", "stack protector"),
           ("-D_FORTIFY_SOURCE=3", "-U_FORTIFY_SOURCE", "FORTIFY_SOURCE"),
           ("-fstack-clash-protection", "-fno-stack-clash-protection", "-fstack-clash-protection")]
WITHOUT += [("-fcf-protection=full", "-fcf-protection=none", "landing")] * X86
WITHOUT += [("-mbranch-protection=standard", "-mbranch-protection=none", "landing")] * ARM


class Hardening(unittest.TestCase):
    def build(self, options):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        program = pathlib.Path(scratch.name) / "program"
        subprocess.run(["gcc", "-x", "c", "-", "-o", str(program), "-rdynamic", *options], input=SOURCE, text=True, check=True, timeout=60)
        return program

    def test_protected_program_lacks_nothing(self):
        self.assertEqual(missing(self.build(PROTECTED), False), [])

    def test_each_missing_protection_is_found(self):
        for option, other, name in WITHOUT:
            with self.subTest(option=option):
                self.assertIn(name, missing(self.build([other if o == option else o for o in PROTECTED]), False))

    def test_memory_whose_size_is_known_only_at_run_time_is_fortified(self):
        """Level 2 does not check the memset of SOURCE, level 3 does."""
        for level, checked in ((2, False), (3, True)):
            program = self.build([f"-D_FORTIFY_SOURCE={level}" if "FORTIFY" in o else o for o in PROTECTED])
            self.assertEqual("__memset_chk@" in readelf("--dyn-syms", str(program)), checked, level)

    def test_less_fortified_source_is_found(self):
        with tempfile.TemporaryDirectory() as scratch:
            options = {"a": "-D_FORTIFY_SOURCE=2 -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3", "b": "-D_FORTIFY_SOURCE=2", "c": "-O2",
                       "d": "-D_FORTIFY_SOURCE=3 -U_FORTIFY_SOURCE"}
            commands = [{"file": f"/src/{name}.c", "command": f"gcc {option} -c {name}.c"} for name, option in options.items()]
            (pathlib.Path(scratch) / "compile_commands.json").write_text(json.dumps(commands))
            self.assertEqual(less_fortified(pathlib.Path(scratch)), ["/src/b.c", "/src/c.c", "/src/d.c"])

    def test_release_build_lacks_nothing(self):
        if not (RELEASE / "vigil").exists() or b"__asan_init" in (RELEASE / "vigil").read_bytes():
            self.skipTest(f"{RELEASE} has no release build")
        self.assertEqual(less_fortified(RELEASE), [])
        for name in INSTALLED:
            if (RELEASE / name).exists():
                with self.subTest(file=name):
                    self.assertEqual(missing(RELEASE / name, ".so" in name), [])


if __name__ == "__main__":
    unittest.main()
