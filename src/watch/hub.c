#include "base/clock.h"
#include "base/xalloc.h"
#include "watch/output.h"

enum { TAIL_LEN_MAX = WATCH_PIECE_BYTES_MAX - MESSAGE_HEAD_BYTES_MAX };

struct watch_hub *watch_hub_new(const struct watch_hub_options *options)
{
    assert(options->history);
    assert(options->fragment_bytes > 0);
    assert(options->watchers_max > 0);
    assert(options->progress_interval_ns > 0);
    struct watch_hub *hub = xcalloc(1, sizeof(*hub));
    hub->history = options->history;
    hub->options = *options;
    hub->pool = pool_new();
    random_init(&hub->random, options->seed);
    range_index_init(&hub->index, hub->pool, random_u64(&hub->random));
    message_identity_init(&hub->identity, &options->identity);
    for (size_t i = 0; i < WATCH_HEADERS; i++)
        message_header_make(&hub->headers[i], &hub->identity, 0);
    hub->turn = 1;
    hub->tail = hub->ring_after = hub->history->ops->revision(hub->history);
    hub->place.revision = hub->tail + 1;
    trail_init(&hub->trail, hub->place.revision);
    hub->ring = xcalloc(WATCH_RING_BATCHES, sizeof(hub->ring[0]));
    hub->tail_bytes = xmalloc(WATCH_TAIL_BYTES);
    hub->piece = xmalloc(WATCH_PIECE_BYTES_MAX);
    list_init(&hub->streams);
    list_init(&hub->dying);
    hub->free_budget = WATCH_FREE_PER_TURN;
    hub->walk_budget = WATCH_WALK_EVENTS;
    list_init(&hub->hungry);
    list_init(&hub->waiting);
    long_init(hub);
    return hub;
}

void watch_hub_free(struct watch_hub *hub)
{
    if (!hub)
        return;
    assert(list_empty(&hub->streams));
    hub->free_budget = SIZE_MAX;
    stream_bury(hub);
    long_fini(hub);
    range_index_fini(&hub->index);
    heap_fini(&hub->ticks);
    for (size_t i = 0; i < WATCH_STRETCHES; i++)
        stretch_fini(&hub->stretches[i]);
    trail_fini(&hub->trail);
    tags_fini(&hub->tags);
    free(hub->hits);
    free(hub->piece);
    free(hub->tail_bytes);
    free(hub->ring);
    pool_free(hub->pool);
    free(hub);
}

const struct message_header *hub_header(struct watch_hub *hub, int64_t revision)
{
    struct message_header *header = &hub->headers[(uint64_t)revision % WATCH_HEADERS];
    if (header->revision != revision)
        message_header_make(header, &hub->identity, revision);
    return header;
}

struct watch_stream *hub_stream_after(struct watch_hub *hub, const struct list *link)
{
    return link->next == &hub->streams ? NULL : LIST_ENTRY(link->next, struct watch_stream, in_hub);
}

/* -- Taking in -- */

void hub_stretches_drop(struct watch_hub *hub)
{
    for (size_t i = 0; i < WATCH_STRETCHES; i++)
        stretch_drop(&hub->stretches[i]);
}

static void ring_drop(struct watch_hub *hub)
{
    hub_stretches_drop(hub);
    hub->turn++;
    hub->ring_count = 0;
    hub->ring_after = hub->tail;
    hub->large.revision = 0;
}

void hub_catch_tail(struct watch_hub *hub)
{
    if (hub->live)
        return;
    int64_t last = hub->history->ops->revision(hub->history);
    if (last <= hub->tail)
        return;
    hub->tail = last;
    hub->place = (struct watch_place){.revision = last + 1};
    ring_drop(hub);
}

struct marking {
    struct watch_hub *hub;
    struct watch_trail *trail;
    const struct watch_slot *slot;
    size_t event; /* of the slot */
    size_t work;  /* streams looked at */
    size_t woken; /* of them */
};

