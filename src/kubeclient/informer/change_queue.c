#include "kubeclient/informer/change_queue.h"

#include "base/clock.h"

#include <stdlib.h>

enum { INCOMING_MAX = 1024 }; /* so that changes are also joined in a long turn */

struct waiting_change {
    struct queued_change change;
    uint64_t number;      /* counts what was published; grows along the order */
    struct list in_order; /* links change_queue.incoming or change_queue.order */
};

/* -- Changes -- */

static struct vigil_kube_object *ref(const struct vigil_kube_object *object)
{
    return object ? vigil_kube_object_ref(object) : NULL;
}

void queued_change_fini(struct queued_change *change)
{
    vigil_kube_object_unref(TAKE(change->before));
    vigil_kube_object_unref(TAKE(change->object));
}

static struct slice key_of(const void *value)
{
    const struct waiting_change *waiting = value;
    return object_key(waiting->change.object);
}

static void waiting_free(struct waiting_change *waiting)
{
    queued_change_fini(&waiting->change);
    free(waiting);
}

/* -- Life -- */

enum status change_queue_init(struct change_queue *queue, uint64_t seed, bool with_readable)
{
    *queue =
        (struct change_queue){.has_readable = with_readable, .join_count = CHANGES_UNJOINED_MAX};
    if (with_readable)
        TRY(readable_init(&queue->readable));
    lock_init(&queue->lock);
    lock_condition_init(&queue->changed);
    hash_map_init(&queue->waiting, key_of, seed);
    list_init(&queue->incoming);
    list_init(&queue->order);
    return ST_OK;
}

static void drop_all(struct list *changes)
{
    for (struct list *link; (link = list_pop_front(changes));)
        waiting_free(LIST_ENTRY(link, struct waiting_change, in_order));
}

void change_queue_fini(struct change_queue *queue)
{
    drop_all(&queue->incoming);
    drop_all(&queue->order);
    free(queue->spare);
    hash_map_fini(&queue->waiting);
    pthread_cond_destroy(&queue->changed);
    lock_fini(&queue->lock);
    if (queue->has_readable)
        readable_fini(&queue->readable);
}

static void signal_state(struct change_queue *queue)
{
    if (queue->has_readable)
        readable_set(&queue->readable, queue->count > 0 || queue->over);
}

/* -- Adding -- */

enum status change_queue_reserve(struct change_queue *queue)
{
    if (!queue->spare)
        queue->spare = malloc(sizeof(*queue->spare));
    return queue->spare ? ST_OK : ST_NOMEM;
}

static void add(struct change_queue *queue, struct queued_change change)
{
    struct waiting_change *added = TAKE(queue->spare);
    assert(added);
    *added = (struct waiting_change){.change = change};
    list_push_back(&queue->incoming, &added->in_order);
    if (++queue->incoming_count == INCOMING_MAX)
        change_queue_publish(queue);
}

void change_queue_add(struct change_queue *queue, const struct cache_change *change)
{
    add(queue, (struct queued_change){.kind = change->kind,
                                      .before = ref(change->before),
                                      .object = ref(change->now ? change->now : change->old),
                                      .in_list = change->in_list,
                                      .state_unknown = change->state_unknown});
}

void change_queue_resync(struct change_queue *queue, const struct vigil_kube_object *object)
{
    add(queue,
        (struct queued_change){
            .kind = CACHE_UPDATED, .before = ref(object), .object = ref(object), .resync = true});
}

/* -- Joining -- */

static size_t bytes_of(const struct waiting_change *waiting)
{
    return object_sent(waiting->change.object).len;
}

static void unlink_waiting(struct change_queue *queue, struct waiting_change *waiting)
{
    if (queue->waiting.count && hash_map_get(&queue->waiting, key_of(waiting)) == waiting)
        hash_map_remove(&queue->waiting, key_of(waiting));
    list_remove(&waiting->in_order);
    queue->count--;
    queue->bytes -= bytes_of(waiting);
}

static void append(struct change_queue *queue, struct waiting_change *later)
{
    later->number = ++queue->published;
    list_push_back(&queue->order, &later->in_order);
    queue->count++;
    queue->bytes += bytes_of(later);
}

/* Joins the change with one that waits, or lets it wait so that others are joined with it. Without
 * memory for the map it is not found there, and later changes of the object wait behind it. */
