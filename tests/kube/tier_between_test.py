#!/usr/bin/python3
"""What happens between a watch tier and a real kube-apiserver, made by a proxy."""
import concurrent.futures
import shutil
import subprocess
import unittest

from tier_world import INITIAL, Apiserver, Authority, Caller, Relay, TierWorld, config_map, eventually, named, version
from tier_proxy import Proxy, SplittingProxy


class LateRoles(TierWorld):
    @classmethod
    def start_tiers(cls):
        cls.proxy = Proxy([cls.apiserver.port], Authority(cls.scratch / "proxy").sign("proxy"), 0)
        cls.addClassCleanup(cls.proxy.stop)
        cls.proxy.hold("rolebindings")
        cls.tier = cls.start_tier(cls.proxy)
        cls.admin = Caller(cls.tier.port, "the-token")

    def test_a_right_revoked_before_the_roles_are_mirrored(self):
        """The watch ends when they are, not with the next review a minute later."""
        jane = Caller(self.tier.port, "weak-token")
        binding = self.grant("jane", [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "watch"]}])
        self.make(self.maps, config_map("a"))
        eventually(lambda: jane.get(f"{self.maps}?resourceVersion=0")[0] == 200)
        events = self.watch(f"{self.maps}?{INITIAL}", jane)
        events.wait_initial()
        eventually(lambda: self.proxy.counts["held"] >= 2)
        self.delete(binding)
        eventually(lambda: Caller(self.apiserver.port, "weak-token").get(self.maps)[0] == 403)
        self.assertFalse(events.ended)
        self.proxy.release()
        eventually(lambda: events.ended, 25, "the watch did not end")
        self.assertEqual(events.events[-1]["object"]["code"], 403)


class LostHistory(TierWorld):
    @classmethod
    def start_tiers(cls):
        cls.proxy = Proxy([cls.apiserver.port], Authority(cls.scratch / "proxy").sign("proxy"), 0)
        cls.addClassCleanup(cls.proxy.stop)
        cls.tier = cls.start_tier(cls.proxy)
        cls.admin = Caller(cls.tier.port, "the-token")

    def test_watches_end_although_nothing_happens(self):
        """Of a namespace without objects nothing is read again, and nothing changes."""
        full = f"{self.name}-full"
        self.make("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": full}})
        self.make(f"/api/v1/namespaces/{full}/configmaps", config_map("a"))
        paths = [f"/api/v1/namespaces/{name}/secrets" for name in (self.name, full)] + [
            f"/api/v1/namespaces/{name}/configmaps" for name in (self.name, full)] + ["/api/v1/configmaps"]
        watches = [self.watch(f"{path}?{INITIAL}") for path in paths]
        for events in watches:
            events.wait_initial()
        self.proxy.expire("/configmaps?allowWatchBookmarks=")
        for events in watches[2:]:
            eventually(lambda events=events: events.ended, 25, "the watch did not end")
            self.assertEqual((events.events[-1]["type"], events.events[-1]["object"]["code"]), ("ERROR", 410))
        self.assertEqual(self.proxy.counts["expired"], 1)
        # Those of others have not noticed.
        for events, path in zip(watches[:2], paths):
            self.assertFalse(events.ended)
            self.make(path, {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}})
            events.wait(lambda w: w.names() == [("ADDED", "s")])


class Throttled(TierWorld):
    @classmethod
    def start_tiers(cls):
        cls.proxy = Proxy([cls.apiserver.port], Authority(cls.scratch / "proxy").sign("proxy"), 0)
        cls.addClassCleanup(cls.proxy.stop)
        cls.tier = cls.start_tier(cls.proxy)
        cls.admin = Caller(cls.tier.port, "the-token")

    def test_a_watch_waits_for_a_fence_that_is_refused(self):
        """Passed on, it would stay at a kube-apiserver that has too much to do."""
        self.make(self.maps, config_map("a"))
        self.assertEqual(self.admin.get("/api/v1/configmaps?resourceVersion=0")[0], 200)
        before = self.tier.metric("vigil_tier_unmirrored_total")
        self.proxy.busy = b"GET /api/v1/configmaps HTTP"
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            watch = pool.submit(self.watch, f"/api/v1/configmaps?{INITIAL}")
            eventually(lambda: self.proxy.counts["answered 429"] >= 2)
            self.assertFalse(watch.done())
            # A list does not wait so long: it is passed on, and refused.
            self.assertEqual(self.admin.get("/api/v1/configmaps")[0], 429)
            self.proxy.busy = b""
            watch.result().wait_initial()
        self.assertEqual(self.tier.metric("vigil_tier_unmirrored_total"), before + 1)


