#include "watch/index/range_index.h"

#include "base/xalloc.h"

struct wide_range {
    struct interval_link in_ranges;
    int64_t indexed_from; /* INT64_MAX: its events are not in the hub's index of them */
    struct watch_range range;
};

static struct interval wide_interval(const struct interval_link *link)
{
    const struct watch_range *range = &CONTAINER_OF(link, struct wide_range, in_ranges)->range;
    struct slice end = watch_range_end(range);
    return (struct interval){
        .from = watch_range_key(range), .to = end, .endless = end.len == 1 && end.ptr[0] == 0};
}

static uint64_t range_hash(const void *ctx, const struct chain_link *link)
{
    (void)ctx;
    return CONTAINER_OF(link, struct watch_range, in_keys)->hash;
}

/* The map has no entries: only its hash, with a secret seed, is used. */
static struct slice no_key(const void *value)
{
    (void)value;
    return SLICE_EMPTY;
}

void range_index_init(struct range_index *index, struct pool *pool, uint64_t seed)
{
    *index = (struct range_index){.pool = pool};
    hash_map_init(&index->hasher, no_key, seed);
    interval_tree_init(&index->ranges, wide_interval, seed);
}

void range_index_fini(struct range_index *index)
{
    assert(index->keys.count == 0);
    assert(index->ranges.count == 0);
    chain_table_fini(&index->keys);
    hash_map_fini(&index->hasher);
}

static uint32_t key_hash(const struct range_index *index, struct slice key)
{
    return (uint32_t)hash_map_hash(&index->hasher, key);
}

static struct watch_range *find_hashed(const struct range_index *index, struct slice key,
                                       uint32_t hash)
{
    for (struct chain_link *link = chain_table_chain(&index->keys, hash); link; link = link->next) {
        struct watch_range *range = CONTAINER_OF(link, struct watch_range, in_keys);
        if (range->hash == hash && slice_equal(watch_range_key(range), key))
            return range;
    }
    return NULL;
}

static struct watch_range *find_key(const struct range_index *index, struct slice key)
{
    return index->keys.count ? find_hashed(index, key, key_hash(index, key)) : NULL;
}

enum { FETCH_FROM = 8192 }; /* keys; fewer are in some cache */

void range_index_fetch_bucket(const struct range_index *index, struct slice key)
{
    if (index->keys.count < FETCH_FROM)
        return;
    uint32_t place = chain_table_place(&index->keys, key_hash(index, key));
    __builtin_prefetch(&index->keys.buckets[place]);
}

void range_index_fetch(const struct range_index *index, struct slice key)
{
    if (index->keys.count < FETCH_FROM)
        return;
    const uint8_t *first = (const uint8_t *)chain_table_chain(&index->keys, key_hash(index, key));
    if (!first)
        return;
    __builtin_prefetch(first);
    __builtin_prefetch(first + offsetof(struct watch_range, bytes));
}

static struct watch_range *range_fill(struct watch_range *range, struct slice key, struct slice end)
{
    range->one = NULL;
    range->count = range->capacity = range->catching_up = range->hit = 0;
    range->tag_newest = 0;
    range->key_len = (uint32_t)key.len & INT32_MAX;
    range->wide = end.len != 0;
    slice_copy(range->bytes, key);
    slice_copy(range->bytes + key.len, end);
    return range;
}

/* The single key's range, which is created if it does not exist. */
static struct watch_range *get_key(struct range_index *index, struct slice key)
{
    uint32_t hash = key_hash(index, key);
    struct watch_range *range = find_hashed(index, key, hash);
    if (range)
        return range;
    range = pool_alloc(index->pool, offsetof(struct watch_range, bytes) + key.len);
    range_fill(range, key, SLICE_EMPTY)->hash = hash;
    chain_table_add(&index->keys, &range->in_keys, range_hash, NULL);
    return range;
}

/* The same for a wide range. */
static struct watch_range *get_wide(struct range_index *index, struct slice key, struct slice end)
{
    struct interval interval = {.from = key, .to = end, .endless = end.len == 1 && end.ptr[0] == 0};
    struct interval_link *link = interval_tree_find(&index->ranges, &interval);
    if (link)
        return &CONTAINER_OF(link, struct wide_range, in_ranges)->range;
    struct wide_range *wide =
        pool_alloc(index->pool, offsetof(struct wide_range, range) +
                                    offsetof(struct watch_range, bytes) + key.len + end.len);
    wide->indexed_from = INT64_MAX;
    range_fill(&wide->range, key, end)->end_len = (uint32_t)end.len;
    interval_tree_insert(&index->ranges, &wide->in_ranges);
    return &wide->range;
}

