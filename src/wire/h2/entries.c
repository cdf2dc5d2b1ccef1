#include "wire/h2/entries.h"

#include <stdlib.h>

struct hpack_entry {
    uint16_t name_len;
    uint16_t value_len;
    uint8_t bytes[];
};

#define ENTRY(name, value)                  \
    {                                       \
        SLICE_TEXT(name), SLICE_TEXT(value) \
    }
#define SLICE_TEXT(text)                          \
    {                                             \
        (const uint8_t *)(text), sizeof(text) - 1 \
    }

static const struct http_field fixed[] = {
    ENTRY(":authority", ""),
    ENTRY(":method", "GET"),
    ENTRY(":method", "POST"),
    ENTRY(":path", "/"),
    ENTRY(":path", "/index.html"),
    ENTRY(":scheme", "http"),
    ENTRY(":scheme", "https"),
    ENTRY(":status", "200"),
    ENTRY(":status", "204"),
    ENTRY(":status", "206"),
    ENTRY(":status", "304"),
    ENTRY(":status", "400"),
    ENTRY(":status", "404"),
    ENTRY(":status", "500"),
    ENTRY("accept-charset", ""),
    ENTRY("accept-encoding", "gzip, deflate"),
    ENTRY("accept-language", ""),
    ENTRY("accept-ranges", ""),
    ENTRY("accept", ""),
    ENTRY("access-control-allow-origin", ""),
    ENTRY("age", ""),
    ENTRY("allow", ""),
    ENTRY("authorization", ""),
    ENTRY("cache-control", ""),
    ENTRY("content-disposition", ""),
    ENTRY("content-encoding", ""),
    ENTRY("content-language", ""),
    ENTRY("content-length", ""),
    ENTRY("content-location", ""),
    ENTRY("content-range", ""),
    ENTRY("content-type", ""),
    ENTRY("cookie", ""),
    ENTRY("date", ""),
    ENTRY("etag", ""),
    ENTRY("expect", ""),
    ENTRY("expires", ""),
    ENTRY("from", ""),
    ENTRY("host", ""),
    ENTRY("if-match", ""),
    ENTRY("if-modified-since", ""),
    ENTRY("if-none-match", ""),
    ENTRY("if-range", ""),
    ENTRY("if-unmodified-since", ""),
    ENTRY("last-modified", ""),
    ENTRY("link", ""),
    ENTRY("location", ""),
    ENTRY("max-forwards", ""),
    ENTRY("proxy-authenticate", ""),
    ENTRY("proxy-authorization", ""),
    ENTRY("range", ""),
    ENTRY("referer", ""),
    ENTRY("refresh", ""),
    ENTRY("retry-after", ""),
    ENTRY("server", ""),
    ENTRY("set-cookie", ""),
    ENTRY("strict-transport-security", ""),
    ENTRY("transfer-encoding", ""),
    ENTRY("user-agent", ""),
    ENTRY("vary", ""),
    ENTRY("via", ""),
    ENTRY("www-authenticate", ""),
};

void hpack_entries_init(struct hpack_entries *entries)
{
    *entries = (struct hpack_entries){.bytes_max = HPACK_TABLE_BYTES};
}

static uint32_t place_of(const struct hpack_entries *entries, uint32_t age)
{
    return (entries->newest - age) & (entries->capacity - 1);
}

static uint32_t cost_of(const struct hpack_entry *entry)
{
    return (uint32_t)entry->name_len + entry->value_len + HPACK_ENTRY_OVERHEAD;
}

static void evict_to(struct hpack_entries *entries, uint32_t bytes)
{
    while (entries->bytes > bytes) {
        assert(entries->count > 0);
        struct hpack_entry **oldest = &entries->ring[place_of(entries, entries->count - 1)];
        entries->bytes -= cost_of(*oldest);
        entries->count--;
        free(TAKE(*oldest));
    }
}

void hpack_entries_fini(struct hpack_entries *entries)
{
    evict_to(entries, 0);
    free(entries->ring);
    *entries = (struct hpack_entries){0};
}

bool hpack_entries_get(const struct hpack_entries *entries, size_t index,
                       struct http_field *ret_field)
{
    /* Indexes begin with the fixed table and continue with the newest entry (RFC 7541
     * section 2.3.3). */
    if (index == 0 || index > COUNT_OF(fixed) + entries->count)
        return false;
    if (index <= COUNT_OF(fixed)) {
        *ret_field = fixed[index - 1];
        return true;
    }
    uint32_t age = (uint32_t)(index - COUNT_OF(fixed) - 1);
    const struct hpack_entry *entry = entries->ring[place_of(entries, age)];
    ret_field->name = slice_of(entry->bytes, entry->name_len);
    ret_field->value = slice_of(entry->bytes + entry->name_len, entry->value_len);
    return true;
}

static enum status grow(struct hpack_entries *entries)
{
    uint32_t capacity = entries->capacity ? entries->capacity * 2 : 8;
    struct hpack_entry **ring = calloc(capacity, sizeof(struct hpack_entry *));
    if (!ring)
        return ST_NOMEM;
    for (uint32_t i = 0; i < entries->count; i++)
        ring[i] = entries->ring[place_of(entries, entries->count - 1 - i)];
    free(entries->ring);
    entries->ring = ring;
    entries->capacity = capacity;
    entries->newest =
        entries->count - 1; /* the unsigned wrap-around for an empty table is intended */
    return ST_OK;
}

enum status hpack_entries_add(struct hpack_entries *entries, struct http_field field)
{
    size_t cost = field.name.len + field.value.len + HPACK_ENTRY_OVERHEAD;
    if (cost > entries->bytes_max) { /* not an error: it empties the table (RFC 7541 section 4.4) */
        evict_to(entries, 0);
        return ST_OK;
    }
    struct hpack_entry *entry = malloc(sizeof(*entry) + field.name.len + field.value.len);
    if (!entry)
        return ST_NOMEM;
    entry->name_len = (uint16_t)field.name.len;
    entry->value_len = (uint16_t)field.value.len;
    slice_copy(entry->bytes, field.name);
    slice_copy(entry->bytes + field.name.len, field.value);
    evict_to(entries, entries->bytes_max - (uint32_t)cost);
    if (entries->count == entries->capacity && grow(entries) != ST_OK) {
        free(entry);
        return ST_NOMEM;
    }
    entries->newest++;
    entries->ring[place_of(entries, 0)] = entry;
    entries->count++;
    entries->bytes += (uint32_t)cost;
    return ST_OK;
}

void hpack_entries_resize(struct hpack_entries *entries, uint32_t bytes_max)
{
    assert(bytes_max <= HPACK_TABLE_BYTES);
    entries->bytes_max = bytes_max;
    evict_to(entries, bytes_max);
}
