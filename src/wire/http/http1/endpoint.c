#include "wire/http/http1/endpoint.h"

#include "wire/http/http1/endpoint_private.h"
#include "wire/http/http1/parser.h"
#include "wire/peer/arrival_timeout.h"

#include <stdlib.h>

enum {
    IN_KEPT = 0,                  /* an idle connection holds no buffers */
    OUT_PIPELINE_MAX = 64 * 1024, /* size of queued answers beyond which the next request waits */
    ARENA_MAX = 256 * 1024,
    DROPPED_BODY_MAX = 256 * 1024, /* part of a refused request's body that is read; as in Go */
};

#define TO(state) (1u << HTTP1_##state)

/* Drawn in endpoint_private.h. */
static const uint8_t reading_moves[] = {
    [HTTP1_HEAD] = TO(ADMITTING) | TO(ANSWERING) | TO(LEAVING),
    [HTTP1_ADMITTING] = TO(BODY) | TO(ANSWERING) | TO(LEAVING),
    [HTTP1_BODY] = TO(ANSWERING) | TO(LEAVING),
    [HTTP1_ANSWERING] = TO(HEAD) | TO(RAW) | TO(LEAVING),
    [HTTP1_RAW] = TO(LEAVING),
    [HTTP1_LEAVING] = TO(LEAVING),
};

void http1_move(struct http1_endpoint *e, enum http1_reading next)
{
    assert(reading_moves[e->reading] & (1u << next));
    e->reading = next;
}

static void make_exchange_fresh(struct http1_endpoint *e)
{
    e->opening = (struct http_opening){0};
    e->exchange = (struct http_exchange){
        .ops = &http1_exchange_ops, .account = e->hooks.account, .opening = &e->opening};
}

enum status http1_endpoint_new(const struct http1_server *server, struct http_hooks hooks,
                               int64_t now_ns, struct http1_endpoint **ret_endpoint)
{
    struct http1_endpoint *e = calloc(1, sizeof(*e));
    if (!e)
        return ST_NOMEM;
    *e = (struct http1_endpoint){
        .server = server, .hooks = hooks, .reason = "", .now_ns = now_ns, .since_ns = now_ns};
    make_exchange_fresh(e);
    *ret_endpoint = e;
    return ST_OK;
}

/* -- input: consumed bytes are dropped together when pump ends, because the peer decides how small
 * the pieces are -- */

static size_t unread_len(const struct http1_endpoint *e)
{
    return e->in.len - e->in_at;
}

static struct slice unread(const struct http1_endpoint *e)
{
    size_t len = unread_len(e);
    return len ? slice_of(e->in.ptr + e->in_at, len) : SLICE_EMPTY;
}

static void take(struct http1_endpoint *e, size_t n)
{
    assert(n <= unread_len(e));
    e->in_at += n;
}

static void drop_taken(struct http1_endpoint *e)
{
    if (e->reading == HTTP1_LEAVING)
        account_buf_fini(e->hooks.account, &e->in);
    else if (unread_len(e) == 0)
        account_buf_reset(e->hooks.account, &e->in, IN_KEPT);
    else if (e->in_at)
        buf_consume(&e->in, e->in_at);
    e->in_at = 0;
}

/* Calls the handler's on_end; the exchange is not used afterwards. */
static void exchange_end(struct http1_endpoint *e)
{
    http_exchange_end(&e->exchange);
    http_exchange_fini(&e->exchange);
    arena_fini(&e->arena);
    make_exchange_fresh(e);
}

void http1_endpoint_free(struct http1_endpoint *e)
{
    if (!e)
        return;
    e->inside++;
    exchange_end(e);
    account_buf_fini(e->hooks.account, &e->in);
    account_buf_fini(e->hooks.account, &e->out);
    free(e);
}

static void refuse(struct http1_endpoint *e, unsigned status, const char *reason)
{
    if (e->exchange.state == HTTP_ANSWERING) { /* while the body arrives */
        http1_die(e, reason);
        return;
    }
    e->reason = reason;
    http1_move(e, HTTP1_ANSWERING);
    e->last = true;
    http_answer_plain(&e->exchange, status);
}

static void refuse_long(struct http1_endpoint *e)
{
    e->reason = "body too large";
    http1_move(e, HTTP1_ANSWERING);
    e->last = true;
    account_buf_fini(e->exchange.account, &e->exchange.opening->body);
    http_answer_too_long(&e->exchange);
}

