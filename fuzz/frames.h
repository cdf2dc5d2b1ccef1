/*
 * For fuzzers that give the same frames to our session and to one of nghttp2, and compare what they
 * make of each: events, errors and answers. The input describes each frame in four bytes, so that
 * any input is a sequence of frames:
 *
 *     type, flags, stream, length: of the payload, which follows, or from FILLED of zeros
 *
 * A difference that is intended ends the comparison.
 */
#ifndef VIGIL_FUZZ_FRAMES_H
#define VIGIL_FUZZ_FRAMES_H

#include "base/buf.h"
#include "wire/h2/hpack.h"
#include "wire/h2/session.h"

#include <nghttp2/nghttp2.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    FILLED = 240,       /* lengths from here are of zeros, 2 KiB for each */
    STREAMS = 32,       /* the numbers of streams: 0 to 31 */
    TYPES = 12,         /* number of frame types: those of HTTP/2, and two that do not exist */
    LIMIT = 1 << 20,    /* limit on everything that only we or only nghttp2 limits */
    NONE = -1,          /* no error code */
    FRAME_ROOM = 65536, /* the largest frame that an input describes */
};

/* What one implementation has made from the frames. */
struct side {
    struct buf events;       /* events of the current frame */
    struct buf fields;       /* nghttp2: of the header block that is being decoded */
    struct h2_limits limits; /* ours */
    struct h2_session *ours;
    nghttp2_session *theirs;
    bool open[STREAMS], was_refused[STREAMS];
    uint32_t closed;        /* a bit for each stream */
    uint32_t current;       /* the stream of the current frame */
    uint32_t data_of;       /* the stream of the last event if that was data */
    int refused, failed;    /* the code for the stream or the connection; NONE */
    bool opened;            /* a stream */
    bool bodyless[STREAMS]; /* client: the status of the response allows no body */
};

/* -- Events -- */

static inline void append(struct buf *to, struct slice bytes)
{
    enum status status = buf_append(to, bytes);
    assert(status == ST_OK);
}

static inline void note(struct side *side, const char *what, uint32_t id, uint32_t code)
{
    char line[64];
    int len = snprintf(line, sizeof(line), "%s %u %u\n", what, id, code);
    append(&side->events, slice_of(line, (size_t)len));
    side->data_of = 0;
}

static inline void note_data(struct side *side, uint32_t id, struct slice bytes)
{
    if (side->data_of != id)
        note(side, "data", id, 0);
    side->data_of = id;
    append(&side->events, bytes);
}

/* Streams that were refused were never open. The order does not matter. */
static inline void note_close(struct side *side, uint32_t id)
{
    if (side->open[id])
        side->closed |= UINT32_C(1) << id;
    side->open[id] = false;
}

static inline void append_field(struct buf *to, struct slice name, struct slice value)
{
    append(to, name);
    append(to, SLICE_LITERAL("="));
    append(to, value);
    append(to, SLICE_LITERAL("\n"));
}

