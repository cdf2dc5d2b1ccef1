#include "wire/http/http1/client.h"

#include "base/buf.h"
#include "base/clock.h"
#include "wire/http/http1/body.h"

#include <stdlib.h>

enum http1_client_state {
    HTTP1_CLIENT_IDLE,
    HTTP1_CLIENT_WAITING,
    HTTP1_CLIENT_RECEIVING,
    HTTP1_CLIENT_OVER,
};

#define TO(state) (1u << HTTP1_CLIENT_##state)

/* Drawn in client.h. */
static const uint8_t moves[] = {
    [HTTP1_CLIENT_IDLE] = TO(WAITING) | TO(OVER),
    [HTTP1_CLIENT_WAITING] = TO(RECEIVING) | TO(OVER),
    [HTTP1_CLIENT_RECEIVING] = TO(IDLE) | TO(OVER),
    [HTTP1_CLIENT_OVER] = 0,
};

struct http1_client {
    enum http1_client_state state;
    const struct http1_client_limits *limits; /* borrowed */
    struct http1_client_hooks hooks;
    struct http1_call *call; /* borrowed; under way from waiting to the end of receiving */
    bool inside;             /* within feed, fill or tick: on_output is not called */
    bool bodiless;           /* the request was HEAD */
    bool last;               /* the connection is not kept after the current call */
    bool withheld;           /* the body of the current call is not read */
    struct buf out;          /* bytes of the request; those before out_sent were sent */
    size_t out_sent;
    struct buf in; /* an incomplete head or line */
    size_t head_seen;
    size_t interim_bytes; /* size of interim responses to the current request */
    struct http1_body body;
    int64_t now_ns;
    int64_t since_ns; /* the start of the request, or the latest byte of the body */
    enum status status;
    const char *reason;
};

static void move(struct http1_client *c, enum http1_client_state next)
{
    assert(moves[c->state] & (1u << next));
    c->state = next;
}

enum status http1_client_new(const struct http1_client_limits *limits,
                             struct http1_client_hooks hooks, struct http1_client **ret_client)
{
    struct http1_client *c = calloc(1, sizeof(*c));
    if (!c)
        return ST_NOMEM;
    c->limits = limits;
    c->hooks = hooks;
    c->reason = "";
    *ret_client = c;
    return ST_OK;
}

void http1_client_free(struct http1_client *c)
{
    if (!c)
        return;
    http1_client_lost(c, "the connection was freed");
    buf_fini(&c->in);
    buf_fini(&c->out);
    free(c);
}

/* -- The end of a call -- */

static struct http1_call *take_call(struct http1_client *c)
{
    struct http1_call *call = c->call;
    c->call = NULL;
    c->withheld = false;
    if (call)
        call->client = NULL;
    return call;
}

static void drop_buffers(struct http1_client *c)
{
    buf_fini(&c->in);
    buf_fini(&c->out);
    c->out_sent = 0;
}

static void fail(struct http1_client *c, enum status status, const char *reason)
{
    if (c->state == HTTP1_CLIENT_OVER)
        return;
    move(c, HTTP1_CLIENT_OVER);
    c->status = status;
    c->reason = reason;
    struct http1_call *call = take_call(c);
    if (call)
        call->ops->on_end(call, status, reason);
}

static void complete(struct http1_client *c)
{
    struct http1_call *call = take_call(c);
    /* A response to half a request: what would follow on this connection is unclear. */
    if (c->last || c->out.len) {
        move(c, HTTP1_CLIENT_OVER);
        c->status = ST_CLOSED;
        c->reason = "the connection ends with its last response";
    } else {
        move(c, HTTP1_CLIENT_IDLE);
    }
    call->ops->on_end(call, ST_OK, "");
}

void http1_client_cancel(struct http1_call *call)
{
    struct http1_client *c = call->client;
    if (!c)
        return;
    (void)take_call(c);
    fail(c, ST_CLOSED, "the request was cancelled");
    if (!c->inside)
        drop_buffers(c);
    if (!c->inside && c->hooks.on_output)
        c->hooks.on_output(c->hooks.owner);
}

void http1_client_lost(struct http1_client *c, const char *reason)
{
    fail(c, ST_CLOSED, reason);
    if (!c->inside)
        drop_buffers(c);
}

void http1_client_shutdown(struct http1_client *c)
{
    c->last = true;
    if (c->state == HTTP1_CLIENT_IDLE)
        fail(c, ST_CLOSED, "shut down");
}

/* -- Requests -- */

static bool is_sendable(const struct http1_client_request *r)
{
    for (size_t i = 0; i < r->field_count; i++) {
        if (!http1_is_token(r->fields[i].name) || !http1_is_field_value(r->fields[i].value))
            return false;
    }
    return http1_is_token(r->method) && http1_is_target(r->target) && http1_is_field_value(r->host);
}

static enum status append_field(struct buf *out, struct slice name, struct slice value)
{
    TRY(buf_append(out, name));
    TRY(buf_append(out, SLICE_LITERAL(": ")));
    TRY(buf_append(out, value));
    return buf_append(out, SLICE_LITERAL("\r\n"));
}

