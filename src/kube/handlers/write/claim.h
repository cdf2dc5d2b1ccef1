/*
 * Addresses and node ports in writes of services (kube/policy/claims.h). Everything is in the
 * arena of the attempt. Other kinds have no claims.
 */
#ifndef VIGIL_KUBE_HANDLERS_WRITE_CLAIM_H
#define VIGIL_KUBE_HANDLERS_WRITE_CLAIM_H

#include "kube/call/call.h"
#include "kube/policy/claims.h"

/* Sets what the object needs; old NULL: it is new. *ret_claims NULL: nothing is to be claimed or
 * given up. False: call->status says why. */
MUST_CHECK
bool kube_claim(struct kube_call *call, const struct kube_meta *meta, struct json_node *object,
                const struct json_node *old, struct kube_claims **ret_claims);
/* Adds what is claimed and given up to call->write. */
MUST_CHECK
bool kube_claim_write(struct kube_call *call, struct kube_claims *claims, struct slice namespace,
                      struct slice name);
/* Adds what the stored object of a deletion has to call->write. */
MUST_CHECK
bool kube_claim_delete(struct kube_call *call, struct arena *arena, struct slice stored);
/* Another number for a claim that is in use. False: call->status says why not. */
MUST_CHECK
bool kube_claim_next(struct kube_call *call, struct kube_claims *claims, struct kube_claim *claim,
                     struct slice name);

#endif
