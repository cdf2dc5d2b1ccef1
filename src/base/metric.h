/*
 * Numbers that count up, cheap enough for every request: each thread adds to a block of its own,
 * without a lock or a shared cache line, and who reads sums the blocks.
 *
 * A set has a fixed number of counters, named by an enum of its user. Blocks live as long as the
 * set, so that what a thread counted stays when it ends.
 */
#ifndef VIGIL_BASE_METRIC_H
#define VIGIL_BASE_METRIC_H

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
enum status metric_set_new(unsigned counters, struct metric_set **ret_set);
void metric_set_free(struct metric_set *set);
DEFINE_CLEANUP(struct metric_set *, metric_set_free)

/* A block for the calling thread; once for each thread, at its start. Any thread may ask. */
MUST_CHECK
enum status metric_set_join(struct metric_set *set, struct metric_block **ret_block);

static inline void metric_add(struct metric_block *block, unsigned counter, uint64_t n)
{
    _Atomic uint64_t *value = &block->values[counter];
    atomic_store_explicit(value, atomic_load_explicit(value, memory_order_relaxed) + n,
                          memory_order_relaxed);
}

/* Any thread. Never less than it was at an earlier call. */
uint64_t metric_sum(const struct metric_set *set, unsigned counter);

#endif
