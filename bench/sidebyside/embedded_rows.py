"""What is measured of the store in a program, beside a real etcd over loopback, SQLite (WAL, synchronous=FULL) and LMDB
alone: the same keys and values, with bench/embedded. `vigil` has the numbers of Vigil, and `etcd` those of the others."""
import json
import pathlib
import shutil
import subprocess

from sidebyside import servers

GETS, PUTS, THREADS, PUTS_OF_THREADS, EVENTS = 300_000, 500, 64, 64_000, 300_000
GETS_OF_SERVER, PUTS_OF_OTHERS = 10_000, 6_400
MILLION = 1_000_000
OTHERS = ("sqlite", "lmdb")


class Stores:
    """A directory for stores, and the program that uses them."""

    def __init__(self, name, programs, directory):
        self.name, self.programs, self.directory = name, programs, pathlib.Path(directory)
        if not programs.embedded:
            raise servers.Failed("bench/embedded could not be built; is libsqlite3-dev installed?")

    def run(self, store, work, count, threads=1, place=None):
        words = [self.programs.embedded, store, place or str(self.directory / store), work, str(count), str(threads)]
        done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              timeout=servers.CALL_SECONDS)
        if done.returncode != 0:
            raise servers.Failed(f"{' '.join(words)}: {done.stderr.strip()}")
        return json.loads(done.stdout or "{}")

    def fresh(self, store, work, count, threads=1):
        shutil.rmtree(self.directory / store, ignore_errors=True)
        return self.run(store, work, count, threads)

    def of_server(self, work, count, threads=1):
        with servers.Server("etcd", self.programs, self.directory / "server", client="vigil") as server:
            server.start()
            return self.run("server", work, count, threads, place=server.endpoint)

    def sync_us(self):
        """What the disk alone takes."""
        return self.run("vigil", "sync", PUTS, place=str(self.directory))["seconds"] / PUTS * 1e6

    def __enter__(self):
        self.directory.mkdir(parents=True, exist_ok=True)
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.directory, ignore_errors=True)


def compared(stores, key, measure, of_server):
    """The metric `key` of Vigil under the name of each of the others, or those of the others."""
    if stores.name == "vigil":
        value = measure("vigil")
        return {f"embedded_{key}": value, **{f"{other}_{key}": value for other in OTHERS}}
    return {f"embedded_{key}": of_server(), **{f"{other}_{key}": measure(other) for other in OTHERS}}


def get(stores):
    return compared(stores, "get.us", lambda store: stores.fresh(store, "get", GETS)["seconds"] / GETS * 1e6,
                    lambda: stores.of_server("get", GETS_OF_SERVER)["seconds"] / GETS_OF_SERVER * 1e6)


def put(stores):
    """The disk is measured before and after, because it changes."""
    before = stores.sync_us()
    found = compared(stores, "put.us", lambda store: stores.fresh(store, "put", PUTS)["seconds"] / PUTS * 1e6,
                     lambda: stores.of_server("put", PUTS)["seconds"] / PUTS * 1e6)
    if stores.name == "vigil":
        sync = (before + stores.sync_us()) / 2
        found |= {"embedded_put.sync_us": sync, "embedded_put.more_us": found["embedded_put.us"] - sync}
    return found


def puts_of_threads(stores):
    def rate(store):
        count = PUTS_OF_THREADS if store == "vigil" else PUTS_OF_OTHERS // 16
        found = stores.fresh(store, "put", count, THREADS)
        return found["count"] / found["seconds"]

    def rate_of_server():
        found = stores.of_server("put", PUTS_OF_OTHERS, THREADS)
        return found["count"] / found["seconds"]
    found = compared(stores, "puts.rate", rate, rate_of_server)
    if stores.name == "vigil":
        found["embedded_puts.cpu_us"] = stores.fresh("vigil", "put", PUTS_OF_THREADS, THREADS)["cpu_us"]
    return found


def events(stores):
    return {"embedded_events.cpu_us": stores.fresh("vigil", "events", EVENTS)["cpu_us"]} if stores.name == "vigil" else {}


def million(stores):
    def opened(store):
        stores.fresh(store, "load", MILLION)
        return stores.run(store, "open", 1)["seconds"]
    if stores.name == "vigil":
        return {f"{other}_open.s": value for value in [opened("vigil")] for other in ("embedded", *OTHERS)}
    return {f"{other}_open.s": opened(other) for other in OTHERS}
