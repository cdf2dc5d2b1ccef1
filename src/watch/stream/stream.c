#include "base/buf.h"
#include "base/xalloc.h"
#include "watch/hub/hub_read.h"
#include "watch/hub/long_revision.h"
#include "watch/stream/output.h"
#include "watch/stream/stats_scan.h"
#include "watch/stream/stream_private.h"
#include "watch/stream/watcher_state.h"

enum {
    FREE_STREAM = 4,        /* freeing a stream counts as freeing this many watchers */
    TURN_BYTES = 64 * 1024, /* live and catching-up watchers take turns after this much output */
};

/* -- Life -- */

static void stream_init(struct watch_stream *stream, struct watch_hub *hub,
                        struct watch_stream_owner owner)
{
    assert(owner.wake);
    *stream = (struct watch_stream){.hub = hub, .owner = owner};
    list_init(&stream->in_deferred);
    list_init(&stream->in_waiting);
    list_push_back(&hub->streams, &stream->in_hub);
    watch_stats_raise(&hub->stats.streams_peak, ++hub->stats.streams);
}

struct watch_stream *watch_stream_new(struct watch_hub *hub, struct watch_stream_owner owner)
{
    struct watch_sending *made = pool_alloc(hub->pool, sizeof(*made));
    int64_t interval = hub->options.progress_interval_ns;
    *made = (struct watch_sending){.tick_ns =
                                       interval + random_between(&hub->random, 0, interval / 10)};
    stream_init(&made->stream, hub, owner);
    list_init(&made->scans);
    return &made->stream;
}

void stream_init_without_sending(struct watch_stream *stream, struct watch_hub *hub,
                                 struct watch_stream_owner owner)
{
    stream_init(stream, hub, owner);
    stream->cursor = true;
}

static void controls_drop(struct watch_stream *stream)
{
    for (; sending(stream)->control_count; sending(stream)->control_count--) {
        struct watch_control *control = &sending(stream)->controls[sending(stream)->control_first];
        if (control->reason_owned)
            free((void *)(uintptr_t)control->reason.ptr);
        sending(stream)->control_first =
            (uint16_t)((sending(stream)->control_first + 1) % sending(stream)->control_capacity);
    }
    free(TAKE(sending(stream)->controls));
    sending(stream)->control_capacity = sending(stream)->control_first = 0;
}

/* Returns whether all its watchers were freed. */
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

void stream_free_closing(struct watch_hub *hub)
{
    while (hub->free_budget && !list_empty(&hub->closing)) {
        struct watch_stream *stream = LIST_ENTRY(hub->closing.next, struct watch_stream, in_hub);
        if (!free_watchers(stream))
            return;
        list_remove(&stream->in_hub);
        chain_table_fini(&stream->ids);
        pool_free_object(hub->pool, stream);
        hub->free_budget -= size_min(hub->free_budget, FREE_STREAM);
    }
}

static void sending_fini(struct watch_sending *s)
{
    struct watch_hub *hub = s->stream.hub;
    controls_drop(&s->stream);
    free(s->rest);
    hub->stats.held_bytes -= s->rest_len - s->rest_at;
    s->rest_len = s->rest_at = 0;
    large_response_free(TAKE(s->large));
    heap_remove(&hub->ticks, &s->tick);
}

