/*
 * The inside of a vigil_v2_watch: a queue of responses between the poller and the program.
 *
 *     poller ──► queue ──► include, decode, matches ──► batch ──► the program
 *
 *     new ──► open ──► ending ──► ended        every state ──► ended
 *
 *     new       the loop has not received it yet
 *     ending    the poller has failed; what is in the queue is delivered, then the ERROR
 *
 * Everything belongs to the loop's thread, except for the fields that say otherwise. Mirrors
 * etcdWatcher of Kubernetes' storage/etcd.
 */
#ifndef VIGIL_CLIENT_V2_V2_WATCH_H
#define VIGIL_CLIENT_V2_V2_WATCH_H

#include "client/driver/shared.h"
#include "client/v2/v2_poller.h"
#include "client/watch/object.h"

#include <vigil/v2.h>

enum v2_watch_state { V2_WATCH_NEW, V2_WATCH_OPEN, V2_WATCH_ENDING, V2_WATCH_ENDED };

/* Written by the loop's thread, read by any. */
struct v2_watch_counters {
    _Atomic uint64_t events, filtered, skipped, bad_values, requests, retries;
    _Atomic uint64_t queued, queued_max, queued_bytes, queued_bytes_max;
};

struct vigil_v2_watch {
    enum v2_watch_state state;
    struct vigil_client *client; /* a reference */
    struct driver_object object; /* protected by the client's lock */
    struct driver_member member; /* membership of the client, from the start to the end */
    vigil_v2_watch_fn fn;
    vigil_v2_include include;
    struct object_hooks hooks; /* with the user pointer of all functions */
    struct object_batch batch; /* empty outside of callbacks */
    struct v2_poller poller;   /* zeroed while new */
    struct list queue;         /* v2_reply.in_queue */
    size_t queue_max, buffer_bytes;
    struct v2_tree_reader tree; /* reads the first reply, if tree_begun */
    bool tree_begun;
    bool paused;
    struct deferred delivery;
    vigil_error failure;   /* while ending */
    int64_t cleared_index; /* the same: see v2_poller_hooks */
    struct v2_watch_counters counters;
    _Atomic int64_t index; /* everything up to here has been delivered; any thread */
    bool recursive, quorum;
    struct driver_shared shared; /* references: the user's, and the loop's until it has ended */
    size_t key_len;
    uint8_t key[];
};

/* Asserts every invariant; for tests. The loop's thread. */
void v2_watch_check(const struct vigil_v2_watch *watch);

#endif
