#!/usr/bin/python3
"""The watch tier in front of a real kube-apiserver on bad days: tokens and rights that end under many watches, a disk that is
full, an etcd that pauses or is slow, a mirror that falls behind."""
import asyncio
import concurrent.futures
import contextlib
import os
import pathlib
import select
import signal
import subprocess
import sys
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/live"))
sys.path.insert(0, str(ROOT / "tests/kube"))
from tier_proxy import Proxy  # noqa: E402
from tier_world import INITIAL, Authority, Caller, Relay, Tier, TierWorld, config_map, eventually, named, version  # noqa: E402

MANY = 1000


class Crowd:
    """Many watches of one caller, which are only counted: how many are open, and how many events have come."""

    def __init__(self, caller, path, count):
        self.sockets, self.buffers = [], {}
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            for connection, status in pool.map(lambda _: self.begin(caller, path), range(count)):
                assert status == 200, status
                self.sockets.append(connection.sock)
                self.buffers[connection.sock] = connection
        self.open = set(self.sockets)
        self.texts = {sock: b"" for sock in self.sockets}

    @staticmethod
    def begin(caller, path):
        connection = caller.connect()
        answer = caller.request(connection, "GET", path)
        connection.answer = answer  # it would be closed without a reference
        return connection, answer.status

    def read(self, seconds):
        """Reads until nothing arrives for this time, or all have ended."""
        poll = select.poll()
        by_number = {sock.fileno(): sock for sock in self.open}
        for number in by_number:
            poll.register(number, select.POLLIN)
        while self.open and (ready := poll.poll(seconds * 1000)):
            for number, _ in ready:
                sock = by_number[number]
                try:
                    piece = sock.recv(1 << 16)
                except OSError:
                    piece = b""
                self.texts[sock] += piece
                # An end of the chunked answer is the end of the watch.
                if not piece or self.texts[sock].endswith(b"0\r\n\r\n"):
                    self.open.discard(sock)
                    poll.unregister(number)

    def close(self):
        for connection in self.buffers.values():
            connection.answer.close()
            connection.close()


class Rights(TierWorld):
    # The kube-apiserver keeps what it has decided about tokens for ten seconds.
    def account(self, name):
        made = self.make(f"/api/v1/namespaces/{self.name}/serviceaccounts", {"metadata": {"name": name}})
        eventually(lambda: self.direct.get(f"/api/v1/namespaces/{self.name}/serviceaccounts/{name}")[0] == 200)
        body = self.make(f"/api/v1/namespaces/{self.name}/serviceaccounts/{name}/token", {"spec": {"expirationSeconds": 600}})
        return made, Caller(self.tier.port, body["status"]["token"])

    def test_a_token_that_is_void(self):
        _, leaver = self.account("leaver")
        _, stays = self.account("stays")
        for who in ("leaver", "stays"):
            self.grant(f"{self.name}:{who}", [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "watch"]}])
        self.make(self.maps, config_map("a"))
        for caller in (leaver, stays):
            eventually(lambda caller=caller: caller.get(f"{self.maps}?resourceVersion=0")[0] == 200)
        leaving, staying = (self.watch(f"{self.maps}?{INITIAL}", caller) for caller in (leaver, stays))
        for events in (leaving, staying):
            events.wait_initial()
        self.delete(f"/api/v1/namespaces/{self.name}/serviceaccounts/leaver")
        gone = time.monotonic()
        eventually(lambda: leaver.get(f"{self.maps}?resourceVersion=0")[0] == 401, 40)  # 10 s there, 10 s here
        eventually(lambda: leaving.ended, 110, "the watch did not end")
        print(f"the watch ended after {time.monotonic() - gone:.0f} s", flush=True)
        last = leaving.events[-1]
        self.assertEqual((last["type"], last["object"]["code"]), ("ERROR", 401))
        self.make(self.maps, config_map("b"))
        staying.wait(lambda w: ("ADDED", "b") in w.names())
        self.assertNotIn(("ADDED", "b"), leaving.names("ADDED"))

    def test_a_user_with_many_watches_loses_the_right(self):
        jane = Caller(self.tier.port, "weak-token")
        binding = self.grant("jane", [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "watch"]}])
        made = self.make(self.maps, config_map("a"))
        eventually(lambda: jane.get(f"{self.maps}?resourceVersion=0")[0] == 200)
        path = f"{self.maps}?watch=1&resourceVersion={version(made)}"
        others = Crowd(self.admin, path, 20)
        self.addCleanup(others.close)
        hers = Crowd(jane, path, MANY)
        self.addCleanup(hers.close)
        self.make(self.maps, config_map("b"))
        hers.read(3)
        self.assertEqual(len(hers.open), MANY)
        self.assertEqual([text.count(b'"ADDED"') for text in hers.texts.values()], [1] * MANY)
        reviews = self.tier.metric("vigil_tier_reviews_total")
        revoked = time.monotonic()
        self.delete(binding)
        hers.read(15)
        print(f"{MANY} watches ended in {time.monotonic() - revoked:.1f} s with "
              f"{self.tier.metric('vigil_tier_reviews_total') - reviews:.0f} reviews", flush=True)
        self.assertFalse(hers.open)
        for text in hers.texts.values():
            self.assertEqual(text.count(b'"ERROR"'), 1)
            self.assertIn(b'User \\"jane\\" cannot watch resource', text)
        # They share reviews: the right of one user to one thing.
        self.assertLess(self.tier.metric("vigil_tier_reviews_total") - reviews, 50)
        self.make(self.maps, config_map("c"))
        others.read(3)
        self.assertEqual(len(others.open), 20)
        for text in others.texts.values():
            self.assertEqual((text.count(b'"ADDED"'), text.count(b'"ERROR"')), (2, 0))
        self.assertNotIn(b'"name":"c"', b"".join(hers.texts.values()))
        self.assertEqual(jane.get(f"{self.maps}?resourceVersion=0")[0], 403)


