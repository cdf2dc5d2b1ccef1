/*
 * Subresources that are a part of their object: a PUT or PATCH sends the whole object, of which
 * only this part is taken. GET answers with the whole object, except for finalize, which has only
 * PUT.
 *
 *     namespaces/finalize                       metadata, spec.finalizers
 *     pods/ephemeralcontainers                  spec.ephemeralContainers, which may only grow
 *     pods/resize                               resources and resizePolicy of each container
 *     certificatesigningrequests/approval       metadata, status.conditions
 *
 * tests/kube/same_parts_test.py compares every subresource of Kubernetes with this.
 */
#ifndef VIGIL_KUBE_HANDLERS_WRITE_PART_H
#define VIGIL_KUBE_HANDLERS_WRITE_PART_H

#include "kube/handlers/write/change.h"

/* Whether the path names one of them. */
bool kube_is_part(const struct kube_call *call);

/* Whether such a write changes labels, annotations, finalizers and owners, too. */
bool kube_part_takes_metadata(const struct kube_call *call);

/* Takes the part of `wanted` into the object, which is a copy of the stored one. False:
 * call->status says why it may not be changed so. */
MUST_CHECK
bool kube_part_take(struct kube_change *change, const struct json_node *stored,
                    const struct json_node *wanted, struct json_node *object);

#endif
