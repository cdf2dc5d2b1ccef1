/*
 * The way to a cluster for requests of HTTP/1.1, one at a time: a connection that is made when it
 * is needed, and replaced by one to the next endpoint after a failure, with a growing pause once
 * every endpoint has failed.
 *
 *     idle ──► resolving ──► connecting ──► ready
 *      │  ▲        │           ▲   │         │
 *      │  │        ▼           │   │         │
 *      │  │     pausing ◄──────┼───┘         │
 *      │  │     │  ▲           │             │
 *      │  │     └──┼───────────┘             │
 *      │  └────────┼── (closed while idle) ──┤
 *      └───────────┘   ◄──(a request failed)─┘
 *
 * Embedded by its owner, which may have several of them; endpoints, TLS and back-off are the
 * channel's. The loop's thread. on_ready is not called from within a function of this header.
 */
#ifndef VIGIL_CLIENT_CONNECT_HTTP_LINK_H
#define VIGIL_CLIENT_CONNECT_HTTP_LINK_H

#include "io/timer.h"
#include "wire/http/http1/client.h"

struct channel;
struct connection;
struct lookup;

enum http_link_state {
    HTTP_LINK_IDLE,
    HTTP_LINK_RESOLVING, /* the SRV records */
    HTTP_LINK_CONNECTING,
    HTTP_LINK_READY,
    HTTP_LINK_PAUSING,
};

struct http_link {
    enum http_link_state state;
    struct channel *channel; /* borrowed */
    void (*on_ready)(struct http_link *link);
    struct connection *connection; /* owned; while connecting and ready */
    struct lookup *lookup;         /* owned; while resolving */
    size_t endpoint;               /* the current one, modulo their number */
    size_t failed;                 /* endpoints since the last success or pause */
    int64_t backoff_ns;            /* the next pause; 0: the shortest */
    bool used;                     /* a request has succeeded on this connection */
    struct timer pause;
};

void http_link_init(struct http_link *link, struct channel *channel,
                    void (*on_ready)(struct http_link *link));
/* The owner's call has ended or was cancelled. */
void http_link_fini(struct http_link *link);

/* An idle connection, for http1_client_start. NULL: on_ready is called when there is one. */
struct http1_client *http_link_get(struct http_link *link);
/* For the Host field; valid after http_link_get. */
struct slice http_link_host(const struct http_link *link);

/* The latest request has got a response with which the owner is content. */
void http_link_succeeded(struct http_link *link);
/* It has not, so the connection is not used any more. answered: the server has sent something; a
 * connection that was used before and is closed without an answer was closed for lack of requests,
 * which is not a failure. The text is for people. */
void http_link_failed(struct http_link *link, bool answered, const char *text);
/* The server has nothing to say, so the next request is sent after a pause. */
void http_link_slow_down(struct http_link *link);

/* Asserts every invariant; for tests. */
void http_link_check(const struct http_link *link);

#endif
