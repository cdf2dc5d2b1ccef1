/* The writer's thread: the only one that changes the store. See engine/local/local.h. */
#ifndef VIGIL_ENGINE_LOCAL_WRITER_WRITER_H
#define VIGIL_ENGINE_LOCAL_WRITER_WRITER_H

#include "base/yield_point.h"
#include "engine/local/mirror/mirror_writer.h"
#include "engine/local/state/shared.h"

#include <pthread.h>

enum { WRITER_GRANTS_MAX = 64 };

/* "The group" is the one that is being applied and is not durable yet. */
struct local_writer {
    struct local_shared *shared;
    struct local_writer_inbox *inbox; /* the shared one */
    struct local_lease *lease;        /* the shared one */
    struct turn *turn;
    pthread_t thread;
    struct metric_block *counts;
    int64_t now_ns; /* the time of this turn */

    /* The group. */
    struct mailbox_chain *answers; /* one chain for each shard */
    unsigned group_requests;
    int64_t group_begun_ns;
    int64_t committed_revision;         /* before the group */
    bool rights_pending;                /* the group may have changed permissions */
    int64_t granted[WRITER_GRANTS_MAX]; /* leases of the group, not visible to clients yet */
    unsigned granted_count;
    struct mailbox_node *compacted;    /* struct local_compacted: of the group */
    uint64_t puts, deletes, put_bytes; /* counts of the store up to the last group */
    uint64_t bytes_since_wake;         /* bytes of log since the keeper was last woken */
    int64_t notified_revision;         /* the last revision of which shards were notified */

    /* Answers in the middle of a long request. */
    struct yield_point yield_point; /* set while requests are applied */
    struct mailbox_chain *early;    /* one chain for each shard */

    /* Lease reads. */
    struct mailbox_node *lease_left; /* taken from the mailbox, left for the next turn */
    int64_t lease_taken_ns; /* input that arrived before this is in lease_left or answered */
    int64_t
        lease_read_ns; /* renewals that arrived before this were done: leases expire up to here */
    bool awaits_progress; /* a lease has expired, but some shard must read its input first */

    struct mailbox_chain waiting;  /* physical compactions that are not finished */
    struct mailbox_chain deferred; /* compactions of revisions that some shard has not read */
    int64_t deferred_until_ns;     /* they wait until then; 0: there are none */

    struct local_mirror_writer mirror;

    struct local_job *relocating; /* owned while the writer has it */
    struct local_job *trimming;   /* the same */
    int64_t background_ended_ns;  /* when the last background work ended */
    int64_t wait_until_ns;        /* deadline of the current wait; 0: not waiting */
    _Atomic bool stopping;
};

void local_writer_init(struct local_writer *writer, struct local_shared *shared);
void local_writer_start(struct local_writer *writer);
/* After all shards were freed, so that no operation waits for an answer. */
void local_writer_stop(struct local_writer *writer);
void local_writer_fini(struct local_writer *writer); /* after the keeper has stopped too */

/* early.c: answers lease calls in the middle of a long request, as writer->yield_point.fn. */
void local_writer_answer_early(void *writer);

#endif
