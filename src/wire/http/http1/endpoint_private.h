/* The inside of an HTTP/1.1 connection, shared by endpoint.c and response.c and nobody else. */
#ifndef VIGIL_WIRE_HTTP_HTTP1_ENDPOINT_PRIVATE_H
#define VIGIL_WIRE_HTTP_HTTP1_ENDPOINT_PRIVATE_H

#include "wire/http/exchange_private.h"
#include "wire/http/http1/endpoint.h"

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

struct http1_endpoint {
    const struct http1_server *server; /* borrowed */
    struct http1_hooks hooks;
    const char *reason;
    enum http1_reading reading;
    unsigned inside; /* within feed, fill, tick: no on_output */
    bool last;       /* close after the answer under way */
    bool input_ended;
    bool drops;    /* the body: its request was answered by its head */
    bool chunked;  /* the response */
    struct buf in; /* received; understood up to in_at, which is 0 outside of pump */
    size_t in_at;
    size_t head_seen;
    size_t body_left; /* of the body or chunk */
    size_t body_max;  /* of the request */
    size_t trailer_bytes;
    struct buf out; /* response bytes; those before out_sent are gone */
    size_t out_sent;
    int64_t now_ns;
    int64_t since_ns;              /* when what we wait for began, or last moved */
    struct arena arena;            /* head bytes and fields of the request */
    struct http_exchange exchange; /* clear between requests */
};

static inline struct http1_endpoint *http1_endpoint_of(const struct http_exchange *x)
{
    return CONTAINER_OF((struct http_exchange *)(uintptr_t)x, struct http1_endpoint, exchange);
}

static inline size_t http1_queued(const struct http1_endpoint *e)
{
    return e->out.len - e->out_sent;
}

/* response.c: bytes for the peer. A failure ends the connection. */
extern const struct http_exchange_ops http1_exchange_ops;
MUST_CHECK
enum status http1_put(struct http1_endpoint *e, struct slice bytes);
/* The connection ends; what was queued is dropped. */
void http1_die(struct http1_endpoint *e, const char *reason);
/* What is queued, then what the source has. */
size_t http1_take(struct http1_endpoint *e, uint8_t *dst, size_t room);

#endif
