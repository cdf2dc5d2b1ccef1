/*
 * The keeper's thread: the next segment of the log, checkpoints, cleaning, defragmenting, hashes,
 * the check of the store. Work that can be long is done in steps, one step of each in a turn, so
 * that none delays another.
 *
 * The work on the store itself is in store/upkeep.h; this thread decides when it is done.
 */
#ifndef VIGIL_ENGINE_LOCAL_KEEPER_KEEPER_H
#define VIGIL_ENGINE_LOCAL_KEEPER_KEEPER_H

#include "engine/local/keeper/hashes.h"
#include "engine/local/state/shared.h"
#include "store/upkeep.h"

#include <pthread.h>

/*
 * Defragmenting: requested by any number of clients, done once for all that asked before it began.
 *
 *     IDLE ─► TRIMMING (by the writer) ─► DROPPING ─► CLEANING ─► SHRINKING (by the writer)
 *                                            │            │            │
 *                                            └─ failure ──┴─► IDLE ◄── SAVING
 *
 * DROPPING and SAVING wait for a checkpoint that begins after them.
 */
enum defragment_state {
    DEFRAGMENT_IDLE,
    DEFRAGMENT_TRIMMING,
    DEFRAGMENT_DROPPING,
    DEFRAGMENT_CLEANING,
    DEFRAGMENT_SHRINKING,
    DEFRAGMENT_SAVING,
};

struct local_defragmenter {
    bool wanted;     /* at the start, without a request */
    bool met_damage; /* some segment could not be cleaned */
    enum defragment_state state;
    struct mailbox_chain served;  /* struct engine_op: answered when this run ends */
    struct mailbox_chain waiting; /* arrived later: for the next run */
    uint64_t checkpoint;          /* number of the checkpoint that DROPPING or SAVING waits for */
    uint64_t id_end;              /* CLEANING: segments with a smaller id are cleaned */
    int64_t begun_ns;
};

struct local_keeper {
    struct local_shared *shared;
    struct local_keeper_inbox *inbox; /* the shared one */
    struct turn *turn;
    struct upkeep *upkeep; /* owned: the work on the store */
    pthread_t thread;
    struct metric_block *counts;
    bool cleaning;                   /* a relocation is with the writer, or in relocated_job */
    struct local_job *relocated_job; /* owned: relocated, not in the checkpoint yet */
    struct local_defragmenter defragmenter;
    int64_t dirty_since_ns;   /* when inbox->dirty was first seen; CLOCK_NEVER: it is not set */
    const char *last_warning; /* text and time of the last warning */
    int64_t last_warning_ns;
    int64_t retry_at_ns;      /* after a failure: nothing that needs disk space before this … */
    int64_t prepare_retry_ns; /* … but the next segment has its own time; 0: it did not fail */
    int64_t clean_retry_ns;   /* after damage: relocated_job is not continued before this */
    int64_t checkpoint_after_ns; /* after damage: no checkpoint before this */
    int64_t mark_look_ns; /* when to look next whether the log is idle; CLOCK_NEVER: not needed */
    uint64_t mark_seen_index; /* the durable index at the last look */
    int64_t mark_warned_ns;   /* time of the last warning about a failed mark; 0: none */
    struct local_check check;
    struct local_hashes hashes;
    struct mailbox_chain unsorted; /* long lists of leases or of their keys, to be sorted */
    bool checkpointing;            /* a checkpoint is in progress */
    uint64_t checkpoints;          /* number of checkpoints that have begun */
    int64_t rest_until_ns;         /* work that can wait is not done before this */
    uint64_t rested_index;         /* index of the log after the last such work */
    int64_t prepare_at_ns;         /* the next piece of a new segment is not made before this … */
    uint64_t prepared_index;       /* … because the log grew: its index after the last piece */
    bool cleans_first;             /* in this turn, before the checkpoint */
    bool wants_cleaning;           /* a segment may have become worth cleaning */
    uint64_t wants_cleaning_since; /* hashes.ended at that time */
    _Atomic bool stopping;
};

void local_keeper_init(struct local_keeper *keeper, struct local_shared *shared);
void local_keeper_start(struct local_keeper *keeper);
/* After the writer has stopped: writes the last checkpoint. */
void local_keeper_stop(struct local_keeper *keeper);
void local_keeper_fini(struct local_keeper *keeper);

#endif
