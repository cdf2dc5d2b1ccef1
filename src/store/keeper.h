/*
 * Background maintenance of the store, on its own thread:
 *
 *   - prepares the next segment of the log before the writer needs it
 *   - writes checkpoints: adds the records since the last one, drops compacted versions
 *   - cleans: copies and removes full segments of which less than half is live (upkeep/cleaner.h)
 *
 * A checkpoint has a goal, the view that is newest when it begins. Each step is one transaction:
 *
 *   begin ──► adding records ──► trimming ──► releasing (full disk) ──► sizes ──► done
 *              │  ▲                │  ▲         │  ▲                               │
 *              └──┘                └──┘         └──┘        begin with a new goal ◄┘
 *
 * Cleaning needs the writer, which points the index to the copies, some at a time:
 *
 *   keeper_clean_begin ──► relocation ──► keeper_clean_step ──► … ──► done ──► writer: forget
 *                                           │         ▲
 *                                           ▼         │
 *                                     writer: store_relocate
 */
#ifndef VIGIL_STORE_KEEPER_H
#define VIGIL_STORE_KEEPER_H

#include "store/log/hold.h"
#include "store/store.h"
#include "store/upkeep/check.h"
#include "store/upkeep/hash.h"

struct keeper;

struct keeper *keeper_new(struct store *store); /* before the store's threads run */
void keeper_free(struct keeper *keeper);
DEFINE_CLEANUP(struct keeper *, keeper_free)

/* Called on the keeper's own thread before the functions below. */
void keeper_join(struct keeper *keeper);

/* Prepares the next segment if none waits. */
MUST_CHECK
enum status keeper_prepare(struct keeper *keeper);
/* The same in steps of 1 MiB: see log/prepare.h. */
MUST_CHECK
enum status keeper_prepare_step(struct keeper *keeper);
bool keeper_is_preparing(const struct keeper *keeper);
bool keeper_prepare_lags(const struct keeper *keeper);

/* Records how far the log is durable, if that has changed: see log_mark. */
MUST_CHECK
enum status keeper_mark(struct keeper *keeper);
bool keeper_is_marked(const struct keeper *keeper);

/* Some removed segments still exist because they are held (log/hold.h). */
bool keeper_is_held_back(const struct keeper *keeper);

/* Bytes of the log that are not in the checkpoint yet; decides when to write the next one. */
uint64_t keeper_checkpoint_lag_bytes(struct keeper *keeper);

/*
 * Starts a checkpoint. Steps are transactions of about 1 MiB of pages; a start after any of them
 * finds a complete checkpoint, because it drops the versions of a record that is only partly in it.
 * Between steps the caller may do other work.
 */
void keeper_checkpoint_begin(struct keeper *keeper);
MUST_CHECK
enum status keeper_checkpoint_step(struct keeper *keeper, bool *ret_done);
/* For tests: smaller steps, so that few versions take many. */
void keeper_limit_steps(struct keeper *keeper, size_t transaction_bytes, unsigned trim_versions);
/* Records of the log are still to be added; otherwise there may be versions to drop. */
bool keeper_checkpoint_lags(const struct keeper *keeper);
/* Runs all steps. */
MUST_CHECK
enum status keeper_checkpoint(struct keeper *keeper);

/*
 * Copies the live part of the segment that needs it most; *ret_relocation is NULL if none does. One
 * at a time. Checkpoints may be written before it ends. Continues a cleaning that was interrupted
 * by a stop.
 */
MUST_CHECK
enum status keeper_clean_begin(struct keeper *keeper, struct relocation **ret_relocation);
/*
 * Continues after the writer has relocated the moves (store_relocate is done): a bounded step,
 * after which there may be more moves for the writer. At the end the checkpoint has all of them,
 * the relocation is freed, and *ret_done is true. After a failure the same step may be tried again.
 */
MUST_CHECK
enum status keeper_clean_step(struct keeper *keeper, struct relocation *relocation, bool *ret_done);

/*
 * Defragmenting cleans all segments that exist when it begins and have anything to gain, also by
 * dropping damage that no version needs. keeper_defragment_end limits the segments;
 * keeper_defragment_next returns each once, like keeper_clean_begin, and NULL at the end.
 */
uint64_t keeper_defragment_end(struct keeper *keeper);
MUST_CHECK
enum status keeper_defragment_next(struct keeper *keeper, uint64_t id_end,
                                   struct relocation **ret_relocation);

/* As in store/upkeep/hash.h, over the newest view. */
struct keeper_hash {
    uint32_t hash;
    int64_t revision;         /* revision of the hash */
    int64_t compact_revision; /* compact revision of the view */
    int64_t newest;           /* revision of the view */
};
/* at 0: the newest revision. ST_COMPACTED, ST_FUTURE_REV; `newest` is always set. */
MUST_CHECK
enum status keeper_hash_begin(struct keeper *keeper, int64_t at, struct store_hash *hash,
                              struct keeper_hash *ret_hash);
void keeper_hash_begin_compaction(struct keeper *keeper, int64_t before, int64_t revision,
                                  struct store_hash *hash);
/* ST_AGAIN: there is more. No cleaning may begin before it ends. */
MUST_CHECK
enum status keeper_hash_step(struct keeper *keeper, struct store_hash *hash, size_t bytes,
                             uint32_t *ret_hash);

/*
 * The start of a snapshot (store/snapshot.h): a hold on the log of the newest view. row_seen gets
 * all rows as of that view: those of the checkpoint, then those of later records, deleted ones too.
 */
struct keeper_base {
    struct log_hold *hold; /* owned by the caller */
    int64_t revision;
    uint64_t log_index;
};
MUST_CHECK
enum status keeper_base_take(struct keeper *keeper, row_fn row_seen, void *ctx,
                             struct keeper_base *ret_base);

/* One step of a pass over everything that is stored (store/upkeep/check.h). */
MUST_CHECK
enum status keeper_check_step(struct keeper *keeper, struct store_check *check, size_t bytes);

/* Revision of the newest view. */
int64_t keeper_revision(struct keeper *keeper);

/* The checkpoint could not be read again: nothing is written any more. */
bool keeper_is_broken(const struct keeper *keeper);
/* Why the last call failed, for a log line. */
const char *keeper_error_text(const struct keeper *keeper);

void keeper_check(const struct keeper *keeper); /* for tests, on the keeper's thread */

#endif
