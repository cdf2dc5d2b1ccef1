#!/usr/bin/python3
"""The same deletions on a real kube-apiserver with Kubernetes' own garbage collector (garbagecontroller/), and on Vigil,
which collects garbage itself: the same objects must be left in the end. tools/build-kube builds the real kube-apiserver."""
import json
import os
import pathlib
import subprocess
import sys
import time
import unittest
import uuid

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/live"))
sys.path.insert(0, str(ROOT / "tests/kube"))
from side_by_side import SideBySide  # noqa: E402
from same_custom_test import CRDS, definition, version  # noqa: E402
from same_sequences_test import Peer  # noqa: E402
from same_writes_test import MERGE, deployment, pod  # noqa: E402

WAIT_SECONDS = 60
ABSENT = "00000000-0000-0000-0000-000000000001"
HATS = "/apis/example.com/v1/hats"
ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"


def maps(namespace):
    return f"/api/v1/namespaces/{namespace}/configmaps"


def reference(made, block=None, **fields):
    found = {"apiVersion": made["apiVersion"], "kind": made["kind"], "name": made["metadata"]["name"],
             "uid": made["metadata"]["uid"]}
    if block is not None:
        found["blockOwnerDeletion"] = block
    return dict(found, **fields)


def absent(**fields):
    return dict({"apiVersion": "v1", "kind": "ConfigMap", "name": "absent", "uid": ABSENT}, **fields)


