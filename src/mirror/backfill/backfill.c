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

struct past {
    struct watch_history base;
    struct watch_history *own;
    struct past_options options;
    struct past_calls calls;
    bool started; /* it has calls */
    struct watch_hub *hub;
    struct past_store store;
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
    struct past *past;
    struct watch_held *own;       /* held by the mirror; NULL: by the past */
    struct past_stretch *stretch; /* a reference */
    const struct past_revision *revision;
};

static struct past *past_of(struct watch_history *base)
{
    return CONTAINER_OF(base, struct past, base);
}

static struct past_fetch *fetch_of(struct list *link)
{
    return LIST_ENTRY(link, struct past_fetch, in_past);
}

/* The first revision that the mirror has. If it has just been compacted, it may have a state that
 * was loaded at its compact revision, instead of a history. */
static int64_t oldest(const struct past *past)
{
    int64_t known = atomic_load(past->options.cluster.oldest);
    int64_t own = past->own->ops->compact_revision(past->own);
    return own > known ? own + 1 : known;
}

/* -- Doubt -- */

/*
 * Between the end of a connection and the comparison of pasts that follows the next one, the
 * cluster may be restored to another past, and a new watch would show events that never happened
 * there. So readers wait for the comparison, and if it takes long, because no quorum answers it,
 * they read what a member has, not what the mirror has. What was received before the end and not
 * shown yet goes to the watches that have waited for it.
 */
static bool is_connected(const struct past *past)
{
    return !past->options.cluster.connected || atomic_load(past->options.cluster.connected);
}

static void judge(struct past *past)
{
    if (LIKELY(is_connected(past)) || !past->started) {
        past->doubtful_until = 0;
        return;
    }
    uint64_t connection = atomic_load(past->options.cluster.times_connected) + 1;
    if (past->doubted_after == connection)
        return;
    past->doubted_after = connection;
    past->doubtful_until = watch_hub_revision(past->hub);
    past->doubted_ns = loop_now_ns(past->options.loop);
    past->is_stale = true;
    past->asks_cluster = false;
    loop_timer_set(past->options.loop, &past->doubt, clock_add(past->doubted_ns, doubt_look_ns));
}

static void on_doubt(struct timer *timer)
{
    struct past *past = CONTAINER_OF(timer, struct past, doubt);
    int64_t now_ns = loop_now_ns(past->options.loop);
    judge(past);
    bool asked = past->asks_cluster;
    past->asks_cluster = now_ns - past->doubted_ns >= doubt_wait_ns;
    if (past->doubtful_until)
        loop_timer_set(past->options.loop, timer, clock_add(now_ns, doubt_look_ns));
    if (!past->doubtful_until || past->asks_cluster != asked)
        watch_hub_history_ready(past->hub);
}

/* The first revision that is read from the mirror. */
static int64_t first_certain(const struct past *past)
{
    int64_t first = oldest(past);
    return past->doubtful_until >= first ? past->doubtful_until + 1 : first;
}

/* -- Fetches -- */

static void work_soon(struct past *past)
{
    if (past->started)
        loop_defer(past->options.loop, &past->work);
}

static void source_changed(void *ctx)
{
    work_soon(ctx);
}

/* Progress says that a range without events is complete. Where it is not reliable, all keys are
 * watched, because every revision has some event. */
static bool watches_all_keys(const struct past *past)
{
    return past->ranges.count > 1 && !atomic_load(past->options.cluster.progress_reliable);
}

