#include "base/metric/metric.h"

#include "base/clock.h"

#include <stdlib.h>
#include <string.h>

struct metric_set {
    unsigned slots;
    _Atomic(struct metric_block *) blocks; /* newest first; none is removed */
};

enum status metric_set_new(unsigned slots, struct metric_set **ret_set)
{
    assert(slots > 0);
    struct metric_set *set = calloc(1, sizeof(*set));
    if (!set)
        return ST_NOMEM;
    set->slots = slots;
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
    size_t bytes = sizeof(struct metric_block) + set->slots * sizeof(uint64_t);
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

uint64_t metric_sum(const struct metric_set *set, unsigned slot)
{
    assert(slot < set->slots);
    uint64_t sum = 0;
    const struct metric_block *block = atomic_load_explicit(&set->blocks, memory_order_acquire);
    for (; block; block = block->next)
        sum += atomic_load_explicit(&block->values[slot], memory_order_relaxed);
    return sum;
}

static unsigned bucket_of(const struct metric_buckets *buckets, int64_t value)
{
    unsigned i = 0;
    while (i < buckets->count && value > buckets->bounds[i])
        i++;
    return i;
}

void metric_observe(struct metric_block *block, unsigned first_slot,
                    const struct metric_buckets *buckets, int64_t value)
{
    assert(value >= 0 && buckets->count <= METRIC_BOUNDS_MAX);
    metric_add(block, first_slot + bucket_of(buckets, value), 1);
    metric_add(block, first_slot + METRIC_SUM_SLOT, (uint64_t)value);
}

void metric_sum_histogram(const struct metric_set *set, unsigned first_slot,
                          uint64_t ret_slots[METRIC_SLOTS])
{
    for (unsigned i = 0; i < METRIC_SLOTS; i++)
        ret_slots[i] = metric_sum(set, first_slot + i);
}

static const int64_t disk_bounds[] = {
    1 * NS_PER_MS,    2 * NS_PER_MS,    4 * NS_PER_MS,    8 * NS_PER_MS,    16 * NS_PER_MS,
    32 * NS_PER_MS,   64 * NS_PER_MS,   128 * NS_PER_MS,  256 * NS_PER_MS,  512 * NS_PER_MS,
    1024 * NS_PER_MS, 2048 * NS_PER_MS, 4096 * NS_PER_MS, 8192 * NS_PER_MS,
};
const struct metric_buckets metric_disk_seconds = {disk_bounds, COUNT_OF(disk_bounds), NS_PER_S};
