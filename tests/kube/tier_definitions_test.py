#!/usr/bin/python3
"""Custom resources through a watch tier whose definition changes or is deleted, or whose converter fails, while they are
watched; and resources of an aggregated server. What clients see is compared with what they see at the kube-apiserver."""
import http.server
import json
import pathlib
import ssl
import sys
import threading
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/live"))
sys.path.insert(0, str(ROOT / "tests/kube"))
import conversions  # noqa: E402
import webhooks  # noqa: E402
from conversions import CRDS, gate  # noqa: E402
from tier_world import INITIAL, Authority, Caller, TierWorld, eventually, named, version  # noqa: E402

TEXT = {"type": "string"}


def definition(plural, kind, versions, scope="Namespaced"):
    """Each version: its name, whether it is served, and the properties of spec. The first is stored."""
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": f"{plural}.example.com"},
            "spec": {"group": "example.com", "scope": scope, "names": {"plural": plural, "kind": kind}, "versions": [
                {"name": name, "served": served, "storage": i == 0, "schema": {"openAPIV3Schema": {
                    "type": "object", "properties": {"spec": {"type": "object", "properties": properties}}}}}
                for i, (name, served, properties) in enumerate(versions)]}}


class Definitions(TierWorld):
    def define(self, made):
        name = made["metadata"]["name"]
        self.make(CRDS, made)
        eventually(lambda: any(c["type"] == "Established" and c["status"] == "True"
                               for c in self.direct.get(f"{CRDS}/{name}")[1].get("status", {}).get("conditions") or []))
        path = f"/apis/example.com/{made['spec']['versions'][0]['name']}"
        plural = made["spec"]["names"]["plural"]
        eventually(lambda: self.direct.get(f"{path}/{plural}")[0] == 200)
        return name

    def path(self, plural, api="v1", name=None):
        return f"/apis/example.com/{api}/namespaces/{self.name}/{plural}" + (f"/{name}" if name else "")

    def thing(self, kind, name, api="v1", **spec):
        return {"apiVersion": f"example.com/{api}", "kind": kind, "metadata": {"name": name}, "spec": spec}

    def same(self, path):
        """The same answer: a current one, and one that may be old."""
        for query in ("", "?resourceVersion=0"):
            eventually(lambda query=query: self.shape(self.direct.get(path + query)) == self.shape(self.admin.get(path + query)), 60,
                       f"{path}{query}: {self.direct.get(path + query)} {self.admin.get(path + query)}")

    @staticmethod
    def shape(answer):
        status, body = answer
        return (status, named(body)) if status == 200 and "items" in body else (status, body)

    # -- The definition --

    def test_a_schema_that_changes(self):
        name = self.define(definition("bells", "Bell", [("v1", True, {"tone": TEXT, "old": TEXT})]))
        made = self.make(self.path("bells"), self.thing("Bell", "a", tone="c", old="x"))
        self.mirrors(self.path("bells"))
        watches = self.both(f"{self.path('bells')}?watch=1&resourceVersion={version(made)}")
        self.make(self.path("bells"), self.thing("Bell", "b", tone="d", old="y"))
        watches.wait(lambda w: w.names() == [("ADDED", "b")])
        # One field is pruned from now on, another one gets a default, without a write of the objects.
        changed = definition("bells", "Bell", [("v1", True, {"tone": TEXT, "new": {**TEXT, "default": "n"}})])
        self.change(f"{CRDS}/{name}", {"spec": {"versions": changed["spec"]["versions"]}})
        eventually(lambda: self.direct.get(self.path("bells", name="a"))[1]["spec"] == {"tone": "c", "new": "n"})
        watches.wait_end()
        direct, tier = watches.seen()
        self.assertEqual([e for e in tier if e["type"] != "ERROR"], direct)
        self.same(self.path("bells"))
        last = named(self.admin.get(self.path("bells"))[1])
        self.assertEqual({n: item["spec"] for n, item in last.items()}, {"a": {"tone": "c", "new": "n"}, "b": {"tone": "d", "new": "n"}})
        watches = self.both(f"{self.path('bells')}?{INITIAL}")
        for events in watches.pair:
            events.wait_initial()
        self.make(self.path("bells"), self.thing("Bell", "c"))
        watches.wait(lambda w: w.names()[-1:] == [("ADDED", "c")])
        direct, tier = watches.seen()
        self.assertEqual(tier, direct)

    def test_a_definition_that_clients_wait_for(self):
        """They look for it again and again; none of their watches is passed on when it is there."""
        callers = [Caller(self.tier.port, "the-token") for _ in range(8)]
        watches, stop = [], time.monotonic() + 60

        def follow(caller):
            while (answer := caller.get(f"{self.path('viols')}?resourceVersion=0"))[0] != 200:
                assert answer[0] in (404, 429) and time.monotonic() < stop, answer
                time.sleep(0.3)
            watches.append(caller.watch(f"{self.path('viols')}?watch=1&resourceVersion={version(answer[1])}"))

        followers = [threading.Thread(target=follow, args=(caller,)) for caller in callers]
        for follower in followers:
            follower.start()
        before = self.tier.metric("vigil_tier_watches_total")
        self.define(definition("viols", "Viol", [("v1", True, {"tone": TEXT})]))
        for follower in followers:
            follower.join()
        for events in watches:
            self.addCleanup(events.close)
        self.make(self.path("viols"), self.thing("Viol", "a"))
        for events in watches:
            events.wait(lambda w: w.names() == [("ADDED", "a")])
        self.assertEqual((len(watches), self.tier.metric("vigil_tier_watches_total") - before), (8, 8))

    def test_a_version_that_is_added_and_removed(self):
        name = self.define(definition("drums", "Drum", [("v1", True, {"tone": TEXT})]))
        self.assertEqual(self.admin.get(self.path("drums", "v2"))[0], 404)
        made = self.make(self.path("drums"), self.thing("Drum", "a", tone="c"))
        self.mirrors(self.path("drums"))
        two = definition("drums", "Drum", [("v1", True, {"tone": TEXT}), ("v2", True, {"tone": TEXT})])
        self.change(f"{CRDS}/{name}", {"spec": {"versions": two["spec"]["versions"]}})
        eventually(lambda: self.direct.get(self.path("drums", "v2"))[0] == 200)
        # It is not remembered for long that there was none.
        self.assertEqual(self.admin.get(self.path("drums", "v2"))[0], 200)
        self.mirrors(self.path("drums", "v2"))
        self.same(self.path("drums", "v2"))
        watches = self.both(f"{self.path('drums', 'v2')}?watch=1&resourceVersion={version(self.direct.get(self.path('drums'))[1])}")
        self.make(self.path("drums"), self.thing("Drum", "b", tone="d"))
        watches.wait(lambda w: w.names() == [("ADDED", "b")])
        direct, tier = watches.seen()
        self.assertEqual(tier, direct)
        self.assertEqual(tier[0]["object"]["apiVersion"], "example.com/v2")
        # It is not served any more: watches end, and other requests have the kube-apiserver's answer.
        none = definition("drums", "Drum", [("v1", True, {"tone": TEXT}), ("v2", False, {"tone": TEXT})])
        self.change(f"{CRDS}/{name}", {"spec": {"versions": none["spec"]["versions"]}})
        eventually(lambda: self.direct.get(self.path("drums", "v2"))[0] == 404)
        watches.wait_end()
        self.same(self.path("drums", "v2"))
        self.assertEqual(self.admin.get(self.path("drums", "v2", "a"))[0], 404)
        self.same(self.path("drums"))
        self.assertEqual(set(named(self.admin.get(self.path("drums"))[1])), {"a", "b"})
        self.assertEqual(version(made), version(self.admin.get(self.path("drums", name="a") + "?resourceVersion=0")[1]))

    def test_a_definition_that_is_deleted_and_made_again(self):
        made = definition("horns", "Horn", [("v1", True, {"tone": TEXT})])
        name = self.define(made)
        for i in range(3):
            last = self.make(self.path("horns"), self.thing("Horn", f"a{i}", tone="c"))
        self.mirrors(self.path("horns"))
        watches = self.both(f"{self.path('horns')}?watch=1&resourceVersion={version(last)}")
        self.delete(f"{CRDS}/{name}")
        eventually(lambda: self.direct.get(f"{CRDS}/{name}")[0] == 404)
        watches.wait(lambda w: len(w.names("DELETED")) == 3)
        watches.wait_end()
        direct, tier = watches.seen()
        self.assertEqual([e for e in tier if e["type"] != "ERROR"], [e for e in direct if e["type"] != "ERROR"])
        eventually(lambda: self.direct.get(self.path("horns"))[0] == 404)
        self.same(self.path("horns"))
        # The same name, another kind and other objects.
        made = definition("horns", "Hooter", [("v1", True, {"loud": TEXT})])
        self.define(made)
        one = self.make(self.path("horns"), self.thing("Hooter", "b", loud="very"))
        self.assertEqual(self.admin.get(self.path("horns", name="b"))[1], one)
        self.same(self.path("horns"))
        self.mirrors(self.path("horns"))
        self.same(self.path("horns"))
        watches = self.both(f"{self.path('horns')}?{INITIAL}")
        for events in watches.pair:
            events.wait_initial()
        self.delete(self.path("horns", name="b"))
        watches.wait(lambda w: w.names()[-1:] == [("DELETED", "b")])
        direct, tier = watches.seen()
        self.assertEqual(tier, direct)
        # A version from before is not one of this history.
        for caller in (self.direct, self.admin):
            events = self.watch(f"{self.path('horns')}?watch=1&resourceVersion={version(last)}", caller)
            events.wait(lambda w: w.events)
            self.assertEqual((events.events[0]["type"], events.events[0]["object"]["code"]), ("ERROR", 410))


