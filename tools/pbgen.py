#!/usr/bin/env python3
"""Makes C structs and codec tables from the .proto files in proto/.

    pbgen.py OUTPUT_DIRECTORY FILE.proto...

For each file: OUTPUT_DIRECTORY/FILE.pb.h and FILE.pb.c; for all of them: all.pb.c with the list of
messages. src/codec/pb/pb.h says what the structs look like. It reads the part of proto3 that our
files use and refuses the rest by name and line.
"""

import os
import re
import sys

SCALARS = {  # proto type: (C type, kind)
    "bool": ("bool", "BOOL"),
    "int32": ("int32_t", "INT32"),
    "uint32": ("uint32_t", "UINT32"),
    "int64": ("int64_t", "INT64"),
    "uint64": ("uint64_t", "UINT64"),
    "string": ("struct slice", "STRING"),
    "bytes": ("struct slice", "BYTES"),
}
UNSUPPORTED = {"sint32", "sint64", "fixed32", "fixed64", "sfixed32", "sfixed64", "float", "double",
               "map", "group", "optional", "required", "extensions", "reserved", "extend", "option"}
# Names that pb.h and wire.h already use.
TAKEN = {"pb_array", "pb_enum", "pb_enum_value", "pb_field", "pb_kind", "pb_label", "pb_message",
         "pb_wire"}


class ProtoError(Exception):
    pass


def snake(name):
    """RangeRequest: range_request; peerURLs: peer_urls; HashKVRequest: hash_kv_request."""
    name = re.sub(r"([A-Z])([A-Z]*)s$", lambda m: "_" + m[0].lower() if m[2] else m[0], name)
    name = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name)
    name = re.sub(r"([A-Z])([A-Z][a-z])", r"\1_\2", name)
    return re.sub(r"_+", "_", name).lower().strip("_")


def lower_camel(name):
    """The JSON name proto3 gives a field: letters after an underscore are raised, no other."""
    return re.sub(r"_+(.?)", lambda m: m[1].upper(), name)


class Enum:
    def __init__(self, name, full_name, parent):
        self.name, self.full_name = name, full_name
        # A bare "Type" says nothing without its message.
        words = parent.name + name if parent and name == "Type" else name
        self.c_name = "pb_" + snake(words)
        self.values = []  # (name, number)


class Field:
    def __init__(self, name, number, proto_type, repeated, oneof, line):
        self.name, self.number, self.proto_type = name, number, proto_type
        self.repeated, self.oneof, self.line = repeated, oneof, line
        self.c_name = snake(name)
        self.target = None  # the Enum or Message that proto_type names

    def is_message(self):
        return isinstance(self.target, Message)

    def kind(self):
        if self.proto_type in SCALARS:
            return SCALARS[self.proto_type][1]
        return "MESSAGE" if self.is_message() else "ENUM"

    def wire(self):
        if self.kind() in ("STRING", "BYTES", "MESSAGE"):
            return "PB_WIRE_LEN"
        return "PB_WIRE_LEN" if self.repeated else "PB_WIRE_VARINT"

    def c_type(self):
        if self.proto_type in SCALARS:
            return SCALARS[self.proto_type][0]
        return "struct " + self.target.c_name if self.is_message() else "int32_t"

    def declaration(self):
        pointer = "*" if self.repeated or self.is_message() else ""
        comment = f" /* enum {self.target.c_name} */" if isinstance(self.target, Enum) else ""
        lines = [f"{self.c_type()} {pointer}{self.c_name};{comment}"]
        if self.repeated:
            lines.append(f"size_t {self.c_name}_count;")
        return lines


class Message:
    def __init__(self, name, full_name):
        self.name, self.full_name = name, full_name
        self.c_name = "pb_" + snake(name)
        self.fields = []

    def oneofs(self):
        return list(dict.fromkeys(f.oneof for f in self.fields if f.oneof))


