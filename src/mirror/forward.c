/*
 * Calls that are passed on as bytes. The only thing that is read from them is the revision of an
 * answer: it must be known before the client gets the answer, so that the client's next read does
 * not show an older state.
 */
#include "base/xalloc.h"
#include "codec/pb/rpc.pb.h"
#include "codec/pb/wire.h"
#include "mirror/follow/follower.h"
#include "mirror/link/kept_answers.h"
#include "mirror/link/upstream.h"
#include "mirror/shard.h"

#include <stdlib.h>

/* Memory for a decoded compaction. */
enum { COMPACTION_BYTES = 128, COMPACTION_BYTES_MAX = 4 << 10 };

static struct mirror_shard *shard_of(const struct engine_forward *forward)
{
    return mirror_shard_of(forward->shard);
}

/* A long answer that the caller keeps. */
struct forward_kept {
    struct kept_answer answer;
    struct engine_forward *forward;
};

/* -- What is read -- */

/* The number of a field with a varint, of a message whose fields come in order; 0: it has none. */
static int64_t number_in(struct slice message, uint32_t number)
{
    const uint8_t *at = message.ptr, *end = message.ptr + message.len;
    while (at && at < end) {
        uint64_t tag, value;
        at = pb_varint_read(at, end, &tag);
        if (!at || (tag & 7) != PB_WIRE_VARINT)
            return 0;
        at = pb_varint_read(at, end, &value);
        if (at && tag == PB_TAG(number, PB_WIRE_VARINT))
            return (int64_t)value;
    }
    return 0;
}

/* Every answer of etcd begins with its header, and a header consists of numbers. */
static int64_t revision_of(struct slice answer)
{
    size_t len;
    if (!answer.len || answer.ptr[0] != PB_TAG(1, PB_WIRE_LEN))
        return 0;
    const uint8_t *header = pb_len_read(answer.ptr + 1, answer.ptr + answer.len, &len);
    return header ? number_in(slice_of(header, len), 3) : 0;
}

/* -- The cluster's answer -- */

static void on_overdue(struct kept_answer *kept)
{
    struct engine_forward *forward = CONTAINER_OF(kept, struct forward_kept, answer)->forward;
    forward->ops->on_overdue(forward);
}

static void keep_answer(struct upstream_call *call, struct engine_forward *forward)
{
    struct forward_kept *kept = xcalloc(1, sizeof(*kept));
    kept->answer.overdue = on_overdue;
    kept->forward = forward;
    forward->kept = kept;
    upstream_keep_answer(call, &kept->answer);
}

static void release_kept(struct engine_forward *forward)
{
    struct forward_kept *kept = TAKE(forward->kept);
    if (!kept)
        return;
    kept_answer_release(&kept->answer);
    free(kept);
}

static void on_message(struct upstream_call *call, struct slice message)
{
    struct engine_forward *forward = upstream_call_user(call);
    struct mirror_state *state = &shard_of(forward)->shared->state;
    int64_t revision = revision_of(message);
    /* A user, a role or a permission was changed, so permissions that the cluster has confirmed
     * before do not count any more. A login changes none. */
    if (!forward->reads && slice_has_prefix(forward->path, SLICE_LITERAL("/etcdserverpb.Auth/")) &&
        !slice_is(forward->path, PB_AUTH_AUTHENTICATE_PATH))
        atomic_fetch_add(&state->rights_changes, 1);
    if (forward->reads)
        mirror_state_heard(state, revision);
    else
        mirror_state_wrote(state, revision);
    if (forward->ops->on_overdue && message.len > UPSTREAM_WINDOW_BYTES && !forward->kept)
        keep_answer(call, forward);
    forward->ops->on_message(forward, message);
}

static void on_end(struct upstream_call *call, enum grpc_code code, struct slice text)
{
    struct engine_forward *forward = upstream_call_user(call);
    struct mirror_shard *shard = shard_of(forward);
    forward->state = NULL;
    shard->in_progress--;
    /* The answer of a compaction is not older than it. */
    if (code == GRPC_OK && forward->compacts > 0 &&
        forward->compacts <= atomic_load(&shard->shared->state.heard))
        follower_note_compaction(shard->shared->follower, forward->compacts);
    forward->ops->on_end(forward, code, text);
}

/* -- The client's call -- */

/* Decoded as the cluster does it: a client may send the field several times, and the last counts.
 */
static int64_t compaction_of(struct slice message)
{
    uint8_t first[COMPACTION_BYTES];
    struct arena arena;
    struct pb_compaction_request request;
    arena_init(&arena, first, sizeof(first), COMPACTION_BYTES_MAX);
    enum status status = pb_decode(&pb_compaction_request_table, message, &arena, &request);
    arena_fini(&arena);
    return status == ST_OK ? request.revision : 0;
}

void mirror_forward_start(struct engine_shard *base, struct engine_forward *forward)
{
    static const struct upstream_ops ops = {.on_message = on_message, .on_end = on_end};
    struct mirror_shard *shard = mirror_shard_of(base);
    struct upstream_call *call;
    struct upstream_request request = {
        .path = forward->path,
        .caller = {.is_self = forward->principal.is_server,
                   .token = forward->principal.token,
                   .via = forward->via},
        .deadline_ns = forward->deadline_ns,
        .keeps = forward->ops->on_overdue,
        .reads = forward->reads,
        .lasts = forward->lasts,
        .lane = forward->waits ? UPSTREAM_LANE_WAITING : UPSTREAM_LANE_CALLS,
        .require_leader = forward->require_leader,
    };
    forward->shard = base;
    forward->compacts = 0;
    forward->kept = NULL;
    if (upstream_start(shard->upstream, &request, &ops, forward, &call) != ST_OK)
        abort(); /* without memory */
    forward->state = call;
    shard->in_progress++;
    atomic_fetch_add_explicit(&shard->shared->state.forwarded, 1, memory_order_relaxed);
}

enum status mirror_forward_send(struct engine_forward *forward, struct slice message)
{
    if (slice_is(forward->path, PB_KV_COMPACT_PATH))
        forward->compacts = compaction_of(message);
    return upstream_send(forward->state, message);
}

void mirror_forward_half_close(struct engine_forward *forward)
{
    upstream_half_close(forward->state);
}

void mirror_forward_pause(struct engine_forward *forward, bool paused)
{
    if (forward->state)
        upstream_pause(forward->state, paused);
}

void mirror_forward_cancel(struct engine_forward *forward)
{
    release_kept(forward);
    if (!forward->state)
        return;
    upstream_cancel(TAKE(forward->state));
    shard_of(forward)->in_progress--;
}
