#include "watch/stream/watcher_state.h"

#include "watch/hub/hub_read.h"
#include "watch/hub/long_revision.h"
#include "watch/stream/output.h"

#define TO(state) (1u << WATCHER_##state)

/* Drawn in watcher.h. */
static const unsigned watcher_moves[] = {
    [WATCHER_CATCHING_UP] = TO(LIVE) | TO(COMPACTED) | TO(CLOSED),
    [WATCHER_LIVE] = TO(COMPACTED) | TO(CLOSED),
    [WATCHER_COMPACTED] = TO(CLOSED),
    [WATCHER_CLOSED] = 0,
};

void watcher_move(struct watcher *watcher, enum watcher_state next)
{
    assert(watcher_moves[watcher->state] & (1u << next));
    struct watch_hub *hub = watcher->stream->hub;
    hub->live -= watcher->state == WATCHER_LIVE;
    hub->live += next == WATCHER_LIVE;
    hub->stats.watchers_compacted -= watcher->state == WATCHER_COMPACTED;
    hub->stats.watchers_compacted += next == WATCHER_COMPACTED;
    watcher->state = (uint8_t)next;
}

/* Forgets everything that was remembered of a range that was freed. */
static void range_gone(struct watch_hub *hub, const struct watch_range *range)
{
    long_revision_range_gone(hub, range);
    hub_windows_drop(hub);
    hub_hits_drop(hub);
    if (hub->encoded_used)
        hub_encoded_drop(hub);
}

/* Removes the watcher from the index, its scan, or the ring of compacted watchers. */
static void watcher_take_out(struct watcher *watcher)
{
    struct watch_stream *stream = watcher->stream;
    assert(watcher->state != WATCHER_CLOSED);
    if (watcher->state == WATCHER_COMPACTED) {
        /* It has left the index before, and is only in the ring. */
        assert(sending(stream)->compacted && !watcher->range);
        if (sending(stream)->compacted == watcher)
            sending(stream)->compacted = watcher->next == watcher ? NULL : watcher->next;
        watcher->prev->next = watcher->next;
        watcher->next->prev = watcher->prev;
        return;
    }
    if (watcher->state == WATCHER_CATCHING_UP)
        catch_up_end(watcher);
    const struct watch_range *range = watcher->range;
    if (range_index_remove(&stream->hub->index, watcher))
        range_gone(stream->hub, range);
    stream_changed(stream);
}

void watcher_compacted(struct watcher *watcher)
{
    struct watch_stream *stream = watcher->stream;
    watcher_take_out(watcher);
    watcher_move(watcher, WATCHER_COMPACTED);
    struct watcher *first = sending(stream)->compacted;
    if (!first) {
        watcher->prev = watcher->next = watcher;
        sending(stream)->compacted = watcher;
        return;
    }
    watcher->next = first;
    watcher->prev = first->prev;
    first->prev->next = watcher;
    first->prev = watcher;
}

void watcher_damaged(struct watcher *watcher)
{
    watcher->damaged = true;
    watcher_compacted(watcher);
}

void watcher_destroy(struct watcher *watcher)
{
    struct watch_hub *hub = watcher->stream->hub;
    watcher_take_out(watcher);
    watcher_move(watcher, WATCHER_CLOSED);
    notify_watcher_gone(watcher);
    if (!watcher->stream->cursor && sending(watcher->stream)->large)
        large_response_watcher_gone(sending(watcher->stream)->large, watcher->id);
    if (hub->options.watchers_all && !watcher->stream->own)
        atomic_fetch_sub_explicit(hub->options.watchers_all, 1, memory_order_relaxed);
    assert(hub->stats.watchers + hub->own_watchers > 0);
    hub->stats.watchers -= !watcher->stream->own;
    hub->own_watchers -= watcher->stream->own;
    pool_free_object(hub->pool, watcher);
    if (hub->stats.watchers + hub->own_watchers == 0 && hub->history->ops->listen)
        hub->history->ops->listen(hub->history, false);
}

void watcher_close(struct watcher *watcher)
{
    stream_remove_id(watcher->stream, watcher);
    watcher_destroy(watcher);
}
