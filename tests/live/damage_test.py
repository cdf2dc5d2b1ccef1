#!/usr/bin/python3
"""Bytes of the data directory change under a running server or before a start. Requests for damaged data get an error, all
others are served, the check of the store finds the damage, and the process does not crash."""
import http.client
import json
import os
import pathlib
import re
import subprocess
import unittest

import kube
from kube import KubeServer, text64
from server import LiveTest, SUBJECT, Server, only_vigil

CORRUPT = "etcdserver: corrupt cluster"
DATA_LOSS = 15
FILL_BYTES = 1 << 20  # more than the size of the first segment

# The layout of a single put in the log, relative to the first byte of its key:
#   record head 32 | body head 8 | change head 32 | 12 len 0a len | key …
RECORD, BODY, CHANGE, FIELD = -76, -44, -36, -4

# name: (offset from the key, whether a read of the key alone detects it)
PLACES = {
    "key": (0, True),
    "value": (20, True),
    "length of the field": (FIELD + 1, True),
    "length of the key": (FIELD + 3, True),
    "revision of the change": (CHANGE + 2, True),
    "length of the change": (CHANGE + 24, True),
    "upper length of the change": (CHANGE + 27, True),
    "checksum of the change": (CHANGE + 29, True),
    "count of the body": (BODY, False),
    "upper count of the body": (BODY + 3, False),
    "checksum of the record": (RECORD, False),
    "length of the record": (RECORD + 4, False),
    "upper length of the record": (RECORD + 6, False),
    "index of the record": (RECORD + 8, False),
    "check of the head": (RECORD + 30, False),
}


def key_of(name):
    return f"/rot/{name.replace(' ', '-')}/key"


def segments(directory):
    return sorted((pathlib.Path(directory) / "log").glob("*.seg"))


def flip(directory, needle, distance, nth=0):
    """Changes one byte at this distance from the nth occurrence of the bytes; returns the file and the offset."""
    for path in segments(directory):
        data, at = path.read_bytes(), -1
        while (at := data.find(needle, at + 1)) >= 0:
            if nth == 0:
                with open(path, "r+b") as f:
                    f.seek(at + distance)
                    f.write(bytes([data[at + distance] ^ 0x41]))
                return path, at + distance
            nth -= 1
    raise AssertionError(f"{needle} is not stored")


class DamageError(Exception):
    pass


class DamagedServer(KubeServer):
    def __init__(self, directory, args, serves_kube=False):
        super().__init__(directory, args)
        self.serves_kube = serves_kube
        if not serves_kube:
            self.args = ["--listen-kube-urls=", *args]

    def start(self):
        return super().start() if self.serves_kube else Server.start(self)

    def request(self, path, **request):
        """Returns the answer, or raises DamageError."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request("POST", path, json.dumps(request))
        response = connection.getresponse()
        answer = json.loads(response.read())
        connection.close()
        if response.status == 200:
            return answer
        if answer.get("code") == DATA_LOSS and answer["message"].startswith(CORRUPT):
            raise DamageError(answer["message"])
        raise AssertionError(answer)

    def value(self, key, **more):
        kvs = self.request("/v3/kv/range", key=text64(key), **more).get("kvs", [])
        return kvs[0].get("value") if kvs else None

    def watch_store(self, key, revision, until=None, **more):
        """Watches from a revision until the watch is canceled or an event of the last revision arrives. Returns the reason
        of the cancellation and the events."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        create = {"key": text64(key), "start_revision": revision, **more}
        connection.request("POST", "/v3/watch", json.dumps({"create_request": create}))
        response, events = connection.getresponse(), []
        try:
            for line in iter(response.readline, b""):
                result = json.loads(line)["result"]
                events += result.get("events", [])
                if result.get("canceled"):
                    return result.get("cancel_reason"), events
                if until and any(int(e["kv"]["mod_revision"]) >= until for e in events):
                    return None, events
        finally:
            response.close()
            connection.close()
        raise AssertionError("the watch ended without a reason")

    def metric(self, name):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request("GET", "/metrics")
        page = connection.getresponse().read().decode()
        connection.close()
        return int(float(re.search(rf"^{name} (\S+)$", page, re.M)[1]))


