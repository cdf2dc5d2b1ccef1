/*
 * The table of functions that an engine implements. Callers use engine/engine.h, where each
 * function calls the one of the same name here.
 */
#ifndef VIGIL_ENGINE_ENGINE_PRIVATE_H
#define VIGIL_ENGINE_ENGINE_PRIVATE_H

#include "engine/engine.h"
#include "engine/forward.h"

struct watch_report;

enum engine_lease_call {
    ENGINE_LEASE_GRANT,
    ENGINE_LEASE_REVOKE,
    ENGINE_LEASE_TIME_TO_LIVE,
    ENGINE_LEASE_LIST,
    ENGINE_LEASE_RENEW,
};

struct engine_ops {
    struct engine_identity (*identity)(const struct engine *engine);
    /* These two: NULL means always. */
    bool (*ready)(const struct engine *engine, char ret_reason[ENGINE_REASON_BYTES]);
    bool (*is_synced)(const struct engine *engine);
    /* NULL: it has none of its own. */
    bool (*versions)(const struct engine *engine, struct engine_versions *ret_versions);
    /* NULL: it is not in front of a cluster. */
    bool (*membership)(const struct engine *engine, struct engine_membership *ret_membership);
    enum status (*shard_new)(struct engine *engine, struct loop *loop,
                             struct engine_shard **ret_shard);
    void (*shard_free)(struct engine_shard *shard);
    void (*shard_stop)(struct engine_shard *shard); /* NULL: nothing is to be done */
    void (*turn_begin)(struct engine_shard *shard);
    void (*turn_end)(struct engine_shard *shard);
    void (*flushed)(struct engine_shard *shard);
    struct watch_hub *(*watch_hub)(struct engine_shard *shard);
    /* The counts of the i-th shard's watches; false if there is no such shard. Any thread. */
    bool (*watch_report)(const struct engine *engine, unsigned i, struct watch_report *ret_report);
    /* NULL: decided by auth_rights. */
    void (*watch_admit)(struct engine_shard *shard, struct engine_admission *admission);
    enum status (*watch_recheck)(struct engine_shard *shard, const struct auth_principal *principal,
                                 struct slice key, struct slice range_end);
    void (*range_start)(struct engine_shard *shard, struct engine_range *range,
                        const struct pb_range_request *request);
    void (*range_window)(struct engine_range *range, int64_t keys_max, int64_t *ret_keys,
                         uint64_t *ret_bytes);
    bool (*range_next)(struct engine_range *range, struct slice *ret_field);
    size_t (*range_fill)(struct engine_range *range, uint8_t *dst, size_t room);
    void (*range_close)(struct engine_range *range);
    /* For a range that is not done. NULL: the engine looks at given_up now and then. */
    void (*range_give_up)(struct engine_range *range);
    void (*put)(struct engine_shard *shard, struct engine_write *write,
                const struct pb_put_request *request);
    void (*delete_range)(struct engine_shard *shard, struct engine_write *write,
                         const struct pb_delete_range_request *request);
    void (*txn)(struct engine_shard *shard, struct engine_write *write,
                const struct pb_txn_request *request);
    void (*write_close)(struct engine_write *write);
    void (*compact)(struct engine_shard *shard, struct engine_op *op,
                    const struct pb_compaction_request *request);
    void (*lease)(struct engine_shard *shard, struct engine_op *op, enum engine_lease_call call);
    void (*hash_kv)(struct engine_shard *shard, struct engine_hash *hash);
    void (*hash_give_up)(struct engine_hash *hash);
    void (*alarm)(struct engine_shard *shard, struct engine_alarm *alarm,
                  const struct pb_alarm_request *request);
    size_t (*alarms_get)(struct engine_shard *shard,
                         struct engine_alarm_row ret_rows[ENGINE_ALARMS_MAX]);
    void (*defragment)(struct engine_shard *shard, struct engine_defragment *defragment);
    void (*defragment_give_up)(struct engine_defragment *defragment);
    void (*downgrade)(struct engine_shard *shard, struct engine_op *op, const char *target);
    void (*snapshot_start)(struct engine_shard *shard, struct engine_snapshot *snapshot);
    void (*snapshot_read)(struct engine_snapshot *snapshot);
    void (*snapshot_close)(struct engine_snapshot *snapshot);
    void (*members)(struct engine_shard *shard, struct engine_members *members);
    void (*auth)(struct engine_shard *shard, struct engine_auth *auth);
    const struct auth_rights *(*auth_rights)(struct engine_shard *shard);
    uint64_t (*auth_revision)(const struct engine *engine);
    void (*metrics_write)(struct engine_shard *shard, struct metric_page *page);
    void (*status_get)(struct engine_shard *shard, struct engine_status *ret_status);
    /* NULL: nothing is to be done. */
    void (*await_revision)(struct engine_shard *shard, int64_t revision);
    /* Only of an engine in front of a cluster; otherwise NULL. */
    void (*forward_start)(struct engine_shard *shard, struct engine_forward *forward);
    enum status (*forward_send)(struct engine_forward *forward, struct slice message);
    void (*forward_half_close)(struct engine_forward *forward);
    void (*forward_pause)(struct engine_forward *forward, bool paused);
    void (*forward_cancel)(struct engine_forward *forward);
};

struct engine {
    const struct engine_ops *ops;
};

struct engine_shard {
    struct engine *engine;
    struct engine_auth_listener *auth_listeners; /* linked; borrowed */
};

/* Permissions have changed: calls all listeners of the shard. */
void engine_auth_notify(const struct engine_shard *shard);

#endif
