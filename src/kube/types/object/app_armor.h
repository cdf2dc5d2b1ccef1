/*
 * The AppArmor profile of a container was an annotation of its pod before it became a field. The
 * annotation of a new pod becomes that field, as in Kubernetes, because kubelets read only the
 * field.
 */
#ifndef VIGIL_KUBE_TYPES_OBJECT_APP_ARMOR_H
#define VIGIL_KUBE_TYPES_OBJECT_APP_ARMOR_H

#include "kube/types/object/meta.h"

MUST_CHECK
bool kube_app_armor_create(const struct kube_meta *meta, struct json_node *pod);

#endif
