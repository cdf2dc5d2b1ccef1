/*
 * The Kubernetes API of one I/O thread: its HTTP routes and what the functions behind them share.
 * One per I/O thread, used only on it.
 *
 *     HTTP exchange ──► dispatch.c: path, query, kind ──► handler (handlers/read, handlers/write) ──► engine
 *                                                   jobs of the server itself (kube/jobs) ──┘
 */
#ifndef VIGIL_KUBE_SERVER_API_H
#define VIGIL_KUBE_SERVER_API_H

#include "engine/engine.h"
#include "kube/call/config.h"
#include "wire/http/routes.h"

struct kube_api;
struct metric_page;

MUST_CHECK
enum status kube_api_new(const struct kube_config *config, struct engine *engine,
                         struct engine_shard *shard, struct loop *loop, struct kube_api **ret_api);
/* Sets what writes the page /metrics; without it there is no such page. Before the first
 * connection. */
void kube_api_set_metrics(struct kube_api *api, void (*write)(void *ctx, struct metric_page *page),
                          void *ctx);
/* Resumes the deletions and definitions that the last run has not finished: for one API of a
 * server. */
void kube_api_start_jobs(struct kube_api *api);
/* Starts no more jobs; operations under way complete, see kube_api_busy. */
void kube_api_stop(struct kube_api *api);
/* Must be stopped and not busy. Accepts NULL. */
void kube_api_free(struct kube_api *api);
DEFINE_CLEANUP(struct kube_api *, kube_api_free)

/* Operations are under way: the loop of the shard must keep turning. */
bool kube_api_busy(const struct kube_api *api);

const struct http_routes *kube_api_routes(const struct kube_api *api);

#endif