void watch_stream_free(struct watch_stream *stream)
{
    if (!stream)
        return;
    struct watch_hub *hub = stream->hub;
    assert(!stream->filling);
    assert(!stream->closing);
    if (!stream->cursor)
        sending_fini(sending(stream));
    hub->stats.streams_stopped -= stream->stopped;
    hub->stats.streams--;
    list_remove(&stream->in_deferred);
    list_remove(&stream->in_waiting);
    stats_scan_forget(hub, stream);
    /* Its watchers stay in the index until they are freed, and events find them there: the owner
     * must not be reached through them. */
    stream->owner = (struct watch_stream_owner){0};
    stream->closing = true;
    stream->woken = stream->dirty = true; /* so that nothing marks or wakes it */
    stream->stopped = stream->ticking = stream->deferred = false;
    stream->tick_bucket = 0;
    list_push_back(&hub->closing, &stream->in_hub);
    stream_free_closing(hub);
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

/* -- Control responses -- */

/* The caller has made sure that there is room for one more. */
static void control_push(struct watch_stream *stream, struct watch_control control)
{
    assert(sending(stream)->control_count < WATCH_WAITING_MAX);
    if (sending(stream)->control_count == sending(stream)->control_capacity) {
        uint16_t capacity = (uint16_t)size_max(2, sending(stream)->control_capacity * 2u);
        struct watch_control *controls = xmalloc(capacity * sizeof(controls[0]));
        for (uint16_t i = 0; i < sending(stream)->control_count; i++)
            controls[i] = sending(stream)->controls[(sending(stream)->control_first + i) %
                                                    sending(stream)->control_capacity];
        free(sending(stream)->controls);
        sending(stream)->controls = controls;
        sending(stream)->control_capacity = capacity;
        sending(stream)->control_first = 0;
    }
    control.revision = stream->hub->history->ops->revision(stream->hub->history);
    sending(stream)->controls[(sending(stream)->control_first + sending(stream)->control_count++) %
                              sending(stream)->control_capacity] = control;
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
    assert(sending(stream)->control_count > 0);
    assert(sending(stream)->control_first < sending(stream)->control_capacity);
    struct watch_control *control = &sending(stream)->controls[sending(stream)->control_first];
    struct message message = {
        .watch_id = control->watch_id,
        .created = control->created,
        .canceled = control->canceled,
        .reason = control->reason,
    };
    output_message(stream, out, &message, control->revision);
    if (control->reason_owned)
        free((void *)(uintptr_t)control->reason.ptr);
    sending(stream)->control_first =
        (uint16_t)((sending(stream)->control_first + 1) % sending(stream)->control_capacity);
    if (--sending(stream)->control_count == 0)
        controls_drop(stream); /* an idle stream uses no memory for them */
}

static void compacted_fill(struct watch_stream *stream, struct watch_output *out)
{
    struct watch_history *history = stream->hub->history;
    assert(sending(stream)->compacted->state == WATCHER_COMPACTED);
    struct message message = {.watch_id = sending(stream)->compacted->id, .canceled = true};
    if (sending(stream)->compacted->damaged)
        message.reason = slice_from_text(status_text(ST_CORRUPT));
    else if (sending(stream)->compacted->is_void)
        message.compact_revision = history->ops->revision(history);
    else
        message.compact_revision = history->ops->compact_revision(history);
    watcher_close(sending(stream)->compacted);
    output_message(stream, out, &message, 0);
}

size_t watch_stream_waiting(const struct watch_stream *stream)
{
    return sending(stream)->control_count;
}

size_t watch_stream_watchers(const struct watch_stream *stream)
{
    return stream->ids.count;
}

/* -- Requests -- */

bool stream_take_one(struct watch_hub *hub)
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

/* Empty: the create is accepted, and counted (stream_take_one). */
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
    if (!stream_take_one(stream->hub))
        return slice_from_text(status_text(ST_TOO_MANY_WATCHES));
    return SLICE_EMPTY;
}

static uint8_t create_flags(const struct watch_create *create)
{
    return (uint8_t)((create->no_put ? WATCHER_NO_PUT : 0) |
                     (create->no_delete ? WATCHER_NO_DELETE : 0) |
                     (create->prev_kv ? WATCHER_PREV_KV : 0) |
                     (create->fragment ? WATCHER_FRAGMENT : 0) |
                     (create->progress_notify ? WATCHER_NOTIFY | WATCHER_QUIET : 0));
}

/* The watcher begins at a revision of a discarded history. */
static void watcher_void(struct watcher *watcher)
{
    struct watch_stream *stream = watcher->stream;
    watcher->is_void = true;
    if (!stream->cursor) {
        watcher_compacted(watcher);
        return;
    }
    /* A cursor finds out when it reads. */
    stream->dirty = true;
    stream->place = (struct watch_place){.revision = watcher->from};
    stream->last_hit = watcher->from;
    stream_wake(stream);
}

struct watcher *stream_add_watcher(struct watch_stream *stream, const struct watch_create *create,
                                   struct slice key)
{
    struct watch_hub *hub = stream->hub;
    struct watch_history *history = hub->history;
    assert(!stream->closing);
    /* The first watcher of the shard: from now on the writer announces new revisions. */
    if (hub->stats.watchers + hub->own_watchers == 0 && history->ops->listen)
        history->ops->listen(history, true);
    hub->stats.watchers += !stream->own;
    hub->own_watchers += stream->own;
    watch_stats_raise(&hub->stats.watchers_peak, hub->stats.watchers);
    if (!hub->live)
        hub_catch_tail(hub);
    int64_t id = create->watch_id;
    stream->ids_chosen |= id != 0;
    if (!id && !stream->cursor) {
        /* The next number, unless the client has chosen it for another watch. */
        while (stream->ids_chosen && stream_find_watcher(stream, sending(stream)->next_id))
            sending(stream)->next_id++;
        id = sending(stream)->next_id++;
    }
    struct watcher *watcher = pool_alloc(hub->pool, sizeof(*watcher));
    *watcher = (struct watcher){
        .stream = stream,
        .id = id,
        .from =
            create->start_revision ? create->start_revision : history->ops->revision(history) + 1,
        .flags = create_flags(create),
    };
    bool behind = watcher->from <= hub->tail, live = !behind || stream->cursor;
    watcher->state = live ? WATCHER_LIVE : WATCHER_CATCHING_UP;
    hub->live += live;
    stream_add_id(stream, watcher);
    range_index_add(&hub->index, watcher, key, create->range_end);
    hub_hits_drop(hub);
    long_revision_watcher_added(hub, watcher);
    notify_watcher_added(watcher);
    stream_changed(stream);
    if (live)
        notify_watcher_live(watcher);
    else
        catch_up_begin(watcher);
    if (live && behind) {
        /* A cursor, which has one watcher and reads the past by itself. */
        assert(stream->ids.count == 1);
        stream->dirty = true;
        stream->place = (struct watch_place){.revision = watcher->from};
        stream->last_hit = hub->tail;
        stream_wake(stream);
    }
    if (create->start_revision > hub->tail && history->ops->is_void &&
        history->ops->is_void(history, create->start_revision))
        watcher_void(watcher);
    return watcher;
}

