/*
 * Going on with a data directory that a start refuses, for `vigil repair`: says exactly what would
 * be lost, and lets go of it when the operator accepts that (store/log/repair.h has the rules).
 * For one thread, with the directory locked.
 */
#ifndef VIGIL_STORE_REPAIR_H
#define VIGIL_STORE_REPAIR_H

#include "base/error.h"
#include "store/backend/backend.h"
#include "store/log/repair.h"

/* A version of a key that is lost. */
struct store_lost {
    struct slice key;
    int64_t revision;
    bool deleted; /* it is a deletion that is lost */
    bool unsure;  /* read from damaged bytes: the key may be another one */
    bool stays;   /* the key stays and can not be read at this revision */
};

struct store_repair_options {
    struct fs *fs;
    const char *dir;
    size_t checkpoint_map_bytes;
    bool accept;
    void (*lost)(void *ctx, const struct store_lost *lost);
    void *ctx;
    struct backend *backend; /* instead of the one in dir, for tests; owned from then on */
};

struct store_repair {
    struct log_repair log;
    uint64_t lost_versions;
    int64_t first_revision, last_revision; /* of those that are cut off; 0: none could be read */
};

MUST_CHECK
enum status store_repair(const struct store_repair_options *options,
                         struct store_repair *ret_repair, struct error *ret_error);

#endif
