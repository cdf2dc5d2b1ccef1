/* The labels of the namespace in which an object is written, for plugins that they configure. */
#ifndef VIGIL_KUBE_POLICY_ADMISSION_PLUGINS_NAMESPACES_H
#define VIGIL_KUBE_POLICY_ADMISSION_PLUGINS_NAMESPACES_H

#include "kube/policy/admission/plugins/facts.h"

extern const struct kube_fact_row kube_namespace_labels;

/* NULL: it has none, or does not exist. */
const struct json_node *kube_labels_of_namespace(const struct kube_facts *facts);

#endif
