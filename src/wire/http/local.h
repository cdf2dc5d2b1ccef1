/*
 * An HTTP request from within the process, without a connection: the server uses it to do what a
 * client could do, with every rule that applies to clients. For the handler it is an ordinary
 * exchange; its request says that the server itself makes it (http_request.own).
 *
 *     send ──► on_answer: the answer is complete ──► close
 *       └────────────────────────────────────────────► close: the caller has lost interest
 *
 * One owner, on the thread of the service.
 */
#ifndef VIGIL_WIRE_HTTP_LOCAL_H
#define VIGIL_WIRE_HTTP_LOCAL_H

#include "wire/http/exchange.h"
#include "wire/http/route.h"

struct http_local;

struct http_local_request {
    struct slice method;
    struct slice path;         /* without escapes */
    struct slice query;        /* may be empty */
    struct slice content_type; /* type of the body */
    struct slice body;
    const char *account; /* http_request.own_account; not copied */
};

/* How much of an answer is kept; the rest is dropped. */
enum { HTTP_LOCAL_ANSWER_BYTES = 4096 };

struct http_local_owner {
    /* The answer is complete. Called from within the handler, perhaps before send returns: the
     * owner closes the request later, from its loop. */
    void (*on_answer)(void *ctx);
    int64_t (*now_ns)(void *ctx); /* monotonic */
    void *ctx;
};

/* Everything is copied except the route, which outlives the request. *ret_local is set before the
 * handler is called. ST_NOMEM. */
MUST_CHECK
enum status http_local_send(const struct http_route *route, void *service,
                            const struct http_local_request *request,
                            const struct http_local_owner *owner, struct http_local **ret_local);

/* After on_answer: the status code, 0 if the answer was cut off, and the beginning of the body. */
unsigned http_local_code(const struct http_local *local);
struct slice http_local_body(const struct http_local *local);

/* Ends the exchange. Not from within on_answer. Accepts NULL. */
void http_local_close(struct http_local *local);
DEFINE_CLEANUP(struct http_local *, http_local_close)

#endif
