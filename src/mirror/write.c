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

/* One call. On the heap until the operation is done; of a write, until it is closed. */
struct cluster_call {
    struct cluster_shard *shard;
    struct engine_op *op; /* borrowed */
    struct arena arena;   /* memory of the answer */
    /* Takes the response; sets op->revision. */
    enum status (*take)(struct cluster_call *call, struct slice message);
    const void *request; /* request of a write; borrowed until done */
    unsigned messages;
    enum status taken;  /* the result of take */
    bool closes;        /* the caller closes it: op->request is this call then */
    bool changes;       /* later reads must not be older than its revision */
    int64_t compaction; /* to this revision; 0: it is not a compaction */
};

static void call_free(struct cluster_call *call)
{
    if (!call)
        return;
    arena_fini(&call->arena);
    free(call);
}

/* -- The end -- */

static void finish(struct cluster_call *call)
{
    struct engine_op *op = call->op;
    if (!call->closes)
        call_free(call);
    op->done(op);
}

/* The newest revision is known before done, so that the caller's next read contains this write. */
static void note(struct cluster_call *call)
{
    struct cluster_shared *shared = call->shard->shared;
    if (call->changes)
        cluster_state_wrote(&shared->state, call->op->revision);
    else
        cluster_state_heard(&shared->state, call->op->revision);
    if (call->compaction)
        follower_note_compaction(shared->follower, call->compaction);
}

