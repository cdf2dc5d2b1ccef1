/* Amounts of resources ("100m", "2Gi") and the names of resources, with Kubernetes' rules. */
#ifndef VIGIL_KUBE_TYPES_VALIDATE_QUANTITY_H
#define VIGIL_KUBE_TYPES_VALIDATE_QUANTITY_H

#include "kube/types/validate/check.h"

/*
 * In billionths, the finest unit of Kubernetes, rounded up; limited to the range of 64-bit units.
 * Read by kube/types/defaults/quantity.h; what has too many digits for that is the largest amount.
 */
__extension__ typedef __int128 quantity;

/* The text was checked when it was decoded; anything else is 0. */
quantity quantity_of(struct check *c, const struct json_node *node);
/* As Kubernetes writes it: "1500m" for 1.5. */
struct slice quantity_text(struct check *c, const struct json_node *node);
/* In units, rounded up. */
int64_t quantity_units(quantity amount);

void rule_quantity_not_negative(struct check *c, const struct at *at,
                                const struct json_node *amount);
void rule_quantity_positive(struct check *c, const struct at *at, const struct json_node *amount);
/* Not negative, and whole if the resource is counted. */
void rule_quantity_of(struct check *c, const struct at *at, struct slice resource,
                      const struct json_node *amount);

bool resource_is_huge_page(struct slice name);
/* Unqualified or of kubernetes.io. */
bool resource_is_native(struct slice name);
bool resource_is_extended(struct slice name);
bool resource_is_counted(struct slice name);
bool resource_is_standard_quota(struct slice name);

/* False: errors have been added. */
bool rule_resource_name(struct check *c, const struct at *at, struct slice name);
bool rule_container_resource_name(struct check *c, const struct at *at, struct slice name);
void rule_quota_resource_name(struct check *c, const struct at *at, struct slice name);

#endif
