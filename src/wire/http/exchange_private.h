/* The inside of an exchange, for the implementations of HTTP and nobody else. */
#ifndef VIGIL_WIRE_HTTP_EXCHANGE_PRIVATE_H
#define VIGIL_WIRE_HTTP_EXCHANGE_PRIVATE_H

#include "base/memory/arena.h"
#include "base/memory/budget.h"
#include "wire/http/routes.h"

/* What a version of HTTP does. Called only while the exchange is not complete. */
struct http_exchange_ops {
    /* Status and fields, those of x->fields too. length: of the body, NULL when it is not known. */
    enum status (*begin)(struct http_exchange *x, unsigned status, struct slice content_type,
                         const size_t *length);
    /* Makes room for an answer with so many bytes of body, before it is begun. */
    enum status (*reserve)(struct http_exchange *x, size_t bytes);
    /* Queues bytes of the body. A failure has broken the exchange off. */
    enum status (*write)(struct http_exchange *x, struct slice bytes);
    /* x->complete was set: what is queued is the last. */
    void (*end)(struct http_exchange *x);
    void (*abort)(struct http_exchange *x);
    /* The source may be asked again. */
    void (*wake)(struct http_exchange *x);
    /* It has a deadline now. May be NULL. */
    void (*timed)(struct http_exchange *x);
    void (*make_bulk)(struct http_exchange *x); /* NULL where answers go one by one */
    int64_t (*now)(const struct http_exchange *x);
};

/* Embedded by value in what a version keeps for a request. Zeroed between requests. What sending
 * touches stands first. */
struct http_exchange {
    const struct http_exchange_ops *ops;
    struct http_source *source;
    bool begun : 1;
    bool bodiless : 1;      /* answers HEAD, or its status has no body */
    bool complete : 1;      /* the handler has said everything, or can say no more */
    bool source_parked : 1; /* asked in vain */
    bool parks : 1;
    bool leaving : 1; /* the server shuts down */
    bool ended : 1;   /* on_end was called, or never will be */
    bool asked : 1;   /* http_exchange_admit was called */
    bool called : 1;  /* the route has the request: it hears the end */
    void *user;
    struct http_request request;
    const struct http_route *route; /* NULL until it was asked */
    void *service;
    void (*on_leave)(struct http_exchange *x);
    void (*on_deadline)(struct http_exchange *x); /* NULL: there is none, or it has passed */
    int64_t deadline_ns;
    struct account *account; /* the connection's, charged with what follows; may be NULL */
    struct buf body;
    struct buf path;   /* request.path, when it had escapes */
    struct buf fields; /* of the response, as text: "Name: value\r\n" each */
};

/*
 * The head of the request is there: through the gate to its route, which may turn its sender away.
 * False: it was answered, and its body is not to be kept. Once, before the first byte of the body
 * is kept; routes may be NULL.
 */
MUST_CHECK
bool http_exchange_admit(struct http_exchange *x, const struct http_routes *routes);
/* How long the body of a request that was admitted may be. */
size_t http_exchange_body_max(const struct http_exchange *x, size_t limit);
/* The whole request is there: to its route. One without a body is admitted here. */
void http_exchange_dispatch(struct http_exchange *x, const struct http_routes *routes);
/* Tells the handler, once. */
void http_exchange_end(struct http_exchange *x);
/* Frees what it holds. */
void http_exchange_fini(struct http_exchange *x);
/* A short plain answer of our own; 404 as Go words it, 429 and 500 for want of memory. */
void http_answer_plain(struct http_exchange *x, unsigned status);
const char *http_status_text(unsigned status);

/* Asks the source until there is no room or nothing to send. Never with room 0. */
size_t http_exchange_fill(struct http_exchange *x, uint8_t *dst, size_t room);
/* When it wants to hear of the time; INT64_MAX: never. */
static inline int64_t http_exchange_deadline(const struct http_exchange *x)
{
    return x->on_deadline && !x->complete ? x->deadline_ns : INT64_MAX;
}
/* Tells it, if it is time. */
void http_exchange_tick(struct http_exchange *x, int64_t now_ns);
/* The server leaves: exchanges that park are told. */
void http_exchange_leave(struct http_exchange *x);

/* The source has something to send, as far as is known. */
static inline bool http_exchange_flows(const struct http_exchange *x)
{
    return x->source && !x->source_parked && !x->complete;
}

/* Appends to what is queued of an answer. A short one always finds room, so that a refusal does. */
MUST_CHECK
enum status http_exchange_append(struct http_exchange *x, struct buf *queue, struct slice bytes);

/* Cuts "path?query" in two. */
void http_split_target(struct slice target, struct http_request *request);

/* The next of x->fields. */
bool http_fields_next(struct slice *rest, struct http_field *ret_field);

#endif
