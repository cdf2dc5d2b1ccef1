#include "wire/h2/table.h"

#include <stdlib.h>

enum { CAPACITY_MIN = 8, CAPACITY_KEPT = 256 };

void h2_table_fini(struct h2_table *table)
{
    free(table->slots);
    *table = (struct h2_table){0};
}

/* Multiplies with an odd factor that the peer does not know, so that neighbouring ids do not form
 * long runs and colliding ids cannot be chosen. */
static uint32_t home_of(const struct h2_table *table, uint32_t id)
{
    uint32_t spread = (id >> 1) * table->factor;
    return (spread >> 8 ^ spread >> 20) & (table->capacity - 1);
}

/* The address of the slots differs from process to process and from table to table. */
static uint32_t factor_of(const void *slots)
{
    uint64_t address = (uintptr_t)slots;
    return (uint32_t)((address >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 32) | 1;
}

static uint32_t next_of(const struct h2_table *table, uint32_t slot)
{
    return (slot + 1) & (table->capacity - 1);
}

struct h2_stream *h2_table_find(const struct h2_table *table, uint32_t id)
{
    if (table->count == 0)
        return NULL;
    uint32_t slot = home_of(table, id);
    while (table->slots[slot] && table->slots[slot]->id != id)
        slot = next_of(table, slot);
    return table->slots[slot];
}

static void place(struct h2_table *table, struct h2_stream *stream)
{
    uint32_t slot = home_of(table, stream->id);
    while (table->slots[slot])
        slot = next_of(table, slot);
    table->slots[slot] = stream;
}

static enum status resize(struct h2_table *table, uint32_t capacity)
{
    struct h2_table other = {.capacity = capacity, .count = table->count};
    other.slots = calloc(capacity, sizeof(struct h2_stream *));
    if (!other.slots)
        return ST_NOMEM;
    other.factor = factor_of(other.slots);
    for (uint32_t i = 0; i < table->capacity; i++) {
        if (table->slots[i])
            place(&other, table->slots[i]);
    }
    free(table->slots);
    *table = other;
    return ST_OK;
}

enum status h2_table_reserve(struct h2_table *table)
{
    if (LIKELY(table->count < table->capacity / 2))
        return ST_OK;
    return resize(table, table->capacity ? table->capacity * 2 : CAPACITY_MIN);
}

void h2_table_add(struct h2_table *table, struct h2_stream *stream)
{
    assert(table->count < table->capacity / 2);
    place(table, stream);
    table->count++;
}

void h2_table_remove(struct h2_table *table, const struct h2_stream *stream)
{
    uint32_t hole = home_of(table, stream->id);
    while (table->slots[hole] != stream) {
        assert(table->slots[hole]);
        hole = next_of(table, hole);
    }
    /* Moves later members of the run up, unless the hole is before their home slot. */
    for (uint32_t i = next_of(table, hole); table->slots[i]; i = next_of(table, i)) {
        uint32_t home = home_of(table, table->slots[i]->id);
        uint32_t mask = table->capacity - 1;
        if (((i - home) & mask) < ((i - hole) & mask))
            continue;
        table->slots[hole] = table->slots[i];
        hole = i;
    }
    table->slots[hole] = NULL;
    table->count--;
    if (table->count == 0 && table->capacity > CAPACITY_KEPT &&
        resize(table, CAPACITY_KEPT) != ST_OK)
        h2_table_fini(table);
}