class SmallDisk(TierWorld):
    """The disk of the tier is small."""
    SIZE_MB = 48

    @classmethod
    def start_tiers(cls):
        if os.geteuid() != 0:
            raise unittest.SkipTest("mounting a small disk needs root")
        (cls.scratch / "tier").mkdir()
        disk = cls.scratch / "tier/data"
        disk.mkdir()
        cls.disk = disk
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={cls.SIZE_MB}m,mode=700", "vigil", str(disk)], check=True)
        cls.addClassCleanup(subprocess.run, ["umount", "-l", str(disk)], check=True)
        super().start_tiers()

    def test_a_disk_that_is_full(self):
        made = self.make(self.maps, config_map("first"))
        events = self.watch(f"{self.maps}?{INITIAL}")
        events.wait_initial()
        filler = self.disk / "filler"
        with open(filler, "wb") as file, contextlib.suppress(OSError):
            while True:
                file.write(b"x" * 65536)
                file.flush()
        # Some changes still find room in what is allocated already.
        names = []
        for i in range(60):
            names.append(f"a{i}")
            self.make(self.maps, config_map(names[-1], k="x" * 500_000))
        text = eventually(lambda: [line for line in self.tier.log.splitlines() if "space" in line], 60, "it did not notice")
        print(text[-1][:300], flush=True)
        late = len(events.names())
        self.assertLess(late, 61, "the disk was not full")
        # Current reads are passed on, also many; what is served from the mirror is a state that there was.
        for path in (self.maps, *["/api/v1/configmaps"] * 20):
            status, body = self.admin.get(path)
            self.assertEqual(status, 200, body)
            self.assertLessEqual(set(names), set(named(body)))
        self.assertEqual(self.admin.get(f"{self.maps}/a59")[0], 200)
        status, body = self.admin.get(f"{self.maps}?resourceVersion=0")
        if status == 200:
            self.assertIn("first", named(body))
        self.assertEqual(self.admin.get("/livez")[0], 200)
        self.assertFalse(events.ended)
        # With space, everything comes, in order.
        filler.unlink()
        subprocess.run(["mount", "-o", "remount,size=512m", str(self.disk)], check=True)
        events.wait(lambda w: w.names()[-1:] == [("ADDED", "a59")])
        self.assertEqual(events.names(), [("ADDED", name) for name in ["first", *names]])
        versions = [int(version(e["object"])) for e in events.events if e["type"] != "BOOKMARK"]
        self.assertEqual(versions, sorted(set(versions)))
        eventually(lambda: (answer := self.admin.get(f"{self.maps}?resourceVersion=0"))[0] == 200 and
                   set(named(answer[1])) >= {*names, "first"})
        self.assertEqual(version(made), version(self.admin.get(f"{self.maps}/first?resourceVersion=0")[1]))