static void fetch_start(struct past *past, int64_t from)
{
    struct range all = range_all();
    bool filtered = watches_all_keys(past);
    struct past_fetch *fetch = past_fetch_new(
        &(struct past_fetch_options){
            .source = {.loop = past->options.loop,
                       .calls = &past->calls,
                       .cluster = past->options.cluster,
                       .prefixes = past->ranges.prefixes,
                       .prefix_count = filtered ? past->ranges.prefix_count : 0,
                       .counted = &past->store.bytes,
                       .revision_bytes_max = past->options.revision_bytes_max,
                       .changed = source_changed,
                       .ctx = past},
            .store = &past->store,
            .ranges = filtered ? &all : past->ranges.items,
            .range_count = filtered ? 1 : past->ranges.count,
            .ahead_bytes = AHEAD_BYTES,
        },
        from);
    list_push_back(&past->fetches, &fetch->in_past);
    past->fetch_count++;
    past->fetches_started++;
    past_fetch_want(fetch);
    if (!past->look.set)
        loop_timer_set(past->options.loop, &past->look,
                       clock_add(loop_now_ns(past->options.loop), look_ns));
}

static void fetch_end(struct past *past, struct past_fetch *fetch)
{
    past_fetch_free(fetch);
    past->fetch_count--;
}

/* The fetch that will bring this revision soon; NULL: none. */
static struct past_fetch *fetch_near(const struct past *past, int64_t revision)
{
    struct past_fetch *fetch;
    LIST_FOREACH (fetch, &past->fetches, in_past)
        if (fetch->at <= revision && revision - fetch->at <= NEAR)
            return fetch;
    return NULL;
}

/* It has reached what is known already. */
static bool fetch_has_arrived(const struct past *past, const struct past_fetch *fetch)
{
    if (fetch->at >= first_certain(past) ||
        past_store_gap_end(&past->store, fetch->at) <= fetch->at)
        return true;
    const struct past_fetch *other;
    LIST_FOREACH (other, &past->fetches, in_past)
        if (other != fetch && other->at == fetch->at)
            return true;
    return false;
}

/* A fetch that can be ended for another one: no watch has needed it for a moment, or it has brought
 * its share. NULL: none. */
static struct past_fetch *find_replaceable(const struct past *past)
{
    int64_t before_ns = loop_now_ns(past->options.loop) - moment_ns;
    struct past_fetch *fetch, *found = NULL;
    LIST_FOREACH (fetch, &past->fetches, in_past) {
        bool may = (!fetch->waiting && fetch->wanted_ns < before_ns) ||
                   fetch->started_bytes >= SHARE_BYTES;
        if (may && (!found || fetch->wanted_ns < found->wanted_ns))
            found = fetch;
    }
    return found;
}

/* -- Wants -- */

static void want_remove(struct past *past, size_t i)
{
    memmove(&past->wants[i], &past->wants[i + 1],
            (--past->want_count - i) * sizeof(past->wants[0]));
}

/* Whether another one, just before it, will bring this revision. */
static bool is_wanted(const struct past *past, int64_t revision)
{
    for (size_t i = 0; i < past->want_count; i++)
        if (past->wants[i] <= revision && revision - past->wants[i] <= NEAR)
            return true;
    return false;
}

static void want(struct past *past, int64_t revision)
{
    struct past_fetch *fetch = fetch_near(past, revision);
    if (fetch) {
        past_fetch_want(fetch);
        work_soon(past);
        return;
    }
    if (past->want_count == WANTS_MAX || is_wanted(past, revision))
        return;
    past->wants[past->want_count++] = revision;
    work_soon(past);
}

static bool is_served(struct past *past, int64_t revision)
{
    return revision >= first_certain(past) ||
           past_store_gap_end(&past->store, revision) <= revision ||
           revision < atomic_load(past->options.cluster.compacted) || fetch_near(past, revision);
}

/* Returns whether readers may continue: one whose revision was compacted, or is brought by another
 * fetch since it has asked, must ask again, because no fetch is started for it. */
static bool start_wanted(struct past *past)
{
    bool ready = false;
    while (past->want_count) {
        int64_t revision = past->wants[0];
        if (is_served(past, revision)) {
            ready = true;
        } else {
            struct past_fetch *old =
                past->fetch_count < PAST_FETCHES_MAX ? NULL : find_replaceable(past);
            if (old)
                fetch_end(past, old);
            if (past->fetch_count == PAST_FETCHES_MAX)
                return ready;
            fetch_start(past, revision);
        }
        want_remove(past, 0);
    }
    return ready;
}

