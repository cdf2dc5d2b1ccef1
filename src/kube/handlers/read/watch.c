/*
 * A watch: the current objects, if the client asked for them, and then every change. HTTP pulls it:
 * for a client that does not read, the cursor stays where it is and nothing is buffered.
 *
 *     NEW ─┬─► WAITING ─► INITIAL ─► LIVE
 *          └──────────────────────────┘▲
 *     WAITING, INITIAL, LIVE ─► FAILED: one ERROR event, then the end of the answer
 *     every phase ─► ENDED: the exchange has ended
 *
 * WAITING: until the store has the requested revision, at most 3 s, and for the range; INITIAL: an
 * ADDED event for each object of the range, while the cursor stays after its revision; LIVE: the
 * events of the cursor. In each of them `ending` says that the answer ends after the current event.
 *
 * State needed only until the initial events are sent is freed with the call, because most watches
 * are idle.
 */
#include "base/log/log.h"
#include "base/memory/budget.h"
#include "base/xalloc.h"
#include "kube/call/call.h"
#include "kube/call/conversion.h"
#include "kube/call/format.h"
#include "kube/call/gate.h"
#include "kube/call/operation.h"
#include "kube/call/respond.h"
#include "kube/call/shape.h"
#include "kube/handlers/read/event_cache.h"
#include "kube/handlers/read/object_writer.h"
#include "kube/handlers/read/read.h"
#include "kube/handlers/read/scope.h"
#include "kube/handlers/read/search_budget.h"
#include "kube/handlers/read/watch_private.h"
#include "kube/handlers/read/watches.h"

enum {
    REST_BYTES_MAX = 64 * 1024, /* unsent rest of an event that is copied; more is read again */
    MIN_TIMEOUT_S = 1800,       /* default timeout; jittered up to twice this */
    NEAR_REVISIONS = 1000,      /* a watch at most this far behind counts as following */
};
/* Between two bookmarks, give or take a tenth, so that watches do not send theirs together. */
#define BOOKMARK_NS (60 * NS_PER_S)
#define LAST_BOOKMARK_NS (2 * NS_PER_S) /* before the deadline, as in Kubernetes */
#define FAREWELL_NS (10 * NS_PER_S)     /* for a client that does not read the end */

/* State until the initial events are sent; in the call's arena. */
struct beginning {
    struct kube_scope scope;
    struct kube_revision_wait fresh; /* while waiting */
    struct pb_range_request request;
    struct kube_object_writer writer; /* the initial event that is being sent */
    bool range_open;
    bool mark_end; /* a bookmark follows the initial events */
    struct kube_converted_beginning converted;
};

#define TO(phase) (1u << WATCH_##phase)

static const unsigned moves[] = {
    [WATCH_NEW] = TO(WAITING) | TO(LIVE) | TO(ENDED),
    [WATCH_WAITING] = TO(INITIAL) | TO(FAILED) | TO(ENDED),
    [WATCH_INITIAL] = TO(LIVE) | TO(FAILED) | TO(ENDED),
    [WATCH_LIVE] = TO(FAILED) | TO(ENDED),
    [WATCH_FAILED] = TO(ENDED),
    [WATCH_ENDED] = 0,
};

static void move(struct kube_watch *w, enum watch_phase next)
{
    /* The metric of leaving a phase follows that of entering it. */
    static const enum kube_total entered[] = {[WATCH_WAITING] = KUBE_TOTAL_WAITING_IN,
                                              [WATCH_INITIAL] = KUBE_TOTAL_INITIAL_IN,
                                              [WATCH_LIVE] = KUBE_TOTAL_LIVE_IN};
    static const unsigned counted = TO(WAITING) | TO(INITIAL) | TO(LIVE);
    assert(moves[w->phase] & 1u << next);
    if (counted & 1u << w->phase)
        kube_count_total(&w->api->counter, entered[w->phase] + 1, 1);
    w->phase = next;
    if (counted & 1u << next)
        kube_count_total(&w->api->counter, entered[next], 1);
}

