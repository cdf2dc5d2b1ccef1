/*
 * CertificateSigningRequests: who makes one is written into it, its spec never changes, and its
 * conditions change on two paths, Approved and Denied by /approval and all others by /status.
 * Functions return false with call->status set.
 */
#ifndef VIGIL_KUBE_HANDLERS_WRITE_CERTIFICATE_REQUEST_H
#define VIGIL_KUBE_HANDLERS_WRITE_CERTIFICATE_REQUEST_H

#include "kube/handlers/write/change.h"

/* Writes the user of the call into a new request, whatever its client has sent: a step. */
kube_step_fn kube_certificate_create;

/* An update of the object itself: the spec stays what it was. */
MUST_CHECK
bool kube_certificate_update(struct kube_change *change, const struct json_node *stored,
                             struct json_node *object);

/* An update of /status: Approved and Denied stay what they were. */
MUST_CHECK
bool kube_certificate_status(struct kube_change *change, const struct json_node *stored,
                             struct json_node *object);

/* An update of /approval: the object has the conditions that the client wants. */
MUST_CHECK
bool kube_certificate_approval(struct kube_change *change, const struct json_node *stored,
                               struct json_node *object);

#endif
