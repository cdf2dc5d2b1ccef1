"""A TCP proxy that breaks connections: after a random number of bytes of either side it cuts the connection, delays
what follows, or sends garbage before it cuts the connection. The choices depend on a seed only. Garbage is for
connections over TLS, which detects it; without TLS it may look like a valid response."""
import contextlib
import random
import select
import socket
import threading
import time

BYTES_MAX = 20_000  # of one side before something happens
DELAY_SECONDS = 0.05


class FaultyProxy:
    def __init__(self, port, seed, garbage):
        self.target = ("127.0.0.1", port)
        self.random = random.Random(seed)
        self.kinds = ("cut", "cut", "garbage", "delay") if garbage else ("cut", "cut", "delay")
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self.listener.getsockname()[1]}"
        self.over = threading.Event()
        self.faults = 0
        self.thread = threading.Thread(target=self.accept, daemon=True)
        self.thread.start()

    def accept(self):
        while not self.over.is_set():
            ready, _, _ = select.select([self.listener], [], [], 0.1)
            if ready:
                client, _ = self.listener.accept()
                threading.Thread(target=self.serve, args=(client, self.random.random()), daemon=True).start()

    def serve(self, client, seed):
        with contextlib.suppress(OSError), client, socket.create_connection(self.target) as server:
            self.relay(client, server, random.Random(seed))

    def relay(self, client, server, choices):
        left = {client: choices.randrange(1, BYTES_MAX), server: choices.randrange(1, BYTES_MAX)}
        other = {client: server, server: client}
        while not self.over.is_set():
            ready, _, _ = select.select([client, server], [], [], 0.1)
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

    def close(self):
        self.over.set()
        self.thread.join()
        self.listener.close()
