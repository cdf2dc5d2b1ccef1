#!/usr/bin/python3
"""Admission webhooks that misbehave, and how many may wait: slow, cut off, huge and endless answers, bad certificates, webhooks that
call back or remove their own configuration, thousands of writes that wait for one that hangs. tests/kube/same_webhooks_test.py
compares what webhooks receive and decide with a real kube-apiserver."""
import http.client
import json
import os
import pathlib
import re
import resource
import selectors
import signal
import socket
import threading
import time
import unittest

import webhooks
from certs import Authority
from kube import KubeServer
from server import WAIT_SECONDS, LiveTest, free_port, only_vigil
from webhooks import Webhooks, add, allow, deny, patch

ROOT = pathlib.Path(__file__).resolve().parents[2]
GROUP = "/apis/admissionregistration.k8s.io/v1"
VALIDATING, MUTATING = f"{GROUP}/validatingwebhookconfigurations", f"{GROUP}/mutatingwebhookconfigurations"
CMS, SECRETS = "/api/v1/namespaces/default/configmaps", "/api/v1/namespaces/default/secrets"
MERGE = "application/merge-patch+json"
MANY = 1000
MEMORY_KB_MAX = 400_000  # what endless answers may cost, with a sanitizer's records
FAILED = 'Internal error occurred: failed calling webhook "w.example.com": '


def limit(name, folder="src/kube/webhook"):
    """A limit in a header of the folder."""
    for header in (ROOT / folder).glob("*.h"):
        if found := re.search(rf"\b{name} = ([0-9x <]+)", header.read_text()):
            left, _, right = found[1].partition("<<")
            return int(left) << int(right or 0)
    raise AssertionError(f"no {name}")


class Many:
    """Requests on connections of their own, all of which are in flight at the same time."""

    def __init__(self, port, texts):
        self.selector, self.answers, self.left = selectors.DefaultSelector(), {}, {}
        for number, text in enumerate(texts):
            connection = socket.create_connection(("127.0.0.1", port), timeout=WAIT_SECONDS)
            connection.sendall(text)
            connection.setblocking(False)
            self.left[connection] = [number, b""]
            self.selector.register(connection, selectors.EVENT_READ)

    def wait(self, until=None, seconds=WAIT_SECONDS):
        """Reads answers until the condition is true, or until all are there. Returns {number: (code, body)}."""
        end = time.monotonic() + seconds
        while self.left and not (until and until(self.answers)):
            assert time.monotonic() < end, f"{len(self.left)} answers are missing, {len(self.answers)} are there"
            for key, _ in self.selector.select(0.1):
                state = self.left[key.fileobj]
                more = key.fileobj.recv(1 << 16)
                state[1] += more
                head, gap, body = state[1].partition(b"\r\n\r\n")
                length = re.search(rb"(?i)content-length: (\d+)", head)
                if not more or (gap and length and len(body) >= int(length[1])):
                    self.answers[state[0]] = (int(head.split()[1]) if gap else 0, body)
                    self.drop(key.fileobj)
        return self.answers

    def drop(self, connection):
        self.selector.unregister(connection)
        connection.close()
        del self.left[connection]

    def close(self):
        for connection in list(self.left):
            self.drop(connection)


def posting(path, body):
    text = json.dumps(body).encode()
    fields = f"Host: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: {len(text)}"
    return f"POST {path} HTTP/1.1\r\n{fields}\r\n\r\n".encode() + text


def config(name, **more):
    return {"metadata": {"name": name}, **more}


def rule(resources="configmaps", operations="*", group="", version="v1"):
    return {"apiGroups": [group], "apiVersions": [version], "resources": resources.split(","), "operations": operations.split(",")}


