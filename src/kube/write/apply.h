/*
 * Where writes meet ownership of fields (kube/apply/): a PATCH that applies a configuration, and
 * what other writes do to the managedFields of objects that have some. Objects that nobody has
 * applied to have none, and cost nothing. Each returns false with call->status filled.
 */
#ifndef VIGIL_KUBE_WRITE_APPLY_H
#define VIGIL_KUBE_WRITE_APPLY_H

#include "kube/write/change.h"

/* What shall be there, with its managedFields: the stored object (with its resourceVersion, or
 * NULL: there is none) and the configuration. In meta's arena. */
MUST_CHECK
bool kube_apply(const struct kube_meta *meta, struct kube_call *call, struct json_node *stored,
                const struct json_node *config, struct json_node **ret_object);

/*
 * The managedFields of an object that is about to be written otherwise: those that the client sent
 * or that are stored, with what changed as the client's. `sent` is the object as the client wants
 * it, `object` as it will be.
 */
MUST_CHECK
bool kube_apply_track(const struct kube_meta *meta, struct kube_call *call,
                      const struct json_node *stored, const struct json_node *sent,
                      struct json_node *object);

/* Nobody owns anything before the first apply, whatever an object says. */
void kube_apply_disown(struct json_node *object);

/* If nothing is different but times in managedFields, they are as they were. */
MUST_CHECK
bool kube_apply_keep_times(const struct kube_meta *meta, const struct json_node *stored,
                           struct json_node *object);

#endif
