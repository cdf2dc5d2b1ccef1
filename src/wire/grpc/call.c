#include "wire/grpc/call.h"

#include "base/metric/turn.h"
#include "wire/grpc/call_private.h"
#include "wire/h2/hpack.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- how a call begins and ends ---- */

_Static_assert(sizeof(struct grpc_call) + 256 <= GRPC_CALL_BYTES,
               "a call leaves its arena at least 256 bytes");
_Static_assert(sizeof(struct grpc_call) % ARENA_ALIGN == 0 &&
                   sizeof(struct grpc_call) + GRPC_PARKED_BYTES <= GRPC_PARKING_CALL_BYTES,
               "a call that parks needs no other block for its service's state");

static void call_free(struct grpc_call *call)
{
    struct grpc_server *server = call->server;
    assert(call->ended && !call->endpoint && call->holds == 0);
    h2_headers_unref(call->headers);
    account_buf_fini(call->arena.account, &call->message);
    arena_fini(&call->arena);
    server->calls--;
    /* Small blocks have another size, so they are not recycled. */
    if (call->small || server->recycled_count >= server->limits->recycled_calls_max) {
        free(call);
        return;
    }
    struct grpc_recycled *block = (struct grpc_recycled *)call;
    block->next = server->recycled;
    server->recycled = block;
    server->recycled_count++;
}

static void on_close(struct h2_stream *stream, enum h2_error code)
{
    (void)code;
    grpc_call_closed(grpc_call_of(stream));
}

static const struct h2_stream_ops stream_ops = {
    .on_data = grpc_call_on_data,
    .on_end = grpc_call_on_half_close,
    .on_close = on_close,
    .head = grpc_call_head,
    .data = grpc_call_data,
    .trailers = grpc_call_trailers,
};

bool grpc_is_call(const struct h2_stream *stream)
{
    return stream->ops == &stream_ops;
}

static struct grpc_call *call_alloc(struct grpc_server *server, bool small)
{
    if (small)
        return malloc(GRPC_PARKING_CALL_BYTES);
    struct grpc_recycled *block = server->recycled;
    if (!block)
        return malloc(GRPC_CALL_BYTES);
    server->recycled = block->next;
    server->recycled_count--;
    return (struct grpc_call *)block;
}

struct grpc_call *grpc_call_new(struct grpc_endpoint *endpoint, struct h2_headers *headers)
{
    struct grpc_server *server = endpoint->server;
    /* Known from an earlier call with the same header block; the first such call gets the full
     * size. */
    const struct grpc_row *known = headers->note;
    bool small = known && known->method->parks;
    struct grpc_call *call = call_alloc(server, small);
    if (!call)
        return NULL;
    *call = (struct grpc_call){
        .stream.ops = &stream_ops,
        .endpoint = endpoint,
        .server = server,
        .headers = headers,
        .http_status = 200,
        .deadline_ns = INT64_MAX,
        .progress_ns = endpoint->now_ns,
        .message_ns = endpoint->now_ns,
        .started_ns = endpoint->now_ns,
        .small = small,
    };
    h2_headers_ref(headers);
    list_init(&call->in_timed);
    size_t bytes = small ? GRPC_PARKING_CALL_BYTES : GRPC_CALL_BYTES;
    arena_init(&call->arena, call + 1, bytes - sizeof(*call), server->limits->arena_bytes_max);
    arena_charge_borrowed(&call->arena, endpoint->account);
    server->calls++;
    return call;
}

static void drop_output(struct grpc_call *call)
{
    /* The chunks of a unary call are in its arena, which frees them. */
    bool on_heap = call->method && call->method->server_streams;
    call->source = NULL;
    while (call->first_chunk) {
        struct grpc_chunk *chunk = call->first_chunk;
        call->first_chunk = chunk->next;
        call->endpoint->queued_bytes -= chunk->len - chunk->sent;
        if (on_heap)
            grpc_chunk_free(call, chunk);
    }
    call->last_chunk = NULL;
}

/* A client with many unanswered requests gets no more window for now. */
static void held_changed(struct grpc_endpoint *endpoint)
{
    size_t soft = endpoint->server->limits->held_bytes_soft;
    if (endpoint->session)
        h2_session_withhold(endpoint->session, endpoint->held_bytes > soft);
}

