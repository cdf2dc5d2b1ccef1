#include "kubeclient/informer/work_queue.h"

#include "base/container/hash_map.h"
#include "base/container/heap.h"
#include "base/container/list.h"
#include "base/lock.h"
#include "base/random.h"
#include "io/readable.h"

#include <stdlib.h>

enum { DOUBLINGS_MAX = 62 };

/* A key that is queued, waits, is being processed, or was added for another attempt. */
struct work_item {
    struct list in_queue;        /* links vigil_work_queue.queued */
    struct heap_link in_waiting; /* ordered by the time at which it is queued */
    unsigned attempts;
    bool dirty;      /* it was added and has not been taken since */
    bool processing; /* a worker has it */
    size_t key_bytes;
    uint8_t key[];
};

struct vigil_work_queue {
    struct clock *clock;
    int64_t retry_min_ns, retry_max_ns;
    int64_t interval_ns; /* between keys beyond the burst; 0: no limit */
    int64_t burst_ns;    /* what the burst is ahead of the rate */

    struct lock lock; /* protects what follows */
    pthread_cond_t changed;
    struct hash_map items; /* struct work_item each, owned */
    struct list queued;
    size_t queued_count, processing_count;
    struct heap waiting;
    int64_t reserved_ns; /* the time at which the rate has made up for all reservations */
    bool over;
    struct readable readable; /* while something can be taken, and after the shutdown */
};

/* -- Life -- */

void vigil_work_queue_options_init(vigil_work_queue_options *options)
{
    *options = (vigil_work_queue_options){
        .size = sizeof(*options),
        .retry_min_ms = 5,
        .retry_max_ms = 1000 * 1000,
        .burst = 100,
        .per_second = 10,
    };
}

static struct slice item_key(const void *value)
{
    const struct work_item *item = value;
    return slice_of(item->key, item->key_bytes);
}

static int64_t ns_of_ms(int64_t ms)
{
    if (ms <= 0)
        return 0;
    return ms > INT64_MAX / NS_PER_MS ? CLOCK_NEVER : ms * NS_PER_MS;
}

int work_queue_new_with(struct clock *clock, const vigil_work_queue_options *options,
                        vigil_work_queue **ret_queue)
{
    vigil_work_queue_options complete;
    vigil_work_queue_options_init(&complete);
    if (options && (options->size == 0 || options->size > sizeof(complete)))
        return VIGIL_ERROR_ARGUMENT;
    if (options) /* a program that was compiled with older headers has fewer fields */
        memcpy(&complete, options, options->size);
    if (complete.retry_min_ms < 0 || complete.retry_max_ms < complete.retry_min_ms)
        return VIGIL_ERROR_ARGUMENT;
    struct vigil_work_queue *queue = calloc(1, sizeof(*queue));
    if (!queue)
        return VIGIL_ERROR_MEMORY;
    if (readable_init(&queue->readable) != ST_OK) {
        free(queue);
        return VIGIL_ERROR_SYSTEM;
    }
    queue->clock = clock;
    queue->retry_min_ns = ns_of_ms(complete.retry_min_ms);
    queue->retry_max_ns = ns_of_ms(complete.retry_max_ms);
    queue->interval_ns = complete.per_second ? NS_PER_S / complete.per_second : 0;
    queue->burst_ns = queue->interval_ns * complete.burst;
    lock_init(&queue->lock);
    lock_condition_init(&queue->changed);
    hash_map_init(&queue->items, item_key, random_seed_system());
    list_init(&queue->queued);
    *ret_queue = queue;
    return VIGIL_OK;
}

int vigil_work_queue_new(const vigil_work_queue_options *options, vigil_work_queue **ret_queue)
{
    return work_queue_new_with(clock_system(), options, ret_queue);
}

void vigil_work_queue_free(vigil_work_queue *queue)
{
    struct work_item *item;
    if (!queue)
        return;
    MAP_FOREACH (item, &queue->items)
        free(item);
    hash_map_fini(&queue->items);
    heap_fini(&queue->waiting);
    pthread_cond_destroy(&queue->changed);
    lock_fini(&queue->lock);
    readable_fini(&queue->readable);
    free(queue);
}

/* -- Items; the lock is held -- */

static struct work_item *find(struct vigil_work_queue *queue, vigil_bytes key)
{
    return hash_map_get(&queue->items, slice_of(key.data, key.size));
}

/* NULL: there is no memory. */
static struct work_item *find_or_make(struct vigil_work_queue *queue, vigil_bytes key)
{
    void *replaced;
    struct work_item *item = find(queue, key);
    if (item)
        return item;
    item = calloc(1, sizeof(*item) + key.size);
    if (!item)
        return NULL;
    list_init(&item->in_queue);
    item->key_bytes = key.size;
    slice_copy(item->key, slice_of(key.data, key.size));
    if (hash_map_put(&queue->items, item, &replaced) != ST_OK) {
        free(item);
        return NULL;
    }
    return item;
}

