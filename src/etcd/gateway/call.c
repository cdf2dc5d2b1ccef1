/*
 * One call of the gateway.
 *
 *     waiting ──► (parsing) ──► delivering ──► streaming ──► answered
 *        └────────────┴──────────────┴──────────────────────────▲
 *
 *     waiting      gateway.calls_max other calls are open
 *     parsing      the worker parses a large body (offload.h)
 *     delivering   requests are delivered to the service, and nothing is sent yet
 *     streaming    the exchange pulls the response
 *     answered     the response was sent in one piece, or the exchange was aborted
 *
 * The first output of the service decides the HTTP status. A short response whose gRPC status is
 * already known is sent in one piece. Any other is streamed: the exchange pulls messages from the
 * service, and they are converted to JSON piece by piece.
 */
#include "wire/grpc/call.h"
#include "codec/pb/json_write.h"
#include "etcd/gateway/gateway.h"
#include "etcd/gateway/offload.h"
#include "etcd/shared/authenticator.h"
#include "io/loop.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    PIECE_BYTES = 4096,         /* pulled from the service at once */
    TIMEOUT_NS_MIN = 1000,      /* a shorter timeout has passed already */
    DELIVER_MAX = 256,          /* requests of a call per turn */
    WHOLE_BYTES_MAX = 16 << 10, /* messages up to this size are converted and sent in one piece */
};

enum gateway_state {
    GATEWAY_WAITING,
    GATEWAY_PARSING,
    GATEWAY_DELIVERING,
    GATEWAY_STREAMING,
    GATEWAY_ANSWERED,
};

#define TO(state) (1u << GATEWAY_##state)

/* Drawn above. */
static const unsigned gateway_moves[] = {
    [GATEWAY_WAITING] = TO(PARSING) | TO(DELIVERING) | TO(ANSWERED),
    [GATEWAY_PARSING] = TO(DELIVERING) | TO(ANSWERED),
    [GATEWAY_DELIVERING] = TO(STREAMING) | TO(ANSWERED),
    [GATEWAY_STREAMING] = TO(ANSWERED),
    [GATEWAY_ANSWERED] = 0,
};

struct gateway_call {
    struct http_source source;
    enum gateway_state state;
    struct gateway *gateway;
    const struct gateway_row *row;
    struct http_exchange *x;
    struct grpc_local *local;    /* owned; NULL while waiting */
    struct list in_waiting;      /* links gateway.waiting */
    struct slice requests;       /* JSON not yet delivered; a NULL pointer: all was delivered */
    struct deferred rest;        /* delivers the rest in the next turn */
    struct gateway_parse *parse; /* owned; NULL: the body is not parsed by the worker */

    struct pb_json_writer writer;
    struct buf out; /* JSON, sent up to out_at */
    size_t out_at;
    uint32_t message_left; /* bytes of the current message that are not converted */
    uint8_t prefix_len;
    uint8_t prefix[GRPC_PREFIX_BYTES];

    bool yields;  /* the next requests are delivered in the next turn */
    bool streams; /* the response has lines of results instead of one message */
    bool busy;    /* within deliver or produce, which handle output of the service themselves */
    bool over;    /* nothing will be added to out */
};

static void move(struct gateway_call *g, enum gateway_state next)
{
    assert(gateway_moves[g->state] & (1u << next));
    g->state = next;
}

static bool is_answered(const struct gateway_call *g)
{
    return g->state == GATEWAY_ANSWERED;
}

static struct slice json_type(void)
{
    return SLICE_LITERAL("application/json");
}

static int64_t now_of(const struct gateway_call *g)
{
    return http_exchange_now(g->x);
}

/* Fails the call; if the response has begun, this aborts the exchange. */
static void abort_call(struct gateway_call *g, enum status status)
{
    bool begun = g->state == GATEWAY_STREAMING;
    move(g, GATEWAY_ANSWERED);
    if (begun)
        http_abort(g->x);
    else
        gateway_respond_error(g->gateway, g->x, status_code(status),
                              slice_from_text(status_text(status)));
}

/* -- Requests -- */

/* made: memory for a message that is parsed here. */
static enum status take_request(struct gateway_call *g, struct buf *made, struct slice *ret_message,
                                char error[PB_JSON_ERROR_BYTES])
{
    if (g->parse)
        return gateway_parse_next(g->parse, ret_message, error);
    TRY(gateway_json_take(g->row->request, &g->requests, made, error));
    *ret_message = buf_slice(made);
    return ST_OK;
}

