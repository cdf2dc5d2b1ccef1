/* One stream that is an HTTP request: its body is received, its answer is pulled. */
#include "wire/h2/hpack.h"
#include "wire/http/http2/endpoint_private.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    TYPE_BYTES_MAX = 256,
    BLOCK_FIXED_BYTES = 128, /* the status, and the names and numbers of our own fields */
    OUT_KEPT_BYTES = 1024,   /* kept of the buffer when all bytes were sent */
};

static size_t queued(const struct http_exchange *x)
{
    const struct http2_exchange *h = http2_of(x);
    return h->out.len - h->out_sent;
}

/* ---- bytes of a body that arrive before the client is admitted ---- */

static void forget_early(struct http2_exchange *h)
{
    h->endpoint->early_bytes -= h->opening->early_bytes;
    h->opening->early_bytes = 0;
}

/* The request is refused, so the client need not send more. */
static void drop_early(struct http2_exchange *h)
{
    if (!h->opening || !h->opening->early_bytes)
        return;
    forget_early(h);
    account_buf_fini(h->exchange.account, &h->opening->http.body);
}

/* ---- the answer, written by the handler ---- */

/* The exchange is aborted. The stream is reset later, because that must not happen within a call on
 * the exchange. */
static void break_off(struct http_exchange *x)
{
    struct http2_exchange *h = http2_of(x);
    http_exchange_stop(x);
    if (h->opening)
        list_remove(&h->opening->in_waiting);
    drop_early(h);
    h->endpoint->broken += !h->broken;
    h->broken = true;
    if (h->endpoint->hooks.on_output)
        h->endpoint->hooks.on_output(h->endpoint->hooks.owner);
}

static enum status build_head(struct http2_exchange *h, unsigned status, struct slice type,
                              const size_t *length)
{
    assert(type.len <= TYPE_BYTES_MAX);
    struct buf *head = &h->opening->head;
    struct slice fields = buf_slice(&h->opening->http.fields), rest = fields;
    struct http_field field;
    size_t need = BLOCK_FIXED_BYTES + type.len;
    while (http_fields_next(&rest, &field))
        need += hpack_literal_bytes(field.name, field.value);
    TRY(account_reserve_anyway(h->exchange.account, head, need));
    uint8_t *end = hpack_put_status(head->ptr, status);
    if (type.len)
        end = hpack_put_literal(end, SLICE_LITERAL("content-type"), type);
    if (length) {
        char digits[24];
        int n = snprintf(digits, sizeof(digits), "%zu", *length);
        end = hpack_put_literal(end, SLICE_LITERAL("content-length"), slice_of(digits, (size_t)n));
    }
    rest = fields;
    while (http_fields_next(&rest, &field))
        end = hpack_put_lower(end, field.name, field.value);
    head->len = (size_t)(end - head->ptr);
    assert(head->len <= need && head->len <= H2_BLOCK_BYTES_MAX);
    return ST_OK;
}

static void ready(struct http2_exchange *h)
{
    h->progress_ns = h->endpoint->now_ns;
    h2_stream_ready(&h->stream);
}

static enum status begin(struct http_exchange *x, unsigned status, struct slice type,
                         const size_t *length)
{
    struct http2_exchange *h = http2_of(x);
    list_remove(&h->opening->in_waiting);
    drop_early(h);
    if (build_head(h, status, type, length) != ST_OK) {
        break_off(x);
        return ST_NOMEM;
    }
    ready(h);
    return ST_OK;
}

static enum status reserve(struct http_exchange *x, size_t bytes)
{
    return account_reserve(x->account, &http2_of(x)->out, bytes);
}

static enum status append(struct http_exchange *x, struct slice bytes)
{
    struct http2_exchange *h = http2_of(x);
    struct http2_endpoint *endpoint = h->endpoint;
    if (h->out_sent > h->out.len / 2) { /* reuse the space of sent bytes first */
        buf_consume(&h->out, h->out_sent);
        h->out_sent = 0;
    }
    enum status status = http_exchange_append(x, &h->out, bytes);
    if (status != ST_OK) {
        break_off(x);
        return status;
    }
    endpoint->queued_bytes += bytes.len;
    /* Otherwise the stream is already waiting to be written. */
    if (queued(x) == bytes.len)
        ready(h);
    return ST_OK;
}

static void make_ready(struct http_exchange *x)
{
    ready(http2_of(x));
}

static void make_bulk(struct http_exchange *x)
{
    h2_stream_make_bulk(&http2_of(x)->stream);
}

