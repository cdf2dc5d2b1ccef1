#include "base/buf.h"
#include "base/xalloc.h"
#include "watch/output.h"

#define TO(state) (1u << WATCHER_##state)

/* Drawn in watcher.h. */
static const unsigned watcher_moves[] = {
    [WATCHER_CATCHING_UP] = TO(LIVE) | TO(COMPACTED) | TO(CLOSED),
    [WATCHER_LIVE] = TO(COMPACTED) | TO(CLOSED),
    [WATCHER_COMPACTED] = TO(CLOSED),
    [WATCHER_CLOSED] = 0,
};

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

/* -- Life -- */

static void watcher_destroy(struct watcher *watcher);

static void stats_raise(uint64_t *peak, uint64_t value)
{
    if (value > *peak)
        *peak = value;
}

void stream_raise_behind(struct watch_stream *stream, uint64_t behind)
{
    stats_raise(&stream->hub->stats.behind_peak, behind);
    if (behind > stream->behind_peak)
        stream->behind_peak = (uint32_t)(behind < UINT32_MAX ? behind : UINT32_MAX);
}

struct watch_stream *watch_stream_new(struct watch_hub *hub, struct watch_stream_owner owner)
{
    assert(owner.wake);
    struct watch_stream *stream = pool_alloc(hub->pool, sizeof(*stream));
    *stream = (struct watch_stream){.hub = hub, .owner = owner};
    int64_t interval = hub->options.progress_interval_ns;
    stream->tick_ns = interval + random_between(&hub->random, 0, interval / 10);
    list_init(&stream->in_hungry);
    list_init(&stream->in_waiting);
    list_init(&stream->scans);
    list_push_back(&hub->streams, &stream->in_hub);
    stats_raise(&hub->stats.streams_peak, ++hub->stats.streams);
    return stream;
}

static void controls_drop(struct watch_stream *stream)
{
    for (; stream->control_count; stream->control_count--) {
        struct watch_control *control = &stream->controls[stream->control_first];
        if (control->reason_owned)
            free((void *)(uintptr_t)control->reason.ptr);
        stream->control_first = (uint16_t)((stream->control_first + 1) % stream->control_capacity);
    }
    free(TAKE(stream->controls));
    stream->control_capacity = stream->control_first = 0;
}

/* Returns whether all its watchers are gone. */
static bool free_watchers(struct watch_stream *stream)
{
    struct watch_hub *hub = stream->hub;
    while (hub->free_budget) {
        struct chain_link *link = chain_table_drain(&stream->ids, &stream->tick_bucket);
        if (!link)
            return true;
        watcher_destroy(CONTAINER_OF(link, struct watcher, in_ids));
        hub->free_budget--;
    }
    return false;
}

void stream_bury(struct watch_hub *hub)
{
    while (hub->free_budget && !list_empty(&hub->dying)) {
        struct watch_stream *stream = LIST_ENTRY(hub->dying.next, struct watch_stream, in_hub);
        if (!free_watchers(stream))
            return;
        list_remove(&stream->in_hub);
        chain_table_fini(&stream->ids);
        pool_free_object(hub->pool, stream);
        hub->free_budget -= size_min(hub->free_budget, WATCH_FREE_STREAM);
    }
}

void watch_stream_free(struct watch_stream *stream)
{
    if (!stream)
        return;
    struct watch_hub *hub = stream->hub;
    assert(!stream->filling);
    controls_drop(stream);
    free(stream->rest);
    hub->stats.held_bytes -= stream->rest_len - stream->rest_at;
    hub->stats.streams_stopped -= stream->stopped;
    hub->stats.streams--;
    large_free(TAKE(stream->large));
    list_remove(&stream->in_hungry);
    list_remove(&stream->in_waiting);
    census_forget(hub, stream);
    heap_remove(&hub->ticks, &stream->tick);
    /* Its watchers are in the index until they are freed, and found there by events: nothing may
     * reach the owner through them. */
    stream->owner = (struct watch_stream_owner){0};
    stream->dying = stream->woken = stream->dirty = true;
    stream->stopped = stream->ticking = stream->hungry = false;
    stream->tick_bucket = 0;
    stream->rest_len = stream->rest_at = 0;
    list_push_back(&hub->dying, &stream->in_hub);
    stream_bury(hub);
}

