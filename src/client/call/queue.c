#include "client/call/queue.h"

#include "io/readable.h"

#include <poll.h>
#include <stdlib.h>

struct vigil_queue {
    struct vigil_client *client; /* a reference */
    _Atomic unsigned refs; /* the user's, one of each item, and one of each thread that takes */

    /* Protected by the client's lock. */
    struct driver_observer observer; /* observes the end of the client */
    struct list items;               /* queue_item.in_queue */
    bool closed;                     /* freed by the user */
    struct readable readable;        /* while something can be taken, and after the end */
};

#define TO(state) (1u << QUEUE_ITEM_##state)

/* Drawn in queue.h. */
static const uint8_t moves[] = {
    [QUEUE_ITEM_IDLE] = TO(QUEUED),
    [QUEUE_ITEM_QUEUED] = TO(TAKEN) | TO(IDLE),
    [QUEUE_ITEM_TAKEN] = TO(QUEUED) | TO(IDLE),
};

struct vigil_client *queue_client(const struct vigil_queue *queue)
{
    return queue->client;
}

static void queue_unref(struct vigil_queue *queue)
{
    if (atomic_fetch_sub_explicit(&queue->refs, 1, memory_order_acq_rel) > 1)
        return;
    struct vigil_client *client = queue->client;
    readable_fini(&queue->readable);
    free(queue);
    driver_unref(&client->driver);
}

static bool is_over(const struct vigil_queue *queue)
{
    return queue->closed || queue->client->driver.all_ended;
}

static void settle_fd(struct vigil_queue *queue)
{
    assert(lock_held(&queue->client->driver.lock));
    readable_set(&queue->readable, !list_empty(&queue->items) || is_over(queue));
}

void queue_check(struct vigil_queue *queue)
{
    const struct queue_item *item;
    LOCK_SCOPE(&queue->client->driver.lock);
    assert(queue->readable.is_set == (!list_empty(&queue->items) || is_over(queue)));
    assert(!queue->closed || list_empty(&queue->items));
    LIST_FOREACH (item, &queue->items, in_queue) {
        assert(item->queue == queue && !item->dropped);
        assert(item->state == QUEUE_ITEM_QUEUED);
    }
}

/* -- Items -- */

void queue_item_init(struct queue_item *item, struct vigil_queue *queue,
                     const struct queue_item_ops *ops)
{
    atomic_fetch_add_explicit(&queue->refs, 1, memory_order_relaxed);
    item->queue = queue;
    item->ops = ops;
    item->state = QUEUE_ITEM_IDLE;
    list_init(&item->in_queue);
}

void queue_item_fini(struct queue_item *item)
{
    assert(item->state == QUEUE_ITEM_IDLE);
    if (item->queue)
        queue_unref(item->queue);
}

/* The item is not in the list, and has its reference to the object. */
static void enqueue(struct queue_item *item)
{
    STATE_MOVE(item->state, moves, QUEUE_ITEM_QUEUED);
    list_push_back(&item->queue->items, &item->in_queue);
    settle_fd(item->queue);
}

void queue_item_push(struct queue_item *item)
{
    assert(lock_held(&item->queue->client->driver.lock));
    /* An item that is queued already will show everything that has happened until it is taken, and
     * one that is taken is looked at again when it is released. */
    if (item->state != QUEUE_ITEM_IDLE || item->dropped || item->queue->closed)
        return;
    item->ops->ref(item);
    enqueue(item);
}

void queue_item_drop(struct queue_item *item)
{
    if (!item->queue)
        return;
    struct lock *lock = &item->queue->client->driver.lock;
    lock_take(lock);
    item->dropped = true;
    bool was_queued = item->state == QUEUE_ITEM_QUEUED;
    if (was_queued) {
        list_remove(&item->in_queue);
        STATE_MOVE(item->state, moves, QUEUE_ITEM_IDLE);
        settle_fd(item->queue);
    }
    lock_release(lock);
    /* Without the lock, because the last reference frees the object. A taken item keeps its
     * reference until the program releases it. */
    if (was_queued)
        item->ops->unref(item);
}

/* A taken item is queued again, or idle. If the object is to be woken, there is one more reference
 * to it. */
static struct queue_item_next put_back(struct queue_item *item)
{
    struct queue_item_next next = {0};
    LOCK_SCOPE(&item->queue->client->driver.lock);
    if (item->ops->settle)
        next = item->ops->settle(item);
    next.more = next.more && !item->dropped && !item->queue->closed;
    if (next.wake)
        item->ops->ref(item);
    if (next.more)
        enqueue(item);
    else
        STATE_MOVE(item->state, moves, QUEUE_ITEM_IDLE);
    return next;
}

void vigil_item_release(const vigil_item *shown)
{
    if (!shown)
        return;
    struct queue_item *item =
        CONTAINER_OF((vigil_item *)(uintptr_t)shown, struct queue_item, shown);
    const struct queue_item_ops *ops = item->ops;
    if (ops->clear)
        ops->clear(item);
    struct queue_item_next next = put_back(item);
    if (next.wake) {
        ops->wake(item);
        ops->unref(item);
    }
    if (!next.more)
        ops->unref(item);
}

/* -- Taking -- */