static void drop_requests(struct gateway_call *g)
{
    g->requests = SLICE_EMPTY;
    gateway_parse_drop(g->parse);
    g->parse = NULL;
}

/* Delivers as many requests as the service accepts. An invalid one ends the requests, as in etcd.
 * True: a request, or the end of the requests, was delivered. */
static bool deliver_many(struct gateway_call *g)
{
    bool some = false;
    size_t count = 0;
    while (g->requests.ptr && !g->yields && !grpc_local_paused(g->local)) {
        if (count++ == DELIVER_MAX && g->gateway->loop) {
            /* Other clients wait: the rest of the requests is delivered in the next turn. */
            g->yields = true;
            loop_defer(g->gateway->loop, &g->rest);
            break;
        }
        AUTO(buf_fini) struct buf made = {0};
        struct slice message;
        char error[PB_JSON_ERROR_BYTES];
        some = true;
        if (take_request(g, &made, &message, error) == ST_OK) {
            grpc_local_deliver(g->local, message, now_of(g));
            continue;
        }
        drop_requests(g);
        grpc_local_half_close(g->local, now_of(g));
    }
    return some;
}

/* For a unary call grpc-gateway reads one value and ignores the rest of the body. */
static void deliver_one(struct gateway_call *g)
{
    AUTO(buf_fini) struct buf made = {0};
    struct slice message = SLICE_EMPTY;
    char error[PB_JSON_ERROR_BYTES];
    enum status status = take_request(g, &made, &message, error);
    if (status == ST_NOMEM) {
        abort_call(g, status);
    } else if (status != ST_OK && status != ST_END) { /* an empty body is an empty message */
        move(g, GATEWAY_ANSWERED);
        gateway_respond_error(g->gateway, g->x, GRPC_INVALID_ARGUMENT, slice_from_text(error));
    } else {
        grpc_local_deliver(g->local, message, now_of(g));
        grpc_local_half_close(g->local, now_of(g));
    }
    drop_requests(g);
}

/* -- From messages to JSON -- */

static enum status message_ended(struct gateway_call *g)
{
    g->prefix_len = 0;
    return g->streams ? buf_append_text(&g->out, "}\n") : ST_OK;
}

static enum status message_begins(struct gateway_call *g)
{
    const uint8_t *p = g->prefix;
    g->message_left =
        (uint32_t)p[1] << 24 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 8 | (uint32_t)p[4];
    if (g->streams)
        TRY(buf_append_text(&g->out, "{\"result\":"));
    TRY(pb_json_begin(&g->writer, g->row->response, g->message_left, &g->out));
    return g->message_left ? ST_OK : message_ended(g);
}

static enum status convert(struct gateway_call *g, struct slice bytes)
{
    while (bytes.len) {
        size_t n;
        if (g->prefix_len < GRPC_PREFIX_BYTES) {
            n = size_min(bytes.len, (size_t)GRPC_PREFIX_BYTES - g->prefix_len);
            memcpy(g->prefix + g->prefix_len, bytes.ptr, n);
            g->prefix_len = (uint8_t)(g->prefix_len + n);
            if (g->prefix_len == GRPC_PREFIX_BYTES)
                TRY(message_begins(g));
        } else {
            n = size_min(bytes.len, g->message_left);
            TRY(pb_json_feed(&g->writer, slice_sub(bytes, 0, n), &g->out));
            g->message_left -= (uint32_t)n;
            if (g->message_left == 0)
                TRY(message_ended(g));
        }
        bytes = slice_sub(bytes, n, bytes.len - n);
    }
    return ST_OK;
}

/* An error after the first message: a last line of a stream. ST_CLOSED: any other response is cut
 * short. */
static enum status add_status(struct gateway_call *g)
{
    struct slice text;
    enum grpc_code code = grpc_local_status(g->local, &text);
    g->over = true;
    if (code == GRPC_OK)
        return ST_OK;
    if (!g->streams || g->prefix_len)
        return ST_CLOSED;
    TRY(buf_append_text(&g->out, "{\"error\":"));
    TRY(gateway_error_append(&g->out, code, text));
    return buf_append_text(&g->out, "}\n");
}

