#include "client/http/http_attempt.h"

#include "client/connect/connection.h"
#include "wire/h2/hpack.h"
#include "wire/h2/stream.h"

#include <stdlib.h>

/* One allocation: the fields, then the bytes of all texts that are copied. */
struct http_attempt_text {
    struct slice method, target, body, upgrade;
    size_t field_count;
    struct http_field fields[];
};

/* -- The copy -- */

static struct slice put(uint8_t **at, struct slice text)
{
    struct slice copy = slice_of(*at, text.len);
    slice_copy(*at, text);
    *at += text.len;
    return copy;
}

static struct http_attempt_text *copy_text(const struct pool_request_params *p)
{
    size_t bytes = p->method.len + p->target.len + p->upgrade.len;
    bytes += p->borrows_body ? 0 : p->body.len;
    for (size_t i = 0; i < p->field_count; i++)
        bytes += p->fields[i].name.len + p->fields[i].value.len;
    size_t before = sizeof(struct http_attempt_text) + p->field_count * sizeof(struct http_field);
    struct http_attempt_text *text = malloc(before + bytes);
    if (!text)
        return NULL;
    uint8_t *at = (uint8_t *)text + before;
    text->method = put(&at, p->method);
    text->target = put(&at, p->target);
    text->upgrade = put(&at, p->upgrade);
    text->body = p->borrows_body ? p->body : put(&at, p->body);
    text->field_count = p->field_count;
    for (size_t i = 0; i < p->field_count; i++) {
        text->fields[i].name = put(&at, p->fields[i].name);
        text->fields[i].value = put(&at, p->fields[i].value);
    }
    return text;
}

/* Checked here and not only when it is sent, so that the owner learns of it at once. */
static bool is_sendable(const struct pool_request_params *p)
{
    /* What describes the connection or the length of the body is for the connection to send. */
    static const char *const ours[] = {
        "host", "content-length",    "connection", "keep-alive", "proxy-connection",
        "te",   "transfer-encoding", "upgrade"};
    for (size_t i = 0; i < p->field_count; i++) {
        struct slice name = p->fields[i].name;
        if (!http1_is_token(name) || !http1_is_field_value(p->fields[i].value))
            return false;
        for (size_t k = 0; k < COUNT_OF(ours); k++)
            if (http_name_equal(name, slice_from_text(ours[k])))
                return false;
    }
    return http1_is_token(p->method) && http1_is_target(p->target) &&
           http1_is_field_value(p->upgrade);
}

/* Our HTTP/2 sends a head in one frame, and what surrounds the texts is short. */
static bool is_long(const struct pool_request_params *p)
{
    size_t bytes = 1024 + p->method.len + p->target.len;
    for (size_t i = 0; i < p->field_count; i++)
        bytes += hpack_literal_bytes(p->fields[i].name, p->fields[i].value);
    return bytes > H2_BLOCK_BYTES_MAX;
}

static bool only_reads(struct slice method)
{
    static const char *const methods[] = {"GET", "HEAD", "OPTIONS", "TRACE"};
    for (size_t i = 0; i < COUNT_OF(methods); i++)
        if (slice_equal(method, slice_from_text(methods[i])))
            return true;
    return false;
}

static enum http_fill fill(struct http_source *source, uint8_t *dst, size_t room, size_t *ret_len)
{
    struct http_attempt *a = CONTAINER_OF(source, struct http_attempt, source);
    enum http_fill more = a->body->fill(a->body, dst, room, ret_len);
    a->taken = a->taken || *ret_len || more == HTTP_FILL_DONE;
    return more;
}

/* -- Life -- */

enum status http_attempt_new(struct pool_request *request, const struct pool_request_params *params,
                             struct http_attempt **ret_attempt)
{
    assert(!params->body.len || (!params->source && !params->upgrade.len));
    if (!is_sendable(params))
        return ST_INVALID;
    struct http_attempt *a = calloc(1, sizeof(*a));
    if (!a)
        return ST_NOMEM;
    a->request = request;
    a->only_reads = only_reads(params->method);
    a->waits = params->waits;
    a->is_alone = params->upgrade.len > 0 || is_long(params);
    a->body = params->source;
    a->body_bytes = params->source_bytes;
    a->source.fill = fill;
    list_init(&a->in_pool);
    a->text = copy_text(params);
    if (!a->text) {
        free(a);
        return ST_NOMEM;
    }
    *ret_attempt = a;
    return ST_OK;
}

void http_attempt_free(struct http_attempt *a)
{
    if (!a)
        return;
    if (a->state == HTTP_ATTEMPT_OVER_HTTP1) {
        http1_client_cancel(&a->http1);
    } else if (a->state == HTTP_ATTEMPT_OVER_HTTP2) {
        http2_client_cancel(&a->http2);
        http2_call_fini(&a->http2);
    }
    list_remove(&a->in_pool);
    free(a->text);
    free(a);
}

/* -- Events; each of them may end and free the attempt -- */

static void answer(struct http_attempt *a, unsigned status, const struct http_field *fields,
                   size_t count)
{
    a->request->reached = POOL_REQUEST_ANSWERED;
    /* A request that was answered is not sent again. */
    free(a->text);
    a->text = NULL;
    a->request->ops->on_head(a->request, status, fields, count);
}

static void end(struct http_attempt *a, bool answered, enum status status, const char *reason)
{
    a->state = HTTP_ATTEMPT_WAITING;
    /* The server said that it did not process the stream, so even a write can be sent again. */
    if (a->ignored)
        a->request->reached = POOL_REQUEST_UNREACHED;
    else if (answered)
        a->request->reached = POOL_REQUEST_ANSWERED;
    a->on_end(a, status, reason);
}