static void publish_joined(struct change_queue *queue, struct waiting_change *later)
{
    void *replaced;
    struct waiting_change *held = hash_map_get(&queue->waiting, key_of(later));
    if (held) {
        if (held->change.kind == CACHE_ADDED && later->change.kind == CACHE_REMOVED) {
            /* The consumer never knew of the object. */
            unlink_waiting(queue, held);
            waiting_free(held);
        } else if (!later->change.resync) {
            queue->bytes += bytes_of(later) - bytes_of(held);
            /* The table is in change_queue.h. The map keeps hashes and no keys, so another object
             * with the same key may take the place of the one that has its bytes. */
            struct vigil_kube_object *earlier = held->change.object;
            held->change.object = later->change.object;
            later->change.object = earlier;
            if (later->change.kind == CACHE_REMOVED)
                held->change.kind = CACHE_REMOVED;
            else if (held->change.kind == CACHE_REMOVED)
                held->change.kind = CACHE_UPDATED;
            held->change.state_unknown = later->change.state_unknown;
            held->change.resync = false;
            /* For the consumer, an object of a list that has changed since is still one of the
             * list. */
            if (held->change.kind != CACHE_ADDED)
                held->change.in_list = later->change.in_list;
        }
        waiting_free(later);
        return;
    }
    append(queue, later);
    if (hash_map_put(&queue->waiting, later, &replaced) == ST_OK)
        assert(!replaced);
}

static void publish_locked(struct change_queue *queue)
{
    if (queue->over)
        drop_all(&queue->incoming);
    for (struct list *link; (link = list_pop_front(&queue->incoming));) {
        struct waiting_change *later = LIST_ENTRY(link, struct waiting_change, in_order);
        if (queue->count >= queue->join_count || queue->bytes >= CHANGES_UNJOINED_BYTES_MAX) {
            publish_joined(queue, later);
        } else {
            /* What waits before it must not be joined with what follows it. */
            if (queue->waiting.count)
                hash_map_remove(&queue->waiting, key_of(later));
            append(queue, later);
        }
    }
    queue->incoming_count = 0;
    signal_state(queue);
    pthread_cond_signal(&queue->changed);
}

void change_queue_publish(struct change_queue *queue)
{
    if (list_empty(&queue->incoming))
        return;
    LOCK_SCOPE(&queue->lock);
    publish_locked(queue);
}

void change_queue_mark_state(struct change_queue *queue)
{
    LOCK_SCOPE(&queue->lock);
    publish_locked(queue);
    if (!queue->marked)
        queue->mark = queue->published;
    queue->marked = true;
}

/* -- Taking -- */

static struct waiting_change *first_of(struct change_queue *queue)
{
    return LIST_ENTRY(queue->order.next, struct waiting_change, in_order);
}

static void take_first(struct change_queue *queue, struct queued_change *ret_change)
{
    struct waiting_change *first = first_of(queue);
    unlink_waiting(queue, first);
    *ret_change = first->change;
    queue->taken = first->number;
    free(first);
    signal_state(queue);
}

enum status change_queue_take(struct change_queue *queue, int64_t until_ns,
                              struct queued_change *ret_change)
{
    LOCK_SCOPE(&queue->lock);
    while (list_empty(&queue->order)) {
        if (queue->over)
            return ST_CLOSED;
        if (until_ns == 0 || clock_mono_ns(clock_system()) >= until_ns)
            return ST_TIMEOUT;
        if (until_ns == CLOCK_NEVER)
            lock_wait(&queue->lock, &queue->changed);
        else
            lock_wait_until(&queue->lock, &queue->changed, until_ns);
    }
    take_first(queue, ret_change);
    return ST_OK;
}

void change_queue_finish(struct change_queue *queue)
{
    LOCK_SCOPE(&queue->lock);
    queue->taken = 0;
}

/* -- Any thread -- */

bool change_queue_has_state(struct change_queue *queue)
{
    LOCK_SCOPE(&queue->lock);
    bool all_taken = list_empty(&queue->order) || first_of(queue)->number > queue->mark;
    bool in_hand = queue->taken && queue->taken <= queue->mark;
    return queue->marked && all_taken && !in_hand;
}

void change_queue_end(struct change_queue *queue)
{
    LOCK_SCOPE(&queue->lock);
    queue->over = true;
    drop_all(&queue->order);
    hash_map_fini(&queue->waiting);
    queue->count = queue->bytes = 0;
    signal_state(queue);
    pthread_cond_broadcast(&queue->changed);
}

size_t change_queue_count(struct change_queue *queue)
{
    LOCK_SCOPE(&queue->lock);
    return queue->count;
}

void change_queue_check(struct change_queue *queue)
{
    uint64_t number = 0;
    size_t bytes = 0;
    const struct waiting_change *waiting;
    LOCK_SCOPE(&queue->lock);
    hash_map_check(&queue->waiting);
    assert(list_length(&queue->incoming) == queue->incoming_count);
    assert(list_length(&queue->order) == queue->count);
    assert(queue->waiting.count <= queue->count);
    assert(!queue->has_readable || queue->readable.is_set == (queue->count > 0 || queue->over));
    LIST_FOREACH (waiting, &queue->order, in_order) {
        assert((waiting->change.before == NULL) == (waiting->change.kind == CACHE_ADDED));
        assert(waiting->change.object);
        assert(waiting->number > number);
        number = waiting->number;
        bytes += bytes_of(waiting);
    }
    assert(bytes == queue->bytes);
}
