#!/usr/bin/python3
"""The watch tier in front of a real kube-apiserver: what clients see through it, and whether they may see it. VIGIL_TIER=none
verifies the expectations on the kube-apiserver itself."""
import contextlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/live"))
sys.path.insert(0, str(ROOT / "tests/kube"))
from apiserver_test import KUBE, READY_SECONDS, WAIT_SECONDS, Apiserver  # noqa: E402
from certs import Authority  # noqa: E402
from server import Server  # noqa: E402
from tier import Caller, Tier  # noqa: E402

DIRECT = os.environ.get("VIGIL_TIER") == "none"
TABLE = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"}
EARLY_WATCHES = 8  # TIER_EARLY_WATCHES_MAX
INITIAL = "watch=1&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"


class NoTier:
    """The kube-apiserver in the place of the tier."""

    def __init__(self, apiserver, authority):
        self.port, self.authority = apiserver.port, authority
        self.url = f"https://127.0.0.1:{self.port}"


def version(made):
    """For a read that must see the object: one with version 0 may be older."""
    return made["metadata"]["resourceVersion"]


def config_map(name, **data):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


class InFrontOfOne(unittest.TestCase):
    """The tests share a kube-apiserver and a tier; each has its own namespace, made through the tier."""
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        scratch = tempfile.TemporaryDirectory(prefix="vigil-tier-")
        cls.addClassCleanup(scratch.cleanup)
        cls.scratch = pathlib.Path(scratch.name)
        backend = Server(str(cls.scratch / "backend"))
        backend.start()
        cls.addClassCleanup(backend.stop)
        authority = Authority(cls.scratch / "direct")
        served = authority.sign("server")
        cls.apiserver = Apiserver(cls.scratch, backend.url, (
            f"--client-ca-file={authority.cert}", f"--tls-cert-file={served.cert}", f"--tls-private-key-file={served.key}"))
        cls.addClassCleanup(cls.apiserver.stop)
        if DIRECT:
            cls.tier = NoTier(cls.apiserver, authority)
        else:
            cls.tier = Tier(cls.scratch, f"https://127.0.0.1:{cls.apiserver.port}")
            cls.tier.start()
            cls.addClassCleanup(cls.tier.stop)
        cls.apiserver.wait_ready()
        cls.admin = Caller(cls.tier.port, "the-token")
        cls.direct = Caller(cls.apiserver.port, "the-token")
        cls.jane = Caller(cls.tier.port, "weak-token")
        # The kube-apiserver makes it a little later than it is ready.
        cls.eventually(lambda: cls.direct.get("/api/v1/namespaces/default")[0] == 200)

    @staticmethod
    def eventually(condition, seconds=READY_SECONDS):
        end = time.monotonic() + seconds
        while not (found := condition()):
            if time.monotonic() > end:
                raise AssertionError("the condition did not become true")
            time.sleep(0.1)
        return found

    def setUp(self):
        self.name = self.id().rsplit(".", 1)[-1].removeprefix("test_").replace("_", "-")[:50]
        status, body = self.admin.send("POST", "/api/v1/namespaces", {
            "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.name}})
        self.assertEqual(status, 201, body)
        self.maps = f"/api/v1/namespaces/{self.name}/configmaps"

    def make(self, name, caller=None, **data):
        status, body = (caller or self.admin).send("POST", self.maps, config_map(name, **data))
        self.assertEqual(status, 201, body)
        return body

    def watch(self, path, caller=None, headers=()):
        events = (caller or self.admin).watch(path, headers)
        self.addCleanup(events.close)
        self.assertEqual(events.status, 200)
        return events

    def kubectl(self, *args, given=None, token="the-token"):
        done = subprocess.run(
            [str(KUBE / "kubectl"), f"--server={self.tier.url}", f"--token={token}", f"--certificate-authority={self.tier.authority.cert}",
             f"--cache-dir={self.scratch}/cache-{token}", "-n", self.name, *args],
            input=None if given is None else json.dumps(given), capture_output=True, text=True, check=False,
            timeout=WAIT_SECONDS, env=dict(os.environ, KUBECONFIG="/dev/null"))
        return done.returncode, done.stdout + done.stderr

    # -- What is the same as at the kube-apiserver --

    def test_version_and_discovery(self):
        for path in ("/version", "/api", "/apis", "/api/v1", "/openapi/v3"):
            ours, theirs = self.admin.get(path), self.direct.get(path)
            self.assertEqual(ours[0], 200, path)
            if path != "/api":  # it has the address of the server
                self.assertEqual(ours, theirs, path)

    def test_a_get_and_lists(self):
        made = [self.make(f"a{i}", k=str(i)) for i in range(5)]
        for path in (f"{self.maps}/a1", f"{self.maps}/a1?resourceVersion={version(made[1])}"):
            self.assertEqual(self.admin.get(path), (200, made[1]), path)
        self.assertEqual(self.admin.get(f"{self.maps}/none")[1], self.direct.get(f"{self.maps}/none")[1])
        newest = made[-1]["metadata"]["resourceVersion"]
        for query in ("", f"?resourceVersion={newest}&resourceVersionMatch=NotOlderThan", "?fieldSelector=metadata.name!=b"):
            for path in (self.maps, "/api/v1/configmaps"):
                ours, theirs = self.admin.get(path + query), self.direct.get(path + query)
                self.assertEqual((ours[0], theirs[0]), (200, 200), path + query)
                self.assertGreaterEqual(int(ours[1]["metadata"]["resourceVersion"]), int(newest))
                self.assertEqual(ours[1]["items"], theirs[1]["items"], path + query)
                self.assertEqual({k: v for k, v in ours[1].items() if k not in ("items", "metadata")},
                                 {k: v for k, v in theirs[1].items() if k not in ("items", "metadata")})

    def test_a_long_selector(self):
        self.make("a")
        for bytes_of_it in (10_000, 14_000, 40_000):
            selector = "labelSelector=a+notin+(" + ",".join(f"v{i:06d}" for i in range(bytes_of_it // 8)) + ")"
            for query in (selector, f"{selector}&resourceVersion=0&resourceVersionMatch=NotOlderThan"):
                status, body = self.admin.get(f"{self.maps}?{query}")
                self.assertEqual((status, len(body.get("items", ()))), (200, 1), body)

    def test_pages(self):
        newest = [version(self.make(f"a{i}")) for i in range(7)][-1]
        names, token = [], ""
        while True:
            status, body = self.admin.get(f"{self.maps}?limit=3&resourceVersion={newest}&resourceVersionMatch=NotOlderThan" if not token
                                          else f"{self.maps}?limit=3&continue={token}")
            self.assertEqual(status, 200, body)
            names += [item["metadata"]["name"] for item in body["items"]]
            token = body["metadata"].get("continue", "")
            if not token:
                break
        self.assertEqual([name for name in names if name.startswith("a")], [f"a{i}" for i in range(7)])

    # -- Tables --

    def as_tables(self, caller, path):
        status, table = caller.get(path, headers=TABLE)
        self.assertEqual((status, table["kind"]), (200, "Table"), table)
        return table

    @staticmethod
    def without_ages(tables):
        """Without cells of ages, which grow meanwhile, and the descriptions of columns, which are shorter here."""
        for table in tables:
            for column in table["columnDefinitions"] or ():
                del column["description"]
            columns = table["columnDefinitions"] or tables[0]["columnDefinitions"]
            ages = [i for i, column in enumerate(columns) if column["name"] == "Age"]
            for row in table["rows"]:
                row["cells"] = [cell for i, cell in enumerate(row["cells"]) if i not in ages]
        # A kube-apiserver sometimes repeats the columns in later events.
        for table in tables[1:]:
            del table["columnDefinitions"]
        return tables

    def until_tables_are_ours(self):
        """The mirror has the resource, and each thread knows the version of the kube-apiserver."""
        self.assertEqual(self.admin.get("/api/v1/configmaps?resourceVersion=0")[0], 200)
        for _ in range(0 if DIRECT else 20):
            answered = self.tier.metric("vigil_tier_lists_total")

            def is_ours(before=answered):
                self.as_tables(self.admin, "/api/v1/configmaps?resourceVersion=0")
                return self.tier.metric("vigil_tier_lists_total") > before
            self.eventually(is_ours)

    def test_tables_are_made_of_the_mirror(self):
        newest = [version(self.make(f"a{i}", k=str(i))) for i in range(5)][-1]
        self.until_tables_are_ours()
        for query in ("", "&includeObject=None", "&fieldSelector=metadata.name!=a1", "&resourceVersionMatch=Exact&limit=2"):
            path = f"{self.maps}?resourceVersion={newest}{query}"
            tables = [self.as_tables(caller, path) for caller in (self.admin, self.direct)]
            for table in tables:
                self.assertGreaterEqual(int(table["metadata"].pop("resourceVersion")), int(newest))
                table["metadata"].pop("continue", None)
            ours, theirs = map(self.without_ages, ([table] for table in tables))
            self.assertEqual(ours, theirs, query)

    def test_a_watch_of_tables(self):
        before = version(self.make("before"))
        self.until_tables_are_ours()
        self.assertEqual(self.admin.get(f"/api/v1/configmaps?resourceVersion={before}")[0], 200)
        began = 0 if DIRECT else self.tier.metric("vigil_tier_watches_total")
        # kubectl get -w
        path = f"{self.maps}?watch=1&resourceVersion={before}&labelSelector=!hidden"
        both = [self.watch(path, caller, headers=TABLE) for caller in (self.admin, self.direct)]
        self.make("after", k="v")
        self.admin.send("PATCH", f"{self.maps}/after", {"data": {"l": "w"}}, headers={"Content-Type": "application/merge-patch+json"})
        self.admin.send("PATCH", f"{self.maps}/before", {"metadata": {"labels": {"hidden": ""}}},
                        headers={"Content-Type": "application/merge-patch+json"})
        self.admin.send("DELETE", f"{self.maps}/after")
        for events in both:
            events.wait(lambda w: len(w.events) >= 4)
        ours, theirs = ([event["type"] for event in events.events] for events in both)
        self.assertEqual(ours, ["ADDED", "MODIFIED", "DELETED", "DELETED"])
        self.assertEqual(ours, theirs)
        ours, theirs = (self.without_ages([event["object"] for event in events.events]) for events in both)
        self.assertEqual(ours, theirs)
        if not DIRECT:
            self.assertEqual(self.tier.metric("vigil_tier_watches_total"), began + 1)

    def test_a_watch_of_tables_from_before_the_mirror_is_passed_on(self):
        leases = f"/apis/coordination.k8s.io/v1/namespaces/{self.name}/leases"
        self.until_tables_are_ours()
        listed = self.as_tables(self.admin, leases)["metadata"]["resourceVersion"]
        self.make("something-else")  # so that the mirror begins later
        body = {"metadata": {"name": "a"}, "spec": {"holderIdentity": "b"}}
        events = self.watch(f"{leases}?watch=1&resourceVersion={listed}", headers=TABLE)
        self.assertEqual(self.admin.send("POST", leases, body)[0], 201)
        events.wait(lambda w: len(w.events) >= 1)
        self.assertEqual((events.events[0]["type"], events.events[0]["object"]["kind"]), ("ADDED", "Table"))

    # -- Watches --

    def test_a_watch_from_a_list_sees_writes_of_both(self):
        self.make("before")
        version = self.admin.get(self.maps)[1]["metadata"]["resourceVersion"]
        events = self.watch(f"{self.maps}?watch=1&resourceVersion={version}")
        self.make("one")
        self.assertEqual(self.direct.send("POST", self.maps, config_map("two"))[0], 201)
        self.assertEqual(self.admin.send("DELETE", f"{self.maps}/one")[0], 200)
        events.wait(lambda w: w.names()[-1:] == [("DELETED", "one")])
        self.assertEqual(events.names(), [("ADDED", "one"), ("ADDED", "two"), ("DELETED", "one")])
        versions = [int(e["object"]["metadata"]["resourceVersion"]) for e in events.events]
        self.assertEqual(versions, sorted(set(versions)))

    def test_a_watch_that_begins_with_the_state(self):
        made = [self.make(f"a{i}") for i in range(3)]
        for path in (self.maps, "/api/v1/configmaps"):
            events = self.watch(f"{path}?{INITIAL}")
            events.wait_initial()
            ours = [e for e in events.events if e["object"]["metadata"].get("namespace") == self.name]
            names = {e["object"]["metadata"]["name"] for e in ours}
            self.assertLessEqual({m["metadata"]["name"] for m in made}, names, path)
            self.assertEqual({e["type"] for e in ours}, {"ADDED"})
            self.assertEqual([e["object"] for e in ours if e["object"]["metadata"]["name"] == "a1"], [made[1]])
            later = f"later-{'all' if path == self.maps else 'one'}"
            self.make(later)
            events.wait(lambda w, later=later: ("ADDED", later) in w.names())

    def test_a_client_sees_its_own_writes(self):
        self.make("mine", k="0")
        for i in range(20):
            body = self.admin.send("PATCH", f"{self.maps}/mine", {"data": {"k": str(i)}},
                                   headers={"Content-Type": "application/merge-patch+json"})
            self.assertEqual(body[0], 200, body)
            for path in (self.maps, "/api/v1/configmaps"):
                items = self.admin.get(path)[1]["items"]
                found = [item["data"]["k"] for item in items
                         if item["metadata"]["name"] == "mine" and item["metadata"]["namespace"] == self.name]
                self.assertEqual(found, [str(i)], path)

    def test_a_watch_from_a_version_before_the_mirror(self):
        """Its list was passed on, and the mirror begins with the watch."""
        path = f"/api/v1/namespaces/{self.name}/podtemplates"
        template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}

        def write(name):
            self.assertEqual(self.direct.send("POST", path, {"metadata": {"name": name}, "template": template})[0], 201)
        status, found = self.admin.get(path)
        self.assertEqual((status, found["items"]), (200, []))
        write("one")
        self.assertEqual(self.direct.send("DELETE", f"{path}/one")[0], 200)
        for count in range(EARLY_WATCHES + 1):
            events = self.watch(f"{path}?watch=1&resourceVersion={found['metadata']['resourceVersion']}")
            if DIRECT or count < EARLY_WATCHES:
                events.wait(lambda w: len(w.names()) == 2)
                self.assertEqual(events.names(), [("ADDED", "one"), ("DELETED", "one")])
            else:  # when a tier has restarted, not all watches are passed on
                events.wait(lambda w: w.events)
                self.assertEqual(events.events[0]["object"]["code"], 410)

    @unittest.skipIf(DIRECT, "its history is longer")
    def test_a_watch_from_a_version_that_is_gone(self):
        for _ in range(EARLY_WATCHES):
            self.watch(f"{self.maps}?watch=1&resourceVersion=1")
        events = self.admin.watch(f"{self.maps}?watch=1&resourceVersion=1")
        self.addCleanup(events.close)
        events.wait(lambda w: w.events)
        self.assertEqual(events.events[0]["type"], "ERROR")
        self.assertEqual(events.events[0]["object"]["code"], 410)

    def test_large_bodies(self):
        made = self.make("large", k="x" * (900 << 10))
        self.assertEqual(self.admin.get(f"{self.maps}/large"), (200, made))
        self.assertEqual(self.admin.get(f"{self.maps}/large?resourceVersion={version(made)}"), (200, made))
        # It is the kube-apiserver that limits them.
        body = json.dumps(config_map("huge", k="x" * (4 << 20)))
        ours, theirs = (caller.send("POST", self.maps, body) for caller in (self.admin, self.direct))
        self.assertEqual(ours[0], 413)
        self.assertEqual(ours, theirs)

    # -- kubectl --

    def test_kubectl(self):
        given = dict(config_map("by-kubectl", k="1"))
        self.assertEqual(self.kubectl("create", "-f", "-", given=given), (0, "configmap/by-kubectl created\n"))
        code, text = self.kubectl("get", "configmap", "by-kubectl", "-o", "jsonpath={.data.k}")
        self.assertEqual((code, text), (0, "1"))
        code, text = self.kubectl("get", "configmaps")
        self.assertIn("by-kubectl", text)
        with contextlib.closing(self.tier_watch("configmaps")) as lines:
            self.assertIn("by-kubectl", next(lines))
            self.assertEqual(self.kubectl("label", "configmap", "by-kubectl", "a=b")[0], 0)
            self.assertIn("by-kubectl", next(lines))
        self.assertEqual(self.kubectl("delete", "configmap", "by-kubectl")[0], 0)
        code, text = self.kubectl("get", "configmaps", token="weak-token")
        self.assertEqual(code, 1)
        self.assertIn('User "jane" cannot list resource "configmaps"', text)

    def tier_watch(self, *args):
        process = subprocess.Popen(
            [str(KUBE / "kubectl"), f"--server={self.tier.url}", "--token=the-token", f"--certificate-authority={self.tier.authority.cert}",
             f"--cache-dir={self.scratch}/cache-watch", "-n", self.name, "get", *args, "--watch",
             "--field-selector=metadata.name=by-kubectl", "-o", "name"],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=dict(os.environ, KUBECONFIG="/dev/null"))
        try:
            yield from process.stdout
        finally:
            process.kill()
            process.wait()
            process.stdout.close()

    # -- Who --

    def test_no_client_is_let_in_with_a_wrong_token(self):
        stranger = Caller(self.tier.port, "no-token-of-anyone")
        for path in (self.maps, f"{self.maps}/a?resourceVersion=0", f"{self.maps}?watch=1", "/version"):
            status, body = stranger.get(path)
            self.assertEqual((status, body["reason"]), (401, "Unauthorized"), path)
        self.assertEqual(stranger.send("POST", self.maps, config_map("x"))[0], 401)

    def test_a_user_without_rights_learns_nothing(self):
        self.make("secret")
        for path in (self.maps, "/api/v1/configmaps", f"{self.maps}/secret?resourceVersion=0", f"{self.maps}/none?resourceVersion=0",
                     f"{self.maps}/secret", f"{self.maps}?watch=1", f"{self.maps}?{INITIAL}"):
            status, ours = self.jane.get(path)
            theirs = Caller(self.apiserver.port, "weak-token").get(path)[1]
            self.assertEqual(status, 403, path)
            self.assertEqual(ours, theirs, path)
        anonymous = Caller(self.tier.port)
        status, body = anonymous.get(self.maps)
        self.assertEqual((status, body["reason"]), (403, "Forbidden"))
        self.assertIn("system:anonymous", body["message"])

    def test_a_user_with_rights_in_one_namespace(self):
        rights = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "reader"},
                  "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "watch"]}]}
        binding = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "reader"},
                   "subjects": [{"kind": "User", "name": "jane", "apiGroup": "rbac.authorization.k8s.io"}],
                   "roleRef": {"kind": "Role", "name": "reader", "apiGroup": "rbac.authorization.k8s.io"}}
        root = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{self.name}"
        hers = self.make("hers")
        self.assertEqual(self.jane.get(self.maps)[0], 403)
        self.assertEqual(self.admin.send("POST", f"{root}/roles", rights)[0], 201)
        self.assertEqual(self.admin.send("POST", f"{root}/rolebindings", binding)[0], 201)
        self.eventually(lambda: self.jane.get(self.maps)[0] == 200)
        self.assertEqual(self.jane.get(f"{self.maps}/hers?resourceVersion={version(hers)}")[0], 200)
        self.assertEqual(self.jane.get("/api/v1/configmaps")[0], 403)
        self.assertEqual(self.jane.send("POST", self.maps, config_map("x"))[0], 403)
        events = self.watch(f"{self.maps}?{INITIAL}", self.jane)
        events.wait_initial()
        if DIRECT:  # its watch continues
            return
        # At once when the binding is gone, not within a minute.
        self.assertEqual(self.admin.send("DELETE", f"{root}/rolebindings/reader")[0], 200)
        events.wait_end()
        self.eventually(lambda: self.jane.get(self.maps)[0] == 403)

    def test_a_client_with_a_certificate(self):
        ordinary = Caller(self.tier.port, identity=self.tier.authority.sign("ordinary", cn="jack", groups=["people"], uid="u-7"))
        chief = Caller(self.tier.port, identity=self.tier.authority.sign("chief", cn="chief", groups=["system:masters"]))
        made = self.make("by-chief", chief)
        status, body = ordinary.get(self.maps)
        self.assertEqual(status, 403)
        self.assertIn('User "jack" cannot list', body["message"])
        self.assertEqual(ordinary.send("POST", self.maps, config_map("x"))[0], 403)
        self.assertEqual(chief.get(f"{self.maps}/by-chief?resourceVersion={version(made)}"), (200, made))
        review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
        status, body = ordinary.send("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", review)
        self.assertEqual(status, 201, body)
        self.assertEqual(body["status"]["userInfo"]["username"], "jack")
        self.assertEqual(sorted(body["status"]["userInfo"]["groups"]), ["people", "system:authenticated"])
        # The same user, with the uid and the certificate, as at the kube-apiserver itself.
        self.assertEqual(body["status"]["userInfo"]["uid"], "u-7")
        credential, = body["status"]["userInfo"]["extra"]["authentication.kubernetes.io/credential-id"]
        self.assertTrue(credential.startswith("X509SHA256="), credential)
        # An account that has no groups of accounts does not get them.
        account = Caller(self.tier.port, identity=self.tier.authority.sign("account", cn="system:serviceaccount:shop:clerk"))
        status, body = account.send("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", review)
        self.assertEqual((status, body["status"]["userInfo"]["groups"]), (201, ["system:authenticated"]))

    def test_a_certificate_whose_names_a_field_cannot_have(self):
        for number, (name, group) in enumerate(((" chief", "people"), ("jill", " system:masters"), ("jill", "system:masters\t"))):
            caller = Caller(self.tier.port, identity=self.tier.authority.sign(f"blanks-{number}", cn=name, groups=[group]))
            self.assertEqual(caller.send("POST", self.maps, config_map(f"by-{number}"))[0], 403, (name, group))
            self.assertEqual(caller.get(self.maps)[0], 403, (name, group))
            self.assertEqual(caller.get(f"{self.maps}?resourceVersion=0")[0], 403, (name, group))

    # -- The tier itself --

    @unittest.skipIf(DIRECT, "the tier's")
    def test_its_own_pages(self):
        self.admin.get("/api/v1/configmaps")
        self.assertEqual(self.admin.get("/readyz"), (200, "ok"))
        self.assertEqual(self.tier.own_page("/readyz"), (200, "ok\n"))
        self.assertGreater(self.tier.metric("vigil_tier_lists_total"), 0)
        self.assertGreater(self.tier.metric("vigil_tier_reviews_total"), 0)
        self.assertGreater(self.tier.metric("vigil_tier_upstream_calls_total"), 2)
        self.assertEqual(self.tier.metric("vigil_tier_reviews_refused_total"), 0)
        # What `vigil doctor` and `vigil top` say about it.
        found = self.ask_tier("doctor")["findings"]
        self.assertEqual([f for f in found if f["what"] in ("answer", "mirror", "reviews") and f["level"] != "good"], [])
        self.assertIn("it is ready, in front of a kube-apiserver", [f["text"] for f in found])
        report = self.ask_tier("top", "--once", "--interval", "100ms")["tier"]
        maps, = [c for c in report["collections"] if (c["name"], c["encoding"]) == ("configmaps/v1", "json")]
        self.assertEqual((maps["phase"], maps["connected"], maps["reason"]), ("serving", True, ""))
        self.assertGreater(maps["objects"], 0)
        self.assertLess(maps["lag_s"], 150)
        self.assertGreater(maps["age_s"], 0)

    def ask_tier(self, *words):
        command = [self.tier.binary, *words, "--endpoints", f"http://127.0.0.1:{self.tier.metrics_port}", "-w", "json"]
        return json.loads(subprocess.run(command, capture_output=True, check=True, timeout=WAIT_SECONDS).stdout)


