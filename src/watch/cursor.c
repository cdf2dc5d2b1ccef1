#include "watch/cursor.h"

#include "base/xalloc.h"
#include "watch/output.h"

/*
 * To the hub a cursor is a stream with one watcher, which is live from the beginning: one that
 * starts in the past is behind its stream's tail, as any stream that had no room.
 */
struct watch_cursor {
    struct watch_stream *stream; /* owned */
    const struct watcher *watcher;
    size_t at;     /* the event of the revision at the stream's place that comes next */
    int64_t known; /* from this revision on the hub's trail has its tag */
    uint64_t mark; /* of its tag in the trail, not behind where it stands; a hint */
    /* That revision, as it was read in the turn: hub.turn. The number of the revision holds beyond
     * it while `at` is not 0. */
    uint64_t turn;
    struct watch_batch batch;
    struct watch_event event; /* of a long revision: the one at `at` */
    struct watch_place after;
    bool tagged;
    bool walks;        /* through a past that the trail does not have */
    uint32_t tag_hash; /* tags_hash */
    uint32_t key_len, end_len;
    uint8_t bytes[];
};

static struct slice key_of(const struct watch_cursor *cursor)
{
    return slice_of(cursor->bytes, cursor->key_len);
}

static struct slice end_of(const struct watch_cursor *cursor)
{
    return slice_of(cursor->bytes + cursor->key_len, cursor->end_len);
}

struct watch_cursor *watch_cursor_new(struct watch_hub *hub,
                                      const struct watch_cursor_options *options)
{
    struct slice key = options->key, end = options->range_end, tag = options->tag;
    if (!hub_take_one(hub))
        return NULL;
    struct watch_cursor *cursor = xmalloc(sizeof(*cursor) + key.len + end.len);
    *cursor = (struct watch_cursor){
        .tagged = tag.len > 0,
        .tag_hash = tags_hash(tag),
        .key_len = (uint32_t)key.len,
        .end_len = (uint32_t)end.len,
    };
    slice_copy(cursor->bytes, key);
    slice_copy(cursor->bytes + key.len, end);
    cursor->stream = watch_stream_new(hub, (struct watch_stream_owner){.wake = options->wake,
                                                                       .ctx = options->ctx,
                                                                       .soon = options->soon});
    cursor->stream->cursor = true;
    hub->cursors++;
    struct watch_create create = {.key = tag.len ? tag : key,
                                  .range_end = tag.len ? SLICE_EMPTY : end,
                                  .start_revision = options->from};
    hub->tagged += cursor->tagged;
    cursor->watcher = stream_add_watcher(cursor->stream, &create, create.key);
    cursor->known = cursor->tagged ? long_tagged_from(hub) : INT64_MAX;
    return cursor;
}

void watch_cursor_free(struct watch_cursor *cursor)
{
    if (!cursor)
        return;
    cursor->stream->hub->tagged -= cursor->tagged;
    cursor->stream->hub->cursors--;
    watch_stream_free(cursor->stream);
    free(cursor);
}