static void close_range(struct kube_watch *w)
{
    if (w->begins->range_open)
        engine_range_close(&w->call->range);
    w->begins->range_open = false;
}

/* The watch continues; for Tables and metadata it keeps the call, whose options it needs. */
static void end_beginning(struct kube_watch *w)
{
    if (!w->begins)
        return;
    kube_revision_wait_cancel(&w->begins->fresh);
    close_range(w);
    kube_object_writer_fini(&w->begins->writer);
    kube_converted_range_fini(&w->begins->converted.range);
    kube_scope_fini(&w->begins->scope);
    w->begins = NULL;
    if (w->shaping.shape != KUBE_WHOLE)
        return;
    kube_call_release(w->call);
    w->call = NULL;
    http_forget_request(w->exchange);
}

void kube_watch_free(struct kube_watch *w)
{
    if (w->call)
        kube_call_release(w->call);
    kube_selection_unref(w->selection);
    kube_registry_use_free(w->use);
    free(w);
}

/* While an event is converted on the worker, the watch is freed when it comes back. */
static void watch_end(struct kube_life *life)
{
    struct kube_watch *w = CONTAINER_OF(life, struct kube_watch, life);
    end_beginning(w);
    move(w, WATCH_ENDED);
    if (w->begun)
        kube_count(&w->api->counter, w->shaping.kind, KUBE_COUNT_WATCHES_ENDED, 1);
    kube_watches_remove(w->api->watches, &w->in_api);
    kube_searcher_fini(&w->searcher);
    loop_timer_cancel(w->api->loop, &w->bookmark);
    watch_cursor_free(w->cursor);
    kube_watch_convert_fini(w);
    buf_fini(&w->made);
    (void)!account_follow(http_exchange_account(w->exchange), &w->made, &w->charged);
    w->exchange = NULL;
    if (w->away)
        atomic_store_explicit(&w->away->job.worker.given_up, true, memory_order_relaxed);
    else
        kube_watch_free(w);
}

void kube_watch_check_access(struct list *in_api)
{
    http_wake(LIST_ENTRY(in_api, struct kube_watch, in_api)->exchange);
}

/* -- Errors and bookmarks -- */

enum status kube_watch_fail(struct kube_watch *w, const struct kube_status *status)
{
    if (w->begins)
        close_range(w);
    watch_cursor_free(w->cursor);
    w->cursor = NULL;
    move(w, WATCH_FAILED);
    return kube_format_error(status, w->protobuf, &w->made);
}

enum status kube_watch_fail_engine(struct kube_watch *w, enum status engine)
{
    struct engine_status now;
    struct kube_status status;
    engine_status_get(w->api->shard, &now);
    kube_count_total(&w->api->counter, KUBE_TOTAL_EXPIRED, engine == ST_COMPACTED);
    if (engine == ST_COMPACTED && w->requested)
        kube_fail_expired(&status, w->requested, now.compact_revision);
    else
        kube_fail_engine(&status, engine);
    return kube_watch_fail(w, &status);
}

static enum status make_bookmark(struct kube_watch *w, int64_t revision, bool initial_end)
{
    bool columns = !w->columns_sent && !w->protobuf;
    w->bookmark_revision = revision;
    w->columns_sent |= columns;
    return kube_format_bookmark(&w->shaping, revision, initial_end, columns, w->protobuf, &w->made);
}

/* -- Initial events -- */

/* All objects have been sent, so the watch continues with what has happened since then. */
static enum status end_initial(struct kube_watch *w, int64_t revision)
{
    bool mark_end = w->begins->mark_end;
    end_beginning(w);
    move(w, WATCH_LIVE);
    w->bookmark_revision = revision;
    return mark_end ? make_bookmark(w, revision, true) : ST_OK;
}