class Conversions(TierWorld):
    def setUp(self):
        super().setUp()
        self.hook = webhooks.Webhooks(self.scratch / self.name)
        self.addCleanup(self.hook.stop)
        plural = self.plural = self._testMethodName[-8:].replace("_", "") + "s"
        made = conversions.definition(self.hook.on("/convert", conversions.good), plural, plural.capitalize()[:-1])
        self.kind = made["spec"]["names"]["kind"]
        self.make(CRDS, made)
        self.one, self.two = (f"/apis/example.com/{api}/namespaces/{self.name}/{plural}" for api in ("v1", "v2"))
        eventually(lambda: self.direct.get(self.two)[0] == 200)

    def put(self, name, **spec):
        return self.make(self.one, gate(name, kind=self.kind, **spec))

    def breaks(self):
        self.hook.on("/convert", conversions.response(result={"status": "Failure", "message": "not today"}))

    def assert_refused(self, answer):
        """The converter's error; 429: the kube-apiserver's cache is not ready, because of the converter."""
        status, body = answer
        texts = {429: "initializing", 500: "not today"}
        self.assertIn(status, texts, body)
        self.assertIn(texts[status], body["message"])

    def test_a_converter_that_fails_before_the_first_read(self):
        self.put("a", hostPort="x:1")
        self.breaks()
        eventually(lambda: self.direct.get(self.two)[0] == 500)
        begun = time.monotonic()
        for query in ("", "?resourceVersion=0"):
            for answer in (self.direct.get(self.two + query), self.admin.get(self.two + query)):
                self.assert_refused(answer)
        self.assertLess(time.monotonic() - begun, 20)  # without a wait for a mirror
        # The stored version needs no converter.
        self.assertEqual(set(named(self.admin.get(self.one)[1])), {"a"})
        self.hook.on("/convert", conversions.good)
        eventually(lambda: self.admin.get(f"{self.two}?resourceVersion=0")[0] == 200)
        self.assertEqual(named(self.admin.get(self.two)[1])["a"]["spec"], {"host": "x", "port": "1"})

    def test_a_converter_that_fails_while_it_is_watched(self):
        self.put("a", hostPort="x:1")
        # From a version that the mirror has: a watch from one before it would be passed on.
        listed = eventually(lambda: (body := self.mirrors(self.two)) and "a" in named(body) and body)
        events = self.watch(f"{self.two}?watch=1&resourceVersion={version(listed)}")
        self.assertNotIn("Audit-Id", events.answer.headers)
        self.put("b", hostPort="y:2")
        events.wait(lambda w: w.names() == [("ADDED", "b")])
        self.breaks()
        self.put("c", hostPort="z:3")
        self.change(f"{self.one}/a", {"spec": {"hostPort": "x:9"}})
        # Current reads have the kube-apiserver's error, never half a state.
        eventually(lambda: self.direct.get(self.two)[0] == 500)
        self.assert_refused(self.admin.get(self.two))
        status, body = self.admin.get(f"{self.two}?resourceVersion=0")
        if status == 200:
            self.assertEqual({n: item["spec"] for n, item in named(body).items()},
                             {"a": {"host": "x", "port": "1"}, "b": {"host": "y", "port": "2"}})
        else:
            self.assert_refused((status, body))
        self.hook.on("/convert", conversions.good)
        want = {"a": {"host": "x", "port": "9"}, "b": {"host": "y", "port": "2"}, "c": {"host": "z", "port": "3"}}
        for query in ("", "?resourceVersion=0"):
            eventually(lambda query=query: (answer := self.admin.get(self.two + query))[0] == 200 and want == {
                n: item["spec"] for n, item in named(answer[1]).items()}, what=f"{query}: {self.admin.get(self.two + query)}")
        # The watch has everything, or has said that it has not.
        events.wait(lambda w: w.ended or len(w.names()) == 3)
        if events.ended:
            self.assertEqual(events.events[-1]["object"]["code"], 410)
        else:
            self.assertEqual(sorted(events.names()), [("ADDED", "b"), ("ADDED", "c"), ("MODIFIED", "a")])


