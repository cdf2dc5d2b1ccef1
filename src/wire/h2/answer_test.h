/* For tests of a session: streams that answer with a given number of bytes, and a log of events. */
#ifndef VIGIL_WIRE_H2_ANSWER_TEST_H
#define VIGIL_WIRE_H2_ANSWER_TEST_H

#include "wire/h2/client_test.h"
#include "wire/h2/hpack.h"
#include "wire/h2/session.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { STREAMS_MAX = 4096 };

/* A stream that answers with `reply` bytes once the peer has half-closed. */
struct answer {
    struct h2_stream stream;
    size_t reply;
    size_t received;
    bool ended;
};

struct fixture {
    struct h2_limits limits;
    struct h2_session *session;
    struct buf in, out;
    int64_t now;
    size_t reply; /* reply of the next stream */
    bool bulk;
    bool hold; /* do not answer when the peer half-closes */
    size_t opened, closed, outputs;
    enum h2_error closed_code;
    struct answer *last;
    struct answer *by_id[STREAMS_MAX];
};
static struct fixture *fx; /* fixture of the current test */

static inline void on_data(struct h2_stream *stream, struct slice bytes)
{
    ((struct answer *)stream)->received += bytes.len;
    h2_stream_consumed(stream, bytes.len);
}

static inline void on_end(struct h2_stream *stream)
{
    ((struct answer *)stream)->ended = true;
    if (!fx->hold)
        h2_stream_ready(stream);
}

static inline void on_close(struct h2_stream *stream, enum h2_error code)
{
    fx->closed++;
    fx->closed_code = code;
    if (stream->id / 2 < STREAMS_MAX)
        fx->by_id[stream->id / 2] = NULL;
    free(stream);
}

static inline size_t head(struct h2_stream *stream, uint8_t *dst, size_t room)
{
    (void)stream;
    return room < 16 ? 0 : (size_t)(hpack_put_status(dst, 200) - dst);
}

static inline enum h2_fill data(struct h2_stream *stream, uint8_t *dst, size_t room,
                                size_t *ret_len)
{
    struct answer *a = (struct answer *)stream;
    *ret_len = size_min(room, a->reply);
    memset(dst, 'd', *ret_len);
    a->reply -= *ret_len;
    return a->reply ? H2_FILL_MORE : H2_FILL_END;
}

static inline size_t trailers(struct h2_stream *stream, uint8_t *dst, size_t room)
{
    (void)stream;
    if (room < 32)
        return 0;
    return (size_t)(hpack_put_literal(dst, SLICE_LITERAL("t"), SLICE_LITERAL("0")) - dst);
}

static const struct h2_stream_ops answer_ops = {
    .on_data = on_data,
    .on_end = on_end,
    .on_close = on_close,
    .head = head,
    .data = data,
    .trailers = trailers,
};

static inline struct h2_stream *on_open(void *owner, struct h2_headers *headers, int64_t now_ns)
{
    struct fixture *f = owner;
    (void)headers;
    (void)now_ns;
    struct answer *a = calloc(1, sizeof(*a));
    assert_non_null(a);
    a->stream.ops = &answer_ops;
    a->stream.bulk = f->bulk;
    a->reply = f->reply;
    f->opened++;
    f->last = a;
    return &a->stream;
}

static inline void on_output(void *owner)
{
    ((struct fixture *)owner)->outputs++;
}

static const struct h2_session_ops session_ops = {.on_open = on_open, .on_output = on_output};

#endif
