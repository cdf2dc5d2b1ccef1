#include "wire/connection.h"

#include "wire/grpc/endpoint.h"
#include "wire/http/http1/endpoint.h"
#include "wire/http/http2/endpoint.h"
#include "wire/sniff.h"

#include <stdlib.h>

enum { PREFACE_BYTES = 24 };

struct wire_server {
    struct wire_limits limits;
    struct grpc_server grpc;
    struct http1_server http1;
    struct http2_server http2;
    bool guarded;
};

/*
 *     undecided ──first bytes──► HTTP/2 (h2) or HTTP/1.1 (http1) ──► closing
 *         └─────────────────────────────────────────────────────────────┘
 *
 * h2 and http1 are never both set. Above h2, grpc and http2 are siblings; each is created with the
 * first request of its kind.
 */
struct wire_connection {
    struct wire_server *server;
    struct wire_hooks hooks;
    struct h2_session *h2;        /* owned */
    struct grpc_endpoint *grpc;   /* owned */
    struct http2_endpoint *http2; /* owned */
    struct http1_endpoint *http1; /* owned */
    const char *reason;
    int64_t handshake_by_ns;
    bool inside;  /* in a turn of http2: on_output is not called */
    bool leaving; /* wire_connection_shutdown was called */
    bool closing; /* before the protocol was known, or by the client */
    uint8_t first_len;
    uint8_t first[PREFACE_BYTES];
};

enum status wire_server_new(const struct grpc_services *services, const struct http_routes *routes,
                            const struct wire_limits *limits, struct wire_server **ret_server)
{
    struct wire_server *server = calloc(1, sizeof(*server));
    if (!server)
        return ST_NOMEM;
    server->limits = *limits;
    grpc_server_init(&server->grpc, services, &server->limits.grpc);
    server->http1 = (struct http1_server){routes, &server->limits.http, &server->limits.http1};
    server->http2 = (struct http2_server){routes, &server->limits.http};
    *ret_server = server;
    return ST_OK;
}

void wire_server_guard(struct wire_server *server)
{
    server->guarded = true;
}

void wire_server_free(struct wire_server *server)
{
    if (!server)
        return;
    grpc_server_fini(&server->grpc);
    free(server);
}

enum status wire_connection_new(struct wire_server *server, struct wire_hooks hooks, int64_t now_ns,
                                struct wire_connection **ret_connection)
{
    struct wire_connection *c = calloc(1, sizeof(*c));
    if (!c)
        return ST_NOMEM;
    *c = (struct wire_connection){.server = server,
                                  .hooks = hooks,
                                  .reason = "",
                                  .handshake_by_ns = now_ns + server->limits.handshake_ns};
    *ret_connection = c;
    return ST_OK;
}

void wire_connection_free(struct wire_connection *c)
{
    if (!c)
        return;
    h2_session_free(c->h2); /* closes all streams, which use the endpoints */
    grpc_endpoint_free(c->grpc);
    http2_endpoint_free(c->http2);
    http1_endpoint_free(c->http1);
    free(c);
}

static void on_output(void *owner)
{
    struct wire_connection *c = owner;
    if (c->hooks.on_output && !c->inside)
        c->hooks.on_output(c->hooks.owner);
}

static bool is_guarded(const struct wire_connection *c)
{
    return c->server->guarded && !c->hooks.secure;
}

static void close_for(struct wire_connection *c, const char *reason)
{
    c->closing = true;
    c->reason = reason;
}

static struct http_hooks http_hooks(struct wire_connection *c)
{
    return (struct http_hooks){.on_output = on_output,
                               .owner = c,
                               .account = c->hooks.account,
                               .secure = c->hooks.secure,
                               .guarded = is_guarded(c),
                               .peer_name = c->hooks.peer_name,
                               .certificate = c->hooks.certificate,
                               .peer = {c->hooks.peer_address, c->hooks.owner}};
}

static enum status make_grpc(struct wire_connection *c, int64_t now_ns)
{
    struct grpc_hooks hooks = {.account = c->hooks.account,
                               .peer_name = c->hooks.peer_name,
                               .peer = {c->hooks.peer_address, c->hooks.owner},
                               .fresh_ns = c->hooks.fresh_ns,
                               .guarded = is_guarded(c)};
    TRY(grpc_endpoint_new(&c->server->grpc, hooks, c->h2, &c->grpc));
    if (c->leaving)
        grpc_endpoint_shutdown(c->grpc, now_ns);
    return ST_OK;
}