void stream_wake(struct watch_stream *stream)
{
    if (stream->woken || stream->filling)
        return;
    stream->woken = true;
    stream->owner.wake(stream->owner.ctx);
}

void stream_park_hungry(struct watch_stream *stream)
{
    if (stream->hungry)
        return;
    stream->hungry = true;
    list_push_back(&stream->hub->hungry, &stream->in_hungry);
}

void stream_park_waiting(struct watch_stream *stream)
{
    list_remove(&stream->in_waiting);
    list_push_back(&stream->hub->waiting, &stream->in_waiting);
}

/* -- Watchers -- */

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

/* Out of the index, the scan, or the list of those to be told. */
static void watcher_take_out(struct watcher *watcher)
{
    struct watch_stream *stream = watcher->stream;
    if (watcher->state == WATCHER_COMPACTED) {
        if (stream->compacted == watcher)
            stream->compacted = watcher->next == watcher ? NULL : watcher->next;
        watcher->prev->next = watcher->next;
        watcher->next->prev = watcher->prev;
        return;
    }
    if (watcher->state == WATCHER_CATCHING_UP)
        catch_up_end(watcher);
    const struct watch_range *range = watcher->range;
    if (range_index_remove(&stream->hub->index, watcher))
        hub_range_gone(stream->hub, range);
    stream_changed(stream);
}

