#include "engine/engine_private.h"

#include "auth/check.h"
#include "auth/method.h"
#include "watch/hub/stats.h"

static void op_begin(struct engine_op *op, struct engine_shard *shard, enum auth_need need,
                     const void *request)
{
    op->shard = shard;
    op->need = (uint8_t)need;
    op->request = request;
    op->text = SLICE_EMPTY;
}

bool engine_is_synced(const struct engine *engine)
{
    return !engine->ops->is_synced || engine->ops->is_synced(engine);
}

/* -- Shards -- */

enum status engine_shard_new(struct engine *engine, struct loop *loop,
                             struct engine_shard **ret_shard)
{
    return engine->ops->shard_new(engine, loop, ret_shard);
}

void engine_shard_free(struct engine_shard *shard)
{
    if (shard)
        shard->engine->ops->shard_free(shard);
}

void engine_shard_stop(struct engine_shard *shard)
{
    if (shard->engine->ops->shard_stop)
        shard->engine->ops->shard_stop(shard);
}

void engine_shard_turn_begin(struct engine_shard *shard)
{
    shard->engine->ops->turn_begin(shard);
}

void engine_shard_turn_end(struct engine_shard *shard)
{
    shard->engine->ops->turn_end(shard);
}

void engine_shard_flushed(struct engine_shard *shard)
{
    shard->engine->ops->flushed(shard);
}

/* -- Reading and writing -- */

void engine_range_start(struct engine_shard *shard, struct engine_range *range,
                        const struct pb_range_request *request)
{
    op_begin(&range->op, shard, AUTH_NEED_RANGE, request);
    shard->engine->ops->range_start(shard, range, request);
}

void engine_range_window(struct engine_range *range, int64_t keys_max, int64_t *ret_keys,
                         uint64_t *ret_bytes)
{
    range->op.shard->engine->ops->range_window(range, keys_max, ret_keys, ret_bytes);
}

bool engine_range_next(struct engine_range *range, struct slice *ret_field)
{
    return range->op.shard->engine->ops->range_next(range, ret_field);
}

size_t engine_range_fill(struct engine_range *range, uint8_t *dst, size_t room)
{
    return range->op.shard->engine->ops->range_fill(range, dst, room);
}

void engine_range_give_up(struct engine_range *range)
{
    struct engine_shard *shard = range->op.shard;
    range->given_up = true; /* the engine reads it on the same thread */
    if (shard && shard->engine->ops->range_give_up)
        shard->engine->ops->range_give_up(range);
}

void engine_range_close(struct engine_range *range)
{
    if (range->op.shard)
        range->op.shard->engine->ops->range_close(range);
}

void engine_put(struct engine_shard *shard, struct engine_write *write,
                const struct pb_put_request *request)
{
    op_begin(&write->op, shard, AUTH_NEED_PUT, request);
    shard->engine->ops->put(shard, write, request);
}

void engine_delete_range(struct engine_shard *shard, struct engine_write *write,
                         const struct pb_delete_range_request *request)
{
    op_begin(&write->op, shard, AUTH_NEED_DELETE_RANGE, request);
    shard->engine->ops->delete_range(shard, write, request);
}

void engine_txn(struct engine_shard *shard, struct engine_write *write,
                const struct pb_txn_request *request)
{
    op_begin(&write->op, shard, AUTH_NEED_TXN, request);
    shard->engine->ops->txn(shard, write, request);
}

void engine_write_give_up(struct engine_write *write)
{
    write->given_up = true; /* as above */
}

void engine_write_close(struct engine_write *write)
{
    if (write->op.shard)
        write->op.shard->engine->ops->write_close(write);
}

void engine_compact(struct engine_shard *shard, struct engine_op *op,
                    const struct pb_compaction_request *request)
{
    op_begin(op, shard, AUTH_NEED_ROOT, request);
    shard->engine->ops->compact(shard, op, request);
}

/* -- Watching -- */

struct watch_hub *engine_watch_hub(struct engine_shard *shard)
{
    return shard->engine->ops->watch_hub(shard);
}

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

