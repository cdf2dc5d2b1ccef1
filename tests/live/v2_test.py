#!/usr/bin/python3
"""The keys of the v2 API, by curl."""
import concurrent.futures
import json
import subprocess
import unittest

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

    def test_a_tree_is_listed_as_it_was_made(self):
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

    def test_names_of_posts_go_up_and_none_is_lost(self):
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            made = list(pool.map(lambda i: self.curl("POST", "/q", f"value={i}"), range(40)))
        nodes = self.curl("GET", "/q")["node"]["nodes"]
        self.assertEqual(len(nodes), len(made))
        created = [n["createdIndex"] for n in nodes]
        self.assertEqual(created, sorted(created))

    def test_a_waiter_hears_of_expiry(self):
        index = self.curl("PUT", "/t", "value=1", "ttl=1")["node"]["modifiedIndex"]
        event = self.curl("GET", f"/t?wait=true&waitIndex={index + 1}")
        self.assertEqual((event["action"], event["prevNode"]["value"]), ("expire", "1"))
        self.assertEqual(self.code("GET", "/t"), 100)

    def test_a_stream_tells_each_change_once(self):
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

    def test_members_refuse_what_is_none(self):
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
