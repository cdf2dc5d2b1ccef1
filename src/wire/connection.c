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

/* Until the first bytes decide, neither grpc nor http1 is there; afterwards exactly one. http2
 * comes beside grpc with the first request that is not gRPC. */
struct wire_connection {
    struct wire_server *server;
    struct wire_hooks hooks;
    struct grpc_endpoint *grpc;
    struct http1_endpoint *http1;
    struct http2_endpoint *http2;
    const char *reason;
    int64_t handshake_by_ns;
    bool inside;  /* a turn of http2: no on_output */
    bool closing; /* before a protocol was known, or by its client */
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

static struct h2_stream *on_http(void *owner, struct h2_headers *headers, int64_t now_ns)
{
    struct wire_connection *c = owner;
    struct http2_hooks hooks = {.on_output = on_output,
                                .owner = c,
                                .account = c->hooks.account,
                                .secure = c->hooks.secure,
                                .guarded = is_guarded(c),
                                .peer_name = c->hooks.peer_name,
                                .certificate = c->hooks.certificate,
                                .peer = {c->hooks.peer_address, c->hooks.owner}};
    if (!c->http2 && http2_endpoint_new(&c->server->http2, hooks, grpc_endpoint_session(c->grpc),
                                        &c->http2) != ST_OK)
        return NULL;
    return http2_endpoint_open(c->http2, headers, now_ns);
}

static const struct grpc_endpoint_ops with_http = {.on_output = on_output, .on_other = on_http};
static const struct grpc_endpoint_ops only_grpc = {.on_output = on_output};

/* What handlers broke off before, or have broken off meanwhile. */
static void http2_turn(struct wire_connection *c, int64_t now_ns)
{
    c->inside = true;
    http2_endpoint_turn(c->http2, now_ns);
    c->inside = false;
}

static void feed_http2(struct wire_connection *c, struct slice bytes, int64_t now_ns)
{
    grpc_endpoint_feed(c->grpc, bytes, now_ns);
    if (UNLIKELY(c->http2 != NULL))
        http2_turn(c, now_ns);
}

static void feed_on(struct wire_connection *c, struct slice bytes, int64_t now_ns)
{
    if (bytes.len == 0)
        return;
    if (c->grpc)
        feed_http2(c, bytes, now_ns);
    else
        http1_endpoint_feed(c->http1, bytes, now_ns);
}

static enum status start(struct wire_connection *c, enum sniffed protocol, int64_t now_ns)
{
    struct wire_server *server = c->server;
    if (protocol == SNIFFED_HTTP2) {
        TRY(grpc_endpoint_new(&server->grpc, &server->limits.h2,
                              server->http2.routes ? &with_http : &only_grpc, c, c->hooks.account,
                              now_ns, &c->grpc));
        grpc_endpoint_set_peer_name(c->grpc, c->hooks.peer_name);
        grpc_endpoint_set_peer(c->grpc, c->hooks.peer_address, c->hooks.fresh_ns, c->hooks.owner);
        grpc_endpoint_set_guarded(c->grpc, is_guarded(c));
        return ST_OK;
    }
    if (!server->http1.routes) {
        close_for(c, "only gRPC is served here");
        return ST_OK;
    }
    struct http1_hooks hooks = {.on_output = on_output,
                                .owner = c,
                                .account = c->hooks.account,
                                .secure = c->hooks.secure,
                                .guarded = is_guarded(c),
                                .peer_name = c->hooks.peer_name,
                                .certificate = c->hooks.certificate,
                                .peer = {c->hooks.peer_address, c->hooks.owner}};
    return http1_endpoint_new(&server->http1, hooks, now_ns, &c->http1);
}

/* Keeps what cannot be told apart yet; at most the 23 bytes of an unfinished preface. */
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
    if (c->closing)
        return;
    feed_on(c, first, now_ns);
    feed_on(c, slice_sub(bytes, n, bytes.len - n), now_ns);
}

void wire_connection_feed(struct wire_connection *c, struct slice bytes, int64_t now_ns)
{
    if (c->closing || bytes.len == 0)
        return;
    if (LIKELY(c->grpc || c->http1))
        feed_on(c, bytes, now_ns);
    else
        feed_first(c, bytes, now_ns);
}