class Aggregated(http.server.BaseHTTPRequestHandler):
    """A server behind the kube-apiserver's aggregation: "clocks" can be watched, "gauges" only listed."""
    protocol_version = "HTTP/1.1"
    changed = threading.Condition()
    clocks, history, calls = {}, [], []

    def log_message(self, *args):
        pass

    def reply(self, body, code=200):
        data = json.dumps(body).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self):
        path, _, query = self.path.partition("?")
        if path == "/apis/agg.example.com/v1":
            self.reply({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "agg.example.com/v1", "resources": [
                {"name": "clocks", "namespaced": False, "kind": "Clock", "singularName": "", "verbs": ["get", "list", "watch"]},
                {"name": "gauges", "namespaced": False, "kind": "Gauge", "singularName": "", "verbs": ["get", "list"]}]})
        elif path == "/apis/agg.example.com/v1/gauges":
            self.reply({"kind": "GaugeList", "apiVersion": "agg.example.com/v1", "metadata": {}, "items": [
                {"metadata": {"name": "g"}, "value": len(self.calls)}]})
            self.calls.append(self.path)
        elif path == "/apis/agg.example.com/v1/clocks" and "watch=" in query:
            self.calls.append(self.path)
            self.stream(query)
        elif path == "/apis/agg.example.com/v1/clocks":
            self.calls.append(self.path)
            with self.changed:
                self.reply({"kind": "ClockList", "apiVersion": "agg.example.com/v1", "metadata": {
                    "resourceVersion": str(100 + len(self.history))}, "items": list(self.clocks.values())})
        else:
            self.reply({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404}, 404)

    def stream(self, query):
        if "sendInitialEvents" in query:
            self.reply({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Invalid", "code": 422}, 422)
            return
        fields = dict(field.split("=") for field in query.split("&"))
        at = int(fields.get("resourceVersion") or 100) - 100
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        while True:
            with self.changed:
                self.changed.wait_for(lambda: len(self.history) > at or self.server.stopped)
                if self.server.stopped:
                    return
                event, at = self.history[at], at + 1
            line = json.dumps(event).encode() + b"\n"
            self.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))

    @classmethod
    def put(cls, name, kind="ADDED"):
        with cls.changed:
            made = {"kind": "Clock", "apiVersion": "agg.example.com/v1", "metadata": {
                "name": name, "resourceVersion": str(101 + len(cls.history)), "uid": name}}
            cls.history.append({"type": kind, "object": made})
            cls.clocks[name] = made
            if kind == "DELETED":
                del cls.clocks[name]
            cls.changed.notify_all()


