#!/usr/bin/python3
"""libvigil with three members of a real etcd, which are killed and started again."""
import contextlib
import os
import pathlib
import subprocess
import sys
import time
import unittest
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "live"))
from client_test import Driver  # noqa: E402
from server import PEER, START_SECONDS, LiveTest, free_port  # noqa: E402


class Member:
    def __init__(self, directory, index):
        self.name = f"m{index}"
        self.directory = directory / self.name
        self.url, self.peer = (f"http://127.0.0.1:{free_port()}" for _ in range(2))
        self.process = None

    def start(self, cluster):
        if self.process is None:
            command = [PEER, "--name", self.name, "--data-dir", str(self.directory), "--listen-client-urls", self.url,
                       "--advertise-client-urls", self.url, "--listen-peer-urls", self.peer,
                       "--initial-advertise-peer-urls", self.peer, "--initial-cluster", cluster,
                       "--heartbeat-interval", "50", "--election-timeout", "500", "--log-level", "error"]
            self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def kill(self):
        if self.process:
            self.process.kill()
            self.process.wait()
            self.process = None

    def metrics(self):
        with contextlib.suppress(OSError), urllib.request.urlopen(f"{self.url}/metrics", timeout=5) as answer:
            return answer.read().decode()
        return ""

    def is_leader(self):
        return "\netcd_server_is_leader 1\n" in self.metrics()

    def has_leader(self):
        return "\netcd_server_has_leader 1\n" in self.metrics()


class Cluster:
    """Three members; obeys what a test of the suite asks for."""

    def __init__(self, directory):
        self.members = [Member(directory, i) for i in range(3)]
        self.url = ",".join(member.url for member in self.members)

    def start(self):
        for member in self.members:
            member.start(",".join(f"{m.name}={m.peer}" for m in self.members))
        self.wait(lambda: all(member.has_leader() for member in self.members))

    def wait(self, condition):
        end = time.monotonic() + START_SECONDS
        while not condition():
            assert time.monotonic() < end, "the cluster has no leader"
            time.sleep(0.05)

    def obey(self, what):
        if what == "start all":
            self.start()
        elif what == "kill leader":
            next(member for member in self.members if member.is_leader()).kill()
        else:
            self.members[int(what.removeprefix("kill "))].kill()

    def kill(self):
        for member in self.members:
            member.kill()


@unittest.skipUnless(os.path.exists(PEER), "no real etcd was built")
class ThreeMembers(LiveTest):
    def check(self, name):
        cluster = Cluster(self.scratch)
        self.addCleanup(cluster.kill)
        cluster.start()
        driver = Driver(None, name, {"VIGIL_ENDPOINTS": cluster.url})
        driver.obey = cluster.obey
        self.assertEqual(driver.run(), (0, ""), name)

    def test_watches_survive_the_loss_of_members(self):
        self.check("watches_survive_the_loss_of_members")

    def test_watch_that_requires_a_leader_ends_without_one(self):
        self.check("watch_that_requires_a_leader_ends_without_one")


if __name__ == "__main__":
    unittest.main()
