/*
 * The Kubernetes API of one I/O thread: its HTTP routes and what the functions behind them share.
 * One per I/O thread, used only on it.
 *
 *     HTTP exchange ──► dispatch.c: path, query, kind ──► handler (kube/read, kube/write) ──► engine
 *                                                   jobs of the server itself (kube/jobs) ──┘
 */
#ifndef VIGIL_KUBE_SERVER_FACE_H
#define VIGIL_KUBE_SERVER_FACE_H

#include "engine/engine.h"
#include "kube/call/config.h"
#include "wire/http/routes.h"

struct kube_face;
struct metric_page;

MUST_CHECK
enum status kube_face_new(const struct kube_config *config, struct engine *engine,
                          struct engine_shard *shard, struct loop *loop,
                          struct kube_face **ret_face);
/* Sets what writes the page /metrics; without it there is no such page. Before the first
 * connection. */
void kube_face_set_metrics(struct kube_face *face,
                           void (*write)(void *ctx, struct metric_page *page), void *ctx);
/* Resumes the deletions and definitions that the last run has not finished: for one face of a
 * server. */
void kube_face_start_jobs(struct kube_face *face);
/* Starts no more jobs; operations under way complete, see kube_face_busy. */
void kube_face_stop(struct kube_face *face);
/* Must be stopped and not busy. Accepts NULL. */
void kube_face_free(struct kube_face *face);
DEFINE_CLEANUP(struct kube_face *, kube_face_free)

/* Operations are under way: the loop of the shard must keep turning. */
bool kube_face_busy(const struct kube_face *face);

const struct http_routes *kube_face_routes(const struct kube_face *face);

#endif
