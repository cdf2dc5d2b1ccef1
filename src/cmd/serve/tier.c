#include "cmd/serve/tier.h"

#include "base/log/log.h"
#include "engine/engine.h"

#include <vigil/client.h>

static void on_log(void *ctx, int level, const char *text)
{
    static const enum log_level levels[] = {
        [VIGIL_LOG_DEBUG] = LOG_DEBUG, [VIGIL_LOG_INFO] = LOG_INFO, [VIGIL_LOG_WARN] = LOG_WARN};
    (void)ctx;
    LOG_AT(levels[level], text);
}

static enum status face_open(void *ctx, struct engine *engine, struct turns *turns,
                             struct error *error)
{
    struct serve_tier *tier = ctx;
    tier->options.turns = turns;
    return tier_new(&tier->options, engine, &tier->tier, error);
}

static void face_close(void *ctx)
{
    struct serve_tier *tier = ctx;
    tier_free(TAKE(tier->tier));
}

static enum status shard_new(void *ctx, struct engine_shard *engine, struct loop *loop,
                             void **ret_shard)
{
    struct serve_tier *tier = ctx;
    struct tier_face *face;
    TRY(tier_face_new(tier->tier, engine, loop, &face));
    *ret_shard = face;
    return ST_OK;
}

static const struct http_routes *shard_routes(const void *shard)
{
    return tier_face_routes(shard);
}

static void shard_stop(void *shard)
{
    tier_face_stop(shard);
}

static bool shard_busy(const void *shard)
{
    return tier_face_busy(shard);
}

static void shard_free(void *shard)
{
    tier_face_free(shard);
}

static void write_metrics(void *ctx, struct metric_page *page)
{
    const struct serve_tier *tier = ctx;
    tier_write_metrics(tier->tier, page);
}

static bool is_ready(void *ctx, char *ret_reason)
{
    _Static_assert((int)TIER_REASON_BYTES <= (int)ENGINE_REASON_BYTES, "a reason fits");
    const struct serve_tier *tier = ctx;
    return tier_is_ready(tier->tier, ret_reason);
}

void serve_tier_init(struct serve_tier *tier, const struct config_tier *config)
{
    *tier = (struct serve_tier){.options = config->options};
    tier->options.log = on_log;
    tier->face = (struct server_face){
        .ctx = tier,
        .open = face_open,
        .close = face_close,
        .shard_new = shard_new,
        .routes = shard_routes,
        .shard_stop = shard_stop,
        .shard_busy = shard_busy,
        .shard_free = shard_free,
        .write_metrics = write_metrics,
        .ready = is_ready,
    };
}
