/*
 * The HTTP requests among the streams of one HTTP/2 connection: what is not gRPC. Each stream is an
 * exchange that is answered from the same routes as HTTP/1.1, side by side with the others. Made
 * with the connection's first such request, so that gRPC pays nothing for it. Owned by its
 * connection; its thread.
 */
#ifndef VIGIL_WIRE_HTTP_HTTP2_ENDPOINT_H
#define VIGIL_WIRE_HTTP_HTTP2_ENDPOINT_H

#include "wire/h2/session.h"
#include "wire/http/limits.h"
#include "wire/http/routes.h"

struct http2_endpoint;

/* What the connections of a thread share. Borrowed, with everything in it. */
struct http2_server {
    const struct http_routes *routes;
    const struct http_limits *limits;
};

struct http2_hooks {
    void (*on_output)(void *owner);
    void *owner;
    struct account *account; /* the connection's; may be NULL */
    bool secure;             /* it came over TLS */
    bool guarded;            /* as http_request has it */
    const char *peer_name;   /* as http_request has it */
    const struct http_certificate *certificate;
    struct wire_peer peer;
};

MUST_CHECK
enum status http2_endpoint_new(const struct http2_server *server, struct http2_hooks hooks,
                               struct h2_session *session, struct http2_endpoint **ret_endpoint);
/* After the session, which has closed all streams. */
void http2_endpoint_free(struct http2_endpoint *endpoint);
DEFINE_CLEANUP(struct http2_endpoint *, http2_endpoint_free)

/* For h2_session_ops.on_open. */
struct h2_stream *http2_endpoint_open(struct http2_endpoint *endpoint, struct h2_headers *headers,
                                      int64_t now_ns);

/* After the session's feed and before its fill and tick: resets what was broken off, begins some of
 * what waits.
 */
void http2_endpoint_turn(struct http2_endpoint *endpoint, int64_t now_ns);
/* There is something of that. */
bool http2_endpoint_wants_turn(const struct http2_endpoint *endpoint);
bool http2_endpoint_wants_read(const struct http2_endpoint *endpoint);
/* Exchanges that park are told to end. */
void http2_endpoint_shutdown(struct http2_endpoint *endpoint, int64_t now_ns);
int64_t http2_endpoint_timeout(const struct http2_endpoint *endpoint);
void http2_endpoint_tick(struct http2_endpoint *endpoint, int64_t now_ns);

#endif
