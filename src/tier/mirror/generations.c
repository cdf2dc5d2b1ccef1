#include "tier/mirror/generations.h"

#include "engine/local/mirror/mirror_store.h"
#include "tier/mirror/arrived.h"
#include "tier/mirror/fence.h"
#include "tier/mirror/store_queue.h"

/* Indexes of head: what an object lacks. */
enum { LACKS_KIND = 1, LACKS_API_VERSION = 2 };

void generations_init(struct tier_generations *g, struct tier_collection *collection,
                      struct store_queue *queue, struct sweeper *sweeper)
{
    *g = (struct tier_generations){.collection = collection, .queue = queue, .sweeper = sweeper};
    list_init(&g->replaced);
}

void generations_fini(struct tier_generations *g)
{
    struct generation_keys *keys, *following;
    generation_keys_free(TAKE(g->loading));
    generation_keys_free(TAKE(g->current));
    LIST_FOREACH_SAFE (keys, following, &g->replaced, in_owner)
        generation_keys_free(keys);
    tier_versions_fini(&g->next.versions);
    for (size_t i = 0; i < COUNT_OF(g->head); i++)
        buf_fini(&g->head[i]);
}

enum status generations_set_kinds(struct tier_generations *g, struct slice kind,
                                  struct slice api_version)
{
    for (unsigned lacks = 1; lacks < COUNT_OF(g->head); lacks++) {
        struct buf *head = &g->head[lacks];
        head->len = 0;
        TRY(buf_append_text(head, "{"));
        if (lacks & LACKS_KIND)
            TRY(buf_append_format(head, "\"kind\":\"%.*s\",", SLICE_ARGS(kind)));
        if (lacks & LACKS_API_VERSION)
            TRY(buf_append_format(head, "\"apiVersion\":\"%.*s\",", SLICE_ARGS(api_version)));
    }
    return ST_OK;
}

static void sweep(struct tier_generations *g, struct generation_keys *keys)
{
    sweeper_add(g->sweeper, keys, &g->sweeps);
}

static bool is_hidden(const struct tier_generations *g)
{
    return g->next.number != 0;
}

/* Those of the newest complete generation. */
static struct tier_versions *versions_of(struct tier_generations *g)
{
    return is_hidden(g) ? &g->next.versions : &g->collection->current.versions;
}

/* -- Putting -- */

/* The object as it arrived, but with its kind and apiVersion. */
static enum status store(struct tier_generations *g, struct generation_keys *keys,
                         struct known_object *object, const struct arrived *arrived,
                         struct slice bytes)
{
    int64_t revision;
    unsigned lacks = (arrived->lacks_kind ? LACKS_KIND : 0) |
                     (arrived->lacks_api_version ? LACKS_API_VERSION : 0);
    struct store_put put = {
        .prefix = generation_prefix(keys),
        .key = arrived->key,
        .value = {bytes},
        .version = arrived->version,
        .create_revision = object->create_revision,
    };
    if (lacks) {
        assert(bytes.ptr[0] == '{');
        put.value[0] = buf_slice(&g->head[lacks]);
        put.value[1] = slice_sub(bytes, 1, bytes.len - 1);
    }
    TRY(store_queue_put(g->queue, &put, &revision));
    if (!object->create_revision)
        object->create_revision = revision;
    objects_resize(&keys->objects, object, put.value[0].len + put.value[1].len);
    return ST_OK;
}

static enum status put(struct tier_generations *g, struct generation_keys *keys,
                       const struct arrived *arrived, struct slice bytes,
                       struct known_object **ret_object)
{
    struct known_object *object = objects_find(&keys->objects, arrived->key);
    bool is_new = !object;
    if (is_new)
        TRY(objects_add(&keys->objects, arrived->key, &object));
    enum status status = store(g, keys, object, arrived, bytes);
    if (status == ST_OK)
        *ret_object = object;
    else if (is_new)
        objects_remove(&keys->objects, object);
    return status;
}

/* -- A state -- */

enum status generations_begin(struct tier_generations *g, uint64_t seed)
{
    generations_drop(g);
    g->loading = generation_keys_new(++g->last_number, seed, &g->sweeper->usage);
    g->loading_newest = 0;
    if (!g->loading)
        return ST_NOMEM;
    collection_prefix(g->collection, g->loading->number, g->loading->prefix);
    return ST_OK;
}

void generations_drop(struct tier_generations *g)
{
    if (g->loading)
        sweep(g, TAKE(g->loading));
}

enum status generations_load(struct tier_generations *g, const struct arrived *arrived,
                             struct slice bytes)
{
    struct known_object *object;
    TRY(put(g, g->loading, arrived, bytes, &object));
    object->version = arrived->version;
    if (arrived->version > g->loading_newest)
        g->loading_newest = arrived->version;
    return ST_OK;
}

enum status generations_unload(struct tier_generations *g, const struct arrived *arrived)
{
    int64_t revision;
    struct generation_keys *keys = g->loading;
    struct known_object *object = objects_find(&keys->objects, arrived->key);
    if (arrived->version > g->loading_newest)
        g->loading_newest = arrived->version;
    if (!object)
        return ST_OK;
    TRY(store_queue_delete(g->queue, generation_prefix(keys), &arrived->key, 1, &revision));
    objects_remove(&keys->objects, object);
    return ST_OK;
}