/* Pulls one piece. False: there is none for now, or the call was aborted. */
static bool produce(struct gateway_call *g)
{
    uint8_t piece[PIECE_BYTES];
    size_t len = 0;
    bool asked = false; /* on_output did nothing because of busy, so there may be output */
    g->busy = true;
    enum grpc_local_fill more = grpc_local_fill(g->local, piece, sizeof(piece), now_of(g), &len);
    enum status status = convert(g, slice_of(piece, len));
    if (status == ST_OK && more == GRPC_LOCAL_END)
        status = add_status(g);
    if (status == ST_OK && !g->over && grpc_local_method(g->local)->client_streams)
        asked = deliver_many(g); /* the service may have paused until output was sent */
    g->busy = false;
    if (status != ST_OK) {
        abort_call(g, status);
        return false;
    }
    return len > 0 || asked || g->over || grpc_local_phase(g->local) == GRPC_LOCAL_OVER;
}

/* -- The answer -- */

static size_t take_out(struct gateway_call *g, uint8_t *dst, size_t room)
{
    size_t n = size_min(room, g->out.len - g->out_at);
    if (n)
        slice_copy(dst, slice_of(g->out.ptr + g->out_at, n));
    g->out_at += n;
    if (g->out_at == g->out.len) {
        g->out_at = 0;
        buf_reset(&g->out, 0);
    }
    return n;
}

static enum http_fill fill(struct http_source *source, uint8_t *dst, size_t room, size_t *ret_len)
{
    struct gateway_call *g = CONTAINER_OF(source, struct gateway_call, source);
    size_t len = 0;
    for (;;) {
        len += take_out(g, dst + len, room - len);
        *ret_len = len;
        if (g->out.len == 0 && g->over)
            return HTTP_FILL_DONE;
        if (len == room)
            return HTTP_FILL_MORE;
        if (is_answered(g) || !produce(g))
            return HTTP_FILL_PARKED;
    }
}

static void add_metadata_field(struct gateway_call *g)
{
    /* Responses of grpc-gateway have this field. A response without it is still valid. */
    (void)!http_add_field(g->x, SLICE_LITERAL("Grpc-Metadata-Content-Type"),
                          SLICE_LITERAL("application/grpc"));
}

static void begin(struct gateway_call *g)
{
    move(g, GATEWAY_STREAMING);
    add_metadata_field(g);
    http_begin(g->x, 200, json_type());
    http_set_source(g->x, &g->source);
}

static void respond_whole(struct gateway_call *g)
{
    while (!g->over && !is_answered(g)) {
        if (!produce(g))
            break;
    }
    if (is_answered(g))
        return;
    move(g, GATEWAY_ANSWERED);
    add_metadata_field(g);
    http_respond(g->x, 200, json_type(), buf_slice(&g->out));
    buf_reset(&g->out, 0);
}

/* The response of a streaming method without messages: a line with the error, or an empty body. */
static void respond_line(struct http_exchange *x, enum grpc_code code, struct slice text)
{
    if (code == GRPC_OK) {
        http_begin(x, 200, SLICE_EMPTY);
    } else {
        AUTO(buf_fini) struct buf line = {0};
        if (buf_append_text(&line, "{\"error\":") != ST_OK ||
            gateway_error_append(&line, code, text) != ST_OK ||
            buf_append_text(&line, "}\n") != ST_OK) {
            http_abort(x);
            return;
        }
        http_begin(x, gateway_http_status(code), json_type());
        if (http_write(x, buf_slice(&line)) != ST_OK)
            return;
    }
    http_end(x);
}

static void respond_without_message(struct gateway_call *g)
{
    struct slice text;
    enum grpc_code code = grpc_local_status(g->local, &text);
    move(g, GATEWAY_ANSWERED);
    if (g->streams)
        respond_line(g->x, code, text);
    else
        gateway_respond_error(g->gateway, g->x, code == GRPC_OK ? GRPC_INTERNAL : code, text);
}

/* The service may have output, or may have ended. */
static void check_output(struct gateway_call *g)
{
    enum grpc_local_phase phase = grpc_local_phase(g->local);
    bool over = phase == GRPC_LOCAL_OVER;
    if (g->state == GATEWAY_STREAMING)
        http_wake(g->x);
    else if (is_answered(g) || phase == GRPC_LOCAL_SILENT)
        return;
    else if (over && grpc_local_queued(g->local) == 0)
        respond_without_message(g);
    else if (over && !g->streams && grpc_local_queued(g->local) <= WHOLE_BYTES_MAX)
        respond_whole(g);
    else if (g->streams || over || phase == GRPC_LOCAL_SOURCE)
        begin(g);
}

static void on_output(void *owner)
{
    struct gateway_call *g = owner;
    if (!g->busy)
        check_output(g);
}

