/*
 * The keeper's thread: the next segment of the log, checkpoints, cleaning, defragmenting, hashes,
 * the check of the store. Everything that can be long is done in steps, one of each in a turn, so
 * that none of them delays another.
 */
#ifndef VIGIL_ENGINE_LOCAL_KEEPER_H
#define VIGIL_ENGINE_LOCAL_KEEPER_H

#include "engine/local/check.h"
#include "engine/local/hashes.h"
#include "engine/local/job.h"
#include "store/upkeep/keeper.h"

#include <pthread.h>

struct engine_local;
struct turn;

/* How many of them the keeper takes, of all shards. */
enum { LOCAL_HASHES_MAX = 16, LOCAL_DEFRAGMENTS_MAX = 64 };

struct local_keeper {
    struct engine_local *engine;
    struct turn *turn;
    struct keeper *keeper;
    pthread_t thread;
    struct waker waker;
    struct mailbox requests; /* struct engine_op: hashes, defragments, long lists of leases */
    struct mailbox compactions;
    struct mailbox moved; /* struct local_job: back from the writer */
    struct metric_block *counts;
    bool cleaning;               /* a relocation is with the writer, or in moved_job */
    struct local_job *moved_job; /* owned: relocated, and not in the checkpoint yet */
    struct local_defragmenter defragmenter;
    int64_t dirty_since_ns; /* when dirty was first seen; CLOCK_NEVER: it was not */
    const char *warned_of;  /* what the last warning said, and when */
    int64_t warned_ns;
    int64_t retry_at_ns;         /* after a failure: nothing that takes room before this */
    int64_t checkpoint_after_ns; /* a damaged log is not read for it again before this */
    int64_t mark_look_ns;        /* when to see next whether the log is idle; CLOCK_NEVER */
    uint64_t mark_seen_index;    /* how far it was durable when that was last seen */
    int64_t mark_warned_ns;      /* when it was last said that it could not be marked */
    struct local_check check;
    struct local_hashes hashes;
    struct op_chain unsorted;                         /* long lists of leases */
    bool checkpointing;                               /* one is under way */
    uint64_t checkpoints;                             /* begun: its number */
    int64_t rest_until_ns;                            /* from writing what can wait */
    uint64_t rested_index;                            /* of the log, when it last wrote such */
    bool wants_cleaning;                              /* a segment may have become worth it */
    uint64_t wants_cleaning_since;                    /* how many hashes had ended then */
    _Atomic unsigned hashes_asked, defragments_asked; /* any thread's */
    _Atomic bool dirty;    /* the log has grown since the last checkpoint */
    _Atomic bool unmarked; /* and since the last mark (log_mark) */
    _Atomic bool stopping;
};

void local_keeper_init(struct local_keeper *keeper, struct engine_local *engine);
void local_keeper_start(struct local_keeper *keeper);
/* After the writer has stopped: writes the last checkpoint. */
void local_keeper_stop(struct local_keeper *keeper);
void local_keeper_fini(struct local_keeper *keeper);

#endif
