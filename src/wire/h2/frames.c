/* Handles all frames other than DATA. Every check ends with the error code that RFC 9113 requires.
 */
#include "wire/h2/session_private.h"

enum {
    STREAM_BYTES = 1280, /* approximate size of a call with its first bytes of memory */
    STREAMS_BYTES_FREE = 4096,
    STREAMS_BYTES_STEP = 16 * 1024,   /* charged in advance while calls are in progress */
    STREAMS_BYTES_ANYWAY = 16 * 1024, /* so that a refusal can be sent as a gRPC status */
};

static void fail(struct h2_session *s, enum h2_error code, const char *reason)
{
    h2_session_fail(s, code, reason);
}

bool h2_is_idle(const struct h2_session *s, uint32_t id)
{
    if (h2_is_client(s))
        return h2_client_is_idle(s, id);
    return id % 2 == 0 || id > s->last_id;
}

/* ---- opening streams ---- */

/* The stream has its ops; the table has room. */
static ALWAYS_INLINE void attach(struct h2_session *s, struct h2_stream *stream, uint32_t id)
{
    stream->session = s;
    stream->id = id;
    stream->send_window = (int32_t)s->peer_window;
    stream->recv_owed = 0;
    stream->place = H2_NOWHERE;
    stream->head_sent = stream->body_ended = stream->remote_closed = false;
    list_push_back(&s->open, &stream->in_open);
    if (!stream->bulk)
        s->open_plain++;
    h2_table_add(&s->table, stream);
}

/* Ids of a client rise on the wire, because every opened stream joins the end of the same list,
 * which it leaves only after its head was sent. */
enum status h2_session_open(struct h2_session *s, struct h2_stream *stream)
{
    assert(h2_is_client(s) && stream->ops->on_headers && !stream->ops->trailers && !stream->bulk);
    if (s->phase != H2_OPEN || s->next_id > H2_STREAM_ID_MAX)
        return ST_CLOSED;
    if (!h2_client_has_room(s)) {
        s->exit_work |= H2_ANNOUNCE_ROOM;
        return ST_AGAIN;
    }
    TRY(h2_table_reserve(&s->table));
    stream->local_closed = stream->answered = stream->unprocessed = false;
    stream->ended_by = H2_ENDED_COMPLETE;
    stream->recv_window = -1;
    stream->body_left = -1;
    stream->headers_bytes = 0;
    attach(s, stream, s->next_id);
    s->next_id += 2;
    h2_stream_ready(stream);
    return ST_OK;
}

/* ---- header blocks ---- */

static struct h2_stream *stream_open(struct h2_session *s, uint32_t id, struct h2_headers *headers)
{
    if (h2_table_reserve(&s->table) != ST_OK)
        return NULL;
    struct h2_stream *stream = s->ops->on_open(s->owner, headers, s->now_ns);
    if (!stream)
        return NULL;
    bool ready = stream->place == H2_READY;
    uint32_t window = s->limits->stream_window;
    if (!s->settings_acked && window < H2_WINDOW_DEFAULT)
        window = H2_WINDOW_DEFAULT; /* the peer does not know our setting yet */
    stream->recv_window = (int32_t)window;
    stream->body_left = headers->content_length;
    stream->headers_bytes = headers->bytes;
    s->headers_bytes += headers->bytes;
    attach(s, stream, id);
    if (ready)
        h2_stream_ready(stream);
    return stream;
}

/* Memory of open streams with their headers. Few of them are not worth counting. */
static size_t streams_bytes(size_t streams, size_t headers_bytes)
{
    size_t bytes = streams * STREAM_BYTES + headers_bytes;
    return bytes > STREAMS_BYTES_FREE ? bytes : 0;
}

static bool streams_charge(struct h2_session *s, size_t headers_bytes)
{
    size_t bytes = streams_bytes(s->table.count + 1, s->headers_bytes + headers_bytes);
    if (LIKELY(bytes <= s->streams_charged))
        return true;
    size_t least = bytes - s->streams_charged;
    size_t more = account_charge_up_to(s->account, least, least + STREAMS_BYTES_STEP);
    if (more == 0 && bytes <= STREAMS_BYTES_ANYWAY) {
        account_charge_anyway(s->account, least);
        more = least;
    }
    s->streams_charged += more;
    return more > 0;
}

void h2_streams_discharge(struct h2_session *s)
{
    size_t bytes = streams_bytes(s->table.count, s->headers_bytes);
    if (s->streams_charged == 0 ||
        (s->table.count > 0 && s->streams_charged <= bytes + 2 * STREAMS_BYTES_STEP))
        return;
    account_release(s->account, s->streams_charged - bytes);
    s->streams_charged = bytes;
}

