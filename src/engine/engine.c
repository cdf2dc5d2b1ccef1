#include "engine/engine.h"

#include "auth/check.h"
#include "watch/hub/stats.h"

/* -- Operations -- */

void engine_start(struct engine_shard *shard, struct engine_op *op, enum engine_kind kind,
                  const void *request)
{
    op->shard = shard;
    op->kind = (uint8_t)kind;
    op->request = request;
    op->text = SLICE_EMPTY;
    atomic_store_explicit(&op->given_up, false, memory_order_relaxed);
    if (LIKELY(shard->engine->ops->start[kind])) {
        shard->engine->ops->start[kind](op);
        return;
    }
    /* The engine does not have the operation. Only one in front of a cluster lacks some: etcd's API
     * forwards these calls as bytes (engine/forward.h), and nothing else starts them. */
    op->status = ST_UNIMPLEMENTED;
    op->text = SLICE_LITERAL("vigil: this call is not available in front of a cluster");
    op->done(op);
}

void engine_give_up(struct engine_op *op)
{
    atomic_store(&op->given_up, true);
    if (op->shard && op->shard->engine->ops->give_up)
        op->shard->engine->ops->give_up(op);
}

/* -- Watches -- */

void engine_watch_stats(const struct engine *engine, struct watch_stats *ret_stats)
{
    struct watch_report report;
    *ret_stats = (struct watch_stats){0};
    for (unsigned i = 0; engine->ops->watch_report(engine, i, &report); i++)
        watch_stats_add(ret_stats, &report.stats);
}

size_t engine_watch_slowest(const struct engine *engine, struct watch_stream_stats *ret_streams,
                            size_t max)
{
    struct watch_report report, all = {0};
    for (unsigned i = 0; engine->ops->watch_report(engine, i, &report); i++)
        for (size_t k = 0; k < report.slowest_count; k++)
            watch_report_add(&all, &report.slowest[k]);
    size_t count = size_min(all.slowest_count, max);
    for (size_t i = 0; i < count; i++)
        ret_streams[i] = all.slowest[i];
    return count;
}

void engine_watch_admit_by_rights(struct engine_op *op)
{
    struct engine_admission *admission = CONTAINER_OF(op, struct engine_admission, op);
    op->status =
        engine_watch_recheck(op->shard, &op->principal, admission->key, admission->range_end);
    op->done(op);
}

enum status engine_watch_recheck(struct engine_shard *shard, const struct auth_principal *principal,
                                 struct slice key, struct slice range_end)
{
    if (shard->engine->ops->watch_recheck)
        return shard->engine->ops->watch_recheck(shard, principal, key, range_end);
    struct auth_asker asker = {.rights = engine_auth_rights(shard), .principal = *principal};
    struct pb_watch_create_request request = {.key = key, .range_end = range_end};
    return auth_check_watch(&asker, &request);
}

/* -- Users, roles and permissions -- */

bool engine_auth_holds(struct engine_shard *shard, struct slice user, struct slice key,
                       struct slice range_end)
{
    const struct auth_rights *rights = engine_auth_rights(shard);
    struct auth_principal principal = {.user = user, .revision = auth_rights_revision(rights)};
    return auth_rights_check(rights, &principal, AUTH_READ, key, range_end) == ST_OK &&
           auth_rights_check(rights, &principal, AUTH_WRITE, key, range_end) == ST_OK;
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

void engine_auth_notify(const struct engine_shard *shard)
{
    for (struct engine_auth_listener *at = shard->auth_listeners; at; at = at->next)
        at->changed(at->ctx);
}
