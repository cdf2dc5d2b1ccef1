/*
 * Hashes of the history: those that clients request, and one for each compaction, of which etcd
 * keeps the last ten. They are computed one at a time, in slices of one to two milliseconds between
 * which the keeper does its other work; those of compactions come first. A request that its caller
 * has given up is answered at once, even in the middle.
 *
 * On the keeper's thread. shard.c limits the number of waiting requests.
 */
#ifndef VIGIL_ENGINE_LOCAL_KEEPER_HASHES_H
#define VIGIL_ENGINE_LOCAL_KEEPER_HASHES_H

#include "engine/local/state/messages.h"
#include "engine/local/state/report.h"
#include "store/upkeep.h"

struct metric_block;

/* The hash of a compaction. */
struct kept_hash {
    int64_t compact_revision, revision;
    uint32_t hash;
};
enum { KEPT_HASHES = 10 };

struct local_hashes {
    const struct local_report *report; /* borrowed, as are the next two */
    struct upkeep *upkeep;
    struct metric_block *counts;
    struct mailbox_chain waiting; /* struct engine_hash */
    /* Compactions to be hashed, oldest first; no more than are kept. */
    struct kept_hash noted[KEPT_HASHES];
    unsigned noted_count;
    bool hashing;
    struct engine_hash *served; /* the request being hashed for; NULL: noted[0] is being hashed */
    struct store_hash hash;
    struct upkeep_hash found;
    int64_t begun_ns;
    struct kept_hash kept[KEPT_HASHES];
    unsigned kept_count; /* ever kept; the newest KEPT_HASHES are in `kept` */
    uint64_t ended;      /* number of hashes that have ended */
};

void local_hashes_init(struct local_hashes *hashes, const struct local_report *report,
                       struct upkeep *upkeep, struct metric_block *counts);

/* A compaction was applied: it is hashed before cleaning drops any of it. */
void local_hashes_note(struct local_hashes *hashes, int64_t before, int64_t revision);
/* Drops the noted compactions; their hashes will not be kept. */
void local_hashes_forget_noted(struct local_hashes *hashes);
void local_hashes_request(struct local_hashes *hashes, struct engine_op *op);

/* Cleaning must not begin, because it would drop versions that are being or will be hashed. */
bool local_hashes_hold_cleaning(const struct local_hashes *hashes);
bool local_hashes_busy(const struct local_hashes *hashes);

/* Computes one slice. Requests begin only if may_begin is set. */
void local_hashes_turn(struct local_hashes *hashes, bool may_begin);
/* Answers all requests, because the engine stops. */
void local_hashes_stop(struct local_hashes *hashes);

#endif
