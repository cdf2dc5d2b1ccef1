#!/usr/bin/python3
"""Several watch tiers: two in front of one kube-apiserver, and one in front of another. Clients move between them with their
versions and continue tokens."""
import pathlib
import random
import sys
import unittest
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/live"))
sys.path.insert(0, str(ROOT / "tests/kube"))
from tier_world import INITIAL, Caller, TierWorld, config_map, eventually, named, version  # noqa: E402


class Several(TierWorld):
    # Old versions stay readable, so that a token is continued and does not expire.
    apiserver_flags = ("--etcd-compaction-interval=10m",)

    @classmethod
    def start_tiers(cls):
        cls.tier = cls.start_tier(name="left")
        cls.right = cls.start_tier(name="right")
        cls.outer = cls.start_tier(upstream=cls.right, name="outer")
        cls.tiers = [cls.tier, cls.right, cls.outer]
        cls.callers = [Caller(tier.port, "the-token") for tier in cls.tiers]
        cls.admin = cls.callers[0]

    def test_a_tier_in_front_of_a_tier(self):
        outer, jane = self.callers[2], Caller(self.outer.port, "weak-token")
        made = self.make(self.maps, config_map("a"), outer)
        events = self.watch(f"{self.maps}?{INITIAL}", outer)
        events.wait_initial()
        self.assertEqual(events.names(), [("ADDED", "a")])
        for i in range(10):
            self.make(self.maps, config_map(f"b{i}"), self.callers[i % 3])
            # What was written anywhere is seen by the next current read.
            for path in (self.maps, "/api/v1/configmaps"):
                self.assertIn(f"b{i}", named(outer.get(path)[1]), path)
        self.delete(f"{self.maps}/a", outer)
        events.wait(lambda w: w.names()[-1:] == [("DELETED", "a")])
        self.assertEqual(events.names()[1:], [*(("ADDED", f"b{i}") for i in range(10)), ("DELETED", "a")])
        # Errors and rights are the kube-apiserver's.
        for path in (self.maps, f"{self.maps}/a", f"{self.maps}/b1?resourceVersion=0", f"{self.maps}?watch=1"):
            theirs = Caller(self.apiserver.port, "weak-token").get(path)
            self.assertEqual(jane.get(path), theirs, path)
            self.assertEqual(theirs[0], 403)
        self.assertEqual(Caller(self.outer.port, "wrong").get(self.maps)[0], 401)
        self.assertEqual(outer.get(f"{self.maps}/a"), self.direct.get(f"{self.maps}/a"))
        self.assertEqual(outer.get("/version"), self.direct.get("/version"))
        self.assertGreater(self.outer.metric("vigil_tier_watches_total"), 0)
        self.assertEqual(version(made), version(events.events[0]["object"]))

    def test_the_inner_tier_is_killed(self):
        outer = self.callers[2]
        self.make(self.maps, config_map("count", n="0"))
        events = self.watch(f"{self.maps}?{INITIAL}", outer)
        events.wait_initial()
        for i in range(1, 4):
            self.addCleanup(lambda: self.right.alive() or self.right.start())
            self.assertEqual(outer.get(f"{self.maps}/count?resourceVersion=0")[0], 200)
            self.right.kill()
            # Meanwhile the outer one answers what may be old, and whose right is known.
            self.assertEqual(outer.get(f"{self.maps}/count?resourceVersion=0")[0], 200)
            self.change(f"{self.maps}/count", {"data": {"n": str(i)}})
            self.right.start()
            eventually(lambda i=i: (answer := outer.get(f"{self.maps}/count?resourceVersion=0"))[0] == 200 and
                       answer[1]["data"]["n"] == str(i))
            eventually(lambda: outer.get("/api/v1/configmaps")[0] == 200)
        # Its mirror begins later, so the watch has either everything, or ends with 410.
        events.wait(lambda w: w.ended or [e["object"]["data"]["n"] for e in w.events if e["type"] == "MODIFIED"] == ["1", "2", "3"])
        if events.ended:
            self.assertEqual(events.events[-1]["object"]["code"], 410)

    def test_tokens_are_continued_elsewhere(self):
        names = [f"{self.name}-{i}" for i in range(20)]
        for name in names:
            last = self.make(self.maps, config_map(name, labels={"of": self.name}))
        everywhere = [self.direct, *self.callers]
        whole = f"/api/v1/configmaps?labelSelector=of%3D{self.name}"
        for caller in self.callers:
            eventually(lambda caller=caller: int(version(caller.get(f"{whole}&resourceVersion=0")[1])) >= int(version(last)))
        for first in everywhere:
            for path in (f"{self.maps}?", f"{whole}&"):
                found, token, caller, at = [], "", first, set()
                while True:
                    status, body = caller.get(f"{path}limit=6" + (f"&continue={urllib.parse.quote(token)}" if token else ""))
                    self.assertEqual(status, 200, body)
                    found += [item["metadata"]["name"] for item in body["items"] if item["metadata"]["name"] in names]
                    at.add(version(body))
                    token = body["metadata"].get("continue", "")
                    if not token:
                        break
                    # The pages are those of one version, whatever is written meanwhile.
                    self.change(f"{self.maps}/{names[0]}", {"data": {"at": str(len(found))}})
                    caller = everywhere[(everywhere.index(caller) + 1) % len(everywhere)]
                self.assertEqual(found, sorted(names), (everywhere.index(first), path))
                self.assertEqual(len(at), 1, at)

    def test_a_watch_moves_between_them(self):
        """A client that moves after every event sees each change once, or gets 410 and lists."""
        seed = random.SystemRandom().randrange(1 << 30)
        print("seed", seed, flush=True)
        rng = random.Random(seed)
        self.make(self.maps, config_map("count", n="0"))
        everywhere = [self.direct, *self.callers]
        body = everywhere[0].get(self.maps)[1]
        at, seen, written, lists = version(body), 0, 0, 0
        while seen < 120:
            while written < seen + rng.randrange(1, 4):
                written += 1
                self.change(f"{self.maps}/count", {"data": {"n": str(written)}}, rng.choice(everywhere))
            caller = rng.choice(everywhere)
            events = caller.watch(f"{self.maps}?watch=1&fieldSelector=metadata.name%3Dcount&resourceVersion={at}")
            try:
                events.wait(lambda w: w.events)
                event = events.events[0]
            finally:
                events.close()
            if event["type"] == "ERROR":
                self.assertEqual(event["object"]["code"], 410, event)
                body = rng.choice(everywhere).get(f"{self.maps}?resourceVersion={at}&resourceVersionMatch=NotOlderThan")[1]
                self.assertGreaterEqual(int(version(body)), int(at))
                at, seen, lists = version(body), int(named(body)["count"]["data"]["n"]), lists + 1
                continue
            self.assertEqual((event["type"], event["object"]["data"]["n"]), ("MODIFIED", str(seen + 1)), everywhere.index(caller))
            self.assertGreater(int(version(event["object"])), int(at))
            at, seen = version(event["object"]), seen + 1
        self.assertLess(lists, 10)


if __name__ == "__main__":
    unittest.main()
