"""What is measured of webhooks, beside a real kube-apiserver on etcd, both over TLS: creates that one webhook admits, lists in a version
that is not stored, and creates that no webhook concerns. The webhook is bench/clients/webhook, whose cost is not counted."""
import base64
import contextlib
import http.client
import pathlib
import shutil
import ssl
import statistics
import subprocess

from sidebyside import rule_rows, servers, sizes

CONFIGS, LISTED, LISTS = 10_000, 1000, 5
IN_FLIGHT, FEW_IN_FLIGHT = (100, 10), (10, 10)  # connections, and requests on each
UNCONCERNED = 50
WIDGETS_PATH = "/apis/bench.vigil.dev/{version}/namespaces/default/widgets"
PODS, PODS_TURNS = 10_000, 5


class Webhook:
    """The program, of the same certificate as the server that calls it."""

    def __init__(self, server):
        self.server, self.program = server, server.programs.webhook
        self.process = self.port = None

    def __enter__(self):
        if not self.program:
            raise servers.Failed("the webhook could not be built")
        words = [self.program, self.server.own.cert, self.server.own.key]
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.port = int(self.process.stdout.readline())
        self.server.beside.append(self.process.pid)
        return self

    def __exit__(self, *_):
        self.server.beside.remove(self.process.pid)
        self.process.stdin.close()
        self.process.wait()

    def client_config(self, path):
        bundle = pathlib.Path(self.server.own.cert).read_bytes()
        return {"url": f"https://127.0.0.1:{self.port}/{path}", "caBundle": base64.b64encode(bundle).decode()}

    def calls(self):
        context = ssl.create_default_context(cafile=self.server.own.cert)
        with contextlib.closing(http.client.HTTPSConnection("127.0.0.1", self.port, context=context, timeout=60)) as connection:
            connection.request("GET", "/calls")
            return int(connection.getresponse().read())


