#!/usr/bin/python3
"""The pages of limits (docs/limits*.md) name every flag of the limits with its default."""
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
ROW = re.compile(r'FLAG_(\w+)\(\s*"([^"]+)", serve_options, \w+,\s*"([^"]*)"')
ARRAY = re.compile(r"static const struct option (?:limits|requests)\[\] = \{(.*?)\n\};", re.S)


def written(kind, fallback):
    """The forms in which the page may write a default."""
    if kind == "SIZE":
        n = int(fallback)
        return {fallback, f"{n // 1024} KiB", f"{n / 1048576:g} MiB"}
    if kind == "DURATION":
        seconds = sum(int(n) * {"h": 3600, "m": 60, "s": 1}[unit]
                      for n, unit in re.findall(r"(\d+)([hms])", fallback))
        return {f"{seconds} s", f"{seconds // 60} min", f"{seconds // 3600} h"}
    return {fallback}


class LimitsPage(unittest.TestCase):
    def test_every_limit_is_on_the_page_with_its_default(self):
        sources = [(ROOT / "src/cmd/serve/options" / f"{name}.c").read_text()
                   for name in ("limits", "requests")]
        limits = [row for source in sources for array in ARRAY.findall(source)
                  for row in ROW.findall(array)]
        files = sorted((ROOT / "docs").glob("limits*.md"), key=lambda file: len(file.name))  # limits.md first
        page = [line for file in files for line in file.read_text().splitlines()]
        self.assertGreater(len(limits), 20)
        for kind, name, fallback in limits:
            cells = [line.split("|") for line in page if line.startswith("|")]
            lines = [cell for cell in cells if cell[2].strip().startswith(f"`--{name}`")]
            with self.subTest(flag=name):
                self.assertTrue(lines, "missing on the page")
                if fallback == "0":  # chosen at the start, which the page describes in words
                    self.assertRegex(lines[0][3], "[a-z]{3}")
                else:
                    self.assertIn(lines[0][3].strip(), written(kind, fallback))


if __name__ == "__main__":
    unittest.main()