void grpc_call_add_held(struct grpc_call *call, size_t bytes)
{
    call->held = (uint32_t)bytes;
    call->endpoint->held_bytes += bytes;
    held_changed(call->endpoint);
}

static void drop_held(struct grpc_call *call)
{
    if (call->held == 0)
        return;
    call->endpoint->held_bytes -= call->held;
    call->held = 0;
    held_changed(call->endpoint);
}

/* Calls the service's on_end, once. */
static void notify_end(struct grpc_call *call)
{
    if (call->ended)
        return;
    call->ended = true;
    if (call->known && call->method->on_end)
        call->method->on_end(call, call->row->service);
}

/* An operation may complete outside the connection's turns, when endpoint->now_ns is old. */
static int64_t took_ns(const struct grpc_call *call)
{
    const struct grpc_timing *timing = call->row->timing;
    int64_t now = timing ? timing->now_ns(timing->now_ctx) : call->endpoint->now_ns;
    return now > call->started_ns ? now - call->started_ns : 0;
}

static void report_slow(const struct grpc_call *call, int64_t took)
{
    const struct grpc_timing *timing = call->row->timing;
    const struct grpc_method *method = call->method;
    if (UNLIKELY(timing && took > timing->slow_ns) && call->delivered && !method->client_streams &&
        !method->server_streams)
        timing->on_slow(timing->ctx, call, took);
}

void grpc_call_expire(struct grpc_call *call)
{
    drop_output(call);
    grpc_call_fail_text(call, GRPC_DEADLINE_EXCEEDED, SLICE_LITERAL("context deadline exceeded"));
    notify_end(call);
}

static void count_handled(const struct grpc_call *call, enum grpc_code code)
{
    const struct grpc_row *row = call->row;
    if (!row || (!row->counts && !row->timing))
        return;
    int64_t took = took_ns(call);
    /* A call with a source was reported when its source was set. */
    if (!call->sourced)
        report_slow(call, took);
    if (!row->counts)
        return;
    metric_add(row->counts, row->first_count + GRPC_COUNT_HANDLED + code, 1);
    metric_observe(row->counts, row->first_count + GRPC_COUNT_SECONDS, &grpc_seconds, took);
}

void grpc_call_closed(struct grpc_call *call)
{
    drop_output(call);
    /* The client went away before an answer, which grpc-go counts as Canceled. */
    if (!call->finished)
        count_handled(call, GRPC_CANCELLED);
    call->finished = true; /* on_end must not queue anything */
    drop_held(call);
    list_remove(&call->in_timed);
    /* From here on the connection may be freed at any time. */
    call->endpoint = NULL;
    notify_end(call);
    /* An operation may still refer to the call and completes later. Then the last release frees
     * it. */
    if (call->holds == 0)
        call_free(call);
    else
        arena_keep_account(&call->arena); /* the call outlives the connection */
}

void grpc_call_hold(struct grpc_call *call)
{
    call->holds++;
}

void grpc_call_release(struct grpc_call *call)
{
    assert(call->holds > 0);
    call->holds--;
    if (call->holds == 0 && call->ended && !call->endpoint)
        call_free(call);
}

/* ---- what a service reads of a call, and how it answers ---- */

struct arena *grpc_call_arena(struct grpc_call *call)
{
    return &call->arena;
}

void grpc_call_peer_address(const struct grpc_call *call, char text[GRPC_ADDRESS_BYTES])
{
    text[0] = 0;
    if (call->endpoint && call->endpoint->peer.address)
        call->endpoint->peer.address(call->endpoint->peer.owner, text);
}

struct wire_peer grpc_call_peer(const struct grpc_call *call)
{
    return call->endpoint ? call->endpoint->peer : (struct wire_peer){0};
}

struct slice grpc_call_path(const struct grpc_call *call)
{
    return call->row ? call->row->path : SLICE_EMPTY;
}

struct slice grpc_call_request(const struct grpc_call *call)
{
    return call->request;
}