@only_vigil
class Damage(LiveTest):
    def new_server(self, *args, **more):
        server = DamagedServer(self.scratch / "data", args, **more)
        self.addCleanup(server.close)
        self.addCleanup(server.kill)
        return server

    def again(self, server, *args):
        """Restarts the server cleanly, so that everything written before is in the checkpoint."""
        server.close()
        server.stop()
        return self.new_server(*args, serves_kube=server.serves_kube).start()

    def is_damaged(self, call, *args, **more):
        """Returns the text of the error."""
        with self.assertRaises(DamageError, msg=args) as caught:
            call(*args, **more)
        return str(caught.exception)

    def names(self, error, key, revision):
        self.assertRegex(error, rf'key "{re.escape(key)}" at revision {revision} is damaged '
                                r'\(log/[0-9a-f]{16}\.seg, offset \d+\): put the key again or delete it')

    def filled(self, server):
        for i in range(3):
            server.put_raw(f"/fill/{i}", "x" * (FILL_BYTES // 2))

    def check_others(self, server):
        """Undamaged keys can be read, written, listed and watched."""
        self.assertEqual(server.value("/good/a"), text64("good"))
        self.assertEqual(len(server.request("/v3/kv/range", key=text64("/good/"), range_end=text64("/good0"))["kvs"]), 2)
        revision = server.put_raw("/good/b", "new")
        reason, events = server.watch_store("/good/b", revision, until=revision)
        self.assertEqual((reason, len(events)), (None, 1))
        self.assertTrue(server.alive())

    def prepared(self, old, *args):
        """A server with a key for each place, in the segment that is being written or in an old one. Then each place is
        damaged."""
        server = self.new_server(*args).start()
        server.put_raw("/good/a", "good")
        revisions = {name: server.put_raw(key_of(name), "some value of it") for name in PLACES}
        server.put_raw("/good/b", "good")
        if old:
            self.filled(server)
        server = self.again(server, *args)
        for name, (distance, _) in PLACES.items():
            flip(server.directory, key_of(name).encode(), distance)
        return server, revisions

    def check_reads(self, server, revisions):
        for name, (_, hits) in PLACES.items():
            key = key_of(name)
            with self.subTest(name):
                if hits:
                    compare = {"key": text64(key), "target": "VALUE", "value": text64("x")}
                    reads = {"key": text64(key), "range_end": text64(key + "z")}
                    for error in (
                            self.is_damaged(server.value, key),
                            self.is_damaged(server.request, "/v3/kv/range", **reads),
                            self.is_damaged(server.value, key, sort_target="VALUE", sort_order="DESCEND"),
                            self.is_damaged(server.request, "/v3/kv/put", key=text64(key), value="", prev_kv=True),
                            self.is_damaged(server.request, "/v3/kv/put", key=text64(key), ignore_value=True),
                            self.is_damaged(server.request, "/v3/kv/deleterange", key=text64(key), prev_kv=True),
                            self.is_damaged(server.request, "/v3/kv/txn", compare=[compare]),
                            self.is_damaged(server.request, "/v3/kv/txn", success=[{"request_range": reads}]),
                            self.is_damaged(server.request, "/v3/kv/txn", success=[
                                {"request_range": {"key": text64(key)}}, {"request_put": {"key": text64(key)}}])):
                        self.names(error, key, revisions[name])
                else:
                    self.assertEqual(server.value(key), text64("some value of it"))
                # The index answers these without the log.
                self.assertIsNone(server.value(key, keys_only=True))
                self.assertEqual(server.request("/v3/kv/range", key=text64(key), count_only=True)["count"], "1")
                reason, events = server.watch_store(key, revisions[name])
                self.assertEqual((reason, events), (CORRUPT, []))
        self.is_damaged(server.request, "/v3/kv/range", key=text64("/rot/"), range_end=text64("/rot0"))

    def check_whole(self, server, revisions):
        """Requests that read everything."""
        self.is_damaged(server.request, "/v3/maintenance/hash")
        self.assertRegex(self.is_damaged(self.snapshot, server), r'key "/rot/\S+" at revision \d+ is damaged')
        reason, _ = server.watch_store("/", 2, range_end=text64("0"))
        self.assertEqual(reason, CORRUPT)
        self.check_others(server)

    def snapshot(self, server):
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
        connection.request("POST", "/v3/maintenance/snapshot", "{}")
        body = connection.getresponse().read()
        connection.close()
        if CORRUPT.encode() in body:
            raise DamageError(re.search(rb'"message": *"((?:[^"\\]|\\.)*)', body)[1].decode().replace('\\"', '"'))

    def heal(self, server):
        for name in PLACES:
            server.put_raw(key_of(name), "healed")
            self.assertEqual(server.value(key_of(name)), text64("healed"))
        answer = server.request("/v3/kv/range", key=text64("/rot/"), range_end=text64("/rot0"))
        self.assertEqual(len(answer["kvs"]), len(PLACES))

    def check_place(self, old):
        server, revisions = self.prepared(old)
        self.check_reads(server, revisions)
        self.check_whole(server, revisions)
        self.assertGreater(server.metric("vigil_store_damaged_reads_total"), 20)
        self.assert_logged(server, re.compile(r"a request met damage.*log/[0-9a-f]{16}\.seg, offset \d+"))
        if not old:  # a start reads the segment that is being written
            server.close()
            server.stop()
            code, log = self.new_server().refuse()
            self.assertEqual(code, 1)
            self.assertIn("the record is damaged", log)
            return None
        # The next start does not read the old segment; requests for damaged keys still get an error.
        server = self.again(server)
        self.check_others(server)
        self.is_damaged(server.value, key_of("value"))
        self.heal(server)
        return server

    def test_damage_in_the_segment_being_written(self):
        self.check_place(old=False)

    def test_damage_in_an_old_segment_until_it_is_compacted(self):
        server = self.check_place(old=True)
        # After new writes and a compaction no request can read the damage any more, and defragmenting removes it.
        revision = server.put_raw("/good/b", "good")
        server.request("/v3/kv/compaction", revision=str(revision), physical=True)
        self.check_others(server)
        server.request("/v3/maintenance/defragment")
        self.assertIn("hash", server.request("/v3/maintenance/hash"))
        self.snapshot(server)
        server = self.again(server, "--experimental-initial-corrupt-check")
        self.check_others(server)

    def test_defragmentation_keeps_and_logs_a_damaged_segment(self):
        server, _ = self.prepared(True)
        for i in range(3):
            server.put_raw(f"/fill/{i}", "y" * (FILL_BYTES // 2))
        revision = server.put_raw("/fill/3", "y")
        server.request("/v3/kv/compaction", revision=str(revision), physical=True)
        self.is_damaged(server.request, "/v3/maintenance/defragment")
        self.assert_logged(server, "is damaged and is not cleaned")
        # The damaged records were not rewritten as valid ones.
        for name, (_, hits) in PLACES.items():
            if hits:
                self.is_damaged(server.value, key_of(name))
        self.check_others(server)
        server.close()
        server.stop()
        for flag in ("--experimental-initial-corrupt-check", "--feature-gates=InitialCorruptCheck=true"):
            code, log = self.new_server(flag).refuse()
            self.assertEqual(code, 1)
            self.assertRegex(log, r"a record of the log is damaged: log/[0-9a-f]{16}\.seg, offset \d+")

    def test_damage_of_older_versions(self):
        server = self.new_server().start()
        key = "/rot/versions"
        revisions = [server.put_raw(key, f"version {i}") for i in range(7)]
        server = self.again(server)
        flip(server.directory, b"version 3", 2)
        for i, revision in enumerate(revisions):
            if i == 3:
                self.is_damaged(server.value, key, revision=str(revision))
            else:
                self.assertEqual(server.value(key, revision=str(revision)), text64(f"version {i}"))
        # A previous value that cannot be read is left out, like a compacted one.
        reason, events = server.watch_store(key, revisions[4], until=revisions[6], prev_kv=True)
        self.assertEqual([None if "prev_kv" not in e else e["prev_kv"]["value"] for e in events],
                         [None, text64("version 4"), text64("version 5")])
        server.request("/v3/kv/compaction", revision=str(revisions[6]), physical=True)
        self.assertEqual(server.value(key), text64("version 6"))
        server.close()
        server.stop()

    def test_damage_in_long_lists_and_the_check_of_the_store(self):
        server = self.new_server("--corrupt-check-time=1s").start()
        for i in range(40):
            server.put_raw(f"/list/{i:02}", f"number {i:02} " + "z" * 1000)
        server = self.again(server, "--corrupt-check-time=1s")
        self.eventually(lambda: server.metric("vigil_store_checks_total") >= 1)
        self.assertEqual(server.metric("vigil_store_check_last_bad"), 0)
        self.assertGreaterEqual(server.metric("vigil_store_check_records_total"), 40)
        self.assertGreaterEqual(server.metric("vigil_store_check_versions_total"), 40)
        path, _ = flip(server.directory, b"number 20", 500)
        self.eventually(lambda: server.metric("vigil_store_check_last_bad") >= 2)  # the record, and the key
        self.assertGreater(server.metric("vigil_store_check_last_timestamp_seconds"), 1_600_000_000)
        self.assert_logged(server, re.compile(rf"a version of a key is damaged.*log/{path.name}, offset \d+, key /list/20"))
        # From now on lists verify checksums as well, and end at damaged records.
        with self.assertRaises((DamageError, http.client.HTTPException, json.JSONDecodeError, AssertionError)):
            server.request("/v3/kv/range", key=text64("/list/"), range_end=text64("/list0"))
        answer = server.request("/v3/kv/range", key=text64("/list/21"), range_end=text64("/list0"))
        self.assertEqual(len(answer["kvs"]), 19)
        self.assertLessEqual(server.log.count("a version of a key is damaged"), 1000)
        server.close()
        server.stop()
        code, log = self.new_server("--experimental-initial-corrupt-check").refuse()
        self.assertEqual(code, 1)
        self.assertRegex(log, rf"{path.name}, offset \d+: the record is damaged")

    def test_expiring_lease_deletes_a_damaged_key(self):
        server = self.new_server().start()
        lease = server.request("/v3/lease/grant", TTL="2")["ID"]
        server.put_raw("/rot/leased", "a value of some length", lease=lease)
        revision = server.put_raw("/good/a", "good")
        flip(server.directory, b"/rot/leased", 20)
        reason, events = server.watch_store("/rot/leased", revision + 1, until=revision + 1)
        self.assertEqual([e.get("type") for e in events], ["DELETE"])
        self.assertIsNone(server.value("/rot/leased"))
        server.kill()

    def test_damage_after_the_checkpoint_is_refused_at_the_next_start(self):
        server = self.new_server("--checkpoint-bytes=67108864").start()
        server = self.again(server)
        server.put_raw("/rot/new", "a value of some length")
        server.put_raw("/good/a", "good")
        server.put_raw("/good/b", "good")
        server.kill()
        path, at = flip(server.directory, b"/rot/new", 16)
        code, log = self.new_server().refuse()
        self.assertEqual(code, 1)
        self.assertIn(path.name, log)
        self.assertIn("the record is damaged", log)

    def test_damaged_pages_of_the_checkpoint(self):
        """LMDB has no checksums. A start serves correct data, reports damage, or refuses with a message."""
        server = self.new_server().start()
        for i in range(0, 300, 10):
            puts = [{"requestPut": {"key": text64(f"/k/{i + n:04}"), "value": text64("v" * 50)}} for n in range(10)]
            server.call("/v3/kv/txn", success=puts)
        server.close()
        server.stop()
        meta = pathlib.Path(server.directory) / "meta/data.mdb"
        whole = meta.read_bytes()
        pages = [at for at in range(0, len(whole), 4096) if any(whole[at:at + 4096])]
        # In each page in turn, a byte of: its number, its flags, the offset of its free space, an entry's offset, contents.
        for turn, page in enumerate(pages):
            at = page + (0, 10, 13, 17, 24, 4090)[turn % 6]
            with self.subTest(page=page // 4096, offset=at - page):
                meta.write_bytes(whole[:at] + bytes([whole[at] ^ 0xA5]) + whole[at + 1:])
                server = self.new_server()
                server.begin()
                if server.becomes_ready():
                    self.check_served(server)
                else:
                    self.assertEqual(server.wait(), 1, server.log)
                    self.assert_logged(server, re.compile(r"cannot start.*meta"))

    def check_served(self, server):
        """The list is complete, or the request reports damage."""
        try:
            answer = server.request("/v3/kv/range", key=text64("/k/"), range_end=text64("/k0"), keys_only=True)
            self.assertEqual(len(answer["kvs"]), 300)
            for i in range(0, 300, 50):
                self.assertEqual(server.value(f"/k/{i:04}"), text64("v" * 50))
        except DamageError:
            pass
        server.kill()

    def test_shortened_file_ends_the_server_with_a_message(self):
        server = self.new_server().start()
        server.put_raw("/good/a", "x" * 20000)
        path = segments(server.directory)[0]
        os.truncate(path, 4096)
        with self.assertRaises((http.client.HTTPException, OSError)):
            server.value("/good/a")
        self.assertEqual(server.wait(), 74)
        fatal = json.loads([line for line in server.lines if '"fatal"' in line][-1])
        self.assertEqual(fatal["file"], str(path))
        self.assertGreaterEqual(fatal["offset"], 4096)
        self.assertIn(f"vigil salvage {server.directory} --to NEW", fatal["help"])

    def test_kubernetes_clients_get_an_error_for_damage(self):
        server = self.new_server(serves_kube=True).start()
        maps = "/api/v1/namespaces/default/configmaps"
        revisions = {}
        for name in ("a", "b", "c"):
            revisions[name] = server.put("configmaps", name, kind="ConfigMap", data={"text": f"value of {name}"})
        server = self.again(server)
        live = server.watch(maps, resourceVersion=str(revisions["c"]))
        flip(server.directory, b"value of b", 3)
        code, _, status = server.get(f"{maps}/b")
        self.assertEqual((code, status["reason"], status["kind"]), (500, "InternalError", "Status"))
        self.assertIn(CORRUPT, status["message"])
        code, _, status = server.get(maps)
        self.assertEqual((code, status["reason"]), (500, "InternalError"))
        self.assertEqual(server.get(f"{maps}/a")[0], 200)
        past = server.watch(maps, resourceVersion=str(revisions["a"])).rest()
        self.assertEqual([(e["type"], e["object"].get("code")) for e in past], [("ERROR", 500)])
        fresh = server.watch(maps).rest()
        self.assertEqual(fresh[-1]["type"], "ERROR")
        # A watch that is past the damage continues, and a new value replaces the damaged one.
        server.put("configmaps", "b", kind="ConfigMap", data={"text": "new"})
        self.assertEqual(live.next()["object"]["data"], {"text": "new"})
        self.assertEqual(kube.names(server.list(maps)), ["a", "b", "c"])
        server.close()
        server.stop()

    def test_watch_of_one_node_gets_an_error_for_a_damaged_pod(self):
        """The node of the damaged pod is unknown: without the error the pod would stay in the client's cache forever."""
        server = self.new_server(serves_kube=True).start()
        revision = server.put("pods", "a", kind="Pod", spec={"nodeName": "node-of-a"})
        live = [server.watch("/api/v1/pods", resourceVersion=str(revision), fieldSelector=f"spec.nodeName={node}")
                for node in ("node-of-a", "another")]
        flip(server.directory, b"node-of-a", 3)
        server.delete("pods", "a")
        past = server.watch("/api/v1/pods", resourceVersion=str(revision), fieldSelector="spec.nodeName=node-of-a")
        for watch in (*live, past):
            self.assertEqual([(e["type"], e["object"].get("code")) for e in watch.rest()], [("ERROR", 500)])
        server.close()
        server.stop()

    def repair(self, server, *flags):
        done = subprocess.run([SUBJECT, "repair", "--data-dir", server.directory, *flags], capture_output=True,
                              text=True, timeout=120, check=False)
        self.assertNotIn("Sanitizer", done.stderr)
        return done.returncode, done.stdout + done.stderr

    def count(self, server, prefix="/checkpoint/"):
        end = prefix[:-1] + chr(ord(prefix[-1]) + 1)
        return int(server.request("/v3/kv/range", key=text64(prefix), range_end=text64(end)).get("count", 0))

    def test_damaged_checkpoint_is_refused_and_repaired(self):
        server = self.new_server().start()
        for i in range(300):
            server.request("/v3/kv/put", key=text64(f"/checkpoint/{i:04}"), value=text64("v"))
        server.stop()
        path = pathlib.Path(server.directory) / "meta/data.mdb"
        whole = path.read_bytes()
        # If there were several checkpoints, pages that are no longer in use have the key as well.
        found = [match.start() for match in re.finditer(b"/checkpoint/0123", whole)]
        pages = {at & ~4095 for at in found}

        def changed(offsets, length, change):
            damaged = bytearray(whole)
            for offset in offsets:
                damaged[offset:offset + length] = bytes(map(change, damaged[offset:offset + length]))
            return bytes(damaged)

        # A key, a number next to it, the head of its page, and the whole page.
        for damage in (changed([at + 14 for at in found], 1, lambda byte: byte ^ 1),
                       changed([at - 2 for at in found], 1, lambda byte: byte ^ 1),
                       changed(pages, 1, lambda byte: byte ^ 1), changed(pages, 4096, lambda _: 0)):
            path.write_bytes(damage)
            server.begin()
            self.assertNotEqual(server.process.wait(60), 0)
            self.assert_logged(server, "the checkpoint is damaged")
            self.assert_logged(server, "vigil repair")
            code, report = self.repair(server)
            self.assertEqual(code, 3, report)
            self.assertRegex(report, "the checkpoint is damaged(.|\n)*nothing is lost(.|\n)*--accept-loss")
            self.assertEqual(path.read_bytes(), damage)
            code, report = self.repair(server, "--accept-loss")
            self.assertEqual(code, 0, report)
            kept = pathlib.Path(re.search(r"damaged checkpoint is kept in (\S+)", report)[1])
            self.assertEqual(kept.read_bytes(), damage)
            self.assertEqual(self.repair(server), (0, "nothing is damaged\n"))
            server.start()
            self.assertEqual(self.count(server), 300)
            server.close()
            server.stop()

    def test_repair_of_a_checkpoint_reports_what_is_lost(self):
        """After a cleaning the log does not have every deletion: keys that only the damaged checkpoint knows are reported
        as lost, by name."""
        server = self.new_server("--segment-bytes", "4194304").start()
        for i in range(400):
            server.request("/v3/kv/put", key=text64(f"/checkpoint/{i:04}"), value=text64("v" * 30000))
        for i in range(0, 400, 4):
            server.request("/v3/kv/deleterange", key=text64(f"/checkpoint/{i:04}"))
        revision = int(server.request("/v3/kv/put", key=text64("/last"), value=text64("v"))["header"]["revision"])
        server.request("/v3/kv/compaction", revision=revision, physical=True)
        server.request("/v3/maintenance/defragment")
        lease = server.request("/v3/lease/grant", TTL=1000)["ID"]
        for i in range(2):  # so that both states that the file has use the same page for the key
            server.close()
            server.stop()
            server.start()
            server.request("/v3/kv/put", key=text64(f"/other/{i}"), value=text64("v"))
        server.close()
        server.stop()
        path = pathlib.Path(server.directory) / "meta/data.mdb"
        whole = path.read_bytes()
        # Of the pages that contain the key one is in use for it; the others are free, or have it behind what they hold now.
        for page in sorted({match.start() & ~4095 for match in re.finditer(b"/checkpoint/0123", whole)}):
            path.write_bytes(whole[:page] + bytes(4096) + whole[page + 4096:])
            code, report = self.repair(server)
            lost = re.findall(r'^  revision \d+: put "(\S+)" \(it may have been deleted', report, re.M)
            if "/checkpoint/0123" in lost:
                break
        self.assertEqual(code, 3, report)
        self.assertRegex(report, r"keys: \d+ kept, \d+ lost; history would be compacted")
        kept = int(re.search(r"keys: (\d+) kept", report)[1])
        self.assertIn("/checkpoint/0123", lost)
        self.assertGreaterEqual(kept + len(lost), 301)
        self.assertLess(len(lost), 200)
        code, report = self.repair(server, "--accept-loss")
        self.assertEqual(code, 0, report)
        self.assertIn("check them", report)
        server.start()
        for i in range(400):
            key = f"/checkpoint/{i:04}"
            found = server.request("/v3/kv/range", key=text64(key)).get("kvs")
            self.assertEqual(bool(found), i % 4 != 0 and key not in lost, key)
            if found:
                self.assertEqual(found[0]["mod_revision"], str(i + 2))
        self.assertGreater(int(server.request("/v3/kv/put", key=text64("/next"), value=text64("v"))["header"]["revision"]), revision)
        self.assertEqual(server.request("/v3/lease/timetolive", ID=lease)["grantedTTL"], "1000")
        server.close()
        server.stop()


@only_vigil
class DamagedMirror(LiveTest):
    """The server in front has a copy of everything: what is damaged there is loaded again, and does not count as a fault of the cluster."""
    KEY, VALUE = "/rot/key", "a value of some length"

    def setUp(self):
        super().setUp()
        self.behind = self.server("behind").start()
        self.behind.put_raw(self.KEY, self.VALUE)
        for i in range(3):  # so that the key is in an old segment, which a start does not read
            self.behind.put_raw(f"/fill/{i}", "x" * (FILL_BYTES // 2))
        self.front = self.server("front", "--upstream-endpoints", self.behind.url).start()
        self.eventually(lambda: self.front.value("/fill/2", serializable=True))

    def server(self, name, *args):
        server = DamagedServer(self.scratch / name, args)
        self.addCleanup(server.close)
        self.addCleanup(server.kill)
        return server

    def damage(self):
        flip(f"{self.front.directory}/mirror", self.KEY.encode(), len(self.KEY) + 10)

    def reads(self):
        """Whether the mirror, which may be incomplete or away, has the right value."""
        try:
            return self.front.value(self.KEY, serializable=True) == text64(self.VALUE)
        except (DamageError, AssertionError, OSError, http.client.HTTPException):
            return False

    def heals(self):
        self.eventually(lambda: "serving again" in self.front.log, lambda: self.front.log)
        self.eventually(self.reads, lambda: self.front.log)
        self.assert_logged(self.front, re.compile(r'thrown away and will be loaded again.*stored bytes of the mirror are damaged'))
        self.assertNotIn("differs", self.front.log)
        self.assertEqual(self.front.log.count("serving again"), 1)

    def test_damage_before_a_start_is_found_when_the_pasts_are_compared(self):
        self.front.stop()
        self.damage()
        self.front.start()
        self.heals()

    def test_damage_that_a_request_meets_while_the_cluster_is_followed(self):
        newest = int(self.front.request("/v3/kv/range", key=text64("/fill/2"))["header"]["revision"])
        self.damage()
        with self.assertRaises(DamageError):
            self.front.value(self.KEY, serializable=True)
        # A watch ends as compacted, which has no reason in words, so that its client reads the state again.
        self.assertEqual(self.front.watch_store("/other", newest + 1), (None, []))
        self.heals()


if __name__ == "__main__":
    unittest.main()
