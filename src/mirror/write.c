/*
 * Writes as calls of the cluster: those of the Kubernetes API and of the server itself. The calls
 * of etcd's API are forwarded as they are (forward.c) and never come here.
 *
 *     start ──► request sent ──► response taken ──► ended: done ──► close
 *                    └──────── failed ────────────────┘
 *
 * A call that may have been executed is not sent again: the cluster's error, or that there was no
 * answer in time, is passed on, and the caller must not take it for a refusal.
 */
#include "base/buf.h"
#include "base/clock.h"
#include "base/slices.h"
#include "base/xalloc.h"
#include "codec/pb/rpc.pb.h"
#include "io/loop.h"
#include "mirror/answer/write_answer.h"
#include "mirror/follow/follower.h"
#include "mirror/link/upstream.h"
#include "mirror/shard.h"

#include <stdlib.h>

/* etcd itself gives up after 7 s with its default election timeout, and says why. */
#define CALL_NS (15 * NS_PER_S)

enum { ANSWER_BYTES_MAX = 64 << 20 };

struct mirror_call;

/* The cluster's method for a kind of operation. */
struct method {
    const char *path;
    const struct pb_message *request;
    /* Takes the response; sets op->revision. */
    enum status (*take)(struct mirror_call *call, struct slice message);
    bool reads;   /* changes nothing, so it may be repeated before its first answer */
    bool changes; /* later reads must not be older than its revision */
    bool closes;  /* the caller closes it (struct engine_write) */
};

/* One call. On the heap until the operation is done, or closed if the caller closes it. */
struct mirror_call {
    const struct method *method;
    struct mirror_shard *shard;
    struct engine_op *op; /* borrowed; if it is closed, op->request is this call */
    struct arena arena;   /* memory of the answer */
    const void *request;  /* the operation's, borrowed until done; NULL for leases */
    unsigned messages;
    enum status taken; /* the result of take */
};

static void call_free(struct mirror_call *call)
{
    if (!call)
        return;
    arena_fini(&call->arena);
    free(call);
}

/* -- The end -- */

static void finish(struct mirror_call *call)
{
    struct engine_op *op = call->op;
    if (!call->method->closes)
        call_free(call);
    op->done(op);
}

/* The newest revision is known before done, so that the caller's next read contains this write. */
static void note(struct mirror_call *call)
{
    struct mirror_shared *shared = call->shard->shared;
    if (call->method->changes)
        mirror_state_wrote(&shared->state, call->op->revision);
    else
        mirror_state_heard(&shared->state, call->op->revision);
    if (call->op->kind == ENGINE_COMPACT)
        follower_note_compaction(shared->follower,
                                 ((const struct pb_compaction_request *)call->request)->revision);
}

static void on_message(struct upstream_call *upstream, struct slice message)
{
    struct mirror_call *call = upstream_call_user(upstream);
    call->taken = call->messages++ ? ST_MALFORMED : call->method->take(call, message);
}

/* The cluster has executed it, so no status that means a refusal will do, not even "out of memory".
 */
static void fail_unread(struct engine_op *op)
{
    op->status = ST_INTERNAL;
    op->text = SLICE_LITERAL("vigil: the answer of the cluster could not be read; the request may "
                             "have been executed");
}

/* A connection that breaks leaves the outcome open. etcd's own status for that is used, because
 * "try again" would be an invitation to do it twice. */
static void fail(struct engine_op *op, enum grpc_code code, struct slice text)
{
    cluster_fail(op, code, text);
    if (op->status == ST_AGAIN)
        op->status = ST_TIMEOUT_DUE_TO_CONNECTION_LOST;
    else if (op->status == ST_LIMIT &&
             slice_has_prefix(text, SLICE_LITERAL("grpc: received message larger")))
        op->status = ST_REQUEST_TOO_LARGE;
    else if (op->status == ST_LIMIT)
        op->status = ST_UPSTREAM; /* the answer may be what is too large */
}

static void on_end(struct upstream_call *upstream, enum grpc_code code, struct slice text)
{
    struct mirror_call *call = upstream_call_user(upstream);
    call->shard->in_progress--;
    if (upstream_call_is_too_long(upstream))
        fail_unread(call->op);
    else if (code != GRPC_OK)
        fail(call->op, code, text);
    else if (!call->messages || call->taken != ST_OK)
        fail_unread(call->op);
    else
        note(call);
    finish(call);
}

static const struct upstream_ops call_ops = {.on_message = on_message, .on_end = on_end};

/* -- Puts, deletes and transactions -- */

