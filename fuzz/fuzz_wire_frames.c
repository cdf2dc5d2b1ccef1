/*
 * Frames of a client, given to our session and to one of nghttp2: both pass on the same requests,
 * bytes and ends, and refuse the same with the same codes. The input describes each frame in four
 * bytes, so that any input is a sequence of frames:
 *
 *     type, flags, stream, length: of the payload, which follows, or from FILLED of zeros
 *
 * Streams whose number is 3, 7, 11 … are answered when the client has sent everything; the others
 * stay open. A difference that is intended (by_design) ends the comparison.
 */
#include "cost.h"

#include "base/buf.h"
#include "wire/h2/hpack.h"
#include "wire/h2/session.h"

#include <nghttp2/nghttp2.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    FILLED = 240,       /* lengths from here are of zeros, 2 KiB for each */
    STREAMS = 32,       /* the numbers of streams: 0 to 31 */
    TYPES = 12,         /* of frames: those of HTTP/2, and two that do not exist */
    LIMIT = 1 << 20,    /* of everything that only we or only nghttp2 limits */
    ANSWERED = 3,       /* of four streams */
    NONE = -1,          /* no error code */
    FRAME_ROOM = 65536, /* the largest frame that an input describes */
};

/* What one implementation has made of the frames. */
struct side {
    struct buf events; /* of the current frame */
    struct buf fields; /* nghttp2: of the header block that is being decoded */
    struct h2_session *ours;
    nghttp2_session *theirs;
    bool open[STREAMS], was_refused[STREAMS];
    uint32_t current;    /* the stream of the current frame */
    uint32_t data_of;    /* the stream of the last event if that was data */
    int refused, failed; /* the code for the stream or the connection; NONE */
    bool opened;         /* a stream */
};

/* -- Events -- */

static void append(struct buf *to, struct slice bytes)
{
    enum status status = buf_append(to, bytes);
    assert(status == ST_OK);
}

static void note(struct side *side, const char *what, uint32_t id, uint32_t code)
{
    char line[64];
    int len = snprintf(line, sizeof(line), "%s %u %u\n", what, id, code);
    append(&side->events, slice_of(line, (size_t)len));
    side->data_of = 0;
}

static void note_open(struct side *side, uint32_t id, struct slice fields)
{
    note(side, "open", id, 0);
    side->opened = true;
    append(&side->events, fields);
    side->open[id] = true;
}

static void note_data(struct side *side, uint32_t id, struct slice bytes)
{
    if (side->data_of != id)
        note(side, "data", id, 0);
    side->data_of = id;
    append(&side->events, bytes);
}

/* Streams that were refused were never open. */
static void note_close(struct side *side, uint32_t id)
{
    if (side->open[id])
        note(side, "close", id, 0);
    side->open[id] = false;
}

static void append_field(struct buf *to, struct slice name, struct slice value)
{
    append(to, name);
    append(to, SLICE_LITERAL("="));
    append(to, value);
    append(to, SLICE_LITERAL("\n"));
}

static bool is_answered(uint32_t id)
{
    return id % 4 == ANSWERED;
}

/* What the peer gets: errors, and the answers to frames that need one. */
static void note_output(struct side *side, struct slice out)
{
    while (out.len >= H2_FRAME_HEAD_BYTES) {
        struct h2_frame f = h2_frame_get(out.ptr);
        const uint8_t *payload = out.ptr + H2_FRAME_HEAD_BYTES;
        if (f.type == H2_RST_STREAM) {
            note(side, "refuse", f.stream_id, h2_get32(payload));
            side->refused = (int)h2_get32(payload);
            side->was_refused[f.stream_id] = true;
        } else if (f.type == H2_GOAWAY) {
            side->failed = (int)h2_get32(payload + 4);
        } else if (f.type == H2_SETTINGS && (f.flags & H2_FLAG_ACK)) {
            note(side, "settings", 0, 0);
        } else if (f.type == H2_PING) {
            note(side, "ping", h2_get32(payload), h2_get32(payload + 4));
        } else if (f.type == H2_HEADERS) {
            note(side, "answer", f.stream_id, f.flags & H2_FLAG_END_STREAM);
        }
        size_t used = H2_FRAME_HEAD_BYTES + f.len;
        assert(used <= out.len);
        out = slice_sub(out, used, out.len - used);
    }
}

