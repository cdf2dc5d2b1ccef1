/*
 * The inside of a vigil_object_watch: the state in pages, then a vigil_watch.
 *
 *     new ──► listing ──► watching       every state ──► ended
 *      └──────────────────────▲
 *
 *     new        the loop has not received it yet
 *     listing    the state is being read, by a call of vigil_range_pages
 *     watching   the state is complete; a vigil_watch yields the changes
 *
 * The call and the watch pause, resume and end with the client themselves. They are internal: their
 * functions are called on the loop's thread outside of callbacks, and it is the object watch that
 * makes the callbacks of the program. Everything belongs to the loop's thread, except for the
 * fields that say otherwise. Mirrors watchChan of Kubernetes' storage/etcd3.
 */
#ifndef VIGIL_CLIENT_WATCH_OBJECT_WATCH_H
#define VIGIL_CLIENT_WATCH_OBJECT_WATCH_H

#include "client/call/client.h"
#include "client/driver/shared.h"
#include "client/watch/object.h"

enum object_watch_state {
    OBJECT_WATCH_NEW,
    OBJECT_WATCH_LISTING,
    OBJECT_WATCH_WATCHING,
    OBJECT_WATCH_ENDED,
};

/* Written by the loop's thread, read by any. */
struct object_watch_counters {
    _Atomic uint64_t events, filtered, bookmarks, pages, pauses;
    _Atomic uint64_t queued_bytes, queued_bytes_max, batch_events_max;
};

struct vigil_object_watch {
    enum object_watch_state state;
    struct vigil_client *client; /* a reference */
    struct driver_object object; /* protected by the client's lock */
    struct driver_shared shared; /* its references are the user's, the loop's until it has ended,
                                    and one while the command is posted */
    vigil_object_watch_fn fn;
    struct object_hooks hooks; /* with the user pointer of fn as well */
    struct object_batch batch;
    struct vigil_call *pages;  /* while listing; owned */
    struct vigil_watch *watch; /* while watching; owned */
    int64_t list_revision;     /* revision of the state; 0 before its first page */
    int64_t page_limit;
    size_t buffer_bytes;
    bool prefix, progress_notify, require_leader;
    struct object_watch_counters counters;
    _Atomic int64_t revision; /* everything up to here has been delivered; 0 while the state is
                                 incomplete; any thread */
    size_t key_len;
    uint8_t key[]; /* without the client's prefix */
};

/* Asserts every invariant; for tests. The loop's thread. */
void object_watch_check(const struct vigil_object_watch *watch);

#endif
