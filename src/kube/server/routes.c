#include "kube/server/routes.h"

#include "base/xalloc.h"
#include "kube/call/gate.h"
#include "kube/jobs/namespaces.h"
#include "kube/policy/access/identity.h"
#include "wire/http/exchange.h"
#include "wire/http/routes.h"

/* A request that arrived before the objects exist that a cluster has from the start: without its
 * roles and bindings almost everything would be refused. */
struct early {
    struct kube_life life;
    struct kube_api *api;
    struct http_exchange *x; /* NULL once it has ended */
    const struct http_request *request;
    struct kube_namespaces_wait wait;
};

static void on_objects(struct kube_namespaces_wait *wait)
{
    struct early *early = CONTAINER_OF(wait, struct early, wait);
    early->api->under_way--;
    if (early->x) {
        bool calls = slice_has_prefix(early->request->path, SLICE_LITERAL("/api"));
        kube_identity_begin(early->api->access, early->x, early->request, calls);
    }
    free(early);
}

/* Freed in on_objects. */
static void on_early_end(struct kube_life *life)
{
    CONTAINER_OF(life, struct early, life)->x = NULL;
}

static void authorize(struct http_exchange *x, void *service, const struct http_request *request)
{
    struct kube_api *api = service;
    if (kube_namespaces_ready(api) || kube_identity_is_public(request->path)) {
        bool calls = slice_has_prefix(request->path, SLICE_LITERAL("/api"));
        kube_identity_begin(api->access, x, request, calls);
        return;
    }
    struct early *early = xcalloc(1, sizeof(*early));
    *early = (struct early){
        .life.end = on_early_end, .api = api, .x = x, .request = request, .wait.go = on_objects};
    http_exchange_set_user(x, &early->life);
    api->under_way++;
    kube_namespaces_make(api, &early->wait);
}

/* Rows are borrowed by the routes, so they must not move. */
enum { GUARDED_MAX = 32 };

enum status kube_routes_add(struct kube_api *api, const struct http_route *rows, size_t count)
{
    if (!api->access)
        return http_routes_add(api->routes, rows, count, api);
    if (!api->guarded)
        api->guarded = xcalloc(GUARDED_MAX, sizeof(*api->guarded));
    assert(api->guarded_count + count <= GUARDED_MAX);
    struct http_route *copies = &api->guarded[api->guarded_count];
    for (size_t i = 0; i < count; i++) {
        copies[i] = rows[i];
        assert(!copies[i].authorize && (!copies[i].on_end || copies[i].on_end == kube_life_end));
        copies[i].authorize = authorize;
        copies[i].on_end = kube_life_end;
    }
    api->guarded_count += count;
    return http_routes_add(api->routes, copies, count, api);
}

void kube_routes_free(struct kube_api *api)
{
    free(api->guarded);
    api->guarded = NULL;
}
