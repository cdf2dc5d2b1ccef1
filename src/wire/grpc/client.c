#include "wire/grpc/client.h"

#include "wire/h2/error.h"

#include <stdarg.h>
#include <stdio.h>

enum {
    OUTPUT_KEPT = 4096,       /* bytes of an empty queue that stay allocated */
    MESSAGE_KEPT = 16 * 1024, /* the same for messages that arrive in pieces */
    TEXT_BYTES = 512,         /* length of the text of an outcome that is derived here */
};

static struct grpc_client_call *call_of(struct h2_stream *stream)
{
    return CONTAINER_OF(stream, struct grpc_client_call, stream);
}

/* ---- the end ---- */

void grpc_client_call_clear(struct grpc_client_call *call)
{
    assert(!grpc_client_call_is_open(call));
    buf_reset(&call->output, OUTPUT_KEPT);
    call->sent = 0;
    call->half_closed = false;
}

/* The owner may free the call or start it again, so nothing of it is used afterwards. */
static void finish(struct grpc_client_call *call, const struct grpc_outcome *outcome)
{
    grpc_head_unref(TAKE(call->request.head));
    call->session = NULL;
    call->prefix_len = 0;
    call->withheld = false;
    call->withheld_bytes = 0;
    call->sent = 0;
    buf_reset(&call->message, MESSAGE_KEPT);
    /* A replayable request keeps its messages, to send them again over another connection. */
    if (!call->request.replayable)
        grpc_client_call_clear(call);
    if (call->gone)
        *call->gone = true;
    call->gone = NULL;
    call->ops->on_end(call, outcome);
}

/* Ends the call from this side: on_close calls on_end with the outcome. */
static void fail(struct grpc_client_call *call, enum grpc_code code, const char *format, ...)
    PRINTF_LIKE(3, 4);
/* Ends the call after its stream was closed. */
static void finish_with(struct grpc_client_call *call, enum grpc_code code, const char *format, ...)
    PRINTF_LIKE(3, 4);

static struct slice format_text(char text[TEXT_BYTES], const char *format, va_list args)
{
    int len = vsnprintf(text, TEXT_BYTES, format, args);
    assert(len >= 0);
    return slice_of(text, size_min((size_t)len, TEXT_BYTES - 1));
}

static void fail_as(struct grpc_client_call *call, const struct grpc_outcome *outcome)
{
    /* on_close takes it before the reset returns. */
    call->failure = outcome;
    h2_stream_reset(&call->stream, H2_CANCEL);
}

static void fail(struct grpc_client_call *call, enum grpc_code code, const char *format, ...)
{
    char text[TEXT_BYTES];
    struct grpc_outcome outcome = {.code = code};
    va_list args;
    va_start(args, format);
    outcome.text = format_text(text, format, args);
    va_end(args);
    fail_as(call, &outcome);
}

/* ST_LIMIT or ST_NOMEM: the message cannot be received. */
static void fail_message(struct grpc_client_call *call, enum status reason)
{
    char text[TEXT_BYTES];
    struct grpc_outcome outcome = {.code = GRPC_RESOURCE_EXHAUSTED, .reason = reason};
    int len = snprintf(text, sizeof(text), "grpc: received message larger than max (%u vs. %u)",
                       call->message_len, call->request.receive_max);
    outcome.text =
        reason == ST_LIMIT ? slice_of(text, (size_t)len) : SLICE_LITERAL("out of memory");
    fail_as(call, &outcome);
}

static void refuse_message(struct grpc_client_call *call)
{
    struct grpc_outcome outcome = {.code = GRPC_RESOURCE_EXHAUSTED,
                                   .reason = ST_NOMEM,
                                   .text = SLICE_LITERAL("grpc: no room to receive a message")};
    fail_as(call, &outcome);
}

static void finish_with(struct grpc_client_call *call, enum grpc_code code, const char *format, ...)
{
    char text[TEXT_BYTES];
    struct grpc_outcome outcome = {.code = code, .unprocessed = call->stream.unprocessed};
    va_list args;
    va_start(args, format);
    outcome.text = format_text(text, format, args);
    va_end(args);
    finish(call, &outcome);
}

/* A note on remembered trailers: status 0 without a text. */
static const char plain_success;

static __attribute__((noinline)) void finish_by_trailers(struct grpc_client_call *call,
                                                         struct h2_headers *trailers)
{
    uint8_t room[GRPC_STATUS_ROOM];
    struct grpc_outcome outcome;
    if (!trailers) {
        finish_with(call, GRPC_INTERNAL, "the server ended the stream without trailers");
    } else if (!grpc_status_read(trailers, room, &outcome)) {
        finish_with(call, GRPC_UNKNOWN, "the server sent no grpc-status");
    } else if (outcome.code == GRPC_OK && call->prefix_len) {
        finish_with(call, GRPC_INTERNAL, "unexpected EOF");
    } else {
        /* Servers end most calls with the same block. The note lets the next one skip reading
         * it. */
        if (outcome.code == GRPC_OK && outcome.text.len == 0)
            trailers->note = &plain_success;
        finish(call, &outcome);
    }
}