static int64_t now(const struct http_exchange *x)
{
    return http2_of(x)->endpoint->now_ns;
}

static void timed(struct http_exchange *x)
{
    struct http2_endpoint *endpoint = http2_of(x)->endpoint;
    if (endpoint && x->deadline_ns < endpoint->check_at_ns)
        endpoint->check_at_ns = x->deadline_ns;
}

static void authorized(struct http_exchange *x)
{
    struct http2_exchange *h = http2_of(x);
    struct http2_endpoint *endpoint = h->endpoint;
    if (list_empty(&h->opening->in_waiting))
        list_push_back(&endpoint->waiting, &h->opening->in_waiting);
    if (endpoint->hooks.on_output)
        endpoint->hooks.on_output(endpoint->hooks.owner);
}

static void withhold(struct http_exchange *x)
{
    struct http2_exchange *h = http2_of(x);
    h->progress_ns = h->endpoint->now_ns;
    if (!h->opening)
        return; /* the body has arrived */
    if (!x->withheld && h->opening->withheld_bytes)
        h2_stream_consumed(&h->stream, h->opening->withheld_bytes);
    h->opening->withheld_bytes = 0;
}

static struct wire_peer peer(const struct http_exchange *x)
{
    return http2_of(x)->endpoint->hooks.peer;
}

/* ---- the request is not needed any more ---- */

static void free_opening(struct http2_exchange *h)
{
    http_exchange_fini(&h->exchange);
    h->exchange.opening = NULL;
    account_buf_fini(h->exchange.account, &h->opening->head);
    h2_headers_unref(h->opening->headers);
    free(TAKE(h->opening));
}

/* Before, the head of the answer is sent, and what arrives is still received. */
static void free_opening_if_over(struct http2_exchange *h)
{
    if (h->forgotten && h->received && h->opening && h->opening->head_sent)
        free_opening(h);
}

static void forget(struct http_exchange *x)
{
    struct http2_exchange *h = http2_of(x);
    h->forgotten = true;
    free_opening_if_over(h);
}

static const struct http_exchange_ops exchange_ops = {
    .authorized = authorized,
    .begin = begin,
    .reserve = reserve,
    .write = append,
    .end = make_ready,
    .abort = break_off,
    .wake = make_ready,
    .make_bulk = make_bulk,
    .withhold = withhold,
    .timed = timed,
    .now = now,
    .peer = peer,
    .forget = forget,
};

/* ---- the answer, pulled by the session ---- */

static size_t on_head(struct h2_stream *stream, uint8_t *dst, size_t room)
{
    struct http2_exchange *h = http2_of_stream(stream);
    struct buf *head = &h->opening->head;
    size_t len = head->len;
    if (room < len)
        return 0;
    memcpy(dst, head->ptr, len);
    account_buf_fini(h->exchange.account, head);
    h->opening->head_sent = true;
    stream->head_only = http_exchange_complete(&h->exchange) && queued(&h->exchange) == 0;
    h->progress_ns = h->endpoint->now_ns;
    free_opening_if_over(h);
    return len;
}

static size_t take_queued(struct http2_exchange *h, uint8_t *dst, size_t room)
{
    size_t n = size_min(room, queued(&h->exchange));
    if (n == 0)
        return 0;
    slice_copy(dst, slice_of(h->out.ptr + h->out_sent, n));
    h->out_sent += n;
    h->endpoint->queued_bytes -= n;
    if (h->out_sent == h->out.len) {
        account_buf_reset(h->exchange.account, &h->out, OUT_KEPT_BYTES);
        h->out_sent = 0;
    }
    return n;
}

static enum h2_fill on_fill(struct h2_stream *stream, uint8_t *dst, size_t room, size_t *ret_len)
{
    struct http2_exchange *h = http2_of_stream(stream);
    struct http_exchange *x = &h->exchange;
    size_t len = take_queued(h, dst, room);
    if (len < room)
        len += http_exchange_fill(x, dst + len, room - len);
    if (len)
        h->progress_ns = h->endpoint->now_ns;
    *ret_len = len;
    /* The stream is reset at the next turn. Ending it here would make a broken answer look
     * complete. */
    if (UNLIKELY(http_exchange_complete(x)) && h->broken)
        return H2_FILL_PARKED;
    if (queued(x) || http_exchange_flows(x))
        return H2_FILL_MORE;
    return http_exchange_complete(x) ? H2_FILL_END : H2_FILL_PARKED;
}

