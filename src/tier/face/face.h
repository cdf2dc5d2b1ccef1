/*
 * The watch tier in front of a kube-apiserver: its mirror, and the API of each I/O thread.
 *
 *     HTTP exchange ──► a read of the mirror? ──► read/request.h
 *                              └── no ──► call/pass.h: to the kube-apiserver, as bytes
 */
#ifndef VIGIL_TIER_FACE_FACE_H
#define VIGIL_TIER_FACE_FACE_H

#include "tier/call/api.h"
#include "wire/http/routes.h"

struct tier;
struct tier_face;
struct turns;

struct tier_options {
    const vigil_kube_options *client; /* where the kube-apiserver is, and the tier's own account */
    /* Collections that are mirrored from the start: "pods", "deployments.apps",
     * "leases.v1.coordination.k8s.io"
     * (--upstream-resources). Borrowed by new only. */
    const struct slice *resources;
    size_t resource_count;
    enum tier_reads reads;
    int64_t rights_ttl_ns;         /* --upstream-rights-ttl */
    uint64_t collection_bytes_max; /* --upstream-resource-bytes; 0: no limit */
    uint64_t mirror_bytes_max;     /* --upstream-mirror-bytes; 0: no limit */
    int64_t idle_ns;               /* --upstream-idle; 0: the default */
    int64_t history_ns;            /* --kube-history; 0: the default */
    uint64_t history_bytes_max;    /* --kube-history-bytes; 0: no limit */
    unsigned calls_per_second;     /* --upstream-qps; 0: no limit */
    unsigned forwards_max;         /* per thread; 0: the default */
    struct turns *turns;           /* measure the mirror's thread; borrowed; may be NULL */
    /* One line about what has changed; an enum vigil_log_level. May be NULL. */
    void (*log)(void *ctx, int level, const char *text);
    void *log_ctx;
};

/* Checks the configuration and starts the mirror's thread; the engine is an empty mirror. The
 * kube-apiserver need not be reachable. */
MUST_CHECK
enum status tier_new(const struct tier_options *options, struct engine *engine,
                     struct tier **ret_tier, struct error *error);
void tier_free(struct tier *tier); /* the faces are freed; accepts NULL */
DEFINE_CLEANUP(struct tier *, tier_free)
/* Any thread: every resource that was named is mirrored. Otherwise the reason why not. */
MUST_CHECK
bool tier_is_ready(struct tier *tier, char ret_reason[TIER_REASON_BYTES]);
/* Any thread. */
void tier_write_metrics(struct tier *tier, struct metric_page *page);

/* -- One for each I/O thread, on that thread -- */

MUST_CHECK
enum status tier_face_new(struct tier *tier, struct engine_shard *shard, struct loop *loop,
                          struct tier_face **ret_face);
const struct http_routes *tier_face_routes(const struct tier_face *face);
/* Nothing is begun any more. */
void tier_face_stop(struct tier_face *face);
/* Operations are under way: the loop must keep turning. */
bool tier_face_busy(const struct tier_face *face);
void tier_face_free(struct tier_face *face); /* must be stopped and not busy; accepts NULL */

#endif
