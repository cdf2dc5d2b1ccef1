#include "kube/handlers/write/reserve.h"

/* After a function that has added errors, or has run out of memory. */
static bool fail(struct kube_call *call, const struct kube_field_errors *errors, struct slice name)
{
    if (!errors->count)
        return kube_fail_engine(&call->status, ST_NOMEM);
    return kube_fail_field_errors(&call->status, errors, slice_from_text(call->kind->group),
                                  slice_from_text(call->kind->kind), name);
}

enum kube_stepped kube_reserve(struct kube_change *change)
{
    struct kube_call *call = change->call;
    struct kube_field_errors errors = {.arena = &call->arena};
    if (!call->api->config->services)
        return KUBE_STEP_NEXT;
    struct kube_reservations *reservations = arena_calloc(change->arena, 1, sizeof(*reservations));
    if (!reservations)
        return kube_fail_engine(&call->status, ST_NOMEM);
    if (!kube_reservations_make(reservations, call->api->config->services, &change->meta,
                                change->object, change->old, &errors))
        return fail(call, &errors, change->name);
    change->reservations = reservations;
    return KUBE_STEP_NEXT;
}

bool kube_reserve_write(struct kube_call *call, struct kube_reservations *reservations,
                        struct slice namespace, struct slice name)
{
    return kube_reservations_companions(reservations, namespace, name, &call->write.companions) ==
               ST_OK ||
           kube_fail_engine(&call->status, ST_NOMEM);
}

bool kube_reserve_delete(struct kube_change *change)
{
    struct kube_call *call = change->call;
    if (!call->api->config->services || !kube_reservations_concern(call->kind) ||
        call->path.subresource.len)
        return true;
    struct kube_reservations *reservations = arena_calloc(change->arena, 1, sizeof(*reservations));
    if (!reservations)
        return kube_fail_engine(&call->status, ST_NOMEM);
    kube_reservations_release(reservations, change->arena, change->old);
    return kube_reserve_write(call, reservations, SLICE_EMPTY, SLICE_EMPTY);
}

bool kube_reserve_next(struct kube_call *call, struct kube_reservations *reservations,
                       struct kube_reservation *reservation, struct slice name)
{
    struct kube_field_errors errors = {.arena = &call->arena};
    return kube_reservations_next(reservations, reservation, &errors) || fail(call, &errors, name);
}