static struct engine_write *write_of(struct mirror_call *call)
{
    return CONTAINER_OF(call->op, struct engine_write, op);
}

static enum status take_answer(struct mirror_call *call, enum status status)
{
    struct engine_write *write = write_of(call);
    if (status == ST_OK)
        call->op->revision = write->answer.revision;
    return status;
}

static enum status take_put(struct mirror_call *call, struct slice message)
{
    return take_answer(
        call, write_answer_put(message, call->request, &call->arena, &write_of(call)->answer));
}

static enum status take_delete(struct mirror_call *call, struct slice message)
{
    return take_answer(
        call, write_answer_delete(message, call->request, &call->arena, &write_of(call)->answer));
}

static enum status take_txn(struct mirror_call *call, struct slice message)
{
    return take_answer(
        call, write_answer_txn(message, call->request, &call->arena, &write_of(call)->answer));
}

/* -- Compaction -- */

static enum status take_header(struct mirror_call *call, const struct pb_response_header *header)
{
    if (!header || header->revision <= 0)
        return ST_MALFORMED;
    call->op->revision = header->revision;
    return ST_OK;
}

static enum status take_compaction(struct mirror_call *call, struct slice message)
{
    struct pb_compaction_response response;
    TRY(pb_decode(&pb_compaction_response_table, message, &call->arena, &response));
    return take_header(call, response.header);
}

/* -- Leases -- */

static struct engine_lease *lease_of(const struct mirror_call *call)
{
    return CONTAINER_OF(call->op, struct engine_lease, op);
}

static enum status take_grant(struct mirror_call *call, struct slice message)
{
    struct engine_lease *lease = lease_of(call);
    struct pb_lease_grant_response response;
    TRY(pb_decode(&pb_lease_grant_response_table, message, &call->arena, &response));
    TRY(take_header(call, response.header));
    if (response.error.len || !response.id)
        return ST_MALFORMED;
    lease->id = response.id;
    lease->ttl_s = lease->granted_ttl_s = response.ttl;
    return ST_OK;
}

static enum status take_revoke(struct mirror_call *call, struct slice message)
{
    struct pb_lease_revoke_response response;
    TRY(pb_decode(&pb_lease_revoke_response_table, message, &call->arena, &response));
    return take_header(call, response.header);
}

/* The keys become copies in the operation's arena. */
static enum status take_keys(struct engine_lease *lease, const struct slice *keys, size_t count)
{
    struct arena *arena = lease->op.arena;
    if (!count)
        return ST_OK;
    struct slice *copies = arena_calloc(arena, count, sizeof(*copies));
    if (!copies)
        return ST_NOMEM;
    for (size_t i = 0; i < count; i++)
        TRY(arena_dup(arena, keys[i], &copies[i]));
    slices_sort(copies, count);
    lease->keys = copies;
    lease->key_count = count;
    return ST_OK;
}

static enum status take_time_to_live(struct mirror_call *call, struct slice message)
{
    struct engine_lease *lease = lease_of(call);
    struct pb_lease_time_to_live_response response;
    TRY(pb_decode(&pb_lease_time_to_live_response_table, message, &call->arena, &response));
    TRY(take_header(call, response.header));
    lease->ttl_s = response.ttl;
    lease->granted_ttl_s = response.granted_ttl;
    return take_keys(lease, response.keys, response.keys_count);
}

static enum status take_list(struct mirror_call *call, struct slice message)
{
    struct engine_lease *lease = lease_of(call);
    struct pb_lease_leases_response response;
    TRY(pb_decode(&pb_lease_leases_response_table, message, &call->arena, &response));
    TRY(take_header(call, response.header));
    if (!response.leases_count)
        return ST_OK;
    int64_t *ids = arena_calloc(lease->op.arena, response.leases_count, sizeof(*ids));
    if (!ids)
        return ST_NOMEM;
    for (size_t i = 0; i < response.leases_count; i++)
        ids[i] = response.leases[i].id;
    lease->ids = ids;
    lease->id_count = response.leases_count;
    return ST_OK;
}

/* A lease that ends at a time of the real clock becomes one with the time that is left. The cluster
 * starts it again with a new leader, so it can end later than that; never earlier. */
static int64_t ttl_of(const struct mirror_call *call, const struct engine_lease *lease)
{
    if (!lease->until_ns)
        return lease->ttl_s;
    int64_t left_ns = lease->until_ns - clock_real_ns(loop_clock(call->shard->loop));
    return left_ns > 0 ? (left_ns + NS_PER_S - 1) / NS_PER_S : 1;
}

/* -- The start -- */