/* A header that is in the table can be sent again with one byte, but is held completely. */
static bool has_room(struct h2_session *s, const struct h2_headers *headers)
{
    return s->table.count < s->limits->streams_max &&
           s->headers_bytes + headers->bytes <= s->limits->headers_bytes_max &&
           streams_charge(s, headers->bytes);
}

/* grpc-go resets a call with too many header fields, net/http answers a request with 431. */
static void request_too_large(struct h2_session *s, uint32_t id, const struct h2_headers *headers)
{
    struct slice type;
    uint8_t block[64];
    if (h2_headers_get(headers, SLICE_LITERAL("content-type"), &type) &&
        slice_has_prefix(type, SLICE_LITERAL("application/grpc"))) {
        h2_stream_fault(s, id, NULL, H2_FRAME_SIZE_ERROR);
        return;
    }
    uint8_t *end = hpack_put_status(block, 431);
    end = hpack_put_literal(end, SLICE_LITERAL("content-length"), SLICE_LITERAL("0"));
    size_t len = (size_t)(end - block);
    uint8_t *payload =
        h2_control_put(s, len, H2_HEADERS, H2_FLAG_END_HEADERS | H2_FLAG_END_STREAM, id);
    if (payload)
        memcpy(payload, block, len);
    /* The client need not send its body, if there is one. This counts as a fault. */
    h2_stream_fault(s, id, NULL, H2_NO_ERROR);
}

static void request_begin(struct h2_session *s, uint32_t id, bool ends, struct h2_headers *headers)
{
    if (s->phase == H2_LEAVING) /* the client will read our GOAWAY and use another connection */
        return;
    if (headers->too_large) {
        request_too_large(s, id, headers);
        return;
    }
    enum h2_error refusal = H2_NO_ERROR;
    if (headers->malformed || (ends && headers->content_length > 0))
        refusal = H2_PROTOCOL_ERROR;
    else if (!has_room(s, headers))
        refusal = H2_REFUSED_STREAM;
    if (refusal != H2_NO_ERROR) {
        h2_stream_fault(s, id, NULL, refusal);
        return;
    }
    struct h2_stream *stream = stream_open(s, id, headers);
    if (!stream) {
        h2_stream_fault(s, id, NULL, H2_REFUSED_STREAM);
        return;
    }
    if (ends) {
        stream->remote_closed = true;
        stream->ops->on_end(stream);
    }
}

static void trailers_arrived(struct h2_session *s, struct h2_stream *stream, bool ends,
                             const struct h2_headers *headers)
{
    if (stream->remote_closed) {
        h2_stream_fault(s, stream->id, stream, H2_STREAM_CLOSED);
    } else if (!ends || headers->malformed || headers->too_large || stream->body_left > 0) {
        h2_stream_fault(s, stream->id, stream, H2_PROTOCOL_ERROR);
    } else {
        stream->remote_closed = true;
        stream->ops->on_end(stream);
    }
}

/* HEADERS for an id that was used before. Streams that we ended may still have frames on the way; a
 * client may have cancelled more of them than we remember. */
static void headers_for_closed(struct h2_session *s, uint32_t id)
{
    for (size_t i = 0; i < H2_CLOSED_KEPT; i++) {
        if (s->closed[i] == (id | H2_CLOSED_BY_US))
            return;
        if (s->closed[i] == id) {
            fail(s, H2_STREAM_CLOSED, "HEADERS on a closed stream");
            return;
        }
    }
    if (!h2_is_client(s))
        fail(s, H2_PROTOCOL_ERROR, "stream ids must rise");
    else if (h2_client_is_idle(s, id))
        fail(s, H2_PROTOCOL_ERROR, "HEADERS on an idle stream");
}

static enum h2_headers_kind kind_of(const struct h2_session *s, const struct h2_stream *stream)
{
    if (!h2_is_client(s))
        return H2_REQUEST_TRAILERS;
    return stream && !stream->answered ? H2_RESPONSE : H2_RESPONSE_TRAILERS;
}