class Aggregation(TierWorld):
    # The kube-apiserver identifies itself with this certificate to the aggregated server.
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        identity = Authority(cls.scratch / "aggregated").sign("localhost")
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Aggregated)
        server.daemon_threads, server.stopped = True, False
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(identity.cert, identity.key)
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=server.serve_forever, daemon=True).start()

        def stop():
            server.stopped = True
            with Aggregated.changed:
                Aggregated.changed.notify_all()
            server.shutdown()
        cls.addClassCleanup(stop)
        cls.port = server.server_port

    def test_clocks_are_mirrored_and_gauges_are_passed_on(self):
        Aggregated.put("first")
        self.make(f"/api/v1/namespaces/{self.name}/services", {
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": "agg"},
            "spec": {"type": "ExternalName", "externalName": "localhost", "ports": [{"port": self.port}]}})
        self.make("/apis/apiregistration.k8s.io/v1/apiservices", {
            "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": "v1.agg.example.com"},
            "spec": {"group": "agg.example.com", "version": "v1", "groupPriorityMinimum": 100, "versionPriority": 10,
                     "insecureSkipTLSVerify": True, "service": {"namespace": self.name, "name": "agg", "port": self.port}}})
        clocks, gauges = (f"/apis/agg.example.com/v1/{name}" for name in ("clocks", "gauges"))
        eventually(lambda: self.direct.get(clocks)[0] == 200, what=str(self.direct.get(clocks)))
        # Without watch, each read is the aggregated server's own answer.
        values = [self.admin.get(f"{gauges}?resourceVersion=0")[1]["items"][0]["value"] for _ in range(3)]
        self.assertEqual(values, sorted(set(values)))
        self.assertEqual(self.admin.get("/apis/agg.example.com/v1"), self.direct.get("/apis/agg.example.com/v1"))
        # With watch, there is one for all clients.
        self.assertEqual(set(named(self.admin.get(f"{clocks}?resourceVersion=0")[1])), {"first"})
        watches = [self.watch(f"{clocks}?watch=1&resourceVersion=101") for _ in range(10)]
        Aggregated.put("second")
        Aggregated.put("first", "DELETED")
        for events in watches:
            events.wait(lambda w: len(w.names()) == 2)
            self.assertEqual(events.names(), [("ADDED", "second"), ("DELETED", "first")])
            self.assertEqual([e["object"]["metadata"]["resourceVersion"] for e in events.events if e["type"] != "BOOKMARK"],
                             ["102", "103"])
        self.assertEqual(set(named(self.admin.get(clocks)[1])), {"second"})
        self.assertEqual(len([call for call in Aggregated.calls if "watch=" in call and "sendInitial" not in call]), 1, Aggregated.calls)


if __name__ == "__main__":
    unittest.main()