@unittest.skipIf(DIRECT, "the tier's")
class OneLife(unittest.TestCase):
    def test_it_becomes_ready_with_the_kube_apiserver_and_stops_with_watches(self):
        with tempfile.TemporaryDirectory(prefix="vigil-tier-") as scratch:
            root = pathlib.Path(scratch)
            backend = Server(str(root / "backend"))
            self.addCleanup(backend.stop)
            backend.start()
            apiserver = Apiserver(root, backend.url)
            self.addCleanup(apiserver.stop)
            tier = Tier(root, f"https://127.0.0.1:{apiserver.port}", args=["--upstream-resources=configmaps,namespaces"])
            self.addCleanup(tier.close)
            tier.start()
            status, text = tier.own_page("/readyz")
            self.assertEqual(status, 503, text)
            self.assertIn("[-]mirror failed: ", text)
            InFrontOfOne.eventually(lambda: tier.own_page("/readyz")[0] == 200)
            caller = Caller(tier.port, "the-token")
            self.assertEqual(caller.get("/readyz"), (200, "ok"))
            # A stop ends the watches of clients, and is clean.
            events = caller.watch(f"/api/v1/configmaps?{INITIAL}")
            self.addCleanup(events.close)
            events.wait_initial()
            tier.stop()
            events.wait_end()


if __name__ == "__main__":
    unittest.main()
