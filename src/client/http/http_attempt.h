/*
 * A request of the pool from its start to its end: a copy of what is sent, and one exchange over a
 * connection of HTTP/1.1 or HTTP/2, or several if servers ignored it.
 *
 *     waiting ──http_attempt_send──► sent ──► answered ──► ended
 *        ▲                            │                      ▲
 *        └─(the pool sends it again)──┴──────────────────────┘
 *
 * Owned by its pool_request, whose on_head and on_body it calls; what its end means is decided by
 * the pool. The loop's thread.
 */
#ifndef VIGIL_CLIENT_HTTP_HTTP_ATTEMPT_H
#define VIGIL_CLIENT_HTTP_HTTP_ATTEMPT_H

#include "base/container/list.h"
#include "client/http/pool_request.h"
#include "wire/http/http1/client.h"
#include "wire/http/http2/client.h"

struct connection;
struct http_attempt_text;
struct http_pool;
struct pool_link;

enum http_attempt_state {
    HTTP_ATTEMPT_WAITING,
    HTTP_ATTEMPT_OVER_HTTP1,
    HTTP_ATTEMPT_OVER_HTTP2,
};

struct http_attempt {
    enum http_attempt_state state;
    struct pool_request *request; /* borrowed */
    /* The exchange is over, as in pool_request_ops; it is waiting again, or may be freed. */
    void (*on_end)(struct http_attempt *attempt, enum status status, const char *reason);
    struct http_attempt_text *text; /* owned; NULL once it is answered, and cannot be sent again */
    bool only_reads;                /* the method changes nothing on the server */
    bool waits;                     /* for events */
    bool withheld;
    bool ignored;              /* valid in on_end: the server certainly ignored it */
    bool is_alone;             /* it has a connection of HTTP/1.1 for itself */
    bool taken;                /* the body's source has given something of it */
    struct http_source source; /* passes on what `body` gives, and notes that it did */
    struct http_source *body;  /* borrowed; NULL: the body is text */
    int64_t body_bytes;        /* length of what `body` gives, or unknown */

    /* The pool's. */
    struct http_pool *pool;
    struct pool_link *link; /* over which it was sent; NULL: it is in the queue */
    struct list in_pool;    /* links http_pool.waiting, http_pool.paused or pool_link.attempts */
    unsigned repeats;
    bool paused;       /* it is not sent again before repeat_ns */
    int64_t repeat_ns; /* valid while paused */

    union {
        struct http1_call http1;
        struct http2_call http2;
    };
};

/* ST_INVALID: a text contains bytes that cannot be sent, or a field that the pool sends. ST_NOMEM.
 */
MUST_CHECK
enum status http_attempt_new(struct pool_request *request, const struct pool_request_params *params,
                             struct http_attempt **ret_attempt);
/* Cancels what is under way. */
void http_attempt_free(struct http_attempt *attempt);

/*
 * Sends it over the connection, from waiting. ST_AGAIN: the connection has no room now; ST_CLOSED:
 * it takes no request any more; ST_NOMEM, ST_LIMIT, ST_INVALID: the request cannot be sent. No
 * function is called from within.
 */
MUST_CHECK
enum status http_attempt_send(struct http_attempt *attempt, struct connection *connection,
                              struct slice authority, int64_t now_ns);
void http_attempt_withhold(struct http_attempt *attempt, bool withhold, int64_t now_ns);
/* Its source has something. */
void http_attempt_wake(struct http_attempt *attempt, int64_t now_ns);

/* Asserts every invariant; for tests. */
void http_attempt_check(const struct http_attempt *attempt);

#endif