static enum status step_initial(struct kube_watch *w)
{
    struct slice field;
    struct kube_object object;
    bool selected;
    enum status status;
    if (w->begins->converted.used) {
        status = kube_watch_step_converted(w, &w->begins->converted);
        return status == ST_END ? end_initial(w, w->begins->converted.range.revision) : status;
    }
    if (!engine_range_next(&w->call->range, &field)) {
        status = w->call->range.op.status;
        return status == ST_OK ? end_initial(w, w->call->range.op.revision)
                               : kube_watch_fail_engine(w, status);
    }
    struct kube_kv kv = kube_kv_of(field);
    if (kube_watch_converts(w) || !kube_conversion_is_plain(w->shaping.kind, kv.mod_revision))
        return kube_watch_show(
            w, &(struct kube_event_pair){
                   .after = kv, .created = true, .key = kv.key, .revision = kv.mod_revision});
    status = kube_scope_look(&w->begins->scope, w->shaping.shape, kv, &object, &selected);
    w->api->search_budget->looked = w->begins->scope.looked;
    w->begins->scope.looked = 0;
    if (status != ST_OK && kube_conversion_awaits(w->shaping.kind, kv.value)) {
        (void)kube_conversion_distrust(w->shaping.kind, &w->call->status);
        return kube_watch_fail(w, &w->call->status);
    }
    if (status != ST_OK)
        return kube_watch_undecodable(w, kv.key, kv.mod_revision, false, status);
    if (!selected)
        return ST_OK;
    kube_count(&w->api->counter, w->shaping.kind, KUBE_COUNT_EVENTS, 1);
    if (!kube_watch_is_plain(w))
        return kube_watch_make(w, KUBE_EVENT_ADDED, &object, kv.mod_revision);
    kube_object_writer_set_object(&w->begins->writer, kube_event_head(KUBE_EVENT_ADDED), &object,
                                  kv.mod_revision, false, kube_event_tail());
    return ST_OK;
}

/* -- Changes -- */

static void take(struct kube_watch *w)
{
    watch_cursor_take(w->cursor);
    kube_count(&w->api->counter, w->shaping.kind, KUBE_COUNT_EVENTS, 1);
}

/* Copies the rest of an event: a compaction could remove it before there is room, and an event that
 * was sent in part must be completed. */
static enum status keep_rest(struct kube_watch *w, struct kube_object_writer *writer, size_t rest)
{
    if (!rest)
        return ST_OK;
    TRY(buf_reserve(&w->made, rest));
    w->made.len = kube_object_writer_fill(writer, w->made.ptr, rest);
    return ST_OK;
}

/* Fills the room. The rest is copied or, if it is long, read again. */
static enum status send_object(struct kube_watch *w, struct kube_object_writer *writer,
                               uint8_t *dst, size_t room, size_t *ret_len)
{
    size_t rest = writer->length - w->at;
    writer->at = w->at;
    *ret_len = kube_object_writer_fill(writer, dst, room);
    rest -= *ret_len;
    w->at += *ret_len;
    if (rest > REST_BYTES_MAX)
        return ST_OK;
    TRY(keep_rest(w, writer, rest));
    w->at = 0;
    take(w);
    return ST_OK;
}

/* Sends the bytes that all watches share in this turn, or the object from where it is stored. */
static enum status send_event(struct kube_watch *w, struct kube_cached_event *cached,
                              const struct watch_event *event, int64_t revision, uint8_t *dst,
                              size_t room, size_t *ret_len)
{
    struct slice wire;
    bool shared = kube_event_cache_wire(w->api->event_cache, cached, w->change, &wire);
    if (LIKELY(shared && !w->at && wire.len <= room)) {
        slice_copy(dst, wire);
        *ret_len = wire.len;
        take(w);
        return ST_OK;
    }
    struct kube_object_writer writer = {0};
    struct kube_object object;
    if (shared)
        kube_object_writer_set_shared(&writer, wire);
    else if (kube_cached_event_object(cached, w->cursor, event, w->selection, w->shaping.shape,
                                      w->change, &object))
        kube_object_writer_set_object(&writer, kube_event_head(w->change), &object, revision, false,
                                      kube_event_tail());
    else
        return ST_COMPACTED;
    return send_object(w, &writer, dst, room, ret_len);
}

/* Makes an event in another format or shape. Protobuf frames of whole objects are made once a turn.
 */
