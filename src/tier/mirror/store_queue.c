#include "tier/mirror/store_queue.h"

#include "base/clock.h"
#include "base/lock.h"
#include "client/driver/driver.h"
#include "engine/local/mirror/mirror_store.h"

#include <stdlib.h>

enum { CHANGES_FIRST = 16 };

#define RETRY_NS NS_PER_S

/* The changes of one revision, in one allocation with their bytes. */
struct queued_revision {
    struct queued_revision *next;
    size_t bytes;
    size_t count;
    struct imported_change changes[];
};

struct store_batch {
    struct mirror_batch batch;
    struct store_queue *queue;
    struct driver_command returned;
    struct mirror_revision *revisions; /* owned; batch.revisions is a part of it */
    size_t count, capacity;
    struct queued_revision *first, *last; /* owned */
    size_t bytes;
    struct list in_queue; /* links store_queue.waiting, then store_queue.given */
    enum status status;   /* what became of it */
    bool is_done;
};

struct store_queue {
    struct store_queue_options options;
    int64_t revision;
    size_t bytes;
    struct store_batch *open; /* owned; NULL: none */
    struct list waiting;      /* store_batch.in_queue, in order */
    struct list given;        /* in flight, or refused while others are in flight */
    unsigned in_flight;
    enum status failure;
    bool stopped; /* the store has ended, or the loop ends */
    bool is_pressed;
    struct deferred flush;
    struct timer retry;

    struct lock lock;
    pthread_cond_t changed;
    unsigned unfinished; /* protected by the lock: batches that exist */
};

static void on_flush(struct deferred *deferred);
static void on_retry(struct timer *timer);
static void batch_returned(struct driver_command *command);
static void applied(struct mirror_batch *batch, enum status status);

static struct loop *loop_of(const struct store_queue *q)
{
    return q->options.driver->loop;
}

/* -- Life -- */

enum status store_queue_new(const struct store_queue_options *options,
                            struct store_queue **ret_queue)
{
    struct store_queue *q = calloc(1, sizeof(*q));
    if (!q)
        return ST_NOMEM;
    q->options = *options;
    q->revision = local_mirror_revision(options->engine);
    q->flush.fn = on_flush;
    q->retry.fn = on_retry;
    list_init(&q->waiting);
    list_init(&q->given);
    lock_init(&q->lock);
    pthread_cond_init(&q->changed, NULL);
    driver_ref(options->driver);
    *ret_queue = q;
    return ST_OK;
}

static void batch_free(struct store_batch *batch)
{
    struct store_queue *q = batch->queue;
    for (struct queued_revision *one = batch->first, *next; one; one = next) {
        next = one->next;
        free(one);
    }
    free(batch->revisions);
    free(batch);
    lock_take(&q->lock);
    q->unfinished--;
    pthread_cond_broadcast(&q->changed);
    lock_release(&q->lock);
}

void store_queue_stop(struct store_queue *q)
{
    q->stopped = true;
    loop_defer_cancel(&q->flush);
    loop_timer_cancel(loop_of(q), &q->retry);
}

static void free_list(struct list *batches, bool done_only)
{
    struct store_batch *batch, *next;
    LIST_FOREACH_SAFE (batch, next, batches, in_queue) {
        if (done_only && !batch->is_done)
            continue;
        list_remove(&batch->in_queue);
        batch_free(batch);
    }
}

void store_queue_free(struct store_queue *q)
{
    if (!q)
        return;
    if (q->open)
        batch_free(TAKE(q->open));
    free_list(&q->waiting, false);
    /* Those in flight return on the threads that post their commands, now that the loop has ended.
     */
    lock_take(&q->lock);
    while (q->in_flight)
        lock_wait(&q->lock, &q->changed);
    lock_release(&q->lock);
    free_list(&q->given, false);
    assert(q->unfinished == 0);
    driver_unref(q->options.driver);
    pthread_cond_destroy(&q->changed);
    lock_fini(&q->lock);
    free(q);
}

/* -- State -- */

int64_t store_queue_revision(const struct store_queue *q)
{
    return q->revision;
}

size_t store_queue_bytes(const struct store_queue *q)
{
    return q->bytes;
}

bool store_queue_is_pressed(const struct store_queue *q)
{
    return q->is_pressed;
}

enum status store_queue_failure(const struct store_queue *q)
{
    return q->failure;
}

static void regulate(struct store_queue *q)
{
    size_t limit = q->is_pressed ? STORE_QUEUE_BYTES_MAX / 2 : STORE_QUEUE_BYTES_MAX;
    bool pressed = q->bytes > limit;
    if (pressed == q->is_pressed)
        return;
    q->is_pressed = pressed;
    q->options.pressure(q->options.ctx);
}

/* -- Giving -- */

