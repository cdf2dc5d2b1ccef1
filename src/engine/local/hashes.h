/*
 * Hashes of the history: those that clients ask for, and those that compactions leave, of which
 * etcd keeps the last ten. One at a time, in slices of a millisecond or two between which the
 * keeper does its other work; those of compactions come first. A request whose caller has gone away
 * is answered at once, also in the middle.
 *
 * The keeper's. The number of requests that wait is bounded where they come in (shard.c).
 */
#ifndef VIGIL_ENGINE_LOCAL_HASHES_H
#define VIGIL_ENGINE_LOCAL_HASHES_H

#include "engine/local/job.h"
#include "store/upkeep/keeper.h"

struct engine_local;
struct metric_block;

/* A hash that a compaction left. */
struct kept_hash {
    int64_t compact_revision, revision;
    uint32_t hash;
};
enum { KEPT_HASHES = 10 };

struct local_hashes {
    struct engine_local *engine; /* borrowed, as are the next two */
    struct keeper *keeper;
    struct metric_block *counts;
    struct op_chain waiting; /* struct engine_hash */
    /* Compactions to be hashed, oldest first: more than are kept need not be. */
    struct kept_hash noted[KEPT_HASHES];
    unsigned noted_count;
    bool hashing;
    struct engine_hash *served; /* by the hash under way; NULL: it is of noted[0] */
    struct store_hash hash;
    struct keeper_hash found;
    int64_t begun_ns;
    struct kept_hash kept[KEPT_HASHES];
    unsigned kept_count; /* ever */
    uint64_t ended;      /* hashes */
};

void local_hashes_init(struct local_hashes *hashes, struct engine_local *engine,
                       struct keeper *keeper, struct metric_block *counts);

/* A compaction was applied: to be hashed before anything of it is cleaned. */
void local_hashes_note(struct local_hashes *hashes, int64_t before, int64_t revision);
/* Lets go of those that were noted and not begun: their hashes are not kept. */
void local_hashes_forget_noted(struct local_hashes *hashes);
void local_hashes_ask(struct local_hashes *hashes, struct engine_op *op);

/* No cleaning may begin: it would drop what is to be hashed. */
bool local_hashes_hold_cleaning(const struct local_hashes *hashes);
/* Something is left to do. */
bool local_hashes_busy(const struct local_hashes *hashes);

/* One slice. With may_begin, of a request that has waited as well. */
void local_hashes_turn(struct local_hashes *hashes, bool may_begin);
/* Answers what waits: the engine stops. */
void local_hashes_stop(struct local_hashes *hashes);

#endif