enum status watch_stream_create(struct watch_stream *stream, const struct watch_create *create)
{
    if (sending(stream)->control_count >= WATCH_WAITING_MAX)
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
    if (sending(stream)->control_count >= WATCH_WAITING_MAX)
        return ST_LIMIT;
    struct watch_control control = {.watch_id = -1, .created = true, .canceled = true};
    stream->hub->stats.refused++;
    control_push_reason(stream, control, reason);
    return ST_OK;
}

typedef bool (*keep_fn)(void *ctx, struct slice key, struct slice range_end);

/* Appends the ids of the watchers of one bucket that must be ended. Returns how many it has. */
static size_t keep_bucket(const struct chain_link *link, keep_fn keep, void *ctx, struct buf *ended)
{
    size_t count = 0;
    for (; link; link = link->next, count++) {
        const struct watcher *watcher = CONTAINER_OF(link, struct watcher, in_ids);
        if (watcher->state ==
                WATCHER_COMPACTED || /* its next and only response reports the compaction */
            keep(ctx, watch_range_key(watcher->range), watch_range_end(watcher->range)))
            continue;
        if (buf_append(ended, slice_of(&watcher->id, sizeof(watcher->id))) != ST_OK)
            xalloc_check(NULL, sizeof(watcher->id));
    }
    return count;
}

static enum status end_all(struct watch_stream *stream, struct slice ids, struct slice reason)
{
    for (size_t at = 0; at < ids.len; at += sizeof(int64_t)) {
        int64_t id;
        memcpy(&id, ids.ptr + at, sizeof(id));
        if (sending(stream)->control_count >= WATCH_WAITING_MAX)
            return ST_LIMIT;
        struct watcher *watcher = stream_find_watcher(stream, id);
        assert(watcher); /* keep_bucket has just found it */
        watcher_close(watcher);
        control_push_reason(stream, (struct watch_control){.watch_id = id, .canceled = true},
                            reason);
    }
    return ST_OK;
}

enum status watch_stream_keep(struct watch_stream *stream, keep_fn keep, void *ctx,
                              struct slice reason, uint32_t *at, size_t *units)
{
    AUTO(buf_fini) struct buf ended = {0}; /* int64_t: ids */
    bool complete = false;
    while (*units && !complete) {
        size_t count = keep_bucket(chain_table_visit(&stream->ids, at), keep, ctx, &ended);
        *units -= size_min(*units, count);
        complete = !*at;
    }
    TRY(end_all(stream, buf_slice(&ended), reason));
    return complete ? ST_OK : ST_AGAIN;
}

enum status watch_stream_cancel(struct watch_stream *stream, int64_t watch_id)
{
    struct watcher *watcher = stream_find_watcher(stream, watch_id);
    if (!watcher)
        return ST_OK;
    if (sending(stream)->control_count >= WATCH_WAITING_MAX)
        return ST_LIMIT;
    watcher_close(watcher);
    control_push(stream, (struct watch_control){.watch_id = watch_id, .canceled = true});
    return ST_OK;
}

enum status watch_stream_progress(struct watch_stream *stream, int64_t most)
{
    struct watch_history *history = stream->hub->history;
    bool far =
        history->ops->revision(history) - most >= UINT32_MAX; /* not a revision of this history */
    if (!stream->ids.count || far)
        return ST_OK;
    notify_ask(stream, most);
    stream_wake(stream);
    return ST_OK;
}

enum status watch_stream_status(const struct watch_stream *stream)
{
    return stream->broken;
}