static void finish_complete(struct grpc_client_call *call)
{
    static const struct grpc_outcome success = {.code = GRPC_OK, .from_peer = true};
    AUTO(h2_headers_unrefp) struct h2_headers *trailers = TAKE(call->trailers);
    if (LIKELY(trailers && trailers->note == &plain_success && !call->prefix_len))
        finish(call, &success);
    else
        finish_by_trailers(call, trailers);
}

static void finish_reset(struct grpc_client_call *call, enum h2_error error)
{
    /* A server that enforces the deadline may reset the stream before our own timer fires. The
     * caller gets the same error either way. */
    if (error == H2_CANCEL && h2_session_now(call->session) >= call->request.deadline_ns)
        finish_with(call, GRPC_DEADLINE_EXCEEDED, "context deadline exceeded");
    else
        finish_with(call, grpc_code_from_reset(error),
                    "stream terminated by RST_STREAM with error code: %s", h2_error_name(error));
}

static void on_close(struct h2_stream *stream, enum h2_error error)
{
    struct grpc_client_call *call = call_of(stream);
    const char *reason;
    if (call->failure) {
        /* The call was ended on this side. What the server has sent meanwhile does not count. */
        struct grpc_outcome outcome = *TAKE(call->failure);
        outcome.unprocessed = stream->unprocessed;
        h2_headers_unref(TAKE(call->trailers));
        finish(call, &outcome);
        return;
    }
    switch ((enum h2_ended_by)stream->ended_by) {
    case H2_ENDED_COMPLETE:
        finish_complete(call);
        break;
    case H2_ENDED_BY_PEER:
        finish_reset(call, error);
        break;
    case H2_ENDED_BY_FAULT:
        finish_with(call, GRPC_INTERNAL, "the server violated HTTP/2: %s", h2_error_name(error));
        break;
    case H2_ENDED_WITH_SESSION:
        (void)h2_session_error(call->session, &reason);
        finish_with(call, GRPC_UNAVAILABLE, "connection error: %s",
                    *reason ? reason : "the connection was closed");
        break;
    }
}

void grpc_client_call_end(struct grpc_client_call *call, enum grpc_code code, const char *text)
{
    if (grpc_client_call_is_open(call))
        fail(call, code, "%s", text);
}

void grpc_client_call_cancel(struct grpc_client_call *call)
{
    grpc_client_call_end(call, GRPC_CANCELLED, "context canceled");
}

/* ---- receiving ---- */

/* A note on remembered heads: a response of gRPC without an encoding. */
static const char plain_head;

/* "application/grpc", also with a subtype or parameters. */
static bool is_grpc(struct slice type)
{
    struct slice base = SLICE_LITERAL("application/grpc");
    if (!slice_has_prefix(type, base))
        return false;
    return type.len == base.len || type.ptr[base.len] == '+' || type.ptr[base.len] == ';';
}

static void check_head(struct grpc_client_call *call, struct h2_headers *headers)
{
    struct slice type = SLICE_EMPTY, encoding;
    bool typed = h2_headers_get(headers, SLICE_LITERAL("content-type"), &type);
    if (headers->status != 200) {
        fail(call, grpc_code_from_http(headers->status), "unexpected HTTP status %u",
             (unsigned)headers->status);
    } else if (!typed) {
        fail(call, GRPC_UNKNOWN, "the response has no content-type");
    } else if (!is_grpc(type)) {
        fail(call, GRPC_UNKNOWN, "unexpected content-type \"%.*s\"",
             SLICE_ARGS(slice_sub(type, 0, size_min(type.len, 128))));
    } else {
        call->encoded = h2_headers_get(headers, SLICE_LITERAL("grpc-encoding"), &encoding) &&
                        !slice_equal(encoding, SLICE_LITERAL("identity"));
        if (!call->encoded)
            headers->note = &plain_head;
    }
}

static void on_headers(struct h2_stream *stream, struct h2_headers *headers, bool ended)
{
    struct grpc_client_call *call = call_of(stream);
    struct slice status;
    /* A response without messages may consist of one block, which is head and trailers at once. */
    if (ended && (headers->kind == H2_RESPONSE_TRAILERS ||
                  h2_headers_get(headers, SLICE_LITERAL("grpc-status"), &status))) {
        h2_headers_ref(headers);
        call->trailers = headers;
    } else if (headers->note != &plain_head) {
        check_head(call, headers);
    }
}

