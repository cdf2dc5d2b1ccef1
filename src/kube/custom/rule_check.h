/*
 * The checks of x-kubernetes-validations when a definition is written: what each rule must have,
 * that it compiles, and that the rules do not cost too much. Limits and texts are Kubernetes'.
 */
#ifndef VIGIL_KUBE_CUSTOM_RULE_CHECK_H
#define VIGIL_KUBE_CUSTOM_RULE_CHECK_H

#include "kube/custom/definition_errors.h"
#include "kube/custom/schema/structural.h"

enum { RULE_COST_MAX = 10000000, RULE_COST_SUM_MAX = 100000000, RULE_DEAR_MAX = 4 };

/* What the rules of one schema cost together. */
struct rule_costs {
    uint64_t sum;
    /* The dearest ones, the first one most, and their fields. */
    struct {
        uint64_t cost;
        struct slice field;
    } dear[RULE_DEAR_MAX];
    uint32_t dear_count;
    struct kube_field_errors errors; /* they follow those of the schema */
};

/* A node of the schema, while all of them are visited. */
struct rule_scope {
    const struct schema *schema; /* NULL: rules are not compiled here */
    bool root;
    bool unbounded;              /* an array or map around it has no limit of items */
    uint64_t occurrences;        /* how often a value may be in an object, unless unbounded */
    struct slice uncorrelatable; /* the part of the schema without old values; empty: none */
    struct rule_costs *costs;
};

/* The scope of the properties, items or values of a node. */
struct rule_scope rule_scope_below(struct definition_check *check, const struct rule_scope *scope,
                                   const struct schema *schema, bool correlatable);

/* What can be said about the rules of a node without compiling them. */
void check_rule_texts(struct definition_check *check, const struct json_node *node);
/* Compiles the rules of a node and adds errors to scope->costs->errors. */
void check_rules(struct definition_check *check, const struct json_node *node,
                 const struct rule_scope *scope);
/* Adds the errors of all rules, and whether they cost too much together. */
void check_rule_costs(struct definition_check *check, struct rule_costs *costs);

#endif
