#!/usr/bin/env python3
"""Compares our protobuf codec with Google's, through python3-protobuf.

    codec_oracle.py CODEC_ORACLE_PROGRAM PROTO_DIRECTORY [SEED]

The tables must agree with what protoc reads in the same files. For every message type, our codec must
reproduce random messages byte for byte; both must accept or both reject a damaged message, and decode
it to the same value. Both must write the same JSON and read each other's. Intended differences are
listed in explained(); in these we follow Go's implementation, which etcd uses.
Each run uses a new seed and prints it; a run can be repeated by giving its seed.
"""

import contextlib
import json
import os
import random
import struct
import subprocess
import sys
import tempfile
import warnings

from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory
from google.protobuf.descriptor import FieldDescriptor as FD
from google.protobuf.message import DecodeError

ROUND_TRIPS = 60  # random messages for each type
DAMAGED = 150  # damaged messages for each type
EDGES = {
    FD.CPPTYPE_INT32: [0, 1, -1, 127, 128, 2**31 - 1, -(2**31)],
    FD.CPPTYPE_INT64: [0, 1, -1, 127, 128, 2**63 - 1, -(2**63)],
    FD.CPPTYPE_UINT32: [0, 1, 127, 128, 2**32 - 1],
    FD.CPPTYPE_UINT64: [0, 1, 127, 128, 2**63, 2**64 - 1],
    FD.CPPTYPE_ENUM: [0, 1, 2, 3, 77, -1, 2**31 - 1, -(2**31)],
    FD.CPPTYPE_BOOL: [False, True],
}
NUMBER_BITS = {FD.CPPTYPE_INT32: (-31, 31), FD.CPPTYPE_INT64: (-63, 63),
               FD.CPPTYPE_UINT32: (0, 32), FD.CPPTYPE_UINT64: (0, 64)}
DEPTH_MAX = 100


def load_types(proto_directory):
    """Every message class of our proto files, by full name; and the descriptor set itself."""
    names = sorted(n for n in os.listdir(proto_directory) if n.endswith(".proto"))
    with tempfile.TemporaryDirectory() as scratch:
        out = os.path.join(scratch, "set")
        subprocess.run(["protoc", "-I", proto_directory, "--include_imports",
                        "--descriptor_set_out=" + out] + names, check=True)
        with open(out, "rb") as data:
            files = descriptor_pb2.FileDescriptorSet.FromString(data.read())
    pool = descriptor_pool.DescriptorPool()
    for file in files.file:
        pool.Add(file)
    factory = message_factory.MessageFactory(pool)
    types = {}
    for file in files.file:
        for message in file.message_type:
            name = f"{file.package}.{message.name}"
            types[name] = factory.GetPrototype(pool.FindMessageTypeByName(name))
    return types


