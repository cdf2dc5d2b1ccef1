/* What webhook configurations and admission policies have in common. */
#ifndef VIGIL_KUBE_TYPES_VALIDATE_CLUSTER_MATCHING_H
#define VIGIL_KUBE_TYPES_VALIDATE_CLUSTER_MATCHING_H

#include "kube/types/expression/expression.h"
#include "kube/types/validate/check.h"

/* webhook.c: operations, groups, versions and resources */
void rule_admission_rule(struct check *c, const struct at *at, const struct json_node *rule);
/* webhook.c: names and expressions, which are compiled if the check has a scope */
void rule_match_conditions(struct check *c, const struct at *at, const struct json_node *list);

/* admission_policy.c: the expression compiles and returns a value of this type; `shown` is what an
 * error shows of it. Nothing without a scope. */
void rule_expression(struct check *c, const struct at *at, struct slice text, struct slice shown,
                     enum kube_expression_returns returns);

#endif
