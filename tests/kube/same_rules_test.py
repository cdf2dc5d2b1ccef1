#!/usr/bin/python3
"""Random definitions with rules, and random objects, in a real kube-apiserver and in Vigil (tests/kube/ruleoracle makes them): both must
accept or refuse each, with the same texts. VIGIL_ORACLE_SEED= repeats a run, VIGIL_RULES_COUNT= is the number of expressions."""
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/live"))
sys.path.insert(0, str(ROOT / "tests/kube"))
import same_definitions_test as definitions  # noqa: E402
from same_policies_test import shown  # noqa: E402
from same_writes_test import JSON_PATCH, Client  # noqa: E402
from side_by_side import SideBySide  # noqa: E402

COUNT = int(os.environ.get("VIGIL_RULES_COUNT", "200"))
SEED = os.environ.get("VIGIL_ORACLE_SEED", str(random.randrange(1 << 31)))
BATCH = 25  # definitions that are served at a time
# Kubernetes visits fields and entries in any order, so that an answer may be another one the next time.
TRIES = 10


def cases():
    done = subprocess.run(["go", "run", "./ruleoracle", "write", str(COUNT), SEED], cwd=ROOT / "tests/kube", capture_output=True, text=True,
                          env=definitions.ENVIRONMENT, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def change(old, new):
    """A JSON patch that replaces what users write."""
    for name in ("spec", "status"):
        if name in new:
            yield {"op": "add", "path": f"/{name}", "value": new[name]}
        elif name in old:
            yield {"op": "remove", "path": f"/{name}"}


class SameRules(SideBySide):
    client = Client
    sent = refused = warned = 0

    def answer(self, client, case):
        code, body, warnings = definitions.counts(shown(client.send(*case), client.warnings), True)
        return code, body, sorted(re.sub(r"selfType\d+", "selfType", text) for text in warnings)

    def same(self, *case):
        """Returns the code."""
        ours = self.answer(self.ours, case)
        for _ in range(TRIES):
            theirs = self.answer(self.theirs, case)
            if ours == theirs:
                break
        self.sent += 1
        self.refused += theirs[0] >= 400
        self.warned += bool(theirs[2])
        with self.subTest(seed=SEED, case=json.dumps(case)[:3000]):
            self.assertEqual("", "\n".join(list(definitions.differences(ours, theirs))[:10]))
        return theirs[0]

    def create(self, path, value):
        """False: it is refused."""
        codes = {client.send("POST", path, value)[0] for client in (self.theirs, self.ours)}
        self.assertEqual(len(codes), 1, json.dumps(value)[:3000])
        return codes == {201}

    def objects(self, kind, path, values):
        for number, value in enumerate(values):
            new, old = value["object"], value["old"]
            for one in (new, old or new):
                one.update(kind=kind, metadata={"name": f"a{number}"})
            if old and self.create(path, old):
                self.same("PATCH", f"{path}/a{number}?dryRun=All", list(change(old, new)), JSON_PATCH)
            else:
                self.same("POST", path + "?dryRun=All", new)

    def batch(self, some):
        served = []
        for case in some:
            if self.same("POST", definitions.CRDS + "?dryRun=All", case["definition"]) == 201:
                self.assertTrue(self.create(definitions.CRDS, case["definition"]))
                served.append((case, f"/apis/example.com/v1/namespaces/default/{case['definition']['spec']['names']['plural']}"))
        for _, path in served:
            self.wait_for(path)
        for case, path in served:
            self.objects(case["definition"]["spec"]["names"]["kind"], path, case["objects"])
        for case, _ in served:
            for client in (self.theirs, self.ours):
                client.send("DELETE", f"{definitions.CRDS}/{case['definition']['metadata']['name']}")

    def test_random_rules(self):
        start, all_cases = time.monotonic(), cases()
        for at in range(0, len(all_cases), BATCH):
            self.batch(all_cases[at:at + BATCH])
        print(f"{len(all_cases)} definitions with {sum(case['expressions'] for case in all_cases)} expressions, {self.sent} requests, "
              f"{self.refused} refused, {self.warned} with warnings, {time.monotonic() - start:.0f} s, seed {SEED}", flush=True)
        self.assertGreater(self.sent - self.refused, len(all_cases))


if __name__ == "__main__":
    unittest.main()