class Maker:
    """Random messages, values and damage from one seed."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def number(self, cpp_type):
        if cpp_type not in NUMBER_BITS or self.random.random() < 0.4:
            return self.random.choice(EDGES[cpp_type])
        low, high = NUMBER_BITS[cpp_type]
        value = self.random.getrandbits(self.random.randint(1, high))
        return -value if low and self.random.random() < 0.3 else value

    def blob(self):
        length = self.random.choice([0, 0, 1, 3, 8, 20, 127, 128, 300])
        return self.random.randbytes(length)

    def text(self):
        length = self.random.choice([0, 1, 3, 8, 17, 40, 130])
        ranges = [(0, 0x7F), (0x80, 0x7FF), (0x800, 0xD7FF), (0xE000, 0xFFFF), (0x10000, 0x10FFFF)]
        ascii_only = self.random.random() < 0.5
        return "".join(chr(self.random.randint(*ranges[0 if ascii_only else self.random.randrange(5)]))
                       for _ in range(length))

    def value(self, field):
        if field.type == FD.TYPE_BYTES:
            return self.blob()
        if field.type == FD.TYPE_STRING:
            return self.text()
        return self.number(field.cpp_type)

    def fill(self, message, depth):
        fields = [f for f in message.DESCRIPTOR.fields if self.random.random() < 0.7]
        self.random.shuffle(fields)  # a oneof keeps the member that was set last
        for field in fields:
            if field.label == FD.LABEL_REPEATED:
                for _ in range(self.random.choice([0, 1, 2, 5, 17])):
                    if field.message_type:
                        item = getattr(message, field.name).add()
                        if depth:
                            self.fill(item, depth - 1)
                    else:
                        getattr(message, field.name).append(self.value(field))
            elif field.message_type:
                getattr(message, field.name).SetInParent()
                if depth:
                    self.fill(getattr(message, field.name), depth - 1)
            else:
                setattr(message, field.name, self.value(field))
        return message

    def varint(self, value, padding=0):
        out = bytearray()
        while value >= 0x80:
            out.append(value & 0x7F | 0x80)
            value >>= 7
        out.append(value)
        for _ in range(padding):
            out[-1] |= 0x80
            out.append(0)
        return bytes(out)

    def stray_field(self):
        """A field that a peer of another version, or an attacker, might send."""
        number = self.random.choice([0, 1, 2, 3, 4, 5, 15, 16, 64, 99, 2**29 - 1, 2**29])
        wire = self.random.randrange(8)
        padding = self.random.choice([0, 0, 0, 1, 3, 6])
        tag = self.varint(number << 3 | wire, padding)
        if wire == 0:
            return tag + self.varint(self.random.getrandbits(64), padding if padding < 2 else 0)
        if wire == 1:
            return tag + self.random.randbytes(8)
        if wire == 2:
            body = self.random.choice([b"", b"\x08\x01", b"\xff", b"\x0a\x00", b"\x01\x80\x01"])
            return tag + self.varint(len(body), padding) + body
        if wire == 3:
            end = number if self.random.random() < 0.8 else number + 1
            return tag + self.stray_field() + self.varint(end << 3 | 4)
        if wire == 5:
            return tag + self.random.randbytes(4)
        return tag

    def damage(self, data, other):
        data = bytearray(data)
        how = self.random.randrange(7)
        at = self.random.randrange(len(data) + 1)
        if how == 0:
            return bytes(data[:at])
        if how == 1 and data:
            for _ in range(self.random.randint(1, 3)):
                data[self.random.randrange(len(data))] = self.random.randrange(256)
        elif how == 2 and data:
            data[at % len(data)] ^= 1 << self.random.randrange(8)
        elif how == 3:
            data[at:at] = self.random.randbytes(self.random.randint(1, 12))
        elif how == 4:
            data += other  # two messages in a row merge
        elif how == 5:
            data += self.stray_field()
        else:
            data[0:0] = self.stray_field() + other
        return bytes(data)


def wrap(payload, levels):
    """A TxnRequest around payload: success { request_txn { ... } }, each two levels deep."""
    for _ in range(levels):
        payload = b"\x22" + length_of(payload) + payload
        payload = b"\x12" + length_of(payload) + payload
    return payload


def length_of(payload):
    return Maker(0).varint(len(payload))


def ask(program, cases, *mode):
    """The C program's answer for each (name, bytes): the bytes encoded again, or 'n', or 'l'."""
    parts = []
    for name, data in cases:
        parts += [struct.pack("<I", len(name)), name.encode(), struct.pack("<I", len(data)), data]
    run = subprocess.run([program, *mode], input=b"".join(parts), stdout=subprocess.PIPE, check=True)
    out, at, answers = run.stdout, 0, []
    while at < len(out):
        verdict = chr(out[at])
        at += 1
        if verdict == "y":
            (length,) = struct.unpack_from("<I", out, at)
            answers.append(out[at + 4:at + 4 + length])
            at += 4 + length
        else:
            answers.append(verdict)
    assert len(answers) == len(cases), "an answer is missing"
    return answers


@contextlib.contextmanager
def quiet():
    """Silences the other implementation, which prints a line for each string that is not UTF-8."""
    sys.stderr.flush()
    saved, nothing = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 2)
    try:
        yield
    finally:
        os.dup2(saved, 2)
        os.close(saved)
        os.close(nothing)


