#include "kube/server/api.h"

#include "base/clock.h"
#include "base/xalloc.h"
#include "engine/forward.h"
#include "kube/call/api_state.h"
#include "kube/call/gate.h"
#include "kube/call/registry.h"
#include "kube/handlers/read/event_cache.h"
#include "kube/handlers/read/event_conversions.h"
#include "kube/handlers/read/read.h"
#include "kube/handlers/read/scope.h"
#include "kube/handlers/read/search_budget.h"
#include "kube/handlers/read/watches.h"
#include "kube/jobs/compaction.h"
#include "kube/jobs/definitions.h"
#include "kube/jobs/follower/furnish.h"
#include "kube/jobs/follower/policy_status.h"
#include "kube/jobs/follower/quota_status.h"
#include "kube/jobs/garbage/garbage.h"
#include "kube/jobs/namespaces.h"
#include "kube/policy/access/access.h"
#include "kube/policy/access/node/node_view.h"
#include "kube/policy/admission/admission.h"
#include "kube/policy/lookup/stock.h"
#include "kube/server/dispatch.h"
#include "kube/server/health.h"
#include "kube/server/meta_routes.h"
#include "kube/server/openapi.h"
#include "kube/server/routes.h"
#include "kube/webhook/caller.h"

/* The state with the parts to which it has pointers. */
struct kube_api_whole {
    struct kube_api state;
    struct kube_search_budget search_budget;
    struct kube_watches watches;
    struct kube_jobs jobs;
    struct kube_namespaces namespaces;
};

#define ROUTE(path_)                                                                   \
    {                                                                                  \
        .path = (path_), .on_request = kube_dispatch_request, .on_end = kube_life_end, \
        .too_long = kube_dispatch_too_long                                             \
    }
static const struct http_route routes[] = {ROUTE("/api"), ROUTE("/apis"), ROUTE("/api/"),
                                           ROUTE("/apis/")};

static struct kube_admission *open_admission(struct kube_api *api)
{
    const struct kube_admission_set least = kube_admission_least();
    return kube_admission_new(api->config->admission ? api->config->admission : &least,
                              &(struct kube_fact_finder_options){
                                  .shard = api->shard,
                                  .loop = api->loop,
                                  .under_way = &api->under_way,
                                  .pool = api->lookups,
                              });
}

static void count_webhook_call(void *ctx, bool begins)
{
    const struct kube_api *api = ctx;
    kube_count_total(&api->counter, begins ? KUBE_TOTAL_HOOK_CALLS_IN : KUBE_TOTAL_HOOK_CALLS_OUT,
                     1);
}