static void on_message(struct upstream_call *upstream, struct slice message)
{
    struct cluster_call *call = upstream_call_user(upstream);
    call->taken = call->messages++ ? ST_MALFORMED : call->take(call, message);
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
    struct cluster_call *call = upstream_call_user(upstream);
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

/* -- The start -- */

static struct cluster_call *call_new(struct engine_shard *shard, struct engine_op *op)
{
    struct cluster_call *call = xcalloc(1, sizeof(*call));
    call->shard = cluster_shard_of(shard);
    call->op = op;
    arena_init(&call->arena, NULL, 0, ANSWER_BYTES_MAX);
    if (op->arena->account)
        arena_charge(&call->arena, op->arena->account);
    op->status = ST_OK;
    op->text = SLICE_EMPTY;
    op->revision = 0;
    return call;
}

static enum status send(struct cluster_call *call, struct upstream_call *upstream,
                        const struct pb_message *type, const void *request)
{
    struct buf message = {0};
    enum status status = pb_append(type, request, &message);
    if (status == ST_OK)
        status = upstream_send(upstream, buf_slice(&message));
    buf_fini(&message);
    if (status != ST_OK) {
        upstream_cancel(upstream);
        return status;
    }
    upstream_half_close(upstream);
    call->shard->in_progress++;
    return ST_OK;
}

static enum status start(struct cluster_call *call, const char *path, bool reads,
                         const struct pb_message *type, const void *request)
{
    struct cluster_shard *shard = call->shard;
    const struct auth_principal *principal = &call->op->principal;
    struct upstream_call *upstream;
    struct upstream_request options = {
        .path = slice_from_text(path),
        .caller = {.is_self = principal->is_server, .token = principal->token},
        .deadline_ns = clock_add(loop_now_ns(shard->loop), CALL_NS),
        .reads = reads,
    };
    TRY(upstream_start(shard->upstream, &options, &call_ops, call, &upstream));
    return send(call, upstream, type, request);
}

static void begin(struct cluster_call *call, const char *path, bool reads,
                  const struct pb_message *type, const void *request)
{
    enum status status = start(call, path, reads, type, request);
    if (status == ST_OK)
        return;
    call->op->status = status == ST_LIMIT ? ST_REQUEST_TOO_MANY_REQUESTS : status; /* queued */
    finish(call);
}

/* -- Puts, deletes and transactions -- */

static struct engine_write *write_of(struct cluster_call *call)
{
    return CONTAINER_OF(call->op, struct engine_write, op);
}

static enum status take_answer(struct cluster_call *call, enum status status)
{
    struct engine_write *write = write_of(call);
    if (status == ST_OK)
        call->op->revision = write->answer.revision;
    return status;
}

static enum status take_put(struct cluster_call *call, struct slice message)
{
    return take_answer(
        call, write_answer_put(message, call->request, &call->arena, &write_of(call)->answer));
}

static enum status take_delete(struct cluster_call *call, struct slice message)
{
    return take_answer(
        call, write_answer_delete(message, call->request, &call->arena, &write_of(call)->answer));
}

static enum status take_txn(struct cluster_call *call, struct slice message)
{
    return take_answer(
        call, write_answer_txn(message, call->request, &call->arena, &write_of(call)->answer));
}

static struct cluster_call *write_new(struct engine_shard *shard, struct engine_write *write,
                                      const void *request)
{
    struct cluster_call *call = call_new(shard, &write->op);
    call->request = request;
    call->closes = true;
    call->changes = true;
    write->op.request = call;
    return call;
}

void cluster_put(struct engine_shard *shard, struct engine_write *write,
                 const struct pb_put_request *request)
{
    struct cluster_call *call = write_new(shard, write, request);
    call->take = take_put;
    begin(call, "/etcdserverpb.KV/Put", false, &pb_put_request_table, request);
}

void cluster_delete_range(struct engine_shard *shard, struct engine_write *write,
                          const struct pb_delete_range_request *request)
{
    struct cluster_call *call = write_new(shard, write, request);
    call->take = take_delete;
    begin(call, "/etcdserverpb.KV/DeleteRange", false, &pb_delete_range_request_table, request);
}

void cluster_txn(struct engine_shard *shard, struct engine_write *write,
                 const struct pb_txn_request *request)
{
    struct cluster_call *call = write_new(shard, write, request);
    call->take = take_txn;
    begin(call, "/etcdserverpb.KV/Txn", false, &pb_txn_request_table, request);
}

void cluster_write_close(struct engine_write *write)
{
    call_free((struct cluster_call *)(uintptr_t)write->op.request);
    write->op.request = NULL;
    write->answer = (struct kv_answer){0};
}

/* -- Compaction -- */

static enum status take_header(struct cluster_call *call, const struct pb_response_header *header)
{
    if (!header || header->revision <= 0)
        return ST_MALFORMED;
    call->op->revision = header->revision;
    return ST_OK;
}

static enum status take_compaction(struct cluster_call *call, struct slice message)
{
    struct pb_compaction_response response;
    TRY(pb_decode(&pb_compaction_response_table, message, &call->arena, &response));
    return take_header(call, response.header);
}

void cluster_compact(struct engine_shard *shard, struct engine_op *op,
                     const struct pb_compaction_request *request)
{
    struct cluster_call *call = call_new(shard, op);
    call->take = take_compaction;
    call->compaction = request->revision;
    begin(call, "/etcdserverpb.KV/Compact", false, &pb_compaction_request_table, request);
}

/* -- Leases -- */

static struct engine_lease *lease_of(struct cluster_call *call)
{
    return CONTAINER_OF(call->op, struct engine_lease, op);
}

static enum status take_grant(struct cluster_call *call, struct slice message)
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

static enum status take_revoke(struct cluster_call *call, struct slice message)
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

static enum status take_time_to_live(struct cluster_call *call, struct slice message)
{
    struct engine_lease *lease = lease_of(call);
    struct pb_lease_time_to_live_response response;
    TRY(pb_decode(&pb_lease_time_to_live_response_table, message, &call->arena, &response));
    TRY(take_header(call, response.header));
    lease->ttl_s = response.ttl;
    lease->granted_ttl_s = response.granted_ttl;
    return take_keys(lease, response.keys, response.keys_count);
}

static enum status take_list(struct cluster_call *call, struct slice message)
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
static int64_t ttl_of(const struct cluster_call *call, const struct engine_lease *lease)
{
    if (!lease->until_ns)
        return lease->ttl_s;
    int64_t left_ns = lease->until_ns - clock_real_ns(loop_clock(call->shard->loop));
    return left_ns > 0 ? (left_ns + NS_PER_S - 1) / NS_PER_S : 1;
}

static void grant(struct cluster_call *call, const struct engine_lease *lease)
{
    struct pb_lease_grant_request request = {.ttl = ttl_of(call, lease), .id = lease->id};
    call->take = take_grant;
    begin(call, "/etcdserverpb.Lease/LeaseGrant", false, &pb_lease_grant_request_table, &request);
}

static void revoke(struct cluster_call *call, const struct engine_lease *lease)
{
    struct pb_lease_revoke_request request = {.id = lease->id};
    call->take = take_revoke;
    call->changes = true;
    begin(call, "/etcdserverpb.Lease/LeaseRevoke", false, &pb_lease_revoke_request_table, &request);
}

static void time_to_live(struct cluster_call *call, const struct engine_lease *lease)
{
    struct pb_lease_time_to_live_request request = {.id = lease->id, .keys = lease->want_keys};
    call->take = take_time_to_live;
    begin(call, "/etcdserverpb.Lease/LeaseTimeToLive", true, &pb_lease_time_to_live_request_table,
          &request);
}

static void list(struct cluster_call *call)
{
    struct pb_lease_leases_request request = {0};
    call->take = take_list;
    begin(call, "/etcdserverpb.Lease/LeaseLeases", true, &pb_lease_leases_request_table, &request);
}

void cluster_lease(struct engine_shard *shard, struct engine_op *op, enum engine_lease_call which)
{
    struct cluster_call *call = call_new(shard, op);
    struct engine_lease *lease = lease_of(call);
    lease->keys = NULL;
    lease->ids = NULL;
    lease->key_count = lease->id_count = 0;
    switch (which) {
    case ENGINE_LEASE_GRANT:
        grant(call, lease);
        break;
    case ENGINE_LEASE_REVOKE:
        revoke(call, lease);
        break;
    case ENGINE_LEASE_TIME_TO_LIVE:
        time_to_live(call, lease);
        break;
    case ENGINE_LEASE_LIST:
        list(call);
        break;
    case ENGINE_LEASE_RENEW:
        abort(); /* lease_streams.c */
    }
}
