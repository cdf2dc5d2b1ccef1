/*
 * How the requests of a pool reach its server:
 *
 *     directly                       connection ──► server
 *     tunnel of a proxy              connection ──► proxy ══► server    (the proxy sees bytes)
 *     a proxy of HTTP, without TLS   connection ──► proxy ──► server    (it forwards requests)
 *
 * As in Go, a proxy of HTTP forwards requests to servers without TLS, and makes tunnels to others.
 * Embedded in a pool; the loop's thread.
 */
#ifndef VIGIL_CLIENT_HTTP_POOL_ROUTE_H
#define VIGIL_CLIENT_HTTP_POOL_ROUTE_H

#include "base/buf.h"
#include "client/connect/connector.h"
#include "client/connect/proxy.h"
#include "client/http/pool_request.h"

struct pool_route {
    struct endpoint server;
    struct endpoint first; /* to which connections are made: the server, or a proxy that forwards */
    struct proxy proxy;    /* valid if it is used */
    bool forwards;
    char authority[ENDPOINT_TEXT_BYTES]; /* authority of the server, for Host and :authority */
};

/* Sets the proxy of the connector, which keeps a pointer into the route. http2: the protocol is
 * HTTP/2 in any case, which is not forwarded. ST_INVALID: the error says what is wrong with the URL
 * of the proxy, which may be NULL. */
MUST_CHECK
enum status pool_route_init(struct pool_route *route, const struct endpoint *server,
                            const char *proxy_url, bool http2, struct connector_options *options,
                            struct error *error);

/* The request as it is sent to a proxy that forwards it: the target is a whole URL, and the proxy's
 * authorization is among the fields. It borrows from the params and from the buffers. ST_NOMEM. */
MUST_CHECK
enum status pool_route_forward(const struct pool_route *route,
                               const struct pool_request_params *params, struct buf *target,
                               struct buf *fields, struct pool_request_params *ret_forwarded);

#endif
