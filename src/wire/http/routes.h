/*
 * The set of paths a server answers over HTTP: filled at start, read-only afterwards. What passes
 * the gate is handed to the row with the longest matching path; nobody's path is answered with 404.
 */
#ifndef VIGIL_WIRE_HTTP_ROUTES_H
#define VIGIL_WIRE_HTTP_ROUTES_H

#include "wire/http/exchange.h"

struct http_route {
    const char *path; /* "/health", or a prefix that ends in '/': "/v3/" */
    /*
     * Whether the sender may make this request, as far as its head tells. Asked before any byte of
     * the body is kept, and again when a body has arrived, for rights may have changed meanwhile.
     * False: it has answered. May be NULL.
     */
    bool (*admit)(struct http_exchange *x, void *service, const struct http_request *request);
    void (*on_request)(struct http_exchange *x, void *service, const struct http_request *request);
    /* The exchange is over, for whatever reason. May be NULL. */
    void (*on_end)(struct http_exchange *x, void *service);
    size_t body_bytes_max; /* 0: as limits.body_bytes_max says; more than that is cut to it */
};

struct http_routes;

MUST_CHECK
enum status http_routes_new(struct http_routes **ret_routes);
void http_routes_free(struct http_routes *routes);
DEFINE_CLEANUP(struct http_routes *, http_routes_free)

/* Rows are borrowed. The longest matching path wins; an exact one before a prefix. */
MUST_CHECK
enum status http_routes_add(struct http_routes *routes, const struct http_route *rows, size_t count,
                            void *service);

/* Sees the head of every request before its body is kept and before its route does, and may add
 * fields to the answer. False: it has answered itself. */
typedef bool http_gate(struct http_exchange *x, void *ctx, const struct http_request *request);
void http_routes_set_gate(struct http_routes *routes, http_gate *gate, void *ctx);

/* NULL when there is none. */
const struct http_route *http_routes_find(const struct http_routes *routes, struct slice path,
                                          void **ret_service);

#endif
