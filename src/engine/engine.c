#include "engine/engine_private.h"
#include "engine/permission.h"

#include "watch/stats.h"

void engine_metrics_write(struct engine_shard *shard, struct metric_page *page)
{
    shard->engine->ops->metrics_write(shard, page);
}

struct engine_identity engine_identity_get(const struct engine *engine)
{
    return engine->ops->identity(engine);
}

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

void engine_range_start(struct engine_shard *shard, struct engine_range *range,
                        const struct pb_range_request *request)
{
    gate_begin(&range->op, shard, AUTH_NEED_RANGE, request);
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
    range->given_up = true; /* whoever works on it is on the same thread and sees it */
}

void engine_write_give_up(struct engine_write *write)
{
    write->given_up = true; /* the same */
}

void engine_range_close(struct engine_range *range)
{
    if (range->op.shard)
        range->op.shard->engine->ops->range_close(range);
}

void engine_put(struct engine_shard *shard, struct engine_write *write,
                const struct pb_put_request *request)
{
    gate_begin(&write->op, shard, AUTH_NEED_PUT, request);
    shard->engine->ops->put(shard, write, request);
}

void engine_delete_range(struct engine_shard *shard, struct engine_write *write,
                         const struct pb_delete_range_request *request)
{
    gate_begin(&write->op, shard, AUTH_NEED_DELETE_RANGE, request);
    shard->engine->ops->delete_range(shard, write, request);
}

void engine_txn(struct engine_shard *shard, struct engine_write *write,
                const struct pb_txn_request *request)
{
    gate_begin(&write->op, shard, AUTH_NEED_TXN, request);
    shard->engine->ops->txn(shard, write, request);
}

void engine_write_close(struct engine_write *write)
{
    if (write->op.shard)
        write->op.shard->engine->ops->write_close(write);
}

void engine_compact(struct engine_shard *shard, struct engine_op *op,
                    const struct pb_compaction_request *request)
{
    gate_begin(op, shard, AUTH_NEED_ROOT, request);
    shard->engine->ops->compact(shard, op, request);
}

void engine_hash_kv(struct engine_shard *shard, struct engine_hash *hash)
{
    gate_begin(&hash->op, shard, AUTH_NEED_ROOT, NULL);
    shard->engine->ops->hash_kv(shard, hash);
}

void engine_status_get(struct engine_shard *shard, struct engine_status *ret_status)
{
    shard->engine->ops->status_get(shard, ret_status);
}

void engine_hash_give_up(struct engine_hash *hash)
{
    hash->op.shard->engine->ops->hash_give_up(hash);
}

void engine_alarm(struct engine_shard *shard, struct engine_alarm *alarm,
                  const struct pb_alarm_request *request)
{
    gate_begin(&alarm->op, shard, AUTH_NEED_ALARM, request);
    shard->engine->ops->alarm(shard, alarm, request);
}

size_t engine_alarms_get(struct engine_shard *shard,
                         struct engine_alarm_row ret_rows[ENGINE_ALARMS_MAX])
{
    return shard->engine->ops->alarms_get(shard, ret_rows);
}

void engine_defragment(struct engine_shard *shard, struct engine_defragment *defragment)
{
    gate_begin(&defragment->op, shard, AUTH_NEED_ROOT, NULL);
    shard->engine->ops->defragment(shard, defragment);
}

void engine_defragment_give_up(struct engine_defragment *defragment)
{
    defragment->op.shard->engine->ops->defragment_give_up(defragment);
}

void engine_snapshot_start(struct engine_shard *shard, struct engine_snapshot *snapshot)
{
    gate_begin(&snapshot->op, shard, AUTH_NEED_ROOT, NULL);
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

void engine_members(struct engine_shard *shard, struct engine_members *members)
{
    bool lists = members->call == ENGINE_MEMBER_LIST;
    gate_begin(&members->op, shard, lists ? AUTH_NEED_USER : AUTH_NEED_ROOT, NULL);
    shard->engine->ops->members(shard, members);
}

void engine_downgrade(struct engine_shard *shard, struct engine_op *op, const char *target)
{
    gate_begin(op, shard, AUTH_NEED_ROOT, target);
    shard->engine->ops->downgrade(shard, op, target);
}
