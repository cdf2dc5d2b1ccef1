#include "engine/auth.h"

#include "engine/engine_private.h"
#include "engine/permission.h"

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

bool engine_auth_holds(struct engine_shard *shard, struct slice user, struct slice key,
                       struct slice range_end)
{
    const struct auth_rights *rights = engine_auth_rights(shard);
    struct auth_principal principal = {.user = user, .revision = auth_rights_revision(rights)};
    return auth_rights_check(rights, &principal, AUTH_READ, key, range_end) == ST_OK &&
           auth_rights_check(rights, &principal, AUTH_WRITE, key, range_end) == ST_OK;
}

uint64_t engine_auth_revision(const struct engine *engine)
{
    return engine->ops->auth_revision(engine);
}

void engine_auth_listen(struct engine_shard *shard, struct engine_auth_listener *listener)
{
    listener->next = shard->auth_listeners;
    shard->auth_listeners = listener;
}

void engine_auth_unlisten(struct engine_shard *shard, struct engine_auth_listener *listener)
{
    struct engine_auth_listener **at = &shard->auth_listeners;
    while (*at && *at != listener)
        at = &(*at)->next;
    if (*at)
        *at = listener->next;
}

void engine_auth_tell(const struct engine_shard *shard)
{
    for (struct engine_auth_listener *at = shard->auth_listeners; at; at = at->next)
        at->changed(at->ctx);
}
