/*
 * What serves the listeners of the Kubernetes API in place of our own API: the watch tier
 * (tier/face/face.h), which only the program contains. The server gives it an empty mirror as its
 * engine. All functions of a shard are called on its thread.
 *
 *     engine ─► open ─► shard_new ─► routes ─► shard_stop ─► while shard_busy ─► shard_free ─► close
 */
#ifndef VIGIL_SERVER_FACE_H
#define VIGIL_SERVER_FACE_H

#include "base/error.h"
#include "base/status.h"

#include <stdbool.h>

struct engine;
struct engine_shard;
struct http_routes;
struct loop;
struct metric_page;
struct turns;

struct server_face {
    void *ctx;
    /* When the engine is open, before the shards; and when they are freed, if it was opened. */
    /* turns measure its threads; borrowed until it is closed. */
    enum status (*open)(void *ctx, struct engine *engine, struct turns *turns, struct error *error);
    void (*close)(void *ctx);
    enum status (*shard_new)(void *ctx, struct engine_shard *engine, struct loop *loop,
                             void **ret_shard);
    const struct http_routes *(*routes)(const void *shard);
    void (*shard_stop)(void *shard); /* the connections are closed */
    bool (*shard_busy)(const void *shard);
    void (*shard_free)(void *shard);
    /* Any thread, while it is open. */
    void (*write_metrics)(void *ctx, struct metric_page *page);
    /* The same, for the health checks of the metrics URLs: false if requests are not answered as
     * well as ever, with the reason, at most ENGINE_REASON_BYTES. May be NULL. */
    bool (*ready)(void *ctx, char *ret_reason);
};

#endif
