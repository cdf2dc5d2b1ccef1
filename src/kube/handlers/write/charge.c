#include "kube/handlers/write/charge.h"

#include "kube/call/respond.h"
#include "kube/handlers/write/admit.h"

/* What was decided before may not hold any more. */
static void on_turn(struct kube_write_ticket *ticket)
{
    struct kube_call *call = CONTAINER_OF(ticket, struct kube_call, quota_ticket);
    kube_change_again(call->handler.change, KUBE_AGAIN_DECIDE);
}

enum kube_stepped kube_charge(struct kube_change *change)
{
    struct kube_call *call = change->call;
    struct kube_write_ticket *ticket = &call->quota_ticket;
    struct slice key;
    bool writes = change->decision != KUBE_DECIDE_KEEP && !change->dry_run;
    if (!writes || ticket->queue)
        return KUBE_STEP_NEXT;
    /* No key of an object looks like a namespace. */
    if (arena_dup(&call->arena, call->path.namespace, &key) != ST_OK)
        return kube_fail_engine(&call->status, ST_NOMEM);
    *ticket = (struct kube_write_ticket){.key = key, .begin = on_turn};
    switch (kube_write_queue_enter(&call->api->write_queue, ticket)) {
    case KUBE_WRITE_QUEUE_FIRST:
        return KUBE_STEP_NEXT;
    case KUBE_WRITE_QUEUE_WAITS:
        kube_count_total(&call->api->counter, KUBE_TOTAL_QUEUED, 1);
        return KUBE_STEP_LEFT;
    default:
        return kube_fail_later(&call->status, SLICE_LITERAL("too many requests are charged to the "
                                                            "quotas of this namespace at the same "
                                                            "time, please try again"));
    }
}

bool kube_charge_write(struct kube_call *call, struct arena *arena,
                       const struct kube_charges *charges)
{
    const struct kube_companions *reservations = call->write.companions;
    size_t reserved = reservations ? reservations->count : 0;
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
