#!/usr/bin/python3
"""tools/count-path adds up the instructions of each source file from what callgrind writes about a thread, and no path becomes
longer. The sanitized build has other instructions, so the paths are counted in the release build; VIGIL_RELEASE= names it (build)."""
import importlib.machinery
import importlib.util
import os
import pathlib
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
RELEASE = pathlib.Path(os.environ.get("VIGIL_RELEASE", ROOT / "build"))

# A step that only passes a request on makes a path longer for every reader: shorten it instead of raising its limit.
FILES_MAX = {"put": 50, "table": 50, "apply": 95, "deployment": 105}

WRITTEN = """# callgrind format
positions: line
events: Ir
fl=(1) /home/a/vigil/src/store/change.c
fn=(1) change_put
10 5
+1 7
fi=(2) /home/a/vigil/src/base/bytes.h
3 100
fe=(1)
12 1
cfi=(3) /home/a/vigil/src/store/row.c
cfn=(2) row_write
calls=2 20
* 900

fl=(3)
fn=(2)
20 8
21
"""


def load():
    loader = importlib.machinery.SourceFileLoader("count_path", str(ROOT / "tools/count-path"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


class Cost(unittest.TestCase):
    def cost_of(self, text):
        with tempfile.TemporaryDirectory() as directory:
            path = pathlib.Path(directory) / "callgrind.out-01"
            path.write_text(text)
            return load().cost_of(path)

    def test_own_instructions_of_sources_are_added(self):
        self.assertEqual(self.cost_of(WRITTEN), {"store/change.c": 13, "store/row.c": 8})

    def test_the_thread_of_the_keeper_does_not_count(self):
        self.assertEqual(self.cost_of(WRITTEN.replace("(1) change_put", "(1) keeper_main")), {})


class Length(unittest.TestCase):
    def test_paths_do_not_become_longer(self):
        binary = RELEASE / "vigil"
        if not binary.exists() or b"__asan_init" in binary.read_bytes():
            self.skipTest(f"{RELEASE} has no release build")
        module = load()
        self.assertEqual(set(module.PATHS), set(FILES_MAX))
        for name, most in FILES_MAX.items():
            with self.subTest(path=name):
                files = module.count(str(binary), module.PATHS[name])
                self.assertGreater(len(files), most // 2, "not everything was counted")
                self.assertLessEqual(len(files), most, "\n".join(files))


if __name__ == "__main__":
    unittest.main()
