/*
 * What an engine implements: a function for each kind of operation, and functions for everything
 * that is not an operation. Callers use engine/engine.h and the headers that it names.
 */
#ifndef VIGIL_ENGINE_ENGINE_OPS_H
#define VIGIL_ENGINE_ENGINE_OPS_H

#include "engine/operation.h"

struct engine_alarm_row;
struct engine_auth_listener;
struct engine_forward;
struct engine_identity;
struct engine_membership;
struct engine_range;
struct engine_snapshot;
struct engine_status;
struct engine_versions;
struct engine_write;
struct loop;
struct metric_page;
struct watch_hub;
struct watch_report;

struct engine_ops {
    /* Starts an operation; op->shard, kind and request are set. NULL: ST_UNIMPLEMENTED. */
    void (*start[ENGINE_KINDS])(struct engine_op *op);
    /* op->given_up was set. NULL: the engine looks at that now and then. */
    void (*give_up)(struct engine_op *op);

    /* What remains of an operation that is done (keys.h, snapshot.h). */
    void (*range_window)(struct engine_range *range, int64_t keys_max, int64_t *ret_keys,
                         uint64_t *ret_bytes);
    bool (*range_next)(struct engine_range *range, struct slice *ret_field);
    size_t (*range_fill)(struct engine_range *range, uint8_t *dst, size_t room);
    void (*range_close)(struct engine_range *range);
    void (*write_close)(struct engine_write *write);
    void (*snapshot_close)(struct engine_snapshot *snapshot);

    /* The engine. Any thread. */
    struct engine_identity (*identity)(const struct engine *engine);
    bool (*ready)(const struct engine *engine, char *ret_reason); /* NULL: always */
    bool (*is_synced)(const struct engine *engine);               /* the same */
    uint64_t (*auth_revision)(const struct engine *engine);
    /* The counts of the i-th shard's watches; false if there is no such shard. */
    bool (*watch_report)(const struct engine *engine, unsigned i, struct watch_report *ret_report);
    /* NULL: it is not in front of a cluster. */
    bool (*versions)(const struct engine *engine, struct engine_versions *ret_versions);
    bool (*membership)(const struct engine *engine, struct engine_membership *ret_membership);

    /* Its shards. */
    enum status (*shard_new)(struct engine *engine, struct loop *loop,
                             struct engine_shard **ret_shard);
    void (*shard_free)(struct engine_shard *shard);
    void (*shard_stop)(struct engine_shard *shard); /* NULL: nothing is to be done */
    void (*turn_begin)(struct engine_shard *shard);
    void (*turn_end)(struct engine_shard *shard);
    void (*flushed)(struct engine_shard *shard);
    struct watch_hub *(*watch_hub)(struct engine_shard *shard);
    const struct auth_rights *(*auth_rights)(struct engine_shard *shard);
    /* NULL: decided by auth_rights. */
    enum status (*watch_recheck)(struct engine_shard *shard, const struct auth_principal *principal,
                                 struct slice key, struct slice range_end);
    void (*status_get)(struct engine_shard *shard, struct engine_status *ret_status);
    /* NULL: it has no alarms of its own. */
    size_t (*alarms_get)(struct engine_shard *shard, struct engine_alarm_row *ret_rows);
    void (*metrics_write)(struct engine_shard *shard, struct metric_page *page);
    void (*await_revision)(struct engine_shard *shard, int64_t revision); /* NULL: as above */

    /* Only of an engine in front of a cluster (forward.h); otherwise NULL. */
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

/* ENGINE_WATCH_ADMIT for engines whose auth_rights decide about it, and at once. */
void engine_watch_admit_by_rights(struct engine_op *op);

#endif
