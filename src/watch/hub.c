#include "watch/hub.h"

#include "base/clock.h"
#include "base/xalloc.h"
#include "watch/hub/hub_read.h"
#include "watch/hub/long_revision.h"
#include "watch/hub/run.h"
#include "watch/stream/output.h"
#include "watch/stream/stats_scan.h"
#include "watch/stream/stream_private.h"

enum {
    READ_AHEAD = 16,         /* revisions read before their streams are marked */
    FETCH_STEP = 4,          /* how many before the last one its first range is fetched */
    TURN_EVENTS = 8192,      /* events examined at the begin of one turn */
    TURN_MARKS = 256 * 1024, /* streams examined at the begin of one turn */
    TAG_MARKS = 64,          /* finding the tags of an event counts as this many streams */
    DEFERRED_LOOKS = 512,    /* deferred streams examined in one search for those to wake */
    DEFERRED_WAKES = 64,     /* deferred streams woken in one turn that search no window */
    MARKED_WAKES = 4096,     /* streams with new events woken in one turn, 1 to 2 ms */
};

void watch_hub_set_identity(struct watch_hub *hub, const struct watch_identity *identity)
{
    message_identity_init(&hub->identity, identity);
    for (size_t i = 0; i < WATCH_HEADERS; i++)
        message_header_make(&hub->headers[i], &hub->identity, 0);
}

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
    watch_hub_set_identity(hub, &options->identity);
    hub->turn = 1;
    hub->tail = hub->ring_after = hub->history->ops->revision(hub->history);
    hub->place.revision = hub->tail + 1;
    tag_index_init(&hub->tag_index, hub->place.revision);
    tag_index_init(&hub->wide_index, hub->place.revision);
    hub->ring = xcalloc(WATCH_RING_BATCHES, sizeof(hub->ring[0]));
    hub->run = xcalloc(1, sizeof(*hub->run));
    hub->encoded_bytes = xmalloc(WATCH_ENCODED_BYTES);
    hub->piece = xmalloc(WATCH_PIECE_BYTES_MAX);
    list_init(&hub->streams);
    list_init(&hub->closing);
    hub->free_budget = WATCH_FREE_PER_TURN;
    hub->walk_budget = WATCH_WALK_EVENTS;
    list_init(&hub->deferred);
    list_init(&hub->starved);
    list_init(&hub->unwoken);
    list_init(&hub->waiting);
    long_revision_init(hub);
    return hub;
}

void watch_hub_free(struct watch_hub *hub)
{
    if (!hub)
        return;
    assert(list_empty(&hub->streams));
    hub->free_budget = SIZE_MAX;
    stream_free_closing(hub);
    long_revision_fini(hub);
    range_index_fini(&hub->index);
    heap_fini(&hub->ticks);
    for (size_t i = 0; i < WATCH_WINDOWS; i++)
        history_window_fini(&hub->windows[i]);
    tag_index_fini(&hub->tag_index);
    tag_index_fini(&hub->wide_index);
    tag_cache_fini(&hub->tag_cache);
    free(hub->hits);
    free(hub->piece);
    free(hub->encoded_bytes);
    free(hub->run);
    free(hub->ring);
    pool_free(hub->pool);
    free(hub);
}

/* -- New revisions -- */

struct marking {
    struct watch_hub *hub;
    struct tag_index *tag_index;
    struct watch_slot *slot;
    size_t event; /* its index in the slot's batch */
    size_t work;  /* streams examined */
    size_t woken; /* streams woken */
};

/* Watchers, their streams and the streams' owners are scattered in memory and, when there are many,
 * in no cache: those of the next streams are prefetched while one is marked, each step a few places
 * ahead. Without `wakes` the owners are not reached. */
static void prefetch_next(struct watcher *const *streams, uint32_t at, uint32_t count, bool wakes)
{
    enum { STEP = 3 };
    if (at + 4 * STEP < count)
        __builtin_prefetch(streams[at + 4 * STEP]);
    if (at + 3 * STEP < count) {
        const uint8_t *stream = (const uint8_t *)streams[at + 3 * STEP]->stream;
        __builtin_prefetch(stream, 1);
        __builtin_prefetch(stream + 64, 1);
        __builtin_prefetch(stream + offsetof(struct watch_stream, events_sent), 1);
        if (!wakes)
            __builtin_prefetch(stream + offsetof(struct watch_stream, in_deferred), 1);
    }
    if (!wakes)
        return;
    if (at + 2 * STEP < count) {
        uintptr_t owner = (uintptr_t)streams[at + 2 * STEP]->stream->owner.ctx; /* may be NULL */
        __builtin_prefetch((const void *)owner, 1);
        __builtin_prefetch((const void *)(owner + 64), 1);
    }
    if (at + STEP < count) {
        const struct watch_stream *stream = streams[at + STEP]->stream;
        if (stream->cursor && stream->owner.soon)
            stream->owner.soon(stream->owner.ctx);
    }
}

