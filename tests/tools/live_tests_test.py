#!/usr/bin/python3
"""What every test in tests/live has to respect."""
import pathlib
import re
import unittest

LIVE = pathlib.Path(__file__).resolve().parents[1] / "live"


class LiveTests(unittest.TestCase):
    def test_the_log_of_a_server_is_waited_for(self):
        """A server logs a little later than it answers: a text that is expected in its log has to be waited for."""
        tests = sorted(LIVE.glob("*_test.py"))
        self.assertGreater(len(tests), 20)
        for path in tests:
            for number, line in enumerate(path.read_text().splitlines(), 1):
                with self.subTest(file=path.name, line=number):
                    self.assertNotRegex(line, re.compile(r"assertIn\(.*\.log\)|assertRegex\(\w+(\.\w+)*\.log,"),
                                        "use assert_logged")


if __name__ == "__main__":
    unittest.main()
