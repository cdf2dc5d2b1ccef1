/* A fake of upstream.h, for tests of its users: calls stay until the test answers them, in any
 * order. One test at a time. */
#ifndef VIGIL_MIRROR_LINK_FAKE_UPSTREAM_TEST_H
#define VIGIL_MIRROR_LINK_FAKE_UPSTREAM_TEST_H

#include "base/buf.h"
#include "base/container/list.h"
#include "codec/pb/rpc.pb.h"
#include "io/loop.h"
#include "mirror/link/kept_answers.h"
#include "mirror/link/upstream.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

struct upstream_call {
    struct upstream_request request;
    const struct upstream_ops *ops;
    void *user;
    struct buf token; /* as it was at the start */
    struct buf sent;
    bool half_closed;
    bool too_long;
    struct list in_cluster;
};

static struct {
    struct list calls; /* not answered, the oldest first */
    size_t count;      /* number of those */
    size_t started;
    enum status start_fails;
    struct kept_answer *kept; /* holds the answer before */
} cluster;

static inline void cluster_begin(void)
{
    list_init(&cluster.calls);
    cluster.count = cluster.started = 0;
    cluster.start_fails = ST_OK;
}

static inline void call_drop(struct upstream_call *call)
{
    list_remove(&call->in_cluster);
    cluster.count--;
    buf_fini(&call->token);
    buf_fini(&call->sent);
    free(call);
}

enum status upstream_start(struct upstream *upstream, const struct upstream_request *request,
                           const struct upstream_ops *ops, void *user,
                           struct upstream_call **ret_call)
{
    (void)upstream;
    if (cluster.start_fails != ST_OK)
        return cluster.start_fails;
    struct upstream_call *call = calloc(1, sizeof(*call));
    assert_non_null(call);
    call->request = *request;
    call->ops = ops;
    call->user = user;
    assert_int_equal(buf_append(&call->token, request->caller.token), ST_OK);
    list_push_back(&cluster.calls, &call->in_cluster);
    cluster.count++;
    cluster.started++;
    *ret_call = call;
    return ST_OK;
}

void *upstream_call_user(const struct upstream_call *call)
{
    return call->user;
}

void upstream_keep_answer(struct upstream_call *call, struct kept_answer *kept)
{
    assert_true(call->request.keeps);
    cluster.kept = kept;
}

bool upstream_call_is_too_long(const struct upstream_call *call)
{
    return call->too_long;
}

enum status upstream_send(struct upstream_call *call, struct slice message)
{
    assert_false(call->half_closed);
    return buf_append(&call->sent, message);
}

void upstream_half_close(struct upstream_call *call)
{
    call->half_closed = true;
}

void upstream_cancel(struct upstream_call *call)
{
    call_drop(call);
}

/* -- For tests -- */

/* The i-th call that is not answered. */
static inline struct upstream_call *call_at(size_t i)
{
    struct list *link = cluster.calls.next;
    assert_true(i < cluster.count);
    for (; i; i--)
        link = link->next;
    return LIST_ENTRY(link, struct upstream_call, in_cluster);
}

/* The request is borrowed from the call. */
static inline struct pb_range_request range_of(struct upstream_call *call)
{
    struct pb_range_request request;
    struct arena arena;
    assert_true(call->half_closed);
    assert_true(slice_equal(call->request.path, SLICE_LITERAL(PB_KV_RANGE_PATH)));
    arena_init(&arena, NULL, 0, SIZE_MAX);
    assert_int_equal(pb_decode(&pb_range_request_table, buf_slice(&call->sent), &arena, &request),
                     ST_OK);
    arena_fini(&arena);
    return request;
}

/* The caller's token must not have changed while the call was under way. */
static inline void call_end(struct upstream_call *call, enum grpc_code code, const char *text)
{
    assert_true(slice_equal(call->request.caller.token, buf_slice(&call->token)));
    call->ops->on_end(call, code, slice_from_text(text));
    call_drop(call);
}

static inline void call_fail(struct upstream_call *call, enum status status)
{
    call_end(call, status_code(status), status_text(status));
}

static inline void call_answer(struct upstream_call *call, const struct pb_range_response *response)
{
    struct buf message = {0};
    assert_int_equal(pb_append(&pb_range_response_table, response, &message), ST_OK);
    call->too_long = call->request.receive_max && message.len > call->request.receive_max;
    if (!call->too_long)
        call->ops->on_message(call, buf_slice(&message));
    buf_fini(&message);
    call_end(call, call->too_long ? GRPC_RESOURCE_EXHAUSTED : GRPC_OK, "");
}

static inline void call_answer_revision(struct upstream_call *call, int64_t revision)
{
    struct pb_response_header header = {.revision = revision};
    call_answer(call, &(struct pb_range_response){.header = &header});
}

#endif