static void free_unless_used(struct vigil_work_queue *queue, struct work_item *item)
{
    if (item->dirty || item->processing || item->attempts || heap_has(&item->in_waiting))
        return;
    hash_map_remove(&queue->items, item_key(item));
    free(item);
}

static void signal_state(struct vigil_work_queue *queue)
{
    readable_set(&queue->readable, queue->queued_count > 0 || queue->over);
}

static void push(struct vigil_work_queue *queue, struct work_item *item)
{
    list_push_back(&queue->queued, &item->in_queue);
    queue->queued_count++;
    signal_state(queue);
    if (queue->over)
        pthread_cond_broadcast(&queue->changed); /* a thread may wait in drain */
    else
        pthread_cond_signal(&queue->changed);
}

static void make_dirty(struct vigil_work_queue *queue, struct work_item *item)
{
    if (item->dirty)
        return;
    item->dirty = true;
    if (!item->processing)
        push(queue, item);
}

/* Queues the keys whose time has come. */
static void queue_due(struct vigil_work_queue *queue)
{
    struct heap_link *link;
    int64_t now_ns = clock_mono_ns(queue->clock);
    while ((link = heap_pop(&queue->waiting, now_ns)) != NULL)
        make_dirty(queue, CONTAINER_OF(link, struct work_item, in_waiting));
}

/* -- Adding -- */

int vigil_work_queue_add(vigil_work_queue *queue, vigil_bytes key)
{
    LOCK_SCOPE(&queue->lock);
    if (queue->over)
        return VIGIL_ERROR_CANCELED;
    struct work_item *item = find_or_make(queue, key);
    if (!item)
        return VIGIL_ERROR_MEMORY;
    make_dirty(queue, item);
    return VIGIL_OK;
}

static int wait_until(struct vigil_work_queue *queue, struct work_item *item, int64_t due_ns)
{
    const struct heap_link *link = &item->in_waiting;
    if (heap_has(link) && queue->waiting.entries[link->place - 1].number <= due_ns)
        return VIGIL_OK;
    if (heap_put(&queue->waiting, &item->in_waiting, due_ns) != ST_OK) {
        free_unless_used(queue, item);
        return VIGIL_ERROR_MEMORY;
    }
    if (heap_first(&queue->waiting) == link)
        pthread_cond_broadcast(&queue->changed); /* no worker may sleep longer */
    return VIGIL_OK;
}

static int add_in(struct vigil_work_queue *queue, struct work_item *item, int64_t delay_ns)
{
    if (delay_ns <= 0) {
        make_dirty(queue, item);
        return VIGIL_OK;
    }
    return wait_until(queue, item, clock_add(clock_mono_ns(queue->clock), delay_ns));
}

int vigil_work_queue_add_after(vigil_work_queue *queue, vigil_bytes key, int64_t delay_ms)
{
    LOCK_SCOPE(&queue->lock);
    if (queue->over)
        return VIGIL_ERROR_CANCELED;
    struct work_item *item = find_or_make(queue, key);
    return item ? add_in(queue, item, ns_of_ms(delay_ms)) : VIGIL_ERROR_MEMORY;
}

static int64_t delay_of_key(const struct vigil_work_queue *queue, unsigned attempts)
{
    int64_t delay_ns = queue->retry_min_ns;
    for (unsigned i = 0; i < attempts && i < DOUBLINGS_MAX && delay_ns < queue->retry_max_ns; i++)
        delay_ns = delay_ns > CLOCK_NEVER / 2 ? CLOCK_NEVER : 2 * delay_ns;
    return delay_ns < queue->retry_max_ns ? delay_ns : queue->retry_max_ns;
}

/* Takes the next place of the common rate, which may be in the future. */
static int64_t reserve(struct vigil_work_queue *queue)
{
    int64_t now_ns = clock_mono_ns(queue->clock);
    if (queue->reserved_ns < now_ns)
        queue->reserved_ns = now_ns;
    queue->reserved_ns = clock_add(queue->reserved_ns, queue->interval_ns);
    int64_t ahead_ns = queue->reserved_ns - now_ns - queue->burst_ns;
    return ahead_ns > 0 ? ahead_ns : 0;
}

int vigil_work_queue_add_later(vigil_work_queue *queue, vigil_bytes key)
{
    LOCK_SCOPE(&queue->lock);
    if (queue->over)
        return VIGIL_ERROR_CANCELED;
    struct work_item *item = find_or_make(queue, key);
    if (!item)
        return VIGIL_ERROR_MEMORY;
    int64_t of_key_ns = delay_of_key(queue, item->attempts), of_all_ns = reserve(queue);
    item->attempts += item->attempts < UINT32_MAX;
    return add_in(queue, item, of_key_ns > of_all_ns ? of_key_ns : of_all_ns);
}

void vigil_work_queue_forget(vigil_work_queue *queue, vigil_bytes key)
{
    LOCK_SCOPE(&queue->lock);
    struct work_item *item = find(queue, key);
    if (!item)
        return;
    item->attempts = 0;
    free_unless_used(queue, item);
}

