#include "tier/mirror/sweep.h"

#include "engine/local/mirror/mirror_store.h"
#include "tier/mirror/store_queue.h"

#include <stdlib.h>

struct generation_keys *generation_keys_new(uint64_t number, uint64_t seed, struct usage *usage)
{
    struct generation_keys *keys = malloc(sizeof(*keys));
    if (!keys)
        return NULL;
    *keys = (struct generation_keys){.number = number};
    objects_init(&keys->objects, seed, usage);
    list_init(&keys->in_owner);
    return keys;
}

void generation_keys_free(struct generation_keys *keys)
{
    if (!keys)
        return;
    list_remove(&keys->in_owner);
    if (keys->count)
        --*keys->count;
    objects_fini(&keys->objects);
    free(keys);
}

void sweeper_init(struct sweeper *sweeper, struct engine *engine, struct store_queue *queue)
{
    *sweeper = (struct sweeper){.engine = engine, .queue = queue};
    list_init(&sweeper->all);
}

void sweeper_fini(struct sweeper *sweeper)
{
    struct generation_keys *keys, *following;
    LIST_FOREACH_SAFE (keys, following, &sweeper->all, in_owner)
        generation_keys_free(keys);
}

void sweeper_add(struct sweeper *sweeper, struct generation_keys *keys, unsigned *count)
{
    assert(!keys->count);
    sweeper->usage.held -= objects_usage(&keys->objects);
    keys->count = count;
    ++*count;
    list_remove(&keys->in_owner);
    list_push_back(&sweeper->all, &keys->in_owner);
}

/* The objects stay in the map until the end, so that its order does not change. ST_NOMEM: it is
 * tried again. */
static enum status delete_some(struct sweeper *sweeper, struct generation_keys *generation)
{
    struct slice keys[SWEEP_KEYS];
    const struct known_object *object;
    size_t count = 0, at = generation->at;
    uint64_t replaced = 0;
    while (count < SWEEP_KEYS && (object = hash_map_each(&generation->objects.map, &at))) {
        keys[count++] = known_object_key(object);
        replaced += known_object_usage(object) + USAGE_CHANGE_BYTES;
    }
    if (count)
        TRY(store_queue_delete(sweeper->queue, generation_prefix(generation), keys, count,
                               &sweeper->awaited));
    generation->at = at;
    sweeper->usage.replaced += replaced;
    if (count < SWEEP_KEYS)
        generation_keys_free(generation);
    return ST_OK;
}

void sweeper_continue(struct sweeper *sweeper)
{
    while (!list_empty(&sweeper->all) && !store_queue_is_pressed(sweeper->queue) &&
           local_mirror_revision(sweeper->engine) >= sweeper->awaited) {
        struct generation_keys *next =
            LIST_ENTRY(sweeper->all.next, struct generation_keys, in_owner);
        if (delete_some(sweeper, next) != ST_OK)
            return;
    }
}
