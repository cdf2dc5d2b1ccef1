#include "mirror/follow/apply_queue.h"

#include "base/lock.h"
#include "base/xalloc.h"
#include "client/driver/driver.h"

struct feeder {
    struct feeder_options options;
    unsigned batches; /* in flight, for the follower's thread */
    size_t bytes;
    struct list refused; /* feeder_batch.in_refused, in the order in which they were given */

    struct lock lock;
    pthread_cond_t changed;
    unsigned unfinished; /* protected by the lock: batches that exist */
};

struct feeder_batch {
    struct mirror_batch batch;
    struct feeder *feeder;
    struct driver_command returned;
    struct merge_taken taken;
    struct load_part part;
    bool is_state; /* a part of one, or its end */
    struct list in_refused;
    int64_t visible; /* to readers when it is applied; 0: nothing new */
    size_t bytes;
    enum status status;
};

struct feeder *feeder_new(const struct feeder_options *options)
{
    struct feeder *feeder = xcalloc(1, sizeof(*feeder));
    feeder->options = *options;
    list_init(&feeder->refused);
    lock_init(&feeder->lock);
    pthread_cond_init(&feeder->changed, NULL);
    driver_ref(options->driver);
    return feeder;
}

bool feeder_has_room(const struct feeder *feeder)
{
    return feeder->batches < FEEDER_BATCHES_MAX;
}

bool feeder_is_idle(const struct feeder *feeder)
{
    return feeder->batches == 0;
}

size_t feeder_bytes(const struct feeder *feeder)
{
    return feeder->bytes;
}

static void batch_free(struct feeder_batch *batch)
{
    struct feeder *feeder = batch->feeder;
    merge_taken_fini(&batch->taken);
    load_part_fini(&batch->part);
    free(batch);
    lock_take(&feeder->lock);
    feeder->unfinished--;
    pthread_cond_broadcast(&feeder->changed);
    lock_release(&feeder->lock);
}

void feeder_free(struct feeder *feeder)
{
    struct list *link;
    if (!feeder)
        return;
    while ((link = list_pop_front(&feeder->refused)))
        batch_free(LIST_ENTRY(link, struct feeder_batch, in_refused));
    lock_take(&feeder->lock);
    while (feeder->unfinished)
        lock_wait(&feeder->lock, &feeder->changed);
    lock_release(&feeder->lock);
    driver_unref(feeder->options.driver);
    pthread_cond_destroy(&feeder->changed);
    lock_fini(&feeder->lock);
    free(feeder);
}

/* The mirror had no space for it, or could not make a file. */
static bool may_fit_later(enum status status)
{
    return status == ST_DISK_FULL || status == ST_IO || status == ST_NOMEM;
}

/* Frees it, unless it can be given again. */
static void settle(struct feeder_batch *batch)
{
    if (batch->is_state && may_fit_later(batch->status) && !batch->feeder->options.driver->ended)
        list_push_back(&batch->feeder->refused, &batch->in_refused);
    else
        batch_free(batch);
}

/* On the follower's thread; or, when its loop has ended, on any. */
static void batch_returned(struct driver_command *command)
{
    struct feeder_batch *batch = CONTAINER_OF(command, struct feeder_batch, returned);
    struct feeder *feeder = batch->feeder;
    enum status status = batch->status;
    bool ended = feeder->options.driver->ended;
    feeder->batches--;
    feeder->bytes -= batch->bytes;
    settle(batch);
    if (!ended)
        feeder->options.done(feeder->options.ctx, status);
}

/* On the writer's thread. */
static void applied(struct mirror_batch *mirror_batch, enum status status)
{
    struct feeder_batch *batch = mirror_batch->user;
    struct feeder *feeder = batch->feeder;
    batch->status = status;
    if (status == ST_OK && batch->visible)
        feeder->options.visible(feeder->options.ctx, batch->visible);
    driver_post(feeder->options.driver, &batch->returned);
}

static struct feeder_batch *batch_new(struct feeder *feeder)
{
    struct feeder_batch *batch = xcalloc(1, sizeof(*batch));
    batch->feeder = feeder;
    batch->returned.run = batch_returned;
    list_init(&batch->in_refused);
    batch->batch.done = applied;
    batch->batch.user = batch;
    lock_take(&feeder->lock);
    feeder->unfinished++;
    lock_release(&feeder->lock);
    return batch;
}

static void give(struct feeder_batch *batch)
{
    batch->feeder->batches++;
    batch->feeder->bytes += batch->bytes;
    local_mirror_apply(batch->feeder->options.mirror, &batch->batch);
}

void feeder_give(struct feeder *feeder, struct merge_taken *taken)
{
    struct feeder_batch *batch = batch_new(feeder);
    batch->taken = *taken;
    *taken = (struct merge_taken){0};
    batch->bytes = batch->taken.bytes;
    batch->visible = batch->taken.reach;
    batch->batch.revisions = batch->taken.revisions;
    batch->batch.count = batch->taken.count;
    batch->batch.reach = batch->taken.reach;
    give(batch);
}

void feeder_give_part(struct feeder *feeder, struct load_part *part, int64_t revision)
{
    struct feeder_batch *batch = batch_new(feeder);
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

bool feeder_has_refused(const struct feeder *feeder)
{
    return !list_empty(&feeder->refused);
}

void feeder_give_again(struct feeder *feeder)
{
    struct list *link;
    assert(feeder_is_idle(feeder));
    while ((link = list_pop_front(&feeder->refused))) {
        struct feeder_batch *batch = LIST_ENTRY(link, struct feeder_batch, in_refused);
        if (batch->batch.applied)
            batch->batch.revisions += batch->batch.applied;
        batch->batch.count -= batch->batch.applied;
        give(batch);
    }
}

void feeder_reach(struct feeder *feeder, int64_t revision)
{
    struct feeder_batch *batch = batch_new(feeder);
    batch->is_state = true;
    batch->batch.reach = batch->visible = revision;
    give(batch);
}

void feeder_compact(struct feeder *feeder, int64_t revision)
{
    struct feeder_batch *batch = batch_new(feeder);
    batch->batch.compact = revision;
    give(batch);
}

/* -- Intake -- */

bool intake_regulate(struct intake *intake, const struct merge *merge, const struct feeder *feeder)
{
    size_t bytes = merge_bytes(merge) + feeder_bytes(feeder);
    size_t limit = intake->is_paused ? intake->queued_max / 2 : intake->queued_max;
    bool paused = bytes > limit && !feeder_is_idle(feeder);
    if (paused == intake->is_paused)
        return false;
    intake->is_paused = paused;
    return true;
}

bool intake_is_beyond(const struct intake *intake, const struct merge *merge)
{
    return merge_waits(merge) && merge_bytes(merge) > intake->waiting_max;
}
