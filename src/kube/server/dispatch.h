/*
 * From an HTTP request below /api and /apis to its handler: parses path and query, finds the kind
 * (reading its definition if it is a custom resource), and calls a handler of kube/handlers/read or
 * kube/handlers/write, or discovery. On the thread of the API.
 */
#ifndef VIGIL_KUBE_SERVER_DISPATCH_H
#define VIGIL_KUBE_SERVER_DISPATCH_H

#include "wire/http/exchange.h"

/* The functions of a route (wire/http/routes.h) whose service is the API. */
void kube_dispatch_request(struct http_exchange *x, void *service,
                           const struct http_request *request);
void kube_dispatch_too_long(struct http_exchange *x);

#endif
