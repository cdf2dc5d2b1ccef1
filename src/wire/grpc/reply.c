/* Writes the answer of a call: head, messages, trailers. */
#include "base/turn.h"
#include "wire/grpc/call_private.h"
#include "wire/h2/hpack.h"

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
    stream->head_only = call->finished && !call->first_chunk;
    size_t need = HEAD_ROOM + (stream->head_only ? TRAILER_ROOM : 0);
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
    if (!call->first_chunk)
        len += fill_from_source(call, dst + len, room - len);
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
