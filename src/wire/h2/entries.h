/*
 * The tables of RFC 7541: 61 fixed entries, then those that the peer added, newest first. At most
 * 4096 bytes as HPACK counts, which is more than the entries take. Owned by a decoder.
 */
#ifndef VIGIL_WIRE_H2_ENTRIES_H
#define VIGIL_WIRE_H2_ENTRIES_H

#include "wire/h2/headers.h"

enum {
    HPACK_TABLE_BYTES = 4096, /* SETTINGS_HEADER_TABLE_SIZE, left at its default */
    HPACK_ENTRY_OVERHEAD = 32,
};

struct hpack_entry;

struct hpack_entries {
    struct hpack_entry **ring; /* the capacity is a power of two */
    uint32_t capacity;
    uint32_t newest; /* index in ring of the newest entry */
    uint32_t count;
    uint32_t bytes;     /* as HPACK counts */
    uint32_t bytes_max; /* chosen by the peer, at most HPACK_TABLE_BYTES */
};

void hpack_entries_init(struct hpack_entries *entries);
void hpack_entries_fini(struct hpack_entries *entries);
/* index begins at 1. False: there is no such entry. The field lives until the next add or resize.
 */
bool hpack_entries_get(const struct hpack_entries *entries, size_t index,
                       struct http_field *ret_field);
/* field may point into the table. */
MUST_CHECK
enum status hpack_entries_add(struct hpack_entries *entries, struct http_field field);
void hpack_entries_resize(struct hpack_entries *entries, uint32_t bytes_max);

#endif
