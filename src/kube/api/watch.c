/*
 * A watch: what there is, if that was asked for, and then every change as it comes. It is pulled: a
 * client that does not read makes its cursor stand, and nothing is held for it.
 *
 *     waiting ─► initial ─► live ─► ending
 *        └──────────┴─────────┴──► failed: one ERROR event, then the end
 *
 * waiting: for a revision that is not there yet, 3 s; initial: ADDED for what a range has, while
 * the cursor stands behind its revision; live: what the cursor gives.
 */
#include "base/log.h"
#include "kube/api/fresh.h"
#include "kube/api/out.h"
#include "kube/api/shape.h"
#include "kube/api/sight.h"

#include <stdio.h>

enum {
    LOOKS_PER_TURN = 500, /* at changes that are not wanted */
    MIN_TIMEOUT_S = 1800, /* of who does not say how long; up to twice that, at random */
};
#define BOOKMARK_NS (60 * NS_PER_S)
#define FAREWELL_NS (10 * NS_PER_S) /* for a client that does not take the end */

enum phase { PHASE_WAITING, PHASE_INITIAL, PHASE_LIVE, PHASE_FAILED };

struct watch_state {
    struct http_source source;
    struct kube_call *call;
    struct kube_scope scope;
    struct kube_shaping shaping;
    struct kube_out out;
    struct watch_cursor *cursor; /* owned; NULL while waiting, and after a failure */
    struct kube_fresh fresh;     /* while waiting */
    struct timer timer;          /* goes on looking in the next turn */
    struct timer bookmark;       /* the next one, or the end of patience */
    struct pb_range_request request;
    int64_t told;  /* bookmarks never go behind this */
    uint64_t sent; /* bytes, for who looks whether anything moves */
    uint64_t sent_before;
    enum phase phase;
    bool range_open;
    bool in_event;           /* out has an object of the cursor's event */
    enum kube_change change; /* that is told of it */
    bool columns_told;       /* of a table */
    bool mark_end;           /* of the initial events, by a bookmark */
    bool bookmark_due;
    bool ending; /* its time is up, or the server's */
};

static struct loop *loop_of(const struct watch_state *w)
{
    return w->call->face->loop;
}

static void close_range(struct watch_state *w)
{
    if (w->range_open)
        engine_range_close(&w->call->range);
    w->range_open = false;
}

static void on_end(struct kube_call *call)
{
    struct watch_state *w = call->handler;
    kube_fresh_cancel(&w->fresh);
    loop_timer_cancel(loop_of(w), &w->timer);
    loop_timer_cancel(loop_of(w), &w->bookmark);
    close_range(w);
    watch_cursor_free(w->cursor);
    w->cursor = NULL;
    kube_out_fini(&w->out);
    kube_sights_forget(call->face->sights);
}

/* -- What is sent -- */

/* The status is told, and then it is over. */
static enum status fail(struct watch_state *w)
{
    close_range(w);
    watch_cursor_free(w->cursor);
    w->cursor = NULL;
    w->phase = PHASE_FAILED;
    TRY(kube_status_write_event(&w->call->status, &w->out.made));
    kube_out_set_made(&w->out);
    return ST_OK;
}

static enum status fail_engine(struct watch_state *w, enum status status)
{
    struct engine_status engine;
    engine_status_get(w->call->face->shard, &engine);
    if (status == ST_COMPACTED && w->scope.revision)
        kube_fail_expired(&w->call->status, w->scope.revision, engine.compact_revision);
    else
        kube_fail_engine(&w->call->status, status);
    return fail(w);
}

static enum status make_bookmark(struct watch_state *w, int64_t revision, bool initial_end)
{
    struct buf *to = &w->out.made;
    w->told = revision;
    TRY(buf_append_text(to, "{\"type\":\"BOOKMARK\",\"object\":"));
    TRY(kube_shape_bookmark(&w->shaping, revision, initial_end, to));
    TRY(buf_append_text(to, "}\n"));
    kube_out_set_made(&w->out);
    return ST_OK;
}