static enum status make_change(struct kube_watch *w, struct kube_cached_event *cached,
                               const struct watch_event *event, int64_t revision)
{
    struct kube_event_cache *cache = w->api->event_cache;
    enum kube_shape shape = w->shaping.shape;
    bool shared = w->protobuf && shape == KUBE_WHOLE;
    struct kube_object object;
    struct slice frame;
    if (shared && kube_cached_event_frame(cached, w->change, &frame))
        return buf_append(&w->made, frame);
    if (!kube_cached_event_object(cached, w->cursor, event, w->selection, shape, w->change,
                                  &object))
        return ST_COMPACTED;
    w->api->search_budget->looked = KUBE_WATCH_CONVERTED * object.json.len;
    TRY(kube_watch_make(w, w->change, &object, revision));
    if (shared && w->cursor) /* else it is an ERROR event */
        kube_event_cache_keep_frame(cache, cached, w->change, buf_slice(&w->made));
    return ST_OK;
}

/* An event that is converted for this watch alone. ST_END: it need not be. */
static enum status show_event(struct kube_watch *w, const struct watch_event *event,
                              int64_t revision)
{
    struct kube_event_pair pair = kube_event_pair_of(w->selection, w->cursor, event, revision);
    if (!kube_converted_event_is_large(w->api, &pair) &&
        kube_watch_is_as_stored(w, event, revision))
        return ST_END;
    enum status status = kube_watch_await(w, &pair);
    if (status != ST_OK)
        return status == ST_CANCELED ? ST_OK : status;
    status = kube_watch_show(w, &pair);
    kube_watch_convert_drop(w);
    if (w->cursor) /* else it failed */
        watch_cursor_take(w->cursor);
    return status;
}

static enum status send_change(struct kube_watch *w, const struct watch_event *event,
                               int64_t revision, uint8_t *dst, size_t room, size_t *ret_len)
{
    if (UNLIKELY(!w->as_stored) && !w->at &&
        (kube_watch_converts(w) || !kube_watch_is_as_stored(w, event, revision))) {
        enum status status = show_event(w, event, revision);
        if (status != ST_END)
            return status;
    }
    struct kube_event_cache *cache = w->api->event_cache;
    struct kube_cached_event *cached = kube_event_cache_find(cache, w->cursor, event, revision);
    w->api->search_budget->looked = w->selection->selects ? event->field.len : 0;
    if (!w->at)
        w->change = kube_event_cache_type(cached, w->cursor, event, w->selection, w->shaping.shape);
    if (UNLIKELY(w->change == KUBE_EVENT_NONE || w->change == KUBE_EVENT_UNDECODABLE)) {
        watch_cursor_take(w->cursor);
        return w->change == KUBE_EVENT_NONE
                   ? ST_OK
                   : kube_watch_undecodable(w, event->key, revision, event->tombstone,
                                            ST_MALFORMED);
    }
    if (LIKELY(kube_watch_is_plain(w)))
        return send_event(w, cached, event, revision, dst, room, ret_len);
    TRY(make_change(w, cached, event, revision));
    if (w->cursor) /* else it failed */
        take(w);
    return ST_OK;
}

static void begin_ending(struct kube_watch *w)
{
    w->ending = true;
    w->bookmark_due = w->bookmarks && w->phase == WATCH_LIVE;
    loop_timer_set(w->api->loop, &w->bookmark, loop_now_ns(w->api->loop) + FAREWELL_NS);
}

/* ST_END, ST_AGAIN: there is nothing to send now; the watch will be woken. */
static enum status step_live(struct kube_watch *w, uint8_t *dst, size_t room, size_t *ret_len)
{
    const struct watch_event *event;
    int64_t revision;
    enum status status = watch_cursor_next(w->cursor, &event, &revision);
    if (w->at && status != ST_OK)
        return status; /* an event that was sent in part is completed or cut off */
    bool behind = status == ST_END || (status == ST_OK && revision > w->last);
    if (w->last && behind && !w->at && !w->ending)
        begin_ending(w);
    bool bookmark = status == ST_END && w->bookmark_due;
    if (status == ST_END || (w->ending && !w->at))
        w->bookmark_due = false;
    if (bookmark && watch_cursor_revision(w->cursor) >= w->bookmark_revision)
        return make_bookmark(w, watch_cursor_revision(w->cursor), false);
    if (w->ending && !w->at)
        return ST_OK;
    if (status == ST_END || status == ST_AGAIN)
        return status;
    return status == ST_OK ? send_change(w, event, revision, dst, room, ret_len)
                           : kube_watch_fail_engine(w, status);
}

