/*
 * The nodes of a schema that have rules, and those above them. A validation visits only these; a
 * schema without rules has none. In the arena of the schema, read-only.
 *
 *     schema ─► rule_tree_new ─┬─► rule_set: the programs of each node
 *                              ├─► rule_shapes: how rules see the values
 *                              └─► rule_tree ─► rules_evaluate (evaluate.h), once for each write
 */
#ifndef VIGIL_KUBE_CUSTOM_RULES_TREE_H
#define VIGIL_KUBE_CUSTOM_RULES_TREE_H

#include "cel/value/shape.h"
#include "kube/custom/rules/compile.h"

struct rule_node;

struct rule_branch {
    struct slice name;
    const struct rule_node *node;
};

struct rule_node {
    const struct schema *schema;
    const struct cel_shape *shape;        /* its values have this; NULL without programs */
    const struct rule_programs *programs; /* NULL: only nodes below it have rules */
    bool uses_old;                        /* one of the rules mentions oldSelf */
    const struct rule_node *items, *additional;
    const struct rule_branch *properties; /* sorted by name */
    uint32_t property_count;
};

/* Compiles the rules. resource: the schema is that of a whole object. *ret_root is NULL if there
 * are no rules. ST_NOMEM. */
MUST_CHECK
enum status rule_tree_new(struct arena *arena, const struct schema *schema, bool resource,
                          const struct rule_node **ret_root);

#endif
