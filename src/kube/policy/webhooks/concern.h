/*
 * Whether an admission webhook concerns a write, the review that it is sent, and what its patch
 * makes of the object. A write is that of admission policies (kube/policy/policies/policy_write.h),
 * and so is the way in which it is matched and in which conditions are evaluated.
 *
 *     concerns? ─► ask: the review ─► (the call) ─► patch: another object
 *
 * Any thread: it uses only what was gathered for the write.
 */
#ifndef VIGIL_KUBE_POLICY_WEBHOOKS_CONCERN_H
#define VIGIL_KUBE_POLICY_WEBHOOKS_CONCERN_H

#include "kube/policy/policies/round.h"
#include "kube/policy/policies/webhook.h"
#include "kube/policy/webhooks/review.h"

enum kube_webhook_concern {
    KUBE_WEBHOOK_PASSES,   /* it does not concern the write */
    KUBE_WEBHOOK_CONCERNS, /* with the kind as which it sees the objects */
    KUBE_WEBHOOK_DENIES,   /* its conditions cannot be evaluated, …: status says why */
    /* It has to be decided again, as with policies. */
    KUBE_WEBHOOK_TOO_DEAR,
    KUBE_WEBHOOK_ASKS,
};

/* What metrics count of match conditions. */
struct kube_webhook_conditions {
    bool were_evaluated, are_false;
    unsigned errors;
    int64_t elapsed_ns;
};

/* A run may decide about several webhooks. */
MUST_CHECK
enum kube_webhook_concern kube_webhook_concerns(struct kube_policy_run *run,
                                                const struct kube_webhook *webhook,
                                                const struct kube_kind **ret_kind,
                                                struct kube_webhook_conditions *ret_conditions);

/* Appends the review. ST_NOMEM, also if the objects cannot be converted. */
MUST_CHECK
enum status kube_webhook_ask(struct kube_policy_run *run, const struct kube_webhook *webhook,
                             const struct kube_kind *kind, struct slice uid, struct buf *to);

/*
 * Applies the patch of a verdict to write->object, as the webhook has seen it; *ret_object is a new
 * object in the arena, with its defaults. NULL: the patch changes nothing. *ret_kind is its kind:
 * that of the request, or, if another webhook has to convert it back, that of the rule. False:
 * status says why.
 */
MUST_CHECK
bool kube_webhook_patch(struct kube_policy_run *run, const struct kube_webhook *webhook,
                        const struct kube_kind *kind, const struct kube_webhook_verdict *verdict,
                        struct arena *arena, struct json_node **ret_object,
                        const struct kube_kind **ret_kind);

#endif