enum status kube_api_new(const struct kube_config *config, struct engine *engine,
                         struct engine_shard *shard, struct loop *loop, struct kube_api **ret_api)
{
    /* The mailbox has cache lines of its own. */
    struct kube_api_whole *whole = xalloc_check(aligned_alloc(64, align_up(sizeof(*whole), 64)), 1);
    memset(whole, 0, sizeof(*whole));
    AUTO(kube_api_freep) struct kube_api *api = &whole->state;
    api->config = config;
    api->call_bytes_max = api->attempt_bytes_max = KUBE_CALL_ARENA_BYTES_MAX;
    api->engine = engine;
    api->shard = shard;
    api->loop = loop;
    api->clock = loop_clock(loop);
    random_init(&api->random, random_seed_system());
    api->search_budget = &whole->search_budget;
    api->watches = &whole->watches;
    api->jobs = &whole->jobs;
    api->namespaces = &whole->namespaces;
    api->event_cache = kube_event_cache_new();
    api->event_conversions = kube_event_conversions_new(api, config->budget);
    kube_search_init(api->search_budget, api->loop);
    kube_watches_init(api->watches, api->shard, api->loop, kube_watch_check_access);
    kube_selections_init(&api->selections, random_u64(&api->random));
    watch_hub_set_tagger(engine_watch_hub(api->shard), kube_scope_tags, api);
    kube_write_queue_init(&api->write_queue, loop, random_u64(&api->random));
    kube_offload_init(&api->offload, config->worker, loop);
    kube_jobs_init(api->jobs);
    kube_namespaces_init(api->namespaces);
    api->own_lookups = config->lookups ? NULL : kube_lookup_pool_new(NULL);
    api->lookups = config->lookups ? config->lookups : api->own_lookups;
    bool authorizes_nodes = config->authorization >= KUBE_AUTHORIZATION_NODE;
    api->own_nodes = authorizes_nodes && !config->nodes ? kube_nodes_new(NULL, 0) : NULL;
    if (config->authorization != KUBE_AUTHORIZATION_ALWAYS_ALLOW)
        api->access = kube_access_new(&(struct kube_access_options){
            .shard = api->shard,
            .loop = api->loop,
            .clock = api->clock,
            .under_way = &api->under_way,
            .tokens = api->config->tokens,
            .accounts = api->config->accounts,
            .pool = api->lookups,
            .authorization = config->authorization,
            .nodes = api->own_nodes ? api->own_nodes : config->nodes,
        });
    api->admission = open_admission(api);
    api->registry = kube_registry_new(shard, loop, config->schemas, &api->offload, &api->under_way);
    api->webhooks = kube_webhook_caller_new(&(struct kube_webhook_caller_options){
        .shard = api->shard,
        .loop = api->loop,
        .under_way = &api->under_way,
        .settings = config->webhooks,
        .count = count_webhook_call,
        .ctx = api,
    });
    TRY(kube_counter_init(&api->counter, config->metrics));
    TRY(http_routes_new(&api->routes));
    http_routes_set_gate(api->routes, kube_gate, api);
    TRY(kube_meta_routes_add(api));
    TRY(kube_health_add(api));
    TRY(kube_openapi_add(api));
    TRY(kube_routes_add(api, routes, COUNT_OF(routes)));
    if (engine_forwards(engine) && !api->access) {
        /* Watches end when the cluster no longer serves clients without a token. */
        api->anonymous.on_refused = kube_watches_check_access;
        api->anonymous.ctx = api->watches;
        api->anonymous.first = api->config->anonymous;
        kube_anonymous_start(&api->anonymous, api->shard, api->loop, &api->under_way);
    }
    *ret_api = TAKE(api);
    return ST_OK;
}

void kube_api_set_metrics(struct kube_api *api, void (*write)(void *ctx, struct metric_page *page),
                          void *ctx)
{
    api->write_metrics = write;
    api->metrics_ctx = ctx;
}

void kube_api_start_jobs(struct kube_api *api)
{
    kube_namespaces_resume(api);
    kube_definitions_start(api);
    kube_compaction_start(api);
    kube_garbage_start(api, &routes[0]);
    kube_furnish_start(api, &routes[0]);
    kube_quota_status_start(api, &routes[0]);
    kube_policy_status_start(api, &routes[0]);
}

void kube_api_stop(struct kube_api *api)
{
    kube_search_stop(api->search_budget);
    kube_registry_stop(api->registry);
    kube_access_stop(api->access);
    kube_admission_stop(api->admission);
    kube_webhook_caller_stop(api->webhooks);
    kube_anonymous_stop(&api->anonymous);
    kube_jobs_stop(api->jobs);
}

void kube_api_free(struct kube_api *api)
{
    if (!api)
        return;
    kube_api_stop(api);
    assert(api->under_way == 0);
    kube_offload_fini(&api->offload);
    kube_write_queue_fini(&api->write_queue);
    kube_watches_fini(api->watches);
    kube_event_conversions_free(api->event_conversions);
    kube_registry_free(api->registry);
    kube_access_free(api->access);
    kube_admission_free(api->admission);
    kube_webhook_caller_free(api->webhooks);
    kube_lookup_pool_free(api->own_lookups);
    kube_nodes_free(api->own_nodes);
    http_routes_free(api->routes);
    kube_routes_free(api);
    kube_selections_fini(&api->selections);
    kube_event_cache_free(api->event_cache);
    free(CONTAINER_OF(api, struct kube_api_whole, state));
}

bool kube_api_busy(const struct kube_api *api)
{
    return api->under_way > 0;
}

const struct http_routes *kube_api_routes(const struct kube_api *api)
{
    return api->routes;
}