/* Refuses a call that is still waiting. */
static void refuse_waiting(struct gateway_call *g, enum grpc_code code, struct slice text)
{
    if (is_answered(g))
        return;
    move(g, GATEWAY_ANSWERED);
    list_remove(&g->in_waiting);
    gateway_respond_error(g->gateway, g->x, code, text);
}

static void on_leave(struct http_exchange *x)
{
    struct gateway_call *g = http_exchange_user(x);
    if (g->local)
        grpc_local_leave(g->local);
    else
        refuse_waiting(g, status_code(ST_STOPPED), slice_from_text(status_text(ST_STOPPED)));
}

static void on_deadline(struct http_exchange *x)
{
    struct gateway_call *g = http_exchange_user(x);
    if (g->local)
        grpc_local_expire(g->local);
    else
        refuse_waiting(g, GRPC_DEADLINE_EXCEEDED, SLICE_LITERAL("context deadline exceeded"));
}

/* -- Life -- */

static bool does_stream(const struct grpc_method *method)
{
    return method->client_streams || method->server_streams;
}

bool gateway_call_admit(struct gateway *gateway, const struct gateway_row *row,
                        struct http_exchange *x)
{
    struct gateway_metadata metadata;
    const struct grpc_row *called =
        grpc_services_find(gateway->server.services, slice_from_text(row->method));
    /* A method that is not served is refused later, with its own error. */
    if (!called || authenticator_open_to_all(gateway->authenticator, called))
        return true;
    gateway_metadata_take(&metadata, http_exchange_request(x));
    enum status status = authenticator_check(gateway->authenticator, called, metadata.fields,
                                             metadata.count, http_exchange_now(x));
    if (status == ST_OK)
        return true;
    if (does_stream(called->method))
        respond_line(x, status_code(status), slice_from_text(status_text(status)));
    else
        gateway_respond_error(gateway, x, status_code(status),
                              slice_from_text(status_text(status)));
    return false;
}

static enum status open_call(struct gateway_call *g)
{
    struct gateway_metadata metadata;
    const struct http_request *request = http_exchange_request(g->x);
    gateway_metadata_take(&metadata, request);
    struct grpc_local_hooks hooks = {.on_output = on_output,
                                     .owner = g,
                                     .peer = request->peer,
                                     .account = http_exchange_account(g->x)};
    return grpc_local_open(&g->gateway->server, slice_from_text(g->row->method), metadata.fields,
                           metadata.count, hooks, now_of(g), &g->local);
}

/* The same error as over gRPC. */
static void refuse_unknown(struct gateway_call *g)
{
    char text[160];
    struct slice path = slice_from_text(g->row->method);
    const char *method = strrchr(g->row->method, '/') + 1;
    struct slice service = slice_sub(path, 1, (size_t)(method - g->row->method) - 2);
    if (grpc_services_has(g->gateway->server.services, slice_sub(path, 0, service.len + 2)))
        snprintf(text, sizeof(text), "unknown method %s for service %.*s", method,
                 SLICE_ARGS(service));
    else
        snprintf(text, sizeof(text), "unknown service %.*s", SLICE_ARGS(service));
    gateway_respond_error(g->gateway, g->x, GRPC_UNIMPLEMENTED, slice_from_text(text));
}

static void deliver(struct gateway_call *g)
{
    g->busy = true;
    if (grpc_local_method(g->local)->client_streams)
        (void)deliver_many(g);
    else
        deliver_one(g);
    g->busy = false;
    check_output(g);
}

static void deliver_rest(struct deferred *deferred)
{
    struct gateway_call *g = CONTAINER_OF(deferred, struct gateway_call, rest);
    g->yields = false;
    if (!is_answered(g))
        deliver(g);
}

static void fail_busy(struct gateway_call *g, enum status status)
{
    move(g, GATEWAY_ANSWERED);
    gateway_respond_error(g->gateway, g->x, status_code(status),
                          SLICE_LITERAL("too many large requests are under way, please try again"));
}

/* The call may have been answered meanwhile, because of its deadline or because the server stops.
 */
static void on_parsed(void *owner, enum status status)
{
    struct gateway_call *g = owner;
    if (is_answered(g) || status != ST_OK)
        drop_requests(g);
    if (is_answered(g))
        return;
    if (status == ST_REQUEST_TOO_MANY_REQUESTS) {
        fail_busy(g, status);
    } else if (status != ST_OK) {
        abort_call(g, status);
    } else {
        move(g, GATEWAY_DELIVERING);
        deliver(g);
    }
}

