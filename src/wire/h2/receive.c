/* Splits input into frames. The payload of DATA is passed on as it arrives, that of other frames
 * when it is complete. */
#include "wire/h2/session_private.h"

#ifdef VIGIL_SANITIZED
#define TO(reading) (1u << H2_READ_##reading)

/* Drawn in states.h. Checked only with sanitizers, because every frame moves several times. */
static const uint8_t reading_moves[] = {
    [H2_READ_PREFACE] = TO(HEAD),
    [H2_READ_HEAD] = TO(HEAD) | TO(PAYLOAD) | TO(PAD_LENGTH) | TO(DATA) | TO(SKIP),
    [H2_READ_PAYLOAD] = TO(HEAD),
    [H2_READ_PAD_LENGTH] = TO(DATA),
    [H2_READ_DATA] = TO(HEAD) | TO(SKIP),
    [H2_READ_SKIP] = TO(HEAD) | TO(SKIP),
};
#endif

static inline void reading_move(struct h2_session *s, enum h2_reading next)
{
#ifdef VIGIL_SANITIZED
    assert(reading_moves[s->reading] & (1u << next));
#endif
    s->reading = next;
}

static struct slice rest_of(struct slice bytes, size_t used)
{
    return slice_sub(bytes, used, bytes.len - used);
}

static struct slice read_preface(struct h2_session *s, struct slice bytes)
{
    struct slice preface = H2_PREFACE;
    size_t n = size_min(bytes.len, preface.len - s->head_len);
    if (memcmp(bytes.ptr, preface.ptr + s->head_len, n) != 0) {
        h2_session_fail(s, H2_PROTOCOL_ERROR, "not the HTTP/2 preface");
        return SLICE_EMPTY;
    }
    s->head_len = (uint8_t)(s->head_len + n);
    if (s->head_len == preface.len) {
        s->head_len = 0;
        reading_move(s, H2_READ_HEAD);
    }
    return rest_of(bytes, n);
}

static void skip(struct h2_session *s, uint32_t n)
{
    s->left = n;
    reading_move(s, n ? H2_READ_SKIP : H2_READ_HEAD);
    if (n)
        h2_frame_wait(s);
}

/* The last byte of a DATA frame's body was passed on. */
static void data_done(struct h2_session *s)
{
    struct h2_stream *stream = s->data_stream;
    s->data_stream = NULL;
    skip(s, s->padding);
    /* There is no stream if the frame belonged to one that had ended, or that was reset while the
     * frame arrived. */
    if (!stream || !(s->frame.flags & H2_FLAG_END_STREAM))
        return;
    /* The body is shorter than its content-length. */
    if (stream->body_left > 0) {
        h2_stream_fault(s, stream->id, stream, H2_PROTOCOL_ERROR);
        return;
    }
    if (UNLIKELY(h2_is_client(s))) {
        h2_client_ended(stream);
        return;
    }
    stream->remote_closed = true;
    stream->ops->on_end(stream);
}

static void data_begin(struct h2_session *s, uint32_t padding, uint32_t overhead)
{
    struct h2_stream *stream = s->data_stream;
    s->padding = padding;
    s->left = s->frame.len - padding - overhead;
    if (stream) {
        if (padding + overhead)
            h2_stream_consumed(stream, padding + overhead); /* it is not passed on */
        /* The body is longer than its content-length. */
        if (stream->body_left >= 0 && s->left > stream->body_left) {
            h2_stream_fault(s, stream->id, stream, H2_PROTOCOL_ERROR);
            s->data_stream = NULL;
        } else if (stream->body_left >= 0) {
            stream->body_left -= s->left;
        }
    }
    reading_move(s, H2_READ_DATA);
    if (s->left == 0)
        data_done(s);
}

static struct slice read_pad_length(struct h2_session *s, struct slice bytes)
{
    /* The length byte itself belongs to the frame, so padding of the frame's length is one byte too
     * long. */
    if (bytes.ptr[0] >= s->frame.len)
        h2_session_fail(s, H2_PROTOCOL_ERROR, "padding longer than its frame");
    else
        data_begin(s, bytes.ptr[0], 1);
    return rest_of(bytes, 1);
}

