#!/usr/bin/python3
"""The status of a definition says that its conversion webhook fails, and that it works again: once for each change, and rarely."""
import pathlib
import re
import time
import unittest

import conversions
import webhooks
from kube_conversion_test import ConversionTest
from conversions import CRDS, path
from server import only_vigil

ROOT = pathlib.Path(__file__).resolve().parents[2]
GATES = f"{CRDS}/gates.example.com"
PAUSE_SECONDS = int(re.search(r"KUBE_CONVERTER_PAUSE_S = (\d+)", (ROOT / "src/kube/call/converter_states.h").read_text())[1])


@only_vigil
class KubeConverterStatus(ConversionTest):
    def condition(self):
        """The condition; None: there is none."""
        conditions = self.send("GET", GATES, code=200)["status"]["conditions"]
        found = [row for row in conditions if row["type"] == "ConversionFailing"]
        self.assertLessEqual(len(found), 1)
        return found[0] if found else None

    def says(self, status):
        return (self.condition() or {}).get("status") == status

    def revision(self):
        return self.send("GET", GATES, code=200)["metadata"]["resourceVersion"]

    def create(self):
        self.send("POST", path("v1"), conversions.gate("a"), 201)

    def test_a_failure_is_reported_until_conversions_succeed(self):
        self.create()
        self.send("GET", path("v2", "a"), code=200)
        before = self.send("GET", GATES, code=200)
        self.behave(webhooks.cut)
        self.send("GET", path("v2", "a"), code=500)
        self.until(lambda: self.says("True"))
        said = self.condition()
        self.assertEqual(said["reason"], "WebhookCallFailed")
        self.assertIn("has not converted from v1 to v2: it could not be called", said["message"])
        after = self.send("GET", GATES, code=200)
        self.assertEqual(after["spec"], before["spec"])
        self.assertEqual([row for row in after["status"]["conditions"] if row != said], before["status"]["conditions"])
        # Further failures change nothing.
        revision, begun = self.revision(), time.monotonic()
        while time.monotonic() < begun + PAUSE_SECONDS + 10:
            self.send("GET", path("v2", "a"), code=500)
            time.sleep(0.5)
        self.assertEqual(self.revision(), revision)
        # A success among failures does not count.
        self.behave(conversions.good)
        self.until(lambda: self.send("GET", path("v2", "a"), code=200) and self.says("False"))
        self.assertEqual(self.condition()["reason"], "ConversionsSucceed")

    def test_a_client_without_patience_is_not_a_failure(self):
        def pause(call):
            time.sleep(2)
            conversions.good(call)
        self.create()
        self.behave(pause)
        revision = self.revision()
        for _ in range(10):  # failures are looked for every five seconds
            self.send("GET", path("v2", "a") + "?timeout=1s", code=504)
        self.assertEqual(self.revision(), revision)
        self.assertIsNone(self.condition())

    def test_a_webhook_that_comes_and_goes_changes_the_status_rarely(self):
        self.create()
        revisions, begun = set(), time.monotonic()
        while time.monotonic() < begun + PAUSE_SECONDS + 10:
            for behaviour, code in ((webhooks.cut, 500), (conversions.good, 200)):
                self.behave(behaviour)
                self.send("GET", path("v2", "a"), code=code)
            revisions.add(self.revision())
            time.sleep(0.1)
        self.assertGreater(len(revisions), 1)
        self.assertLessEqual(len(revisions) - 1, (time.monotonic() - begun) / PAUSE_SECONDS + 1)

    def test_a_server_that_starts_again_corrects_what_it_has_said(self):
        self.create()
        self.behave(conversions.BAD["failure-message"])
        self.send("GET", path("v2", "a"), code=500)
        self.until(lambda: self.says("True"))
        self.assertEqual(self.condition()["reason"], "MalformedAnswer")
        self.server.stop()
        self.server.start()
        self.behave(conversions.good)
        self.assertTrue(self.says("True"))
        # Until the server has read its definitions it does not know what their status says.
        self.until(lambda: self.send("GET", path("v2", "a"), code=200) and self.says("False"))

    def test_a_definition_without_a_webhook_says_nothing(self):
        self.create()
        self.behave(webhooks.cut)
        self.send("GET", path("v2", "a"), code=500)
        self.until(lambda: self.says("True"))
        self.patch(GATES, {"metadata": {"labels": {"a": "b"}}})
        self.assertTrue(self.says("True"))
        self.patch(GATES, {"spec": {"conversion": {"strategy": "None", "webhook": None}}})
        self.assertIsNone(self.condition())

    def test_the_status_is_written_beside_clients(self):
        """Of a definition that clients change all the time."""
        self.create()
        self.behave(webhooks.cut)
        number = 0

        def is_reported():
            nonlocal number
            number += 1
            self.send("GET", path("v2", "a"), code=500)
            made = self.patch(GATES, {"metadata": {"labels": {"n": str(number)}}})
            self.assertEqual(made["metadata"]["labels"], {"n": str(number)})
            time.sleep(0.2)
            return self.says("True")
        self.until(is_reported)


if __name__ == "__main__":
    unittest.main()
