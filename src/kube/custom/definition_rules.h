/*
 * What happens to a CustomResourceDefinition object besides what happens to every object: defaults,
 * accepted names, conditions, and its deletion. Kubernetes leaves this to controllers, which act a
 * moment later; here it is done with the write, so that a definition can be used as soon as its
 * creation is answered. Functions return false with meta->status set.
 */
#ifndef VIGIL_KUBE_CUSTOM_DEFINITION_RULES_H
#define VIGIL_KUBE_CUSTOM_DEFINITION_RULES_H

#include "kube/custom/conversion_review.h"
#include "kube/custom/kinds.h"
#include "kube/types/object/meta.h"

MUST_CHECK
bool kube_definition_set_defaults(const struct kube_meta *meta, struct json_node *object);

/* Adds the version that is stored now to status.storedVersions. */
MUST_CHECK
bool kube_definition_add_stored_version(const struct kube_meta *meta, struct json_node *object,
                                        struct json_node *status);

/* Sets the accepted names, which must not conflict with those of the other definitions, and the
 * conditions that follow from them. */
MUST_CHECK
bool kube_definition_accept_names(const struct kube_meta *meta, struct json_node *object,
                                  const struct kube_kinds *kinds);

/* Sets the condition KUBE_CONVERSION_FAILING: the last conversion that has failed, and the versions
 * of it; CONVERSION_FINE: conversions succeed again. A write of the definition removes the
 * condition if no webhook converts any more. */
MUST_CHECK
bool kube_definition_report_conversion(const struct kube_meta *meta, struct json_node *object,
                                       enum conversion_failure failure, const char *from,
                                       const char *to);

/* Marks it for deletion; it is removed when no object of its kind is left. */
MUST_CHECK
bool kube_definition_mark(const struct kube_meta *meta, struct json_node *object);

/* No object of its kind is left: removes our finalizer. *ret_ours: it had it; *ret_held: it has
 * others. */
MUST_CHECK
bool kube_definition_release(const struct kube_meta *meta, struct json_node *object, bool *ret_ours,
                             bool *ret_held);

#endif
