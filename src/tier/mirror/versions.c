#include "tier/mirror/versions.h"

#include <assert.h>
#include <stdlib.h>

enum { FIRST_CAPACITY = 16 };

static struct tier_version_entry *entry_at(const struct tier_versions *v, size_t i)
{
    return &v->entries[(v->first + i) % v->capacity];
}

void tier_versions_fini(struct tier_versions *v)
{
    free(v->entries);
    *v = (struct tier_versions){0};
}

/* The entries move to a ring of another size, in order. */
static enum status resize(struct tier_versions *v, size_t capacity)
{
    struct tier_version_entry *entries = malloc(capacity * sizeof(*entries));
    if (!entries)
        return ST_NOMEM;
    for (size_t i = 0; i < v->count; i++)
        entries[i] = *entry_at(v, i);
    free(v->entries);
    v->entries = entries;
    v->first = 0;
    v->capacity = capacity;
    return ST_OK;
}

enum status tier_versions_reserve(struct tier_versions *v)
{
    if (v->count < v->capacity)
        return ST_OK;
    return resize(v, v->capacity ? 2 * v->capacity : FIRST_CAPACITY);
}

enum status tier_versions_add(struct tier_versions *v, uint64_t version, int64_t revision)
{
    struct tier_version_entry *last = v->count ? entry_at(v, v->count - 1) : NULL;
    struct tier_version_entry *before = v->count > 1 ? entry_at(v, v->count - 2) : NULL;
    assert(!last || (version >= last->version && revision >= last->revision));
    if (last && last->version == version)
        return ST_OK;
    /* The last one is not a change of its own either: a quiet resource needs one entry, not one for
     * each bookmark. What begins between the two reads from the change before them. */
    if (before && before->revision == revision) {
        last->version = version;
        return ST_OK;
    }
    TRY(tier_versions_reserve(v));
    v->count++;
    *entry_at(v, v->count - 1) = (struct tier_version_entry){version, revision};
    return ST_OK;
}

/* How many entries have at most this version, or this revision. */
static size_t count_up_to(const struct tier_versions *v, uint64_t version, int64_t revision)
{
    size_t low = 0, high = v->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct tier_version_entry *entry = entry_at(v, middle);
        if (entry->version <= version && entry->revision <= revision)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void tier_versions_drop(struct tier_versions *v, int64_t revision)
{
    size_t older = count_up_to(v, UINT64_MAX, revision);
    if (older < 2)
        return;
    v->first = (v->first + older - 1) % v->capacity;
    v->count -= older - 1;
    if (v->capacity > FIRST_CAPACITY && v->count < v->capacity / 4)
        (void)!resize(v, v->capacity / 2); /* without memory it stays large */
}

bool tier_versions_revision(const struct tier_versions *v, uint64_t version, int64_t *ret_revision)
{
    size_t count = count_up_to(v, version, INT64_MAX);
    if (!count)
        return false;
    *ret_revision = entry_at(v, count - 1)->revision;
    return true;
}

bool tier_versions_version(const struct tier_versions *v, int64_t revision, uint64_t *ret_version)
{
    size_t count = count_up_to(v, UINT64_MAX, revision);
    if (!count)
        return false;
    *ret_version = entry_at(v, count - 1)->version;
    return true;
}

bool tier_versions_change(const struct tier_versions *v, int64_t revision, uint64_t *ret_version)
{
    size_t before = count_up_to(v, UINT64_MAX, revision - 1);
    if (before == v->count || entry_at(v, before)->revision != revision)
        return false;
    *ret_version = entry_at(v, before)->version;
    return true;
}

uint64_t tier_versions_oldest(const struct tier_versions *v)
{
    return v->count ? entry_at(v, 0)->version : 0;
}

uint64_t tier_versions_newest(const struct tier_versions *v)
{
    return v->count ? entry_at(v, v->count - 1)->version : 0;
}
