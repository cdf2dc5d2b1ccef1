/*
 * The answers to what policies ask about permissions (kube/policy/policies/permissions.h), by roles
 * and bindings that are as new as the store was when the write began.
 */
#include "base/metric/turn.h"
#include "kube/call/operation.h"
#include "kube/call/respond.h"
#include "kube/handlers/write/policies_private.h"
#include "kube/policy/access/access.h"

enum { TURN_ANSWERS = 4 }; /* in one turn: each takes at most about 4 ms, and usually some µs */

bool kube_policies_asked(const struct kube_policy_facts *facts)
{
    return facts->permissions.unknown || kube_policy_sights_wanted(&facts->sights) ||
           facts->back.len;
}

void kube_policies_free_fetches(struct kube_policy_facts *f)
{
    while (f->fetch_count)
        kube_rbac_fetch_free(f->fetches[--f->fetch_count]);
}

static void on_current(struct kube_rbac_wait *wait)
{
    struct kube_policy_facts *f = CONTAINER_OF(wait, struct kube_policy_facts, roles);
    f->roles_current = true;
    kube_change_resume(f->change, wait->status);
}

static void on_fetched(void *ctx)
{
    struct kube_policy_facts *f = ctx;
    kube_change_resume(f->change, kube_rbac_fetch_status(f->fetches[f->fetch_count - 1]));
}

static void on_turn(struct deferred *deferred)
{
    kube_change_resume(CONTAINER_OF(deferred, struct kube_policy_facts, more)->change, ST_OK);
}

/* KUBE_STEP_NEXT: the question has an answer. */
static enum kube_stepped answer(struct kube_policy_facts *f, struct kube_permission *permission)
{
    struct kube_call *call = f->change->call;
    struct kube_rbac *rbac = call->api->access->rbac;
    const struct kube_user_info *user = kube_call_user(call);
    struct kube_user_info account;
    char reason[KUBE_RBAC_REASON_BYTES];
    if (permission->of_account) {
        kube_user_account(&f->arena, permission->account_namespace, permission->account, &account);
        user = &account;
    }
    if (arena_ran_out(&f->arena))
        return kube_fail_engine(&call->status, ST_NOMEM);
    kube_rbac_begin(rbac, f);
    bool allowed = kube_rbac_allows(rbac, user, &permission->attributes, reason);
    bool lacks = !allowed && kube_rbac_lacks(rbac);
    if (lacks && f->fetch_count < COUNT_OF(f->fetches)) {
        kube_call_hold(call);
        f->fetches[f->fetch_count++] =
            kube_rbac_fetch_new(rbac, call->arena.account, &call->exchange, on_fetched, f);
        return KUBE_STEP_LEFT;
    }
    kube_policies_free_fetches(f);
    if (lacks)
        return kube_call_set_engine(call, ST_AGAIN);
    kube_permission_answer(&f->permissions, permission, allowed, reason);
    return KUBE_STEP_NEXT;
}

enum kube_stepped kube_policies_ask(struct kube_change *change)
{
    struct kube_call *call = change->call;
    struct kube_policy_facts *f = change->policies;
    struct kube_permission *permission;
    if (kube_policy_sights_wanted(&f->sights) || f->back.len)
        return kube_policies_convert(change);
    if (!f->permissions.unknown)
        return KUBE_STEP_NEXT;
    if (!f->roles_current) {
        kube_call_hold(call);
        f->roles = (struct kube_rbac_wait){.current = true, .go = on_current};
        kube_rbac_wait(call->api->access->rbac, &f->roles);
        return KUBE_STEP_LEFT;
    }
    turn_work("permissions that policies ask for", f->request.name);
    for (int i = 0; (permission = kube_permissions_next(&f->permissions)) != NULL; i++) {
        if (i == TURN_ANSWERS) {
            kube_call_hold(call);
            f->more = (struct deferred){.fn = on_turn};
            loop_defer(call->api->loop, &f->more);
            return KUBE_STEP_LEFT;
        }
        enum kube_stepped answered = answer(f, permission);
        if (answered != KUBE_STEP_NEXT)
            return answered;
    }
    return KUBE_STEP_NEXT;
}
