/*
 * The HTTP/1.1 side of one connection: reads requests, finds their routes, writes the answers in
 * order. Pipelined requests wait until the one before is answered. Owned by its connection; its
 * thread.
 *
 *     head ──► body ──► answering ──► head …
 *       └───────┴──(fault: one last answer)──► leaving
 */
#ifndef VIGIL_WIRE_HTTP_HTTP1_ENDPOINT_H
#define VIGIL_WIRE_HTTP_HTTP1_ENDPOINT_H

#include "wire/http/http1/limits.h"
#include "wire/http/limits.h"
#include "wire/http/routes.h"

struct http1_endpoint;

/* What the connections of a thread share. Borrowed, with everything in it. */
struct http1_server {
    const struct http_routes *routes; /* may be NULL */
    const struct http_limits *http;
    const struct http1_limits *limits;
};

struct http1_hooks {
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
enum status http1_endpoint_new(const struct http1_server *server, struct http1_hooks hooks,
                               int64_t now_ns, struct http1_endpoint **ret_endpoint);
/* Ends the exchange under way first. */
void http1_endpoint_free(struct http1_endpoint *endpoint);
DEFINE_CLEANUP(struct http1_endpoint *, http1_endpoint_free)

void http1_endpoint_feed(struct http1_endpoint *endpoint, struct slice bytes, int64_t now_ns);
void http1_endpoint_feed_end(struct http1_endpoint *endpoint, int64_t now_ns);
size_t http1_endpoint_fill(struct http1_endpoint *endpoint, uint8_t *dst, size_t room,
                           int64_t now_ns);
bool http1_endpoint_wants_read(const struct http1_endpoint *endpoint);
bool http1_endpoint_wants_write(const struct http1_endpoint *endpoint);
bool http1_endpoint_over(const struct http1_endpoint *endpoint);
const char *http1_endpoint_reason(const struct http1_endpoint *endpoint);
/* Between requests, with nothing received of the next. */
bool http1_endpoint_idle(const struct http1_endpoint *endpoint);
/* The answer under way is the last; one that parks is told to end. */
void http1_endpoint_shutdown(struct http1_endpoint *endpoint, int64_t now_ns);
int64_t http1_endpoint_timeout(const struct http1_endpoint *endpoint);
void http1_endpoint_tick(struct http1_endpoint *endpoint, int64_t now_ns);

#endif
