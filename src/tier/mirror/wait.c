#include "tier/mirror/wait.h"

#include "base/clock.h"
#include "base/metric/counter.h"
#include "base/xalloc.h"
#include "engine/local/mirror/mirror_store.h"
#include "tier/mirror/collection_private.h"

#include <sched.h>

/* A version that does not arrive within this time may be one of another resource, so that only a
 * fence can show that it was reached. */
#define PATIENCE_NS (100 * NS_PER_MS)

struct tier_reader {
    struct loop *loop;
    struct mailbox mailbox;
    struct list uses; /* tier_reader_use.in_reader, also those that are over */
};

static void on_message(void *owner, struct mailbox_node *node);

struct tier_reader *tier_reader_new(struct tier_mirror *mirror, struct loop *loop)
{
    struct tier_reader *reader = xcalloc_aligned(_Alignof(struct tier_reader), sizeof(*reader));
    (void)mirror;
    reader->loop = loop;
    list_init(&reader->uses);
    loop_attach(loop, &reader->mailbox, on_message, reader);
    return reader;
}

void tier_reader_free(struct tier_reader *reader)
{
    if (!reader)
        return;
    mailbox_detach(&reader->mailbox);
    /* Those that are over wait for a message that the follower is about to post. */
    while (!list_empty(&reader->uses)) {
        struct mailbox_node *node = mailbox_take(&reader->mailbox), *next;
        for (; node; node = next) {
            next = node->next;
            on_message(reader, node);
        }
        if (!list_empty(&reader->uses))
            sched_yield();
    }
    free(reader);
}

/* -- What a reader has in a collection -- */

static struct tier_reader_use *take_use(struct tier_reader *reader,
                                        struct tier_collection *collection)
{
    struct tier_reader_use *use;
    LIST_FOREACH (use, &reader->uses, in_reader)
        if (use->collection == collection && !use->is_over)
            return use;
    use = xcalloc(1, sizeof(*use));
    *use = (struct tier_reader_use){
        .collection = collection, .mailbox = &reader->mailbox, .reader = reader};
    list_init(&use->waits);
    list_init(&use->listeners);
    list_push_front(&reader->uses, &use->in_reader);
    LOCK_SCOPE(&collection->lock);
    list_push_back(&collection->uses, &use->in_collection);
    return use;
}

static void use_free(struct tier_reader_use *use)
{
    list_remove(&use->in_reader);
    free(use);
}

/* Leaves the collection if nothing is wanted of it any more. */
static void drop_use(struct tier_reader_use *use)
{
    if (use->busy || !list_empty(&use->waits) || !list_empty(&use->listeners))
        return;
    lock_take(&use->collection->lock);
    list_remove(&use->in_collection);
    use->is_over = use->posted;
    lock_release(&use->collection->lock);
    if (!use->is_over)
        use_free(use);
}

/* -- Listeners -- */

void tier_reader_listen(struct tier_reader *reader, struct tier_change_listener *listener,
                        struct tier_collection *collection)
{
    assert(!listener->use);
    listener->use = take_use(reader, collection);
    list_push_back(&listener->use->listeners, &listener->in_use);
}

void tier_reader_unlisten(struct tier_change_listener *listener)
{
    if (!listener->use)
        return;
    list_remove(&listener->in_use);
    drop_use(TAKE(listener->use));
}

/* Without those that are removed, and those that are added, meanwhile. */
static void tell_listeners(struct tier_reader_use *use)
{
    struct list told, *link;
    list_init(&told);
    list_append(&told, &use->listeners);
    while ((link = list_pop_front(&told))) {
        struct tier_change_listener *listener =
            LIST_ENTRY(link, struct tier_change_listener, in_use);
        list_push_back(&use->listeners, link);
        listener->changed(listener);
    }
}

/* -- Waits -- */

static void set_timer(struct tier_wait *wait)
{
    struct loop *loop = wait->use->reader->loop;
    int64_t at_ns = wait->until_ns;
    int64_t patient_ns = loop_now_ns(loop) + PATIENCE_NS;
    if (wait->kind == TIER_WAIT_VERSION && !wait->fence && patient_ns < at_ns)
        at_ns = patient_ns;
    loop_timer_set(loop, &wait->timer, at_ns);
}

/* With the lock held: the next fence that is begun is wanted. True: the follower must be woken. */
static bool want_fence(struct tier_wait *wait)
{
    struct tier_collection *c = wait->use->collection;
    wait->fence = c->fence_begun + 1;
    if (c->fence_wanted >= wait->fence)
        return false;
    c->fence_wanted = wait->fence;
    return true;
}

static enum status examine_version(struct tier_wait *wait)
{
    struct tier_collection *c = wait->use->collection;
    if (!c->current.number)
        return ST_AGAIN;
    if (collection_visible_version(c) >= wait->version) {
        if (!tier_versions_revision(&c->current.versions, wait->version, &wait->revision))
            wait->revision = c->current.began; /* older than everything that is kept */
        return ST_OK;
    }
    if (c->fence_version < wait->version)
        return ST_AGAIN;
    wait->revision = c->fence_revision;
    return ST_OK;
}

