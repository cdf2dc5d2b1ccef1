/*
 * GET with wait=true: the next event of a node or, with stream=true, all following events, read
 * from history. What a v3 client writes under the prefix is skipped.
 *
 * The deletion of a directory with its content is one event, that of the directory, and a client
 * that waits for a node in it gets this event. So there is also a cursor for each directory above
 * the node, which is used only for the end of that directory.
 */
#include "base/clock.h"
#include "base/memory/budget.h"
#include "base/xalloc.h"
#include "etcd/v2/call.h"
#include "etcd/v2/handlers.h"
#include "watch/cursor.h"

#include <inttypes.h>
#include <stdio.h>

#define WAIT_NS_MAX (5 * 60 * NS_PER_S) /* as in etcd; then the response ends without an event */

struct v2_wait {
    struct v2_call call; /* first */
    struct watch_cursor *cursor;
    /* Cursors of the directories above, the topmost first. */
    struct watch_cursor *above[V2_DEPTH_MAX];
    size_t above_count;
    int64_t began; /* the revision at the start; events up to it are in the past */
    struct http_source source;
    struct buf piece; /* an event not sent yet */
    size_t sent;
    size_t charged;         /* bytes of piece's capacity that are charged to the account */
    int64_t event_revision; /* revision of the latest event; one event is sent per revision */
    bool finished;
};