bool watch_stream_has(const struct watch_stream *stream, int64_t watch_id)
{
    return stream_find_watcher(stream, watch_id) != NULL;
}

bool watch_stream_is_within(const struct watch_stream *stream)
{
    return sending(stream)->rest || sending(stream)->large;
}

/* -- Filling -- */

static void rest_fill(struct watch_stream *stream, struct watch_output *out)
{
    assert(sending(stream)->rest_at < sending(stream)->rest_len);
    size_t len = size_min(sending(stream)->rest_len - sending(stream)->rest_at,
                          (size_t)(out->end - out->at));
    memcpy(out->at, sending(stream)->rest + sending(stream)->rest_at, len);
    out->at += len;
    sending(stream)->rest_at += (uint32_t)len;
    stream->hub->stats.held_bytes -= len;
    if (sending(stream)->rest_at < sending(stream)->rest_len)
        return;
    free(TAKE(sending(stream)->rest));
    sending(stream)->rest_len = sending(stream)->rest_at = 0;
}

static bool live_ready(const struct watch_stream *stream)
{
    return stream->dirty && !stream->live_waiting && !stream->live_deferred;
}

static bool scans_ready(const struct watch_stream *stream)
{
    return stream->scan_count > stream->scans_waiting && !stream->scan_deferred;
}

/* Something could be written now, if there were room. */
static bool has_work(const struct watch_stream *stream)
{
    if (stream->broken)
        return false; /* the call ends, because a message cannot be completed */
    if (sending(stream)->rest)
        return true;
    /* Nothing may come between the parts of a large message. */
    if (sending(stream)->large)
        return !stream->large_waiting && !stream->large_deferred;
    return sending(stream)->control_count || sending(stream)->compacted || live_ready(stream) ||
           scans_ready(stream) ||
           ((stream->ticking || sending(stream)->progress_wanted) && notify_due(stream));
}

/* Live watchers and those that catch up take turns by the bytes they wrote. */
static void fill_in_turns(struct watch_stream *stream, struct watch_output *out)
{
    const uint8_t *before = out->at;
    assert(sending(stream)->turn_bytes < TURN_BYTES);
    if (live_ready(stream) && scans_ready(stream))
        out->pause = out->at + size_min((size_t)(out->end - out->at),
                                        TURN_BYTES - sending(stream)->turn_bytes);
    bool scan = scans_ready(stream) && (stream->scan_turn || !live_ready(stream));
    if (scan)
        catch_up_fill(stream, out);
    else
        live_fill(stream, out);
    out->pause = out->end;
    sending(stream)->turn_bytes += (uint32_t)(out->at - before);
    if (sending(stream)->turn_bytes < TURN_BYTES && live_ready(stream) == scans_ready(stream))
        return; /* its turn is not over yet */
    sending(stream)->turn_bytes = 0;
    stream->scan_turn = !scan;
}

/* Writes what comes next in the order that stream.h promises. */
static void fill_next(struct watch_stream *stream, struct watch_output *out)
{
    if (sending(stream)->rest)
        rest_fill(stream, out);
    else if (sending(stream)->large)
        large_response_fill(stream, out);
    else if (sending(stream)->control_count)
        control_fill(stream, out);
    else if (sending(stream)->compacted)
        compacted_fill(stream, out);
    else if (live_ready(stream) || scans_ready(stream))
        fill_in_turns(stream, out);
    else
        notify_fill(stream, out);
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
    assert(!stream->closing);
    assert(!stream->filling);
    stats_scan_raise_behind(stream);
    stream->filling = true; /* what it does to itself meanwhile need not wake it */
    hub->budget = WATCH_FILL_EVENTS;
    hub->long_revisions.used_up = !hub->long_revisions.budget;
    while (out.at < out.end && !out.closed && has_work(stream))
        fill_next(stream, &out);
    stream->filling = false;
    assert(out.at <= out.end);
    /* Progress was requested at a revision that this turn has not reached. */
    if (sending(stream)->progress_wanted > hub->tail && hub->tail_waits)
        stream_wait_for_history(stream);
    else if (sending(stream)->progress_wanted > hub->tail)
        stream_defer(stream);
    sending(stream)->bytes_sent += (uint64_t)(out.at - out.start);
    hub->stats.bytes_sent += (uint64_t)(out.at - out.start);
    /* Only a lack of room ends a fill before the work: then the stream is stopped, and its owner
     * calls again when there is room. Until then it counts as woken, so that new events do not wake
     * it. */
    hub->stats.streams_stopped -= stream->stopped;
    *ret_more = stream->woken = stream->stopped = has_work(stream);
    hub->stats.streams_stopped += stream->stopped;
    hub->stats_scan.wanted = true;
    return (size_t)(out.at - out.start);
}
