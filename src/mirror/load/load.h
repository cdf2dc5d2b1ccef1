/*
 * Takes over a state of the cluster, which comes in the order of the keys: finds what is different
 * in the mirror, and gives it back in the order of revisions.
 *
 *     pages of the cluster ──┐
 *                            ├─ compared ──► different: kept in a file ──► sorted ──► parts
 *     walk of the mirror ────┘
 *
 * For each different key it keeps 16 bytes in memory. A key that is gone becomes a tombstone of the
 * state's revision. A key of the state that is not newer than the mirror and yet not in it, or
 * there with another value or other numbers, proves that the mirror is of another history: two
 * histories may have changed the same key at the same revision.
 *
 * Owned by the follower; its thread.
 */
#ifndef VIGIL_MIRROR_LOAD_LOAD_H
#define VIGIL_MIRROR_LOAD_LOAD_H

#include "base/error.h"
#include "engine/local/mirror/mirror_store.h"

#include <vigil/types.h>

struct load;

/* The keys of the mirror in their order; false at the end. What it returns is valid until the next
 * call. `get` returns everything about the key that was returned last. */
struct load_walk {
    bool (*next)(void *ctx, struct slice *ret_key, int64_t *ret_mod_revision);
    void (*get)(void *ctx, struct change_kv *ret_kv);
    void *ctx;
};

/* The mirror contains everything up to mirrored; the walk is borrowed. ST_IO: there can be no file
 * in the directory. */
MUST_CHECK
enum status load_new(const char *directory, struct load_walk walk, int64_t mirrored,
                     struct load **ret_load, struct error *error);
void load_free(struct load *load); /* accepts NULL */

/* More keys of the state at this revision, which is the same in all calls. ST_MALFORMED: they are
 * out of order, or newer than the revision; ST_INVALID: another history; ST_DISK_FULL; ST_IO. */
MUST_CHECK
enum status load_add(struct load *load, int64_t revision, const vigil_kv *kvs, size_t count);
/* The state is complete. As load_add, and ST_NOMEM. */
MUST_CHECK
enum status load_finish(struct load *load, int64_t revision);

uint64_t load_keys(const struct load *load);      /* keys of the state, so far */
uint64_t load_different(const struct load *load); /* that are put or deleted, so far */

/* Some of the differences. Freed by the caller, before the load. */
struct load_part {
    struct mirror_revision *revisions;
    size_t count;
    struct imported_change *changes;
    bool is_last;
};

/* After load_finish: the next whole revisions, of about this many bytes and at least one. There is
 * always one part, which is empty if nothing is different; then nothing may follow the last. */
void load_take(struct load *load, size_t bytes_max, struct load_part *ret_part);
void load_part_fini(struct load_part *part);

#endif
