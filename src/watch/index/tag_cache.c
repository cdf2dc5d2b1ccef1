#include "watch/index/tag_cache.h"

#include "base/crc32c.h"
#include "base/xalloc.h"

void tag_cache_fini(struct tag_cache *cache)
{
    free(cache->known);
    cache->known = NULL;
}

uint32_t tag_cache_hash(struct slice tag)
{
    return crc32c(0, tag);
}

/* The slots in which an event may be. Consecutive revisions of one event each use different slots;
 * the events of one revision are scattered. */
static struct tag_cache_entry *places_of(const struct tag_cache *cache, int64_t revision,
                                         size_t event)
{
    uint64_t scattered = (event * UINT64_C(0x9e3779b97f4a7c15)) >> 32;
    uint64_t set = ((uint64_t)revision + scattered) % (TAG_CACHE_ENTRIES / TAG_CACHE_WAYS);
    return &cache->known[set * TAG_CACHE_WAYS];
}

const struct tag_cache_entry *tag_cache_find(const struct tag_cache *cache, int64_t revision,
                                             size_t event)
{
    if (!cache->known)
        return NULL;
    const struct tag_cache_entry *entry = places_of(cache, revision, event);
    for (size_t i = 0; i < TAG_CACHE_WAYS; i++) {
        if (entry[i].revision == revision && entry[i].event == event)
            return &entry[i];
    }
    return NULL;
}

const struct tag_cache_entry *tag_cache_set(struct tag_cache *cache, int64_t revision, size_t event,
                                            const struct slice tags[], size_t count)
{
    assert(revision > 0);
    if (!cache->known)
        cache->known = xcalloc(TAG_CACHE_ENTRIES, sizeof(cache->known[0]));
    struct tag_cache_entry *entry = places_of(cache, revision, event);
    struct tag_cache_entry *oldest = entry;
    for (size_t i = 1; i < TAG_CACHE_WAYS; i++)
        oldest = entry[i].revision < oldest->revision ? &entry[i] : oldest;
    entry = oldest;
    *entry = (struct tag_cache_entry){
        .revision = revision, .event = (uint32_t)event, .count = (uint32_t)count};
    for (size_t i = 0; i < count && i < TAG_CACHE_TAGS; i++)
        entry->hashes[i] = tag_cache_hash(tags[i]);
    return entry;
}

bool tag_cache_entry_has(const struct tag_cache_entry *entry, uint32_t hash)
{
    if (entry->count > TAG_CACHE_TAGS)
        return true;
    for (uint32_t i = 0; i < entry->count; i++) {
        if (entry->hashes[i] == hash)
            return true;
    }
    return false;
}
