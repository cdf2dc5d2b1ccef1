#include "base/xalloc.h"
#include "watch/hub/hub_read.h"
#include "watch/hub/long_revision.h"
#include "watch/hub/run.h"
#include "watch/stream/output.h"
#include "watch/stream/watcher_state.h"

/* A revision with more events is not sent once the turn's work is used up. */
enum { FEW_EVENTS = 32 };

/* Writes a response with these events; `head` is the size of what precedes them. */
static inline __attribute__((always_inline)) void send_events(
    struct watch_stream *stream, struct watch_output *out, struct watcher *watcher,
    const struct message_header *header, size_t head, const struct encoded_events *encoded)
{
    uint8_t *dst = output_begin(stream, out, head + encoded->len);
    uint8_t *at = message_event_head_write(dst, header, watcher->id, encoded->len);
    memcpy(at, encoded->bytes, encoded->len);
    output_end(stream, out, dst, head + encoded->len);
    stream_count_events(stream, encoded->events);
    watcher->flags &= (uint8_t)~WATCHER_QUIET;
}

/* The client wants long responses in fragments, and this one is long enough to be cut. */
static bool is_cut(const struct watch_hub *hub, const struct watcher *watcher, size_t head,
                   const struct encoded_events *encoded)
{
    return watcher->flags & WATCHER_FRAGMENT && encoded->events > 1 &&
           head + encoded->len >= hub->options.fragment_bytes;
}

/* Writes one watcher's response for a revision. The stream keeps what does not fit. */
static void send_revision(struct watch_stream *stream, struct watch_output *out,
                          struct watcher *watcher, const struct watch_batch *batch, size_t first,
                          size_t last)
{
    struct watch_hub *hub = stream->hub;
    assert(watcher->from <= batch->revision);
    assert(first <= last && last < batch->count);
    const struct encoded_events *encoded = hub_encode_events(
        hub, batch, batch->revision, watcher->range, watcher->flags & WATCHER_VARIANT, first, last);
    watcher->from = batch->revision + 1;
    if (encoded && !encoded->len)
        return; /* its filters exclude all of them */
    const struct message_header *header = hub_header(hub, batch->revision);
    size_t head = message_event_head_size(header, watcher->id);
    if (!encoded || is_cut(hub, watcher, head, encoded)) {
        watcher->flags &= (uint8_t)~WATCHER_QUIET;
        large_response_begin(stream, watcher, batch->revision, batch->revision);
    } else {
        send_events(stream, out, watcher, header, head, encoded);
    }
}

/*
 * Whether a response of several revisions fits. If not, and this fill has written something before
 * it, the output is closed: the next fill, which has all the room, begins with the response, and
 * the stream need not keep a rest of it. If it is the first of its fill, more room will not come,
 * and the caller sends its revisions one by one.
 */
static bool has_room(struct watch_output *out, size_t len)
{
    if (LIKELY(len <= (size_t)(out->end - out->at)))
        return true;
    out->closed = out->at > out->start;
    return false;
}

/* Writes one watcher's response for all revisions of the run that it has not received; its range
 * covers no other events of the run than those in [first, last]. Returns whether it was written. */
static bool send_joined(struct watch_stream *stream, struct watch_output *out,
                        struct watcher *watcher, const struct watch_run *run, size_t first,
                        size_t last)
{
    struct watch_hub *hub = stream->hub;
    int64_t since = run->first;
    assert(run_is_joined(run));
    if (UNLIKELY(watcher->from > since)) {
        /* The watcher has received the first revisions of the run already, while it caught up. */
        since = watcher->from;
        first = size_max(first, run_find(run, since));
    }
    const struct encoded_events *encoded = hub_encode_events(
        hub, &run->batch, since, watcher->range, watcher->flags & WATCHER_VARIANT, first, last);
    if (!encoded)
        return false;
    if (encoded->len) {
        const struct message_header *header = hub_header(hub, run->batch.revision);
        size_t head = message_event_head_size(header, watcher->id);
        if (is_cut(hub, watcher, head, encoded) || !has_room(out, head + encoded->len))
            return false;
        send_events(stream, out, watcher, header, head, encoded);
    }
    watcher->from = run->batch.revision + 1;
    return true;
}

/*
 * Writes what the watcher has not received of a run of several revisions: all of it in one
 * response, or, if that is too large or has no room, one response for the next revision, and so on.
 * Every round moves watcher->from, or closes the output. False: no more messages may begin, and the
 * watcher has not received all of the run; the next fill continues at watcher->from.
 */
static __attribute__((noinline)) bool send_all(struct watch_stream *stream,
                                               struct watch_output *out, struct watcher *watcher,
                                               const struct watch_run *run, size_t first,
                                               size_t last)
{
    while (watcher->from <= run->batch.revision) {
        if (!output_open(stream, out))
            return false;
        if (!send_joined(stream, out, watcher, run, first, last) && !out->closed) {
            struct watch_batch one = run_one(run, watcher->from);
            send_revision(stream, out, watcher, &one, 0, one.count - 1);
        }
    }
    return true;
}