bool grpc_call_response(const struct grpc_call *call, struct slice *ret_message)
{
    const struct grpc_chunk *chunk = call->first_chunk;
    if (!chunk || chunk->next || chunk->len < GRPC_PREFIX_BYTES)
        return false;
    *ret_message = slice_of(chunk->bytes + GRPC_PREFIX_BYTES, chunk->len - GRPC_PREFIX_BYTES);
    return true;
}

const char *grpc_call_peer_name(const struct grpc_call *call)
{
    return call->endpoint ? call->endpoint->peer_name : NULL;
}

int64_t grpc_call_now(const struct grpc_call *call)
{
    return call->endpoint ? call->endpoint->now_ns : 0;
}

int64_t grpc_call_deadline(const struct grpc_call *call)
{
    return call->deadline_ns;
}

void grpc_call_set_user(struct grpc_call *call, void *user)
{
    call->user = user;
}

void *grpc_call_user(const struct grpc_call *call)
{
    return call->user;
}

const void *grpc_call_row(const struct grpc_call *call)
{
    return call->method->row;
}

void grpc_call_set_caller(struct grpc_call *call, void *caller)
{
    call->caller = caller;
}

void *grpc_call_caller(const struct grpc_call *call)
{
    return call->caller;
}

bool grpc_call_metadata(const struct grpc_call *call, struct slice name, struct slice *ret_value)
{
    return h2_headers_get(call->headers, name, ret_value);
}

bool grpc_call_ended(const struct grpc_call *call)
{
    return call->ended;
}

/* The stall timer starts in the next turn, because now_ns may be the time of an earlier one. */
static inline void output_changed(struct grpc_call *call)
{
    call->progress_ns = 0;
    drop_held(call);
    if (LIKELY(call->endpoint->session))
        h2_stream_ready(&call->stream);
    else
        call->endpoint->on_output(call->endpoint->owner);
}

static struct grpc_chunk *chunk_new(struct grpc_call *call, size_t len)
{
    size_t bytes = sizeof(struct grpc_chunk) + len;
    struct grpc_chunk *chunk = NULL;
    /* A stream sends any number of messages. In the arena, which frees nothing before the end, they
     * would accumulate. */
    if (!call->method->server_streams) {
        chunk = arena_alloc(&call->arena, bytes);
    } else if (account_charge(call->arena.account, bytes)) {
        chunk = malloc(bytes);
        if (!chunk)
            account_release(call->arena.account, bytes);
    }
    if (chunk)
        *chunk = (struct grpc_chunk){.len = len};
    return chunk;
}

uint8_t *grpc_call_message(struct grpc_call *call, size_t len)
{
    if (call->finished || call->ended || len > UINT32_MAX - GRPC_PREFIX_BYTES)
        return NULL;
    assert(!call->source);
    struct grpc_endpoint *endpoint = call->endpoint;
    size_t bytes = GRPC_PREFIX_BYTES + len;
    struct grpc_chunk *chunk = chunk_new(call, bytes);
    if (!chunk)
        return NULL;
    if (call->last_chunk)
        call->last_chunk->next = chunk;
    else
        call->first_chunk = chunk;
    call->last_chunk = chunk;
    endpoint->queued_bytes += bytes;
    grpc_prefix_write(chunk->bytes, (uint32_t)len);
    grpc_call_count(call, GRPC_COUNT_SENT, 1);
    output_changed(call);
    return chunk->bytes + GRPC_PREFIX_BYTES;
}

void grpc_call_set_source(struct grpc_call *call, struct grpc_source *source)
{
    if (call->finished || call->ended)
        return;
    assert(!call->source);
    call->source = source;
    call->source_parked = false;
    /* The duration of the call ends here: from now on the client's reading takes time. */
    call->sourced = true;
    if (call->row && call->row->timing)
        report_slow(call, took_ns(call));
    output_changed(call);
}

void grpc_call_sent(struct grpc_call *call, uint64_t messages)
{
    grpc_call_count(call, GRPC_COUNT_SENT, messages);
}

void grpc_call_wake(struct grpc_call *call)
{
    if (!call->source || !call->source_parked)
        return;
    call->source_parked = false;
    output_changed(call);
}

