/*
 * Progress notifications: responses without events that give a revision up to which everything was
 * sent.
 *
 * By interval: each stream has its own interval, chosen once at random, so that streams do not tick
 * together. A tick starts a round over the watchers that want notifications; each one that is live
 * and had no event since the previous tick gets one. The round waits until the stream is at the
 * tail, so that no notification precedes an event, and takes as many fills as it needs.
 *
 * On request: a request is answered between two revisions, once everything up to the revision at
 * the time of the request was sent and no watcher is catching up. Waiting requests are answered
 * together; only the oldest and the newest count, so that a client that asks often gets an answer
 * even if it is always behind.
 */
#include "base/clock.h"
#include "base/xalloc.h"
#include "watch/stream/output.h"

static void tick_at(struct watch_stream *stream, int64_t at_ns)
{
    enum status status = heap_put(&stream->hub->ticks, &sending(stream)->tick, at_ns);
    if (status != ST_OK)
        xalloc_check(NULL, sizeof(struct heap_entry));
}

void notify_watcher_added(struct watcher *watcher)
{
    struct watch_stream *stream = watcher->stream;
    if (stream->ticked)
        watcher->flags |= WATCHER_TICKED;
    /* The table may have grown; flags say which watchers were visited. */
    stream->tick_bucket = 0;
    if (!(watcher->flags & WATCHER_NOTIFY) || stream->notifiers++ > 0)
        return;
    /* The first one. The interval begins with the hub's next turn, which follows at once, because
     * only a turn knows the time: on an idle thread the previous turn may be long ago. */
    stream->tick_begun = false;
    tick_at(stream, 0);
}

void notify_watcher_live(struct watcher *watcher)
{
    struct watch_stream *stream = watcher->stream;
    assert(watcher->state == WATCHER_LIVE);
    int64_t sent = stream->dirty ? stream->place.revision - 1 : stream->hub->tail;
    if (watcher->from <= sent + 1)
        return;
    watcher->flags |= WATCHER_FUTURE;
    if (!stream->futures || watcher->from < stream->future_min)
        stream->future_min = watcher->from;
    stream->futures++;
}

void notify_watcher_gone(struct watcher *watcher)
{
    struct watch_stream *stream = watcher->stream;
    if (!stream->closing)
        stream->tick_bucket = 0;
    assert(!(watcher->flags & WATCHER_FUTURE) || stream->futures > 0);
    assert(!(watcher->flags & WATCHER_NOTIFY) || stream->notifiers > 0);
    if (watcher->flags & WATCHER_FUTURE)
        stream->futures--;
    if (watcher->flags & WATCHER_NOTIFY && --stream->notifiers == 0) {
        heap_remove(&stream->hub->ticks, &sending(stream)->tick);
        stream->ticking = false;
    }
}

bool notify_none_future(struct watch_stream *stream, int64_t revision)
{
    if (!stream->futures)
        return true;
    if (stream->future_min > revision + 1)
        return false;
    /* Some were reached or removed: count again. */
    stream->future_min = INT64_MAX;
    CHAIN_FOREACH(link, &stream->ids)
    {
        struct watcher *watcher = CONTAINER_OF(link, struct watcher, in_ids);
        if (!(watcher->flags & WATCHER_FUTURE))
            continue;
        if (watcher->from <= revision + 1) {
            watcher->flags &= (uint8_t)~WATCHER_FUTURE;
            stream->futures--;
        } else if (watcher->from < stream->future_min) {
            stream->future_min = watcher->from;
        }
    }
    return stream->futures == 0;
}

void notify_tick(struct watch_stream *stream)
{
    tick_at(stream, clock_add(stream->hub->now_ns, sending(stream)->tick_ns));
    if (!stream->tick_begun) {
        stream->tick_begun = true;
        return;
    }
    if (stream->ticking)
        return; /* the last round is not complete, because the client does not read */
    stream->ticking = true;
    stream->ticked = !stream->ticked;
    stream->tick_bucket = 0;
    stream_wake(stream);
}