static size_t send_made(struct kube_watch *w, uint8_t *dst, size_t room)
{
    size_t n = size_min(room, w->made.len - w->made_at);
    slice_copy(dst, slice_of(w->made.ptr + w->made_at, n));
    w->made_at += (uint32_t)n;
    if (w->made_at == w->made.len) {
        buf_fini(&w->made);
        w->made_at = 0;
    }
    return n;
}

/* The watch is close to the current revision and its events take little work. */
static bool follows(const struct kube_watch *w)
{
    return w->phase == WATCH_LIVE && !kube_watch_converts(w) &&
           watch_cursor_behind(w->cursor) <= NEAR_REVISIONS;
}

/* The client has lost its access, and its last event says so. False: an event was sent in part, or
 * there is no memory. */
static bool end_access(struct kube_watch *w)
{
    struct kube_status status;
    if (w->at || w->made_at || (w->begins && !kube_object_writer_empty(&w->begins->writer)))
        return false;
    buf_fini(&w->made);
    kube_unauthorized(w->api, &status);
    return kube_watch_fail(w, &status) == ST_OK;
}

/* The answer cannot end properly in the middle of an event. */
static enum http_fill cut_off(struct kube_watch *w)
{
    http_abort(w->exchange);
    return HTTP_FILL_DONE;
}

static enum http_fill fill_with(struct kube_watch *w, unsigned *budget, uint8_t *dst, size_t room,
                                size_t *ret_len)
{
    const struct kube_sender sender = {w->peer_name, w->trusted};
    enum status status = ST_OK;
    size_t n = 0;
    *ret_len = 0;
    if (UNLIKELY(kube_shuts_out(w->api, sender)) && w->phase != WATCH_FAILED && !end_access(w))
        return cut_off(w);
    while (n < room && status == ST_OK) {
        size_t len = 0;
        if (w->made.len) {
            /* An event is written, and did not fit into the room of the call before. */
            len = send_made(w, dst + n, room - n);
        } else if (w->begins && !kube_object_writer_empty(&w->begins->writer)) {
            len = kube_object_writer_fill(&w->begins->writer, dst + n, room - n);
        } else if (!w->at && (w->phase == WATCH_FAILED || (w->ending && !w->bookmark_due))) {
            return HTTP_FILL_DONE;
        } else if (!*budget) {
            /* This turn has looked at enough objects; the watch continues in a later one. */
            kube_search_wait(w->api->search_budget, &w->searcher, follows(w));
            return HTTP_FILL_PARKED;
        } else {
            w->api->search_budget->looked = 0;
            if (w->phase == WATCH_WAITING)
                status = ST_END;
            else
                status = w->phase == WATCH_INITIAL ? step_initial(w)
                                                   : step_live(w, dst + n, room - n, &len);
            *budget -= len ? 0 : kube_search_cost(w->api->search_budget->looked, *budget);
        }
        w->reads |= len > 0;
        *ret_len = n += len;
    }
    kube_count_total(&w->api->counter, KUBE_TOTAL_WATCH_BYTES, n);
    if (w->made.len)
        kube_count_peak(&w->api->counter, KUBE_TOTAL_HELD_PEAK, w->made.len - w->made_at);
    if (status == ST_END || status == ST_AGAIN)
        return HTTP_FILL_PARKED;
    return status == ST_OK ? HTTP_FILL_MORE : cut_off(w);
}