void engine_watch_admit(struct engine_shard *shard, struct engine_admission *admission)
{
    struct engine_op *op = &admission->op;
    op_begin(op, shard, AUTH_NEED_NOTHING, NULL);
    if (shard->engine->ops->watch_admit) {
        shard->engine->ops->watch_admit(shard, admission);
        return;
    }
    op->status = engine_watch_recheck(shard, &op->principal, admission->key, admission->range_end);
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

/* -- Forwarding -- */

bool engine_forwards(const struct engine *engine)
{
    return engine->ops->forward_start;
}

void engine_forward_start(struct engine_shard *shard, struct engine_forward *forward)
{
    forward->shard = shard;
    forward->state = NULL;
    shard->engine->ops->forward_start(shard, forward);
}

enum status engine_forward_send(struct engine_forward *forward, struct slice message)
{
    return forward->shard->engine->ops->forward_send(forward, message);
}

void engine_forward_half_close(struct engine_forward *forward)
{
    forward->shard->engine->ops->forward_half_close(forward);
}

void engine_forward_pause(struct engine_forward *forward, bool paused)
{
    forward->shard->engine->ops->forward_pause(forward, paused);
}

void engine_forward_cancel(struct engine_forward *forward)
{
    forward->shard->engine->ops->forward_cancel(forward);
}

/* -- Leases -- */

static void lease_start(struct engine_shard *shard, struct engine_op *op,
                        enum engine_lease_call call)
{
    static const enum auth_need needs[] = {
        [ENGINE_LEASE_GRANT] = AUTH_NEED_USER,
        [ENGINE_LEASE_REVOKE] = AUTH_NEED_LEASE_WRITE,
        [ENGINE_LEASE_TIME_TO_LIVE] = AUTH_NEED_LEASE_READ,
        [ENGINE_LEASE_LIST] = AUTH_NEED_LEASES_READ,
        [ENGINE_LEASE_RENEW] = AUTH_NEED_USER, /* and each lease: permission_check_renewal */
    };
    op_begin(op, shard, needs[call], NULL);
    shard->engine->ops->lease(shard, op, call);
}

void engine_lease_grant(struct engine_shard *shard, struct engine_lease *lease)
{
    lease_start(shard, &lease->op, ENGINE_LEASE_GRANT);
}

void engine_lease_revoke(struct engine_shard *shard, struct engine_lease *lease)
{
    lease_start(shard, &lease->op, ENGINE_LEASE_REVOKE);
}

void engine_lease_time_to_live(struct engine_shard *shard, struct engine_lease *lease)
{
    lease_start(shard, &lease->op, ENGINE_LEASE_TIME_TO_LIVE);
}

void engine_lease_list(struct engine_shard *shard, struct engine_lease *lease)
{
    lease_start(shard, &lease->op, ENGINE_LEASE_LIST);
}

void engine_lease_renew(struct engine_shard *shard, struct engine_renewals *renewals)
{
    renewals->answered = 0;
    lease_start(shard, &renewals->op, ENGINE_LEASE_RENEW);
}

/* -- Users, roles and permissions -- */

void engine_auth_start(struct engine_shard *shard, struct engine_auth *auth)
{
    op_begin(&auth->op, shard, AUTH_NEED_NOTHING, NULL); /* auth_state_decide checks, by call */
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

void engine_auth_notify(const struct engine_shard *shard)
{
    for (struct engine_auth_listener *at = shard->auth_listeners; at; at = at->next)
        at->changed(at->ctx);
}

/* -- Members and maintenance -- */

void engine_members(struct engine_shard *shard, struct engine_members *members)
{
    bool lists = members->call == ENGINE_MEMBER_LIST;
    op_begin(&members->op, shard, lists ? AUTH_NEED_USER : AUTH_NEED_ROOT, NULL);
    shard->engine->ops->members(shard, members);
}

void engine_await_revision(struct engine_shard *shard, int64_t revision)
{
    if (shard->engine->ops->await_revision)
        shard->engine->ops->await_revision(shard, revision);
}

void engine_status_get(struct engine_shard *shard, struct engine_status *ret_status)
{
    shard->engine->ops->status_get(shard, ret_status);
}

struct engine_identity engine_identity_get(const struct engine *engine)
{
    return engine->ops->identity(engine);
}

bool engine_ready(const struct engine *engine, char ret_reason[ENGINE_REASON_BYTES])
{
    return !engine->ops->ready || engine->ops->ready(engine, ret_reason);
}

bool engine_membership_get(const struct engine *engine, struct engine_membership *ret_membership)
{
    return engine->ops->membership && engine->ops->membership(engine, ret_membership);
}

bool engine_versions_get(const struct engine *engine, struct engine_versions *ret_versions)
{
    return engine->ops->versions && engine->ops->versions(engine, ret_versions);
}

size_t engine_alarms_get(struct engine_shard *shard,
                         struct engine_alarm_row ret_rows[ENGINE_ALARMS_MAX])
{
    return shard->engine->ops->alarms_get(shard, ret_rows);
}

void engine_metrics_write(struct engine_shard *shard, struct metric_page *page)
{
    shard->engine->ops->metrics_write(shard, page);
}

void engine_hash_kv(struct engine_shard *shard, struct engine_hash *hash)
{
    op_begin(&hash->op, shard, AUTH_NEED_ROOT, NULL);
    shard->engine->ops->hash_kv(shard, hash);
}

void engine_hash_give_up(struct engine_hash *hash)
{
    hash->op.shard->engine->ops->hash_give_up(hash);
}

void engine_alarm(struct engine_shard *shard, struct engine_alarm *alarm,
                  const struct pb_alarm_request *request)
{
    op_begin(&alarm->op, shard, AUTH_NEED_ALARM, request);
    shard->engine->ops->alarm(shard, alarm, request);
}

void engine_defragment(struct engine_shard *shard, struct engine_defragment *defragment)
{
    op_begin(&defragment->op, shard, AUTH_NEED_ROOT, NULL);
    shard->engine->ops->defragment(shard, defragment);
}

void engine_defragment_give_up(struct engine_defragment *defragment)
{
    defragment->op.shard->engine->ops->defragment_give_up(defragment);
}

void engine_downgrade(struct engine_shard *shard, struct engine_op *op, const char *target)
{
    op_begin(op, shard, AUTH_NEED_ROOT, target);
    shard->engine->ops->downgrade(shard, op, target);
}

void engine_snapshot_start(struct engine_shard *shard, struct engine_snapshot *snapshot)
{
    op_begin(&snapshot->op, shard, AUTH_NEED_ROOT, NULL);
    snapshot->state = NULL;
    atomic_store(&snapshot->given_up, false);
    shard->engine->ops->snapshot_start(shard, snapshot);
}

void engine_snapshot_read(struct engine_snapshot *snapshot)
{
    snapshot->op.shard->engine->ops->snapshot_read(snapshot);
}

void engine_snapshot_give_up(struct engine_snapshot *snapshot)
{
    atomic_store(&snapshot->given_up, true);
}

void engine_snapshot_close(struct engine_snapshot *snapshot)
{
    if (snapshot->state)
        snapshot->op.shard->engine->ops->snapshot_close(snapshot);
    snapshot->state = NULL;
}