/* -- Ours -- */

struct request {
    struct h2_stream stream;
    struct side *side;
};

static void on_data(struct h2_stream *stream, struct slice bytes)
{
    note_data(((struct request *)stream)->side, stream->id, bytes);
    h2_stream_consumed(stream, bytes.len);
}

static void on_end(struct h2_stream *stream)
{
    note(((struct request *)stream)->side, "end", stream->id, 0);
    if (is_answered(stream->id))
        h2_stream_ready(stream);
}

static void on_close(struct h2_stream *stream, enum h2_error code)
{
    (void)code;
    note_close(((struct request *)stream)->side, stream->id);
    free(stream);
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
    struct request *r = calloc(1, sizeof(*r));
    (void)now_ns;
    assert(r);
    *r = (struct request){.stream = {.ops = &request_ops, .head_only = true}, .side = side};
    side->fields.len = 0;
    for (uint32_t i = 0; i < headers->count; i++)
        append_field(&side->fields, headers->fields[i].name, headers->fields[i].value);
    note_open(side, side->current, buf_slice(&side->fields));
    return &r->stream;
}

static const struct h2_session_ops session_ops = {.on_open = on_open};

static const struct h2_limits *our_limits(void)
{
    static struct h2_limits limits;
    limits = H2_LIMITS_DEFAULT;
    limits.continuations_max = limits.empty_data_max = limits.reset_burst = LIMIT;
    limits.settings_burst = limits.ping_strikes = LIMIT;
    limits.stream_window = limits.connection_window = H2_WINDOW_DEFAULT;
    return &limits;
}

static void ours_init(struct side *side)
{
    enum status status = h2_session_new(our_limits(), &session_ops, side, NULL, 1, &side->ours);
    assert(status == ST_OK);
}

/* In two pieces, which must not change anything. */
static void ours_feed(struct side *side, struct slice bytes)
{
    uint8_t room[H2_FILL_ROOM_MIN];
    size_t half = bytes.len / 2;
    h2_session_feed(side->ours, slice_sub(bytes, 0, half), 1);
    h2_session_feed(side->ours, slice_sub(bytes, half, bytes.len - half), 1);
    while (h2_session_wants_write(side->ours))
        note_output(side, slice_of(room, h2_session_fill(side->ours, room, sizeof(room), 1)));
    h2_session_check(side->ours);
}

/* -- nghttp2 -- */

static int on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *owner)
{
    struct side *side = owner;
    (void)session;
    (void)frame;
    side->fields.len = 0;
    return 0;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                     size_t name_len, const uint8_t *value, size_t value_len, uint8_t flags,
                     void *owner)
{
    struct side *side = owner;
    (void)session;
    (void)frame;
    (void)flags;
    append_field(&side->fields, slice_of(name, name_len), slice_of(value, value_len));
    return 0;
}

/* By default such fields are only dropped. */
static int on_invalid_header(nghttp2_session *session, const nghttp2_frame *frame,
                             const uint8_t *name, size_t name_len, const uint8_t *value,
                             size_t value_len, uint8_t flags, void *owner)
{
    (void)session, (void)frame, (void)name, (void)name_len, (void)value, (void)value_len;
    (void)flags, (void)owner;
    return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
}

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

static int on_chunk(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *bytes,
                    size_t len, void *owner)
{
    (void)session;
    (void)flags;
    note_data(owner, (uint32_t)id, slice_of(bytes, len));
    return 0;
}

static int on_stream_close(nghttp2_session *session, int32_t id, uint32_t code, void *owner)
{
    (void)session;
    (void)code;
    note_close(owner, (uint32_t)id);
    return 0;
}

static void theirs_init(struct side *side)
{
    nghttp2_session_callbacks *callbacks;
    nghttp2_option *option;
    if (nghttp2_session_callbacks_new(&callbacks) || nghttp2_option_new(&option))
        abort();
    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, on_begin_headers);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_invalid_header_callback(callbacks, on_invalid_header);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_chunk);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_stream_close);
    nghttp2_option_set_max_continuations(option, LIMIT);
    nghttp2_option_set_stream_reset_rate_limit(option, LIMIT, LIMIT);
    nghttp2_option_set_max_settings(option, LIMIT);
    if (nghttp2_session_server_new2(&side->theirs, callbacks, side, option) ||
        nghttp2_submit_settings(side->theirs, NGHTTP2_FLAG_NONE, NULL, 0))
        abort();
    nghttp2_session_callbacks_del(callbacks);
    nghttp2_option_del(option);
}

