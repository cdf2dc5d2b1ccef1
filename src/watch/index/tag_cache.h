/*
 * The tags of past events, for cursors that read past them: they are computed once and shared.
 * After a restart, many cursors read the same past, each for the few events of its own tag.
 *
 * A table of fixed size by revision and event that holds hashes of tags. A missing entry is
 * computed again; an event that only shares a hash with the tag is recognized by the cursor's
 * owner. One per hub. Only files of src/watch/ include it.
 */
#ifndef VIGIL_WATCH_INDEX_TAG_CACHE_H
#define VIGIL_WATCH_INDEX_TAG_CACHE_H

#include "base/slice.h"

enum {
    TAG_CACHE_ENTRIES = 32768, /* 800 KB per shard that has cursors with tags */
    TAG_CACHE_WAYS = 4,        /* slots in which an event may be */
    TAG_CACHE_TAGS = 2, /* tags of one event; an event with more counts as having every tag */
};

struct tag_cache_entry {
    int64_t revision; /* 0: empty */
    uint32_t event;
    uint32_t count;
    uint32_t hashes[TAG_CACHE_TAGS];
};

struct tag_cache {
    struct tag_cache_entry *known; /* NULL until the first */
};

void tag_cache_fini(struct tag_cache *cache);

uint32_t tag_cache_hash(struct slice tag);

/* NULL: unknown. */
const struct tag_cache_entry *tag_cache_find(const struct tag_cache *cache, int64_t revision,
                                             size_t event);
const struct tag_cache_entry *tag_cache_set(struct tag_cache *cache, int64_t revision, size_t event,
                                            const struct slice tags[], size_t count);
bool tag_cache_entry_has(const struct tag_cache_entry *entry, uint32_t hash);

#endif