/* The call may be over afterwards, and even be freed: then *gone is true. */
static void deliver(struct grpc_client_call *call, struct slice message, const bool *gone)
{
    struct buf pieces = call->message;
    call->message = (struct buf){0};
    call->prefix_len = 0;
    call->ops->on_message(call, message);
    /* The callback may have freed the call, or started it again with a buffer of its own. Otherwise
     * the buffer is reused. */
    if (*gone || call->message.capacity || pieces.capacity > MESSAGE_KEPT) {
        buf_fini(&pieces);
    } else {
        call->message = pieces;
        call->message.len = 0;
    }
}

static void check_prefix(struct grpc_client_call *call)
{
    if (call->message_len > call->request.receive_max)
        fail_message(call, ST_LIMIT);
    else if (call->prefix[0] == 1 && call->encoded)
        fail(call, GRPC_UNIMPLEMENTED, "grpc: the message is compressed");
    else if (call->prefix[0] == 1)
        fail(call, GRPC_INTERNAL, "grpc: compressed flag set with identity or empty encoding");
    else if (call->prefix[0])
        fail(call, GRPC_INTERNAL, "grpc: received unexpected payload format %u", call->prefix[0]);
}

/* The rest of the message may be sent at once, even if it is larger than the window. */
static void expect_rest(struct grpc_client_call *call, size_t received)
{
    if (call->message_len > received && !call->withheld)
        h2_stream_expect(&call->stream, call->message_len - received);
}

static struct slice take_prefix(struct grpc_client_call *call, struct slice bytes)
{
    size_t n = size_min(bytes.len, (size_t)GRPC_PREFIX_BYTES - call->prefix_len);
    memcpy(call->prefix + call->prefix_len, bytes.ptr, n);
    call->prefix_len = (uint8_t)(call->prefix_len + n);
    bytes = slice_sub(bytes, n, bytes.len - n);
    if (call->prefix_len < GRPC_PREFIX_BYTES)
        return bytes;
    call->message_len = h2_get32(call->prefix + 1);
    if (call->prefix[0] || call->message_len > call->request.receive_max)
        check_prefix(call);
    /* on_begin is called only for messages that have to be buffered. */
    else if (call->message_len > bytes.len && call->ops->on_begin &&
             !call->ops->on_begin(call, call->message_len))
        refuse_message(call);
    else
        expect_rest(call, bytes.len);
    return bytes;
}

static struct slice take_body(struct grpc_client_call *call, struct slice bytes, const bool *gone)
{
    size_t n = size_min(bytes.len, call->message_len - call->message.len);
    struct slice piece = slice_sub(bytes, 0, n);
    if (n == call->message_len)
        deliver(call, piece, gone);
    else if (buf_append(&call->message, piece) != ST_OK)
        fail_message(call, ST_NOMEM);
    else if (call->message.len == call->message_len)
        deliver(call, buf_slice(&call->message), gone);
    return slice_sub(bytes, n, bytes.len - n);
}

static void on_data(struct h2_stream *stream, struct slice bytes)
{
    struct grpc_client_call *call = call_of(stream);
    bool gone = false;
    call->gone = &gone;
    if (call->withheld)
        call->withheld_bytes += (uint32_t)bytes.len;
    else
        h2_stream_consumed(stream, bytes.len);
    while (bytes.len && !gone) {
        if (call->prefix_len < GRPC_PREFIX_BYTES)
            bytes = take_prefix(call, bytes);
        /* An empty message has no bytes behind its prefix. */
        if (!gone && call->prefix_len == GRPC_PREFIX_BYTES && (bytes.len || !call->message_len))
            bytes = take_body(call, bytes, &gone);
    }
    if (!gone)
        call->gone = NULL;
}

void grpc_client_call_withhold(struct grpc_client_call *call, bool withhold)
{
    if (call->withheld == withhold)
        return;
    call->withheld = withhold;
    if (withhold || !grpc_client_call_is_open(call))
        return;
    size_t bytes = call->withheld_bytes;
    call->withheld_bytes = 0;
    h2_stream_consumed(&call->stream, bytes);
    /* The message that had begun was not given room while the call was withheld. */
    if (call->prefix_len == GRPC_PREFIX_BYTES)
        expect_rest(call, call->message.len);
}

/* ---- sending ---- */

size_t grpc_client_call_queued_bytes(const struct grpc_client_call *call)
{
    return call->output.len - call->sent;
}

static void output_changed(struct grpc_client_call *call)
{
    if (grpc_client_call_is_open(call))
        h2_stream_ready(&call->stream);
}

/* Removes what was written, if that makes room without moving much. */
static void make_room(struct grpc_client_call *call)
{
    if (call->sent == 0 || call->request.replayable || call->sent < call->output.len / 2)
        return;
    buf_consume(&call->output, call->sent);
    call->sent = 0;
}