static enum status make_event(struct watch_state *w, enum kube_change change,
                              const struct kube_object *object, int64_t revision)
{
    struct slice head = kube_change_head(change), tail = kube_change_tail();
    struct buf *to = &w->out.made;
    if (w->shaping.shape == KUBE_WHOLE) {
        kube_out_set_object(&w->out, head, object, revision, false, tail);
        return ST_OK;
    }
    TRY(buf_append(to, head));
    TRY(kube_shape_single(&w->shaping, object, revision, !w->columns_told, to));
    TRY(buf_append(to, tail));
    w->columns_told = true;
    kube_out_set_made(&w->out);
    return ST_OK;
}

/* A value that is no object: told or passed over. */
static enum status meet_undecodable(struct watch_state *w, struct slice key, int64_t revision,
                                    bool deleted)
{
    bool skip = w->call->face->config->skip_undecodable;
    log_warn("a stored value is no object in JSON", LOG_SLICE("key", key),
             LOG_I64("revision", revision), LOG_BOOL("skipped", skip));
    if (skip)
        return ST_OK;
    if (deleted)
        kube_fail(&w->call->status, KUBE_STORAGE_READ_ERROR,
                  "saw a DELETED event, but object data is corrupt");
    else
        kube_fail(&w->call->status, KUBE_INTERNAL_ERROR,
                  "Internal error occurred: what is stored under %.*s is no object in JSON",
                  SLICE_ARGS(key));
    return fail(w);
}

static enum status look_at(const struct watch_state *w, struct slice field,
                           struct kube_object *ret_object)
{
    return kube_scope_look(&w->scope, w->shaping.shape, kube_kv_of(field).value, ret_object);
}

/* -- What there was -- */

static enum status finish_initial(struct watch_state *w)
{
    enum status status = w->call->range.op.status;
    int64_t revision = w->call->range.op.revision;
    close_range(w);
    if (status != ST_OK)
        return fail_engine(w, status);
    w->phase = PHASE_LIVE;
    w->told = revision;
    return w->mark_end ? make_bookmark(w, revision, true) : ST_OK;
}

static enum status step_initial(struct watch_state *w)
{
    struct slice field;
    struct kube_object object;
    if (!engine_range_next(&w->call->range, &field))
        return finish_initial(w);
    struct kube_kv kv = kube_kv_of(field);
    if (look_at(w, field, &object) != ST_OK)
        return meet_undecodable(w, kv.key, kv.mod_revision, false);
    if (!kube_scope_matches(&w->scope, &object))
        return ST_OK;
    return make_event(w, KUBE_CHANGE_ADDED, &object, kv.mod_revision);
}

/* -- What comes -- */

/* Sent from bytes that all watches of this turn share, or from where the object lies. */
static enum status send_event(struct watch_state *w, const struct watch_event *event,
                              int64_t revision)
{
    struct kube_sights *sights = w->call->face->sights;
    enum kube_shape shape = w->shaping.shape;
    struct kube_object object;
    struct slice wire;
    if (!kube_sights_object(sights, w->cursor, event, revision, &w->scope, shape, w->change,
                            &object))
        return ST_COMPACTED;
    if (shape != KUBE_WHOLE ||
        !kube_sights_wire(sights, w->cursor, event, revision, w->change, &object, &wire))
        return make_event(w, w->change, &object, revision);
    kube_out_set_shared(&w->out, wire);
    return ST_OK;
}

static enum status make_change(struct watch_state *w, const struct watch_event *event,
                               int64_t revision)
{
    w->change = kube_sights_change(w->call->face->sights, w->cursor, event, revision, &w->scope,
                                   w->shaping.shape);
    if (w->change == KUBE_CHANGE_UNDECODABLE) {
        watch_cursor_take(w->cursor);
        return meet_undecodable(w, event->key, revision, event->tombstone);
    }
    if (w->change != KUBE_CHANGE_NONE)
        TRY(send_event(w, event, revision));
    w->in_event = kube_out_borrows(&w->out);
    if (!w->in_event)
        watch_cursor_take(w->cursor);
    return ST_OK;
}

