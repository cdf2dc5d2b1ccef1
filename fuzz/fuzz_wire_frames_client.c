/*
 * Frames of a server (frames.h), which answers REQUESTS requests: our session and nghttp2's pass on
 * the same responses, bytes and ends, and refuse the same with the same codes.
 */
#include "cost.h"
#include "frames.h"

enum { REQUESTS = 6 };

static void note_response(struct side *side, uint32_t id, bool ended)
{
    struct slice fields = buf_slice(&side->fields);
    note(side, "response", id, ended);
    append(&side->events, fields);
    side->bodyless[id] |= slice_has_prefix(fields, SLICE_LITERAL(":status=204\n")) ||
                          slice_has_prefix(fields, SLICE_LITERAL(":status=304\n"));
}

/* -- Ours -- */

static void on_headers(struct h2_stream *stream, struct h2_headers *headers, bool ended)
{
    struct side *side = side_of(stream);
    keep_fields(side, headers);
    note_response(side, stream->id, ended);
}

static size_t head(struct h2_stream *stream, uint8_t *dst, size_t room)
{
    struct slice block = SLICE_LITERAL("\x82\x86\x84\x01\x01x");
    (void)stream;
    if (room < block.len)
        return 0;
    slice_copy(dst, block);
    return block.len;
}

static const struct h2_stream_ops request_ops = {
    .on_headers = on_headers, .on_data = on_data, .on_close = on_close, .head = head};
static const struct h2_session_ops session_ops = {0};

static void ours_init(struct side *side)
{
    side->limits = limits_like(H2_CLIENT_LIMITS_DEFAULT);
    enum status status =
        h2_session_new_client(&side->limits, &session_ops, side, NULL, 1, &side->ours);
    assert(status == ST_OK);
    for (size_t i = 0; i < REQUESTS; i++) {
        struct h2_stream *stream = &request_new(side, &request_ops)->stream;
        status = h2_session_open(side->ours, stream);
        assert(status == ST_OK);
        side->open[stream->id] = true;
    }
}

/* -- nghttp2 -- */

/* Informational responses are not passed on. */
static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *owner)
{
    struct side *side = owner;
    (void)session;
    if (frame->hd.type == NGHTTP2_HEADERS &&
        !slice_has_prefix(buf_slice(&side->fields), SLICE_LITERAL(":status=1")))
        note_response(side, (uint32_t)frame->hd.stream_id,
                      frame->hd.flags & NGHTTP2_FLAG_END_STREAM);
    return 0;
}

static nghttp2_nv field_of(char *name, char *value)
{
    return (nghttp2_nv){(uint8_t *)name, (uint8_t *)value, strlen(name), strlen(value),
                        NGHTTP2_NV_FLAG_NONE};
}

static void theirs_request(struct side *side)
{
    char method[] = ":method", get[] = "GET", scheme[] = ":scheme", http[] = "http";
    char path[] = ":path", root[] = "/", authority[] = ":authority", x[] = "x";
    nghttp2_nv fields[] = {field_of(method, get), field_of(scheme, http), field_of(path, root),
                           field_of(authority, x)};
    int32_t id = nghttp2_submit_request(side->theirs, NULL, fields, COUNT_OF(fields), NULL, NULL);
    assert(id > 0);
    side->open[id] = true;
}

static void theirs_init(struct side *side)
{
    nghttp2_settings_entry no_push = {NGHTTP2_SETTINGS_ENABLE_PUSH, 0};
    theirs_start(side, nghttp2_session_client_new2, on_frame);
    if (nghttp2_submit_settings(side->theirs, NGHTTP2_FLAG_NONE, &no_push, 1))
        abort();
    for (size_t i = 0; i < REQUESTS; i++)
        theirs_request(side);
}

/* -- Differences that are intended in this role -- */

/* A stream that is closed is an error of the stream or the connection; nghttp2 ignores it. One that
 * is not open is not allowed, which nghttp2 says before it decodes the header block. */
static bool is_closed_stream(const struct pair *p)
{
    uint8_t type = p->frame->type;
    bool closed = p->ours->failed == H2_STREAM_CLOSED || p->ours->refused == H2_STREAM_CLOSED;
    if ((type != H2_DATA && type != H2_HEADERS && type != H2_CONTINUATION) ||
        p->theirs->open[p->frame->stream_id])
        return false;
    if (p->ours->failed == H2_COMPRESSION_ERROR)
        return p->theirs->failed == H2_PROTOCOL_ERROR;
    return closed && p->theirs->failed == NONE && !p->theirs->events.len;
}

