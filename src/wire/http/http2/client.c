#include "wire/http/http2/client.h"

#include "wire/h2/error.h"
#include "wire/h2/hpack.h"

#include <inttypes.h>
#include <stdio.h>

enum {
    BODY_KEPT = 4096, /* bytes of an empty buffer that stay allocated */
    REASON_BYTES = 128,
    /* Entries of HPACK's static table. */
    STATIC_AUTHORITY = 1,
    STATIC_METHOD = 2,
    STATIC_PATH = 4,
    STATIC_SCHEME = 6,
};

static struct http2_call *call_of(struct h2_stream *stream)
{
    return CONTAINER_OF(stream, struct http2_call, stream);
}

/* -- The end -- */

/* The owner may free the call or start it again, so nothing of it is used afterwards. */
static void finish(struct http2_call *call, enum status status, const char *reason)
{
    bool silent = call->silent;
    call->session = NULL;
    call->source = NULL;
    call->unprocessed = call->stream.unprocessed;
    call->withheld = call->silent = false;
    call->withheld_bytes = call->sent = 0;
    buf_reset(&call->head, 0);
    /* The call may be reused for the next request, so a small buffer stays. */
    buf_reset(&call->body, BODY_KEPT);
    if (call->gone)
        *call->gone = true;
    call->gone = NULL;
    if (!silent)
        call->ops->on_end(call, status, reason);
}

static void on_close(struct h2_stream *stream, enum h2_error error)
{
    struct http2_call *call = call_of(stream);
    char text[REASON_BYTES];
    const char *reason;
    switch ((enum h2_ended_by)stream->ended_by) {
    case H2_ENDED_COMPLETE:
        finish(call, ST_OK, "");
        break;
    case H2_ENDED_BY_PEER:
        snprintf(text, sizeof(text), "the server reset the stream %u: %s", stream->id,
                 h2_error_name(error));
        finish(call, ST_CLOSED, text);
        break;
    case H2_ENDED_BY_FAULT:
        snprintf(text, sizeof(text), "the server violated HTTP/2: %s", h2_error_name(error));
        finish(call, ST_MALFORMED, text);
        break;
    case H2_ENDED_WITH_SESSION:
        (void)h2_session_error(call->session, &reason);
        finish(call, h2_session_timed_out(call->session) ? ST_TIMEOUT : ST_CLOSED,
               *reason ? reason : "the connection was closed");
        break;
    }
}

void http2_client_cancel(struct http2_call *call)
{
    if (!call->session)
        return;
    call->silent = true;
    h2_stream_reset(&call->stream, H2_CANCEL); /* on_close is called */
}

/* -- Receiving -- */

static void on_headers(struct h2_stream *stream, struct h2_headers *headers, bool ended)
{
    struct http2_call *call = call_of(stream);
    bool gone = false;
    (void)ended;
    if (headers->kind == H2_RESPONSE_TRAILERS)
        return;
    /* The decoder verified that pseudo-headers come first. */
    size_t pseudo = 0;
    while (pseudo < headers->count && headers->fields[pseudo].name.len &&
           headers->fields[pseudo].name.ptr[0] == ':')
        pseudo++;
    call->answered = true;
    call->gone = &gone;
    call->ops->on_head(call, headers->status, headers->fields + pseudo, headers->count - pseudo);
    if (!gone)
        call->gone = NULL;
}

static void on_data(struct h2_stream *stream, struct slice bytes)
{
    struct http2_call *call = call_of(stream);
    bool gone = false;
    if (call->withheld)
        call->withheld_bytes += bytes.len;
    else
        h2_stream_consumed(stream, bytes.len);
    if (bytes.len == 0)
        return;
    /* The callback may cancel the call or free it. */
    call->gone = &gone;
    call->ops->on_body(call, bytes);
    if (!gone)
        call->gone = NULL;
}

void http2_client_withhold(struct http2_call *call, bool withhold)
{
    if (call->withheld == withhold || !call->session)
        return;
    call->withheld = withhold;
    if (!withhold && call->withheld_bytes)
        h2_stream_consumed(&call->stream, call->withheld_bytes);
    call->withheld_bytes = 0;
}

/* -- Sending -- */

static size_t write_head(struct h2_stream *stream, uint8_t *dst, size_t room)
{
    struct http2_call *call = call_of(stream);
    size_t len = call->head.len;
    if (room < len)
        return 0;
    slice_copy(dst, buf_slice(&call->head));
    buf_reset(&call->head, 0);
    return len;
}

static enum h2_fill pull_body(struct http2_call *call, uint8_t *dst, size_t room, size_t *ret_len)
{
    size_t n = 0;
    *ret_len = 0;
    if (room == 0) /* there is no window */
        return H2_FILL_MORE;
    if (call->source_left != HTTP2_UNKNOWN)
        room = size_min(room, (size_t)call->source_left);
    enum http_fill more = call->source->fill(call->source, dst, room, &n);
    assert(n <= room && (n > 0 || more != HTTP_FILL_MORE));
    *ret_len = n;
    if (call->source_left != HTTP2_UNKNOWN)
        call->source_left -= (int64_t)n;
    /* A body that is shorter than it was announced is refused by the server. */
    if (more == HTTP_FILL_DONE || call->source_left == 0) {
        call->source = NULL;
        return H2_FILL_END;
    }
    return more == HTTP_FILL_PARKED ? H2_FILL_PARKED : H2_FILL_MORE;
}

