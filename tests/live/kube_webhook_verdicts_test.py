#!/usr/bin/python3
"""What admission webhooks have allowed is what is stored, whatever happens between their answer and the write; and a configuration
that cannot be used as it stands refuses instead of being ignored."""
import contextlib
import http.client
import json
import random
import re
import socket
import time
import unittest

import webhooks
from certs import Authority
from kube import KubeServer
from server import WAIT_SECONDS, LiveTest, only_vigil
from webhooks import Webhooks, add, allow, patch

GROUP = "/apis/admissionregistration.k8s.io/v1"
VALIDATING, MUTATING = f"{GROUP}/validatingwebhookconfigurations", f"{GROUP}/mutatingwebhookconfigurations"
SPACE = "/api/v1/namespaces/default"
CMS, SERVICES, QUOTAS = f"{SPACE}/configmaps", f"{SPACE}/services", f"{SPACE}/resourcequotas"
MERGE = "application/merge-patch+json"


def rule(resources, operations="*"):
    return {"apiGroups": [""], "apiVersions": ["v1"], "resources": resources.split(","), "operations": operations.split(",")}


def service(name, **spec):
    return {"metadata": {"name": name}, "spec": {"ports": [{"port": 80}], **spec}}


def seconds(text):
    """A duration in the log, such as "568.871µs"."""
    number, unit = re.fullmatch(r"([\d.]+)(ns|µs|ms|s)", text).groups()
    return float(number) * {"ns": 1e-9, "µs": 1e-6, "ms": 1e-3, "s": 1}[unit]


