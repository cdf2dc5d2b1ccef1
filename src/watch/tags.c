#include "watch/tags.h"

#include "base/crc32c.h"
#include "base/xalloc.h"

void tags_fini(struct watch_tags *tags)
{
    free(tags->known);
    tags->known = NULL;
}

uint32_t tags_hash(struct slice tag)
{
    return crc32c(0, tag);
}

/* The places that an event may have: revisions follow each other, so of one event each all have
 * another; the events of one revision are scattered. */
static struct tags_of_event *places_of(const struct watch_tags *tags, int64_t revision,
                                       size_t event)
{
    uint64_t scattered = (event * UINT64_C(0x9e3779b97f4a7c15)) >> 32;
    uint64_t set = ((uint64_t)revision + scattered) % (WATCH_TAGS_KNOWN / WATCH_TAGS_WAYS);
    return &tags->known[set * WATCH_TAGS_WAYS];
}

const struct tags_of_event *tags_find(const struct watch_tags *tags, int64_t revision, size_t event)
{
    if (!tags->known)
        return NULL;
    const struct tags_of_event *of = places_of(tags, revision, event);
    for (size_t i = 0; i < WATCH_TAGS_WAYS; i++) {
        if (of[i].revision == revision && of[i].event == event)
            return &of[i];
    }
    return NULL;
}

const struct tags_of_event *tags_set(struct watch_tags *tags, int64_t revision, size_t event,
                                     const struct slice given[], size_t count)
{
    assert(revision > 0);
    if (!tags->known)
        tags->known = xcalloc(WATCH_TAGS_KNOWN, sizeof(tags->known[0]));
    struct tags_of_event *of = places_of(tags, revision, event);
    struct tags_of_event *oldest = of;
    for (size_t i = 1; i < WATCH_TAGS_WAYS; i++)
        oldest = of[i].revision < oldest->revision ? &of[i] : oldest;
    of = oldest;
    *of = (struct tags_of_event){
        .revision = revision, .event = (uint32_t)event, .count = (uint32_t)count};
    for (size_t i = 0; i < count && i < WATCH_TAGS_EACH; i++)
        of->hashes[i] = tags_hash(given[i]);
    return of;
}

bool tags_have(const struct tags_of_event *of, uint32_t hash)
{
    if (of->count > WATCH_TAGS_EACH)
        return true;
    for (uint32_t i = 0; i < of->count; i++) {
        if (of->hashes[i] == hash)
            return true;
    }
    return false;
}
