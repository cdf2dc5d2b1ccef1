#include "watch/cursor.h"

#include "base/xalloc.h"
#include "watch/hub/hub_read.h"
#include "watch/hub/long_revision.h"
#include "watch/stream/stats_scan.h"
#include "watch/stream/stream_private.h"

/* To the hub, a cursor is a stream with one watcher that is live from the beginning: one that
 * starts in the past is behind the tail, like any stream that had no room. */
struct watch_cursor {
    struct watch_stream stream; /* first; the cursor is freed with it */
    const struct watcher *watcher;
    size_t at;     /* index of the next event in the revision at the stream's place */
    int64_t known; /* from this revision on the hub's tag index has all events of its tag */
    uint64_t mark; /* an entry of its tag in the tag index, not after its place; a hint */
    /* The revision at the stream's place, valid while `turn` equals hub.turn. Its number is also
     * valid in later turns while `at` is not 0. */
    uint64_t turn;
    struct watch_batch batch;
    bool tagged : 1, tag_within : 1;
    bool is_prefix : 1; /* its range is all keys that begin with the first one; bytes has no end */
    bool walks : 1; /* it has a tag, and is in a part of the past that the index does not cover */
    bool jumps : 1; /* from one of its events to the next, by the index */
    uint32_t tag_hash; /* tag_cache_hash */
    uint32_t key_len, end_len;
    struct watch_place after;
    uint8_t bytes[];
};

/* The range has exactly the keys that begin with `key`. */
static bool is_prefix(struct slice key, struct slice end)
{
    size_t last = key.len - 1;
    return key.len && key.len == end.len && memcmp(key.ptr, end.ptr, last) == 0 &&
           key.ptr[last] + 1 == end.ptr[last];
}

struct watch_cursor *watch_cursor_new(struct watch_hub *hub,
                                      const struct watch_cursor_options *options)
{
    struct slice key = options->key, end = options->range_end, tag = options->tag;
    if (!options->own && !stream_take_one(hub))
        return NULL;
    struct slice kept_end = is_prefix(key, end) ? SLICE_EMPTY : end;
    struct watch_cursor *cursor =
        pool_alloc(hub->pool, offsetof(struct watch_cursor, bytes) + key.len + kept_end.len);
    *cursor = (struct watch_cursor){
        .tagged = tag.len > 0,
        .tag_within = tag.len > 0 && options->tag_within,
        .tag_hash = tag_cache_hash(tag),
        .key_len = (uint32_t)key.len,
        .end_len = (uint32_t)kept_end.len,
        .is_prefix = is_prefix(key, end),
    };
    slice_copy(cursor->bytes, key);
    slice_copy(cursor->bytes + key.len, kept_end);
    stream_init_without_sending(&cursor->stream, hub,
                                (struct watch_stream_owner){.wake = options->wake,
                                                            .ctx = options->ctx,
                                                            .soon = options->soon});
    cursor->stream.own = options->own;
    hub->cursors++;
    struct watch_create create = {.key = tag.len ? tag : key,
                                  .range_end = tag.len ? SLICE_EMPTY : end,
                                  .start_revision = options->from};
    hub->tagged += cursor->tagged;
    cursor->watcher = stream_add_watcher(&cursor->stream, &create, create.key);
    cursor->known = cursor->tagged ? long_revision_tagged_from(hub) : INT64_MAX;
    return cursor;
}

void watch_cursor_free(struct watch_cursor *cursor)
{
    if (!cursor)
        return;
    cursor->stream.hub->tagged -= cursor->tagged;
    cursor->stream.hub->cursors--;
    watch_stream_free(&cursor->stream);
}

static struct tag_index *index_of(const struct watch_cursor *cursor)
{
    struct watch_hub *hub = cursor->stream.hub;
    return cursor->tagged ? &hub->tag_index : &hub->wide_index;
}

/* Reads the revision at the stream's place. */
static enum status read_batch(struct watch_cursor *cursor)
{
    struct watch_stream *stream = &cursor->stream;
    struct watch_hub *hub = stream->hub;
    if (cursor->turn == hub->turn)
        return ST_OK;
    cursor->after = stream->place;
    if (cursor->after.revision > stream->last_hit)
        return ST_END;
    TRY(hub_next(hub, &cursor->after, &cursor->batch));
    if (cursor->batch.revision > stream->last_hit)
        return ST_END;
    cursor->turn = hub->turn;
    return ST_OK;
}

