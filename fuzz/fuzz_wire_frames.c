/*
 * Frames of a client (frames.h): our session and nghttp2's pass on the same requests, bytes and
 * ends, and refuse the same with the same codes. Streams whose number is 3, 7, 11 … are answered
 * when the client has sent everything; the others stay open.
 */
#include "cost.h"
#include "frames.h"

enum { ANSWERED = 3 }; /* three of four streams */

static void note_open(struct side *side, uint32_t id, struct slice fields)
{
    note(side, "open", id, 0);
    side->opened = true;
    append(&side->events, fields);
    side->open[id] = true;
}

static bool is_answered(uint32_t id)
{
    return id % 4 == ANSWERED;
}

/* -- Ours -- */

static void on_end(struct h2_stream *stream)
{
    note(side_of(stream), "end", stream->id, 0);
    if (is_answered(stream->id))
        h2_stream_ready(stream);
}

static size_t head(struct h2_stream *stream, uint8_t *dst, size_t room)
{
    (void)stream;
    return room < 16 ? 0 : (size_t)(hpack_put_status(dst, 200) - dst);
}

static const struct h2_stream_ops request_ops = {
    .on_data = on_data, .on_end = on_end, .on_close = on_close, .head = head};

static struct h2_stream *on_open(void *owner, struct h2_headers *headers, int64_t now_ns)
{
    struct side *side = owner;
    (void)now_ns;
    keep_fields(side, headers);
    note_open(side, side->current, buf_slice(&side->fields));
    return &request_new(side, &request_ops)->stream;
}

static const struct h2_session_ops session_ops = {.on_open = on_open};

static void ours_init(struct side *side)
{
    side->limits = limits_like(H2_LIMITS_DEFAULT);
    side->limits.ping_strikes = LIMIT;
    enum status status = h2_session_new(&side->limits, &session_ops, side, NULL, 1, &side->ours);
    assert(status == ST_OK);
}

/* -- nghttp2 -- */

static void answer(nghttp2_session *session, uint32_t id)
{
    uint8_t name[] = ":status", value[] = "200";
    nghttp2_nv field = {name, value, sizeof(name) - 1, sizeof(value) - 1, NGHTTP2_NV_FLAG_NONE};
    (void)nghttp2_submit_response(session, (int32_t)id, &field, 1, NULL);
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *owner)
{
    struct side *side = owner;
    uint32_t id = (uint32_t)frame->hd.stream_id;
    if (frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA)
        return 0;
    if (frame->hd.type == NGHTTP2_HEADERS && frame->headers.cat == NGHTTP2_HCAT_REQUEST)
        note_open(side, id, buf_slice(&side->fields));
    if (!(frame->hd.flags & NGHTTP2_FLAG_END_STREAM))
        return 0;
    note(side, "end", id, 0);
    if (is_answered(id))
        answer(session, id);
    return 0;
}

static void theirs_init(struct side *side)
{
    theirs_start(side, nghttp2_session_server_new2, on_frame);
    if (nghttp2_submit_settings(side->theirs, NGHTTP2_FLAG_NONE, NULL, 0))
        abort();
}

/* -- Differences that are intended in this role -- */

/* A stream that is closed is an error of that stream, or none if we have closed it; nghttp2 ends
 * the connection, even before it decodes the header block. But the ids of new streams must rise;
 * nghttp2 ignores a request with a lower one. */
static bool is_closed_stream(const struct pair *p)
{
    const struct side *ours = p->ours, *theirs = p->theirs;
    bool quiet = ours->failed == NONE && !ours->events.len;
    if (p->frame->type != H2_DATA && p->frame->type != H2_HEADERS &&
        p->frame->type != H2_CONTINUATION)
        return false;
    if (theirs->failed == H2_STREAM_CLOSED)
        return ours->refused == H2_STREAM_CLOSED || ours->failed == H2_PROTOCOL_ERROR ||
               ours->failed == H2_COMPRESSION_ERROR ||
               (quiet && ours->was_refused[p->frame->stream_id]);
    return ours->failed == H2_PROTOCOL_ERROR && p->frame->type != H2_DATA &&
           theirs->failed == NONE && !theirs->events.len;
}

/* A server opens no streams: it does not matter which the client names as the last. */
static bool is_goaway(const struct pair *p)
{
    return p->frame->type == H2_GOAWAY && p->ours->failed == NONE &&
           p->theirs->failed == H2_PROTOCOL_ERROR;
}

/* Whether nghttp2 would refuse the value: in these fields it allows fewer characters than we do. */
static bool is_refused_value(struct slice name, struct slice value)
{
    if (slice_equal(name, SLICE_LITERAL(":path")))
        return !nghttp2_check_path(value.ptr, value.len);
    if (slice_equal(name, SLICE_LITERAL(":method")))
        return !nghttp2_check_method(value.ptr, value.len);
    if (slice_equal(name, SLICE_LITERAL(":authority")) || slice_equal(name, SLICE_LITERAL("host")))
        return !value.len || !nghttp2_check_authority(value.ptr, value.len);
    return false;
}

/* Whether nghttp2 refuses a request that we accept because of such a value, or because the request
 * does not name the server or names it twice. */
static bool has_refused_field(struct slice fields)
{
    int names = 0, hosts = 0;
    while (fields.len) {
        const uint8_t *end = memchr(fields.ptr, '\n', fields.len);
        struct slice field = slice_of(fields.ptr, (size_t)(end - fields.ptr));
        const uint8_t *sign = memchr(field.ptr + 1, '=', field.len - 1);
        struct slice name = slice_of(field.ptr, (size_t)(sign - field.ptr));
        if (is_refused_value(name, slice_of(sign + 1, (size_t)(end - sign - 1))))
            return true;
        names += slice_equal(name, SLICE_LITERAL(":authority"));
        hosts += slice_equal(name, SLICE_LITERAL("host"));
        fields = slice_sub(fields, field.len + 1, fields.len - field.len - 1);
    }
    return names + hosts == 0 || hosts > 1;
}

static bool is_request(const struct pair *p)
{
    /* Only we limit the size of all fields. */
    if (p->ours->failed == H2_ENHANCE_YOUR_CALM || p->ours->refused == H2_NO_ERROR ||
        p->ours->refused == H2_FRAME_SIZE_ERROR)
        return true;
    return p->theirs->refused == H2_PROTOCOL_ERROR && p->ours->opened &&
           has_refused_field(buf_slice(&p->ours->fields));
}

static bool by_design(const struct pair *p)
{
    return is_wrong_length(p) || is_closed_stream(p) || is_window(p) || is_setting(p) ||
           is_goaway(p) || is_request(p);
}

FUZZ_INPUT(.steps_per_byte = 20000)
{
    struct slice hello = SLICE_LITERAL("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0");
    struct side ours = {0}, theirs = {0};
    ours_init(&ours);
    theirs_init(&theirs);
    run(&ours, &theirs, hello, slice_of(data, size), by_design);
    return 0;
}