/* -- Work -- */

/* What no watch waits for is given up. */
static void end_unwanted(struct past *past)
{
    struct list *link = past->fetches.next;
    while (link != &past->fetches) {
        struct past_fetch *fetch = fetch_of(link);
        link = link->next;
        if (!fetch->waiting)
            fetch_end(past, fetch);
    }
}

/* Lets fetches receive, as far as memory allows. If it is short, only the first of them may, and
 * only what it lacks to complete a revision. */
static void flow(struct past *past)
{
    past_store_shrink(&past->store, past->options.bytes_max);
    past->is_short = past->store.bytes > past->options.bytes_max;
    if (past->is_short)
        end_unwanted(past);
    struct past_fetch *fetch;
    bool first = true;
    LIST_FOREACH (fetch, &past->fetches, in_past) {
        enum past_flow when_short = first ? PAST_FLOW_BEHIND : PAST_FLOW_NONE;
        enum past_flow usually = past_fetch_is_wanted(fetch) ? PAST_FLOW_ALL : PAST_FLOW_NONE;
        past_fetch_flow(fetch, past->is_short ? when_short : usually);
        first = false;
    }
}

/* Returns whether readers may continue. */
static bool fetch_work(struct past *past, struct past_fetch *fetch, size_t *units, bool *more)
{
    bool stored;
    *more |= past_fetch_step(fetch, units, &stored);
    int64_t compacted = past_fetch_compact_revision(fetch);
    if (compacted)
        past->options.compacted(past->options.ctx, compacted);
    if (!compacted && !past_fetch_is_over(fetch) && !fetch_has_arrived(past, fetch))
        return stored;
    fetch_end(past, fetch);
    return true;
}

static void work(struct deferred *deferred)
{
    struct past *past = CONTAINER_OF(deferred, struct past, work);
    size_t units = TURN_UNITS;
    past->store.now_ns = loop_now_ns(past->options.loop);
    judge(past);
    bool more = false, ready = false;
    struct list *link = past->fetches.next;
    while (link != &past->fetches) {
        struct past_fetch *fetch = fetch_of(link);
        link = link->next;
        ready |= fetch_work(past, fetch, &units, &more);
    }
    ready |= start_wanted(past);
    flow(past);
    if (more)
        work_soon(past);
    if (ready)
        watch_hub_history_ready(past->hub);
}

/* Ends what no watch has used for a while. Readers that still wait ask again. */
static void on_look(struct timer *timer)
{
    struct past *past = CONTAINER_OF(timer, struct past, look);
    int64_t now_ns = loop_now_ns(past->options.loop);
    struct list *link = past->fetches.next;
    bool ask = false;
    while (link != &past->fetches) {
        struct past_fetch *fetch = fetch_of(link);
        link = link->next;
        if (now_ns - fetch->wanted_ns < idle_ns)
            continue;
        ask |= fetch->waiting;
        if (!fetch->waiting)
            fetch_end(past, fetch);
        else
            fetch->waiting = false;
    }
    past_store_drop_idle(&past->store, now_ns - idle_ns);
    if (past->store.count || past->fetch_count)
        loop_timer_set(past->options.loop, timer, clock_add(now_ns, look_ns));
    work_soon(past);
    if (ask)
        watch_hub_history_ready(past->hub);
}

/* -- The history -- */

/* When another past was discarded, a revision that is older than the mirror may belong to that one,
 * so it is not fetched. */
static int64_t compact_revision(struct watch_history *base)
{
    struct past *past = past_of(base);
    const _Atomic int64_t *void_until = past->options.cluster.void_until;
    int64_t compacted = atomic_load(past->options.cluster.compacted);
    int64_t first = void_until && atomic_load(void_until) ? oldest(past) : 0;
    return first > compacted ? first : compacted;
}

static int64_t revision(struct watch_history *base)
{
    struct past *past = past_of(base);
    return past->own->ops->revision(past->own);
}

