#!/usr/bin/python3
"""The comparison of the controllers' logs in tests/kube/controllers finds an error that only one side has."""
import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/kube/controllers"))
from normal import new_lines, unread  # noqa: E402

BOTH = """I1117 02:47:05.100000    8489 serving.go:380] Generated self-signed cert in-memory
E1117 02:47:05.276207    8489 configmap_cafile_content.go:246] "Unhandled Error" err="missing content for CA bundle \\"client-ca\\""
E1117 02:47:18.505744    8489 replica_set.go:640] "Unhandled Error" err="sync \\"quota/web-68ff66bf65\\" failed with pods \
\\"web-68ff66bf65-j84g6\\" is forbidden: exceeded quota: small, requested: pods=1, used: pods=2, limited: pods=2"
"""
# The same events elsewhere: other times, processes, hashes and generated names.
ELSEWHERE = BOTH.replace("02:47", "03:11").replace("8489", "17").replace("j84g6", "zx2cv").replace("68ff66bf65", "7b8cd644cb")


class Logs(unittest.TestCase):
    def test_particulars_make_no_difference(self):
        self.assertEqual(new_lines(BOTH, ELSEWHERE), [])
        self.assertEqual(new_lines(ELSEWHERE, BOTH), [])

    def test_a_line_of_one_side_is_found(self):
        for line in ('E1117 02:47:20.000000    8489 job_controller.go:749] "Unhandled Error" err="syncing job: jobs.batch is invalid"',
                     'W1117 02:47:20.000000    8489 reflector.go:561] failed to list *v1.Job: the server could not find it',
                     'F1117 02:47:20.000000    8489 controllermanager.go:240] leaderelection lost',
                     # Known text, from another place.
                     'E1117 02:47:20.000000    8489 stateful_set.go:509] "Unhandled Error" err="missing content for CA bundle"',
                     "panic: runtime error: invalid memory address or nil pointer dereference", "fatal error: concurrent map writes"):
            with self.subTest(line=line):
                self.assertEqual(new_lines(BOTH + line + "\n", ELSEWHERE), [line])
                self.assertEqual(new_lines(BOTH, ELSEWHERE + line + "\n"), [])

    def test_races_and_information_are_not_counted(self):
        for line in ('E1117 02:47:19.043100    8489 disruption.go:654] "Error" err="the object has been modified; please apply"',
                     'E1117 02:47:19.043100    8489 daemon_controller.go:411] err="read version: 1 is not as new as written version: 2"',
                     'I1117 02:47:19.043100    8489 deployment_controller.go:5] "Started"'):
            with self.subTest(line=line):
                self.assertEqual(new_lines(BOTH + line + "\n", ELSEWHERE), [])

    def test_a_log_in_another_form_is_noticed(self):
        """Otherwise nothing would be compared."""
        self.assertEqual(unread("manager", BOTH), [])
        self.assertTrue(unread("manager", '{"level":"error","msg":"missing content for CA bundle"}\n'))
        self.assertTrue(unread("scheduler", ""))
        self.assertEqual(unread("kubelet", ""), [])


if __name__ == "__main__":
    unittest.main()
