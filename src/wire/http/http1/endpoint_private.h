/* The inside of an HTTP/1.1 connection: only for endpoint.c and response.c. */
#ifndef VIGIL_WIRE_HTTP_HTTP1_ENDPOINT_PRIVATE_H
#define VIGIL_WIRE_HTTP_HTTP1_ENDPOINT_PRIVATE_H

#include "wire/http/exchange_private.h"
#include "wire/http/http1/body.h"
#include "wire/http/http1/endpoint.h"

/*
 *               ┌───────────────────(the next request)──────────────────┐
 *               ▼                                                       │
 *              head ──► admitting ────────────────────────────► answering ──► leaving
 *                           └──► body ──────────────────────────────▲ └──► raw ──▲
 *
 * Every state may also move to answering (the request is refused) and to leaving (a fault of the
 * connection, or a shutdown). Every move is made by http1_move.
 */
enum http1_reading {
    HTTP1_HEAD,
    HTTP1_ADMITTING, /* the route decides by the head; almost nothing more is read meanwhile */
    HTTP1_BODY,      /* its own states are in body.h */
    HTTP1_ANSWERING,
    HTTP1_RAW,     /* upgraded: the bytes of the connection belong to the exchange */
    HTTP1_LEAVING, /* nothing is read any more; the connection ends when out is empty */
};

struct http1_endpoint {
    const struct http1_server *server; /* borrowed */
    struct http_hooks hooks;
    const char *reason;
    enum http1_reading reading;
    unsigned inside; /* within feed, fill or tick: on_output is not called */
    bool last;       /* the connection closes after the current answer */
    bool input_ended;
    bool end_passed;        /* the route knows that the client has ended its raw bytes */
    bool expects_continue;  /* the client sends the body after "100 Continue" */
    bool closes_if_refused; /* the body is too long to be read and dropped */
    bool drops;    /* the body is dropped, because the request was answered before it arrived */
    bool chunked;  /* the response is */
    struct buf in; /* received bytes; parsed up to in_at, which is 0 outside of pump */
    size_t in_at;
    size_t head_seen;
    struct http1_body body; /* body of the request */
    size_t body_max;        /* limit on the body, or on what is still dropped */
    int64_t admitting_ns;   /* when admission of the request began */
    struct buf out;         /* response bytes; those before out_sent were sent */
    size_t out_sent;
    int64_t now_ns;
    int64_t since_ns;              /* when the current wait began or last made progress */
    struct arena arena;            /* the head of the request and its fields */
    struct http_opening opening;   /* belongs to the exchange */
    struct http_exchange exchange; /* zeroed between requests */
};

static inline struct http1_endpoint *http1_endpoint_of(const struct http_exchange *x)
{
    return CONTAINER_OF((struct http_exchange *)(uintptr_t)x, struct http1_endpoint, exchange);
}

static inline size_t http1_queued(const struct http1_endpoint *e)
{
    return e->out.len - e->out_sent;
}

/* endpoint.c: asserts that the table of moves allows it. */
void http1_move(struct http1_endpoint *e, enum http1_reading next);
/* Sends "100 Continue" if the client waits for it and the handler wants the body. */
void http1_offer_continue(struct http1_endpoint *e);

/* response.c */
extern const struct http_exchange_ops http1_exchange_ops;
/* Queues bytes for the peer. A failure ends the connection. */
MUST_CHECK
enum status http1_put(struct http1_endpoint *e, struct slice bytes);
/* The connection ends; what was queued is dropped. */
void http1_die(struct http1_endpoint *e, const char *reason);
/* Takes queued bytes first, then bytes of the source. */
size_t http1_take(struct http1_endpoint *e, uint8_t *dst, size_t room);

#endif