/*
 * Watchers, their streams and those they wake lie anywhere in memory, in no cache when there are
 * many: those of the next ones are fetched while one is told, each step a few places ahead of the
 * one that needs it.
 */
static void fetch_ahead(struct watcher *const *streams, uint32_t at, uint32_t count)
{
    enum { STEP = 3 };
    if (at + 4 * STEP < count)
        __builtin_prefetch(streams[at + 4 * STEP]);
    if (at + 3 * STEP < count) {
        const uint8_t *stream = (const uint8_t *)streams[at + 3 * STEP]->stream;
        __builtin_prefetch(stream, 1);
        __builtin_prefetch(stream + 64, 1);
    }
    if (at + 2 * STEP < count) {
        const uint8_t *owner = streams[at + 2 * STEP]->stream->owner.ctx;
        __builtin_prefetch(owner, 1);
        __builtin_prefetch(owner + 64, 1);
    }
    if (at + STEP < count) {
        const struct watch_stream *stream = streams[at + STEP]->stream;
        if (stream->cursor && stream->owner.soon)
            stream->owner.soon(stream->owner.ctx);
    }
}

static void mark_stream(struct marking *marking, struct watch_stream *stream)
{
    stream->last_hit = marking->slot->batch.revision;
    if (stream->dirty)
        return;
    stream->dirty = true;
    stream->place = marking->slot->before;
    stream_changed(stream);
    stream_wake(stream);
    marking->woken++;
}

struct watch_hit *hub_find_hit(const struct watch_hub *hub, const struct watch_range *range)
{
    bool found = range->hit < hub->hit_count && hub->hits[range->hit].range == range;
    return found ? &hub->hits[range->hit] : NULL;
}

struct watch_hit *hub_add_hit(struct watch_hub *hub, struct watch_range *range)
{
    if (hub->hit_count == hub->hit_capacity) {
        hub->hit_capacity = size_max(64, hub->hit_capacity * 2);
        hub->hits = xrealloc(hub->hits, hub->hit_capacity * sizeof(hub->hits[0]));
    }
    range->hit = (uint32_t)hub->hit_count;
    struct watch_hit *hit = &hub->hits[hub->hit_count++];
    *hit = (struct watch_hit){.range = range};
    return hit;
}

/* Whether an earlier event of the same revision has marked the streams of the range. */
static bool marked_before(const struct marking *marking, struct watch_range *range)
{
    if (marking->slot->batch.count == 1)
        return false;
    if (hub_find_hit(marking->hub, range))
        return true;
    hub_add_hit(marking->hub, range);
    return false;
}

static void mark(void *ctx, struct watch_range *range)
{
    struct marking *marking = ctx;
    struct watcher *const *streams = watch_range_streams(range);
    if (marked_before(marking, range))
        return;
    marking->work += range->count;
    for (uint32_t i = 0; i < range->count; i++) {
        fetch_ahead(streams, i, range->count);
        if (streams[i]->state == WATCHER_LIVE)
            mark_stream(marking, streams[i]->stream);
    }
}

static void mark_tag(void *ctx, struct watch_range *range)
{
    const struct marking *marking = ctx;
    const struct watch_slot *slot = marking->slot;
    if (!range->end_len)
        trail_add(marking->trail, range, &slot->before, slot->batch.revision, marking->event);
    mark(ctx, range);
}

/* Nobody knows whose it is: all cursors walk over it, and none follows the trail past it. */
static void mark_cursors(struct watch_hub *hub, struct marking *marking)
{
    struct watch_stream *stream;
    LIST_FOREACH (stream, &hub->streams, in_hub) {
        if (stream->cursor && stream->ids.count)
            mark_stream(marking, stream);
    }
    marking->work += hub->stats.streams;
    trail_drop(&hub->trail, marking->slot->batch.revision + 1);
}

