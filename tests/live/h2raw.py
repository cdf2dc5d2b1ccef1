"""HTTP/2 frames written by hand, to send what no library would send."""
import socket
import struct

import hpack

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH, PING, GOAWAY, WINDOW, CONTINUATION = range(10)
END_STREAM, END_HEADERS, ACK = 1, 4, 1
INITIAL_WINDOW_SIZE = 4


def frame(kind, flags=0, stream=0, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def settings(**values):
    numbers = {"table": 1, "push": 2, "streams": 3, "window": 4, "frame": 5, "headers": 6}
    return frame(SETTINGS, payload=b"".join(struct.pack(">HI", numbers[k], v) for k, v in values.items()))


def request_headers(path="/etcdserverpb.KV/Range", extra=(), method="POST"):
    """The header block of a gRPC call or of a GET. It has no dynamic table entries, so that it can be sent on any stream."""
    encoder = hpack.Encoder()
    encoder.header_table_size = 0
    grpc = [("content-type", "application/grpc"), ("te", "trailers")] if method == "POST" else []
    return encoder.encode([(":method", method), (":scheme", "http"), (":path", path),
                           (":authority", "localhost"), *grpc, *extra])


def request(stream, body, path="/etcdserverpb.KV/Range"):
    return frame(HEADERS, END_HEADERS, stream, request_headers(path)) + frame(DATA, END_STREAM, stream, body)


class Connection:
    """A socket on which the preface and the settings have been sent. It reads only when frames() is called."""

    def __init__(self, port, opening=PREFACE + settings(), timeout=10, receive_buffer=None):
        self.socket = socket.socket()
        if receive_buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.settimeout(timeout)
        self.socket.connect(("127.0.0.1", port))
        self.buffer = b""
        self.closed = False  # by the peer; set by frames()
        self.send(opening)

    def send(self, data):
        """Sends the data; returns False if the peer has closed the connection or stopped reading."""
        try:
            self.socket.sendall(data)
            return True
        except (OSError, socket.timeout):
            return False

    def frames(self):
        """Yields frames until the peer closes the connection or sends nothing for the timeout."""
        while True:
            while len(self.buffer) >= 9:
                size = int.from_bytes(self.buffer[:3], "big")
                if len(self.buffer) < 9 + size:
                    break
                head, payload = self.buffer[:9], self.buffer[9:9 + size]
                self.buffer = self.buffer[9 + size:]
                yield head[3], head[4], int.from_bytes(head[5:9], "big") & 0x7FFFFFFF, payload
            try:
                part = self.socket.recv(1 << 16)
            except socket.timeout:
                return
            except OSError:
                part = b""
            if not part:
                self.closed = True
                return
            self.buffer += part

    def close(self):
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
