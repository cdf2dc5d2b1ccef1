#include "kube/handlers/write/guard.h"

#include "kube/call/operation.h"
#include "kube/call/respond.h"
#include "kube/policy/access/access.h"
#include "kube/policy/access/guard.h"
#include "kube/policy/access/identity.h"
#include "kube/policy/access/rbac/rbac_fetch.h"
#include "kube/policy/admission/admission.h"

/* What is read for the check of an object, in the arena of its call. */
struct kube_guard {
    struct kube_change *change;
    struct kube_rbac_wait wait;
    bool current; /* roles and bindings are as new as the store was when the check began */
    /* Another object that the check needs, once it was read. */
    struct pb_range_request request;
    struct slice other;
    bool has_other;
    /* What the user has; the role of the binding; and both again if they have changed meanwhile. */
    struct kube_rbac_fetch *fetches[4];
    size_t count;
};

/* The next attempt begins with newer roles and bindings. */
static void free_guard(struct kube_guard *guard)
{
    while (guard->count)
        kube_rbac_fetch_free(guard->fetches[--guard->count]);
    guard->current = guard->has_other = false;
}

static void on_current(struct kube_rbac_wait *wait)
{
    struct kube_guard *guard = CONTAINER_OF(wait, struct kube_guard, wait);
    guard->current = true;
    kube_change_resume(guard->change, wait->status);
}

static void on_fetched(void *ctx)
{
    struct kube_guard *guard = ctx;
    enum status status = kube_rbac_fetch_status(guard->fetches[guard->count - 1]);
    if (status != ST_OK || !guard->change->call->exchange)
        free_guard(guard);
    kube_change_resume(guard->change, status);
}

static void on_other(struct engine_op *op)
{
    struct kube_call *call = kube_call_of_range(op);
    struct kube_guard *guard = call->handler.change->guard;
    enum status status = op->status;
    struct slice field;
    guard->other = SLICE_EMPTY;
    if (status == ST_OK && engine_range_next(&call->range, &field))
        status = arena_dup(&call->arena, kube_kv_of(field).value, &guard->other);
    engine_range_close(&call->range);
    guard->has_other = true;
    kube_change_resume(guard->change, status);
}

enum kube_stepped kube_change_guard(struct kube_change *change)
{
    struct kube_call *call = change->call;
    struct kube_guard *guard = change->guard;
    const struct kube_user_info *user = kube_identity_user(call->identity);
    struct slice subresource = call->path.subresource;
    bool owned = kube_admission_guards_owners(call->api->admission) &&
                 kube_guard_applies_to_owners(user, call->kind, subresource) &&
                 kube_owners_change(change->object, change->old);
    if (change->decision != KUBE_DECIDE_PUT ||
        (!owned && !kube_guard_applies(user, call->kind, subresource)))
        return KUBE_STEP_NEXT;
    if (!guard)
        guard = change->guard = arena_calloc(&call->arena, 1, sizeof(*guard));
    if (!guard)
        return kube_fail_engine(&call->status, ST_NOMEM);
    guard->change = change;
    /* A role that was acknowledged before this request counts, and one that was removed does not.
     */
    if (!guard->current) {
        kube_call_hold(call);
        guard->wait = (struct kube_rbac_wait){.current = true, .go = on_current};
        kube_rbac_wait(call->api->access->rbac, &guard->wait);
        return KUBE_STEP_LEFT;
    }
    static const char *const verbs[] = {
        [KUBE_VERB_POST] = "create", [KUBE_VERB_PUT] = "update", [KUBE_VERB_PATCH] = "patch"};
    struct kube_guarded_write write = {
        .rbac = call->api->access->rbac,
        .owner = guard,
        .user = user,
        .kind = call->kind,
        .verb = slice_from_text(verbs[call->verb]),
        .namespace = call->path.namespace,
        .name = call->path.name,
        .subresource = subresource,
        .owned = owned,
        .kinds = kube_registry_kinds(call->api->registry),
        .policy = guard->other,
        .arena = &call->arena,
        .status = &call->status,
    };
    if (!guard->has_other) {
        if (kube_guard_needs(&write, change->value, &guard->request.key) != ST_OK)
            return kube_fail_engine(&call->status, ST_NOMEM);
        if (guard->request.key.len) {
            kube_call_range(call, &guard->request, on_other);
            return KUBE_STEP_LEFT;
        }
    }
    bool fine = kube_guard_check(&write, change->value, change->stored);
    bool lacks = !fine && kube_rbac_lacks(write.rbac);
    /* What the user has is not held, so it is read, and the check made again. */
    if (lacks && guard->count < COUNT_OF(guard->fetches)) {
        kube_call_hold(call);
        guard->fetches[guard->count++] = kube_rbac_fetch_new(write.rbac, call->arena.account,
                                                             &call->exchange, on_fetched, guard);
        return KUBE_STEP_LEFT;
    }
    free_guard(guard);
    if (lacks)
        return kube_call_set_engine(call, ST_AGAIN);
    return fine;
}