/* Wakes a stream with new events. Waking its connection takes much longer than marking it: of very
 * many, some are woken in each turn. */
static void wake_marked(struct watch_hub *hub, struct watch_stream *stream)
{
    if (hub->wake_budget) {
        hub->wake_budget--;
        stream_wake(stream);
    } else if (!stream->woken && !stream->deferred) {
        list_remove(&stream->in_deferred);
        list_push_back(&hub->unwoken, &stream->in_deferred);
    }
}

static void wake_unwoken(struct watch_hub *hub)
{
    struct list *link;
    for (; hub->wake_budget && (link = list_pop_front(&hub->unwoken)); hub->wake_budget--) {
        __builtin_prefetch(LIST_ENTRY(hub->unwoken.next, struct watch_stream, in_deferred), 1);
        stream_wake(LIST_ENTRY(link, struct watch_stream, in_deferred));
    }
}

static void mark_stream(struct marking *marking, struct watch_stream *stream)
{
    struct watch_slot *slot = marking->slot;
    slot->several |= slot->only && slot->only != stream;
    slot->only = stream;
    stream->last_hit = slot->batch.revision;
    if (stream->dirty)
        return;
    stream->dirty = true;
    stream->place = slot->before;
    stream_changed(stream);
    wake_marked(marking->hub, stream);
    marking->woken++;
}

/* Whether an earlier event of the same revision has marked the streams of the range. */
static bool marked_before(const struct marking *marking, struct watch_range *range)
{
    if (marking->slot->batch.count == 1)
        return false; /* most revisions have one event, and need no hits */
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
        prefetch_next(streams, i, range->count, marking->hub->wake_budget > 0);
        if (streams[i]->state == WATCHER_LIVE)
            mark_stream(marking, streams[i]->stream);
    }
}

/* A range of keys that an event is in. */
static void mark_range(void *ctx, struct watch_range *range)
{
    const struct marking *marking = ctx;
    const struct watch_slot *slot = marking->slot;
    if (watch_range_is_indexed(range, slot->batch.revision))
        tag_index_add(&marking->hub->wide_index, range, &slot->before, slot->batch.revision,
                      marking->event);
    mark(ctx, range);
}

static void mark_tag(void *ctx, struct watch_range *range)
{
    const struct marking *marking = ctx;
    const struct watch_slot *slot = marking->slot;
    if (!range->wide)
        tag_index_add(marking->tag_index, range, &slot->before, slot->batch.revision,
                      marking->event);
    mark(ctx, range);
}

/* The tags of an event are unknown: all cursors read the revision, and none skips it with the tag
 * index. */
static void mark_cursors(struct watch_hub *hub, struct marking *marking)
{
    struct watch_stream *stream;
    LIST_FOREACH (stream, &hub->streams, in_hub) {
        if (stream->cursor && stream->ids.count)
            mark_stream(marking, stream);
    }
    marking->work += hub->stats.streams;
    tag_index_drop(&hub->tag_index, marking->slot->batch.revision + 1);
}

static void mark_event(struct watch_hub *hub, struct marking *marking)
{
    const struct watch_event *event = &marking->slot->batch.events[marking->event];
    range_index_visit(&hub->index, event->key, mark_range, marking);
    if (!hub->tagged || !hub->tagger)
        return;
    struct slice tags[WATCH_TAGS_MAX];
    size_t count = hub->tagger(hub->tagger_ctx, hub->history, event, tags);
    marking->work += TAG_MARKS;
    if (UNLIKELY(count == WATCH_TAGS_UNKNOWN)) {
        mark_cursors(hub, marking);
        return;
    }
    for (size_t i = 0; i < count; i++)
        range_index_visit(&hub->index, tags[i], mark_tag, marking);
}

/* Marks the streams that a long revision concerns once these are known; long_revision.h says why
 * all at once. ST_AGAIN: the search continues, and the tail stays before the revision. */
static enum status mark_long(struct watch_hub *hub, struct marking *marking)
{
    const struct watch_slot *slot = marking->slot;
    struct long_revision *long_rev;
    TRY(long_revision_get_for_tail(hub, &slot->before, slot->batch.revision, &long_rev));
    tag_index_drop(&hub->wide_index, slot->batch.revision + 1); /* it has too many events */
    for (size_t i = 0; i < long_rev->hit_count; i++)
        if (long_rev->hits[i].range)
            mark(marking, long_rev->hits[i].range);
    if (long_rev->tags_unknown)
        mark_cursors(hub, marking);
    return ST_OK;
}

