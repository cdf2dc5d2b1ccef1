#include "etcd/service/lease_keep_alive.h"

#include "codec/pb/rpc.pb.h"
#include "engine/engine.h"
#include "etcd/cluster/forward.h"
#include "etcd/service/service_call.h"

enum {
    PAUSE_WAITING = 1024, /* waiting renewals from which on the client gets no more window */
    BATCH_MAX = 512,      /* renewals in one operation of the engine */
    KEEP_BYTES = 512,     /* memory that an idle stream keeps */
    REQUEST_BYTES_MAX = 64 << 10, /* limit on the memory for one decoded request */
};

/* One stream. In the call's arena, on the connection's thread. */
struct keep_alive {
    struct engine_renewals renewals; /* first */
    struct service_call base;
    struct buf waiting; /* struct engine_renewal each: not started */
    struct buf batch;   /* struct engine_renewal each: used by the engine while pending */
    bool paused;
    bool half_closed;
    bool over; /* half-closed or failed; the call ends when the batch is answered */
};

static void drop_memory(struct keep_alive *k)
{
    buf_fini(&k->waiting);
    buf_fini(&k->batch);
}

static void fail(struct keep_alive *k, enum status status)
{
    k->over = true;
    grpc_call_fail(k->base.call, status);
}

static void finish(struct keep_alive *k)
{
    k->over = true;
    grpc_call_finish(k->base.call);
}

/* Starts the next operation if renewals are waiting and none is under way. */
static void begin(struct keep_alive *k)
{
    if (service_call_is_pending(&k->base) || k->over || k->waiting.len == 0)
        return;
    size_t bytes = size_min(k->waiting.len, BATCH_MAX * sizeof(struct engine_renewal));
    buf_reset(&k->batch, KEEP_BYTES);
    if (buf_append(&k->batch, slice_of(k->waiting.ptr, bytes)) != ST_OK) {
        fail(k, ST_NOMEM);
        return;
    }
    buf_consume(&k->waiting, bytes);
    if (k->waiting.len == 0)
        buf_reset(&k->waiting, KEEP_BYTES);
    service_call_begin(&k->base);
    k->renewals.op.principal =
        etcd_call_principal(k->base.call); /* the principal of the latest message */
    k->renewals.items = (struct engine_renewal *)(void *)k->batch.ptr;
    k->renewals.count = bytes / sizeof(struct engine_renewal);
    engine_lease_renew(k->base.api->shard, &k->renewals);
}

static void set_paused(struct keep_alive *k, bool paused)
{
    if (k->paused != paused)
        grpc_call_pause(k->base.call, paused);
    k->paused = paused;
}

static enum status answer_one(struct keep_alive *k, struct pb_response_header *header,
                              const struct engine_renewal *renewal)
{
    struct pb_lease_keep_alive_response response = {
        .header = header,
        .id = renewal->id,
        .ttl = renewal->ttl_s,
    };
    size_t size = pb_size(&pb_lease_keep_alive_response_table, &response);
    uint8_t *dst = grpc_call_message(k->base.call, size);
    if (!dst)
        return ST_NOMEM;
    pb_encode(&pb_lease_keep_alive_response_table, &response, dst, size);
    return ST_OK;
}

static enum status answer_batch(struct keep_alive *k)
{
    struct pb_response_header header;
    etcd_header_fill(k->base.api, k->renewals.op.revision, &header);
    for (size_t i = 0; i < k->renewals.answered; i++)
        TRY(answer_one(k, &header, &k->renewals.items[i]));
    return ST_OK;
}

static void go_on(struct keep_alive *k)
{
    enum status status = answer_batch(k);
    if (status != ST_OK) {
        fail(k, status);
        return;
    }
    buf_reset(&k->batch, KEEP_BYTES);
    begin(k);
    if (k->over)
        return;
    if (k->waiting.len < PAUSE_WAITING * sizeof(struct engine_renewal))
        set_paused(k, false);
    if (k->half_closed && !service_call_is_pending(&k->base))
        finish(k);
}

static void renewals_done(struct engine_op *op)
{
    struct keep_alive *k = CONTAINER_OF(op, struct keep_alive, renewals.op);
    if (!service_call_answered(&k->base)) {
        drop_memory(k);
        service_call_release(&k->base);
    } else if (op->status != ST_OK) {
        /* As in etcd, the renewals before the refused one are answered. */
        enum status ignored = k->over ? ST_OK : answer_batch(k);
        (void)ignored;
        k->over = true;
        if (op->text.len)
            forward_fail(k->base.call, k->base.api, status_code(op->status), op->text);
        else
            etcd_call_fail_op(k->base.call, op);
    } else if (!k->over) {
        go_on(k);
    }
}

/* -- Requests -- */

static struct keep_alive *keep_alive_new(struct grpc_call *call, struct etcd_api *api)
{
    struct keep_alive *k = arena_calloc(grpc_call_arena(call), 1, sizeof(*k));
    if (!k) {
        grpc_call_fail(call, ST_NOMEM);
        return NULL;
    }
    service_call_init(&k->base, call, api, &k->renewals.op, renewals_done);
    grpc_call_set_user(call, k);
    return k;
}

/* A call may live for years, so requests are not decoded into its arena. False: the call failed. */
static bool decode(struct keep_alive *k, struct slice message, int64_t *ret_id)
{
    struct arena arena;
    struct pb_lease_keep_alive_request request;
    uint8_t first[128];
    arena_init(&arena, first, sizeof(first), REQUEST_BYTES_MAX);
    bool decoded = etcd_call_decode_in(k->base.call, &arena, &pb_lease_keep_alive_request_table,
                                       message, &request);
    arena_fini(&arena);
    k->over = !decoded;
    *ret_id = decoded ? request.id : 0;
    return decoded;
}

void lease_keep_alive_on_message(struct grpc_call *call, void *api, struct slice message)
{
    struct keep_alive *k = grpc_call_user(call);
    if (!k)
        k = keep_alive_new(call, api);
    if (!k || k->over)
        return;
    struct engine_renewal renewal = {0};
    if (!decode(k, message, &renewal.id))
        return;
    if (buf_append(&k->waiting, slice_of(&renewal, sizeof(renewal))) != ST_OK) {
        fail(k, ST_NOMEM);
        return;
    }
    begin(k);
    if (!k->over && k->waiting.len >= PAUSE_WAITING * sizeof(renewal))
        set_paused(k, true);
}

void lease_keep_alive_on_half_close(struct grpc_call *call, void *api)
{
    (void)api;
    struct keep_alive *k = grpc_call_user(call);
    if (!k) {
        grpc_call_finish(call);
        return;
    }
    k->half_closed = true;
    if (!service_call_is_pending(&k->base) && !k->over)
        finish(k);
}

void lease_keep_alive_on_end(struct grpc_call *call, void *api)
{
    (void)api;
    struct keep_alive *k = grpc_call_user(call);
    if (k && service_call_end(&k->base))
        drop_memory(k);
}
