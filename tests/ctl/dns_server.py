"""Answers DNS queries on port 53 of this network namespace from a JSON file: {"srv": {name: [[host, port]…]}}. Every host of
such a record has the address 127.0.0.1. Names with "broken" in them are answered with a failure. Prints a line when it listens."""
import json
import socket
import struct
import sys

A, SRV, AAAA = 1, 33, 28
SERVER_FAILURE, NO_SUCH_NAME = 2, 3


def encoded(name):
    return b"".join(bytes([len(part)]) + part for part in name.encode().split(b".")) + b"\0"


def question(query):
    """The name, its type and the end of the question."""
    at, parts = 12, []
    while query[at]:
        parts.append(query[at + 1:at + 1 + query[at]].decode().lower())
        at += 1 + query[at]
    return ".".join(parts), struct.unpack(">H", query[at + 1:at + 3])[0], at + 5


def record(kind, data):
    return b"\xc0\x0c" + struct.pack(">HHIH", kind, 1, 60, len(data)) + data


def answer(query, srv):
    name, kind, end = question(query)
    hosts = {host for targets in srv.values() for host, _ in targets}
    records = []
    if kind == SRV:
        records = [record(SRV, struct.pack(">HHH", 0, 0, port) + encoded(host)) for host, port in srv.get(name, [])]
    elif kind == A and name in hosts:
        records = [record(A, bytes([127, 0, 0, 1]))]
    code = 0 if records or name in hosts else NO_SUCH_NAME
    code = SERVER_FAILURE if "broken" in name else code
    return query[:2] + struct.pack(">HHHHH", 0x8180 | code, 1, len(records), 0, 0) + query[12:end] + b"".join(records)


def main():
    srv = json.load(open(sys.argv[1]))["srv"]
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind(("127.0.0.1", 53))
    print("listening", flush=True)
    while True:
        query, peer = server.recvfrom(4096)
        server.sendto(answer(query, srv), peer)


if __name__ == "__main__":
    main()
