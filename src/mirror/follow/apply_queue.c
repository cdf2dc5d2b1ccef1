#include "mirror/follow/apply_queue.h"

#include "base/lock.h"
#include "base/xalloc.h"
#include "client/driver/driver.h"

struct apply_queue {
    struct apply_queue_options options;
    unsigned batches; /* in flight, for the follower's thread */
    size_t bytes;
    struct list refused; /* apply_queue_batch.in_refused, in the order in which they were given */

    struct lock lock;
    pthread_cond_t changed;
    unsigned unfinished; /* protected by the lock: batches that exist */
};

struct apply_queue_batch {
    struct mirror_batch batch;
    struct apply_queue *queue;
    struct driver_command returned;
    struct merge_taken taken;
    struct load_part part;
    bool is_state; /* a part of one, or its end */
    struct list in_refused;
    int64_t visible; /* to readers when it is applied; 0: nothing new */
    size_t bytes;
    enum status status;
};

struct apply_queue *apply_queue_new(const struct apply_queue_options *options)
{
    struct apply_queue *queue = xcalloc(1, sizeof(*queue));
    queue->options = *options;
    list_init(&queue->refused);
    lock_init(&queue->lock);
    pthread_cond_init(&queue->changed, NULL);
    driver_ref(options->driver);
    return queue;
}

bool apply_queue_has_room(const struct apply_queue *queue)
{
    return queue->batches < APPLY_QUEUE_BATCHES_MAX;
}

bool apply_queue_is_idle(const struct apply_queue *queue)
{
    return queue->batches == 0;
}

size_t apply_queue_bytes(const struct apply_queue *queue)
{
    return queue->bytes;
}

static void batch_free(struct apply_queue_batch *batch)
{
    struct apply_queue *queue = batch->queue;
    merge_taken_fini(&batch->taken);
    load_part_fini(&batch->part);
    free(batch);
    lock_take(&queue->lock);
    queue->unfinished--;
    pthread_cond_broadcast(&queue->changed);
    lock_release(&queue->lock);
}

void apply_queue_free(struct apply_queue *queue)
{
    struct list *link;
    if (!queue)
        return;
    while ((link = list_pop_front(&queue->refused)))
        batch_free(LIST_ENTRY(link, struct apply_queue_batch, in_refused));
    lock_take(&queue->lock);
    while (queue->unfinished)
        lock_wait(&queue->lock, &queue->changed);
    lock_release(&queue->lock);
    driver_unref(queue->options.driver);
    pthread_cond_destroy(&queue->changed);
    lock_fini(&queue->lock);
    free(queue);
}

/* The mirror had no space for it, or could not make a file. */
static bool may_fit_later(enum status status)
{
    return status == ST_DISK_FULL || status == ST_IO || status == ST_NOMEM;
}

/* Frees it, unless it can be given again. */
static void settle(struct apply_queue_batch *batch)
{
    if (batch->is_state && may_fit_later(batch->status) && !batch->queue->options.driver->ended)
        list_push_back(&batch->queue->refused, &batch->in_refused);
    else
        batch_free(batch);
}

/* On the follower's thread; or, when its loop has ended, on any. */
static void batch_returned(struct driver_command *command)
{
    struct apply_queue_batch *batch = CONTAINER_OF(command, struct apply_queue_batch, returned);
    struct apply_queue *queue = batch->queue;
    enum status status = batch->status;
    bool ended = queue->options.driver->ended;
    queue->batches--;
    queue->bytes -= batch->bytes;
    settle(batch);
    if (!ended)
        queue->options.done(queue->options.ctx, status);
}

/* On the writer's thread. */
static void applied(struct mirror_batch *mirror_batch, enum status status)
{
    struct apply_queue_batch *batch = mirror_batch->user;
    struct apply_queue *queue = batch->queue;
    batch->status = status;
    if (status == ST_OK && batch->visible)
        queue->options.visible(queue->options.ctx, batch->visible);
    driver_post(queue->options.driver, &batch->returned);
}

static struct apply_queue_batch *batch_new(struct apply_queue *queue)
{
    struct apply_queue_batch *batch = xcalloc(1, sizeof(*batch));
    batch->queue = queue;
    batch->returned.run = batch_returned;
    list_init(&batch->in_refused);
    batch->batch.done = applied;
    batch->batch.user = batch;
    lock_take(&queue->lock);
    queue->unfinished++;
    lock_release(&queue->lock);
    return batch;
}

static void give(struct apply_queue_batch *batch)
{
    batch->queue->batches++;
    batch->queue->bytes += batch->bytes;
    local_mirror_apply(batch->queue->options.mirror, &batch->batch);
}

void apply_queue_push(struct apply_queue *queue, struct merge_taken *taken)
{
    struct apply_queue_batch *batch = batch_new(queue);
    batch->taken = *taken;
    *taken = (struct merge_taken){0};
    batch->bytes = batch->taken.bytes;
    batch->visible = batch->taken.reach;
    batch->batch.revisions = batch->taken.revisions;
    batch->batch.count = batch->taken.count;
    batch->batch.reach = batch->taken.reach;
    give(batch);
}

void apply_queue_push_part(struct apply_queue *queue, struct load_part *part, int64_t revision)
{
    struct apply_queue_batch *batch = batch_new(queue);
    batch->is_state = true;
    batch->part = *part;
    *part = (struct load_part){0};
    batch->batch.revisions = batch->part.revisions;
    batch->batch.count = batch->part.count;
    batch->batch.compact = revision;
    batch->batch.is_part = !batch->part.is_last;
    if (batch->part.is_last)
        batch->batch.reach = batch->visible = revision;
    give(batch);
}

bool apply_queue_has_refused(const struct apply_queue *queue)
{
    return !list_empty(&queue->refused);
}

void apply_queue_retry(struct apply_queue *queue)
{
    struct list *link;
    assert(apply_queue_is_idle(queue));
    while ((link = list_pop_front(&queue->refused))) {
        struct apply_queue_batch *batch = LIST_ENTRY(link, struct apply_queue_batch, in_refused);
        if (batch->batch.applied)
            batch->batch.revisions += batch->batch.applied;
        batch->batch.count -= batch->batch.applied;
        give(batch);
    }
}

void apply_queue_reach(struct apply_queue *queue, int64_t revision)
{
    struct apply_queue_batch *batch = batch_new(queue);
    batch->is_state = true;
    batch->batch.reach = batch->visible = revision;
    give(batch);
}

void apply_queue_compact(struct apply_queue *queue, int64_t revision)
{
    struct apply_queue_batch *batch = batch_new(queue);
    batch->batch.compact = revision;
    give(batch);
}

/* -- Intake -- */

bool intake_regulate(struct intake *intake, const struct merge *merge,
                     const struct apply_queue *queue)
{
    size_t bytes = merge_bytes(merge) + apply_queue_bytes(queue);
    size_t limit = intake->is_paused ? intake->queued_max / 2 : intake->queued_max;
    bool paused = bytes > limit && !apply_queue_is_idle(queue);
    if (paused == intake->is_paused)
        return false;
    intake->is_paused = paused;
    return true;
}

bool intake_is_beyond(const struct intake *intake, const struct merge *merge)
{
    return merge_waits(merge) && merge_bytes(merge) > intake->waiting_max;
}
