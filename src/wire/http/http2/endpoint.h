/*
 * The plain HTTP requests among the streams of one HTTP/2 session. Each stream is an exchange; they
 * use the same routes as HTTP/1.1 and are answered concurrently. Created with the connection's
 * first such request, so that gRPC connections do not pay for it. Owned by the connection, like the
 * session; its thread.
 */
#ifndef VIGIL_WIRE_HTTP_HTTP2_ENDPOINT_H
#define VIGIL_WIRE_HTTP_HTTP2_ENDPOINT_H

#include "wire/h2/session.h"
#include "wire/http/hooks.h"
#include "wire/http/limits.h"
#include "wire/http/routes.h"

struct http2_endpoint;

/* What the connections of a thread share. Borrowed, with everything that it points to. */
struct http2_server {
    const struct http_routes *routes;
    const struct http_limits *limits;
};

MUST_CHECK
enum status http2_endpoint_new(const struct http2_server *server, struct http_hooks hooks,
                               struct h2_session *session, struct http2_endpoint **ret_endpoint);
/* After the session, which has closed all streams. */
void http2_endpoint_free(struct http2_endpoint *endpoint);
DEFINE_CLEANUP(struct http2_endpoint *, http2_endpoint_free)

/* For h2_session_ops.on_open. */
struct h2_stream *http2_endpoint_open(struct http2_endpoint *endpoint, struct h2_headers *headers,
                                      int64_t now_ns);

/* After the session's feed and before its fill and tick: resets exchanges that were aborted and
 * passes waiting requests to their routes. */
void http2_endpoint_turn(struct http2_endpoint *endpoint, int64_t now_ns);
/* A turn has something to do. */
bool http2_endpoint_wants_turn(const struct http2_endpoint *endpoint);
bool http2_endpoint_wants_read(const struct http2_endpoint *endpoint);
/* Ends exchanges that park (http_park). */
void http2_endpoint_shutdown(struct http2_endpoint *endpoint, int64_t now_ns);
int64_t http2_endpoint_timeout(const struct http2_endpoint *endpoint);
void http2_endpoint_tick(struct http2_endpoint *endpoint, int64_t now_ns);
/* Asserts that the endpoint and its exchanges are consistent; for tests, between calls. */
void http2_endpoint_check(const struct http2_endpoint *endpoint);

#endif