class SlowEtcd(TierWorld):
    store = "etcd"
    apiserver_flags = ("--request-timeout=20s",)

    @classmethod
    def upstream_of_apiserver(cls):
        cls.relay = Relay(cls.backend.port)
        cls.addClassCleanup(cls.relay.stop)
        return f"http://127.0.0.1:{cls.relay.port}"

    def test_an_etcd_that_pauses(self):
        made = self.make(self.maps, config_map("a"))
        events = self.watch(f"{self.maps}?{INITIAL}")
        events.wait_initial()
        os.kill(self.backend.pid, signal.SIGSTOP)
        try:
            # What may be old is answered at once, and by the mirror.
            begun = time.monotonic()
            for _ in range(20):
                self.assertEqual(version(self.admin.get(f"{self.maps}/a?resourceVersion=0")[1]), version(made))
                self.assertEqual(self.admin.get(f"{self.maps}?resourceVersion=0")[0], 200)
                self.assertEqual(self.admin.get("/readyz"), (200, "ok"))
            self.assertLess(time.monotonic() - begun, 10)
            another = self.watch(f"{self.maps}?watch=1&resourceVersion={version(made)}")
            # What must be current, and writes, have the kube-apiserver's own error.
            with concurrent.futures.ThreadPoolExecutor(4) as pool:
                answers = [pool.submit(self.admin.get, path) for path in (self.maps, "/api/v1/configmaps", f"{self.maps}/a")]
                answers.append(pool.submit(self.admin.send, "POST", self.maps, config_map("lost")))
                for answer in answers:
                    status, body = answer.result()
                    # 502: it has reset the stream in the place of an answer.
                    self.assertIn(status, (500, 502, 503, 504), body)
            self.assertFalse(events.ended)
        finally:
            os.kill(self.backend.pid, signal.SIGCONT)
        eventually(lambda: self.admin.send("POST", self.maps, config_map("b"))[0] in (201, 409))
        for watch in (events, another):
            watch.wait(lambda w: w.names()[-1:] == [("ADDED", "b")])
        eventually(lambda: {"a", "b"} <= set(named(self.admin.get("/api/v1/configmaps")[1])))

    def test_an_etcd_that_is_slow(self):
        self.make(self.maps, config_map("a"))
        events = self.watch(f"{self.maps}?{INITIAL}")
        events.wait_initial()
        self.relay.delay_s = 0.4
        self.addCleanup(setattr, self.relay, "delay_s", 0.0)
        for i in range(10):
            status, body = self.admin.send("POST", self.maps, config_map(f"b{i}"))
            self.assertEqual(status, 201, body)
            # It sees what it has written, in all current reads.
            for path in (self.maps, "/api/v1/configmaps"):
                self.assertIn(f"b{i}", named(self.admin.get(path)[1]))
        events.wait(lambda w: len(w.names()) == 11)
        self.assertEqual(events.names(), [("ADDED", name) for name in ["a", *(f"b{i}" for i in range(10))]])


class HoldingProxy(Proxy):
    """Holds what the watches get that are running when it begins to."""

    def __init__(self, *args):
        super().__init__(*args)
        self.watching, self.silent = set(), set()

    def hold(self):
        self.silent = set(self.watching)

    def release(self):
        self.silent = set()

    def reading(self, reader, noticed):
        class Reading:
            async def read(self, count):
                return await noticed(await reader.read(count))
        return Reading()

    async def up(self, reader, writer, up_writer):
        async def noticed(piece):
            if b"watch=" in piece.split(b"\r\n", 1)[0]:
                self.watching.add(writer)
            return piece
        await super().up(self.reading(reader, noticed), writer, up_writer)

    async def down(self, up_reader, writer):
        async def noticed(piece):
            while writer in self.silent:
                await asyncio.sleep(0.02)
            return piece
        await super().down(self.reading(up_reader, noticed), writer)


class Behind(TierWorld):
    @classmethod
    def start_tiers(cls):
        cls.proxy = HoldingProxy([cls.apiserver.port], Authority(cls.scratch / "proxy").sign("proxy"), 1)
        cls.addClassCleanup(cls.proxy.stop)
        cls.tier = Tier(cls.scratch, f"https://127.0.0.1:{cls.proxy.port}")
        cls.tier.start()
        cls.addClassCleanup(cls.tier.stop)
        cls.admin = Caller(cls.tier.port, "the-token")

    def test_a_mirror_that_falls_behind(self):
        self.make(self.maps, config_map("a"))
        events = self.watch(f"{self.maps}?{INITIAL}")
        events.wait_initial()
        whole = self.watch(f"/api/v1/configmaps?{INITIAL}")
        whole.wait_initial()
        self.addCleanup(self.proxy.release)
        for i in range(5):
            self.proxy.hold()  # fences notice that it is behind, and the watch is made again
            last = self.make(self.maps, config_map(f"b{i}"))
            self.assertTrue(i or events.names() == [("ADDED", "a")])
            # A current read is not answered by what is behind.
            for path in (self.maps, "/api/v1/configmaps"):
                status, body = self.admin.get(path)
                self.assertEqual(status, 200, body)
                self.assertIn(f"b{i}", named(body), path)
            self.assertEqual(self.admin.get(f"{self.maps}/b{i}")[0], 200)
            # Nor is one that must be as new as a version; the kube-apiserver has it.
            status, body = self.admin.get(f"{self.maps}?resourceVersion={version(last)}&resourceVersionMatch=NotOlderThan")
            self.assertEqual(status, 200, body)
            self.assertIn(f"b{i}", named(body))
            status, body = self.admin.get(f"{self.maps}/b{i}?resourceVersion={version(last)}")
            self.assertEqual(status, 200, body)
        # A watch that begins with the state has everything.
        late = self.watch(f"/api/v1/configmaps?{INITIAL}")
        late.wait_initial()
        self.assertLessEqual({f"b{i}" for i in range(5)}, {name for _, name in late.names()})
        self.proxy.release()
        for watch in (events, whole):
            watch.wait(lambda w: ("ADDED", "b4") in w.names())
            names = [name for _, name in watch.names() if name.startswith("b")]
            self.assertEqual(names, [f"b{i}" for i in range(5)])
            self.assertFalse(watch.ended)


if __name__ == "__main__":
    unittest.main()
