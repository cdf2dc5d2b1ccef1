/*
 * Built-in kinds that are stored in the form of another kind, so that an object written through one
 * of them is seen through both: events of events.k8s.io are stored as core events, autoscalers of
 * version 1 as version 2. Their flags have KUBE_STORED_CONVERTED.
 *
 * Fields that the other form lacks are preserved in the same annotations as in Kubernetes, and each
 * form has its own defaults (kube/types/defaults/defaults.h). Objects are changed in place; a value
 * of an unexpected type is left unchanged.
 */
#ifndef VIGIL_KUBE_TYPES_OBJECT_CONVERSION_H
#define VIGIL_KUBE_TYPES_OBJECT_CONVERSION_H

#include "codec/json/tree.h"
#include "kube/types/kind.h"

/* From the stored form to that of the kind. ST_MALFORMED: not an object; ST_NOMEM. */
MUST_CHECK
enum status kube_convert_from_stored(const struct kube_kind *kind, struct arena *arena,
                                     struct json_node *object);
/* From the form of the kind to the stored form. Errors as above. */
MUST_CHECK
enum status kube_convert_to_stored(const struct kube_kind *kind, struct arena *arena,
                                   struct json_node *object);

/* The apiVersion of the stored form, for example "v1". */
const char *kube_converted_api_version(const struct kube_kind *kind);

#endif
