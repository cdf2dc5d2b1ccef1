/* The part of the cluster engine that runs on one I/O thread. */
#ifndef VIGIL_MIRROR_SHARD_H
#define VIGIL_MIRROR_SHARD_H

#include "engine/engine.h"
#include "engine/forward.h"
#include "mirror/answer/answer.h"
#include "mirror/backfill/backfill.h"
#include "mirror/link/loop_guard.h"
#include "mirror/link/options.h"
#include "mirror/link/state.h"
#include "mirror/mirror_wait.h"

struct shard_reads;
struct follower;
struct grants;
struct lease_streams;
struct mirror_directory;
struct probe;
struct revision_notice;
struct upstream;

/* What the threads share. */
struct mirror_shared {
    struct engine engine; /* first: what callers see */
    struct mirror_options options;
    struct mirror_state state;
    char via[LOOP_GUARD_OWN_BYTES];
    struct mirror_directory *mirror; /* owned */
    struct follower *follower;       /* owned */
    /* Owned: of each shard, when reads wait there for the mirror. */
    struct revision_notice *notices;
    _Atomic unsigned shard_count;
};

/* Limits of forwarded ranges, whose answers are held in memory until the client has read them. */
enum {
    /* Limit on the size of one; all on one shard: UPSTREAM_LONG_BYTES_MAX. */
    MIRROR_ANSWER_BYTES_MAX = 32 << 20,
    /* Under way at a time because the mirror is late. Others wait on, so that a mirror that is
     * late for a moment does not send thousands of reads to the cluster. */
    MIRROR_LATE_MAX = 64,
    /* Under way at a time for other reasons; and how many more wait for that in line. */
    MIRROR_FORWARDED_MAX = 256,
    MIRROR_LINED_MAX = 16 * 1024,
};
/* How long a forwarded range may take: a caller without a deadline must not wait for ever. */
#define MIRROR_FORWARD_NS (INT64_C(30) * 1000 * 1000 * 1000)
/* A range whose answer is longer waits this long for the mirror. */
#define MIRROR_PATIENCE_NS (INT64_C(5) * 1000 * 1000 * 1000)

struct mirror_shard {
    struct engine_shard base; /* first: what callers see */
    struct mirror_shared *shared;
    struct loop *loop;
    struct engine_shard
        *store_shard;          /* owned: of the local store that holds the mirror, on this thread */
    struct upstream *upstream; /* owned */
    struct grants *grants;     /* owned */
    struct probe *probe;       /* owned */
    struct lease_streams *lease_streams; /* owned */
    struct backfill *backfill;           /* owned: history older than the mirror's */
    struct shard_reads *reads;           /* owned (read.c) */
    struct mirror_waits mirror_waits;
    struct engine_identity identity;      /* that the watches show */
    struct backfill_stats backfill_shown; /* what of `past` is contained in the cluster's state */
    unsigned number;                      /* counts from 0 */
    unsigned in_progress;                 /* operations that are not done */
};

static inline struct mirror_shard *mirror_shard_of(struct engine_shard *shard)
{
    return CONTAINER_OF(shard, struct mirror_shard, base);
}

/* -- shard.c -- */
MUST_CHECK
enum status mirror_shard_new(struct engine *engine, struct loop *loop,
                             struct engine_shard **ret_shard);
void mirror_shard_free(struct engine_shard *shard);
void mirror_shard_stop(struct engine_shard *shard);
void mirror_turn_begin(struct engine_shard *shard);
void mirror_turn_end(struct engine_shard *shard);
void mirror_flushed(struct engine_shard *shard);
struct watch_hub *mirror_watch_hub(struct engine_shard *shard);
const struct auth_rights *mirror_auth_rights(struct engine_shard *shard);
void mirror_status_get(struct engine_shard *shard, struct engine_status *ret_status);
void mirror_await_revision(struct engine_shard *shard, int64_t revision);
void mirror_lease_renew(struct engine_op *op);

/* -- shard_history.c: history older than the mirror's -- */
/* Makes the mirror's shard, with a history around its own. */
MUST_CHECK
enum status mirror_store_shard_new(struct mirror_shard *shard);
void mirror_backfill_start(struct mirror_shard *shard);

/* -- admission.c -- */
/* The mirror is needed and is not complete yet: sets ST_NOT_SYNCED and a text that says why. */
void mirror_fail_unsynced(struct mirror_shared *shared, struct engine_op *op);
void mirror_watch_admit(struct engine_op *op);
MUST_CHECK
enum status mirror_watch_recheck(struct engine_shard *shard, const struct auth_principal *principal,
                                 struct slice key, struct slice range_end);

/* -- read.c: ranges, from the mirror or forwarded -- */
void mirror_range_start(struct engine_op *op);
/* For forwarded answers only: those of the mirror belong to the mirror's shard. */
void mirror_range_window(struct engine_range *range, int64_t keys_max, int64_t *ret_keys,
                         uint64_t *ret_bytes);
bool mirror_range_next(struct engine_range *range, struct slice *ret_field);
size_t mirror_range_fill(struct engine_range *range, uint8_t *dst, size_t room);
void mirror_range_close(struct engine_range *range);
void mirror_give_up(struct engine_op *op);
struct shard_reads *mirror_reads_new(struct mirror_shard *shard);
void mirror_reads_free(struct shard_reads *reads); /* accepts NULL */
/* Any thread: the mirror has more revisions. */
void mirror_reads_notify(struct mirror_shared *shared);
/* In every turn, after the mirror's state was loaded: starts the reads that it is new enough for.
 */
void mirror_reads_continue(struct mirror_shard *shard);

/* -- write.c: writes of the Kubernetes API and of our own services, as calls of the cluster -- */
/* Every kind that has a row in its table. */
void mirror_call_start(struct engine_op *op);
void mirror_write_close(struct engine_write *write);

/* -- forward.c -- */
void mirror_forward_start(struct engine_shard *shard, struct engine_forward *forward);
enum status mirror_forward_send(struct engine_forward *forward, struct slice message);
void mirror_forward_half_close(struct engine_forward *forward);
void mirror_forward_pause(struct engine_forward *forward, bool paused);
void mirror_forward_cancel(struct engine_forward *forward);

#endif