static struct slice read_data(struct h2_session *s, struct slice bytes)
{
    size_t n = size_min(bytes.len, s->left);
    s->left -= (uint32_t)n;
    if (s->data_stream)
        s->data_stream->ops->on_data(s->data_stream, slice_sub(bytes, 0, n));
    if (s->left == 0)
        data_done(s);
    return rest_of(bytes, n);
}

static struct slice read_skip(struct h2_session *s, struct slice bytes)
{
    size_t n = size_min(bytes.len, s->left);
    skip(s, s->left - (uint32_t)n);
    if (s->left == 0 && !s->block_id)
        s->frame_by_ns = INT64_MAX;
    return rest_of(bytes, n);
}

static bool was_closed(const struct h2_session *s, uint32_t id, bool *ret_by_us)
{
    for (size_t i = 0; i < H2_CLOSED_KEPT; i++) {
        if ((s->closed[i] & ~H2_CLOSED_BY_US) == id) {
            *ret_by_us = s->closed[i] & H2_CLOSED_BY_US;
            return true;
        }
    }
    return false;
}

/* DATA for a stream that is not open: it was never opened, it ended, or we ended it. */
static void data_without_stream(struct h2_session *s)
{
    uint32_t id = s->frame.stream_id;
    bool by_us = false;
    if (h2_is_idle(s, id))
        h2_session_fail(s, H2_PROTOCOL_ERROR, "DATA on an idle stream");
    /* The peer may have sent the frame before it read our reset, so it is dropped. The same applies
     * to a stream that ended too long ago to be remembered. */
    else if (was_closed(s, id, &by_us) && !by_us)
        h2_stream_fault(s, id, NULL, H2_STREAM_CLOSED);
}

/* More DATA than the stream's window allows. That of a client is closed until the head of the
 * response has arrived. */
static void data_beyond_window(struct h2_session *s, struct h2_stream *stream)
{
    if (!h2_is_client(s) || stream->answered)
        h2_stream_fault(s, stream->id, stream, H2_FLOW_CONTROL_ERROR);
    else if (stream->head_sent)
        h2_stream_fault(s, stream->id, stream, H2_PROTOCOL_ERROR);
    else
        h2_session_fail(s, H2_PROTOCOL_ERROR, "DATA on an idle stream");
}

static void data_for(struct h2_session *s, struct h2_stream *stream)
{
    if (stream->remote_closed) {
        h2_stream_fault(s, stream->id, stream, H2_STREAM_CLOSED);
        return;
    }
    if ((int64_t)s->frame.len > stream->recv_window) {
        data_beyond_window(s, stream);
        return;
    }
    stream->recv_window -= (int32_t)s->frame.len;
    s->data_stream = stream;
}

static void data_frame(struct h2_session *s)
{
    const struct h2_frame *f = &s->frame;
    bool padded = f->flags & H2_FLAG_PADDED;
    s->data_stream = NULL;
    if ((int64_t)f->len > s->recv_window) {
        h2_session_fail(s, H2_FLOW_CONTROL_ERROR, "connection window exceeded");
        return;
    }
    if (padded && f->len == 0) {
        h2_session_fail(s, H2_FRAME_SIZE_ERROR, "padded DATA without a pad length");
        return;
    }
    bool empty = f->len == 0 && !(f->flags & H2_FLAG_END_STREAM);
    s->empty_data = empty ? s->empty_data + 1 : 0;
    /* Empty frames cost the sender nothing and use up no window (CVE-2019-9518). */
    if (s->empty_data > s->limits->empty_data_max) {
        h2_session_fail(s, H2_ENHANCE_YOUR_CALM, "too many empty DATA frames");
        return;
    }
    /* The connection's window is returned at once: each stream's own window limits what is held. */
    s->recv_window -= (int32_t)f->len;
    h2_session_credit(s, f->len);
    struct h2_stream *stream = h2_table_find(&s->table, f->stream_id);
    /* The connection's window counts all DATA, even for streams that do not exist (RFC 9113,
     * section 6.9). */
    if (LIKELY(stream != NULL))
        data_for(s, stream);
    else
        data_without_stream(s);
    if (padded)
        reading_move(s, H2_READ_PAD_LENGTH);
    else
        data_begin(s, 0, 0);
}