/* Fewer streams read what they need from the history, so that a range that changes often and has
 * few watchers does not replace the entries of others. */
enum { INDEXED_STREAMS_MIN = 8 };

bool watch_range_is_indexed(struct watch_range *range, int64_t revision)
{
    if (!range->wide)
        return false;
    struct wide_range *wide = CONTAINER_OF(range, struct wide_range, range);
    if (wide->indexed_from == INT64_MAX && range->count >= INDEXED_STREAMS_MIN)
        wide->indexed_from = revision;
    return wide->indexed_from <= revision;
}

int64_t watch_range_indexed_from(const struct watch_range *range)
{
    return range->wide ? CONTAINER_OF(range, const struct wide_range, range)->indexed_from
                       : INT64_MAX;
}

static void range_free(struct range_index *index, struct watch_range *range)
{
    assert(range->count == 0);
    if (range->capacity)
        free(range->many);
    if (range->wide) {
        struct wide_range *wide = CONTAINER_OF(range, struct wide_range, range);
        interval_tree_remove(&index->ranges, &wide->in_ranges);
        pool_free_object(index->pool, wide);
    } else {
        chain_table_remove(&index->keys, &range->in_keys, range_hash, NULL);
        pool_free_object(index->pool, range);
    }
}

/* The index of the stream among the range's streams, or where it would be inserted. */
static uint32_t place_of(const struct watch_range *range, const struct watch_stream *stream)
{
    struct watcher *const *streams = watch_range_streams(range);
    uint32_t low = 0, high = range->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if ((uintptr_t)streams[middle]->stream < (uintptr_t)stream)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The pointer to the first watcher of the stream's ring; NULL: it has none on this range. */
static struct watcher **first_of(struct watch_range *range, const struct watch_stream *stream)
{
    uint32_t at = place_of(range, stream);
    struct watcher **streams = range->capacity ? range->many : &range->one;
    return at < range->count && streams[at]->stream == stream ? &streams[at] : NULL;
}

struct watcher *watch_range_first(const struct watch_range *range,
                                  const struct watch_stream *stream)
{
    struct watcher *const *streams = watch_range_streams(range);
    uint32_t at = place_of(range, stream);
    return at < range->count && streams[at]->stream == stream ? streams[at] : NULL;
}

static void add_stream(struct watch_range *range, struct watcher *watcher)
{
    uint32_t at = place_of(range, watcher->stream);
    /* Most ranges are watched by one stream, for which they need no array. */
    if (range->count == 1 && !range->capacity) {
        struct watcher *only = range->one;
        range->many = xmalloc(4 * sizeof(range->many[0]));
        range->many[0] = only;
        range->capacity = 4;
    } else if (range->capacity && range->count == range->capacity) {
        range->capacity *= 2;
        range->many = xrealloc(range->many, range->capacity * sizeof(range->many[0]));
    }
    struct watcher **streams = range->capacity ? range->many : &range->one;
    memmove(&streams[at + 1], &streams[at], (range->count - at) * sizeof(streams[0]));
    streams[at] = watcher;
    range->count++;
}

static void remove_stream(struct watch_range *range, struct watcher **slot)
{
    struct watcher **streams = range->capacity ? range->many : &range->one;
    size_t behind = range->count - 1 - (size_t)(slot - streams);
    memmove(slot, slot + 1, behind * sizeof(slot[0]));
    range->count--;
    if (!range->capacity)
        return;
    if (range->count == 1) {
        /* One is left: the array is not needed any more. */
        struct watcher *only = range->many[0];
        free(range->many);
        range->one = only;
        range->capacity = 0;
    } else if (range->capacity > 4 && range->count < range->capacity / 4) {
        range->capacity /= 2;
        range->many = xrealloc(range->many, range->capacity * sizeof(range->many[0]));
    }
}

static void ring_insert_before(struct watcher *where, struct watcher *watcher)
{
    watcher->next = where;
    watcher->prev = where->prev;
    where->prev->next = watcher;
    where->prev = watcher;
}

static void ring_remove(struct watcher *watcher)
{
    watcher->prev->next = watcher->next;
    watcher->next->prev = watcher->prev;
    watcher->prev = watcher->next = watcher;
}

void range_index_add(struct range_index *index, struct watcher *watcher, struct slice key,
                     struct slice end)
{
    struct watch_range *range = end.len ? get_wide(index, key, end) : get_key(index, key);
    watcher->range = range;
    range->catching_up += watcher->state == WATCHER_CATCHING_UP;
    watcher->prev = watcher->next = watcher;
    struct watcher **first = first_of(range, watcher->stream);
    if (!first) {
        add_stream(range, watcher); /* the first of its stream on this range */
        return;
    }
    /* Before the first one is also behind the last one. Live watchers come first. */
    ring_insert_before(*first, watcher);
    if (watcher->state == WATCHER_LIVE)
        *first = watcher;
}

bool range_index_remove(struct range_index *index, struct watcher *watcher)
{
    struct watch_range *range = watcher->range;
    struct watcher **first = first_of(range, watcher->stream);
    assert(first);
    if (watcher->next == watcher) {
        remove_stream(range, first); /* it was alone in the ring of its stream */
    } else {
        if (*first == watcher)
            *first = watcher->next;
        ring_remove(watcher);
    }
    watcher->range = NULL;
    range->catching_up -= watcher->state == WATCHER_CATCHING_UP;
    if (range->count)
        return false;
    range_free(index, range); /* it has no watchers any more */
    return true;
}

void range_index_promote(struct watcher *watcher)
{
    struct watcher **first = first_of(watcher->range, watcher->stream);
    assert(first);
    assert(watcher->state == WATCHER_LIVE);
    watcher->range->catching_up--;
    if (*first == watcher)
        return;
    ring_remove(watcher);
    ring_insert_before(*first, watcher);
    *first = watcher;
}

struct visit {
    range_index_visit_fn visit;
    void *ctx;
};

static void visit_wide(void *ctx, struct interval_link *link)
{
    struct visit *visit = ctx;
    visit->visit(visit->ctx, &CONTAINER_OF(link, struct wide_range, in_ranges)->range);
}

void range_index_visit(const struct range_index *index, struct slice key,
                       range_index_visit_fn visit, void *ctx)
{
    struct watch_range *range = find_key(index, key);
    if (range)
        visit(ctx, range);
    if (!index->ranges.count)
        return;
    struct visit both = {visit, ctx};
    interval_tree_stab(&index->ranges, key, visit_wide, &both);
}

static size_t range_check(const struct watch_range *range)
{
    size_t watchers = 0, catching_up = 0;
    struct watcher *const *streams = watch_range_streams(range);
    assert(range->count > 0);
    assert(range->capacity == 0 || range->count <= range->capacity);
    for (uint32_t i = 0; i < range->count; i++) {
        assert(i == 0 || (uintptr_t)streams[i - 1]->stream < (uintptr_t)streams[i]->stream);
        const struct watcher *watcher = streams[i];
        bool live = true;
        do {
            assert(watcher->range == range);
            assert(watcher->stream == streams[i]->stream);
            assert(watcher->next->prev == watcher);
            assert(live || watcher->state == WATCHER_CATCHING_UP);
            live = watcher->state == WATCHER_LIVE;
            catching_up += watcher->state == WATCHER_CATCHING_UP;
            watchers++;
            watcher = watcher->next;
        } while (watcher != streams[i]);
    }
    assert(catching_up == range->catching_up);
    return watchers;
}

static size_t check_wide(const struct interval_link *link)
{
    if (!link)
        return 0;
    return check_wide(link->left) + check_wide(link->right) +
           range_check(&CONTAINER_OF(link, struct wide_range, in_ranges)->range);
}

size_t range_index_check(const struct range_index *index)
{
    size_t watchers = check_wide(index->ranges.root);
    interval_tree_check(&index->ranges);
    CHAIN_FOREACH(link, &index->keys)
    {
        const struct watch_range *range = CONTAINER_OF(link, struct watch_range, in_keys);
        assert(find_key(index, watch_range_key(range)) == range);
        watchers += range_check(range);
    }
    return watchers;
}