static void give(struct store_batch *batch)
{
    struct store_queue *q = batch->queue;
    batch->is_done = false;
    batch->batch.revisions = batch->revisions + (batch->count - batch->batch.count);
    lock_take(&q->lock);
    q->in_flight++;
    lock_release(&q->lock);
    local_mirror_apply(q->options.engine, &batch->batch);
}

static void seal(struct store_queue *q)
{
    struct store_batch *batch = TAKE(q->open);
    if (!batch)
        return;
    batch->batch.count = batch->count;
    list_push_back(&q->waiting, &batch->in_queue);
}

static void flush(struct store_queue *q)
{
    if (q->stopped || q->failure != ST_OK)
        return;
    while (q->in_flight < STORE_QUEUE_BATCHES_MAX) {
        /* A batch that is not full goes only when it is its turn. */
        if (list_empty(&q->waiting))
            seal(q);
        struct list *link = list_pop_front(&q->waiting);
        if (!link)
            return;
        list_push_back(&q->given, link);
        give(LIST_ENTRY(link, struct store_batch, in_queue));
    }
}

static void on_flush(struct deferred *deferred)
{
    flush(CONTAINER_OF(deferred, struct store_queue, flush));
}

/* On the writer's thread. */
static void applied(struct mirror_batch *mirror_batch, enum status status)
{
    struct store_batch *batch = mirror_batch->user;
    batch->status = status;
    driver_post(batch->queue->options.driver, &batch->returned);
}

static bool may_fit_later(enum status status)
{
    return status == ST_DISK_FULL || status == ST_IO || status == ST_NOMEM;
}

static void set_failure(struct store_queue *q, enum status failure)
{
    if (q->failure == failure)
        return;
    q->failure = failure;
    q->options.refused(q->options.ctx, failure);
}

static void settle(struct store_queue *q, struct store_batch *batch)
{
    if (batch->status == ST_OK) {
        q->bytes -= batch->bytes;
        list_remove(&batch->in_queue);
        batch_free(batch);
        return;
    }
    if (!may_fit_later(batch->status)) {
        /* Our revisions are valid, so the store has ended, and with it the process soon. */
        assert(batch->status == ST_STOPPED);
        q->stopped = true;
        return;
    }
    /* What was applied of it remains applied. */
    batch->batch.count -= batch->batch.applied;
    batch->batch.applied = 0;
    set_failure(q, batch->status);
}

/* All batches are back, and some of them were refused: they are given again, in order. */
static void give_again(struct store_queue *q)
{
    struct store_batch *batch;
    local_mirror_retry(q->options.engine);
    LIST_FOREACH (batch, &q->given, in_queue)
        give(batch);
}

static void on_retry(struct timer *timer)
{
    struct store_queue *q = CONTAINER_OF(timer, struct store_queue, retry);
    if (!q->stopped)
        give_again(q);
}

/* On the follower's thread; or, when its loop has ended, on any. */
static void batch_returned(struct driver_command *command)
{
    struct store_batch *batch = CONTAINER_OF(command, struct store_batch, returned);
    struct store_queue *q = batch->queue;
    enum status status = batch->status;
    bool ended = q->options.driver->ended;
    batch->is_done = true;
    if (!ended)
        settle(q, batch);
    lock_take(&q->lock);
    unsigned left = --q->in_flight;
    pthread_cond_broadcast(&q->changed);
    lock_release(&q->lock);
    if (ended)
        return; /* the queue may be gone */
    if (q->failure != ST_OK && left == 0 && !q->stopped) {
        if (list_empty(&q->given))
            set_failure(q, ST_OK);
        else
            loop_timer_set(loop_of(q), &q->retry, loop_now_ns(loop_of(q)) + RETRY_NS);
    }
    flush(q);
    regulate(q);
    if (status == ST_OK)
        q->options.applied(q->options.ctx);
}

/* -- Putting -- */

static enum status open_batch(struct store_queue *q, struct store_batch **ret_batch)
{
    if (q->open && q->open->bytes >= STORE_QUEUE_BATCH_BYTES)
        seal(q);
    if (!q->open) {
        struct store_batch *batch = calloc(1, sizeof(*batch));
        if (!batch)
            return ST_NOMEM;
        batch->queue = q;
        batch->returned.run = batch_returned;
        batch->batch.done = applied;
        batch->batch.user = batch;
        list_init(&batch->in_queue);
        lock_take(&q->lock);
        q->unfinished++;
        lock_release(&q->lock);
        q->open = batch;
    }
    *ret_batch = q->open;
    return ST_OK;
}

static enum status reserve(struct store_batch *batch)
{
    if (batch->count < batch->capacity)
        return ST_OK;
    size_t capacity = batch->capacity ? 2 * batch->capacity : CHANGES_FIRST;
    struct mirror_revision *grown = realloc(batch->revisions, capacity * sizeof(*grown));
    if (!grown)
        return ST_NOMEM;
    batch->revisions = grown;
    batch->capacity = capacity;
    return ST_OK;
}

