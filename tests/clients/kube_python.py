"""Follows the config maps of one namespace with Python's Kubernetes client: kube_python.py URL raw|informer VERSION.
Prints each change as a line of JSON, and answers a line on its input with the current objects.

raw: a watch from VERSION that is resumed when it ends. informer: a list, a watch, and a new list when history is compacted."""
import json
import sys
import threading
import time

import urllib3
from kubernetes import client, watch

URL, MODE, VERSION = sys.argv[1:4]
lock = threading.Lock()
held = {}


def write(**what):
    print(json.dumps(what), flush=True)


def report(kind, metadata):
    name, version = metadata.name, int(metadata.resource_version)
    with lock:
        known = name in held
        if kind == "DELETED":
            held.pop(name, None)
        else:
            held[name] = version
    if MODE == "informer" and kind != "DELETED":
        kind = "MODIFIED" if known else "ADDED"
    write(type=kind, name=name, version=version)


def relist(api):
    """Reports the changes that the watch has missed."""
    found = api.list_namespaced_config_map("default")
    there = {item.metadata.name for item in found.items}
    for name in [name for name in held if name not in there]:
        with lock:
            version = held.pop(name)
        write(type="DELETED", name=name, version=version)
    for item in found.items:
        if held.get(item.metadata.name) != int(item.metadata.resource_version):
            report("MODIFIED", item.metadata)
    return found.metadata.resource_version


def follow():
    configuration = client.Configuration()
    configuration.host = URL
    configuration.retries = False
    api = client.CoreV1Api(client.ApiClient(configuration))
    version = VERSION if MODE == "raw" else None
    while True:
        watcher = watch.Watch()
        watcher.resource_version = version
        try:
            if version is None:
                version = relist(api)
            for event in watcher.stream(api.list_namespaced_config_map, "default", resource_version=version):
                report(event["type"], event["object"].metadata)
                version = watcher.resource_version
        except urllib3.exceptions.HTTPError:
            time.sleep(0.01)
        except client.ApiException as error:
            if error.status == 410 and MODE == "informer":
                version = None
            elif error.status != 0:
                write(error=f"{error.status} {error.reason}")
                raise


threading.Thread(target=follow, daemon=True).start()
for _ in sys.stdin:
    with lock:
        write(view=held)