static enum status append_request(struct buf *out, const struct http1_client_request *r)
{
    TRY(buf_append(out, r->method));
    TRY(buf_append(out, SLICE_LITERAL(" ")));
    TRY(buf_append(out, r->target));
    TRY(buf_append(out, SLICE_LITERAL(" HTTP/1.1\r\n")));
    TRY(append_field(out, SLICE_LITERAL("Host"), r->host));
    for (size_t i = 0; i < r->field_count; i++)
        TRY(append_field(out, r->fields[i].name, r->fields[i].value));
    if (r->body.len)
        TRY(buf_append_format(out, "Content-Length: %zu\r\n", r->body.len));
    TRY(buf_append(out, SLICE_LITERAL("\r\n")));
    return buf_append(out, r->body);
}

enum status http1_client_start(struct http1_client *c, struct http1_call *call,
                               const struct http1_client_request *request, int64_t now_ns)
{
    assert(!call->client);
    if (c->state == HTTP1_CLIENT_OVER || c->last)
        return ST_CLOSED;
    if (c->state != HTTP1_CLIENT_IDLE)
        return ST_AGAIN;
    if (!is_sendable(request))
        return ST_INVALID;
    enum status status = append_request(&c->out, request);
    if (status != ST_OK) {
        buf_fini(&c->out);
        return status;
    }
    move(c, HTTP1_CLIENT_WAITING);
    c->bodiless = slice_equal(request->method, SLICE_LITERAL("HEAD"));
    c->since_ns = now_ns;
    c->interim_bytes = c->head_seen = 0;
    c->call = call;
    call->client = c;
    call->answered = false;
    if (!c->inside && c->hooks.on_output)
        c->hooks.on_output(c->hooks.owner);
    return ST_OK;
}

void http1_client_withhold(struct http1_call *call, bool withhold, int64_t now_ns)
{
    struct http1_client *c = call->client;
    if (!c || c->withheld == withhold)
        return;
    c->withheld = withhold;
    if (!withhold && c->state == HTTP1_CLIENT_RECEIVING)
        c->since_ns = now_ns;
    if (!c->inside && c->hooks.on_output)
        c->hooks.on_output(c->hooks.owner);
}

bool http1_client_wants_read(const struct http1_client *c)
{
    return c->state != HTTP1_CLIENT_OVER && !(c->withheld && c->state == HTTP1_CLIENT_RECEIVING);
}

bool http1_client_wants_write(const struct http1_client *c)
{
    return c->state != HTTP1_CLIENT_OVER && c->out_sent < c->out.len;
}

size_t http1_client_fill(struct http1_client *c, uint8_t *dst, size_t room)
{
    if (!http1_client_wants_write(c))
        return 0;
    size_t n = size_min(room, c->out.len - c->out_sent);
    slice_copy(dst, slice_of(c->out.ptr + c->out_sent, n));
    c->out_sent += n;
    if (c->out_sent == c->out.len) {
        buf_fini(&c->out);
        c->out_sent = 0;
    }
    return n;
}

/* -- Responses -- */

static void begin_body(struct http1_client *c, const struct http1_response *r)
{
    if (c->bodiless || r->status == 204 || r->status == 304)
        http1_body_of_length(&c->body, 0);
    else if (r->chunked)
        http1_body_in_chunks(&c->body);
    else if (r->has_length)
        http1_body_of_length(&c->body, r->content_length);
    else
        http1_body_until_close(&c->body);
    c->last |= !r->keep_alive || c->body.state == HTTP1_BODY_UNTIL_CLOSE;
    c->since_ns = c->now_ns;
    move(c, HTTP1_CLIENT_RECEIVING);
}

static void receive_head(struct http1_client *c, struct slice head)
{
    struct http1_response response;
    const char *fault = http1_response_parse(head, c->limits->fields_max, &response);
    if (fault) {
        fail(c, ST_MALFORMED, fault);
    } else if (response.status == 101) {
        fail(c, ST_MALFORMED, "a change of the protocol that was not requested");
    } else if (response.status < 200) {
        c->interim_bytes += head.len;
    } else {
        begin_body(c, &response);
        c->call->ops->on_head(c->call, &response);
    }
}

/* How many bytes of the input were used; 0: more is needed, or it is over. */
static size_t read_head(struct http1_client *c, struct slice in)
{
    size_t len = http1_head_length(in, &c->head_seen);
    size_t room = c->limits->head_bytes_max - c->interim_bytes;
    if ((len ? len : in.len) > room) {
        fail(c, ST_LIMIT, "the response's header exceeds the limit");
        return 0;
    }
    if (len) {
        c->head_seen = 0;
        receive_head(c, slice_sub(in, 0, len));
    }
    return len;
}

