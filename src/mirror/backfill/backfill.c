#include "mirror/backfill/backfill.h"

#include "base/xalloc.h"
#include "io/loop.h"
#include "mirror/backfill/fetch.h"
#include "watch/hub.h"

enum {
    NEAR = 4096,           /* revisions: a fetch this little behind is waited for */
    WANTS_MAX = 256,       /* revisions that wait for a fetch; others are requested again */
    TURN_UNITS = 8192,     /* events read in one turn: about a millisecond */
    AHEAD_BYTES = 2 << 20, /* received before it is needed */
    SHARE_BYTES = 8 << 20, /* after this much a fetch makes room for others that wait */
};

static const int64_t look_ns = NS_PER_S, idle_ns = 10 * NS_PER_S, moment_ns = 200 * NS_PER_MS,
                     doubt_look_ns = 10 * NS_PER_MS, doubt_wait_ns = NS_PER_S;

struct backfill {
    struct watch_history base;
    struct watch_history *own;
    struct backfill_options options;
    struct backfill_calls calls;
    bool started; /* it has calls */
    struct watch_hub *hub;
    struct event_ranges store;
    struct list fetches;
    unsigned fetch_count;
    uint64_t fetches_started;
    int64_t wants[WANTS_MAX]; /* revisions from which a fetch is needed; the oldest wish first */
    size_t want_count;
    struct ranges ranges; /* ranges of the prefixes, in the order in which the mirror merges them */
    bool is_short;        /* memory was short when it was last looked at */
    struct deferred work;
    struct timer look; /* for what is idle */
    /* While it is not known whether the cluster still has the mirror's past. */
    int64_t doubtful_until; /* the hub had read up to this revision by then; 0: there is no doubt */
    uint64_t doubted_after; /* the connection, counted from 1, whose end was the reason */
    int64_t doubted_ns;     /* when that was noticed */
    bool is_stale;          /* what was fetched before must be dropped at the end of the turn */
    bool asks_cluster;      /* the comparison takes long: what is doubtful is fetched */
    struct timer doubt;     /* set while there is doubt */
};

/* A long revision of the past, or of the mirror. */
struct watch_held {
    struct backfill *backfill;
    struct watch_held *own;    /* held by the mirror; NULL: by the past */
    struct event_range *range; /* a reference */
    const struct backfill_revision *revision;
};

static struct backfill *backfill_of(struct watch_history *base)
{
    return CONTAINER_OF(base, struct backfill, base);
}

static struct backfill_fetch *fetch_of(struct list *link)
{
    return LIST_ENTRY(link, struct backfill_fetch, in_backfill);
}

/* The first revision that the mirror has. If it has just been compacted, it may have a state that
 * was loaded at its compact revision, instead of a history. */
static int64_t oldest(const struct backfill *backfill)
{
    int64_t known = atomic_load(backfill->options.cluster.oldest);
    int64_t own = backfill->own->ops->compact_revision(backfill->own);
    return own > known ? own + 1 : known;
}

/* -- Doubt -- */

/*
 * Between the end of a connection and the comparison of histories that follows the next one, the
 * cluster may be restored to another history, and a new watch would show events that never happened
 * there. So readers wait for the comparison, and if it takes long, because no quorum answers it,
 * they read what a member has, not what the mirror has. What was received before the end and not
 * shown yet goes to the watches that have waited for it.
 */
static void judge(struct backfill *backfill)
{
    const atomic_bool *connected = backfill->options.cluster.connected; /* NULL: always */
    if (LIKELY(!connected || atomic_load(connected)) || !backfill->started) {
        backfill->doubtful_until = 0;
        return;
    }
    uint64_t connection = atomic_load(backfill->options.cluster.times_connected) + 1;
    if (backfill->doubted_after == connection)
        return;
    backfill->doubted_after = connection;
    backfill->doubtful_until = watch_hub_revision(backfill->hub);
    backfill->doubted_ns = loop_now_ns(backfill->options.loop);
    backfill->is_stale = true;
    backfill->asks_cluster = false;
    loop_timer_set(backfill->options.loop, &backfill->doubt,
                   clock_add(backfill->doubted_ns, doubt_look_ns));
}