static void mark_event(struct watch_hub *hub, struct marking *marking)
{
    const struct watch_event *event = &marking->slot->batch.events[marking->event];
    range_index_visit(&hub->index, event->key, mark, marking);
    if (!hub->tagged || !hub->tagger)
        return;
    struct slice tags[WATCH_TAGS_MAX];
    size_t count = hub->tagger(hub->tagger_ctx, hub->history, event, tags);
    marking->work += WATCH_TAG_MARKS;
    if (UNLIKELY(count == WATCH_TAGS_UNKNOWN)) {
        mark_cursors(hub, marking);
        return;
    }
    for (size_t i = 0; i < count; i++)
        range_index_visit(&hub->index, tags[i], mark_tag, marking);
}

/*
 * The streams that a long revision concerns, once it is known which these are; long.h says why all
 * at once. ST_AGAIN: it is looked for, and the tail stays before it.
 */
static enum status mark_long(struct watch_hub *hub, struct marking *marking)
{
    const struct watch_slot *slot = marking->slot;
    struct watch_long *l;
    TRY(long_get_for_tail(hub, &slot->before, slot->batch.revision, &l));
    for (size_t i = 0; i < l->hit_count; i++)
        if (l->hits[i].range)
            mark(marking, l->hits[i].range);
    if (l->tags_unknown)
        mark_cursors(hub, marking);
    return ST_OK;
}

/* What the tail stands at, up to `behind`, is gone: whoever rides it must be told. */
static void tail_gone(struct watch_hub *hub, struct watch_place behind)
{
    assert(behind.revision > hub->tail);
    struct watch_stream *stream;
    LIST_FOREACH (stream, &hub->streams, in_hub) {
        if (!stream->ids.count)
            continue;
        if (!stream->dirty)
            stream->place = (struct watch_place){.revision = hub->tail + 1};
        stream->dirty = true;
        stream->last_hit = behind.revision - 1;
        stream_changed(stream);
        stream_wake(stream);
    }
    hub->tail = behind.revision - 1;
    hub->place = behind;
    trail_drop(&hub->trail, behind.revision);
    ring_drop(hub);
}

/*
 * Waking a stream costs its shard some microseconds, and less each when there are more at once: a
 * send that finds its reader awake is the cheaper one. So those who are many wait a little for each
 * other; a twentieth of the time is theirs before they have to.
 */
static void rest_after(struct watch_hub *hub, size_t woken)
{
    static const int64_t for_each_ns = 20 * NS_PER_US, most_ns = 4 * NS_PER_MS;
    bool patient = hub->cursors == hub->stats.streams;
    if (woken < WATCH_REST_FROM || !patient)
        return;
    int64_t rest_ns = woken < most_ns / for_each_ns ? (int64_t)woken * for_each_ns : most_ns;
    hub->rest_until_ns = hub->now_ns + rest_ns;
}

/* Returns whether there is more to read at once. */
static bool take_in(struct watch_hub *hub)
{
    if (hub->rest_until_ns > hub->now_ns)
        return false;
    hub->rest_until_ns = 0;
    hub_catch_tail(hub);
    int64_t last = hub->history->ops->revision(hub->history);
    size_t events = 0;
    struct marking marking = {.hub = hub, .trail = &hub->trail};
    while (hub->tail < last) {
        if (hub->ring_count == WATCH_RING_BATCHES || events >= WATCH_TURN_EVENTS ||
            marking.work >= WATCH_TURN_MARKS)
            return true;
        struct watch_slot *slot = &hub->ring[hub->ring_count];
        marking.slot = slot;
        hub->hit_count = 0;
        slot->before = hub->place;
        enum status status = hub->history->ops->next(hub->history, &hub->place, last, &slot->batch);
        bool is_long = status == ST_OK && !slot->batch.events;
        if (is_long)
            status = mark_long(hub, &marking);
        if (is_long && status == ST_AGAIN) {
            hub->place = slot->before;
            return true;
        }
        if (status == ST_COMPACTED) {
            int64_t compacted = hub->history->ops->compact_revision(hub->history);
            tail_gone(hub, (struct watch_place){.revision = compacted});
            continue;
        }
        if (status == ST_DAMAGED) {
            tail_gone(hub, hub->place);
            continue;
        }
        if (status == ST_END)
            hub->tail = last;
        if (status != ST_OK)
            return false;
        assert(slot->batch.count > 0);
        hub->ring_count++;
        hub->tail = slot->batch.revision;
        hub->census.wanted = true;
        if (is_long)
            continue;
        events += slot->batch.count;
        for (marking.event = 0; marking.event < slot->batch.count; marking.event++)
            mark_event(hub, &marking);
    }
    rest_after(hub, marking.woken);
    return false;
}

