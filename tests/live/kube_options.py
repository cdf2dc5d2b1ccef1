"""How get, list and watch answer Accept headers, field selectors of every kind and unusual options: the cases, and
how an answer is recorded. tests/live/kube_options.txt has one line per case, as a real kube-apiserver answers it
(tests/kube/same_reads_test.py); kube_options_test.py compares Vigil's answers with them."""
import concurrent.futures
import json
import pathlib
import re

from kube import answers_of

TABLE = pathlib.Path(__file__).with_suffix(".txt")
CMS = "/api/v1/namespaces/default/configmaps"
NAME = "asked"  # part of recorded answers
PATHS = {"get": f"{CMS}/{NAME}", "list": f"{CMS}?fieldSelector=metadata.name={NAME}",
         "watch": f"{CMS}?watch=1&timeoutSeconds=1&fieldSelector=metadata.name={NAME}", "missing": f"{CMS}/none"}
JSON, YAML, PROTOBUF = "application/json", "application/yaml", "application/vnd.kubernetes.protobuf"
TABLE_V1, ONE, MANY = (f";as={kind};v=v1;g=meta.k8s.io" for kind in ("Table", "PartialObjectMetadata",
                                                                     "PartialObjectMetadataList"))
ACCEPTS = (
    "", "*/*", "application/*", "*", "text/html", "application/cbor", "application/cbor-seq", JSON, YAML, PROTOBUF, "json",
    "a/b/c", ",", JSON + ",", "*/json", "APPLICATION/JSON", JSON + ";q=0", "*/*;q=0", JSON + ";q=x", JSON + ";q=0.1," + YAML,
    YAML + ";q=0.5," + JSON + ";q=0.5", "*/*;q=0.9," + YAML + ";q=0.1", JSON + ";q=-1," + YAML + ";q=0.1", JSON + ";q=1.5," + YAML,
    "text/html,application/xml;q=0.9,*/*;q=0.8", "application/cbor," + JSON + ";q=0.9", PROTOBUF + "," + JSON,
    JSON + ";stream=watch", JSON + ";stream=other", YAML + ";stream=watch", PROTOBUF + ";stream=watch",
    JSON + TABLE_V1, JSON + TABLE_V1 + "," + JSON, JSON + ";as=Table;v=v1beta1;g=meta.k8s.io", JSON + ";as=Table;v=v2;g=meta.k8s.io",
    JSON + ";as=Table;g=meta.k8s.io", JSON + ";as=Table", JSON + ";as=Table;v=v1;g=apps", PROTOBUF + TABLE_V1, YAML + TABLE_V1,
    "*/*" + TABLE_V1, PROTOBUF + TABLE_V1 + "," + JSON + ";q=0.5", JSON + ONE, PROTOBUF + ONE, JSON + MANY, PROTOBUF + MANY,
    JSON + ";as=Foo;v=v1;g=meta.k8s.io", JSON + ";as=Foo;v=v1;g=meta.k8s.io," + JSON, JSON + ";g=meta.k8s.io", JSON + ";v=v1",
    JSON + ";as=;v=;g=", JSON + ";as=APIGroupDiscoveryList;v=v2;g=apidiscovery.k8s.io", JSON + ";pretty=1", JSON + ";pretty=true",
    JSON + ";charset=utf-8", JSON + ";sv=v1", JSON + ";sv=v2", JSON + ";export=1", JSON + ";profile=x", JSON + ";;")
PODS = "/api/v1/namespaces/kube-public/pods"
FIELDS = (
    "/api/v1/configmaps metadata.namespace data.a", "/api/v1/events metadata.name involvedObject.name involvedObject source "
    "reportingComponent reportingController", "/api/v1/namespaces metadata.name metadata.namespace status.phase name",
    "/api/v1/nodes metadata.namespace spec.unschedulable spec.podCIDR", "/api/v1/persistentvolumes metadata.namespace spec.claimRef.name",
    "/api/v1/pods spec.nodeName spec.host spec.restartPolicy spec.schedulerName spec.serviceAccountName spec.hostNetwork status.phase "
    "status.podIP status.podIPs status.nominatedNodeName spec.hostIPC status.hostIP", "/api/v1/replicationcontrollers status.replicas "
    "spec.replicas", "/api/v1/secrets type data", "/api/v1/services spec.clusterIP spec.type spec.ports",
    "/apis/apps/v1/replicasets status.replicas", "/apis/apps/v1/deployments status.replicas", "/apis/batch/v1/jobs status.successful "
    "status.active metadata.namespace", "/apis/batch/v1/cronjobs status.successful", "/apis/certificates.k8s.io/v1/"
    "certificatesigningrequests spec.signerName metadata.namespace", "/apis/coordination.k8s.io/v1/leases spec.holderIdentity",
    "/apis/events.k8s.io/v1/events regarding.name reportingController involvedObject.name source", "/apis/resource.k8s.io/v1/"
    "resourceslices spec.nodeName spec.driver spec.pool metadata.namespace")