static void theirs_feed(struct side *side, struct slice bytes)
{
    if (nghttp2_session_mem_recv(side->theirs, bytes.ptr, bytes.len) < 0)
        abort();
    for (;;) {
        const uint8_t *out;
        ssize_t n = nghttp2_session_mem_send(side->theirs, &out);
        if (n <= 0)
            break;
        note_output(side, slice_of(out, (size_t)n));
    }
}

/* -- Both -- */

/*
 * Differences that are intended, each with what must hold for it.
 */
struct pair {
    const struct h2_frame *frame;
    const uint8_t *payload;
    const struct side *ours, *theirs;
};

/* A frame with two faults, a wrong stream and a wrong length: either may be named. nghttp2 checks
 * the length of CONTINUATION never, and that of padding and priority only if the stream is open. */
static bool is_wrong_length(const struct pair *p)
{
    const struct h2_frame *f = p->frame;
    bool of_none = f->type == H2_SETTINGS || f->type == H2_PING || f->type == H2_GOAWAY;
    bool wrong = of_none ? f->stream_id : !p->theirs->open[f->stream_id];
    bool padded = f->type <= H2_HEADERS && (f->flags & (H2_FLAG_PADDED | H2_FLAG_PRIORITY));
    if (wrong && padded && f->type == H2_DATA && p->ours->failed == H2_PROTOCOL_ERROR)
        return p->theirs->failed == NONE && !p->theirs->events.len;
    if (p->ours->failed == H2_FRAME_SIZE_ERROR)
        return f->len > H2_FRAME_BYTES_MAX || (padded && f->len < 6) ||
               ((wrong || f->type == H2_PUSH_PROMISE) && p->theirs->failed == H2_PROTOCOL_ERROR);
    return (wrong || f->type == H2_PUSH_PROMISE) && p->ours->failed == H2_PROTOCOL_ERROR &&
           p->theirs->failed == H2_FRAME_SIZE_ERROR;
}

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

/* RFC 9113 section 6.9: an increment of zero is an error of the stream, and a setting that makes a
 * window too large is one of the connection. For nghttp2 it is the other way round. */
static bool is_window(const struct pair *p)
{
    if (p->frame->type == H2_WINDOW_UPDATE && p->frame->stream_id)
        return p->ours->refused == H2_PROTOCOL_ERROR && p->theirs->failed == H2_PROTOCOL_ERROR;
    return p->frame->type == H2_SETTINGS && p->ours->failed == H2_FLOW_CONTROL_ERROR &&
           p->theirs->refused == H2_FLOW_CONTROL_ERROR;
}

/* Only nghttp2 refuses unknown values of the settings 8 and 9 and an acknowledgement of nothing; of
 * a setting that is repeated it looks only at the last value. */
