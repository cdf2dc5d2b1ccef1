/* For tests of a client's session: requests of a given size, and a record of what became of them.
 */
#ifndef VIGIL_WIRE_H2_REQUEST_TEST_H
#define VIGIL_WIRE_H2_REQUEST_TEST_H

#include "wire/h2/client_test.h"
#include "wire/h2/hpack.h"
#include "wire/h2/session.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* ":status 200" */
#define TEST_RESPONSE "\x88"
#define TEST_TRAILERS "\0\1t\1v"

enum { REQUESTS_MAX = 4096 };

struct request {
    struct h2_stream stream;
    struct client_fixture *fixture;
    uint32_t id;
    size_t body;      /* bytes that are left to send */
    bool keeps_open;  /* parks instead of ending the request */
    bool reset_early; /* reset within on_headers */
    bool reset_late;  /* reset within on_data */
    size_t heads, received;
    unsigned status;
    bool ended; /* on_headers said so */
    size_t closed;
    enum h2_error code;
    enum h2_ended_by ended_by;
    bool unprocessed;
};

struct client_fixture {
    struct h2_limits limits;
    struct h2_session *session;
    struct buf in, out;
    int64_t now;
    size_t outputs, rooms, goaways;
    enum h2_error goaway_code;
    char goaway_text[64];
    size_t open_on_room; /* requests to open within on_room */
    bool open_on_close;  /* try to open another one within on_close */
    enum status opened_on_close;
    struct request *requests[REQUESTS_MAX]; /* in the order in which they were opened */
    size_t count;
};

static inline void request_on_headers(struct h2_stream *stream, struct h2_headers *headers,
                                      bool ended)
{
    struct request *r = (struct request *)stream;
    assert_false(r->ended);
    r->ended = ended;
    if (r->heads++ == 0)
        r->status = headers->status;
    if (r->reset_early)
        h2_stream_reset(stream, H2_CANCEL);
}

static inline void request_on_data(struct h2_stream *stream, struct slice bytes)
{
    struct request *r = (struct request *)stream;
    assert_true(r->heads == 1);
    r->received += bytes.len;
    h2_stream_consumed(stream, bytes.len);
    if (r->reset_late)
        h2_stream_reset(stream, H2_CANCEL);
}

static inline size_t request_head(struct h2_stream *stream, uint8_t *dst, size_t room)
{
    (void)stream;
    struct slice block = SLICE_LITERAL(TEST_REQUEST);
    if (room < block.len)
        return 0;
    slice_copy(dst, block);
    return block.len;
}

static inline enum h2_fill request_data(struct h2_stream *stream, uint8_t *dst, size_t room,
                                        size_t *ret_len)
{
    struct request *r = (struct request *)stream;
    *ret_len = size_min(room, r->body);
    memset(dst, 'r', *ret_len);
    r->body -= *ret_len;
    if (r->body)
        return H2_FILL_MORE;
    return r->keeps_open ? H2_FILL_PARKED : H2_FILL_END;
}

static inline struct request *request_new(struct client_fixture *f, size_t body);

/* The session does not touch the stream afterwards: its bytes are overwritten to show it. */
static inline void request_on_close(struct h2_stream *stream, enum h2_error code)
{
    struct request *r = (struct request *)stream;
    struct client_fixture *f = r->fixture;
    r->closed++;
    r->code = code;
    r->ended_by = stream->ended_by;
    r->unprocessed = stream->unprocessed;
    memset(stream, 0xff, sizeof(*stream));
    if (f->open_on_close)
        f->opened_on_close = h2_session_open(f->session, &request_new(f, 0)->stream);
}

static const struct h2_stream_ops request_ops = {
    .on_headers = request_on_headers,
    .on_data = request_on_data,
    .on_close = request_on_close,
    .head = request_head,
    .data = request_data,
};

static inline struct request *request_new(struct client_fixture *f, size_t body)
{
    struct request *r = calloc(1, sizeof(*r));
    assert_non_null(r);
    assert_true(f->count < REQUESTS_MAX);
    f->requests[f->count++] = r;
    *r = (struct request){.stream.ops = &request_ops, .fixture = f, .body = body};
    return r;
}

