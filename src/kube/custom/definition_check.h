/*
 * The rules for CustomResourceDefinitions, with Kubernetes' texts for violations: names and
 * versions here, schemas in schema_check.h.
 */
#ifndef VIGIL_KUBE_CUSTOM_DEFINITION_CHECK_H
#define VIGIL_KUBE_CUSTOM_DEFINITION_CHECK_H

#include "codec/json/tree.h"
#include "kube/types/field_errors.h"

/* old: NULL for a create. `warning` gets lines for the client of a valid definition. */
void kube_definition_validate(struct arena *arena, const struct json_node *object,
                              const struct json_node *old, struct kube_field_errors *errors,
                              struct buf *warning);

#endif
