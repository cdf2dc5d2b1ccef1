/*
 * The connections to one server, and the requests of HTTP that they carry.
 *
 * All requests share one connection of HTTP/2; another one is made when the server's limit of
 * streams is reached, and closed when it has had nothing to do for a while. With a server that does
 * not speak HTTP/2 every request has a connection of HTTP/1.1 to itself, which is kept for the next
 * one. Which protocol is spoken is determined by TLS (ALPN); without TLS it is HTTP/1.1, unless the
 * options say otherwise.
 *
 *     connecting ──► available ◄──► full
 *          │             │           │
 *          └─────────────┴───────────┴──► retired ──► (freed)
 *     reserved ─────────────────────────────▲
 *
 *     available   it has no request (HTTP/1.1), or fewer than the server allows (HTTP/2)
 *     reserved    made for one request, over HTTP/1.1 in any case: it asks for another protocol, or
 *                 its head is too long for ours of HTTP/2 (12 KiB)
 *     retired     its requests are finished, and it gets no new one
 *
 * A request that a server certainly ignored (GOAWAY, REFUSED_STREAM, a kept connection of HTTP/1.1
 * that was closed before an answer, for methods that only read) is sent again on another
 * connection. Everything else is for the owner to decide: a connection that cannot be made fails
 * the requests that wait for it, and the next request tries again at once.
 *
 * Owned by a client; all functions on its loop's thread. No function of a request is called from
 * within http_pool_start. Missing memory ends the request.
 */
#ifndef VIGIL_CLIENT_HTTP_HTTP_POOL_H
#define VIGIL_CLIENT_HTTP_HTTP_POOL_H

#include "base/error.h"
#include "client/connect/connector.h"
#include "client/http/pool_request.h"
#include "client/names/endpoint.h"

struct http_pool;

enum http_pool_protocol {
    HTTP_POOL_NEGOTIATED, /* by TLS; HTTP/1.1 without it */
    HTTP_POOL_HTTP1,
    HTTP_POOL_HTTP2, /* also without TLS, where the server is known to speak it */
};

struct http_pool_options {
    struct connector_options connector;
    struct endpoint endpoint;
    const char *authority; /* copied; for Host and :authority; NULL: that of the endpoint */
    const char *proxy_url; /* copied; "http://user:password@proxy:3128", "https://…", "socks5://…";
                              NULL: none */
    enum http_pool_protocol protocol;
    /* Requests beyond what they can carry wait. As many more are made for upgrades. */
    unsigned connections_max;
    int64_t idle_ns; /* after which a connection without requests is closed */
    /* Called with one line when a connection is made, fails or breaks; may be NULL. The level is an
     * enum vigil_log_level. The pool must not be freed from within. */
    void (*log)(void *ctx, int level, const char *text);
    void *log_ctx;
};

/* For loop, network, resolver, tls and endpoint. The times are those of client-go, which has no
 * limit for a response over HTTP/1.1: ours only finds servers that hang. */
#define HTTP_POOL_OPTIONS_DEFAULT                                 \
    ((struct http_pool_options){                                  \
        .connector =                                              \
            {                                                     \
                .server_name = "",                                \
                .connect_timeout_ns = 30 * INT64_C(1000000000),   \
                .h2 = HTTP_POOL_H2_LIMITS,                        \
                .http1 = {.head_bytes_max = 64 * 1024,            \
                          .fields_max = 100,                      \
                          .head_ns = 600 * INT64_C(1000000000),   \
                          .stall_ns = 600 * INT64_C(1000000000)}, \
                .tls_limits = TLS_CLIENT_LIMITS_DEFAULT,          \
            },                                                    \
        .connections_max = 1024,                                  \
        .idle_ns = 90 * INT64_C(1000000000),                      \
    })

/* Those of a client, with the keep-alive of client-go: a ping after 30 s without a frame. */
#define HTTP_POOL_H2_LIMITS                                                             \
    {                                                                                   \
        .streams_max = 32768, .header_list_bytes = 64 * 1024, .header_fields_max = 128, \
        .continuations_max = 8, .control_bytes_soft = 256 * 1024,                       \
        .control_bytes_hard = 1024 * 1024, .empty_data_max = 100, .reset_burst = 1000,  \
        .reset_per_s = 33, .settings_burst = 100, .stream_window = 256 * 1024,          \
        .connection_window = 4 * 1024 * 1024, .keepalive_ns = 30 * H2_SECOND_NS,        \
        .keepalive_timeout_ns = 15 * H2_SECOND_NS, .frame_ns = 60 * H2_SECOND_NS,       \
    }

struct http_pool_stats {
    uint64_t connects, connect_errors, disconnects;
    uint64_t repeats; /* requests that were sent again */
    uint64_t bytes_sent, bytes_received;
    uint64_t connections; /* now */
};

/* The options are copied, except for what is marked as borrowed. ST_INVALID: the proxy's URL.
 * ST_NOMEM. */
MUST_CHECK
enum status http_pool_new(const struct http_pool_options *options, struct http_pool **ret_pool,
                          struct error *error);
/* Ends all requests (ST_CLOSED). Not from within a function of a request. */
void http_pool_free(struct http_pool *pool);
DEFINE_CLEANUP(struct http_pool *, http_pool_free)

/* New connections use this source, which is borrowed; requests under way are finished on the old
 * connections, which are then closed. The old source may be freed when `done` is called, which may
 * happen within this function. Without memory the old connections are closed at once. */
void http_pool_set_tls(struct http_pool *pool, struct tls_client_source *source,
                       void (*done)(void *ctx), void *ctx);

/* ST_NOMEM; ST_INVALID: a text contains bytes that cannot be sent, or there is a field that the
 * pool sends itself. ST_CLOSED: the pool is being freed. Otherwise on_end follows. */
MUST_CHECK
enum status http_pool_start(struct http_pool *pool, struct pool_request *request,
                            const struct pool_request_params *params);

/* Any thread. */
struct http_pool_stats http_pool_stats(const struct http_pool *pool);

/* Asserts every invariant; for tests. */
void http_pool_check(const struct http_pool *pool);

#endif