/* Charges events to the walk budget that all cursors share. */
static void pay(struct watch_hub *hub, size_t events)
{
    hub->walk_budget -= size_min(hub->walk_budget, events);
}

/* Whether an event outside the tag index has, or may have, the cursor's tag. */
static bool has_tag(const struct watch_cursor *cursor, const struct watch_event *event)
{
    struct watch_hub *hub = cursor->stream.hub;
    int64_t revision = cursor->batch.revision;
    if (!cursor->walks || !hub->tagger)
        return true;
    const struct tag_cache_entry *of = tag_cache_find(&hub->tag_cache, revision, cursor->at);
    if (!of) {
        struct slice tags[WATCH_TAGS_MAX];
        size_t count = hub->tagger(hub->tagger_ctx, hub->history, event, tags);
        if (count == WATCH_TAGS_UNKNOWN)
            return true;
        of = tag_cache_set(&hub->tag_cache, revision, cursor->at, tags, count);
        pay(hub, WATCH_WALK_TAGGING);
    }
    return tag_cache_entry_has(of, cursor->tag_hash);
}

static bool wants(const struct watch_cursor *cursor, const struct watch_event *event)
{
    if (cursor->batch.revision < cursor->watcher->from)
        return false;
    if (cursor->tag_within && !cursor->walks)
        return true; /* all events of its tag are in its range */
    struct slice key = slice_of(cursor->bytes, cursor->key_len);
    struct slice end = slice_of(cursor->bytes + cursor->key_len, cursor->end_len);
    bool covers = cursor->is_prefix ? slice_has_prefix(event->key, key)
                                    : watch_range_covers(key, end, event->key);
    return covers && has_tag(cursor, event);
}

/* The cursor will be woken: for new events, in a later turn, or when the history is ready. */
static enum status suspend(struct watch_cursor *cursor, enum status why)
{
    struct watch_stream *stream = &cursor->stream;
    stream->woken = false;
    if (why != ST_END) {
        stream_wait_for_history(stream);
        return why;
    }
    stream->dirty = false;
    cursor->at = 0; /* the next wake gives it another place */
    cursor->turn = 0;
    return why;
}

/* From this revision on the index has all events of the cursor. */
static int64_t indexed_from(const struct watch_cursor *cursor, const struct tag_index *index)
{
    int64_t from =
        cursor->tagged ? cursor->known : watch_range_indexed_from(cursor->watcher->range);
    return from > index->from ? from : index->from;
}

/* Moves to the next event of its tag, or of its range, if the index has all of them from here on;
 * otherwise events are examined one by one until it does. False: there is none. */
static bool follow_index(struct watch_cursor *cursor)
{
    struct watch_stream *stream = &cursor->stream;
    struct tag_index *index = index_of(cursor);
    int64_t revision = cursor->at ? cursor->batch.revision : stream->place.revision;
    cursor->jumps = revision >= indexed_from(cursor, index);
    cursor->walks = cursor->tagged && !cursor->jumps;
    if (!cursor->jumps)
        return true;
    const struct tag_event *mark =
        tag_index_seek(index, cursor->watcher->range, revision, cursor->at, &cursor->mark);
    if (!mark)
        return false;
    if (cursor->turn != stream->hub->turn || cursor->batch.revision != mark->revision) {
        stream->place = mark->before;
        cursor->batch.revision = mark->revision;
        cursor->turn = 0;
    }
    cursor->at = mark->event;
    return true;
}

/* In a long revision only the events from the first to the last of the range are examined. */
static void skip_others(struct watch_cursor *cursor, const struct long_revision *long_rev)
{
    const struct long_revision_hit *hit = long_revision_find(long_rev, cursor->watcher->range);
    if (cursor->tagged || !long_rev->passes || (hit && hit->passes > long_rev->passes))
        return;
    if (!hit || hit->first > hit->last || cursor->at > hit->last)
        cursor->at = long_rev->count;
    else if (cursor->at < hit->first)
        cursor->at = hit->first;
}

/* The event at the cursor's place; NULL: it is behind the last. ST_AGAIN: not in this turn. */
static enum status event_at(struct watch_cursor *cursor, const struct watch_event **ret_event)
{
    struct watch_hub *hub = cursor->stream.hub;
    size_t count = cursor->batch.count;
    if (UNLIKELY(!cursor->batch.events)) {
        struct long_revision *long_rev;
        TRY(long_revision_get_loaded(hub, &cursor->stream.place, cursor->batch.revision,
                                     &long_rev));
        skip_others(cursor, long_rev);
        count = long_rev->count;
        if (cursor->at < count)
            long_revision_event(hub, long_rev, cursor->at, &hub->long_event);
    }
    const struct watch_event *event =
        cursor->batch.events ? &cursor->batch.events[cursor->at] : &hub->long_event;
    *ret_event = cursor->at < count ? event : NULL;
    return ST_OK;
}

