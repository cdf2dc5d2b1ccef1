/* Whether a LabelSelector of an object, as of a PodDisruptionBudget, selects other objects. */
#ifndef VIGIL_KUBE_TYPES_OBJECT_LABEL_MATCH_H
#define VIGIL_KUBE_TYPES_OBJECT_LABEL_MATCH_H

#include "codec/json/tree.h"

/* selector NULL: it selects nothing; an empty one selects everything. labels may be NULL. A
 * requirement with an unknown operator is never met. */
bool kube_label_match(const struct json_node *selector, const struct json_node *labels);

#endif