class Scene:
    """One namespace of one server, and what was made in it."""

    def __init__(self, client, namespace):
        self.client = client
        self.path = maps(namespace)
        self.namespace = namespace
        client.want(201, "POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})

    def make(self, name, *owners, path=None, **metadata):
        body = {"metadata": dict({"name": name, "ownerReferences": list(owners)}, **metadata)}
        made = self.client.want(201, "POST", path or self.path, body)
        return dict(made, apiVersion=made["apiVersion"], kind=made["kind"])

    def make_at(self, path, body, *owners):
        body["metadata"]["ownerReferences"] = list(owners)
        return self.client.want(201, "POST", path, body)

    def delete(self, name, policy, path=None, **options):
        code, body = self.client.send("DELETE", f"{path or self.path}/{name}",
                                      dict({"propagationPolicy": policy} if policy else {}, **options))
        assert code == 200, body

    def patch(self, name, metadata):
        self.client.want(200, "PATCH", f"{self.path}/{name}", {"metadata": metadata}, MERGE)

    def left(self, path=None):
        """What is left: names, owners, finalizers, and whether it is being deleted."""
        found = {}
        for item in self.client.want(200, "GET", path or self.path)["items"]:
            metadata = item["metadata"]
            if metadata["name"] == "kube-root-ca.crt":
                continue
            owners = [(o["name"], o.get("blockOwnerDeletion")) for o in metadata.get("ownerReferences", [])]
            found[metadata["name"]] = (owners, metadata.get("finalizers", []), "deletionTimestamp" in metadata)
        return found

    def wait(self, wanted, path=None):
        """Until exactly these names are left; then all of what is left."""
        end = time.monotonic() + WAIT_SECONDS
        while sorted(self.left(path)) != sorted(wanted):
            assert time.monotonic() < end, (self.namespace, self.left(path), wanted)
            time.sleep(0.02)
        return self.left(path)

    def settle(self):
        """Until something that is made now has been collected, as everything before it."""
        self.make("last", absent(uid=str(uuid.uuid4())))
        end = time.monotonic() + WAIT_SECONDS
        while "last" in self.left():
            assert time.monotonic() < end
            time.sleep(0.02)
        return self.left()


def background(scene):
    owner = scene.make("owner")
    for i in range(20):
        child = scene.make(f"child{i}", reference(owner))
        scene.make(f"grandchild{i}", reference(child))
    scene.make("other")
    scene.delete("owner", "Background")
    return [scene.wait(["other"])]


def default_policy(scene):
    scene.make("child", reference(scene.make("owner")))
    scene.delete("owner", None)
    return [scene.wait([])]


def absent_owners(scene):
    scene.make("child", absent())
    scene.make("stays", absent(apiVersion="example.com/v1", kind="Unknown"))
    scene.make("other-version", absent(apiVersion="v9"))
    scene.make("owner")
    scene.make("other-uid", absent(name="owner"))
    return [scene.wait(["other-version", "owner", "stays"]), scene.settle()]


def two_owners(scene):
    first, second = scene.make("first"), scene.make("second")
    scene.make("child", reference(first), reference(second))
    scene.make("half", absent(), reference(second, True))
    scene.delete("first", "Background")
    scene.wait(["child", "half", "second"])
    states = [scene.settle()]
    scene.delete("second", "Background")
    return [*states, scene.wait([])]


def orphans(scene):
    owner = scene.make("owner")
    scene.make("child", reference(owner, True))
    scene.make("both", reference(owner), absent())
    states = [scene.settle()]
    scene.delete("owner", "Orphan")
    return [*states, scene.wait(["both", "child"]), scene.settle()]


def orphan_dependents(scene):
    scene.make("child", reference(scene.make("owner")))
    scene.delete("owner", None, orphanDependents=True)
    states = [scene.wait(["child"])]
    scene.make("grandchild", reference(scene.make("parent")))
    scene.delete("parent", None, orphanDependents=False)
    return [*states, scene.wait(["child"])]


def foreground(scene):
    owner = scene.make("owner")
    scene.make("blocks", reference(owner, True), finalizers=["example.com/hold"])
    scene.make("free", reference(owner), finalizers=["example.com/hold"])
    scene.make("soon", reference(owner, True))
    scene.delete("owner", "Foreground")
    states = [scene.wait(["blocks", "free", "owner"]), scene.settle()]
    scene.patch("blocks", {"finalizers": None})
    states.append(scene.wait(["free"]))
    scene.patch("free", {"finalizers": None})
    return [*states, scene.wait([])]


def foreground_chain(scene):
    owner = scene.make("owner")
    child = scene.make("child", reference(owner, True))
    scene.make("grandchild", reference(child, True), finalizers=["example.com/hold"])
    scene.delete("owner", "Foreground")
    states = [scene.settle()]
    scene.patch("grandchild", {"finalizers": None})
    return [*states, scene.wait([])]


def foreground_with_another_owner(scene):
    owner, other = scene.make("owner"), scene.make("other")
    scene.make("child", reference(owner, True), reference(other, True))
    scene.delete("owner", "Foreground")
    return [scene.wait(["child", "other"])]


def released_by_a_client(scene):
    owner = scene.make("owner")
    scene.make("child", reference(owner, True), finalizers=["example.com/hold"])
    scene.delete("owner", "Foreground")
    scene.wait(["child", "owner"])
    scene.patch("child", {"ownerReferences": None})
    return [scene.wait(["child"])]


def circles(scene):
    first = scene.make("first")
    second = scene.make("second", reference(first, True))
    scene.patch("first", {"ownerReferences": [reference(second, True)]})
    states = [scene.settle()]
    scene.delete("first", "Foreground")
    states.append(scene.wait([]))
    alone = scene.make("alone")
    scene.patch("alone", {"ownerReferences": [reference(alone, True)]})
    states.append(scene.settle())
    scene.delete("alone", "Background")
    return [*states, scene.wait([])]


def a_second_policy(scene):
    owner = scene.make("owner", finalizers=["example.com/hold"])
    scene.make("child", reference(owner, True))
    scene.delete("owner", "Orphan")
    scene.delete("owner", "Background")
    scene.delete("owner", None)
    states = [scene.settle()]
    scene.patch("owner", {"finalizers": None})
    return [*states, scene.settle()]


def a_finalizer_before_the_deletion(scene):
    for policy in ("orphan", "foregroundDeletion"):
        owner = scene.make(policy.lower(), finalizers=[policy])
        scene.make(f"{policy.lower()}-child", reference(owner, True))
        scene.delete(policy.lower(), None)
    return [scene.wait(["orphan-child"])]


def owners_elsewhere(scene):
    owner = scene.make("owner")
    scene.make("first", reference(owner))
    other = Scene(scene.client, scene.namespace + "-other")
    other.make("child", reference(owner))
    states = [other.wait([]), scene.wait(["first", "owner"])]
    scene.delete("owner", "Background")
    return [*states, scene.wait([])]


def owners_outside_of_namespaces(scene):
    role = scene.client.want(201, "POST", ROLES, {"metadata": {"name": scene.namespace}})
    scene.make("child", reference(role))
    node = scene.make("node")
    hat = {"apiVersion": "example.com/v1", "kind": "Hat", "metadata": {"name": scene.namespace}}
    scene.make_at(HATS, hat, reference(node))  # a mistake, which is not corrected
    states = [scene.settle()]
    scene.delete(scene.namespace, "Foreground", ROLES)
    states.append(scene.wait(["node"]))
    return [*states, scene.client.send("GET", f"{HATS}/{scene.namespace}")[0]]


def custom_kinds(scene):
    hat = {"apiVersion": "example.com/v1", "kind": "Hat", "metadata": {"name": scene.namespace}}
    made = scene.client.want(201, "POST", HATS, hat)
    scene.make("child", reference(made, True))
    scene.delete(scene.namespace, "Foreground", HATS)
    while scene.client.send("GET", f"{HATS}/{scene.namespace}")[0] != 404:
        time.sleep(0.02)
    return [scene.wait([])]


def workloads(scene):
    group, core = f"/apis/apps/v1/namespaces/{scene.namespace}", f"/api/v1/namespaces/{scene.namespace}"
    owner = scene.make_at(f"{group}/deployments", deployment("web"))
    replicas = deployment("web-1")
    del replicas["spec"]["replicas"]
    middle = scene.make_at(f"{group}/replicasets", replicas, reference(owner, True, controller=True))
    for i in range(3):
        scene.make_at(f"{core}/pods", pod(f"web-1-{i}", None), reference(middle, True, controller=True))
    scene.delete("web", "Foreground", f"{group}/deployments")
    return [scene.wait([], path) for path in (f"{core}/pods", f"{group}/replicasets", f"{group}/deployments")]


def jobs_orphan_by_default(scene):
    batch = f"/apis/batch/v1/namespaces/{scene.namespace}/jobs"
    spec = dict(pod("x", None)["spec"], restartPolicy="Never")
    job = scene.make_at(batch, {"metadata": {"name": "job"}, "spec": {"template": {"spec": spec}}})
    scene.make("child", reference(job))
    scene.delete("job", None, batch)
    return [scene.wait([], batch), scene.wait(["child"])]


class SameGarbage(SideBySide):
    client = Peer
    flags = ()

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.wait_for(CRDS)
        hats = definition("hats", "Hat", [version()])
        hats["spec"]["scope"] = "Cluster"
        for client in (cls.ours, cls.theirs):
            client.want(201, "POST", CRDS, hats)
        cls.wait_for(HATS)
        cls.collector = subprocess.Popen(
            ["go", "run", "./garbagecontroller", cls.theirs.url, cls.theirs.token], cwd=ROOT / "tests/kube",
            stdin=subprocess.PIPE, stderr=subprocess.DEVNULL,
            env=dict(os.environ, PATH=os.environ["PATH"] + ":/usr/local/go/bin"))
        cls.collects()

    @classmethod
    def collects(cls):
        """Waits until Kubernetes' garbage collector has compiled and begun."""
        scene = Scene(cls.theirs, "first")
        scene.client.want(201, "POST", scene.path, {"metadata": {"name": "last", "ownerReferences": [absent()]}})
        end = time.monotonic() + 600
        while "last" in scene.left():
            assert time.monotonic() < end and cls.collector.poll() is None
            time.sleep(0.2)

    @classmethod
    def tearDownClass(cls):
        cls.collector.stdin.close()
        cls.collector.wait(60)
        super().tearDownClass()

    def check(self, play):
        name = play.__name__.replace("_", "-")[:40]
        theirs, ours = play(Scene(self.theirs, name)), play(Scene(self.ours, name))
        self.assertEqual(json.dumps(ours, indent=1), json.dumps(theirs, indent=1))


for one in (background, default_policy, absent_owners, two_owners, orphans, orphan_dependents, foreground, foreground_chain,
            foreground_with_another_owner, released_by_a_client, circles, a_second_policy, a_finalizer_before_the_deletion,
            owners_elsewhere, owners_outside_of_namespaces, custom_kinds, workloads, jobs_orphan_by_default):
    setattr(SameGarbage, f"test_{one.__name__}", lambda self, play=one: self.check(play))

if __name__ == "__main__":
    unittest.main()
