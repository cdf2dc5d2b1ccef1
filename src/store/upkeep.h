/*
 * Background maintenance of the store, on its own thread:
 *
 *   - prepares the next segment of the log before the writer needs it
 *   - writes checkpoints: adds the records since the last one, drops compacted versions
 *   - cleans: copies and removes full segments of which less than half is live (upkeep/cleaner.h)
 *
 * A checkpoint has a goal, the view that is newest when it begins. Each step is one transaction:
 *
 *   begin ──► adding records ──► dropping ──► releasing (full disk) ──► sizes ──► done
 *              │  ▲                │  ▲         │  ▲                               │
 *              └──┘                └──┘         └──┘        begin with a new goal ◄┘
 *
 * Cleaning needs the writer, which points the index to the copies, some at a time:
 *
 *   upkeep_clean_begin ──► relocation ──► upkeep_clean_step ──► … ──► done ──► writer: forget
 *                                           │         ▲
 *                                           ▼         │
 *                                     writer: store_relocate
 */
#ifndef VIGIL_STORE_UPKEEP_H
#define VIGIL_STORE_UPKEEP_H

#include "store/log/hold.h"
#include "store/store.h"
#include "store/upkeep/check.h"
#include "store/upkeep/hash.h"

struct upkeep;

struct upkeep *upkeep_new(struct store *store); /* before the store's threads run */
void upkeep_free(struct upkeep *upkeep);
DEFINE_CLEANUP(struct upkeep *, upkeep_free)

/* Called on the keeper's own thread before the functions below. */
void upkeep_join(struct upkeep *upkeep);

/* Prepares the next segment if none waits. */
MUST_CHECK
enum status upkeep_prepare(struct upkeep *upkeep);
/* The same in steps of 1 MiB: see log/prepare.h. */
MUST_CHECK
enum status upkeep_prepare_step(struct upkeep *upkeep);
bool upkeep_is_preparing(const struct upkeep *upkeep);
bool upkeep_prepare_lags(const struct upkeep *upkeep);

/* Records how far the log is durable, if that has changed: see log_mark. */
MUST_CHECK
enum status upkeep_mark(struct upkeep *upkeep);
bool upkeep_is_marked(const struct upkeep *upkeep);

/* Some removed segments still exist because they are held (log/hold.h). */
bool upkeep_is_held_back(const struct upkeep *upkeep);

/* Bytes of the log that are not in the checkpoint yet; decides when to write the next one. */
uint64_t upkeep_checkpoint_lag_bytes(struct upkeep *upkeep);

/*
 * Starts a checkpoint. Steps are transactions of about 1 MiB of pages; a start after any of them
 * finds a complete checkpoint, because it drops the versions of a record that is only partly in it.
 * Between steps the caller may do other work.
 */
void upkeep_checkpoint_begin(struct upkeep *upkeep);
MUST_CHECK
enum status upkeep_checkpoint_step(struct upkeep *upkeep, bool *ret_done);
/* For tests: smaller steps, so that few versions take many. */
void upkeep_limit_steps(struct upkeep *upkeep, size_t transaction_bytes, unsigned drop_versions);
/* Records of the log are still to be added; otherwise there may be versions to drop. */
bool upkeep_checkpoint_lags(const struct upkeep *upkeep);
/* Runs all steps. */
MUST_CHECK
enum status upkeep_checkpoint(struct upkeep *upkeep);

/*
 * Copies the live part of the segment that needs it most; *ret_relocation is NULL if none does. One
 * at a time. Checkpoints may be written before it ends. Continues a cleaning that was interrupted
 * by a stop.
 */
MUST_CHECK
enum status upkeep_clean_begin(struct upkeep *upkeep, struct relocation **ret_relocation);
/*
 * Continues after the writer has relocated the moves (store_relocate is done): a bounded step,
 * after which there may be more moves for the writer. At the end the checkpoint has all of them,
 * the relocation is freed, and *ret_done is true. After a failure the same step may be tried again.
 */
MUST_CHECK
enum status upkeep_clean_step(struct upkeep *upkeep, struct relocation *relocation, bool *ret_done);

/*
 * Defragmenting cleans all segments that exist when it begins and have anything to gain, also by
 * dropping damage that no version needs. upkeep_defragment_end limits the segments;
 * upkeep_defragment_next returns each once, like upkeep_clean_begin, and NULL at the end.
 */
uint64_t upkeep_defragment_end(struct upkeep *upkeep);
MUST_CHECK
enum status upkeep_defragment_next(struct upkeep *upkeep, uint64_t id_end,
                                   struct relocation **ret_relocation);

/* As in store/upkeep/hash.h, over the newest view. */
struct upkeep_hash {
    uint32_t hash;
    int64_t revision;         /* revision of the hash */
    int64_t compact_revision; /* compact revision of the view */
    int64_t newest;           /* revision of the view */
};
/* at 0: the newest revision. ST_COMPACTED, ST_FUTURE_REV; `newest` is always set. */
MUST_CHECK
enum status upkeep_hash_begin(struct upkeep *upkeep, int64_t at, struct store_hash *hash,
                              struct upkeep_hash *ret_hash);
void upkeep_hash_begin_compaction(struct upkeep *upkeep, int64_t before, int64_t revision,
                                  struct store_hash *hash);
/* ST_AGAIN: there is more. No cleaning may begin before it ends. */
MUST_CHECK
enum status upkeep_hash_step(struct upkeep *upkeep, struct store_hash *hash, size_t bytes,
                             uint32_t *ret_hash);

/*
 * The start of a snapshot (store/snapshot.h): a hold on the log of the newest view. row_seen gets
 * all rows as of that view: those of the checkpoint, then those of later records, deleted ones too.
 */
struct upkeep_base {
    struct log_hold *hold; /* owned by the caller */
    int64_t revision;
    uint64_t log_index;
};
MUST_CHECK
enum status upkeep_base_take(struct upkeep *upkeep, row_fn row_seen, void *ctx,
                             struct upkeep_base *ret_base);

/* One step of a pass over everything that is stored (store/upkeep/check.h). */
MUST_CHECK
enum status upkeep_check_step(struct upkeep *upkeep, struct store_check *check, size_t bytes);

/* Revision of the newest view. */
int64_t upkeep_revision(struct upkeep *upkeep);

/* The checkpoint could not be read again: nothing is written any more. */
bool upkeep_is_broken(const struct upkeep *upkeep);
/* Why the last call failed, for a log line. */
const char *upkeep_error_text(const struct upkeep *upkeep);

void upkeep_check(const struct upkeep *upkeep); /* for tests, on the keeper's thread */

#endif