static bool is_void(struct watch_history *base, int64_t at)
{
    const struct past_options *options = &past_of(base)->options;
    return options->is_void && options->is_void(options->ctx, at);
}

static void listen(struct watch_history *base, bool wanted)
{
    struct past *past = past_of(base);
    if (past->own->ops->listen)
        past->own->ops->listen(past->own, wanted);
}

static struct slice prev(struct watch_history *base, const struct watch_event *event)
{
    struct past *past = past_of(base);
    return past_event_is(event) ? past_event_prev(event) : past->own->ops->prev(past->own, event);
}

/* A reader is in this stretch: what follows it is received meanwhile. */
static void read_ahead(struct past *past, const struct past_stretch *stretch)
{
    struct past_fetch *fetch;
    LIST_FOREACH (fetch, &past->fetches, in_past) {
        if (fetch->at != stretch->to || fetch->credit)
            continue;
        past_fetch_go_ahead(fetch);
        work_soon(past);
    }
}

/* Never of a revision that the mirror reads at once: a response of it may have begun there. */
static bool is_long(const struct past_revision *found)
{
    return found->count > WATCH_WHOLE_EVENTS || found->field_bytes > WATCH_WHOLE_BYTES;
}

/* Reads a revision of a stretch. ST_END: it has none of [place, last]. */
static enum status stretch_next(const struct past_stretch *stretch, struct watch_place *place,
                                int64_t last, struct watch_batch *ret_batch)
{
    const struct past_revision *found = past_stretch_seek(stretch, place->revision);
    if (!found || found->revision > last) {
        *place = (struct watch_place){.revision = stretch->to > last ? last + 1 : stretch->to};
        return ST_END;
    }
    *place = (struct watch_place){.revision = found->revision + 1};
    if (found->lost)
        return ST_DAMAGED;
    *ret_batch = (struct watch_batch){
        .revision = found->revision,
        .events = is_long(found) ? NULL : stretch->run.events + found->first,
        .count = found->count,
    };
    return ST_OK;
}

static enum status next(struct watch_history *base, struct watch_place *place, int64_t last,
                        struct watch_batch *ret_batch)
{
    struct past *past = past_of(base);
    struct watch_place at = *place;
    past->store.now_ns = loop_now_ns(past->options.loop);
    judge(past);
    if (at.revision < compact_revision(base))
        return ST_COMPACTED;
    for (;;) {
        if (at.revision > last) {
            *place = at;
            return ST_END;
        }
        if (at.revision >= first_certain(past)) {
            enum status status = past->own->ops->next(past->own, &at, last, ret_batch);
            if (status == ST_COMPACTED)
                continue; /* in this moment it became older than the mirror */
            *place = at;
            return status;
        }
        if (UNLIKELY(past->doubtful_until && (past->is_stale || !past->asks_cluster)))
            return ST_AGAIN;
        struct past_stretch *stretch = past_store_find(&past->store, at.revision);
        if (!stretch) {
            want(past, at.revision);
            return ST_AGAIN;
        }
        read_ahead(past, stretch);
        enum status status = stretch_next(stretch, &at, last, ret_batch);
        if (status != ST_END) {
            *place = at;
            return status;
        }
    }
}

/* -- Long revisions -- */

static enum status hold_own(struct past *past, const struct watch_place *place, int64_t wanted,
                            struct watch_held **ret_held, size_t *ret_count)
{
    struct watch_held *own;
    if (!past->own->ops->hold)
        return ST_COMPACTED;
    TRY(past->own->ops->hold(past->own, place, wanted, &own, ret_count));
    *ret_held = xmalloc(sizeof(**ret_held));
    **ret_held = (struct watch_held){.past = past, .own = own};
    return ST_OK;
}

