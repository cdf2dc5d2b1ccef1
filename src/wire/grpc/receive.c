/* Makes messages from the bytes of DATA frames: a prefix of five bytes with the length, then the
 * message. */
#include "base/metric/turn.h"
#include "wire/grpc/call_private.h"

/* Whether the caller may send this message. Called before any of it is kept or decompressed. */
static bool admit(struct grpc_call *call)
{
    const struct grpc_guard *guard = call->row->guard;
    enum status status = guard ? guard->admit(guard->ctx, call, call->row) : ST_OK;
    if (status == ST_OK)
        return true;
    grpc_call_fail(call, status);
    return false;
}

/* The caller was admitted. */
static void call_service(struct grpc_call *call, struct slice message)
{
    turn_work("calling", call->row->path);
    grpc_call_count(call, GRPC_COUNT_RECEIVED, 1);
    grpc_call_count(call, GRPC_COUNT_RECEIVED_BYTES, message.len);
    call->known = true;
    call->method->on_message(call, call->row->service, message);
}

/* The only message of a call is kept as long as the call. */
static void deliver_only(struct grpc_call *call, struct slice message, bool borrowed)
{
    if (borrowed && arena_dup(&call->arena, message, &message) != ST_OK) {
        grpc_call_fail(call, ST_NOMEM);
        return;
    }
    call->delivered = true;
    call->request = message;
    grpc_call_add_held(call, message.len);
    /* grpc-go calls the handler of a server stream only when the client has half-closed, so
     * half_close_only does that. */
    if (!call->method->server_streams)
        call_service(call, message);
}

static void deliver_next(struct grpc_call *call, struct slice message)
{
    struct account *account = call->arena.account;
    /* The service may end the call while it reads the message, and ending it frees
     * call->message. */
    struct buf pieces = call->message;
    call->message = (struct buf){0};
    call_service(call, message);
    account_buf_fini(account, &pieces);
}

/* Replaces the compressed message by the decompressed one. False: the call has failed. */
static bool decompress(struct grpc_call *call, struct slice compressed)
{
    uint32_t max = call->server->limits->receive_bytes_max;
    struct account *account = call->arena.account;
    struct buf plain = {0};
    const char *reason = "";
    turn_work("decompressing a message of", call->row->path);
    grpc_gunzip *gunzip = grpc_services_gunzip(call->server->services);
    /* The limit applies to the decompressed message: a few compressed bytes may expand a
     * thousandfold. */
    enum status status = gunzip(compressed, max, account, &plain, &reason);
    account_buf_fini(account, &call->message);
    call->message = plain;
    if (status == ST_LIMIT)
        grpc_call_fail_format(call, GRPC_RESOURCE_EXHAUSTED,
                              "grpc: received message after decompression larger than max %u", max);
    else if (status == ST_MALFORMED)
        grpc_call_fail_format(call, GRPC_INTERNAL, "grpc: failed to decompress the message: %s",
                              reason);
    else if (status != ST_OK)
        grpc_call_fail(call, status);
    return !call->finished;
}

static void deliver(struct grpc_call *call, struct slice message, bool borrowed)
{
    if (!admit(call)) {
        grpc_call_count(call, GRPC_COUNT_RECEIVED, 1);
        return;
    }
    if (call->prefix[0] == 1) {
        if (!decompress(call, message))
            return;
        message = buf_slice(&call->message);
        borrowed = false;
    }
    call->prefix_len = 0;
    if (call->method->client_streams)
        deliver_next(call, message);
    else
        deliver_only(call, message, borrowed);
}

/* grpc-go ignores a second message of a unary call and refuses that of a server-streaming one. */
static void second_message(struct grpc_call *call)
{
    if (call->method->server_streams)
        grpc_call_fail_format(call, GRPC_INTERNAL,
                              "cardinality violation: received multiple request messages for "
                              "non-client-streaming RPC");
}

static bool is_gzip(const struct grpc_call *call)
{
    struct slice encoding;
    return h2_headers_get(call->headers, SLICE_LITERAL("grpc-encoding"), &encoding) &&
           slice_equal(encoding, SLICE_LITERAL("gzip"));
}

static bool check_prefix(struct grpc_call *call)
{
    uint32_t max = call->server->limits->receive_bytes_max;
    if (call->message_len > max)
        grpc_call_fail_format(call, GRPC_RESOURCE_EXHAUSTED,
                              "grpc: received message larger than max (%u vs. %u)",
                              call->message_len, max);
    else if (call->prefix[0] == 1 && !is_gzip(call))
        grpc_call_fail_format(call, GRPC_INTERNAL,
                              "grpc: compressed flag set with identity or empty encoding");
    else if (call->prefix[0] > 1)
        grpc_call_fail_format(call, GRPC_INTERNAL, "grpc: received unexpected payload format %u",
                              call->prefix[0]);
    return !call->finished;
}