/* Where its search through the past goes on; 0: it searches something else. */
static int64_t hungry_place(const struct watch_stream *stream)
{
    if (!stream->scan_hungry || list_empty(&stream->scans))
        return 0;
    return LIST_ENTRY(stream->scans.next, const struct watch_scan, in_stream)->place.revision;
}

static int64_t hungry_lowest(const struct watch_hub *hub)
{
    const struct watch_stream *stream;
    int64_t lowest = INT64_MAX;
    int looks = WATCH_HUNGRY_LOOKS;
    LIST_FOREACH (stream, &hub->hungry, in_hungry) {
        int64_t place = hungry_place(stream);
        if (place && place < lowest)
            lowest = place;
        if (--looks == 0)
            break;
    }
    return lowest;
}

static void wake_one_hungry(struct watch_stream *stream)
{
    list_remove(&stream->in_hungry);
    stream->hungry = stream->live_hungry = stream->scan_hungry = stream->large_hungry = false;
    stream_wake(stream);
}

/* All that go on within one stretch. */
static void wake_stretch(struct watch_hub *hub, int64_t from)
{
    struct list *link = hub->hungry.next;
    for (int looks = WATCH_HUNGRY_LOOKS; looks && link != &hub->hungry; looks--) {
        struct watch_stream *stream = LIST_ENTRY(link, struct watch_stream, in_hungry);
        link = link->next;
        int64_t place = hungry_place(stream);
        if (place >= from && place - from < STRETCH_EVENTS_MAX)
            wake_one_hungry(stream);
    }
}

/*
 * Who is the farthest behind goes on in every turn, the others in their order: so those behind
 * reach those before them, and from there on one reading serves both.
 */
static void wake_hungry(struct watch_hub *hub)
{
    wake_stretch(hub, hungry_lowest(hub));
    int stretches = WATCH_STRETCHES - 1;
    for (int i = 0; i < WATCH_HUNGRY_WAKES && stretches && !list_empty(&hub->hungry); i++) {
        struct watch_stream *first = LIST_ENTRY(hub->hungry.next, struct watch_stream, in_hungry);
        int64_t place = hungry_place(first);
        if (!place) {
            wake_one_hungry(first);
            continue;
        }
        wake_stretch(hub, place);
        stretches--;
    }
}

bool watch_hub_turn_begin(struct watch_hub *hub, int64_t now_ns)
{
    hub->now_ns = now_ns;
    hub->free_budget = WATCH_FREE_PER_TURN;
    hub->walk_budget = WATCH_WALK_EVENTS;
    long_turn_begin(hub);
    ring_drop(hub);
    stream_bury(hub);
    /* Before the others, so that they find something left of what a turn may do. */
    wake_hungry(hub);
    bool more = take_in(hub);
    struct heap_link *tick;
    while ((tick = heap_pop(&hub->ticks, now_ns)) != NULL)
        notify_tick(CONTAINER_OF(tick, struct watch_stream, tick));
    census_turn(hub);
    return more || !list_empty(&hub->hungry) || !list_empty(&hub->dying);
}

void watch_hub_turn_end(struct watch_hub *hub)
{
    ring_drop(hub);
    long_turn_end(hub);
    if (hub->options.board)
        watch_board_write_stats(hub->options.board, &hub->stats);
}

int64_t watch_hub_rests_until(const struct watch_hub *hub)
{
    return hub->rest_until_ns;
}