static enum status examine_fence(struct tier_wait *wait)
{
    const struct tier_collection *c = wait->use->collection;
    if (c->fence_succeeded >= wait->fence) {
        wait->revision = c->fence_revision;
        wait->version = c->fence_version;
        return ST_OK;
    }
    return c->fence_ended >= wait->fence ? ST_UNAVAILABLE : ST_AGAIN;
}

static enum status examine_kind(struct tier_wait *wait)
{
    const struct tier_collection *c = wait->use->collection;
    if (c->phase == TIER_REFUSED)
        return ST_UNAVAILABLE;
    switch (wait->kind) {
    case TIER_WAIT_VERSION:
        return examine_version(wait);
    case TIER_WAIT_CURRENT:
        return examine_fence(wait);
    default:
        wait->revision = c->current.began;
        if (!c->current.number && c->fails && wait->ends_with_failure)
            return ST_UNAVAILABLE;
        return c->current.number ? ST_OK : ST_AGAIN;
    }
}

/* With the lock held. ST_AGAIN: it continues. */
static enum status examine(struct tier_wait *wait)
{
    const struct tier_collection *c = wait->use->collection;
    enum status status = examine_kind(wait);
    /* The last change of a quiet collection may be older than the store's history, which cannot be
     * read. Its state is the same at the revision where the history begins. */
    if (status == ST_OK && wait->revision < c->compacted)
        wait->revision = c->compacted;
    return status;
}

/* It is idle afterwards; its use may be gone. */
static void leave(struct tier_wait *wait)
{
    struct tier_reader_use *use = TAKE(wait->use);
    loop_timer_cancel(use->reader->loop, &wait->timer);
    loop_defer_cancel(&wait->soon);
    list_remove(&wait->in_use);
    lock_take(&use->collection->lock);
    use->waiting--;
    lock_release(&use->collection->lock);
    drop_use(use);
}

static void finish(struct tier_wait *wait, enum status status)
{
    counter_add(&wait->use->collection->counters.waits_failed, status != ST_OK);
    leave(wait);
    wait->done(wait, status);
}

static void on_soon(struct deferred *deferred)
{
    struct tier_wait *wait = CONTAINER_OF(deferred, struct tier_wait, soon);
    finish(wait, wait->result);
}

static void on_timer(struct timer *timer)
{
    struct tier_wait *wait = CONTAINER_OF(timer, struct tier_wait, timer);
    struct tier_collection *c = wait->use->collection;
    lock_take(&c->lock);
    enum status status = examine(wait);
    bool is_over = loop_now_ns(wait->use->reader->loop) >= wait->until_ns;
    bool wakes = status == ST_AGAIN && !is_over && want_fence(wait);
    lock_release(&c->lock);
    if (wakes)
        collection_wake_follower(c);
    if (status != ST_AGAIN || is_over)
        finish(wait, status == ST_AGAIN ? ST_TIMEOUT : status);
    else
        set_timer(wait);
}

void tier_wait_start(struct tier_reader *reader, struct tier_wait *wait,
                     struct tier_collection *collection)
{
    assert(!wait->use);
    bool wakes = false;
    wait->use = take_use(reader, collection);
    wait->fence = 0;
    wait->timer.fn = on_timer;
    wait->soon.fn = on_soon;
    wait->until_ns = clock_add(loop_now_ns(reader->loop), wait->timeout_ns);
    list_push_back(&wait->use->waits, &wait->in_use);
    counter_add(&collection->counters.waits, 1);
    lock_take(&collection->lock);
    wait->use->waiting++;
    if (wait->kind == TIER_WAIT_CURRENT)
        wakes = want_fence(wait);
    wait->result = examine(wait);
    lock_release(&collection->lock);
    if (wakes)
        collection_wake_follower(collection);
    if (wait->result == ST_AGAIN)
        set_timer(wait);
    else
        loop_defer(reader->loop, &wait->soon);
}

void tier_wait_cancel(struct tier_wait *wait)
{
    if (wait->use)
        leave(wait);
}

/* Moves those that are over to a list, with their results. */
static void take_over(struct tier_reader_use *use, struct list *over)
{
    struct tier_wait *wait, *following;
    LIST_FOREACH_SAFE (wait, following, &use->waits, in_use) {
        if (wait->soon.in_loop.next && !list_empty(&wait->soon.in_loop))
            continue; /* it is over already */
        wait->result = examine(wait);
        if (wait->result == ST_AGAIN)
            continue;
        list_remove(&wait->in_use);
        list_push_back(over, &wait->in_use);
    }
}

static void on_message(void *owner, struct mailbox_node *node)
{
    struct tier_reader_use *use = CONTAINER_OF(node, struct tier_reader_use, node);
    struct list over, *link;
    (void)owner;
    if (use->is_over) {
        use_free(use);
        return;
    }
    list_init(&over);
    lock_take(&use->collection->lock);
    bool changed = use->changed;
    use->changed = use->posted = false;
    take_over(use, &over);
    lock_release(&use->collection->lock);
    use->busy = true;
    while ((link = list_pop_front(&over))) {
        struct tier_wait *wait = LIST_ENTRY(link, struct tier_wait, in_use);
        finish(wait, wait->result);
    }
    if (changed)
        tell_listeners(use);
    use->busy = false;
    drop_use(use);
}