void grpc_call_deliver(struct grpc_call *call, struct slice message)
{
    if (call->finished)
        return;
    /* The transport is not HTTP/2 here, so there is no prefix to read the length from. */
    call->message_len = (uint32_t)size_min(message.len, UINT32_MAX);
    if (call->delivered)
        second_message(call);
    else if (check_prefix(call))
        deliver(call, message, true);
}

static struct slice take_prefix(struct grpc_call *call, struct slice bytes)
{
    /* On a stream each message has its own time to arrive. That of a unary call counts from the
     * beginning of the call. */
    if (call->prefix_len == 0 && call->method->client_streams)
        call->message_ns = call->endpoint->now_ns;
    size_t n = size_min(bytes.len, (size_t)GRPC_PREFIX_BYTES - call->prefix_len);
    memcpy(call->prefix + call->prefix_len, bytes.ptr, n);
    call->prefix_len = (uint8_t)(call->prefix_len + n);
    bytes = slice_sub(bytes, n, bytes.len - n);
    if (call->prefix_len < GRPC_PREFIX_BYTES)
        return bytes;
    call->message_len = h2_get32(call->prefix + 1);
    /* The window is widened to the whole message only for a client that may send it: others could
     * make the server buffer large messages. */
    if (check_prefix(call) && call->message_len > bytes.len && admit(call))
        h2_stream_expect(&call->stream, call->message_len - bytes.len);
    return bytes;
}

/* Keeps a part of a message that arrives in several pieces. */
static bool keep_piece(struct grpc_call *call, struct slice piece)
{
    enum status status = account_append(call->arena.account, &call->message, piece);
    if (status != ST_OK)
        grpc_call_fail(call, status);
    return status == ST_OK;
}

static struct slice take_body(struct grpc_call *call, struct slice bytes)
{
    size_t n = size_min(bytes.len, call->message_len - call->message.len);
    struct slice piece = slice_sub(bytes, 0, n);
    /* The common case: the message is in one piece of input and is used there without a copy. */
    if (n == call->message_len) {
        deliver(call, piece, true);
    } else if (keep_piece(call, piece) && call->message.len == call->message_len) {
        deliver(call, buf_slice(&call->message), false);
    }
    return slice_sub(bytes, n, bytes.len - n);
}

void grpc_call_on_data(struct h2_stream *stream, struct slice bytes)
{
    struct grpc_call *call = grpc_call_of(stream);
    /* A paused call returns no window, so that the client stops after at most one window. */
    if (call->paused)
        call->withheld += (uint32_t)bytes.len;
    else
        h2_stream_consumed(stream, bytes.len);
    while (bytes.len && !call->finished && !call->delivered) {
        if (call->prefix_len < GRPC_PREFIX_BYTES)
            bytes = take_prefix(call, bytes);
        if (call->prefix_len == GRPC_PREFIX_BYTES && !call->finished)
            bytes = take_body(call, bytes);
    }
    if (bytes.len && call->delivered && !call->finished)
        second_message(call);
    /* A message has begun and must be complete in time. */
    if (call->prefix_len && !call->finished)
        grpc_call_time(call);
}

bool grpc_call_receives(const struct grpc_call *call)
{
    if (!call->method || call->finished)
        return false;
    return call->method->client_streams ? call->prefix_len > 0 : !call->known;
}

/* grpc-go treats a part of a prefix like the end of the stream. */
static bool is_cut_off(const struct grpc_call *call)
{
    return call->prefix_len == GRPC_PREFIX_BYTES;
}

static void half_close_only(struct grpc_call *call)
{
    bool streams = call->method->server_streams;
    if (call->delivered) {
        if (streams && admit(call))
            call_service(call, call->request);
    } else if (is_cut_off(call)) {
        grpc_call_fail_format(call, streams ? GRPC_INTERNAL : GRPC_UNKNOWN, "unexpected EOF");
    } else if (streams) {
        grpc_call_fail_format(call, GRPC_INTERNAL,
                              "cardinality violation: received no request message from "
                              "non-client-streaming RPC");
    } else {
        grpc_call_fail_format(call, GRPC_UNKNOWN, "EOF");
    }
}

void grpc_call_on_half_close(struct h2_stream *stream)
{
    struct grpc_call *call = grpc_call_of(stream);
    if (call->finished)
        return;
    if (!call->method->client_streams) {
        half_close_only(call);
    } else if (is_cut_off(call)) {
        grpc_call_fail_format(call, GRPC_INTERNAL, "unexpected EOF");
    } else {
        call->known = true;
        if (call->method->on_half_close)
            call->method->on_half_close(call, call->row->service);
    }
}
