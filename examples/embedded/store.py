#!/usr/bin/python3
"""The store inside a Python program, through cffi: counts its own starts, and watches a key.

    python3 store.py DIRECTORY [LIBRARY]

Needs cffi (Debian: python3-cffi) and libvigil-embed. The declarations are those of the installed headers that this
program uses, without the macros.
"""
import sys
import threading

import cffi

DECLARATIONS = """
    typedef struct vigil_client vigil_client;
    typedef struct vigil_call vigil_call;
    typedef struct vigil_watch vigil_watch;
    typedef struct { const void *data; size_t size; } vigil_bytes;
    typedef struct { int code, grpc_code, outcome, reserved; char text[232]; } vigil_error;
    typedef struct {
        vigil_bytes key; int64_t create_revision, mod_revision, version; vigil_bytes value; int64_t lease;
    } vigil_kv;
    typedef struct { uint64_t cluster_id, member_id; int64_t revision; uint64_t raft_term; } vigil_header;
    typedef struct {
        const vigil_header *header; const vigil_kv *kvs; size_t kv_count; uint8_t more; int64_t count;
    } vigil_range_response;
    typedef struct { int32_t type; const vigil_kv *kv, *prev_kv; } vigil_event;
    typedef struct {
        int what; int64_t revision; const vigil_header *header; const vigil_event *events; size_t event_count;
        int64_t compact_revision; const vigil_error *error;
    } vigil_watch_batch;
    typedef int (*vigil_watch_fn)(vigil_watch *watch, const vigil_watch_batch *batch, void *user);
    typedef struct { const char *name, *value; } vigil_metadata;
    typedef struct {
        size_t size; vigil_bytes key, range_end; uint8_t prefix; int64_t revision; uint8_t prev_kv, progress_notify,
        created_notify, no_put, no_delete, require_leader, no_fragment; size_t buffer_bytes;
        const vigil_metadata *metadata; size_t metadata_count;
    } vigil_watch_options;

    int vigil_open_embedded(const char *directory, const void *options, vigil_client **client, vigil_error *error);
    void vigil_client_free(vigil_client *client);
    vigil_call *vigil_get(vigil_client *client, vigil_bytes key);
    vigil_call *vigil_put(vigil_client *client, vigil_bytes key, vigil_bytes value, int64_t lease);
    int vigil_call_run(vigil_call *call);
    void vigil_call_free(vigil_call *call);
    const vigil_error *vigil_call_error(const vigil_call *call);
    const vigil_range_response *vigil_range_result(const vigil_call *call);
    const vigil_header *vigil_call_header(const vigil_call *call);
    void vigil_watch_options_init(vigil_watch_options *options);
    int vigil_watch_new(vigil_client *client, const vigil_watch_options *options, vigil_watch_fn fn, void *user,
                        vigil_watch **watch);
    void vigil_watch_free(vigil_watch *watch);
"""

ffi = cffi.FFI()
ffi.cdef(DECLARATIONS)


class Store:
    def __init__(self, directory, library="libvigil-embed.so.1"):
        self.lib = ffi.dlopen(library)
        client, error = ffi.new("vigil_client **"), ffi.new("vigil_error *")
        if self.lib.vigil_open_embedded(directory.encode(), ffi.NULL, client, error):
            raise OSError(ffi.string(error.text).decode())
        self.client = client[0]

    def run(self, call, read):
        """Runs the call, reads its result and frees it. cffi releases Python's lock while it waits."""
        try:
            if self.lib.vigil_call_run(call):
                raise OSError(ffi.string(self.lib.vigil_call_error(call).text).decode())
            return read(call)
        finally:
            self.lib.vigil_call_free(call)

    def get(self, key):
        def read(call):
            found = self.lib.vigil_range_result(call)
            return bytes_of(found.kvs[0].value) if found.kv_count else None
        return self.run(self.lib.vigil_get(self.client, as_bytes(key)), read)

    def put(self, key, value):
        """Returns the revision, which is durable."""
        return self.run(self.lib.vigil_put(self.client, as_bytes(key), as_bytes(value), 0),
                        lambda call: self.lib.vigil_call_header(call).revision)

    def watch(self, prefix, revision, seen):
        """Calls seen(key, value) for every change from the revision on, on the store's thread. Returns what must be kept
        until it is ended."""
        @ffi.callback("vigil_watch_fn")
        def on_batch(_watch, batch, _user):
            for event in ffi.unpack(batch.events, batch.event_count) if batch.event_count else ():
                seen(bytes_of(event.kv.key), bytes_of(event.kv.value))
            return 0
        options, watch = ffi.new("vigil_watch_options *"), ffi.new("vigil_watch **")
        self.lib.vigil_watch_options_init(options)
        options.key, options.prefix, options.revision = as_bytes(prefix), 1, revision
        if self.lib.vigil_watch_new(self.client, options, on_batch, ffi.NULL, watch):
            raise OSError("cannot watch")
        return watch[0], on_batch

    def end_watch(self, watch):
        self.lib.vigil_watch_free(watch[0])

    def close(self):
        self.lib.vigil_client_free(self.client)


KEPT = []  # what vigil_bytes point to, until the next call


def as_bytes(text):
    buffer = ffi.from_buffer(text)
    KEPT[:] = [*KEPT[-8:], buffer]
    return ffi.new("vigil_bytes *", {"data": buffer, "size": len(text)})[0]


def bytes_of(found):
    return bytes(ffi.buffer(found.data, found.size)) if found.size else b""


def main():
    store = Store(sys.argv[1], *sys.argv[2:3])
    changes, arrived = [], threading.Event()

    def seen(key, value):
        changes.append((key, value))
        arrived.set()
    starts = int(store.get(b"starts") or 0) + 1
    revision = store.put(b"starts", str(starts).encode())
    watch = store.watch(b"starts", revision, seen)
    arrived.wait(30)
    store.end_watch(watch)
    print(f"start {starts}, seen {changes[0][0].decode()}={changes[0][1].decode()} at revision {revision}")
    store.close()


if __name__ == "__main__":
    main()
