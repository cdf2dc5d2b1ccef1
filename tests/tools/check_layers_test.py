#!/usr/bin/python3
"""tools/check-layers finds planted violations of layers and sizes."""
import pathlib
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
CMAKE = """
vigil_layer(base)
vigil_layer(codec  USES base)
vigil_layer(store  USES base codec LIBS lmdb)
"""


class CheckLayers(unittest.TestCase):
    def check(self, files, cmake=CMAKE):
        with tempfile.TemporaryDirectory() as name:
            root = pathlib.Path(name)
            (root / "CMakeLists.txt").write_text(cmake)
            for path, text in files.items():
                (root / path).parent.mkdir(parents=True, exist_ok=True)
                (root / path).write_text(text)
            done = subprocess.run([ROOT / "tools/check-layers", root], capture_output=True, text=True)
            return done.returncode, done.stdout

    def assert_fault(self, fault, files, cmake=CMAKE):
        code, output = self.check(files, cmake)
        self.assertEqual(code, 1, output)
        self.assertIn(fault, output)

    def test_downward_and_own_includes_pass(self):
        code, output = self.check({"src/store/a.c": '#include "store/a.h"\n#include "base/b.h"\n'})
        self.assertEqual((code, output), (0, ""))

    def test_upward_include_fails_with_place(self):
        self.assert_fault('src/base/x.c:2: "store/a.h": base may not use store',
                          {"src/base/x.c": '\n#include "store/a.h"\n'})

    def test_include_not_from_src_fails(self):
        self.assert_fault("not written from src/", {"src/base/x.c": '#include "x.h"\n'})

    def test_foreign_library_header_fails(self):
        self.assert_fault("belongs to src/store/backend", {"src/base/x.c": "#include <lmdb.h>\n"})

    def test_long_source_fails(self):
        self.assert_fault("the limit is 800", {"src/base/x.c": "\n" * 800})

    def test_long_header_fails(self):
        self.assert_fault("the limit is 150", {"src/base/x.h": "\n" * 150})

    def test_table_with_a_cycle_fails(self):
        self.assert_fault("which is not below it", {}, "vigil_layer(a USES b)\nvigil_layer(b USES a)\n")

    def test_circle_of_directories_within_a_layer_fails(self):
        files = {"src/store/log/a.c": '#include "store/index/b.h"\n', "src/store/index/b.h": '#include "store/a.h"\n'}
        self.assertEqual(self.check(files), (0, ""))
        self.assert_fault("store/index: includes itself: store/index -> store/log -> store/index",
                          files | {"src/store/index/c.c": '#include "store/log/a.h"\n'})

    def test_circle_through_the_own_folder_of_a_layer_fails(self):
        files = {"src/store/log/a.c": '#include "store/b.h"\n'}
        above = '#include "store/log/a.h"\n'
        self.assertEqual(self.check(files | {"src/store/main.c": above, "src/store/c_test.c": above}), (0, ""))
        self.assert_fault("store: includes itself: store -> store/log -> store", files | {"src/store/c.c": above})

    def test_function_is_defined_in_the_folder_of_its_header(self):
        header = {"src/store/log/a.h": "MUST_CHECK\nenum status a_put(struct a *a,\n                  void (*done)(int));\n"
                                       "DEFINE_CLEANUP(struct a *, a_free)\nstruct a { int (*hook)(int); };\n"
                                       "static inline int a_get(void)\n{\n    return other(1);\n}\n"}
        source = 'DEFINE_LIST(a)\n\nenum status a_put(struct a *a, void (*done)(int))\n{\n    call("{");\n}\n'
        for path in ("src/store/log/a.c", "src/store/log/b.c", "src/store/log/part/c.c"):
            self.assertEqual(self.check(header | {path: source}), (0, ""), path)
        for path in ("src/store/a.c", "src/store/index/a.c", "src/store/log/a_test.c"):
            self.assert_fault("a_put: declared in src/store/log/a.h, and defined in none", header | {path: source})
        self.assert_fault("a_put: declared in", header | {"src/store/log/a.c": "static " + source + "void a_put_all(void) {}\n"})

    def test_layer_outside_src_is_checked(self):
        cmake = CMAKE + "vigil_layer(load IN bench USES base LIBS m)\n"
        files = {"bench/load/a.c": '#include "load/a.h"\n#include "base/b.h"\n'}
        self.assertEqual(self.check(files, cmake), (0, ""))
        self.assert_fault('bench/load/a.c:1: "store/b.h": load may not use store', {"bench/load/a.c": '#include "store/b.h"\n'}, cmake)
        self.assert_fault("load/a -> load/b -> load/a",
                          {"bench/load/a.c": '#include "load/b.h"\n', "bench/load/b.h": '#include "load/a.h"\n'}, cmake)
        self.assert_fault('"load/a.h": base may not use load', {"src/base/x.c": '#include "load/a.h"\n'}, cmake)

    def test_doubles_are_for_tests_only(self):
        cmake = CMAKE.replace("USES base codec", "USES base codec TEST_USES fake") + "vigil_layer(fake IN tests/doubles USES base store)\n"
        include = '#include "fake/a.h"\n'
        files = {"tests/doubles/fake/a.c": '#include "store/b.h"\n', "src/store/x_test.c": include, "src/store/x_test.h": include}
        self.assertEqual(self.check(files, cmake), (0, ""))
        self.assert_fault('src/store/x.c:1: "fake/a.h": store may not use fake', files | {"src/store/x.c": include}, cmake)
        self.assert_fault('"fake/a.h": codec may not use fake', files | {"src/codec/x_test.c": include}, cmake)
        self.assert_fault("server uses fake, which is not part of the product", {}, cmake + "vigil_layer(server USES fake)\n")

    def test_our_own_tree_passes(self):
        done = subprocess.run([ROOT / "tools/check-layers"], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout), (0, ""))


if __name__ == "__main__":
    unittest.main()
