/* Classes of storage and of ingresses, one of which an annotation may make the default. */
#ifndef VIGIL_KUBE_POLICY_ADMISSION_PLUGINS_CLASSES_H
#define VIGIL_KUBE_POLICY_ADMISSION_PLUGINS_CLASSES_H

#include "kube/policy/admission/plugins/plugin.h"

/* What is kept of a class. */
struct kube_class {
    struct slice created; /* "2026-01-01T00:00:00Z" */
    bool is_default;
    bool expands; /* allowVolumeExpansion */
};

/* Reads a class whose annotation, or the other one if it is not empty, says "true". NULL: no
 * memory. */
const struct kube_class *kube_class_read(struct arena *arena, const struct json_node *object,
                                         struct slice annotation, struct slice other);

/* For the row of the kind. Of several defaults the newest is used, then the first by name. */
bool kube_class_is_default(const void *data);
bool kube_class_is_better(const struct kube_lookup_object *a, const struct kube_lookup_object *b);

#endif