/* True: the body is large, and was given to the worker or refused. */
static bool offload(struct gateway_call *g)
{
    struct gateway_parse_input input = {.type = g->row->request,
                                        .many = grpc_local_method(g->local)->client_streams,
                                        .json = g->requests,
                                        .account = http_exchange_account(g->x),
                                        .peer = http_exchange_request(g->x)->peer,
                                        .done = on_parsed,
                                        .owner = g};
    if (!g->gateway->offload || g->requests.len <= GATEWAY_INLINE_BYTES_MAX)
        return false;
    enum status status = gateway_parse_start(g->gateway->offload, &input, &g->parse);
    if (status == ST_OK)
        move(g, GATEWAY_PARSING);
    else if (status == ST_REQUEST_TOO_MANY_REQUESTS)
        fail_busy(g, status);
    else
        abort_call(g, status);
    return true;
}

static void start(struct gateway_call *g)
{
    g->gateway->calls++;
    enum status status = open_call(g);
    if (status != ST_OK) {
        g->gateway->calls--;
        move(g, GATEWAY_ANSWERED);
        if (status == ST_UNIMPLEMENTED)
            refuse_unknown(g);
        else
            gateway_respond_error(g->gateway, g->x, status_code(status),
                                  slice_from_text(status_text(status)));
        return;
    }
    const struct grpc_method *method = grpc_local_method(g->local);
    g->streams = does_stream(method);
    if (!offload(g)) {
        move(g, GATEWAY_DELIVERING);
        deliver(g);
    }
}

/* False: the call was answered with an error. */
static bool set_deadline(struct gateway_call *g)
{
    struct slice text;
    int64_t timeout_ns, at_ns;
    if (!gateway_timeout(http_exchange_request(g->x), &timeout_ns, &text)) {
        char words[256];
        int len = snprintf(words, sizeof(words), "invalid grpc-timeout: %.*s",
                           (int)size_min(text.len, 128), (const char *)text.ptr);
        move(g, GATEWAY_ANSWERED);
        gateway_respond_error(g->gateway, g->x, GRPC_INVALID_ARGUMENT,
                              slice_of(words, (size_t)len));
        return false;
    }
    if (timeout_ns < TIMEOUT_NS_MIN) {
        on_deadline(g->x);
        return false;
    }
    if (!__builtin_add_overflow(now_of(g), timeout_ns, &at_ns))
        http_set_deadline(g->x, at_ns, on_deadline);
    return true;
}

struct gateway_call *gateway_call_start(struct gateway *gateway, const struct gateway_row *row,
                                        struct http_exchange *x)
{
    struct gateway_call *g = calloc(1, sizeof(*g));
    if (!g) {
        http_abort(x);
        return NULL;
    }
    g->source.fill = fill;
    g->rest.fn = deliver_rest;
    g->gateway = gateway;
    g->row = row;
    g->x = x;
    g->requests = http_exchange_request(x)->body;
    if (!g->requests.ptr)
        g->requests = SLICE_LITERAL("");
    list_init(&g->in_waiting);
    http_exchange_set_user(x, g);
    const struct grpc_row *called =
        grpc_services_find(gateway->server.services, slice_from_text(row->method));
    if (called && called->method->parks)
        http_park(x, on_leave);
    if (is_answered(g) || !set_deadline(g)) /* the server stops, or the timeout has passed */
        return g;
    if (gateway->calls < gateway->calls_max)
        start(g);
    else
        list_push_back(&gateway->waiting, &g->in_waiting);
    return g;
}

void gateway_call_end(struct gateway_call *g)
{
    if (!g)
        return;
    struct gateway *gateway = g->gateway;
    list_remove(&g->in_waiting);
    if (g->local)
        gateway->calls--;
    if (g->yields)
        loop_defer_cancel(&g->rest);
    g->busy = true; /* output of the service is ignored from now on */
    grpc_local_close(g->local);
    gateway_parse_drop(g->parse);
    pb_json_writer_fini(&g->writer);
    buf_fini(&g->out);
    free(g);
    while (gateway->calls < gateway->calls_max && !list_empty(&gateway->waiting))
        start(LIST_ENTRY(list_pop_front(&gateway->waiting), struct gateway_call, in_waiting));
}

void gateway_check(const struct gateway *gateway)
{
    assert(gateway->calls <= gateway->calls_max);
    assert(list_empty(&gateway->waiting) || gateway->calls == gateway->calls_max);
    const struct gateway_call *g;
    LIST_FOREACH (g, &gateway->waiting, in_waiting)
        assert(g->gateway == gateway && g->state == GATEWAY_WAITING && !g->local);
}
