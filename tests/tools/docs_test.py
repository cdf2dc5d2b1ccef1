#!/usr/bin/python3
"""Decisions have the same sections and no gaps in their numbers, the README is short, and newcomers find their way."""
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
README_LINES_MAX = 120
TASKS = 15
FILES_MAX = 3  # that a newcomer has to open for a task
PARTS = ["Context", "Decision", "Consequences", "Measurement"]
FENCE = re.compile(r"^```.*?^```", re.S | re.M)


class Docs(unittest.TestCase):
    def setUp(self):
        self.folder = ROOT / "docs/decisions"
        self.files = sorted(self.folder.glob("[0-9]*.md"))

    def test_readme_is_short(self):
        self.assertLess(len((ROOT / "README.md").read_text().splitlines()), README_LINES_MAX)

    def test_each_task_of_a_newcomer_takes_few_files(self):
        page = (ROOT / "CONTRIBUTING.md").read_text()
        rows = page.partition("\n| task | read |\n| --- | --- |\n")[2].partition("\n\n")[0].splitlines()
        self.assertEqual(len(rows), TASKS)
        for row in rows:
            with self.subTest(task=row.split("|")[1].strip()):
                files = {code.partition("::")[0] for code in re.findall(r"`([^`]+)`", row) if "/" in code}
                self.assertIn(len(files), range(1, FILES_MAX + 1))
                self.assertIn("::", row)  # tools/check-docs looks for the symbols

    def test_numbers_of_decisions_have_no_gaps(self):
        self.assertEqual([int(file.name[:4]) for file in self.files], list(range(1, len(self.files) + 1)))
        for file in self.files:
            self.assertTrue(file.read_text().startswith(f"# {file.name[:4]}. "), file.name)

    def test_each_decision_has_its_four_parts(self):
        for file in self.files:
            with self.subTest(decision=file.name):
                parts = re.findall(r"^## (.*)$", FENCE.sub("", file.read_text()), re.M)
                self.assertEqual(parts, PARTS)

    def test_each_decision_is_listed(self):
        index = (self.folder / "README.md").read_text()
        self.assertEqual(re.findall(r"\]\((\d{4}-[\w-]+\.md)\)", index), [file.name for file in self.files])


if __name__ == "__main__":
    unittest.main()
