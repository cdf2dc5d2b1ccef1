/* The scheduler of a session: which stream sends, and how much. */
#include "wire/h2/session_private.h"

enum {
    CONTROL_KEPT = 256, /* bytes of the empty control queue that stay allocated */
    BULK_RESERVE =
        64 *
        1024, /* part of the connection's window that is reserved for streams that are not bulk */
    DATA_ROOM_MIN = 512, /* with less room in the output no DATA frame is begun */
};

void h2_stream_unschedule(struct h2_stream *stream)
{
    if (stream->place == H2_READY || stream->place == H2_NO_SESSION_WINDOW)
        list_remove(&stream->in_ready);
    stream->place = H2_NOWHERE;
}

static void schedule(struct h2_stream *stream, enum h2_stream_place place)
{
    struct h2_session *s = stream->session;
    h2_stream_unschedule(stream);
    stream->place = (uint8_t)place;
    if (place == H2_READY)
        list_push_back(stream->bulk ? &s->bulk_ready : &s->ready, &stream->in_ready);
    else if (place == H2_NO_SESSION_WINDOW)
        list_push_back(stream->bulk ? &s->bulk_starved : &s->starved, &stream->in_ready);
}

void h2_stream_ready(struct h2_stream *stream)
{
    struct h2_session *s = stream->session;
    if (stream->place == H2_READY)
        return;
    if (!s) { /* within on_open: the session schedules it afterwards */
        stream->place = H2_READY;
        return;
    }
    bool quiet = s->inside || h2_session_wants_write(s);
    schedule(stream, H2_READY);
    if (!quiet && s->ops->on_output)
        s->ops->on_output(s->owner);
}

void h2_stream_make_bulk(struct h2_stream *stream)
{
    assert(stream->session && stream->place == H2_NOWHERE && !stream->head_sent);
    if (!stream->bulk)
        stream->session->open_plain--;
    stream->bulk = true;
}

void h2_send_window_grown(struct h2_stream *stream)
{
    if (stream->place == H2_NO_WINDOW && stream->send_window > 0)
        schedule(stream, H2_READY);
}

/* How much of the connection's window the stream may use. */
static int32_t session_window_for(const struct h2_session *s, bool bulk)
{
    int32_t reserve = 0;
    /* Long responses leave some of it to short ones, which would wait for them otherwise. */
    if (bulk && s->open_plain)
        reserve = (int32_t)size_min(BULK_RESERVE, (size_t)s->send_window_peak / 4);
    return s->send_window > reserve ? s->send_window - reserve : 0;
}

static struct h2_stream *first_of(const struct list *head)
{
    return list_empty(head) ? NULL : LIST_ENTRY(head->next, struct h2_stream, in_ready);
}

/* Streams that waited for window have priority, because otherwise the others would always take it.
 */
static struct h2_stream *next_stream(const struct h2_session *s)
{
    struct h2_stream *stream = NULL;
    if (session_window_for(s, false) > 0)
        stream = first_of(&s->starved);
    if (!stream)
        stream = first_of(&s->ready);
    if (!stream && session_window_for(s, true) > 0)
        stream = first_of(&s->bulk_starved);
    if (!stream)
        stream = first_of(&s->bulk_ready);
    return stream;
}

bool h2_session_wants_write(const struct h2_session *s)
{
    if (s->control.len)
        return true; /* answers to the peer's frames come first */
    return s->phase != H2_FAILED && next_stream(s) != NULL;
}

static size_t send_control(struct h2_session *s, uint8_t *dst, size_t room)
{
    size_t n = size_min(room, s->control.len);
    slice_copy(dst, slice_of(s->control.ptr, n));
    if (n == s->control.len)
        account_buf_reset(s->account, &s->control, CONTROL_KEPT);
    else
        buf_consume(&s->control, n);
    return n;
}

/* A client awaits the response. A server resets the stream if the peer still sends, as grpc-go
 * does.
 */
static __attribute__((noinline)) void complete_early(struct h2_stream *stream)
{
    if (h2_is_client(stream->session)) {
        h2_stream_unschedule(stream);
        stream->local_closed = true;
    } else {
        h2_reset_put(stream->session, stream->id, H2_NO_ERROR);
        h2_stream_close(stream, H2_NO_ERROR, true);
    }
}

/* Our answer or request is complete. */
static void complete(struct h2_stream *stream)
{
    if (stream->remote_closed)
        h2_stream_close(stream, H2_NO_ERROR, false);
    else
        complete_early(stream);
}