static enum status make_http2(struct wire_connection *c, int64_t now_ns)
{
    TRY(http2_endpoint_new(&c->server->http2, http_hooks(c), c->h2, &c->http2));
    if (c->leaving)
        http2_endpoint_shutdown(c->http2, now_ns);
    return ST_OK;
}

/* A request whose header block is new. Not inlined, so that on_open saves no registers. */
static __attribute__((noinline)) struct h2_stream *open_new(struct wire_connection *c,
                                                            struct h2_headers *headers,
                                                            int64_t now_ns)
{
    /* Without routes, what is not gRPC is refused by gRPC; without services, everything is HTTP. */
    if (c->server->http2.routes && (!c->server->grpc.services || !grpc_is_request(headers))) {
        if (!c->http2 && make_http2(c, now_ns) != ST_OK)
            return NULL;
        return http2_endpoint_open(c->http2, headers, now_ns);
    }
    if (!c->grpc && make_grpc(c, now_ns) != ST_OK)
        return NULL;
    return grpc_endpoint_open(c->grpc, headers, now_ns);
}

/* Only gRPC makes notes, so a header block with a note was a gRPC request before. */
static struct h2_stream *on_open(void *owner, struct h2_headers *headers, int64_t now_ns)
{
    struct wire_connection *c = owner;
    if (LIKELY(headers->note != NULL))
        return grpc_endpoint_open(c->grpc, headers, now_ns);
    return open_new(c, headers, now_ns);
}

static const struct h2_session_ops session_ops = {.on_open = on_open, .on_output = on_output};

/* Resets what handlers have aborted and begins requests that wait. */
static void http2_turn(struct wire_connection *c, int64_t now_ns)
{
    c->inside = true;
    http2_endpoint_turn(c->http2, now_ns);
    c->inside = false;
}

static void feed_http2(struct wire_connection *c, struct slice bytes, int64_t now_ns)
{
    if (LIKELY(c->grpc != NULL))
        grpc_endpoint_turn(c->grpc, now_ns);
    h2_session_feed(c->h2, bytes, now_ns);
    if (UNLIKELY(c->http2 != NULL))
        http2_turn(c, now_ns);
}

static enum status start(struct wire_connection *c, enum sniffed protocol, int64_t now_ns)
{
    struct wire_server *server = c->server;
    if (protocol == SNIFFED_HTTP2)
        return h2_session_new(&server->limits.h2, &session_ops, c, c->hooks.account, now_ns,
                              &c->h2);
    if (protocol == SNIFFED_TLS) {
        close_for(c, "the client uses TLS, which is not served here");
        return ST_OK;
    }
    if (!server->http1.routes) {
        close_for(c, "only gRPC is served here");
        return ST_OK;
    }
    return http1_endpoint_new(&server->http1, http_hooks(c), now_ns, &c->http1);
}

/* Keeps bytes that do not decide the protocol: at most 23 of an unfinished preface. */
static void feed_first(struct wire_connection *c, struct slice bytes, int64_t now_ns)
{
    size_t n = size_min(bytes.len, (size_t)PREFACE_BYTES - c->first_len);
    memcpy(c->first + c->first_len, bytes.ptr, n);
    c->first_len = (uint8_t)(c->first_len + n);
    struct slice first = slice_of(c->first, c->first_len);
    enum sniffed protocol = sniff(first);
    if (protocol == SNIFFED_MORE)
        return;
    if (start(c, protocol, now_ns) != ST_OK)
        close_for(c, "out of memory");
    wire_connection_feed(c, first, now_ns);
    wire_connection_feed(c, slice_sub(bytes, n, bytes.len - n), now_ns);
}

void wire_connection_feed(struct wire_connection *c, struct slice bytes, int64_t now_ns)
{
    if (c->closing || bytes.len == 0)
        return;
    if (LIKELY(c->h2 != NULL))
        feed_http2(c, bytes, now_ns);
    else if (c->http1)
        http1_endpoint_feed(c->http1, bytes, now_ns);
    else
        feed_first(c, bytes, now_ns);
}

/* HTTP/2 clients never half-close a connection: without their input no answer can be finished. */
void wire_connection_feed_end(struct wire_connection *c, int64_t now_ns)
{
    if (c->http1)
        http1_endpoint_feed_end(c->http1, now_ns);
    else
        close_for(c, "closed by the client");
}

static bool http_wants_read(const struct wire_connection *c)
{
    if (c->http2)
        return http2_endpoint_wants_read(c->http2);
    return !c->http1 || http1_endpoint_wants_read(c->http1);
}

bool wire_connection_wants_read(const struct wire_connection *c)
{
    if (c->closing || (c->grpc && !grpc_endpoint_wants_read(c->grpc)))
        return false;
    if ((c->http2 || !c->h2) && !http_wants_read(c))
        return false;
    return !c->h2 || h2_session_wants_read(c->h2);
}