static void refuse_for_memory(struct http1_endpoint *e)
{
    account_buf_fini(e->exchange.account, &e->exchange.opening->body);
    refuse(e, 429, "clients hold too much memory");
}

/* The body arrives, and its route takes it, or has answered before its end. */
static bool streams(const struct http1_endpoint *e)
{
    return e->reading == HTTP1_BODY && !e->drops && e->exchange.state >= HTTP_HANDLED;
}

/* The body has arrived. */
static void call_handler(struct http1_endpoint *e)
{
    bool streamed = streams(e);
    http1_move(e, HTTP1_ANSWERING);
    if (streamed)
        http_exchange_pass(&e->exchange, SLICE_EMPTY);
    else if (!e->drops)
        http_routes_dispatch(e->server->routes, &e->exchange);
}

/* Copies the head into the exchange's own memory, so that the input buffer can be reused. */
static bool keep_head(struct http1_endpoint *e, size_t head_len, struct http1_head *head)
{
    struct http_exchange *x = &e->exchange;
    struct slice bytes;
    arena_init(&e->arena, NULL, 0, ARENA_MAX);
    arena_charge(&e->arena, e->hooks.account);
    x->bodiless = slice_has_prefix(unread(e), SLICE_LITERAL("HEAD "));
    if (arena_dup(&e->arena, slice_sub(unread(e), 0, head_len), &bytes) != ST_OK) {
        refuse_for_memory(e);
        return false;
    }
    unsigned fault = http1_head_parse(bytes, e->server->limits->fields_max, head);
    x->opening->request = head->request;
    http_request_set_connection(&x->opening->request, &e->hooks);
    x->bodiless = slice_equal(x->opening->request.method, SLICE_LITERAL("HEAD"));
    x->opening->request.fields = NULL;
    x->opening->request.field_count = 0;
    if (fault) {
        refuse(e, fault, "bad request head");
        return false;
    }
    struct slice fields = slice_of(head->fields, head->request.field_count * sizeof(*head->fields));
    if (arena_dup(&e->arena, fields, &fields) != ST_OK) {
        refuse_for_memory(e);
        return false;
    }
    x->opening->request.fields = (const struct http_field *)(const void *)fields.ptr;
    x->opening->request.field_count = head->request.field_count;
    return true;
}

/* Asks the route whether the client may make the request, by the head alone. */
static void admit(struct http1_endpoint *e, const struct http1_head *head)
{
    bool has_body = head->chunked || head->content_length;
    bool short_body =
        !head->chunked && !head->expects_continue && head->content_length <= DROPPED_BODY_MAX;
    if (head->chunked)
        http1_body_in_chunks(&e->body);
    else
        http1_body_of_length(&e->body, head->content_length);
    e->drops = false;
    e->end_passed = false;
    e->body_max = 0;
    e->expects_continue = has_body && head->expects_continue;
    e->closes_if_refused = has_body && !short_body;
    e->last = e->last || !head->request.keep_alive;
    e->admitting_ns = e->now_ns;
    http1_move(e, HTTP1_ADMITTING);
    http_routes_admit(e->server->routes, &e->exchange);
}

static void begin_body(struct http1_endpoint *e)
{
    e->closes_if_refused = false;
    /* The time in which the route decided does not count as the client's. */
    int64_t since_ns = e->since_ns + (e->now_ns - e->admitting_ns);
    e->since_ns = since_ns < e->now_ns ? since_ns : e->now_ns;
    e->body_max = http_exchange_body_max(&e->exchange, e->server->http->body_bytes_max);
    if (e->body.left > e->body_max) {
        refuse_long(e);
        return;
    }
    if (e->expects_continue && unread_len(e) == 0 &&
        http1_put(e, SLICE_LITERAL("HTTP/1.1 100 Continue\r\n\r\n")) != ST_OK)
        return;
    if (e->body.state == HTTP1_BODY_DONE)
        call_handler(e);
    else
        http1_move(e, HTTP1_BODY);
}

void http1_offer_continue(struct http1_endpoint *e)
{
    if (!e->expects_continue || !streams(e) || e->exchange.state != HTTP_HANDLED ||
        e->exchange.withheld)
        return;
    e->expects_continue = e->closes_if_refused = false;
    if (unread_len(e) == 0)
        (void)!http1_put(e, SLICE_LITERAL("HTTP/1.1 100 Continue\r\n\r\n"));
}

