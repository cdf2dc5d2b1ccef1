"""Cases for Python's etcd3, one per run: python_client.py PORT CASE. It prints `ready` where the test has to act, and continues
when it reads a line; it exits with 0 if everything was as expected."""
import os
import queue
import sys
import time

import etcd3
import grpc

PORT = int(sys.argv[1])
LIMIT = 60


def connect(**options):
    return etcd3.client(host="127.0.0.1", port=PORT, **options)


def want(what, got, wanted):
    if got != wanted:
        raise SystemExit(f"{what} is {got!r}, want {wanted!r}")


def put_get_delete():
    client = connect()
    client.put("a", "1")
    client.put("b", b"\x00\xff")
    value, meta = client.get("a")
    want("value", (value, meta.key, meta.version), (b"1", b"a", 1))
    want("binary value", client.get("b")[0], b"\x00\xff")
    want("missing", client.get("none"), (None, None))
    want("previous", client.put("a", "2", prev_kv=True).prev_kv.value, b"1")
    for i in range(25):
        client.put(f"p/{i:02}", str(i))
    want("prefix", len(list(client.get_prefix("p/"))), 25)
    want("sorted", next(client.get_prefix("p/", sort_order="descend"))[0], b"24")
    want("range", [v for v, _ in client.get_range("p/03", "p/06")], [b"3", b"4", b"5"])
    want("deleted", client.delete("a"), True)
    want("deleted again", client.delete("a"), False)
    want("deleted prefix", client.delete_prefix("p/").deleted, 25)
    want("replaced", (client.put_if_not_exists("c", "1"), client.put_if_not_exists("c", "2")), (True, False))
    want("swapped", (client.replace("c", "1", "9"), client.replace("c", "1", "8")), (True, False))


def transactions():
    client = connect()
    tx = client.transactions
    client.put("a", "1")
    ok, answers = client.transaction(
        compare=[tx.value("a") == "1", tx.version("a") > 0, tx.create("none") == 0, tx.mod("a") < 1000],
        success=[tx.put("a", "2"), tx.get("a"), tx.delete("none")],
        failure=[tx.put("a", "failed")])
    want("succeeded", ok, True)
    want("read inside", answers[1][0][0], b"2")
    ok, answers = client.transaction(compare=[tx.value("a") == "1"], success=[], failure=[tx.get("a")])
    want("failed", (ok, answers[0][0][0]), (False, b"2"))


def watching():
    client = connect()
    seen = queue.Queue()
    first = client.put("w/a", "0").header.revision
    identity = client.add_watch_prefix_callback("w/", lambda r: [seen.put(e) for e in r.events], start_revision=first,
                                                prev_kv=True)
    client.put("w/a", "1")
    client.put("other", "1")
    client.delete("w/a")
    events = [seen.get(timeout=LIMIT) for _ in range(3)]
    want("events", [(type(e).__name__, e.key, e.value) for e in events],
         [("PutEvent", b"w/a", b"0"), ("PutEvent", b"w/a", b"1"), ("DeleteEvent", b"w/a", b"")])
    want("previous", events[2].prev_value, b"1")
    client.cancel_watch(identity)
    client.compact(client.put("w/a", "2").header.revision, physical=True)
    try:
        events, cancel = client.watch("w/a", start_revision=1)
        next(events)
        raise SystemExit("a compacted revision was watched")
    except etcd3.exceptions.RevisionCompactedError as error:
        want("compacted", error.compacted_revision > 1, True)


def leases():
    client = connect()
    lease = client.lease(4)
    other = client.lease(100, lease_id=4711)
    want("id", other.id, 4711)
    client.put("leased", "x", lease=lease)
    client.put("kept", "x", lease=other)
    want("granted", (lease.granted_ttl, other.granted_ttl), (4, 100))
    want("keys", lease.keys, [b"leased"])
    want("listed", client.get_lease_info(4711).ID, 4711)
    for _ in range(7):
        list(lease.refresh())
        time.sleep(0.7)
    want("kept alive", client.get("leased")[0], b"x")
    end = time.monotonic() + LIMIT
    while client.get("leased")[0] is not None:
        if time.monotonic() > end:
            raise SystemExit("the lease did not expire")
        time.sleep(0.1)
    other.revoke()
    want("revoked", client.get("kept")[0], None)


def locks():
    one, two = connect(), connect()
    first, second = one.lock("l", ttl=10), two.lock("l", ttl=10)
    want("acquired", first.acquire(timeout=LIMIT), True)
    want("not by the second", second.acquire(timeout=1), False)
    want("released", first.release(), True)
    want("then by the second", second.acquire(timeout=LIMIT), True)
    want("held", (first.is_acquired(), second.is_acquired()), (False, True))
    second.release()
    with one.lock("m", ttl=10) as held:
        want("as a context", held.is_acquired(), True)


def maintenance():
    client = connect()
    client.put("a", "1")
    want("status", client.status().leader.name, "default")
    want("members", len(list(client.members)), 1)
    want("alarms", list(client.list_alarms()), [])
    client.defragment()
    want("hash", client.hash() > 0, True)


def refused(what, code, call, *args):
    try:
        call(*args)
    except grpc.RpcError as error:
        want(what, error.code(), code)
    else:
        raise SystemExit(f"{what} was not refused")


def log_in(user, password):
    # The client does not send credentials without TLS.
    return etcd3.client(host="127.0.0.1", port=int(os.environ["SECURE_PORT"]), user=user, password=password,
                        ca_cert=os.environ["AUTHORITY"])


def login():
    codes = grpc.StatusCode
    refused("no user", codes.INVALID_ARGUMENT, connect().get, "anna/1")
    try:
        log_in("anna", "wrong")
        raise SystemExit("a wrong password was accepted")
    except grpc.RpcError as error:
        want("wrong password", error.code(), codes.INVALID_ARGUMENT)
    anna, root = log_in("anna", "annapw"), log_in("root", "rootpw")
    root.put("other", "x")
    anna.put("anna/1", "x")
    want("value", anna.get("anna/1")[0], b"x")
    refused("a key of another user", codes.PERMISSION_DENIED, anna.put, "other", "y")
    refused("all keys", codes.PERMISSION_DENIED, lambda: list(anna.get_all()))
    events, cancel = anna.watch_prefix("anna/")
    root.put("anna/2", "x")
    want("event", next(events).key, b"anna/2")
    cancel()
    lease = anna.lease(60)
    anna.put("anna/3", "x", lease=lease)
    root.put("other", "x", lease=lease)
    refused("a lease with a key of another user", codes.PERMISSION_DENIED, lease.revoke)
    print("ready", flush=True)
    sys.stdin.readline()
    # The client does not log in again by itself.
    refused("the old token", codes.UNAUTHENTICATED, anna.get, "anna/1")
    want("value", log_in("anna", "annapw").get("anna/1")[0], b"x")


def reconnecting():
    client = connect(timeout=5)
    client.put("a", "1")
    print("ready", flush=True)
    sys.stdin.readline()
    end = time.monotonic() + LIMIT
    while True:
        try:
            want("value", client.get("a")[0], b"1")
            client.put("a", "2")
            return
        except (etcd3.exceptions.ConnectionFailedError, etcd3.exceptions.ConnectionTimeoutError, grpc.RpcError):
            if time.monotonic() > end:
                raise


globals()[sys.argv[2]]()
