#include "store/index/item_make.h"

struct older_array {
    /* Stamp of the state in which it was made; its locations may change only there. */
    uint64_t stamp;
    uint32_t capacity;
    uint32_t found_at; /* position of the last relocated one; the next is likely to follow it */
    uint64_t locations[];
};

/* Stored after the key of an item with many older versions. */
struct older_ref {
    const uint64_t *first; /* the result of index_item_older */
    struct older_array *array;
};

static bool uses_array(const struct index_item *item)
{
    return item->older_count > INDEX_OLDER_INLINE;
}

static void *item_tail(const struct index_item *item)
{
    return (void *)(uintptr_t)(item->bytes + align_up(item->key_len, 8));
}

static struct older_ref *item_ref(const struct index_item *item)
{
    assert(uses_array(item));
    return item_tail(item);
}

/* An item with its key; the caller fills what follows the key. */
static struct index_item *item_alloc(struct index_memory *memory, struct slice key,
                                     const struct index_version *newest, uint32_t older_count)
{
    assert(key.len <= INDEX_KEY_BYTES_MAX);
    size_t tail = older_count > INDEX_OLDER_INLINE ? sizeof(struct older_ref)
                                                   : older_count * sizeof(uint64_t);
    struct index_item *item = pool_alloc(memory->pool, sizeof(*item) + align_up(key.len, 8) + tail);
    item->newest = *newest;
    item->key_len = (uint32_t)key.len;
    item->older_count = older_count;
    slice_copy(item->bytes, key);
    return item;
}

/* Gives the item a new array with capacity for more than its older_count locations. */
static uint64_t *item_add_array(struct index_memory *memory, struct index_item *item, size_t room)
{
    assert(room >= item->older_count);
    size_t bytes = sizeof(struct older_array) + room * sizeof(uint64_t);
    struct older_array *array = pool_alloc(memory->pool, bytes);
    size_t capacity = (pool_usable_bytes(bytes) - sizeof(*array)) / sizeof(uint64_t);
    assert(capacity <= UINT32_MAX);
    *array = (struct older_array){.stamp = memory->stamp, .capacity = (uint32_t)capacity};
    *item_ref(item) = (struct older_ref){.first = array->locations, .array = array};
    return array->locations;
}

static void copy_locations(uint64_t *to, const uint64_t *from, size_t count)
{
    if (count)
        memcpy(to, from, count * sizeof(*to));
}

struct index_item *item_new(struct index_memory *memory, struct slice key,
                            const struct index_version *newest, const uint64_t *older,
                            uint32_t older_count)
{
    struct index_item *item = item_alloc(memory, key, newest, older_count);
    uint64_t *to = uses_array(item) ? item_add_array(memory, item, older_count) : item_tail(item);
    copy_locations(to, older, older_count);
    return item;
}

struct index_item *item_with_version(struct index_memory *memory, const struct index_item *old,
                                     const struct index_version *version)
{
    uint32_t before = old->older_count;
    assert(before < UINT32_MAX);
    struct index_item *item = item_alloc(memory, index_item_key(old), version, before + 1);
    uint64_t *to;
    if (!uses_array(item)) {
        to = item_tail(item);
        copy_locations(to, index_item_older(old), before);
    } else if (!uses_array(old)) {
        to = item_add_array(memory, item, 2 * INDEX_OLDER_INLINE);
        copy_locations(to, index_item_older(old), before);
    } else {
        struct older_ref *ref = item_ref(old);
        size_t end = (size_t)(ref->first - ref->array->locations) + before;
        if (end < ref->array->capacity) {
            *item_ref(item) = *ref;
            ref->array->locations[end] = old->newest.loc;
            return item;
        }
        to = item_add_array(memory, item, (size_t)before + before / 2);
        copy_locations(to, ref->first, before);
        memory_retire(memory, ref->array);
    }
    to[before] = old->newest.loc;
    return item;
}