/* The route takes the body as it arrives. */
static void begin_stream(struct http1_endpoint *e)
{
    e->since_ns = e->now_ns;
    e->body_max = SIZE_MAX;
    e->exchange.opening->request.has_body = e->body.state != HTTP1_BODY_DONE;
    http1_move(e, e->exchange.opening->request.has_body ? HTTP1_BODY : HTTP1_ANSWERING);
    http_routes_dispatch(e->server->routes, &e->exchange);
    /* An answer that begins later does not say that the connection ends, because the body may be
     * read to its end. But a client that was not asked for the body is not asked any more. */
    e->closes_if_refused = e->expects_continue;
    http1_offer_continue(e);
}

/* False: the route has not decided. */
static bool leave_admitting(struct http1_endpoint *e)
{
    if (http_exchange_is_authorizing(&e->exchange))
        return false;
    if (e->exchange.state == HTTP_ADMITTED) {
        if (e->exchange.route->on_body)
            begin_stream(e);
        else
            begin_body(e);
        return true;
    }
    /* The request was answered. A short body is read and dropped, so that the connection can stay
     * open; otherwise the connection ends. */
    e->drops = e->body.state != HTTP1_BODY_DONE && !e->last;
    e->body_max = DROPPED_BODY_MAX;
    http1_move(e, e->drops ? HTTP1_BODY : HTTP1_ANSWERING);
    return true;
}

/* The answer is complete, but not the body. The rest of it is dropped if it is short; otherwise the
 * connection ends. */
static void stop_streaming(struct http1_endpoint *e)
{
    bool long_rest = e->body.state == HTTP1_BODY_LENGTH && e->body.left > DROPPED_BODY_MAX;
    e->last = e->last || long_rest || e->expects_continue;
    e->drops = !e->last;
    e->body_max = DROPPED_BODY_MAX;
    e->since_ns = e->now_ns;
    if (e->last)
        http1_move(e, HTTP1_ANSWERING);
}

static bool read_head(struct http1_endpoint *e)
{
    size_t len = http1_head_length(unread(e), &e->head_seen);
    if (len > e->server->limits->head_bytes_max ||
        (!len && unread_len(e) > e->server->limits->head_bytes_max)) {
        refuse(e, 431, "request head too large");
        return true;
    }
    if (!len)
        return false;
    struct http1_head head;
    e->head_seen = 0;
    if (keep_head(e, len, &head)) {
        take(e, len);
        admit(e, &head);
    }
    return true;
}

/* Moves a piece of the input into the body, passes it to the route, or drops it. */
static void keep_piece(struct http1_endpoint *e, struct slice piece)
{
    struct http_exchange *x = &e->exchange;
    if (piece.len == 0)
        return;
    if (streams(e)) {
        e->since_ns = e->now_ns;
        e->expects_continue = e->closes_if_refused = false; /* the client did not wait for it */
        http_exchange_pass(x, piece);
    } else if (e->drops && piece.len > e->body_max) {
        e->last = true;
        http1_move(e, HTTP1_ANSWERING);
    } else if (e->drops) {
        e->body_max -= piece.len;
    } else if (x->opening->body.len + piece.len > e->body_max)
        refuse_long(e);
    else if (account_append(x->account, &x->opening->body, piece) != ST_OK)
        refuse_for_memory(e);
}

/* False: it waits for input. */
static bool read_body(struct http1_endpoint *e)
{
    size_t used;
    struct slice piece;
    enum http1_body_result result =
        http1_body_read(&e->body, unread(e), e->server->limits->head_bytes_max, &used, &piece);
    if (result == HTTP1_BODY_IS_BAD)
        refuse(e, e->body.status, e->body.fault);
    else if (!e->drops && e->body.left > e->body_max)
        refuse_long(e); /* the size of a chunk says so */
    else
        keep_piece(e, piece);
    take(e, used);
    if (e->reading == HTTP1_BODY && result == HTTP1_BODY_IS_DONE)
        call_handler(e);
    return e->reading != HTTP1_BODY || result == HTTP1_BODY_HAS_PIECE;
}

/* Both directions have ended. A shutdown does not wait for the client. */
static bool raw_is_over(const struct http1_endpoint *e)
{
    return e->reading == HTTP1_RAW && e->exchange.output_ended &&
           (e->input_ended || e->exchange.leaving);
}

