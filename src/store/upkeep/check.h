/*
 * A pass over everything that is stored. It verifies the checksum of every record of the log, and
 * that every location in the index has a change with the key, revisions and lease that the index
 * says. Answers and watch events are made from the index, so this compares the cache with the
 * store.
 *
 * A step examines a bounded number of bytes and pins nothing between steps, so a pass may take any
 * time. Used by one thread, which pins the view during a step.
 */
#ifndef VIGIL_STORE_UPKEEP_CHECK_H
#define VIGIL_STORE_UPKEEP_CHECK_H

#include "store/mvcc/view.h"

/* A record or version that is not as it should be. */
struct store_check_damage {
    const char *what;
    uint64_t segment_id, offset;
    struct slice key; /* empty if unknown: a record of the log */
};
typedef void (*store_check_fn)(void *ctx, const struct store_check_damage *damage);

struct store_check_counts {
    uint64_t records, bad_records;
    uint64_t versions, bad_versions;
};

struct store_check;

/* fn is called for each damage in the order found. Aborts when memory is exhausted. */
struct store_check *store_check_new(store_check_fn fn, void *ctx);
void store_check_free(struct store_check *check); /* accepts NULL */
DEFINE_CLEANUP(struct store_check *, store_check_free)

/* Examines about this many bytes. ST_AGAIN: there is more. ST_OK: the pass has ended. */
MUST_CHECK
enum status store_check_step(struct store_check *check, const struct store_view *view,
                             const struct log *log, size_t bytes);

/* The counts of this pass so far. */
struct store_check_counts store_check_counts(const struct store_check *check);

#endif