void http2_client_wake(struct http2_call *call)
{
    if (call->session && call->source)
        h2_stream_ready(&call->stream);
}

static enum h2_fill write_body(struct h2_stream *stream, uint8_t *dst, size_t room, size_t *ret_len)
{
    struct http2_call *call = call_of(stream);
    if (call->source)
        return pull_body(call, dst, room, ret_len);
    size_t n = size_min(room, call->body.len - call->sent);
    slice_copy(dst, slice_sub(buf_slice(&call->body), call->sent, n));
    call->sent += n;
    *ret_len = n;
    return call->sent == call->body.len ? H2_FILL_END : H2_FILL_MORE;
}

static const struct h2_stream_ops stream_ops = {
    .on_headers = on_headers,
    .on_data = on_data,
    .on_close = on_close,
    .head = write_head,
    .data = write_body,
};

/* -- The request -- */

static size_t head_bytes_max(const struct http2_client_request *request)
{
    size_t bytes = 128 + request->method.len + request->target.len + request->authority.len;
    for (size_t i = 0; i < request->field_count; i++)
        bytes += hpack_literal_bytes(request->fields[i].name, request->fields[i].value);
    return bytes;
}

static enum status write_block(struct buf *to, const struct http2_client_request *request)
{
    char length[24];
    size_t most = head_bytes_max(request);
    /* The block must fit into one HEADERS frame. */
    if (most > H2_BLOCK_BYTES_MAX)
        return ST_LIMIT;
    TRY(buf_reserve(to, most));
    uint8_t *end = to->ptr;
    end = hpack_put_named(end, STATIC_METHOD, request->method);
    end = hpack_put_named(end, STATIC_SCHEME,
                          request->secure ? SLICE_LITERAL("https") : SLICE_LITERAL("http"));
    end = hpack_put_named(end, STATIC_AUTHORITY, request->authority);
    end = hpack_put_named(end, STATIC_PATH, request->target);
    for (size_t i = 0; i < request->field_count; i++)
        end = hpack_put_lower(end, request->fields[i].name, request->fields[i].value);
    int64_t bytes = request->source ? request->source_bytes : (int64_t)request->body.len;
    if (bytes > 0 || (request->source && bytes == 0)) {
        int n = snprintf(length, sizeof(length), "%" PRId64, bytes);
        end = hpack_put_literal(end, SLICE_LITERAL("content-length"), slice_of(length, (size_t)n));
    }
    to->len = (size_t)(end - to->ptr);
    assert(to->len <= most);
    return ST_OK;
}

/* The block is decoded as a server would. *ret_list: what its limit applies to. */
static enum status check_block(struct slice block, size_t *ret_list)
{
    static const struct hpack_limits limits = {2 * H2_BLOCK_BYTES_MAX, 128};
    AUTO(h2_headers_unrefp) struct h2_headers *headers = NULL;
    struct hpack_decoder decoder;
    hpack_decoder_init(&decoder);
    enum status status = hpack_decode(&decoder, block, H2_REQUEST, &limits, &headers);
    hpack_decoder_fini(&decoder);
    TRY(status);
    if (headers->too_large)
        return ST_LIMIT;
    if (headers->malformed)
        return ST_INVALID;
    *ret_list = 0;
    for (size_t i = 0; i < headers->count; i++)
        *ret_list +=
            headers->fields[i].name.len + headers->fields[i].value.len + HPACK_ENTRY_OVERHEAD;
    return ST_OK;
}

static enum status prepare(struct h2_session *session, struct http2_call *call,
                           const struct http2_client_request *request)
{
    size_t list;
    TRY(write_block(&call->head, request));
    TRY(check_block(buf_slice(&call->head), &list));
    if (list > h2_session_peer_header_list_bytes(session))
        return ST_LIMIT;
    return buf_append(&call->body, request->body);
}

enum status http2_client_start(struct h2_session *session, struct http2_call *call,
                               const struct http2_client_request *request)
{
    assert(!call->session && call->ops->on_head && call->ops->on_body && call->ops->on_end);
    assert(!request->source || !request->body.len);
    bool pulls = request->source && request->source_bytes != 0;
    call->stream = (struct h2_stream){
        .ops = &stream_ops,
        .head_only = request->body.len == 0 && !pulls,
        .bodiless = slice_equal(request->method, SLICE_LITERAL("HEAD")),
    };
    call->source = pulls ? request->source : NULL;
    call->source_left = request->source_bytes;
    call->answered = call->unprocessed = false;
    enum status status = prepare(session, call, request);
    if (status == ST_OK)
        status = h2_session_open(session, &call->stream);
    if (status == ST_OK) {
        call->session = session;
    } else {
        call->source = NULL;
        buf_reset(&call->head, 0);
        buf_reset(&call->body, BODY_KEPT);
    }
    return status;
}

void http2_call_fini(struct http2_call *call)
{
    assert(!call->session);
    buf_fini(&call->head);
    buf_fini(&call->body);
}

void http2_call_check(const struct http2_call *call)
{
    assert(call->sent <= call->body.len);
    assert(!call->silent && !call->gone);
    assert(call->session || (!call->head.len && !call->body.len && !call->withheld));
    assert(!call->source || (call->session && call->source_left));
    assert(call->withheld || !call->withheld_bytes);
    assert(!call->session || !call->stream.head_sent == (call->head.len > 0));
}
