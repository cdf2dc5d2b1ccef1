#!/usr/bin/python3
"""Kubernetes reads: discovery, lists, watches and tables."""
import json
import re
import shutil
import socket
import subprocess
import tempfile
import time
import unittest

from kube import KubeServer, in_background, names, summary, thing
from server import WAIT_SECONDS, LiveTest, Server

ALL = "/api/v1/pods"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


class Defaults(Server):
    """A server with the default addresses for Kubernetes' API."""

    def command(self):
        return [word for word in super().command() if word != "--listen-kube-urls="]


class Kube(LiveTest):
    """Tests that need no special server share one, and each test has its own namespace."""
    shared = None

    def setUp(self):
        super().setUp()
        self.namespace = self._testMethodName[5:40].replace("_", "-").strip("-")
        self.path = f"/api/v1/namespaces/{self.namespace}"
        self.pods = f"{self.path}/pods"

    @classmethod
    def tearDownClass(cls):
        if cls.shared:
            cls.shared.stop()
            shutil.rmtree(cls.shared.directory, ignore_errors=True)
            cls.shared = None

    def serving(self):
        if not type(self).shared:
            type(self).shared = KubeServer(tempfile.mkdtemp(prefix="vigil-live-"))
            type(self).shared.start()
        self.addCleanup(self.shared.close)
        self.shared.namespace = self.namespace
        return self.shared

    def serve(self, *args, name="data"):
        server = KubeServer(self.scratch / name, args)
        self.addCleanup(server.kill)
        self.addCleanup(server.close)
        server.start()
        server.namespace = self.namespace
        return server


class Pages(Kube):
    def test_version_health_and_paths_are_served(self):
        server = self.serving()
        code, _, version = server.get("/version")
        self.assertEqual((code, version["major"]), (200, "1"))
        self.assertTrue(version["gitVersion"].startswith("v1."))
        for path in ("/healthz", "/livez", "/readyz"):
            self.assertEqual(server.get(path)[::2], (200, b"ok"))
        self.assertIn(b"passed", server.get("/readyz?verbose")[2])
        self.assertIn("/apis", server.get("/")[2]["paths"])
        self.assertIn(b"etcd_server_has_leader", server.get("/metrics")[2])
        self.assertEqual(server.get("/nowhere")[0], 404)

    def test_health_checks_have_kubernetes_names(self):
        server = self.serving()
        wanted = {"ping", "log", "etcd", "poststarthook/rbac/bootstrap-roles", "poststarthook/crd-informer-synced",
                  "poststarthook/scheduling/bootstrap-system-priority-classes"}
        for page, more in (("healthz", set()), ("livez", set()), ("readyz", {"informer-sync", "shutdown"})):
            *lines, last = server.get(f"/{page}?x=1&verbose")[2].decode().splitlines()
            self.assertEqual(last, f"{page} check passed")
            checks = {re.fullmatch(r"\[\+\](\S+) ok", line)[1] for line in lines}
            self.assertLessEqual(wanted | more, checks)
            for name in checks:
                self.assertEqual(server.get(f"/{page}/{name}")[::2], (200, b"ok"), name)
            text = server.get(f"/{page}?verbose&exclude=etcd&exclude=none")[2].decode()
            self.assertIn("[+]etcd excluded: ok\n", text)
            self.assertIn('warn: some health checks cannot be excluded: no matches for "none"\n', text)
        self.assertEqual(server.get("/livez/shutdown")[0], 404, "is a check of /readyz alone")
        self.assertEqual(server.get("/readyz/nothing")[0], 404)

    def test_requests_of_browser_pages_are_refused(self):
        server = self.serving()
        self.assertEqual(server.get("/api", host="evil.example")[0], 403)
        self.assertEqual(server.get("/api", {"Origin": "http://evil.example"})[0], 403)
        self.assertEqual(server.get("/api", host="localhost:1")[0], 200)

    def test_both_forms_of_discovery_list_the_same(self):
        server = self.serving()
        new = {"Accept": "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"}
        self.assertEqual(server.get("/api")[2]["versions"], ["v1"])
        groups = {g["name"]: g for g in server.get("/apis")[2]["groups"]}
        self.assertEqual(groups["apps"]["preferredVersion"]["groupVersion"], "apps/v1")
        code, headers, all_new = server.get("/apis", new)
        self.assertIn("APIGroupDiscoveryList", headers["Content-Type"])
        self.assertEqual({g["metadata"]["name"] for g in all_new["items"]}, set(groups))
        for group in all_new["items"]:
            for version in group["versions"]:
                path = f"/apis/{group['metadata']['name']}/{version['version']}"
                old = {r["name"] for r in server.get(path)[2]["resources"]}
                now = {r["resource"] for r in version["resources"]}
                now |= {f"{r['resource']}/{s['subresource']}" for r in version["resources"]
                        for s in r.get("subresources", [])}
                self.assertEqual(old, now)
        self.assertEqual(server.get("/apis/apps")[2]["kind"], "APIGroup")
        self.assertEqual(server.get("/apis/nothing")[0], 404)
        self.assertEqual(server.get("/apis/apps/v9")[0], 404)

    def test_default_address_in_use_is_skipped_but_a_chosen_one_is_an_error(self):
        with socket.socket() as taken:
            taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                taken.bind(("127.0.0.1", 8001))
                taken.listen()
            except OSError:
                pass  # another process has the address, which is just as good
            stale = self.scratch / "default" / "kubeconfig"
            default = Defaults(self.scratch / "default").start()
            self.addCleanup(default.kill)
            self.assert_logged(default, "the Kubernetes API is not served")
            default.stop()
            stale.write_text("")  # as if an earlier start had the address, on which another process listens now
            default.start()
            self.assertFalse(stale.exists())
            default.stop()
            code, log = Server(self.scratch / "chosen", ["--listen-kube-urls", "http://127.0.0.1:8001"]).refuse()
            self.assertEqual(code, 1)
            self.assertIn("address already in use", log)

    def test_other_addresses_than_loopback_need_authentication(self):
        code, log = Server(self.scratch / "open", ["--listen-kube-urls", "http://0.0.0.0:0"]).refuse()
        self.assertEqual(code, 1)
        self.assertIn("let everyone in", log)


