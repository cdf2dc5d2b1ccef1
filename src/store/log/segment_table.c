#include "store/log/segment_table.h"

#include <stdlib.h>

enum status segment_table_init(struct segment_table *table)
{
    table->chunks = calloc(SEGMENT_TABLE_FANOUT, sizeof(*table->chunks));
    return table->chunks ? ST_OK : ST_NOMEM;
}

void segment_table_fini(struct segment_table *table)
{
    if (!table->chunks)
        return;
    for (size_t i = 0; i < table->chunks_end; i++)
        free(atomic_load_explicit(&table->chunks[i], memory_order_relaxed));
    free(table->chunks);
    table->chunks = NULL;
}

enum status segment_table_put(struct segment_table *table, uint64_t id, struct segment *segment)
{
    assert(id <= SEGMENT_ID_MAX);
    _Atomic(segment_slot *) *slot = &table->chunks[id >> SEGMENT_TABLE_BITS];
    segment_slot *chunk = atomic_load_explicit(slot, memory_order_relaxed);
    if (!chunk) {
        chunk = calloc(SEGMENT_TABLE_FANOUT, sizeof(*chunk));
        if (!chunk)
            return ST_NOMEM;
        atomic_store_explicit(slot, chunk, memory_order_release);
        table->chunks_end = size_max(table->chunks_end, (id >> SEGMENT_TABLE_BITS) + 1);
    }
    atomic_store_explicit(&chunk[id & (SEGMENT_TABLE_FANOUT - 1)], segment, memory_order_release);
    return ST_OK;
}