/* ---- the request ---- */

static void drop_body(struct http2_exchange *h)
{
    forget_early(h);
    list_remove(&h->opening->in_waiting);
    account_buf_fini(h->exchange.account, &h->opening->http.body);
}

static void refuse_long(struct http2_exchange *h)
{
    drop_body(h);
    http_answer_too_long(&h->exchange);
}

static void refuse_for_memory(struct http2_exchange *h)
{
    drop_body(h);
    http_answer_plain(&h->exchange, 429);
}

static bool is_longer(const struct http2_exchange *h, size_t limit)
{
    int64_t length = h->opening->headers->content_length;
    return length > 0 && (uint64_t)length > limit;
}

static bool has_streaming_route(const struct http2_exchange *h)
{
    return h->exchange.route && h->exchange.route->on_body;
}

/* The client was admitted. */
static void accept_body(struct http2_exchange *h)
{
    if (has_streaming_route(h))
        return;
    if (h->opening->early_bytes) /* the client may send the rest */
        h2_stream_consumed(&h->stream, h->opening->early_bytes);
    forget_early(h);
    if (is_longer(h, h->opening->body_max) || h->opening->http.body.len > h->opening->body_max)
        refuse_long(h);
}

/* Before the first byte of the body is kept. A request without a body is admitted when it is passed
 * to its route, so that a request that is reset before costs nothing. */
static void admit(struct http2_exchange *h)
{
    const struct http2_server *server = h->endpoint->server;
    http_routes_admit(server->routes, &h->exchange);
    h->opening->body_max = http_exchange_body_max(&h->exchange, server->limits->body_bytes_max);
    if (h->exchange.state == HTTP_ADMITTED)
        accept_body(h);
}

/* Passes bytes to a route that takes the body as it arrives. */
static void pass(struct http2_exchange *h, struct slice bytes)
{
    h->progress_ns = h->endpoint->now_ns;
    if (h->exchange.withheld)
        h->opening->withheld_bytes += (uint32_t)bytes.len;
    else
        h2_stream_consumed(&h->stream, bytes.len);
    http_exchange_pass(&h->exchange, bytes);
}

/* The same for what has arrived before its turn. */
static void begin_stream(struct http2_exchange *h)
{
    struct http_exchange *x = &h->exchange;
    struct buf early = x->opening->body;
    x->opening->body = (struct buf){0};
    forget_early(h);
    x->opening->request.has_body = !h->received || early.len;
    http_routes_dispatch(h->endpoint->server->routes, x);
    if (early.len)
        pass(h, buf_slice(&early));
    if (h->received && early.len)
        http_exchange_pass(x, SLICE_EMPTY);
    account_buf_fini(x->account, &early);
}

void http2_exchange_proceed(struct http2_exchange *h)
{
    /* The head has arrived, and may be all that the route waits for. */
    if (h->exchange.state == HTTP_RECEIVING && !h->received)
        admit(h);
    if (h->exchange.state == HTTP_ADMITTED && has_streaming_route(h))
        begin_stream(h);
    else if (h->exchange.state == HTTP_ADMITTED)
        accept_body(h);
    if (h->received)
        http_routes_dispatch(h->endpoint->server->routes, &h->exchange);
}

static void keep(struct http2_exchange *h, struct slice bytes)
{
    struct buf *body = &h->opening->http.body;
    if (body->len + bytes.len > h->opening->body_max)
        refuse_long(h);
    else if (account_append(h->exchange.account, body, bytes) != ST_OK)
        refuse_for_memory(h);
}

/* Keeps bytes that the client has sent before it is admitted. It can send more only when they were
 * given back to its window. */
static void keep_early(struct http2_exchange *h, struct slice bytes)
{
    h->opening->early_bytes += bytes.len;
    h->endpoint->early_bytes += bytes.len;
    if (account_append(h->exchange.account, &h->opening->http.body, bytes) != ST_OK)
        refuse_for_memory(h);
}

static void on_data(struct h2_stream *stream, struct slice bytes)
{
    struct http2_exchange *h = http2_of_stream(stream);
    if (h->exchange.state == HTTP_RECEIVING && bytes.len)
        admit(h);
    if (http_exchange_streams(&h->exchange)) {
        pass(h, bytes);
        return;
    }
    bool waits = h->exchange.state == HTTP_ADMITTED && has_streaming_route(h);
    if (waits || http_exchange_is_authorizing(&h->exchange)) {
        keep_early(h, bytes);
        return;
    }
    /* Bytes of a refused request are dropped, but their window is returned: a client that waits for
     * window would never read the refusal. */
    h2_stream_consumed(stream, bytes.len);
    if (h->exchange.state == HTTP_ADMITTED && bytes.len)
        keep(h, bytes);
}

