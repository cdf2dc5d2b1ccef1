#include "base/xalloc.h"
#include "watch/output.h"

/* A revision with more is not told when what a turn may do is used up. */
enum { FEW_EVENTS = 32 };

/* One watcher's response for a revision. It is told with this: what has no room is kept. */
static void send_revision(struct watch_stream *stream, struct watch_output *out,
                          struct watcher *watcher, const struct watch_batch *batch, size_t first,
                          size_t last)
{
    struct watch_hub *hub = stream->hub;
    const struct watch_tail *tail =
        hub_tail(hub, batch, watcher->range, watcher->flags & WATCHER_VARIANT, first, last);
    watcher->from = batch->revision + 1;
    if (tail && !tail->len)
        return;
    watcher->flags &= (uint8_t)~WATCHER_QUIET;
    const struct message_header *header = hub_header(hub, batch->revision);
    size_t head = message_event_head_size(header, watcher->id);
    bool cut = tail && watcher->flags & WATCHER_FRAGMENT && tail->events > 1 &&
               head + tail->len >= hub->options.fragment_bytes;
    if (!tail || cut) {
        large_begin(stream, watcher, batch->revision, batch->revision);
        return;
    }
    uint8_t *dst = output_begin(stream, out, head + tail->len);
    uint8_t *at = message_event_head_write(dst, header, watcher->id, tail->len);
    memcpy(at, tail->bytes, tail->len);
    output_end(stream, out, dst, head + tail->len);
    stream_count_events(stream, tail->events);
}

/* The first and the last event that the range covers. */
static bool find_events(const struct watch_range *range, const struct watch_batch *batch,
                        size_t *ret_first, size_t *ret_last)
{
    struct slice key = watch_range_key(range), end = watch_range_end(range);
    size_t first = 0, last = batch->count;
    while (first < last && !watch_range_covers(key, end, batch->events[first].key))
        first++;
    if (first == last)
        return false;
    while (!watch_range_covers(key, end, batch->events[last - 1].key))
        last--;
    *ret_first = first;
    *ret_last = last - 1;
    return true;
}

/* A stream with few watchers looks at each of them. Returns whether all were served. */
static bool fill_few(struct watch_stream *stream, struct watch_output *out,
                     const struct watch_batch *batch)
{
    CHAIN_FOREACH(link, &stream->ids)
    {
        struct watcher *watcher = CONTAINER_OF(link, struct watcher, in_ids);
        size_t first, last;
        if (watcher->state != WATCHER_LIVE || watcher->from > batch->revision ||
            !find_events(watcher->range, batch, &first, &last))
            continue;
        if (!output_open(stream, out))
            return false;
        send_revision(stream, out, watcher, batch, first, last);
    }
    return true;
}

struct search {
    struct watch_hub *hub;
    const struct watch_stream *stream;
    size_t event;
};

static void add_hit(void *ctx, struct watch_range *range)
{
    struct search *search = ctx;
    struct watch_hub *hub = search->hub;
    struct watch_hit *hit = hub_find_hit(hub, range);
    if (hit) {
        hit->last_event = search->event;
        return;
    }
    struct watcher *first = watch_range_first(range, search->stream);
    if (!first || first->state != WATCHER_LIVE)
        return;
    hit = hub_add_hit(hub, range);
    hit->first = first;
    hit->first_event = hit->last_event = search->event;
}

/* One with many searches for those that are concerned. Returns whether all were served. */
static bool fill_many(struct watch_stream *stream, struct watch_output *out,
                      const struct watch_batch *batch)
{
    struct watch_hub *hub = stream->hub;
    struct search search = {.hub = hub, .stream = stream};
    hub->hit_count = 0;
    for (; search.event < batch->count; search.event++)
        range_index_visit(&hub->index, batch->events[search.event].key, add_hit, &search);
    for (uint32_t i = stream->resume_hit; i < hub->hit_count; i++) {
        const struct watch_hit *hit = &hub->hits[i];
        struct watcher *watcher = hit->first;
        if (stream->resume_at && i == stream->resume_hit)
            watcher = stream->resume_at;
        do {
            if (watcher->state != WATCHER_LIVE)
                break;
            if (!output_open(stream, out)) {
                stream->resume_at = watcher;
                stream->resume_hit = i;
                return false;
            }
            if (watcher->from <= batch->revision)
                send_revision(stream, out, watcher, batch, hit->first_event, hit->last_event);
            watcher = watcher->next;
        } while (watcher != hit->first);
    }
    return true;
}

/* -- Long revisions -- */

enum status live_tell_long(struct watch_stream *stream, struct watcher *watcher, int64_t *from,
                           struct watch_long *l, int64_t header_revision)
{
    struct watch_hub *hub = stream->hub;
    const struct long_hit *hit = long_find(l, watcher->range);
    if (!long_units(hub))
        return ST_AGAIN;
    if (hit && hit->passes > l->passes) {
        TRY(long_search_again(hub, l, hit->passes));
        hit = long_find(l, watcher->range);
    }
    long_pay(hub, 1); /* last, so that a search can go on with the least that a turn has */
    *from = l->revision + 1;
    if (hit && hit->first <= hit->last)
        large_begin_long(stream, watcher, l, hit, header_revision);
    return ST_OK;
}

