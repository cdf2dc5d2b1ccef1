#!/usr/bin/python3
"""Pages lead to places that exist, decisions have one shape and no gaps, recipes name real files."""
import pathlib
import re
import subprocess
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
README_LINES_MAX = 120
PARTS = ["Context", "Decision", "Consequences", "Measurement"]
LINK = re.compile(r"\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```.*?^```", re.S | re.M)
FILE = re.compile(r"`([\w./-]+\.(?:c|h|py|go|inc|proto|cmake|md|mod))`")
# Where a reader is to fill in a name.
PATTERN = re.compile(r"LAYER|NAME|^x\.|^x_")


def pages():
    listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"],
                            cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [ROOT / name for name in listed.splitlines() if (ROOT / name).exists()]


def anchors(text):
    """The names that headings get on a page."""
    headings = re.findall(r"^#+ (.*)$", FENCE.sub("", text), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def broken_links(page):
    for link in LINK.findall(FENCE.sub("", page.read_text())):
        name, _, anchor = link.partition("#")
        target = page.parent / name if name else page
        if "://" in link:
            continue
        if not target.exists():
            yield link
        elif anchor and target.suffix == ".md" and anchor not in anchors(target.read_text()):
            yield link


def exists(name):
    """Pages write names from the root, from src/ or from src/kube/, or the last part alone."""
    if any((ROOT / folder / name).exists() for folder in ("", "src", "src/kube")):
        return True
    return "/" not in name and any((ROOT / "src").rglob(name))


class Docs(unittest.TestCase):
    def test_links_lead_somewhere(self):
        for page in pages():
            with self.subTest(page=str(page.relative_to(ROOT))):
                self.assertEqual(list(broken_links(page)), [])

    def test_a_broken_link_is_found(self):
        page = ROOT / "docs/x.md"
        target = type("Page", (), {"parent": page.parent, "suffix": ".md", "exists": lambda self: True,
                                   "read_text": lambda self: "# A\n[a](#a) [b](#b) [c](none.md) [d](limits.md#none)"})()
        self.assertEqual(list(broken_links(target)), ["#b", "none.md", "limits.md#none"])

    def test_named_files_exist(self):
        for page in (ROOT / "CONTRIBUTING.md", ROOT / "docs/style.md", ROOT / "docs/ARCHITECTURE.md"):
            named = [name for name in FILE.findall(page.read_text()) if not PATTERN.search(name)]
            with self.subTest(page=page.name):
                self.assertTrue(named)
                self.assertEqual([name for name in named if not exists(name)], [])

    def test_the_readme_is_short(self):
        self.assertLess(len((ROOT / "README.md").read_text().splitlines()), README_LINES_MAX)


class Decisions(unittest.TestCase):
    def setUp(self):
        self.folder = ROOT / "docs/decisions"
        self.files = sorted(self.folder.glob("[0-9]*.md"))

    def test_numbers_have_no_gaps(self):
        self.assertEqual([int(file.name[:4]) for file in self.files], list(range(1, len(self.files) + 1)))
        for file in self.files:
            self.assertTrue(file.read_text().startswith(f"# {file.name[:4]}. "), file.name)

    def test_each_has_its_four_parts(self):
        for file in self.files:
            with self.subTest(decision=file.name):
                parts = re.findall(r"^## (.*)$", FENCE.sub("", file.read_text()), re.M)
                self.assertEqual(parts, PARTS)

    def test_each_is_listed(self):
        index = (self.folder / "README.md").read_text()
        self.assertEqual(re.findall(r"\]\((\d{4}-[\w-]+\.md)\)", index), [file.name for file in self.files])


if __name__ == "__main__":
    unittest.main()
