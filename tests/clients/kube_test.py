#!/usr/bin/python3
"""Kubernetes' clients in other languages, installed by tools/build-clients, follow changes of objects through cut connections,
restarts and compactions: raw watches report every change once, and informers match the store at the end."""
import json
import os
import pathlib
import random
import signal
import socket
import subprocess
import sys
import threading
import time
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "live"))
from kube import KubeServer  # noqa: E402
from server import ROOT, LiveTest  # noqa: E402

CLIENTS = ROOT / "build/clients"
SECONDS_MAX = 120
ENOUGH_SECONDS = 15  # after this time, fewer cuts suffice on a slow machine
CUTS_MIN = 3  # the minimum of cuts on any machine
CHANGES = 300
OBJECTS = 10
PACE_SECONDS = 0.005  # between changes, so that connections are cut meanwhile


class Proxy:
    """Cuts each connection after a random number of bytes from the server."""

    def __init__(self, to, budget):
        self.to, self.budget, self.cuts, self.open = to, budget, 0, set()
        self.random, self.lock = random.Random(3), threading.Lock()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._carry, args=(client,), daemon=True).start()

    def _carry(self, client):
        try:
            server = socket.create_connection(("127.0.0.1", self.to))
        except OSError:
            client.close()
            return
        with self.lock:
            self.open |= {client, server}
            left = self.random.randrange(2 * self.budget) if self.budget else 1 << 62
        upwards = threading.Thread(target=self._pass, args=(client, server, 1 << 62), daemon=True)
        upwards.start()
        self._pass(server, client, left)
        upwards.join()
        with self.lock:
            self.open -= {client, server}
            self.cuts += 1
        client.close()
        server.close()

    @staticmethod
    def _pass(source, sink, left):
        try:
            while left and (data := source.recv(min(left, 65536))):
                sink.sendall(data)
                left -= len(data)
        except OSError:
            pass
        for side in (source, sink):
            try:
                side.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def cut_all(self):
        with self.lock:
            for side in self.open:
                try:
                    side.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass

    def settle(self):
        self.budget = 0
        self.cut_all()

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.cut_all()


class Follower:
    """The client's process and its output."""

    def __init__(self, command, url, mode, version):
        self.changes, self.views, self.errors, self.last = [], [], [], version
        self.received = threading.Condition()
        self.process = subprocess.Popen([*command, url, mode, str(version)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                        start_new_session=True,
                                        env=dict(os.environ, CLIENTS=str(CLIENTS), NODE_NO_WARNINGS="1"))
        self.messages = []
        self.threads = [threading.Thread(target=work, daemon=True)
                        for work in (self._listen, lambda: self.messages.extend(self.process.stderr))]
        for thread in self.threads:
            thread.start()

    def _listen(self):
        for line in self.process.stdout:
            message = json.loads(line)
            with self.received:
                if "view" in message:
                    self.views.append(message["view"])
                elif "error" in message:
                    self.errors.append(message["error"])
                else:
                    self.changes.append((message["type"], message["name"], message["version"]))
                    self.last = message["version"]
                self.received.notify_all()
        with self.received:
            self.errors.append("the client has ended")
            self.received.notify_all()

    def wait(self, what):
        with self.received:
            done = self.received.wait_for(lambda: self.errors or what(), SECONDS_MAX)
        assert done and not self.errors, (self.errors, self.changes[-3:], self.messages[-20:])

    def view(self):
        count = len(self.views)
        self.process.stdin.write("view\n")
        self.process.stdin.flush()
        self.wait(lambda: len(self.views) > count)
        return self.views[-1]

    def end(self):
        os.killpg(self.process.pid, signal.SIGKILL)  # Node is the child of a program that starts it
        self.process.wait()
        for thread in self.threads:
            thread.join()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            pipe.close()


class Clients:
    command = []

    def begin(self, mode, budget):
        self.server = KubeServer(self.scratch / "data").start()
        self.addCleanup(self.server.stop)
        self.addCleanup(self.server.close)
        self.proxy = Proxy(self.server.kube_port, budget)
        self.addCleanup(self.proxy.close)
        self.history, self.there, self.random = [], {}, random.Random(4)
        self.first = self.compacted = self.put("before")
        self.history.clear()
        self.follower = Follower(self.command, self.proxy.url, mode, self.first)
        self.addCleanup(self.follower.end)

    def put(self, name):
        version = self.server.put("configmaps", name, kind="ConfigMap", data={"k": "v" * 50})
        self.history.append(("MODIFIED" if name in self.there else "ADDED", name, version))
        self.there[name] = version
        return version

    def step(self):
        name = f"c{self.random.randrange(OBJECTS)}"
        if name in self.there and self.random.randrange(4) == 0:
            del self.there[name]
            self.history.append(("DELETED", name, self.server.delete("configmaps", name)))
        else:
            self.put(name)
        time.sleep(PACE_SECONDS)

    def compact(self, revision):
        if revision > self.compacted:
            self.server.compact(revision)
            self.compacted = revision

    def restart(self, end):
        self.server.store.close()
        end()
        self.server.start()

    def change_with_faults(self, cuts, compact):
        begun, i = time.monotonic(), 0
        while i < CHANGES or self.proxy.cuts < CUTS_MIN or (
                self.proxy.cuts < cuts and time.monotonic() - begun < ENOUGH_SECONDS):
            self.assertLess(time.monotonic() - begun, 10 * SECONDS_MAX, f"only {self.proxy.cuts} connections were cut")
            self.step()
            if i == CHANGES // 3:
                self.restart(self.server.stop)
            elif i == CHANGES * 2 // 3:
                self.restart(self.server.kill)
            if i % (CHANGES // 4) == 50:
                compact()
            i += 1
        self.proxy.settle()
        self.put("last")

    def test_raw_watch_reports_every_change_once(self):
        self.begin("raw", 1500)
        self.change_with_faults(40, lambda: self.compact(self.follower.last))
        self.follower.wait(lambda: self.follower.changes[-1:] == self.history[-1:])
        self.assertEqual(self.follower.changes, self.history)

    def test_informer_matches_the_store(self):
        def forget():
            self.proxy.cut_all()
            self.step()
            self.compact(self.history[-1][2])

        self.begin("informer", 5000)
        self.change_with_faults(8, forget)
        self.follower.wait(lambda: ("ADDED", "last", self.history[-1][2]) in self.follower.changes)
        self.assertEqual(self.follower.view(), self.there)
        versions, there = {}, set()
        for kind, name, version in self.follower.changes:
            with self.subTest(change=(kind, name, version)):
                self.assertEqual(name in there, kind != "ADDED")
                self.assertGreater(version + (kind == "DELETED"), versions.get(name, 0))
            versions[name] = version
            (there.discard if kind == "DELETED" else there.add)(name)
        self.assertEqual({name: versions[name] for name in there}, self.there)


class Python(Clients, LiveTest):
    command = [str(CLIENTS / "python/bin/python"), str(HERE / "kube_python.py")]


class Node(Clients, LiveTest):
    command = [str(CLIENTS / "python/bin/node"), str(HERE / "kube_node.js")]


if __name__ == "__main__":
    unittest.main()
