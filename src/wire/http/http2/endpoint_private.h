/* The inside of HTTP over HTTP/2, shared by endpoint.c and exchange.c and nobody else. */
#ifndef VIGIL_WIRE_HTTP_HTTP2_ENDPOINT_PRIVATE_H
#define VIGIL_WIRE_HTTP_HTTP2_ENDPOINT_PRIVATE_H

#include "base/container/list.h"
#include "wire/http/exchange_private.h"
#include "wire/http/http2/endpoint.h"

struct http2_endpoint {
    const struct http2_server *server;
    struct http2_hooks hooks;
    struct h2_session *session; /* borrowed */
    struct list exchanges;      /* all of them */
    struct list broken;         /* to be reset: not from within a call on the exchange */
    struct list waiting;        /* whole requests in their order, until their turn comes */
    int64_t now_ns;             /* of the turn under way */
    int64_t check_at_ns;        /* no exchange has stalled before */
    size_t queued_bytes;        /* of answers */
    bool leaving;
};

/* What sending touches stands together: there are many that watch, and most lie in no cache. */
struct http2_exchange {
    struct http2_endpoint *endpoint;
    /* When the request began; once it is complete, when bytes of the answer last moved, or
     * something new was there to move. */
    int64_t progress_ns;
    struct list in_broken; /* links endpoint.broken */
    struct buf out;        /* bytes of the answer; those before out_sent are gone */
    size_t out_sent;
    struct h2_stream stream;
    struct http_exchange exchange;
    struct h2_headers *headers; /* a reference */
    struct list in_exchanges;   /* links endpoint.exchanges */
    struct list in_waiting;     /* links endpoint.waiting */
    struct buf head;            /* the header block of the answer, until it is sent */
    size_t body_max;            /* once it was admitted */
    bool complete;              /* the request is; its handler has it or will, or it was refused */
};

static inline struct http2_exchange *http2_of_stream(struct h2_stream *stream)
{
    return CONTAINER_OF(stream, struct http2_exchange, stream);
}

static inline struct http2_exchange *http2_of(const struct http_exchange *x)
{
    return CONTAINER_OF((struct http_exchange *)(uintptr_t)x, struct http2_exchange, exchange);
}

enum {
    /* Answers of so many bytes wait to be sent: requests wait as well. Otherwise somebody who asks
     * and does not read would have us hold all that he asks for. */
    HTTP2_QUEUED_BYTES_SOFT = 1024 * 1024,
    /* Begun in one turn; none while its bytes are read. What is reset in the same breath in which
     * it was asked for costs nothing. */
    HTTP2_REQUESTS_PER_TURN = 16,
};

/* exchange.c */
struct http2_exchange *http2_exchange_new(struct http2_endpoint *endpoint,
                                          struct h2_headers *headers);
/* Bytes ought to move: a request that has not come whole, or an answer that does not go. */
bool http2_exchange_waits(const struct http2_exchange *h);

#endif