static const struct method methods[ENGINE_KINDS] = {
    [ENGINE_PUT] = {PB_KV_PUT_PATH, &pb_put_request_table, .take = take_put, .changes = true,
                    .closes = true},
    [ENGINE_DELETE_RANGE] = {PB_KV_DELETE_RANGE_PATH, &pb_delete_range_request_table,
                             .take = take_delete, .changes = true, .closes = true},
    [ENGINE_TXN] = {PB_KV_TXN_PATH, &pb_txn_request_table, .take = take_txn, .changes = true,
                    .closes = true},
    [ENGINE_COMPACT] = {PB_KV_COMPACT_PATH, &pb_compaction_request_table, .take = take_compaction},
    [ENGINE_LEASE_GRANT] = {PB_LEASE_LEASE_GRANT_PATH, &pb_lease_grant_request_table,
                            .take = take_grant},
    [ENGINE_LEASE_REVOKE] = {PB_LEASE_LEASE_REVOKE_PATH, &pb_lease_revoke_request_table,
                             .take = take_revoke, .changes = true},
    [ENGINE_LEASE_TIME_TO_LIVE] = {PB_LEASE_LEASE_TIME_TO_LIVE_PATH,
                                   &pb_lease_time_to_live_request_table, .take = take_time_to_live,
                                   .reads = true},
    [ENGINE_LEASE_LIST] = {PB_LEASE_LEASE_LEASES_PATH, &pb_lease_leases_request_table,
                           .take = take_list, .reads = true},
};

/* Encodes the request, which for a lease is made from the fields of the operation. */
static enum status encode(const struct mirror_call *call, struct buf *message)
{
    const struct pb_message *type = call->method->request;
    const struct engine_lease *lease = lease_of(call);
    switch ((enum engine_kind)call->op->kind) {
    case ENGINE_LEASE_GRANT: {
        struct pb_lease_grant_request request = {.ttl = ttl_of(call, lease), .id = lease->id};
        return pb_append(type, &request, message);
    }
    case ENGINE_LEASE_REVOKE: {
        struct pb_lease_revoke_request request = {.id = lease->id};
        return pb_append(type, &request, message);
    }
    case ENGINE_LEASE_TIME_TO_LIVE: {
        struct pb_lease_time_to_live_request request = {.id = lease->id, .keys = lease->want_keys};
        return pb_append(type, &request, message);
    }
    case ENGINE_LEASE_LIST:
        return pb_append(type, &(struct pb_lease_leases_request){0}, message);
    default:
        return pb_append(type, call->request, message);
    }
}

static enum status send(struct mirror_call *call)
{
    struct mirror_shard *shard = call->shard;
    const struct auth_principal *principal = &call->op->principal;
    AUTO(buf_fini) struct buf message = {0};
    struct upstream_call *upstream;
    struct upstream_request options = {
        .path = slice_from_text(call->method->path),
        .caller = {.is_self = principal->is_server, .token = principal->token},
        .deadline_ns = clock_add(loop_now_ns(shard->loop), CALL_NS),
        .reads = call->method->reads,
    };
    TRY(encode(call, &message));
    TRY(upstream_start(shard->upstream, &options, &call_ops, call, &upstream));
    enum status status = upstream_send(upstream, buf_slice(&message));
    if (status != ST_OK) {
        upstream_cancel(upstream);
        return status;
    }
    upstream_half_close(upstream);
    shard->in_progress++;
    return ST_OK;
}

void mirror_call_start(struct engine_op *op)
{
    struct mirror_call *call = xcalloc(1, sizeof(*call));
    call->method = &methods[op->kind];
    call->shard = mirror_shard_of(op->shard);
    call->op = op;
    call->request = op->request;
    arena_init(&call->arena, NULL, 0, ANSWER_BYTES_MAX);
    if (op->arena->account)
        arena_charge(&call->arena, op->arena->account);
    op->status = ST_OK;
    op->revision = 0;
    if (call->method->closes)
        op->request = call;
    if (!op->request) { /* a lease, which must not show the answer of an earlier operation */
        struct engine_lease *lease = lease_of(call);
        lease->keys = NULL;
        lease->ids = NULL;
        lease->key_count = lease->id_count = 0;
    }
    enum status status = send(call);
    if (status == ST_OK)
        return;
    op->status = status == ST_LIMIT ? ST_REQUEST_TOO_MANY_REQUESTS : status; /* queued */
    finish(call);
}

void mirror_write_close(struct engine_write *write)
{
    call_free((struct mirror_call *)(uintptr_t)write->op.request);
    write->op.request = NULL;
    write->answer = (struct kv_answer){0};
}
