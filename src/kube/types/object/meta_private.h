/* What meta.c and meta_check.c share. */
#ifndef VIGIL_KUBE_TYPES_OBJECT_META_PRIVATE_H
#define VIGIL_KUBE_TYPES_OBJECT_META_PRIVATE_H

#include "kube/types/object/meta.h"

/* Validates labels, annotations, names, finalizers and owners; in meta_check.c. */
MUST_CHECK
bool kube_meta_validate(const struct kube_meta *meta, const struct json_node *object,
                        const struct json_node *old);

#endif
