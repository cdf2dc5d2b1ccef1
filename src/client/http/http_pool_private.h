/* The inside of a pool: only for http_pool.c and pool_link.c. */
#ifndef VIGIL_CLIENT_HTTP_HTTP_POOL_PRIVATE_H
#define VIGIL_CLIENT_HTTP_HTTP_POOL_PRIVATE_H

#include "client/connect/connection.h"
#include "client/http/http_attempt.h"
#include "client/http/http_pool.h"
#include "client/http/pool_route.h"

/* Drawn in http_pool.h. */
enum pool_link_state {
    POOL_LINK_CONNECTING,
    POOL_LINK_AVAILABLE,
    POOL_LINK_FULL,
    POOL_LINK_RESERVED,
    POOL_LINK_RETIRED,
    POOL_LINK_STATES,
};

/* One connection. */
struct pool_link {
    enum pool_link_state state;
    uint32_t number; /* from 1 on */
    struct http_pool *pool;
    struct connection *connection; /* owned */
    struct list in_pool;           /* links http_pool.links[state] */
    struct list attempts;          /* under way, or what it is reserved for */
    bool http1;                    /* valid once it is open */
    bool used;                     /* a response has been complete */
    uint64_t tls_generation;
    int64_t idle_since_ns; /* valid without attempts, once it is open */
};

/* A source of TLS that was replaced. */
struct tls_change {
    struct list in_pool; /* links http_pool.tls_changes */
    uint64_t generation; /* the old connections have a lower one */
    void (*done)(void *ctx);
    void *ctx;
};

/* Written by the loop's thread, read by any. */
struct http_pool_counters {
    _Atomic uint64_t connects, connect_errors, disconnects, repeats;
    _Atomic uint64_t connections; /* now */
};

struct http_pool {
    struct connector connector;
    struct pool_route route;
    enum session_protocol protocol;
    unsigned connections_max;
    int64_t idle_ns;
    void (*log)(void *ctx, int level, const char *text); /* may be NULL */
    void *log_ctx;
    bool closing;

    struct list waiting; /* attempts without a link, in order */
    size_t waiting_count;
    struct list paused;   /* attempts that will be sent again, and are not waiting yet */
    struct list upgrades; /* attempts that wait until a connection can be made for them */
    struct list links[POOL_LINK_STATES];
    unsigned counts[POOL_LINK_STATES]; /* number of links in each state */
    unsigned idle_http1;               /* number of available ones that are idle */

    bool speaks_http1;   /* known from the latest connection */
    size_t streams_seen; /* that one connection of HTTP/2 can carry; 0: unknown */

    uint32_t links_made;
    uint64_t tls_generation;
    struct list tls_changes;
    struct deferred dispatch;
    struct timer expiry; /* ends idle connections */
    struct timer pause;  /* ends when the first paused attempt is due */
    struct http_pool_counters counters;
};

static inline int64_t http_pool_now(const struct http_pool *pool)
{
    return loop_now_ns(pool->connector.options.loop);
}

static inline struct http_attempt *http_attempt_first(const struct list *attempts)
{
    return list_empty(attempts) ? NULL : LIST_ENTRY(attempts->next, struct http_attempt, in_pool);
}

/* http_pool.c */
/* Requests that wait are sent at the end of the turn. */
void http_pool_schedule(struct http_pool *pool);
void http_pool_dispatch(struct http_pool *pool);
/* Sends the request for which the connection was made. */
void http_pool_send_reserved(struct pool_link *link);
/* Ends a request, which is in no list any more. */
void http_pool_finish(struct http_attempt *attempt, enum status status, const char *reason);
/* The same for the first ones that wait. */
void http_pool_finish_waiting(struct http_pool *pool, size_t count, enum status status,
                              const char *reason);

/* pool_link.c */
/* Begins to connect: connecting or reserved. ST_NOMEM. */
MUST_CHECK
enum status pool_link_connect(struct http_pool *pool, enum pool_link_state state,
                              struct pool_link **ret_link);
void pool_link_move(struct pool_link *link, enum pool_link_state next);
/* Finishes its requests and closes it. */
void pool_link_retire(struct pool_link *link);
void pool_link_begin_idle(struct pool_link *link);
bool pool_link_is_idle_http1(const struct pool_link *link);
/* An open connection on which the server allows no stream at all: more of them would not help. */
bool pool_link_is_starved(const struct pool_link *link);
void pool_link_check(const struct pool_link *link);
bool pool_links_starve(const struct http_pool *pool); /* one of them does */
unsigned pool_links_count(const struct http_pool *pool);
unsigned pool_links_shared(const struct http_pool *pool); /* without those that are reserved */
/* The latest of that state; NULL: there is none. */
struct pool_link *pool_links_first(const struct http_pool *pool, enum pool_link_state state);
/* The number of requests that wait for more than the connections that are being made. */
size_t pool_links_uncovered(const struct http_pool *pool);
void pool_links_expire(struct timer *expiry);
void pool_links_check_tls(struct http_pool *pool);
void pool_links_drop(struct http_pool *pool, enum status status, const char *reason);
/* The timer may fire too early, and is then set again. */
void http_pool_set_no_later(struct http_pool *pool, struct timer *timer, int64_t at_ns);

#endif
