#include "mirror/backfill/event_range.h"

#include "base/xalloc.h"

/* -- Stretches -- */

struct past_stretch *past_stretch_ref(struct past_stretch *stretch)
{
    stretch->refs++;
    return stretch;
}

void past_stretch_unref(struct past_stretch *stretch)
{
    if (--stretch->refs)
        return;
    *stretch->counted -= sizeof(*stretch) + past_run_bytes(&stretch->run);
    past_run_fini(&stretch->run);
    free(stretch);
}

const struct past_revision *past_stretch_seek(const struct past_stretch *stretch, int64_t revision)
{
    size_t at = past_run_seek(&stretch->run, revision);
    return at < stretch->run.revision_count ? &stretch->run.revisions[at] : NULL;
}

/* -- The store -- */

void past_store_init(struct past_store *store)
{
    *store = (struct past_store){.turn = 1};
    list_init(&store->by_use);
}

/* The first stretch that ends behind the revision. */
static size_t store_seek(const struct past_store *store, int64_t revision)
{
    size_t low = 0, high = store->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (store->all[middle]->to <= revision)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void store_remove(struct past_store *store, struct past_stretch *stretch)
{
    size_t at = store_seek(store, stretch->from);
    assert(store->all[at] == stretch);
    memmove(&store->all[at], &store->all[at + 1], (--store->count - at) * sizeof(store->all[0]));
    list_remove(&stretch->by_use);
    if (store->recent == stretch)
        store->recent = NULL;
    past_stretch_unref(stretch);
}

void past_store_clear(struct past_store *store)
{
    while (store->count)
        store_remove(store, store->all[store->count - 1]);
}

void past_store_fini(struct past_store *store)
{
    past_store_clear(store);
    free(TAKE(store->all));
}

static bool contains(const struct past_stretch *stretch, int64_t revision)
{
    return stretch->from <= revision && revision < stretch->to;
}

static void mark_used(struct past_store *store, struct past_stretch *stretch)
{
    if (stretch->used_turn == store->turn)
        return;
    stretch->used_turn = store->turn;
    stretch->used_ns = store->now_ns;
    list_remove(&stretch->by_use);
    list_push_back(&store->by_use, &stretch->by_use);
}

struct past_stretch *past_store_find(struct past_store *store, int64_t revision)
{
    if (!store->recent || !contains(store->recent, revision)) {
        size_t at = store_seek(store, revision);
        if (at == store->count || !contains(store->all[at], revision))
            return NULL;
        store->recent = store->all[at];
    }
    mark_used(store, store->recent);
    return store->recent;
}

int64_t past_store_gap_end(const struct past_store *store, int64_t revision)
{
    size_t at = store_seek(store, revision);
    return at < store->count ? store->all[at]->from : INT64_MAX;
}

void past_store_add(struct past_store *store, int64_t from, int64_t to, struct past_run *run)
{
    size_t at = store_seek(store, from);
    assert(from < to);
    assert(at == store->count || store->all[at]->from >= to);
    struct past_stretch *stretch = xmalloc(sizeof(*stretch));
    *stretch = (struct past_stretch){
        .from = from,
        .to = to,
        .run = *run,
        .refs = 1,
        .counted = &store->bytes,
        .used_turn = store->turn,
        .used_ns = store->now_ns,
    };
    *run = (struct past_run){0};
    store->bytes += sizeof(*stretch) + past_run_bytes(&stretch->run);
    list_push_back(&store->by_use, &stretch->by_use);
    if (store->count == store->capacity) {
        store->capacity = size_max(16, store->capacity * 2);
        store->all = xrealloc(store->all, store->capacity * sizeof(store->all[0]));
    }
    memmove(&store->all[at + 1], &store->all[at], (store->count++ - at) * sizeof(store->all[0]));
    store->all[at] = stretch;
}

/* Those of the last turn stay, too, so that what was fetched for a reader is read before it is
 * dropped, however little memory there is. */
static struct past_stretch *least_used(const struct past_store *store)
{
    if (list_empty(&store->by_use))
        return NULL;
    struct past_stretch *first = LIST_ENTRY(store->by_use.next, struct past_stretch, by_use);
    return first->used_turn + 1 >= store->turn ? NULL : first;
}

void past_store_shrink(struct past_store *store, size_t bytes_max)
{
    struct past_stretch *first;
    while (store->bytes > bytes_max && (first = least_used(store)) != NULL)
        store_remove(store, first);
}

void past_store_drop_idle(struct past_store *store, int64_t before_ns)
{
    struct past_stretch *first;
    while ((first = least_used(store)) != NULL && first->used_ns < before_ns)
        store_remove(store, first);
}

void past_store_turn_end(struct past_store *store, int64_t now_ns)
{
    store->turn++;
    store->now_ns = now_ns;
}

static void stretch_check(const struct past_stretch *stretch)
{
    const struct past_run *run = &stretch->run;
    size_t events = 0;
    int64_t before = stretch->from - 1;
    for (size_t i = 0; i < run->revision_count; i++) {
        assert(run->revisions[i].revision > before);
        assert(run->revisions[i].first == events);
        assert(run->revisions[i].lost == !run->revisions[i].count);
        before = run->revisions[i].revision;
        events += run->revisions[i].count;
    }
    assert(before < stretch->to);
    assert(events == run->event_count);
}

void past_store_check(const struct past_store *store)
{
    int64_t end = INT64_MIN;
    for (size_t i = 0; i < store->count; i++) {
        assert(store->all[i]->from >= end);
        assert(store->all[i]->from < store->all[i]->to);
        end = store->all[i]->to;
        stretch_check(store->all[i]);
    }
    assert(list_length(&store->by_use) == store->count);
}
