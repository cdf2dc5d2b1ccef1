"""gateway-api's definition of HTTPRoute, and its example of one, as JSON. They come from its Go module, whose version is that of
tests/kube/definitions/go.mod, and are read as kubectl would read them (tests/kube/documents)."""
import json
import os
import pathlib
import re
import subprocess

from sidebyside import servers

MODULE = "sigs.k8s.io/gateway-api"
DEFINITION = "config/crd/standard/gateway.networking.k8s.io_httproutes.yaml"
EXAMPLE = "examples/standard/httproute.yaml"
RULES = "x-kubernetes-validations"


def go(folder, words, text=""):
    environment = {**os.environ, "PATH": os.environ["PATH"] + ":/usr/local/go/bin"}
    try:
        done = subprocess.run(["go", *words], env=environment, cwd=folder, input=text, capture_output=True, text=True)
    except OSError as error:
        raise servers.Failed(f"go: {error}")
    if done.returncode:
        raise servers.Failed(f"go {' '.join(words)}: {done.stderr.strip()[-1000:]}")
    return done.stdout


def read(root, name):
    """The only object in this file of the module."""
    pinned = (root / "tests/kube/definitions/go.mod").read_text()
    version = re.search(rf"^\t{MODULE} (\S+)$", pinned, re.M).group(1)
    folder = json.loads(go(root / "tests/kube/definitions", ["mod", "download", "-json", f"{MODULE}@{version}"]))["Dir"]
    lines = go(root / "tests/kube", ["run", "./documents"], f"{pathlib.Path(folder, name)}\n").splitlines()
    return json.loads(lines[0])["object"]


def without_rules(value):
    """A schema, or a whole definition, without its rules."""
    if isinstance(value, list):
        return [without_rules(item) for item in value]
    if isinstance(value, dict):
        return {key: without_rules(item) for key, item in value.items() if key != RULES}
    return value