struct index_item *item_trimmed(struct index_memory *memory, const struct index_item *old,
                                uint32_t drop)
{
    assert(drop <= old->older_count);
    uint32_t left = old->older_count - drop;
    const uint64_t *older = index_item_older(old) + drop;
    struct index_item *item = item_alloc(memory, index_item_key(old), &old->newest, left);
    if (!uses_array(item)) {
        copy_locations(item_tail(item), older, left);
    } else if (left >= item_ref(old)->array->capacity / 4) {
        *item_ref(item) = (struct older_ref){.first = older, .array = item_ref(old)->array};
        return item;
    } else {
        copy_locations(item_add_array(memory, item, (size_t)left + left / 2), older, left);
    }
    if (uses_array(old))
        memory_retire(memory, item_ref(old)->array);
    return item;
}

/* Position of the location among the older ones, searched from the hint on. SIZE_MAX if absent. */
static size_t older_find(const struct index_item *item, size_t hint, uint64_t location)
{
    const uint64_t *older = index_item_older(item);
    size_t count = item->older_count;
    hint = hint < count ? hint : 0;
    for (size_t i = hint; i < count; i++)
        if (older[i] == location)
            return i;
    for (size_t i = 0; i < hint; i++)
        if (older[i] == location)
            return i;
    return SIZE_MAX;
}

static struct index_item *array_relocated(struct index_memory *memory, struct index_item *old,
                                          uint64_t from, uint64_t to)
{
    struct older_ref *ref = item_ref(old);
    size_t skipped = (size_t)(ref->first - ref->array->locations);
    size_t hint = ref->array->found_at > skipped ? ref->array->found_at - skipped : 0;
    size_t at = older_find(old, hint, from);
    if (at == SIZE_MAX)
        return NULL;
    if (ref->array->stamp == memory->stamp) {
        ref->array->locations[skipped + at] = to;
        ref->array->found_at = (uint32_t)(skipped + at);
        return old;
    }
    uint32_t count = old->older_count;
    struct index_item *item = item_alloc(memory, index_item_key(old), &old->newest, count);
    uint64_t *locations = item_add_array(memory, item, (size_t)count + count / 8);
    copy_locations(locations, ref->first, count);
    locations[at] = to;
    item_ref(item)->array->found_at = (uint32_t)at;
    memory_retire(memory, ref->array);
    return item;
}

struct index_item *item_relocated(struct index_memory *memory, struct index_item *old,
                                  uint64_t from, uint64_t to)
{
    bool newest = old->newest.loc == from;
    if (!newest && uses_array(old))
        return array_relocated(memory, old, from, to);

    size_t at = newest ? SIZE_MAX : older_find(old, 0, from);
    if (!newest && at == SIZE_MAX)
        return NULL;
    uint32_t count = old->older_count;
    struct index_item *item = item_alloc(memory, index_item_key(old), &old->newest, count);
    if (uses_array(old))
        *item_ref(item) = *item_ref(old);
    else
        copy_locations(item_tail(item), index_item_older(old), count);
    if (newest)
        item->newest.loc = to;
    else
        ((uint64_t *)item_tail(item))[at] = to;
    return item;
}

void item_retire_whole(struct index_memory *memory, struct index_item *item)
{
    if (uses_array(item))
        memory_retire(memory, item_ref(item)->array);
    memory_retire(memory, item);
}

void item_free_whole(struct index_memory *memory, struct index_item *item)
{
    if (uses_array(item))
        pool_free_object(memory->pool, item_ref(item)->array);
    pool_free_object(memory->pool, item);
}

size_t item_objects(const struct index_item *item)
{
    return uses_array(item) ? 2 : 1;
}

void item_check(const struct index_item *item)
{
    assert(item->key_len <= INDEX_KEY_BYTES_MAX);
    if (!uses_array(item))
        return;
    const struct older_ref *ref = item_ref(item);
    assert(ref->first >= ref->array->locations);
    size_t skipped = (size_t)(ref->first - ref->array->locations);
    assert(skipped + item->older_count <= ref->array->capacity);
}
