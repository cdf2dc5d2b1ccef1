#!/usr/bin/python3
"""tools/check-words finds a planted phrase in every kind of text, and nothing in code."""
import importlib.machinery
import importlib.util
import pathlib
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOOL = ROOT / "tools/check-words"


def load():
    loader = importlib.machinery.SourceFileLoader("check_words", str(TOOL))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


WORDS = load()
RULES = WORDS.read_words("# a comment\nfor who => for callers\n/\\bis no (?!more)\\w+/ => is not a\n's sake => for\n")


def lines(path, text):
    return [(line, phrase) for line, phrase, _ in WORDS.hits(path, text, RULES)]


class Found(unittest.TestCase):
    def test_in_a_comment_and_over_its_line_end(self):
        self.assertEqual(lines("a.c", "int a; /* for who */\n/* This is for\n * who reads. */\n"),
                         [(1, "for who"), (2, "for who")])

    def test_in_a_message_and_a_flag_description(self):
        self.assertEqual(lines("a.c", 'log("x");\nputs("For who it is");\n'), [(2, "For who")])

    def test_in_names_of_tests(self):
        self.assertEqual(lines("a_test.c", "static void answers_for_who_reads(void **state)\n"), [(1, "for who")])
        self.assertEqual(lines("a_test.py", "def test_for_who():\n    pass\n"), [(1, "for who")])
        self.assertEqual(lines("a_test.go", "func TestAnswersForWhoReads(t *testing.T) {\n"), [(1, "For Who")])

    def test_in_pages_scripts_and_go(self):
        self.assertEqual(lines("a.md", "# Title\n\nPages for\nwho reads.\n"), [(3, "for who")])
        self.assertEqual(lines("tools/x", "#!/bin/sh\n# this is for\n# who reads\ntrue\n"), [(2, "for who")])
        self.assertEqual(lines("a.go", "// For who\nx := `for who`\n"), [(1, "For who"), (2, "for who")])
        self.assertEqual(lines("a.py", '"""For who."""\nx = 1  # for who\n'), [(1, "For who"), (2, "for who")])

    def test_by_a_regular_expression_and_its_exception(self):
        self.assertEqual(lines("a.c", "/* It is no object. It is no more. */"), [(1, "is no object")])

    def test_comment_that_begins_with_of_has_no_subject(self):
        ours = WORDS.read_words(WORDS.WORDS.read_text())
        found = WORDS.hits("a.c", "int len; /* of the body */\nint n; /* length of the body */\n/* Of a put. */\n", ours)
        self.assertEqual([line for line, *_ in found], [1, 3])

    def test_from_an_apostrophe_on(self):
        self.assertEqual(lines("a.c", "/* Kept for etcd's sake. */"), [(1, "'s sake")])

    def test_once_where_phrases_overlap(self):
        rules = WORDS.read_words("is told => a\ntold so => b\nis told so => c\n")
        found = WORDS.hits("a.c", "/* It is told so, and is told. */", rules)
        self.assertEqual(sorted(phrase for _, phrase, _ in found), ["is told", "is told so"])


class NotFound(unittest.TestCase):
    def test_in_code_or_parts_of_words(self):
        self.assertEqual(lines("a.c", "int for_who = 1;\n/* for whole pages */\n"), [])

    def test_in_code_of_a_page(self):
        self.assertEqual(lines("a.md", "```\nfor who\n```\n\n    for who\n\nthe call `for who` it is\n"), [])


class List(unittest.TestCase):
    def test_every_line_of_ours_is_a_rule(self):
        text = (ROOT / "tools/words.txt").read_text()
        rules = [line for line in text.splitlines() if line and not line.startswith("#")]
        self.assertEqual(len(WORDS.read_words(text)), len(rules))
        self.assertGreaterEqual(len(rules), 60)
        self.assertEqual(len(rules), len(set(rules)))

    def test_line_without_advice_is_refused(self):
        with self.assertRaises(SystemExit):
            WORDS.read_words("for who\n")


if __name__ == "__main__":
    unittest.main()
