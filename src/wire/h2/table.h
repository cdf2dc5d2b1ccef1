/*
 * The open streams of a session by id: a hash table with linear probing. Ids are multiplied first,
 * because with a run of neighbouring ids every removal would walk all of it. An empty table takes
 * at most 2 KB. Owned by the session.
 */
#ifndef VIGIL_WIRE_H2_TABLE_H
#define VIGIL_WIRE_H2_TABLE_H

#include "wire/h2/stream.h"

struct h2_table {
    struct h2_stream **slots; /* NULL where free; at most half are used */
    uint32_t capacity;        /* a power of two, or 0 */
    uint32_t count;
    uint32_t factor; /* odd; distributes ids */
};

void h2_table_fini(struct h2_table *table);
struct h2_stream *h2_table_find(const struct h2_table *table, uint32_t id);
/* Makes room, so that the next h2_table_add succeeds. */
MUST_CHECK
enum status h2_table_reserve(struct h2_table *table);
void h2_table_add(struct h2_table *table, struct h2_stream *stream);
void h2_table_remove(struct h2_table *table, const struct h2_stream *stream);

#endif