/* The revisions after the tail, up to `behind`, are gone: all streams must report that. */
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
        wake_marked(hub, stream);
    }
    hub->tail = behind.revision - 1;
    hub->place = behind;
    tag_index_drop(&hub->tag_index, behind.revision);
    tag_index_drop(&hub->wide_index, behind.revision);
    hub_ring_drop(hub);
}

/*
 * Waking a stream costs its shard some microseconds, and less per stream when many are woken at
 * once: a send is cheaper when its reader is already awake. So when many cursors were woken, the
 * hub waits a little before it reads more; up to a twentieth of the time may pass without a pause.
 */
static void pause_after(struct watch_hub *hub, size_t woken)
{
    static const int64_t each_ns = 20 * NS_PER_US, most_ns = 4 * NS_PER_MS;
    bool only_cursors = hub->cursors == hub->stats.streams;
    if (woken < WATCH_PAUSE_FROM || !only_cursors)
        return;
    int64_t rest_ns = woken < most_ns / each_ns ? (int64_t)woken * each_ns : most_ns;
    hub->pause_until_ns = hub->now_ns + rest_ns;
}

/* Reads some revisions into the ring. What the index has about their keys is in no cache when there
 * are very many watchers, so it is fetched while others are read. Returns the status of the last
 * one. A long one is left behind the others of the ring, for the caller. */
static enum status read_ahead(struct watch_hub *hub, int64_t last, size_t *events, bool *ret_long)
{
    size_t first = hub->ring_count, end = size_min(first + READ_AHEAD, WATCH_RING_BATCHES);
    while (hub->ring_count < end && hub->tail < last && *events < TURN_EVENTS) {
        size_t at = hub->ring_count;
        struct watch_slot *slot = &hub->ring[at];
        *slot = (struct watch_slot){.before = hub->place};
        TRY(hub->history->ops->next(hub->history, &hub->place, last, &slot->batch));
        assert(slot->batch.count > 0);
        *ret_long = !slot->batch.events;
        if (*ret_long)
            return ST_OK;
        hub->ring_count++;
        hub->tail = slot->batch.revision;
        *events += slot->batch.count;
        range_index_fetch_bucket(&hub->index, slot->batch.events[0].key);
        if (at >= first + FETCH_STEP)
            range_index_fetch(&hub->index, slot[-FETCH_STEP].batch.events[0].key);
    }
    return ST_OK;
}

/* Marks the streams that the revisions of the ring concern, from slot `at` on. False: that was
 * enough work for one turn, and the others are read again in the next one. */
static bool mark_slots(struct watch_hub *hub, struct marking *marking, size_t at)
{
    for (; at < hub->ring_count; at++) {
        marking->slot = &hub->ring[at];
        if (marking->work >= TURN_MARKS) {
            hub->place = marking->slot->before;
            hub->ring_count = at;
            hub->tail = hub->place.revision - 1;
            return false;
        }
        hub->stats_scan.wanted = true;
        hub_hits_drop(hub);
        for (marking->event = 0; marking->event < marking->slot->batch.count; marking->event++)
            mark_event(hub, marking);
    }
    return true;
}

/* Takes the long revision behind the others of the ring. */
static enum status take_long(struct watch_hub *hub, struct marking *marking)
{
    struct watch_slot *slot = marking->slot = &hub->ring[hub->ring_count];
    hub_hits_drop(hub);
    TRY(mark_long(hub, marking));
    hub->ring_count++;
    hub->tail = slot->batch.revision;
    hub->stats_scan.wanted = true;
    return ST_OK;
}

