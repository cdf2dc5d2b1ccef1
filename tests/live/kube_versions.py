"""How get, list and watch answer at every resourceVersion, match, limit and initial-events setting: the cases, and how an
answer is recorded. tests/live/kube_versions.txt has one line per case, as a real kube-apiserver answers it
(tests/kube/same_reads_test.py); kube_versions_test.py compares Vigil's answers with them."""
import concurrent.futures
import http.client
import itertools
import json
import pathlib
import re
import urllib.parse

from kube import answers_of

TABLE = pathlib.Path(__file__).with_suffix(".txt")
PATH = "/api/v1/namespaces/default/configmaps"
WAIT_SECONDS = 60
SIDE_BY_SIDE = 64
AHEAD = 1000000
GOOD = (None, "0", "current", "old", "compacted", "future")
BAD = ("garbage", "-1", "padded", "99999999999999999999")
MATCHES = (None, "Exact", "NotOlderThan", "Bad")


class World:
    """A server with a short history: a and b are created, then b is deleted, a is updated and c is created."""

    def __init__(self, connect, compact, headers=None):
        self.connect, self.headers = connect, headers or {}
        first = self.make("z")
        self.send("DELETE", f"{PATH}/z")
        self.make("a")
        old = self.make("b")
        self.send("DELETE", f"{PATH}/b")
        changed = self.send("PUT", f"{PATH}/a", {"metadata": {"name": "a", "labels": {"changed": "yes"}}})
        made = self.make("c")
        compact(first)
        self.names = {1: "compacted", old: "old", changed: "changed", made: "made"}
        self.current = int(self.send("GET", PATH)["metadata"]["resourceVersion"])
        self.names.setdefault(self.current, "current")
        self.numbers = {"compacted": 1, "old": old, "current": self.current, "future": self.current + AHEAD}
        self.spellings = dict(self.numbers, padded=f"00{old}")
        self.token = self.send("GET", f"{PATH}?limit=1")["metadata"]["continue"]

    def make(self, name):
        return self.send("POST", PATH, {"metadata": {"name": name}})

    def send(self, method, path, body=None):
        """Returns the body of the answer or, for a write, the resourceVersion of the object."""
        connection = self.connect()
        connection.request(method, path, None if body is None else json.dumps(body),
                           dict(self.headers, **{"Content-Type": "application/json"}))
        response = connection.getresponse()
        answer = json.loads(response.read())
        connection.close()
        assert response.status < 300, answer
        return int(answer["metadata"]["resourceVersion"]) if method in ("POST", "PUT") else answer

    def open(self, path, query):
        given = {name: self.spellings.get(value, value) for name, value in query.items()}
        if given.get("continue") == "token":
            given["continue"] = self.token
        connection = self.connect()
        connection.request("GET", f"{path}?{urllib.parse.urlencode(given)}", headers=self.headers)
        return connection, connection.getresponse()

    # -- One line for an answer --

    def version(self, text):
        number = int(text)
        if number in self.names:
            return self.names[number]
        return "newer" if number > self.current else "older"

    def plain(self, text):
        """A message with the names of versions in place of this server's numbers."""
        text = re.sub(r"current: \d+", "current: N", text)
        for name, number in self.numbers.items():
            if number > 9:
                text = re.sub(rf"\b{number}\b", name, text)
        return re.sub(r"too old resource version: 1 \(\w+\)", "too old resource version: compacted (N)", text)

    def status(self, body):
        causes = ",".join(f"{c.get('reason')}@{c.get('field', '')}" for c in body.get("details", {}).get("causes", []))
        after = body.get("details", {}).get("retryAfterSeconds")
        return " ".join(filter(None, [str(body["code"]), body.get("reason", ""), f"causes={causes}" if causes else "",
                                      "retry" if after else "", json.dumps(self.plain(body["message"]))]))

    def list(self, query):
        connection, response = self.open(PATH, query)
        body = json.loads(response.read())
        connection.close()
        if response.status != 200:
            return self.status(body)
        names = ",".join(f"{item['metadata']['name']}@{self.version(item['metadata']['resourceVersion'])}"
                         for item in body["items"])
        metadata = body["metadata"]
        more = f" more={metadata.get('remainingItemCount')}" if "continue" in metadata else ""
        # The newest version depends on what the server itself has written meanwhile.
        fresh = self.version(metadata["resourceVersion"]).replace("newer", "current").replace("made", "current")
        return f"200 {names} at {fresh}{more}"

    def get(self, query):
        connection, response = self.open(f"{PATH}/a", query)
        body = json.loads(response.read())
        connection.close()
        if response.status != 200:
            return self.status(body)
        return f"200 a@{self.version(body['metadata']['resourceVersion'])}"

    def event(self, event):
        body = event["object"]
        if event["type"] == "ERROR":
            return "ERROR " + self.status(body)
        metadata = body["metadata"]
        if event["type"] == "BOOKMARK":
            return "BOOKMARK end" if "k8s.io/initial-events-end" in metadata.get("annotations", {}) else "BOOKMARK"
        return f"{event['type']} {metadata['name']}@{self.version(metadata['resourceVersion'])}"

    def watch_open(self, query):
        """Opens a watch; returns it with whether it is expected to stay silent."""
        silent = "Selector" in str(query) or \
            (query.get("resourceVersion") == "future" and query.get("sendInitialEvents") != "true")
        connection, response = self.open(PATH, {"watch": "1", "timeoutSeconds": 2 if silent else 50, **query})
        return connection, response, silent

    def watch_read(self, opened):
        """Reads the events up to the object that is created after all watches have begun, or up to the end. Periodic
        bookmarks are left out."""
        connection, response, silent = opened
        lines = []
        if response.status != 200:
            lines.append(self.status(json.loads(response.read())))
        else:
            for line in iter(response.readline, b""):
                lines.append(self.event(json.loads(line)))
                if lines[-1].startswith("ADDED last@"):
                    lines[-1] = "ADDED last"
                    break
            else:
                lines.append("EOF")
        connection.close()
        return "; ".join(text for text in lines if text != "BOOKMARK")


