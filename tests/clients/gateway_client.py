"""Cases for Python's etcd3gw, which uses the JSON gateway; run like python_client.py."""
import sys
import threading
import time

import etcd3gw
import requests

PORT = int(sys.argv[1])
LIMIT = 60


def connect():
    return etcd3gw.client(host="127.0.0.1", port=PORT, api_path="/v3/", timeout=LIMIT)


def want(what, got, wanted):
    if got != wanted:
        raise SystemExit(f"{what} is {got!r}, want {wanted!r}")


def put_get_delete():
    client = connect()
    want("put", client.put("a", "1"), True)
    client.put("b", b"\x00\xff")
    want("value", client.get("a"), [b"1"])
    want("binary value", client.get("b"), [b"\x00\xff"])
    want("missing", client.get("none"), [])
    meta = client.get("a", metadata=True)[0][1]
    want("metadata", (meta["key"], meta["version"]), (b"a", "1"))
    for i in range(25):
        client.put(f"p/{i:02}", str(i))
    want("prefix", len(client.get_prefix("p/")), 25)
    want("sorted", client.get_prefix("p/", sort_order="descend", sort_target="key")[0][0], b"24")
    want("large", client.put("large", "x" * 1_000_000), True)
    want("large value", client.get("large"), [b"x" * 1_000_000])
    want("deleted", (client.delete("a"), client.delete("a")), (True, False))
    want("deleted prefix", client.delete_prefix("p/"), True)
    want("all", {v[1]["key"] for v in client.get_all()}, {b"b", b"large"})


def transactions():
    client = connect()
    want("created", (client.create("c", "1"), client.create("c", "2")), (True, False))
    want("replaced", (client.replace("c", "1", "3"), client.replace("c", "1", "4")), (True, False))
    want("value", client.get("c"), [b"3"])
    key = "Yw=="
    answer = client.transaction({
        "compare": [{"key": key, "result": "EQUAL", "target": "VERSION", "version": 2}],
        "success": [{"request_range": {"key": key}}], "failure": []})
    want("succeeded", answer["succeeded"], True)
    want("range within", answer["responses"][0]["response_range"]["count"], "1")


def write_soon(client, key, count):
    def write():
        for i in range(count):
            time.sleep(0.05)
            client.put(key, str(i))
    thread = threading.Thread(target=write)
    thread.start()
    return thread


def watching():
    client = connect()
    events, cancel = client.watch("w")
    writer = write_soon(connect(), "w", 10)
    seen = [next(events)["kv"]["value"] for _ in range(10)]
    want("events", seen, [str(i).encode() for i in range(10)])
    writer.join()
    connect().delete("w")
    want("deletion", next(events)["type"], "DELETE")
    cancel()
    writer = write_soon(connect(), "p/1", 20)
    want("once", client.watch_once("p/1", timeout=LIMIT)["kv"]["key"], b"p/1")
    writer.join()


def leases():
    client = connect()
    lease = client.lease(ttl=100)
    want("time to live", 90 < int(lease.ttl()) <= 100, True)
    client.put("l", "x", lease=lease)
    want("keys", lease.keys(), [b"l"])
    want("refreshed", int(lease.refresh()), 100)
    want("revoked", lease.revoke(), True)
    want("gone", client.get("l"), [])
    short = client.lease(ttl=1)
    client.put("short", "x", lease=short)
    end = time.monotonic() + LIMIT
    while client.get("short"):
        if time.monotonic() > end:
            raise SystemExit("the lease does not expire")
        time.sleep(0.1)


def locks():
    client = connect()
    with client.lock("mine", ttl=30) as lock:
        want("held", lock.is_acquired(), True)
        other = connect().lock("mine", ttl=30)
        want("of another", other.acquire(), False)
    want("free again", other.acquire(), True)
    want("released", other.release(), True)


def maintenance():
    client = connect()
    want("version", client.status()["version"].startswith("3."), True)
    want("members", len(client.members()), 1)


def log_in(client, name, password):
    client.session.headers.pop("Authorization", None)
    answer = client.post(client.get_url("/auth/authenticate"), json={"name": name, "password": password})
    client.session.headers["Authorization"] = answer["token"]


def refused(what, call, *args):
    try:
        call(*args)
    except etcd3gw.exceptions.Etcd3Exception as error:
        want(what, what in f"{error} {error.detail_text}", True)
    else:
        raise SystemExit(f"{what}: the call was not refused")


def login():
    client = connect()
    refused("user name is empty", client.get, "anna/1")
    refused("authentication failed", log_in, client, "anna", "wrong")
    log_in(client, "anna", "annapw")
    want("put", client.put("anna/1", "x"), True)
    want("value", client.get("anna/1"), [b"x"])
    refused("permission denied", client.put, "other", "x")
    refused("permission denied", client.get_all)
    print("ready", flush=True)
    sys.stdin.readline()
    refused("invalid auth token", client.get, "anna/1")
    log_in(client, "anna", "annapw")
    want("value", client.get("anna/1"), [b"x"])


def reconnecting():
    client = connect()
    client.put("kept", "1")
    print("ready", flush=True)
    sys.stdin.readline()
    end = time.monotonic() + LIMIT
    while True:
        try:
            want("kept", client.get("kept"), [b"1"])
            return
        except (etcd3gw.exceptions.ConnectionFailedError, requests.exceptions.RequestException):
            if time.monotonic() > end:
                raise


CASES = (put_get_delete, transactions, watching, leases, locks, maintenance, login, reconnecting)

if __name__ == "__main__":
    {case.__name__: case for case in CASES}[sys.argv[2]]()
