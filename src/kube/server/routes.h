/* Adds the routes of an API. With authorization they are copied, so that the sender of each request
 * is known and allowed before its body is read (kube/policy/access/identity.h). */
#ifndef VIGIL_KUBE_SERVER_ROUTES_H
#define VIGIL_KUBE_SERVER_ROUTES_H

#include "kube/call/api_state.h"
#include "wire/http/route.h"

/* The exchanges of a route belong to a kube_life, or have no user pointer. */
MUST_CHECK
enum status kube_routes_add(struct kube_api *api, const struct http_route *rows, size_t count);
/* After http_routes_free. */
void kube_routes_free(struct kube_api *api);

#endif
