#include "base/metric.h"

#include <stdlib.h>
#include <string.h>

struct metric_set {
    unsigned counters;
    _Atomic(struct metric_block *) blocks; /* newest first; only ever grows */
};

enum status metric_set_new(unsigned counters, struct metric_set **ret_set)
{
    assert(counters > 0);
    struct metric_set *set = calloc(1, sizeof(*set));
    if (!set)
        return ST_NOMEM;
    set->counters = counters;
    *ret_set = set;
    return ST_OK;
}

void metric_set_free(struct metric_set *set)
{
    if (!set)
        return;
    struct metric_block *block = atomic_load_explicit(&set->blocks, memory_order_acquire);
    while (block) {
        struct metric_block *next = block->next;
        free(block);
        block = next;
    }
    free(set);
}

enum status metric_set_join(struct metric_set *set, struct metric_block **ret_block)
{
    size_t bytes = sizeof(struct metric_block) + set->counters * sizeof(uint64_t);
    size_t alignment = _Alignof(struct metric_block);
    struct metric_block *block = aligned_alloc(alignment, align_up(bytes, alignment));
    if (!block)
        return ST_NOMEM;
    memset(block, 0, align_up(bytes, alignment));
    block->next = atomic_load_explicit(&set->blocks, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&set->blocks, &block->next, block,
                                                  memory_order_release, memory_order_relaxed))
        continue;
    *ret_block = block;
    return ST_OK;
}

uint64_t metric_sum(const struct metric_set *set, unsigned counter)
{
    assert(counter < set->counters);
    uint64_t sum = 0;
    const struct metric_block *block = atomic_load_explicit(&set->blocks, memory_order_acquire);
    for (; block; block = block->next)
        sum += atomic_load_explicit(&block->values[counter], memory_order_relaxed);
    return sum;
}