/* Without waiting. */
static int take(struct vigil_queue *queue, const vigil_item **ret_item)
{
    LOCK_SCOPE(&queue->client->driver.lock);
    if (list_empty(&queue->items))
        return is_over(queue) ? VIGIL_ERROR_CANCELED : VIGIL_ERROR_TIMEOUT;
    struct queue_item *item =
        LIST_ENTRY(list_pop_front(&queue->items), struct queue_item, in_queue);
    STATE_MOVE(item->state, moves, QUEUE_ITEM_TAKEN);
    if (item->ops->fill)
        item->ops->fill(item);
    settle_fd(queue);
    *ret_item = &item->shown;
    return VIGIL_OK;
}

/* Waits until something may have been queued. In the program's loop it also drives the client. */
static void wait_for_items(struct vigil_queue *queue, int timeout_ms)
{
    struct vigil_client *client = queue->client;
    struct pollfd fds[] = {{.fd = queue->readable.fd, .events = POLLIN},
                           {.fd = -1, .events = POLLIN}};
    bool drives = !client->driver.own_thread && !atomic_load(&client->driver.loop_ended);
    if (drives) {
        fds[1].fd = vigil_client_fd(client);
        /* The shorter of two timeouts, in which a negative one has no limit. */
        int client_ms = vigil_client_timeout_ms(client);
        if (timeout_ms < 0 || (client_ms >= 0 && client_ms < timeout_ms))
            timeout_ms = client_ms;
    }
    (void)poll(fds, COUNT_OF(fds), timeout_ms); /* interrupted: an early look */
    if (drives)
        vigil_client_process(client);
}

/* The time until a deadline, rounded up; -1 if there is none. */
static int left_ms(int64_t deadline_ns)
{
    if (deadline_ns == CLOCK_NEVER)
        return -1;
    int64_t left = deadline_ns - clock_mono_ns(clock_system());
    return left <= 0 ? 0 : (int)((left + NS_PER_MS - 1) / NS_PER_MS);
}

int vigil_queue_take(vigil_queue *queue, int timeout_ms, const vigil_item **ret_item)
{
    if (!queue || !ret_item)
        return VIGIL_ERROR_ARGUMENT;
    if (driver_is_inherited(&queue->client->driver))
        return VIGIL_ERROR_SYSTEM;
    if (timeout_ms == 0)
        return take(queue, ret_item);
    if (driver_must_not_wait(&queue->client->driver))
        return VIGIL_ERROR_WOULD_BLOCK;
    int64_t deadline_ns = timeout_ms < 0
                              ? CLOCK_NEVER
                              : clock_mono_ns(clock_system()) + timeout_ms * (int64_t)NS_PER_MS;
    /* Another thread may free the queue while this one waits, so it has a reference. An item that
     * arrives at the last moment is still taken, because the loop tries once more after the time is
     * over. */
    atomic_fetch_add_explicit(&queue->refs, 1, memory_order_relaxed);
    int code, left = -1;
    while ((code = take(queue, ret_item)) == VIGIL_ERROR_TIMEOUT && left != 0) {
        left = left_ms(deadline_ns);
        wait_for_items(queue, left);
    }
    queue_unref(queue);
    return code;
}

int vigil_queue_fd(const vigil_queue *queue)
{
    return queue ? queue->readable.fd : -1;
}

/* -- Life -- */

static void on_client_ended(struct driver_observer *observer)
{
    settle_fd(CONTAINER_OF(observer, struct vigil_queue, observer));
}

int vigil_queue_new(vigil_client *client, vigil_queue **ret_queue)
{
    if (!client || !ret_queue)
        return VIGIL_ERROR_ARGUMENT;
    if (driver_is_inherited(&client->driver))
        return VIGIL_ERROR_SYSTEM;
    struct vigil_queue *queue = calloc(1, sizeof(*queue));
    if (!queue)
        return VIGIL_ERROR_MEMORY;
    if (readable_init(&queue->readable) != ST_OK) {
        free(queue);
        return VIGIL_ERROR_SYSTEM;
    }
    driver_ref(&client->driver);
    queue->client = client;
    queue->refs = 1;
    queue->observer.ended = on_client_ended;
    list_init(&queue->items);
    LOCK_SCOPE(&client->driver.lock);
    list_push_back(&client->driver.observers, &queue->observer.in_driver);
    settle_fd(queue);
    *ret_queue = queue;
    return VIGIL_OK;
}

void vigil_queue_free(vigil_queue *queue)
{
    struct queue_item *item;
    struct list items;
    if (!queue || driver_is_inherited(&queue->client->driver))
        return;
    struct lock *lock = &queue->client->driver.lock;
    list_init(&items);
    lock_take(lock);
    queue->closed = true;
    list_remove(&queue->observer.in_driver);
    LIST_FOREACH (item, &queue->items, in_queue)
        STATE_MOVE(item->state, moves, QUEUE_ITEM_IDLE);
    list_append(&items, &queue->items);
    settle_fd(queue);
    lock_release(lock);
    /* The references of the items are released without the lock, because the last one frees the
     * object and takes the lock itself. */
    for (struct list *link; (link = list_pop_front(&items));) {
        item = LIST_ENTRY(link, struct queue_item, in_queue);
        item->ops->unref(item);
    }
    queue_unref(queue);
}
