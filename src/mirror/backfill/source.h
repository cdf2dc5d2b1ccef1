/*
 * One watch of the cluster that brings the past of a range of keys, in Vigil's own name. What it
 * has received is read in steps; a watch that breaks is continued where its known part ends.
 *
 *     PAUSING ──► OPEN ──► PAUSING      refused, ended, malformed: again after a while
 *        └──────────┴────► GONE         the cluster has compacted the rest, or cannot read the next
 *                                       revision, which is marked as lost; or it was stopped
 *
 *     received:   known, complete ─┬─ the revision that may not be complete ─┬─ not read yet
 *                 .. known - 1     │  in `run`, too                          │  in `queue`
 */
#ifndef VIGIL_MIRROR_BACKFILL_SOURCE_H
#define VIGIL_MIRROR_BACKFILL_SOURCE_H

#include "io/timer.h"
#include "mirror/backfill/run.h"

#include <stdatomic.h>

struct loop;
struct backfill_source;
struct upstream_call;

enum {
    BACKFILL_REVISION_BYTES_MAX = 256 << 20, /* a larger revision is not kept */
};

/* Calls of the cluster, as in mirror/link/upstream.h. */
struct backfill_calls {
    /* Opens a Watch in Vigil's own name, for backfill_source_received and backfill_source_ended.
     * NULL: it is not possible now. */
    struct upstream_call *(*open)(void *ctx, struct backfill_source *source);
    enum status (*send)(struct upstream_call *call, struct slice message);
    void (*pause)(struct upstream_call *call, bool paused);
    /* The cluster has refused the watch: the next one is opened with another token. */
    void (*renew_token)(struct upstream_call *call);
    void (*cancel)(struct upstream_call *call);
    void *ctx;
};

/* What is known of the cluster, as in mirror/link/state.h. */
struct backfill_cluster {
    const _Atomic int64_t *oldest, *compacted;
    const _Atomic int64_t *void_until; /* NULL: no other history was discarded */
    const _Atomic bool *progress_reliable;
    const _Atomic uint64_t *cluster_id;
    /* While it is not connected, the cluster may be restored to another history; how often it was.
     * NULL: it always is. */
    const _Atomic bool *connected;
    const _Atomic uint64_t *times_connected;
};

struct backfill_source_options {
    struct loop *loop;
    const struct backfill_calls *calls; /* borrowed */
    struct backfill_cluster cluster;
    struct slice key, range_end;  /* borrowed */
    const struct slice *prefixes; /* only keys with one of these are kept; borrowed */
    size_t prefix_count;          /* 0: all are kept */
    size_t *counted;              /* where its memory is counted */
    size_t revision_bytes_max;
    /* There is something to do: a step, or it is gone. */
    void (*changed)(void *ctx);
    void *ctx;
};

enum backfill_source_state { BACKFILL_SOURCE_PAUSING, BACKFILL_SOURCE_OPEN, BACKFILL_SOURCE_GONE };

struct backfill_source {
    enum backfill_source_state state;
    struct backfill_source_options options;
    struct upstream_call *call; /* when OPEN */
    struct timer timer;         /* when PAUSING */
    int64_t pause_ns;           /* grows from failure to failure */
    bool paused;                /* the call gets no more window */
    int64_t known;              /* all events before this revision were received */
    int64_t newest;             /* the revision of the last event that was read; 0: none */
    int64_t compact_revision;   /* when GONE: the cluster's; 0: it is for another reason */
    bool ended_damaged;         /* the call has ended because of damage */
    struct backfill_run run;
    struct backfill_body **queue; /* messages that are not read yet */
    size_t queue_first, queue_count, queue_capacity;
    size_t queue_bytes;
    size_t read_at; /* in the first message of the queue; 0: it is not begun */
    uint64_t received_bytes;
};

/* Starts a watch that begins at this revision. The source is zeroed before. */
void backfill_source_start(struct backfill_source *source,
                           const struct backfill_source_options *options, int64_t from);
void backfill_source_stop(
    struct backfill_source *source); /* frees everything; accepts a zeroed one */

/* The call has brought a message, or it has ended with this text and no longer exists. */
void backfill_source_received(struct backfill_source *source, struct slice message);
void backfill_source_ended(struct backfill_source *source, struct slice text);

/* Reads events from the queue, and subtracts their number from *units. True: there are more. */
bool backfill_source_step(struct backfill_source *source, size_t *units);
void backfill_source_pause(struct backfill_source *source, bool paused);
/* Asks the cluster how far it is, if its answers can be trusted. */
void backfill_source_ask_progress(struct backfill_source *source);
/* Memory of what it has not given away. */
size_t backfill_source_bytes(const struct backfill_source *source);
/* Asserts every invariant; for tests. */
void backfill_source_check(const struct backfill_source *source);

#endif