static bool is_setting(const struct pair *p)
{
    bool seen[256] = {false}, twice = false;
    if (p->frame->type != H2_SETTINGS)
        return false;
    if (p->frame->flags & H2_FLAG_ACK)
        return p->ours->failed == NONE && p->theirs->failed == H2_PROTOCOL_ERROR;
    for (size_t i = 0; i + 6 <= p->frame->len; i += 6) {
        if (p->payload[i])
            continue;
        twice |= seen[p->payload[i + 1]];
        seen[p->payload[i + 1]] = true;
    }
    return twice || ((seen[8] || seen[9]) && p->theirs->failed == H2_PROTOCOL_ERROR);
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
        return !nghttp2_check_authority(value.ptr, value.len);
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

static void print_side(const char *name, const struct side *side)
{
    fprintf(stderr, "%s: fails %d, refuses %d\n%.*s", name, side->failed, side->refused,
            SLICE_ARGS(buf_slice(&side->events)));
}

static bool is_same(const struct side *ours, const struct side *theirs)
{
    if (ours->failed != NONE || theirs->failed != NONE)
        return ours->failed == theirs->failed;
    return slice_equal(buf_slice(&ours->events), buf_slice(&theirs->events));
}

/* Ends the process if they differ. */
static void compare(const struct h2_frame *frame, const uint8_t *payload, const struct side *ours,
                    const struct side *theirs)
{
    struct pair pair = {frame, payload, ours, theirs};
    if (is_same(ours, theirs) || by_design(&pair))
        return;
    fprintf(stderr, "a frame of type %u, flags %u, %u bytes on stream %u\n", frame->type,
            frame->flags, frame->len, frame->stream_id);
    print_side("ours", ours);
    print_side("nghttp2", theirs);
    abort();
}

static void side_begin(struct side *side)
{
    side->events.len = 0;
    side->data_of = 0;
    side->opened = false;
    side->refused = side->failed = NONE;
}

/* The next frame that the input describes. */
static struct h2_frame next_frame(struct slice *input, uint8_t *to)
{
    const uint8_t *from = input->ptr;
    struct h2_frame f = {.type = from[0] % TYPES, .flags = from[1], .stream_id = from[2] % STREAMS};
    size_t given = from[3] < FILLED ? size_min(from[3], input->len - 4) : 0;
    f.len = from[3] < FILLED ? (uint32_t)given : (uint32_t)(from[3] - FILLED + 1) * 2048;
    uint8_t *payload = h2_frame_put(to, f.len, (enum h2_frame_type)f.type, f.flags, f.stream_id);
    memset(payload, 0, f.len);
    slice_copy(payload, slice_of(from + 4, given));
    *input = slice_sub(*input, 4 + given, input->len - 4 - given);
    return f;
}

/* Whether a header block continues in the next frame. */
static bool is_partial(const struct h2_frame *frame)
{
    return (frame->type == H2_HEADERS || frame->type == H2_CONTINUATION) &&
           !(frame->flags & H2_FLAG_END_HEADERS);
}

/* nghttp2 decodes a header block before it is complete. What it refuses early is completed for us.
 */
static void complete_block(struct side *ours, uint32_t id)
{
    uint8_t end[H2_FRAME_HEAD_BYTES];
    h2_frame_put(end, 0, H2_CONTINUATION, H2_FLAG_END_HEADERS, id);
    ours_feed(ours, slice_of(end, sizeof(end)));
}

/* Gives one frame to both. False: nothing can be compared after it. */
static bool step(struct side *ours, struct side *theirs, struct h2_frame frame,
                 const uint8_t *bytes)
{
    struct slice all = slice_of(bytes, H2_FRAME_HEAD_BYTES + frame.len);
    ours->current = frame.stream_id;
    ours_feed(ours, all);
    theirs_feed(theirs, all);
    if (theirs->failed == NONE && !nghttp2_session_want_read(theirs->theirs))
        return false; /* the client has left and waits for nothing */
    if (is_partial(&frame) && ours->failed == NONE && theirs->failed == NONE)
        return true; /* compared when it is complete */
    if (is_partial(&frame) && ours->failed == NONE)
        complete_block(ours, frame.stream_id);
    compare(&frame, bytes + H2_FRAME_HEAD_BYTES, ours, theirs);
    bool goes_on = is_same(ours, theirs) && ours->failed == NONE;
    side_begin(ours);
    side_begin(theirs);
    return goes_on;
}

static void run(struct side *ours, struct side *theirs, struct slice input)
{
    static uint8_t bytes[FRAME_ROOM];
    struct slice hello = SLICE_LITERAL("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0");
    ours_feed(ours, hello);
    theirs_feed(theirs, hello);
    side_begin(ours);
    side_begin(theirs);
    for (bool goes_on = true; goes_on && input.len >= 4;) {
        struct h2_frame frame = next_frame(&input, bytes);
        goes_on = step(ours, theirs, frame, bytes);
    }
}

FUZZ_INPUT(.steps_per_byte = 20000)
{
    struct side ours = {0}, theirs = {0};
    ours_init(&ours);
    theirs_init(&theirs);
    run(&ours, &theirs, slice_of(data, size));
    h2_session_free(ours.ours);
    nghttp2_session_del(theirs.theirs);
    struct buf *all[] = {&ours.events, &ours.fields, &theirs.events, &theirs.fields};
    for (size_t i = 0; i < COUNT_OF(all); i++)
        buf_fini(all[i]);
    return 0;
}