void grpc_call_pause(struct grpc_call *call, bool paused)
{
    if (call->paused == paused || call->ended)
        return;
    call->paused = paused;
    if (paused || !call->endpoint || !call->endpoint->session)
        return;
    /* The window that was held back is granted, so that the client sends again. */
    size_t withheld = call->withheld;
    call->withheld = 0;
    h2_stream_consumed(&call->stream, withheld);
}

static void finish(struct grpc_call *call, enum grpc_code code, struct slice text)
{
    if (call->finished || call->ended)
        return;
    call->finished = true;
    /* Messages that are queued are still sent; a source that is not done is not asked any more. */
    call->source = NULL;
    if (!call->delivered) /* a part of a message that no service will see */
        account_buf_fini(call->arena.account, &call->message);
    call->code = (uint8_t)code;
    call->text = text;
    count_handled(call, code);
    output_changed(call);
}

void grpc_call_finish(struct grpc_call *call)
{
    finish(call, GRPC_OK, SLICE_EMPTY);
}

void grpc_call_fail(struct grpc_call *call, enum status status)
{
    finish(call, status_code(status), slice_from_text(status_text(status)));
}

void grpc_call_fail_text(struct grpc_call *call, enum grpc_code code, struct slice text)
{
    struct slice copy = SLICE_EMPTY;
    if (call->finished || call->ended)
        return;
    text.len = size_min(text.len, GRPC_TEXT_BYTES_MAX);
    if (arena_dup(&call->arena, text, &copy) != ST_OK)
        copy = SLICE_EMPTY; /* without memory, only the code is sent */
    finish(call, code, copy);
}

void grpc_call_fail_format(struct grpc_call *call, enum grpc_code code, const char *format, ...)
{
    char text[768];
    va_list args;
    va_start(args, format);
    int len = vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    assert(len >= 0);
    grpc_call_fail_text(call, code, slice_of(text, size_min((size_t)len, sizeof(text) - 1)));
}

/* ---- writing the answer ---- */

enum {
    CONTENT_TYPE_MAX = 64,
    HEAD_ROOM = 16 + 32 + CONTENT_TYPE_MAX, /* the longest status and content type */
    TRAILER_ROOM = 64 + GRPC_TEXT_BYTES_MAX,
};
_Static_assert(HEAD_ROOM + TRAILER_ROOM <= H2_BLOCK_BYTES_MAX, "blocks fit");

static const char content_type[] = "application/grpc";
enum { CONTENT_TYPE_LEN = sizeof(content_type) - 1 };

/* "application/grpc", or with the subtype of the request, such as "application/grpc+proto". */
static struct slice content_type_of(const struct grpc_call *call)
{
    struct slice asked;
    if (h2_headers_get(call->headers, SLICE_LITERAL("content-type"), &asked) &&
        asked.len > CONTENT_TYPE_LEN + 1 && asked.len <= CONTENT_TYPE_MAX &&
        asked.ptr[CONTENT_TYPE_LEN] == '+' &&
        slice_has_prefix(asked, SLICE_LITERAL("application/grpc")))
        return asked;
    return slice_of(content_type, CONTENT_TYPE_LEN);
}

static uint8_t *put_head(const struct grpc_call *call, uint8_t *dst)
{
    struct slice type = content_type_of(call);
    dst = hpack_put_status(dst, call->http_status);
    *dst++ = 0x0f; /* literal without indexing, name of static entry 31: content-type */
    *dst++ = 31 - 15;
    *dst++ = (uint8_t)type.len;
    slice_copy(dst, type);
    return dst + type.len;
}

/* Percent-encodes everything except printable ASCII other than '%', up to the limit. */
static size_t encode_text(struct slice text, uint8_t to[GRPC_TEXT_BYTES_MAX])
{
    static const char hex[] = "0123456789ABCDEF";
    size_t n = 0;
    for (size_t i = 0; i < text.len && n + 3 <= GRPC_TEXT_BYTES_MAX; i++) {
        uint8_t c = text.ptr[i];
        if (c >= ' ' && c <= '~' && c != '%') {
            to[n++] = c;
        } else {
            to[n++] = '%';
            to[n++] = (uint8_t)hex[c >> 4];
            to[n++] = (uint8_t)hex[c & 15];
        }
    }
    return n;
}

