"""A server whose first connection speaks just enough HTTP/2 to misbehave while a client authenticates; every later
connection is relayed to a real server."""
import contextlib
import select
import socket
import ssl
import struct
import threading
import time

PREFACE_BYTES = 24
DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY = 0, 1, 3, 4, 6, 7
END_STREAM, END_HEADERS, ACK = 1, 4, 1
REFUSED_STREAM = 7
MAX_CONCURRENT_STREAMS = 3
LAST_ID = 2**31 - 1


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def field(name, value):
    """Not indexed, without Huffman's code."""
    return b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value


def head(stream):
    return frame(HEADERS, END_HEADERS, stream, b"\x88" + field(b"content-type", b"application/grpc"))


def message(stream, data):
    return frame(DATA, 0, stream, struct.pack(">BI", 0, len(data)) + data)


def trailers(stream, code, text=b""):
    return frame(HEADERS, END_HEADERS | END_STREAM, stream,
                 field(b"grpc-status", code) + field(b"grpc-message", text))


def limit(streams):
    return frame(SETTINGS, 0, 0, struct.pack(">HI", MAX_CONCURRENT_STREAMS, streams))


class MisbehavingServer:
    """How: "reset", "goaway", "http error", "silent" for the first stream, or "full": the token is refused later, when
    no further stream is allowed."""

    def __init__(self, port, how):
        self.target = ("127.0.0.1", port)
        self.how = how
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self.listener.getsockname()[1]}"
        self.over = threading.Event()
        self.connections = 0
        self.thread = threading.Thread(target=self.accept, daemon=True)
        self.thread.start()

    def accept(self):
        while not self.over.is_set():
            ready, _, _ = select.select([self.listener], [], [], 0.1)
            if ready:
                client, _ = self.listener.accept()
                serve = self.relay if self.connections else self.misbehave
                self.connections += 1
                threading.Thread(target=self.serve, args=(serve, client), daemon=True).start()

    def serve(self, function, client):
        with contextlib.suppress(OSError, EOFError), client:
            function(client)

    def relay(self, client):
        with socket.create_connection(self.target) as server:
            other = {client: server, server: client}
            while not self.over.is_set():
                ready, _, _ = select.select([client, server], [], [], 0.1)
                for side in ready:
                    data = side.recv(65536)
                    if not data:
                        return
                    other[side].sendall(data)

    def misbehave(self, client):
        stream = client.makefile("rb")
        stream.read(PREFACE_BYTES)
        client.sendall(frame(SETTINGS, 0, 0) + frame(SETTINGS, ACK, 0))
        while True:
            start = stream.read(9)
            if len(start) < 9:
                return
            kind, flags, number = struct.unpack(">BBI", start[3:])
            payload = stream.read(int.from_bytes(start[:3], "big"))
            if kind == PING and not flags & ACK:
                client.sendall(frame(PING, ACK, 0, payload))
            elif kind == DATA and flags & END_STREAM:
                client.sendall(self.answer(number))
                if self.how == "full" and number == 5:
                    time.sleep(0.3)  # the client waits for room; a break is as good
                    return

    def answer(self, number):
        if self.how == "reset":
            return frame(RST_STREAM, 0, number, struct.pack(">I", REFUSED_STREAM))
        if self.how == "goaway":
            return frame(GOAWAY, 0, 0, struct.pack(">II", LAST_ID, 0))
        if self.how == "http error":
            return frame(HEADERS, END_HEADERS | END_STREAM, number, b"\x08\x03503")
        if self.how == "full" and number == 1:
            return head(1) + message(1, b"\x12\x05token") + trailers(1, b"0")
        if self.how == "full" and number == 5:
            return limit(1) + head(3) + trailers(3, b"16", b"etcdserver: invalid auth token")
        return b""

    def close(self):
        self.over.set()
        self.thread.join()
        self.listener.close()


class ClosesTls(MisbehavingServer):
    """Closes TLS as soon as it is open: the close notification arrives with the last bytes of the handshake."""

    def __init__(self, port, identity):
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.maximum_version = ssl.TLSVersion.TLSv1_2  # in which the server has the last word
        self.context.load_cert_chain(identity.cert, identity.key)
        self.context.set_alpn_protocols(["h2"])
        super().__init__(port, "close")

    def misbehave(self, client):
        received, sent = ssl.MemoryBIO(), ssl.MemoryBIO()
        tls = self.context.wrap_bio(received, sent, server_side=True)
        while True:
            with contextlib.suppress(ssl.SSLWantReadError):
                tls.do_handshake()
                break
            client.sendall(sent.read())
            received.write(client.recv(65536))
        with contextlib.suppress(ssl.SSLWantReadError):
            tls.unwrap()
        client.sendall(sent.read())
        client.recv(1)  # until the client closes the connection