def listings():
    for version, match, limit in itertools.product(GOOD, MATCHES, (None, "1")):
        yield {"resourceVersion": version, "resourceVersionMatch": match, "limit": limit}
    for version, match in itertools.product(BAD, MATCHES):
        yield {"resourceVersion": version, "resourceVersionMatch": match}
    for version, match in itertools.product((None, "0", "current"), (None, "Exact", "NotOlderThan")):
        yield {"resourceVersion": version, "resourceVersionMatch": match, "continue": "token"}
    for more in ({"continue": "x"}, {"continue": "e30"}, {"limit": "x"}, {"limit": "-1"}, {"sendInitialEvents": "true"},
                 {"sendInitialEvents": "false"}, {"continue": "token", "limit": "1"}, {"labelSelector": "changed"},
                 {"labelSelector": "changed", "limit": "1"}, {"labelSelector": "!changed", "limit": "1"},
                 {"timeoutSeconds": "x"}, {"fieldSelector": "metadata.name=c"}, {"resourceVersion": "future", "limit": "0"}):
        yield more


def watches():
    for version, match, initial, marks in itertools.product(GOOD, MATCHES, (None, "true", "false"), (None, "true")):
        if match in (None, "NotOlderThan") or (version in (None, "old") and not marks):
            yield {"resourceVersion": version, "resourceVersionMatch": match, "sendInitialEvents": initial,
                   "allowWatchBookmarks": marks}
    for version, initial in itertools.product(BAD, (None, "true", "false")):
        yield {"resourceVersion": version, "resourceVersionMatch": initial and "NotOlderThan", "sendInitialEvents": initial}
    for more in ({"limit": "1"}, {"continue": "token"}, {"continue": "x"}, {"resourceVersion": "old", "limit": "1"},
                 {"resourceVersion": "old", "labelSelector": "changed"}, {"timeoutSeconds": "x"},
                 {"resourceVersion": "old", "fieldSelector": "metadata.name=a"}):
        yield more


def observe(world):
    """Sends all cases and returns {case: answer}."""
    def clean(query):
        return {name: value for name, value in query.items() if value is not None}

    def title(verb, query):
        return f"{verb} {urllib.parse.urlencode(query)}".strip()

    answers = {}
    gets = [clean({"resourceVersion": version}) for version in GOOD + BAD]
    with concurrent.futures.ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        for verb, work, queries in (("get", world.get, gets), ("list", world.list, [clean(q) for q in listings()])):
            for query, answer in zip(queries, pool.map(work, queries)):
                answers[title(verb, query)] = answer
        queries = [clean(q) for q in watches()]
        opened = list(pool.map(world.watch_open, queries))
        world.make("last")
        for query, answer in zip(queries, pool.map(world.watch_read, opened)):
            answers[title("watch", query)] = answer
    return answers


def table(for_vigil):
    return answers_of(TABLE, for_vigil)


def plain_connection(port):
    return lambda: http.client.HTTPConnection("127.0.0.1", port, timeout=WAIT_SECONDS)
