#!/usr/bin/python3
"""Memory that clients have made the server take is returned to the system when they have gone, and never was more than
--max-client-bytes; also where the address space is small. For the release build: the address sanitizer has an allocator of its
own, which returns nothing and reserves terabytes."""
import resource
import time
import unittest

from memory_test import MIB, SANITIZED, Attacked, http_request, metric
from server import WAIT_SECONDS

LEFT_KB = 8 << 10  # what a server takes after its first requests, and what is in use in the heaps of its threads


@unittest.skipIf(SANITIZED, "the sanitizer has an allocator of its own: see make hardening")
class Returned(Attacked):
    budget = 64 * MIB
    args = ["--max-client-bytes", str(budget), "--io-threads", "4"]

    def unfinished_bodies(self):
        """More than the budget, in bodies that do not end."""
        request = http_request("POST", "/api/v1/namespaces/default/configmaps", b'{"data":{"a":"' + b"x" * (2900 << 10))
        for _ in range(60):
            self.hoard.http(request[:-1], self.kube_port)

    def check_returned(self, attack, refused=True):
        self.watch_over()
        attack()
        self.check(refused)  # what was held, and what was resident at most; closes all connections
        most = self.fresh_kb + (self.budget >> 10) // 16 + LEFT_KB
        end = time.monotonic() + WAIT_SECONDS
        while self.vigil.anonymous_kb() > most:
            self.assertLess(time.monotonic(), end, f"{self.vigil.anonymous_kb()} KB are still resident, not {most}")
            time.sleep(0.1)

    def test_memory_is_returned_after_every_kind_of_burst(self):
        self.begin("--enable-v2")
        self.store_large_objects()
        self.fresh_kb = self.vigil.anonymous_kb()
        self.check_returned(self.unfinished_bodies)
        self.check_returned(self.attack_kubernetes, refused=False)
        self.check_returned(self.attack_gateway_and_v2, refused=False)
        self.check_returned(self.attack_grpc, refused=False)
        self.check_returned(self.attack_with_lists, refused=False)


@unittest.skipIf(SANITIZED, "the sanitizer reserves terabytes of address space: see make hardening")
class InAddressSpace(Attacked):
    """As docs/operating.md says: 640 MB for up to four I/O threads and little data."""
    limit = 640 * MIB
    budget = limit // 4  # the server's default
    args = ["--io-threads", "4"]

    def test_server_survives_all_attacks_in_a_small_address_space(self):
        self.begin("--enable-v2", limits=lambda: resource.setrlimit(resource.RLIMIT_AS, (self.limit, self.limit)))
        self.assertEqual(metric(self.vigil, "vigil_client_held_bytes_max"), self.budget)
        self.store_large_objects()
        self.watch_over()
        for attack in (self.attack_grpc, self.attack_gateway_and_v2, self.attack_kubernetes, self.attack_with_lists):
            attack()
            self.assertTrue(self.vigil.alive(), self.vigil.log)
        self.check(refused=False)
        self.assertTrue(self.vigil.alive())


if __name__ == "__main__":
    unittest.main()
