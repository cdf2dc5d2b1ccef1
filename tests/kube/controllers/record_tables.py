"""The tables of what record_node.py has recorded."""
import base64
import collections
import json
import pathlib

PROGRAMS = ("kubelet", "proxy")
# Parameters whose values are not part of the kind of a request, but that of "all versions are good enough" is.
CHANGING = ("resourceVersion", "timeoutSeconds", "continue")


class Recorded:
    """What the relays have written. Times are seconds."""

    def __init__(self, directory):
        self.about = json.loads((directory / "phases.json").read_text())
        self.phases = self.about["phases"]
        self.connections, self.requests = [], []
        for program in PROGRAMS:
            for text in (directory / f"{program}.jsonl").read_text().splitlines():
                line = dict(json.loads(text), program=program)
                if line["kind"] == "connection":
                    self.connections.append(line)
                else:
                    self.requests.append(Request(line, self.about))
        self.requests.sort(key=lambda r: r.begin)
        self.names = [name for name, _ in self.phases[:-1]]

    def begin(self, phase):
        return next(at for name, at in self.phases if name == phase)

    def seconds(self, phase):
        i = self.names.index(phase)
        return self.phases[i + 1][1] - self.phases[i][1]

    def phase(self, request):
        return [name for name, at in self.phases if at <= request.begin][-1]


class Request:
    def __init__(self, line, about):
        self.program, self.connection, self.begin, self.end = line["program"], line["connection"], line["begin"], line.get("end")
        self.protocol, self.status, self.answer = line["protocol"], line["status"], line["answer_bytes"]
        self.headers, self.answer_headers = line["headers"], line["answer_headers"] or {}
        self.body = base64.b64decode(line.get("body", ""))
        self.query = {name: values[0] for name, values in line["query"].items()}
        self.events, self.event_bytes = line.get("events", {}), line.get("event_bytes", {})
        self.is_watch = "watch" in self.query
        self.verb = "WATCH" if self.is_watch else line["method"]
        self.about = about
        self.path = self.placeholders(line["path"])

    def placeholders(self, text):
        for name, placeholder in ((self.about["node"], "{node}"), (self.about["namespace"], "{namespace}"),
                                  *((name, "{pod}") for name in self.about["pods"])):
            text = text.replace(name, placeholder)
        return text

    def parameter(self, name, value):
        if name in CHANGING and (name, value) != ("resourceVersion", "0") or name == "timeout" and self.is_watch:
            value = "…"
        return f"{name}={self.placeholders(value)}"

    def what(self):
        query = "&".join(self.parameter(*pair) for pair in self.query.items() if pair[0] != "watch")
        return f"{self.path}{'?' if query else ''}{query}"

    def header(self, name):
        return ", ".join(self.headers.get(name, []))

    def kind(self):
        return self.program, self.verb, self.what(), self.header("Accept"), self.header("Content-Type")


def span(numbers):
    """The least and the greatest number."""
    numbers = list(numbers)
    least, greatest = min(numbers), max(numbers)
    return f"{least:,}" if least == greatest else f"{least:,} to {greatest:,}"


def code(text):
    return f"`{text}`".replace("|", "\\|") if text else ""


def table(columns, rows):
    yield "| " + " | ".join(columns) + " |"
    yield "| " + " | ".join("---" for _ in columns) + " |"
    for row in rows:
        yield "| " + " | ".join(str(cell) for cell in row) + " |"
    yield ""


def by_kind(requests):
    kinds = collections.defaultdict(list)
    for request in requests:
        kinds[request.kind()].append(request)
    return kinds


def how_often(recorded, requests):
    """One cell for each phase."""
    counts = collections.Counter(recorded.phase(r) for r in requests)
    return [counts[name] or "" for name in recorded.names]


def phases(recorded):
    yield from table(["phase", "seconds"], [[name, f"{recorded.seconds(name):.0f}"] for name in recorded.names])


def connections(recorded):
    whole = sum(recorded.seconds(name) for name in recorded.names)
    rows = []
    for c in sorted(recorded.connections, key=lambda c: c["begin"]):
        used = [r for r in recorded.requests if (r.program, r.connection) == (c["program"], c["connection"])]
        end = c.get("end", recorded.phases[-1][1])
        rows.append([c["program"], f"{c['begin'] - recorded.phases[0][1]:.2f}", f"{end - c['begin']:.2f}",
                     ", ".join(sorted({r.protocol for r in used})), len(used), f"{c['from_client']:,}", f"{c['to_client']:,}"])
    yield f"Within {whole:,.0f} seconds. Bytes are those of TLS records.\n"
    yield from table(["program", "opened at, s", "open for, s", "protocol", "requests", "bytes from the client", "bytes to it"], rows)


def headers(recorded):
    """Which values each header has, without those of the other tables and of sizes."""
    values = collections.defaultdict(set)
    for r in recorded.requests:
        for name, found in r.headers.items():
            if name not in ("Accept", "Content-Type", "Content-Length"):
                values[(r.program, name)].add(", ".join(found))
    yield from table(["program", "header", "values"], [[*key, code(", ".join(sorted(found)))] for key, found in sorted(values.items())])


