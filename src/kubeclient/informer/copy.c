#include "kubeclient/informer/copy.h"

#include <stdlib.h>

/* -- Changes, with the lock held -- */

static enum status reserve(void *ctx)
{
    struct copy *copy = ctx;
    struct copy_consumer *consumer;
    LIST_FOREACH (consumer, &copy->consumers, in_copy)
        TRY(change_queue_reserve(&consumer->queue));
    return ST_OK;
}

static void on_change(void *ctx, const struct cache_change *change)
{
    struct copy *copy = ctx;
    struct copy_consumer *consumer;
    LIST_FOREACH (consumer, &copy->consumers, in_copy)
        change_queue_add(&consumer->queue, change);
}

/* -- Life -- */

enum status copy_new(struct driver *driver, uint64_t seed, struct copy **ret_copy)
{
    struct copy *copy = calloc(1, sizeof(*copy));
    if (!copy)
        return ST_NOMEM;
    atomic_init(&copy->refs, 1);
    lock_init(&copy->lock);
    lock_condition_init(&copy->changed);
    list_init(&copy->consumers);
    cache_init(&copy->cache, seed, on_change, copy);
    copy->cache.reserve = reserve;
    copy->driver = driver;
    driver_ref(driver);
    *ret_copy = copy;
    return ST_OK;
}

void copy_ref(struct copy *copy)
{
    atomic_fetch_add_explicit(&copy->refs, 1, memory_order_relaxed);
}

void copy_unref(struct copy *copy)
{
    if (atomic_fetch_sub_explicit(&copy->refs, 1, memory_order_acq_rel) > 1)
        return;
    struct driver *driver = copy->driver;
    assert(list_empty(&copy->consumers));
    cache_fini(&copy->cache);
    pthread_cond_destroy(&copy->changed);
    lock_fini(&copy->lock);
    free(copy);
    driver_unref(driver);
}

/* -- The loop's thread -- */

void copy_set_synced(struct copy *copy)
{
    struct copy_consumer *consumer;
    assert(lock_held(&copy->lock));
    if (copy->synced)
        return;
    copy->synced = true;
    LIST_FOREACH (consumer, &copy->consumers, in_copy)
        change_queue_mark_state(&consumer->queue);
    pthread_cond_broadcast(&copy->changed);
}

void copy_publish(struct copy *copy)
{
    struct copy_consumer *consumer;
    LOCK_SCOPE(&copy->lock);
    LIST_FOREACH (consumer, &copy->consumers, in_copy) {
        change_queue_publish(&consumer->queue);
        if (consumer->published)
            consumer->published(consumer);
    }
}

/* -- Consumers -- */

enum status copy_add_consumer(struct copy *copy, struct copy_consumer *consumer)
{
    LOCK_SCOPE(&copy->lock);
    list_init(&consumer->in_copy);
    if (copy->ended)
        return ST_CLOSED;
    const struct vigil_kube_object *object;
    /* The consumer begins with what the copy has already, as if it had just been added. */
    MAP_FOREACH (object, &copy->cache.indexer.objects) {
        struct cache_change change = {.kind = CACHE_ADDED, .now = object, .in_list = true};
        TRY(change_queue_reserve(&consumer->queue));
        change_queue_add(&consumer->queue, &change);
    }
    list_push_back(&copy->consumers, &consumer->in_copy);
    if (copy->synced)
        change_queue_mark_state(&consumer->queue);
    else
        change_queue_publish(&consumer->queue);
    return ST_OK;
}

void copy_remove_consumer(struct copy *copy, struct copy_consumer *consumer)
{
    LOCK_SCOPE(&copy->lock);
    list_remove(&consumer->in_copy);
}

void copy_resync(struct copy *copy, struct copy_consumer *consumer)
{
    const struct vigil_kube_object *object;
    LOCK_SCOPE(&copy->lock);
    if (copy->ended)
        return;
    MAP_FOREACH (object, &copy->cache.indexer.objects) {
        if (change_queue_reserve(&consumer->queue) != ST_OK)
            break; /* without memory, the rest waits for the next resync */
        change_queue_resync(&consumer->queue, object);
    }
    change_queue_publish(&consumer->queue);
}

/* -- The end -- */

void copy_end(struct copy *copy)
{
    struct copy_consumer *consumer;
    LOCK_SCOPE(&copy->lock);
    copy->ended = true;
    LIST_FOREACH (consumer, &copy->consumers, in_copy)
        change_queue_end(&consumer->queue);
    pthread_cond_broadcast(&copy->changed);
}

void copy_clear(struct copy *copy)
{
    lock_take(&copy->lock);
    assert(copy->ended);
    struct cache dropped = copy->cache;
    cache_init(&copy->cache, dropped.indexer.seed, on_change, copy);
    lock_release(&copy->lock);
    cache_fini(&dropped); /* readers do not wait for it */
}

static enum status sync_state(const struct copy *copy)
{
    if (copy->synced)
        return ST_OK;
    return copy->ended ? ST_CLOSED : ST_AGAIN;
}

enum status copy_sync_state(struct copy *copy)
{
    LOCK_SCOPE(&copy->lock);
    return sync_state(copy);
}

enum status copy_wait_synced(struct copy *copy, int64_t until_ns)
{
    enum status status;
    LOCK_SCOPE(&copy->lock);
    while ((status = sync_state(copy)) == ST_AGAIN) {
        if (clock_mono_ns(clock_system()) >= until_ns)
            return ST_TIMEOUT;
        driver_thread_waits(true);
        /* The loop's thread takes the lock meanwhile, and announces each change of the state. */
        if (until_ns == CLOCK_NEVER)
            lock_wait(&copy->lock, &copy->changed);
        else
            lock_wait_until(&copy->lock, &copy->changed, until_ns);
        driver_thread_waits(false);
    }
    return status;
}

/* -- Reading -- */

struct vigil_kube_object *copy_get(struct copy *copy, struct slice key)
{
    LOCK_SCOPE(&copy->lock);
    struct vigil_kube_object *object = indexer_get(&copy->cache.indexer, key);
    return object ? vigil_kube_object_ref(object) : NULL;
}

static enum status take_references(const struct hash_map *objects,
                                   struct vigil_kube_objects *ret_objects)
{
    struct vigil_kube_object *object;
    struct vigil_kube_objects taken = {0};
    if (objects && objects->count) {
        taken.items = malloc(objects->count * sizeof(struct vigil_kube_object *));
        if (!taken.items)
            return ST_NOMEM;
        MAP_FOREACH (object, objects)
            taken.items[taken.count++] = vigil_kube_object_ref(object);
    }
    *ret_objects = taken;
    return ST_OK;
}

enum status copy_list(struct copy *copy, struct vigil_kube_objects *ret_objects)
{
    LOCK_SCOPE(&copy->lock);
    return take_references(&copy->cache.indexer.objects, ret_objects);
}

enum status copy_find(struct copy *copy, const char *index, struct slice value,
                      struct vigil_kube_objects *ret_objects)
{
    LOCK_SCOPE(&copy->lock);
    if (!indexer_has_index(&copy->cache.indexer, index))
        return ST_NOT_FOUND;
    return take_references(indexer_find(&copy->cache.indexer, index, value), ret_objects);
}

void copy_check(struct copy *copy)
{
    struct copy_consumer *consumer;
    LOCK_SCOPE(&copy->lock);
    cache_check(&copy->cache);
    LIST_FOREACH (consumer, &copy->consumers, in_copy)
        change_queue_check(&consumer->queue);
}
