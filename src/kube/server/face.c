#include "kube/server/face.h"

#include "base/clock.h"
#include "base/xalloc.h"
#include "kube/call/access.h"
#include "kube/call/face_state.h"
#include "kube/call/registry.h"
#include "kube/jobs/definitions.h"
#include "kube/jobs/namespaces.h"
#include "kube/read/event_cache.h"
#include "kube/read/scope.h"
#include "kube/read/search_budget.h"
#include "kube/read/watches.h"
#include "kube/server/dispatch.h"
#include "kube/server/meta_routes.h"
#include "kube/server/openapi.h"

/* The state with the parts to which it has pointers. */
struct face {
    struct kube_face state;
    struct kube_search_budget search_budget;
    struct kube_watches watches;
    struct kube_jobs jobs;
    struct kube_namespaces namespaces;
};

static const struct http_route routes[] = {
    {.path = "/api", .on_request = kube_dispatch_request, .on_end = kube_dispatch_end},
    {.path = "/apis", .on_request = kube_dispatch_request, .on_end = kube_dispatch_end},
    {.path = "/api/", .on_request = kube_dispatch_request, .on_end = kube_dispatch_end},
    {.path = "/apis/", .on_request = kube_dispatch_request, .on_end = kube_dispatch_end},
};

static enum status add_routes(struct kube_face *face)
{
    TRY(http_routes_new(&face->routes));
    http_routes_set_gate(face->routes, kube_gate, face);
    TRY(kube_meta_routes_add(face));
    TRY(kube_openapi_add(face));
    return http_routes_add(face->routes, routes, COUNT_OF(routes), face);
}

static void on_selection_gone(void *ctx)
{
    kube_event_cache_forget(((struct kube_face *)ctx)->event_cache);
}

static void init_reading(struct kube_face *face)
{
    face->event_cache = kube_event_cache_new();
    kube_search_init(face->search_budget, face->loop);
    kube_watches_init(face->watches, face->shard, face->loop);
    kube_selections_init(&face->selections, random_u64(&face->random), on_selection_gone, face);
    watch_hub_set_tagger(engine_watch_hub(face->shard), kube_scope_tags, face);
}

enum status kube_face_new(const struct kube_config *config, struct engine *engine,
                          struct engine_shard *shard, struct loop *loop,
                          struct kube_face **ret_face)
{
    /* The mailbox has cache lines of its own. */
    struct face *whole = xalloc_check(aligned_alloc(64, align_up(sizeof(*whole), 64)), 1);
    memset(whole, 0, sizeof(*whole));
    AUTO(kube_face_freep) struct kube_face *face = &whole->state;
    face->config = config;
    face->call_bytes_max = face->attempt_bytes_max = KUBE_CALL_ARENA_BYTES_MAX;
    face->engine = engine;
    face->shard = shard;
    face->loop = loop;
    face->clock = loop_clock(loop);
    random_init(&face->random, random_seed_system());
    face->search_budget = &whole->search_budget;
    face->watches = &whole->watches;
    face->jobs = &whole->jobs;
    face->namespaces = &whole->namespaces;
    init_reading(face);
    kube_write_queue_init(&face->write_queue, loop, random_u64(&face->random));
    kube_offload_init(&face->offload, config->worker, loop);
    kube_jobs_init(face->jobs);
    kube_namespaces_init(face->namespaces);
    face->registry = kube_registry_new(shard, loop, config->schemas, &face->under_way);
    TRY(kube_counter_init(&face->counter, config->metrics));
    TRY(add_routes(face));
    *ret_face = TAKE(face);
    return ST_OK;
}

void kube_face_set_metrics(struct kube_face *face,
                           void (*write)(void *ctx, struct metric_page *page), void *ctx)
{
    face->write_metrics = write;
    face->metrics_ctx = ctx;
}

void kube_face_start_jobs(struct kube_face *face)
{
    kube_namespaces_resume(face);
    kube_definitions_check(face);
}

void kube_face_stop(struct kube_face *face)
{
    kube_search_stop(face->search_budget);
    kube_registry_stop(face->registry);
    kube_jobs_stop(face->jobs);
}

void kube_face_free(struct kube_face *face)
{
    if (!face)
        return;
    kube_face_stop(face);
    assert(face->under_way == 0);
    kube_offload_fini(&face->offload);
    kube_write_queue_fini(&face->write_queue);
    kube_watches_fini(face->watches);
    kube_registry_free(face->registry);
    http_routes_free(face->routes);
    kube_selections_fini(&face->selections);
    kube_event_cache_free(face->event_cache);
    free(CONTAINER_OF(face, struct face, state));
}

bool kube_face_busy(const struct kube_face *face)
{
    return face->under_way > 0;
}

const struct http_routes *kube_face_routes(const struct kube_face *face)
{
    return face->routes;
}