def judge(message_class, data):
    """Decodes the bytes with the other implementation; returns them encoded again, or None if it rejects them."""
    try:
        message = message_class.FromString(data)
    except DecodeError:
        return None
    except SystemError as error:
        # It stopped at an unexpected end of a group and reports that as a warning, which main() turns into an error.
        assert isinstance(error.__cause__, RuntimeWarning)
        return None
    message.DiscardUnknownFields()  # our codec does not keep them
    return message.SerializeToString(deterministic=True)


class Walk:
    """Parses the wire format of a message and notes encodings that implementations read differently. C++ accepts
    tags and lengths of at most five bytes and drops bits beyond 64; Go, and we like it, accept up to ten bytes for
    any number and reject more than 64 bits."""

    def __init__(self, data, descriptor):
        self.long_varint = self.overflow = self.long_tag = False
        self.read(data, descriptor, 0, len(data))

    def varint(self, data, at, end, head):
        value = 0
        for i in range(10):
            if at + i >= end:
                return None, end
            byte = data[at + i]
            value |= (byte & 0x7F) << 7 * i
            if byte < 0x80:
                self.overflow |= value >= 1 << 64
                self.long_varint |= head and i >= 5
                return value, at + i + 1
        self.overflow = True
        return None, end

    def read(self, data, descriptor, at, end):
        while at < end:
            tag, at = self.varint(data, at, end, True)
            if tag is None:
                return
            self.long_tag |= tag >= 1 << 32
            wire, field = tag & 7, None
            if descriptor:
                field = descriptor.fields_by_number.get(tag >> 3)
            if wire == 0:
                _, at = self.varint(data, at, end, False)
            elif wire in (1, 5):
                at += 8 if wire == 1 else 4
            elif wire == 2:
                length, at = self.varint(data, at, end, True)
                if length is None or length > end - at:
                    return
                if field and field.message_type:
                    self.read(data, field.message_type, at, at + length)
                elif field and field.label == FD.LABEL_REPEATED and field.type == FD.TYPE_ENUM:
                    inner = at
                    while inner < at + length:
                        _, inner = self.varint(data, inner, at + length, False)
                at += length


def explained(data, descriptor, refused_by_us):
    """Whether a difference is known and intended."""
    walk = Walk(data, descriptor)
    if refused_by_us:
        return walk.overflow or walk.long_tag
    return walk.long_varint


def expected_tables(types):
    """The expected output of codec_oracle --tables, made from protoc's descriptors."""
    lines = set()
    for name, message_class in types.items():
        lines.add(f"message {name}")
        for field in message_class.DESCRIPTOR.fields:
            label = ("repeated" if field.label == FD.LABEL_REPEATED else
                     "oneof" if field.containing_oneof else "singular")
            kind = descriptor_pb2.FieldDescriptorProto.Type.Name(field.type)[len("TYPE_"):].lower()
            target = field.message_type or field.enum_type
            lines.add(f"field {name} {field.number} {field.name} {field.json_name} {kind} {label} "
                      f"{target.full_name if target else '-'}")
            for value in field.enum_type.values if field.enum_type else []:
                lines.add(f"value {field.enum_type.full_name} {value.name} {value.number}")
    return lines


def check_tables(program, types):
    """Names, JSON names, numbers, kinds and labels equal those that protoc reads in our files."""
    got = set(subprocess.check_output([program, "--tables"], text=True).splitlines())
    expected = expected_tables(types)
    for line in sorted(got ^ expected):
        print("only in", "our tables:" if line in got else "the descriptors:", line)
    return len(expected), len(got ^ expected)


def check_round_trips(program, types, maker):
    cases = []
    for name, message_class in types.items():
        for _ in range(ROUND_TRIPS):
            message = maker.fill(message_class(), maker.random.randint(0, 4))
            cases.append((name, message.SerializeToString(deterministic=True)))
    failed = 0
    for (name, data), got in zip(cases, ask(program, cases)):
        if got != data:
            failed += 1
            print(f"changed by a round trip: {name}\n  sent {data.hex()}\n  got  "
                  f"{got if isinstance(got, str) else got.hex()}")
    return len(cases), failed


