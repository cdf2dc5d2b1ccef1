#include "kube/api/event_ttl.h"

#include "kube/api/call.h"

#include "base/clock.h"
#include "engine/lease.h"

struct grant {
    struct engine_lease lease;
    struct kube_call *call;
    void (*done)(struct engine_op *op);
    void (*then)(struct kube_call *call, void (*done)(struct engine_op *op));
};

bool kube_expires(const struct kube_kind *kind)
{
    return strcmp(kind->storage_prefix, "/registry/events/") == 0;
}

static int64_t now_ns(struct kube_face *face)
{
    return clock_mono_ns(face->clock);
}

static void go_on(struct kube_call *call, void (*done)(struct engine_op *op),
                  void (*then)(struct kube_call *call, void (*done)(struct engine_op *op)))
{
    call->face->expiry.puts++;
    call->write.lease = call->face->expiry.lease;
    then(call, done);
}

static void on_granted(struct engine_op *op)
{
    struct grant *grant = CONTAINER_OF(op, struct grant, lease.op);
    struct kube_call *call = grant->call;
    enum status status = op->status;
    if (status == ST_OK)
        call->face->expiry = (struct kube_expiry){
            .lease = grant->lease.id,
            .until_ns = clock_add(now_ns(call->face), KUBE_LEASE_REUSE_S * INT64_C(1000000000))};
    if (!kube_call_done(call))
        return;
    if (status == ST_OK) {
        go_on(call, grant->done, grant->then);
        return;
    }
    kube_fail_engine(&call->status, status);
    kube_call_fail(call);
}

void kube_expiry_take(struct kube_call *call, void (*done)(struct engine_op *op),
                      void (*then)(struct kube_call *call, void (*done)(struct engine_op *op)))
{
    struct kube_face *face = call->face;
    if (face->expiry.lease && face->expiry.puts < KUBE_LEASE_PUTS_MAX &&
        now_ns(face) < face->expiry.until_ns) {
        go_on(call, done, then);
        return;
    }
    struct grant *grant = arena_calloc(&call->arena, 1, sizeof(*grant));
    if (!grant) {
        kube_fail_engine(&call->status, ST_NOMEM);
        kube_call_fail(call);
        return;
    }
    *grant = (struct grant){
        .lease = {.op = {.done = on_granted, .arena = &call->arena, .principal = ENGINE_SERVER},
                  .ttl_s = KUBE_EVENT_TTL_S + KUBE_LEASE_REUSE_S},
        .call = call,
        .done = done,
        .then = then,
    };
    call->under_way++;
    face->under_way++;
    engine_lease_grant(face->shard, &grant->lease);
}
