#!/usr/bin/python3
"""Keys and members of the v2 API, with curl."""
import concurrent.futures
import datetime
import http.client
import json
import subprocess
import time
import unittest
import urllib.request

from server import LiveTest


class V2(LiveTest):
    def setUp(self):
        super().setUp()
        self.vigil = self.serving(args=["--enable-v2"])

    def curl(self, method, key, *fields):
        command = ["curl", "-sS", "-m", "30", "-X", method, f"{self.vigil.url}/v2/keys{key}"]
        for field in fields:
            command += ["-d", field]
        done = subprocess.run(command, capture_output=True, timeout=60, check=True)
        return json.loads(done.stdout)

    def code(self, *request):
        return self.curl(*request)["errorCode"]

    def test_tree_is_listed_in_order_without_hidden_nodes(self):
        for key in ("/a/b/c", "/a-b", "/a/_hidden", "/z"):
            self.curl("PUT", key, "value=1")
        self.curl("PUT", "/a/empty", "dir=true")
        root = self.curl("GET", "?recursive=true")["node"]
        names = [(n["key"], [m["key"] for m in n.get("nodes", [])]) for n in root["nodes"]]
        self.assertEqual(names, [("/a", ["/a/b", "/a/empty"]), ("/a-b", []), ("/z", [])])
        self.assertNotIn("nodes", self.curl("GET", "/a")["node"]["nodes"][0])

    def test_errors_have_etcds_numbers(self):
        self.curl("PUT", "/f", "value=1")
        self.curl("PUT", "/d/x", "value=1")
        for code, *request in ((100, "GET", "/no"), (104, "PUT", "/f/x", "value=1"),
                               (105, "PUT", "/f", "prevExist=false"), (107, "DELETE", "/"),
                               (102, "DELETE", "/d"), (108, "DELETE", "/d?dir=true"),
                               (101, "PUT", "/f", "value=2", "prevValue=9"),
                               (202, "PUT", "/f", "ttl=x"), (203, "GET", "/f?waitIndex=x"),
                               (210, "PUT", "/x" * 65, "value=1")):
            with self.subTest(request=request):
                self.assertEqual(self.code(*request), code)

    def test_names_of_posts_ascend_and_none_is_lost(self):
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            made = list(pool.map(lambda i: self.curl("POST", "/q", f"value={i}"), range(40)))
        nodes = self.curl("GET", "/q")["node"]["nodes"]
        self.assertEqual(len(nodes), len(made))
        created = [n["createdIndex"] for n in nodes]
        self.assertEqual(created, sorted(created))

    def test_waiter_gets_the_expiry(self):
        index = self.curl("PUT", "/t", "value=1", "ttl=1")["node"]["modifiedIndex"]
        event = self.curl("GET", f"/t?wait=true&waitIndex={index + 1}")
        self.assertEqual((event["action"], event["prevNode"]["value"]), ("expire", "1"))
        self.assertEqual(self.code("GET", "/t"), 100)

    def test_stream_reports_each_change_once(self):
        watch = subprocess.Popen(["curl", "-sSN", f"{self.vigil.url}/v2/keys/s?wait=true"
                                  "&stream=true&recursive=true&waitIndex=1"],
                                 stdout=subprocess.PIPE)
        self.addCleanup(watch.stdout.close)
        self.addCleanup(watch.wait)
        self.addCleanup(watch.kill)
        self.curl("PUT", "/s/a/b", "value=1")
        self.curl("PUT", "/s/a/b", "value=2", "prevValue=1")
        self.curl("DELETE", "/s?recursive=true")
        events = [json.loads(watch.stdout.readline()) for _ in range(3)]
        self.assertEqual([(e["action"], e["node"]["key"]) for e in events],
                         [("set", "/s/a/b"), ("compareAndSwap", "/s/a/b"), ("delete", "/s")])

    def leases(self):
        """The number of leases."""
        request = urllib.request.Request(f"{self.vigil.url}/v3/lease/leases", b"{}")
        with urllib.request.urlopen(request, timeout=60) as answer:
            return len(json.load(answer).get("leases", []))

    def waiting(self, query):
        """Starts a wait; returns when the head of its answer has arrived."""
        connection = http.client.HTTPConnection("127.0.0.1", self.vigil.port, timeout=60)
        self.addCleanup(connection.close)
        connection.request("GET", f"/v2/keys{query}")
        return connection.getresponse()

    def test_node_expires_after_its_ttl(self):
        self.curl("PUT", "/zero", "value=1", "ttl=0")
        self.assertEqual(self.code("GET", "/zero"), 100)
        self.assertEqual(self.code("PUT", "/zero", "value=2", "prevExist=true"), 100)
        node = self.curl("PUT", "/one", "value=1", "ttl=1")["node"]
        event = self.curl("GET", f"/one?wait=true&waitIndex={node['modifiedIndex'] + 1}")
        self.assertEqual((event["action"], event["node"]["key"]), ("expire", "/one"))
        self.assertEqual(self.curl("GET", "/").get("node").get("nodes"), None)
        self.eventually(lambda: self.leases() == 0)

    def test_too_large_ttl_means_no_expiration(self):
        for ttl in ("9000000001", "10000000000", "18446744073709551615"):
            made = self.curl("PUT", "/long", "value=1", f"ttl={ttl}")["node"]
            self.assertNotIn("expiration", made)
            self.assertEqual(self.curl("GET", "/long")["node"], made)
        self.assertEqual(self.leases(), 0)

    def test_restart_does_not_delay_the_expiration(self):
        node = self.curl("PUT", "/t", "value=1", "ttl=2")["node"]
        long = self.curl("PUT", "/long", "value=1", "ttl=1000")["node"]
        self.vigil.stop()
        end = datetime.datetime.fromisoformat(node["expiration"][:26].rstrip("Z") + "+00:00")
        while datetime.datetime.now(datetime.timezone.utc) <= end + datetime.timedelta(milliseconds=1):
            time.sleep(0.05)  # the test waits for the wall clock
        self.vigil.start()
        self.assertEqual(self.code("GET", "/t"), 100)
        event = self.curl("GET", f"/t?wait=true&waitIndex={node['modifiedIndex'] + 1}")
        self.assertEqual(event["action"], "expire")
        self.assertEqual(self.curl("GET", "/long")["node"]["expiration"], long["expiration"])

    def test_leases_are_removed_with_their_nodes(self):
        for i in range(5):
            self.curl("PUT", f"/d/{i}", "value=1", "ttl=1000")
        self.curl("PUT", "/d/0", "value=1", "ttl=1000")
        self.curl("PUT", "/d/1", "value=1")
        self.eventually(lambda: self.leases() == 4)
        self.curl("DELETE", "/d?recursive=true")
        self.eventually(lambda: self.leases() == 0)

    def test_deleted_directory_is_reported_to_all_waiters_below(self):
        self.curl("PUT", "/d/a/b", "value=1")
        index = self.curl("PUT", "/d/f", "value=1")["node"]["modifiedIndex"]
        made = self.curl("GET", "/d")["node"]["modifiedIndex"]
        below = [self.waiting(q) for q in ("/d/f?wait=true", "/d/a?wait=true", "/d/a/b?wait=true",
                                           "/d/a?wait=true&recursive=true", "/d?wait=true")]
        self.curl("DELETE", "/d?recursive=true")
        event = {"action": "delete",
                 "node": {"key": "/d", "dir": True, "modifiedIndex": index + 1, "createdIndex": made},
                 "prevNode": {"key": "/d", "dir": True, "modifiedIndex": made, "createdIndex": made}}
        for watch in below:
            self.assertEqual(json.loads(watch.read()), event)
        for key in ("/d/f", "/d/a", "/d/a/b", "/d/none", "/d"):
            self.assertEqual(self.curl("GET", f"{key}?wait=true&waitIndex={index + 1}"), event)

    def test_updating_a_directory_keeps_its_index(self):
        made = self.curl("PUT", "/d", "dir=true")["node"]
        updated = self.curl("PUT", "/d", "dir=true", "prevExist=true")
        self.assertEqual(updated["node"]["modifiedIndex"], made["modifiedIndex"] + 1)
        self.assertEqual(updated["prevNode"], made)
        event = self.curl("GET", f"/d?wait=true&waitIndex={made['modifiedIndex'] + 1}")
        self.assertEqual(event, updated)
        self.assertEqual(self.curl("GET", "/d")["node"], made)
        self.curl("PUT", "/d", "dir=true", "prevExist=true")  # the index in answers is not the revision of the node
        self.assertEqual(self.curl("GET", "/d")["node"], made)

    def members(self, method="GET", path="", body=None, kind="application/json"):
        command = ["curl", "-sS", "-m", "30", "-X", method, f"{self.vigil.url}/v2/members{path}",
                   "-w", "\n%{http_code}"]
        if body is not None:
            command += ["-H", f"Content-Type: {kind}", "-d", body]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
        text, code = done.stdout.rsplit("\n", 1)
        return int(code), text

    def test_members_are_added_changed_and_removed(self):
        one = json.loads(self.members()[1])["members"]
        self.assertEqual(len(one), 1)
        self.assertEqual(json.loads(self.members(path="/leader")[1]), one[0])
        code, text = self.members("POST", body='{"peerURLs":["http://127.0.0.1:1"], "other": 1}')
        added = json.loads(text)
        self.assertEqual((code, added["name"], added["peerURLs"], added["clientURLs"]),
                         (201, "", ["http://127.0.0.1:1"], []))
        where = "/" + added["id"]
        self.assertEqual(self.members("POST", body='{"peerURLs":["http://127.0.0.1:1"]}')[0], 500)  # no majority
        self.assertEqual(self.members("PUT", where, '{"peerURLs":["http://127.0.0.1:2"]}'), (204, ""))
        self.assertEqual(self.members("PUT", where, json.dumps({"peerURLs": one[0]["peerURLs"]})),
                         (409, '{"message":"membership: peerURL exists"}'))
        found = {m["id"]: m for m in json.loads(self.members()[1])["members"]}
        self.assertEqual(found, {one[0]["id"]: one[0], added["id"]: {**added, "peerURLs": ["http://127.0.0.1:2"]}})
        self.assertEqual(self.members("DELETE", where), (204, ""))
        self.assertEqual(self.members("DELETE", where), (404, json.dumps(
            {"message": f"No such member: {added['id']}"}, separators=(",", ":"))))
        self.assertEqual(json.loads(self.members()[1])["members"], one)

    def test_invalid_member_requests_are_refused(self):
        for code, method, path, *body in (
                (404, "GET", "/x"), (404, "DELETE", "/x"), (404, "DELETE", "/-1"), (404, "DELETE", "/" + "f" * 17),
                (405, "DELETE", "/"), (405, "PUT", ""), (415, "POST", "", "{}", "text/plain"), (400, "POST", "", "{"),
                (400, "POST", "", "{}"), (400, "POST", "", '{"peerURLs":[]}'), (400, "POST", "", '{"peerURLs":[1]}'),
                (400, "POST", "", '{"peerURLs":"http://h:1"}'), (400, "POST", "", '{"peerURLs":["x"]}'),
                (400, "POST", "", json.dumps({"peerURLs": ["http://h:%d" % i for i in range(1, 34)]})),
                (404, "PUT", "/1", '{"peerURLs":["http://h:1"]}')):
            with self.subTest(method=method, path=path, body=body):
                self.assertEqual(self.members(method, path, *body)[0], code)


if __name__ == "__main__":
    unittest.main()