static void on_doubt(struct timer *timer)
{
    struct backfill *backfill = CONTAINER_OF(timer, struct backfill, doubt);
    int64_t now_ns = loop_now_ns(backfill->options.loop);
    judge(backfill);
    bool asked = backfill->asks_cluster;
    backfill->asks_cluster = now_ns - backfill->doubted_ns >= doubt_wait_ns;
    if (backfill->doubtful_until)
        loop_timer_set(backfill->options.loop, timer, clock_add(now_ns, doubt_look_ns));
    if (!backfill->doubtful_until || backfill->asks_cluster != asked)
        watch_hub_history_ready(backfill->hub);
}

/* The first revision that is read from the mirror. */
static int64_t first_certain(const struct backfill *backfill)
{
    int64_t first = oldest(backfill);
    return backfill->doubtful_until >= first ? backfill->doubtful_until + 1 : first;
}

/* -- Fetches -- */

static void work_soon(struct backfill *backfill)
{
    if (backfill->started)
        loop_defer(backfill->options.loop, &backfill->work);
}

static void source_changed(void *ctx)
{
    work_soon(ctx);
}

static void fetch_start(struct backfill *backfill, int64_t from)
{
    struct range all = range_all();
    /* Progress says that a range without events is complete. Where it is not reliable, all keys are
     * watched, because every revision has some event. */
    bool filtered =
        backfill->ranges.count > 1 && !atomic_load(backfill->options.cluster.progress_reliable);
    struct backfill_fetch *fetch = backfill_fetch_new(
        &(struct backfill_fetch_options){
            .source = {.loop = backfill->options.loop,
                       .calls = &backfill->calls,
                       .cluster = backfill->options.cluster,
                       .prefixes = backfill->ranges.prefixes,
                       .prefix_count = filtered ? backfill->ranges.prefix_count : 0,
                       .counted = &backfill->store.bytes,
                       .revision_bytes_max = backfill->options.revision_bytes_max,
                       .changed = source_changed,
                       .ctx = backfill},
            .store = &backfill->store,
            .ranges = filtered ? &all : backfill->ranges.items,
            .range_count = filtered ? 1 : backfill->ranges.count,
            .ahead_bytes = AHEAD_BYTES,
        },
        from);
    list_push_back(&backfill->fetches, &fetch->in_backfill);
    backfill->fetch_count++;
    backfill->fetches_started++;
    backfill_fetch_want(fetch);
    if (!backfill->look.set)
        loop_timer_set(backfill->options.loop, &backfill->look,
                       clock_add(loop_now_ns(backfill->options.loop), look_ns));
}

static void fetch_end(struct backfill *backfill, struct backfill_fetch *fetch)
{
    backfill_fetch_free(fetch);
    backfill->fetch_count--;
}

/* The fetch that will bring this revision soon; NULL: none. */
static struct backfill_fetch *fetch_near(const struct backfill *backfill, int64_t revision)
{
    struct backfill_fetch *fetch;
    LIST_FOREACH (fetch, &backfill->fetches, in_backfill)
        if (fetch->at <= revision && revision - fetch->at <= NEAR)
            return fetch;
    return NULL;
}

/* It has reached what is known already. */
static bool fetch_has_arrived(const struct backfill *backfill, const struct backfill_fetch *fetch)
{
    if (fetch->at >= first_certain(backfill) ||
        event_ranges_gap_end(&backfill->store, fetch->at) <= fetch->at)
        return true;
    const struct backfill_fetch *other;
    LIST_FOREACH (other, &backfill->fetches, in_backfill)
        if (other != fetch && other->at == fetch->at)
            return true;
    return false;
}

/* A fetch that can be ended for another one: no watch has needed it for a moment, or it has brought
 * its share. NULL: none. */