/* Those of one bucket. ST_END: there is no room. */
static enum status fill_long_bucket(struct watch_stream *stream, struct watch_output *out,
                                    struct watch_long *l, uint32_t bucket)
{
    struct chain_link *link = chain_table_bucket(&stream->ids, bucket);
    for (; link; link = link->next) {
        struct watcher *watcher = CONTAINER_OF(link, struct watcher, in_ids);
        if (watcher->state != WATCHER_LIVE || watcher->from > l->revision)
            continue;
        if (!output_open(stream, out))
            return ST_END;
        TRY(live_tell_long(stream, watcher, &watcher->from, l, l->revision));
    }
    return ST_OK;
}

/*
 * A long revision is told watcher by watcher: those whose `from` is behind it have had it. ST_OK:
 * all have. ST_END: there is no room. ST_AGAIN: too much was done in this turn.
 */
static enum status fill_long(struct watch_stream *stream, struct watch_output *out,
                             int64_t revision)
{
    struct watch_long *l;
    TRY(long_get_searched(stream->hub, &stream->place, revision, &l));
    for (; stream->resume_hit < chain_table_buckets(&stream->ids); stream->resume_hit++)
        TRY(fill_long_bucket(stream, out, l, stream->resume_hit));
    return ST_OK;
}

/* What a revision of some events costs a stream, beside the others that are told in this turn. */
static bool turn_is_used_up(struct watch_stream *stream, const struct watch_batch *batch)
{
    struct watch_hub *hub = stream->hub;
    if (LIKELY(batch->count <= FEW_EVENTS))
        return false;
    if (!hub->longs.budget)
        return true;
    size_t each = stream->ids.count <= CHAIN_FEW ? stream->ids.count : LONG_SEARCH_UNITS;
    hub->longs.budget -= size_min(hub->longs.budget, batch->count * each);
    return false;
}

/* -- Filling -- */

/* What lies before `behind` will not come: those who wait for it are told. */
static void live_gone(struct watch_stream *stream, struct watch_place behind,
                      void (*tell)(struct watcher *))
{
    CHAIN_FOREACH(link, &stream->ids)
    {
        struct watcher *watcher = CONTAINER_OF(link, struct watcher, in_ids);
        if (watcher->state == WATCHER_LIVE && watcher->from < behind.revision)
            tell(watcher);
    }
    stream->place = behind;
}

/* The revisions from place on were compacted away before they could be sent. */
static void live_compacted(struct watch_stream *stream)
{
    struct watch_history *history = stream->hub->history;
    int64_t compacted = history->ops->compact_revision(history);
    assert(compacted > stream->place.revision);
    live_gone(stream, (struct watch_place){.revision = compacted}, watcher_compacted);
}

static void live_lost(struct watch_stream *stream, struct watch_place after, enum status why)
{
    if (why == ST_COMPACTED)
        live_compacted(stream);
    else
        live_gone(stream, after, watcher_damaged);
}

/* Its fill was long enough. */
static void park_hungry(struct watch_stream *stream)
{
    stream->live_hungry = true;
    stream_park_hungry(stream);
}

/* ST_OK: all who watch it were told. ST_END: there is no room for more. Else as fill_long. */
static enum status fill_batch(struct watch_stream *stream, struct watch_output *out,
                              const struct watch_batch *batch)
{
    if (UNLIKELY(!batch->events))
        return fill_long(stream, out, batch->revision);
    if (turn_is_used_up(stream, batch))
        return ST_AGAIN;
    bool few = stream->ids.count <= CHAIN_FEW;
    return (few ? fill_few : fill_many)(stream, out, batch) ? ST_OK : ST_END;
}

/* A request for progress is answered between two revisions, so that a busy stream answers too. */
static void tell_progress(struct watch_stream *stream, struct watch_output *out)
{
    int64_t told = stream->place.revision - 1;
    if (!stream->progress_wanted || told < stream->progress_wanted || stream->scan_count ||
        stream->compacted || !output_open(stream, out))
        return;
    notify_answer(stream, out, told);
}

void live_fill(struct watch_stream *stream, struct watch_output *out)
{
    struct watch_hub *hub = stream->hub;
    while (stream->dirty && output_open(stream, out)) {
        struct watch_place after = stream->place;
        struct watch_batch batch;
        enum status status =
            after.revision > stream->last_hit ? ST_END : hub_next(hub, &after, &batch);
        if (status == ST_COMPACTED || status == ST_DAMAGED) {
            live_lost(stream, after, status);
            return;
        }
        if (status == ST_AGAIN) {
            stream->live_waiting = true;
            stream_park_waiting(stream);
            return;
        }
        assert(status == ST_OK || status == ST_END);
        if (status == ST_END || batch.revision > stream->last_hit) {
            stream->dirty = false;
            return;
        }
        status = fill_batch(stream, out, &batch);
        if (status == ST_AGAIN) {
            park_hungry(stream);
            return;
        }
        if (status == ST_DAMAGED || status == ST_COMPACTED) {
            live_lost(stream, after, status);
            return;
        }
        if (status != ST_OK)
            return;
        stream->place = after;
        stream_changed(stream);
        tell_progress(stream, out);
        size_t cost = batch.events ? batch.count : 0; /* of a long one it was paid */
        if (hub->budget <= cost) {
            park_hungry(stream);
            return;
        }
        hub->budget -= cost;
    }
}
