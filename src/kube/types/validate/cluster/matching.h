/* What webhook configurations and admission policies have in common. */
#ifndef VIGIL_KUBE_TYPES_VALIDATE_CLUSTER_MATCHING_H
#define VIGIL_KUBE_TYPES_VALIDATE_CLUSTER_MATCHING_H

#include "kube/types/validate/check.h"

/* webhook.c: operations, groups, versions and resources */
void rule_admission_rule(struct check *c, const struct at *at, const struct json_node *rule);
/* webhook.c: names and presence of expressions, which are not evaluated */
void rule_match_conditions(struct check *c, const struct at *at, const struct json_node *list);

#endif
