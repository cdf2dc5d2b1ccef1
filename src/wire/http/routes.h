/*
 * The set of paths that a server answers over HTTP: filled at start, read-only afterwards. A
 * request that passes the gate is given to the route with the longest matching path; a path without
 * a route is answered with 404.
 */
#ifndef VIGIL_WIRE_HTTP_ROUTES_H
#define VIGIL_WIRE_HTTP_ROUTES_H

#include "wire/http/exchange.h"
#include "wire/http/route.h"

struct http_routes;

MUST_CHECK
enum status http_routes_new(struct http_routes **ret_routes);
void http_routes_free(struct http_routes *routes);
DEFINE_CLEANUP(struct http_routes *, http_routes_free)

/* The rows are borrowed. An exact path has priority over a prefix. */
MUST_CHECK
enum status http_routes_add(struct http_routes *routes, const struct http_route *rows, size_t count,
                            void *service);

/* Called with the head of every request, before its body is kept and before its route is called.
 * May add fields to the answer. False: it has answered. */
typedef bool http_gate(struct http_exchange *x, void *ctx, const struct http_request *request);
void http_routes_set_gate(struct http_routes *routes, http_gate *gate, void *ctx);

/* NULL: no route matches. */
const struct http_route *http_routes_find(const struct http_routes *routes, struct slice path,
                                          void **ret_service);

/* A route takes bodies as they arrive, so the route of a request is found by its head. routes may
 * be NULL. */
bool http_routes_stream(const struct http_routes *routes);

/*
 * For the transports, once per request when its head has arrived: calls the gate and the route's
 * admit and authorize. Afterwards the exchange is admitted; or it is authorizing, and the transport
 * keeps nothing of the body until ops.authorized is called; or the request was answered. routes may
 * be NULL.
 */
void http_routes_admit(const struct http_routes *routes, struct http_exchange *x);
/* For the transports: the whole request has arrived, or its head if the route takes the body as it
 * arrives, and is passed to its route. A request that was
 * not admitted yet is admitted first; if that takes time, this is called again afterwards. */
void http_routes_dispatch(const struct http_routes *routes, struct http_exchange *x);

#endif
