#include "watch/stream_state.h"

static uint64_t id_hash(const void *ctx, const struct chain_link *link)
{
    (void)ctx;
    return (uint64_t)CONTAINER_OF(link, struct watcher, in_ids)->id * 0x9e3779b97f4a7c15u >> 24;
}

struct watcher *stream_find_watcher(const struct watch_stream *stream, int64_t id)
{
    struct watcher wanted = {.id = id};
    struct chain_link *link = chain_table_chain(&stream->ids, id_hash(NULL, &wanted.in_ids));
    while (link && CONTAINER_OF(link, struct watcher, in_ids)->id != id)
        link = link->next;
    return link ? CONTAINER_OF(link, struct watcher, in_ids) : NULL;
}

void stream_add_id(struct watch_stream *stream, struct watcher *watcher)
{
    chain_table_add(&stream->ids, &watcher->in_ids, id_hash, NULL);
}

void stream_remove_id(struct watch_stream *stream, struct watcher *watcher)
{
    chain_table_remove(&stream->ids, &watcher->in_ids, id_hash, NULL);
}

void stream_wake(struct watch_stream *stream)
{
    if (stream->woken || stream->filling)
        return;
    stream->woken = true;
    stream->owner.wake(stream->owner.ctx);
}

void stream_defer(struct watch_stream *stream)
{
    if (stream->deferred)
        return;
    stream->deferred = true;
    struct watch_hub *hub = stream->hub;
    list_push_back(hub->long_revisions.used_up ? &hub->starved : &hub->deferred,
                   &stream->in_deferred);
}

void stream_wait_for_history(struct watch_stream *stream)
{
    list_remove(&stream->in_waiting);
    list_push_back(&stream->hub->waiting, &stream->in_waiting);
}
