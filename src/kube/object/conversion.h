/*
 * Built-in kinds that are stored in the form of another one, so that what is written through one of
 * the two is seen through both: events of events.k8s.io as those of core, autoscalers of version 1
 * as those of version 2. Their flags have KUBE_STORED_CONVERTED.
 *
 * What the other form has no field for is kept in the annotations that Kubernetes keeps it in.
 * Objects are changed in place; what is not of the type that it should be is left as it is.
 */
#ifndef VIGIL_KUBE_OBJECT_CONVERSION_H
#define VIGIL_KUBE_OBJECT_CONVERSION_H

#include "codec/json/tree.h"
#include "kube/resource/kind.h"

/* From the form that is stored to that of the kind. ST_MALFORMED: no object; ST_NOMEM. */
MUST_CHECK
enum status kube_convert_from_stored(const struct kube_kind *kind, struct arena *arena,
                                     struct json_node *object);
/* And back. */
MUST_CHECK
enum status kube_convert_to_stored(const struct kube_kind *kind, struct arena *arena,
                                   struct json_node *object);

#endif
