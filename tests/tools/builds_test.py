#!/usr/bin/python3
"""tests/builds/run keeps the result of each build, and the memory sanitizer sees every function of a library that is called through
tests/msan."""
import importlib.machinery
import importlib.util
import pathlib
import re
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
loader = importlib.machinery.SourceFileLoader("builds_run", str(ROOT / "tests/builds/run"))
builds = importlib.util.module_from_spec(importlib.util.spec_from_loader("builds_run", loader))
loader.exec_module(builds)


def result(command, passed=5, failed=0):
    return {"command": command, "compiler": "gcc 12.2.0", "sanitizers": "thread", "kinds": ["unit"], "passed": passed, "failed": failed,
            "commit": "0" * 8, "date": "2026-01-01T00:00:00Z", "seconds": 1.0}


class Results(unittest.TestCase):
    def test_run_replaces_its_own_result_and_no_other(self):
        stored = builds.merged(builds.merged({}, result("make clang", 1)), result("make tsan", 2))
        stored = builds.merged(stored, result("make clang", 3))
        self.assertEqual([fact[1] for fact in stored["facts"]], [3, 2])
        self.assertEqual(stored["command"], "make clang, make tsan")
        self.assertEqual(stored["seconds"], 2.0)

    def test_more_tests_are_added_to_those_of_the_same_commit(self):
        stored = builds.merged({}, result("make tsan", 2, 1))
        more = builds.added(stored, result("make tsan", 3))
        self.assertEqual((more["passed"], more["failed"], more["seconds"], more["kinds"]), (5, 1, 2.0, ["unit", "unit"]))
        for other in (result("make clang", 3), {**result("make tsan", 3), "commit": "1" * 8}):
            self.assertEqual(builds.added(stored, other), other)

    def test_report_names_the_kinds_of_tests(self):
        files = len(list((ROOT / "tests/live").glob("*_test.py")))
        build = {**result("make tsan"), "kinds": ["unit", "live:a,b,c,d+crash:30"]}
        self.assertIn(f"tests of unit, live (4 of {files}), crash (30) passed at", builds.merged({}, build)["facts"][0][0])

    def test_failed_test_misses_the_goal(self):
        rows = builds.merged(builds.merged({}, result("make clang", 1)), result("make tsan", 2, 1))["rows"]
        self.assertEqual([(row["value"], row["met"]) for row in rows], [(0, True), (1, False)])

    def test_compiler_and_sanitizers_are_those_of_the_build(self):
        with tempfile.TemporaryDirectory() as scratch:
            cache = "CMAKE_C_COMPILER:FILEPATH=/usr/bin/gcc\nVIGIL_SANITIZE:STRING=address,undefined\n"
            (pathlib.Path(scratch) / "CMakeCache.txt").write_text(cache)
            build = builds.build_of(pathlib.Path(scratch))
        self.assertRegex(build["compiler"], r"^gcc \d+\.\d+\.\d+$")
        self.assertEqual(build["sanitizers"], "address, undefined")


class Libraries(unittest.TestCase):
    def test_each_function_that_is_replaced_is_defined_once(self):
        text = (ROOT / "tests/msan/msan.cmake").read_text()
        for library, names in re.findall(r"set\(msan_(\w+) ([^)]*)\)", text):
            source = (ROOT / f"tests/msan/{library}.c").read_text()
            defined = re.findall(r"WRAP\((\w+)\)\([^;{]*\)\n\{", source) + re.findall(r"^(?:PLAIN|DECODER)\([^,]+, (\w+)", source, re.M)
            self.assertEqual(sorted(defined), sorted(names.split()), library)


if __name__ == "__main__":
    unittest.main()
