/*
 * The Kubernetes face of one shard: the HTTP routes of its API, and what the functions behind them
 * share. One per I/O thread, used only on it.
 *
 *     HTTP exchange ──► call: path, query, kind ──► handler (get.c, list.c, …) ──► engine shard
 */
#ifndef VIGIL_KUBE_API_FACE_H
#define VIGIL_KUBE_API_FACE_H

#include "engine/engine.h"
#include "wire/http/routes.h"

struct kube_metrics;
struct kube_schema;
struct kube_tokens;
struct schema_pool;
struct worker;

/* What every shard answers the same. Borrowed by the faces, which it outlives. */
struct kube_config {
    const char *version;              /* of Vigil */
    bool skip_undecodable;            /* a watch passes over values that are no objects */
    const struct kube_tokens *tokens; /* kube/api/tokens.h; NULL: nobody is asked who he is */
    const struct kube_schema *schema; /* kube/api/schema.h; NULL: nothing is known */
    struct kube_metrics *metrics;     /* kube/api/metrics.h; NULL: nothing is counted */
    _Atomic bool *written;            /* becomes true with the first write; may be NULL */
    struct schema_pool *schemas;      /* kube/custom/schema/pool.h; NULL: each face has its own */
    struct worker *worker;            /* io/worker.h, for large requests; NULL: there is none */
};

/* Of a request, as in Kubernetes. */
enum {
    KUBE_BODY_BYTES_MAX = 3 * 1024 * 1024,
    /* What is read at all: who sends a little too much is told so in a Status. */
    KUBE_BODY_BYTES_READ = KUBE_BODY_BYTES_MAX + 1024 * 1024,
    /* What its values may take when it is read: some 100,000 of them. */
    KUBE_BODY_TREE_BYTES_MAX = 12 * 1024 * 1024,
    /* Reading one of YAML takes ten times as long. */
    KUBE_BODY_YAML_BYTES_MAX = 6 * 1024 * 1024,
};

struct kube_face;

MUST_CHECK
enum status kube_face_new(const struct kube_config *config, struct engine *engine,
                          struct engine_shard *shard, struct loop *loop,
                          struct kube_face **ret_face);
/* Writes what /metrics answers. Before its first connection; without it there is no such page. */
void kube_face_set_metrics(struct kube_face *face,
                           void (*write)(void *ctx, struct metric_page *page), void *ctx);
/* Makes the default namespaces and goes on with those being emptied: for one face of a server. */
void kube_face_keep(struct kube_face *face);
/* Begins nothing more by itself; what is under way ends, see kube_face_busy. */
void kube_face_stop(struct kube_face *face);
/* Must be stopped and not busy. */
void kube_face_free(struct kube_face *face);
DEFINE_CLEANUP(struct kube_face *, kube_face_free)

/* The engine still works on an operation: its shard must go on turning. */
bool kube_face_busy(const struct kube_face *face);

const struct http_routes *kube_face_routes(const struct kube_face *face);

#endif
