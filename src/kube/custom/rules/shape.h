/*
 * The shapes of a custom resource's values (cel/value/shape.h), made from its compiled schema.
 * Equal schemas share one. In the arena of the schema, read-only once they are made.
 */
#ifndef VIGIL_KUBE_CUSTOM_RULES_SHAPE_H
#define VIGIL_KUBE_CUSTOM_RULES_SHAPE_H

#include "base/container/hash_map.h"
#include "cel/value/shape.h"
#include "kube/custom/schema/structural.h"

struct rule_shapes {
    struct arena *arena;
    struct hash_map made; /* struct made_shape, by the address of its schema */
};

void rule_shapes_init(struct rule_shapes *shapes, struct arena *arena);
void rule_shapes_fini(struct rule_shapes *shapes);

/* resource: the value is a whole object, which has kind, apiVersion and metadata whatever its
 * schema says; embedded resources have them anyway. ST_NOMEM. */
MUST_CHECK
enum status rule_shapes_get(struct rule_shapes *shapes, const struct schema *schema, bool resource,
                            const struct cel_shape **ret_shape);

#endif