void watcher_compacted(struct watcher *watcher)
{
    struct watch_stream *stream = watcher->stream;
    watcher_take_out(watcher);
    watcher_move(watcher, WATCHER_COMPACTED);
    struct watcher *first = stream->compacted;
    if (!first) {
        watcher->prev = watcher->next = watcher;
        stream->compacted = watcher;
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

/* It is no longer among the ids, or they go as well. */
static void watcher_destroy(struct watcher *watcher)
{
    struct watch_hub *hub = watcher->stream->hub;
    watcher_take_out(watcher);
    watcher_move(watcher, WATCHER_CLOSED);
    notify_watcher_gone(watcher);
    if (watcher->stream->large)
        large_watcher_gone(watcher->stream->large, watcher->id);
    pool_free_object(hub->pool, watcher);
    if (hub->options.watchers_all)
        atomic_fetch_sub_explicit(hub->options.watchers_all, 1, memory_order_relaxed);
    if (--hub->stats.watchers == 0 && hub->history->ops->listen)
        hub->history->ops->listen(hub->history, false);
}

void watcher_close(struct watcher *watcher)
{
    chain_table_remove(&watcher->stream->ids, &watcher->in_ids, id_hash, NULL);
    watcher_destroy(watcher);
}

/* -- Control responses -- */

/* The caller has made sure that there is room for one more. */
static void control_push(struct watch_stream *stream, struct watch_control control)
{
    assert(stream->control_count < WATCH_WAITING_MAX);
    if (stream->control_count == stream->control_capacity) {
        uint16_t capacity = (uint16_t)size_max(2, stream->control_capacity * 2u);
        struct watch_control *controls = xmalloc(capacity * sizeof(controls[0]));
        for (uint16_t i = 0; i < stream->control_count; i++)
            controls[i] = stream->controls[(stream->control_first + i) % stream->control_capacity];
        free(stream->controls);
        stream->controls = controls;
        stream->control_capacity = capacity;
        stream->control_first = 0;
    }
    control.revision = stream->hub->history->ops->revision(stream->hub->history);
    stream->controls[(stream->control_first + stream->control_count++) % stream->control_capacity] =
        control;
    stream_wake(stream);
}

static void control_push_reason(struct watch_stream *stream, struct watch_control control,
                                struct slice reason)
{
    size_t len = size_min(reason.len, MESSAGE_REASON_BYTES_MAX);
    if (len) {
        uint8_t *copy = xmalloc(len);
        memcpy(copy, reason.ptr, len);
        control.reason = slice_of(copy, len);
        control.reason_owned = true;
    }
    control_push(stream, control);
}

static void control_fill(struct watch_stream *stream, struct watch_output *out)
{
    struct watch_control *control = &stream->controls[stream->control_first];
    struct message message = {
        .watch_id = control->watch_id,
        .created = control->created,
        .canceled = control->canceled,
        .reason = control->reason,
    };
    output_message(stream, out, &message, control->revision);
    if (control->reason_owned)
        free((void *)(uintptr_t)control->reason.ptr);
    stream->control_first = (uint16_t)((stream->control_first + 1) % stream->control_capacity);
    if (--stream->control_count == 0)
        controls_drop(stream); /* an idle stream holds no memory */
}

static void compacted_fill(struct watch_stream *stream, struct watch_output *out)
{
    struct watch_history *history = stream->hub->history;
    struct message message = {.watch_id = stream->compacted->id, .canceled = true};
    if (stream->compacted->damaged)
        message.reason = slice_from_text(status_text(ST_CORRUPT));
    else
        message.compact_revision = history->ops->compact_revision(history);
    watcher_close(stream->compacted);
    output_message(stream, out, &message, 0);
}

size_t watch_stream_waiting(const struct watch_stream *stream)
{
    return stream->control_count;
}

size_t watch_stream_watchers(const struct watch_stream *stream)
{
    return stream->ids.count;
}

/* -- Requests -- */

bool hub_take_one(struct watch_hub *hub)
{
    const struct watch_hub_options *options = &hub->options;
    _Atomic uint64_t *all = options->watchers_all;
    if (!all)
        return true;
    if (atomic_fetch_add_explicit(all, 1, memory_order_relaxed) < options->watchers_all_max)
        return true;
    atomic_fetch_sub_explicit(all, 1, memory_order_relaxed);
    return false;
}

/* Empty: it is not refused, and is counted. */
static struct slice create_refusal(const struct watch_stream *stream,
                                   const struct watch_create *create, struct slice key)
{
    if (create->start_revision < 0)
        return slice_from_text(status_text(ST_COMPACTED));
    struct slice end = create->range_end;
    bool endless = end.len == 1 && end.ptr[0] == 0;
    if (end.len && !endless && slice_compare(key, end) >= 0)
        return SLICE_LITERAL("mvcc: watcher range is empty");
    if (create->watch_id && stream_find_watcher(stream, create->watch_id))
        return SLICE_LITERAL("mvcc: duplicate watch ID provided on the WatchStream");
    if (stream->ids.count >= stream->hub->options.watchers_max)
        return SLICE_LITERAL("vigil: too many watches on one stream");
    if (!hub_take_one(stream->hub))
        return slice_from_text(status_text(ST_TOO_MANY_WATCHES));
    return SLICE_EMPTY;
}

static int64_t choose_id(struct watch_stream *stream)
{
    while (stream_find_watcher(stream, stream->next_id))
        stream->next_id++;
    return stream->next_id++;
}

static uint8_t create_flags(const struct watch_create *create)
{
    return (uint8_t)((create->no_put ? WATCHER_NO_PUT : 0) |
                     (create->no_delete ? WATCHER_NO_DELETE : 0) |
                     (create->prev_kv ? WATCHER_PREV_KV : 0) |
                     (create->fragment ? WATCHER_FRAGMENT : 0) |
                     (create->progress_notify ? WATCHER_NOTIFY | WATCHER_QUIET : 0));
}

struct watcher *stream_add_watcher(struct watch_stream *stream, const struct watch_create *create,
                                   struct slice key)
{
    struct watch_hub *hub = stream->hub;
    if (hub->stats.watchers++ == 0 && hub->history->ops->listen)
        hub->history->ops->listen(hub->history, true);
    stats_raise(&hub->stats.watchers_peak, hub->stats.watchers);
    hub_catch_tail(hub);
    struct watcher *watcher = pool_alloc(hub->pool, sizeof(*watcher));
    *watcher = (struct watcher){
        .stream = stream,
        .id = create->watch_id ? create->watch_id : choose_id(stream),
        .from = create->start_revision ? create->start_revision
                                       : hub->history->ops->revision(hub->history) + 1,
        .flags = create_flags(create),
    };
    bool behind = watcher->from <= hub->tail, live = !behind || stream->cursor;
    watcher->state = live ? WATCHER_LIVE : WATCHER_CATCHING_UP;
    hub->live += live;
    chain_table_add(&stream->ids, &watcher->in_ids, id_hash, NULL);
    range_index_add(&hub->index, watcher, key, create->range_end);
    long_watcher_added(hub, watcher);
    notify_watcher_added(watcher);
    stream_changed(stream);
    if (live)
        notify_watcher_live(watcher);
    else
        catch_up_begin(watcher);
    if (live && behind) {
        stream->dirty = true;
        stream->place = (struct watch_place){.revision = watcher->from};
        stream->last_hit = hub->tail;
        stream_wake(stream);
    }
    return watcher;
}

enum status watch_stream_create(struct watch_stream *stream, const struct watch_create *create)
{
    if (stream->control_count >= WATCH_WAITING_MAX)
        return ST_LIMIT;
    struct slice key = create->key.len ? create->key : SLICE_LITERAL("\0");
    struct slice refusal = create_refusal(stream, create, key);
    if (refusal.len) {
        stream->hub->stats.refused++;
        control_push(stream,
                     (struct watch_control){
                         .watch_id = -1, .created = true, .canceled = true, .reason = refusal});
        return ST_OK;
    }
    struct watcher *watcher = stream_add_watcher(stream, create, key);
    control_push(stream, (struct watch_control){.watch_id = watcher->id, .created = true});
    return ST_OK;
}

enum status watch_stream_refuse(struct watch_stream *stream, struct slice reason)
{
    if (stream->control_count >= WATCH_WAITING_MAX)
        return ST_LIMIT;
    struct watch_control control = {.watch_id = -1, .created = true, .canceled = true};
    stream->hub->stats.refused++;
    control_push_reason(stream, control, reason);
    return ST_OK;
}

enum status watch_stream_keep(struct watch_stream *stream,
                              bool (*keep)(void *ctx, struct slice key, struct slice range_end),
                              void *ctx, struct slice reason)
{
    AUTO(buf_fini) struct buf ended = {0}; /* int64_t: ids */
    CHAIN_FOREACH(link, &stream->ids)
    {
        const struct watcher *watcher = CONTAINER_OF(link, struct watcher, in_ids);
        if (watcher->state == WATCHER_COMPACTED || /* told of that next, and nothing else */
            keep(ctx, watch_range_key(watcher->range), watch_range_end(watcher->range)))
            continue;
        TRY(buf_append(&ended, slice_of(&watcher->id, sizeof(watcher->id))));
    }
    for (size_t at = 0; at < ended.len; at += sizeof(int64_t)) {
        int64_t id;
        memcpy(&id, ended.ptr + at, sizeof(id));
        if (stream->control_count >= WATCH_WAITING_MAX)
            return ST_LIMIT;
        watcher_close(stream_find_watcher(stream, id));
        control_push_reason(stream, (struct watch_control){.watch_id = id, .canceled = true},
                            reason);
    }
    return ST_OK;
}

enum status watch_stream_cancel(struct watch_stream *stream, int64_t watch_id)
{
    struct watcher *watcher = stream_find_watcher(stream, watch_id);
    if (!watcher)
        return ST_OK;
    if (stream->control_count >= WATCH_WAITING_MAX)
        return ST_LIMIT;
    watcher_close(watcher);
    control_push(stream, (struct watch_control){.watch_id = watch_id, .canceled = true});
    return ST_OK;
}

enum status watch_stream_progress(struct watch_stream *stream)
{
    if (!stream->ids.count)
        return ST_OK;
    notify_ask(stream);
    stream_wake(stream);
    return ST_OK;
}

enum status watch_stream_status(const struct watch_stream *stream)
{
    return stream->broken;
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
    if (LIKELY(from == out->at)) {
        out->at += len;
        return;
    }
    assert(!stream->rest);
    size_t now = size_min(len, (size_t)(out->end - out->at));
    memcpy(out->at, from, now);
    out->at += now;
    if (now == len)
        return;
    stream->rest = xmalloc(len - now);
    memcpy(stream->rest, from + now, len - now);
    stream->rest_len = (uint32_t)(len - now);
    stream->rest_at = 0;
    struct watch_stats *stats = &stream->hub->stats;
    stats->held_bytes += stream->rest_len;
    stats_raise(&stats->held_bytes_peak, stats->held_bytes);
    if (stream->rest_len > stream->held_peak)
        stream->held_peak = stream->rest_len;
}

void output_message(struct watch_stream *stream, struct watch_output *out,
                    const struct message *message, int64_t revision)
{
    uint8_t bytes[MESSAGE_HEAD_BYTES_MAX];
    size_t len = message_head_write(bytes, message, hub_header(stream->hub, revision), 0);
    output_end(stream, out, bytes, len);
}

static void rest_fill(struct watch_stream *stream, struct watch_output *out)
{
    size_t len = size_min(stream->rest_len - stream->rest_at, (size_t)(out->end - out->at));
    memcpy(out->at, stream->rest + stream->rest_at, len);
    out->at += len;
    stream->rest_at += (uint32_t)len;
    stream->hub->stats.held_bytes -= len;
    if (stream->rest_at < stream->rest_len)
        return;
    free(TAKE(stream->rest));
    stream->rest_len = stream->rest_at = 0;
}

/* -- Filling -- */

static bool live_ready(const struct watch_stream *stream)
{
    return stream->dirty && !stream->live_waiting && !stream->live_hungry;
}

static bool scans_ready(const struct watch_stream *stream)
{
    return stream->scan_count > stream->scans_waiting && !stream->scan_hungry;
}

static bool has_work(const struct watch_stream *stream)
{
    if (stream->broken)
        return false;
    if (stream->rest)
        return true;
    if (stream->large)
        return !stream->large_waiting && !stream->large_hungry;
    return stream->control_count || stream->compacted || live_ready(stream) ||
           scans_ready(stream) || notify_due(stream);
}

/* Live watchers and those catching up change turns by what they wrote. */
static void fill_in_turns(struct watch_stream *stream, struct watch_output *out)
{
    const uint8_t *before = out->at;
    if (live_ready(stream) && scans_ready(stream))
        out->pause =
            out->at + size_min((size_t)(out->end - out->at), WATCH_TURN_BYTES - stream->turn_bytes);
    bool scan = scans_ready(stream) && (stream->scan_turn || !live_ready(stream));
    if (scan)
        catch_up_fill(stream, out);
    else
        live_fill(stream, out);
    out->pause = out->end;
    stream->turn_bytes += (uint32_t)(out->at - before);
    if (stream->turn_bytes < WATCH_TURN_BYTES && live_ready(stream) == scans_ready(stream))
        return;
    stream->turn_bytes = 0;
    stream->scan_turn = !scan;
}

static void fill_next(struct watch_stream *stream, struct watch_output *out)
{
    if (stream->rest)
        rest_fill(stream, out);
    else if (stream->large)
        large_fill(stream, out);
    else if (stream->control_count)
        control_fill(stream, out);
    else if (stream->compacted)
        compacted_fill(stream, out);
    else if (live_ready(stream) || scans_ready(stream))
        fill_in_turns(stream, out);
    else
        notify_fill(stream, out);
}

/* What was asked for at a revision that this turn has not reached. */
static bool progress_is_ahead(const struct watch_stream *stream)
{
    return stream->progress_wanted > stream->hub->tail;
}

uint64_t watch_stream_responses(const struct watch_stream *stream)
{
    return stream->hub->stats.responses_sent;
}

size_t watch_stream_fill(struct watch_stream *stream, uint8_t *dst, size_t room, bool *ret_more)
{
    uint8_t *end = dst + room;
    struct watch_output out = {.start = dst, .at = dst, .end = end, .pause = end};
    struct watch_hub *hub = stream->hub;
    stream_raise_behind(stream, census_behind(stream));
    stream->filling = true;
    hub->budget = WATCH_FILL_EVENTS;
    while (out.at < out.end && has_work(stream))
        fill_next(stream, &out);
    stream->filling = false;
    if (progress_is_ahead(stream))
        stream_park_hungry(stream);
    stream->bytes_sent += (uint64_t)(out.at - out.start);
    hub->stats.bytes_sent += (uint64_t)(out.at - out.start);
    hub->stats.streams_stopped -= stream->stopped;
    *ret_more = stream->woken = stream->stopped = has_work(stream);
    hub->stats.streams_stopped += stream->stopped;
    hub->census.wanted = true;
    return (size_t)(out.at - out.start);
}
