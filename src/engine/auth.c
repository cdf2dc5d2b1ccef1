#include "engine/auth.h"

#include "engine/engine_ops.h"
#include "engine/gate.h"

void engine_auth_start(struct engine_shard *shard, struct engine_auth *auth)
{
    gate_begin(&auth->op, shard, AUTH_NEED_NOTHING, NULL); /* by call: auth_book_decide */
    shard->engine->ops->auth(shard, auth);
}

const struct auth_rights *engine_auth_rights(struct engine_shard *shard)
{
    return shard->engine->ops->auth_rights(shard);
}

bool engine_auth_enabled(struct engine_shard *shard)
{
    return auth_rights_enabled(engine_auth_rights(shard));
}

uint64_t engine_auth_revision(const struct engine *engine)
{
    return engine->ops->auth_revision(engine);
}

void engine_auth_on_change(struct engine_shard *shard, void (*changed)(void *ctx), void *ctx)
{
    shard->auth_changed = changed;
    shard->auth_ctx = ctx;
}
