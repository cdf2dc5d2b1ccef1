/*
 * Repairs a data directory that a start refuses, for `vigil repair`: reports exactly what would be
 * lost, and drops it when the operator accepts that. store/log/repair.h has the rules for
 * the log, store/rebuild.h those for the checkpoint, which is rebuilt in meta/rebuilt and then
 * takes the place of the damaged one; that stays as data.mdb.lost.
 *
 * If versions of the checkpoint, or records that it has, cannot be read, the server would start,
 * but lists, snapshots and checks would fail. Then the store is rewritten without them
 * (store/salvage.h) and takes the place of the damaged one (store/repaired.h).
 *
 * Interrupted anywhere, this leaves a directory that can be repaired again, or that starts.
 *
 * For one thread, with the directory locked.
 */
#ifndef VIGIL_STORE_REPAIR_H
#define VIGIL_STORE_REPAIR_H

#include "base/error.h"
#include "store/backend/backend.h"
#include "store/datadir.h"
#include "store/log/repair.h"
#include "store/rebuild.h"

struct store_repair_options {
    struct fs *fs;
    const char *dir;
    size_t checkpoint_map_bytes;
    bool accept;
    uint64_t salt; /* random, for a store that is rewritten */
    void (*lost)(void *ctx, const struct store_lost *lost);
    void *ctx;
    struct backend *backend; /* instead of the one in dir, for tests; owned from then on */
};

struct store_repair {
    /* Not intact: it was written again or, before that is accepted, nothing else was examined. */
    enum datadir_format format;
    struct log_repair log;
    struct store_rebuild checkpoint; /* REBUILT_NOT: it is not damaged */
    struct error checkpoint_error;   /* what is wrong with it */
    char checkpoint_saved[4200];     /* where the damaged one is kept; "" before that */
    uint64_t lost_versions;
    uint64_t damaged_records; /* that the checkpoint has */
    bool rewrites;            /* the store is rewritten, … */
    bool has_history;         /* … after that is accepted: with its history */
    /* How many of those that are cut off could be read: their keys are named. */
    uint64_t records_read;
    /* range of the records that are cut off; 0: none could be read */
    int64_t first_revision, last_revision;
};

MUST_CHECK
enum status store_repair(const struct store_repair_options *options,
                         struct store_repair *ret_repair, struct error *ret_error);

#endif
