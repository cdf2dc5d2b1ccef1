/* For tests of a session: feeds it a client's bytes and collects its output. */
#ifndef VIGIL_WIRE_H2_SESSION_FIXTURE_TEST_H
#define VIGIL_WIRE_H2_SESSION_FIXTURE_TEST_H

#include "wire/h2/answer_test.h"

static inline void start(struct fixture *f)
{
    assert_int_equal(h2_session_new(&f->limits, &session_ops, f, NULL, f->now, &f->session), ST_OK);
}

static inline int setup(void **state)
{
    fx = calloc(1, sizeof(*fx));
    fx->limits = H2_LIMITS_DEFAULT;
    fx->now = H2_SECOND_NS;
    fx->reply = 10;
    *state = fx;
    test_hello(&fx->in);
    return 0;
}

static inline int teardown(void **state)
{
    struct fixture *f = *state;
    h2_session_free(f->session);
    assert_int_equal(f->opened, f->closed);
    buf_fini(&f->in);
    buf_fini(&f->out);
    free(f);
    return 0;
}

/* Feeds what was written so far, in pieces of `step` bytes, and collects the output. */
static inline void feed_in(struct fixture *f, size_t step)
{
    if (!f->session)
        start(f);
    test_feed(f->session, &f->in, step, f->now);
}

static inline void drain(struct fixture *f)
{
    test_drain(f->session, &f->out, f->now);
}

static inline void exchange(struct fixture *f)
{
    feed_in(f, SIZE_MAX / 2);
    drain(f);
}

static inline struct slice out_of(const struct fixture *f)
{
    return buf_slice(&f->out);
}

static inline void request(struct fixture *f, uint32_t id, uint8_t flags)
{
    test_headers(&f->in, id, flags, SLICE_LITERAL(TEST_REQUEST));
    if (id / 2 < STREAMS_MAX) {
        feed_in(f, SIZE_MAX / 2);
        f->by_id[id / 2] = f->last;
    }
}

#endif