@only_vigil
class KubeWebhooks(LiveTest):
    def setUp(self):
        super().setUp()
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        self.code = 0
        self.authority = Authority(self.scratch / "authority")
        self.hooks = self.webhooks("webhook")

    def webhooks(self, name, **more):
        made = Webhooks(self.scratch, name, **{"authority": self.authority, **more})
        self.addCleanup(made.stop)
        return made

    def serve(self, *args, threads=4, **more):
        self.kube = KubeServer(self.scratch / "data", [f"--io-threads={threads}", *args], **more)
        self.addCleanup(self.kube.kill)
        self.addCleanup(self.kube.close)
        self.kube.start()

    def send(self, method, path, body=None, code=None, content_type="application/json"):
        """Each request has its own connection, which any I/O thread may serve."""
        connection = http.client.HTTPConnection("127.0.0.1", self.kube.kube_port, timeout=WAIT_SECONDS)
        connection.request(method, path, json.dumps(body) if body is not None else None, {"Content-Type": content_type})
        answer = connection.getresponse()
        made = json.loads(answer.read())
        self.code, self.warnings = answer.status, answer.headers.get_all("Warning", [])
        connection.close()
        if code:
            self.assertEqual(answer.status, code, made)
        return made

    def hook(self, name, behaviour=allow, path=VALIDATING, code=201, server=None, webhook="w.example.com", **more):
        """Creates a configuration with one webhook. Returns where it is called."""
        server = server or self.hooks
        where = f"/{name}"
        made = {"name": webhook, "sideEffects": "None", "admissionReviewVersions": ["v1"], "timeoutSeconds": 30, "rules": [rule()],
                "clientConfig": server.on(where, behaviour), **more}
        self.send("POST", path, {"metadata": {"name": name}, "webhooks": [made]}, code=code)
        return where

    def unhook(self, name, path=VALIDATING):
        """The code of the answer before stays."""
        code = self.code
        self.send("DELETE", f"{path}/{name}", code=200)
        self.code = code

    def metric(self, name, labels=""):
        connection = http.client.HTTPConnection("127.0.0.1", self.kube.port, timeout=WAIT_SECONDS)
        connection.request("GET", "/metrics")
        page = connection.getresponse().read().decode()
        connection.close()
        found = re.search(rf"^{name}{re.escape(labels)} (\S+)$", page, re.M)
        return float(found[1]) if found else 0

    # -- Good days --

    def test_a_webhook_applies_to_the_next_write_on_every_thread(self):
        self.serve()
        for round_number in range(5):
            name = f"w{round_number}"
            self.hook(name, deny("no"))
            for number in range(8):
                answer = self.send("POST", CMS, config(f"c{number}"), code=400)
                self.assertEqual(answer["message"], 'admission webhook "w.example.com" denied the request: no')
            self.unhook(name)
            for number in range(8):
                self.send("POST", CMS, config(f"c{round_number}-{number}"), code=201)

    def test_a_webhook_applies_after_a_restart(self):
        self.serve()
        self.hook("w", deny("no"))
        self.kube.stop()
        self.kube.start()
        self.send("POST", CMS, config("a"), code=400)

    def test_a_change_of_a_configuration_applies_to_the_next_write(self):
        self.serve()
        self.hook("w", deny("no"))
        self.send("POST", CMS, config("a"), code=400)
        self.send("PATCH", f"{VALIDATING}/w", [add("/webhooks/0/clientConfig", self.hooks.on("/other", deny("other")))], 200,
                  "application/json-patch+json")
        self.assertIn("denied the request: other", self.send("POST", CMS, config("a"), code=400)["message"])
        self.send("PATCH", f"{VALIDATING}/w", [add("/webhooks/0/rules/0/resources", ["secrets"])], 200, "application/json-patch+json")
        self.send("POST", CMS, config("a"), code=201)
        self.send("POST", SECRETS, config("a"), code=400)

    def test_connections_are_used_again(self):
        self.serve(threads=1)
        sockets = set()
        where = self.hook("w", lambda call: (sockets.add(call.connection), allow(call)))
        for number in range(50):
            self.send("POST", CMS, config(f"c{number}"), code=201)
        self.assertEqual(len(self.hooks.of(where)), 50)
        self.assertEqual(len(sockets), 1)

    def test_evictions_bindings_and_collections_have_verdicts_of_their_own(self):
        """Each of them consists of several requests for webhooks."""
        self.serve(threads=1)
        everything = [{"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"], "operations": ["*"]}]
        # The requests for a collection have no name.
        no_second = webhooks.when(lambda call: "second" in (call.name, (call.request["oldObject"] or {}).get("metadata", {}).get("name")),
                                  deny("not this one"))
        self.hook("w", no_second, rules=everything)
        self.hook("m", rules=everything, path=MUTATING)
        pods = "/api/v1/namespaces/default/pods"
        for name in ("first", "second", "third"):
            self.send("POST", pods, config(name, spec={"containers": [{"name": "c", "image": "i"}]}))
            self.send("POST", CMS, config(name))
        self.unhook("w")
        self.send("POST", pods, config("second", spec={"containers": [{"name": "c", "image": "i"}]}), 201)
        self.send("POST", CMS, config("second"), 201)
        self.hook("w", no_second, rules=everything)
        eviction = {"apiVersion": "policy/v1", "kind": "Eviction"}
        for name, code in (("first", 201), ("second", 400), ("none", 404)):
            self.send("POST", f"{pods}/{name}/eviction", {**eviction, "metadata": {"name": name}}, code)
        target = {"kind": "Node", "name": "n"}
        for name, code in (("third", 201), ("second", 400)):
            self.send("POST", f"{pods}/{name}/binding", {"metadata": {"name": name}, "target": target}, code)
        self.send("DELETE", CMS, code=400)
        self.assertEqual([item["metadata"]["name"] for item in self.send("GET", CMS)["items"]], ["second", "third"])
        self.unhook("w")
        self.send("DELETE", CMS, code=200)
        self.assertEqual(self.send("GET", CMS, code=200)["items"], [])

    def test_dropped_audit_annotations_are_logged_once_for_each_webhook(self):
        """Until its configuration changes."""
        self.serve(threads=2)

        def annotate(annotations):
            return lambda call: call.respond(allowed=True, auditAnnotations=annotations)

        def logged():
            found = [json.loads(line) for line in list(self.kube.lines) if "has answered with auditAnnotations" in line]
            return [line["webhook"] for line in found]

        def write_until(wanted):
            def is_logged():
                self.send("POST", CMS + "?dryRun=All", config("a"), code=201)
                return len(logged()) >= len(wanted)
            self.eventually(is_logged)
            self.assertEqual(logged(), wanted)
        self.hook("empty", annotate({}), webhook="empty.example.com")
        self.hook("first", annotate({"a": "b"}), webhook="first.example.com")
        write_until(["first.example.com"])
        self.hook("second", annotate({"a": "b"}), MUTATING, webhook="second.example.com")
        write_until(["first.example.com", "second.example.com"])
        self.send("PATCH", f"{VALIDATING}/first", [add("/webhooks/0/timeoutSeconds", 5)], 200, "application/json-patch+json")
        write_until(["first.example.com", "second.example.com", "first.example.com"])

    def test_a_disabled_plugin_calls_no_webhook(self):
        self.serve("--kube-disable-admission-plugins=ValidatingAdmissionWebhook,MutatingAdmissionWebhook")
        self.hook("w", deny("no"))
        self.hook("m", deny("no"), MUTATING)
        self.send("POST", CMS, config("a"), code=201)
        self.assertEqual(self.hooks.calls, [])

    # -- Bad days --

    def expect(self, name, behaviour, *texts, path=VALIDATING, codes=(500,), server=None, prefix=FAILED, **more):
        """Under Fail the answer has one of the texts, under Ignore the write succeeds."""
        where = f"https://127.0.0.1:{(server or self.hooks).port}"
        self.hook(name, behaviour, path, server=server, **more)
        answer = self.send("POST", CMS, config(name, data={"a": "b"}))
        self.unhook(name, path)
        with self.subTest(name):
            self.assertIn(self.code, codes, answer)
            self.assertIn(answer["message"], [prefix + text.replace("URL", f"{where}/{name}?timeout=30s") for text in texts])
        name += "-ignored"
        self.hook(name, behaviour, path, server=server, failurePolicy="Ignore", **more)
        answer = self.send("POST", CMS, config(name, data={"a": "b"}))
        self.unhook(name, path)
        with self.subTest(name):
            self.assertEqual(self.code, 201, answer)
            self.assertEqual(answer["data"], {"a": "b"})

    def test_answers_that_are_cut_off(self):
        self.serve()
        begin = 'failed to call webhook: Post "URL": '
        self.expect("nothing", webhooks.cut, begin + "EOF")
        self.expect("head", webhooks.cut_head, begin + "EOF", begin + "unexpected EOF")
        self.expect("body", webhooks.cut_body, "failed to call webhook: unexpected error when reading response body. Please retry. "
                    "Original error: unexpected EOF")

    def test_answers_that_are_not_http(self):
        self.serve()
        for name, data in (("text", b"hello\r\n\r\n"), ("zero", b"\0" * 100), ("binary", bytes(range(256)))):
            # Without the end of a line, the end of the connection is what went wrong.
            self.expect(name, webhooks.raw(data), 'failed to call webhook: Post "URL": a malformed status line',
                        'failed to call webhook: Post "URL": EOF')
        for name, data in (("length", b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n"), ("lengths", b"HTTP/1.1 200 OK\r\nContent-Length: 2"
                                                                                         b"\r\nContent-Length: 3\r\n\r\n{}x")):
            self.hook(name, webhooks.raw(data))
            self.assertIn("failed calling webhook", self.send("POST", CMS, config(name), code=500)["message"])
            self.unhook(name)

    def test_a_good_answer_with_more_behind_it_counts_once(self):
        """What follows the answer is not taken as that of the next call."""
        self.serve(threads=1)
        self.hook("w", webhooks.echo_length)
        for number in range(20):
            answer = self.send("POST", CMS, config(f"c{number}"))
            self.assertEqual(self.code, 201, answer)

    def test_answers_that_are_too_large(self):
        self.serve()
        most = limit("KUBE_WEBHOOK_ANSWER_BYTES_MAX")
        self.hook("fits", webhooks.huge(most - 1000))
        self.send("POST", CMS, config("fits"), code=201)
        self.unhook("fits")
        for name, behaviour in (("huge", webhooks.huge(most)), ("endless", webhooks.endless), ("head", webhooks.endless_head),
                                ("message", webhooks.padded(most))):
            for path in (VALIDATING, MUTATING):
                self.hook(name, behaviour, path)
                answer = self.send("POST", CMS, config(name))
                self.unhook(name, path)
                self.assertEqual(self.code, 500, answer)
                self.assertIn(FAILED + "failed to call webhook: ", answer["message"])
                self.assertLess(len(answer["message"]), 4000)
            self.hook(name, behaviour, failurePolicy="Ignore")
            self.send("POST", CMS, config(name), code=201)
            self.unhook(name)

    def test_endless_answers_cost_little_memory(self):
        self.serve(threads=2)
        self.hook("w", webhooks.endless)
        before = self.kube.anonymous_kb()
        for _ in range(3):
            answers = Many(self.kube.kube_port, [posting(CMS, config(f"c{number}")) for number in range(60)]).wait()
            self.assertTrue(all(code in (500, 429) for code, _ in answers.values()), answers)
        self.assertLess(self.kube.anonymous_kb() - before, MEMORY_KB_MAX)

    def test_answers_that_are_nested_too_deeply(self):
        self.serve()
        for depth in (5000, 200_000, 3_000_000):
            self.hook("deep", webhooks.deep(depth))
            answer = self.send("POST", CMS, config("deep"))
            self.unhook("deep")
            self.assertIn(self.code, (500, 201) if depth < 10_000 else (500,), answer)
        self.send("POST", CMS, config("after"), code=201)

    def test_patches_that_grow(self):
        """Each operation copies everything that is there."""
        self.serve()
        bomb = [add("/data/x", "y" * 1000), *({"op": "copy", "from": "/data", "path": f"/data/c{number}"} for number in range(60))]
        deep = [add("/data", {}), *(add("/data" + "/a" * number, {}) for number in range(1, 5000))]
        many = [add("/data/x", "y")] * 200_000
        for name, operations in (("bomb", bomb), ("deep", deep), ("many", many)):
            self.hook(name, patch(*operations), MUTATING, rules=[rule(operations="CREATE")])
            answer = self.send("POST", CMS, config(name, data={"a": "b"}))
            self.unhook(name, MUTATING)
            self.assertIn(self.code, (413, 422, 429, 500, 201) if name == "many" else (413, 422, 429, 500), answer)
            self.assertLess(len(json.dumps(answer)), 100_000)
        self.send("POST", CMS, config("after"), code=201)

    def test_redirects_are_refused(self):
        self.serve()
        for code in (301, 302, 303, 307, 308):
            place = self.hooks.url("/allowed")
            self.hooks.on("/allowed", allow)
            self.expect(f"r{code}", webhooks.redirect(code, place),
                        f'failed to call webhook: the server answered with the code {code} and a redirect to "{place}", '
                        "which is not followed")
        self.assertEqual(self.hooks.of("/allowed"), [])

    def test_a_server_that_cannot_be_reached(self):
        self.serve()
        port = free_port()
        for where, text in ((f"https://127.0.0.1:{port}/x", f"dial tcp 127.0.0.1:{port}: connect: connection refused"), (
                f"https://[::1]:{port}/x", f"dial tcp [::1]:{port}: connect: ")):
            self.hook("w", clientConfig={"url": where})
            message = self.send("POST", CMS, config("a"), code=500)["message"]
            self.assertIn(f'{FAILED}failed to call webhook: Post "{where}?timeout=30s": {text}', message)
            self.unhook("w")
        self.hook("w", clientConfig={"url": "https://nothing.invalid/x"})
        self.assertIn('Post "https://nothing.invalid/x?timeout=30s": dial tcp: lookup nothing.invalid', self.send(
            "POST", CMS, config("a"), code=500)["message"])

    def test_bad_certificates(self):
        self.serve()
        untrusted = Authority(self.scratch / "untrusted")
        begin = 'failed to call webhook: Post "URL": tls: failed to verify certificate: x509: '
        for name, text, more in (
                ("untrusted", "certificate signed by unknown authority", {"authority": untrusted, "trusted": self.authority}),
                ("misnamed", "certificate is not valid for any names, but wanted to match 127.0.0.1", {"names": "DNS:other.test"}),
                ("expired", "certificate has expired or is not yet valid: current time", {"days": -1})):
            server = self.webhooks(name, **more)
            self.hook(name, server=server)
            message = self.send("POST", CMS, config("a"), code=500)["message"]
            with self.subTest(name):
                self.assertIn((FAILED + begin).replace("URL", f"{server.url('/' + name)}?timeout=30s"), message)
                self.assertEqual(server.calls, [])
            self.unhook(name)
            self.hook(name, server=server, failurePolicy="Ignore")
            self.send("POST", CMS, config(name), code=201)
            self.unhook(name)

    def test_time_runs_out(self):
        self.serve()
        for name, behaviour in (("hang", webhooks.hang), ("drip", webhooks.drip)):
            for path in (VALIDATING, MUTATING):
                self.hook(name, behaviour, path, timeoutSeconds=1)
                begin = time.monotonic()
                answer = self.send("POST", CMS, config(name), code=500)
                self.assertLess(time.monotonic() - begin, 8)
                self.assertIn("context deadline exceeded", answer["message"])
                self.assertIn(FAILED, answer["message"])
                self.unhook(name, path)
                self.hook(name, behaviour, path, timeoutSeconds=1, failurePolicy="Ignore")
                self.send("POST", CMS, config(f"{name}-{'v' if path == VALIDATING else 'm'}"), code=201)
                self.unhook(name, path)

    def test_a_server_that_accepts_and_says_nothing(self):
        """There is not even a handshake."""
        self.serve()
        with socket.create_server(("127.0.0.1", 0)) as silent:
            self.hook("w", clientConfig={"url": f"https://127.0.0.1:{silent.getsockname()[1]}/"}, timeoutSeconds=1)
            self.assertIn("context deadline exceeded", self.send("POST", CMS, config("a"), code=500)["message"])

    # -- Webhooks that do something meanwhile --

    def test_a_webhook_calls_the_server_back(self):
        self.serve(threads=1)
        seen = []

        def back(call):
            seen.append(self.send("GET", CMS)["kind"])
            self.send("POST", SECRETS, config(f"for-{call.name}"), code=201)
        self.hook("w", webhooks.calls(back))
        for number in range(5):
            self.send("POST", CMS, config(f"c{number}"), code=201)
        self.assertEqual(seen, ["ConfigMapList"] * 5)
        self.send("GET", f"{SECRETS}/for-c4", code=200)

    def test_a_webhook_calls_itself(self):
        """Each write waits for the next one; all end when the time of the first is over."""
        self.serve(threads=1)
        lock, made = threading.Lock(), []

        def again(call):
            with lock:
                made.append(call.name)
                name = f"c{len(made)}"
            self.send("POST", CMS, config(name))
        self.hook("w", webhooks.calls(again), timeoutSeconds=1)
        begin = time.monotonic()
        self.send("POST", CMS, config("first"), code=500)
        self.assertLess(time.monotonic() - begin, 10)
        self.unhook("w")
        self.send("POST", CMS, config("after"), code=201)

    def test_a_webhook_removes_its_own_configuration(self):
        self.serve()
        for path in (VALIDATING, MUTATING):
            for behaviour, code in ((allow, 201), (deny("no"), 400)):
                where = self.hook("w", webhooks.calls(lambda call, path=path: self.unhook("w", path), behaviour), path)
                before = len(self.hooks.of(where))
                name = f"{'validating' if path == VALIDATING else 'mutating'}-{code}"
                self.send("POST", CMS, config(name), code=code)
                self.send("POST", CMS, config(name + "-2"), code=201)
                self.assertEqual(len(self.hooks.of(where)) - before, 1)

    def test_a_webhook_is_replaced_while_it_is_called(self):
        self.serve()
        event = threading.Event()
        where = self.hook("w", webhooks.slow(event, deny("old")))
        many = Many(self.kube.kube_port, [posting(CMS, config("a"))])
        self.hooks.wait_for(where)
        self.unhook("w")
        self.hook("w2", deny("new"))
        event.set()
        (code, body), = many.wait().values()
        self.assertEqual(code, 400, body)
        self.assertIn(b"denied the request: old", body)
        self.assertIn("denied the request: new", self.send("POST", CMS, config("a"), code=400)["message"])

    def test_an_object_changes_while_its_webhook_waits(self):
        """A patch is made again of the object as it is then, and the webhook sees that."""
        self.serve()
        self.send("POST", CMS, config("a", data={"n": "1"}), code=201)
        event = threading.Event()
        where = self.hook("w", webhooks.slow(event), matchConditions=[{"name": "x", "expression": "has(object.data.asked)"}])
        many = Many(self.kube.kube_port, [posting(f"{CMS}/a", {"data": {"asked": "yes"}}).replace(b"POST", b"PATCH", 1).replace(
            b"application/json", MERGE.encode(), 1)])
        self.hooks.wait_for(where)
        self.send("PATCH", f"{CMS}/a", {"data": {"n": "2"}}, 200, MERGE)
        event.set()
        (code, body), = many.wait().values()
        self.assertEqual((code, json.loads(body)["data"]), (200, {"n": "2", "asked": "yes"}))
        self.assertEqual([call.object["data"]["n"] for call in self.hooks.of(where)], ["1", "2"])

    def test_an_object_is_deleted_while_its_webhook_waits(self):
        self.serve()
        self.send("POST", CMS, config("a"), code=201)
        event = threading.Event()
        where = self.hook("w", webhooks.slow(event), rules=[rule(operations="UPDATE")])
        many = Many(self.kube.kube_port, [posting(f"{CMS}/a", config("a", data={"x": "y"})).replace(b"POST", b"PUT", 1)])
        self.hooks.wait_for(where)
        self.send("DELETE", f"{CMS}/a", code=200)
        event.set()
        (code, body), = many.wait().values()
        self.assertEqual(code, 404, body)

    def test_a_client_goes_away_while_its_webhook_waits(self):
        """The call ends with it, and nothing is written."""
        self.serve()
        where = self.hook("w", webhooks.hang)
        many = Many(self.kube.kube_port, [posting(CMS, config(f"c{number}")) for number in range(20)])
        self.hooks.wait_for(where, 20)
        many.close()
        self.hooks.wait_until(lambda: self.hooks.waiting == 0, "calls continue without their clients")
        self.assertEqual(self.send("GET", CMS, code=200)["items"], [])

    # -- Many that wait --

    def waiting(self, count, refused=0):
        """Sends writes, and returns when the calls for all of them are under way, except for those that are refused."""
        many = Many(self.kube.kube_port, [posting(CMS, config(f"c{number}")) for number in range(count)])
        self.addCleanup(many.close)
        many.wait(lambda answers: len(answers) >= refused)
        self.eventually(lambda: self.metric("vigil_kube_webhook_calls") == count - refused)
        return many

    def test_thousand_writes_wait_for_one_that_hangs_and_is_removed(self):
        self.serve(threads=2)
        before = self.kube.anonymous_kb()
        event = threading.Event()
        where = self.hook("w", webhooks.slow(event, allow))
        many = self.waiting(MANY)
        watch = self.kube.watch(SECRETS)
        begin = time.monotonic()
        for number in range(20):
            self.send("POST", SECRETS, config(f"s{number}"), code=201)
            self.send("GET", CMS, code=200)
        self.assertEqual([event["object"]["metadata"]["name"] for event in watch.take(20)], [f"s{number}" for number in range(20)])
        self.assertLess(time.monotonic() - begin, 20)
        self.unhook("w")
        for number in range(20):
            self.send("POST", CMS, config(f"after{number}"), code=201)
        self.assertEqual(many.wait(lambda answers: True), {})
        self.assertEqual(self.metric("vigil_kube_webhook_calls"), MANY)
        self.assertLessEqual(len(self.hooks.of(where)), 2 * limit("KUBE_WEBHOOK_CONNECTIONS_MAX"))
        event.set()
        answers = many.wait()
        self.assertEqual({code for code, _ in answers.values()}, {201}, next(iter(answers.values())))
        self.assertEqual(sorted(call.name for call in self.hooks.of(where)), sorted(f"c{number}" for number in range(MANY)))
        self.assertEqual(self.metric("vigil_kube_webhook_calls"), 0)
        self.assertLess(self.kube.anonymous_kb() - before, MEMORY_KB_MAX)

    def test_thousand_writes_wait_until_their_time_is_over(self):
        self.serve(threads=2)
        where = self.hook("w", webhooks.hang, timeoutSeconds=30)
        many = self.waiting(MANY)
        self.unhook("w")
        self.send("POST", CMS, config("after"), code=201)
        self.assertEqual(many.wait(lambda answers: True), {})
        answers = many.wait()
        self.assertEqual({code for code, _ in answers.values()}, {500})
        late = f'{FAILED}failed to call webhook: Post "{self.hooks.url(where)}?timeout=30s": context deadline exceeded'
        self.assertEqual({json.loads(body)["message"] for _, body in answers.values()}, {late})
        self.assertEqual([item["metadata"]["name"] for item in self.send("GET", CMS, code=200)["items"]], ["after"])

    def test_the_server_stops_while_writes_wait(self):
        self.serve(threads=2)
        self.hook("w", webhooks.hang)
        self.waiting(300)
        begin = time.monotonic()
        os.kill(self.kube.pid, signal.SIGTERM)
        self.assertIn(self.kube.wait(), (0, 143, -signal.SIGTERM))
        self.assertLess(time.monotonic() - begin, 25)

    def test_the_number_that_waits_is_limited_for_each_webhook(self):
        most = limit("KUBE_WEBHOOK_CALLS_PER_TARGET_MAX")
        self.serve(threads=1)
        event = threading.Event()
        self.hook("w", webhooks.slow(event))
        self.hook("other", allow, rules=[rule("secrets")])
        extra = 50
        many = self.waiting(most + extra, refused=extra)
        answers = many.wait(lambda answers: True)
        self.assertEqual([code for code, _ in answers.values()], [429] * extra, next(iter(answers.values())))
        self.send("POST", SECRETS, config("s"), code=201)
        event.set()
        answers = many.wait()
        self.assertEqual(sorted(code for code, _ in answers.values()), [201] * most + [429] * extra)
        self.send("POST", CMS, config("after"), code=201)

    def test_the_number_that_waits_is_limited_in_all(self):
        """But some calls of each webhook are not refused because of others: those that hang do not stop them all."""
        per_target, most = limit("KUBE_WEBHOOK_CALLS_PER_TARGET_MAX"), limit("KUBE_WEBHOOK_CALLS_MAX")
        reserved, count = limit("KUBE_WEBHOOK_CALLS_RESERVED"), most // per_target
        per_write = limit("KUBE_REVIEWS_MAX", "src/kube/handlers/write")
        self.serve(threads=1)
        event = threading.Event()
        more, good = str(count), str(count + 1)
        for number in range(count):
            hook = {"sideEffects": "None", "admissionReviewVersions": ["v1"], "timeoutSeconds": 30, "rules": [rule()], "objectSelector": {
                "matchLabels": {"w": str(number)}}, "failurePolicy": "Ignore",
                "clientConfig": self.hooks.on(f"/w{number}", webhooks.slow(event))}
            self.send("POST", VALIDATING, {"metadata": {"name": f"w{number}"}, "webhooks": [
                {"name": f"w{place}.example.com", **hook} for place in range(per_write)]}, 201)
        for name, behaviour in ((more, webhooks.slow(event)), (good, allow)):
            self.hook(f"w{name}", behaviour, objectSelector={"matchLabels": {"w": name}}, failurePolicy="Ignore")

        def send(rows):
            made = Many(self.kube.kube_port, [posting(CMS, {"metadata": {"name": f"c{of}-{number}", "labels": {"w": str(of)}}})
                                              for of, number in rows])
            self.addCleanup(made.close)
            return made
        many = send((of, number) for of in range(count) for number in range(per_target // per_write))
        self.eventually(lambda: self.metric("vigil_kube_webhook_calls") == most)
        extra = 20
        others = send((more, number) for number in range(reserved + extra))
        refused = others.wait(lambda answers: len(answers) >= extra)
        self.eventually(lambda: self.metric("vigil_kube_webhook_calls") == most + reserved)
        self.assertEqual([code for code, _ in refused.values()], [429] * extra)
        for labels, code in (({"w": more}, 429), ({"w": "0"}, 429), ({"w": good}, 201), ({}, 201)):
            self.send("POST", CMS + "?dryRun=All", {"metadata": {"name": "x", "labels": labels}}, code=code)
        self.assertEqual(len(self.hooks.of(f"/w{good}")), 1)
        self.assertEqual(many.wait(lambda answers: True), {})
        event.set()
        self.assertEqual({code for code, _ in many.wait().values()}, {201})
        self.assertEqual(sorted(code for code, _ in others.wait().values()), [201] * reserved + [429] * extra)
        self.assertEqual(self.metric("vigil_kube_webhook_calls"), 0)
        self.send("POST", CMS, {"metadata": {"name": "x", "labels": {"w": more}}}, code=201)

    # -- Services --

    def service(self, name="hook", ready=(), unready=(), port=None, target=None):
        self.kube.put("services/specs", name, kind="Service", spec={
            "clusterIP": "10.0.0.9", "ports": [{"name": "https", "port": 443, "targetPort": target or "https"}]})
        self.kube.put("endpointslices", f"{name}-1", kind="EndpointSlice", api="discovery.k8s.io/v1", labels={
            "kubernetes.io/service-name": name}, addressType="IPv4", ports=[{"name": "https", "port": port or self.hooks.port}], endpoints=[
                *({"addresses": [address], "conditions": {"ready": True}} for address in ready),
                *({"addresses": [address], "conditions": {"ready": False}} for address in unready)])

    def at_service(self, name="hook", **more):
        return {"service": {"namespace": "default", "name": name, "path": "/w", **more}, "caBundle": self.hooks.bundle}

    def test_a_service_is_called_at_a_ready_endpoint(self):
        self.serve()
        self.hooks = self.webhooks("service", names="DNS:hook.default.svc")
        self.hook("w", deny("by the service"), clientConfig=self.at_service())
        begin = f'{FAILED}failed to call webhook: Post "https://hook.default.svc:443/w?timeout=30s": '
        self.assertEqual(self.send("POST", CMS, config("a"), code=500)["message"], begin + 'service "hook" not found')
        self.service(unready=["127.0.0.1"])
        self.eventually(lambda: "no endpoints available for service" in self.send("POST", CMS, config("a"), code=500)["message"])
        self.assertEqual(self.hooks.calls, [])
        self.service(ready=["127.0.0.1"], unready=["127.0.0.2"])
        self.eventually(lambda: "denied the request: by the service" in self.send("POST", CMS, config("a"))["message"])
        call = self.hooks.calls[-1]
        self.assertEqual((call.headers["host"], call.path), ("hook.default.svc:443", "/w"))

    def test_a_service_whose_certificate_has_another_name(self):
        self.serve()
        self.service(ready=["127.0.0.1"])
        self.hook("w", clientConfig=self.at_service())
        message = self.send("POST", CMS, config("a"), code=500)["message"]
        self.assertIn("tls: failed to verify certificate: x509: ", message)
        self.assertIn("hook.default.svc", message)

    def test_a_service_without_the_port(self):
        self.serve()
        self.service(ready=["127.0.0.1"])
        self.hook("w", clientConfig=self.at_service(port=8443))
        self.assertIn('Post "https://hook.default.svc:8443/w?timeout=30s": ', self.send("POST", CMS, config("a"), code=500)["message"])

    def test_one_of_several_endpoints_is_gone(self):
        """The next connection leads to another one."""
        self.serve(threads=1)
        self.hooks = self.webhooks("service", names="DNS:hook.default.svc")
        self.hooks.on("/w", allow)
        self.service(ready=["127.0.0.1", "127.0.0.2"])  # no server listens on the second
        self.hook("w", clientConfig=self.at_service())
        codes = []
        for number in range(20):
            self.send("POST", CMS, config(f"c{number}"))
            codes.append(self.code)
        self.assertIn(201, codes)
        self.assertEqual(set(codes[codes.index(201):]), {201})  # the connection is kept

    # -- Credentials --

    def credentials(self, users):
        """The flag of an admission configuration whose kubeconfig has these users."""
        kubeconfig = self.scratch / "webhooks.kubeconfig"
        kubeconfig.write_text(json.dumps({"apiVersion": "v1", "kind": "Config", "users": users}))
        plugins = [{"name": f"{name}AdmissionWebhook", "configuration": {
            "apiVersion": "apiserver.config.k8s.io/v1", "kind": "WebhookAdmissionConfiguration", "kubeConfigFile": str(kubeconfig)}}
            for name in ("Validating", "Mutating")]
        file = self.scratch / "admission.json"
        file.write_text(json.dumps({"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AdmissionConfiguration", "plugins": plugins}))
        return f"--kube-admission-control-config-file={file}"

    def test_the_server_signs_in(self):
        self.hooks = self.webhooks("asks", clients=True)
        other = self.webhooks("other", clients=True)
        identity = self.authority.sign("server", cn="the-api-server")
        token = self.scratch / "token"
        token.write_text("from-a-file")
        self.serve(self.credentials([
            {"name": f"127.0.0.1:{self.hooks.port}", "user": {"token": "secret", "client-certificate": identity.cert,
                                                              "client-key": identity.key}},
            {"name": "*", "user": {"tokenFile": str(token)}}]))
        for path in (VALIDATING, MUTATING):
            self.hook("w", path=path)
            self.hook("w2", path=path, server=other)
            self.send("POST", CMS, config("a" if path == VALIDATING else "b"), code=201)
            call, other_call = self.hooks.of("/w")[-1], other.of("/w2")[-1]
            self.assertEqual(call.headers["authorization"], "Bearer secret")
            self.assertIn((("commonName", "the-api-server"),), call.certificate["subject"])
            self.assertEqual(other_call.headers["authorization"], "Bearer from-a-file")
            self.assertEqual(other_call.certificate, {} if other_call.certificate == {} else None)

    def test_the_server_does_not_sign_in_without_a_configuration(self):
        self.serve()
        self.hook("w")
        self.send("POST", CMS, config("a"), code=201)
        self.assertNotIn("authorization", self.hooks.calls[-1].headers)

    # -- What is never sent --

    def test_configurations_and_policies_are_never_sent(self):
        """Otherwise no client could remove a webhook that refuses everything."""
        self.serve()
        self.hook("w", deny("no"), rules=[{"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"], "operations": ["*"]}])
        self.send("POST", CMS, config("a"), code=400)
        self.send("PATCH", f"{VALIDATING}/w", {"metadata": {"labels": {"a": "b"}}}, 200, MERGE)
        self.unhook("w")
        self.send("POST", CMS, config("a"), code=201)


if __name__ == "__main__":
    unittest.main()
