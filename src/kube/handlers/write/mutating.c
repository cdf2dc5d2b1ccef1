#include "kube/handlers/write/mutating.h"

#include "kube/handlers/write/body.h"
#include "kube/handlers/write/policies_private.h"
#include "kube/handlers/write/webhooks.h"

static bool is_mutated(const struct kube_policy_facts *f)
{
    return f->count > f->validating || kube_webhooks_mutate(f);
}

/* What is posted to an object is not stored, and is kept with the call. */
enum kube_stepped kube_mutating_begin(struct kube_change *change)
{
    struct kube_call *call = change->call;
    struct arena *arena = change->posted ? &call->arena : change->arena;
    if (change->mutating) /* the second pass */
        return KUBE_STEP_NEXT;
    kube_change_drop_patched(change); /* that of an attempt before */
    change->mutating = arena_calloc(arena, 1, sizeof(*change->mutating));
    if (!change->mutating ||
        (change->operation == KUBE_ADMISSION_CREATE && !change->decide &&
         is_mutated(change->policies) && !kube_body_zero_status(call, arena, change->object)))
        return kube_fail_engine(&call->status, ST_NOMEM);
    change->mutating->arena = arena;
    return KUBE_STEP_NEXT;
}

enum kube_stepped kube_mutating_again(struct kube_change *change)
{
    struct kube_mutating *mutating = change->mutating;
    if (mutating->again || !mutating->mutated)
        return kube_webhooks_end_mutating(change);
    mutating->again = true;
    return kube_webhooks_begin_again(change) ? kube_change_mutate_again(change) : KUBE_STEP_FAIL;
}