/* gRPC clients never half-close a connection; without their input nothing can be asked of us. */
void wire_connection_feed_end(struct wire_connection *c, int64_t now_ns)
{
    if (c->http1)
        http1_endpoint_feed_end(c->http1, now_ns);
    else
        close_for(c, "closed by the client");
}

bool wire_connection_wants_read(const struct wire_connection *c)
{
    if (c->closing)
        return false;
    if (c->grpc)
        return grpc_endpoint_wants_read(c->grpc) &&
               (!c->http2 || http2_endpoint_wants_read(c->http2));
    return !c->http1 || http1_endpoint_wants_read(c->http1);
}

bool wire_connection_wants_write(const struct wire_connection *c)
{
    if (c->closing)
        return false;
    if (LIKELY(c->grpc != NULL))
        return h2_session_wants_write(grpc_endpoint_session(c->grpc)) ||
               (c->http2 && http2_endpoint_wants_turn(c->http2));
    return c->http1 && http1_endpoint_wants_write(c->http1);
}

static size_t fill_http2(struct wire_connection *c, uint8_t *dst, size_t room, int64_t now_ns)
{
    if (UNLIKELY(c->http2 != NULL))
        http2_turn(c, now_ns);
    return grpc_endpoint_fill(c->grpc, dst, room, now_ns);
}

size_t wire_connection_fill(struct wire_connection *c, uint8_t *dst, size_t room, int64_t now_ns)
{
    assert(room >= WIRE_FILL_ROOM_MIN);
    if (c->closing)
        return 0;
    if (c->grpc)
        return fill_http2(c, dst, room, now_ns);
    return c->http1 ? http1_endpoint_fill(c->http1, dst, room, now_ns) : 0;
}

bool wire_connection_should_close(const struct wire_connection *c)
{
    if (c->closing)
        return true;
    if (c->grpc)
        return h2_session_over(grpc_endpoint_session(c->grpc));
    return c->http1 && http1_endpoint_over(c->http1);
}

const char *wire_connection_reason(const struct wire_connection *c)
{
    const char *reason = c->reason;
    if (!c->closing && c->grpc)
        (void)h2_session_error(grpc_endpoint_session(c->grpc), &reason);
    else if (!c->closing && c->http1)
        reason = http1_endpoint_reason(c->http1);
    return reason;
}

static bool shaking_hands(const struct wire_connection *c)
{
    if (c->grpc)
        return !h2_session_established(grpc_endpoint_session(c->grpc));
    return !c->http1;
}

int64_t wire_connection_timeout(const struct wire_connection *c)
{
    if (c->closing)
        return INT64_MAX;
    if (shaking_hands(c))
        return c->handshake_by_ns;
    if (c->http1)
        return http1_endpoint_timeout(c->http1);
    int64_t at = grpc_endpoint_timeout(c->grpc);
    int64_t http_at = c->http2 ? http2_endpoint_timeout(c->http2) : INT64_MAX;
    return http_at < at ? http_at : at;
}

void wire_connection_tick(struct wire_connection *c, int64_t now_ns)
{
    if (c->closing)
        return;
    if (shaking_hands(c)) {
        if (now_ns >= c->handshake_by_ns)
            close_for(c, "no request in time");
    } else if (c->grpc) {
        grpc_endpoint_tick(c->grpc, now_ns);
        if (c->http2) {
            http2_turn(c, now_ns);
            http2_endpoint_tick(c->http2, now_ns);
        }
    } else {
        http1_endpoint_tick(c->http1, now_ns);
    }
}

void wire_connection_shutdown(struct wire_connection *c, int64_t now_ns)
{
    if (c->http2)
        http2_endpoint_shutdown(c->http2, now_ns);
    if (c->grpc)
        grpc_endpoint_shutdown(c->grpc, now_ns);
    else if (c->http1)
        http1_endpoint_shutdown(c->http1, now_ns);
    else
        close_for(c, "shutting down");
}

bool wire_connection_idle(const struct wire_connection *c)
{
    if (c->grpc)
        return h2_session_streams(grpc_endpoint_session(c->grpc)) == 0;
    return !c->http1 || http1_endpoint_idle(c->http1);
}
