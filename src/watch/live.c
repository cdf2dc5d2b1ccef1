#include "base/xalloc.h"
#include "watch/hub_read.h"
#include "watch/long_revision.h"
#include "watch/output.h"
#include "watch/watcher_state.h"

/* A revision with more events is not sent once the turn's work is used up. */
enum { FEW_EVENTS = 32 };

/* Writes one watcher's response for a revision. The stream keeps what does not fit. */
static void send_revision(struct watch_stream *stream, struct watch_output *out,
                          struct watcher *watcher, const struct watch_batch *batch, size_t first,
                          size_t last)
{
    struct watch_hub *hub = stream->hub;
    const struct encoded_events *encoded = hub_encode_events(
        hub, batch, watcher->range, watcher->flags & WATCHER_VARIANT, first, last);
    watcher->from = batch->revision + 1;
    if (encoded && !encoded->len)
        return;
    watcher->flags &= (uint8_t)~WATCHER_QUIET;
    const struct message_header *header = hub_header(hub, batch->revision);
    size_t head = message_event_head_size(header, watcher->id);
    bool cut = encoded && watcher->flags & WATCHER_FRAGMENT && encoded->events > 1 &&
               head + encoded->len >= hub->options.fragment_bytes;
    if (!encoded || cut) {
        large_response_begin(stream, watcher, batch->revision, batch->revision);
        return;
    }
    uint8_t *dst = output_begin(stream, out, head + encoded->len);
    uint8_t *at = message_event_head_write(dst, header, watcher->id, encoded->len);
    memcpy(at, encoded->bytes, encoded->len);
    output_end(stream, out, dst, head + encoded->len);
    stream_count_events(stream, encoded->events);
}

/* Finds the first and the last event that the range covers. */
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

/* A stream with few watchers compares each of them. Returns whether all responses were written. */
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

/* A stream with many watchers looks up the ranges of each event. Returns whether all responses were
 * written. */
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

enum status live_send_long(struct watch_stream *stream, struct watcher *watcher, int64_t *from,
                           struct long_revision *long_rev, int64_t header_revision)
{
    struct watch_hub *hub = stream->hub;
    const struct long_revision_hit *hit = long_revision_find(long_rev, watcher->range);
    if (!long_revision_units(hub))
        return ST_AGAIN;
    if (hit && hit->passes > long_rev->passes) {
        TRY(long_revision_search_again(hub, long_rev, hit->passes));
        hit = long_revision_find(long_rev, watcher->range);
    }
    long_revision_pay(
        hub, 1); /* last, so that a search can continue even in a turn with the least units */
    *from = long_rev->revision + 1;
    if (hit && hit->first <= hit->last)
        large_response_begin_long(stream, watcher, long_rev, hit, header_revision);
    return ST_OK;
}

/* Sends to the watchers of one bucket. ST_END: there is no room. */
static enum status fill_long_bucket(struct watch_stream *stream, struct watch_output *out,
                                    struct long_revision *long_rev, uint32_t bucket)
{
    struct chain_link *link = chain_table_bucket(&stream->ids, bucket);
    for (; link; link = link->next) {
        struct watcher *watcher = CONTAINER_OF(link, struct watcher, in_ids);
        if (watcher->state != WATCHER_LIVE || watcher->from > long_rev->revision)
            continue;
        if (!output_open(stream, out))
            return ST_END;
        TRY(live_send_long(stream, watcher, &watcher->from, long_rev, long_rev->revision));
    }
    return ST_OK;
}

/* A long revision is sent watcher by watcher; those whose `from` is behind it have received it.
 * ST_OK: all have. ST_END: there is no room. ST_AGAIN: the turn's work is used up. */
static enum status fill_long(struct watch_stream *stream, struct watch_output *out,
                             int64_t revision)
{
    struct long_revision *long_rev;
    TRY(long_revision_get_searched(stream->hub, &stream->place, revision, &long_rev));
    for (; stream->resume_hit < chain_table_buckets(&stream->ids); stream->resume_hit++)
        TRY(fill_long_bucket(stream, out, long_rev, stream->resume_hit));
    return ST_OK;
}

/* Charges a revision of more than a few events to the turn, whose work all streams share. */
static bool turn_is_used_up(struct watch_stream *stream, const struct watch_batch *batch)
{
    struct watch_hub *hub = stream->hub;
    if (LIKELY(batch->count <= FEW_EVENTS))
        return false;
    if (!hub->long_revisions.budget)
        return true;
    size_t each = stream->ids.count <= CHAIN_FEW ? stream->ids.count : LONG_REVISION_SEARCH_UNITS;
    hub->long_revisions.budget -= size_min(hub->long_revisions.budget, batch->count * each);
    return false;
}

/* -- Filling -- */

/* The revisions before `behind` cannot be sent: ends the watchers that need them. */
static void live_gone(struct watch_stream *stream, struct watch_place behind,
                      void (*end)(struct watcher *))
{
    CHAIN_FOREACH(link, &stream->ids)
    {
        struct watcher *watcher = CONTAINER_OF(link, struct watcher, in_ids);
        if (watcher->state == WATCHER_LIVE && watcher->from < behind.revision)
            end(watcher);
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

/* The fill has done enough work. */
static void defer(struct watch_stream *stream)
{
    stream->live_deferred = true;
    stream_defer(stream);
}

/* ST_OK: all responses were written. ST_END: there is no room for more. Else as fill_long. */
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

/* A progress request is answered between two revisions, so that a busy stream answers too. */
static void answer_progress(struct watch_stream *stream, struct watch_output *out)
{
    int64_t sent = stream->place.revision - 1;
    if (!stream->progress_wanted || sent < stream->progress_wanted || stream->scan_count ||
        stream->compacted || !output_open(stream, out))
        return;
    notify_answer(stream, out, sent);
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
            stream_wait_for_history(stream);
            return;
        }
        assert(status == ST_OK || status == ST_END);
        if (status == ST_END || batch.revision > stream->last_hit) {
            stream->dirty = false;
            return;
        }
        status = fill_batch(stream, out, &batch);
        if (status == ST_AGAIN) {
            defer(stream);
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
        answer_progress(stream, out);
        size_t cost = batch.events ? batch.count : 0; /* a long revision was already paid for */
        if (hub->budget <= cost) {
            defer(stream);
            return;
        }
        hub->budget -= cost;
    }
}
