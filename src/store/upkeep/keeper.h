/*
 * What keeps the store in order behind the writer's back, on a thread of its own:
 *
 *   - the next segment of the log, ready before the writer needs it
 *   - the checkpoint: takes over what the log got since the last one, and lets go of versions
 *     that compaction has replaced
 *   - cleaning: full segments of which less than half is alive are copied and dropped
 *
 * Cleaning needs the writer in the middle, to point the index to the copies, some at a time:
 *
 *   keeper_clean_begin ──► relocation ──► keeper_clean_step ──► … ──► done ──► writer: forget
 *                                           │         ▲
 *                                           ▼         │
 *                                     writer: store_relocate
 */
#ifndef VIGIL_STORE_UPKEEP_KEEPER_H
#define VIGIL_STORE_UPKEEP_KEEPER_H

#include "store/log/hold.h"
#include "store/store.h"
#include "store/upkeep/check.h"
#include "store/upkeep/hash.h"

struct keeper;

struct keeper *keeper_new(struct store *store); /* before the store's threads run */
void keeper_free(struct keeper *keeper);
DEFINE_CLEANUP(struct keeper *, keeper_free)

/* On the keeper's own thread, before the others below. */
void keeper_join(struct keeper *keeper);

/* Prepares the next segment if none waits. */
MUST_CHECK
enum status keeper_prepare(struct keeper *keeper);

/* Notes how far the log is durable, if it has grown since: see log_mark. */
MUST_CHECK
enum status keeper_mark(struct keeper *keeper);
bool keeper_is_marked(const struct keeper *keeper);

/* Segments that are no part of the log any more are held (log/hold.h). */
bool keeper_is_held_back(const struct keeper *keeper);

/* How many log records and bytes are not in the checkpoint yet: when to write the next one. */
uint64_t keeper_checkpoint_lag_bytes(struct keeper *keeper);

/*
 * Brings the checkpoint up to the view that is the newest when it begins: in steps, each one
 * transaction of about 1 MiB of pages, after any of which a start finds a whole checkpoint: what a
 * record of the log that is in it in part has added is dropped then. In
 * between the caller may do other things.
 */
void keeper_checkpoint_begin(struct keeper *keeper);
MUST_CHECK
enum status keeper_checkpoint_step(struct keeper *keeper, bool *ret_done);
/* For tests: smaller steps, so that few versions take many. */
void keeper_limit_steps(struct keeper *keeper, size_t transaction_bytes, unsigned trim_versions);
/* Records of the log are still to be taken over; what else there may be is to drop versions. */
bool keeper_checkpoint_lags(const struct keeper *keeper);
/* All of it. */
MUST_CHECK
enum status keeper_checkpoint(struct keeper *keeper);

/*
 * Copies the living part of the segment that needs it most. *ret_relocation is NULL if none does.
 * One at a time. Checkpoints may be written before it ends. A cleaning that a stop has interrupted
 * is gone on with.
 */
MUST_CHECK
enum status keeper_clean_begin(struct keeper *keeper, struct relocation **ret_relocation);
/*
 * Goes on after the writer has relocated what the relocation holds (store_relocate is done): a
 * bounded step, after which it may hold more for the writer. At the end the checkpoint has all of
 * it, the relocation is freed, and *ret_done is true. After a failure the same step may be tried
 * again.
 */
MUST_CHECK
enum status keeper_clean_step(struct keeper *keeper, struct relocation *relocation, bool *ret_done);

/*
 * Defragmenting is cleaning of all segments there are when it begins, from which anything worth it
 * can be taken, damage that nobody needs too: keeper_defragment_end says which those are, then each
 * comes once from keeper_defragment_next, as from keeper_clean_begin; NULL: it is done.
 */
uint64_t keeper_defragment_end(struct keeper *keeper);
MUST_CHECK
enum status keeper_defragment_next(struct keeper *keeper, uint64_t id_end,
                                   struct relocation **ret_relocation);

/* As in store/upkeep/hash.h, over the newest view, which stands in for all its numbers. */
struct keeper_hash {
    uint32_t hash;
    int64_t revision;         /* of the hash */
    int64_t compact_revision; /* of the view */
    int64_t newest;           /* revision of the view */
};
/* at 0: the newest. ST_COMPACTED, ST_FUTURE_REV; newest is set in any case. */
MUST_CHECK
enum status keeper_hash_begin(struct keeper *keeper, int64_t at, struct store_hash *hash,
                              struct keeper_hash *ret_hash);
void keeper_hash_begin_compaction(struct keeper *keeper, int64_t before, int64_t revision,
                                  struct store_hash *hash);
/* ST_AGAIN: there is more. No cleaning may begin before it ends. */
MUST_CHECK
enum status keeper_hash_step(struct keeper *keeper, struct store_hash *hash, size_t bytes,
                             uint32_t *ret_hash);
/* All of it. */
MUST_CHECK
enum status keeper_hash_at(struct keeper *keeper, int64_t at, struct keeper_hash *ret_hash);
MUST_CHECK
enum status keeper_hash_compaction(struct keeper *keeper, int64_t before, int64_t revision,
                                   uint32_t *ret_hash);

/*
 * What a snapshot starts from (store/snapshot.h): the log as it is in the newest view, and all rows
 * as they were then: those of the checkpoint, then those of the log after it, deleted ones too.
 */
struct keeper_base {
    struct log_hold *hold; /* the caller's */
    int64_t revision;
    uint64_t log_index;
};
MUST_CHECK
enum status keeper_base_take(struct keeper *keeper, row_fn row_seen, void *ctx,
                             struct keeper_base *ret_base);

/* A step of a pass over everything that is stored (store/upkeep/check.h). */
MUST_CHECK
enum status keeper_check_step(struct keeper *keeper, struct store_check *check, size_t bytes);

/* Revision of the newest view. */
int64_t keeper_revision(struct keeper *keeper);

/* The checkpoint could not be read back: nothing is written any more. */
bool keeper_is_broken(const struct keeper *keeper);
/* Why the last call failed, for a log line. */
const char *keeper_error_text(const struct keeper *keeper);

#endif