class File:
    def __init__(self, name):
        self.name, self.package = name, ""
        self.imports, self.enums, self.messages = [], [], []
        self.services = []  # (name, [(method, request, response)]), each type (stream, message)


class Parser:
    """One pass over one file."""

    TOKEN = re.compile(r'\s+|//[^\n]*|/\*.*?\*/|("(?:[^"\\\n]|\\.)*"|[A-Za-z_][\w.]*|\d+|.)', re.S)

    def __init__(self, name, text):
        self.file = File(name)
        self.tokens = []
        for match in self.TOKEN.finditer(text):
            if match[1]:
                self.tokens.append((match[1], text.count("\n", 0, match.start()) + 1))
        self.at = 0

    def fail(self, why):
        line = self.tokens[min(self.at, len(self.tokens)) - 1][1]
        raise ProtoError(f"{self.file.name}.proto:{line}: {why}")

    def next(self, expected=None):
        if self.at == len(self.tokens):
            self.fail("the file ends too early")
        token = self.tokens[self.at][0]
        self.at += 1
        if expected is not None and token != expected:
            self.fail(f"expected {expected!r}, found {token!r}")
        return token

    def accept(self, token):
        found = self.at < len(self.tokens) and self.tokens[self.at][0] == token
        self.at += found
        return found

    def name(self):
        token = self.next()
        if not re.fullmatch(r"[A-Za-z_]\w*", token):
            self.fail(f"{token!r} is not a name")
        return token

    def number(self):
        token = self.next()
        if not token.isdigit():
            self.fail(f"{token!r} is not a number")
        return int(token)

    def parse(self):
        self.next("syntax"), self.next("="), self.next('"proto3"'), self.next(";")
        while self.at < len(self.tokens):
            token = self.next()
            if token == "package":
                self.file.package = self.next()
                self.next(";")
            elif token == "import":
                self.file.imports.append(re.sub(r"\.proto$", "", self.next().strip('"')))
                self.next(";")
            elif token == "message":
                self.message()
            elif token == "enum":
                self.enum(None)
            elif token == "service":
                self.service()
            else:
                self.fail(f"{token!r} is not supported here")
        return self.file

    def enum(self, parent):
        name = self.name()
        scope = parent.full_name if parent else self.file.package
        enum = Enum(name, f"{scope}.{name}", parent)
        self.next("{")
        while not self.accept("}"):
            value = self.name()
            self.next("=")
            enum.values.append((value, self.number()))
            self.next(";")
        if not enum.values or enum.values[0][1] != 0:
            self.fail(f"enum {name} does not begin with 0")
        self.file.enums.append(enum)

    def message(self):
        name = self.name()
        message = Message(name, f"{self.file.package}.{name}")
        self.next("{")
        while not self.accept("}"):
            if self.accept("enum"):
                self.enum(message)
            elif self.accept("oneof"):
                self.oneof(message)
            else:
                self.field(message, None)
        numbers = [f.number for f in message.fields]
        if len(set(numbers)) != len(numbers):
            self.fail(f"message {name} uses a number twice")
        message.fields.sort(key=lambda f: f.number)
        self.file.messages.append(message)

    def oneof(self, message):
        name = self.name()
        self.next("{")
        while not self.accept("}"):
            self.field(message, name)

    def field(self, message, oneof):
        repeated = self.accept("repeated")
        proto_type = self.next()
        if proto_type in UNSUPPORTED or proto_type == "message" or (repeated and oneof):
            self.fail(f"{proto_type!r} is not supported in a message")
        name = self.name()
        self.next("=")
        number = self.number()
        self.next(";")
        if not 1 <= number < 1 << 29:
            self.fail(f"field number {number} is out of range")
        line = self.tokens[self.at - 1][1]
        message.fields.append(Field(name, number, proto_type, repeated, oneof, line))

    def service(self):
        name, methods = self.name(), []
        self.next("{")
        while not self.accept("}"):
            self.next("rpc")
            method = self.name()
            request = self.method_type()
            self.next("returns")
            methods.append((method, request, self.method_type()))
            self.next(";")
        self.file.services.append((name, methods))

    def method_type(self):
        self.next("(")
        stream = self.accept("stream")
        message = self.next()
        self.next(")")
        return stream, message