@only_vigil
class KubeWebhookVerdicts(LiveTest):
    def setUp(self):
        super().setUp()
        self.hooks = Webhooks(self.scratch, authority=Authority(self.scratch / "authority"))
        self.addCleanup(self.hooks.stop)
        self.kube = KubeServer(self.scratch / "data", ["--io-threads=2"])
        self.addCleanup(self.kube.kill)
        self.addCleanup(self.kube.close)
        self.kube.start()

    def send(self, method, path, body=None, code=None, content_type="application/json"):
        connection = http.client.HTTPConnection("127.0.0.1", self.kube.kube_port, timeout=WAIT_SECONDS)
        connection.request(method, path, json.dumps(body) if body is not None else None, {"Content-Type": content_type})
        answer = connection.getresponse()
        made = json.loads(answer.read())
        connection.close()
        self.code = answer.status
        if code:
            self.assertEqual(answer.status, code, made)
        return made

    def webhook(self, where, behaviour=allow, rules=(), **more):
        return {"name": "w.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"], "timeoutSeconds": 30,
                "rules": list(rules), "clientConfig": self.hooks.on(where, behaviour), **more}

    def hook(self, name, behaviour, rules, path=VALIDATING, code=201, **more):
        body = {"metadata": {"name": name}, "webhooks": [self.webhook(f"/{name}", behaviour, rules, **more)]}
        self.send("POST", path, body, code)
        return f"/{name}"

    def quota(self, **hard):
        self.send("POST", QUOTAS, {"metadata": {"name": "q"}, "spec": {"hard": hard}}, 201)

    def change_quota(self, **hard):
        """Whatever is charged to the quota has to be decided again."""
        self.send("PATCH", f"{QUOTAS}/q", {"spec": {"hard": hard}}, 200, MERGE)

    # -- Writes that are decided again --

    def test_an_address_that_is_taken_meanwhile_is_not_replaced_unseen(self):
        """Validating webhooks see the address with which the service is stored."""
        def take(call):
            if call.name == "first" and len(self.hooks.of("/w")) == 1:
                self.send("POST", SERVICES, service("second", clusterIP=call.object["spec"]["clusterIP"]), 201)
        self.hook("w", webhooks.calls(take), [rule("services", "CREATE")])
        made = self.send("POST", SERVICES, service("first"), 201)
        seen = [call.object["spec"]["clusterIP"] for call in self.hooks.of("/w") if call.name == "first"]
        self.assertEqual(seen[-1], made["spec"]["clusterIP"])
        self.assertEqual(len(seen), 2)

    def test_a_webhook_is_not_called_again_for_the_same_object(self):
        self.quota(**{"count/configmaps": "100", "services.nodeports": "10"})
        self.send("POST", SERVICES, service("s"), 201)

        def once(call):
            if len(self.hooks.of("/v")) == 1:
                self.change_quota(**{"count/configmaps": "200", "services.nodeports": "20"})
        self.hook("m", patch(add("/metadata/annotations", {"a": "b"})), [rule("services,configmaps")], MUTATING)
        self.hook("v", webhooks.calls(once), [rule("services,configmaps")])
        for method, path, body, code in (("POST", CMS, {"metadata": {"name": "c"}}, 201),
                                         ("PATCH", f"{SERVICES}/s", {"spec": {"type": "NodePort"}}, 200)):
            self.hooks.clear()
            made = self.send(method, path, body, code, MERGE if method == "PATCH" else "application/json")
            self.assertEqual(made["metadata"]["annotations"], {"a": "b"})
            self.assertEqual([call.path for call in self.hooks.calls], ["/m", "/v"])

    def test_what_webhooks_have_not_seen_is_not_stored(self):
        """The mutating webhook is gone when the update is decided again, so that another object would be stored."""
        self.quota(**{"services.nodeports": "10"})
        self.send("POST", SERVICES, service("s"), 201)

        def meanwhile(call):
            if len(self.hooks.of("/v")) == 1:
                self.send("DELETE", f"{MUTATING}/m", code=200)
                self.change_quota(**{"services.nodeports": "20"})
        self.hook("m", patch(add("/metadata/annotations", {"safe": "true"})), [rule("services")], MUTATING)
        self.hook("v", webhooks.calls(meanwhile), [rule("services", "UPDATE")])
        made = self.send("PATCH", f"{SERVICES}/s", {"spec": {"type": "NodePort"}}, 200, MERGE)
        seen = self.hooks.of("/v")[-1].object
        self.assertEqual(seen["metadata"].get("annotations"), made["metadata"].get("annotations"))
        self.assertEqual(seen["spec"], made["spec"])

    def test_a_create_that_becomes_an_update(self):
        """Another client has created the object meanwhile: all webhooks see the update."""
        rows = [{"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["configmaps", "roles"], "operations": ["*"]}]

        def meanwhile(call):
            if call.request["operation"] == "CREATE" and call.object["metadata"]["labels"] == {"of": "first"}:
                self.send("POST", base, {"metadata": {"name": "a", "labels": {"of": "other"}}}, 201)
        self.hook("m", patch(lambda call: add("/metadata/annotations", {"seen": call.request["operation"]})), rows, MUTATING)
        self.hook("v", webhooks.calls(meanwhile), rows)
        apply = "application/apply-patch+yaml"
        for method, base, query, content_type in (
                ("PUT", "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles", "", "application/json"),
                ("PATCH", CMS, "?fieldManager=me&force=true", apply)):
            self.hooks.clear()
            version, kind = ("rbac.authorization.k8s.io/v1", "Role") if method == "PUT" else ("v1", "ConfigMap")
            made = self.send(method, f"{base}/a{query}", {"apiVersion": version, "kind": kind, "metadata": {
                "name": "a", "labels": {"of": "first"}}}, 200, content_type)
            self.assertEqual(made["metadata"]["annotations"], {"seen": "UPDATE"})
            self.assertEqual(made["metadata"]["labels"], {"of": "first"})
            self.assertEqual(self.hooks.of("/v")[-1].object["metadata"]["annotations"], {"seen": "UPDATE"})
            self.assertEqual(sorted((call.path, call.request["operation"]) for call in self.hooks.calls), [
                ("/m", "CREATE"), ("/m", "CREATE"), ("/m", "UPDATE"), ("/v", "CREATE"), ("/v", "CREATE"), ("/v", "UPDATE")])

    # -- Memory --

    def test_a_chain_of_webhooks_changes_a_large_object(self):
        """The write holds one object, and not one for each of the webhooks."""
        count = 25
        body = [{**self.webhook(f"/m{number}", patch(add(f"/metadata/annotations/a{number}", "b")), [rule("configmaps")]),
                 "name": f"w{number}.example.com"} for number in range(count)]
        self.send("POST", MUTATING, {"metadata": {"name": "m"}, "webhooks": body}, 201)
        seen = self.hook("v", allow, [rule("configmaps")])
        data = {f"k{number}": "" for number in range(25_000)}
        self.send("POST", CMS, {"metadata": {"name": "c", "annotations": {"z": "z"}}, "data": data}, 201)
        for path, patched in ((CMS, None), (f"{CMS}/c", {"data": {"new": "\u00e9\""}})):
            made = self.send("PATCH", path, patched, 200, MERGE) if patched else self.send("GET", f"{CMS}/c", code=200)
            self.assertEqual(made["metadata"]["annotations"], {"z": "z", **{f"a{number}": "b" for number in range(count)}})
            self.assertEqual(made["data"], {**data, **(patched or {}).get("data", {})})
            self.assertEqual(self.hooks.of(seen)[-1].object["data"], made["data"])

    def test_a_chain_of_webhooks_changes_a_large_object_twice(self):
        """In the second pass, too, the write holds few objects."""
        count = 25

        def change(number):
            def behave(call):
                second = f"a{number}" in call.object["metadata"]["annotations"]
                patch(add(f"/metadata/annotations/{'b' if second else 'a'}{number}", "c"))(call)
            return behave
        body = [{**self.webhook(f"/m{number}", change(number), [rule("configmaps")]), "name": f"w{number}.example.com",
                 "reinvocationPolicy": "IfNeeded"} for number in range(count)]
        self.send("POST", MUTATING, {"metadata": {"name": "m"}, "webhooks": body}, 201)
        data = {f"k{number}": "" for number in range(25_000)}
        made = self.send("POST", CMS, {"metadata": {"name": "c", "annotations": {"z": "z"}}, "data": data}, 201)
        twice = {f"{name}{number}": "c" for name in "ab" for number in range(count)}
        self.assertEqual(made["data"], data)
        self.assertEqual({**twice, **made["metadata"]["annotations"]}, {"z": "z", **twice})
        self.assertGreater(len(made["metadata"]["annotations"]), 2 * count - 1)
        changed = self.send("PATCH", f"{CMS}/c", {"data": {"new": "value"}}, 200, MERGE)
        self.assertEqual(changed["data"], {**data, "new": "value"})

    def test_long_answers_delay_no_other_request(self):
        """They are read on the worker."""
        long = webhooks.padded(7_000_000)
        body = [{**self.webhook("/v", long, [rule("configmaps")]), "name": f"w{number}.example.com"} for number in range(12)]
        for path, count in ((VALIDATING, 12), (MUTATING, 1)):
            self.send("POST", path, {"metadata": {"name": "v"}, "webhooks": body[:count]}, 201)
            self.send("POST", CMS + "?dryRun=All", {"metadata": {"name": "c"}}, 201)
            self.send("DELETE", f"{path}/v", code=200)
        turns = [json.loads(line) for line in list(self.kube.lines) if '"msg":"a turn took long"' in line]
        self.assertEqual([turn for turn in turns if turn["thread"] == "io" and seconds(turn["cpu"]) > 0.06], [])

    def test_many_webhooks_are_called(self):
        """Each of them once, and the last one too; long reviews are written on the worker."""
        count = 450
        body = [{**self.webhook("/v", allow, [rule("configmaps")]), "name": f"w{number}.example.com"} for number in range(count)]
        refuses = {**self.webhook("/last", webhooks.deny("no"), [rule("configmaps")]), "name": "last.example.com"}
        self.send("POST", VALIDATING, {"metadata": {"name": "v"}, "webhooks": body}, 201)
        for size in (1, 20_000):
            self.hooks.clear()
            self.send("POST", CMS, {"metadata": {"name": f"c{size}"}, "data": {"a": "x" * size}}, 201)
            uids = [call.request["uid"] for call in self.hooks.of("/v")]
            self.assertEqual((len(uids), len(set(uids))), (count, count))
            self.assertTrue(all(call.object["data"]["a"] == "x" * size for call in self.hooks.of("/v")))
        self.send("POST", VALIDATING, {"metadata": {"name": "z"}, "webhooks": [refuses]}, 201)
        self.send("POST", CMS, {"metadata": {"name": "refused"}}, 400)

    # -- Clients that do not wait --

    def test_clients_leave_at_any_time(self):
        """While webhooks are called, and while the worker reads the object; the server continues, and stops as it should."""
        chance = random.Random(7)
        for number in range(3):
            self.hook(f"m{number}", patch(add(f"/metadata/annotations/a{number}", "b")), [rule("configmaps")], MUTATING,
                      reinvocationPolicy="IfNeeded")
            self.hook(f"v{number}", allow, [rule("configmaps")])
        for number in range(300):
            data = {f"k{at}": "x" * 40 for at in range(chance.choice((1, 200, 3000)))}
            method, path = chance.choice((("POST", CMS), ("PATCH", f"{CMS}/c{number - 1}"), ("DELETE", CMS),
                                          ("DELETE", f"{CMS}/c{number}")))
            text = json.dumps({"metadata": {"name": f"c{number}", "annotations": {"z": "z"}}, "data": data} if method == "POST" else
                              {"data": data} if method == "PATCH" else {}).encode()
            with socket.create_connection(("127.0.0.1", self.kube.kube_port), timeout=WAIT_SECONDS) as connection:
                kind = MERGE if method == "PATCH" else "application/json"
                head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: {kind}\r\nContent-Length: {len(text)}\r\n\r\n"
                connection.sendall(head.encode() + text)
                connection.settimeout(chance.choice((0.001, 0.003, 0.01, 0.03)))
                with contextlib.suppress(TimeoutError):
                    connection.recv(1)
        self.assertGreater(len(self.hooks.of("/m0")), 30)
        self.send("POST", CMS, {"metadata": {"name": "after", "annotations": {"z": "z"}}}, 201)
        self.kube.stop()

    def test_a_client_that_leaves_ends_the_calls_for_its_write(self):
        """Long before they time out."""
        for kind in (MUTATING, VALIDATING):
            self.hook("w", webhooks.hang, [rule("configmaps")], kind)
            begun = time.monotonic()
            with socket.create_connection(("127.0.0.1", self.kube.kube_port), timeout=WAIT_SECONDS) as connection:
                text = '{"metadata": {"name": "a"}}'
                connection.sendall(f"POST {CMS} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
                                   f"Content-Length: {len(text)}\r\n\r\n{text}".encode())
                self.hooks.wait_until(lambda: self.hooks.waiting == 1)
            self.hooks.wait_until(lambda: self.hooks.waiting == 0)
            self.assertLess(time.monotonic() - begun, 15)
            self.send("DELETE", f"{kind}/w", code=200)

    # -- Configurations --

    def test_a_configuration_that_exceeds_a_limit_is_not_ignored(self):
        """It is refused. One that a client of etcd has stored refuses every write, and can be removed."""
        none = self.webhook("/none", rules=[rule("nothing")])
        last = self.webhook("/last", rules=[rule("configmaps")], failurePolicy="Ignore")
        long = self.webhook("/long", rules=[rule("secrets"), rule(",".join(f"r{number}" for number in range(10_001)))])
        for some, why in (([{**none, "name": f"w{number}.example.com"} for number in range(1000)] + [last], "more than 1000 webhooks"),
                          ([none, {**long, "failurePolicy": "Ignore"}], "names more than 10000")):
            body = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration", "metadata": {"name": "w"},
                    "webhooks": some}
            self.send("POST", VALIDATING, body, 422)
            self.kube.put_raw("/registry/validatingwebhookconfigurations/w", json.dumps(body))
            self.eventually(lambda: "kind" in self.send("POST", SERVICES + "?dryRun=All", service("s")) and self.code == 500)
            for path in (CMS, SERVICES):
                message = self.send("POST", path, service("s") if path == SERVICES else {"metadata": {"name": "c"}}, 500)["message"]
                self.assertIn("this server cannot use it: ", message)
                self.assertIn(why, message)
            self.send("DELETE", f"{VALIDATING}/w", code=200)
            self.send("POST", CMS + "?dryRun=All", {"metadata": {"name": "c"}}, 201)


if __name__ == "__main__":
    unittest.main()
