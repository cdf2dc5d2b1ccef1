/* The local engine's writer: the one thread that changes the store. See engine/local/local.h. */
#ifndef VIGIL_ENGINE_LOCAL_WRITER_H
#define VIGIL_ENGINE_LOCAL_WRITER_H

#include "base/yield_point.h"
#include "engine/local/job.h"
#include "engine/local/lease.h"
#include "engine/local/metrics.h"
#include "io/mailbox.h"

#include <pthread.h>

struct engine_local;
struct turn;

enum { WRITER_GRANTS_MAX = 64 };

struct local_writer {
    struct engine_local *engine;
    struct turn *turn;
    pthread_t thread;
    struct waker waker;
    struct mailbox requests;         /* struct engine_op */
    struct mailbox lease_reads;      /* struct engine_op: what needs no record, mostly */
    struct mailbox_node *lease_left; /* of them: taken, and left for the next turn */
    int64_t lease_taken_ns;          /* when those were */
    int64_t lease_heard_ns;   /* who came before this to renew was heard: so far leases expire */
    struct mailbox jobs;      /* struct local_job */
    struct op_chain *answers; /* one for each shard: of the group under way */
    struct op_chain *early;   /* the same, for clients that are answered in the middle of it */
    struct yield_point yield_point; /* set while requests are applied */
    int64_t
        granted[WRITER_GRANTS_MAX]; /* leases of the group under way, which nobody may see yet */
    unsigned granted_count;
    bool rights_pending;            /* the group under way may have changed who may what */
    int64_t committed_revision;     /* before the group under way */
    struct op_chain waiting;        /* physical compactions */
    struct op_chain deferred;       /* compactions of what some shard has not looked at */
    int64_t deferred_until_ns;      /* they wait no longer; 0: there are none */
    struct local_job *relocating;   /* owned while with the writer */
    struct local_job *settling;     /* the same */
    struct mailbox_node *compacted; /* struct local_compacted: of the group under way */
    struct metric_block *counts;
    uint64_t puts, deletes, put_bytes; /* of the store, as far as they are counted */
    unsigned group_requests;           /* of the group under way */
    int64_t group_begun_ns;
    uint64_t bytes_since_wake; /* of log, since the keeper was last told */
    int64_t told_revision;     /* the last one that listening shards were told of */
    struct local_lease lease;
    int64_t stepped_ns;    /* when the last steps between groups ended */
    int64_t now_ns;        /* of this turn */
    int64_t rest_until_ns; /* when the wait under way is to end at the latest; 0: none is */
    bool hears;            /* a lease's time is over, and some shard is to read its clients first */
    _Atomic bool stopping;
};

void local_writer_init(struct local_writer *writer, struct engine_local *engine);
void local_writer_start(struct local_writer *writer);
/* After all shards are gone: nobody waits for an answer any more. */
void local_writer_stop(struct local_writer *writer);
void local_writer_fini(struct local_writer *writer); /* after the keeper has stopped too */

#endif
