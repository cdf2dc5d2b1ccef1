#include "tier/mirror/currency.h"

#include "base/clock.h"
#include "base/metric/counter.h"
#include "engine/local/mirror/mirror_store.h"
#include "kubeclient/call/kube.h"
#include "tier/mirror/store_queue.h"

#define SILENCE_NS (90 * NS_PER_S)     /* bookmarks come about once a minute */
#define CHECK_WITHIN_NS (5 * NS_PER_S) /* after an outage, at random */
/* A list of many objects takes longer, and most of all on a busy server, to which its readers must
 * not be passed on then. */
#define FENCE_OBJECT_NS (500 * NS_PER_S / 1000000)
#define FENCE_MAX_NS (30 * NS_PER_S)
#define BEHIND_AGAIN_NS (2 * NS_PER_S)
#define BEHIND_NS (5 * NS_PER_S) /* a server that lags longer has another history */

enum {
    BEHIND_MAX = 3,  /* lists in a row that are too old, before they are believed */
    STALLED_MAX = 3, /* fences in a row that are late, before the watch is made again */
    LOST_MAX = 6,    /* … before what is known is not believed any more */
};

static int64_t now_of(const struct tier_currency *c)
{
    return loop_now_ns(c->fence.kube->driver.loop);
}

static void heard(struct tier_currency *c)
{
    c->heard_ns = now_of(c);
    atomic_store_explicit(&c->collection->counters.heard_ns, c->heard_ns, memory_order_relaxed);
}

/* -- One list at a time for each resource -- */

static bool is_same_resource(const struct tier_currency *a, const struct tier_currency *b)
{
    const struct tier_name *x = &a->collection->name, *y = &b->collection->name;
    return slice_equal(x->resource, y->resource) && slice_equal(x->group, y->group) &&
           slice_equal(x->version, y->version);
}

/* False: it is its turn later. */
static bool take_turn(struct tier_currency *c)
{
    const struct tier_currency *other;
    list_remove(&c->in_line);
    LIST_FOREACH (other, &c->line->listing, in_line) {
        if (!is_same_resource(c, other))
            continue;
        list_push_back(&c->line->waiting, &c->in_line);
        return false;
    }
    list_push_back(&c->line->listing, &c->in_line);
    return true;
}

static void leave_line(struct tier_currency *c)
{
    list_remove(&c->in_line);
    if (!list_empty(&c->line->waiting))
        loop_defer(c->line->loop, &c->line->again);
}

static void on_again(struct deferred *deferred)
{
    struct fence_line *line = CONTAINER_OF(deferred, struct fence_line, again);
    struct list waiting, *link;
    list_init(&waiting);
    list_append(&waiting, &line->waiting);
    while ((link = list_pop_front(&waiting)))
        currency_look(LIST_ENTRY(link, struct tier_currency, in_line));
}

void fence_line_init(struct fence_line *line, struct loop *loop)
{
    *line = (struct fence_line){.loop = loop, .again.fn = on_again};
    list_init(&line->listing);
    list_init(&line->waiting);
}

void fence_line_fini(struct fence_line *line)
{
    assert(list_empty(&line->listing) && list_empty(&line->waiting));
    loop_defer_cancel(&line->again);
}

/* -- Ends -- */

static void publish_end(struct tier_currency *c, uint64_t number, bool succeeded)
{
    struct tier_collection *shared = c->collection;
    lock_take(&shared->lock);
    if (shared->fence_ended < number)
        shared->fence_ended = number;
    if (succeeded) {
        shared->fence_succeeded = number;
        shared->fence_revision = c->awaited;
        if (shared->fence_version < c->version)
            shared->fence_version = c->version;
    }
    lock_release(&shared->lock);
    collection_notify(shared, false);
}

static void count_end(struct tier_currency *c, bool succeeded)
{
    struct tier_collection_counters *counters = &c->collection->counters;
    counter_add(&counters->fences_failed, !succeeded);
    counter_add(&counters->fence_ns, (uint64_t)(now_of(c) - c->fence.begun_ns));
}

