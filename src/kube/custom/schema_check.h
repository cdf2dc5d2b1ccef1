/*
 * The rules for the schemas of CustomResourceDefinitions, with Kubernetes' texts for violations.
 */
#ifndef VIGIL_KUBE_CUSTOM_SCHEMA_CHECK_H
#define VIGIL_KUBE_CUSTOM_SCHEMA_CHECK_H

#include "kube/custom/definition_errors.h"

enum { KUBE_LIST_KEYS_MAX = 64 }; /* per list of type map */

/* Checks the schema of a version at the current position: "spec.validation". */
void check_schema(struct definition_check *check, const struct json_node *schema, bool has_status,
                  struct buf *warning);

#endif