/* Writes a HEADERS frame with the stream's head or trailers. 0: there is no room. */
static size_t send_block(struct h2_stream *stream, bool trailers, uint8_t *dst, size_t room)
{
    if (room < H2_FRAME_HEAD_BYTES + 1)
        return 0;
    size_t (*write)(struct h2_stream *, uint8_t *, size_t) =
        trailers ? stream->ops->trailers : stream->ops->head;
    size_t len = write(stream, dst + H2_FRAME_HEAD_BYTES, room - H2_FRAME_HEAD_BYTES);
    if (len == 0)
        return 0;
    assert(len <= H2_BLOCK_BYTES_MAX);
    bool last = trailers || stream->head_only;
    h2_frame_put(dst, len, H2_HEADERS, H2_FLAG_END_HEADERS | (last ? H2_FLAG_END_STREAM : 0),
                 stream->id);
    stream->session->ping_pardon = true;
    return H2_FRAME_HEAD_BYTES + len;
}

/* Writes at most one DATA frame. *ret_more: the result of the stream's data function. */
static size_t send_data(struct h2_stream *stream, uint8_t *dst, size_t room, enum h2_fill *ret_more)
{
    struct h2_session *s = stream->session;
    int32_t window = session_window_for(s, stream->bulk);
    if (stream->send_window < window)
        window = stream->send_window > 0 ? stream->send_window : 0;
    size_t most = size_min((size_t)window, s->peer_frame_bytes);
    most = size_min(most, H2_FRAME_BYTES_MAX);
    most = size_min(most, room > H2_FRAME_HEAD_BYTES ? room - H2_FRAME_HEAD_BYTES : 0);
    size_t len = 0;
    *ret_more = stream->ops->data(stream, dst + H2_FRAME_HEAD_BYTES, most, &len);
    assert(len <= most);
    bool last = *ret_more == H2_FILL_END && !stream->ops->trailers;
    if (len == 0 && !last)
        return 0; /* the stream has nothing to send, or there is no window */
    h2_frame_put(dst, len, H2_DATA, last ? H2_FLAG_END_STREAM : 0, stream->id);
    stream->send_window -= (int32_t)len;
    s->send_window -= (int32_t)len;
    s->ping_pardon = true;
    return H2_FRAME_HEAD_BYTES + len;
}

/* The stream has more to send: puts it at the end of its queue. */
static void requeue(struct h2_stream *stream)
{
    /* A WINDOW_UPDATE of the peer ends the first two states. */
    if (stream->send_window <= 0)
        schedule(stream, H2_NO_WINDOW);
    else if (session_window_for(stream->session, stream->bulk) <= 0)
        schedule(stream, H2_NO_SESSION_WINDOW);
    else
        schedule(stream, H2_READY);
}

/* One turn of one stream. *ret_full: the output has not enough room for it. */
static size_t send_turn(struct h2_stream *stream, uint8_t *dst, size_t room, bool *ret_full)
{
    size_t len = 0;
    if (!stream->head_sent) {
        len = send_block(stream, false, dst, room);
        *ret_full = len == 0;
        if (*ret_full)
            return 0;
        stream->head_sent = true;
        if (stream->head_only) {
            complete(stream);
            return len;
        }
    }
    if (room - len < H2_FRAME_HEAD_BYTES) {
        *ret_full = true;
        return len;
    }
    if (!stream->body_ended) {
        enum h2_fill more;
        size_t data = send_data(stream, dst + len, room - len, &more);
        len += data;
        /* It has nothing to send, and calls h2_stream_ready when it has. */
        if (more == H2_FILL_PARKED)
            h2_stream_unschedule(stream);
        else if (more == H2_FILL_MORE && (data || room - len > DATA_ROOM_MIN))
            requeue(stream);
        else if (more == H2_FILL_MORE)
            *ret_full = true; /* it wrote nothing for lack of room, and stays first */
        stream->body_ended = more == H2_FILL_END;
    }
    if (stream->body_ended && !stream->ops->trailers) {
        complete(stream);
    } else if (stream->body_ended) {
        size_t trailers = send_block(stream, true, dst + len, room - len);
        *ret_full = trailers == 0;
        if (trailers)
            complete(stream);
        len += trailers;
    }
    return len;
}

size_t h2_session_fill(struct h2_session *s, uint8_t *dst, size_t room, int64_t now_ns)
{
    assert(room >= H2_FILL_ROOM_MIN);
    s->now_ns = now_ns;
    h2_session_enter(s);
    size_t len = send_control(s, dst, room);
    bool full = false;
    while (!full && s->phase != H2_FAILED && room - len >= DATA_ROOM_MIN) {
        struct h2_stream *stream = next_stream(s);
        if (!stream)
            break;
        len += send_turn(stream, dst + len, room - len, &full);
    }
    h2_session_exit(s);
    return len;
}
