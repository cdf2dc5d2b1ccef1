#!/usr/bin/python3
"""Runs every program for libvigil in examples/ against a server."""
import base64
import json
import unittest
import urllib.request

from examples import ExampleTest, example_names
from targets import check_snapshot


class Examples(ExampleTest):
    def setUp(self):
        super().setUp()
        self.vigil = self.serving()

    def call(self, path, **fields):
        """Sends a request to the gateway. Keys and values are given as texts."""
        body = {name: base64.b64encode(text.encode()).decode() for name, text in fields.items()}
        with urllib.request.urlopen(f"{self.vigil.url}/v3/kv/{path}", json.dumps(body).encode(), 30) as answer:
            return json.load(answer)

    def begin(self, program, *arguments):
        return super().begin(program, self.vigil.url, *arguments)

    def test_watch(self):
        watch = self.begin(self.build("watch"), "k")
        self.assertRegex(watch.stdout.readline(), r"^watching from revision \d+$")
        self.call("put", key="k1", value="v1")
        self.assertRegex(watch.stdout.readline(), r"^put k1 = v1 \(revision \d+\)$")
        self.vigil.stop()
        self.vigil.start()
        self.call("deleterange", key="k1")
        self.assertRegex(watch.stdout.readline(), r"^delete k1 \(revision \d+\)$")
        self.end(watch)

    def test_reload(self):
        self.call("put", key="config/a", value="1")
        reload = self.begin(self.build("reload"), "config/")
        self.assertEqual(reload.stdout.readline(), "config/a = 1\n")
        self.call("put", key="config/b", value="2")
        self.assertEqual(reload.stdout.readline(), "config/b = 2\n")
        self.call("deleterange", key="config/a")
        self.assertEqual(reload.stdout.readline(), "config/a is gone\n")
        self.end(reload)

    def test_objects(self):
        self.call("put", key="backends/a", value="10.0.0.1 10")
        self.call("put", key="backends/b", value="10.0.0.2 1")
        objects = self.begin(self.build("objects"), "backends/", "5")
        self.assertEqual(objects.stdout.readline(), "added backends/a: 10.0.0.1, weight 10\n")
        self.assertEqual(objects.stdout.readline(), "these are all\n")
        self.call("put", key="backends/b", value="10.0.0.2 5")
        self.assertEqual(objects.stdout.readline(), "added backends/b: 10.0.0.2, weight 5\n")
        self.call("put", key="backends/b", value="10.0.0.2 6")
        self.assertEqual(objects.stdout.readline(), "modified backends/b: 10.0.0.2, weight 6\n")
        self.call("put", key="backends/b", value="10.0.0.2 2")
        self.assertEqual(objects.stdout.readline(), "deleted backends/b: 10.0.0.2, weight 6\n")
        self.call("deleterange", key="backends/a")
        self.assertEqual(objects.stdout.readline(), "deleted backends/a: 10.0.0.1, weight 10\n")
        self.call("put", key="backends/c", value="nonsense")
        self.assertEqual(objects.wait(60), 0)
        self.assertEqual(objects.stderr.read(), "Internal error occurred: backends/c is not a backend\n")

    def test_registry(self):
        program = self.build("registry")
        first = self.begin(program, "web", "10.0.0.1:80")
        self.assertEqual(first.stdout.readline(), "up services/web/10.0.0.1:80\n")
        second = self.begin(program, "web", "10.0.0.2:80")
        self.assertEqual(first.stdout.readline(), "up services/web/10.0.0.2:80\n")
        self.assertEqual(second.stdout.readline(), "up services/web/10.0.0.1:80\n")  # it was there before
        self.assertEqual(second.stdout.readline(), "up services/web/10.0.0.2:80\n")
        self.end(second)
        self.assertEqual(first.stdout.readline(), "down services/web/10.0.0.2:80\n")
        self.end(first)

    def test_elect(self):
        program = self.build("elect")
        first = self.begin(program, "one")
        self.assertEqual(first.stdout.readline(), "one is the leader\n")
        second = self.begin(program, "two")
        self.end(first)
        self.assertEqual(second.stdout.readline(), "two is the leader\n")
        self.end(second)

    def test_backup(self):
        self.call("put", key="k", value="v")
        program = self.build("backup")
        backup = self.begin(program, str(self.scratch / "saved"))
        self.assertRegex(backup.stdout.read(), r"/saved has \d+ bytes$")
        self.assertEqual((backup.wait(60), backup.stderr.read()), (0, ""))
        check_snapshot(str(self.scratch / "saved"), keys=1)
        backup = self.begin(program, "/dev/full/saved")
        self.assertEqual(backup.wait(60), 1)

    def test_loop_epoll(self):
        loop = self.begin(self.build("loop_epoll"), "key")
        self.assertEqual(loop.stdout.readline(), "ready\n")
        revision = self.call("put", key="key", value="v")["header"]["revision"]
        self.assertEqual(loop.stdout.readline(), f"revision {revision}\n")
        loop.stdin.close()
        self.assertEqual(loop.wait(60), 0)

    def test_queue(self):
        queue = self.begin(self.build("queue"), "config/")
        self.assertEqual(queue.stdout.readline(), "watching\n")
        queue.stdin.write("config/color red\n")
        queue.stdin.flush()
        lines = sorted(queue.stdout.readline() for _ in range(2))  # in any order
        self.assertEqual(lines[0], "put config/color\n")
        self.assertRegex(lines[1], r"^stored at revision \d+$")
        self.call("deleterange", key="config/color")
        self.assertEqual(queue.stdout.readline(), "delete config/color\n")
        queue.stdin.close()
        self.assertEqual(queue.stdout.read(), "the watch has ended: the client was shut down\n")
        self.assertEqual(queue.wait(60), 0)

    def test_loop_uv(self):
        loop = self.begin(self.build("loop_uv", "-luv"), "key", "value")
        self.assertRegex(loop.stdout.readline(), r"^revision \d+$")
        self.assertEqual(loop.wait(60), 0)

    def test_every_example_has_a_test(self):
        self.assertEqual(self.names_of_tests(), example_names(for_kube=False))


if __name__ == "__main__":
    unittest.main()
