#include "wire/http/http1/client.h"

#include "base/buf.h"
#include "base/clock.h"
#include "wire/http/http1/body.h"
#include "wire/http/http1/chunk.h"

#include <inttypes.h>
#include <stdlib.h>

/* Ends a body in chunks; there are no trailers. */
static const struct slice last_chunk = {(const uint8_t *)"0\r\n\r\n", 5};

enum http1_client_state {
    HTTP1_CLIENT_IDLE,
    HTTP1_CLIENT_WAITING,
    HTTP1_CLIENT_RECEIVING,
    HTTP1_CLIENT_RAW,
    HTTP1_CLIENT_OVER,
};

#define TO(state) (1u << HTTP1_CLIENT_##state)

/* Drawn in client.h. */
static const uint8_t moves[] = {
    [HTTP1_CLIENT_IDLE] = TO(WAITING) | TO(OVER),
    [HTTP1_CLIENT_WAITING] = TO(RECEIVING) | TO(RAW) | TO(OVER),
    [HTTP1_CLIENT_RECEIVING] = TO(IDLE) | TO(OVER),
    [HTTP1_CLIENT_RAW] = TO(OVER),
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
    bool upgrades;           /* the request asks for another protocol */
    bool input_ended;        /* raw: the server has sent its last byte */
    bool source_parked;      /* the source had nothing to send */
    struct buf out;          /* bytes of the request; those before out_sent were sent */
    size_t out_sent;
    struct http_source *source; /* borrowed; gives what follows them; NULL: nothing follows */
    int64_t source_left;        /* bytes that it still has to give; HTTP1_UNKNOWN */
    struct buf in;              /* an incomplete head or line */
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
    c->source = NULL;
    c->withheld = c->upgrades = c->source_parked = false;
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
    /* A response to half a request: what would follow on this connection is unclear. */
    bool ends = c->last || c->out.len || c->source;
    struct http1_call *call = take_call(c);
    if (ends) {
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
    return http1_is_token(r->method) && http1_is_target(r->target) &&
           http1_is_field_value(r->host) && http1_is_field_value(r->upgrade);
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
    if (r->upgrade.len) {
        TRY(append_field(out, SLICE_LITERAL("Connection"), SLICE_LITERAL("Upgrade")));
        TRY(append_field(out, SLICE_LITERAL("Upgrade"), r->upgrade));
    } else if (r->source && r->source_bytes == HTTP1_UNKNOWN) {
        TRY(buf_append(out, SLICE_LITERAL("Transfer-Encoding: chunked\r\n")));
    } else if (r->source) {
        TRY(buf_append_format(out, "Content-Length: %" PRId64 "\r\n", r->source_bytes));
    } else if (r->body.len) {
        TRY(buf_append_format(out, "Content-Length: %zu\r\n", r->body.len));
    }
    TRY(buf_append(out, SLICE_LITERAL("\r\n")));
    return buf_append(out, r->body);
}

enum status http1_client_start(struct http1_client *c, struct http1_call *call,
                               const struct http1_client_request *request, int64_t now_ns)
{
    assert(!call->client);
    assert(!request->body.len || (!request->source && !request->upgrade.len));
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
    c->upgrades = request->upgrade.len > 0;
    c->source_left = c->upgrades ? HTTP1_UNKNOWN : request->source_bytes;
    c->source = c->source_left ? request->source : NULL;
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

void http1_client_wake(struct http1_call *call, int64_t now_ns)
{
    struct http1_client *c = call->client;
    if (!c || !c->source_parked)
        return;
    c->source_parked = false;
    if (c->state == HTTP1_CLIENT_WAITING) /* the server waited for us before */
        c->since_ns = now_ns;
    if (!c->inside && c->hooks.on_output)
        c->hooks.on_output(c->hooks.owner);
}

bool http1_client_wants_read(const struct http1_client *c)
{
    bool body = c->state == HTTP1_CLIENT_RECEIVING || c->state == HTTP1_CLIENT_RAW;
    return c->state != HTTP1_CLIENT_OVER && !c->input_ended && !(c->withheld && body);
}

/* The source has something to send, as far as is known. */
static bool source_flows(const struct http1_client *c)
{
    return c->source && !c->source_parked && (!c->upgrades || c->state == HTTP1_CLIENT_RAW);
}

bool http1_client_wants_write(const struct http1_client *c)
{
    return c->state != HTTP1_CLIENT_OVER && (c->out_sent < c->out.len || source_flows(c));
}

static size_t take_queued(struct http1_client *c, uint8_t *dst, size_t room)
{
    size_t n = size_min(room, c->out.len - c->out_sent);
    slice_copy(dst, slice_sub(buf_slice(&c->out), c->out_sent, n));
    c->out_sent += n;
    if (c->out_sent == c->out.len) {
        buf_fini(&c->out);
        c->out_sent = 0;
    }
    return n;
}

/* The source was called, and gave n bytes. */
static void follow_source(struct http1_client *c, enum http_fill more, size_t n)
{
    if (c->state == HTTP1_CLIENT_WAITING)
        c->since_ns = c->now_ns;
    if (c->source_left != HTTP1_UNKNOWN)
        c->source_left -= (int64_t)n;
    if (c->source_left == 0)
        c->source = NULL; /* it need not have noticed */
    else if (more == HTTP_FILL_DONE && c->source_left != HTTP1_UNKNOWN)
        fail(c, ST_INVALID, "the body of the request is shorter than its length");
    else if (more == HTTP_FILL_DONE)
        c->source = NULL;
    c->source_parked = c->source && more == HTTP_FILL_PARKED;
    if (c->state == HTTP1_CLIENT_RAW && !c->source && c->input_ended)
        complete(c);
}

/* Bytes of the source, with their framing. */
static size_t take_pulled(struct http1_client *c, uint8_t *dst, size_t room)
{
    if (!source_flows(c) || room < HTTP1_PULL_ROOM_MIN)
        return 0;
    bool chunked = !c->upgrades && c->source_left == HTTP1_UNKNOWN;
    size_t n = 0, offset = chunked ? HTTP1_CHUNK_HEAD_BYTES : 0;
    if (chunked)
        room = size_min(room - HTTP1_CHUNK_FRAME_BYTES - last_chunk.len, HTTP1_CHUNK_BYTES_MAX);
    else if (c->source_left != HTTP1_UNKNOWN)
        room = size_min(room, (size_t)c->source_left);
    enum http_fill more = c->source->fill(c->source, dst + offset, room, &n);
    assert(n <= room && (n > 0 || more != HTTP_FILL_MORE));
    size_t len = chunked && n ? http1_chunk_close(dst, n) : n;
    if (chunked && more == HTTP_FILL_DONE) {
        slice_copy(dst + len, last_chunk);
        len += last_chunk.len;
    }
    follow_source(c, more, n);
    return len;
}

size_t http1_client_fill(struct http1_client *c, uint8_t *dst, size_t room, int64_t now_ns)
{
    if (!http1_client_wants_write(c))
        return 0;
    c->now_ns = now_ns;
    c->inside = true;
    size_t len = take_queued(c, dst, room);
    if (c->out.len == 0)
        len += take_pulled(c, dst + len, room - len);
    if (c->state == HTTP1_CLIENT_OVER) /* what was taken last is still sent */
        drop_buffers(c);
    c->inside = false;
    return len;
}

bool http1_client_output_ended(const struct http1_client *c)
{
    return c->state == HTTP1_CLIENT_RAW && !c->source && !c->out.len;
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
    if (c->upgrades) /* not taken up */
        c->source = NULL;
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
    } else if (response.status == 101 && c->upgrades && !c->out.len) {
        c->last = true;
        move(c, HTTP1_CLIENT_RAW);
        c->call->ops->on_head(c->call, &response);
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
    case HTTP1_CLIENT_RAW:
        *used = in.len;
        if (rest.len)
            c->call->ops->on_body(c->call, rest);
        return false;
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
    if (c->input_ended)
        return;
    c->inside = true;
    c->last = c->input_ended = true;
    if (c->state == HTTP1_CLIENT_RAW) {
        c->call->ops->on_body(c->call, SLICE_EMPTY);
        if (c->state == HTTP1_CLIENT_RAW && !c->source)
            complete(c);
    } else if (c->state == HTTP1_CLIENT_RECEIVING && c->body.state == HTTP1_BODY_UNTIL_CLOSE) {
        complete(c);
    } else {
        fail(c, ST_CLOSED, "the server closed the connection");
    }
    c->inside = false;
    if (c->state == HTTP1_CLIENT_OVER)
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
    /* While the source has nothing, the server cannot know the request. */
    if (c->state == HTTP1_CLIENT_WAITING && !c->source_parked)
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
    bool under_way = c->state != HTTP1_CLIENT_IDLE && c->state != HTTP1_CLIENT_OVER;
    assert((c->call != NULL) == under_way);
    assert(!c->call || c->call->client == c);
    assert(!c->withheld || c->call);
    assert(!c->source || (c->call && c->source_left));
    assert(!c->source_parked || c->source);
    assert(!c->input_ended || c->state >= HTTP1_CLIENT_RAW);
    assert(!c->inside);
    assert(c->out_sent <= c->out.len && (c->out_sent == 0 || c->out_sent < c->out.len));
    assert(c->in.len <= c->limits->head_bytes_max || c->in.len <= HTTP1_CHUNK_LINE_MAX + 2);
    assert(c->in.len == 0 || under_way);
    assert((c->state == HTTP1_CLIENT_OVER) == (c->status != ST_OK));
    assert(c->state != HTTP1_CLIENT_OVER || (c->out.len == 0 && c->in.len == 0));
}
