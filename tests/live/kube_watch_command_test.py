#!/usr/bin/python3
"""`vigil kube watch` shows events, differences and what an informer holds."""
import json
import os
import select
import signal
import subprocess
import unittest

from kube import KubeServer
from server import SUBJECT, LiveTest

SECONDS = 60


class KubeWatchCommand(LiveTest):
    def setUp(self):
        super().setUp()
        self.vigil = KubeServer(self.scratch / "data")
        self.addCleanup(self.vigil.kill)
        self.addCleanup(self.vigil.close)
        self.vigil.start()

    def begin(self, *words):
        process = subprocess.Popen([SUBJECT, "kube", "watch", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   text=True, env=dict(os.environ, KUBECONFIG=self.vigil.kubeconfig, TZ="UTC"))
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def run_to_end(self, *words):
        process = self.begin(*words)
        output, errors = process.communicate(timeout=SECONDS)
        return process.returncode, output, errors

    def next_line(self, process):
        """Which is not a bookmark: a server sends them when it likes to."""
        while "BOOKMARK" in (line := process.stdout.readline()):
            pass
        return line

    def end(self, process):
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(SECONDS), 0, process.stderr.read())

    def test_events_with_differences_over_a_restart(self):
        self.vigil.put("configmaps", "a", kind="ConfigMap", data={"x": "1"})
        watch = self.begin("cm", "--initial-events")
        self.assertRegex(watch.stdout.readline(), r"^[\d:.]{12}  ADDED     default/a  version \d+, changed .* ago$")
        self.assertRegex(watch.stdout.readline(), r"BOOKMARK  version \d+, the state is complete$")
        self.vigil.put("configmaps", "a", kind="ConfigMap", data={"x": "2", "y": "3"})
        self.assertRegex(watch.stdout.readline(), r"MODIFIED  default/a  version \d+")
        self.assertEqual(watch.stdout.readline(), '               ~ data.x: "1" > "2"\n')
        self.assertEqual(watch.stdout.readline(), '               + data.y: "3"\n')
        self.vigil.close()
        self.vigil.stop()
        self.assertRegex(self.next_line(watch), r"ENDED     ")
        self.vigil.start()
        self.vigil.delete("configmaps", "a")
        self.assertRegex(self.next_line(watch), r"DELETED   default/a  version \d+")
        self.end(watch)

    def test_one_object_as_json(self):
        self.vigil.put("configmaps", "a", kind="ConfigMap")
        self.vigil.put("configmaps", "b", kind="ConfigMap")
        code, output, errors = self.run_to_end("configmaps/b", "-o", "json", "--count", "1")
        self.assertEqual(code, 0, errors)
        event = json.loads(output)
        self.assertEqual((event["type"], event["object"]["metadata"]["name"]), ("ADDED", "b"))

    def test_informer(self):
        self.vigil.put("configmaps", "a", kind="ConfigMap")
        code, output, errors = self.run_to_end("configmaps", "--informer", "--interval", "300ms", "--count", "3", "-o", "json")
        self.assertEqual(code, 0, errors)
        last = json.loads(output.splitlines()[-1])
        self.assertEqual((last["synced"], last["objects"], last["failures"]), (True, 1, 0))
        code, output, _ = self.run_to_end("configmaps", "--informer", "--interval", "300ms", "--count", "2")
        self.assertRegex(output.splitlines()[-1], r"^1 objects, \d+ bytes, version \d+, behind by \d+, last event ")

    def test_failures_say_what_is_wrong(self):
        code, _, errors = self.run_to_end("nothing")
        self.assertEqual((code, errors), (1, f'vigil kube watch: {self.vigil.kube_url} has no resource "nothing"\n'))
        code, _, errors = self.run_to_end("pods", "--server", "http://127.0.0.1:1")
        self.assertEqual(code, 1)
        self.assertRegex(errors, "cannot connect to 127.0.0.1:1")
        code, _, errors = self.run_to_end()
        self.assertEqual((code, errors), (2, "vigil kube watch: RESOURCE[/NAME] is missing. See vigil kube watch --help.\n"))
        code, output, _ = self.run_to_end("pods", "--selector", "=x", "--count", "1")  # a refusal is not counted
        self.assertEqual(code, 1)
        self.assertRegex(output, "ENDED     400 BadRequest")

    def test_a_refusal_of_a_repeated_watch_is_reported(self):
        watch = self.begin("pods", "--since", "1", "--selector", "a=b=c")
        self.assertTrue(select.select([watch.stderr], [], [], SECONDS)[0], "nothing is reported")
        self.assertRegex(watch.stderr.readline(), "^vigil kube watch: the watch of pods tries again: 400 BadRequest: ")
        self.end(watch)

    def test_flags_that_make_no_sense_are_refused(self):
        for arguments, reason in (
            (("pods", "--since", "5", "--initial-events"), "--initial-events begins with the state"),
            (("pods", "--since", "newest"), "--since must be a resourceVersion"),
            (("pods", "--informer", "--since", "5"), "--informer cannot be used with --since"),
            (("pods/a", "--informer"), "--field-selector metadata.name=NAME"),
            (("pods/",), "the NAME after"),
            (("pods", "a"), 'unexpected argument "a" after RESOURCE'),
            (("pods", "--bogus"), "flag provided but not defined: -bogus"),
        ):
            code, output, errors = self.run_to_end(*arguments)
            self.assertEqual((code, output, errors.count("--help")), (2, "", 1), errors)
            self.assertRegex(errors, reason)


if __name__ == "__main__":
    unittest.main()