static void block_complete(struct h2_session *s, uint32_t id, bool ends, struct slice block)
{
    struct h2_stream *stream = h2_table_find(&s->table, id);
    bool is_new = id > s->last_id;
    struct hpack_limits limits = {s->limits->header_list_bytes, s->limits->header_fields_max};
    AUTO(h2_headers_unrefp) struct h2_headers *headers = NULL;
    enum h2_headers_kind kind = is_new ? H2_REQUEST : kind_of(s, stream);
    enum status status = hpack_decode(&s->hpack, block, kind, &limits, &headers);
    if (status == ST_NOMEM) {
        fail(s, H2_INTERNAL_ERROR, "out of memory");
    } else if (status == ST_LIMIT) {
        fail(s, H2_ENHANCE_YOUR_CALM, "header list far too large");
    } else if (status != ST_OK) {
        fail(s, H2_COMPRESSION_ERROR, "broken header block");
    } else if (is_new) {
        s->last_id = id;
        request_begin(s, id, ends, headers);
    } else if (stream && h2_is_client(s)) {
        h2_client_headers(s, stream, ends, headers);
    } else if (stream) {
        trailers_arrived(s, stream, ends, headers);
    } else {
        headers_for_closed(s, id);
    }
}

/* Keeps a part of a header block for the CONTINUATION frames that follow. */
static void block_append(struct h2_session *s, struct slice piece)
{
    if (s->block.len + piece.len > 2 * (size_t)s->limits->header_list_bytes)
        fail(s, H2_ENHANCE_YOUR_CALM, "header block too large");
    else if (account_append(s->account, &s->block, piece) != ST_OK)
        fail(s, H2_INTERNAL_ERROR, "out of memory");
}

/* Removes padding and priority from the payload of HEADERS. */
static bool headers_strip(struct h2_session *s, struct slice *payload)
{
    const struct h2_frame *f = &s->frame;
    size_t front = 0, back = 0;
    if (f->flags & H2_FLAG_PADDED) {
        if (payload->len < 1) {
            fail(s, H2_FRAME_SIZE_ERROR, "padded HEADERS without a pad length");
            return false;
        }
        back = payload->ptr[0];
        front = 1;
    }
    if (f->flags & H2_FLAG_PRIORITY) {
        if (payload->len < front + 5) {
            fail(s, H2_FRAME_SIZE_ERROR, "HEADERS without its priority");
            return false;
        }
        if ((h2_get32(payload->ptr + front) & H2_STREAM_ID_MAX) == f->stream_id) {
            fail(s, H2_PROTOCOL_ERROR, "a stream depends on itself");
            return false;
        }
        front += 5;
    }
    if (front + back > payload->len) {
        fail(s, H2_PROTOCOL_ERROR, "padding longer than its frame");
        return false;
    }
    *payload = slice_sub(*payload, front, payload->len - front - back);
    return true;
}

static void handle_headers(struct h2_session *s, struct slice payload)
{
    const struct h2_frame *f = &s->frame;
    bool ends = f->flags & H2_FLAG_END_STREAM;
    if (f->stream_id % 2 == 0) {
        fail(s, H2_PROTOCOL_ERROR, "HEADERS on a stream no client can open");
        return;
    }
    if (!headers_strip(s, &payload))
        return;
    if (f->flags & H2_FLAG_END_HEADERS) {
        block_complete(s, f->stream_id, ends, payload);
        return;
    }
    s->block_id = f->stream_id;
    s->block_ends_stream = ends;
    s->continuations = 0;
    h2_frame_wait(s);
    block_append(s, payload);
}

static void handle_continuation(struct h2_session *s, struct slice payload)
{
    if (++s->continuations > s->limits->continuations_max) {
        fail(s, H2_ENHANCE_YOUR_CALM, "too many CONTINUATION frames");
        return;
    }
    block_append(s, payload);
    if (s->phase == H2_FAILED || !(s->frame.flags & H2_FLAG_END_HEADERS))
        return;
    uint32_t id = s->block_id;
    s->block_id = 0;
    s->frame_by_ns = INT64_MAX;
    block_complete(s, id, s->block_ends_stream, buf_slice(&s->block));
    account_buf_fini(s->account, &s->block);
}

/* ---- other frames ---- */

static void handle_priority(struct h2_session *s, struct slice payload)
{
    uint32_t id = s->frame.stream_id;
    if (id == 0)
        fail(s, H2_PROTOCOL_ERROR, "PRIORITY on stream 0");
    else if (payload.len != 5)
        fail(s, H2_FRAME_SIZE_ERROR, "PRIORITY is five bytes");
    else if ((h2_get32(payload.ptr) & H2_STREAM_ID_MAX) == id)
        fail(s, H2_PROTOCOL_ERROR, "a stream depends on itself");
}

