#!/usr/bin/python3
"""PodSecurity: labels apply to the next pod, whichever thread serves it; the survey of a namespace's pods is bounded, and its clients
may leave. What the standards say is compared with Kubernetes in tests/kube/same_security_test.py."""
import concurrent.futures
import http.client
import json
import socket
import time
import unittest

from kube import KubeServer
from server import WAIT_SECONDS, LiveTest, Server, only_vigil

LABEL = "pod-security.kubernetes.io/"
MERGE = "application/merge-patch+json"
THREADS = 2
ROUNDS = 30
SURVEYED_MAX = 3000
BAD = {"hostPID": True, "containers": [{"name": "c", "image": "i"}]}
REFUSAL = 'violates PodSecurity "baseline:latest": host namespaces (hostPID=true)'


def pod(name, spec=None):
    return {"metadata": {"name": name}, "spec": spec or BAD}


@only_vigil
class Security(LiveTest):
    token = None

    def serve(self, *args):
        self.server = KubeServer(self.scratch / "data", ["--io-threads", str(THREADS), *args])
        self.addCleanup(self.server.kill)
        self.addCleanup(self.server.close)
        if self.token:
            Server.start(self.server)  # without a request: it would need the token
        else:
            self.server.start()
        self.connections = [self.connect() for _ in range(2 * THREADS)]

    def connect(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.server.kube_port, timeout=WAIT_SECONDS)
        self.addCleanup(connection.close)
        return connection

    def send(self, method, path, body=None, at=0, content_type="application/json"):
        """Returns the code, the body and the warnings."""
        connection = self.connections[at % len(self.connections)]
        fields = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        connection.request(method, path, json.dumps(body) if body else None, {"Content-Type": content_type, **fields})
        answer = connection.getresponse()
        warnings = [text.split('"', 1)[1][:-1].replace('\\"', '"') for text in answer.headers.get_all("Warning", [])]
        return answer.status, json.loads(answer.read()), warnings

    def want(self, code, *request, **more):
        got, body, warnings = self.send(*request, **more)
        self.assertEqual(got, code, body)
        return body, warnings

    def label(self, name, at=0, **modes):
        return self.want(200, "PATCH", f"/api/v1/namespaces/{name}", {"metadata": {"labels": {
            LABEL + mode: level for mode, level in modes.items()}}}, at=at, content_type=MERGE)[1]

    def namespace(self, name, **modes):
        self.want(201, "POST", "/api/v1/namespaces", {"metadata": {"name": name, "labels": {
            LABEL + mode: level for mode, level in modes.items()}}})
        return f"/api/v1/namespaces/{name}/pods"

    def test_a_label_applies_to_the_next_pod_on_every_thread(self):
        self.serve()
        pods = self.namespace("n")
        for i in range(ROUNDS):
            self.label("n", at=i, enforce="baseline")
            body, _ = self.want(403, "POST", pods, pod(f"p{i}"), at=i + 1)
            self.assertEqual(body["message"], f'pods "p{i}" is forbidden: {REFUSAL}')
            self.label("n", at=i, enforce="privileged")
            self.want(201, "POST", pods, pod(f"p{i}"), at=i + 1)

    def test_a_namespace_of_kubernetes_can_be_labelled_before_anything_is_in_it(self):
        self.serve()
        self.want(201, "POST", "/api/v1/namespaces/default/pods", pod("before"))
        self.label("default", enforce="baseline")
        self.want(403, "POST", "/api/v1/namespaces/default/pods", pod("after"))

    def test_workloads_are_created_with_a_warning(self):
        self.serve()
        self.namespace("n", enforce="baseline")
        _, warnings = self.want(201, "POST", "/apis/apps/v1/namespaces/n/deployments", {"metadata": {"name": "d"}, "spec": {
            "selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}}, "spec": BAD}}})
        self.assertEqual(warnings, ["would " + REFUSAL.replace("violates", "violate")])

    def test_the_plugin_can_be_disabled(self):
        self.serve("--kube-disable-admission-plugins=PodSecurity")
        pods = self.namespace("n", enforce="baseline")
        self.want(201, "POST", pods, pod("p"))
        self.assertEqual(self.label("n", warn="restricted"), ["the admission plugin PodSecurity is disabled: the label "
                                                              f"{LABEL}warn has no effect"])
        self.label("n", enforce="nothing")

    def fill(self, pods, count):
        def create(part):
            connection = self.connect()
            for i in range(part, count, 4):
                connection.request("POST", pods, json.dumps(pod(f"p{i:05}")), {"Content-Type": "application/json"})
                answer = connection.getresponse()
                answer.read()
                self.assertEqual(answer.status, 201)
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            list(pool.map(create, range(4)))

    def test_a_survey_begins_with_one_pod_of_each_controller(self):
        """More pods than are reviewed belong to one controller. Those of others come later in the order of names."""
        self.serve("--kube-garbage-collector=false")  # the controllers do not exist
        self.namespace("n")

        def owned(uid, spec):
            owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": uid, "uid": uid, "controller": True}
            return {"spec": spec, "ownerReferences": [owner] if uid else []}

        wide = {"containers": [{"name": "c", "image": "i", "ports": [{"containerPort": 1, "hostPort": 1}]}]}
        stored = {f"p{i:05}": owned("many", BAD) for i in range(SURVEYED_MAX + 100)}
        stored.update({"y0": owned("few", wide), "y1": owned("few", wide), "z": owned(None, wide)})
        for name, one in stored.items():
            one["metadata"] = {"name": name, "namespace": "n", "uid": name, "ownerReferences": one.pop("ownerReferences")}
        self.server.namespace = "n"
        self.server.put_many("pods", stored)
        warnings = self.label("n", enforce="baseline")
        total = len(stored)
        self.assertIn(f" of {total} existing pods", warnings[0])
        reviewed = int(warnings[0].split(" first ")[1].split()[0])
        self.assertEqual(warnings[2:], [f"p00000 (and {reviewed - 3} other pods): host namespaces", "y0 (and 1 other pod): hostPort"])
        self.assertGreater(reviewed, 4)

    def test_an_admission_configuration_exempts_users_and_namespaces(self):
        config, tokens = self.scratch / "admission.yaml", self.scratch / "tokens.csv"
        (self.scratch / "security.json").write_text(json.dumps({
            "apiVersion": "pod-security.admission.config.k8s.io/v1beta1", "kind": "PodSecurityConfiguration",
            "defaults": {"enforce": "baseline"}, "exemptions": {"namespaces": ["free"], "usernames": ["jane"]}}))
        config.write_text("apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\n"
                          "plugins:\n- name: PodSecurity\n  path: security.json\n")
        tokens.write_text("a-token,admin,admin\nb-token,jane,jane\n")
        self.token = "a-token"
        self.serve(f"--kube-admission-control-config-file={config}", f"--kube-token-file={tokens}")
        pods = self.namespace("n")
        self.assertEqual(self.want(403, "POST", pods, pod("p"))[0]["message"], f'pods "p" is forbidden: {REFUSAL}')
        self.token = "b-token"
        self.want(201, "POST", pods, pod("p"))
        self.token = "a-token"
        self.want(201, "POST", self.namespace("free"), pod("p"))
        self.assertEqual(self.label("free", enforce="restricted"), [
            'namespace "free" is exempt from Pod Security, and the policy (enforce=restricted:latest) will be ignored'])

    def test_a_survey_ends_and_clients_may_leave(self):
        self.serve()
        pods = self.namespace("n")
        count = SURVEYED_MAX + 200
        self.fill(pods, count)
        warnings = self.label("n", enforce="baseline")
        first, *rest = warnings
        self.assertRegex(first, rf"^new PodSecurity enforce level only checked against the first \d+ of {count} existing pods$")
        reviewed = int(first.split(" first ")[1].split()[0])
        self.assertGreater(reviewed, 0)
        self.assertLessEqual(reviewed, SURVEYED_MAX)
        self.assertEqual(rest, ['existing pods in namespace "n" violate the new PodSecurity enforce level "baseline:latest"',
                                f"p00000 (and {reviewed - 1} other pods): host namespaces"])
        # Clients that leave in the middle of a survey leave nothing behind.
        for i in range(20):
            level = "restricted" if i % 2 else "baseline"
            body = json.dumps({"metadata": {"labels": {LABEL + "enforce": level}}}).encode()
            with socket.create_connection(("127.0.0.1", self.server.kube_port)) as gone:
                gone.sendall(b"PATCH /api/v1/namespaces/n?dryRun=All HTTP/1.1\r\nHost: h\r\nContent-Type: " + MERGE.encode() +
                             b"\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
                time.sleep(0.01 * (i % 3))
        self.assertEqual(len(self.label("n", enforce="restricted")), 3)


if __name__ == "__main__":
    unittest.main()
