/*
 * Planning a new checkpoint where the one on the disk is damaged (`vigil repair`). Nothing is
 * changed on the disk. Three ways, the first that is possible:
 *
 *   as it was      what is left of it, put right from the log where the two do not agree, comes to
 *                  the sums that the checkpoint kept of itself: nothing is lost
 *   from the log   the log has every record from the first on: nothing is lost
 *   in part        the newest version of each key, as the log has it. Where the cleaner may have
 *                  dropped a deletion after it, the version counts only if the checkpoint is known
 *                  to have had it; otherwise the key is lost. History before the newest revision is
 *                  compacted, so that no client reads it with gaps; revisions do not go back
 *
 * The last one needs a log without damage: a key whose newest change cannot be read would show an
 * older value. Aborts without memory. For one thread.
 */
#ifndef VIGIL_STORE_REBUILD_H
#define VIGIL_STORE_REBUILD_H

#include "base/error.h"
#include "store/backend/backend.h"
#include "store/log/log.h"

/* A version of a key that is lost. */
struct store_lost {
    struct slice key;
    int64_t revision;
    bool deleted;  /* it is a deletion that is lost */
    bool unsure;   /* read from damaged bytes: the key may be another one */
    bool stays;    /* the key stays and can not be read at this revision */
    bool doubtful; /* the checkpoint could not tell whether the key had been deleted since */
};

enum store_rebuilt { REBUILT_NOT, REBUILT_AS_IT_WAS, REBUILT_FROM_LOG, REBUILT_IN_PART };

struct store_rebuild {
    enum store_rebuilt how;
    uint64_t kept_versions; /* in part: and their keys */
    uint64_t lost_versions; /* newest ones of their keys, which may have been deleted before */
    int64_t revision;       /* in part: of the store, and what it is compacted to */
    uint64_t rows;          /* in part: leases, users, roles, alarms … that were found */
    uint64_t lost_rows;     /* as far as the checkpoint could tell */
    bool rows_unsure;       /* they could not be verified, and more may be lost */
    bool identity_lost;     /* the ids of cluster and member, and how often it was started */
};

struct store_rebuild_options {
    const char *meta_dir;
    struct log_options log;
    void (*lost)(void *ctx, const struct store_lost *lost);
    void *ctx;
};

/* Fills `plan`, which is empty and inside a transaction. ST_DAMAGED when none of it is possible. */
MUST_CHECK
enum status store_rebuild(const struct store_rebuild_options *options, struct backend *plan,
                          struct store_rebuild *ret_rebuild, struct error *ret_error);

#endif