def resolve(files):
    """Points each field at the enum or message its type names, and refuses C names used twice."""
    known, c_names = {}, set(TAKEN)
    for file in files:
        for thing in file.messages + file.enums:
            if thing.c_name in c_names:
                raise ProtoError(f"{file.name}.proto: two things are called {thing.c_name} in C")
            c_names.add(thing.c_name)
            known[thing.full_name] = thing
    for file in files:
        for message in file.messages:
            for field in message.fields:
                if field.proto_type in SCALARS:
                    continue
                for scope in (message.full_name + ".", file.package + ".", ""):
                    field.target = field.target or known.get(scope + field.proto_type)
                if not field.target:
                    raise ProtoError(f"{file.name}.proto:{field.line}: no type {field.proto_type}")


def enum_lines(enum):
    prefix = enum.c_name.upper()
    values = [f"    {prefix}_{snake(name).upper()} = {number}," for name, number in enum.values]
    return [f"/* {enum.full_name} */", f"enum {enum.c_name} {{", *values, "};", ""]


def case_lines(message, oneof):
    name, prefix = f"{message.c_name}_{snake(oneof)}_case", message.c_name.upper()
    values = [f"    {prefix}_{snake(oneof).upper()}_NONE = 0,"]
    values += [f"    {prefix}_{f.c_name.upper()} = {f.number}," for f in message.fields
               if f.oneof == oneof]
    return [f"enum {name} {{", *values, "};", ""]


def struct_lines(message):
    lines, begun = [], set()
    for oneof in message.oneofs():
        lines += case_lines(message, oneof)
    lines += [f"/* {message.full_name} */", f"struct {message.c_name} {{"]
    for field in message.fields:
        if not field.oneof:
            lines += ["    " + line for line in field.declaration()]
        elif field.oneof not in begun:
            begun.add(field.oneof)
            case = f"{snake(field.oneof)}_case"
            lines += [f"    enum {message.c_name}_{case} {case};", "    union {"]
            lines += ["        " + line for f in message.fields if f.oneof == field.oneof
                      for line in f.declaration()]
            lines.append("    };")
    if not message.fields:
        lines.append("    char has_no_fields; /* C has no empty structs */")
    return lines + ["};", f"extern const struct pb_message {message.c_name}_table;", ""]


def header(file):
    guard = f"VIGIL_GENERATED_{file.name.upper()}_PB_H"
    lines = [f"/* Made by tools/pbgen.py from proto/{file.name}.proto. Not to be edited. */",
             f"#ifndef {guard}", f"#define {guard}", "", '#include "codec/pb/pb.h"']
    lines += [f'#include "codec/pb/{name}.pb.h"' for name in file.imports] + [""]
    for service, methods in file.services:
        for method, _request, _response in methods:
            macro = f"PB_{snake(service)}_{snake(method)}_PATH".upper()
            lines.append(f'#define {macro} "/{file.package}.{service}/{method}"')
        lines.append("")
    if file.services:
        names = [f"{snake(service)}_{snake(method)}".upper()
                 for service, methods in file.services for method, _request, _response in methods]
        lines.append("/* Every method of the file: X(KV_RANGE) stands for PB_KV_RANGE_PATH. */")
        lines.append(f"#define PB_METHODS_OF_{file.name.upper()}(X) \\")
        lines += [f"    X({name}) \\" for name in names[:-1]] + [f"    X({names[-1]})", ""]
    for enum in file.enums:
        lines += enum_lines(enum) + [f"extern const struct pb_enum {enum.c_name}_names;", ""]
    lines += [f"struct {message.c_name};" for message in file.messages] + [""]
    for message in file.messages:
        lines += struct_lines(message)
    return lines + ["#endif"]