static enum http_fill fill(struct http_source *source, uint8_t *dst, size_t room, size_t *ret_len)
{
    struct kube_watch *w = CONTAINER_OF(source, struct kube_watch, source);
    struct kube_search_budget *budget = w->api->search_budget;
    *ret_len = 0;
    if (w->away)
        return HTTP_FILL_PARKED;
    unsigned taken = kube_search_take(budget, &w->searcher, follows(w)), left = taken;
    enum http_fill said = fill_with(w, &left, dst, room, ret_len);
    kube_search_spend(budget, &w->searcher, taken - left);
    /* Only what is kept beyond the turn is charged to the connection. */
    if (LIKELY(w->made.capacity == w->charged))
        return said;
    if (account_follow(http_exchange_account(w->exchange), &w->made, &w->charged) == ST_OK)
        return said;
    w->made_at = 0; /* the refused buffer is empty now */
    return cut_off(w);
}

/* -- Life -- */

static void wake(void *ctx)
{
    struct kube_watch *w = ctx;
    if (w->phase == WATCH_LIVE)
        http_wake(w->exchange);
}

/* The hub has prefetched the beginning of the watch. */
static void soon(void *ctx)
{
    const struct kube_watch *w = ctx;
    http_wake_soon(w->exchange);
    __builtin_prefetch((const uint8_t *)w + 128, 1);
    __builtin_prefetch(&w->searcher, 1);
    if (w->cursor)
        watch_cursor_fetch(w->cursor);
}

static bool open_cursor(struct kube_watch *w, int64_t from, struct kube_status *status)
{
    const struct kube_scope *scope = &w->begins->scope;
    struct watch_cursor_options options = {.key = scope->key,
                                           .range_end = scope->range_end,
                                           .tag = scope->tag,
                                           .tag_within = scope->tag_within,
                                           .from = from,
                                           .wake = wake,
                                           .soon = soon,
                                           .ctx = w};
    w->cursor = watch_cursor_new(engine_watch_hub(w->api->shard), &options);
    if (w->cursor)
        return true;
    kube_fail(status, KUBE_TOO_MANY_REQUESTS, "there are as many watches as this server takes");
    status->retry_after_s = 1;
    return false;
}

static void fail_later(struct kube_watch *w, const struct kube_status *status)
{
    if (kube_watch_fail(w, status) == ST_OK)
        http_wake(w->exchange);
    else
        http_abort(w->exchange);
}

static void on_opened(struct engine_op *op)
{
    struct kube_call *call = kube_call_of_range(op);
    if (call->exchange) {
        kube_converted_range_opened(&call->handler.watch->begins->converted.range, op);
        return;
    }
    /* The watch has ended. */
    if (op->status == ST_OK)
        engine_range_close(&call->range);
    (void)!kube_call_done(call);
}

static void begin_converted(struct kube_watch *w)
{
    const struct kube_converted_range range = {
        .call = w->call,
        .request = &w->begins->request,
        .open = &w->begins->range_open,
        .revision = w->call->range.op.revision,
        .left = w->call->range.kvs,
        .opened = on_opened,
    };
    kube_watch_begin_converted(w, &w->begins->converted, &range);
}

static void on_range(struct engine_op *op)
{
    struct kube_call *call = kube_call_of_range(op);
    struct kube_watch *w = call->handler.watch;
    bool open = op->status == ST_OK;
    if (!call->exchange && open)
        engine_range_close(&call->range);
    if (!kube_call_done(call))
        return;
    w->begins->range_open = open;
    if (!open)
        (void)kube_call_set_engine(call, op->status);
    if (!open || !open_cursor(w, op->revision + 1, &call->status)) {
        fail_later(w, &call->status);
        return;
    }
    if (kube_conversion_by_webhook(w->shaping.kind))
        begin_converted(w);
    move(w, WATCH_INITIAL);
    http_wake(w->exchange);
}

static void on_fresh(struct kube_call *call, bool fresh)
{
    struct kube_watch *w = call->handler.watch;
    w->begins->request.key = w->begins->scope.key;
    w->begins->request.range_end = w->begins->scope.range_end;
    w->begins->request.serializable = w->begins->scope.revision_given; /* not older than that */
    if (fresh)
        kube_call_range(call, &w->begins->request, on_range);
    else
        fail_later(w, &call->status);
}