unsigned vigil_work_queue_attempts(vigil_work_queue *queue, vigil_bytes key)
{
    LOCK_SCOPE(&queue->lock);
    const struct work_item *item = find(queue, key);
    return item ? item->attempts : 0;
}

/* -- Taking -- */

/* Waits for a change, at most until then. */
static void wait_for_change(struct vigil_work_queue *queue, int64_t until_ns)
{
    int64_t due_ns = heap_first_number(&queue->waiting, CLOCK_NEVER);
    int64_t end_ns = due_ns < until_ns ? due_ns : until_ns;
    if (end_ns == CLOCK_NEVER)
        lock_wait(&queue->lock, &queue->changed);
    else
        lock_wait_until(&queue->lock, &queue->changed, end_ns);
}

static vigil_bytes take_first(struct vigil_work_queue *queue)
{
    struct work_item *item = LIST_ENTRY(queue->queued.next, struct work_item, in_queue);
    list_remove(&item->in_queue);
    queue->queued_count--;
    queue->processing_count++;
    item->dirty = false;
    item->processing = true;
    signal_state(queue);
    return vigil_bytes_of(item->key, item->key_bytes);
}

int vigil_work_queue_take(vigil_work_queue *queue, int timeout_ms, vigil_bytes *ret_key)
{
    int64_t until_ns =
        timeout_ms < 0 ? CLOCK_NEVER : clock_add(clock_mono_ns(queue->clock), ns_of_ms(timeout_ms));
    LOCK_SCOPE(&queue->lock);
    queue_due(queue);
    while (queue->queued_count == 0) {
        if (queue->over)
            return VIGIL_ERROR_CANCELED;
        if (timeout_ms == 0 || clock_mono_ns(queue->clock) >= until_ns)
            return VIGIL_ERROR_TIMEOUT;
        wait_for_change(queue, until_ns);
        queue_due(queue);
    }
    *ret_key = take_first(queue);
    return VIGIL_OK;
}

void vigil_work_queue_done(vigil_work_queue *queue, vigil_bytes key)
{
    LOCK_SCOPE(&queue->lock);
    struct work_item *item = find(queue, key);
    if (!item || !item->processing)
        return;
    item->processing = false;
    queue->processing_count--;
    if (item->dirty)
        push(queue, item);
    if (queue->over)
        pthread_cond_broadcast(&queue->changed); /* for drain */
    free_unless_used(queue, item);
}

size_t vigil_work_queue_length(vigil_work_queue *queue)
{
    LOCK_SCOPE(&queue->lock);
    return queue->queued_count;
}

int vigil_work_queue_fd(const vigil_work_queue *queue)
{
    return queue->readable.fd;
}

int vigil_work_queue_timeout_ms(vigil_work_queue *queue)
{
    LOCK_SCOPE(&queue->lock);
    queue_due(queue);
    int64_t due_ns = heap_first_number(&queue->waiting, CLOCK_NEVER);
    if (due_ns == CLOCK_NEVER)
        return -1;
    int64_t left_ms = (due_ns - clock_mono_ns(queue->clock)) / NS_PER_MS + 1;
    return left_ms < INT32_MAX ? (int)left_ms : INT32_MAX;
}

/* -- The end -- */

void vigil_work_queue_shutdown(vigil_work_queue *queue)
{
    struct heap_link *link;
    LOCK_SCOPE(&queue->lock);
    queue->over = true;
    while ((link = heap_pop(&queue->waiting, CLOCK_NEVER)) != NULL)
        free_unless_used(queue, CONTAINER_OF(link, struct work_item, in_waiting));
    signal_state(queue);
    pthread_cond_broadcast(&queue->changed);
}

void vigil_work_queue_drain(vigil_work_queue *queue)
{
    vigil_work_queue_shutdown(queue);
    LOCK_SCOPE(&queue->lock);
    while (queue->queued_count > 0 || queue->processing_count > 0)
        lock_wait(&queue->lock, &queue->changed);
}

void work_queue_check(vigil_work_queue *queue)
{
    size_t queued = 0, processing = 0, waiting = 0;
    const struct work_item *item;
    LOCK_SCOPE(&queue->lock);
    MAP_FOREACH (item, &queue->items) {
        bool in_queue = !list_empty(&item->in_queue);
        assert(in_queue == (item->dirty && !item->processing));
        assert(item->dirty || item->processing || item->attempts || heap_has(&item->in_waiting));
        queued += in_queue;
        processing += item->processing;
        waiting += heap_has(&item->in_waiting);
    }
    assert(queued == queue->queued_count && queued == list_length(&queue->queued));
    assert(processing == queue->processing_count);
    assert(waiting == queue->waiting.count);
    assert(queue->readable.is_set == (queued > 0 || queue->over));
    heap_check(&queue->waiting);
    hash_map_check(&queue->items);
}
