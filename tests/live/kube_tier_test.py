#!/usr/bin/python3
"""vigil serve in front of a kube-apiserver that cannot be reached: its flags, its start, its directory, its own pages.
tests/kube/tier_test.py has a real one."""
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import time
import unittest

from server import SUBJECT, LiveTest, Server, free_port, only_vigil
from tier import Caller, Tier, write_kubeconfig


class Plain(Server):
    """Only with these arguments."""

    def command(self):
        return [self.binary, "serve", *self.args]


@only_vigil
class KubeTier(LiveTest):
    def setUp(self):
        super().setUp()
        self.nowhere = f"https://127.0.0.1:{free_port()}"

    def tier(self, **options):
        tier = Tier(self.scratch, self.nowhere, **options)
        self.addCleanup(tier.close)
        return tier

    def refused(self, *args, env=None):
        server = Plain(str(self.scratch / "data"), args=["--data-dir", str(self.scratch / "data"), *args], env=env)
        self.addCleanup(server.close)
        code, log = server.refuse()
        self.assertEqual(code, 1, log)
        return json.loads(log.splitlines()[-1])["error"]

    def test_it_serves_without_the_kube_apiserver(self):
        tier = self.tier()
        tier.start()
        caller = Caller(tier.port, token="someone")
        self.assertEqual(caller.get("/livez")[0], 200)
        # Nothing can be said about who the client is. No connection can be made, so no request waits ten seconds for an answer.
        paths = ("/api/v1/pods", "/api/v1/pods?watch=1", "/api/v1/namespaces/default/pods/a?resourceVersion=0", "/version")
        begin = time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(len(paths)) as pool:
            for path, (status, body) in zip(paths, pool.map(caller.get, paths)):
                self.assertEqual(status, 503, (path, body))
        self.assertLess(time.monotonic() - begin, 8)
        self.assertEqual(tier.own_page("/livez"), (200, "ok\n"))
        self.assertEqual(tier.own_page("/metrics")[0], 200)
        self.assertEqual(tier.metric("vigil_tier_watches_total"), 0)
        # etcd's API is not served.
        self.assertEqual(tier.own_page("/v3/kv/range")[0], 404)
        tier.stop()

    def test_metrics_are_well_formed_and_say_what_is_mirrored(self):
        tier = self.tier(args=["--upstream-resources=pods"])
        tier.start()
        names, kinds, page = set(), {}, tier.own_page("/metrics")[1]
        for line in page.splitlines():
            words = line.split(" ", 3)
            if words[:2] == ["#", "HELP"]:
                self.assertNotIn(words[2], names, "a family is there twice")
                self.assertTrue(words[3].endswith("."), line)
                names.add(words[2])
            elif words[:2] == ["#", "TYPE"]:
                kinds[words[2]] = words[3]
        for name, kind in kinds.items():
            if name.startswith("vigil_tier_"):
                self.assertEqual(kind == "counter", name.endswith("_total"), name)
        pods = 'group="",version="v1",resource="pods",encoding="json"'
        self.assertIn(f'vigil_tier_connected{{{pods}}} 0\n', page)
        self.assertIn(f'vigil_tier_lag_seconds{{{pods}}} NaN\n', page)
        self.assertIn(f'vigil_tier_age_seconds{{{pods}}} NaN\n', page)
        self.assertRegex(page, re.escape(f'vigil_tier_collection_info{{{pods},phase="starting",reason="'))
        # A turn of the mirror's thread is measured like those of others.
        self.assertGreater(tier.metric('vigil_turn_duration_seconds_count{thread="mirror"}'), 0)
        tier.stop()

    def doctor(self, tier):
        """The exit code, and the findings by what they are about: level, text, advice."""
        done = subprocess.run([SUBJECT, "doctor", "--endpoints", f"http://127.0.0.1:{tier.metrics_port}", "-w", "json"],
                              capture_output=True, env={**os.environ, "VIGIL_COMMAND_TIMEOUT": "60s", "VIGIL_DIAL_TIMEOUT": "60s"})
        found = {}
        for f in json.loads(done.stdout)["findings"]:
            found.setdefault(f["what"], []).append((f["level"], f["text"], f.get("advice", "")))
        return done.returncode, found

    def test_doctor_says_what_is_wrong(self):
        tier = self.tier(args=["--upstream-resources=pods"])
        tier.start()
        code, found = self.doctor(tier)
        self.assertEqual(code, 1, found)
        (level, text, _), = found["answer"]
        self.assertEqual(level, "bad")
        self.assertIn("it is not ready: [-]mirror failed: pods: ", text)
        (level, text, advice), *_ = found["mirror"]
        self.assertEqual(level, "warning")
        self.assertIn("the state of pods/v1 (json) is being read: ", text)
        self.assertIn("kube-apiserver runs", advice)
        for what in ("leader", "members", "alarm", "compaction", "size"):  # of a store
            self.assertNotIn(what, found)
        tier.stop()

    def test_top_shows_collections(self):
        tier = self.tier(args=["--upstream-resources=pods"])
        tier.start()
        command = [SUBJECT, "top", "--once", "--interval", "100ms", "--endpoints", f"http://127.0.0.1:{tier.metrics_port}"]
        environment = {**os.environ, "VIGIL_COMMAND_TIMEOUT": "60s", "VIGIL_DIAL_TIMEOUT": "60s"}
        text = subprocess.run(command, capture_output=True, check=True, env=environment).stdout.decode()
        self.assertRegex(text, r"^vigil top  [\d:]{8}  \S+  Vigil, in front of a kube-apiserver  up ")
        self.assertRegex(text, r"\nMirror    0 collections, 1 not complete, 0 refused; 0 objects, ")
        self.assertRegex(text, r"\nReviews   0.0/s, p99 -; 0 wait, 0 failed\n")
        self.assertRegex(text, r"\npods/v1 \(json\) +starting +0 +\S+ B +- +- !\n")
        self.assertTrue(all(len(line) <= 80 for line in text.splitlines()[1:]), text)
        report = json.loads(subprocess.run([*command, "-w", "json"], capture_output=True, check=True, env=environment).stdout)
        (collection,) = report["tier"]["collections"]
        self.assertEqual((collection["name"], collection["encoding"], collection["phase"]), ("pods/v1", "json", "starting"))
        self.assertNotIn("lag_s", collection)
        self.assertFalse(collection["connected"])
        self.assertGreater(report["tier"]["own_calls_per_s"] + report["memory_bytes"], 0)
        tier.stop()

    def test_it_is_not_ready_before_its_resources_are_mirrored(self):
        tier = self.tier(args=["--upstream-resources=pods"])
        tier.start()
        for status, text in (tier.own_page("/readyz"), Caller(tier.port).get("/readyz")):
            self.assertIn(status, (500, 503), text)
            self.assertIn("[-]mirror failed: ", text)
        self.assertEqual(Caller(tier.port).get("/livez")[0], 200)
        tier.stop()

    def test_the_directory_has_nothing_after_a_stop_and_is_private(self):
        tier = self.tier()
        data = pathlib.Path(tier.directory)
        for _ in range(2):
            tier.start()
            self.assertTrue((data / "mirror").is_dir())
            self.assertFalse((data / "kubeconfig").exists())
            self.assertEqual(data.stat().st_mode & 0o777, 0o700)
            tier.stop()
            self.assertFalse((data / "mirror").exists())
        tier.start()
        tier.kill()
        self.assertTrue((data / "mirror").exists())
        tier.start()
        tier.stop()

    def test_a_store_is_left_alone(self):
        store = self.server(self.scratch / "tier/data")
        (self.scratch / "tier").mkdir()
        store.start()
        store.stop()
        tier = self.tier()
        code, log = tier.refuse()
        self.assertEqual(code, 1)
        self.assertIn("the data directory of a server that stores data itself", log)
        store.start()
        store.stop()

    def test_an_address_in_use_ends_the_start(self):
        first = self.tier()
        first.start()
        second = Tier(self.scratch, self.nowhere, name="second")
        self.addCleanup(second.close)
        second.url = first.url
        code, log = second.refuse()
        self.assertEqual(code, 1)
        self.assertIn("in use", log)

    def test_one_sentence_reports_what_is_wrong(self):
        missing, unusable = self.scratch / "missing", self.scratch / "unusable"
        self.assertIn(str(missing), self.refused("--upstream-kubeconfig", str(missing)))
        unusable.write_text("apiVersion: v1\nkind: Config\n")
        self.assertIn(str(unusable), self.refused("--upstream-kubeconfig", str(unusable)))
        config = str(write_kubeconfig(self.scratch / "config", self.nowhere, token="t"))
        self.assertIn("--quota-backend-bytes cannot be used in front of a kube-apiserver",
                      self.refused("--upstream-kubeconfig", config, "--quota-backend-bytes=1"))
        self.assertIn("--listen-client-urls cannot be used",
                      self.refused("--upstream-kubeconfig", config, "--listen-client-urls=http://127.0.0.1:1"))
        self.assertIn("not a built-in resource", self.refused(
            "--upstream-kubeconfig", config, "--upstream-resources=widgets.example.com",
            f"--listen-kube-urls=http://127.0.0.1:{free_port()}"))
        self.assertIn("--upstream-kubeconfig is empty", self.refused("--upstream-kubeconfig="))
        self.assertIn("is empty", self.refused(env={"VIGIL_UPSTREAM_KUBECONFIG": ""}))
        self.assertIn("not a pod", self.refused("--upstream-in-cluster", env={"KUBERNETES_SERVICE_HOST": ""}))

    def test_variables_and_files_configure_it(self):
        config = write_kubeconfig(self.scratch / "config", self.nowhere, token="t")
        port = free_port()
        settings = self.scratch / "vigil.yaml"
        settings.write_text(f"data-dir: {self.scratch}/data\nupstream-kubeconfig: {config}\n"
                            f"listen-kube-urls: http://127.0.0.1:{port}\n")
        by_file = Plain(str(self.scratch / "data"), args=["--config-file", str(settings)])
        by_variables = Plain(str(self.scratch / "data"), env={
            "VIGIL_DATA_DIR": f"{self.scratch}/data", "VIGIL_UPSTREAM_KUBECONFIG": str(config),
            "VIGIL_LISTEN_KUBE_URLS": f"http://127.0.0.1:{port}"})
        for server in (by_file, by_variables):
            self.addCleanup(server.close)
            server.start()
            self.assert_logged(server, "starting in front of a kube-apiserver")
            self.assert_logged(server, self.nowhere)
            server.stop()

    def banner(self, tier, *args):
        """What an operator sees on a terminal when it serves."""
        terminal, its_end = os.openpty()
        process = subprocess.Popen([SUBJECT, "serve", "--data-dir", tier.directory, f"--upstream-kubeconfig={tier.kubeconfig}",
                                    *args], stderr=its_end, start_new_session=True)
        os.close(its_end)
        text = b""
        try:
            while b"Ctrl-C stops" not in text:
                text += os.read(terminal, 4096)  # fails when the process has ended
        finally:
            process.terminate()
            process.wait()
            os.close(terminal)
        return text.decode().replace("\r\n", "\n")

    def test_the_banner_says_how_to_use_it(self):
        tier = self.tier()
        plain = f"http://127.0.0.1:{tier.port}"
        text = self.banner(tier, f"--listen-kube-urls={plain}")
        self.assertIn(f"is ready in front of the kube-apiserver {self.nowhere}.\n", text)
        self.assertIn(f"  Kubernetes   {plain}\n", text)
        self.assertIn(f"    curl -H 'Authorization: Bearer TOKEN' {plain}/api/v1/pods\n", text)
        text = self.banner(tier, f"--listen-kube-urls={tier.url}", "--auto-tls")
        self.assertIn(f"    kubectl --server {tier.url} --certificate-authority {tier.directory}/fixtures/client/cert.pem "
                      "--token TOKEN get pods\n", text)
        text = self.banner(tier, f"--listen-kube-urls=unix://{tier.directory}.sock")
        self.assertIn(f"--unix-socket {tier.directory}.sock http://localhost/api/v1/pods\n", text)


if __name__ == "__main__":
    unittest.main()