/* Passes what has arrived on an upgraded connection to the route. */
static void read_raw(struct http1_endpoint *e)
{
    struct slice bytes = unread(e);
    take(e, bytes.len);
    if (bytes.len)
        http_exchange_pass(&e->exchange, bytes);
    if (e->reading == HTTP1_RAW && e->input_ended && !e->end_passed) {
        e->end_passed = true;
        http_exchange_pass(&e->exchange, SLICE_EMPTY);
    }
    if (raw_is_over(e)) {
        http_exchange_stop(&e->exchange);
        http1_move(e, HTTP1_LEAVING);
    }
}

/* One step of reading. False: it waits for input or output. */
static bool step(struct http1_endpoint *e)
{
    switch (e->reading) {
    case HTTP1_HEAD:
        return unread_len(e) && read_head(e);
    case HTTP1_ADMITTING:
        return leave_admitting(e);
    case HTTP1_BODY:
        if (streams(e) && http_exchange_complete(&e->exchange)) {
            stop_streaming(e);
            return true;
        }
        return read_body(e);
    case HTTP1_RAW:
        read_raw(e);
        return false;
    case HTTP1_ANSWERING:
        if (!http_exchange_complete(&e->exchange) || http1_queued(e) > OUT_PIPELINE_MAX)
            return false;
        exchange_end(e);
        http1_move(e, e->last ? HTTP1_LEAVING : HTTP1_HEAD);
        e->since_ns = e->now_ns;
        return true;
    case HTTP1_LEAVING:
        return false;
    }
    return false;
}

/* The answer may last for ever, and the end of the peer's input must be noticed. So further input
 * is read, up to the size of a head. */
static bool waits_parked(const struct http1_endpoint *e)
{
    return e->reading == HTTP1_ANSWERING && e->exchange.parks &&
           !http_exchange_complete(&e->exchange);
}

/* The same for a while. What is sent behind the request is left where it is. */
static bool needs_peer(const struct http1_endpoint *e)
{
    return e->reading == HTTP1_ANSWERING && e->exchange.needs_peer &&
           !http_exchange_complete(&e->exchange);
}

static void pump(struct http1_endpoint *e, int64_t now_ns)
{
    e->now_ns = now_ns;
    e->inside++;
    while (step(e))
        continue;
    drop_taken(e);
    if (e->input_ended && (waits_parked(e) || needs_peer(e)))
        http1_die(e, "closed by the client");
    if (waits_parked(e) && e->in.len > e->server->limits->head_bytes_max)
        http1_die(e, "too much input behind a parked answer");
    /* Without more input the request cannot be completed. */
    if (e->input_ended && streams(e))
        http1_die(e, "closed by the client");
    else if (e->input_ended && (e->reading == HTTP1_HEAD || e->reading == HTTP1_BODY))
        http1_move(e, HTTP1_LEAVING);
    e->inside--;
}

void http1_endpoint_feed(struct http1_endpoint *e, struct slice bytes, int64_t now_ns)
{
    if (e->reading == HTTP1_LEAVING)
        return;
    if (e->reading == HTTP1_HEAD && e->in.len == 0)
        e->since_ns = now_ns; /* covers the whole request */
    if (account_append(e->hooks.account, &e->in, bytes) != ST_OK) {
        e->inside++;
        if (e->reading == HTTP1_ANSWERING || e->reading == HTTP1_RAW)
            http1_die(e, "clients hold too much memory");
        else
            refuse_for_memory(e);
        e->inside--;
    }
    pump(e, now_ns);
}

void http1_endpoint_feed_end(struct http1_endpoint *e, int64_t now_ns)
{
    e->input_ended = true;
    e->last = true;
    pump(e, now_ns);
}

size_t http1_endpoint_fill(struct http1_endpoint *e, uint8_t *dst, size_t room, int64_t now_ns)
{
    if (e->reading == HTTP1_ADMITTING)
        pump(e, now_ns); /* may have something to send afterwards */
    e->now_ns = now_ns;
    e->inside++;
    size_t n = http1_take(e, dst, room);
    if (n)
        e->since_ns = now_ns;
    e->inside--;
    pump(e, now_ns);
    return n;
}

bool http1_endpoint_wants_read(const struct http1_endpoint *e)
{
    if (e->reading == HTTP1_LEAVING || e->input_ended)
        return false;
    if (e->exchange.withheld && (streams(e) || e->reading == HTTP1_RAW))
        return false;
    bool waits = e->reading == HTTP1_ADMITTING || e->reading == HTTP1_ANSWERING;
    return !waits || e->in.len == 0 || waits_parked(e) ||
           (needs_peer(e) && e->in.len <= e->server->limits->head_bytes_max);
}

