/* The conditions in the status of an object, of which there is one of each type. */
#ifndef VIGIL_KUBE_OBJECT_CONDITION_H
#define VIGIL_KUBE_OBJECT_CONDITION_H

#include "kube/object/meta.h"

/* NULL: there is none of that type. */
struct json_node *kube_condition_find(struct json_node *status, const char *type);

/* Sets or adds the one of that type; its time changes with its status alone. False: no memory, and
 * meta->status says so. */
MUST_CHECK
bool kube_condition_set(const struct kube_meta *meta, struct json_node *status, const char *type,
                        bool truth, const char *reason, struct slice message);

#endif
