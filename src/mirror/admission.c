/*
 * Whether a watch may be created, and when: the cluster decides about the caller's rights, and the
 * mirror must show what was written through this server before a watch begins, because "created"
 * shows a revision. A watch that has a start revision loses nothing if it begins sooner, so it
 * waits only for a while. One that is made at the cluster begins after a linearizable answer of the
 * member that will have it.
 */
#include "base/xalloc.h"
#include "codec/pb/rpc.pb.h"
#include "mirror/link/phase.h"
#include "mirror/link/upstream.h"
#include "mirror/mirror_wait.h"
#include "mirror/shard.h"
#include "mirror/shared_calls/grants.h"

#include <stdio.h>

#define START_PATIENCE_NS NS_PER_S
#define READ_FIRST_NS (5 * NS_PER_S)

/* In the operation's arena. */
struct admission {
    struct grants_waiter rights;
    struct mirror_wait mirror;
    struct engine_op *op;
    struct mirror_shard *shard;
    bool begins_now; /* it has no start revision */
    bool is_reached; /* only the permission was too old */
};

void mirror_fail_unsynced(struct mirror_shared *shared, struct engine_op *op)
{
    char why[MIRROR_PHASE_BYTES], text[MIRROR_PHASE_BYTES + 64];
    enum mirror_phase phase = mirror_phase_explain(&shared->state, &shared->options, why);
    int len = snprintf(text, sizeof(text), "%s%s%s", status_text(ST_NOT_SYNCED),
                       phase == MIRROR_UNREACHED ? ": " : "", phase == MIRROR_UNREACHED ? why : "");
    op->status = ST_NOT_SYNCED;
    if (arena_dup(op->arena, slice_of(text, (size_t)len), &op->text) != ST_OK)
        op->text = SLICE_EMPTY; /* the text of the status must do */
}

static void end(struct admission *admission, enum status status)
{
    struct engine_op *op = admission->op;
    admission->shard->in_progress--;
    op->status = status;
    op->done(op);
}

static void on_mirror(struct mirror_wait *wait, bool reached)
{
    struct admission *admission = CONTAINER_OF(wait, struct admission, mirror);
    if (!reached && admission->begins_now) {
        admission->op->text = SLICE_LITERAL("vigil: the mirror is behind the cluster");
        end(admission, ST_AGAIN);
    } else if (!admission->op->principal.is_server &&
               !grants_is_current(admission->shard->grants, &admission->rights)) {
        /* The permission has become too old while the mirror was waited for. */
        admission->is_reached = true;
        grants_ask(admission->shard->grants, &admission->rights);
    } else {
        end(admission, ST_OK);
    }
}

static void wait_for_mirror(struct admission *admission)
{
    admission->mirror.patience_ns = admission->begins_now ? 0 : START_PATIENCE_NS;
    mirror_wait_start(&admission->shard->mirror_waits, &admission->mirror);
}

/* -- A foreign watch -- */

static void on_read(struct upstream_call *call, struct slice message)
{
    (void)call, (void)message; /* that it has come is enough */
}

/* If it has failed, the watch will say why. */
static void on_read_end(struct upstream_call *call, enum grpc_code code, struct slice text)
{
    (void)code, (void)text;
    end(upstream_call_user(call), ST_OK);
}

/* Reads in the caller's name, over the connection that will have the watch. */
static enum status read_first(struct admission *admission, struct slice key)
{
    static const struct upstream_ops ops = {.on_message = on_read, .on_end = on_read_end};
    struct mirror_shard *shard = admission->shard;
    struct upstream_request request = {
        .path = SLICE_LITERAL(PB_KV_RANGE_PATH),
        .caller.token = admission->op->principal.token,
        .lane = UPSTREAM_LANE_WAITING,
        .deadline_ns = loop_now_ns(shard->loop) + READ_FIRST_NS,
        .reads = true,
    };
    struct pb_range_request range = {.key = key.len ? key : slice_of("", 1), .count_only = true};
    AUTO(buf_fini) struct buf message = {0};
    struct upstream_call *call;
    TRY(pb_append(&pb_range_request_table, &range, &message));
    TRY(upstream_start(shard->upstream, &request, &ops, admission, &call));
    enum status status = upstream_send(call, buf_slice(&message));
    if (status == ST_OK)
        upstream_half_close(call);
    else
        upstream_cancel(call);
    return status;
}

/* -- A watch of the mirror -- */

static void on_rights(struct grants_waiter *waiter)
{
    struct admission *admission = CONTAINER_OF(waiter, struct admission, rights);
    if (waiter->status == ST_OK && admission->is_reached) {
        end(admission, ST_OK);
        return;
    }
    if (waiter->status == ST_OK) {
        wait_for_mirror(admission);
        return;
    }
    cluster_fail(admission->op, waiter->code, waiter->text);
    end(admission, admission->op->status);
}

static struct admission *admission_new(struct mirror_shard *shard, struct engine_admission *asked)
{
    struct engine_op *op = &asked->op;
    struct admission *admission = arena_alloc(op->arena, sizeof(*admission));
    if (!admission)
        return NULL;
    *admission = (struct admission){
        .rights = {.done = on_rights,
                   .token = op->principal.token,
                   .key = asked->key,
                   .range_end = asked->range_end},
        .mirror = {.done = on_mirror},
        .op = op,
        .shard = shard,
        .begins_now = asked->start_revision <= 0,
    };
    shard->in_progress++;
    return admission;
}

void mirror_watch_admit(struct engine_op *op)
{
    struct engine_admission *asked = CONTAINER_OF(op, struct engine_admission, op);
    struct mirror_shard *shard = mirror_shard_of(op->shard);
    asked->is_foreign = !op->principal.is_server &&
                        (!mirror_covers(&shard->shared->options, asked->key, asked->range_end) ||
                         !grants_can_decide(shard->grants, asked->key, asked->range_end));
    if (!asked->is_foreign &&
        !atomic_load(&shard->shared->state.synced)) { /* the watch's start is not known yet */
        mirror_fail_unsynced(shard->shared, op);
        op->done(op);
        return;
    }
    struct admission *admission = admission_new(shard, asked);
    if (!admission) {
        op->status = ST_NOMEM;
        op->done(op);
    } else if (asked->is_foreign) {
        enum status status = read_first(admission, asked->key);
        if (status != ST_OK)
            end(admission, status);
    } else if (op->principal.is_server) {
        wait_for_mirror(admission);
    } else {
        grants_ask(shard->grants, &admission->rights);
    }
}

enum status mirror_watch_recheck(struct engine_shard *base, const struct auth_principal *principal,
                                 struct slice key, struct slice range_end)
{
    if (principal->is_server)
        return ST_OK;
    return grants_known(mirror_shard_of(base)->grants, principal->token, key, range_end);
}