/* Writes what a watcher has not received of a run. False: there was no room for all of it. */
static inline __attribute__((always_inline)) bool send_run(struct watch_stream *stream,
                                                           struct watch_output *out,
                                                           struct watcher *watcher,
                                                           const struct watch_run *run,
                                                           size_t first, size_t last)
{
    if (watcher->from > run->batch.revision)
        return true;
    if (run_is_joined(run))
        return send_all(stream, out, watcher, run, first, last);
    send_revision(stream, out, watcher, &run->batch, first, last);
    return true;
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
                     const struct watch_run *run)
{
    CHAIN_FOREACH(link, &stream->ids)
    {
        struct watcher *watcher = CONTAINER_OF(link, struct watcher, in_ids);
        size_t first, last;
        if (watcher->state != WATCHER_LIVE || watcher->from > run->batch.revision ||
            !find_events(watcher->range, &run->batch, &first, &last))
            continue;
        if (!output_open(stream, out) || !send_run(stream, out, watcher, run, first, last))
            return false;
    }
    return true;
}

struct search {
    struct watch_hub *hub;
    size_t event;
};

static void add_hit(void *ctx, struct watch_range *range)
{
    const struct search *search = ctx;
    struct watch_hit *hit = hub_find_hit(search->hub, range);
    if (!hit) {
        hit = hub_add_hit(search->hub, range);
        hit->first_event = search->event;
    }
    hit->last_event = search->event;
}

/* Finds the ranges that cover events of the run, once for all streams of the turn. */
static void find_hits(struct watch_hub *hub, const struct watch_run *run)
{
    if (hub->hits_turn == hub->turn && hub->hits_first == run->first &&
        hub->hits_last == run->batch.revision)
        return;
    struct search search = {.hub = hub};
    hub_hits_drop(hub);
    for (; search.event < run->batch.count; search.event++)
        range_index_visit(&hub->index, run->batch.events[search.event].key, add_hit, &search);
    hub->hits_turn = hub->turn;
    hub->hits_first = run->first;
    hub->hits_last = run->batch.revision;
}

/* What was remembered about a revision is of no use if it was read in another way. */
static void resume_with(struct watch_stream *stream, bool is_long)
{
    if (stream->resume_long != is_long)
        stream_changed(stream);
    stream->resume_long = is_long;
}

/* Sends to the stream's watchers of a range, from `watcher` on. Returns the one for which there is
 * no room; NULL: all were written. */
static struct watcher *send_ring(struct watch_stream *stream, struct watch_output *out,
                                 const struct watch_run *run, const struct watch_hit *hit,
                                 struct watcher *watcher, const struct watcher *first)
{
    do {
        if (watcher->state != WATCHER_LIVE)
            break;
        if (!output_open(stream, out) ||
            !send_run(stream, out, watcher, run, hit->first_event, hit->last_event))
            return watcher;
        watcher = watcher->next;
    } while (watcher != first);
    return NULL;
}

/* The next fill continues with this watcher of this range. */
static void resume_at(struct watch_stream *stream, const struct watch_run *run,
                      struct watcher *watcher, uint32_t hit)
{
    assert(!run_is_joined(run) || run->batch.revision - stream->place.revision <= UINT8_MAX);
    sending(stream)->resume_at = watcher;
    sending(stream)->resume_hit = hit;
    stream->resume_span =
        run_is_joined(run) ? (uint8_t)(run->batch.revision - stream->place.revision) : 0;
}

/* A stream with many watchers looks up the ranges of each event; `own` counts those that it
 * watches. Returns whether all responses were written. */
static bool fill_many(struct watch_stream *stream, struct watch_output *out,
                      const struct watch_run *run)
{
    struct watch_hub *hub = stream->hub;
    uint32_t own = 0;
    resume_with(stream, false);
    find_hits(hub, run);
    for (size_t i = 0; i < hub->hit_count; i++) {
        const struct watch_hit *hit = &hub->hits[i];
        struct watcher *first = watch_range_first(hit->range, stream);
        /* The stream does not watch the range, or only in the past, or the last fill has sent it.
         */
        if (!first || first->state != WATCHER_LIVE || own++ < sending(stream)->resume_hit)
            continue;
        bool resumes = sending(stream)->resume_at && own == sending(stream)->resume_hit + 1;
        struct watcher *left =
            send_ring(stream, out, run, hit, resumes ? sending(stream)->resume_at : first, first);
        if (left) {
            resume_at(stream, run, left, own - 1);
            return false;
        }
    }
    return true;
}

/* -- Long revisions -- */

