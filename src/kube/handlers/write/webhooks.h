/*
 * Admission webhooks as steps of a write: which of those that may concern it do, their calls, and
 * what their answers mean. They are found together with the policies (policies.h).
 *
 * Mutating webhooks are called one after the other, because each sees what those before it have
 * made of the object. Validating ones are called at the same time, and all are awaited; the first
 * refusal to arrive is the answer, as in Kubernetes.
 *
 *     choose ─► none is left: the next step
 *       ▲ └───► call ─► (no thread, no lock, no snapshot) ─► take ─┬─► refused
 *       └──────────────────────────────────────────────────────────┘
 *
 * A write that waits leaves the queues of its object and its quotas, so that others can continue,
 * and the webhook itself can write the object. If another attempt has to be made although the
 * stored object is the same, for example because a quota has changed, webhooks are not called
 * again: their verdict is kept. Validating webhooks are called again if the attempt has come to
 * another object than the one they have allowed.
 */
#ifndef VIGIL_KUBE_HANDLERS_WRITE_WEBHOOKS_H
#define VIGIL_KUBE_HANDLERS_WRITE_WEBHOOKS_H

#include "kube/handlers/write/change.h"

struct kube_hooks;
struct kube_policy_facts;
struct kube_shelf;

enum {
    /* Reviews that a write sends at the same time, and their bytes, except that one is always sent.
     * The others follow when these are answered. */
    KUBE_REVIEWS_MAX = 100,
    KUBE_REVIEWS_BYTES_MAX = 16 << 20,
};

/* -- Gathering (kube/handlers/write/policy_gather.c) -- */

/* Adds the webhooks that may concern the request; a shelf may be NULL. False: no memory, or
 * facts->too_many. */
MUST_CHECK
bool kube_webhooks_find(struct kube_policy_facts *facts, const struct kube_shelf *validating,
                        const struct kube_shelf *mutating);
bool kube_webhooks_found(const struct kube_policy_facts *facts);
/* Whether some of them mutate. */
bool kube_webhooks_mutate(const struct kube_policy_facts *facts);
/* What was gathered for an attempt, and all of it. On the thread of the API; both accept NULL. */
void kube_webhooks_release(struct kube_hooks *hooks);
void kube_webhooks_free(struct kube_hooks *hooks);

/* Another object follows: no verdict holds for it. Accepts NULL. */
void kube_webhooks_forget(struct kube_hooks *hooks);

/* -- Mutating admission (kube/handlers/write/mutating.c) -- */

/* Before its second pass, and at its end. False: call->status says why. */
MUST_CHECK
bool kube_webhooks_begin_again(struct kube_change *change);
MUST_CHECK
bool kube_webhooks_end_mutating(struct kube_change *change);

/* -- Steps -- */

/* The next mutating webhook, or all validating ones. They may go back to ask about permissions. */
kube_step_fn kube_webhooks_choose, kube_webhooks_choose_checks;
/* Calls what was chosen. */
kube_step_fn kube_webhooks_call;
/* The answers. They go back to choose. */
kube_step_fn kube_webhooks_take, kube_webhooks_take_checks;

#endif
