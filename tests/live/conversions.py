"""A definition with several versions whose objects differ, and the behaviours of its converter, good and bad."""
import copy

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
GROUP = "example.com"
TEXT, NUMBER = {"type": "string"}, {"type": "integer"}


def schema(**spec):
    return {"openAPIV3Schema": {"type": "object", "properties": {
        "spec": {"type": "object", "properties": spec},
        "status": {"type": "object", "properties": {"ready": NUMBER}}}}}


def version(name, storage=False, replicas=".spec.replicas", **spec):
    return {"name": name, "served": True, "storage": storage, "schema": schema(**spec), "subresources": {
        "status": {}, "scale": {"specReplicasPath": replicas, "statusReplicasPath": ".status.ready"}}}


def versions(stored="v1"):
    """v1 has spec.hostPort, v2 spec.host and spec.port and another place for replicas, v3 is as v2 with a default."""
    made = [version("v1", stored == "v1", hostPort=TEXT), version("v2", stored == "v2", ".spec.count", host=TEXT, port=TEXT, count=NUMBER),
            version("v3", stored == "v3", host=TEXT, port=TEXT, note={"type": "string", "default": "none"})]
    for each in (made[0], made[2]):
        each["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["replicas"] = NUMBER
    return made


def definition(client_config, plural="gates", kind="Gate", stored="v1", reviews=("v1",), scope="Namespaced", **more):
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": f"{plural}.{GROUP}"},
            "spec": {"group": GROUP, "scope": scope, "names": {"plural": plural, "kind": kind}, "versions": versions(stored),
                     "conversion": {"strategy": "Webhook", "webhook": {
                         "clientConfig": client_config, "conversionReviewVersions": list(reviews)}}, **more}}


def gate(name, api="v1", kind="Gate", labels=None, **spec):
    if not spec:
        spec = {"hostPort": "a:1"} if api == "v1" else {"host": "a", "port": "1"}
    metadata = {"name": name, **({"labels": labels} if labels else {})}
    return {"apiVersion": f"{GROUP}/{api}", "kind": kind, "metadata": metadata, "spec": spec}


def path(api="v1", name=None, part=None, namespace="default", plural="gates"):
    where = f"/namespaces/{namespace}" if namespace else ""
    return f"/apis/{GROUP}/{api}{where}/{plural}" + (f"/{name}" if name else "") + (f"/{part}" if part else "")


# -- the converter --


def convert_spec(spec, old, new):
    spec = dict(spec)
    if old == new:
        return spec
    if old == "v1":
        host, _, port = spec.pop("hostPort", ":").partition(":")
        spec.update({key: value for key, value in (("host", host), ("port", port)) if value})
    if new == "v1":
        host, port = spec.pop("host", ""), spec.pop("port", "")
        if host or port:
            spec["hostPort"] = f"{host}:{port}"
    if new != "v3":
        spec.pop("note", None)
    count, replicas = ("count" if old == "v2" else "replicas"), ("count" if new == "v2" else "replicas")
    if count in spec:
        spec[replicas] = spec.pop(count)
    return spec


def convert(thing, desired):
    made = copy.deepcopy(thing)
    old, new = thing["apiVersion"].split("/")[1], desired.split("/")[1]
    made["apiVersion"] = desired
    if "spec" in made:
        made["spec"] = convert_spec(made["spec"], old, new)
    return made


def converted(call):
    return [convert(thing, call.request["desiredAPIVersion"]) for thing in call.request["objects"]]


def answer(call, objects=None, **response):
    call.respond(**{"result": {"status": "Success"}, "convertedObjects": converted(call) if objects is None else objects, **response})


def good(call):
    answer(call)


def changed(change):
    """Answers well, but for what change does to each object."""
    def behave(call):
        objects = converted(call)
        for thing in objects:
            change(thing)
        answer(call, objects)
    return behave


def put(field, value):
    """Sets "metadata.name", or removes it without a value."""
    def change(thing):
        *steps, last = field.split(".")
        for step in steps:
            thing = thing.setdefault(step, {})
        if value is None:
            thing.pop(last, None)
        else:
            thing[last] = value
    return changed(change)


def response(**fields):
    return lambda call: answer(call, **fields)


def objects(make):
    return lambda call: answer(call, make(converted(call)))


def raw(body, **how):
    return lambda call: call.reply(body, **how)


# What a converter may answer, by name; each is an error, whose text is compared with Kubernetes'.
BAD = {
    "wrong-uid": response(uid="x"),
    "no-uid": response(uid=None),
    "failure": response(result={"status": "Failure"}),
    "failure-message": response(result={"status": "Failure", "message": "cannot do that"}),
    "no-result": response(result=None),
    "too-few": objects(lambda made: made[1:]),
    "too-many": objects(lambda made: made + made),
    "none": objects(lambda made: []),
    "name": put("metadata.name", "other"),
    "no-name": put("metadata.name", None),
    "namespace": put("metadata.namespace", "other"),
    "uid": put("metadata.uid", "other"),
    "kind": put("kind", "Door"),
    "no-kind": put("kind", None),
    "version": put("apiVersion", "example.com/v9"),
    "group": put("apiVersion", "other.com/v2"),
    "no-version": put("apiVersion", None),
    "no-metadata": put("metadata", None),
    "metadata-text": put("metadata", "x"),
    "labels-list": put("metadata.labels", ["x"]),
    "label-number": put("metadata.labels", {"a": 1}),
    "label-bad": put("metadata.labels", {"a": "b c"}),
    "label-key": put("metadata.labels", {"a b": "c"}),
    "annotation-key": put("metadata.annotations", {"a b": "c"}),
    "annotation-bool": put("metadata.annotations", {"a": True}),
    "object-text": objects(lambda made: ["x" for _ in made]),
    "object-null": objects(lambda made: [None for _ in made]),
    "not-a-list": objects(lambda made: {"a": "b"}),
    "other-version": lambda call: call.reply({**call.document({"uid": call.request["uid"]}), "apiVersion": "apiextensions.k8s.io/v1beta1"}),
    "other-kind": lambda call: call.reply({**call.document({"uid": call.request["uid"]}), "kind": "Pod", "apiVersion": "v1"}),
    "no-type": lambda call: call.reply({"response": {"uid": call.request["uid"]}}),
    "no-response": lambda call: call.reply(call.document()),
    "response-text": lambda call: call.reply({**call.document(), "response": "x"}),
    "empty-object": raw({}),
    "array": raw([]),
    "text": raw('"x"'),
    "not-json": raw("{nonsense"),
    "empty": raw(""),
    "code-500": raw({"kind": "Status"}, code=500),
    "code-404": raw("no", code=404, content_type="text/plain"),
}


def by_name(call):
    """Answers as the name of the object says: "bad-wrong-uid"; others well."""
    names = {thing["metadata"]["name"] for thing in call.request.get("objects", [])}
    for name in names:
        if name.startswith("bad-"):
            BAD[name.removeprefix("bad-").removesuffix("-too")](call)
            return
    good(call)