static struct backfill_fetch *find_replaceable(const struct backfill *backfill)
{
    int64_t before_ns = loop_now_ns(backfill->options.loop) - moment_ns;
    struct backfill_fetch *fetch, *found = NULL;
    LIST_FOREACH (fetch, &backfill->fetches, in_backfill) {
        bool may = (!fetch->waiting && fetch->wanted_ns < before_ns) ||
                   fetch->started_bytes >= SHARE_BYTES;
        if (may && (!found || fetch->wanted_ns < found->wanted_ns))
            found = fetch;
    }
    return found;
}

/* -- Wants -- */

/* Whether another one, just before it, will bring this revision. */
static bool is_wanted(const struct backfill *backfill, int64_t revision)
{
    for (size_t i = 0; i < backfill->want_count; i++)
        if (backfill->wants[i] <= revision && revision - backfill->wants[i] <= NEAR)
            return true;
    return false;
}

static void want(struct backfill *backfill, int64_t revision)
{
    struct backfill_fetch *fetch = fetch_near(backfill, revision);
    if (fetch) {
        backfill_fetch_want(fetch);
        work_soon(backfill);
        return;
    }
    if (backfill->want_count == WANTS_MAX || is_wanted(backfill, revision))
        return;
    backfill->wants[backfill->want_count++] = revision;
    work_soon(backfill);
}

static bool is_served(struct backfill *backfill, int64_t revision)
{
    return revision >= first_certain(backfill) ||
           event_ranges_gap_end(&backfill->store, revision) <= revision ||
           revision < atomic_load(backfill->options.cluster.compacted) ||
           fetch_near(backfill, revision);
}

/* Returns whether readers may continue: one whose revision was compacted, or is brought by another
 * fetch since it has asked, must ask again, because no fetch is started for it. */
static bool start_wanted(struct backfill *backfill)
{
    bool ready = false;
    while (backfill->want_count) {
        int64_t revision = backfill->wants[0];
        if (is_served(backfill, revision)) {
            ready = true;
        } else {
            struct backfill_fetch *old =
                backfill->fetch_count < BACKFILL_FETCHES_MAX ? NULL : find_replaceable(backfill);
            if (old)
                fetch_end(backfill, old);
            /* All fetches are still needed, so this revision and those after it wait for one. */
            if (backfill->fetch_count == BACKFILL_FETCHES_MAX)
                return ready;
            fetch_start(backfill, revision);
        }
        memmove(&backfill->wants[0], &backfill->wants[1],
                --backfill->want_count * sizeof(backfill->wants[0]));
    }
    return ready;
}

/* -- Work -- */

/* What no watch waits for is given up. */
static void end_unwanted(struct backfill *backfill)
{
    struct list *link = backfill->fetches.next;
    while (link != &backfill->fetches) {
        struct backfill_fetch *fetch = fetch_of(link);
        link = link->next;
        if (!fetch->waiting)
            fetch_end(backfill, fetch);
    }
}

/* Lets fetches receive, as far as memory allows. If it is short, only the first of them may, and
 * only what it lacks to complete a revision. */
static void flow(struct backfill *backfill)
{
    event_ranges_shrink(&backfill->store, backfill->options.bytes_max);
    backfill->is_short = backfill->store.bytes > backfill->options.bytes_max;
    if (backfill->is_short)
        end_unwanted(backfill);
    struct backfill_fetch *fetch;
    bool first = true;
    LIST_FOREACH (fetch, &backfill->fetches, in_backfill) {
        enum backfill_flow when_short = first ? BACKFILL_FLOW_BEHIND : BACKFILL_FLOW_NONE;
        enum backfill_flow usually =
            backfill_fetch_is_wanted(fetch) ? BACKFILL_FLOW_ALL : BACKFILL_FLOW_NONE;
        backfill_fetch_flow(fetch, backfill->is_short ? when_short : usually);
        first = false;
    }
}

