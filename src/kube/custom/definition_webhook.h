/* The rules for spec.conversion of a CustomResourceDefinition, and its authorities. */
#ifndef VIGIL_KUBE_CUSTOM_DEFINITION_WEBHOOK_H
#define VIGIL_KUBE_CUSTOM_DEFINITION_WEBHOOK_H

#include "base/error.h"
#include "kube/custom/definition_errors.h"

/* At spec. old: the whole definition before; NULL for a create. established: the old one is. */
void kube_definition_check_conversion(struct definition_check *check, const struct json_node *spec,
                                      const struct json_node *old, bool established);

/* Whether spec.conversion.webhook.clientConfig.caBundle has certificates, or there is none; the
 * error is in Go's words as far as they are known. ST_OK, ST_INVALID, ST_NOMEM. */
MUST_CHECK
enum status kube_definition_authorities(struct arena *arena, const struct json_node *spec,
                                        struct error *error);

#endif