bool http1_endpoint_wants_write(const struct http1_endpoint *e)
{
    if (http1_queued(e) || (e->input_ended && needs_peer(e)))
        return true;
    if (e->reading == HTTP1_ADMITTING)
        return !http_exchange_is_authorizing(&e->exchange);
    /* An answer that was completed from outside must be followed by the next request. */
    bool handled = e->reading == HTTP1_ANSWERING || e->reading == HTTP1_RAW || streams(e);
    return handled && (http_exchange_complete(&e->exchange) || http_exchange_flows(&e->exchange) ||
                       raw_is_over(e));
}

bool http1_endpoint_output_ended(const struct http1_endpoint *e)
{
    return e->reading == HTTP1_RAW && e->exchange.output_ended && http1_queued(e) == 0;
}

bool http1_endpoint_over(const struct http1_endpoint *e)
{
    return e->reading == HTTP1_LEAVING && http1_queued(e) == 0;
}

const char *http1_endpoint_reason(const struct http1_endpoint *e)
{
    return e->reason;
}

bool http1_endpoint_idle(const struct http1_endpoint *e)
{
    return e->reading == HTTP1_HEAD && e->in.len == 0 && http1_queued(e) == 0;
}

void http1_endpoint_shutdown(struct http1_endpoint *e, int64_t now_ns)
{
    e->last = true;
    if (e->reading == HTTP1_HEAD && e->in.len == 0)
        http1_move(e, HTTP1_LEAVING);
    if (e->reading == HTTP1_ANSWERING)
        e->now_ns = e->since_ns = now_ns;
    http_exchange_leave(&e->exchange);
    if (e->reading == HTTP1_RAW && !e->exchange.on_leave)
        http_end(&e->exchange);
}

/* How long the current wait may last; 0: without limit. */
static int64_t wait_max(const struct http1_endpoint *e)
{
    switch (e->reading) {
    case HTTP1_HEAD:
        if (http1_queued(e))
            return e->server->http->stall_ns;
        return e->in.len ? e->server->limits->head_ns : e->server->limits->idle_ns;
    case HTTP1_ADMITTING:
    case HTTP1_ANSWERING:
        if (e->exchange.parks)
            return 0;
        return http1_endpoint_wants_write(e) ? e->server->http->stall_ns : 0;
    case HTTP1_RAW:
        return 0;
    default:
        if (streams(e)) {
            bool waits = e->exchange.state == HTTP_HANDLED && !e->exchange.withheld;
            if (http1_endpoint_wants_write(e))
                return e->exchange.parks ? 0 : e->server->http->stall_ns;
            return waits ? e->server->http->message_ns : 0;
        }
        return wire_message_by_ns(0, e->server->http->message_ns, e->exchange.opening->body.len);
    }
}

static int64_t wait_ends(const struct http1_endpoint *e)
{
    int64_t wait = http1_endpoint_over(e) ? 0 : wait_max(e);
    return wait ? e->since_ns + wait : INT64_MAX;
}

int64_t http1_endpoint_timeout(const struct http1_endpoint *e)
{
    int64_t at = wait_ends(e), deadline = http_exchange_deadline(&e->exchange);
    return at < deadline ? at : deadline;
}

void http1_endpoint_tick(struct http1_endpoint *e, int64_t now_ns)
{
    if (now_ns < http1_endpoint_timeout(e))
        return;
    e->now_ns = now_ns;
    e->inside++;
    if (now_ns < wait_ends(e))
        http_exchange_tick(&e->exchange, now_ns);
    else if (e->reading == HTTP1_HEAD && e->in.len && http1_queued(e) == 0)
        refuse(e, 408, "request head too slow");
    else if (e->reading == HTTP1_BODY && e->exchange.state != HTTP_ANSWERING)
        refuse(e, 408, "request body too slow");
    else
        http1_die(e, "no progress");
    pump(e, now_ns);
    e->inside--;
}

void http1_endpoint_check(const struct http1_endpoint *e)
{
    assert(e->inside == 0);
    assert(e->in_at == 0);
    assert(e->out_sent <= e->out.len);
    assert(e->reading != HTTP1_LEAVING || e->in.len == 0);
    assert(e->exchange.opening->body.len <= e->body_max);
    assert(e->reading == HTTP1_ADMITTING || !http_exchange_is_authorizing(&e->exchange));
    http_exchange_check(&e->exchange);
}