enum status live_send_long(struct watch_stream *stream, struct watcher *watcher, int64_t *from,
                           struct long_revision *long_rev, int64_t header_revision)
{
    struct watch_hub *hub = stream->hub;
    assert(*from <= long_rev->revision);
    assert(!sending(stream)->large);
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
    resume_with(stream, true);
    struct long_revision *long_rev;
    TRY(long_revision_get_searched(stream->hub, &stream->place, revision, &long_rev));
    for (; sending(stream)->resume_hit < chain_table_buckets(&stream->ids);
         sending(stream)->resume_hit++)
        TRY(fill_long_bucket(stream, out, long_rev, sending(stream)->resume_hit));
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

/* The live watchers cannot continue now: why, and behind which revision they could. */
static void live_stop(struct watch_stream *stream, enum status why, struct watch_place after)
{
    struct watch_history *history = stream->hub->history;
    switch (why) {
    case ST_COMPACTED: /* the revisions from place on were removed before they could be sent */
        after = (struct watch_place){.revision = history->ops->compact_revision(history)};
        assert(after.revision > stream->place.revision);
        live_gone(stream, after, watcher_compacted);
        break;
    case ST_DAMAGED: /* one revision cannot be read; what follows can */
        live_gone(stream, after, watcher_damaged);
        break;
    default: /* the fill or its turn has done enough work: a later turn continues */
        assert(why == ST_AGAIN);
        stream->live_deferred = true;
        stream_defer(stream);
    }
}

/* ST_OK: all responses were written. ST_END: there is no room for more. Else as fill_long. */
static enum status fill_run(struct watch_stream *stream, struct watch_output *out,
                            const struct watch_run *run)
{
    if (UNLIKELY(!run->batch.events))
        return fill_long(stream, out, run->batch.revision);
    if (turn_is_used_up(stream, &run->batch))
        return ST_AGAIN;
    bool few = stream->ids.count <= CHAIN_FEW;
    return (few ? fill_few : fill_many)(stream, out, run) ? ST_OK : ST_END;
}

/* How far the next run may go. One that was sent to some watchers is sent to the others as it was:
 * only then do the remembered positions mean the same. Otherwise it begins with a revision that
 * concerns the stream, and ends before many that do not: finding their watchers takes long. */
static int64_t run_limit(struct watch_stream *stream)
{
    int64_t last = stream->last_hit, span = stream->resume_span;
    if (!sending(stream)->resume_at && !sending(stream)->resume_hit) {
        last = hub_skip_others(stream->hub, stream, last, &stream->place);
        span = WATCH_RUN_SPAN;
    }
    int64_t most = stream->place.revision + span;
    return most < last ? most : last;
}

/* A progress request is answered between two revisions, so that a busy stream answers too. */
static void answer_progress(struct watch_stream *stream, struct watch_output *out)
{
    int64_t sent = stream->place.revision - 1;
    if (!sending(stream)->progress_wanted || sent < sending(stream)->progress_wanted ||
        stream->scan_count || sending(stream)->compacted || !output_open(stream, out))
        return;
    notify_answer(stream, out, sent);
}

/*
 * Sends run after run (hub/run.h) from the stream's place on. After each, either
 *
 *   all live watchers have received it       the place moves behind it
 *   the output has no room for all of it     the next fill continues with the same run
 *   there is too much to do for one fill     a later turn continues: live_stop
 *   the history cannot give it yet           the hub wakes the stream when it can
 *   it is gone                               the watchers that need it end: live_stop
 */
void live_fill(struct watch_stream *stream, struct watch_output *out)
{
    struct watch_hub *hub = stream->hub;
    while (stream->dirty && output_open(stream, out)) {
        const struct watch_run *run = hub->run;
        enum status status = ST_END;
        if (stream->place.revision <= stream->last_hit)
            status = run_next(hub, &stream->place, run_limit(stream), &run);
        if (status == ST_AGAIN) {
            stream->live_waiting = true;
            stream_wait_for_history(stream);
            return;
        }
        if (status == ST_END || (status == ST_OK && run->first > stream->last_hit)) {
            /* Everything that concerns the stream was sent: it follows the tail again. */
            stream->dirty = false;
            return;
        }
        struct watch_place after = run->after;
        if (status == ST_OK)
            status = fill_run(stream, out, run);
        if (status == ST_END)
            return; /* the watchers' `from`, or resume_at and resume_hit, say what was sent */
        if (status != ST_OK) {
            live_stop(stream, status, after);
            return;
        }
        assert(after.revision > stream->place.revision);
        stream->place = after;
        stream_changed(stream);
        answer_progress(stream, out);
        /* A long revision was already paid for. */
        size_t cost = run->batch.events ? run->batch.count : 0;
        if (hub->budget <= cost) {
            live_stop(stream, ST_AGAIN, after);
            return;
        }
        hub->budget -= cost;
    }
}