/* SETTINGS must be the first frame; nothing may interrupt a header block. */
static const char *out_of_order(const struct h2_session *s)
{
    const struct h2_frame *f = &s->frame;
    if (!s->settings_seen && (f->type != H2_SETTINGS || (f->flags & H2_FLAG_ACK)))
        return "the first frame is not SETTINGS";
    if (s->block_id && (f->type != H2_CONTINUATION || f->stream_id != s->block_id))
        return "a header block was interrupted";
    if (!s->block_id && f->type == H2_CONTINUATION)
        return "CONTINUATION without HEADERS";
    return NULL;
}

static void frame_begin(struct h2_session *s)
{
    const struct h2_frame *f = &s->frame;
    if (f->len > H2_FRAME_BYTES_MAX) {
        h2_session_fail(s, H2_FRAME_SIZE_ERROR, "frame too large");
        return;
    }
    const char *fault = out_of_order(s);
    if (fault) {
        h2_session_fail(s, H2_PROTOCOL_ERROR, fault);
        return;
    }
    if (f->type == H2_DATA) {
        data_frame(s);
    } else if (f->type > H2_CONTINUATION) {
        skip(s, f->len); /* an extension that we do not know */
    } else if (f->len) {
        reading_move(s, H2_READ_PAYLOAD);
    } else {
        reading_move(s, H2_READ_HEAD);
        h2_handle_frame(s, SLICE_EMPTY);
    }
}

static struct slice read_head(struct h2_session *s, struct slice bytes)
{
    size_t n = size_min(bytes.len, (size_t)H2_FRAME_HEAD_BYTES - s->head_len);
    const uint8_t *head = bytes.ptr;
    if (n < H2_FRAME_HEAD_BYTES) { /* it arrives in pieces */
        memcpy(s->head + s->head_len, bytes.ptr, n);
        s->head_len = (uint8_t)(s->head_len + n);
        if (s->head_len < H2_FRAME_HEAD_BYTES)
            return SLICE_EMPTY;
        head = s->head;
        s->head_len = 0;
    }
    s->frame = h2_frame_get(head);
    frame_begin(s);
    return rest_of(bytes, n);
}

void h2_frame_wait(struct h2_session *s)
{
    if (s->frame_by_ns == INT64_MAX)
        s->frame_by_ns = s->now_ns + s->limits->frame_ns;
}

static struct slice read_payload(struct h2_session *s, struct slice bytes)
{
    size_t n = size_min(bytes.len, s->frame.len - s->partial.len);
    struct slice payload = slice_sub(bytes, 0, n);
    /* A frame that is complete in the input is handled there without a copy. */
    bool in_pieces = s->partial.len > 0 || n < s->frame.len;
    if (in_pieces) {
        if (account_append(s->account, &s->partial, payload) != ST_OK) {
            h2_session_fail(s, H2_INTERNAL_ERROR, "out of memory");
            return SLICE_EMPTY;
        }
        if (s->partial.len < s->frame.len) {
            h2_frame_wait(s);
            return SLICE_EMPTY;
        }
        payload = buf_slice(&s->partial);
    }
    reading_move(s, H2_READ_HEAD);
    h2_handle_frame(s, payload);
    if (in_pieces) {
        account_buf_fini(s->account, &s->partial);
        /* A header block continues with the next frame, and its time limit with it. */
        if (!s->block_id)
            s->frame_by_ns = INT64_MAX;
    }
    return rest_of(bytes, n);
}

struct slice h2_receive(struct h2_session *s, struct slice bytes)
{
    switch (s->reading) {
    case H2_READ_PREFACE:
        return read_preface(s, bytes);
    case H2_READ_HEAD:
        return read_head(s, bytes);
    case H2_READ_PAYLOAD:
        return read_payload(s, bytes);
    case H2_READ_PAD_LENGTH:
        return read_pad_length(s, bytes);
    case H2_READ_DATA:
        return read_data(s, bytes);
    case H2_READ_SKIP:
        return read_skip(s, bytes);
    }
    return SLICE_EMPTY;
}