ODD = (
    f"{PODS}?fieldSelector=a", f"{PODS}?fieldSelector=a=b,c", f"{PODS}?fieldSelector=a=b=c", f"{PODS}?fieldSelector==x",
    f"{PODS}?fieldSelector=metadata.name=x%5C", f"{PODS}?fieldSelector=metadata.name=x%5Cy", f"{PODS}?fieldSelector=metadata.name>x",
    f"{PODS}?fieldSelector=%20metadata.name=x", f"{PODS}?fieldSelector=,,", f"{PODS}?labelSelector=a=b=c", f"{PODS}?labelSelector=!",
    f"{PODS}?labelSelector=a%20in%20(", f"{PODS}?labelSelector=a>x", f"{PODS}?labelSelector=-a", f"{PODS}?labelSelector={'a' * 64}",
    f"{PODS}?labelSelector=a={'b' * 64}", f"{PODS}?limit=99999999999999999999", f"{PODS}?limit=", f"{PODS}?continue=%00",
    f"{PODS}?timeoutSeconds=-1", f"{PODS}?watch=maybe&timeoutSeconds=1&resourceVersion=18446744073709551615",
    f"{PODS}?watch=1&timeoutSeconds=1&resourceVersion=9223372036854775808", f"{PODS}?resourceVersion=9223372036854775808",
    f"{PODS}?watch=1&timeoutSeconds=1&resourceVersion=%2B5", f"{PODS}?watch=1&timeoutSeconds=1&resourceVersion=0x5",
    f"{PODS}?watch=1&timeoutSeconds=1&resourceVersion=1.5", f"{PODS}?watch=1&timeoutSeconds=1&allowWatchBookmarks=x",
    f"{PODS}?watch=1&timeoutSeconds=1&sendInitialEvents=x&resourceVersionMatch=NotOlderThan", f"{PODS}/none?watch=1",
    f"/api/v1/watch/namespaces/default/configmaps/{NAME}?timeoutSeconds=1",
    f"/api/v1/watch/namespaces/default/configmaps/{NAME}?timeoutSeconds=1&fieldSelector=metadata.name=other",
    *(f"{PODS}?timeout={text}" for text in ("invalid", "", "0", "-5s", "10", "10s", "5x", "2562048h", "+5s", "1s2", "%22%C3%A9", "%zz")),
    f"{PODS}?timeout=5s&timeout=bad", f"{PODS}?timeout=bad&timeout=5s", f"{PODS}?limit=x&timeout=x", f"{PODS}/none?timeout=x",
    f"{PODS}/none/log?timeout=x", f"{PODS}?watch=1&timeoutSeconds=1&timeout=x", "/api?timeout=x", "/version?timeout=x",
    "/healthz?timeout=x",
    "/apis/apps/v1?timeout=x", "/openapi/v3?timeout=x", "/nothing?timeout=x")


def cases():
    """Returns {title: (path, headers)}."""
    found = {f"{verb} Accept: {accept}": (path, {"Accept": accept}) for verb, path in PATHS.items() for accept in ACCEPTS}
    for line in FIELDS:
        path, *fields = line.split()
        found.update({f"{path}?fieldSelector={field}=none": (f"{path}?fieldSelector={field}=none", {}) for field in fields})
    return found | {path: (path, {}) for path in ODD}


def summary(body):
    """A JSON object in short."""
    if body.get("kind") == "Status":
        return f"{body.get('reason', '')} {json.dumps(re.sub('[0-9]+', 'N', body.get('message', '')))}" \
            f"{' {}' if body.get('details') == {} else ''}".strip()
    return f"{body.get('kind')} {body.get('apiVersion')}"


def answer(response, body):
    kind = response.getheader("Content-Type", "")
    text = f"{response.status} {kind}"
    if "json" in kind and body[:8] == b'{"type":':
        event = json.loads(body.split(b"\n")[0])
        return f"{text} {event['type']} {summary(event['object'])}"
    if "json" in kind and body:
        return f"{text} {summary(json.loads(body))}" + (" pretty" if body[:2] == b"{\n" else "")
    found = re.search(rb"\x0a.([a-z0-9./]+)\x12.([A-Za-z]+)", body) if "protobuf" in kind else None
    if found:
        return f"{text} {found[2].decode()} {found[1].decode()}"
    found = re.search(rb"(?m)^kind: (\w+)", body)
    return f"{text} {found[1].decode()}" if found else text


def observe(connect, headers=None):
    """Sends all cases and returns {title: answer}. The object called NAME must exist."""
    def send(case):
        path, fields = case
        connection = connect()
        connection.request("GET", path, headers={**(headers or {}), **fields})
        response = connection.getresponse()
        text = answer(response, response.read())
        connection.close()
        return text

    todo = cases()
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        return dict(zip(todo, pool.map(send, todo.values())))


def table(for_vigil):
    return answers_of(TABLE, for_vigil)
