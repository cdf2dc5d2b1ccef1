/*
 * The connections to one server, and the requests of HTTP that they carry.
 *
 *     request:   idle ──start──► waiting ──► sent: on_head, on_body… ──► on_end ──► idle
 *                                   └──────────(no connection)───────────▲
 *
 * All requests share one connection of HTTP/2; another one is made when the server's limit of
 * streams is reached, and closed when it has had nothing to do for a while. With a server that does
 * not speak HTTP/2 every request has a connection of HTTP/1.1 to itself, which is kept for the next
 * one. Which protocol is spoken is determined by TLS (ALPN); without TLS it is HTTP/1.1, unless the
 * options say otherwise.
 *
 * A request that a server certainly ignored (GOAWAY, REFUSED_STREAM, a kept connection of HTTP/1.1
 * that was closed before an answer, for methods that only read) is sent again on another
 * connection. Everything else is for the owner to decide: a connection that cannot be made fails
 * the requests that wait for it, and the next request tries again at once.
 *
 * Owned by a client; all functions on its loop's thread. No function of a request is called from
 * within http_pool_start. Missing memory ends the request.
 */
#ifndef VIGIL_KUBECLIENT_CONNECT_HTTP_POOL_H
#define VIGIL_KUBECLIENT_CONNECT_HTTP_POOL_H

#include "base/error.h"
#include "client/connect/connector.h"
#include "client/names/endpoint.h"
#include "wire/http/field.h"

struct http_pool;
struct pool_request;

enum http_pool_protocol {
    HTTP_POOL_NEGOTIATED, /* by TLS; HTTP/1.1 without it */
    HTTP_POOL_HTTP1,
    HTTP_POOL_HTTP2, /* also without TLS, where the server is known to speak it */
};

struct http_pool_options {
    struct connector_options connector; /* its http1, h2 and tls_limits have good defaults */
    struct endpoint endpoint;
    const char *proxy_url; /* copied; "http://user:password@proxy:3128", "https://…", "socks5://…";
                              NULL: none */
    enum http_pool_protocol protocol;
    unsigned connections_max; /* requests beyond them wait; default 1024 */
    int64_t idle_ns;          /* after which a connection without requests is closed */
};

struct http_pool_stats {
    uint64_t connects, connect_errors, disconnects;
    uint64_t bytes_sent, bytes_received;
    unsigned connections; /* now */
};

/* The options are copied, except for what is marked as borrowed. ST_INVALID: the proxy's URL. */
MUST_CHECK
enum status http_pool_new(const struct http_pool_options *options, struct http_pool **ret_pool,
                          struct error *error);
/* Ends all requests (ST_CLOSED). */
void http_pool_free(struct http_pool *pool);
DEFINE_CLEANUP(struct http_pool *, http_pool_free)

/* New connections use this source, which is borrowed; requests under way are finished on the old
 * connections, which are then closed. The old source may be freed when `done` is called. */
void http_pool_set_tls(struct http_pool *pool, struct tls_client_source *source,
                       void (*done)(void *ctx), void *ctx);

/* What becomes of a request. on_head and on_body may cancel the request and free it; on_end may
 * also start it again. */
struct pool_request_ops {
    /* Borrowed; without interim responses and trailers. Names are compared without case. */
    void (*on_head)(struct pool_request *request, unsigned status, const struct http_field *fields,
                    size_t field_count);
    void (*on_body)(struct pool_request *request, struct slice bytes);
    /* Exactly once, unless the request is cancelled. ST_OK: the response is complete. Otherwise
     * ST_CLOSED, ST_NOMEM, ST_MALFORMED (the server violated HTTP), ST_LIMIT (of descriptors, or
     * more than our limits allow), and the reason is a text for people, which names the server. */
    void (*on_end)(struct pool_request *request, enum status status, const char *reason);
};

/* How far a request has got; valid in on_end. */
enum pool_request_reached {
    POOL_REQUEST_UNREACHED, /* there was no connection */
    POOL_REQUEST_SENT,      /* something of it may have been received */
    POOL_REQUEST_ANSWERED,  /* something of the response has arrived */
};

/* Texts are copied. Fields do not include host and content-length. */
struct pool_request_params {
    struct slice method;
    struct slice target; /* "/api/v1/pods?watch=1" */
    const struct http_field *fields;
    size_t field_count;
    struct slice body;
    bool waits; /* for events: a response without progress is not a stall */
};

/* Embedded by its owner; zeroed except for ops, it is idle. The other fields are the pool's. */
struct pool_request {
    const struct pool_request_ops *ops;
    enum pool_request_reached reached;
    struct http_attempt *attempt; /* owned; NULL: idle */
};

/* ST_NOMEM; ST_INVALID: a text contains bytes that cannot be sent. Otherwise on_end follows. */
MUST_CHECK
enum status http_pool_start(struct http_pool *pool, struct pool_request *request,
                            const struct pool_request_params *params);
/* No function is called any more. No effect if the request is idle. */
void pool_request_cancel(struct pool_request *request);
/* While set, the server is made to stop sending. What is on its way, at most a stream's window, is
 * still delivered. */
void pool_request_withhold(struct pool_request *request, bool withhold);

struct http_pool_stats http_pool_stats(const struct http_pool *pool);

/* Asserts every invariant; for tests. */
void http_pool_check(const struct http_pool *pool);

#endif