static void on_request_end(struct h2_stream *stream)
{
    struct http2_exchange *h = http2_of_stream(stream);
    h->received = true;
    http_exchange_pass(&h->exchange, SLICE_EMPTY);
    free_opening_if_over(h);
    bool goes_on = h->exchange.state == HTTP_RECEIVING || h->exchange.state == HTTP_ADMITTED;
    if (goes_on && list_empty(&h->opening->in_waiting))
        list_push_back(&h->endpoint->waiting, &h->opening->in_waiting);
}

static void on_close(struct h2_stream *stream, enum h2_error code)
{
    struct http2_exchange *h = http2_of_stream(stream);
    (void)code;
    list_remove(&h->in_exchanges);
    h->endpoint->broken -= h->broken;
    h->endpoint->queued_bytes -= queued(&h->exchange);
    /* The endpoint counts what its exchanges hold, so each takes its part back. */
    if (h->opening) {
        list_remove(&h->opening->in_waiting);
        forget_early(h);
    }
    http_exchange_end(&h->exchange);
    if (h->opening)
        free_opening(h);
    account_buf_fini(h->exchange.account, &h->out);
    free(h);
}

static const struct h2_stream_ops stream_ops = {
    .on_data = on_data,
    .on_end = on_request_end,
    .on_close = on_close,
    .head = on_head,
    .data = on_fill,
};

static struct http_request request_of(const struct h2_headers *headers,
                                      const struct http_hooks *hooks)
{
    struct http_request request = {
        .method = headers->method,
        .target = headers->path,
        .host = headers->authority,
        .fields = headers->fields,
        .field_count = headers->count,
        .major = 2,
        .keep_alive = true,
    };
    http_request_set_connection(&request, hooks);
    http_split_target(headers->path, &request);
    /* :authority takes precedence. A proxy that translates HTTP/1.1 may send only host (RFC 9113,
     * section 8.3.1). */
    if (!request.host.ptr)
        (void)h2_headers_get(headers, SLICE_LITERAL("host"), &request.host);
    return request;
}

struct http2_exchange *http2_exchange_new(struct http2_endpoint *endpoint,
                                          struct h2_headers *headers)
{
    const struct http2_server *server = endpoint->server;
    struct http2_exchange *h = calloc(1, sizeof(*h));
    struct http2_opening *opening = calloc(1, sizeof(*opening));
    if (!h || !opening) {
        free(h);
        free(opening);
        return NULL;
    }
    h->stream.ops = &stream_ops;
    h->exchange.ops = &exchange_ops;
    h->opening = opening;
    h->exchange.opening = &opening->http;
    opening->http.request = request_of(headers, &endpoint->hooks);
    h->exchange.bodiless = slice_equal(headers->method, SLICE_LITERAL("HEAD"));
    h->exchange.leaving = endpoint->leaving;
    h->exchange.account = endpoint->hooks.account;
    h->endpoint = endpoint;
    opening->headers = headers;
    opening->exchange = h;
    list_init(&opening->in_waiting);
    h->progress_ns = endpoint->now_ns;
    h2_headers_ref(headers);
    list_push_back(&endpoint->exchanges, &h->in_exchanges);
    if (http_routes_stream(server->routes))
        list_push_back(&endpoint->waiting, &h->opening->in_waiting);
    /* The announced length alone decides, before the client sends any of it. */
    if (is_longer(h, server->limits->body_bytes_max))
        admit(h);
    return h;
}

bool http2_exchange_arrives(const struct http2_exchange *h)
{
    const struct http_exchange *x = &h->exchange;
    bool goes_on = x->state == HTTP_RECEIVING || x->state == HTTP_ADMITTED;
    if (x->state == HTTP_HANDLED && has_streaming_route(h))
        goes_on = !x->withheld;
    return goes_on && !h->received && list_empty(&h->opening->in_waiting);
}

bool http2_exchange_stalls(const struct http2_exchange *h)
{
    const struct http_exchange *x = &h->exchange;
    if (http2_exchange_arrives(h))
        return true;
    if (x->parks && !http_exchange_complete(x))
        return false;
    return http_exchange_complete(x) || queued(x) || http_exchange_flows(x);
}
