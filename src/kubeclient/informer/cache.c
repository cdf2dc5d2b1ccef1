#include "kubeclient/informer/cache.h"

/* -- Versions -- */

static bool is_number(struct slice text)
{
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] < '0' || text.ptr[i] > '9')
            return false;
    }
    return text.len > 0;
}

static struct slice without_zeros(struct slice number)
{
    size_t zeros = 0;
    while (zeros + 1 < number.len && number.ptr[zeros] == '0')
        zeros++;
    return slice_sub(number, zeros, number.len - zeros);
}

int version_compare(struct slice arrived, struct slice known)
{
    if (!is_number(arrived) || !is_number(known))
        return arrived.len && slice_equal(arrived, known) ? 0 : 1;
    arrived = without_zeros(arrived);
    known = without_zeros(known);
    if (arrived.len != known.len)
        return arrived.len < known.len ? -1 : 1;
    return memcmp(arrived.ptr, known.ptr, arrived.len);
}

/* -- Life -- */

void cache_init(struct cache *cache, uint64_t seed,
                void (*on_change)(void *ctx, const struct cache_change *change), void *ctx)
{
    *cache = (struct cache){.on_change = on_change, .ctx = ctx};
    indexer_init(&cache->indexer, seed);
}

void cache_fini(struct cache *cache)
{
    indexer_fini(&cache->indexer);
}

/* -- Changes -- */

static enum status reserve(struct cache *cache)
{
    return cache->reserve ? cache->reserve(cache->ctx) : ST_OK;
}

static void report(struct cache *cache, struct cache_change change)
{
    change.in_list = cache->in_list;
    cache->on_change(cache->ctx, &change);
}

/* Bytes of the object if it is part of the list under way. */
static size_t listed_bytes_of(const struct cache *cache, const struct vigil_kube_object *object)
{
    bool listed = object && cache->in_list && object_mark(object) == cache->list;
    return listed ? object_sent(object).len : 0;
}

/* What a list will remove does not count, but there is room only for as much again. */
static bool exceeds(const struct cache *cache, const struct vigil_kube_object *object,
                    const struct vigil_kube_object *old)
{
    size_t most = cache->bytes_max, more = object_sent(object).len;
    size_t all = cache->indexer.json_bytes - (old ? object_sent(old).len : 0) + more;
    if (most == 0 || all <= most)
        return false;
    size_t listed = cache->listed_bytes - listed_bytes_of(cache, old) + more;
    return !cache->in_list || listed > most || all - most > most;
}

static void mark(struct cache *cache, struct vigil_kube_object *object)
{
    cache->listed_bytes -= listed_bytes_of(cache, object);
    object_set_mark(object, cache->list);
    cache->listed_bytes += listed_bytes_of(cache, object);
}

enum status cache_put(struct cache *cache, struct vigil_kube_object *object)
{
    struct vigil_kube_object *old = indexer_get(&cache->indexer, object_key(object));
    int order = old ? version_compare(object_version(object), object_version(old)) : 1;
    if (order == 0 || (order < 0 && !(cache->in_list && cache->most_recent))) {
        mark(cache, old); /* it exists, as it is or newer */
        return ST_OK;
    }
    if (exceeds(cache, object, old))
        return ST_LIMIT;
    TRY(reserve(cache));
    TRY(indexer_put(&cache->indexer, object, &old));
    cache->listed_bytes -= listed_bytes_of(cache, old);
    mark(cache, object);
    report(cache, (struct cache_change){.kind = old ? CACHE_UPDATED : CACHE_ADDED,
                                        .old = old,
                                        .before = old,
                                        .now = object});
    vigil_kube_object_unref(old);
    return ST_OK;
}

enum status cache_remove(struct cache *cache, const struct vigil_kube_object *object)
{
    struct vigil_kube_object *old = indexer_get(&cache->indexer, object_key(object));
    if (!old || version_compare(object_version(object), object_version(old)) < 0)
        return ST_OK;
    TRY(reserve(cache));
    cache->listed_bytes -= listed_bytes_of(cache, old);
    old = indexer_remove(&cache->indexer, object_key(object));
    report(cache, (struct cache_change){.kind = CACHE_REMOVED, .old = object, .before = old});
    vigil_kube_object_unref(old);
    return ST_OK;
}

/* -- Lists -- */

void cache_begin_list(struct cache *cache, bool most_recent)
{
    cache->list++;
    cache->in_list = true;
    cache->listed_bytes = 0;
    cache->most_recent = most_recent;
}

void cache_drop_list(struct cache *cache)
{
    cache->in_list = false;
}

/* The next object that the list does not have. A removal moves others, also to places before it, so
 * each search begins where the last one was found. */
static struct vigil_kube_object *next_unmarked(const struct cache *cache, size_t *at)
{
    struct vigil_kube_object *object;
    while ((object = hash_map_each(&cache->indexer.objects, at)) != NULL) {
        if (object_mark(object) != cache->list)
            return object;
    }
    return NULL;
}

enum status cache_end_list(struct cache *cache)
{
    size_t removed;
    assert(cache->in_list);
    do { /* an object that moved from the end of the table to its beginning is found the next time
          */
        size_t at = 0;
        struct vigil_kube_object *object;
        for (removed = 0; (object = next_unmarked(cache, &at)) != NULL; removed++) {
            TRY(reserve(cache));
            object = indexer_remove(&cache->indexer, object_key(object));
            report(cache, (struct cache_change){.kind = CACHE_REMOVED,
                                                .old = object,
                                                .before = object,
                                                .state_unknown = true});
            vigil_kube_object_unref(object);
            at--; /* another object may have moved here */
        }
    } while (removed > 0);
    cache->in_list = false;
    return ST_OK;
}

void cache_check(const struct cache *cache)
{
    size_t listed = 0;
    const struct vigil_kube_object *object;
    indexer_check(&cache->indexer);
    MAP_FOREACH (object, &cache->indexer.objects)
        listed += listed_bytes_of(cache, object);
    assert(!cache->in_list || listed == cache->listed_bytes);
    assert(!cache->bytes_max || cache->indexer.json_bytes / 2 <= cache->bytes_max);
}