/* ST_END, ST_AGAIN: nothing for now; it will be woken. */
static enum status step_live(struct watch_state *w)
{
    const struct watch_event *event;
    int64_t revision;
    enum status status = watch_cursor_next(w->cursor, &event, &revision);
    bool bookmark = status == ST_END && w->bookmark_due;
    if (status == ST_END || w->ending)
        w->bookmark_due = false;
    if (bookmark && watch_cursor_revision(w->cursor) >= w->told)
        return make_bookmark(w, watch_cursor_revision(w->cursor), false);
    if (w->ending || status == ST_END || status == ST_AGAIN)
        return w->ending ? ST_OK : status;
    return status == ST_OK ? make_change(w, event, revision) : fail_engine(w, status);
}

/* In the middle of an event: where its bytes are in this turn. */
static enum status find_again(struct watch_state *w)
{
    const struct watch_event *event;
    int64_t revision;
    size_t at = w->out.at;
    TRY(watch_cursor_next(w->cursor, &event, &revision));
    kube_out_fini(&w->out);
    TRY(send_event(w, event, revision));
    w->out.at = at;
    return ST_OK;
}

static enum status step(struct watch_state *w)
{
    switch (w->phase) {
    case PHASE_WAITING:
        return ST_END;
    case PHASE_INITIAL:
        return step_initial(w);
    default:
        return step_live(w);
    }
}

static bool is_over(const struct watch_state *w)
{
    return w->phase == PHASE_FAILED || (w->ending && !w->bookmark_due);
}

static size_t send(struct watch_state *w, uint8_t *dst, size_t room)
{
    size_t n = kube_out_fill(&w->out, dst, room);
    if (w->in_event && kube_out_empty(&w->out)) {
        watch_cursor_take(w->cursor);
        w->in_event = false;
    }
    w->sent += n;
    return n;
}

static enum http_fill fill(struct http_source *source, uint8_t *dst, size_t room, size_t *ret_len)
{
    struct watch_state *w = CONTAINER_OF(source, struct watch_state, source);
    unsigned looks = LOOKS_PER_TURN;
    size_t n = 0;
    enum status status = w->in_event ? find_again(w) : ST_OK;
    while (n < room && status == ST_OK) {
        if (!kube_out_empty(&w->out)) {
            n += send(w, dst + n, room - n);
            continue;
        }
        *ret_len = n;
        if (is_over(w))
            return HTTP_FILL_DONE;
        if (!looks--) {
            loop_timer_set(loop_of(w), &w->timer, loop_now_ns(loop_of(w)));
            return HTTP_FILL_PARKED;
        }
        status = step(w);
    }
    *ret_len = n;
    if (status == ST_END || status == ST_AGAIN)
        return HTTP_FILL_PARKED;
    if (status == ST_OK)
        return HTTP_FILL_MORE;
    http_abort(w->call->exchange);
    return HTTP_FILL_DONE;
}

/* -- Life -- */

static void wake(void *ctx)
{
    struct watch_state *w = ctx;
    if (w->phase == PHASE_LIVE)
        http_wake(w->call->exchange);
}

static bool open_cursor(struct watch_state *w, int64_t from)
{
    w->cursor = watch_cursor_new(engine_watch_hub(w->call->face->shard),
                                 &(struct watch_cursor_options){
                                     .key = w->scope.key,
                                     .range_end = w->scope.range_end,
                                     .tag = w->scope.tag,
                                     .from = from,
                                     .wake = wake,
                                     .ctx = w,
                                 });
    if (w->cursor)
        return true;
    kube_fail(&w->call->status, KUBE_TOO_MANY_REQUESTS,
              "there are as many watches as this server takes");
    w->call->status.retry_after_s = 1;
    return false;
}

static void fail_later(struct watch_state *w)
{
    if (fail(w) == ST_OK)
        http_wake(w->call->exchange);
    else
        http_abort(w->call->exchange);
}

static void on_range(struct engine_op *op)
{
    struct kube_call *call = kube_call_of_range(op);
    struct watch_state *w = call->handler;
    w->range_open = op->status == ST_OK;
    if (!call->exchange)
        close_range(w);
    if (!kube_call_done(call))
        return;
    if (op->status != ST_OK) {
        kube_fail_engine(&call->status, op->status);
        fail_later(w);
    } else if (!open_cursor(w, op->revision + 1)) {
        fail_later(w);
    } else {
        w->phase = PHASE_INITIAL;
        http_wake(call->exchange);
    }
}

