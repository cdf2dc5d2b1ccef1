/*
 * The HTTP/1.1 side of one connection: reads requests, finds their routes, writes the answers in
 * order. Pipelined requests wait until the one before is answered. Its states are drawn in
 * endpoint_private.h. Owned by its connection; its thread.
 */
#ifndef VIGIL_WIRE_HTTP_HTTP1_ENDPOINT_H
#define VIGIL_WIRE_HTTP_HTTP1_ENDPOINT_H

#include "wire/http/hooks.h"
#include "wire/http/http1/limits.h"
#include "wire/http/limits.h"
#include "wire/http/routes.h"

struct http1_endpoint;

/* What the connections of a thread share. Borrowed, with everything that it points to. */
struct http1_server {
    const struct http_routes *routes; /* may be NULL */
    const struct http_limits *http;
    const struct http1_limits *limits;
};

MUST_CHECK
enum status http1_endpoint_new(const struct http1_server *server, struct http_hooks hooks,
                               int64_t now_ns, struct http1_endpoint **ret_endpoint);
/* Ends the current exchange first. */
void http1_endpoint_free(struct http1_endpoint *endpoint);
DEFINE_CLEANUP(struct http1_endpoint *, http1_endpoint_free)

void http1_endpoint_feed(struct http1_endpoint *endpoint, struct slice bytes, int64_t now_ns);
void http1_endpoint_feed_end(struct http1_endpoint *endpoint, int64_t now_ns);
size_t http1_endpoint_fill(struct http1_endpoint *endpoint, uint8_t *dst, size_t room,
                           int64_t now_ns);
bool http1_endpoint_wants_read(const struct http1_endpoint *endpoint);
bool http1_endpoint_wants_write(const struct http1_endpoint *endpoint);
/* Nothing more will be sent, but an upgraded connection still takes input. */
bool http1_endpoint_output_ended(const struct http1_endpoint *endpoint);
bool http1_endpoint_over(const struct http1_endpoint *endpoint);
const char *http1_endpoint_reason(const struct http1_endpoint *endpoint);
/* Between requests, with nothing received of the next one. */
bool http1_endpoint_idle(const struct http1_endpoint *endpoint);
/* The current answer is the last one; an exchange that parks is ended (http_park). */
void http1_endpoint_shutdown(struct http1_endpoint *endpoint, int64_t now_ns);
int64_t http1_endpoint_timeout(const struct http1_endpoint *endpoint);
void http1_endpoint_tick(struct http1_endpoint *endpoint, int64_t now_ns);
/* Asserts that the endpoint is consistent; for tests, between calls. */
void http1_endpoint_check(const struct http1_endpoint *endpoint);

#endif
