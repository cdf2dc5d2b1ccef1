#!/usr/bin/python3
"""Admission plugins: which are enabled by default, by flags, and that a write sees what other connections wrote before it."""
import http.client
import json
import subprocess
import unittest

from kube import KubeServer
from server import SUBJECT, WAIT_SECONDS, LiveTest, only_vigil

NAMESPACE = "/api/v1/namespaces/default"
PODS, ACCOUNTS, CLAIMS = f"{NAMESPACE}/pods", f"{NAMESPACE}/serviceaccounts", f"{NAMESPACE}/persistentvolumeclaims"
CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
THREADS = 4
ROUNDS = 30


def pod(name, **spec):
    return {"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i"}], **spec}}


@only_vigil
class Admission(LiveTest):
    def serve(self, *args):
        server = KubeServer(self.scratch / "data", ["--io-threads", str(THREADS), *args])
        self.addCleanup(server.kill)
        self.addCleanup(server.close)
        server.start()
        self.connections = [http.client.HTTPConnection("127.0.0.1", server.kube_port, timeout=WAIT_SECONDS)
                            for _ in range(2 * THREADS)]
        for connection in self.connections:
            self.addCleanup(connection.close)

    def send(self, method, path, body=None, at=0):
        connection = self.connections[at % len(self.connections)]
        connection.request(method, path, json.dumps(body) if body else None, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())

    def want(self, code, *request, at=0):
        got, body = self.send(*request, at=at)
        self.assertEqual(got, code, body)
        return body

    def test_a_server_without_controllers_takes_pods_and_releases_claims(self):
        self.serve()
        spec = self.want(201, "POST", PODS, pod("a"))["spec"]
        self.assertEqual((spec["priority"], spec["preemptionPolicy"]), (0, "PreemptLowerPriority"))
        self.assertEqual([t["key"] for t in spec["tolerations"]],
                         ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"])
        self.assertNotIn("volumes", spec)
        claim = {"metadata": {"name": "c"}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1"}}}}
        self.assertNotIn("finalizers", self.want(201, "POST", CLAIMS, claim)["metadata"])

    def test_plugins_that_need_controllers_can_be_enabled_and_others_disabled(self):
        self.serve("--kube-enable-admission-plugins=ServiceAccount", "--kube-disable-admission-plugins=Priority,PodSecurity")
        refused = self.want(403, "POST", PODS, pod("a", serviceAccountName="none"))
        self.assertEqual(refused["message"], 'pods "a" is forbidden: error looking up service account default/none: '
                                             'serviceaccount "none" not found')
        self.want(201, "POST", ACCOUNTS, {"metadata": {"name": "there"}})
        spec = self.want(201, "POST", PODS, pod("a", serviceAccountName="there"))["spec"]
        self.assertRegex(spec["volumes"][0]["name"], "^kube-api-access-[a-z0-9]{5}$")
        self.assertNotIn("priority", spec)

    def test_a_write_sees_what_another_connection_wrote_before_it(self):
        self.serve()
        for i in range(1, ROUNDS):
            self.want(201, "POST", CLASSES, {"metadata": {"name": f"c{i}"}, "value": i}, at=i)
            made = self.want(201, "POST", PODS, pod(f"p{i}", priorityClassName=f"c{i}"), at=i * 3 + 1)
            self.assertEqual(made["spec"]["priority"], i)
            self.want(200, "DELETE", f"{CLASSES}/c{i}", at=i * 5 + 2)
            self.want(403, "POST", PODS, pod(f"q{i}", priorityClassName=f"c{i}"), at=i * 7 + 3)

    def test_unknown_plugins_are_refused_with_the_names_of_the_others(self):
        done = subprocess.run([SUBJECT, "serve", "--data-dir", str(self.scratch / "none"),
                               "--kube-disable-admission-plugins=Priority,Nothing"],
                              text=True, capture_output=True, timeout=WAIT_SECONDS, check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn('there is no admission plugin "Nothing" here, only NamespaceLifecycle,', done.stderr.replace('\\"', '"'))


if __name__ == "__main__":
    unittest.main()
