/*
 * Fields of particular kinds that Kubernetes sets when it stores an object, because they depend on
 * its uid, on the time or on its previous version:
 *
 *     jobs                the labels of their pods and the selector, from the uid
 *     daemon sets         the annotation that counts the versions of the template
 *     pods                status.qosClass, from the resources of the containers
 *     persistent volumes  when the phase changed
 *
 * Other kinds have no such fields (KUBE_SETS_FIELDS). False: *meta->status says why.
 */
#ifndef VIGIL_KUBE_TYPES_OBJECT_STORED_FIELDS_H
#define VIGIL_KUBE_TYPES_OBJECT_STORED_FIELDS_H

#include "kube/types/object/meta.h"

/* What a decoded object has of them: a daemon set always has its annotation. */
MUST_CHECK
bool kube_stored_fields_decode(const struct kube_meta *meta, struct json_node *object);
/* For a new object that has its uid and, if the kind has one, its phase. */
MUST_CHECK
bool kube_stored_fields_create(const struct kube_meta *meta, struct json_node *object);
MUST_CHECK
bool kube_stored_fields_update(const struct kube_meta *meta, const struct json_node *old,
                               struct json_node *object);

#endif
