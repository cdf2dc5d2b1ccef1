"""What is measured of the rules of custom resources and of policies: what their programs take, and what they cost a create, beside a
real kube-apiserver on etcd. In each row the same server works with and without them in turns, so that its state is the same."""
import contextlib
import copy
import http.client
import json
import ssl
import statistics
import time

from sidebyside import definitions, servers, sizes

ROUTES, CONFIGS, TURNS = 2000, 4000, 5
PEERS_PART, PEERS_TURNS = 0.15, 3  # of the objects: a kube-apiserver takes twenty times as long for each
POLICIES = 50
ROUTES_PATH = "/apis/gateway.networking.k8s.io/v1/namespaces/default/httproutes"
CONFIGS_PATH = "/api/v1/namespaces/default/configmaps"
DEFINITIONS_PATH = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
ADMISSION_PATH = "/apis/admissionregistration.k8s.io/v1"
ZEROS = "0000000000"
READY_SECONDS = 60


class Rules:
    """The program that compiles and evaluates rules; nothing is served."""

    def __init__(self, name, programs, directory):
        self.name, self.program, self.root, self.directory = name, programs.rules[name], programs.root, directory

    def run(self):
        if not self.program:
            raise servers.Failed("the program that evaluates rules could not be built")
        self.directory.mkdir(parents=True, exist_ok=True)
        file = self.directory / "definition.json"
        file.write_text(json.dumps(definitions.read(self.root, definitions.DEFINITION)))
        return json.loads(servers.run_tool([self.program, str(file)]))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


def programs(rules):
    found = rules.run()
    return {"rules.compile_ms": found["compile_ms"], "rules.bytes": found["bytes_of_rule"], "rules.evaluate_us": found["rule_us"]}


# -- Servers --

def is_peer(server):
    return server.name == "etcd"