/* A stream that depends on itself; nghttp2 ignores priorities of a server. */
static bool is_priority(const struct pair *p)
{
    size_t at = p->frame->flags & H2_FLAG_PADDED ? 1 : 0;
    return p->frame->type == H2_HEADERS && (p->frame->flags & H2_FLAG_PRIORITY) &&
           p->frame->len >= at + 4 && p->ours->failed == H2_PROTOCOL_ERROR &&
           (h2_get32(p->payload + at) & H2_STREAM_ID_MAX) == p->frame->stream_id;
}

/* Only we refuse a status below 100. */
static bool is_status(const struct pair *p)
{
    struct slice events = buf_slice(&p->theirs->events), status = SLICE_LITERAL("\n:status=0");
    return p->ours->refused == H2_PROTOCOL_ERROR && events.len &&
           memmem(events.ptr, events.len, status.ptr, status.len);
}

/* A body without a head is an error of the stream; nghttp2 ends the connection, or ignores an empty
 * body after an informational head. */
static bool is_early_data(const struct pair *p)
{
    return p->frame->type == H2_DATA && p->ours->refused == H2_PROTOCOL_ERROR &&
           (p->theirs->failed == H2_PROTOCOL_ERROR ||
            (p->frame->len == 0 && p->theirs->failed == NONE && !p->theirs->events.len));
}

/* Only nghttp2 refuses a body after a status that allows none, and a length of it. */
static bool is_body(const struct pair *p)
{
    struct slice fields = buf_slice(&p->ours->fields), length = SLICE_LITERAL("content-length=");
    if (!p->ours->bodyless[p->frame->stream_id] || p->ours->failed != NONE ||
        p->theirs->refused != H2_PROTOCOL_ERROR)
        return false;
    return p->frame->type == H2_DATA ||
           (fields.len && memmem(fields.ptr, fields.len, length.ptr, length.len));
}

/* Only nghttp2 removes a length of 0 after such a status. */
static bool is_removed_length(const struct pair *p)
{
    struct slice ours = buf_slice(&p->ours->events), theirs = buf_slice(&p->theirs->events);
    struct slice length = SLICE_LITERAL("content-length=0\n");
    if (!p->ours->bodyless[p->frame->stream_id] || p->ours->failed != NONE ||
        ours.len != theirs.len + length.len)
        return false;
    const uint8_t *at = memmem(ours.ptr, ours.len, length.ptr, length.len);
    size_t before = at ? (size_t)(at - ours.ptr) : 0;
    return at && slice_equal(slice_sub(ours, 0, before), slice_sub(theirs, 0, before)) &&
           slice_equal(slice_sub(ours, before + length.len, theirs.len - before),
                       slice_sub(theirs, before, theirs.len - before));
}

/* We never allow it; nghttp2 allows it until the server knows our settings. */
static bool is_push(const struct pair *p)
{
    return p->frame->type == H2_PUSH_PROMISE && p->ours->failed == H2_PROTOCOL_ERROR;
}

/* Only we limit the size of all fields. */
static bool is_limit(const struct pair *p)
{
    return p->ours->failed == H2_ENHANCE_YOUR_CALM || p->ours->refused == H2_FRAME_SIZE_ERROR;
}

static bool by_design(const struct pair *p)
{
    return is_wrong_length(p) || is_window(p) || is_setting(p) || is_closed_stream(p) ||
           is_early_data(p) || is_priority(p) || is_status(p) || is_body(p) ||
           is_removed_length(p) || is_push(p) || is_limit(p);
}

/* The requests leave before the first frame arrives, and settings that allow them. */
FUZZ_INPUT(.steps_per_byte = 20000)
{
    struct slice hello = SLICE_LITERAL("\0\0\0\4\0\0\0\0\0");
    struct side ours = {0}, theirs = {0};
    ours_init(&ours);
    theirs_init(&theirs);
    run(&ours, &theirs, hello, slice_of(data, size), by_design);
    return 0;
}
