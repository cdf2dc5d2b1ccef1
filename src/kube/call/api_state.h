/*
 * What the requests of one I/O thread share: the state of an API (kube/server/api.h creates it).
 * Parts that belong to higher folders are pointers to types that are only declared here.
 */
#ifndef VIGIL_KUBE_CALL_API_STATE_H
#define VIGIL_KUBE_CALL_API_STATE_H

#include "base/random.h"
#include "engine/engine.h"
#include "kube/call/anonymous.h"
#include "kube/call/config.h"
#include "kube/call/event_ttl.h"
#include "kube/call/metrics.h"
#include "kube/call/offload.h"
#include "kube/call/write_queue.h"
#include "kube/request/selection.h"

struct http_routes;
struct kube_access;
struct kube_admission;
struct kube_event_cache;
struct kube_event_conversions;
struct kube_jobs;
struct kube_lookup_pool;
struct kube_nodes;
struct kube_namespaces;
struct kube_registry;
struct kube_search_budget;
struct kube_watches;
struct kube_webhook_caller;

struct kube_api {
    const struct kube_config *config;
    struct engine *engine;
    struct engine_shard *shard;
    struct loop *loop;
    struct clock *clock;        /* for the times in metadata */
    struct http_routes *routes; /* owned */
    struct http_route *guarded; /* owned; with authorization: copies of their rows, */
    size_t guarded_count;       /* so many */
    struct random random;       /* for uids, names and jitter */
    size_t under_way;           /* operations that the engine or the worker has not completed */
    size_t gathered_bytes;      /* size of protobuf lists, which are held until they are sent */
    size_t converted_bytes;     /* the same of lists whose objects webhooks convert */
    unsigned packers;           /* lists that are being compressed */
    void (*write_metrics)(void *ctx, struct metric_page *page); /* NULL: there is no /metrics */
    void *metrics_ctx;
    struct kube_lookup_pool *lookups;     /* those of the config, or */
    struct kube_lookup_pool *own_lookups; /* owned; NULL: that of the config */
    struct kube_nodes *own_nodes;         /* the same */
    struct kube_access *access; /* owned; kube/policy/access/access.h; NULL: no authorization */
    struct kube_admission *admission;     /* owned; kube/policy/admission/admission.h */
    struct kube_registry *registry;       /* owned; kube/call/registry.h */
    struct kube_webhook_caller *webhooks; /* owned; kube/webhook/caller.h */
    _Atomic int64_t webhook_logged_ns;    /* when the last failure of an admission webhook was */
    struct kube_anonymous anonymous;      /* in front of a cluster only */
    struct kube_event_lease event_lease;
    struct kube_write_queue write_queue;
    struct kube_counter counter;
    struct kube_offload offload;
    struct kube_selections selections;
    struct kube_event_cache *event_cache;             /* owned; kube/handlers/read/event_cache.h */
    struct kube_event_conversions *event_conversions; /* the same; event_conversions.h */
    struct kube_search_budget *search_budget;         /* kube/handlers/read/search_budget.h */
    struct kube_watches *watches;                     /* kube/handlers/read/watches.h */
    struct kube_jobs *jobs;                           /* kube/jobs/job.h */
    struct kube_namespaces *namespaces;               /* kube/jobs/namespaces.h */
    size_t call_bytes_max, attempt_bytes_max; /* limits of the arenas of a call and of an attempt */
};

#endif