/* The revision at the stream's place. */
static enum status read_batch(struct watch_cursor *cursor)
{
    struct watch_stream *stream = cursor->stream;
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

/* What all of them may walk over goes down by what this one does. */
static void pay(struct watch_hub *hub, size_t events)
{
    hub->walk_budget -= size_min(hub->walk_budget, events);
}

/* Where the trail does not lead: whether an event has the cursor's tag, or might. */
static bool has_tag(const struct watch_cursor *cursor, const struct watch_event *event)
{
    struct watch_hub *hub = cursor->stream->hub;
    int64_t revision = cursor->batch.revision;
    if (!cursor->walks || !hub->tagger)
        return true;
    const struct tags_of_event *of = tags_find(&hub->tags, revision, cursor->at);
    if (!of) {
        struct slice tags[WATCH_TAGS_MAX];
        size_t count = hub->tagger(hub->tagger_ctx, hub->history, event, tags);
        if (count == WATCH_TAGS_UNKNOWN)
            return true;
        of = tags_set(&hub->tags, revision, cursor->at, tags, count);
        pay(hub, WATCH_WALK_TAGGING);
    }
    return tags_have(of, cursor->tag_hash);
}

static bool wants(const struct watch_cursor *cursor, const struct watch_event *event)
{
    return cursor->batch.revision >= cursor->watcher->from &&
           watch_range_covers(key_of(cursor), end_of(cursor), event->key) && has_tag(cursor, event);
}

/* It will be woken: for something new, in a later turn, or when the history is there. */
static enum status rest(struct watch_cursor *cursor, enum status why)
{
    struct watch_stream *stream = cursor->stream;
    stream->woken = false;
    if (why != ST_END) {
        stream_park_waiting(stream);
        return why;
    }
    stream->dirty = false;
    cursor->at = 0; /* what wakes it gives it another place */
    cursor->turn = 0;
    return why;
}

static void next_batch(struct watch_cursor *cursor)
{
    cursor->stream->place = cursor->after;
    cursor->at = 0;
    cursor->turn = 0;
}

/*
 * Goes on to the next event of its tag, if the trail has all of them from where it stands; else
 * what is there is walked over until it does. False: there is none.
 */
static bool follow_tag(struct watch_cursor *cursor)
{
    struct watch_stream *stream = cursor->stream;
    struct watch_trail *trail = &stream->hub->trail;
    int64_t revision = cursor->at ? cursor->batch.revision : stream->place.revision;
    cursor->walks = cursor->tagged && (revision < cursor->known || revision < trail->from);
    if (cursor->walks || !cursor->tagged)
        return true;
    const struct trail_mark *mark =
        trail_seek(trail, cursor->watcher->range, revision, cursor->at, &cursor->mark);
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

/* Of a long revision only what lies between the first and the last of the range is looked at. */
static void skip_others(struct watch_cursor *cursor, const struct watch_long *l)
{
    const struct long_hit *hit = long_find(l, cursor->watcher->range);
    if (cursor->tagged || !l->passes || (hit && hit->passes > l->passes))
        return;
    if (!hit || hit->first > hit->last || cursor->at > hit->last)
        cursor->at = l->count;
    else if (cursor->at < hit->first)
        cursor->at = hit->first;
}

/* The event that the cursor stands at; NULL: it is behind the last. ST_AGAIN: not in this turn. */
static enum status event_at(struct watch_cursor *cursor, const struct watch_event **ret_event)
{
    struct watch_hub *hub = cursor->stream->hub;
    size_t count = cursor->batch.count;
    if (UNLIKELY(!cursor->batch.events)) {
        struct watch_long *l;
        TRY(long_get_loaded(hub, &cursor->stream->place, cursor->batch.revision, &l));
        skip_others(cursor, l);
        count = l->count;
        if (cursor->at < count)
            long_event(hub, l, cursor->at, &cursor->event);
    }
    const struct watch_event *event =
        cursor->batch.events ? &cursor->batch.events[cursor->at] : &cursor->event;
    *ret_event = cursor->at < count ? event : NULL;
    return ST_OK;
}

/* It may look at one more event in this turn. New events, of which there are few, always. */
static bool may_look(struct watch_cursor *cursor)
{
    struct watch_hub *hub = cursor->stream->hub;
    if (cursor->walks && !hub->walk_budget)
        return false;
    if (cursor->batch.events)
        return true;
    if (!long_units(hub))
        return false;
    long_pay(hub, 1);
    return true;
}

static void pass_over(struct watch_cursor *cursor)
{
    struct watch_hub *hub = cursor->stream->hub;
    cursor->at++;
    if (cursor->walks)
        pay(hub, 1);
    if (cursor->batch.events)
        long_pay(hub, 1);
}

enum status watch_cursor_next(struct watch_cursor *cursor, const struct watch_event **ret_event,
                              int64_t *ret_revision)
{
    struct watch_stream *stream = cursor->stream;
    stream->hub->budget = WATCH_FILL_EVENTS;
    stream_raise_behind(stream, census_behind(stream));
    while (stream->dirty) {
        enum status status = follow_tag(cursor) ? read_batch(cursor) : ST_END;
        if (status == ST_COMPACTED || status == ST_DAMAGED)
            return status;
        if (status != ST_OK)
            return rest(cursor, status);
        const struct watch_event *event = NULL;
        status = event_at(cursor, &event);
        if (status == ST_COMPACTED || status == ST_DAMAGED)
            return status;
        if (status == ST_OK && !event) {
            next_batch(cursor);
            continue;
        }
        bool may = status == ST_OK && may_look(cursor);
        if (may && wants(cursor, event)) {
            *ret_event = event;
            *ret_revision = cursor->batch.revision;
            return ST_OK;
        }
        if (may)
            pass_over(cursor); /* before it gives way, or it would never get past it */
        if (!may || !long_units(stream->hub)) {
            stream->woken = false;
            stream_park_hungry(stream);
            return ST_AGAIN;
        }
    }
    return rest(cursor, ST_END);
}

void watch_cursor_fetch(const struct watch_cursor *cursor)
{
    __builtin_prefetch(cursor, 1);
    __builtin_prefetch((const uint8_t *)cursor + 64, 1);
}

void watch_cursor_take(struct watch_cursor *cursor)
{
    cursor->at++;
    stream_count_events(cursor->stream, 1);
}

struct slice watch_cursor_prev(struct watch_cursor *cursor, const struct watch_event *event)
{
    struct watch_history *history = cursor->stream->hub->history;
    return history->ops->prev(history, event);
}

uint64_t watch_cursor_turn(const struct watch_cursor *cursor)
{
    return cursor->stream->hub->turn;
}

int64_t watch_cursor_revision(const struct watch_cursor *cursor)
{
    const struct watch_stream *stream = cursor->stream;
    return stream->dirty ? stream->place.revision - 1 : stream->hub->tail;
}

void watch_hub_set_tagger(struct watch_hub *hub, watch_tagger tagger, void *ctx)
{
    hub->tagger = tagger;
    hub->tagger_ctx = ctx;
}
