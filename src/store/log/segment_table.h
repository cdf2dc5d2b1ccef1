/*
 * The table that finds a segment by id from any thread without a lock: ids of 30 bits, two levels
 * of 2^15.
 */
#ifndef VIGIL_STORE_LOG_SEGMENT_TABLE_H
#define VIGIL_STORE_LOG_SEGMENT_TABLE_H

#include "store/log/segment.h"

enum { SEGMENT_TABLE_BITS = 15, SEGMENT_TABLE_FANOUT = 1 << SEGMENT_TABLE_BITS };

typedef _Atomic(struct segment *) segment_slot;

struct segment_table {
    _Atomic(segment_slot *) *chunks;
    size_t chunks_end; /* after the last one in use; for writers */
};

MUST_CHECK
enum status segment_table_init(struct segment_table *table);
void segment_table_fini(struct segment_table *table); /* does not free the segments */
/* Writers hold log.lock; any thread reads. NULL removes. */
MUST_CHECK
enum status segment_table_put(struct segment_table *table, uint64_t id, struct segment *segment);

/* NULL when there is none. */
static inline struct segment *segment_table_get(const struct segment_table *table, uint64_t id)
{
    segment_slot *chunk = atomic_load_explicit(
        &table->chunks[(id >> SEGMENT_TABLE_BITS) & (SEGMENT_TABLE_FANOUT - 1)],
        memory_order_acquire);
    if (UNLIKELY(!chunk))
        return NULL;
    return atomic_load_explicit(&chunk[id & (SEGMENT_TABLE_FANOUT - 1)], memory_order_acquire);
}

#endif