static void succeed(struct tier_currency *c)
{
    uint64_t number = c->number;
    c->is_matched = false;
    c->number = 0;
    count_end(c, true);
    publish_end(c, number, true);
    currency_look(c);
}

static void on_fence_matched(struct tier_currency *c)
{
    c->late = c->behind = 0;
    c->check_ns = CLOCK_NEVER;
    heard(c);
    if (!c->number) { /* a glance */
        currency_look(c);
        return;
    }
    c->awaited = c->generations->last_revision;
    c->version = c->fence.version;
    c->is_matched = true;
    currency_applied(c);
}

static void on_fence_behind(struct tier_currency *c, const char *reason)
{
    int64_t now_ns = now_of(c);
    if (c->behind++ == 0)
        c->behind_ns = now_ns;
    c->check_ns = now_ns + BEHIND_AGAIN_NS;
    if (c->behind >= BEHIND_MAX && now_ns - c->behind_ns >= BEHIND_NS)
        c->ops->lost(c->ctx, reason, true);
}

static void on_fence_late(struct tier_currency *c, const char *reason)
{
    c->late++;
    if (c->late >= LOST_MAX)
        c->ops->lost(c->ctx, reason, false);
    else if (c->late == STALLED_MAX)
        c->ops->stalled(c->ctx, reason);
}

static void on_fence_listed(struct tier_fence *fence)
{
    leave_line(CONTAINER_OF(fence, struct tier_currency, fence));
}

static void on_fence_done(struct tier_fence *fence, enum tier_fence_end end, const char *reason)
{
    struct tier_currency *c = CONTAINER_OF(fence, struct tier_currency, fence);
    leave_line(c);
    if (end == TIER_FENCE_MATCHED) {
        on_fence_matched(c);
        return;
    }
    uint64_t number = c->number;
    c->number = 0;
    if (number) {
        count_end(c, false);
        publish_end(c, number, false);
    }
    if (end == TIER_FENCE_BEHIND)
        on_fence_behind(c, reason);
    else if (end == TIER_FENCE_LATE)
        on_fence_late(c, reason);
    else if (end == TIER_FENCE_CONTRADICTED)
        c->ops->lost(c->ctx, reason, false);
    currency_look(c);
}

/* -- Beginnings -- */

static int64_t fence_limit(const struct tier_currency *c, const struct objects *objects)
{
    int64_t limit = c->fence_ns + (int64_t)objects_count(objects) * FENCE_OBJECT_NS;
    return limit > FENCE_MAX_NS && c->fence_ns <= FENCE_MAX_NS ? FENCE_MAX_NS : limit;
}

static void begin(struct tier_currency *c, bool glances)
{
    const struct objects *objects = &c->generations->current->objects;
    c->number = 0;
    if (!glances) {
        LOCK_SCOPE(&c->collection->lock);
        c->number = ++c->collection->fence_begun;
        counter_add(&c->collection->counters.fences, 1);
    }
    tier_fence_begin(&c->fence, objects, c->newest, glances, fence_limit(c, objects));
}

static bool is_wanted(const struct tier_currency *c)
{
    LOCK_SCOPE(&c->collection->lock);
    return c->collection->fence_wanted > c->collection->fence_begun;
}

void currency_look(struct tier_currency *c)
{
    if (!c->is_serving || c->is_matched || !is_wanted(c))
        return;
    if (c->fence.state != TIER_FENCE_IDLE && !c->number)
        tier_fence_cancel(&c->fence); /* readers are more urgent than a glance */
    if (c->fence.state != TIER_FENCE_IDLE)
        return;
    if (store_queue_failure(c->generations->queue) != ST_OK)
        currency_fail(c);
    else if (take_turn(c))
        begin(c, false);
}