/* Returns whether readers may continue. */
static bool fetch_work(struct backfill *backfill, struct backfill_fetch *fetch, size_t *units,
                       bool *more)
{
    bool stored;
    *more |= backfill_fetch_step(fetch, units, &stored);
    int64_t compacted = backfill_fetch_compact_revision(fetch);
    if (compacted)
        backfill->options.compacted(backfill->options.ctx, compacted);
    if (!compacted && !backfill_fetch_is_over(fetch) && !fetch_has_arrived(backfill, fetch))
        return stored;
    fetch_end(backfill, fetch);
    return true;
}

static void work(struct deferred *deferred)
{
    struct backfill *backfill = CONTAINER_OF(deferred, struct backfill, work);
    size_t units = TURN_UNITS;
    backfill->store.now_ns = loop_now_ns(backfill->options.loop);
    judge(backfill);
    bool more = false, ready = false;
    struct list *link = backfill->fetches.next;
    while (link != &backfill->fetches) {
        struct backfill_fetch *fetch = fetch_of(link);
        link = link->next;
        ready |= fetch_work(backfill, fetch, &units, &more);
    }
    ready |= start_wanted(backfill);
    flow(backfill);
    if (more)
        work_soon(backfill);
    if (ready)
        watch_hub_history_ready(backfill->hub);
}

/* Ends what no watch has used for a while. Readers that still wait ask again. */
static void on_look(struct timer *timer)
{
    struct backfill *backfill = CONTAINER_OF(timer, struct backfill, look);
    int64_t now_ns = loop_now_ns(backfill->options.loop);
    struct list *link = backfill->fetches.next;
    bool ask = false;
    while (link != &backfill->fetches) {
        struct backfill_fetch *fetch = fetch_of(link);
        link = link->next;
        if (now_ns - fetch->wanted_ns < idle_ns)
            continue;
        if (!fetch->waiting) {
            fetch_end(backfill, fetch);
            continue;
        }
        /* The reader that has waited may be gone. If it is not, it asks again below, and the fetch
         * waits once more. */
        fetch->waiting = false;
        ask = true;
    }
    event_ranges_drop_idle(&backfill->store, now_ns - idle_ns);
    if (backfill->store.count || backfill->fetch_count)
        loop_timer_set(backfill->options.loop, timer, clock_add(now_ns, look_ns));
    work_soon(backfill);
    if (ask)
        watch_hub_history_ready(backfill->hub);
}

/* -- The history -- */

/* When another history was discarded, a revision that is older than the mirror may belong to that
 * one, so it is not fetched. */
static int64_t compact_revision(struct watch_history *base)
{
    struct backfill *backfill = backfill_of(base);
    const _Atomic int64_t *void_until = backfill->options.cluster.void_until;
    int64_t compacted = atomic_load(backfill->options.cluster.compacted);
    int64_t first = void_until && atomic_load(void_until) ? oldest(backfill) : 0;
    return first > compacted ? first : compacted;
}

static int64_t revision(struct watch_history *base)
{
    struct backfill *backfill = backfill_of(base);
    return backfill->own->ops->revision(backfill->own);
}

static bool is_void(struct watch_history *base, int64_t at)
{
    const struct backfill_options *options = &backfill_of(base)->options;
    return options->is_void && options->is_void(options->ctx, at);
}

static void listen(struct watch_history *base, bool wanted)
{
    struct backfill *backfill = backfill_of(base);
    if (backfill->own->ops->listen)
        backfill->own->ops->listen(backfill->own, wanted);
}

static struct slice prev(struct watch_history *base, const struct watch_event *event)
{
    struct backfill *backfill = backfill_of(base);
    return backfill_event_is(event) ? backfill_event_prev(event)
                                    : backfill->own->ops->prev(backfill->own, event);
}

/* A reader is in this range: what follows it is received meanwhile. */
static void read_ahead(struct backfill *backfill, const struct event_range *range)
{
    struct backfill_fetch *fetch;
    LIST_FOREACH (fetch, &backfill->fetches, in_backfill) {
        if (fetch->at != range->to || fetch->credit)
            continue;
        backfill_fetch_go_ahead(fetch);
        work_soon(backfill);
    }
}

