/* The part of the local engine that runs on the I/O threads: it implements engine/engine.h. Reads
 * are served here; other operations are passed to the writer, the keeper or the snapshotter. */
#ifndef VIGIL_ENGINE_LOCAL_SHARD_SHARD_H
#define VIGIL_ENGINE_LOCAL_SHARD_SHARD_H

#include "engine/local/shard/watch.h"
#include "engine/local/state/shared.h"

struct local_shard {
    struct local_shard_base base; /* first: what other threads use */
    struct local_shared *shared;
    struct loop *loop;
    struct epoch_slot *slot;
    struct local_watch *watch; /* owned; NULL until the first watch */
    struct watch_history *(*wrap)(void *ctx,
                                  struct watch_history *own); /* NULL: see mirror_store.h */
    void *wrap_ctx;
    struct local_auth_reader rights;
    struct metric_block *counts;
    struct mailbox_chain writes;      /* writes of this turn, not posted to the writer yet */
    struct mailbox_chain lease_reads; /* the same */
    struct list ranges;               /* struct engine_range: long ones, continued in every turn */
    struct list txn_reads; /* struct local_txn_read: the same for transactions that only read */
    struct timer again;    /* set for now when there is more to do in the next turn */
    struct mailbox progress_requests; /* the writer asks how far this shard has read its input */
    bool progress_requested;
    size_t range_keys_left; /* keys that may still be examined in this turn */
    unsigned in_progress;   /* operations that other threads will answer */
};

MUST_CHECK
enum status local_shard_new(struct engine *engine, struct loop *loop,
                            struct engine_shard **ret_shard);
void local_shard_free(struct engine_shard *shard);
void local_shard_turn_begin(struct engine_shard *shard);
void local_shard_turn_end(struct engine_shard *shard);
void local_shard_flushed(struct engine_shard *shard);
struct watch_hub *local_shard_watch_hub(struct engine_shard *shard);
void local_range_start(struct engine_shard *shard, struct engine_range *range,
                       const struct pb_range_request *request);
/* False: the revision was compacted, and done is not called. */
MUST_CHECK
bool local_range_try(struct engine_shard *shard, struct engine_range *range,
                     const struct pb_range_request *request);
void local_range_window(struct engine_range *range, int64_t keys_max, int64_t *ret_keys,
                        uint64_t *ret_bytes);
bool local_range_next(struct engine_range *range, struct slice *ret_field);
size_t local_range_fill(struct engine_range *range, uint8_t *dst, size_t room);
void local_range_close(struct engine_range *range);
void local_put(struct engine_shard *shard, struct engine_write *write,
               const struct pb_put_request *request);
void local_delete_range(struct engine_shard *shard, struct engine_write *write,
                        const struct pb_delete_range_request *request);
void local_txn(struct engine_shard *shard, struct engine_write *write,
               const struct pb_txn_request *request);
void local_write_close(struct engine_write *write);
void local_compact(struct engine_shard *shard, struct engine_op *op,
                   const struct pb_compaction_request *request);
void local_lease_start_op(struct engine_shard *shard, struct engine_op *op,
                          enum engine_lease_call call);
void local_hash_kv(struct engine_shard *shard, struct engine_hash *hash);
void local_alarm(struct engine_shard *shard, struct engine_alarm *alarm,
                 const struct pb_alarm_request *request);
size_t local_shard_alarms_get(struct engine_shard *shard,
                              struct engine_alarm_row ret_rows[ENGINE_ALARMS_MAX]);
void local_defragment(struct engine_shard *shard, struct engine_defragment *defragment);
void local_hash_give_up(struct engine_hash *hash);
void local_defragment_give_up(struct engine_defragment *defragment);
void local_snapshot_start(struct engine_shard *shard, struct engine_snapshot *snapshot);
void local_snapshot_read(struct engine_snapshot *snapshot);
void local_snapshot_close(struct engine_snapshot *snapshot);
void local_members_start_op(struct engine_shard *shard, struct engine_members *members);
void local_downgrade(struct engine_shard *shard, struct engine_op *op, const char *target);
void local_auth_start_op(struct engine_shard *shard, struct engine_auth *auth);
const struct auth_rights *local_auth_rights(struct engine_shard *shard);
void local_shard_metrics_write(struct engine_shard *shard, struct metric_page *page);
void local_status_get(struct engine_shard *shard, struct engine_status *ret_status);

#endif
