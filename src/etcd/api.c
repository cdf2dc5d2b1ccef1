#include "etcd/api.h"

#include "base/xalloc.h"
#include "engine/forward.h"
#include "etcd/cluster/forward.h"
#include "etcd/gateway/gateway.h"
#include "etcd/http/http.h"
#include "etcd/service/password_queue.h"
#include "etcd/service/services.h"
#include "etcd/shared/authenticator.h"
#include "etcd/shared/service.h"
#include "etcd/v2/routes.h"
#include "zip/gunzip.h"

static enum status count_calls(struct etcd_api *api)
{
    struct metric_block *block;
    size_t methods;
    if (!api->config->method_counts)
        return ST_OK;
    (void)grpc_services_rows(api->services, &methods);
    assert(methods <= ETCD_METHODS_MAX);
    TRY(metric_set_join(api->config->method_counts, &block));
    grpc_services_count(api->services, block);
    api->counts = block;
    return ST_OK;
}

/* Those that are forwarded if the engine is in front of a cluster. */
static enum status add_own_services(struct etcd_api *api)
{
    TRY(auth_service_add(api));
    TRY(lock_service_add(api));
    TRY(election_service_add(api));
    TRY(maintenance_service_add(api));
    return cluster_service_add(api);
}

static enum status add_services(struct etcd_api *api)
{
    TRY(grpc_services_new(&api->services));
    grpc_services_set_gunzip(api->services, gunzip);
    TRY(http_routes_new(&api->routes));
    TRY(http_routes_new(&api->metrics_routes));
    TRY(engine_forwards(api->engine) ? forward_add(api, &api->forwards) : add_own_services(api));
    TRY(kv_service_add(api));
    TRY(lease_service_add(api));
    TRY(health_service_add(api));
    TRY(watch_service_add(api));
    TRY(http_service_add(api));
    if (api->config->v2)
        TRY(v2_routes_add(api));
    api->authenticator = authenticator_new(api->config, api->engine, api->shard, api->services);
    if (!api->config->origins_given)
        grpc_services_refuse_pages(api->services);
    return count_calls(api);
}

enum status etcd_api_new(const struct etcd_config *config, struct engine *engine,
                         struct engine_shard *shard, struct etcd_api **ret_api)
{
    AUTO(etcd_api_freep) struct etcd_api *api = xcalloc(1, sizeof(*api));
    api->config = config;
    api->engine = engine;
    api->shard = shard;
    api->identity = engine_identity_get(engine);
    kv_ids_init(&api->ids, api->identity.cluster_id, api->identity.member_id);
    list_init(&api->watches);
    api->rights.changed = watch_service_rights_changed;
    api->rights.ctx = api;
    engine_auth_listen(shard, &api->rights);
    TRY(add_services(api));
    api->gateway = gateway_new(config, api->services, api->authenticator);
    if (config->gateway_calls_max)
        TRY(gateway_add(api->gateway, api->routes));
    *ret_api = TAKE(api);
    return ST_OK;
}

void etcd_api_free(struct etcd_api *api)
{
    if (!api)
        return;
    assert(api->under_way == 0);
    gateway_free(api->gateway);
    engine_auth_unlisten(api->shard, &api->rights);
    if (api->loop)
        loop_defer_cancel(&api->recheck);
    password_queue_free(api->passwords);
    grpc_services_free(api->services);
    forward_rows_free(api->forwards);
    authenticator_free(api->authenticator);
    http_routes_free(api->routes);
    http_routes_free(api->metrics_routes);
    free(api);
}

void etcd_api_set_clock(struct etcd_api *api, int64_t (*now_ns)(void *ctx), void *ctx)
{
    const struct etcd_config *config = api->config;
    /* In front of a cluster nothing is applied here: a slow call is only a slow call. */
    int64_t apply_ns = engine_forwards(api->engine) ? INT64_MAX : config->warn_apply_ns;
    if (config->warn_apply_ns || config->warn_unary_ns)
        slow_log_init(&api->slow, api->services, apply_ns, config->warn_unary_ns, now_ns, ctx);
    api->slow.counts = api->counts;
    api->slow.apply_slot = ETCD_SLOW_APPLY_SLOT;
}

void etcd_api_set_loop(struct etcd_api *api, struct loop *loop)
{
    assert(!api->passwords);
    api->passwords = password_queue_new(loop, api->config->hasher, api->config->bcrypt_cost);
    api->loop = loop;
    gateway_set_loop(api->gateway, loop, api->config->worker);
}

bool etcd_api_busy(const struct etcd_api *api)
{
    return api->under_way > 0 || password_queue_busy(api->passwords) || gateway_busy(api->gateway);
}

void etcd_api_check(const struct etcd_api *api)
{
    size_t watches = 0;
    for (const struct list *at = api->watches.next; at != &api->watches; at = at->next)
        watches++;
    assert(watches == api->watch_count);
    gateway_check(api->gateway);
}

const struct grpc_services *etcd_api_services(const struct etcd_api *api)
{
    return api->services;
}

const struct http_routes *etcd_api_routes(const struct etcd_api *api)
{
    return api->routes;
}

const struct http_routes *etcd_api_metrics_routes(const struct etcd_api *api)
{
    return api->metrics_routes;
}