/* What the peer gets: errors, and the answers to frames that need one. */
static inline void note_output(struct side *side, struct slice out)
{
    if (slice_has_prefix(out, H2_PREFACE))
        out = slice_sub(out, H2_PREFACE.len, out.len - H2_PREFACE.len);
    while (out.len >= H2_FRAME_HEAD_BYTES) {
        struct h2_frame f = h2_frame_get(out.ptr);
        const uint8_t *payload = out.ptr + H2_FRAME_HEAD_BYTES;
        if (f.type == H2_RST_STREAM) {
            note(side, "refuse", f.stream_id, h2_get32(payload));
            side->refused = (int)h2_get32(payload);
            if (f.stream_id < STREAMS) /* else promised by a server */
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

/* A stream of our session. */
struct request {
    struct h2_stream stream;
    struct side *side;
};

static inline struct request *request_new(struct side *side, const struct h2_stream_ops *ops)
{
    struct request *r = calloc(1, sizeof(*r));
    assert(r);
    *r = (struct request){.stream = {.ops = ops, .head_only = true}, .side = side};
    return r;
}

static inline struct side *side_of(struct h2_stream *stream)
{
    return ((struct request *)stream)->side;
}

static inline void on_data(struct h2_stream *stream, struct slice bytes)
{
    note_data(side_of(stream), stream->id, bytes);
    h2_stream_consumed(stream, bytes.len);
}

static inline void on_close(struct h2_stream *stream, enum h2_error code)
{
    (void)code;
    note_close(side_of(stream), stream->id);
    free(stream);
}

static inline void keep_fields(struct side *side, const struct h2_headers *headers)
{
    side->fields.len = 0;
    for (uint32_t i = 0; i < headers->count; i++)
        append_field(&side->fields, headers->fields[i].name, headers->fields[i].value);
}

/* Without those that nghttp2 lacks. */
static inline struct h2_limits limits_like(struct h2_limits limits)
{
    limits.continuations_max = limits.empty_data_max = limits.reset_burst = LIMIT;
    limits.settings_burst = LIMIT;
    limits.stream_window = limits.connection_window = H2_WINDOW_DEFAULT;
    return limits;
}

/* -- nghttp2 -- */

static inline int on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame,
                                   void *owner)
{
    struct side *side = owner;
    (void)session, (void)frame;
    side->fields.len = 0;
    return 0;
}

static inline int on_header(nghttp2_session *session, const nghttp2_frame *frame,
                            const uint8_t *name, size_t name_len, const uint8_t *value,
                            size_t value_len, uint8_t flags, void *owner)
{
    struct side *side = owner;
    (void)session, (void)frame, (void)flags;
    append_field(&side->fields, slice_of(name, name_len), slice_of(value, value_len));
    return 0;
}

/* By default such fields are only dropped. */
static inline int on_invalid_header(nghttp2_session *session, const nghttp2_frame *frame,
                                    const uint8_t *name, size_t name_len, const uint8_t *value,
                                    size_t value_len, uint8_t flags, void *owner)
{
    (void)session, (void)frame, (void)name, (void)name_len, (void)value, (void)value_len;
    (void)flags, (void)owner;
    return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
}

static inline int on_chunk(nghttp2_session *session, uint8_t flags, int32_t id,
                           const uint8_t *bytes, size_t len, void *owner)
{
    (void)session, (void)flags;
    note_data(owner, (uint32_t)id, slice_of(bytes, len));
    return 0;
}

static inline int on_stream_close(nghttp2_session *session, int32_t id, uint32_t code, void *owner)
{
    (void)session, (void)code;
    note_close(owner, (uint32_t)id);
    return 0;
}

/* The role decides what a whole frame means and which of the two makes the session. */
typedef int theirs_on_frame(nghttp2_session *, const nghttp2_frame *, void *);
typedef int theirs_new(nghttp2_session **, const nghttp2_session_callbacks *, void *,
                       const nghttp2_option *);

static inline void theirs_start(struct side *side, theirs_new *new, theirs_on_frame *on_frame)
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
    if (new (&side->theirs, callbacks, side, option))
        abort();
    nghttp2_session_callbacks_del(callbacks);
    nghttp2_option_del(option);
}

/* -- Feeding -- */

/* In two pieces, which must not change anything. */
static inline void ours_feed(struct side *side, struct slice bytes)
{
    uint8_t room[H2_FILL_ROOM_MIN];
    size_t half = bytes.len / 2;
    h2_session_feed(side->ours, slice_sub(bytes, 0, half), 1);
    h2_session_feed(side->ours, slice_sub(bytes, half, bytes.len - half), 1);
    while (h2_session_wants_write(side->ours))
        note_output(side, slice_of(room, h2_session_fill(side->ours, room, sizeof(room), 1)));
    h2_session_check(side->ours);
}

static inline void theirs_feed(struct side *side, struct slice bytes)
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

/* -- Comparing -- */

/* A frame, and what both have made from it. */
struct pair {
    const struct h2_frame *frame;
    const uint8_t *payload;
    const struct side *ours, *theirs;
};

/* -- Differences that are intended in both roles, each with what must hold for it -- */

/* A frame with two faults, a wrong stream and a wrong length: either may be named. nghttp2 checks
 * the length of CONTINUATION never, and that of padding and priority only if the stream is open. */
static inline bool is_wrong_length(const struct pair *p)
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

/* RFC 9113 section 6.9: an increment of zero is an error of the stream, and a setting that makes a
 * window too large is one of the connection. For nghttp2 it is the other way round. */
static inline bool is_window(const struct pair *p)
{
    if (p->frame->type == H2_WINDOW_UPDATE && p->frame->stream_id)
        return p->ours->refused == H2_PROTOCOL_ERROR && p->theirs->failed == H2_PROTOCOL_ERROR;
    return p->frame->type == H2_SETTINGS && p->ours->failed == H2_FLOW_CONTROL_ERROR &&
           p->theirs->refused == H2_FLOW_CONTROL_ERROR;
}

/* Only nghttp2 refuses unknown values of the settings 8 and 9 and an acknowledgement of nothing; of
 * a setting that is repeated it looks only at the last value. */
static inline bool is_setting(const struct pair *p)
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

/* -- Running -- */

/* Whether a difference is intended. */
typedef bool frames_by_design(const struct pair *pair);

static inline void print_side(const char *name, const struct side *side)
{
    fprintf(stderr, "%s: fails %d, refuses %d, closes %x\n%.*s", name, side->failed, side->refused,
            side->closed, SLICE_ARGS(buf_slice(&side->events)));
}

static inline bool is_same(const struct side *ours, const struct side *theirs)
{
    if (ours->failed != NONE || theirs->failed != NONE)
        return ours->failed == theirs->failed;
    return ours->closed == theirs->closed &&
           slice_equal(buf_slice(&ours->events), buf_slice(&theirs->events));
}

/* Ends the process if they differ. */
static inline void compare(frames_by_design *by_design, const struct h2_frame *frame,
                           const uint8_t *payload, const struct side *ours,
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

static inline void side_begin(struct side *side)
{
    side->events.len = 0;
    side->closed = side->data_of = 0;
    side->opened = false;
    side->refused = side->failed = NONE;
}

/* The next frame that the input describes. */
static inline struct h2_frame next_frame(struct slice *input, uint8_t *to)
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
static inline bool is_partial(const struct h2_frame *frame)
{
    return (frame->type == H2_HEADERS || frame->type == H2_CONTINUATION) &&
           !(frame->flags & H2_FLAG_END_HEADERS);
}

/* nghttp2 decodes a header block before it is complete. What it refuses early is completed for us.
 */
static inline void complete_block(struct side *ours, uint32_t id)
{
    uint8_t end[H2_FRAME_HEAD_BYTES];
    h2_frame_put(end, 0, H2_CONTINUATION, H2_FLAG_END_HEADERS, id);
    ours_feed(ours, slice_of(end, sizeof(end)));
}

/* Gives one frame to both. False: nothing can be compared after it. */
static inline bool step(struct side *ours, struct side *theirs, struct h2_frame frame,
                        const uint8_t *bytes, frames_by_design *by_design)
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
    compare(by_design, &frame, bytes + H2_FRAME_HEAD_BYTES, ours, theirs);
    bool goes_on = is_same(ours, theirs) && ours->failed == NONE;
    side_begin(ours);
    side_begin(theirs);
    return goes_on;
}

static inline void side_fini(struct side *side)
{
    h2_session_free(side->ours);
    nghttp2_session_del(side->theirs);
    buf_fini(&side->events);
    buf_fini(&side->fields);
}

/* Gives both the bytes of the peer's hello, then all frames that the input describes, and ends
 * both.
 */
static inline void run(struct side *ours, struct side *theirs, struct slice hello,
                       struct slice input, frames_by_design *by_design)
{
    static uint8_t bytes[FRAME_ROOM];
    ours_feed(ours, hello);
    theirs_feed(theirs, hello);
    side_begin(ours);
    side_begin(theirs);
    for (bool goes_on = true; goes_on && input.len >= 4;) {
        struct h2_frame frame = next_frame(&input, bytes);
        goes_on = step(ours, theirs, frame, bytes, by_design);
    }
    side_fini(ours);
    side_fini(theirs);
}

#endif