enum status generations_complete(struct tier_generations *g, uint64_t version)
{
    int64_t revision;
    struct tier_generation next = {.number = g->loading->number};
    TRY(tier_versions_reserve(&next.versions));
    /* A revision of its own, so that also an empty state begins somewhere. */
    enum status status = store_queue_reach(g->queue, &revision);
    if (status == ST_OK)
        status = tier_versions_add(&next.versions, version, revision);
    if (status != ST_OK) {
        tier_versions_fini(&next.versions);
        return status;
    }
    next.began = revision;
    if (version < g->last_version) { /* another history */
        g->void_after = version;
        if (g->void_until < g->last_version)
            g->void_until = g->last_version;
    }
    g->last_version = version;
    tier_versions_fini(&g->next.versions); /* readers have never seen that one */
    g->next = next;
    if (g->current)
        list_push_back(&g->replaced, &g->current->in_owner);
    g->current = TAKE(g->loading);
    g->last_revision = revision;
    return ST_OK;
}

/* -- Changes -- */

static enum status reserve_version(struct tier_generations *g)
{
    LOCK_SCOPE(&g->collection->lock);
    return tier_versions_reserve(versions_of(g));
}

/* The store has not been given the change yet, so that readers find its version when they see it.
 */
static void note_change(struct tier_generations *g, uint64_t version, int64_t revision)
{
    LOCK_SCOPE(&g->collection->lock);
    enum status status = tier_versions_add(versions_of(g), version, revision);
    assert(status == ST_OK); /* reserved */
    (void)status;
    g->last_version = version;
    g->last_revision = revision;
}

enum status generations_put(struct tier_generations *g, const struct arrived *arrived,
                            struct slice bytes, bool creates, struct tier_fence *fence)
{
    struct known_object *object = objects_find(&g->current->objects, arrived->key);
    if (creates != !object)
        return ST_DAMAGED;
    TRY(reserve_version(g));
    TRY(put(g, g->current, arrived, bytes, &object));
    tier_fence_put(fence, object, arrived->version);
    object->version = arrived->version;
    note_change(g, arrived->version, store_queue_revision(g->queue));
    return ST_OK;
}

enum status generations_delete(struct tier_generations *g, const struct arrived *arrived,
                               struct tier_fence *fence)
{
    int64_t revision;
    struct known_object *object = objects_find(&g->current->objects, arrived->key);
    if (!object)
        return ST_DAMAGED;
    TRY(reserve_version(g));
    TRY(store_queue_delete(g->queue, generation_prefix(g->current), &arrived->key, 1, &revision));
    tier_fence_delete(fence, object, arrived->version);
    objects_remove(&g->current->objects, object);
    note_change(g, arrived->version, revision);
    return ST_OK;
}

enum status generations_reach(struct tier_generations *g, uint64_t version)
{
    LOCK_SCOPE(&g->collection->lock);
    if (version <= g->last_version)
        return ST_OK;
    TRY(tier_versions_add(versions_of(g), version, g->last_revision));
    g->last_version = version;
    return ST_OK;
}

/* -- Readers -- */

bool generations_are_visible(const struct tier_generations *g)
{
    return local_mirror_revision(g->collection->engine) >= g->last_revision;
}

/* With the lock held: readers at this revision and later ones must not use the current one. */
static void end_current(struct tier_generations *g, int64_t revision)
{
    struct tier_collection *c = g->collection;
    if (!c->current.number)
        return;
    tier_versions_fini(&c->previous.versions);
    c->previous = c->current;
    c->previous.ended = revision;
    c->current = (struct tier_generation){0};
}

static void sweep_replaced(struct tier_generations *g)
{
    struct generation_keys *keys, *following;
    LIST_FOREACH_SAFE (keys, following, &g->replaced, in_owner)
        sweep(g, keys);
}

bool generations_publish(struct tier_generations *g)
{
    struct tier_collection *c = g->collection;
    if (!is_hidden(g) || local_mirror_revision(c->engine) < g->next.began)
        return false;
    lock_take(&c->lock);
    end_current(g, g->next.began);
    c->current = g->next;
    if (!c->first_generation)
        c->first_generation = g->next.number;
    c->void_after = g->void_after;
    c->void_until = g->void_until;
    lock_release(&c->lock);
    g->next = (struct tier_generation){0};
    sweep_replaced(g);
    return true;
}

void generations_hide(struct tier_generations *g)
{
    /* What is deleted gets later revisions. */
    end_current(g, store_queue_revision(g->queue) + 1);
}

void generations_sweep(struct tier_generations *g)
{
    assert(g->collection->current.number == 0);
    generations_drop(g);
    tier_versions_fini(&g->next.versions);
    g->next = (struct tier_generation){0};
    if (g->current)
        sweep(g, TAKE(g->current));
    sweep_replaced(g);
}

void generations_compact(struct tier_generations *g, int64_t revision)
{
    struct tier_collection *c = g->collection;
    LOCK_SCOPE(&c->lock);
    c->compacted = revision;
    tier_versions_drop(&c->current.versions, revision);
    if (!c->previous.number || c->previous.ended > revision)
        return;
    /* No read of it can continue. */
    tier_versions_fini(&c->previous.versions);
    c->previous = (struct tier_generation){0};
}

uint64_t generations_usage(const struct tier_generations *g)
{
    const struct generation_keys *keys;
    uint64_t bytes = g->loading ? objects_usage(&g->loading->objects) : 0;
    bytes += g->current ? objects_usage(&g->current->objects) : 0;
    LIST_FOREACH (keys, &g->replaced, in_owner)
        bytes += objects_usage(&keys->objects);
    return bytes;
}

void generations_check(const struct tier_generations *g)
{
    if (g->loading)
        objects_check(&g->loading->objects);
    if (g->current)
        objects_check(&g->current->objects);
    assert(!g->next.number || (g->current && g->current->number == g->next.number));
    assert(!g->loading || g->loading->number == g->last_number);
    assert(list_empty(&g->replaced) || is_hidden(g));
}