def calls(recorded):
    rows = []
    for (program, verb, what, accept, content), found in by_kind(r for r in recorded.requests if not r.is_watch).items():
        rows.append([program, verb, code(what), code(accept), code(content), span(len(r.body) for r in found),
                     ", ".join(sorted({str(r.status) for r in found})), span(r.answer for r in found), *how_often(recorded, found)])
    yield from table(["program", "method", "path", "Accept", "Content-Type", "bytes of the body", "code", "bytes of the answer",
                      *recorded.names], rows)


def watches(recorded):
    rows = []
    for (program, _, what, accept, _), found in by_kind(r for r in recorded.requests if r.is_watch).items():
        events, sizes = collections.Counter(), collections.Counter()
        for r in found:
            events.update(r.events)
            sizes.update(r.event_bytes)
        ended = [r for r in found if r.end and r.status == 200]
        rows.append([program, code(what), code(accept), span(int(r.query.get("timeoutSeconds", 0)) for r in found),
                     span(round(r.end - r.begin) for r in ended) if ended else "",
                     ", ".join(sorted({str(r.status) for r in found})),
                     ", ".join(f"{events[name]} {name} of {sizes[name] // events[name]:,} bytes" for name in sorted(events)),
                     *how_often(recorded, found)])
    yield from table(["program", "path", "Accept", "timeoutSeconds", "open for, s", "code", "events, with their mean size",
                      *recorded.names], rows)


def open_watches(recorded):
    """How many watches are open at the end of a phase."""
    rows = []
    for i, name in enumerate(recorded.names):
        at = recorded.phases[i + 1][1]
        rows.append([name, *(sum(r.is_watch and r.program == program and r.status == 200 and r.begin < at and (r.end or at) >= at
                                 for r in recorded.requests) for program in PROGRAMS)])
    yield from table(["at the end of", *PROGRAMS], rows)


def sequence(recorded, phase):
    """The requests of a phase in their order."""
    begin = recorded.begin(phase)
    rows = [[f"{r.begin - begin:.2f}", r.program, r.verb, code(r.what()), len(r.body) or "", r.status]
            for r in recorded.requests if recorded.phase(r) == phase]
    yield from table(["at, s", "program", "method", "path", "bytes of the body", "code"], rows)


def patches(recorded):
    """The largest body of each kind of patch in each phase."""
    found = {}
    for r in recorded.requests:
        if r.verb == "PATCH":
            key = (r.path, recorded.phase(r))
            found[key] = max(found.get(key, b""), r.body, key=len)
    for (path, phase), body in found.items():
        yield f"{code(path)}, {phase}, {len(body):,} bytes:\n\n```json\n{body.decode()}\n```\n"


SERVERS = {"vigil": "Vigil, which keeps no `managedFields` of these objects",
           "real": "a real kube-apiserver and etcd, with `managedFields` in every object"}
HEAD = """# What a node asks of an API server

Recorded from a kubelet and a kube-proxy of Kubernetes {version} (its hollow node, the program kubemark) on
{server}, {date}, by

    tests/kube/controllers/record_node.py --minutes {minutes:g} --on {on} >bench/load/scale/recorded-{on}.md

Sizes are those of bodies. Each pod has a config map, a secret and the token of its service account; the other config map,
`kube-root-ca.crt`, is a part of that token's volume. `{namespace}`, `{node}` and `{pod}` stand for names.

A hollow node has no containers, probes, certificates of its own, or packet filters. A real one differs in this, by its source:

- A kubelet posts events (`POST /api/v1/namespaces/{namespace}/events`), and patches those that repeat.
- At its start it deletes the ResourceSlices of its node:
  `DELETE /apis/resource.k8s.io/v1/resourceslices?fieldSelector=spec.nodeName={node}`
- Its first patch of a pod's status has `Ready` as `False`, and the patch with the running container has it as `True`.
- Its node has more in its status: up to 50 images, addresses, volumes.
- It makes CertificateSigningRequests when its certificates are to be replaced, and TokenReviews and SubjectAccessReviews when
  another process calls it.
- A kube-proxy has one watch more, that of its node: `/api/v1/nodes?fieldSelector=metadata.name={node}`, begun like the others.

"""


def tables(directory):
    recorded = Recorded(pathlib.Path(directory))
    lines = []
    for title, part in (("Phases", phases), ("Connections", connections), ("Headers of all requests", headers),
                        ("Watches", watches), ("Open watches", open_watches), ("Other requests", calls)):
        lines += [f"## {title}\n", *part(recorded)]
    for phase in recorded.names:
        if not phase.startswith("with"):
            lines += [f"## In their order: {phase}\n", *sequence(recorded, phase)]
    lines += ["## Patches\n", *patches(recorded)]
    names = {"node": "{node}", "namespace": "{namespace}", "pod": "{pod}"}
    return HEAD.format(**{**recorded.about, **names, "server": SERVERS[recorded.about["on"]]}) + "\n".join(lines).rstrip()