static uint8_t *put_status(const struct grpc_call *call, uint8_t *dst)
{
    char digits[2];
    size_t n = 0;
    if (call->code >= 10)
        digits[n++] = (char)('0' + call->code / 10);
    digits[n++] = (char)('0' + call->code % 10);
    /* Not indexed: we do not use the dynamic table of HPACK for sending. */
    dst = hpack_put_literal(dst, SLICE_LITERAL("grpc-status"), slice_of(digits, n));
    if (call->text.len) {
        uint8_t text[GRPC_TEXT_BYTES_MAX];
        size_t len = encode_text(call->text, text);
        dst = hpack_put_literal(dst, SLICE_LITERAL("grpc-message"), slice_of(text, len));
    }
    return dst;
}

size_t grpc_call_head(struct h2_stream *stream, uint8_t *dst, size_t room)
{
    struct grpc_call *call = grpc_call_of(stream);
    /* gRPC calls this Trailers-Only: without a message the status is a part of the first and only
     * header block. */
    stream->head_only = call->finished && !call->first_chunk;
    size_t need = HEAD_ROOM + (stream->head_only ? TRAILER_ROOM : 0);
    /* Without a text the status needs a few bytes. With one, the worst case is that every byte is
     * percent-encoded. */
    if (room < (call->text.len ? need : size_min(need, HEAD_ROOM + 64)))
        return 0;
    uint8_t *end = put_head(call, dst);
    if (stream->head_only)
        end = put_status(call, end);
    return (size_t)(end - dst);
}

size_t grpc_call_trailers(struct h2_stream *stream, uint8_t *dst, size_t room)
{
    const struct grpc_call *call = grpc_call_of(stream);
    if (room < (call->text.len ? TRAILER_ROOM : 64))
        return 0;
    return (size_t)(put_status(call, dst) - dst);
}

static void chunk_sent(struct grpc_call *call)
{
    struct grpc_chunk *chunk = call->first_chunk;
    call->first_chunk = chunk->next;
    if (!call->first_chunk)
        call->last_chunk = NULL;
    if (call->method->server_streams)
        grpc_chunk_free(call, chunk);
}

static size_t fill_from_chunks(struct grpc_call *call, uint8_t *dst, size_t room)
{
    size_t len = 0;
    while (call->first_chunk && len < room) {
        struct grpc_chunk *chunk = call->first_chunk;
        size_t n = size_min(room - len, chunk->len - chunk->sent);
        memcpy(dst + len, chunk->bytes + chunk->sent, n);
        chunk->sent += n;
        len += n;
        if (chunk->sent == chunk->len)
            chunk_sent(call);
    }
    call->endpoint->queued_bytes -= len;
    return len;
}

static size_t fill_from_source(struct grpc_call *call, uint8_t *dst, size_t room)
{
    size_t len = 0;
    if (call->source && call->row)
        turn_work("making the answer of", call->row->path);
    while (call->source && !call->source_parked && len < room) {
        size_t n = 0;
        enum grpc_fill more = call->source->fill(call->source, dst + len, room - len, &n);
        assert(n <= room - len);
        assert(n > 0 || more != GRPC_FILL_MORE || call->finished);
        len += n;
        if (more == GRPC_FILL_PARKED)
            call->source_parked = true;
        else if (more == GRPC_FILL_DONE)
            grpc_call_finish(call);
    }
    return len;
}

enum h2_fill grpc_call_data(struct h2_stream *stream, uint8_t *dst, size_t room, size_t *ret_len)
{
    struct grpc_call *call = grpc_call_of(stream);
    size_t len = fill_from_chunks(call, dst, room);
    /* A source writes directly into the output, but only behind the messages that were queued
     * before it was set. */
    if (!call->first_chunk)
        len += fill_from_source(call, dst + len, room - len);
    /* The stall timer measures how long the client has taken nothing. */
    if (len || !call->progress_ns)
        call->progress_ns = call->endpoint->now_ns;
    *ret_len = len;
    grpc_call_count(call, GRPC_COUNT_SENT_BYTES, len);
    if (call->first_chunk)
        return H2_FILL_MORE;
    if (call->finished)
        return H2_FILL_END;
    return call->source && !call->source_parked ? H2_FILL_MORE : H2_FILL_PARKED;
}
