"""The part of protobuf that tests need to write valid and invalid messages by hand."""


def varint(n):
    n &= (1 << 64) - 1
    out = bytearray()
    while n > 0x7F:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    out.append(n)
    return bytes(out)


def field(number, value):
    """Encodes one field: an int as a varint; bytes, or an encoded message, with a length prefix."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def message(**fields):
    """Encodes a message, as in message(f1=b"key", f3=7). Fields keep their order; a list repeats a field."""
    out = b""
    for name, value in fields.items():
        for one in value if isinstance(value, list) else [value]:
            out += field(int(name[1:]), one)
    return out


def parse(data):
    """Decodes a message into {number: [values]}, with length-delimited values as bytes."""
    fields, at = {}, 0

    def read_varint():
        nonlocal at
        n = shift = 0
        while True:
            byte = data[at]
            at += 1
            n |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return n

    while at < len(data):
        tag = read_varint()
        if tag & 7 == 0:
            value = read_varint()
        elif tag & 7 == 2:
            size = read_varint()
            value = data[at:at + size]
            at += size
        else:
            raise ValueError(f"wire type {tag & 7}")
        fields.setdefault(tag >> 3, []).append(value)
    return fields


def put(key, value):
    return message(f1=key, f2=value)


def range_of(key, end=b"", **more):
    return message(f1=key, **({"f2": end} if end else {}), **more)


def grpc_frame(body, compressed=0):
    return bytes([compressed]) + len(body).to_bytes(4, "big") + body
