"""A proxy between a tier and the replicas of a kube-apiserver, which makes their connection bad. It ends TLS on both
sides, so it sees HTTP/1.1."""
import asyncio
import collections
import contextlib
import random
import socket
import ssl
import struct
import threading

METHODS = (b"GET /", b"POST /", b"PUT /", b"PATCH /", b"DELETE /")
BUSY = (b"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 1\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n"
        b"Connection: close\r\n\r\nbusy\n")
STATUS = b'{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"gone","reason":"Expired","code":410}'
GONE = (b"HTTP/1.1 410 Gone\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s" % (
    len(STATUS), STATUS))
CHUNK = 16 * 1024


def reset(writer):
    """The peer gets an RST."""
    with contextlib.suppress(OSError):
        if connection := writer.get_extra_info("socket"):  # it is not closed yet
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


class Proxy:
    """Each connection goes to one of the ports. Faults are chances from 0 to 1; they may be changed at any time."""

    def __init__(self, ports, identity, seed):
        self.ports, self.random = list(ports), random.Random(f"{seed}/proxy")
        self.counts = collections.Counter()
        self.cut_chance = 0.0  # of a connection, to be cut after some bytes
        self.busy_chance = 0.0  # of a request, to be answered 429
        self.delay_chance, self.delay_s = 0.0, 0.05  # of a piece of an answer
        self.server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.server.load_cert_chain(identity.cert, identity.key)
        self.client = ssl._create_unverified_context()
        self.links = set()
        self.loop = asyncio.new_event_loop()
        self.flowing = asyncio.Event()
        self.busy = b""  # requests whose first line has these bytes get 429
        self.answers = {}  # what requests whose first line has some bytes are answered
        self.expired = b""  # the next request whose first line has these bytes gets 410
        self.held, self.released = b"", asyncio.Event()  # requests whose first line has these bytes wait
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()
        self.port = self.call(self.listen())

    def call(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(30)

    async def listen(self):
        self.flowing.set()
        self.listener = await asyncio.start_server(self.serve, "127.0.0.1", 0, ssl=self.server)
        return self.listener.sockets[0].getsockname()[1]

    def calm(self):
        """Ends all faults."""
        self.cut_chance = self.busy_chance = self.delay_chance = 0.0
        self.resume()

    def pause(self):
        self.counts["pauses"] += 1
        self.loop.call_soon_threadsafe(self.flowing.clear)

    def resume(self):
        self.loop.call_soon_threadsafe(self.flowing.set)

    def expire(self, text):
        """The history that the next such request wants is gone; to be noticed, all connections are cut."""
        self.expired = text.encode()
        self.cut_all()

    def hold(self, text):
        self.held = text.encode()

    def release(self):
        self.held = b""
        self.loop.call_soon_threadsafe(self.released.set)

    def cut_all(self):
        self.counts["cuts of all"] += 1

        async def cut():
            for writer in [writer for link in self.links for writer in link]:
                reset(writer)
        self.call(cut())

    def stop(self):
        async def end():
            self.listener.close()
            for writer in [writer for link in self.links for writer in link]:
                reset(writer)
            for task in asyncio.all_tasks() - {asyncio.current_task()}:
                task.cancel()
        self.call(end())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(30)

    async def serve(self, reader, writer):
        self.counts["connections"] += 1
        await self.flowing.wait()
        try:
            up_reader, up_writer = await asyncio.open_connection(
                "127.0.0.1", self.random.choice(self.ports), ssl=self.client)
        except OSError:
            self.counts["unreachable"] += 1
            reset(writer)
            return
        self.links.add(link := (writer, up_writer))
        tasks = [asyncio.ensure_future(task) for task in (self.up(reader, writer, up_writer), self.down(up_reader, writer))]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self.links.discard(link)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            for one in link:
                one.close()

    async def up(self, reader, writer, up_writer):
        async def choose(_):
            return up_writer
        await self.pass_up(reader, writer, choose)

    async def pass_up(self, reader, writer, choose):
        """choose says for each piece who gets it."""
        while piece := await reader.read(CHUNK):
            await self.flowing.wait()
            line = piece.split(b"\r\n", 1)[0]
            if self.expired and self.expired in line:
                self.counts["expired"] += 1
                self.expired = b""
                writer.write(GONE)
                await writer.drain()
                return
            if answer := next((answer for text, answer in self.answers.items() if text in line), None):
                self.counts["answered"] += 1
                writer.write(answer)
                await writer.drain()
                return
            if self.held and self.held in line:
                self.counts["held"] += 1
                await self.released.wait()
            is_busy = self.busy and self.busy in line
            if is_busy or (piece.startswith(METHODS) and self.random.random() < self.busy_chance):
                self.counts["answered 429"] += 1
                writer.write(BUSY)
                await writer.drain()
                return
            up_writer = await choose(piece)
            up_writer.write(piece)
            await up_writer.drain()

    async def down(self, up_reader, writer):
        left = self.random.randrange(100, 40_000) if self.random.random() < self.cut_chance else None
        while piece := await up_reader.read(CHUNK):
            await self.flowing.wait()
            if self.random.random() < self.delay_chance:
                await asyncio.sleep(self.random.random() * self.delay_s)
            if left is not None and len(piece) > left:
                self.counts["cuts"] += 1
                writer.write(piece[:left])
                await writer.drain()
                if self.random.random() < 0.5:
                    reset(writer)
                return
            left = left and left - len(piece)
            writer.write(piece)
            await writer.drain()


class SplittingProxy(Proxy):
    """Watches go to one of two ports, and all other requests to the other one. A connection of HTTP/1.1 has one request at a
    time, so that its answers come from one of them."""
    watching = 1  # which of the ports gets the watches

    def swap(self):
        self.counts["swaps"] += 1
        self.watching = 1 - self.watching
        self.cut_all()

    async def serve(self, reader, writer):
        self.counts["connections"] += 1
        await self.flowing.wait()
        ups, tasks, chosen, ended = {}, [], None, asyncio.Event()
        self.links.add(link := (writer,))

        def begin(coroutine):
            tasks.append(asyncio.ensure_future(coroutine))
            tasks[-1].add_done_callback(lambda _: ended.set())

        async def choose(piece):
            nonlocal chosen
            if piece.startswith(METHODS):
                is_watch = b"watch=" in piece.split(b"\r\n", 1)[0]
                chosen = self.ports[self.watching if is_watch else 1 - self.watching]
                self.counts["watches" if is_watch else "other requests"] += 1
            if chosen not in ups:
                up_reader, ups[chosen] = await asyncio.open_connection("127.0.0.1", chosen, ssl=self.client)
                begin(self.down(up_reader, writer))
            return ups[chosen]

        begin(self.pass_up(reader, writer, choose))
        try:
            await ended.wait()
        finally:
            self.links.discard(link)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            for one in (writer, *ups.values()):
                one.close()
