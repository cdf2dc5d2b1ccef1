/* The inside of an HTTP/1.1 connection, shared by endpoint.c and response.c and nobody else. */
#ifndef VIGIL_WIRE_HTTP1_STATE_H
#define VIGIL_WIRE_HTTP1_STATE_H

#include "base/arena.h"
#include "base/buf.h"
#include "wire/http1/endpoint.h"

enum http1_reading {
    HTTP1_HEAD,
    HTTP1_BODY, /* of a known length */
    HTTP1_CHUNK_SIZE,
    HTTP1_CHUNK_DATA,
    HTTP1_CHUNK_END, /* the CRLF after a chunk */
    HTTP1_TRAILERS,  /* read and dropped */
    HTTP1_ANSWERING,
    HTTP1_LEAVING, /* nothing is read any more; ends when out is empty */
};

/* One request and its answer. Lives in the endpoint; clear between requests. */
struct http1_exchange {
    struct http1_request request;
    const struct http1_route *route; /* NULL while none was called */
    void *service;
    void *user;
    struct arena arena; /* head bytes, fields */
    struct buf body;
    struct buf extra_fields; /* of the response, as text */
    bool begun : 1;
    bool chunked : 1;  /* the response */
    bool bodiless : 1; /* answers HEAD */
    bool complete : 1; /* the response is all in out */
};

struct http1_endpoint {
    const struct http1_routes *routes;
    const struct http1_limits *limits;
    void (*on_output)(void *owner);
    void *owner;
    const char *reason;
    enum http1_reading reading;
    unsigned inside; /* within feed, fill, tick: no on_output */
    bool last;       /* close after the answer under way */
    bool input_ended;
    struct buf in; /* received, not yet understood */
    size_t head_seen;
    size_t body_left; /* of the body or chunk */
    size_t trailer_bytes;
    struct buf out; /* response bytes; those before out_sent are gone */
    size_t out_sent;
    int64_t now_ns;
    int64_t since_ns; /* when what we wait for began, or last moved */
    struct http1_exchange exchange;
};

static inline struct http1_endpoint *http1_endpoint_of(struct http1_exchange *exchange)
{
    return CONTAINER_OF(exchange, struct http1_endpoint, exchange);
}

/* response.c: bytes for the peer. A failure ends the connection. */
MUST_CHECK
enum status http1_put(struct http1_endpoint *e, struct slice bytes);
/* A short answer of our own, after which the connection ends when `last`. */
void http1_answer_plain(struct http1_endpoint *e, unsigned status, bool last);
void http1_die(struct http1_endpoint *e, const char *reason);

#endif
