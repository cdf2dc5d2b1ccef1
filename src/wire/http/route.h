/* One route of a server: a path, and the functions of the service that answers it. The life of an
 * exchange is drawn in exchange.h. */
#ifndef VIGIL_WIRE_HTTP_ROUTE_H
#define VIGIL_WIRE_HTTP_ROUTE_H

#include "base/slice.h"

struct http_exchange;
struct http_request;

struct http_route {
    const char *path; /* "/health", or a prefix that ends in '/': "/v3/" */
    /*
     * Whether the client may make this request, judged by its head. Called before any byte of the
     * body is kept, and again when a body has arrived, because permissions may have changed. False:
     * it has answered. May be NULL.
     */
    bool (*admit)(struct http_exchange *x, void *service, const struct http_request *request);
    /*
     * The same for a decision that takes time, such as verifying a password. Called once, after
     * admit and before any byte of the body is kept: it calls http_authorized or answers, now or
     * later. Until then the connection reads almost nothing of the body. May be NULL.
     */
    void (*authorize)(struct http_exchange *x, void *service, const struct http_request *request);
    void (*on_request)(struct http_exchange *x, void *service, const struct http_request *request);
    /*
     * Takes the body as it arrives, of any length: on_request is called when the head has arrived,
     * and if request->has_body, this follows with the bytes and then once with none, when the body
     * is complete. http_withhold makes the client stop. NULL: the body is in the request.
     */
    void (*on_body)(struct http_exchange *x, void *service, struct slice bytes);
    /* The exchange is over, for whatever reason. Not called for a request that was refused before
     * authorize or on_request was called. May be NULL. */
    void (*on_end)(struct http_exchange *x, void *service);
    /* 0: limits.body_bytes_max, which is also the upper bound. No limit with on_body. */
    size_t body_bytes_max;
    /* Answers a request whose body is longer, and is not read. NULL: 413 with a short text. */
    void (*too_long)(struct http_exchange *x);
};

#endif