/* Jittered by a tenth, so that watches that began together are not all woken together; the last
 * bookmark comes shortly before the deadline. */
static void set_bookmark(struct kube_watch *w)
{
    int64_t now_ns = loop_now_ns(w->api->loop);
    int64_t last_ns = w->deadline_ns - LAST_BOOKMARK_NS;
    int64_t next_ns =
        now_ns + random_between(&w->api->random, BOOKMARK_NS / 10 * 9, BOOKMARK_NS / 10 * 11);
    w->reads = false;
    if (now_ns < last_ns)
        loop_timer_set(w->api->loop, &w->bookmark, next_ns < last_ns ? next_ns : last_ns);
}

/* Initial events pin the store while they are sent: a client that has read none of them since the
 * last bookmark is disconnected, and so is one that does not read the last events of a definition
 * that has changed. Near the deadline the deadline does that. */
static void on_bookmark(struct timer *timer)
{
    struct kube_watch *w = CONTAINER_OF(timer, struct kube_watch, bookmark);
    bool last = loop_now_ns(w->api->loop) >= w->deadline_ns - LAST_BOOKMARK_NS;
    bool pins = !last && (w->phase == WATCH_INITIAL || w->last);
    if (w->ending || (pins && !w->reads)) {
        http_abort(w->exchange);
        return;
    }
    set_bookmark(w);
    w->bookmark_due = w->bookmarks && w->phase == WATCH_LIVE;
    if (w->bookmark_due)
        http_wake(w->exchange);
}

static void on_leave(struct http_exchange *x)
{
    struct kube_watch *w =
        CONTAINER_OF((struct kube_life *)http_exchange_user(x), struct kube_watch, life);
    begin_ending(w);
    http_wake(x);
}

/* The last bookmark was sent before the deadline, or there is no time for one. */
static void on_deadline(struct http_exchange *x)
{
    on_leave(x);
    CONTAINER_OF((struct kube_life *)http_exchange_user(x), struct kube_watch, life)->bookmark_due =
        false;
}

/* The definition has changed or is gone: the client must watch again. Events up to now are sent
 * first, because without a definition the client could not learn of them by another watch. */
static void on_changed(void *ctx)
{
    struct kube_watch *w = ctx;
    struct engine_status now;
    engine_status_get(w->api->shard, &now);
    if (!w->exchange || w->ending || w->last)
        return;
    if (w->phase != WATCH_LIVE) {
        on_leave(w->exchange);
        return;
    }
    w->last = now.revision;
    set_bookmark(w);
    http_wake(w->exchange);
}

static bool wants_initial(const struct kube_watch *w)
{
    const struct kube_query *query = &w->call->query;
    if (query->send_initial_events_given)
        return query->send_initial_events;
    return w->requested == 0;
}

static void begin_answer(struct kube_watch *w)
{
    struct http_exchange *x = w->exchange;
    int64_t seconds = w->call->query.timeout_s;
    if (seconds <= 0)
        seconds = random_between(&w->api->random, MIN_TIMEOUT_S, 2 * MIN_TIMEOUT_S - 1);
    if (seconds > INT32_MAX)
        seconds = INT32_MAX;
    kube_call_begin(w->call, 200,
                    w->protobuf ? SLICE_LITERAL("application/vnd.kubernetes.protobuf;stream=watch")
                                : SLICE_LITERAL("application/json"));
    http_set_source(x, &w->source);
    w->deadline_ns = loop_now_ns(w->api->loop) + seconds * NS_PER_S;
    http_set_deadline(x, http_exchange_now(x) + seconds * NS_PER_S, on_deadline);
    set_bookmark(w);
    http_park(x, on_leave);
}

/* Whether the hub accepts another watch: checked before the answer begins, so that its code can
 * report it. With initial events the final cursor is opened later, at the revision of the range. */
static bool has_room(struct kube_watch *w, bool initial)
{
    if (!open_cursor(w, w->requested && !initial ? w->requested + 1 : 0, &w->call->status))
        return false;
    if (initial) {
        watch_cursor_free(w->cursor);
        w->cursor = NULL;
    }
    return true;
}

