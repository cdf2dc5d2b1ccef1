/*
 * Admission (kube/policy/admission/admission.h) in the writes of a call: its facts, what the
 * plugins decide, and the permission that the write needs besides that of its request
 * (kube/policy/access/write_right.h).
 */
#ifndef VIGIL_KUBE_HANDLERS_WRITE_ADMIT_H
#define VIGIL_KUBE_HANDLERS_WRITE_ADMIT_H

#include "kube/call/call.h"
#include "kube/policy/admission/admission.h"

/* The facts that a write needs: bits, 0 for most kinds. */
unsigned kube_admit_needs(const struct kube_call *call, enum kube_admission_operation operation);

/*
 * Gathers these facts, of the object that is created, or of its stored version if it is NULL,
 * decides whether the user may do what the write does, and then calls next on the thread of the
 * API; if they cannot be read, the call fails. To be called on that thread; facts that were
 * gathered before are released. They belong to the call until kube_admit_release.
 */
void kube_admit_gather(struct kube_call *call, unsigned needs, const struct json_node *object,
                       struct slice stored, void (*next)(struct kube_call *call));
void kube_admit_release(struct kube_call *call);

/* Whether the user may create what a PUT or PATCH creates. False: call->status says why not. */
MUST_CHECK
bool kube_admit_creates(struct kube_call *call);

/* One attempt of the call, for kube_admission_admit and kube_admission_check. */
struct kube_admission_write kube_admit_write(struct kube_call *call, struct arena *arena,
                                             enum kube_admission_operation operation,
                                             struct json_node *object, const struct json_node *old);

#endif
