/*
 * Counters that are cheap enough for every request: each thread adds to its own block, without a
 * lock or a shared cache line, and readers sum the blocks.
 *
 * A set has a fixed number of slots, named by an enum of its user. A counter takes one slot, a
 * histogram METRIC_SLOTS consecutive ones. Blocks live as long as the set, so that what a thread
 * counted is kept when it ends.
 */
#ifndef VIGIL_BASE_METRIC_METRIC_H
#define VIGIL_BASE_METRIC_METRIC_H

#include "base/status.h"

#include <stdatomic.h>
#include <stdint.h>

struct metric_set;

/* One thread's counters. Only that thread adds. */
struct metric_block {
    struct metric_block *next; /* in its set */
    _Alignas(64) _Atomic uint64_t values[];
};

MUST_CHECK
enum status metric_set_new(unsigned slots, struct metric_set **ret_set);
void metric_set_free(struct metric_set *set);
DEFINE_CLEANUP(struct metric_set *, metric_set_free)

/* A block for the calling thread; once for each thread, at its start. Any thread. */
MUST_CHECK
enum status metric_set_join(struct metric_set *set, struct metric_block **ret_block);

static inline void metric_add(struct metric_block *block, unsigned slot, uint64_t n)
{
    _Atomic uint64_t *value = &block->values[slot];
    atomic_store_explicit(value, atomic_load_explicit(value, memory_order_relaxed) + n,
                          memory_order_relaxed);
}

/* Any thread. Never smaller than at an earlier call. */
uint64_t metric_sum(const struct metric_set *set, unsigned slot);

/* -- Histograms -- */

enum {
    METRIC_BOUNDS_MAX = 24,
    METRIC_SLOTS = METRIC_BOUNDS_MAX + 2, /* one more for larger values, one for the sum */
    METRIC_SUM_SLOT = METRIC_SLOTS - 1,
};

/* Values are integers, such as nanoseconds; the page shows them in larger units. */
struct metric_buckets {
    const int64_t *bounds; /* a value equal to a bound is within it */
    unsigned count;
    int64_t per_unit; /* 1e9 for nanoseconds shown in seconds */
};

/* The value must not be negative. */
void metric_observe(struct metric_block *block, unsigned first_slot,
                    const struct metric_buckets *buckets, int64_t value);

/* The slots of one histogram, summed over the blocks; not cumulative. */
void metric_sum_histogram(const struct metric_set *set, unsigned first_slot,
                          uint64_t ret_slots[METRIC_SLOTS]);

/* etcd's buckets for everything that waits for a disk: 1 ms to 8 s, doubling. */
extern const struct metric_buckets metric_disk_seconds;

#endif