bool wire_connection_wants_write(const struct wire_connection *c)
{
    if (c->closing)
        return false;
    if (LIKELY(c->h2 != NULL))
        return h2_session_wants_write(c->h2) || (c->http2 && http2_endpoint_wants_turn(c->http2));
    return c->http1 && http1_endpoint_wants_write(c->http1);
}

static size_t fill_http2(struct wire_connection *c, uint8_t *dst, size_t room, int64_t now_ns)
{
    if (UNLIKELY(c->http2 != NULL))
        http2_turn(c, now_ns);
    if (LIKELY(c->grpc != NULL))
        grpc_endpoint_turn(c->grpc, now_ns);
    return h2_session_fill(c->h2, dst, room, now_ns);
}

size_t wire_connection_fill(struct wire_connection *c, uint8_t *dst, size_t room, int64_t now_ns)
{
    assert(room >= WIRE_FILL_ROOM_MIN);
    if (c->closing)
        return 0;
    if (c->h2)
        return fill_http2(c, dst, room, now_ns);
    return c->http1 ? http1_endpoint_fill(c->http1, dst, room, now_ns) : 0;
}

bool wire_connection_output_ended(const struct wire_connection *c)
{
    return c->http1 && http1_endpoint_output_ended(c->http1);
}

bool wire_connection_should_close(const struct wire_connection *c)
{
    if (c->closing)
        return true;
    if (c->h2)
        return h2_session_over(c->h2);
    return c->http1 && http1_endpoint_over(c->http1);
}

const char *wire_connection_reason(const struct wire_connection *c)
{
    const char *reason = c->reason;
    if (!c->closing && c->h2)
        (void)h2_session_error(c->h2, &reason);
    else if (!c->closing && c->http1)
        reason = http1_endpoint_reason(c->http1);
    return reason;
}

static bool shaking_hands(const struct wire_connection *c)
{
    if (c->h2)
        return !h2_session_established(c->h2);
    return !c->http1;
}

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

int64_t wire_connection_timeout(const struct wire_connection *c)
{
    if (c->closing)
        return INT64_MAX;
    if (shaking_hands(c))
        return c->handshake_by_ns;
    if (c->http1)
        return http1_endpoint_timeout(c->http1);
    int64_t at = h2_session_timeout(c->h2);
    if (c->grpc)
        at = earlier(at, grpc_endpoint_timeout(c->grpc));
    if (c->http2)
        at = earlier(at, http2_endpoint_timeout(c->http2));
    return at;
}

static void tick_http2(struct wire_connection *c, int64_t now_ns)
{
    if (c->grpc)
        grpc_endpoint_tick(c->grpc, now_ns);
    h2_session_tick(c->h2, now_ns);
    if (c->http2) {
        http2_turn(c, now_ns);
        http2_endpoint_tick(c->http2, now_ns);
    }
}

void wire_connection_tick(struct wire_connection *c, int64_t now_ns)
{
    if (c->closing)
        return;
    if (shaking_hands(c)) {
        if (now_ns >= c->handshake_by_ns)
            close_for(c, "no request in time");
    } else if (c->h2) {
        tick_http2(c, now_ns);
    } else {
        http1_endpoint_tick(c->http1, now_ns);
    }
}

void wire_connection_shutdown(struct wire_connection *c, int64_t now_ns)
{
    c->leaving = true;
    if (c->http2)
        http2_endpoint_shutdown(c->http2, now_ns);
    if (c->h2)
        h2_session_shutdown(c->h2, now_ns);
    if (c->grpc)
        grpc_endpoint_shutdown(c->grpc, now_ns);
    if (c->http1)
        http1_endpoint_shutdown(c->http1, now_ns);
    if (!c->h2 && !c->http1)
        close_for(c, "shutting down");
}

bool wire_connection_idle(const struct wire_connection *c)
{
    if (c->h2)
        return h2_session_streams(c->h2) == 0;
    return !c->http1 || http1_endpoint_idle(c->http1);
}

void wire_connection_check(const struct wire_connection *c)
{
    assert(!c->inside);
    assert(!c->h2 || !c->http1);
    assert(c->h2 || (!c->grpc && !c->http2));
    assert(c->first_len <= PREFACE_BYTES);
    if (c->h2)
        h2_session_check(c->h2);
    if (c->grpc)
        grpc_endpoint_check(c->grpc);
    if (c->http2)
        http2_endpoint_check(c->http2);
    if (c->http1)
        http1_endpoint_check(c->http1);
}
