/* What passes between the threads of the local engine: operations, and what the keeper asks for. */
#ifndef VIGIL_ENGINE_LOCAL_JOB_H
#define VIGIL_ENGINE_LOCAL_JOB_H

#include "engine/operation.h"
#include "store/upkeep/relocation.h"

/* Operations on their way, linked by in_mailbox. */
struct op_chain {
    struct mailbox_node *first, *last;
};

static inline void op_chain_add(struct op_chain *chain, struct engine_op *op)
{
    op->in_mailbox.next = NULL;
    if (chain->last)
        chain->last->next = &op->in_mailbox;
    else
        chain->first = &op->in_mailbox;
    chain->last = &op->in_mailbox;
}

static inline struct engine_op *op_of(struct mailbox_node *node)
{
    return CONTAINER_OF(node, struct engine_op, in_mailbox);
}

/* For reports of long turns (base/turn.h). An empty one: it is never long, and costs nothing. */
struct slice local_op_name(const struct engine_op *op);

/* What the keeper asks of the writer. All but LOCAL_FORGET come back when they are done. */
enum local_job_kind {
    LOCAL_RELOCATE, /* point the index to the copies */
    LOCAL_FORGET,   /* the segment */
    LOCAL_SETTLE,   /* trim what compactions have left */
    LOCAL_SHRINK,   /* the size, to what is in use */
};
struct local_job {
    struct mailbox_node in_mailbox;
    enum local_job_kind kind;
    struct relocation *relocation; /* owned */
    uint64_t segment;
};

void local_job_free(struct local_job *job);

/* A compaction was applied: to be hashed before anything of it is dropped. */
struct local_compacted {
    struct mailbox_node in_mailbox;
    int64_t before, revision;
};

/*
 * Defragmenting: asked for by any number of clients, done for all that asked before it began.
 *
 *     IDLE ─► SETTLING (with the writer) ─► DROPPING ─► CLEANING ─► SHRINKING (with the writer)
 *                                               └── a failure ─┴────────► IDLE ◄── SAVING ◄─┘
 *
 * DROPPING and SAVING wait for a checkpoint that begins after them.
 */
enum defragment_state {
    DEFRAGMENT_IDLE,
    DEFRAGMENT_SETTLING,
    DEFRAGMENT_DROPPING,
    DEFRAGMENT_CLEANING,
    DEFRAGMENT_SHRINKING,
    DEFRAGMENT_SAVING,
};

struct local_defragmenter {
    bool wanted;     /* by nobody who waits for it: at the start */
    bool met_damage; /* some segment could not be cleaned */
    enum defragment_state state;
    struct op_chain served;  /* struct engine_defragment: answered when this one ends */
    struct op_chain waiting; /* came later: for the next */
    uint64_t checkpoint;     /* the number of the one it waits for */
    uint64_t id_end;         /* of the segments there were when it began to clean */
    int64_t begun_ns;
};

#endif
