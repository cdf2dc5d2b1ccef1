#!/usr/bin/python3
"""The list of client-go's cases in tests/kube_client/client_go_cases.txt and the tests have the same names."""
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
CASES = ROOT / "tests/kube_client/client_go_cases.txt"


def in_c(name):
    """TestWrapPreviousError is wrap_previous_error."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name.removeprefix("Test"))
    return words.lower()


def cases():
    """Yields the name of each case, and the file of its test or None."""
    for number, line in enumerate(CASES.read_text().splitlines(), 1):
        if not line or line.startswith("#"):
            continue
        ported = re.fullmatch(r"(Test\w+): (\S+)", line)
        left_out = re.fullmatch(r"(Test\w+) - (\S.*)", line)
        assert ported or left_out, f"{CASES.name}:{number}: neither ported nor left out: {line}"
        yield (ported[1], ROOT / ported[2]) if ported else (left_out[1], None)


class Cases(unittest.TestCase):
    def test_every_ported_case_has_a_test(self):
        ported = [(name, path) for name, path in cases() if path]
        self.assertGreater(len(ported), 30)
        for name, path in ported:
            text = path.read_text()
            self.assertTrue(f"cmocka_unit_test({in_c(name)})" in text or re.search(rf"\b{name}\b", text),
                            f"{path.relative_to(ROOT)} has no test for {name}")

    def test_every_case_is_named_once_for_each_file(self):
        names = [(name, path) for name, path in cases()]
        self.assertEqual(len(names), len(set(names)))

    def test_every_test_of_a_case_file_is_a_case(self):
        named = {in_c(name) for name, path in cases() if path}
        for file in ROOT.glob("src/kubeclient/*/*_cases_test.c"):
            for test in re.findall(r"cmocka_unit_test\((\w+)\)", file.read_text()):
                self.assertIn(test, named, f"{file.relative_to(ROOT)}: {test} is not in {CASES.name}")


if __name__ == "__main__":
    unittest.main()
