/*
 * GET with wait: the next event of a node, or with stream one after the other, read from history
 * where it lies. What a v3 client writes into the prefix is passed over.
 */
#include "base/clock.h"
#include "base/xalloc.h"
#include "etcd/v2.h"
#include "watch/cursor.h"

#include <inttypes.h>
#include <stdio.h>

#define WAIT_NS_MAX (5 * 60 * NS_PER_S) /* as etcd: then the answer ends empty */

struct v2_wait {
    struct v2_call call; /* first */
    struct watch_cursor *cursor;
    struct http_source source;
    struct buf piece; /* an event not sent yet */
    size_t sent;
    int64_t told; /* the revision of the latest event: one is told of each */
    bool finished;
};

static void wait_fini(struct v2_call *call)
{
    struct v2_wait *wait = CONTAINER_OF(call, struct v2_wait, call);
    watch_cursor_free(wait->cursor);
    buf_fini(&wait->piece);
}

struct v2_call *v2_wait_new(void)
{
    struct v2_wait *wait = xcalloc(1, sizeof(*wait));
    wait->call.fini = wait_fini;
    return &wait->call;
}

static void wake(void *ctx)
{
    struct v2_wait *wait = ctx;
    http_wake(wait->call.exchange);
}

static void on_deadline(struct http_exchange *x)
{
    struct v2_wait *wait = CONTAINER_OF(http_exchange_user(x), struct v2_wait, call);
    wait->finished = true;
    http_wake(x);
}

/* A node of its own that is gone: by its time, if that had come. */
static enum v2_action end_of(const struct v2_node *prev, int64_t real_ns)
{
    return prev->expires_ns && prev->expires_ns <= real_ns ? V2_EXPIRE : V2_DELETE;
}

/* Nothing is written for what is no event of v2. */
static enum status write_event(struct v2_wait *wait, const struct watch_event *event,
                               int64_t revision)
{
    struct v2_node node, prev = {0};
    int64_t real_ns = clock_real_ns(clock_system());
    struct slice before = watch_cursor_prev(wait->cursor, event);
    bool has_prev = before.len && v2_node_read(before, &prev);
    if (revision == wait->told || (uint64_t)revision < wait->call.form.wait_index ||
        v2_key_is_hidden(event->key, wait->call.key.key.len))
        return ST_OK;
    if (event->tombstone) {
        if (!has_prev)
            return ST_OK;
        wait->told = revision;
        node = prev;
        node.modified = revision;
        return v2_event_json(&wait->piece, end_of(&prev, real_ns), &node, &prev, real_ns);
    }
    if (!v2_node_read(event->field, &node) || node.action == V2_UNTOLD || node.refresh)
        return ST_OK;
    wait->told = revision;
    return v2_event_json(&wait->piece, (enum v2_action)node.action, &node, has_prev ? &prev : NULL,
                         real_ns);
}

/* ST_END and ST_AGAIN: there is nothing, and a wake will come. */
static enum status next_piece(struct v2_wait *wait)
{
    const struct watch_event *event;
    int64_t revision;
    wait->piece.len = wait->sent = 0;
    while (wait->piece.len == 0) {
        TRY(watch_cursor_next(wait->cursor, &event, &revision));
        TRY(write_event(wait, event, revision));
        watch_cursor_take(wait->cursor);
    }
    wait->finished = !wait->call.form.stream;
    return ST_OK;
}

static enum http_fill fill(struct http_source *source, uint8_t *dst, size_t room, size_t *ret_len)
{
    struct v2_wait *wait = CONTAINER_OF(source, struct v2_wait, source);
    *ret_len = 0;
    if (v2_is_shut(wait->call.face)) { /* what has begun before */
        wait->finished = true;
        wait->piece.len = wait->sent = 0;
    }
    if (wait->sent == wait->piece.len && !wait->finished) {
        enum status status = next_piece(wait);
        if (status == ST_END || status == ST_AGAIN)
            return HTTP_FILL_PARKED;
        if (status != ST_OK)
            wait->finished = true; /* compacted: what was sent stands */
    }
    *ret_len = size_min(room, wait->piece.len - wait->sent);
    slice_copy(dst, slice_of(wait->piece.ptr + wait->sent, *ret_len));
    wait->sent += *ret_len;
    return wait->finished && wait->sent == wait->piece.len ? HTTP_FILL_DONE : HTTP_FILL_MORE;
}

static void fail_compacted(struct v2_call *call, const struct engine_status *status)
{
    char cause[96];
    snprintf(cause, sizeof(cause),
             "the requested history has been cleared [%" PRId64 "/%" PRIu64 "]",
             status->compact_revision + 1, call->form.wait_index);
    v2_fail(call, V2_EVENT_INDEX_CLEARED, slice_from_text(cause), status->revision);
}

void v2_wait_run(struct v2_call *call)
{
    struct v2_wait *wait = CONTAINER_OF(call, struct v2_wait, call);
    struct watch_cursor_options options = {.key = call->key.key, .wake = wake, .ctx = wait};
    struct engine_status now;
    engine_status_get(call->face->shard, &now);
    enum status status = call->form.recursive
                             ? v2_key_end(&call->arena, call->key.key, &options.range_end)
                             : v2_key_first_child(&call->arena, call->key.key, &options.range_end);
    if (status != ST_OK) {
        v2_fail_status(call, status);
        return;
    }
    if (call->form.wait_index)
        options.from = (int64_t)(call->form.wait_index & INT64_MAX);
    wait->cursor = watch_cursor_new(engine_watch_hub(call->face->shard), &options);
    if (!wait->cursor) {
        v2_fail(call, V2_RAFT_INTERNAL, SLICE_LITERAL("too many watches on this server"), 0);
        return;
    }
    status = next_piece(wait);
    if (status == ST_COMPACTED) {
        fail_compacted(call, &now);
        return;
    }
    if (!v2_add_index(call, now.revision))
        return;
    wait->source.fill = fill;
    http_park(call->exchange, NULL);
    http_set_deadline(call->exchange, clock_add(http_exchange_now(call->exchange), WAIT_NS_MAX),
                      on_deadline);
    http_begin(call->exchange, 200, SLICE_LITERAL("application/json"));
    http_set_source(call->exchange, &wait->source);
}
