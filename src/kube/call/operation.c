#include "kube/call/operation.h"

#include "base/clock.h"
#include "base/memory/budget.h"
#include "engine/engine.h"
#include "kube/call/call.h"
#include "kube/call/offload.h"
#include "kube/call/respond.h"

static void op_begin(struct kube_call *call, struct engine_op *op,
                     void (*done)(struct engine_op *op))
{
    struct arena *arena = call->ops_arena ? call->ops_arena : &call->arena;
    *op = (struct engine_op){.done = done, .arena = arena, .principal = call->principal};
    kube_call_hold(call);
}

static void range_deferred(struct kube_call *call)
{
    kube_call_range(call, call->work.request, call->work.done);
}

void kube_call_range(struct kube_call *call, const struct pb_range_request *request,
                     void (*done)(struct engine_op *op))
{
    call->work.request = request;
    call->work.done = done;
    /* A call that is on a worker thread must not touch the engine. It continues here when it is
     * back. */
    if (kube_call_defers(call, range_deferred))
        return;
    op_begin(call, &call->range.op, done);
    engine_range_start(call->api->shard, &call->range, request);
}

/* An object for whose answer there is no memory is not written, so that the client may try again.
 * The answer takes the object with its revision and a copy in the output of the connection. A short
 * one needs no care: the budget keeps its last eighth for accounts that hold little. */
static bool set_aside_for_answer(struct kube_call *call)
{
    size_t bytes = call->write.value.len > KUBE_WORK_BYTES_MAX
                       ? 2 * (call->write.value.len + KUBE_WORK_BYTES_MAX)
                       : 0;
    kube_call_use_set_aside(call); /* those of an attempt before */
    if (bytes && !account_charge(call->arena.account, bytes))
        return false;
    call->set_aside = bytes;
    return true;
}

static void put(struct kube_call *call)
{
    if (!set_aside_for_answer(call)) {
        kube_call_fail_engine(call, ST_NOMEM);
        return;
    }
    op_begin(call, &call->write.engine.op, call->work.done);
    kube_storage_put(call->api->shard, &call->write);
}

/* -- Puts that expire -- */

struct lease_grant {
    struct engine_lease lease;
    struct kube_call *call;
};

static void put_expiring(struct kube_call *call);

static void on_granted(struct engine_op *op)
{
    struct lease_grant *grant = CONTAINER_OF(op, struct lease_grant, lease.op);
    struct kube_call *call = grant->call;
    struct kube_api *api = call->api;
    enum status status = op->status;
    if (status == ST_OK)
        kube_event_lease_set(&api->event_lease, grant->lease.id, clock_mono_ns(api->clock));
    if (!kube_call_done(call))
        return;
    if (status == ST_OK) {
        put_expiring(call);
        return;
    }
    kube_call_fail_engine(call, status);
}

static void grant_lease(struct kube_call *call)
{
    struct lease_grant *grant = arena_calloc(&call->arena, 1, sizeof(*grant));
    if (!grant) {
        kube_call_fail_engine(call, ST_NOMEM);
        return;
    }
    *grant = (struct lease_grant){
        .lease = {.op = {.done = on_granted, .arena = &call->arena, .principal = ENGINE_SERVER},
                  .ttl_s = KUBE_EVENT_TTL_S + KUBE_LEASE_REUSE_S},
        .call = call,
    };
    kube_call_hold(call);
    engine_lease_grant(call->api->shard, &grant->lease);
}

static void put_expiring(struct kube_call *call)
{
    struct kube_api *api = call->api;
    /* Events share a lease for a while. One for each would make as many leases as events. */
    if (kube_event_lease_take(&api->event_lease, clock_mono_ns(api->clock), &call->write.lease))
        put(call);
    else
        grant_lease(call);
}

/* -- Writes -- */

/* A put of a custom resource fails if its definition is no longer the one it was validated with. */
static bool guard_definition(struct kube_call *call)
{
    struct kube_custom *custom = kube_custom_of(call->kind);
    struct kube_write *write = &call->write;
    if (!custom)
        return true;
    write->rule_expected = custom->definition->revision;
    return kube_key_make(&call->arena, KUBE_DEFINITIONS_PREFIX, SLICE_EMPTY,
                         custom->definition->name, &write->rule) == ST_OK ||
           kube_fail_engine(&call->status, ST_NOMEM);
}

static void put_deferred(struct kube_call *call)
{
    kube_call_put(call, call->work.done);
}

void kube_call_put(struct kube_call *call, void (*done)(struct engine_op *op))
{
    call->work.done = done;
    if (kube_call_defers(call, put_deferred))
        return;
    /* Not earlier, because the revision of a definition may change while it is used. */
    if (!guard_definition(call))
        kube_call_fail(call);
    else if (kube_kind_expires(call->kind))
        put_expiring(call);
    else
        put(call);
}

static void delete_deferred(struct kube_call *call)
{
    kube_call_delete(call, call->work.done);
}

void kube_call_delete(struct kube_call *call, void (*done)(struct engine_op *op))
{
    call->work.done = done;
    if (kube_call_defers(call, delete_deferred))
        return;
    op_begin(call, &call->write.engine.op, done);
    kube_storage_delete(call->api->shard, &call->write);
}

struct kube_call *kube_call_of_range(struct engine_op *op)
{
    return CONTAINER_OF(op, struct kube_call, range.op);
}

struct kube_call *kube_call_of_write(struct engine_op *op)
{
    return CONTAINER_OF(op, struct kube_call, write.engine.op);
}

bool kube_call_key(struct kube_call *call, struct slice *ret_key)
{
    if (kube_key_make(&call->arena, call->kind->storage_prefix, call->path.namespace,
                      call->path.name, ret_key) == ST_OK)
        return true;
    kube_call_fail_engine(call, ST_NOMEM);
    return false;
}

/* -- Waiting for a resourceVersion -- */

#define WAIT_NS (3 * NS_PER_S)
#define POLL_NS (20 * NS_PER_MS)

static void look(struct kube_revision_wait *wait)
{
    struct kube_call *call = wait->call;
    struct loop *loop = call->api->loop;
    struct engine_status status;
    engine_status_get(call->api->shard, &status);
    int64_t current = status.revision;
    if (current >= wait->revision) {
        wait->done(call, true);
    } else if (loop_now_ns(loop) < wait->until_ns) {
        /* It is new on another thread, or in the cluster behind this server. */
        engine_await_revision(call->api->shard, wait->revision);
        loop_timer_set(loop, &wait->timer, loop_now_ns(loop) + POLL_NS);
    } else {
        kube_fail_future(&call->status, wait->revision, current);
        wait->done(call, false);
    }
}

static void on_timer(struct timer *timer)
{
    look(CONTAINER_OF(timer, struct kube_revision_wait, timer));
}

void kube_revision_wait_start(struct kube_revision_wait *wait, struct kube_call *call,
                              int64_t revision, void (*done)(struct kube_call *call, bool fresh))
{
    wait->call = call;
    wait->revision = revision;
    wait->done = done;
    wait->timer.fn = on_timer;
    wait->until_ns = loop_now_ns(call->api->loop) + WAIT_NS;
    look(wait);
}

void kube_revision_wait_cancel(struct kube_revision_wait *wait)
{
    if (wait->call)
        loop_timer_cancel(wait->call->api->loop, &wait->timer);
}