static enum status hold(struct watch_history *base, const struct watch_place *place, int64_t wanted,
                        struct watch_held **ret_held, size_t *ret_count)
{
    struct past *past = past_of(base);
    if (wanted < compact_revision(base))
        return ST_COMPACTED;
    struct past_stretch *stretch = past_store_find(&past->store, wanted);
    if (!stretch && wanted >= oldest(past))
        return hold_own(past, place, wanted, ret_held, ret_count);
    if (!stretch) {
        want(past, wanted);
        return ST_AGAIN;
    }
    const struct past_revision *found = past_stretch_seek(stretch, wanted);
    if (!found || found->revision != wanted || found->lost)
        return ST_DAMAGED;
    *ret_held = xmalloc(sizeof(**ret_held));
    **ret_held =
        (struct watch_held){.past = past, .stretch = past_stretch_ref(stretch), .revision = found};
    *ret_count = found->count;
    return ST_OK;
}

static enum status load(struct watch_held *held, size_t *units)
{
    if (held->own)
        return held->past->own->ops->load(held->own, units);
    *units -= size_min(*units, 1);
    return ST_OK;
}

static void event(const struct watch_held *held, size_t at, struct watch_event *ret_event)
{
    if (held->own)
        held->past->own->ops->event(held->own, at, ret_event);
    else
        *ret_event = held->stretch->run.events[held->revision->first + at];
}

static void release(struct watch_held *held)
{
    if (held->own)
        held->past->own->ops->release(held->own);
    else
        past_stretch_unref(held->stretch);
    free(held);
}

static const struct watch_history_ops past_ops = {
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

struct past *past_new(const struct past_options *options)
{
    struct past *past = xcalloc(1, sizeof(*past));
    past->base.ops = &past_ops;
    past->options = *options;
    if (!past->options.bytes_max)
        past->options.bytes_max = PAST_BYTES_MAX;
    if (!past->options.revision_bytes_max)
        past->options.revision_bytes_max = PAST_REVISION_BYTES_MAX;
    past_store_init(&past->store);
    list_init(&past->fetches);
    past->work.fn = work;
    past->look.fn = on_look;
    past->doubt.fn = on_doubt;
    ranges_init(&past->ranges, options->prefixes, options->prefix_count);
    return past;
}

struct watch_history *past_wrap(struct past *past, struct watch_history *own)
{
    past->own = own;
    return &past->base;
}

void past_start(struct past *past, const struct past_calls *calls, struct watch_hub *hub)
{
    past->calls = *calls;
    past->started = true;
    past->hub = hub;
    if (past->want_count)
        work_soon(past);
}

void past_stop(struct past *past)
{
    while (!list_empty(&past->fetches))
        fetch_end(past, fetch_of(past->fetches.next));
    loop_timer_cancel(past->options.loop, &past->look);
    loop_timer_cancel(past->options.loop, &past->doubt);
    loop_defer_cancel(&past->work);
    past->started = false;
}

void past_free(struct past *past)
{
    if (!past)
        return;
    assert(!past->started);
    past_store_fini(&past->store);
    ranges_fini(&past->ranges);
    free(past);
}

void past_flushed(struct past *past)
{
    past_store_turn_end(&past->store, loop_now_ns(past->options.loop));
    if (UNLIKELY(past->is_stale)) {
        while (!list_empty(&past->fetches))
            fetch_end(past, fetch_of(past->fetches.next));
        past_store_clear(&past->store);
        past->want_count = 0;
        past->is_stale = false;
    }
    if (past->is_short || past->store.bytes > past->options.bytes_max)
        flow(past);
}

struct past_stats past_stats(const struct past *past)
{
    return (struct past_stats){
        .bytes = past->store.bytes,
        .fetches = past->fetch_count,
        .started = past->fetches_started,
    };
}

void past_check(const struct past *past)
{
    past_store_check(&past->store);
    assert(list_length(&past->fetches) == past->fetch_count);
    assert(past->fetch_count <= PAST_FETCHES_MAX);
    const struct past_fetch *fetch;
    LIST_FOREACH (fetch, &past->fetches, in_past)
        past_fetch_check(fetch);
}
