"""Answers of the Kubernetes API in JSON and protobuf, whole or reduced to the metadata, as the same objects: those that a
kube-apiserver stores as JSON. Only what config maps have is known."""
import datetime
import json

from protobuf import parse

PROTOBUF = "application/vnd.kubernetes.protobuf"
MAGIC = b"k8s\0"


def text(fields, number):
    return fields[number][0].decode() if number in fields else None


def given(**members):
    """Without those that are empty, as Go leaves them out."""
    return {name.rstrip("_"): value for name, value in members.items() if value not in (None, "", {}, [])}


def text_map(fields, number):
    entries = [parse(entry) for entry in fields.get(number, ())]
    return {text(entry, 1): text(entry, 2) or "" for entry in entries}


def time_of(fields, number):
    if number not in fields:
        return None
    seconds = parse(fields[number][0]).get(1, [0])[0]
    return datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def manager(fields):
    raw = parse(fields[7][0]) if 7 in fields else {}
    return given(manager=text(fields, 1), operation=text(fields, 2), apiVersion=text(fields, 3), time=time_of(fields, 4),
                 fieldsType=text(fields, 6), fieldsV1=json.loads(raw[1][0]) if 1 in raw else None, subresource=text(fields, 8))


def metadata(fields):
    known = {1, 2, 3, 4, 5, 6, 7, 8, 11, 12, 13, 14, 17}
    assert set(fields) <= known - {13, 14}, f"fields {set(fields)} of metadata"
    return given(name=text(fields, 1), generateName=text(fields, 2), namespace=text(fields, 3), uid=text(fields, 5),
                 resourceVersion=text(fields, 6), generation=fields.get(7, [0])[0] or None, creationTimestamp=time_of(fields, 8),
                 labels=text_map(fields, 11), annotations=text_map(fields, 12),
                 managedFields=[manager(parse(entry)) for entry in fields.get(17, ())])


def config_map(fields):
    assert set(fields) <= {1, 2}, f"fields {set(fields)} of a config map"
    return {"metadata": metadata(parse(fields[1][0])), **given(data=text_map(fields, 2))}


def partial(fields):
    assert set(fields) <= {1}, f"fields {set(fields)} of metadata alone"
    return {"metadata": metadata(parse(fields[1][0]))}


def status(fields):
    return {"message": text(fields, 3), "reason": text(fields, 4), "code": fields.get(6, [0])[0]}


def items_of(read):
    def read_list(fields):
        head = parse(fields[1][0]) if 1 in fields else {}
        return {"metadata": given(resourceVersion=text(head, 2), continue_=text(head, 3), remainingItemCount=head.get(4, [None])[0]),
                "items": [read(parse(item)) for item in fields.get(2, ())]}
    return read_list


READERS = {
    "v1 ConfigMap": config_map, "v1 ConfigMapList": items_of(config_map), "meta.k8s.io/v1 PartialObjectMetadata": partial,
    "meta.k8s.io/v1 PartialObjectMetadataList": items_of(partial), "v1 Status": status,
}


def opened(body):
    """The object in Kubernetes' envelope."""
    assert body[:4] == MAGIC, f"no envelope: {body[:40]}"
    envelope = parse(body[4:])
    kind = parse(envelope[1][0])
    version, kind = text(kind, 1), text(kind, 2)
    fields = parse(envelope[2][0]) if 2 in envelope else {}
    return {"apiVersion": version, "kind": kind, **READERS[f"{version} {kind}"](fields)}


class Format:
    """An encoding that a client asks for."""

    def __init__(self, name):
        self.name = name
        self.is_protobuf, self.is_partial = "protobuf" in name, "metadata" in name

    def reduced(self, thing):
        """What it shows of an object."""
        return {"metadata": thing["metadata"]} if self.is_partial and thing is not None else thing

    def accept(self, is_list=False):
        kind = PROTOBUF if self.is_protobuf else "application/json"
        if not self.is_partial:
            return kind
        return f"{kind};as=PartialObjectMetadata{'List' if is_list else ''};g=meta.k8s.io;v=v1"

    def kinds(self):
        """apiVersion and kind of objects."""
        return ("meta.k8s.io/v1", "PartialObjectMetadata") if self.is_partial else ("v1", "ConfigMap")

    def read(self, body):
        return opened(body) if self.is_protobuf else json.loads(body)

    def split(self, rest):
        """The whole frames of a watch, and what remains."""
        if not self.is_protobuf:
            *frames, rest = rest.split(b"\n")
            return frames, rest
        frames = []
        while len(rest) >= 4 and len(rest) >= 4 + (size := int.from_bytes(rest[:4], "big")):
            frames.append(rest[4:4 + size])
            rest = rest[4 + size:]
        return frames, rest

    def event(self, frame):
        """Type and object."""
        if self.is_protobuf:
            fields = parse(frame)
            return text(fields, 1), opened(parse(fields[2][0])[1][0])
        event = json.loads(frame)
        return event["type"], event["object"]


JSON = Format("json")
FORMATS = {name: Format(name) for name in ("json", "protobuf", "metadata", "metadata-protobuf")}