/* Notifies the watcher, unless it has had an event since the last round or does not want it. */
static void visit(struct watch_stream *stream, struct watch_output *out, struct watcher *watcher)
{
    bool quiet = watcher->flags & WATCHER_QUIET;
    watcher->flags ^= WATCHER_TICKED;
    watcher->flags |= WATCHER_QUIET;
    if (!quiet || !(watcher->flags & WATCHER_NOTIFY) || watcher->state != WATCHER_LIVE ||
        watcher->from > stream->hub->tail + 1)
        return;
    struct message message = {.watch_id = watcher->id};
    output_message(stream, out, &message, stream->hub->tail);
}

/* Continues the round from the bucket at which the last fill stopped. */
static void round_fill(struct watch_stream *stream, struct watch_output *out)
{
    assert(stream->ticking);
    assert(!stream->dirty);
    for (; stream->tick_bucket < chain_table_buckets(&stream->ids); stream->tick_bucket++) {
        struct chain_link *link = chain_table_bucket(&stream->ids, stream->tick_bucket);
        for (; link; link = link->next) {
            struct watcher *watcher = CONTAINER_OF(link, struct watcher, in_ids);
            if (((watcher->flags & WATCHER_TICKED) != 0) == stream->ticked)
                continue; /* the last fill has visited it */
            if (!output_open(stream, out))
                return;
            visit(stream, out, watcher);
        }
    }
    stream->ticking = false;
}

/* The highest revision that an answer may have; INT64_MAX: any. */
static int64_t progress_most(const struct watch_stream *stream)
{
    return sending(stream)->progress_less == UINT32_MAX
               ? INT64_MAX
               : sending(stream)->progress_newest - sending(stream)->progress_less;
}

void notify_ask(struct watch_stream *stream, int64_t most)
{
    struct watch_history *history = stream->hub->history;
    int64_t before = sending(stream)->progress_wanted ? progress_most(stream) : INT64_MAX;
    sending(stream)->progress_newest = history->ops->revision(history);
    if (before < most)
        most = before; /* the requests are answered together */
    int64_t less =
        sending(stream)->progress_newest > most ? sending(stream)->progress_newest - most : 0;
    assert(less < UINT32_MAX);
    sending(stream)->progress_less = most == INT64_MAX ? UINT32_MAX : (uint32_t)less;
    if (!sending(stream)->progress_wanted)
        sending(stream)->progress_wanted = sending(stream)->progress_newest;
}

void notify_answer(struct watch_stream *stream, struct watch_output *out, int64_t revision)
{
    struct watch_history *history = stream->hub->history;
    sending(stream)->progress_wanted = 0;
    if (!stream->ids.count)
        return;
    if (!notify_none_future(stream, revision)) {
        /* Wait for one that was created a moment ago; etcd does not answer for a start beyond the
         * newest revision. */
        if (stream->future_min <= history->ops->revision(history) + 1)
            sending(stream)->progress_wanted = stream->future_min - 1;
        return;
    }
    assert(!stream->scan_count &&
           !sending(stream)->compacted); /* everything up to here was sent to all */
    struct message message = {.watch_id = -1};
    int64_t most = progress_most(stream);
    output_message(stream, out, &message, revision < most ? revision : most);
    /* A newer request came meanwhile. */
    if (sending(stream)->progress_newest > revision)
        sending(stream)->progress_wanted = sending(stream)->progress_newest;
}

bool notify_due(const struct watch_stream *stream)
{
    if (stream->dirty)
        return false; /* events come first */
    return stream->ticking ||
           (sending(stream)->progress_wanted && !stream->scan_count &&
            !sending(stream)->compacted && stream->hub->tail >= sending(stream)->progress_wanted);
}

void notify_fill(struct watch_stream *stream, struct watch_output *out)
{
    assert(notify_due(stream));
    if (stream->ticking)
        round_fill(stream, out);
    if (output_open(stream, out) && !stream->ticking && notify_due(stream))
        notify_answer(stream, out, stream->hub->tail);
}
