#include "tier/link/link_private.h"

#include "base/buf.h"
#include "io/loop.h"

#include <stdlib.h>

/*
 * Drawn in link.h. One allocation with the texts of the request; the answer has its own.
 */
struct tier_call_state {
    struct tier_link *link;
    struct tier_call *call;
    struct slice method, target, body;
    struct credentials_waiter waiter;
    struct pool_request request;
    uint64_t generation; /* that of the credentials that were sent */
    unsigned code;       /* 0: no head has arrived */
    bool repeated;       /* after a 401 */
    struct buf answer;
    struct timer deadline;
    uint8_t bytes[];
};

static void state_free(struct tier_call_state *s)
{
    loop_timer_cancel(s->link->loop, &s->deadline);
    credentials_waiter_cancel(&s->waiter);
    pool_request_cancel(&s->request);
    buf_fini(&s->answer);
    s->link->calls--;
    /* Tokens that are reviewed are in the body. */
    explicit_bzero(s->bytes, s->method.len + s->target.len + s->body.len);
    free(s);
}

/* The call may be gone afterwards. */
static void finish(struct tier_call_state *s, unsigned code, const char *reason)
{
    struct tier_call *call = s->call;
    struct buf answer = s->answer;
    s->answer = (struct buf){0};
    call->state = NULL;
    call->connection = code ? s->request.connection : 0;
    state_free(s);
    call->done(call, code, code ? buf_slice(&answer) : SLICE_EMPTY, reason);
    buf_fini(&answer);
}

static void on_deadline(struct timer *timer)
{
    finish(CONTAINER_OF(timer, struct tier_call_state, deadline), 0,
           "the kube-apiserver has not answered in time");
}

/* -- The answer -- */

static void on_head(struct pool_request *request, unsigned status, const struct http_field *fields,
                    size_t count)
{
    struct tier_call_state *s = CONTAINER_OF(request, struct tier_call_state, request);
    (void)fields;
    (void)count;
    s->code = status;
}

static void on_body(struct pool_request *request, struct slice bytes)
{
    struct tier_call_state *s = CONTAINER_OF(request, struct tier_call_state, request);
    if (bytes.len > TIER_CALL_BYTES_MAX - s->answer.len)
        finish(s, 0, "the answer of the kube-apiserver is too long");
    else if (buf_append(&s->answer, bytes) != ST_OK)
        finish(s, 0, "out of memory");
}

static void send_call(struct tier_call_state *s);

static void on_end(struct pool_request *request, enum status status, const char *reason)
{
    struct tier_call_state *s = CONTAINER_OF(request, struct tier_call_state, request);
    if (status != ST_OK) {
        s->call->unreached = request->reached == POOL_REQUEST_UNREACHED;
        finish(s, 0, reason);
    } else if (s->code == 401 && credentials_refused(s->link->credentials, s->generation) &&
               !s->repeated) {
        /* A token may have expired: an exec plugin or a file has another one. */
        s->repeated = true;
        s->code = 0;
        s->answer.len = 0;
        send_call(s);
    } else {
        finish(s, s->code, "");
    }
}

static const struct pool_request_ops request_ops = {
    .on_head = on_head,
    .on_body = on_body,
    .on_end = on_end,
};

/* -- Sending -- */

static enum status send_with(struct tier_call_state *s, struct slice authorization)
{
    struct tier_link *link = s->link;
    struct http_field fields[] = {
        {SLICE_LITERAL("user-agent"), slice_from_text(link->user_agent)},
        {SLICE_LITERAL("accept"), SLICE_LITERAL("application/json")},
        {SLICE_LITERAL("content-type"), SLICE_LITERAL("application/json")},
        {SLICE_LITERAL("authorization"), authorization},
    };
    struct pool_request_params params = {
        .method = s->method,
        .target = s->target,
        .fields = fields,
        .field_count = COUNT_OF(fields) - (authorization.len ? 0 : 1),
        .body = s->body,
        .borrows_body = true,
    };
    s->request.ops = &request_ops;
    s->generation = credentials_generation(link->credentials);
    return http_pool_start(link->reviews, &s->request, &params);
}

static const char *fault_text(enum status status)
{
    return status == ST_NOMEM ? "out of memory"
                              : "the tier's credentials cannot be sent, or it is being stopped";
}

static void on_credentials(struct credentials_waiter *waiter, enum status status,
                           struct slice authorization, const struct error *error)
{
    struct tier_call_state *s = CONTAINER_OF(waiter, struct tier_call_state, waiter);
    const char *reason = error ? error->text : "";
    if (status == ST_OK) {
        status = send_with(s, authorization);
        reason = fault_text(status);
    }
    if (status != ST_OK)
        finish(s, 0, reason);
}

/* Or waits for an exec plugin. */
static enum status authorize(struct tier_call_state *s, struct error *error)
{
    struct slice authorization;
    s->waiter.ready = on_credentials;
    enum status status = credentials_get(s->link->credentials, &s->waiter, &authorization, error);
    if (status == ST_AGAIN)
        return ST_OK;
    return status == ST_OK ? send_with(s, authorization) : status;
}

/* Again, after an answer. */
static void send_call(struct tier_call_state *s)
{
    struct error error;
    enum status status = authorize(s, &error);
    if (status != ST_OK)
        finish(s, 0, fault_text(status));
}

static struct slice put(uint8_t **at, struct slice bytes)
{
    uint8_t *copy = *at;
    slice_copy(copy, bytes);
    *at += bytes.len;
    return slice_of(copy, bytes.len);
}

enum status tier_call_start(struct tier_link *link, struct tier_call *call, const char *method,
                            const char *path, struct slice body, int64_t timeout_ns)
{
    struct slice prefix = link->path_prefix;
    size_t bytes = strlen(method) + prefix.len + strlen(path) + body.len;
    struct error error;
    assert(!call->state);
    struct tier_call_state *s = calloc(1, sizeof(*s) + bytes);
    if (!s)
        return ST_NOMEM;
    uint8_t *at = s->bytes;
    s->link = link;
    s->call = call;
    call->unreached = false;
    s->method = put(&at, slice_from_text(method));
    s->target = put(&at, prefix);
    s->target.len += put(&at, slice_from_text(path)).len;
    s->body = put(&at, body);
    s->deadline.fn = on_deadline;
    link->calls++;
    enum status status = authorize(s, &error);
    if (status != ST_OK) {
        state_free(s);
        return status;
    }
    loop_timer_set(link->loop, &s->deadline, clock_add(loop_now_ns(link->loop), timeout_ns));
    call->state = s;
    return ST_OK;
}

void tier_call_cancel(struct tier_call *call)
{
    struct tier_call_state *s = TAKE(call->state);
    if (s)
        state_free(s);
}
