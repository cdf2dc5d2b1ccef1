/*
 * Plans a new checkpoint when the one on the disk is damaged (`vigil repair`). Nothing is changed
 * on the disk. There are three ways; the first possible one is used:
 *
 *   as it was      what is left of it, corrected from the log where they differ, matches the sums
 *                  that the checkpoint has of itself: nothing is lost
 *   from the log   the log has every record from the first on: nothing is lost
 *   in part        the newest version of each key in the log. Where the cleaner may have dropped a
 *                  later deletion, the version counts only if the checkpoint is known to have had
 *                  it; otherwise the key is lost. History before the newest revision is compacted,
 *                  so that no client reads it with gaps; revisions do not decrease
 *
 * The last way needs a log without damage: a key whose newest change cannot be read would have an
 * older value. To salvage (store/salvage.h), it reads what it can of a damaged log, and reports
 * which records are lost. Aborts when memory is exhausted. For one thread.
 */
#ifndef VIGIL_STORE_REBUILD_H
#define VIGIL_STORE_REBUILD_H

#include "base/error.h"
#include "store/backend/backend.h"
#include "store/log/survey.h"
#include "store/record/change_scan.h"

enum store_rebuilt { REBUILT_NOT, REBUILT_AS_IT_WAS, REBUILT_FROM_LOG, REBUILT_IN_PART };

struct store_rebuild {
    enum store_rebuilt how;
    uint64_t kept_versions; /* in part: the number of keys kept */
    uint64_t lost_versions; /* newest versions of their keys, which may have been deleted before */
    int64_t revision;       /* in part: of the store, which is compacted to it */
    uint64_t rows;          /* in part: leases, users, roles, alarms … that were found */
    uint64_t lost_rows;     /* as far as is known from the checkpoint */
    bool rows_unsure;       /* they could not be verified, and more may be lost */
    bool identity_lost;     /* the ids of cluster and member, and the number of starts */
};

struct store_rebuild_options {
    const char *meta_dir;
    struct log_options log;
    void (*lost)(void *ctx, const struct store_lost *lost);
    void (*gap)(void *ctx, const struct store_gap *gap); /* only to salvage */
    void *ctx;
    const struct log_survey *salvages; /* survey of the log, made to salvage. NULL: a repair */
};

/*
 * Fills `plan`, which is empty and in a transaction. ST_DAMAGED when none of the ways is possible.
 */
MUST_CHECK
enum status store_rebuild(const struct store_rebuild_options *options, struct backend *plan,
                          struct store_rebuild *ret_rebuild, struct error *ret_error);

#endif
