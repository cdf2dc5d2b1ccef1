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
const struct auth_rights *local_auth_rights(struct engine_shard *shard);
void local_status_get(struct engine_shard *shard, struct engine_status *ret_status);
size_t local_shard_alarms_get(struct engine_shard *shard, struct engine_alarm_row *ret_rows);
void local_shard_metrics_write(struct engine_shard *shard, struct metric_page *page);

/* Operations that the shard executes itself, unless a transaction writes … */
void local_range_start(struct engine_op *op);
/* False: the revision was compacted, and done is not called. */
MUST_CHECK
bool local_range_try(struct engine_range *range);
void local_range_window(struct engine_range *range, int64_t keys_max, int64_t *ret_keys,
                        uint64_t *ret_bytes);
bool local_range_next(struct engine_range *range, struct slice *ret_field);
size_t local_range_fill(struct engine_range *range, uint8_t *dst, size_t room);
void local_range_close(struct engine_range *range);
void local_txn_start(struct engine_op *op);
/* … and those that other threads execute. */
void local_put_start(struct engine_op *op);
void local_delete_range_start(struct engine_op *op);
void local_write_close(struct engine_write *write);
void local_lease_read_start(struct engine_op *op); /* time-to-live and list */
void local_lease_renew_start(struct engine_op *op);
void local_send_to_writer(struct engine_op *op); /* everything else that is written */
void local_send_to_keeper(struct engine_op *op);
void local_snapshot_read(struct engine_op *op);
void local_snapshot_close(struct engine_snapshot *snapshot);
void local_give_up(struct engine_op *op);

#endif