static void handle_rst_stream(struct h2_session *s, struct slice payload)
{
    uint32_t id = s->frame.stream_id;
    if (payload.len != 4) {
        fail(s, H2_FRAME_SIZE_ERROR, "RST_STREAM is four bytes");
        return;
    }
    if (h2_is_idle(s, id)) {
        fail(s, H2_PROTOCOL_ERROR, "RST_STREAM on an idle stream");
        return;
    }
    struct h2_stream *stream = h2_table_find(&s->table, id);
    if (!stream)
        return;
    if (h2_is_client(s)) { /* not a flood: we opened each of these streams */
        h2_client_reset(stream, h2_get32(payload.ptr));
        return;
    }
    /* A stream whose answer has begun does not count as a flood: its peer has waited for us, and a
     * client has no other way to end a watch. */
    if (!stream->head_sent &&
        !rate_limit_take(&s->resets, s->limits->reset_burst, s->limits->reset_per_s, s->now_ns)) {
        fail(s, H2_ENHANCE_YOUR_CALM, "too many streams reset");
        return;
    }
    h2_stream_close(stream, H2_CANCEL, false);
}

static void peer_window_set(struct h2_session *s, uint32_t window)
{
    int64_t change = (int64_t)window - s->peer_window;
    s->peer_window = window;
    if (change == 0)
        return;
    struct h2_stream *stream;
    LIST_FOREACH (stream, &s->open, in_open) {
        if (stream->send_window + change > H2_WINDOW_MAX) {
            fail(s, H2_FLOW_CONTROL_ERROR, "SETTINGS overflow a window");
            return;
        }
        stream->send_window = (int32_t)(stream->send_window + change);
        h2_send_window_grown(stream);
    }
}

/* One setting. A new window is only stored, so that a frame with many of them adjusts the streams
 * once. */
static bool take_setting(struct h2_session *s, unsigned id, uint32_t value, uint32_t *window)
{
    switch (id) {
    case H2_SETTING_ENABLE_PUSH:
        if (value > (h2_is_client(s) ? 0 : 1))
            fail(s, H2_PROTOCOL_ERROR, "SETTINGS_ENABLE_PUSH has a forbidden value");
        break;
    case H2_SETTING_MAX_CONCURRENT_STREAMS:
        s->peer_streams_max = value;
        break;
    case H2_SETTING_MAX_HEADER_LIST_SIZE:
        s->peer_header_list_bytes = value;
        break;
    case H2_SETTING_INITIAL_WINDOW_SIZE:
        if (value > H2_WINDOW_MAX)
            fail(s, H2_FLOW_CONTROL_ERROR, "SETTINGS_INITIAL_WINDOW_SIZE too large");
        *window = value;
        break;
    case H2_SETTING_MAX_FRAME_SIZE:
        if (value < H2_FRAME_BYTES_MAX || value > 0xffffff)
            fail(s, H2_PROTOCOL_ERROR, "SETTINGS_MAX_FRAME_SIZE out of range");
        s->peer_frame_bytes = value;
        break;
    default: /* not relevant: we use no table at the peer */
        break;
    }
    return s->phase != H2_FAILED;
}

static void handle_settings(struct h2_session *s, struct slice payload)
{
    const struct h2_frame *f = &s->frame;
    bool ack = f->flags & H2_FLAG_ACK;
    if (f->stream_id != 0) {
        fail(s, H2_PROTOCOL_ERROR, "SETTINGS on a stream");
        return;
    }
    if (payload.len % 6 != 0 || (ack && payload.len)) {
        fail(s, H2_FRAME_SIZE_ERROR, "SETTINGS of a wrong length");
        return;
    }
    if (ack) {
        s->settings_acked = true;
        return;
    }
    if (!s->settings_seen)
        s->peer_streams_max = UINT32_MAX; /* unless the frame says otherwise */
    s->settings_seen = true;
    if (!rate_limit_take(&s->settings, s->limits->settings_burst, 1, s->now_ns)) {
        fail(s, H2_ENHANCE_YOUR_CALM, "too many SETTINGS");
        return;
    }
    uint32_t window = s->peer_window;
    for (size_t i = 0; i < payload.len; i += 6) {
        unsigned id = (unsigned)payload.ptr[i] << 8 | payload.ptr[i + 1];
        if (!take_setting(s, id, h2_get32(payload.ptr + i + 2), &window))
            return;
    }
    peer_window_set(s, window);
    if (s->phase != H2_FAILED)
        h2_control_put(s, 0, H2_SETTINGS, H2_FLAG_ACK, 0);
}

/* grpc-go's keepalive policy: a ping is allowed after we have sent something; otherwise a ping that
 * comes too early is a strike. gRPC clients slow down only if they read exactly this text. */
