#!/usr/bin/python3
"""A transformer for `etcdctl migrate`: keys get a prefix, and those that expire the lease 1000. What it reads is kept in the file
nodes of its directory. It ends when everything that it wrote was read, because the original loses the rest."""
import array
import fcntl
import json
import struct
import sys
import termios
import time


def varint(number):
    out = bytearray()
    while number > 0x7f:
        out.append(number & 0x7f | 0x80)
        number >>= 7
    return bytes([*out, number])


def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value) if value else b""
    return varint(number << 3 | 2) + varint(len(value)) + value if value else b""


def nodes(text):
    decoder, at = json.JSONDecoder(), 0
    while at < len(text):
        node, at = decoder.raw_decode(text, at)
        yield node


def main():
    text = sys.stdin.buffer.read()
    with open("nodes", "wb") as kept:
        kept.write(text)
    for node in nodes(text.decode()):
        if node.get("dir"):
            continue
        key = ("/new" + node["key"]).encode()
        kv = b"".join([field(1, key), field(2, node["createdIndex"]), field(3, node["modifiedIndex"]), field(4, 1),
                       field(5, node["value"].encode()), field(6, 1000 if "ttl" in node else 0)])
        sys.stdout.buffer.write(struct.pack("<q", len(kv)) + kv)
    sys.stdout.buffer.flush()
    unread = array.array("i", [1])
    while unread[0]:
        fcntl.ioctl(1, termios.FIONREAD, unread)
        time.sleep(0.001)


if __name__ == "__main__":
    main()
