#!/usr/bin/python3
"""A real kube-controller-manager and kube-scheduler with stubs of kubelets, on Vigil and on a real kube-apiserver and etcd:
the same objects must reach the same state, no program may crash, and the controllers must not log errors on Vigil that they
do not log on the real one. tools/build-kube builds the real programs.

VIGIL_SCENES=a,b runs only these scenes; VIGIL_KEEP=DIR keeps the logs there."""
import concurrent.futures
import json
import os
import pathlib
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/kube/controllers"))
from normal import new_lines, normal_object, order, unread  # noqa: E402
from plane import Identities, Plane, build_kubelet  # noqa: E402
from scenes import CORE, SCENES, Stage  # noqa: E402

NODES = 3
SCENE_SECONDS = 300
SAME_SECONDS = 60  # for the same state, after a scene has ended on both
# Shorter periods than the default ones, so that the test need not wait.
MANAGER_FLAGS = ("--horizontal-pod-autoscaler-sync-period=2s", "--pvclaimbinder-sync-period=2s", "--resource-quota-sync-period=5s",
                 "--concurrent-deployment-syncs=5", "--kube-api-qps=500", "--kube-api-burst=1000")
SCHEDULER_FLAGS = ("--kube-api-qps=500", "--kube-api-burst=1000")
VOLUMES = "/api/v1/persistentvolumes"
CLUSTER = ["/api/v1/nodes", VOLUMES, "/apis/rbac.authorization.k8s.io/v1/clusterroles",
           "/apis/certificates.k8s.io/v1/certificatesigningrequests", "/apis/scheduling.k8s.io/v1/priorityclasses",
           "/apis/storage.k8s.io/v1/storageclasses"]


def chosen():
    names = os.environ.get("VIGIL_SCENES")
    return [s for s in SCENES if not names or s.__name__ in names.split(",")]


def play(plane, scene):
    """Runs a scene to its end and returns its stage."""
    stage = Stage(plane.client, scene.__name__.replace("_", "-"))
    stage.send("POST", f"{CORE}/namespaces", {"metadata": {"name": stage.name}})
    end = time.monotonic() + SCENE_SECONDS
    while not stage.list(CORE, "serviceaccounts"):
        assert time.monotonic() < end, f"{plane.what}: no account in {stage.name}"
        time.sleep(0.1)
    for step, done in enumerate(scene(stage), 1):
        while not done():
            assert time.monotonic() < end, f"{plane.what}: {scene.__name__} does not get past step {step}: " + \
                json.dumps(state(stage), indent=1)[:20000]
            time.sleep(0.2)
    return stage


def volume_roles(client):
    """What each volume is used for, by its name: any of several equal ones may be bound to a claim."""
    roles = {}
    for volume in client.send("GET", VOLUMES)[1]["items"]:
        spec, claim = volume["spec"], volume["spec"].get("claimRef")
        roles[volume["metadata"]["name"]] = f"<volume of {claim['namespace']}/{claim['name']}>" if claim else \
            f"<free volume of {spec.get('storageClassName')}>"
    return roles


def state(stage):
    roles, found = volume_roles(stage.client), []
    for item in stage.objects():
        if item["kind"] == "PersistentVolumeClaim" and item["spec"].get("volumeName"):
            item["spec"]["volumeName"] = roles[item["spec"]["volumeName"]]
        found.append(normal_object(item))
    return sorted(found, key=order)


def cluster_state(plane):
    roles, found = volume_roles(plane.client), []
    for path in CLUSTER:
        listed = plane.client.send("GET", path)[1]
        for item in listed["items"]:
            if listed["kind"] == "CertificateSigningRequestList":
                item["spec"].pop("request"), item["status"].pop("certificate")
            if listed["kind"] == "PersistentVolumeList":
                item["metadata"]["name"] = roles.get(item["metadata"]["name"])
            found.append(normal_object(dict(item, kind=listed["kind"])))
    return sorted(found, key=order)


def differences(ours, theirs):
    """Objects that only one side has, as text."""
    left, right = {order(o) for o in ours}, {order(o) for o in theirs}

    def show(name, texts):
        return "".join(f"{name}: {json.dumps(json.loads(t), indent=1, sort_keys=True)}\n" for t in sorted(texts))
    return show("only on Vigil", left - right) + show("only on the real one", right - left)


class Controllers(unittest.TestCase):
    kinds = ("pair", "real")
    excused = None  # part of lines of logs that only our side may have

    @classmethod
    def setUpClass(cls):
        folder = os.environ.get("VIGIL_KEEP")
        if not folder:
            temporary = tempfile.TemporaryDirectory(prefix="vigil-controllers-")
            cls.addClassCleanup(temporary.cleanup)
            folder = temporary.name
        root = pathlib.Path(folder)
        kubelet, identities = build_kubelet(root), Identities(root / "identities")
        cls.planes = [Plane(what, root / what, identities, kubelet) for what in cls.kinds]
        for plane in cls.planes:
            cls.addClassCleanup(plane.stop)
            plane.start_apiserver()
            plane.start_controllers(MANAGER_FLAGS, SCHEDULER_FLAGS)
            plane.start_kubelets(NODES)

    def check_cidrs(self, plane):
        """Each node has one block of addresses of its own; which one differs."""
        specs = [node["spec"] for node in plane.client.send("GET", "/api/v1/nodes")[1]["items"]]
        self.assertEqual(len({spec["podCIDR"] for spec in specs}), NODES, specs)
        for spec in specs:
            self.assertEqual(spec["podCIDRs"], [spec["podCIDR"]])

    def wait_until_same(self, end, ours, theirs):
        while (found := differences(ours(), theirs())) and time.monotonic() < end:
            time.sleep(1)
        self.assertFalse(found, found)

    def test_same_state_and_no_errors(self):
        """One test, since the logs are compared when everything has happened."""
        with concurrent.futures.ThreadPoolExecutor(2 * len(SCENES)) as pool:
            played = [(scene, [pool.submit(play, plane, scene) for plane in self.planes]) for scene in chosen()]
        end = time.monotonic() + SAME_SECONDS
        for scene, stages in played:
            with self.subTest(scene=scene.__name__):
                ours, theirs = [stage.result() for stage in stages]
                self.wait_until_same(end, lambda: state(ours), lambda: state(theirs))
        with self.subTest("objects without a namespace"):
            self.wait_until_same(end, *[lambda plane=plane: cluster_state(plane) for plane in self.planes])
        for plane in self.planes:
            self.assertEqual(plane.ended(), [])
            self.check_cidrs(plane)
        for program in ("manager", "scheduler", "kubelet"):
            ours, theirs = [plane.programs[program].text() for plane in self.planes]
            with self.subTest(f"log of {program}"):
                self.assertEqual(unread(program, ours) + unread(program, theirs), [], "the log was not understood")
                lines = [line for line in new_lines(ours, theirs) if not self.excused or self.excused not in line]
                self.assertEqual(lines, [], "\n" + "\n".join(lines))


if __name__ == "__main__":
    unittest.main()