static inline struct request *request_open(struct client_fixture *f, size_t body)
{
    struct request *r = request_new(f, body);
    assert_int_equal(h2_session_open(f->session, &r->stream), ST_OK);
    r->id = r->stream.id;
    return r;
}

static inline void client_on_output(void *owner)
{
    ((struct client_fixture *)owner)->outputs++;
}

static inline void client_on_room(void *owner)
{
    struct client_fixture *f = owner;
    f->rooms++;
    for (; f->open_on_room; f->open_on_room--)
        request_open(f, 0);
}

static inline void client_on_goaway(void *owner, enum h2_error code, struct slice text)
{
    struct client_fixture *f = owner;
    f->goaways++;
    f->goaway_code = code;
    assert_true(text.len < sizeof(f->goaway_text));
    slice_copy(f->goaway_text, text);
    f->goaway_text[text.len] = 0;
}

static const struct h2_session_ops client_ops = {
    .on_output = client_on_output,
    .on_room = client_on_room,
    .on_goaway = client_on_goaway,
};

static inline void client_init(struct client_fixture *f)
{
    *f = (struct client_fixture){.limits = H2_CLIENT_LIMITS_DEFAULT, .now = H2_SECOND_NS};
}

static inline void client_start(struct client_fixture *f)
{
    assert_int_equal(h2_session_new_client(&f->limits, &client_ops, f, NULL, f->now, &f->session),
                     ST_OK);
}

/* Every request that was opened was closed exactly once. */
static inline void client_stop(struct client_fixture *f)
{
    h2_session_free(f->session);
    f->session = NULL;
    for (size_t i = 0; i < f->count; i++) {
        assert_int_equal(f->requests[i]->closed, f->requests[i]->id ? 1 : 0);
        free(f->requests[i]);
    }
    f->count = 0;
    f->in.len = f->out.len = 0;
}

static inline void client_feed(struct client_fixture *f, size_t step)
{
    test_feed(f->session, &f->in, step, f->now);
}

static inline void client_drain(struct client_fixture *f)
{
    test_drain(f->session, &f->out, f->now);
}

/* Writes what waits, feeds what the test has written, and writes again. */
static inline void client_exchange(struct client_fixture *f)
{
    client_drain(f);
    client_feed(f, SIZE_MAX / 2);
    client_drain(f);
}

/* The frames behind the preface. */
static inline struct slice client_frames(const struct client_fixture *f)
{
    struct slice preface = H2_PREFACE, out = buf_slice(&f->out);
    assert_true(out.len >= preface.len);
    return slice_sub(out, preface.len, out.len - preface.len);
}

static inline int client_setup(void **state)
{
    struct client_fixture *f = malloc(sizeof(*f));
    client_init(f);
    client_start(f);
    test_frame(&f->in, H2_SETTINGS, 0, 0, SLICE_EMPTY);
    test_frame(&f->in, H2_SETTINGS, H2_FLAG_ACK, 0, SLICE_EMPTY);
    *state = f;
    return 0;
}

static inline int client_teardown(void **state)
{
    struct client_fixture *f = *state;
    client_stop(f);
    buf_fini(&f->in);
    buf_fini(&f->out);
    free(f);
    return 0;
}

/* ---- what a server sends ---- */

static inline void answer_headers(struct client_fixture *f, const struct request *r, uint8_t flags)
{
    test_headers(&f->in, r->id, flags, SLICE_LITERAL(TEST_RESPONSE));
}

static inline void answer_trailers(struct client_fixture *f, const struct request *r)
{
    test_headers(&f->in, r->id, H2_FLAG_END_STREAM, SLICE_LITERAL(TEST_TRAILERS));
}

static inline void reset_by_server(struct client_fixture *f, const struct request *r,
                                   enum h2_error code)
{
    uint8_t payload[4];
    h2_put32(payload, code);
    test_frame(&f->in, H2_RST_STREAM, 0, r->id, slice_of(payload, 4));
}

static inline void goaway(struct client_fixture *f, uint32_t last_id, enum h2_error code,
                          const char *text)
{
    uint8_t payload[64];
    uint8_t *end = h2_put32(h2_put32(payload, last_id), code);
    slice_copy(end, slice_from_text(text));
    test_frame(&f->in, H2_GOAWAY, 0, 0, slice_of(payload, 8 + strlen(text)));
}

#endif
