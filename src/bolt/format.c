#include "bolt/format.h"

#include <stddef.h>

uint64_t bolt_fnv1a(struct slice bytes)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < bytes.len; i++)
        hash = (hash ^ bytes.ptr[i]) * UINT64_C(0x100000001b3);
    return hash;
}

static uint64_t meta_checksum(const struct bolt_meta *meta)
{
    return bolt_fnv1a(slice_of(meta, offsetof(struct bolt_meta, checksum)));
}

void bolt_meta_finish(struct bolt_meta *meta)
{
    meta->magic = BOLT_MAGIC;
    meta->version = BOLT_VERSION;
    meta->checksum = meta_checksum(meta);
}

enum status bolt_meta_check(const struct bolt_meta *meta)
{
    if (meta->magic != BOLT_MAGIC || meta->version != BOLT_VERSION)
        return ST_WRONG_FORMAT;
    if (meta->checksum != meta_checksum(meta))
        return ST_WRONG_FORMAT;
    uint32_t bytes = meta->page_bytes;
    bool is_power_of_two = (bytes & (bytes - 1)) == 0;
    if (bytes < BOLT_PAGE_BYTES_MIN || bytes > BOLT_PAGE_BYTES_MAX || !is_power_of_two)
        return ST_WRONG_FORMAT;
    return ST_OK;
}
