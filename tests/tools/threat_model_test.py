#!/usr/bin/python3
"""Every claim of docs/threat-model.md names a test, and every test that it names exists."""
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/threat-model.md"
NAMED = re.compile(r"`((?:tests|src|fuzz)/[^`:]+)(?:::(\w+))?`")
DEFINED = {".py": r"\n    def {}\(self", ".go": r"\nfunc {}\(t \*testing\.T", ".c": r"\nstatic void {}\(void \*\*"}


def rows(text):
    """The kind, the claim and the tests of each row."""
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if line.startswith("| c"):
            yield cells


def missing(path, name):
    """Returns what is wrong with a reference, or None."""
    file = ROOT / path
    if not file.is_file():
        return f"{path} does not exist"
    if name is None:
        in_unit = file.name.endswith("_test.c") or file.parts[-2] == "fuzz"
        return None if in_unit else f"{path} without the name of a test"
    text = file.read_text()
    if not re.search(DEFINED[file.suffix].format(name), text):
        return f"{path} has no {name}"
    if file.suffix == ".c" and len(re.findall(rf"\b{name}\b", text)) < 2:
        return f"{path} does not run {name}"
    return None


class ThreatModel(unittest.TestCase):
    def test_every_claim_is_shown_by_tests_that_exist(self):
        claims = list(rows(PAGE.read_text()))
        self.assertGreater(len(claims), 40)
        for cells in claims:
            with self.subTest(claim=cells[1] if len(cells) > 1 else cells):
                self.assertEqual(len(cells), 3)
                self.assertIn(cells[0], ("can", "cannot"))
                named = NAMED.findall(cells[2])
                self.assertTrue(named, "no test is named")
                self.assertEqual([fault for path, name in named if (fault := missing(path, name or None))], [])

    def test_missing_tests_are_found(self):
        here = "tests/tools/threat_model_test.py"
        self.assertIsNone(missing(here, "test_missing_tests_are_found"))
        self.assertIn("has no", missing(here, "test_that_does_not_exist"))
        self.assertIn("does not exist", missing("tests/live/nowhere_test.py", "test_x"))
        self.assertIn("without the name", missing(here, None))


if __name__ == "__main__":
    unittest.main()