def check_damaged(program, types, maker):
    cases = []
    for name, message_class in types.items():
        for _ in range(DAMAGED):
            pair = [maker.fill(message_class(), maker.random.randint(0, 2)).SerializeToString()
                    for _ in range(2)]
            cases.append((name, maker.damage(*pair)))
    failed = accepted = known = 0
    answers = ask(program, cases)
    with quiet():
        verdicts = [judge(types[name], data) for name, data in cases]
    for (name, data), got, expected in zip(cases, answers, verdicts):
        accepted += expected is not None
        got = None if isinstance(got, str) else got
        if got == expected:
            continue
        if explained(data, types[name].DESCRIPTOR, got is None):
            known += 1
            continue
        failed += 1
        print(f"accepted by one implementation, or decoded differently: {name}\n  sent     {data.hex()}\n  expected "
              f"{expected and expected.hex()}\n  got      {got and got.hex()}")
    print(f"  damaged: both accepted {accepted} of {len(cases)}; {known} known differences")
    return len(cases), failed


def check_depth(program, types):
    """Both stop at the same depth, in messages and in unknown groups."""
    name, failed, count = "etcdserverpb.TxnRequest", 0, 0
    cases = [wrap(b"", levels) for levels in range(DEPTH_MAX // 2 - 2, DEPTH_MAX // 2 + 3)]
    cases += [wrap(b"\x12\x00", levels) for levels in range(DEPTH_MAX // 2 - 2, DEPTH_MAX // 2 + 3)]
    cases += [b"\x7b" * n + b"\x7c" * n for n in range(DEPTH_MAX - 2, DEPTH_MAX + 3)]
    for data, got in zip(cases, ask(program, [(name, data) for data in cases])):
        count += 1
        expected = judge(types[name], data)
        if (got == "l") != (expected is None) or got == "n":
            failed += 1
            print(f"different depth limit: expected {expected}, got {got}: {data.hex()}")
    return count, failed


def as_json(maker, message):
    """A message in one of the forms that proto3-JSON allows."""
    value = json.loads(json_format.MessageToJson(
        message, preserving_proto_field_name=maker.random.random() < 0.5,
        use_integers_for_enums=maker.random.random() < 0.3))
    if maker.random.random() < 0.3:
        value["unknown"] = {"a": [1, None, {"b": "\u20ac"}]}
    return json.dumps(value, ensure_ascii=maker.random.random() < 0.5,
                      indent=maker.random.choice([None, None, 1]),
                      separators=maker.random.choice([None, (",", ":")]))


def check_json(program, types, maker):
    messages = [(name, maker.fill(cls(), maker.random.randint(0, 3)))
                for name, cls in types.items() for _ in range(ROUND_TRIPS // 2)]
    wires = [(name, m.SerializeToString(deterministic=True)) for name, m in messages]
    texts = [(name, as_json(maker, m).encode()) for name, m in messages]
    failed = 0
    for (name, message), got in zip(messages, ask(program, wires, "--to-json")):
        expected = json_format.MessageToJson(message, preserving_proto_field_name=True)
        if isinstance(got, str) or json.loads(got) != json.loads(expected):
            failed += 1
            print(f"written differently: {name}\n  expected {expected}\n  got      {got}")
    for (name, message), (_, text), got in zip(messages, texts, ask(program, texts, "--from-json")):
        if isinstance(got, str) or type(message).FromString(got) != message:
            failed += 1
            print(f"read differently: {name}\n  sent {text}\n  got  {got}")
    return 2 * len(messages), failed


def main(program, proto_directory, seed=None):
    seed = int(seed) if seed else random.SystemRandom().getrandbits(32)
    print(f"codec oracle: seed {seed}")
    types, maker = load_types(proto_directory), Maker(seed)
    warnings.simplefilter("error", RuntimeWarning)
    results = [check_tables(program, types), check_round_trips(program, types, maker),
               check_damaged(program, types, maker), check_depth(program, types),
               check_json(program, types, maker)]
    failed = sum(result[1] for result in results)
    print(f"codec oracle: {len(types)} types, {sum(r[0] for r in results)} checks, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