class OldReplica(TierWorld):
    """Two kube-apiservers of one etcd behind one address. The tier watches at one of them, which learns of nothing for a while."""
    store = "etcd"

    @classmethod
    def start_tiers(cls):
        cls.relay = Relay(cls.backend.port)
        cls.addClassCleanup(cls.relay.stop)
        (cls.scratch / "old").mkdir()
        cls.old = Apiserver(cls.scratch / "old", f"http://127.0.0.1:{cls.relay.port}")
        cls.addClassCleanup(cls.old.stop)
        cls.old.wait_ready()
        cls.proxy = SplittingProxy([cls.apiserver.port, cls.old.port], Authority(cls.scratch / "proxy").sign("proxy"), 0)
        cls.addClassCleanup(cls.proxy.stop)
        cls.tier = cls.start_tier(cls.proxy)
        cls.admin = Caller(cls.tier.port, "the-token")

    def test_nothing_goes_back(self):
        self.make(self.maps, config_map("a"))
        self.mirrors(self.maps)
        events = self.watch(f"{self.maps}?{INITIAL}")
        events.wait_initial()
        self.relay.pause()
        self.make(self.maps, config_map("b"))
        # The mirror cannot know of it, and what must be current is not answered from it.
        self.assertLessEqual({"a", "b"}, set(named(self.admin.get("/api/v1/configmaps")[1])))
        self.assertEqual(events.names(), [("ADDED", "a")])
        # The other one knows it. Then the tier watches at the old one again, from a version that this one does not have.
        self.proxy.swap()
        events.wait(lambda w: w.names()[-1:] == [("ADDED", "b")])
        self.proxy.swap()
        made = self.make(self.maps, config_map("c"))
        for _ in range(10):
            self.assertLessEqual({"a", "b"}, set(named(self.mirrors("/api/v1/configmaps"))))
        self.relay.resume()
        events.wait(lambda w: w.names()[-1:] == [("ADDED", "c")])
        self.assertEqual(events.names(), [("ADDED", name) for name in "abc"])
        versions = [int(version(event["object"])) for event in events.events]
        self.assertEqual(versions, sorted(versions))
        self.assertLessEqual(int(version(made)), versions[-1])


class RestoredEtcd(TierWorld):
    """The kube-apiserver's etcd is restored from an old copy, so that versions are used again."""
    store = "etcd"

    @classmethod
    def restart_with(cls, change):
        cls.apiserver.process.kill()
        cls.apiserver.process.wait()
        cls.backend.stop()
        change()
        cls.backend.start()
        cls.apiserver.process = subprocess.Popen(cls.apiserver.process.args, stdout=cls.apiserver.log, stderr=subprocess.STDOUT,
                                                 start_new_session=True)
        cls.apiserver.wait_ready()

    @staticmethod
    def replace(directory, by):
        shutil.rmtree(directory)
        shutil.move(by, directory)

    def listed(self):
        status, body = self.admin.get("/api/v1/configmaps?resourceVersion=0")
        return named(body) if status == 200 else {}

    def test_versions_of_the_lost_history_are_gone(self):
        self.make(self.maps, config_map("kept"))
        data, copy = self.backend.directory, str(self.scratch / "copy")
        self.restart_with(lambda: shutil.copytree(data, copy))
        for i in range(10):
            lost = int(version(self.make(self.maps, config_map(f"lost-{i}"))))
        eventually(lambda: "lost-9" in self.listed())
        watches = [self.watch(f"{path}?watch=1&resourceVersion={lost}") for path in ("/api/v1/configmaps", self.maps)]
        self.restart_with(lambda: self.replace(data, copy))
        for events in watches:
            eventually(lambda events=events: events.ended, 90, "the watch did not end")
            self.assertEqual([(event["type"], event["object"].get("code")) for event in events.events], [("ERROR", 410)])
        eventually(lambda: "kept" in (found := self.listed()) and "lost-9" not in found)
        # The numbers are used again, for other changes.
        made = 0
        while made <= lost + 10:
            made = int(version(self.make(self.maps, {**config_map("new"), "metadata": {"generateName": "new-"}})))
        self.assertEqual(set(named(self.admin.get("/api/v1/configmaps")[1])), set(named(self.direct.get("/api/v1/configmaps")[1])))
        events = self.watch(f"/api/v1/configmaps?watch=1&resourceVersion={lost}")
        eventually(lambda: events.ended, 30, "a watch of the lost history continues")
        self.assertEqual([(event["type"], event["object"].get("code")) for event in events.events], [("ERROR", 410)])


if __name__ == "__main__":
    unittest.main()