static void on_fresh(struct kube_call *call, bool fresh)
{
    struct watch_state *w = call->handler;
    w->request.key = w->scope.key;
    w->request.range_end = w->scope.range_end;
    if (fresh)
        kube_call_range(call, &w->request, on_range);
    else
        fail_later(w);
}

static void on_timer(struct timer *timer)
{
    http_wake(CONTAINER_OF(timer, struct watch_state, timer)->call->exchange);
}

/* Spread by a tenth, so that those that came together do not all come again together. */
static void set_bookmark(struct watch_state *w)
{
    int64_t wait_ns =
        random_between(&w->call->face->random, BOOKMARK_NS / 10 * 9, BOOKMARK_NS / 10 * 11);
    w->sent_before = w->sent;
    loop_timer_set(loop_of(w), &w->bookmark, loop_now_ns(loop_of(w)) + wait_ns);
}

/* What there was pins the store while it is sent: who takes nothing of it for so long is let go. */
static void on_bookmark(struct timer *timer)
{
    struct watch_state *w = CONTAINER_OF(timer, struct watch_state, bookmark);
    if (w->ending || (w->phase == PHASE_INITIAL && w->sent == w->sent_before)) {
        http_abort(w->call->exchange);
        return;
    }
    set_bookmark(w);
    w->bookmark_due = w->call->query.allow_bookmarks && w->phase == PHASE_LIVE;
    if (w->bookmark_due)
        http_wake(w->call->exchange);
}

static void on_leave(struct http_exchange *x)
{
    struct watch_state *w = ((struct kube_call *)http_exchange_user(x))->handler;
    w->ending = true;
    w->bookmark_due = w->call->query.allow_bookmarks && w->phase == PHASE_LIVE;
    loop_timer_set(loop_of(w), &w->bookmark, loop_now_ns(loop_of(w)) + FAREWELL_NS);
    http_wake(x);
}

static bool wants_initial(struct watch_state *w)
{
    const struct kube_query *query = &w->call->query;
    if (query->send_initial_events_given)
        return query->send_initial_events;
    return w->scope.revision == 0;
}

static void begin_answer(struct watch_state *w)
{
    struct kube_call *call = w->call;
    int64_t seconds = call->query.timeout_s;
    if (seconds <= 0)
        seconds = random_between(&call->face->random, MIN_TIMEOUT_S, 2 * MIN_TIMEOUT_S - 1);
    if (seconds > INT32_MAX)
        seconds = INT32_MAX;
    kube_call_begin(call, 200);
    w->source.fill = fill;
    http_set_source(call->exchange, &w->source);
    http_set_deadline(call->exchange, http_exchange_now(call->exchange) + seconds * NS_PER_S,
                      on_leave);
    set_bookmark(w);
    http_park(call->exchange, on_leave);
}

static bool begin(struct watch_state *w)
{
    bool initial = wants_initial(w);
    w->mark_end = initial && w->call->query.allow_bookmarks;
    w->told = w->scope.revision;
    if (!initial && !open_cursor(w, w->scope.revision ? w->scope.revision + 1 : 0))
        return false;
    w->phase = initial ? PHASE_WAITING : PHASE_LIVE;
    begin_answer(w);
    if (initial)
        kube_fresh_wait(&w->fresh, w->call, w->scope.revision, on_fresh);
    return true;
}

/* As Kubernetes answers who gives it less than no time. */
static void answer_nothing(struct kube_call *call)
{
    kube_call_begin(call, 200);
    http_end(call->exchange);
}

void kube_watch(struct kube_call *call)
{
    struct watch_state *w = arena_calloc(&call->arena, 1, sizeof(*w));
    if (!w) {
        kube_fail_engine(&call->status, ST_NOMEM);
        kube_call_fail(call);
        return;
    }
    w->call = call;
    w->timer.fn = on_timer;
    w->bookmark.fn = on_bookmark;
    w->shaping = kube_shaping_of(call);
    if (!kube_scope_init(&w->scope, call, true)) {
        kube_call_fail(call);
        return;
    }
    if (call->query.timeout_s < 0) {
        answer_nothing(call);
        return;
    }
    call->handler = w;
    call->on_end = on_end;
    if (!begin(w))
        kube_call_fail(call);
}
