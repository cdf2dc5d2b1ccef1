/* The Lock service: etcd's mutex. Waiting for a lock is in claim.c. */
#include "codec/pb/lock.pb.h"
#include "etcd/service/claim.h"
#include "etcd/service/kv_check.h"
#include "etcd/service/service_call.h"
#include "etcd/service/services.h"

/* -- Lock -- */

static void lock_reply(const struct claim_result *result,
                       void (*send)(void *ctx, const struct pb_message *type, const void *message),
                       void *ctx)
{
    struct pb_lock_response response = {.header = result->header, .key = result->key};
    send(ctx, &pb_lock_response_table, &response);
}

static const struct claim_kind mutex = {
    .gone_text = "mutex: session is expired",
    .reply = lock_reply,
};

static void lock_on_message(struct grpc_call *call, void *service, struct slice message)
{
    struct pb_lock_request request;
    if (etcd_call_decode(call, &pb_lock_request_table, message, &request) &&
        claim_admit(call, service, message))
        claim_start(call, service, &mutex, request.name, SLICE_EMPTY, request.lease);
}

/* -- Unlock -- */

/* In the call's arena, on the connection's thread. */
struct unlock_call {
    struct engine_write write; /* first */
    struct service_call base;
    struct pb_delete_range_request removal;
};

static void unlock_done(struct engine_op *op)
{
    struct unlock_call *u = CONTAINER_OF(op, struct unlock_call, write.op);
    bool ended = !service_call_answered(&u->base);
    enum status status = op->status;
    struct pb_response_header header;
    etcd_header_fill(u->base.api, op->revision, &header);
    engine_write_close(&u->write);
    if (ended) {
        service_call_release(&u->base);
    } else if (status != ST_OK) {
        grpc_call_fail_text(u->base.call, GRPC_UNKNOWN, slice_from_text(status_text(status)));
    } else {
        struct pb_unlock_response response = {.header = &header};
        etcd_call_reply(u->base.call, &pb_unlock_response_table, &response);
    }
}

static void unlock_on_message(struct grpc_call *call, void *service, struct slice message)
{
    struct etcd_api *api = service;
    struct pb_unlock_request request;
    struct unlock_call *u = arena_calloc(grpc_call_arena(call), 1, sizeof(*u));
    if (!u) {
        grpc_call_fail(call, ST_NOMEM);
        return;
    }
    if (!etcd_call_decode(call, &pb_unlock_request_table, message, &request) ||
        !claim_admit(call, api, message))
        return;
    u->removal.key = request.key;
    enum status status = kv_check_delete_range(&u->removal);
    if (status != ST_OK) {
        grpc_call_fail_text(call, GRPC_UNKNOWN, slice_from_text(status_text(status)));
        return;
    }
    service_call_init(&u->base, call, api, &u->write.op, unlock_done);
    service_call_begin(&u->base);
    grpc_call_set_user(call, u);
    engine_delete_range(api->shard, &u->write, &u->removal);
}

static void unlock_on_end(struct grpc_call *call, void *service)
{
    (void)service;
    struct unlock_call *u = grpc_call_user(call);
    if (u)
        service_call_end(&u->base);
}

static const struct grpc_method methods[] = {
    GRPC_METHOD(PB_LOCK_LOCK_PATH, lock_on_message, claim_on_end, .parks = true),
    GRPC_METHOD(PB_LOCK_UNLOCK_PATH, unlock_on_message, unlock_on_end),
};

enum status lock_service_add(struct etcd_api *api)
{
    return grpc_services_add(api->services, methods, COUNT_OF(methods), api);
}