int64_t watch_hub_revision(const struct watch_hub *hub)
{
    return hub->tail;
}

void watch_hub_history_ready(struct watch_hub *hub)
{
    struct list *link;
    while ((link = list_pop_front(&hub->waiting)) != NULL) {
        struct watch_stream *stream = LIST_ENTRY(link, struct watch_stream, in_waiting);
        struct watch_scan *scan;
        LIST_FOREACH (scan, &stream->scans, in_stream)
            scan->waiting = false;
        stream->scans_waiting = 0;
        stream->live_waiting = stream->large_waiting = false;
        stream_wake(stream);
    }
}

int64_t watch_hub_next_ns(const struct watch_hub *hub)
{
    if (!list_empty(&hub->hungry) || !list_empty(&hub->dying))
        return hub->now_ns;
    int64_t census = census_next_ns(hub), tick = heap_first_number(&hub->ticks, CLOCK_NEVER);
    int64_t next = census < tick ? census : tick, ends = long_next_ns(hub);
    next = ends < next ? ends : next;
    return hub->rest_until_ns && hub->rest_until_ns < next ? hub->rest_until_ns : next;
}

/* -- Reading -- */

/* The first of this turn's revisions that is not before `revision`, or ring_count. */
static size_t ring_find(const struct watch_hub *hub, int64_t revision)
{
    size_t low = 0, high = hub->ring_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (hub->ring[middle].batch.revision < revision)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

enum status hub_next(struct watch_hub *hub, struct watch_place *place,
                     struct watch_batch *ret_batch)
{
    if (place->revision <= hub->ring_after) {
        enum status status =
            hub->history->ops->next(hub->history, place, hub->ring_after, ret_batch);
        if (status != ST_END)
            return status;
    }
    size_t at = ring_find(hub, place->revision);
    if (at == hub->ring_count) {
        if (place->revision <= hub->tail)
            *place = hub->place;
        return ST_END;
    }
    *ret_batch = hub->ring[at].batch;
    *place = at + 1 < hub->ring_count ? hub->ring[at + 1].before : hub->place;
    return ST_OK;
}

enum status hub_batch(struct watch_hub *hub, int64_t revision, struct watch_batch *ret_batch)
{
    if (hub->large.revision != revision) {
        struct watch_place place = {.revision = revision};
        TRY(hub_next(hub, &place, &hub->large));
    }
    *ret_batch = hub->large;
    return hub->large.revision == revision ? ST_OK : ST_END;
}

/* -- Tails -- */

static void tails_drop(struct watch_hub *hub)
{
    memset(hub->tails, 0, sizeof(hub->tails));
    hub->tail_used = 0;
}

void hub_range_gone(struct watch_hub *hub, const struct watch_range *range)
{
    long_range_gone(hub, range);
    hub_stretches_drop(hub);
    if (hub->tail_used)
        tails_drop(hub);
}

static bool tail_write(struct watch_hub *hub, struct watch_tail *tail,
                       const struct watch_batch *batch, size_t first, size_t last)
{
    struct slice key = watch_range_key(tail->range), end = watch_range_end(tail->range);
    uint8_t *start = hub->tail_bytes + hub->tail_used, *at = start;
    for (size_t i = first; i <= last; i++) {
        const struct watch_event *event = &batch->events[i];
        if (!watch_filter_passes(tail->variant, event) || !watch_range_covers(key, end, event->key))
            continue;
        struct slice prev = hub_prev(hub, tail->variant, event);
        if (message_event_size(event, prev) > TAIL_LEN_MAX - (size_t)(at - start))
            return false;
        at = message_event_write(at, event, prev);
        tail->events++;
    }
    tail->bytes = start;
    tail->len = (size_t)(at - start);
    hub->tail_used += tail->len;
    return true;
}

const struct watch_tail *hub_tail(struct watch_hub *hub, const struct watch_batch *batch,
                                  const struct watch_range *range, unsigned variant, size_t first,
                                  size_t last)
{
    uint64_t mixed = ((uintptr_t)range >> 3) * 31 + (uint64_t)batch->revision * 8 + variant;
    struct watch_tail *tail = &hub->tails[(mixed ^ (mixed >> 17)) % WATCH_TAIL_SLOTS];
    if (tail->revision == batch->revision && tail->range == range && tail->variant == variant)
        return tail;
    if (WATCH_TAIL_BYTES - hub->tail_used < TAIL_LEN_MAX)
        tails_drop(hub);
    *tail = (struct watch_tail){.range = range, .variant = variant};
    if (!tail_write(hub, tail, batch, first, last))
        return NULL;
    tail->revision = batch->revision;
    return tail;
}

/* -- For tests -- */

struct counts {
    size_t streams, scans, stopped, watchers, live, catching_up, compacted, indexed, held;
};

static void stream_check(const struct watch_stream *stream, struct counts *counts)
{
    size_t rides = 0, scans = 0, notifiers = 0, futures = 0, catching_up = 0;
    const struct watch_scan *scan;
    LIST_FOREACH (scan, &stream->scans, in_stream) {
        const struct watch_ride *ride;
        size_t of_scan = 0;
        LIST_FOREACH (ride, &scan->rides, in_scan) {
            assert(ride->scan == scan);
            assert(ride->watcher->ride == ride);
            assert(ride->watcher->state == WATCHER_CATCHING_UP);
            of_scan++;
        }
        assert(of_scan == scan->ride_count);
        assert(of_scan > 0);
        rides += of_scan;
        scans++;
    }
    assert(scans == stream->scan_count);
    counts->scans += scans;
    CHAIN_FOREACH(link, &stream->ids)
    {
        const struct watcher *watcher = CONTAINER_OF(link, struct watcher, in_ids);
        assert(watcher->stream == stream);
        assert(watcher->state != WATCHER_CLOSED);
        assert((watcher->state == WATCHER_COMPACTED) == (watcher->range == NULL));
        counts->live += watcher->state == WATCHER_LIVE;
        catching_up += watcher->state == WATCHER_CATCHING_UP;
        counts->compacted += watcher->state == WATCHER_COMPACTED;
        counts->indexed += watcher->range != NULL;
        notifiers += (watcher->flags & WATCHER_NOTIFY) != 0;
        futures += (watcher->flags & WATCHER_FUTURE) != 0;
        counts->watchers++;
    }
    assert(rides == catching_up);
    counts->catching_up += catching_up;
    assert(notifiers == stream->notifiers);
    assert(futures == stream->futures);
    assert(heap_has(&stream->tick) == (notifiers > 0 && !stream->dying));
    assert(!stream->rest || stream->rest_at < stream->rest_len);
    assert(stream->control_count <= WATCH_WAITING_MAX);
    counts->streams++;
    counts->stopped += stream->stopped;
    counts->held += stream->rest_len - stream->rest_at;
}

void watch_hub_check(const struct watch_hub *hub)
{
    struct counts counts = {0};
    const struct watch_stream *stream;
    LIST_FOREACH (stream, &hub->streams, in_hub)
        stream_check(stream, &counts);
    assert(counts.streams == hub->stats.streams);
    long_check(hub);
    LIST_FOREACH (stream, &hub->dying, in_hub) {
        stream_check(stream, &counts);
        assert(stream->dying && !stream->owner.wake && !stream->owner.ctx && !stream->owner.soon);
        assert(list_empty(&stream->in_hungry) && list_empty(&stream->in_waiting));
    }
    size_t indexed = range_index_check(&hub->index);
    assert(indexed == counts.indexed);
    assert(counts.live == hub->live);
    assert(counts.watchers == hub->stats.watchers);
    assert(counts.catching_up == hub->stats.watchers_catching_up);
    assert(counts.compacted == hub->stats.watchers_compacted);
    assert(counts.scans == hub->scans);
    assert(counts.stopped == hub->stats.streams_stopped);
    assert(counts.held == hub->stats.held_bytes);
    heap_check(&hub->ticks);
}
