/* For tests of calls from the client's side: calls that record what became of them. */
#ifndef VIGIL_WIRE_GRPC_CLIENT_FIXTURE_TEST_H
#define VIGIL_WIRE_GRPC_CLIENT_FIXTURE_TEST_H

#include "wire/grpc/client.h"
#include "wire/grpc/requests_test.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

enum { RECORDED_CALLS = 512 };

struct recorded_call {
    struct grpc_client_call call;
    struct client_fixture *fixture;
    size_t started, ended;
    size_t messages, bytes;
    uint32_t sum;       /* over all received bytes */
    size_t cancel_at;   /* cancel within on_message when so many messages have arrived */
    size_t withhold_at; /* the same for withholding */
    size_t restarts;    /* start it again within on_end, so often */
    size_t begun;       /* bytes of messages that came in pieces */
    size_t room;        /* refuse longer ones; 0: none */
    bool frees;         /* is freed within on_end */
    size_t refills;     /* queue another message within on_drained, so often */
    enum grpc_code code;
    char text[600];
    bool from_peer, unprocessed;
};

struct client_fixture {
    struct h2_limits limits;
    struct h2_session *session;
    struct grpc_head *head;
    struct grpc_client_request request; /* request of the next call */
    struct buf in, out;
    int64_t now;
    struct recorded_call *calls[RECORDED_CALLS];
    size_t count;
};

static inline void recorded_start(struct recorded_call *r)
{
    struct client_fixture *f = r->fixture;
    enum status status = grpc_client_call_start(&r->call, f->session, &f->request);
    if (status == ST_OK)
        r->started++;
    grpc_client_call_check(&r->call);
}

static inline void recorded_on_message(struct grpc_client_call *call, struct slice message)
{
    struct recorded_call *r = (struct recorded_call *)call;
    assert_true(r->started > r->ended);
    r->messages++;
    r->bytes += message.len;
    for (size_t i = 0; i < message.len; i++)
        r->sum = r->sum * 31 + message.ptr[i];
    if (r->cancel_at == r->messages)
        grpc_client_call_cancel(call);
    else if (r->withhold_at == r->messages)
        grpc_client_call_withhold(call, true);
}

static inline bool recorded_on_begin(struct grpc_client_call *call, size_t len)
{
    struct recorded_call *r = (struct recorded_call *)call;
    assert_int_equal(call->message.len, 0); /* nothing of it is kept yet */
    r->begun += len;
    return !r->room || len <= r->room;
}

static inline void recorded_free(struct recorded_call *r)
{
    grpc_client_call_check(&r->call);
    grpc_client_call_fini(&r->call);
    free(r);
}

static inline void recorded_on_end(struct grpc_client_call *call,
                                   const struct grpc_outcome *outcome)
{
    struct recorded_call *r = (struct recorded_call *)call;
    r->ended++;
    assert_int_equal(r->ended, r->started);
    r->code = outcome->code;
    r->from_peer = outcome->from_peer;
    r->unprocessed = outcome->unprocessed;
    size_t len = size_min(outcome->text.len, sizeof(r->text) - 1);
    slice_copy(r->text, slice_sub(outcome->text, 0, len));
    r->text[len] = 0;
    assert_null(call->stream.session);
    if (r->restarts) {
        r->restarts--;
        recorded_start(r);
    }
    if (r->frees) {
        assert_ptr_equal(r->fixture->calls[r->fixture->count - 1], r);
        r->fixture->count--;
        recorded_free(r);
    }
}

static inline void recorded_on_drained(struct grpc_client_call *call)
{
    struct recorded_call *r = (struct recorded_call *)call;
    if (r->refills) {
        r->refills--;
        assert_int_equal(grpc_client_call_send(call, SLICE_LITERAL("refill")), ST_OK);
    }
}

static const struct grpc_client_ops recorded_ops = {
    .on_message = recorded_on_message,
    .on_begin = recorded_on_begin,
    .on_end = recorded_on_end,
    .on_drained = recorded_on_drained,
};

static const struct h2_session_ops recorded_session_ops = {0};

static inline struct recorded_call *recorded_new(struct client_fixture *f)
{
    struct recorded_call *r = calloc(1, sizeof(*r));
    assert_non_null(r);
    assert_true(f->count < RECORDED_CALLS);
    f->calls[f->count++] = r;
    r->fixture = f;
    r->call.ops = &recorded_ops;
    return r;
}

static inline struct recorded_call *recorded_call(struct client_fixture *f, const char *path)
{
    struct recorded_call *r = recorded_new(f);
    f->request.path = slice_from_text(path);
    recorded_start(r);
    assert_int_equal(r->started, 1);
    return r;
}

static inline void client_init(struct client_fixture *f)
{
    struct http_field token = {SLICE_LITERAL("token"), SLICE_LITERAL("secret")};
    struct grpc_head_fields fields = {
        .authority = SLICE_LITERAL("localhost:2379"),
        .user_agent = SLICE_LITERAL("test/1"),
        .metadata = &token,
        .metadata_count = 1,
    };
    *f = (struct client_fixture){.limits = H2_CLIENT_LIMITS_DEFAULT, .now = H2_SECOND_NS};
    assert_int_equal(grpc_head_new(&fields, &f->head), ST_OK);
    f->request = (struct grpc_client_request){
        .head = f->head, .deadline_ns = INT64_MAX, .receive_max = 4 * 1024 * 1024};
}

static inline void client_start(struct client_fixture *f)
{
    assert_int_equal(
        h2_session_new_client(&f->limits, &recorded_session_ops, f, NULL, f->now, &f->session),
        ST_OK);
}

/* Every call that was started has ended exactly once. */
static inline void client_stop(struct client_fixture *f)
{
    h2_session_free(f->session);
    f->session = NULL;
    for (size_t i = 0; i < f->count; i++) {
        struct recorded_call *r = f->calls[i];
        assert_int_equal(r->started, r->ended);
        recorded_free(r);
    }
    f->count = 0;
    f->in.len = f->out.len = 0;
}

static inline void client_fini(struct client_fixture *f)
{
    client_stop(f);
    assert_int_equal(f->head->refs, 1);
    grpc_head_unref(f->head);
    buf_fini(&f->in);
    buf_fini(&f->out);
}

static inline void client_check(const struct client_fixture *f)
{
    h2_session_check(f->session);
    for (size_t i = 0; i < f->count; i++)
        grpc_client_call_check(&f->calls[i]->call);
}

#endif