static void schedule(struct store_queue *q)
{
    if (!q->stopped)
        loop_defer(loop_of(q), &q->flush);
}

/* Takes the changes, as the next revision. */
static void add(struct store_queue *q, struct store_batch *batch, struct queued_revision *one)
{
    int64_t revision = ++q->revision;
    if (batch->last)
        batch->last->next = one;
    else
        batch->first = one;
    batch->last = one;
    batch->revisions[batch->count++] = (struct mirror_revision){
        .revision = revision, .changes = one->changes, .count = one->count};
    batch->batch.reach = revision;
    batch->bytes += one->bytes;
    q->bytes += one->bytes;
    schedule(q);
    regulate(q);
}

static enum status prepare(struct store_queue *q, size_t changes, size_t bytes,
                           struct store_batch **ret_batch, struct queued_revision **ret_one)
{
    struct store_batch *batch;
    TRY(open_batch(q, &batch));
    TRY(reserve(batch));
    size_t size = sizeof(struct queued_revision) + changes * sizeof(struct imported_change) + bytes;
    struct queued_revision *one = malloc(size);
    if (!one)
        return ST_NOMEM;
    *one = (struct queued_revision){.bytes = size, .count = changes};
    *ret_batch = batch;
    *ret_one = one;
    return ST_OK;
}

static uint8_t *copy(uint8_t *to, struct slice from)
{
    slice_copy(to, from);
    return to + from.len;
}

enum status store_queue_put(struct store_queue *q, const struct store_put *put,
                            int64_t *ret_revision)
{
    struct store_batch *batch;
    struct queued_revision *one;
    size_t key_len = put->prefix.len + put->key.len;
    size_t value_len = put->value[0].len + put->value[1].len + put->value[2].len;
    TRY(prepare(q, 1, key_len + value_len, &batch, &one));
    uint8_t *key = (uint8_t *)&one->changes[1];
    uint8_t *value = copy(copy(key, put->prefix), put->key);
    (void)copy(copy(copy(value, put->value[0]), put->value[1]), put->value[2]);
    one->changes[0] = (struct imported_change){
        .kv =
            {
                .key = slice_of(key, key_len),
                .value = slice_of(value, value_len),
                .create_revision = put->create_revision ? put->create_revision : q->revision + 1,
                .mod_revision = q->revision + 1,
                .version = (int64_t)put->version,
            },
    };
    add(q, batch, one);
    *ret_revision = q->revision;
    return ST_OK;
}

enum status store_queue_delete(struct store_queue *q, struct slice prefix, const struct slice *keys,
                               size_t count, int64_t *ret_revision)
{
    struct store_batch *batch;
    struct queued_revision *one;
    size_t bytes = count * prefix.len;
    assert(count > 0);
    for (size_t i = 0; i < count; i++)
        bytes += keys[i].len;
    TRY(prepare(q, count, bytes, &batch, &one));
    uint8_t *at = (uint8_t *)&one->changes[count];
    for (size_t i = 0; i < count; i++) {
        uint8_t *key = at;
        at = copy(copy(at, prefix), keys[i]);
        one->changes[i] = (struct imported_change){
            .kv = {.key = slice_of(key, (size_t)(at - key)), .mod_revision = q->revision + 1},
            .sub = (uint32_t)i,
            .is_tombstone = true,
        };
    }
    add(q, batch, one);
    *ret_revision = q->revision;
    return ST_OK;
}

enum status store_queue_reach(struct store_queue *q, int64_t *ret_revision)
{
    struct store_batch *batch;
    TRY(open_batch(q, &batch));
    batch->batch.reach = ++q->revision;
    schedule(q);
    *ret_revision = q->revision;
    return ST_OK;
}

enum status store_queue_compact(struct store_queue *q, int64_t revision)
{
    struct store_batch *batch;
    seal(q); /* it drops history before its own changes, of which it must have none */
    TRY(open_batch(q, &batch));
    batch->batch.compact = revision;
    seal(q);
    schedule(q);
    return ST_OK;
}

/* -- Checks -- */

static size_t check_list(const struct list *batches)
{
    size_t bytes = 0;
    const struct store_batch *batch;
    LIST_FOREACH (batch, batches, in_queue) {
        assert(batch->count <= batch->capacity);
        assert(batch->batch.count <= batch->count);
        bytes += batch->bytes;
    }
    return bytes;
}

void store_queue_check(const struct store_queue *q)
{
    size_t bytes = check_list(&q->waiting) + check_list(&q->given);
    assert(bytes + (q->open ? q->open->bytes : 0) == q->bytes);
    assert(q->failure == ST_OK || !list_empty(&q->given) || q->stopped);
}