class Lists(Kube):
    def test_all_pages_of_a_list_have_one_revision(self):
        server = self.serving()
        for name in "abcde":
            last = server.put("pods", name)
        server.put("pods", "other", "elsewhere")
        page = server.list(self.pods, limit=2)
        self.assertEqual(names(page), ["a", "b"])
        self.assertEqual(page["metadata"]["remainingItemCount"], 3)
        self.assertEqual(page["metadata"]["resourceVersion"], str(last + 1))
        server.put("pods", "cc")
        second = server.list(self.pods, limit=2, **{"continue": page["metadata"]["continue"]})
        self.assertEqual(names(second), ["c", "d"])
        self.assertEqual(second["metadata"]["resourceVersion"], str(last + 1))
        third = server.list(self.pods, limit=2, **{"continue": second["metadata"]["continue"]})
        self.assertEqual(names(third), ["e"])
        self.assertNotIn("continue", third["metadata"])
        self.assertNotIn("kind", third["items"][0])

    def test_expired_continue_token_is_refused_with_a_new_one(self):
        server = self.serving()
        for name in "abc":
            server.put("pods", name)
        page = server.list(self.pods, limit=1)
        server.compact(server.put("pods", "bb"))
        code, _, status = server.get(self.pods, limit=1, **{"continue": page["metadata"]["continue"]})
        self.assertEqual((code, status["reason"]), (410, "Expired"))
        self.assertIn("too old to display a consistent list", status["message"])
        rest = server.list(self.pods, **{"continue": status["metadata"]["continue"]})
        self.assertEqual(names(rest), ["b", "bb", "c"])

    def test_selectors_with_a_limit_give_full_pages(self):
        server = self.serving()
        for i in range(20):
            server.put("pods", f"p{i:02}", labels={"odd": str(i % 2)}, spec={"nodeName": f"n{i % 4}"})
        page = server.list(self.pods, limit=3, labelSelector="odd=1")
        self.assertEqual(names(page), ["p01", "p03", "p05"])
        self.assertNotIn("remainingItemCount", page["metadata"])
        rest = server.list(self.pods, labelSelector="odd=1", **{"continue": page["metadata"]["continue"]})
        self.assertEqual(len(rest["items"]), 7)
        self.assertEqual(len(server.list(self.pods, fieldSelector="spec.nodeName=n2")["items"]), 5)
        self.assertEqual(names(server.list(ALL, fieldSelector=f"metadata.name=p03,metadata.namespace={self.namespace}")), ["p03"])
        self.assertEqual(names(server.list(self.pods, labelSelector="odd=2")), [])

    def test_resource_versions_mean_the_same_as_in_kubernetes(self):
        server = self.serving()
        first = server.put("pods", "a")
        server.put("pods", "b")
        last = server.put("pods", "c")
        for query, expected in (
                ({}, "abc"), ({"resourceVersion": 0}, "abc"), ({"resourceVersion": 0, "limit": 1}, "abc"),
                ({"resourceVersion": first}, "abc"), ({"resourceVersion": last}, "abc"),
                ({"resourceVersion": first, "limit": 5}, "a"),
                ({"resourceVersion": first, "resourceVersionMatch": "NotOlderThan", "limit": 1}, "a"),
                ({"resourceVersion": first, "resourceVersionMatch": "NotOlderThan"}, "abc"),
                ({"resourceVersion": first + 1, "resourceVersionMatch": "Exact"}, "ab")):
            with self.subTest(query=query):
                answer = server.list(self.pods, **query)
                self.assertEqual(names(answer), list(expected))
                exact = "Exact" in str(query) or query.get("limit") == 5
                self.assertEqual(answer["metadata"]["resourceVersion"],
                                 str(query["resourceVersion"] if exact else last))
        server.compact(last)
        for query, code, reason in (
                ({"resourceVersion": first, "resourceVersionMatch": "Exact"}, 410, "Expired"),
                ({"resourceVersion": "x"}, 400, "BadRequest"),
                ({"resourceVersionMatch": "Exact"}, 422, "Invalid"),
                ({"resourceVersionMatch": "Exact", "resourceVersion": 0}, 422, "Invalid"),
                ({"sendInitialEvents": "true"}, 422, "Invalid"),
                ({"continue": "x"}, 400, "BadRequest"),
                ({"continue": "e30"}, 400, "BadRequest"),
                ({"labelSelector": "a=="}, 200, None),
                ({"labelSelector": "a in"}, 400, "BadRequest"),
                ({"fieldSelector": "spec.x=1"}, 400, "BadRequest"),
                ({"resourceVersion": last + 100}, 504, "Timeout")):
            with self.subTest(query=query):
                answer = server.get(self.pods, **query)
                self.assertEqual((answer[0], answer[2].get("reason")), (code, reason))

    def test_list_waits_for_a_revision_that_comes_soon(self):
        server = self.serving()
        revision = server.put("pods", "a")
        watch = server.watch(self.pods, resourceVersion=revision)
        thread = in_background(lambda: (time.sleep(0.3), server.put("pods", "b")))
        self.assertEqual(names(server.list(self.pods, resourceVersion=revision + 1)), ["a", "b"])
        thread.join()
        self.assertEqual(summary(watch.next()), ("ADDED", "b", revision + 1))

    def test_long_list_is_complete_and_not_buffered(self):
        server = self.serve("--io-threads", "1")
        filler = "x" * 4000
        server.put_many("configmaps", {f"c{i:05}": {"kind": "ConfigMap", "labels": {"last": str(i % 1000 == 999)},
                                                    "data": {"k": filler}} for i in range(3000)})
        before = server.anonymous_kb()
        path = f"{self.path}/configmaps"
        answer = server.list(path)
        self.assertEqual(names(answer), [f"c{i:05}" for i in range(3000)])
        self.assertEqual(names(server.list(path, labelSelector="last=True")), ["c00999", "c01999", "c02999"])
        table = server.get(path, {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"})[2]
        self.assertEqual(len(table["rows"]), 3000)
        self.assertLess(server.anonymous_kb() - before, 8 * 1024)
        server.stop()

    def test_undecodable_value_is_an_error_or_skipped_in_lists(self):
        server = self.serve()
        server.put("pods", "a")
        server.put_raw(f"/registry/pods/{self.namespace}/bad", b"\x00\x01")
        code, _, status = server.get(self.pods)
        self.assertEqual((code, status["reason"]), (500, "StorageReadError"))
        server.stop()
        lenient = self.serve("--kube-undecodable", "skip")
        self.assertEqual(names(lenient.list(self.pods)), ["a"])
        lenient.stop()


class Shapes(Kube):
    def test_tables_have_the_columns_of_their_kind(self):
        server = self.serving()
        accept = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"}
        server.put("pods", "a", spec={"containers": [{"name": "x"}, {"name": "y"}]},
                   status={"phase": "Running", "containerStatuses": [
                       {"name": "x", "ready": True, "restartCount": 3, "state": {"running": {}}},
                       {"name": "y", "ready": False, "restartCount": 1, "state": {"waiting": {"reason": "Sad"}}}]})
        table = server.get(self.pods, accept)[2]
        columns = [column["name"] for column in table["columnDefinitions"]]
        self.assertEqual(columns[:5], ["Name", "Ready", "Status", "Restarts", "Age"])
        self.assertEqual(table["rows"][0]["cells"][:4], ["a", "1/2", "Sad", "4"])
        self.assertEqual(table["rows"][0]["object"]["kind"], "PartialObjectMetadata")
        one = server.get(f"{self.pods}/a", accept)[2]
        self.assertEqual(len(one["rows"]), 1)
        whole = server.get(self.pods, accept, includeObject="Object")[2]
        self.assertEqual(whole["rows"][0]["object"]["kind"], "Pod")
        self.assertIsNone(server.get(self.pods, accept, includeObject="None")[2]["rows"][0]["object"])

    def test_partial_metadata_omits_everything_else(self):
        server = self.serving()
        revision = server.put("pods", "a", labels={"k": "v"}, spec={"nodeName": "n"})
        accept = {"Accept": "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"}
        item = server.get(self.pods, accept)[2]["items"][0]
        self.assertEqual(set(item), {"metadata"})
        self.assertEqual(item["metadata"]["resourceVersion"], str(revision))
        self.assertEqual(item["metadata"]["labels"], {"k": "v"})
        one = server.get(f"{self.pods}/a", {"Accept": "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"})[2]
        self.assertEqual(one["kind"], "PartialObjectMetadata")
        self.assertNotIn("spec", one)

    def test_long_answers_are_compressed_and_curl_gets_indented_json(self):
        server = self.serving()
        server.put("configmaps", "c", kind="ConfigMap", data={"k": "x" * 200000})
        path = f"{server.kube_url}{self.path}/configmaps/c"
        shown = subprocess.run(["curl", "-sS", "--compressed", "-D-", "-o", "/dev/null", path], check=True,
                               capture_output=True, text=True).stdout
        self.assertIn("content-encoding: gzip", shown.lower())
        text = subprocess.run(["curl", "-sS", "--compressed", path], check=True, capture_output=True,
                              text=True).stdout
        self.assertTrue(text.startswith('{\n  "kind": "ConfigMap",\n'))
        self.assertEqual(len(json.loads(text)["data"]["k"]), 200000)


class Watches(Kube):
    def test_existing_objects_come_first_and_no_event_is_missed(self):
        server = self.serving()
        revisions = [server.put("pods", name) for name in "ab"]
        watch = server.watch(self.pods, allowWatchBookmarks="true")
        self.assertEqual([summary(e) for e in watch.take(2)],
                         [("ADDED", "a", revisions[0]), ("ADDED", "b", revisions[1])])
        mark = watch.next()
        self.assertEqual(summary(mark), ("BOOKMARK", None, revisions[1]))
        self.assertEqual(mark["object"]["metadata"]["annotations"], {"k8s.io/initial-events-end": "true"})
        changed = server.put("pods", "a", labels={"x": "y"})
        gone = server.delete("pods", "b")
        self.assertEqual([summary(e) for e in watch.take(2)], [("MODIFIED", "a", changed), ("DELETED", "b", gone)])

    def test_event_type_depends_on_the_selector_before_and_after(self):
        server = self.serving()
        start = server.put("pods", "none")
        watch = server.watch(self.pods, resourceVersion=start, labelSelector="app=x")
        steps = [("a", {"app": "x"}, "ADDED"), ("b", {"app": "y"}, None), ("a", {"app": "x", "n": "1"}, "MODIFIED"),
                 ("b", {"app": "x"}, "ADDED"), ("a", {"app": "y"}, "DELETED"), ("a", {"app": "z"}, None)]
        expected = []
        for name, labels, kind in steps:
            revision = server.put("pods", name, labels=labels)
            if kind:
                expected.append((kind, name, revision))
        server.delete("pods", "a")
        expected.append(("DELETED", "b", server.delete("pods", "b")))
        events = watch.take(len(expected))
        self.assertEqual([summary(e) for e in events], expected)
        self.assertEqual(events[3]["object"]["metadata"]["labels"], {"app": "x", "n": "1"})

    def test_watch_by_an_indexed_field(self):
        server = self.serving()
        start = server.put("pods", "none")
        watch = server.watch(ALL, resourceVersion=start, fieldSelector="spec.nodeName=n1")
        free = server.watch(ALL, resourceVersion=start, fieldSelector="spec.nodeName=")
        server.put("pods", "a", spec={})
        bound = server.put("pods", "a", spec={"nodeName": "n1"})
        server.put("pods", "b", spec={"nodeName": "n2"})
        moved = server.put("pods", "a", spec={"nodeName": "n2"})
        self.assertEqual([summary(e) for e in watch.take(2)], [("ADDED", "a", bound), ("DELETED", "a", moved)])
        self.assertEqual([e["type"] for e in free.take(2)], ["ADDED", "DELETED"])

    def test_watch_of_one_name_by_selector_and_by_the_old_path(self):
        server = self.serving()
        start = server.put("pods", "a")
        by_field = server.watch(self.pods, resourceVersion=start, fieldSelector="metadata.name=a")
        by_path = server.watch(f"/api/v1/watch/namespaces/{self.namespace}/pods/a", resourceVersion=start)
        server.put("pods", "b")
        changed = server.put("pods", "a")
        for watch in (by_field, by_path):
            self.assertEqual(summary(watch.next()), ("MODIFIED", "a", changed))

    def test_no_initial_events_are_sent_if_not_requested(self):
        server = self.serving()
        server.put("pods", "a")
        watch = server.watch(self.pods, sendInitialEvents="false", resourceVersionMatch="NotOlderThan")
        revision = server.put("pods", "b")
        self.assertEqual(summary(watch.next()), ("ADDED", "b", revision))

    def test_compacted_history_is_an_error_event(self):
        server = self.serving()
        old = server.put("pods", "a")
        for _ in range(3):
            last = server.put("pods", "a")
        server.compact(last)
        watch = server.watch(self.pods, resourceVersion=old)
        self.assertEqual(watch.response.status, 200)
        event = watch.next()
        self.assertEqual((event["type"], event["object"]["code"], event["object"]["reason"]), ("ERROR", 410, "Expired"))
        self.assertIsNone(watch.next())
        again = server.watch(self.pods, resourceVersion=old, sendInitialEvents="true", resourceVersionMatch="NotOlderThan")
        self.assertEqual(summary(again.next()), ("ADDED", "a", last))

    def test_watch_from_a_future_revision_waits_or_times_out(self):
        server = self.serving()
        last = server.put("pods", "a")
        silent = server.watch(self.pods, resourceVersion=last + 2)
        late = server.watch(self.pods, resourceVersion=last + 1000, sendInitialEvents="true",
                            resourceVersionMatch="NotOlderThan")
        server.put("pods", "b")
        server.put("pods", "c")
        revision = server.put("pods", "d")
        self.assertEqual(summary(silent.next()), ("ADDED", "d", revision))
        event = late.next()
        self.assertEqual((event["type"], event["object"]["code"]), ("ERROR", 504))
        self.assertEqual(event["object"]["details"]["causes"][0]["reason"], "ResourceVersionTooLarge")
        self.assertIsNone(late.next())

    def test_contradictory_options_are_refused(self):
        server = self.serving()
        for query, code in (({"resourceVersion": "x"}, 500), ({"resourceVersionMatch": "NotOlderThan"}, 422),
                            ({"sendInitialEvents": "true"}, 422),
                            ({"sendInitialEvents": "true", "resourceVersionMatch": "Exact"}, 422),
                            ({"labelSelector": "a in"}, 400), ({"fieldSelector": "spec.x=1"}, 400)):
            with self.subTest(query=query):
                self.assertEqual(server.get(self.pods, watch=1, **query)[0], code)

    def test_negative_timeout_ends_a_watch_at_once(self):
        server = self.serving()
        server.put("pods", "a")
        watch = server.watch(self.pods, timeoutSeconds=-1)
        self.assertEqual((watch.response.status, watch.rest()), (200, []))

    def test_bookmark_is_sent_before_the_timeout(self):
        server = self.serving()
        start = server.put("pods", "a") - 1
        other = server.put("configmaps", "c", kind="ConfigMap")
        began = time.monotonic()
        watch = server.watch(self.pods, resourceVersion=start, allowWatchBookmarks="true", timeoutSeconds=3)
        events = watch.rest()
        self.assertGreater(time.monotonic() - began, 2.5)
        self.assertEqual([e["type"] for e in events], ["ADDED", "BOOKMARK"])
        self.assertEqual(summary(events[1])[2], other)

    def test_expiry_of_a_lease_is_a_deletion(self):
        server = self.serving()
        lease = server.call("/v3/lease/grant", TTL=1)["ID"]
        server.put_raw(f"/registry/events/{self.namespace}/e", json.dumps(thing("e", kind="Event")), lease)
        watch = server.watch(f"{self.path}/events")
        self.assertEqual([e["type"] for e in watch.take(2)], ["ADDED", "DELETED"])

    def test_undecodable_value_ends_a_watch_or_is_skipped(self):
        server = self.serve()
        watch = server.watch(self.pods)
        start = server.put_raw(f"/registry/pods/{self.namespace}/bad", "{}")
        event = watch.next()
        self.assertEqual((event["type"], event["object"]["code"]), ("ERROR", 500))
        self.assertIsNone(watch.next())
        server.stop()
        lenient = self.serve("--kube-undecodable", "skip")
        watch = lenient.watch(self.pods, resourceVersion=start - 1)
        lenient.delete("pods", "bad")
        revision = lenient.put("pods", "a")
        self.assertEqual(summary(watch.next()), ("ADDED", "a", revision))
        self.assert_logged(lenient, "not a JSON object")
        lenient.stop()

    def test_the_end_of_the_initial_events_of_a_table_is_marked_in_its_row(self):
        server = self.serving()
        server.put("pods", "a")
        for made, columns in ((self.pods, 1), (self.path + "/configmaps", 0)):
            watch = server.watch(made, sendInitialEvents="true", resourceVersionMatch="NotOlderThan",
                                 allowWatchBookmarks="true", headers={"Accept": TABLE})
            events = [watch.next() for _ in range(1 + columns)]
            end = events[-1]["object"]
            self.assertEqual((events[-1]["type"], end["kind"], len(end["rows"])), ("BOOKMARK", "Table", 1))
            self.assertEqual(end["rows"][0]["object"]["metadata"],
                             {"annotations": {"k8s.io/initial-events-end": "true"},
                              "resourceVersion": end["metadata"]["resourceVersion"]})
            # The first event has the columns, whatever its type is.
            self.assertEqual([bool(e["object"]["columnDefinitions"]) for e in events], [True] + [False] * columns)
            self.assertEqual(len(end["rows"][0]["cells"]), len(events[0]["object"]["columnDefinitions"]))

    def test_escaped_and_plain_strings_match_selectors_alike(self):
        server = self.serving()

        def put(name, escaped):
            raw = json.dumps(thing(name, self.namespace, labels={"app": "web"}, spec={"nodeName": "node"}))
            for text, other in (("web", "w\\u0065b"), ("node", "n\\u006fde"), ("app", "\\u0061pp")):
                raw = raw.replace(f'"{text}"', f'"{other}"') if escaped else raw
            return server.put_raw(f"/registry/pods/{self.namespace}/{name}", raw)
        start = put("plain", False) - 1
        put("escaped", True)
        for query in ({"labelSelector": "app=web"}, {"fieldSelector": "spec.nodeName=node"}):
            self.assertEqual(names(server.list(self.pods, **query)), ["escaped", "plain"])
        watch = server.watch("/api/v1/pods", fieldSelector="spec.nodeName=node", resourceVersion=start)
        put("later", True)
        self.assertEqual([watch.next()["object"]["metadata"]["name"] for _ in range(3)],
                         ["plain", "escaped", "later"])

    def test_only_the_first_event_of_a_table_watch_has_columns(self):
        server = self.serving()
        server.put("pods", "a")
        watch = server.watch(self.pods, headers={"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"})
        server.put("pods", "b")
        first, second = watch.take(2)
        self.assertEqual(first["object"]["rows"][0]["cells"][0], "a")
        self.assertTrue(first["object"]["columnDefinitions"])
        self.assertIsNone(second["object"]["columnDefinitions"])

    def test_slow_reader_delays_no_other_client_and_loses_no_event(self):
        server = self.serve("--io-threads", "1")
        start = server.put("configmaps", "first", kind="ConfigMap")
        path = f"{self.path}/configmaps"
        slow = [server.watch(path, resourceVersion=start) for _ in range(20)]
        quick = server.watch(path, resourceVersion=start)
        before = server.anonymous_kb()
        large = {"kind": "ConfigMap", "data": {"k": "x" * 100000}}
        made = server.put_many("configmaps", {f"c{i:03}": large for i in range(200)}, at_once=10)
        expected = [("ADDED", name, revision) for name, revision in made.items()]
        self.assertEqual([summary(e) for e in quick.take(200)], expected)
        self.assertLess(server.anonymous_kb() - before, 16 * 1024)
        self.assertEqual([summary(e) for e in slow[7].take(200)], expected)
        server.stop()

    def test_watches_over_the_limit_are_refused_until_one_ends(self):
        server = self.serve("--max-watchers", "4")
        revision = server.put("pods", "a")
        watches = [server.watch(self.pods, resourceVersion=revision) for _ in range(2)]
        watches += [server.watch(self.pods, sendInitialEvents="true", resourceVersionMatch="NotOlderThan")
                    for _ in range(2)]
        for watch in watches[2:]:
            self.assertEqual(summary(watch.next()), ("ADDED", "a", revision))
        for query in ({"resourceVersion": revision}, {}, {"resourceVersion": 0}):
            code, headers, status = server.get(self.pods, watch=1, **query)
            self.assertEqual((code, status["reason"], headers["Retry-After"]), (429, "TooManyRequests", "1"))
        watches[0].close()
        end = time.monotonic() + WAIT_SECONDS
        while (again := server.watch(self.pods, resourceVersion=revision)).response.status == 429:
            self.assertLess(time.monotonic(), end)
            again.close()
        second = server.put("pods", "b")
        self.assertEqual(summary(again.next()), ("ADDED", "b", second))
        server.stop()

    def test_watches_end_cleanly_at_a_restart_and_can_resume(self):
        server = self.serve("--shutdown-timeout", "60s")
        start = server.put("pods", "a")
        watch = server.watch(self.pods, resourceVersion=start)
        second = server.put("pods", "b")
        self.assertEqual(summary(watch.next()), ("ADDED", "b", second))
        began = time.monotonic()
        server.stop()
        self.assertLess(time.monotonic() - began, 20)  # much less than the shutdown timeout
        self.assertIsNone(watch.next())
        server.start()
        third = server.put("pods", "c")
        self.assertEqual(summary(server.watch(self.pods, resourceVersion=second).next()), ("ADDED", "c", third))
        server.stop()

    def test_http_2_carries_many_watches(self):
        server = self.serving()
        start = server.put("pods", "a")
        server.put("pods", "b")
        for seconds in (1, 5, 25):  # more if a slow machine does not send all events by then
            url = f"{server.kube_url}{self.pods}?watch=1&resourceVersion={start}&timeoutSeconds={seconds}"
            shown = subprocess.run(["nghttp", "-m", "50", url], check=True, capture_output=True, text=True).stdout
            if shown.count('"ADDED"') >= 50:
                break
        self.assertEqual(shown.count('"ADDED"'), 50)


if __name__ == "__main__":
    unittest.main()
