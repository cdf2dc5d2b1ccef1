#include "watch/stream/stream_state.h"

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