static size_t read_body(struct http1_client *c, struct slice in)
{
    size_t used;
    struct slice piece;
    switch (http1_body_read(&c->body, in, c->limits->head_bytes_max, &used, &piece)) {
    case HTTP1_BODY_HAS_PIECE:
        c->call->ops->on_body(c->call, piece);
        break;
    case HTTP1_BODY_IS_DONE:
        /* What follows belongs to no request: on_end must not start one that it would answer. */
        c->last |= used < in.len;
        complete(c);
        break;
    case HTTP1_BODY_IS_BAD:
        fail(c, ST_MALFORMED, c->body.fault);
        break;
    case HTTP1_BODY_WAITS:
        break;
    }
    return used;
}

/* One step; *used grows by the bytes of the input that it used. False: more input is needed, or it
 * is over. */
static bool step(struct http1_client *c, struct slice in, size_t *used)
{
    struct slice rest = slice_sub(in, *used, in.len - *used);
    size_t before = *used;
    switch (c->state) {
    case HTTP1_CLIENT_IDLE:
        if (rest.len)
            fail(c, ST_MALFORMED, "the server sent bytes without a request");
        return false;
    case HTTP1_CLIENT_WAITING:
        *used += rest.len ? read_head(c, rest) : 0;
        return *used > before;
    case HTTP1_CLIENT_RECEIVING:
        *used += read_body(c, rest);
        return *used > before || c->state != HTTP1_CLIENT_RECEIVING;
    case HTTP1_CLIENT_OVER:
        return false;
    }
    return false;
}

/* Keeps what was not used: a part of a head or line, which is limited. */
static void keep_rest(struct http1_client *c, struct slice in, size_t used)
{
    if (c->state == HTTP1_CLIENT_OVER)
        drop_buffers(c);
    else if (in.ptr == c->in.ptr && used == in.len)
        buf_fini(&c->in);
    else if (in.ptr == c->in.ptr)
        buf_consume(&c->in, used);
    else if (used < in.len && buf_append(&c->in, slice_sub(in, used, in.len - used)) != ST_OK)
        fail(c, ST_NOMEM, "out of memory");
}

void http1_client_feed(struct http1_client *c, struct slice bytes, int64_t now_ns)
{
    struct slice in = bytes;
    size_t used = 0;
    if (c->state == HTTP1_CLIENT_OVER || bytes.len == 0)
        return;
    c->now_ns = now_ns;
    if (c->state == HTTP1_CLIENT_RECEIVING)
        c->since_ns = now_ns;
    if (c->call)
        c->call->answered = true;
    c->inside = true;
    if (c->in.len && buf_append(&c->in, bytes) != ST_OK)
        fail(c, ST_NOMEM, "out of memory");
    if (c->in.len)
        in = buf_slice(&c->in);
    while (step(c, in, &used))
        continue;
    keep_rest(c, in, used);
    c->inside = false;
}

void http1_client_feed_end(struct http1_client *c)
{
    c->inside = true;
    c->last = true;
    if (c->state == HTTP1_CLIENT_RECEIVING && c->body.state == HTTP1_BODY_UNTIL_CLOSE)
        complete(c);
    else
        fail(c, ST_CLOSED, "the server closed the connection");
    c->inside = false;
    drop_buffers(c);
}

bool http1_client_is_idle(const struct http1_client *c)
{
    return c->state == HTTP1_CLIENT_IDLE;
}

bool http1_client_is_over(const struct http1_client *c)
{
    return c->state == HTTP1_CLIENT_OVER;
}

enum status http1_client_reason(const struct http1_client *c, const char **ret_reason)
{
    *ret_reason = c->reason;
    return c->status;
}

/* -- Time -- */

int64_t http1_client_timeout(const struct http1_client *c)
{
    if (c->state == HTTP1_CLIENT_WAITING)
        return clock_add(c->since_ns, c->limits->head_ns);
    if (c->state == HTTP1_CLIENT_RECEIVING && !c->call->waits && !c->withheld)
        return clock_add(c->since_ns, c->limits->stall_ns);
    return CLOCK_NEVER;
}

void http1_client_tick(struct http1_client *c, int64_t now_ns)
{
    if (now_ns < http1_client_timeout(c))
        return;
    c->inside = true;
    fail(c, ST_TIMEOUT, "timeout: the server does not answer");
    c->inside = false;
    drop_buffers(c);
}

void http1_client_check(const struct http1_client *c)
{
    bool under_way = c->state == HTTP1_CLIENT_WAITING || c->state == HTTP1_CLIENT_RECEIVING;
    assert((c->call != NULL) == under_way);
    assert(!c->call || c->call->client == c);
    assert(!c->withheld || c->call);
    assert(!c->inside);
    assert(c->out_sent <= c->out.len && (c->out_sent == 0 || c->out_sent < c->out.len));
    assert(c->in.len <= c->limits->head_bytes_max || c->in.len <= HTTP1_CHUNK_LINE_MAX + 2);
    assert(c->in.len == 0 || under_way);
    assert((c->state == HTTP1_CLIENT_OVER) == (c->status != ST_OK));
    assert(c->state != HTTP1_CLIENT_OVER || (c->out.len == 0 && c->in.len == 0));
}