static void check_ping(struct h2_session *s)
{
    int64_t since = s->now_ns - s->last_ping_ns;
    int64_t wanted = s->table.count ? s->limits->ping_interval_ns : s->limits->ping_idle_ns;
    s->last_ping_ns = s->now_ns;
    if (s->ping_pardon) {
        s->ping_pardon = false;
        s->ping_strikes = 0;
        return;
    }
    if (since < wanted)
        s->ping_strikes++;
    if (s->ping_strikes > s->limits->ping_strikes)
        fail(s, H2_ENHANCE_YOUR_CALM, "too_many_pings");
}

static void handle_ping(struct h2_session *s, struct slice payload)
{
    if (s->frame.stream_id != 0) {
        fail(s, H2_PROTOCOL_ERROR, "PING on a stream");
        return;
    }
    if (payload.len != 8) {
        fail(s, H2_FRAME_SIZE_ERROR, "PING is eight bytes");
        return;
    }
    if (s->frame.flags & H2_FLAG_ACK) {
        if (slice_equal(payload, H2_DRAIN_PING))
            h2_session_leave(s);
        return;
    }
    uint8_t *answer = h2_control_put(s, 8, H2_PING, H2_FLAG_ACK, 0);
    if (!answer)
        return;
    slice_copy(answer, payload);
    /* A server of grpc-go sends pings all the time to estimate the bandwidth. A client answers all
     * of them, as long as the server reads the answers. */
    if (!h2_is_client(s))
        check_ping(s);
}

static void handle_goaway(struct h2_session *s, struct slice payload)
{
    if (s->frame.stream_id != 0)
        fail(s, H2_PROTOCOL_ERROR, "GOAWAY on a stream");
    else if (payload.len < 8)
        fail(s, H2_FRAME_SIZE_ERROR, "GOAWAY is at least eight bytes");
    else if (h2_is_client(s))
        h2_client_goaway(s, payload);
    /* A server opens no streams, so there is nothing to stop. */
}

static void session_window_grow(struct h2_session *s, uint32_t n)
{
    if (n == 0) {
        fail(s, H2_PROTOCOL_ERROR, "WINDOW_UPDATE of zero");
    } else if ((int64_t)s->send_window + n > H2_WINDOW_MAX) {
        fail(s, H2_FLOW_CONTROL_ERROR, "connection window overflows");
    } else {
        s->send_window += (int32_t)n;
        if (s->send_window > s->send_window_peak)
            s->send_window_peak = s->send_window;
    }
}

static void handle_window_update(struct h2_session *s, struct slice payload)
{
    uint32_t id = s->frame.stream_id;
    if (payload.len != 4) {
        fail(s, H2_FRAME_SIZE_ERROR, "WINDOW_UPDATE is four bytes");
        return;
    }
    uint32_t n = h2_get32(payload.ptr) & H2_STREAM_ID_MAX;
    if (id == 0) {
        session_window_grow(s, n);
        return;
    }
    if (h2_is_idle(s, id)) {
        fail(s, H2_PROTOCOL_ERROR, "WINDOW_UPDATE on an idle stream");
        return;
    }
    struct h2_stream *stream = h2_table_find(&s->table, id);
    if (!stream)
        return;
    if (n == 0) {
        h2_stream_fault(s, id, stream, H2_PROTOCOL_ERROR);
    } else if ((int64_t)stream->send_window + n > H2_WINDOW_MAX) {
        h2_stream_fault(s, id, stream, H2_FLOW_CONTROL_ERROR);
    } else {
        stream->send_window += (int32_t)n;
        h2_send_window_grown(stream);
    }
}

static void handle_push_promise(struct h2_session *s, struct slice payload)
{
    (void)payload;
    fail(s, H2_PROTOCOL_ERROR,
         h2_is_client(s) ? "the server pushes, although it must not" : "a client does not push");
}

void h2_handle_frame(struct h2_session *s, struct slice payload)
{
    static void (*const handlers[])(struct h2_session *, struct slice) = {
        [H2_HEADERS] = handle_headers,
        [H2_PRIORITY] = handle_priority,
        [H2_RST_STREAM] = handle_rst_stream,
        [H2_SETTINGS] = handle_settings,
        [H2_PUSH_PROMISE] = handle_push_promise,
        [H2_PING] = handle_ping,
        [H2_GOAWAY] = handle_goaway,
        [H2_WINDOW_UPDATE] = handle_window_update,
        [H2_CONTINUATION] = handle_continuation,
    };
    assert(s->frame.type < COUNT_OF(handlers) && handlers[s->frame.type]);
    handlers[s->frame.type](s, payload);
}
