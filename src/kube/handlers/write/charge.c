#include "kube/handlers/write/charge.h"

#include "kube/call/respond.h"

static void on_turn(struct kube_write_ticket *ticket)
{
    struct kube_call *call = CONTAINER_OF(ticket, struct kube_call, quota_ticket);
    call->on_quota_turn(call);
}

static void too_many(struct kube_call *call)
{
    kube_fail_later(&call->status,
                    SLICE_LITERAL("too many requests are charged to the quotas of this namespace "
                                  "at the same time, please try again"));
    kube_call_fail(call);
}

bool kube_charge_enter(struct kube_call *call, const struct kube_charges *charges,
                       void (*again)(struct kube_call *call))
{
    struct kube_write_ticket *ticket = &call->quota_ticket;
    struct slice key;
    if (!charges->count || ticket->queue)
        return true;
    /* No key of an object looks like a namespace. */
    if (arena_dup(&call->arena, call->path.namespace, &key) != ST_OK) {
        kube_call_fail_engine(call, ST_NOMEM);
        return false;
    }
    *ticket = (struct kube_write_ticket){.key = key, .begin = on_turn};
    call->on_quota_turn = again;
    switch (kube_write_queue_enter(&call->api->write_queue, ticket)) {
    case KUBE_WRITE_QUEUE_FIRST:
        return true;
    case KUBE_WRITE_QUEUE_WAITS:
        kube_count_total(&call->api->counter, KUBE_TOTAL_QUEUED, 1);
        return false;
    case KUBE_WRITE_QUEUE_REFUSED:
        break;
    }
    too_many(call);
    return false;
}

void kube_charge_leave(struct kube_call *call)
{
    kube_write_queue_leave(&call->quota_ticket);
}

bool kube_charge_write(struct kube_call *call, struct arena *arena,
                       const struct kube_charges *charges)
{
    const struct kube_companions *reservations = call->write.companions;
    size_t reserved = reservations ? reservations->count : 0;
    if (!charges->count)
        return true;
    if (reserved + charges->count > KUBE_COMPANIONS_MAX)
        return kube_fail(&call->status, KUBE_TOO_LARGE,
                         "the object has too many node ports to be charged to quotas");
    struct kube_companions *all = kube_companions_new(arena, reserved + charges->count);
    if (!all)
        return kube_fail_engine(&call->status, ST_NOMEM);
    if (reserved)
        memcpy(all->items, reservations->items, reserved * sizeof(*reservations->items));
    memcpy(all->items + reserved, charges->items, charges->count * sizeof(*charges->items));
    call->write.companions = all;
    return true;
}
