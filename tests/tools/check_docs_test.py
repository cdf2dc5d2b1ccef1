#!/usr/bin/python3
"""tools/check-docs finds planted faults in links and paths of pages."""
import pathlib
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TREE = {"src/watch/hub.c": "void hub_read(void);\n", "tools/run": "",
        "docs/limits.md": "# Limits\n\n## What a client may hold\n\n## `--flags`, all\n"}


class CheckDocs(unittest.TestCase):
    def check(self, page, path="docs/page.md"):
        with tempfile.TemporaryDirectory() as name:
            root = pathlib.Path(name)
            for file, text in {**TREE, path: page}.items():
                (root / file).parent.mkdir(parents=True, exist_ok=True)
                (root / file).write_text(text)
            done = subprocess.run([ROOT / "tools/check-docs", root], capture_output=True, text=True)
            return done.returncode, done.stdout

    def assert_fault(self, fault, page, path="docs/page.md"):
        self.assertEqual(self.check(page, path), (1, f"{path}:{fault}\n"))

    def test_valid_links_and_paths_pass(self):
        self.assertEqual(self.check("""# A page
[limits](limits.md), [one](limits.md#what-a-client-may-hold), [`code`](limits.md#--flags-all), [here](#a-page),
[directory](../src/watch), [elsewhere](https://example.org/none.md), `[text](nowhere.md)` as code.
`src/watch/hub.c`, `watch/hub.c`, `hub.c`, `hub.c::hub_read`, `watch/`, `tools/run`, `src/watch/*.c`,
`x.h`, `src/**/x_test.c`, `text/plain`, `/metrics`, `etcd/member/snap`.
"""), (0, ""))

    def test_links_from_the_root_page_pass(self):
        self.assertEqual(self.check("[limits](docs/limits.md#limits)", "README.md"), (0, ""))

    def test_link_to_no_file_fails_with_place(self):
        self.assert_fault("2: the link docs/limits.md leads nowhere", "\n[limits](docs/limits.md)")

    def test_link_to_no_heading_fails(self):
        self.assert_fault("1: the link limits.md#none names no heading of docs/limits.md", "[x](limits.md#none)")
        self.assert_fault("2: the link #none names no heading of docs/page.md", "# Some\n[x](#none)")

    def test_heading_inside_a_block_of_code_is_ignored(self):
        self.assert_fault("4: the link #b names no heading of docs/page.md", "```\n# b\n```\n[x](#b)")

    def test_path_of_no_file_fails(self):
        self.assert_fault("1: there is no watch/hut.c", "`watch/hut.c`")
        self.assert_fault("1: there is no hut.c", "`hut.c::name_of_a_test`")
        self.assert_fault("1: there is no src/watch/*.h", "`src/watch/*.h`")

    def test_symbol_that_the_file_does_not_contain_fails(self):
        self.assert_fault("1: there is no hub_write in src/watch/hub.c", "`src/watch/hub.c::hub_write`")
        self.assert_fault("1: there is no hub in hub.c", "`hub.c::hub`")

    def test_path_of_no_directory_fails(self):
        self.assert_fault("1: there is no src/match", "`src/match/`")
        self.assert_fault("1: there is no watch/log", "`watch/log`")

    def test_files_of_a_build_do_not_count(self):
        self.assertEqual(self.check("[nowhere](nowhere.md)", "build-test/page.md"), (0, ""))

    def test_our_own_pages_pass(self):
        done = subprocess.run([ROOT / "tools/check-docs"], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout), (0, ""))


if __name__ == "__main__":
    unittest.main()
