/* What a transport of exchanges implements: HTTP/1.1, HTTP/2, and requests within the process. */
#ifndef VIGIL_WIRE_HTTP_TRANSPORT_H
#define VIGIL_WIRE_HTTP_TRANSPORT_H

#include "base/slice.h"
#include "base/status.h"

struct http_exchange;

/* Called only while the exchange is not complete. */
struct http_exchange_ops {
    /* Writes the status and the fields, including those of x->opening. length: of the body; NULL if
     * unknown. */
    enum status (*begin)(struct http_exchange *x, unsigned status, struct slice content_type,
                         const size_t *length);
    /* Reserves memory for an answer with this many bytes of body, before it begins. */
    enum status (*reserve)(struct http_exchange *x, size_t bytes);
    /* Queues bytes of the body. A failure has aborted the exchange. */
    enum status (*write)(struct http_exchange *x, struct slice bytes);
    /* No more bytes will be queued: the exchange is complete, unless it was upgraded. */
    void (*end)(struct http_exchange *x);
    void (*abort)(struct http_exchange *x);
    /* The source has something to send. */
    void (*wake)(struct http_exchange *x);
    /* The exchange has a deadline now. May be NULL. */
    void (*timed)(struct http_exchange *x);
    /* x->needs_peer was set. NULL: every exchange ends with its peer. */
    void (*needs_peer)(struct http_exchange *x);
    void (*make_bulk)(struct http_exchange *x); /* NULL if answers are sent one after another */
    /* x->withheld has changed. */
    void (*withhold)(struct http_exchange *x);
    /* Writes a 101 with the fields of x->opening: what follows has no framing. NULL: no request
     * asks for it. */
    enum status (*upgrade)(struct http_exchange *x);
    int64_t (*now)(const struct http_exchange *x);
    struct wire_peer (*peer)(const struct http_exchange *x); /* NULL: it has none */
    /* Frees x->opening, now or as soon as the transport does not need it. NULL: it stays. */
    void (*forget)(struct http_exchange *x);
    /* The route has admitted the request, after http_routes_admit has returned. */
    void (*authorized)(struct http_exchange *x);
};

#endif
