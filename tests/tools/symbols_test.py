#!/usr/bin/python3
"""No two layers define a function or object of the same name. The linker notices only where both are linked: in a
program, or in a library, that uses both for the first time."""
import collections
import os
import pathlib
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("VIGIL_BIN", ROOT / "build-test/vigil")).parent
DEFINED = "BDRT"  # strong symbols in the sections for data and code


def symbols_of(archive):
    listing = subprocess.run(["nm", "--defined-only", "--extern-only", "--no-sort", str(archive)], capture_output=True,
                             text=True, check=True, timeout=60).stdout
    rows = [line.split() for line in listing.splitlines()]
    return {row[2] for row in rows if len(row) == 3 and row[1] in DEFINED and not row[2].startswith("__")}


def defined_twice(archives):
    places = collections.defaultdict(set)
    for archive in archives:
        for symbol in symbols_of(archive):
            places[symbol].add(archive.name)
    return {symbol: sorted(names) for symbol, names in places.items() if len(names) > 1}


class Symbols(unittest.TestCase):
    def test_layers_have_no_name_in_common(self):
        archives = sorted(BUILD.glob("libvigil_*.a"))
        self.assertIn(BUILD / "libvigil_kubeclient.a", archives)
        self.assertEqual(defined_twice(archives), {})

    def test_common_name_is_found(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            for layer, code in (("a", "int x; static int y; int f(void) { return y; }"), ("b", "int f(void) { return 0; } int y;")):
                subprocess.run(["cc", "-c", "-x", "c", "-", "-o", str(folder / f"{layer}.o")], input=code, text=True, check=True)
                subprocess.run(["ar", "rcs", str(folder / f"{layer}.a"), str(folder / f"{layer}.o")], check=True)
            self.assertEqual(defined_twice([folder / "a.a", folder / "b.a"]), {"f": ["a.a", "b.a"]})


if __name__ == "__main__":
    unittest.main()