uint8_t *grpc_client_call_message(struct grpc_client_call *call, size_t len)
{
    assert(!call->half_closed);
    if (len > UINT32_MAX - GRPC_PREFIX_BYTES)
        return NULL;
    make_room(call);
    if (buf_reserve(&call->output, GRPC_PREFIX_BYTES + len) != ST_OK)
        return NULL;
    uint8_t *to = call->output.ptr + call->output.len;
    grpc_prefix_write(to, (uint32_t)len);
    call->output.len += GRPC_PREFIX_BYTES + len;
    output_changed(call);
    return to + GRPC_PREFIX_BYTES;
}

enum status grpc_client_call_send(struct grpc_client_call *call, struct slice message)
{
    uint8_t *to = grpc_client_call_message(call, message.len);
    if (!to)
        return ST_NOMEM;
    slice_copy(to, message);
    return ST_OK;
}

void grpc_client_call_half_close(struct grpc_client_call *call)
{
    if (call->half_closed)
        return;
    call->half_closed = true;
    output_changed(call);
}

static size_t write_head(struct h2_stream *stream, uint8_t *dst, size_t room)
{
    struct grpc_client_call *call = call_of(stream);
    const struct grpc_client_request *r = &call->request;
    if (room < grpc_head_bytes(r->head, r->path))
        return 0;
    int64_t timeout_ns = r->deadline_ns;
    /* The time that the call has waited for a free stream is gone; the server counts from now. */
    if (timeout_ns != INT64_MAX)
        timeout_ns -= h2_session_now(call->session);
    uint8_t *end = grpc_head_write(r->head, r->path, timeout_ns, dst);
    /* The head is sent once, and a watch may stay open for days. */
    grpc_head_unref(TAKE(call->request.head));
    return (size_t)(end - dst);
}

static size_t copy_output(struct grpc_client_call *call, uint8_t *dst, size_t room)
{
    size_t n = size_min(room, call->output.len - call->sent);
    slice_copy(dst, slice_sub(buf_slice(&call->output), call->sent, n));
    call->sent += n;
    if (call->sent == call->output.len && !call->request.replayable) {
        buf_reset(&call->output, OUTPUT_KEPT);
        call->sent = 0;
    }
    return n;
}

static enum h2_fill write_data(struct h2_stream *stream, uint8_t *dst, size_t room, size_t *ret_len)
{
    struct grpc_client_call *call = call_of(stream);
    size_t len = copy_output(call, dst, room);
    /* The owner may put more messages into the same frame. */
    if (call->ops->on_drained && len && !call->half_closed &&
        grpc_client_call_queued_bytes(call) == 0) {
        call->ops->on_drained(call);
        len += copy_output(call, dst + len, room - len);
    }
    *ret_len = len;
    if (grpc_client_call_queued_bytes(call))
        return H2_FILL_MORE;
    return call->half_closed ? H2_FILL_END : H2_FILL_PARKED;
}

static const struct h2_stream_ops stream_ops = {
    .on_headers = on_headers,
    .on_data = on_data,
    .on_close = on_close,
    .head = write_head,
    .data = write_data,
};

enum status grpc_client_call_start(struct grpc_client_call *call, struct h2_session *session,
                                   const struct grpc_client_request *request)
{
    assert(!grpc_client_call_is_open(call) && call->ops->on_message && call->ops->on_end);
    /* A server may end the whole connection over a block that is too large for it. */
    if (grpc_head_bytes(request->head, request->path) > H2_BLOCK_BYTES_MAX ||
        grpc_head_list_bytes(request->head, request->path) >
            h2_session_peer_header_list_bytes(session))
        return ST_LIMIT;
    call->stream.ops = &stream_ops;
    call->request = *request;
    call->session = session;
    call->encoded = false;
    enum status status = h2_session_open(session, &call->stream);
    if (status == ST_OK) {
        grpc_head_ref(request->head);
    } else {
        call->request.head = NULL;
        call->session = NULL;
    }
    return status;
}

void grpc_client_call_fini(struct grpc_client_call *call)
{
    assert(!grpc_client_call_is_open(call));
    buf_fini(&call->output);
    buf_fini(&call->message);
}

void grpc_client_call_check(const struct grpc_client_call *call)
{
    assert(call->sent <= call->output.len);
    assert(call->prefix_len <= GRPC_PREFIX_BYTES);
    assert(!call->failure);
    assert(!call->withheld_bytes || call->withheld);
    if (!grpc_client_call_is_open(call)) {
        assert(!call->request.head && !call->trailers && !call->prefix_len && !call->message.len);
        return;
    }
    assert(call->stream.session == call->session);
    assert(!call->stream.head_sent == (call->request.head != NULL));
    assert(call->message.len == 0 || call->message.len < call->message_len);
    assert(!call->message.len || call->prefix_len == GRPC_PREFIX_BYTES);
}
