/* The field of a rule's refusal: fieldPath, a JSON path of names like .a.b or ['x y']. */
#ifndef VIGIL_KUBE_CUSTOM_RULES_FIELD_PATH_H
#define VIGIL_KUBE_CUSTOM_RULES_FIELD_PATH_H

#include "base/buf.h"
#include "kube/custom/schema/structural.h"

enum { RULE_PATH_WHY_BYTES = 256 };

/* Calls `descend` for each name of the path, from the left, until it returns something else than
 * ST_OK. ST_INVALID, with Kubernetes' words in `why`: it is not a path, or `descend` returned it.
 * ST_NOMEM. */
typedef enum status rule_descend_fn(void *ctx, struct slice name);
MUST_CHECK
enum status rule_path_walk(struct slice path, rule_descend_fn *descend, void *ctx,
                           char why[RULE_PATH_WHY_BYTES]);

/* Appends it as it is shown, a.b[key]. ST_INVALID: the schema has no such field; `why` says it in
 * Kubernetes' words. ST_NOMEM. */
MUST_CHECK
enum status rule_field_path(const struct schema *schema, struct slice path, struct buf *to,
                            char why[RULE_PATH_WHY_BYTES]);

#endif
