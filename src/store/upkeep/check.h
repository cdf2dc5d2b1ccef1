/*
 * A pass over everything that is stored: every record of the log is held to its checksum, and every
 * version that the index knows to what lies where it says: the same key, revisions and lease. The
 * index is what answers and watches are made from, so this compares the cache with the store.
 *
 * It goes a bounded number of bytes a step and holds nothing between steps, so that it may take as
 * long as it likes. One thread, on which the state is readable while a step runs.
 */
#ifndef VIGIL_STORE_UPKEEP_CHECK_H
#define VIGIL_STORE_UPKEEP_CHECK_H

#include "store/view.h"

/* Something is not as it should be. */
struct store_check_damage {
    const char *what;
    uint64_t segment_id, offset;
    struct slice key; /* empty where it is not known: of a record of the log */
};
typedef void (*store_check_fn)(void *ctx, const struct store_check_damage *damage);

struct store_check_counts {
    uint64_t records, bad_records;
    uint64_t versions, bad_versions;
};

struct store_check;

/* Told of each damage, in the order it is met. Aborts without memory. */
struct store_check *store_check_new(store_check_fn fn, void *ctx);
void store_check_free(struct store_check *check); /* accepts NULL */
DEFINE_CLEANUP(struct store_check *, store_check_free)

/* Goes on by about so many bytes. ST_AGAIN: there is more. ST_OK: that was the last. */
MUST_CHECK
enum status store_check_step(struct store_check *check, const struct store_view *view,
                             const struct log *log, size_t bytes);

/* Of this pass so far. */
struct store_check_counts store_check_counts(const struct store_check *check);

#endif
