"""What is measured of the clients, libvigil and etcd's clientv3: what they cost the program that uses
them. Both are used with Vigil, in the same way: bench/clients/."""

CALLS = 50_000
WATCHES, EVENTS, EVENTS_OF_PEER = 1000, 1_000_000, 300_000
MANY_WATCHES = 100_000
RESUMED = 10_000
HANDLES = 100


def calls(server):
    """100 in flight; the gets read what was put."""
    server.start()
    put, get = server.client_bench("put", CALLS), server.client_bench("get", CALLS)
    return {"client_put.cpu_us": put["cpu_us"], "client_put.rate": CALLS / put["seconds"],
            "client_get.cpu_us": get["cpu_us"], "client_get.rate": CALLS / get["seconds"],
            "other_cores": max(put["other_cores"], get["other_cores"])}


def events(server):
    """Of one key that all the watches of one stream see. The peer's cost of each does not depend on
    their number, and it needs ten times as long."""
    server.start()
    count = EVENTS if server.client == "vigil" else EVENTS_OF_PEER
    found = server.client_bench("events", WATCHES, count)
    return {"client_events.cpu_us": found["cpu_us"], "client_events.rate": count / found["seconds"],
            "other_cores": found["other_cores"]}


def watches(server):
    server.start()
    found = server.client_bench("watches", MANY_WATCHES)
    return {"client_watches.rate": MANY_WATCHES / found["seconds"],
            "client_watches.cpu_us": found["cpu_us"], "client_watches.bytes": found["bytes"],
            "other_cores": found["other_cores"]}


def resumed(server):
    server.start()
    found = server.client_bench("resume", RESUMED)
    return {"client_resume.ms": found["seconds"] * 1e3, "client_resume.cpu_us": found["cpu_us"],
            "other_cores": found["other_cores"]}


def size(server):
    """Of libvigil alone: a Go program has no library and no handle that could be compared."""
    if server.client != "vigil":
        return {}
    server.start()
    thread, loop = server.client_bench("idle", HANDLES), server.client_bench("idle-loop", HANDLES)
    library, kube_library = server.stripped_libraries_kb()
    return {"client_size.library_kb": library, "client_size.libraries_kb": library + kube_library,
            "client_size.thread_kb": thread["bytes"] / 1024,
            "client_size.loop_kb": loop["bytes"] / 1024,
            "client_size.heap_kb": max(thread["heap_bytes"], loop["heap_bytes"]) / 1024}