def configuration(name, webhook, group, resource):
    return {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration", "metadata": {"name": name},
            "webhooks": [{"name": f"{name}.vigil.dev", "clientConfig": webhook.client_config("admit"), "sideEffects": "None",
                          "admissionReviewVersions": ["v1"], "failurePolicy": "Fail",
                          "rules": [{"apiGroups": [group], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": [resource]}]}]}


CONFIGURATIONS = f"{rule_rows.ADMISSION_PATH}/validatingwebhookconfigurations"


def config_map():
    return {"apiVersion": "v1", "kind": "ConfigMap", "data": {f"key-{i}": "value" * 10 for i in range(10)}}


def create_in_turns(server, configure, in_flight):
    """ConfigMaps with and without what configure(True) sets up and configure(False) removes."""
    def turn(number, with_them):
        configure(with_them)
        name = f"{'with' if with_them else 'without'}-{number}"
        return rule_rows.create_many(server, name, CONFIGS, rule_rows.CONFIGS_PATH, config_map(), *in_flight)

    return rule_rows.in_turns(turn, rule_rows.PEERS_TURNS if rule_rows.is_peer(server) else rule_rows.TURNS)


# -- Admission --

def admitted(server):
    """A create through one webhook, and without it."""
    if server.is_missing():
        return {}
    server.start()
    refused = {**config_map(), "metadata": {"name": "refused"}, "data": {"refused": "yes"}}
    with Webhook(server) as webhook:
        def configure(with_it):
            rule_rows.must(server, "DELETE", CONFIGURATIONS)
            if with_it:
                rule_rows.must(server, "POST", CONFIGURATIONS, configuration("bench", webhook, "", "configmaps"))
            rule_rows.await_status(server, 403 if with_it else 201, rule_rows.CONFIGS_PATH, refused)

        with_it, without, _, other_cores = create_in_turns(server, configure, IN_FLIGHT)
    return {"webhook.with_us": with_it, "webhook.without_us": without, "webhook.more_us": with_it - without, "other_cores": other_cores}


def unconcerned(server):
    """ConfigMaps created with and without webhooks of another kind."""
    if server.is_missing():
        return {}
    server.start()
    deployment = rule_rows.deployment(1)
    deployment["metadata"]["annotations"] = {"refused": "yes"}
    with Webhook(server) as webhook:
        def configure(with_them):
            rule_rows.must(server, "DELETE", CONFIGURATIONS)
            for i in range(UNCONCERNED if with_them else 0):
                rule_rows.must(server, "POST", CONFIGURATIONS, configuration(f"bench-{i}", webhook, "apps", "deployments"))
            rule_rows.await_status(server, 403 if with_them else 201, "/apis/apps/v1/namespaces/default/deployments", deployment)

        with_them, without, ratio, other_cores = create_in_turns(server, configure, FEW_IN_FLIGHT)
    return {"webhook_others.with_us": with_them, "webhook_others.without_us": without, "webhook_others.ratio": ratio,
            "other_cores": other_cores}


# -- Conversion --

def definition(webhook):
    def version(name, is_stored):
        return {"name": name, "served": True, "storage": is_stored,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}}
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "widgets.bench.vigil.dev"},
            "spec": {"group": "bench.vigil.dev", "scope": "Namespaced",
                     "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
                     "versions": [version("v1", True), version("v2", False)],
                     "conversion": {"strategy": "Webhook", "webhook": {
                         "clientConfig": webhook.client_config("convert"), "conversionReviewVersions": ["v1"]}}}}


def converted(server):
    """Objects created, and then listed in a version that is not stored: calls until the first list was answered (a kube-apiserver has
    a cache for each version, and converts each object when it is created), and the server's CPU of further lists."""
    if server.is_missing():
        return {}
    server.start()
    count = sizes.of(LISTED)
    with Webhook(server) as webhook:
        rule_rows.must(server, "POST", rule_rows.DEFINITIONS_PATH, definition(webhook))
        stored, other = (WIDGETS_PATH.format(version=version) for version in ("v1", "v2"))
        widget = {"apiVersion": "bench.vigil.dev/v1", "kind": "Widget", "metadata": {"name": "first"}, "spec": {"text": "x" * 500}}
        rule_rows.await_status(server, 201, stored, widget)
        before = webhook.calls()
        for i in range(count):
            rule_rows.must(server, "POST", stored, {**widget, "metadata": {"name": f"widget-{i}"}})
        found = rule_rows.must(server, "GET", other)["items"]
        calls = webhook.calls() - before
        if len(found) != count or any(item["apiVersion"] != "bench.vigil.dev/v2" for item in found):
            raise servers.Failed(f"{server.name}: the list has {len(found)} objects")
        cpu = sum(map(servers.used_seconds, server.pids()))
        for _ in range(LISTS):
            rule_rows.must(server, "GET", other)
        cpu = sum(map(servers.used_seconds, server.pids())) - cpu
    return {"webhook_list.calls": calls, "webhook_list.cpu_ms": cpu / LISTS * 1e3}


# -- managedFields --

def managed(server):
    """What it costs a create of a pod that it has managedFields, and that they are not made. Vigil alone."""
    if server.name != "vigil":
        return {}
    sides, other_cores = {"all": [], "apply": []}, 0.0
    for number in range(PODS_TURNS):
        for mode in ("all", "apply") if number % 2 else ("apply", "all"):
            server.flags = [f"--kube-managed-fields={mode}"]
            server.start()
            found = server.bench("kube-load", "--connections", 10, "--pipeline", 50, "--key-space", sizes.of(PODS), "--value-size", 2048)
            server.stop()
            shutil.rmtree(server.directory / "data")
            sides[mode].append(found["server_cpu_us_per_operation"])
            other_cores = max(other_cores, found["other_cores"])
    ratio = statistics.median(one / other for one, other in zip(sides["all"], sides["apply"]))
    return {"managed.with_us": statistics.median(sides["all"]), "managed.without_us": statistics.median(sides["apply"]),
            "managed.ratio": ratio, "other_cores": other_cores}
