/* The labels of the namespace in which an object is written, for plugins that they configure. */
#ifndef VIGIL_KUBE_POLICY_ADMISSION_PLUGINS_NAMESPACES_H
#define VIGIL_KUBE_POLICY_ADMISSION_PLUGINS_NAMESPACES_H

#include "kube/policy/admission/plugins/facts.h"

extern const struct kube_fact_row kube_namespace_labels;

/* Whether a plugin is configured by these labels. Namespaces without such labels are not held, so
 * that nearly every server holds none, and the plugin is passed by. NULL: none. */
bool kube_labels_concern_pods(const struct json_node *labels);

/* NULL: the namespace has none that concern pods, or does not exist. */
const struct json_node *kube_labels_of_namespace(const struct kube_facts *facts);

#endif
