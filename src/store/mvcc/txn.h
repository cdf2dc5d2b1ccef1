/*
 * The parts of a transaction that only read: which branch its compares choose, and whether the
 * operations of that branch may run. Both use the state before the transaction. Nothing here
 * writes, so readers use it too, for transactions that only have ranges.
 *
 * The choices form a path: one bool per transaction in the order in which etcd visits them, the
 * outer one first, then those nested in the branch taken, depth first.
 */
#ifndef VIGIL_STORE_MVCC_TXN_H
#define VIGIL_STORE_MVCC_TXN_H

#include "base/memory/arena.h"
#include "codec/answer.h"
#include "store/mvcc/range.h"

struct pb_txn_request;
struct pb_request_op;
struct pb_put_request;

struct txn_path {
    bool *choices; /* in the arena */
    size_t count;
};

/* Evaluates all compares. */
MUST_CHECK
enum status txn_choose(const struct range_state *state, const struct pb_txn_request *request,
                       struct arena *arena, struct txn_path *ret_path);

/* The operations of the branch taken. */
struct txn_branch {
    const struct pb_request_op *ops;
    size_t count;
};
struct txn_branch txn_branch_of(const struct pb_txn_request *request, bool succeeded);

/* Whether a range in a transaction may run: its revision is neither compacted nor in the future. */
MUST_CHECK
enum status txn_check_range(const struct range_state *state,
                            const struct pb_range_request *request);

/*
 * A read-only transaction, run in small steps: its compares one after the other, then the ranges of
 * the branch they choose.
 *
 *     begin ─► step (ST_AGAIN) … ─► step: ST_OK or an error; the answer is complete ─► fini
 *
 * State and request are borrowed until the end; the state must stay readable. One thread.
 */
struct txn_reading {
    const struct range_state *state;
    const struct pb_txn_request *request;
    struct arena *arena;
    struct txn_branch branch; /* the branch that is run, once `chosen` */
    bool chosen, succeeded;
    bool open;   /* walk, or range once chosen, is in progress */
    bool found;  /* the current compare's range has keys */
    size_t next; /* index of the compare, or of the range once chosen */
    struct kv_answer *answers;
    union {
        struct range_walk walk;
        struct range range;
    };
};

void txn_reading_begin(struct txn_reading *reading, const struct range_state *state,
                       const struct pb_txn_request *request, struct arena *arena);
/*
 * Examines about this many keys, where each kilobyte compared or verified counts as one, and
 * subtracts them from *keys. ST_AGAIN: there is more to do.
 */
MUST_CHECK
enum status txn_reading_step(struct txn_reading *reading, size_t *keys,
                             struct kv_answer *ret_answer);
void txn_reading_fini(struct txn_reading *reading);

#endif
