#!/usr/bin/python3
"""tools/count-path adds up the instructions of each source file from what callgrind writes about a thread."""
import importlib.machinery
import importlib.util
import pathlib
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]

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


if __name__ == "__main__":
    unittest.main()