def field_row(message, field):
    label = "PB_ONEOF" if field.oneof else "PB_REPEATED" if field.repeated else "PB_SINGULAR"
    struct = f"struct {message.c_name}"
    parts = [f".tag = PB_TAG({field.number}, {field.wire()})",
             f".offset = offsetof({struct}, {field.c_name})",
             f".item_bytes = sizeof({'*' * field.repeated}(({struct} *)0)->{field.c_name})",
             f".kind = PB_KIND_{field.kind()}", f".label = {label}"]
    if field.oneof:
        parts.append(f".case_offset = offsetof({struct}, {snake(field.oneof)}_case)")
    if field.is_message():
        parts.append(f".message = &{field.target.c_name}_table")
    elif field.target:
        parts.append(f".enumeration = &{field.target.c_name}_names")
    parts.append(f'.name = "{field.name}", .json_name = "{lower_camel(field.name)}"')
    return "    {" + ", ".join(parts) + "},"


def message_table(message):
    lines, c_name = [], message.c_name
    if message.fields:
        lines += [f"static const struct pb_field {c_name}_fields[] = {{"]
        lines += [field_row(message, field) for field in message.fields] + ["};", ""]
    direct = "".join(f"[{f.number}] = {i + 1}, " for i, f in enumerate(message.fields)
                     if f.number < 16) or "0"
    return lines + [f"const struct pb_message {c_name}_table = {{",
                    f"    .fields = {c_name + '_fields' if message.fields else 'NULL'},",
                    f"    .field_count = {len(message.fields)},",
                    f"    .struct_bytes = sizeof(struct {c_name}),",
                    f"    .direct = {{{direct.rstrip(', ')}}},",
                    f'    .name = "{message.full_name}",', "};", ""]


def enum_table(enum):
    values = [f'    {{{number}, "{name}"}},' for name, number in enum.values]
    return [f"static const struct pb_enum_value {enum.c_name}_values[] = {{", *values, "};", "",
            f"const struct pb_enum {enum.c_name}_names = {{",
            f'    .name = "{enum.full_name}",', f"    .values = {enum.c_name}_values,",
            f"    .value_count = {len(enum.values)},", "};", ""]


def source(file):
    lines = [f"/* Made by tools/pbgen.py from proto/{file.name}.proto. Not to be edited. */",
             f'#include "codec/pb/{file.name}.pb.h"', '#include "codec/pb/wire.h"', ""]
    for enum in file.enums:
        lines += enum_table(enum)
    for message in file.messages:
        lines += message_table(message)
    return lines[:-1]


def all_messages(files):
    messages = [message for file in files for message in file.messages]
    lines = ["/* Made by tools/pbgen.py. Not to be edited. */"]
    lines += [f'#include "codec/pb/{file.name}.pb.h"' for file in files]
    lines += ["", "const struct pb_message *const pb_messages[] = {"]
    lines += [f"    &{message.c_name}_table," for message in messages]
    return lines + ["};", "", "const size_t pb_message_count = COUNT_OF(pb_messages);"]


def write(directory, name, lines):
    with open(os.path.join(directory, name), "w", encoding="utf-8") as out:
        out.write("\n".join(lines) + "\n")


def main(directory, paths):
    files = []
    for path in paths:
        with open(path, encoding="utf-8") as text:
            name = os.path.basename(path).removesuffix(".proto")
            files.append(Parser(name, text.read()).parse())
    resolve(files)
    os.makedirs(directory, exist_ok=True)
    for file in files:
        write(directory, file.name + ".pb.h", header(file))
        write(directory, file.name + ".pb.c", source(file))
    write(directory, "all.pb.c", all_messages(files))


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    try:
        main(sys.argv[1], sys.argv[2:])
    except ProtoError as error:
        sys.exit(f"pbgen: {error}")
