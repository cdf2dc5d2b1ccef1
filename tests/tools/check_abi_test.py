#!/usr/bin/python3
"""The libraries have the committed binary interfaces, and tools/check-abi finds every kind of planted change."""
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("VIGIL_BIN", ROOT / "build-test/vigil")).parent
LIBRARY, KUBE_LIBRARY = BUILD / "libvigil.so.1.0.0", BUILD / "libvigil-kube.so.1.0.0"
GROWN, BROKEN = "Run `make abi`", "would break"


class Abi(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.include = pathlib.Path(scratch.name) / "include"
        shutil.copytree(ROOT / "include", self.include)

    def change(self, header, old, new):
        path = self.include / "vigil" / header
        text = path.read_text()
        self.assertEqual(text.count(old), 1, f"{header}: {old}")
        path.write_text(text.replace(old, new))

    def check(self, library=LIBRARY):
        return subprocess.run([str(ROOT / "tools/check-abi"), "--include", str(self.include), str(library)],
                              capture_output=True, text=True, check=False, timeout=120)

    def expect(self, verdict, *names, library=LIBRARY):
        done = self.check(library)
        self.assertEqual(done.returncode, 1, done.stdout)
        for text in (verdict, *names):
            self.assertIn(text, done.stderr)

    def test_interfaces_are_the_committed_ones(self):
        for library in (LIBRARY, KUBE_LIBRARY):
            done = self.check(library)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))

    def test_changes_of_the_library_for_kubernetes_are_found(self):
        self.change("kube/work_queue.h", "VIGIL_API size_t vigil_work_queue_length", "VIGIL_API int vigil_work_queue_length")
        self.expect(BROKEN, "vigil_work_queue_length", library=KUBE_LIBRARY)
        self.assertEqual(self.check().returncode, 0)

    def test_other_files_are_refused(self):
        done = self.check(BUILD / "libother.so.1")
        self.assertIn("not one of our libraries", done.stderr)
        self.assertEqual(done.returncode, 1)

    def test_library_without_the_functions_is_found(self):
        library = self.include / "libvigil.so.1"
        subprocess.run(["cc", "-g", "-shared", "-o", str(library), "-Wl,-soname,libvigil.so.1", "-x", "c", "-"],
                       input="int other(void) { return 0; }", text=True, check=True)
        done = self.check(library)
        self.assertEqual(done.returncode, 1)
        self.assertIn("vigil_watch_new", done.stderr)

    def test_removed_function_breaks(self):
        self.change("client.h", "VIGIL_API const char *vigil_version(void);", "")
        self.expect(BROKEN, "vigil_version")

    def test_changed_parameter_breaks(self):
        self.change("lease.h", "int64_t ttl, int64_t id);", "int32_t ttl, int64_t id);")
        self.expect(BROKEN, "vigil_lease_grant")

    def test_changed_result_breaks(self):
        self.change("watch.h", "VIGIL_API int64_t vigil_watch_revision", "VIGIL_API int vigil_watch_revision")
        self.expect(BROKEN, "vigil_watch_revision")

    def test_changed_callback_breaks(self):
        self.change("watch.h", "typedef int (*vigil_watch_fn)(", "typedef void (*vigil_watch_fn)(")
        self.expect(BROKEN, "vigil_watch_fn")

    def test_changed_type_of_a_field_breaks_even_if_its_size_is_the_same(self):
        self.change("types.h", "    int64_t mod_revision;", "    uint64_t mod_revision;")
        self.expect(BROKEN, "mod_revision")

    def test_changed_value_of_an_enum_breaks(self):
        self.change("types.h", "VIGIL_ERROR_COMPACTED = 100", "VIGIL_ERROR_COMPACTED = 98")
        self.expect(BROKEN, "VIGIL_ERROR_COMPACTED")

    def test_enumerator_before_others_breaks(self):
        self.change("watch.h", "    VIGIL_WATCH_CREATED,", "    VIGIL_WATCH_BEFORE,\n    VIGIL_WATCH_CREATED,")
        self.expect(BROKEN, "VIGIL_WATCH_CREATED")

    def test_field_between_others_breaks_even_in_options(self):
        self.change("client.h", "    const char *endpoints;", "    const char *first;\n    const char *endpoints;")
        self.expect(BROKEN, "vigil_options")

    def test_field_at_the_end_of_an_array_element_breaks(self):
        self.change("types.h", "} vigil_kv;", "    int64_t last;\n} vigil_kv;")
        self.expect(BROKEN, "vigil_kv")

    def test_field_at_the_end_of_options_is_growth(self):
        self.change("client.h", "} vigil_options;", "    int64_t last;\n} vigil_options;")
        self.change("client.h", "} vigil_client_stats;", "    int64_t last;\n} vigil_client_stats;")
        self.expect(GROWN, "vigil_options", "vigil_client_stats")

    def test_new_function_is_growth(self):
        self.change("client.h", "VIGIL_API const char *vigil_version(void);",
                    "VIGIL_API const char *vigil_version(void);\nVIGIL_API int vigil_new(void);")
        self.expect(GROWN, "vigil_new")

    def test_new_struct_and_enum_are_growth(self):
        self.change("watch.h", "typedef struct vigil_watch vigil_watch;",
                    "typedef struct vigil_watch vigil_watch;\nenum vigil_new { VIGIL_NEW };\n"
                    "typedef struct vigil_more {\n    int a;\n} vigil_more;\n")
        self.expect(GROWN, "vigil_new", "vigil_more")

    def test_enumerator_after_the_others_is_growth(self):
        self.change("watch.h", "enum vigil_event_type { VIGIL_PUT = 0, VIGIL_DELETE = 1 };",
                    "enum vigil_event_type { VIGIL_PUT = 0, VIGIL_DELETE = 1, VIGIL_MORE = 2 };")
        self.expect(GROWN, "VIGIL_MORE")


if __name__ == "__main__":
    unittest.main()
