#include "kubeclient/informer/listener.h"

#include "base/clock.h"

#include <stdlib.h>

struct waiting_change {
    struct listener_change change;
    struct vigil_kube_object *seen; /* the state that the consumer saw last; NULL: none */
    struct list in_order;
};

/* -- Changes -- */

static struct vigil_kube_object *ref(const struct vigil_kube_object *object)
{
    return object ? vigil_kube_object_ref(object) : NULL;
}

void listener_change_fini(struct listener_change *change)
{
    vigil_kube_object_unref(TAKE(change->old));
    vigil_kube_object_unref(TAKE(change->now));
}

static struct slice key_of(const void *value)
{
    const struct waiting_change *waiting = value;
    return object_key(waiting->change.now ? waiting->change.now : waiting->change.old);
}

/* Replaces one reference by another. */
static void set(struct vigil_kube_object **place, const struct vigil_kube_object *object)
{
    struct vigil_kube_object *before = *place;
    *place = ref(object);
    vigil_kube_object_unref(before);
}

/* -- Life -- */

enum status listener_init(struct listener *listener, uint64_t seed)
{
    *listener = (struct listener){.over = false};
    TRY(readable_init(&listener->readable));
    lock_init(&listener->lock);
    lock_condition_init(&listener->changed);
    hash_map_init(&listener->waiting, key_of, seed);
    list_init(&listener->order);
    return ST_OK;
}

static void waiting_free(struct listener *listener, struct waiting_change *waiting)
{
    hash_map_remove(&listener->waiting, key_of(waiting));
    list_remove(&waiting->in_order);
    listener_change_fini(&waiting->change);
    vigil_kube_object_unref(waiting->seen);
    free(waiting);
}

static void drop_all(struct listener *listener)
{
    while (!list_empty(&listener->order))
        waiting_free(listener, LIST_ENTRY(listener->order.next, struct waiting_change, in_order));
}

void listener_fini(struct listener *listener)
{
    drop_all(listener);
    hash_map_fini(&listener->waiting);
    pthread_cond_destroy(&listener->changed);
    lock_fini(&listener->lock);
    readable_fini(&listener->readable);
}

static void signal_state(struct listener *listener)
{
    readable_set(&listener->readable, listener->waiting.count > 0 || listener->over);
}

/* -- Adding -- */

static enum status wait_new(struct listener *listener, const struct cache_change *change)
{
    void *replaced;
    struct waiting_change *waiting = calloc(1, sizeof(*waiting));
    if (!waiting)
        return ST_NOMEM;
    waiting->change = (struct listener_change){.kind = change->kind,
                                               .old = ref(change->old),
                                               .now = ref(change->now),
                                               .in_list = change->in_list,
                                               .state_unknown = change->state_unknown};
    waiting->seen = ref(change->before);
    list_init(&waiting->in_order);
    if (hash_map_put(&listener->waiting, waiting, &replaced) != ST_OK) {
        listener_change_fini(&waiting->change);
        vigil_kube_object_unref(waiting->seen);
        free(waiting);
        return ST_NOMEM;
    }
    list_push_back(&listener->order, &waiting->in_order);
    return ST_OK;
}

/* The table is in listener.h. The map keeps hashes and no keys, so another object with the same key
 * may take the place of the one that has its bytes. */
static void join(struct listener *listener, struct waiting_change *waiting,
                 const struct cache_change *change)
{
    struct listener_change *held = &waiting->change;
    if (held->kind == CACHE_ADDED && change->kind == CACHE_REMOVED) {
        waiting_free(listener, waiting);
        return;
    }
    if (change->kind == CACHE_REMOVED) {
        held->kind = CACHE_REMOVED;
        set(&held->old, change->old);
        set(&held->now, NULL);
        held->state_unknown = change->state_unknown;
    } else {
        if (held->kind == CACHE_REMOVED)
            held->kind = CACHE_UPDATED;
        set(&held->old, waiting->seen);
        set(&held->now, change->now);
        held->state_unknown = false;
    }
    /* For the consumer, an object of a list that has changed since is still one of the list. */
    if (held->kind != CACHE_ADDED)
        held->in_list = change->in_list;
}

enum status listener_add(struct listener *listener, const struct cache_change *change)
{
    LOCK_SCOPE(&listener->lock);
    if (listener->over)
        return ST_OK;
    struct slice key = object_key(change->now ? change->now : change->old);
    struct waiting_change *waiting = hash_map_get(&listener->waiting, key);
    if (waiting)
        join(listener, waiting, change);
    else
        TRY(wait_new(listener, change));
    signal_state(listener);
    pthread_cond_signal(&listener->changed);
    return ST_OK;
}

/* -- Taking -- */

static void take_first(struct listener *listener, struct listener_change *ret_change)
{
    struct waiting_change *first =
        LIST_ENTRY(listener->order.next, struct waiting_change, in_order);
    hash_map_remove(&listener->waiting, key_of(first));
    list_remove(&first->in_order);
    *ret_change = first->change;
    vigil_kube_object_unref(first->seen);
    free(first);
    signal_state(listener);
}

enum status listener_take(struct listener *listener, int64_t until_ns,
                          struct listener_change *ret_change)
{
    LOCK_SCOPE(&listener->lock);
    while (list_empty(&listener->order)) {
        if (listener->over)
            return ST_CLOSED;
        if (until_ns == 0 || clock_mono_ns(clock_system()) >= until_ns)
            return ST_TIMEOUT;
        if (until_ns == CLOCK_NEVER)
            lock_wait(&listener->lock, &listener->changed);
        else
            lock_wait_until(&listener->lock, &listener->changed, until_ns);
    }
    take_first(listener, ret_change);
    return ST_OK;
}

void listener_end(struct listener *listener)
{
    LOCK_SCOPE(&listener->lock);
    listener->over = true;
    drop_all(listener);
    signal_state(listener);
    pthread_cond_broadcast(&listener->changed);
}

size_t listener_count(struct listener *listener)
{
    LOCK_SCOPE(&listener->lock);
    return listener->waiting.count;
}

void listener_check(struct listener *listener)
{
    const struct waiting_change *waiting;
    LOCK_SCOPE(&listener->lock);
    hash_map_check(&listener->waiting);
    assert(list_length(&listener->order) == listener->waiting.count);
    assert(listener->readable.is_set == (listener->waiting.count > 0 || listener->over));
    LIST_FOREACH (waiting, &listener->order, in_order) {
        assert((waiting->change.old == NULL) == (waiting->change.kind == CACHE_ADDED));
        assert((waiting->change.now == NULL) == (waiting->change.kind == CACHE_REMOVED));
        assert(hash_map_get(&listener->waiting, key_of(waiting)) == waiting);
    }
}