/* Whether one more event may be examined in this turn. New events, of which there are few, always
 * may. */
static bool may_look(struct watch_cursor *cursor)
{
    struct watch_hub *hub = cursor->stream.hub;
    if (cursor->walks && !hub->walk_budget)
        return false;
    if (cursor->batch.events)
        return true;
    if (!long_revision_units(hub))
        return false;
    long_revision_pay(hub, 1);
    return true;
}

static void pass_over(struct watch_cursor *cursor)
{
    struct watch_hub *hub = cursor->stream.hub;
    cursor->at++;
    if (cursor->walks)
        pay(hub, 1);
    if (cursor->batch.events)
        long_revision_pay(hub, 1);
}

static enum status find_next(struct watch_cursor *cursor, const struct watch_event **ret_event,
                             int64_t *ret_revision)
{
    struct watch_stream *stream = &cursor->stream;
    struct watch_hub *hub = stream->hub;
    hub->budget = WATCH_FILL_EVENTS;
    hub->long_revisions.used_up = !hub->long_revisions.budget;
    if (cursor->turn != hub->turn) /* later in the turn it is less behind */
        stats_scan_raise_behind(stream);
    while (stream->dirty) {
        enum status status = follow_index(cursor) ? read_batch(cursor) : ST_END;
        if (status == ST_COMPACTED || status == ST_DAMAGED)
            return status;
        if (status != ST_OK)
            return suspend(cursor, status);
        const struct watch_event *event = NULL;
        status = event_at(cursor, &event);
        if (status == ST_COMPACTED || status == ST_DAMAGED)
            return status;
        if (status == ST_OK && !event) {
            stream->place = cursor->after; /* it was the last one of its revision */
            cursor->at = 0;
            cursor->turn = 0;
            continue;
        }
        bool may = status == ST_OK && may_look(cursor);
        if (may && wants(cursor, event)) {
            *ret_event = event;
            *ret_revision = cursor->batch.revision;
            return ST_OK;
        }
        if (may)
            pass_over(cursor); /* before it yields, or it would never get past this event */
        if (!may || !long_revision_units(hub)) {
            stream->woken = false;
            stream_defer(stream);
            return ST_AGAIN;
        }
    }
    return suspend(cursor, ST_END);
}

enum status watch_cursor_next(struct watch_cursor *cursor, const struct watch_event **ret_event,
                              int64_t *ret_revision)
{
    if (UNLIKELY(cursor->watcher->is_void))
        return ST_COMPACTED;
    if (!cursor->stream.dirty)
        return suspend(cursor, ST_END);
    return find_next(cursor, ret_event, ret_revision);
}

void watch_cursor_fetch(const struct watch_cursor *cursor)
{
    const uint8_t *own = (const uint8_t *)&cursor->watcher; /* the hub has just used its stream */
    __builtin_prefetch(own, 1);
    __builtin_prefetch(own + 64, 1);
    __builtin_prefetch(own + 128, 1);
}

/* Most cursors with a tag have one event when they are woken: that it was the last is known from
 * its entry, without another search. */
void watch_cursor_take(struct watch_cursor *cursor)
{
    cursor->at++;
    stream_count_events(&cursor->stream, 1);
    if (cursor->jumps && tag_index_is_newest(index_of(cursor), cursor->mark))
        (void)suspend(cursor, ST_END);
}

struct slice watch_cursor_prev(struct watch_cursor *cursor, const struct watch_event *event)
{
    struct watch_history *history = cursor->stream.hub->history;
    return history->ops->prev(history, event);
}

uint64_t watch_cursor_turn(const struct watch_cursor *cursor)
{
    return cursor->stream.hub->turn;
}

int64_t watch_cursor_behind(const struct watch_cursor *cursor)
{
    const struct watch_stream *stream = &cursor->stream;
    return stream->dirty ? stream->hub->tail + 1 - stream->place.revision : 0;
}

int64_t watch_cursor_revision(const struct watch_cursor *cursor)
{
    const struct watch_stream *stream = &cursor->stream;
    return stream->dirty ? stream->place.revision - 1 : stream->hub->tail;
}
