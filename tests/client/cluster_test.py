#!/usr/bin/python3
"""libvigil with members of a real etcd, which fail while watches run."""
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "live"))
from server import LiveTest  # noqa: E402
from targets import ETCD_34, ETCD_37, Target, VigilMember, etcd, run_test, tests_of  # noqa: E402


SMALL = ["--quota-backend-bytes", str(16 << 20)]  # a test fills it


def check(test, name, target):
    test.addCleanup(target.close)
    env = {"VIGIL_ENDPOINTS": target.endpoints, "VIGIL_DIRECT": target.endpoints}
    test.assertEqual(run_test(name, target.obey, env), (0, ""), name)


class ThreeMembers(LiveTest):
    def run_one(self, name):
        check(self, name, etcd(self.scratch, ETCD_37, members=3, args=SMALL))

    def leave(self, binary):
        """The first endpoint is a member whose neighbours are gone; the second one is another etcd, which is healthy."""
        lonely = etcd(self.scratch / "lonely", binary, members=3)
        healthy = etcd(self.scratch / "healthy", binary)
        self.addCleanup(lonely.close)
        self.addCleanup(healthy.close)
        for member in lonely.members[1:]:
            member.kill()
        lonely.await_loss(lonely.members[0])
        env = {"VIGIL_ENDPOINTS": f"{lonely.members[0].url},{healthy.endpoints}", "VIGIL_DIRECT": healthy.endpoints}
        name = "calls_leave_a_member_without_a_quorum"
        self.assertEqual(run_test(name, healthy.obey, env), (0, ""), name)

    def test_calls_leave_a_member_without_a_quorum(self):
        self.leave(ETCD_37)

    def test_calls_leave_a_member_of_etcd_34_without_a_quorum(self):
        self.leave(ETCD_34)


class OneMember(LiveTest):
    def test_watches_survive_a_full_disk_of_vigil(self):
        check(self, "watches_survive_a_full_disk", Target([VigilMember(self.scratch / "data", SMALL)]))

    def test_watches_survive_a_full_disk_of_etcd_34(self):
        check(self, "watches_survive_a_full_disk", etcd(self.scratch, ETCD_34, args=SMALL))


for test in tests_of("cluster"):
    if not hasattr(ThreeMembers, f"test_{test}"):
        setattr(ThreeMembers, f"test_{test}", lambda self, name=test: self.run_one(name))

if __name__ == "__main__":
    unittest.main()
