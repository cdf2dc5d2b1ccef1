/*
 * Finds the cluster's newest revision for linearizable reads: one question at a time, shared by all
 * reads that were waiting when it was sent. One for each shard, on its thread.
 *
 *     read ──► waiting ──► next question is sent ──► its answer: the revision ──► done
 *                 │                                                                ▲
 *                 └── the question before has failed, and the read is not new ─────┘
 *
 * The question is a linearizable range of one key, which need not exist, in Vigil's own name. The
 * cluster refuses it if Vigil's user may not read that key. If reads of old revisions wait, it is
 * at the oldest of these: the cluster may have compacted it a moment ago, of which the mirror does
 * not know yet.
 */
#ifndef VIGIL_MIRROR_SHARED_CALLS_PROBE_H
#define VIGIL_MIRROR_SHARED_CALLS_PROBE_H

#include "base/container/list.h"
#include "base/slice.h"
#include "base/status.h"

struct mirror_state;
struct loop;
struct probe;
struct upstream;

/* The key is one that Vigil's user may read, such as a mirrored prefix; empty: it may read all.
 * Aborts without memory. */
struct probe *probe_new(struct loop *loop, struct upstream *upstream, struct mirror_state *state,
                        struct slice key);
void probe_free(struct probe *probe); /* no waiter may be left; accepts NULL */

/* Embedded by its owner, zeroed except for done and at. */
struct probe_waiter {
    void (*done)(struct probe_waiter *waiter);
    int64_t at;           /* the revision that will be read; 0: the newest */
    bool is_unreadable;   /* after done: `at`, or an older one, is compacted or does not exist */
    int64_t revision;     /* after done with GRPC_OK */
    enum grpc_code code;  /* after done */
    struct slice text;    /* after done: the cluster's own text, if it failed */
    int64_t since_ns;     /* private */
    struct list in_probe; /* private */
};

/* done is not called from within. */
void probe_ask(struct probe *probe, struct probe_waiter *waiter);
void probe_cancel(struct probe_waiter *waiter); /* no effect if it does not wait */

#endif