/* Reads a revision of a range. ST_END: it has none of [place, last]. */
static enum status event_range_next(const struct event_range *range, struct watch_place *place,
                                    int64_t last, struct watch_batch *ret_batch)
{
    const struct backfill_revision *found = event_range_seek(range, place->revision);
    if (!found || found->revision > last) {
        *place = (struct watch_place){.revision = range->to > last ? last + 1 : range->to};
        return ST_END;
    }
    *place = (struct watch_place){.revision = found->revision + 1};
    if (found->lost)
        return ST_DAMAGED;
    /* A long revision is read in parts, but never one that the mirror reads at once: a response
     * with its events may have begun there. */
    bool is_long = found->count > WATCH_WHOLE_EVENTS || found->field_bytes > WATCH_WHOLE_BYTES;
    *ret_batch = (struct watch_batch){
        .revision = found->revision,
        .events = is_long ? NULL : range->run.events + found->first,
        .count = found->count,
    };
    return ST_OK;
}

static enum status next(struct watch_history *base, struct watch_place *place, int64_t last,
                        struct watch_batch *ret_batch)
{
    struct backfill *backfill = backfill_of(base);
    struct watch_place at = *place;
    backfill->store.now_ns = loop_now_ns(backfill->options.loop);
    judge(backfill);
    if (at.revision < compact_revision(base))
        return ST_COMPACTED;
    for (;;) {
        if (at.revision > last) {
            *place = at;
            return ST_END;
        }
        if (at.revision >= first_certain(backfill)) {
            enum status status = backfill->own->ops->next(backfill->own, &at, last, ret_batch);
            if (status == ST_COMPACTED)
                continue; /* in this moment it became older than the mirror */
            *place = at;
            return status;
        }
        if (UNLIKELY(backfill->doubtful_until && (backfill->is_stale || !backfill->asks_cluster)))
            return ST_AGAIN;
        struct event_range *range = event_ranges_find(&backfill->store, at.revision);
        if (!range) {
            want(backfill, at.revision);
            return ST_AGAIN;
        }
        read_ahead(backfill, range);
        enum status status = event_range_next(range, &at, last, ret_batch);
        if (status != ST_END) {
            *place = at;
            return status;
        }
    }
}

/* -- Long revisions -- */

static enum status hold_own(struct backfill *backfill, const struct watch_place *place,
                            int64_t wanted, struct watch_held **ret_held, size_t *ret_count)
{
    struct watch_held *own;
    if (!backfill->own->ops->hold)
        return ST_COMPACTED;
    TRY(backfill->own->ops->hold(backfill->own, place, wanted, &own, ret_count));
    *ret_held = xmalloc(sizeof(**ret_held));
    **ret_held = (struct watch_held){.backfill = backfill, .own = own};
    return ST_OK;
}

static enum status hold(struct watch_history *base, const struct watch_place *place, int64_t wanted,
                        struct watch_held **ret_held, size_t *ret_count)
{
    struct backfill *backfill = backfill_of(base);
    if (wanted < compact_revision(base))
        return ST_COMPACTED;
    struct event_range *range = event_ranges_find(&backfill->store, wanted);
    /* The mirror itself has what is not older than its history; anything older is fetched first. */
    if (!range && wanted >= oldest(backfill))
        return hold_own(backfill, place, wanted, ret_held, ret_count);
    if (!range) {
        want(backfill, wanted);
        return ST_AGAIN;
    }
    const struct backfill_revision *found = event_range_seek(range, wanted);
    if (!found || found->revision != wanted || found->lost)
        return ST_DAMAGED;
    *ret_held = xmalloc(sizeof(**ret_held));
    **ret_held = (struct watch_held){
        .backfill = backfill, .range = event_range_ref(range), .revision = found};
    *ret_count = found->count;
    return ST_OK;
}