def call(server, method, path, body=None):
    """Returns the status and the JSON of the answer."""
    context = ssl.create_default_context(cafile=server.own.cert)
    context.load_cert_chain(server.own.cert, server.own.key)
    host, port = server.kube_endpoint.split(":")
    with contextlib.closing(http.client.HTTPSConnection(host, int(port), context=context, timeout=60)) as connection:
        connection.request(method, path, json.dumps(body) if body else None, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        text = answer.read()
        return answer.status, json.loads(text) if text.startswith(b"{") else {"message": text.decode()}


def must(server, method, path, body=None):
    status, answer = call(server, method, path, body)
    if status >= 300:
        raise servers.Failed(f"{server.name}: {method} {path}: {status} {str(answer)[:1000]}")
    return answer


def replace(server, path, value):
    """Again while others change it as well: controllers write the status of a definition."""
    status = 409
    while status == 409:
        version = must(server, "GET", path)["metadata"]["resourceVersion"]
        status, answer = call(server, "PUT", path, {**value, "metadata": {**value["metadata"], "resourceVersion": version}})
    if status != 200:
        raise servers.Failed(f"{server.name}: PUT {path}: {status} {str(answer)[:1000]}")


def published(server, name):
    return definitions.read(server.programs.root, name)


def await_status(server, wanted, path, body):
    """Until a create would have this status: a real kube-apiserver learns of a change a moment later."""
    end = time.monotonic() + READY_SECONDS
    while call(server, "POST", f"{path}?dryRun=All", body)[0] != wanted:
        if time.monotonic() > end:
            raise servers.Failed(f"{server.name}: POST {path} is not answered with {wanted}")
        time.sleep(0.1)


def create_many(server, name, count, path, value, connections=10, pipeline=10):
    """Creates so many objects; the server's CPU for each, in microseconds, and the work of other processes. Before them some that
    are not measured, so that nothing else is under way."""
    file = server.directory / "object.json"
    count = round(count * PEERS_PART) if is_peer(server) else count
    for prefix, number in (("first", count // 4), (name, count)):
        named = {**value, "metadata": {**value.get("metadata", {}), "name": f"{prefix}-{name}-{ZEROS}"}}
        file.write_text(json.dumps(named, separators=(",", ":")))
        # Of requests that its worker looks at, Vigil takes at most 256 at once.
        found = server.bench("kube-load", "--connections", connections, "--pipeline", pipeline, "--key-space", sizes.of(number), "--path",
                             path,
                             "--object", file)
    return found["server_cpu_us_per_operation"], found["other_cores"]


def in_turns(turn, turns):
    """turn(number, with_them) for both, one after the other; medians with and without, and the most other work. The ratio is the
    median of those of neighbours, which see the machine alike."""
    sides = {True: [], False: []}
    other_cores = 0.0
    turn("warm", False)
    for number in range(turns):
        for with_them in (False, True) if number % 2 == 0 else (True, False):
            cost, other = turn(f"{number}", with_them)
            sides[with_them].append(cost)
            other_cores = max(other_cores, other)
    ratio = statistics.median(one / other for one, other in zip(sides[True], sides[False]))
    return statistics.median(sides[True]), statistics.median(sides[False]), ratio, other_cores


# -- Routes --

def wrong(route):
    """The route with a path that a rule of the definition refuses."""
    changed = copy.deepcopy(route)
    changed["spec"]["rules"][0]["matches"][0]["path"]["value"] = "/a//b"
    return changed


def routes(server):
    """HTTPRoutes created with and without the rules of their definition."""
    if server.is_missing():
        return {}
    server.start()
    definition = published(server, definitions.DEFINITION)
    route = published(server, definitions.EXAMPLE)
    must(server, "POST", DEFINITIONS_PATH, definition)

    def turn(number, with_rules):
        replace(server, f"{DEFINITIONS_PATH}/{definition['metadata']['name']}",
                definition if with_rules else definitions.without_rules(definition))
        await_status(server, 422 if with_rules else 201, ROUTES_PATH, wrong(route))
        return create_many(server, f"{'with' if with_rules else 'without'}-{number}", ROUTES, ROUTES_PATH, route)

    with_rules, without, ratio, other_cores = in_turns(turn, PEERS_TURNS if is_peer(server) else TURNS)
    return {"route.with_us": with_rules, "route.without_us": without, "route.ratio": ratio, "other_cores": other_cores}


# -- What does not concern an object --

def policy(number):
    return {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
            "metadata": {"name": f"policy-{number}"},
            "spec": {"failurePolicy": "Fail",
                     "matchConstraints": {"resourceRules": [{"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["*"],
                                                             "resources": ["deployments"]}]},
                     "validations": [{"expression": f"object.spec.replicas != {1000 + number}"}]}}


def binding(number):
    return {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": {"name": f"policy-{number}"},
            "spec": {"policyName": f"policy-{number}", "validationActions": ["Deny"]}}


def deployment(replicas):
    labels = {"app": "bench"}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "bench"},
            "spec": {"replicas": replicas, "selector": {"matchLabels": labels},
                     "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "c:1"}]}}}}


def others(server):
    """ConfigMaps created with and without policies of another kind; a definition with rules is there all the time."""
    if server.is_missing():
        return {}
    server.start()
    must(server, "POST", DEFINITIONS_PATH, published(server, definitions.DEFINITION))
    config = {"apiVersion": "v1", "kind": "ConfigMap", "data": {f"key-{i}": "value" * 10 for i in range(10)}}

    def turn(number, with_policies):
        for i in range(POLICIES if with_policies else 0):
            must(server, "POST", f"{ADMISSION_PATH}/validatingadmissionpolicies", policy(i))
            must(server, "POST", f"{ADMISSION_PATH}/validatingadmissionpolicybindings", binding(i))
        await_status(server, 422 if with_policies else 201, "/apis/apps/v1/namespaces/default/deployments",
                     deployment(1000 + POLICIES - 1))
        found = create_many(server, f"{'with' if with_policies else 'without'}-{number}", CONFIGS, CONFIGS_PATH, config)
        for kind in ("validatingadmissionpolicies", "validatingadmissionpolicybindings"):
            must(server, "DELETE", f"{ADMISSION_PATH}/{kind}")
        return found

    with_policies, without, ratio, other_cores = in_turns(turn, PEERS_TURNS if is_peer(server) else TURNS)
    return {"unconcerned.with_us": with_policies, "unconcerned.without_us": without, "unconcerned.ratio": ratio,
            "other_cores": other_cores}
