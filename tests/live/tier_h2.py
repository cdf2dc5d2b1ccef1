"""Clients that share one connection of HTTP/2, as those of one program in Go do: H2Caller is a Caller whose requests are
streams of it."""
import contextlib
import http.client
import queue
import select
import socket
import ssl
import threading

import h2.config
import h2.connection
import h2.events
import h2.exceptions
import h2.settings

from server import WAIT_SECONDS
from tier import Caller

WINDOW = 1 << 20


class Broken(ConnectionError):
    """The connection or the stream has ended before the answer was complete."""


class Stream:
    """An answer, as of http.client: a status, headers and a body that is read in pieces."""

    def __init__(self, connection):
        self.connection = connection
        self.number, self.status, self.headers = None, None, http.client.HTTPMessage()
        self.arrived = queue.Queue()  # bytes of the body; None: it ends; an exception: it breaks
        self.over = False

    def take(self):
        if self.over:
            return b""
        try:
            piece = self.arrived.get(timeout=WAIT_SECONDS)
        except queue.Empty:
            raise TimeoutError("nothing has arrived") from None
        if isinstance(piece, Exception):
            self.over = True
            raise piece
        if piece is None:
            self.over = True
            return b""
        return piece

    def begin(self):
        while self.status is None:
            self.take()
        return self

    def read1(self, _size=-1):
        while not self.over:
            if piece := self.take():
                self.connection.consumed(self, len(piece))
                return piece
        return b""

    def read(self):
        whole = []
        while piece := self.read1():
            whole.append(piece)
        return b"".join(whole)

    def close(self):
        """What has arrived and was not read counts as read, for the window of the connection."""
        if not self.over:
            self.over = True
            self.connection.cancel(self)
        while not self.arrived.empty():
            piece = self.arrived.get()
            if isinstance(piece, bytes) and piece:
                self.connection.consumed(self, len(piece))


class Connection:
    def __init__(self, port, context):
        raw = socket.create_connection(("127.0.0.1", port), timeout=WAIT_SECONDS)
        try:
            self.socket = context.wrap_socket(raw)
        except OSError:
            raw.close()
            raise
        self.lock = threading.Lock()
        self.streams, self.closed = {}, False
        self.h2 = h2.connection.H2Connection(h2.config.H2Configuration(client_side=True, header_encoding="utf-8"))
        try:
            if self.socket.selected_alpn_protocol() != "h2":
                raise Broken(f"HTTP/2 was not negotiated: {self.socket.selected_alpn_protocol()}")
            self.socket.setblocking(False)
            with self.lock:
                self.h2.initiate_connection()
                self.h2.update_settings({h2.settings.SettingCodes.INITIAL_WINDOW_SIZE: WINDOW})
                self.h2.increment_flow_control_window(WINDOW)
                self.flush()
        except OSError:
            self.socket.close()
            raise
        threading.Thread(target=self.run, daemon=True).start()

    def flush(self):
        """With the lock held: a TLS connection is not for two threads at once."""
        data = self.h2.data_to_send()
        while data:
            try:
                data = data[self.socket.send(data):]
            except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
                select.select([], [self.socket], [], WAIT_SECONDS)

    def receive(self):
        """Handles what has arrived. False: it was the last."""
        with self.lock:
            try:
                data = self.socket.recv(65536)
            except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
                return True
            for event in self.h2.receive_data(data):
                self.handle(event)
            self.flush()
            return bool(data)

    def run(self):
        failure = Broken("the connection has ended")
        try:
            while self.receive():
                if not self.socket.pending():
                    select.select([self.socket], [], [])
        except (OSError, ValueError, h2.exceptions.ProtocolError) as error:
            failure = Broken(str(error))
        with self.lock:
            self.closed = True
            for stream in self.streams.values():
                stream.arrived.put(failure)
            self.streams.clear()
        self.socket.close()

    def handle(self, event):
        stream = self.streams.get(getattr(event, "stream_id", None))
        if isinstance(event, h2.events.ConnectionTerminated):
            self.closed = True  # for further requests
        if not stream:
            if isinstance(event, h2.events.DataReceived):
                self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            return
        if isinstance(event, h2.events.ResponseReceived):
            for name, value in event.headers:
                if name != ":status":
                    stream.headers[name] = value
            stream.status = int(dict(event.headers)[":status"])
            stream.arrived.put(b"")
        elif isinstance(event, h2.events.DataReceived):
            padding = event.flow_controlled_length - len(event.data)
            if padding:
                self.h2.acknowledge_received_data(padding, event.stream_id)
            stream.arrived.put(bytes(event.data))
        elif isinstance(event, (h2.events.StreamEnded, h2.events.StreamReset)):
            ended = isinstance(event, h2.events.StreamEnded)
            stream.arrived.put(None if ended else Broken(f"the stream was reset: {event.error_code}"))
            self.streams.pop(event.stream_id)

    def consumed(self, stream, size):
        with self.lock, contextlib.suppress(OSError, h2.exceptions.ProtocolError):
            if not self.closed:
                self.h2.acknowledge_received_data(size, stream.number)
                self.flush()

    def request(self, stream, fields, body):
        with self.lock:
            if self.closed:
                raise Broken("the connection is closed")
            try:
                number = stream.number = self.h2.get_next_available_stream_id()
                self.h2.send_headers(number, fields, end_stream=body is None)
                if body is not None:
                    self.h2.send_data(number, body, end_stream=True)
            except h2.exceptions.ProtocolError as error:
                raise Broken(str(error)) from None
            self.streams[number] = stream
            self.flush()

    def cancel(self, stream):
        with self.lock, contextlib.suppress(OSError, h2.exceptions.ProtocolError):
            if self.streams.pop(stream.number, None) and not self.closed:
                self.h2.reset_stream(stream.number, 8)
                self.flush()

    def close(self):
        with contextlib.suppress(OSError):
            self.socket.shutdown(2)


class H2Caller(Caller):
    """Bodies must fit in the window of a new stream."""

    def __init__(self, port, token=None, identity=None):
        super().__init__(port, token, identity)
        self.lock, self.shared, self.connections = threading.Lock(), None, 0

    def connect(self):
        """The stream of one request."""
        with self.lock:
            if not self.shared or self.shared.closed:
                context = ssl._create_unverified_context()
                context.set_alpn_protocols(["h2"])
                if self.identity:
                    context.load_cert_chain(self.identity.cert, self.identity.key)
                self.shared = Connection(self.port, context)
                self.connections += 1
            return Stream(self.shared)

    def send_request(self, stream, method, path, body, headers):
        fields = [(":method", method), (":scheme", "https"), (":path", path), (":authority", f"127.0.0.1:{self.port}")]
        fields += [(name.lower(), value) for name, value in headers.items()]
        stream.connection.request(stream, fields, body.encode() if isinstance(body, str) else body)
        return stream.begin()

    def close(self):
        if self.shared:
            self.shared.close()