/* Returns whether there is more to read at once. */
static bool read_new_revisions(struct watch_hub *hub)
{
    if (hub->pause_until_ns > hub->now_ns)
        return false;
    hub->pause_until_ns = 0;
    hub->tail_waits = false;
    /* All watchers catch up, if there are any: no stream needs the events now. */
    if (!hub->live)
        hub_catch_tail(hub);
    int64_t last = hub->history->ops->revision(hub->history);
    size_t events = 0;
    struct marking marking = {.hub = hub, .tag_index = &hub->tag_index};
    while (hub->tail < last) {
        if (hub->ring_count == WATCH_RING_BATCHES || events >= TURN_EVENTS ||
            marking.work >= TURN_MARKS)
            return true; /* enough for one turn */
        bool is_long = false;
        size_t first = hub->ring_count;
        enum status status = read_ahead(hub, last, &events, &is_long);
        if (!mark_slots(hub, &marking, first))
            return true;
        if (is_long)
            status = take_long(hub, &marking);
        if (is_long && status == ST_AGAIN) {
            /* Its search continues in the next turn. What follows it has to wait. */
            hub->place = hub->ring[hub->ring_count].before;
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
            hub->tail = last; /* the newest revisions have no events */
        hub->tail_waits = status == ST_AGAIN;
        if (status != ST_OK)
            return false;
    }
    pause_after(hub, marking.woken);
    return false;
}

/* Where its search through the past continues; 0: it searches something else. */
static int64_t deferred_place(const struct watch_stream *stream)
{
    if (!stream->scan_deferred || list_empty(&sending(stream)->scans))
        return 0;
    return LIST_ENTRY(sending(stream)->scans.next, const struct watch_scan, in_stream)
        ->place.revision;
}

static int64_t deferred_lowest(const struct watch_hub *hub)
{
    const struct watch_stream *stream;
    int64_t lowest = INT64_MAX;
    int looks = DEFERRED_LOOKS;
    LIST_FOREACH (stream, &hub->deferred, in_deferred) {
        int64_t place = deferred_place(stream);
        if (place && place < lowest)
            lowest = place;
        if (--looks == 0)
            break;
    }
    return lowest;
}

static void wake_deferred_stream(struct watch_stream *stream)
{
    list_remove(&stream->in_deferred);
    stream->deferred = stream->live_deferred = stream->scan_deferred = stream->large_deferred =
        false;
    stream_wake(stream);
}

/* Wakes all streams that continue within one window. */
static void wake_window(struct watch_hub *hub, int64_t from)
{
    struct list *link = hub->deferred.next;
    for (int looks = DEFERRED_LOOKS; looks && link != &hub->deferred; looks--) {
        struct watch_stream *stream = LIST_ENTRY(link, struct watch_stream, in_deferred);
        link = link->next;
        int64_t place = deferred_place(stream);
        if (place >= from && place - from < WINDOW_EVENTS_MAX)
            wake_deferred_stream(stream);
    }
}

/* The streams that are farthest behind continue in every turn, the others in their order. So those
 * behind catch up with those ahead, and from there on one reading serves both. */
static void wake_deferred(struct watch_hub *hub)
{
    /* Fills follow the order of the wakes, so every stream gets its share of the units. */
    list_append(&hub->starved, &hub->deferred);
    list_append(&hub->deferred, &hub->starved);
    wake_window(hub, deferred_lowest(hub));
    int windows = WATCH_WINDOWS - 1;
    for (int i = 0; i < DEFERRED_WAKES && windows && !list_empty(&hub->deferred); i++) {
        struct watch_stream *first =
            LIST_ENTRY(hub->deferred.next, struct watch_stream, in_deferred);
        int64_t place = deferred_place(first);
        if (!place) {
            wake_deferred_stream(first);
            continue;
        }
        wake_window(hub, place);
        windows--;
    }
}

void watch_hub_set_tagger(struct watch_hub *hub, watch_tagger tagger, void *ctx)
{
    hub->tagger = tagger;
    hub->tagger_ctx = ctx;
}

static bool any_deferred(const struct watch_hub *hub)
{
    return !list_empty(&hub->deferred) || !list_empty(&hub->starved) || !list_empty(&hub->unwoken);
}

bool watch_hub_turn_begin(struct watch_hub *hub, int64_t now_ns)
{
    hub->now_ns = now_ns;
    hub->free_budget = WATCH_FREE_PER_TURN;
    hub->walk_budget = WATCH_WALK_EVENTS;
    long_revision_turn_begin(hub);
    hub_ring_drop(hub);
    if (!list_empty(&hub->closing))
        stream_free_closing(hub);
    hub->wake_budget = MARKED_WAKES;
    wake_unwoken(hub);
    /* Before the others, so that these streams get a share of the turn's work. */
    wake_deferred(hub);
    bool more = read_new_revisions(hub);
    struct heap_link *tick;
    while ((tick = heap_pop(&hub->ticks, now_ns)) != NULL)
        notify_tick(&CONTAINER_OF(tick, struct watch_sending, tick)->stream);
    if (stats_scan_next_ns(hub) <= now_ns)
        stats_scan_turn(hub);
    return more || any_deferred(hub) || !list_empty(&hub->closing);
}

void watch_hub_turn_end(struct watch_hub *hub)
{
    hub_ring_drop(hub);
    if (long_revision_any(hub))
        long_revision_turn_end(hub);
    if (hub->options.snapshot)
        watch_stats_snapshot_write_counters(hub->options.snapshot, &hub->stats);
}

int64_t watch_hub_paused_until(const struct watch_hub *hub)
{
    return hub->pause_until_ns;
}

int64_t watch_hub_revision(const struct watch_hub *hub)
{
    return hub->tail;
}

void watch_hub_history_ready(struct watch_hub *hub)
{
    struct list *link;
    hub->tail_waits = false;
    while ((link = list_pop_front(&hub->waiting)) != NULL) {
        struct watch_stream *stream = LIST_ENTRY(link, struct watch_stream, in_waiting);
        struct watch_scan *scan;
        if (stream->scans_waiting)
            LIST_FOREACH (scan, &sending(stream)->scans, in_stream)
                scan->waiting = false;
        stream->scans_waiting = 0;
        stream->live_waiting = stream->large_waiting = false;
        stream_wake(stream);
    }
}

int64_t watch_hub_next_ns(const struct watch_hub *hub)
{
    if (any_deferred(hub) || !list_empty(&hub->closing))
        return hub->now_ns;
    int64_t stats_scan = stats_scan_next_ns(hub),
            tick = heap_first_number(&hub->ticks, CLOCK_NEVER);
    int64_t next = stats_scan < tick ? stats_scan : tick;
    int64_t ends = long_revision_any(hub) ? long_revision_next_ns(hub) : CLOCK_NEVER;
    next = ends < next ? ends : next;
    return hub->pause_until_ns && hub->pause_until_ns < next ? hub->pause_until_ns : next;
}

const struct watch_report *watch_hub_scan_stats(struct watch_hub *hub)
{
    stats_scan_all(hub);
    return &hub->report;
}

/* -- For tests -- */

struct counts {
    size_t streams, scans, stopped, watchers, live, catching_up, compacted, indexed, held;
};

/* What a cursor's stream has nothing of. */
static void sending_check(const struct watch_sending *s, struct counts *counts, size_t *ret_members)
{
    size_t members = 0, scans = 0;
    const struct watch_scan *scan;
    LIST_FOREACH (scan, &s->scans, in_stream) {
        const struct scan_member *member;
        size_t of_scan = 0;
        LIST_FOREACH (member, &scan->members, in_scan) {
            assert(member->scan == scan);
            assert(member->watcher->member == member);
            assert(member->watcher->state == WATCHER_CATCHING_UP);
            of_scan++;
        }
        assert(of_scan == scan->member_count);
        assert(of_scan > 0);
        members += of_scan;
        scans++;
    }
    assert(scans == s->stream.scan_count);
    assert(heap_has(&s->tick) == (s->stream.notifiers > 0 && !s->stream.closing));
    assert(!s->rest || s->rest_at < s->rest_len);
    assert(s->control_count <= WATCH_WAITING_MAX);
    counts->scans += scans;
    counts->held += s->rest_len - s->rest_at;
    *ret_members = members;
}

static void stream_check(const struct watch_stream *stream, struct counts *counts)
{
    size_t members = 0, notifiers = 0, futures = 0, catching_up = 0;
    if (!stream->cursor)
        sending_check(sending(stream), counts, &members);
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
    assert(members == catching_up);
    counts->catching_up += catching_up;
    assert(notifiers == stream->notifiers);
    assert(futures == stream->futures);
    counts->streams++;
    counts->stopped += stream->stopped;
}

void watch_hub_check(const struct watch_hub *hub)
{
    struct counts counts = {0};
    const struct watch_stream *stream;
    LIST_FOREACH (stream, &hub->streams, in_hub)
        stream_check(stream, &counts);
    assert(counts.streams == hub->stats.streams);
    long_revision_check(hub);
    if (hub->run->turn)
        run_check(hub->run);
    LIST_FOREACH (stream, &hub->closing, in_hub) {
        stream_check(stream, &counts);
        assert(stream->closing && !stream->owner.wake && !stream->owner.ctx && !stream->owner.soon);
        assert(list_empty(&stream->in_deferred) && list_empty(&stream->in_waiting));
    }
    size_t indexed = range_index_check(&hub->index);
    assert(indexed == counts.indexed);
    assert(counts.live == hub->live);
    assert(counts.watchers == hub->stats.watchers + hub->own_watchers);
    assert(counts.catching_up == hub->stats.watchers_catching_up);
    assert(counts.compacted == hub->stats.watchers_compacted);
    assert(counts.scans == hub->scans);
    assert(counts.stopped == hub->stats.streams_stopped);
    assert(counts.held == hub->stats.held_bytes);
    heap_check(&hub->ticks);
}