static void on_http1_head(struct http1_call *call, const struct http1_response *response)
{
    struct http_attempt *a = CONTAINER_OF(call, struct http_attempt, http1);
    answer(a, response->status, response->fields, response->field_count);
}

static void on_http1_body(struct http1_call *call, struct slice bytes)
{
    struct http_attempt *a = CONTAINER_OF(call, struct http_attempt, http1);
    a->request->ops->on_body(a->request, bytes);
}

static void on_http1_end(struct http1_call *call, enum status status, const char *reason)
{
    struct http_attempt *a = CONTAINER_OF(call, struct http_attempt, http1);
    end(a, call->answered, status, reason);
}

static void on_http2_head(struct http2_call *call, unsigned status, const struct http_field *fields,
                          size_t field_count)
{
    answer(CONTAINER_OF(call, struct http_attempt, http2), status, fields, field_count);
}

static void on_http2_body(struct http2_call *call, struct slice bytes)
{
    struct http_attempt *a = CONTAINER_OF(call, struct http_attempt, http2);
    a->request->ops->on_body(a->request, bytes);
}

static void on_http2_end(struct http2_call *call, enum status status, const char *reason)
{
    struct http_attempt *a = CONTAINER_OF(call, struct http_attempt, http2);
    bool answered = call->answered;
    a->ignored = call->unprocessed;
    http2_call_fini(call);
    end(a, answered, status, reason);
}

/* -- Sending -- */

static enum status send_http1(struct http_attempt *a, struct http1_client *client,
                              struct slice authority, int64_t now_ns)
{
    static const struct http1_call_ops ops = {on_http1_head, on_http1_body, on_http1_end};
    const struct http_attempt_text *t = a->text;
    struct http1_client_request request = {
        .method = t->method,
        .target = t->target,
        .host = authority,
        .fields = t->fields,
        .field_count = t->field_count,
        .body = t->body,
        .source = a->body ? &a->source : NULL,
        .source_bytes = a->body_bytes,
        .upgrade = t->upgrade,
    };
    a->http1 = (struct http1_call){.ops = &ops, .waits = a->waits};
    TRY(http1_client_start(client, &a->http1, &request, now_ns));
    a->state = HTTP_ATTEMPT_OVER_HTTP1;
    return ST_OK;
}

static enum status send_http2(struct http_attempt *a, struct h2_session *session, bool secure,
                              struct slice authority)
{
    static const struct http2_call_ops ops = {on_http2_head, on_http2_body, on_http2_end};
    const struct http_attempt_text *t = a->text;
    struct http2_client_request request = {
        .method = t->method,
        .target = t->target,
        .authority = authority,
        .secure = secure,
        .fields = t->fields,
        .field_count = t->field_count,
        .body = t->body,
        .source = a->body ? &a->source : NULL,
        .source_bytes = a->body_bytes,
    };
    a->http2 = (struct http2_call){.ops = &ops};
    enum status status = http2_client_start(session, &a->http2, &request);
    if (status == ST_OK)
        a->state = HTTP_ATTEMPT_OVER_HTTP2;
    else
        http2_call_fini(&a->http2);
    return status;
}

enum status http_attempt_send(struct http_attempt *a, struct connection *connection,
                              struct slice authority, int64_t now_ns)
{
    assert(a->state == HTTP_ATTEMPT_WAITING && a->text);
    struct h2_session *session = connection_session(connection);
    struct http1_client *client = connection_http1(connection);
    enum status status = ST_CLOSED;
    if (session)
        status = send_http2(a, session, connection_is_secure(connection), authority);
    else if (client)
        status = send_http1(a, client, authority, now_ns);
    TRY(status);
    a->ignored = false;
    a->request->reached = POOL_REQUEST_SENT;
    /* The owner asked for this before the request had a connection. */
    if (a->withheld)
        http_attempt_withhold(a, true, now_ns);
    return ST_OK;
}

void http_attempt_withhold(struct http_attempt *a, bool withhold, int64_t now_ns)
{
    a->withheld = withhold;
    if (a->state == HTTP_ATTEMPT_OVER_HTTP2)
        http2_client_withhold(&a->http2, withhold);
    else if (a->state == HTTP_ATTEMPT_OVER_HTTP1)
        http1_client_withhold(&a->http1, withhold, now_ns);
}

void http_attempt_wake(struct http_attempt *a, int64_t now_ns)
{
    if (a->state == HTTP_ATTEMPT_OVER_HTTP2)
        http2_client_wake(&a->http2);
    else if (a->state == HTTP_ATTEMPT_OVER_HTTP1)
        http1_client_wake(&a->http1, now_ns);
}

void http_attempt_check(const struct http_attempt *a)
{
    assert(a->request->attempt == a);
    assert(a->text || a->request->reached == POOL_REQUEST_ANSWERED);
    assert(a->state != HTTP_ATTEMPT_WAITING || a->text);
    /* A connection that is being made for an upgrade has the attempt already. */
    assert(a->link || a->state == HTTP_ATTEMPT_WAITING);
    assert(a->link ? a->is_alone || a->state != HTTP_ATTEMPT_WAITING : true);
    if (a->state == HTTP_ATTEMPT_OVER_HTTP2)
        http2_call_check(&a->http2);
    else if (a->state == HTTP_ATTEMPT_OVER_HTTP1)
        assert(a->http1.client);
}
