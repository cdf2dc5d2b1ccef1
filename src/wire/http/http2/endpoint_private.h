/* The inside of HTTP over HTTP/2: only for endpoint.c and exchange.c. */
#ifndef VIGIL_WIRE_HTTP_HTTP2_ENDPOINT_PRIVATE_H
#define VIGIL_WIRE_HTTP_HTTP2_ENDPOINT_PRIVATE_H

#include "base/container/list.h"
#include "wire/http/exchange_private.h"
#include "wire/http/http2/endpoint.h"

struct http2_endpoint {
    const struct http2_server *server;
    struct http_hooks hooks;
    struct h2_session *session; /* borrowed */
    struct list exchanges;      /* all exchanges of the connection */
    /* Requests that continue in the next turn: those that have arrived completely, in order, those
     * whose client was admitted, and those whose route may take the body as it arrives. */
    struct list waiting;
    int64_t now_ns;      /* time of the current turn */
    int64_t check_at_ns; /* no exchange has to be checked before */
    size_t broken; /* how many must be reset, which must not happen within a call on the exchange */
    size_t queued_bytes; /* size of answers */
    size_t early_bytes;  /* size of bodies whose clients are not admitted yet */
    bool leaving;
};

/* What is only needed until the answer has begun, unless the handler reads the request later. */
struct http2_opening {
    struct http_opening http;
    struct http2_exchange *exchange;
    struct list in_waiting;     /* links endpoint.waiting */
    struct h2_headers *headers; /* a reference */
    struct buf head;            /* the header block of the answer, until it is sent */
    size_t body_max;            /* set when the route is known */
    size_t early_bytes; /* bytes of the body: arrived before the client was admitted, and not given
                           back to the stream's window */
    uint32_t withheld_bytes; /* received while the handler withheld the body; not given back */
    bool head_sent;
};

/* The fields that sending uses are together: there may be many watches, and most of them are in no
 * cache. */
struct http2_exchange {
    struct http2_endpoint *endpoint;
    /* While the request arrives, when it began; afterwards when bytes of the answer were last sent
     * or became available. */
    int64_t progress_ns;
    struct buf out; /* bytes of the answer; those before out_sent were sent */
    size_t out_sent;
    struct h2_stream stream;
    struct http_exchange exchange;
    struct list in_exchanges;      /* links endpoint.exchanges */
    struct http2_opening *opening; /* owned; NULL when it is not needed any more */
    bool received;                 /* the request arrived completely */
    bool forgotten;                /* the handler does not use the request any more */
    bool broken;                   /* to be reset; then the answer is complete, too */
};

_Static_assert(offsetof(struct http2_exchange, exchange) == HTTP_TRANSPORT_BYTES,
               "http_wake_soon prefetches what sending uses");

static inline struct http2_exchange *http2_of_stream(struct h2_stream *stream)
{
    return CONTAINER_OF(stream, struct http2_exchange, stream);
}

static inline struct http2_exchange *http2_of(const struct http_exchange *x)
{
    return CONTAINER_OF((struct http_exchange *)(uintptr_t)x, struct http2_exchange, exchange);
}

enum {
    /* When more bytes of answers than this are queued, requests wait. Otherwise a client that sends
     * requests and does not read would make us hold all the answers. */
    HTTP2_QUEUED_BYTES_SOFT = 1024 * 1024,
    /* When more bytes than this have arrived of bodies whose clients are not admitted yet, nothing
     * is read. */
    HTTP2_EARLY_BYTES_SOFT = 64 * 1024,
    /* Requests passed to routes in one turn, and never while input is read: a request that is reset
     * in the same input costs nothing. */
    HTTP2_REQUESTS_PER_TURN = 16,
};

/* exchange.c */
struct http2_exchange *http2_exchange_new(struct http2_endpoint *endpoint,
                                          struct h2_headers *headers);
/* Continues with a request that was waiting: reads its body, or passes it to its route. */
void http2_exchange_proceed(struct http2_exchange *h);
/* The client has to send the rest of a request. */
bool http2_exchange_arrives(const struct http2_exchange *h);
/* A request has not arrived completely, or the client does not read an answer. */
bool http2_exchange_stalls(const struct http2_exchange *h);

#endif