static enum status load(struct watch_held *held, size_t *units)
{
    if (held->own)
        return held->backfill->own->ops->load(held->own, units);
    *units -= size_min(*units, 1);
    return ST_OK;
}

static void event(const struct watch_held *held, size_t at, struct watch_event *ret_event)
{
    if (held->own)
        held->backfill->own->ops->event(held->own, at, ret_event);
    else
        *ret_event = held->range->run.events[held->revision->first + at];
}

static void release(struct watch_held *held)
{
    if (held->own)
        held->backfill->own->ops->release(held->own);
    else
        event_range_unref(held->range);
    free(held);
}

static const struct watch_history_ops backfill_ops = {
    .next = next,
    .hold = hold,
    .load = load,
    .event = event,
    .release = release,
    .prev = prev,
    .revision = revision,
    .compact_revision = compact_revision,
    .is_void = is_void,
    .listen = listen,
};

/* -- Life -- */

struct backfill *backfill_new(const struct backfill_options *options)
{
    struct backfill *backfill = xcalloc(1, sizeof(*backfill));
    backfill->base.ops = &backfill_ops;
    backfill->options = *options;
    if (!backfill->options.bytes_max)
        backfill->options.bytes_max = BACKFILL_BYTES_MAX;
    if (!backfill->options.revision_bytes_max)
        backfill->options.revision_bytes_max = BACKFILL_REVISION_BYTES_MAX;
    event_ranges_init(&backfill->store);
    list_init(&backfill->fetches);
    backfill->work.fn = work;
    backfill->look.fn = on_look;
    backfill->doubt.fn = on_doubt;
    ranges_init(&backfill->ranges, options->prefixes, options->prefix_count);
    return backfill;
}

struct watch_history *backfill_wrap(struct backfill *backfill, struct watch_history *own)
{
    backfill->own = own;
    return &backfill->base;
}

void backfill_start(struct backfill *backfill, const struct backfill_calls *calls,
                    struct watch_hub *hub)
{
    backfill->calls = *calls;
    backfill->started = true;
    backfill->hub = hub;
    if (backfill->want_count)
        work_soon(backfill);
}

void backfill_stop(struct backfill *backfill)
{
    while (!list_empty(&backfill->fetches))
        fetch_end(backfill, fetch_of(backfill->fetches.next));
    loop_timer_cancel(backfill->options.loop, &backfill->look);
    loop_timer_cancel(backfill->options.loop, &backfill->doubt);
    loop_defer_cancel(&backfill->work);
    backfill->started = false;
}

void backfill_free(struct backfill *backfill)
{
    if (!backfill)
        return;
    assert(!backfill->started);
    event_ranges_fini(&backfill->store);
    ranges_fini(&backfill->ranges);
    free(backfill);
}

void backfill_flushed(struct backfill *backfill)
{
    event_ranges_turn_end(&backfill->store, loop_now_ns(backfill->options.loop));
    if (UNLIKELY(backfill->is_stale)) {
        while (!list_empty(&backfill->fetches))
            fetch_end(backfill, fetch_of(backfill->fetches.next));
        event_ranges_clear(&backfill->store);
        backfill->want_count = 0;
        backfill->is_stale = false;
    }
    if (backfill->is_short || backfill->store.bytes > backfill->options.bytes_max)
        flow(backfill);
}

struct backfill_stats backfill_stats(const struct backfill *backfill)
{
    return (struct backfill_stats){
        .bytes = backfill->store.bytes,
        .fetches = backfill->fetch_count,
        .started = backfill->fetches_started,
    };
}

void backfill_check(const struct backfill *backfill)
{
    event_ranges_check(&backfill->store);
    assert(list_length(&backfill->fetches) == backfill->fetch_count);
    assert(backfill->fetch_count <= BACKFILL_FETCHES_MAX);
    const struct backfill_fetch *fetch;
    LIST_FOREACH (fetch, &backfill->fetches, in_backfill)
        backfill_fetch_check(fetch);
}