/* The next state counts as the fence that is cancelled. */
static void cancel(struct tier_currency *c)
{
    tier_fence_cancel(&c->fence);
    leave_line(c);
    c->number = 0;
    c->is_matched = false;
}

void currency_serve(struct tier_currency *c, bool serves)
{
    if (c->is_serving == serves)
        return;
    c->is_serving = serves;
    c->check_ns = c->glance_ns = CLOCK_NEVER;
    c->late = c->behind = 0;
    cancel(c);
    if (serves)
        heard(c);
    currency_look(c);
}

void currency_fail(struct tier_currency *c)
{
    struct tier_collection *shared = c->collection;
    cancel(c);
    lock_take(&shared->lock);
    if (shared->fence_begun < shared->fence_wanted)
        shared->fence_begun = shared->fence_wanted;
    uint64_t begun = shared->fence_begun;
    lock_release(&shared->lock);
    publish_end(c, begun, false);
}

uint64_t currency_state_begins(struct tier_currency *c)
{
    LOCK_SCOPE(&c->collection->lock);
    return ++c->collection->fence_begun;
}

void currency_state_is_published(struct tier_currency *c, uint64_t number)
{
    lock_take(&c->collection->lock);
    c->awaited = c->collection->current.began;
    c->version = tier_versions_oldest(&c->collection->current.versions);
    c->collection->fence_version = 0; /* it was another generation's */
    lock_release(&c->collection->lock);
    publish_end(c, number, true);
}

/* -- Progress -- */

void currency_advance(struct tier_currency *c)
{
    heard(c);
    tier_fence_advance(&c->fence);
}

void currency_applied(struct tier_currency *c)
{
    if (c->is_matched && local_mirror_revision(c->collection->engine) >= c->awaited)
        succeed(c);
}

void currency_check_soon(struct tier_currency *c, bool glance_suffices)
{
    int64_t soon_ns = (int64_t)random_below(&c->random, CHECK_WITHIN_NS);
    if (!c->is_serving)
        return;
    if (glance_suffices)
        c->glance_ns = now_of(c) + soon_ns;
    else
        c->check_ns = now_of(c) + soon_ns;
}

void currency_tick(struct tier_currency *c)
{
    int64_t now_ns = now_of(c);
    if (!c->is_serving || c->is_matched || c->fence.state != TIER_FENCE_IDLE)
        return;
    if (c->check_ns <= now_ns && take_turn(c)) {
        c->check_ns = now_ns + BEHIND_AGAIN_NS; /* if it fails */
        begin(c, false);
    } else if (c->glance_ns <= now_ns || now_ns - c->heard_ns >= SILENCE_NS) {
        c->glance_ns = CLOCK_NEVER;
        c->heard_ns = now_ns; /* not again at once */
        begin(c, true);
    }
}

/* -- Life -- */

void currency_init(struct tier_currency *c, struct tier_collection *collection,
                   struct tier_generations *generations, const uint64_t *newest,
                   struct vigil_kube *kube, struct request_queue *queue, struct fence_line *line,
                   const struct fetcher_scope *scope, int64_t fence_ns, uint64_t seed,
                   const struct tier_currency_ops *ops, void *ctx)
{
    static const struct tier_fence_ops fence_ops = {.listed = on_fence_listed,
                                                    .done = on_fence_done};
    *c = (struct tier_currency){
        .ops = ops,
        .ctx = ctx,
        .collection = collection,
        .generations = generations,
        .newest = newest,
        .line = line,
        .fence_ns = fence_ns,
        .check_ns = CLOCK_NEVER,
        .glance_ns = CLOCK_NEVER,
    };
    list_init(&c->in_line);
    random_init(&c->random, seed);
    tier_fence_init(&c->fence, kube, queue, &scope->target, scope->accept_list, &fence_ops);
}

void currency_fini(struct tier_currency *c)
{
    cancel(c);
    tier_fence_fini(&c->fence);
}
