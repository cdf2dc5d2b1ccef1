/* The parts of a session that only a client has: it opens streams and receives responses. */
#include "wire/h2/session_private.h"

bool h2_client_is_idle(const struct h2_session *s, uint32_t id)
{
    if (id % 2 == 0 || id >= s->next_id)
        return true;
    const struct h2_stream *stream = h2_table_find(&s->table, id);
    return stream && !stream->head_sent;
}

bool h2_client_has_room(const struct h2_session *s)
{
    return s->phase == H2_OPEN &&
           s->table.count < size_min(s->peer_streams_max, s->limits->streams_max);
}

void h2_client_ended(struct h2_stream *stream)
{
    bool early = !stream->local_closed; /* the server does not need the rest of the request */
    stream->remote_closed = true;
    if (early)
        h2_reset_put(stream->session, stream->id, H2_NO_ERROR);
    h2_stream_close(stream, H2_NO_ERROR, early);
}

/* The embedder may reset and free the stream within on_headers: then data_stream is NULL. */
static void pass_headers(struct h2_session *s, struct h2_stream *stream, bool ends,
                         struct h2_headers *headers)
{
    s->data_stream = stream;
    stream->ops->on_headers(stream, headers, ends);
    if (ends && s->data_stream)
        h2_client_ended(stream);
    s->data_stream = NULL;
}

/* Many of them in a row are as useless as empty DATA. */
static void informational(struct h2_session *s, struct h2_stream *stream, bool ends)
{
    if (ends)
        h2_stream_fault(s, stream->id, stream, H2_PROTOCOL_ERROR);
    else if (++s->empty_data > s->limits->empty_data_max)
        h2_session_fail(s, H2_ENHANCE_YOUR_CALM, "too many informational responses");
}

static void response_begins(struct h2_session *s, struct h2_stream *stream, bool ends,
                            struct h2_headers *headers)
{
    stream->answered = true;
    stream->recv_window = (int32_t)s->limits->stream_window;
    /* "Not modified" has the length of what it does not send, and so has the answer to HEAD. */
    bool bodiless = stream->bodiless || headers->status == 304;
    stream->body_left = bodiless ? -1 : headers->content_length;
    if (ends && stream->body_left > 0)
        h2_stream_fault(s, stream->id, stream, H2_PROTOCOL_ERROR);
    else
        pass_headers(s, stream, ends, headers);
}

void h2_client_headers(struct h2_session *s, struct h2_stream *stream, bool ends,
                       struct h2_headers *headers)
{
    enum h2_headers_kind expected = stream->answered ? H2_RESPONSE_TRAILERS : H2_RESPONSE;
    if (!stream->head_sent) {
        h2_session_fail(s, H2_PROTOCOL_ERROR, "HEADERS on an idle stream");
    } else if (headers->too_large) {
        h2_stream_fault(s, stream->id, stream, H2_FRAME_SIZE_ERROR); /* as grpc-go does */
    } else if (headers->malformed || headers->kind != expected) {
        h2_stream_fault(s, stream->id, stream, H2_PROTOCOL_ERROR);
    } else if (stream->answered) {
        if (!ends || stream->body_left > 0)
            h2_stream_fault(s, stream->id, stream, H2_PROTOCOL_ERROR);
        else
            pass_headers(s, stream, true, headers);
    } else if (headers->status < 200) {
        informational(s, stream, ends);
    } else {
        response_begins(s, stream, ends, headers);
    }
}

static void close_by_peer(struct h2_stream *stream, enum h2_error code, bool unprocessed)
{
    stream->ended_by = H2_ENDED_BY_PEER;
    stream->unprocessed = unprocessed;
    h2_stream_close(stream, code, false);
}

void h2_client_reset(struct h2_stream *stream, uint32_t code)
{
    close_by_peer(stream, (enum h2_error)code, code == H2_REFUSED_STREAM && !stream->answered);
}

/* Open streams are in the order of their ids, and those whose head was not sent are the last. */
static void close_refused(struct h2_session *s)
{
    while (!list_empty(&s->open)) {
        struct h2_stream *stream = LIST_ENTRY(s->open.prev, struct h2_stream, in_open);
        if (stream->head_sent && stream->id <= s->goaway_id)
            break;
        close_by_peer(stream, H2_REFUSED_STREAM, !stream->answered);
    }
}

void h2_client_goaway(struct h2_session *s, struct slice payload)
{
    uint32_t last_id = h2_get32(payload.ptr) & H2_STREAM_ID_MAX;
    if (last_id > s->goaway_id || (last_id && last_id % 2 == 0)) {
        h2_session_fail(s, H2_PROTOCOL_ERROR, "GOAWAY with an impossible stream");
        return;
    }
    s->goaway_id = last_id;
    if (s->phase == H2_OPEN)
        h2_phase_move(s, H2_LEAVING);
    if (s->ops->on_goaway)
        s->ops->on_goaway(s->owner, (enum h2_error)h2_get32(payload.ptr + 4),
                          slice_sub(payload, 8, payload.len - 8));
    close_refused(s);
}
