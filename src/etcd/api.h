/*
 * The etcd API of one shard: the tables of gRPC methods and HTTP routes from which its connections
 * are served. There is one per I/O thread, used only on that thread.
 *
 *     wire connection ──► table ──► service (this layer) ──► engine shard
 *                                        └──── done ◄────────────┘
 *
 * A service decodes and checks a request, starts an operation of the engine, and encodes the answer
 * when the operation is done. Its state is in the call's arena. A call that ends early is kept in
 * memory until its operation is done.
 */
#ifndef VIGIL_ETCD_API_H
#define VIGIL_ETCD_API_H

#include "base/macros.h"
#include "base/status.h"
#include "etcd/shared/config.h"

struct engine;
struct engine_shard;
struct etcd_api; /* its fields are in etcd/shared/service.h */
struct grpc_services;
struct http_routes;
struct loop;

MUST_CHECK
enum status etcd_api_new(const struct etcd_config *config, struct engine *engine,
                         struct engine_shard *shard, struct etcd_api **ret_api);
/* Must not be busy. */
void etcd_api_free(struct etcd_api *api);
DEFINE_CLEANUP(struct etcd_api *, etcd_api_free)

/* Sets the clock by which slow calls are found. Called before the first connection. */
void etcd_api_set_clock(struct etcd_api *api, int64_t (*now_ns)(void *ctx), void *ctx);

/* Sets the shard's loop, on which hashed passwords and parsed bodies come back from other threads.
 * Called before the first connection. */
void etcd_api_set_loop(struct etcd_api *api, struct loop *loop);

/* True while the engine works on an operation, or another thread on a password or body: the shard's
 * loop must keep running. */
bool etcd_api_busy(const struct etcd_api *api);

/* Asserts that the API is consistent; for tests. */
void etcd_api_check(const struct etcd_api *api);

const struct grpc_services *etcd_api_services(const struct etcd_api *api);
const struct http_routes *etcd_api_routes(const struct etcd_api *api);
/* The routes of --listen-metrics-urls: /metrics and the health checks. */
const struct http_routes *etcd_api_metrics_routes(const struct etcd_api *api);

#endif