static void begin(struct kube_watch *w)
{
    struct kube_call *call = w->call;
    bool initial = wants_initial(w);
    w->begins->mark_end = initial && w->bookmarks;
    w->bookmark_revision = w->requested;
    if (!has_room(w, initial)) {
        kube_call_fail(call);
        return;
    }
    move(w, initial ? WATCH_WAITING : WATCH_LIVE);
    w->begun = true;
    kube_count(&w->api->counter, w->shaping.kind, KUBE_COUNT_WATCHES_BEGUN, 1);
    begin_answer(w);
    if (initial)
        kube_revision_wait_start(&w->begins->fresh, call, w->requested, on_fresh);
    else
        end_beginning(w);
}

static struct kube_watch *watch_new(struct kube_call *call, struct beginning *begins)
{
    struct kube_watch *w = xcalloc(1, sizeof(*w));
    w->life.end = watch_end;
    w->source.fill = fill;
    w->exchange = call->exchange;
    w->api = call->api;
    w->call = call;
    w->begins = begins;
    kube_searcher_init(&w->searcher, w->exchange);
    w->bookmark.fn = on_bookmark;
    w->protobuf = call->accept.format == KUBE_PROTOBUF;
    w->bookmarks = call->query.allow_bookmarks;
    w->shaping = kube_shaping_of(call);
    w->requested = begins->scope.revision;
    struct kube_sender sender = kube_sender_of(call->api, call->request);
    w->peer_name = sender.peer_name;
    w->trusted = sender.trusted;
    w->selection = kube_selection_ref(begins->scope.selection);
    w->as_stored = !kube_watch_converts(w) && !kube_watch_kind_converts(w);
    if (call->kind->flags & KUBE_CUSTOM)
        w->use =
            kube_registry_use_new(call->api->registry, kube_custom_of(call->kind), on_changed, w);
    kube_watch_convert_init(w);
    call->handler.watch = w;
    kube_watches_add(w->api->watches, &w->in_api);
    kube_call_hand_over(call, &w->life);
    return w;
}

static void drop_scope(struct kube_call *call)
{
    kube_scope_fini(&call->handler.beginning->scope);
}

static void on_newest(struct engine_op *op)
{
    struct kube_call *call = kube_call_of_range(op);
    struct beginning *begins = call->handler.beginning;
    enum status status = op->status;
    if (status == ST_OK)
        engine_range_close(&call->range);
    if (!kube_call_succeeded(call, status))
        return;
    begins->scope.revision = op->revision;
    begin(watch_new(call, begins));
}

/* The answer to a negative timeout, as in Kubernetes. */
void kube_watch(struct kube_call *call)
{
    struct beginning *begins = arena_calloc(&call->arena, 1, sizeof(*begins));
    if (!begins) {
        kube_call_fail_engine(call, ST_NOMEM);
    } else if (!kube_scope_init(&begins->scope, call, true)) {
        kube_scope_fini(&begins->scope);
        kube_call_fail(call);
    } else if (call->query.timeout_s < 0) {
        /* The time of the watch is over before it begins, so it has no events. */
        kube_scope_fini(&begins->scope);
        kube_call_begin(call, 200, SLICE_LITERAL("application/json"));
        http_end(call->exchange);
    } else if (begins->scope.revision == 0 && call->query.send_initial_events_given &&
               !call->query.send_initial_events) {
        /* The client wants only what happens from now on, so nothing is read. */
        /* A watch that begins now begins after everything that was written before. The history may
         * not show all of that yet if it belongs to a cluster, so the newest revision is read
         * first. The answer begins afterwards: what is written after its head has arrived is an
         * event. */
        begins->request = (struct pb_range_request){
            .key = begins->scope.key, .range_end = begins->scope.range_end, .count_only = true};
        call->handler.beginning = begins;
        call->on_end = drop_scope;
        kube_call_range(call, &begins->request, on_newest);
    } else {
        begin(watch_new(call, begins));
    }
}
