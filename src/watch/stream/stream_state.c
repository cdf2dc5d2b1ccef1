#include "watch/stream/stream_state.h"

#include "base/xalloc.h"
#include "watch/hub/hub_read.h"

enum { IDS_PER_RUN = 1024 };

/* Ids that follow each other have buckets that follow each other: the server assigns them in order,
 * and so the next ones are in a cache. Where a run of them begins is secret, because clients that
 * choose their ids could otherwise choose ones that are all in one bucket. */
static uint64_t id_hash(const struct watch_stream *stream, int64_t id)
{
    uint64_t run = (uint64_t)id / IDS_PER_RUN;
    return hash_map_hash(&stream->hub->index.hasher, slice_of(&run, sizeof(run))) + (uint64_t)id;
}

static uint64_t watcher_hash(const void *stream, const struct chain_link *link)
{
    return id_hash(stream, CONTAINER_OF(link, struct watcher, in_ids)->id);
}

struct watcher *stream_find_watcher(const struct watch_stream *stream, int64_t id)
{
    struct chain_link *link = chain_table_chain(&stream->ids, id_hash(stream, id));
    while (link && CONTAINER_OF(link, struct watcher, in_ids)->id != id)
        link = link->next;
    return link ? CONTAINER_OF(link, struct watcher, in_ids) : NULL;
}

void stream_add_id(struct watch_stream *stream, struct watcher *watcher)
{
    chain_table_add(&stream->ids, &watcher->in_ids, watcher_hash, stream);
}

void stream_remove_id(struct watch_stream *stream, struct watcher *watcher)
{
    chain_table_remove(&stream->ids, &watcher->in_ids, watcher_hash, stream);
}

void stream_wake(struct watch_stream *stream)
{
    if (stream->woken || stream->filling)
        return;
    assert(!stream->closing);
    stream->woken = true;
    stream->owner.wake(stream->owner.ctx);
}

void stream_defer(struct watch_stream *stream)
{
    if (stream->deferred)
        return;
    assert(!stream->closing);
    stream->deferred = true;
    struct watch_hub *hub = stream->hub;
    list_remove(&stream->in_deferred); /* from hub->unwoken */
    list_push_back(hub->long_revisions.used_up ? &hub->starved : &hub->deferred,
                   &stream->in_deferred);
}

void stream_wait_for_history(struct watch_stream *stream)
{
    list_remove(&stream->in_waiting);
    list_push_back(&stream->hub->waiting, &stream->in_waiting);
}

/* -- Output -- */

uint8_t *output_begin(struct watch_stream *stream, struct watch_output *out, size_t len)
{
    assert(len <= WATCH_PIECE_BYTES_MAX);
    return (size_t)(out->end - out->at) >= len ? out->at : stream->hub->piece;
}

void output_end(struct watch_stream *stream, struct watch_output *out, const uint8_t *from,
                size_t len)
{
    stream->hub->stats.responses_sent++;
    assert(len > 0);
    if (LIKELY(from == out->at)) {
        assert(len <= (size_t)(out->end - out->at));
        out->at += len;
        return;
    }
    /* It was written elsewhere: as much as fits is copied, and the stream keeps the rest. */
    assert(!sending(stream)->rest);
    size_t now = size_min(len, (size_t)(out->end - out->at));
    memcpy(out->at, from, now);
    out->at += now;
    if (now == len)
        return;
    sending(stream)->rest = xmalloc(len - now);
    memcpy(sending(stream)->rest, from + now, len - now);
    sending(stream)->rest_len = (uint32_t)(len - now);
    sending(stream)->rest_at = 0;
    struct watch_stats *stats = &stream->hub->stats;
    stats->held_bytes += sending(stream)->rest_len;
    watch_stats_raise(&stats->held_bytes_peak, stats->held_bytes);
    if (sending(stream)->rest_len > sending(stream)->held_peak)
        sending(stream)->held_peak = sending(stream)->rest_len;
}

void output_message(struct watch_stream *stream, struct watch_output *out,
                    const struct message *message, int64_t revision)
{
    uint8_t bytes[MESSAGE_HEAD_BYTES_MAX];
    size_t len = message_head_write(bytes, message, hub_header(stream->hub, revision), 0);
    assert(len <= sizeof(bytes));
    output_end(stream, out, bytes, len);
}