static void wait_fini(struct v2_call *call)
{
    struct v2_wait *wait = CONTAINER_OF(call, struct v2_wait, call);
    watch_cursor_free(wait->cursor);
    for (size_t i = 0; i < wait->above_count; i++)
        watch_cursor_free(wait->above[i]);
    buf_fini(&wait->piece);
    (void)!account_follow(call->arena.account, &wait->piece, &wait->charged);
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

/* Writes nothing for a change that is not an event of v2. */
static enum status write_event(struct v2_wait *wait, const struct watch_event *event,
                               int64_t revision)
{
    struct v2_node node, prev = {0};
    int64_t real_ns = clock_real_ns(clock_system());
    struct slice before = watch_cursor_prev(wait->cursor, event);
    bool has_prev = before.len && v2_node_read(before, &prev);
    if (revision == wait->event_revision || (uint64_t)revision < wait->call.form.wait_index ||
        v2_key_is_hidden(event->key, wait->call.key.key.len))
        return ST_OK;
    if (event->tombstone) {
        if (!has_prev)
            return ST_OK;
        wait->event_revision = revision;
        node = prev;
        node.modified = revision;
        /* Nothing in the store says why the key was deleted, so its expiry decides. */
        bool expired = prev.expires_ns && prev.expires_ns <= real_ns;
        return v2_event_json(&wait->piece, expired ? V2_EXPIRE : V2_DELETE, &node, &prev, real_ns);
    }
    if (!v2_node_read(event->field, &node) || node.action == V2_IMPLICIT || node.refresh)
        return ST_OK;
    wait->event_revision = revision;
    node.modified = revision;
    return v2_event_json(&wait->piece, (enum v2_action)node.action, &node, has_prev ? &prev : NULL,
                         real_ns);
}

/* -- Directories above -- */

/* Parses the deletion of a directory. False: the event is something else. */
static bool read_end_of_dir(struct watch_cursor *cursor, const struct watch_event *event,
                            struct v2_node *ret_dir)
{
    struct slice before = event->tombstone ? watch_cursor_prev(cursor, event) : SLICE_EMPTY;
    return before.len && v2_node_read(before, ret_dir) && ret_dir->dir;
}

/* The next deletion of a directory; revision 0: there is none for now. */
struct end_above {
    int64_t revision;
    struct v2_node dir;
};

/* Skips events that are not a deletion. ST_AGAIN: not known yet. */
static enum status next_end(struct watch_cursor *cursor, struct end_above *ret_end)
{
    const struct watch_event *event;
    enum status status;
    while ((status = watch_cursor_next(cursor, &event, &ret_end->revision)) == ST_OK) {
        if (read_end_of_dir(cursor, event, &ret_end->dir))
            return ST_OK;
        watch_cursor_take(cursor);
    }
    ret_end->revision = 0;
    return status == ST_END ? ST_OK : status;
}

/* The earliest deletion and, of those in one revision, the topmost: it is what the client deleted.
 */
static enum status first_end(struct v2_wait *wait, struct end_above *ret_end)
{
    *ret_end = (struct end_above){0};
    for (size_t i = 0; i < wait->above_count; i++) {
        struct end_above end;
        TRY(next_end(wait->above[i], &end));
        if (end.revision && (!ret_end->revision || end.revision < ret_end->revision))
            *ret_end = end;
    }
    return ST_OK;
}

static void take_ends(struct v2_wait *wait, int64_t revision)
{
    const struct watch_event *event;
    int64_t at;
    for (size_t i = 0; i < wait->above_count; i++) {
        if (watch_cursor_next(wait->above[i], &event, &at) == ST_OK && at == revision)
            watch_cursor_take(wait->above[i]);
    }
}

/* As in etcd, a deletion of a directory in the past is an event for all paths below it; one that
 * happens during the wait is an event only for nodes that existed. */
static enum status write_end(struct v2_wait *wait, const struct end_above *end, bool was_there)
{
    struct v2_node node = end->dir;
    if (end->revision == wait->event_revision ||
        (uint64_t)end->revision < wait->call.form.wait_index ||
        (end->revision > wait->began && !was_there))
        return ST_OK;
    wait->event_revision = node.modified = end->revision;
    return v2_event_json(&wait->piece, V2_DELETE, &node, &end->dir, clock_real_ns(clock_system()));
}

/* -- Events -- */

/* ST_END and ST_AGAIN: there is no event now, and the exchange will be woken. */
static enum status next_event(struct v2_wait *wait)
{
    const struct watch_event *event;
    int64_t revision;
    struct end_above end;
    TRY(first_end(wait, &end));
    enum status status = watch_cursor_next(wait->cursor, &event, &revision);
    if (status != ST_OK && (status != ST_END || !end.revision))
        return status;
    bool has_own = status == ST_OK;
    if (end.revision && (!has_own || end.revision <= revision)) {
        bool was_there = has_own && end.revision == revision && event->tombstone &&
                         slice_equal(event->key, wait->call.key.key);
        TRY(write_end(wait, &end, was_there));
        take_ends(wait, end.revision);
        return ST_OK;
    }
    TRY(write_event(wait, event, revision));
    watch_cursor_take(wait->cursor);
    return ST_OK;
}

static enum status next_piece(struct v2_wait *wait)
{
    wait->piece.len = wait->sent = 0;
    while (wait->piece.len == 0)
        TRY(next_event(wait));
    wait->finished = !wait->call.form.stream;
    return account_follow(wait->call.arena.account, &wait->piece, &wait->charged);
}

static enum http_fill fill(struct http_source *source, uint8_t *dst, size_t room, size_t *ret_len)
{
    struct v2_wait *wait = CONTAINER_OF(source, struct v2_wait, source);
    *ret_len = 0;
    if (v2_is_blocked(wait->call.api)) { /* the wait began before users of v3 were enabled */
        wait->finished = true;
        wait->piece.len = wait->sent = 0;
    }
    if (wait->sent == wait->piece.len && !wait->finished) {
        enum status status = next_piece(wait);
        if (status == ST_END || status == ST_AGAIN)
            return HTTP_FILL_PARKED;
        if (status == ST_NOMEM) {
            http_abort(wait->call.exchange);
            return HTTP_FILL_DONE;
        }
        if (status != ST_OK)
            wait->finished = true; /* compacted: the response ends here */
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

static bool open_cursors(struct v2_wait *wait, const struct watch_cursor_options *options)
{
    struct watch_hub *hub = engine_watch_hub(wait->call.api->shard);
    wait->cursor = watch_cursor_new(hub, options);
    struct watch_cursor_options above = *options;
    above.range_end = SLICE_EMPTY;
    for (size_t depth = 1; wait->cursor && depth < wait->call.key.depth; depth++) {
        above.key = v2_key_part(&wait->call.key, depth);
        struct watch_cursor *cursor = watch_cursor_new(hub, &above);
        if (!cursor)
            return false;
        wait->above[wait->above_count++] = cursor;
    }
    return wait->cursor;
}

void v2_wait_run(struct v2_call *call)
{
    struct v2_wait *wait = CONTAINER_OF(call, struct v2_wait, call);
    struct watch_cursor_options options = {.key = call->key.key, .wake = wake, .ctx = wait};
    struct engine_status now;
    engine_status_get(call->api->shard, &now);
    enum status status = call->form.recursive
                             ? v2_key_end(&call->arena, call->key.key, &options.range_end)
                             : v2_key_first_child(&call->arena, call->key.key, &options.range_end);
    if (status != ST_OK) {
        v2_fail_status(call, status);
        return;
    }
    if (call->form.wait_index)
        options.from = (int64_t)(call->form.wait_index & INT64_MAX);
    wait->began = now.revision;
    if (!open_cursors(wait, &options)) {
        v2_fail(call, V2_RAFT_INTERNAL, SLICE_LITERAL("too many watches on this server"), 0);
        return;
    }
    status = next_piece(wait);
    if (status == ST_COMPACTED) {
        fail_compacted(call, &now);
        return;
    }
    if (status == ST_NOMEM) {
        v2_fail_status(call, status);
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
