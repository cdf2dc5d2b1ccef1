"""TCP proxies between a client and a server. A Bridge does what a test asks for, a FaultyProxy breaks connections by
itself."""
import contextlib
import random
import select
import socket
import threading
import time

BYTES_MAX = 20_000  # of one side before something happens
DELAY_SECONDS = 0.05


class Proxy:
    """Accepts connections and relays each of them on a thread of its own."""

    def __init__(self, port):
        self.target = ("127.0.0.1", port)
        self.lock = threading.Lock()
        self.sockets = set()
        self.over = False
        self.open = threading.Event()  # while it is not set, connections are not accepted
        self.open.set()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self.listener.getsockname()[1]}"
        self.thread = threading.Thread(target=self.accept, daemon=True)
        self.thread.start()

    def accept(self):
        with contextlib.suppress(OSError):
            while not self.over:
                select.select([self.listener], [], [])
                self.open.wait()
                client, _ = self.listener.accept()
                threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def serve(self, client):
        with contextlib.suppress(OSError), client, socket.create_connection(self.target) as server:
            with self.lock:
                if self.over or not self.open.is_set():
                    return
                self.sockets |= {client, server}
            try:
                self.relay(client, server)
            finally:
                with self.lock:
                    self.sockets -= {client, server}

    def relay(self, client, server):
        """Returns when the connection is to be closed."""
        other = {client: server, server: client}
        while True:
            ready, _, _ = select.select([client, server], [], [])
            for side in ready:
                data = side.recv(65536)
                if not data:
                    return
                self.forward(other[side], data)

    def forward(self, side, data):
        side.sendall(data)

    def drop(self):
        """Cuts all connections."""
        with self.lock:
            for side in self.sockets:
                with contextlib.suppress(OSError):
                    side.shutdown(socket.SHUT_RDWR)

    def close(self):
        self.over = True
        self.open.set()
        self.drop()
        self.listener.shutdown(socket.SHUT_RDWR)
        self.thread.join()
        self.listener.close()


class Bridge(Proxy):
    silent = False  # what either side sends gets lost

    def forward(self, side, data):
        if not self.silent:
            super().forward(side, data)

    def obey(self, what):
        if what == "hold":
            self.open.clear()
        if what in ("drop", "hold"):
            self.drop()
        if what == "release":
            self.silent = False
            self.open.set()
        if what == "silence":
            self.silent = True


class FaultyProxy(Proxy):
    """After a random number of bytes of either side it cuts the connection, delays what follows, or sends garbage and
    then cuts the connection. The choices depend on a seed only. Garbage is for connections over TLS, which detects it;
    without TLS it may look like a valid response."""

    def __init__(self, port, seed, garbage):
        self.random = random.Random(seed)
        self.kinds = ("cut", "cut", "garbage", "delay") if garbage else ("cut", "cut", "delay")
        self.faults = 0
        super().__init__(port)

    def relay(self, client, server):
        choices = random.Random(self.random.random())
        left = {client: choices.randrange(1, BYTES_MAX), server: choices.randrange(1, BYTES_MAX)}
        other = {client: server, server: client}
        while True:
            ready, _, _ = select.select([client, server], [], [])
            for side in ready:
                data = side.recv(min(65536, left[side]))
                if not data:
                    return
                other[side].sendall(data)
                left[side] -= len(data)
                if left[side] == 0:
                    self.faults += 1
                    what = choices.choice(self.kinds)
                    if what == "garbage":
                        other[side].sendall(choices.randbytes(choices.randrange(1, 200)))
                    if what != "delay":
                        return
                    time.sleep(DELAY_SECONDS)
                    left[side] = choices.randrange(1, BYTES_MAX)
